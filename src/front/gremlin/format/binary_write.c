/* Values and frames as GraphBinary. */
#include "front/gremlin/format/binary_private.h"

#include "base/bytes.h"
#include "document/utf8.h"
#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"
#include "front/gremlin/value/traversal.h"

static void code(struct gremlin_writer *writer, uint8_t type)
{
    if (buf_reserve(writer->buf, 2)) {
        writer->buf->data[writer->buf->len++] = type;
        writer->buf->data[writer->buf->len++] = 0;
    }
}

static void null_write(struct gremlin_writer *writer)
{
    BUF_APPEND(writer->buf, "\xfe\x01");
}

static void text_bare(struct gremlin_writer *writer, struct slice text)
{
    buf_append_be32(writer->buf, (uint32_t)text.len);
    buf_append_slice(writer->buf, text);
}

static void count_bare(struct gremlin_writer *writer, size_t count)
{
    buf_append_be32(writer->buf, (uint32_t)count);
}

/* A label or key, which is text always; one that is not known is empty. */
static void label_bare(struct gremlin_writer *writer, struct gremlin_value label)
{
    text_bare(writer, gremlin_is_string(label) ? gremlin_bytes(label) : SLICE(""));
}

/* --- Scalars ---------------------------------------------------------------------------------- */

static void real_bare(struct gremlin_writer *writer, struct gremlin_value value)
{
    uint64_t bits;
    uint32_t narrow;
    float single = (float)value.real;

    if (value.type == GREMLIN_FLOAT) {
        memcpy(&narrow, &single, sizeof narrow);
        buf_append_be32(writer->buf, narrow);
    } else {
        memcpy(&bits, &value.real, sizeof bits);
        buf_append_be64(writer->buf, bits);
    }
}

/* Year, month, day, nanoseconds of the day, offset; all of the local time. */
static void date_time_bare(struct gremlin_writer *writer, const struct gremlin_date_time *time)
{
    int64_t local = time->seconds + time->offset, days = local / 86400, year;
    int month, day;

    if (local % 86400 < 0)
        days--;
    gremlin_days_split(days, &year, &month, &day);
    buf_append_be32(writer->buf, (uint32_t)(int32_t)year);
    buf_append_byte(writer->buf, (uint8_t)month);
    buf_append_byte(writer->buf, (uint8_t)day);
    buf_append_be64(writer->buf,
                    (uint64_t)((local - days * 86400) * 1000000000 + time->nanoseconds));
    buf_append_be32(writer->buf, (uint32_t)time->offset);
}

static void enum_write(struct gremlin_writer *writer, struct gremlin_enum word)
{
    code(writer, gremlin_family_code((enum gremlin_enum_family)word.family));
    code(writer, GREMLIN_BINARY_STRING);
    text_bare(writer, gremlin_word_text(word));
}

static bool scalar_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    uint8_t character[4];

    switch (value.type) {
    case GREMLIN_NULL:
        null_write(writer);
        break;
    case GREMLIN_BOOLEAN:
        code(writer, GREMLIN_BINARY_BOOLEAN);
        buf_append_byte(writer->buf, value.boolean);
        break;
    case GREMLIN_BYTE:
        code(writer, GREMLIN_BINARY_BYTE);
        buf_append_byte(writer->buf, (uint8_t)value.integer);
        break;
    case GREMLIN_SHORT:
        code(writer, GREMLIN_BINARY_SHORT);
        buf_append_byte(writer->buf, (uint8_t)((uint64_t)value.integer >> 8));
        buf_append_byte(writer->buf, (uint8_t)value.integer);
        break;
    case GREMLIN_INT:
        code(writer, GREMLIN_BINARY_INT);
        buf_append_be32(writer->buf, (uint32_t)value.integer);
        break;
    case GREMLIN_LONG:
        code(writer, GREMLIN_BINARY_LONG);
        buf_append_be64(writer->buf, (uint64_t)value.integer);
        break;
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
        code(writer, value.type == GREMLIN_DATE ? GREMLIN_BINARY_DATE : GREMLIN_BINARY_TIMESTAMP);
        buf_append_be64(writer->buf, (uint64_t)value.integer);
        break;
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        code(writer, value.type == GREMLIN_FLOAT ? GREMLIN_BINARY_FLOAT : GREMLIN_BINARY_DOUBLE);
        real_bare(writer, value);
        break;
    case GREMLIN_CHAR:
        code(writer, GREMLIN_BINARY_CHAR);
        buf_append(writer->buf, character, utf8_encode((uint32_t)value.integer, character));
        break;
    case GREMLIN_ENUM:
        enum_write(writer, value.word);
        break;
    case GREMLIN_BIG_INTEGER:
        code(writer, GREMLIN_BINARY_BIG_INTEGER);
        gremlin_big_write_bytes(value, writer->buf);
        break;
    case GREMLIN_BIG_DECIMAL:
        code(writer, GREMLIN_BINARY_BIG_DECIMAL);
        gremlin_big_write_scaled(value, writer->buf);
        break;
    case GREMLIN_STRING:
    case GREMLIN_CLASS:
        code(writer, value.type == GREMLIN_STRING ? GREMLIN_BINARY_STRING : GREMLIN_BINARY_CLASS);
        text_bare(writer, gremlin_bytes(value));
        break;
    case GREMLIN_UUID:
        code(writer, GREMLIN_BINARY_UUID);
        buf_append_slice(writer->buf, gremlin_bytes(value));
        break;
    case GREMLIN_BINARY:
        code(writer, GREMLIN_BINARY_BYTE_BUFFER);
        text_bare(writer, gremlin_bytes(value));
        break;
    case GREMLIN_DATE_TIME:
        code(writer, GREMLIN_BINARY_OFFSET_DATE_TIME);
        date_time_bare(writer, gremlin_date_time(value));
        break;
    case GREMLIN_DURATION:
        code(writer, GREMLIN_BINARY_DURATION);
        buf_append_be64(writer->buf, (uint64_t)gremlin_duration(value)->seconds);
        buf_append_be32(writer->buf, (uint32_t)gremlin_duration(value)->nanoseconds);
        break;
    default:
        return gremlin_binary_write_temporal(writer, value);
    }
    return true;
}

