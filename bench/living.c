#include "living.h"

#include "base/thread.h"
#include "document/bson.h"
#include "document/json.h"
#include "space.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* As many fillers as make a group of the committer some hundred kilobytes, so that filling waits
 * for few syncs. Settled: less than a tenth of a core was used in a while. */
enum { FILLERS = 64, PER_LOGICAL = 10, SETTLE_LOOK_MS = 1000, SETTLE_LOOKS_MAX = 120 };

/* --- Making it ------------------------------------------------------------------------------- */

static void nodes_open(struct living *living, const struct living_options *options)
{
    static const char *const names[LIVING_NODES_MAX] = {"a", "b", "c", "d"};
    const struct engine_options engine_options = {.write_buffer_bytes =
                                                      options->write_buffer_bytes};
    struct error err;

    assert(options->url_count <= LIVING_NODES_MAX);
    living->cluster = cluster_new(NULL);
    living->engine_count = options->url_count;
    for (size_t i = 0; i < options->url_count; i++) {
        bench_must(engine_open(slice_of_text(options->urls[i]), &engine_options,
                               &living->engines[i], &err),
                   &err);
        bench_must(cluster_add(living->cluster, names[i], living->engines[i], &err), &err);
    }
}

static void definition_append(struct buf *body, const struct living_options *options)
{
    CLEANUP(buf_done) struct buf policy;
    struct document_value object;
    size_t document, key, paths;
    struct error err;

    buf_init(&policy, BUF_DEFAULT_MAX);
    document = document_begin(body);
    document_append_string(body, SLICE("id"), SLICE("c"));
    key = document_append_object_begin(body, SLICE("partitionKey"));
    paths = document_append_array_begin(body, SLICE("paths"));
    document_append_string(body, SLICE("0"),
                           slice_of_text(options->key ? options->key : "/tenant"));
    document_end(body, paths);
    document_append_int32(body, SLICE("version"), 2);
    document_end(body, key);
    if (options->policy) {
        bench_must(document_json_read(slice_of_text(options->policy), NULL, &policy, &err), &err);
        object = document_object(buf_slice(&policy));
        document_append(body, SLICE("indexingPolicy"), &object);
    }
    document_end(body, document);
}

static void container_make(struct living *living, const struct living_options *options)
{
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(buf_done) struct buf body;
    struct offer_request request = {.given = true, .ru = options->ru};
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    definition_append(&body, options);
    bench_must(catalogue_account_create(living->catalogue, SLICE("a"), SLICE("\5\0\0\0\0"),
                                        &account, &err),
               &err);
    bench_must(
        catalogue_database_create(living->catalogue, SLICE("a"), SLICE("d"), NULL, &database, &err),
        &err);
    bench_must(catalogue_container_create(living->catalogue, SLICE("a"), SLICE("d"),
                                          buf_slice(&body), &request, &container, &err),
               &err);
}

void living_open(struct living *living, const struct living_options *options)
{
    struct error err;

    *living = (struct living){.name = options->name, .gates = item_gates_new()};
    nodes_open(living, options);
    bench_must(catalogue_open(&(struct catalogue_options){.cluster = living->cluster,
                                                          .limits = options->limits},
                              &living->catalogue, &err),
               &err);
    container_make(living, options);
}

void living_migrate(struct living *living, const struct migrator_options *options)
{
    struct migrator_options whole = *options;

    whole.catalogue = living->catalogue;
    living->migrator = migrator_new(&whole);
}

void living_close(struct living *living)
{
    migrator_free(TAKE(living->migrator));
    catalogue_close(living->catalogue);
    cluster_free(living->cluster);
    for (size_t i = 0; i < living->engine_count; i++)
        engine_close(living->engines[i]);
    item_gates_free(living->gates);
}

struct container *living_container(struct living *living)
{
    struct container *container;
    struct error err;

    bench_must(catalogue_container_open(living->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                        &container, &err),
               &err);
    return container;
}

static bool is_moving(struct living *living)
{
    CLEANUP(container_unref) struct container *container = living_container(living);

    return container_migration(container) != NULL;
}

void living_wait(struct living *living)
{
    while (is_moving(living))
        living_rest_until(clock_monotonic_ms() + 1);
}

