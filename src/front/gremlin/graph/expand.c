/* Expansions: the edges of many vertices at once.
 *
 * Edges are kept with their source, so the edges out of vertices are asked for where the vertices
 * are: one query for each physical partition, with the ids of its vertices alone, by the index of
 * `_vertexId`. Edges into vertices may be anywhere: one query of all partitions, by the index of
 * `_sink`; where the graph keeps reverse edges, those with the partitions of the vertices tell, and
 * what they do not tell of an edge is read by its key. Queries of several partitions run at the
 * same time where there are threads for it; what they bring is bytes until the graph's own thread
 * makes values of it.
 *
 * Vertices are taken in rounds of GREMLIN_CHUNK. What a round brings is put in the order of its
 * vertices, if it is not more than fits a few pages; otherwise what is there goes first.
 *
 * An id is unique under its partition key alone, so rows are matched with vertices by both. */
#include "front/gremlin/graph/graph_private.h"
#include "front/gremlin/graph/neighbours.h"
#include "front/gremlin/graph/walk.h"
#include "query/expression/item.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
    PARALLEL_MIN = 64,                  /* vertices for which threads are worth it */
    ROUND_PAGES = 4,                    /* of rows that are put in order */
    ROUND_BYTES_MAX = 16 * 1024 * 1024, /* and their bytes */
    WAVE_MAX = 16,                      /* queries that run at the same time */
};

/* A vertex of the round that rows are matched with. */
struct source {
    struct slice id;
    struct partition_key key;
    bool keyed;
    uint64_t hash;
    size_t input;  /* among all vertices */
    uint32_t next; /* 1 + another of the same slot */
    const struct partition_span *span;
};

/* One query: the vertices of a partition, one way. */
struct query {
    struct expand *expand;
    bool in;
    struct query_plan plan;
    struct query_scope scope;
    struct arena *arena;      /* of the plan */
    struct arena *page_arena; /* of the continuation */
    struct slice continuation;
    bool ended;
    struct query_entries entries; /* index not NULL: read instead of the plan */
    enum gremlin_walk walk;       /* of those */
    size_t fetched;               /* so many of the rows have their edges; of reverse edges */

    /* Rows that were not given yet, and what the last page took. */
    struct arena *rows_arena;
    struct row *rows;
    size_t row_count, row_capacity, rows_max;
    struct gremlin_reading reading;
    bool fine;
    struct error err;
};

/* An edge that came back, and the vertex it is of. */
struct row {
    struct slice bytes;                  /* the document, or the tuple of a head */
    const struct gremlin_edge_row *edge; /* of an entry, which has no bytes; NULL: it is of none */
    uint32_t source;
    bool in;
    uint64_t at; /* in the order they came */
};

struct expand {
    struct gremlin_found found;
    struct gremlin_value *vertices; /* references */
    size_t vertex_count, vertex_at;
    enum gremlin_reach reach;
    enum gremlin_want want;
    bool tuples; /* rows are tuples: nothing else of the edges is wanted */
    bool loads;  /* neighbours are read */
    struct slice *labels;
    size_t label_count;
    const struct gremlin_test **edge_tests, **vertex_tests;
    size_t edge_test_count, vertex_test_count;

    /* The round. */
    struct arena *round;
    struct source *sources;
    uint32_t *slots;
    size_t source_count, slot_count;
    struct query *queries;
    size_t query_count;
};

/* --- Vertices of a round
 * ---------------------------------------------------------------------------- */

static uint64_t source_hash(struct slice id)
{
    return XXH3_64bits(id.data ? id.data : (const uint8_t *)"", id.len);
}

static bool vertices_ready(struct expand *e, size_t from, size_t count, struct error *err)
{
    struct gremlin_graph *graph = e->found.graph;

    for (size_t i = from; graph->key_count && i < from + count; i++) {
        const struct gremlin_element *element = gremlin_element(e->vertices[i]);

        /* a reference that does not say its key: it is looked for */
        if (!element->stored && gremlin_is_null(element->partition))
            return gremlin_graph_load(graph, e->vertices + from, count, NULL, err);
    }
    return true;
}

