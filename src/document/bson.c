/* BSON, little-endian throughout:
 *
 *     document   int32 length of the whole, elements, 00
 *     element    type byte, key, 00, value
 *
 * The walker works in two steps: how long is the value (which proves that it lies within the
 * slice), then what is it. Stepping over an element needs the first only. A table of offsets per
 * document would make repeated lookups faster, but most documents are looked into once or twice. */
#include "document/bson.h"

#include "document/bson_private.h"

enum { DOCUMENT_SIZE_MIN = 5 };

static void append_head(struct buf *buf, enum document_type type, struct slice key, size_t room);
static void append_text(struct buf *buf, struct slice text);

/* --- Writing --------------------------------------------------------------------------------- */

size_t document_begin(struct buf *buf)
{
    size_t begin = buf->len;

    buf_append_le32(buf, 0);
    return begin;
}

/* In a buffer that overflowed, begin may be where nothing was written; it is of no use anyhow. */
void document_end(struct buf *buf, size_t begin)
{
    buf_append_byte(buf, 0);
    if (buf_overflowed(buf))
        return;
    assert(buf->len - begin >= DOCUMENT_SIZE_MIN);
    if (buf->len - begin > INT32_MAX) {
        buf->overflowed = true;
        return;
    }
    bytes_put_le32(buf->data + begin, (uint32_t)(buf->len - begin));
}

size_t document_append_object_begin(struct buf *buf, struct slice key)
{
    append_head(buf, DOCUMENT_OBJECT, key, 4);
    return document_begin(buf);
}

size_t document_append_array_begin(struct buf *buf, struct slice key)
{
    append_head(buf, DOCUMENT_ARRAY, key, 4);
    return document_begin(buf);
}

void document_append(struct buf *buf, struct slice key, const struct document_value *value)
{
    append_head(buf, value->type, key, 16);
    switch (value->type) {
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DATE:
    case DOCUMENT_INT64:
    case DOCUMENT_TIMESTAMP:
        buf_append_le64(buf, value->timestamp); /* eight bytes, whatever they mean */
        break;
    case DOCUMENT_STRING:
    case DOCUMENT_CODE:
    case DOCUMENT_SYMBOL:
        append_text(buf, value->text);
        break;
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        buf_append_slice(buf, value->document);
        break;
    case DOCUMENT_BINARY:
        buf_append_le32(buf, (uint32_t)value->binary.bytes.len);
        buf_append_byte(buf, value->binary.subtype);
        buf_append_slice(buf, value->binary.bytes);
        break;
    case DOCUMENT_OBJECT_ID:
        buf_append(buf, value->id, DOCUMENT_OBJECT_ID_SIZE);
        break;
    case DOCUMENT_BOOL:
        buf_append_byte(buf, value->boolean);
        break;
    case DOCUMENT_REGEX:
        buf_append_slice(buf, value->regex.pattern);
        buf_append_byte(buf, 0);
        buf_append_slice(buf, value->regex.options);
        buf_append_byte(buf, 0);
        break;
    case DOCUMENT_DB_POINTER:
        append_text(buf, value->pointer.collection);
        buf_append(buf, value->pointer.id, DOCUMENT_OBJECT_ID_SIZE);
        break;
    case DOCUMENT_CODE_WITH_SCOPE:
        buf_append_le32(buf,
                        (uint32_t)(4 + 4 + value->scoped.code.len + 1 + value->scoped.scope.len));
        append_text(buf, value->scoped.code);
        buf_append_slice(buf, value->scoped.scope);
        break;
    case DOCUMENT_INT32:
        buf_append_le32(buf, (uint32_t)value->int32);
        break;
    case DOCUMENT_DECIMAL128:
        buf_append_le64(buf, value->decimal.low);
        buf_append_le64(buf, value->decimal.high);
        break;
    case DOCUMENT_UNDEFINED:
    case DOCUMENT_NULL:
    case DOCUMENT_MIN_KEY:
    case DOCUMENT_MAX_KEY:
        break;
    }
}

void document_append_string(struct buf *buf, struct slice key, struct slice text)
{
    append_head(buf, DOCUMENT_STRING, key, 4 + text.len + 1);
    append_text(buf, text);
}

