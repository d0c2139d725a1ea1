/* A container in memory whose heat is looked at by hand, on a clock the test turns. */
#pragma once

#include "heat/heat.h"

#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "item/operation.h"
#include "load/offer_meters.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"

#define MINUTE INT64_C(60000)

struct fixture {
    struct arena *arena;
    struct engine *engine; /* a faulty one around memory */
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct meters *meters;
    struct migrator *migrator;
    struct item_gates *gates;
    struct heat *heat;
    struct heat_limits limits;
    struct definition_limits catalogue_limits;
    struct clock clock;
    int64_t now_ms;
    bool splits; /* by limits too */
};

static inline int64_t test_now(void *context)
{
    return ((struct fixture *)context)->now_ms;
}

static inline void on_published(struct container *container, void *context)
{
    struct fixture *fixture = context;
    struct error err;

    assert_ok(load_meters_apply(fixture->meters, container, 0, &err), &err);
    heat_published(fixture->heat, container);
}

static inline void on_shared(struct container *container, void *context)
{
    struct error err;

    assert_ok(load_meters_apply(((struct fixture *)context)->meters, container, 0, &err), &err);
}

static inline void on_dropped(uint32_t partition, void *context)
{
    meters_remove(((struct fixture *)context)->meters, partition);
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

static inline void start(struct fixture *fixture)
{
    struct error err;

    fixture->cluster = cluster_new(NULL);
    assert_ok(cluster_add(fixture->cluster, "a", fixture->engine, &err), &err);
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = fixture->cluster,
                                                         .limits = &fixture->catalogue_limits,
                                                         .purge_by_hand = true},
                             &fixture->catalogue, &err),
              &err);
    fixture->clock =
        (struct clock){.wall_ms = test_now, .monotonic_ms = test_now, .context = fixture};
    fixture->meters = meters_new(&fixture->clock);
    fixture->heat = heat_new(&(struct heat_options){.catalogue = fixture->catalogue,
                                                    .meters = fixture->meters,
                                                    .clock = &fixture->clock,
                                                    .limits = fixture->limits,
                                                    .by_hand = true});
    fixture->migrator = migrator_new(&(struct migrator_options){.catalogue = fixture->catalogue,
                                                                .meters = fixture->meters,
                                                                .clock = &fixture->clock,
                                                                .splits_off = !fixture->splits,
                                                                .by_hand = true,
                                                                .published = on_published,
                                                                .shared = on_shared,
                                                                .dropped = on_dropped,
                                                                .context = fixture});
    heat_set_migrator(fixture->heat, fixture->migrator);
}

static inline void stop(struct fixture *fixture)
{
    heat_stop(fixture->heat);
    migrator_free(TAKE(fixture->migrator));
    heat_free(TAKE(fixture->heat));
    meters_free(TAKE(fixture->meters));
    catalogue_close(TAKE(fixture->catalogue));
    cluster_free(TAKE(fixture->cluster));
}

static inline void meters_fill(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct error err;

    assert_ok(load_meters_apply(fixture->meters, container, 0, &err), &err);
}

static inline void restart(struct fixture *fixture)
{
    stop(fixture);
    fault_engine_heal(fixture->engine);
    start(fixture);
    meters_fill(fixture);
}

static inline void container_make(struct fixture *fixture, int64_t ru)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = true, .ru = ru};
    struct error err;

    assert_ok(catalogue_container_create(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                         document_of(fixture->arena,
                                                     "{\"id\":\"c\",\"partitionKey\":{\"paths\":"
                                                     "[\"/pk\"],\"version\":2}}"),
                                         &request, &container, &err),
              &err);
    meters_fill(fixture);
}

static inline int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    struct engine *inner;
    struct error err;

    fixture->arena = arena_new();
    fixture->gates = item_gates_new();
    fixture->catalogue_limits = CATALOGUE_LIMITS_DEFAULT;
    fixture->limits = HEAT_LIMITS_DEFAULT;
    fixture->now_ms = 30000000 * MINUTE; /* a good while since 1970 */
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &inner, &err), &err);
    fixture->engine = fault_engine_new(inner);
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
    engine_close(fixture->engine);
    item_gates_free(fixture->gates);
    arena_free(fixture->arena);
    memory_free(fixture);
    return 0;
}

static inline void look(struct fixture *fixture)
{
    struct error err;

    assert_ok(heat_round(fixture->heat, &err), &err);
}

