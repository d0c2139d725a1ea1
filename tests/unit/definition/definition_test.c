#include "definition/definition.h"

#include "document/bson.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

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

static struct definition *define(struct arena *arena, const char *json)
{
    struct definition *definition;
    struct error err;

    assert_ok(definition_new(document_of(arena, json), NULL, &definition, &err), &err);
    return definition;
}

static void assert_document(struct definition *definition, const char *json)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_json_write(definition_fields(definition)->document, &text);
    assert_slice_equal(buf_slice(&text), slice_of_text(json));
}

static void assert_refused(struct arena *arena, const char *json, enum error_code code,
                           const char *words)
{
    struct definition *definition;
    struct error err;

    if (definition_new(document_of(arena, json), NULL, &definition, &err))
        fail_msg("%s was accepted", json);
    if (err.code != code || !strstr(err.message, words))
        fail_msg("%s: %s: %s", json, error_face(err.code)->name, err.message);
}

static void a_bare_definition_is_completed_as_the_service_does(void **state)
{
    CLEANUP(definition_unref)
    struct definition *definition =
        define(*state, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}");

    assert_document(
        definition,
        "{\"id\":\"c\",\"indexingPolicy\":{\"indexingMode\":\"consistent\",\"automatic\":true,"
        "\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/\\\"_etag\\\"/?\"}]}"
        ",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\"},"
        "\"uniqueKeyPolicy\":{\"uniqueKeys\":[]},"
        "\"conflictResolutionPolicy\":{\"mode\":\"LastWriterWins\","
        "\"conflictResolutionPath\":\"/_ts\",\"conflictResolutionProcedure\":\"\"},"
        "\"geospatialConfig\":{\"type\":\"Geography\"}}");
    assert_int_equal(definition_fields(definition)->default_ttl, DEFINITION_TTL_OFF);
    assert_int_equal(definition_fields(definition)->feed_retention_ms, 0);
    assert_int_equal(definition_fields(definition)->unique_key_count, 0);
    assert_int_equal(definition_fields(definition)->key.kind, PARTITION_HASH_V1);
}

static void a_definition_without_a_key_has_the_system_key(void **state)
{
    CLEANUP(definition_unref) struct definition *definition = define(*state, "{\"id\":\"old\"}");
    struct document_value key;

    assert_true(definition_fields(definition)->key.system_key);
    assert_true(
        document_find(definition_fields(definition)->document, SLICE("partitionKey"), &key));
}

static const char rich[] =
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\",\"/b/c\"],\"kind\":\"MultiHash\","
    "\"version\":2},\"defaultTtl\":-1,\"changeFeedPolicy\":{\"retentionDuration\":10},"
    "\"indexingPolicy\":{\"excludedPaths\":[{\"path\":\"/secret/*\"}]},"
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/e\",\"/f/g\"]},{\"paths\":[\"/h\"]}]},"
    "\"conflictResolutionPolicy\":{\"mode\":\"LastWriterWins\","
    "\"conflictResolutionPath\":\"/when\"},\"geospatialConfig\":{\"type\":\"Geometry\"},"
    "\"computedProperties\":[{\"name\":\"low\",\"query\":\"SELECT VALUE LOWER(c.n) FROM c\"}],"
    "\"fullTextPolicy\":{\"defaultLanguage\":\"en-US\"},\"_rid\":\"x\",\"whatever\":1}";

static void all_parts_are_read(void **state)
{
    CLEANUP(definition_unref) struct definition *definition = define(*state, rich);
    const struct definition_fields *fields = definition_fields(definition);
    struct document_value value;

    assert_slice_equal(fields->id, SLICE("c"));
    assert_int_equal(fields->key.path_count, 2);
    assert_int_equal(fields->default_ttl, DEFINITION_TTL_OWN);
    assert_int_equal(fields->feed_retention_ms, 600000);
    assert_int_equal(fields->unique_key_count, 2);
    assert_int_equal(fields->unique_keys[0].path_count, 2);
    assert_slice_equal(fields->unique_keys[0].paths[1].segments[1].name, SLICE("g"));
    assert_true(document_find(fields->document, SLICE("computedProperties"), &value));
    assert_true(document_find(fields->document, SLICE("fullTextPolicy"), &value));
    assert_false(document_find(fields->document, SLICE("_rid"), &value));
    assert_false(document_find(fields->document, SLICE("whatever"), &value));
}

