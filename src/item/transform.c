#include "item/transform.h"

#include "base/bytes.h"
#include "item/expiry.h"
#include "item/write_set.h"
#include "partition/layout.h"

/* Items are committed by themselves, and many of them at once: they share a sync of the disk, where
 * one after the other would wait for as many as there are items. Those on their way are in memory
 * together. */
enum { STEP_BYTES_MAX = 8 << 20, FLIGHT_MAX = 64, FLIGHT_BYTES_MAX = 1 << 20 };

/* Items that were handed to the committer and whose outcome is not known yet. */
struct flight {
    struct arena *arena; /* what they are made of, while they are aloft */
    struct mutex lock;
    struct condition landed;
    size_t aloft;     /* under the lock, as what follows */
    struct error err; /* why one of them was not written */
    bool failed;
};

/* The commit of one remade item. */
struct remake {
    struct flight *flight;
    struct item item;
    struct write_set_change change; /* as the set: it is looked at again when it is stamped */
    struct write_set *set;
    struct commit_part *parts; /* the first is that of the item */
    struct commit_batch batch;
};

static void remake_stamp(struct commit_batch *batch)
{
    struct remake *remake = CONTAINER_OF(batch, struct remake, batch);

    write_set_stamp(remake->set, &remake->parts[0].stamp);
}

/* An item that another transaction wrote first needs nothing more, or is looked at by the next
 * pass. */
static void remake_done(struct commit_batch *batch, const struct error *err)
{
    struct flight *flight = CONTAINER_OF(batch, struct remake, batch)->flight;

    WITH_LOCK (&flight->lock) {
        if (err && err->code != ERROR_CONFLICT && err->code != ERROR_SNAPSHOT_TOO_OLD) {
            flight->failed = true;
            flight->err = *err;
        }
        if (--flight->aloft == 0)
            condition_signal(&flight->landed);
    }
}

/* Waits for all of them; their memory may go then. */
static bool flight_land(struct flight *flight, struct error *err)
{
    bool failed;

    WITH_LOCK (&flight->lock) {
        while (flight->aloft)
            condition_wait(&flight->landed, &flight->lock);
        failed = flight->failed;
        if (failed)
            *err = flight->err;
    }
    return !failed;
}

/* Nobody leaves while the committer holds what is in their memory. */
static void flight_done(struct flight *flight)
{
    struct error unused;

    (void)flight_land(flight, &unused);
    condition_done(&flight->landed);
    mutex_done(&flight->lock);
}

static uint8_t flags_now(const struct item_scope *scope, const struct item *item)
{
    bool by_default = item->header.ttl == 0 && scope->definition->default_ttl > 0;

    return (uint8_t)((item->header.flags & ~ITEM_EXPIRY_BY_DEFAULT) |
                     (by_default ? ITEM_EXPIRY_BY_DEFAULT : 0));
}

/* Is the item of this number over, and what is its key? */
static bool owner_look(const struct item_scope *scope, uint64_t number, struct arena *arena,
                       struct slice *ret_key, bool *ret_over, struct error *err)
{
    struct slice name = item_family_key(arena, PARTITION_FAMILY_NUMBER, SLICE_NONE);
    uint8_t *bytes = arena_alloc(arena, 9);
    struct engine_value value;
    struct item item;

