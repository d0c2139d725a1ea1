/* Definitions as languages other than SQL make them: what entries items have by them. */
#include "index/definition.h"

#include "definition/names.h"
#include "document/json.h"
#include "index/policy.h"
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

static const struct index_definition *define(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value value = document_object(document_of(arena, json));
    const struct index_definition *definition;
    struct error err;

    buf_init(&out, BUF_DEFAULT_MAX);
    (void)document_begin(&out);
    assert_ok(index_definition_read(&value, 3, arena, SLICE("0"), &out, &definition, &err), &err);
    return definition;
}

static void assert_refused(struct arena *arena, const char *json, enum error_code code,
                           const char *words)
{
    CLEANUP(buf_done) struct buf out;
    struct document_value value = document_object(document_of(arena, json));
    const struct index_definition *definition;
    struct error err;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (index_definition_read(&value, 3, arena, SLICE("0"), &out, &definition, &err))
        fail_msg("%s was accepted", json);
    if (err.code != code || !strstr(err.message, words))
        fail_msg("%s: %s: %s", json, error_face(err.code)->name, err.message);
}

/* The entries of an item, printed, one in a line; each must be stepped over to its end. */
static void assert_entries(struct arena *arena, const struct index_definition *definition,
                           const char *item, const char *expected)
{
    CLEANUP(buf_done) struct buf text;
    struct index_entry *entries;
    struct error err;
    size_t count;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_ok(index_definition_entries(definition, document_of(arena, item), arena, &entries,
                                       &count, &err),
              &err);
    for (size_t i = 0; i < count; i++) {
        struct slice skipped = entries[i].bytes, printed = entries[i].bytes;

        assert_ok(index_entry_skip(&skipped, &err), &err);
        assert_int_equal(skipped.len, 0);
        assert_ok(index_entry_print(&printed, &text, &err), &err);
        BUF_APPEND(&text, "\n");
    }
    assert_slice_equal(buf_slice(&text), slice_of_text(expected));
}

static void a_compound_index_keeps_directions_and_the_order_of_mongodb(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                       "[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}]}");

    assert_int_equal(definition->format, 2);
    assert_int_equal(definition->prefix.len, 5);
    assert_entries(*state, definition, "{\"a\":1,\"b\":\"x\"}", "index 3 = 1, \"x\"\n");
    assert_entries(*state, definition, "{\"a\":1}", "index 3 = 1, null\n");
    /* true is behind strings in this order, and b the other way round */
    for (int i = 0; i < 2; i++) {
        static const char *const items[][2] = {{"{\"a\":\"s\",\"b\":1}", "{\"a\":true,\"b\":1}"},
                                               {"{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":1}"}};
        struct index_entry *less, *more;
        struct error err;
        size_t count;

        assert_ok(index_definition_entries(definition, document_of(*state, items[i][0]), *state,
                                           &less, &count, &err),
                  &err);
        assert_ok(index_definition_entries(definition, document_of(*state, items[i][1]), *state,
                                           &more, &count, &err),
                  &err);
        assert_true(slice_compare(less[0].bytes, more[0].bytes) < 0);
    }
}

static void elements_of_one_array_stay_together_and_two_arrays_are_refused(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                       "[{\"path\":\"/a/b\"},{\"path\":\"/a/c\"},{\"path\":\"/d\"}]}");
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_entries(*state, definition, "{\"a\":[{\"b\":1,\"c\":2},{\"b\":3}],\"d\":4}",
                   "index 3 = 1, 2, 4\nindex 3 = 3, null, 4\n");
    assert_entries(*state, definition, "{\"a\":[7],\"d\":4}", "index 3 = null, null, 4\n");
    assert_fails(index_definition_entries(definition,
                                          document_of(*state, "{\"a\":[{\"b\":1}],\"d\":[1,2]}"),
                                          *state, &entries, &count, &err),
                 &err, ERROR_PARALLEL_ARRAYS);
}

static void an_array_has_an_entry_for_each_element(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                       "[{\"path\":\"/a\"}]}");

    assert_entries(*state, definition, "{\"a\":[2,1,2,[3]]}",
                   "index 3 = 1\nindex 3 = 2\nindex 3 = array\n");
    assert_entries(*state, definition, "{\"a\":[]}", "index 3 = undefined\n");
    assert_entries(*state, definition, "{}", "index 3 = null\n");
    definition = define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                                "[{\"path\":\"/a/1\"}]}");
    assert_entries(*state, definition, "{\"a\":[2,1]}", "index 3 = 1\n");
}

