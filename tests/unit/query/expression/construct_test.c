#include "query/value/value.h"
#include "support/check.h"
#include "support/expressions.h"

static void undefined_is_left_out(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"array()", "[]"},
        {"array(1, undefined, 2)", "[1,2]"},
        {"array(undefined)", "[]"},
        {"array(null, c.none, c.a)", "[null,1]"},
        {"array(array(1, array()), object())", "[[1,[]],{}]"},
        {"array(NaN, 1, Infinity)", "[1]"},
        {"object()", "{}"},
        {"object('a', 1, 'b', undefined, 'd', null)", "{'a':1,'d':null}"},
        {"object('b', 1, 'a', 2)", "{'b':1,'a':2}"},
        {"object('x', c.none)", "{}"},
        {"object('x', object('y', array(c.a)))", "{'x':{'y':[1]}}"},
        {"object('n', -Infinity)", "{}"},
        {"object('', 1)", "{'':1}"},
        {"object('a', 1, 'a', 2)", "DUPLICATE_PROPERTY"},
        {"object('a\\u0000', 1)", "BAD_REQUEST"},
    };

    expression_cases(cases, ARRAY_LEN(cases), "{'a': 1}");
}

static void large_objects_check_their_names_quickly(void **state UNUSED)
{
    enum { COUNT = 20000 };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_build build = {.arena = arena};
    struct slice *names = ARENA_ARRAY(arena, struct slice, COUNT);
    const struct query_expression **values =
        ARENA_ARRAY(arena, const struct query_expression *, COUNT);
    const struct query_expression *object;

    for (int i = 0; i < COUNT; i++) {
        names[i] = arena_printf(arena, "property%d", i);
        values[i] = query_constant(&build, document_int32(i));
    }
    object = query_object(&build, names, values, COUNT);
    assert_false(build.failed);
    assert_true(query_is_constant(object));
    names[COUNT - 1] = names[0];
    query_object(&build, names, values, COUNT);
    assert_int_equal(build.error.code, ERROR_DUPLICATE_PROPERTY);
}

/* The tree is no deeper than allowed, but what it reads is deep already. */
static void values_have_a_depth_limit(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slot = {.value = document_int32(1)};
    struct query_build build = {.arena = arena};
    const struct query_expression *item = query_variable(&build, 0),
                                  *nest = query_array(&build, &item, 1);
    struct document_value value;
    struct error err = {0};

    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    for (int i = 0; i < QUERY_VALUE_DEPTH_MAX; i++) {
        assert_ok(query_evaluate(nest, &context, &value, &err), &err);
        slot.value = value;
    }
    assert_true(query_value_nests_within(&value, QUERY_VALUE_DEPTH_MAX));
    assert_false(query_value_nests_within(&value, QUERY_VALUE_DEPTH_MAX - 1));
    assert_fails(query_evaluate(nest, &context, &value, &err), &err, ERROR_TOO_DEEP);
    assert_int_equal(context.scratch.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undefined_is_left_out),
        cmocka_unit_test(large_objects_check_their_names_quickly),
        cmocka_unit_test(values_have_a_depth_limit),
    };
    return cmocka_run_group_tests_name("query/expression/construct", tests, NULL, NULL);
}
