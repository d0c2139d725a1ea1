/* Dates. Whatever is no date, no part or no moment between the years 1 and 9999 is undefined. */
#include "query/function/date.h"
#include "query/function/date_format.h"
#include "query/function/functions_private.h"
#include "query/value/text.h"

enum { TICKS_PER_MS = 10000, NS_PER_TICK = 100 };

static int64_t floor_divide(__int128 a, int64_t b)
{
    return (int64_t)(a / b - (a % b < 0));
}

static bool ticks_of(const struct document_value *argument, int64_t *ret_ticks)
{
    return argument->type == DOCUMENT_STRING && query_date_parse(argument->text, ret_ticks);
}

static bool part_of(const struct document_value *argument, enum query_date_part *ret_part)
{
    return argument->type == DOCUMENT_STRING && query_date_part_find(argument->text, ret_part);
}

static bool give_date(int64_t ticks, struct query_context *context,
                      struct document_value *ret_value, struct error *err)
{
    char *text;

    if (!query_ticks_valid(ticks))
        return true;
    text = query_alloc(context, QUERY_DATE_LEN, err);
    if (!text)
        return false;
    query_date_write(ticks, text);
    *ret_value = document_string(slice_of(text, QUERY_DATE_LEN));
    return true;
}

/* --- Adding ---------------------------------------------------------------------------------- */

/* Years and months keep the day where they can, and take the last of the month where not. */
static bool add_months(int64_t ticks, __int128 months, int64_t *ret_ticks)
{
    struct query_date date = query_date_of_ticks(ticks);
    __int128 total = (__int128)date.year * 12 + (date.month - 1) + months;

    if (total < 12 || total >= 120000)
        return false;
    date.year = (int64_t)(total / 12);
    date.month = (int)(total % 12) + 1;
    date.day = MIN(date.day, query_date_month_days(date.year, date.month));
    return query_date_to_ticks(&date, ret_ticks);
}

static bool date_add(int64_t ticks, enum query_date_part part, int64_t number, int64_t *ret_ticks)
{
    __int128 sum;

    if (part <= QUERY_DATE_MONTH)
        return add_months(ticks, (__int128)number * (part == QUERY_DATE_YEAR ? 12 : 1), ret_ticks);
    sum = (__int128)ticks * NS_PER_TICK + (__int128)number * query_date_part_ns(part);
    if (sum < (__int128)QUERY_TICKS_MIN * NS_PER_TICK ||
        sum > (__int128)QUERY_TICKS_MAX * NS_PER_TICK + NS_PER_TICK - 1)
        return false;
    *ret_ticks = floor_divide(sum, NS_PER_TICK);
    return true;
}

QUERY_FUNCTION(date_time_add)
{
    enum query_date_part part;
    int64_t ticks, number;

    if (!part_of(&arguments[0], &part) || !document_to_int64(&arguments[1], &number) ||
        !ticks_of(&arguments[2], &ticks) || !date_add(ticks, part, number, &ticks))
        return true;
    return give_date(ticks, context, ret_value, err);
}

/* --- Now ------------------------------------------------------------------------------------- */

QUERY_FUNCTION(date_current)
{
    return give_date(context->now_ticks, context, ret_value, err);
}

QUERY_FUNCTION(date_current_ticks)
{
    *ret_value = query_integer(context->now_ticks);
    return true;
}

QUERY_FUNCTION(date_current_timestamp)
{
    *ret_value = query_integer(floor_divide(context->now_ticks, TICKS_PER_MS));
    return true;
}

/* Now, and that many parts from now (sign 1) or ago (-1). */
static bool date_from_now(const struct document_value *arguments, int sign,
                          struct query_context *context, struct document_value *ret_value,
                          struct error *err)
{
    enum query_date_part part;
    int64_t number, ticks;

    if (!part_of(&arguments[0], &part) || !document_to_int64(&arguments[1], &number) ||
        number == INT64_MIN || !date_add(context->now_ticks, part, sign * number, &ticks))
        return true;
    return give_date(ticks, context, ret_value, err);
}

QUERY_FUNCTION(date_now)
{
    if (count == 0)
        return give_date(context->now_ticks, context, ret_value, err);
    if (count == 1)
        return true; /* a part without a number says nothing */
    return date_from_now(arguments, 1, context, ret_value, err);
}

