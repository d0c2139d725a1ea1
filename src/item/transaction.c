/* Writes are planned one after the other, each for an item under the id it has then: an item keeps
 * what it is (its number) when it gets another id. What is stored in the end follows from where
 * each item was before all of them and where it is behind them; the versions in between are told to
 * the feed and to who asks what became of a write.
 *
 * So there are three lists. Seen: a key and what the snapshot has under it, read once, whatever
 * happens to it later. Entities: items, each with the place it was stored at and the place it is at
 * by now; a rename moves an entity from one seen key to another, a delete leaves it nowhere, and an
 * item that is made where one was deleted before is the same entity again. Planned: the writes in
 * their order, each with the one before it of the same entity. Reads and scans answer from what was
 * seen and written; of what was written, number, LSN and etag are provisional, above all real ones,
 * because real ones come from the committer.
 *
 * Nothing is locked and nothing is sent to the store before the commit (transaction_commit.c). The
 * moment is taken before the snapshot: a commit between the two is seen and counts as a conflict,
 * which costs a repetition; the other way round one would be missed. Every key that is written is
 * relied on, what is only read is not (snapshot isolation) unless the caller says so. A plain
 * transaction reads nothing but what it writes, and so needs no snapshot.
 *
 * Applying each write to a buffer of engine operations was weighed. It is less code for one write,
 * but a rename, or a delete and a create of one id, would take back operations of index, feed,
 * counters and unique keys one by one; from the two ends they follow in one pass. */
#include "item/transaction_private.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "document/order.h"
#include "engine/reader.h"
#include "partition/layout.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"
#include "throughput/cost.h"

#include <xxhash.h>

static const struct transaction_place *
place_new(struct arena *arena, const struct item_scope *scope, struct slice logical)
{
    struct transaction_place *place = ARENA_NEW(arena, struct transaction_place);

    place->scope = *scope;
    place->scope.engine = engine_reader_behind(scope->engine); /* never from a standby */
    place->logical = arena_copy(arena, logical);
    return place;
}

static struct transaction *transaction_new(const struct item_scope *scope, struct arena *arena)
{
    struct transaction *transaction = MEMORY_NEW(struct transaction);

    transaction->arena = arena;
    transaction->commit = scope->commit;
    transaction->is_open = true;
    transaction->now_ms = clock_read_wall_ms(scope->clock);
    transaction->moment = commit_moment(scope->commit);
    return transaction;
}

/* The owner of a unique key is found in several steps, which must be of one moment. */
bool transaction_begin_plain(const struct item_scope *scope, struct slice logical,
                             enum engine_reach reach, struct arena *arena,
                             struct transaction **ret_transaction, struct error *err)
{
    struct transaction *transaction;

    if (definition_is_unique(scope->definition) || scope->definition->bound.bytes)
        return transaction_begin(scope, logical, arena, ret_transaction, err);
    assert(scope->partition > 0 && scope->epoch > 0 && logical.len > 0);
    if (!item_scope_admits(scope, logical, err))
        return false;
    transaction = transaction_new(scope, arena);
    transaction->reach = reach;
    transaction->first = transaction->place = place_new(arena, scope, logical);
    *ret_transaction = transaction;
    return true;
}

bool transaction_is_cold(const struct transaction *transaction)
{
    return transaction->is_cold;
}

bool transaction_open_settling(const struct item_scope *scope, struct arena *arena,
                               struct transaction **ret_transaction, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = transaction_new(scope, arena);

    if (!engine_snapshot_new(engine_reader_behind(scope->engine), &transaction->snapshot, err))
        return false;
    *ret_transaction = TAKE(transaction);
    return true;
}

bool transaction_open_still(const struct item_scope *scope, struct arena *arena,
                            struct transaction **ret_transaction, struct error *err)
{
    if (!transaction_open_settling(scope, arena, ret_transaction, err))
        return false;
    (*ret_transaction)->windows = pledges_windows(commit_pledges(scope->commit));
    return true;
}

/* Windows of the partitions it is opened for are waited for. Of others it is noted where some were
 * open: the snapshot is of no use there. */
static bool open_for(const struct item_scope *scope, uint64_t partitions, struct arena *arena,
                     struct transaction **ret_transaction, struct error *err)
{
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct pledges *pledges = commit_pledges(scope->commit);
    uint64_t windows;

    if (!pledges_await(pledges, partitions, PLEDGE_BEFORE_READING, err))
        return false;
    windows = pledges_windows(pledges);
    if (!transaction_open_settling(scope, arena, &transaction, err) ||
        !pledges_await(pledges, partitions, PLEDGE_AFTER_READING, err))
        return false;
    transaction->windows = (windows | pledges_windows(pledges)) & ~partitions;
    *ret_transaction = TAKE(transaction);
    return true;
}

