#include "item/feed.h"

#include "base/bytes.h"
#include "partition/layout.h"

enum { FORMAT = 1, FIXED_LEN = 38 };

void feed_key_encode(struct feed_place place, uint8_t ret_key[FEED_KEY_LEN])
{
    ret_key[0] = PARTITION_FAMILY_FEED;
    bytes_put_be64(ret_key + 1, place.lsn);
    bytes_put_be32(ret_key + 9, place.origin);
    bytes_put_be32(ret_key + 13, place.ordinal);
}

void feed_mark_encode(uint64_t lsn, uint8_t ret_value[FEED_MARK_LEN])
{
    ret_value[0] = FORMAT;
    bytes_put_be64(ret_value + 1, lsn);
}

bool feed_mark_decode(struct slice value, uint64_t *ret_lsn, struct error *err)
{
    if (value.len != FEED_MARK_LEN || value.data[0] != FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "a mark of the feed has no known format");
    *ret_lsn = bytes_get_be64(value.data + 1);
    return true;
}

static struct feed_place place_decode(const uint8_t *bytes)
{
    return (struct feed_place){.lsn = bytes_get_be64(bytes),
                               .origin = bytes_get_be32(bytes + 8),
                               .ordinal = bytes_get_be32(bytes + 12)};
}

struct slice feed_record_encode(const struct feed_record *record, struct arena *arena)
{
    size_t len = FIXED_LEN + record->key.len + record->image.len;
    uint8_t *bytes = arena_alloc(arena, len);

    assert(record->key.len > 0 && record->key.len <= UINT32_MAX);
    bytes[0] = FORMAT;
    bytes[1] = (uint8_t)record->kind;
    bytes_put_be64(bytes + FEED_VALUE_WALL_AT, (uint64_t)record->wall_ms);
    bytes_put_be64(bytes + FEED_VALUE_NUMBER_AT, record->number);
    bytes_put_be64(bytes + 18, record->previous.lsn);
    bytes_put_be32(bytes + 26, record->previous.origin);
    bytes_put_be32(bytes + 30, record->previous.ordinal);
    bytes_put_be32(bytes + 34, (uint32_t)record->key.len);
    memcpy(bytes + FIXED_LEN, record->key.data, record->key.len);
    if (record->image.len)
        memcpy(bytes + FIXED_LEN + record->key.len, record->image.data, record->image.len);
    return slice_of(bytes, len);
}

bool feed_record_decode(struct slice key, struct slice value, struct feed_record *ret_record,
                        struct error *err)
{
    const uint8_t *bytes = value.data;
    size_t key_len;

    if (key.len != FEED_KEY_LEN || value.len < FIXED_LEN || bytes[0] != FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "a feed record has no known format");
    key_len = bytes_get_be32(bytes + 34);
    if (key_len > value.len - FIXED_LEN)
        return error_set(err, ERROR_STORE_CORRUPT, "a feed record is cut short");
    *ret_record = (struct feed_record){
        .place = place_decode(key.data + 1),
        .previous = place_decode(bytes + 18),
        .kind = bytes[1],
        .wall_ms = (int64_t)bytes_get_be64(bytes + FEED_VALUE_WALL_AT),
        .number = bytes_get_be64(bytes + FEED_VALUE_NUMBER_AT),
        .key = slice_of(bytes + FIXED_LEN, key_len),
        .image = slice_skip(value, FIXED_LEN + key_len),
    };
    return true;
}
