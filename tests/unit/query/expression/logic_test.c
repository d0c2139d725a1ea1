#include "support/check.h"
#include "support/expressions.h"

/* All nine pairs of true, false and undefined, and some that count as undefined. */
static void logic_has_three_values(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"and(true, true)", "true"},
        {"and(true, false)", "false"},
        {"and(true, undefined)", "undefined"},
        {"and(false, true)", "false"},
        {"and(false, false)", "false"},
        {"and(false, undefined)", "false"},
        {"and(undefined, true)", "undefined"},
        {"and(undefined, false)", "false"},
        {"and(undefined, undefined)", "undefined"},
        {"and(null, false)", "false"},
        {"and(null, true)", "undefined"},
        {"and(1, true)", "undefined"},
        {"and(true, true, 'x', false)", "false"},
        {"and(true, true, 'x', true)", "undefined"},
        {"or(true, true)", "true"},
        {"or(true, false)", "true"},
        {"or(true, undefined)", "true"},
        {"or(false, true)", "true"},
        {"or(false, false)", "false"},
        {"or(false, undefined)", "undefined"},
        {"or(undefined, true)", "true"},
        {"or(undefined, false)", "undefined"},
        {"or(undefined, undefined)", "undefined"},
        {"or(0, true)", "true"},
        {"or('true', false)", "undefined"},
        {"or(false, false, false, true)", "true"},
        {"not(true)", "false"},
        {"not(false)", "true"},
        {"not(undefined)", "undefined"},
        {"not(null)", "undefined"},
        {"not(0)", "undefined"},
        {"not(eq(1, '1'))", "undefined"},
        {"and(c.none, c.a)", "false"},
        {"and(c.none, c.t)", "undefined"},
    };

    expression_cases(cases, ARRAY_LEN(cases), "{'a': false, 't': true}");
}

static void a_condition_must_be_a_boolean(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"if(true, 1, 2)", "1"},
        {"if(false, 1, 2)", "2"},
        {"if(undefined, 1, 2)", "undefined"},
        {"if(null, 1, 2)", "undefined"},
        {"if(1, 1, 2)", "undefined"},
        {"if('true', 1, 2)", "undefined"},
        {"if(eq(c.a, 1), 'one', 'other')", "'one'"},
        {"if(eq(c.b, 1), 'one', 'other')", "undefined"},
        {"IIF(true, 1, 2)", "1"},
        {"IIF(false, 1, 2)", "2"},
        {"IIF(undefined, 1, 2)", "2"},
        {"IIF(null, 1, 2)", "2"},
        {"IIF(1, 1, 2)", "2"},
        {"IIF(true, undefined, 2)", "undefined"},
        {"IIF(false, 1)", "BAD_REQUEST"},
    };

    expression_cases(cases, ARRAY_LEN(cases), "{'a': 1}");
}

static void coalesce_passes_over_undefined_alone(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"coalesce(undefined, 1)", "1"}, {"coalesce(null, 1)", "null"},
        {"coalesce(0, 1)", "0"},         {"coalesce(undefined, undefined)", "undefined"},
        {"coalesce(c.none, c.a)", "1"},  {"coalesce(c.n, c.a)", "null"},
    };

    expression_cases(cases, ARRAY_LEN(cases), "{'a': 1, 'n': null}");
}

static void between_includes_its_bounds(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"between(2, 1, 3)", "true"},
        {"between(1, 1, 3)", "true"},
        {"between(3, 1, 3)", "true"},
        {"between(4, 1, 3)", "false"},
        {"between(0, 1, 3)", "false"},
        {"between(2, 3, 1)", "false"},
        {"between('b', 'a', 'c')", "true"},
        {"between('b', 1, 3)", "undefined"},
        {"between(2, 1, 'c')", "undefined"},
        {"between(0, 1, 'c')", "false"},
        {"between(4, 'a', 3)", "false"},
        {"between(undefined, 1, 3)", "undefined"},
        {"between(2, undefined, 3)", "undefined"},
        {"between(4, undefined, 3)", "false"},
        {"between(null, null, null)", "true"},
        {"between([1], [0], [2])", "undefined"},
        {"between(2.5, 1, 3)", "true"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

static void a_constant_that_settles_it_needs_no_row(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    const struct query_expression *both =
        query_and(&build, expression_of(&build, "eq(c.a, 1)", NULL),
                  query_constant(&build, document_bool(false)));
    const struct query_expression *flat =
        expression_of(&build, "and(c.a, c.b, and(c.d, c.e))", NULL);

    assert_true(query_is_constant(both));
    assert_false(query_constant_value(both)->boolean);
    assert_ptr_equal(flat->kind, &query_kind_and);
    assert_int_equal(flat->child_count, 4);
}

/* What a client sends to read a thousand items by id and a key of three levels. */
static void thousands_of_operands_take_little_memory(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    const struct query_expression *operand = expression_of(&build, "eq(c.a, 1)", NULL),
                                  *chain = operand, *shorter, *other;
    size_t used = arena_used(arena);

    for (int i = 1; i < 4000; i++)
        chain = query_and(&build, chain, operand);
    assert_false(build.failed);
    assert_int_equal(chain->child_count, 4000);
    assert_int_equal(chain->depth, operand->depth + 1);
    assert_true(arena_used(arena) - used < 4000 * 200);
    /* two chains that begin alike do not write over each other */
    shorter = query_or(&build, operand, expression_of(&build, "c.b", NULL));
    other = query_or(&build, shorter, expression_of(&build, "c.d", NULL));
    chain = query_or(&build, shorter, expression_of(&build, "c.e", NULL));
    assert_int_equal(shorter->child_count, 2);
    assert_ptr_not_equal(other->children[2], chain->children[2]);
    assert_ptr_equal(other->children[1], chain->children[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logic_has_three_values),
        cmocka_unit_test(a_condition_must_be_a_boolean),
        cmocka_unit_test(coalesce_passes_over_undefined_alone),
        cmocka_unit_test(between_includes_its_bounds),
        cmocka_unit_test(a_constant_that_settles_it_needs_no_row),
        cmocka_unit_test(thousands_of_operands_take_little_memory),
    };
    return cmocka_run_group_tests_name("query/expression/logic", tests, NULL, NULL);
}