/* --- Containers ------------------------------------------------------------------------------- */

static bool items_bare(struct gremlin_writer *writer, const struct gremlin_value *items,
                       size_t count)
{
    count_bare(writer, count);
    for (size_t i = 0; i < count; i++)
        if (!gremlin_binary_write(writer, items[i]) || !gremlin_writer_room(writer))
            return false;
    return true;
}

static bool keys_bare(struct gremlin_writer *writer, const struct gremlin_table *table)
{
    count_bare(writer, table->count);
    for (size_t i = 0; i < table->count; i++)
        if (!gremlin_binary_write(writer, table->rows[i].key) || !gremlin_writer_room(writer))
            return false;
    return true;
}

static bool map_bare(struct gremlin_writer *writer, const struct gremlin_table *map)
{
    count_bare(writer, map->count);
    for (size_t i = 0; i < map->count; i++)
        if (!gremlin_binary_write(writer, map->rows[i].key) ||
            !gremlin_binary_write(writer, map->rows[i].value) || !gremlin_writer_room(writer))
            return false;
    return true;
}

static bool bulk_set_bare(struct gremlin_writer *writer, const struct gremlin_table *set)
{
    count_bare(writer, set->count);
    for (size_t i = 0; i < set->count; i++) {
        if (!gremlin_binary_write(writer, set->rows[i].key) || !gremlin_writer_room(writer))
            return false;
        buf_append_be64(writer->buf, (uint64_t)set->rows[i].value.integer);
    }
    return true;
}

static bool tree_bare(struct gremlin_writer *writer, const struct gremlin_table *tree)
{
    if (!gremlin_writer_enter(writer))
        return false;
    count_bare(writer, tree->count);
    for (size_t i = 0; i < tree->count; i++)
        if (!gremlin_binary_write(writer, tree->rows[i].key) ||
            !tree_bare(writer, gremlin_table(tree->rows[i].value)) || !gremlin_writer_room(writer))
            return false;
    gremlin_writer_leave(writer);
    return true;
}

static bool entry_write(struct gremlin_writer *writer, const struct gremlin_entry *entry)
{
    code(writer, GREMLIN_BINARY_MAP);
    count_bare(writer, 1);
    return gremlin_binary_write(writer, entry->key) && gremlin_binary_write(writer, entry->value);
}

/* --- Elements --------------------------------------------------------------------------------- */

static bool property_write(struct gremlin_writer *writer, struct gremlin_value key,
                           struct gremlin_value value)
{
    code(writer, GREMLIN_BINARY_PROPERTY);
    label_bare(writer, key);
    if (!gremlin_binary_write(writer, value))
        return false;
    null_write(writer); /* its owner */
    return true;
}

static bool properties_bare(struct gremlin_writer *writer,
                            const struct gremlin_properties *properties)
{
    count_bare(writer, properties ? properties->count : 0);
    for (size_t i = 0; properties && i < properties->count; i++)
        if (!property_write(writer, properties->slots[i].key, properties->slots[i].value) ||
            !gremlin_writer_room(writer))
            return false;
    return true;
}

