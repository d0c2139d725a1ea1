/* A catalogue on two faulty nodes in memory with a migrator that is led by hand, for tests of what
 * it does. */
#pragma once

#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "item/operation.h"
#include "migration/migrator.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"
#include "support/verify.h"

struct fixture {
    struct arena *arena;
    struct engine *engines[2]; /* faulty ones around memory */
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct item_gates *gates;
    struct definition_limits limits;
    unsigned published, dropped;
    struct clock clock; /* every look at it takes a while */
    int64_t now_ms;
};

static inline int64_t time_passes(void *context)
{
    return ((struct fixture *)context)->now_ms += 5;
}

static inline void on_published(struct container *container, void *context)
{
    assert_non_null(container_migration(container));
    ((struct fixture *)context)->published++;
}

static inline void on_dropped(uint32_t partition UNUSED, void *context)
{
    ((struct fixture *)context)->dropped++;
}

static inline void start(struct fixture *fixture)
{
    struct error err;

    fixture->cluster = cluster_new(NULL);
    for (size_t i = 0; i < 2; i++)
        assert_ok(cluster_add(fixture->cluster, i ? "b" : "a", fixture->engines[i], &err), &err);
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = fixture->cluster,
                                                         .limits = &fixture->limits,
                                                         .purge_by_hand = true},
                             &fixture->catalogue, &err),
              &err);
    fixture->clock = (struct clock){
        .wall_ms = clock_system.wall_ms, .monotonic_ms = time_passes, .context = fixture};
    fixture->migrator = migrator_new(&(struct migrator_options){
        .clock = &fixture->clock,
        .catalogue = fixture->catalogue,
        .chunk_bytes = 2000,
        .load_bytes = 5000,
        .round_keys = 16,
        .lag_keys = 4,
        .pause_ms = 1,
        .by_hand = true,
        .published = on_published,
        .dropped = on_dropped,
        .context = fixture,
    });
}

static inline void stop(struct fixture *fixture)
{
    migrator_free(TAKE(fixture->migrator));
    catalogue_close(TAKE(fixture->catalogue));
    cluster_free(TAKE(fixture->cluster));
}

static inline void restart(struct fixture *fixture)
{
    stop(fixture);
    for (size_t i = 0; i < 2; i++)
        fault_engine_heal(fixture->engines[i]);
    start(fixture);
}

static inline int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    fixture->arena = arena_new();
    fixture->limits = CATALOGUE_LIMITS_DEFAULT;
    fixture->gates = item_gates_new();
    for (size_t i = 0; i < 2; i++) {
        struct engine *inner;

        assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &inner, &err), &err);
        fixture->engines[i] = fault_engine_new(inner);
    }
    start(fixture);
    assert_ok(catalogue_account_create(fixture->catalogue, SLICE("acme"),
                                       document_of(fixture->arena, "{}"), &account, &err),
              &err);
    assert_ok(catalogue_database_create(fixture->catalogue, SLICE("acme"), SLICE("shop"), NULL,
                                        &database, &err),
              &err);
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;

    stop(fixture);
    for (size_t i = 0; i < 2; i++)
        engine_close(fixture->engines[i]);
    item_gates_free(fixture->gates);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

#define BODY                                                                                       \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"                          \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]},\"defaultTtl\":-1}"

static inline void container_make(struct fixture *fixture, const char *body, int64_t ru)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = true, .ru = ru};
    struct error err;

    assert_ok(catalogue_container_create(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                         document_of(fixture->arena, body), &request, &container,
                                         &err),
              &err);
}

static inline struct container *opened(struct fixture *fixture)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                                       &container, &err),
              &err);
    return container;
}

/* Writes item number i of a logical partition of ten. */
static inline bool item_put(struct fixture *fixture, const struct container *container, int i,
                            const char *word, struct transaction_result *ret_result,
                            struct error *err)
{
    struct item_space space =
        container_space((struct container *)container, &clock_system, fixture->gates);
    struct slice text = arena_printf(
        fixture->arena,
        "{\"id\":\"%d\",\"pk\":\"k%d\",\"x\":%d,\"w\":\"%s\",\"email\":\"%s%d\",\"ttl\":100000}", i,
        i / 10, i, word, word, i);
    struct slice document = document_of(fixture->arena, arena_text(fixture->arena, text));
    struct item_operation op = {
        .space = &space,
        .arena = fixture->arena,
        .verb = ITEM_UPSERT,
        .key = partition_key_extract(&space.definition->key, document),
        .id = document_string(arena_printf(fixture->arena, "%d", i)),
        .document = document,
    };

    if (!item_operation_run(&op, err))
        return false;
    *ret_result = op.result;
    return true;
}

static inline void items_put(struct fixture *fixture, int from, int to, const char *word)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct transaction_result result;
    struct error err;

    for (int i = from; i < to; i++)
        assert_ok(item_put(fixture, container, i, word, &result, &err), &err);
}

static inline void item_delete(struct fixture *fixture, int i)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct slice document = document_of(
        fixture->arena,
        arena_text(fixture->arena, arena_printf(fixture->arena, "{\"pk\":\"k%d\"}", i / 10)));
    struct partition_key key = partition_key_extract(&space.definition->key, document);
    struct document_value id = document_string(arena_printf(fixture->arena, "%d", i));
    struct error err;

    assert_ok(item_operation_run(&(struct item_operation){.space = &space,
                                                          .arena = fixture->arena,
                                                          .verb = ITEM_DELETE,
                                                          .key = key,
                                                          .id = id},
                                 &err),
              &err);
}

