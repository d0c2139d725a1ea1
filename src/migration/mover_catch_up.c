/* A key of the journal is made in its target what it was then, if the journal has the value, else
 * what it is now. A later note brings a later value, and behind the fence there is none; so of
 * several notes only the last is taken, and it does not matter if some are taken twice. */
#include "migration/mover_private.h"
#include "partition/layout.h"

enum {
    LOOK_UP_AT_ONCE = 32,
    /* Written at once to a node of clients that notice: who is in the same group waits for it. */
    SHARED_KEYS = 512,
    SHARED_BYTES = 64 * 1024,
};

/* --- Sums ------------------------------------------------------------------------------------ */

static void sums_add(struct mover_target *target, const int64_t *numbers, int sign)
{
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        target->sums[i] += sign * numbers[i];
}

/* Does the target hold a part of a key alone? The sums of the key are in its first part and count
 * all of them, so here items are counted. */
static bool is_counted_by_items(const struct mover *mover, const struct mover_target *target)
{
    const struct partition_map *map = migration_map(mover->migration);

    return mover->parted &&
           partition_map_is_part(map, partition_map_find_id(map, target->span->id));
}

/* As the sums have it (item/write_set.c): bytes of key and value, and one item. */
static void item_sums(size_t key_len, size_t value_len, int64_t ret_numbers[COUNTER_NUMBERS])
{
    memset(ret_numbers, 0, COUNTER_NUMBERS * sizeof *ret_numbers);
    ret_numbers[0] = (int64_t)(key_len + value_len);
    ret_numbers[1] = 1;
}

/* Before the fence, so that the pause does not grow with the number of logical partitions. */
static bool target_sum(const struct mover *mover, struct mover_target *target, struct error *err)
{
    static const uint8_t min[] = {PARTITION_FAMILY_COUNTER, 'l'};
    static const uint8_t max[] = {PARTITION_FAMILY_COUNTER, 'l' + 1};
    static const uint8_t items[] = {PARTITION_FAMILY_ITEM, PARTITION_FAMILY_ITEM + 1};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    bool by_items = is_counted_by_items(mover, target);
    struct engine_range range =
        by_items ? (struct engine_range){slice_of(&items[0], 1), slice_of(&items[1], 1)}
                 : (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)};

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
        if (by_items)
            item_sums(entry.key.len, entry.value.len, numbers);
        else if (!counter_decode(entry.value, numbers, err))
            return false;
        sums_add(target, numbers, 1);
    }
}

static bool numbers_of(struct slice key, struct slice value, int64_t ret_numbers[COUNTER_NUMBERS],
                       struct error *err)
{
    if (key.data[0] != PARTITION_FAMILY_ITEM)
        return counter_decode(value, ret_numbers, err);
    item_sums(key.len, value.len, ret_numbers);
    return true;
}

/* A counter of the target, or an item, is about to become another. */
static bool sums_follow(struct mover *mover, struct mover_target *target, struct slice key,
                        const struct engine_value *value, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS];
    struct engine_value before;

    if (!engine_get(target->node->engine, NULL, target->span->id, key, ENGINE_READ_ANY,
                    mover->arena, &before, err))
        return false;
    if (before.found == ENGINE_FOUND) {
        if (!numbers_of(key, before.bytes, numbers, err))
            return false;
        sums_add(target, numbers, -1);
    }
    if (value->found == ENGINE_FOUND) {
        if (!numbers_of(key, value->bytes, numbers, err))
            return false;
        sums_add(target, numbers, 1);
    }
    return true;
}

static bool sums_begin(struct mover *mover, struct error *err)
{
    for (size_t i = 0; !mover->summed && i < mover->target_count; i++)
        if (!target_sum(mover, &mover->targets[i], err))
            return false;
    mover->summed = true;
    return true;
}

/* --- Catching up ----------------------------------------------------------------------------- */

/* Notes of the journal, in the arena. */
struct touched {
    struct touched_key {
        struct journal_note note;
        size_t nth; /* in the order of commits */
    } * keys;
    size_t count, capacity;
    size_t seen; /* those that did not matter, too */
};

static void touched_add(struct mover *mover, struct touched *touched,
                        const struct journal_note *note)
{
    struct touched_key *added;

    if (touched->count == touched->capacity) {
        size_t capacity = touched->capacity ? touched->capacity * 2 : 1024;
        struct touched_key *keys = ARENA_ARRAY(mover->arena, struct touched_key, capacity);

        if (touched->count)
            memcpy(keys, touched->keys, touched->count * sizeof *keys);
        touched->keys = keys;
        touched->capacity = capacity;
    }
    added = &touched->keys[touched->count];
    *added = (struct touched_key){.note = *note, .nth = touched->count++};
    added->note.key = arena_copy(mover->arena, note->key);
    added->note.value.bytes = arena_copy(mover->arena, note->value.bytes);
}

/* Is it copied only later, as it is then? */
static bool is_to_come(const struct mover_source *source, struct slice key)
{
    return source->unbroken && !source->copied &&
           slice_compare(key, buf_slice(&source->position)) > 0;
}