static bool sources_make(struct expand *e, struct error *err)
{
    struct gremlin_graph *graph = e->found.graph;
    size_t count = MIN(e->vertex_count - e->vertex_at, (size_t)GREMLIN_CHUNK);

    if (!vertices_ready(e, e->vertex_at, count, err))
        return false;
    e->sources = ARENA_ARRAY(e->round, struct source, count);
    e->source_count = 0;
    e->slot_count = 16;
    while (e->slot_count < 2 * count)
        e->slot_count *= 2;
    e->slots = arena_alloc_zero(e->round, memory_array_size(e->slot_count, sizeof *e->slots));
    for (size_t i = 0; i < count; i++) {
        struct source *source = &e->sources[e->source_count];

        *source = (struct source){.input = e->vertex_at + i};
        if (!gremlin_element_key(graph, e->vertices[e->vertex_at + i], e->round, &source->key,
                                 &source->id) ||
            (graph->bound && !partition_key_starts_with(&source->key, &graph->only)))
            continue; /* it is nowhere, or out of sight */
        source->hash = source_hash(source->id);
        e->source_count++;
    }
    /* from the last: chains are in the order of the vertices */
    for (size_t i = e->source_count; i-- > 0;) {
        uint32_t *slot = &e->slots[e->sources[i].hash & (e->slot_count - 1)];

        e->sources[i].next = *slot;
        *slot = (uint32_t)i + 1;
    }
    e->vertex_at += count;
    return true;
}

static void spans_find(struct expand *e)
{
    struct gremlin_graph *graph = e->found.graph;

    for (size_t i = 0; i < e->source_count; i++) {
        struct slice logical =
            item_logical(&graph->space.definition->key, &e->sources[i].key, e->round);

        e->sources[i].span = partition_map_find(graph->space.map, logical);
    }
}

/* --- What a query selects
 * ---------------------------------------------------------------------------- */

/* The tuple of an edge whose vertices alone are wanted: [source id, target id, target partition,
 * label of the other end, partition key ...]. */
struct head_node {
    struct query_expression head;
    const struct partition_definition *definition;
    bool in;
};

static bool head_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    const struct head_node *node = (const struct head_node *)expression;
    const struct query_item *bound = context->slots[0].hidden_self;
    struct buf *out = &context->scratch;
    size_t mark = query_build_begin(context), begin;
    struct gremlin_head head;
    struct partition_key key;
    struct slice label;
    char text[DOCUMENT_INDEX_SIZE];

    *ret_value = document_undefined();
    if (!bound || !gremlin_head_read(bound->item->document, &head) || !head.edge)
        return true;
    label = node->in ? head.out_label : head.in_label;
    begin = document_begin(out);
    document_append_string(out, SLICE("0"), head.out_id);
    document_append_string(out, SLICE("1"), head.in_id);
    document_append(out, SLICE("2"), &head.in_partition);
    document_append_string(out, SLICE("3"), label.data ? label : SLICE("vertex"));
    key = partition_key_extract(node->definition, bound->item->document);
    for (uint8_t i = 0; i < key.count; i++)
        document_append(out, document_index_key(4u + i, text), &key.components[i]);
    return query_build_close(context, mark, begin, DOCUMENT_ARRAY, ret_value, err);
}

static const struct query_kind head_kind = {"edge", head_evaluate, QUERY_STABLE};

static const struct query_expression *select_build(const struct expand *e, bool in,
                                                   struct query_build *build)
{
    const struct query_expression *item = query_variable(build, 0);
    struct head_node *node;

    if (!e->tuples)
        return gremlin_item_expression(e->found.graph, build);
    node = query_node(build, &head_kind, sizeof *node, &item, 1);
    node->definition = &e->found.graph->space.definition->key;
    node->in = in;
    return &node->head;
}

static bool tuple_read(const struct expand *e, bool in, struct slice tuple,
                       struct gremlin_edge_row *ret_row)
{
    struct document_value components[PARTITION_PATHS_MAX];
    struct document_iter iter;
    size_t count = 0;