/* The catalogue stores the completed document and reads it back at every start. */
static void a_completed_definition_is_its_own_completion(void **state)
{
    static const char *const bodies[] = {
        rich,
        "{\"id\":\"c\"}",
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\"],\"version\":2},\"indexingPolicy\":{}}",
        "{\"id\":\"c\",\"indexingPolicy\":{\"indexingMode\":\"none\"}}",
    };

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        CLEANUP(definition_unref) struct definition *once = define(*state, bodies[i]);
        CLEANUP(definition_unref) struct definition *twice = NULL;
        struct error err;

        assert_ok(definition_new(definition_fields(once)->document, NULL, &twice, &err), &err);
        assert_true(
            slice_equal(definition_fields(once)->document, definition_fields(twice)->document));
        definition_unref(TAKE(twice));
        assert_ok(definition_new(definition_fields(once)->document, once, &twice, &err), &err);
        assert_true(
            slice_equal(definition_fields(once)->document, definition_fields(twice)->document));
    }
}

#define WITH(part) "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}," part "}"

static void what_the_service_refuses_is_refused(void **state)
{
    struct arena *arena = *state;

    assert_refused(arena, "{}", ERROR_BAD_REQUEST, "One of the specified inputs is invalid");
    assert_refused(arena, "{\"id\":7}", ERROR_BAD_REQUEST, "invalid");
    assert_refused(arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\",\"/b\"]}}",
                   ERROR_BAD_REQUEST, "Too many partition key paths");
    assert_refused(arena, "{\"id\":\"c\",\"partitionKey\":[]}", ERROR_BAD_REQUEST,
                   "partitionKey is not an object");
    assert_refused(arena, WITH("\"defaultTtl\":0"), ERROR_BAD_REQUEST, "defaultTtl");
    assert_refused(arena, WITH("\"defaultTtl\":null"), ERROR_BAD_REQUEST, "defaultTtl");
    assert_refused(arena, WITH("\"defaultTtl\":-2"), ERROR_BAD_REQUEST, "defaultTtl");
    assert_refused(arena, WITH("\"defaultTtl\":2147483648"), ERROR_BAD_REQUEST, "defaultTtl");
    assert_refused(arena, WITH("\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[]}]}"),
                   ERROR_BAD_REQUEST, "no paths");
    assert_refused(arena, WITH("\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/pk\"]}]}"),
                   ERROR_BAD_REQUEST, "partition key alone");
    assert_refused(arena, WITH("\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/_ts\"]}]}"),
                   ERROR_BAD_REQUEST, "system property");
    assert_refused(arena, WITH("\"conflictResolutionPolicy\":{\"mode\":\"Luck\"}"),
                   ERROR_BAD_REQUEST, "Luck");
    assert_refused(arena, WITH("\"geospatialConfig\":{\"type\":\"Flat\"}"), ERROR_BAD_REQUEST,
                   "Flat");
    assert_refused(arena, WITH("\"computedProperties\":[{\"name\":\"x\"}]"), ERROR_BAD_REQUEST,
                   "name and a query");
    assert_refused(arena, WITH("\"materializedViewDefinition\":{}"), ERROR_BAD_REQUEST,
                   "sourceCollectionId");
    assert_refused(arena, WITH("\"analyticalStorageTtl\":-1"), ERROR_NOT_SUPPORTED, "analytical");
}

