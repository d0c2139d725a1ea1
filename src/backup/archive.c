/* Nothing of a backup is believed: the manifest is checked, then every index against the manifest,
 * and every chunk against its index. */
#include "backup/archive_private.h"

#include "base/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum {
    PLACE_HEAD = BACKUP_DIGEST_LEN + 4 + 1 + 8 + 4 + 2,
    INDEX_BYTES_MAX = 1 << 30,
    CHECK_BYTES_MAX = 256,
    FILES_BYTES_MAX = 16 << 20,
};

struct backup_archive {
    char path[BACKUP_PATH_SIZE];
    char directory[BACKUP_PATH_SIZE]; /* that the chain is in */
    struct arena *arena;
    struct backup_manifest manifest;
    struct backup_seal seal;
    uint8_t digest[BACKUP_DIGEST_LEN];

    /* The file chunks were last read from. */
    int fd;
    char open_path[BACKUP_PATH_SIZE];
};

/* --- Files ----------------------------------------------------------------------------------- */

bool backup_path(char ret_path[BACKUP_PATH_SIZE], struct error *err, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(ret_path, BACKUP_PATH_SIZE, format, args);
    va_end(args);
    return (len >= 0 && len < BACKUP_PATH_SIZE) ||
           error_set(err, ERROR_CONFIGURATION, "the path of the backup is too long");
}

void backup_part_name(char ret_name[48], uint32_t node, uint32_t partition, const char *ending)
{
    snprintf(ret_name, 48, "%u-%u.%s", node, partition, ending);
}

static bool system_fail(const char *path, struct error *err)
{
    return error_set(err, errno == ENOSPC || errno == EDQUOT ? ERROR_STORE_FULL : ERROR_SYSTEM,
                     "\"%s\": %s", path, strerror(errno));
}

static bool bytes_write(int fd, struct slice bytes)
{
    while (bytes.len) {
        ssize_t written = write(fd, bytes.data, bytes.len);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes = slice_skip(bytes, (size_t)written);
    }
    return true;
}

bool backup_file_write(const char *path, struct slice bytes, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good;

    if (fd < 0)
        return system_fail(path, err);
    good = bytes_write(fd, bytes) && fsync(fd) == 0;
    if (!good)
        system_fail(path, err);
    if (close(fd) != 0 && good)
        return system_fail(path, err);
    return good;
}

bool backup_file_read(const char *path, struct buf *out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;

    if (fd < 0)
        return error_set(err, errno == ENOENT ? ERROR_STORE_CORRUPT : ERROR_SYSTEM, "\"%s\": %s",
                         path, strerror(errno));
    while (got > 0 && out->len < out->max &&
           buf_reserve(out, MIN((size_t)64 * 1024, out->max - out->len))) {
        got = read(fd, out->data + out->len, MIN(out->capacity, out->max) - out->len);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            out->len += (size_t)got;
    }
    if (got < 0)
        system_fail(path, err);
    else if (got > 0)
        error_set(err, ERROR_STORE_CORRUPT, "\"%s\" is too large", path);
    close(fd);
    return got == 0;
}

bool backup_directory_sync(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;

    if (!good)
        system_fail(path, err);
    if (fd >= 0)
        close(fd);
    return good;
}

void backup_check_append(const struct backup_seal *seal, struct slice manifest, struct buf *out)
{
    uint8_t check[BACKUP_CHECK_LEN];

    static_assert((int)BACKUP_CHECK_LEN == (int)BACKUP_DIGEST_LEN, "either fits");
    if (seal->kind == BACKUP_SEAL_NONE)
        backup_digest(manifest, check);
    else
        backup_seal_check(seal, manifest, check);
    backup_hex(slice_of(check, sizeof check), out);
    BUF_APPEND(out, "\n");
}

/* --- Which backup ---------------------------------------------------------------------------- */

static bool is_backup(const char *path)
{
    char manifest[BACKUP_PATH_SIZE];
    struct error ignored;

    return backup_path(manifest, &ignored, "%s/manifest.json", path) && access(manifest, F_OK) == 0;
}

