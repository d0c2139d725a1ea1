/* Reading keys back; their layout is at the top of key.c.
 *
 * Stepping over a value and decoding it are two passes: the first proves that the bytes are whole,
 * the second need not look. Keys come from the store, which keeps checksums; what is checked here
 * keeps a wrong layout from reading outside. Nesting is followed to DOCUMENT_DEPTH_MAX levels,
 * since deeper ones are never written. */
#include "document/order.h"

#include "base/bytes.h"
#include "document/number.h"
#include "document/order_private.h"

/* What stepping over found. */
enum step { STEP_DONE, STEP_SHORT /* the bytes end first */, STEP_BAD };

struct key_reader {
    enum document_order order;
    const uint8_t *at, *end;
};

static enum step step_value(struct key_reader *r, uint32_t depth);

/* --- Stepping over --------------------------------------------------------------------------- */

static enum step step_bytes(struct key_reader *r, size_t count)
{
    if ((size_t)(r->end - r->at) < count) {
        r->at = r->end;
        return STEP_SHORT;
    }
    r->at += count;
    return STEP_DONE;
}

static enum step step_text(struct key_reader *r)
{
    const uint8_t *nul = memchr(r->at, 0, (size_t)(r->end - r->at));

    if (!nul)
        return STEP_SHORT;
    r->at = nul + 1;
    return STEP_DONE;
}

/* A text in which BSON ends at the first zero byte: names, patterns and options. 00 is written as
 * 01 01, which no such text has. */
static enum step step_name(struct key_reader *r)
{
    const uint8_t *at = r->at, *end;
    enum step step = step_text(r);

    if (step != STEP_DONE)
        return step;
    end = r->at - 1;
    while ((at = memchr(at, 1, (size_t)(end - at)))) {
        if (end - at < 2 || at[1] == 1)
            return STEP_BAD;
        at += 2;
    }
    return STEP_DONE;
}

static enum step step_number(struct key_reader *r)
{
    size_t groups = 0;
    uint8_t end_byte, group;
    bool negative;

    if (r->at == r->end)
        return STEP_SHORT;
    negative = *r->at++ < 0x80;
    do {
        if (r->at == r->end)
            return STEP_SHORT;
        group = *r->at++;
        groups++;
    } while (group & 1 && groups < KEY_NUMBER_GROUPS);
    if (!(group & 1))
        return STEP_DONE;
    if (step_bytes(r, 2) != STEP_DONE)
        return STEP_SHORT;
    end_byte = negative ? 0xFF : 0;
    for (size_t pairs = 0; pairs <= DECIMAL_DIGITS_MAX / 2; pairs++) {
        if (r->at == r->end)
            return STEP_SHORT;
        if (*r->at++ == end_byte)
            return pairs ? STEP_DONE : STEP_BAD;
    }
    return STEP_BAD;
}

static enum step step_content(struct key_reader *r, uint8_t rank, uint32_t depth);

/* The three kinds of list: elements of an array, properties by name, properties as stored. */
static enum step step_list(struct key_reader *r, bool object, uint32_t depth)
{
    if (depth > DOCUMENT_DEPTH_MAX)
        return STEP_BAD;
    for (;;) {
        enum step step;
        uint8_t first;

        if (r->at == r->end)
            return STEP_SHORT;
        first = *r->at;
        if (first == 0) {
            r->at++;
            return STEP_DONE;
        }
        if (!object) {
            step = step_value(r, depth);
        } else {
            r->at++;
            step = step_name(r);
            if (step == STEP_DONE)
                step = r->order == DOCUMENT_ORDER_SQL ? step_value(r, depth)
                                                      : step_content(r, first, depth);
        }
        if (step != STEP_DONE)
            return step;
    }
}

/* Most values are texts: they are told from others before anything else is looked at. */
static enum step step_value(struct key_reader *r, uint32_t depth)
{
    if (r->at == r->end)
        return STEP_SHORT;
    r->at++;
    return LIKELY(r->at[-1] == KEY_RANK_TEXT) ? step_text(r) : step_content(r, r->at[-1], depth);
}

static enum step step_content(struct key_reader *r, uint8_t rank, uint32_t depth)
{
    enum document_type type;
    enum step step;

