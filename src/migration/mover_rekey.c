/* Items under other keys. Nothing of an entry tells what becomes of it, so items are carried
 * instead of entries: each is decoded, given its new key, and all its entries are made anew by the
 * same write sets that writers use (write_set.h), with the number, version and time it has.
 *
 * What ties an item to its copy is its number, which nobody else ever has: the targets know under
 * which key they hold a number (family r). So whatever became of the item meanwhile (deleted, made
 * again under the same id, or given another value at a path of the new key), its copy is found, and
 * made what it has to be. Doing that twice changes nothing: it compares what the target has with
 * what the source has, and counters follow by the difference.
 *
 *     copying       the items of a source in key order, a chunk at a time
 *     catching up   of the keys in the journal those of items and numbers tell which items were
 *                   touched; entries of other families follow from them
 *
 * A copy that has to go from its place is removed in a commit of its own, before it is put
 * elsewhere: in between it is nowhere, and a crash there leaves the journal, or the position, where
 * it was.
 *
 * Two items that meet under one new key and id, or one unique key: the first stays, and the other
 * is a conflict. So is one without a key. Conflicts stand in the first target under p | FFFFFFFF |
 * number, 8, as the source's id, 4, and JSON for whoever shows them; they are tried again in every
 * round, for what is in their way may go. With one left nothing is published.
 *
 * The feed of a target is made of the last versions alone, in an era of their own (layout.h):
 * readers see every item once more, and miss none. */
#include "base/bytes.h"
#include "definition/rekey.h"
#include "document/json.h"
#include "document/order.h"
#include "migration/mover_private.h"
#include "partition/layout.h"

#include <stdlib.h>
#include <xxhash.h>

enum {
    AT_ONCE = 32,      /* numbers looked up together */
    TAKEN_MAX = 32768, /* a power of two; half of it is used */
    LOADS = 2,         /* in one: files of entries in no order overlap, so better fewer of them */
    CONFLICT_KEY = 13,
    CONFLICT_TEXT_MAX = 4096,
};

/* Which targets are asked for the copy of an item. */
enum looking { LOOK_WHERE_IT_BELONGS, LOOK_EVERYWHERE };

/* An item of a source, by its number. */
struct carried {
    uint64_t number;
    bool there;       /* in the source; else it is gone */
    struct item item; /* as the source has it */
    struct mover_rekeyed new;
    struct mover_target *target; /* where it belongs */

    struct mover_target *holder; /* where its copy is; NULL: nowhere */
    struct item held;
};

/* --- Making ---------------------------------------------------------------------------------- */

static int conflict_compare(const void *a, const void *b)
{
    const struct mover_conflict *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static struct engine_range conflict_range(void)
{
    static const uint8_t min[] = {PARTITION_FAMILY_PROGRESS, 0xFF, 0xFF, 0xFF, 0xFF};
    static const uint8_t max[] = {PARTITION_FAMILY_PROGRESS + 1};

    return (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)};
}