/* The last one of a directory, by its id. */
static bool last_find(const char *directory, char ret_id[BACKUP_ID_SIZE], struct error *err)
{
    DIR *open = opendir(directory);
    const struct dirent *entry;

    ret_id[0] = '\0';
    if (!open)
        return system_fail(directory, err);
    while ((entry = readdir(open)) != NULL) {
        char path[BACKUP_PATH_SIZE];

        if (!backup_id_is(entry->d_name) || strcmp(entry->d_name, ret_id) <= 0 ||
            !backup_path(path, err, "%s/%s", directory, entry->d_name) || !is_backup(path))
            continue;
        memcpy(ret_id, entry->d_name, strlen(entry->d_name) + 1); /* as long as an id can be */
    }
    closedir(open);
    return ret_id[0] || error_set(err, ERROR_NOT_FOUND, "there is no backup in \"%s\"", directory);
}

static bool place_find(struct backup_archive *archive, const char *path, struct error *err)
{
    char id[BACKUP_ID_SIZE], *slash;

    if (!is_backup(path))
        return last_find(path, id, err) && backup_path(archive->directory, err, "%s", path) &&
               backup_path(archive->path, err, "%s/%s", path, id);
    if (!realpath(path, archive->path))
        return system_fail(path, err);
    memcpy(archive->directory, archive->path, sizeof archive->directory);
    slash = strrchr(archive->directory, '/');
    if (slash)
        *slash = '\0';
    return true;
}

/* --- The key --------------------------------------------------------------------------------- */

static void secret_done(struct buf *buf)
{
    if (buf->len)
        OPENSSL_cleanse(buf->data, buf->len);
    buf_done(buf);
}
CLEANUP_VALUE_FN(struct buf, secret_done)

bool backup_secret_seal(const struct backup_secret *secret, enum backup_seal_kind kind,
                        const uint8_t salt[BACKUP_SALT_LEN], struct backup_seal *ret_seal,
                        struct error *err)
{
    CLEANUP(secret_done) struct buf text;
    const char *path = kind == BACKUP_SEAL_KEY_FILE     ? secret->key_file
                       : kind == BACKUP_SEAL_PASSPHRASE ? secret->passphrase_file
                                                        : NULL;
    struct slice bytes, line, rest;

    buf_init(&text, BACKUP_SECRET_MAX);
    if (kind != BACKUP_SEAL_NONE && !path)
        return error_set(err, ERROR_BAD_REQUEST,
                         kind == BACKUP_SEAL_KEY_FILE
                             ? "the backup is encrypted with a key file: give --key FILE"
                             : "the backup is encrypted with a passphrase: give --passphrase FILE");
    if (path && !backup_file_read(path, &text, err))
        return error_set(err, ERROR_BAD_REQUEST, "the file \"%s\" cannot be read", path);
    bytes = buf_slice(&text);
    if (kind == BACKUP_SEAL_PASSPHRASE && slice_split(bytes, '\n', &line, &rest))
        bytes = line;
    return backup_seal_init(ret_seal, kind, salt, bytes, err);
}

/* --- Opening --------------------------------------------------------------------------------- */

static bool manifest_load(const char *path, struct buf *out, struct error *err)
{
    char file[BACKUP_PATH_SIZE];

    return backup_path(file, err, "%s/manifest.json", path) && backup_file_read(file, out, err);
}

static bool check_compare(const struct backup_archive *archive, struct slice manifest,
                          struct error *err)
{
    CLEANUP(buf_done) struct buf right, found;
    char file[BACKUP_PATH_SIZE];

    buf_init(&right, CHECK_BYTES_MAX);
    buf_init(&found, 2 * (size_t)64 * 1024);
    if (!backup_path(file, err, "%s/manifest.check", archive->path) ||
        !backup_file_read(file, &found, err))
        return false;
    backup_check_append(&archive->seal, manifest, &right);
    if (slice_equal(buf_slice(&right), buf_slice(&found)))
        return true;
    if (archive->seal.kind != BACKUP_SEAL_NONE)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the key does not open the backup \"%s\", or its manifest was changed",
                         archive->manifest.id);
    return error_set(err, ERROR_STORE_CORRUPT, "the manifest of backup \"%s\" was changed",
                     archive->manifest.id);
}

