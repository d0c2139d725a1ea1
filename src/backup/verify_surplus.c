/* From an entry back to the item that should make it, whatever the family keeps of that: its key,
 * its number, or both. */
#include "backup/verify_private.h"

#include "base/bytes.h"
#include "item/feed.h"
#include "partition/layout.h"

static bool get(const struct verify *verify, struct slice key, struct engine_value *ret_value,
                struct error *err)
{
    return engine_get(verify->scope.engine, verify->partition->node->snapshot,
                      verify->partition->id, key, ENGINE_READ_ANY, verify->arena, ret_value, err);
}

/* By its number; empty: there is none. */
static bool key_of_number(const struct verify *verify, struct slice number, struct slice *ret_key,
                          struct error *err)
{
    struct engine_value value;

    if (!get(verify, item_family_key(verify->arena, PARTITION_FAMILY_NUMBER, number), &value, err))
        return false;
    *ret_key = value.found == ENGINE_FOUND ? value.bytes : SLICE_NONE;
    return true;
}

/* The key of the item that an entry is of; empty: it names none. */
static bool item_key_of(const struct verify *verify, const struct engine_entry *entry,
                        struct slice *ret_key, struct error *err)
{
    struct slice rest = slice_skip(entry->key, 1), number = SLICE_NONE;
    struct feed_record record;
    struct error ignored;
    size_t said;

    *ret_key = SLICE_NONE;
    if (entry->key.len >= 9)
        number = slice_skip(entry->key, entry->key.len - 8);
    switch (entry->key.data[0]) {
    case PARTITION_FAMILY_NUMBER:
    case PARTITION_FAMILY_EXPIRY:
        *ret_key = arena_copy(verify->arena, entry->value);
        return true;
    case PARTITION_FAMILY_UNIQUE:
        return entry->value.len != 8 || key_of_number(verify, entry->value, ret_key, err);
    case PARTITION_FAMILY_FEED:
        if (feed_record_decode(entry->key, entry->value, &record, &ignored))
            *ret_key = arena_copy(verify->arena, record.key);
        return true;
    case PARTITION_FAMILY_INDEX:
        said = index_entry_said_len(rest);
        if (!index_entry_skip(&rest, &ignored) || rest.len < 8 || entry->value.len < said)
            return true;
        if (entry->value.len == 0)
            return key_of_number(verify, number, ret_key, err);
        *ret_key = arena_join(verify->arena,
                              (struct slice[]){slice_first(rest, rest.len - 8),
                                               slice_first(entry->value, entry->value.len - said)},
                              2);
        return true;
    default:
        return true;
    }
}

/* Does an item make the entry? Of one that is damaged nobody can tell. */
static bool is_made(struct verify *verify, const struct engine_entry *entry, bool *ret_made,
                    struct slice *ret_item, struct error *err)
{
    struct verify_item item;
    struct engine_value value;
    struct error damage;

    *ret_made = false;
    if (!item_key_of(verify, entry, ret_item, err))
        return false;
    if (!ret_item->len)
        return true;
    if (ret_item->len > ENGINE_KEY_MAX - 1) {
        *ret_item = SLICE_NONE;
        return true;
    }
    if (!get(verify, item_family_key(verify->arena, PARTITION_FAMILY_ITEM, *ret_item), &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!verify_item_build(verify, *ret_item, value.bytes, verify->arena, &item, &damage)) {
        *ret_made = true;
        return true;
    }
    for (size_t i = 0; i < item.part.op_count && !*ret_made; i++)
        *ret_made = slice_equal(item.part.ops[i].key, entry->key);
    return true;
}

/* A sum of a logical partition that has no items. Others were compared with theirs; those of a key
 * that is spread are in its first part, whether that has items or not. */
static bool sum_is_orphan(struct verify *verify, struct slice key, bool *ret_orphan,
                          struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct slice logical = slice_skip(key, 2), from;
    const struct partition_span *parts;
    struct engine_entry entry;
    size_t count;

    *ret_orphan = false;
    if (!logical.len || key.data[1] != 'l')
        return true;
    parts = partition_map_parts(verify->scope.map, logical, &count);
    if (count > 1) {
        *ret_orphan = parts[0].id != verify->partition->id;
        return true;
    }
    from = item_family_key(verify->arena, PARTITION_FAMILY_ITEM, logical);
    if (!engine_iterator_new(verify->scope.engine, verify->partition->node->snapshot,
                             verify->partition->id, (struct engine_range){from, SLICE_NONE}, false,
                             ENGINE_READ_ANY, &iterator, err) ||
        !engine_iterator_next(iterator, &entry, err))
        return false;
    *ret_orphan = entry.found != ENGINE_FOUND || !slice_starts_with(entry.key, from);
    return true;
}

static bool sum_look(struct verify *verify, const struct engine_entry *entry, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS] = {0};
    bool orphan, zero = true, fits = true;
    struct error ignored;

