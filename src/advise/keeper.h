/* Keeper: writes the record of traffic down beside the catalogue, so that advice after a restart
 * knows what was asked before it.
 *
 * Every so often what is new of each container is written, thinned to what fits a chunk: a busy
 * container costs one commit of at most 64 KB each time, an idle one nothing, and of one with
 * resident placement rules nothing is written: the catalogue is on the root. Of a container so
 * many of the last chunks stay as are allowed, and chunks of at most as many containers as are
 * followed at a time. What a killed process had not written is lost. */
#pragma once

#include "advise/traffic.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalogue/catalogue.h"

struct keeper_options {
    struct catalogue *catalogue; /* these three outlive the keeper */
    struct traffic *traffic;
    struct log *log;
    int64_t pause_ms;          /* between two looks */
    size_t bytes_max;          /* of one container; at least one chunk is kept */
    bool hashed;               /* what the record has; what was kept otherwise is forgotten */
    const struct clock *clock; /* NULL: the system's */
    bool by_hand;              /* no thread: keeper_round is called */
};

struct keeper; /* opaque, owned */

struct keeper *keeper_new(const struct keeper_options *options);
/* Writes what is new and stops. NULL is fine. */
void keeper_free(struct keeper *keeper);
CLEANUP_FN(struct keeper *, keeper_free)

/* Writes what is new, and forgets containers that are gone. */
NODISCARD bool keeper_round(struct keeper *keeper, struct error *err);

/* Appends what is known of a container (records.h), the oldest first: what is in memory, and of
 * what was written down what is older. */
NODISCARD bool keeper_copy(struct keeper *keeper, uint64_t container, struct buf *out,
                           struct error *err);

/* The number that hashed values are made with, the same after each restart. */
NODISCARD bool keeper_seed(struct catalogue *catalogue, uint64_t *ret_seed, struct error *err);
