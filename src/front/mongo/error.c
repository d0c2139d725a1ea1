#include "front/mongo/error.h"

#include <stdarg.h>
#include <stdio.h>

bool mongo_error_set(struct error *err, int code, const char *format, ...)
{
    char message[ERROR_MESSAGE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    error_set(err, ERROR_MONGO, "%s", message);
    err->substatus = (uint32_t)code;
    return false;
}

int mongo_error_code(const struct error *err)
{
    return err->code == ERROR_MONGO ? (int)err->substatus : error_face(err->code)->mongo_code;
}

const char *mongo_error_name(const struct error *err, char text[MONGO_CODE_NAME_SIZE])
{
    if (err->code != ERROR_MONGO)
        return error_face(err->code)->mongo_name;
    switch ((int)err->substatus) {
#define MONGO_CODE(name, code, text)                                                               \
    case code:                                                                                     \
        return text;
#include "front/mongo/codes.def"
#undef MONGO_CODE
    default:
        snprintf(text, MONGO_CODE_NAME_SIZE, "Location%u", err->substatus);
        return text;
    }
}
