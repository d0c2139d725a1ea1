#include "query/value/compare.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

static const char *const item =
    "{'a': 1, 'b': {'c': [10, 20, {'d': 'deep'}]}, 'n': null, 's': 'text', 'k': 'a', 'i': 1,"
    " '': 'empty', 'arr': [1, 'x', null]}";

static void paths_reach_into_objects_and_arrays(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"c.a", "1"},
        {"c.b.c", "[10,20,{'d':'deep'}]"},
        {"c.b.c[1]", "20"},
        {"c.b.c[2].d", "'deep'"},
        {"c.b.c[3]", "undefined"},
        {"c.b.c[2].none", "undefined"},
        {"c.b.c[2].d.e", "undefined"},
        {"c.none", "undefined"},
        {"c.none.more", "undefined"},
        {"c.n", "null"},
        {"c.n.x", "undefined"},
        {"c.s[0]", "undefined"},
        {"c.a[0]", "undefined"},
        {"c.b[0]", "undefined"},
        {"c.arr.x", "undefined"},
        {"c.arr[1]", "'x'"},
        {"x", "undefined"},
        {"x.a", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), item);
}

static void computed_keys_name_properties_and_elements(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"c['a']", "1"},
        {"c['']", "'empty'"},
        {"c[c.k]", "1"},
        {"c.b.c[c.i]", "20"},
        {"c.b.c[1.0]", "20"},
        {"c.b.c[0.5]", "undefined"},
        {"c.b.c[-1]", "undefined"},
        {"c.b.c['1']", "undefined"},
        {"c.b.c[c.none]", "undefined"},
        {"c[c.n]", "undefined"},
        {"c[0]", "undefined"},
        {"index([5, 6, 7], 2)", "7"},
        {"index({'a': 5}, 'a')", "5"},
        {"index('text', 0)", "undefined"},
        {"index([5], 9223372036854775807)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), item);
}

static void chains_of_steps_are_one_node(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    const struct query_expression *path = expression_of(&build, "c.b.c[2]['d']", NULL);
    const struct query_step *steps;
    uint32_t slot;
    size_t count;

    assert_true(query_is_path(path, &slot, &steps, &count));
    assert_int_equal(slot, 0);
    assert_int_equal(count, 4);
    assert_slice_equal(steps[3].name, SLICE("d"));
    assert_null(steps[2].name.data);
    assert_int_equal(steps[2].index, 2);
    assert_int_equal(path->depth, 2);
    assert_int_equal(path->slots_used, 1);
    assert_false(query_is_path(expression_of(&build, "c.b[c.i]", NULL), &slot, &steps, &count));
    assert_true(query_is_path(expression_of(&build, "y", NULL), &slot, &steps, &count));
    assert_int_equal(slot, 2);
    assert_int_equal(count, 0);
}

static void what_is_constant_is_folded(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};

    assert_true(query_is_constant(expression_of(&build, "add(1, mul(2, 3))", NULL)));
    assert_true(query_is_constant(expression_of(&build, "UPPER(cat('a', 'b'))", NULL)));
    assert_true(query_is_constant(expression_of(&build, "array(1, object('a', 2))[1].a", NULL)));
    assert_true(query_is_constant(expression_of(&build, "in(1, 2, 3)", NULL)));
    assert_false(query_is_constant(expression_of(&build, "add(1, c.a)", NULL)));
    assert_false(query_is_constant(expression_of(&build, "RAND()", NULL)));
    assert_false(query_is_constant(expression_of(&build, "GetCurrentTicks()", NULL)));
    assert_false(query_is_constant(expression_of(&build, "udf_f(1)", NULL)));
    assert_int_equal(expression_of(&build, "add(1, RAND())", NULL)->stability, QUERY_UNSTABLE);
    assert_int_equal(expression_of(&build, "add(1, GetCurrentTicks())", NULL)->stability,
                     QUERY_STABLE_FOR_QUERY);
    assert_int_equal(expression_of(&build, "add(x.b, y.c)", NULL)->slots_used, 6);
    assert_false(build.failed);
}

static void trees_have_a_depth_limit(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    const struct query_expression *tree = query_variable(&build, 0);

    for (int i = 1; i < QUERY_DEPTH_MAX; i++)
        tree = query_not(&build, tree);
    assert_false(build.failed);
    for (int i = 0; i < 70000; i++) /* building on after a failure does no harm */
        tree = query_not(&build, tree);
    assert_true(build.failed);
    assert_int_equal(build.error.code, ERROR_TOO_DEEP);
}

