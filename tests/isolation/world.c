/* Nodes are behind guards as in the server. Their keeper is a thread of the test's own, so that a
 * store is never closed while the test is about to spoil it: both hold nodes_lock.
 *
 * A crash: first nobody new is let in, then the power is cut, so that every operation and the
 * migrator fail in the middle of what they do; when all clients have their errors, everything is
 * thrown away. Clients at a fence would wait for a map that nobody will publish: they look out for
 * crashes (map_renew). */
#include "isolation/world.h"

#include "catalogue/agreements.h"
#include "catalogue/container_space.h"
#include "catalogue/migration.h"
#include "catalogue/node.h"
#include "engine/guard.h"
#include "isolation/recording.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LOOK_US = 500,
    DISTURBED_LOOKS_MAX = 40,
    FAULT_LOOKS_MAX = 60,
    FENCE_LOOK_US = 50,
    FENCE_LOOKS_MAX = 2000
};

/* --- Nodes ----------------------------------------------------------------------------------- */

/* For guards: under nodes_lock, or at the start. */
static bool node_open(void *context, struct slice url UNUSED,
                      const struct engine_options *options UNUSED, struct engine **ret_engine,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world_node *node = context;
    struct world *world = node->world;
    bool is_server = node->number == 1 && world->postgres;
    struct engine *store;

    node->engine = NULL; /* the one before is closed */
    if (world->dark || (world->away && node->number == 1 && !is_server))
        return error_set(err, ERROR_STORE_UNAVAILABLE, "the store is away");
    if (node->memory) {
        *ret_engine = node->engine = fault_engine_around(node->memory);
        return true;
    }
    if (!engine_open(
            is_server ? slice_of_text(world->postgresql)
                      : arena_printf(arena, "rocksdb:%s/node%u", world->scratch.path, node->number),
            &(struct engine_options){.connect_ms_max = 2000, .failover_ms = 5000}, &store, err))
        return false;
    *ret_engine = node->engine = fault_engine_new(store);
    return true;
}

static bool node_rejoin(void *context, struct error *err)
{
    const struct world_node *node = context;

    return catalogue_node_rejoin(node->world->catalogue, node->number, err);
}

static const char *node_name(uint32_t number)
{
    return number ? "b" : "a";
}

static void node_start(struct world *world, uint32_t number)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);
    struct world_node *node = &world->nodes[number];
    struct error err;

    node->engine = NULL;
    node->guard = engine_guard_new(&(struct engine_guard_options){
        .name = node_name(number),
        .url = SLICE("node:"), /* so that it can be opened again */
        .probe_ms = 1,
        .backoff_ms_max = 20,
        .open = node_open,
        .open_context = node,
    });
    if (engine_guard_open(node->guard, &err))
        return;
    if (!world->away || number == 0)
        fail_msg("node %s cannot be opened: %s", node_name(number), err.message);
    world->starts_without_node++;
    assert_ok(catalogue_nodes_peek(world->nodes[0].guard, table, &err), &err);
    engine_guard_expect(node->guard, node_table_find(table, SLICE("b"))->id);
}

static void keeper_main(void *context)
{
    struct world *world = context;

    while (!atomic_load(&world->stopping)) {
        for (size_t i = 0; i < WORLD_NODES; i++)
            WITH_LOCK (&world->nodes_lock)
                engine_guard_tend(world->nodes[i].guard);
        usleep(LOOK_US);
    }
}

/* Under nodes_lock, so that it is not just being brought back. */
static bool node_is_sound(const struct world_node *node)
{
    struct engine_statistics statistics;
    struct error err;

    return engine_serves(node->guard, &err) && engine_statistics(node->engine, &statistics, &err) &&
           !statistics.poisoned;
}

static uint64_t node_downs(const struct world_node *node)
{
    struct engine_guard_status status;

    assert_true(engine_guard_status(node->guard, &status));
    return status.downs;
}

/* Whatever was unknown by now is settled. */
static void moment_note(struct world *world)
{
    WITH_LOCK (&world->gate_lock) {
        if (world->moment_count == world->moment_capacity) {
            world->moment_capacity = world->moment_capacity ? 2 * world->moment_capacity : 64;
            world->moments = memory_realloc(
                world->moments, memory_array_size(world->moment_capacity, sizeof(uint64_t)));
        }
        world->moments[world->moment_count++] = clock_monotonic_ns();
    }
}

