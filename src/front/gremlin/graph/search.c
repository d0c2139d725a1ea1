/* Searches: elements by ids and conditions.
 *
 * Where ids come with their partition keys they are read by key. Ids alone, and conditions, are a
 * plan of query/: the conditions tell which index serves (condition.c), and what they say of the
 * partition key leads to its partitions. */
#include "front/gremlin/graph/graph_private.h"
#include "front/gremlin/graph/walk.h"

#include <xxhash.h>

enum { VERTICES_FIRST = 64 /* of a walk over vertices, at once */ };

struct search {
    struct gremlin_found found;
    enum gremlin_element_kind kind;
    const struct gremlin_test **tests;
    size_t test_count;

    /* By plan. */
    struct query_plan plan;
    const struct query_scope *scopes;
    size_t scope_count, scope_at;
    struct query_entries entries; /* index not NULL: vertices are found by their entries instead */
    size_t room;                  /* of those: a page has so many */
    struct arena *page_arena;     /* of the continuation */
    struct slice continuation;
    uint64_t missed; /* rows of the last page that were no elements */

    /* By reference. */
    const struct reference *references;
    size_t reference_count, reference_at;
    struct gremlin_value *read; /* of the present batch: an element, or null */
    size_t read_from;
};

/* What was asked for, copied. */
struct reference {
    struct slice id;
    bool keyed;
    struct partition_key key;
};

/* --- References ----------------------------------------------------------------------------------
 */

/* A list [key, id], or [key, key, id]. */
static bool pair_of(const struct gremlin_graph *graph, const struct gremlin_list *list,
                    struct gremlin_reference *ret_reference)
{
    if (!graph->key_count || list->count != graph->key_count + 1)
        return false;
    ret_reference->id = list->items[list->count - 1];
    ret_reference->partition = list->items[0];
    return graph->key_count == 1;
}

bool gremlin_reference_of(const struct gremlin_graph *graph, const struct gremlin_value *value,
                          struct gremlin_reference *ret_reference)
{
    if (gremlin_is_element(*value)) {
        *ret_reference = (struct gremlin_reference){gremlin_element(*value)->id,
                                                    gremlin_element(*value)->partition};
        return value->type != GREMLIN_VERTEX_PROPERTY;
    }
    *ret_reference = (struct gremlin_reference){*value, GREMLIN_NOTHING};
    if (value->type == GREMLIN_LIST) {
        if (!pair_of(graph, gremlin_list(*value), ret_reference)) {
            /* of several paths the list itself says the key: all but the last of its items */
            if (graph->key_count < 2 || gremlin_list(*value)->count != graph->key_count + 1)
                return false;
            ret_reference->partition = *value;
        }
    }
    switch (ret_reference->id.type) {
    case GREMLIN_BOOLEAN:
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
    case GREMLIN_CHAR:
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
    case GREMLIN_STRING:
    case GREMLIN_UUID:
        return true;
    default:
        return false;
    }
}

bool gremlin_id_text(struct gremlin_heap *heap, const struct gremlin_value *id,
                     struct gremlin_value *ret_text)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice text;

    if (!gremlin_stored_id(id, arena, &text))
        return false;
    *ret_text = gremlin_string(heap, text);
    return true;
}

static void key_copy(struct partition_key *key, struct arena *arena)
{
    for (size_t i = 0; i < key->count; i++)
        if (key->components[i].type == DOCUMENT_STRING)
            key->components[i].text = arena_copy(arena, key->components[i].text);
}

/* A list that is id and key at once has its first components for the key. */
static bool key_of(const struct gremlin_graph *graph, const struct gremlin_reference *reference,
                   struct arena *arena, struct partition_key *ret_key)
{
    struct gremlin_list front;

    if (reference->partition.type == GREMLIN_LIST &&
        gremlin_list(reference->partition)->count == graph->key_count + 1) {
        front = *gremlin_list(reference->partition);
        front.count--;
        front.object.references = GREMLIN_FOREVER;
        return gremlin_partition_key(
            graph, (struct gremlin_value){.type = GREMLIN_LIST, .object = &front.object}, arena,
            ret_key);
    }
    return gremlin_partition_key(graph, reference->partition, arena, ret_key);
}

