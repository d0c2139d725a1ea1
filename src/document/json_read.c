/* One pass from text to BSON: values are written as they are met, lengths and type bytes filled in
 * behind. There is no token list and no tree; simdjson's two passes are faster on very large texts
 * and need their whole structure index in memory first, and most of our texts are a few KB.
 *
 * `in` travels through the functions as argument and result, NULL meaning that err is set; `out`
 * lives in the reader, because the buffer may move when it grows. Recursion is bounded by
 * depth_max, which is at most DOCUMENT_DEPTH_MAX. */
#include "document/json.h"

#include "base/bytes.h"
#include "document/json_keys.h"
#include "document/json_number.h"
#include "document/scan.h"
#include "document/utf8.h"

enum {
    RUN = 64,   /* bytes that a run of escapes or characters may write before it asks again */
    SLACK = 96, /* what may be written past the limit before the last check sees it */
    NAME_SHOWN_MAX = 100, /* bytes of a property name in a message */
};

struct reader {
    const uint8_t *begin, *end; /* of the text */
    struct buf *buf;
    size_t base;            /* where in buf our document begins */
    uint8_t *out, *out_end; /* where the next byte goes; the end of the memory there is */
    size_t bytes_max;
    uint32_t depth_max;
    bool nul_escaped; /* \u0000 was met */
    struct error *err;
    struct json_keys keys;
};

static void reader_init(struct reader *r, struct slice text, const struct document_limits *limits,
                        struct buf *buf, struct error *err);
static bool reader_finish(struct reader *r, const uint8_t *in);
static const uint8_t *read_value(struct reader *r, const uint8_t *in, size_t type_at,
                                 uint32_t depth);
static const uint8_t *read_object(struct reader *r, const uint8_t *in, uint32_t depth);
static const uint8_t *read_array(struct reader *r, const uint8_t *in, uint32_t depth);
static const uint8_t *read_string(struct reader *r, const uint8_t *in);

/* --- Helpers --------------------------------------------------------------------------------- */

static const uint8_t *fail(struct reader *r, const uint8_t *in, const char *what)
{
    if (in >= r->end)
        error_set(r->err, ERROR_BAD_JSON, "%s, but the text ends at byte %zu", what,
                  (size_t)(r->end - r->begin));
    else
        error_set(r->err, ERROR_BAD_JSON, "%s at byte %zu", what, (size_t)(in - r->begin));
    return NULL;
}

static bool grow(struct reader *r, size_t count)
{
    size_t len = (size_t)(r->out - r->buf->data), limit;

    limit = MIN(r->base + r->bytes_max + SLACK, r->buf->max);
    if (len + count > limit)
        return error_set(r->err, ERROR_TOO_LARGE, "document is over the limit of %zu bytes",
                         r->bytes_max);
    r->buf->len = len;
    if (!buf_reserve(r->buf, count))
        return error_set(r->err, ERROR_TOO_LARGE, "document is over the limit of %zu bytes",
                         r->bytes_max);
    r->out = r->buf->data + len;
    r->out_end = r->buf->data + r->buf->capacity;
    return true;
}

static inline bool room(struct reader *r, size_t count)
{
    return LIKELY((size_t)(r->out_end - r->out) >= count) || grow(r, count);
}

/* Positions that survive a move of the buffer. */
static inline size_t position(const struct reader *r)
{
    return (size_t)(r->out - r->buf->data);
}

static inline const uint8_t *skip_blanks(const struct reader *r, const uint8_t *in)
{
    while (in < r->end && UNLIKELY(*in <= ' ') &&
           (*in == ' ' || *in == '\n' || *in == '\r' || *in == '\t'))
        in++;
    return in;
}

static inline bool next_is(const struct reader *r, const uint8_t *in, uint8_t byte)
{
    return LIKELY(in < r->end) && *in == byte;
}

/* --- The two ways in ------------------------------------------------------------------------- */

bool document_json_read(struct slice text, const struct document_limits *limits, struct buf *buf,
                        struct error *err)
{
    struct reader r;
    const uint8_t *in;