bool transaction_open(const struct item_scope *scope, struct arena *arena,
                      struct transaction **ret_transaction, struct error *err)
{
    return open_for(scope, pledge_bit(scope->partition), arena, ret_transaction, err);
}

/* A key that is spread is read in all of its parts. */
static uint64_t partitions_of(const struct item_scope *scope, struct slice logical)
{
    uint64_t partitions = pledge_bit(scope->partition);
    const struct partition_span *parts;
    size_t count;

    if (!transaction_is_spread(scope))
        return partitions;
    parts = partition_map_parts(scope->map, logical, &count);
    for (size_t i = 0; i < count; i++)
        partitions |= pledge_bit(parts[i].id);
    return partitions;
}

bool transaction_begin(const struct item_scope *scope, struct slice logical, struct arena *arena,
                       struct transaction **ret_transaction, struct error *err)
{
    assert(scope->partition > 0 && scope->epoch > 0 && logical.len > 0);
    if (!item_scope_admits(scope, logical, err))
        return false;
    if (!open_for(scope, partitions_of(scope, logical), arena, ret_transaction, err))
        return false;
    (*ret_transaction)->first = (*ret_transaction)->place = place_new(arena, scope, logical);
    return true;
}

void transaction_free(struct transaction *transaction)
{
    if (!transaction)
        return;
    engine_snapshot_free(transaction->snapshot);
    arena_free(transaction->overlay_arena);
    memory_free(transaction->seen);
    memory_free(transaction->entities);
    memory_free(transaction->planned);
    memory_free(transaction);
}

/* Then the snapshot is of no use in the partition. */
static bool window_was_open(const struct transaction *transaction, uint32_t partition,
                            struct error *err)
{
    return transaction->windows & pledge_bit(partition) &&
           !error_set(err, ERROR_CONFLICT,
                      "a transaction over several nodes was being applied to the partition");
}

bool transaction_enter(struct transaction *transaction, const struct item_scope *scope,
                       struct slice logical, struct error *err)
{
    assert(transaction->snapshot && scope->partition > 0 && logical.len > 0);
    if (scope->commit != transaction->commit)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "a transaction cannot span partitions on different nodes");
    /* If the map is the last one now, nobody has written by a later one before the snapshot was
     * taken; else one of the two may be what a migration has left behind. */
    if ((!transaction->first || scope->partition != transaction->first->scope.partition) &&
        scope->is_current && !scope->is_current(scope->nodes))
        return error_set(err, ERROR_FENCED,
                         "a partition has been split, merged or moved meanwhile");
    if (window_was_open(transaction, scope->partition, err) ||
        !item_scope_admits(scope, logical, err))
        return false;
    if (transaction->place && transaction->place->scope.partition == scope->partition &&
        transaction->place->scope.epoch == scope->epoch &&
        slice_equal(transaction->place->logical, logical))
        return true; /* it is there */
    transaction->place = place_new(transaction->arena, scope, logical);
    if (!transaction->first)
        transaction->first = transaction->place;
    return true;
}

void transaction_set_guard(struct transaction *transaction, transaction_guard *guard, void *self)
{
    transaction->guard = guard;
    transaction->guard_self = self;
}

struct arena *transaction_arena(const struct transaction *transaction)
{
    return transaction->arena;
}

struct engine_snapshot *transaction_snapshot(const struct transaction *transaction)
{
    return transaction->snapshot;
}

/* --- Parts ----------------------------------------------------------------------------------- */

bool transaction_is_spread(const struct item_scope *scope)
{
    return scope->map && partition_map_is_spread(scope->map);
}

/* The place of a part of the same logical partition: one for all that is seen there. */
static bool part_enter(struct transaction *transaction, const struct transaction_place *place,
                       const struct partition_span *span,
                       const struct transaction_place **ret_place, struct error *err)
{
    struct item_scope scope = place->scope;
    struct transaction_place *part = transaction->parted;

    while (part &&
           (part->scope.partition != span->id || !slice_equal(part->logical, place->logical)))
        part = part->next;
    if (part) {
        *ret_place = part;
        return true;
    }
    assert(span->node == scope.node); /* parts of a key are on one node: partition/map.h */
    if (scope.is_current && !scope.is_current(scope.nodes))
        return error_set(err, ERROR_FENCED,
                         "a partition has been split, merged or moved meanwhile");
    if (window_was_open(transaction, span->id, err))
        return false;
    part = ARENA_NEW(transaction->arena, struct transaction_place);
    scope.partition = span->id;
    scope.epoch = span->epoch;
    *part = (struct transaction_place){
        .scope = scope, .logical = place->logical, .next = transaction->parted};
    transaction->parted = part;
    *ret_place = part;
    return true;
}

