/* A partition of 1 GB is split, and then its half moved to another node and on to a PostgreSQL
 * server, under clients that go on reading and writing: what they notice of it. The goals: no
 * operation fails, writers wait less than 50 ms, and p99 meanwhile is at most three times what it
 * was before.
 *
 *     MIGRATION_BENCH_MB=64       another size
 *     MIGRATION_BENCH_RATE=0      bytes copied in a second, else what migration.bytes_per_second is
 *                                 without a setting; 0: as fast as it goes
 *     MIGRATION_BENCH_INDEX=all   every path is indexed, and there is three times as much to fill,
 *                                 copy and follow; else the paths that POLICY names
 *     MIGRATION_BENCH_POSTGRES=0  without the last part
 *
 * Half of the operations are point reads, half replace an item, as fast as eight clients can. */
#include "clients.h"
#include "server/settings.h"
#include "space.h"
#include "support/postgres.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALM_MS = 10000, NODES = 3, WRITE_BUFFER = 64 * LIVING_MB, PAUSE_GOAL_MS = 50 };
#define P99_GOAL 3.0

/* What somebody asks orders of 1 KB for. */
#define POLICY                                                                                     \
    "{\"includedPaths\":[{\"path\":\"/kind/?\"},{\"path\":\"/open/?\"},{\"path\":\"/created/?\"}," \
    "{\"path\":\"/amount/?\"},{\"path\":\"/city/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}"

enum phase { BEFORE, SPLITTING, AFTER_SPLIT, MOVING, AFTER_MOVE, TO_POSTGRES, AT_POSTGRES, PHASES };
static const char *const phase_names[PHASES] = {"before",     "splitting",   "after it",   "moving",
                                                "after that", "to postgres", "in postgres"};

/* The first in key order, as the map is now. */
static struct partition_span first_span(const struct container *container)
{
    size_t count;

    return *partition_map_spans(container_map(container), &count);
}

static bool begin_split(struct living *living, struct error *err)
{
    CLEANUP(container_unref) struct container *container = living_container(living);

    return migrator_split(living->migrator, container, first_span(container).id, 2, NULL, err);
}

static bool move_first(struct living *living, uint32_t node, struct error *err)
{
    CLEANUP(container_unref) struct container *container = living_container(living);
    struct partition_span span = first_span(container);

    return span.node == node || migrator_move(living->migrator, container, span.id, node, err);
}

static bool begin_move(struct living *living, struct error *err)
{
    return move_first(living, 1, err);
}

static bool begin_postgres(struct living *living, struct error *err)
{
    return move_first(living, NODES - 1, err);
}

static uint64_t rate_preset(void)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();

    return (uint64_t)settings->migration_bytes_per_second;
}

static void world_open(struct living *living, const struct scratch *scratch,
                       struct postgres *postgres)
{
    const char *index = getenv("MIGRATION_BENCH_INDEX");
    bool all = index && !strcmp(index, "all");
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *urls[NODES];
    struct error err;

    for (size_t i = 0; i < NODES - 1; i++)
        urls[i] = arena_text(arena, arena_printf(arena, "rocksdb:%s/node%zu", scratch->path, i));
    urls[NODES - 1] = postgres ? postgres_fresh_url(postgres) : NULL;
    printf("  indexed: %s; engine.write_buffer_bytes=%d\n", all ? "every path" : POLICY,
           WRITE_BUFFER);
    living_open(living, &(struct living_options){.name = "migration_bench",
                                                 .urls = urls,
                                                 .url_count = postgres ? NODES : NODES - 1,
                                                 .write_buffer_bytes = WRITE_BUFFER,
                                                 .policy = all ? NULL : POLICY,
                                                 .ru = 10000});
    living_migrate(living, &(struct migrator_options){.bytes_per_second = living_option(
                                                          "MIGRATION_BENCH_RATE", rate_preset()),
                                                      .pause_ms = 10,
                                                      .splits_off = true});
    bench_must(move_first(living, 0, &err), &err); /* wherever the catalogue has put it */
    living_wait(living);
}

static void run(struct clients *clients, struct living *living, bool with_postgres)
{
    clients_start(clients, living, phase_names, PHASES);
    clients_calm(clients, BEFORE, CALM_MS);
    clients_migration(clients, SPLITTING, begin_split);
    clients_calm(clients, AFTER_SPLIT, CALM_MS);
    clients_migration(clients, MOVING, begin_move);
    clients_calm(clients, AFTER_MOVE, CALM_MS);
    if (with_postgres) {
        clients_migration(clients, TO_POSTGRES, begin_postgres);
        clients_calm(clients, AT_POSTGRES, CALM_MS);
    }
    clients_stop(clients);
}

static void report(const struct clients *clients, bool with_postgres)
{
    static const struct clients_goals goals[] = {
        {"a partition splits", SPLITTING, BEFORE, PAUSE_GOAL_MS, P99_GOAL},
        {"a partition moves", MOVING, AFTER_SPLIT, PAUSE_GOAL_MS, P99_GOAL},
        {"a partition moves to PostgreSQL", TO_POSTGRES, AFTER_MOVE, PAUSE_GOAL_MS, P99_GOAL},
    };

    clients_print(clients);
    for (size_t i = 0; i < ARRAY_LEN(goals) - !with_postgres; i++)
        clients_compare(clients, &goals[i]);
}

int main(void)
{
    static struct clients clients;
    CLEANUP(postgres_free) struct postgres *postgres = NULL;
    CLEANUP(scratch_done) struct scratch scratch;
    struct living living;

    scratch_init(&scratch);
    if (living_option("MIGRATION_BENCH_POSTGRES", 1))
        postgres = postgres_start(true);
    world_open(&living, &scratch, postgres);
    living_fill(&living, living_option("MIGRATION_BENCH_MB", 1024) * LIVING_MB / 1024);
    run(&clients, &living, postgres != NULL);
    report(&clients, postgres != NULL);
    living_close(&living);
    return atomic_load(&living.failed) != 0;
}
