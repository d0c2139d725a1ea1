/* Hands the throughput a container's offer bought to its physical partitions: of its own by their
 * shares, or from the pool its database shares. */
#pragma once

#include "catalogue/catalogue.h"
#include "item/meters.h"

/* Called when a container is opened and whenever its offer has changed; cheap when nothing did. An
 * offer that is not enforced gives no budgets: requests are counted and never refused. */
NODISCARD bool load_meters_apply(struct meters *meters, const struct container *container,
                                 uint32_t burst_seconds, struct error *err);

/* Gives the targets of the container's migration their throughput before anybody can use them, and
 * with it what its sources owe and have saved, divided by shares. A target that has some already is
 * left as it is. */
NODISCARD bool load_meters_prepare(struct meters *meters, const struct container *container,
                                   uint32_t burst_seconds, struct error *err);

/* RU/s an offer gives at this moment: what was bought, or what use has made of an autoscale one,
 * which is a tenth of its maximum at least. container: whose it is; NULL when it is shared. */
uint64_t load_meters_now(struct meters *meters, const struct offer *offer,
                         const struct container *container);
