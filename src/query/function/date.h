/* Dates as the SQL of Cosmos DB has them: text, UTC, down to 100 nanoseconds; years 1 to 9999 of
 * the Gregorian calendar, leap seconds ignored.
 *
 * Inside they are ticks: units of 100 ns since 1970, negative before. */
#pragma once

#include "base/slice.h"

enum query_date_part {
    QUERY_DATE_YEAR,
    QUERY_DATE_MONTH,
    QUERY_DATE_DAY,
    QUERY_DATE_HOUR,
    QUERY_DATE_MINUTE,
    QUERY_DATE_SECOND,
    QUERY_DATE_MILLISECOND,
    QUERY_DATE_MICROSECOND,
    QUERY_DATE_NANOSECOND,
};

#define QUERY_TICKS_PER_SECOND ((int64_t)10000000)
#define QUERY_TICKS_PER_DAY (86400 * QUERY_TICKS_PER_SECOND)
#define QUERY_TICKS_MIN ((int64_t)-62135596800 * QUERY_TICKS_PER_SECOND)     /* 0001-01-01 */
#define QUERY_TICKS_MAX ((int64_t)253402300800 * QUERY_TICKS_PER_SECOND - 1) /* before 10000 */

static inline bool query_ticks_valid(int64_t ticks)
{
    return ticks >= QUERY_TICKS_MIN && ticks <= QUERY_TICKS_MAX;
}

/* A moment taken apart. */
struct query_date {
    int64_t year;
    int month, day; /* from 1 */
    int hour, minute, second;
    int fraction; /* in ticks */
    int weekday;  /* 0: Sunday */
};

struct query_date query_date_of_ticks(int64_t ticks);

/* False when there is no such moment: a month 13, a 29 February in the wrong year. */
NODISCARD bool query_date_to_ticks(const struct query_date *date, int64_t *ret_ticks);

/* Days in a month of a year. */
int query_date_month_days(int64_t year, int month);

/* Reads YYYY-MM-DD, then perhaps T or a blank and hh:mm:ss, then perhaps . and 1 to 7 digits, then
 * perhaps Z. Nothing else is a date. */
NODISCARD bool query_date_parse(struct slice text, int64_t *ret_ticks);

/* YYYY-MM-DDThh:mm:ss.fffffffZ, without a NUL. ticks must be valid. */
enum { QUERY_DATE_LEN = 28 };
void query_date_write(int64_t ticks, char ret_text[QUERY_DATE_LEN]);

/* The part of that name or abbreviation, without case. */
NODISCARD bool query_date_part_find(struct slice name, enum query_date_part *ret_part);

/* The length of a part from days on down in nanoseconds; years and months have none. */
int64_t query_date_part_ns(enum query_date_part part);
