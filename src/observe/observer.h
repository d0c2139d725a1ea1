/* Observer: is told of every request that is over, and hands it to whoever counts, logs or records.
 *
 * The fronts know it alone. What it is told costs a request some dozens of instructions where
 * nothing but figures is asked for. */
#pragma once

#include "observe/audit.h"
#include "observe/figures.h"
#include "observe/lines.h"
#include "observe/slow.h"
#include "observe/trace.h"

struct observer; /* opaque, owned */

/* Taken over by observer_new, also if it fails; NULL: there is none. */
struct observer_parts {
    struct figures *figures; /* never NULL */
    struct slow *slow;
    struct lines *access;
    struct audit *audit;
    struct trace *trace;
    struct log *log; /* borrowed: for slow requests; NULL: they are kept, and not logged */
    int64_t slow_ms; /* requests that take at least so long are slow */
};

struct observer *observer_new(const struct observer_parts *parts);
void observer_free(struct observer *observer); /* NULL is fine */
CLEANUP_FN(struct observer *, observer_free)

/* From any thread, once for each request, before it is answered. error: what it ended with;
 * ERROR_NONE: nothing. */
void observer_tell(struct observer *observer, struct observed_request *request,
                   enum error_code error);

/* Log files were renamed: they are begun anew. */
void observer_reopen(struct observer *observer);

/* Borrowed; NULL where there is none. */
struct figures *observer_figures(struct observer *observer);
struct slow *observer_slow(struct observer *observer);
struct lines *observer_access(struct observer *observer);
struct audit *observer_audit(struct observer *observer);
struct trace *observer_trace(struct observer *observer);
