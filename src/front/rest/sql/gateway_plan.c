#include "front/rest/sql/gateway_plan.h"

#include "document/json.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/key_ranges.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/ranking.h"
#include "front/rest/sql/resolve.h"
#include "front/rest/sql/vectors.h"
#include "partition/epk.h"

/* --- Features ----------------------------------------------------------------------------------
 */

static bool feature_listed(struct slice features, struct slice feature)
{
    struct slice one;

    while (slice_split(features, ',', &one, &features))
        if (slice_equal_nocase(slice_trim(one), feature))
            return true;
    return slice_equal_nocase(slice_trim(features), feature);
}

struct missing {
    struct slice features; /* what the client has */
    struct buf *names;     /* what it lacks */
};

static void need(const struct missing *missing, bool needed, const char *feature)
{
    if (!needed || feature_listed(missing->features, slice_of_text(feature)))
        return;
    if (missing->names->len)
        BUF_APPEND(missing->names, ", ");
    buf_append_text(missing->names, feature);
}

static unsigned aggregates_count(const struct sql_query *query)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < query->item_count; i++)
        count += sql_is_aggregate(query->items[i].expr);
    return count;
}

static bool calls(const struct sql_query *query, enum sql_function_id id)
{
    for (uint32_t i = 0; i < query->item_count; i++)
        if (sql_is_aggregate(query->items[i].expr) && query->items[i].expr->call.function->id == id)
            return true;
    return false;
}

static bool features_told(const struct buf *names, const struct sql_report *report)
{
    return !names->len ||
           sql_report_whole(report, ERROR_BAD_QUERY,
                            "Query contains the following features, which the calling client does "
                            "not support: %.*s",
                            SLICE_ARG(buf_slice(names)));
}

/* Partitions may give the rows of an order by vectors in any order: the client sorts them all. */
static bool is_non_streaming(const struct sql_gateway_plan *plan)
{
    return plan->orders && sql_orders_by_vector(plan->query);
}

static bool check_features(const struct sql_gateway_plan *plan, struct slice features,
                           const struct sql_report *report)
{
    CLEANUP(buf_done) struct buf names;
    const struct sql_query *query = plan->query;
    struct missing missing = {features, &names};

    buf_init(&names, BUF_DEFAULT_MAX);
    need(&missing, plan->aggregates, "Aggregate");
    need(&missing, plan->aggregates && !plan->groups && query->select == SQL_SELECT_LIST,
         "NonValueAggregate");
    need(&missing, plan->aggregates && aggregates_count(query) > 1, "MultipleAggregates");
    need(&missing, plan->aggregates && calls(query, SQL_FUNCTION_COUNTIF), "CountIf");
    need(&missing,
         plan->aggregates &&
             (calls(query, SQL_FUNCTION_MAKELIST) || calls(query, SQL_FUNCTION_MAKESET)),
         "ListAndSetAggregate");
    need(&missing, plan->distinct != SQL_DISTINCT_NONE, "Distinct");
    need(&missing, plan->counts_distinct, "DCount");
    need(&missing, plan->groups, "GroupBy");
    need(&missing, plan->orders, "OrderBy");
    need(&missing, plan->orders && query->order_count > 1, "MultipleOrderBy");
    need(&missing, is_non_streaming(plan), "NonStreamingOrderBy");
    need(&missing, plan->has_window, "OffsetAndLimit");
    need(&missing, plan->has_top, "Top");
    return features_told(&names, report);
}

/* --- queryInfo ---------------------------------------------------------------------------------
 */

static void json_amount(struct buf *json, const char *name, bool given, uint32_t number)
{
    if (given)
        buf_printf(json, ",\"%s\":%u", name, number);
    else
        buf_printf(json, ",\"%s\":null", name);
}

/* An expression as a JSON string of its text. */
static void json_expr(struct buf *json, const struct sql_expr *expr)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    sql_print_expr(expr, &text);
    document_json_write_string(buf_slice(&text), json);
}

static void json_comma(struct buf *json, uint32_t index)
{
    if (index > 0)
        buf_append_byte(json, ',');
}

static void json_order(struct buf *json, const struct sql_gateway_plan *plan)
{
    const struct sql_query *query = plan->query;

    BUF_APPEND(json, ",\"orderBy\":[");
    for (uint32_t i = 0; plan->orders && i < query->order_count; i++) {
        json_comma(json, i);
        buf_append_text(json, query->order_by[i].descending ? "\"Descending\"" : "\"Ascending\"");
    }
    BUF_APPEND(json, "],\"orderByExpressions\":[");
    for (uint32_t i = 0; plan->orders && i < query->order_count; i++) {
        json_comma(json, i);
        json_expr(json, query->order_by[i].expr);
    }
    buf_append_byte(json, ']');
}

