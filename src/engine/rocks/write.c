/* Writing. One RocksDB batch carries all sections and is synced before it becomes visible; RocksDB
 * applies a batch wholly or not at all, also after a crash.
 *
 * Free space is looked at before a write, not learned from a failed one: a log that hits the end of
 * the disk stops RocksDB until it is reopened. A margin is kept below which only deletes are
 * taken, and below half of it nothing, so that compaction can still give space back. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

enum {
    MARGIN_BYTES = 64 * 1024 * 1024,
    ROOM_STEP = 4 * 1024 * 1024, /* bytes between two looks at the free space */
};

bool rocks_check_poison(struct rocks_engine *rocks, struct error *err)
{
    if (!atomic_load_explicit(&rocks->poisoned, memory_order_acquire))
        return true;
    return error_set(err, ERROR_STORE_POISONED,
                     "node \"%s\" refuses writes since one failed: restart to recover it",
                     rocks->name);
}

bool rocks_batch_commit(struct rocks_engine *rocks, rocksdb_writebatch_t *batch, struct error *err)
{
    char *failure = NULL;

    if (!rocks_check_poison(rocks, err))
        return false;
    rocksdb_write(rocks->db, rocks->write_durable, batch, &failure);
    if (!failure) {
        rocks_mark_advance(rocks);
        return true;
    }
    atomic_store_explicit(&rocks->poisoned, true, memory_order_release);
    rocks_error(err, failure, "writing");
    /* A batch cut short by a full disk is as unknown as any other failed write. */
    if (err->code == ERROR_STORE_FULL)
        err->code = ERROR_STORE_IO;
    return false;
}

static uint64_t sections_bytes(const struct engine_section *sections, size_t count,
                               bool *ret_only_deletes)
{
    uint64_t bytes = 0;

    *ret_only_deletes = true;
    for (size_t s = 0; s < count; s++)
        for (size_t i = 0; i < sections[s].count; i++) {
            const struct engine_op *op = &sections[s].ops[i];

            bytes += op->key.len + 16;
            if (op->kind == ENGINE_PUT) {
                bytes += op->value.len;
                *ret_only_deletes = false;
            }
        }
    return bytes;
}

static bool room_check_memory(struct rocks_engine *rocks, uint64_t wanted, bool only_deletes,
                              struct error *err)
{
    uint64_t stored = rocks_bytes_stored(rocks);

    if (stored + wanted > rocks->memory_bytes_max && !only_deletes)
        return error_set(err, ERROR_STORE_FULL,
                         "memory node is full: %llu of %zu bytes used; delete something or raise "
                         "engine.memory_bytes_max",
                         (unsigned long long)stored, rocks->memory_bytes_max);
    return true;
}

static bool room_check_disk(struct rocks_engine *rocks, uint64_t wanted, bool only_deletes,
                            struct error *err)
{
    uint64_t available = rocks_directory_free_bytes(rocks->directory);
    uint64_t margin = only_deletes ? MARGIN_BYTES / 2 : MARGIN_BYTES;

    if (available < wanted + margin)
        return error_set(err, ERROR_STORE_FULL,
                         "the disk of node \"%s\" is nearly full: %llu MB are left and %llu MB are "
                         "kept for compaction; free some space",
                         rocks->name, (unsigned long long)available >> 20,
                         (unsigned long long)margin >> 20);
    return true;
}

/* Looks only once per ROOM_STEP bytes. A refusal leaves the room used up, so the next write looks
 * again. */
bool rocks_room_check(struct rocks_engine *rocks, uint64_t wanted, bool only_deletes,
                      struct error *err)
{
    int64_t left = atomic_fetch_sub_explicit(&rocks->room, (int64_t)wanted, memory_order_relaxed);

    assert(wanted <= INT64_MAX);
    if (LIKELY(left > (int64_t)wanted))
        return true;
    atomic_store_explicit(&rocks->room, 0, memory_order_relaxed);
    if (rocks->memory ? !room_check_memory(rocks, wanted, only_deletes, err)
                      : !room_check_disk(rocks, wanted, only_deletes, err))
        return false;
    /* Small caps are looked at more closely, so that they bind. */
    atomic_store_explicit(
        &rocks->room,
        rocks->memory ? (int64_t)MIN((size_t)ROOM_STEP, rocks->memory_bytes_max / 16) : ROOM_STEP,
        memory_order_relaxed);
    return true;
}

static rocksdb_writebatch_t *batch_take(struct rocks_engine *rocks)
{
    rocksdb_writebatch_t *batch = NULL;

    WITH_LOCK (&rocks->spare_lock)
        batch = TAKE(rocks->spare_batch);
    return batch ? batch : rocksdb_writebatch_create();
}

static void batch_give(struct rocks_engine *rocks, rocksdb_writebatch_t *batch)
{
    rocksdb_writebatch_clear(batch);
    WITH_LOCK (&rocks->spare_lock)
        if (!rocks->spare_batch)
            rocks->spare_batch = TAKE(batch);
    if (batch)
        rocksdb_writebatch_destroy(batch);
}

