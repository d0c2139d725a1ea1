/* Values taken from one heap to another. */
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"

enum { DEPTH_MAX = 128 };

struct copying {
    struct gremlin_heap *heap;
    struct error *err;
    int depth;
};

static bool copy(struct copying *copying, struct gremlin_value value,
                 struct gremlin_value *ret_value);

static bool list_copy(struct copying *copying, const struct gremlin_list *list,
                      struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value result = gremlin_list_new(copying->heap, list->count);
    struct gremlin_value item;

    for (size_t i = 0; i < list->count; i++) {
        if (!copy(copying, list->items[i], &item))
            return false;
        gremlin_list_add_take(result, item);
    }
    *ret_value = gremlin_value_take(&result);
    return true;
}

static bool table_copy(struct copying *copying, const struct gremlin_table *table,
                       struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value result =
        gremlin_table_new(copying->heap, (enum gremlin_type)table->object.type, table->count);

    for (size_t i = 0; i < table->count; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
        struct gremlin_value value;

        if (!copy(copying, table->rows[i].key, &key) ||
            !copy(copying, table->rows[i].value, &value))
            return false;
        gremlin_map_put_take(result, key, value);
    }
    *ret_value = gremlin_value_take(&result);
    return true;
}

static bool slots_copy(struct copying *copying, const struct gremlin_properties *properties,
                       struct gremlin_properties **ret_properties)
{
    CLEANUP(gremlin_properties_unref)
    struct gremlin_properties *result = gremlin_properties_new(copying->heap, properties->count);

    for (size_t i = 0; i < properties->count; i++) {
        const struct gremlin_slot *slot = &properties->slots[i];
        struct gremlin_slot made = {};

        if (!copy(copying, slot->key, &made.key))
            return false;
        gremlin_properties_add_take(result, made); /* what follows is let go of with it */
        if (!copy(copying, slot->value, &result->slots[i].value) ||
            !copy(copying, slot->id, &result->slots[i].id) ||
            (slot->meta && !slots_copy(copying, slot->meta, &result->slots[i].meta)))
            return false;
    }
    *ret_properties = TAKE(result);
    return true;
}

static bool element_fill(struct copying *copying, struct gremlin_value from,
                         struct gremlin_value to)
{
    CLEANUP(gremlin_properties_unref)
    struct gremlin_properties *all = gremlin_properties_new(from.object->heap, 0);
    struct gremlin_properties *copied;

    if (gremlin_element(from)->reference)
        return true;
    if (!gremlin_element_select(from, NULL, 0, all, copying->err) ||
        !slots_copy(copying, all, &copied))
        return false;
    gremlin_element_set_take(to, copied);
    return true;
}

static bool end_copy(struct copying *copying, const struct gremlin_end *end,
                     struct gremlin_end *ret_end)
{
    return copy(copying, end->id, &ret_end->id) && copy(copying, end->label, &ret_end->label) &&
           copy(copying, end->partition, &ret_end->partition);
}

/* Vertices and edges; their parts are let go of by the element that is being made. */
static bool element_copy(struct copying *copying, struct gremlin_value value,
                         struct gremlin_value *ret_value)
{
    const struct gremlin_element *element = gremlin_element(value);
    const struct gremlin_end none = {};
    CLEANUP(gremlin_value_unref) struct gremlin_value result = GREMLIN_NOTHING;
    struct gremlin_element *made;

    if (value.type == GREMLIN_VERTEX)
        result =
            gremlin_vertex_new(copying->heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING);
    else
        result = gremlin_edge_new(copying->heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING,
                                  &none, &none);
    made = gremlin_element(result);
    if (!copy(copying, element->id, &made->id) || !copy(copying, element->label, &made->label) ||
        !copy(copying, element->partition, &made->partition))
        return false;
    if (value.type == GREMLIN_EDGE &&
        (!end_copy(copying, &gremlin_edge(value)->out, &gremlin_edge(result)->out) ||
         !end_copy(copying, &gremlin_edge(value)->in, &gremlin_edge(result)->in)))
        return false;
    if (!element_fill(copying, value, result))
        return false;
    *ret_value = gremlin_value_take(&result);
    return true;
}

static bool vertex_property_copy(struct copying *copying, struct gremlin_value value,
                                 struct gremlin_value *ret_value)
{
    const struct gremlin_slot empty = {};
    CLEANUP(gremlin_value_unref)
    struct gremlin_value result =
        gremlin_vertex_property_new(copying->heap, &empty, GREMLIN_NOTHING);
    struct gremlin_vertex_property *made = gremlin_vertex_property(result);

    if (!copy(copying, gremlin_element(value)->id, &made->element.id) ||
        !copy(copying, gremlin_element(value)->label, &made->element.label) ||
        !copy(copying, gremlin_vertex_property(value)->value, &made->value) ||
        !copy(copying, gremlin_vertex_property(value)->vertex, &made->vertex) ||
        !element_fill(copying, value, result))
        return false;
    *ret_value = gremlin_value_take(&result);
    return true;
}

static bool property_copy(struct copying *copying, const struct gremlin_property *property,
                          struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value result =
        gremlin_property_new(copying->heap, GREMLIN_NOTHING, GREMLIN_NOTHING, GREMLIN_NOTHING);
    struct gremlin_property *made = gremlin_property(result);

    if (!copy(copying, property->key, &made->key) ||
        !copy(copying, property->value, &made->value) ||
        !copy(copying, property->owner, &made->owner))
        return false;
    *ret_value = gremlin_value_take(&result);
    return true;
}

