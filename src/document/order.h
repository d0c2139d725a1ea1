/* Order: which of two values comes first, and keys whose bytes sort the same way.
 *
 * There are two total orders over all values, both exact for numbers of any mix of types: 2^53 + 1
 * as an int64 is greater than 2^53 as a double, and 0.1 as a double is greater than 0.1 as a
 * decimal. In both 1, 1.0 and decimal 1.00 are equal, and so are 0 and -0; NaN equals NaN and is
 * the least number.
 *
 *   DOCUMENT_ORDER_SQL    of ORDER BY and of indexes for the SQL API: undefined, null, false, true,
 *                         numbers, strings by UTF-16 unit, arrays, objects. Objects are compared by
 *                         name, whatever order their properties are stored in. Types that JSON
 *                         lacks come after objects, in MongoDB's order.
 *   DOCUMENT_ORDER_MONGO  of MongoDB: undefined, null, numbers, strings by byte, objects in stored
 *                         order, arrays, binary, object ids, false, true, dates, timestamps,
 *                         regular expressions, pointers, code, code with scope.
 *
 * MinKey is before everything and MaxKey after, in both; symbols count as strings. A property that
 * is not there is undefined in the SQL order; MongoDB treats it as null, which is the caller's to
 * hand in. */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

enum document_order { DOCUMENT_ORDER_SQL, DOCUMENT_ORDER_MONGO };

/* Below, at or above zero. Documents inside must be valid. */
int document_compare(enum document_order order, const struct document_value *a,
                     const struct document_value *b);

/* Below, at or above zero for two strings under the order: of property names and the like. */
int document_compare_text(enum document_order order, struct slice a, struct slice b);

/* The version of the byte layout, described at the top of key.c. Whoever stores keys stores it. */
enum { DOCUMENT_KEY_VERSION = 1 };

/* Appends the key of a value: memcmp of two keys gives what document_compare gives, equal values
 * have equal keys, and no key is the beginning of another. So keys may stand one after the other in
 * a longer key. The first byte is never 00 or FF: a caller may use these as bounds. */
void document_key_append(enum document_order order, const struct document_value *value,
                         struct buf *buf);

/* The same, but at most max bytes of it. True when it was cut. Among keys cut at the same max, a
 * cut one still sorts rightly against all that differ from it, and values whose keys agree that far
 * have the same bytes. max must be at least 1. */
bool document_key_append_cut(enum document_order order, const struct document_value *value,
                             size_t max, struct buf *buf);

/* Reads the value at the start of *key and moves *key behind it. What is kept:
 *
 *   numbers   the exact value, in the first type that holds it of int32, int64, double, decimal128;
 *             the type, -0 and the trailing zeros of a decimal are lost
 *   text      all of it; a symbol comes back as a string
 *   arrays    and objects: in MongoDB's order all of what is kept of their values, in SQL order the
 *             type alone, the content having data NULL; so too where code with scope is among
 *             them, of which the type alone is kept
 *   others    as they were
 *
 * Text and bytes are in the arena. ERROR_STORE_CORRUPT: these are not the bytes of a key. */
NODISCARD bool document_key_read(enum document_order order, struct slice *key, struct arena *arena,
                                 struct document_value *ret_value, struct error *err);

/* Moves *key behind the value at its start without decoding it. */
NODISCARD bool document_key_skip(enum document_order order, struct slice *key, struct error *err);

/* The same for a value appended with document_key_append_cut and this max; says if it was cut. */
NODISCARD bool document_key_skip_cut(enum document_order order, size_t max, struct slice *key,
                                     bool *ret_cut, struct error *err);
