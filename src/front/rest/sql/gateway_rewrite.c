/* The query each partition runs, with as much done there as can be: ORDER BY, TOP and partial
 * aggregates. A rewritten query is a shallow copy of the tree with other select items, printed.
 *
 * Rows of the rewritten queries:
 *
 *   ORDER BY            {"_rid", "orderByItems": [{"item": key}, ...], "payload": the row}
 *   VALUE aggregate     [{"item": partial}]
 *   several aggregates  {"payload": {column: {"item": partial}, ...}}
 *   GROUP BY            {"groupByItems": [{"item": key}, ...], "payload": as of the aggregates}
 *
 * partial is what can be added up: AVG becomes sum and count; MIN and MAX carry, as "item2", the
 * count of what they were taken from, because nothing and undefined differ. */
#include "front/rest/sql/gateway_plan.h"

#include "front/rest/sql/functions.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/resolve.h"

struct rewrite {
    struct arena *arena;
    const struct sql_report *report;
    struct sql_gateway_plan *plan;
    struct sql_query query; /* the copy */
    bool changed;
};

const char *sql_gateway_aggregate(const struct sql_expr *expr)
{
    if (!sql_is_aggregate(expr))
        return NULL;
    switch (expr->call.function->id) {
    case SQL_FUNCTION_AVG:
        return "Average";
    case SQL_FUNCTION_COUNT:
        return "Count";
    case SQL_FUNCTION_COUNTIF:
        return "CountIf";
    case SQL_FUNCTION_MAX:
        return "Max";
    case SQL_FUNCTION_MIN:
        return "Min";
    case SQL_FUNCTION_SUM:
        return "Sum";
    case SQL_FUNCTION_MAKELIST:
        return "MakeList";
    case SQL_FUNCTION_MAKESET:
        return "MakeSet";
    default:
        return NULL;
    }
}

/* --- Pieces ------------------------------------------------------------------------------------
 */

/* {"item": expr} */
static struct sql_expr *item_of(struct arena *arena, struct sql_expr *expr)
{
    struct sql_expr *object = sql_expr_object(arena);

    sql_expr_object_add(arena, object, SLICE("item"), expr);
    return object;
}

/* {name: AGGREGATE(argument), "count": COUNT(argument)} */
static struct sql_expr *with_count(struct arena *arena, const char *name, enum sql_function_id id,
                                   struct sql_expr *argument)
{
    struct sql_expr *object = sql_expr_object(arena);

    sql_expr_object_add(arena, object, slice_of_text(name),
                        sql_expr_call(arena, sql_function(id), argument));
    sql_expr_object_add(arena, object, SLICE("count"),
                        sql_expr_call(arena, sql_function(SQL_FUNCTION_COUNT), argument));
    return object;
}

static struct sql_expr *partial_of(struct arena *arena, struct sql_expr *aggregate)
{
    struct sql_expr *argument = aggregate->call.arguments.items[0], *object;
    enum sql_function_id id = aggregate->call.function->id;

    if (id == SQL_FUNCTION_AVG)
        return item_of(arena, with_count(arena, "sum", SQL_FUNCTION_SUM, argument));
    object = item_of(arena, aggregate);
    if (id == SQL_FUNCTION_MIN)
        sql_expr_object_add(arena, object, SLICE("item2"), with_count(arena, "min", id, argument));
    if (id == SQL_FUNCTION_MAX)
        sql_expr_object_add(arena, object, SLICE("item2"), with_count(arena, "max", id, argument));
    return object;
}

static void select_clear(struct rewrite *rewrite, enum sql_select_kind kind)
{
    enum { ITEMS_MAX = 3 };

    rewrite->changed = true;
    rewrite->query.select = kind;
    rewrite->query.items = ARENA_ARRAY(rewrite->arena, struct sql_select_item, ITEMS_MAX);
    rewrite->query.item_count = 0;
}

static void select_add(struct rewrite *rewrite, struct sql_expr *expr, struct slice alias)
{
    rewrite->query.items[rewrite->query.item_count++] =
        (struct sql_select_item){.expr = expr, .alias = alias};
}

