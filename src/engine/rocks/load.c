/* Loading. The entries of a section become a file as RocksDB has them, made beside the store and
 * taken into it whole. Nothing of it passes through log, write buffer and compaction, where other
 * writes would wait for it; RocksDB puts the file as far down as its keys allow, and of a partition
 * that is being made nothing is there yet.
 *
 * Taking it in is a change of RocksDB's list of files, synced; writers wait for that moment alone.
 * The file goes to the disk a megabyte at a time while it is made: synced in one go it would keep
 * the log's syncs, which clients wait for, behind all of it. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

#include <fcntl.h>
#include <unistd.h>

enum { SYNC_STEP = 1024 * 1024 };

static uint64_t section_bytes(const struct engine_section *section)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < section->count; i++)
        bytes += ROCKS_PREFIX_LEN + section->ops[i].key.len + section->ops[i].value.len;
    return bytes;
}

/* Sends what was written so far to the disk and waits for that. What it does not reach, or cannot,
 * is synced when the file is finished. */
static void file_send(int fd)
{
    if (fd >= 0)
        (void)sync_file_range(fd, 0, 0,
                              SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                                  SYNC_FILE_RANGE_WAIT_AFTER);
}

static void entries_put(rocksdb_sstfilewriter_t *writer, const struct engine_section *section,
                        int fd, char **failure)
{
    uint8_t key[ROCKS_PREFIX_LEN + ENGINE_KEY_MAX];
    size_t unsent = 0;

    bytes_put_be32(key, section->partition);
    for (size_t i = 0; i < section->count && !*failure; i++) {
        const struct engine_op *op = &section->ops[i];

        assert(op->kind == ENGINE_PUT && op->key.len <= ENGINE_KEY_MAX);
        memcpy(key + ROCKS_PREFIX_LEN, op->key.data, op->key.len);
        rocksdb_sstfilewriter_put(writer, (const char *)key, ROCKS_PREFIX_LEN + op->key.len,
                                  (const char *)op->value.data, op->value.len, failure);
        unsent += op->key.len + op->value.len;
        if (unsent >= SYNC_STEP) {
            file_send(fd);
            unsent = 0;
        }
    }
}

static bool file_write(struct rocks_engine *rocks, const char *path,
                       const struct engine_section *section, struct error *err)
{
    rocksdb_envoptions_t *env_options = rocksdb_envoptions_create();
    rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(env_options, rocks->options);
    char *failure = NULL;

    rocksdb_sstfilewriter_open(writer, path, &failure);
    if (!failure) {
        int fd = rocks->memory ? -1 : open(path, O_RDONLY | O_CLOEXEC);

        entries_put(writer, section, fd, &failure);
        if (fd >= 0)
            close(fd);
    }
    if (!failure)
        rocksdb_sstfilewriter_finish(writer, &failure);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env_options);
    return failure ? rocks_error(err, failure, "loading") : true;
}

bool rocks_file_ingest(struct rocks_engine *rocks, const char *path, const char *doing,
                       struct error *err)
{
    rocksdb_ingestexternalfileoptions_t *options = rocksdb_ingestexternalfileoptions_create();
    char *failure = NULL;

    rocksdb_ingestexternalfileoptions_set_move_files(options, 1);
    rocksdb_ingest_external_file(rocks->db, (const char *const[]){path}, 1, options, &failure);
    rocksdb_ingestexternalfileoptions_destroy(options);
    return failure ? rocks_error(err, failure, doing) : true;
}

static bool section_load(struct rocks_engine *rocks, const char *path,
                         struct engine_section *section, struct error *err)
{
    uint64_t bytes = section_bytes(section);
    bool done;

    if (section->count == 0)
        return true;
    if (!rocks_check_poison(rocks, err) || !rocks_room_check(rocks, bytes, false, err) ||
        !file_write(rocks, path, section, err))
        return false;
    pthread_rwlock_rdlock(&rocks->fence);
    rocks_recall_change_begin(rocks->recall, section->partition);
    done = rocks_sections_check(rocks, section, 1, err) &&
           rocks_file_ingest(rocks, path, "loading", err);
    rocks_recall_change_end(rocks->recall);
    pthread_rwlock_unlock(&rocks->fence);
    atomic_fetch_add_explicit(&rocks->writes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&rocks->bytes_written, bytes, memory_order_relaxed);
    return done;
}

bool rocks_load(struct engine *engine, struct engine_section *sections, size_t count,
                struct error *err)
{
    struct rocks_engine *rocks = rocks_of(engine);
    const char *path = rocks->memory ? "/memory-load.sst" : rocks_directory_load(rocks->directory);
    bool done = true;

    WITH_LOCK (&rocks->load_lock)
        for (size_t i = 0; done && i < count; i++)
            done = section_load(rocks, path, &sections[i], err);
    return done;
}