static bool link_check(const struct backup_archive *archive, const struct backup_link *link,
                       struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    char path[BACKUP_PATH_SIZE];
    uint8_t digest[BACKUP_DIGEST_LEN];
    struct error why;

    buf_init(&text, BACKUP_MANIFEST_BYTES_MAX);
    if (!backup_path(path, err, "%s/%s", archive->directory, link->id))
        return false;
    if (!manifest_load(path, &text, &why))
        return error_set(err, ERROR_STORE_CORRUPT,
                         "the chain is broken: backup \"%s\" builds on \"%s\", which is not there",
                         archive->manifest.id, link->id);
    backup_digest(buf_slice(&text), digest);
    return memcmp(digest, link->digest, sizeof digest) == 0 ||
           error_set(err, ERROR_STORE_CORRUPT,
                     "the chain is broken: \"%s\" is not the backup that \"%s\" builds on",
                     link->id, archive->manifest.id);
}

bool backup_archive_open(const char *path, const struct backup_secret *secret,
                         struct backup_archive **ret_archive, struct error *err)
{
    CLEANUP(backup_archive_free)
    struct backup_archive *archive = MEMORY_NEW(struct backup_archive);
    CLEANUP(buf_done) struct buf text;

    archive->fd = -1;
    archive->arena = arena_new();
    buf_init(&text, BACKUP_MANIFEST_BYTES_MAX);
    if (!place_find(archive, path, err) || !manifest_load(archive->path, &text, err) ||
        !backup_manifest_read(buf_slice(&text), archive->arena, &archive->manifest, err) ||
        !backup_secret_seal(secret, archive->manifest.seal, archive->manifest.salt, &archive->seal,
                            err) ||
        !check_compare(archive, buf_slice(&text), err))
        return false;
    backup_digest(buf_slice(&text), archive->digest);
    for (size_t i = 0; i < archive->manifest.chain_count; i++)
        if (!link_check(archive, &archive->manifest.chain[i], err))
            return false;
    *ret_archive = TAKE(archive);
    return true;
}

void backup_archive_free(struct backup_archive *archive)
{
    if (!archive)
        return;
    if (archive->fd >= 0)
        close(archive->fd);
    backup_seal_done(&archive->seal);
    arena_free(archive->arena);
    memory_free(archive);
}

const struct backup_manifest *backup_archive_manifest(const struct backup_archive *archive)
{
    return &archive->manifest;
}

const struct backup_seal *backup_archive_seal(const struct backup_archive *archive)
{
    return &archive->seal;
}

const uint8_t *backup_archive_digest(const struct backup_archive *archive)
{
    return archive->digest;
}

const char *backup_archive_path(const struct backup_archive *archive)
{
    return archive->path;
}

/* --- Indexes --------------------------------------------------------------------------------- */

void backup_place_append(const struct backup_chunk_place *place, struct buf *out)
{
    uint8_t len[2];

    buf_append(out, place->digest, sizeof place->digest);
    buf_append_be32(out, place->length);
    buf_append_byte(out, (uint8_t)place->link);
    buf_append_be64(out, place->offset);
    buf_append_be32(out, place->stored);
    bytes_put_be16(len, (uint16_t)place->last.len);
    buf_append(out, len, sizeof len);
    buf_append_slice(out, place->last);
}

static bool places_read(struct slice bytes, size_t links, struct arena *arena,
                        struct backup_index *ret_index)
{
    struct backup_index index = {0};
    size_t capacity = bytes.len / PLACE_HEAD + 1;

