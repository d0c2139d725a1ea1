/* Elements made of items. The head of an item is read at once, its properties when somebody asks;
 * of an item that the graph has written since, those it has by now. */
#include "front/gremlin/graph/graph_private.h"

#include <xxhash.h>

/* --- Shared values
 * -------------------------------------------------------------------------------- */

struct gremlin_value gremlin_label_value(struct gremlin_graph *graph, struct slice label)
{
    struct gremlin_value *place =
        &graph->labels[XXH3_64bits(label.data ? label.data : (const uint8_t *)"", label.len) %
                       GREMLIN_INTERNED];

    if (!gremlin_is_text(*place, label))
        gremlin_value_replace_take(place, gremlin_string(graph->options.heap, label));
    return *place;
}

static bool is_same(struct gremlin_value value, const struct document_value *stored)
{
    switch (stored->type) {
    case DOCUMENT_STRING:
        return gremlin_is_text(value, stored->text);
    case DOCUMENT_INT32:
        return value.type == GREMLIN_INT && value.integer == stored->int32;
    default:
        return false;
    }
}

struct gremlin_value gremlin_partition_value(struct gremlin_graph *graph,
                                             const struct document_value *components, size_t count)
{
    struct gremlin_heap *heap = graph->options.heap;
    uint64_t hash = components[0].type == DOCUMENT_STRING
                        ? XXH3_64bits(components[0].text.data, components[0].text.len)
                        : (uint64_t)components[0].int32 * 31;
    struct gremlin_value *place = &graph->partitions[hash % GREMLIN_INTERNED], list;

    if (count == 1) {
        if (!is_same(*place, &components[0]))
            gremlin_value_replace_take(place, gremlin_stored_decode(heap, &components[0], NULL));
        return *place;
    }
    list = gremlin_list_new(heap, count);
    for (size_t i = 0; i < count; i++)
        gremlin_list_add_take(list, gremlin_stored_decode(heap, &components[i], NULL));
    gremlin_value_replace_take(place, list);
    return *place;
}

/* --- Keys
 * ------------------------------------------------------------------------------------------ */

static bool component_of(const struct gremlin_value *value, struct arena *arena,
                         struct document_value *ret_component)
{
    struct document_value tag;
    struct error ignored = {0};

    switch (value->type) {
    case GREMLIN_NULL:
    case GREMLIN_BOOLEAN:
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
    case GREMLIN_STRING:
        return gremlin_stored_encode(value, arena, ret_component, &tag, &ignored);
    default:
        return false;
    }
}

static struct partition_key key_of_nobody(const struct gremlin_graph *graph)
{
    static const struct slice empty = SLICE("\5\0\0\0\0");

    return partition_key_extract(&graph->space.definition->key, empty);
}

bool gremlin_partition_key(const struct gremlin_graph *graph, struct gremlin_value partition,
                           struct arena *arena, struct partition_key *ret_key)
{
    struct document_value components[PARTITION_PATHS_MAX];
    const struct gremlin_value *values = &partition;
    size_t count = 1;

    if (!graph->key_count) {
        *ret_key = key_of_nobody(graph);
        return true;
    }
    if (gremlin_is_null(partition))
        return false;
    if (partition.type == GREMLIN_LIST) {
        values = gremlin_list(partition)->items;
        count = gremlin_list(partition)->count;
    }
    if (count != graph->key_count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!component_of(&values[i], arena, &components[i]))
            return false;
    *ret_key = partition_key_of(&graph->space.definition->key, components, count);
    return true;
}

bool gremlin_partition_key_stored(const struct gremlin_graph *graph,
                                  const struct document_value *stored,
                                  struct partition_key *ret_key)
{
    struct document_value components[PARTITION_PATHS_MAX];
    struct document_iter iter;
    size_t count = 0;

    if (!graph->key_count) {
        *ret_key = key_of_nobody(graph);
        return true;
    }
    if (stored->type == DOCUMENT_UNDEFINED)
        return false;
    if (graph->key_count == 1) {
        components[count++] = *stored;
    } else if (stored->type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, stored->document);
        while (count < graph->key_count && document_iter_next(&iter))
            components[count++] = iter.value;
    }
    if (count != graph->key_count)
        return false;
    *ret_key = partition_key_of(&graph->space.definition->key, components, count);
    return true;
}

