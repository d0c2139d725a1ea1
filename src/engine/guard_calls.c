/* Calls on their way through the guard. Coming in is one count and two looks at flags that hardly
 * ever change; a snapshot or an iterator stays inside until it is freed. */
#include "engine/guard_private.h"

#include "base/memory.h"
#include "engine/keep.h"

#include <sched.h>

enum {
    PARTITION_NONE = 0,          /* a snapshot */
    PARTITION_ASKED = UINT32_MAX /* about the node itself: never paused */
};

struct guard_snapshot {
    struct engine_snapshot base; /* must be first */
    struct engine_snapshot *inner;
    struct guard_door *door;
};

struct guard_iterator {
    struct engine_iterator base; /* must be first */
    struct engine_iterator *inner;
    struct guard_door *door;
    uint32_t partition;
};

/* --- In and out ------------------------------------------------------------------------------ */

static bool refuse(struct guard *guard, uint32_t partition, enum error_code code, const char *what,
                   struct error *err)
{
    atomic_fetch_add_explicit(&guard->refused, 1, memory_order_relaxed);
    if (partition == PARTITION_NONE || partition == PARTITION_ASKED)
        return error_set(err, code, "node \"%s\" is %s", guard->name, what);
    return error_set(err, code, "node \"%s\" is %s: partition %u does not serve", guard->name, what,
                     partition);
}

static bool refuse_down(struct guard *guard, uint32_t partition, struct error *err)
{
    enum error_code code = ERROR_NODE_DOWN;
    char what[180] = "down";

    WITH_LOCK (&guard->lock) {
        if (guard->reason.message[0])
            (void)snprintf(what, sizeof what, "down (%.160s)", guard->reason.message);
        if (guard->reason.code == ERROR_STORE_LOST)
            code = ERROR_STORE_LOST;
    }
    return refuse(guard, partition, code, what, err);
}

/* Why a call is turned away, or true after all. */
static bool look_closer(struct guard *guard, uint32_t partition, struct error *err)
{
    if (guard_kept == guard && guard->inner)
        return true;
    if (atomic_load(&guard->retired))
        return refuse(guard, partition, ERROR_NODE_DOWN, "removed", err);
    if (atomic_load(&guard->down))
        return refuse_down(guard, partition, err);
    if (atomic_load(&guard->paused) && partition != PARTITION_ASKED &&
        (!partition || partition != guard->options.unpaused_partition))
        return refuse(guard, partition, ERROR_NODE_PAUSED, "paused by the operator", err);
    if (guard_is_silent(guard))
        return refuse(guard, partition, ERROR_NODE_DOWN, "not answering", err);
    if (guard_is_suspect(guard) && guard_inside(guard) > guard->options.suspect_calls)
        return refuse(guard, partition, ERROR_NODE_DOWN, "slow to answer, and others wait for it",
                      err);
    return true;
}

static bool enter(struct guard *guard, uint32_t partition, struct guard_door **ret_door,
                  struct error *err)
{
    int processor = sched_getcpu();
    struct guard_door *door = &guard->doors[MAX(processor, 0) % GUARD_DOORS];

    guard_wait = (struct guard_wait){0};
    atomic_fetch_add(&door->inside, 1);
    if ((!atomic_load(&guard->down) &&
         !atomic_load_explicit(&guard->paused, memory_order_relaxed) &&
         !atomic_load_explicit(&guard->ping_since_ms, memory_order_relaxed)) ||
        look_closer(guard, partition, err)) {
        assert(guard->inner); /* open whenever somebody is let in */
        *ret_door = door;
        return true;
    }
    atomic_fetch_sub(&door->inside, 1);
    return false;
}

/* What the store said, with the name of the node. A store that cannot be reached has done nothing,
 * which is what NODE_DOWN says; the outcome of a failed write keeps its own code. */
