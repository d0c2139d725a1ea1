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
enum { TYPE_WHOLE = 1, TYPE_FIRST = 2, TYPE_LAST_KNOWN = 4 };

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

static bool log_check(int directory, const char *name, bool *ret_torn_at_most, struct error *err)
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
    *ret_torn_at_most = true;
    if (status.st_size > 0) {
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED) {
            close(fd);
            return error_set_errno(err, ERROR_STORE_IO, "reading log \"%s\"", name);
        }
        *ret_torn_at_most = log_is_torn_at_most(slice_of(bytes, (size_t)status.st_size));
        munmap(bytes, (size_t)status.st_size);
    }
    close(fd);
    return true;
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
            checked = log_check(dirfd(listing), entry->d_name, &torn_at_most, err);
    closedir(listing);
    *ret_torn_at_most = torn_at_most;
    return checked;
}
