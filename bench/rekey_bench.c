/* A container is given another partition key under clients that go on reading and writing: what
 * they notice of it.
 *
 * REKEY_BENCH_MB=1024 makes it that large, a million items; the default is 64. Half of the
 * operations are point reads, half replace an item. Migrations copy as fast as they can: throttled
 * (migration.bytes_per_second) they take longer and are noticed less. */
#include "base/histogram.h"
#include "base/random.h"
#include "base/thread.h"
#include "container/container_space.h"
#include "container/migrator.h"
#include "document/bson.h"
#include "rounds.h"
#include "space.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS = 8, FILLERS = 8, PER_LOGICAL = 10, CALM_MS = 3000, MB = 1024 * 1024 };

struct bench {
    struct engine *engines[2];
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
    struct offer_request request = {.given = true, .ru = 10000};
    struct error err;
    size_t document, key, paths;

    bench->cluster = cluster_new(NULL);
    for (size_t i = 0; i < 2; i++) {
        struct slice url = arena_printf(arena, "rocksdb:%s/node%zu", scratch->path, i);

        bench_must(engine_open(url, &(struct engine_options){0}, &bench->engines[i], &err), &err);
        bench_must(cluster_add(bench->cluster, i ? "b" : "a", bench->engines[i], &err), &err);
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
    bench->migrator = migrator_new(&(struct migrator_options){
        .catalogue = bench->catalogue, .pause_ms = 10, .splits_off = true});
    bench->gates = item_gates_new();
}

static void close_all(struct bench *bench)
{
    migrator_free(bench->migrator);
    catalogue_close(bench->catalogue);
    cluster_free(bench->cluster);
    for (size_t i = 0; i < 2; i++)
        engine_close(bench->engines[i]);
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
    if (!done && err.code == ERROR_REKEYED) { /* as a front does: read it again, and once more */
        container_unref(container);
        container = opened(bench);
        space = container_space(container, &clock_system, bench->gates);
        key = partition_key_extract(&space.definition->key, document);
        done = items_write(&space, &key, &id, TRANSACTION_REPLACE, document, NULL, arena, &result,
                           NULL, &err);
    }
    if (!done) {
        atomic_fetch_add(&bench->failed, 1);
        fprintf(stderr, "rekey_bench: %s\n", err.message);
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

enum phase { BEFORE, REKEYING, AFTER_REKEY, PHASES };
static const char *const phase_names[PHASES] = {"before", "re-key", "after it"};
static struct histogram phases[PHASES][CLIENTS];

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
    printf("  %s of %.0f MB: %.1f s, pause %lld ms\n", phase_names[phase],
           (double)(after.bytes - before.bytes) / MB, (double)(clock_monotonic_ms() - begun) / 1000,
           (long long)after.pause_ms_last);
}

static bool begin_rekey(struct bench *bench, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    CLEANUP(buf_done) struct buf key;
    size_t document, paths;

    buf_init(&key, BUF_DEFAULT_MAX);
    document = document_begin(&key);
    paths = document_append_array_begin(&key, SLICE("paths"));
    document_append_string(&key, SLICE("0"), SLICE("/id"));
    document_end(&key, paths);
    document_append_int32(&key, SLICE("version"), 2);
    document_end(&key, document);
    return migrator_rekey(bench->migrator, container,
                          &(struct definition_rekey){.partition_key = buf_slice(&key)}, false, err);
}

static double quantile_ms(enum phase phase, double fraction)
{
    static struct histogram sum;

    histogram_clear(&sum);
    for (size_t i = 0; i < CLIENTS; i++)
        histogram_add(&sum, &phases[phase][i]);
    return (double)histogram_quantile(&sum, fraction) / 1000;
}

static void report(struct bench *bench)
{
    for (enum phase phase = BEFORE; phase < PHASES; phase++) {
        uint64_t count = 0;

        for (size_t i = 0; i < CLIENTS; i++)
            count += histogram_count(&phases[phase][i]);
        printf("  %-10s %8llu operations, p50 %.2f ms, p99 %.2f ms, longest %.1f ms\n",
               phase_names[phase], (unsigned long long)count, quantile_ms(phase, 0.5),
               quantile_ms(phase, 0.99), quantile_ms(phase, 1));
    }
    printf("  failed operations: %u\n", atomic_load(&bench->failed));
    rounds_ratio("p99 in ms while a container is re-keyed, less is better",
                 quantile_ms(REKEYING, 0.99), quantile_ms(BEFORE, 0.99), "against before it");
}

int main(void)
{
    const char *size = getenv("REKEY_BENCH_MB");
    struct bench bench = {.items = (size ? strtoull(size, NULL, 10) : 64) * MB / 1024};
    CLEANUP(scratch_done) struct scratch scratch;
    struct client clients[CLIENTS];

    scratch_init(&scratch);
    open_all(&bench, &scratch);
    fill(&bench);
    atomic_store(&bench.now, phases[BEFORE]);
    for (uint64_t i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.bench = &bench, .from = i};
        random_seed(&clients[i].random, i);
        thread_start(&clients[i].thread, "client", client_main, &clients[i]);
    }
    phase_run(&bench, BEFORE, NULL);
    phase_run(&bench, REKEYING, begin_rekey);
    phase_run(&bench, AFTER_REKEY, NULL);
    atomic_store(&bench.stopping, true);
    for (size_t i = 0; i < CLIENTS; i++)
        thread_join(&clients[i].thread);
    report(&bench);
    close_all(&bench);
    return atomic_load(&bench.failed) != 0;
}
