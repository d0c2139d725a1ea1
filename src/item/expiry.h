/* Expiry: removing items whose time is over. They stopped being there the second it was; this
 * gives their space back and, where all versions are kept, writes the change.
 *
 * Items that expire by an index (index/definition.h) go when they are swept, so long after the date
 * in them, or the seconds since 1970; until then they are there for everybody. */
#pragma once

#include "item/scope.h"

/* Removes up to max expired items of the scope's partition. *ret_removed below max: none are
 * left. */
NODISCARD bool expiry_sweep(const struct item_scope *scope, size_t max, size_t *ret_removed,
                            struct error *err);

/* When the next of the items of the scope's partition will be due, as they are stored; in the past
 * if some are left, INT64_MAX: never. */
NODISCARD bool expiry_next(const struct item_scope *scope, int64_t *ret_wall_ms, struct error *err);

/* Removes the item of this key if its time is over. */
NODISCARD bool expiry_remove(const struct item_scope *scope, struct slice key, struct error *err);

/* Has the container items that may expire? */
bool expiry_is_on(const struct definition_fields *definition);
