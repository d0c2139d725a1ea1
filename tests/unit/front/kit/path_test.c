#include "front/kit/path.h"

#include "support/check.h"

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

static void segments_are_kept_as_sent_and_decoded(void **state)
{
    struct front_path path;
    struct error err;

    assert_ok(front_path_split(SLICE("/dbs/a%20b/"), *state, &path, &err), &err);
    assert_int_equal(path.count, 2);
    assert_slice_equal(path.raw[1], SLICE("a%20b"));
    assert_slice_equal(path.decoded[1], SLICE("a b"));
    assert_null(path.account.data);
    assert_slice_equal(front_path_join(path.decoded, path.count, *state), SLICE("dbs/a b"));
}

static void what_is_no_root_is_an_account(void **state)
{
    struct front_path path;
    struct error err;

    assert_ok(front_path_split(SLICE("/a%2Db/_orrery/nodes"), *state, &path, &err), &err);
    assert_slice_equal(path.account, SLICE("a-b"));
    assert_slice_equal(path.prefix, SLICE("/a%2Db"));
    assert_int_equal(path.count, 2);
    assert_slice_equal(path.decoded[0], SLICE("_orrery"));
}

static void broken_and_endless_paths_are_refused(void **state)
{
    struct front_path path;
    struct error err;

    assert_fails(front_path_split(SLICE("dbs"), *state, &path, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(front_path_split(SLICE("/dbs//c"), *state, &path, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(front_path_split(SLICE("/dbs/%4"), *state, &path, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(front_path_split(SLICE("/1/2/3/4/5/6/7/8/9/10/11/12/13"), *state, &path, &err),
                 &err, ERROR_NOT_FOUND);
}

/* Whoever is sent a path by front_path_begins finds the word as its first segment, and no other
 * path has it there. */
static void a_word_is_found_where_splitting_finds_it(void **state)
{
    static const char *const paths[] = {"/_orrery",
                                        "/_orrery/nodes",
                                        "/%5forrery/nodes",
                                        "/%5Forrery",
                                        "/acme/_orrery/nodes",
                                        "/acme/%5forrery",
                                        "/a%2Dvery%2Dlong%2Dname/_orrery",
                                        "/dbs/_orrery",
                                        "/%64bs/_orrery",
                                        "/dbs/d/colls/_orrery",
                                        "/acme/dbs/_orrery",
                                        "/acme/acme/_orrery",
                                        "/_orreryx",
                                        "/acme",
                                        "/"};
    struct front_path path;
    struct error err;
    size_t found = 0;

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        bool begins = front_path_begins(slice_of_text(paths[i]), SLICE("_orrery"));

        assert_ok(front_path_split(slice_of_text(paths[i]), *state, &path, &err), &err);
        if (begins != (path.count && slice_equal(path.decoded[0], SLICE("_orrery"))))
            fail_msg("%s", paths[i]);
        found += begins;
    }
    assert_int_equal(found, 7);
    assert_false(front_path_begins(SLICE(""), SLICE("_orrery")));
}

static void a_door_is_behind_the_root_and_an_account_at_most(void **state UNUSED)
{
    static const struct {
        const char *path;
        bool is;
    } rows[] = {
        {"/_orrery/mongo/shop", true},
        {"/acme/_orrery/mongo/shop", true},
        {"/_orrery/mongo", false},
        {"/_orrery/mongox/shop", false},
        {"/_orrery/x/mongo/shop", false},
        {"/dbs/_orrery/mongo/shop", false},
        {"/a/b/_orrery/mongo/shop", false},
        {"/acme/_orrery/x/_orrery/mongo/shop", false},
        {"/_orrery/_orrery/mongo/x", false},
        {"/", false},
        {"", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (front_path_is_door(slice_of_text(rows[i].path), SLICE("mongo")) != rows[i].is)
            fail_msg("%s", rows[i].path);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(segments_are_kept_as_sent_and_decoded),
        STORY(what_is_no_root_is_an_account),
        STORY(broken_and_endless_paths_are_refused),
        STORY(a_word_is_found_where_splitting_finds_it),
        STORY(a_door_is_behind_the_root_and_an_account_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