void document_append_int32(struct buf *buf, struct slice key, int32_t number)
{
    append_head(buf, DOCUMENT_INT32, key, 4);
    buf_append_le32(buf, (uint32_t)number);
}

void document_append_int64(struct buf *buf, struct slice key, int64_t number)
{
    append_head(buf, DOCUMENT_INT64, key, 8);
    buf_append_le64(buf, (uint64_t)number);
}

void document_append_double(struct buf *buf, struct slice key, double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    append_head(buf, DOCUMENT_DOUBLE, key, 8);
    buf_append_le64(buf, bits);
}

void document_append_bool(struct buf *buf, struct slice key, bool boolean)
{
    append_head(buf, DOCUMENT_BOOL, key, 1);
    buf_append_byte(buf, boolean);
}

void document_append_null(struct buf *buf, struct slice key)
{
    append_head(buf, DOCUMENT_NULL, key, 0);
}

void document_append_date(struct buf *buf, struct slice key, int64_t ms)
{
    append_head(buf, DOCUMENT_DATE, key, 8);
    buf_append_le64(buf, (uint64_t)ms);
}

struct slice document_index_key(uint32_t index, char text[DOCUMENT_INDEX_SIZE])
{
    size_t at = DOCUMENT_INDEX_SIZE;

    do {
        text[--at] = (char)('0' + index % 10);
        index /= 10;
    } while (index);
    return slice_of(text + at, DOCUMENT_INDEX_SIZE - at);
}

/* The type byte and the key, in one step where there is room for the value as well. */
static void append_head(struct buf *buf, enum document_type type, struct slice key, size_t room)
{
    assert(key.len == 0 || !memchr(key.data, 0, key.len));
    if (LIKELY(buf->capacity - buf->len >= key.len + 2 + room)) {
        uint8_t *to = buf->data + buf->len;

        *to++ = (uint8_t)type;
        if (key.len)
            memcpy(to, key.data, key.len);
        to[key.len] = 0;
        buf->len += key.len + 2;
        return;
    }
    buf_append_byte(buf, (uint8_t)type);
    buf_append_slice(buf, key);
    buf_append_byte(buf, 0);
}

static void append_text(struct buf *buf, struct slice text)
{
    if (text.len >= INT32_MAX) {
        buf->overflowed = true;
        return;
    }
    buf_append_le32(buf, (uint32_t)text.len + 1);
    buf_append_slice(buf, text);
    buf_append_byte(buf, 0);
}

/* --- Walking --------------------------------------------------------------------------------- */

void document_iter_init(struct document_iter *iter, struct slice document)
{
    *iter = (struct document_iter){0};
    if (document.len < DOCUMENT_SIZE_MIN || bytes_get_le32(document.data) != document.len ||
        document.data[document.len - 1] != 0) {
        iter->broken = true;
        return;
    }
    iter->at = document.data + 4;
    iter->end = document.data + document.len - 1;
}

/* Reads type and key; the value begins at *ret_value and its size is proved. */
static inline bool element_head(struct document_iter *iter, const uint8_t **ret_value,
                                size_t *ret_size)
{
    const uint8_t *key = iter->at + 1, *nul = bson_key_end(key, iter->end);

    if (UNLIKELY(!nul) ||
        UNLIKELY(!bson_value_size(iter->at[0], nul + 1, (size_t)(iter->end - nul - 1), ret_size)))
        return bson_broken(iter);
    iter->element = iter->at;
    iter->key = slice_of(key, (size_t)(nul - key));
    *ret_value = nul + 1;
    iter->at = *ret_value + *ret_size;
    return true;
}

bool document_iter_next(struct document_iter *iter)
{
    return bson_iter_step(iter);
}

/* How many bytes the key of a double has, at most 7; SIZE_MAX: what is there is none, or has a
 * longer key, or too little follows to look at it that way. */
static inline size_t double_key(const uint8_t *at, const uint8_t *end)
{
    uint64_t zeros;

    if (end - at < 1 + 8 + 8 || at[0] != DOCUMENT_DOUBLE)
        return SIZE_MAX;
    zeros = scan_zeros(scan_load(at + 1));
    return zeros ? (size_t)__builtin_ctzll(zeros) / 8 : SIZE_MAX;
}