    reader_init(&r, text, limits, buf, err);
    in = skip_blanks(&r, r.begin);
    if (!room(&r, SLACK))
        in = NULL;
    else if (next_is(&r, in, '{'))
        in = read_object(&r, in + 1, 1);
    else
        in = fail(&r, in, "expected an object");
    return reader_finish(&r, in);
}

bool document_json_read_value(struct slice text, const struct document_limits *limits,
                              struct buf *buf, struct document_value *ret_value, struct error *err)
{
    struct reader r;
    struct document_iter iter;
    const uint8_t *in;

    reader_init(&r, text, limits, buf, err);
    in = skip_blanks(&r, r.begin);
    if (!room(&r, SLACK)) {
        in = NULL;
    } else {
        size_t type_at = position(&r) + 4;

        r.out[5] = 0; /* the empty key; the type before it follows with the value */
        r.out += 6;
        in = read_value(&r, in, type_at, 0);
    }
    if (in && room(&r, 1)) {
        *r.out++ = 0;
        bytes_put_le32(buf->data + r.base, (uint32_t)(position(&r) - r.base));
    } else {
        in = NULL;
    }
    if (!reader_finish(&r, in))
        return false;
    document_iter_init(&iter, slice_of(buf->data + r.base, buf->len - r.base));
    if (!document_iter_next(&iter))
        assert(!"what we wrote is a document of one element");
    *ret_value = iter.value;
    return true;
}

/* Field by field: clearing the names of json_keys would cost more than reading a small text. */
static void reader_init(struct reader *r, struct slice text, const struct document_limits *limits,
                        struct buf *buf, struct error *err)
{
    r->begin = text.data;
    r->end = text.len ? text.data + text.len : text.data;
    r->buf = buf;
    r->base = buf->len;
    r->out = buf->data ? buf->data + buf->len : NULL;
    r->out_end = buf->data ? buf->data + buf->capacity : NULL;
    r->bytes_max = limits && limits->bytes_max ? limits->bytes_max : DOCUMENT_BYTES_DEFAULT;
    r->depth_max = limits && limits->depth_max ? limits->depth_max : DOCUMENT_DEPTH_DEFAULT;
    r->nul_escaped = false;
    r->err = err;
    assert(r->depth_max <= DOCUMENT_DEPTH_MAX && r->bytes_max < INT32_MAX - SLACK);
    json_keys_init(&r->keys);
    /* BSON is about as long as its text; asking once spares most of the growing. */
    if (text.len + SLACK < r->bytes_max && text.len + 2 * SLACK < buf->max - buf->len)
        (void)room(r, text.len + 2 * SLACK);
}

static bool reader_finish(struct reader *r, const uint8_t *in)
{
    json_keys_done(&r->keys);
    if (in) {
        in = skip_blanks(r, in);
        if (in < r->end)
            in = fail(r, in, "expected the end of the text");
    }
    if (in && position(r) - r->base > r->bytes_max) {
        error_set(r->err, ERROR_TOO_LARGE, "document is over the limit of %zu bytes", r->bytes_max);
        in = NULL;
    }
    r->buf->len = in ? position(r) : r->base;
    return in != NULL;
}

/* --- Values ---------------------------------------------------------------------------------- */

static const uint8_t *read_word(struct reader *r, const uint8_t *in, size_t type_at)
{
    struct slice rest = slice_of(in, (size_t)(r->end - in));
    uint8_t *type = r->buf->data + type_at;

    if (slice_starts_with(rest, SLICE("true"))) {
        *type = DOCUMENT_BOOL;
        *r->out++ = 1;
        return in + 4;
    }
    if (slice_starts_with(rest, SLICE("false"))) {
        *type = DOCUMENT_BOOL;
        *r->out++ = 0;
        return in + 5;
    }
    if (slice_starts_with(rest, SLICE("null"))) {
        *type = DOCUMENT_NULL;
        return in + 4;
    }
    return fail(r, in, "expected a value");
}

