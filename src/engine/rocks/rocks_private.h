/* The rocksdb: and memory: drivers from within.
 *
 * How a node looks inside RocksDB (format 1), all in the default column family:
 *
 *     partition, 4 bytes big-endian | key   -> value        for partitions 1 and up
 *     00000000 | 'c'                        -> the cluster id, absent until the node joins one
 *     00000000 | 'e' | partition, 4 bytes   -> epoch, 8 bytes big-endian: the partition exists
 *
 * One database for all partitions, because a database or column family each would multiply
 * write buffers and syncs. */
#pragma once

#include "base/buf.h"
#include "base/thread.h"
#include "engine/budget.h"
#include "engine/driver.h"
#include "engine/rocks/recall.h"

#include <rocksdb/c.h>
#include <stdatomic.h>

enum { ROCKS_PREFIX_LEN = 4, ROCKS_WRITE_BUFFERS = 4, ROCKS_LEVEL_0_SLOWDOWN = 64 };

/* Which partitions exist and under which epoch: kept in memory, for one process holds the store.
 * Sorted by id. */
struct rocks_epochs {
    struct engine_partition *entries; /* owned */
    size_t count, capacity;
};

/* What a store has for caches and write buffers. */
struct rocks_sizes {
    size_t cache, recall, write_buffer; /* the last of one; there are up to 4 */
};

struct rocks_directory; /* the marker file and the lock of DIR; NULL for memory: */

struct rocks_engine {
    struct engine engine;
    bool memory;
    char *name; /* owned; engine.name points into it */
    struct rocks_directory *directory;
    size_t memory_bytes_max;
    struct engine_budget *budget; /* borrowed; NULL: none */
    struct engine_budget_share share;
    struct rocks_sizes given; /* by the options; 0: the budget's */
    size_t joined_bytes;      /* of the budget, when it was opened */
    struct log *log;          /* borrowed */

    rocksdb_t *db;
    rocksdb_column_family_handle_t *family;
    rocksdb_options_t *options;
    rocksdb_cache_t *cache;
    struct rocks_recall *recall;
    rocksdb_env_t *env;
    rocksdb_readoptions_t *read_any, *read_cached;
    rocksdb_writeoptions_t *write_durable;

    /* Writers hold it shared from the look at the epochs to the end of the write; raising an epoch
     * holds it alone, so that it waits for the writes it must not overtake. */
    pthread_rwlock_t fence;
    struct rocks_epochs epochs; /* under fence */

    struct mutex spare_lock;
    rocksdb_writebatch_t *spare_batch; /* under spare_lock; reused, for its memory */

    struct mutex load_lock; /* held for a load: its file has one name */

    struct mutex mark_lock; /* under it: */
    int mark_fd;            /* -1: memory:, or not open */
    uint64_t mark;          /* what it says */

    atomic_bool poisoned;
    atomic_uint_fast64_t reads, writes, bytes_written;
    atomic_int_fast64_t room; /* bytes that may be written before free space is looked at again */
};

struct rocks_snapshot {
    struct engine_snapshot snapshot;
    uint64_t moment; /* of what is recalled */
    const rocksdb_snapshot_t *native;
    rocksdb_readoptions_t *read_any, *read_cached;
};

static inline struct rocks_engine *rocks_of(struct engine *engine)
{
    return CONTAINER_OF(engine, struct rocks_engine, engine);
}

/* Turns RocksDB's error text into ours and frees it. Returns false. */
bool rocks_error(struct error *err, char *text, const char *doing);

/* directory.c */
NODISCARD bool rocks_directory_open(struct slice path, struct rocks_directory **ret_directory,
                                    struct error *err);
/* The same for whoever replaces the store, which need not be there. */
NODISCARD bool rocks_directory_open_for_reset(struct slice path,
                                              struct rocks_directory **ret_directory,
                                              struct error *err);
void rocks_directory_close(struct rocks_directory *directory);
CLEANUP_FN(struct rocks_directory *, rocks_directory_close)
const char *rocks_directory_path(const struct rocks_directory *directory);
NODISCARD bool rocks_directory_sync(const char *path, struct error *err);
const char *rocks_directory_store(const struct rocks_directory *directory); /* path for RocksDB */
/* Where files made for the store wait to be taken into it. */
const char *rocks_directory_load(const struct rocks_directory *directory);
const char *rocks_directory_tombstone(const struct rocks_directory *directory);
const char *rocks_directory_acknowledged(const struct rocks_directory *directory);
const char *rocks_directory_node_id(const struct rocks_directory *directory);
/* The store has been made: from now on a missing one is an error. */
NODISCARD bool rocks_directory_ready(struct rocks_directory *directory, struct error *err);
uint64_t rocks_directory_free_bytes(const struct rocks_directory *directory);
/* Writes the marker of a finished copy into another directory. */
NODISCARD bool rocks_directory_mark_copy(struct slice path, const char *node_id, struct error *err);

/* mark.c: how far writes were acknowledged. ERROR_STORE_CORRUPT: the store ends before that; looked
 * for before it is opened, so that nothing has changed when the files are put back, and after.
 * Advanced after each durable write. */
NODISCARD bool rocks_mark_check(struct rocks_engine *rocks, struct error *err);
NODISCARD bool rocks_mark_open(struct rocks_engine *rocks, struct error *err);
void rocks_mark_advance(struct rocks_engine *rocks);
void rocks_mark_close(struct rocks_engine *rocks);

