/* Split points: where to cut a span of a container. All functions may block. */
#pragma once

#include "catalogue/catalogue.h"

/* Bounds that cut a span into up to pieces of about as many bytes each, ascending, between logical
 * partitions; ret_points has room for pieces - 1, the bytes are in the arena. *ret_count 0: there
 * is nothing to cut, for all of it is one logical partition or none. Reads the sizes of all logical
 * partitions of the span. */
NODISCARD bool split_points_by_bytes(const struct container *container,
                                     const struct partition_span *span, size_t pieces,
                                     struct arena *arena, struct slice *ret_points,
                                     size_t *ret_count, struct error *err);

/* Bounds that cut it into pieces that keys to come will reach about equally often, stored or not.
 * *ret_count less than pieces - 1: the span is too narrow for more, or nothing is known of keys to
 * come. */
void split_points_even(const struct container *container, const struct partition_span *span,
                       size_t pieces, struct arena *arena, struct slice *ret_points,
                       size_t *ret_count);

/* The part of keys to come that each span of the container's map is expected to get, stored or not;
 * where nothing is known of them all are 0. */
void split_points_reach(const struct container *container, struct arena *arena, double *ret_parts);

/* The bytes of items between bounds, ascending, that cut a span into count + 1 pieces. Reads the
 * sizes of all its logical partitions. */
NODISCARD bool split_points_bytes(const struct container *container,
                                  const struct partition_span *span, const struct slice *bounds,
                                  size_t count, uint64_t *ret_bytes, struct error *err);
