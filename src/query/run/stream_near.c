/* The most alike entries of a span: of a graph, of a block in memory, or of the index.
 *
 * The first walk asks the graph of the block, if it has one, and looks at all that was written
 * since the block was made. Where the candidates do not make enough rows, all entries are gone
 * through: those of the block and what was written since, or those of the index. */
#include "query/run/stream_private.h"

#include "base/memory.h"
#include "index/policy.h"
#include "query/run/blocks.h"
#include "query/run/nearest.h"

enum {
    NEAR_BYTES_PER_ENTRY = 1024, /* of vectors that are only compared, for the price of one */
    ENTRIES_PER_CHANGE = 4,      /* an item that was written is read once, for all who come later */
};

void query_stream_near_done(struct query_stream *stream)
{
    query_near_free(stream->near);
    query_block_unref(stream->block);
    query_since_done(&stream->since);
}

/* Vectors are passed over for less than an entry costs that leads to an item. */
static void near_charge(const struct query_streaming *how, struct query_stream *stream,
                        uint64_t walked)
{
    stream->passed += walked * index_vector_size(stream->use->nearest->index);
    how->spans->list[stream->span].cost.index_entries += stream->passed / NEAR_BYTES_PER_ENTRY;
    stream->passed %= NEAR_BYTES_PER_ENTRY;
}

/* --- Blocks ---------------------------------------------------------------------------------- */

/* Looks at what was written since the block was made. *ret_again: that was too much, and there may
 * be a younger one. */
static bool block_catch_up(const struct query_streaming *how, struct query_stream *stream,
                           uint64_t lsn, bool *ret_again, struct error *err)
{
    struct query_span *span = &how->spans->list[stream->span];
    enum query_since_state state;

    if (!query_block_since(stream->block, &span->view, lsn, stream->use->nearest->definition,
                           &stream->since, &state, err))
        return false;
    span->cost.index_entries += stream->since.read * ENTRIES_PER_CHANGE;
    stream->block_whole = state == QUERY_SINCE_WHOLE;
    stream->stale = stream->block_whole && query_block_lsn(stream->block) < lsn;
    if (stream->block_whole)
        return true;
    *ret_again = state == QUERY_SINCE_WORN;
    if (*ret_again)
        query_blocks_drop(how->spans->request->blocks, stream->block);
    query_block_unref(stream->block);
    stream->block = NULL;
    return true;
}

/* Entries of a whole span, without anything planned besides, may be in memory, or are kept there.
 */
static bool block_open(const struct query_streaming *how, struct query_stream *stream,
                       struct error *err)
{
    struct query_blocks *blocks = how->spans->request->blocks;
    const struct query_span *span = &how->spans->list[stream->span];
    struct query_block_key key = {.node = span->view.scope.node,
                                  .partition = span->view.scope.partition,
                                  .epoch = span->view.scope.epoch,
                                  .default_ttl = span->view.scope.definition->default_ttl,
                                  .index = *stream->use->nearest->index,
                                  .prefix = stream->use->prefix,
                                  .account = how->spans->request->limits.memory};
    bool renew = false, again = true;

    if (!blocks || span->view.planned || !span->view.snapshot ||
        !slice_equal(stream->range.min, span->span->min) ||
        !slice_equal(stream->range.max, span->span->max))
        return true;
    if (!view_lsn(&span->view, &key.lsn, err))
        return false;
    while (again) {
        stream->block = query_blocks_find(blocks, &key, &renew);
        if (stream->block && renew) {
            query_block_unref(stream->block);
            stream->block = NULL;
        }
        again = false;
        if (stream->block && !block_catch_up(how, stream, key.lsn, &again, err))
            return false;
    }
    if (!stream->block)
        stream->block = query_block_begin(blocks, &key);
    return true;
}

/* The next entry of the block that is of now, or behind them of what was written since. */
static bool block_next(struct query_stream *stream, struct cursor_hit *ret_hit)
{
    const struct query_since *since = &stream->since;

    while (query_block_at(stream->block, stream->block_at, ret_hit)) {
        stream->block_at++;
        if (!query_since_has(since, ret_hit->number))
            return true;
    }
    while (stream->changes_at < since->count) {
        const struct query_change *change = since->list[stream->changes_at++];

        if (!change->value.data)
            continue;
        *ret_hit = (struct cursor_hit){
            .value = change->value, .number = change->number, .key = change->key};
        return true;
    }
    return false;
}

/* The next entry, from the block or from the index; what comes from there goes into the block. */
static bool near_entry(const struct query_streaming *how, struct query_stream *stream,
                       struct cursor_hit *ret_hit, bool *ret_more, struct error *err)
{
    if (stream->block_whole) {
        *ret_more = block_next(stream, ret_hit);
        return true;
    }
    if (!cursor_next(stream->cursor, ret_hit, ret_more, err))
        return false;
    if (stream->block && *ret_more && !query_block_add(stream->block, ret_hit)) {
        query_block_unref(stream->block);
        stream->block = NULL;
    }
    if (stream->block && !*ret_more) {
        query_blocks_put(how->spans->request->blocks, stream->block);
        stream->block_whole = true;
    }
    return true;
}

