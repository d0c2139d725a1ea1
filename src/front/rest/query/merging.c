/* What a library can merge is what it lists when it asks for a plan. It does not list it with the
 * query itself, so it is written down here, as the libraries have it. Whatever a library cannot
 * merge, GROUP BY in Python for one, it would refuse to its user when it saw the plan: that stays
 * with the server. */
#include "front/rest/query/merging.h"

#include "front/rest/sql/gateway_plan.h"
#include "front/rest/sql/key_ranges.h"
#include "front/rest/sql/vectors.h"
#include "throughput/cost.h"

#define BASIC "Aggregate,CompositeAggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top"
#define GROUPS ",NonValueAggregate,GroupBy,MultipleAggregates"

struct library {
    const char *product;  /* in a User-Agent, before its version */
    unsigned version_min; /* the first number of that */
    const char *features;
};

/* The first that fits counts. JavaScript lists CountIf too, but shows the count of one range: its
 * list of aggregates has no such operator. */
static const struct library libraries[] = {
    {"azure-cosmos-js/", 4, BASIC GROUPS ",ListAndSetAggregate,NonStreamingOrderBy"},
    {"azure-cosmos-js/", 0, BASIC GROUPS},
    {"azsdk-python-cosmos/", 0, BASIC ",CountIf,NonStreamingOrderBy"},
    {"azsdk-python-cosmos-async/", 0, BASIC ",CountIf,NonStreamingOrderBy"},
};

/* Of clients that nothing is known of, where all are to merge. */
static const char all_features[] =
    BASIC GROUPS ",CountIf,ListAndSetAggregate,DCount,NonStreamingOrderBy";

/* A User-Agent is products between blanks: "Node.js/18.20.4 (linux; x64) azure-cosmos-js/4.4.1". */
static bool is_library(struct slice agent, const struct library *library)
{
    struct slice product = slice_of_text(library->product), word, version, rest;
    uint64_t number;
    bool more;

    do {
        more = slice_split(agent, ' ', &word, &agent);
        if (!more)
            word = agent;
        if (!slice_starts_with(word, product))
            continue;
        version = slice_skip(word, product.len);
        (void)slice_split(version, '.', &version, &rest);
        return library->version_min == 0 ||
               (slice_to_uint64(version, &number) && number >= library->version_min);
    } while (more);
    return false;
}

/* What the client says it can merge, or its library is known to; data NULL: the server merges. */
static struct slice features_of(const struct rest_call *call)
{
    struct slice listed = rest_call_header(call, REST_HEADER_QUERY_FEATURES);
    struct slice agents[] = {rest_call_header(call, REST_HEADER_USER_AGENT),
                             rest_call_header(call, REST_HEADER_USER_AGENT_BROWSER)};
    enum rest_merge merge = call->options->queries.merge;

    if (merge == REST_MERGE_SERVER)
        return SLICE_NONE;
    for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
        for (size_t j = 0; j < ARRAY_LEN(agents); j++)
            if (is_library(agents[j], &libraries[i]))
                return listed.data ? listed : slice_of_text(libraries[i].features);
    if (merge == REST_MERGE_CLIENT)
        return listed.data ? listed : slice_of_text(all_features);
    return SLICE_NONE;
}

static bool is_narrowed(const struct rest_call *call)
{
    static const enum rest_header headers[] = {
        REST_HEADER_PARTITION_KEY, REST_HEADER_PARTITION_RANGE_ID, REST_HEADER_START_EPK,
        REST_HEADER_END_EPK, REST_HEADER_CONTINUATION};

    for (size_t i = 0; i < ARRAY_LEN(headers); i++)
        if (rest_call_header(call, headers[i]).len)
            return true;
    return false;
}

/* Is there anything to do beyond putting one range's rows behind the other's? */
static bool is_merged(const struct sql_query *query)
{
    if (query->order_by_rank || (query->order_count && query->group_by.count))
        return false; /* no library can, or it takes them more rounds: the server does, for all */
    return query->order_count || query->top || query->offset || query->distinct ||
           query->group_by.count || query->aggregates;
}

static bool spans_several(const struct rest_items *items, const struct sql_query *query,
                          struct arena *arena)
{
    const struct partition_map *map = items->space.map;
    const struct partition_span *first = NULL;
    const struct query_key_range *ranges;
    size_t count;

    (void)partition_map_spans(map, &count);
    if (count == 1)
        return false;
    sql_key_ranges(query, &items->space.definition->key, arena, &ranges, &count);
    ranges = query_key_ranges_widen(ranges, count, map, arena);
    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span = partition_map_find(map, ranges[i].min);

        if ((first && span != first) ||
            (!ranges[i].point && slice_compare(span->max, ranges[i].max) < 0))
            return true;
        first = span;
    }
    return false;
}

bool rest_merging_is_left(struct rest_call *call, const struct rest_items *items,
                          const struct sql_query *query, struct error *err)
{
    CLEANUP(buf_done) struct buf plan;
    struct slice features = features_of(call);
    struct sql_error fault = {0};
    struct error ignored;

    buf_init(&plan, BUF_DEFAULT_MAX);
    if (!features.data || is_narrowed(call) || !is_merged(query) ||
        !(sql_vectors_overflow(query) || spans_several(items, query, call->arena)) ||
        !sql_gateway_plan(
            query, &(struct sql_gateway_place){&items->space.definition->key, items->space.map},
            features, call->arena, &plan, &fault, &ignored))
        return false;
    call->charge_cru = cost_metadata(COST_METADATA_READ);
    call->error_info = arena_copy(call->arena, buf_slice(&plan));
    (void)error_set(err, ERROR_CROSS_PARTITION_QUERY,
                    "the query spans several partition key ranges and is merged by the client, by "
                    "the plan in additionalErrorInfo");
    return true;
}

/* --- Ranges that are gone --------------------------------------------------------------------- */

/* Of a library that would give rows twice it is enough to answer for what it has begun: a first
 * page that is refused makes it read the ranges again. */
static bool loss_upsets(const struct rest_call *call)
{
    static const struct library javascript = {.product = "azure-cosmos-js/"};
    static const struct library python = {.product = "azsdk-python-cosmos/"};
    static const struct library python_async = {.product = "azsdk-python-cosmos-async/"};
    struct slice agent = rest_call_header(call, REST_HEADER_USER_AGENT);

    if (is_library(agent, &javascript) ||
        is_library(rest_call_header(call, REST_HEADER_USER_AGENT_BROWSER), &javascript))
        return true;
    return rest_call_header(call, REST_HEADER_CONTINUATION).len &&
           (is_library(agent, &python) || is_library(agent, &python_async));
}

bool rest_merging_span_lives_on(const struct rest_call *call, const struct rest_items *items,
                                struct partition_range *ret_range, struct error *err)
{
    struct partition_range range = {0};
    uint64_t id;

    if (!loss_upsets(call))
        return false; /* err says what became of the range */
    if (rest_call_header(call, REST_HEADER_START_EPK).data ||
        rest_call_header(call, REST_HEADER_END_EPK).data ||
        !slice_to_uint64(rest_call_header(call, REST_HEADER_PARTITION_RANGE_ID), &id) ||
        id > UINT32_MAX || !partition_map_find_gone(items->space.map, (uint32_t)id, &range))
        return error_set(err, ERROR_RANGE_FORGOTTEN,
                         "the range is gone, by a re-key perhaps, and nobody knows what of it was "
                         "read: ask again from the beginning");
    *ret_range = range;
    return true;
}
