/* What is hashed, of each value in turn:
 *
 *     undefined 00 · null 01 · false 02 · true 03
 *     number    05, the double nearest to it in 8 bytes, little-endian
 *     string    08, UTF-8, then FF (version 2) or 00 (version 1)
 *     symbol    as a string
 *     others    20, the BSON type, content, FF (version 1 of these, ours):
 *               date, timestamp: 8 bytes little-endian · object id: its 12 · binary: subtype, bytes
 *               code: text · regex: pattern, 00, options · pointer: collection, 00, 12 bytes
 *               MinKey, MaxKey: nothing
 *
 * Version 2 is MurmurHash3 x64_128 of all of it, the 16 bytes of the result in reverse, the top two
 * bits clear. MultiHash is that of each value, one after the other. Version 1 is MurmurHash3 x86_32
 * of all of it, written as a number, and then the values themselves, in an order-preserving form
 * (put_value_v1) that follows the same list; of the other types only 20 and the type, for the
 * stored key has the value behind its routing key anyway.
 *
 * Equal values have equal EPKs, as document/order.h has it, except 0 and -0. The input is built at
 * the end of the output buffer, hashed and taken back, so that routing a request allocates nothing
 * of its own. */
#include "partition/epk.h"

#include "base/bytes.h"
#include "document/utf8.h"
#include "partition/murmur.h"

#include <math.h>

enum tag {
    TAG_UNDEFINED = 0x00,
    TAG_NULL = 0x01,
    TAG_FALSE = 0x02,
    TAG_TRUE = 0x03,
    TAG_NUMBER = 0x05,
    TAG_STRING = 0x08,
    TAG_OTHER = 0x20,
};

enum {
    V1_CHARACTERS_MAX = 100,       /* of a string, as UTF-16 units: what .NET and JavaScript cut */
    V1_BYTES_MAX = 101,            /* of a string in the EPK */
    TOP_BYTE_MASK = 0x3F,          /* of version 2 */
    SPLIT_POINTS_MAX = 1 << 24,    /* far above any number of partitions, exact in all arithmetic */
    OTHER_END = 0xFF,              /* so that contents in a row are not taken for one another */
    STRING_END_V1 = 0x00,          /* of what is hashed */
    STRING_END_V2 = 0xFF,          /* likewise */
    NUMBER_GROUP_MORE = 0x01,      /* another group of 7 bits follows */
    NUMBER_GROUPS_SHIFT = 64 - 7,  /* the topmost 7 bits of what is left */
    REPLACEMENT_CHARACTER = 0xFFFD /* for half a character */
};

static enum tag tag_of(const struct document_value *value);
static void put_hashed(bool v1, const struct document_value *value, struct buf *buf);
static void put_hash_v2(struct buf *buf, size_t mark);
static void put_v1(const struct document_value *values, size_t count, struct buf *buf);

void partition_epk_append(enum partition_kind kind, const struct document_value *values,
                          size_t count, struct buf *buf)
{
    size_t mark = buf->len;

    switch (kind) {
    case PARTITION_HASH_V1:
        put_v1(values, count, buf);
        return;
    case PARTITION_HASH_V2:
        for (size_t i = 0; i < count; i++)
            put_hashed(false, &values[i], buf);
        put_hash_v2(buf, mark);
        return;
    case PARTITION_MULTI_HASH:
        for (size_t i = 0; i < count; i++) {
            mark = buf->len;
            put_hashed(false, &values[i], buf);
            put_hash_v2(buf, mark);
        }
        return;
    }
    assert(!"a kind of partition key that does not exist");
}

static enum tag tag_of(const struct document_value *value)
{
    switch (value->type) {
    case DOCUMENT_UNDEFINED:
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
    case DOCUMENT_CODE_WITH_SCOPE:
        return TAG_UNDEFINED;
    case DOCUMENT_NULL:
        return TAG_NULL;
    case DOCUMENT_BOOL:
        return value->boolean ? TAG_TRUE : TAG_FALSE;
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
        return TAG_STRING;
    default:
        return document_is_number(value) ? TAG_NUMBER : TAG_OTHER;
    }
}