static const uint8_t *read_number(struct reader *r, const uint8_t *in, size_t type_at)
{
    struct json_number number;
    struct json_fault fault;

    in = json_number_read(in, r->end, &number, &fault);
    if (UNLIKELY(!in))
        return fail(r, fault.at, fault.what);
    r->buf->data[type_at] = (uint8_t)number.type;
    bytes_put_le64(r->out, number.bits); /* little-endian: an int32 is the first half */
    r->out += number.type == DOCUMENT_INT32 ? 4 : 8;
    return in;
}

/* The type byte lies at type_at and the key behind it is written. Whoever calls this, or what it
 * calls for objects and arrays, has made room for the longest scalar and for a length. */
static const uint8_t *read_value(struct reader *r, const uint8_t *in, size_t type_at,
                                 uint32_t depth)
{
    if (UNLIKELY(in >= r->end))
        return fail(r, in, "expected a value");
    switch (*in) {
    case '"': {
        size_t begin = position(r);

        r->buf->data[type_at] = DOCUMENT_STRING;
        r->out += 4;
        in = read_string(r, in + 1);
        if (UNLIKELY(!in) || !room(r, 1))
            return NULL;
        *r->out++ = 0;
        bytes_put_le32(r->buf->data + begin, (uint32_t)(position(r) - begin - 4));
        return in;
    }
    case '{':
        r->buf->data[type_at] = DOCUMENT_OBJECT;
        return read_object(r, in + 1, depth + 1);
    case '[':
        r->buf->data[type_at] = DOCUMENT_ARRAY;
        return read_array(r, in + 1, depth + 1);
    case '-':
    case '0' ... '9':
        return read_number(r, in, type_at);
    default:
        return read_word(r, in, type_at);
    }
}

static const uint8_t *too_deep(struct reader *r, const uint8_t *in)
{
    error_set(r->err, ERROR_TOO_DEEP, "nesting at byte %zu is deeper than %u levels",
              (size_t)(in - r->begin), r->depth_max);
    return NULL;
}

/* Closes the document that began at begin. */
static const uint8_t *close_document(struct reader *r, const uint8_t *in, size_t begin)
{
    if (!room(r, 1))
        return NULL;
    *r->out++ = 0;
    bytes_put_le32(r->buf->data + begin, (uint32_t)(position(r) - begin));
    return in;
}

/* A key and its NUL, after the opening quote. */
static const uint8_t *read_key(struct reader *r, const uint8_t *in, struct json_object *object)
{
    size_t begin = position(r), length;
    const uint8_t *base;

    r->nul_escaped = false;
    in = read_string(r, in);
    if (UNLIKELY(!in) || !room(r, SLACK))
        return NULL;
    if (UNLIKELY(r->nul_escaped))
        return fail(r, in - 1, "a property name holds a NUL, in the string that ends");
    length = position(r) - begin;
    *r->out++ = 0;
    base = r->buf->data + r->base;
    if (UNLIKELY(!json_object_add(&r->keys, object, base, (uint32_t)(begin - r->base),
                                  (uint32_t)length))) {
        error_set(r->err, ERROR_DUPLICATE_PROPERTY,
                  "property \"%.*s\" occurs twice, again at byte %zu",
                  (int)MIN(length, (size_t)NAME_SHOWN_MAX), (const char *)r->buf->data + begin,
                  (size_t)(in - r->begin));
        return NULL;
    }
    return in;
}

static const uint8_t *read_object(struct reader *r, const uint8_t *in, uint32_t depth)
{
    struct json_object object = json_object_open(&r->keys);
    size_t begin;

    if (UNLIKELY(depth > r->depth_max))
        return too_deep(r, in - 1);
    begin = position(r);
    r->out += 4;
    in = skip_blanks(r, in);
    if (next_is(r, in, '}'))
        return close_document(r, in + 1, begin);
    for (;;) {
        size_t type_at;

        if (UNLIKELY(!next_is(r, in, '"')))
            return fail(r, in, "expected a property name");
        if (!room(r, SLACK))
            return NULL;
        type_at = position(r);
        r->out++;
        in = read_key(r, in + 1, &object);
        if (UNLIKELY(!in))
            return NULL;
        in = skip_blanks(r, in);
        if (UNLIKELY(!next_is(r, in, ':')))
            return fail(r, in, "expected a colon");
        in = read_value(r, skip_blanks(r, in + 1), type_at, depth);
        if (UNLIKELY(!in))
            return NULL;
        in = skip_blanks(r, in);
        if (next_is(r, in, ',')) {
            in = skip_blanks(r, in + 1);
            continue;
        }
        if (UNLIKELY(!next_is(r, in, '}')))
            return fail(r, in, "expected a comma or the end of the object");
        json_object_close(&r->keys, &object);
        return close_document(r, in + 1, begin);
    }
}

