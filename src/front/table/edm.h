/* Edm: the types of the Table API, how they are written and how items keep them.
 *
 *     Edm.String    string          Edm.Binary    binary, subtype 0
 *     Edm.Boolean   bool            Edm.Guid      binary, subtype 4: the 16 bytes as written
 *     Edm.Int32     int32           Edm.DateTime  date, whole milliseconds; what is below them, 0
 *     Edm.Int64     int64                         to 9999 units of 100 ns, stands beside the item's
 *     Edm.Double    double                        properties in the object "$ticks", by name
 *
 * A moment is a number of ticks: 100 ns since 1970 (query/function/date.h). */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"

enum edm_type {
    EDM_UNKNOWN, /* not said */
    EDM_STRING,
    EDM_BOOLEAN,
    EDM_INT32,
    EDM_INT64,
    EDM_DOUBLE,
    EDM_DATETIME,
    EDM_GUID,
    EDM_BINARY,
};

enum { EDM_GUID_BYTES = 16, EDM_GUID_SUBTYPE = 4, EDM_TICKS_PER_MS = 10000 };

/* "Edm.Int64", and back; EDM_UNKNOWN: there is no such type. */
const char *edm_type_name(enum edm_type type);
enum edm_type edm_type_named(struct slice name);

static inline int64_t edm_ticks_of_ms(int64_t ms)
{
    return ms * EDM_TICKS_PER_MS;
}

/* A value of a type, as items keep it. */
struct edm_value {
    struct document_value value;
    int32_t below_ms; /* of a date: ticks below its millisecond */
};

/* Converts what JSON gave: an annotation says EDM_UNKNOWN or a type. Bytes are in the arena.
 * ERROR_TABLE_VALUE: it is not of the type, which null is of none; ERROR_TABLE_OUT_OF_RANGE. Null
 * without a type is undefined. */
NODISCARD bool edm_value_read(const struct document_value *json, enum edm_type type,
                              struct arena *arena, struct edm_value *ret_value, struct error *err);

/* Reads 2024-01-02, 2024-01-02T03:04Z, 2024-01-02T03:04:05.1234567+01:00 and their like. */
NODISCARD bool edm_date_parse(struct slice text, int64_t *ret_ticks);

/* A moment before which and from which on there are no dates in tables. */
extern const int64_t edm_date_min, edm_date_max;

/* The date of a moment and what is below its millisecond. */
struct edm_value edm_date(int64_t ticks);

/* 2024-01-02T03:04:05.1234567Z, always with 7 digits, without a NUL. */
enum { EDM_DATE_LEN = 28 };
void edm_date_write_full(int64_t ticks, char ret_text[EDM_DATE_LEN]);

/* Appends it with as many digits as it needs: 2024-01-02T03:04:05Z. */
void edm_date_append(int64_t ticks, struct buf *out);

NODISCARD bool edm_guid_parse(struct slice text, uint8_t ret_bytes[EDM_GUID_BYTES]);
void edm_guid_append(const uint8_t bytes[EDM_GUID_BYTES], struct buf *out);

/* Appends the JSON of a stored value of any type; below_ms: of a date. Returns the type the client
 * has to be told for it, or EDM_UNKNOWN where JSON says it; full: doubles are told too. */
enum edm_type edm_value_append(const struct document_value *value, int32_t below_ms, bool full,
                               struct buf *out);

/* Two hexadecimal digits to a byte, in the arena. False: it is not such a text. */
NODISCARD bool edm_hex_parse(struct slice text, struct arena *arena, struct slice *ret_bytes);
