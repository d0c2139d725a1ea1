/* Is a damaged log only torn at its end?
 *
 * A power cut may leave the last, never acknowledged write half in the log: blocks that read as
 * zeros, a checksum that does not fit. RocksDB takes an incomplete last record for the end of the
 * log, but not a damaged one, and the modes it offers are to refuse every such log or to drop
 * everything behind any damage, acknowledged or not. We can tell the two apart: a group is written
 * only after the one before it was synced, so behind a torn write there can be no further one. If
 * a whole record begins anywhere behind the damage, the damage is in what was acknowledged, and
 * the store must not be opened.
 *
 * The log as RocksDB writes it: blocks of 32 KB; in them records, none crossing a block:
 *
 *     4 bytes  masked CRC-32C of type and payload, little-endian
 *     2 bytes  length of the payload, little-endian
 *     1 byte   type: 1 whole, 2 first, 3 middle, 4 last part
 *     payload
 *
 * Fewer than 7 bytes at the end of a block are zeros. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 32 * 1024, HEADER = 7 };
enum { TYPE_WHOLE = 1, TYPE_FIRST = 2, TYPE_LAST = 4, TYPE_LAST_KNOWN = TYPE_LAST };

static void crc_table_make(uint32_t ret_table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
        ret_table[i] = crc;
    }
}

static uint32_t crc_masked(const uint32_t table[256], struct slice bytes)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < bytes.len; i++)
        crc = table[(crc ^ bytes.data[i]) & 0xFF] ^ crc >> 8;
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

/* The record at this place of the log, if a sound one begins there: its length with header. */
static size_t record_at(const uint32_t table[256], struct slice log, size_t at, uint8_t *ret_type)
{
    size_t room = MIN(BLOCK - at % BLOCK, log.len - at);
    const uint8_t *header = log.data + at;
    size_t len;

    if (room < HEADER)
        return 0;
    len = header[4] | (size_t)header[5] << 8;
    if (header[6] == 0 || header[6] > TYPE_LAST_KNOWN || HEADER + len > room ||
        crc_masked(table, slice_of(header + 6, 1 + len)) != bytes_get_le32(header))
        return 0;
    *ret_type = header[6];
    return HEADER + len;
}

/* The first place where no sound record begins; log.len when all is well. */
static size_t damage_find(const uint32_t table[256], struct slice log)
{
    size_t at = 0, len;
    uint8_t type;

    while (at < log.len) {
        if (BLOCK - at % BLOCK < HEADER) {
            at += BLOCK - at % BLOCK;
            continue;
        }
        len = record_at(table, log, at, &type);
        if (!len)
            return at;
        at += len;
    }
    return log.len;
}

static bool log_is_torn_at_most(struct slice log)
{
    uint32_t table[256];
    uint8_t type;

    crc_table_make(table);
    /* Lengths are not to be trusted behind the damage: every byte may begin a record. */
    for (size_t at = damage_find(table, log); at < log.len; at++)
        if (record_at(table, log, at, &type) && (type == TYPE_WHOLE || type == TYPE_FIRST))
            return false;
    return true;
}

/* The whole log, mapped for the call; empty: SLICE_NONE. */
static bool log_visit(int directory, const char *name,
                      void (*visit)(struct slice log, void *context), void *context,
                      struct error *err)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    struct stat status;
    void *bytes;

    if (fd < 0)
        return error_set_errno(err, ERROR_STORE_IO, "opening log \"%s\"", name);
    if (fstat(fd, &status) != 0) {
        close(fd);
        return error_set_errno(err, ERROR_STORE_IO, "looking at log \"%s\"", name);
    }
    if (status.st_size > 0) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) {
            close(fd);
            return error_set_errno(err, ERROR_STORE_IO, "reading log \"%s\"", name);
        }
        visit(slice_of(bytes, (size_t)status.st_size), context);
        munmap(bytes, (size_t)status.st_size);
    } else {
        visit(SLICE_NONE, context);
    }
    close(fd);
    return true;
}