/* The bits of the nearest double. There are many NaNs, which count as one. */
static uint64_t number_bits(const struct document_value *value)
{
    double number = 0;
    uint64_t bits;

    if (!document_to_double(value, &number))
        assert(!"only numbers come here");
    if (isnan(number))
        return 0x7FF8000000000000;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* --- What is hashed -------------------------------------------------------------------------- */

/* The first 100 characters, as clients count them. A character above U+FFFF counts as two; one that
 * the cut would halve becomes what their UTF-8 encoders make of a half. */
static struct slice cut_v1(struct slice text, bool *ret_halved)
{
    const uint8_t *at = text.data, *end;
    size_t units = 0;

    *ret_halved = false;
    if (text.len <= V1_CHARACTERS_MAX)
        return text;
    end = text.data + text.len;
    while (at < end && units < V1_CHARACTERS_MAX) {
        size_t length = utf8_length(at, end);

        if (length == 4 && units == V1_CHARACTERS_MAX - 1) {
            *ret_halved = true;
            break;
        }
        units += length == 4 ? 2 : 1;
        at += length ? length : 1; /* what is no UTF-8 counts by the byte */
    }
    return slice_of(text.data, (size_t)(at - text.data));
}

static void put_text_cut_v1(struct slice text, struct buf *buf)
{
    uint8_t replacement[4];
    bool halved;

    buf_append_slice(buf, cut_v1(text, &halved));
    if (halved)
        buf_append(buf, replacement, utf8_encode(REPLACEMENT_CHARACTER, replacement));
}

static void put_other(const struct document_value *value, struct buf *buf)
{
    buf_append_byte(buf, (uint8_t)value->type);
    switch (value->type) {
    case DOCUMENT_DATE:
        buf_append_le64(buf, (uint64_t)value->int64);
        break;
    case DOCUMENT_TIMESTAMP:
        buf_append_le64(buf, value->timestamp);
        break;
    case DOCUMENT_OBJECT_ID:
        buf_append(buf, value->id, DOCUMENT_OBJECT_ID_SIZE);
        break;
    case DOCUMENT_BINARY:
        buf_append_byte(buf, value->binary.subtype);
        buf_append_slice(buf, value->binary.bytes);
        break;
    case DOCUMENT_CODE:
        buf_append_slice(buf, value->text);
        break;
    case DOCUMENT_REGEX:
        buf_append_slice(buf, value->regex.pattern);
        buf_append_byte(buf, 0);
        buf_append_slice(buf, value->regex.options);
        break;
    case DOCUMENT_DB_POINTER:
        buf_append_slice(buf, value->pointer.collection);
        buf_append_byte(buf, 0);
        buf_append(buf, value->pointer.id, DOCUMENT_OBJECT_ID_SIZE);
        break;
    default:
        break; /* MinKey, MaxKey */
    }
    buf_append_byte(buf, OTHER_END);
}

static void put_hashed(bool v1, const struct document_value *value, struct buf *buf)
{
    enum tag tag = tag_of(value);

    buf_append_byte(buf, (uint8_t)tag);
    if (tag == TAG_NUMBER) {
        buf_append_le64(buf, number_bits(value));
    } else if (tag == TAG_STRING && v1) {
        put_text_cut_v1(value->text, buf);
        buf_append_byte(buf, STRING_END_V1);
    } else if (tag == TAG_STRING) {
        buf_append_slice(buf, value->text);
        buf_append_byte(buf, STRING_END_V2);
    } else if (tag == TAG_OTHER) {
        put_other(value, buf);
    }
}

/* --- Version 2 ------------------------------------------------------------------------------- */

static void put_be128(unsigned __int128 number, uint8_t to[PARTITION_EPK_LEVEL_SIZE])
{
    bytes_put_be64(to, (uint64_t)(number >> 64));
    bytes_put_be64(to + 8, (uint64_t)number);
}

/* Replaces what follows mark by its hash. */
static void put_hash_v2(struct buf *buf, size_t mark)
{
    struct murmur_128 hash = murmur_128(slice_skip(buf_slice(buf), mark), 0);
    uint8_t epk[PARTITION_EPK_LEVEL_SIZE];

    put_be128((unsigned __int128)hash.high << 64 | hash.low, epk);
    epk[0] &= TOP_BYTE_MASK;
    buf->len = mark;
    buf_append(buf, epk, sizeof epk);
}

/* --- Version 1 ------------------------------------------------------------------------------- */

/* Bytes that sort as numbers do: the sign turned, negative numbers complemented, then the top 8
 * bits and groups of 7, each with a mark that more follow, without the zeros at the end. */
static void put_number_v1(uint64_t bits, struct buf *buf)
{
    uint64_t rest = bits >> 63 ? -bits : bits ^ (uint64_t)1 << 63;

    buf_append_byte(buf, TAG_NUMBER);
    buf_append_byte(buf, (uint8_t)(rest >> 56));
    rest <<= 8;
    do {
        uint8_t group = (uint8_t)(rest >> NUMBER_GROUPS_SHIFT << 1);

        rest <<= 7;
        buf_append_byte(buf, rest ? group | NUMBER_GROUP_MORE : group);
    } while (rest);
}

/* Each byte plus one, so that 00 can end it; of more than 100 bytes just 101, and no end. */
static void put_string_v1(struct slice text, struct buf *buf)
{
    size_t begin = buf->len;

    put_text_cut_v1(text, buf);
    buf->len = MIN(buf->len, begin + V1_BYTES_MAX);
    for (size_t at = begin; at < buf->len; at++)
        buf->data[at] += buf->data[at] < 0xFF;
    if (buf->len - begin < V1_BYTES_MAX)
        buf_append_byte(buf, 0);
}

static void put_value_v1(const struct document_value *value, struct buf *buf)
{
    enum tag tag = tag_of(value);

    if (tag == TAG_NUMBER) {
        put_number_v1(number_bits(value), buf); /* writes its own tag */
        return;
    }
    buf_append_byte(buf, (uint8_t)tag);
    if (tag == TAG_STRING)
        put_string_v1(value->text, buf);
    else if (tag == TAG_OTHER)
        buf_append_byte(buf, (uint8_t)value->type);
}

static void put_uint32_v1(uint32_t number, struct buf *buf)
{
    struct document_value value = document_double(number);

    put_number_v1(number_bits(&value), buf);
}

static void put_v1(const struct document_value *values, size_t count, struct buf *buf)
{
    size_t mark = buf->len;
    uint32_t hash;

    for (size_t i = 0; i < count; i++)
        put_hashed(true, &values[i], buf);
    hash = murmur_32(slice_skip(buf_slice(buf), mark), 0);
    buf->len = mark;
    put_uint32_v1(hash, buf);
    for (size_t i = 0; i < count; i++)
        put_value_v1(&values[i], buf);
}

/* --- Reading --------------------------------------------------------------------------------- */

/* The length of the number whose tag is at `at`; 0 when it does not end. */
static size_t number_length_v1(struct slice bytes, size_t at)
{
    for (size_t end = at + 2; end < bytes.len; end++) {
        if (!(bytes.data[end] & NUMBER_GROUP_MORE))
            return end + 1 - at;
    }
    return 0;
}

static size_t string_length_v1(struct slice bytes, size_t at)
{
    for (size_t end = at + 1; end < bytes.len; end++) {
        if (bytes.data[end] == 0 || end == at + V1_BYTES_MAX)
            return end + 1 - at;
    }
    return 0;
}

static size_t value_length_v1(struct slice bytes, size_t at)
{
    if (at >= bytes.len)
        return 0;
    switch (bytes.data[at]) {
    case TAG_UNDEFINED:
    case TAG_NULL:
    case TAG_FALSE:
    case TAG_TRUE:
        return 1;
    case TAG_NUMBER:
        return number_length_v1(bytes, at);
    case TAG_STRING:
        return string_length_v1(bytes, at);
    case TAG_OTHER:
        return bytes.len - at >= 2 ? 2 : 0;
    default:
        return 0;
    }
}

bool partition_epk_skip(enum partition_kind kind, size_t levels, struct slice *bytes,
                        struct error *err)
{
    size_t hash = 0, value = 0, len = 0;

    switch (kind) {
    case PARTITION_HASH_V1:
        hash = bytes->len && bytes->data[0] == TAG_NUMBER ? number_length_v1(*bytes, 0) : 0;
        value = hash ? value_length_v1(*bytes, hash) : 0;
        len = value ? hash + value : 0;
        break;
    case PARTITION_HASH_V2:
        len = PARTITION_EPK_LEVEL_SIZE;
        break;
    case PARTITION_MULTI_HASH:
        len = levels * PARTITION_EPK_LEVEL_SIZE;
        break;
    }
    if (len == 0 || len > bytes->len)
        return error_set(err, ERROR_STORE_CORRUPT, "routing key ends before its time");
    *bytes = slice_skip(*bytes, len);
    return true;
}

static struct slice without_zeros(struct slice epk)
{
    while (epk.len && epk.data[epk.len - 1] == 0)
        epk.len--;
    return epk;
}

int partition_epk_compare(enum partition_kind kind, struct slice a, struct slice b)
{
    if (kind == PARTITION_HASH_V1)
        return slice_compare(without_zeros(a), without_zeros(b));
    return slice_compare(a, b);
}

/* --- Hex ------------------------------------------------------------------------------------- */

void partition_epk_hex(struct slice epk, struct buf *buf)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < epk.len; i++) {
        buf_append_byte(buf, (uint8_t)digits[epk.data[i] >> 4]);
        buf_append_byte(buf, (uint8_t)digits[epk.data[i] & 0xF]);
    }
}

