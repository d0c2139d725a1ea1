/* The other ends of edges: each vertex is read once, however many edges lead to it, by its key;
 * those that their edges do not place are searched by id. */
#include "front/gremlin/graph/neighbours.h"

#include <xxhash.h>

struct neighbours {
    struct gremlin_neighbours *of;
    struct items_reference *references;
    size_t *places; /* of edges: which reference; SIZE_MAX: it is looked for by id */
};

static bool is_same_reference(const struct items_reference *a, const struct items_reference *b)
{
    return slice_equal(a->id.text, b->id.text) && partition_key_equal(&a->key, &b->key);
}

static bool other_end(const struct gremlin_graph *graph, const struct gremlin_edge_row *edge,
                      struct items_reference *ret_reference)
{
    ret_reference->id = document_string(edge->in ? edge->head.out_id : edge->head.in_id);
    if (edge->in) {
        ret_reference->key = edge->key;
        return true;
    }
    return gremlin_partition_key_stored(graph, &edge->head.in_partition, &ret_reference->key);
}

/* Each vertex once, however many edges lead to it. */
static size_t references_gather(struct neighbours *n, struct arena *arena)
{
    size_t slot_count = 16, count = 0;
    uint32_t *slots;

    while (slot_count < 2 * n->of->count)
        slot_count *= 2;
    slots = arena_alloc_zero(arena, memory_array_size(slot_count, sizeof *slots));
    for (size_t i = 0; i < n->of->count; i++) {
        struct items_reference *reference = &n->references[count];
        size_t at;

        n->places[i] = SIZE_MAX;
        if (!other_end(n->of->graph, &n->of->edges[i], reference))
            continue;
        at = XXH3_64bits(reference->id.text.data, reference->id.text.len) & (slot_count - 1);
        while (slots[at] && !is_same_reference(&n->references[slots[at] - 1], reference))
            at = (at + 1) & (slot_count - 1);
        if (!slots[at])
            slots[at] = (uint32_t)++count;
        n->places[i] = slots[at] - 1;
    }
    return count;
}

struct loading {
    const struct gremlin_neighbours *of;
    struct gremlin_value *read; /* of references */
};

static bool vertex_passes(const struct gremlin_neighbours *of, struct slice document)
{
    for (size_t i = 0; i < of->test_count; i++)
        if (!gremlin_test_holds(of->tests[i], document))
            return false;
    return true;
}

static bool vertex_take(void *self, size_t reference, struct slice document,
                        struct error *err UNUSED)
{
    struct loading *loading = self;
    struct gremlin_value element;

    if (!vertex_passes(loading->of, document))
        return true;
    element = gremlin_element_of(loading->of->graph, document);
    if (!gremlin_is_null(element) && element.type != GREMLIN_VERTEX) {
        gremlin_value_unref(element);
        return true;
    }
    loading->read[reference] = element;
    return true;
}

static bool neighbours_load(struct neighbours *n, size_t count, struct arena *arena,
                            struct error *err)
{
    struct loading loading = {n->of, ARENA_ARRAY(arena, struct gremlin_value, count)};
    struct gremlin_fetch fetch = {
        .references = n->references, .count = count, .take = vertex_take, .self = &loading};
    bool fine;

    for (size_t i = 0; i < count; i++)
        loading.read[i] = GREMLIN_NOTHING;
    fine = !count || gremlin_graph_fetch(n->of->graph, &fetch, err);
    for (size_t i = 0; fine && i < n->of->count; i++)
        if (n->places[i] != SIZE_MAX)
            n->of->vertices[i] = gremlin_value_ref(loading.read[n->places[i]]);
    for (size_t i = 0; i < count; i++)
        gremlin_value_unref(loading.read[i]);
    return fine;
}