static void references_copy(struct search *search, const struct gremlin_search *asked)
{
    struct arena *arena = search->found.arena;
    struct reference *list = ARENA_ARRAY(arena, struct reference, asked->reference_count);

    for (size_t i = 0; i < asked->reference_count; i++) {
        struct reference *to = &list[search->reference_count];

        if (!gremlin_stored_id(&asked->references[i].id, arena, &to->id))
            continue;
        to->id = arena_copy(arena, to->id);
        to->keyed = key_of(search->found.graph, &asked->references[i], arena, &to->key);
        if (to->keyed)
            key_copy(&to->key, arena);
        search->reference_count++;
    }
    search->references = list;
}

/* --- The plan ------------------------------------------------------------------------------------
 */

static void tests_compile(struct search *search, const struct gremlin_search *asked)
{
    struct gremlin_names names = gremlin_graph_names(search->found.graph);

    search->tests =
        ARENA_ARRAY(search->found.arena, const struct gremlin_test *, asked->condition_count + 1);
    for (size_t i = 0; i < asked->condition_count; i++)
        search->tests[search->test_count++] =
            gremlin_test_compile(&asked->conditions[i], asked->kind, &names, search->found.arena);
}

static bool tests_hold(const struct search *search, struct slice document)
{
    for (size_t i = 0; i < search->test_count; i++)
        if (!gremlin_test_holds(search->tests[i], document))
            return false;
    return true;
}

/* ids NULL: any. */
static const struct query_expression *filter_build(const struct search *search,
                                                   const struct slice *ids, size_t id_count,
                                                   struct query_build *build)
{
    const struct query_expression *filter = gremlin_kind_expression(search->kind, build);

    if (ids)
        filter = query_and(build, gremlin_one_of(SLICE("id"), ids, id_count, build), filter);
    for (size_t i = 0; i < search->test_count; i++)
        filter = query_and(build, gremlin_test_expression(search->tests[i], build), filter);
    return filter;
}

static bool plan_build(const struct search *search, const struct slice *ids, size_t id_count,
                       struct arena *arena, struct query_plan *ret_plan, struct error *err)
{
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_SQL};
    const struct query_expression *filter = filter_build(search, ids, id_count, &build);

    *ret_plan = (struct query_plan){
        .query = {.filter = filter,
                  .select = gremlin_item_expression(search->found.graph, &build),
                  .limit = UINT64_MAX},
        .slot_count = 1,
        .order = DOCUMENT_ORDER_SQL,
        .order_free = true,
        .first_leads = ids || search->test_count,
        .fingerprint = 1};
    if (build.failed)
        *err = build.error;
    return !build.failed;
}

static bool row_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct search *search = self;
    struct gremlin_value element = gremlin_element_of(search->found.graph, value->document);

    if (gremlin_is_null(element))
        search->missed++;
    else
        gremlin_found_add_take(&search->found, 0, element, GREMLIN_NOTHING);
    return true;
}

/* A page of the plan. */
static bool plan_next(struct gremlin_found *found, size_t want, struct error *err)
{
    struct search *search = (struct search *)found;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_reading reading = {.plan = &search->plan,
                                      .scope = search->scopes[search->scope_at],
                                      .rows_max = want,
                                      .continuation = search->continuation,
                                      .arena = arena,
                                      .row = row_take,
                                      .self = search};
    bool fine = gremlin_reading_run(found->graph, &reading, err);

    gremlin_reading_count(found->graph, &reading);
    if (!fine)
        return false;
    arena_free(search->page_arena);
    search->page_arena = TAKE(arena);
    search->continuation = reading.continuation;
    if (!search->continuation.len) {
        search->scope_at++;
        found->ended = search->scope_at == search->scope_count;
    }
    return true;
}

/* --- By entries of vertices ----------------------------------------------------------------------
 */

/* Where the vertices of a page are. */
struct keys {
    struct search *search;
    struct arena *arena;
    struct items_reference *list;
    size_t count, capacity;
    size_t bytes; /* of their documents */
};

