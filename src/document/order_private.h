/* What comparison and key encoding share, so that they cannot disagree: ranks of types, the
 * sorted view of an object, strings as UTF-16 would order them. */
#pragma once

#include "document/order.h"
#include "document/utf8.h"

/* The place of a type in an order; also the first byte of its keys. Never 00 or FF. */
uint8_t order_rank(enum document_order order, enum document_type type);

/* Of numbers in keys; key.c tells their layout. */
enum { KEY_NUMBER_GROUPS = 8, KEY_POINT_BIAS = 16384 };

enum { KEY_RANK_TEXT = 0x18 }; /* of strings and symbols, in both orders */

/* The type whose rank this is: DOCUMENT_DOUBLE for all numbers, DOCUMENT_STRING for symbols too. */
bool order_type(enum document_order order, uint8_t rank, enum document_type *ret_type);

struct order_property {
    struct slice key;
    struct document_value value;
};

enum { ORDER_PROPERTIES_INLINE = 12 };

/* An object's properties by name; of equal names the first stored comes first. */
struct order_object {
    size_t count;
    struct order_property *properties; /* few, or on the heap */
    struct order_property few[ORDER_PROPERTIES_INLINE];
};

void order_object_init(struct order_object *object, struct slice document);
void order_object_done(struct order_object *object);
CLEANUP_VALUE_FN(struct order_object, order_object_done)

/* UTF-8 sorts by code point, UTF-16 by unit: characters above U+FFFF, being surrogate pairs there,
 * come before U+E000. Writing such a character as its two surrogates of three bytes each, and all
 * else as it is, gives bytes that sort like UTF-16. If a well-formed four-byte character begins at
 * `at`, its six bytes are written and true is returned. */
bool order_surrogates(const uint8_t *at, const uint8_t *end, uint8_t six[6]);