    *ret_row =
        (struct gremlin_edge_row){.head = {.edge = true, .in_partition = document_undefined()}};
    document_iter_init(&iter, tuple);
    for (size_t at = 0; document_iter_next(&iter); at++) {
        if (at == 0)
            ret_row->head.out_id = iter.value.text;
        else if (at == 1)
            ret_row->head.in_id = iter.value.text;
        else if (at == 2)
            ret_row->head.in_partition = iter.value;
        else if (at == 3 && in)
            ret_row->head.out_label = iter.value.text;
        else if (at == 3)
            ret_row->head.in_label = iter.value.text;
        else if (at > 3 && count < PARTITION_PATHS_MAX)
            components[count++] = iter.value;
    }
    if (e->found.graph->key_count)
        ret_row->key = partition_key_of(&e->found.graph->space.definition->key, components, count);
    else
        (void)gremlin_partition_key_stored(e->found.graph, &ret_row->head.in_partition,
                                           &ret_row->key);
    return true;
}

static bool row_read(const struct expand *e, bool in, struct slice bytes,
                     struct gremlin_edge_row *ret_row)
{
    if (e->tuples)
        return tuple_read(e, in, bytes, ret_row);
    if (!gremlin_head_read(bytes, &ret_row->head) || !ret_row->head.edge)
        return false;
    ret_row->key = partition_key_extract(&e->found.graph->space.definition->key, bytes);
    return true;
}

/* --- Queries
 * ------------------------------------------------------------------------------------------ */

static bool source_matches(const struct expand *e, const struct source *source,
                           const struct gremlin_edge_row *row, bool in)
{
    struct partition_key key;

    if (!slice_equal(source->id, in ? row->head.in_id : row->head.out_id))
        return false;
    if (!e->found.graph->key_count)
        return true;
    if (!in)
        return partition_key_equal(&source->key, &row->key);
    /* an edge that does not say where its target is may mean any of that id */
    return !gremlin_partition_key_stored(e->found.graph, &row->head.in_partition, &key) ||
           partition_key_equal(&source->key, &key);
}

static bool label_is_wanted(const struct expand *e, struct slice label)
{
    for (size_t i = 0; i < e->label_count; i++)
        if (slice_equal(e->labels[i], label))
            return true;
    return false;
}

static void row_keep(struct query *query, struct row row)
{
    if (query->row_count == query->row_capacity) {
        size_t capacity = query->row_capacity ? 2 * query->row_capacity : 64;
        struct row *rows = ARENA_ARRAY(query->rows_arena, struct row, capacity);

        if (query->row_count)
            memcpy(rows, query->rows, query->row_count * sizeof *rows);
        query->rows = rows;
        query->row_capacity = capacity;
    }
    row.in = query->in;
    query->rows[query->row_count++] = row;
}

/* Where rows of a query stand among those of others. */
static uint64_t query_place(const struct query *query)
{
    return (uint64_t)(query - query->expand->queries) << 48;
}

/* On any thread: reads nothing of the graph that changes. */
static bool row_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct query *query = self;
    const struct expand *e = query->expand;
    struct gremlin_edge_row row;
    struct slice bytes = SLICE_NONE, id;

    if (!row_read(e, query->in, value->document, &row))
        return true;
    id = query->in ? row.head.in_id : row.head.out_id;
    for (uint32_t at = e->slots[source_hash(id) & (e->slot_count - 1)]; at;
         at = e->sources[at - 1].next) {
        if (!source_matches(e, &e->sources[at - 1], &row, query->in))
            continue;
        if (!bytes.data)
            bytes = arena_copy(query->rows_arena, value->document);
        row_keep(query, (struct row){.bytes = bytes,
                                     .source = at - 1,
                                     .at = query_place(query) + query->row_count});
    }
    return true;
}

