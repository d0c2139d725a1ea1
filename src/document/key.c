/* Keys, version 1. A value is its rank in the order, one byte in hexadecimal:
 *
 *   SQL        04 MinKey     08 undefined  0C null    10 bool      14 number  18 string, symbol
 *              1C array      20 object     24 binary  28 object id 2C date    30 timestamp
 *              34 regex      38 pointer    3C code    40 code with scope      F0 MaxKey
 *   MongoDB    the same but  1C object     20 array   2A bool
 *
 * and then
 *
 *   undefined, null, MinKey, MaxKey     nothing
 *   bool                                00 or 01
 *   number                              see below
 *   string, symbol, code                text, 00
 *   array                               the elements, each a value; 00
 *   object, SQL                         01, name as text, 00, value, for each property by name; 00
 *   object, MongoDB                     rank, name, 00, value without its rank, for each; 00
 *   binary                              length in 4 bytes, subtype, bytes
 *   object id                           its 12 bytes
 *   date                                milliseconds as 8 bytes, top bit flipped
 *   timestamp                           8 bytes
 *   regex                               pattern as text, 00, options as text, 00
 *   pointer                             collection as text, 00, 12 bytes
 *   code with scope                     code as text, 00, scope as an object without rank
 *
 * All integers big-endian. Text has 00 written as 01 01 and 01 as 01 02, so that 00 can end it and
 * still sort before everything; under the SQL order characters above U+FFFF are written as two
 * surrogates of three bytes (order_private.h).
 *
 * A number is its floor (number.h: a 64-bit integer): the top 8 bits, then groups of 7 bits, each
 * in the upper part of a byte whose lowest bit says that more follows. Groups that are all zero at
 * the end are left out, except the first. A small whole number so takes 3 bytes with its rank. A
 * number that is not its floor has all eight groups, the last with the "more" bit too, and then
 *
 *     point + 16384 in 2 bytes, the decimal digits by two, plus one: 01..64 (a last single digit
 *     with a zero), 00; for a negative number all of these bytes complemented
 *
 * It sorts after its floor, whose last byte has the bit clear, and before the next double, which
 * has a larger group somewhere before.
 *
 * Every part ends by itself, so no key is a prefix of another. That makes cutting simple: the first
 * max bytes of a key differ from any whole key of at most max bytes, where the two values differ.
 * Nothing marks a cut: a key that has not ended after max bytes was cut. */
#include "document/order.h"

#include "base/bytes.h"
#include "document/number.h"
#include "document/order_private.h"
#include "document/scan.h"

enum { NUMBER_BYTES_MAX = 1 + KEY_NUMBER_GROUPS + 2 + DECIMAL_DIGITS_MAX / 2 + 4 };

/* Writes until stop and, at most, a few bytes over it. */
struct key_writer {
    enum document_order order;
    struct buf *buf;
    size_t stop; /* a length of buf */
};

static void put_value(struct key_writer *w, const struct document_value *value);
static void put_content(struct key_writer *w, const struct document_value *value);

void document_key_append(enum document_order order, const struct document_value *value,
                         struct buf *buf)
{
    put_value(&(struct key_writer){order, buf, SIZE_MAX}, value);
}

