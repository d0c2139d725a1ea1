/* A migration is a part of its container's record, so that one commit changes both the map and what
 * is left to be done, and dropping the container drops it too. */
#include "catalogue/migration.h"

#include "catalogue/catalogue_private.h"
#include "catalogue/placed.h"
#include "catalogue/resident.h"
#include "catalogue/spread.h"
#include "definition/rekey.h"
#include "partition/journal.h"
#include "partition/layout.h"

enum { RENEW_MS_MAX = 30000 };

/* --- The present state ----------------------------------------------------------------------- */

static struct container *present(struct catalogue_state *root, const struct container *container)
{
    return catalogue_find_container_number(root, container->account, container->database,
                                           container->state.info.number);
}

static bool gone(const struct container *container, struct error *err)
{
    return catalogue_not_found(err, false, "container", container->state.info.id);
}

bool catalogue_container_reopen(struct catalogue *catalogue, const struct container *container,
                                struct container **ret_container, struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct container *now = present(look.root, container);

    if (!now)
        return gone(container, err);
    *ret_container = container_ref(now);
    return true;
}

static bool is_later(const struct container *now, const struct container *before)
{
    return partition_map_version(now->map) > partition_map_version(before->map);
}

bool container_is_current(const struct container *container)
{
    CLEANUP(catalogue_look_end)
    struct catalogue_look look = catalogue_look_begin(container->catalogue);
    const struct container *now = present(look.root, container);

    return now && !is_later(now, container);
}

static bool is_moving(const struct container *container)
{
    return container->migration && migration_state(container->migration) == MIGRATION_MOVING;
}

/* Has it another map, or a definition that writes otherwise? */
static bool is_renewed(const struct container *now, const struct container *before)
{
    return is_later(now, before) || now->writers > before->writers;
}

/* Publishing signals behind its swap, and here the look comes first: nothing is missed. Whether a
 * definition is being replaced is asked before the look: asked behind it, one that was published in
 * between would be neither seen nor waited for. One that was given up leaves the container as it
 * was, and that is given back: the committers take its writers again. */
bool container_renew(const struct container *container, struct container **ret_container,
                     struct error *err)
{
    struct catalogue *catalogue = container->catalogue;
    int64_t deadline_ms = clock_monotonic_ms() + RENEW_MS_MAX;
    bool waited = true, was_redefining = false;

    WITH_LOCK (&catalogue->published_lock) {
        for (;;) {
            CLEANUP(container_unref) struct container *now = NULL;
            bool redefining = atomic_load(&catalogue->redefining);

            if (!catalogue_container_reopen(catalogue, container, &now, err))
                return false;
            if (is_renewed(now, container) || (was_redefining && !redefining && !is_moving(now))) {
                *ret_container = TAKE(now);
                return true;
            }
            if ((!is_moving(now) && !redefining) || !waited)
                return error_set(err, ERROR_FENCED,
                                 "a partition of container \"%.*s\" is held by somebody else",
                                 SLICE_ARG(container->state.info.id));
            was_redefining |= redefining;
            waited = condition_wait_until(&catalogue->published, &catalogue->published_lock,
                                          deadline_ms);
        }
    }
    return false;
}

/* --- Changes --------------------------------------------------------------------------------- */

/* A change of one container: the state it starts from, and a copy to be published. */
struct migration_change {
    struct catalogue_change change;
    struct container *before; /* borrowed from the change */
    struct container *after;  /* owned */
};

static void migration_change_end(struct migration_change *c)
{
    container_unref(c->after);
    catalogue_change_end(&c->change);
}
CLEANUP_VALUE_FN(struct migration_change, migration_change_end)

static bool migration_change_begin(struct catalogue *catalogue, const struct container *container,
                                   struct migration_change *c, struct error *err)
{
    c->before = c->after = NULL;
    if (!catalogue_change_begin(catalogue, &c->change, err))
        return false;
    c->before = present(c->change.root, container);
    if (!c->before)
        return gone(container, err);
    c->after = catalogue_state_container(catalogue_state_copy(&c->before->state));
    return true;
}

