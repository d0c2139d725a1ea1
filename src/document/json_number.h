/* Numbers as JSON text, both ways. json.h says which type a number gets and how it prints. */
#pragma once

#include "document/value.h"

/* An int32, an int64 or a double. */
struct json_number {
    enum document_type type;
    union {
        int64_t integer;
        double real;
        uint64_t bits; /* of either, as BSON has them */
    };
};

/* Where the text stops being a number, and what was expected there. */
struct json_fault {
    const uint8_t *at;
    const char *what;
};

/* Reads the number that begins at in, before end, as an int32, int64 or double. Gives what follows
 * it; NULL with ret_fault filled if it is none or no double can hold it. */
const uint8_t *json_number_read(const uint8_t *in, const uint8_t *end,
                                struct json_number *ret_number, struct json_fault *ret_fault);

enum { JSON_NUMBER_MAX = 40 }; /* bytes that no number exceeds */

/* Write at out, where there is room for JSON_NUMBER_MAX bytes, and give the end of what they wrote.
 * A double must be finite. */
uint8_t *json_number_write_unsigned(uint8_t *out, uint64_t number);
uint8_t *json_number_write_integer(uint8_t *out, int64_t number);
uint8_t *json_number_write_double(uint8_t *out, double number);