static void unique_keys_and_their_paths_are_counted(void **state)
{
    CLEANUP(buf_done) struct buf text;
    CLEANUP(definition_unref) struct definition *definition = NULL;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (int keys = 10; keys <= 11; keys++) {
        buf_clear(&text);
        BUF_APPEND(&text, "{\"id\":\"c\",\"uniqueKeyPolicy\":{\"uniqueKeys\":[");
        for (int i = 0; i < keys; i++)
            buf_printf(&text, "%s{\"paths\":[\"/k%d\"]}", i ? "," : "", i);
        BUF_APPEND(&text, "]}}");
        buf_append_byte(&text, 0);
        if (keys == 10)
            definition = define(*state, (const char *)text.data);
        else
            assert_refused(*state, (const char *)text.data, ERROR_BAD_REQUEST, "limit of 10");
    }
    buf_clear(&text);
    BUF_APPEND(&text, "{\"id\":\"c\",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/k\"");
    for (int i = 0; i < 16; i++)
        buf_printf(&text, ",\"/k%d\"", i);
    BUF_APPEND(&text, "]}]}}");
    buf_append_byte(&text, 0);
    assert_refused(*state, (const char *)text.data, ERROR_BAD_REQUEST, "limit of 16");
}

static bool replace(struct arena *arena, struct definition *before, const char *json,
                    struct definition **ret_definition, struct error *err)
{
    return definition_new(document_of(arena, json), before, ret_definition, err);
}