/* A list of properties, or null where there are none. */
static bool properties_write(struct gremlin_writer *writer,
                             const struct gremlin_properties *properties)
{
    if (!properties || !properties->count) {
        null_write(writer);
        return true;
    }
    code(writer, GREMLIN_BINARY_LIST);
    return properties_bare(writer, properties);
}

/* Of a vertex property: id, label, value, owner (null). Its own properties follow. */
static bool slot_head(struct gremlin_writer *writer, struct gremlin_value id,
                      struct gremlin_value label, struct gremlin_value value)
{
    if (!gremlin_binary_write(writer, id))
        return false;
    label_bare(writer, label);
    if (!gremlin_binary_write(writer, value))
        return false;
    null_write(writer);
    return true;
}

static bool slots_bare(struct gremlin_writer *writer, const struct gremlin_properties *properties)
{
    count_bare(writer, properties->count);
    for (size_t i = 0; i < properties->count; i++) {
        const struct gremlin_slot *slot = &properties->slots[i];

        code(writer, GREMLIN_BINARY_VERTEX_PROPERTY);
        if (!slot_head(writer, slot->id, slot->key, slot->value) ||
            !properties_write(writer, slot->meta) || !gremlin_writer_room(writer))
            return false;
    }
    return true;
}

static bool vertex_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    struct gremlin_properties *properties;
    bool fine = true;

    code(writer, GREMLIN_BINARY_VERTEX);
    if (!gremlin_binary_write(writer, gremlin_element(value)->id))
        return false;
    label_bare(writer, gremlin_element(value)->label);
    if (!gremlin_writer_properties(writer, value, &properties))
        return false;
    if (properties && properties->count) {
        code(writer, GREMLIN_BINARY_LIST);
        fine = slots_bare(writer, properties);
    } else {
        null_write(writer);
    }
    gremlin_writer_release(writer, properties);
    return fine;
}

static bool edge_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    const struct gremlin_edge *edge = gremlin_edge(value);
    struct gremlin_properties *properties;
    bool fine;

    code(writer, GREMLIN_BINARY_EDGE);
    if (!gremlin_binary_write(writer, edge->element.id))
        return false;
    label_bare(writer, edge->element.label);
    if (!gremlin_binary_write(writer, edge->in.id))
        return false;
    label_bare(writer, edge->in.label);
    if (!gremlin_binary_write(writer, edge->out.id))
        return false;
    label_bare(writer, edge->out.label);
    null_write(writer);
    if (!gremlin_writer_properties(writer, value, &properties))
        return false;
    fine = properties_write(writer, properties);
    gremlin_writer_release(writer, properties);
    return fine;
}

static bool vertex_property_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    struct gremlin_properties *meta;
    bool fine;

    code(writer, GREMLIN_BINARY_VERTEX_PROPERTY);
    if (!slot_head(writer, gremlin_element(value)->id, gremlin_element(value)->label,
                   gremlin_vertex_property(value)->value) ||
        !gremlin_writer_properties(writer, value, &meta))
        return false;
    fine = properties_write(writer, meta);
    gremlin_writer_release(writer, meta);
    return fine;
}

static bool path_write(struct gremlin_writer *writer, const struct gremlin_path *path)
{
    CLEANUP(memory_free)
    const struct gremlin_path **nodes =
        memory_alloc(memory_array_size(path->length + 1, sizeof *nodes));

    gremlin_path_nodes(path, nodes);
    code(writer, GREMLIN_BINARY_PATH);
    code(writer, GREMLIN_BINARY_LIST);
    count_bare(writer, path->length);
    for (size_t i = 0; i < path->length; i++) {
        code(writer, GREMLIN_BINARY_SET);
        if (gremlin_is_null(nodes[i]->labels))
            count_bare(writer, 0);
        else if (!keys_bare(writer, gremlin_table(nodes[i]->labels)))
            return false;
    }
    code(writer, GREMLIN_BINARY_LIST);
    count_bare(writer, path->length);
    for (size_t i = 0; i < path->length; i++)
        if (!gremlin_binary_write(writer, nodes[i]->value) || !gremlin_writer_room(writer))
            return false;
    return true;
}

/* Vertices and edges of a graph are not written as such: their properties are counted, not a list,
 * and the labels of an edge's ends are null. */
