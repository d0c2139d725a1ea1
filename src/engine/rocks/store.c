/* Opening and closing RocksDB, with the options that were measured to matter (DEPENDENCIES,
 * "Engines"): a write buffer of our own (tree.h), a bloom filter, and none
 * of the periodic work that would wake an idle process. */
#include "engine/rocks/rocks_private.h"

#include "base/random.h"
#include "engine/rocks/log_file.h"
#include "engine/rocks/memtable.h"

enum {
    MEMORY_DEFAULT = 1024 * 1024 * 1024,
    /* What was acknowledged was synced, so only the tail of the log may be damaged. RocksDB's mode
     * 0 takes an incomplete last record for the end and refuses all other damage; mode 2 drops
     * everything behind any damage, and is used only after wal.c has seen that nothing
     * acknowledged is there. */
    WAL_TOLERATE_INCOMPLETE_TAIL = 0,
    WAL_DROP_BEHIND_DAMAGE = 2,
    METADATA_BLOCK_BYTES = 4096,
    WAL_BYTES_MAX = 128 * 1024 * 1024, /* bounds recovery */
    LOG_WARN = 2,
    /* Files of level 0 from which on writes are slowed down (ROCKS_LEVEL_0_SLOWDOWN), and stopped.
     * At RocksDB's 20 and 36 the re-key of a million items came to a near standstill (127 KB a
     * second). Calm, there are at most four as ever, and copies wait at a quarter of it. */
    LEVEL_0_STOP = 96,
};

static bool text_contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static enum error_code error_code_of(const char *text)
{
    if (text_contains(text, "No space left") || text_contains(text, "NoSpace"))
        return ERROR_STORE_FULL;
    if (text_contains(text, "lock hold by current process") ||
        text_contains(text, "While lock file"))
        return ERROR_STORE_IN_USE;
    if (text_contains(text, "Corruption") || text_contains(text, "checksum"))
        return ERROR_STORE_CORRUPT;
    return ERROR_STORE_IO;
}

bool rocks_error(struct error *err, char *text, const char *doing)
{
    error_set(err, error_code_of(text), "%s: %s", doing, text);
    rocksdb_free(text);
    return false;
}

