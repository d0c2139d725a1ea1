#include "item/unique.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "document/order.h"
#include "item/write_set.h"
#include "partition/layout.h"

enum { SWEPT_AT_ONCE = 500, SHOWN_BYTES_MAX = 256 };

static const struct index_definition *index_of(const struct item_scope *scope, uint8_t number)
{
    size_t count;
    const struct index_definition *const *list = index_policy_besides(scope->policy, &count);

    for (size_t i = 0; i < count; i++)
        if (list[i]->number == number)
            return list[i];
    return NULL;
}

/* Opens all keys that begin with two bytes. */
static bool family_open(const struct item_scope *scope, uint8_t family, uint8_t which,
                        struct engine_iterator **ret_iterator, struct error *err)
{
    uint8_t min[] = {family, which}, max[] = {family, (uint8_t)(which + 1)};
    struct engine_range range = {slice_of(min, sizeof min), slice_of(max, sizeof max)};

    return engine_iterator_new(scope->engine, NULL, scope->partition, range, false, ENGINE_READ_ANY,
                               ret_iterator, err);
}

/* Behind the logical partition comes the number of the index. */
static bool number_read(const struct item_scope *scope, struct slice key,
                        struct item_key_parts *ret_parts, uint8_t *ret_number, struct error *err)
{
    if (!item_key_split(&scope->definition->key, slice_skip(key, 2), ret_parts, err))
        return false;
    if (!ret_parts->id.len)
        return error_set(err, ERROR_STORE_CORRUPT, "a key of an index is cut short");
    *ret_number = ret_parts->id.data[0];
    return true;
}

static bool is_building(const struct item_scope *scope, uint8_t number)
{
    const struct index_definition *index = index_of(scope, number);

    return index && index->state == INDEX_BUILDING;
}

bool unique_conflicts_any(const struct item_scope *scope, const struct index_definition *index,
                          bool *ret_any, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;

    *ret_any = false;
    if (!family_open(scope, PARTITION_FAMILY_UNIQUE, WRITE_SET_CONFLICT, &iterator, err))
        return false;
    for (;;) {
        struct item_key_parts parts;
        struct engine_entry entry;
        uint8_t number = 0;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!number_read(scope, entry.key, &parts, &number, err))
            return false;
        *ret_any = index ? number == index->number : is_building(scope, number);
        if (*ret_any)
            return true;
    }
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool item_of(const struct item_scope *scope, struct slice number, struct arena *arena,
                    struct item *ret_item, bool *ret_found, struct error *err)
{
    struct engine_value value;
    struct slice key;

    *ret_found = false;
    if (!engine_get(scope->engine, NULL, scope->partition,
                    item_family_key(arena, PARTITION_FAMILY_NUMBER, number), ENGINE_READ_ANY, arena,
                    &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    key = value.bytes;
    if (!engine_get(scope->engine, NULL, scope->partition,
                    item_family_key(arena, PARTITION_FAMILY_ITEM, key), ENGINE_READ_ANY, arena,
                    &value, err))
        return false;
    *ret_found = value.found == ENGINE_FOUND;
    return !*ret_found || item_decode(key, value.bytes, ret_item, err);
}

static bool id_read(const struct item_scope *scope, struct slice key, struct arena *arena,
                    struct document_value *ret_id, struct slice *ret_partition_key,
                    struct error *err)
{
    CLEANUP(buf_done) struct buf values;
    struct item_key_parts parts;
    struct partition_key pk;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&values, BUF_DEFAULT_MAX);
    if (!item_key_split(&scope->definition->key, key, &parts, err) ||
        !document_key_read(definition_names_of(scope->definition)->identity_order, &parts.id, arena,
                           ret_id, err) ||
        !partition_key_read(&scope->definition->key, &parts.pk_id, arena, &pk, err))
        return false;
    begin = document_begin(&values);
    for (size_t i = 0; i < pk.count; i++)
        document_append(&values, document_index_key((uint32_t)i, text), &pk.components[i]);
    document_end(&values, begin);
    *ret_partition_key = arena_copy(arena, buf_slice(&values));
    return true;
}

/* As the item has them; what is missing is null, and what is long is left out. */
static struct slice values_of(const struct index_definition *index, struct slice document,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf values;
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin;

    buf_init(&values, BUF_DEFAULT_MAX);
    begin = document_begin(&values);
    for (size_t i = 0; i < index->part_count; i++) {
        struct document_value value;
        size_t before = values.len;

        if (!document_path_find(&index->parts[i].path, document, &value))
            value = document_null();
        document_append(&values, document_index_key((uint32_t)i, text), &value);
        if (values.len - before > SHOWN_BYTES_MAX) {
            values.len = before;
            document_append_string(&values, document_index_key((uint32_t)i, text),
                                   SLICE("(too long to be shown)"));
        }
    }
    document_end(&values, begin);
    return arena_copy(arena, buf_slice(&values));
}

/* The item that owns the key which this one was to own. */
static bool owner_read(const struct item_scope *scope, struct slice conflict,
                       const struct item *other, struct arena *arena,
                       struct unique_conflict *ret_conflict, struct error *err)
{
    struct item_key_parts parts;
    struct engine_value value;
    struct slice claim, unused;
    struct item item;
    bool found;

