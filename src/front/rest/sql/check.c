/* What the grammar allows and the language does not. */
#include "front/rest/sql/resolve_private.h"

#include "front/rest/sql/functions.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/vectors.h"

#include <stdlib.h>

/* --- SELECT ------------------------------------------------------------------------------------
 */

static int named_compare(const void *a, const void *b)
{
    const struct sql_named *x = a, *y = b;
    int order = slice_compare(x->name, y->name);

    return order ? order : (x->span.start > y->span.start) - (x->span.start < y->span.start);
}

bool sql_check_unique(struct sql_named *names, size_t count, const char *what,
                      const struct sql_report *report)
{
    qsort(names, count, sizeof *names, named_compare);
    for (size_t i = 1; i < count; i++)
        if (slice_equal(names[i].name, names[i - 1].name))
            return sql_report_at(report, "", names[i].span,
                                 "The %s name '%.*s' is used more than once.", what,
                                 SLICE_ARG(sql_excerpt(names[i].name)));
    return true;
}

static bool check_star(const struct sql_query *query, const struct sql_report *report)
{
    if (!query->source_count)
        return sql_report_at(report, "SC2040", query->star,
                             "'SELECT *' is not valid if FROM clause is omitted.");
    if (query->group_by.count)
        return sql_report_at(report, "SC2041", query->star,
                             "'SELECT *' is not allowed with GROUP BY.");
    if (query->source_count > 1)
        return sql_report_at(report, "SC2040", query->star,
                             "'SELECT *' is only valid with a single input set.");
    return true;
}

/* The name an expression lends to its column; empty: none. */
static struct slice expr_column(const struct sql_expr *expr)
{
    if (expr->kind == SQL_EXPR_MEMBER)
        return expr->member.name;
    return expr->kind == SQL_EXPR_NAME ? expr->name.name : SLICE_NONE;
}

static bool name_columns(struct sql_query *query, struct arena *arena,
                         const struct sql_report *report)
{
    struct sql_named *names = ARENA_ARRAY(arena, struct sql_named, query->item_count + 1);
    unsigned unnamed = 0;

    for (uint32_t i = 0; i < query->item_count; i++) {
        struct sql_select_item *item = &query->items[i];

        item->column = item->alias.len ? item->alias : expr_column(item->expr);
        if (!item->column.data)
            item->column = arena_printf(arena, "$%u", ++unnamed);
        if (item->column.len && memchr(item->column.data, 0, item->column.len))
            return sql_report_at(report, "", item->span, "A column name holds a NUL character.");
        names[i] = (struct sql_named){item->column, item->span};
    }
    return sql_check_unique(names, query->item_count, "column", report);
}

bool sql_check_select(struct sql_query *query, struct arena *arena, const struct sql_report *report)
{
    switch (query->select) {
    case SQL_SELECT_STAR:
        return check_star(query, report);
    case SQL_SELECT_LIST:
        return name_columns(query, arena, report);
    default:
        return true;
    }
}

/* --- GROUP BY ----------------------------------------------------------------------------------
 */

struct grouping {
    const struct sql_query *query;
    const struct sql_report *report;
    const char *where;
    bool inside; /* a subquery of the select list: its aggregates are not ours */
};

static bool is_grouped(const struct sql_expr *expr, struct grouping *grouping);

static bool is_grouped_child(struct sql_expr *expr, void *context)
{
    return is_grouped(expr, context);
}

static bool is_group_expr(const struct sql_query *query, const struct sql_expr *expr)
{
    for (uint32_t i = 0; i < query->group_by.count; i++)
        if (sql_expr_equal(query->group_by.items[i], expr))
            return true;
    return false;
}

static bool is_own_name(const struct sql_query *query, const struct sql_expr *expr)
{
    if (expr->kind != SQL_EXPR_NAME)
        return false;
    for (uint32_t i = 0; i < query->source_count; i++)
        if (expr->name.source == query->sources[i])
            return true;
    return false;
}

static bool property_fault(const struct sql_expr *expr, const struct grouping *grouping)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    sql_print_expr(expr, &text);
    return sql_report_at(grouping->report, "SC2102", expr->span,
                         "Property reference '%.*s' is invalid in the %s because it is not "
                         "contained in either an aggregate function or the GROUP BY clause.",
                         SLICE_ARG(sql_excerpt(buf_slice(&text))), grouping->where);
}

