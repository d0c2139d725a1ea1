#include "base/error.h"

#include <errno.h>
#include <stdarg.h>

static const struct error_face faces[ERROR_CODE_COUNT] = {
    [ERROR_NONE] = {"NONE", 200, 0, 0, "OK", 200, "", "No error."},
#define ERROR_ROW(code, status, substatus, mongo_code, mongo_name, gremlin, table, meaning)        \
    [ERROR_##code] = {#code, status, substatus, mongo_code, mongo_name, gremlin, table, meaning},
#include "base/errors.def"
#undef ERROR_ROW
};

const struct error_face *error_face(enum error_code code)
{
    assert(code < ERROR_CODE_COUNT);
    return &faces[code];
}

/* A cut in the middle of a UTF-8 character would make the whole message unprintable as JSON. */
static void message_end_whole(char *message, size_t length, size_t capacity)
{
    size_t at = capacity - 1;

    if (length < capacity)
        return;
    while (at > 0 && ((uint8_t)message[at - 1] & 0xC0) == 0x80)
        at--;
    if (at > 0 && (uint8_t)message[at - 1] >= 0xC0)
        at--;
    message[at] = '\0';
}

static void message_print(struct error *err, const char *format, va_list args)
{
    int length = vsnprintf(err->message, sizeof err->message, format, args);

    assert(length >= 0);
    message_end_whole(err->message, (size_t)length, sizeof err->message);
}

static void code_set(struct error *err, enum error_code code)
{
    err->code = code;
    err->status = faces[code].rest_status;
    err->substatus = faces[code].rest_substatus;
}

bool error_set(struct error *err, enum error_code code, const char *format, ...)
{
    va_list args;

    code_set(err, code);
    va_start(args, format);
    message_print(err, format, args);
    va_end(args);
    return false;
}

bool error_prefix(struct error *err, const char *format, ...)
{
    struct error whole = *err;
    va_list args;
    size_t at;
    int length;

    va_start(args, format);
    message_print(&whole, format, args);
    va_end(args);
    at = strlen(whole.message);
    length = snprintf(whole.message + at, sizeof whole.message - at, ": %s", err->message);
    message_end_whole(whole.message, at + (size_t)length, sizeof whole.message);
    *err = whole;
    return false;
}

bool error_set_errno(struct error *err, enum error_code code, const char *format, ...)
{
    int number = errno;
    char reason[80];
    va_list args;
    size_t at;
    int length;

    code_set(err, code);
    va_start(args, format);
    message_print(err, format, args);
    va_end(args);
    at = strlen(err->message);
    length = snprintf(err->message + at, sizeof err->message - at, ": %s",
                      strerror_r(number, reason, sizeof reason));
    message_end_whole(err->message, at + (size_t)length, sizeof err->message);
    return false;
}