/* Where an item of the logical partition is: in a part of it, if it is spread. */
static bool place_of_key(struct transaction *transaction, const struct transaction_place *place,
                         struct slice key, const struct transaction_place **ret_place,
                         struct error *err)
{
    const struct partition_span *span;

    *ret_place = place;
    if (!transaction_is_spread(&place->scope))
        return true;
    span = partition_map_find(place->scope.map, key);
    return span->id == place->scope.partition ||
           part_enter(transaction, place, span, ret_place, err);
}

/* --- Seeing ---------------------------------------------------------------------------------- */

static const struct document_names *names_of(const struct transaction *transaction)
{
    return definition_names_of(transaction->place->scope.definition);
}

static struct slice key_of(struct transaction *transaction, const struct document_value *id)
{
    return item_key(names_of(transaction), transaction->place->logical, id, transaction->arena);
}

/* Most transactions see one item. To clear buckets for them took more than all else that begins
 * one. */
static struct transaction_seen **bucket_of(struct transaction *transaction,
                                           const struct transaction_place *place, struct slice key)
{
    if (!transaction->buckets)
        return &transaction->few;
    return &transaction->buckets[XXH3_64bits_withSeed(key.data, key.len, place->scope.partition) %
                                 TRANSACTION_BUCKETS];
}

/* Of that place: containers may have equal keys. */
static struct transaction_seen *seen_find(struct transaction *transaction,
                                          const struct transaction_place *place, struct slice key)
{
    struct transaction_seen *seen = *bucket_of(transaction, place, key);

    while (seen &&
           (seen->place->scope.partition != place->scope.partition || !slice_equal(seen->key, key)))
        seen = seen->next;
    return seen;
}

static void bucket_put(struct transaction *transaction, struct transaction_seen *seen)
{
    struct transaction_seen **bucket = bucket_of(transaction, seen->place, seen->key);

    seen->next = *bucket;
    *bucket = seen;
}

static void buckets_make(struct transaction *transaction)
{
    transaction->few = NULL;
    transaction->buckets =
        arena_alloc_zero(transaction->arena,
                         memory_array_size(TRANSACTION_BUCKETS, sizeof(struct transaction_seen *)));
    for (size_t i = 0; i < transaction->seen_count; i++)
        bucket_put(transaction, transaction->seen[i]);
}

static void seen_add(struct transaction *transaction, struct transaction_seen *seen)
{
    if (transaction->seen_count == TRANSACTION_FEW)
        buckets_make(transaction);
    if (transaction->seen_count == transaction->seen_capacity) {
        transaction->seen_capacity =
            transaction->seen_capacity ? transaction->seen_capacity * 2 : 8;
        transaction->seen =
            memory_realloc(transaction->seen, memory_array_size(transaction->seen_capacity,
                                                                sizeof(struct transaction_seen *)));
    }
    transaction->seen[transaction->seen_count++] = seen;
    bucket_put(transaction, seen);
}

static bool seen_load(struct transaction *transaction, struct transaction_seen *seen,
                      struct error *err)
{
    const struct item_scope *scope = &seen->place->scope;
    struct slice key = item_family_key(transaction->arena, PARTITION_FAMILY_ITEM, seen->key);
    struct engine_value value;

    assert(transaction->is_open && !seen->is_stored && !seen->is_written);
    if (!(transaction->snapshot
              ? engine_get(scope->engine, transaction->snapshot, scope->partition, key,
                           transaction->reach, transaction->arena, &value, err)
              : item_scope_get(scope, key, transaction->reach, transaction->arena, &value, err)))
        return false;
    transaction->is_cold = value.found == ENGINE_COLD;
    if (transaction->is_cold)
        return error_set(err, ERROR_CONFLICT, "what is to be changed is not in memory");
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_decode(seen->key, value.bytes, &seen->stored, err))
        return false;
    transaction->work.bytes_read += seen->stored.document.len;
    seen->is_stored = true;
    seen->is_over =
        item_is_over(&seen->stored.header, scope->definition->default_ttl, transaction->now_ms);
    return true;
}

bool transaction_see(struct transaction *transaction, const struct transaction_place *place,
                     struct slice key, struct transaction_seen **ret_seen, struct error *err)
{
    struct transaction_seen *seen;

    if (!place_of_key(transaction, place, key, &place, err))
        return false;
    seen = seen_find(transaction, place, key);
    if (!seen) {
        if (transaction->seen_count == TRANSACTION_WRITES_MAX)
            return error_set(err, ERROR_TOO_LARGE, "a transaction touches more than %d items",
                             TRANSACTION_WRITES_MAX);
        seen = ARENA_NEW(transaction->arena, struct transaction_seen);
        seen->key = key;
        seen->place = place;
        if (!seen_load(transaction, seen, err))
            return false;
        seen_add(transaction, seen);
    }
    *ret_seen = seen;
    return true;
}