/* A reroute that leaves its sources where they are. */
static bool has_no_targets(const struct migration *migration)
{
    size_t targets;

    (void)migration_targets(migration, &targets);
    return targets == 0;
}

/* Takes both over. */
static void container_set(struct container *container, struct partition_map *map,
                          struct migration *migration)
{
    partition_map_unref(container->map);
    migration_unref(container->migration);
    container->map = map;
    container->migration = migration;
}

static bool migration_change_commit(struct migration_change *c, struct error *err)
{
    struct catalogue_record_address address = container_address(c->after);

    catalogue_change_put_record(&c->change, address,
                                catalogue_record_container_write(c->after, true, c->change.arena));
    if (!catalogue_change_commit(&c->change, err))
        return false;
    catalogue_change_publish(&c->change, address, &container_ref(c->after)->state);
    return true;
}

/* --- Fences ---------------------------------------------------------------------------------- */

static bool epoch_of(const struct cluster_node *node, uint32_t id, struct arena *arena,
                     uint64_t *ret_epoch, struct error *err)
{
    struct engine_partition *partitions;
    size_t count;

    if (!engine_partition_list(node->engine, arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (partitions[i].id == id) {
            *ret_epoch = partitions[i].epoch;
            return true;
        }
    return error_set(err, ERROR_PARTITION_UNKNOWN, "node \"%s\" has no partition %u", node->name,
                     id);
}

/* The map with the sources under the epochs they have by now; itself if they have not changed. */
static bool map_unfenced(struct catalogue *catalogue, const struct container *container,
                         struct arena *arena, struct partition_map **ret_map, struct error *err)
{
    CLEANUP(partition_map_unref) struct partition_map *now = container_map_now(container);
    size_t count, source_count;
    const struct partition_span *spans = partition_map_spans(now, &count);
    const struct migration_source *sources = migration_sources(container->migration, &source_count);
    struct partition_span *copies = ARENA_ARRAY(arena, struct partition_span, count);
    bool raised = false;

    memcpy(copies, spans, count * sizeof *copies);
    for (size_t i = 0; i < source_count; i++) {
        const struct cluster_node *node = cluster_find(catalogue->cluster, sources[i].node);
        size_t place = (size_t)(partition_map_find_id(now, sources[i].id) - spans);
        uint64_t epoch = 0;

        if (!epoch_of(node, sources[i].id, arena, &epoch, err))
            return false;
        if (epoch == copies[place].epoch)
            continue;
        copies[place].epoch = epoch;
        raised = true;
        if (!commit_partition_open(node->commit, sources[i].id, epoch, err))
            return false;
    }
    if (!raised) {
        *ret_map = partition_map_ref(container->map);
        return true;
    }
    return partition_map_next(now, copies, count, partition_map_version(container->map) + 1,
                              ret_map, err);
}

/* --- Beginning ------------------------------------------------------------------------------- */

/* Within what belongs to one routing key there is no bound: an entry is placed by bytes that begin
 * with its routing key, whatever follows. FF follows no routing key. Only the bounds that spread a
 * key are within one, and the mover looks at whole keys then. */
static bool bounds_check(const struct container *container, const struct migration_request *request,
                         struct error *err)
{
    const struct definition *definition =
        request->kind == MIGRATION_REKEY ? request->definition : container->definition;
    const struct partition_definition *key = &definition_fields(definition)->key;

    if (request->kind == MIGRATION_SPREAD)
        return true;
    for (size_t i = 0; request->bounds && i + 1 < request->target_count; i++) {
        struct slice rest = request->bounds[i];
        struct error ignored;

        if (partition_route_skip(key, &rest, &ignored) && rest.len && rest.data[0] != 0xFF)
            return error_set(err, ERROR_BAD_REQUEST, "a bound lies within a logical partition");
    }
    return true;
}

static bool busy(const struct container *container, struct error *err)
{
    return error_set(err, ERROR_BUSY, "another migration of container \"%.*s\" is under way: a %s",
                     SLICE_ARG(container->state.info.id),
                     migration_kind_name(migration_kind(container->migration)));
}

/* It found that there is something to carry, and another takes its place. */
static bool is_superseded(const struct container *container,
                          const struct migration_request *request)
{
    return is_moving(container) && has_no_targets(container->migration) &&
           request->definition == migration_definition(container->migration) &&
           request->target_count;
}

static bool request_check(const struct container *container,
                          const struct migration_request *request, struct error *err)
{
    size_t spans;

    (void)partition_map_spans(container->map, &spans);
    if (container->migration && !is_superseded(container, request))
        return busy(container, err);
    if (container_is_fixed(container) && request->target_count > 1 &&
        request->kind != MIGRATION_REKEY) /* which gives it a key */
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "container \"%.*s\" has no partition key and cannot be split",
                         SLICE_ARG(container->state.info.id));
    if (request->target_count > request->source_count &&
        spans - MIN(spans, request->source_count) + request->target_count >
            container->catalogue->limits.container_partitions_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "container \"%.*s\" has %zu physical partitions; the limit is %u",
                         SLICE_ARG(container->state.info.id), spans,
                         container->catalogue->limits.container_partitions_max);
    return catalogue_promotions_let_migrate(container, request, err) &&
           catalogue_placed_lets_migrate(container, request, err) &&
           catalogue_spread_lets_migrate(container, request, err) &&
           bounds_check(container, request, err);
}

/* Shares were made for every span of a map. */
static bool shares_fit(const struct container *now, const struct migration_request *request,
                       struct error *err)
{
    return !request->shares || request->map_version == partition_map_version(now->map) ||
           error_set(err, ERROR_BUSY, "container \"%.*s\" has changed meanwhile: try again",
                     SLICE_ARG(now->state.info.id));
}

/* Another definition was made from the one of the state it comes with: what was published since
 * must not be lost. */
static bool is_seen(const struct container *seen, const struct container *now, struct error *err)
{
    return !is_later(now, seen) ||
           error_set(err, ERROR_BUSY, "container \"%.*s\" has changed meanwhile: try again",
                     SLICE_ARG(now->state.info.id));
}

/* Behind the eras of all that is there. */
static bool era_next(const struct catalogue *catalogue, const struct partition_map *map,
                     const struct migration_request *request, uint64_t *ret_era, struct error *err)
{
    *ret_era = 0;
    for (size_t i = 0; request->definition && i < request->source_count; i++) {
        const struct partition_span *span = partition_map_find_id(map, request->sources[i]);
        const struct cluster_node *node =
            span ? cluster_find(catalogue->cluster, span->node) : NULL;
        uint64_t lsn;

        if (!node)
            return error_set(err, ERROR_PARTITION_UNKNOWN, "the container has no partition %u",
                             request->sources[i]);
        if (!commit_partition_lsn(node->commit, span->id, &lsn, err))
            return false;
        *ret_era = MAX(*ret_era, partition_lsn_era(lsn) + 1);
    }
    return true;
}

/* The map to plan on: the present one, or, of sources that were fenced already, with their epochs
 * as they are. */
static bool map_present(struct migration_change *c, struct partition_map **ret_map,
                        struct error *err)
{
    if (c->before->migration)
        return map_unfenced(c->change.catalogue, c->before, c->change.arena, ret_map, err);
    *ret_map = partition_map_ref(c->before->map);
    return true;
}

/* What is planned divides the shares of now, which another map than the present one has already. */
static struct partition_map *map_shared(const struct container *container,
                                        struct partition_map *map)
{
    return map == container->map ? container_map_now(container) : partition_map_ref(map);
}

/* head: whose ids the targets take. *ret_map: the one to plan on. Both are references. */
static bool plan(struct migration_change *c, const struct container *container,
                 const struct migration_request *request, struct catalogue_head *head,
                 struct partition_map **ret_map, struct migration **ret_migration,
                 struct error *err)
{
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    CLEANUP(partition_map_unref) struct partition_map *shared = NULL;
    CLEANUP(migration_unref) struct migration *migration = NULL;
    struct migration_request planned = *request;
    uint32_t first;

    if (!request_check(c->before, request, err) ||
        (request->kind == MIGRATION_COPY &&
         !catalogue_container_copy_check(&c->change, c->before, request->copy, err)) ||
        !shares_fit(c->before, request, err) ||
        (request->definition && !is_seen(container, c->before, err)) ||
        !map_present(c, &map, err) ||
        !era_next(c->change.catalogue, map, request, &planned.era, err) ||
        !catalogue_partition_ids_take(
            head, (uint32_t)MIN(MAX(request->target_count, (size_t)1), UINT32_MAX), &first, err) ||
        !migration_new(shared = map_shared(c->before, map), &planned, first, &migration, err) ||
        !catalogue_resident_lets_migrate(c->change.catalogue, c->before, migration, err))
        return false;
    *ret_migration = TAKE(migration);
    *ret_map = TAKE(map);
    return true;
}

static bool nodes_serve(const struct catalogue *catalogue, const struct migration *migration,
                        struct error *err)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);

    for (size_t i = 0; i < count; i++) {
        const struct cluster_node *node = cluster_find(catalogue->cluster, targets[i].node);

        if (!node)
            return error_set(err, ERROR_NOT_FOUND, "there is no node %u", targets[i].node);
        if (!engine_serves(node->engine, err))
            return false;
    }
    return true;
}

