/* Shares: throughput divided over physical partitions so that what was bought is what is given.
 * Pure. */
#pragma once

#include "base/attrs.h"

/* What one partition is to have, in RU/s. */
struct shares_demand {
    double wish;  /* in proportion to the others' */
    double least; /* not less: what it spends, what was reserved in it */
    double most;  /* not more: what one partition may give; 0: nothing at all */
};

/* Divides ru by the wishes, within the bounds. What is above somebody's most goes evenly to those
 * that have room, and what a least needs comes from those that have more than theirs, in proportion
 * to that. The sum is ru: unless all have their most, or the leasts come to more, which are then
 * cut in proportion. */
void shares_level(const struct shares_demand *claims, size_t count, double ru, double *ret_ru);