static void json_aggregate(struct buf *json, const struct sql_expr *expr)
{
    const char *name = sql_gateway_aggregate(expr);

    if (name)
        buf_printf(json, "\"%s\"", name);
    else
        BUF_APPEND(json, "null");
}

/* Columns are told by name, a SELECT VALUE by its one aggregate. */
static void json_groups(struct buf *json, const struct sql_gateway_plan *plan)
{
    const struct sql_query *query = plan->query;
    bool named = (plan->groups || plan->aggregates) && query->select == SQL_SELECT_LIST;

    BUF_APPEND(json, ",\"groupByExpressions\":[");
    for (uint32_t i = 0; plan->groups && i < query->group_by.count; i++) {
        json_comma(json, i);
        json_expr(json, query->group_by.items[i]);
    }
    BUF_APPEND(json, "],\"groupByAliases\":[");
    for (uint32_t i = 0; named && i < query->item_count; i++) {
        json_comma(json, i);
        document_json_write_string(query->items[i].column, json);
    }
    BUF_APPEND(json, "],\"aggregates\":[");
    if (plan->aggregates && query->select == SQL_SELECT_VALUE)
        json_aggregate(json, query->items[0].expr);
    BUF_APPEND(json, "],\"groupByAliasToAggregateType\":{");
    for (uint32_t i = 0; named && i < query->item_count; i++) {
        json_comma(json, i);
        document_json_write_string(query->items[i].column, json);
        buf_append_byte(json, ':');
        json_aggregate(json, query->items[i].expr);
    }
    buf_append_byte(json, '}');
}

static void json_info(struct buf *json, const struct sql_gateway_plan *plan)
{
    static const char *const distinct[] = {"None", "Ordered", "Unordered"};

    buf_printf(json, "\"queryInfo\":{\"distinctType\":\"%s\"", distinct[plan->distinct]);
    json_amount(json, "top", plan->has_top, plan->top);
    json_amount(json, "offset", plan->has_window, plan->offset);
    json_amount(json, "limit", plan->has_window, plan->limit);
    json_order(json, plan);
    json_groups(json, plan);
    BUF_APPEND(json, ",\"rewrittenQuery\":");
    document_json_write_string(plan->rewritten, json);
    buf_printf(json, ",\"hasSelectValue\":%s",
               plan->query->select == SQL_SELECT_VALUE ? "true" : "false");
    BUF_APPEND(json, ",\"dCountInfo\":");
    if (plan->counts_distinct) {
        BUF_APPEND(json, "{\"dCountAlias\":");
        document_json_write_string(plan->distinct_alias, json);
        buf_append_byte(json, '}');
    } else {
        BUF_APPEND(json, "null");
    }
    buf_printf(json, ",\"hasNonStreamingOrderBy\":%s}", is_non_streaming(plan) ? "true" : "false");
}

/* --- queryRanges -------------------------------------------------------------------------------
 */

static void json_range(struct buf *json, const struct query_key_range *range)
{
    BUF_APPEND(json, "{\"min\":\"");
    partition_epk_hex(range->min, json);
    BUF_APPEND(json, "\",\"max\":\"");
    partition_epk_hex(range->max, json);
    buf_printf(json, "\",\"isMinInclusive\":true,\"isMaxInclusive\":%s}",
               range->point ? "true" : "false");
}

/* Clients want one range at least; where nothing can match it is an empty one. */
static void json_ranges(struct buf *json, const struct query_key_range *ranges, size_t count)
{
    static const struct query_key_range nothing = {.point = false};

    BUF_APPEND(json, "\"queryRanges\":[");
    if (!count)
        json_range(json, &nothing);
    for (size_t i = 0; i < count; i++) {
        json_comma(json, (uint32_t)i);
        json_range(json, &ranges[i]);
    }
    buf_append_byte(json, ']');
}

/* --- hybridSearchQueryInfo ----------------------------------------------------------------------
 */

static bool check_ranking_features(const struct sql_ranking *ranking, struct slice features,
                                   const struct sql_report *report)
{
    CLEANUP(buf_done) struct buf names;
    struct missing missing = {features, &names};

    buf_init(&names, BUF_DEFAULT_MAX);
    need(&missing, true, "HybridSearch");
    need(&missing, ranking->weighted, "WeightedRankFusion");
    need(&missing, true, "NonStreamingOrderBy");
    return features_told(&names, report);
}

