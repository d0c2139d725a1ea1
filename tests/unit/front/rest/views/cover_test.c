#include "front/rest/views/cover.h"

#include "../sql/fixture.h"

/* The query as one on the view, as text; of one that is none, the reason. */
static const char *covered(struct arena *arena, const char *view, const char *text,
                           const char *parameters)
{
    const struct definition_view definition = {
        .form = DEFINITION_VIEW_OWN, .source_count = 1, .query = slice_of_text(view)};
    struct sql_query *query = resolved(arena, text, parameters);
    struct error err;

    sql_bind_literally(query);
    if (!rest_view_cover(&definition, query, arena, &err)) {
        assert_int_equal(err.code, ERROR_VIEW_UNFIT);
        return arena_text(arena, slice_of_text(err.message));
    }
    return printed(arena, query);
}

static void expect(const char *view, const char *text, const char *wanted)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(covered(arena, view, text, "[{\"name\":\"@p\",\"value\":5}]"),
                        printed(arena, resolved(arena, wanted, NULL)));
}

static void refuse(const char *view, const char *text, const char *reason)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *got = covered(arena, view, text, NULL);

    if (!strstr(got, reason))
        fail_msg("%s: %s", text, got);
}

static void paths_become_those_of_the_columns(void **state UNUSED)
{
    static const char view[] = "SELECT o.id, o.a AS b, o.b AS a, o.x.y.z AS deep FROM o";

    expect(view, "SELECT VALUE c.id FROM c", "SELECT VALUE c._id FROM c");
    expect(view, "SELECT VALUE c.a.q FROM c WHERE c.b = 1 ORDER BY c.a",
           "SELECT VALUE c.b.q FROM c WHERE c.a = 1 ORDER BY c.b");
    expect(view, "SELECT VALUE c[\"x\"][\"y\"].z.w[0] FROM c", "SELECT VALUE c.deep.w[0] FROM c");
    expect(view, "SELECT VALUE [t, u] FROM s JOIN t IN s.a JOIN u IN t.b",
           "SELECT VALUE [t, u] FROM s JOIN t IN s.b JOIN u IN t.b");
    expect(view, "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE a FROM a IN c.a WHERE a = c.id)",
           "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE a FROM a IN c.b WHERE a = c._id)");
    expect(view, "SELECT VALUE c.a[c.b] FROM c WHERE c.id IN (\"1\", c.a) AND c.b = @p",
           "SELECT VALUE c.b[c.a] FROM c WHERE c._id IN (\"1\", c.b) AND c.a = 5");
    expect("SELECT * FROM c", "SELECT VALUE {\"id\": c.id, \"n\": c.n} FROM c",
           "SELECT VALUE {\"id\": c._id, \"n\": c.n} FROM c");
}

/* What a row is called in an answer is the query's to say. */
static void columns_of_the_query_keep_their_names(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct definition_view view = {.source_count = 1,
                                         .query = SLICE("SELECT c.id, c.a AS z FROM c")};
    struct sql_query *query = resolved(arena, "SELECT c.id, c.a FROM c", NULL);
    struct error err;

    assert_ok(rest_view_cover(&view, query, arena, &err), &err);
    assert_true(slice_equal(query->items[0].column, SLICE("id")));
    assert_true(slice_equal(query->items[1].column, SLICE("a")));
}

