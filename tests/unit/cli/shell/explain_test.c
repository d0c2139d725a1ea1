#include "cli/shell/explain.h"

#include "document/json.h"
#include "support/check.h"

static void add(struct shell_explained *explained, const char *json, struct arena *arena)
{
    CLEANUP(buf_done) struct buf document;
    struct error err;

    buf_init(&document, BUF_DEFAULT_MAX);
    assert_ok(document_json_read(slice_of_text(json), NULL, &document, &err), &err);
    shell_explained_add(explained, buf_slice(&document), arena);
}

static const char page[] =
    "{\"access\":{\"kind\":\"index\",\"index\":{\"path\":\"/a/?\",\"ranges\":2,"
    "\"estimatedEntries\":256},\"filterSettled\":true,\"ordered\":false,\"backwards\":true},"
    "\"operator\":\"stream\",\"partitions\":{\"read\":1,\"all\":4},"
    "\"actual\":{\"indexEntries\":10,\"itemsLoaded\":5,\"itemsMatched\":4,\"rows\":3},"
    "\"charge\":{\"total\":3.5,\"partitions\":2.3,\"index\":1.2},"
    "\"advice\":[{\"path\":\"/b/?\",\"text\":\"an index on /b/? would have helped\"}]}";

static void a_plan_is_shown_as_a_tree(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_explained explained = {0};
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    add(&explained, page, arena);
    shell_explained_append(&explained, &out);
    assert_slice_equal(
        buf_slice(&out),
        SLICE("plan\n"
              "  access: index, backwards, filter settled by it\n"
              "    index /a/?, 2 ranges; 256 or more entries counted in advance in the first "
              "partition\n"
              "  operator: stream\n"
              "  partitions: 1 of 4\n"
              "  read: 10 index entries, 5 items, of which 4 match\n"
              "  rows: 3\n"
              "  charge: 3.50 RU\n"
              "    partitions     2.30\n"
              "    index          1.20\n"
              "  advice\n"
              "    an index on /b/? would have helped\n"));
}

static void a_plan_names_the_view_that_answered_and_why_others_did_not(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_explained explained = {0};
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    add(&explained,
        "{\"access\":{\"kind\":\"scan\"},\"operator\":\"stream\",\"partitions\":{\"read\":1,"
        "\"all\":2},\"view\":{\"id\":\"by-email\",\"lagMs\":3,\"insteadOfPartitions\":16},"
        "\"viewsNotUsed\":[{\"id\":\"open\",\"reason\":\"it is being built\"}]}",
        arena);
    shell_explained_append(&explained, &out);
    buf_append_byte(&out, '\0');
    assert_non_null(strstr((const char *)out.data, "  partitions: 1 of 2\n"
                                                   "  through the view by-email, 3 ms behind, "
                                                   "instead of 16 partitions of its source\n"
                                                   "  not through the view open: it is being "
                                                   "built\n"));
}

static void figures_of_all_pages_are_added_up(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_explained explained = {0};
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    add(&explained, page, arena);
    add(&explained, page, arena);
    shell_explained_append(&explained, &out);
    buf_append_byte(&out, '\0');
    assert_contains((char *)out.data, "plan of the first page, figures of all\n");
    assert_contains((char *)out.data, "read: 20 index entries, 10 items, of which 8 match\n");
    assert_contains((char *)out.data, "charge: 7.00 RU\n");
}

static void an_answer_without_a_plan_is_told(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct shell_explained explained = {0};
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    add(&explained, "{}", arena);
    shell_explained_append(&explained, &out);
    assert_slice_equal(buf_slice(&out), SLICE("plan: the server gave none\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_shown_as_a_tree),
        cmocka_unit_test(a_plan_names_the_view_that_answered_and_why_others_did_not),
        cmocka_unit_test(figures_of_all_pages_are_added_up),
        cmocka_unit_test(an_answer_without_a_plan_is_told),
    };
    return cmocka_run_group_tests_name("cli/shell/explain", tests, NULL, NULL);
}
