/* Error: what went wrong, in words for a person and codes for each API.
 *
 * Functions that can fail return bool and take `struct error *err` last. Where the fault is seen:
 *
 *     return error_set(err, ERROR_TOO_LARGE, "body of %zu bytes is over the limit of %zu", n, max);
 *
 * Callers pass it up; only server/ logs it, once. Messages are lower case, without a full stop,
 * with the kind and the quoted name: container "orders" has no partition key. */
#pragma once

#include "base/attrs.h"

enum error_code {
    ERROR_NONE,
#define ERROR_ROW(code, ...) ERROR_##code,
#include "base/errors.def"
#undef ERROR_ROW
    ERROR_CODE_COUNT
};

/* Room for two names of 255 bytes and what is said of them. */
enum { ERROR_MESSAGE_SIZE = 720 };

struct error {
    enum error_code code;
    uint16_t status;    /* of the REST API */
    uint32_t substatus; /* 0: none */
    /* NUL-terminated, valid UTF-8 if its arguments were; cut when longer */
    char message[ERROR_MESSAGE_SIZE];
};

/* One row of errors.def. */
struct error_face {
    const char *name; /* "TOO_LARGE" */
    uint16_t rest_status;
    uint32_t rest_substatus;
    int32_t mongo_code;
    const char *mongo_name;
    uint16_t gremlin_status;
    const char *table_code;
    const char *meaning;
};

/* Fills err and returns false, so that it can stand in a return statement. */
bool error_set(struct error *err, enum error_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts context before the message already there: "opening node "a": ...". Returns false. */
bool error_prefix(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* A system call failed: the message ends in the text of errno as it is now. Returns false. */
bool error_set_errno(struct error *err, enum error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

const struct error_face *error_face(enum error_code code);
