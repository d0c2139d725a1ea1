/* Sizes, statistics and online backup. */
#include "engine/rocks/rocks_private.h"

#include <errno.h>
#include <sys/stat.h>

enum { COPY_CHUNK_BYTES = 1024 * 1024 };

static uint64_t property(struct rocks_engine *rocks, const char *name)
{
    uint64_t value = 0;

    rocksdb_property_int(rocks->db, name, &value);
    return value;
}

uint64_t rocks_bytes_stored(struct rocks_engine *rocks)
{
    return property(rocks, "rocksdb.total-sst-files-size") +
           property(rocks, "rocksdb.cur-size-all-mem-tables");
}

/* Bytes that are still in the write buffer are not counted: RocksDB estimates from its files. */
bool rocks_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                      uint64_t *ret_bytes, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    CLEANUP(buf_done) struct buf min, max;
    char *failure = NULL;

    buf_init(&min, BUF_DEFAULT_MAX);
    buf_init(&max, BUF_DEFAULT_MAX);
    rocks_range_bounds(partition, range, &min, &max);
    rocksdb_approximate_sizes(rocks->db, 1, (const char *const[]){(const char *)min.data}, &min.len,
                              (const char *const[]){(const char *)max.data}, &max.len, ret_bytes,
                              &failure);
    return failure ? rocks_error(err, failure, "estimating a size") : true;
}

/* Files that were written and not yet merged into the others; more than so many slow writes down.
 */
static double backlog(struct rocks_engine *rocks)
{
    return (double)property(rocks, "rocksdb.num-files-at-level0") / ROCKS_LEVEL_0_SLOWDOWN;
}

bool rocks_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                      struct error *err UNUSED)
{
    struct rocks_engine *rocks = rocks_of(engine);
    uint64_t stored = rocks_bytes_stored(rocks);

    *ret_statistics = (struct engine_statistics){
        .durable = !rocks->memory,
        .poisoned = atomic_load(&rocks->poisoned),
        .bytes_stored = stored,
        .bytes_free = rocks->memory ? rocks->memory_bytes_max - MIN(stored, rocks->memory_bytes_max)
                                    : rocks_directory_free_bytes(rocks->directory),
        .bytes_resident = property(rocks, "rocksdb.cur-size-all-mem-tables") +
                          rocksdb_cache_get_usage(rocks->cache),
        .reads = atomic_load(&rocks->reads),
        .writes = atomic_load(&rocks->writes),
        .bytes_written = atomic_load(&rocks->bytes_written),
        .backlog = backlog(rocks),
    };
    return true;
}

bool rocks_upkeep(struct engine *engine, struct engine_upkeep *ret_upkeep)
{
    struct rocks_engine *rocks = rocks_of(engine);
    struct rocks_recall_figures recall = rocks_recall_figures(rocks->recall);

    *ret_upkeep = (struct engine_upkeep){
        .cache_bytes = rocksdb_cache_get_usage(rocks->cache),
        .cache_bytes_max = rocksdb_cache_get_capacity(rocks->cache),
        .recall_hits = recall.hits,
        .recall_misses = recall.misses,
        .compaction_bytes = property(rocks, "rocksdb.estimate-pending-compaction-bytes"),
        .compactions = property(rocks, "rocksdb.num-running-compactions"),
        .flushes = property(rocks, "rocksdb.num-running-flushes"),
        .stalled = property(rocks, "rocksdb.is-write-stopped") ||
                   property(rocks, "rocksdb.actual-delayed-write-rate"),
    };
    return true;
}

/* RocksDB hard-links its immutable files and copies the rest: the cost does not grow with data. */
static bool backup_checkpoint(struct rocks_engine *rocks, const char *target, struct error *err)
{
    char *failure = NULL;
    rocksdb_checkpoint_t *checkpoint = rocksdb_checkpoint_object_create(rocks->db, &failure);

    if (failure)
        return rocks_error(err, failure, "preparing a backup");
    rocksdb_checkpoint_create(checkpoint, target, 0, &failure);
    rocksdb_checkpoint_object_destroy(checkpoint);
    return failure ? rocks_error(err, failure, "writing a backup") : true;
}

static bool copy_flush(rocksdb_t *target, rocksdb_writebatch_t *batch, struct error *err)
{
    rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
    char *failure = NULL;

    rocksdb_writeoptions_set_sync(options, 1);
    rocksdb_write(target, options, batch, &failure);
    rocksdb_writeoptions_destroy(options);
    rocksdb_writebatch_clear(batch);
    return failure ? rocks_error(err, failure, "writing a backup") : true;
}

static bool copy_entries(rocksdb_iterator_t *from, rocksdb_t *target, rocksdb_writebatch_t *batch,
                         struct error *err)
{
    char *failure = NULL;
    size_t pending = 0;

    for (rocksdb_iter_seek_to_first(from); rocksdb_iter_valid(from); rocksdb_iter_next(from)) {
        size_t key_len, value_len;
        const char *key = rocksdb_iter_key(from, &key_len);
        const char *value = rocksdb_iter_value(from, &value_len);

        rocksdb_writebatch_put(batch, key, key_len, value, value_len);
        pending += key_len + value_len;
        if (pending >= COPY_CHUNK_BYTES) {
            pending = 0;
            if (!copy_flush(target, batch, err))
                return false;
        }
    }
    rocksdb_iter_get_error(from, &failure);
    if (failure)
        return rocks_error(err, failure, "reading for a backup");
    return copy_flush(target, batch, err);
}

/* A memory: node has no files to link: its entries are copied, as of one moment, into a new store
 * on disk. */
static bool backup_copy(struct rocks_engine *rocks, const char *target_path, struct error *err)
{
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(COPY_CHUNK_BYTES);
    rocksdb_options_t *options = rocks_options_new(
        rocks_sizes_of(0, &(struct rocks_sizes){0}).write_buffer, false, cache, err);
    rocksdb_t *target = NULL;
    char *failure = NULL;
    bool done = false;

    if (options)
        target = rocksdb_open(options, target_path, &failure);
    if (failure)
        rocks_error(err, failure, "making a backup");
    if (target) {
        rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
        rocksdb_iterator_t *from = rocksdb_create_iterator(rocks->db, rocks->read_any);

        done = copy_entries(from, target, batch, err);
        rocksdb_iter_destroy(from);
        rocksdb_writebatch_destroy(batch);
        rocksdb_close(target);
    }
    if (options)
        rocksdb_options_destroy(options);
    rocksdb_cache_destroy(cache);
    return done;
}

bool rocks_backup(struct engine *engine, struct slice directory, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *path = arena_text(arena, directory);
    const char *store = arena_text(arena, arena_printf(arena, "%.*s/store", SLICE_ARG(directory)));

    if (mkdir(path, 0700) != 0)
        return error_set_errno(err, ERROR_STORE_IO, "making the backup directory \"%s\"", path);
    if (rocks->memory ? !backup_copy(rocks, store, err) : !backup_checkpoint(rocks, store, err))
        return error_prefix(err, "backup of node \"%s\"", rocks->name);
    return rocks_directory_mark_copy(directory, rocks->engine.node_id, err);
}
