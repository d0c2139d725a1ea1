/* Bulk: many operations on single items, each a transaction of its own, made durable together.
 *
 * Operations are begun one after the other without waiting for the disk, so that group commit takes
 * them all at once: a hundred of them cost about one sync. Those on the same item keep their order.
 *
 * They are admitted together (admission.h), by every budget that they are known to spend from;
 * where an operation has to be looked for, by those of all partitions.
 *
 * Blocking; one thread. What is handed out lives in the arena. */
#pragma once

#include "item/metering.h"

struct bulk_operation {
    struct partition_key key;
    struct document_value id;
    bool is_read;
    enum transaction_verb verb; /* of a write */
    struct slice document;      /* of a write that brings one */
    /* As of items_change; NULL: the document is given, or it is a delete. */
    bool (*make)(const struct item *item, void *context, struct arena *arena,
                 struct slice *ret_document, struct error *err);
    void *context;
    struct transaction_options options; /* of a write */
    struct metered_call metered;        /* in and out */

    bool ended;       /* in: it is not to be run, err says why; out: it was run, well or not */
    struct error err; /* code ERROR_NONE: well */
    struct transaction_result result; /* of a write */
    struct item item;                 /* of a read */
};

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

/* Runs all that have not ended. They are let in together: where a budget refuses them, all of them
 * end with ERROR_TOO_MANY_REQUESTS or its kin and the same wait, and nothing is done. */
void bulk_run(struct meters *meters, const struct item_space *space,
              struct bulk_operation *operations, size_t count, const struct bulk_options *options,
              struct arena *arena);