bool catalogue_migration_plan(struct catalogue *catalogue, const struct container *container,
                              const struct migration_request *request,
                              struct migration **ret_migration, struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;
    CLEANUP(migration_unref) struct migration *migration = NULL;
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    struct catalogue_head head;

    if (!migration_change_begin(catalogue, container, &c, err))
        return false;
    head = catalogue->head; /* no id is taken */
    if (!plan(&c, container, request, &head, &map, &migration, err) ||
        !nodes_serve(catalogue, migration, err))
        return false;
    *ret_migration = TAKE(migration);
    return true;
}

bool catalogue_migration_begin(struct catalogue *catalogue, const struct container *container,
                               const struct migration_request *request,
                               struct container **ret_container, struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;
    CLEANUP(migration_unref) struct migration *migration = NULL;
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    const struct partition_span *targets;
    size_t count;

    if (!migration_change_begin(catalogue, container, &c, err) ||
        !plan(&c, container, request, &catalogue->head, &map, &migration, err))
        return false;
    targets = migration_targets(migration, &count);
    if (!catalogue_partitions_make_spans(catalogue, targets, count, err))
        return false;
    container_set(c.after, partition_map_ref(map), migration_ref(migration));
    if (!migration_change_commit(&c, err)) {
        /* If the outcome is not known, loading again tells whose they are. */
        if (!catalogue->in_doubt)
            catalogue_partitions_unmake_spans(catalogue, targets, count);
        return false;
    }
    *ret_container = container_ref(c.after);
    return true;
}