/* --- Walks ----------------------------------------------------------------------------------- */

/* Walks on: to the end, or to the next entry that is given at once. */
static bool near_walk(const struct query_streaming *how, struct query_stream *stream, bool *ret_now,
                      struct error *err)
{
    struct cursor_hit hit;
    uint64_t walked = 0;
    bool more;

    for (*ret_now = false; !*ret_now;) {
        if (!near_entry(how, stream, &hit, &more, err))
            return false;
        if (!more)
            break;
        if (++walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err))
            return false;
        query_near_take(stream->near, &hit, ret_now);
    }
    if (*ret_now)
        query_stream_place(how, stream, &hit);
    near_charge(how, stream, walked);
    return true;
}

/* Takes what the graph has found, and all that was written since. */
static void graph_walk(const struct query_streaming *how, struct query_stream *stream,
                       const struct search_graph *graph)
{
    const struct query_nearest *nearest = stream->use->nearest;
    size_t max = MAX(nearest->list, query_near_capacity(stream->near));
    CLEANUP(memory_free) uint32_t *points = memory_alloc(memory_array_size(max, sizeof *points));
    uint64_t looked;
    size_t count = search_graph_search(graph, nearest->asked.elements, max, points, max, &looked);
    struct cursor_hit hit;
    bool now;

    query_near_pick(stream->near);
    for (size_t i = 0; i < count; i++)
        if (query_block_at(stream->block, points[i], &hit) &&
            !query_since_has(&stream->since, hit.number))
            query_near_take(stream->near, &hit, &now);
    stream->changes_at = 0;
    stream->block_at = SIZE_MAX;
    while (block_next(stream, &hit))
        query_near_take(stream->near, &hit, &now);
    near_charge(how, stream, looked + stream->since.count);
}

/* The graph to be asked; NULL: all entries are gone through. */
static const struct search_graph *graph_of(const struct query_stream *stream)
{
    const struct query_nearest *nearest = stream->use->nearest;

    return stream->block_whole && !stream->walked && nearest->list &&
                   MAX(nearest->list, query_near_capacity(stream->near)) <= SEARCH_GRAPH_FOUND_MAX
               ? query_block_graph(stream->block)
               : NULL;
}

/* One walk, of the graph or of all entries. *ret_now: an entry is to be given at once. */
static bool near_go(const struct query_streaming *how, struct query_stream *stream, bool *ret_now,
                    struct error *err)
{
    const struct search_graph *graph = graph_of(stream);

    stream->walked = true;
    stream->block_at = stream->changes_at = 0;
    if (graph) {
        *ret_now = false;
        graph_walk(how, stream, graph);
        return true;
    }
    return (stream->block_whole || query_stream_rewind(how, stream, err)) &&
           near_walk(how, stream, ret_now, err);
}

static bool near_open(const struct query_streaming *how, struct query_stream *stream,
                      struct error *err)
{
    const struct view *view = &how->spans->list[stream->span].view;

    stream->near = query_near_new(stream->use->nearest);
    if (!block_open(how, stream, err))
        return false;
    if (stream->stale || view_may_expire(view))
        query_near_expect_gone(stream->near);
    return true;
}

/* Where a block of before leads to so many items that are gone that a second walk is needed, the
 * next search makes another. */
static void gone_notice(const struct query_streaming *how, struct query_stream *stream)
{
    if (stream->walked && stream->stale && stream->block && !stream->use->nearest->filtered &&
        !view_may_expire(&how->spans->list[stream->span].view))
        query_blocks_drop(how->spans->request->blocks, stream->block);
}

bool query_stream_near_next(const struct query_streaming *how, struct query_stream *stream,
                            struct error *err)
{
    uint64_t taken = how->taken_span == stream->span ? how->taken : 0;
    struct cursor_hit hit = {0};
    bool streams = stream->near && query_near_streams(stream->near), begun = stream->near != NULL;

    if (!stream->near && !near_open(how, stream, err))
        return false;
    stream->has = true;
    if (streams)
        return near_walk(how, stream, &stream->has, err);
    if (begun && taken >= stream->use->nearest->wanted) {
        stream->has = false;
        return true;
    }
    while (!query_near_next(stream->near, &hit.number, &hit.key)) {
        if (begun && !stream->undecided) {
            stream->undecided = true;
            return true;
        }
        stream->undecided = false;
        if (!query_near_wants_walk(stream->near, taken)) {
            stream->has = false;
            return true;
        }
        gone_notice(how, stream);
        if (!near_go(how, stream, &stream->has, err))
            return false;
        if (query_near_streams(stream->near))
            return true;
        stream->has = true;
        begun = false;
        query_near_sort(stream->near);
    }
    query_stream_place(how, stream, &hit);
    how->spans->list[stream->span].cost.index_entries++;
    return true;
}
