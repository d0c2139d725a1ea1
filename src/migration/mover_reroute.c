/* Entries under another definition: the routing key is another, and with it the place of the entry
 * and all that names it.
 *
 * The feed of a target that receives a key has readers who stand somewhere in it, and what was
 * written of the key in its old place may have any LSN. So the records of the key come behind
 * everything the target has of its own, in another era (partition/layout.h): readers who were there
 * already see the key's items once more, and nobody misses one. The header of an item names its
 * record, so it is changed too; its etag stays, for that leaves the era out.
 *
 * A routing key of the lookup strategy tells the new one by itself, so an entry that is gone, and
 * of which the journal has the key alone, is found in the target without its value. Records of the
 * feed that are gone are removed under both places they may have had. */
#include "base/bytes.h"
#include "index/policy.h"
#include "item/feed.h"
#include "migration/mover_private.h"
#include "partition/layout.h"
#include "partition/lookup.h"
#include "partition/strategy.h"

enum { HEADER_LSN_AT = 10 };

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a partition holds a key of no known form");
}

/* bytes with the routing key behind the first `at` of them replaced, in the arena. */
static bool bytes_reroute(struct mover *mover, struct slice bytes, size_t at,
                          struct slice *ret_bytes, bool *ret_changed, struct error *err)
{
    CLEANUP(buf_done) struct buf buf;
    struct slice rest = bytes;

    buf_init(&buf, ENGINE_KEY_MAX + PARTITION_ROUTING_KEY_MAX);
    if (bytes.len <= at)
        return broken(err);
    rest = slice_skip(bytes, at);
    buf_append_slice(&buf, slice_first(bytes, at));
    if (!partition_reroute(mover->from, mover->to, &rest, &buf, err))
        return false;
    buf_append_slice(&buf, rest);
    *ret_changed = !slice_equal(buf_slice(&buf), bytes);
    *ret_bytes = *ret_changed ? arena_copy(mover->arena, buf_slice(&buf)) : bytes;
    return true;
}

static uint64_t lsn_of(const struct mover *mover, uint64_t lsn)
{
    return lsn ? partition_lsn_in(migration_era(mover->migration), lsn) : 0;
}

/* The key has its routing key behind `at` bytes. */
static bool key_reroute(struct mover *mover, size_t at, struct mover_entry *entry,
                        bool *ret_changed, struct error *err)
{
    if (!bytes_reroute(mover, entry->key, at, &entry->key, ret_changed, err))
        return false;
    entry->routing = slice_skip(entry->key, at);
    return true;
}

static bool item_reroute(struct mover *mover, bool found, struct mover_entry *entry,
                         struct error *err)
{
    uint8_t *stored;
    bool changed;

    if (!key_reroute(mover, 1, entry, &changed, err))
        return false;
    if (!changed || !found)
        return true;
    if (entry->value.len < ITEM_HEADER_LEN)
        return broken(err);
    stored = arena_alloc(mover->arena, entry->value.len);
    memcpy(stored, entry->value.data, entry->value.len);
    bytes_put_be64(stored + HEADER_LSN_AT, lsn_of(mover, bytes_get_be64(stored + HEADER_LSN_AT)));
    entry->value = slice_of(stored, entry->value.len);
    return true;
}

static bool expiry_reroute(struct mover *mover, bool found, struct mover_entry *entry,
                           struct error *err)
{
    bool changed;

    return key_reroute(mover, 10, entry, &changed, err) &&
           (!found || bytes_reroute(mover, entry->value, 0, &entry->value, &changed, err));
}

static bool index_reroute(struct mover *mover, struct mover_entry *entry, struct error *err)
{
    struct slice rest = slice_skip(entry->key, 1);
    bool changed;

    return index_entry_skip(&rest, err) &&
           key_reroute(mover, entry->key.len - rest.len, entry, &changed, err);
}

/* The value is the item's key. */
static bool number_reroute(struct mover *mover, bool found, struct mover_entry *entry,
                           struct error *err)
{
    bool changed;

    if (!found)
        return true;
    if (!bytes_reroute(mover, entry->value, 0, &entry->value, &changed, err))
        return false;
    entry->routing = entry->value;
    return true;
}

static struct slice feed_key(struct mover *mover, struct feed_place place)
{
    uint8_t *key = arena_alloc(mover->arena, FEED_KEY_LEN);

    feed_key_encode(place, key);
    return slice_of(key, FEED_KEY_LEN);
}

static bool feed_gone(struct mover *mover, struct mover_entry *entry, struct error *err)
{
    struct slice key = entry->key;

    if (key.len != FEED_KEY_LEN)
        return broken(err);
    entry->other =
        feed_key(mover, (struct feed_place){.lsn = lsn_of(mover, bytes_get_be64(key.data + 1)),
                                            .origin = bytes_get_be32(key.data + 9),
                                            .ordinal = bytes_get_be32(key.data + 13)});
    return true;
}

static bool feed_reroute(struct mover *mover, bool found, struct mover_entry *entry,
                         struct error *err)
{
    struct feed_record record;
    bool changed;

