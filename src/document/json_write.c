/* One pass from BSON to text, into memory asked for a step ahead: each small thing is written
 * without a check of its own once `room` has said yes. When the buffer meets its maximum the writer
 * stops where it is; the caller sees buf_overflowed.
 *
 * The recursion follows documents that were validated, so its depth is bounded. */
#include "document/json.h"

#include "base/bytes.h"
#include "document/bson_private.h"
#include "document/decimal.h"
#include "document/json_number.h"
#include "document/scan.h"
#include "document/utf8.h"

#include <math.h>

struct writer {
    struct buf *buf;
    uint8_t *out, *out_end;
    const uint8_t *in_end; /* up to here may be read, so that scanning need not stop short */
};

static void write_document(struct writer *w, struct slice document, bool array, uint32_t depth);
static void write_value(struct writer *w, const struct document_value *value, uint32_t depth);
static void write_extended(struct writer *w, const struct document_value *value, uint32_t depth);
static void write_string(struct writer *w, struct slice text);
static void write_double(struct writer *w, double number);

static struct writer writer_at(struct buf *buf, const uint8_t *in_end)
{
    if (!buf->data) /* no arithmetic on NULL */
        return (struct writer){.buf = buf, .in_end = in_end};
    return (struct writer){buf, buf->data + buf->len, buf->data + buf->capacity, in_end};
}

static void writer_finish(struct writer *w)
{
    w->buf->len = (size_t)(w->out - w->buf->data);
}

/* False from the first time on that the maximum is met. */
static bool grow(struct writer *w, size_t count)
{
    writer_finish(w);
    if (buf_overflowed(w->buf) || !buf_reserve(w->buf, count))
        return false;
    *w = writer_at(w->buf, w->in_end);
    return true;
}

static inline bool room(struct writer *w, size_t count)
{
    return LIKELY((size_t)(w->out_end - w->out) >= count) || grow(w, count);
}

static inline void put(struct writer *w, uint8_t byte)
{
    if (room(w, 1))
        *w->out++ = byte;
}

static inline void put_bytes(struct writer *w, const void *bytes, size_t len)
{
    if (room(w, len) && len) {
        memcpy(w->out, bytes, len);
        w->out += len;
    }
}

#define PUT(w, literal) put_bytes((w), "" literal, sizeof(literal) - 1)

void document_json_write(struct slice document, struct buf *buf)
{
    struct writer w = writer_at(buf, document.data + document.len);

    if (document.len < buf->max - buf->len)
        (void)room(&w, document.len); /* a fair guess, to grow less often */
    write_document(&w, document, false, 1);
    writer_finish(&w);
}

void document_json_write_value(const struct document_value *value, struct buf *buf)
{
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;
    struct writer w = writer_at(buf, nested ? value->document.data + value->document.len : NULL);

    write_value(&w, value, 0);
    writer_finish(&w);
}

void document_json_write_string(struct slice text, struct buf *buf)
{
    struct writer w = writer_at(buf, NULL);

    write_string(&w, text);
    writer_finish(&w);
}

static void write_document(struct writer *w, struct slice document, bool array, uint32_t depth)
{
    struct document_iter iter;
    bool first = true;

    assert(depth <= DOCUMENT_DEPTH_MAX + 1); /* one more: a wrapped value */
    put(w, array ? '[' : '{');
    document_iter_init(&iter, document);
    while (bson_iter_step(&iter)) {
        if (!first)
            put(w, ',');
        first = false;
        if (!array) {
            write_string(w, iter.key);
            put(w, ':');
        }
        write_value(w, &iter.value, depth);
    }
    put(w, array ? ']' : '}');
}

/* --- Numbers --------------------------------------------------------------------------------- */

static void write_unsigned(struct writer *w, uint64_t number)
{
    if (room(w, JSON_NUMBER_MAX))
        w->out = json_number_write_unsigned(w->out, number);
}

static void write_integer(struct writer *w, int64_t number)
{
    if (room(w, JSON_NUMBER_MAX))
        w->out = json_number_write_integer(w->out, number);
}