static bool seen_get(struct transaction *transaction, const struct document_value *id,
                     struct transaction_seen **ret_seen, struct error *err)
{
    return transaction_see(transaction, transaction->place, key_of(transaction, id), ret_seen, err);
}

/* NULL: there is none, as far as this transaction can see. */
static const struct item *seen_item(const struct transaction_seen *seen)
{
    assert(!seen->is_over || seen->is_stored);
    if (seen->is_written)
        return seen->after.data ? &seen->view : NULL;
    return seen->is_stored && !seen->is_over ? &seen->stored : NULL;
}

bool transaction_read(struct transaction *transaction, const struct document_value *id,
                      const struct item **ret_item, struct error *err)
{
    struct transaction_seen *seen;

    if (!seen_get(transaction, id, &seen, err))
        return false;
    *ret_item = seen_item(seen);
    return true;
}

static struct transaction_entity *entity_provisional(const struct transaction *transaction,
                                                     uint64_t number)
{
    uint64_t first = partition_number(TRANSACTION_NUMBER_SOURCE, 0);

    return number >= first && number - first < transaction->entity_count
               ? transaction->entities[number - first]
               : NULL;
}

static const struct partition_span *parts_of(const struct transaction *transaction,
                                             size_t *ret_count)
{
    const struct transaction_place *place = transaction->place;

    return partition_map_parts(place->scope.map, place->logical, ret_count);
}

/* Looked up in the part that has it. */
static bool number_look_up(struct transaction *transaction, uint64_t number,
                           struct engine_value *ret_value,
                           const struct transaction_place **ret_place, struct error *err)
{
    const struct partition_span *spans = NULL;
    uint8_t key[9] = {PARTITION_FAMILY_NUMBER};
    size_t count = 1;

    if (transaction_is_spread(&transaction->place->scope))
        spans = parts_of(transaction, &count);
    bytes_put_be64(key + 1, number);
    *ret_value = (struct engine_value){.found = ENGINE_ABSENT};
    for (size_t i = 0; i < count && ret_value->found != ENGINE_FOUND; i++) {
        const struct transaction_place *place = transaction->place;

        if (spans && spans[i].id != place->scope.partition &&
            !part_enter(transaction, place, &spans[i], &place, err))
            return false;
        if (!engine_get(place->scope.engine, transaction->snapshot, place->scope.partition,
                        slice_of(key, sizeof key), ENGINE_READ_ANY, transaction->arena, ret_value,
                        err))
            return false;
        *ret_place = place;
    }
    return true;
}

/* The key of the item with this number by now; empty: there is none. */
static bool number_key(struct transaction *transaction, uint64_t number, struct slice *ret_key,
                       struct error *err)
{
    const struct transaction_entity *entity = entity_provisional(transaction, number);
    const struct transaction_place *place;
    const struct transaction_seen *seen;
    struct engine_value value;

    *ret_key = SLICE_NONE;
    if (!entity) {
        if (!number_look_up(transaction, number, &value, &place, err))
            return false;
        if (value.found != ENGINE_FOUND)
            return true;
        *ret_key = value.bytes;
        seen = seen_find(transaction, place, value.bytes);
        entity = seen ? seen->own : NULL;
    }
    if (entity)
        *ret_key = entity->at ? entity->at->key : SLICE_NONE;
    return true;
}

bool transaction_find_number(struct transaction *transaction, uint64_t number,
                             struct document_value *ret_id, bool *ret_found, struct error *err)
{
    struct slice key, id;

    *ret_found = false;
    if (!number_key(transaction, number, &key, err))
        return false;
    if (!key.len || !slice_starts_with(key, transaction->place->logical))
        return true;
    id = slice_skip(key, transaction->place->logical.len);
    *ret_found = true;
    return document_key_read(names_of(transaction)->identity_order, &id, transaction->arena, ret_id,
                             err);
}

bool transaction_number(const struct transaction *transaction, uint64_t provisional,
                        uint64_t *ret_number)
{
    const struct transaction_entity *entity = entity_provisional(transaction, provisional);

    if (!entity || !entity->change)
        return false;
    *ret_number = entity->change->header.number;
    return true;
}

void transaction_rely(struct transaction *transaction, const struct document_value *id)
{
    struct slice key = key_of(transaction, id);
    const struct transaction_place *place = transaction->place;
    struct transaction_seen *seen;
    struct error unused;

    if (!place_of_key(transaction, place, key, &place, &unused))
        assert(!"it was entered when the item was read");
    seen = seen_find(transaction, place, key);
    assert(seen);
    seen->is_relied = true;
}

