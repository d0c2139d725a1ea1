#include "container/index_policy.h"

#include "base/clock.h"
#include "document/json.h"
#include "document/order.h"
#include "support/check.h"
#include "support/documents.h"

static const struct index_policy *policy_of(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *policy = NULL;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(json ? document_of(arena, json) : SLICE_NONE, arena, &completed,
                                 &policy, &err),
              &err);
    return policy;
}

/* The entries as lines; each also has to be as long as it says. */
static char *entries_text(struct arena *arena, const struct index_policy *policy, struct slice item)
{
    CLEANUP(buf_done) struct buf buf;
    struct index_entry *entries;
    size_t count;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(index_entries(policy, item, arena, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct slice bytes = entries[i].bytes, again = bytes;

        if (i)
            assert_true(slice_compare(entries[i - 1].bytes, bytes) < 0);
        assert_ok(index_entry_print(&bytes, &buf, &err), &err);
        buf_append_byte(&buf, '\n');
        assert_int_equal(bytes.len, 0);
        assert_ok(index_entry_skip(&again, &err), &err);
        assert_int_equal(again.len, 0);
    }
    return arena_text(arena, buf_slice(&buf));
}

static void assert_entries(const char *policy, const char *item, const char *expected)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(entries_text(arena, policy_of(arena, policy), document_of(arena, item)),
                        expected);
}

#define PATHS(included, excluded)                                                                  \
    "{\"includedPaths\":[" included "],\"excludedPaths\":[" excluded "]}"
#define PATH(text) "{\"path\":\"" text "\"}"

static void every_leaf_is_an_entry_by_default(void **state UNUSED)
{
    assert_entries(NULL,
                   "{\"id\":\"a\",\"n\":1.5,\"deep\":{\"x\":true,\"y\":null},"
                   "\"tags\":[\"b\",\"a\",\"b\"],\"list\":[{\"k\":1},[2]],\"none\":[],\"nil\":{}}",
                   "/deep/x = true\n"
                   "/deep/y = null\n"
                   "/id = \"a\"\n"
                   "/list/[]/[] = 2\n"
                   "/list/[]/k = 1\n"
                   "/n = 1.5\n"
                   "/nil = object\n"
                   "/none = array\n"
                   "/tags/[] = \"a\"\n"
                   "/tags/[] = \"b\"\n");
}

static void nothing_but_id_is_indexed_when_the_mode_is_none(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_entries("{\"indexingMode\":\"none\"}", "{\"id\":\"a\",\"b\":1}", "/id = \"a\"\n");
    assert_entries("{\"indexingMode\":\"none\",\"includedPaths\":[{\"path\":\"/*\"}]}",
                   "{\"id\":\"a\",\"b\":1}", "/id = \"a\"\n");
    assert_true(index_policy_is_none(policy_of(arena, "{\"indexingMode\":\"None\"}")));
    assert_false(index_policy_is_none(policy_of(arena, "{}")));
}

static void id_is_indexed_whatever_is_excluded(void **state UNUSED)
{
    assert_entries(PATHS("", PATH("/*")), "{\"id\":\"a\",\"b\":1}", "/id = \"a\"\n");
    assert_entries(PATHS(PATH("/*"), PATH("/id/?")), "{\"id\":\"a\",\"b\":1}",
                   "/b = 1\n/id = \"a\"\n");
}

static void the_most_precise_path_decides(void **state UNUSED)
{
    const char *item = "{\"a\":{\"b\":{\"c\":1,\"d\":2},\"e\":3},\"f\":4}";

    assert_entries(PATHS(PATH("/*"), PATH("/a/*")), item, "/f = 4\n");
    assert_entries(PATHS(PATH("/*") "," PATH("/a/b/*"), PATH("/a/*")), item,
                   "/a/b/c = 1\n/a/b/d = 2\n/f = 4\n");
    assert_entries(PATHS(PATH("/*") "," PATH("/a/b/*"), PATH("/a/*") "," PATH("/a/b/c/?")), item,
                   "/a/b/d = 2\n/f = 4\n");
    assert_entries(PATHS(PATH("/a/b/d/?"), PATH("/*")), item, "/a/b/d = 2\n");
    assert_entries(PATHS(PATH("/f/?"), PATH("/*") "," PATH("/f/*")), item, "/f = 4\n");
    assert_entries(PATHS(PATH("/*") "," PATH("/f/*"), PATH("/f/?")), "{\"f\":{\"x\":1}}",
                   "/f/x = 1\n");
}