static bool graph_vertex(struct gremlin_writer *writer, struct gremlin_value value)
{
    struct gremlin_properties *properties;
    bool fine = true;

    if (!gremlin_binary_write(writer, gremlin_element(value)->id))
        return false;
    label_bare(writer, gremlin_element(value)->label);
    if (!gremlin_writer_properties(writer, value, &properties))
        return false;
    count_bare(writer, properties ? properties->count : 0);
    for (size_t i = 0; fine && properties && i < properties->count; i++) {
        const struct gremlin_slot *slot = &properties->slots[i];

        fine = slot_head(writer, slot->id, slot->key, slot->value) &&
               properties_bare(writer, slot->meta) && gremlin_writer_room(writer);
    }
    gremlin_writer_release(writer, properties);
    return fine;
}

static bool graph_edge(struct gremlin_writer *writer, struct gremlin_value value)
{
    const struct gremlin_edge *edge = gremlin_edge(value);
    struct gremlin_properties *properties;
    bool fine;

    if (!gremlin_binary_write(writer, edge->element.id))
        return false;
    label_bare(writer, edge->element.label);
    if (!gremlin_binary_write(writer, edge->in.id))
        return false;
    null_write(writer);
    if (!gremlin_binary_write(writer, edge->out.id))
        return false;
    null_write(writer);
    null_write(writer);
    if (!gremlin_writer_properties(writer, value, &properties))
        return false;
    fine = properties_bare(writer, properties);
    gremlin_writer_release(writer, properties);
    return fine;
}

static bool graph_write(struct gremlin_writer *writer, const struct gremlin_subgraph *graph)
{
    const struct gremlin_table *vertices = gremlin_table(graph->vertices);
    const struct gremlin_table *edges = gremlin_table(graph->edges);

    code(writer, GREMLIN_BINARY_GRAPH);
    count_bare(writer, vertices->count);
    for (size_t i = 0; i < vertices->count; i++)
        if (!graph_vertex(writer, vertices->rows[i].key) || !gremlin_writer_room(writer))
            return false;
    count_bare(writer, edges->count);
    for (size_t i = 0; i < edges->count; i++)
        if (!graph_edge(writer, edges->rows[i].key) || !gremlin_writer_room(writer))
            return false;
    return true;
}

/* --- Arguments, and results of bytecode ------------------------------------------------------- */

static bool traverser_write(struct gremlin_writer *writer, struct gremlin_value value, int64_t bulk)
{
    code(writer, GREMLIN_BINARY_TRAVERSER);
    buf_append_be64(writer->buf, (uint64_t)bulk);
    return gremlin_binary_write(writer, value);
}

static bool predicate_write(struct gremlin_writer *writer,
                            const struct gremlin_predicate *predicate)
{
    code(writer,
         gremlin_predicate_of_text(predicate->name) ? GREMLIN_BINARY_TEXT_P : GREMLIN_BINARY_P);
    text_bare(writer, gremlin_predicate_text(predicate->name));
    if (predicate->count == 1 &&
        (predicate->name == GREMLIN_P_WITHIN || predicate->name == GREMLIN_P_WITHOUT) &&
        (predicate->values[0].type == GREMLIN_LIST || predicate->values[0].type == GREMLIN_SET)) {
        count_bare(writer, 1); /* among the values is a list: they are told as one */
        code(writer, GREMLIN_BINARY_LIST);
    }
    return items_bare(writer, predicate->values, predicate->count);
}

static bool instructions_bare(struct gremlin_writer *writer,
                              const struct gremlin_instructions *instructions)
{
    count_bare(writer, instructions->count);
    for (size_t i = 0; i < instructions->count; i++) {
        text_bare(writer, instructions->items[i].name);
        if (!items_bare(writer, instructions->items[i].arguments, instructions->items[i].count))
            return false;
    }
    return true;
}

static bool bytecode_write(struct gremlin_writer *writer, const struct gremlin_traversal *traversal)
{
    code(writer, GREMLIN_BINARY_BYTECODE);
    return instructions_bare(writer, &traversal->steps) &&
           instructions_bare(writer, &traversal->sources);
}

static bool cardinal_write(struct gremlin_writer *writer, const struct gremlin_cardinal *cardinal)
{
    struct gremlin_value arguments[2] = {gremlin_word(cardinal->cardinality), cardinal->value};

    code(writer, GREMLIN_BINARY_BYTECODE);
    count_bare(writer, 0);
    count_bare(writer, 1);
    text_bare(writer, SLICE("CardinalityValueTraversal"));
    return items_bare(writer, arguments, 2);
}

static bool strategy_write(struct gremlin_writer *writer, const struct gremlin_strategy *strategy)
{
    code(writer, GREMLIN_BINARY_STRATEGY);
    text_bare(writer, gremlin_bytes(strategy->name));
    return map_bare(writer, gremlin_table(strategy->configuration));
}

