/* Traffic: a bounded, sampled, always-on record of what is asked of each container, for advice.
 *
 * In memory alone, and gone with the process: the last operations of each container, as many as
 * fit. Of a container that is asked more often than it can keep, every second, fourth, ...
 * operation is recorded and counts as many. Values of properties are kept as they are, cut, or as
 * keyed hashes.
 *
 * All functions may be called from any thread. */
#pragma once

#include "advise/workload.h"

struct traffic_options {
    size_t bytes_max;        /* of one container; 0: 8 MB */
    size_t containers_max;   /* followed at a time; 0: 64 */
    uint32_t per_second_max; /* operations recorded, of one container; 0: 100 */
    bool hashed;             /* values as hashes */
};

struct traffic; /* opaque, owned */

struct traffic *traffic_new(const struct traffic_options *options);
void traffic_free(struct traffic *traffic); /* NULL is fine */
CLEANUP_FN(struct traffic *, traffic_free)

/* Is the next operation on a container to be recorded? 0: no; else what it counts for. To be asked
 * once for each operation, before anything is prepared for traffic_note: it is cheap. */
uint32_t traffic_wants(struct traffic *traffic, uint64_t container, int64_t now_ms);

/* Records it; weight as traffic_wants said. Everything is copied, as far as it is kept. */
void traffic_note(struct traffic *traffic, uint64_t container, uint32_t weight,
                  const struct advise_operation_parts *parts);

/* A container is gone. */
void traffic_forget(struct traffic *traffic, uint64_t container);

/* Adds what is recorded to a workload; returns how many operations. */
size_t traffic_read(struct traffic *traffic, uint64_t container, struct advise_workload *workload);

/* Adds a stored item in the same form as the record has its values. */
void traffic_item(struct traffic *traffic, struct advise_workload *workload, struct slice document,
                  uint32_t bytes, int64_t time_ms);

/* The record as lines of JSON, as advise_workload_read_operations reads them: at most max of the
 * last. */
void traffic_lines(struct traffic *traffic, uint64_t container, size_t max, struct buf *out);
