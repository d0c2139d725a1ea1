/* An accumulator is an aggregate of query/ between two small expressions: one that leaves out what
 * MongoDB does not count, and one that makes of the result what MongoDB shows. */
#include "front/mongo/expression/accumulate.h"

#include "front/mongo/expression/expression_private.h"

/* --- Before: which values count --------------------------------------------------------------- */

static bool numbers_only(struct expression_call *call)
{
    return expression_give(call, document_is_number(&call->arguments[0]) ? call->arguments[0]
                                                                         : document_undefined());
}

static bool no_nulls(struct expression_call *call)
{
    return expression_give(call, expression_is_nullish(&call->arguments[0]) ? document_undefined()
                                                                            : call->arguments[0]);
}

static bool null_if_missing(struct expression_call *call)
{
    return expression_give(
        call, call->arguments[0].type == DOCUMENT_UNDEFINED ? document_null() : call->arguments[0]);
}

/* --- After ------------------------------------------------------------------------------------ */

static bool zero_if_missing(struct expression_call *call)
{
    return expression_give(call, call->arguments[0].type == DOCUMENT_UNDEFINED
                                     ? document_int32(0)
                                     : call->arguments[0]);
}

static const struct expression_operator op_numbers = {"numbers", .compute = numbers_only};
static const struct expression_operator op_no_nulls = {"no nulls", .compute = no_nulls};
static const struct expression_operator op_null = {"null if missing", .compute = null_if_missing};
static const struct expression_operator op_zero = {"0 if missing", .compute = zero_if_missing};

/* --- The table -------------------------------------------------------------------------------- */

struct accumulator {
    const char *name;
    enum query_aggregate_kind kind;
    const struct expression_operator *before, *after; /* NULL: as it is */
    bool ordered;
    bool (*compile)(struct expression_compile *compile, const struct document_value *argument,
                    struct mongo_accumulator *ret);
};

static bool count_compile(struct expression_compile *compile, const struct document_value *argument,
                          struct mongo_accumulator *ret)
{
    if (argument->type != DOCUMENT_OBJECT || document_count(argument->document))
        return mongo_error_set(compile->err, MONGO_TYPE_MISMATCH,
                               "$count takes no arguments, i.e. $count:{}");
    ret->call.argument = query_constant(compile->build, document_int32(1));
    return true;
}

static const struct accumulator accumulators[] = {
    {"$addToSet", QUERY_MAKE_SET, NULL, NULL, true},
    {"$avg", QUERY_AVG, &op_numbers, &op_null},
    {"$count", QUERY_COUNT, NULL, &op_zero, .compile = count_compile},
    {"$first", QUERY_TAKE_FIRST, &op_null, &op_null, true},
    {"$last", QUERY_TAKE_LAST, &op_null, &op_null, true},
    {"$max", QUERY_MAX, &op_no_nulls, &op_null},
    {"$min", QUERY_MIN, &op_no_nulls, &op_null},
    {"$push", QUERY_MAKE_LIST, NULL, NULL, true},
    {"$stdDevPop", QUERY_STD_DEV_POP, &op_numbers, &op_null},
    {"$stdDevSamp", QUERY_STD_DEV_SAMP, &op_numbers, &op_null},
    {"$sum", QUERY_SUM, &op_numbers, &op_zero},
};

static const struct accumulator *accumulator_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(accumulators); i++)
        if (slice_equal(name, slice_of_text(accumulators[i].name)))
            return &accumulators[i];
    return NULL;
}

bool mongo_accumulator_exists(struct slice name)
{
    return accumulator_find(name) != NULL;
}

/* {$sum: [a, b]} has two arguments, and an accumulator takes one. */
static bool argument_compile(struct expression_compile *compile,
                             const struct accumulator *accumulator,
                             const struct document_value *argument, struct mongo_accumulator *ret)
{
    struct document_value single = *argument;

    if (argument->type == DOCUMENT_ARRAY) {
        if (document_count(argument->document) != 1)
            return mongo_error_set(compile->err, 40237, "The %s accumulator is a unary operator",
                                   accumulator->name);
        (void)document_find_index(argument->document, 0, &single);
    }
    return expression_compile_value(compile, &single, &ret->call.argument);
}

bool mongo_accumulator_compile(struct slice name, const struct document_value *argument,
                               const struct mongo_expression_options *options, uint32_t slot,
                               struct query_build *build, struct mongo_accumulator *ret_accumulator,
                               struct error *err)
{
    static const struct mongo_expression_options none;
    struct expression_compile compile = {
        .build = build, .options = options ? options : &none, .err = err};
    const struct accumulator *accumulator = accumulator_find(name);
    struct mongo_accumulator made = {.call.slot = slot};

    if (!accumulator)
        return mongo_error_set(err, 15952, "unknown group operator '%.*s'", SLICE_ARG(name));
    made.call.kind = accumulator->kind;
    made.ordered = accumulator->ordered;
    made.result = query_variable(build, slot);
    if (!(accumulator->compile ? accumulator->compile(&compile, argument, &made)
                               : argument_compile(&compile, accumulator, argument, &made)))
        return false;
    if (accumulator->before)
        made.call.argument =
            expression_node_make(&compile, accumulator->before, &made.call.argument, 1);
    if (accumulator->after)
        made.result = expression_node_make(&compile, accumulator->after, &made.result, 1);
    if (build->failed) {
        *err = build->error;
        return false;
    }
    *ret_accumulator = made;
    return true;
}