/* The item it was read as, whatever was written since. */
static struct slice document_read(const struct gremlin_element *element)
{
    const struct gremlin_item *item = (const struct gremlin_item *)element->stored;

    return item ? slice_of(item->document, item->len) : SLICE_NONE;
}

static const struct gremlin_source source;

bool gremlin_element_key(const struct gremlin_graph *graph, struct gremlin_value value,
                         struct arena *arena, struct partition_key *ret_key, struct slice *ret_id)
{
    const struct gremlin_element *element = gremlin_element(value);

    if (!gremlin_stored_id(&element->id, arena, ret_id))
        return false;
    if (element->source == &source && element->stored) {
        *ret_key = partition_key_extract(&graph->space.definition->key, document_read(element));
        return true;
    }
    return gremlin_partition_key(graph, element->partition, arena, ret_key);
}

/* --- Making them
 * ------------------------------------------------------------------------------------ */

/* Of the graph's, with the item it was read as; data NULL: it was not read yet. */
static void source_restore(struct gremlin_value value, void *owner, struct slice document)
{
    struct gremlin_element *element = gremlin_element(value);
    struct gremlin_stored *before = element->stored;
    size_t size = sizeof(struct gremlin_item) + document.len;
    struct gremlin_item *item;

    element->source = &source;
    element->owner = owner;
    element->reference = false;
    element->stored = NULL;
    if (!document.data) {
        gremlin_object_unref(before);
        return;
    }
    item = gremlin_object_new(value.object->heap, GREMLIN_STORED, size);

    item->stored.size = (uint32_t)size;
    item->stored.done = NULL;
    item->len = (uint32_t)document.len;
    memcpy(item->document, document.data, document.len);
    element->stored = &item->stored;
    gremlin_object_unref(before);
}

void gremlin_element_fill(struct gremlin_graph *graph, struct gremlin_value value,
                          struct slice document)
{
    source_restore(value, graph->link, document);
}

static struct gremlin_value partition_of(struct gremlin_graph *graph, struct slice document)
{
    struct partition_key key;

    if (!graph->key_count)
        return GREMLIN_NOTHING;
    key = partition_key_extract(&graph->space.definition->key, document);
    return gremlin_partition_value(graph, key.components, key.count);
}

static struct gremlin_value in_partition_of(struct gremlin_graph *graph,
                                            const struct gremlin_head *head)
{
    struct partition_key key;

    if (!graph->key_count || !gremlin_partition_key_stored(graph, &head->in_partition, &key))
        return GREMLIN_NOTHING;
    return gremlin_partition_value(graph, key.components, key.count);
}

static struct gremlin_value edge_of(struct gremlin_graph *graph, const struct gremlin_head *head,
                                    struct gremlin_value id, struct gremlin_value label,
                                    struct gremlin_value partition)
{
    struct gremlin_heap *heap = graph->options.heap;
    struct gremlin_end out = {.id = gremlin_string(heap, head->out_id), .partition = partition};
    struct gremlin_end in = {.id = gremlin_string(heap, head->in_id)};
    struct gremlin_value edge;

    /* references of their own: shared values change places */
    in.partition = gremlin_value_ref(in_partition_of(graph, head));
    out.label = gremlin_value_ref(
        gremlin_label_value(graph, head->out_label.data ? head->out_label : SLICE("vertex")));
    in.label = gremlin_value_ref(
        gremlin_label_value(graph, head->in_label.data ? head->in_label : SLICE("vertex")));
    edge = gremlin_edge_new(heap, id, label, partition, &out, &in);
    gremlin_value_unref(out.id);
    gremlin_value_unref(in.id);
    gremlin_value_unref(out.label);
    gremlin_value_unref(in.label);
    gremlin_value_unref(in.partition);
    return edge;
}

struct gremlin_value gremlin_element_of(struct gremlin_graph *graph, struct slice document)
{
    struct gremlin_head head;
    struct gremlin_value id, label, partition, element;

