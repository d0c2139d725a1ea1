/* Identities of any type: what makes two the same, and where an item is found by its own. */
#include "item/locate.h"

#include "document/extended.h"
#include "item/operation.h"
#include "item/shown.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

struct fixture {
    struct test_space test;
    struct arena *arena;
};

static void fixture_init(struct fixture *f, const char *policy)
{
    struct engine *engine;
    struct error err;

    f->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){.connections_max = 2}, &engine,
                          &err),
              &err);
    test_space_init(&f->test, engine,
                    &(struct test_space_options){
                        .policy = policy, .identity = DEFINITION_IDENTITY_MONGO, .partitions = 4});
}

static void fixture_done(struct fixture *f)
{
    test_space_done(&f->test);
    arena_free(f->arena);
}
CLEANUP_VALUE_FN(struct fixture, fixture_done)

static struct document_value typed(struct fixture *f, const char *json)
{
    struct document_value value = value_of(f->arena, json);
    struct error err;

    assert_ok(document_extended_read(&value, f->arena, &value, &err), &err);
    return value;
}

static bool create(struct fixture *f, const char *id, const char *key, struct error *err)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value = typed(f, id);
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, SLICE("_id"), &value);
    document_append_string(&buf, SLICE("pk"), slice_of_text(key));
    document_end(&buf, begin);
    return item_operation_run(
        &(struct item_operation){
            .space = &f->test.space,
            .arena = f->arena,
            .verb = ITEM_CREATE,
            .key = partition_key_extract(&f->test.definition.key, buf_slice(&buf)),
            .id = value,
            .document = arena_copy(f->arena, buf_slice(&buf))},
        err);
}

static const char *const identities[] = {
    "7",
    "2.5",
    "\"text\"",
    "\"7\"",
    "null",
    "true",
    "{}",
    "{\"a\":1,\"b\":2}",
    "{\"b\":2,\"a\":1}",
    "{\"a\":{\"deep\":[[3],4]}}",
    "{\"a\":[]}",
    "{\"$oid\":\"507f1f77bcf86cd799439011\"}",
    "{\"$date\":{\"$numberLong\":\"7\"}}",
    "{\"$timestamp\":{\"t\":1,\"i\":2}}",
    "{\"$binary\":{\"base64\":\"AQI=\",\"subType\":\"00\"}}",
    "{\"$numberDecimal\":\"0.1\"}",
    "{\"$minKey\":1}",
    "{\"$maxKey\":1}",
};

static void an_identity_of_any_type_is_found_under_any_key(void **state UNUSED)
{
    static const char *const policies[] = {NULL, "{\"indexingMode\":\"none\"}"};

    for (size_t p = 0; p < ARRAY_LEN(policies); p++) {
        CLEANUP(fixture_done) struct fixture f;
        struct partition_key found[3];
        struct document_value id;
        struct error err;
        size_t count;

        fixture_init(&f, policies[p]);
        for (size_t i = 0; i < ARRAY_LEN(identities); i++)
            for (size_t k = 0; k <= i % 2; k++)
                assert_ok(create(&f, identities[i], k ? "y" : "x", &err), &err);
        for (size_t i = 0; i < ARRAY_LEN(identities); i++) {
            id = typed(&f, identities[i]);
            assert_ok(
                locate_keys(&f.test.space, &id, ARRAY_LEN(found), f.arena, found, &count, &err),
                &err);
            if (count != 1 + i % 2)
                fail_msg("%s is found %zu times", identities[i], count);
        }
        id = typed(&f, "{\"a\":1}");
        assert_ok(locate_keys(&f.test.space, &id, ARRAY_LEN(found), f.arena, found, &count, &err),
                  &err);
        assert_int_equal(count, 0);
    }
}

static void equal_identities_collide_and_others_do_not(void **state UNUSED)
{
    static const struct {
        const char *first, *second;
        bool same;
    } pairs[] = {
        {"1", "{\"$numberLong\":\"1\"}", true},
        {"1", "{\"$numberDouble\":\"1.0\"}", true},
        {"1", "{\"$numberDecimal\":\"1.00\"}", true},
        {"{\"$numberDouble\":\"-0.0\"}", "0", true},
        {"2.5", "{\"$numberDecimal\":\"2.50\"}", true},
        {"0.1", "{\"$numberDecimal\":\"0.1\"}", false},
        {"{\"$numberLong\":\"9007199254740993\"}", "{\"$numberDouble\":\"9007199254740992.0\"}",
         false},
        {"1", "\"1\"", false},
        {"1", "true", false},
        {"null", "{\"$minKey\":1}", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", false},
        {"{\"a\":1}", "{\"a\":{\"$numberLong\":\"1\"}}", true},
        {"{\"a\":1}", "{\"a\":1,\"b\":null}", false},
        {"{\"$oid\":\"507f1f77bcf86cd799439011\"}", "\"507f1f77bcf86cd799439011\"", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        CLEANUP(fixture_done) struct fixture f;
        struct error err;

        fixture_init(&f, NULL);
        assert_ok(create(&f, pairs[i].first, "x", &err), &err);
        if (create(&f, pairs[i].second, "x", &err) == pairs[i].same)
            fail_msg("%s and %s", pairs[i].first, pairs[i].second);
        if (pairs[i].same)
            assert_int_equal(err.code, ERROR_ITEM_EXISTS);
        assert_ok(create(&f, pairs[i].second, "y", &err), &err);
    }
}

static void what_is_shown_is_taken_back(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_names *names = definition_names(DEFINITION_IDENTITY_MONGO);
    const struct document_names *usual = definition_names(DEFINITION_IDENTITY_ID);
    struct slice item = document_of(arena, "{\"a\":1,\"id\":\"own\",\"_id\":{\"x\":1.5}}");
    struct slice taken;
    struct error err;

    assert_slice_equal(item_shown(usual, item, arena), item);
    assert_slice_equal(
        item_shown(names, item, arena),
        document_of(arena, "{\"id\":\"{\\\"x\\\":1.5}\",\"a\":1,\"_id\":{\"x\":1.5}}"));
    assert_ok(item_taken(names, item_shown(names, item, arena), arena, &taken, &err), &err);
    assert_slice_equal(taken, document_of(arena, "{\"_id\":{\"x\":1.5},\"a\":1}"));
    assert_ok(item_taken(names, document_of(arena, "{\"a\":1,\"id\":\"7\"}"), arena, &taken, &err),
              &err);
    assert_slice_equal(taken, document_of(arena, "{\"_id\":7,\"a\":1}"));
    assert_fails(
        item_taken(names, document_of(arena, "{\"_id\":{\"$oid\":\"x\"}}"), arena, &taken, &err),
        &err, ERROR_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_identity_of_any_type_is_found_under_any_key),
        cmocka_unit_test(equal_identities_collide_and_others_do_not),
        cmocka_unit_test(what_is_shown_is_taken_back),
    };
    return cmocka_run_group_tests_name("item/locate", tests, NULL, NULL);
}
