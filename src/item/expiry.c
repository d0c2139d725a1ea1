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

/* What an index has of items that are to go. */
struct due {
    const struct index_definition *index;
    struct engine_range ranges[2]; /* dates, and numbers as seconds since 1970 */
    size_t range_count;            /* MongoDB takes numbers for no dates */
};

static bool is_due(const struct item *item, void *context)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct due *due = context;
    struct index_entry *entries;
    struct error unused;
    size_t count;

    if (item->header.flags & ITEM_NOT_INDEXED ||
        !index_definition_entries(due->index, item->document, arena, &entries, &count, &unused))
        return false;
    for (size_t i = 0; i < count; i++)
        for (size_t r = 0; r < due->range_count; r++)
            if (slice_compare(entries[i].bytes, slice_skip(due->ranges[r].min, 1)) >= 0 &&
                slice_compare(entries[i].bytes, slice_skip(due->ranges[r].max, 1)) < 0)
                return true;
    return false;
}

/* due NULL: if its own time is over. */
static bool item_remove(const struct item_scope *scope, struct slice key, struct due *due,
                        struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    struct item_key_parts parts;
    struct document_value id;

    if (!item_key_split(&scope->definition->key, key, &parts, err) ||
        !document_key_read(definition_names_of(scope->definition)->identity_order, &parts.id, arena,
                           &id, err) ||
        !transaction_begin(scope, parts.logical, arena, &transaction, err) ||
        !transaction_remove_expired(transaction, &id, due ? is_due : NULL, due, err))
        return false;
    if (transaction_commit(transaction, err) || err->code == ERROR_CONFLICT)
        return true;
    return false;
}

bool expiry_remove(const struct item_scope *scope, struct slice key, struct error *err)
{
    return item_remove(scope, key, NULL, err);
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
        if (!item_remove(scope, arena_copy(arena, entry.value), NULL, err))
            return false;
        (*removed)++;
    }
    return true;
}

/* --- By indexes ------------------------------------------------------------------------------ */

/* i | prefix | from the least value of the type to this one. */
static struct engine_range due_values(const struct index_definition *index,
                                      struct document_value last, struct arena *arena)
{
    static const uint8_t behind[] = {0xFF}; /* neither a value nor a routing key begins so */
    CLEANUP(buf_done) struct buf key;
    struct slice min, max;

    buf_init(&key, BUF_DEFAULT_MAX);
    document_key_append(index->order, &last, &key);
    min = slice_of(key.data, 1); /* the place of its type */
    max = arena_join(arena, (struct slice[]){buf_slice(&key), slice_of(behind, 1)}, 2);
    if (index->parts[0].descending) {
        uint8_t *type = arena_alloc(arena, 1);

        for (size_t i = 0; i < key.len; i++)
            key.data[i] = (uint8_t)~key.data[i];
        type[0] = (uint8_t)(key.data[0] + 1);
        min = buf_slice(&key);
        max = slice_of(type, 1);
    }
    return (struct engine_range){
        .min = arena_join(arena, (struct slice[]){SLICE("i"), index->prefix, min}, 3),
        .max = arena_join(arena, (struct slice[]){SLICE("i"), index->prefix, max}, 3)};
}

