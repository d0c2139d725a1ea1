/* Heat decisions: which span of a container is to be split because it has been hot for long, and
 * which two neighbours are to be merged because they have been calm for long. Pure: figures in,
 * choice out. */
#pragma once

#include "base/attrs.h"
#include "load/division.h"
#include "throughput/statistics.h"

struct heat_limits {
    uint32_t split_minutes;   /* hot for so many in a row: split; 0: never */
    double split_percent;     /* a minute is hot that spent this much of its budget, */
    double throttled_percent; /* or had this much of its requests refused */
    double rate_percent;      /* only spans with this much of what a partition may give are split */
    uint32_t share_minutes;   /* refusing for so many in a row: shares follow; 0: never */
    int64_t merge_ms;         /* calm for so long: merge; 0: never */
    double merge_percent;     /* calm: both together this much of what one may hold and give */
};

#define HEAT_LIMITS_DEFAULT                                                                        \
    ((struct heat_limits){.split_minutes = 5,                                                      \
                          .split_percent = 90,                                                     \
                          .throttled_percent = 5,                                                  \
                          .rate_percent = 50,                                                      \
                          .share_minutes = 3,                                                      \
                          .merge_ms = 86400000,                                                    \
                          .merge_percent = 40})

/* What one physical partition may hold and give, and how many there may be. */
struct heat_bounds {
    uint64_t bytes_max;
    double ru_max;
    size_t count_needed, count_max;
};

/* What is known of a span. */
struct heat_figures {
    uint32_t node;
    double rate;              /* RU/s it is given */
    double used;              /* RU/s it spent of late */
    bool refused;             /* anybody, of late */
    uint32_t hot_minutes;     /* in a row, up to the last one that is over */
    uint32_t refused_minutes; /* likewise, in which it had to refuse as much as makes it hot */
    struct load_use use;      /* the most of the last minutes */
    double key_share;         /* of its RU, by the hottest logical partition; 0 to 1 */
    uint64_t bytes;
    bool kept;       /* it was cut from the one before it for a reason of its own */
    bool whole;      /* cannot be cut, or one key value was given it for itself */
    int64_t calm_ms; /* how long it and the next one have been calm together; -1: they are not */
};

/* Was it hot? rate: RU/s that the partition was given. */
bool heat_minute_is_hot(const struct statistics_numbers *minute, double rate,
                        const struct heat_limits *limits);

/* Had it to refuse as much as makes it hot? */
bool heat_minute_is_refused(const struct statistics_numbers *minute,
                            const struct heat_limits *limits);

/* The span to be split, or count: none. Never one whose heat is of a single key value: no cut helps
 * that one. */
size_t heat_decide_split(const struct heat_figures *figures, size_t count,
                         const struct heat_limits *limits, const struct heat_bounds *bounds);

/* Are these two, next to each other, small and cool enough to be one? */
bool heat_pair_is_calm(const struct heat_figures *a, const struct heat_figures *b,
                       const struct heat_limits *limits, const struct heat_bounds *bounds);

/* The first of the two to be merged, or count: none. */
size_t heat_decide_merge(const struct heat_figures *figures, size_t count,
                         const struct heat_limits *limits, const struct heat_bounds *bounds);