static void without_multikey_an_array_is_a_value(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"sql\",\"key\":[{\"path\":\"/a\"}]}");

    assert_entries(*state, definition, "{\"a\":[2,1]}", "index 3 = array\n");
    assert_entries(*state, definition, "{}", "index 3 = undefined\n");
}

static void a_sparse_index_leaves_out_who_has_none_of_its_paths(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"sparse\":true,"
                       "\"key\":[{\"path\":\"/a\"},{\"path\":\"/b\"}]}");

    assert_entries(*state, definition, "{\"c\":1}", "");
    assert_entries(*state, definition, "{\"b\":null}", "index 3 = null, null\n");
}

static void a_partial_index_has_those_that_meet_its_filter(void **state)
{
    const struct index_definition *definition = define(
        *state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                "[{\"path\":\"/a\"}],\"filter\":[{\"path\":\"/b\",\"comparison\":\"greater\","
                "\"value\":5},{\"path\":\"/c\",\"comparison\":\"exists\"}]}");

    assert_entries(*state, definition, "{\"a\":1,\"b\":6,\"c\":0}", "index 3 = 1\n");
    assert_entries(*state, definition, "{\"a\":1,\"b\":[1,9],\"c\":0}", "index 3 = 1\n");
    assert_entries(*state, definition, "{\"a\":1,\"b\":6}", "");
    assert_entries(*state, definition, "{\"a\":1,\"b\":5,\"c\":0}", "");
    assert_entries(*state, definition, "{\"a\":1,\"b\":\"6\",\"c\":0}", ""); /* another type */
}

static void one_by_not_equal_has_all_others(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"filter\":[{\"path\":\"/b\","
                       "\"comparison\":\"notEqual\",\"value\":true}]}");

    assert_entries(*state, definition, "{\"a\":1}", "index 3 = 1\n");
    assert_entries(*state, definition, "{\"a\":1,\"b\":false}", "index 3 = 1\n");
    assert_entries(*state, definition, "{\"a\":1,\"b\":1}", "index 3 = 1\n"); /* another type */
    assert_entries(*state, definition, "{\"a\":1,\"b\":[true]}", "index 3 = 1\n");
    assert_entries(*state, definition, "{\"a\":1,\"b\":true}", "");
    assert_refused(*state,
                   "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"filter\":[{\"path\":\"/b\","
                   "\"comparison\":\"notEqual\"}]}",
                   ERROR_BAD_REQUEST, "a value");
}

static void equal_values_hash_alike_and_arrays_are_not_hashed(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                       "[{\"path\":\"/a\",\"hashed\":true}]}");
    struct index_entry *one, *other;
    struct error err;
    size_t count;

    assert_ok(index_definition_entries(definition, document_of(*state, "{\"a\":1}"), *state, &one,
                                       &count, &err),
              &err);
    assert_ok(index_definition_entries(definition, document_of(*state, "{\"a\":1.0}"), *state,
                                       &other, &count, &err),
              &err);
    assert_slice_equal(one[0].bytes, other[0].bytes);
    assert_ok(index_definition_entries(definition, document_of(*state, "{\"a\":2}"), *state, &other,
                                       &count, &err),
              &err);
    assert_false(slice_equal(one[0].bytes, other[0].bytes));
    assert_fails(index_definition_entries(definition, document_of(*state, "{\"a\":[1]}"), *state,
                                          &other, &count, &err),
                 &err, ERROR_HASHED_ARRAY);
}

static size_t entry_count(struct arena *arena, const struct index_definition *definition,
                          const char *item)
{
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_ok(index_definition_entries(definition, document_of(arena, item), arena, &entries,
                                       &count, &err),
              &err);
    for (size_t i = 0; i < count; i++) {
        struct slice skipped = entries[i].bytes;

        assert_ok(index_entry_skip(&skipped, &err), &err);
        assert_int_equal(skipped.len, 0);
    }
    return count;
}

