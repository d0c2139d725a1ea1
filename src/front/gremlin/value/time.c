/* ISO 8601, as java.time reads and writes it. Days are counted in the Gregorian calendar, before
 * its beginning too, with years of 400 years' cycles beginning in March. */
#include "front/gremlin/value/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAY = 86400, YEAR_MAX = 999999999, OFFSET_MAX = 18 * 3600, NANOS = 1000000000 };

int64_t gremlin_days_of(int64_t year, int month, int day)
{
    int64_t cycle, of_cycle, of_year;

    year -= month <= 2;
    cycle = (year >= 0 ? year : year - 399) / 400;
    of_cycle = year - cycle * 400;
    of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return cycle * 146097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + of_year - 719468;
}

void gremlin_days_split(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    int64_t cycle, of_cycle, year, of_year, month;

    days += 719468;
    cycle = (days >= 0 ? days : days - 146096) / 146097;
    of_cycle = days - cycle * 146097;
    year = (of_cycle - of_cycle / 1460 + of_cycle / 36524 - of_cycle / 146096) / 365;
    of_year = of_cycle - (365 * year + year / 4 - year / 100);
    month = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = year + cycle * 400 + (*ret_month <= 2);
}

/* --- Reading ---------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at, *end;
};

static bool skip(struct reader *reader, char c)
{
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

static size_t digits_ahead(const struct reader *reader)
{
    size_t count = 0;

    while (reader->at + count < reader->end && reader->at[count] >= '0' && reader->at[count] <= '9')
        count++;
    return count;
}

static bool number(struct reader *reader, size_t digits, int64_t *ret_number)
{
    int64_t value = 0;

    if (digits_ahead(reader) < digits || !digits || digits > 18)
        return false;
    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (*reader->at++ - '0');
    *ret_number = value;
    return true;
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_of_month(int64_t year, int64_t month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year));
}

/* 2024-01-31, 2024-01, 20240131; years beyond four digits have a sign. */
static bool date_read(struct reader *reader, int64_t *ret_days)
{
    bool negative = false, sign = false;
    int64_t year, month, day = 1;
    size_t digits;

    if (skip(reader, '-'))
        negative = sign = true;
    else if (skip(reader, '+'))
        sign = true;
    digits = digits_ahead(reader);
    if (digits == 8 && !sign) {
        if (!number(reader, 4, &year) || !number(reader, 2, &month) || !number(reader, 2, &day))
            return false;
    } else {
        if (digits < 4 || (digits > 4 && !sign) || digits > 9 || !number(reader, digits, &year) ||
            !skip(reader, '-') || !number(reader, 2, &month))
            return false;
        if (skip(reader, '-') && !number(reader, 2, &day))
            return false;
    }
    if (negative)
        year = -year;
    if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
        return false;
    *ret_days = gremlin_days_of(year, (int)month, (int)day);
    return true;
}

static bool fraction_read(struct reader *reader, int32_t *ret_nanoseconds)
{
    size_t digits = digits_ahead(reader);
    int64_t value;

    if (digits > 9 || !number(reader, digits, &value))
        return false;
    for (size_t i = digits; i < 9; i++)
        value *= 10;
    *ret_nanoseconds = (int32_t)value;
    return true;
}