/* c.a.b is well with GROUP BY c.a; otherwise the whole of it is named in the message. */
static bool is_path_grouped(const struct sql_expr *expr, struct grouping *grouping)
{
    const struct sql_expr *at = expr;

    while (at->kind == SQL_EXPR_MEMBER || at->kind == SQL_EXPR_INDEX) {
        if (is_group_expr(grouping->query, at))
            return true;
        if (at->kind == SQL_EXPR_INDEX && !is_grouped(at->index.index, grouping))
            return false;
        at = at->kind == SQL_EXPR_MEMBER ? at->member.object : at->index.object;
    }
    if (is_own_name(grouping->query, at) && !is_group_expr(grouping->query, at))
        return property_fault(expr, grouping);
    return is_grouped(at, grouping);
}

static bool is_query_grouped(const struct sql_query *query, struct grouping *grouping)
{
    for (uint32_t i = 0; i < query->source_count; i++)
        if (query->sources[i]->subquery && !is_query_grouped(query->sources[i]->subquery, grouping))
            return false;
    return sql_query_each(query, is_grouped_child, grouping);
}

static bool is_grouped(const struct sql_expr *expr, struct grouping *grouping)
{
    struct grouping inside = {grouping->query, grouping->report, grouping->where, true};

    if (is_group_expr(grouping->query, expr))
        return true;
    switch (expr->kind) {
    case SQL_EXPR_NAME:
        if (!is_own_name(grouping->query, expr))
            return true;
        return sql_report_at(grouping->report, "SC2104", expr->span,
                             "Identifier '%.*s' is invalid in the %s because it is not contained "
                             "in an aggregate function or the GROUP BY clause.",
                             SLICE_ARG(sql_excerpt(expr->name.name)), grouping->where);
    case SQL_EXPR_MEMBER:
    case SQL_EXPR_INDEX:
        return is_path_grouped(expr, grouping);
    case SQL_EXPR_CALL:
        if (!grouping->inside && sql_is_aggregate(expr))
            return true;
        return sql_expr_each(expr, is_grouped_child, grouping);
    case SQL_EXPR_SUBQUERY:
        return is_query_grouped(expr->subquery.query, &inside);
    default:
        return sql_expr_each(expr, is_grouped_child, grouping);
    }
}

bool sql_check_grouping(const struct sql_query *query, const struct sql_report *report)
{
    struct grouping grouping = {query, report, "select list", false};

    if (!query->aggregates && !query->group_by.count)
        return true;
    for (uint32_t i = 0; i < query->item_count; i++)
        if (!is_grouped(query->items[i].expr, &grouping))
            return false;
    return true;
}

/* --- ORDER BY ----------------------------------------------------------------------------------
 */

static bool path_fault(const struct sql_report *report)
{
    return sql_report_code(report, "2206",
                           "Unsupported ORDER BY clause. ORDER BY item expression could not be "
                           "mapped to a document path.");
}

/* In the outermost query rows are ordered by what an index can hold: one value of each item. */
static bool check_order_path(const struct sql_expr *expr, struct arena *arena,
                             const struct sql_report *report)
{
    struct document_path path;

    if (!sql_path(expr, arena, &path) || path.count == 0)
        return path_fault(report);
    for (size_t i = 0; i < path.count; i++)
        if (path.segments[i].kind == DOCUMENT_SEGMENT_ELEMENTS)
            return sql_report_at(report, "", expr->span,
                                 "Order-by over correlated collections is not supported.");
    return true;
}

/* In a subquery, by anything its sources have. */
static bool check_order_steps(struct sql_expr *expr, const struct sql_report *report)
{
    return sql_expr_start(expr)->kind == SQL_EXPR_NAME || path_fault(report);
}

static bool is_ranking(const struct sql_expr *expr)
{
    return expr->kind == SQL_EXPR_CALL &&
           (expr->call.function->kind == SQL_FUNCTION_KIND_SCORE || sql_is_vector_call(expr));
}

/* What a component of a ranking is ordered by. */
static bool is_text_score(const struct sql_query *query)
{
    return query->order_count == 1 && query->order_by[0].expr->kind == SQL_EXPR_CALL &&
           query->order_by[0].expr->call.function->id == SQL_FUNCTION_FULL_TEXT_SCORE_OF;
}

static bool has_vector_call(const struct sql_query *query)
{
    for (uint32_t i = 0; i < query->order_count; i++)
        if (sql_is_vector_call(query->order_by[i].expr))
            return true;
    return false;
}

/* How alike vectors are is an order of its own, which goes one way. */
static bool check_order_vector(const struct sql_query *query, const struct sql_report *report)
{
    if (query->order_count > 1)
        return sql_report_at(report, "", query->order_by[1].expr->span,
                             "An ORDER BY clause with the VectorDistance function must not have "
                             "other items.");
    return !query->order_by[0].direction_given ||
           sql_report_whole(report, ERROR_BAD_QUERY,
                            "Specifying a sort order (ASC or DESC) in the ORDER BY clause with "
                            "VectorDistance function is not supported.");
}

