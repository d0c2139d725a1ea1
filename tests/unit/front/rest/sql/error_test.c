#include "front/rest/sql/error.h"

#include "fixture.h"

static const char *rendered(struct arena *arena, const struct sql_error *error)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    sql_error_render(error, &text);
    return arena_text(arena, buf_slice(&text));
}

static void an_error_is_told_as_the_service_does(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_query *query = parsed(arena, "SELECT BADFUNC(c.a) FROM c");
    struct sql_error error;
    struct error err;

    assert_fails(sql_resolve(query, arena, &error, &err), &err, ERROR_BAD_QUERY);
    assert_int_equal(err.status, 400);
    assert_string_equal(
        rendered(arena, &error),
        "Message: {\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":7,\"end\":14},"
        "\"code\":\"SC2005\",\"message\":\"'BADFUNC' is not a recognized built-in function "
        "name.\"}]}");
    assert_string_equal(err.message, "'BADFUNC' is not a recognized built-in function name.");
}

static void without_code_and_place_it_is_a_list_of_texts(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;
    struct sql_error error;
    struct sql_report report = {arena, &error, &err};

    assert_false(sql_report_whole(&report, ERROR_BAD_QUERY, "no \"%s\"", "way"));
    assert_string_equal(rendered(arena, &error), "Message: {\"Errors\":[\"no \\\"way\\\"\"]}");
    assert_false(sql_report_code(&report, "2206", "no path"));
    assert_string_equal(rendered(arena, &error),
                        "Message: {\"errors\":[{\"severity\":\"Error\",\"code\":2206,\"message\":"
                        "\"no path\"}]}");
    assert_false(sql_report_unsupported(&report, (struct sql_span){1, 2}, "not this"));
    assert_int_equal(err.code, ERROR_QUERY_NOT_SUPPORTED);
    assert_string_equal(rendered(arena, &error),
                        "Message: {\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":1,"
                        "\"end\":2},\"message\":\"not this\"}]}");
}

static void what_is_quoted_is_cut_between_characters(void **state UNUSED)
{
    uint8_t text[300];

    for (size_t i = 0; i < sizeof text; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 3);
    assert_int_equal(sql_excerpt(slice_of(text, sizeof text)).len, 120);
    assert_int_equal(sql_excerpt(slice_of(text + 1, sizeof text - 1)).len, 119);
    assert_int_equal(sql_excerpt(slice_of(text, 120)).len, 120);
    assert_int_equal(sql_excerpt(SLICE("")).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_told_as_the_service_does),
        cmocka_unit_test(without_code_and_place_it_is_a_list_of_texts),
        cmocka_unit_test(what_is_quoted_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("front/rest/sql/error", tests, NULL, NULL);
}
