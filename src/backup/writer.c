/* Everything goes into ".partial-ID", which is renamed when its manifest is durable: what has the
 * name of a backup is one. */
#include "backup/archive_private.h"

#include "base/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { BUFFERED = 4 << 20, INDEX_BYTES_MAX = 1 << 30, ZSTD_LEVEL = 1 };

struct backup_writer {
    char directory[BACKUP_PATH_SIZE], path[BACKUP_PATH_SIZE];
    const struct backup_archive *parent;
    struct backup_seal seal;
    struct backup_manifest *manifest; /* in the arena */
    size_t node_capacity, partition_capacity;
    struct arena *arena;
    uint64_t stored;
    bool finished;
    ZSTD_CCtx *zstd;

    /* The partition at hand. */
    struct backup_manifest_partition *partition;
    struct arena *index_arena;
    struct backup_index before; /* of the parent */
    size_t expected;            /* the chunk of it that may come next */
    struct buf index;
    int fd;
    char file[BACKUP_PATH_SIZE];
    struct buf buffered; /* not yet in the file */
};

static bool system_fail(const char *path, struct error *err)
{
    return error_set(err, errno == ENOSPC || errno == EDQUOT ? ERROR_STORE_FULL : ERROR_SYSTEM,
                     "\"%s\": %s", path, strerror(errno));
}

static bool chain_take(struct backup_writer *writer, struct error *err)
{
    const struct backup_manifest *before;
    struct backup_manifest *manifest = writer->manifest;
    struct backup_link *link;

    if (!writer->parent)
        return true;
    before = backup_archive_manifest(writer->parent);
    if (before->chain_count == BACKUP_CHAIN_MAX)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "the chain has %d backups: take a full one before the next",
                         BACKUP_CHAIN_MAX);
    memcpy(manifest->chain, before->chain, before->chain_count * sizeof *before->chain);
    manifest->chain_count = before->chain_count;
    link = &manifest->chain[manifest->chain_count++];
    memcpy(link->id, before->id, sizeof link->id);
    memcpy(link->digest, backup_archive_digest(writer->parent), sizeof link->digest);
    return true;
}

static bool directories_make(struct backup_writer *writer, struct error *err)
{
    if (mkdir(writer->directory, 0700) != 0 && errno != EEXIST)
        return system_fail(writer->directory, err);
    if (!backup_path(writer->path, err, "%s/.partial-%s", writer->directory, writer->manifest->id))
        return false;
    if (mkdir(writer->path, 0700) != 0) {
        system_fail(writer->path, err);
        writer->path[0] = '\0';
        return false;
    }
    return true;
}

bool backup_writer_new(const struct backup_writer_options *options, int64_t time_ms,
                       struct backup_writer **ret_writer, struct error *err)
{
    CLEANUP(backup_writer_free) struct backup_writer *writer = MEMORY_NEW(struct backup_writer);

    writer->fd = -1;
    writer->parent = options->parent;
    writer->seal = *options->seal;
    writer->arena = arena_new();
    writer->index_arena = arena_new();
    writer->zstd = ZSTD_createCCtx();
    writer->manifest = ARENA_NEW(writer->arena, struct backup_manifest);
    buf_init(&writer->index, INDEX_BYTES_MAX);
    buf_init(&writer->buffered, (size_t)256 << 20);
    writer->manifest->time_ms = time_ms;
    writer->manifest->seal = writer->seal.kind;
    memcpy(writer->manifest->salt, writer->seal.salt, sizeof writer->manifest->salt);
    backup_id_make(time_ms, writer->manifest->id);
    if (!backup_path(writer->directory, err, "%s", options->directory) ||
        !chain_take(writer, err) || !directories_make(writer, err))
        return false;
    *ret_writer = TAKE(writer);
    return true;
}

/* It holds nothing but the files of this backup. */
void backup_partial_remove(const char *path)
{
    DIR *open = opendir(path);
    const struct dirent *entry;

    while (open && (entry = readdir(open)) != NULL)
        if (entry->d_name[0] != '.')
            (void)unlinkat(dirfd(open), entry->d_name, 0);
    if (open)
        closedir(open);
    (void)rmdir(path);
}

void backup_writer_free(struct backup_writer *writer)
{
    if (!writer)
        return;
    if (writer->fd >= 0)
        close(writer->fd);
    if (!writer->finished && writer->path[0])
        backup_partial_remove(writer->path);
    backup_seal_done(&writer->seal);
    ZSTD_freeCCtx(writer->zstd);
    buf_done(&writer->buffered);
    buf_done(&writer->index);
    arena_free(writer->index_arena);
    arena_free(writer->arena);
    memory_free(writer);
}

