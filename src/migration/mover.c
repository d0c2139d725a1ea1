/* How far copying from a source is stands in the first target, under p | source, 4 (format 1):
 *
 *     1   format, 1
 *     1   1: everything was copied
 *     12  lsn, nth: the journal was read up to here
 *     ..  the last key copied
 *
 * It is written behind what it tells of, or together with it; so it may tell less than was done,
 * never more, and doing a part again does no harm. */
#include "base/bytes.h"
#include "index/policy.h"
#include "item/feed.h"
#include "migration/mover_private.h"
#include "partition/layout.h"
#include "partition/strategy.h"

enum {
    PROGRESS_FORMAT = 1,
    PROGRESS_HEADER = 14,
    CHUNK_DEFAULT = 256 * 1024,
    LOAD_DEFAULT = 16 * 1024 * 1024,
    FOLLOW_ROUNDS_MAX = 32, /* over the journals, for each load; so that copying comes to its end */
    ROUND_DEFAULT = 4096,
};

/* --- Where an entry belongs ------------------------------------------------------------------ */

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a partition holds a key of no known form");
}

bool mover_is_mark(struct slice key)
{
    static const uint8_t zeros[8];

    return key.data[0] == PARTITION_FAMILY_FEED && key.len == FEED_KEY_LEN &&
           !memcmp(key.data + 1, zeros, sizeof zeros);
}

/* Bounds within a key tell its items apart by their ids, which entries of the index and of expiry
 * have in their values; what belongs to the whole key lies with its first part. */
static bool part_routing(struct mover *mover, struct slice key, const struct engine_value *value,
                         struct slice *routing, struct error *err)
{
    const struct partition_definition *definition = &definition_fields(mover->definition)->key;
    struct slice rest = *routing;

    switch (key.data[0]) {
    case PARTITION_FAMILY_ITEM:
    case PARTITION_FAMILY_NUMBER:
    case PARTITION_FAMILY_FEED:
        return true; /* that is the item's key */
    case PARTITION_FAMILY_INDEX:
        if (value->found == ENGINE_FOUND && value->bytes.len == 0)
            return error_set(err, ERROR_STORE_CORRUPT,
                             "a container with a spread key has an entry that names no item");
        if (!partition_route_skip(definition, &rest, err))
            return false;
        *routing =
            value->found != ENGINE_FOUND
                ? SLICE_NONE
                : arena_join(mover->arena,
                             (const struct slice[]){slice_first(*routing, routing->len - rest.len),
                                                    value->bytes},
                             2);
        return true;
    case PARTITION_FAMILY_EXPIRY:
        *routing = value->found == ENGINE_FOUND ? value->bytes : SLICE_NONE;
        return true;
    default:
        if (!partition_route_skip(definition, &rest, err) ||
            !partition_key_skip(definition, &rest, err))
            return false;
        *routing = slice_first(*routing, routing->len - rest.len);
        return true;
    }
}

/* Other bounds are never within what follows a routing key (catalogue_migration.c), so there
 * is no need to know where that ends. */
bool mover_routing(struct mover *mover, struct slice key, const struct engine_value *value,
                   struct slice *ret_routing, struct error *err)
{
    struct slice rest = slice_skip(key, 1);