/* Versions are told apart by what the commit gave them. */
static bool is_same_version(const struct item_header *a, const struct item_header *b)
{
    return a->lsn == b->lsn && a->origin == b->origin && a->ordinal == b->ordinal &&
           a->number == b->number;
}

bool transaction_is_late(struct transaction *transaction, const struct document_value *id,
                         bool *ret_late, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct item_scope *scope;
    struct transaction_seen *seen;
    struct engine_value value;
    struct item now;

    if (!seen_get(transaction, id, &seen, err))
        return false;
    scope = &seen->place->scope;
    if (!engine_get(scope->engine, NULL, scope->partition,
                    item_family_key(arena, PARTITION_FAMILY_ITEM, seen->key), ENGINE_READ_ANY,
                    arena, &value, err))
        return false;
    *ret_late = seen->is_stored != (value.found == ENGINE_FOUND);
    if (*ret_late || !seen->is_stored)
        return true;
    if (!item_decode(seen->key, value.bytes, &now, err))
        return false;
    *ret_late = !is_same_version(&now.header, &seen->stored.header);
    return true;
}

/* --- Scanning -------------------------------------------------------------------------------- */

static int seen_compare(const void *left, const void *right)
{
    return slice_compare((*(const struct transaction_seen *const *)left)->key,
                         (*(const struct transaction_seen *const *)right)->key);
}

/* What the transaction has written in a place behind a position, by key. */
static const struct transaction_seen **written_after(struct transaction *transaction,
                                                     const struct transaction_place *place,
                                                     struct slice after, size_t *ret_count)
{
    const struct transaction_seen **written =
        ARENA_ARRAY(transaction->arena, const struct transaction_seen *, transaction->seen_count);
    size_t count = 0;

    for (size_t i = 0; i < transaction->seen_count; i++) {
        const struct transaction_seen *seen = transaction->seen[i];

        if (seen->is_written && seen->place->scope.partition == place->scope.partition &&
            slice_starts_with(seen->key, place->logical) && slice_compare(seen->key, after) > 0)
            written[count++] = seen;
    }
    qsort(written, count, sizeof *written, seen_compare);
    *ret_count = count;
    return written;
}

/* All keys of the logical partition behind a position. Ids begin with neither 00 nor FF. */
static struct engine_range logical_range(struct transaction *transaction, struct slice after)
{
    struct arena *arena = transaction->arena;
    struct slice logical = transaction->place->logical;
    struct slice from = after.len ? after : logical;
    uint8_t *min = arena_alloc(arena, 2 + from.len), *max = arena_alloc(arena, 2 + logical.len);

    min[0] = max[0] = PARTITION_FAMILY_ITEM;
    memcpy(min + 1, from.data, from.len);
    min[1 + from.len] = 0;
    memcpy(max + 1, logical.data, logical.len);
    max[1 + logical.len] = 0xFF;
    return (struct engine_range){.min = slice_of(min, 2 + from.len),
                                 .max = slice_of(max, 2 + logical.len)};
}

static void scanned_note(struct transaction *transaction, const struct transaction_place *place,
                         struct engine_range range, const struct transaction_page *page)
{
    struct transaction_scanned *scanned = ARENA_NEW(transaction->arena, struct transaction_scanned);

    assert(!page->more || page->count > 0);
    /* A page that ended early looked no further than its last item. */
    if (page->more) {
        struct slice last =
            item_family_key(transaction->arena, PARTITION_FAMILY_ITEM, page->position);
        uint8_t *max = arena_alloc(transaction->arena, last.len + 1);

        memcpy(max, last.data, last.len);
        max[last.len] = 0;
        range.max = slice_of(max, last.len + 1);
    }
    *scanned =
        (struct transaction_scanned){.place = place, .range = range, .next = transaction->scanned};
    transaction->scanned = scanned;
}

/* The next stored item; *ret_item.document.data NULL: there is none. */
static bool stored_next(struct transaction *transaction, struct engine_iterator *iterator,
                        struct item *ret_item, struct error *err)
{
    struct engine_entry entry;

    do {
        *ret_item = (struct item){0};
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!item_decode(arena_copy(transaction->arena, slice_skip(entry.key, 1)),
                         arena_copy(transaction->arena, entry.value), ret_item, err))
            return false;
        transaction->work.bytes_read += ret_item->document.len;
    } while (item_is_over(&ret_item->header, transaction->place->scope.definition->default_ttl,
                          transaction->now_ms));
    return true;
}

