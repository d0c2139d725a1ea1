/* What createIndexes names becomes a definition that the core takes, or is refused. */
#include "front/mongo/index/spec.h"

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

static const struct index_definition *definition_of(struct arena *arena, const char *json,
                                                    struct mongo_index_spec *ret_spec)
{
    CLEANUP(buf_done) struct buf out;
    const struct index_definition *definition;
    struct document_value value;
    struct error err;

    buf_init(&out, BUF_DEFAULT_MAX);
    assert_ok(mongo_index_spec_read(document_of(arena, json), NULL, arena, ret_spec, &err), &err);
    value = document_object(ret_spec->definition);
    assert_ok(index_definition_read(&value, 7, arena, SLICE("0"), &out, &definition, &err), &err);
    return definition;
}

static void refused(struct arena *arena, const char *json, int code)
{
    struct mongo_index_spec spec;
    struct error err;

    assert_false(mongo_index_spec_read(document_of(arena, json), NULL, arena, &spec, &err));
    assert_int_equal(mongo_error_code(&err), code);
}

static void a_key_becomes_parts_in_its_directions(void **state)
{
    struct mongo_index_spec spec;
    const struct index_definition *definition =
        definition_of(*state, "{\"key\":{\"a.b c\":1,\"d\":-2.5,\"e\":\"hashed\"}}", &spec);

    assert_true(slice_equal(spec.name, SLICE("a.b c_1_d_-2.5_e_hashed")));
    assert_int_equal(definition->part_count, 3);
    assert_int_equal(definition->parts[0].path.count, 2);
    assert_true(slice_equal(definition->parts[0].path.segments[1].name, SLICE("b c")));
    assert_false(definition->parts[0].descending);
    assert_true(definition->parts[1].descending);
    assert_true(definition->parts[2].hashed);
    assert_true(definition->multikey && definition->counted);
    assert_int_equal(definition->order, DOCUMENT_ORDER_MONGO);
}

static void options_are_carried_over_and_shown(void **state)
{
    struct mongo_index_spec spec;
    const struct index_definition *definition = definition_of(
        *state,
        "{\"key\":{\"a\":1},\"name\":\"x\",\"unique\":1,\"sparse\":true,\"hidden\":true,"
        "\"background\":true,\"v\":2,\"expireAfterSeconds\":60}",
        &spec);
    struct document_value value;

    assert_true(definition->sparse && definition->hidden && spec.unique);
    assert_int_equal(definition->unique, INDEX_UNIQUE_LOGICAL);
    assert_int_equal(definition->expire_after_s, 60);
    assert_true(document_find(spec.shown, SLICE("unique"), &value) && value.boolean);
    assert_false(document_find(spec.shown, SLICE("background"), &value));
}

static void a_partial_filter_becomes_conditions_and_alternatives(void **state)
{
    struct mongo_index_spec spec;
    const struct index_definition *definition = definition_of(
        *state,
        "{\"key\":{\"a\":1},\"partialFilterExpression\":{\"b\":{\"$gt\":1,\"$lte\":9},"
        "\"c\":{\"$in\":[1,2]},\"$or\":[{\"d\":1},{\"e\":{\"$exists\":true}}],"
        "\"f\":{\"$type\":\"number\"}}}",
        &spec);
    struct arena *arena = *state;

    assert_int_equal(definition->filter_count, 7);
    assert_int_equal(definition->filter[2].any, definition->filter[3].any);
    assert_int_equal(definition->filter[4].any, definition->filter[5].any);
    assert_true(definition->filter[2].any != definition->filter[4].any);
    for (size_t i = 0; i < 2; i++) {
        struct index_entry *entries;
        struct error err;
        size_t count;

        assert_ok(index_definition_entries(
                      definition,
                      document_of(arena, i ? "{\"a\":1,\"b\":5,\"c\":2,\"e\":null,\"f\":1.5}"
                                           : "{\"a\":1,\"b\":5,\"c\":2,\"f\":1.5}"),
                      arena, &entries, &count, &err),
                  &err);
        assert_int_equal(count, i);
    }
    refused(arena, "{\"key\":{\"a\":1},\"partialFilterExpression\":{\"$or\":[{\"a\":1,\"b\":1}]}}",
            67);
    refused(arena, "{\"key\":{\"a\":1},\"partialFilterExpression\":{\"a\":null}}", 67);
    refused(arena, "{\"key\":{\"a\":1},\"partialFilterExpression\":{\"a\":{\"$ne\":1}}}", 67);
}

static void a_wildcard_has_its_paths(void **state)
{
    struct mongo_index_spec spec;
    const struct index_definition *definition =
        definition_of(*state, "{\"key\":{\"a.$**\":1}}", &spec);
    struct document_segment a = {.name = SLICE("a")}, id = {.name = SLICE("_id")};
    struct document_path path = {&a, 1, DOCUMENT_PATH_END_SCALAR};

    assert_true(index_definition_covers(definition, &path));
    path.segments = &id;
    assert_false(index_definition_covers(definition, &path));
    definition = definition_of(*state, "{\"key\":{\"$**\":1}}", &spec);
    assert_false(index_definition_covers(definition, &path));
    path.segments = &a;
    assert_true(index_definition_covers(definition, &path));
    definition =
        definition_of(*state, "{\"key\":{\"$**\":1},\"wildcardProjection\":{\"a\":0}}", &spec);
    assert_false(index_definition_covers(definition, &path));
}

static void what_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *json;
        int code;
    } cases[] = {
        {"{}", 9},
        {"{\"key\":1}", 14},
        {"{\"key\":{}}", 67},
        {"{\"key\":{\"a\":0}}", 67},
        {"{\"key\":{\"a..b\":1}}", 67},
        {"{\"key\":{\"a\":1},\"name\":7}", 14},
        {"{\"key\":{\"a\":1},\"name\":\"\"}", 67},
        {"{\"key\":{\"a\":1},\"unique\":\"yes\"}", 14},
        {"{\"key\":{\"a\":1},\"v\":9}", 67},
        {"{\"key\":{\"a\":1},\"expireAfterSeconds\":3000000000}", 67},
        {"{\"key\":{\"$**\":1,\"a\":1}}", 67},
        {"{\"key\":{\"$**\":1},\"unique\":true}", 67},
        {"{\"key\":{\"$**\":1},\"wildcardProjection\":{}}", 9},
        {"{\"key\":{\"a\":1},\"wildcardProjection\":{\"a\":1}}", 2},
        {"{\"key\":{\"a\":1},\"collation\":{\"locale\":\"xx\"}}", 2},
        {"{\"key\":{\"a\":1},\"collation\":{}}", 2},
        {"{\"key\":{\"_id\":1},\"collation\":{\"locale\":\"en\"}}", 2},
        {"{\"key\":{\"a\":1},\"prepareUnique\":true}", 238},
        {"{\"key\":{\"a\":\"geoHaystack\"}}", 238},
        {"{\"key\":{\"_id\":1},\"expireAfterSeconds\":5}", 197},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(*state, cases[i].json, cases[i].code);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_key_becomes_parts_in_its_directions),
        TEST(options_are_carried_over_and_shown),
        TEST(a_partial_filter_becomes_conditions_and_alternatives),
        TEST(a_wildcard_has_its_paths),
        TEST(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
