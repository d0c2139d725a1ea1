/* Values as Java's toString writes them. */
#include "front/gremlin/value/text.h"

#include "document/double.h"
#include "document/utf8.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/traversal.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DEPTH_MAX = 128,
    PROPERTY_CHARACTERS = 20, /* of a property's value, cut to this with dots */
};

static void write_text(struct gremlin_value value, struct buf *buf, int depth);

const char *gremlin_type_name(enum gremlin_type type)
{
    static const char *const names[] = {
        [GREMLIN_NULL] = "null",
        [GREMLIN_BOOLEAN] = "Boolean",
        [GREMLIN_BYTE] = "Byte",
        [GREMLIN_SHORT] = "Short",
        [GREMLIN_INT] = "Integer",
        [GREMLIN_LONG] = "Long",
        [GREMLIN_FLOAT] = "Float",
        [GREMLIN_DOUBLE] = "Double",
        [GREMLIN_CHAR] = "Character",
        [GREMLIN_DATE] = "Date",
        [GREMLIN_TIMESTAMP] = "Timestamp",
        [GREMLIN_ENUM] = "Enum",
        [GREMLIN_BIG_INTEGER] = "BigInteger",
        [GREMLIN_BIG_DECIMAL] = "BigDecimal",
        [GREMLIN_STRING] = "String",
        [GREMLIN_UUID] = "UUID",
        [GREMLIN_BINARY] = "ByteBuffer",
        [GREMLIN_CLASS] = "Class",
        [GREMLIN_DATE_TIME] = "OffsetDateTime",
        [GREMLIN_DURATION] = "Duration",
        [GREMLIN_TEMPORAL] = "Temporal",
        [GREMLIN_LIST] = "List",
        [GREMLIN_SET] = "Set",
        [GREMLIN_BULK_SET] = "BulkSet",
        [GREMLIN_MAP] = "Map",
        [GREMLIN_ENTRY] = "Entry",
        [GREMLIN_VERTEX] = "Vertex",
        [GREMLIN_EDGE] = "Edge",
        [GREMLIN_VERTEX_PROPERTY] = "VertexProperty",
        [GREMLIN_PROPERTY] = "Property",
        [GREMLIN_PATH] = "Path",
        [GREMLIN_TREE] = "Tree",
        [GREMLIN_GRAPH] = "Graph",
        [GREMLIN_TRAVERSER] = "Traverser",
        [GREMLIN_PREDICATE] = "P",
        [GREMLIN_TRAVERSAL] = "Traversal",
        [GREMLIN_STRATEGY] = "TraversalStrategy",
        [GREMLIN_CARDINAL] = "CardinalityValue",
        [GREMLIN_LAMBDA] = "Lambda",
        [GREMLIN_METRICS] = "TraversalMetrics",
        [GREMLIN_EXPLANATION] = "TraversalExplanation",
    };

    return type < ARRAY_LEN(names) ? names[type] : "value";
}

/* --- Numbers ---------------------------------------------------------------------------------- */

struct slice gremlin_float_digits(float number, char room[32])
{
    int count = 0;

    for (int precision = 6; precision <= 9; precision++) {
        count = snprintf(room, 32, "%.*g", precision, (double)number);
        if (strtof(room, NULL) == number)
            break;
    }
    return slice_of(room, (size_t)count);
}

/* The digits of a number's shortest text, and where its point is: 0.ddd * 10^point. */
static size_t digits_of(struct slice text, char digits[32], int *ret_point)
{
    int before = 0, exponent = 0;
    bool point = false;
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];

        if (c == '.') {
            point = true;
        } else if (c == 'e' || c == 'E') {
            exponent = (int)strtol((const char *)text.data + i + 1, NULL, 10);
            break;
        } else if (c >= '0' && c <= '9') {
            if (!count && c == '0') {
                before -= point;
                continue;
            }
            digits[count++] = (char)c;
            before += !point;
        }
    }
    while (count && digits[count - 1] == '0')
        count--;
    *ret_point = before + exponent;
    return count;
}

/* Plain from 0.001 up to ten million, in scientific notation beyond, as Java does. */
static void java_write(bool negative, const char *digits, size_t count, int point, struct buf *buf)
{
    if (negative)
        BUF_APPEND(buf, "-");
    if (!count) {
        BUF_APPEND(buf, "0.0");
        return;
    }
    if (point > 7 || point < -2) {
        buf_append(buf, digits, 1);
        BUF_APPEND(buf, ".");
        buf_append(buf, count > 1 ? digits + 1 : "0", count > 1 ? count - 1 : 1);
        buf_printf(buf, "E%d", point - 1);
        return;
    }
    if (point <= 0)
        BUF_APPEND(buf, "0");
    for (int i = 0; i < point; i++)
        buf_append_byte(buf, (size_t)i < count ? (uint8_t)digits[i] : '0');
    BUF_APPEND(buf, ".");
    for (int i = point; i < 0; i++)
        BUF_APPEND(buf, "0");
    if (point < (int)count)
        buf_append(buf, digits + MAX(point, 0), count - (size_t)MAX(point, 0));
    else
        BUF_APPEND(buf, "0");
}