static void write_not_finite(struct writer *w, double number)
{
    if (isnan(number))
        PUT(w, "{\"$numberDouble\":\"NaN\"}");
    else if (number > 0)
        PUT(w, "{\"$numberDouble\":\"Infinity\"}");
    else
        PUT(w, "{\"$numberDouble\":\"-Infinity\"}");
}

static void write_double(struct writer *w, double number)
{
    if (UNLIKELY(!isfinite(number)))
        write_not_finite(w, number);
    else if (room(w, JSON_NUMBER_MAX))
        w->out = json_number_write_double(w->out, number);
}

/* --- Strings --------------------------------------------------------------------------------- */

static void write_escape(struct writer *w, uint8_t byte)
{
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};

    switch (byte) {
    case '"':
        PUT(w, "\\\"");
        break;
    case '\\':
        PUT(w, "\\\\");
        break;
    case '\b':
        PUT(w, "\\b");
        break;
    case '\f':
        PUT(w, "\\f");
        break;
    case '\n':
        PUT(w, "\\n");
        break;
    case '\r':
        PUT(w, "\\r");
        break;
    case '\t':
        PUT(w, "\\t");
        break;
    default:
        put_bytes(w, escape, sizeof escape);
    }
}

static void write_surrogate(struct writer *w, const uint8_t *at)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t unit = 0xD000 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    char escape[6] = {
        '\\', 'u', 'd', hex[unit >> 8 & 15], hex[unit >> 4 & 15], hex[unit & 15],
    };

    put_bytes(w, escape, sizeof escape);
}

/* One byte that may need an escape, or one of the last few. Gives what follows it. */
static const uint8_t *write_character(struct writer *w, const uint8_t *at, const uint8_t *end)
{
    if (utf8_is_high_surrogate(at, end) || utf8_is_low_surrogate(at, end)) {
        write_surrogate(w, at);
        return at + 3;
    }
    if (*at < 0x20 || *at == '"' || *at == '\\')
        write_escape(w, *at);
    else
        put(w, *at);
    return at + 1;
}

/* Bytes after the text may be scanned and copied along, as far as in_end and the room go. In a
 * document each text is followed by a NUL, at which the scan stops, so they are not counted. A
 * short text so takes one step, and only the last of a document goes by bytes. */
static void write_string(struct writer *w, struct slice text)
{
    const uint8_t *at = text.data, *end = text.len ? text.data + text.len : at;
    const uint8_t *in_end = MAX(w->in_end, end);

    put(w, '"');
    while (at < end) {
        while (in_end - at >= SCAN_STEP) {
            unsigned plain;

            if (!room(w, SCAN_STEP + 1))
                return;
            plain = scan_write(at);
            memcpy(w->out, at, SCAN_STEP);
            w->out += plain;
            at += plain;
            if (at == end) {
                *w->out++ = '"';
                return;
            }
            if (plain < SCAN_STEP)
                break;
        }
        at = write_character(w, at, end);
    }
    put(w, '"');
}

/* --- Values ---------------------------------------------------------------------------------- */

static void write_value(struct writer *w, const struct document_value *value, uint32_t depth)
{
    switch (value->type) {
    case DOCUMENT_STRING:
        write_string(w, value->text);
        break;
    case DOCUMENT_INT32:
        write_integer(w, value->int32);
        break;
    case DOCUMENT_INT64:
        write_integer(w, value->int64);
        break;
    case DOCUMENT_DOUBLE:
        write_double(w, value->number);
        break;
    case DOCUMENT_BOOL:
        if (value->boolean)
            PUT(w, "true");
        else
            PUT(w, "false");
        break;
    case DOCUMENT_NULL:
        PUT(w, "null");
        break;
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        write_document(w, value->document, value->type == DOCUMENT_ARRAY, depth + 1);
        break;
    default:
        write_extended(w, value, depth);
    }
}

static void write_hex(struct writer *w, const uint8_t *bytes, size_t len)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        put(w, (uint8_t)hex[bytes[i] >> 4]);
        put(w, (uint8_t)hex[bytes[i] & 15]);
    }
}

