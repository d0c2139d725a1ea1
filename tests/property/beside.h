/* Beside: what the server keeps next to the container that moves (moving.h): views of it and of a
 * second source, with groups and without, a view of a view, and a reference container. Their
 * queries are random, and become others; they are dropped and made again; their partitions split,
 * merge and move and their keys change, under the same faults and restarts.
 *
 * A join with the reference container is compared whenever one is run, for its copies are exact;
 * views at quiet points, with their queries from scratch. */
#pragma once

#include "property/moving.h"

enum { BESIDE_VIEWS = 5, BESIDE_CONTAINERS_MAX = 2 + BESIDE_VIEWS };

struct beside; /* opaque, owned */

/* Makes the containers, which are there for good but for the views. */
struct beside *beside_new(struct moving *moving);
void beside_free(struct beside *beside); /* NULL is fine, here and below */

/* What is in memory begins and ends with the process. */
void beside_start(struct beside *beside, struct moving *moving);
void beside_stop(struct beside *beside);

/* The nth container there may be; NULL: there are no more. */
const char *beside_id(const struct beside *beside, size_t nth);

/* Views go on while nothing else does: a re-key of one waits for rows of a query before to go. */
void beside_go_on(struct beside *beside);

/* Something at random. */
void beside_step(struct beside *beside);

/* At a quiet point: all of it is what it should be. */
void beside_check(struct beside *beside);

/* What was done so far. */
struct beside_counts {
    unsigned writes, rounds, joins, joined, queries, made, dropped, trims, checked;
    unsigned migrations[MIGRATION_KINDS];
};
const struct beside_counts *beside_counts(const struct beside *beside);
