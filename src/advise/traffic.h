/* Traffic: a bounded, sampled, always-on record of what is asked of each container, for advice.
 *
 * In memory: the last operations of each container, as many as fit; a keeper (keeper.h) writes a
 * part of them down. Of a container that is asked more often than it can keep, every second,
 * fourth, ... operation is recorded and counts as many. Values of properties are kept as they are,
 * cut, or as keyed hashes.
 *
 * What was refused for lack of throughput is recorded too: it is what clients wanted. All attempts
 * of one operation are one record, of the time of the first, which says how often it was refused.
 *
 * All functions may be called from any thread. */
#pragma once

#include "advise/workload.h"

struct traffic_options {
    size_t bytes_max;        /* of one container; 0: 8 MB */
    size_t containers_max;   /* followed at a time; 0: 64 */
    uint32_t per_second_max; /* operations recorded, of one container; 0: 100 */
    bool hashed;             /* values as hashes, */
    uint64_t seed;           /* by this number; 0: a secret one of this process */
};

struct traffic; /* opaque, owned */

struct traffic *traffic_new(const struct traffic_options *options);
void traffic_free(struct traffic *traffic); /* NULL is fine */
CLEANUP_FN(struct traffic *, traffic_free)

/* One attempt at an operation, carried out or refused. */
struct traffic_attempt {
    uint64_t ticket; /* a hash that all attempts of one operation share; 0: not known */
    int64_t now_ms;
    bool refused;    /* for lack of throughput, */
    int64_t wait_ms; /* and told to come again after this */
    /* Of a transaction all operations are recorded or none, as was decided for the first of them:
     * NULL: it is alone. TRAFFIC_UNDECIDED: it is the first, and what is decided stands here then.
     */
    uint32_t *weight;
};

#define TRAFFIC_UNDECIDED UINT32_MAX

/* Does somebody wait who was refused? Only then, and for what is refused, a ticket is of use. */
bool traffic_awaits(struct traffic *traffic, uint64_t container, int64_t now_ms);

/* Whether and how an attempt is to be recorded. */
struct traffic_wish {
    uint32_t weight;   /* what it counts for; 0: it is not to be recorded */
    uint32_t refused;  /* answers 429 to this operation until now */
    int64_t first_ms;  /* when it came first */
    uint64_t sequence; /* of the record of an earlier attempt, which this replaces; 0: none */
    uint64_t ticket;   /* of one that may come again: where it is noted */
    size_t place;
};

/* To be asked once for each attempt, before anything is prepared for traffic_note: it is cheap. */
struct traffic_wish traffic_wants(struct traffic *traffic, uint64_t container,
                                  const struct traffic_attempt *attempt);

/* Records it; wish as traffic_wants said. Time and refusals are the wish's; all else is copied, as
 * far as it is kept. */
void traffic_note(struct traffic *traffic, uint64_t container, const struct traffic_wish *wish,
                  const struct advise_operation_parts *parts);

/* A container is gone. */
void traffic_forget(struct traffic *traffic, uint64_t container);

/* Adds what is recorded to a workload; returns how many operations. */
size_t traffic_read(struct traffic *traffic, uint64_t container, struct advise_workload *workload);

/* Copies the records (records.h) that came after the one of this number; 0: all. Returns the number
 * of the last. */
uint64_t traffic_copy(struct traffic *traffic, uint64_t container, uint64_t after, struct buf *out);

/* The containers that have records, or had; at most max of them, and how many there can be. */
size_t traffic_containers(struct traffic *traffic, uint64_t *ret_containers, size_t max);
size_t traffic_containers_max(const struct traffic *traffic);

/* Adds a stored item in the same form as the record has its values. */
void traffic_item(struct traffic *traffic, struct advise_workload *workload, struct slice document,
                  uint32_t bytes, int64_t time_ms);

/* The record as lines of JSON, as advise_workload_read_operations reads them: at most max of the
 * last. */
void traffic_lines(struct traffic *traffic, uint64_t container, size_t max, struct buf *out);
