/* The calendar by arithmetic on days: years begin in March, so that the leap day is their last. */
#include "front/mongo/expression/date.h"

int64_t expression_days(int64_t year, int64_t month, int64_t day)
{
    int64_t era, of_era, of_year;

    year += expression_floor_divide(month - 1, 12);
    month = month - 1 - 12 * expression_floor_divide(month - 1, 12) + 1;
    year -= month <= 2;
    era = expression_floor_divide(year, 400);
    of_era = year - era * 400;
    of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468 + day - 1;
}

struct expression_moment expression_moment_of(int64_t local_ms)
{
    int64_t days = expression_floor_divide(local_ms, EXPRESSION_MS_PER_DAY);
    int64_t rest = local_ms - days * EXPRESSION_MS_PER_DAY;
    int64_t shifted = days + 719468, era = expression_floor_divide(shifted, 146097);
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100),
            month = (5 * of_year + 2) / 153;

    return (struct expression_moment){
        .year = year + era * 400 + (month >= 10),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(of_year - (153 * month + 2) / 5 + 1),
        .hour = (int)(rest / 3600000),
        .minute = (int)(rest / 60000 % 60),
        .second = (int)(rest / 1000 % 60),
        .ms = (int)(rest % 1000),
    };
}

int64_t expression_local_ms(const struct expression_moment *moment)
{
    return expression_days(moment->year, moment->month, moment->day) * EXPRESSION_MS_PER_DAY +
           (int64_t)moment->hour * 3600000 + (int64_t)moment->minute * 60000 +
           (int64_t)moment->second * 1000 + moment->ms;
}

int expression_month_days(int64_t year, int month)
{
    return (int)(expression_days(year, month + 1, 1) - expression_days(year, month, 1));
}

int expression_weekday(int64_t local_ms)
{
    int64_t days = expression_floor_divide(local_ms, EXPRESSION_MS_PER_DAY) + 4; /* a Thursday */

    return (int)(days - 7 * expression_floor_divide(days, 7));
}

int expression_year_day(const struct expression_moment *moment)
{
    return (int)(expression_days(moment->year, moment->month, moment->day) -
                 expression_days(moment->year, 1, 1)) +
           1;
}

/* The week is the one its Thursday is in. */
void expression_iso_week(int64_t local_ms, int64_t *ret_year, int *ret_week)
{
    int from_monday = (expression_weekday(local_ms) + 6) % 7;
    struct expression_moment thursday =
        expression_moment_of(local_ms + (3 - from_monday) * EXPRESSION_MS_PER_DAY);

    *ret_year = thursday.year;
    *ret_week = (expression_year_day(&thursday) - 1) / 7 + 1;
}
