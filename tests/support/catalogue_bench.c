#include "support/catalogue_bench.h"

#include "item/cursor.h"
#include "support/check.h"
#include "support/documents.h"

static void partition_gone(void *context, uint32_t partition UNUSED)
{
    struct bench *bench = context;

    atomic_fetch_add(&bench->gone, 1);
}

void bench_open(struct bench *bench)
{
    struct error err;

    if (bench->url.data)
        assert_ok(engine_open(bench->url, &(struct engine_options){.group = cursor_group},
                              &bench->engine, &err),
                  &err);
    bench->cluster = cluster_new(NULL);
    assert_ok(cluster_add(bench->cluster, "a", bench->engine, &err), &err);
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = bench->cluster,
                                                         .limits = &bench->limits,
                                                         .purge_by_hand = true,
                                                         .partition_gone = partition_gone,
                                                         .gone_context = bench},
                             &bench->catalogue, &err),
              &err);
}

void bench_close(struct bench *bench)
{
    catalogue_close(TAKE(bench->catalogue));
    cluster_free(TAKE(bench->cluster));
    if (bench->url.data)
        engine_close(TAKE(bench->engine));
}

void bench_reopen(struct bench *bench)
{
    bench_close(bench);
    bench_open(bench);
}

static struct bench *bench_new(void)
{
    struct bench *bench = MEMORY_NEW(struct bench);

    bench->arena = arena_new();
    bench->limits = CATALOGUE_LIMITS_DEFAULT;
    scratch_init(&bench->scratch);
    return bench;
}

int bench_setup_memory(void **state)
{
    struct bench *bench = bench_new();
    struct engine *inner;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){.group = cursor_group}, &inner,
                          &err),
              &err);
    bench->engine = fault_engine_new(inner);
    bench_open(bench);
    *state = bench;
    return 0;
}

int bench_setup_rocksdb(void **state)
{
    struct bench *bench = bench_new();

    bench->url = arena_printf(bench->arena, "rocksdb:%s/node", bench->scratch.path);
    bench_open(bench);
    *state = bench;
    return 0;
}

int bench_setup_postgresql(void **state)
{
    struct bench *bench = bench_new();

    bench->url = arena_copy(bench->arena, slice_of_text(postgres_fresh_url(*state)));
    bench_open(bench);
    *state = bench;
    return 0;
}

int bench_teardown(void **state)
{
    struct bench *bench = *state;

    bench_close(bench);
    engine_close(bench->engine);
    scratch_done(&bench->scratch);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

void bench_account(struct bench *bench, const char *id)
{
    CLEANUP(account_unref) struct account *account = NULL;
    struct error err;

    assert_ok(catalogue_account_create(bench->catalogue, slice_of_text(id),
                                       document_of(bench->arena, "{\"key\":\"secret\"}"), &account,
                                       &err),
              &err);
}

void bench_database(struct bench *bench, const char *account, const char *id, int64_t ru)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct offer_request request = {.given = ru > 0, .ru = ru};
    struct error err;

    assert_ok(catalogue_database_create(bench->catalogue, slice_of_text(account), slice_of_text(id),
                                        &request, &database, &err),
              &err);
}

void bench_container(struct bench *bench, const char *account, const char *database,
                     const char *json, int64_t ru)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer_request request = {.given = ru > 0, .ru = ru};
    struct error err;

    assert_ok(catalogue_container_create(bench->catalogue, slice_of_text(account),
                                         slice_of_text(database), document_of(bench->arena, json),
                                         &request, &container, &err),
              &err);
}