static bool path_copy(struct copying *copying, const struct gremlin_path *path,
                      struct gremlin_value *ret_value)
{
    CLEANUP(memory_free)
    const struct gremlin_path **nodes =
        memory_alloc(memory_array_size(path->length + 1, sizeof *nodes));
    CLEANUP(gremlin_value_unref)
    struct gremlin_value result = gremlin_path_empty(copying->heap);

    gremlin_path_nodes(path, nodes);
    for (size_t i = 0; i < path->length; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;
        CLEANUP(gremlin_value_unref) struct gremlin_value labels = GREMLIN_NOTHING;

        if (!copy(copying, nodes[i]->value, &value) || !copy(copying, nodes[i]->labels, &labels))
            return false;
        gremlin_value_replace_take(
            &result, gremlin_value_of_take(
                         gremlin_path_extend(copying->heap, gremlin_path(result), value, labels)));
    }
    *ret_value = gremlin_value_take(&result);
    return true;
}

static bool entry_copy(struct copying *copying, const struct gremlin_entry *entry,
                       struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;

    if (!copy(copying, entry->key, &key) || !copy(copying, entry->value, &value))
        return false;
    *ret_value = gremlin_entry_new(copying->heap, key, value);
    return true;
}

static bool subgraph_copy(struct copying *copying, const struct gremlin_subgraph *graph,
                          struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value result = gremlin_subgraph_new(copying->heap);
    struct gremlin_value vertices, edges;

    if (!copy(copying, graph->vertices, &vertices))
        return false;
    gremlin_value_replace_take(&gremlin_subgraph(result)->vertices, vertices);
    if (!copy(copying, graph->edges, &edges))
        return false;
    gremlin_value_replace_take(&gremlin_subgraph(result)->edges, edges);
    *ret_value = gremlin_value_take(&result);
    return true;
}

/* What holds one value. */
static bool wrapped_copy(struct copying *copying, struct gremlin_value value,
                         struct gremlin_value *ret_value)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value inner = GREMLIN_NOTHING;

    if (value.type == GREMLIN_TRAVERSER) {
        if (!copy(copying, gremlin_traverser(value)->value, &inner))
            return false;
        *ret_value = gremlin_traverser_new(copying->heap, inner, gremlin_traverser(value)->bulk);
    } else if (value.type == GREMLIN_CARDINAL) {
        if (!copy(copying, gremlin_cardinal(value)->value, &inner))
            return false;
        *ret_value =
            gremlin_cardinal_new(copying->heap, gremlin_cardinal(value)->cardinality, inner);
    } else {
        if (!copy(copying, gremlin_report(value)->map, &inner))
            return false;
        *ret_value = gremlin_report_new(copying->heap, value.type, inner);
    }
    return true;
}

static bool object_copy(struct copying *copying, struct gremlin_value value,
                        struct gremlin_value *ret_value)
{
    switch (value.type) {
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
    case GREMLIN_STRING:
    case GREMLIN_UUID:
    case GREMLIN_BINARY:
    case GREMLIN_CLASS:
        *ret_value = gremlin_bytes_new(copying->heap, value.type, gremlin_bytes(value));
        return true;
    case GREMLIN_DATE_TIME:
        *ret_value = gremlin_date_time_new(copying->heap, gremlin_date_time(value)->seconds,
                                           gremlin_date_time(value)->nanoseconds,
                                           gremlin_date_time(value)->offset);
        return true;
    case GREMLIN_DURATION:
        *ret_value = gremlin_duration_new(copying->heap, gremlin_duration(value)->seconds,
                                          gremlin_duration(value)->nanoseconds);
        return true;
    case GREMLIN_TEMPORAL:
        *ret_value = gremlin_temporal_new(copying->heap, gremlin_temporal_name(value),
                                          gremlin_temporal_text(value));
        return true;
    case GREMLIN_LIST:
        return list_copy(copying, gremlin_list(value), ret_value);
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        return table_copy(copying, gremlin_table(value), ret_value);
    case GREMLIN_ENTRY:
        return entry_copy(copying, gremlin_entry(value), ret_value);
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
        return element_copy(copying, value, ret_value);
    case GREMLIN_VERTEX_PROPERTY:
        return vertex_property_copy(copying, value, ret_value);
    case GREMLIN_PROPERTY:
        return property_copy(copying, gremlin_property(value), ret_value);
    case GREMLIN_PATH:
        return path_copy(copying, gremlin_path(value), ret_value);
    case GREMLIN_GRAPH:
        return subgraph_copy(copying, gremlin_subgraph(value), ret_value);
    case GREMLIN_TRAVERSER:
    case GREMLIN_CARDINAL:
    case GREMLIN_METRICS:
    case GREMLIN_EXPLANATION:
        return wrapped_copy(copying, value, ret_value);
    default:
        return error_set(copying->err, ERROR_GREMLIN_RUN, "a %s cannot be kept in a variable",
                         gremlin_type_name(value.type));
    }
}

static bool copy(struct copying *copying, struct gremlin_value value,
                 struct gremlin_value *ret_value)
{
    bool fine;

    if (!gremlin_is_object(value)) {
        *ret_value = value;
        return true;
    }
    if (copying->depth == DEPTH_MAX)
        return error_set(copying->err, ERROR_TOO_DEEP, "values are nested deeper than %d",
                         DEPTH_MAX);
    copying->depth++;
    fine = object_copy(copying, value, ret_value);
    copying->depth--;
    return fine;
}

bool gremlin_value_copy(struct gremlin_heap *heap, struct gremlin_value value,
                        struct gremlin_value *ret_value, struct error *err)
{
    struct copying copying = {heap, err, 0};

    return copy(&copying, value, ret_value);
}
