#include "front/rest/authorize.h"

#include "front/kit/authorize.h"
#include "support/check.h"
#include "support/rest_bench.h"

static struct slice key_of(const struct rest_bench *bench, enum account_key which)
{
    return slice_of(bench->keys.secrets[which], ACCOUNT_KEY_BYTES);
}

static bool authorize(struct rest_bench_call *call, struct error *err)
{
    bool fine = rest_authorize(&call->call, err);

    rest_bench_done(call);
    return fine;
}

/* A GET of /dbs with this authorization and date. */
static bool with(struct rest_bench *bench, const char *authorization, const char *date,
                 struct error *err)
{
    struct rest_bench_call *call = rest_bench_call(bench, "GET", "/dbs", REST_LIST);

    if (date)
        rest_bench_header(call, "x-ms-date", date);
    if (authorization)
        rest_bench_header(call, "authorization", authorization);
    return authorize(call, err);
}

static const char *path_of(enum rest_resource resource, bool single)
{
    static const char *const paths[REST_RESOURCE_COUNT][2] = {
        [REST_ACCOUNT] = {"/", "/"},
        [REST_DATABASES] = {"/dbs", "/dbs/d"},
        [REST_CONTAINERS] = {"/dbs/d/colls", "/dbs/d/colls/c"},
        [REST_ITEMS] = {"/dbs/d/colls/c/docs", "/dbs/d/colls/c/docs/i"},
        [REST_PKRANGES] = {"/dbs/d/colls/c/pkranges", "/dbs/d/colls/c/pkranges/0"},
        [REST_PROCEDURES] = {"/dbs/d/colls/c/sprocs", "/dbs/d/colls/c/sprocs/s"},
        [REST_TRIGGERS] = {"/dbs/d/colls/c/triggers", "/dbs/d/colls/c/triggers/t"},
        [REST_FUNCTIONS] = {"/dbs/d/colls/c/udfs", "/dbs/d/colls/c/udfs/f"},
        [REST_CONFLICTS] = {"/dbs/d/colls/c/conflicts", "/dbs/d/colls/c/conflicts/x"},
        [REST_PARTITION_DELETE] = {"/dbs/d/colls/c/operations/partitionkeydelete",
                                   "/dbs/d/colls/c/operations/partitionkeydelete"},
        [REST_USERS] = {"/dbs/d/users", "/dbs/d/users/u"},
        [REST_PERMISSIONS] = {"/dbs/d/users/u/permissions", "/dbs/d/users/u/permissions/p"},
        [REST_ENCRYPTION_KEYS] = {"/dbs/d/clientencryptionkeys", "/dbs/d/clientencryptionkeys/k"},
        [REST_OFFERS] = {"/offers", "/offers/AbCd"},
        [REST_ADDRESSES] = {"/addresses", "/addresses"},
        [REST_MEDIA] = {"/media", "/media/m"},
        [REST_ATTACHMENTS] = {"/dbs/d/colls/c/docs/i/attachments",
                              "/dbs/d/colls/c/docs/i/attachments"},
        [REST_SCHEMAS] = {"/dbs/d/colls/c/schemas", "/dbs/d/colls/c/schemas/s"},
        [REST_TOPOLOGY] = {"/topology", "/topology"},
    };

    return paths[resource][single];
}

static bool of_one(enum rest_verb verb)
{
    return verb == REST_READ || verb == REST_EXECUTE || verb == REST_REPLACE ||
           verb == REST_PATCH || verb == REST_DELETE;
}

static void every_key_of_the_account_signs(void **state)
{
    struct rest_bench *bench = *state;
    struct error err;

    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        struct rest_bench_call *call = rest_bench_call(bench, "GET", "/dbs/d", REST_READ);

        rest_bench_sign(bench, call, key_of(bench, (enum account_key)i));
        assert_ok(authorize(call, &err), &err);
        assert_int_equal(call->call.identity.kind, account_key_is_readonly((enum account_key)i)
                                                       ? REST_IDENTITY_READER
                                                       : REST_IDENTITY_OWNER);
    }
}

static void a_key_to_read_is_refused_every_operation_that_writes(void **state)
{
    struct rest_bench *bench = *state;
    size_t writes = 0;
    struct error err;

    for (int resource = 0; resource < REST_RESOURCE_COUNT; resource++)
        for (int verb = 0; verb < REST_VERB_COUNT; verb++) {
            const struct rest_operation *operation =
                rest_operation_find((enum rest_resource)resource, (enum rest_verb)verb);
            struct rest_bench_call *call;

            if (!operation || !operation->run)
                continue;
            call = rest_bench_call(
                bench, "POST", path_of((enum rest_resource)resource, of_one((enum rest_verb)verb)),
                (enum rest_verb)verb);
            rest_bench_sign(bench, call, key_of(bench, ACCOUNT_KEY_PRIMARY_READONLY));
            if (operation->access == REST_ACCESS_READ) {
                assert_ok(authorize(call, &err), &err);
            } else {
                writes++;
                assert_fails(authorize(call, &err), &err, ERROR_FORBIDDEN);
            }
        }
    assert_true(writes > 30);
}

