/* Keeping committers still, so that snapshots of several nodes can be of one moment.
 *
 *     commit_still_begin(commit, until_ms, &groups)      of each node, by their numbers
 *     ... engine_snapshot_new of each ...
 *     commit_still_end(commit, groups)                   of each: true */
#pragma once

#include "partition/commit.h"

/* Nothing is being written from now on: waits for the group in flight, and for one that waits for
 * others who keep still, until then (monotonic, ms). False: it is still being written. groups: for
 * the calls below. */
NODISCARD bool commit_still_begin(struct commit *commit, int64_t until_ms, uint64_t *ret_groups);

/* It goes on; after COMMIT_STILL_MS_MAX it has done so by itself. False: a group was made
 * meanwhile. */
enum { COMMIT_STILL_MS_MAX = 500 };
bool commit_still_end(struct commit *commit, uint64_t groups);

/* In between: was anything of the partition written after the moment, or is that not known? */
bool commit_still_wrote(struct commit *commit, uint64_t groups, uint64_t moment,
                        uint32_t partition);