/* Both lists are sorted; where both have a key, what was written counts. */
static bool scan_merge(struct transaction *transaction, struct engine_iterator *iterator,
                       const struct transaction_seen **written, size_t written_count, size_t max,
                       struct transaction_page *page, struct error *err)
{
    struct item stored;
    size_t w = 0;

    if (!stored_next(transaction, iterator, &stored, err))
        return false;
    while (stored.document.data || w < written_count) {
        int order = !stored.document.data ? 1
                    : w == written_count  ? -1
                                          : slice_compare(stored.key, written[w]->key);
        const struct item *item = order < 0 ? &stored : seen_item(written[w]);

        if (item && page->count == max) {
            page->more = true;
            return true;
        }
        if (item) {
            assert(page->count < max);
            page->items[page->count++] = *item;
            page->position = item->key;
        }
        w += order >= 0;
        if (order <= 0 && !stored_next(transaction, iterator, &stored, err))
            return false;
    }
    return true;
}

/* Adds to the page what a place has behind a position. */
static bool place_scan(struct transaction *transaction, const struct transaction_place *place,
                       struct slice after, size_t max, bool rely, struct transaction_page *page,
                       struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct item_scope *scope = &place->scope;
    struct engine_range range = logical_range(transaction, after);
    size_t written_count;
    const struct transaction_seen **written =
        written_after(transaction, place, after, &written_count);

    if (!engine_iterator_new(scope->engine, transaction->snapshot, scope->partition, range, false,
                             ENGINE_READ_ANY, &iterator, err) ||
        !scan_merge(transaction, iterator, written, written_count, max, page, err))
        return false;
    if (rely)
        scanned_note(transaction, place, range, page);
    return true;
}

bool transaction_scan(struct transaction *transaction, struct slice after, size_t max, bool rely,
                      struct transaction_page *ret_page, struct error *err)
{
    const struct transaction_place *here = transaction->place, *place = here;
    struct transaction_page page = {.position = after};
    const struct partition_span *spans = NULL;
    size_t count = 1;

    assert(max > 0);
    page.items = ARENA_ARRAY(transaction->arena, struct item, max);
    if (transaction_is_spread(&here->scope))
        spans = parts_of(transaction, &count); /* in the order of ids */
    for (size_t i = 0; i < count && !page.more; i++) {
        if (spans && after.len && slice_compare(spans[i].max, after) <= 0)
            continue;
        place = here;
        if (spans && spans[i].id != here->scope.partition &&
            !part_enter(transaction, here, &spans[i], &place, err))
            return false;
        if (!place_scan(transaction, place, after, max, rely, &page, err))
            return false;
    }
    *ret_page = page;
    return true;
}

/* --- Planning -------------------------------------------------------------------------------- */

/* Of what the transaction itself has written, the etag is provisional. */
static bool etag_fits(const struct item *item, struct slice etag)
{
    char text[ITEM_ETAG_LEN];

    assert(etag.len > 0);
    if (slice_equal(etag, SLICE("*")))
        return item != NULL;
    if (!item)
        return false;
    item_etag(&item->header, text);
    return slice_equal(etag, slice_of(text, sizeof text));
}

static bool precondition_check(const struct item *item, const struct transaction_options *options,
                               bool missing_is_fine, struct error *err)
{
    if (options->if_match.len && !(missing_is_fine && !item) && !etag_fits(item, options->if_match))
        return error_set(err, ERROR_PRECONDITION_FAILED,
                         "the item has changed: its etag is not the one of if-match");
    if (options->if_none_match.len && etag_fits(item, options->if_none_match))
        return error_set(err, ERROR_PRECONDITION_FAILED,
                         "the item exists with the etag of if-none-match");
    return true;
}

/* -1 or a positive number of seconds; anything else is refused. */
static bool ttl_of(const struct document_names *names, struct slice document, int32_t *ret_ttl,
                   struct error *err)
{
    struct document_value value;
    int64_t ttl;

    *ret_ttl = 0;
    if (!names->ttl.len || !document_find(document, names->ttl, &value))
        return true;
    if (!document_to_int64(&value, &ttl) || (ttl != -1 && (ttl < 1 || ttl > INT32_MAX)))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the ttl of an item must be -1 or a positive whole number of seconds");
    *ret_ttl = (int32_t)ttl;
    return true;
}

static bool verb_check(enum transaction_verb verb, const struct item *item, struct error *err)
{
    if (verb == TRANSACTION_CREATE && item)
        return error_set(err, ERROR_ITEM_EXISTS,
                         "entity with the specified id already exists in the system");
    if ((verb == TRANSACTION_REPLACE || verb == TRANSACTION_DELETE) && !item)
        return error_set(err, ERROR_ITEM_MISSING,
                         "entity with the specified id does not exist in the system");
    return true;
}

