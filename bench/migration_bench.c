/* A partition of 1 GB is split, and then its half moved to another node and on to a PostgreSQL
 * server, under clients that go on reading and writing: what they notice of it. The goals: no
 * operation fails, writers wait less than 50 ms, and p99 meanwhile is at most three times what it
 * was before.
 *
 *     MIGRATION_BENCH_MB=64       another size
 *     MIGRATION_BENCH_RATE=0      bytes copied in a second, else what migration.bytes_per_second is
 *                                 without a setting; 0: as fast as it goes
 *     MIGRATION_BENCH_POSTGRES=0  without the last part
 *
 * Half of the operations are point reads, half replace an item, as fast as eight clients can. */
#include "base/histogram.h"
#include "base/random.h"
#include "base/thread.h"
#include "container/container_space.h"
#include "container/migrator.h"
#include "document/bson.h"
#include "rounds.h"
#include "server/settings.h"
#include "space.h"
#include "support/postgres.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 8, FILLERS = 8, PER_LOGICAL = 10, CALM_MS = 5000, MB = 1024 * 1024 };
enum { NODES = 3, PAUSE_GOAL_MS = 50 };
#define P99_GOAL 3.0

struct bench {
    struct engine *engines[NODES]; /* the last is PostgreSQL, or NULL */
    struct postgres *postgres;
    uint64_t bytes_per_second;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct item_gates *gates;
    uint64_t items;
    atomic_bool stopping;
    _Atomic(struct histogram *) now; /* what clients record into: one of the phases */
    atomic_uint failed;
};

struct client {
    struct bench *bench;
    struct thread thread;
    struct random random;
    uint64_t from, to; /* of a filler */
};

static struct container *opened(struct bench *bench)
{
    struct container *container;
    struct error err;

    bench_must(catalogue_container_open(bench->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                        &container, &err),
               &err);
    return container;
}

/* --- Making it ------------------------------------------------------------------------------- */

static void open_all(struct bench *bench, const struct scratch *scratch)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf body;
    static const char *const names[NODES] = {"a", "b", "c"};
    struct offer_request request = {.given = true, .ru = 10000};
    struct error err;
    size_t document, key, paths;

    bench->cluster = cluster_new(NULL);
    for (size_t i = 0; i < NODES; i++) {
        struct slice url = arena_printf(arena, "rocksdb:%s/node%zu", scratch->path, i);

        if (i == NODES - 1 && !bench->postgres)
            continue;
        if (i == NODES - 1)
            url = slice_of_text(postgres_fresh_url(bench->postgres));
        bench_must(engine_open(url, &(struct engine_options){0}, &bench->engines[i], &err), &err);
        bench_must(cluster_add(bench->cluster, names[i], bench->engines[i], &err), &err);
    }
    bench_must(catalogue_open(&(struct catalogue_options){.cluster = bench->cluster},
                              &bench->catalogue, &err),
               &err);
    buf_init(&body, BUF_DEFAULT_MAX);
    document = document_begin(&body);
    document_append_string(&body, SLICE("id"), SLICE("c"));
    key = document_append_object_begin(&body, SLICE("partitionKey"));
    paths = document_append_array_begin(&body, SLICE("paths"));
    document_append_string(&body, SLICE("0"), SLICE("/tenant"));
    document_end(&body, paths);
    document_append_int32(&body, SLICE("version"), 2);
    document_end(&body, key);
    document_end(&body, document);
    bench_must(
        catalogue_account_create(bench->catalogue, SLICE("a"), SLICE("\5\0\0\0\0"), &account, &err),
        &err);
    bench_must(
        catalogue_database_create(bench->catalogue, SLICE("a"), SLICE("d"), NULL, &database, &err),
        &err);
    bench_must(catalogue_container_create(bench->catalogue, SLICE("a"), SLICE("d"),
                                          buf_slice(&body), &request, &container, &err),
               &err);
    bench->migrator =
        migrator_new(&(struct migrator_options){.catalogue = bench->catalogue,
                                                .bytes_per_second = bench->bytes_per_second,
                                                .pause_ms = 10,
                                                .splits_off = true});
    bench->gates = item_gates_new();
}

static void close_all(struct bench *bench)
{
    migrator_free(bench->migrator);
    catalogue_close(bench->catalogue);
    cluster_free(bench->cluster);
    for (size_t i = 0; i < NODES; i++)
        engine_close(bench->engines[i]);
    postgres_free(bench->postgres);
    item_gates_free(bench->gates);
}

