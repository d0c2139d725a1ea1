#include "definition/definition_private.h"

#include "support/check.h"
#include "support/documents.h"

#define EMBEDDING(type, dimensions, function)                                                      \
    "\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":[{\"path\":\"/v\",\"dataType\":\"" type       \
    "\",\"dimensions\":" dimensions ",\"distanceFunction\":\"" function "\"}]}"
#define ROW_OF(path)                                                                               \
    "{\"path\":\"" path "\",\"dataType\":\"int8\",\"dimensions\":3,"                               \
    "\"distanceFunction\":\"cosine\"}"
#define VECTORS(path, type)                                                                        \
    "\"indexingPolicy\":{\"vectorIndexes\":[{\"path\":\"" path "\",\"type\":\"" type "\"}]}"
#define TUNED(type, options)                                                                       \
    "\"indexingPolicy\":{\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"" type "\"," options "}]}"
#define BODY(part) "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"]}," part "}"

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

static bool define(struct arena *arena, const char *json, struct definition *before,
                   struct definition **ret_definition, struct error *err)
{
    return definition_new(document_of(arena, json), before, ret_definition, err);
}

static void assert_taken(struct arena *arena, const char *json)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct error err;

    if (!define(arena, json, NULL, &definition, &err))
        fail_msg("%s: %s", json, err.message);
}

static void assert_refused(struct arena *arena, const char *json, const char *words)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct error err;

    if (define(arena, json, NULL, &definition, &err))
        fail_msg("%s was accepted", json);
    assert_int_equal(err.code, ERROR_BAD_REQUEST);
    assert_contains(err.message, words);
}

