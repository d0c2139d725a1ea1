/* Bulk: many operations on single items, each for itself, made durable together.
 *
 * Operations are begun one after the other without waiting for the disk, so that group commit takes
 * them all at once: a hundred of them cost about one sync. Those on the same item keep their order.
 * Where all have to keep it, those that follow each other on one node share a transaction.
 *
 * They are admitted together (admission.h), by every budget that they are known to spend from;
 * where an operation has to be looked for, by those of all partitions.
 *
 * Blocking; one thread. What is handed out lives in the arena. */
#pragma once

#include "item/operation.h"

struct bulk_options {
    bool admitted;    /* the budgets were asked already: what is left of a run before */
    bool in_order;    /* each waits for the one before it, and behind one that fails none is run any
                         more (`ended` stays false) */
    size_t bytes_max; /* of items read and made in memory; 0: no limit. Operations that come when it
                         is passed are not run: ERROR_BATCH_ANSWER_TOO_LARGE, to be sent again */
    /* May the arena be as large as it is? Asked before each operation, which ends with the error
     * otherwise. NULL: it may. */
    bool (*grown)(void *context, struct error *err);
    void *context;
};

/* Runs all that have not ended (`ended`: it is not to be run, and its err says why); all of one
 * space, with the same meters and arena. Afterwards each one that was run has ended, well or not.
 * They are let in together: where a budget refuses them, all of them end with
 * ERROR_TOO_MANY_REQUESTS or its kin and the same wait, and nothing is done. */
void bulk_run(struct item_operation *operations, size_t count, const struct bulk_options *options);