static void failure_tell(struct guard *guard, uint32_t partition, bool writes, struct error *err)
{
    struct error cause = *err;

    assert(err->code != ERROR_NONE);
    switch (cause.code) {
    case ERROR_STORE_UNAVAILABLE:
        guard_doubt(guard);
        error_set(err, ERROR_NODE_DOWN, "node \"%s\" is down (%.150s)", guard->name, cause.message);
        if (partition != PARTITION_NONE && partition != PARTITION_ASKED)
            error_set(err, ERROR_NODE_DOWN,
                      "node \"%s\" is down (%.120s): partition %u does not serve", guard->name,
                      cause.message, partition);
        return;
    case ERROR_STORE_CORRUPT:
        guard_fault_begin(guard, ENGINE_FAULT_UNREADABLE, &cause);
        error_prefix(err, "node \"%s\"", guard->name);
        return;
    case ERROR_STORE_FULL:
        guard_fault_begin(guard, ENGINE_FAULT_FULL, &cause);
        return;
    case ERROR_STORE_IO:
        if (writes)
            guard_doubt(guard);
        else if (partition != PARTITION_ASKED) /* a backup may have met another disk */
            guard_fault_begin(guard, ENGINE_FAULT_UNREADABLE, &cause);
        error_prefix(err, "node \"%s\"", guard->name);
        return;
    case ERROR_STORE_POISONED:
    case ERROR_STORE_IN_USE:
    case ERROR_STORE_LOST:
        guard_doubt(guard);
        error_prefix(err, "node \"%s\"", guard->name);
        return;
    default:
        return;
    }
}

static void door_leave(struct guard_door *door)
{
    size_t before = atomic_fetch_sub(&door->inside, 1);

    assert(before > 0);
}

static bool leave(struct guard *guard, struct guard_door *door, uint32_t partition, bool writes,
                  bool done, struct error *err)
{
    if (!done)
        failure_tell(guard, partition, writes, err);
    door_leave(door);
    return done;
}

/* --- Waiting for another server to take over ------------------------------------------------- */

/* How long one call has been held back, and may be. */
struct patience {
    bool counted; /* among those who wait */
    int64_t deadline_ms;
};

enum { PATIENCE_LOOK_MS = 10 };

static void patience_done(struct patience *patience, struct guard *guard)
{
    if (patience->counted)
        atomic_fetch_sub(&guard->waiting, 1);
    patience->counted = false;
}

/* Would a call that may block wait for the node? Then one that may not is told that what it asks
 * for is cold, as of any node that has to be asked. */
static bool is_cold(const struct guard *guard, enum engine_reach reach, const struct error *err)
{
    return reach == ENGINE_READ_CACHED && err->code == ERROR_NODE_DOWN &&
           guard->options.failover_ms && atomic_load(&guard->fails_over) &&
           !atomic_load(&guard->retired) &&
           atomic_load(&guard->waiting) < guard->options.failover_calls &&
           (!atomic_load(&guard->down) ||
            clock_monotonic_ms() < guard->down_at_ms + guard->options.failover_ms);
}

/* A call failed and did nothing. Waits until it is worth trying again; false: it is not. */
static bool patience_wait(struct patience *patience, struct guard *guard, struct error *err)
{
    int64_t now_ms = clock_monotonic_ms(), ms_max = guard->options.failover_ms;

    if (err->code != ERROR_NODE_DOWN || !ms_max || guard_kept == guard ||
        !atomic_load(&guard->fails_over) || atomic_load(&guard->retired))
        return false;
    if (!patience->counted) {
        if (atomic_fetch_add(&guard->waiting, 1) >= guard->options.failover_calls) {
            atomic_fetch_sub(&guard->waiting, 1);
            return false;
        }
        patience->counted = true;
        patience->deadline_ms = now_ms + ms_max;
        atomic_fetch_add_explicit(&guard->waited, 1, memory_order_relaxed);
    }
    /* Who comes late to a node that does not come back is not kept waiting. */
    if (atomic_load(&guard->down))
        patience->deadline_ms = MIN(patience->deadline_ms, guard->down_at_ms + ms_max);
    WITH_LOCK (&guard->lock) {
        if (!guard->kept || guard->stopping)
            return false;
        if (now_ms < patience->deadline_ms)
            condition_wait_until(&guard->back, &guard->lock, now_ms + PATIENCE_LOOK_MS);
    }
    return now_ms < patience->deadline_ms;
}

