#include "front/rest/views/query.h"

#include "support/check.h"
#include "support/documents.h"

static bool query_try(enum definition_view_form form, const char *text,
                      struct rest_view_query **ret_query, struct error *err)
{
    const struct definition_view view = {.form = form, .query = slice_of_text(text)};

    return rest_view_query_new(&view, ret_query, err);
}

static void row_expect(struct arena *arena, enum definition_view_form form, const char *text,
                       const char *document, const char *wanted)
{
    CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
    struct slice row;
    struct error err;

    assert_ok(query_try(form, text, &query, &err), &err);
    assert_ok(
        rest_view_query_row(query, document_of(arena, document), SLICE("rid"), arena, &row, &err),
        &err);
    if (!wanted) {
        assert_null(row.data);
        return;
    }
    assert_true(slice_equal(row, document_of(arena, wanted)));
}

static void a_row_is_known_by_its_source_and_keeps_the_id_under_another_name(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *item = "{\"id\":\"7\",\"a\":1,\"b\":{\"c\":2},\"_id\":9}";

    row_expect(arena, DEFINITION_VIEW_MATERIALIZED, "SELECT c.id, c.a, c.none FROM c", item,
               "{\"id\":\"rid\",\"_id\":\"7\",\"a\":1}");
    row_expect(arena, DEFINITION_VIEW_SECONDARY, "SELECT c.a FROM c", item,
               "{\"id\":\"rid\",\"a\":1}");
    row_expect(arena, DEFINITION_VIEW_MATERIALIZED, "SELECT * FROM c", item,
               "{\"id\":\"rid\",\"_id\":\"7\",\"a\":1,\"b\":{\"c\":2}}");
    row_expect(arena, DEFINITION_VIEW_OWN, "SELECT c._id FROM c", item,
               "{\"id\":\"rid\",\"_id\":9}");
    row_expect(arena, DEFINITION_VIEW_OWN, "SELECT c.b.c, c.a + 1 AS more FROM c WHERE c.a = 1",
               item, "{\"id\":\"rid\",\"c\":2,\"more\":2}");
    row_expect(arena, DEFINITION_VIEW_OWN, "SELECT c.a FROM c WHERE c.a = 2", item, NULL);
}

static void what_does_not_follow_from_the_item_alone_is_refused(void **state UNUSED)
{
    static const char *const texts[] = {
        "SELECT VALUE c.a FROM c",
        "SELECT c.a FROM c WHERE c.b = @b",
        "SELECT RAND() AS r FROM c",
        "SELECT udf.f(c.a) AS r FROM c",
        "SELECT c.a FROM c WHERE c._ts > 1",
        "SELECT c.a AS _rid FROM c",
        "SELECT t.a FROM c JOIN t IN c.t",
        "SELECT t.a FROM t IN c.t",
        "SELECT (SELECT VALUE 1) AS r FROM c",
        "SELECT 1 AS one",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
        struct error err;

        assert_fails(query_try(DEFINITION_VIEW_OWN, texts[i], &query, &err), &err,
                     ERROR_VIEW_UNFIT);
    }
}

static void the_forms_of_the_service_select_properties_alone(void **state UNUSED)
{
    static const char *const texts[] = {
        "SELECT c.a AS b FROM c",
        "SELECT c.a.b FROM c",
        "SELECT UPPER(c.a) FROM c",
        "SELECT c.a FROM c WHERE c.a = 1",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
        struct error err;

        assert_fails(query_try(DEFINITION_VIEW_MATERIALIZED, texts[i], &query, &err), &err,
                     ERROR_VIEW_UNFIT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_known_by_its_source_and_keeps_the_id_under_another_name),
        cmocka_unit_test(what_does_not_follow_from_the_item_alone_is_refused),
        cmocka_unit_test(the_forms_of_the_service_select_properties_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
