/* Shared throughput: the budgets of a database whose containers have no throughput of their own.
 *
 * The database's RU/s are divided evenly over its own physical partitions, N = ceil(RU/s / most
 * one may give). Each container of the database has its physical partitions draw from them: the
 * i-th of every container from the same budget. So a busy container may use all that others leave,
 * and the one at the limit is the partition, as with a container of its own. */
#pragma once

#include "throughput/budget.h"

enum { SHARED_PARTITIONS_MAX = 1024 };

/* ceil(rate / most one partition may give), at least 1: also for a container of its own. */
uint32_t throughput_partitions(int64_t rate_cru, int64_t partition_max_cru);

struct shared_throughput; /* opaque, reference-counted */

/* options as of one partition, but rate_cru is the whole database's. The caller owns one reference.
 * ERROR_BAD_REQUEST: it would take more than SHARED_PARTITIONS_MAX partitions. */
NODISCARD bool shared_throughput_new(const struct budget_options *options,
                                     struct shared_throughput **ret_shared, struct error *err);
struct shared_throughput *shared_throughput_ref(struct shared_throughput *shared);
struct shared_throughput *shared_throughput_unref(struct shared_throughput *shared); /* or NULL */
CLEANUP_FN(struct shared_throughput *, shared_throughput_unref)

/* The budget the container's partition in this place (0, 1, ...) draws from; borrowed while shared
 * is held. Ask again for each request: raising the throughput may have made more of them. */
struct budget *shared_throughput_budget(struct shared_throughput *shared, uint32_t place);
uint32_t shared_throughput_count(const struct shared_throughput *shared);

/* Another throughput for the database. Partitions are added when needed, never taken away: that
 * takes a merge. ERROR_BAD_REQUEST as above, and nothing changes. */
NODISCARD bool shared_throughput_set(struct shared_throughput *shared, int64_t rate_cru,
                                     bool autoscale, bool minute_pool, int64_t now_ms,
                                     struct error *err);

/* Sums over the partitions; owed_ms is the longest. */
void shared_throughput_get_state(struct shared_throughput *shared, int64_t now_ms,
                                 struct budget_state *ret_state);
