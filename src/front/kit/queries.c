#include "front/kit/queries.h"

#include "query/run/lists.h"
#include "query/run/members.h"

#include <stdatomic.h>

enum { KINDS = 4096, PASSES_MAX = 63 };

struct front_queries {
    struct front_query_limits limits; /* without the directory, which was copied */
    struct query_cache *cache;        /* unfinished results between two pages */
    struct query_blocks *blocks;      /* vectors that were walked */
    struct query_lists *lists;        /* entries of terms that were */
    struct query_members *members;    /* items that intersections met */
    struct query_spill *spill;        /* what of them, and of others, is on disk */
    struct front_plans *plans;
    struct query_copies *copies; /* of reference containers */
    /* Of a kind, by hash: how many are left to workers the next time (above), and how many of those
     * are still to come (below). What two threads do at once may be lost. */
    _Atomic uint16_t passes[KINDS];
};

struct front_queries *front_queries_new(const struct front_query_limits *limits)
{
    struct front_queries *queries = MEMORY_NEW(struct front_queries);

    queries->limits = *limits;
    queries->limits.spill_directory = NULL;
    queries->spill = query_spill_new(
        &(struct query_spill_options){.directory = limits->spill_directory,
                                      .query_bytes_max = limits->spill_bytes_max,
                                      .total_bytes_max = limits->spill_total_bytes_max});
    /* results whose clients never come back must leave room for others */
    queries->cache = query_cache_new(limits->cache_bytes_max, limits->spill_total_bytes_max / 2);
    queries->blocks = query_blocks_new(limits->vectors_bytes_max);
    queries->lists = query_lists_new(limits->terms_bytes_max);
    queries->members = query_members_new(limits->members_bytes_max);
    queries->plans = front_plans_new(limits->plans_bytes_max);
    queries->copies = query_copies_new(limits->copies_bytes_max);
    return queries;
}

void front_queries_free(struct front_queries *queries)
{
    if (!queries)
        return;
    query_cache_free(queries->cache);
    query_blocks_free(queries->blocks);
    query_lists_free(queries->lists);
    query_members_free(queries->members);
    query_spill_free(queries->spill);
    front_plans_free(queries->plans);
    query_copies_free(queries->copies);
    memory_free(queries);
}

size_t front_queries_memory_max(const struct front_queries *queries)
{
    return queries->limits.memory_bytes_max;
}

int64_t front_queries_deadline_ms(const struct front_queries *queries)
{
    return queries->limits.deadline_ms;
}

struct query_spill *front_queries_spill(const struct front_queries *queries)
{
    return queries->spill;
}

bool front_queries_may_try(struct front_queries *queries, uint64_t kind)
{
    _Atomic uint16_t *place = &queries->passes[kind % KINDS];
    uint16_t passes = atomic_load_explicit(place, memory_order_relaxed);

    if (!(passes & 0xFF))
        return true;
    atomic_store_explicit(place, (uint16_t)(passes - 1), memory_order_relaxed);
    return false;
}

void front_queries_was_cold(struct front_queries *queries, uint64_t kind)
{
    _Atomic uint16_t *place = &queries->passes[kind % KINDS];
    unsigned before = atomic_load_explicit(place, memory_order_relaxed) >> 8;
    unsigned passes = MIN(2 * before + 1, (unsigned)PASSES_MAX);

    atomic_store_explicit(place, (uint16_t)(passes << 8 | passes), memory_order_relaxed);
}

void front_queries_was_short(struct front_queries *queries, uint64_t kind)
{
    _Atomic uint16_t *place = &queries->passes[kind % KINDS];
    uint16_t passes = atomic_load_explicit(place, memory_order_relaxed);

    if (passes)
        atomic_store_explicit(place, (uint16_t)((passes >> 9) << 8), memory_order_relaxed);
}

struct front_plans *front_queries_plans(const struct front_queries *queries)
{
    return queries->plans;
}

struct query_copies *front_queries_copies(const struct front_queries *queries)
{
    return queries->copies;
}

void front_queries_metrics(const struct front_queries *queries,
                           struct query_spill_metrics *ret_metrics)
{
    query_spill_metrics(queries->spill, ret_metrics);
}

void front_queries_vectors(const struct front_queries *queries, size_t *ret_bytes,
                           struct query_graphs_state *ret_graphs)
{
    *ret_bytes = query_blocks_bytes(queries->blocks);
    *ret_graphs = (struct query_graphs_state){0};
    query_blocks_graphs(queries->blocks, 0, 0, SLICE_NONE, ret_graphs);
}

void front_query_observe(struct observed *observed, const struct query_metrics *metrics)
{
    struct observed_reads *reads = &observed->reads;

    reads->queries++;
    reads->items += metrics->items_loaded;
    reads->index_entries += metrics->index_entries;
    reads->index_lookups += metrics->index_lookups;
    reads->partitions += metrics->partitions;
    reads->rows += metrics->rows;
}

bool front_query_run(const struct front_call *call, const struct query_plan *plan,
                     struct query_request *request, struct query_page *ret_page, struct error *err)
{
    const struct front_services *services = call->services;
    const struct front_queries *queries = services->queries;
    int64_t now_ms = clock_read_monotonic_ms(services->clock);
    const struct front_helpers helpers = {.workers = services->workers,
                                          .owner = call->owner,
                                          .part = call->work.part,
                                          .width = services->query_threads};
    const struct query_executor executor = front_fan_out(&helpers);

    request->meters = services->meters;
    request->limits.pause_ms = now_ms + queries->limits.pause_ms;
    /* the client may have less time than the server gives */
    if (!request->limits.deadline_ms ||
        request->limits.deadline_ms > now_ms + queries->limits.deadline_ms)
        request->limits.deadline_ms = now_ms + queries->limits.deadline_ms;
    request->limits.memory_max = queries->limits.memory_bytes_max;
    request->limits.cancelled = call->cancelled;
    request->limits.breath = front_breath(services->workers);
    request->limits.memory = net_owner_memory(call->owner);
    request->cache = request->partial ? NULL : queries->cache; /* what is kept there is whole */
    request->blocks = queries->blocks;
    request->lists = queries->lists;
    request->members = queries->members;
    request->spill = request->in_memory ? NULL : queries->spill;
    request->executor = &executor;
    request->arena = call->arena;
    request->is_short = !call->may_block;
    if (call->moment) {
        /* one thread has a snapshot, and what is kept between pages is of now */
        request->executor = NULL;
        request->cache = NULL;
        if (!call->moment->take(call->moment->self, request, err))
            return false;
    }
    return query_run(plan, request, ret_page, err);
}