    *ret_routing = SLICE_NONE;
    switch (key.data[0]) {
    case PARTITION_FAMILY_ITEM:
    case PARTITION_FAMILY_GROUP:
        break;
    case PARTITION_FAMILY_PLACE:
        if (key.len <= CONTRIBUTION_PLACE_PREFIX_LEN)
            return broken(err);
        rest = slice_skip(key, CONTRIBUTION_PLACE_PREFIX_LEN);
        break;
    case PARTITION_FAMILY_COUNTER:
    case PARTITION_FAMILY_UNIQUE:
        if (rest.len < 2)
            return broken(err);
        rest = slice_skip(rest, 1);
        break;
    case PARTITION_FAMILY_RECORD:
        if (key.len <= WRITE_RECORD_PREFIX_LEN)
            return broken(err);
        rest = slice_skip(key, WRITE_RECORD_PREFIX_LEN);
        break;
    case PARTITION_FAMILY_EXPIRY:
        if (rest.len < 10)
            return broken(err);
        rest = slice_skip(rest, 9);
        break;
    case PARTITION_FAMILY_INDEX:
        if (!index_entry_skip(&rest, err))
            return false;
        break;
    case PARTITION_FAMILY_NUMBER:
        if (value->found != ENGINE_FOUND)
            return true;
        rest = value->bytes;
        break;
    case PARTITION_FAMILY_FEED: {
        struct feed_record record;

        if (value->found != ENGINE_FOUND)
            return true;
        if (!feed_record_decode(key, value->bytes, &record, err))
            return false;
        rest = record.key;
        break;
    }
    default:
        return broken(err);
    }
    if (!rest.len)
        return broken(err);
    *ret_routing = rest;
    return !mover->parted || part_routing(mover, key, value, ret_routing, err);
}

bool mover_target_find(struct mover *mover, struct slice routing, struct mover_target **ret_target,
                       struct error *err)
{
    const struct partition_span *span =
        partition_map_find(migration_map(mover->migration), routing);

    uint32_t nth = span->id - migration_id(mover->migration);

    if (nth >= mover->target_count)
        return error_set(err, ERROR_STORE_CORRUPT,
                         "a partition holds a key outside of its span; partition %u owns it",
                         span->id);
    *ret_target = &mover->targets[nth];
    return true;
}

/* --- Writing to targets ---------------------------------------------------------------------- */

void mover_op_add(struct mover *mover, struct mover_target *target, struct engine_op op)
{
    if (target->op_count == target->op_capacity) {
        size_t capacity = target->op_capacity ? target->op_capacity * 2 : 256;
        struct engine_op *ops = ARENA_ARRAY(mover->arena, struct engine_op, capacity);

        if (target->op_count)
            memcpy(ops, target->ops, target->op_count * sizeof *ops);
        target->ops = ops;
        target->op_capacity = capacity;
    }
    target->ops[target->op_count++] = op;
}

/* What was gathered for the targets of one node, in one commit. */
static bool node_write(struct mover *mover, const struct cluster_node *node, struct error *err)
{
    struct commit_part parts[MIGRATION_TARGETS_MAX];
    struct commit_batch batch = {.parts = parts, .moment = COMMIT_NOTHING_RELIED_ON};

    for (size_t i = 0; i < mover->target_count; i++) {
        struct mover_target *target = &mover->targets[i];

        if (target->node != node || target->op_count == 0)
            continue;
        parts[batch.part_count++] =
            (struct commit_part){.partition = target->span->id,
                                 .epoch = target->span->epoch,
                                 .numbering = target->ends ? &target->numbering : NULL,
                                 .ops = target->ops,
                                 .op_count = target->op_count,
                                 .deltas = target->deltas,
                                 .delta_count = target->delta_count};
        target->op_count = target->delta_count = 0;
    }
    if (batch.part_count && !commit_run(node->commit, &batch, err))
        return error_prefix(err, "node \"%s\"", node->name);
    return true;
}

bool mover_targets_write(struct mover *mover, struct error *err)
{
    const struct cluster_node *last = mover->target_count ? mover->targets[0].node : NULL;

    for (size_t i = 0; i < mover->target_count; i++)
        if (mover->targets[i].op_count && mover->targets[i].node != last &&
            !node_write(mover, mover->targets[i].node, err))
            return false;
    return !last || node_write(mover, last, err);
}

void mover_gather(struct mover *mover)
{
    arena_reset(mover->arena);
    arena_reset(mover->values);
    for (size_t i = 0; i < mover->target_count; i++) {
        mover->targets[i].ends = false;
        mover->targets[i].ops = NULL;
        mover->targets[i].op_count = mover->targets[i].op_capacity = 0;
        mover->targets[i].deltas = NULL;
        mover->targets[i].delta_count = mover->targets[i].delta_capacity = 0;
    }
}

