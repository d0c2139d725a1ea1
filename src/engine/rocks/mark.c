/* How far writes were acknowledged.
 *
 * RocksDB takes a log that is cut short, or is not there any more, for one that ends early: it
 * opens, and what was acknowledged is gone without a word. It can note in its manifest the logs
 * that it has ended itself, and does so here; but neither the one it is writing to, nor that which
 * a process before it left. So these are noted in a file of our own, DIR/acknowledged:
 *
 *     8 bytes   the sequence number of the last acknowledged write, little-endian
 *     8 bytes   the same with every bit turned over
 *     16 bytes  number and length of a log that was there when the store was opened; and so on
 *
 * The first is written after each sync of the log and never synced itself, so it is never ahead of
 * what is safe: after a crash of the process it is exact, after a power cut it may be behind. A
 * store that ends before it has lost something. A file that is missing or makes no sense says
 * nothing, and so does a log of number 0: a power cut may keep the file's length and not its end.
 * Writing it costs a microsecond beside a sync; mapping it would save that, and kill the server
 * where somebody cuts the file short.
 *
 * All is looked for before RocksDB opens the store to write: it would go on with a new log, and
 * take no notice of one that is put back. */
#include "engine/rocks/rocks_private.h"

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MARK_LEN = 16, LOG_LEN = 16 };

static bool mark_read(int fd, uint64_t *ret_sequence)
{
    uint8_t bytes[MARK_LEN];

    if (pread(fd, bytes, sizeof bytes, 0) != MARK_LEN)
        return false;
    *ret_sequence = bytes_get_le64(bytes);
    return bytes_get_le64(bytes + 8) == ~*ret_sequence;
}

static bool mark_write(int fd, uint64_t sequence)
{
    uint8_t bytes[MARK_LEN];

    assert(fd >= 0);
    bytes_put_le64(bytes, sequence);
    bytes_put_le64(bytes + 8, ~sequence);
    return pwrite(fd, bytes, sizeof bytes, 0) == MARK_LEN;
}

static bool missing(const char *path, uint64_t acknowledged, uint64_t reached, struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT,
                     "%llu acknowledged writes are missing: the log was removed or cut short; "
                     "restore the files, or remove \"%s\" to go on without them",
                     (unsigned long long)(acknowledged - reached), path);
}

static bool log_missing(const char *path, const struct rocks_log *log, struct error *err)
{
    return error_set(err, ERROR_STORE_CORRUPT,
                     "acknowledged writes are missing: log %06llu.log was removed or cut short; "
                     "restore it, or remove \"%s\" to go on without them",
                     (unsigned long long)log->number, path);
}

/* What can be learned by opening the store to read, which changes nothing. */
struct reading {
    bool done; /* false: it cannot be opened; the opening that follows says why */
    uint64_t reached, log_needed; /* logs from this number on hold what is in no file */
};

static struct reading store_read(const struct rocks_engine *rocks)
{
    char *failure = NULL;
    rocksdb_t *db = rocksdb_open_for_read_only(
        rocks->options, rocks_directory_store(rocks->directory), 0, &failure);
    struct reading reading = {.done = !failure};

    if (failure) {
        rocksdb_free(failure);
        return reading;
    }
    reading.reached = rocksdb_get_latest_sequence_number(db);
    if (rocksdb_property_int(db, "rocksdb.min-log-number-to-keep", &reading.log_needed) != 0)
        reading.log_needed = 0;
    rocksdb_close(db);
    return reading;
}

/* Those that a process before left are there in their whole length, or not needed any more. */
static bool logs_check(const struct rocks_engine *rocks, int fd, const struct rocks_log *logs,
                       size_t count, struct error *err)
{
    uint8_t bytes[LOG_LEN];

    for (off_t at = MARK_LEN; pread(fd, bytes, sizeof bytes, at) == LOG_LEN; at += LOG_LEN) {
        struct rocks_log noted = {bytes_get_le64(bytes), bytes_get_le64(bytes + 8)};
        struct reading reading;
        bool whole = !noted.number; /* zeros that a power cut has left: no log has that number */

        for (size_t i = 0; i < count; i++)
            whole |= logs[i].number == noted.number && logs[i].bytes >= noted.bytes;
        if (whole)
            continue;
        reading = store_read(rocks);
        if (reading.done && noted.number >= reading.log_needed)
            return log_missing(rocks_directory_acknowledged(rocks->directory), &noted, err);
    }
    return true;
}

