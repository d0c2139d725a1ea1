/* Cluster time as clients are told it: that of the committers (partition/commit_clock.h), so that a
 * change stream that starts at the time of a reply has what was written after it. Any thread. */
#pragma once

#include "base/buf.h"
#include "partition/commit_clock.h"

struct mongo_cluster_time {
    struct commit_clock *times;
};

void mongo_cluster_time_init(struct mongo_cluster_time *time, struct commit_clock *times);

/* The time now: seconds << 32 | count, as a Timestamp has them. At least that of every write that
 * was made durable. */
uint64_t mongo_cluster_time_read(struct mongo_cluster_time *time);

/* Appends operationTime and $clusterTime, signed as a server without keys does. */
void mongo_cluster_time_append(uint64_t time, struct buf *out);
