/* Promotions in the catalogue: each call is one commit over the records of both containers, or
 * nothing happens. No partition is fenced and no byte is copied: what changes is which maps a
 * partition is in. Isolating the key before is the migrator's (migrator.h).
 *
 * Any state of a container will do, and any state of a promotion. ERROR_NOT_FOUND: a container or
 * the promotion is gone. ERROR_BUSY: a migration is under way, or requests that began before the
 * last change are; try again. */
#pragma once

#include "catalogue/catalogue.h"
#include "partition/key.h"

/* Ties a key of the origin, or all that begin with a partial one, to its own container, which takes
 * nothing until it has the items. A key that was promoted there before and is on its way back
 * simply turns round. ERROR_PROMOTION_UNFIT: the containers are not alike, the own one was used, or
 * the kind of key is not offered. ERROR_PROMOTION_BOUND: one of them is tied already.
 * ERROR_LIMIT_REACHED. */
NODISCARD bool catalogue_promotion_begin(struct catalogue *catalogue,
                                         const struct container *origin,
                                         const struct container *own,
                                         const struct partition_key *key,
                                         struct promotion **ret_promotion, struct error *err);

/* What would keep it from beginning; nothing is changed. own NULL: it will be made alike. */
NODISCARD bool catalogue_promotion_check(struct catalogue *catalogue,
                                         const struct container *origin,
                                         const struct container *own,
                                         const struct partition_key *key, struct error *err);

/* Has the key a physical partition of the origin for itself? */
bool catalogue_promotion_is_isolated(const struct promotion *promotion,
                                     const struct container *origin);

/* The own container gets the partition of a key that is prepared and isolated. */
NODISCARD bool catalogue_promotion_share(struct catalogue *catalogue, const struct container *tied,
                                         const struct promotion *promotion, struct error *err);

/* The origin is home again; the own container still serves the key until the end. From behind the
 * end of a promotion this needs both containers to be alike, and the own one to have one physical
 * partition. ERROR_PROMOTION_UNFIT. ERROR_BAD_REQUEST: it is there already. */
NODISCARD bool catalogue_promotion_back(struct catalogue *catalogue, const struct container *tied,
                                        const struct promotion *promotion, struct error *err);

/* The container that is not home serves the key no longer. ERROR_BAD_REQUEST: it does not. */
NODISCARD bool catalogue_promotion_end(struct catalogue *catalogue, const struct container *tied,
                                       const struct promotion *promotion, struct error *err);

/* Cuts the tie: of one in preparation, or behind its end. Either container then takes every key,
 * and the items stay where they are. ERROR_PROMOTION_BOUND: both serve the key. */
NODISCARD bool catalogue_promotion_forget(struct catalogue *catalogue, const struct container *tied,
                                          const struct promotion *promotion, struct error *err);

/* The promotion of a container by the range of its key, in whatever state; NULL: there is none.
 * Borrowed from the container. */
const struct promotion *container_promotion(const struct container *container,
                                            const struct partition_range *range);

/* The other container of a tie. ERROR_NOT_FOUND. The caller lets go of it. */
NODISCARD bool catalogue_promotion_other(struct catalogue *catalogue,
                                         const struct container *container,
                                         const struct promotion *promotion,
                                         struct container **ret_other, struct error *err);

/* Drops partitions that changes above have left, once nobody holds a map they are in; dropped is
 * called for each. */
void catalogue_promotions_sweep(struct catalogue *catalogue,
                                void (*dropped)(uint32_t partition, void *context), void *context);
