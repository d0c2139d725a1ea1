/* Lines: a log file of its own that a thread writes, so that no request ever waits for a disk.
 *
 * Lines wait in bounded memory; what comes while that is full, or cannot be written, is lost and
 * counted. A file that grows past its limit is renamed FILE.1 (which goes) and begun anew. */
#pragma once

#include "base/error.h"
#include "base/log.h"

struct lines; /* opaque, owned; from any thread */

struct lines_options {
    const char *path;        /* borrowed */
    uint64_t file_bytes_max; /* of one file; there are at most two */
    size_t waiting_bytes_max;
    struct log *log; /* borrowed: where it is said, once, that lines are lost; NULL: nowhere */
};

/* ERROR_CONFIGURATION: the file cannot be made. */
NODISCARD bool lines_new(const struct lines_options *options, struct lines **ret_lines,
                         struct error *err);
/* Writes what waits. NULL is fine. */
void lines_free(struct lines *lines);
CLEANUP_FN(struct lines *, lines_free)

/* One line, without its end. */
void lines_add(struct lines *lines, struct slice line);

/* Opens the path anew: somebody has renamed the file. */
void lines_reopen(struct lines *lines);

uint64_t lines_lost(const struct lines *lines);