static void write_base64(struct writer *w, struct slice bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t rest = bytes.len - i;
        uint32_t three = (uint32_t)bytes.data[i] << 16 |
                         (rest > 1 ? (uint32_t)bytes.data[i + 1] << 8 : 0) |
                         (rest > 2 ? bytes.data[i + 2] : 0);

        put(w, (uint8_t)digits[three >> 18]);
        put(w, (uint8_t)digits[three >> 12 & 63]);
        put(w, rest > 1 ? (uint8_t)digits[three >> 6 & 63] : '=');
        put(w, rest > 2 ? (uint8_t)digits[three & 63] : '=');
    }
}

static void write_object_id(struct writer *w, const uint8_t *id)
{
    PUT(w, "{\"$oid\":\"");
    write_hex(w, id, DOCUMENT_OBJECT_ID_SIZE);
    PUT(w, "\"}");
}

static void write_decimal(struct writer *w, struct document_decimal decimal)
{
    char text[DECIMAL_TEXT_MAX];

    PUT(w, "{\"$numberDecimal\":\"");
    put_bytes(w, text, decimal_to_text(decimal, text));
    PUT(w, "\"}");
}

static void write_code(struct writer *w, struct slice code, const struct slice *scope,
                       uint32_t depth)
{
    PUT(w, "{\"$code\":");
    write_string(w, code);
    if (scope) {
        PUT(w, ",\"$scope\":");
        write_document(w, *scope, false, depth + 1);
    }
    put(w, '}');
}

/* What JSON has no type for. */
static void write_extended(struct writer *w, const struct document_value *value, uint32_t depth)
{
    switch (value->type) {
    case DOCUMENT_BINARY:
        PUT(w, "{\"$binary\":{\"base64\":\"");
        write_base64(w, value->binary.bytes);
        PUT(w, "\",\"subType\":\"");
        write_hex(w, &value->binary.subtype, 1);
        PUT(w, "\"}}");
        break;
    case DOCUMENT_UNDEFINED:
        PUT(w, "{\"$undefined\":true}");
        break;
    case DOCUMENT_OBJECT_ID:
        write_object_id(w, value->id);
        break;
    case DOCUMENT_DATE:
        PUT(w, "{\"$date\":{\"$numberLong\":\"");
        write_integer(w, value->int64);
        PUT(w, "\"}}");
        break;
    case DOCUMENT_REGEX:
        PUT(w, "{\"$regularExpression\":{\"pattern\":");
        write_string(w, value->regex.pattern);
        PUT(w, ",\"options\":");
        write_string(w, value->regex.options);
        PUT(w, "}}");
        break;
    case DOCUMENT_DB_POINTER:
        PUT(w, "{\"$dbPointer\":{\"$ref\":");
        write_string(w, value->pointer.collection);
        PUT(w, ",\"$id\":");
        write_object_id(w, value->pointer.id);
        PUT(w, "}}");
        break;
    case DOCUMENT_CODE:
        write_code(w, value->text, NULL, depth);
        break;
    case DOCUMENT_SYMBOL:
        PUT(w, "{\"$symbol\":");
        write_string(w, value->text);
        put(w, '}');
        break;
    case DOCUMENT_CODE_WITH_SCOPE:
        write_code(w, value->scoped.code, &value->scoped.scope, depth);
        break;
    case DOCUMENT_TIMESTAMP:
        PUT(w, "{\"$timestamp\":{\"t\":");
        write_unsigned(w, value->timestamp >> 32);
        PUT(w, ",\"i\":");
        write_unsigned(w, value->timestamp & UINT32_MAX);
        PUT(w, "}}");
        break;
    case DOCUMENT_DECIMAL128:
        write_decimal(w, value->decimal);
        break;
    case DOCUMENT_MIN_KEY:
        PUT(w, "{\"$minKey\":1}");
        break;
    case DOCUMENT_MAX_KEY:
        PUT(w, "{\"$maxKey\":1}");
        break;
    default:
        assert(!"a type that JSON has was taken for one it lacks");
    }
}