/* The same of an entry. Edges of a vertex come as they were made, as they do by other ways. */
static bool entry_take(void *self, const struct query_entry *entry, struct error *err UNUSED)
{
    struct query *query = self;
    const struct expand *e = query->expand;
    const struct gremlin_edge_row *kept = NULL;
    struct gremlin_edge_row row;
    struct slice label, id;

    if (!gremlin_walk_row(e->found.graph, query->walk, entry, &row, &label) ||
        (e->label_count && !label_is_wanted(e, label)))
        return true;
    id = query->in ? row.head.in_id : row.head.out_id;
    for (uint32_t at = e->slots[source_hash(id) & (e->slot_count - 1)]; at;
         at = e->sources[at - 1].next) {
        if (!source_matches(e, &e->sources[at - 1], &row, query->in))
            continue;
        if (!kept)
            kept = gremlin_walk_keep(&row, entry->document.data != NULL, query->rows_arena);
        row_keep(query, (struct row){.edge = kept,
                                     .source = at - 1,
                                     .at = query_place(query) + ((uint64_t)entry->span << 40) +
                                           entry->number});
    }
    return true;
}

static void walk_build(struct query *query, enum gremlin_walk walk,
                       const struct index_definition *index, const struct slice *ids,
                       size_t id_count)
{
    const struct expand *e = query->expand;

    query->walk = walk;
    query->entries =
        (struct query_entries){.index = index, .grouped = true, .take = entry_take, .self = query};
    query->entries.ranges = gremlin_walk_ranges(ids, id_count, e->labels, e->label_count,
                                                query->arena, &query->entries.range_count);
}

static bool plan_build(struct query *query, const struct slice *ids, size_t id_count,
                       struct error *err)
{
    const struct expand *e = query->expand;
    struct query_build build = {
        .arena = query->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_SQL};
    const struct index_definition *index =
        e->tuples && !e->edge_test_count
            ? gremlin_walk_index(e->found.graph, query->in ? GREMLIN_WALK_IN : GREMLIN_WALK_OUT)
            : NULL;
    const struct query_expression *filter;

    if (index) {
        walk_build(query, query->in ? GREMLIN_WALK_IN : GREMLIN_WALK_OUT, index, ids, id_count);
        return true;
    }
    filter = gremlin_one_of(query->in ? SLICE("_sink") : SLICE("_vertexId"), ids, id_count, &build);
    if (e->label_count)
        filter = query_and(&build, filter,
                           gremlin_one_of(SLICE("label"), e->labels, e->label_count, &build));
    for (size_t i = 0; i < e->edge_test_count; i++)
        filter = query_and(&build, filter, gremlin_test_expression(e->edge_tests[i], &build));
    query->plan = (struct query_plan){.query = {.filter = filter,
                                                .select = select_build(e, query->in, &build),
                                                .limit = UINT64_MAX},
                                      .slot_count = 1,
                                      .order = DOCUMENT_ORDER_SQL,
                                      .order_free = true,
                                      .first_leads = true,
                                      .fingerprint = 3};
    if (build.failed)
        *err = build.error;
    return !build.failed;
}

static struct query *query_add(struct expand *e, bool in, struct query_scope scope)
{
    struct query *query = &e->queries[e->query_count++];

    *query = (struct query){.expand = e, .in = in, .scope = scope, .arena = arena_new()};
    return query;
}

static int by_span(const void *left, const void *right)
{
    const struct source *a = *(const struct source *const *)left,
                        *b = *(const struct source *const *)right;

    if (a->span != b->span)
        return a->span < b->span ? -1 : 1;
    return slice_compare(a->id, b->id);
}

/* Of vertices that are sorted: the ids, each once. */
static size_t ids_of(const struct source *const *sources, size_t count, struct slice *ids)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (!kept || !slice_equal(ids[kept - 1], sources[i]->id))
            ids[kept++] = sources[i]->id;
    return kept;
}

static bool is_one_key(const struct source *const *sources, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (!partition_key_equal(&sources[0]->key, &sources[i]->key))
            return false;
    return true;
}

/* Where the vertices are; reverse: of edges into them, by this index; NULL: of those out of them.
 */