static bool composition_fault(const struct rewrite *rewrite)
{
    return sql_report_whole(rewrite->report, ERROR_BAD_QUERY,
                            "Compositions of aggregates and other expressions are not allowed.");
}

/* --- ORDER BY ----------------------------------------------------------------------------------
 */

/* Rows as they were: the item, the value, or an object of the columns. */
static struct sql_expr *payload_of(const struct rewrite *rewrite)
{
    const struct sql_query *query = rewrite->plan->query;
    struct sql_expr *object;

    if (query->select == SQL_SELECT_STAR)
        return sql_expr_name(rewrite->arena, query->sources[0]);
    if (query->select == SQL_SELECT_VALUE)
        return query->items[0].expr;
    object = sql_expr_object(rewrite->arena);
    for (uint32_t i = 0; i < query->item_count; i++)
        sql_expr_object_add(rewrite->arena, object, query->items[i].column, query->items[i].expr);
    return object;
}

static struct sql_expr *order_items_of(const struct rewrite *rewrite)
{
    const struct sql_query *query = rewrite->plan->query;
    struct sql_expr *array = sql_expr_new(rewrite->arena, SQL_EXPR_ARRAY, query->span);

    for (uint32_t i = 0; i < query->order_count; i++)
        sql_exprs_add(rewrite->arena, &array->items,
                      item_of(rewrite->arena, query->order_by[i].expr));
    sql_expr_settle(array);
    return array;
}

/* ((filter) AND (placeholder)), and for SELECT VALUE only rows that have a value. */
static struct sql_expr *order_filter_of(const struct rewrite *rewrite)
{
    static const struct sql_source placeholder = {
        .alias = {(const uint8_t *)"(" SQL_ORDER_FILTER ")", sizeof "(" SQL_ORDER_FILTER ")" - 1}};
    const struct sql_query *query = rewrite->plan->query;
    struct sql_expr *filter =
        sql_expr_and(rewrite->arena, query->where, sql_expr_name(rewrite->arena, &placeholder));

    if (query->select == SQL_SELECT_VALUE)
        filter = sql_expr_and(rewrite->arena, filter,
                              sql_expr_call(rewrite->arena, sql_function(SQL_FUNCTION_IS_DEFINED),
                                            query->items[0].expr));
    return filter;
}

/* The _rid of an item can be named only through a source that is the whole of it. */
static bool rewrite_order(struct rewrite *rewrite)
{
    const struct sql_query *query = rewrite->plan->query;
    const struct sql_source *root = query->sources[0];
    struct sql_expr *payload = payload_of(rewrite);

    if (!root->root || root->iterates || root->path->kind != SQL_EXPR_NAME)
        return sql_report_unsupported(rewrite->report, root->span,
                                      "ORDER BY across partitions is not supported when FROM "
                                      "names a part of the item.");
    rewrite->plan->orders = true;
    rewrite->query.where = order_filter_of(rewrite);
    rewrite->query.distinct = false; /* the client drops duplicates as it merges */
    select_clear(rewrite, SQL_SELECT_LIST);
    select_add(rewrite,
               sql_expr_member(rewrite->arena, sql_expr_name(rewrite->arena, root), SLICE("_rid")),
               SLICE_NONE);
    select_add(rewrite, order_items_of(rewrite), SLICE("orderByItems"));
    select_add(rewrite, payload, SLICE("payload"));
    return true;
}

/* --- Aggregates and GROUP BY --------------------------------------------------------------------
 */

/* A column: a partial aggregate, or an expression without any. */
static bool column_of(const struct rewrite *rewrite, struct sql_expr *expr,
                      struct sql_expr **ret_column)
{
    if (sql_is_aggregate(expr))
        *ret_column = partial_of(rewrite->arena, expr);
    else if (sql_has_aggregate(expr))
        return composition_fault(rewrite);
    else
        *ret_column = expr;
    return true;
}