static bool lambda_write(struct gremlin_writer *writer, const struct gremlin_lambda *lambda)
{
    code(writer, GREMLIN_BINARY_LAMBDA);
    text_bare(writer, gremlin_bytes(lambda->language));
    text_bare(writer, gremlin_bytes(lambda->script));
    buf_append_be32(writer->buf, (uint32_t)lambda->arguments);
    return true;
}

/* --- All -------------------------------------------------------------------------------------- */

static bool object_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    switch (value.type) {
    case GREMLIN_LIST:
        code(writer, GREMLIN_BINARY_LIST);
        return items_bare(writer, gremlin_list(value)->items, gremlin_list(value)->count);
    case GREMLIN_SET:
        code(writer, GREMLIN_BINARY_SET);
        return keys_bare(writer, gremlin_table(value));
    case GREMLIN_BULK_SET:
        code(writer, GREMLIN_BINARY_BULK_SET);
        return bulk_set_bare(writer, gremlin_table(value));
    case GREMLIN_MAP:
        code(writer, GREMLIN_BINARY_MAP);
        return map_bare(writer, gremlin_table(value));
    case GREMLIN_TREE:
        code(writer, GREMLIN_BINARY_TREE);
        return tree_bare(writer, gremlin_table(value));
    case GREMLIN_ENTRY:
        return entry_write(writer, gremlin_entry(value));
    case GREMLIN_VERTEX:
        return vertex_write(writer, value);
    case GREMLIN_EDGE:
        return edge_write(writer, value);
    case GREMLIN_VERTEX_PROPERTY:
        return vertex_property_write(writer, value);
    case GREMLIN_PROPERTY:
        return property_write(writer, gremlin_property(value)->key, gremlin_property(value)->value);
    case GREMLIN_PATH:
        return path_write(writer, gremlin_path(value));
    case GREMLIN_GRAPH:
        return graph_write(writer, gremlin_subgraph(value));
    case GREMLIN_TRAVERSER:
        return traverser_write(writer, gremlin_traverser(value)->value,
                               gremlin_traverser(value)->bulk);
    case GREMLIN_PREDICATE:
        return predicate_write(writer, gremlin_predicate(value));
    case GREMLIN_TRAVERSAL:
        return bytecode_write(writer, gremlin_traversal(value));
    case GREMLIN_STRATEGY:
        return strategy_write(writer, gremlin_strategy(value));
    case GREMLIN_CARDINAL:
        return cardinal_write(writer, gremlin_cardinal(value));
    case GREMLIN_LAMBDA:
        return lambda_write(writer, gremlin_lambda(value));
    default: /* metrics and explanations are the maps that they are */
        return gremlin_binary_write(writer, gremlin_report(value)->map);
    }
}

bool gremlin_binary_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    bool fine;

    if (value.type < GREMLIN_LIST)
        return scalar_write(writer, value);
    if (!gremlin_writer_enter(writer))
        return false;
    fine = object_write(writer, value);
    gremlin_writer_leave(writer);
    return fine;
}

bool gremlin_binary_write_item(struct gremlin_writer *writer, struct gremlin_value value,
                               int64_t bulk, bool first UNUSED)
{
    return bulk ? traverser_write(writer, value, bulk) : gremlin_binary_write(writer, value);
}

/* 81, id with its flag, code, message with its flag, attributes, meta, data. An id that is no UUID
 * cannot have come in this format. */
bool gremlin_binary_write_answer(struct gremlin_writer *writer, const struct gremlin_answer *answer)
{
    uint8_t id[16];

    buf_append_byte(writer->buf, GREMLIN_BINARY_VERSION);
    if (answer->id.data && gremlin_uuid_parse(answer->id, id)) {
        BUF_APPEND(writer->buf, "\0");
        buf_append(writer->buf, id, sizeof id);
    } else {
        BUF_APPEND(writer->buf, "\1");
    }
    buf_append_be32(writer->buf, answer->code);
    BUF_APPEND(writer->buf, "\0");
    text_bare(writer, answer->message);
    if (gremlin_is_null(answer->attributes))
        count_bare(writer, 0);
    else if (!map_bare(writer, gremlin_table(answer->attributes)))
        return false;
    count_bare(writer, 0); /* meta */
    if (!answer->batch) {
        null_write(writer);
        return true;
    }
    code(writer, GREMLIN_BINARY_LIST);
    count_bare(writer, answer->batch->count);
    buf_append_slice(writer->buf, buf_slice(&answer->batch->items));
    return true;
}
