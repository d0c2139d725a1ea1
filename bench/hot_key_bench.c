/* One key out of 10,000 gets 80 % of the load: how soon the report names it, and what giving it a
 * partition of its own changes for it and for its neighbours.
 *
 * Four partitions of 1,000 RU/s. 4,000 point reads of 1 RU a second come evenly in time, whatever
 * becomes of them: 3,200 for the hot key, the others for keys drawn at random. Refused ones do not
 * come again. HOT_KEY_BENCH_S is how long each side is measured (10 s). In memory: nothing here
 * waits for a disk. */
#include "base/random.h"
#include "base/thread.h"
#include "container/container_meters.h"
#include "container/container_space.h"
#include "container/heat.h"
#include "container/metering.h"
#include "document/bson.h"
#include "rounds.h"
#include "space.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 10000, HOT = 4711, PER_SECOND = 4000, RU = 4000, RU_MAX = 1000, SETTLE_MS = 3000 };

struct counts {
    atomic_llong accepted, refused;
    atomic_llong cru;
};

struct bench {
    struct engine *engine;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct meters *meters;
    struct migrator *migrator;
    struct heat *heat;
    struct item_gates *gates;
    struct thread client;
    struct counts hot, neighbours, others;
    atomic_bool stopping;
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

static void on_published(struct container *container, void *context)
{
    struct bench *bench = context;
    struct error err;

    bench_must(container_meters_apply(bench->meters, container, 0, &err), &err);
    heat_published(bench->heat, container);
}

static void on_dropped(uint32_t partition, void *context)
{
    meters_remove(((struct bench *)context)->meters, partition);
}

static void container_make(struct bench *bench)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf body;
    struct offer_request request = {.given = true, .ru = RU};
    size_t document, key, paths;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    document = document_begin(&body);
    document_append_string(&body, SLICE("id"), SLICE("c"));
    key = document_append_object_begin(&body, SLICE("partitionKey"));
    paths = document_append_array_begin(&body, SLICE("paths"));
    document_append_string(&body, SLICE("0"), SLICE("/pk"));
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
    bench_must(container_meters_apply(bench->meters, container, 0, &err), &err);
}

static void open_all(struct bench *bench)
{
    struct catalogue_limits limits = CATALOGUE_LIMITS_DEFAULT;
    struct error err;

    limits.partition_ru_max = RU_MAX;
    bench->gates = item_gates_new();
    bench->cluster = cluster_new(NULL);
    bench_must(engine_open(SLICE("memory:"), &(struct engine_options){0}, &bench->engine, &err),
               &err);
    bench_must(cluster_add(bench->cluster, "a", bench->engine, &err), &err);
    bench_must(
        catalogue_open(&(struct catalogue_options){.cluster = bench->cluster, .limits = &limits},
                       &bench->catalogue, &err),
        &err);
    bench->meters = meters_new(&clock_system);
    container_make(bench);
    bench->heat = heat_new(&(struct heat_options){
        .catalogue = bench->catalogue, .meters = bench->meters, .pause_ms = 1000});
    bench->migrator = migrator_new(&(struct migrator_options){.catalogue = bench->catalogue,
                                                              .meters = bench->meters,
                                                              .pause_ms = 10,
                                                              .splits_off = true,
                                                              .published = on_published,
                                                              .dropped = on_dropped,
                                                              .context = bench});
}

static void close_all(struct bench *bench)
{
    heat_stop(bench->heat);
    migrator_free(bench->migrator);
    heat_free(bench->heat);
    meters_free(bench->meters);
    catalogue_close(bench->catalogue);
    cluster_free(bench->cluster);
    engine_close(bench->engine);
    item_gates_free(bench->gates);
}

/* --- Items ----------------------------------------------------------------------------------- */

