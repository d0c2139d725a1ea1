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
        "SELECT COUNT(1) AS n FROM c",
        "SELECT c.a, MAKELIST(c.b) AS l FROM c GROUP BY c.a",
        "SELECT c.a, MAKESET(c.b) AS l FROM c GROUP BY c.a",
        "SELECT c.a, MAX(c._ts) AS t FROM c GROUP BY c.a",
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
        "SELECT c.a AS b FROM c",         "SELECT c.a.b FROM c",
        "SELECT UPPER(c.a) FROM c",       "SELECT c.a FROM c WHERE c.a = 1",
        "SELECT c.a FROM c GROUP BY c.a",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
        struct error err;

        assert_fails(query_try(DEFINITION_VIEW_MATERIALIZED, texts[i], &query, &err), &err,
                     ERROR_VIEW_UNFIT);
    }
}

static struct rest_view_share share_of(const struct rest_view_query *query, const char *document,
                                       struct arena *arena)
{
    struct rest_view_share share;
    struct error err;

    assert_ok(rest_view_query_share(query, document_of(arena, document), arena, &share, &err),
              &err);
    return share;
}

static void an_item_has_a_share_in_one_group(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(rest_view_query_free) struct rest_view_query *query = NULL;
    CLEANUP(rest_view_tally_done) struct rest_view_tally tally;
    struct rest_view_share one, same, other;
    struct document_value n, sum;
    size_t count;
    struct slice row;
    struct error err;

    assert_ok(query_try(DEFINITION_VIEW_OWN,
                        "SELECT c.a, COUNT(1) AS n, SUM(c.b) * 2 AS twice FROM c WHERE c.open "
                        "GROUP BY c.a",
                        &query, &err),
              &err);
    assert_true(rest_view_query_is_grouped(query));
    assert_false(share_of(query, "{\"a\":1,\"b\":2}", arena).in);
    one = share_of(query, "{\"a\":1,\"b\":2,\"open\":true}", arena);
    same = share_of(query, "{\"a\":1.0,\"b\":0.5,\"open\":true}", arena);
    other = share_of(query, "{\"a\":\"1\",\"b\":0.5,\"open\":true}", arena);
    assert_memory_equal(one.digest, same.digest, sizeof one.digest);
    assert_memory_not_equal(one.digest, other.digest, sizeof one.digest);

    const struct query_aggregate_call *calls = rest_view_query_aggregates(query, &count);

    rest_view_tally_init(&tally, calls, count, one.keys, arena);
    assert_ok(rest_view_tally_add(&tally, one.arguments, &err), &err);
    assert_ok(rest_view_tally_add(&tally, same.arguments, &err), &err);
    assert_ok(rest_view_query_group_row(query, one.keys, one.digest, &tally, arena, &row, &err),
              &err);
    assert_true(document_find(row, SLICE("n"), &n) && document_find(row, SLICE("twice"), &sum));
    assert_int_equal(n.int32, 2);
    assert_true(sum.number == 5);
    assert_ok(rest_view_tally_take(&tally, same.arguments, &err), &err);
    assert_ok(rest_view_query_group_row(query, one.keys, one.digest, &tally, arena, &row, &err),
              &err);
    assert_true(document_find(row, SLICE("twice"), &sum) && sum.type == DOCUMENT_INT32 &&
                sum.int32 == 4);
    assert_fails(rest_view_query_path_check(query, SLICE("/twice/x"), &err), &err,
                 ERROR_VIEW_UNFIT);
    assert_ok(rest_view_query_path_check(query, SLICE("/a"), &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_known_by_its_source_and_keeps_the_id_under_another_name),
        cmocka_unit_test(what_does_not_follow_from_the_item_alone_is_refused),
        cmocka_unit_test(the_forms_of_the_service_select_properties_alone),
        cmocka_unit_test(an_item_has_a_share_in_one_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
