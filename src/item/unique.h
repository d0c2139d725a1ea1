/* Conflicts of unique indexes that are being built, as writers and the transform have noted them
 * (write_set.c has the layout), and what an index leaves behind when it is gone. */
#pragma once

#include "item/scope.h"

struct unique_conflict {
    uint8_t index;                     /* its number */
    struct document_value items[2];    /* ids; of the second undefined where it is gone by now */
    struct slice partition_key, value; /* BSON arrays of values, in the arena */
};

/* Is there any of this index, or of any that the scope's policy has as being built (NULL)? */
NODISCARD bool unique_conflicts_any(const struct item_scope *scope,
                                    const struct index_definition *index, bool *ret_any,
                                    struct error *err);

/* Up to max conflicts of one index whose items are still there. */
NODISCARD bool unique_conflicts_read(const struct item_scope *scope,
                                     const struct index_definition *index, size_t max,
                                     struct arena *arena, struct unique_conflict *ret_conflicts,
                                     size_t *ret_count, struct error *err);

/* Removes what no item has of indexes that are gone: conflicts, and sums that are zero. Once all
 * entries of items are remade. */
NODISCARD bool unique_sweep(const struct item_scope *scope, struct error *err);
