#include "front/table/entity.h"

#include "document/json.h"
#include "support/check.h"

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

static struct slice entity(struct arena *arena, const char *json)
{
    struct table_keys keys = {0};
    struct slice document;
    struct error err;

    assert_ok(table_entity_read(slice_of_text(json), &keys, arena, &document, &err), &err);
    return document;
}

static const char *stored(struct arena *arena, struct slice document)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    document_json_write(document, &out);
    return arena_text(arena, buf_slice(&out));
}

static const char *shown(struct arena *arena, struct slice document, struct table_shape shape)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    table_entity_append(&shape, document, 0, false, &out);
    return arena_text(arena, buf_slice(&out));
}

static void an_entity_is_stored_with_its_keys_first(void **state)
{
    assert_string_equal(
        stored(*state, entity(*state, "{\"a\":1,\"odata.etag\":\"x\",\"RowKey\":\"r\",\"b\":null,"
                                      "\"PartitionKey\":\"p\",\"Timestamp\":5}")),
        "{\"id\":\"r\",\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1}");
}

static void names_of_the_store_are_kept_apart(void **state)
{
    struct slice document =
        entity(*state, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"id\":5,\"ttl\":\"x\"}");

    assert_string_equal(
        stored(*state, document),
        "{\"id\":\"r\",\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"$id\":5,\"$ttl\":\"x\"}");
    assert_string_equal(shown(*state, document, (struct table_shape){0}),
                        "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":"
                        "\"1970-01-01T00:00:00.0000000Z\",\"id\":5,\"ttl\":\"x\"}");
}

static void the_body_agrees_with_the_path(void **state)
{
    struct table_keys keys = {SLICE("p"), SLICE("r")};
    struct slice document;
    struct error err;

    assert_ok(table_entity_read(SLICE("{\"a\":1}"), &keys, *state, &document, &err), &err);
    assert_ok(table_entity_read(SLICE("{\"RowKey\":\"r\"}"), &keys, *state, &document, &err), &err);
    assert_fails(table_entity_read(SLICE("{\"RowKey\":\"s\"}"), &keys, *state, &document, &err),
                 &err, ERROR_BAD_REQUEST);
}

static void a_merge_keeps_what_it_does_not_name(void **state)
{
    struct slice before =
        entity(*state, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1,\"b\":2,"
                       "\"d\":\"2024-01-01T00:00:00.1234567Z\",\"d@odata.type\":\"Edm.DateTime\","
                       "\"e\":\"2024-01-01T00:00:00.0000001Z\",\"e@odata.type\":\"Edm.DateTime\"}");
    struct slice with =
        entity(*state, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"b\":3,\"c\":4,\"e\":\"text\"}");
    struct slice after;
    struct error err;

    assert_ok(table_entity_merge(before, with, *state, &after, &err), &err);
    assert_string_equal(shown(*state, after, (struct table_shape){0}),
                        "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"Timestamp\":"
                        "\"1970-01-01T00:00:00.0000000Z\",\"b\":3,\"c\":4,\"e\":\"text\",\"a\":1,"
                        "\"d\":\"2024-01-01T00:00:00.1234567Z\"}");
    assert_null(strstr(stored(*state, after), "\"e\":1"));
}

static void metadata_says_what_json_does_not(void **state)
{
    struct slice document = entity(*state, "{\"PartitionKey\":\"a'b\",\"RowKey\":\"r\",\"n\":\"5\","
                                           "\"n@odata.type\":\"Edm.Int64\",\"d\":2.0}");
    struct table_shape shape = {
        .minimal = true, .root = SLICE("http://h"), .account = SLICE("acme"), .table = SLICE("t")};
    const char *minimal = shown(*state, document, shape), *full;

    assert_contains(minimal,
                    "{\"odata.etag\":\"W/\\\"datetime'1970-01-01T00%3A00%3A00.0000000Z'\\\"\"");
    assert_contains(minimal, "\"n\":\"5\",\"n@odata.type\":\"Edm.Int64\",\"d\":2.0}");
    shape.full = true;
    full = shown(*state, document, shape);
    assert_contains(full, "\"odata.type\":\"acme.t\"");
    assert_contains(full, "\"odata.id\":\"http://h/t(PartitionKey='a''b',RowKey='r')\"");
    assert_contains(full, "\"Timestamp@odata.type\":\"Edm.DateTime\"");
    assert_contains(full, "\"d\":2.0,\"d@odata.type\":\"Edm.Double\"");
}

static void a_selection_shows_no_more(void **state)
{
    const struct slice names[] = {SLICE("b"), SLICE("none")};
    struct slice document =
        entity(*state, "{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"a\":1,\"b\":2}");

    assert_string_equal(
        shown(*state, document, (struct table_shape){.selection = {names, ARRAY_LEN(names)}}),
        "{\"b\":2}");
}

static void versions_of_one_millisecond_have_different_etags(void **state UNUSED)
{
    char first[TABLE_ETAG_LEN], second[TABLE_ETAG_LEN];

    table_etag_write(
        table_entity_ticks(&(struct item_header){.lsn = 9999, .wall_ms = 1700000000000}), first);
    table_etag_write(
        table_entity_ticks(&(struct item_header){.lsn = 10000, .wall_ms = 1700000000000}), second);
    assert_memory_not_equal(first, second, sizeof first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_entity_is_stored_with_its_keys_first, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_the_store_are_kept_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(the_body_agrees_with_the_path, setup, teardown),
        cmocka_unit_test_setup_teardown(a_merge_keeps_what_it_does_not_name, setup, teardown),
        cmocka_unit_test_setup_teardown(metadata_says_what_json_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_selection_shows_no_more, setup, teardown),
        cmocka_unit_test(versions_of_one_millisecond_have_different_etags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
