#include "front/rest/token.h"

#include "support/check.h"
#include "support/documents.h"
#include "support/rest_bench.h"

#define ACCOUNT CATALOGUE_ACCOUNT_DEFAULT

static const struct child_place users = {CHILD_USER, SLICE(ACCOUNT), SLICE("d"), {0}};
static const struct child_place permissions = {CHILD_PERMISSION, SLICE(ACCOUNT), SLICE("d"),
                                               SLICE("u")};

static struct catalogue_child *child(struct rest_bench *bench, const struct child_place *place,
                                     const char *json)
{
    struct catalogue_child *made;
    struct error err;

    assert_ok(catalogue_child_create(bench->bench->catalogue, place,
                                     document_of(bench->arena, json), &made, &err),
              &err);
    return made;
}

/* Two containers, a user, and something of each kind in the first container. */
static int setup(void **state)
{
    struct rest_bench *bench;

    rest_bench_setup(state);
    bench = *state;
    bench_database(bench->bench, ACCOUNT, "d", 0);
    bench_container(bench->bench, ACCOUNT, "d", BENCH_BODY("c"), 0);
    bench_container(bench->bench, ACCOUNT, "d", BENCH_BODY("other"), 0);
    catalogue_child_unref(child(bench, &users, "{\"id\":\"u\"}"));
    return 0;
}

/* A token of a new permission. */
static const char *token(struct rest_bench *bench, const char *id, const char *mode,
                         const char *resource, const char *key)
{
    struct slice body = arena_printf(
        bench->arena, "{\"id\":\"%s\",\"permissionMode\":\"%s\",\"resource\":\"%s\"%s%s}", id, mode,
        resource, key ? ",\"resourcePartitionKey\":" : "", key ? key : "");
    CLEANUP(catalogue_child_unref)
    struct catalogue_child *permission = child(bench, &permissions, arena_text(bench->arena, body));
    struct rest_bench_call *call =
        rest_bench_call(bench, "GET", "/dbs/d/users/u/permissions/p", REST_READ);
    struct slice made = rest_token_make(&call->call, permission, REST_TOKEN_SECONDS_MIN);

    rest_bench_done(call);
    return arena_text(bench->arena, made);
}

static bool allows(struct rest_bench *bench, const char *token, const char *path,
                   enum rest_verb verb, const char *key, struct error *err)
{
    struct rest_bench_call *call = rest_bench_call(bench, "GET", path, verb);
    bool fine;

    rest_bench_header(call, "authorization", token);
    if (key)
        rest_bench_header(call, "x-ms-documentdb-partitionkey", key);
    fine = rest_authorize(&call->call, err);
    rest_bench_done(call);
    return fine;
}

static const struct {
    enum rest_resource resource;
    const char *feed, *one;
} places[] = {
    {REST_DATABASES, "/dbs", "/dbs/d"},
    {REST_CONTAINERS, "/dbs/d/colls", "/dbs/d/colls/other"},
    {REST_ITEMS, "/dbs/d/colls/other/docs", "/dbs/d/colls/other/docs/i"},
    {REST_PKRANGES, "/dbs/d/colls/other/pkranges", "/dbs/d/colls/other/pkranges/0"},
    {REST_PROCEDURES, "/dbs/d/colls/other/sprocs", "/dbs/d/colls/other/sprocs/s"},
    {REST_TRIGGERS, "/dbs/d/colls/other/triggers", "/dbs/d/colls/other/triggers/t"},
    {REST_FUNCTIONS, "/dbs/d/colls/other/udfs", "/dbs/d/colls/other/udfs/f"},
    {REST_CONFLICTS, "/dbs/d/colls/other/conflicts", "/dbs/d/colls/other/conflicts/x"},
    {REST_PARTITION_DELETE, "/dbs/d/colls/other/operations/partitionkeydelete",
     "/dbs/d/colls/other/operations/partitionkeydelete"},
    {REST_USERS, "/dbs/d/users", "/dbs/d/users/u"},
    {REST_PERMISSIONS, "/dbs/d/users/u/permissions", "/dbs/d/users/u/permissions/p"},
    {REST_ENCRYPTION_KEYS, "/dbs/d/clientencryptionkeys", "/dbs/d/clientencryptionkeys/k"},
    {REST_OFFERS, "/offers", "/offers/AbCd"},
    {REST_ADDRESSES, "/addresses", "/addresses/a"},
    {REST_MEDIA, "/media", "/media/m"},
    {REST_ATTACHMENTS, "/dbs/d/colls/other/docs/i/attachments",
     "/dbs/d/colls/other/docs/i/attachments"},
    {REST_SCHEMAS, "/dbs/d/colls/other/schemas", "/dbs/d/colls/other/schemas/s"},
    {REST_TOPOLOGY, "/topology", "/topology/t"},
};