static struct slice document_make(uint64_t n, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    size_t document;

    buf_init(&out, BUF_DEFAULT_MAX);
    document = document_begin(&out);
    document_append_string(&out, SLICE("id"), SLICE("1"));
    document_append_string(&out, SLICE("pk"),
                           arena_printf(arena, "key-%llu", (unsigned long long)n));
    document_end(&out, document);
    return arena_copy(arena, buf_slice(&out));
}

static struct partition_key key_of(const struct item_space *space, uint64_t n, struct arena *arena)
{
    return partition_key_extract(&space->definition->key, document_make(n, arena));
}

static void fill(struct bench *bench)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    struct item_space space = container_space(container, &clock_system, bench->gates);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value id = document_string(SLICE("1"));

    for (uint64_t n = 0; n < KEYS; n++) {
        struct slice document = document_make(n, arena);
        struct partition_key key = partition_key_extract(&space.definition->key, document);
        struct transaction_result result;
        struct error err;

        bench_must(items_write(&space, &key, &id, TRANSACTION_UPSERT, document, NULL, arena,
                               &result, NULL, &err),
                   &err);
        arena_reset(arena);
    }
}

/* --- The load -------------------------------------------------------------------------------- */

/* Which keys share, or shared, a partition with the hot one: decided before anything is isolated.
 */
static bool is_neighbour[KEYS];

static void neighbours_find(struct bench *bench)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    struct item_space space = container_space(container, &clock_system, bench->gates);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key key = key_of(&space, HOT, arena);
    struct slice logical = item_logical(&space.definition->key, &key, arena);
    const struct partition_span *hot = partition_map_find(space.map, logical);

    for (uint64_t n = 0; n < KEYS; n++) {
        key = key_of(&space, n, arena);
        logical = item_logical(&space.definition->key, &key, arena);
        is_neighbour[n] = n != HOT && partition_map_find(space.map, logical) == hot;
    }
}

static void read_one(struct bench *bench, struct random *random, struct arena *arena)
{
    CLEANUP(container_unref) struct container *container = opened(bench);
    struct item_space space = container_space(container, &clock_system, bench->gates);
    uint64_t n = random_below(random, 5) ? HOT : random_below(random, KEYS);
    struct counts *counts = n == HOT          ? &bench->hot
                            : is_neighbour[n] ? &bench->neighbours
                                              : &bench->others;
    struct partition_key key = key_of(&space, n, arena);
    struct document_value id = document_string(SLICE("1"));
    struct metered_call call = {0};
    struct item item;
    struct error err;

    if (metered_read(bench->meters, &space, &key, &id, &call, arena, &item, &err)) {
        atomic_fetch_add(&counts->accepted, 1);
        atomic_fetch_add(&counts->cru, call.charge_cru);
    } else if (err.code == ERROR_TOO_MANY_REQUESTS) {
        atomic_fetch_add(&counts->refused, 1);
    } else {
        bench_must(false, &err);
    }
}

static void rest_until(int64_t until_ms)
{
    struct mutex lock;
    struct condition never;

    mutex_init(&lock);
    condition_init(&never);
    WITH_LOCK (&lock)
        while (condition_wait_until(&never, &lock, until_ms))
            ;
    condition_done(&never);
    mutex_done(&lock);
}

/* What time has passed for, whether or not there was time for it: a busy machine only makes it come
 * in lumps. */
static void client_main(void *context)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct bench *bench = context;
    int64_t begun_ms = clock_monotonic_ms(), sent = 0;
    struct random random;

    random_seed(&random, 1);
    while (!atomic_load(&bench->stopping)) {
        int64_t now_ms = clock_monotonic_ms();

        for (; sent < (now_ms - begun_ms) * PER_SECOND / 1000; sent++) {
            read_one(bench, &random, arena);
            arena_reset(arena);
        }
        rest_until(now_ms + 1);
    }
}

/* --- Figures --------------------------------------------------------------------------------- */

struct figures {
    double hot_ru, hot_refused; /* per second; percent */
    double neighbours_ru, neighbours_refused;
};

