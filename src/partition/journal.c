#include "partition/journal.h"

#include "base/bytes.h"
#include "partition/layout.h"

void journal_key_encode(struct journal_position position, uint8_t ret_key[JOURNAL_KEY_LEN])
{
    ret_key[0] = PARTITION_FAMILY_JOURNAL;
    bytes_put_be64(ret_key + 1, position.lsn);
    bytes_put_be32(ret_key + 9, position.nth);
}

static bool broken(struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the journal of a partition is broken");
}

bool journal_key_decode(struct slice key, struct journal_position *ret_position, struct error *err)
{
    if (key.len != JOURNAL_KEY_LEN || key.data[0] != PARTITION_FAMILY_JOURNAL)
        return broken(err);
    *ret_position = (struct journal_position){.lsn = bytes_get_be64(key.data + 1),
                                              .nth = bytes_get_be32(key.data + 9)};
    return true;
}

struct engine_range journal_range(struct journal_position after, struct arena *arena)
{
    uint8_t *min = arena_alloc(arena, JOURNAL_KEY_LEN + 1), *max = arena_alloc(arena, 1);

    journal_key_encode(after, min);
    min[JOURNAL_KEY_LEN] = 0;
    max[0] = PARTITION_FAMILY_JOURNAL + 1;
    return (struct engine_range){.min = slice_of(min, JOURNAL_KEY_LEN + 1),
                                 .max = slice_of(max, 1)};
}

bool journal_notes(struct slice key)
{
    static const uint8_t total[] = {PARTITION_FAMILY_COUNTER, 't'};

    switch (key.data[0]) {
    case PARTITION_FAMILY_JOURNAL:
    case PARTITION_FAMILY_META:
    case PARTITION_FAMILY_PROGRESS:
        return false;
    default:
        return !slice_equal(key, slice_of(total, sizeof total));
    }
}

void journal_append(struct slice key, struct buf *value)
{
    uint8_t len[4];

    bytes_put_be32(len, (uint32_t)key.len);
    buf_append(value, len, sizeof len);
    buf_append_slice(value, key);
}

bool journal_next(struct slice *value, struct slice *ret_key, struct error *err)
{
    size_t len;

    if (value->len < 4)
        return broken(err);
    len = bytes_get_be32(value->data);
    if (len == 0 || len > value->len - 4)
        return broken(err);
    *ret_key = slice_of(value->data + 4, len);
    *value = slice_skip(*value, 4 + len);
    return true;
}