static bool local_queries(struct expand *e, const struct source **sorted, struct slice *ids,
                          const struct index_definition *reverse, struct error *err)
{
    for (size_t begin = 0, end; begin < e->source_count; begin = end) {
        const struct partition_span *span = sorted[begin]->span;
        struct query_scope scope = {.kind = QUERY_SCOPE_RANGE, .range = {span->min, span->max}};
        struct query *query;

        for (end = begin + 1; end < e->source_count && sorted[end]->span == span;)
            end++;
        if (is_one_key(sorted + begin, end - begin))
            scope = (struct query_scope){.kind = QUERY_SCOPE_KEY, .key = sorted[begin]->key};
        query = query_add(e, reverse != NULL, scope);
        if (reverse)
            walk_build(query, GREMLIN_WALK_REVERSE, reverse, ids,
                       ids_of(sorted + begin, end - begin, ids));
        else if (!plan_build(query, ids, ids_of(sorted + begin, end - begin, ids), err))
            return false;
        ids += end - begin;
    }
    return true;
}

static int by_id(const void *left, const void *right)
{
    return slice_compare((*(const struct source *const *)left)->id,
                         (*(const struct source *const *)right)->id);
}

static bool in_queries(struct expand *e, const struct source **sorted, struct slice *ids,
                       struct error *err)
{
    size_t scope_count, count;
    const struct query_scope *scopes = gremlin_graph_scopes(e->found.graph, e->round, &scope_count);
    const struct index_definition *reverse = gremlin_walk_reverse(e->found.graph);

    if (reverse)
        return local_queries(e, sorted, ids, reverse, err);
    qsort(sorted, e->source_count, sizeof *sorted, by_id);
    count = ids_of(sorted, e->source_count, ids);
    for (size_t i = 0; i < scope_count; i++)
        if (!plan_build(query_add(e, true, scopes[i]), ids, count, err))
            return false;
    return true;
}

static bool round_begin(struct expand *e, struct error *err)
{
    const struct source **sorted;
    struct slice *ids;
    size_t spans;

    arena_free(e->round);
    e->round = arena_new();
    e->query_count = 0;
    if (!sources_make(e, err))
        return false;
    if (!e->source_count)
        return true;
    spans_find(e);
    (void)partition_map_spans(e->found.graph->space.map, &spans);
    e->queries = ARENA_ARRAY(e->round, struct query, spans * 2 + 1);
    sorted = ARENA_ARRAY(e->round, const struct source *, e->source_count);
    ids = ARENA_ARRAY(e->round, struct slice, 2 * e->source_count);
    for (size_t i = 0; i < e->source_count; i++)
        sorted[i] = &e->sources[i];
    qsort(sorted, e->source_count, sizeof *sorted, by_span);
    if (e->reach != GREMLIN_REACH_IN && !local_queries(e, sorted, ids, NULL, err))
        return false;
    return e->reach == GREMLIN_REACH_OUT || in_queries(e, sorted, ids + e->source_count, err);
}

static void round_end(struct expand *e)
{
    for (size_t i = 0; i < e->query_count; i++) {
        arena_free(e->queries[i].arena);
        arena_free(e->queries[i].page_arena);
        arena_free(e->queries[i].rows_arena);
    }
    e->query_count = 0;
}

/* --- Pages of a round
 * ------------------------------------------------------------------------------------ */

/* One page of one query; on any thread. */
static void query_page(void *context, size_t number)
{
    struct query **queries = context;
    struct query *query = queries[number];
    struct arena *arena = arena_new();

    if (!query->rows_arena)
        query->rows_arena = arena_new();
    query->reading = (struct gremlin_reading){.plan = &query->plan,
                                              .scope = query->scope,
                                              .rows_max = query->rows_max,
                                              .continuation = query->continuation,
                                              .arena = arena,
                                              .row = row_take,
                                              .self = query};
    if (query->entries.index) {
        query->entries.arena = query->rows_arena;
        query->reading.entries = &query->entries;
    }
    query->fine = gremlin_reading_run(query->expand->found.graph, &query->reading, &query->err);
    arena_free(query->page_arena);
    query->page_arena = arena;
    query->continuation = query->fine ? query->reading.continuation : SLICE_NONE;
    query->ended =
        query->entries.index ? !query->fine || query->entries.ended : !query->continuation.len;
}