/* --- Publishing ------------------------------------------------------------------------------ */

static bool none(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "no migration is under way");
}

/* What places items is that of the other; the rest may have been replaced meanwhile. */
static bool definition_publish(struct migration_change *c, const struct definition *placing,
                               struct error *err)
{
    struct definition *next;

    if (!placing)
        return true;
    if (!definition_placed_as(c->after->definition, placing, &next, err))
        return false;
    definition_unref(c->after->definition);
    c->after->definition = next;
    return true;
}

/* No change of the catalogue runs beside this one, so whatever has this LSN or a lower one was said
 * in the terms of before. Of a view it is noted also where its rows keep their keys. */
static bool rekeyed_note(struct catalogue *catalogue, struct migration_change *c, struct error *err)
{
    const struct definition_fields *after = definition_fields(c->after->definition);
    bool same = definition_keys_equal(&definition_fields(c->before->definition)->key, &after->key);
    struct definition *next;
    uint64_t lsn;

    if (same && !after->view.form)
        return true;
    if (!commit_partition_lsn(catalogue->commit, CATALOGUE_PARTITION, &lsn, err) ||
        !(same ? definition_placed_at : definition_rekeyed_at)(c->after->definition, lsn, &next,
                                                               err))
        return false;
    definition_unref(c->after->definition);
    c->after->definition = next;
    return true;
}