static void the_emulator_key_needs_development(void **state)
{
    struct rest_bench *bench = *state;
    uint8_t secret[ACCOUNT_KEY_BYTES];
    struct error err;

    assert_true(account_key_parse(slice_of_text(account_key_emulator), secret));
    for (int dev = 0; dev < 2; dev++) {
        struct rest_bench_call *call = rest_bench_call(bench, "GET", "/dbs/d", REST_READ);

        bench->options.door.dev = dev;
        rest_bench_sign(bench, call, slice_of(secret, sizeof secret));
        if (dev)
            assert_ok(authorize(call, &err), &err);
        else
            assert_fails(authorize(call, &err), &err, ERROR_UNAUTHORIZED);
    }
}

static void a_wrong_signature_shows_what_is_signed(void **state)
{
    struct rest_bench *bench = *state;
    struct rest_bench_call *call = rest_bench_call(bench, "GET", "/dbs/D/colls", REST_LIST);
    struct error err;

    rest_bench_sign(bench, call, SLICE("not the key"));
    assert_fails(authorize(call, &err), &err, ERROR_UNAUTHORIZED);
    assert_contains(arena_text(bench->arena, call->call.message),
                    "Server used the following payload to sign: 'get\\ncolls\\ndbs/D\\n");
}

static void the_clock_may_be_off_by_fifteen_minutes_each_way(void **state)
{
    struct rest_bench *bench = *state;
    struct error err;

    for (int64_t minutes = -16; minutes <= 16; minutes++) {
        const char *date = rest_bench_date(bench, minutes * 60000);
        const char *authorization = rest_bench_signature(
            bench, key_of(bench, ACCOUNT_KEY_SECONDARY), "get", SLICE("dbs"), SLICE(""), date);

        if (minutes < -15 || minutes > 15)
            assert_fails(with(bench, authorization, date, &err), &err, ERROR_FORBIDDEN);
        else
            assert_ok(with(bench, authorization, date, &err), &err);
    }
}

static void a_link_of_rids_is_signed_by_its_last_in_small_letters(void **state)
{
    struct rest_bench *bench = *state;
    const char *date = rest_bench_date(bench, 0);
    struct rest_bench_call *call =
        rest_bench_call(bench, "GET", "/dbs/AAAAAQ==/colls/AAAAAYAAAAI=", REST_READ);
    struct error err;

    rest_bench_header(call, "x-ms-date", date);
    rest_bench_header(call, "authorization",
                      rest_bench_signature(bench, key_of(bench, ACCOUNT_KEY_PRIMARY), "GET",
                                           SLICE("colls"), SLICE("aaaaayaaaai="), date));
    assert_ok(authorize(call, &err), &err);
}

static void deleting_a_partition_may_be_signed_as_its_container(void **state)
{
    struct rest_bench *bench = *state;
    const char *date = rest_bench_date(bench, 0);
    struct rest_bench_call *call = rest_bench_call(bench, "POST", "/dbs/d/colls/c", REST_DELETE);
    struct error err;

    assert_ok(rest_route_parse(SLICE("/dbs/d/colls/c/operations/partitionkeydelete"), SLICE_NONE,
                               bench->arena, &call->call.route, &err),
              &err);
    rest_bench_header(call, "x-ms-date", date);
    rest_bench_header(call, "authorization",
                      rest_bench_signature(bench, key_of(bench, ACCOUNT_KEY_PRIMARY), "POST",
                                           SLICE("colls"), SLICE("dbs/d/colls/c"), date));
    assert_ok(authorize(call, &err), &err);
}

static void what_is_no_token_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "x",
        "type=master",
        "type=master&ver=1.0",
        "sig=abc",
        "type=master&ver=1.0&sig=",
        "type=master&ver=1.0&sig=AAAA",
        "type=master&ver=1.0&sig=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "type=master&ver=1.0&sig=********************************************",
        "type=aad&ver=1.0&sig=eyJ0",
        "type=sas&ver=1.0&sig=a;b",
        "type=resource&ver=1&sig=a;b;",
        "type=resource&ver=1&sig=",
        "%",
        "%0",
    };
    struct rest_bench *bench = *state;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_fails(with(bench, wrong[i], rest_bench_date(bench, 0), &err), &err,
                     ERROR_UNAUTHORIZED);
    assert_fails(with(bench, NULL, rest_bench_date(bench, 0), &err), &err, ERROR_UNAUTHORIZED);
    assert_fails(with(bench, "type=master&ver=1.0&sig=x", NULL, &err), &err, ERROR_UNAUTHORIZED);
    assert_fails(with(bench, "type=master&ver=1.0&sig=x", "today", &err), &err, ERROR_UNAUTHORIZED);
}

static void a_signature_is_taken_whole_behind_its_name(void **state)
{
    struct rest_bench *bench = *state;
    struct front_authorization parsed;

    assert_true(front_authorization_parse(SLICE("ver%3d1%26type%3Dmaster%26sig%3Da%2b%26b%3D"),
                                          bench->arena, &parsed));
    assert_slice_equal(parsed.type, SLICE("master"));
    assert_slice_equal(parsed.version, SLICE("1"));
    assert_slice_equal(parsed.sig, SLICE("a+&b="));
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, rest_bench_setup, rest_bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(every_key_of_the_account_signs),
        STORY(a_key_to_read_is_refused_every_operation_that_writes),
        STORY(the_emulator_key_needs_development),
        STORY(a_wrong_signature_shows_what_is_signed),
        STORY(the_clock_may_be_off_by_fifteen_minutes_each_way),
        STORY(a_link_of_rids_is_signed_by_its_last_in_small_letters),
        STORY(deleting_a_partition_may_be_signed_as_its_container),
        STORY(what_is_no_token_is_refused),
        STORY(a_signature_is_taken_whole_behind_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