/* --- Edges of reverse edges
 * ------------------------------------------------------------------------------------ */

struct edges {
    struct query *query;
    struct row *rows; /* from the first that has none */
};

static bool edge_take(void *self, size_t reference, struct slice document, struct error *err UNUSED)
{
    const struct edges *edges = self;
    const struct expand *e = edges->query->expand;
    struct row *row = &edges->rows[reference];

    for (size_t i = 0; i < e->edge_test_count; i++)
        if (!gremlin_test_holds(e->edge_tests[i], document))
            return true;
    row->bytes = arena_copy(edges->query->rows_arena, document);
    return true;
}

/* Is more wanted of the rows that came than reverse edges tell? */
static bool edges_are_wanted(const struct query *query)
{
    const struct expand *e = query->expand;

    return query->walk == GREMLIN_WALK_REVERSE && !(e->tuples && !e->edge_test_count) &&
           query->row_count > query->fetched;
}

/* Reads the edges of those rows. Those that are gone by now, or not as they have to be, go. */
static bool edges_fetch(struct query *query, struct error *err)
{
    const struct expand *e = query->expand;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count = query->row_count - query->fetched, kept = query->fetched;
    struct items_reference *references = ARENA_ARRAY(arena, struct items_reference, count + 1);
    struct edges edges = {.query = query, .rows = query->rows + query->fetched};
    struct gremlin_fetch fetch = {
        .references = references, .count = count, .take = edge_take, .self = &edges};

    for (size_t i = 0; i < count; i++)
        references[i] = (struct items_reference){edges.rows[i].edge->key,
                                                 document_string(edges.rows[i].edge->head.id)};
    if (!gremlin_graph_fetch(e->found.graph, &fetch, err))
        return false;
    for (size_t i = query->fetched; i < query->row_count; i++) {
        struct row row = query->rows[i];

        if (!row.bytes.data)
            continue;
        if (e->tuples)
            row.bytes = SLICE_NONE; /* the ends are known, and the rest was only to be looked at */
        else
            row.edge = NULL;
        query->rows[kept++] = row;
    }
    query->row_count = query->fetched = kept;
    return true;
}

static bool queries_run(struct expand *e, struct query **queries, size_t count, struct error *err)
{
    struct gremlin_graph *graph = e->found.graph;
    struct front_helpers helpers;
    struct query_executor executor = gremlin_graph_executor(graph, &helpers);
    bool fine = true;

    if (count > 1 && executor.width > 1 && !graph->reads_moment && graph->call.may_block &&
        e->source_count >= PARALLEL_MIN) {
        executor.run(executor.self, count, query_page, queries);
    } else {
        for (size_t i = 0; i < count; i++)
            query_page(queries, i);
    }
    for (size_t i = 0; i < count; i++) {
        gremlin_reading_count(graph, &queries[i]->reading);
        if (!queries[i]->fine && fine) {
            *err = queries[i]->err;
            fine = false;
        }
    }
    for (size_t i = 0; i < count && fine; i++)
        fine = !edges_are_wanted(queries[i]) || edges_fetch(queries[i], err);
    return fine;
}

static int by_input(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->in != b->in)
        return a->in ? 1 : -1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* --- Giving ------------------------------------------------------------------------------------
 */

static void edges_give(struct expand *e, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gremlin_found_add_take(&e->found, e->sources[rows[i].source].input,
                               gremlin_element_of(e->found.graph, rows[i].bytes), GREMLIN_NOTHING);
}

