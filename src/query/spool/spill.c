/* One file for each spool: results that wait in the cache then hold one descriptor each, and not
 * one for each run. The room of runs that were merged into another is given back by punching holes
 * where the file system can; elsewhere it counts until the file goes.
 *
 * Bytes are asked for before they are written, block by block, first of the query and then of all.
 * The last of the disk is never taken: the directory is mostly that of the data, whose own writes
 * matter more than a sort. */
#include "query/spool/spill.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BLOCK_BYTES = 256 * 1024 };

#define FREE_BYTES_MIN ((uint64_t)1 << 30) /* or a twentieth of the disk, if that is less */

struct query_spill {
    char *directory;
    uint64_t query_bytes_max, total_bytes_max;
    const struct query_spill_io *io;
    _Atomic uint64_t bytes, bytes_written, failures;
};

struct query_spill_budget {
    atomic_uint refs;
    struct query_spill *spill;
    _Atomic uint64_t bytes, bytes_written;
    atomic_bool failed;
};

struct query_spill_file {
    unsigned refs;
    struct query_spill_budget *budget; /* a reference */
    int fd;
    uint64_t end;
    uint64_t counted; /* in the budget */
};

/* --- The system ------------------------------------------------------------------------------ */

/* A file without a name; where the file system has no such thing, one that loses it at once. */
static int system_open(void *self UNUSED, const char *directory)
{
    char path[4096];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if ((size_t)snprintf(path, sizeof path, "%s/orrery-spill-XXXXXX", directory) >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

static bool disk_has_room(int fd)
{
    struct statvfs disk;
    uint64_t all, left;

    if (fstatvfs(fd, &disk) != 0)
        return true; /* writing will tell */
    all = (uint64_t)disk.f_blocks * disk.f_frsize;
    left = (uint64_t)disk.f_bavail * disk.f_frsize;
    return left >= MIN(all / 20, FREE_BYTES_MIN);
}

static ssize_t system_write(void *self UNUSED, int fd, const void *bytes, size_t len, off_t at)
{
    if (!disk_has_room(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite(fd, bytes, len, at);
}

static ssize_t system_read(void *self UNUSED, int fd, void *bytes, size_t len, off_t at)
{
    return pread(fd, bytes, len, at);
}

static const struct query_spill_io system_io = {
    .open = system_open, .write = system_write, .read = system_read};

/* --- The store ------------------------------------------------------------------------------- */

struct query_spill *query_spill_new(const struct query_spill_options *options)
{
    struct query_spill *spill = MEMORY_NEW(struct query_spill);
    size_t size = strlen(options->directory) + 1;

    spill->directory = memory_alloc(size);
    memcpy(spill->directory, options->directory, size);
    spill->query_bytes_max = options->query_bytes_max;
    spill->total_bytes_max = options->total_bytes_max;
    spill->io = options->io ? options->io : &system_io;
    return spill;
}

void query_spill_free(struct query_spill *spill)
{
    if (!spill)
        return;
    assert(atomic_load(&spill->bytes) == 0);
    memory_free(spill->directory);
    memory_free(spill);
}

void query_spill_metrics(const struct query_spill *spill, struct query_spill_metrics *ret_metrics)
{
    *ret_metrics = (struct query_spill_metrics){
        .bytes = atomic_load_explicit(&spill->bytes, memory_order_relaxed),
        .bytes_written = atomic_load_explicit(&spill->bytes_written, memory_order_relaxed),
        .failures = atomic_load_explicit(&spill->failures, memory_order_relaxed),
    };
}

uint64_t query_spill_bytes_max(const struct query_spill *spill)
{
    return spill->total_bytes_max;
}

/* --- Budgets --------------------------------------------------------------------------------- */

struct query_spill_budget *query_spill_budget_new(struct query_spill *spill)
{
    struct query_spill_budget *budget;

    if (!spill || !spill->query_bytes_max || !spill->total_bytes_max)
        return NULL;
    budget = MEMORY_NEW(struct query_spill_budget);
    budget->refs = 1;
    budget->spill = spill;
    return budget;
}

struct query_spill_budget *query_spill_budget_ref(struct query_spill_budget *budget)
{
    if (budget)
        atomic_fetch_add_explicit(&budget->refs, 1, memory_order_relaxed);
    return budget;
}

void query_spill_budget_unref(struct query_spill_budget *budget)
{
    if (budget && atomic_fetch_sub_explicit(&budget->refs, 1, memory_order_acq_rel) == 1)
        memory_free(budget);
}

uint64_t query_spill_budget_written(const struct query_spill_budget *budget)
{
    return budget ? atomic_load_explicit(&budget->bytes_written, memory_order_relaxed) : 0;
}

uint64_t query_spill_budget_bytes(const struct query_spill_budget *budget)
{
    return budget ? atomic_load_explicit(&budget->bytes, memory_order_relaxed) : 0;
}

bool query_spill_budget_works(const struct query_spill_budget *budget)
{
    return budget && !atomic_load_explicit(&budget->failed, memory_order_relaxed);
}

static void budget_fail(struct query_spill_budget *budget)
{
    if (!atomic_exchange_explicit(&budget->failed, true, memory_order_relaxed))
        atomic_fetch_add_explicit(&budget->spill->failures, 1, memory_order_relaxed);
}

static bool count_up(_Atomic uint64_t *count, uint64_t len, uint64_t max)
{
    uint64_t before = atomic_fetch_add_explicit(count, len, memory_order_relaxed);

    if (before <= max && len <= max - before)
        return true;
    atomic_fetch_sub_explicit(count, len, memory_order_relaxed);
    return false;
}

static bool budget_take(struct query_spill_budget *budget, uint64_t len)
{
    struct query_spill *spill = budget->spill;

    if (!count_up(&budget->bytes, len, spill->query_bytes_max))
        return false;
    if (count_up(&spill->bytes, len, spill->total_bytes_max))
        return true;
    atomic_fetch_sub_explicit(&budget->bytes, len, memory_order_relaxed);
    return false;
}

static void file_give_back(struct query_spill_file *file, uint64_t len)
{
    atomic_fetch_sub_explicit(&file->budget->bytes, len, memory_order_relaxed);
    atomic_fetch_sub_explicit(&file->budget->spill->bytes, len, memory_order_relaxed);
    file->counted -= len;
}

/* --- Files ----------------------------------------------------------------------------------- */

static struct query_spill_file *file_new(struct query_spill_budget *budget)
{
    const struct query_spill_io *io = budget->spill->io;
    int fd = io->open(io->self, budget->spill->directory);
    struct query_spill_file *file;

    if (fd < 0)
        return NULL;
    file = MEMORY_NEW(struct query_spill_file);
    *file =
        (struct query_spill_file){.refs = 1, .budget = query_spill_budget_ref(budget), .fd = fd};
    return file;
}

void query_spill_file_unref(struct query_spill_file *file)
{
    if (!file || --file->refs)
        return;
    file_give_back(file, file->counted);
    close(file->fd);
    query_spill_budget_unref(file->budget);
    memory_free(file);
}

/* Gives back the disk that a part of the file takes. */
static void file_punch(struct query_spill_file *file, uint64_t begin, uint64_t end)
{
    if (begin < end && fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin,
                                 (off_t)(end - begin)) == 0)
        file_give_back(file, end - begin);
}

void query_spill_run_drop(struct query_spill_run *run)
{
    if (run->file && run->file->refs > 1)
        file_punch(run->file, run->begin, run->end);
    query_spill_file_unref(TAKE(run->file));
}

static bool file_write(struct query_spill_file *file, struct slice bytes)
{
    const struct query_spill_io *io = file->budget->spill->io;

    if (!budget_take(file->budget, bytes.len))
        return false;
    file->counted += bytes.len;
    while (bytes.len) {
        ssize_t written = io->write(io->self, file->fd, bytes.data, bytes.len, (off_t)file->end);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        file->end += (uint64_t)written;
        bytes = slice_skip(bytes, (size_t)written);
        atomic_fetch_add_explicit(&file->budget->bytes_written, (uint64_t)written,
                                  memory_order_relaxed);
        atomic_fetch_add_explicit(&file->budget->spill->bytes_written, (uint64_t)written,
                                  memory_order_relaxed);
    }
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

void query_spill_writer_init(struct query_spill_writer *writer, struct query_spill_file **file,
                             struct query_spill_budget *budget)
{
    *writer = (struct query_spill_writer){0};
    buf_init(&writer->block, SIZE_MAX / 2);
    if (!*file && query_spill_budget_works(budget))
        *file = file_new(budget);
    if (!*file && budget)
        budget_fail(budget);
    writer->file = *file;
    writer->failed = !*file;
    if (*file) {
        writer->begin = (*file)->end;
        writer->counted = (*file)->counted;
    }
}

static void block_write(struct query_spill_writer *writer, struct slice bytes)
{
    if (writer->failed || file_write(writer->file, bytes))
        return;
    writer->failed = true;
    budget_fail(writer->file->budget);
}

void query_spill_writer_append(struct query_spill_writer *writer, struct slice bytes)
{
    if (writer->failed)
        return;
    buf_append_slice(&writer->block, bytes);
    if (writer->block.len < BLOCK_BYTES)
        return;
    block_write(writer, buf_slice(&writer->block));
    buf_clear(&writer->block);
}

/* What a failed writer has counted is given back, and written over by the next, if there is one. */
static void writer_undo(struct query_spill_writer *writer)
{
    struct query_spill_file *file = writer->file;

    if (!file)
        return;
    if (ftruncate(file->fd, (off_t)writer->begin) == 0)
        file->end = writer->begin;
    file_give_back(file, file->counted - MIN(file->counted, writer->counted));
}

bool query_spill_writer_end(struct query_spill_writer *writer, struct query_spill_run *ret_run)
{
    if (writer->block.len)
        block_write(writer, buf_slice(&writer->block));
    buf_done(&writer->block);
    if (writer->failed) {
        writer_undo(writer);
        return false;
    }
    writer->file->refs++;
    *ret_run = (struct query_spill_run){writer->file, writer->begin, writer->file->end};
    return true;
}

/* --- Reading --------------------------------------------------------------------------------- */

void query_spill_reader_init(struct query_spill_reader *reader, const struct query_spill_run *run,
                             size_t block_len)
{
    *reader = (struct query_spill_reader){.run = run, .at = run->begin, .block_len = block_len};
    buf_init(&reader->block, SIZE_MAX / 2);
}

void query_spill_reader_done(struct query_spill_reader *reader)
{
    buf_done(&reader->block);
}

bool query_spill_reader_has_more(const struct query_spill_reader *reader)
{
    return reader->at < reader->run->end;
}

static bool block_read(struct query_spill_reader *reader, size_t len, struct error *err)
{
    const struct query_spill_file *file = reader->run->file;
    const struct query_spill_io *io = file->budget->spill->io;
    struct buf *block = &reader->block;

    while (len) {
        uint64_t at = reader->at + (block->len - reader->taken);
        ssize_t got = io->read(io->self, file->fd, block->data + block->len, len, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(err, ERROR_SPILL, "rows that were spilled cannot be read");
        if (got == 0)
            return error_set(err, ERROR_SPILL, "rows that were spilled are cut short");
        block->len += (size_t)got;
        len -= (size_t)got;
    }
    return true;
}

bool query_spill_reader_look(struct query_spill_reader *reader, size_t len, struct slice *ret_bytes,
                             struct error *err)
{
    struct buf *block = &reader->block;
    size_t have = block->len - reader->taken;
    uint64_t left = reader->run->end - reader->at;

    if (len > left)
        return error_set(err, ERROR_SPILL, "rows that were spilled are cut short");
    if (have < len) {
        size_t wanted = (size_t)MIN(left, (uint64_t)MAX(reader->block_len, len)) - have;

        buf_consume(block, reader->taken);
        reader->taken = 0;
        if (!buf_reserve(block, wanted))
            memory_exhausted(wanted);
        if (!block_read(reader, wanted, err))
            return false;
    }
    *ret_bytes = slice_of(block->data + reader->taken, len);
    return true;
}

void query_spill_reader_take(struct query_spill_reader *reader, size_t len)
{
    reader->taken += len;
    reader->at += len;
}