/* A logical partition in one transaction. */
static void filler_main(void *context)
{
    struct client *client = context;
    CLEANUP(container_unref) struct container *container = opened(client->bench);
    struct item_space space = container_space(container, &clock_system, NULL);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;

    for (uint64_t n = client->from; n < client->to; n += PER_LOGICAL) {
        CLEANUP(transaction_free) struct transaction *transaction = NULL;
        struct slice document = bench_item_document(n, 0, arena);
        struct partition_key key = partition_key_extract(&space.definition->key, document);
        struct slice logical = item_logical(&space.definition->key, &key, arena);
        struct item_scope scope = item_space_scope(&space, logical);

        bench_must(transaction_begin(&scope, logical, arena, &transaction, &err), &err);
        for (uint64_t i = n; i < n + PER_LOGICAL; i++) {
            struct document_value id;

            document = bench_item_document(i, 0, arena);
            (void)document_find(document, SLICE("id"), &id);
            bench_must(
                transaction_write(transaction, &id, TRANSACTION_UPSERT, document, NULL, &err),
                &err);
        }
        bench_must(transaction_commit(transaction, &err), &err);
        transaction_free(TAKE(transaction));
        arena_reset(arena);
    }
}

static void fill(struct bench *bench)
{
    struct client clients[FILLERS];
    uint64_t each = bench->items / FILLERS / PER_LOGICAL * PER_LOGICAL;

    for (uint64_t i = 0; i < FILLERS; i++) {
        clients[i] = (struct client){.bench = bench, .from = i * each, .to = (i + 1) * each};
        thread_start(&clients[i].thread, "fill", filler_main, &clients[i]);
    }
    for (size_t i = 0; i < FILLERS; i++)
        thread_join(&clients[i].thread);
    bench->items = each * FILLERS;
}

/* --- Clients --------------------------------------------------------------------------------- */

static void operate(struct client *client, struct arena *arena)
{
    struct bench *bench = client->bench;
    CLEANUP(container_unref) struct container *container = opened(bench);
    struct item_space space = container_space(container, &clock_system, bench->gates);
    uint64_t n = random_below(&client->random, bench->items);
    struct slice document = bench_item_document(n, random_below(&client->random, 1000000), arena);
    struct partition_key key = partition_key_extract(&space.definition->key, document);
    struct transaction_result result;
    struct document_value id;
    struct item item;
    struct error err;
    bool done;

    (void)document_find(document, SLICE("id"), &id);
    if (random_below(&client->random, 2))
        done = items_read(&space, &key, &id, arena, &item, &err);
    else
        done = items_write(&space, &key, &id, TRANSACTION_REPLACE, document, NULL, arena, &result,
                           NULL, &err);
    if (!done) {
        atomic_fetch_add(&bench->failed, 1);
        fprintf(stderr, "migration_bench: %s\n", err.message);
    }
}

/* Each client records into its own; histograms take one writer. */
static void client_main(void *context)
{
    struct client *client = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();

    while (!atomic_load(&client->bench->stopping)) {
        int64_t begun = clock_monotonic_ns();
        struct histogram *now = atomic_load(&client->bench->now);

        operate(client, arena);
        histogram_record(&now[client->from], (uint64_t)(clock_monotonic_ns() - begun) / 1000);
        arena_reset(arena);
    }
}

/* --- Phases ---------------------------------------------------------------------------------- */

enum phase { BEFORE, SPLITTING, AFTER_SPLIT, MOVING, AFTER_MOVE, TO_POSTGRES, AT_POSTGRES, PHASES };
static const char *const names[PHASES] = {"before",     "splitting",   "after it",   "moving",
                                          "after that", "to postgres", "in postgres"};
static struct histogram phases[PHASES][CLIENTS];
static int64_t pauses_ms[PHASES];

static void rest_ms(int64_t ms)
{
    struct mutex lock;
    struct condition never;
    int64_t until = clock_monotonic_ms() + ms;

    mutex_init(&lock);
    condition_init(&never);
    WITH_LOCK (&lock)
        while (condition_wait_until(&never, &lock, until))
            ;
    condition_done(&never);
    mutex_done(&lock);
}

static bool is_moving(struct bench *bench)
{
    CLEANUP(container_unref) struct container *container = opened(bench);

    return container_migration(container) != NULL;
}

static void phase_run(struct bench *bench, enum phase phase,
                      bool (*begin)(struct bench *bench, struct error *err))
{
    int64_t begun = clock_monotonic_ms();
    struct migrator_statistics before = migrator_statistics(bench->migrator), after;
    struct error err;

    atomic_store(&bench->now, phases[phase]);
    if (!begin) {
        rest_ms(CALM_MS);
        return;
    }
    bench_must(begin(bench, &err), &err);
    while (is_moving(bench))
        rest_ms(1);
    after = migrator_statistics(bench->migrator);
    pauses_ms[phase] = after.pause_ms_last;
    printf("  %s: %.0f MB in %.1f s, pause %lld ms\n", names[phase],
           (double)(after.bytes - before.bytes) / MB, (double)(clock_monotonic_ms() - begun) / 1000,
           (long long)after.pause_ms_last);
    fflush(stdout);
}