/* --- Starting and stopping ------------------------------------------------------------------- */

static void start(struct world *world)
{
    struct error err;

    world->cluster = cluster_new(NULL);
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        node_start(world, i);
        assert_ok(cluster_add(world->cluster, node_name(i), world->nodes[i].guard, &err), &err);
    }
    assert_ok(catalogue_open(&(struct catalogue_options){.cluster = world->cluster},
                             &world->catalogue, &err),
              &err);
    for (size_t i = 0; i < WORLD_NODES; i++)
        engine_guard_keep(world->nodes[i].guard,
                          &(struct engine_guard_hooks){node_rejoin, &world->nodes[i]}, true);
    world->migrator = migrator_new(&(struct migrator_options){
        .catalogue = world->catalogue, .chunk_bytes = 1000, .pause_ms = 5, .splits_off = true});
    atomic_store(&world->stopping, false);
    thread_start(&world->keeper, "keeper", keeper_main, world);
}

static void stop(struct world *world)
{
    struct migrator_statistics statistics = migrator_statistics(world->migrator);

    for (size_t i = 0; i < MIGRATION_KINDS; i++)
        world->migrations[i] += statistics.done[i];
    world->cancelled += statistics.cancelled;
    atomic_store(&world->stopping, true);
    thread_join(&world->keeper);
    for (size_t i = 0; i < WORLD_NODES; i++)
        engine_guard_leave(world->nodes[i].guard);
    migrator_free(TAKE(world->migrator));
    catalogue_close(TAKE(world->catalogue));
    cluster_free(TAKE(world->cluster));
    for (size_t i = 0; i < WORLD_NODES; i++) {
        engine_close(TAKE(world->nodes[i].guard));
        world->nodes[i].engine = NULL;
    }
}

static void container_make(struct world *world, const char *definition, uint64_t ru)
{
    struct offer_request request = {.given = ru > 0, .ru = ru};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(account_unref) struct account *account = NULL;
    CLEANUP(database_unref) struct database *database = NULL;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    assert_ok(catalogue_account_create(world->catalogue, SLICE("a"), document_of(arena, "{}"),
                                       &account, &err),
              &err);
    assert_ok(
        catalogue_database_create(world->catalogue, SLICE("a"), SLICE("d"), NULL, &database, &err),
        &err);
    assert_ok(catalogue_container_create(world->catalogue, SLICE("a"), SLICE("d"),
                                         document_of(arena, definition), ru ? &request : NULL,
                                         &container, &err),
              &err);
}

void world_init(struct world *world, enum world_stores stores, const char *definition, uint64_t ru)
{
    struct error err;

    *world = (struct world){.stores = stores, .gates = item_gates_new(), .clock = clock_system};
    scratch_init(&world->scratch);
    mutex_init(&world->nodes_lock);
    mutex_init(&world->gate_lock);
    condition_init(&world->gate_changed);
    if (stores == WORLD_ROCKSDB_POSTGRESQL) {
        world->postgres = postgres_start(false);
        snprintf(world->postgresql, sizeof world->postgresql, "%s",
                 postgres_fresh_url(world->postgres));
    }
    if (stores == WORLD_ROCKSDB_REPLICATED) {
        world->postgres = postgres_start(false);
        (void)postgres_fresh_url(world->postgres);
        world->standby = postgres_start_standby(world->postgres, "s");
        postgres_synchronous(world->postgres, "s");
        snprintf(world->postgresql, sizeof world->postgresql, "%s",
                 postgres_url_of((struct postgres *const[]){world->postgres, world->standby}, 2));
    }
    for (uint32_t i = 0; i < WORLD_NODES; i++) {
        world->nodes[i].world = world;
        world->nodes[i].number = i;
        if (stores == WORLD_MEMORY)
            assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0},
                                  &world->nodes[i].memory, &err),
                      &err);
    }
    start(world);
    container_make(world, definition, ru);
}

