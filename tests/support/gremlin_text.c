#include "support/gremlin_text.h"

#include "document/double.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"

#include <math.h>

static void string_write(struct slice text, struct buf *buf)
{
    buf_append_byte(buf, '\'');
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];

        if (c == '\'' || c == '\\')
            buf_append_byte(buf, '\\');
        if (c < 0x20)
            buf_printf(buf, "\\u%04x", c);
        else if (c == 0xED && i + 2 < text.len && text.data[i + 1] >= 0xA0) { /* a surrogate */
            buf_printf(buf, "\\u%04x",
                       0xD000u | (text.data[i + 1] & 0x3Fu) << 6 | (text.data[i + 2] & 0x3Fu));
            i += 2;
        } else
            buf_append_byte(buf, c);
    }
    buf_append_byte(buf, '\'');
}

static void real_write(double real, char suffix, struct buf *buf)
{
    char text[DOUBLE_TEXT_MAX];

    if (isnan(real)) {
        BUF_APPEND(buf, "NaN");
    } else if (isinf(real)) {
        buf_append_text(buf, real < 0 ? "-Infinity" : "Infinity");
    } else {
        buf_append(buf, text, double_to_text(real, text));
        buf_append_byte(buf, (uint8_t)suffix);
    }
}

static void items_write(const struct gremlin_value *items, size_t count, struct buf *buf)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(buf, ", ");
        gremlin_text_value(items[i], buf);
    }
}

static void table_write(struct gremlin_value value, struct buf *buf)
{
    const struct gremlin_table *table = gremlin_table(value);
    bool map = value.type == GREMLIN_MAP;

    buf_append_text(buf, map ? "[" : "{");
    if (map && !table->count)
        BUF_APPEND(buf, ":");
    for (uint32_t i = 0; i < table->count; i++) {
        if (i)
            BUF_APPEND(buf, ", ");
        if (map)
            BUF_APPEND(buf, "(");
        gremlin_text_value(table->rows[i].key, buf);
        if (map) {
            BUF_APPEND(buf, "): ");
            gremlin_text_value(table->rows[i].value, buf);
        }
    }
    buf_append_text(buf, map ? "]" : "}");
}

static void predicate_write(const struct gremlin_predicate *predicate, struct buf *buf)
{
    bool listed;

    if (predicate->name == GREMLIN_P_AND || predicate->name == GREMLIN_P_OR) {
        gremlin_text_value(predicate->values[0], buf);
        for (uint32_t i = 1; i < predicate->count; i++) {
            buf_printf(buf, ".%.*s(", SLICE_ARG(gremlin_predicate_text(predicate->name)));
            gremlin_text_value(predicate->values[i], buf);
            BUF_APPEND(buf, ")");
        }
        return;
    }
    buf_printf(buf, "%s.%.*s(", gremlin_predicate_of_text(predicate->name) ? "TextP" : "P",
               SLICE_ARG(gremlin_predicate_text(predicate->name)));
    listed = predicate->listed &&
             (predicate->name == GREMLIN_P_WITHIN || predicate->name == GREMLIN_P_WITHOUT);
    if (listed)
        BUF_APPEND(buf, "[");
    items_write(predicate->values, predicate->count, buf);
    if (listed)
        BUF_APPEND(buf, "]");
    BUF_APPEND(buf, ")");
}

static void strategy_write(const struct gremlin_strategy *strategy, struct buf *buf)
{
    const struct gremlin_table *table = gremlin_table(strategy->configuration);

    buf_append_slice(buf, gremlin_bytes(strategy->name));
    if (!table->count)
        return;
    BUF_APPEND(buf, ".build()");
    for (uint32_t i = 0; i < table->count; i++) {
        BUF_APPEND(buf, ".with(");
        gremlin_text_value(table->rows[i].key, buf);
        BUF_APPEND(buf, ", ");
        gremlin_text_value(table->rows[i].value, buf);
        BUF_APPEND(buf, ")");
    }
    BUF_APPEND(buf, ".create()");
}

static void word_write(struct gremlin_enum word, struct buf *buf)
{
    buf_printf(buf, "%.*s.%.*s",
               SLICE_ARG(gremlin_family_name((enum gremlin_enum_family)word.family)),
               SLICE_ARG(gremlin_word_text(word)));
}