static bool vertices_give(struct expand *e, const struct row *rows, size_t count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_edge_row *edges = ARENA_ARRAY(arena, struct gremlin_edge_row, count);
    struct gremlin_neighbours n = {.graph = e->found.graph,
                                   .edges = edges,
                                   .count = count,
                                   .heads = !e->loads,
                                   .tests = e->vertex_tests,
                                   .test_count = e->vertex_test_count,
                                   .vertices = ARENA_ARRAY(arena, struct gremlin_value, count)};
    bool fine;

    for (size_t i = 0; i < count; i++) {
        if (rows[i].edge)
            edges[i] = *rows[i].edge;
        else
            (void)row_read(e, rows[i].in, rows[i].bytes, &edges[i]);
        edges[i].in = rows[i].in;
    }
    fine = gremlin_neighbours_find(&n, arena, err);
    for (size_t i = 0; i < count; i++) {
        if (!fine || gremlin_is_null(n.vertices[i])) {
            gremlin_value_unref(n.vertices[i]);
            continue;
        }
        gremlin_found_add_take(&e->found, e->sources[rows[i].source].input, n.vertices[i],
                               e->found.has_edges
                                   ? gremlin_element_of(e->found.graph, rows[i].bytes)
                                   : GREMLIN_NOTHING);
    }
    return fine;
}

/* Everything that has come, in the order of the vertices it is of. */
static bool rows_give(struct expand *e, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct row *rows;
    size_t total = 0, at = 0;
    bool fine = true;

    for (size_t i = 0; i < e->query_count; i++)
        total += e->queries[i].row_count;
    rows = ARENA_ARRAY(arena, struct row, total + 1);
    for (size_t i = 0; i < e->query_count; i++) {
        struct query *query = &e->queries[i];

        if (query->row_count)
            memcpy(rows + at, query->rows, query->row_count * sizeof *rows);
        at += query->row_count;
    }
    e->found.graph->met_edges |= total > 0;
    if (total > 1)
        qsort(rows, total, sizeof *rows, by_input);
    if (e->want == GREMLIN_WANT_EDGES)
        edges_give(e, rows, total);
    for (at = 0; e->want != GREMLIN_WANT_EDGES && at < total && fine; at += GREMLIN_CHUNK)
        fine = gremlin_graph_goes_on(e->found.graph, err) &&
               vertices_give(e, rows + at, MIN(total - at, (size_t)GREMLIN_CHUNK), err);
    for (size_t i = 0; i < e->query_count; i++) {
        struct query *query = &e->queries[i];

        arena_free(query->rows_arena);
        query->rows_arena = NULL;
        query->rows = NULL;
        query->row_count = query->row_capacity = query->fetched = 0;
    }
    return fine;
}

/* Pages of the queries that go on, until there are rows enough or no more. */
static bool round_gather(struct expand *e, size_t want, struct error *err)
{
    size_t page = e->found.graph->options.limits.page_rows, rows, bytes;
    bool few = want < page;
    size_t enough = few ? want : ROUND_PAGES * page;

    do {
        struct query *wave[WAVE_MAX];
        size_t count = 0;

        for (size_t i = 0; i < e->query_count && count < (few ? 1 : WAVE_MAX); i++) {
            if (e->queries[i].ended)
                continue;
            e->queries[i].rows_max = few ? want : page;
            wave[count++] = &e->queries[i];
        }
        if (!count)
            return true;
        if (!gremlin_graph_goes_on(e->found.graph, err) || !queries_run(e, wave, count, err))
            return false;
        rows = bytes = 0;
        for (size_t i = 0; i < e->query_count; i++) {
            rows += e->queries[i].row_count;
            bytes += e->queries[i].rows_arena ? arena_used(e->queries[i].rows_arena) : 0;
        }
    } while (rows < enough && bytes < ROUND_BYTES_MAX);
    return true;
}

static bool round_is_over(const struct expand *e)
{
    for (size_t i = 0; i < e->query_count; i++)
        if (!e->queries[i].ended)
            return false;
    return true;
}

static bool expand_next(struct gremlin_found *found, size_t want, struct error *err)
{
    struct expand *e = (struct expand *)found;

    if (round_is_over(e)) {
        round_end(e);
        if (e->vertex_at == e->vertex_count) {
            found->ended = true;
            return true;
        }
        if (!round_begin(e, err))
            return false;
    }
    return round_gather(e, want, err) && rows_give(e, err);
}