void world_done(struct world *world)
{
    stop(world);
    for (size_t i = 0; i < WORLD_NODES; i++)
        engine_close(world->nodes[i].memory);
    item_gates_free(world->gates);
    memory_free(world->moments);
    postgres_free(world->standby);
    postgres_free(world->postgres);
    condition_done(&world->gate_changed);
    mutex_done(&world->gate_lock);
    mutex_done(&world->nodes_lock);
    scratch_done(&world->scratch);
}

/* --- Clients --------------------------------------------------------------------------------- */

struct container *world_container(struct world *world)
{
    struct container *container;
    struct error err;

    if (!catalogue_container_open(world->catalogue, SLICE("a"), SLICE("d"), SLICE("c"), &container,
                                  &err))
        abort(); /* nobody drops it */
    return container;
}

/* What a space does to come to the next map, except that it does not wait through a crash. */
static bool map_renew(struct item_space *space, struct error *err)
{
    struct world *world = CONTAINER_OF(space->clock, struct world, clock);

    for (;;) {
        CLEANUP(container_unref) struct container *now = world_container(world);
        const struct migration *migration = container_migration(now);

        if (partition_map_version(container_map(now)) > partition_map_version(space->map))
            break;
        if (atomic_load(&world->crashing) || !migration ||
            migration_state(migration) != MIGRATION_MOVING)
            return error_set(err, ERROR_FENCED, "there is no next map");
        usleep(LOOK_US);
    }
    if (!container_space(space->nodes, space->clock, space->gates).renew(space, err))
        return false;
    space->renew = map_renew;
    return true;
}

struct item_space world_enter(void *context, struct note *note, bool plain, void **ret_visit)
{
    struct world *world = context;
    struct container *container;
    struct item_space space;

    WITH_LOCK (&world->gate_lock) {
        while (atomic_load(&world->crashing))
            condition_wait(&world->gate_changed, &world->gate_lock);
        world->inside++;
    }
    note_begin(note, plain);
    *ret_visit = container = world_container(world);
    space = container_space(container, &world->clock, world->gates);
    if (!world->calm)
        space.renew = map_renew;
    return space;
}

void world_leave(void *context, void *visit)
{
    struct world *world = context;

    container_unref(visit);
    WITH_LOCK (&world->gate_lock)
        if (--world->inside == 0)
            condition_broadcast(&world->gate_changed);
}

struct agreements *world_agreements(void *context)
{
    struct world *world = context;

    return catalogue_agreements(world->catalogue);
}

static size_t moments(struct world *world)
{
    size_t count = 0;

    WITH_LOCK (&world->gate_lock)
        count = world->moment_count;
    return count;
}

/* Others go on meanwhile; but who asks again and again what is not there says nothing new, and who
 * does not know an outcome would soon not know many. */
void world_disturbed(void *context)
{
    struct world *world = context;
    size_t before = moments(world);

    for (int i = 0; i < DISTURBED_LOOKS_MAX && moments(world) == before; i++)
        usleep(LOOK_US);
}

/* --- Disturbances ---------------------------------------------------------------------------- */

uint64_t world_migrations(struct world *world, enum migration_kind kind)
{
    return world->migrations[kind] + migrator_statistics(world->migrator).done[kind];
}

static void write_spoil(struct world *world, struct random *random, size_t node)
{
    WITH_LOCK (&world->nodes_lock) {
        if (world->nodes[node].engine)
            fault_engine_fail_nth(world->nodes[node].engine, FAULT_WRITES,
                                  1 + (unsigned)random_below(random, 4), ERROR_STORE_IO,
                                  random_below(random, 2) ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);
    }
}

static bool is_fenced(struct world *world)
{
    CLEANUP(container_unref) struct container *container = world_container(world);
    struct migrator_progress progress;

    return migrator_progress(world->migrator, container, &progress) &&
           progress.phase == MIGRATOR_FENCED;
}

/* Behind a fence everything is at stake, and chance comes there too seldom. */
static void fence_wait(struct world *world)
{
    for (int i = 0; i < FENCE_LOOKS_MAX && !is_fenced(world); i++) {
        CLEANUP(container_unref) struct container *container = world_container(world);

        if (!container_migration(container))
            return;
        usleep(FENCE_LOOK_US);
    }
}