    if (entry->key.len < 2 || !counter_decode(entry->value, numbers, &ignored)) {
        verify_tell(verify, VERIFY_SUM, entry->key, "the sum cannot be read");
        return true;
    }
    for (size_t i = 0; i < COUNTER_NUMBERS; i++) {
        zero &= numbers[i] == 0;
        fits &= !__builtin_sub_overflow((int64_t)0, numbers[i], &numbers[i]);
    }
    if (zero || !sum_is_orphan(verify, entry->key, &orphan, err))
        return zero;
    if (!orphan)
        return true;
    verify_tell(verify, VERIFY_SUM, entry->key, "a sum of a logical partition without items");
    return !verify->repair || !fits ||
           verify_repair_sum(verify, arena_copy(verify->arena, entry->key), numbers, err);
}

static bool entry_look(struct verify *verify, const struct engine_entry *entry, struct error *err)
{
    struct slice item, key = arena_copy(verify->arena, entry->key);
    struct feed_record record;
    struct error ignored;
    bool made;

    if (key.data[0] == PARTITION_FAMILY_COUNTER)
        return sum_look(verify, entry, err);
    if (key.data[0] == PARTITION_FAMILY_UNIQUE && key.len > 1 && key.data[1] == WRITE_SET_CONFLICT)
        return true;
    if (key.data[0] == PARTITION_FAMILY_FEED) {
        if (key.len == FEED_KEY_LEN && bytes_get_be64(key.data + 1) == 0)
            return true;
        if (feed_record_decode(key, entry->value, &record, &ignored) &&
            (verify->scope.definition->feed_retention_ms || record.image.len ||
             record.kind == FEED_DELETE || record.kind == FEED_EXPIRE))
            return true; /* a version that is kept */
    }
    if (verify_is_placed(verify, key))
        return true; /* they were looked at one by one */
    if (!is_made(verify, entry, &made, &item, err))
        return false;
    if (made)
        return true;
    verify_tell(verify, VERIFY_SURPLUS, key, "no item makes the entry");
    return !verify->repair || verify_repair_item(verify, item, key, err);
}

bool verify_surplus_step(struct verify *verify, uint8_t family, size_t entries_max,
                         size_t *ret_looked, bool *ret_finished, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    uint8_t first = family, behind = (uint8_t)(family + 1);
    struct engine_range range = {.min = slice_of(&first, 1), .max = slice_of(&behind, 1)};
    size_t looked_at_most = MIN(entries_max, (size_t)1000); /* each is an item built */
    struct engine_entry entry;

    if (verify->position.len)
        range.min = arena_join(verify->arena,
                               (struct slice[]){buf_slice(&verify->position), slice_of("", 1)}, 2);
    if (!engine_iterator_new(verify->scope.engine, verify->partition->node->snapshot,
                             verify->partition->id, range, false, ENGINE_READ_ONCE, &iterator, err))
        return false;
    *ret_finished = false;
    for (*ret_looked = 0; *ret_looked < looked_at_most; (*ret_looked)++) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        *ret_finished = entry.found != ENGINE_FOUND;
        if (*ret_finished)
            return true;
        buf_clear(&verify->position);
        buf_append_slice(&verify->position, entry.key);
        if (!entry_look(verify, &entry, err))
            return false;
    }
    return true;
}