bool engine_guard_await(const struct engine *engine, struct error *err)
{
    struct patience patience = {0};
    struct guard *guard;
    bool serves;

    if (engine->driver != &guard_driver)
        return engine_serves(engine, err);
    guard = guard_of(engine);
    while (!(serves = engine_serves(engine, err)) && patience_wait(&patience, guard, err))
        ;
    patience_done(&patience, guard);
    return serves;
}

static void write_begin(struct guard *guard)
{
    atomic_store(&guard->write_since_ms, clock_read_monotonic_ms(guard->clock));
}

/* --- The node -------------------------------------------------------------------------------- */

static bool guard_cluster_join(struct engine *engine, struct slice cluster_id, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, PARTITION_ASKED, &door, err) &&
           leave(guard, door, PARTITION_ASKED, true,
                 engine_cluster_join(guard->inner, cluster_id, err), err);
}

static bool guard_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                             struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, PARTITION_ASKED, &door, err) &&
           leave(guard, door, PARTITION_ASKED, false,
                 engine_cluster_id(guard->inner, arena, ret_id, err), err);
}

static bool guard_backup(struct engine *engine, struct slice directory, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, PARTITION_ASKED, &door, err) &&
           leave(guard, door, PARTITION_ASKED, false, engine_backup(guard->inner, directory, err),
                 err);
}

static bool guard_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                             struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, PARTITION_ASKED, &door, err) &&
           leave(guard, door, PARTITION_ASKED, false,
                 engine_statistics(guard->inner, ret_statistics, err), err);
}

static bool guard_upkeep(struct engine *engine, struct engine_upkeep *ret_upkeep)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;
    struct error err;
    bool known;

    if (!enter(guard, PARTITION_ASKED, &door, &err))
        return false;
    known = engine_upkeep(guard->inner, ret_upkeep);
    return leave(guard, door, PARTITION_ASKED, false, true, &err) && known;
}

static bool guard_serves(const struct engine *engine, struct error *err)
{
    struct guard *guard = guard_of(engine);

    if (atomic_load(&guard->retired))
        return error_set(err, ERROR_NODE_DOWN, "node \"%s\" is removed", guard->name);
    if (atomic_load(&guard->down))
        return refuse_down(guard, PARTITION_NONE, err);
    return !atomic_load(&guard->paused) ||
           error_set(err, ERROR_NODE_PAUSED, "node \"%s\" is paused by the operator", guard->name);
}

static bool guard_fails_over(const struct engine *engine)
{
    return atomic_load(&guard_of(engine)->fails_over);
}

/* Both for whoever puts the node in order: nobody else is let in. */
static bool guard_has_lost(const struct engine *engine)
{
    struct guard *guard = guard_of(engine);

    return guard->inner && engine_has_lost(guard->inner);
}

static bool guard_loss_accept(struct engine *engine, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, PARTITION_ASKED, &door, err) &&
           leave(guard, door, PARTITION_ASKED, true, engine_loss_accept(guard->inner, err), err);
}

/* --- Partitions ------------------------------------------------------------------------------ */

static bool guard_partition_create(struct engine *engine, uint32_t id, uint64_t epoch,
                                   struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, id, &door, err) &&
           leave(guard, door, id, true, engine_partition_create(guard->inner, id, epoch, err), err);
}

static bool guard_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch,
                                  struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, id, &door, err) &&
           leave(guard, door, id, true, engine_partition_fence(guard->inner, id, epoch, err), err);
}

static bool guard_partition_drop(struct engine *engine, uint32_t id, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, id, &door, err) &&
           leave(guard, door, id, true, engine_partition_drop(guard->inner, id, err), err);
}

static bool guard_partition_list(struct engine *engine, struct arena *arena,
                                 struct engine_partition **ret_partitions, size_t *ret_count,
                                 struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, PARTITION_ASKED, &door, err) &&
           leave(guard, door, PARTITION_ASKED, false,
                 engine_partition_list(guard->inner, arena, ret_partitions, ret_count, err), err);
}

/* --- Reading --------------------------------------------------------------------------------- */