static void a_part_of_cells_has_them_in_place_of_figures(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                       "[{\"path\":\"/a/at\",\"cells\":\"earth\"},{\"path\":\"/b\"}]}");
    static const char *const bad[] = {"\"x\"", "7", "{\"c\":1}", "[1]", "[200,0]", "[[1,2],3]"};
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_ptr_equal(definition->kind, &index_kind_spatial);
    assert_int_equal(entry_count(*state, definition, "{\"a\":{\"at\":[1,2]}}"), 1);
    assert_int_equal(entry_count(*state, definition, "{\"a\":{\"at\":[1,2]},\"b\":[1,2]}"), 2);
    /* of every figure, through arrays, those next to each other in the same cell once */
    assert_int_equal(entry_count(*state, definition,
                                 "{\"a\":[{\"at\":[1,2]},{},{\"at\":[[1,2],[50,60]]}],\"b\":1}"),
                     2);
    assert_int_equal(entry_count(*state, definition, "{\"b\":1}"), 0);
    assert_int_equal(entry_count(*state, definition, "{\"a\":{\"at\":null},\"b\":1}"), 0);
    assert_int_equal(entry_count(*state, definition, "{\"a\":{\"at\":[]},\"b\":1}"), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(
            index_definition_entries(
                definition,
                document_of(*state, arena_text(*state, arena_printf(*state, "{\"a\":{\"at\":%s}}",
                                                                    bad[i]))),
                *state, &entries, &count, &err),
            &err, ERROR_NO_FIGURE);
}

static void cells_of_a_plane_end_at_its_box(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                       "[{\"path\":\"/at\",\"cells\":{\"min\":0,\"max\":100}}]}");
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_int_equal(entry_count(*state, definition, "{\"at\":[0,100]}"), 1);
    assert_fails(index_definition_entries(definition, document_of(*state, "{\"at\":[0,101]}"),
                                          *state, &entries, &count, &err),
                 &err, ERROR_OUTSIDE_BOX);
    assert_fails(
        index_definition_entries(
            definition,
            document_of(*state, "{\"at\":{\"type\":\"LineString\",\"coordinates\":[[1,1],[2,2]]}}"),
            *state, &entries, &count, &err),
        &err, ERROR_NO_FIGURE);
    assert_refused(*state,
                   "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                   "[{\"path\":\"/at\",\"cells\":{\"min\":1,\"max\":1}}]}",
                   ERROR_BAD_REQUEST, "cells");
    assert_refused(*state,
                   "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":"
                   "[{\"path\":\"/a\",\"cells\":\"earth\"},{\"path\":\"/b\",\"cells\":\"earth\"}]}",
                   ERROR_BAD_REQUEST, "two parts");
    assert_refused(*state, "{\"name\":\"x\",\"key\":[{\"path\":\"/a\",\"cells\":\"earth\"}]}",
                   ERROR_BAD_REQUEST, "multikey");
}

static void a_wildcard_has_what_its_projection_leaves(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"wildcard\":"
                       "{\"include\":[\"/a/*\"],\"exclude\":[\"/a/secret/*\"]}}");

    assert_entries(*state, definition,
                   "{\"a\":{\"b\":[1,{\"c\":true}],\"secret\":{\"d\":1}},\"e\":2}",
                   "index 3 /a/b = 1\nindex 3 /a/b/c = true\n");
}

#define LOOSE                                                                                      \
    "\"order\":\"mongo\",\"multikey\":true,\"collation\":{\"locale\":\"en\",\"strength\":2}"

static bool same_entries(struct arena *arena, const struct index_definition *definition,
                         const char *one, const char *other, bool claims)
{
    struct index_entry *left, *right;
    size_t left_count, right_count;
    struct error err;

    assert_ok((claims ? index_definition_claims : index_definition_entries)(
                  definition, document_of(arena, one), arena, &left, &left_count, &err),
              &err);
    assert_ok((claims ? index_definition_claims : index_definition_entries)(
                  definition, document_of(arena, other), arena, &right, &right_count, &err),
              &err);
    if (left_count != right_count)
        return false;
    for (size_t i = 0; i < left_count; i++)
        if (!slice_equal(left[i].bytes, right[i].bytes))
            return false;
    return true;
}

