/* A migration is begun whenever none is under way, of a kind that has not happened often enough; in
 * between come failures, faults and crashes, in any order. */
#include "isolation/disturber.h"

#include "isolation/clients.h"
#include "partition/strategy.h"
#include "support/documents.h"

#include <unistd.h>

static unsigned below(struct disturber *disturber, unsigned limit)
{
    return (unsigned)random_below(&disturber->random, limit);
}

/* --- Migrations ------------------------------------------------------------------------------ */

static struct partition_key key_any(struct disturber *disturber, struct arena *arena)
{
    struct document_value value =
        document_string(arena_printf(arena, "p%u", below(disturber, CLIENT_LOGICALS)));

    return (struct partition_key){.components = {value}, .count = 1};
}

static bool definition_directory_change(struct disturber *disturber,
                                        const struct container *container, struct arena *arena,
                                        struct error *err)
{
    struct definition_directory_change edit = {.value = key_any(disturber, arena).components[0],
                                               .shard = below(disturber, 8),
                                               .removes = below(disturber, 5) == 0};

    return migrator_reroute(disturber->world->migrator, container, &edit, 1, err);
}

/* From the directory to another strategy, and back. */
static bool rekey(struct disturber *disturber, const struct container *container,
                  struct arena *arena, struct error *err)
{
    bool has_directory = definition_fields(container_definition(container))->key.lookup != NULL;
    const char *strategy = !has_directory        ? "{\"strategy\":" DISTURBER_STRATEGY "}"
                           : below(disturber, 2) ? "{\"strategy\":\"range\"}"
                                                 : "{\"strategy\":\"hash\"}";
    struct definition_rekey wanted = {.strategy = document_of(arena, strategy)};

    return migrator_rekey(disturber->world->migrator, container, &wanted, false, err);
}

static bool migration_try(struct disturber *disturber, enum migration_kind kind,
                          const struct container *container, struct arena *arena, struct error *err)
{
    struct migrator *migrator = disturber->world->migrator;
    struct partition_key key = key_any(disturber, arena);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    size_t at = below(disturber, (unsigned)count);
    uint32_t ids[2] = {spans[at].id, spans[MIN(at + 1, count - 1)].id};

    switch (kind) {
    case MIGRATION_SPLIT:
        return migrator_split(migrator, container, ids[0], 2, NULL, err);
    case MIGRATION_MERGE:
        return migrator_merge(migrator, container, ids, 2, err);
    case MIGRATION_MOVE:
        return migrator_move(migrator, container, ids[0], 1 - spans[at].node, err);
    case MIGRATION_REROUTE:
        return definition_directory_change(disturber, container, arena, err);
    case MIGRATION_REKEY:
        return rekey(disturber, container, arena, err);
    default:
        return migrator_isolate(migrator, container, &key, 0, err);
    }
}

/* One that is spread is gathered, or any is spread. */
static bool spread_try(struct disturber *disturber, const struct container *container,
                       struct arena *arena, struct error *err)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct partition_key key = key_any(disturber, arena);
    size_t count;

    (void)partition_map_overlap(container_map(container),
                                partition_route_range(definition, &key, arena), &count);
    return count > 1 ? migrator_gather(disturber->world->migrator, container, &key, NULL, err)
                     : migrator_spread(disturber->world->migrator, container, &key,
                                       2 + below(disturber, 2), NULL, err);
}

/* One that is still wanted, as far as the container allows it now. */
static enum migration_kind kind_choose(struct disturber *disturber,
                                       const struct container *container)
{
    enum migration_kind kind = (enum migration_kind)below(disturber, DISTURBER_KINDS);
    size_t count;

    for (unsigned i = 0; i < DISTURBER_KINDS; i++) {
        if (world_migrations(disturber->world, kind) < disturber->plan.migrations)
            break;
        kind = (enum migration_kind)((kind + 1) % DISTURBER_KINDS);
    }
    (void)partition_map_spans(container_map(container), &count);
    if (kind == MIGRATION_REROUTE &&
        !definition_fields(container_definition(container))->key.lookup)
        return MIGRATION_REKEY;
    if (kind == MIGRATION_MERGE && count == 1)
        return MIGRATION_SPLIT;
    return count > 5 && kind != MIGRATION_REROUTE && kind != MIGRATION_REKEY ? MIGRATION_MERGE
                                                                             : kind;
}

/* Refusals are no matter: it cannot be cut, is alone already, a node is down. What was left unknown
 * goes on by itself or does not. */
static void migration_begin(struct disturber *disturber)
{
    CLEANUP(container_unref) struct container *container = world_container(disturber->world);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;

    if (disturber->plan.still)
        return;
    if (container_migration(container)) {
        if (below(disturber, 400) == 0)
            disturber->cancelled += migrator_cancel(disturber->world->migrator, container, &err);
        return;
    }
    disturber->begun +=
        disturber->plan.spreads
            ? spread_try(disturber, container, arena, &err)
            : migration_try(disturber, kind_choose(disturber, container), container, arena, &err);
}

static void migrations_go_on(struct disturber *disturber, unsigned looks)
{
    for (unsigned i = 0; i < looks; i++) {
        migration_begin(disturber);
        usleep(500);
    }
}

/* --- All of it ------------------------------------------------------------------------------- */

static bool is_complete(const struct disturber *disturber)
{
    struct world *world = disturber->world;

    for (unsigned i = 0; i < DISTURBER_KINDS; i++)
        if (world_migrations(world, (enum migration_kind)i) < disturber->plan.migrations)
            return false;
    if (world_migrations(world, MIGRATION_SPREAD) < disturber->plan.spreads ||
        world_migrations(world, MIGRATION_GATHER) < disturber->plan.spreads)
        return false;
    return world->failures >= disturber->plan.failures && world->faults >= disturber->plan.faults &&
           world->crashes >= disturber->plan.crashes;
}

/* The server may crash while the node is away. */
static void node_fails(struct disturber *disturber)
{
    world_fail(disturber->world);
    migrations_go_on(disturber, 5 + below(disturber, 15));
    if (below(disturber, 4) == 0) {
        world_crash(disturber->world, &disturber->random);
        migrations_go_on(disturber, 5);
    }
    world_return(disturber->world);
}

void disturber_run(struct disturber *disturber, struct world *world,
                   const struct disturber_plan *plan, uint64_t seed)
{
    *disturber = (struct disturber){.world = world, .plan = *plan};
    random_seed(&disturber->random, seed);
    while (!is_complete(disturber)) {
        migrations_go_on(disturber, 5 + below(disturber, 60));
        switch (below(disturber, 3)) {
        case 0:
            if (world->failures < plan->failures)
                node_fails(disturber);
            break;
        case 1:
            if (world->faults < plan->faults)
                world_fault(world, &disturber->random);
            break;
        default:
            if (world->crashes < plan->crashes)
                world_crash(world, &disturber->random);
        }
    }
    atomic_store(&world->is_over, true);
}