static struct engine_snapshot *snapshot_inner(struct engine_snapshot *snapshot)
{
    return snapshot ? ((struct guard_snapshot *)snapshot)->inner : NULL;
}

static bool guard_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                               struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct patience patience = {0};
    struct engine_snapshot *inner = NULL;
    struct guard_snapshot *snapshot;
    struct guard_door *door;

    do {
        if (enter(guard, PARTITION_NONE, &door, err) &&
            !engine_snapshot_new(guard->inner, &inner, err))
            (void)leave(guard, door, PARTITION_NONE, false, false, err);
    } while (!inner && patience_wait(&patience, guard, err));
    patience_done(&patience, guard);
    if (!inner)
        return false;
    snapshot = MEMORY_NEW(struct guard_snapshot);
    snapshot->base.engine = engine;
    snapshot->inner = inner;
    snapshot->door = door;
    *ret_snapshot = &snapshot->base;
    return true;
}

/* It is inside already, as long as it lives. */
static bool guard_snapshot_keep(struct engine_snapshot *base, int64_t ms, struct error *err)
{
    return engine_snapshot_keep(((struct guard_snapshot *)base)->inner, ms, err);
}

static void guard_snapshot_free(struct engine_snapshot *base)
{
    struct guard_snapshot *snapshot = (struct guard_snapshot *)base;

    assert(snapshot->inner && snapshot->door);
    engine_snapshot_free(snapshot->inner);
    door_leave(snapshot->door);
    memory_free(snapshot);
}

static bool guard_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                      struct slice key, enum engine_reach reach, struct arena *arena,
                      struct engine_value *ret_value, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct patience patience = {0};
    struct guard_door *door;
    bool done;

    do {
        done = enter(guard, partition, &door, err) &&
               leave(guard, door, partition, false,
                     engine_get(guard->inner, snapshot_inner(snapshot), partition, key, reach,
                                arena, ret_value, err),
                     err);
    } while (!done && !snapshot && reach != ENGINE_READ_CACHED &&
             patience_wait(&patience, guard, err));
    patience_done(&patience, guard);
    if (!done && !snapshot && is_cold(guard, reach, err)) {
        *ret_value = (struct engine_value){.found = ENGINE_COLD};
        return true;
    }
    return done;
}

static bool guard_multi_get(struct engine *engine, struct engine_snapshot *snapshot,
                            uint32_t partition, const struct slice *keys, size_t count,
                            enum engine_reach reach, struct arena *arena,
                            struct engine_value *ret_values, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct patience patience = {0};
    struct guard_door *door;
    bool done;

    do {
        done = enter(guard, partition, &door, err) &&
               leave(guard, door, partition, false,
                     engine_multi_get(guard->inner, snapshot_inner(snapshot), partition, keys,
                                      count, reach, arena, ret_values, err),
                     err);
    } while (!done && !snapshot && reach != ENGINE_READ_CACHED &&
             patience_wait(&patience, guard, err));
    patience_done(&patience, guard);
    if (!done && !snapshot && is_cold(guard, reach, err)) {
        for (size_t i = 0; i < count; i++)
            ret_values[i] = (struct engine_value){.found = ENGINE_COLD};
        return true;
    }
    return done;
}

/* Who is not let in finds nothing kept, and is told why by what he reads instead. */
static bool guard_group_find(struct engine_snapshot *snapshot, uint32_t partition,
                             struct slice name, struct arena *arena, struct engine_group *ret_group)
{
    struct guard *guard = guard_of(snapshot->engine);
    struct guard_door *door;
    struct error err;
    bool found;

    if (!enter(guard, partition, &door, &err))
        return false;
    found = engine_group_find(snapshot_inner(snapshot), partition, name, arena, ret_group);
    door_leave(door);
    return found;
}

/* To the store the snapshot is of, whichever is open by now. */
static void guard_group_offer(struct engine_snapshot *snapshot, uint32_t partition,
                              struct slice name, struct slice bytes,
                              const struct engine_group *group)
{
    engine_group_offer(snapshot_inner(snapshot), partition, name, bytes, group);
}

