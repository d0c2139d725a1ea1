/* Histogram: how often which size occurred, to about 6 %, in a few kilobytes.
 *
 * One thread records; any thread may read at the same time and sees a state that is at most a few
 * records behind. For several writers keep one each and add them up. */
#pragma once

#include "base/attrs.h"

#include <stdatomic.h>

/* Values below 16 have a bucket each; above, every power of two is cut into 16 equal buckets. The
 * last bucket takes whatever is larger than 2^40. */
enum {
    HISTOGRAM_CUTS_LOG2 = 4,
    HISTOGRAM_CUTS = 1 << HISTOGRAM_CUTS_LOG2,
    HISTOGRAM_LIMIT_LOG2 = 40,
    HISTOGRAM_BUCKETS = (HISTOGRAM_LIMIT_LOG2 - HISTOGRAM_CUTS_LOG2 + 1) * HISTOGRAM_CUTS,
};

struct histogram {
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum;
};

void histogram_clear(struct histogram *histogram);
void histogram_record(struct histogram *histogram, uint64_t value);

/* Adds what from holds to a histogram only the caller uses. */
void histogram_add(struct histogram *histogram, const struct histogram *from);

uint64_t histogram_count(const struct histogram *histogram);
uint64_t histogram_sum(const struct histogram *histogram);

/* How many values were recorded in buckets that end at or below limit: exact when limit + 1 is a
 * power of two, or limit is below 16. For the cumulative buckets of Prometheus. */
uint64_t histogram_count_up_to(const struct histogram *histogram, uint64_t limit);

/* A value that the given fraction (0 to 1) of the records does not exceed: the last of its bucket.
 * 0 when nothing was recorded. */
uint64_t histogram_quantile(const struct histogram *histogram, double fraction);
