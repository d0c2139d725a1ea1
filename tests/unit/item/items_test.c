#include "item/operation.h"

#include "base/thread.h"

#include "definition/names.h"
#include "document/json.h"
#include "item/expiry.h"
#include "item/feed_read.h"
#include "item/transform.h"
#include "partition/layout.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

/* A container on a memory node, and what one test needs at hand. */
struct fixture {
    struct test_space test;
    struct arena *arena;
};

static void open_with(struct fixture *fixture, const struct test_space_options *options)
{
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&fixture->test, engine, options);
}

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    fixture->arena = arena_new();
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    test_space_done(&fixture->test);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

static struct item_operation operation_of(struct fixture *fixture, const char *pk, const char *id,
                                          enum item_verb verb)
{
    return (struct item_operation){.space = &fixture->test.space,
                                   .arena = fixture->arena,
                                   .verb = verb,
                                   .key = test_space_key(&fixture->test, pk),
                                   .id = document_string(slice_of_text(id))};
}

static bool write_item(struct fixture *fixture, const char *pk, const char *id,
                       enum transaction_verb verb, const char *json,
                       const struct transaction_options *options,
                       struct transaction_result *ret_result, struct error *err)
{
    struct item_operation op = operation_of(fixture, pk, id, item_verb_of(verb));

    if (json)
        op.document = document_of(fixture->arena, json);
    if (options)
        op.options = *options;
    if (!item_operation_run(&op, err))
        return false;
    *ret_result = op.result;
    return true;
}

static struct transaction_result must_write(struct fixture *fixture, const char *pk, const char *id,
                                            enum transaction_verb verb, const char *json)
{
    struct transaction_result result;
    struct error err;

    assert_ok(write_item(fixture, pk, id, verb, json, NULL, &result, &err), &err);
    return result;
}

static const char *json_of(struct fixture *fixture, struct slice document)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    document_json_write(document, &text);
    return arena_text(fixture->arena, buf_slice(&text));
}

/* The JSON of an item, or "" when there is none. */
static const char *read_item(struct fixture *fixture, const char *pk, const char *id)
{
    struct item_operation op = operation_of(fixture, pk, id, ITEM_READ);
    struct error err;

    if (!item_operation_run(&op, &err)) {
        assert_int_equal(err.code, ERROR_ITEM_MISSING);
        return "";
    }
    return json_of(fixture, op.result.item.document);
}

static struct item_scope scope_of(struct fixture *fixture, const char *pk)
{
    struct partition_key key = test_space_key(&fixture->test, pk);

    return item_space_scope(&fixture->test.space,
                            item_logical(&fixture->test.definition.key, &key, fixture->arena));
}

/* How many keys a family of the first partition has. */
static size_t family_count(struct fixture *fixture, uint8_t family)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    uint8_t min = family, max = (uint8_t)(family + 1);
    struct engine_range range = {.min = slice_of(&min, 1), .max = slice_of(&max, 1)};
    struct error err;
    size_t count = 0;

    assert_ok(engine_iterator_new(fixture->test.engine, NULL, 1, range, false, ENGINE_READ_ANY,
                                  &iterator, &err),
              &err);
    for (;; count++) {
        struct engine_entry entry;

        assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
        if (entry.found != ENGINE_FOUND)
            return count;
    }
}

/* --- Single items ---------------------------------------------------------------------------- */

static void items_are_written_and_read_by_key_and_id(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    struct transaction_result result;

    open_with(fixture, &(struct test_space_options){.partitions = 4});
    result = must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE,
                        "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_true(result.created);
    assert_string_equal(read_item(fixture, "[\"a\"]", "1"), "{\"id\":\"1\",\"pk\":\"a\",\"n\":1}");
    assert_string_equal(read_item(fixture, "[\"b\"]", "1"), "");
    assert_fails(write_item(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\"}", NULL,
                            &result, &err),
                 &err, ERROR_ITEM_EXISTS);
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"id\":\"1\",\"n\":2}");
    assert_string_equal(read_item(fixture, "[\"a\"]", "1"), "{\"id\":\"1\",\"n\":2}");
    assert_false(
        must_write(fixture, "[\"a\"]", "1", TRANSACTION_UPSERT, "{\"id\":\"1\",\"n\":3}").created);
    assert_true(
        must_write(fixture, "[\"b\"]", "1", TRANSACTION_UPSERT, "{\"id\":\"1\",\"n\":4}").created);
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_DELETE, NULL);
    assert_string_equal(read_item(fixture, "[\"a\"]", "1"), "");
    assert_fails(write_item(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"id\":\"1\"}", NULL,
                            &result, &err),
                 &err, ERROR_ITEM_MISSING);
}

static void etags_guard_writes(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_options options = {0};
    struct transaction_result result;
    char first[ITEM_ETAG_LEN], second[ITEM_ETAG_LEN];
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    result = must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\"}");
    item_etag(&result.item.header, first);
    result = must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"id\":\"1\",\"n\":1}");
    item_etag(&result.item.header, second);
    assert_memory_not_equal(first, second, ITEM_ETAG_LEN);
    options.if_match = slice_of(first, sizeof first);
    assert_fails(write_item(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"id\":\"1\"}",
                            &options, &result, &err),
                 &err, ERROR_PRECONDITION_FAILED);
    options.if_match = slice_of(second, sizeof second);
    assert_ok(write_item(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"id\":\"1\"}", &options,
                         &result, &err),
              &err);
    options = (struct transaction_options){.if_none_match = SLICE("*")};
    assert_fails(write_item(fixture, "[\"a\"]", "1", TRANSACTION_UPSERT, "{\"id\":\"1\"}", &options,
                            &result, &err),
                 &err, ERROR_PRECONDITION_FAILED);
}

static void an_item_is_found_by_its_number(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_result result;
    struct item item;
    struct error err;

    open_with(fixture, &(struct test_space_options){.partitions = 5});
    for (int i = 0; i < 20; i++)
        result = must_write(
            fixture, arena_text(fixture->arena, arena_printf(fixture->arena, "[\"tenant %d\"]", i)),
            "x", TRANSACTION_CREATE, "{\"id\":\"x\"}");
    assert_ok(items_read_number(&fixture->test.space, result.item.header.number, fixture->arena,
                                &item, &err),
              &err);
    assert_slice_equal(item.key, result.item.key);
    assert_fails(items_read_number(&fixture->test.space, 12345, fixture->arena, &item, &err), &err,
                 ERROR_ITEM_MISSING);
}

