#include "front/mongo/text.h"

#include "document/decimal.h"
#include "document/json.h"

#include <stdio.h>

enum { MESSAGE_VALUE_MAX = 300 }; /* of a value within a message */

const char *mongo_type_name(enum document_type type)
{
    switch (type) {
    case DOCUMENT_DOUBLE:
        return "double";
    case DOCUMENT_STRING:
        return "string";
    case DOCUMENT_OBJECT:
        return "object";
    case DOCUMENT_ARRAY:
        return "array";
    case DOCUMENT_BINARY:
        return "binData";
    case DOCUMENT_UNDEFINED:
        return "undefined";
    case DOCUMENT_OBJECT_ID:
        return "objectId";
    case DOCUMENT_BOOL:
        return "bool";
    case DOCUMENT_DATE:
        return "date";
    case DOCUMENT_NULL:
        return "null";
    case DOCUMENT_REGEX:
        return "regex";
    case DOCUMENT_DB_POINTER:
        return "dbPointer";
    case DOCUMENT_CODE:
        return "javascript";
    case DOCUMENT_SYMBOL:
        return "symbol";
    case DOCUMENT_CODE_WITH_SCOPE:
        return "javascriptWithScope";
    case DOCUMENT_INT32:
        return "int";
    case DOCUMENT_TIMESTAMP:
        return "timestamp";
    case DOCUMENT_INT64:
        return "long";
    case DOCUMENT_DECIMAL128:
        return "decimal";
    case DOCUMENT_MIN_KEY:
        return "minKey";
    case DOCUMENT_MAX_KEY:
        return "maxKey";
    }
    return "unknown";
}

static void hex_append(struct buf *buf, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(buf, "%02x", bytes.data[i]);
}

static void number_append(struct buf *buf, double number)
{
    /* A whole double shows as one: 1.0. */
    if (number == (double)(int64_t)MIN(MAX(number, -1e15), 1e15))
        buf_printf(buf, "%.1f", number);
    else
        buf_printf(buf, "%.15g", number);
}

static void append_within(struct buf *buf, const struct document_value *value, size_t end);

static void nested_append(struct buf *buf, const struct document_value *value, size_t end)
{
    bool object = value->type == DOCUMENT_OBJECT, first = true;
    struct document_iter iter;

    BUF_APPEND(buf, "[");
    if (object)
        buf->data[buf->len - 1] = '{';
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter) && buf->len < end) {
        buf_append_text(buf, first ? " " : ", ");
        first = false;
        if (object) {
            buf_append_slice(buf, iter.key);
            BUF_APPEND(buf, ": ");
        }
        append_within(buf, &iter.value, end);
    }
    buf_append_text(buf, first ? "" : " ");
    buf_append_text(buf, object ? "}" : "]");
}

static void append_within(struct buf *buf, const struct document_value *value, size_t end)
{
    char text[DECIMAL_TEXT_MAX];

    switch (value->type) {
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        nested_append(buf, value, end);
        return;
    case DOCUMENT_DOUBLE:
        number_append(buf, value->number);
        return;
    case DOCUMENT_DECIMAL128:
        buf_append(buf, text, decimal_to_text(value->decimal, text));
        return;
    case DOCUMENT_OBJECT_ID:
        BUF_APPEND(buf, "ObjectId('");
        hex_append(buf, slice_of(value->id, DOCUMENT_OBJECT_ID_SIZE));
        BUF_APPEND(buf, "')");
        return;
    case DOCUMENT_DATE:
        buf_printf(buf, "new Date(%lld)", (long long)value->int64);
        return;
    case DOCUMENT_TIMESTAMP:
        buf_printf(buf, "Timestamp(%u, %u)", (unsigned)(value->timestamp >> 32),
                   (unsigned)value->timestamp);
        return;
    case DOCUMENT_BINARY:
        buf_printf(buf, "BinData(%u, ", value->binary.subtype);
        hex_append(buf, slice_first(value->binary.bytes, MIN(value->binary.bytes.len, end)));
        BUF_APPEND(buf, ")");
        return;
    case DOCUMENT_REGEX:
        buf_printf(buf, "/%.*s/%.*s", SLICE_ARG(value->regex.pattern),
                   SLICE_ARG(value->regex.options));
        return;
    case DOCUMENT_MIN_KEY:
        BUF_APPEND(buf, "MinKey");
        return;
    case DOCUMENT_MAX_KEY:
        BUF_APPEND(buf, "MaxKey");
        return;
    case DOCUMENT_UNDEFINED:
        BUF_APPEND(buf, "undefined");
        return;
    default:
        document_json_write_value(value, buf);
    }
}

/* Back to where a character begins, so that a message stays UTF-8. */
static size_t whole_characters(const struct buf *buf, size_t len)
{
    while (len > 0 && (buf->data[len] & 0xC0) == 0x80)
        len--;
    return len;
}

void mongo_text_append(struct buf *buf, const struct document_value *value, size_t max)
{
    size_t end = buf->len + max;

    append_within(buf, value, end);
    if (buf->len > end) {
        buf->len = whole_characters(buf, end);
        BUF_APPEND(buf, "...");
    }
}

struct slice mongo_text_value(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    mongo_text_append(&buf, value, MESSAGE_VALUE_MAX);
    return arena_copy(arena, buf_slice(&buf));
}

struct slice mongo_text_element(struct slice name, const struct document_value *value,
                                struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    BUF_APPEND(&buf, "{");
    buf_append_slice(&buf, slice_first(name, MIN(name.len, (size_t)MESSAGE_VALUE_MAX)));
    BUF_APPEND(&buf, ": ");
    mongo_text_append(&buf, value, MESSAGE_VALUE_MAX);
    BUF_APPEND(&buf, "}");
    return arena_copy(arena, buf_slice(&buf));
}
