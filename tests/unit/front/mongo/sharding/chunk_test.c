/* Shard keys, the bounds of chunks, and which document a filter names. */
#include "front/mongo/sharding/chunk.h"

#include "document/json.h"
#include "front/mongo/command/item.h"
#include "front/mongo/sharding/key.h"
#include "support/check.h"

#include <stdlib.h>

static struct slice bson(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value value;
    struct error err;

    buf_init(&out, BUF_DEFAULT_MAX);
    assert_ok(document_json_read_value(slice_of_text(json),
                                       &(struct document_limits){.depth_max = 8, .bytes_max = 4096},
                                       &out, &value, &err),
              &err);
    return arena_copy(arena, value.document);
}

/* The definition of a collection with that shard key. */
static struct definition *definition_by(struct arena *arena, const char *pattern)
{
    struct definition *definition;
    CLEANUP(buf_done) struct buf body;
    struct mongo_shard_key key;
    struct error err;
    size_t begin, orrery;

    buf_init(&body, BUF_DEFAULT_MAX);
    assert_ok(mongo_shard_key_read(bson(arena, pattern), &key, &err), &err);
    begin = document_begin(&body);
    document_append_string(&body, SLICE("id"), SLICE("c"));
    mongo_shard_key_define(&key, SLICE("partitionKey"), &body);
    orrery = document_append_object_begin(&body, SLICE("orrery"));
    document_append_string(&body, SLICE("identity"), SLICE("_id"));
    document_append_string(&body, SLICE("strategy"), mongo_shard_key_strategy(&key));
    document_end(&body, orrery);
    document_end(&body, begin);
    assert_ok(definition_new(buf_slice(&body), NULL, &definition, &err), &err);
    assert_true(mongo_shard_key_is(&definition_fields(definition)->key, &key));
    return definition;
}

static void patterns_are_shown_as_they_were_given(void **state UNUSED)
{
    static const char *const patterns[] = {"{\"a\":\"hashed\"}", "{\"a\":1}",
                                           "{\"a.b c\":1,\"_id\":1}", "{\"_id\":\"hashed\"}"};

    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(definition_unref) struct definition *definition = definition_by(arena, patterns[i]);
        CLEANUP(buf_done) struct buf out;
        CLEANUP(buf_done) struct buf json;
        struct document_value key;
        size_t begin;

        buf_init(&out, BUF_DEFAULT_MAX);
        buf_init(&json, BUF_DEFAULT_MAX);
        begin = document_begin(&out);
        mongo_shard_key_append(&definition_fields(definition)->key, SLICE("key"), &out);
        document_end(&out, begin);
        assert_true(document_find(buf_slice(&out), SLICE("key"), &key));
        document_json_write(key.document, &json);
        assert_slice_equal(buf_slice(&json), slice_of_text(patterns[i]));
    }
}

static void patterns_that_cannot_be_are_refused_by_code(void **state UNUSED)
{
    static const struct {
        const char *pattern;
        int code;
    } cases[] = {{"{}", MONGO_BAD_VALUE},
                 {"{\"a\":-1}", MONGO_BAD_VALUE},
                 {"{\"a\":\"text\"}", MONGO_BAD_VALUE},
                 {"{\"a\":\"hashed\",\"b\":\"hashed\"}", MONGO_BAD_VALUE},
                 {"{\"a..b\":1}", MONGO_BAD_VALUE},
                 {"{\"$a\":1}", MONGO_BAD_VALUE},
                 {"{\"a\":\"hashed\",\"b\":1}", MONGO_NOT_IMPLEMENTED},
                 {"{\"a\":1,\"b\":1,\"c\":1,\"d\":1}", MONGO_NOT_IMPLEMENTED}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct mongo_shard_key key;
        struct error err;

        assert_false(mongo_shard_key_read(bson(arena, cases[i].pattern), &key, &err));
        assert_int_equal(mongo_error_code(&err), cases[i].code);
    }
}

/* A bound in a client's words, as routing key and back. */
static struct slice bound_again(struct arena *arena, const struct partition_definition *key,
                                struct slice bound)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value shown;
    struct slice bytes;
    struct error err;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    assert_ok(mongo_bound_read(key, bound, arena, &bytes, &err), &err);
    begin = document_begin(&out);
    mongo_bound_append(key, bytes, SLICE("b"), &out);
    document_end(&out, begin);
    assert_true(document_find(buf_slice(&out), SLICE("b"), &shown));
    return arena_copy(arena, shown.document);
}

