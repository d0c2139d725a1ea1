/* Cluster time: a clock of seconds and a count within them, which never goes back in this process
 * and says of two writes which came first. Any thread. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"

#include <stdatomic.h>

struct mongo_cluster_time {
    const struct clock *clock;
    atomic_uint_fast64_t now; /* seconds << 32 | count, as a Timestamp has them */
};

void mongo_cluster_time_init(struct mongo_cluster_time *time, const struct clock *clock);

/* The time now. */
uint64_t mongo_cluster_time_read(struct mongo_cluster_time *time);

/* A later one than any before: of something that was written. */
uint64_t mongo_cluster_time_tick(struct mongo_cluster_time *time);

/* Appends operationTime and $clusterTime, signed as a server without keys does. */
void mongo_cluster_time_append(uint64_t time, struct buf *out);