/* Targets that their edges do not place: by id, among all. */
static bool neighbours_seek(struct neighbours *n, struct arena *arena, struct error *err)
{
    struct gremlin_graph *graph = n->of->graph;
    struct gremlin_reference *references =
        ARENA_ARRAY(arena, struct gremlin_reference, n->of->count);
    struct gremlin_search search = {.kind = GREMLIN_ELEMENT_VERTEX, .references = references};
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct gremlin_page page;
    bool fine = true;

    for (size_t i = 0; i < n->of->count; i++)
        if (n->places[i] == SIZE_MAX)
            references[search.reference_count++] = (struct gremlin_reference){
                gremlin_string(graph->options.heap, n->of->edges[i].head.in_id), GREMLIN_NOTHING};
    if (!search.reference_count)
        return true;
    fine = gremlin_graph_search(graph, &search, &found, err);
    for (size_t i = 0; i < search.reference_count; i++)
        gremlin_value_unref(references[i].id);
    do {
        if (!fine || !gremlin_found_next(found, 0, &page, err))
            return false;
        for (size_t i = 0; i < n->of->count; i++) {
            for (size_t k = 0; n->places[i] == SIZE_MAX && k < page.count; k++) {
                if (!gremlin_is_text(gremlin_element(page.elements[k])->id,
                                     n->of->edges[i].head.in_id) ||
                    !vertex_passes(n->of,
                                   gremlin_element_document(gremlin_element(page.elements[k]))))
                    continue;
                gremlin_value_unref(n->of->vertices[i]);
                n->of->vertices[i] = gremlin_value_ref(page.elements[k]);
            }
        }
    } while (page.count);
    return true;
}

static struct gremlin_value neighbour_head(struct gremlin_graph *graph,
                                           const struct gremlin_edge_row *edge)
{
    bool in = edge->in;
    struct partition_key key = edge->key;
    struct gremlin_value id, label, partition = GREMLIN_NOTHING, vertex;
    struct slice text = in ? edge->head.out_label : edge->head.in_label;
    bool placed = in || gremlin_partition_key_stored(graph, &edge->head.in_partition, &key);

    if (graph->bound && (!placed || !partition_key_starts_with(&key, &graph->only)))
        return GREMLIN_NOTHING;
    if (graph->key_count && placed)
        partition = gremlin_value_ref(gremlin_partition_value(graph, key.components, key.count));
    id = gremlin_string(graph->options.heap, in ? edge->head.out_id : edge->head.in_id);
    label = gremlin_value_ref(gremlin_label_value(graph, text.data ? text : SLICE("vertex")));
    vertex = gremlin_vertex_head(graph, id, label, partition);
    gremlin_value_unref(id);
    gremlin_value_unref(label);
    gremlin_value_unref(partition);
    return vertex;
}

bool gremlin_neighbours_find(struct gremlin_neighbours *of, struct arena *arena, struct error *err)
{
    struct neighbours n = {.of = of};

    for (size_t i = 0; i < of->count; i++)
        of->vertices[i] = of->heads ? neighbour_head(of->graph, &of->edges[i]) : GREMLIN_NOTHING;
    if (of->heads)
        return true;
    n.references = ARENA_ARRAY(arena, struct items_reference, of->count + 1);
    n.places = ARENA_ARRAY(arena, size_t, of->count);
    return neighbours_load(&n, references_gather(&n, arena), arena, err) &&
           neighbours_seek(&n, arena, err);
}

/* --- Ends and heads
 * -------------------------------------------------------------------------------- */

static struct gremlin_value end_of(struct gremlin_graph *graph, struct gremlin_value edge, bool in)
{
    const struct gremlin_end *end = in ? &gremlin_edge(edge)->in : &gremlin_edge(edge)->out;
    struct gremlin_value label =
        gremlin_is_null(end->label) ? gremlin_label_value(graph, SLICE("vertex")) : end->label;

    return gremlin_vertex_head(graph, end->id, label, end->partition);
}

bool gremlin_graph_ends(struct gremlin_graph *graph, const struct gremlin_value *edges,
                        size_t count, enum gremlin_reach which, bool heads,
                        struct gremlin_value *ret_vertices, struct error *err)
{
    CLEANUP(memory_free) bool *gone = NULL;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        if (which != GREMLIN_REACH_IN)
            ret_vertices[total++] = end_of(graph, edges[i], false);
        if (which != GREMLIN_REACH_OUT)
            ret_vertices[total++] = end_of(graph, edges[i], true);
    }
    if (heads || !total)
        return true;
    gone = memory_alloc_zero(total);
    if (!gremlin_graph_load(graph, ret_vertices, total, gone, err)) {
        for (size_t i = 0; i < total; i++)
            gremlin_value_unref(ret_vertices[i]);
        return false;
    }
    for (size_t i = 0; i < total; i++)
        if (gone[i])
            gremlin_value_replace_take(&ret_vertices[i], GREMLIN_NOTHING);
    return true;
}