    ret_conflict->items[1] = document_undefined();
    if (!item_key_split(&scope->definition->key, other->key, &parts, err))
        return false;
    if (conflict.len <= parts.id.len)
        return true; /* the item has another id by now */
    claim = arena_copy(arena, slice_first(conflict, conflict.len - parts.id.len));
    ((uint8_t *)claim.data)[1] = WRITE_SET_CLAIM;
    if (!engine_get(scope->engine, NULL, scope->partition, claim, ENGINE_READ_ANY, arena, &value,
                    err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_of(scope, value.bytes, arena, &item, &found, err))
        return false;
    return !found || id_read(scope, item.key, arena, &ret_conflict->items[1], &unused, err);
}

static bool conflict_read(const struct item_scope *scope, const struct index_definition *index,
                          const struct engine_entry *entry, struct arena *arena,
                          struct unique_conflict *ret_conflict, bool *ret_found, struct error *err)
{
    struct slice key = arena_copy(arena, entry->key), number = arena_copy(arena, entry->value);
    struct item item;

    if (!item_of(scope, number, arena, &item, ret_found, err))
        return false;
    if (!*ret_found)
        return true;
    ret_conflict->index = index->number;
    ret_conflict->value = values_of(index, item.document, arena);
    return id_read(scope, item.key, arena, &ret_conflict->items[0], &ret_conflict->partition_key,
                   err) &&
           owner_read(scope, key, &item, arena, ret_conflict, err);
}

bool unique_conflicts_read(const struct item_scope *scope, const struct index_definition *index,
                           size_t max, struct arena *arena, struct unique_conflict *ret_conflicts,
                           size_t *ret_count, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    size_t count = 0;

    if (!family_open(scope, PARTITION_FAMILY_UNIQUE, WRITE_SET_CONFLICT, &iterator, err))
        return false;
    while (count < max) {
        struct item_key_parts parts;
        struct engine_entry entry;
        uint8_t number = 0;
        bool found = false;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (!number_read(scope, entry.key, &parts, &number, err) ||
            (number == index->number &&
             !conflict_read(scope, index, &entry, arena, &ret_conflicts[count], &found, err)))
            return false;
        count += found;
    }
    *ret_count = count;
    return true;
}

/* --- Sweeping -------------------------------------------------------------------------------- */

static bool is_zero(struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.data[i])
            return false;
    return true;
}

/* Up to SWEPT_AT_ONCE of them. */
static bool sweep_some(const struct item_scope *scope, uint8_t family, uint8_t which,
                       size_t *ret_count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, SWEPT_AT_ONCE);
    struct commit_part part = {.partition = scope->partition,
                               .epoch = scope->epoch,
                               .writers = scope->writers,
                               .ops = ops};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    if (!family_open(scope, family, which, &iterator, err))
        return false;
    while (part.op_count < SWEPT_AT_ONCE) {
        struct item_key_parts parts;
        struct engine_entry entry;
        uint8_t number = 0;
        bool gone;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (!number_read(scope, entry.key, &parts, &number, err))
            return false;
        gone = family == PARTITION_FAMILY_COUNTER ? !index_of(scope, number) && is_zero(entry.value)
                                                  : !is_building(scope, number);
        if (gone)
            ops[part.op_count++] =
                (struct engine_op){ENGINE_DELETE, arena_copy(arena, entry.key), SLICE_NONE};
    }
    *ret_count = part.op_count;
    return !part.op_count || commit_run(scope->commit, &batch, err);
}

bool unique_sweep(const struct item_scope *scope, struct error *err)
{
    static const uint8_t families[][2] = {{PARTITION_FAMILY_UNIQUE, WRITE_SET_CONFLICT},
                                          {PARTITION_FAMILY_COUNTER, 'k'}};

    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        size_t count = SWEPT_AT_ONCE;

        while (count == SWEPT_AT_ONCE)
            if (!sweep_some(scope, families[i][0], families[i][1], &count, err))
                return false;
    }
    return true;
}