    if (!order_type(r->order, rank, &type))
        return STEP_BAD;
    switch (type) {
    case DOCUMENT_DOUBLE:
        return step_number(r);
    case DOCUMENT_STRING:
    case DOCUMENT_CODE:
        return step_text(r);
    case DOCUMENT_BOOL:
        return step_bytes(r, 1);
    case DOCUMENT_ARRAY:
    case DOCUMENT_OBJECT:
        return step_list(r, type == DOCUMENT_OBJECT, depth + 1);
    case DOCUMENT_BINARY:
        if (r->end - r->at < 4)
            return STEP_SHORT;
        return step_bytes(r, 5 + (size_t)bytes_get_be32(r->at));
    case DOCUMENT_OBJECT_ID:
        return step_bytes(r, DOCUMENT_OBJECT_ID_SIZE);
    case DOCUMENT_DATE:
    case DOCUMENT_TIMESTAMP:
        return step_bytes(r, 8);
    case DOCUMENT_REGEX:
        step = step_name(r);
        return step == STEP_DONE ? step_name(r) : step;
    case DOCUMENT_DB_POINTER:
        step = step_text(r);
        return step == STEP_DONE ? step_bytes(r, DOCUMENT_OBJECT_ID_SIZE) : step;
    case DOCUMENT_CODE_WITH_SCOPE:
        step = step_text(r);
        return step == STEP_DONE ? step_list(r, true, depth + 1) : step;
    default:
        return STEP_DONE; /* the rank says it all */
    }
}

static bool corrupt(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "stored key is not one of format version %d",
                     DOCUMENT_KEY_VERSION);
}

bool document_key_skip(enum document_order order, struct slice *key, struct error *err)
{
    struct key_reader r = {order, key->data, key->data + key->len};

    if (step_value(&r, 0) != STEP_DONE)
        return corrupt(err);
    *key = slice_of(r.at, (size_t)(r.end - r.at));
    return true;
}

bool document_key_skip_cut(enum document_order order, size_t max, struct slice *key, bool *ret_cut,
                           struct error *err)
{
    struct key_reader r = {order, key->data, key->data + MIN(key->len, max)};
    enum step step = step_value(&r, 0);

    if (step == STEP_BAD || (step == STEP_SHORT && key->len < max))
        return corrupt(err);
    *ret_cut = step == STEP_SHORT;
    *key = slice_skip(*key, *ret_cut ? max : (size_t)(r.at - key->data));
    return true;
}

/* --- Decoding -------------------------------------------------------------------------------- */

/* Four bytes for two surrogates of three. */
static size_t join_surrogates(const uint8_t *six, uint8_t *to)
{
    uint32_t high = (uint32_t)(six[1] & 0x0F) << 6 | (six[2] & 0x3F);
    uint32_t low = (uint32_t)(six[4] & 0x0F) << 6 | (six[5] & 0x3F);

    return utf8_encode(0x10000 + (high << 10 | low), to);
}

/* The text that ends in 00; shorter than its encoding, never longer. */
static struct slice read_text(struct key_reader *r, struct arena *arena)
{
    const uint8_t *end = memchr(r->at, 0, (size_t)(r->end - r->at));
    uint8_t *text = arena_alloc(arena, (size_t)(end - r->at) + 1);
    size_t len = 0;

    while (r->at < end) {
        if (*r->at != 1 && *r->at != 0xED) { /* as nearly all are */
            text[len++] = *r->at++;
        } else if (*r->at == 1 && r->at + 1 < end) {
            text[len++] = (uint8_t)(r->at[1] - 1);
            r->at += 2;
        } else if (r->order == DOCUMENT_ORDER_SQL && utf8_is_high_surrogate(r->at, end) &&
                   utf8_is_low_surrogate(r->at + 3, end)) {
            len += join_surrogates(r->at, text + len);
            r->at += 6;
        } else {
            text[len++] = *r->at++;
        }
    }
    r->at++;
    return slice_of(text, len);
}

/* False if the digits are none that a decimal can have. */
static bool read_number(struct key_reader *r, struct document_value *ret_value)
{
    struct number_place place = {.floor = (uint64_t)*r->at << 56, .exact = true};
    int shift = 49;
    uint8_t group, flip;

    place.negative = *r->at++ < 0x80;
    do {
        group = *r->at++;
        place.floor |= (uint64_t)(group >> 1) << shift;
        shift -= 7;
    } while (group & 1 && shift >= 0);
    if (!(group & 1)) {
        *ret_value = number_at_place(&place);
        return true;
    }
    place.exact = false;
    flip = place.negative ? 0xFF : 0;
    place.point = (uint16_t)(bytes_get_be16(r->at) ^ (flip << 8 | flip)) - KEY_POINT_BIAS;
    for (r->at += 2; *r->at != flip; r->at++) {
        uint8_t pair = (uint8_t)((*r->at ^ flip) - 1);

        place.digits[place.digit_count++] = (char)('0' + pair / 10 % 10);
        place.digits[place.digit_count++] = (char)('0' + pair % 10);
    }
    r->at++;
    while (place.digit_count > 1 && place.digits[place.digit_count - 1] == '0')
        place.digit_count--;
    if (place.point > DECIMAL_EXPONENT_MAX + DECIMAL_DIGITS_MAX ||
        place.point - place.digit_count < -DECIMAL_EXPONENT_BIAS)
        return false;
    *ret_value = number_at_place(&place);
    return true;
}

