/* Expiry: removing items whose time is over. They stopped being there the second it was; this
 * gives their space back and, where all versions are kept, writes the change. */
#pragma once

#include "item/scope.h"

/* Removes up to max expired items of the scope's partition. *ret_removed below max: none are
 * left. */
NODISCARD bool expiry_sweep(const struct item_scope *scope, size_t max, size_t *ret_removed,
                            struct error *err);
