/* The parts of an operation that bulk.h puts together in another order. */
#pragma once

#include "item/claim.h"
#include "item/operation.h"

/* Routes by a space, which is op->space or that of a claim. */
void item_operation_route(struct item_operation *op, const struct item_space *space);

/* Goes on with another key: one that was found, or drawn. */
void item_operation_go_to(struct item_operation *op, const struct item_space *space,
                          const struct partition_key *key);

enum claim_purpose item_operation_purpose(const struct item_operation *op);

/* Asks the budget of the partition it leads to. */
NODISCARD bool item_operation_admit(struct item_operation *op, struct error *err);

/* Reads or writes, without a budget, by a key that is whole; result and work are there on success.
 * Writers wait at the gate, and run as often as it takes. */
NODISCARD bool item_operation_apply(struct item_operation *op, struct error *err);

/* Plans the write in a transaction that has begun. *ret_document: what is written; of a delete
 * empty. */
NODISCARD bool item_operation_plan(struct item_operation *op, struct transaction *transaction,
                                   struct slice *ret_document, struct error *err);

/* Charges what it did: work of a write, the item of a read, or the error. fine: it went well. */
void item_operation_charge(struct item_operation *op, bool fine, const struct error *err);