void gremlin_real_write(struct gremlin_value real, struct buf *buf)
{
    char room[DOUBLE_TEXT_MAX + 1], digits[32];
    struct slice text;
    size_t count;
    int point;

    if (isnan(real.real)) {
        BUF_APPEND(buf, "NaN");
        return;
    }
    if (isinf(real.real)) {
        buf_append_text(buf, real.real < 0 ? "-Infinity" : "Infinity");
        return;
    }
    if (real.type == GREMLIN_FLOAT) {
        text = gremlin_float_digits((float)real.real, room);
    } else {
        count = double_to_text(real.real, room);
        room[count] = '\0';
        text = slice_of(room, count);
    }
    count = digits_of(text, digits, &point);
    java_write(signbit(real.real), digits, count, point, buf);
}

/* --- Containers and elements ------------------------------------------------------------------ */

static void list_write(const struct gremlin_list *list, struct buf *buf, int depth)
{
    BUF_APPEND(buf, "[");
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            BUF_APPEND(buf, ", ");
        write_text(list->items[i], buf, depth);
    }
    BUF_APPEND(buf, "]");
}

static void table_write(const struct gremlin_table *table, struct buf *buf, int depth)
{
    bool pairs = table->object.type != GREMLIN_SET;

    buf_append_byte(buf, pairs ? '{' : '[');
    for (size_t i = 0; i < table->count; i++) {
        if (i)
            BUF_APPEND(buf, ", ");
        write_text(table->rows[i].key, buf, depth);
        if (pairs) {
            BUF_APPEND(buf, "=");
            write_text(table->rows[i].value, buf, depth);
        }
    }
    buf_append_byte(buf, pairs ? '}' : ']');
}

static void path_write(const struct gremlin_path *path, struct buf *buf, int depth)
{
    CLEANUP(memory_free)
    const struct gremlin_path **nodes =
        memory_alloc(memory_array_size(path->length + 1, sizeof *nodes));

    gremlin_path_nodes(path, nodes);
    BUF_APPEND(buf, "path[");
    for (size_t i = 0; i < path->length; i++) {
        if (i)
            BUF_APPEND(buf, ", ");
        write_text(nodes[i]->value, buf, depth);
    }
    BUF_APPEND(buf, "]");
}

/* [key->value], the value cut. */
static void property_write(struct gremlin_value key, struct gremlin_value value, struct buf *buf,
                           int depth)
{
    size_t begin, at, characters = 0, cut = 0;

    BUF_APPEND(buf, "[");
    write_text(key, buf, depth);
    BUF_APPEND(buf, "->");
    begin = buf->len;
    write_text(value, buf, depth);
    for (at = begin; at < buf->len; at++)
        if (!utf8_continues(buf->data[at]) && ++characters == PROPERTY_CHARACTERS - 2)
            cut = at;
    if (characters > PROPERTY_CHARACTERS) {
        buf->len = cut;
        BUF_APPEND(buf, "...");
    }
    BUF_APPEND(buf, "]");
}

static void edge_write(const struct gremlin_edge *edge, struct buf *buf, int depth)
{
    BUF_APPEND(buf, "e[");
    write_text(edge->element.id, buf, depth);
    BUF_APPEND(buf, "][");
    write_text(edge->out.id, buf, depth);
    BUF_APPEND(buf, "-");
    write_text(edge->element.label, buf, depth);
    BUF_APPEND(buf, "->");
    write_text(edge->in.id, buf, depth);
    BUF_APPEND(buf, "]");
}

static void predicate_write(const struct gremlin_predicate *predicate, struct buf *buf, int depth)
{
    buf_append_slice(buf, gremlin_predicate_text(predicate->name));
    BUF_APPEND(buf, "(");
    for (size_t i = 0; i < predicate->count; i++) {
        if (i)
            BUF_APPEND(buf, ", ");
        write_text(predicate->values[i], buf, depth);
    }
    BUF_APPEND(buf, ")");
}

static void traversal_write(const struct gremlin_traversal *traversal, struct buf *buf, int depth)
{
    BUF_APPEND(buf, "[");
    for (size_t i = 0; i < traversal->steps.count; i++) {
        const struct gremlin_instruction *step = &traversal->steps.items[i];

        if (i)
            BUF_APPEND(buf, ", ");
        buf_append_slice(buf, step->name);
        BUF_APPEND(buf, "(");
        for (size_t j = 0; j < step->count; j++) {
            if (j)
                BUF_APPEND(buf, ", ");
            write_text(step->arguments[j], buf, depth);
        }
        BUF_APPEND(buf, ")");
    }
    BUF_APPEND(buf, "]");
}

/* --- All -------------------------------------------------------------------------------------- */

static void base64_write(struct slice bytes, struct buf *buf)
{
    size_t room = (bytes.len + 2) / 3 * 4 + 1;

    if (buf_reserve(buf, room))
        buf->len += (size_t)EVP_EncodeBlock(buf->data + buf->len, bytes.data, (int)bytes.len);
}

