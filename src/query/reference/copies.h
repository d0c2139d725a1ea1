/* Copies of reference containers, for queries that join their items.
 *
 * Whoever joins a container takes its copy for the length of a page. Before it is given away its
 * age is looked at: every physical partition of the container has the LSN of its last durable
 * commit in memory (commit_partition_lsn), and the copy notes those it was made at. Where they are
 * the same the copy is exact; else it is filled anew, by one thread while others wait for it. So a
 * join sees every write that was acknowledged before its page began, and asks no store for that.
 *
 * When a partition of the container does not serve, and so cannot be read anew, the last copy is
 * given with its age, since when it is not known to be exact. Copies together are bounded; those
 * that were not used for longest go first. Any thread; taking one may block. */
#pragma once

#include "query/reference/copy.h"
#include "query/run.h"

struct query_copies; /* opaque, owned */

struct query_copies *query_copies_new(size_t bytes_max);
void query_copies_free(struct query_copies *copies); /* NULL is fine; nobody waits for one */
CLEANUP_FN(struct query_copies *, query_copies_free)

/* A reference container, and what filling its copy may use. */
struct query_copy_home {
    const struct item_space *space;
    struct rid rid;
    uint32_t number; /* that no other container has */
    size_t bytes_max;
    struct query_page_limits limits; /* times, memory and whether anyone still waits */
};

struct query_copy_taken {
    struct query_copy *copy; /* a reference */
    int64_t filled_cru;      /* what reading the container costs, where it was filled for this */
    int64_t lag_ms;          /* since when it is not known to be exact; 0: it is */
};

/* ERROR_REFERENCE_FULL: the container is too large. ERROR_PAUSED. Errors of queries. */
NODISCARD bool query_copies_take(struct query_copies *copies, const struct query_copy_home *home,
                                 struct query_copy_taken *ret_taken, struct error *err);

/* What the copies take now, how many there are, and how often one was filled or found exact. */
struct query_copies_metrics {
    uint64_t bytes, count;
    uint64_t filled, found;
};

void query_copies_metrics(struct query_copies *copies, struct query_copies_metrics *ret_metrics);
