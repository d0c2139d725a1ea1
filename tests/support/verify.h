/* Verify: does everything a container holds agree with itself? Every entry of every partition is
 * accounted for by the items: numbers, index, expiry, unique keys, feed, counters; every item is in
 * the span its key belongs to; nothing is left of migrations. Ends the test with the first thing
 * that is not so. */
#pragma once

#include "catalogue/catalogue.h"

/* Returns how many items there are. */
size_t verify_container(struct container *container);

/* No node holds a partition that is not in one of these containers, besides the catalogue's. */
void verify_no_others(struct cluster *cluster, struct container *const *containers, size_t count);
