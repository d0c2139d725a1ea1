/* Time, bytes and charges are counted for one stage at a time: where work passes from one to
 * another, what came together since then is the first one's. So a stage is not charged with what
 * those behind it do with its rows, though they run within its call. */
#include "query/spool/spill.h"
#include "query/stage/flow_private.h"

struct query_stage_figures *query_figures_new(const struct query_chain *chain, struct arena *arena)
{
    struct query_stage_figures *figures =
        ARENA_ARRAY(arena, struct query_stage_figures, chain->count + 1);

    for (size_t i = 0; i <= chain->count; i++) {
        const struct query_stage *stage = &chain->stages[i];

        figures[i] = (struct query_stage_figures){0};
        if (i == chain->count || stage->kind != QUERY_STAGE_FACET)
            continue;
        figures[i].chains =
            ARENA_ARRAY(arena, struct query_stage_figures *, stage->facet.count + 1);
        for (size_t j = 0; j < stage->facet.count; j++)
            figures[i].chains[j] = query_figures_new(&stage->facet.chains[j], arena);
    }
    return figures;
}

static struct query_figures_mark mark_now(const struct query_stages *run)
{
    return (struct query_figures_mark){.ns = clock_monotonic_ns(),
                                       .spilled_bytes = query_spill_budget_written(run->spill) +
                                                        run->metrics.spilled_bytes,
                                       .items_loaded = run->metrics.items_loaded,
                                       .index_entries = run->metrics.index_entries,
                                       .charge_cru = run->charge_cru};
}

struct query_stage_figures *query_figures_enter(struct query_stages *run,
                                                struct query_stage_figures *figures)
{
    struct query_stage_figures *before = run->figuring;
    struct query_figures_mark now;

    if (!run->request->explain || figures == before)
        return before;
    now = mark_now(run);
    if (before) {
        before->ns += now.ns - run->mark.ns;
        before->spilled_bytes += now.spilled_bytes - run->mark.spilled_bytes;
        before->items_loaded += now.items_loaded - run->mark.items_loaded;
        before->index_entries += now.index_entries - run->mark.index_entries;
        before->charge_cru += now.charge_cru - run->mark.charge_cru;
    }
    run->mark = now;
    run->figuring = figures;
    return before;
}

/* --- For people ------------------------------------------------------------------------------- */

static const char *stage_name(enum query_stage_kind kind)
{
    static const char *const names[] = {"match", "unwind",   "project", "group", "sort",  "skip",
                                        "limit", "distinct", "lookup",  "facet", "union", "window"};

    return names[kind];
}

static size_t stage_begin(struct buf *buf, uint32_t *number, const char *name)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_object_begin(buf, document_index_key((*number)++, text));

    document_append_string(buf, SLICE("stage"), slice_of_text(name));
    return begin;
}

static void pushed_put(struct buf *buf, uint32_t *number, enum query_stage_kind kind)
{
    document_end(buf, stage_begin(buf, number, stage_name(kind)));
}

static void amount_put(struct buf *buf, uint32_t *number, enum query_stage_kind kind,
                       uint64_t amount)
{
    size_t begin = stage_begin(buf, number, stage_name(kind));

    document_append_int64(buf, SLICE("amount"), (int64_t)MIN(amount, (uint64_t)INT64_MAX));
    document_end(buf, begin);
}

void query_pushed_append(const struct query_plan *plan, struct buf *buf)
{
    const struct query_subquery *query = &plan->query;
    size_t list = document_append_array_begin(buf, SLICE("pushed"));
    uint32_t number = 0;

    for (size_t i = 0; i < query->source_count; i++)
        pushed_put(buf, &number, QUERY_STAGE_UNWIND);
    if (query->filter)
        pushed_put(buf, &number, QUERY_STAGE_MATCH);
    if (query->key_count || query->aggregate_count)
        pushed_put(buf, &number, QUERY_STAGE_GROUP);
    if (query->order_count)
        pushed_put(buf, &number, QUERY_STAGE_SORT);
    pushed_put(buf, &number, QUERY_STAGE_PROJECT);
    if (query->distinct)
        pushed_put(buf, &number, QUERY_STAGE_DISTINCT);
    if (query->offset)
        amount_put(buf, &number, QUERY_STAGE_SKIP, query->offset);
    if (query->limit != UINT64_MAX)
        amount_put(buf, &number, QUERY_STAGE_LIMIT, query->limit);
    document_end(buf, list);
}

static void stages_put(struct buf *buf, struct slice key, const struct query_chain *chain,
                       const struct query_stage_figures *figures, size_t keep_at);