static bool notes_take(struct mover *mover, const struct mover_source *source, struct slice value,
                       struct touched *touched, struct error *err)
{
    while (value.len) {
        struct journal_note note;

        if (!journal_next(&value, &note, err))
            return false;
        touched->seen++;
        if (!mover_is_mark(note.key) && !is_to_come(source, note.key))
            touched_add(mover, touched, &note);
    }
    return true;
}

/* Whole entries, until there are enough; the source's position moves on. */
static bool journal_read(struct mover *mover, struct mover_source *source,
                         struct engine_snapshot *snapshot, struct touched *touched,
                         struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    if (!engine_iterator_new(source->node->engine, snapshot, source->plan.id,
                             journal_range(source->journal, mover->arena), false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    while (touched->seen < mover->round_keys) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!journal_key_decode(entry.key, &source->journal, err) ||
            !notes_take(mover, source, entry.value, touched, err))
            return false;
    }
    return true;
}

static int touched_compare(const void *left, const void *right)
{
    const struct touched_key *a = left, *b = right;
    int order = slice_compare(a->note.key, b->note.key);

    return order ? order : (a->nth > b->nth) - (a->nth < b->nth);
}

/* By key, and of each only the last note. */
static void touched_settle(struct touched *touched)
{
    size_t kept = 0;

    if (touched->count)
        qsort(touched->keys, touched->count, sizeof *touched->keys, touched_compare);
    for (size_t i = 0; i < touched->count; i++) {
        if (kept && slice_equal(touched->keys[i].note.key, touched->keys[kept - 1].note.key))
            kept--;
        touched->keys[kept++] = touched->keys[i];
    }
    touched->count = kept;
}

static bool is_summed(const struct mover *mover, const struct mover_target *target,
                      struct slice key)
{
    if (is_counted_by_items(mover, target))
        return key.data[0] == PARTITION_FAMILY_ITEM;
    return key.data[0] == PARTITION_FAMILY_COUNTER && key.data[1] == 'l';
}

static bool key_apply(struct mover *mover, struct mover_target *target, struct slice key,
                      const struct engine_value *value, struct error *err)
{
    bool found = value->found == ENGINE_FOUND;

    if (mover->summed && is_summed(mover, target, key) &&
        !sums_follow(mover, target, key, value, err))
        return false;
    mover_op_add(mover, target,
                 (struct engine_op){found ? ENGINE_PUT : ENGINE_DELETE, key,
                                    found ? value->bytes : SLICE_NONE});
    return true;
}

static bool key_apply_everywhere(struct mover *mover, struct slice key,
                                 const struct engine_value *value, struct error *err)
{
    for (size_t i = 0; i < mover->target_count; i++)
        if (!key_apply(mover, &mover->targets[i], key, value, err))
            return false;
    return true;
}

/* An item that got another id may belong to another part now, with entries whose keys have not
 * changed. */
static bool key_leave(struct mover *mover, const struct mover_target *target, struct slice key,
                      struct error *err)
{
    static const struct engine_value gone = {.found = ENGINE_ABSENT};

    if (key.data[0] != PARTITION_FAMILY_INDEX && key.data[0] != PARTITION_FAMILY_EXPIRY &&
        key.data[0] != PARTITION_FAMILY_NUMBER)
        return true;
    for (size_t i = 0; i < mover->target_count; i++)
        if (&mover->targets[i] != target && !key_apply(mover, &mover->targets[i], key, &gone, err))
            return false;
    return true;
}

/* Makes the key in the targets what it is in the source. Where nothing tells whose it was, it is
 * removed everywhere: its bytes exist once in a container. */
static bool key_sync(struct mover *mover, struct slice key, const struct engine_value *value,
                     struct error *err)
{
    struct mover_entry moved = {.key = key, .value = value->bytes};
    struct engine_value rewritten = *value;
    struct mover_target *target = NULL;

    if (!(mover->to ? mover_reroute(mover, key, value, &moved, err)
                    : mover_routing(mover, key, value, &moved.routing, err)))
        return false;
    if (value->found == ENGINE_FOUND)
        rewritten.bytes = moved.value;
    if (moved.routing.len)
        return mover_target_find(mover, moved.routing, &target, err) &&
               key_apply(mover, target, moved.key, &rewritten, err) &&
               (!mover->parted || key_leave(mover, target, moved.key, err));
    return key_apply_everywhere(mover, moved.key, &rewritten, err) &&
           (!moved.other.len || key_apply_everywhere(mover, moved.other, &rewritten, err));
}

/* Looks up what the journal does not tell, of a part of the keys. */
static bool keys_look_up(struct mover *mover, const struct mover_source *source,
                         struct engine_snapshot *snapshot, struct touched_key *touched,
                         size_t count, struct error *err)
{
    struct touched_key *looked[LOOK_UP_AT_ONCE];
    struct engine_value values[LOOK_UP_AT_ONCE];
    struct slice keys[LOOK_UP_AT_ONCE];
    size_t looked_count = 0;

    assert(count <= LOOK_UP_AT_ONCE);
    for (size_t i = 0; i < count; i++)
        if (!touched[i].note.known) {
            keys[looked_count] = touched[i].note.key;
            looked[looked_count++] = &touched[i];
        }
    if (looked_count &&
        !engine_multi_get(source->node->engine, snapshot, source->plan.id, keys, looked_count,
                          ENGINE_READ_ANY, mover->values, values, err))
        return false;
    for (size_t i = 0; i < looked_count; i++)
        looked[i]->note.value = values[i];
    return true;
}