static struct slice bound_of(struct arena *arena, const struct document_value *values, size_t count)
{
    static const char *const names[] = {"a", "b"};
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    for (size_t i = 0; i < count; i++)
        document_append(&out, slice_of_text(names[i]), &values[i]);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static void bounds_of_ranged_keys_are_their_values(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(definition_unref)
    struct definition *definition = definition_by(arena, "{\"a\":1,\"b\":1}");
    const struct partition_definition *key = &definition_fields(definition)->key;
    const struct document_value low = {.type = DOCUMENT_MIN_KEY}, high = {.type = DOCUMENT_MAX_KEY};
    const struct document_value bounds[][2] = {
        {low, low},
        {high, high},
        {document_string(SLICE("x")), {.type = DOCUMENT_INT32, .int32 = 5}},
        {document_string(SLICE("x")), low},
        {document_string(SLICE("x")), high},
        {{.type = DOCUMENT_DATE, .int64 = 1}, document_null()},
    };

    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        struct slice bound = bound_of(arena, bounds[i], 2);

        assert_slice_equal(bound_again(arena, key, bound), bound);
    }
}

static void bounds_of_hashed_keys_are_numbers_of_64_bits(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(definition_unref)
    struct definition *definition = definition_by(arena, "{\"a\":\"hashed\"}");
    const struct partition_definition *key = &definition_fields(definition)->key;
    const int64_t numbers[] = {INT64_MIN + 4, -4, 0, 4, 1234567890123456788, INT64_MAX - 3};
    struct slice before = SLICE(""), bytes;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        const struct document_value number = {.type = DOCUMENT_INT64, .int64 = numbers[i]};
        struct slice bound = bound_of(arena, &number, 1);

        assert_slice_equal(bound_again(arena, key, bound), bound);
        assert_ok(mongo_bound_read(key, bound, arena, &bytes, &err), &err);
        assert_true(slice_compare(before, bytes) < 0);
        before = bytes;
    }
    assert_false(mongo_bound_read(key, bson(arena, "{\"a\":\"x\"}"), arena, &bytes, &err));
    assert_false(mongo_bound_read(key, bson(arena, "{\"b\":1}"), arena, &bytes, &err));
}

static void a_filter_names_one_document_by_its_id_and_whole_key(void **state UNUSED)
{
    static const struct {
        const char *filter;
        bool named;
    } cases[] = {{"{\"_id\":1,\"a\":2,\"b\":3}", true},
                 {"{\"b\":3,\"a\":\"x\",\"_id\":{\"c\":1}}", true},
                 {"{\"_id\":1,\"a\":2}", false},
                 {"{\"_id\":1,\"a\":2,\"b\":3,\"c\":4}", false},
                 {"{\"_id\":1,\"a\":2,\"b\":null}", false},
                 {"{\"_id\":1,\"a\":2,\"b\":{\"$gt\":1}}", false},
                 {"{\"_id\":1,\"a\":2,\"b\":{\"c\":1}}", false},
                 {"{\"_id\":1,\"a\":2,\"b\":[3]}", false},
                 {"{\"a\":2,\"b\":3}", false},
                 {"{}", false}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(definition_unref)
    struct definition *definition = definition_by(arena, "{\"a\":1,\"b\":1}");
    struct mongo_collection collection = {.space = {.definition = definition_fields(definition)}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct document_value id;
        struct partition_key key;

        assert_int_equal(mongo_item_named(&collection, bson(arena, cases[i].filter), &id, &key),
                         cases[i].named);
        if (cases[i].named)
            assert_int_equal(key.count, 2);
    }
}

static void arrays_in_a_shard_key_are_refused_wherever_they_are(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(definition_unref) struct definition *definition = definition_by(arena, "{\"a.b\":1}");
    struct mongo_collection collection = {.space = {.definition = definition_fields(definition)}};
    struct error err;

    assert_ok(mongo_shard_key_check(&collection, bson(arena, "{\"a\":{\"b\":1}}"), &err), &err);
    assert_ok(mongo_shard_key_check(&collection, bson(arena, "{\"a\":1}"), &err), &err);
    assert_ok(mongo_shard_key_check(&collection, bson(arena, "{}"), &err), &err);
    assert_false(mongo_shard_key_check(&collection, bson(arena, "{\"a\":[{\"b\":1}]}"), &err));
    assert_int_equal(mongo_error_code(&err), MONGO_SHARD_KEY_NOT_FOUND);
    assert_false(mongo_shard_key_check(&collection, bson(arena, "{\"a\":{\"b\":[]}}"), &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_shown_as_they_were_given),
        cmocka_unit_test(patterns_that_cannot_be_are_refused_by_code),
        cmocka_unit_test(bounds_of_ranged_keys_are_their_values),
        cmocka_unit_test(bounds_of_hashed_keys_are_numbers_of_64_bits),
        cmocka_unit_test(a_filter_names_one_document_by_its_id_and_whole_key),
        cmocka_unit_test(arrays_in_a_shard_key_are_refused_wherever_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