static void a_route_is_one_key_in_parts(void **state)
{
    struct fixture *fixture = *state;
    struct partition_key key;
    struct document_value id = document_string(SLICE("1"));
    struct item_route route;

    open_with(fixture, &(struct test_space_options){.partitions = 8});
    key = test_space_key(&fixture->test, "[\"a\"]");
    route = item_space_route(&fixture->test.space, &key, &id, fixture->arena);
    assert_slice_equal(route.logical,
                       item_logical(&fixture->test.definition.key, &key, fixture->arena));
    assert_slice_equal(route.pk, metering_pk(&key, fixture->arena));
    assert_slice_equal(route.key, item_key(definition_names_of(fixture->test.space.definition),
                                           route.logical, &id, fixture->arena));
    assert_ptr_equal(route.span, partition_map_find(fixture->test.space.map, route.logical));
    key.former_only = true; /* it says nothing in the terms of now */
    route = item_space_route(&fixture->test.space, &key, &id, fixture->arena);
    assert_ptr_equal(route.span, partition_map_spans(fixture->test.space.map, &(size_t){0}));
    assert_int_equal(route.pk.len, 0);
}

/* --- Without blocking ------------------------------------------------------------------------ */

struct started {
    struct item_operation op;
    struct mutex lock;
    struct condition ended;
    bool is_done;
};

static void started_done(struct item_operation *op)
{
    struct started *started = CONTAINER_OF(op, struct started, op);

    WITH_LOCK (&started->lock) {
        started->is_done = true;
        condition_signal(&started->ended);
    }
}

/* Starts it, waits for done, and settles it: what a loop does. */
static bool start_and_settle(struct started *started, struct error *err)
{
    mutex_init(&started->lock);
    condition_init(&started->ended);
    started->is_done = false;
    started->op.done = started_done;
    assert_int_equal(item_operation_start(&started->op, err), ITEM_START_UNDER_WAY);
    WITH_LOCK (&started->lock) {
        while (!started->is_done)
            condition_wait(&started->ended, &started->lock);
    }
    condition_done(&started->ended);
    mutex_done(&started->lock);
    return item_operation_settle(&started->op, err);
}

static void a_started_write_is_settled_after_its_commit(void **state)
{
    struct fixture *fixture = *state;
    struct started started = {0};
    struct item_operation read;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    started.op = operation_of(fixture, "[\"a\"]", "1", ITEM_CREATE);
    started.op.document = document_of(fixture->arena, "{\"id\":\"1\"}");
    assert_ok(start_and_settle(&started, &err), &err);
    assert_true(started.op.result.created);
    assert_int_equal(started.op.metered.charge_cru, started.op.work.write_cru);
    assert_true(started.op.metered.charge_cru > 0);
    read = operation_of(fixture, "[\"a\"]", "1", ITEM_READ);
    assert_int_equal(item_operation_start(&read, &err), ITEM_START_ENDED);
    assert_slice_equal(read.result.item.document, started.op.document);
    read = operation_of(fixture, "[\"a\"]", "2", ITEM_READ);
    assert_int_equal(item_operation_start(&read, &err), ITEM_START_FAILED);
    assert_int_equal(err.code, ERROR_ITEM_MISSING);
}

static void what_would_block_is_cold_and_leaves_no_trace(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation op;
    struct error err;

    open_with(fixture, &(struct test_space_options){.unique_paths = {"/mail"}});
    op = operation_of(fixture, "[\"a\"]", "1", ITEM_CREATE);
    op.document = document_of(fixture->arena, "{\"id\":\"1\",\"mail\":\"x\"}");
    assert_int_equal(item_operation_start(&op, &err), ITEM_START_COLD);
    assert_int_equal(op.metered.charge_cru, 0);
    assert_ok(item_operation_run(&op, &err), &err);
    assert_true(op.result.created);
}

static void an_item_moves_to_another_key_whole(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation move;
    struct partition_key to;
    struct error err;

    open_with(fixture, &(struct test_space_options){.partitions = 8});
    move = operation_of(fixture, "[\"a\"]", "1", ITEM_REPLACE);
    move.document = document_of(fixture->arena, "{\"id\":\"1\",\"pk\":\"b\"}");
    to = test_space_key(&fixture->test, "[\"b\"]");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\",\"pk\":\"a\"}");
    assert_ok(item_operation_move(&move, &to, NULL, &err), &err);
    assert_string_equal(read_item(fixture, "[\"a\"]", "1"), "");
    assert_string_equal(read_item(fixture, "[\"b\"]", "1"), "{\"id\":\"1\",\"pk\":\"b\"}");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\",\"pk\":\"a\"}");
    assert_fails(item_operation_move(&move, &to, NULL, &err), &err, ERROR_ITEM_EXISTS);
    assert_string_not_equal(read_item(fixture, "[\"a\"]", "1"), "");
}

/* --- Index ----------------------------------------------------------------------------------- */

static void an_overwrite_touches_only_the_entries_that_changed(void **state)
{
    struct fixture *fixture = *state;
    struct item_operation op;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE,
               "{\"id\":\"1\",\"a\":1,\"b\":2,\"c\":3,\"d\":[1,2,3]}");
    assert_int_equal(family_count(fixture, 'i'), 7);
    op = operation_of(fixture, "[\"a\"]", "1", ITEM_REPLACE);
    op.document =
        document_of(fixture->arena, "{\"id\":\"1\",\"a\":1,\"b\":5,\"c\":3,\"d\":[1,2,3]}");
    assert_ok(item_operation_run(&op, &err), &err);
    assert_int_equal(op.work.index_entries, 2);
    assert_int_equal(family_count(fixture, 'i'), 7);
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_DELETE, NULL);
    assert_int_equal(family_count(fixture, 'i'), 0);
    assert_int_equal(family_count(fixture, 'r'), 0);
    assert_int_equal(family_count(fixture, 'f'), 0);
    assert_int_equal(family_count(fixture, 'd'), 0);
}