static void a_plan_has_a_size_limit(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};

    for (int i = 0; i < QUERY_NODES_MAX; i++)
        query_variable(&build, 0);
    assert_false(build.failed);
    query_variable(&build, 0);
    assert_true(build.failed);
    assert_int_equal(build.error.code, ERROR_TOO_LARGE);
}

static void slots_have_a_limit(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};

    query_variable(&build, QUERY_SLOTS_MAX - 1);
    assert_false(build.failed);
    query_variable(&build, QUERY_SLOTS_MAX);
    assert_true(build.failed);
}

static void only_true_holds(void **state UNUSED)
{
    static const struct {
        const char *filter;
        bool holds;
    } cases[] = {
        {"c.t", true}, {"c.f", false}, {"c.one", false}, {"c.none", false}, {"eq(c.one, 1)", true}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slot = {.value = value_of(arena, "{\"t\":true,\"f\":false,\"one\":1}")};
    struct query_build build = {.arena = arena};
    struct error err = {0};

    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool holds;

        assert_ok(query_holds(expression_of(&build, cases[i].filter, NULL), &context, &holds, &err),
                  &err);
        assert_int_equal(holds, cases[i].holds);
    }
}

/* A kind as another language would bring one: truth as MongoDB has it. */
static bool truthy_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    if (!query_evaluate(expression->children[0], context, ret_value, err))
        return false;
    *ret_value =
        document_bool(ret_value->type != DOCUMENT_UNDEFINED && ret_value->type != DOCUMENT_NULL &&
                      !(ret_value->type == DOCUMENT_BOOL && !ret_value->boolean));
    return true;
}

static void other_languages_bring_kinds_of_their_own(void **state UNUSED)
{
    static const struct query_kind truthy = {"truthy", truthy_evaluate, QUERY_STABLE};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slot = {.value = value_of(arena, "{\"a\":0}")};
    struct query_build build = {.arena = arena};
    const struct query_expression *child = expression_of(&build, "c.a", NULL), *both, *constant;
    struct document_value value;
    struct error err = {0};

    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    both = query_and(&build, query_node(&build, &truthy, sizeof *both, &child, 1),
                     expression_of(&build, "eq(c.a, 0)", NULL));
    assert_ok(query_evaluate(both, &context, &value, &err), &err);
    assert_string_equal(expression_print(&value, arena), "true");
    child = query_constant(&build, document_null());
    constant = query_fold(&build, query_node(&build, &truthy, sizeof *both, &child, 1));
    assert_true(query_is_constant(constant));
}

/* A plan is made before anybody is charged: computing its constants has an end for all of them. */
static void constants_of_one_plan_share_what_folding_may_take(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    static uint8_t bytes[100000];
    size_t folded = 0;

    memset(bytes, 'x', sizeof bytes);
    for (size_t i = 0; i < 100; i++) {
        const struct query_expression *text =
            query_constant_borrowed(&build, document_string(slice_of(bytes, sizeof bytes)));

        folded += query_is_constant(query_array(&build, &text, 1));
    }
    assert_false(build.failed);
    assert_int_equal(folded, 11); /* of 100,000 bytes each, until a megabyte is full */
    assert_true(build.fold_bytes < 2 * QUERY_FOLD_BYTES_MAX);
    assert_true(arena_used(arena) < 3 * (size_t)QUERY_FOLD_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_reach_into_objects_and_arrays),
        cmocka_unit_test(computed_keys_name_properties_and_elements),
        cmocka_unit_test(chains_of_steps_are_one_node),
        cmocka_unit_test(what_is_constant_is_folded),
        cmocka_unit_test(trees_have_a_depth_limit),
        cmocka_unit_test(a_plan_has_a_size_limit),
        cmocka_unit_test(slots_have_a_limit),
        cmocka_unit_test(only_true_holds),
        cmocka_unit_test(other_languages_bring_kinds_of_their_own),
        cmocka_unit_test(constants_of_one_plan_share_what_folding_may_take),
    };
    return cmocka_run_group_tests_name("query/expression/expression", tests, NULL, NULL);
}