static struct transaction_entity *entity_new(struct transaction *transaction,
                                             struct transaction_seen *stored)
{
    struct transaction_entity *entity = ARENA_NEW(transaction->arena, struct transaction_entity);

    assert(!stored || stored->is_stored);
    if (transaction->entity_count == transaction->entity_capacity) {
        transaction->entity_capacity =
            transaction->entity_capacity ? transaction->entity_capacity * 2 : 8;
        transaction->entities = memory_realloc(
            transaction->entities,
            memory_array_size(transaction->entity_capacity, sizeof(struct transaction_entity *)));
    }
    *entity = (struct transaction_entity){
        .stored = stored, .last = NO_WRITE_BEFORE, .index = transaction->entity_count};
    transaction->entities[transaction->entity_count++] = entity;
    return entity;
}

/* The item that a write here is about. One that was deleted and is made again stays what it was. */
static struct transaction_entity *entity_of(struct transaction *transaction,
                                            struct transaction_seen *seen, bool exists)
{
    if (exists && seen->here)
        return seen->here;
    if (!exists && seen->own && !seen->own->at)
        return seen->own;
    if (exists)
        return seen->own = entity_new(transaction, seen);
    return entity_new(transaction, NULL);
}

void transaction_note(struct transaction *transaction, struct transaction_planned planned)
{
    assert(transaction->planned_count < TRANSACTION_WRITES_MAX);
    if (transaction->planned_count == transaction->planned_capacity) {
        transaction->planned_capacity =
            transaction->planned_capacity ? transaction->planned_capacity * 2 : 8;
        transaction->planned =
            memory_realloc(transaction->planned, memory_array_size(transaction->planned_capacity,
                                                                   sizeof *transaction->planned));
    }
    planned.before = NO_WRITE_BEFORE;
    if (planned.entity) {
        planned.before = planned.entity->last;
        planned.entity->last = transaction->planned_count;
    }
    transaction->planned[transaction->planned_count++] = planned;
}

/* Under a random suffix an id is unique within its base, which only a claim can promise; and the
 * index on id is how it is found. */
static bool random_suffix_check(const struct item *item, const struct transaction_options *options,
                                struct error *err)
{
    if (options->not_indexed)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "an item cannot be left out of the index in a container with a random "
                         "suffix: it is found by it");
    return item || options->id_is_free ||
           error_set(err, ERROR_NOT_SUPPORTED,
                     "a transaction cannot create items in a container with a random suffix: their "
                     "ids are unique across all suffixes");
}

/* For every write of every API: here nobody passes by. there: the item that has the id it is
 * written under, NULL: none. */
static bool synthetic_apply(struct transaction *transaction, const struct item *item,
                            const struct item *there, const struct transaction_options *options,
                            struct slice *document, struct error *err)
{
    const struct partition_definition *definition = &transaction->place->scope.definition->key;
    struct slice rest = transaction->place->logical;
    struct partition_key key;

    if (partition_synthetic_is_random(definition) && !random_suffix_check(there, options, err))
        return false;
    return partition_route_skip(definition, &rest, err) &&
           partition_key_read(definition, &rest, transaction->arena, &key, err) &&
           partition_synthetic_fill(definition, &key, item ? item->document : SLICE_NONE, *document,
                                    transaction->arena, document, err);
}

static struct item_header header_provisional(const struct transaction *transaction,
                                             const struct transaction_entity *entity,
                                             const struct item *before)
{
    assert(entity->index < transaction->entity_count);
    return (struct item_header){
        .number = before ? before->header.number
                         : partition_number(TRANSACTION_NUMBER_SOURCE, (uint32_t)entity->index),
        .lsn = TRANSACTION_LSN_PROVISIONAL,
        .ordinal = (uint32_t)transaction->planned_count,
        .wall_ms = transaction->now_ms,
    };
}

/* Where a write leaves the item: where it is, or under another id, which must be free. */
static bool destination(struct transaction *transaction, struct transaction_seen *seen,
                        const struct transaction_options *options, struct transaction_seen **ret_to,
                        struct error *err)
{
    *ret_to = seen;
    if (!options->new_id)
        return true;
    if (!seen_get(transaction, options->new_id, ret_to, err))
        return false;
    if ((*ret_to)->place->scope.partition != seen->place->scope.partition)
        return error_set(
            err, ERROR_NOT_SUPPORTED,
            "an item of a spread key cannot get an id that lies in another part of it: "
            "create it anew and delete the old one");
    return *ret_to == seen || verb_check(TRANSACTION_CREATE, seen_item(*ret_to), err);
}