static void the_index_finds_items_in_the_order_of_their_values(void **state)
{
    struct fixture *fixture = *state;
    static const int values[] = {5, -3, 12, 5, 0};
    struct item_index_request request = {0};
    CLEANUP(buf_done) struct buf path_bytes;
    struct document_path path;
    struct item_scope scope;
    struct item_index_page page;
    struct item items[5];
    struct slice keys[5];
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        char id[8];

        snprintf(id, sizeof id, "%zu", i);
        must_write(
            fixture, "[\"a\"]", id, TRANSACTION_CREATE,
            arena_text(fixture->arena,
                       arena_printf(fixture->arena, "{\"id\":\"%zu\",\"n\":%d}", i, values[i])));
    }
    buf_init(&path_bytes, 1000);
    assert_ok(document_path_parse(SLICE("/n/?"), DOCUMENT_PATH_INDEX, fixture->arena, &path, &err),
              &err);
    index_path_append(&path, &path_bytes);
    request.path = buf_slice(&path_bytes);
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(item_scan_index(&scope, &request, fixture->arena, &page, &err), &err);
    assert_int_equal(page.count, 5);
    for (size_t i = 0; i < 5; i++)
        keys[i] = page.hits[i].key;
    assert_ok(item_scan_fetch(&scope, NULL, keys, 5, fixture->arena, items, &err), &err);
    assert_string_equal(json_of(fixture, items[0].document), "{\"id\":\"1\",\"n\":-3}");
    assert_string_equal(json_of(fixture, items[1].document), "{\"id\":\"4\",\"n\":0}");
    assert_string_equal(json_of(fixture, items[2].document), "{\"id\":\"0\",\"n\":5}");
    assert_string_equal(json_of(fixture, items[3].document), "{\"id\":\"3\",\"n\":5}");
    assert_string_equal(json_of(fixture, items[4].document), "{\"id\":\"2\",\"n\":12}");
}

static void a_changed_policy_remakes_entries_and_leaves_versions_alone(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *nothing;
    struct transform_step step;
    struct item_scope scope;
    const char *before;
    struct error err;
    size_t feed;

    open_with(fixture, &(struct test_space_options){0});
    buf_init(&completed, BUF_DEFAULT_MAX);
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\",\"x\":1,\"y\":2}");
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_CREATE, "{\"id\":\"2\",\"x\":1,\"y\":2}");
    before = read_item(fixture, "[\"a\"]", "1");
    feed = family_count(fixture, 'f');
    assert_ok(
        index_policy_parse(document_of(fixture->arena, "{\"includedPaths\":[{\"path\":\"/x/?\"}],"
                                                       "\"excludedPaths\":[{\"path\":\"/*\"}]}"),
                           definition_names(DEFINITION_IDENTITY_ID), fixture->arena, &completed,
                           &nothing, &err),
        &err);
    fixture->test.space.policies_before[0] = fixture->test.definition.policy;
    fixture->test.space.policies_before_count = 1;
    fixture->test.definition.policy = nothing;
    fixture->test.space.policy_version = 2;
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(transform_run(&scope, SLICE_NONE, 1, fixture->arena, &step, &err), &err);
    assert_false(step.finished);
    assert_int_equal(step.remade, 1);
    assert_ok(transform_run(&scope, step.position, 100, fixture->arena, &step, &err), &err);
    assert_true(step.finished);
    assert_int_equal(family_count(fixture, 'i'), 4);
    assert_int_equal(family_count(fixture, 'f'), feed);
    assert_string_equal(read_item(fixture, "[\"a\"]", "1"), before);
}

/* --- Unique keys, sizes, time ---------------------------------------------------------------- */

static void unique_keys_hold_within_a_logical_partition(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_result result;
    struct error err;

    open_with(fixture, &(struct test_space_options){.unique_paths = {"/mail"}});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\",\"mail\":\"x\"}");
    assert_fails(write_item(fixture, "[\"a\"]", "2", TRANSACTION_CREATE,
                            "{\"id\":\"2\",\"mail\":\"x\"}", NULL, &result, &err),
                 &err, ERROR_UNIQUE_KEY);
    must_write(fixture, "[\"b\"]", "2", TRANSACTION_CREATE, "{\"id\":\"2\",\"mail\":\"x\"}");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"id\":\"1\",\"mail\":\"y\"}");
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_CREATE, "{\"id\":\"2\",\"mail\":\"x\"}");
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_DELETE, NULL);
    must_write(fixture, "[\"a\"]", "3", TRANSACTION_CREATE, "{\"id\":\"3\",\"mail\":\"x\"}");
    assert_int_equal(family_count(fixture, 'u'), 3);
}

static bool is_free(struct fixture *fixture, struct transaction *transaction, const char *id,
                    const char *json)
{
    struct document_value value = document_string(slice_of_text(id));
    struct error err;

    if (transaction_unique_check(transaction, &value, document_of(fixture->arena, json), &err))
        return true;
    assert_int_equal(err.code, ERROR_UNIQUE_KEY);
    return false;
}

static void a_unique_key_can_be_asked_for_before_the_commit(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value one = document_string(SLICE("1"));
    struct partition_key key;
    struct item_scope scope;
    struct error err;

    open_with(fixture, &(struct test_space_options){.unique_paths = {"/mail"}});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\",\"mail\":\"x\"}");
    must_write(fixture, "[\"b\"]", "1", TRANSACTION_CREATE, "{\"id\":\"1\",\"mail\":\"y\"}");
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(transaction_begin(&scope,
                                item_logical(&fixture->test.definition.key, &key, fixture->arena),
                                fixture->arena, &transaction, &err),
              &err);
    assert_false(is_free(fixture, transaction, "2", "{\"id\":\"2\",\"mail\":\"x\"}"));
    assert_true(is_free(fixture, transaction, "2", "{\"id\":\"2\",\"mail\":\"y\"}"));
    assert_true(is_free(fixture, transaction, "1", "{\"id\":\"1\",\"mail\":\"x\"}"));
    /* An owner that the transaction writes itself is the commit's to judge. */
    assert_ok(transaction_write(transaction, &one, TRANSACTION_DELETE, SLICE_NONE, NULL, &err),
              &err);
    assert_true(is_free(fixture, transaction, "2", "{\"id\":\"2\",\"mail\":\"x\"}"));
}

static void an_item_written_along_keeps_its_unique_key_from_others(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value one = document_string(SLICE("1")), two = document_string(SLICE("2"));
    struct item_scope scope;
    struct partition_key key;
    struct error err;

    open_with(fixture, &(struct test_space_options){.unique_paths = {"/mail"}});
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"mail\":\"x\"}");
    assert_ok(transaction_begin(&scope,
                                item_logical(&fixture->test.definition.key, &key, fixture->arena),
                                fixture->arena, &transaction, &err),
              &err);
    assert_ok(transaction_write(transaction, &one, TRANSACTION_REPLACE,
                                document_of(fixture->arena, "{\"mail\":\"x\",\"n\":1}"), NULL,
                                &err),
              &err);
    assert_ok(transaction_write(transaction, &two, TRANSACTION_CREATE,
                                document_of(fixture->arena, "{\"mail\":\"x\"}"), NULL, &err),
              &err);
    assert_fails(transaction_commit(transaction, &err), &err, ERROR_UNIQUE_KEY);
}