static void table_options_set(rocksdb_options_t *native, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_filter_policy(table,
                                                  rocksdb_filterpolicy_create_bloom_full(10));
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    /* The cache is cut into shards of a 64th, and what does not fit into one is read from the file
     * and unpacked for every get: index and filter of a large file must come in parts. */
    rocksdb_block_based_options_set_index_type(
        table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_metadata_block_size(table, METADATA_BLOCK_BYTES);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_block_based_options_set_format_version(table, 5);
    rocksdb_options_set_block_based_table_factory(native, table);
    rocksdb_block_based_options_destroy(table);
}

/* What the C interface has no function for goes through RocksDB's own option text. Logs in the
 * manifest: mark.c. */
static rocksdb_options_t *options_extend(rocksdb_options_t *base, bool memory, struct error *err)
{
#define COMMON                                                                                     \
    "memtable_factory=" ROCKS_MEMTABLE ";avoid_flush_during_recovery=true;"                        \
    "track_and_verify_wals_in_manifest=true;"
    const char *text = memory ? COMMON : COMMON "env=" ROCKS_LOG_FILES ";";
#undef COMMON
    rocksdb_options_t *extended = rocksdb_options_create();
    char *failure = NULL;

    rocks_memtable_register();
    rocks_log_files_register();
    rocksdb_get_options_from_string(base, text, extended, &failure);
    if (failure) {
        rocks_error(err, failure, "setting store options");
        rocksdb_options_destroy(extended);
        return NULL;
    }
    return extended;
}

/* What is in level 0 is written anew soon: compressing it would pay for nothing. */
static void compression_set(rocksdb_options_t *native, bool memory)
{
    static const int by_level[] = {rocksdb_no_compression, rocksdb_lz4_compression};

    if (memory)
        rocksdb_options_set_compression(native, rocksdb_no_compression);
    else
        rocksdb_options_set_compression_per_level(native, by_level, ARRAY_LEN(by_level));
}

rocksdb_options_t *rocks_options_new(size_t write_buffer_bytes, bool memory, rocksdb_cache_t *cache,
                                     struct error *err)
{
    rocksdb_options_t *base = rocksdb_options_create(), *extended;

    rocksdb_options_set_create_if_missing(base, 1);
    rocksdb_options_set_paranoid_checks(base, 1);
    rocksdb_options_set_wal_recovery_mode(base, WAL_TOLERATE_INCOMPLETE_TAIL);
    rocksdb_options_set_max_total_wal_size(base, WAL_BYTES_MAX);
    rocksdb_options_set_write_buffer_size(base, write_buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(base, ROCKS_WRITE_BUFFERS);
    rocksdb_options_set_allow_concurrent_memtable_write(base, 0);
    rocksdb_options_set_max_background_jobs(base, 2);
    rocksdb_options_set_level0_slowdown_writes_trigger(base, ROCKS_LEVEL_0_SLOWDOWN);
    rocksdb_options_set_level0_stop_writes_trigger(base, LEVEL_0_STOP);
    rocksdb_options_set_max_open_files(base, 512);
    rocksdb_options_set_bytes_per_sync(base, 1024 * 1024);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(base, 1);
    compression_set(base, memory);
    /* Nothing may wake an idle process. */
    rocksdb_options_set_stats_dump_period_sec(base, 0);
    rocksdb_options_set_stats_persist_period_sec(base, 0);
    /* RocksDB's own log is kept short; what matters reaches ours as errors. */
    rocksdb_options_set_info_log_level(base, LOG_WARN);
    rocksdb_options_set_max_log_file_size(base, 1024 * 1024);
    rocksdb_options_set_keep_log_file_num(base, 2);
    table_options_set(base, cache);
    extended = options_extend(base, memory, err);
    rocksdb_options_destroy(base);
    return extended;
}

static void read_and_write_options_make(struct rocks_engine *rocks)
{
    enum { BLOCK_CACHE_TIER = 1 };

    assert(rocks->db && !rocks->read_any);
    rocks->read_any = rocksdb_readoptions_create();
    rocks->read_cached = rocksdb_readoptions_create();
    rocksdb_readoptions_set_read_tier(rocks->read_cached, BLOCK_CACHE_TIER);
    rocks->write_durable = rocksdb_writeoptions_create();
    if (rocks->memory)
        rocksdb_writeoptions_disable_WAL(rocks->write_durable, 1);
    else
        rocksdb_writeoptions_set_sync(rocks->write_durable, 1);
}

static bool database_try(struct rocks_engine *rocks, struct error *err)
{
    static const char *const families[] = {"default"};
    const char *path = rocks->memory ? "/memory" : rocks_directory_store(rocks->directory);
    const rocksdb_options_t *family_options = rocks->options;
    char *failure = NULL;

    assert(!rocks->db);
    rocks->db = rocksdb_open_column_families(rocks->options, path, 1, families, &family_options,
                                             &rocks->family, &failure);
    return failure ? rocks_error(err, failure, "opening the store") : true;
}

/* The damaged log must be out of use before anything is written: the next crash would otherwise
 * find it in the middle. */
static bool database_flush(struct rocks_engine *rocks, struct error *err)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    char *failure = NULL;

    rocksdb_flush(rocks->db, options, &failure);
    rocksdb_flushoptions_destroy(options);
    return failure ? rocks_error(err, failure, "recovering the store") : true;
}

/* Opening failed for damage: if that is an unfinished last write, which a power cut may leave, it
 * is dropped, for it was never acknowledged. */
static bool database_recover(struct rocks_engine *rocks, struct error *err)
{
    struct error damage = *err;
    bool torn_at_most;

    assert(err->code == ERROR_STORE_CORRUPT);
    if (!rocks_wal_is_torn_at_most(rocks_directory_store(rocks->directory), &torn_at_most, err))
        return false;
    if (!torn_at_most) {
        *err = damage;
        return false;
    }
    rocksdb_options_set_wal_recovery_mode(rocks->options, WAL_DROP_BEHIND_DAMAGE);
    if (!database_try(rocks, err) || !database_flush(rocks, err))
        return false;
    log_event(rocks->log, LOG_WARNING, "dropped an unfinished write at the end of the log",
              LOG_TEXT("node", rocks->name), LOG_TEXT("reason", damage.message));
    return true;
}

static bool database_open(struct rocks_engine *rocks, const struct engine_options *options,
                          struct error *err)
{
    struct rocks_sizes sizes = rocks_sizes_join(rocks);

    rocks->cache = rocksdb_cache_create_lru(sizes.cache);
    rocks->recall = rocks_recall_new(sizes.recall, options->recalled, options->group);
    rocks->options = rocks_options_new(sizes.write_buffer, rocks->memory, rocks->cache, err);
    if (!rocks->options)
        return false;
    if (rocks->memory) {
        rocks->env = rocksdb_create_mem_env();
        rocksdb_options_set_env(rocks->options, rocks->env);
    }
    if (!rocks->memory && !rocks_mark_check(rocks, err))
        return false;
    if (!database_try(rocks, err) &&
        (rocks->memory || err->code != ERROR_STORE_CORRUPT || !database_recover(rocks, err)))
        return false;
    read_and_write_options_make(rocks);
    rocks_sizes_ready(rocks);
    return true;
}

static void rocks_close(struct engine *engine)
{
    struct rocks_engine *rocks = rocks_of(engine);

    rocks_sizes_leave(rocks);
    if (rocks->spare_batch)
        rocksdb_writebatch_destroy(rocks->spare_batch);
    if (rocks->read_any) {
        rocksdb_readoptions_destroy(rocks->read_any);
        rocksdb_readoptions_destroy(rocks->read_cached);
        rocksdb_writeoptions_destroy(rocks->write_durable);
    }
    if (rocks->db) {
        rocksdb_column_family_handle_destroy(rocks->family);
        rocksdb_close(rocks->db);
    }
    if (rocks->options)
        rocksdb_options_destroy(rocks->options);
    if (rocks->cache)
        rocksdb_cache_destroy(rocks->cache);
    if (rocks->env)
        rocksdb_env_destroy(rocks->env);
    rocks_recall_free(rocks->recall);
    rocks_epochs_done(&rocks->epochs);
    rocks_mark_close(rocks);
    rocks_directory_close(rocks->directory);
    mutex_done(&rocks->mark_lock);
    mutex_done(&rocks->load_lock);
    mutex_done(&rocks->spare_lock);
    pthread_rwlock_destroy(&rocks->fence);
    memory_free(rocks->name);
    memory_free(rocks);
}

static void rocks_close_cleanup_(struct rocks_engine **rocks)
{
    if (*rocks)
        rocks_close(&(*rocks)->engine);
}

static struct rocks_engine *rocks_new(const struct engine_driver *driver, struct slice url,
                                      const struct engine_options *options)
{
    struct rocks_engine *rocks = MEMORY_NEW(struct rocks_engine);

    rocks->memory = driver == &engine_driver_memory;
    rocks->memory_bytes_max =
        options->memory_bytes_max ? options->memory_bytes_max : MEMORY_DEFAULT;
    rocks->budget = options->budget;
    rocks->given = (struct rocks_sizes){.cache = options->cache_bytes,
                                        .recall = options->recall_bytes,
                                        .write_buffer = options->write_buffer_bytes};
    rocks->log = options->log;
    rocks->name = slice_to_text(url);
    rocks->engine.driver = driver;
    rocks->engine.name = slice_of_text(rocks->name);
    pthread_rwlock_init(&rocks->fence, NULL);
    mutex_init(&rocks->spare_lock);
    mutex_init(&rocks->load_lock);
    mutex_init(&rocks->mark_lock);
    rocks->mark_fd = -1;
    return rocks;
}

bool rocks_url_path(struct slice url, struct slice *ret_path, struct error *err)
{
    struct slice path = slice_skip(url, strlen("rocksdb:"));

    /* rocksdb:///var/lib/orrery is what people used to file: URLs write. */
    if (slice_starts_with(path, SLICE("///")))
        path = slice_skip(path, 2);
    if (path.len == 0)
        return error_set(err, ERROR_STORE_URL,
                         "node url \"rocksdb:\" names no directory: write rocksdb:DIRECTORY");
    if (memchr(path.data, '\0', path.len))
        return error_set(err, ERROR_STORE_URL, "node url has a NUL byte in its directory");
    *ret_path = path;
    return true;
}

static bool rocksdb_driver_open(struct slice url, const struct engine_options *options,
                                struct engine **ret_engine, struct error *err)
{
    CLEANUP(rocks_close)
    struct rocks_engine *rocks = rocks_new(&engine_driver_rocksdb, url, options);
    struct slice path;

    if (!rocks_url_path(url, &path, err))
        return false;
    if (!rocks_directory_open(path, &rocks->directory, err))
        return false;
    memcpy(rocks->engine.node_id, rocks_directory_node_id(rocks->directory),
           sizeof rocks->engine.node_id);
    if (!database_open(rocks, options, err) || !rocks_mark_open(rocks, err) ||
        !rocks_epochs_load(rocks, err) || !rocks_directory_ready(rocks->directory, err))
        return error_prefix(err, "node \"%.*s\"", SLICE_ARG(url));
    *ret_engine = &TAKE(rocks)->engine;
    return true;
}

static bool memory_driver_open(struct slice url, const struct engine_options *options,
                               struct engine **ret_engine, struct error *err)
{
    CLEANUP(rocks_close)
    struct rocks_engine *rocks = rocks_new(&engine_driver_memory, url, options);

    if (!slice_equal(url, SLICE("memory:")))
        return error_set(err, ERROR_STORE_URL,
                         "node url \"%.*s\" has something behind memory:", SLICE_ARG(url));
    random_uuid(rocks->engine.node_id);
    if (!database_open(rocks, options, err))
        return false;
    *ret_engine = &TAKE(rocks)->engine;
    return true;
}

#define ROCKS_DRIVER_FUNCTIONS                                                                     \
    .close = rocks_close, .cluster_join = rocks_cluster_join, .cluster_id = rocks_cluster_id,      \
    .partition_create = rocks_partition_create, .partition_fence = rocks_partition_fence,          \
    .partition_drop = rocks_partition_drop, .partition_list = rocks_partition_list,                \
    .snapshot_new = rocks_snapshot_new, .snapshot_free = rocks_snapshot_free, .get = rocks_get,    \
    .multi_get = rocks_multi_get, .iterator_new = rocks_iterator_new,                              \
    .iterator_free = rocks_iterator_free, .iterator_next = rocks_iterator_next,                    \
    .iterator_seek = rocks_iterator_seek, .write = rocks_write, .load = rocks_load,                \
    .range_drop = rocks_range_drop, .range_size = rocks_range_size, .backup = rocks_backup,        \
    .statistics = rocks_statistics, .upkeep = rocks_upkeep, .group_find = rocks_group_find,        \
    .group_offer = rocks_group_offer

const struct engine_driver engine_driver_rocksdb = {
    .scheme = "rocksdb",
    .open = rocksdb_driver_open,
    .reset = rocks_reset,
    ROCKS_DRIVER_FUNCTIONS,
};

const struct engine_driver engine_driver_memory = {
    .scheme = "memory",
    .open = memory_driver_open,
    ROCKS_DRIVER_FUNCTIONS,
};