static bool aggregate_payload_of(const struct rewrite *rewrite, struct sql_expr **ret_payload)
{
    const struct sql_query *query = rewrite->plan->query;
    struct sql_expr *object, *column;

    if (query->select == SQL_SELECT_VALUE) {
        if (!column_of(rewrite, query->items[0].expr, ret_payload))
            return false;
        if (sql_is_aggregate(query->items[0].expr))
            *ret_payload = sql_expr_array_of(rewrite->arena, *ret_payload);
        return true;
    }
    object = sql_expr_object(rewrite->arena);
    for (uint32_t i = 0; i < query->item_count; i++) {
        if (!column_of(rewrite, query->items[i].expr, &column))
            return false;
        sql_expr_object_add(rewrite->arena, object, query->items[i].column, column);
    }
    *ret_payload = object;
    return true;
}

static struct sql_expr *group_items_of(const struct rewrite *rewrite)
{
    const struct sql_query *query = rewrite->plan->query;
    struct sql_expr *array = sql_expr_new(rewrite->arena, SQL_EXPR_ARRAY, query->span);

    for (uint32_t i = 0; i < query->group_by.count; i++)
        sql_exprs_add(rewrite->arena, &array->items,
                      item_of(rewrite->arena, query->group_by.items[i]));
    sql_expr_settle(array);
    return array;
}

static bool rewrite_aggregates(struct rewrite *rewrite)
{
    const struct sql_query *query = rewrite->plan->query;
    struct sql_expr *payload;

    if (!aggregate_payload_of(rewrite, &payload))
        return false;
    rewrite->plan->aggregates = query->aggregates;
    rewrite->plan->groups = query->group_by.count > 0;
    rewrite->query.distinct = false;
    if (query->select == SQL_SELECT_VALUE && !rewrite->plan->groups) {
        select_clear(rewrite, SQL_SELECT_VALUE);
        select_add(rewrite, payload, SLICE_NONE);
        return true;
    }
    select_clear(rewrite, SQL_SELECT_LIST);
    if (rewrite->plan->groups)
        select_add(rewrite, group_items_of(rewrite), SLICE("groupByItems"));
    select_add(rewrite, payload, SLICE("payload"));
    return true;
}

/* --- DISTINCT ----------------------------------------------------------------------------------
 */

static bool is_ordered_by(const struct sql_query *query, const struct sql_expr *expr)
{
    for (uint32_t i = 0; i < query->order_count; i++)
        if (sql_expr_equal(query->order_by[i].expr, expr))
            return true;
    return false;
}

/* Equal rows follow each other when the rows are ordered by all that is in them and nothing else.
 */
static enum sql_distinct distinct_of(const struct sql_query *query)
{
    if (!query->distinct)
        return SQL_DISTINCT_NONE;
    if (!query->order_count || query->select == SQL_SELECT_STAR ||
        query->order_count != query->item_count)
        return SQL_DISTINCT_UNORDERED;
    for (uint32_t i = 0; i < query->item_count; i++)
        if (!is_ordered_by(query, query->items[i].expr))
            return SQL_DISTINCT_UNORDERED;
    return SQL_DISTINCT_ORDERED;
}

/* Does the query see more than one row of its sources at a time? */
static bool is_plain(const struct sql_query *query)
{
    return !query->distinct && !query->aggregates && !query->group_by.count &&
           !query->order_count && !query->top && !query->offset;
}

static bool is_plain_down(const struct sql_query *query)
{
    return is_plain(query) && (!query->source_count || !query->sources[0]->subquery ||
                               is_plain_down(query->sources[0]->subquery));
}

static bool counts_all(const struct sql_expr *expr)
{
    return sql_is_aggregate(expr) && expr->call.function->id == SQL_FUNCTION_COUNT &&
           expr->call.arguments.items[0]->kind == SQL_EXPR_LITERAL &&
           expr->call.arguments.items[0]->literal.type != DOCUMENT_UNDEFINED;
}

