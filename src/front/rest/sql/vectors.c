#include "front/rest/sql/vectors.h"

#include "document/bson.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/resolve.h"

bool sql_is_vector_call(const struct sql_expr *expr)
{
    return expr->kind == SQL_EXPR_CALL && expr->call.function &&
           expr->call.function->id == SQL_FUNCTION_VECTOR_DISTANCE;
}

bool sql_orders_by_vector(const struct sql_query *query)
{
    return query->order_count == 1 && !query->group_by.count &&
           sql_is_vector_call(query->order_by[0].expr);
}

/* --- The policy ------------------------------------------------------------------------------ */

static bool text_find(struct slice object, struct slice name, struct slice *ret_text)
{
    struct document_value value;

    if (!document_find(object, name, &value) || value.type != DOCUMENT_STRING)
        return false;
    *ret_text = value.text;
    return true;
}

/* What the policy says of vectors at the path that an argument names. It was checked when the
 * container was made: what it does not tell is left as it is. */
static bool policy_read(struct slice policy, const struct sql_expr *argument, struct arena *arena,
                        struct search_vectors *vectors)
{
    struct document_value value;
    struct slice row, text;
    int64_t dimensions;

    if (!policy.data || !sql_policy_row(policy, SLICE("vectorEmbeddings"), argument, arena, &row))
        return false;
    if (text_find(row, SLICE("dataType"), &text))
        (void)search_vector_type_find(text, &vectors->type);
    if (text_find(row, SLICE("distanceFunction"), &text))
        (void)search_metric_find(text, &vectors->metric);
    if (document_find(row, SLICE("dimensions"), &value) && document_to_int64(&value, &dimensions) &&
        dimensions > 0 && dimensions <= SEARCH_DIMENSIONS_MAX)
        vectors->dimensions = (uint32_t)dimensions;
    return true;
}

/* --- Options --------------------------------------------------------------------------------- */

/* The value of a literal or parameter; NULL: it is another expression. */
static const struct document_value *constant_of(const struct sql_expr *expr)
{
    static const struct document_value unknown = {.type = DOCUMENT_UNDEFINED};

    if (expr->kind == SQL_EXPR_PARAMETER)
        return expr->parameter.value ? expr->parameter.value : &unknown;
    return expr->kind == SQL_EXPR_LITERAL ? &expr->literal : NULL;
}

static bool option_fault(const struct sql_expr *call, const struct sql_report *report,
                         struct slice name, const char *wanted)
{
    return sql_report_at(report, "", call->span,
                         "The option '%.*s' of the VectorDistance function must be %s.",
                         SLICE_ARG(sql_excerpt(name)), wanted);
}

static bool number_within(const struct document_value *value, double min, double max, bool whole)
{
    double number;

    return document_to_double(value, &number) && number >= min && number <= max &&
           (!whole || number == (double)(int64_t)number);
}

static bool option_read(const struct sql_expr *call, struct slice name,
                        const struct document_value *value, struct sql_vector_call *to,
                        const struct sql_report *report)
{
    bool text = value->type == DOCUMENT_STRING;
    bool list = slice_equal(name, SLICE("searchListSizeMultiplier"));
    int64_t number;
    double priority;

    if (slice_equal(name, SLICE("distanceFunction")))
        return (text && search_metric_find(value->text, &to->vectors.metric)) ||
               option_fault(call, report, name, "cosine, dotproduct or euclidean");
    if (slice_equal(name, SLICE("dataType")))
        return (text && search_vector_type_find(value->text, &to->vectors.type)) ||
               option_fault(call, report, name, "float32, float16, int8 or uint8");
    if (list || slice_equal(name, SLICE("quantizedVectorListMultiplier"))) {
        if (!number_within(value, 1, SQL_VECTOR_MULTIPLIER_MAX, true))
            return option_fault(call, report, name, "a whole number of 1 to 100");
        (void)document_to_int64(value, &number);
        *(list ? &to->list : &to->compared) = (uint32_t)number;
        return true;
    }
    if (slice_equal(name, SLICE("filterPriority"))) {
        if (!number_within(value, 0, 1, false))
            return option_fault(call, report, name, "a number of 0 to 1");
        (void)document_to_double(value, &priority);
        to->priority = (uint32_t)(priority * 1000);
        return true;
    }
    return sql_report_at(report, "", call->span,
                         "The VectorDistance function has no option '%.*s'.",
                         SLICE_ARG(sql_excerpt(name)));
}

