/* Shares of a container's throughput that follow its load. A map says what each of its spans gets
 * when it is made; what they are given later stands beside the map, so that nobody has to route
 * anew, and becomes part of the next one. On disk the map simply has the shares of now. */
#pragma once

#include "container/catalogue.h"

/* The part of the container's throughput that a span of its map has now. */
double container_share(const struct container *container, const struct partition_span *span);

/* Gives the spans of the map, in key order, other shares; the sum is made 1. Any state of the
 * container will do that has the present map. *ret_container: the state with them, a reference.
 * ERROR_BUSY: a migration is under way, or the map has changed. */
NODISCARD bool catalogue_shares_set(struct catalogue *catalogue, const struct container *container,
                                    const double *shares, size_t count,
                                    struct container **ret_container, struct error *err);