static double percent(long long part, long long rest)
{
    return part + rest ? 100.0 * (double)part / (double)(part + rest) : 0;
}

static struct figures measure(struct bench *bench, int seconds)
{
    struct counts *all[] = {&bench->hot, &bench->neighbours};
    long long before[2][3];
    double ru[2], refused[2];
    int64_t begun_ms = clock_monotonic_ms(), took_ms;

    for (int i = 0; i < 2; i++) {
        before[i][0] = atomic_load(&all[i]->accepted);
        before[i][1] = atomic_load(&all[i]->refused);
        before[i][2] = atomic_load(&all[i]->cru);
    }
    rest_until(begun_ms + seconds * 1000);
    took_ms = clock_monotonic_ms() - begun_ms;
    for (int i = 0; i < 2; i++) {
        ru[i] = (double)(atomic_load(&all[i]->cru) - before[i][2]) / 100 * 1000 / (double)took_ms;
        refused[i] = percent(atomic_load(&all[i]->refused) - before[i][1],
                             atomic_load(&all[i]->accepted) - before[i][0]);
    }
    return (struct figures){ru[0], refused[0], ru[1], refused[1]};
}

static void figures_print(const char *when, const struct figures *figures)
{
    printf("  %-7s hot key %.0f RU/s, %.0f %% refused; its neighbours %.0f RU/s, %.1f %% refused\n",
           when, figures->hot_ru, figures->hot_refused, figures->neighbours_ru,
           figures->neighbours_refused);
}

/* Seconds until the report names it. */
static double report_wait(struct bench *bench)
{
    int64_t begun_ms = clock_monotonic_ms();

    for (;;) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct heat_report *reports;

        if (heat_reports(bench->heat, SLICE_NONE, 0, arena, &reports) == 1)
            return (double)(clock_monotonic_ms() - begun_ms) / 1000;
        if (clock_monotonic_ms() - begun_ms > 120000) {
            fprintf(stderr, "hot_key_bench: nothing was reported\n");
            exit(1);
        }
        rest_until(clock_monotonic_ms() + 50);
    }
}

static void isolate(struct bench *bench)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container *container = opened(bench);
    struct item_space space = container_space(container, &clock_system, bench->gates);
    struct partition_key key = key_of(&space, HOT, arena);
    struct error err;
    bool moving = true;

    bench_must(migrator_isolate(bench->migrator, container, &key, 0, &err), &err);
    container_unref(container);
    while (moving) {
        container = opened(bench);
        moving = container_migration(container) != NULL;
        container_unref(container);
        rest_until(clock_monotonic_ms() + 5);
    }
}

int main(void)
{
    const char *given = getenv("HOT_KEY_BENCH_S");
    int seconds = given ? (int)strtol(given, NULL, 10) : 10;
    struct bench bench = {0};
    struct figures before, after;
    double named;

    open_all(&bench);
    fill(&bench);
    neighbours_find(&bench);
    thread_start(&bench.client, "client", client_main, &bench);
    named = report_wait(&bench);
    before = measure(&bench, seconds);
    isolate(&bench);
    rest_until(clock_monotonic_ms() + SETTLE_MS);
    after = measure(&bench, seconds);
    atomic_store(&bench.stopping, true);
    thread_join(&bench.client);
    figures_print("before", &before);
    figures_print("after", &after);
    rounds_ratio("seconds until a hot key is reported, less is better", named, 60, "a minute");
    rounds_ratio("RU/s of a hot key in a partition of its own", after.hot_ru, before.hot_ru,
                 "against before");
    rounds_ratio("RU/s of a hot key in a partition of its own", after.hot_ru, RU_MAX,
                 "against what one partition may give");
    rounds_ratio("RU/s of its neighbours", after.neighbours_ru, before.neighbours_ru,
                 "against before");
    rounds_ratio("percent of its neighbours' requests refused, less is better",
                 after.neighbours_refused, before.neighbours_refused, "against before");
    close_all(&bench);
    return 0;
}