QUERY_FUNCTION(date_ago)
{
    return date_from_now(arguments, -1, context, ret_value, err);
}

/* --- Bins and differences -------------------------------------------------------------------- */

/* date, part, size (1), where the bins begin (1970). */
QUERY_FUNCTION(date_time_bin)
{
    enum query_date_part part;
    int64_t ticks, size = 1, origin = 0, bins;
    __int128 length, distance;

    if (!ticks_of(&arguments[0], &ticks) || !part_of(&arguments[1], &part) ||
        part <= QUERY_DATE_MONTH || (count > 2 && !document_to_int64(&arguments[2], &size)) ||
        (count > 3 && !ticks_of(&arguments[3], &origin)) || size <= 0)
        return true;
    length = (__int128)size * query_date_part_ns(part);
    distance = ((__int128)ticks - origin) * NS_PER_TICK;
    bins = (int64_t)(distance / length - (distance % length < 0));
    distance = bins * length + (__int128)origin * NS_PER_TICK;
    if (distance < (__int128)QUERY_TICKS_MIN * NS_PER_TICK)
        return true;
    return give_date(floor_divide(distance, NS_PER_TICK), context, ret_value, err);
}

/* Boundaries of the part that lie between the two. */
QUERY_FUNCTION(date_time_diff)
{
    struct query_date from, to;
    enum query_date_part part;
    int64_t start, end, length;

    if (!part_of(&arguments[0], &part) || !ticks_of(&arguments[1], &start) ||
        !ticks_of(&arguments[2], &end))
        return true;
    from = query_date_of_ticks(start);
    to = query_date_of_ticks(end);
    if (part == QUERY_DATE_YEAR) {
        *ret_value = query_integer(to.year - from.year);
    } else if (part == QUERY_DATE_MONTH) {
        *ret_value = query_integer((to.year - from.year) * 12 + to.month - from.month);
    } else {
        length = query_date_part_ns(part);
        if (length < NS_PER_TICK) {
            __int128 ns = ((__int128)end - start) * NS_PER_TICK;

            if (ns >= INT64_MIN && ns <= INT64_MAX)
                *ret_value = query_integer((int64_t)ns);
            else
                *ret_value = document_double((double)ns);
            return true;
        }
        length /= NS_PER_TICK;
        *ret_value = query_integer(floor_divide(end, length) - floor_divide(start, length));
    }
    return true;
}

/* --- Taking apart and putting together ------------------------------------------------------- */

static int64_t part_value(const struct query_date *date, enum query_date_part part)
{
    switch (part) {
    case QUERY_DATE_YEAR:
        return date->year;
    case QUERY_DATE_MONTH:
        return date->month;
    case QUERY_DATE_DAY:
        return date->day;
    case QUERY_DATE_HOUR:
        return date->hour;
    case QUERY_DATE_MINUTE:
        return date->minute;
    case QUERY_DATE_SECOND:
        return date->second;
    case QUERY_DATE_MILLISECOND:
        return date->fraction / TICKS_PER_MS;
    case QUERY_DATE_MICROSECOND:
        return date->fraction / 10;
    default:
        return (int64_t)date->fraction * NS_PER_TICK;
    }
}

static bool give_part(const struct document_value *argument, enum query_date_part part,
                      struct document_value *ret_value)
{
    struct query_date date;
    int64_t ticks;

    if (ticks_of(argument, &ticks)) {
        date = query_date_of_ticks(ticks);
        *ret_value = query_integer(part_value(&date, part));
    }
    return true;
}

QUERY_FUNCTION(date_time_part)
{
    enum query_date_part part;

    return !part_of(&arguments[0], &part) || give_part(&arguments[1], part, ret_value);
}

QUERY_FUNCTION(date_year)
{
    return give_part(&arguments[0], QUERY_DATE_YEAR, ret_value);
}

QUERY_FUNCTION(date_month)
{
    return give_part(&arguments[0], QUERY_DATE_MONTH, ret_value);
}

QUERY_FUNCTION(date_day)
{
    return give_part(&arguments[0], QUERY_DATE_DAY, ret_value);
}

