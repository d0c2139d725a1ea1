/* Values as JSON without types: what the service answers, and GraphSON 1.
 *
 *   vertex
 * {"id":"1","label":"person","type":"vertex","properties":{"name":[{"id":"x","value":"marko"}]}}
 *   edge {"id":"7","label":"knows","type":"edge","inVLabel":..,"outVLabel":..,"inV":..,"outV":..,
 *              "properties":{"weight":0.5}}
 *   path      {"labels":[["a"],[]],"objects":[..]}
 *   tree      {"1":{"key":..,"value":{..}}}
 *
 * properties are left out where there are none. */
#include "front/gremlin/format/format_private.h"

#include "document/json.h"
#include "document/json_number.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"

#include <math.h>

static void integer_write(struct gremlin_writer *writer, int64_t number)
{
    if (buf_reserve(writer->buf, JSON_NUMBER_MAX)) {
        uint8_t *at = writer->buf->data + writer->buf->len;

        writer->buf->len += (size_t)(json_number_write_integer(at, number) - at);
    }
}

/* What JSON has no number for is text, as upstream quotes it. A double that is whole keeps its
 * point, so that it stays one: 1.0. */
static void real_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    bool quoted = !isfinite(value.real);

    if (!quoted && value.type == GREMLIN_DOUBLE && fabs(value.real) < 1e15 &&
        value.real != floor(value.real)) {
        if (buf_reserve(writer->buf, JSON_NUMBER_MAX)) {
            uint8_t *at = writer->buf->data + writer->buf->len;

            writer->buf->len += (size_t)(json_number_write_double(at, value.real) - at);
        }
        return;
    }
    if (quoted)
        BUF_APPEND(writer->buf, "\"");
    gremlin_real_write(value, writer->buf);
    if (quoted)
        BUF_APPEND(writer->buf, "\"");
}

/* Everything that shows as one text. */
static bool text_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, writer->buf->max);
    gremlin_value_write_text(value, &text);
    document_json_write_string(buf_slice(&text), writer->buf);
    return true;
}

bool gremlin_plain_write_scalar(struct gremlin_writer *writer, struct gremlin_value value)
{
    switch (value.type) {
    case GREMLIN_NULL:
        BUF_APPEND(writer->buf, "null");
        return true;
    case GREMLIN_BOOLEAN:
        buf_append_text(writer->buf, value.boolean ? "true" : "false");
        return true;
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
        integer_write(writer, value.integer);
        return true;
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        real_write(writer, value);
        return true;
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
        buf_append_slice(writer->buf, gremlin_bytes(value));
        return true;
    case GREMLIN_STRING:
        document_json_write_string(gremlin_bytes(value), writer->buf);
        return true;
    default:
        return text_write(writer, value);
    }
}

/* The name a key has in a JSON object: the id of an element, the text of anything else. Null has
 * none. */
bool gremlin_plain_write_key(struct gremlin_writer *writer, struct gremlin_value key)
{
    if (gremlin_is_null(key))
        return error_set(writer->err, ERROR_GREMLIN_FORMAT,
                         "a map with the key null has no form in this format");
    if (gremlin_is_element(key))
        key = gremlin_element(key)->id;
    if (key.type == GREMLIN_STRING)
        document_json_write_string(gremlin_bytes(key), writer->buf);
    else
        text_write(writer, key);
    BUF_APPEND(writer->buf, ":");
    return true;
}

/* --- Containers ------------------------------------------------------------------------------- */

static bool list_write(struct gremlin_writer *writer, const struct gremlin_list *list)
{
    BUF_APPEND(writer->buf, "[");
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_plain_write(writer, list->items[i]) || !gremlin_writer_room(writer))
            return false;
    }
    BUF_APPEND(writer->buf, "]");
    return true;
}

/* A set; a bulk set shows each item as often as it is in it. */
static bool set_write(struct gremlin_writer *writer, const struct gremlin_table *set)
{
    bool first = true;

    BUF_APPEND(writer->buf, "[");
    for (size_t i = 0; i < set->count; i++) {
        int64_t bulk = set->object.type == GREMLIN_BULK_SET ? set->rows[i].value.integer : 1;

        for (; bulk > 0; bulk--) {
            if (!first)
                BUF_APPEND(writer->buf, ",");
            first = false;
            if (!gremlin_plain_write(writer, set->rows[i].key) || !gremlin_writer_room(writer))
                return false;
        }
    }
    BUF_APPEND(writer->buf, "]");
    return true;
}

