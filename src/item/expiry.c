/* Items with a ttl of their own stand in the order they expire, those without one in the order they
 * were written: so a changed default needs no rewriting. Each is removed by a transaction of its
 * own; one that was written meanwhile is simply no longer due. */
#include "item/expiry.h"

#include "base/bytes.h"
#include "document/order.h"
#include "item/transaction.h"
#include "partition/layout.h"

/* t | class, then everything due: below time + 1. */
static struct engine_range due_range(uint8_t class, int64_t last_due_s, struct arena *arena)
{
    uint8_t *min = arena_alloc(arena, 2), *max = arena_alloc(arena, 10);

    min[0] = max[0] = PARTITION_FAMILY_EXPIRY;
    min[1] = max[1] = class;
    bytes_put_be64(max + 2, (uint64_t)MAX(last_due_s, (int64_t)-1) + 1);
    return (struct engine_range){.min = slice_of(min, 2), .max = slice_of(max, 10)};
}

static bool item_remove(const struct item_scope *scope, struct slice key, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_key_parts parts;
    struct document_value id;

    if (!item_key_split(&scope->definition->key, key, &parts, err) ||
        !document_key_read(definition_names_of(scope->definition)->identity_order, &parts.id, arena,
                           &id, err) ||
        !transaction_begin(scope, parts.logical, arena, &transaction, err) ||
        !transaction_remove_expired(transaction, &id, err))
        return false;
    if (transaction_commit(transaction, err) || err->code == ERROR_CONFLICT)
        return true;
    return false;
}

static bool sweep_class(const struct item_scope *scope, uint8_t class, int64_t last_due_s,
                        size_t max, size_t *removed, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    assert(class <= 1 && *removed <= max);
    if (!engine_iterator_new(scope->engine, NULL, scope->partition,
                             due_range(class, last_due_s, arena), false, ENGINE_READ_ANY, &iterator,
                             err))
        return false;
    while (*removed < max) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!item_remove(scope, arena_copy(arena, entry.value), err))
            return false;
        (*removed)++;
    }
    return true;
}

bool expiry_sweep(const struct item_scope *scope, size_t max, size_t *ret_removed,
                  struct error *err)
{
    int64_t now_s = clock_read_wall_ms(scope->clock) / 1000;
    int32_t default_ttl = scope->definition->default_ttl;
    size_t removed = 0;

    if (default_ttl != DEFINITION_TTL_OFF && !sweep_class(scope, 1, now_s, max, &removed, err))
        return false;
    if (default_ttl > 0 && !sweep_class(scope, 0, now_s - default_ttl, max, &removed, err))
        return false;
    *ret_removed = removed;
    return true;
}
