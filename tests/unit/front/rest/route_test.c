#include "front/rest/route.h"

#include "support/check.h"

struct story {
    struct arena *arena;
    struct rest_route route;
};

static int setup(void **state)
{
    struct story *story = MEMORY_NEW(struct story);

    story->arena = arena_new();
    *state = story;
    return 0;
}

static int teardown(void **state)
{
    struct story *story = *state;

    arena_free(story->arena);
    memory_free(story);
    return 0;
}

static const struct rest_route *route(struct story *story, const char *path)
{
    struct error err;

    assert_ok(rest_route_parse(slice_of_text(path), SLICE_NONE, story->arena, &story->route, &err),
              &err);
    return &story->route;
}

static void refused(struct story *story, const char *path, enum error_code code)
{
    struct error err;

    assert_fails(
        rest_route_parse(slice_of_text(path), SLICE_NONE, story->arena, &story->route, &err), &err,
        code);
}

static void every_place_of_the_api_is_found(void **state)
{
    static const struct {
        const char *path;
        enum rest_resource resource;
        bool single;
        const char *type, *link;
    } places[] = {
        {"/", REST_ACCOUNT, true, "", ""},
        {"/dbs", REST_DATABASES, false, "dbs", ""},
        {"/dbs/d", REST_DATABASES, true, "dbs", "dbs/d"},
        {"/dbs/d/colls", REST_CONTAINERS, false, "colls", "dbs/d"},
        {"/dbs/d/colls/c", REST_CONTAINERS, true, "colls", "dbs/d/colls/c"},
        {"/dbs/d/colls/c/docs", REST_ITEMS, false, "docs", "dbs/d/colls/c"},
        {"/dbs/d/colls/c/docs/i", REST_ITEMS, true, "docs", "dbs/d/colls/c/docs/i"},
        {"/dbs/d/colls/c/pkranges", REST_PKRANGES, false, "pkranges", "dbs/d/colls/c"},
        {"/dbs/d/colls/c/sprocs/p", REST_PROCEDURES, true, "sprocs", "dbs/d/colls/c/sprocs/p"},
        {"/dbs/d/colls/c/triggers", REST_TRIGGERS, false, "triggers", "dbs/d/colls/c"},
        {"/dbs/d/colls/c/udfs", REST_FUNCTIONS, false, "udfs", "dbs/d/colls/c"},
        {"/dbs/d/colls/c/conflicts", REST_CONFLICTS, false, "conflicts", "dbs/d/colls/c"},
        {"/dbs/d/colls/c/operations/partitionkeydelete", REST_PARTITION_DELETE, true,
         "partitionkey", "dbs/d/colls/c"},
        {"/dbs/d/users/u", REST_USERS, true, "users", "dbs/d/users/u"},
        {"/dbs/d/users/u/permissions", REST_PERMISSIONS, false, "permissions", "dbs/d/users/u"},
        {"/dbs/d/users/u/permissions/p", REST_PERMISSIONS, true, "permissions",
         "dbs/d/users/u/permissions/p"},
        {"/dbs/d/clientencryptionkeys/k", REST_ENCRYPTION_KEYS, true, "clientencryptionkeys",
         "dbs/d/clientencryptionkeys/k"},
        {"/offers", REST_OFFERS, false, "offers", ""},
        {"/offers/AbCd", REST_OFFERS, true, "offers", "offers/AbCd"},
    };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const struct rest_route *found = route(*state, places[i].path);

        if (found->resource != places[i].resource || found->single != places[i].single)
            fail_msg("%s is resource %d, single %d", places[i].path, found->resource,
                     found->single);
        assert_slice_equal(found->type, slice_of_text(places[i].type));
        assert_slice_equal(found->link, slice_of_text(places[i].link));
        assert_null(found->account.data);
    }
}

static void names_are_told_by_position_not_by_word(void **state)
{
    const struct rest_route *found = route(*state, "/dbs/colls/colls/docs/docs/dbs");

    assert_int_equal(found->resource, REST_ITEMS);
    assert_slice_equal(found->database, SLICE("colls"));
    assert_slice_equal(found->owner, SLICE("docs"));
    assert_slice_equal(found->id, SLICE("dbs"));
}

