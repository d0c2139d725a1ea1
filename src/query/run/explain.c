/* An explanation is a BSON document, in the order things happen:
 *
 *     access       nothing, point, scan or index; with index: which, how many ranges, whether the
 *                  filter is settled by it, and how many entries were counted in advance: in the
 *                  first partition, up to 256 or, where that did not decide, further; of a union:
 * the same of each of its members; the ranges as bytes, and of a definition besides the policy its
 * name and where arrays are graphs       of an index of vectors: ready and being built, points in
 * them and to be, and changes that are looked at besides operator     stream, aggregate, group,
 * distinct or sort; ordered: the index gave the order partitions   read from for this page, of how
 * many actual       entries walked, items loaded, items the filter accepted, rows given, bytes
 * spilled to disk charge       in RU: all of it, and what partitions, index, items and output make
 * of it advice       indexes that would have helped: their kind (single, order, composite), path or
 * paths, how many of the items loaded they would have spared, what the page would have cost and
 * saved in RU, and all of it in words. At best: as if the index led to just the items that the
 * whole filter accepts, or that gave a row. pushed       the same query as stages: those of a chain
 * that run here, in the partitions kept, stages of a plan with further stages
 * (query/stage/figures.c): nothing was read, for the rows were kept since the page before; what
 * each stage did: rows in and out, ms, bytes spilled; of lookups and unions the container, items
 * loaded and entries walked there and their charge; of facets the same for their chains; keep:
 * where rows wait for the next page. The figures above are then of the whole. */
#include "query/run/run_private.h"

#include "query/run/blocks.h"
#include "query/stage/chain.h"

enum { BOUNDS_SHOWN_MAX = 64 };

static void put_text(struct buf *buf, struct slice key, const char *text)
{
    document_append_string(buf, key, slice_of_text(text));
}

static const char *access_name(enum query_access_kind kind)
{
    static const char *const names[] = {"nothing", "scan", "point", "index"};

    return names[kind];
}

static const char *mode_name(enum query_mode mode)
{
    static const char *const names[] = {"stream", "aggregate", "group", "distinct", "sort"};

    return names[mode];
}

static void put_ranges(struct buf *buf, struct slice key, const struct query_ranges *ranges)
{
    size_t list = document_append_array_begin(buf, key);
    char text[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < ranges->count && i < BOUNDS_SHOWN_MAX; i++) {
        size_t pair = document_append_array_begin(buf, document_index_key((uint32_t)i, text));
        struct document_value min = {.type = DOCUMENT_BINARY,
                                     .binary = {.bytes = ranges->list[i].min}};
        struct document_value max = {.type = DOCUMENT_BINARY,
                                     .binary = {.bytes = ranges->list[i].max}};

        document_append(buf, SLICE("0"), &min);
        document_append(buf, SLICE("1"), &max);
        document_end(buf, pair);
    }
    document_end(buf, list);
}

/* For languages that show bounds: of each part the ranges as bytes of rising values. */
static void put_bounds(struct buf *buf, const struct query_index_use *use)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t list;

    document_append_string(buf, SLICE("order"),
                           use->order == DOCUMENT_ORDER_MONGO ? SLICE("mongo") : SLICE("sql"));
    if (use->member_count || (!use->definition && (use->value_count > 1 || !use->ranges.list)))
        return;
    list = document_append_array_begin(buf, SLICE("bounds"));
    if (!use->definition)
        put_ranges(buf, SLICE("0"), &use->ranges);
    for (size_t i = 0; use->definition && i < use->bound_count; i++)
        put_ranges(buf, document_index_key((uint32_t)i, text), &use->bounds[i]);
    document_end(buf, list);
    if (!use->definition)
        return;
    document_append_string(buf, SLICE("definition"), use->definition->name);
    if (!use->arrays)
        return;
    list = document_append_array_begin(buf, SLICE("arrays"));
    for (size_t i = 0; i < use->definition->part_count; i++)
        document_append_int64(buf, document_index_key((uint32_t)i, text), (int64_t)use->arrays[i]);
    document_end(buf, list);
}