const char *backup_writer_id(const struct backup_writer *writer)
{
    return writer->manifest->id;
}

uint64_t backup_writer_stored(const struct backup_writer *writer)
{
    return writer->stored;
}

static void *grown(struct arena *arena, void *old, size_t count, size_t *capacity, size_t size)
{
    void *bigger;

    if (count < *capacity)
        return old;
    *capacity = *capacity ? *capacity * 2 : 16;
    bigger = arena_alloc(arena, memory_array_size(*capacity, size));
    if (count)
        memcpy(bigger, old, count * size);
    return bigger;
}

void backup_writer_node(struct backup_writer *writer, uint32_t number, struct slice name)
{
    struct backup_manifest *manifest = writer->manifest;

    manifest->nodes = grown(writer->arena, manifest->nodes, manifest->node_count,
                            &writer->node_capacity, sizeof *manifest->nodes);
    manifest->nodes[manifest->node_count++] =
        (struct backup_manifest_node){number, arena_copy(writer->arena, name)};
}

void backup_writer_cluster(struct backup_writer *writer, struct slice cluster)
{
    writer->manifest->cluster = arena_copy(writer->arena, cluster);
}

bool backup_writer_files(struct backup_writer *writer, struct slice files, struct error *err)
{
    CLEANUP(buf_done) struct buf sealed;
    char path[BACKUP_PATH_SIZE];

    buf_init(&sealed, BUF_DEFAULT_MAX);
    backup_seal_close(&writer->seal, SLICE("files"), files, &sealed);
    backup_digest(buf_slice(&sealed), writer->manifest->files);
    writer->stored += sealed.len;
    return backup_path(path, err, "%s/files", writer->path) &&
           backup_file_write(path, buf_slice(&sealed), err);
}

/* --- A partition ----------------------------------------------------------------------------- */

static const struct backup_manifest_partition *partition_before(const struct backup_writer *writer)
{
    return writer->parent ? backup_manifest_find(backup_archive_manifest(writer->parent),
                                                 writer->partition->node, writer->partition->id)
                          : NULL;
}