static void figures_put(struct buf *buf, const struct query_stage_figures *figures)
{
    document_append_int64(buf, SLICE("rowsIn"), (int64_t)figures->rows_in);
    document_append_int64(buf, SLICE("rowsOut"), (int64_t)figures->rows_out);
    document_append_double(buf, SLICE("ms"), (double)figures->ns / 1e6);
    document_append_int64(buf, SLICE("spilledBytes"), (int64_t)figures->spilled_bytes);
}

/* What another container gave. */
static void other_put(struct buf *buf, struct slice container,
                      const struct query_stage_figures *figures)
{
    document_append_string(buf, SLICE("container"), container);
    document_append_int64(buf, SLICE("itemsLoaded"), (int64_t)figures->items_loaded);
    document_append_int64(buf, SLICE("indexEntries"), (int64_t)figures->index_entries);
    document_append_double(buf, SLICE("charge"), (double)figures->charge_cru / 100);
}

static void stage_put(struct buf *buf, uint32_t *number, const struct query_stage *stage,
                      const struct query_stage_figures *figures)
{
    size_t begin = stage_begin(buf, number, stage_name(stage->kind)), list;
    char text[DOCUMENT_INDEX_SIZE];

    figures_put(buf, figures);
    if (stage->kind == QUERY_STAGE_LOOKUP)
        other_put(buf, stage->lookup.container, figures);
    if (stage->kind == QUERY_STAGE_UNION)
        other_put(buf, stage->unite.container, figures);
    if (stage->kind == QUERY_STAGE_FACET) {
        list = document_append_array_begin(buf, SLICE("chains"));
        for (size_t i = 0; i < stage->facet.count; i++)
            stages_put(buf, document_index_key((uint32_t)i, text), &stage->facet.chains[i],
                       figures->chains[i], SIZE_MAX);
        document_end(buf, list);
    }
    document_end(buf, begin);
}

static void stages_put(struct buf *buf, struct slice key, const struct query_chain *chain,
                       const struct query_stage_figures *figures, size_t keep_at)
{
    size_t list = document_append_array_begin(buf, key), begin;
    uint32_t number = 0;

    for (size_t i = 0; i <= chain->count; i++) {
        if (i == keep_at) {
            begin = stage_begin(buf, &number, "keep");
            figures_put(buf, &figures[chain->count]);
            document_end(buf, begin);
        }
        if (i < chain->count)
            stage_put(buf, &number, &chain->stages[i], &figures[i]);
    }
    document_end(buf, list);
}

/* Before which stage rows are kept that no stage keeps. */
static size_t keep_place(const struct query_flow *flow)
{
    for (size_t nth = 0; nth + 1 < flow->segment_count; nth++)
        if (flow->segments[nth].end == flow->segments[nth + 1].first)
            return flow->segments[nth].end;
    return SIZE_MAX;
}

/* Of what the plan below says of its page, figures of the whole take the place of its own. */
static void below_put(struct buf *buf, struct slice below, struct slice key,
                      const struct query_page *page)
{
    size_t begin = document_append_object_begin(buf, key);
    bool charge = slice_equal(key, SLICE("charge"));
    struct document_value part;
    struct document_iter iter;

    if (charge) {
        document_append_double(buf, SLICE("total"), (double)page->charge_cru / 100);
    } else {
        document_append_int64(buf, SLICE("rows"), (int64_t)page->metrics.rows);
        document_append_int64(buf, SLICE("spilledBytes"), (int64_t)page->metrics.spilled_bytes);
    }
    if (below.len && document_find(below, key, &part)) {
        document_iter_init(&iter, part.document);
        while (document_iter_next(&iter))
            if (!slice_equal(iter.key, SLICE("total")) && !slice_equal(iter.key, SLICE("rows")) &&
                !slice_equal(iter.key, SLICE("spilledBytes")))
                document_append(buf, iter.key, &iter.value);
    }
    document_end(buf, begin);
}

struct slice query_stages_explain(const struct query_flow *flow, struct slice below,
                                  const struct query_page *page)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    if (below.len) {
        document_iter_init(&iter, below);
        while (document_iter_next(&iter))
            if (!slice_equal(iter.key, SLICE("actual")) && !slice_equal(iter.key, SLICE("charge")))
                document_append(&buf, iter.key, &iter.value);
    } else {
        query_pushed_append(flow->run->plan, &buf);
    }
    below_put(&buf, below, SLICE("actual"), page);
    below_put(&buf, below, SLICE("charge"), page);
    document_append_bool(&buf, SLICE("kept"), !below.len);
    stages_put(&buf, SLICE("stages"), flow->chain, flow->figures, keep_place(flow));
    document_end(&buf, begin);
    return arena_copy(flow->run->request->arena, buf_slice(&buf));
}