    index.chunks = ARENA_ARRAY(arena, struct backup_chunk_place, capacity);
    while (bytes.len) {
        struct backup_chunk_place *place = &index.chunks[index.count++];
        size_t last;

        if (bytes.len < PLACE_HEAD)
            return false;
        memcpy(place->digest, bytes.data, BACKUP_DIGEST_LEN);
        place->length = bytes_get_be32(bytes.data + BACKUP_DIGEST_LEN);
        place->link = bytes.data[BACKUP_DIGEST_LEN + 4];
        place->offset = bytes_get_be64(bytes.data + BACKUP_DIGEST_LEN + 5);
        place->stored = bytes_get_be32(bytes.data + BACKUP_DIGEST_LEN + 13);
        last = bytes_get_be16(bytes.data + BACKUP_DIGEST_LEN + 17);
        if (bytes.len < PLACE_HEAD + last || place->link > links)
            return false;
        place->last = arena_copy(arena, slice_of(bytes.data + PLACE_HEAD, last));
        bytes = slice_skip(bytes, PLACE_HEAD + last);
    }
    *ret_index = index;
    return true;
}

bool backup_archive_index(const struct backup_archive *archive,
                          const struct backup_manifest_partition *partition, struct arena *arena,
                          struct backup_index *ret_index, struct error *err)
{
    CLEANUP(buf_done) struct buf sealed, bytes;
    char file[BACKUP_PATH_SIZE], name[48];
    uint8_t digest[BACKUP_DIGEST_LEN];

    buf_init(&sealed, INDEX_BYTES_MAX);
    buf_init(&bytes, INDEX_BYTES_MAX);
    backup_part_name(name, partition->node, partition->id, "index");
    if (!backup_path(file, err, "%s/%s", archive->path, name) ||
        !backup_file_read(file, &sealed, err))
        return false;
    backup_digest(buf_slice(&sealed), digest);
    if (memcmp(digest, partition->index, sizeof digest) != 0)
        return error_set(err, ERROR_STORE_CORRUPT, "\"%s\" was changed", file);
    if (!backup_seal_open(&archive->seal, slice_of_text(name), buf_slice(&sealed), &bytes, err))
        return false;
    return places_read(buf_slice(&bytes), archive->manifest.chain_count, arena, ret_index) ||
           error_set(err, ERROR_STORE_CORRUPT, "\"%s\" is no index", file);
}

/* --- Chunks ---------------------------------------------------------------------------------- */

static bool file_open(struct backup_archive *archive, const char *path, struct error *err)
{
    if (archive->fd >= 0 && strcmp(archive->open_path, path) == 0)
        return true;
    if (archive->fd >= 0)
        close(archive->fd);
    archive->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (archive->fd < 0)
        return error_set(err, ERROR_STORE_CORRUPT, "the chain is broken: \"%s\": %s", path,
                         strerror(errno));
    snprintf(archive->open_path, sizeof archive->open_path, "%s", path);
    return true;
}