static bool options_fault(const struct sql_expr *call, const struct sql_report *report)
{
    return sql_report_at(report, "", call->span,
                         "The fourth argument of the VectorDistance function must be an object of "
                         "literals or parameters.");
}

static bool options_read(const struct sql_expr *call, const struct sql_expr *options,
                         struct sql_vector_call *to, const struct sql_report *report)
{
    const struct document_value *value = constant_of(options);
    struct document_iter iter;

    if (options->kind == SQL_EXPR_OBJECT) {
        for (uint32_t i = 0; i < options->object.count; i++) {
            const struct document_value *given = constant_of(options->object.properties[i].value);

            if (!given)
                return options_fault(call, report);
            if (!option_read(call, options->object.properties[i].name, given, to, report))
                return false;
        }
        return true;
    }
    if (!value || value->type != DOCUMENT_OBJECT)
        return options_fault(call, report);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (!option_read(call, iter.key, &iter.value, to, report))
            return false;
    return true;
}

bool sql_vector_call_read(const struct sql_expr *call, struct slice policy, struct arena *arena,
                          struct sql_vector_call *ret_call, const struct sql_report *report)
{
    const struct sql_exprs *arguments = &call->call.arguments;
    struct sql_vector_call made = {.priority = SQL_VECTOR_PRIORITY_DEFAULT};
    const struct document_value *brute;

    assert(sql_is_vector_call(call) && arguments->count >= 2);
    if (!policy_read(policy, arguments->items[0], arena, &made.vectors))
        (void)policy_read(policy, arguments->items[1], arena, &made.vectors);
    if (arguments->count > 2) {
        brute = constant_of(arguments->items[2]);
        if (!brute || brute->type != DOCUMENT_BOOL)
            return sql_report_at(report, "", call->span,
                                 "The third argument of the VectorDistance function must be true "
                                 "or false.");
        made.brute_force = brute->boolean;
    }
    if (arguments->count > 3 && !options_read(call, arguments->items[3], &made, report))
        return false;
    *ret_call = made;
    return true;
}

/* --- Orders ---------------------------------------------------------------------------------- */

/* Each score of a ranking by itself. */
static bool ranks_orient(struct sql_query *query, struct slice policy, struct arena *arena,
                         const struct sql_report *report)
{
    struct sql_expr *rank = query->order_by[0].expr;
    bool fuses = rank->kind == SQL_EXPR_CALL && rank->call.function->id == SQL_FUNCTION_RRF;
    uint32_t count = fuses ? rank->call.arguments.count : 1;
    struct sql_vector_call call;

    for (uint32_t i = 0; i < count && i < 32; i++) {
        const struct sql_expr *score = fuses ? rank->call.arguments.items[i] : rank;

        if (!sql_is_vector_call(score))
            continue;
        if (!sql_vector_call_read(score, policy, arena, &call, report))
            return false;
        if (!search_metric_is_similarity(call.vectors.metric))
            query->ranks_ascending |= UINT32_C(1) << i;
    }
    return true;
}

bool sql_vectors_orient(struct sql_query *query, struct slice policy, struct arena *arena,
                        const struct sql_report *report)
{
    struct sql_vector_call call;

    if (query->order_by_rank)
        return ranks_orient(query, policy, arena, report);
    if (!sql_orders_by_vector(query))
        return true;
    if (!sql_vector_call_read(query->order_by[0].expr, policy, arena, &call, report))
        return false;
    query->order_by[0].descending = search_metric_is_similarity(call.vectors.metric);
    return true;
}

bool sql_vectors_overflow(const struct sql_query *query)
{
    const struct sql_expr *most = query->top ? query->top : query->limit;
    uint32_t rows = 0, offset = 0;

    if (!sql_orders_by_vector(query))
        return false;
    return !most || !sql_amount(most, &rows) ||
           (query->offset && !sql_amount(query->offset, &offset)) ||
           (uint64_t)rows + offset > SQL_VECTOR_ROWS_MAX;
}