static void expand_done(struct gremlin_found *found)
{
    struct expand *e = (struct expand *)found;

    round_end(e);
    arena_free(e->round);
    for (size_t i = 0; i < e->vertex_count; i++)
        gremlin_value_unref(e->vertices[i]);
}

/* --- Asking --------------------------------------------------------------------------------------
 */

static bool tests_compile(struct expand *e, const struct gremlin_condition *conditions,
                          size_t count, enum gremlin_element_kind kind,
                          const struct gremlin_test ***ret_tests, struct error *err)
{
    struct gremlin_names names = gremlin_graph_names(e->found.graph);

    *ret_tests = ARENA_ARRAY(e->found.arena, const struct gremlin_test *, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (!gremlin_condition_is_stored(&conditions[i]))
            return error_set(err, ERROR_NOT_SUPPORTED, "a condition that a graph does not take");
        (*ret_tests)[i] = gremlin_test_compile(&conditions[i], kind, &names, e->found.arena);
    }
    return true;
}

static void expand_copy(struct expand *e, const struct gremlin_expansion *asked)
{
    struct arena *arena = e->found.arena;

    e->reach = asked->reach;
    e->want = asked->want;
    e->tuples = asked->want == GREMLIN_WANT_VERTICES;
    e->loads = !asked->heads || asked->vertex_condition_count;
    e->edge_test_count = asked->edge_condition_count;
    e->vertex_test_count = asked->vertex_condition_count;
    e->vertices = ARENA_ARRAY(arena, struct gremlin_value, asked->vertex_count);
    for (size_t i = 0; i < asked->vertex_count; i++)
        e->vertices[i] = gremlin_value_ref(asked->vertices[i]);
    e->vertex_count = asked->vertex_count;
    e->labels = ARENA_ARRAY(arena, struct slice, asked->label_count);
    for (size_t i = 0; i < asked->label_count; i++)
        e->labels[i] = arena_copy(arena, asked->labels[i]);
    e->label_count = asked->label_count;
}

bool gremlin_graph_expand(struct gremlin_graph *graph, const struct gremlin_expansion *asked,
                          struct gremlin_found **ret_found, struct error *err)
{
    struct expand *e = gremlin_found_new(graph, sizeof *e);
    CLEANUP(gremlin_found_free) struct gremlin_found *found = &e->found;

    found->next = expand_next;
    found->done = expand_done;
    found->has_inputs = true;
    found->has_edges = asked->want == GREMLIN_WANT_VERTICES_AND_EDGES;
    found->left = asked->limit ? asked->limit : UINT64_MAX;
    expand_copy(e, asked);
    if (!tests_compile(e, asked->edge_conditions, asked->edge_condition_count, GREMLIN_ELEMENT_EDGE,
                       &e->edge_tests, err) ||
        !tests_compile(e, asked->vertex_conditions, asked->vertex_condition_count,
                       GREMLIN_ELEMENT_VERTEX, &e->vertex_tests, err))
        return false;
    *ret_found = TAKE(found);
    return true;
}

/* As heads, which are the least that can be made of an edge. */
bool gremlin_graph_count_edges(struct gremlin_graph *graph, const struct gremlin_expansion *asked,
                               uint64_t *counts, struct error *err)
{
    CLEANUP(gremlin_found_free) struct gremlin_found *found = NULL;
    struct gremlin_expansion heads = *asked;
    struct gremlin_page page;

    heads.want = GREMLIN_WANT_VERTICES;
    heads.heads = true;
    heads.vertex_condition_count = 0;
    memset(counts, 0, asked->vertex_count * sizeof *counts);
    if (!gremlin_graph_expand(graph, &heads, &found, err))
        return false;
    do {
        if (!gremlin_found_next(found, 0, &page, err))
            return false;
        for (size_t i = 0; i < page.count; i++)
            counts[page.inputs[i]]++;
    } while (page.count);
    return true;
}