static void vertex_add(struct keys *keys, struct slice document)
{
    struct search *search = keys->search;
    struct gremlin_value element = GREMLIN_NOTHING;

    keys->bytes += document.len;
    if (tests_hold(search, document))
        element = gremlin_element_of(search->found.graph, document);
    if (!gremlin_is_null(element) && element.type == GREMLIN_VERTEX)
        gremlin_found_add_take(&search->found, 0, element, GREMLIN_NOTHING);
    else
        gremlin_value_unref(element);
}

static bool vertex_take(void *self, const struct query_entry *entry, struct error *err UNUSED)
{
    struct keys *keys = self;
    struct items_reference *to = &keys->list[keys->count];
    struct slice id;

    if (entry->document.data) { /* an id that does not fit its entry: it was read */
        vertex_add(keys, entry->document);
        return true;
    }
    assert(keys->count < keys->capacity);
    if (!gremlin_walk_vertex(keys->search->found.graph, entry, &id, &to->key))
        return true;
    to->id = document_string(arena_copy(keys->arena, id));
    key_copy(&to->key, keys->arena);
    keys->count++;
    return true;
}

static bool vertex_read(void *self, size_t reference UNUSED, struct slice document,
                        struct error *err UNUSED)
{
    vertex_add(self, document);
    return true;
}

/* How large they are is known once they are read: pages begin small, and grow to a fourth of the
 * bytes that those of a plan have at most. */
static void room_fit(struct search *search, const struct keys *keys)
{
    size_t bytes_max = search->found.graph->options.limits.page_bytes / 4;

    if (keys->bytes > bytes_max)
        search->room = MAX(search->room / 2, (size_t)1);
    else if (keys->bytes <= bytes_max / 2)
        search->room = MIN(search->room * 2, (size_t)GREMLIN_CHUNK);
}

/* A page: entries, and then what they are of in one batch. */
static bool vertices_next(struct gremlin_found *found, size_t want, struct error *err)
{
    struct search *search = (struct search *)found;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct keys keys = {.search = search,
                        .arena = arena,
                        .capacity = want ? MIN(want, search->room) : search->room};
    struct gremlin_reading reading = {.entries = &search->entries,
                                      .scope = search->scopes[search->scope_at],
                                      .rows_max = keys.capacity,
                                      .arena = arena};
    struct gremlin_fetch fetch = {.take = vertex_read, .self = &keys};
    bool fine;

    keys.list = ARENA_ARRAY(arena, struct items_reference, keys.capacity);
    search->entries.self = &keys;
    fine = gremlin_reading_run(found->graph, &reading, err);
    gremlin_reading_count(found->graph, &reading);
    if (!fine)
        return false;
    fetch.references = keys.list;
    fetch.count = keys.count;
    if (keys.count && !gremlin_graph_fetch(found->graph, &fetch, err))
        return false;
    room_fit(search, &keys);
    /* where the next page begins outlives the arena of this one */
    arena_free(search->page_arena);
    search->page_arena = TAKE(arena);
    if (search->entries.ended) {
        search->entries.place = (struct query_entries_place){0};
        search->scope_at++;
        found->ended = search->scope_at == search->scope_count;
    }
    return true;
}

/* Vertices of which no index tells more: all of them, without the edges between them. */
static bool vertices_begin(struct search *search)
{
    static const struct cursor_range everything = {SLICE("\x01"), SLICE("\xFF")};
    const struct index_definition *index;

    for (size_t i = 0; i < search->test_count; i++)
        if (gremlin_test_leads(search->tests[i]))
            return false;
    /* of one partition key the plan asks by that, and entries only by its routing key */
    index = search->kind == GREMLIN_ELEMENT_VERTEX && !search->found.graph->bound
                ? gremlin_walk_index(search->found.graph, GREMLIN_WALK_VERTICES)
                : NULL;
    if (!index)
        return false;
    search->entries = (struct query_entries){
        .index = index, .ranges = &everything, .range_count = 1, .take = vertex_take};
    search->room = VERTICES_FIRST;
    search->found.next = vertices_next;
    return true;
}

