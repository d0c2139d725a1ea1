#include "front/rest/sql/resolve_private.h"

#include "document/utf8.h"
#include "front/rest/sql/functions.h"

struct resolver {
    struct arena *arena;
    const struct sql_report *report;
    uint32_t slots; /* given out so far */
};

/* Where an expression stands. */
struct place {
    struct resolver *resolver;
    const struct sql_scope *scope;
    const char *clause; /* in which aggregates are out of place; NULL: they are welcome */
    const struct sql_expr *aggregate; /* whose argument it is part of, or NULL */
    bool ranks;                       /* behind RANK, where scores are */
};

static bool resolve_query(struct resolver *resolver, struct sql_query *query,
                          const struct sql_scope *outer, bool from_container);
static bool resolve_expr(struct sql_expr *expr, void *context);

/* --- Names -------------------------------------------------------------------------------------
 */

static const struct sql_source *source_find(const struct sql_scope *scope, struct slice name)
{
    for (uint32_t i = scope->visible; i > 0; i--)
        if (slice_equal(scope->query->sources[i - 1]->alias, name))
            return scope->query->sources[i - 1];
    return NULL;
}

/* The source of that name; every query between here and there depends on the ones around it. */
static const struct sql_source *scope_find(const struct sql_scope *scope, struct slice name)
{
    const struct sql_source *found = NULL;
    const struct sql_scope *at = scope;

    while (at && !(found = source_find(at, name)))
        at = at->outer;
    for (const struct sql_scope *inner = scope; found && inner != at; inner = inner->outer)
        inner->query->correlated = true;
    return found;
}

static bool name_fault(const struct sql_expr *expr, const struct sql_report *report)
{
    return sql_report_at(report, "SC2001", expr->span, "Identifier '%.*s' could not be resolved.",
                         SLICE_ARG(sql_excerpt(expr->name.name)));
}

static bool resolve_path(struct resolver *resolver, struct sql_source *source,
                         const struct sql_scope *scope, bool from_container)
{
    struct sql_expr *start = sql_expr_start(source->path);

    if (start->kind == SQL_EXPR_PARAMETER)
        return true;
    if (!from_container)
        start->name.source = scope_find(scope, start->name.name);
    source->root = from_container ||
                   (!start->name.source && slice_equal_nocase(start->name.name, SLICE("ROOT")));
    return source->root || start->name.source || name_fault(start, resolver->report);
}

static bool resolve_sources(struct resolver *resolver, struct sql_query *query,
                            const struct sql_scope *outer, bool from_container)
{
    for (uint32_t i = 0; i < query->source_count; i++) {
        struct sql_source *source = query->sources[i];
        struct sql_scope scope = {outer, query, i};
        bool first = from_container && i == 0;

        source->slot = resolver->slots++;
        if (source->reference.data && first)
            return sql_report_at(resolver->report, "", source->span,
                                 "REFERENCE can only be joined: FROM names the container of the "
                                 "query first.");
        if (source->path && !resolve_path(resolver, source, &scope, first))
            return false;
        if (source->subquery && !resolve_query(resolver, source->subquery, &scope, first))
            return false;
        if (source->alias.len && source_find(&scope, source->alias))
            return sql_report_at(resolver->report, "", source->span,
                                 "The alias '%.*s' is used by two sources of FROM.",
                                 SLICE_ARG(sql_excerpt(source->alias)));
    }
    return true;
}

/* --- Expressions -------------------------------------------------------------------------------
 */

static bool check_arguments(const struct sql_function *function, const struct sql_expr *expr,
                            const struct sql_report *report)
{
    uint32_t count = expr->call.arguments.count;
    uint32_t min = function->arguments_min, max = function->arguments_max;

    if (count >= min && count <= max && !(function->id == SQL_FUNCTION_NOW && count == 1))
        return true;
    if (max == SQL_ARGUMENTS_ANY)
        return sql_report_at(report, "SC2050", expr->span,
                             "The %s function requires at least %u argument(s).", function->name,
                             min);
    if (min == max)
        return sql_report_at(report, "SC2050", expr->span,
                             "The %s function requires %u argument(s).", function->name, min);
    return sql_report_at(report, "SC2050", expr->span,
                         "The %s function requires %u to %u argument(s).", function->name, min,
                         max);
}