static void a_unique_key_taken_from_an_expired_item_stays_taken(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_result result;
    struct item_scope scope;
    struct error err;
    size_t removed;

    open_with(fixture, &(struct test_space_options){.unique_paths = {"/mail"}, .default_ttl = 10});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"mail\":\"x\"}");
    fixture->test.wall_ms += 10 * 1000;
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_CREATE, "{\"mail\":\"x\"}");
    assert_int_equal(family_count(fixture, 'd'), 1); /* the expired one is gone with it */
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(expiry_sweep(&scope, 100, &removed, &err), &err);
    assert_fails(write_item(fixture, "[\"a\"]", "3", TRANSACTION_CREATE, "{\"mail\":\"x\"}", NULL,
                            &result, &err),
                 &err, ERROR_UNIQUE_KEY);
}

static void a_full_logical_partition_refuses_growth_only(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_result result;
    struct error err;

    open_with(fixture, &(struct test_space_options){.logical_bytes_max = 1000});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE,
               arena_text(fixture->arena, arena_printf(fixture->arena, "{\"t\":\"%0600d\"}", 1)));
    assert_fails(write_item(fixture, "[\"a\"]", "2", TRANSACTION_CREATE,
                            arena_text(fixture->arena,
                                       arena_printf(fixture->arena, "{\"t\":\"%0600d\"}", 1)),
                            NULL, &result, &err),
                 &err, ERROR_LOGICAL_PARTITION_FULL);
    must_write(fixture, "[\"b\"]", "2", TRANSACTION_CREATE,
               arena_text(fixture->arena, arena_printf(fixture->arena, "{\"t\":\"%0600d\"}", 1)));
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"t\":\"small\"}");
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_CREATE, "{\"t\":\"small\"}");
}

static void a_full_physical_partition_refuses_growth_only(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_result result;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    fixture->test.space.partition_bytes_max = 400;
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"t\":\"some text\"}");
    must_write(fixture, "[\"b\"]", "1", TRANSACTION_CREATE, "{\"t\":\"some text\"}");
    assert_fails(write_item(fixture, "[\"c\"]", "1", TRANSACTION_CREATE,
                            arena_text(fixture->arena,
                                       arena_printf(fixture->arena, "{\"t\":\"%0400d\"}", 1)),
                            NULL, &result, &err),
                 &err, ERROR_PARTITION_FULL);
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_DELETE, NULL);
}

static void keys_and_ids_over_their_limits_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct transaction_result result;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    fixture->test.space.key_limits = (struct partition_key_limits){16};
    fixture->test.space.id_bytes_max = 8;
    assert_fails(write_item(fixture, "[\"a key of 17 bytes\"]", "1", TRANSACTION_CREATE, "{}", NULL,
                            &result, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_fails(
        write_item(fixture, "[\"a\"]", "123456789", TRANSACTION_UPSERT, "{}", NULL, &result, &err),
        &err, ERROR_BAD_REQUEST);
    must_write(fixture, "[\"a\"]", "12345678", TRANSACTION_CREATE, "{}");
}

static int64_t next_expiry_ms(struct fixture *fixture)
{
    struct item_scope scope = scope_of(fixture, "[\"a\"]");
    struct error err;
    int64_t next_ms;

    assert_ok(expiry_next(&scope, &next_ms, &err), &err);
    return next_ms;
}

static void it_is_known_when_the_next_item_expires(void **state)
{
    struct fixture *fixture = *state;
    int64_t now_ms;
    size_t removed;
    struct item_scope scope;
    struct error err;

    open_with(fixture, &(struct test_space_options){.default_ttl = 100});
    now_ms = fixture->test.wall_ms / 1000 * 1000;
    assert_true(next_expiry_ms(fixture) == INT64_MAX);
    must_write(fixture, "[\"a\"]", "never", TRANSACTION_CREATE, "{\"id\":\"n\",\"ttl\":-1}");
    assert_true(next_expiry_ms(fixture) == INT64_MAX);
    must_write(fixture, "[\"a\"]", "default", TRANSACTION_CREATE, "{\"id\":\"d\"}");
    assert_int_equal(next_expiry_ms(fixture), now_ms + 100 * 1000);
    must_write(fixture, "[\"a\"]", "own", TRANSACTION_CREATE, "{\"id\":\"o\",\"ttl\":10}");
    assert_int_equal(next_expiry_ms(fixture), now_ms + 10 * 1000);
    fixture->test.wall_ms += 50 * 1000;
    assert_int_equal(next_expiry_ms(fixture), now_ms + 10 * 1000); /* stored still, and due */
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(expiry_sweep(&scope, 100, &removed, &err), &err);
    assert_int_equal(removed, 1);
    assert_int_equal(next_expiry_ms(fixture), now_ms + 100 * 1000);
}

static void expired_items_are_gone_at_once_and_removed_later(void **state)
{
    struct fixture *fixture = *state;
    struct item_scope scope;
    struct error err;
    size_t removed;

    open_with(fixture, &(struct test_space_options){.default_ttl = 10});
    must_write(fixture, "[\"a\"]", "default", TRANSACTION_CREATE, "{\"id\":\"d\"}");
    must_write(fixture, "[\"a\"]", "never", TRANSACTION_CREATE, "{\"id\":\"n\",\"ttl\":-1}");
    must_write(fixture, "[\"a\"]", "own", TRANSACTION_CREATE, "{\"id\":\"o\",\"ttl\":100}");
    fixture->test.wall_ms += 10 * 1000;
    assert_string_equal(read_item(fixture, "[\"a\"]", "default"), "");
    assert_string_not_equal(read_item(fixture, "[\"a\"]", "own"), "");
    must_write(fixture, "[\"a\"]", "default", TRANSACTION_CREATE, "{\"id\":\"again\"}");
    fixture->test.wall_ms += 95 * 1000;
    assert_string_equal(read_item(fixture, "[\"a\"]", "own"), "");
    assert_int_equal(family_count(fixture, 'd'), 3);
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(expiry_sweep(&scope, 100, &removed, &err), &err);
    assert_int_equal(removed, 2);
    assert_int_equal(family_count(fixture, 'd'), 1);
    assert_int_equal(family_count(fixture, 't'), 0);
    assert_string_not_equal(read_item(fixture, "[\"a\"]", "never"), "");
}

static void a_bad_ttl_is_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const bad[] = {"{\"ttl\":0}", "{\"ttl\":null}", "{\"ttl\":-2}",
                                      "{\"ttl\":\"1\"}", "{\"ttl\":1.5}"};
    struct transaction_result result;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_fails(
            write_item(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, bad[i], NULL, &result, &err),
            &err, ERROR_BAD_REQUEST);
}

