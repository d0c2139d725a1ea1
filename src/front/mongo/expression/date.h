/* Dates from within the folder: the calendar, time zones, dates as text. A date is milliseconds
 * since 1970, negative before; a local time is one that was moved by the offset of its zone. */
#pragma once

#include "front/mongo/expression/expression_private.h"

#define EXPRESSION_MS_PER_DAY ((int64_t)86400000)

/* A local time taken apart: proleptic Gregorian, any year. */
struct expression_moment {
    int64_t year;
    int month, day; /* from 1 */
    int hour, minute, second, ms;
};

/* Days since 1970 of a day; month and day may be outside of their ranges and carry. */
int64_t expression_days(int64_t year, int64_t month, int64_t day);
struct expression_moment expression_moment_of(int64_t local_ms);
int64_t expression_local_ms(const struct expression_moment *moment);
int expression_month_days(int64_t year, int month);
int expression_weekday(int64_t local_ms);                        /* 0: Sunday */
int expression_year_day(const struct expression_moment *moment); /* from 1 */
/* The week of ISO 8601 and the year it belongs to. */
void expression_iso_week(int64_t local_ms, int64_t *ret_year, int *ret_week);

/* Rounding down. */
static inline int64_t expression_floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* --- Zones (zone.c) --------------------------------------------------------------------------- */

struct expression_zone;
extern const struct expression_zone expression_utc;

/* The zone of an Olson name, or an offset: +hh, +hhmm, +hh:mm. In the arena. NULL: there is none.
 */
const struct expression_zone *expression_zone_find(struct slice name, struct arena *arena);
int64_t expression_zone_offset_ms(const struct expression_zone *zone, int64_t utc_ms);
/* A local time that there is twice is the first one, one that there is not counts on from before.
 */
int64_t expression_zone_to_utc(const struct expression_zone *zone, int64_t local_ms);

/* The zone of a call whose argument of that number is "timezone". *ret_zone NULL: it is null. */
bool expression_zone_read(struct expression_call *call, size_t argument,
                          const struct expression_zone **ret_zone);

/* --- Text (date_text.c) ----------------------------------------------------------------------- */

enum { EXPRESSION_NUMBER_TEXT = 64 };

/* 2020-01-02T03:04:05.678Z; the length. */
size_t expression_date_iso(int64_t ms, char text[EXPRESSION_NUMBER_TEXT]);
size_t expression_number_text(const struct document_value *value,
                              char text[EXPRESSION_NUMBER_TEXT]);

/* Reads a date; zone is that of text that names none, NULL: UTC. format with data NULL: many forms
 * are known. MONGO_CONVERSION_FAILURE. */
bool expression_date_parse(struct slice text, struct slice format,
                           const struct expression_zone *zone, struct arena *arena, int64_t *ret_ms,
                           struct error *err);

/* Dates, timestamps and object ids are dates. False: the value is none. */
bool expression_to_date(const struct document_value *value, int64_t *ret_ms);