static void every_operation_is_refused_to_a_token_of_another_container(void **state)
{
    struct rest_bench *bench = *state;
    const char *all = token(bench, "p", "All", "dbs/d/colls/c", NULL);
    const char *item = token(bench, "q", "All", "dbs/d/colls/c/docs/i", NULL);
    size_t tried = 0;
    struct error err;

    static_assert(ARRAY_LEN(places) == REST_RESOURCE_COUNT - 1, "all resources but the account");
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        for (int verb = 0; verb < REST_VERB_COUNT; verb++) {
            if (!rest_operation_find(places[i].resource, (enum rest_verb)verb))
                continue;
            tried++;
            for (int single = 0; single < 2; single++) {
                const char *path = single ? places[i].one : places[i].feed;

                assert_fails(allows(bench, all, path, (enum rest_verb)verb, "[\"x\"]", &err), &err,
                             ERROR_FORBIDDEN);
                assert_fails(allows(bench, item, path, (enum rest_verb)verb, "[\"x\"]", &err), &err,
                             ERROR_FORBIDDEN);
            }
        }
    assert_true(tried > 50);
    assert_ok(allows(bench, all, "/", REST_READ, NULL, &err), &err);
}

/* What carries tokens, is the account's alone, or stands above the token's resource. */
static void nothing_hands_out_more_than_was_given(void **state)
{
    struct rest_bench *bench = *state;
    const char *of_database = token(bench, "p", "All", "dbs/d", NULL);
    const char *of_user = token(bench, "q", "All", "dbs/d/users/u", NULL);
    struct error err;

    assert_ok(allows(bench, of_database, "/dbs/d/colls/c/docs/i", REST_READ, NULL, &err), &err);
    assert_ok(allows(bench, of_user, "/dbs/d/users/u", REST_READ, NULL, &err), &err);
    assert_fails(allows(bench, of_database, "/dbs/d/users/u/permissions", REST_LIST, NULL, &err),
                 &err, ERROR_FORBIDDEN);
    assert_fails(allows(bench, of_user, "/dbs/d/users/u/permissions/q", REST_READ, NULL, &err),
                 &err, ERROR_FORBIDDEN);
    assert_fails(allows(bench, of_database, "/dbs", REST_LIST, NULL, &err), &err, ERROR_FORBIDDEN);
    assert_fails(allows(bench, of_user, "/dbs/d/colls/c", REST_READ, NULL, &err), &err,
                 ERROR_FORBIDDEN);
}

static void a_token_to_read_is_refused_every_operation_that_writes(void **state)
{
    struct rest_bench *bench = *state;
    const char *read = token(bench, "p", "Read", "dbs/d/colls/other", NULL);
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        for (int verb = 0; verb < REST_VERB_COUNT; verb++) {
            const struct rest_operation *operation =
                rest_operation_find(places[i].resource, (enum rest_verb)verb);

            if (operation && operation->run && operation->access != REST_ACCESS_READ)
                assert_fails(allows(bench, read, places[i].one, (enum rest_verb)verb, NULL, &err),
                             &err, ERROR_FORBIDDEN);
        }
    assert_ok(allows(bench, read, "/dbs/d/colls/other/docs/i", REST_READ, NULL, &err), &err);
}