static void put_index(struct buf *buf, struct slice key, const struct query_index_use *use)
{
    size_t begin = document_append_object_begin(buf, key);

    document_append_string(buf, SLICE("path"), use->name);
    put_bounds(buf, use);
    document_append_int64(buf, SLICE("ranges"), (int64_t)use->ranges.count);
    document_append_bool(buf, SLICE("composite"), use->value_count > 1);
    document_append_bool(buf, SLICE("exact"), use->exact);
    document_append_int64(buf, SLICE("estimatedEntries"), (int64_t)use->estimate);
    if (use->member_count) {
        size_t list = document_append_array_begin(buf, SLICE("union"));
        char text[DOCUMENT_INDEX_SIZE];

        for (size_t i = 0; i < use->member_count; i++)
            put_index(buf, document_index_key((uint32_t)i, text), &use->members[i]);
        document_end(buf, list);
    }
    document_end(buf, begin);
}

/* How far the graphs of an index of vectors are, in all partitions. */
static void put_graphs(struct buf *buf, const struct query_run_state *run)
{
    const struct query_index_use *use = run->access.index;
    struct query_graphs_state state = {0};
    const struct partition_span *spans;
    size_t count, begin;

    if (!use || !use->nearest || !use->nearest->index->graph_list || !run->request->blocks)
        return;
    spans = partition_map_spans(run->request->space->map, &count);
    for (size_t i = 0; i < count; i++)
        query_blocks_graphs(run->request->blocks, spans[i].node, spans[i].id, use->prefix, &state);
    begin = document_append_object_begin(buf, SLICE("graphs"));
    document_append_int64(buf, SLICE("ready"), (int64_t)state.ready);
    document_append_int64(buf, SLICE("building"), (int64_t)state.building);
    document_append_int64(buf, SLICE("pointsIn"), (int64_t)state.points_in);
    document_append_int64(buf, SLICE("points"), (int64_t)state.points_all);
    document_append_int64(buf, SLICE("changes"), (int64_t)state.changes);
    document_end(buf, begin);
}

static void put_access(struct buf *buf, const struct query_access *access, bool covered)
{
    size_t begin = document_append_object_begin(buf, SLICE("access")), list;
    char text[DOCUMENT_INDEX_SIZE];

    put_text(buf, SLICE("kind"), access_name(access->kind));
    document_append_int64(buf, SLICE("targets"), (int64_t)access->target_count);
    if (access->index)
        put_index(buf, SLICE("index"), access->index);
    if (access->with_count)
        put_index(buf, SLICE("intersectedWith"), access->with[0]);
    if (access->with_count > 1) {
        list = document_append_array_begin(buf, SLICE("intersectedToo"));
        for (size_t i = 1; i < access->with_count; i++)
            put_index(buf, document_index_key((uint32_t)i - 1, text), access->with[i]);
        document_end(buf, list);
    }
    if (access->without)
        put_index(buf, SLICE("without"), access->without);
    document_append_bool(buf, SLICE("filterSettled"), access->exact);
    document_append_bool(buf, SLICE("indexOnly"), covered);
    document_append_bool(buf, SLICE("ordered"), access->ordered);
    document_append_bool(buf, SLICE("backwards"), access->backwards);
    list = document_append_array_begin(buf, SLICE("weighed"));
    for (size_t i = 0; i < access->weighed_count; i++)
        put_index(buf, document_index_key((uint32_t)i, text), &access->weighed[i]);
    document_end(buf, list);
    document_end(buf, begin);
}

static double ru(struct cost_query cost)
{
    return (double)cost_query(&cost) / 100;
}

static void put_charge(struct buf *buf, const struct query_page *page,
                       const struct cost_query *cost)
{
    size_t begin = document_append_object_begin(buf, SLICE("charge"));

    document_append_double(buf, SLICE("total"), (double)page->charge_cru / 100);
    if (cost->partitions_begun || cost->partitions_resumed)
        document_append_double(
            buf, SLICE("partitions"),
            ru((struct cost_query){.partitions_begun = cost->partitions_begun,
                                   .partitions_resumed = cost->partitions_resumed,
                                   .strong = cost->strong}));
    if (cost->index_lookups || cost->index_entries)
        document_append_double(buf, SLICE("index"),
                               ru((struct cost_query){.index_lookups = cost->index_lookups,
                                                      .index_entries = cost->index_entries,
                                                      .strong = cost->strong}));
    if (cost->items_loaded)
        document_append_double(buf, SLICE("items"),
                               ru((struct cost_query){.items_loaded = cost->items_loaded,
                                                      .loaded_bytes = cost->loaded_bytes,
                                                      .strong = cost->strong}));
    if (cost->output_bytes)
        document_append_double(
            buf, SLICE("output"),
            ru((struct cost_query){.output_bytes = cost->output_bytes, .strong = cost->strong}));
    document_end(buf, begin);
}