static bool map_write(struct gremlin_writer *writer, const struct gremlin_table *map)
{
    BUF_APPEND(writer->buf, "{");
    for (size_t i = 0; i < map->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_plain_write_key(writer, map->rows[i].key) ||
            !gremlin_plain_write(writer, map->rows[i].value) || !gremlin_writer_room(writer))
            return false;
    }
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool tree_write(struct gremlin_writer *writer, const struct gremlin_table *tree)
{
    BUF_APPEND(writer->buf, "{");
    for (size_t i = 0; i < tree->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_plain_write_key(writer, tree->rows[i].key))
            return false;
        BUF_APPEND(writer->buf, "{\"key\":");
        if (!gremlin_plain_write(writer, tree->rows[i].key))
            return false;
        BUF_APPEND(writer->buf, ",\"value\":");
        if (!gremlin_plain_write(writer, tree->rows[i].value) || !gremlin_writer_room(writer))
            return false;
        BUF_APPEND(writer->buf, "}");
    }
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool entry_write(struct gremlin_writer *writer, const struct gremlin_entry *entry)
{
    BUF_APPEND(writer->buf, "{");
    if (!gremlin_plain_write_key(writer, entry->key) || !gremlin_plain_write(writer, entry->value))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

/* --- Elements --------------------------------------------------------------------------------- */

/* Has one of the slots before this the same key? They are neighbours almost always. */
static bool is_repeated(const struct gremlin_properties *properties, size_t at)
{
    struct slice key = gremlin_bytes(properties->slots[at].key);

    for (size_t i = at; i; i--)
        if (slice_equal(key, gremlin_bytes(properties->slots[i - 1].key)))
            return true;
    return false;
}

bool gremlin_plain_write_grouped(struct gremlin_writer *writer,
                                 const struct gremlin_properties *properties,
                                 bool (*write)(struct gremlin_writer *writer,
                                               const struct gremlin_slot *slot))
{
    bool first = true;

    for (size_t i = 0; i < properties->count; i++) {
        struct slice key = gremlin_bytes(properties->slots[i].key);
        bool more = false;

        if (is_repeated(properties, i))
            continue;
        if (!first)
            BUF_APPEND(writer->buf, ",");
        first = false;
        document_json_write_string(key, writer->buf);
        BUF_APPEND(writer->buf, ":[");
        for (size_t j = i; j < properties->count; j++) {
            if (!slice_equal(key, gremlin_bytes(properties->slots[j].key)))
                continue;
            if (more)
                BUF_APPEND(writer->buf, ",");
            more = true;
            if (!write(writer, &properties->slots[j]) || !gremlin_writer_room(writer))
                return false;
        }
        BUF_APPEND(writer->buf, "]");
    }
    return true;
}

/* "key":value, ... */
static bool values_write(struct gremlin_writer *writer, const struct gremlin_properties *properties)
{
    for (size_t i = 0; i < properties->count; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        document_json_write_string(gremlin_bytes(properties->slots[i].key), writer->buf);
        BUF_APPEND(writer->buf, ":");
        if (!gremlin_plain_write(writer, properties->slots[i].value))
            return false;
    }
    return true;
}

static bool meta_write(struct gremlin_writer *writer, const struct gremlin_properties *meta)
{
    if (!meta || !meta->count)
        return true;
    BUF_APPEND(writer->buf, ",\"properties\":{");
    if (!values_write(writer, meta))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool slot_write(struct gremlin_writer *writer, const struct gremlin_slot *slot)
{
    BUF_APPEND(writer->buf, "{\"id\":");
    if (!gremlin_plain_write(writer, slot->id))
        return false;
    BUF_APPEND(writer->buf, ",\"value\":");
    if (!gremlin_plain_write(writer, slot->value) || !meta_write(writer, slot->meta))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool properties_write(struct gremlin_writer *writer, struct gremlin_value element)
{
    struct gremlin_properties *properties;
    bool fine = true;

    if (!gremlin_writer_properties(writer, element, &properties))
        return false;
    if (properties && properties->count) {
        BUF_APPEND(writer->buf, ",\"properties\":{");
        fine = element.type == GREMLIN_VERTEX
                   ? gremlin_plain_write_grouped(writer, properties, slot_write)
                   : values_write(writer, properties);
        BUF_APPEND(writer->buf, "}");
    }
    gremlin_writer_release(writer, properties);
    return fine;
}

static bool id_and_label(struct gremlin_writer *writer, const struct gremlin_element *element)
{
    BUF_APPEND(writer->buf, "{\"id\":");
    if (!gremlin_plain_write(writer, element->id))
        return false;
    BUF_APPEND(writer->buf, ",\"label\":");
    return gremlin_plain_write(writer, element->label);
}

static bool edge_ends(struct gremlin_writer *writer, const struct gremlin_edge *edge)
{
    BUF_APPEND(writer->buf, ",\"inVLabel\":");
    if (!gremlin_plain_write(writer, edge->in.label))
        return false;
    BUF_APPEND(writer->buf, ",\"outVLabel\":");
    if (!gremlin_plain_write(writer, edge->out.label))
        return false;
    BUF_APPEND(writer->buf, ",\"inV\":");
    if (!gremlin_plain_write(writer, edge->in.id))
        return false;
    BUF_APPEND(writer->buf, ",\"outV\":");
    return gremlin_plain_write(writer, edge->out.id);
}

static bool element_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    if (!id_and_label(writer, gremlin_element(value)))
        return false;
    if (value.type == GREMLIN_VERTEX) {
        BUF_APPEND(writer->buf, ",\"type\":\"vertex\"");
    } else {
        BUF_APPEND(writer->buf, ",\"type\":\"edge\"");
        if (!edge_ends(writer, gremlin_edge(value)))
            return false;
    }
    if (!properties_write(writer, value))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool vertex_property_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    BUF_APPEND(writer->buf, "{\"id\":");
    if (!gremlin_plain_write(writer, gremlin_element(value)->id))
        return false;
    BUF_APPEND(writer->buf, ",\"value\":");
    if (!gremlin_plain_write(writer, gremlin_vertex_property(value)->value))
        return false;
    BUF_APPEND(writer->buf, ",\"label\":");
    if (!gremlin_plain_write(writer, gremlin_element(value)->label) ||
        !properties_write(writer, value))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool property_write(struct gremlin_writer *writer, const struct gremlin_property *property)
{
    BUF_APPEND(writer->buf, "{\"key\":");
    if (!gremlin_plain_write(writer, property->key))
        return false;
    BUF_APPEND(writer->buf, ",\"value\":");
    if (!gremlin_plain_write(writer, property->value))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

static bool path_write(struct gremlin_writer *writer, const struct gremlin_path *path)
{
    CLEANUP(memory_free)
    const struct gremlin_path **nodes =
        memory_alloc(memory_array_size(path->length + 1, sizeof *nodes));

    gremlin_path_nodes(path, nodes);
    BUF_APPEND(writer->buf, "{\"labels\":[");
    for (size_t i = 0; i < path->length; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (gremlin_is_null(nodes[i]->labels))
            BUF_APPEND(writer->buf, "[]");
        else if (!set_write(writer, gremlin_table(nodes[i]->labels)))
            return false;
    }
    BUF_APPEND(writer->buf, "],\"objects\":[");
    for (size_t i = 0; i < path->length; i++) {
        if (i)
            BUF_APPEND(writer->buf, ",");
        if (!gremlin_plain_write(writer, nodes[i]->value) || !gremlin_writer_room(writer))
            return false;
    }
    BUF_APPEND(writer->buf, "]}");
    return true;
}

static bool subgraph_write(struct gremlin_writer *writer, const struct gremlin_subgraph *graph)
{
    BUF_APPEND(writer->buf, "{\"vertices\":");
    if (!set_write(writer, gremlin_table(graph->vertices)))
        return false;
    BUF_APPEND(writer->buf, ",\"edges\":");
    if (!set_write(writer, gremlin_table(graph->edges)))
        return false;
    BUF_APPEND(writer->buf, "}");
    return true;
}

/* --- All -------------------------------------------------------------------------------------- */

static bool object_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    switch (value.type) {
    case GREMLIN_LIST:
        return list_write(writer, gremlin_list(value));
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
        return set_write(writer, gremlin_table(value));
    case GREMLIN_MAP:
        return map_write(writer, gremlin_table(value));
    case GREMLIN_TREE:
        return tree_write(writer, gremlin_table(value));
    case GREMLIN_ENTRY:
        return entry_write(writer, gremlin_entry(value));
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        return element_write(writer, value);
    case GREMLIN_VERTEX_PROPERTY:
        return vertex_property_write(writer, value);
    case GREMLIN_PROPERTY:
        return property_write(writer, gremlin_property(value));
    case GREMLIN_PATH:
        return path_write(writer, gremlin_path(value));
    case GREMLIN_GRAPH:
        return subgraph_write(writer, gremlin_subgraph(value));
    case GREMLIN_TRAVERSER:
        return gremlin_plain_write(writer, gremlin_traverser(value)->value);
    case GREMLIN_METRICS:
    case GREMLIN_EXPLANATION:
        return gremlin_plain_write(writer, gremlin_report(value)->map);
    default:
        return gremlin_plain_write_scalar(writer, value);
    }
}

bool gremlin_plain_write(struct gremlin_writer *writer, struct gremlin_value value)
{
    bool fine;

    if (value.type < GREMLIN_LIST)
        return gremlin_plain_write_scalar(writer, value);
    if (!gremlin_writer_enter(writer))
        return false;
    fine = object_write(writer, value);
    gremlin_writer_leave(writer);
    return fine;
}