static bool sweep_range(const struct item_scope *scope, struct due *due,
                        const struct engine_range *range, size_t max, size_t *removed,
                        struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    if (!engine_iterator_new(scope->engine, NULL, scope->partition, *range, false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    while (*removed < max) {
        uint8_t number[9] = {PARTITION_FAMILY_NUMBER};
        struct engine_entry entry;
        struct engine_value key;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        memcpy(number + 1, entry.key.data + entry.key.len - 8, 8);
        if (!engine_get(scope->engine, NULL, scope->partition, slice_of(number, sizeof number),
                        ENGINE_READ_ANY, arena, &key, err) ||
            (key.found == ENGINE_FOUND && !item_remove(scope, key.bytes, due, err)))
            return false;
        (*removed)++;
    }
    return true;
}

static bool sweep_index(const struct item_scope *scope, const struct index_definition *index,
                        int64_t now_ms, size_t max, size_t *removed, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    int64_t last_ms = now_ms - (int64_t)index->expire_after_s * 1000;
    struct due due = {.index = index, .range_count = index->order == DOCUMENT_ORDER_MONGO ? 1 : 2};

    due.ranges[0] = due_values(index, document_date(last_ms), arena);
    due.ranges[1] = due_values(index, document_int64(last_ms / 1000), arena);
    for (size_t i = 0; i < due.range_count; i++)
        if (!sweep_range(scope, &due, &due.ranges[i], max, removed, err))
            return false;
    return true;
}

static bool expires(const struct index_definition *index)
{
    return index->expire_after_s != INDEX_EXPIRES_NEVER && index->state == INDEX_READY;
}

bool expiry_is_on(const struct definition_fields *definition)
{
    size_t count;
    const struct index_definition *const *list = index_policy_besides(definition->policy, &count);
    bool on = definition->default_ttl != DEFINITION_TTL_OFF;

    for (size_t i = 0; i < count; i++)
        on = on || expires(list[i]);
    return on;
}

/* --- What comes next ------------------------------------------------------------------------- */

/* The first key of a range, behind so many bytes; none: SLICE_NONE. */
static bool first_of(const struct item_scope *scope, struct engine_range range, size_t skipped,
                     struct arena *arena, struct slice *ret_rest, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;

    *ret_rest = SLICE_NONE;
    if (!engine_iterator_new(scope->engine, NULL, scope->partition, range, false, ENGINE_READ_ANY,
                             &iterator, err) ||
        !engine_iterator_next(iterator, &entry, err))
        return false;
    if (entry.found == ENGINE_FOUND)
        *ret_rest = arena_copy(arena, slice_skip(entry.key, skipped));
    return true;
}

static bool next_of_class(const struct item_scope *scope, uint8_t class, int64_t ttl_s,
                          int64_t *next_ms, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice rest;

    if (!first_of(scope, due_range(class, INT64_MAX - 1, arena), 2, arena, &rest, err))
        return false;
    if (rest.len >= 8)
        *next_ms = MIN(*next_ms, ((int64_t)bytes_get_be64(rest.data) + ttl_s) * 1000);
    return true;
}

/* When an item with this date, or these seconds since 1970, goes; 0: look again soon. */
static int64_t value_ms(const struct document_value *value, int64_t after_s)
{
    static const int64_t far_ms = INT64_C(1) << 60;
    double ms = value->type == DOCUMENT_DATE     ? (double)value->int64
                : value->type == DOCUMENT_INT32  ? value->int32 * 1e3
                : value->type == DOCUMENT_INT64  ? (double)value->int64 * 1e3
                : value->type == DOCUMENT_DOUBLE ? value->number * 1e3
                                                 : 0;

    ms += (double)after_s * 1e3;
    return ms < (double)far_ms ? (int64_t)MAX(ms, 0.0) : far_ms;
}

/* The dates of an index, and the numbers it takes for dates, in their order from the oldest. */
static bool next_of_index(const struct item_scope *scope, const struct index_definition *index,
                          int64_t *next_ms, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value lasts[] = {document_date(INT64_MAX), document_int64(INT64_MAX)};

    if (index->parts[0].descending) {
        *next_ms = 0; /* the oldest is the last of many: it is looked for again in a pause */
        return true;
    }
    for (size_t i = 0; i < (index->order == DOCUMENT_ORDER_MONGO ? 1 : ARRAY_LEN(lasts)); i++) {
        struct document_value value;
        struct slice rest;

        if (!first_of(scope, due_values(index, lasts[i], arena), 1 + index->prefix.len, arena,
                      &rest, err))
            return false;
        if (!rest.len)
            continue;
        if (!document_key_read(index->order, &rest, arena, &value, err))
            return false;
        *next_ms = MIN(*next_ms, value_ms(&value, index->expire_after_s));
    }
    return true;
}

bool expiry_next(const struct item_scope *scope, int64_t *ret_wall_ms, struct error *err)
{
    size_t count;
    const struct index_definition *const *list = index_policy_besides(scope->policy, &count);
    int32_t default_ttl = scope->definition->default_ttl;
    int64_t next_ms = INT64_MAX;

    if (default_ttl != DEFINITION_TTL_OFF && !next_of_class(scope, 1, 0, &next_ms, err))
        return false;
    if (default_ttl > 0 && !next_of_class(scope, 0, default_ttl, &next_ms, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (expires(list[i]) && !next_of_index(scope, list[i], &next_ms, err))
            return false;
    *ret_wall_ms = next_ms;
    return true;
}

/* --- All of it ------------------------------------------------------------------------------- */

bool expiry_sweep(const struct item_scope *scope, size_t max, size_t *ret_removed,
                  struct error *err)
{
    int64_t now_ms = clock_read_wall_ms(scope->clock), now_s = now_ms / 1000;
    size_t count;
    const struct index_definition *const *list = index_policy_besides(scope->policy, &count);
    int32_t default_ttl = scope->definition->default_ttl;
    size_t removed = 0;

    if (default_ttl != DEFINITION_TTL_OFF && !sweep_class(scope, 1, now_s, max, &removed, err))
        return false;
    if (default_ttl > 0 && !sweep_class(scope, 0, now_s - default_ttl, max, &removed, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (expires(list[i]) && !sweep_index(scope, list[i], now_ms, max, &removed, err))
            return false;
    *ret_removed = removed;
    return true;
}
