/* Entries of vectors: the vector itself or its code, one for each item that has one. */
#include "index/policy.h"

#include "definition/names.h"
#include "document/json.h"
#include "search/code.h"
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

#define EMBEDDINGS                                                                                 \
    "{\"rows\":["                                                                                  \
    "{\"path\":\"/v\",\"dataType\":\"float32\",\"dimensions\":2,\"distanceFunction\":\"cosine\"}," \
    "{\"path\":\"/in/w\",\"dataType\":\"int8\",\"dimensions\":8,\"distanceFunction\":"             \
    "\"euclidean\"}]}"

static const struct index_policy *policy_of(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *policy;
    struct document_value rows;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(document_of(arena, json), definition_names(DEFINITION_IDENTITY_ID),
                                 arena, &completed, &policy, &err),
              &err);
    assert_true(document_find(document_of(arena, EMBEDDINGS), SLICE("rows"), &rows));
    return index_policy_with_vectors(policy, rows.document, arena);
}

#define POLICY(indexes) "{\"excludedPaths\":[{\"path\":\"/*\"}],\"vectorIndexes\":[" indexes "]}"

static const struct index_definition *at(const struct index_policy *policy, const char *path,
                                         struct arena *arena)
{
    struct document_path parsed;
    struct error err;

    assert_ok(document_path_parse(slice_of_text(path), DOCUMENT_PATH_KEY, arena, &parsed, &err),
              &err);
    return index_policy_vector_at(policy, &parsed);
}

/* Printed, one in a line, without that of the id; each is stepped over to its end, and a piece of
 * one is no entry. */