/* SELECT COUNT(1) FROM (SELECT DISTINCT ...): partitions send the values, the client counts. */
static bool is_distinct_count(const struct sql_query *query)
{
    const struct sql_query *inner = query->source_count == 1 ? query->sources[0]->subquery : NULL;

    return inner && !query->sources[0]->iterates && inner->distinct && !inner->aggregates &&
           !inner->group_by.count && !inner->order_count && !inner->top && !inner->offset &&
           (!inner->sources[0]->subquery || is_plain_down(inner->sources[0]->subquery)) &&
           !query->where && !query->group_by.count && !query->order_count && !query->distinct &&
           !query->top && !query->offset && query->item_count == 1 &&
           counts_all(query->items[0].expr);
}

static void rewrite_distinct_count(struct rewrite *rewrite)
{
    const struct sql_query *query = rewrite->plan->query;

    rewrite->plan->distinct = SQL_DISTINCT_UNORDERED;
    rewrite->plan->counts_distinct = true;
    if (query->select == SQL_SELECT_LIST)
        rewrite->plan->distinct_alias = query->items[0].column;
    rewrite->query = *query->sources[0]->subquery;
    rewrite->changed = true;
}

/* --- Amounts -----------------------------------------------------------------------------------
 */

/* Are rows dropped or put together when the results of partitions meet? */
static bool merges_rows(const struct sql_query *query)
{
    return query->distinct || query->aggregates || query->group_by.count;
}

/* Which rows survive is known only after the merge where rows are merged. */
static void rewrite_amounts(struct rewrite *rewrite, bool pinned)
{
    const struct sql_query *query = rewrite->plan->query;
    struct sql_gateway_plan *plan = rewrite->plan;
    bool merges = merges_rows(query);

    if (query->top && sql_amount(query->top, &plan->top)) {
        plan->has_top = true;
        if (merges) {
            rewrite->query.top = NULL;
            rewrite->changed = true;
        }
    }
    if (!query->offset || (pinned && !merges) || !sql_amount(query->offset, &plan->offset) ||
        !sql_amount(query->limit, &plan->limit))
        return;
    plan->has_window = true;
    rewrite->changed = true;
    rewrite->query.offset = rewrite->query.limit = NULL;
    if (merges)
        return;
    rewrite->query.offset = sql_expr_literal(rewrite->arena, document_int32(0));
    rewrite->query.limit = sql_expr_literal(
        rewrite->arena,
        document_int64(MIN((int64_t)plan->offset + plan->limit, (int64_t)UINT32_MAX)));
}

/* --- All ---------------------------------------------------------------------------------------
 */

static struct slice print(const struct sql_query *query, struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    sql_print(query, &text);
    return arena_copy(arena, buf_slice(&text));
}

/* One logical partition is in one place: it orders its rows by itself. */
static bool rewrite_rows(struct rewrite *rewrite, bool pinned)
{
    const struct sql_query *query = rewrite->plan->query;

    if (query->aggregates || query->group_by.count)
        return rewrite_aggregates(rewrite);
    if (!query->order_count || (pinned && !query->distinct))
        return true;
    return rewrite_order(rewrite);
}

bool sql_gateway_rewrite(const struct sql_query *query, bool pinned, struct arena *arena,
                         struct sql_gateway_plan *ret_plan, const struct sql_report *report)
{
    struct sql_gateway_plan plan = {.query = query, .distinct = distinct_of(query)};
    struct rewrite rewrite = {arena, report, &plan, *query, false};

    if (query->order_count && query->group_by.count)
        return sql_report_at(report, "", query->order_by[0].expr->span,
                             "'ORDER BY' is not supported in presence of GROUP BY by clients that "
                             "merge: send the query itself, without asking for its plan.");
    if (is_distinct_count(query)) {
        rewrite_distinct_count(&rewrite);
    } else {
        const struct sql_query *inner = query->source_count ? query->sources[0]->subquery : NULL;

        if (inner && !is_plain_down(inner))
            return sql_report_unsupported(report, query->sources[0]->span,
                                          "a subquery in FROM that looks at more than one item is "
                                          "not supported across partitions");
        if (!rewrite_rows(&rewrite, pinned))
            return false;
        rewrite_amounts(&rewrite, pinned);
    }
    if (rewrite.changed)
        plan.rewritten = print(&rewrite.query, arena);
    *ret_plan = plan;
    return true;
}