static void search_done(struct gremlin_found *found)
{
    arena_free(((struct search *)found)->page_arena);
}

/* --- By reference
 * --------------------------------------------------------------------------------- */

struct batch {
    struct search *search;
    const size_t *places;         /* of the references asked for, in the batch */
    struct gremlin_value *values; /* one for each reference of the batch, or null */
    const struct reference *references;
    size_t count;
    /* Of ids without a key: references of the same hash, 1 + their place. */
    uint32_t *slots, *next;
    size_t slot_count;
    struct gremlin_value *others; /* elements of further keys: in no order of their own */
    size_t *other_places;
    size_t other_count, other_capacity;
};

static bool keyed_take(void *self, size_t reference, struct slice document,
                       struct error *err UNUSED)
{
    struct batch *batch = self;
    struct gremlin_value element;

    if (!tests_hold(batch->search, document))
        return true;
    element = gremlin_element_of(batch->search->found.graph, document);
    if (!gremlin_is_null(element) &&
        (element.type == GREMLIN_EDGE) != (batch->search->kind == GREMLIN_ELEMENT_EDGE)) {
        gremlin_value_unref(element);
        return true;
    }
    batch->values[batch->places[reference]] = element;
    return true;
}

static bool keyed_read(struct batch *batch, struct arena *arena, struct error *err)
{
    struct items_reference *asked = ARENA_ARRAY(arena, struct items_reference, batch->count);
    size_t *places = ARENA_ARRAY(arena, size_t, batch->count);
    struct gremlin_fetch fetch = {.references = asked, .take = keyed_take, .self = batch};

    for (size_t i = 0; i < batch->count; i++) {
        const struct reference *reference = &batch->references[i];

        if (!reference->keyed)
            continue;
        places[fetch.count] = i;
        asked[fetch.count++] =
            (struct items_reference){reference->key, document_string(reference->id)};
    }
    batch->places = places;
    return !fetch.count || gremlin_graph_fetch(batch->search->found.graph, &fetch, err);
}

static size_t slot_of(const struct batch *batch, struct slice id)
{
    return XXH3_64bits(id.data ? id.data : (const uint8_t *)"", id.len) & (batch->slot_count - 1);
}

static void others_add_take(struct batch *batch, size_t place, struct gremlin_value element)
{
    if (batch->other_count == batch->other_capacity) {
        batch->other_capacity = batch->other_capacity ? 2 * batch->other_capacity : 16;
        batch->others = memory_realloc(
            batch->others, memory_array_size(batch->other_capacity, sizeof *batch->others));
        batch->other_places =
            memory_realloc(batch->other_places,
                           memory_array_size(batch->other_capacity, sizeof *batch->other_places));
    }
    batch->other_places[batch->other_count] = place;
    batch->others[batch->other_count++] = element;
}

/* Gives the element to every reference that names its id. */
static bool sought_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct batch *batch = self;
    struct gremlin_value element = gremlin_element_of(batch->search->found.graph, value->document);
    struct slice id;

    if (gremlin_is_null(element))
        return true;
    id = gremlin_bytes(gremlin_element(element)->id);
    for (uint32_t at = batch->slots[slot_of(batch, id)]; at; at = batch->next[at - 1]) {
        if (!slice_equal(batch->references[at - 1].id, id))
            continue;
        if (gremlin_is_null(batch->values[at - 1]))
            batch->values[at - 1] = gremlin_value_ref(element);
        else
            others_add_take(batch, at - 1, gremlin_value_ref(element));
    }
    gremlin_value_unref(element);
    return true;
}

static size_t ids_gather(struct batch *batch, struct arena *arena, struct slice *ids)
{
    size_t count = 0;

    batch->slot_count = 16;
    while (batch->slot_count < 2 * batch->count)
        batch->slot_count *= 2;
    batch->slots =
        arena_alloc_zero(arena, memory_array_size(batch->slot_count, sizeof *batch->slots));
    batch->next = arena_alloc_zero(arena, memory_array_size(batch->count, sizeof *batch->next));
    for (size_t i = batch->count; i-- > 0;) {
        const struct reference *reference = &batch->references[i];
        uint32_t *slot, at;

        if (reference->keyed)
            continue;
        slot = &batch->slots[slot_of(batch, reference->id)];
        for (at = *slot; at && !slice_equal(batch->references[at - 1].id, reference->id);)
            at = batch->next[at - 1];
        if (!at)
            ids[count++] = reference->id;
        batch->next[i] = *slot;
        *slot = (uint32_t)i + 1;
    }
    return count;
}