QUERY_FUNCTION(date_from_parts)
{
    int64_t parts[7] = {0}, ticks;
    struct query_date date;

    for (size_t i = 0; i < count; i++) {
        if (!document_to_int64(&arguments[i], &parts[i]) || parts[i] < 0 || parts[i] > INT32_MAX)
            return true;
    }
    date = (struct query_date){parts[0],      (int)parts[1], (int)parts[2], (int)parts[3],
                               (int)parts[4], (int)parts[5], (int)parts[6], 0};
    return !query_date_to_ticks(&date, &ticks) || give_date(ticks, context, ret_value, err);
}

QUERY_FUNCTION(date_format)
{
    size_t mark = query_build_begin(context);
    int64_t ticks;

    if (!ticks_of(&arguments[0], &ticks) || arguments[1].type != DOCUMENT_STRING)
        return true;
    if (!query_work(context, arguments[1].text.len >> 2, err))
        return false;
    query_date_format(ticks, arguments[1].text, &context->scratch);
    return query_text_end(context, mark, ret_value, err);
}

/* --- Numbers --------------------------------------------------------------------------------- */

QUERY_FUNCTION(date_to_ticks)
{
    int64_t ticks;

    if (ticks_of(&arguments[0], &ticks))
        *ret_value = query_integer(ticks);
    return true;
}

QUERY_FUNCTION(date_to_timestamp)
{
    int64_t ticks;

    if (ticks_of(&arguments[0], &ticks))
        *ret_value = query_integer(floor_divide(ticks, TICKS_PER_MS));
    return true;
}

QUERY_FUNCTION(date_of_ticks)
{
    int64_t ticks;

    return !document_to_int64(&arguments[0], &ticks) || give_date(ticks, context, ret_value, err);
}

QUERY_FUNCTION(date_of_timestamp)
{
    int64_t ms, ticks;

    if (!document_to_int64(&arguments[0], &ms) ||
        __builtin_mul_overflow(ms, (int64_t)TICKS_PER_MS, &ticks))
        return true;
    return give_date(ticks, context, ret_value, err);
}

#define FOR_QUERY QUERY_STABLE_FOR_QUERY

static const struct query_function functions[] = {
    {"AGO", 2, 2, false, FOR_QUERY, date_ago},
    {"DateTimeAdd", 3, 3, false, QUERY_STABLE, date_time_add},
    {"DateTimeBin", 2, 4, false, QUERY_STABLE, date_time_bin},
    {"DateTimeDiff", 3, 3, false, QUERY_STABLE, date_time_diff},
    {"DateTimeFormat", 2, 2, false, QUERY_STABLE, date_format},
    {"DateTimeFromParts", 3, 7, false, QUERY_STABLE, date_from_parts},
    {"DateTimePart", 2, 2, false, QUERY_STABLE, date_time_part},
    {"DateTimeToTicks", 1, 1, false, QUERY_STABLE, date_to_ticks},
    {"DateTimeToTimestamp", 1, 1, false, QUERY_STABLE, date_to_timestamp},
    {"DAY", 1, 1, false, QUERY_STABLE, date_day},
    {"GetCurrentDateTime", 0, 0, false, FOR_QUERY, date_current},
    {"GetCurrentDateTimeStatic", 0, 0, false, FOR_QUERY, date_current},
    {"GetCurrentTicks", 0, 0, false, FOR_QUERY, date_current_ticks},
    {"GetCurrentTicksStatic", 0, 0, false, FOR_QUERY, date_current_ticks},
    {"GetCurrentTimestamp", 0, 0, false, FOR_QUERY, date_current_timestamp},
    {"GetCurrentTimestampStatic", 0, 0, false, FOR_QUERY, date_current_timestamp},
    {"MONTH", 1, 1, false, QUERY_STABLE, date_month},
    {"NOW", 0, 2, false, FOR_QUERY, date_now},
    {"TicksToDateTime", 1, 1, false, QUERY_STABLE, date_of_ticks},
    {"TimestampToDateTime", 1, 1, false, QUERY_STABLE, date_of_timestamp},
    {"YEAR", 1, 1, false, QUERY_STABLE, date_year},
};

const struct query_function_family query_functions_date = {functions, ARRAY_LEN(functions)};
