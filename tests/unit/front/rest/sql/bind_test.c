#include "fixture.h"

static bool bind(struct arena *arena, const char *text, const char *parameters,
                 struct sql_error *ret_error, struct error *err)
{
    return sql_bind(parsed(arena, text), value_of(arena, parameters).document, arena, ret_error,
                    err);
}

static void every_mention_gets_its_value(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_query *query =
        bound(arena, "SELECT TOP @n @a, (SELECT VALUE @b) FROM c WHERE c.x = @a OFFSET @n LIMIT @n",
              "[{\"name\":\"@b\",\"value\":[1]},{\"name\":\"@n\",\"value\":5},"
              "{\"name\":\"@a\",\"value\":null},{\"name\":\"@unused\",\"value\":1}]");

    assert_int_equal(query->parameters.count, 6);
    assert_int_equal(query->top->parameter.value->int32, 5);
    assert_int_equal(first_of(query)->parameter.value->type, DOCUMENT_NULL);
    assert_int_equal(query->where->binary.right->parameter.value->type, DOCUMENT_NULL);
    assert_int_equal(first_of(query->items[1].expr->subquery.query)->parameter.value->type,
                     DOCUMENT_ARRAY);
}

static void a_parameter_without_value_is_undefined(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_query *query = bound(arena, "SELECT @a", "[{\"name\":\"@a\"}]");

    assert_int_equal(first_of(query)->parameter.value->type, DOCUMENT_UNDEFINED);
}

static void a_name_that_is_not_given_is_told_with_its_place(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_error error;
    struct error err;

    assert_fails(bind(arena, "SELECT @a, @B", "[{\"name\":\"@a\",\"value\":1},{\"name\":\"@b\"}]",
                      &error, &err),
                 &err, ERROR_BAD_QUERY);
    assert_string_equal(error.code, "SC2001");
    assert_int_equal(error.span.start, 11);
    assert_slice_equal(error.message, SLICE("Identifier '@B' could not be resolved."));
    assert_fails(sql_bind(parsed(arena, "SELECT @a"), SLICE_NONE, arena, &error, &err), &err,
                 ERROR_BAD_QUERY);
}

static void parameters_of_another_shape_are_refused(void **state UNUSED)
{
    static const char *const refused[] = {
        "[1]",
        "[{}]",
        "[{\"name\":1,\"value\":1}]",
        "[{\"name\":\"a\",\"value\":1}]",
        "[{\"name\":\"@\",\"value\":1}]",
        "[{\"name\":\"@a\",\"value\":1},{\"name\":\"@a\",\"value\":2}]",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        assert_fails(bind(arena, "SELECT 1", refused[i], NULL, &err), &err, ERROR_BAD_QUERY);
    assert_ok(bind(arena, "SELECT @a",
                   "[{\"name\":\"@a\",\"value\":1},{\"name\":\"@a\",\"value\":1}]", NULL, &err),
              &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mention_gets_its_value),
        cmocka_unit_test(a_parameter_without_value_is_undefined),
        cmocka_unit_test(a_name_that_is_not_given_is_told_with_its_place),
        cmocka_unit_test(parameters_of_another_shape_are_refused),
    };
    return cmocka_run_group_tests_name("front/rest/sql/bind", tests, NULL, NULL);
}
