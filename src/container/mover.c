/* How far copying from a source is stands in the first target, under p | source, 4 (format 1):
 *
 *     1   format, 1
 *     1   1: everything was copied
 *     12  lsn, nth: the journal was read up to here
 *     ..  the last key copied
 *
 * It is written behind what it tells of, or together with it; so it may tell less than was done,
 * never more, and doing a part again does no harm. */
#include "container/mover.h"

#include "base/bytes.h"
#include "container/feed.h"
#include "container/index_policy.h"
#include "partition/counters.h"
#include "partition/journal.h"
#include "partition/layout.h"

enum {
    PROGRESS_FORMAT = 1,
    PROGRESS_HEADER = 14,
    CHUNK_DEFAULT = 1024 * 1024,
    ROUND_DEFAULT = 4096,
    LOOK_UP_AT_ONCE = 32,
};

struct source {
    struct migration_source plan;
    const struct cluster_node *node;
    struct buf position; /* the last key copied */
    bool copied;
    struct journal_position journal;
    struct commit_numbering numbering; /* behind the fence */
};

struct target {
    const struct partition_span *span;
    const struct cluster_node *node;
    struct engine_op *ops; /* in the mover's arena */
    size_t op_count, op_capacity;
    int64_t sums[COUNTER_NUMBERS]; /* of all its logical partitions, once summed */
};

struct mover {
    struct migration *migration;
    size_t chunk_bytes, round_keys;
    struct arena *arena;  /* of the chunk or round at hand */
    struct arena *values; /* of what was looked up and is not yet written */
    struct source *sources;
    size_t source_count;
    struct target *targets;
    size_t target_count;
    bool summed;
    struct mover_figures figures;
};

/* --- Where an entry belongs ------------------------------------------------------------------ */

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a partition holds a key of no known form");
}

static bool is_mark(struct slice key)
{
    static const uint8_t zeros[8];

    return key.data[0] == PARTITION_FAMILY_FEED && key.len == FEED_KEY_LEN &&
           !memcmp(key.data + 1, zeros, sizeof zeros);
}

/* Bytes that begin with the routing key of an entry, or are it; none: only the value can tell, and
 * it is gone. Bounds are never within what follows a routing key (catalogue_migration.c), so there
 * is no need to know where that ends. */
static bool routing_of(struct slice key, const struct engine_value *value,
                       struct slice *ret_routing, struct error *err)
{
    struct slice rest = slice_skip(key, 1);

    *ret_routing = SLICE_NONE;
    switch (key.data[0]) {
    case PARTITION_FAMILY_ITEM:
        break;
    case PARTITION_FAMILY_COUNTER:
    case PARTITION_FAMILY_UNIQUE:
        if (rest.len < 2)
            return broken(err);
        rest = slice_skip(rest, 1);
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
    *ret_routing = rest;
    return rest.len > 0 || broken(err);
}

static bool target_find(struct mover *mover, struct slice routing, struct target **ret_target,
                        struct error *err)
{
    const struct partition_span *span =
        partition_map_find(migration_map(mover->migration), routing);

    if (span < mover->targets[0].span || span > mover->targets[mover->target_count - 1].span)
        return error_set(err, ERROR_STORE_CORRUPT,
                         "a partition holds a key outside of its span; partition %u owns it",
                         span->id);
    *ret_target = &mover->targets[span - mover->targets[0].span];
    return true;
}

/* --- Writing to targets ---------------------------------------------------------------------- */

static void op_add(struct mover *mover, struct target *target, struct engine_op op)
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

static bool target_write(struct target *target, struct error *err)
{
    struct commit_part part = {.partition = target->span->id,
                               .epoch = target->span->epoch,
                               .ops = target->ops,
                               .op_count = target->op_count};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    if (target->op_count == 0)
        return true;
    if (!commit_run(target->node->commit, &batch, err))
        return error_prefix(err, "node \"%s\"", target->node->name);
    target->op_count = 0;
    return true;
}

/* The first comes last: it may have the progress with it. */
static bool targets_write(struct mover *mover, struct error *err)
{
    for (size_t i = mover->target_count; i-- > 0;)
        if (!target_write(&mover->targets[i], err))
            return false;
    return true;
}

/* Forgets what was gathered. */
static void gathering_begin(struct mover *mover)
{
    arena_reset(mover->arena);
    arena_reset(mover->values);
    for (size_t i = 0; i < mover->target_count; i++) {
        mover->targets[i].ops = NULL;
        mover->targets[i].op_count = mover->targets[i].op_capacity = 0;
    }
}

/* --- Progress -------------------------------------------------------------------------------- */

static struct slice progress_key(const struct mover *mover, const struct source *source)
{
    uint8_t *key = arena_alloc(mover->arena, 5);

