/* Writing: each change reads the item as the transaction has it, makes the new document (change.c)
 * and plans it. */
#include "front/gremlin/graph/change.h"
#include "front/gremlin/graph/graph_private.h"

#include "item/transaction.h"

/* --- New elements
 * ----------------------------------------------------------------------------------- */

static bool exists(struct error *err)
{
    if (err->code == ERROR_ITEM_EXISTS)
        error_set(err, ERROR_ITEM_EXISTS,
                  "Conflicting request to resource has been attempted. Retry to avoid conflicts.");
    return false;
}

/* Most graphs are only read: what ids follow from is asked of the system by the first that writes.
 */
static struct random *ids_of(struct gremlin_graph *graph)
{
    uint64_t seed;

    if (!graph->ids_begun) {
        random_secret(&seed, sizeof seed);
        random_seed(&graph->ids, seed);
        graph->ids_begun = true;
    }
    return &graph->ids;
}

static bool id_make(struct gremlin_graph *graph, const struct gremlin_value *given,
                    struct arena *arena, struct slice *ret_id, struct error *err)
{
    char text[RANDOM_UUID_SIZE];

    if (gremlin_is_null(*given)) {
        *ret_id = arena_copy(arena, gremlin_change_id(ids_of(graph), text));
        return true;
    }
    if (!gremlin_stored_id(given, arena, ret_id))
        return error_set(err, ERROR_BAD_REQUEST, "an id has to be a text, a number or a UUID");
    if (!ret_id->len)
        return error_set(err, ERROR_BAD_REQUEST, "an id cannot be empty");
    for (size_t i = 0; i < ret_id->len; i++)
        if (memchr("/\\#", ret_id->data[i], 3) || !ret_id->data[i])
            return error_set(err, ERROR_BAD_REQUEST,
                             "an id cannot hold the characters /, \\, # and NUL");
    return true;
}

static struct gremlin_change change_of(struct gremlin_graph *graph, struct arena *arena)
{
    return (struct gremlin_change){gremlin_graph_names(graph), ids_of(graph), arena};
}

static bool key_missing(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "Gremlin Query Execution Error: Cannot add a vertex where the partition key "
                     "property has value 'null'.");
}

/* The value that the new vertex is given for a component of the partition key; the last one. */
static bool component_find(const struct gremlin_graph *graph, size_t path,
                           const struct gremlin_new_vertex *vertex, struct arena *arena,
                           struct document_value *ret_component, struct error *err)
{
    const struct gremlin_value *given = NULL;
    struct document_value tag;

    for (size_t i = 0; i < vertex->property_count; i++)
        if (slice_equal(vertex->properties[i].key, graph->keys[path]))
            given = &vertex->properties[i].value;
    if (!given || gremlin_is_null(*given))
        return key_missing(err);
    if (gremlin_is_object(*given) && !gremlin_is_string(*given))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the partition key property '%.*s' has to be a text, a number or a "
                         "boolean",
                         SLICE_ARG(graph->keys[path]));
    return gremlin_stored_encode(given, arena, ret_component, &tag, err);
}

static bool properties_assign(struct gremlin_graph *graph, const struct gremlin_assignment *list,
                              size_t count, bool edge, struct arena *arena, struct slice *document,
                              struct error *err)
{
    struct gremlin_change change = change_of(graph, arena);

    for (size_t i = 0; i < count; i++)
        if (!gremlin_change_assign(&change, *document, edge, &list[i], document, err))
            return false;
    return true;
}

static bool label_check(struct slice label, struct error *err)
{
    if (memchr(label.data ? label.data : (const uint8_t *)"", 0, label.len))
        return error_set(err, ERROR_BAD_REQUEST, "a label cannot hold the character NUL");
    return true;
}