static int digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool partition_epk_from_hex(struct slice hex, struct arena *arena, struct slice *ret_epk,
                            struct error *err)
{
    uint8_t *bytes;

    if (hex.len % 2)
        return error_set(err, ERROR_BAD_REQUEST,
                         "effective partition key has an odd number of hex digits");
    if (hex.len / 2 > PARTITION_ROUTING_KEY_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "effective partition key of %zu bytes is over the limit of %d",
                         hex.len / 2, PARTITION_ROUTING_KEY_MAX);
    bytes = arena_alloc(arena, hex.len / 2 + 1);
    for (size_t i = 0; i < hex.len; i += 2) {
        int high = digit_value(hex.data[i]), low = digit_value(hex.data[i + 1]);

        if (high < 0 || low < 0)
            return error_set(err, ERROR_BAD_REQUEST,
                             "effective partition key is not hex at position %zu", i);
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    *ret_epk = slice_of(bytes, hex.len / 2);
    return true;
}

/* --- Split points ---------------------------------------------------------------------------- */

/* 2^bits * i / n - 1, rounded down, without the product overflowing. */
static unsigned __int128 point_of(unsigned bits, size_t i, size_t n)
{
    unsigned __int128 space = (unsigned __int128)1 << bits;

    assert(i > 0 && i < n);
    return space / n * i + space % n * i / n - 1;
}

/* The service cuts just below the round number, 1FFF... and not 2000..., and so do we. */
void partition_epk_split_points(enum partition_kind kind, size_t n, struct arena *arena,
                                struct slice *ret_points)
{
    CLEANUP(buf_done) struct buf buf;

    assert(n >= 1 && n <= SPLIT_POINTS_MAX);
    buf_init(&buf, PARTITION_EPK_V1_MAX);
    for (size_t i = 1; i < n; i++) {
        uint8_t epk[PARTITION_EPK_LEVEL_SIZE];

        buf_clear(&buf);
        if (kind == PARTITION_HASH_V1) {
            put_uint32_v1((uint32_t)point_of(32, i, n), &buf);
        } else {
            put_be128(point_of(126, i, n), epk);
            buf_append(&buf, epk, sizeof epk);
        }
        ret_points[i - 1] = arena_copy(arena, buf_slice(&buf));
        assert(i == 1 || slice_compare(ret_points[i - 2], ret_points[i - 1]) < 0);
    }
}
