#include "front/rest/sql/compile.h"

#include "front/rest/sql/fixture.h"
#include "front/rest/sql/functions.h"

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

static struct query_plan compiled(struct arena *arena, const char *text)
{
    struct query_plan plan;
    struct error err;

    assert_ok(sql_compile(resolved(arena, text, NULL), NULL, arena, &plan, NULL, &err), &err);
    return plan;
}

static void language_and_engine_know_the_same_functions(void **state UNUSED)
{
    for (enum sql_function_id id = 0; id < SQL_FUNCTION_COUNT_ALL; id++) {
        const struct sql_function *named = sql_function(id);
        const struct query_function *built = query_function_find(slice_of_text(named->name));
        enum query_aggregate_kind kind;

        if (named->kind == SQL_FUNCTION_KIND_AGGREGATE) {
            assert_true(query_aggregate_find(slice_of_text(named->name), &kind));
            assert_null(built);
        } else if (named->kind == SQL_FUNCTION_KIND_REFUSED ||
                   named->kind == SQL_FUNCTION_KIND_SCORE) { /* scores become others (ranking.h) */
            assert_null(built);
        } else {
            if (!built)
                fail_msg("the engine has no %s", named->name);
            if (built->takes_vectors) { /* compilers give it all arguments it has */
                assert_int_equal(built->arguments_min, built->arguments_max);
                continue;
            }
            /* The language of a text is an argument that compilers add. */
            assert_int_equal(built->arguments_min, named->arguments_min + built->takes_language);
            if (named->arguments_max == SQL_ARGUMENTS_ANY)
                assert_int_equal(built->arguments_max, QUERY_ARGUMENTS_ANY);
            else
                assert_int_equal(built->arguments_max,
                                 named->arguments_max + built->takes_language);
            /* What depends on the container besides is no function of its arguments alone. */
            assert_int_equal(built->stability == QUERY_STABLE && !built->takes_language &&
                                 !built->in_plane,
                             named->stable);
        }
    }
}

static void an_alias_of_the_container_is_slot_zero(void **state)
{
    struct query_plan plan = compiled(*state, "SELECT VALUE c.a.b FROM c");
    const struct query_step *steps;
    uint32_t slot = 9;
    size_t count;

    assert_true(query_is_path(plan.query.select, &slot, &steps, &count));
    assert_int_equal(slot, 0);
    assert_int_equal(count, 2);
    assert_slice_equal(steps[1].name, SLICE("b"));
    assert_int_equal(plan.query.source_count, 0);
    assert_false(plan.constant);
}

static void an_alias_of_a_path_becomes_the_path(void **state)
{
    struct query_plan plan = compiled(*state, "SELECT VALUE x.b FROM c.a x");
    const struct query_step *steps;
    uint32_t slot = 9;
    size_t count;

    assert_true(query_is_path(plan.query.select, &slot, &steps, &count));
    assert_int_equal(slot, 0);
    assert_int_equal(count, 2);
    assert_int_equal(plan.query.source_count, 1); /* items without it give no row */
}

static void a_query_without_from_is_constant(void **state)
{
    assert_true(compiled(*state, "SELECT 1").constant);
}

static void the_order_of_one_row_is_left_out(void **state)
{
    assert_int_equal(
        compiled(*state, "SELECT VALUE COUNT(1) FROM c ORDER BY c.a").query.order_count, 0);
    assert_int_equal(compiled(*state, "SELECT * FROM c ORDER BY c.a DESC").query.order_count, 1);
}

static void top_is_a_limit(void **state)
{
    assert_int_equal(compiled(*state, "SELECT TOP 3 * FROM c").query.limit, 3);
    assert_int_equal(compiled(*state, "SELECT * FROM c OFFSET 2 LIMIT 5").query.offset, 2);
    assert_int_equal(compiled(*state, "SELECT * FROM c OFFSET 2 LIMIT 5").query.limit, 5);
    assert_true(compiled(*state, "SELECT * FROM c").query.limit == UINT64_MAX);
}