/* partitions.c */
bool rocks_epochs_load(struct rocks_engine *rocks, struct error *err);
void rocks_epochs_done(struct rocks_epochs *epochs);
const struct engine_partition *rocks_epochs_find(const struct rocks_epochs *epochs, uint32_t id);
bool rocks_cluster_join(struct engine *engine, struct slice cluster_id, struct error *err);
bool rocks_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                      struct error *err);
bool rocks_partition_create(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err);
bool rocks_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err);
bool rocks_partition_drop(struct engine *engine, uint32_t id, struct error *err);
bool rocks_partition_list(struct engine *engine, struct arena *arena,
                          struct engine_partition **ret_partitions, size_t *ret_count,
                          struct error *err);

/* read.c */
bool rocks_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                        struct error *err);
void rocks_snapshot_free(struct engine_snapshot *snapshot);
bool rocks_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
               struct slice key, enum engine_reach reach, struct arena *arena,
               struct engine_value *ret_value, struct error *err);
bool rocks_multi_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                     const struct slice *keys, size_t count, enum engine_reach reach,
                     struct arena *arena, struct engine_value *ret_values, struct error *err);

/* iterator.c */
bool rocks_group_find(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                      struct arena *arena, struct engine_group *ret_group);
void rocks_group_offer(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                       struct slice bytes, const struct engine_group *group);
bool rocks_iterator_new(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                        struct engine_range range, bool backwards, enum engine_reach reach,
                        struct engine_iterator **ret_iterator, struct error *err);
void rocks_iterator_free(struct engine_iterator *iterator);
bool rocks_iterator_next(struct engine_iterator *iterator, struct engine_entry *ret_entry,
                         struct error *err);
bool rocks_iterator_seek(struct engine_iterator *iterator, struct slice key, struct error *err);

/* The bounds of a range of a partition as RocksDB sees them: prefix and key; the end of the
 * partition is the next prefix. Appended to the buffers. */
void rocks_range_bounds(uint32_t partition, struct engine_range range, struct buf *ret_min,
                        struct buf *ret_max);

/* write.c */
bool rocks_write(struct engine *engine, struct engine_section *sections, size_t count,
                 struct error *err);
bool rocks_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                      struct engine_range range, struct error *err);
/* Is every section at the epoch of its partition? Under fence. ERROR_FENCED. */
bool rocks_sections_check(struct rocks_engine *rocks, struct engine_section *sections, size_t count,
                          struct error *err);
/* Is there room for so many bytes? ERROR_STORE_FULL. */
bool rocks_room_check(struct rocks_engine *rocks, uint64_t wanted, bool only_deletes,
                      struct error *err);
/* Makes a batch durable; a failure poisons the engine. */
bool rocks_batch_commit(struct rocks_engine *rocks, rocksdb_writebatch_t *batch, struct error *err);
bool rocks_check_poison(struct rocks_engine *rocks, struct error *err);

/* load.c */
bool rocks_load(struct engine *engine, struct engine_section *sections, size_t count,
                struct error *err);
/* Takes a file that was made for the store into it; the file is gone then. */
bool rocks_file_ingest(struct rocks_engine *rocks, const char *path, const char *doing,
                       struct error *err);

/* care.c */
bool rocks_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                      uint64_t *ret_bytes, struct error *err);
bool rocks_backup(struct engine *engine, struct slice directory, struct error *err);

/* reset.c */
bool rocks_reset(struct slice url, struct slice copy, struct error *err);
/* store.c: the directory that a rocksdb: URL names. ERROR_STORE_URL. */
NODISCARD bool rocks_url_path(struct slice url, struct slice *ret_path, struct error *err);
bool rocks_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                      struct error *err);
bool rocks_upkeep(struct engine *engine, struct engine_upkeep *ret_upkeep);
/* Bytes a memory: node holds: write buffers and files of its memory environment. */
uint64_t rocks_bytes_stored(struct rocks_engine *rocks);

/* wal.c */
/* True: the logs of the store are sound, but for an unfinished last write. */
NODISCARD bool rocks_wal_is_torn_at_most(const char *store, bool *ret_torn_at_most,
                                         struct error *err);
/* The logs of the store, oldest first. There are few: each is gone when its writes are in files. */
enum { ROCKS_LOGS_MAX = 256 };
struct rocks_log {
    uint64_t number, bytes;
};
NODISCARD bool rocks_wal_list(const char *store, struct rocks_log ret_logs[ROCKS_LOGS_MAX],
                              size_t *ret_count, struct error *err);
/* The last sequence number in a log; 0: it holds none. */
NODISCARD bool rocks_wal_last(const char *store, uint64_t number, uint64_t *ret_sequence,
                              struct error *err);

/* store.c */
rocksdb_options_t *rocks_options_new(size_t write_buffer_bytes, bool memory, rocksdb_cache_t *cache,
                                     struct error *err);

/* sizes.c: how a budget is divided; what is given holds. budget 0: there is none. */
struct rocks_sizes rocks_sizes_of(size_t budget, const struct rocks_sizes *given);
/* Takes part in the budget, if there is one, from before the store is opened; it is; and no longer.
 */
struct rocks_sizes rocks_sizes_join(struct rocks_engine *rocks);
void rocks_sizes_ready(struct rocks_engine *rocks);
void rocks_sizes_leave(struct rocks_engine *rocks);
