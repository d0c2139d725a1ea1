#include "fixture.h"

#include "document/bson.h"

static const char *path_text(struct arena *arena, const struct document_path *path)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_path_append(path, &text);
    return arena_text(arena, buf_slice(&text));
}

static void an_expression_is_a_path_through_the_aliases(void **state UNUSED)
{
    static const struct {
        const char *text, *path; /* NULL: none */
    } known[] = {
        {"SELECT c.a FROM c", "/a"},
        {"SELECT c.a.b['c d'] FROM c", "/a/b/\"c d\""},
        {"SELECT r.a FROM root r", "/a"},
        {"SELECT x.b FROM c.a AS x", "/a/b"},
        {"SELECT a.b FROM c.a", "/a/b"},
        {"SELECT t.n FROM t IN c.tags", "/tags/[]/n"},
        {"SELECT s FROM c JOIN t IN c.tags JOIN s IN t.sizes", "/tags/[]/sizes/[]"},
        {"SELECT t FROM c JOIN t IN root.tags", "/tags/[]"},
        {"SELECT VALUE v FROM root JOIN (SELECT VALUE root.a FROM root JOIN t IN root.tags) v",
         NULL},
        {"SELECT c.a[0] FROM c", NULL},
        {"SELECT c.a[0].b FROM c", NULL},
        {"SELECT x.b FROM c.a[0] x", NULL},
        {"SELECT x.b FROM (SELECT VALUE c FROM c) x", NULL},
        {"SELECT x.b FROM c JOIN x IN @p", NULL},
        {"SELECT LOWER(c.a) FROM c", NULL},
        {"SELECT 1 FROM c", NULL},
        {"SELECT {a: 1}.a FROM c", NULL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const struct sql_query *query =
            resolved(arena, known[i].text, "[{\"name\":\"@p\",\"value\":[]}]");
        struct document_path path;

        if (sql_path(first_of(query), arena, &path) != (known[i].path != NULL))
            fail_msg("%s: a path, or none", known[i].text);
        if (known[i].path)
            assert_string_equal(path_text(arena, &path), known[i].path);
    }
}

static void the_whole_item_is_the_empty_path(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_path path;

    assert_true(sql_path(first_of(resolved(arena, "SELECT c FROM c", NULL)), arena, &path));
    assert_int_equal(path.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_is_a_path_through_the_aliases),
        cmocka_unit_test(the_whole_item_is_the_empty_path),
    };
    return cmocka_run_group_tests_name("front/rest/sql/paths", tests, NULL, NULL);
}