bool gremlin_graph_add_vertex(struct gremlin_graph *graph, const struct gremlin_new_vertex *vertex,
                              struct gremlin_value *ret_vertex, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf out;
    struct document_value components[PARTITION_PATHS_MAX];
    struct partition_key key;
    struct slice id, document;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!label_check(vertex->label, err) || !id_make(graph, &vertex->id, arena, &id, err))
        return false;
    begin = document_begin(&out);
    document_append_string(&out, SLICE("id"), id);
    document_append_string(&out, SLICE("label"),
                           vertex->label.len ? vertex->label : SLICE("vertex"));
    for (size_t i = 0; i < graph->key_count; i++) {
        if (!component_find(graph, i, vertex, arena, &components[i], err))
            return false;
        document_append(&out, graph->keys[i], &components[i]);
    }
    document_end(&out, begin);
    document = buf_slice(&out);
    if (!properties_assign(graph, vertex->properties, vertex->property_count, false, arena,
                           &document, err))
        return false;
    key = partition_key_extract(&graph->space.definition->key, document);
    if (!gremlin_graph_put(graph, &key, id, TRANSACTION_CREATE, document, err))
        return exists(err);
    *ret_vertex = gremlin_element_of(graph, document);
    return true;
}

/* An end of a new edge: it is there, and stays until the commit. */
static bool end_find(struct gremlin_graph *graph, const struct gremlin_value *vertex,
                     struct arena *arena, struct partition_key *ret_key, struct slice *ret_id,
                     struct error *err)
{
    struct gremlin_part *part;
    struct document_value name;
    struct slice document;
    bool gone = false;

    if (vertex->type != GREMLIN_VERTEX)
        return error_set(err, ERROR_BAD_REQUEST, "an edge is between two vertices");
    if (!gremlin_element_key(graph, *vertex, arena, ret_key, ret_id) &&
        (!gremlin_graph_load(graph, vertex, 1, &gone, err) || gone ||
         !gremlin_element_key(graph, *vertex, arena, ret_key, ret_id))) {
        if (err->code == ERROR_NONE)
            error_set(err, ERROR_ITEM_MISSING, "a vertex of the edge does not exist");
        return false;
    }
    if (!gremlin_graph_get(graph, ret_key, *ret_id, &document, err))
        return false;
    if (!document.data)
        return error_set(err, ERROR_ITEM_MISSING, "the vertex \"%.*s\" does not exist",
                         (int)MIN(ret_id->len, (size_t)64), (const char *)ret_id->data);
    name = document_string(*ret_id);
    if (!gremlin_part_enter(graph, ret_key, &part, err))
        return false;
    name.text = arena_copy(part->arena, *ret_id);
    transaction_rely(part->transaction, &name);
    return true;
}

static void sink_append(const struct gremlin_graph *graph, const struct partition_key *key,
                        struct buf *out)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    if (!graph->key_count)
        return;
    if (graph->key_count == 1) {
        document_append(out, SLICE("_sinkPartition"), &key->components[0]);
        return;
    }
    begin = document_append_array_begin(out, SLICE("_sinkPartition"));
    for (uint8_t i = 0; i < key->count; i++)
        document_append(out, document_index_key(i, text), &key->components[i]);
    document_end(out, begin);
}

static struct slice label_of(struct gremlin_value vertex)
{
    struct gremlin_value label = gremlin_element(vertex)->label;

    return gremlin_is_string(label) ? gremlin_bytes(label) : SLICE("vertex");
}

bool gremlin_graph_add_edge(struct gremlin_graph *graph, const struct gremlin_new_edge *edge,
                            struct gremlin_value *ret_edge, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf out;
    struct partition_key from, to;
    struct slice id, from_id, to_id, document;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!label_check(edge->label, err) || !id_make(graph, &edge->id, arena, &id, err) ||
        !end_find(graph, &edge->from, arena, &from, &from_id, err) ||
        !end_find(graph, &edge->to, arena, &to, &to_id, err))
        return false;
    begin = document_begin(&out);
    document_append_string(&out, SLICE("id"), id);
    document_append_string(&out, SLICE("label"), edge->label.len ? edge->label : SLICE("edge"));
    document_append_bool(&out, SLICE("_isEdge"), true);
    document_append_string(&out, SLICE("_vertexId"), from_id);
    document_append_string(&out, SLICE("_vertexLabel"), label_of(edge->from));
    document_append_string(&out, SLICE("_sink"), to_id);
    document_append_string(&out, SLICE("_sinkLabel"), label_of(edge->to));
    sink_append(graph, &to, &out);
    for (size_t i = 0; i < graph->key_count; i++)
        if (from.components[i].type != DOCUMENT_UNDEFINED)
            document_append(&out, graph->keys[i], &from.components[i]);
    document_end(&out, begin);
    document = buf_slice(&out);
    if (!properties_assign(graph, edge->properties, edge->property_count, true, arena, &document,
                           err))
        return false;
    if (!gremlin_graph_put(graph, &from, id, TRANSACTION_CREATE, document, err))
        return exists(err);
    *ret_edge = gremlin_element_of(graph, document);
    return true;
}

