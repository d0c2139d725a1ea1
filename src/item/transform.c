#include "item/transform.h"

#include "base/bytes.h"
#include "item/write_set.h"
#include "partition/layout.h"

/* The commit of one remade item. */
struct remake {
    struct write_set *set;
    struct commit_part part;
    struct commit_batch batch;
};

static void remake_stamp(struct commit_batch *batch)
{
    struct remake *remake = CONTAINER_OF(batch, struct remake, batch);

    write_set_stamp(remake->set, &remake->part.stamp);
}

static uint8_t flags_now(const struct item_scope *scope, const struct item *item)
{
    bool by_default = item->header.ttl == 0 && scope->definition->default_ttl > 0;

    return (uint8_t)((item->header.flags & ~ITEM_EXPIRY_BY_DEFAULT) |
                     (by_default ? ITEM_EXPIRY_BY_DEFAULT : 0));
}

/* An item that another transaction wrote first needs nothing more. */
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

    assert(item->document.data && item->header.policy_version != scope->policy_version);
    remake.batch.parts = &remake.part;
    if (!write_set_build(scope, &change, 1, arena, &remake.set, &remake.part, err))
        return false;
    return commit_run(scope->commit, &remake.batch, err) || err->code == ERROR_CONFLICT;
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
    struct transform_step step = {.position = position};
    uint64_t moment = commit_moment(scope->commit);

    if (!engine_iterator_new(scope->engine, NULL, scope->partition, items_after(position, arena),
                             false, ENGINE_READ_ANY, &iterator, err))
        return false;
    while (step.looked_at < max && !step.finished) {
        struct engine_entry entry;
        struct item item;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            step.finished = true;
            break;
        }
        step.position = arena_copy(arena, slice_skip(entry.key, 1));
        if (!item_decode(step.position, arena_copy(arena, entry.value), &item, err))
            return false;
        step.looked_at++;
        if (item.header.policy_version == scope->policy_version)
            continue;
        if (!item_remake(scope, &item, moment, arena, err))
            return false;
        step.remade++;
    }
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