static bool begin_split(struct bench *bench, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    size_t count;

    return migrator_split(bench->migrator, container,
                          partition_map_spans(container_map(container), &count)->id, 2, NULL, err);
}

static bool begin_move(struct bench *bench, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);

    return migrator_move(bench->migrator, container, span->id, 1 - span->node, err);
}

/* The first node, wherever the catalogue has put it. */
static void settle_on_first(struct bench *bench)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);
    struct error err;

    if (span->node == 0)
        return;
    bench_must(migrator_move(bench->migrator, container, span->id, 0, &err), &err);
    container_unref(TAKE(container));
    while (is_moving(bench))
        rest_ms(1);
}

static bool begin_postgres(struct bench *bench, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);

    return migrator_move(bench->migrator, container, span->id, NODES - 1, err);
}

static double quantile_ms(enum phase phase, double fraction)
{
    static struct histogram sum;

    histogram_clear(&sum);
    for (size_t i = 0; i < CLIENTS; i++)
        histogram_add(&sum, &phases[phase][i]);
    return (double)histogram_quantile(&sum, fraction) / 1000;
}

static void goal_print(enum phase during, enum phase before)
{
    double p99 = quantile_ms(during, 0.99), calm = quantile_ms(before, 0.99);

    printf("  %s: pause %lld ms (goal below %d: %s), p99 %.2f ms, %.1f times before (goal at most "
           "%.0f: %s)\n",
           names[during], (long long)pauses_ms[during], PAUSE_GOAL_MS,
           pauses_ms[during] < PAUSE_GOAL_MS ? "met" : "missed", p99, p99 / calm, P99_GOAL,
           p99 <= P99_GOAL * calm ? "met" : "missed");
}

static void report(struct bench *bench)
{
    for (enum phase phase = BEFORE; phase < PHASES; phase++) {
        uint64_t count = 0;

        for (size_t i = 0; i < CLIENTS; i++)
            count += histogram_count(&phases[phase][i]);
        if (count == 0)
            continue;
        printf("  %-11s %8llu operations, p50 %.2f ms, p99 %.2f ms, longest %.1f ms\n",
               names[phase], (unsigned long long)count, quantile_ms(phase, 0.5),
               quantile_ms(phase, 0.99), quantile_ms(phase, 1));
    }
    printf("  failed operations: %u (goal 0)\n", atomic_load(&bench->failed));
    goal_print(SPLITTING, BEFORE);
    goal_print(MOVING, AFTER_SPLIT);
    if (bench->postgres)
        goal_print(TO_POSTGRES, AFTER_MOVE);
    rounds_ratio("p99 in ms while a partition splits, less is better", quantile_ms(SPLITTING, 0.99),
                 quantile_ms(BEFORE, 0.99), "against before it");
    rounds_ratio("p99 in ms while a partition moves, less is better", quantile_ms(MOVING, 0.99),
                 quantile_ms(AFTER_SPLIT, 0.99), "against before it");
    if (bench->postgres)
        rounds_ratio("p99 in ms while a partition moves to PostgreSQL, less is better",
                     quantile_ms(TO_POSTGRES, 0.99), quantile_ms(AFTER_MOVE, 0.99),
                     "against before it");
}

static uint64_t option(const char *name, uint64_t preset)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : preset;
}

static uint64_t rate_preset(void)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();

    return (uint64_t)settings->migration_bytes_per_second;
}

int main(void)
{
    struct bench bench = {.items = option("MIGRATION_BENCH_MB", 1024) * MB / 1024,
                          .bytes_per_second = option("MIGRATION_BENCH_RATE", rate_preset())};
    CLEANUP(scratch_done) struct scratch scratch;
    struct client clients[CLIENTS];

    scratch_init(&scratch);
    if (option("MIGRATION_BENCH_POSTGRES", 1))
        bench.postgres = postgres_start(true);
    open_all(&bench, &scratch);
    settle_on_first(&bench);
    fill(&bench);
    atomic_store(&bench.now, phases[BEFORE]);
    for (uint64_t i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.bench = &bench, .from = i};
        random_seed(&clients[i].random, i);
        thread_start(&clients[i].thread, "client", client_main, &clients[i]);
    }
    phase_run(&bench, BEFORE, NULL);
    phase_run(&bench, SPLITTING, begin_split);
    phase_run(&bench, AFTER_SPLIT, NULL);
    phase_run(&bench, MOVING, begin_move);
    phase_run(&bench, AFTER_MOVE, NULL);
    if (bench.postgres) {
        phase_run(&bench, TO_POSTGRES, begin_postgres);
        phase_run(&bench, AT_POSTGRES, NULL);
    }
    atomic_store(&bench.stopping, true);
    for (size_t i = 0; i < CLIENTS; i++)
        thread_join(&clients[i].thread);
    report(&bench);
    close_all(&bench);
    return atomic_load(&bench.failed) != 0;
}