static void scalar_write(struct gremlin_value value, struct buf *buf)
{
    uint8_t character[4];
    char uuid[GREMLIN_UUID_TEXT];

    switch (value.type) {
    case GREMLIN_BOOLEAN:
        buf_append_text(buf, value.boolean ? "true" : "false");
        break;
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
        buf_append_int64(buf, value.integer);
        break;
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        gremlin_real_write(value, buf);
        break;
    case GREMLIN_CHAR:
        buf_append(buf, character, utf8_encode((uint32_t)value.integer, character));
        break;
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP: {
        int64_t seconds = value.integer / 1000 - (value.integer % 1000 < 0);

        gremlin_date_time_write(seconds, (int32_t)(value.integer - seconds * 1000) * 1000000, 0,
                                buf);
        break;
    }
    case GREMLIN_ENUM:
        buf_append_slice(buf, gremlin_word_text(value.word));
        break;
    case GREMLIN_UUID:
        gremlin_uuid_format(gremlin_bytes(value).data, uuid);
        buf_append(buf, uuid, sizeof uuid);
        break;
    case GREMLIN_BINARY:
        base64_write(gremlin_bytes(value), buf);
        break;
    case GREMLIN_DATE_TIME:
        gremlin_date_time_write(gremlin_date_time(value)->seconds,
                                gremlin_date_time(value)->nanoseconds,
                                gremlin_date_time(value)->offset, buf);
        break;
    case GREMLIN_DURATION:
        gremlin_duration_write(gremlin_duration(value)->seconds,
                               gremlin_duration(value)->nanoseconds, buf);
        break;
    case GREMLIN_TEMPORAL:
        buf_append_slice(buf, gremlin_temporal_text(value));
        break;
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
    case GREMLIN_STRING:
    case GREMLIN_CLASS:
        buf_append_slice(buf, gremlin_bytes(value));
        break;
    default:
        BUF_APPEND(buf, "null");
    }
}

static void write_text(struct gremlin_value value, struct buf *buf, int depth)
{
    if (depth++ == DEPTH_MAX) {
        BUF_APPEND(buf, "...");
        return;
    }
    switch (value.type) {
    case GREMLIN_LIST:
        list_write(gremlin_list(value), buf, depth);
        break;
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        table_write(gremlin_table(value), buf, depth);
        break;
    case GREMLIN_ENTRY:
        write_text(gremlin_entry(value)->key, buf, depth);
        BUF_APPEND(buf, "=");
        write_text(gremlin_entry(value)->value, buf, depth);
        break;
    case GREMLIN_VERTEX:
        BUF_APPEND(buf, "v[");
        write_text(gremlin_element(value)->id, buf, depth);
        BUF_APPEND(buf, "]");
        break;
    case GREMLIN_EDGE:
        edge_write(gremlin_edge(value), buf, depth);
        break;
    case GREMLIN_VERTEX_PROPERTY:
        BUF_APPEND(buf, "vp");
        property_write(gremlin_element(value)->label, gremlin_vertex_property(value)->value, buf,
                       depth);
        break;
    case GREMLIN_PROPERTY:
        BUF_APPEND(buf, "p");
        property_write(gremlin_property(value)->key, gremlin_property(value)->value, buf, depth);
        break;
    case GREMLIN_PATH:
        path_write(gremlin_path(value), buf, depth);
        break;
    case GREMLIN_GRAPH:
        buf_printf(buf, "graph[vertices:%u edges:%u]",
                   gremlin_table(gremlin_subgraph(value)->vertices)->count,
                   gremlin_table(gremlin_subgraph(value)->edges)->count);
        break;
    case GREMLIN_TRAVERSER:
        write_text(gremlin_traverser(value)->value, buf, depth);
        break;
    case GREMLIN_PREDICATE:
        predicate_write(gremlin_predicate(value), buf, depth);
        break;
    case GREMLIN_TRAVERSAL:
        traversal_write(gremlin_traversal(value), buf, depth);
        break;
    case GREMLIN_STRATEGY:
        write_text(gremlin_strategy(value)->name, buf, depth);
        break;
    case GREMLIN_CARDINAL:
        buf_append_slice(
            buf, gremlin_word_text(gremlin_word(gremlin_cardinal(value)->cardinality).word));
        BUF_APPEND(buf, "(");
        write_text(gremlin_cardinal(value)->value, buf, depth);
        BUF_APPEND(buf, ")");
        break;
    case GREMLIN_LAMBDA:
        write_text(gremlin_lambda(value)->script, buf, depth);
        break;
    case GREMLIN_METRICS:
    case GREMLIN_EXPLANATION:
        write_text(gremlin_report(value)->map, buf, depth);
        break;
    default:
        scalar_write(value, buf);
    }
}

void gremlin_value_write_text(struct gremlin_value value, struct buf *buf)
{
    write_text(value, buf, 0);
}

struct gremlin_value gremlin_value_text(struct gremlin_heap *heap, struct gremlin_value value)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (value.type == GREMLIN_STRING)
        return gremlin_value_ref(value);
    write_text(value, &buf, 0);
    return gremlin_string(heap, buf_slice(&buf));
}
