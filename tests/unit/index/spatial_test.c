/* Entries of figures: cells, at whichever path. */
#include "index/policy.h"

#include "definition/names.h"
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

static const struct index_policy *policy_of(struct arena *arena, const char *spatial)
{
    CLEANUP(buf_done) struct buf completed, json;
    const struct index_policy *policy;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    buf_init(&json, BUF_DEFAULT_MAX);
    buf_printf(&json, "{\"excludedPaths\":[{\"path\":\"/*\"}],\"spatialIndexes\":[%s]}", spatial);
    buf_append_byte(&json, 0);
    assert_ok(index_policy_parse(document_of(arena, (const char *)json.data),
                                 definition_names(DEFINITION_IDENTITY_ID), arena, &completed,
                                 &policy, &err),
              &err);
    return index_policy_with_cells(policy, arena);
}

/* Printed, one in a line; each is stepped over to its end. */
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
        struct slice rest = entries[i].bytes;

        assert_ok(index_entry_print(&rest, &text, &err), &err);
        assert_int_equal(rest.len, 0);
        assert_false(index_entry_is_numbered(entries[i].bytes));
        BUF_APPEND(&text, "\n");
    }
    assert_slice_equal(buf_slice(&text), slice_of_text(expected));
}

static void a_point_has_one_entry_and_what_is_no_figure_none(void **state)
{
    const struct index_policy *policy = policy_of(*state, "{\"path\":\"/at/?\"}");

    assert_entries(*state, policy, "{\"at\":{\"type\":\"Point\",\"coordinates\":[0,0]}}",
                   "cell of /at = \"1000000000000001\"\n");
    assert_entries(*state, policy, "{\"at\":{\"type\":\"Point\",\"coordinates\":[0,100]}}", "");
    assert_entries(*state, policy, "{\"at\":{\"type\":\"Circle\",\"coordinates\":[0,1]}}", "");
    assert_entries(*state, policy, "{\"at\":5}", "");
    assert_entries(*state, policy, "{}", "");
    assert_entries(*state, policy, "{\"at\":{\"deep\":{\"type\":\"Point\",\"coordinates\":[0,0]}}}",
                   "");
}

static void paths_lead_through_arrays_and_to_everything_below(void **state)
{
    assert_entries(*state, policy_of(*state, "{\"path\":\"/a/[]/b/?\"}"),
                   "{\"a\":[{\"b\":{\"type\":\"Point\",\"coordinates\":[0,0]}},5,{\"b\":{\"type\":"
                   "\"Point\",\"coordinates\":[0,0]}}]}",
                   "cell of /a/[]/b = \"1000000000000001\"\n");
    assert_entries(*state, policy_of(*state, "{\"path\":\"/*\"}"),
                   "{\"a\":{\"type\":\"Point\",\"coordinates\":[0,0]},\"b\":[{\"c\":{\"type\":"
                   "\"Point\",\"coordinates\":[0,0]}}]}",
                   "cell of /a = \"1000000000000001\"\ncell of /b/[]/c = \"1000000000000001\"\n");
}

static void a_plane_has_the_cells_of_its_box(void **state)
{
    const struct index_policy *policy =
        policy_of(*state, "{\"path\":\"/at/?\",\"boundingBox\":{\"xmin\":0,\"ymin\":0,\"xmax\":4,"
                          "\"ymax\":4}}");

    assert_entries(*state, policy, "{\"at\":{\"type\":\"Point\",\"coordinates\":[0,0]}}",
                   "cell of /at = \"0000000000000100\"\n");
    assert_entries(*state, policy, "{\"at\":{\"type\":\"Point\",\"coordinates\":[9,9]}}",
                   "cell of /at = \"e000000000000001\"\n");
}

static void an_item_of_very_many_figures_is_refused(void **state)
{
    const struct index_policy *policy = policy_of(*state, "{\"path\":\"/a/[]/?\"}");
    CLEANUP(buf_done) struct buf json;
    struct index_entry *entries;
    struct error err;
    size_t count;

    buf_init(&json, 1 << 22);
    BUF_APPEND(&json, "{\"a\":[");
    for (int i = 0; i < 3000; i++)
        buf_printf(&json, "%s{\"type\":\"LineString\",\"coordinates\":[[%d,0],[%d,1]]}",
                   i ? "," : "", i % 180, i % 180);
    BUF_APPEND(&json, "]}");
    buf_append_byte(&json, 0);
    assert_fails(index_entries(policy, document_of(*state, (const char *)json.data), *state,
                               &entries, &count, &err),
                 &err, ERROR_TOO_LARGE);
}

static void policies_are_the_same_where_figures_have_the_same_cells(void **state)
{
    struct document_segment segment = {.name = SLICE("at")};
    struct document_path path = {.segments = &segment, .count = 1};
    const struct index_policy *policy = policy_of(*state, "{\"path\":\"/at/?\"}");
    const struct index_policy *all = policy_of(*state, "{\"path\":\"/*\"}");

    assert_non_null(index_policy_spatial_at(policy, &path));
    assert_true(index_spatial_same(index_policy_spatial_at(policy, &path)->spatial,
                                   index_policy_spatial_at(all, &path)->spatial));
    segment.name = SLICE("other");
    assert_null(index_policy_spatial_at(policy, &path));
    assert_non_null(index_policy_spatial_at(all, &path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_has_one_entry_and_what_is_no_figure_none),
        cmocka_unit_test(paths_lead_through_arrays_and_to_everything_below),
        cmocka_unit_test(a_plane_has_the_cells_of_its_box),
        cmocka_unit_test(an_item_of_very_many_figures_is_refused),
        cmocka_unit_test(policies_are_the_same_where_figures_have_the_same_cells),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
