#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

static void in_is_the_or_of_equalities(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"in(1, 1, 2)", "true"},
        {"in(3, 1, 2)", "false"},
        {"in(1.0, 1)", "true"},
        {"in('a', 'b', 'a')", "true"},
        {"in('a', 'b')", "false"},
        {"in('1', 1)", "undefined"},
        {"in(1, '1', 1)", "true"},
        {"in(1, '1', 2)", "undefined"},
        {"in(1, 2, undefined)", "undefined"},
        {"in(1, 1, undefined)", "true"},
        {"in(undefined, 1)", "undefined"},
        {"in(undefined, undefined)", "undefined"},
        {"in(null, null, 1)", "true"},
        {"in(null, 1)", "undefined"},
        {"in({'a': 1, 'b': 2}, {'b': 2, 'a': 1})", "true"},
        {"in([1], [2], [1.0])", "true"},
        {"in(c.a, c.b, 5)", "true"},
        {"in(c.a, 4, c.b)", "false"},
        {"in(c.a, 4, c.none)", "undefined"},
        {"in(c.a, 4, c.s)", "undefined"},
        {"in(c.a, 5, c.none)", "true"},
        {"in(1)", "false"},
        {"not(in(1, '1'))", "undefined"},
        {"not(in(1, 2))", "true"},
    };

    expression_cases(cases, ARRAY_LEN(cases), "{'a': 5, 'b': 6, 's': 'x'}");
}

static void sixteen_thousand_candidates_are_found_by_hash(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new(), *row = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slot = {.value = document_undefined()};
    struct query_build build = {.arena = arena};
    const struct query_expression *candidates[QUERY_IN_MAX + 1], *in;
    size_t used = arena_used(row);
    struct error err = {0};

    for (int i = 0; i <= QUERY_IN_MAX; i++)
        candidates[i] = query_constant(&build, document_int32(2 * i));
    in = query_in(&build, query_variable(&build, 0), candidates, QUERY_IN_MAX);
    assert_false(build.failed);
    query_context_init(&context, row, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    for (int i = 0; i < 2 * QUERY_IN_MAX; i++) {
        struct document_value value;

        slot.value = document_double(i);
        assert_ok(query_evaluate(in, &context, &value, &err), &err);
        assert_int_equal(value.type, DOCUMENT_BOOL);
        assert_int_equal(value.boolean, i % 2 == 0);
    }
    assert_true(context.work < 6 * QUERY_IN_MAX);
    assert_int_equal(arena_used(row), used);
    query_in(&build, query_variable(&build, 0), candidates, QUERY_IN_MAX + 1);
    assert_int_equal(build.error.code, ERROR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_is_the_or_of_equalities),
        cmocka_unit_test(sixteen_thousand_candidates_are_found_by_hash),
    };
    return cmocka_run_group_tests_name("query/expression/in", tests, NULL, NULL);
}