static void assert_entries(struct arena *arena, const struct index_policy *policy, const char *item,
                           const char *expected)
{
    CLEANUP(buf_done) struct buf text;
    struct index_entry *entries;
    struct error err;
    size_t count;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_ok(index_entries(policy, document_of(arena, item), arena, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct slice rest = entries[i].bytes, piece = slice_first(rest, rest.len - 1);

        assert_ok(index_entry_print(&rest, &text, &err), &err);
        assert_int_equal(rest.len, 0);
        BUF_APPEND(&text, "\n");
        assert_fails(index_entry_skip(&piece, &err), &err, ERROR_STORE_CORRUPT);
    }
    assert_slice_equal(buf_slice(&text), slice_of_text(expected));
}

static void an_item_has_an_entry_if_it_has_a_vector(void **state)
{
    const struct index_policy *policy =
        policy_of(*state, POLICY("{\"path\":\"/v\",\"type\":\"flat\"},"
                                 "{\"path\":\"/in/w\",\"type\":\"quantizedFlat\"}"));

    assert_true(index_policy_has_vectors(policy));
    assert_entries(*state, policy, "{\"v\":[1,2],\"in\":{\"w\":[1,2,3,4,5,6,7,-8]}}",
                   "vector of /in/w = 22 bytes\nvector of /v = 18 bytes\n");
    assert_entries(*state, policy, "{\"v\":[1,2]}", "vector of /v = 18 bytes\n");
    assert_entries(*state, policy, "{\"v\":[1,2,3],\"in\":{\"w\":[1,2,3,4,5,6,7,128]}}", "");
    assert_entries(*state, policy, "{\"v\":[1,\"2\"],\"in\":[[1,2,3,4,5,6,7,8]]}", "");
    assert_entries(*state, policy, "{\"v\":[1,1e300],\"w\":[1,2,3,4,5,6,7,8]}", "");
    assert_entries(*state, policy, "{\"v\":null,\"in\":5}", "");
}

static void codes_are_as_long_as_the_policy_lets_them(void **state)
{
    const struct index_policy *policy = policy_of(
        *state, POLICY("{\"path\":\"/in/w\",\"type\":\"diskANN\",\"quantizationByteSize\":2}"));

    assert_entries(*state, policy, "{\"in\":{\"w\":[1,2,3,4,5,6,7,8]}}",
                   "vector of /in/w = 16 bytes\n"); /* 2 of length, 12 of head, 2 bits each */
}

static void an_index_of_what_is_not_known_has_no_entries(void **state)
{
    const struct index_policy *policy =
        policy_of(*state, POLICY("{\"path\":\"/other\",\"type\":\"flat\"}"));

    assert_entries(*state, policy, "{\"other\":[1,2]}", "");
}

static void only_diskann_has_a_graph(void **state)
{
    static const struct {
        const char *policy;
        uint32_t list;
    } cases[] = {
        {POLICY("{\"path\":\"/v\",\"type\":\"flat\"}"), 0},
        {POLICY("{\"path\":\"/v\",\"type\":\"quantizedFlat\"}"), 0},
        {POLICY("{\"path\":\"/v\",\"type\":\"diskANN\"}"), 100},
        {POLICY("{\"path\":\"/v\",\"type\":\"diskANN\",\"indexingSearchListSize\":42}"), 42},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(at(policy_of(*state, cases[i].policy), "/v", *state)->vector->graph_list,
                         cases[i].list);
}

/* The same bytes as in its entry, behind the prefix. */
static void the_value_of_an_item_is_that_of_its_entry(void **state)
{
    static const char *const types[] = {"flat", "quantizedFlat", "diskANN"};
    static const char *const others[] = {"{\"in\":{\"w\":[1,2]}}", "{\"in\":5}", "{}",
                                         "{\"in\":{\"w\":[1,2,3,4,5,6,7,128]}}"};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        CLEANUP(buf_done) struct buf value;
        char json[128];
        const struct index_policy *policy;
        const struct index_definition *definition;
        struct slice item = document_of(*state, "{\"in\":{\"w\":[1,2,3,4,5,6,7,-8]}}");
        struct index_entry *entries;
        struct error err;
        size_t count;

        buf_init(&value, BUF_DEFAULT_MAX);
        snprintf(json, sizeof json, POLICY("{\"path\":\"/in/w\",\"type\":\"%s\"}"), types[i]);
        policy = policy_of(*state, json);
        definition = at(policy, "/in/w", *state);
        assert_ok(index_entries(policy, item, *state, &entries, &count, &err), &err);
        assert_int_equal(count, 1);
        assert_true(index_vector_value(definition, item, &value));
        assert_slice_equal(buf_slice(&value), slice_skip(entries[0].bytes, definition->prefix.len));
        for (size_t j = 0; j < ARRAY_LEN(others); j++)
            assert_false(index_vector_value(definition, document_of(*state, others[j]), &value));
    }
}

static void entries_tell_how_far_they_are(void **state)
{
    const struct index_policy *policy =
        policy_of(*state, POLICY("{\"path\":\"/v\",\"type\":\"flat\"}"));
    const struct index_definition *definition = at(policy, "/v", *state);
    struct index_entry *entries;
    struct search_asked asked;
    static const float elements[] = {3, 4};
    struct document_path path;
    double distance;
    struct error err;
    size_t count;

    assert_non_null(definition);
    assert_ok(document_path_parse(SLICE("/v/?"), DOCUMENT_PATH_INDEX, *state, &path, &err), &err);
    assert_ptr_equal(index_policy_vector_at(policy, &path), definition);
    assert_null(at(policy, "/in/w", *state));
    assert_null(at(policy, "/v/w", *state));
    asked = search_asked_of(elements, &definition->vector->vectors);
    assert_ok(
        index_entries(policy, document_of(*state, "{\"v\":[4,3]}"), *state, &entries, &count, &err),
        &err);
    assert_int_equal(count, 1);
    assert_true(index_vector_distance(definition->vector, &asked,
                                      slice_skip(entries[0].bytes, definition->prefix.len),
                                      &distance));
    assert_true(distance == -0.96);
    assert_false(index_vector_distance(definition->vector, &asked, entries[0].bytes, &distance));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_item_has_an_entry_if_it_has_a_vector),
        cmocka_unit_test(codes_are_as_long_as_the_policy_lets_them),
        cmocka_unit_test(an_index_of_what_is_not_known_has_no_entries),
        cmocka_unit_test(entries_tell_how_far_they_are),
        cmocka_unit_test(only_diskann_has_a_graph),
        cmocka_unit_test(the_value_of_an_item_is_that_of_its_entry),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