/* --- Progress -------------------------------------------------------------------------------- */

struct slice mover_progress_key(const struct mover *mover, const struct mover_source *source)
{
    uint8_t *key = arena_alloc(mover->arena, 5);

    key[0] = PARTITION_FAMILY_PROGRESS;
    bytes_put_be32(key + 1, source->plan.id);
    return slice_of(key, 5);
}

void mover_progress_add(struct mover *mover, const struct mover_source *source)
{
    uint8_t *value = arena_alloc(mover->arena, PROGRESS_HEADER + source->position.len);

    value[0] = PROGRESS_FORMAT;
    value[1] = source->copied;
    bytes_put_be64(value + 2, source->journal.lsn);
    bytes_put_be32(value + 10, source->journal.nth);
    if (source->position.len)
        memcpy(value + PROGRESS_HEADER, source->position.data, source->position.len);
    mover_op_add(mover, &mover->targets[0],
                 (struct engine_op){ENGINE_PUT, mover_progress_key(mover, source),
                                    slice_of(value, PROGRESS_HEADER + source->position.len)});
}

static bool progress_read(struct mover *mover, struct mover_source *source, struct error *err)
{
    const struct mover_target *first = &mover->targets[0];
    struct engine_value value;

    if (!mover->target_count)
        return true;
    if (!engine_get(first->node->engine, NULL, first->span->id, mover_progress_key(mover, source),
                    ENGINE_READ_ANY, mover->arena, &value, err))
        return false;
    source->unbroken = value.found != ENGINE_FOUND;
    if (source->unbroken)
        return true;
    if (value.bytes.len < PROGRESS_HEADER || value.bytes.data[0] != PROGRESS_FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "the progress of a migration is damaged");
    source->copied = value.bytes.data[1];
    source->journal = (struct journal_position){.lsn = bytes_get_be64(value.bytes.data + 2),
                                                .nth = bytes_get_be32(value.bytes.data + 10)};
    buf_append_slice(&source->position, slice_skip(value.bytes, PROGRESS_HEADER));
    return true;
}

/* --- Making ---------------------------------------------------------------------------------- */

static bool node_find(const struct cluster *cluster, uint32_t number,
                      const struct cluster_node **ret_node, struct error *err)
{
    *ret_node = cluster_find(cluster, number);
    return *ret_node || error_set(err, ERROR_CONFIGURATION, "node %u is not here", number);
}

static bool ends_find(struct mover *mover, const struct cluster *cluster, struct error *err)
{
    const struct migration_source *sources =
        migration_sources(mover->migration, &mover->source_count);
    const struct partition_span *targets =
        migration_targets(mover->migration, &mover->target_count);

    mover->sources =
        memory_alloc_zero(memory_array_size(mover->source_count, sizeof(struct mover_source)));
    mover->targets =
        memory_alloc_zero(memory_array_size(mover->target_count, sizeof(struct mover_target)));
    for (size_t i = 0; i < mover->source_count; i++) {
        mover->sources[i].plan = sources[i];
        buf_init(&mover->sources[i].position, PROGRESS_HEADER + ENGINE_KEY_MAX);
    }
    for (size_t i = 0; i < mover->target_count; i++) {
        mover->targets[i].span = &targets[i];
        if (!node_find(cluster, targets[i].node, &mover->targets[i].node, err))
            return false;
    }
    for (size_t i = 0; i < mover->source_count; i++)
        if (!node_find(cluster, sources[i].node, &mover->sources[i].node, err))
            return false;
    return true;
}