    if (!found)
        return feed_gone(mover, entry, err);
    if (!feed_record_decode(entry->key, entry->value, &record, err) ||
        !bytes_reroute(mover, record.key, 0, &record.key, &changed, err))
        return false;
    entry->routing = record.key;
    if (!changed)
        return true;
    record.place.lsn = lsn_of(mover, record.place.lsn);
    record.previous.lsn = lsn_of(mover, record.previous.lsn);
    entry->key = feed_key(mover, record.place);
    entry->value = feed_record_encode(&record, mover->arena);
    return true;
}

bool mover_reroute(struct mover *mover, struct slice key, const struct engine_value *value,
                   struct mover_entry *ret_entry, struct error *err)
{
    bool found = value->found == ENGINE_FOUND, changed;
    struct mover_entry entry = {.key = key, .value = found ? value->bytes : SLICE_NONE};
    bool fine = false;

    switch (key.data[0]) {
    case PARTITION_FAMILY_ITEM:
        fine = item_reroute(mover, found, &entry, err);
        break;
    case PARTITION_FAMILY_COUNTER:
    case PARTITION_FAMILY_UNIQUE:
        fine = key_reroute(mover, 2, &entry, &changed, err);
        break;
    case PARTITION_FAMILY_GROUP:
        fine = key_reroute(mover, 1, &entry, &changed, err);
        break;
    case PARTITION_FAMILY_PLACE:
        fine = key_reroute(mover, CONTRIBUTION_PLACE_PREFIX_LEN, &entry, &changed, err);
        break;
    case PARTITION_FAMILY_RECORD:
        fine = key_reroute(mover, WRITE_RECORD_PREFIX_LEN, &entry, &changed, err);
        break;
    case PARTITION_FAMILY_EXPIRY:
        fine = expiry_reroute(mover, found, &entry, err);
        break;
    case PARTITION_FAMILY_INDEX:
        fine = index_reroute(mover, &entry, err);
        break;
    case PARTITION_FAMILY_NUMBER:
        fine = number_reroute(mover, found, &entry, err);
        break;
    case PARTITION_FAMILY_FEED:
        fine = feed_reroute(mover, found, &entry, err);
        break;
    default:
        return broken(err);
    }
    if (fine)
        *ret_entry = entry;
    return fine;
}

/* --- Which keys ------------------------------------------------------------------------------ */

static bool receiver_note(void *context, struct slice component, uint32_t from UNUSED, uint32_t to,
                          struct error *err UNUSED)
{
    struct mover *mover = context;
    size_t count;
    const struct partition_span *spans =
        partition_map_overlap(migration_map(mover->migration),
                              partition_lookup_range(to, component, mover->arena), &count);

    for (size_t i = 0; i < count; i++) {
        uint32_t nth = spans[i].id - migration_id(mover->migration);

        if (nth < mover->target_count)
            mover->targets[nth].receives = true;
    }
    return true;
}

void mover_reroute_receivers(struct mover *mover)
{
    struct error unused;

    if (!partition_lookup_differences(mover->from->lookup, mover->to->lookup, receiver_note, mover,
                                      &unused))
        assert(!"noting cannot fail");
    arena_reset(mover->arena);
}

/* A logical partition that ever had an item has a counter. */
bool mover_range_used(struct engine *engine, uint32_t partition, struct partition_range range,
                      struct arena *arena, bool *ret_used, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    uint8_t *bytes = arena_alloc(arena, range.min.len + range.max.len + 4);
    struct engine_entry entry;

    for (size_t i = 0; i < 2; i++) {
        struct slice end = i ? range.max : range.min;
        uint8_t *at = bytes + (i ? range.min.len + 2 : 0);

        at[0] = PARTITION_FAMILY_COUNTER;
        at[1] = 'l';
        memcpy(at + 2, end.data, end.len);
    }
    if (!engine_iterator_new(
            engine, NULL, partition,
            (struct engine_range){slice_of(bytes, range.min.len + 2),
                                  slice_of(bytes + range.min.len + 2, range.max.len + 2)},
            false, ENGINE_READ_ANY, &iterator, err) ||
        !engine_iterator_next(iterator, &entry, err))
        return false;
    *ret_used = entry.found == ENGINE_FOUND;
    return true;
}

static bool component_check(void *context, struct slice component, uint32_t from,
                            uint32_t to UNUSED, struct error *err)
{
    struct mover *mover = context;
    struct partition_range range = partition_lookup_range(from, component, mover->arena);

    for (size_t i = 0; i < mover->source_count; i++) {
        const struct mover_source *source = &mover->sources[i];
        bool used;

        if (!mover_range_used(source->node->engine, source->plan.id, range, mover->arena, &used,
                              err))
            return false;
        if (used)
            return error_set(err, ERROR_RANGES_BROKEN,
                             "a key that is placed elsewhere has items in partition %u",
                             source->plan.id);
    }
    return true;
}

bool mover_reroute_check(struct mover *mover, struct error *err)
{
    return partition_lookup_differences(mover->from->lookup, mover->to->lookup, component_check,
                                        mover, err);
}
