/* Manifest: what a backup says of itself, as JSON (format 1).
 *
 *     {"format":1, "orrery":"0.1.0", "id":"20261117T104501Z-1f3a", "timeMs":..., "cluster":"...",
 *      "encryption":{"kind":"none", "salt":"..."},
 *      "chain":[{"id":"...", "digest":"..."}, ...]      the full one first; none: this one is full
 *      "nodes":[{"number":0, "name":"local"}, ...],
 *      "files":"..."                                     digest of the file `files`
 *      "partitions":[{"node":0, "partition":5, "epoch":1, "numbering":"...", "chunks":9,
 *                     "bytes":..., "stored":..., "index":"..."}, ...]}
 *
 * Digests are SHA-256 of files as they are on the disk, in hex; of a chain, of the manifests. */
#pragma once

#include "backup/chunk.h"
#include "backup/seal.h"
#include "base/arena.h"
#include "cluster/cluster.h"

enum {
    BACKUP_FORMAT = 1,
    BACKUP_ID_SIZE = 32,
    BACKUP_CHAIN_MAX = 200,
    BACKUP_MANIFEST_BYTES_MAX = 64 * 1024 * 1024,
};

struct backup_link {
    char id[BACKUP_ID_SIZE];
    uint8_t digest[BACKUP_DIGEST_LEN];
};

struct backup_manifest_node {
    uint32_t number;
    struct slice name;
};

struct backup_manifest_partition {
    uint32_t node, id;
    uint64_t epoch;
    struct slice numbering;
    uint64_t chunks, bytes; /* of all its entries */
    uint64_t stored;        /* bytes in this backup's own file */
    uint8_t index[BACKUP_DIGEST_LEN];
};

/* Lists and slices are in the arena they were read into or made in. */
struct backup_manifest {
    char id[BACKUP_ID_SIZE];
    int64_t time_ms;
    struct slice cluster;
    enum backup_seal_kind seal;
    uint8_t salt[BACKUP_SALT_LEN];
    struct backup_link chain[BACKUP_CHAIN_MAX];
    size_t chain_count;
    struct backup_manifest_node *nodes;
    size_t node_count;
    uint8_t files[BACKUP_DIGEST_LEN];
    struct backup_manifest_partition *partitions;
    size_t partition_count;
};

void backup_manifest_print(const struct backup_manifest *manifest, struct buf *out);

/* ERROR_STORE_CORRUPT; ERROR_STORE_VERSION: a newer Orrery wrote it. */
NODISCARD bool backup_manifest_read(struct slice text, struct arena *arena,
                                    struct backup_manifest *ret_manifest, struct error *err);

const struct backup_manifest_partition *backup_manifest_find(const struct backup_manifest *manifest,
                                                             uint32_t node, uint32_t partition);

/* An id made of the time, in the order of which they sort. */
void backup_id_make(int64_t time_ms, char ret_id[BACKUP_ID_SIZE]);
bool backup_id_is(const char *text);

void backup_hex(struct slice bytes, struct buf *out);
NODISCARD bool backup_hex_read(struct slice text, struct arena *arena, struct slice *ret_bytes);
