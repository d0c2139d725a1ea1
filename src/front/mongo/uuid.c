#include "front/mongo/uuid.h"

#include "base/bytes.h"
#include "document/bson.h"

#include <xxhash.h>

void mongo_uuid_append(const struct container *container, struct slice name, struct buf *out)
{
    mongo_uuid_append_numbers(container_account_number(container),
                              container_database_number(container),
                              container_info(container)->number, name, out);
}

void mongo_uuid_append_numbers(uint32_t account, uint32_t database, uint32_t container,
                               struct slice name, struct buf *out)
{
    const uint32_t numbers[] = {account, database, container};
    XXH128_hash_t hash = XXH3_128bits(numbers, sizeof numbers);
    uint8_t bytes[16];
    const struct document_value uuid = {
        .type = DOCUMENT_BINARY, .binary = {.bytes = slice_of(bytes, sizeof bytes), .subtype = 4}};

    bytes_put_le64(bytes, hash.low64);
    bytes_put_le64(bytes + 8, hash.high64);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x80); /* version 8: made as the maker likes */
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    document_append(out, name, &uuid);
}