static void texts_are_in_the_comparison_form_of_the_collation(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\"," LOOSE ",\"unique\":\"logicalPartition\",\"key\":"
                       "[{\"path\":\"/a\"}]}");
    const struct index_definition *simple =
        define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"multikey\":true,\"key\":[{"
                       "\"path\":\"/a\"}]}");
    const struct index_definition *hashed =
        define(*state, "{\"name\":\"x\"," LOOSE ",\"key\":[{\"path\":\"/a\",\"hashed\":true}]}");
    const struct index_definition *wild =
        define(*state, "{\"name\":\"x\"," LOOSE ",\"wildcard\":{}}");

    assert_true(same_entries(*state, definition, "{\"a\":\"Ann\"}", "{\"a\":\"aNN\"}", false));
    assert_true(same_entries(*state, definition, "{\"a\":\"Ann\"}", "{\"a\":\"aNN\"}", true));
    assert_false(
        same_entries(*state, definition, "{\"a\":\"Ann\"}", "{\"a\":\"\u00e4nn\"}", false));
    assert_true(same_entries(*state, definition, "{\"a\":{\"b\":[\"X\"]}}",
                             "{\"a\":{\"b\":[\"x\"]}}", false));
    assert_true(same_entries(*state, hashed, "{\"a\":\"Ann\"}", "{\"a\":\"aNN\"}", false));
    assert_true(same_entries(*state, wild, "{\"a\":[\"Ann\"]}", "{\"a\":[\"aNN\"]}", false));
    assert_false(same_entries(*state, simple, "{\"a\":\"Ann\"}", "{\"a\":\"aNN\"}", false));
    assert_false(index_definition_same(definition, simple));
    assert_entries(*state, definition, "{\"a\":5}", "index 3 = 5\n");
}

static void a_partial_index_compares_its_filter_by_its_collation(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\"," LOOSE ",\"key\":[{\"path\":\"/a\"}],\"filter\":[{"
                       "\"path\":\"/b\",\"comparison\":\"equal\",\"value\":\"YES\"}]}");

    assert_entries(*state, definition, "{\"a\":1,\"b\":\"yes\"}", "index 3 = 1\n");
    assert_entries(*state, definition, "{\"a\":1,\"b\":\"no\"}", "");
}

static void entries_of_other_rules_are_neither_used_nor_written(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\"," LOOSE ",\"key\":[{\"path\":\"/a\"}],\"collator\":"
                       "\"1.2\"}");
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_true(definition->stale);
    assert_false(index_definition_entries(definition, document_of(*state, "{\"a\":\"x\"}"), *state,
                                          &entries, &count, &err));
    assert_int_equal(err.code, ERROR_STORE_VERSION);
    assert_non_null(strstr(err.message, "version 1.2"));
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    assert_refused(*state, "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"collation\":\"de\"}",
                   ERROR_BAD_REQUEST, "neither");
    assert_refused(*state,
                   "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"collation\":{\"locale\":"
                   "\"de\"}}",
                   ERROR_NOT_SUPPORTED, "takes \"multikey\"");
    assert_refused(*state,
                   "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"collation\":{\"locale\":"
                   "\"xx\"}}",
                   ERROR_BAD_REQUEST, "locale");
    assert_refused(*state, "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"wat\":1}",
                   ERROR_BAD_REQUEST, "no member \"wat\"");
    assert_refused(*state, "{\"name\":\"x\"}", ERROR_BAD_REQUEST, "either");
    assert_refused(*state, "{\"key\":[{\"path\":\"/a\"}]}", ERROR_BAD_REQUEST, "needs a name");
    assert_refused(*state,
                   "{\"name\":\"x\",\"sparse\":true,\"key\":[{\"path\":\"/a\"}],\"filter\":"
                   "[{\"path\":\"/b\",\"comparison\":\"exists\"}]}",
                   ERROR_BAD_REQUEST, "both sparse and partial");
    assert_refused(*state,
                   "{\"name\":\"x\",\"unique\":\"logicalPartition\",\"key\":[{\"path\":\"/a\","
                   "\"hashed\":true}]}",
                   ERROR_BAD_REQUEST, "cannot be unique");
    assert_refused(*state,
                   "{\"name\":\"x\",\"expireAfterSeconds\":5,\"key\":[{\"path\":\"/a\"},"
                   "{\"path\":\"/b\"}]}",
                   ERROR_BAD_REQUEST, "one path");
    assert_refused(*state, "{\"name\":\"x\",\"unique\":\"container\",\"key\":[{\"path\":\"/a\"}]}",
                   ERROR_BAD_REQUEST, "logicalPartition");
    assert_refused(*state, "{\"name\":\"x\",\"format\":3,\"key\":[{\"path\":\"/a\"}]}",
                   ERROR_NOT_SUPPORTED, "format");
}

