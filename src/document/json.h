/* JSON text to BSON and back, in one pass each way.
 *
 * Reading is strict RFC 8259. A number without fraction or exponent is an int32 or int64 where it
 * fits and a double otherwise; -0 is the double. A double keeps every bit. Keys that begin with $
 * are keys like others: extended JSON is not read. Refused, with the byte position in the message:
 * invalid UTF-8, a NUL in a key, a number no double can hold, anything after the value
 * (ERROR_BAD_JSON); a property named twice (ERROR_DUPLICATE_PROPERTY names it); nesting and size
 * over the limits (ERROR_TOO_DEEP, ERROR_TOO_LARGE). A surrogate escaped alone is kept.
 *
 * Writing gives compact JSON: no blanks, shortest doubles, whole doubles below 1e21 without
 * fraction, int64 to the last digit. Types JSON lacks are written as the canonical extended JSON
 * of MongoDB; README.md lists them. The writer asks for up to 64 bytes more than it will use, so a
 * buffer is full that little before its maximum. */
#pragma once

#include "document/bson.h"

/* Appends to buf the BSON document of a text that is one JSON object; limits NULL: the defaults.
 * On failure buf is as it was. buf should have 96 bytes to spare in its maximum. */
NODISCARD bool document_json_read(struct slice text, const struct document_limits *limits,
                                  struct buf *buf, struct error *err);

/* The same for any JSON value. It is appended wrapped, as the only element of a document, with the
 * empty key; ret_value points into buf and is good until buf changes. A wrapping document does not
 * count as a level. */
NODISCARD bool document_json_read_value(struct slice text, const struct document_limits *limits,
                                        struct buf *buf, struct document_value *ret_value,
                                        struct error *err);

/* Append the JSON text of a valid document or value. Look at buf_overflowed afterwards. */
void document_json_write(struct slice document, struct buf *buf);
void document_json_write_value(const struct document_value *value, struct buf *buf);

/* A JSON string, quotes included, of text as documents hold it. */
void document_json_write_string(struct slice text, struct buf *buf);