static void torn_look(struct slice log, void *context)
{
    *(bool *)context = log_is_torn_at_most(log);
}

static bool name_is_log(const char *name)
{
    size_t len = strlen(name);

    return len > 4 && strcmp(name + len - 4, ".log") == 0;
}

bool rocks_wal_is_torn_at_most(const char *store, bool *ret_torn_at_most, struct error *err)
{
    DIR *listing = opendir(store);
    const struct dirent *entry;
    bool checked = true, torn_at_most = true;

    if (!listing)
        return error_set_errno(err, ERROR_STORE_IO, "reading \"%s\"", store);
    while (checked && torn_at_most && (entry = readdir(listing)) != NULL)
        if (name_is_log(entry->d_name))
            checked = log_visit(dirfd(listing), entry->d_name, torn_look, &torn_at_most, err);
    closedir(listing);
    *ret_torn_at_most = torn_at_most;
    return checked;
}

/* --- How far it goes ------------------------------------------------------------------------- */

/* A batch begins with its sequence number, 8 bytes, and how many it takes, 4 bytes. */
static uint64_t batch_last(struct slice payload)
{
    return payload.len < 12
               ? 0
               : bytes_get_le64(payload.data) + MAX(bytes_get_le32(payload.data + 8), 1u) - 1;
}

/* Lengths and types alone: what is damaged is found out by RocksDB. A batch counts when its last
 * part is there. */
static void last_look(struct slice log, void *context)
{
    uint64_t *last = context, begun = 0;
    size_t at = 0;

    while (at < log.len) {
        size_t room = MIN(BLOCK - at % BLOCK, log.len - at), len;
        const uint8_t *header = log.data + at;

        if (BLOCK - at % BLOCK < HEADER) {
            at += BLOCK - at % BLOCK;
            continue;
        }
        if (room < HEADER)
            return;
        len = header[4] | (size_t)header[5] << 8;
        if (header[6] == 0 || header[6] > TYPE_LAST_KNOWN || HEADER + len > room)
            return;
        if (header[6] == TYPE_WHOLE || header[6] == TYPE_FIRST)
            begun = batch_last(slice_of(header + HEADER, len));
        if (header[6] == TYPE_WHOLE || header[6] == TYPE_LAST)
            *last = begun;
        at += HEADER + len;
    }
}

static int log_compare(const void *a, const void *b)
{
    const struct rocks_log *one = a, *other = b;

    return (one->number > other->number) - (one->number < other->number);
}

bool rocks_wal_list(const char *store, struct rocks_log ret_logs[ROCKS_LOGS_MAX], size_t *ret_count,
                    struct error *err)
{
    DIR *listing = opendir(store);
    const struct dirent *entry;
    struct stat status;
    size_t count = 0;

    if (!listing)
        return error_set_errno(err, ERROR_STORE_IO, "reading \"%s\"", store);
    while (count < ROCKS_LOGS_MAX && (entry = readdir(listing)) != NULL)
        if (name_is_log(entry->d_name) && fstatat(dirfd(listing), entry->d_name, &status, 0) == 0)
            ret_logs[count++] =
                (struct rocks_log){strtoull(entry->d_name, NULL, 10), (uint64_t)status.st_size};
    closedir(listing);
    qsort(ret_logs, count, sizeof *ret_logs, log_compare);
    *ret_count = count;
    return true;
}

bool rocks_wal_last(const char *store, uint64_t number, uint64_t *ret_sequence, struct error *err)
{
    int directory = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[40];
    bool looked;

    if (directory < 0)
        return error_set_errno(err, ERROR_STORE_IO, "reading \"%s\"", store);
    (void)snprintf(name, sizeof name, "%06llu.log", (unsigned long long)number);
    *ret_sequence = 0;
    looked = log_visit(directory, name, last_look, ret_sequence, err);
    close(directory);
    return looked;
}
