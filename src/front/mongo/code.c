#include "front/mongo/code.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    int32_t code;
    const char *name;
} codes[] = {
#define MONGO_CODE(constant, code, name) {code, name},
#include "front/mongo/codes.def"
#undef MONGO_CODE
};

bool mongo_fail(struct error *err, int32_t code, const char *format, ...)
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

int32_t mongo_code(const struct error *err)
{
    return err->code == ERROR_MONGO ? (int32_t)err->substatus : error_face(err->code)->mongo_code;
}

const char *mongo_code_name(int32_t code, char text[MONGO_CODE_NAME_SIZE])
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i].code == code)
            return codes[i].name;
    snprintf(text, MONGO_CODE_NAME_SIZE, "Location%d", code);
    return text;
}