/* A copy becomes a container, and its sources are served again, in one commit. */
static bool copy_publish(struct migration_change *c, const struct migration *migration,
                         struct error *err)
{
    CLEANUP(container_unref) struct container *copy = NULL;
    struct partition_map *map;

    if (!catalogue_container_copy(&c->change, c->before, migration_copy(migration),
                                  migration_map(migration), &copy, err) ||
        !map_unfenced(c->change.catalogue, c->before, c->change.arena, &map, err))
        return false;
    container_set(c->after, map, migration_with_state(migration, MIGRATION_DROPPING));
    catalogue_change_put_record(&c->change, container_address(c->after),
                                catalogue_record_container_write(c->after, true, c->change.arena));
    atomic_fetch_add(&c->change.catalogue->maps_published, 1);
    if (!catalogue_change_commit(&c->change, err))
        return false;
    catalogue_container_copy_stamp(&c->change, copy);
    catalogue_change_publish_pair(&c->change, container_ref(c->after), TAKE(copy));
    return true;
}

bool catalogue_migration_publish(struct catalogue *catalogue, const struct container *container,
                                 struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;
    struct migration *migration;

    if (!migration_change_begin(catalogue, container, &c, err))
        return false;
    migration = c.before->migration;
    if (!migration)
        return none(err);
    if (migration_state(migration) == MIGRATION_DROPPING)
        return true;
    if (migration_state(migration) == MIGRATION_CANCELLED)
        return error_set(err, ERROR_BUSY, "the migration was cancelled");
    if (migration_kind(migration) == MIGRATION_COPY)
        return copy_publish(&c, migration, err);
    if (!definition_publish(&c, migration_definition(migration), err) ||
        (migration_kind(migration) == MIGRATION_REKEY && !rekeyed_note(catalogue, &c, err)))
        return false;
    container_set(c.after, partition_map_ref(migration_map(migration)),
                  migration_with_state(migration, MIGRATION_DROPPING));
    atomic_fetch_add(&catalogue->maps_published, 1); /* before anybody sees it */
    return migration_change_commit(&c, err);
}

uint64_t catalogue_maps_published(const struct catalogue *catalogue)
{
    return atomic_load(&catalogue->maps_published);
}

static bool note_begin(struct catalogue *catalogue, const struct container *container,
                       struct migration_change *c, struct error *err)
{
    if (!migration_change_begin(catalogue, container, c, err))
        return false;
    return c->before->migration ? busy(c->before, err) : is_seen(container, c->before, err);
}

bool catalogue_directory_notable(struct catalogue *catalogue, const struct container *container,
                                 struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;

    return note_begin(catalogue, container, &c, err);
}

/* With a version of its own: who knows the map by its version knows the definition too. */
bool catalogue_directory_note(struct catalogue *catalogue, const struct container *container,
                              const struct definition *definition, struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;
    CLEANUP(partition_map_unref) struct partition_map *now = NULL;
    const struct partition_span *spans;
    struct partition_map *map;
    size_t count;

    if (!note_begin(catalogue, container, &c, err))
        return false;
    now = container_map_now(c.before);
    spans = partition_map_spans(now, &count);
    if (!definition_publish(&c, definition, err) ||
        !catalogue_resident_check(catalogue, c.after->definition, spans, count, err) ||
        !partition_map_next(now, spans, count, partition_map_version(c.before->map) + 1, &map, err))
        return false;
    container_set(c.after, map, NULL);
    return migration_change_commit(&c, err);
}

/* --- Cancelling ------------------------------------------------------------------------------ */

bool catalogue_migration_cancel(struct catalogue *catalogue, const struct container *container,
                                struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;
    struct partition_map *map;

    if (!migration_change_begin(catalogue, container, &c, err))
        return false;
    if (!c.before->migration || migration_state(c.before->migration) == MIGRATION_CANCELLED)
        return none(err);
    if (migration_state(c.before->migration) != MIGRATION_MOVING)
        return error_set(err, ERROR_BUSY, "the migration is published and cannot be cancelled");
    if (!map_unfenced(catalogue, c.before, c.change.arena, &map, err))
        return false;
    container_set(c.after, map, migration_with_state(c.before->migration, MIGRATION_CANCELLED));
    return migration_change_commit(&c, err);
}

