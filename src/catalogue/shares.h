/* Shares of a container's throughput that follow its load. A map says what each of its spans gets
 * when it is made; what they are given later stands beside the map, so that nobody has to route
 * anew, and becomes part of the next one. On disk the map simply has the shares of now. */
#pragma once

#include "catalogue/catalogue.h"
#include "definition/shares.h"

/* The part of the container's throughput that a span of its map was given. */
double container_share(const struct container *container, const struct partition_span *span);

/* What each span of a map of the container gives, in RU/s and in key order: the offer divided by
 * shares, levelled (shares.h) so that no partition is to give more than one may, and none less than
 * was reserved in it. The sum is the offer, or what all partitions may give, if that is less. map:
 * its own, or the one its migration is to publish. */
void container_rates(const struct container *container, const struct partition_map *map,
                     double *ret_ru);

/* Of one span of its own map. */
double container_rate(const struct container *container, const struct partition_span *span);

/* Raises the least of a claim to what was reserved for key values of the span, which needs bounds
 * alone; and lowers its most where the span is of one that has a cap. */
void container_demand_reserved(const struct container *container, const struct partition_span *span,
                               struct shares_demand *claim);

/* Can what the definition says of throughput be with this offer, and in the partitions of the map
 * (NULL: there are none yet)? ERROR_BAD_REQUEST. */
NODISCARD bool container_throughput_check(const struct definition_limits *limits,
                                          const struct definition *definition,
                                          const struct partition_map *map,
                                          const struct offer *offer, struct error *err);

/* Is the key of the span promoted, so that another container pays for it? */
bool container_span_is_elsewhere(const struct container *container,
                                 const struct partition_span *span);

/* Gives the spans of the map, in key order, other shares; the sum is made 1. Any state of the
 * container will do that has the present map. *ret_container: the state with them, a reference.
 * ERROR_BUSY: a migration is under way, or the map has changed. */
NODISCARD bool catalogue_shares_set(struct catalogue *catalogue, const struct container *container,
                                    const double *shares, size_t count,
                                    struct container **ret_container, struct error *err);
