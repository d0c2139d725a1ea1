#include "front/rest/sql/rebind.h"

#include "front/rest/sql/fixture.h"

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

static struct sql_prepared prepared(struct arena *arena, const char *text, const char *parameters)
{
    struct slice array = parameters ? value_of(arena, parameters).document : SLICE_NONE;
    struct sql_prepared made;
    struct error err;

    assert_ok(sql_prepare(slice_of_text(text), array, NULL, arena, &made, NULL, &err), &err);
    return made;
}

static bool possible(struct arena *arena, const char *text, const char *parameters)
{
    struct sql_prepared made = prepared(arena, text, parameters);

    return sql_rebind_is_possible(&made);
}

static void parameters_that_are_only_looked_at_can_change(void **state)
{
    static const char *const texts[] = {
        "SELECT * FROM c WHERE c.a = @p",
        "SELECT * FROM c WHERE @p < c.a AND c.b BETWEEN @p AND @q",
        "SELECT * FROM c WHERE STARTSWITH(c.a, @p) OR ARRAY_CONTAINS(c.t, @q)",
        "SELECT c.a = @p AS x, c.b FROM c ORDER BY c.b",
        "SELECT TOP 5 c.a FROM c WHERE NOT (c.a != @p)",
        "SELECT c.a, COUNT(1) FROM c WHERE c.b > @p GROUP BY c.a",
        "SELECT VALUE SUM(c.a) FROM c WHERE c.b > @p",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (!possible(*state, texts[i],
                      "[{\"name\":\"@p\",\"value\":5},{\"name\":\"@q\",\"value\":7}]"))
            fail_msg("%s", texts[i]);
}

static void parameters_that_became_something_else_cannot(void **state)
{
    static const char *const texts[] = {
        "SELECT * FROM c WHERE c.a = @p + 1",
        "SELECT * FROM c WHERE c.a IN (@p, @q)",
        "SELECT * FROM c WHERE c[@s] = 1",
        "SELECT * FROM c WHERE c.a LIKE @s",
        "SELECT TOP @p * FROM c",
        "SELECT * FROM c OFFSET @p LIMIT @q",
        "SELECT * FROM c WHERE c.a = 1 OR @p = 5",
        "SELECT VALUE @p",
        "SELECT VALUE [@p] FROM c",
        "SELECT * FROM c WHERE EXISTS(SELECT VALUE x FROM x IN c.t WHERE x = @p)",
        "SELECT c.a > @p AS x FROM c GROUP BY c.a > @p",
        "SELECT * FROM c WHERE @b AND c.a = 1",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (possible(*state, texts[i],
                     "[{\"name\":\"@p\",\"value\":5},{\"name\":\"@q\",\"value\":7},"
                     "{\"name\":\"@s\",\"value\":\"x\"},{\"name\":\"@b\",\"value\":true}]"))
            fail_msg("%s", texts[i]);
}

static void a_text_without_parameters_can_always_be_used_again(void **state)
{
    assert_true(possible(*state, "SELECT VALUE 1", NULL));
    assert_true(possible(*state, "SELECT * FROM c WHERE c.a IN (1, 2) AND c.b LIKE 'x%'", NULL));
}

static struct slice key_of(struct arena *arena, const char *text, const char *parameters,
                           const char *computed, const struct document_names *names)
{
    CLEANUP(buf_done) struct buf key;
    struct sql_compile_options options = {.names = names};

    buf_init(&key, BUF_DEFAULT_MAX);
    if (computed)
        options.computed = value_of(arena, computed).document;
    if (!sql_rebind_key(slice_of_text(text), value_of(arena, parameters).document, &options, &key))
        return SLICE_NONE;
    return arena_copy(arena, buf_slice(&key));
}

static void assert_differs(struct slice a, struct slice b)
{
    assert_true(a.len > 0);
    assert_false(slice_equal(a, b));
}

static void the_key_is_of_all_that_compiling_looks_at(void **state)
{
    static const char text[] = "SELECT * FROM c WHERE c.a = @p";
    const struct document_names *mongo = definition_names(DEFINITION_IDENTITY_MONGO);
    struct slice key = key_of(*state, text, "[{\"name\":\"@p\",\"value\":5}]", NULL, NULL);

    assert_true(key.len > 0);
    assert_slice_equal(key_of(*state, text, "[{\"name\":\"@p\",\"value\":6}]", NULL, NULL), key);
    assert_differs(key_of(*state, "SELECT * FROM c WHERE c.b = @p",
                          "[{\"name\":\"@p\",\"value\":5}]", NULL, NULL),
                   key);
    assert_differs(key_of(*state, text, "[{\"name\":\"@p\",\"value\":\"5\"}]", NULL, NULL), key);
    assert_differs(key_of(*state, text, "[{\"name\":\"@q\",\"value\":5}]", NULL, NULL), key);
    assert_differs(key_of(*state, text, "[{\"name\":\"@p\",\"value\":5}]",
                          "[{\"name\":\"x\",\"query\":\"SELECT VALUE c.a FROM c\"}]", NULL),
                   key);
    assert_differs(key_of(*state, text, "[{\"name\":\"@p\",\"value\":5}]", NULL, mongo), key);
}

static void what_is_odd_is_not_kept(void **state)
{
    char longer[5000];

    assert_null(key_of(*state, "SELECT @p",
                       "[{\"name\":\"@p\",\"value\":1},{\"name\":\"@p\",\"value\":1}]", NULL, NULL)
                    .data);
    assert_null(key_of(*state, "SELECT @p", "[{\"value\":1}]", NULL, NULL).data);
    assert_null(key_of(*state, "SELECT @p", "[7]", NULL, NULL).data);
    memset(longer, ' ', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_null(key_of(*state, longer, "[]", NULL, NULL).data);
}

static void other_values_make_another_fingerprint(void **state)
{
    static const char text[] = "SELECT * FROM c WHERE c.a = @p";
    struct slice six = value_of(*state, "[{\"name\":\"@p\",\"value\":6}]").document;
    struct sql_prepared made = prepared(*state, text, "[{\"name\":\"@p\",\"value\":5}]");
    struct sql_prepared fresh = prepared(*state, text, "[{\"name\":\"@p\",\"value\":6}]");

    sql_rebind(&made, slice_of_text(text), six, &(struct sql_compile_options){0});
    assert_int_equal(made.plan.fingerprint, fresh.plan.fingerprint);
    assert_int_equal(made.plan.binding, fresh.plan.binding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parameters_that_are_only_looked_at_can_change, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(parameters_that_became_something_else_cannot, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_text_without_parameters_can_always_be_used_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_key_is_of_all_that_compiling_looks_at, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_odd_is_not_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(other_values_make_another_fingerprint, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
