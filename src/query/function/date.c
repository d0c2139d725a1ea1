/* Days are counted in years that begin in March, so that the leap day is the last of its year, and
 * in eras of 400 years, which all have 146097 days. */
#include "query/function/date.h"

enum { ERA_DAYS = 146097, ERA_YEARS = 400, DAYS_TO_1970 = 719468 /* from 0000-03-01 */ };

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int query_date_month_days(int64_t year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Days since 1970-01-01. */
static int64_t days_of(int64_t year, int month, int day)
{
    int64_t march_year = year - (month <= 2), era = floor_divide(march_year, ERA_YEARS);
    int64_t year_of_era = march_year - era * ERA_YEARS;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;

    return era * ERA_DAYS + day_of_era - DAYS_TO_1970;
}

static void date_of_days(int64_t days, struct query_date *date)
{
    int64_t shifted = days + DAYS_TO_1970, era = floor_divide(shifted, ERA_DAYS);
    int64_t day_of_era = shifted - era * ERA_DAYS;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t march_month = (5 * day_of_year + 2) / 153;

    date->day = (int)(day_of_year - (153 * march_month + 2) / 5 + 1);
    date->month = (int)(march_month < 10 ? march_month + 3 : march_month - 9);
    date->year = year_of_era + era * ERA_YEARS + (date->month <= 2);
    date->weekday = (int)(((days + 4) % 7 + 7) % 7); /* 1970 began on a Thursday */
}

struct query_date query_date_of_ticks(int64_t ticks)
{
    int64_t days = floor_divide(ticks, QUERY_TICKS_PER_DAY);
    int64_t rest = ticks - days * QUERY_TICKS_PER_DAY, seconds = rest / QUERY_TICKS_PER_SECOND;
    struct query_date date = {0};

    date_of_days(days, &date);
    date.fraction = (int)(rest % QUERY_TICKS_PER_SECOND);
    date.hour = (int)(seconds / 3600);
    date.minute = (int)(seconds / 60 % 60);
    date.second = (int)(seconds % 60);
    return date;
}

bool query_date_to_ticks(const struct query_date *date, int64_t *ret_ticks)
{
    int64_t seconds;

    if (date->year < 1 || date->year > 9999 || date->month < 1 || date->month > 12 ||
        date->day < 1 || date->day > query_date_month_days(date->year, date->month) ||
        date->hour < 0 || date->hour > 23 || date->minute < 0 || date->minute > 59 ||
        date->second < 0 || date->second > 59 || date->fraction < 0 ||
        date->fraction >= QUERY_TICKS_PER_SECOND)
        return false;
    seconds = days_of(date->year, date->month, date->day) * 86400 + date->hour * 3600 +
              date->minute * 60 + date->second;
    *ret_ticks = seconds * QUERY_TICKS_PER_SECOND + date->fraction;
    return true;
}

/* --- Text ------------------------------------------------------------------------------------ */

/* Takes exactly count digits. */
static bool take_digits(struct slice *text, size_t count, int *ret_number)
{
    int number = 0;

    if (text->len < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (text->data[i] < '0' || text->data[i] > '9')
            return false;
        number = number * 10 + (text->data[i] - '0');
    }
    *ret_number = number;
    *text = slice_skip(*text, count);
    return true;
}

static bool take_byte(struct slice *text, uint8_t byte)
{
    if (text->len == 0 || text->data[0] != byte)
        return false;
    *text = slice_skip(*text, 1);
    return true;
}

/* 1 to 7 digits behind the point, as ticks. */
static bool take_fraction(struct slice *text, int *ret_ticks)
{
    int ticks = 0, digits = 0;

    for (; digits < 7 && text->len && text->data[0] >= '0' && text->data[0] <= '9'; digits++) {
        ticks = ticks * 10 + (text->data[0] - '0');
        *text = slice_skip(*text, 1);
    }
    if (digits == 0)
        return false;
    for (; digits < 7; digits++)
        ticks *= 10;
    *ret_ticks = ticks;
    return true;
}

bool query_date_parse(struct slice text, int64_t *ret_ticks)
{
    struct query_date date = {0};
    int year;

    if (!take_digits(&text, 4, &year) || !take_byte(&text, '-') ||
        !take_digits(&text, 2, &date.month) || !take_byte(&text, '-') ||
        !take_digits(&text, 2, &date.day))
        return false;
    date.year = year;
    if (take_byte(&text, 'T') || take_byte(&text, ' ')) {
        if (!take_digits(&text, 2, &date.hour) || !take_byte(&text, ':') ||
            !take_digits(&text, 2, &date.minute) || !take_byte(&text, ':') ||
            !take_digits(&text, 2, &date.second))
            return false;
        if (take_byte(&text, '.') && !take_fraction(&text, &date.fraction))
            return false;
        take_byte(&text, 'Z');
    }
    return text.len == 0 && query_date_to_ticks(&date, ret_ticks);
}

static char *put_digits(char *to, int64_t number, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        to[i] = (char)('0' + number % 10);
        number /= 10;
    }
    return to + count;
}