static bool conflicts_load(struct mover *mover, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct mover_target *first = &mover->targets[0];
    struct engine_entry entry;

    if (!engine_iterator_new(first->node->engine, NULL, first->span->id, conflict_range(), false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    while (mover->conflict_count < MOVER_CONFLICTS_MAX) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (entry.key.len != CONFLICT_KEY || entry.value.len < 4)
            return error_set(err, ERROR_STORE_CORRUPT, "a conflict of a re-key is damaged");
        mover->conflicts[mover->conflict_count++] =
            (struct mover_conflict){.number = bytes_get_be64(entry.key.data + 5),
                                    .source = bytes_get_be32(entry.value.data)};
    }
    return true;
}

bool mover_rekey_init(struct mover *mover, const struct item_space *space, struct error *err)
{
    assert(space && mover->target_count);
    mover->rekeys = true;
    mover->space = *space;
    mover->space.renewed = false;
    mover->from = &definition_fields(mover->definition)->key;
    if (migration_state(mover->migration) != MIGRATION_MOVING)
        return true; /* only to clean up */
    if (!definition_placed_as(mover->definition, migration_definition(mover->migration),
                              &mover->placed, err))
        return false;
    mover->to = &definition_fields(mover->placed)->key;
    mover->conflicts = memory_alloc_zero(
        memory_array_size(MOVER_CONFLICTS_MAX + 1, sizeof(struct mover_conflict)));
    mover->sums_cached = true; /* of a mover before */
    mover->taken = memory_alloc_zero(memory_array_size(TAKEN_MAX, sizeof(uint64_t)));
    for (size_t i = 0; i < mover->target_count; i++) {
        struct mover_target *target = &mover->targets[i];

        target->receives = true;
        target->scope = item_space_span_scope(&mover->space, target->span);
        target->scope.engine = target->node->engine;
        target->scope.commit = target->node->commit;
        target->scope.definition = definition_fields(mover->placed);
        target->scope.policy = target->scope.definition->policy;
        target->scope.policies_before = mover->space.policies_before;
        /* Over their limit, they are counted (mover_count_full) and not refused one by one. */
        target->scope.logical_bytes_max = 0;
        target->scope.partition_bytes_max = 0;
        target->scope.item_bytes_max = 0;
    }
    return conflicts_load(mover, err);
}

void mover_rekey_done(struct mover *mover)
{
    memory_free(mover->conflicts);
    memory_free(mover->taken);
    definition_unref(mover->placed);
}

/* --- Conflicts ------------------------------------------------------------------------------- */

struct mover_conflicts mover_conflicts(const struct mover *mover)
{
    return (struct mover_conflicts){.count = mover->conflict_count,
                                    .logical_full = mover->logical_full};
}

static struct mover_conflict *conflict_find(const struct mover *mover, uint64_t number)
{
    struct mover_conflict wanted = {.number = number};

    if (!mover->conflict_count)
        return NULL;
    return bsearch(&wanted, mover->conflicts, mover->conflict_count, sizeof wanted,
                   conflict_compare);
}

static struct slice conflict_key(struct mover *mover, uint64_t number)
{
    uint8_t *key = arena_alloc(mover->arena, CONFLICT_KEY);

    key[0] = PARTITION_FAMILY_PROGRESS;
    memset(key + 1, 0xFF, 4);
    bytes_put_be64(key + 5, number);
    return slice_of(key, CONFLICT_KEY);
}

/* It may have been none before; then nothing is done. */
static void conflict_drop(struct mover *mover, uint64_t number)
{
    struct mover_conflict *conflict = conflict_find(mover, number);
    size_t at;

    if (!conflict)
        return;
    at = (size_t)(conflict - mover->conflicts);
    memmove(conflict, conflict + 1, (mover->conflict_count - at - 1) * sizeof *conflict);
    mover->conflict_count--;
    mover_op_add(mover, &mover->targets[0],
                 (struct engine_op){.kind = ENGINE_DELETE, .key = conflict_key(mover, number)});
}

static void id_json(const struct mover *mover, const struct carried *carried, struct buf *json)
{
    const struct definition_fields *definition = definition_fields(mover->definition);
    const struct partition_definition *from = mover->from;
    struct arena *arena = mover->arena;
    struct item_key_parts parts;
    struct document_value id;
    struct partition_key key;
    struct error err;

    if (!item_key_split(from, carried->item.key, &parts, &err) ||
        !document_key_read(definition_names_of(definition)->identity_order, &parts.id, arena, &id,
                           &err) ||
        !partition_key_read(from, &parts.pk_id, arena, &key, &err))
        return;
    BUF_APPEND(json, ",\"id\":");
    document_json_write_value(&id, json);
    BUF_APPEND(json, ",\"from\":");
    partition_key_json(from, &key, json);
}

static struct slice conflict_text(struct mover *mover, const struct carried *carried)
{
    CLEANUP(buf_done) struct buf json;
    struct document_value why;

    buf_init(&json, CONFLICT_TEXT_MAX);
    buf_printf(&json, "{\"kind\":\"%s\"", mover_obstacle_name(carried->new.obstacle));
    id_json(mover, carried, &json);
    if (carried->new.obstacle != MOVER_KEY_INVALID) {
        BUF_APPEND(&json, ",\"to\":");
        partition_key_json(mover->to, &carried->new.key, &json);
    } else {
        why = document_string(slice_of(carried->new.why, strlen(carried->new.why)));
        BUF_APPEND(&json, ",\"why\":");
        document_json_write_value(&why, &json);
    }
    BUF_APPEND(&json, "}");
    if (buf_overflowed(&json))
        return SLICE("{\"kind\":\"tooLong\"}");
    return arena_copy(mover->arena, buf_slice(&json));
}

static bool conflict_note(struct mover *mover, const struct mover_source *source,
                          const struct carried *carried, struct error *err)
{
    struct slice text;
    uint8_t *value;

    if (conflict_find(mover, carried->number))
        return true;
    if (mover->conflict_count == MOVER_CONFLICTS_MAX)
        return error_set(err, ERROR_REKEY_CONFLICTS,
                         "more than %d items cannot be given their new keys: abort, and begin "
                         "again when they can",
                         MOVER_CONFLICTS_MAX);
    mover->conflicts[mover->conflict_count++] =
        (struct mover_conflict){.number = carried->number, .source = source->plan.id};
    qsort(mover->conflicts, mover->conflict_count, sizeof *mover->conflicts, conflict_compare);
    text = conflict_text(mover, carried);
    value = arena_alloc(mover->arena, 4 + text.len);
    bytes_put_be32(value, source->plan.id);
    memcpy(value + 4, text.data, text.len);
    mover_op_add(mover, &mover->targets[0],
                 (struct engine_op){ENGINE_PUT, conflict_key(mover, carried->number),
                                    slice_of(value, 4 + text.len)});
    mover->gathered += CONFLICT_KEY + 4 + text.len;
    return true;
}

bool mover_conflicts_show(const struct cluster *cluster, const struct migration *migration,
                          size_t max, struct buf *json, size_t *ret_count, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    size_t targets, count = 0;
    const struct partition_span *first = migration_targets(migration, &targets);
    const struct cluster_node *node = targets ? cluster_find(cluster, first->node) : NULL;
    struct engine_entry entry;

    *ret_count = 0;
    if (!node || migration_state(migration) != MIGRATION_MOVING)
        return true;
    if (!engine_iterator_new(node->engine, NULL, first->id, conflict_range(), false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;; count++) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (count >= max || entry.value.len < 4)
            continue;
        if (count)
            BUF_APPEND(json, ",");
        buf_append_slice(json, slice_skip(entry.value, 4));
    }
    *ret_count = count;
    return true;
}

/* Once copied, the counters tell. */
static bool target_count_full(struct mover *mover, const struct mover_target *target,
                              struct error *err)
{
    static const uint8_t min[] = {PARTITION_FAMILY_COUNTER, 'l'};
    static const uint8_t max[] = {PARTITION_FAMILY_COUNTER, 'l' + 1};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {slice_of(min, sizeof min), slice_of(max, sizeof max)};

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
        mover->logical_full +=
            mover->space.logical_bytes_max && numbers[0] > mover->space.logical_bytes_max;
    }
}

