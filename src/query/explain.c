/* An explanation is a BSON document, in the order things happen:
 *
 *     access       nothing, point, scan or index; with index: which, how many ranges, whether the
 *                  filter is settled by it, and how many entries were counted in advance
 *     operator     stream, aggregate, group, distinct or sort; ordered: the index gave the order
 *     partitions   read from for this page, of how many
 *     actual       entries walked, items loaded, rows given
 *     charge       in RU: all of it, and what partitions, index, items and output make of it
 *     advice       indexes that would have helped: their kind (single, order, composite), path or
 *                  paths, and how many of the items loaded they would have spared */
#include "query/run_private.h"

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

static void put_index(struct buf *buf, struct slice key, const struct query_index_use *use)
{
    size_t begin = document_append_object_begin(buf, key);

    document_append_string(buf, SLICE("path"), use->name);
    document_append_int64(buf, SLICE("ranges"), (int64_t)use->ranges.count);
    document_append_bool(buf, SLICE("composite"), use->value_count > 1);
    document_append_bool(buf, SLICE("exact"), use->exact);
    document_append_int64(buf, SLICE("estimatedEntries"), (int64_t)use->estimate);
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
    if (access->second)
        put_index(buf, SLICE("intersectedWith"), access->second);
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

static void put_actual(struct buf *buf, const struct query_page *page)
{
    size_t begin = document_append_object_begin(buf, SLICE("actual"));

    document_append_int64(buf, SLICE("indexEntries"), (int64_t)page->metrics.index_entries);
    document_append_int64(buf, SLICE("itemsLoaded"), (int64_t)page->metrics.items_loaded);
    document_append_int64(buf, SLICE("rows"), (int64_t)page->metrics.rows);
    document_end(buf, begin);
}

static void put_path(struct buf *buf, struct slice key, const struct document_path *path)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    document_path_append(path, &name);
    document_append_string(buf, key, buf_slice(&name));
}

/* One piece of advice; its paths go between the two calls. */
static size_t advice_begin(struct buf *buf, uint32_t *number, const char *kind)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_object_begin(buf, document_index_key((*number)++, text));

    put_text(buf, SLICE("kind"), kind);
    return begin;
}

static void advice_end(struct buf *buf, size_t begin, uint64_t spared)
{
    document_append_int64(buf, SLICE("itemsSpared"), (int64_t)spared);
    document_end(buf, begin);
}

static void put_composite(struct buf *buf, const struct query_access *access, uint32_t *number,
                          uint64_t spared)
{
    size_t begin = advice_begin(buf, number, "composite");
    size_t list = document_append_array_begin(buf, SLICE("paths"));
    char text[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < access->together_count; i++)
        put_path(buf, document_index_key((uint32_t)i, text), &access->together[i]->path);
    document_end(buf, list);
    advice_end(buf, begin, spared);
}

/* What other indexes would have spared: the items that were loaded and gave no row. */
static void put_advice(struct buf *buf, const struct query_run_state *run,
                       const struct query_page *page)
{
    const struct query_access *access = &run->access;
    uint64_t loaded = page->metrics.items_loaded, rows = page->metrics.rows;
    uint64_t spared = loaded > rows ? loaded - rows : 0;
    size_t list = document_append_array_begin(buf, SLICE("advice"));
    uint32_t number = 0;

    for (size_t i = 0; i < access->missing_count; i++) {
        size_t begin = advice_begin(buf, &number, "single");

        put_path(buf, SLICE("path"), &access->missing[i].path);
        advice_end(buf, begin, spared);
    }
    if (access->order_missing) {
        size_t begin = advice_begin(buf, &number, "order");

        put_path(buf, SLICE("path"), access->order_missing);
        advice_end(buf, begin, spared);
    }
    if (access->together_count && spared)
        put_composite(buf, access, &number, spared);
    document_end(buf, list);
}

struct slice query_explain(const struct query_run_state *run, const struct query_page *page,
                           const struct cost_query *cost, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin, partitions, map_count;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    put_access(&buf, &run->access, run->covered);
    put_text(&buf, SLICE("operator"), mode_name(run->mode));
    partitions = document_append_object_begin(&buf, SLICE("partitions"));
    document_append_int64(&buf, SLICE("read"), page->metrics.partitions);
    (void)partition_map_spans(run->request->space->map, &map_count);
    document_append_int64(&buf, SLICE("all"), (int64_t)map_count);
    document_end(&buf, partitions);
    put_actual(&buf, page);
    put_charge(&buf, page, cost);
    put_advice(&buf, run, page);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}