/* --- Feed ------------------------------------------------------------------------------------ */

static struct feed_page feed_of(struct fixture *fixture, enum feed_mode mode, uint64_t after)
{
    struct item_scope scope = scope_of(fixture, "[\"a\"]");
    struct feed_request request = {.mode = mode, .after_lsn = after};
    struct feed_page page;
    struct error err;

    assert_ok(feed_read(&scope, &request, fixture->arena, &page, &err), &err);
    return page;
}

static void the_latest_feed_shows_each_item_once_at_its_last_change(void **state)
{
    struct fixture *fixture = *state;
    struct feed_page page;

    open_with(fixture, &(struct test_space_options){0});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_CREATE, "{\"n\":2}");
    must_write(fixture, "[\"a\"]", "3", TRANSACTION_CREATE, "{\"n\":3}");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"n\":4}");
    must_write(fixture, "[\"a\"]", "2", TRANSACTION_DELETE, NULL);
    page = feed_of(fixture, FEED_LATEST, 0);
    assert_int_equal(page.count, 2);
    assert_string_equal(json_of(fixture, page.changes[0].current.document), "{\"n\":3}");
    assert_string_equal(json_of(fixture, page.changes[1].current.document), "{\"n\":4}");
    assert_int_equal(feed_of(fixture, FEED_LATEST, page.lsn).count, 0);
}

static void all_versions_show_every_change_with_what_was_before(void **state)
{
    struct fixture *fixture = *state;
    struct item_scope scope;
    struct feed_page page;
    struct error err;
    size_t removed;

    open_with(fixture, &(struct test_space_options){.feed_retention_ms = 60 * 1000});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"n\":2}");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_DELETE, NULL);
    page = feed_of(fixture, FEED_ALL_VERSIONS, 0);
    assert_int_equal(page.count, 3);
    assert_int_equal(page.changes[0].kind, FEED_CREATE);
    assert_string_equal(json_of(fixture, page.changes[1].current.document), "{\"n\":2}");
    assert_string_equal(json_of(fixture, page.changes[1].previous), "{\"n\":1}");
    assert_int_equal(page.changes[2].kind, FEED_DELETE);
    assert_string_equal(json_of(fixture, page.changes[2].previous), "{\"n\":2}");
    assert_int_equal(feed_of(fixture, FEED_LATEST, 0).count, 0);
    fixture->test.wall_ms += 61 * 1000;
    scope = scope_of(fixture, "[\"a\"]");
    assert_fails(feed_read(&scope, &(struct feed_request){.mode = FEED_ALL_VERSIONS},
                           fixture->arena, &page, &err),
                 &err, ERROR_FEED_RETENTION);
    assert_ok(feed_trim(&scope, 100, &removed, &err), &err);
    assert_int_equal(removed, 3);
    assert_int_equal(family_count(fixture, 'f'), 1); /* the mark of trimming */
    assert_fails(feed_read(&scope, &(struct feed_request){.mode = FEED_ALL_VERSIONS},
                           fixture->arena, &page, &err),
                 &err, ERROR_FEED_RETENTION);
    assert_int_equal(feed_of(fixture, FEED_ALL_VERSIONS, 3).count, 0);
}

static void a_version_is_kept_until_what_replaced_it_is_over_the_retention(void **state)
{
    struct fixture *fixture = *state;
    struct item_scope scope;
    struct feed_page page;
    struct error err;
    size_t removed;

    open_with(fixture, &(struct test_space_options){.feed_retention_ms = 60 * 1000});
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    fixture->test.wall_ms += 61 * 1000;
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"n\":2}");
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(feed_trim(&scope, 100, &removed, &err), &err);
    assert_int_equal(removed, 0);
    page = feed_of(fixture, FEED_ALL_VERSIONS, 1);
    assert_int_equal(page.count, 1);
    assert_string_equal(json_of(fixture, page.changes[0].previous), "{\"n\":1}");
    fixture->test.wall_ms += 61 * 1000;
    assert_ok(feed_trim(&scope, 100, &removed, &err), &err);
    assert_int_equal(removed, 1);
    assert_ok(feed_trim(&scope, 100, &removed, &err), &err);
    assert_int_equal(removed, 0);
    assert_int_equal(feed_of(fixture, FEED_LATEST, 0).count, 1);
}

static void a_feed_can_begin_at_a_time(void **state)
{
    struct fixture *fixture = *state;
    struct item_scope scope;
    struct error err;
    uint64_t lsn;

    open_with(fixture, &(struct test_space_options){0});
    for (int i = 0; i < 50; i++) {
        char id[8];

        snprintf(id, sizeof id, "%d", i);
        fixture->test.wall_ms += 1000;
        must_write(fixture, "[\"a\"]", id, TRANSACTION_CREATE, "{}");
    }
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(feed_lsn_at(&scope, fixture->test.wall_ms - 10 * 1000, &lsn, &err), &err);
    assert_int_equal(feed_of(fixture, FEED_LATEST, lsn).count, 10);
    assert_ok(feed_lsn_at(&scope, 0, &lsn, &err), &err);
    assert_int_equal(lsn, 0);
    assert_ok(feed_lsn_at(&scope, INT64_MAX, &lsn, &err), &err);
    assert_int_equal(lsn, 50);
}

/* --- Scans ----------------------------------------------------------------------------------- */

static void pages_neither_lose_nor_repeat_an_item(void **state)
{
    struct fixture *fixture = *state;
    static const enum item_scan_order orders[] = {SCAN_BY_KEY, SCAN_BY_NUMBER};
    struct item_scope scope;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    for (int i = 0; i < 57; i++) {
        char id[8];

        snprintf(id, sizeof id, "%d", i);
        must_write(fixture, i % 2 ? "[\"a\"]" : "[\"b\"]", id, TRANSACTION_CREATE, "{}");
    }
    scope = scope_of(fixture, "[\"a\"]");
    for (int variant = 0; variant < 4; variant++) {
        struct item_scan_request request = {
            .order = orders[variant / 2], .backwards = variant % 2, .items_max = 10};
        struct item_scan_page page;
        size_t count = 0;
        uint64_t last = variant % 2 ? UINT64_MAX : 0;

        do {
            assert_ok(item_scan_items(&scope, &request, fixture->arena, &page, &err), &err);
            for (size_t i = 0; i < page.count && variant >= 2; i++) {
                uint64_t number = page.items[i].header.number;

                assert_true(variant % 2 ? number < last : number > last);
                last = number;
            }
            count += page.count;
            request.after = page.position;
        } while (page.more);
        assert_int_equal(count, 57);
    }
}

