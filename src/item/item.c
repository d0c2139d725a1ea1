#include "item/item.h"

#include "base/bytes.h"
#include "document/order.h"
#include "partition/layout.h"
#include "partition/strategy.h"

enum {
    FORMAT = 1,
    KEY_BYTES_USUAL = 256, /* so that most keys are made with one allocation */
};

void item_header_encode(const struct item_header *header, uint8_t ret_bytes[ITEM_HEADER_LEN])
{
    ret_bytes[0] = FORMAT;
    ret_bytes[1] = header->flags;
    bytes_put_be64(ret_bytes + 2, header->number);
    bytes_put_be64(ret_bytes + 10, header->lsn);
    bytes_put_be32(ret_bytes + 18, header->origin);
    bytes_put_be32(ret_bytes + 22, header->ordinal);
    bytes_put_be64(ret_bytes + 26, (uint64_t)header->wall_ms);
    bytes_put_be32(ret_bytes + 34, (uint32_t)header->ttl);
    bytes_put_be32(ret_bytes + 38, header->policy_version);
}

bool item_decode(struct slice key, struct slice stored, struct item *ret_item, struct error *err)
{
    const uint8_t *bytes = stored.data;

    if (stored.len < ITEM_HEADER_LEN || bytes[0] != FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "an item has no header of a known format");
    *ret_item = (struct item){
        .header = {.flags = bytes[1],
                   .number = bytes_get_be64(bytes + 2),
                   .lsn = bytes_get_be64(bytes + 10),
                   .origin = bytes_get_be32(bytes + 18),
                   .ordinal = bytes_get_be32(bytes + 22),
                   .wall_ms = (int64_t)bytes_get_be64(bytes + 26),
                   .ttl = (int32_t)bytes_get_be32(bytes + 34),
                   .policy_version = bytes_get_be32(bytes + 38)},
        .key = key,
        .document = slice_skip(stored, ITEM_HEADER_LEN),
    };
    return true;
}

/* Time and LSN tell the versions of an item apart wherever it has been; the ordinal those of one
 * transaction. Without its era the LSN stays as it is when a key is placed elsewhere. */
void item_etag(const struct item_header *header, char ret_text[ITEM_ETAG_LEN])
{
    static const char hex[] = "0123456789abcdef";
    uint8_t bytes[16];
    size_t at = 0;

    bytes_put_be64(bytes, partition_lsn_low(header->lsn));
    bytes_put_be64(bytes + 8, (uint64_t)header->wall_ms << 16 | (header->ordinal & 0xFFFF));
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            ret_text[at++] = '-';
        ret_text[at++] = hex[bytes[i] >> 4];
        ret_text[at++] = hex[bytes[i] & 15];
    }
    assert(at == ITEM_ETAG_LEN);
}

int64_t item_expiry_s(const struct item_header *header, int32_t default_ttl)
{
    int32_t ttl = header->ttl ? header->ttl : default_ttl;

    if (default_ttl == 0 || ttl < 0)
        return INT64_MAX;
    return header->wall_ms / 1000 + ttl;
}

bool item_key_split(const struct partition_definition *definition, struct slice key,
                    struct item_key_parts *ret_parts, struct error *err)
{
    struct slice rest = key;

    if (!partition_route_skip(definition, &rest, err))
        return false;
    ret_parts->routing = slice_first(key, key.len - rest.len);
    ret_parts->pk_id = rest;
    if (!partition_key_skip(definition, &rest, err))
        return false;
    ret_parts->logical = slice_first(key, key.len - rest.len);
    assert(ret_parts->routing.len <= ret_parts->logical.len);
    ret_parts->id = rest;
    return true;
}

struct slice item_logical(const struct partition_definition *definition,
                          const struct partition_key *key, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_reserve(&bytes, KEY_BYTES_USUAL);
    partition_route(definition, key, &bytes);
    partition_key_append(key, &bytes);
    return arena_copy(arena, buf_slice(&bytes));
}

void item_id_append(const struct document_names *names, const struct document_value *id,
                    struct buf *buf)
{
    document_key_append(names->identity_order, id, buf);
}

struct slice item_key(const struct document_names *names, struct slice logical,
                      const struct document_value *id, struct arena *arena)
{
    CLEANUP(buf_done) struct buf key;

    assert(logical.len > 0);
    buf_init(&key, BUF_DEFAULT_MAX);
    buf_reserve(&key, KEY_BYTES_USUAL);
    buf_append_slice(&key, logical);
    item_id_append(names, id, &key);
    return arena_copy(arena, buf_slice(&key));
}

struct slice item_family_key(struct arena *arena, uint8_t family, struct slice rest)
{
    uint8_t *bytes = arena_alloc(arena, 1 + rest.len);

    bytes[0] = family;
    if (rest.len)
        memcpy(bytes + 1, rest.data, rest.len);
    return slice_of(bytes, 1 + rest.len);
}