static void vector_policies_are_held_to_the_rules(void **state)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        {BODY(EMBEDDING("float64", "3", "cosine")), "invalid DataType:float64"},
        {BODY(EMBEDDING("float32", "3", "near")), "invalid DistanceFunction:near"},
        {BODY(EMBEDDING("float32", "-1", "cosine")),
         "has invalid Dimensions:-1, it should be positive integer"},
        {BODY(EMBEDDING("float32", "0", "cosine")), "invalid Dimensions:0"},
        {BODY(EMBEDDING("float32", "1.5", "cosine")), "not a whole number"},
        {BODY(EMBEDDING("float32", "4097", "cosine")),
         "has Dimensions:4097 which is more than max:4096"},
        {BODY(EMBEDDING("float32", "506", "cosine") "," VECTORS("/v", "flat")),
         "has Dimensions:506 which is more than max:505"},
        {BODY(EMBEDDING("float32", "3", "cosine") "," VECTORS("/w", "flat")),
         "w not matching in Embedding's path"},
        {BODY(VECTORS("/v", "flat")), "v not matching in Embedding's path"},
        {BODY("\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":[" ROW_OF("/v") "," ROW_OF(
             "/v") "]}"),
         "has the path \"/v\" twice"},
        {BODY(
             EMBEDDING("float32", "3", "cosine") ",\"indexingPolicy\":{\"vectorIndexes\":["
                                                 "{\"path\":\"/v\",\"type\":\"flat\"},{\"path\":\"/"
                                                 "v\",\"type\":\"diskANN\"}]}"),
         "vectorIndexes has the path \"/v\" twice"},
        {BODY(EMBEDDING("float32", "3", "cosine") "," TUNED("quantizedFlat",
                                                            "\"indexingSearchListSize\":100")),
         "\"indexingSearchListSize\" is for the type diskANN alone"},
        {BODY(EMBEDDING("float32", "3", "cosine") "," TUNED("flat", "\"quantizationByteSize\":2")),
         "\"quantizationByteSize\" is not for the type flat"},
        {BODY("\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":7}"), "not an array"},
        {BODY("\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":[7]}"), "not an object"},
        {BODY("\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":[{}]}"), "Vector Embedding Policy"},
        {BODY("\"vectorEmbeddingPolicy\":7"), "not an object"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_refused(*state, cases[i].json, cases[i].words);
    assert_taken(*state, BODY(EMBEDDING("int8", "505", "dotproduct") "," VECTORS("/v", "flat")));
    assert_taken(*state,
                 BODY(EMBEDDING("uint8", "4096", "euclidean") "," VECTORS("/v", "diskANN")));
}

static void full_text_indexes_are_in_the_policy(void **state)
{
#define TEXTS(path)                                                                                \
    "\"fullTextPolicy\":{\"defaultLanguage\":\"en-US\",\"fullTextPaths\":[{\"path\":\"" path       \
    "\",\"language\":\"en-US\"}]}"
#define TEXT_INDEX "\"indexingPolicy\":{\"fullTextIndexes\":[{\"path\":\"/t\"}]}"
    assert_taken(*state, BODY(TEXTS("/t") "," TEXT_INDEX));
    assert_refused(*state, BODY(TEXTS("/u") "," TEXT_INDEX), "not in the full text policy");
    assert_refused(*state, BODY(TEXT_INDEX), "not in the full text policy");
    assert_refused(*state, BODY("\"fullTextPolicy\":{}"), "no defaultLanguage");
}

static void encryption_policies_are_held_to_the_rules(void **state)
{
#define ROW(type, algorithm)                                                                       \
    "{\"path\":\"/ssn\",\"clientEncryptionKeyId\":\"k\",\"encryptionType\":\"" type                \
    "\",\"encryptionAlgorithm\":\"" algorithm "\"}"
#define ENCRYPTION(rows, version)                                                                  \
    BODY("\"clientEncryptionPolicy\":{\"includedPaths\":" rows ",\"policyFormatVersion\":" version \
         "}")
#define AEAD "AEAD_AES_256_CBC_HMAC_SHA256"
    assert_taken(*state, ENCRYPTION("[" ROW("Deterministic", AEAD) "]", "1"));
    assert_taken(*state, ENCRYPTION("[" ROW("Randomized", AEAD) "]", "2"));
    assert_refused(*state, ENCRYPTION("[" ROW("Randomized", AEAD) "]", "3"), "must be 1 or 2");
    assert_refused(*state, ENCRYPTION("[" ROW("Plain", AEAD) "]", "1"), "encryptionType");
    assert_refused(*state, ENCRYPTION("[" ROW("Randomized", "ROT13") "]", "1"),
                   "encryptionAlgorithm");
    assert_refused(*state, ENCRYPTION("[{\"path\":\"/x\"}]", "1"), "clientEncryptionKeyId");
    assert_refused(*state, ENCRYPTION("null", "1"), "no includedPaths");
}

static void vectors_stay_as_they_were_made(void **state)
{
    struct arena *arena = *state;
    CLEANUP(definition_unref) struct definition *before = NULL, *after = NULL;
    const char *same = BODY(EMBEDDING("float32", "3", "cosine") "," VECTORS("/v", "flat"));
    struct error err;

    assert_ok(define(arena, same, NULL, &before, &err), &err);
    assert_fails(define(arena, BODY("\"indexingPolicy\":{}"), before, &after, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(define(arena, BODY(VECTORS("/v", "diskANN")), before, &after, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(define(arena, BODY(EMBEDDING("float32", "4", "cosine") "," VECTORS("/v", "flat")),
                        before, &after, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_ok(define(arena, BODY(VECTORS("/v", "flat")), before, &after, &err), &err);
}

static void a_shard_key_of_vectors_is_refused_by_name(void **state)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct error err;

    assert_fails(define(*state,
                        BODY(EMBEDDING("float32", "3", "cosine") "," TUNED(
                            "diskANN", "\"vectorIndexShardKey\":[\"/a\"]")),
                        NULL, &definition, &err),
                 &err, ERROR_NOT_SUPPORTED);
    assert_contains(err.message, "vectorIndexShardKey");
    assert_taken(*state, BODY(EMBEDDING("float32", "3", "cosine") "," TUNED(
                             "diskANN", "\"vectorIndexShardKey\":null,"
                                        "\"quantizationByteSize\":2,"
                                        "\"indexingSearchListSize\":500")));
}

static void a_procedure_for_conflicts_is_refused_by_name(void **state)
{
    CLEANUP(definition_unref) struct definition *definition = NULL;
    struct error err;

    assert_taken(*state, BODY("\"conflictResolutionPolicy\":{\"mode\":\"Custom\"}"));
    assert_fails(define(*state,
                        BODY("\"conflictResolutionPolicy\":{\"mode\":\"Custom\","
                             "\"conflictResolutionProcedure\":\"dbs/d/colls/c/sprocs/s\"}"),
                        NULL, &definition, &err),
                 &err, ERROR_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_policies_are_held_to_the_rules),
        cmocka_unit_test(full_text_indexes_are_in_the_policy),
        cmocka_unit_test(encryption_policies_are_held_to_the_rules),
        cmocka_unit_test(vectors_stay_as_they_were_made),
        cmocka_unit_test(a_shard_key_of_vectors_is_refused_by_name),
        cmocka_unit_test(a_procedure_for_conflicts_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