/* Do the writers of the source have the same committer? A target elsewhere is better off with few
 * large writes, for each may be a way to another machine. */
static bool is_shared(const struct mover *mover, const struct mover_source *source)
{
    for (size_t i = 0; i < mover->target_count; i++)
        if (mover->targets[i].node == source->node)
            return true;
    return false;
}

static bool keys_sync(struct mover *mover, const struct mover_source *source,
                      struct engine_snapshot *snapshot, const struct touched *touched,
                      struct error *err)
{
    bool shared = is_shared(mover, source);
    size_t bytes_max = shared ? (size_t)SHARED_BYTES : mover->chunk_bytes;
    size_t keys_max = shared ? (size_t)SHARED_KEYS : SIZE_MAX, bytes = 0, unwritten = 0;

    for (size_t begin = 0, count; begin < touched->count; begin += count) {
        struct touched_key *keys = &touched->keys[begin];

        count = MIN((size_t)LOOK_UP_AT_ONCE, touched->count - begin);
        if (!keys_look_up(mover, source, snapshot, keys, count, err))
            return false;
        for (size_t i = 0; i < count; i++) {
            if (!key_sync(mover, keys[i].note.key, &keys[i].note.value, err))
                return false;
            bytes += keys[i].note.key.len + keys[i].note.value.bytes.len;
        }
        unwritten += count;
        if (bytes < bytes_max && unwritten < keys_max)
            continue;
        if (!mover_targets_write(mover, err))
            return false;
        arena_reset(mover->values);
        mover->figures.bytes += bytes;
        bytes = unwritten = 0;
    }
    mover->figures.bytes += bytes;
    return true;
}

static bool items_sync(struct mover *mover, struct mover_source *source,
                       struct engine_snapshot *snapshot, const struct touched *touched,
                       struct error *err)
{
    struct slice *keys = ARENA_ARRAY(mover->arena, struct slice, touched->count);

    for (size_t i = 0; i < touched->count; i++)
        keys[i] = touched->keys[i].note.key;
    return mover_rekey_keys(mover, source, snapshot, keys, touched->count, err);
}

static bool source_catch_up(struct mover *mover, struct mover_source *source, size_t *keys,
                            struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct touched touched = {0};

    mover_gather(mover);
    if (!engine_snapshot_new(source->node->engine, &snapshot, err) ||
        !journal_read(mover, source, snapshot, &touched, err))
        return false;
    if (touched.seen == 0)
        return !mover->rekeys || mover_rekey_again(mover, source, snapshot, err);
    *keys += touched.seen;
    mover->figures.keys += touched.seen;
    touched_settle(&touched);
    if (!(mover->rekeys ? items_sync(mover, source, snapshot, &touched, err)
                        : keys_sync(mover, source, snapshot, &touched, err)))
        return false;
    /* A snapshot of postgresql: holds a connection, which the commit may want. */
    engine_snapshot_free(TAKE(snapshot));
    mover_progress_add(mover, source);
    return mover_targets_write(mover, err);
}

bool mover_race(const struct mover *mover, struct mover_race *ret_race, struct error *err)
{
    struct mover_race race = {0};

    for (size_t i = 0; i < mover->source_count; i++) {
        const struct mover_source *source = &mover->sources[i];
        uint64_t lsn;

        if (!commit_partition_lsn(source->node->commit, source->plan.id, &lsn, err))
            return false;
        race.written += lsn;
        race.caught_up += source->journal.lsn;
    }
    *ret_race = race;
    return true;
}

bool mover_hold(struct mover *mover, int64_t ms, struct error *err)
{
    for (size_t i = 0; i < mover->source_count; i++)
        if (!commit_partition_hold(mover->sources[i].node->commit, mover->sources[i].plan.id, ms,
                                   err))
            return false;
    return true;
}

static bool sources_catch_up(struct mover *mover, size_t *ret_keys, struct error *err)
{
    *ret_keys = 0;
    for (size_t i = 0; i < mover->source_count; i++)
        if (!source_catch_up(mover, &mover->sources[i], ret_keys, err))
            return false;
    return true;
}

bool mover_follow(struct mover *mover, size_t *ret_keys, struct error *err)
{
    assert(!mover->gathered && !mover->rekeys);
    return sources_catch_up(mover, ret_keys, err);
}

bool mover_catch_up(struct mover *mover, size_t *ret_keys, struct error *err)
{
    *ret_keys = 0;
    if (!mover->target_count)
        return true;
    return (mover->rekeys || sums_begin(mover, err)) && sources_catch_up(mover, ret_keys, err);
}