static void a_replace_changes_only_what_may_change(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = define(arena, rich), *after = NULL;
    struct error err;

#define KEY "\"partitionKey\":{\"paths\":[\"/a\",\"/b/c\"],\"kind\":\"MultiHash\",\"version\":2}"
    assert_fails(replace(arena, before, "{\"id\":\"d\"," KEY "}", &after, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(replace(arena, before, "{\"id\":\"c\"}", &after, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(replace(arena, before, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/a\"]}}",
                         &after, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_fails(replace(arena, before,
                         "{\"id\":\"c\"," KEY
                         ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/h\"]}]}}",
                         &after, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_ok(replace(arena, before, "{\"id\":\"c\"," KEY "}", &after, &err), &err);
    assert_int_equal(definition_fields(after)->default_ttl, DEFINITION_TTL_OFF);
    assert_int_equal(definition_fields(after)->feed_retention_ms, 0);
    assert_int_equal(definition_fields(after)->unique_key_count, 2);
}

static void what_is_said_beyond_the_service_is_kept_by_those_who_do_not_know_it(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *after = NULL;
    CLEANUP(definition_unref)
    struct definition *before =
        define(arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                      "\"orrery\":{\"strategy\":\"hash\"}}");
    struct document_value value;
    struct error err;

    assert_ok(replace(arena, before, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}",
                      &after, &err),
              &err);
    assert_true(document_find(definition_fields(after)->document, SLICE("orrery"), &value));
    assert_refused(arena,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"orrery\":{\"x\":1}}",
                   ERROR_BAD_REQUEST, "no member \"x\"");
    assert_refused(arena,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                   "\"orrery\":{\"strategy\":\"modulo\"}}",
                   ERROR_BAD_REQUEST, "orrery.strategy");
}

static void names_with_a_meaning_make_no_key(void **state)
{
    assert_refused(
        *state,
        "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"orrery\":{\"synthetic\":"
        "{\"kind\":\"concatenation\",\"target\":\"/pk\",\"sources\":[\"/a\",\"/_ts\"]}}}",
        ERROR_BAD_REQUEST, "system property");
    assert_refused(*state,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/id\"]},\"orrery\":{\"synthetic\":"
                   "{\"kind\":\"concatenation\",\"target\":\"/id\",\"sources\":[\"/a\",\"/b\"]}}}",
                   ERROR_BAD_REQUEST, "the id of an item cannot be made");
    assert_refused(*state,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/_id\"]},\"orrery\":{"
                   "\"identity\":\"_id\",\"synthetic\":{\"kind\":\"concatenation\",\"target\":"
                   "\"/_id\",\"sources\":[\"/a\",\"/b\"]}}}",
                   ERROR_BAD_REQUEST, "the _id of an item cannot be made");
}

static void the_identity_is_said_at_creation_and_kept(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref)
    struct definition *usual =
        define(arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}");
    CLEANUP(definition_unref)
    struct definition *other = define(arena, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                                             "\"orrery\":{\"identity\":\"_id\"}}");
    CLEANUP(definition_unref) struct definition *again = NULL, *replaced = NULL;
    const struct document_names *names = definition_names_of(definition_fields(other));
    struct definition *refused;
    struct error err;

    assert_slice_equal(definition_names_of(definition_fields(usual))->identity, SLICE("id"));
    assert_slice_equal(definition_names_of(definition_fields(usual))->ttl, SLICE("ttl"));
    assert_slice_equal(names->identity, SLICE("_id"));
    assert_int_equal(names->identity_order, DOCUMENT_ORDER_MONGO);
    assert_int_equal(names->ttl.len, 0);
    assert_ok(definition_new(definition_fields(other)->document, NULL, &again, &err), &err);
    assert_int_equal(definition_fields(again)->identity, DEFINITION_IDENTITY_MONGO);
    assert_ok(replace(arena, other, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}}",
                      &replaced, &err),
              &err);
    assert_int_equal(definition_fields(replaced)->identity, DEFINITION_IDENTITY_MONGO);
    assert_fails(replace(arena, other,
                         "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                         "\"orrery\":{\"identity\":\"id\"}}",
                         &refused, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_refused(arena,
                   "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},"
                   "\"orrery\":{\"identity\":\"key\"}}",
                   ERROR_BAD_REQUEST, "orrery.identity");
}

#define PLACES(orrery)                                                                             \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/"                                               \
    "pk\"]},\"indexingPolicy\":{\"spatialIndexes\":[{"                                             \
    "\"path\":\"/at/?\"}]}" orrery "}"

/* Which entries a container has is what its definition says, not what its policy does: those of
 * before listed spatial indexes that had none. */
static void spatial_indexes_have_entries_where_the_container_says_so(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = define(arena, PLACES(""));
    CLEANUP(definition_unref) struct definition *fresh = NULL, *read = NULL, *replaced = NULL;
    struct definition *refused;
    struct document_value orrery, mark;
    struct error err;
    size_t count;

    assert_false(definition_fields(before)->cells);
    (void)index_policy_definitions(definition_fields(before)->policy, &count);
    assert_int_equal(count, 1);

    assert_ok(
        definition_new(definition_fresh(document_of(arena, PLACES("")), arena), NULL, &fresh, &err),
        &err);
    assert_true(definition_fields(fresh)->cells);
    (void)index_policy_definitions(definition_fields(fresh)->policy, &count);
    assert_int_equal(count, 2);
    assert_true(document_find(definition_fields(fresh)->document, SLICE("orrery"), &orrery) &&
                document_find(orrery.document, SLICE("spatial"), &mark));

    /* from the disk, and by a library that knows nothing of it */
    assert_ok(definition_new(definition_fields(fresh)->document, NULL, &read, &err), &err);
    assert_true(definition_fields(read)->cells);
    assert_ok(definition_new(document_of(arena, PLACES("")), before, &replaced, &err), &err);
    assert_true(definition_fields(replaced)->cells);

    assert_fails(definition_new(document_of(arena, PLACES(",\"orrery\":{\"spatial\":2}")), NULL,
                                &refused, &err),
                 &err, ERROR_BAD_REQUEST);
}

#define WORDS(orrery)                                                                              \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"fullTextPolicy\":{"                    \
    "\"defaultLanguage\":\"en-US\",\"fullTextPaths\":[{\"path\":\"/text\"}]},"                     \
    "\"indexingPolicy\":{\"fullTextIndexes\":[{\"path\":\"/text\"}]}" orrery "}"

/* The same of words; a format that this version does not know is refused by its name. */
static void full_text_indexes_have_entries_where_the_container_says_so(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = define(arena, WORDS(""));
    CLEANUP(definition_unref) struct definition *fresh = NULL, *read = NULL;
    struct definition *refused;
    struct document_value orrery, mark;
    struct error err;
    size_t count;

    (void)index_policy_definitions(definition_fields(before)->policy, &count);
    assert_int_equal(count, 1);
    assert_ok(
        definition_new(definition_fresh(document_of(arena, WORDS("")), arena), NULL, &fresh, &err),
        &err);
    (void)index_policy_definitions(definition_fields(fresh)->policy, &count);
    assert_int_equal(count, 2);
    assert_true(document_find(definition_fields(fresh)->document, SLICE("orrery"), &orrery) &&
                document_find(orrery.document, SLICE("fullText"), &mark));
    assert_ok(definition_new(definition_fields(fresh)->document, NULL, &read, &err), &err);
    (void)index_policy_definitions(definition_fields(read)->policy, &count);
    assert_int_equal(count, 2);
    assert_fails(definition_new(document_of(arena, WORDS(",\"orrery\":{\"fullText\":2}")), NULL,
                                &refused, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_non_null(strstr(err.message, "fullText"));
}

#define EMBEDDED(orrery)                                                                           \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]},\"vectorEmbeddingPolicy\":{"             \
    "\"vectorEmbeddings\":[{\"path\":\"/v\",\"dataType\":\"int8\",\"dimensions\":3,"               \
    "\"distanceFunction\":\"cosine\"}]},\"indexingPolicy\":{\"vectorIndexes\":[{"                  \
    "\"path\":\"/v\",\"type\":\"flat\"}]}" orrery "}"

/* The same of vectors. */
static void vector_indexes_have_entries_where_the_container_says_so(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = define(arena, EMBEDDED(""));
    CLEANUP(definition_unref) struct definition *fresh = NULL, *read = NULL, *replaced = NULL;
    struct definition *refused;
    struct document_value orrery, mark;
    struct error err;
    size_t count;

    assert_false(definition_fields(before)->vectors);
    (void)index_policy_definitions(definition_fields(before)->policy, &count);
    assert_int_equal(count, 1);
    assert_ok(definition_new(definition_fresh(document_of(arena, EMBEDDED("")), arena), NULL,
                             &fresh, &err),
              &err);
    assert_true(definition_fields(fresh)->vectors);
    (void)index_policy_definitions(definition_fields(fresh)->policy, &count);
    assert_int_equal(count, 2);
    assert_true(document_find(definition_fields(fresh)->document, SLICE("orrery"), &orrery) &&
                document_find(orrery.document, SLICE("vectors"), &mark));
    assert_ok(definition_new(definition_fields(fresh)->document, NULL, &read, &err), &err);
    assert_true(definition_fields(read)->vectors);
    assert_ok(definition_new(document_of(arena, EMBEDDED("")), before, &replaced, &err), &err);
    assert_true(definition_fields(replaced)->vectors);
    assert_fails(definition_new(document_of(arena, EMBEDDED(",\"orrery\":{\"vectors\":2}")), NULL,
                                &refused, &err),
                 &err, ERROR_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_definition_is_completed_as_the_service_does),
        cmocka_unit_test(a_definition_without_a_key_has_the_system_key),
        cmocka_unit_test(all_parts_are_read),
        cmocka_unit_test(a_completed_definition_is_its_own_completion),
        cmocka_unit_test(what_the_service_refuses_is_refused),
        cmocka_unit_test(unique_keys_and_their_paths_are_counted),
        cmocka_unit_test(a_replace_changes_only_what_may_change),
        cmocka_unit_test(names_with_a_meaning_make_no_key),
        cmocka_unit_test(the_identity_is_said_at_creation_and_kept),
        cmocka_unit_test(spatial_indexes_have_entries_where_the_container_says_so),
        cmocka_unit_test(full_text_indexes_have_entries_where_the_container_says_so),
        cmocka_unit_test(vector_indexes_have_entries_where_the_container_says_so),
        cmocka_unit_test(what_is_said_beyond_the_service_is_kept_by_those_who_do_not_know_it),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