/* The newest log ends with the last write, unless it is empty: then that may be in files. */
static bool end_check(const struct rocks_engine *rocks, uint64_t acknowledged,
                      const struct rocks_log *logs, size_t count, struct error *err)
{
    struct reading reading;
    uint64_t reached = 0;

    if (count && !rocks_wal_last(rocks_directory_store(rocks->directory), logs[count - 1].number,
                                 &reached, err))
        return false;
    if (count && !reached) {
        reading = store_read(rocks);
        reached = reading.done ? reading.reached : UINT64_MAX;
    }
    return reached >= acknowledged ||
           missing(rocks_directory_acknowledged(rocks->directory), acknowledged, reached, err);
}

bool rocks_mark_check(struct rocks_engine *rocks, struct error *err)
{
    const char *path = rocks_directory_acknowledged(rocks->directory);
    struct rocks_log logs[ROCKS_LOGS_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint64_t acknowledged;
    size_t count;
    bool fine;

    assert(!rocks->memory && !rocks->db);
    if (fd < 0)
        return errno == ENOENT || error_set_errno(err, ERROR_STORE_IO, "opening \"%s\"", path);
    fine = !mark_read(fd, &acknowledged) ||
           (rocks_wal_list(rocks_directory_store(rocks->directory), logs, &count, err) &&
            logs_check(rocks, fd, logs, count, err) &&
            end_check(rocks, acknowledged, logs, count, err));
    close(fd);
    return fine;
}

/* All but the one that is being written to. */
static bool logs_note(const struct rocks_engine *rocks, struct error *err)
{
    struct rocks_log logs[ROCKS_LOGS_MAX];
    uint8_t bytes[LOG_LEN];
    size_t count;
    bool fine;

    assert(rocks->mark_fd >= 0);
    if (!rocks_wal_list(rocks_directory_store(rocks->directory), logs, &count, err))
        return false;
    fine = ftruncate(rocks->mark_fd, MARK_LEN) == 0;
    for (size_t i = 0; fine && i + 1 < count; i++) {
        bytes_put_le64(bytes, logs[i].number);
        bytes_put_le64(bytes + 8, logs[i].bytes);
        fine =
            pwrite(rocks->mark_fd, bytes, sizeof bytes, MARK_LEN + (off_t)i * LOG_LEN) == LOG_LEN;
    }
    return (fine && fdatasync(rocks->mark_fd) == 0) ||
           error_set_errno(err, ERROR_STORE_IO, "writing \"%s\"",
                           rocks_directory_acknowledged(rocks->directory));
}

bool rocks_mark_open(struct rocks_engine *rocks, struct error *err)
{
    const char *path = rocks_directory_acknowledged(rocks->directory);
    uint64_t reached = rocksdb_get_latest_sequence_number(rocks->db), acknowledged = 0;

    assert(!rocks->memory && rocks->mark_fd < 0);
    rocks->mark_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (rocks->mark_fd < 0)
        return error_set_errno(err, ERROR_STORE_IO, "opening \"%s\"", path);
    if (mark_read(rocks->mark_fd, &acknowledged) && acknowledged > reached)
        return missing(path, acknowledged, reached, err);
    rocks->mark = reached;
    if (!mark_write(rocks->mark_fd, reached))
        return error_set_errno(err, ERROR_STORE_IO, "writing \"%s\"", path);
    return logs_note(rocks, err);
}

/* One that cannot be written is behind, which it may be. */
void rocks_mark_advance(struct rocks_engine *rocks)
{
    uint64_t reached = rocksdb_get_latest_sequence_number(rocks->db);

    WITH_LOCK (&rocks->mark_lock)
        if (rocks->mark_fd >= 0 && reached > rocks->mark && mark_write(rocks->mark_fd, reached))
            rocks->mark = reached;
}

void rocks_mark_close(struct rocks_engine *rocks)
{
    if (rocks->mark_fd >= 0)
        close(rocks->mark_fd);
    rocks->mark_fd = -1;
}
