#include "item/claim.h"

#include "base/thread.h"
#include "item/bulk.h"
#include "partition/synthetic.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"
#include "throughput/cost.h"

#define DAYS "{\"kind\":\"randomSuffix\",\"target\":\"/pk\",\"base\":\"/date\",\"suffixes\":40}"
#define JOINED "{\"kind\":\"concatenation\",\"target\":\"/pk\",\"sources\":[\"/a\",\"/b\"]}"

enum { PARTITIONS = 4 };

struct fixture {
    struct test_space test;
    struct arena *arena;
    struct item_operation op; /* the last one */
};

static void open_with(struct fixture *f, const char *synthetic)
{
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine,
                    &(struct test_space_options){.synthetic = synthetic,
                                                 .partitions = PARTITIONS,
                                                 .default_ttl = DEFINITION_TTL_OWN});
}

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    f->arena = arena_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    test_space_done(&f->test);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static enum error_code run(struct fixture *f, enum item_verb verb, const struct partition_key *key,
                           struct document_value id, struct slice document)
{
    struct error err;

    f->op = (struct item_operation){.space = &f->test.space,
                                    .arena = f->arena,
                                    .verb = verb,
                                    .key = *key,
                                    .id = id,
                                    .document = document};
    return item_operation_run(&f->op, &err) ? ERROR_NONE : err.code;
}

/* Writes a document under the key it gives. */
static enum error_code put(struct fixture *f, enum item_verb verb, const char *json)
{
    struct slice document = document_of(f->arena, json);
    struct document_value id;
    struct partition_key key;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(partition_key_derive(&f->test.definition.key, document, NULL, f->arena, &key, &err),
              &err);
    return run(f, verb, &key, id, document);
}

/* The key of what was written last. */
static const char *last_key(struct fixture *f)
{
    assert_false(f->op.key.open);
    return arena_text(f->arena, f->op.key.components[0].text);
}

static struct partition_key named(struct fixture *f, const char *key)
{
    struct partition_key parsed;
    struct error err;

    assert_ok(partition_key_parse(&f->test.definition.key, slice_of_text(key), PARTITION_KEY_WHOLE,
                                  f->arena, &parsed, &err),
              &err);
    return parsed;
}

static enum error_code get(struct fixture *f, const char *key, const char *id)
{
    struct partition_key wanted = named(f, key);

    return run(f, ITEM_READ, &wanted, document_string(slice_of_text(id)), SLICE_NONE);
}

static enum error_code drop(struct fixture *f, const char *key, const char *id)
{
    struct partition_key wanted = named(f, key);

    return run(f, ITEM_DELETE, &wanted, document_string(slice_of_text(id)), SLICE_NONE);
}

static void an_id_is_unique_under_its_base(void **state)
{
    struct fixture *f = *state;
    const char *key;

    open_with(f, DAYS);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"d\"}"), ERROR_NONE);
    key = last_key(f);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"d\"}"), ERROR_ITEM_EXISTS);
    assert_int_equal(put(f, ITEM_UPSERT, "{\"id\":\"a\",\"date\":\"d\",\"v\":2}"), ERROR_NONE);
    assert_string_equal(last_key(f), key);
    for (int i = 1; i <= 40; i++) {
        char json[100], suffixed[16];

        snprintf(suffixed, sizeof suffixed, "d.%d", i);
        snprintf(json, sizeof json, "{\"id\":\"a\",\"date\":\"d\",\"pk\":\"%s\"}", suffixed);
        assert_int_equal(put(f, ITEM_CREATE, json), ERROR_ITEM_EXISTS);
        assert_int_equal(put(f, ITEM_UPSERT, json),
                         strcmp(suffixed, key) == 0 ? ERROR_NONE : ERROR_ITEM_EXISTS);
    }
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"e\"}"), ERROR_NONE);
}