static bool nested_aggregate_fault(const struct place *place)
{
    return sql_report_at(place->resolver->report, "SC2101", place->aggregate->span,
                         "Cannot perform an aggregate function on an expression containing an "
                         "aggregate or a subquery.");
}

/* Of a call, the name alone. Names are words, which need no escapes: what is decoded is the text.
 */
static struct sql_span name_span(const struct sql_expr *call)
{
    struct sql_span span = {call->span.start, call->span.start};

    for (size_t i = 0; i < call->call.name.len; i++)
        span.end += utf8_continues(call->call.name.data[i]) ? 0
                    : call->call.name.data[i] >= 0xF0       ? 2
                                                            : 1;
    return span;
}

static bool resolve_call(struct sql_expr *expr, const struct place *place)
{
    const struct sql_report *report = place->resolver->report;
    const struct sql_function *function = sql_function_find(expr->call.name);
    struct place inside = *place;

    if (!function)
        return sql_report_at(report, "SC2005", name_span(expr),
                             "'%.*s' is not a recognized built-in function name.",
                             SLICE_ARG(sql_excerpt(expr->call.name)));
    if (!check_arguments(function, expr, report))
        return false;
    if (function->kind == SQL_FUNCTION_KIND_REFUSED)
        return sql_report_unsupported(report, expr->span, "The function %s is not supported.",
                                      function->name);
    if (function->kind == SQL_FUNCTION_KIND_SCORE && !place->ranks)
        return sql_report_at(report, "", expr->span,
                             "The %s function can only be used in an ORDER BY RANK clause.",
                             function->name);
    expr->call.function = function;
    inside.ranks = place->ranks && function->id == SQL_FUNCTION_RRF;
    if (function->kind == SQL_FUNCTION_KIND_AGGREGATE) {
        if (place->aggregate)
            return nested_aggregate_fault(place);
        if (place->clause)
            return sql_report_at(report, "", expr->span,
                                 "The aggregate function %s is not allowed in %s.", function->name,
                                 place->clause);
        place->scope->query->aggregates = true;
        inside.aggregate = expr;
    }
    return sql_expr_each(expr, resolve_expr, &inside);
}

static bool resolve_object(struct sql_expr *expr, struct place *place)
{
    struct arena *arena = place->resolver->arena;
    struct sql_named *names = ARENA_ARRAY(arena, struct sql_named, expr->object.count + 1);

    for (uint32_t i = 0; i < expr->object.count; i++)
        names[i] =
            (struct sql_named){expr->object.properties[i].name, expr->object.properties[i].span};
    return sql_check_unique(names, expr->object.count, "property", place->resolver->report) &&
           sql_expr_each(expr, resolve_expr, place);
}

static bool check_escape(const struct sql_expr *like, const struct sql_report *report)
{
    struct slice mark = like->like.escape ? like->like.escape->literal.text : SLICE("!");

    if (mark.len && utf8_length(mark.data, mark.data + mark.len) == mark.len)
        return true;
    return sql_report_at(report, "", like->like.escape->span,
                         "The ESCAPE of a LIKE must be a single character.");
}