void gremlin_text_value(struct gremlin_value value, struct buf *buf)
{
    char uuid[GREMLIN_UUID_TEXT];

    switch (value.type) {
    case GREMLIN_NULL:
        BUF_APPEND(buf, "null");
        break;
    case GREMLIN_BOOLEAN:
        buf_append_text(buf, value.boolean ? "true" : "false");
        break;
    case GREMLIN_BYTE:
        buf_printf(buf, "%lldb", (long long)value.integer);
        break;
    case GREMLIN_SHORT:
        buf_printf(buf, "%llds", (long long)value.integer);
        break;
    case GREMLIN_INT:
        buf_printf(buf, "%lld", (long long)value.integer);
        break;
    case GREMLIN_LONG:
        buf_printf(buf, "%lldL", (long long)value.integer);
        break;
    case GREMLIN_FLOAT:
        real_write(value.real, 'f', buf);
        break;
    case GREMLIN_DOUBLE:
        real_write(value.real, 'd', buf);
        break;
    case GREMLIN_DATE:
        buf_printf(buf, "new Date(%lldL)", (long long)value.integer);
        break;
    case GREMLIN_ENUM:
        word_write(value.word, buf);
        break;
    case GREMLIN_BIG_INTEGER:
        buf_printf(buf, "%.*sn", SLICE_ARG(gremlin_bytes(value)));
        break;
    case GREMLIN_BIG_DECIMAL:
        buf_printf(buf, "%.*sm", SLICE_ARG(gremlin_bytes(value)));
        break;
    case GREMLIN_STRING:
        string_write(gremlin_bytes(value), buf);
        break;
    case GREMLIN_CLASS:
        buf_append_slice(buf, gremlin_bytes(value));
        break;
    case GREMLIN_UUID:
        gremlin_uuid_format(gremlin_bytes(value).data, uuid);
        buf_printf(buf, "UUID('%.*s')", GREMLIN_UUID_TEXT, uuid);
        break;
    case GREMLIN_LIST:
        BUF_APPEND(buf, "[");
        items_write(gremlin_list(value)->items, gremlin_list(value)->count, buf);
        BUF_APPEND(buf, "]");
        break;
    case GREMLIN_SET:
    case GREMLIN_MAP:
        table_write(value, buf);
        break;
    case GREMLIN_PREDICATE:
        predicate_write(gremlin_predicate(value), buf);
        break;
    case GREMLIN_STRATEGY:
        strategy_write(gremlin_strategy(value), buf);
        break;
    case GREMLIN_TRAVERSAL:
        gremlin_text_traversal(gremlin_traversal(value), buf);
        break;
    case GREMLIN_CARDINAL:
        word_write(gremlin_word(gremlin_cardinal(value)->cardinality).word, buf);
        BUF_APPEND(buf, "(");
        gremlin_text_value(gremlin_cardinal(value)->value, buf);
        BUF_APPEND(buf, ")");
        break;
    case GREMLIN_VERTEX:
        BUF_APPEND(buf, "new Vertex(");
        gremlin_text_value(gremlin_element(value)->id, buf);
        BUF_APPEND(buf, ", ");
        gremlin_text_value(gremlin_element(value)->label, buf);
        BUF_APPEND(buf, ")");
        break;
    default: /* no script makes it */
        buf_printf(buf, "<type %d>", (int)value.type);
    }
}

static void instructions_write(const struct gremlin_instructions *instructions, struct buf *buf)
{
    for (uint32_t i = 0; i < instructions->count; i++) {
        const struct gremlin_instruction *instruction = &instructions->items[i];

        buf_printf(buf, ".%.*s", SLICE_ARG(instruction->name));
        if (slice_equal(instruction->name, SLICE("tx"))) {
            BUF_APPEND(buf, "().");
            buf_append_slice(buf, gremlin_bytes(instruction->arguments[0]));
            BUF_APPEND(buf, "()");
            continue;
        }
        BUF_APPEND(buf, "(");
        items_write(instruction->arguments, instruction->count, buf);
        BUF_APPEND(buf, ")");
    }
}

void gremlin_text_traversal(const struct gremlin_traversal *traversal, struct buf *buf)
{
    static const char *const terminals[] = {
        [GREMLIN_TO_LIST] = "",
        [GREMLIN_TO_SET] = ".toSet()",
        [GREMLIN_NEXT] = ".next(",
        [GREMLIN_TO_BULK_SET] = ".toBulkSet()",
        [GREMLIN_ITERATE] = ".iterate()",
        [GREMLIN_HAS_NEXT] = ".hasNext()",
        [GREMLIN_TRY_NEXT] = ".tryNext()",
        [GREMLIN_EXPLAIN] = ".explain()",
    };

    buf_append_text(buf, traversal->spawned ? "g" : "__");
    instructions_write(&traversal->sources, buf);
    instructions_write(&traversal->steps, buf);
    if (!traversal->spawned && !traversal->steps.count)
        BUF_APPEND(buf, ".start()");
    buf_append_text(buf, terminals[traversal->terminal]);
    if (traversal->terminal == GREMLIN_NEXT)
        buf_printf(buf, "%lluL)", (unsigned long long)traversal->amount);
}