void world_crash(struct world *world, struct random *random)
{
    if (random_below(random, 3))
        write_spoil(world, random, random_below(random, WORLD_NODES));
    if (random_below(random, 2))
        fence_wait(world);
    WITH_LOCK (&world->gate_lock)
        atomic_store(&world->crashing, true);
    world->crashes++;
    world->crashes_behind_fence += is_fenced(world);
    WITH_LOCK (&world->nodes_lock) {
        world->dark = true;
        for (size_t i = 0; i < WORLD_NODES; i++)
            if (engine_serves(world->nodes[i].guard, &(struct error){0}))
                fault_engine_cut_power(world->nodes[i].engine, FAULT_NOT_WRITTEN);
    }
    WITH_LOCK (&world->gate_lock)
        while (world->inside)
            condition_wait(&world->gate_changed, &world->gate_lock);
    stop(world);
    world->dark = false;
    start(world);
    moment_note(world);
    WITH_LOCK (&world->gate_lock) {
        atomic_store(&world->crashing, false);
        condition_broadcast(&world->gate_changed);
    }
}

static void wait_sound(struct world *world)
{
    bool sound = false;

    while (!sound) {
        usleep(LOOK_US);
        WITH_LOCK (&world->nodes_lock)
            sound = node_is_sound(&world->nodes[0]) && node_is_sound(&world->nodes[1]) &&
                    !agreements_waiting(catalogue_agreements(world->catalogue));
    }
    moment_note(world);
}

/* The primary is killed, as a process or as after a crash of its own, and the standby promoted. */
static void take_over(struct world *world)
{
    struct postgres *before = world->postgres;

    postgres_stop(before, world->failures % 2 ? POSTGRES_STOP_KILL : POSTGRES_STOP_IMMEDIATE);
    postgres_promote(world->standby);
    world->postgres = world->standby;
    world->standby = before;
}

/* The old primary follows the new one from now on, whose commits wait for it. */
static void follow(struct world *world)
{
    char name[16];

    snprintf(name, sizeof name, "s%u", world->failures);
    postgres_restart_standby(world->standby, world->postgres, name);
    postgres_synchronous(world->postgres, name);
}

void world_fail(struct world *world)
{
    world->failures++;
    WITH_LOCK (&world->nodes_lock) {
        world->away = true;
        if (!world->postgres && world->nodes[1].engine)
            fault_engine_unplug(world->nodes[1].engine, true);
    }
    if (world->standby)
        take_over(world);
    else if (world->postgres)
        postgres_stop(world->postgres, POSTGRES_STOP_IMMEDIATE);
}

void world_return(struct world *world)
{
    if (world->standby)
        follow(world);
    else if (world->postgres)
        postgres_restart(world->postgres);
    WITH_LOCK (&world->nodes_lock) {
        world->away = false;
        if (!world->postgres && world->nodes[1].engine)
            fault_engine_unplug(world->nodes[1].engine, false);
    }
    wait_sound(world);
}

void world_fault(struct world *world, struct random *random)
{
    struct world_node *node = &world->nodes[random_below(random, WORLD_NODES)];
    uint64_t before = node_downs(node);
    bool met = false;

    write_spoil(world, random, node->number);
    for (int i = 0; i < FAULT_LOOKS_MAX && !met; i++) {
        usleep(LOOK_US);
        WITH_LOCK (&world->nodes_lock)
            met = node_downs(node) > before || !node_is_sound(node);
    }
    WITH_LOCK (&world->nodes_lock) /* if nobody wrote */
        if (node->engine)
            fault_engine_fail_nth(node->engine, FAULT_WRITES, 0, ERROR_NONE, FAULT_NOT_WRITTEN);
    wait_sound(world);
    world->faults += met;
}

void world_verify(struct world *world)
{
    CLEANUP(container_unref) struct container *container = world_container(world);
    struct error err;

    while (container_migration(container)) {
        container_unref(TAKE(container));
        usleep(LOOK_US);
        container = world_container(world);
    }
    assert_ok(agreements_pause(catalogue_agreements(world->catalogue), &err), &err);
    agreements_resume(catalogue_agreements(world->catalogue)); /* none is open */
    (void)verify_container(container);
    verify_no_others(world->cluster, &container, 1);
}
