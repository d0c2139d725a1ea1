#include "front/table/route.h"

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

static bool parse(struct arena *arena, const char *target, struct table_route *ret_route,
                  struct error *err)
{
    struct slice path = slice_of_text(target), query = SLICE_NONE;
    struct table_parameters parameters;

    (void)slice_split(path, '?', &path, &query);
    return table_parameters_parse(query, arena, &parameters, err) &&
           table_route_parse(path, &parameters, arena, ret_route, err);
}

static struct table_route route(struct arena *arena, const char *target)
{
    struct table_route route;
    struct error err;

    assert_ok(parse(arena, target, &route, &err), &err);
    return route;
}

static void every_path_is_found_with_and_without_an_account(void **state)
{
    static const struct {
        const char *path;
        enum table_resource resource;
    } cases[] = {
        {"Tables", TABLE_TABLES},
        {"Tables()", TABLE_TABLES},
        {"Tables('abc')", TABLE_ONE},
        {"abc", TABLE_ENTITIES},
        {"abc()", TABLE_ENTITIES},
        {"abc?comp=acl", TABLE_ACCESS},
        {"abc(PartitionKey='a',RowKey='b')", TABLE_ENTITY},
        {"abc(RowKey='b',PartitionKey='a')", TABLE_ENTITY},
        {"$batch", TABLE_BATCH},
        {"?restype=service&comp=properties", TABLE_PROPERTIES},
        {"?restype=service&comp=stats", TABLE_STATS},
        {"$metadata", TABLE_METADATA},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[100];
        struct table_route found;

        snprintf(text, sizeof text, "/%s", cases[i].path);
        found = route(*state, text);
        assert_int_equal(found.resource, cases[i].resource);
        assert_null(found.account.data);
        if (!strchr(cases[i].path, '?')) {
            snprintf(text, sizeof text, "/%s/", cases[i].path);
            assert_int_equal(route(*state, text).resource, cases[i].resource);
        }
        snprintf(text, sizeof text, "/acme/%s", cases[i].path);
        found = route(*state, text);
        assert_int_equal(found.resource, cases[i].resource);
        assert_slice_equal(found.account, SLICE("acme"));
        assert_slice_equal(found.prefix, SLICE("/acme"));
        if (found.resource == TABLE_ENTITY)
            assert_slice_equal(found.keys.row, SLICE("b"));
    }
    assert_int_equal(route(*state, "/acme?restype=service&comp=properties").resource,
                     TABLE_PROPERTIES);
}

static void keys_are_decoded_once_and_their_quotes_undoubled(void **state)
{
    struct table_route found =
        route(*state, "/t(PartitionKey='it''s%20%2525',RowKey='%27%27,RowKey=''x')");

    assert_slice_equal(found.keys.partition, SLICE("it's %25"));
    assert_slice_equal(found.keys.row, SLICE("',RowKey='x"));
    found = route(*state, "/t(PartitionKey='',RowKey='')");
    assert_non_null(found.keys.partition.data);
    assert_int_equal(found.keys.row.len, 0);
}

static void a_secondary_location_is_the_account(void **state)
{
    struct table_route found = route(*state, "/acme-secondary/Tables");

    assert_slice_equal(found.account, SLICE("acme"));
    assert_true(found.secondary);
    found = route(*state, "/acme-secondary/acme/?restype=service&comp=stats");
    assert_int_equal(found.resource, TABLE_STATS);
    found = route(*state, "/acme-secondary/acme/people()");
    assert_int_equal(found.resource, TABLE_ENTITIES);
    assert_slice_equal(found.table, SLICE("people"));
    assert_slice_equal(found.prefix, SLICE("/acme-secondary/acme"));
    found = route(*state, "/acme-secondary/acme()");
    assert_slice_equal(found.table, SLICE("acme"));
}

static void what_is_no_path_is_refused(void **state)
{
    static const char *const paths[] = {
        "",
        "t",
        "/t(",
        "/t(x)",
        "/t(PartitionKey='a')",
        "/Tables('a",
        "/t(%zz)",
        "/Tables(abc)",
        "/t?a=%z",
        "/%ff",
        "/t(PartitionKey='a',RowKey='b')x",
    };

    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct table_route found;
        struct error err;

        assert_fails(parse(*state, paths[i], &found, &err), &err, ERROR_BAD_REQUEST);
    }
}

static void limits_count_characters_not_bytes(void **state UNUSED)
{
    assert_int_equal(table_text_units(SLICE("a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80")), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_path_is_found_with_and_without_an_account, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(keys_are_decoded_once_and_their_quotes_undoubled, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_secondary_location_is_the_account, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_path_is_refused, setup, teardown),
        cmocka_unit_test(limits_count_characters_not_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
