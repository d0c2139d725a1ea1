/* Errors of the MongoDB API: a code, its name and a text that applications match on.
 *
 * Most errors of the rooms below have a face in MongoDB (base/errors.def). What this API alone can
 * find fault with is ERROR_MONGO, with MongoDB's code in the substatus:
 *
 *     return mongo_error_set(err, MONGO_BAD_VALUE, "unknown operator: %.*s", SLICE_ARG(name));
 *
 * These texts are MongoDB's own, in its own spelling. */
#pragma once

#include "base/error.h"

enum mongo_code {
#define MONGO_CODE(name, code, ...) MONGO_##name = code,
#include "front/mongo/codes.def"
#undef MONGO_CODE
};

/* Fills err and returns false. code is a row of codes.def or any number of MongoDB's. */
bool mongo_error_set(struct error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* What a client is told, whichever room the error is from. */
int mongo_error_code(const struct error *err);

enum { MONGO_CODE_NAME_SIZE = 48 };
/* The codeName; static, or in text. */
const char *mongo_error_name(const struct error *err, char text[MONGO_CODE_NAME_SIZE]);