/* --- Changes
 * --------------------------------------------------------------------------------------------- */

/* The element's document as the transaction has it. */
static bool current(struct gremlin_graph *graph, struct gremlin_value element, struct arena *arena,
                    struct partition_key *ret_key, struct slice *ret_id, struct slice *ret_document,
                    struct error *err)
{
    *ret_document = SLICE_NONE;
    if (!gremlin_element_key(graph, element, arena, ret_key, ret_id)) {
        if (!gremlin_graph_load(graph, &element, 1, NULL, err))
            return false;
        if (!gremlin_element_key(graph, element, arena, ret_key, ret_id))
            return true; /* there is none */
    }
    return gremlin_graph_get(graph, ret_key, *ret_id, ret_document, err);
}

static bool gone(struct slice id, struct error *err)
{
    return error_set(err, ERROR_ITEM_MISSING, "the element \"%.*s\" was dropped",
                     (int)MIN(id.len, (size_t)64), (const char *)id.data);
}

static bool replace(struct gremlin_graph *graph, struct gremlin_value element,
                    const struct partition_key *key, struct slice id, struct slice before,
                    struct slice document, struct error *err)
{
    if (slice_equal(before, document))
        return true;
    if (!gremlin_graph_put(graph, key, id, TRANSACTION_REPLACE, document, err))
        return false;
    gremlin_element_fill(graph, element, document);
    return true;
}

static struct slice text_of(struct gremlin_value value)
{
    return gremlin_is_string(value) ? gremlin_bytes(value) : SLICE_NONE;
}

/* The property in hand shows the meta-properties that its vertex has now. */
static bool meta_refresh(struct gremlin_value property, struct error *err)
{
    const struct gremlin_vertex_property *of = gremlin_vertex_property(property);
    struct slice key = text_of(of->element.label);
    CLEANUP(gremlin_properties_unref)
    struct gremlin_properties *found = gremlin_properties_new(property.object->heap, 1);

    if (!gremlin_element_select(of->vertex, &key, 1, found, err))
        return false;
    for (uint32_t i = 0; i < found->count; i++)
        if (slice_equal(text_of(found->slots[i].id), text_of(of->element.id)))
            gremlin_element_set_take(property, gremlin_object_ref(found->slots[i].meta));
    return true;
}

static bool meta_assign(struct gremlin_graph *graph, struct gremlin_value property,
                        const struct gremlin_assignment *list, size_t count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_change change = change_of(graph, arena);
    const struct gremlin_vertex_property *of = gremlin_vertex_property(property);
    struct partition_key key;
    struct slice id = SLICE_NONE, before, document;

    if (of->vertex.type != GREMLIN_VERTEX)
        return error_set(err, ERROR_BAD_REQUEST, "the vertex of the property is not known");
    if (!current(graph, of->vertex, arena, &key, &id, &before, err))
        return false;
    if (!before.data)
        return gone(id, err);
    document = before;
    for (size_t i = 0; i < count; i++)
        if (!gremlin_change_meta(&change, document, text_of(of->element.label),
                                 text_of(of->element.id), list[i].key, &list[i].value, &document,
                                 err))
            return false;
    return replace(graph, of->vertex, &key, id, before, document, err) &&
           meta_refresh(property, err);
}

bool gremlin_graph_assign(struct gremlin_graph *graph, const struct gremlin_value *element,
                          const struct gremlin_assignment *properties, size_t property_count,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key key;
    struct slice id = SLICE_NONE, before, document;

    if (element->type == GREMLIN_VERTEX_PROPERTY)
        return meta_assign(graph, *element, properties, property_count, err);
    if (element->type != GREMLIN_VERTEX && element->type != GREMLIN_EDGE)
        return error_set(err, ERROR_BAD_REQUEST, "only elements have properties");
    if (!current(graph, *element, arena, &key, &id, &before, err))
        return false;
    if (!before.data)
        return gone(id, err);
    document = before;
    return properties_assign(graph, properties, property_count, element->type == GREMLIN_EDGE,
                             arena, &document, err) &&
           replace(graph, *element, &key, id, before, document, err);
}

/* --- Dropping
 * -----------------------------------------------------------------------------------------------
 */