static void reading_without_a_suffix_costs_a_seek_for_each_partition(void **state)
{
    struct fixture *f = *state;

    open_with(f, DAYS);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"d\"}"), ERROR_NONE);
    assert_int_equal(get(f, "[\"d\"]", "a"), ERROR_NONE);
    assert_int_equal(f->op.metered.charge_cru, cost_read(0, false) + PARTITIONS * cost_id_seek());
    assert_int_equal(get(f, "[{}]", "a"), ERROR_NONE);
    assert_int_equal(get(f, "[\"e\"]", "a"), ERROR_ITEM_MISSING);
    assert_int_equal(f->op.metered.charge_cru, PARTITIONS * cost_id_seek());
    assert_int_equal(get(f, "[\"d\"]", "b"), ERROR_ITEM_MISSING);
}

static void an_id_of_several_bases_needs_one_of_them(void **state)
{
    struct fixture *f = *state;

    open_with(f, DAYS);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"d\"}"), ERROR_NONE);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"e\"}"), ERROR_NONE);
    assert_int_equal(get(f, "[{}]", "a"), ERROR_BAD_REQUEST);
    assert_int_equal(drop(f, "[{}]", "a"), ERROR_BAD_REQUEST);
    assert_int_equal(drop(f, "[\"e\"]", "a"), ERROR_NONE);
    assert_int_equal(drop(f, "[{}]", "a"), ERROR_NONE);
    assert_int_equal(drop(f, "[{}]", "a"), ERROR_ITEM_MISSING);
}

/* One id under more bases than a seek looks at: then the suffixes are looked at instead. */
static void an_id_of_very_many_bases_is_found_too(void **state)
{
    struct fixture *f = *state;
    char json[100], key[16];

    open_with(f, DAYS);
    for (int i = 0; i < 400; i++) {
        snprintf(json, sizeof json, "{\"id\":\"a\",\"date\":%d}", i);
        assert_int_equal(put(f, ITEM_CREATE, json), ERROR_NONE);
        arena_reset(f->arena);
    }
    for (int i = 0; i < 400; i += 37) {
        snprintf(key, sizeof key, "[%d]", i);
        assert_int_equal(get(f, key, "a"), ERROR_NONE);
        snprintf(json, sizeof json, "{\"id\":\"a\",\"date\":%d}", i);
        assert_int_equal(put(f, ITEM_CREATE, json), ERROR_ITEM_EXISTS);
    }
}

static void what_has_expired_does_not_count(void **state)
{
    struct fixture *f = *state;

    open_with(f, DAYS);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"d\",\"ttl\":5}"), ERROR_NONE);
    f->test.wall_ms += 6000;
    assert_int_equal(get(f, "[\"d\"]", "a"), ERROR_ITEM_MISSING);
    assert_int_equal(put(f, ITEM_CREATE, "{\"id\":\"a\",\"date\":\"d\"}"), ERROR_NONE);
    assert_int_equal(get(f, "[\"d\"]", "a"), ERROR_NONE);
}

static void long_ids_are_told_apart(void **state)
{
    struct fixture *f = *state;
    char json[1200], id[600];

    open_with(f, DAYS);
    memset(id, 'x', sizeof id);
    id[sizeof id - 1] = 0;
    for (char last = 'a'; last <= 'c'; last++) {
        id[sizeof id - 2] = last;
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"date\":\"d\"}", id);
        assert_int_equal(put(f, ITEM_CREATE, json), ERROR_NONE);
        assert_int_equal(put(f, ITEM_CREATE, json), ERROR_ITEM_EXISTS);
    }
}

static void a_transaction_of_its_own_creates_nothing_under_a_random_suffix(void **state)
{
    struct fixture *f = *state;
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct document_value id = document_string(SLICE("a"));
    struct partition_key key;
    struct item_scope scope;
    struct slice logical;
    struct error err;

    open_with(f, DAYS);
    key = named(f, "[\"d.7\"]");
    logical = item_logical(&f->test.definition.key, &key, f->arena);
    scope = item_space_scope(&f->test.space, logical);
    assert_ok(transaction_begin(&scope, logical, f->arena, &transaction, &err), &err);
    assert_false(transaction_write(transaction, &id, TRANSACTION_CREATE,
                                   document_of(f->arena, "{\"id\":\"a\",\"date\":\"d\"}"), NULL,
                                   &err));
    assert_int_equal(err.code, ERROR_NOT_SUPPORTED);
    assert_false(transaction_write(
        transaction, &id, TRANSACTION_CREATE,
        document_of(f->arena, "{\"id\":\"a\",\"date\":\"d\"}"),
        &(struct transaction_options){.id_is_free = true, .not_indexed = true}, &err));
    assert_int_equal(err.code, ERROR_NOT_SUPPORTED);
}

