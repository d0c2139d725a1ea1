/* Usage: how much a container stores, read from the counters that every commit keeps (item.h). All
 * functions may block. */
#pragma once

#include "catalogue/catalogue.h"
#include "partition/key.h"

struct container_usage {
    uint64_t bytes, items; /* as the limits count them: keys and headers included */
};

/* Of one physical partition: a span of the container's map. */
NODISCARD bool container_usage_partition(const struct container *container,
                                         const struct partition_span *span, struct arena *arena,
                                         struct container_usage *ret_usage, struct error *err);

/* Of those of its logical partitions whose routing keys are in a range; the sizes of each are read.
 */
NODISCARD bool container_usage_range(const struct container *container,
                                     const struct partition_span *span,
                                     struct partition_range range, struct arena *arena,
                                     struct container_usage *ret_usage, struct error *err);

/* Of all of them. */
NODISCARD bool container_usage_all(const struct container *container, struct arena *arena,
                                   struct container_usage *ret_usage, struct error *err);

/* About how many bytes the entries of an index take, in the partitions of a node or of all. */
#define CONTAINER_USAGE_ALL_NODES UINT32_MAX
NODISCARD bool container_usage_index(const struct container *container, uint32_t node,
                                     const struct index_definition *index, struct arena *arena,
                                     uint64_t *ret_bytes, struct error *err);

/* How many entries those are: all of them are walked. */
NODISCARD bool container_index_count(const struct container *container,
                                     const struct index_definition *index, uint64_t *ret_count,
                                     struct error *err);

/* One logical partition. */
struct container_usage_key {
    struct partition_key key; /* in the arena */
    struct container_usage usage;
};

/* The largest logical partitions of a physical one, at most max, largest first, in the arena. No
 * more than seen_max are looked at, in key order; *ret_seen says how many. */
NODISCARD bool container_usage_largest(const struct container *container,
                                       const struct partition_span *span, size_t max,
                                       size_t seen_max, struct arena *arena,
                                       struct container_usage_key **ret_keys, size_t *ret_count,
                                       size_t *ret_seen, struct error *err);
