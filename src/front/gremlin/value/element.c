/* Elements, their properties, and paths. */
#include "front/gremlin/value/element.h"

#include "front/gremlin/value/container.h"

/* --- Properties ------------------------------------------------------------------------------- */

struct gremlin_properties *gremlin_properties_new(struct gremlin_heap *heap, size_t capacity)
{
    struct gremlin_properties *properties =
        gremlin_object_new(heap, GREMLIN_PROPERTIES, sizeof *properties);

    assert(capacity <= UINT32_MAX);
    properties->count = 0;
    properties->capacity = (uint32_t)capacity;
    properties->slots =
        capacity ? gremlin_heap_alloc(heap, capacity * sizeof properties->slots[0]) : NULL;
    return properties;
}

void gremlin_properties_add_take(struct gremlin_properties *properties, struct gremlin_slot slot)
{
    if (properties->count == properties->capacity) {
        uint32_t capacity = properties->capacity ? properties->capacity * 2 : 4;

        properties->slots =
            gremlin_heap_grow(properties->object.heap, properties->slots,
                              properties->capacity * sizeof slot, capacity * sizeof slot);
        properties->capacity = capacity;
    }
    properties->slots[properties->count++] = slot;
}

void gremlin_properties_clear(struct gremlin_properties *properties)
{
    for (size_t i = 0; i < properties->count; i++) {
        struct gremlin_slot *slot = &properties->slots[i];

        gremlin_value_unref(slot->key);
        gremlin_value_unref(slot->value);
        gremlin_value_unref(slot->id);
        gremlin_object_unref(slot->meta);
    }
    properties->count = 0;
}

/* --- Elements --------------------------------------------------------------------------------- */

static void element_init(struct gremlin_element *element, struct gremlin_value id,
                         struct gremlin_value label, struct gremlin_value partition)
{
    element->id = gremlin_value_ref(id);
    element->label = gremlin_value_ref(label);
    element->partition = gremlin_value_ref(partition);
    element->properties = NULL;
    element->reference = true;
    element->source = NULL;
    element->stored = NULL;
    element->owner = NULL;
}

struct gremlin_value gremlin_vertex_new(struct gremlin_heap *heap, struct gremlin_value id,
                                        struct gremlin_value label, struct gremlin_value partition)
{
    struct gremlin_vertex *vertex = gremlin_object_new(heap, GREMLIN_VERTEX, sizeof *vertex);

    element_init(&vertex->element, id, label, partition);
    return gremlin_value_of_take(vertex);
}

static struct gremlin_end end_ref(const struct gremlin_end *end)
{
    return (struct gremlin_end){gremlin_value_ref(end->id), gremlin_value_ref(end->label),
                                gremlin_value_ref(end->partition)};
}

struct gremlin_value gremlin_edge_new(struct gremlin_heap *heap, struct gremlin_value id,
                                      struct gremlin_value label, struct gremlin_value partition,
                                      const struct gremlin_end *out, const struct gremlin_end *in)
{
    struct gremlin_edge *edge = gremlin_object_new(heap, GREMLIN_EDGE, sizeof *edge);

    element_init(&edge->element, id, label, partition);
    edge->out = end_ref(out);
    edge->in = end_ref(in);
    return gremlin_value_of_take(edge);
}

struct gremlin_value gremlin_vertex_property_new(struct gremlin_heap *heap,
                                                 const struct gremlin_slot *slot,
                                                 struct gremlin_value vertex)
{
    struct gremlin_vertex_property *property =
        gremlin_object_new(heap, GREMLIN_VERTEX_PROPERTY, sizeof *property);

    element_init(&property->element, slot->id, slot->key, GREMLIN_NOTHING);
    property->element.reference = false;
    property->element.properties = gremlin_object_ref(slot->meta);
    property->value = gremlin_value_ref(slot->value);
    property->vertex = gremlin_value_ref(vertex);
    return gremlin_value_of_take(property);
}

struct gremlin_value gremlin_property_new(struct gremlin_heap *heap, struct gremlin_value key,
                                          struct gremlin_value value, struct gremlin_value owner)
{
    struct gremlin_property *property =
        gremlin_object_new(heap, GREMLIN_PROPERTY, sizeof *property);