    if (!gremlin_head_read(document, &head))
        return GREMLIN_NOTHING;
    if (!head.label.data)
        head.label = head.edge ? SLICE("edge") : SLICE("vertex");
    id = gremlin_string(graph->options.heap, head.id);
    label = gremlin_value_ref(gremlin_label_value(graph, head.label));
    partition = gremlin_value_ref(partition_of(graph, document));
    element = head.edge ? edge_of(graph, &head, id, label, partition)
                        : gremlin_vertex_new(graph->options.heap, id, label, partition);
    gremlin_value_unref(id);
    gremlin_value_unref(label);
    gremlin_value_unref(partition);
    gremlin_element_fill(graph, element, document);
    return element;
}

struct gremlin_value gremlin_vertex_head(struct gremlin_graph *graph, struct gremlin_value id,
                                         struct gremlin_value label, struct gremlin_value partition)
{
    struct gremlin_value vertex = gremlin_vertex_new(graph->options.heap, id, label, partition);

    source_restore(vertex, graph->link, SLICE_NONE);
    return vertex;
}

/* --- Properties
 * ------------------------------------------------------------------------------------- */

static bool is_wanted(struct slice name, const struct slice *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(keys[i], name))
            return true;
    return !count;
}

static struct gremlin_properties *meta_decode(struct gremlin_heap *heap, struct slice entry)
{
    struct document_value meta, types, tag;
    struct gremlin_properties *properties;
    struct document_iter iter;
    bool tagged;

    if (!document_find(entry, SLICE("_meta"), &meta) || meta.type != DOCUMENT_OBJECT)
        return NULL;
    tagged = document_find(entry, SLICE("_metaTypes"), &types) && types.type == DOCUMENT_OBJECT;
    properties = gremlin_properties_new(heap, 0);
    document_iter_init(&iter, meta.document);
    while (document_iter_next(&iter)) {
        bool own = tagged && document_find(types.document, iter.key, &tag);

        gremlin_properties_add_take(
            properties, (struct gremlin_slot){
                            .key = gremlin_string(heap, iter.key),
                            .value = gremlin_stored_decode(heap, &iter.value, own ? &tag : NULL)});
    }
    return properties;
}

/* The id of a property that stands bare is made of those of vertex and key. */
static struct gremlin_value bare_id(struct gremlin_heap *heap, struct gremlin_value vertex_id,
                                    struct slice name)
{
    struct slice id = gremlin_is_string(vertex_id) ? gremlin_bytes(vertex_id) : SLICE_NONE;
    uint8_t *data;
    struct gremlin_value text =
        gremlin_bytes_room(heap, GREMLIN_STRING, id.len + 1 + name.len, &data);

    if (id.len)
        memcpy(data, id.data, id.len);
    data[id.len] = '|';
    memcpy(data + id.len + 1, name.data, name.len);
    return text;
}

static void vertex_property_add(const struct gremlin_element *element,
                                const struct document_iter *iter, struct gremlin_properties *into)
{
    struct gremlin_heap *heap = element->object.heap;
    struct gremlin_value key = gremlin_string(heap, iter->key);
    struct gremlin_stored_values values;
    struct document_value value, id, tag;
    struct slice entry;

    gremlin_stored_values_init(&values, &iter->value);
    while (gremlin_stored_values_next(&values, &value, &entry)) {
        bool tagged = entry.data && document_find(entry, SLICE("_type"), &tag);
        struct gremlin_slot slot = {.key = gremlin_value_ref(key),
                                    .value =
                                        gremlin_stored_decode(heap, &value, tagged ? &tag : NULL)};

        if (entry.data && document_find(entry, SLICE("id"), &id))
            slot.id = gremlin_stored_decode(heap, &id, NULL);
        else
            slot.id = bare_id(heap, element->id, iter->key);
        slot.meta = entry.data ? meta_decode(heap, entry) : NULL;
        gremlin_properties_add_take(into, slot);
    }
    gremlin_value_unref(key);
}

