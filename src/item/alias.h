/* Alias: operations on items by the partition key they had before their container was re-keyed.
 *
 * A request whose key is meant in the terms of before (partition/former.h) is understood for as
 * long as the definition has `formerly`: the item is looked for by its id, one seek of the index on
 * id in every physical partition, each charged there, and the one whose former key fits is meant.
 * Terms of now are tried first. Items that were left out of the index are not found so. */
#pragma once

#include "item/operation.h"

/* The key of now of the item with this id that had the former key. *ret_found false: there is none.
 * What it was charged is added to the operation. ERROR_BAD_REQUEST: the id is used so often that
 * looking at all of them would take too long. */
NODISCARD bool alias_find(struct item_operation *op, const struct partition_key *former,
                          const struct document_value *id, struct partition_key *ret_key,
                          bool *ret_found, struct error *err);

/* What claims an id under a former key: while it is held nobody else creates it so. */
struct slice alias_claim(const struct partition_key *former, const struct document_value *id,
                         struct arena *arena);
