/* One key out of 10,000 gets 80 % of the load: how soon the report names it, and what giving it a
 * partition of its own changes for it and for its neighbours.
 *
 * Four partitions of 1,000 RU/s. 4,000 point reads of 1 RU a second come evenly in time, whatever
 * becomes of them: 3,200 for the hot key, the others for keys drawn at random. Refused ones do not
 * come again. HOT_KEY_BENCH_S is how long each side is measured (10 s). In memory: nothing here
 * waits for a disk. */
#include "base/random.h"
#include "base/thread.h"
#include "document/bson.h"
#include "heat/heat.h"
#include "item/operation.h"
#include "living.h"
#include "load/offer_meters.h"
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
    struct living living;
    struct meters *meters;
    struct heat *heat;
    struct thread client;
    struct counts hot, neighbours, others;
    atomic_bool stopping;
};

/* --- Making it ------------------------------------------------------------------------------- */

static void on_published(struct container *container, void *context)
{
    struct bench *bench = context;
    struct error err;

    bench_must(load_meters_apply(bench->meters, container, 0, &err), &err);
    heat_published(bench->heat, container);
}

static void on_dropped(uint32_t partition, void *context)
{
    meters_remove(((struct bench *)context)->meters, partition);
}

static void open_all(struct bench *bench)
{
    static const char *const url = "memory:";
    struct definition_limits limits = CATALOGUE_LIMITS_DEFAULT;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    limits.partition_ru_max = RU_MAX;
    living_open(&bench->living, &(struct living_options){.name = "hot_key_bench",
                                                         .urls = &url,
                                                         .url_count = 1,
                                                         .key = "/pk",
                                                         .limits = &limits,
                                                         .ru = RU});
    bench->meters = meters_new(&clock_system);
    container = living_container(&bench->living);
    bench_must(load_meters_apply(bench->meters, container, 0, &err), &err);
    bench->heat = heat_new(&(struct heat_options){
        .catalogue = bench->living.catalogue, .meters = bench->meters, .pause_ms = 1000});
    living_migrate(&bench->living, &(struct migrator_options){.meters = bench->meters,
                                                              .pause_ms = 10,
                                                              .splits_off = true,
                                                              .published = on_published,
                                                              .dropped = on_dropped,
                                                              .context = bench});
}

static void close_all(struct bench *bench)
{
    heat_stop(bench->heat);
    migrator_free(TAKE(bench->living.migrator));
    heat_free(bench->heat);
    meters_free(bench->meters);
    living_close(&bench->living);
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
    CLEANUP(container_unref) struct container *container = living_container(&bench->living);
    struct item_space space = container_space(container, &clock_system, bench->living.gates);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value id = document_string(SLICE("1"));

    for (uint64_t n = 0; n < KEYS; n++) {
        struct slice document = document_make(n, arena);
        struct partition_key key = partition_key_extract(&space.definition->key, document);
        struct error err;

        bench_must(item_operation_run(&(struct item_operation){.space = &space,
                                                               .arena = arena,
                                                               .verb = ITEM_UPSERT,
                                                               .key = key,
                                                               .id = id,
                                                               .document = document},
                                      &err),
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
    CLEANUP(container_unref) struct container *container = living_container(&bench->living);
    struct item_space space = container_space(container, &clock_system, bench->living.gates);
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
    CLEANUP(container_unref) struct container *container = living_container(&bench->living);
    struct item_space space = container_space(container, &clock_system, bench->living.gates);
    uint64_t n = random_below(random, 5) ? HOT : random_below(random, KEYS);
    struct counts *counts = n == HOT          ? &bench->hot
                            : is_neighbour[n] ? &bench->neighbours
                                              : &bench->others;
    struct item_operation op = {.space = &space,
                                .meters = bench->meters,
                                .arena = arena,
                                .verb = ITEM_READ,
                                .key = key_of(&space, n, arena),
                                .id = document_string(SLICE("1"))};
    struct error err;

    if (item_operation_run(&op, &err)) {
        atomic_fetch_add(&counts->accepted, 1);
        atomic_fetch_add(&counts->cru, op.metered.charge_cru);
    } else if (err.code == ERROR_TOO_MANY_REQUESTS) {
        atomic_fetch_add(&counts->refused, 1);
    } else {
        bench_must(false, &err);
    }
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
        living_rest_until(now_ms + 1);
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
    living_rest_until(begun_ms + seconds * 1000);
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
        living_rest_until(clock_monotonic_ms() + 50);
    }
}

static void isolate(struct bench *bench)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(container_unref) struct container *container = living_container(&bench->living);
    struct item_space space = container_space(container, &clock_system, bench->living.gates);
    struct partition_key key = key_of(&space, HOT, arena);
    struct error err;

    bench_must(migrator_isolate(bench->living.migrator, container, &key, 0, &err), &err);
    container_unref(TAKE(container)); /* it holds the map that is to go */
    living_wait(&bench->living);
}

int main(void)
{
    int seconds = (int)living_option("HOT_KEY_BENCH_S", 10);
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
    living_rest_until(clock_monotonic_ms() + SETTLE_MS);
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