static bool read_content(struct key_reader *r, enum document_type type, struct arena *arena,
                         struct document_value *value)
{
    *value = document_value_of_type(type);
    switch (type) {
    case DOCUMENT_DOUBLE:
        return read_number(r, value);
    case DOCUMENT_STRING:
    case DOCUMENT_CODE:
        value->text = read_text(r, arena);
        break;
    case DOCUMENT_BOOL:
        value->boolean = *r->at != 0;
        break;
    case DOCUMENT_BINARY:
        value->binary.subtype = r->at[4];
        value->binary.bytes = arena_copy(arena, slice_of(r->at + 5, bytes_get_be32(r->at)));
        break;
    case DOCUMENT_OBJECT_ID:
        value->id = arena_copy(arena, slice_of(r->at, DOCUMENT_OBJECT_ID_SIZE)).data;
        break;
    case DOCUMENT_DATE:
        value->int64 = (int64_t)(bytes_get_be64(r->at) ^ (uint64_t)1 << 63);
        break;
    case DOCUMENT_TIMESTAMP:
        value->timestamp = bytes_get_be64(r->at);
        break;
    case DOCUMENT_REGEX:
        value->regex.pattern = read_text(r, arena);
        value->regex.options = read_text(r, arena);
        break;
    case DOCUMENT_DB_POINTER:
        value->pointer.collection = read_text(r, arena);
        value->pointer.id = arena_copy(arena, slice_of(r->at, DOCUMENT_OBJECT_ID_SIZE)).data;
        break;
    default:
        break; /* no content, or one that is not decoded */
    }
    return true;
}

/* --- Decoding what is nested: MongoDB's order alone keeps all of it --------------------------- */

static bool read_list(struct key_reader *r, bool object, struct arena *arena, struct buf *out);

/* One element with its value behind it; r stands behind the rank. */
static bool read_element(struct key_reader *r, uint8_t rank, struct slice name, struct arena *arena,
                         struct buf *out)
{
    struct document_value value;
    enum document_type type;
    struct key_reader start = *r;
    bool good;
    size_t begin;

    if (!order_type(r->order, rank, &type) || type == DOCUMENT_CODE_WITH_SCOPE)
        return false;
    if (type == DOCUMENT_OBJECT || type == DOCUMENT_ARRAY) {
        begin = type == DOCUMENT_OBJECT ? document_append_object_begin(out, name)
                                        : document_append_array_begin(out, name);
        good = read_list(r, type == DOCUMENT_OBJECT, arena, out);
        document_end(out, begin);
        return good;
    }
    if (!read_content(&start, type, arena, &value) || step_content(r, rank, 0) != STEP_DONE)
        return false;
    document_append(out, name, &value);
    return true;
}

/* The bytes have been stepped over: they are whole and not too deep. */
static bool read_list(struct key_reader *r, bool object, struct arena *arena, struct buf *out)
{
    char index[DOCUMENT_INDEX_SIZE];

    for (uint32_t i = 0; *r->at; i++) {
        uint8_t rank = *r->at++;
        struct slice name = object ? read_text(r, arena) : document_index_key(i, index);

        if (!read_element(r, rank, name, arena, out))
            return false;
    }
    r->at++;
    return true;
}

static void read_nested(struct key_reader *r, struct arena *arena, struct document_value *value)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (r->order != DOCUMENT_ORDER_MONGO ||
        (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY))
        return;
    begin = document_begin(&out);
    if (!read_list(r, value->type == DOCUMENT_OBJECT, arena, &out))
        return;
    document_end(&out, begin);
    if (!buf_overflowed(&out))
        value->document = arena_copy(arena, buf_slice(&out));
}

/* A text without an escape, as nearly all are, in one pass. False: it is none, or is broken. */
static bool read_plain_text(struct slice *key, struct arena *arena,
                            struct document_value *ret_value)
{
    const uint8_t *at = key->data + 1;
    const uint8_t *end = memchr(at, 0, key->len - 1);
    size_t len = end ? (size_t)(end - at) : 0;
    uint8_t special = 0, *text;

    if (!end)
        return false;
    for (size_t i = 0; i < len; i++)
        special |= (uint8_t)((at[i] == 1) | (at[i] == 0xED));
    if (special)
        return false;
    text = arena_alloc(arena, len + 1);
    memcpy(text, at, len);
    *ret_value = document_string(slice_of(text, len));
    *key = slice_skip(*key, len + 2);
    return true;
}

bool document_key_read(enum document_order order, struct slice *key, struct arena *arena,
                       struct document_value *ret_value, struct error *err)
{
    if (LIKELY(key->len && key->data[0] == KEY_RANK_TEXT) && read_plain_text(key, arena, ret_value))
        return true;

    struct key_reader r = {order, key->data, key->data + key->len};
    struct slice rest = *key;
    struct document_value value;
    enum document_type type;

    if (!document_key_skip(order, &rest, err))
        return false;
    if (!order_type(order, *r.at++, &type) || !read_content(&r, type, arena, &value))
        return corrupt(err);
    read_nested(&r, arena, &value);
    *ret_value = value;
    *key = rest;
    return true;
}
