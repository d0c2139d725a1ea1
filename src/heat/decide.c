/* What keeps splits and merges from chasing each other: a merge wants both to be well below what
 * makes one split, for a day; and a split wants a span that is given a good part of what a
 * partition may give at all. Of a smaller one the throughput is the limit, and halves of it would
 * be as hot. */
#include "heat/decide.h"

#define KEY_SHARE_MAX 0.5

bool heat_minute_is_hot(const struct statistics_numbers *minute, double rate,
                        const struct heat_limits *limits)
{
    if (minute->requests == 0 || rate <= 0)
        return false;
    return (double)minute->cru / 100 >= rate * 60 * limits->split_percent / 100 ||
           heat_minute_is_refused(minute, limits);
}

bool heat_minute_is_refused(const struct statistics_numbers *minute,
                            const struct heat_limits *limits)
{
    return minute->requests &&
           (double)minute->throttled * 100 >= (double)minute->requests * limits->throttled_percent;
}

size_t heat_decide_split(const struct heat_figures *figures, size_t count,
                         const struct heat_limits *limits, const struct heat_bounds *bounds)
{
    size_t best = count;

    if (limits->split_minutes == 0 || count >= bounds->count_max)
        return count;
    for (size_t i = 0; i < count; i++)
        if (!figures[i].whole && figures[i].hot_minutes >= limits->split_minutes &&
            figures[i].key_share <= KEY_SHARE_MAX &&
            figures[i].rate >= bounds->ru_max * limits->rate_percent / 100 &&
            (best == count || figures[i].used > figures[best].used))
            best = i;
    return best;
}

bool heat_pair_is_calm(const struct heat_figures *a, const struct heat_figures *b,
                       const struct heat_limits *limits, const struct heat_bounds *bounds)
{
    double part = limits->merge_percent / 100, rate = a->rate + b->rate;

    return !a->whole && !b->whole && !b->kept && a->node == b->node && !a->refused && !b->refused &&
           rate <= bounds->ru_max && a->used + b->used <= rate * part &&
           (double)a->bytes + (double)b->bytes <= (double)bounds->bytes_max * part;
}

size_t heat_decide_merge(const struct heat_figures *figures, size_t count,
                         const struct heat_limits *limits, const struct heat_bounds *bounds)
{
    size_t best = count;

    if (limits->merge_ms == 0 || count < 2 || count - 1 < bounds->count_needed)
        return count;
    for (size_t i = 0; i + 1 < count; i++)
        if (figures[i].calm_ms >= limits->merge_ms &&
            (best == count || figures[i].bytes + figures[i + 1].bytes <
                                  figures[best].bytes + figures[best + 1].bytes))
            best = i;
    return best;
}