/* Of a standby: where it does not answer, the primary does. */
static bool guard_prove(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                        struct slice meta, struct slice key, struct arena *arena,
                        struct engine_proof *ret_proof, struct engine_value *ret_value,
                        struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, partition, &door, err) &&
           leave(guard, door, partition, false,
                 engine_prove(guard->inner, snapshot_inner(snapshot), partition, meta, key, arena,
                              ret_proof, ret_value, err),
                 err);
}

static bool guard_iterator_new(struct engine *engine, struct engine_snapshot *snapshot,
                               uint32_t partition, struct engine_range range, bool backwards,
                               enum engine_reach reach, struct engine_iterator **ret_iterator,
                               struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct patience patience = {0};
    struct engine_iterator *inner = NULL;
    struct guard_iterator *iterator;
    struct guard_door *door;

    do {
        if (enter(guard, partition, &door, err) &&
            !engine_iterator_new(guard->inner, snapshot_inner(snapshot), partition, range,
                                 backwards, reach, &inner, err))
            (void)leave(guard, door, partition, false, false, err);
    } while (!inner && !snapshot && reach != ENGINE_READ_CACHED &&
             patience_wait(&patience, guard, err));
    patience_done(&patience, guard);
    if (!inner)
        return false;
    iterator = MEMORY_NEW(struct guard_iterator);
    iterator->base.engine = engine;
    iterator->inner = inner;
    iterator->door = door;
    iterator->partition = partition;
    *ret_iterator = &iterator->base;
    return true;
}

static void guard_iterator_free(struct engine_iterator *base)
{
    struct guard_iterator *iterator = (struct guard_iterator *)base;

    assert(iterator->inner && iterator->door);
    engine_iterator_free(iterator->inner);
    door_leave(iterator->door);
    memory_free(iterator);
}

/* Already inside; but a node that went down since is not asked again. */
static bool iterator_may(struct guard_iterator *iterator, struct error *err)
{
    struct guard *guard = guard_of(iterator->base.engine);

    guard_wait = (struct guard_wait){0};
    return !atomic_load_explicit(&guard->down, memory_order_relaxed) || guard_kept == guard ||
           refuse_down(guard, iterator->partition, err);
}

static bool guard_iterator_next(struct engine_iterator *base, struct engine_entry *ret_entry,
                                struct error *err)
{
    struct guard_iterator *iterator = (struct guard_iterator *)base;

    if (!iterator_may(iterator, err))
        return false;
    if (engine_iterator_next(iterator->inner, ret_entry, err))
        return true;
    failure_tell(guard_of(base->engine), iterator->partition, false, err);
    return false;
}

static bool guard_iterator_seek(struct engine_iterator *base, struct slice key, struct error *err)
{
    struct guard_iterator *iterator = (struct guard_iterator *)base;

    if (!iterator_may(iterator, err))
        return false;
    if (engine_iterator_seek(iterator->inner, key, err))
        return true;
    failure_tell(guard_of(base->engine), iterator->partition, false, err);
    return false;
}

static bool guard_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                             uint64_t *ret_bytes, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, partition, &door, err) &&
           leave(guard, door, partition, false,
                 engine_range_size(guard->inner, partition, range, ret_bytes, err), err);
}

/* --- Writing --------------------------------------------------------------------------------- */

/* A group of the catalogue alone passes where everything else is paused. */
static uint32_t sections_partition(const struct guard *guard, const struct engine_section *sections,
                                   size_t count)
{
    assert(count > 0);
    for (size_t i = 0; i < count; i++)
        if (sections[i].partition != guard->options.unpaused_partition)
            return sections[i].partition;
    return sections[0].partition;
}

static bool sections_put(const struct engine_section *sections, size_t count)
{
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sections[s].count; i++)
            if (sections[s].ops[i].kind == ENGINE_PUT)
                return true;
    return false;
}

static bool write_once(struct guard *guard, struct engine_section *sections, size_t count,
                       struct error *err)
{
    uint32_t partition = sections_partition(guard, sections, count);
    struct guard_door *door;
    bool written;

