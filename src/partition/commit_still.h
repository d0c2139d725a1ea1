/* Keeping committers still, so that snapshots of several nodes can be of one moment.
 *
 *     commit_still_begin(commit, until_ms, &groups)      of each node, by their numbers
 *     ... engine_snapshot_new of each ...
 *     commit_still_end(commit, groups)                   of each: true */
#pragma once

#include "partition/commit.h"

/* A group waits for those who keep its committer still for this long at most, and then nobody does
 * so for this many times as long as it has waited. */
enum { COMMIT_STILL_MS_MAX = 500, COMMIT_STILL_RESTS = 4 };

/* Nothing is being written from now on: waits for the group in flight, for one that waits for
 * others who keep still, and for writers to have had their time, until then (monotonic, ms). False:
 * that has passed. groups: for the calls below. Who waits while keeping another committer still
 * makes its writers wait, too, and should not for long. */
NODISCARD bool commit_still_begin(struct commit *commit, int64_t until_ms, uint64_t *ret_groups);

/* It goes on; after COMMIT_STILL_MS_MAX it has done so by itself. False: a group was begun
 * meanwhile. */
bool commit_still_end(struct commit *commit, uint64_t groups);

/* In between: was anything of the partition written after the moment, or is that not known? */
bool commit_still_wrote(struct commit *commit, uint64_t groups, uint64_t moment,
                        uint32_t partition);
