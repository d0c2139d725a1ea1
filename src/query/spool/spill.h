/* Spill: room on disk for what queries sort, group or compare and cannot keep in memory.
 *
 * A store is shared by all queries; a budget is what one query may take of it; a file belongs to
 * one spool and holds runs, one behind the other. Files have no name: they are gone with the
 * process, however it ends. Nothing here is durable, and nothing is ever read by another process.
 *
 * Whoever cannot write has lost nothing: it keeps what it has and computes the rest again. So a
 * failure to write is not an error but a `false`, counted in the metrics; only what was written and
 * cannot be read back is an error. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <sys/types.h>

struct query_spill;        /* opaque, owned; for any number of threads */
struct query_spill_budget; /* opaque, reference-counted; for any number of threads */
struct query_spill_file;   /* opaque, reference-counted; for one thread at a time */

/* How files are made, written and read, as the system calls do it; tests have others. */
struct query_spill_io {
    int (*open)(void *self, const char *directory);
    ssize_t (*write)(void *self, int fd, const void *bytes, size_t len, off_t at);
    ssize_t (*read)(void *self, int fd, void *bytes, size_t len, off_t at);
    void *self;
};

struct query_spill_options {
    const char *directory;           /* copied */
    uint64_t query_bytes_max;        /* of one query; 0: nothing is spilled */
    uint64_t total_bytes_max;        /* of all together; 0: the same */
    const struct query_spill_io *io; /* NULL: the system's; borrowed */
};

struct query_spill *query_spill_new(const struct query_spill_options *options);
void query_spill_free(struct query_spill *spill); /* NULL is fine; no budget is left */
CLEANUP_FN(struct query_spill *, query_spill_free)

struct query_spill_metrics {
    uint64_t bytes;         /* on disk now */
    uint64_t bytes_written; /* since the start */
    uint64_t failures;      /* queries that could not spill, or not go on */
};

void query_spill_metrics(const struct query_spill *spill, struct query_spill_metrics *ret_metrics);

/* Bytes that all queries together may take. */
uint64_t query_spill_bytes_max(const struct query_spill *spill);

/* --- Budgets --------------------------------------------------------------------------------- */

/* NULL where nothing may be spilled; spill may be NULL. */
struct query_spill_budget *query_spill_budget_new(struct query_spill *spill);
struct query_spill_budget *query_spill_budget_ref(struct query_spill_budget *budget);
void query_spill_budget_unref(struct query_spill_budget *budget); /* NULL is fine */
CLEANUP_FN(struct query_spill_budget *, query_spill_budget_unref)

/* Bytes that were written under it so far; that are on disk now. 0 for NULL. */
uint64_t query_spill_budget_written(const struct query_spill_budget *budget);
uint64_t query_spill_budget_bytes(const struct query_spill_budget *budget);

/* False once anything of this query could not be written: trying again would only take time. */
bool query_spill_budget_works(const struct query_spill_budget *budget);

/* --- Runs ------------------------------------------------------------------------------------ */

/* Bytes in a file. */
struct query_spill_run {
    struct query_spill_file *file; /* a reference */
    uint64_t begin, end;
};

/* Gives the bytes back, and with the last run of a file the file. */
void query_spill_run_drop(struct query_spill_run *run);

/* Writes a run at the end of *file, which is made if it is NULL. Bytes are gathered into large
 * blocks. */
struct query_spill_writer {
    struct query_spill_file *file; /* borrowed; NULL: nothing can be written */
    uint64_t begin;
    uint64_t counted; /* of the file, before */
    struct buf block;
    bool failed;
};

void query_spill_writer_init(struct query_spill_writer *writer, struct query_spill_file **file,
                             struct query_spill_budget *budget);
void query_spill_writer_append(struct query_spill_writer *writer, struct slice bytes);

/* Ends the writer. False: some of it could not be written, and what was is given back. */
NODISCARD bool query_spill_writer_end(struct query_spill_writer *writer,
                                      struct query_spill_run *ret_run);

/* A spool's own reference to the file it writes to; runs have others. NULL is fine. */
void query_spill_file_unref(struct query_spill_file *file);
CLEANUP_FN(struct query_spill_file *, query_spill_file_unref)

/* Reads a run from its beginning; the run outlives the reader. */
struct query_spill_reader {
    const struct query_spill_run *run;
    uint64_t at;      /* of the block's first byte that was not taken */
    size_t block_len; /* read at once */
    struct buf block; /* what was read */
    size_t taken;
};

void query_spill_reader_init(struct query_spill_reader *reader, const struct query_spill_run *run,
                             size_t block_len);
void query_spill_reader_done(struct query_spill_reader *reader);

/* Are there bytes left? */
bool query_spill_reader_has_more(const struct query_spill_reader *reader);

/* The next len bytes without taking them; good until the next call. ERROR_SPILL: they cannot be
 * read, or there are not so many. */
NODISCARD bool query_spill_reader_look(struct query_spill_reader *reader, size_t len,
                                       struct slice *ret_bytes, struct error *err);
void query_spill_reader_take(struct query_spill_reader *reader, size_t len);