static void edge_property_add(const struct gremlin_element *element,
                              const struct document_iter *iter, const struct document_value *types,
                              struct gremlin_properties *into)
{
    struct gremlin_heap *heap = element->object.heap;
    struct document_value tag;
    bool tagged = types->type == DOCUMENT_OBJECT && document_find(types->document, iter->key, &tag);

    gremlin_properties_add_take(
        into, (struct gremlin_slot){
                  .key = gremlin_string(heap, iter->key),
                  .value = gremlin_stored_decode(heap, &iter->value, tagged ? &tag : NULL)});
}

/* System properties are at hand where the item was read with them. */
static bool shows(const struct gremlin_graph *graph, const struct document_names *names,
                  struct slice name)
{
    enum document_system system = document_names_system(names, name);

    return graph && system < DOCUMENT_SYSTEM_SHOWN && (graph->shown >> system & 1);
}

static void end_add(struct gremlin_heap *heap, struct slice name, struct gremlin_value partition,
                    const struct slice *keys, size_t count, struct gremlin_properties *into)
{
    if (is_wanted(name, keys, count) && !gremlin_is_null(partition))
        gremlin_properties_add_take(into,
                                    (struct gremlin_slot){.key = gremlin_string(heap, name),
                                                          .value = gremlin_value_ref(partition)});
}

static void properties_add(const struct gremlin_element *element, struct slice document,
                           const struct slice *keys, size_t count, struct gremlin_properties *into)
{
    const struct gremlin_link *link = element->owner;
    const struct gremlin_graph *graph = link->graph;
    const struct document_names *names = definition_names(DEFINITION_IDENTITY_ID);
    bool edge = element->object.type == GREMLIN_EDGE;
    struct document_value types = document_undefined();
    struct document_iter iter;

    if (edge)
        (void)document_find(document, SLICE("_types"), &types);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        bool own = gremlin_name_is_own(iter.key);

        if (!is_wanted(iter.key, keys, count) || (own && !shows(graph, names, iter.key)))
            continue;
        if (edge && graph && gremlin_graph_key_is(graph, iter.key))
            continue; /* the source's: it is of the item, not of the edge */
        if (edge)
            edge_property_add(element, &iter, &types, into);
        else
            vertex_property_add(element, &iter, into);
    }
    if (edge && graph && graph->shows_ends) {
        const struct gremlin_edge *of = (const struct gremlin_edge *)element;

        end_add(element->object.heap, SLICE("inVPartition"), of->in.partition, keys, count, into);
        end_add(element->object.heap, SLICE("outVPartition"), of->out.partition, keys, count, into);
    }
}

static struct gremlin_value value_of(const struct gremlin_element *element)
{
    return (struct gremlin_value){.type = (enum gremlin_type)element->object.type,
                                  .object = (struct gremlin_object *)&element->object};
}

struct slice gremlin_element_document(const struct gremlin_element *element)
{
    const struct gremlin_link *link = element->owner;
    const struct gremlin_written *written = NULL;
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct partition_key key;
    struct slice id;

    if (element->source != &source)
        return SLICE_NONE;
    if (link->graph && link->graph->written_count) {
        arena = arena_new();
        if (gremlin_element_key(link->graph, value_of(element), arena, &key, &id))
            written = gremlin_graph_written(link->graph, &key, id);
    }
    return written ? written->document : document_read(element);
}

/* An element that is not read yet is read now, alone. */
static bool source_select(const struct gremlin_element *element, const struct slice *keys,
                          size_t count, struct gremlin_properties *into, struct error *err)
{
    const struct gremlin_link *link = element->owner;
    struct slice document;

    if (!element->stored && link->graph) {
        struct gremlin_value value = value_of(element);

        if (!gremlin_graph_load(link->graph, &value, 1, NULL, err))
            return false;
    }
    document = gremlin_element_document(element);
    if (document.data)
        properties_add(element, document, keys, count, into);
    return true;
}

static const struct gremlin_source source = {source_select, document_read, source_restore};

void gremlin_graph_packing(struct gremlin_graph *graph, struct gremlin_packing *ret_packing)
{
    gremlin_packing_init(ret_packing, graph->options.heap, &source, graph->link);
}