static void escapes_are_decoded_and_kept_as_sent(void **state)
{
    const struct rest_route *found = route(*state, "/dbs/d/colls/c/docs/a%20b%2Fc%25");

    assert_slice_equal(found->id, SLICE("a b/c%"));
    assert_slice_equal(found->link, SLICE("dbs/d/colls/c/docs/a b/c%"));
    assert_slice_equal(found->link_raw, SLICE("dbs/d/colls/c/docs/a%20b%2Fc%25"));
}

static void a_question_mark_belongs_to_the_id_of_an_item(void **state)
{
    struct story *story = *state;
    struct error err;

    assert_ok(rest_route_parse(SLICE("/dbs/d/colls/c/docs/what"), SLICE("is%20it"), story->arena,
                               &story->route, &err),
              &err);
    assert_slice_equal(story->route.id, SLICE("what?is it"));
    assert_ok(rest_route_parse(SLICE("/dbs/d/colls/c/docs/what"), SLICE(""), story->arena,
                               &story->route, &err),
              &err);
    assert_slice_equal(story->route.id, SLICE("what?"));
    assert_ok(rest_route_parse(SLICE("/dbs/d"), SLICE("x=1"), story->arena, &story->route, &err),
              &err);
    assert_slice_equal(story->route.id, SLICE("d"));
}

static void an_account_stands_before_everything_else(void **state)
{
    const struct rest_route *found = route(*state, "/acme/dbs/d");

    assert_slice_equal(found->account, SLICE("acme"));
    assert_slice_equal(found->prefix, SLICE("/acme"));
    assert_slice_equal(found->link, SLICE("dbs/d"));
    assert_int_equal(route(*state, "/acme")->resource, REST_ACCOUNT);
    assert_int_equal(route(*state, "/acme/")->resource, REST_ACCOUNT);
}

static void slashes_at_the_end_mean_nothing(void **state)
{
    assert_int_equal(route(*state, "/dbs/")->resource, REST_DATABASES);
    assert_slice_equal(route(*state, "/dbs/d/")->link, SLICE("dbs/d"));
    assert_slice_equal(route(*state, "/dbs/d/colls/")->link, SLICE("dbs/d"));
    assert_slice_equal(route(*state, "/acme/dbs/d/colls/c/docs/i//")->link,
                       SLICE("dbs/d/colls/c/docs/i"));
    assert_int_equal(route(*state, "/addresses/")->resource, REST_ADDRESSES);
}

static void what_is_nowhere_is_refused(void **state)
{
    refused(*state, "", ERROR_BAD_REQUEST);
    refused(*state, "dbs", ERROR_BAD_REQUEST);
    refused(*state, "/dbs//colls", ERROR_BAD_REQUEST);
    refused(*state, "/dbs/%", ERROR_BAD_REQUEST);
    refused(*state, "/dbs/%4", ERROR_BAD_REQUEST);
    refused(*state, "/dbs/%zz", ERROR_BAD_REQUEST);
    refused(*state, "/acme/nowhere", ERROR_NOT_FOUND);
    refused(*state, "/_orrery/nodes", ERROR_NOT_FOUND); /* a front of its own */
    refused(*state, "/dbs/d/tables", ERROR_NOT_FOUND);
    refused(*state, "/dbs/d/users/u/docs", ERROR_NOT_FOUND);
    refused(*state, "/dbs/d/colls/c/permissions", ERROR_NOT_FOUND);
    refused(*state, "/dbs/d/colls/c/docs/i/more", ERROR_NOT_FOUND);
    refused(*state, "/dbs/d/colls/c/operations", ERROR_NOT_FOUND);
    refused(*state, "/dbs/d/colls/c/operations/other", ERROR_NOT_FOUND);
    refused(*state, "/a/b/c/d/e/f/g/h/i/j/k/l/m/n", ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_place_of_the_api_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_told_by_position_not_by_word, setup, teardown),
        cmocka_unit_test_setup_teardown(escapes_are_decoded_and_kept_as_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_mark_belongs_to_the_id_of_an_item, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_account_stands_before_everything_else, setup, teardown),
        cmocka_unit_test_setup_teardown(slashes_at_the_end_mean_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_nowhere_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
