/* Elements at hand that were not read yet, read in one go: by key where it is known, the others by
 * id. */
#include "front/gremlin/graph/graph_private.h"

struct loading {
    struct gremlin_graph *graph;
    const struct gremlin_value *elements;
    const size_t *places; /* of references among the elements */
    bool *found;          /* of elements */
    bool *sought;         /* of elements: by id, for their key is not known */
};

static bool is_unread(const struct gremlin_graph *graph, struct gremlin_value value)
{
    const struct gremlin_element *element;

    if (value.type != GREMLIN_VERTEX && value.type != GREMLIN_EDGE)
        return false;
    element = gremlin_element(value);
    return !element->stored && (element->reference || element->owner == graph->link);
}

/* Id and label of what a client has sent are as they are stored. */
static void element_adopt(struct gremlin_graph *graph, struct gremlin_value value,
                          const struct gremlin_head *head, struct slice document)
{
    struct gremlin_element *element = gremlin_element(value);

    if (!gremlin_is_text(element->id, head->id))
        gremlin_value_replace_take(&element->id, gremlin_string(graph->options.heap, head->id));
    if (head->label.data && !gremlin_is_text(element->label, head->label))
        gremlin_value_replace_take(&element->label,
                                   gremlin_value_ref(gremlin_label_value(graph, head->label)));
    gremlin_element_fill(graph, value, document);
}

static bool document_take(void *self, size_t reference, struct slice document,
                          struct error *err UNUSED)
{
    struct loading *loading = self;
    struct gremlin_value element = loading->elements[loading->places[reference]];
    struct gremlin_head head;

    if (!gremlin_head_read(document, &head) || head.edge != (element.type == GREMLIN_EDGE))
        return true;
    element_adopt(loading->graph, element, &head, document);
    loading->found[loading->places[reference]] = true;
    return true;
}

/* Those without a key: searched by id, and given the first of that id. */
static bool ids_load(struct loading *loading, size_t count, enum gremlin_element_kind kind,
                     struct error *err)
{
    enum gremlin_type type = kind == GREMLIN_ELEMENT_EDGE ? GREMLIN_EDGE : GREMLIN_VERTEX;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_reference *references = ARENA_ARRAY(arena, struct gremlin_reference, count + 1);
    size_t *places = ARENA_ARRAY(arena, size_t, count + 1);
    struct gremlin_search search = {.kind = kind, .references = references};
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct gremlin_page page;

    for (size_t i = 0; i < count; i++) {
        struct gremlin_value element = loading->elements[i];

        if (element.type != type || !loading->sought[i])
            continue;
        places[search.reference_count] = i;
        references[search.reference_count++] =
            (struct gremlin_reference){gremlin_element(element)->id, GREMLIN_NOTHING};
    }
    if (!search.reference_count)
        return true;
    if (!gremlin_graph_search(loading->graph, &search, &found, err))
        return false;
    do {
        if (!gremlin_found_next(found, 0, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++) {
            const struct gremlin_element *read = gremlin_element(page.elements[i]);

            for (size_t k = 0; k < search.reference_count; k++) {
                struct gremlin_value element = loading->elements[places[k]];
                CLEANUP(arena_free) struct arena *text_arena = NULL;
                struct gremlin_head head;
                struct slice id;

                if (loading->found[places[k]])
                    continue;
                text_arena = arena_new();
                if (!gremlin_stored_id(&gremlin_element(element)->id, text_arena, &id) ||
                    !gremlin_is_text(read->id, id))
                    continue;
                if (!gremlin_head_read(gremlin_element_document(read), &head))
                    continue;
                element_adopt(loading->graph, element, &head, gremlin_element_document(read));
                gremlin_value_replace_take(&gremlin_element(element)->partition,
                                           gremlin_value_ref(read->partition));
                loading->found[places[k]] = true;
            }
        }
    } while (page.count);
    return true;
}

bool gremlin_graph_load(struct gremlin_graph *graph, const struct gremlin_value *elements,
                        size_t count, bool *ret_gone, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct items_reference *references = ARENA_ARRAY(arena, struct items_reference, count + 1);
    size_t *places = ARENA_ARRAY(arena, size_t, count + 1);
    struct loading loading = {.graph = graph,
                              .elements = elements,
                              .places = places,
                              .found = arena_alloc_zero(arena, count + 1),
                              .sought = arena_alloc_zero(arena, count + 1)};
    struct gremlin_fetch fetch = {
        .references = references, .take = document_take, .self = &loading};
    bool unplaced = false;

    for (size_t i = 0; i < count; i++) {
        struct slice id;

        loading.found[i] = !is_unread(graph, elements[i]);
        if (loading.found[i])
            continue;
        if (!gremlin_element_key(graph, elements[i], arena, &references[fetch.count].key, &id)) {
            unplaced = loading.sought[i] = true;
            continue;
        }
        references[fetch.count].id = document_string(id);
        places[fetch.count++] = i;
    }
    if (fetch.count && !gremlin_graph_fetch(graph, &fetch, err))
        return false;
    if (unplaced && (!ids_load(&loading, count, GREMLIN_ELEMENT_VERTEX, err) ||
                     !ids_load(&loading, count, GREMLIN_ELEMENT_EDGE, err)))
        return false;
    for (size_t i = 0; ret_gone && i < count; i++)
        ret_gone[i] = !loading.found[i];
    return true;
}