static void elements_are_named_by_brackets(void **state UNUSED)
{
    const char *item = "{\"a\":[{\"b\":1,\"c\":2},{\"b\":3},[4],5]}";

    assert_entries(PATHS(PATH("/a/[]/*"), PATH("/*")), item,
                   "/a/[] = 5\n/a/[]/[] = 4\n/a/[]/b = 1\n/a/[]/b = 3\n/a/[]/c = 2\n");
    assert_entries(PATHS(PATH("/*"), PATH("/a/[]/b/?")), item,
                   "/a/[] = 5\n/a/[]/[] = 4\n/a/[]/c = 2\n");
    assert_entries(PATHS(PATH("/*"), PATH("/a/b/?")), "{\"a\":[{\"b\":1}]}", "/a/[]/b = 1\n");
}

static void a_scalar_included_by_name_is_indexed_when_it_is_missing(void **state UNUSED)
{
    const char *policy = PATHS(PATH("/a/b/?") "," PATH("/l/[]/x/?"), PATH("/*"));

    assert_entries(policy, "{}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":1}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":{\"c\":1}}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":{\"b\":null}}", "/a/b = null\n");
    assert_entries(policy, "{\"a\":{\"b\":[]}}", "");
    assert_entries(policy, "{\"a\":[{\"b\":2}]}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":{\"b\":1},\"l\":[{\"x\":1},{},7]}",
                   "/a/b = 1\n/l/[]/x = undefined\n/l/[]/x = 1\n");
}

static void composites_have_an_entry_for_every_item(void **state UNUSED)
{
    const char *policy =
        "{\"includedPaths\":[],\"excludedPaths\":[{\"path\":\"/*\"}],\"compositeIndexes\":"
        "[[{\"path\":\"/a\"},{\"path\":\"/b/c\",\"order\":\"descending\"}]]}";

    assert_entries(policy, "{\"a\":1,\"b\":{\"c\":\"x\"}}", "(/a asc, /b/c desc) = 1, \"x\"\n");
    assert_entries(policy, "{\"b\":[1]}", "(/a asc, /b/c desc) = undefined, undefined\n");
    assert_entries(policy, "{\"a\":[1],\"b\":{\"c\":{\"z\":1}}}",
                   "(/a asc, /b/c desc) = array, object\n");
}

static void tuples_have_an_entry_for_every_element(void **state UNUSED)
{
    const char *policy = PATHS(PATH("/e/[]/{n, c/d}/?") "," PATH("/{x, y}/?"), PATH("/*"));

    assert_entries(policy, "{\"x\":1,\"e\":[{\"n\":1,\"c\":{\"d\":2}},{\"n\":3},4]}",
                   "/{/x, /y} = 1, undefined\n"
                   "/e/[]/{/n, /c/d} = undefined, undefined\n"
                   "/e/[]/{/n, /c/d} = 1, 2\n"
                   "/e/[]/{/n, /c/d} = 3, undefined\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_leaf_is_an_entry_by_default),
        cmocka_unit_test(nothing_but_id_is_indexed_when_the_mode_is_none),
        cmocka_unit_test(id_is_indexed_whatever_is_excluded),
        cmocka_unit_test(the_most_precise_path_decides),
        cmocka_unit_test(elements_are_named_by_brackets),
        cmocka_unit_test(a_scalar_included_by_name_is_indexed_when_it_is_missing),
        cmocka_unit_test(composites_have_an_entry_for_every_item),
        cmocka_unit_test(tuples_have_an_entry_for_every_element),
    };
    return cmocka_run_group_tests_name("container/index_policy", tests, NULL, NULL);
}