bool sql_check_order(const struct sql_query *query, bool outermost, struct arena *arena,
                     const struct sql_report *report)
{
    struct grouping groups = {query, report, "ORDER BY clause", false};

    if (query->order_by_rank && !is_ranking(query->order_by[0].expr))
        return sql_report_at(report, "", query->order_by[0].expr->span,
                             "The ORDER BY RANK clause requires a scoring function.");
    if (query->order_by_rank) /* ranking.h looks at the rest */
        return outermost || sql_report_unsupported(report, query->order_by[0].expr->span,
                                                   "ORDER BY RANK is not supported in a subquery.");
    if (outermost && !query->group_by.count && query->order_count && has_vector_call(query))
        return check_order_vector(query, report);
    if (outermost && !query->group_by.count && is_text_score(query))
        return true;
    for (uint32_t i = 0; i < query->order_count; i++) {
        struct sql_expr *expr = query->order_by[i].expr;

        if (query->group_by.count) { /* groups, by anything they have */
            if (!is_grouped(expr, &groups))
                return false;
        } else if (!(outermost ? check_order_path(expr, arena, report)
                               : check_order_steps(expr, report)))
            return false;
    }
    return true;
}

/* --- TOP, OFFSET, LIMIT -------------------------------------------------------------------------
 */

/* code: of a number that is too large; for TOP it is the same fault as not being whole. */
static bool check_amount(const struct sql_expr *amount, const char *clause, const char *code,
                         const struct sql_report *report)
{
    const struct document_value *value;
    int64_t number;

    if (!amount || (amount->kind == SQL_EXPR_PARAMETER && !amount->parameter.value))
        return true;
    value = amount->kind == SQL_EXPR_PARAMETER ? amount->parameter.value : &amount->literal;
    if (!document_to_int64(value, &number) || number < 0 || (number > UINT32_MAX && !code[0]))
        return sql_report_at(report, "SC2060", amount->span,
                             "The count value provided for a %s clause must be an integer.",
                             clause);
    if (number > UINT32_MAX)
        return sql_report_at(report, code, amount->span,
                             "The %s count value exceeds the maximum allowed value.", clause);
    return true;
}

bool sql_check_amounts(const struct sql_query *query, const struct sql_report *report)
{
    if (query->top && query->offset)
        return sql_report_at(report, "", query->offset->span,
                             "TOP and OFFSET LIMIT cannot be used together.");
    return check_amount(query->top, "TOP", "", report) &&
           check_amount(query->limit, "LIMIT", "SC2061", report) &&
           check_amount(query->offset, "OFFSET", "SC2062", report);
}

/* --- Computed properties -----------------------------------------------------------------------
 */

static bool computed_fault(const struct sql_report *report, struct sql_span span, const char *what)
{
    return sql_report_at(report, "", span, "The query of a computed property must not have %s.",
                         what);
}

static bool check_computed_expr(struct sql_expr *expr, void *context)
{
    const struct sql_report *report = context;

    switch (expr->kind) {
    case SQL_EXPR_SUBQUERY:
        return computed_fault(report, expr->span, "a subquery");
    case SQL_EXPR_UDF:
        return computed_fault(report, expr->span, "calls of user-defined functions");
    case SQL_EXPR_PARAMETER:
        return computed_fault(report, expr->span, "parameters");
    case SQL_EXPR_CALL:
        if (sql_is_aggregate(expr))
            return computed_fault(report, expr->span, "aggregate functions");
        if (!expr->call.function->stable)
            return computed_fault(report, expr->span, "functions that are not deterministic");
        break;
    default:
        break;
    }
    return sql_expr_each(expr, check_computed_expr, context);
}

bool sql_resolve_computed(const struct sql_query *query, struct arena *arena,
                          struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    const struct sql_source *source = query->source_count ? query->sources[0] : NULL;

    if (query->select != SQL_SELECT_VALUE)
        return sql_report_at(&report, "", query->span,
                             "The query of a computed property must be a SELECT VALUE.");
    if (!source || query->source_count != 1 || !source->root || source->iterates ||
        source->path->kind != SQL_EXPR_NAME)
        return sql_report_at(&report, "", query->span,
                             "The query of a computed property must have a FROM clause that names "
                             "the container alone.");
    if (query->where)
        return computed_fault(&report, query->where->span, "a WHERE clause");
    if (query->group_by.count)
        return computed_fault(&report, query->span, "a GROUP BY clause");
    if (query->order_count)
        return computed_fault(&report, query->span, "an ORDER BY clause");
    if (query->top || query->distinct || query->offset)
        return computed_fault(&report, query->span, "TOP, DISTINCT or OFFSET LIMIT");
    return check_computed_expr(query->items[0].expr, &report);
}