static void put_actual(struct buf *buf, const struct query_run_state *run,
                       const struct query_page *page)
{
    size_t begin = document_append_object_begin(buf, SLICE("actual"));

    document_append_int64(buf, SLICE("indexEntries"), (int64_t)page->metrics.index_entries);
    document_append_int64(buf, SLICE("itemsLoaded"), (int64_t)page->metrics.items_loaded);
    document_append_int64(buf, SLICE("itemsMatched"), (int64_t)run->matched);
    document_append_int64(buf, SLICE("rows"), (int64_t)page->metrics.rows);
    document_append_int64(buf, SLICE("spilledBytes"), (int64_t)page->metrics.spilled_bytes);
    document_end(buf, begin);
}

/* --- Advice ---------------------------------------------------------------------------------- */

/* While advice is put together. */
struct advising {
    struct buf *buf;
    const struct query_run_state *run;
    const struct cost_query *cost;
    uint32_t number;
    struct buf names; /* of the present piece, for people */
};

static void put_path(struct advising *a, struct slice key, const struct document_path *path)
{
    size_t begin;

    if (a->names.len)
        BUF_APPEND(&a->names, ", ");
    begin = a->names.len;
    document_path_append(path, &a->names);
    document_append_string(a->buf, key, slice_skip(buf_slice(&a->names), begin));
}

/* One piece of advice; its paths go between the two calls. */
static size_t advice_begin(struct advising *a, const char *kind)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_object_begin(a->buf, document_index_key(a->number++, text));

    buf_clear(&a->names);
    put_text(a->buf, SLICE("kind"), kind);
    return begin;
}

/* What the page would have cost, had an index led to so many items and no others. */
static struct cost_query cost_with_index(const struct advising *a, uint64_t wanted)
{
    struct cost_query with = *a->cost;
    bool ordered = a->run->access.ordered;

    if (wanted >= with.items_loaded)
        return with;
    with.loaded_bytes = with.loaded_bytes / with.items_loaded * wanted;
    with.items_loaded = wanted;
    /* It takes the place of the one used now, unless that gives the order. */
    with.index_lookups = with.partitions_begun + (ordered ? with.index_lookups : 0);
    with.index_entries = wanted + (ordered ? with.index_entries : 0);
    return with;
}

static void put_advice_text(struct advising *a, const char *what, uint64_t spared, double total,
                            double saved)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_printf(&text, "%s %.*s would have ", what, SLICE_ARG(buf_slice(&a->names)));
    if (spared)
        buf_printf(&text, "spared up to %llu of the %llu item%s loaded, ",
                   (unsigned long long)spared, (unsigned long long)a->cost->items_loaded,
                   PLURAL(a->cost->items_loaded));
    if (saved > 0)
        buf_printf(&text, "and so up to %.2f of %.2f RU; it costs %.2f RU with each item written",
                   saved, total, (double)cost_model.index_entry / 1e6);
    else
        BUF_APPEND(&text, "saved no RU here: there was too little to look at");
    document_append_string(a->buf, SLICE("text"), buf_slice(&text));
}

static void advice_end(struct advising *a, size_t begin, const char *what, uint64_t wanted)
{
    struct cost_query with = cost_with_index(a, wanted);
    int64_t now_cru = cost_query(a->cost);
    int64_t saved_cru = MAX(now_cru - cost_query(&with), (int64_t)0);
    uint64_t spared = a->cost->items_loaded - with.items_loaded;
    double total = (double)now_cru / 100, saved = (double)saved_cru / 100;

    document_append_int64(a->buf, SLICE("itemsSpared"), (int64_t)spared);
    document_append_double(a->buf, SLICE("charge"), (double)(now_cru - saved_cru) / 100);
    document_append_double(a->buf, SLICE("saved"), saved);
    put_advice_text(a, what, spared, total, saved);
    document_end(a->buf, begin);
}