/* By an earlier mover, before a failure or a crash. */
static bool fence_look(struct mover *mover, const struct mover_source *source, struct error *err)
{
    struct engine_partition *partitions;
    size_t count;

    if (!engine_partition_list(source->node->engine, mover->arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        mover->fenced |=
            partitions[i].id == source->plan.id && partitions[i].epoch > source->plan.epoch;
    return true;
}

static void source_span(const struct mover *mover, struct mover_source *source)
{
    const struct partition_span *span = partition_map_find_id(mover->map, source->plan.id);

    assert(span);
    source->min = span->min;
    source->max = span->max;
}

bool mover_is_fenced(const struct mover *mover)
{
    return mover->fenced;
}

bool mover_new(const struct mover_options *options, struct mover **ret_mover, struct error *err)
{
    CLEANUP(mover_free) struct mover *mover = MEMORY_NEW(struct mover);

    mover->migration = migration_ref(options->migration);
    mover->definition = definition_ref(options->definition);
    mover->arena = arena_new();
    mover->values = arena_new();
    mover->chunk_bytes = options->chunk_bytes ? options->chunk_bytes : CHUNK_DEFAULT;
    mover->load_bytes = options->load_bytes ? options->load_bytes : LOAD_DEFAULT;
    mover->round_keys = options->round_keys ? options->round_keys : ROUND_DEFAULT;
    if (!ends_find(mover, options->cluster, err))
        return false;
    mover->parted = partition_map_is_spread(migration_map(mover->migration));
    if (migration_kind(mover->migration) == MIGRATION_REKEY) {
        if (!mover_rekey_init(mover, options->space, err))
            return false;
    } else if (migration_definition(mover->migration)) {
        mover->from = &definition_fields(mover->definition)->key;
        mover->to = &definition_fields(migration_definition(mover->migration))->key;
        mover_reroute_receivers(mover);
    }
    mover->map = partition_map_ref(options->map);
    for (size_t i = 0; i < mover->source_count; i++) {
        const struct mover_source *source = &mover->sources[i];

        if (migration_state(mover->migration) != MIGRATION_MOVING)
            continue; /* only to clean up; the source may be gone */
        source_span(mover, &mover->sources[i]);
        if (!commit_partition_tap(source->node->commit, source->plan.id, true, err) ||
            !progress_read(mover, &mover->sources[i], err) || !fence_look(mover, source, err))
            return false;
    }
    *ret_mover = TAKE(mover);
    return true;
}

void mover_free(struct mover *mover)
{
    if (!mover)
        return;
    for (size_t i = 0; mover->sources && i < mover->source_count; i++)
        buf_done(&mover->sources[i].position);
    mover_rekey_done(mover);
    memory_free(mover->sources);
    memory_free(mover->targets);
    arena_free(mover->values);
    arena_free(mover->arena);
    definition_unref(mover->definition);
    partition_map_unref(mover->map);
    migration_unref(mover->migration);
    memory_free(mover);
}

struct mover_figures mover_figures(const struct mover *mover)
{
    return mover->figures;
}

/* --- Copying --------------------------------------------------------------------------------- */

/* What is copied lies before and behind the journal, meta and progress. */
static bool range_next(const struct mover_source *source, struct arena *arena,
                       struct engine_range *ret_range)
{
    static const uint8_t bounds[][2] = {
        {PARTITION_FAMILY_COUNTER, PARTITION_FAMILY_JOURNAL},
        {PARTITION_FAMILY_NUMBER, PARTITION_FAMILY_UNIQUE + 1},
    };
    struct slice position = buf_slice(&source->position);

    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        struct engine_range range = {slice_of(&bounds[i][0], 1), slice_of(&bounds[i][1], 1)};

        if (position.len && slice_compare(position, range.max) >= 0)
            continue;
        if (position.len && slice_compare(position, range.min) >= 0) {
            uint8_t *behind = arena_alloc(arena, position.len + 1);

            memcpy(behind, position.data, position.len);
            behind[position.len] = 0;
            range.min = slice_of(behind, position.len + 1);
        }
        *ret_range = range;
        return true;
    }
    return false;
}

static bool entry_take(struct mover *mover, const struct engine_entry *entry, struct error *err)
{
    struct engine_value value = {ENGINE_FOUND, entry->value};
    struct mover_entry moved = {.key = entry->key, .value = entry->value};
    struct mover_target *target = NULL;

    if (!journal_notes(entry->key) || mover_is_mark(entry->key))
        return true;
    if (!(mover->to ? mover_reroute(mover, entry->key, &value, &moved, err)
                    : mover_routing(mover, entry->key, &value, &moved.routing, err)) ||
        !mover_target_find(mover, moved.routing, &target, err))
        return false;
    mover_op_add(mover, target,
                 (struct engine_op){ENGINE_PUT, arena_copy(mover->arena, moved.key),
                                    arena_copy(mover->arena, moved.value)});
    mover->figures.bytes += entry->key.len + entry->value.len;
    mover->figures.items += entry->key.data[0] == PARTITION_FAMILY_ITEM;
    return true;
}

/* Up to a chunk of a range; the source's position moves on. *ret_ended: the range has no more. */
static bool range_copy(struct mover *mover, struct mover_source *source, struct engine_range range,
                       bool *ret_ended, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    size_t bytes = 0;

    *ret_ended = false;
    if (!engine_iterator_new(source->node->engine, NULL, source->plan.id, range, false,
                             ENGINE_READ_ONCE, &iterator, err))
        return false;
    while (bytes < mover->chunk_bytes) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            *ret_ended = true;
            return true;
        }
        if (!entry_take(mover, &entry, err))
            return false;
        bytes += entry.key.len + entry.value.len;
        buf_clear(&source->position);
        buf_append_slice(&source->position, entry.key);
    }
    return true;
}

