#include "front/rest/sql/error.h"

#include "document/json.h"
#include "document/utf8.h"

#include <stdarg.h>

enum { EXCERPT_MAX = 120 };

static struct slice message_print(struct arena *arena, const char *format, va_list args)
{
    CLEANUP(memory_free) char *text = NULL;
    int length = vasprintf(&text, format, args);

    assert(length >= 0);
    return arena_copy(arena, slice_of(text, (size_t)length));
}

static bool report(const struct sql_report *report, enum error_code face, struct sql_error error)
{
    if (report->error)
        *report->error = error;
    return error_set(report->err, face, "%.*s", SLICE_ARG(error.message));
}

bool sql_report_at(const struct sql_report *to, const char *code, struct sql_span span,
                   const char *format, ...)
{
    struct sql_error error = {.code = code, .located = true, .span = span};
    va_list args;

    va_start(args, format);
    error.message = message_print(to->arena, format, args);
    va_end(args);
    return report(to, ERROR_BAD_QUERY, error);
}

bool sql_report_code(const struct sql_report *to, const char *code, const char *format, ...)
{
    struct sql_error error = {.code = code};
    va_list args;

    va_start(args, format);
    error.message = message_print(to->arena, format, args);
    va_end(args);
    return report(to, ERROR_BAD_QUERY, error);
}

bool sql_report_whole(const struct sql_report *to, enum error_code face, const char *format, ...)
{
    struct sql_error error = {.code = ""};
    va_list args;

    va_start(args, format);
    error.message = message_print(to->arena, format, args);
    va_end(args);
    return report(to, face, error);
}

bool sql_report_unsupported(const struct sql_report *to, struct sql_span span, const char *format,
                            ...)
{
    struct sql_error error = {.code = "", .located = true, .span = span};
    va_list args;

    va_start(args, format);
    error.message = message_print(to->arena, format, args);
    va_end(args);
    return report(to, ERROR_QUERY_NOT_SUPPORTED, error);
}

struct slice sql_excerpt(struct slice text)
{
    size_t length = EXCERPT_MAX;

    if (text.len <= EXCERPT_MAX)
        return text;
    while (length > 0 && utf8_continues(text.data[length]))
        length--;
    return slice_first(text, length);
}

void sql_error_render(const struct sql_error *error, struct buf *buf)
{
    if (!error->located && !error->code[0]) {
        BUF_APPEND(buf, "Message: {\"Errors\":[");
        document_json_write_string(error->message, buf);
        BUF_APPEND(buf, "]}");
        return;
    }
    BUF_APPEND(buf, "Message: {\"errors\":[{\"severity\":\"Error\"");
    if (error->located)
        buf_printf(buf, ",\"location\":{\"start\":%u,\"end\":%u}", error->span.start,
                   error->span.end);
    if (error->code[0])
        buf_printf(buf, error->code[0] == 'S' ? ",\"code\":\"%s\"" : ",\"code\":%s", error->code);
    BUF_APPEND(buf, ",\"message\":");
    document_json_write_string(error->message, buf);
    BUF_APPEND(buf, "}]}");
}
