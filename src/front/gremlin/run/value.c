/* What steps and by() ask of objects: properties, tokens, keys and values of maps, items of
 * collections. */
#include "front/gremlin/run/run_private.h"

const char *gremlin_value_shown(struct gremlin_run *run, struct gremlin_value value)
{
    struct buf text;
    const char *shown;

    buf_init(&text, 4096);
    gremlin_value_write_text(value, &text);
    shown = arena_text(run->arena, slice_first(buf_slice(&text), text.len < 200 ? text.len : 200));
    buf_done(&text);
    return shown;
}

const char *gremlin_part_shown(struct gremlin_run *run, const struct gremlin_part *part)
{
    struct buf text;
    const char *shown;

    buf_init(&text, 4096);
    BUF_APPEND(&text, "[");
    for (const struct gremlin_step *step = part->start->next; step; step = step->next) {
        if (text.len > 1)
            BUF_APPEND(&text, ", ");
        buf_append_text(&text, step->kind->name);
    }
    BUF_APPEND(&text, "]");
    shown = arena_text(run->arena, slice_first(buf_slice(&text), text.len < 200 ? text.len : 200));
    buf_done(&text);
    return shown;
}

bool gremlin_value_iterates(struct gremlin_value value)
{
    return value.type == GREMLIN_LIST || value.type == GREMLIN_SET ||
           value.type == GREMLIN_BULK_SET;
}

struct gremlin_value gremlin_value_listed(struct gremlin_run *run, struct gremlin_value value)
{
    struct gremlin_value list, item;
    struct gremlin_cursor cursor = {0};
    int64_t bulk;

    if (value.type == GREMLIN_LIST)
        return gremlin_value_ref(value);
    list = gremlin_list_new(run->heap, 0);
    if (!gremlin_is_collection(value)) {
        gremlin_list_add(list, value);
        return list;
    }
    while (gremlin_collection_next(value, &cursor, &item, &bulk)) {
        for (int64_t i = 1; i < bulk && !gremlin_heap_failed(run->heap); i++)
            gremlin_list_add(list, item);
        gremlin_list_add_take(list, item);
    }
    return list;
}

/* --- Properties ------------------------------------------------------------------------------ */

bool gremlin_element_list(struct gremlin_run *run, struct gremlin_value element,
                          const struct slice *keys, size_t count, bool values,
                          struct gremlin_value *ret_list, struct error *err)
{
    struct gremlin_properties *found;
    struct gremlin_value list;

    if (gremlin_element(element)->reference &&
        !gremlin_graph_load(run->graph, &element, 1, NULL, err))
        return false;
    found = gremlin_properties_new(run->heap, 0);
    if (!gremlin_element_select(element, keys, count, found, err)) {
        gremlin_properties_unref(found);
        return false;
    }
    list = gremlin_list_new(run->heap, found->count);
    for (size_t i = 0; i < found->count; i++) {
        const struct gremlin_slot *slot = &found->slots[i];

        if (run->filters && !gremlin_property_passes(run, element, slot))
            continue;
        if (values)
            gremlin_list_add(list, slot->value);
        else if (element.type == GREMLIN_VERTEX)
            gremlin_list_add_take(list, gremlin_vertex_property_new(run->heap, slot, element));
        else
            gremlin_list_add_take(list,
                                  gremlin_property_new(run->heap, slot->key, slot->value, element));
    }
    gremlin_properties_unref(found);
    *ret_list = list;
    return true;
}

static bool element_value(struct gremlin_run *run, struct gremlin_value element, struct slice key,
                          struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    struct gremlin_value list;
    const struct gremlin_list *items;

    if (!gremlin_element_list(run, element, &key, 1, true, &list, err))
        return false;
    items = gremlin_list(list);
    *ret_found = items->count > 0;
    if (items->count > 1) {
        gremlin_value_unref(list);
        return FAIL(err,
                    "Multiple properties exist for the provided key, use Vertex.properties(%.*s)",
                    SLICE_ARG(key));
    }
    if (items->count)
        *ret_value = gremlin_value_ref(items->items[0]);
    gremlin_value_unref(list);
    return true;
}

