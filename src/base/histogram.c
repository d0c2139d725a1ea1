/* The bucket of a value is its leading four bits after the highest one, behind the place of the
 * highest one: an index from two shifts. There is one writer, so a relaxed load and store count
 * without a locked instruction. */
#include "base/histogram.h"

static void counter_add(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

static uint64_t counter_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static size_t bucket_of(uint64_t value)
{
    unsigned shift;
    size_t bucket;

    if (value < HISTOGRAM_CUTS)
        return (size_t)value;
    shift = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_CUTS_LOG2;
    bucket = ((size_t)shift << HISTOGRAM_CUTS_LOG2) + (size_t)(value >> shift);
    return MIN(bucket, (size_t)HISTOGRAM_BUCKETS - 1);
}

/* The largest value of a bucket. */
static uint64_t bucket_last(size_t bucket)
{
    unsigned shift;

    if (bucket < HISTOGRAM_CUTS)
        return bucket;
    shift = (unsigned)(bucket >> HISTOGRAM_CUTS_LOG2) - 1;
    return ((uint64_t)((bucket & (HISTOGRAM_CUTS - 1)) + HISTOGRAM_CUTS + 1) << shift) - 1;
}

void histogram_clear(struct histogram *histogram)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        atomic_store_explicit(&histogram->counts[i], 0, memory_order_relaxed);
    atomic_store_explicit(&histogram->sum, 0, memory_order_relaxed);
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    counter_add(&histogram->counts[bucket_of(value)], 1);
    counter_add(&histogram->sum, value);
}

void histogram_add(struct histogram *histogram, const struct histogram *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        counter_add(&histogram->counts[i], counter_read(&from->counts[i]));
    counter_add(&histogram->sum, counter_read(&from->sum));
}

uint64_t histogram_count(const struct histogram *histogram)
{
    return histogram_count_up_to(histogram, UINT64_MAX);
}

uint64_t histogram_sum(const struct histogram *histogram)
{
    return counter_read(&histogram->sum);
}

uint64_t histogram_count_up_to(const struct histogram *histogram, uint64_t limit)
{
    uint64_t count = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS && bucket_last(i) <= limit; i++)
        count += counter_read(&histogram->counts[i]);
    return count;
}

uint64_t histogram_quantile(const struct histogram *histogram, double fraction)
{
    uint64_t total = histogram_count(histogram);
    uint64_t wanted = (uint64_t)(fraction * (double)total + 0.9999999);
    uint64_t seen = 0;

    if (total == 0)
        return 0;
    wanted = MIN(MAX(wanted, (uint64_t)1), total);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += counter_read(&histogram->counts[i]);
        if (seen >= wanted)
            return bucket_last(i);
    }
    return bucket_last(HISTOGRAM_BUCKETS - 1);
}