    memcpy(bytes, name.data, 1);
    bytes_put_be64(bytes + 1, number);
    *ret_over = false;
    if (!engine_get(scope->engine, NULL, scope->partition, slice_of(bytes, 9), ENGINE_READ_ANY,
                    arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true; /* it went meanwhile: the commit will tell */
    *ret_key = value.bytes;
    if (!engine_get(scope->engine, NULL, scope->partition,
                    item_family_key(arena, PARTITION_FAMILY_ITEM, *ret_key), ENGINE_READ_ANY, arena,
                    &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_decode(*ret_key, value.bytes, &item, err))
        return false;
    *ret_over = item_is_over(&item.header, scope->definition->default_ttl,
                             clock_read_wall_ms(scope->clock));
    return true;
}

/* Where another item owns what this one is to own, the conflict is put instead; an owner whose time
 * is over goes first. */
static bool claims_look(const struct item_scope *scope, const struct item *item,
                        struct write_set *set, struct arena *arena, struct error *err)
{
    size_t count;
    const struct write_set_unique *claims = write_set_uniques(set, &count);

    for (size_t i = 0; i < count; i++) {
        struct engine_value value;
        struct slice key;
        uint64_t owner;
        bool over;

        if (!engine_get(scope->engine, NULL, scope->partition, claims[i].key, ENGINE_READ_ANY,
                        arena, &value, err))
            return false;
        if (value.found != ENGINE_FOUND || value.bytes.len != 8)
            continue;
        owner = bytes_get_be64(value.bytes.data);
        if (owner == item->header.number)
            continue;
        if (!owner_look(scope, owner, arena, &key, &over, err) ||
            (over && !expiry_remove(scope, key, err)))
            return false;
        if (!claims[i].conflict.data)
            return error_set(err, ERROR_UNIQUE_KEY,
                             "two items have the same values of a unique index");
        /* The key was written since: the commit below meets a conflict, and the next pass looks
         * again. */
        if (!over)
            write_set_conflict(set, &claims[i]);
    }
    return true;
}

/* Sends one item on its way. One that is over is removed, lest it is in the way of others. */
static bool item_remake(const struct item_scope *scope, struct remake *remake, uint64_t moment,
                        struct flight *flight, struct error *err)
{
    struct arena *arena = flight->arena;
    const struct item *item = &remake->item;
    const struct write_placed *placed;
    struct commit_part part;
    size_t count;

    assert(item->document.data && item->header.policy_version != scope->policy_version);
    if (scope->definition->has_unique_index &&
        item_is_over(&item->header, scope->definition->default_ttl,
                     clock_read_wall_ms(scope->clock)))
        return expiry_remove(scope, item->key, err);
    remake->change = (struct write_set_change){
        .key = item->key,
        .before = item,
        .after = item->document,
        .ttl = item->header.ttl,
        .flags = flags_now(scope, item),
        .reindexed = true,
    };
    if (!write_set_build(scope, &remake->change, 1, arena, &remake->set, &part, err) ||
        !claims_look(scope, item, remake->set, arena, err))
        return false;
    placed = write_set_placed(remake->set, &count);
    remake->flight = flight;
    remake->parts = ARENA_ARRAY(arena, struct commit_part, 1 + count);
    remake->parts[0] = part;
    remake->batch = (struct commit_batch){
        .parts = remake->parts,
        .part_count = 1,
        .moment = moment,
        .stamp = remake_stamp,
        .done = remake_done,
    };
    if (!write_placed_parts(scope, placed, count, remake->parts, &remake->batch.part_count, arena,
                            err))
        return false;
    WITH_LOCK (&flight->lock)
        flight->aloft++;
    if (commit_submit(scope->commit, &remake->batch, err))
        return true;
    WITH_LOCK (&flight->lock)
        flight->aloft--; /* done is not called */
    return false;
}

/* The index being built that an item cannot be in: the one whose entries it cannot have, or the
 * last, where the item has too many of all. NULL: it is the policy's fault. */
static const struct index_definition *refused_by(const struct item_scope *scope,
                                                 const struct item *item, struct arena *arena)
{
    size_t count, entry_count;
    const struct index_definition *const *list = index_policy_besides(scope->policy, &count);
    const struct index_definition *last = NULL;
    struct index_entry *entries;
    struct write_placed placed;
    struct error unused;

    for (size_t i = 0; i < count; i++) {
        if (list[i]->state != INDEX_BUILDING)
            continue;
        last = list[i];
        if (!index_definition_entries(list[i], item->document, arena, &entries, &entry_count,
                                      &unused) ||
            (list[i]->placed && entry_count &&
             !write_placed_make(&scope->definition->key, list[i], item->document, entries[0].bytes,
                                0, arena, &placed, &unused)))
            break;
    }
    return last;
}

static struct engine_range items_after(struct slice position, struct arena *arena)
{
    struct slice min = item_family_key(arena, PARTITION_FAMILY_ITEM, position);
    uint8_t *next = arena_alloc(arena, min.len + 1);

    memcpy(next, min.data, min.len);
    next[min.len] = 0;
    return (struct engine_range){.min = slice_of(next, min.len + (position.len > 0)),
                                 .max = slice_of("e", 1)};
}

/* Is it the item's fault that it cannot be in an index, and not the store's? */
static bool is_refusal(const struct error *err)
{
    return err->code == ERROR_BAD_REQUEST || err->code == ERROR_TOO_LARGE ||
           err->code == ERROR_PARALLEL_ARRAYS || err->code == ERROR_HASHED_ARRAY ||
           err->code == ERROR_NO_FIGURE || err->code == ERROR_OUTSIDE_BOX;
}

/* Remakes up to max items, a flight after the other; `at` is the key of the last one. */
static bool items_remake(const struct item_scope *scope, struct engine_iterator *iterator,
                         size_t max, struct flight *flight, struct buf *at,
                         struct transform_step *step, struct error *err)
{
    struct arena *aloft = flight->arena;
    uint64_t moment = commit_moment(scope->commit);
    size_t bytes = 0, aloft_count = 0, aloft_bytes = 0;

    while (step->looked_at < max && bytes < STEP_BYTES_MAX) {
        struct engine_entry entry;
        struct remake *remake;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            step->finished = true;
            break;
        }
        if (aloft_count == FLIGHT_MAX || aloft_bytes + entry.value.len > FLIGHT_BYTES_MAX) {
            if (!flight_land(flight, err))
                return false;
            arena_reset(aloft);
            aloft_count = aloft_bytes = 0;
        }
        buf_clear(at);
        buf_append_slice(at, slice_skip(entry.key, 1));
        step->looked_at++;
        bytes += entry.value.len;
        aloft_count++;
        aloft_bytes += entry.value.len;
        remake = ARENA_NEW(aloft, struct remake);
        if (!item_decode(arena_copy(aloft, slice_skip(entry.key, 1)),
                         arena_copy(aloft, entry.value), &remake->item, err))
            return false;
        if (remake->item.header.policy_version == scope->policy_version)
            continue;
        if (!item_remake(scope, remake, moment, flight, err)) {
            if (!is_refusal(err))
                return false;
            step->refused = refused_by(scope, &remake->item, aloft);
            step->refusal = *err;
            if (!step->refused)
                return false;
            break;
        }
        step->remade++;
    }
    return flight_land(flight, err);
}

bool transform_run(const struct item_scope *scope, struct slice position, size_t max,
                   struct arena *arena, struct transform_step *ret_step, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(arena_free) struct arena *aloft = arena_new();
    CLEANUP(buf_done) struct buf at;
    struct transform_step step = {.position = position};
    struct flight flight = {.arena = aloft};
    bool good;

    buf_init(&at, BUF_DEFAULT_MAX);
    buf_append_slice(&at, position);
    if (!engine_iterator_new(scope->engine, NULL, scope->partition, items_after(position, arena),
                             false, ENGINE_READ_ANY, &iterator, err))
        return false;
    mutex_init(&flight.lock);
    condition_init(&flight.landed);
    good = items_remake(scope, iterator, max, &flight, &at, &step, err);
    flight_done(&flight);
    if (!good)
        return false;
    step.position = arena_copy(arena, buf_slice(&at));
    *ret_step = step;
    return true;
}

/* The first 8 bytes as a number are exact enough. */
static uint64_t head_of(struct slice routing)
{
    uint8_t head[8] = {0};

    if (routing.len)
        memcpy(head, routing.data, MIN(routing.len, sizeof head));
    return bytes_get_be64(head);
}

unsigned transform_percent(struct slice position, struct slice min, struct slice max)
{
    uint64_t from = head_of(min), to = head_of(max), at = head_of(position);

    if (at <= from || to <= from)
        return 0;
    if (at >= to)
        return 100;
    return (unsigned)((double)(at - from) / (double)(to - from) * 100);
}