static void what_a_row_does_not_have_is_refused(void **state UNUSED)
{
    static const char some[] = "SELECT c.id, c.a, c.x.y AS y, c.a / 2 AS half FROM c";
    static const char all[] = "SELECT * FROM c";

    refuse(some, "SELECT VALUE c.b FROM c", "\"b\"");
    refuse(some, "SELECT VALUE c.x FROM c", "\"x\"");
    refuse(some, "SELECT VALUE c.y FROM c", "\"y\"");
    refuse(some, "SELECT VALUE c.half FROM c", "\"half\"");
    refuse(some, "SELECT VALUE c[\"a\" || \"b\"] FROM c", "whole");
    refuse(some, "SELECT * FROM c", "whole");
    refuse(all, "SELECT * FROM c", "whole");
    refuse(all, "SELECT c FROM c", "whole");
    refuse(all, "SELECT VALUE c._ts FROM c", "\"_ts\"");
    refuse(all, "SELECT VALUE c._id FROM c", "\"_id\"");
    refuse(all, "SELECT VALUE 1 FROM c WHERE c._rid = \"x\"", "\"_rid\"");
    refuse(all, "SELECT VALUE udf.f(c.a) FROM c", "user-defined");
    refuse(all, "SELECT VALUE t FROM t IN c.tags", "whole items");
    refuse(all, "SELECT VALUE x FROM (SELECT c.a FROM c) AS x", "whole items");
    refuse(all, "SELECT VALUE 1 FROM c JOIN t IN ROOT.tags", "whole");
    refuse(all, "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE 1 FROM ROOT)", "whole");
    refuse(all, "SELECT VALUE 1", "whole items");
    refuse("SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a", "SELECT VALUE c.a FROM c", "groups");
}

static void a_filter_must_be_among_the_conditions_of_the_query(void **state UNUSED)
{
    static const char view[] = "SELECT c.a FROM c WHERE c.open AND c.n >= 5";

    expect(view, "SELECT VALUE o.a FROM orders o WHERE o.n >= @p AND o.a = 1 AND o.open",
           "SELECT VALUE o.a FROM orders o WHERE o.a = 1");
    expect(view, "SELECT VALUE o.a FROM o WHERE o.open AND o.n >= 5", "SELECT VALUE o.a FROM o");
    expect("SELECT c.a FROM c WHERE c.open", "SELECT VALUE o.a FROM o WHERE o.open",
           "SELECT VALUE o.a FROM o");
    refuse(view, "SELECT VALUE c.a FROM c WHERE c.open", "condition");
    refuse(view, "SELECT VALUE c.a FROM c WHERE c.open AND c.n >= 6", "condition");
    refuse(view, "SELECT VALUE c.a FROM c WHERE (c.open AND c.n >= 5) OR c.a = 1", "condition");
    refuse(view, "SELECT VALUE c.a FROM c", "condition");
    refuse(view, "SELECT VALUE c.a FROM c JOIN o IN c.a WHERE o.open AND o.n >= 5", "condition");
    refuse(view, "SELECT VALUE c.a FROM c WHERE c.open AND c.n >= 5 AND c.n < 9", "\"n\"");
}

static void path_expect(const char *view, const char *key, const char *wanted)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct definition_view definition = {.source_count = 1, .query = slice_of_text(view)};
    struct partition_definition partition;
    struct slice path = SLICE_NONE;
    struct error err;

    assert_ok(partition_definition_read(document_of(arena, key), arena, &partition, &err), &err);
    assert_int_equal(rest_view_cover_path(&definition, &partition, arena, &path), wanted != NULL);
    if (wanted)
        assert_slice_equal(path, slice_of_text(wanted));
}

static void a_view_is_an_index_of_the_property_its_key_is_made_of(void **state UNUSED)
{
    static const char email[] = "{\"paths\":[\"/email\"]}", id[] = "{\"paths\":[\"/_id\"]}";

    path_expect("SELECT * FROM c", email, "/email");
    path_expect("SELECT * FROM c", id, "/id");
    path_expect("SELECT c.id, c.x.y AS email FROM c", email, "/x/y");
    path_expect("SELECT c.id, c.x AS email FROM c", "{\"paths\":[\"/email/host\"]}", "/x/host");
    path_expect("SELECT c.id, c.email FROM c", id, "/id");
    path_expect("SELECT LOWER(c.email) AS email FROM c", email, NULL);
    path_expect("SELECT c.email FROM c WHERE c.open", email, NULL);
    path_expect("SELECT c.email, COUNT(1) AS n FROM c GROUP BY c.email", email, NULL);
    path_expect("SELECT * FROM c",
                "{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_become_those_of_the_columns),
        cmocka_unit_test(columns_of_the_query_keep_their_names),
        cmocka_unit_test(what_a_row_does_not_have_is_refused),
        cmocka_unit_test(a_filter_must_be_among_the_conditions_of_the_query),
        cmocka_unit_test(a_view_is_an_index_of_the_property_its_key_is_made_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