/* Counts in decimal text: the keys of array elements are wanted as such. */
struct index_text {
    char digits[DOCUMENT_INDEX_SIZE];
    uint8_t length;
};

static inline void index_text_next(struct index_text *index)
{
    for (uint8_t i = index->length; i-- > 0;) {
        if (LIKELY(index->digits[i] < '9')) {
            index->digits[i]++;
            return;
        }
        index->digits[i] = '0';
    }
    memmove(index->digits + 1, index->digits, index->length);
    index->digits[0] = '1';
    index->length++;
}

static const uint8_t *read_array(struct reader *r, const uint8_t *in, uint32_t depth)
{
    struct index_text index = {.digits = "0", .length = 1};
    size_t begin;

    if (UNLIKELY(depth > r->depth_max))
        return too_deep(r, in - 1);
    begin = position(r);
    r->out += 4;
    in = skip_blanks(r, in);
    if (next_is(r, in, ']'))
        return close_document(r, in + 1, begin);
    for (;;) {
        size_t type_at;

        if (!room(r, SLACK))
            return NULL;
        type_at = position(r);
        memcpy(r->out + 1, index.digits, sizeof index.digits);
        r->out[1 + index.length] = 0;
        r->out += index.length + 2;
        in = read_value(r, in, type_at, depth);
        if (UNLIKELY(!in))
            return NULL;
        in = skip_blanks(r, in);
        if (next_is(r, in, ',')) {
            in = skip_blanks(r, in + 1);
            index_text_next(&index);
            continue;
        }
        if (UNLIKELY(!next_is(r, in, ']')))
            return fail(r, in, "expected a comma or the end of the array");
        return close_document(r, in + 1, begin);
    }
}

/* --- Strings --------------------------------------------------------------------------------- */

/* The value of a hexadecimal digit, plus one; 0 for other bytes. */
static const uint8_t hex_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Four hexadecimal digits, or -1. */
static inline int32_t hex_unit(const struct reader *r, const uint8_t *in)
{
    int32_t a, b, c, d;

    if (r->end - in < 4)
        return -1;
    a = hex_digits[in[0]] - 1;
    b = hex_digits[in[1]] - 1;
    c = hex_digits[in[2]] - 1;
    d = hex_digits[in[3]] - 1;
    return (a | b | c | d) < 0 ? -1 : a << 12 | b << 8 | c << 4 | d;
}

/* After \u. A high surrogate takes the low one that follows with it; alone it stays what it is. */
static const uint8_t *read_unicode(struct reader *r, const uint8_t *in)
{
    int32_t unit = hex_unit(r, in), low;
    uint32_t code;

    if (unit < 0)
        return fail(r, in, "expected four hexadecimal digits");
    in += 4;
    code = (uint32_t)unit;
    if ((code & 0xFC00) == 0xD800 && r->end - in >= 6 && in[0] == '\\' && in[1] == 'u') {
        low = hex_unit(r, in + 2);
        if (low >= 0 && (low & 0xFC00) == 0xDC00) {
            code = 0x10000 + ((code & 0x3FF) << 10) + ((uint32_t)low & 0x3FF);
            in += 6;
        }
    }
    if (code == 0)
        r->nul_escaped = true;
    r->out += utf8_encode(code, r->out);
    return in;
}