/* Ids without keys: one query, wherever they may be. */
static bool sought_read(struct batch *batch, struct arena *arena, struct error *err)
{
    struct gremlin_graph *graph = batch->search->found.graph;
    struct slice *ids = ARENA_ARRAY(arena, struct slice, batch->count);
    size_t count = ids_gather(batch, arena, ids), scope_count;
    const struct query_scope *scopes = gremlin_graph_scopes(graph, arena, &scope_count);
    struct query_plan plan;

    if (!count)
        return true;
    if (!plan_build(batch->search, ids, count, arena, &plan, err))
        return false;
    for (size_t i = 0; i < scope_count; i++) {
        struct gremlin_reading reading = {.plan = &plan,
                                          .scope = scopes[i],
                                          .rows_max = GREMLIN_CHUNK,
                                          .arena = arena,
                                          .row = sought_take,
                                          .self = batch};

        if (!gremlin_reading_all(graph, &reading, err))
            return false;
    }
    return true;
}

static void batch_give(struct batch *batch, bool fine)
{
    struct gremlin_found *found = &batch->search->found;
    size_t other = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (!gremlin_is_null(batch->values[i])) {
            if (fine)
                gremlin_found_add_take(found, 0, batch->values[i], GREMLIN_NOTHING);
            else
                gremlin_value_unref(batch->values[i]);
        }
        /* those of the same id under other keys; there are few, if any */
        for (other = 0; other < batch->other_count; other++) {
            if (batch->other_places[other] != i)
                continue;
            if (fine)
                gremlin_found_add_take(found, 0, batch->others[other], GREMLIN_NOTHING);
            else
                gremlin_value_unref(batch->others[other]);
        }
    }
    memory_free(batch->others);
    memory_free(batch->other_places);
}

static bool references_next(struct gremlin_found *found, size_t want UNUSED, struct error *err)
{
    struct search *search = (struct search *)found;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct batch batch = {
        .search = search,
        .references = search->references + search->reference_at,
        .count = MIN(search->reference_count - search->reference_at, (size_t)GREMLIN_CHUNK)};
    bool fine;

    batch.values = ARENA_ARRAY(arena, struct gremlin_value, batch.count);
    for (size_t i = 0; i < batch.count; i++)
        batch.values[i] = GREMLIN_NOTHING;
    fine = keyed_read(&batch, arena, err) && sought_read(&batch, arena, err);
    batch_give(&batch, fine);
    search->reference_at += batch.count;
    found->ended = search->reference_at == search->reference_count;
    return fine;
}

/* --- Searching
 * ------------------------------------------------------------------------------------ */

static bool conditions_check(const struct gremlin_condition *conditions, size_t count,
                             struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!gremlin_condition_is_stored(&conditions[i]))
            return error_set(err, ERROR_NOT_SUPPORTED, "a condition that a graph does not take");
    return true;
}

bool gremlin_graph_search(struct gremlin_graph *graph, const struct gremlin_search *asked,
                          struct gremlin_found **ret_found, struct error *err)
{
    struct search *search = gremlin_found_new(graph, sizeof *search);
    CLEANUP(gremlin_found_free) struct gremlin_found *found = &search->found;

    found->done = search_done;
    found->left = asked->limit ? asked->limit : UINT64_MAX;
    search->kind = asked->kind;
    if (!conditions_check(asked->conditions, asked->condition_count, err))
        return false;
    tests_compile(search, asked);
    if (asked->references) {
        references_copy(search, asked);
        found->next = references_next;
        found->ended = search->reference_count == 0;
    } else {
        found->next = plan_next;
        search->scopes = gremlin_graph_scopes(graph, found->arena, &search->scope_count);
        if (!vertices_begin(search) &&
            !plan_build(search, NULL, 0, found->arena, &search->plan, err))
            return false;
    }
    *ret_found = TAKE(found);
    return true;
}

