/* Routing as programs do it: the answers are those of the server's own routing. */
#include "orrery/route.h"

#include "partition/map.h"
#include "support/check.h"
#include "support/documents.h"

#define SHARD(id, min, max)                                                                        \
    "{\"id\":\"" id "\",\"minInclusive\":\"" min "\",\"maxExclusive\":\"" max "\",\"node\":\"n" id \
    "\",\"endpoint\":\"http://h/\",\"rangeId\":\"" id "\",\"epoch\":1}"

#define LIST(key, shards)                                                                          \
    "{\"format\":1,\"container\":\"AAA=\",\"version\":7,\"strategy\":\"hash\","                    \
    "\"partitionKey\":" key ",\"shards\":[" shards "]}"

#define KEY "{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define KEYS "{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}"

static struct orrery_shards *list(const char *json)
{
    struct orrery_problem problem = {0};
    struct orrery_shards *shards = orrery_shards_read(json, strlen(json), &problem);

    if (!shards)
        fail_msg("%s", problem.message);
    return shards;
}

static void refused(const char *json, const char *why)
{
    struct orrery_problem problem = {0};

    assert_null(orrery_shards_read(json, strlen(json), &problem));
    if (!strstr(problem.message, why))
        fail_msg("\"%s\" does not say \"%s\"", problem.message, why);
}

static void a_key_is_in_the_shard_the_server_would_put_it_in(void **state UNUSED)
{
    struct orrery_shards *shards =
        list(LIST(KEY, SHARD("3", "", "10") "," SHARD("4", "10", "25") "," SHARD("9", "25", "FF")));
    const struct partition_definition definition = {.kind = PARTITION_HASH_V2, .path_count = 1};
    size_t seen[3] = {0};

    assert_int_equal(orrery_shards_version(shards), 7);
    assert_int_equal(orrery_shards_count(shards), 3);
    for (int i = 0; i < 300; i++) {
        CLEANUP(buf_done) struct buf routing;
        CLEANUP(buf_done) struct buf hex;
        char text[32], key[64], got[64];
        struct document_value value;
        struct partition_key parsed;
        const struct orrery_shard *shard;

        (void)snprintf(text, sizeof text, "tenant-%d", i);
        (void)snprintf(key, sizeof key, "[\"%s\"]", text);
        value = document_string(slice_of_text(text));
        parsed = partition_key_of(&definition, &value, 1);
        buf_init(&routing, BUF_DEFAULT_MAX);
        buf_init(&hex, BUF_DEFAULT_MAX);
        partition_route(&definition, &parsed, &routing);
        partition_epk_hex(buf_slice(&routing), &hex);
        assert_int_equal(orrery_route_key(shards, key, strlen(key), got, sizeof got, NULL),
                         hex.len);
        assert_true(slice_equal(slice_of_text(got), buf_slice(&hex)));
        shard = orrery_route(shards, key, strlen(key), NULL);
        assert_true(strcmp(got, shard->min) >= 0 && strcmp(got, shard->max) < 0);
        seen[shard - orrery_shards_at(shards, 0)]++;
    }
    assert_true(seen[0] && seen[1] && seen[2]);
    assert_string_equal(orrery_shards_at(shards, 2)->node, "n9");
    assert_string_equal(orrery_shards_at(shards, 2)->range_id, "9");
    orrery_shards_free(shards);
}

static void a_prefix_leads_to_all_shards_that_may_hold_it(void **state UNUSED)
{
    struct orrery_shards *shards =
        list(LIST(KEYS, SHARD("1", "", "20") "," SHARD("2", "20", "FF")));
    size_t count;

    assert_string_equal(orrery_route_all(shards, "[]", 2, &count, NULL)->id, "1");
    assert_int_equal(count, 2);
    assert_ptr_equal(orrery_route_all(shards, "[\"a\"]", 5, &count, NULL),
                     orrery_route(shards, "[\"a\",1]", 7, NULL));
    assert_int_equal(count, 1);
    orrery_shards_free(shards);
}

static void what_is_no_key_is_told(void **state UNUSED)
{
    struct orrery_shards *shards = list(LIST(KEY, SHARD("1", "", "FF")));
    struct orrery_problem problem;
    char hex[4];

    assert_null(orrery_route(shards, "\"a\"", 3, &problem));
    assert_true(strlen(problem.message) > 0);
    assert_null(orrery_route(shards, "[\"a\",\"b\"]", 9, NULL));
    assert_null(orrery_route(shards, "[[1]]", 5, &problem));
    assert_int_equal(orrery_route_key(shards, "[", 1, hex, sizeof hex, &problem), 0);
    /* Cut, as snprintf does. */
    assert_int_equal(orrery_route_key(shards, "[1]", 3, hex, sizeof hex, NULL), 32);
    assert_int_equal(strlen(hex), 3);
    assert_int_equal(orrery_route_key(shards, "[1]", 3, NULL, 0, NULL), 32);
    orrery_shards_free(shards);
    orrery_shards_free(NULL);
}

static void a_list_that_is_none_is_refused(void **state UNUSED)
{
    refused("", "");
    refused("[]", "");
    refused("{}", "no shard list");
    refused("{\"format\":2}", "newer form");
    refused(LIST(KEY, ""), "no shards");
    refused(LIST(KEY, SHARD("1", "", "20")), "");
    refused(LIST(KEY, SHARD("1", "", "20") "," SHARD("2", "30", "FF")), "");
    refused(LIST(KEY, SHARD("1", "20", "FF") "," SHARD("2", "", "20")), "order of keys");
    refused(LIST(KEY, SHARD("x", "", "FF")), "an id is no number");
    refused(LIST(KEY, SHARD("1", "", "F")), "");
    refused(LIST("1", SHARD("1", "", "FF")), "partitionKey");
    refused("{\"format\":1,\"version\":1,\"strategy\":\"tarot\",\"partitionKey\":" KEY
            ",\"shards\":[" SHARD("1", "", "FF") "]}",
            "not described");
    refused("{\"format\":1,\"version\":1,\"strategy\":\"tarot\",\"partitionKey\":" KEY
            ",\"orrery\":{\"strategy\":\"tarot\"},\"shards\":[" SHARD("1", "", "FF") "]}",
            "orrery.strategy must be");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_in_the_shard_the_server_would_put_it_in),
        cmocka_unit_test(a_prefix_leads_to_all_shards_that_may_hold_it),
        cmocka_unit_test(what_is_no_key_is_told),
        cmocka_unit_test(a_list_that_is_none_is_refused),
    };

    return cmocka_run_group_tests_name("client/route", tests, NULL, NULL);
}