/* --- Transactions ---------------------------------------------------------------------------- */

static void a_transaction_is_all_or_nothing_and_sees_its_own_writes(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value one = document_string(SLICE("1")), two = document_string(SLICE("2"));
    struct partition_key key;
    struct item_scope scope;
    const struct item *item;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    assert_ok(transaction_begin(&scope,
                                item_logical(&fixture->test.definition.key, &key, fixture->arena),
                                fixture->arena, &transaction, &err),
              &err);
    assert_ok(transaction_write(transaction, &two, TRANSACTION_CREATE,
                                document_of(fixture->arena, "{\"n\":2}"), NULL, &err),
              &err);
    assert_ok(transaction_read(transaction, &two, &item, &err), &err);
    assert_string_equal(json_of(fixture, item->document), "{\"n\":2}");
    assert_ok(transaction_write(transaction, &one, TRANSACTION_DELETE, SLICE_NONE, NULL, &err),
              &err);
    /* Somebody else is faster. */
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_REPLACE, "{\"n\":7}");
    assert_fails(transaction_commit(transaction, &err), &err, ERROR_CONFLICT);
    assert_string_equal(read_item(fixture, "[\"a\"]", "1"), "{\"n\":7}");
    assert_string_equal(read_item(fixture, "[\"a\"]", "2"), "");
}

/* Few are kept in one chain, more by buckets: those from before must be found there as well. */
static void a_transaction_of_many_items_finds_each_that_it_wrote(void **state)
{
    enum { MANY = 100 };
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_scope scope;
    struct partition_key key;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(transaction_begin(&scope,
                                item_logical(&fixture->test.definition.key, &key, fixture->arena),
                                fixture->arena, &transaction, &err),
              &err);
    for (unsigned i = 0; i < MANY; i++) {
        struct slice text = arena_printf(fixture->arena, "%u", i);
        struct document_value id = document_string(text), first = document_string(SLICE("0"));
        struct slice document = document_of(
            fixture->arena,
            arena_text(fixture->arena, arena_printf(fixture->arena, "{\"id\":\"%u\"}", i)));
        const struct item *item;

        assert_ok(transaction_write(transaction, &id, TRANSACTION_CREATE, document, NULL, &err),
                  &err);
        assert_fails(
            transaction_write(transaction, &first, TRANSACTION_CREATE, document, NULL, &err), &err,
            ERROR_ITEM_EXISTS);
        assert_ok(transaction_read(transaction, &id, &item, &err), &err);
        assert_slice_equal(item->document, document);
    }
    assert_ok(transaction_commit(transaction, &err), &err);
}

static void what_a_transaction_writes_has_provisional_names_until_the_commit(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value one = document_string(SLICE("1")), two = document_string(SLICE("2")), id;
    struct transaction_options options = {0};
    struct partition_key key;
    struct item_scope scope;
    const struct item *item;
    char etag[ITEM_ETAG_LEN];
    uint64_t stored, provisional, number;
    struct error err;
    bool found;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    must_write(fixture, "[\"b\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    assert_ok(transaction_begin(&scope,
                                item_logical(&fixture->test.definition.key, &key, fixture->arena),
                                fixture->arena, &transaction, &err),
              &err);
    assert_ok(transaction_read(transaction, &one, &item, &err), &err);
    stored = item->header.number;
    assert_ok(transaction_write(transaction, &two, TRANSACTION_CREATE,
                                document_of(fixture->arena, "{\"n\":2}"), NULL, &err),
              &err);
    assert_ok(transaction_read(transaction, &two, &item, &err), &err);
    provisional = item->header.number;
    item_etag(&item->header, etag);
    /* Both are found by number, and nothing of another key is. */
    assert_ok(transaction_find_number(transaction, provisional, &id, &found, &err), &err);
    assert_true(found);
    assert_slice_equal(id.text, SLICE("2"));
    assert_ok(transaction_find_number(transaction, stored, &id, &found, &err), &err);
    assert_true(found);
    assert_slice_equal(id.text, SLICE("1"));
    assert_ok(transaction_find_number(transaction, stored + 1, &id, &found, &err), &err);
    assert_false(found);
    /* The etag holds for one more write, and no longer. */
    options.if_match = slice_of(etag, sizeof etag);
    assert_ok(transaction_write(transaction, &two, TRANSACTION_REPLACE,
                                document_of(fixture->arena, "{\"n\":3}"), &options, &err),
              &err);
    assert_fails(transaction_write(transaction, &two, TRANSACTION_REPLACE,
                                   document_of(fixture->arena, "{\"n\":4}"), &options, &err),
                 &err, ERROR_PRECONDITION_FAILED);
    assert_ok(transaction_commit(transaction, &err), &err);
    assert_true(transaction_number(transaction, provisional, &number));
    assert_int_equal(number, transaction_result(transaction, 0).item.header.number);
    assert_true(number < provisional);
    assert_false(transaction_number(transaction, provisional + 100, &number));
}

static const char *scan_text(struct fixture *fixture, struct transaction *transaction, bool rely)
{
    struct transaction_page page = {.more = true};
    struct slice text = SLICE("");
    struct error err;

    while (page.more) {
        assert_ok(transaction_scan(transaction, page.position, 2, rely, &page, &err), &err);
        for (size_t i = 0; i < page.count; i++)
            text = arena_printf(fixture->arena, "%.*s%s ", SLICE_ARG(text),
                                json_of(fixture, page.items[i].document));
    }
    return arena_text(fixture->arena, text);
}

