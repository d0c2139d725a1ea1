/* Codes: what MongoDB calls its errors.
 *
 * Most errors have their code from base/errors.def. What only MongoDB's clients look at is set
 * here: the error has the code ERROR_MONGO, and its substatus is MongoDB's code.
 *
 *     return mongo_fail(err, MONGO_TYPE_MISMATCH, "BSON field '%s' is the wrong type", name);
 */
#pragma once

#include "base/error.h"

enum mongo_code {
#define MONGO_CODE(constant, code, name) MONGO_##constant = code,
#include "front/mongo/codes.def"
#undef MONGO_CODE
};

/* Fills err and returns false. code: any, also one that codes.def does not list. */
bool mongo_fail(struct error *err, int32_t code, const char *format, ...) PRINTF_LIKE(3, 4);

/* MongoDB's code of an error, and the name of a code: "Location40324" where it has none. */
int32_t mongo_code(const struct error *err);

enum { MONGO_CODE_NAME_SIZE = 24 };
const char *mongo_code_name(int32_t code, char text[MONGO_CODE_NAME_SIZE]);