static void any_write_is_filled_in_and_checked(void **state)
{
    struct fixture *f = *state;
    struct document_value id = document_string(SLICE("a")), made;
    struct partition_key key;

    open_with(f, JOINED);
    key = named(f, "[\"x-1\"]");
    assert_int_equal(
        run(f, ITEM_CREATE, &key, id, document_of(f->arena, "{\"id\":\"a\",\"a\":\"x\",\"b\":1}")),
        ERROR_NONE);
    assert_true(document_find(f->op.result.item.document, SLICE("pk"), &made));
    assert_slice_equal(made.text, SLICE("x-1"));
    assert_int_equal(
        run(f, ITEM_REPLACE, &key, id, document_of(f->arena, "{\"id\":\"a\",\"a\":\"x\",\"b\":2}")),
        ERROR_KEY_MISMATCH);
    assert_int_not_equal(
        run(f, ITEM_UPSERT, &key, id, document_of(f->arena, "{\"id\":\"a\",\"a\":\"x-1\"}")),
        ERROR_NONE);
    assert_int_equal(get(f, "[{}]", "a"), ERROR_BAD_REQUEST);
    assert_int_equal(get(f, "[\"x\",1]", "a"), ERROR_NONE);
}

/* --- At the same time ------------------------------------------------------------------------ */

enum { WRITERS = 8, ROUNDS = 60 };

struct writer {
    struct fixture *f;
    bool in_bulk;
    size_t created;
};

static void put_bulk(struct writer *writer, struct arena *arena, struct slice document,
                     const struct partition_key *key, const struct document_value *id)
{
    struct item_operation operations[2];

    for (size_t i = 0; i < 2; i++)
        operations[i] = (struct item_operation){.space = &writer->f->test.space,
                                                .arena = arena,
                                                .verb = ITEM_UPSERT,
                                                .key = *key,
                                                .id = *id,
                                                .document = document};
    bulk_run(operations, 2, &(struct bulk_options){0});
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(operations[i].err.code, ERROR_NONE);
        writer->created += operations[i].result.created;
    }
}

static void *writer_run(void *context)
{
    struct writer *writer = context;

    for (int round = 0; round < ROUNDS; round++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct item_operation op = {
            .space = &writer->f->test.space, .arena = arena, .verb = ITEM_UPSERT};
        struct document_value id;
        struct partition_key key;
        struct slice document;
        char json[100];
        struct error err;

        snprintf(json, sizeof json, "{\"id\":\"i%d\",\"date\":\"d\"}", round);
        document = document_of(arena, json);
        assert_true(document_find(document, SLICE("id"), &id));
        assert_ok(partition_key_derive(&writer->f->test.definition.key, document, NULL, arena, &key,
                                       &err),
                  &err);
        if (writer->in_bulk) {
            put_bulk(writer, arena, document, &key, &id);
            continue;
        }
        op.key = key;
        op.id = id;
        op.document = document;
        assert_ok(item_operation_run(&op, &err), &err);
        writer->created += op.result.created;
    }
    return NULL;
}

static void writers_at_once_make_one_item_of_an_id(void **state)
{
    struct fixture *f = *state;
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    size_t created = 0;

    open_with(f, DAYS);
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.f = f, .in_bulk = i % 2};
        assert_int_equal(pthread_create(&threads[i], NULL, writer_run, &writers[i]), 0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        created += writers[i].created;
    }
    assert_int_equal(created, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_id_is_unique_under_its_base, setup, teardown),
        cmocka_unit_test_setup_teardown(reading_without_a_suffix_costs_a_seek_for_each_partition,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_of_several_bases_needs_one_of_them, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_of_very_many_bases_is_found_too, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_expired_does_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(long_ids_are_told_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_transaction_of_its_own_creates_nothing_under_a_random_suffix, setup, teardown),
        cmocka_unit_test_setup_teardown(any_write_is_filled_in_and_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(writers_at_once_make_one_item_of_an_id, setup, teardown),
    };

    return cmocka_run_group_tests_name("item/claim", tests, NULL, NULL);
}
