/* A promotion in preparation is carried on by the migrator's rounds: a key that shares its physical
 * partition is isolated by a migration like any other, and when that is over the partition is
 * handed to the key's own container. Everything that must outlive the process is in the catalogue,
 * so a round needs to know nothing of the one before. */
#include "catalogue/container_names.h"
#include "catalogue/migration.h"
#include "catalogue/promotion.h"
#include "migration/migrator_private.h"

/* --- What others are told -------------------------------------------------------------------- */

static void handed(struct migrator *migrator, const struct container *container)
{
    CLEANUP(container_unref) struct container *now = NULL;
    struct error ignored;

    if (migrator->options.shared &&
        catalogue_container_reopen(migrator->catalogue, container, &now, &ignored))
        migrator->options.shared(now, migrator->options.context);
}

static void both_handed(struct migrator *migrator, const struct container *tied,
                        const struct promotion *promotion)
{
    CLEANUP(container_unref) struct container *other = NULL;
    struct error ignored;

    handed(migrator, tied);
    if (catalogue_promotion_other(migrator->catalogue, tied, promotion, &other, &ignored))
        handed(migrator, other);
    bell_ring(migrator->options.bell); /* views look at what their sources show now */
    migrator_wake(migrator);           /* to sweep what is left */
}

/* tied: either of its containers, which are of one database. */
static void change_log(const struct migrator *migrator, const char *event,
                       const struct container *tied, const struct promotion *promotion)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container_names names = container_names(migrator->catalogue, tied, arena);

    log_event(migrator->options.log, LOG_INFO, event, LOG_SLICE("account", names.account),
              LOG_SLICE("database", names.database), LOG_SLICE("container", promotion->origin_id),
              LOG_SLICE("own", promotion->own_id), LOG_SLICE("key", promotion->key));
}

/* --- Obstacles ------------------------------------------------------------------------------- */

static void obstacle_note(struct migrator *migrator, const struct promotion *promotion,
                          const char *message)
{
    WITH_LOCK (&migrator->lock) {
        migrator->obstacle_own = promotion->own;
        (void)snprintf(migrator->obstacle, sizeof migrator->obstacle, "%s", message);
    }
}

struct slice migrator_promotion_obstacle(struct migrator *migrator,
                                         const struct promotion *promotion, struct arena *arena)
{
    struct slice text = SLICE_NONE;

    WITH_LOCK (&migrator->lock)
        if (promotion->state == PROMOTION_PREPARING && migrator->obstacle_own == promotion->own)
            text = arena_copy(arena, slice_of_text(migrator->obstacle));
    return text;
}

/* --- On request ------------------------------------------------------------------------------ */

bool migrator_promote(struct migrator *migrator, const struct container *origin,
                      const struct container *own, const struct partition_key *key,
                      struct error *err)
{
    CLEANUP(promotion_unref) struct promotion *promotion = NULL;

    if (!catalogue_promotion_begin(migrator->catalogue, origin, own, key, &promotion, err))
        return false;
    obstacle_note(migrator, promotion, "");
    change_log(migrator, "promotion begun", origin, promotion);
    both_handed(migrator, origin, promotion);
    return true;
}

bool migrator_demote(struct migrator *migrator, const struct container *tied,
                     const struct promotion *promotion, struct error *err)
{
    if (!catalogue_promotion_back(migrator->catalogue, tied, promotion, err))
        return false;
    change_log(migrator, "promotion taken back", tied, promotion);
    both_handed(migrator, tied, promotion);
    return true;
}

bool migrator_promotion_end(struct migrator *migrator, const struct container *tied,
                            const struct promotion *promotion, struct error *err)
{
    if (!catalogue_promotion_end(migrator->catalogue, tied, promotion, err))
        return false;
    change_log(migrator, "grace period of a promotion ended", tied, promotion);
    both_handed(migrator, tied, promotion);
    return true;
}

/* Was it begun for this key? */
static bool isolates(const struct migration *migration, const struct promotion *promotion)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);

    if (migration_kind(migration) != MIGRATION_ISOLATE ||
        migration_state(migration) != MIGRATION_MOVING)
        return false;
    for (size_t i = 0; i < count; i++)
        if (slice_equal(targets[i].min, promotion->range.min) &&
            slice_equal(targets[i].max, promotion->range.max))
            return true;
    return false;
}

/* Behind the commit that forgets: nobody begins it again. */
static void isolation_cancel(struct migrator *migrator, const struct container *origin,
                             const struct promotion *promotion)
{
    CLEANUP(container_unref) struct container *now = NULL;
    struct error ignored;

    if (promotion->state == PROMOTION_PREPARING &&
        promotion->origin == container_info(origin)->number &&
        catalogue_container_reopen(migrator->catalogue, origin, &now, &ignored) &&
        container_migration(now) && isolates(container_migration(now), promotion))
        (void)!migrator_cancel(migrator, now, &ignored); /* published: the key stays isolated */
}

bool migrator_promotion_forget(struct migrator *migrator, const struct container *tied,
                               const struct promotion *promotion, struct error *err)
{
    CLEANUP(container_unref) struct container *other = NULL;
    struct error ignored;

    if (!catalogue_promotion_forget(migrator->catalogue, tied, promotion, err))
        return false;
    change_log(migrator, "promotion forgotten", tied, promotion);
    isolation_cancel(migrator, tied, promotion);
    if (catalogue_promotion_other(migrator->catalogue, tied, promotion, &other, &ignored))
        isolation_cancel(migrator, other, promotion);
    both_handed(migrator, tied, promotion);
    return true;
}

/* --- Rounds ---------------------------------------------------------------------------------- */

static bool isolate(struct migrator *migrator, const struct container *origin,
                    const struct promotion *promotion, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct partition_key key;

    return partition_key_parse(&definition_fields(container_definition(origin))->key,
                               promotion->key, PARTITION_KEY_ANY, arena, &key, err) &&
           migrator_isolate(migrator, origin, &key, 0, err);
}

static void promotion_step(struct migrator *migrator, const struct container *origin,
                           const struct promotion *promotion, bool *busy)
{
    struct error err;

    if (container_migration(origin))
        return;
    if (!catalogue_promotion_is_isolated(promotion, origin)) {
        if (isolate(migrator, origin, promotion, &err))
            *busy = true;
        else
            obstacle_note(migrator, promotion, err.message);
        return;
    }
    if (!catalogue_promotion_share(migrator->catalogue, origin, promotion, &err)) {
        obstacle_note(migrator, promotion, err.message);
        return;
    }
    obstacle_note(migrator, promotion, "");
    change_log(migrator, "key promoted", origin, promotion);
    both_handed(migrator, origin, promotion);
}

static void container_steps(struct migrator *migrator, const struct container *container,
                            bool *busy)
{
    const struct promotion_list *promotions = container_promotions(container);

    for (size_t i = 0; i < promotions->count; i++)
        if (promotions->list[i]->state == PROMOTION_PREPARING &&
            promotions->list[i]->origin == promotions->container)
            promotion_step(migrator, container, promotions->list[i], busy);
}

static bool is_promoting(const struct container *container)
{
    return container_promotions(container)->count > 0;
}

void migrator_promotions_step(struct migrator *migrator, bool *busy)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct container **containers = migrator_containers(migrator, is_promoting, arena, &count);

    for (size_t i = 0; i < count; i++) {
        container_steps(migrator, containers[i], busy);
        container_unref(containers[i]);
    }
    migrator->waiting |= count > 0;
    catalogue_promotions_sweep(migrator->catalogue, migrator->options.dropped,
                               migrator->options.context);
}
