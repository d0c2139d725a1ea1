/* An accumulator is an aggregate of query/ between two small expressions: one that leaves out what
 * MongoDB does not count, and one that makes of the result what MongoDB shows. */
#include "front/mongo/expression/accumulate.h"

#include "front/mongo/expression/expression_private.h"
#include "query/value/set.h"

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

static bool objects_only(struct expression_call *call)
{
    if (!expression_is_nullish(&call->arguments[0]) && call->arguments[0].type != DOCUMENT_OBJECT)
        return mongo_error_set(call->err, 40400,
                               "$mergeObjects requires object inputs, but input %s is of type %s",
                               expression_show(call->context, &call->arguments[0]),
                               expression_type_name(&call->arguments[0]));
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

/* The first, last, least or greatest n of a list; the second argument is n. */
static bool some_of_list(struct expression_call *call)
{
    const struct document_value swapped[] = {call->arguments[1], call->arguments[0]};
    struct expression_node node = *call->node;
    struct expression_call inner = *call;

    node.number = call->node->op->number;
    inner.node = &node;
    inner.arguments = swapped;
    return expression_some(&inner);
}

/* What $top and its like keep of a row: its sort keys and what is shown of it. */
static bool keyed(struct expression_call *call)
{
    const struct expression_sort *sort = call->node->sort;
    struct expression_array row;

    expression_array_begin(&row, call->context);
    for (size_t i = 0; i < sort->count; i++) {
        struct document_value key;

        if (!expression_sort_key_form(call, &sort->keys[i], &call->arguments[0], &key))
            return expression_array_drop(&row);
        if (!expression_array_add(&row, &key, call->err))
            return false;
    }
    return expression_array_add(&row, &call->arguments[1], call->err) &&
           expression_array_end(&row, call->ret, call->err);
}

static int by_kept_keys(const void *self, const struct document_value *a,
                        const struct document_value *b)
{
    const struct expression_sort *sort = self;
    struct document_iter left, right;

    document_iter_init(&left, a->document);
    document_iter_init(&right, b->document);
    for (size_t i = 0; i < sort->count; i++) {
        int order;

        (void)document_iter_next(&left);
        (void)document_iter_next(&right);
        order = document_compare(DOCUMENT_ORDER_MONGO, &left.value, &right.value);
        if (order)
            return sort->keys[i].descending ? -order : order;
    }
    return 0;
}

enum top { TOP_ONE = 1, TOP_LAST = 2 };

/* The list of such rows in order, and the n at its beginning or end. Arguments: the list, n. */
static bool top_of_list(struct expression_call *call)
{
    const struct expression_sort *sort = call->node->sort;
    int which = call->node->op->number;
    struct document_value *rows;
    size_t count, wanted = 1, from;

    if (call->arguments[0].type != DOCUMENT_ARRAY)
        return expression_give_null(call);
    rows = expression_elements(call->context, call->arguments[0].document, &count, call->err);
    if (!rows || !expression_sort(call->context, rows, count, by_kept_keys, sort, call->err))
        return false;
    for (size_t i = 0; i < count; i++)
        (void)document_find_index(rows[i].document, sort->count, &rows[i]);
    if (!(which & TOP_ONE))
        wanted = (size_t)call->arguments[1].int64;
    from = which & TOP_LAST && count > wanted ? count - wanted : 0;
    if (which & TOP_ONE)
        return expression_give(call, count ? rows[from] : document_null());
    return expression_array_of(call->context, rows + from, MIN(wanted, count - from), call->ret,
                               call->err);
}

/* Pairs of comparison form and value: of those with one form the first value. */
static bool distinct_of_pairs(struct expression_call *call)
{
    struct expression_array left;
    struct document_iter iter;
    struct query_set forms;
    bool is_new;

    if (call->arguments[0].type != DOCUMENT_ARRAY)
        return expression_give(call, call->arguments[0]);
    query_set_init(&forms, DOCUMENT_ORDER_MONGO, call->context->arena, 0);
    expression_array_begin(&left, call->context);
    document_iter_init(&iter, call->arguments[0].document);
    while (document_iter_next(&iter)) {
        struct document_value form, value;

        if (!query_work(call->context, 1, call->err))
            return expression_array_drop(&left);
        if (!document_find_index(iter.value.document, 0, &form) ||
            !document_find_index(iter.value.document, 1, &value))
            continue;
        query_set_add(&forms, &form, &is_new);
        if (is_new && !expression_array_add(&left, &value, call->err))
            return false;
    }
    return expression_array_end(&left, call->ret, call->err);
}

/* Arguments: the list, which parts. */
static bool percentile_of_list(struct expression_call *call)
{
    struct document_value none = document_undefined(), *values = &none;
    size_t count = 0;

    if (call->arguments[0].type == DOCUMENT_ARRAY)
        values = expression_elements(call->context, call->arguments[0].document, &count, call->err);
    return values && expression_percentile_of(call->context, values, count, &call->arguments[1],
                                              call->ret, call->err);
}

static const struct expression_operator op_numbers = {"numbers", .compute = numbers_only};
static const struct expression_operator op_no_nulls = {"no nulls", .compute = no_nulls};
static const struct expression_operator op_null = {"null if missing", .compute = null_if_missing};
static const struct expression_operator op_zero = {"0 if missing", .compute = zero_if_missing};

static const struct expression_operator op_object_only = {"objects", .compute = objects_only};
static const struct expression_operator op_merge = {"merge", .compute = expression_merge_list};
static const struct expression_operator op_keyed = {"sort keys", .compute = keyed};
static const struct expression_operator op_distinct = {"one of each", .compute = distinct_of_pairs};
static const struct expression_operator op_percentile = {"percentile",
                                                         .compute = percentile_of_list};
static const struct expression_operator op_some[] = {
    [EXPRESSION_FIRST_N] = {"$firstN", .number = EXPRESSION_FIRST_N, .compute = some_of_list},
    [EXPRESSION_LAST_N] = {"$lastN", .number = EXPRESSION_LAST_N, .compute = some_of_list},
    [EXPRESSION_MIN_N] = {"$minN", .number = EXPRESSION_MIN_N, .compute = some_of_list},
    [EXPRESSION_MAX_N] = {"$maxN", .number = EXPRESSION_MAX_N, .compute = some_of_list},
};
static const struct expression_operator op_top[] = {
    {"$topN", .number = 0, .compute = top_of_list},
    {"$top", .number = TOP_ONE, .compute = top_of_list},
    {"$bottomN", .number = TOP_LAST, .compute = top_of_list},
    {"$bottom", .number = TOP_ONE | TOP_LAST, .compute = top_of_list},
};

/* --- The table -------------------------------------------------------------------------------- */

struct accumulator {
    const char *name;
    enum query_aggregate_kind kind;
    const struct expression_operator *before, *after; /* NULL: as it is */
    bool ordered;
    bool (*compile)(struct expression_compile *compile, const struct accumulator *accumulator,
                    const struct document_value *argument, struct mongo_accumulator *ret);
    int number;
};

static bool count_compile(struct expression_compile *compile, const struct accumulator *accumulator,
                          const struct document_value *argument, struct mongo_accumulator *ret)
{
    (void)accumulator;
    if (argument->type != DOCUMENT_OBJECT || document_count(argument->document))
        return mongo_error_set(compile->err, MONGO_TYPE_MISMATCH,
                               "$count takes no arguments, i.e. $count:{}");
    ret->call.argument = query_constant(compile->build, document_int32(1));
    return true;
}

/* How many are wanted: a constant above 0. */
static bool n_compile(struct expression_compile *compile, const struct document_value *value,
                      const struct query_expression **ret)
{
    const struct query_expression *made;
    int64_t n;

    if (!expression_compile_value(compile, value, &made))
        return false;
    if (!query_is_constant(made))
        return mongo_error_set(compile->err, MONGO_NOT_IMPLEMENTED,
                               "'n' of an accumulator has to be a constant here");
    if (!document_to_int64(query_constant_value(made), &n))
        return mongo_error_set(
            compile->err, 5787902, "Value for 'n' must be of integral type, but found %.*s",
            SLICE_ARG(mongo_text_value(query_constant_value(made), compile->build->arena)));
    if (n <= 0)
        return mongo_error_set(compile->err, 5787908, "'n' must be greater than 0, found %lld",
                               (long long)n);
    *ret = query_constant(compile->build, document_int64(n));
    return true;
}

/* The fields of an accumulator that is given an object; all of them must be there. */
static bool fields_find(struct expression_compile *compile, const struct accumulator *accumulator,
                        const struct document_value *argument, const char *const *names,
                        struct document_value *ret_values)
{
    struct document_iter iter;
    size_t count = 0, found = 0;

    if (argument->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 5787801,
                               "specification must be an object; found %s: %s", accumulator->name,
                               mongo_type_name(argument->type));
    while (names[count])
        ret_values[count++] = document_undefined();
    document_iter_init(&iter, argument->document);
    while (document_iter_next(&iter)) {
        size_t i = 0;

        while (names[i] && !slice_equal(iter.key, slice_of_text(names[i])))
            i++;
        if (!names[i])
            return mongo_error_set(compile->err, 5787901, "Unknown argument for 'n' operator: %.*s",
                                   SLICE_ARG(iter.key));
        ret_values[i] = iter.value;
        found |= (size_t)1 << i;
    }
    for (size_t i = 0; i < count; i++)
        if (!(found & (size_t)1 << i))
            return mongo_error_set(compile->err, strcmp(names[i], "n") == 0 ? 5787906 : 5787907,
                                   "Missing value for '%s'", names[i]);
    return true;
}

static bool some_compile(struct expression_compile *compile, const struct accumulator *accumulator,
                         const struct document_value *argument, struct mongo_accumulator *ret)
{
    static const char *const names[] = {"input", "n", NULL};
    const struct query_expression *children[2] = {ret->result};
    struct document_value given[2];

    if (!fields_find(compile, accumulator, argument, names, given) ||
        !expression_compile_value(compile, &given[0], &ret->call.argument) ||
        !n_compile(compile, &given[1], &children[1]))
        return false;
    ret->result = expression_node_make(compile, &op_some[accumulator->number], children, 2);
    return true;
}

static bool top_compile(struct expression_compile *compile, const struct accumulator *accumulator,
                        const struct document_value *argument, struct mongo_accumulator *ret)
{
    static const char *const names[] = {"sortBy", "output", "n", NULL};
    static const char *const names_of_one[] = {"sortBy", "output", NULL};
    bool one = accumulator->number & TOP_ONE;
    const struct query_expression *children[2] = {ret->result}, *row[2];
    const struct expression_sort *sort;
    struct document_value given[3];
    struct expression_node *node;

    if (!fields_find(compile, accumulator, argument, one ? names_of_one : names, given))
        return false;
    if (given[0].type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 5788604, "Missing or invalid 'sortBy' of %s",
                               accumulator->name);
    children[1] = query_constant(compile->build, document_int64(1));
    if (!expression_sort_read(compile, &given[0], &sort) ||
        !expression_compile_value(compile, &given[1], &row[1]) ||
        (!one && !n_compile(compile, &given[2], &children[1])))
        return false;
    row[0] = mongo_expression_root(compile->build, compile->options->slot);
    node = expression_node_new(compile, &op_keyed, row, 2);
    node->sort = sort;
    ret->call.argument = &node->head;
    node =
        expression_node_new(compile, &op_top[one + (accumulator->number & TOP_LAST)], children, 2);
    node->sort = sort;
    ret->result = &node->head;
    return true;
}

static bool percentile_compile(struct expression_compile *compile,
                               const struct accumulator *accumulator,
                               const struct document_value *argument, struct mongo_accumulator *ret)
{
    const struct query_expression *children[2] = {ret->result};
    struct document_value input, p;

    if (!expression_percentile_read(compile, accumulator->number, argument, &input, &p) ||
        !expression_compile_value(compile, &input, &ret->call.argument))
        return false;
    children[1] = query_constant(compile->build, p);
    ret->result = expression_node_make(compile, &op_percentile, children, 2);
    return true;
}

static bool script_compile(struct expression_compile *compile,
                           const struct accumulator *accumulator,
                           const struct document_value *argument, struct mongo_accumulator *ret)
{
    (void)accumulator;
    return expression_script_accumulate(compile, argument, ret->result, &ret->call.argument,
                                        &ret->result);
}

static const struct accumulator accumulators[] = {
    {"$accumulator", QUERY_MAKE_LIST, &op_null, NULL, true, script_compile},
    {"$bottom", QUERY_MAKE_LIST, NULL, NULL, true, top_compile, TOP_ONE | TOP_LAST},
    {"$bottomN", QUERY_MAKE_LIST, NULL, NULL, true, top_compile, TOP_LAST},
    {"$firstN", QUERY_MAKE_LIST, &op_null, NULL, true, some_compile, EXPRESSION_FIRST_N},
    {"$lastN", QUERY_MAKE_LIST, &op_null, NULL, true, some_compile, EXPRESSION_LAST_N},
    {"$maxN", QUERY_MAKE_LIST, &op_no_nulls, NULL, false, some_compile, EXPRESSION_MAX_N},
    {"$median", QUERY_MAKE_LIST, &op_numbers, NULL, false, percentile_compile, 1},
    {"$mergeObjects", QUERY_MAKE_LIST, &op_object_only, &op_merge, true},
    {"$minN", QUERY_MAKE_LIST, &op_no_nulls, NULL, false, some_compile, EXPRESSION_MIN_N},
    {"$percentile", QUERY_MAKE_LIST, &op_numbers, NULL, false, percentile_compile, 0},
    {"$top", QUERY_MAKE_LIST, NULL, NULL, true, top_compile, TOP_ONE},
    {"$topN", QUERY_MAKE_LIST, NULL, NULL, true, top_compile, 0},
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

const char *mongo_accumulator_name(size_t number)
{
    return number < ARRAY_LEN(accumulators) ? accumulators[number].name : NULL;
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
    if (!(accumulator->compile ? accumulator->compile(&compile, accumulator, argument, &made)
                               : argument_compile(&compile, accumulator, argument, &made)))
        return false;
    if (accumulator->before)
        made.call.argument =
            expression_node_make(&compile, accumulator->before, &made.call.argument, 1);
    if (compile.options->collator &&
        (accumulator->kind == QUERY_MIN || accumulator->kind == QUERY_MAX)) {
        made.call.argument =
            mongo_collate_pair(compile.options->collator, made.call.argument, build);
        made.result = mongo_collate_unpair(made.result, build);
    }
    if (compile.options->collator && accumulator->kind == QUERY_MAKE_SET) {
        made.call.argument =
            mongo_collate_pair(compile.options->collator, made.call.argument, build);
        made.result = expression_node_make(&compile, &op_distinct, &made.result, 1);
    }
    if (accumulator->after)
        made.result = expression_node_make(&compile, accumulator->after, &made.result, 1);
    if (build->failed) {
        *err = build->error;
        return false;
    }
    *ret_accumulator = made;
    return true;
}
