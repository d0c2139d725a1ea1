/* What is kept of a transaction over several nodes: the writes in a promise (partition/pledge.h),
 * and the decision at its home.
 *
 * A write (numbers big-endian), one behind the other in their order:
 *
 *     4   number of the account
 *     4   number of the database
 *     4   number of the container
 *     1   0: put, 1: deleted, 2: an entry beside the items (formats of promises from 2 on)
 *     1   enum item_flags
 *     1   1: a description follows the document
 *     4   length, then the logical partition (item_logical)
 *     4   length, then the key of the item
 *     4   length, then the document
 *     4   length, then the description
 *
 * Of an entry beside the items (write_record.h, transaction_beside): the flags are 1 if it is
 * deleted, the key is the engine's, the document its value, and there is no description.
 *
 * A decision (format 1):
 *
 *     1   format, 1
 *     8   wall clock, ms
 *     8   a bit for each node, by its number, that has a promise to apply */
#pragma once

#include "base/buf.h"
#include "item/transaction.h"

struct agreement_write {
    uint32_t account, database, container;
    bool deletes, is_beside;
    uint8_t flags;
    struct slice logical, key, document;
    struct slice description; /* data NULL: none */
};

/* The writes a transaction has planned, and what goes beside them. ERROR_NOT_SUPPORTED: one of them
 * changes an id. */
NODISCARD bool agreement_writes_append(const struct transaction *transaction, struct buf *buf,
                                       struct error *err);

/* The first of them, which is taken off; there must be one. ERROR_STORE_CORRUPT. */
NODISCARD bool agreement_write_next(struct slice *writes, struct agreement_write *ret_write,
                                    struct error *err);

struct agreement_decision {
    uint64_t nodes;
    int64_t wall_ms;
};

struct slice agreement_decision_encode(struct agreement_decision decision, struct arena *arena);
/* ERROR_STORE_CORRUPT, ERROR_STORE_VERSION. */
NODISCARD bool agreement_decision_decode(struct slice value,
                                         struct agreement_decision *ret_decision,
                                         struct error *err);