bool backup_writer_begin(struct backup_writer *writer,
                         const struct backup_manifest_partition *partition, struct error *err)
{
    struct backup_manifest *manifest = writer->manifest;
    const struct backup_manifest_partition *before;
    char name[48];

    manifest->partitions = grown(writer->arena, manifest->partitions, manifest->partition_count,
                                 &writer->partition_capacity, sizeof *manifest->partitions);
    writer->partition = &manifest->partitions[manifest->partition_count++];
    *writer->partition = *partition;
    writer->partition->numbering = arena_copy(writer->arena, partition->numbering);
    writer->partition->chunks = writer->partition->bytes = writer->partition->stored = 0;
    arena_reset(writer->index_arena);
    buf_clear(&writer->index);
    buf_clear(&writer->buffered);
    writer->before = (struct backup_index){0};
    writer->expected = 0;
    before = partition_before(writer);
    if (before &&
        !backup_archive_index(writer->parent, before, writer->index_arena, &writer->before, err))
        return false;
    backup_part_name(name, partition->node, partition->id, "data");
    if (!backup_path(writer->file, err, "%s/%s", writer->path, name))
        return false;
    writer->fd = open(writer->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return writer->fd >= 0 || system_fail(writer->file, err);
}

void backup_writer_known(const struct backup_writer *writer, struct slice after, size_t max,
                         struct buf *out)
{
    const struct backup_index *before = &writer->before;
    size_t low = 0, high = before->count;

    /* the first chunk that ends behind it */
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (slice_compare(before->chunks[middle].last, after) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < before->count && max; low++, max--)
        buf_append(out, before->chunks[low].digest, BACKUP_DIGEST_LEN);
}

static bool buffered_write(struct backup_writer *writer, struct error *err)
{
    struct slice rest = buf_slice(&writer->buffered);

    while (rest.len) {
        ssize_t written = write(writer->fd, rest.data, rest.len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return system_fail(writer->file, err);
        rest = slice_skip(rest, (size_t)written);
    }
    buf_clear(&writer->buffered);
    return true;
}

/* One that the parent has: the next that is expected, as a rule. */
static const struct backup_chunk_place *place_before(struct backup_writer *writer,
                                                     const uint8_t *digest)
{
    for (size_t i = 0; i < writer->before.count; i++) {
        size_t nth = (writer->expected + i) % writer->before.count;

        if (memcmp(writer->before.chunks[nth].digest, digest, BACKUP_DIGEST_LEN) == 0) {
            writer->expected = nth + 1;
            return &writer->before.chunks[nth];
        }
    }
    return NULL;
}

/* What does not become shorter stays as it is. */
static void pack(struct backup_writer *writer, struct slice bytes, struct buf *out)
{
    size_t packed;

    if (!buf_reserve(out, 1 + ZSTD_compressBound(bytes.len)))
        return;
    packed = ZSTD_compressCCtx(writer->zstd, out->data + 1, ZSTD_compressBound(bytes.len),
                               bytes.data, bytes.len, ZSTD_LEVEL);
    if (ZSTD_isError(packed) || packed >= bytes.len) {
        out->data[0] = 0;
        memcpy(out->data + 1, bytes.data, bytes.len);
        out->len = 1 + bytes.len;
        return;
    }
    out->data[0] = 1;
    out->len = 1 + packed;
}

bool backup_writer_chunk(struct backup_writer *writer, const struct backup_chunk_place *chunk,
                         struct slice bytes, struct error *err)
{
    struct backup_manifest_partition *partition = writer->partition;
    struct backup_chunk_place place = *chunk;
    char name[48];

    partition->chunks++;
    partition->bytes += chunk->length;
    if (!bytes.data) {
        const struct backup_chunk_place *before = place_before(writer, chunk->digest);

        if (!before)
            return error_set(err, ERROR_STORE_CORRUPT,
                             "the server names a chunk that the backup before has not");
        place.link = before->link; /* links before the parent's own are the same; its own is the
                                      last of this chain */
        place.offset = before->offset;
        place.stored = before->stored;
    } else {
        CLEANUP(buf_done) struct buf packed;
        size_t begin = writer->buffered.len;

        buf_init(&packed, (size_t)200 << 20);
        pack(writer, bytes, &packed);
        backup_part_name(name, partition->node, partition->id, "data");
        backup_seal_close(&writer->seal, slice_of_text(name), buf_slice(&packed),
                          &writer->buffered);
        place.link = (uint32_t)writer->manifest->chain_count;
        place.offset = partition->stored;
        place.stored = (uint32_t)(writer->buffered.len - begin);
        partition->stored += place.stored;
        writer->stored += place.stored;
    }
    backup_place_append(&place, &writer->index);
    return writer->buffered.len < BUFFERED || buffered_write(writer, err);
}

bool backup_writer_same(struct backup_writer *writer, struct error *err)
{
    for (size_t i = 0; i < writer->before.count; i++)
        if (!backup_writer_chunk(writer, &writer->before.chunks[i], SLICE_NONE, err))
            return false;
    return true;
}

bool backup_writer_end(struct backup_writer *writer, struct error *err)
{
    struct backup_manifest_partition *partition = writer->partition;
    CLEANUP(buf_done) struct buf sealed;
    char name[48], path[BACKUP_PATH_SIZE];
    int fd = writer->fd;

    buf_init(&sealed, INDEX_BYTES_MAX);
    if (!buffered_write(writer, err))
        return false;
    if (fsync(fd) != 0)
        return system_fail(writer->file, err);
    writer->fd = -1;
    if (close(fd) != 0)
        return system_fail(writer->file, err);
    if (!partition->stored && unlink(writer->file) != 0)
        return system_fail(writer->file, err);
    backup_part_name(name, partition->node, partition->id, "index");
    backup_seal_close(&writer->seal, slice_of_text(name), buf_slice(&writer->index), &sealed);
    backup_digest(buf_slice(&sealed), partition->index);
    writer->stored += sealed.len;
    return backup_path(path, err, "%s/%s", writer->path, name) &&
           backup_file_write(path, buf_slice(&sealed), err);
}

bool backup_writer_finish(struct backup_writer *writer, struct error *err)
{
    CLEANUP(buf_done) struct buf text, check;
    char path[BACKUP_PATH_SIZE];

    buf_init(&text, BACKUP_MANIFEST_BYTES_MAX);
    buf_init(&check, 256);
    backup_manifest_print(writer->manifest, &text);
    backup_check_append(&writer->seal, buf_slice(&text), &check);
    if (!backup_path(path, err, "%s/manifest.check", writer->path) ||
        !backup_file_write(path, buf_slice(&check), err) ||
        !backup_path(path, err, "%s/manifest.json", writer->path) ||
        !backup_file_write(path, buf_slice(&text), err) ||
        !backup_directory_sync(writer->path, err) ||
        !backup_path(path, err, "%s/%s", writer->directory, writer->manifest->id))
        return false;
    if (rename(writer->path, path) != 0)
        return system_fail(path, err);
    writer->finished = true;
    return backup_directory_sync(writer->directory, err);
}