static void every_operation_on_items_must_name_the_key_of_a_bound_token(void **state)
{
    struct rest_bench *bench = *state;
    const char *bound = token(bench, "p", "All", "dbs/d/colls/c", "[\"x\"]");
    struct error err;

    for (int verb = 0; verb < REST_VERB_COUNT; verb++) {
        const struct rest_operation *operation =
            rest_operation_find(REST_ITEMS, (enum rest_verb)verb);
        const char *path = "/dbs/d/colls/c/docs/i";

        if (!operation || verb == REST_PLAN || verb == REST_BATCH)
            continue;
        assert_ok(allows(bench, bound, path, (enum rest_verb)verb, "[\"x\"]", &err), &err);
        assert_fails(allows(bench, bound, path, (enum rest_verb)verb, "[\"y\"]", &err), &err,
                     ERROR_FORBIDDEN);
        assert_fails(allows(bench, bound, path, (enum rest_verb)verb, "[null]", &err), &err,
                     ERROR_FORBIDDEN);
        assert_fails(allows(bench, bound, path, (enum rest_verb)verb, "[]", &err), &err,
                     ERROR_FORBIDDEN);
        assert_fails(allows(bench, bound, path, (enum rest_verb)verb, NULL, &err), &err,
                     ERROR_FORBIDDEN);
        assert_fails(allows(bench, bound, path, (enum rest_verb)verb, "x", &err), &err,
                     ERROR_BAD_REQUEST);
    }
    assert_ok(allows(bench, bound, "/dbs/d/colls/c", REST_READ, NULL, &err), &err);
    assert_fails(allows(bench, bound, "/dbs/d/colls/c", REST_DELETE, NULL, &err), &err,
                 ERROR_FORBIDDEN);
    assert_fails(allows(bench, bound, "/dbs/d/colls/c/sprocs", REST_CREATE, "[\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
}

static void a_bulk_request_needs_a_token_that_is_not_bound(void **state)
{
    struct rest_bench *bench = *state;
    const char *tokens[] = {token(bench, "p", "All", "dbs/d/colls/c", "[\"x\"]"),
                            token(bench, "q", "All", "dbs/d/colls/c", NULL)};
    struct error err;

    for (int atomic = 0; atomic < 2; atomic++)
        for (int is_free = 0; is_free < 2; is_free++) {
            struct rest_bench_call *call =
                rest_bench_call(bench, "POST", "/dbs/d/colls/c/docs", REST_BATCH);

            rest_bench_header(call, "authorization", tokens[is_free]);
            rest_bench_header(call, "x-ms-documentdb-partitionkey", "[\"x\"]");
            rest_bench_header(call, "x-ms-cosmos-batch-atomic", atomic ? "True" : "False");
            if (atomic || is_free)
                assert_ok(rest_authorize(&call->call, &err), &err);
            else
                assert_fails(rest_authorize(&call->call, &err), &err, ERROR_FORBIDDEN);
            rest_bench_done(call);
        }
}

static void a_prefix_of_a_hierarchical_key_binds_to_all_that_begin_with_it(void **state)
{
    struct rest_bench *bench = *state;
    const char *path = "/dbs/d/colls/deep/docs/i";
    const char *bound;
    struct error err;

    bench_container(bench->bench, ACCOUNT, "d",
                    "{\"id\":\"deep\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"],"
                    "\"kind\":\"MultiHash\",\"version\":2}}",
                    0);
    bound = token(bench, "p", "Read", "dbs/d/colls/deep", "[\"x\"]");
    assert_ok(allows(bench, bound, path, REST_READ, "[\"x\",\"y\"]", &err), &err);
    assert_ok(allows(bench, bound, path, REST_READ, "[\"x\"]", &err), &err);
    assert_fails(allows(bench, bound, path, REST_READ, "[\"z\",\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
    bound = token(bench, "q", "Read", "dbs/d/colls/deep", "[\"x\",\"y\"]");
    assert_fails(allows(bench, bound, path, REST_READ, "[\"x\"]", &err), &err, ERROR_FORBIDDEN);
    assert_fails(allows(bench, bound, path, REST_READ, "[\"x\",\"z\"]", &err), &err,
                 ERROR_FORBIDDEN);
}

static void a_bound_token_of_a_database_reaches_that_key_in_each_container(void **state)
{
    struct rest_bench *bench = *state;
    const char *bound = token(bench, "p", "All", "dbs/d", "[\"x\"]");
    struct error err;

    assert_ok(allows(bench, bound, "/dbs/d/colls/c/docs/i", REST_DELETE, "[\"x\"]", &err), &err);
    assert_ok(allows(bench, bound, "/dbs/d/colls/other/docs/i", REST_READ, "[\"x\"]", &err), &err);
    assert_fails(allows(bench, bound, "/dbs/d/colls/c/docs/i", REST_READ, "[\"y\"]", &err), &err,
                 ERROR_FORBIDDEN);
    assert_fails(allows(bench, bound, "/dbs/d/colls", REST_CREATE, "[\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
    assert_fails(allows(bench, bound, "/dbs/d", REST_DELETE, "[\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
    assert_fails(allows(bench, bound, "/dbs/d/users", REST_CREATE, "[\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
}

static void an_empty_key_binds_to_nothing_and_opens_nothing(void **state)
{
    struct rest_bench *bench = *state;
    const char *empty = token(bench, "p", "All", "dbs/d/colls/c", "[]");
    struct error err;

    assert_fails(allows(bench, empty, "/dbs/d/colls/c/docs/i", REST_READ, "[\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
}

static void a_token_is_good_until_its_time_is_over(void **state)
{
    struct rest_bench *bench = *state;
    const char *text = token(bench, "p", "Read", "dbs/d/colls/c", NULL);
    struct error err;

    bench->wall_ms += (REST_TOKEN_SECONDS_MIN - 1) * 1000;
    assert_ok(allows(bench, text, "/dbs/d/colls/c", REST_READ, NULL, &err), &err);
    bench->wall_ms += 1000;
    assert_fails(allows(bench, text, "/dbs/d/colls/c", REST_READ, NULL, &err), &err,
                 ERROR_FORBIDDEN);
}

static void no_bit_of_a_token_can_be_changed(void **state)
{
    struct rest_bench *bench = *state;
    char *text =
        arena_text(bench->arena, slice_of_text(token(bench, "p", "Read", "dbs/d/colls/c", NULL)));
    struct error err;

    for (size_t i = strlen("type=resource&ver=1&sig="); text[i]; i++) {
        char before = text[i];

        if (before == '=' || before == ';' || text[i + 1] == '=')
            continue; /* padding and the bits it leaves unused say nothing */
        text[i] = before == 'A' ? 'B' : 'A';
        assert_fails(allows(bench, text, "/dbs/d/colls/c", REST_READ, NULL, &err), &err,
                     ERROR_UNAUTHORIZED);
        text[i] = before;
    }
    assert_ok(allows(bench, text, "/dbs/d/colls/c", REST_READ, NULL, &err), &err);
}

static void links_are_read_in_every_spelling(void **state)
{
    static const char *const links[] = {"dbs/d/colls/a b", "/dbs/d/colls/a b/",
                                        "dbs/d/colls/a%20b"};
    struct rest_bench *bench = *state;
    struct error err;

    bench_container(bench->bench, ACCOUNT, "d", BENCH_BODY("a b"), 0);
    bench_container(bench->bench, ACCOUNT, "d", BENCH_BODY("100%"), 0);
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        const char id[] = {(char)('a' + i), '\0'};

        assert_ok(allows(bench, token(bench, id, "Read", links[i], NULL), "/dbs/d/colls/a%20b",
                         REST_READ, NULL, &err),
                  &err);
    }
    assert_ok(allows(bench, token(bench, "z", "Read", "dbs/d/colls/100%", NULL),
                     "/dbs/d/colls/100%25", REST_READ, NULL, &err),
              &err);
}

static void a_link_to_what_no_permission_can_be_given_on_opens_nothing(void **state)
{
    static const char *const links[] = {"x",
                                        "dbs",
                                        "offers/AbCd",
                                        "dbs/d/colls",
                                        "dbs/d/colls/c/docs",
                                        "dbs/d/users/u/permissions/p",
                                        "default/dbs/d/colls/c",
                                        "dbs/none",
                                        "dbs//colls/c",
                                        "_orrery/accounts"};
    struct rest_bench *bench = *state;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        const char id[] = {(char)('a' + i), '\0'};

        assert_fails(allows(bench, token(bench, id, "All", links[i], NULL), "/dbs/d/colls/c",
                            REST_READ, NULL, &err),
                     &err, ERROR_FORBIDDEN);
    }
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, setup, rest_bench_teardown)

/* The catalogue takes it as it is; the front would have bound it to its item. */
static void a_permission_on_an_item_from_before_keys_were_asked_for_is_refused(void **state)
{
    struct rest_bench *bench = *state;
    const char *item = token(bench, "old", "All", "dbs/d/colls/c/docs/i", NULL);
    const char *bound = token(bench, "new", "All", "dbs/d/colls/c/docs/i", "[\"x\"]");
    struct error err;

    assert_fails(allows(bench, item, "/dbs/d/colls/c/docs/i", REST_READ, "[\"x\"]", &err), &err,
                 ERROR_FORBIDDEN);
    assert_contains(err.message, "names no partition key");
    assert_fails(allows(bench, item, "/dbs/d/colls/c", REST_READ, NULL, &err), &err,
                 ERROR_FORBIDDEN);
    assert_ok(allows(bench, bound, "/dbs/d/colls/c/docs/i", REST_READ, "[\"x\"]", &err), &err);
    assert_fails(allows(bench, bound, "/dbs/d/colls/c/docs/i", REST_READ, "[\"y\"]", &err), &err,
                 ERROR_FORBIDDEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(every_operation_is_refused_to_a_token_of_another_container),
        STORY(a_permission_on_an_item_from_before_keys_were_asked_for_is_refused),
        STORY(nothing_hands_out_more_than_was_given),
        STORY(a_token_to_read_is_refused_every_operation_that_writes),
        STORY(every_operation_on_items_must_name_the_key_of_a_bound_token),
        STORY(a_bulk_request_needs_a_token_that_is_not_bound),
        STORY(a_prefix_of_a_hierarchical_key_binds_to_all_that_begin_with_it),
        STORY(a_bound_token_of_a_database_reaches_that_key_in_each_container),
        STORY(an_empty_key_binds_to_nothing_and_opens_nothing),
        STORY(a_token_is_good_until_its_time_is_over),
        STORY(no_bit_of_a_token_can_be_changed),
        STORY(links_are_read_in_every_spelling),
        STORY(a_link_to_what_no_permission_can_be_given_on_opens_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