static void json_text(struct buf *json, const struct buf *text)
{
    document_json_write_string(buf_slice(text), json);
}

/* The queryInfo of one. */
static void json_component(struct buf *json, const struct sql_ranking *ranking, size_t component,
                           bool payload)
{
    CLEANUP(buf_done) struct buf order;
    CLEANUP(buf_done) struct buf text;

    buf_init(&order, BUF_DEFAULT_MAX);
    buf_init(&text, BUF_DEFAULT_MAX);
    sql_ranking_order(ranking, component, NULL, &order);
    sql_ranking_component(ranking,
                          &(struct sql_ranking_asked){.component = component,
                                                      .rows = sql_ranking_rows(ranking),
                                                      .bare = !payload},
                          &text);
    buf_printf(json,
               "{\"distinctType\":\"None\",\"top\":%u,\"offset\":null,\"limit\":null,"
               "\"orderBy\":[\"%s\"],\"orderByExpressions\":[",
               sql_ranking_rows(ranking),
               ranking->scores[component].ascending ? "Ascending" : "Descending");
    json_text(json, &order);
    BUF_APPEND(json, "],\"groupByExpressions\":[],\"groupByAliases\":[],\"aggregates\":[],"
                     "\"groupByAliasToAggregateType\":{},\"rewrittenQuery\":");
    json_text(json, &text);
    BUF_APPEND(json, ",\"hasSelectValue\":false,\"dCountInfo\":null,"
                     "\"hasNonStreamingOrderBy\":true}");
}

static void json_ranking(struct buf *json, const struct sql_ranking *ranking)
{
    CLEANUP(buf_done) struct buf statistics;

    buf_init(&statistics, BUF_DEFAULT_MAX);
    if (ranking->texts)
        sql_ranking_statistics(ranking, &statistics);
    BUF_APPEND(json, "\"hybridSearchQueryInfo\":{\"globalStatisticsQuery\":");
    json_text(json, &statistics);
    for (int payload = 1; payload >= 0; payload--) {
        buf_append_text(json, payload ? ",\"componentQueryInfos\":["
                                      : "],\"componentWithoutPayloadQueryInfos\":[");
        for (size_t i = 0; i < ranking->count; i++) {
            json_comma(json, (uint32_t)i);
            json_component(json, ranking, i, payload);
        }
    }
    BUF_APPEND(json, "],\"projectionQueryInfo\":null,\"componentWeights\":[");
    for (size_t i = 0; ranking->weighted && i < ranking->count; i++) {
        struct document_value weight = document_double(ranking->scores[i].weight);

        json_comma(json, (uint32_t)i);
        document_json_write_value(&weight, json);
    }
    buf_printf(json, "],\"skip\":%u,\"take\":%u,\"requiresGlobalStatistics\":%s}", ranking->skip,
               ranking->take, ranking->texts ? "true" : "false");
}

static bool ranking_plan(const struct sql_query *query, const struct query_key_range *ranges,
                         size_t count, struct slice features, struct buf *json,
                         const struct sql_report *report)
{
    struct sql_ranking ranking;

    if (!sql_ranking_read(query, &ranking, report) ||
        !check_ranking_features(&ranking, features, report))
        return false;
    BUF_APPEND(json, "{\"partitionedQueryExecutionInfoVersion\":2,");
    json_ranking(json, &ranking);
    buf_append_byte(json, ',');
    json_ranges(json, ranges, count);
    buf_append_byte(json, '}');
    return true;
}

bool sql_gateway_plan(const struct sql_query *query, const struct sql_gateway_place *place,
                      struct slice features, struct arena *arena, struct buf *json,
                      struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    const struct query_key_range *ranges;
    struct sql_gateway_plan plan;
    size_t count;

    sql_key_ranges(query, place->definition, arena, &ranges, &count);
    if (place->map)
        ranges = query_key_ranges_widen(ranges, count, place->map, arena);
    if (query->order_by_rank)
        return ranking_plan(query, ranges, count, features, json, &report);
    if (!sql_gateway_rewrite(query, count == 1 && ranges[0].point, arena, &plan, &report) ||
        !check_features(&plan, features, &report))
        return false;
    BUF_APPEND(json, "{\"partitionedQueryExecutionInfoVersion\":2,");
    json_info(json, &plan);
    buf_append_byte(json, ',');
    json_ranges(json, ranges, count);
    buf_append_byte(json, '}');
    return true;
}