bool mover_count_full(struct mover *mover, struct error *err)
{
    mover->logical_full = 0;
    for (size_t i = 0; mover->rekeys && i < mover->target_count; i++)
        if (!target_count_full(mover, &mover->targets[i], err))
            return false;
    return true;
}

/* --- What the targets have ------------------------------------------------------------------- */

static struct slice number_key(struct arena *arena, uint64_t number)
{
    uint8_t *key = arena_alloc(arena, 9);

    key[0] = PARTITION_FAMILY_NUMBER;
    bytes_put_be64(key + 1, number);
    return slice_of(key, 9);
}

/* --- Writing --------------------------------------------------------------------------------- */

static void delta_add(struct mover *mover, struct mover_target *target, struct commit_delta delta)
{
    if (target->delta_count == target->delta_capacity) {
        size_t capacity = target->delta_capacity ? target->delta_capacity * 2 : 64;
        struct commit_delta *deltas = ARENA_ARRAY(mover->arena, struct commit_delta, capacity);

        if (target->delta_count)
            memcpy(deltas, target->deltas, target->delta_count * sizeof *deltas);
        target->deltas = deltas;
        target->delta_capacity = capacity;
    }
    target->deltas[target->delta_count++] = delta;
}

/* Entries that lie elsewhere than their item go to the target of that place. */
static bool placed_gather(struct mover *mover, const struct write_set *set, struct error *err)
{
    size_t count;
    const struct write_placed *placed = write_set_placed(set, &count);

    for (size_t i = 0; i < count; i++) {
        struct mover_target *target;

        if (!mover_target_find(mover, placed[i].routing, &target, err))
            return false;
        mover_op_add(mover, target, placed[i].op);
        mover->gathered += placed[i].op.key.len;
    }
    return true;
}

