/* Statistics: what was asked of one physical partition, by minute for the last hour, and which of
 * its logical partitions asked for the most. Always on, in bounded memory.
 *
 * Of the logical partitions a bounded number is followed, those with the highest charges of late;
 * any that takes more than 1/keys_max of the partition's RU is among them. What is counted for one
 * is exact since it is followed; missed_cru bounds what it spent before.
 *
 * now_ms is of the wall clock; minutes begin where the clock's do. Time that runs backwards counts
 * into the current minute. All functions may be called from any thread. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

enum {
    STATISTICS_MINUTES = 60,
    STATISTICS_KEYS_MAX = 256,     /* followed, unless the caller says fewer */
    STATISTICS_KEY_LEN_MAX = 2560, /* longer keys are told apart but shown cut */
    STATISTICS_TIMES = 48,         /* classes of how long requests took */
    STATISTICS_TIMES_MINUTES = 8,  /* that those are kept for */
};

struct statistics_numbers {
    int64_t cru;        /* charged; hundredths of an RU */
    uint64_t requests;  /* those refused for lack of throughput included */
    uint64_t throttled; /* those alone */
    uint64_t bytes_in, bytes_out;
    uint64_t time_us; /* that all others took together, from admission to settlement */
    uint64_t time_us_max;
};

/* How many requests took how long. A class is half a power of two of microseconds; the first also
 * has what is shorter, the last what is longer. */
struct statistics_times {
    uint32_t counts[STATISTICS_TIMES];
};

/* A time that the fraction (0 to 1) of them did not exceed, to about a quarter of itself; 0: there
 * are none. */
uint64_t statistics_times_quantile(const struct statistics_times *times, double fraction);

/* One request as it ended. */
struct statistics_event {
    struct slice key; /* encoded partition key value; data NULL: no single one, as of a scan */
    int64_t cru;
    bool throttled;
    uint64_t bytes_in, bytes_out;
    uint64_t time_us; /* of one that was not throttled */
};

/* One logical partition that is followed. */
struct statistics_key {
    struct slice key;
    struct statistics_numbers hour; /* since it is followed, at most the last 60 minutes */
    int64_t missed_cru;             /* it may have spent up to this much more before */
    uint32_t share_bp;  /* of the partition's RU in the minutes asked for; 10,000 is all */
    int64_t recent_cru; /* in those minutes */
    struct statistics_numbers minutes[STATISTICS_MINUTES]; /* [0] is the current one */
};

struct statistics_totals {
    int64_t minute; /* the current one: wall clock / 60,000 */
    struct statistics_numbers hour;
    struct statistics_numbers minutes[STATISTICS_MINUTES]; /* [0] is the current one */
};

struct statistics; /* opaque, owned */

struct statistics *statistics_new(uint32_t keys_max); /* 0: STATISTICS_KEYS_MAX */
void statistics_free(struct statistics *statistics);  /* NULL is fine */
CLEANUP_FN(struct statistics *, statistics_free)

void statistics_record(struct statistics *statistics, const struct statistics_event *event,
                       int64_t now_ms);

void statistics_get_totals(struct statistics *statistics, int64_t now_ms,
                           struct statistics_totals *ret_totals);

/* Who is hot: at most max of those followed, by RU of the last minutes (1 to 60, the current one
 * included), highest first. In arena; returns how many. */
size_t statistics_hottest(struct statistics *statistics, uint32_t minutes, size_t max,
                          int64_t now_ms, struct arena *arena, struct statistics_key **ret_keys);

/* One minute of a partition (wall clock / 60,000): false when it is not among the last hour's. Of a
 * minute before the last STATISTICS_TIMES_MINUTES the times are not known: all zero. */
NODISCARD bool statistics_minute(struct statistics *statistics, int64_t minute, int64_t now_ms,
                                 struct statistics_numbers *ret_numbers,
                                 struct statistics_times *ret_times);

/* What a logical partition did in some minutes. */
struct statistics_key_minutes {
    struct slice key;
    struct statistics_numbers numbers;
};

/* The hottest of the minutes from first to last, without the history that statistics_hottest gives:
 * for whoever looks often. At most max, highest charge first, in arena; returns how many. */
size_t statistics_hottest_between(struct statistics *statistics, int64_t first, int64_t last,
                                  size_t max, int64_t now_ms, struct arena *arena,
                                  struct statistics_key_minutes **ret_keys);

/* Takes over a part, from 0 to 1, of what was asked of another partition in the last hour, whose
 * keys this one gets. It is told apart from what is counted here, which is written down as its own.
 */
void statistics_take_over(struct statistics *statistics, struct statistics *from, double part,
                          int64_t now_ms);

/* What was taken over of a minute. */
struct statistics_numbers statistics_before(struct statistics *statistics, int64_t minute,
                                            int64_t now_ms);

/* Since when the partition is counted: the time of the first record or look. */
int64_t statistics_since_ms(struct statistics *statistics, int64_t now_ms);

/* Sums of counts; the longest time is the longer one. */
void statistics_numbers_add(struct statistics_numbers *to, const struct statistics_numbers *from);
