/* Figures of a container that a read asks for: how much of its quota is used, and what its physical
 * partitions hold. */
#pragma once

#include "front/rest/call.h"

/* x-ms-resource-quota and x-ms-resource-usage; sizes are in KB, -1 is without limit. */
NODISCARD bool rest_container_quota(struct rest_call *call, const struct container *container,
                                    struct error *err);

/* Appends the array `statistics` to the document being written: for each physical partition its
 * size, its items and up to three logical partitions that take at least a hundredth of it. */
NODISCARD bool rest_container_statistics(struct rest_call *call, const struct container *container,
                                         struct buf *document, struct error *err);