static bool element_drop(struct gremlin_graph *graph, struct gremlin_value element,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key key;
    struct slice id = SLICE_NONE, document;

    if (!current(graph, element, arena, &key, &id, &document, err))
        return false;
    return !document.data ||
           gremlin_graph_put(graph, &key, id, TRANSACTION_DELETE, SLICE_NONE, err);
}

static bool property_drop(struct gremlin_graph *graph, struct gremlin_value thing,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_change change = change_of(graph, arena);
    const struct gremlin_vertex_property *of = NULL;
    const struct gremlin_property *property = NULL;
    struct gremlin_value owner;
    struct partition_key key;
    struct slice id = SLICE_NONE, before, document;
    bool fine;

    if (thing.type == GREMLIN_PROPERTY) {
        property = gremlin_property(thing);
        owner = property->owner;
        if (owner.type == GREMLIN_VERTEX_PROPERTY)
            of = gremlin_vertex_property(owner);
    } else {
        of = gremlin_vertex_property(thing);
    }
    if (of)
        owner = of->vertex;
    if (owner.type != GREMLIN_VERTEX && owner.type != GREMLIN_EDGE)
        return error_set(err, ERROR_BAD_REQUEST, "the element of the property is not known");
    if (!current(graph, owner, arena, &key, &id, &before, err))
        return false;
    if (!before.data)
        return true;
    if (of && property)
        fine = gremlin_change_meta(&change, before, text_of(of->element.label),
                                   text_of(of->element.id), text_of(property->key), NULL, &document,
                                   err);
    else if (of)
        fine = gremlin_change_remove(&change, before, text_of(of->element.label),
                                     text_of(of->element.id), &document, err);
    else
        fine = gremlin_change_remove(&change, before, text_of(property->key), SLICE_NONE, &document,
                                     err);
    return fine && replace(graph, owner, &key, id, before, document, err);
}

/* The edges of all vertices first, found together. */
static bool edges_drop(struct gremlin_graph *graph, const struct gremlin_value *vertices,
                       size_t count, struct error *err)
{
    const struct gremlin_expansion expansion = {.vertices = vertices,
                                                .vertex_count = count,
                                                .reach = GREMLIN_REACH_BOTH,
                                                .want = GREMLIN_WANT_EDGES};
    CLEANUP(memory_free) struct gremlin_value *edges = NULL;
    size_t edge_count = 0, capacity = 0;
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct gremlin_page page;
    bool fine = gremlin_graph_expand(graph, &expansion, &found, err);

    do {
        fine = fine && gremlin_found_next(found, 0, &page, err);
        for (size_t i = 0; fine && i < page.count; i++) {
            if (edge_count == capacity) {
                capacity = capacity ? 2 * capacity : 64;
                edges = memory_realloc(edges, memory_array_size(capacity, sizeof *edges));
            }
            edges[edge_count++] = gremlin_value_ref(page.elements[i]);
        }
    } while (fine && page.count);
    /* after all were found: a query sees what was written before it, and dropping writes */
    for (size_t i = 0; i < edge_count; i++) {
        fine = fine && element_drop(graph, edges[i], err);
        gremlin_value_unref(edges[i]);
    }
    return fine;
}

bool gremlin_graph_drop(struct gremlin_graph *graph, const struct gremlin_value *things,
                        size_t count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_value *vertices = ARENA_ARRAY(arena, struct gremlin_value, count + 1);
    size_t vertex_count = 0;

    if (graph->options.readonly)
        return error_set(err, ERROR_FORBIDDEN, "the key or token used may only read");
    gremlin_graph_begin(graph);
    for (size_t i = 0; i < count; i++)
        if (things[i].type == GREMLIN_VERTEX)
            vertices[vertex_count++] = things[i];
    if (vertex_count && !edges_drop(graph, vertices, vertex_count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        bool fine;

        if (things[i].type == GREMLIN_VERTEX || things[i].type == GREMLIN_EDGE)
            fine = element_drop(graph, things[i], err);
        else if (things[i].type == GREMLIN_VERTEX_PROPERTY || things[i].type == GREMLIN_PROPERTY)
            fine = property_drop(graph, things[i], err);
        else
            fine = error_set(err, ERROR_BAD_REQUEST, "only elements and properties can be dropped");
        if (!fine)
            return false;
    }
    return true;
}