static void what_was_kept_is_read_back_the_same(void **state)
{
    const char *json = "{\"name\":\"x\",\"number\":3,\"format\":2,\"key\":[{\"path\":\"/a\","
                       "\"order\":\"descending\"}],\"order\":\"mongo\",\"collation\":\"simple\","
                       "\"multikey\":true,\"hidden\":true,\"unique\":\"logicalPartition\","
                       "\"expireAfterSeconds\":60,\"filter\":[{\"path\":\"/b\",\"comparison\":"
                       "\"equal\",\"value\":{\"c\":1}}],\"state\":\"ready\"}";
    struct document_value value = document_object(document_of(*state, json));
    const struct index_definition *once, *twice;
    CLEANUP(buf_done) struct buf out;
    CLEANUP(buf_done) struct buf text;
    struct document_value kept;
    struct error err;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&text, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    assert_ok(index_definition_read(&value, 9, *state, SLICE("k"), &out, &once, &err), &err);
    document_end(&out, begin);
    assert_true(document_find(buf_slice(&out), SLICE("k"), &kept));
    document_json_write_value(&kept, &text);
    assert_slice_equal(buf_slice(&text), slice_of_text(json));
    buf_clear(&text);
    assert_ok(index_definition_read(&kept, 9, *state, SLICE("k"), &text, &twice, &err), &err);
    assert_true(index_definition_same(once, twice));
    assert_int_equal(once->expire_after_s, 60);
    assert_int_equal(once->unique, INDEX_UNIQUE_LOGICAL);
    assert_true(once->hidden);
    assert_false(index_definition_same(
        once, define(*state, "{\"name\":\"x\",\"order\":\"mongo\",\"key\":[{\"path\":\"/a\"}]}")));
}

static void a_policy_with_definitions_has_the_entries_of_all(void **state)
{
    const struct index_definition *definition =
        define(*state, "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"},{\"path\":\"/b\"}]}");
    const struct index_definition *hidden =
        define(*state, "{\"name\":\"y\",\"number\":4,\"hidden\":true,\"key\":[{\"path\":\"/a\"}]}");
    const struct index_definition *both[] = {definition, hidden};
    const struct index_policy *policy, *with;
    CLEANUP(buf_done) struct buf completed;
    struct index_entry *entries;
    struct error err;
    size_t count, composites;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(SLICE_NONE, definition_names(DEFINITION_IDENTITY_ID), *state,
                                 &completed, &policy, &err),
              &err);
    with = index_policy_with(policy, both, 2, *state);
    assert_ok(index_entries(policy, document_of(*state, "{\"id\":\"1\",\"a\":2}"), *state, &entries,
                            &count, &err),
              &err);
    assert_int_equal(count, 2);
    assert_ok(index_entries(with, document_of(*state, "{\"id\":\"1\",\"a\":2}"), *state, &entries,
                            &count, &err),
              &err);
    assert_int_equal(count, 4);
    (void)index_policy_definitions(with, &count);
    assert_int_equal(count, 3);
    assert_slice_equal(index_policy_composites(with, &composites)[0].prefix, definition->prefix);
    assert_int_equal(composites, 1); /* plans are not told of the hidden one */
}

/* --- Limits ---------------------------------------------------------------------------------- */

/* An index of many paths, one of them into an array, and an item with an array and a text beside
 * it. */
static const struct index_definition *define_wide(struct arena *arena, int paths, const char *more)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_printf(&text, "{\"name\":\"wide\",\"multikey\":true,%s\"key\":[{\"path\":\"/l\"}", more);
    for (int i = 1; i < paths; i++)
        buf_printf(&text, ",{\"path\":\"/t%d\"}", i);
    buf_append_text(&text, "]}");
    return define(arena, arena_text(arena, buf_slice(&text)));
}

static struct slice wide_item(struct arena *arena, int elements, int different, int texts,
                              int text_len)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_append_text(&text, "{\"l\":[");
    for (int i = 0; i < elements; i++)
        buf_printf(&text, "%s%d", i ? "," : "", i % different);
    buf_append_text(&text, "]");
    for (int i = 1; i <= texts; i++)
        buf_printf(&text, ",\"t%d\":\"%0*d\"", i, text_len, 7);
    buf_append_text(&text, "}");
    return document_of(arena, arena_text(arena, buf_slice(&text)));
}

