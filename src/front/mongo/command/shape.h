/* Shape: which filters, orders and projections a loop may compile and try, and what those that
 * differ in their values alone have in common. */
#pragma once

#include "document/value.h"

/* Is all of a filter plain: fields compared with scalars, by few operators? Adds what it is but for
 * its values to the hash. absent: true. */
bool mongo_shape_filter(struct slice filter, uint64_t *hash);

/* Is all of an order or a projection a list of numbers and booleans? */
bool mongo_shape_list(struct slice document, uint64_t *hash);