void query_date_write(int64_t ticks, char ret_text[QUERY_DATE_LEN])
{
    struct query_date date = query_date_of_ticks(ticks);
    char *to = put_digits(ret_text, date.year, 4);

    assert(query_ticks_valid(ticks));
    *to++ = '-';
    to = put_digits(to, date.month, 2);
    *to++ = '-';
    to = put_digits(to, date.day, 2);
    *to++ = 'T';
    to = put_digits(to, date.hour, 2);
    *to++ = ':';
    to = put_digits(to, date.minute, 2);
    *to++ = ':';
    to = put_digits(to, date.second, 2);
    *to++ = '.';
    to = put_digits(to, date.fraction, 7);
    *to = 'Z';
}

/* --- Parts ----------------------------------------------------------------------------------- */

bool query_date_part_find(struct slice name, enum query_date_part *ret_part)
{
    static const struct {
        const char *name;
        enum query_date_part part;
    } parts[] = {
        {"year", QUERY_DATE_YEAR},       {"yyyy", QUERY_DATE_YEAR},
        {"yy", QUERY_DATE_YEAR},         {"month", QUERY_DATE_MONTH},
        {"mm", QUERY_DATE_MONTH},        {"m", QUERY_DATE_MONTH},
        {"day", QUERY_DATE_DAY},         {"dd", QUERY_DATE_DAY},
        {"d", QUERY_DATE_DAY},           {"hour", QUERY_DATE_HOUR},
        {"hh", QUERY_DATE_HOUR},         {"minute", QUERY_DATE_MINUTE},
        {"mi", QUERY_DATE_MINUTE},       {"n", QUERY_DATE_MINUTE},
        {"second", QUERY_DATE_SECOND},   {"ss", QUERY_DATE_SECOND},
        {"s", QUERY_DATE_SECOND},        {"millisecond", QUERY_DATE_MILLISECOND},
        {"ms", QUERY_DATE_MILLISECOND},  {"microsecond", QUERY_DATE_MICROSECOND},
        {"mcs", QUERY_DATE_MICROSECOND}, {"nanosecond", QUERY_DATE_NANOSECOND},
        {"ns", QUERY_DATE_NANOSECOND},
    };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (slice_equal_nocase(name, slice_of_text(parts[i].name))) {
            *ret_part = parts[i].part;
            return true;
        }
    }
    return false;
}

int64_t query_date_part_ns(enum query_date_part part)
{
    static const int64_t lengths[] = {
        [QUERY_DATE_YEAR] = 0,
        [QUERY_DATE_MONTH] = 0,
        [QUERY_DATE_DAY] = (int64_t)86400 * 1000000000,
        [QUERY_DATE_HOUR] = (int64_t)3600 * 1000000000,
        [QUERY_DATE_MINUTE] = (int64_t)60 * 1000000000,
        [QUERY_DATE_SECOND] = 1000000000,
        [QUERY_DATE_MILLISECOND] = 1000000,
        [QUERY_DATE_MICROSECOND] = 1000,
        [QUERY_DATE_NANOSECOND] = 1,
    };

    assert(lengths[part]);
    return lengths[part];
}