static bool resolve_expr(struct sql_expr *expr, void *context)
{
    struct place *place = context;

    switch (expr->kind) {
    case SQL_EXPR_NAME:
        expr->name.source = scope_find(place->scope, expr->name.name);
        return expr->name.source || name_fault(expr, place->resolver->report);
    case SQL_EXPR_CALL:
        return resolve_call(expr, place);
    case SQL_EXPR_OBJECT:
        return resolve_object(expr, place);
    case SQL_EXPR_LIKE:
        return check_escape(expr, place->resolver->report) &&
               sql_expr_each(expr, resolve_expr, place);
    case SQL_EXPR_SUBQUERY:
        if (place->aggregate)
            return nested_aggregate_fault(place);
        return resolve_query(place->resolver, expr->subquery.query, place->scope, false);
    default:
        return sql_expr_each(expr, resolve_expr, place);
    }
}

/* --- Queries -----------------------------------------------------------------------------------
 */

static bool resolve_items(struct sql_query *query, struct place *place)
{
    for (uint32_t i = 0; i < query->item_count; i++)
        if (!resolve_expr(query->items[i].expr, place))
            return false;
    return true;
}

static bool resolve_group_by(struct sql_query *query, struct place *place)
{
    for (uint32_t i = 0; i < query->group_by.count; i++)
        if (!resolve_expr(query->group_by.items[i], place))
            return false;
    return true;
}

static bool resolve_order_by(struct sql_query *query, struct place *place)
{
    if (query->order_by_rank)
        for (uint32_t i = 0; i < query->order_count; i++)
            if (query->order_by[i].direction_given)
                return sql_report_whole(place->resolver->report, ERROR_BAD_QUERY,
                                        "Specifying a sort order (ASC or DESC) in the ORDER BY "
                                        "RANK clause is not allowed.");
    for (uint32_t i = 0; i < query->order_count; i++)
        if (!resolve_expr(query->order_by[i].expr, place))
            return false;
    return true;
}

/* from_container: the first source is the container, or a subquery of which that is true. */
static bool resolve_query(struct resolver *resolver, struct sql_query *query,
                          const struct sql_scope *outer, bool from_container)
{
    struct sql_scope scope = {outer, query, query->source_count};
    struct place where = {resolver, &scope, "the WHERE clause", NULL, false};
    struct place group = {resolver, &scope, "the GROUP BY clause", NULL, false};
    struct place order = {resolver, &scope, query->group_by.count ? NULL : "the ORDER BY clause",
                          NULL, query->order_by_rank};
    struct place select = {.resolver = resolver, .scope = &scope};

    return resolve_sources(resolver, query, outer, from_container) &&
           (!query->where || resolve_expr(query->where, &where)) &&
           resolve_group_by(query, &group) && resolve_items(query, &select) &&
           resolve_order_by(query, &order) &&
           sql_check_select(query, resolver->arena, resolver->report) &&
           sql_check_grouping(query, resolver->report) &&
           sql_check_order(query, !outer, resolver->arena, resolver->report) &&
           sql_check_amounts(query, resolver->report);
}

bool sql_resolve(struct sql_query *query, struct arena *arena, struct sql_error *ret_error,
                 struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct resolver resolver = {arena, &report, 0};

    return resolve_query(&resolver, query, NULL, true);
}

/* --- Reading off -------------------------------------------------------------------------------
 */

bool sql_amount(const struct sql_expr *amount, uint32_t *ret_number)
{
    const struct document_value *value =
        amount->kind == SQL_EXPR_PARAMETER ? amount->parameter.value : &amount->literal;
    int64_t number;

    if (!value || !document_to_int64(value, &number) || number < 0 || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

bool sql_is_aggregate(const struct sql_expr *expr)
{
    return expr->kind == SQL_EXPR_CALL && expr->call.function &&
           expr->call.function->kind == SQL_FUNCTION_KIND_AGGREGATE;
}

static bool is_free_of_aggregates(struct sql_expr *expr, void *context)
{
    return !sql_is_aggregate(expr) && sql_expr_each(expr, is_free_of_aggregates, context);
}

bool sql_has_aggregate(const struct sql_expr *expr)
{
    return sql_is_aggregate(expr) || !sql_expr_each(expr, is_free_of_aggregates, NULL);
}