static void put_composite(struct advising *a)
{
    const struct query_access *access = &a->run->access;
    size_t begin = advice_begin(a, "composite");
    size_t list = document_append_array_begin(a->buf, SLICE("paths"));
    char text[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < access->together_count; i++)
        put_path(a, document_index_key((uint32_t)i, text), &access->together[i]->path);
    document_end(a->buf, list);
    advice_end(a, begin, "a composite index on", a->run->matched);
}

/* What other indexes would have spared: the items that were loaded and gave no row. */
static void put_advice(struct buf *buf, const struct query_run_state *run,
                       const struct cost_query *cost)
{
    const struct query_access *access = &run->access;
    size_t list = document_append_array_begin(buf, SLICE("advice")), begin;
    struct advising a = {.buf = buf, .run = run, .cost = cost};

    buf_init(&a.names, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < access->missing_count; i++) {
        begin = advice_begin(&a, "single");
        put_path(&a, SLICE("path"), &access->missing[i].path);
        advice_end(&a, begin, "an index on", run->matched);
    }
    if (access->search_missing) {
        begin = advice_begin(&a, "fullText");
        put_path(&a, SLICE("searched"), access->search_missing);
        advice_end(&a, begin, "a full-text index on", run->matched);
    }
    if (access->order_missing) {
        begin = advice_begin(&a, "order");
        put_path(&a, SLICE("path"), access->order_missing);
        advice_end(&a, begin, "an index for the order on", MIN(run->output.rows, run->matched));
    }
    if (access->together_count && cost->items_loaded > run->matched)
        put_composite(&a);
    document_end(buf, list);
    buf_done(&a.names);
}

/* Containers that were joined from their copies, by which keys, and what that gave. */
static void put_references(struct buf *buf, const struct query_run_state *run)
{
    const struct query_plan *plan = run->plan;
    char text[DOCUMENT_INDEX_SIZE];
    size_t object, list, one, paths;

    if (!plan->reference_count)
        return;
    object = document_append_object_begin(buf, SLICE("references"));
    list = document_append_array_begin(buf, SLICE("joins"));
    for (size_t i = 0; i < plan->reference_count; i++) {
        const struct query_reference *reference = &plan->references[i];

        one = document_append_object_begin(buf, document_index_key((uint32_t)i, text));
        document_append_string(buf, SLICE("container"), reference->container);
        if (reference->database.data)
            document_append_string(buf, SLICE("database"), reference->database);
        paths = document_append_array_begin(buf, SLICE("key"));
        for (size_t p = 0; p < reference->path_count; p++) {
            char number[DOCUMENT_INDEX_SIZE];

            document_append_string(buf, document_index_key((uint32_t)p, number),
                                   reference->paths[p]);
        }
        document_end(buf, paths);
        document_end(buf, one);
    }
    document_end(buf, list);
    document_append_int64(buf, SLICE("items"), (int64_t)run->context.joined_items);
    document_append_int64(buf, SLICE("bytes"), (int64_t)run->context.joined_bytes);
    document_end(buf, object);
}

struct slice query_explain(const struct query_run_state *run, const struct query_page *page,
                           const struct cost_query *cost, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin, partitions, map_count;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    put_access(&buf, &run->access, run->covered || run->keyed);
    put_graphs(&buf, run);
    put_text(&buf, SLICE("operator"), mode_name(run->mode));
    partitions = document_append_object_begin(&buf, SLICE("partitions"));
    document_append_int64(&buf, SLICE("read"), page->metrics.partitions);
    (void)partition_map_spans(run->request->space->map, &map_count);
    document_append_int64(&buf, SLICE("all"), (int64_t)map_count);
    document_end(&buf, partitions);
    put_actual(&buf, run, page);
    put_charge(&buf, page, cost);
    put_advice(&buf, run, cost);
    put_references(&buf, run);
    query_pushed_append(run->plan, &buf);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}