/* Loads are large, so that there are few files of them. */
static size_t gathered_max(const struct mover *mover)
{
    return mover_targets_can_load(mover) ? mover->load_bytes : mover->chunk_bytes;
}

/* What was gathered, and behind it how far that is. */
static bool gathered_write(struct mover *mover, const struct mover_source *source,
                           struct error *err)
{
    if (!mover_targets_load(mover, err))
        return false;
    mover_progress_add(mover, source);
    if (!mover_targets_write(mover, err))
        return false;
    mover->unfollowed += mover->gathered;
    mover->gathered = 0;
    if (source->unbroken && mover->unfollowed >= mover->load_bytes) {
        mover->unfollowed = 0;
        mover->following = FOLLOW_ROUNDS_MAX;
    }
    mover_gather(mover);
    return true;
}

/* Before anything of a source is in a target: a mover that finds no progress knows that nothing is.
 */
static bool source_begin(struct mover *mover, struct mover_source *source, struct error *err)
{
    if (!source->unbroken || source->begun)
        return true;
    source->begun = true;
    mover_progress_add(mover, source);
    return mover_targets_write(mover, err);
}

static bool source_copy(struct mover *mover, struct mover_source *source, struct error *err)
{
    struct engine_range range;
    bool ended = true;

    if (!mover->gathered)
        mover_gather(mover);
    if (!source_begin(mover, source, err))
        return false;
    if (!range_next(source, mover->arena, &range)) {
        source->copied = true;
    } else {
        uint64_t before = mover->figures.bytes;

        if (!range_copy(mover, source, range, &ended, err))
            return false;
        mover->gathered += mover->figures.bytes - before;
        if (ended) {
            buf_clear(&source->position);
            buf_append_slice(&source->position, range.max);
        }
    }
    return (!ended && mover->gathered < gathered_max(mover)) || gathered_write(mover, source, err);
}

/* The journals are followed now and then, so that copying leaves little to catch up with, and what
 * lies before it is not caught up with at all. */
static bool copies_follow(struct mover *mover, struct error *err)
{
    size_t keys;

    if (!mover_follow(mover, &keys, err))
        return false;
    mover->following = keys < mover->round_keys ? 0 : mover->following - 1;
    return true;
}

bool mover_copy(struct mover *mover, bool *ret_done, struct error *err)
{
    *ret_done = false;
    if (mover->following)
        return copies_follow(mover, err);
    for (size_t i = 0; mover->target_count && i < mover->source_count; i++)
        if (!mover->sources[i].copied)
            return mover->rekeys ? mover_rekey_copy(mover, &mover->sources[i], err)
                                 : source_copy(mover, &mover->sources[i], err);
    *ret_done = true;
    return true;
}