bool document_key_append_cut(enum document_order order, const struct document_value *value,
                             size_t max, struct buf *buf)
{
    size_t begin = buf->len;

    assert(max > 0);
    put_value(&(struct key_writer){order, buf, begin + max + 1}, value);
    if (buf->len - begin <= max)
        return false;
    buf->len = begin + max;
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

static inline bool stopped(const struct key_writer *w)
{
    return w->buf->len >= w->stop;
}

/* How many bytes at `at` go into a key as they are. */
static size_t plain_length(enum document_order order, const uint8_t *at, const uint8_t *end)
{
    const uint8_t *begin = at;
    const uint8_t high = order == DOCUMENT_ORDER_SQL ? 0xF0 : 0xFF;

    for (; end - at >= 8; at += 8) {
        uint64_t word = scan_load(at);

        if (scan_zeros(word & SCAN_ONES * 0xFE) || scan_zeros(~word & SCAN_ONES * 0xF0))
            break;
    }
    while (at<end && * at> 1 && *at < high)
        at++;
    return (size_t)(at - begin);
}

static void put_text(struct key_writer *w, struct slice text)
{
    const uint8_t *at = text.data, *end = text.len ? text.data + text.len : at;

    while (at < end && !stopped(w)) {
        size_t plain = plain_length(w->order, at, end);
        uint8_t six[6];

        buf_append(w->buf, at, MIN(plain, w->stop - w->buf->len));
        at += plain;
        if (at == end)
            break;
        if (*at <= 1) {
            buf_append_byte(w->buf, 1);
            buf_append_byte(w->buf, (uint8_t)(*at++ + 1));
        } else if (w->order == DOCUMENT_ORDER_SQL && order_surrogates(at, end, six)) {
            buf_append(w->buf, six, sizeof six);
            at += 4;
        } else {
            buf_append_byte(w->buf, *at++);
        }
    }
    buf_append_byte(w->buf, 0);
}

/* The digits of a number that is not its floor. */
static size_t digits_to_bytes(const struct number_place *place, uint8_t *to)
{
    size_t len = 2;

    bytes_put_be16(to, (uint16_t)(place->point + KEY_POINT_BIAS));
    for (size_t i = 0; i < place->digit_count; i += 2) {
        int tens = place->digits[i] - '0';
        int ones = i + 1 < place->digit_count ? place->digits[i + 1] - '0' : 0;

        to[len++] = (uint8_t)(tens * 10 + ones + 1);
    }
    to[len++] = 0;
    for (size_t i = 0; place->negative && i < len; i++)
        to[i] = (uint8_t)~to[i];
    return len;
}

static void put_number(struct key_writer *w, const struct document_value *value)
{
    struct number_place place;
    uint8_t bytes[NUMBER_BYTES_MAX];
    size_t len = 1;
    uint64_t rest;

    number_place(value, &place);
    bytes[0] = (uint8_t)(place.floor >> 56);
    rest = place.floor << 8;
    do {
        uint8_t group = (uint8_t)(rest >> 57);

        rest <<= 7;
        bytes[len++] = (uint8_t)(group << 1 | (rest || !place.exact));
    } while (rest || (!place.exact && len <= KEY_NUMBER_GROUPS));
    if (!place.exact)
        len += digits_to_bytes(&place, bytes + len);
    buf_append(w->buf, bytes, len);
}

static void put_array(struct key_writer *w, struct slice document)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (!stopped(w) && document_iter_next(&iter))
        put_value(w, &iter.value);
    buf_append_byte(w->buf, 0);
}

static void put_object_by_name(struct key_writer *w, struct slice document)
{
    CLEANUP(order_object_done) struct order_object object;

    order_object_init(&object, document);
    for (size_t i = 0; i < object.count && !stopped(w); i++) {
        buf_append_byte(w->buf, 1);
        put_text(w, object.properties[i].key);
        put_value(w, &object.properties[i].value);
    }
    buf_append_byte(w->buf, 0);
}

static void put_object_stored(struct key_writer *w, struct slice document)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (!stopped(w) && document_iter_next(&iter)) {
        buf_append_byte(w->buf, order_rank(w->order, iter.value.type));
        put_text(w, iter.key);
        put_content(w, &iter.value);
    }
    buf_append_byte(w->buf, 0);
}

static void put_object(struct key_writer *w, struct slice document)
{
    if (w->order == DOCUMENT_ORDER_SQL)
        put_object_by_name(w, document);
    else
        put_object_stored(w, document);
}

static void put_value(struct key_writer *w, const struct document_value *value)
{
    buf_append_byte(w->buf, order_rank(w->order, value->type));
    put_content(w, value);
}

static void put_content(struct key_writer *w, const struct document_value *value)
{
    switch (value->type) {
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        put_number(w, value);
        break;
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        put_text(w, value->text);
        break;
    case DOCUMENT_BOOL:
        buf_append_byte(w->buf, value->boolean);
        break;
    case DOCUMENT_ARRAY:
        put_array(w, value->document);
        break;
    case DOCUMENT_OBJECT:
        put_object(w, value->document);
        break;
    case DOCUMENT_BINARY:
        buf_append_be32(w->buf, (uint32_t)value->binary.bytes.len);
        buf_append_byte(w->buf, value->binary.subtype);
        if (!stopped(w))
            buf_append(w->buf, value->binary.bytes.data,
                       MIN(value->binary.bytes.len, w->stop - w->buf->len));
        break;
    case DOCUMENT_OBJECT_ID:
        buf_append(w->buf, value->id, DOCUMENT_OBJECT_ID_SIZE);
        break;
    case DOCUMENT_DATE:
        buf_append_be64(w->buf, (uint64_t)value->int64 ^ (uint64_t)1 << 63);
        break;
    case DOCUMENT_TIMESTAMP:
        buf_append_be64(w->buf, value->timestamp);
        break;
    case DOCUMENT_REGEX:
        put_text(w, value->regex.pattern);
        put_text(w, value->regex.options);
        break;
    case DOCUMENT_DB_POINTER:
        put_text(w, value->pointer.collection);
        buf_append(w->buf, value->pointer.id, DOCUMENT_OBJECT_ID_SIZE);
        break;
    case DOCUMENT_CODE_WITH_SCOPE:
        put_text(w, value->scoped.code);
        put_object(w, value->scoped.scope);
        break;
    case DOCUMENT_UNDEFINED:
    case DOCUMENT_NULL:
    case DOCUMENT_MIN_KEY:
    case DOCUMENT_MAX_KEY:
        break;
    }
}