    key[0] = PARTITION_FAMILY_PROGRESS;
    bytes_put_be32(key + 1, source->plan.id);
    return slice_of(key, 5);
}

static void progress_add(struct mover *mover, const struct source *source)
{
    uint8_t *value = arena_alloc(mover->arena, PROGRESS_HEADER + source->position.len);

    value[0] = PROGRESS_FORMAT;
    value[1] = source->copied;
    bytes_put_be64(value + 2, source->journal.lsn);
    bytes_put_be32(value + 10, source->journal.nth);
    if (source->position.len)
        memcpy(value + PROGRESS_HEADER, source->position.data, source->position.len);
    op_add(mover, &mover->targets[0],
           (struct engine_op){ENGINE_PUT, progress_key(mover, source),
                              slice_of(value, PROGRESS_HEADER + source->position.len)});
}

static bool progress_read(struct mover *mover, struct source *source, struct error *err)
{
    const struct target *first = &mover->targets[0];
    struct engine_value value;

    if (!engine_get(first->node->engine, NULL, first->span->id, progress_key(mover, source),
                    ENGINE_READ_ANY, mover->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
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
        memory_alloc_zero(memory_array_size(mover->source_count, sizeof(struct source)));
    mover->targets =
        memory_alloc_zero(memory_array_size(mover->target_count, sizeof(struct target)));
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

bool mover_new(const struct mover_options *options, struct mover **ret_mover, struct error *err)
{
    CLEANUP(mover_free) struct mover *mover = MEMORY_NEW(struct mover);

    mover->migration = migration_ref(options->migration);
    mover->arena = arena_new();
    mover->values = arena_new();
    mover->chunk_bytes = options->chunk_bytes ? options->chunk_bytes : CHUNK_DEFAULT;
    mover->round_keys = options->round_keys ? options->round_keys : ROUND_DEFAULT;
    if (!ends_find(mover, options->cluster, err))
        return false;
    for (size_t i = 0; i < mover->source_count; i++) {
        const struct source *source = &mover->sources[i];

        if (migration_state(mover->migration) != MIGRATION_MOVING)
            continue; /* only to clean up; the source may be gone */
        if (!commit_partition_tap(source->node->commit, source->plan.id, true, err) ||
            !progress_read(mover, &mover->sources[i], err))
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
    memory_free(mover->sources);
    memory_free(mover->targets);
    arena_free(mover->values);
    arena_free(mover->arena);
    migration_unref(mover->migration);
    memory_free(mover);
}

struct mover_figures mover_figures(const struct mover *mover)
{
    return mover->figures;
}

/* --- Copying --------------------------------------------------------------------------------- */

/* What is copied lies before and behind the journal, meta and progress. */
static bool range_next(const struct source *source, struct arena *arena,
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
    struct target *target = NULL;
    struct slice routing;

    if (!journal_notes(entry->key) || is_mark(entry->key))
        return true;
    if (!routing_of(entry->key, &value, &routing, err) ||
        !target_find(mover, routing, &target, err))
        return false;
    op_add(mover, target,
           (struct engine_op){ENGINE_PUT, arena_copy(mover->arena, entry->key),
                              arena_copy(mover->arena, entry->value)});
    mover->figures.bytes += entry->key.len + entry->value.len;
    mover->figures.items += entry->key.data[0] == PARTITION_FAMILY_ITEM;
    return true;
}

/* Up to a chunk of a range; the source's position moves on. *ret_ended: the range has no more. */
static bool range_copy(struct mover *mover, struct source *source, struct engine_range range,
                       bool *ret_ended, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    size_t bytes = 0;

    *ret_ended = false;
    if (!engine_iterator_new(source->node->engine, NULL, source->plan.id, range, false,
                             ENGINE_READ_ANY, &iterator, err))
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

static bool source_copy(struct mover *mover, struct source *source, struct error *err)
{
    struct engine_range range;
    bool ended;

    gathering_begin(mover);
    if (!range_next(source, mover->arena, &range)) {
        source->copied = true;
    } else {
        if (!range_copy(mover, source, range, &ended, err))
            return false;
        if (ended) {
            buf_clear(&source->position);
            buf_append_slice(&source->position, range.max);
        }
    }
    progress_add(mover, source);
    return targets_write(mover, err);
}

bool mover_copy(struct mover *mover, bool *ret_done, struct error *err)
{
    for (size_t i = 0; i < mover->source_count; i++)
        if (!mover->sources[i].copied) {
            *ret_done = false;
            return source_copy(mover, &mover->sources[i], err);
        }
    *ret_done = true;
    return true;
}

/* --- Sums ------------------------------------------------------------------------------------ */

static void sums_add(struct target *target, const int64_t *numbers, int sign)
{
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        target->sums[i] += sign * numbers[i];
}

/* Before the fence, so that the pause does not grow with the number of logical partitions. */
static bool target_sum(struct target *target, struct error *err)
{
    static const uint8_t min[] = {PARTITION_FAMILY_COUNTER, 'l'};
    static const uint8_t max[] = {PARTITION_FAMILY_COUNTER, 'l' + 1};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {slice_of(min, sizeof min), slice_of(max, sizeof max)};

    memset(target->sums, 0, sizeof target->sums);
    if (!engine_iterator_new(target->node->engine, NULL, target->span->id, range, false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        int64_t numbers[COUNTER_NUMBERS];
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!counter_decode(entry.value, numbers, err))
            return false;
        sums_add(target, numbers, 1);
    }
}

/* A counter of the target is about to become another. */
static bool sums_follow(struct mover *mover, struct target *target, struct slice key,
                        const struct engine_value *value, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS];
    struct engine_value before;

    if (!engine_get(target->node->engine, NULL, target->span->id, key, ENGINE_READ_ANY,
                    mover->arena, &before, err))
        return false;
    if (before.found == ENGINE_FOUND) {
        if (!counter_decode(before.bytes, numbers, err))
            return false;
        sums_add(target, numbers, -1);
    }
    if (value->found == ENGINE_FOUND) {
        if (!counter_decode(value->bytes, numbers, err))
            return false;
        sums_add(target, numbers, 1);
    }
    return true;
}

static bool sums_begin(struct mover *mover, struct error *err)
{
    for (size_t i = 0; !mover->summed && i < mover->target_count; i++)
        if (!target_sum(&mover->targets[i], err))
            return false;
    mover->summed = true;
    return true;
}

/* --- Catching up ----------------------------------------------------------------------------- */

/* Keys of the journal, in the arena. */
struct touched {
    struct slice *keys;
    size_t count, capacity;
};

static void touched_add(struct mover *mover, struct touched *touched, struct slice key)
{
    if (touched->count == touched->capacity) {
        size_t capacity = touched->capacity ? touched->capacity * 2 : 1024;
        struct slice *keys = ARENA_ARRAY(mover->arena, struct slice, capacity);

        if (touched->count)
            memcpy(keys, touched->keys, touched->count * sizeof *keys);
        touched->keys = keys;
        touched->capacity = capacity;
    }
    touched->keys[touched->count++] = arena_copy(mover->arena, key);
}

/* Whole entries, until there are enough; the source's position moves on. */
static bool journal_read(struct mover *mover, struct source *source,
                         struct engine_snapshot *snapshot, struct touched *touched,
                         struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    if (!engine_iterator_new(source->node->engine, snapshot, source->plan.id,
                             journal_range(source->journal, mover->arena), false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    while (touched->count < mover->round_keys) {
        struct engine_entry entry;
        struct slice key;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!journal_key_decode(entry.key, &source->journal, err))
            return false;
        while (entry.value.len) {
            if (!journal_next(&entry.value, &key, err))
                return false;
            if (!is_mark(key))
                touched_add(mover, touched, key);
        }
    }
    return true;
}

static int slices_compare(const void *left, const void *right)
{
    return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

static void touched_settle(struct touched *touched)
{
    size_t kept = 0;

    if (touched->count)
        qsort(touched->keys, touched->count, sizeof *touched->keys, slices_compare);
    for (size_t i = 0; i < touched->count; i++)
        if (i == 0 || !slice_equal(touched->keys[i], touched->keys[kept - 1]))
            touched->keys[kept++] = touched->keys[i];
    touched->count = kept;
}

static bool key_apply(struct mover *mover, struct target *target, struct slice key,
                      const struct engine_value *value, struct error *err)
{
    bool found = value->found == ENGINE_FOUND;

    if (key.data[0] == PARTITION_FAMILY_COUNTER && !sums_follow(mover, target, key, value, err))
        return false;
    op_add(mover, target,
           (struct engine_op){found ? ENGINE_PUT : ENGINE_DELETE, key,
                              found ? value->bytes : SLICE_NONE});
    return true;
}

/* Makes the key in the targets what it is in the source. Where nothing tells whose it was, it is
 * removed everywhere: its bytes exist once in a container. */
static bool key_sync(struct mover *mover, struct slice key, const struct engine_value *value,
                     struct error *err)
{
    struct target *target = NULL;
    struct slice routing;

    if (!routing_of(key, value, &routing, err))
        return false;
    if (routing.len)
        return target_find(mover, routing, &target, err) &&
               key_apply(mover, target, key, value, err);
    for (size_t i = 0; i < mover->target_count; i++)
        if (!key_apply(mover, &mover->targets[i], key, value, err))
            return false;
    return true;
}

static bool keys_sync(struct mover *mover, const struct source *source,
                      struct engine_snapshot *snapshot, const struct touched *touched,
                      struct error *err)
{
    struct engine_value values[LOOK_UP_AT_ONCE];
    size_t bytes = 0;

    for (size_t begin = 0, count; begin < touched->count; begin += count) {
        count = MIN((size_t)LOOK_UP_AT_ONCE, touched->count - begin);
        if (!engine_multi_get(source->node->engine, snapshot, source->plan.id,
                              &touched->keys[begin], count, ENGINE_READ_ANY, mover->values, values,
                              err))
            return false;
        for (size_t i = 0; i < count; i++) {
            if (!key_sync(mover, touched->keys[begin + i], &values[i], err))
                return false;
            bytes += values[i].found == ENGINE_FOUND ? values[i].bytes.len : 0;
        }
        if (bytes < mover->chunk_bytes)
            continue;
        if (!targets_write(mover, err))
            return false;
        arena_reset(mover->values);
        mover->figures.bytes += bytes;
        bytes = 0;
    }
    mover->figures.bytes += bytes;
    return true;
}

static bool source_catch_up(struct mover *mover, struct source *source, size_t *keys,
                            struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct touched touched = {0};

    gathering_begin(mover);
    if (!engine_snapshot_new(source->node->engine, &snapshot, err) ||
        !journal_read(mover, source, snapshot, &touched, err))
        return false;
    if (touched.count == 0)
        return true;
    *keys += touched.count;
    mover->figures.keys += touched.count;
    touched_settle(&touched);
    if (!keys_sync(mover, source, snapshot, &touched, err))
        return false;
    /* A snapshot of postgresql: holds a connection, which the commit may want. */
    engine_snapshot_free(TAKE(snapshot));
    progress_add(mover, source);
    return targets_write(mover, err);
}

bool mover_catch_up(struct mover *mover, size_t *ret_keys, struct error *err)
{
    size_t keys = 0;

    if (!sums_begin(mover, err))
        return false;
    for (size_t i = 0; i < mover->source_count; i++)
        if (!source_catch_up(mover, &mover->sources[i], &keys, err))
            return false;
    *ret_keys = keys;
    return true;
}

/* --- The fence, and behind it ---------------------------------------------------------------- */

bool mover_fence(struct mover *mover, struct error *err)
{
    for (size_t i = 0; i < mover->source_count; i++) {
        struct source *source = &mover->sources[i];
        uint64_t epoch = source->plan.epoch + 1;

        /* Fenced: it was there before. Nobody else raises the epoch of a source. */
        if (!engine_partition_fence(source->node->engine, source->plan.id, epoch, err) &&
            err->code != ERROR_FENCED)
            return error_prefix(err, "node \"%s\"", source->node->name);
        if (!commit_partition_open(source->node->commit, source->plan.id, epoch, err) ||
            !commit_partition_numbering(source->node->commit, source->plan.id, &source->numbering,
                                        err))
            return error_prefix(err, "node \"%s\"", source->node->name);
    }
    return true;
}

static struct slice mark_key(struct mover *mover, uint32_t which)
{
    uint8_t *key = arena_alloc(mover->arena, FEED_KEY_LEN);

    feed_key_encode((struct feed_place){.ordinal = which}, key);
    return slice_of(key, FEED_KEY_LEN);
}

static bool mark_read(struct mover *mover, const struct source *source, uint32_t which,
                      uint64_t *lsn, struct error *err)
{
    struct engine_value value;
    uint64_t found;

    if (!engine_get(source->node->engine, NULL, source->plan.id, mark_key(mover, which),
                    ENGINE_READ_ANY, mover->arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!feed_mark_decode(value.bytes, &found, err))
        return false;
    *lsn = MAX(*lsn, found);
    return true;
}

static void mark_add(struct mover *mover, struct target *target, uint32_t which, uint64_t lsn)
{
    uint8_t *value = arena_alloc(mover->arena, FEED_MARK_LEN);

    if (!lsn)
        return;
    feed_mark_encode(lsn, value);
    op_add(mover, target,
           (struct engine_op){ENGINE_PUT, mark_key(mover, which), slice_of(value, FEED_MARK_LEN)});
}

static void sums_put(struct mover *mover, struct target *target)
{
    static const uint8_t key[] = {PARTITION_FAMILY_COUNTER, 't'};
    uint8_t *bytes = arena_alloc(mover->arena, COUNTER_BYTES);
    struct counter counter;

    memcpy(counter.now, target->sums, sizeof counter.now);
    counter_encode(&counter, bytes);
    op_add(
        mover, target,
        (struct engine_op){ENGINE_PUT, slice_of(key, sizeof key), slice_of(bytes, COUNTER_BYTES)});
}

/* What all sources together say. */
struct ending {
    struct commit_numbering numbering;
    uint64_t trimmed, merged;
};

static bool ending_read(struct mover *mover, struct ending *ending, struct error *err)
{
    *ending = (struct ending){.numbering.lsn = 1};
    for (size_t i = 0; i < mover->source_count; i++) {
        const struct source *source = &mover->sources[i];

        ending->numbering.lsn = MAX(ending->numbering.lsn, source->numbering.lsn);
        ending->numbering.wall_ms = MAX(ending->numbering.wall_ms, source->numbering.wall_ms);
        if (!mark_read(mover, source, FEED_MARK_TRIMMED, &ending->trimmed, err) ||
            !mark_read(mover, source, FEED_MARK_MERGED, &ending->merged, err))
            return false;
    }
    if (mover->source_count > 1)
        ending->merged = ending->numbering.lsn;
    return true;
}

/* The batch that ends the copy has the LSN the source's last had. */
bool mover_finish(struct mover *mover, struct error *err)
{
    struct ending ending;

    assert(mover->summed);
    gathering_begin(mover);
    if (!ending_read(mover, &ending, err))
        return false;
    for (size_t i = 0; i < mover->target_count; i++) {
        struct target *target = &mover->targets[i];
        struct commit_numbering before = {.lsn = ending.numbering.lsn - 1,
                                          .wall_ms = ending.numbering.wall_ms};

        sums_put(mover, target);
        mark_add(mover, target, FEED_MARK_TRIMMED, ending.trimmed);
        mark_add(mover, target, FEED_MARK_MERGED, ending.merged);
        if (!commit_partition_renumber(target->node->commit, target->span->id, &before, err) ||
            !target_write(target, err))
            return false;
    }
    return true;
}

bool mover_clean(struct mover *mover, struct error *err)
{
    gathering_begin(mover);
    for (size_t i = 0; i < mover->source_count; i++)
        op_add(mover, &mover->targets[0],
               (struct engine_op){.kind = ENGINE_DELETE,
                                  .key = progress_key(mover, &mover->sources[i])});
    return targets_write(mover, err);
}