bool gremlin_value_of_key(struct gremlin_run *run, struct gremlin_value object, struct slice key,
                          struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    const struct gremlin_value *held;

    if (gremlin_is_element(object))
        return element_value(run, object, key, ret_value, ret_found, err);
    if (object.type != GREMLIN_MAP)
        return FAIL(err,
                    "The by(\"%.*s\") modulator can only be applied to a traverser that is an "
                    "Element or a Map - it is being applied to [%s] a %s class instead",
                    SLICE_ARG(key), gremlin_value_shown(run, object),
                    gremlin_type_name(object.type));
    held = gremlin_map_get_text(object, key);
    *ret_found = held != NULL;
    if (held)
        *ret_value = gremlin_value_ref(*held);
    return true;
}

bool gremlin_value_of_token(struct gremlin_run *run, struct gremlin_value object,
                            struct gremlin_enum word, struct gremlin_value *ret_value,
                            bool *ret_found, struct error *err)
{
    *ret_found = true;
    switch (word.word) {
    case GREMLIN_T_ID:
        if (gremlin_is_element(object)) {
            *ret_value = gremlin_value_ref(gremlin_element(object)->id);
            return true;
        }
        break;
    case GREMLIN_T_LABEL:
        if (gremlin_is_element(object)) {
            *ret_value = gremlin_value_ref(gremlin_element(object)->label);
            return true;
        }
        break;
    case GREMLIN_T_KEY:
        if (object.type == GREMLIN_VERTEX_PROPERTY) {
            *ret_value = gremlin_value_ref(gremlin_element(object)->label);
            return true;
        }
        if (object.type == GREMLIN_PROPERTY) {
            *ret_value = gremlin_value_ref(gremlin_property(object)->key);
            return true;
        }
        break;
    case GREMLIN_T_VALUE:
        if (object.type == GREMLIN_VERTEX_PROPERTY) {
            *ret_value = gremlin_value_ref(gremlin_vertex_property(object)->value);
            return true;
        }
        if (object.type == GREMLIN_PROPERTY) {
            *ret_value = gremlin_value_ref(gremlin_property(object)->value);
            return true;
        }
        break;
    default:
        break;
    }
    if (object.type == GREMLIN_MAP) {
        const struct gremlin_value *held = gremlin_map_get(object, gremlin_word(word.word));

        *ret_found = held != NULL;
        if (held)
            *ret_value = gremlin_value_ref(*held);
        return true;
    }
    return FAIL(err, "%s() cannot be applied to [%s], a %s",
                arena_text(run->arena, gremlin_word_text(word)), gremlin_value_shown(run, object),
                gremlin_type_name(object.type));
}

static bool path_column(struct gremlin_run *run, struct gremlin_value object, bool keys,
                        struct gremlin_value *ret_value)
{
    const struct gremlin_path *path = gremlin_path(object);
    size_t room = (path->length + 1) * sizeof(void *);
    const struct gremlin_path **nodes;

    if (!keys) {
        *ret_value = gremlin_value_listed(run, object);
        return true;
    }
    nodes = gremlin_heap_alloc(run->heap, room);
    gremlin_path_nodes(path, nodes);
    *ret_value = gremlin_list_new(run->heap, path->length);
    for (size_t i = 0; i < path->length; i++)
        gremlin_list_add_take(*ret_value, gremlin_is_null(nodes[i]->labels)
                                              ? gremlin_set_new(run->heap)
                                              : gremlin_value_ref(nodes[i]->labels));
    gremlin_heap_release(run->heap, nodes, room);
    return true;
}

bool gremlin_value_of_column(struct gremlin_run *run, struct gremlin_value object,
                             struct gremlin_enum word, struct gremlin_value *ret_value,
                             struct error *err)
{
    bool keys = word.word == GREMLIN_COLUMN_KEYS;

    if (object.type == GREMLIN_ENTRY) {
        const struct gremlin_entry *entry = gremlin_entry(object);

        *ret_value = gremlin_value_ref(keys ? entry->key : entry->value);
        return true;
    }
    if (object.type == GREMLIN_PATH)
        return path_column(run, object, keys, ret_value);
    if (object.type == GREMLIN_MAP || object.type == GREMLIN_TREE) {
        const struct gremlin_table *table = gremlin_table(object);

        *ret_value = keys ? gremlin_set_new(run->heap) : gremlin_list_new(run->heap, table->count);
        for (size_t i = 0; i < table->count; i++) {
            if (keys)
                gremlin_set_add(*ret_value, table->rows[i].key);
            else
                gremlin_list_add(*ret_value, table->rows[i].value);
        }
        return true;
    }
    return FAIL(err, "The provided object does not have accessible %s: %s",
                keys ? "keys" : "values", gremlin_type_name(object.type));
}