static void a_scan_in_a_transaction_sees_its_writes_and_can_be_relied_on(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value id;
    struct partition_key key;
    struct item_scope scope;
    struct slice logical;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    logical = item_logical(&fixture->test.definition.key, &key, fixture->arena);
    must_write(fixture, "[\"a\"]", "1", TRANSACTION_CREATE, "{\"n\":1}");
    must_write(fixture, "[\"a\"]", "3", TRANSACTION_CREATE, "{\"n\":3}");
    must_write(fixture, "[\"a\"]", "5", TRANSACTION_CREATE, "{\"n\":5}");
    assert_ok(transaction_begin(&scope, logical, fixture->arena, &transaction, &err), &err);
    id = document_string(SLICE("2"));
    assert_ok(transaction_write(transaction, &id, TRANSACTION_CREATE,
                                document_of(fixture->arena, "{\"n\":2}"), NULL, &err),
              &err);
    id = document_string(SLICE("3"));
    assert_ok(transaction_write(transaction, &id, TRANSACTION_DELETE, SLICE_NONE, NULL, &err),
              &err);
    id = document_string(SLICE("5"));
    assert_ok(transaction_write(transaction, &id, TRANSACTION_REPLACE,
                                document_of(fixture->arena, "{\"n\":55}"), NULL, &err),
              &err);
    assert_string_equal(scan_text(fixture, transaction, true), "{\"n\":1} {\"n\":2} {\"n\":55} ");
    /* A phantom. */
    must_write(fixture, "[\"a\"]", "4", TRANSACTION_CREATE, "{\"n\":4}");
    assert_fails(transaction_commit(transaction, &err), &err, ERROR_CONFLICT);
    assert_string_equal(read_item(fixture, "[\"a\"]", "2"), "");
}

/* --- Pages by number -------------------------------------------------------------------------- */

static const char *numbers_text(struct fixture *fixture, struct item_scan_request *request,
                                struct item_scan_page *ret_page)
{
    struct item_scope scope = scope_of(fixture, "[\"a\"]");
    CLEANUP(buf_done) struct buf text;
    struct error err;

    buf_init(&text, BUF_DEFAULT_MAX);
    request->order = SCAN_BY_NUMBER;
    assert_ok(item_scan_items(&scope, request, fixture->arena, ret_page, &err), &err);
    for (size_t i = 0; i < ret_page->count; i++)
        buf_printf(&text, "%s ", json_of(fixture, ret_page->items[i].document));
    return arena_text(fixture->arena, buf_slice(&text));
}

static void the_items_of_one_key_come_by_number_too(void **state)
{
    struct fixture *fixture = *state;
    struct item_scan_request request = {.items_max = 2};
    struct partition_key key;
    struct item_scan_page page;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    must_write(fixture, "[\"a\"]", "z", TRANSACTION_CREATE, "{\"n\":1}");
    must_write(fixture, "[\"b\"]", "y", TRANSACTION_CREATE, "{\"n\":2}");
    must_write(fixture, "[\"a\"]", "b", TRANSACTION_CREATE, "{\"n\":3}");
    must_write(fixture, "[\"a\"]", "a", TRANSACTION_CREATE, "{\"n\":4}");
    request.logical = item_logical(&fixture->test.definition.key, &key, fixture->arena);
    assert_string_equal(numbers_text(fixture, &request, &page), "{\"n\":1} {\"n\":3} ");
    assert_true(page.more);
    request.after = page.position;
    assert_string_equal(numbers_text(fixture, &request, &page), "{\"n\":4} ");
    assert_false(page.more);
    request.after = SLICE_NONE;
    request.backwards = true;
    assert_string_equal(numbers_text(fixture, &request, &page), "{\"n\":4} {\"n\":3} ");
    request.after = page.position;
    assert_string_equal(numbers_text(fixture, &request, &page), "{\"n\":1} ");
}

static void a_page_ends_after_so_many_entries_and_goes_on_there(void **state)
{
    struct fixture *fixture = *state;
    struct item_scan_request request = {.entries_max = 3};
    struct partition_key key;
    struct item_scan_page page;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    for (int i = 0; i < 7; i++)
        must_write(fixture, "[\"b\"]", (char[]){(char)('a' + i), '\0'}, TRANSACTION_CREATE, "{}");
    must_write(fixture, "[\"a\"]", "a", TRANSACTION_CREATE, "{\"n\":1}");
    /* The span of the one key alone. */
    request.routing_min =
        partition_route_range(&fixture->test.definition.key, &key, fixture->arena).min;
    request.routing_max =
        partition_route_range(&fixture->test.definition.key, &key, fixture->arena).max;
    for (int i = 0; i < 2; i++) {
        assert_string_equal(numbers_text(fixture, &request, &page), "");
        assert_true(page.more);
        request.after = page.position;
    }
    assert_string_equal(numbers_text(fixture, &request, &page), "{\"n\":1} ");
    assert_false(page.more);
}

static void a_feed_page_ends_after_so_many_records(void **state)
{
    struct fixture *fixture = *state;
    struct feed_request request = {.records_max = 3};
    struct partition_key key;
    struct item_scope scope;
    struct feed_page page;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    for (int i = 0; i < 5; i++)
        must_write(fixture, "[\"b\"]", (char[]){(char)('a' + i), '\0'}, TRANSACTION_CREATE, "{}");
    must_write(fixture, "[\"a\"]", "a", TRANSACTION_CREATE, "{}");
    request.logical = item_logical(&fixture->test.definition.key, &key, fixture->arena);
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(feed_read(&scope, &request, fixture->arena, &page, &err), &err);
    assert_int_equal(page.count, 0);
    assert_true(page.more);
    request.after_lsn = page.lsn;
    assert_ok(feed_read(&scope, &request, fixture->arena, &page, &err), &err);
    assert_int_equal(page.count, 1);
    assert_false(page.more);
}

/* --- Results of transactions ------------------------------------------------------------------ */

