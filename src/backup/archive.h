/* Archive: a backup as files, in a directory of its own below the one given to `orrery backup`.
 *
 *     ID/manifest.json             what it is (manifest.h)
 *     ID/manifest.check            SHA-256 of it in hex; of an encrypted one what only its key
 * makes ID/NODE-PARTITION.index      the chunks of a partition, in order, sealed as a whole
 *     ID/NODE-PARTITION.data       those that no backup before it has, each sealed
 *     ID/files                     files the server keeps beside its store
 *
 * An entry of an index, numbers big-endian:
 *
 *     32  digest of the chunk
 *     4   its length
 *     1   which backup of the chain has it; the length of the chain: this one
 *     8   where it begins in that one's file of the partition
 *     4   how long it is there
 *     2   length of the key of its last entry, then the key
 *
 * A chunk in a file is, before it is sealed, one byte (0: as it is, 1: zstd) and its bytes. All
 * files are readable by their owner alone. */
#pragma once

#include "backup/manifest.h"

struct backup_chunk_place {
    uint8_t digest[BACKUP_DIGEST_LEN];
    uint32_t length, stored;
    uint32_t link; /* of the chain */
    uint64_t offset;
    struct slice last;
};

/* The chunks of one partition, in the arena. */
struct backup_index {
    struct backup_chunk_place *chunks;
    size_t count;
};

/* --- Reading --------------------------------------------------------------------------------- */

struct backup_archive; /* opaque, owned: one backup with all that it builds on */

/* Where a secret comes from; both NULL: there is none. */
struct backup_secret {
    const char *key_file;
    const char *passphrase_file; /* its first line */
};

/* The seal of a kind, with the key that its file gives. ERROR_BAD_REQUEST: the file is not named,
 * or cannot be read. */
NODISCARD bool backup_secret_seal(const struct backup_secret *secret, enum backup_seal_kind kind,
                                  const uint8_t salt[BACKUP_SALT_LEN], struct backup_seal *ret_seal,
                                  struct error *err);

/* path: a backup, or the directory of several: the last of them. All links of its chain are looked
 * at. ERROR_STORE_CORRUPT, ERROR_BAD_REQUEST, ERROR_SYSTEM, ERROR_NOT_FOUND: there is none. */
NODISCARD bool backup_archive_open(const char *path, const struct backup_secret *secret,
                                   struct backup_archive **ret_archive, struct error *err);
void backup_archive_free(struct backup_archive *archive); /* NULL is fine */
CLEANUP_FN(struct backup_archive *, backup_archive_free)

const struct backup_manifest *backup_archive_manifest(const struct backup_archive *archive);
const struct backup_seal *backup_archive_seal(const struct backup_archive *archive);
const uint8_t *backup_archive_digest(const struct backup_archive *archive); /* of its manifest */
const char *backup_archive_path(const struct backup_archive *archive);

NODISCARD bool backup_archive_index(const struct backup_archive *archive,
                                    const struct backup_manifest_partition *partition,
                                    struct arena *arena, struct backup_index *ret_index,
                                    struct error *err);

/* The bytes of a chunk, in the place of what buf holds; they are what their digest says. */
NODISCARD bool backup_archive_chunk(struct backup_archive *archive,
                                    const struct backup_manifest_partition *partition,
                                    const struct backup_chunk_place *place, struct buf *buf,
                                    struct error *err);

/* Walks the entries of a partition. */
struct backup_walk; /* opaque, owned */
NODISCARD bool backup_walk_new(struct backup_archive *archive,
                               const struct backup_manifest_partition *partition,
                               struct backup_walk **ret_walk, struct error *err);
void backup_walk_free(struct backup_walk *walk); /* NULL is fine */
CLEANUP_FN(struct backup_walk *, backup_walk_free)
/* Both are valid until the next call. */
NODISCARD bool backup_walk_next(struct backup_walk *walk, struct slice *ret_key,
                                struct slice *ret_value, bool *ret_found, struct error *err);
/* Passes over chunks that end before the key; the next entry may still be before it. */
void backup_walk_skip(struct backup_walk *walk, struct slice key);

/* The file of the server's own files: [name, NUL, length 4, bytes] again and again. */
NODISCARD bool backup_archive_files(const struct backup_archive *archive, struct buf *out,
                                    struct error *err);

/* --- Writing --------------------------------------------------------------------------------- */

struct backup_writer; /* opaque, owned */

struct backup_writer_options {
    const char *directory;               /* made if need be */
    const struct backup_archive *parent; /* what it builds on; NULL: it is full. Borrowed */
    const struct backup_seal *seal;      /* copied */
};

/* Writes into a directory that is no backup yet. */
NODISCARD bool backup_writer_new(const struct backup_writer_options *options, int64_t time_ms,
                                 struct backup_writer **ret_writer, struct error *err);

/* Removes what was written, unless it was finished. NULL is fine. */
void backup_writer_free(struct backup_writer *writer);
CLEANUP_FN(struct backup_writer *, backup_writer_free)

/* Removes a directory that one left which was killed: ".partial-..." */
void backup_partial_remove(const char *path);

const char *backup_writer_id(const struct backup_writer *writer);
uint64_t backup_writer_stored(const struct backup_writer *writer); /* bytes so far */

void backup_writer_node(struct backup_writer *writer, uint32_t number, struct slice name);
void backup_writer_cluster(struct backup_writer *writer, struct slice cluster);
NODISCARD bool backup_writer_files(struct backup_writer *writer, struct slice files,
                                   struct error *err);

/* One partition after the other. */
NODISCARD bool backup_writer_begin(struct backup_writer *writer,
                                   const struct backup_manifest_partition *partition,
                                   struct error *err);
/* The digests to be told as known when what is behind after is asked for; at most max of them. */
void backup_writer_known(const struct backup_writer *writer, struct slice after, size_t max,
                         struct buf *out);
/* bytes.data NULL: it is one of those. */
NODISCARD bool backup_writer_chunk(struct backup_writer *writer,
                                   const struct backup_chunk_place *chunk, struct slice bytes,
                                   struct error *err);
/* All chunks are as in the parent. */
NODISCARD bool backup_writer_same(struct backup_writer *writer, struct error *err);
NODISCARD bool backup_writer_end(struct backup_writer *writer, struct error *err);

/* Durable on true, and a backup. */
NODISCARD bool backup_writer_finish(struct backup_writer *writer, struct error *err);