bool catalogue_migration_unfence(struct catalogue *catalogue, const struct container *container,
                                 struct error *err)
{
    CLEANUP(migration_change_end) struct migration_change c;
    CLEANUP(partition_map_unref) struct partition_map *map = NULL;
    struct migration *reopened;

    if (!migration_change_begin(catalogue, container, &c, err))
        return false;
    if (!is_moving(c.before))
        return none(err);
    if (!map_unfenced(catalogue, c.before, c.change.arena, &map, err) ||
        !migration_reopened(c.before->migration, map, &reopened, err))
        return false;
    container_set(c.after, TAKE(map), reopened);
    return migration_change_commit(&c, err);
}

/* --- Ending ---------------------------------------------------------------------------------- */

static bool node_find(const struct catalogue *catalogue, uint32_t number,
                      const struct cluster_node **ret_node, struct error *err)
{
    *ret_node = cluster_find(catalogue->cluster, number);
    return *ret_node || error_set(err, ERROR_CONFIGURATION, "node %u is not here", number);
}

static bool sources_drop(const struct catalogue *catalogue, const struct migration *migration,
                         struct error *err)
{
    size_t count;
    const struct migration_source *sources = migration_sources(migration, &count);
    const struct cluster_node *node;

    for (size_t i = 0; i < count; i++)
        if (!node_find(catalogue, sources[i].node, &node, err) ||
            !catalogue_partition_remove(node, sources[i].id, err))
            return false;
    return true;
}

static bool targets_drop(const struct catalogue *catalogue, const struct migration *migration,
                         struct error *err)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);
    const struct cluster_node *node;

    for (size_t i = 0; i < count; i++)
        if (!node_find(catalogue, targets[i].node, &node, err) ||
            !catalogue_partition_remove(node, targets[i].id, err))
            return false;
    return true;
}

/* Behind the commit that cancels: a migration whose journal is not whole must never go on. */
static bool journals_end(const struct catalogue *catalogue, const struct container *container,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    const struct migration_source *sources = migration_sources(container->migration, &count);

    for (size_t i = 0; i < count; i++) {
        const struct partition_span *span = partition_map_find_id(container->map, sources[i].id);
        const struct cluster_node *node;

        if (!node_find(catalogue, sources[i].node, &node, err) ||
            !commit_partition_tap(node->commit, sources[i].id, false, err) ||
            !engine_range_drop(node->engine, sources[i].id, span->epoch,
                               journal_range((struct journal_position){0}, arena), err))
            return false;
    }
    return true;
}

/* The lock of changes is not held while partitions go: nobody else can end this migration or begin
 * another, and dropping twice does no harm. */
static bool remains_drop(struct catalogue *catalogue, const struct container *container,
                         struct error *err)
{
    bool published = migration_state(container->migration) == MIGRATION_DROPPING;

    if (published && !migration_keeps_sources(container->migration))
        return sources_drop(catalogue, container->migration, err);
    if (published && migration_kind(container->migration) == MIGRATION_COPY)
        return journals_end(catalogue, container, err); /* the targets are another container's */
    return targets_drop(catalogue, container->migration, err) &&
           journals_end(catalogue, container, err);
}

bool catalogue_migration_end(struct catalogue *catalogue, const struct container *container,
                             struct error *err)
{
    CLEANUP(container_unref) struct container *now = NULL;

    if (!catalogue_container_reopen(catalogue, container, &now, err))
        return false;
    if (!now->migration || migration_state(now->migration) == MIGRATION_MOVING)
        return none(err);
    if (!remains_drop(catalogue, now, err))
        return false;

    CLEANUP(migration_change_end) struct migration_change c;

    if (!migration_change_begin(catalogue, container, &c, err))
        return false;
    if (!c.before->migration)
        return true;
    container_set(c.after, partition_map_ref(c.before->map), NULL);
    return migration_change_commit(&c, err);
}
