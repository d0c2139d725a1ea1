/* Walking a range. RocksDB stops by itself at the bounds handed to it, so every step is one call;
 * going backwards starts below the upper bound. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

enum { READAHEAD_BYTES = 256 * 1024 };

struct rocks_iterator {
    struct engine_iterator iterator;
    rocksdb_iterator_t *native;
    rocksdb_readoptions_t *options;
    struct buf min, max; /* with prefix; RocksDB points into them */
    struct buf seek;
    bool backwards;
    bool placed; /* the native iterator stands on the entry to return next */
};

void rocks_range_bounds(uint32_t partition, struct engine_range range, struct buf *ret_min,
                        struct buf *ret_max)
{
    assert(partition > 0 && partition <= ENGINE_PARTITION_MAX); /* one more is a prefix as well */
    buf_append_be32(ret_min, partition);
    buf_append_slice(ret_min, range.min);
    if (range.max.data) {
        buf_append_be32(ret_max, partition);
        buf_append_slice(ret_max, range.max);
    } else {
        buf_append_be32(ret_max, partition + 1);
    }
}

bool rocks_iterator_new(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                        struct engine_range range, bool backwards, enum engine_reach reach,
                        struct engine_iterator **ret_iterator, struct error *err UNUSED)
{
    enum { BLOCK_CACHE_TIER = 1 };
    struct rocks_engine *rocks = rocks_of(engine);
    struct rocks_iterator *iterator = MEMORY_NEW(struct rocks_iterator);
    struct rocks_snapshot *own = (struct rocks_snapshot *)snapshot;

    iterator->iterator.engine = engine;
    iterator->backwards = backwards;
    buf_init(&iterator->min, BUF_DEFAULT_MAX);
    buf_init(&iterator->max, BUF_DEFAULT_MAX);
    buf_init(&iterator->seek, BUF_DEFAULT_MAX);
    rocks_range_bounds(partition, range, &iterator->min, &iterator->max);
    iterator->options = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_lower_bound(iterator->options, (const char *)iterator->min.data,
                                                iterator->min.len);
    rocksdb_readoptions_set_iterate_upper_bound(iterator->options, (const char *)iterator->max.data,
                                                iterator->max.len);
    if (own)
        rocksdb_readoptions_set_snapshot(iterator->options, own->native);
    if (reach == ENGINE_READ_CACHED)
        rocksdb_readoptions_set_read_tier(iterator->options, BLOCK_CACHE_TIER);
    if (reach == ENGINE_READ_ONCE) {
        rocksdb_readoptions_set_fill_cache(iterator->options, 0);
        rocksdb_readoptions_set_readahead_size(iterator->options, READAHEAD_BYTES);
    }
    iterator->native = rocksdb_create_iterator(rocks->db, iterator->options);
    *ret_iterator = &iterator->iterator;
    return true;
}

void rocks_iterator_free(struct engine_iterator *handle)
{
    struct rocks_iterator *iterator = CONTAINER_OF(handle, struct rocks_iterator, iterator);

    rocksdb_iter_destroy(iterator->native);
    rocksdb_readoptions_destroy(iterator->options);
    buf_done(&iterator->min);
    buf_done(&iterator->max);
    buf_done(&iterator->seek);
    memory_free(iterator);
}

static void iterator_step(struct rocks_iterator *iterator)
{
    if (!iterator->placed) {
        if (iterator->backwards)
            rocksdb_iter_seek_to_last(iterator->native);
        else
            rocksdb_iter_seek_to_first(iterator->native);
        iterator->placed = true;
    } else if (rocksdb_iter_valid(iterator->native)) {
        if (iterator->backwards)
            rocksdb_iter_prev(iterator->native);
        else
            rocksdb_iter_next(iterator->native);
    }
}

/* The end of the range and a failure look alike until one asks. */
static bool iterator_ended(struct rocks_iterator *iterator, struct engine_entry *ret_entry,
                           struct error *err)
{
    char *failure = NULL;

    rocksdb_iter_get_error(iterator->native, &failure);
    if (!failure) {
        *ret_entry = (struct engine_entry){.found = ENGINE_ABSENT};
        return true;
    }
    if (strncmp(failure, "Result incomplete", strlen("Result incomplete")) != 0)
        return rocks_error(err, failure, "reading a range");
    rocksdb_free(failure);
    *ret_entry = (struct engine_entry){.found = ENGINE_COLD};
    return true;
}

bool rocks_iterator_next(struct engine_iterator *handle, struct engine_entry *ret_entry,
                         struct error *err)
{
    struct rocks_iterator *iterator = CONTAINER_OF(handle, struct rocks_iterator, iterator);
    const char *key, *value;
    size_t key_len, value_len;

    if (iterator->seek.len)
        buf_clear(&iterator->seek); /* a seek has placed it on the entry to return */
    else
        iterator_step(iterator);
    if (!rocksdb_iter_valid(iterator->native))
        return iterator_ended(iterator, ret_entry, err);
    key = rocksdb_iter_key(iterator->native, &key_len);
    if (key_len < ROCKS_PREFIX_LEN)
        return error_set(err, ERROR_STORE_CORRUPT, "a key of the store has no partition");
    value = rocksdb_iter_value(iterator->native, &value_len);
    *ret_entry = (struct engine_entry){
        .found = ENGINE_FOUND,
        .key = slice_of(key + ROCKS_PREFIX_LEN, key_len - ROCKS_PREFIX_LEN),
        .value = slice_of(value, value_len),
    };
    return true;
}

/* RocksDB clamps a forward seek to the lower bound and a backward one to the upper bound. */
bool rocks_iterator_seek(struct engine_iterator *handle, struct slice key, struct error *err UNUSED)
{
    struct rocks_iterator *iterator = CONTAINER_OF(handle, struct rocks_iterator, iterator);

    buf_clear(&iterator->seek);
    buf_append(&iterator->seek, iterator->min.data, ROCKS_PREFIX_LEN);
    buf_append_slice(&iterator->seek, key);
    if (iterator->backwards)
        rocksdb_iter_seek_for_prev(iterator->native, (const char *)iterator->seek.data,
                                   iterator->seek.len);
    else
        rocksdb_iter_seek(iterator->native, (const char *)iterator->seek.data, iterator->seek.len);
    iterator->placed = true;
    return true;
}
