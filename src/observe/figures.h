/* Figures: what was asked of each container since the server started, for /metrics.
 *
 * Counters only grow, whatever becomes of the container's partitions. A bounded number of
 * containers has counters of their own, those that were asked first; the others are counted
 * together. */
#pragma once

#include "base/error.h"
#include "observe/observed.h"

enum {
    FIGURES_STATUSES = 16,
    FIGURES_TIMES = 12, /* classes of how long requests took */
    FIGURES_CONTAINERS_MAX = 100000,
};

struct figures_counts {
    uint64_t requests[OBSERVED_OPERATIONS][FIGURES_STATUSES];
    uint64_t times[FIGURES_TIMES + 1]; /* by figures_time_us; the last: longer */
    uint64_t cru, bytes_in, bytes_out;
    uint64_t time_us, operation_us[OBSERVED_OPERATIONS]; /* of all, and of each operation */
    uint64_t feed_lag; /* of the last page of the change feed that was read: commits behind it */
};

struct figures; /* opaque, owned */

/* containers_max: 0: all are counted together. */
struct figures *figures_new(size_t containers_max);
void figures_free(struct figures *figures); /* NULL is fine */
CLEANUP_FN(struct figures *, figures_free)

/* From any thread; takes no lock but at the first request to a container. */
void figures_count(struct figures *figures, const struct observed_request *request,
                   enum error_code error);

/* How far behind the last commit somebody's reading of a change feed is. */
void figures_feed_lag(struct figures *figures, uint32_t container, uint64_t commits);

/* What a status is called in metrics: "200", "429", or for rarer ones "4xx". */
const char *figures_status_name(size_t status);

/* The time that the class ends before: 4 to the power of it, times 16 us. */
uint64_t figures_time_us(size_t at);

/* Gives it counters of its own if there is room. False: it has none. */
NODISCARD bool figures_read(struct figures *figures, uint32_t container,
                            struct figures_counts *ret_counts);
/* Of all that have none, and of requests without a container. */
void figures_read_others(struct figures *figures, struct figures_counts *ret_counts);
/* Requests that ended with this error. */
uint64_t figures_errors(const struct figures *figures, enum error_code error);

/* Lets go of containers that are not there any more; numbers: of those that are, sorted. */
void figures_keep_only(struct figures *figures, const uint32_t *numbers, size_t count);