static void assert_too_large(struct arena *arena, const struct index_definition *definition,
                             struct slice item, const char *words)
{
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_fails(index_definition_entries(definition, item, arena, &entries, &count, &err), &err,
                 ERROR_TOO_LARGE);
    assert_non_null(strstr(err.message, words));
}

static void the_bytes_of_all_entries_are_limited(void **state)
{
    const struct index_definition *definition = define_wide(*state, 32, "");
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_ok(index_definition_entries(definition, wide_item(*state, 1000, 1000, 31, 300), *state,
                                       &entries, &count, &err),
              &err);
    assert_int_equal(count, 1000);
    assert_too_large(*state, definition, wide_item(*state, 20000, 20000, 31, 300), "bytes");
}

/* Nothing comes of elements that repeat, and each is looked at by every path. */
static void the_steps_to_find_entries_are_limited(void **state)
{
    const struct index_definition *definition = define_wide(*state, 32, "");
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_ok(index_definition_entries(definition, wide_item(*state, 100000, 7, 31, 1), *state,
                                       &entries, &count, &err),
              &err);
    assert_int_equal(count, 7);
    assert_too_large(*state, definition, wide_item(*state, 1000000, 7, 31, 1), "steps");
}

/* A long text beside an array is hashed, or claimed, once for each element. */
static void values_that_are_not_cut_are_counted_by_their_bytes(void **state)
{
    const struct index_definition *unique =
        define_wide(*state, 2, "\"unique\":\"logicalPartition\",");
    struct slice item = wide_item(*state, 10000, 10000, 1, 1000000);
    struct index_entry *claims;
    struct error err;
    size_t count;

    assert_fails(index_definition_claims(unique, item, *state, &claims, &count, &err), &err,
                 ERROR_TOO_LARGE);
    assert_too_large(*state,
                     define(*state, "{\"name\":\"x\",\"multikey\":true,\"key\":[{\"path\":\"/l\"},"
                                    "{\"path\":\"/t1\",\"hashed\":true}]}"),
                     item, "steps");
}

static void a_filter_is_not_asked_for_ever(void **state)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_append_text(&text, "{\"name\":\"x\",\"key\":[{\"path\":\"/a\"}],\"filter\":[");
    for (int i = 0; i < 32; i++)
        buf_printf(&text, "%s{\"path\":\"/l\",\"comparison\":\"equal\",\"value\":499999}",
                   i ? "," : ""); /* the last element */
    buf_append_text(&text, "]}");
    assert_too_large(*state, define(*state, arena_text(*state, buf_slice(&text))),
                     wide_item(*state, 500000, 500000, 0, 0), "steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_compound_index_keeps_directions_and_the_order_of_mongodb),
        cmocka_unit_test(elements_of_one_array_stay_together_and_two_arrays_are_refused),
        cmocka_unit_test(an_array_has_an_entry_for_each_element),
        cmocka_unit_test(without_multikey_an_array_is_a_value),
        cmocka_unit_test(a_sparse_index_leaves_out_who_has_none_of_its_paths),
        cmocka_unit_test(a_partial_index_has_those_that_meet_its_filter),
        cmocka_unit_test(one_by_not_equal_has_all_others),
        cmocka_unit_test(equal_values_hash_alike_and_arrays_are_not_hashed),
        cmocka_unit_test(a_part_of_cells_has_them_in_place_of_figures),
        cmocka_unit_test(cells_of_a_plane_end_at_its_box),
        cmocka_unit_test(a_wildcard_has_what_its_projection_leaves),
        cmocka_unit_test(texts_are_in_the_comparison_form_of_the_collation),
        cmocka_unit_test(a_partial_index_compares_its_filter_by_its_collation),
        cmocka_unit_test(entries_of_other_rules_are_neither_used_nor_written),
        cmocka_unit_test(what_cannot_be_is_refused_by_name),
        cmocka_unit_test(what_was_kept_is_read_back_the_same),
        cmocka_unit_test(a_policy_with_definitions_has_the_entries_of_all),
        cmocka_unit_test(the_bytes_of_all_entries_are_limited),
        cmocka_unit_test(the_steps_to_find_entries_are_limited),
        cmocka_unit_test(values_that_are_not_cut_are_counted_by_their_bytes),
        cmocka_unit_test(a_filter_is_not_asked_for_ever),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