/* 10, 10:15, 10:15:30, 10:15:30.5, 1015, 101530 */
static bool time_read(struct reader *reader, int64_t *ret_seconds, int32_t *ret_nanoseconds)
{
    int64_t hour, minute = 0, second = 0;
    bool seconds = false;

    if (!number(reader, 2, &hour))
        return false;
    if (skip(reader, ':')) {
        if (!number(reader, 2, &minute))
            return false;
        if (skip(reader, ':')) {
            seconds = true;
            if (!number(reader, 2, &second))
                return false;
        }
    } else if (digits_ahead(reader)) {
        if (!number(reader, 2, &minute))
            return false;
        if (digits_ahead(reader)) {
            seconds = true;
            if (!number(reader, 2, &second))
                return false;
        }
    }
    *ret_nanoseconds = 0;
    if (seconds && skip(reader, '.') && !fraction_read(reader, ret_nanoseconds))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/* Z, +02, +02:00, +0200, +02:00:30; nothing is UTC. */
static bool offset_read(struct reader *reader, int32_t *ret_offset)
{
    int64_t hours, minutes = 0, seconds = 0;
    bool negative;

    *ret_offset = 0;
    if (reader->at == reader->end || skip(reader, 'Z') || skip(reader, 'z'))
        return true;
    negative = skip(reader, '-');
    if ((!negative && !skip(reader, '+')) || !number(reader, 2, &hours))
        return false;
    if ((skip(reader, ':') || digits_ahead(reader)) && !number(reader, 2, &minutes))
        return false;
    if ((skip(reader, ':') || digits_ahead(reader)) && !number(reader, 2, &seconds))
        return false;
    seconds += hours * 3600 + minutes * 60;
    if (seconds > OFFSET_MAX)
        return false;
    *ret_offset = (int32_t)(negative ? -seconds : seconds);
    return true;
}

bool gremlin_date_time_parse(struct slice text, int64_t *ret_seconds, int32_t *ret_nanoseconds,
                             int32_t *ret_offset)
{
    struct reader reader = {text.data, text.len ? text.data + text.len : text.data};
    int64_t days, seconds = 0;
    int32_t nanoseconds = 0, offset = 0;

    if (!date_read(&reader, &days))
        return false;
    if (skip(&reader, 'T') || skip(&reader, 't') || skip(&reader, ' ')) {
        if (!time_read(&reader, &seconds, &nanoseconds))
            return false;
    }
    if (!offset_read(&reader, &offset) || reader.at != reader.end)
        return false;
    *ret_seconds = days * DAY + seconds - offset;
    *ret_nanoseconds = nanoseconds;
    *ret_offset = offset;
    return true;
}

/* --- Writing ---------------------------------------------------------------------------------- */

/* .5, .123456: as many digits as there are, in threes as java.time has it. */
static void fraction_write(int32_t nanoseconds, struct buf *buf)
{
    if (!nanoseconds)
        return;
    if (nanoseconds % 1000000 == 0)
        buf_printf(buf, ".%03d", nanoseconds / 1000000);
    else if (nanoseconds % 1000 == 0)
        buf_printf(buf, ".%06d", nanoseconds / 1000);
    else
        buf_printf(buf, ".%09d", nanoseconds);
}

static int64_t floored(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

void gremlin_date_time_write(int64_t seconds, int32_t nanoseconds, int32_t offset, struct buf *buf)
{
    int64_t year, days, of_day;
    int month, day;

    if (__builtin_add_overflow(seconds, (int64_t)offset, &seconds))
        seconds = seconds < 0 ? INT64_MAX : INT64_MIN;
    days = floored(seconds, DAY);
    of_day = seconds - days * DAY;
    gremlin_days_split(days, &year, &month, &day);
    if (year > 9999)
        BUF_APPEND(buf, "+");
    if (year < 0)
        buf_printf(buf, "-%04lld", (long long)-year);
    else
        buf_printf(buf, "%04lld", (long long)year);
    buf_printf(buf, "-%02d-%02dT%02d:%02d", month, day, (int)(of_day / 3600),
               (int)(of_day / 60 % 60));
    if (of_day % 60 || nanoseconds)
        buf_printf(buf, ":%02d", (int)(of_day % 60));
    else
        BUF_APPEND(buf, ":00");
    fraction_write(nanoseconds, buf);
    if (!offset) {
        BUF_APPEND(buf, "Z");
        return;
    }
    buf_printf(buf, "%c%02d:%02d", offset < 0 ? '-' : '+', abs(offset) / 3600,
               abs(offset) / 60 % 60);
    if (abs(offset) % 60)
        buf_printf(buf, ":%02d", abs(offset) % 60);
}

/* --- Durations -------------------------------------------------------------------------------- */

/* One part, "-1.5S": whole and billionths of its unit. */
static bool part_read(struct reader *reader, int64_t *ret_whole, int32_t *ret_billionths,
                      bool *ret_negative, char *ret_unit)
{
    *ret_negative = skip(reader, '-');
    if (!*ret_negative)
        skip(reader, '+');
    *ret_billionths = 0;
    if (!number(reader, digits_ahead(reader), ret_whole))
        return false;
    if (skip(reader, '.') && !fraction_read(reader, ret_billionths))
        return false;
    if (reader->at == reader->end)
        return false;
    *ret_unit = (char)(*reader->at++ & ~0x20);
    return true;
}

static int64_t unit_seconds(char unit, bool of_time)
{
    if (!of_time)
        return unit == 'D' ? DAY : 0;
    switch (unit) {
    case 'H':
        return 3600;
    case 'M':
        return 60;
    case 'S':
        return 1;
    default:
        return 0;
    }
}

bool gremlin_duration_parse(struct slice text, int64_t *ret_seconds, int32_t *ret_nanoseconds)
{
    struct reader reader = {text.data, text.len ? text.data + text.len : text.data};
    bool minus = skip(&reader, '-'), of_time = false, any = false;
    int64_t total = 0, nanoseconds = 0;

    if (!minus)
        skip(&reader, '+');
    if (!skip(&reader, 'P') && !skip(&reader, 'p'))
        return false;
    while (reader.at < reader.end) {
        int64_t whole, unit;
        int32_t billionths;
        bool negative;
        char name;

        if (!of_time && (skip(&reader, 'T') || skip(&reader, 't'))) {
            of_time = true;
            continue;
        }
        if (!part_read(&reader, &whole, &billionths, &negative, &name))
            return false;
        unit = unit_seconds(name, of_time);
        if (!unit || (billionths && name != 'S') || __builtin_mul_overflow(whole, unit, &whole))
            return false;
        if (negative ? __builtin_sub_overflow(total, whole, &total)
                     : __builtin_add_overflow(total, whole, &total))
            return false;
        nanoseconds += negative ? -billionths : billionths;
        any = true;
    }
    if (minus) {
        if (total == INT64_MIN)
            return false;
        total = -total;
        nanoseconds = -nanoseconds;
    }
    if (nanoseconds < 0 || nanoseconds >= NANOS) {
        int64_t carry = floored(nanoseconds, NANOS);

        if (__builtin_add_overflow(total, carry, &total))
            return false;
        nanoseconds -= carry * NANOS;
    }
    *ret_seconds = total;
    *ret_nanoseconds = (int32_t)nanoseconds;
    return any;
}

/* As java.time.Duration.toString: hours, minutes, seconds; PT0S of nothing. */
void gremlin_duration_write(int64_t seconds, int32_t nanoseconds, struct buf *buf)
{
    int64_t whole = seconds, hours, rest;
    int minutes;

    if (!seconds && !nanoseconds) {
        BUF_APPEND(buf, "PT0S");
        return;
    }
    if (whole < 0 && nanoseconds)
        whole++;
    hours = whole / 3600;
    minutes = (int)(whole % 3600 / 60);
    rest = whole % 60;
    BUF_APPEND(buf, "PT");
    if (hours)
        buf_printf(buf, "%lldH", (long long)hours);
    if (minutes)
        buf_printf(buf, "%dM", minutes);
    if (!rest && !nanoseconds)
        return;
    if (seconds < 0 && nanoseconds && !rest)
        BUF_APPEND(buf, "-0");
    else
        buf_append_int64(buf, rest);
    if (nanoseconds) {
        int32_t fraction = seconds < 0 ? NANOS - nanoseconds : nanoseconds;
        char digits[16];
        int count = snprintf(digits, sizeof digits, "%09d", fraction);

        while (count && digits[count - 1] == '0')
            count--;
        BUF_APPEND(buf, ".");
        buf_append(buf, digits, (size_t)count);
    }
    BUF_APPEND(buf, "S");
}