/* What the first word of every double has whose key has so many digits: the bits that are alike,
 * and what they are. No digit is zero, so that the key ends where it should. */
struct alike {
    uint64_t mask, bits;
};

static inline struct alike double_alike(size_t len)
{
    uint64_t key = ((uint64_t)1 << 8 * len) - 1;

    if (len > 6) /* the word does not have its end */
        return (struct alike){0, 1};
    return (struct alike){0xFF | (key & SCAN_ONES * 0xF0) << 8 | (uint64_t)0xFF << 8 * (len + 1),
                          DOCUMENT_DOUBLE | (key & SCAN_ONES * 0x30) << 8};
}

/* Most keys of an array are as long as the one before, and digits. The loop for one length knows
 * where the next element begins before it has looked at this one, so that several are under way at
 * once. */
size_t document_iter_doubles(struct document_iter *iter, double *to, size_t max)
{
    const uint8_t *at = iter->at;
    size_t count = 0, len;

    while (count < max && (len = double_key(at, iter->end)) != SIZE_MAX) {
        struct alike alike = double_alike(len);

        do {
            uint64_t bits = bytes_get_le64(at + 1 + len + 1);

            memcpy(&to[count++], &bits, sizeof bits);
            at += 1 + len + 1 + sizeof bits;
        } while (count < max && iter->end - at >= 1 + 8 + 8 &&
                 (scan_load(at) & alike.mask) == alike.bits);
    }
    iter->at = at;
    return count;
}

bool document_find(struct slice document, struct slice key, struct document_value *ret_value)
{
    struct document_iter iter;
    const uint8_t *value;
    size_t size;

    document_iter_init(&iter, document);
    while (iter.at < iter.end && element_head(&iter, &value, &size)) {
        if (slice_equal(iter.key, key)) {
            bson_value_decode(iter.element[0], value, size, ret_value);
            return true;
        }
    }
    return false;
}

bool document_find_index(struct slice array, uint64_t index, struct document_value *ret_value)
{
    struct document_iter iter;
    const uint8_t *value;
    size_t size;

    document_iter_init(&iter, array);
    while (iter.at < iter.end && element_head(&iter, &value, &size)) {
        if (index-- == 0) {
            bson_value_decode(iter.element[0], value, size, ret_value);
            return true;
        }
    }
    return false;
}

size_t document_count(struct slice document)
{
    struct document_iter iter;
    const uint8_t *value;
    size_t size, count = 0;

    document_iter_init(&iter, document);
    while (iter.at < iter.end && element_head(&iter, &value, &size))
        count++;
    return iter.broken ? 0 : count;
}

/* --- Values ---------------------------------------------------------------------------------- */

/* A length-prefixed string: int32 length with its NUL, bytes, NUL. */
static bool text_size(const uint8_t *at, size_t room, size_t *ret_size)
{
    uint32_t length;

    if (room < 5)
        return false;
    length = bytes_get_le32(at);
    if (length < 1 || length > room - 4 || at[4 + length - 1] != 0)
        return false;
    *ret_size = 4 + (size_t)length;
    return true;
}

static bool document_size(const uint8_t *at, size_t room, size_t *ret_size)
{
    uint32_t length;

    if (room < DOCUMENT_SIZE_MIN)
        return false;
    length = bytes_get_le32(at);
    if (length < DOCUMENT_SIZE_MIN || length > room || at[length - 1] != 0)
        return false;
    *ret_size = length;
    return true;
}

static bool regex_size(const uint8_t *at, size_t room, size_t *ret_size)
{
    const uint8_t *pattern_end = memchr(at, 0, room), *options_end;

    if (!pattern_end)
        return false;
    room -= (size_t)(pattern_end + 1 - at);
    options_end = memchr(pattern_end + 1, 0, room);
    if (!options_end)
        return false;
    *ret_size = (size_t)(options_end + 1 - at);
    return true;
}