/* Item number i as a container has it, with its header. */
static inline struct item item_in(struct fixture *fixture, struct container *container, int i)
{
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct slice json = arena_printf(fixture->arena, "[\"k%d\"]", i / 10);
    struct item_operation read = {
        .space = &space,
        .arena = fixture->arena,
        .verb = ITEM_READ,
        .id = document_string(arena_printf(fixture->arena, "%d", i)),
    };
    struct error err;

    assert_ok(partition_key_parse(&space.definition->key, json, PARTITION_KEY_WHOLE, fixture->arena,
                                  &read.key, &err),
              &err);
    assert_ok(item_operation_run(&read, &err), &err);
    return read.result.item;
}

static inline void item_expect(struct fixture *fixture, int i, const char *word)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct slice document = document_of(
        fixture->arena,
        arena_text(fixture->arena, arena_printf(fixture->arena, "{\"pk\":\"k%d\"}", i / 10)));
    struct item_operation read = {
        .space = &space,
        .arena = fixture->arena,
        .verb = ITEM_READ,
        .key = partition_key_extract(&space.definition->key, document),
        .id = document_string(arena_printf(fixture->arena, "%d", i)),
    };
    struct document_value value;
    struct error err;

    if (!word) {
        assert_fails(item_operation_run(&read, &err), &err, ERROR_ITEM_MISSING);
        return;
    }
    assert_ok(item_operation_run(&read, &err), &err);
    assert_true(document_find(read.result.item.document, SLICE("w"), &value));
    assert_true(slice_equal(value.text, slice_of_text(word)));
}

static inline bool is_moving(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);

    return container_migration(container) != NULL;
}

static inline void settle(struct fixture *fixture)
{
    struct error err;
    bool busy;

    for (int i = 0; i < 10000 && is_moving(fixture); i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_false(is_moving(fixture));
}

static inline size_t span_count(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;

    (void)partition_map_spans(container_map(container), &count);
    return count;
}

static inline uint32_t span_id(struct fixture *fixture, size_t index)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;

    return partition_map_spans(container_map(container), &count)[index].id;
}

/* Also of a container "copy", where one was made: it holds as many. */
static inline void verify(struct fixture *fixture, size_t items)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    CLEANUP(container_unref) struct container *copy = NULL;
    struct error err;
    bool copied = catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                           SLICE("copy"), &copy, &err);
    struct container *both[] = {container, copy};

    assert_int_equal(verify_container(container), items);
    if (copied)
        assert_int_equal(verify_container(copy), items);
    verify_no_others(fixture->cluster, both, copied ? 2 : 1);
}

static inline void split(struct fixture *fixture, size_t index, size_t pieces)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct error err;

    assert_ok(
        migrator_split(fixture->migrator, container, span_id(fixture, index), pieces, NULL, &err),
        &err);
}

static inline void merge(struct fixture *fixture, size_t index, size_t count)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    uint32_t ids[8];
    struct error err;

    for (size_t i = 0; i < count; i++)
        ids[i] = span_id(fixture, index + i);
    assert_ok(migrator_merge(fixture->migrator, container, ids, count, &err), &err);
}

static inline void move(struct fixture *fixture, size_t index)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;
    const struct partition_span *span =
        &partition_map_spans(container_map(container), &count)[index];
    struct error err;

    assert_ok(migrator_move(fixture->migrator, container, span->id, 1 - span->node, &err), &err);
}

static inline struct partition_key key_named(struct fixture *fixture, const char *json)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct partition_key key;
    struct error err;

    assert_ok(partition_key_parse(&definition_fields(container_definition(container))->key,
                                  slice_of_text(json), PARTITION_KEY_WHOLE, fixture->arena, &key,
                                  &err),
              &err);
    return key;
}

/* A story with a fault at its nth write of a node, then a restart, then to its end. False: it has
 * no nth write. */
static inline bool cut_off_once(struct fixture *fixture, size_t node, unsigned nth,
                                enum fault_outcome outcome, void (*begin)(struct fixture *fixture))
{
    struct error err;
    unsigned before = fault_engine_count(fixture->engines[node], FAULT_WRITES);
    bool busy;

    items_put(fixture, 0, 30, "a");
    begin(fixture);
    items_put(fixture, 10, 20, "b");
    before = fault_engine_count(fixture->engines[node], FAULT_WRITES);
    fault_engine_fail_nth(fixture->engines[node], FAULT_WRITES, nth, ERROR_STORE_IO, outcome);
    for (int i = 0; i < 1000 && is_moving(fixture); i++)
        if (!migrator_round(fixture->migrator, &busy, &err))
            break;
    if (fault_engine_count(fixture->engines[node], FAULT_WRITES) - before < nth) {
        fault_engine_fail_nth(fixture->engines[node], FAULT_WRITES, 0, ERROR_NONE, outcome);
        settle(fixture);
        verify(fixture, 30);
        return false;
    }
    restart(fixture);
    settle(fixture);
    verify(fixture, 30);
    item_expect(fixture, 15, "b");
    item_expect(fixture, 25, "a");
    return true;
}

static inline void cut_off_everywhere(struct fixture *fixture,
                                      void (*begin)(struct fixture *fixture))
{
    for (size_t node = 0; node < 2; node++)
        for (int outcome = FAULT_NOT_WRITTEN; outcome <= FAULT_WRITTEN; outcome++)
            for (unsigned nth = 1;; nth++) {
                arena_reset(fixture->arena);
                if (!cut_off_once(fixture, node, nth, (enum fault_outcome)outcome, begin))
                    break;
            }
}