static bool knows_twice(void *asked, struct slice name)
{
    (*(int *)asked)++;
    return slice_equal(name, SLICE("twice"));
}

static void a_user_defined_function_that_is_not_there_is_named(void **state)
{
    struct sql_query *query = resolved(*state, "SELECT VALUE udf.Twice(c.a) FROM c", NULL);
    int asked = 0;
    struct sql_compile_options hosted = {.udf_known = knows_twice, .udf_self = &asked};
    struct query_plan plan;
    struct sql_error fault;
    struct error err;

    assert_fails(sql_compile(query, &hosted, *state, &plan, &fault, &err), &err, ERROR_BAD_QUERY);
    assert_contains(err.message, "udf.Twice");
    assert_int_equal(fault.span.start, 13);
    assert_int_equal(asked, 1);
}

static void a_user_defined_function_needs_a_host(void **state)
{
    struct sql_query *query = resolved(*state, "SELECT VALUE udf.twice(c.a) FROM c", NULL);
    int asked = 0;
    struct sql_compile_options hosted = {.udf_known = knows_twice, .udf_self = &asked};
    struct query_plan plan;
    struct sql_error fault;
    struct error err;

    assert_fails(sql_compile(query, NULL, *state, &plan, &fault, &err), &err,
                 ERROR_QUERY_NOT_SUPPORTED);
    assert_contains(err.message, "twice");
    assert_true(fault.located);
    assert_int_equal(fault.span.start, 13);
    assert_ok(sql_compile(query, &hosted, *state, &plan, NULL, &err), &err);
}

static void more_variables_than_a_row_has_are_refused(void **state)
{
    CLEANUP(buf_done) struct buf text;
    struct query_plan plan;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    BUF_APPEND(&text, "SELECT COUNT(c.a) AS a");
    for (int i = 0; i < QUERY_SLOTS_MAX; i++)
        buf_printf(&text, ", SUM(c.a) AS a%d", i);
    BUF_APPEND(&text, " FROM c");
    buf_append_byte(&text, 0);
    assert_fails(
        sql_compile(resolved(*state, (char *)text.data, NULL), NULL, *state, &plan, NULL, &err),
        &err, ERROR_TOO_LARGE);
}

static uint64_t fingerprint(struct arena *arena, const char *text, const char *parameters,
                            const char *computed)
{
    struct sql_compile_options options = {.computed = computed ? value_of(arena, computed).document
                                                               : SLICE_NONE};
    struct sql_prepared prepared;
    struct error err;

    assert_ok(sql_prepare(slice_of_text(text), value_of(arena, parameters).document, &options,
                          arena, &prepared, NULL, &err),
              &err);
    return prepared.plan.fingerprint;
}

static void a_fingerprint_is_of_text_parameters_and_computed_properties(void **state)
{
    const char *text = "SELECT * FROM c WHERE c.a = @p", *one = "[{\"name\":\"@p\",\"value\":1}]",
               *two = "[{\"name\":\"@p\",\"value\":2}]",
               *computed = "[{\"name\":\"a\",\"query\":\"SELECT VALUE c.b FROM c\"}]";
    uint64_t first = fingerprint(*state, text, one, NULL);

    assert_true(first == fingerprint(*state, text, one, NULL));
    assert_true(first != fingerprint(*state, text, two, NULL));
    assert_true(first != fingerprint(*state, "SELECT * FROM c WHERE c.b = @p", one, NULL));
    assert_true(first != fingerprint(*state, text, one, computed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(language_and_engine_know_the_same_functions),
        cmocka_unit_test_setup_teardown(an_alias_of_the_container_is_slot_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(an_alias_of_a_path_becomes_the_path, setup, teardown),
        cmocka_unit_test_setup_teardown(a_query_without_from_is_constant, setup, teardown),
        cmocka_unit_test_setup_teardown(the_order_of_one_row_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(top_is_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_user_defined_function_needs_a_host, setup, teardown),
        cmocka_unit_test_setup_teardown(a_user_defined_function_that_is_not_there_is_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(more_variables_than_a_row_has_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fingerprint_is_of_text_parameters_and_computed_properties,
                                        setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