static void part_gather(struct mover *mover, struct mover_target *target,
                        const struct commit_part *part)
{
    for (size_t i = 0; i < part->op_count; i++) {
        mover_op_add(mover, target, part->ops[i]);
        mover->gathered += part->ops[i].key.len + part->ops[i].value.len;
    }
    for (size_t i = 0; i < part->delta_count; i++)
        delta_add(mover, target, part->deltas[i]);
}

static void taken_clear(struct mover *mover)
{
    memset(mover->taken, 0, TAKEN_MAX * sizeof *mover->taken);
    mover->taken_count = 0;
}

static bool is_only_put(const struct mover *mover)
{
    for (size_t t = 0; t < mover->target_count; t++)
        for (size_t i = 0; i < mover->targets[t].op_count; i++)
            if (mover->targets[t].ops[i].kind != ENGINE_PUT)
                return false;
    return true;
}

static bool flush(struct mover *mover, struct error *err)
{
    taken_clear(mover);
    mover->gathered = 0;
    if (mover->loads) {
        assert(is_only_put(mover));
        return mover_counters_reread(mover, err) && mover_targets_load(mover, err);
    }
    for (size_t i = 0; i < mover->target_count; i++)
        mover->sums_cached |= mover->targets[i].delta_count > 0;
    return mover_targets_write(mover, err);
}

/* A chunk that is done again may have something to remove. So the rest of it goes through the
 * committer, behind what was gathered of those before it. */
static bool loads_end(struct mover *mover, struct error *err)
{
    if (!mover->loads)
        return true;
    if (mover->gathered && !flush(mover, err))
        return false;
    mover->loads = false;
    return true;
}

/* Was the key written since the last flush? By its hash: at worst there is a flush too many. */
static bool taken_note(struct mover *mover, const struct mover_target *target, struct slice key)
{
    uint64_t hash = XXH3_64bits_withSeed(key.data, key.len, target->span->id) | 1;
    size_t at = hash % TAKEN_MAX;

    while (mover->taken[at] && mover->taken[at] != hash)
        at = (at + 1) % TAKEN_MAX;
    if (mover->taken[at])
        return true;
    mover->taken[at] = hash;
    mover->taken_count++;
    return false;
}

static bool set_build(struct mover *mover, struct mover_target *target,
                      struct write_set_change *change, struct write_set **ret_set,
                      struct commit_part *ret_part, struct error *err)
{
    change->is_carried = true;
    return write_set_build(&target->scope, change, 1, mover->arena, ret_set, ret_part, err);
}

/* The copy goes from where it is. */
static bool copy_remove(struct mover *mover, struct carried *carried, struct error *err)
{
    struct write_set_change *change = ARENA_NEW(mover->arena, struct write_set_change);
    struct item *before = ARENA_NEW(mover->arena, struct item);
    struct commit_part part;
    struct write_set *set;

    *before = carried->held;
    *change = (struct write_set_change){.key = before->key, .before = before};
    if (!set_build(mover, carried->holder, change, &set, &part, err))
        return false;
    part_gather(mover, carried->holder, &part);
    carried->holder = NULL;
    return placed_gather(mover, set, err);
}