static void seen_note(struct transaction_seen *seen, struct transaction_entity *entity)
{
    if (!seen->first)
        seen->first = entity;
    seen->is_shared = seen->is_shared || seen->first != entity;
}

/* The item is deleted, or has gone elsewhere already. */
static void seen_leave(struct transaction_seen *seen, struct transaction_entity *entity)
{
    seen_note(seen, entity);
    seen->is_written = true;
    seen->after = SLICE_NONE;
    seen->here = NULL;
    if (entity->at == seen)
        entity->at = NULL;
}

static void seen_put(struct transaction *transaction, struct transaction_seen *seen,
                     struct transaction_entity *entity, const struct item *before,
                     struct slice document)
{
    seen_note(seen, entity);
    seen->view = (struct item){.header = header_provisional(transaction, entity, before),
                               .key = seen->key,
                               .document = document};
    seen->is_written = true;
    seen->after = document;
    seen->expired = false;
    seen->here = entity;
    entity->at = seen;
}

void transaction_record_add(struct transaction *transaction, const struct write_record *record)
{
    struct transaction_record *added = ARENA_NEW(transaction->arena, struct transaction_record);

    *added = (struct transaction_record){
        .place = transaction->place, .record = record, .next = transaction->records};
    transaction->records = added;
}

void transaction_beside(struct transaction *transaction, const struct engine_op *op)
{
    struct transaction_record *added = ARENA_NEW(transaction->arena, struct transaction_record);

    *added = (struct transaction_record){
        .place = transaction->place, .op = op, .next = transaction->records};
    transaction->records = added;
}

bool transaction_write(struct transaction *transaction, const struct document_value *id,
                       enum transaction_verb verb, struct slice document,
                       const struct transaction_options *options, struct error *err)
{
    static const struct transaction_options none;
    const struct item *item;
    struct transaction_entity *entity;
    struct transaction_seen *seen, *to;
    int32_t ttl = 0;

    if (!options)
        options = &none;
    assert(!options->new_id || verb == TRANSACTION_REPLACE);
    assert(transaction->is_open && (verb == TRANSACTION_DELETE || document.data));
    if (transaction->planned_count == TRANSACTION_WRITES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "a transaction writes more than %d times",
                         TRANSACTION_WRITES_MAX);
    if (!item_scope_admits_write(&transaction->place->scope, transaction->place->logical, err) ||
        !seen_get(transaction, id, &seen, err) ||
        (transaction->guard && !transaction->guard(transaction->guard_self,
                                                   seen->place->scope.partition, seen->key, err)))
        return false;
    item = seen_item(seen);
    if (!verb_check(verb, item, err) ||
        !precondition_check(item, options, verb == TRANSACTION_UPSERT, err) ||
        (verb != TRANSACTION_DELETE && !ttl_of(names_of(transaction), document, &ttl, err)) ||
        !destination(transaction, seen, options, &to, err))
        return false;
    if (transaction->place->scope.definition->key.synthetic && verb != TRANSACTION_DELETE &&
        !synthetic_apply(transaction, item, to == seen ? item : NULL, options, &document, err))
        return false;
    entity = entity_of(transaction, seen, item != NULL);
    if (verb == TRANSACTION_DELETE)
        document = SLICE_NONE;
    if (verb != TRANSACTION_DELETE)
        seen_put(transaction, to, entity, item, document);
    if (verb == TRANSACTION_DELETE || to != seen)
        seen_leave(seen, entity);
    transaction_note(transaction, (struct transaction_planned){
                                      .seen = to,
                                      .entity = entity,
                                      .created = !item,
                                      .after = document,
                                      .flags = options->not_indexed ? ITEM_NOT_INDEXED : 0,
                                      .ttl = ttl,
                                      .description = options->description});
    assert(verb == TRANSACTION_DELETE ? !entity->at : entity->at == to && to->here == entity);
    if (options->record)
        transaction_record_add(transaction, options->record);
    transaction->work.writes++;
    transaction->work.bytes_written += document.len;
    return true;
}

bool transaction_remove_expired(struct transaction *transaction, const struct document_value *id,
                                bool (*is_over)(const struct item *item, void *context),
                                void *context, struct error *err)
{
    struct transaction_seen *seen;

    if (!seen_get(transaction, id, &seen, err))
        return false;
    if (!seen->is_stored || seen->is_written)
        return true;
    if (is_over && !seen->is_over)
        seen->is_over = is_over(&seen->stored, context);
    if (!seen->is_over)
        return true;
    assert(!seen->here && !seen->own);
    seen->is_written = true;
    seen->after = SLICE_NONE;
    seen->expired = true;
    transaction->work.writes++;
    transaction_note(transaction, (struct transaction_planned){.seen = seen});
    return true;
}
