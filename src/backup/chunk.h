/* Chunk: a run of entries of a partition, in key order, as backups keep them.
 *
 *     2   bytes that its key shares with the one before it in the chunk
 *     2   length of the rest of the key
 *     4   length of the value
 *     ..  rest of the key, value
 *
 * again and again; numbers are big-endian. Where a chunk ends is decided by a hash of the key of
 * its last entry, so that what was inserted or deleted changes the chunk it is in and no other. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum {
    BACKUP_CHUNK_USUAL = 256 * 1024,
    BACKUP_CHUNK_LEAST = 32 * 1024,
    BACKUP_CHUNK_MOST = 2 * 1024 * 1024, /* one entry may be longer */
    BACKUP_DIGEST_LEN = 32,
};

struct backup_chunk {
    struct buf bytes;
    struct buf last; /* key of its last entry */
};

void backup_chunk_init(struct backup_chunk *chunk);
void backup_chunk_done(struct backup_chunk *chunk);
CLEANUP_VALUE_FN(struct backup_chunk, backup_chunk_done)
void backup_chunk_clear(struct backup_chunk *chunk);

/* Adds an entry behind all that are in it. True: with it the chunk ends. */
bool backup_chunk_add(struct backup_chunk *chunk, struct slice key, struct slice value);

/* SHA-256. */
void backup_digest(struct slice bytes, uint8_t ret_digest[BACKUP_DIGEST_LEN]);

/* Walks the entries of one. */
struct backup_chunk_reader {
    struct slice rest;
    struct buf key;
};

void backup_chunk_reader_init(struct backup_chunk_reader *reader, struct slice bytes);
void backup_chunk_reader_done(struct backup_chunk_reader *reader);
CLEANUP_VALUE_FN(struct backup_chunk_reader, backup_chunk_reader_done)

/* Both are valid until the next call. *ret_found false: that was the last. ERROR_STORE_CORRUPT. */
NODISCARD bool backup_chunk_next(struct backup_chunk_reader *reader, struct slice *ret_key,
                                 struct slice *ret_value, bool *ret_found, struct error *err);