static void each_write_of_one_item_shows_what_it_left_and_is_charged(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value one = document_string(SLICE("1")), two = document_string(SLICE("2"));
    struct transaction_result first, second;
    int64_t sum_cru = 0;
    struct transaction_options stale = {.if_match = SLICE("00000000-0000-0000-0000-000000000000")};
    struct partition_key key;
    struct item_scope scope;
    struct error err;

    open_with(fixture, &(struct test_space_options){0});
    key = test_space_key(&fixture->test, "[\"a\"]");
    scope = scope_of(fixture, "[\"a\"]");
    assert_ok(transaction_begin(&scope,
                                item_logical(&fixture->test.definition.key, &key, fixture->arena),
                                fixture->arena, &transaction, &err),
              &err);
    assert_ok(transaction_write(transaction, &one, TRANSACTION_CREATE,
                                document_of(fixture->arena, "{\"n\":1}"), NULL, &err),
              &err);
    /* What is written here has no etag yet. */
    assert_fails(transaction_write(transaction, &one, TRANSACTION_REPLACE,
                                   document_of(fixture->arena, "{}"), &stale, &err),
                 &err, ERROR_PRECONDITION_FAILED);
    assert_ok(transaction_write(transaction, &one, TRANSACTION_REPLACE,
                                document_of(fixture->arena, "{\"n\":2}"), NULL, &err),
              &err);
    assert_ok(transaction_write(transaction, &two, TRANSACTION_CREATE,
                                document_of(fixture->arena, "{}"), NULL, &err),
              &err);
    assert_ok(transaction_write(transaction, &two, TRANSACTION_DELETE, SLICE_NONE, NULL, &err),
              &err);
    assert_ok(transaction_commit(transaction, &err), &err);
    first = transaction_result(transaction, 0);
    second = transaction_result(transaction, 1);
    assert_string_equal(json_of(fixture, first.item.document), "{\"n\":1}");
    assert_string_equal(json_of(fixture, second.item.document), "{\"n\":2}");
    assert_int_equal(first.item.header.number, second.item.header.number);
    assert_int_equal(first.item.header.lsn, second.item.header.lsn);
    assert_int_not_equal(first.item.header.ordinal, second.item.header.ordinal);
    assert_true(first.charge_cru > 0 && second.charge_cru > first.charge_cru);
    assert_string_equal(json_of(fixture, transaction_outcome(transaction, 0).item.document),
                        "{\"n\":2}");
    /* Also what nobody else ever saw. */
    assert_string_equal(json_of(fixture, transaction_result(transaction, 2).item.document), "{}");
    assert_int_not_equal(transaction_result(transaction, 2).item.header.number, 0);
    assert_null(transaction_outcome(transaction, 2).item.document.data);
    for (size_t i = 0; i < 4; i++)
        sum_cru += transaction_result(transaction, i).charge_cru;
    assert_int_equal(sum_cru, transaction_work(transaction).write_cru);
}

static void an_item_gets_another_id_and_stays_the_item_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct document_value b = document_string(SLICE("b"));
    struct transaction_options rename = {.new_id = &b};
    struct transaction_result made, renamed;
    struct feed_page page;
    struct item item;
    struct error err;

    open_with(fixture, &(struct test_space_options){.feed_retention_ms = 60 * 1000});
    made = must_write(fixture, "[\"k\"]", "a", TRANSACTION_CREATE, "{\"n\":1}");
    assert_ok(write_item(fixture, "[\"k\"]", "a", TRANSACTION_REPLACE, "{\"n\":2}", &rename,
                         &renamed, &err),
              &err);
    assert_int_equal(renamed.item.header.number, made.item.header.number);
    assert_string_equal(read_item(fixture, "[\"k\"]", "a"), "");
    assert_string_equal(read_item(fixture, "[\"k\"]", "b"), "{\"n\":2}");
    assert_ok(items_read_number(&fixture->test.space, made.item.header.number, fixture->arena,
                                &item, &err),
              &err);
    assert_slice_equal(item.key, renamed.item.key);
    page = feed_of(fixture, FEED_ALL_VERSIONS, 0);
    assert_int_equal(page.count, 2);
    assert_int_equal(page.changes[1].kind, FEED_REPLACE);
    assert_string_equal(json_of(fixture, page.changes[1].previous), "{\"n\":1}");
    /* The id it had is free, and the one it has is not. */
    made = must_write(fixture, "[\"k\"]", "a", TRANSACTION_CREATE, "{}");
    assert_int_not_equal(made.item.header.number, renamed.item.header.number);
    assert_fails(
        write_item(fixture, "[\"k\"]", "a", TRANSACTION_REPLACE, "{}", &rename, &renamed, &err),
        &err, ERROR_ITEM_EXISTS);
}

#define ITEMS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ITEMS_TEST(items_are_written_and_read_by_key_and_id),
        ITEMS_TEST(etags_guard_writes),
        ITEMS_TEST(an_item_is_found_by_its_number),
        ITEMS_TEST(a_route_is_one_key_in_parts),
        ITEMS_TEST(a_started_write_is_settled_after_its_commit),
        ITEMS_TEST(what_would_block_is_cold_and_leaves_no_trace),
        ITEMS_TEST(an_item_moves_to_another_key_whole),
        ITEMS_TEST(an_overwrite_touches_only_the_entries_that_changed),
        ITEMS_TEST(the_index_finds_items_in_the_order_of_their_values),
        ITEMS_TEST(a_changed_policy_remakes_entries_and_leaves_versions_alone),
        ITEMS_TEST(unique_keys_hold_within_a_logical_partition),
        ITEMS_TEST(a_unique_key_can_be_asked_for_before_the_commit),
        ITEMS_TEST(an_item_written_along_keeps_its_unique_key_from_others),
        ITEMS_TEST(a_unique_key_taken_from_an_expired_item_stays_taken),
        ITEMS_TEST(a_full_logical_partition_refuses_growth_only),
        ITEMS_TEST(a_full_physical_partition_refuses_growth_only),
        ITEMS_TEST(keys_and_ids_over_their_limits_are_refused),
        ITEMS_TEST(it_is_known_when_the_next_item_expires),
        ITEMS_TEST(expired_items_are_gone_at_once_and_removed_later),
        ITEMS_TEST(a_bad_ttl_is_refused),
        ITEMS_TEST(the_latest_feed_shows_each_item_once_at_its_last_change),
        ITEMS_TEST(all_versions_show_every_change_with_what_was_before),
        ITEMS_TEST(a_version_is_kept_until_what_replaced_it_is_over_the_retention),
        ITEMS_TEST(a_feed_can_begin_at_a_time),
        ITEMS_TEST(pages_neither_lose_nor_repeat_an_item),
        ITEMS_TEST(a_transaction_is_all_or_nothing_and_sees_its_own_writes),
        ITEMS_TEST(a_transaction_of_many_items_finds_each_that_it_wrote),
        ITEMS_TEST(what_a_transaction_writes_has_provisional_names_until_the_commit),
        ITEMS_TEST(a_scan_in_a_transaction_sees_its_writes_and_can_be_relied_on),
        ITEMS_TEST(the_items_of_one_key_come_by_number_too),
        ITEMS_TEST(a_page_ends_after_so_many_entries_and_goes_on_there),
        ITEMS_TEST(a_feed_page_ends_after_so_many_records),
        ITEMS_TEST(each_write_of_one_item_shows_what_it_left_and_is_charged),
        ITEMS_TEST(an_item_gets_another_id_and_stays_the_item_it_is),
    };
    return cmocka_run_group_tests_name("item/items", tests, NULL, NULL);
}
