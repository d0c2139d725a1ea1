#include "front/rest/sql/condition.h"

#include "support/check.h"
#include "support/documents.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static bool ask(struct arena *arena, const char *text, bool *ret_holds, struct error *err)
{
    struct item item = {.header = {.number = 5, .wall_ms = 7000},
                        .document = document_of(arena, "{\"id\":\"1\",\"n\":5,\"tags\":[\"a\"]}")};

    return sql_condition_holds(slice_of_text(text), &item, rid_of_container(1, 2), NULL, arena,
                               ret_holds, NULL, err);
}

static bool holds(struct arena *arena, const char *text)
{
    struct error err;
    bool answer;

    assert_ok(ask(arena, text, &answer, &err), &err);
    return answer;
}

static void a_condition_holds_or_not(void **state)
{
    assert_true(holds(*state, "from c where c.n = 5"));
    assert_true(holds(*state, "FROM c WHERE c.n > 4 AND ARRAY_CONTAINS(c.tags, \"a\")"));
    assert_false(holds(*state, "from c where c.n = 6"));
    assert_true(holds(*state, "from x where x.id = '1'"));
}

static void undefined_does_not_hold(void **state)
{
    assert_false(holds(*state, "from c where c.missing = 1"));
    assert_false(holds(*state, "from c where c.n = '5'"));
    assert_false(holds(*state, "from c where c.n"));
}

static void system_properties_can_be_asked_for(void **state)
{
    assert_true(holds(*state, "from c where c._ts = 7"));
    assert_true(holds(*state, "from c where IS_STRING(c._etag) and IS_DEFINED(c._rid)"));
}

static void a_subquery_may_look_into_arrays(void **state)
{
    assert_true(
        holds(*state, "from c where exists(select value t from t in c.tags where t = 'a')"));
    assert_false(
        holds(*state, "from c where exists(select value t from t in c.tags where t = 'b')"));
}

static void what_is_no_condition_is_refused(void **state)
{
    struct error err;
    bool answer;

    assert_fails(ask(*state, "select * from c", &answer, &err), &err, ERROR_BAD_QUERY);
    assert_fails(ask(*state, "from c where", &answer, &err), &err, ERROR_BAD_QUERY);
    assert_fails(ask(*state, "from c where d.a = 1", &answer, &err), &err, ERROR_BAD_QUERY);
    assert_fails(ask(*state, "from c where c.a = @p", &answer, &err), &err, ERROR_BAD_QUERY);
    assert_fails(ask(*state, "from c where udf.f(c)", &answer, &err), &err,
                 ERROR_QUERY_NOT_SUPPORTED);
}

static void a_condition_may_not_work_for_ever(void **state)
{
    struct error err;
    bool answer;

    assert_fails(
        ask(*state,
            "from c where exists(select value 1 from a in (select value "
            "StringSplit(REPLICATE(CONCAT(c.id, ','), 5000), ',')) join b in (select value "
            "StringSplit(REPLICATE(CONCAT(c.id, ','), 5000), ',')) where a != a)",
            &answer, &err),
        &err, ERROR_QUERY_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_condition_holds_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(undefined_does_not_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(system_properties_can_be_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(a_subquery_may_look_into_arrays, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_condition_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_condition_may_not_work_for_ever, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
