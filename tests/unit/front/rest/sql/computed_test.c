#include "front/rest/sql/computed.h"

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

static bool check(struct arena *arena, const char *definitions, struct error *err)
{
    return sql_computed_check(value_of(arena, definitions).document, arena, NULL, err);
}

static void a_good_definition_is_taken(void **state)
{
    struct error err;

    assert_ok(check(*state, "[]", &err), &err);
    assert_ok(check(*state,
                    "[{\"name\":\"cp_a\",\"query\":\"SELECT VALUE LOWER(c.a) FROM c\"},"
                    "{\"name\":\"cp_b\",\"query\":\"SELECT VALUE {b: c.b} FROM c\"}]",
                    &err),
              &err);
}

static void a_bad_definition_is_refused(void **state)
{
    static const char *const bad[] = {
        "[1]",
        "[{\"name\":\"a\"}]",
        "[{\"name\":5,\"query\":\"SELECT VALUE c.a FROM c\"}]",
        "[{\"name\":\"\",\"query\":\"SELECT VALUE c.a FROM c\"}]",
        "[{\"name\":\"id\",\"query\":\"SELECT VALUE c.a FROM c\"}]",
        "[{\"name\":\"_ts\",\"query\":\"SELECT VALUE c.a FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT c.a FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE c.a\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE 1\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE c.a FROM c WHERE c.b\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE COUNT(1) FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE RAND() FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE udf.f(c) FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE EXISTS(SELECT VALUE 1) FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE c.a FROM c ORDER BY c.a\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE @p FROM c\"}]",
        "[{\"name\":\"a\",\"query\":\"SELECT VALUE c FROM c\"},{\"name\":\"a\",\"query\":\"\"}]",
    };
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (check(*state, bad[i], &err))
            fail_msg("%s was taken", bad[i]);
        assert_int_equal(err.code, ERROR_BAD_QUERY);
    }
}

static void there_are_at_most_twenty(void **state)
{
    CLEANUP(buf_done) struct buf text;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (int i = 0; i <= SQL_COMPUTED_MAX; i++)
        buf_printf(&text, "%s{\"name\":\"cp_%d\",\"query\":\"SELECT VALUE c.a FROM c\"}",
                   i ? "," : "[", i);
    BUF_APPEND(&text, "]");
    buf_append_byte(&text, 0);
    assert_fails(check(*state, (char *)text.data, &err), &err, ERROR_BAD_QUERY);
}

static void a_definition_is_found_by_name(void **state)
{
    struct slice list =
        value_of(*state, "[{\"name\":\"a\",\"query\":\"x\"},{\"name\":\"b\",\"query\":\"y\"}]")
            .document;
    struct slice query;

    assert_true(sql_computed_find(list, SLICE("b"), &query));
    assert_slice_equal(query, SLICE("y"));
    assert_false(sql_computed_find(list, SLICE("c"), &query));
    assert_false(sql_computed_find(SLICE_NONE, SLICE("a"), &query));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_good_definition_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_definition_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(there_are_at_most_twenty, setup, teardown),
        cmocka_unit_test_setup_teardown(a_definition_is_found_by_name, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