/* --- Filling --------------------------------------------------------------------------------- */

struct filler {
    struct living *living;
    struct thread thread;
    uint64_t from, to;
};

static void logical_fill(const struct item_space *space, uint64_t n, struct arena *arena)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct slice document = bench_item_document(n, 0, arena);
    struct partition_key key = partition_key_extract(&space->definition->key, document);
    struct slice logical = item_logical(&space->definition->key, &key, arena);
    struct item_scope scope = item_space_scope(space, logical);
    struct error err;

    bench_must(transaction_begin(&scope, logical, arena, &transaction, &err), &err);
    for (uint64_t i = n; i < n + PER_LOGICAL; i++) {
        struct document_value id = bench_item_id(i, arena);

        bench_must(transaction_write(transaction, &id, TRANSACTION_UPSERT,
                                     bench_item_document(i, 0, arena), NULL, &err),
                   &err);
    }
    bench_must(transaction_commit(transaction, &err), &err);
}

static void filler_main(void *context)
{
    struct filler *filler = context;
    CLEANUP(container_unref) struct container *container = living_container(filler->living);
    struct item_space space = container_space(container, &clock_system, NULL);
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (uint64_t n = filler->from; n < filler->to; n += PER_LOGICAL) {
        logical_fill(&space, n, arena);
        arena_reset(arena);
    }
}

static int64_t process_cpu_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* What nodes do behind the scenes shows in the time they use, whatever keeps them. */
static void settle(void)
{
    for (int i = 0; i < SETTLE_LOOKS_MAX; i++) {
        int64_t before_ms = process_cpu_ms();

        living_rest_until(clock_monotonic_ms() + SETTLE_LOOK_MS);
        if (process_cpu_ms() - before_ms < SETTLE_LOOK_MS / 10)
            return;
    }
}

void living_fill(struct living *living, uint64_t items)
{
    uint64_t each = items / FILLERS / PER_LOGICAL * PER_LOGICAL;
    int64_t begun_ms = clock_monotonic_ms(), filled_ms, settled_ms;
    struct filler fillers[FILLERS];

    for (uint64_t i = 0; i < FILLERS; i++) {
        fillers[i] = (struct filler){.living = living, .from = i * each, .to = (i + 1) * each};
        thread_start(&fillers[i].thread, "fill", filler_main, &fillers[i]);
    }
    for (size_t i = 0; i < FILLERS; i++)
        thread_join(&fillers[i].thread);
    living->items = each * FILLERS;
    filled_ms = clock_monotonic_ms();
    settle();
    settled_ms = clock_monotonic_ms();
    printf("  filled with %llu items of 1 KB in %.0f s, settled in %.0f s, %.0f s of CPU\n",
           (unsigned long long)living->items, (double)(filled_ms - begun_ms) / 1000,
           (double)(settled_ms - filled_ms) / 1000, (double)process_cpu_ms() / 1000);
    fflush(stdout);
}

/* --- Operations ------------------------------------------------------------------------------ */

void living_operate(struct living *living, struct random *random, struct arena *arena)
{
    CLEANUP(container_unref) struct container *container = living_container(living);
    struct item_space space = container_space(container, &clock_system, living->gates);
    uint64_t n = random_below(random, living->items);
    struct slice document = bench_item_document(n, random_below(random, 1000000), arena);
    struct item_operation op = {.space = &space,
                                .arena = arena,
                                .verb = random_below(random, 2) ? ITEM_READ : ITEM_REPLACE,
                                .key = partition_key_extract(&space.definition->key, document),
                                .id = bench_item_id(n, arena),
                                .document = document};
    struct error err;
    bool done = item_operation_run(&op, &err);

    if (!done && err.code == ERROR_REKEYED) { /* as a front does: read it again, and once more */
        container_unref(container);
        container = living_container(living);
        space = container_space(container, &clock_system, living->gates);
        op.key = partition_key_extract(&space.definition->key, document);
        done = item_operation_run(&op, &err);
    }
    if (!done) {
        atomic_fetch_add(&living->failed, 1);
        fprintf(stderr, "%s: %s\n", living->name, err.message);
    }
}

uint64_t living_option(const char *name, uint64_t preset)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : preset;
}

void living_rest_until(int64_t until_ms)
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
