#include "item/transform.h"

#include "base/bytes.h"
#include "item/expiry.h"
#include "item/write_set.h"
#include "partition/layout.h"

/* Items in a step: each is committed by itself, so one is in memory at a time. */
enum { STEP_BYTES_MAX = 8 << 20 };

/* The commit of one remade item. */
struct remake {
    struct write_set *set;
    struct commit_part *parts; /* the first is that of the item */
    struct commit_batch batch;
};

static void remake_stamp(struct commit_batch *batch)
{
    struct remake *remake = CONTAINER_OF(batch, struct remake, batch);

    write_set_stamp(remake->set, &remake->parts[0].stamp);
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

/* An item that another transaction wrote first needs nothing more, or is looked at by the next
 * pass. One that is over is removed, lest it is in the way of others. */
static bool item_remake(const struct item_scope *scope, const struct item *item, uint64_t moment,
                        struct arena *arena, struct error *err)
{
    struct write_set_change change = {
        .key = item->key,
        .before = item,
        .after = item->document,
        .ttl = item->header.ttl,
        .flags = flags_now(scope, item),
        .reindexed = true,
    };
    struct remake remake = {.batch = {.part_count = 1, .moment = moment, .stamp = remake_stamp}};
    const struct write_placed *placed;
    struct commit_part part;
    size_t count;

    assert(item->document.data && item->header.policy_version != scope->policy_version);
    if (scope->definition->has_unique_index &&
        item_is_over(&item->header, scope->definition->default_ttl,
                     clock_read_wall_ms(scope->clock)))
        return expiry_remove(scope, item->key, err);
    if (!write_set_build(scope, &change, 1, arena, &remake.set, &part, err) ||
        !claims_look(scope, item, remake.set, arena, err))
        return false;
    placed = write_set_placed(remake.set, &count);
    remake.parts = ARENA_ARRAY(arena, struct commit_part, 1 + count);
    remake.parts[0] = part;
    if (!write_placed_parts(scope, placed, count, remake.parts, &remake.batch.part_count, arena,
                            err))
        return false;
    remake.batch.parts = remake.parts;
    return commit_run(scope->commit, &remake.batch, err) || err->code == ERROR_CONFLICT ||
           err->code == ERROR_SNAPSHOT_TOO_OLD;
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

bool transform_run(const struct item_scope *scope, struct slice position, size_t max,
                   struct arena *arena, struct transform_step *ret_step, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(arena_free) struct arena *one = arena_new(); /* of one item */
    CLEANUP(buf_done) struct buf at;
    struct transform_step step = {.position = position};
    uint64_t moment = commit_moment(scope->commit);
    size_t bytes = 0;

    buf_init(&at, BUF_DEFAULT_MAX);
    buf_append_slice(&at, position);

    if (!engine_iterator_new(scope->engine, NULL, scope->partition, items_after(position, arena),
                             false, ENGINE_READ_ANY, &iterator, err))
        return false;
    while (step.looked_at < max && bytes < STEP_BYTES_MAX) {
        struct engine_entry entry;
        struct item item;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            step.finished = true;
            break;
        }
        arena_reset(one);
        buf_clear(&at);
        buf_append_slice(&at, slice_skip(entry.key, 1));
        if (!item_decode(arena_copy(one, slice_skip(entry.key, 1)), arena_copy(one, entry.value),
                         &item, err))
            return false;
        step.looked_at++;
        bytes += entry.value.len;
        if (item.header.policy_version == scope->policy_version)
            continue;
        if (!item_remake(scope, &item, moment, one, err)) {
            if (err->code != ERROR_BAD_REQUEST && err->code != ERROR_TOO_LARGE &&
                err->code != ERROR_PARALLEL_ARRAYS && err->code != ERROR_HASHED_ARRAY &&
                err->code != ERROR_NO_FIGURE && err->code != ERROR_OUTSIDE_BOX)
                return false;
            step.refused = refused_by(scope, &item, one);
            step.refusal = *err;
            if (!step.refused)
                return false;
            break;
        }
        step.remade++;
    }
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