static void section_append(rocksdb_writebatch_t *batch, const struct engine_section *section)
{
    uint8_t key[ROCKS_PREFIX_LEN + ENGINE_KEY_MAX];

    bytes_put_be32(key, section->partition);
    for (size_t i = 0; i < section->count; i++) {
        const struct engine_op *op = &section->ops[i];

        assert(op->key.len <= ENGINE_KEY_MAX);
        memcpy(key + ROCKS_PREFIX_LEN, op->key.data, op->key.len);
        if (op->kind == ENGINE_PUT)
            rocksdb_writebatch_put(batch, (const char *)key, ROCKS_PREFIX_LEN + op->key.len,
                                   (const char *)op->value.data, op->value.len);
        else
            rocksdb_writebatch_delete(batch, (const char *)key, ROCKS_PREFIX_LEN + op->key.len);
    }
}

bool rocks_sections_check(struct rocks_engine *rocks, struct engine_section *sections, size_t count,
                          struct error *err)
{
    bool open = true;

    for (size_t i = 0; i < count; i++) {
        const struct engine_partition *partition =
            rocks_epochs_find(&rocks->epochs, sections[i].partition);

        sections[i].fenced = !partition || partition->epoch != sections[i].epoch;
        if (sections[i].fenced)
            open = error_set(err, ERROR_FENCED, "partition %u is no longer at epoch %llu",
                             sections[i].partition, (unsigned long long)sections[i].epoch);
    }
    return open;
}

static bool write_under_fence(struct rocks_engine *rocks, struct engine_section *sections,
                              size_t count, struct error *err)
{
    rocksdb_writebatch_t *batch;
    bool done;

    assert(count > 0);
    if (!rocks_sections_check(rocks, sections, count, err))
        return false;
    batch = batch_take(rocks);
    for (size_t i = 0; i < count; i++)
        section_append(batch, &sections[i]);
    rocks_recall_write_begin(rocks->recall, sections, count);
    done = rocks_batch_commit(rocks, batch, err);
    rocks_recall_write_end(rocks->recall, sections, count, done);
    batch_give(rocks, batch);
    return done;
}

bool rocks_write(struct engine *engine, struct engine_section *sections, size_t count,
                 struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    bool only_deletes, done;
    uint64_t bytes = sections_bytes(sections, count, &only_deletes);

    if (!rocks_check_poison(rocks, err) || !rocks_room_check(rocks, bytes, only_deletes, err))
        return false;
    pthread_rwlock_rdlock(&rocks->fence);
    done = write_under_fence(rocks, sections, count, err);
    pthread_rwlock_unlock(&rocks->fence);
    atomic_fetch_add_explicit(&rocks->writes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&rocks->bytes_written, bytes, memory_order_relaxed);
    return done;
}

/* A file that holds nothing but one range tombstone, put into the store whole.
 *
 * The ordinary way, a tombstone in a write batch, is barred to us while a version of before may
 * have to read the log: it keeps insertion hints, RocksDB 7.8 has one table of them for keys and
 * for range tombstones, and trips over its own asserts when a prefix with hints sees both (contract
 * test: a_dropped_range_is_gone_and_its_neighbours_stay). Only a bound shorter than the prefix of
 * those hints is safe, as partition_drop uses. */
static bool tombstone_file_write(struct rocks_engine *rocks, const char *path, struct slice min,
                                 struct slice max, struct error *err)
{
    rocksdb_envoptions_t *env_options = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(env_options, rocks->options);
    char *failure = NULL;

    rocksdb_sstfilewriter_open(writer, path, &failure);
    if (!failure)
        rocksdb_sstfilewriter_delete_range(writer, (const char *)min.data, min.len,
                                           (const char *)max.data, max.len, &failure);
    if (!failure)
        rocksdb_sstfilewriter_finish(writer, &failure);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env_options);
    return failure ? rocks_error(err, failure, "dropping a range") : true;
}

static bool range_drop_alone(struct rocks_engine *rocks, uint32_t id, uint64_t epoch,
                             struct engine_range range, struct error *err)
{
    const struct engine_partition *partition = rocks_epochs_find(&rocks->epochs, id);
    CLEANUP(buf_done) struct buf min, max;
    const char *path =
        rocks->memory ? "/memory-tombstone.sst" : rocks_directory_tombstone(rocks->directory);

    buf_init(&min, BUF_DEFAULT_MAX);
    buf_init(&max, BUF_DEFAULT_MAX);
    if (!partition)
        return error_set(err, ERROR_PARTITION_UNKNOWN, "there is no partition %u", id);
    if (partition->epoch != epoch)
        return error_set(err, ERROR_FENCED, "partition %u has epoch %llu, not %llu", id,
                         (unsigned long long)partition->epoch, (unsigned long long)epoch);
    rocks_range_bounds(id, range, &min, &max);
    if (slice_compare(buf_slice(&min), buf_slice(&max)) >= 0)
        return true;
    return rocks_check_poison(rocks, err) &&
           tombstone_file_write(rocks, path, buf_slice(&min), buf_slice(&max), err) &&
           rocks_file_ingest(rocks, path, "dropping a range", err);
}

/* Alone, because the file has one name; dropping ranges is rare. */
bool rocks_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                      struct engine_range range, struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    bool done;

    pthread_rwlock_wrlock(&rocks->fence);
    rocks_recall_change_begin(rocks->recall, partition);
    done = range_drop_alone(rocks, partition, epoch, range, err);
    rocks_recall_change_end(rocks->recall);
    pthread_rwlock_unlock(&rocks->fence);
    return done;
}
