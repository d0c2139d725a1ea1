/* An entry ends its chunk with a chance of its length over the usual length of a chunk: on average
 * they are of that length, whatever entries are like. */
#include "backup/chunk.h"

#include "base/bytes.h"
#include "engine/engine.h"

#include <openssl/sha.h>
#include <xxhash.h>

enum { ENTRY_HEAD = 8, SHARED_MAX = UINT16_MAX };

static_assert((int)ENGINE_KEY_MAX <= (int)UINT16_MAX, "lengths of keys have two bytes");
static_assert((int)BACKUP_DIGEST_LEN == SHA256_DIGEST_LENGTH, "it is one");

void backup_chunk_init(struct backup_chunk *chunk)
{
    buf_init(&chunk->bytes, (size_t)ENGINE_VALUE_MAX + BACKUP_CHUNK_MOST + 2 * ENGINE_KEY_MAX);
    buf_init(&chunk->last, ENGINE_KEY_MAX);
}

void backup_chunk_done(struct backup_chunk *chunk)
{
    buf_done(&chunk->bytes);
    buf_done(&chunk->last);
}

void backup_chunk_clear(struct backup_chunk *chunk)
{
    buf_clear(&chunk->bytes);
    buf_clear(&chunk->last);
}

static size_t shared_len(struct slice a, struct slice b)
{
    size_t most = MIN(a.len, b.len), len = 0;

    while (len < most && a.data[len] == b.data[len])
        len++;
    return len;
}

bool backup_chunk_add(struct backup_chunk *chunk, struct slice key, struct slice value)
{
    size_t shared = shared_len(buf_slice(&chunk->last), key), len = key.len + value.len;
    uint8_t head[ENTRY_HEAD];

    assert(key.len <= ENGINE_KEY_MAX && value.len <= ENGINE_VALUE_MAX);
    assert(!chunk->last.len || slice_compare(buf_slice(&chunk->last), key) < 0);
    bytes_put_be16(head, (uint16_t)shared);
    bytes_put_be16(head + 2, (uint16_t)(key.len - shared));
    bytes_put_be32(head + 4, (uint32_t)value.len);
    buf_append(&chunk->bytes, head, sizeof head);
    buf_append_slice(&chunk->bytes, slice_skip(key, shared));
    buf_append_slice(&chunk->bytes, value);
    buf_clear(&chunk->last);
    buf_append_slice(&chunk->last, key);
    if (chunk->bytes.len < BACKUP_CHUNK_LEAST)
        return false;
    return chunk->bytes.len >= BACKUP_CHUNK_MOST ||
           XXH3_64bits(key.data, key.len) / (UINT64_MAX / BACKUP_CHUNK_USUAL) <
               MIN(len, (size_t)BACKUP_CHUNK_USUAL);
}

void backup_digest(struct slice bytes, uint8_t ret_digest[BACKUP_DIGEST_LEN])
{
    SHA256(bytes.data, bytes.len, ret_digest);
}

void backup_chunk_reader_init(struct backup_chunk_reader *reader, struct slice bytes)
{
    reader->rest = bytes;
    buf_init(&reader->key, ENGINE_KEY_MAX);
}

void backup_chunk_reader_done(struct backup_chunk_reader *reader)
{
    buf_done(&reader->key);
}

bool backup_chunk_next(struct backup_chunk_reader *reader, struct slice *ret_key,
                       struct slice *ret_value, bool *ret_found, struct error *err)
{
    size_t shared, more, value_len;

    *ret_found = reader->rest.len > 0;
    if (!*ret_found)
        return true;
    if (reader->rest.len < ENTRY_HEAD)
        return error_set(err, ERROR_STORE_CORRUPT, "a chunk of the backup is cut off");
    shared = bytes_get_be16(reader->rest.data);
    more = bytes_get_be16(reader->rest.data + 2);
    value_len = bytes_get_be32(reader->rest.data + 4);
    reader->rest = slice_skip(reader->rest, ENTRY_HEAD);
    if (shared > reader->key.len || shared + more > ENGINE_KEY_MAX || shared + more == 0 ||
        value_len > ENGINE_VALUE_MAX || reader->rest.len < more + value_len)
        return error_set(err, ERROR_STORE_CORRUPT, "a chunk of the backup holds no entries");
    reader->key.len = shared;
    buf_append_slice(&reader->key, slice_first(reader->rest, more));
    *ret_key = buf_slice(&reader->key);
    *ret_value = slice_first(slice_skip(reader->rest, more), value_len);
    reader->rest = slice_skip(reader->rest, more + value_len);
    return true;
}