/* --- Counting
 * ------------------------------------------------------------------------------------- */

static bool count_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    uint64_t *count = self;
    int64_t number = 0;

    (void)document_to_int64(value, &number);
    *count += (uint64_t)number;
    return true;
}

/* How many satisfy the filter; filter NULL: all items. */
static bool plan_count(const struct search *search, const struct query_expression *filter,
                       struct query_build *build, uint64_t *ret_count, struct error *err)
{
    struct gremlin_graph *graph = search->found.graph;
    struct query_aggregate_call call = {
        .kind = QUERY_COUNT, .argument = query_constant(build, document_int32(1)), .slot = 1};
    struct query_plan plan = {.query = {.filter = filter,
                                        .aggregates = &call,
                                        .aggregate_count = 1,
                                        .select = query_variable(build, 1),
                                        .limit = UINT64_MAX},
                              .slot_count = 2,
                              .order = DOCUMENT_ORDER_SQL,
                              .order_free = true,
                              .first_leads = search->test_count > 0,
                              .fingerprint = 2};
    size_t scope_count;
    const struct query_scope *scopes = gremlin_graph_scopes(graph, build->arena, &scope_count);

    *ret_count = 0;
    if (build->failed) {
        *err = build->error;
        return false;
    }
    for (size_t i = 0; i < scope_count; i++) {
        struct gremlin_reading reading = {.plan = &plan,
                                          .scope = scopes[i],
                                          .rows_max = 1,
                                          .arena = build->arena,
                                          .row = count_take,
                                          .self = ret_count};

        if (!gremlin_reading_all(graph, &reading, err))
            return false;
    }
    return true;
}

/* Are labels all that is asked for? Then an index has all that counting takes. */
static bool asks_labels_alone(const struct gremlin_search *asked)
{
    for (size_t i = 0; i < asked->condition_count; i++)
        if (asked->conditions[i].kind != GREMLIN_CONDITION_LABEL)
            return false;
    return true;
}

/* Vertices are what is no edge: all items with the labels, without the edges that have them. Both
 * are counted by index, where asking for no mark of an edge would have every item looked at. */
static bool vertices_count(struct search *search, uint64_t *ret_count, struct error *err)
{
    struct query_build build = {
        .arena = search->found.arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_SQL};
    const struct query_expression *filter = NULL,
                                  *edges = gremlin_kind_expression(GREMLIN_ELEMENT_EDGE, &build);
    uint64_t all, without;

    for (size_t i = 0; i < search->test_count; i++) {
        const struct query_expression *test = gremlin_test_expression(search->tests[i], &build);

        filter = filter ? query_and(&build, filter, test) : test;
    }
    if (!plan_count(search, filter, &build, &all, err) ||
        !plan_count(search, filter ? query_and(&build, filter, edges) : edges, &build, &without,
                    err))
        return false;
    *ret_count = all - MIN(all, without);
    return true;
}

static bool found_count(struct gremlin_found *found, uint64_t *ret_count, struct error *err)
{
    struct gremlin_page page;

    *ret_count = 0;
    do {
        if (!gremlin_found_next(found, 0, &page, err))
            return false;
        *ret_count += page.count;
    } while (page.count);
    return true;
}

bool gremlin_graph_count(struct gremlin_graph *graph, const struct gremlin_search *asked,
                         uint64_t *ret_count, struct error *err)
{
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct search *search;
    struct query_build build;

    if (!gremlin_graph_search(graph, asked, &found, err))
        return false;
    if (asked->references || asked->limit)
        return found_count(found, ret_count, err);
    search = (struct search *)found;
    if (asked->kind == GREMLIN_ELEMENT_VERTEX && asks_labels_alone(asked))
        return vertices_count(search, ret_count, err);
    if (search->entries.index)
        return found_count(found, ret_count, err);
    build = (struct query_build){
        .arena = found->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_SQL};
    return plan_count(search, filter_build(search, NULL, 0, &build), &build, ret_count, err);
}