static inline struct partition_key key_of(struct fixture *fixture, const char *pk)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct partition_key key;
    struct error err;

    assert_ok(partition_key_parse(&definition_fields(container_definition(container))->key,
                                  arena_printf(fixture->arena, "[\"%s\"]", pk), PARTITION_KEY_WHOLE,
                                  fixture->arena, &key, &err),
              &err);
    return key;
}

static inline const struct partition_span *
span_of(struct fixture *fixture, const struct container *container, const char *pk)
{
    CLEANUP(buf_done) struct buf routing;
    struct partition_key key = key_of(fixture, pk);

    buf_init(&routing, 1024);
    partition_route(&definition_fields(container_definition(container))->key, &key, &routing);
    return partition_map_find(container_map(container), buf_slice(&routing));
}

/* As if requests on a key had been served, and some refused. */
static inline void ask(struct fixture *fixture, const char *pk, double ru, int requests,
                       int throttled)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct partition_key key = key_of(fixture, pk);
    struct meter *meter = meters_find(fixture->meters, span_of(fixture, container, pk)->id);
    struct statistics_event event = {.key = metering_pk(&key, fixture->arena),
                                     .cru = (int64_t)(ru * 100 / requests),
                                     .bytes_in = 10,
                                     .bytes_out = 100,
                                     .time_us = 2000};

    for (int i = 0; i < requests; i++)
        statistics_record(meter_statistics(meter), &event, fixture->now_ms);
    event = (struct statistics_event){.key = event.key, .throttled = true};
    for (int i = 0; i < throttled; i++)
        statistics_record(meter_statistics(meter), &event, fixture->now_ms);
}

static inline struct heat_series series_of(struct fixture *fixture, int64_t minutes)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    int64_t now = fixture->now_ms / MINUTE;
    struct heat_series series;
    struct error err;

    assert_ok(heat_read(fixture->heat, container,
                        &(struct heat_query){.from_minute = now - minutes + 1,
                                             .to_minute = now,
                                             .points_max = HEAT_POINTS_MAX},
                        fixture->arena, &series, &err),
              &err);
    return series;
}

static inline int64_t cru_of(const struct heat_series *series)
{
    int64_t cru = 0;

    for (size_t i = 0; i < series->point_count; i++)
        for (size_t j = 0; j < series->points[i].record.span_count; j++)
            cru += series->points[i].record.spans[j].numbers.cru;
    return cru;
}

static inline void item_put(struct fixture *fixture, const char *pk, int i, size_t bytes)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    char *filler = arena_alloc(fixture->arena, bytes + 1);
    struct document_value id;
    struct partition_key key;
    struct slice document;
    struct error err;

    memset(filler, 'x', bytes);
    filler[bytes] = 0;
    document = document_of(
        fixture->arena,
        arena_text(fixture->arena,
                   arena_printf(fixture->arena, "{\"id\":\"%d\",\"pk\":\"%s\",\"f\":\"%s\"}", i, pk,
                                filler)));
    key = partition_key_extract(&space.definition->key, document);
    id = document_string(arena_printf(fixture->arena, "%d", i));
    assert_ok(item_operation_run(&(struct item_operation){.space = &space,
                                                          .arena = fixture->arena,
                                                          .verb = ITEM_UPSERT,
                                                          .key = key,
                                                          .id = id,
                                                          .document = document},
                                 &err),
              &err);
}

static inline size_t span_count(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;

    (void)partition_map_spans(container_map(container), &count);
    return count;
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

    for (int i = 0; i < 10000 && is_moving(fixture); i++) {
        fixture->now_ms += 10;
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    }
    assert_false(is_moving(fixture));
}

/* A minute in which many keys, or one, spend what the partition has. */
static inline void hot_minute(struct fixture *fixture, double ru, int keys)
{
    for (int i = 0; i < keys; i++) {
        char pk[16];

        snprintf(pk, sizeof pk, "k%d", i);
        ask(fixture, pk, ru * 60 / keys, 10, 1);
    }
    fixture->now_ms += MINUTE;
    look(fixture);
}

static inline void keys_put(struct fixture *fixture, int keys)
{
    for (int i = 0; i < keys; i++) {
        char pk[16];

        snprintf(pk, sizeof pk, "k%d", i);
        item_put(fixture, pk, 1, 10);
    }
}