/* What the byte after a backslash stands for; 0: nothing. */
static const uint8_t escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* After the backslash. There is room for a character. */
static inline const uint8_t *read_escape(struct reader *r, const uint8_t *in)
{
    if (UNLIKELY(in >= r->end))
        return fail(r, in, "expected an escape");
    if (*in == 'u')
        return read_unicode(r, in + 1);
    if (UNLIKELY(!escapes[*in]))
        return fail(r, in, "unknown escape");
    *r->out++ = escapes[*in];
    return in + 1;
}

/* The length of the character outside ASCII that is the first of four bytes loaded as one integer;
 * 0 if it is not well-formed. Surrogates are not. */
static inline unsigned character_length(uint32_t four)
{
    if ((four & 0xC0E0) == 0x80C0)
        return four & 0x1E ? 2 : 0; /* C0 and C1 would be overlong */
    if ((four & 0xC0C0F0) == 0x8080E0)
        return (four & 0x200F) && (four & 0x200F) != 0x200D ? 3 : 0;
    if ((four & 0xC0C0C0F8) == 0x808080F0)
        return (four & 0x3007) && (!(four & 4) || !(four & 0x3003)) ? 4 : 0;
    return 0;
}

/* A character outside ASCII right at the end of the text. */
static const uint8_t *read_last(struct reader *r, const uint8_t *in)
{
    size_t length = utf8_length(in, r->end);

    if (!length || (*in == 0xED && in[1] >= 0xA0))
        return fail(r, in, "invalid UTF-8");
    memcpy(r->out, in, length);
    r->out += length;
    return in + length;
}

/* Escapes in a row, from the first backslash. There is room for RUN bytes. */
static inline const uint8_t *read_escapes(struct reader *r, const uint8_t *in)
{
    const uint8_t *out_last = r->out + RUN - 4;

    do {
        in = read_escape(r, in + 1);
    } while (in && next_is(r, in, '\\') && r->out <= out_last);
    return in;
}

/* Characters outside ASCII in a row, at least four bytes before the end of the text. There is room
 * for RUN bytes. */
static inline const uint8_t *read_characters(struct reader *r, const uint8_t *in)
{
    const uint8_t *const end = r->end - 4;
    uint8_t *out = r->out, *out_last = out + RUN - 4;

    do {
        uint32_t four = bytes_get_le32(in);
        unsigned length = character_length(four);

        if (UNLIKELY(!length))
            return fail(r, in, "invalid UTF-8");
        memcpy(out, in, 4);
        out += length;
        in += length;
    } while (in <= end && *in >= 0x80 && out <= out_last);
    r->out = out;
    return in;
}

/* What is neither plain nor the end. There is room for RUN bytes. */
static inline const uint8_t *read_special(struct reader *r, const uint8_t *in)
{
    if (UNLIKELY(in >= r->end))
        return fail(r, in, "expected the end of a string");
    if (*in == '\\')
        return read_escapes(r, in);
    if (*in >= 0x80)
        return LIKELY(r->end - in >= 4) ? read_characters(r, in) : read_last(r, in);
    if (UNLIKELY(*in < 0x20))
        return fail(r, in, "control character in a string");
    *r->out++ = *in; /* one of the last few of the text */
    return in + 1;
}

/* After the opening quote; writes the content without terminator. */
static const uint8_t *read_string(struct reader *r, const uint8_t *in)
{
    const uint8_t *const end = r->end;

    for (;;) {
        uint8_t *out = r->out;

        while (LIKELY(end - in >= SCAN_STEP)) {
            unsigned plain;

            if (UNLIKELY(r->out_end - out < 2 * SCAN_STEP)) {
                r->out = out;
                if (!grow(r, 2 * SCAN_STEP))
                    return NULL;
                out = r->out;
            }
            plain = scan_read(in);
            memcpy(out, in, SCAN_STEP);
            in += plain;
            out += plain;
            if (plain < SCAN_STEP)
                break;
        }
        r->out = out;
        if (LIKELY(in < end) && *in == '"')
            return in + 1;
        if (!room(r, RUN))
            return NULL;
        in = read_special(r, in);
        if (UNLIKELY(!in))
            return NULL;
    }
}
