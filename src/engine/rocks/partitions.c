/* Which partitions the node holds and under which epoch. The table in memory is the truth while the
 * store is open, for no other process can write it; the keys in the store bring it back. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

enum { EPOCH_KEY_LEN = 9 };

static const uint8_t cluster_key[] = {0, 0, 0, 0, 'c'};

static void epoch_key(uint32_t id, uint8_t ret_key[EPOCH_KEY_LEN])
{
    memcpy(ret_key, "\0\0\0\0e", 5);
    bytes_put_be32(ret_key + 5, id);
}

/* Where id is, or where it would be. */
static size_t epochs_place(const struct rocks_epochs *epochs, uint32_t id)
{
    size_t low = 0, high = epochs->count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (epochs->entries[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct engine_partition *rocks_epochs_find(const struct rocks_epochs *epochs, uint32_t id)
{
    size_t place = epochs_place(epochs, id);

    if (place == epochs->count || epochs->entries[place].id != id)
        return NULL;
    return &epochs->entries[place];
}

static void epochs_set(struct rocks_epochs *epochs, uint32_t id, uint64_t epoch)
{
    size_t place = epochs_place(epochs, id);

    if (place < epochs->count && epochs->entries[place].id == id) {
        epochs->entries[place].epoch = epoch;
        return;
    }
    if (epochs->count == epochs->capacity) {
        epochs->capacity = epochs->capacity ? epochs->capacity * 2 : 16;
        epochs->entries = memory_realloc(
            epochs->entries, memory_array_size(epochs->capacity, sizeof *epochs->entries));
    }
    memmove(&epochs->entries[place + 1], &epochs->entries[place],
            (epochs->count - place) * sizeof *epochs->entries);
    epochs->entries[place] = (struct engine_partition){.id = id, .epoch = epoch};
    epochs->count++;
    assert(place == 0 || epochs->entries[place - 1].id < id);
    assert(place + 1 == epochs->count || id < epochs->entries[place + 1].id);
}

static void epochs_remove(struct rocks_epochs *epochs, uint32_t id)
{
    size_t place = epochs_place(epochs, id);

    if (place == epochs->count || epochs->entries[place].id != id)
        return;
    epochs->count--;
    memmove(&epochs->entries[place], &epochs->entries[place + 1],
            (epochs->count - place) * sizeof *epochs->entries);
}

void rocks_epochs_done(struct rocks_epochs *epochs)
{
    memory_free(epochs->entries);
    *epochs = (struct rocks_epochs){0};
}

static bool epochs_read(struct rocks_engine *rocks, rocksdb_iterator_t *iterator, struct error *err)
{
    char *failure = NULL;

    for (rocksdb_iter_seek(iterator, "\0\0\0\0e", 5); rocksdb_iter_valid(iterator);
         rocksdb_iter_next(iterator)) {
        size_t key_len, value_len;
        const uint8_t *key = (const uint8_t *)rocksdb_iter_key(iterator, &key_len);
        const uint8_t *value = (const uint8_t *)rocksdb_iter_value(iterator, &value_len);

        if (key_len < 5 || memcmp(key, "\0\0\0\0e", 5) != 0)
            break;
        if (key_len != EPOCH_KEY_LEN || value_len != 8)
            return error_set(err, ERROR_STORE_CORRUPT, "the list of partitions is damaged");
        epochs_set(&rocks->epochs, bytes_get_be32(key + 5), bytes_get_be64(value));
    }
    rocksdb_iter_get_error(iterator, &failure);
    return failure ? rocks_error(err, failure, "reading the list of partitions") : true;
}

bool rocks_epochs_load(struct rocks_engine *rocks, struct error *err)
{
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(rocks->db, rocks->read_any);
    bool loaded = epochs_read(rocks, iterator, err);

    rocksdb_iter_destroy(iterator);
    return loaded;
}

static bool epoch_put(struct rocks_engine *rocks, uint32_t id, uint64_t epoch, struct error *err)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    uint8_t key[EPOCH_KEY_LEN], value[8];
    bool done;

    assert(id > 0 && id <= ENGINE_PARTITION_MAX && epoch > 0);
    epoch_key(id, key);
    bytes_put_be64(value, epoch);
    rocksdb_writebatch_put(batch, (const char *)key, sizeof key, (const char *)value, sizeof value);
    done = rocks_batch_commit(rocks, batch, err);
    rocksdb_writebatch_destroy(batch);
    if (done)
        epochs_set(&rocks->epochs, id, epoch);
    return done;
}

static bool create_fenced(struct rocks_engine *rocks, uint32_t id, uint64_t epoch,
                          struct error *err)
{
    if (rocks_epochs_find(&rocks->epochs, id))
        return error_set(err, ERROR_PARTITION_EXISTS, "partition %u exists already", id);
    return epoch_put(rocks, id, epoch, err);
}

static bool raise_fenced(struct rocks_engine *rocks, uint32_t id, uint64_t epoch, struct error *err)
{
    const struct engine_partition *partition = rocks_epochs_find(&rocks->epochs, id);

    if (!partition)
        return error_set(err, ERROR_PARTITION_UNKNOWN, "there is no partition %u", id);
    if (epoch <= partition->epoch)
        return error_set(err, ERROR_FENCED, "partition %u has epoch %llu, which is not below %llu",
                         id, (unsigned long long)partition->epoch, (unsigned long long)epoch);
    return epoch_put(rocks, id, epoch, err);
}

bool rocks_partition_create(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    bool done;

    pthread_rwlock_wrlock(&rocks->fence);
    done = create_fenced(rocks, id, epoch, err);
    pthread_rwlock_unlock(&rocks->fence);
    return done;
}

bool rocks_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    bool done;

    pthread_rwlock_wrlock(&rocks->fence);
    done = raise_fenced(rocks, id, epoch, err);
    pthread_rwlock_unlock(&rocks->fence);
    return done;
}

/* One range tombstone makes the keys vanish at once; then whole files that held nothing else are
 * unlinked and the rest is left to compaction. Its lower bound is the bare prefix of 4 bytes, too
 * short for the insertion hints of versions before, which must not meet range tombstones (write.c).
 */
static bool drop_fenced(struct rocks_engine *rocks, uint32_t id, struct error *err)
{
    CLEANUP(buf_done) struct buf min, max;
    rocksdb_writebatch_t *batch;
    uint8_t key[EPOCH_KEY_LEN];
    char *failure = NULL;
    bool done;

    buf_init(&min, BUF_DEFAULT_MAX);
    buf_init(&max, BUF_DEFAULT_MAX);
    if (!rocks_epochs_find(&rocks->epochs, id))
        return true;
    rocks_range_bounds(id, (struct engine_range){0}, &min, &max);
    assert(min.len == ROCKS_PREFIX_LEN && max.len == ROCKS_PREFIX_LEN);
    epoch_key(id, key);
    batch = rocksdb_writebatch_create();
    rocksdb_writebatch_delete_range(batch, (char *)min.data, min.len, (char *)max.data, max.len);
    rocksdb_writebatch_delete(batch, (char *)key, sizeof key);
    done = rocks_batch_commit(rocks, batch, err);
    rocksdb_writebatch_destroy(batch);
    if (!done)
        return false;
    epochs_remove(&rocks->epochs, id);
    rocksdb_delete_file_in_range(rocks->db, (char *)min.data, min.len, (char *)max.data, max.len,
                                 &failure);
    if (!failure)
        rocksdb_suggest_compact_range(rocks->db, (char *)min.data, min.len, (char *)max.data,
                                      max.len, &failure);
    /* The keys are gone either way; space that comes back later is no failure of the drop. */
    if (failure) {
        log_event(rocks->log, LOG_WARNING, "space of a dropped partition was not freed at once",
                  LOG_INT("partition", id), LOG_TEXT("reason", failure));
        rocksdb_free(failure);
    }
    return true;
}

bool rocks_partition_drop(struct engine *engine, uint32_t id, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    bool done;

    pthread_rwlock_wrlock(&rocks->fence);
    rocks_recall_change_begin(rocks->recall, id);
    done = drop_fenced(rocks, id, err);
    rocks_recall_change_end(rocks->recall);
    pthread_rwlock_unlock(&rocks->fence);
    return done;
}

bool rocks_partition_list(struct engine *engine, struct arena *arena,
                          struct engine_partition **ret_partitions, size_t *ret_count,
                          struct error *err UNUSED)
{
    struct rocks_engine *rocks = rocks_of(engine);

    pthread_rwlock_rdlock(&rocks->fence);
    *ret_count = rocks->epochs.count;
    *ret_partitions = ARENA_ARRAY(arena, struct engine_partition, rocks->epochs.count);
    if (rocks->epochs.count)
        memcpy(*ret_partitions, rocks->epochs.entries,
               rocks->epochs.count * sizeof **ret_partitions);
    pthread_rwlock_unlock(&rocks->fence);
    return true;
}

bool rocks_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                      struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    char *failure = NULL, *value;
    size_t len = 0;

    value = rocksdb_get(rocks->db, rocks->read_any, (const char *)cluster_key, sizeof cluster_key,
                        &len, &failure);
    if (failure)
        return rocks_error(err, failure, "reading the cluster id");
    *ret_id = arena_copy(arena, slice_of(value, len));
    if (value)
        rocksdb_free(value);
    return true;
}

static bool join_fenced(struct rocks_engine *rocks, struct slice cluster_id, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    rocksdb_writebatch_t *batch;
    struct slice present;
    bool done;

    if (!rocks_cluster_id(&rocks->engine, arena, &present, err))
        return false;
    if (slice_equal(present, cluster_id))
        return true;
    if (present.len)
        return error_set(err, ERROR_STORE_FOREIGN, "node \"%s\" belongs to cluster %.*s, not %.*s",
                         rocks->name, SLICE_ARG(present), SLICE_ARG(cluster_id));
    batch = rocksdb_writebatch_create();
    rocksdb_writebatch_put(batch, (const char *)cluster_key, sizeof cluster_key,
                           (const char *)cluster_id.data, cluster_id.len);
    done = rocks_batch_commit(rocks, batch, err);
    rocksdb_writebatch_destroy(batch);
    return done;
}

bool rocks_cluster_join(struct engine *engine, struct slice cluster_id, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    bool done;

    pthread_rwlock_wrlock(&rocks->fence);
    done = join_fenced(rocks, cluster_id, err);
    pthread_rwlock_unlock(&rocks->fence);
    return done;
}