static bool scoped_size(const uint8_t *at, size_t room, size_t *ret_size)
{
    size_t code, scope;

    if (room < 4 || !text_size(at + 4, room - 4, &code) ||
        !document_size(at + 4 + code, room - 4 - code, &scope) ||
        bytes_get_le32(at) != 4 + code + scope)
        return false;
    *ret_size = 4 + code + scope;
    return true;
}

bool bson_value_size(uint8_t type, const uint8_t *at, size_t room, size_t *ret_size)
{
    size_t size;

    switch (type) {
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DATE:
    case DOCUMENT_TIMESTAMP:
    case DOCUMENT_INT64:
        size = 8;
        break;
    case DOCUMENT_STRING:
    case DOCUMENT_CODE:
    case DOCUMENT_SYMBOL:
        return text_size(at, room, ret_size);
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        return document_size(at, room, ret_size);
    case DOCUMENT_BINARY:
        if (room < 5 || bytes_get_le32(at) > INT32_MAX)
            return false;
        size = 5 + (size_t)bytes_get_le32(at);
        break;
    case DOCUMENT_UNDEFINED:
    case DOCUMENT_NULL:
    case DOCUMENT_MIN_KEY:
    case DOCUMENT_MAX_KEY:
        size = 0;
        break;
    case DOCUMENT_OBJECT_ID:
        size = DOCUMENT_OBJECT_ID_SIZE;
        break;
    case DOCUMENT_BOOL:
        size = 1;
        break;
    case DOCUMENT_REGEX:
        return regex_size(at, room, ret_size);
    case DOCUMENT_DB_POINTER:
        if (!text_size(at, room, &size))
            return false;
        size += DOCUMENT_OBJECT_ID_SIZE;
        break;
    case DOCUMENT_CODE_WITH_SCOPE:
        return scoped_size(at, room, ret_size);
    case DOCUMENT_INT32:
        size = 4;
        break;
    case DOCUMENT_DECIMAL128:
        size = 16;
        break;
    default:
        return false;
    }
    if (size > room)
        return false;
    *ret_size = size;
    return true;
}

static struct slice text_at(const uint8_t *at)
{
    return slice_of(at + 4, bytes_get_le32(at) - 1);
}

void bson_value_decode(uint8_t type, const uint8_t *at, size_t size,
                       struct document_value *ret_value)
{
    struct document_value *value = ret_value;

    value->type = type;
    switch (value->type) {
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DATE:
    case DOCUMENT_TIMESTAMP:
    case DOCUMENT_INT64:
        value->timestamp = bytes_get_le64(at);
        break;
    case DOCUMENT_STRING:
    case DOCUMENT_CODE:
    case DOCUMENT_SYMBOL:
        value->text = text_at(at);
        break;
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        value->document = slice_of(at, size);
        break;
    case DOCUMENT_BINARY:
        value->binary.subtype = at[4];
        value->binary.bytes = slice_of(at + 5, size - 5);
        break;
    case DOCUMENT_OBJECT_ID:
        value->id = at;
        break;
    case DOCUMENT_BOOL:
        value->boolean = at[0] != 0;
        break;
    case DOCUMENT_REGEX:
        value->regex.pattern = slice_of(at, strlen((const char *)at));
        at += value->regex.pattern.len + 1;
        value->regex.options = slice_of(at, strlen((const char *)at));
        break;
    case DOCUMENT_DB_POINTER:
        value->pointer.collection = text_at(at);
        value->pointer.id = at + size - DOCUMENT_OBJECT_ID_SIZE;
        break;
    case DOCUMENT_CODE_WITH_SCOPE:
        value->scoped.code = text_at(at + 4);
        value->scoped.scope =
            slice_of(at + 8 + value->scoped.code.len + 1, size - 8 - value->scoped.code.len - 1);
        break;
    case DOCUMENT_INT32:
        value->int32 = (int32_t)bytes_get_le32(at);
        break;
    case DOCUMENT_DECIMAL128:
        value->decimal.low = bytes_get_le64(at);
        value->decimal.high = bytes_get_le64(at + 8);
        break;
    case DOCUMENT_UNDEFINED:
    case DOCUMENT_NULL:
    case DOCUMENT_MIN_KEY:
    case DOCUMENT_MAX_KEY:
        break;
    }
}
