/* Bounded containers (definition.h): what a commit adds above the bound, the oldest items make room
 * for, in the same commit. Two that remove the same one conflict, and the second looks again.
 *
 * Items are numbered as they are made, so that the oldest stand first among numbers. What was
 * removed there lies on top of the rest until the engine compacts it away; the committer remembers
 * up to where, so that nobody passes over it twice. */
#include "item/transaction_private.h"

#include "base/bytes.h"
#include "item/cursor.h"
#include "partition/layout.h"

enum { NUMBER_KEY_LEN = 9, EVICTED_MAX = 16384 }; /* in one commit; the next one goes on */

/* What is over the bound. */
struct excess {
    int64_t bytes, items;
};

static int64_t stored_bytes(struct slice key, struct slice document)
{
    return (int64_t)(1 + key.len + ITEM_HEADER_LEN + document.len);
}

/* What the section adds, all in all. */
static struct excess section_adds(const struct transaction_section *section)
{
    struct excess adds = {0};

    for (size_t i = 0; i < section->change_count; i++) {
        const struct write_set_change *change = &section->changes[i];

        if (change->before) {
            adds.bytes -= stored_bytes(change->from.data ? change->from : change->key,
                                       change->before->document);
            adds.items--;
        }
        if (change->after.data) {
            adds.bytes += stored_bytes(change->key, change->after);
            adds.items++;
        }
    }
    return adds;
}

static bool is_over(const struct excess *excess, const struct definition_bound *bound)
{
    return excess->bytes > bound->bytes || (bound->items && excess->items > bound->items);
}

/* What goes, and how much is held without it. */
struct eviction {
    struct transaction *transaction;
    const struct transaction_place *place;
    struct excess held;
    size_t count, max;
    bool noted; /* as writes of the transaction's own */
};

/* Plans that it goes, unless it is written anyway. */
static void item_evict(struct eviction *eviction, struct transaction_seen *seen)
{
    if (!seen->is_stored || seen->is_written)
        return;
    seen->is_written = seen->makes_room = true;
    seen->after = SLICE_NONE;
    eviction->held.bytes -= stored_bytes(seen->key, seen->stored.document);
    eviction->held.items--;
    eviction->count++;
    if (eviction->noted)
        transaction_note(eviction->transaction, (struct transaction_planned){.seen = seen});
}

static bool oldest_evict(struct eviction *eviction, struct error *err)
{
    struct transaction *transaction = eviction->transaction;
    const struct transaction_place *place = eviction->place;
    const struct item_scope *scope = &place->scope;
    static const uint8_t behind[] = {PARTITION_FAMILY_NUMBER + 1};
    uint8_t first[NUMBER_KEY_LEN] = {PARTITION_FAMILY_NUMBER};
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    bytes_put_be64(first + 1, commit_partition_oldest(scope->commit, scope->partition));
    if (!engine_iterator_new(
            scope->engine, transaction->snapshot, scope->partition,
            (struct engine_range){slice_of(first, sizeof first), slice_of(behind, 1)}, false,
            ENGINE_READ_ANY, &iterator, err))
        return false;
    for (size_t i = 0;
         eviction->count < eviction->max && is_over(&eviction->held, &scope->definition->bound);
         i++) {
        struct transaction_seen *seen;
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (i == 0 && entry.key.len == NUMBER_KEY_LEN)
            commit_partition_note_oldest(scope->commit, scope->partition,
                                         bytes_get_be64(entry.key.data + 1));
        if (!transaction_see(transaction, place, arena_copy(transaction->arena, entry.value), &seen,
                             err))
            return false;
        item_evict(eviction, seen);
    }
    return true;
}

static const struct transaction_place *place_in(const struct transaction *transaction,
                                                const struct item_scope *scope)
{
    for (size_t i = 0; i < transaction->seen_count; i++)
        if (&transaction->seen[i]->place->scope == scope)
            return transaction->seen[i]->place;
    return NULL;
}

/* Removes what is too much, with what is added. */
static bool room_make(struct eviction *eviction, struct error *err)
{
    const struct item_scope *scope = &eviction->place->scope;
    const struct view view = view_of(scope, eviction->transaction->snapshot);
    uint64_t items, bytes;

    if (!view_count(&view, SLICE_NONE, &items, &bytes, err))
        return false;
    eviction->held.bytes += (int64_t)bytes;
    eviction->held.items += (int64_t)items;
    return !is_over(&eviction->held, &scope->definition->bound) || oldest_evict(eviction, err);
}

bool transaction_bound_keep(struct transaction *transaction,
                            const struct transaction_section *section, bool *evicted,
                            struct error *err)
{
    struct eviction eviction = {.transaction = transaction,
                                .place = place_in(transaction, section->scope),
                                .held = section_adds(section),
                                .max = EVICTED_MAX};

    assert(eviction.place);
    if (eviction.held.bytes <= 0 && eviction.held.items <= 0)
        return true;
    if (!room_make(&eviction, err))
        return false;
    *evicted = *evicted || eviction.count;
    return true;
}

bool transaction_make_room(struct transaction *transaction, size_t max, size_t *ret_removed,
                           struct error *err)
{
    struct eviction eviction = {
        .transaction = transaction, .place = transaction->place, .max = max, .noted = true};

    *ret_removed = 0;
    if (!eviction.place->scope.definition->bound.bytes)
        return true;
    if (!room_make(&eviction, err))
        return false;
    transaction->work.writes += eviction.count;
    *ret_removed = eviction.count;
    return true;
}
