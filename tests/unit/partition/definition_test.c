#include "partition/definition.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

static bool read(struct arena *arena, const char *json, struct partition_definition *ret_definition,
                 struct error *err)
{
    return partition_definition_read(document_of(arena, json), arena, ret_definition, err);
}

static void kind_and_version_choose_the_hash(void **state UNUSED)
{
    static const struct {
        const char *json;
        enum partition_kind kind;
        size_t paths;
    } known[] = {
        {"{\"paths\":[\"/pk\"]}", PARTITION_HASH_V1, 1},
        {"{\"paths\":[\"/pk\"],\"kind\":\"Hash\"}", PARTITION_HASH_V1, 1},
        {"{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":1}", PARTITION_HASH_V1, 1},
        {"{\"paths\":[\"/pk\"],\"version\":2}", PARTITION_HASH_V2, 1},
        {"{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}", PARTITION_MULTI_HASH,
         2},
        {"{\"paths\":[\"/a\",\"/b\",\"/c/\\\"d e\\\"\"],\"kind\":\"MultiHash\",\"version\":2}",
         PARTITION_MULTI_HASH, 3},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct partition_definition definition;
        struct error err;

        assert_ok(read(arena, known[i].json, &definition, &err), &err);
        assert_int_equal(definition.kind, known[i].kind);
        assert_int_equal(definition.path_count, known[i].paths);
        assert_int_equal(definition.strategy, PARTITION_STRATEGY_HASH);
        assert_false(definition.system_key);
    }
}

static void what_cannot_be_a_key_is_refused_in_the_words_of_the_service(void **state UNUSED)
{
#define CHARACTERS                                                                                 \
    "Partition key paths must contain only valid characters and not contain a trailing slash or "  \
    "wildcard character."
#define NOT_ACCEPTED(path, position)                                                               \
    "The partition key component definition path '" path                                           \
    "' could not be accepted, failed near position '" position "'. " CHARACTERS
    static const struct {
        const char *json, *message;
    } known[] = {
        {"{\"paths\":[\"id\"]}", NOT_ACCEPTED("id", "0")},
        {"{\"paths\":[\"/a/\"]}", NOT_ACCEPTED("/a/", "3")},
        {"{\"paths\":[\"/a/*\"]}", NOT_ACCEPTED("/a/*", "3")},
        {"{\"paths\":[\"/a b\"]}", NOT_ACCEPTED("/a b", "2")},
        {"{\"paths\":[\"/it's': a\"]}", NOT_ACCEPTED("/it's': a", "3")},
        {"{\"paths\":[\"\"]}", NOT_ACCEPTED("", "0")},
        {"{\"paths\":[\"/a\",\"/b\"]}", "Too many partition key paths"},
        {"{\"paths\":[\"/a\",\"/b\",\"/c\",\"/d\"],\"kind\":\"MultiHash\",\"version\":2}",
         "Too many partition key paths"},
        {"{\"paths\":\"/a\"}", "partition key paths are not an array"},
        {"{\"paths\":[1]}", "partition key path is not a string"},
        {"{\"paths\":[]}", "partition key definition names no path"},
        {"{}", "partition key definition names no path"},
        {"{\"paths\":[\"/a\"],\"kind\":\"Range\"}",
         "partition key kind is neither Hash nor MultiHash but \"Range\""},
        {"{\"paths\":[\"/a\"],\"kind\":1}", "partition key kind is not a string"},
        {"{\"paths\":[\"/a\"],\"version\":3}", "partition key version 3 is neither 1 nor 2"},
        {"{\"paths\":[\"/a\"],\"version\":\"2\"}", "partition key version is neither 1 nor 2"},
        {"{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\"}",
         "partition key kind MultiHash needs version 2"},
        {"{\"paths\":[\"/a\",\"/\\\"a\\\"\"],\"kind\":\"MultiHash\",\"version\":2}",
         "partition key path '/\"a\"' is given twice"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct partition_definition definition;
        struct error err;

        assert_fails(read(arena, known[i].json, &definition, &err), &err, ERROR_BAD_REQUEST);
        assert_string_equal(err.message, known[i].message);
        assert_int_equal(err.status, 400);
    }
}

static void a_system_key_needs_no_path(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition_parts parts = {.system_key = true};
    struct partition_definition definition;
    struct error err;

    assert_ok(partition_definition_build(&parts, arena, &definition, &err), &err);
    assert_true(definition.system_key);
    assert_slice_equal(definition.texts[0], SLICE("/_partitionKey"));
}

/* What the catalogue keeps and clients are shown: version only where it is not 1. */
static void a_definition_is_shown_as_the_service_does_and_reads_back(void **state UNUSED)
{
    static const char *const shown[] = {
        "{\"k\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"}}",
        "{\"k\":{\"paths\":[\"/a/\\\"b c\\\"\"],\"kind\":\"Hash\",\"version\":2}}",
        "{\"k\":{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}}",
        "{\"k\":{\"paths\":[\"/_partitionKey\"],\"kind\":\"Hash\",\"systemKey\":true}}",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        CLEANUP(buf_done) struct buf bson, json;
        struct partition_definition definition, again;
        struct document_value value;
        struct error err;
        size_t document;

        buf_init(&bson, BUF_DEFAULT_MAX);
        buf_init(&json, BUF_DEFAULT_MAX);
        assert_true(document_find(document_of(arena, shown[i]), SLICE("k"), &value));
        assert_ok(partition_definition_read(value.document, arena, &definition, &err), &err);
        document = document_begin(&bson);
        partition_definition_append(&definition, SLICE("k"), &bson);
        document_end(&bson, document);
        document_json_write(buf_slice(&bson), &json);
        assert_slice_equal(buf_slice(&json), slice_of_text(shown[i]));
        assert_true(document_find(buf_slice(&bson), SLICE("k"), &value));
        assert_ok(partition_definition_read(value.document, arena, &again, &err), &err);
        assert_true(partition_definition_equal(&definition, &again));
    }
}

static void definitions_are_equal_by_meaning(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_definition plain, quoted, deeper, newer;
    struct error err;

    assert_ok(read(arena, "{\"paths\":[\"/a\"]}", &plain, &err), &err);
    assert_ok(read(arena, "{\"paths\":[\"/\\\"a\\\"\"]}", &quoted, &err), &err);
    assert_ok(read(arena, "{\"paths\":[\"/a/b\"]}", &deeper, &err), &err);
    assert_ok(read(arena, "{\"paths\":[\"/a\"],\"version\":2}", &newer, &err), &err);
    assert_true(partition_definition_equal(&plain, &quoted));
    assert_false(partition_definition_equal(&plain, &deeper));
    assert_false(partition_definition_equal(&plain, &newer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kind_and_version_choose_the_hash),
        cmocka_unit_test(what_cannot_be_a_key_is_refused_in_the_words_of_the_service),
        cmocka_unit_test(a_system_key_needs_no_path),
        cmocka_unit_test(a_definition_is_shown_as_the_service_does_and_reads_back),
        cmocka_unit_test(definitions_are_equal_by_meaning),
    };
    return cmocka_run_group_tests_name("partition/definition", tests, NULL, NULL);
}
