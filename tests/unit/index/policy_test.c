#include "index/policy.h"

#include "definition/names.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

static const struct index_policy *policy_of(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *policy = NULL;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(json ? document_of(arena, json) : SLICE_NONE,
                                 definition_names(DEFINITION_IDENTITY_ID), arena, &completed,
                                 &policy, &err),
              &err);
    return policy;
}

#define PATHS(included, excluded)                                                                  \
    "{\"includedPaths\":[" included "],\"excludedPaths\":[" excluded "]}"
#define PATH(text) "{\"path\":\"" text "\"}"

#define ROOT "\"includedPaths\":[{\"path\":\"/*\"}]"
#define ETAG "{\"path\":\"/\\\"_etag\\\"/?\"}"
#define MODE "{\"indexingMode\":\"consistent\",\"automatic\":true,"

static void policies_are_completed_as_the_service_shows_them(void **state UNUSED)
{
    static const struct {
        const char *given, *shown;
    } samples[] = {
        {NULL, MODE ROOT ",\"excludedPaths\":[" ETAG "]}"},
        {"{}", MODE ROOT ",\"excludedPaths\":[" ETAG "]}"},
        {"{\"indexingMode\":\"Consistent\",\"includedPaths\":null}",
         MODE ROOT ",\"excludedPaths\":[" ETAG "]}"},
        {"{\"includedPaths\":[{\"path\":\"/\",\"indexes\":[{\"kind\":\"Range\",\"dataType\":"
         "\"String\",\"precision\":-1}]}]}",
         MODE ROOT ",\"excludedPaths\":[" ETAG "]}"},
        {"{\"excludedPaths\":[{\"path\":\"/a/?\"}],\"unknown\":1}",
         MODE ROOT ",\"excludedPaths\":[{\"path\":\"/a/?\"}," ETAG "]}"},
        {"{\"excludedPaths\":[" ETAG "]}", MODE ROOT ",\"excludedPaths\":[" ETAG "]}"},
        {"{\"includedPaths\":[{\"path\":\"/*\"}," ETAG "]}",
         MODE "\"includedPaths\":[{\"path\":\"/*\"}," ETAG "],\"excludedPaths\":[]}"},
        {"{\"includedPaths\":[{\"path\":\"/a/*\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}", MODE
         "\"includedPaths\":[{\"path\":\"/a/*\"}],\"excludedPaths\":[{\"path\":\"/*\"}," ETAG "]}"},
        {"{\"automatic\":false,\"indexingMode\":\"lazy\"}",
         "{\"indexingMode\":\"lazy\",\"automatic\":false," ROOT ",\"excludedPaths\":[" ETAG "]}"},
        {"{\"indexingMode\":\"none\",\"automatic\":true}",
         "{\"indexingMode\":\"none\",\"automatic\":false,\"includedPaths\":[],"
         "\"excludedPaths\":[]}"},
        {"{\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"Descending\"}]]}",
         MODE ROOT ",\"excludedPaths\":[" ETAG "],\"compositeIndexes\":[[{\"path\":\"/a\","
                   "\"order\":\"ascending\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}"},
        {"{\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"diskANN\",\"quantizationByteSize\":8,"
         "\"vectorIndexShardKey\":[\"/a\"]}],\"fullTextIndexes\":[{\"path\":\"/t\"}],"
         "\"spatialIndexes\":[{\"path\":\"/l/?\",\"types\":[\"Point\"],\"boundingBox\":"
         "{\"xmin\":0,\"ymin\":0,\"xmax\":1,\"ymax\":1.5}}]}",
         MODE ROOT ",\"excludedPaths\":[" ETAG "],\"spatialIndexes\":[{\"path\":\"/l/?\",\"types\":"
                   "[\"Point\"],\"boundingBox\":{\"xmin\":0,\"ymin\":0,\"xmax\":1,\"ymax\":1.5}}],"
                   "\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"diskANN\","
                   "\"quantizationByteSize\":8,\"vectorIndexShardKey\":[\"/a\"]}],"
                   "\"fullTextIndexes\":[{\"path\":\"/t\"}]}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(buf_done) struct buf completed, json;
        const struct index_policy *policy;
        struct error err;

        buf_init(&completed, BUF_DEFAULT_MAX);
        buf_init(&json, BUF_DEFAULT_MAX);
        assert_ok(index_policy_parse(
                      samples[i].given ? document_of(arena, samples[i].given) : SLICE_NONE,
                      definition_names(DEFINITION_IDENTITY_ID), arena, &completed, &policy, &err),
                  &err);
        document_json_write(buf_slice(&completed), &json);
        assert_string_equal(arena_text(arena, buf_slice(&json)), samples[i].shown);
        /* What is shown is taken, and shown the same. */
        buf_clear(&json);
        assert_ok(index_policy_parse(buf_slice(&completed),
                                     definition_names(DEFINITION_IDENTITY_ID), arena, &json,
                                     &policy, &err),
                  &err);
        assert_true(slice_equal(buf_slice(&completed), buf_slice(&json)));
    }
}

static void wrong_policies_are_refused(void **state UNUSED)
{
    static const struct {
        const char *given, *message;
    } samples[] = {
        {"{\"indexingMode\":\"eager\"}", "\"eager\""},
        {"{\"indexingMode\":1}", "\"indexingMode\" is not a string"},
        {"{\"automatic\":1}", "\"automatic\" is not a boolean"},
        {"{\"includedPaths\":{}}", "\"includedPaths\" is not an array"},
        {"{\"includedPaths\":[1]}", "has no \"path\""},
        {"{\"includedPaths\":[{\"path\":\"a\"}]}", "position '0'"},
        {"{\"includedPaths\":[{\"path\":\"/a\"}]}", "does not end in"},
        {"{\"includedPaths\":[{\"path\":\"/a/*\"}]}", "mandatory"},
        {PATHS(PATH("/*") "," PATH("/a/?"), PATH("/a/?")), "both included and excluded"},
        {PATHS(PATH("/*"), PATH("/{a, b}/?")), "tuple"},
        {PATHS(PATH("/*") "," PATH("/{a,b,c,d,e,f,g,h,i}/?"), ""), "members"},
        {"{\"compositeIndexes\":[{}]}", "2 to 8"},
        {"{\"compositeIndexes\":[[{\"path\":\"/a\"}]]}", "2 to 8"},
        {"{\"compositeIndexes\":[[{\"path\":\"/a\"},{}]]}", "\"path\""},
        {"{\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/b/*\"}]]}", "position '3'"},
        {"{\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"up\"}]]}",
         "ascending"},
        {"{\"spatialIndexes\":[{\"path\":\"/a/?\",\"types\":[\"Circle\"]}]}", "type"},
        {"{\"spatialIndexes\":[{\"path\":\"/a/?\",\"boundingBox\":{\"xmin\":1}}]}", "four"},
        {"{\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"notFlat\"}]}",
         "Index Type::notFlat is invalid"},
        {"{\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"flat\",\"quantizationByteSize\":513}]}",
         "1 to 512"},
        {"{\"fullTextIndexes\":[{\"path\":\"/t/*\"}]}", "position '3'"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf completed;

    buf_init(&completed, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        const struct index_policy *policy;
        struct error err;

        assert_fails(index_policy_parse(document_of(arena, samples[i].given),
                                        definition_names(DEFINITION_IDENTITY_ID), arena, &completed,
                                        &policy, &err),
                     &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, samples[i].message);
        assert_int_equal(completed.len, 0);
    }
}

static bool policy_with_composites(int count, size_t *ret_count)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf, completed;
    const struct index_policy *policy;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_init(&completed, BUF_DEFAULT_MAX);
    for (int i = 0; i < count; i++)
        buf_printf(&buf, "%s[{\"path\":\"/a%d\"},{\"path\":\"/b\"}]",
                   i ? "," : "{\"compositeIndexes\":[", i);
    buf_append_text(&buf, "]}");
    if (!index_policy_parse(document_of(arena, arena_text(arena, buf_slice(&buf))),
                            definition_names(DEFINITION_IDENTITY_ID), arena, &completed, &policy,
                            &err))
        return false;
    (void)index_policy_composites(policy, ret_count);
    return true;
}

static void composites_have_a_limit_in_all(void **state UNUSED)
{
    const int max = INDEX_COMPOSITE_TOTAL_MAX / 2;
    size_t count;

    assert_true(policy_with_composites(max, &count));
    assert_int_equal(count, max);
    assert_false(policy_with_composites(max + 1, &count));
}

static bool policy_with_paths(int included, int excluded)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf, completed;
    const struct index_policy *policy;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_init(&completed, BUF_DEFAULT_MAX);
    buf_append_text(&buf, "{\"includedPaths\":[{\"path\":\"/*\"}");
    for (int i = 1; i < included; i++)
        buf_printf(&buf, ",{\"path\":\"/i%d/?\"}", i);
    for (int i = 0; i < excluded; i++)
        buf_printf(&buf, "%s{\"path\":\"/e%d/?\"}", i ? "," : "],\"excludedPaths\":[", i);
    buf_append_text(&buf, "]}");
    return index_policy_parse(document_of(arena, arena_text(arena, buf_slice(&buf))),
                              definition_names(DEFINITION_IDENTITY_ID), arena, &completed, &policy,
                              &err);
}

static void paths_have_a_limit_in_all(void **state UNUSED)
{
    assert_true(policy_with_paths(INDEX_PATHS_MAX - 500, 500));
    assert_false(policy_with_paths(INDEX_PATHS_MAX - 499, 500));
}

static void covers_says_what_has_entries(void **state UNUSED)
{
    static const struct {
        const char *policy, *path;
        bool covered, undefined;
    } samples[] = {
        {NULL, "/a", true, false},
        {NULL, "/*", true, false},
        {NULL, "/a/*", true, false},
        {NULL, "/_etag", false, false},
        {NULL, "/_ts", false, false},
        {"{\"indexingMode\":\"none\"}", "/a", false, false},
        {"{\"indexingMode\":\"none\"}", "/id", true, false},
        {PATHS(PATH("/*"), PATH("/a/b/?")), "/a/b", false, false},
        {PATHS(PATH("/*"), PATH("/a/b/?")), "/a/b/c", true, false},
        {PATHS(PATH("/*"), PATH("/a/b/?")), "/a/*", false, false},
        {PATHS(PATH("/*"), PATH("/a/b/?")), "/*", false, false},
        {PATHS(PATH("/*"), PATH("/a/b/?")), "/c/*", true, false},
        {PATHS(PATH("/a/?"), PATH("/*")), "/a/?", true, true},
        {PATHS(PATH("/a/?"), PATH("/*")), "/a/b", false, false},
        {PATHS(PATH("/a/[]/b/?"), PATH("/*")), "/a/[]/b", true, true},
        {PATHS(PATH("/a/[]/b/?"), PATH("/*")), "/a/b", false, false},
        {PATHS(PATH("/a/[]/{b, c}/?"), PATH("/*")), "/a/[]/{b,c}/?", true, true},
        {PATHS(PATH("/a/[]/{b, c}/?"), PATH("/*")), "/a/[]/{c, b}/?", false, false},
        {PATHS(PATH("/a/[]/{b, c}/?"), PATH("/*")), "/a/[]/b", false, false},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        const struct index_policy *policy = policy_of(arena, samples[i].policy);
        struct document_path path;
        struct error err;

        assert_ok(document_path_parse(slice_of_text(samples[i].path), DOCUMENT_PATH_INDEX, arena,
                                      &path, &err),
                  &err);
        if (index_policy_covers(policy, &path) != samples[i].covered ||
            index_policy_covers_undefined(policy, &path) != samples[i].undefined)
            fail_msg("sample %zu, path %s", i, samples[i].path);
    }
}

static void none_is_known_by_its_mode(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_true(index_policy_is_none(policy_of(arena, "{\"indexingMode\":\"None\"}")));
    assert_false(index_policy_is_none(policy_of(arena, "{}")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_are_completed_as_the_service_shows_them),
        cmocka_unit_test(wrong_policies_are_refused),
        cmocka_unit_test(composites_have_a_limit_in_all),
        cmocka_unit_test(paths_have_a_limit_in_all),
        cmocka_unit_test(covers_says_what_has_entries),
        cmocka_unit_test(none_is_known_by_its_mode),
    };
    return cmocka_run_group_tests_name("index/policy", tests, NULL, NULL);
}