    if (!enter(guard, partition, &door, err))
        return false;
    write_begin(guard);
    written = engine_write(guard->inner, sections, count, err);
    atomic_store(&guard->write_since_ms, 0);
    if (UNLIKELY(written && atomic_load_explicit(&guard->faults[ENGINE_FAULT_FULL].on,
                                                 memory_order_relaxed)) &&
        sections_put(sections, count))
        guard_fault_end(guard, ENGINE_FAULT_FULL);
    return leave(guard, door, partition, true, written, err);
}

static bool guard_write(struct engine *engine, struct engine_section *sections, size_t count,
                        struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct patience patience = {0};
    bool written;

    while (!(written = write_once(guard, sections, count, err)) &&
           patience_wait(&patience, guard, err))
        ;
    patience_done(&patience, guard);
    return written;
}

/* A node that is down cannot; whatever is done instead fails by name. */
static bool guard_can_load(const struct engine *engine)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;
    struct error err;
    bool can;

    if (!enter(guard, PARTITION_ASKED, &door, &err))
        return false;
    can = engine_can_load(guard->inner);
    return leave(guard, door, PARTITION_ASKED, false, true, &err) && can;
}

/* The same: whoever may wait finds out what is wrong. */
static bool guard_is_here(const struct engine *engine)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;
    struct error err;
    bool here;

    if (!enter(guard, PARTITION_ASKED, &door, &err))
        return false;
    here = engine_is_here(guard->inner);
    return leave(guard, door, PARTITION_ASKED, false, true, &err) && here;
}

static bool guard_load(struct engine *engine, struct engine_section *sections, size_t count,
                       struct error *err)
{
    struct guard *guard = guard_of(engine);
    uint32_t partition = sections_partition(guard, sections, count);
    struct guard_door *door;

    return enter(guard, partition, &door, err) &&
           leave(guard, door, partition, true, engine_load(guard->inner, sections, count, err),
                 err);
}

static bool guard_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                             struct engine_range range, struct error *err)
{
    struct guard *guard = guard_of(engine);
    struct guard_door *door;

    return enter(guard, partition, &door, err) &&
           leave(guard, door, partition, true,
                 engine_range_drop(guard->inner, partition, epoch, range, err), err);
}

/* --- The table ------------------------------------------------------------------------------- */

static void guard_close(struct engine *engine)
{
    struct guard *guard = guard_of(engine);

    engine_guard_leave(engine);
    assert(guard_inside(guard) == 0); /* a snapshot or iterator outlived its engine */
    engine_close(guard->inner);
    engine_standbys_free(guard->standbys); /* behind the engine, which sends their beats */
    memory_free((void *)guard->shown.data);
    memory_free(guard->name);
    explicit_bzero(guard->url, strlen(guard->url));
    memory_free(guard->url);
    condition_done(&guard->wake);
    condition_done(&guard->back);
    mutex_done(&guard->lock);
    memory_free(guard);
}

const struct engine_driver guard_driver = {
    .scheme = "guard",
    .close = guard_close,
    .cluster_join = guard_cluster_join,
    .cluster_id = guard_cluster_id,
    .partition_create = guard_partition_create,
    .partition_fence = guard_partition_fence,
    .partition_drop = guard_partition_drop,
    .partition_list = guard_partition_list,
    .snapshot_new = guard_snapshot_new,
    .snapshot_free = guard_snapshot_free,
    .snapshot_keep = guard_snapshot_keep,
    .get = guard_get,
    .multi_get = guard_multi_get,
    .group_find = guard_group_find,
    .group_offer = guard_group_offer,
    .iterator_new = guard_iterator_new,
    .iterator_free = guard_iterator_free,
    .iterator_next = guard_iterator_next,
    .iterator_seek = guard_iterator_seek,
    .write = guard_write,
    .load = guard_load,
    .can_load = guard_can_load,
    .is_here = guard_is_here,
    .range_drop = guard_range_drop,
    .range_size = guard_range_size,
    .backup = guard_backup,
    .statistics = guard_statistics,
    .upkeep = guard_upkeep,
    .serves = guard_serves,
    .fails_over = guard_fails_over,
    .has_lost = guard_has_lost,
    .loss_accept = guard_loss_accept,
    .prove = guard_prove,
};