static bool range_read(int fd, uint64_t offset, size_t len, struct buf *out)
{
    if (!buf_reserve(out, len))
        return false;
    while (len) {
        ssize_t got = pread(fd, out->data + out->len, len, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        out->len += (size_t)got;
        offset += (uint64_t)got;
        len -= (size_t)got;
    }
    return true;
}

static bool unpack(struct slice packed, size_t length, struct buf *buf)
{
    size_t got;

    if (packed.len < 1 || length > buf->max || !buf_reserve(buf, length))
        return false;
    if (packed.data[0] == 0) {
        buf_append_slice(buf, slice_skip(packed, 1));
        return buf->len == length;
    }
    got = ZSTD_decompress(buf->data, length, packed.data + 1, packed.len - 1);
    if (packed.data[0] != 1 || ZSTD_isError(got) || got != length)
        return false;
    buf->len = length;
    return true;
}

bool backup_archive_chunk(struct backup_archive *archive,
                          const struct backup_manifest_partition *partition,
                          const struct backup_chunk_place *place, struct buf *buf,
                          struct error *err)
{
    CLEANUP(buf_done) struct buf sealed, packed;
    const struct backup_manifest *manifest = &archive->manifest;
    const char *id =
        place->link < manifest->chain_count ? manifest->chain[place->link].id : manifest->id;
    char file[BACKUP_PATH_SIZE], name[48];
    uint8_t digest[BACKUP_DIGEST_LEN];

    buf_init(&sealed, buf->max + 1024);
    buf_init(&packed, buf->max + 1024);
    backup_part_name(name, partition->node, partition->id, "data");
    if (!backup_path(file, err, "%s/%s/%s", archive->directory, id, name) ||
        !file_open(archive, file, err))
        return false;
    if (!range_read(archive->fd, place->offset, place->stored, &sealed))
        return error_set(err, ERROR_STORE_CORRUPT, "\"%s\" is cut off", file);
    if (!backup_seal_open(&archive->seal, slice_of_text(name), buf_slice(&sealed), &packed, err))
        return error_prefix(err, "backup \"%s\"", id);
    buf_clear(buf);
    if (!unpack(buf_slice(&packed), place->length, buf))
        return error_set(err, ERROR_STORE_CORRUPT, "\"%s\" holds a damaged chunk at byte %llu",
                         file, (unsigned long long)place->offset);
    backup_digest(buf_slice(buf), digest);
    return memcmp(digest, place->digest, sizeof digest) == 0 ||
           error_set(err, ERROR_STORE_CORRUPT, "\"%s\" holds another chunk at byte %llu", file,
                     (unsigned long long)place->offset);
}

/* --- Walking --------------------------------------------------------------------------------- */

struct backup_walk {
    struct backup_archive *archive;
    const struct backup_manifest_partition *partition;
    struct arena *arena;
    struct backup_index index;
    size_t next; /* chunk */
    struct buf chunk;
    struct backup_chunk_reader reader;
};

bool backup_walk_new(struct backup_archive *archive,
                     const struct backup_manifest_partition *partition,
                     struct backup_walk **ret_walk, struct error *err)
{
    CLEANUP(backup_walk_free) struct backup_walk *walk = MEMORY_NEW(struct backup_walk);

    walk->archive = archive;
    walk->partition = partition;
    walk->arena = arena_new();
    buf_init(&walk->chunk, (size_t)128 << 20);
    backup_chunk_reader_init(&walk->reader, SLICE_NONE);
    if (!backup_archive_index(archive, partition, walk->arena, &walk->index, err))
        return false;
    *ret_walk = TAKE(walk);
    return true;
}

void backup_walk_free(struct backup_walk *walk)
{
    if (!walk)
        return;
    backup_chunk_reader_done(&walk->reader);
    buf_done(&walk->chunk);
    arena_free(walk->arena);
    memory_free(walk);
}

bool backup_walk_next(struct backup_walk *walk, struct slice *ret_key, struct slice *ret_value,
                      bool *ret_found, struct error *err)
{
    for (;;) {
        if (!backup_chunk_next(&walk->reader, ret_key, ret_value, ret_found, err))
            return false;
        if (*ret_found || walk->next == walk->index.count)
            return true;
        if (!backup_archive_chunk(walk->archive, walk->partition, &walk->index.chunks[walk->next++],
                                  &walk->chunk, err))
            return false;
        backup_chunk_reader_done(&walk->reader);
        backup_chunk_reader_init(&walk->reader, buf_slice(&walk->chunk));
    }
}

void backup_walk_skip(struct backup_walk *walk, struct slice key)
{
    while (walk->next < walk->index.count &&
           slice_compare(walk->index.chunks[walk->next].last, key) < 0)
        walk->next++;
}

bool backup_archive_files(const struct backup_archive *archive, struct buf *out, struct error *err)
{
    CLEANUP(buf_done) struct buf sealed;
    char file[BACKUP_PATH_SIZE];
    uint8_t digest[BACKUP_DIGEST_LEN];

    buf_init(&sealed, FILES_BYTES_MAX);
    if (!backup_path(file, err, "%s/files", archive->path) || !backup_file_read(file, &sealed, err))
        return false;
    backup_digest(buf_slice(&sealed), digest);
    if (memcmp(digest, archive->manifest.files, sizeof digest) != 0)
        return error_set(err, ERROR_STORE_CORRUPT, "\"%s\" was changed", file);
    return backup_seal_open(&archive->seal, SLICE("files"), buf_slice(&sealed), out, err);
}
