/* Containers with an index whose entries lie elsewhere than their items (item/write_placed.h): all
 * their partitions are on one node, for an item and such an entry are one commit. */
#pragma once

#include "catalogue/catalogue.h"

/* Has it such an index, or entries of one that was dropped? Then its partitions stay on their node.
 */
bool container_places(const struct container *container);

/* May it have this definition? ERROR_NOT_SUPPORTED: it is on several nodes. ERROR_BUSY: it is being
 * moved. ERROR_PROMOTION_BOUND: one of its keys is promoted. */
NODISCARD bool catalogue_placed_lets_replace(const struct container *container,
                                             const struct definition *definition,
                                             struct error *err);

/* ERROR_NOT_SUPPORTED: targets would be on another node, or items cannot have such entries under
 * the key they would have. */
NODISCARD bool catalogue_placed_lets_migrate(const struct container *container,
                                             const struct migration_request *request,
                                             struct error *err);

/* ERROR_PROMOTION_UNFIT. */
NODISCARD bool catalogue_placed_lets_promote(const struct container *container, struct error *err);