    property->key = gremlin_value_ref(key);
    property->value = gremlin_value_ref(value);
    property->owner = gremlin_value_ref(owner);
    return gremlin_value_of_take(property);
}

void gremlin_element_set_take(struct gremlin_value value, struct gremlin_properties *properties)
{
    struct gremlin_element *element = gremlin_element(value);
    struct gremlin_properties *before = element->properties;
    struct gremlin_stored *stored = element->stored;

    element->properties = properties;
    element->reference = false;
    element->source = NULL;
    element->stored = NULL;
    gremlin_object_unref(before);
    gremlin_object_unref(stored);
}

void gremlin_element_set_source_take(struct gremlin_value value,
                                     const struct gremlin_source *source, void *owner,
                                     struct gremlin_stored *stored)
{
    struct gremlin_element *element = gremlin_element(value);
    struct gremlin_properties *properties = element->properties;
    struct gremlin_stored *before = element->stored;

    element->properties = NULL;
    element->reference = false;
    element->source = source;
    element->owner = owner;
    element->stored = stored;
    gremlin_object_unref(properties);
    gremlin_object_unref(before);
}

static bool is_wanted(struct slice key, const struct slice *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(key, keys[i]))
            return true;
    return !count;
}

bool gremlin_element_select(struct gremlin_value value, const struct slice *keys, size_t count,
                            struct gremlin_properties *into, struct error *err)
{
    const struct gremlin_element *element = gremlin_element(value);

    if (element->source)
        return element->source->select(element, keys, count, into, err);
    for (size_t i = 0; element->properties && i < element->properties->count; i++) {
        struct gremlin_slot slot = element->properties->slots[i];

        if (!is_wanted(gremlin_bytes(slot.key), keys, count))
            continue;
        gremlin_value_ref(slot.key);
        gremlin_value_ref(slot.value);
        gremlin_value_ref(slot.id);
        gremlin_object_ref(slot.meta);
        gremlin_properties_add_take(into, slot);
    }
    return true;
}

/* --- Paths ------------------------------------------------------------------------------------ */

static struct gremlin_path *path_node(struct gremlin_heap *heap, struct gremlin_path *before,
                                      struct gremlin_value value, struct gremlin_value labels)
{
    struct gremlin_path *path = gremlin_object_new(heap, GREMLIN_PATH, sizeof *path);

    path->before = gremlin_object_ref(before);
    path->value = gremlin_value_ref(value);
    path->labels = gremlin_value_ref(labels);
    path->length = before ? before->length + 1 : 1;
    return path;
}

struct gremlin_path *gremlin_path_extend(struct gremlin_heap *heap, struct gremlin_path *before,
                                         struct gremlin_value value, struct gremlin_value labels)
{
    return path_node(heap, before && before->length ? before : NULL, value, labels);
}

struct gremlin_path *gremlin_path_label(struct gremlin_heap *heap, struct gremlin_path *path,
                                        struct gremlin_value labels)
{
    const struct gremlin_table *more = gremlin_table(labels);
    struct gremlin_value all;

    if (gremlin_is_null(path->labels))
        return path_node(heap, path->before, path->value, labels);
    all = gremlin_table_new(heap, GREMLIN_SET,
                            gremlin_table(path->labels)->count + (size_t)more->count);
    for (size_t i = 0; i < gremlin_table(path->labels)->count; i++)
        gremlin_set_add(all, gremlin_table(path->labels)->rows[i].key);
    for (size_t i = 0; i < more->count; i++)
        gremlin_set_add(all, more->rows[i].key);
    path = path_node(heap, path->before, path->value, all);
    gremlin_value_unref(all);
    return path;
}

struct gremlin_value gremlin_path_empty(struct gremlin_heap *heap)
{
    struct gremlin_path *path = path_node(heap, NULL, GREMLIN_NOTHING, GREMLIN_NOTHING);

    path->length = 0;
    return gremlin_value_of_take(path);
}

void gremlin_path_nodes(const struct gremlin_path *path, const struct gremlin_path **ret_nodes)
{
    for (size_t at = path->length; at; path = path->before)
        ret_nodes[--at] = path;
}
