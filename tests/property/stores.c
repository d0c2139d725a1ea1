#include "property/stores.h"

#include "support/check.h"
#include "support/fault_engine.h"

#include <stdlib.h>

static struct engine *memory_open(void *context UNUSED, size_t node UNUSED)
{
    struct engine *engine;
    struct error err;

    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    return fault_engine_new(engine);
}

static void memory_fail(void *context UNUSED, struct engine *engine, bool away)
{
    fault_engine_unplug(engine, away);
}

const struct moving_store stores_memory = {.open = memory_open, .faults = true};
const struct moving_store stores_memory_failing = {
    .open = memory_open, .faults = true, .takes_away = memory_fail};

/* --- Disks and servers ----------------------------------------------------------------------- */

static void stores_init(struct stores *stores, struct postgres *postgres)
{
    *stores = (struct stores){.postgres = postgres};
    scratch_init(&stores->scratch);
    if (postgres)
        snprintf(stores->url, sizeof stores->url, "%s", postgres_fresh_url(postgres));
}

void stores_done(struct stores *stores)
{
    scratch_done(&stores->scratch);
}

/* A directory that is away fails when it is opened, too. */
static bool store_open(void *context, size_t node, struct engine **ret_engine, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct stores *stores = context;
    struct slice url = arena_printf(arena, "rocksdb:%s/node%zu", stores->scratch.path, node);
    struct engine *engine;

    if (node == 1 && stores->postgres)
        url = slice_of_text(stores->url);
    else if (node == 1 && stores->away)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "the directory is away");
    if (!engine_open(url, &(struct engine_options){.connect_ms_max = stores->connect_ms_max},
                     &engine, err))
        return false;
    *ret_engine = fault_engine_new(engine);
    return true;
}

static struct engine *store_opened(void *context, size_t node)
{
    struct engine *engine = NULL;
    struct error err;

    assert_ok(store_open(context, node, &engine, &err), &err);
    return engine;
}

struct moving_store stores_on_disk(struct stores *stores, struct postgres *postgres)
{
    stores_init(stores, postgres);
    return (struct moving_store){
        .open = store_opened, .reopens = true, .faults = true, .context = stores};
}

static void store_fail(void *context, struct engine *engine, bool away)
{
    struct stores *stores = context;

    stores->away = away;
    if (stores->postgres && away)
        postgres_stop(stores->postgres, POSTGRES_STOP_IMMEDIATE);
    else if (stores->postgres)
        postgres_restart(stores->postgres);
    else if (engine)
        fault_engine_unplug(engine, away);
}

struct moving_store stores_failing(struct stores *stores, struct postgres *postgres)
{
    stores_init(stores, postgres);
    stores->connect_ms_max = 2000; /* a server that is away is not waited for */
    return (struct moving_store){.reopens = true,
                                 .faults = !postgres,
                                 .takes_away = store_fail,
                                 .reopen = store_open,
                                 .context = stores};
}

/* --- The environment ------------------------------------------------------------------------- */

uint64_t stores_number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t number;

    return text && slice_to_uint64(slice_of_text(text), &number) ? number : otherwise;
}