/* Who has the key that an item is to have? */
static bool place_look(struct mover *mover, struct carried *carried, struct error *err)
{
    struct slice key = item_family_key(mover->values, PARTITION_FAMILY_ITEM, carried->new.item_key);
    struct engine_value value;
    struct item other;

    if (taken_note(mover, carried->target, key)) {
        if (!flush(mover, err))
            return false;
        (void)taken_note(mover, carried->target, key);
    }
    if (carried->holder) /* it is where it belongs */
        return true;
    if (!engine_get(carried->target->node->engine, NULL, carried->target->span->id, key,
                    ENGINE_READ_ANY, mover->values, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_decode(carried->new.item_key, value.bytes, &other, err))
        return false;
    if (other.header.number != carried->number)
        carried->new.obstacle = MOVER_KEY_TAKEN;
    return true;
}

static bool uniques_look(struct mover *mover, struct carried *carried, struct write_set *set,
                         struct error *err)
{
    size_t count;
    const struct write_set_unique *claims = write_set_uniques(set, &count);
    bool taken = false;

    for (size_t i = 0; i < count; i++)
        taken |= taken_note(mover, carried->target, claims[i].key);
    if (taken && !flush(mover, err))
        return false;
    for (size_t i = 0; taken && i < count; i++)
        (void)taken_note(mover, carried->target, claims[i].key);
    if (taken)
        (void)taken_note(
            mover, carried->target,
            item_family_key(mover->values, PARTITION_FAMILY_ITEM, carried->new.item_key));
    for (size_t i = 0; i < count; i++) {
        struct engine_value value;

        if (!engine_get(carried->target->node->engine, NULL, carried->target->span->id,
                        claims[i].key, ENGINE_READ_ANY, mover->values, &value, err))
            return false;
        if (value.found != ENGINE_FOUND || value.bytes.len != 8 ||
            bytes_get_be64(value.bytes.data) == carried->number)
            continue;
        if (claims[i].conflict.data)
            write_set_conflict(set, &claims[i]);
        else
            carried->new.obstacle = MOVER_UNIQUE_TAKEN;
    }
    return true;
}

static uint64_t lsn_carried(const struct mover *mover, uint64_t lsn)
{
    return lsn ? partition_lsn_in(migration_era(mover->migration), lsn) : 0;
}

static bool copy_put(struct mover *mover, struct carried *carried, struct error *err)
{
    struct write_set_change *change = ARENA_NEW(mover->arena, struct write_set_change);
    struct item *before = NULL;
    struct commit_part part;
    struct write_set *set;

    if (carried->holder) {
        before = ARENA_NEW(mover->arena, struct item);
        *before = carried->held;
    }
    *change = (struct write_set_change){
        .key = carried->new.item_key,
        .before = before,
        .after = carried->new.document,
        .ttl = carried->item.header.ttl,
        .flags = carried->item.header.flags &ITEM_NOT_INDEXED,
        .carried = carried->item.header,
    };
    change->carried.lsn = lsn_carried(mover, carried->item.header.lsn);
    if (!set_build(mover, carried->target, change, &set, &part, err) ||
        !uniques_look(mover, carried, set, err))
        return false;
    if (carried->new.obstacle != MOVER_FINE)
        return true;
    part_gather(mover, carried->target, &part);
    return placed_gather(mover, set, err);
}

/* --- Where the copies are -------------------------------------------------------------------- */

static bool is_misplaced(const struct carried *carried)
{
    return !carried->there || carried->new.obstacle != MOVER_FINE ||
           carried->holder != carried->target ||
           !slice_equal(carried->held.key, carried->new.item_key);
}

/* A target has a copy. One that is not what it has to be goes. */
static bool holder_take(struct mover *mover, struct mover_target *target, struct slice item_key,
                        struct carried *carried, bool *removed, struct error *err)
{
    struct carried found = *carried;
    struct engine_value value;

    if (!engine_get(target->node->engine, NULL, target->span->id,
                    item_family_key(mover->values, PARTITION_FAMILY_ITEM, item_key),
                    ENGINE_READ_ANY, mover->values, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return error_set(err, ERROR_STORE_CORRUPT, "a number leads to no item");
    found.holder = target;
    if (!loads_end(mover, err) || !item_decode(item_key, value.bytes, &found.held, err))
        return false;
    if (!is_misplaced(&found)) {
        *carried = found;
        return true;
    }
    *removed = true;
    return copy_remove(mover, &found, err);
}

/* Looks for the numbers of some items in one target. */
static bool holders_find_in(struct mover *mover, struct mover_target *target, struct carried **list,
                            size_t count, bool *removed, struct error *err)
{
    struct slice *keys = ARENA_ARRAY(mover->values, struct slice, count);
    struct engine_value values[AT_ONCE];

    assert(count <= AT_ONCE);
    for (size_t i = 0; i < count; i++)
        keys[i] = number_key(mover->values, list[i]->number);
    if (!engine_multi_get(target->node->engine, NULL, target->span->id, keys, count,
                          ENGINE_READ_ANY, mover->values, values, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (values[i].found == ENGINE_FOUND &&
            !holder_take(mover, target, values[i].bytes, list[i], removed, err))
            return false;
    return true;
}

/* While copying, an item can be in a target only because a chunk is done again. If it had another
 * key then it was written in between, so that the journal has it, and catching up finds that copy
 * in whichever target it is: here only the one where it belongs is asked. */
static bool holders_find(struct mover *mover, enum looking looking, struct carried *list,
                         size_t count, bool *removed, struct error *err)
{
    for (size_t t = 0; t < mover->target_count; t++) {
        struct mover_target *target = &mover->targets[t];
        struct carried *some[AT_ONCE];
        size_t taken = 0;

        for (size_t i = 0; i < count; i++) {
            if (looking == LOOK_WHERE_IT_BELONGS && list[i].target != target)
                continue;
            some[taken++] = &list[i];
            if (taken < AT_ONCE)
                continue;
            if (!holders_find_in(mover, target, some, taken, removed, err))
                return false;
            taken = 0;
        }
        if (taken && !holders_find_in(mover, target, some, taken, removed, err))
            return false;
    }
    return true;
}

/* --- One item -------------------------------------------------------------------------------- */

static bool new_make(struct mover *mover, struct carried *carried, struct error *err)
{
    if (carried->item.header.policy_version > mover->space.policy_version)
        return error_set(err, ERROR_CONFLICT, "the container has another index policy by now");
    if (!mover_rekey_item(mover->from, mover->to, migration_allows_missing(mover->migration),
                          &mover->space.key_limits, &carried->item, mover->arena, &carried->new,
                          err))
        return false;
    return carried->new.obstacle == MOVER_KEY_INVALID ||
           mover_target_find(mover, carried->new.item_key, &carried->target, err);
}

static bool item_put(struct mover *mover, const struct mover_source *source,
                     struct carried *carried, struct error *err)
{
    if (carried->new.obstacle == MOVER_FINE && !place_look(mover, carried, err))
        return false;
    if (carried->new.obstacle == MOVER_FINE && !copy_put(mover, carried, err))
        return false;
    if (carried->new.obstacle == MOVER_FINE) {
        if (conflict_find(mover, carried->number) && !loads_end(mover, err))
            return false;
        conflict_drop(mover, carried->number);
        return true;
    }
    /* Its copy was where it belongs, but owns a unique key no longer. */
    return (!carried->holder || copy_remove(mover, carried, err)) &&
           conflict_note(mover, source, carried, err);
}

/* Makes the copies of some items what the items are. What is gathered at the end is the caller's to
 * write. */
static bool items_sync(struct mover *mover, const struct mover_source *source, enum looking looking,
                       struct carried *list, size_t count, struct error *err)
{
    bool removed = false;

    if (!mover->gathered)
        taken_clear(mover);
    for (size_t i = 0; i < count; i++)
        if (list[i].there && !new_make(mover, &list[i], err))
            return false;
    if (!holders_find(mover, looking, list, count, &removed, err))
        return false;
    if (removed && !flush(mover, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!list[i].there)
            conflict_drop(mover, list[i].number);
        else if (!item_put(mover, source, &list[i], err))
            return false;
        if (mover->taken_count > TAKEN_MAX / 2 && !flush(mover, err))
            return false;
    }
    return true;
}

/* --- Copying --------------------------------------------------------------------------------- */

static void carried_add(struct mover *mover, struct carried **list, size_t *count,
                        struct carried carried)
{
    if ((*count & (*count - 1)) == 0) { /* full, as 1, 2, 4, ... */
        struct carried *more =
            ARENA_ARRAY(mover->arena, struct carried, *count ? *count * 2 : (size_t)1);

        if (*count)
            memcpy(more, *list, *count * sizeof *more);
        *list = more;
    }
    (*list)[(*count)++] = carried;
}

static bool item_take(struct mover *mover, struct slice key, struct slice stored,
                      struct carried *ret_carried, struct error *err)
{
    *ret_carried = (struct carried){.there = true};
    if (!item_decode(arena_copy(mover->arena, key), arena_copy(mover->arena, stored),
                     &ret_carried->item, err))
        return false;
    ret_carried->number = ret_carried->item.header.number;
    return true;
}

/* Behind the last item copied. */
static struct engine_range range_left(const struct mover_source *source, struct arena *arena)
{
    static const uint8_t bounds[] = {PARTITION_FAMILY_ITEM, PARTITION_FAMILY_ITEM + 1};
    struct engine_range range = {slice_of(&bounds[0], 1), slice_of(&bounds[1], 1)};

    if (source->position.len)
        range.min =
            arena_join(arena, (const struct slice[]){buf_slice(&source->position), SLICE("\0")}, 2);
    return range;
}

static bool chunk_read(struct mover *mover, struct mover_source *source, struct carried **list,
                       size_t *count, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    size_t bytes = 0;

    if (!engine_iterator_new(source->node->engine, NULL, source->plan.id,
                             range_left(source, mover->arena), false, ENGINE_READ_ANY, &iterator,
                             err))
        return false;
    while (bytes < mover->chunk_bytes) {
        struct engine_entry entry;
        struct carried carried;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            source->copied = true;
            return true;
        }
        if (!item_take(mover, slice_skip(entry.key, 1), entry.value, &carried, err))
            return false;
        carried_add(mover, list, count, carried);
        bytes += entry.key.len + entry.value.len;
        buf_clear(&source->position);
        buf_append_slice(&source->position, entry.key);
    }
    return true;
}

/* Through the committer, each chunk is a commit. */
static bool is_enough(const struct mover *mover)
{
    size_t max = LOADS * mover->load_bytes;

    return !mover->loads || mover->gathered >= max ||
           arena_used(mover->arena) + arena_used(mover->values) >= 4 * max;
}

/* What was gathered, and behind it, if it was loaded, how far that is. */
static bool copied_write(struct mover *mover, const struct mover_source *source, struct error *err)
{
    bool fine = true;

    if (mover->loads)
        fine = flush(mover, err);
    mover->loads = false;
    mover_progress_add(mover, source);
    return fine && flush(mover, err);
}

bool mover_rekey_copy(struct mover *mover, struct mover_source *source, struct error *err)
{
    struct carried *list = NULL;
    size_t count = 0;

    mover->loads = mover_targets_can_load(mover);
    if (!mover->gathered)
        mover_gather(mover);
    if (!chunk_read(mover, source, &list, &count, err) ||
        !items_sync(mover, source, LOOK_WHERE_IT_BELONGS, list, count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        mover->figures.bytes += list[i].item.key.len + list[i].item.document.len;
    mover->figures.items += count;
    return (!source->copied && !is_enough(mover)) || copied_write(mover, source, err);
}

/* --- Catching up ----------------------------------------------------------------------------- */

/* The item of a number as the source has it. */
static bool number_take(struct mover *mover, const struct mover_source *source,
                        struct engine_snapshot *snapshot, uint64_t number,
                        struct carried *ret_carried, struct error *err)
{
    struct engine_value key, value;

    *ret_carried = (struct carried){.number = number};
    if (!engine_get(source->node->engine, snapshot, source->plan.id,
                    number_key(mover->arena, number), ENGINE_READ_ANY, mover->arena, &key, err))
        return false;
    if (key.found != ENGINE_FOUND)
        return true;
    if (!engine_get(source->node->engine, snapshot, source->plan.id,
                    item_family_key(mover->arena, PARTITION_FAMILY_ITEM, key.bytes),
                    ENGINE_READ_ANY, mover->arena, &value, err))
        return false;
    return value.found != ENGINE_FOUND ||
           item_take(mover, key.bytes, value.bytes, ret_carried, err);
}

static bool key_take(struct mover *mover, const struct mover_source *source,
                     struct engine_snapshot *snapshot, struct slice key,
                     struct carried *ret_carried, bool *ret_taken, struct error *err)
{
    struct engine_value value;

    *ret_taken = false;
    if (key.data[0] == PARTITION_FAMILY_NUMBER && key.len == 9) {
        *ret_taken = true;
        return number_take(mover, source, snapshot, bytes_get_be64(key.data + 1), ret_carried, err);
    }
    if (key.data[0] != PARTITION_FAMILY_ITEM)
        return true;
    if (!engine_get(source->node->engine, snapshot, source->plan.id, key, ENGINE_READ_ANY,
                    mover->arena, &value, err))
        return false;
    *ret_taken = value.found == ENGINE_FOUND; /* else its number tells */
    return !*ret_taken || item_take(mover, slice_skip(key, 1), value.bytes, ret_carried, err);
}

static int carried_compare(const void *a, const void *b)
{
    const struct carried *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

/* An item may have been touched by its key and by its number. */
static size_t carried_settle(struct carried *list, size_t count)
{
    size_t kept = 0;

    if (count)
        qsort(list, count, sizeof *list, carried_compare);
    for (size_t i = 0; i < count; i++)
        if (!kept || list[i].number != list[kept - 1].number)
            list[kept++] = list[i];
    return kept;
}

bool mover_rekey_keys(struct mover *mover, struct mover_source *source,
                      struct engine_snapshot *snapshot, const struct slice *keys, size_t count,
                      struct error *err)
{
    struct carried *list = NULL, carried;
    size_t items = 0;
    bool taken;

    mover->gathered = 0; /* by the rounds before, and written */
    for (size_t i = 0; i < count; i++) {
        if (!key_take(mover, source, snapshot, keys[i], &carried, &taken, err))
            return false;
        if (taken)
            carried_add(mover, &list, &items, carried);
    }
    items = carried_settle(list, items);
    for (size_t i = 0; i < items; i++)
        mover->figures.bytes += list[i].item.document.len;
    return items_sync(mover, source, LOOK_EVERYWHERE, list, items, err);
}

bool mover_rekey_again(struct mover *mover, struct mover_source *source,
                       struct engine_snapshot *snapshot, struct error *err)
{
    struct carried *list = NULL, carried;
    size_t count = 0;

    mover->gathered = 0;
    for (size_t i = 0; i < mover->conflict_count; i++) {
        if (mover->conflicts[i].source != source->plan.id)
            continue;
        if (!number_take(mover, source, snapshot, mover->conflicts[i].number, &carried, err))
            return false;
        carried_add(mover, &list, &count, carried);
    }
    return count == 0 ||
           (items_sync(mover, source, LOOK_EVERYWHERE, list, count, err) && flush(mover, err));
}
