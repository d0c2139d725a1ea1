/* Value: one value of a document, of any BSON type, as a plain struct.
 *
 * Text, binary and nested documents are borrowed from the bytes the value was read from, or from
 * whoever made the value; nothing is copied. `undefined` is the BSON type of that name and also
 * what a property that is not there counts as in the SQL order (order.h). */
#pragma once

#include "base/slice.h"

/* The numbers are those of the BSON format. */
enum document_type {
    DOCUMENT_DOUBLE = 0x01,
    DOCUMENT_STRING = 0x02,
    DOCUMENT_OBJECT = 0x03,
    DOCUMENT_ARRAY = 0x04,
    DOCUMENT_BINARY = 0x05,
    DOCUMENT_UNDEFINED = 0x06,
    DOCUMENT_OBJECT_ID = 0x07,
    DOCUMENT_BOOL = 0x08,
    DOCUMENT_DATE = 0x09,
    DOCUMENT_NULL = 0x0A,
    DOCUMENT_REGEX = 0x0B,
    DOCUMENT_DB_POINTER = 0x0C,
    DOCUMENT_CODE = 0x0D,
    DOCUMENT_SYMBOL = 0x0E,
    DOCUMENT_CODE_WITH_SCOPE = 0x0F,
    DOCUMENT_INT32 = 0x10,
    DOCUMENT_TIMESTAMP = 0x11,
    DOCUMENT_INT64 = 0x12,
    DOCUMENT_DECIMAL128 = 0x13,
    DOCUMENT_MAX_KEY = 0x7F,
    DOCUMENT_MIN_KEY = 0xFF,
};

enum { DOCUMENT_OBJECT_ID_SIZE = 12 };

/* IEEE 754-2008, binary integer decimal, as BSON stores it. */
struct document_decimal {
    uint64_t low, high;
};

struct document_value {
    enum document_type type;
    union {
        double number;         /* double */
        int32_t int32;         /* int32 */
        int64_t int64;         /* int64; date: milliseconds since 1970 */
        uint64_t timestamp;    /* timestamp: seconds in the high half, a counter in the low */
        bool boolean;          /* bool */
        struct slice text;     /* string, symbol, code: without the final NUL, may hold others */
        struct slice document; /* object, array: the BSON bytes, length field to final NUL */
        const uint8_t *id;     /* object id: 12 bytes */
        struct document_decimal decimal;
        struct {
            struct slice bytes;
            uint8_t subtype;
        } binary;
        struct {
            struct slice pattern, options; /* neither holds a NUL */
        } regex;
        struct {
            struct slice collection;
            const uint8_t *id; /* 12 bytes */
        } pointer;
        struct {
            struct slice code, scope;
        } scoped; /* code with scope */
    };
};

static inline struct document_value document_value_of_type(enum document_type type)
{
    return (struct document_value){.type = type};
}

static inline struct document_value document_undefined(void)
{
    return document_value_of_type(DOCUMENT_UNDEFINED);
}

static inline struct document_value document_null(void)
{
    return document_value_of_type(DOCUMENT_NULL);
}

static inline struct document_value document_bool(bool boolean)
{
    return (struct document_value){.type = DOCUMENT_BOOL, .boolean = boolean};
}

static inline struct document_value document_int32(int32_t number)
{
    return (struct document_value){.type = DOCUMENT_INT32, .int32 = number};
}

static inline struct document_value document_int64(int64_t number)
{
    return (struct document_value){.type = DOCUMENT_INT64, .int64 = number};
}

static inline struct document_value document_double(double number)
{
    return (struct document_value){.type = DOCUMENT_DOUBLE, .number = number};
}

static inline struct document_value document_string(struct slice text)
{
    return (struct document_value){.type = DOCUMENT_STRING, .text = text};
}

static inline struct document_value document_date(int64_t ms)
{
    return (struct document_value){.type = DOCUMENT_DATE, .int64 = ms};
}

/* An object or array, of BSON bytes known to be valid. */
static inline struct document_value document_object(struct slice bytes)
{
    return (struct document_value){.type = DOCUMENT_OBJECT, .document = bytes};
}

static inline struct document_value document_array(struct slice bytes)
{
    return (struct document_value){.type = DOCUMENT_ARRAY, .document = bytes};
}

static inline bool document_is_number(const struct document_value *value)
{
    return value->type == DOCUMENT_DOUBLE || value->type == DOCUMENT_INT32 ||
           value->type == DOCUMENT_INT64 || value->type == DOCUMENT_DECIMAL128;
}

/* The number as an int64, if it is a whole one that fits; false otherwise, and for what is no
 * number. 3.0 and Decimal128 "3.00" are whole. */
bool document_to_int64(const struct document_value *value, int64_t *ret_number);

/* The number as the nearest double; false for what is no number. */
bool document_to_double(const struct document_value *value, double *ret_number);
