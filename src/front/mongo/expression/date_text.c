/* Dates as text, both ways.
 *
 * Text without a format is read word by word: a year of four digits, a month by number or name, a
 * time with colons, an offset or zone. So many orders are known without a list of forms. */
#include "front/mongo/expression/date.h"

#include <stdio.h>

static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};
static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

size_t expression_date_iso(int64_t ms, char text[EXPRESSION_NUMBER_TEXT])
{
    struct expression_moment at = expression_moment_of(ms);

    return (size_t)snprintf(text, EXPRESSION_NUMBER_TEXT, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ",
                            (long long)at.year, at.month, at.day, at.hour, at.minute, at.second,
                            at.ms);
}

/* --- Writing ---------------------------------------------------------------------------------- */

static bool format_check(struct slice format, bool reading, struct error *err)
{
    const char *known = reading ? "dGHLmMSuVYzZjbB%" : "dGHjLmMSuUVwYzZbB%";

    for (size_t i = 0; i < format.len; i++) {
        if (format.data[i] != '%')
            continue;
        if (++i == format.len)
            return mongo_error_set(err, 18535, "Unmatched '%%' at end of format string");
        if (!format.data[i] || !strchr(known, format.data[i]))
            return mongo_error_set(err, 18536, "Invalid format character '%%%c' in format string",
                                   format.data[i]);
    }
    return true;
}

static void part_append(struct buf *out, char part, int64_t local, int64_t offset_ms)
{
    struct expression_moment at = expression_moment_of(local);
    int64_t minutes = offset_ms / 60000, iso_year;
    int weekday = expression_weekday(local), week;

    expression_iso_week(local, &iso_year, &week);
    switch (part) {
    case 'd':
        buf_printf(out, "%02d", at.day);
        return;
    case 'G':
        buf_printf(out, "%04lld", (long long)iso_year);
        return;
    case 'H':
        buf_printf(out, "%02d", at.hour);
        return;
    case 'j':
        buf_printf(out, "%03d", expression_year_day(&at));
        return;
    case 'L':
        buf_printf(out, "%03d", at.ms);
        return;
    case 'm':
        buf_printf(out, "%02d", at.month);
        return;
    case 'M':
        buf_printf(out, "%02d", at.minute);
        return;
    case 'S':
        buf_printf(out, "%02d", at.second);
        return;
    case 'u':
        buf_printf(out, "%d", (weekday + 6) % 7 + 1);
        return;
    case 'U':
        buf_printf(out, "%02d", (expression_year_day(&at) + 6 - weekday) / 7);
        return;
    case 'V':
        buf_printf(out, "%02d", week);
        return;
    case 'w':
        buf_printf(out, "%d", weekday + 1);
        return;
    case 'Y':
        buf_printf(out, "%04lld", (long long)at.year);
        return;
    case 'z':
        buf_printf(out, "%c%02lld%02lld", minutes < 0 ? '-' : '+',
                   (long long)(minutes < 0 ? -minutes : minutes) / 60,
                   (long long)(minutes < 0 ? -minutes : minutes) % 60);
        return;
    case 'Z':
        buf_printf(out, "%+lld", (long long)minutes);
        return;
    case 'b':
        buf_append(out, month_names[at.month - 1], 3);
        return;
    case 'B':
        buf_append_text(out, month_names[at.month - 1]);
        return;
    default:
        buf_append_byte(out, (uint8_t)part);
    }
}

/* date, format, timezone, onNull. */
EXPRESSION_COMPUTE(expression_date_to_string)
{
    const struct document_value *format = &call->arguments[1];
    const struct expression_zone *zone;
    struct slice text;
    int64_t ms, offset, year;
    size_t mark;

    if (expression_is_nullish(&call->arguments[0]))
        return expression_give(call, call->node->given & 8 ? call->arguments[3] : document_null());
    if (!expression_zone_read(call, 2, &zone))
        return false;
    if (!zone || ((call->node->given & 2) && expression_is_nullish(format)))
        return expression_give_null(call);
    if (!expression_to_date(&call->arguments[0], &ms))
        return mongo_error_set(call->err, 16006, "can't convert from BSON type %s to Date",
                               expression_type_name(&call->arguments[0]));
    if (call->node->given & 2) {
        if (format->type != DOCUMENT_STRING)
            return mongo_error_set(call->err, 18533,
                                   "$dateToString requires that 'format' be a string, found: %s "
                                   "with value %s",
                                   expression_type_name(format),
                                   expression_show(call->context, format));
        text = format->text;
    } else {
        text = zone == &expression_utc ? SLICE("%Y-%m-%dT%H:%M:%S.%LZ")
                                       : SLICE("%Y-%m-%dT%H:%M:%S.%L");
    }
    if (!format_check(text, false, call->err))
        return false;
    if (ms < -62167219200000 || ms > 253402300799999)
        ms = ms < 0 ? -62167219200001 : 253402300800000;
    offset = expression_zone_offset_ms(zone, ms);
    year = expression_moment_of(ms + offset).year;
    if (year < 0 || year > 9999)
        return mongo_error_set(call->err, 18537,
                               "$dateToString is only defined on year 0-9999, tried to use year "
                               "%lld",
                               (long long)year);
    if (!query_work(call->context, text.len, call->err))
        return false;
    mark = query_build_begin(call->context);
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '%')
            part_append(&call->context->scratch, (char)text.data[++i], ms + offset, offset);
        else
            buf_append_byte(&call->context->scratch, text.data[i]);
    }
    return expression_text_end(call, mark);
}

/* --- Reading ---------------------------------------------------------------------------------- */

struct reader {
    struct slice text;
    size_t at;
    struct expression_moment moment;
    bool has_year, has_month, has_day, has_time, has_offset;
    int64_t offset_ms;
    const struct expression_zone *zone; /* that the text names */
    int64_t iso_year;
    int iso_week, iso_day, year_day;
    struct arena *arena;
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static uint8_t peek(const struct reader *in, size_t ahead)
{
    return in->at + ahead < in->text.len ? in->text.data[in->at + ahead] : 0;
}

static size_t digits_here(const struct reader *in)
{
    size_t count = 0;

    while (is_digit(peek(in, count)))
        count++;
    return count;
}

static bool number_read(struct reader *in, size_t min, size_t max, int64_t *ret_number)
{
    size_t count = MIN(digits_here(in), max);

    if (count < min || !count)
        return false;
    for (*ret_number = 0; count; count--)
        *ret_number = *ret_number * 10 + (in->text.data[in->at++] - '0');
    return true;
}

static bool offset_read(struct reader *in)
{
    bool negative = peek(in, 0) == '-';
    int64_t hours, minutes = 0;

    in->at++;
    if (!number_read(in, 1, 2, &hours))
        return false;
    if (peek(in, 0) == ':')
        in->at++;
    if (is_digit(peek(in, 0)) && !number_read(in, 2, 2, &minutes))
        return false;
    if (hours > 24 || minutes > 59)
        return false;
    in->offset_ms = (negative ? -1 : 1) * (hours * 3600000 + minutes * 60000);
    in->has_offset = true;
    return true;
}

/* Thousandths; further digits are cut. */
static void fraction_read(struct reader *in)
{
    int scale = 100;

    for (; is_digit(peek(in, 0)); in->at++, scale /= 10)
        in->moment.ms += (in->text.data[in->at] - '0') * scale;
}

static bool time_read(struct reader *in)
{
    int64_t hour, minute, second = 0;

    if (!number_read(in, 1, 2, &hour) || peek(in, 0) != ':')
        return false;
    in->at++;
    if (!number_read(in, 2, 2, &minute))
        return false;
    if (peek(in, 0) == ':') {
        in->at++;
        if (!number_read(in, 2, 2, &second))
            return false;
        if ((peek(in, 0) == '.' || peek(in, 0) == ',') && is_digit(peek(in, 1))) {
            in->at++;
            fraction_read(in);
        }
    }
    if (hour > 24 || minute > 59 || second > 59 || in->has_time)
        return false;
    in->moment.hour = (int)hour;
    in->moment.minute = (int)minute;
    in->moment.second = (int)second;
    in->has_time = true;
    return true;
}

static size_t name_length(const struct reader *in)
{
    size_t count = 0;

    while (is_letter(peek(in, count)) ||
           (count && (peek(in, count) == '/' || peek(in, count) == '_')))
        count++;
    return count;
}

/* The number of a name or its first three letters; -1: none. */
static int name_find(struct slice word, const char *const *names, int count)
{
    for (int i = 0; i < count; i++) {
        struct slice name = slice_of_text(names[i]);

        if (slice_equal_nocase(word, name) || slice_equal_nocase(word, slice_first(name, 3)))
            return i;
    }
    return -1;
}

static bool half_day(struct reader *in, bool afternoon)
{
    if (!in->has_time || in->moment.hour < 1 || in->moment.hour > 12)
        return false;
    in->moment.hour = in->moment.hour % 12 + (afternoon ? 12 : 0);
    return true;
}

static bool word_read(struct reader *in)
{
    size_t len = name_length(in);
    struct slice word = slice_of(in->text.data + in->at, len);
    int month = name_find(word, month_names, 12);

    in->at += len;
    if (month >= 0) {
        if (in->has_month)
            return false;
        in->moment.month = month + 1;
        in->has_month = true;
        return true;
    }
    if (name_find(word, day_names, 7) >= 0)
        return true;
    if (slice_equal_nocase(word, SLICE("am")) || slice_equal_nocase(word, SLICE("pm")))
        return half_day(in, (word.data[0] | 32) == 'p');
    if (len == 2 && in->has_day && !in->has_year && /* 4th July */
        (slice_equal_nocase(word, SLICE("st")) || slice_equal_nocase(word, SLICE("nd")) ||
         slice_equal_nocase(word, SLICE("rd")) || slice_equal_nocase(word, SLICE("th"))))
        return true;
    if (in->has_offset || in->zone)
        return false;
    in->zone =
        expression_zone_find(len == 1 && (word.data[0] | 32) == 'z' ? SLICE("Z") : word, in->arena);
    return in->zone != NULL;
}

static bool date_set(struct reader *in, int64_t year, int64_t month, int64_t day)
{
    if (in->has_year || in->has_month || in->has_day || month < 1 || month > 12 || day < 1 ||
        day > expression_month_days(year, (int)month))
        return false;
    in->moment.year = year;
    in->moment.month = (int)month;
    in->moment.day = (int)day;
    in->has_year = in->has_month = in->has_day = true;
    return true;
}

/* Three numbers with one separator: 2017-02-08, 2/8/2017, 8.2.2017, 08-02-2017. */
static bool three_numbers(struct reader *in)
{
    size_t first = digits_here(in);
    int64_t a, b, c;
    uint8_t separator;

    if (!number_read(in, 1, 4, &a))
        return false;
    separator = peek(in, 0);
    in->at++;
    if (!number_read(in, 1, 2, &b) || peek(in, 0) != separator)
        return false;
    in->at++;
    if (first == 4)
        return number_read(in, 1, 2, &c) && date_set(in, a, b, c);
    if (first > 2 || !number_read(in, 4, 4, &c))
        return false;
    return separator == '/' ? date_set(in, c, a, b) : date_set(in, c, b, a);
}

static bool packed_read(struct reader *in)
{
    int64_t year, month, day, hour, minute, second = 0;

    if (!number_read(in, 4, 4, &year) || !number_read(in, 2, 2, &month) ||
        !number_read(in, 2, 2, &day) || !date_set(in, year, month, day))
        return false;
    if ((peek(in, 0) | 32) != 't' || !is_digit(peek(in, 1)) || peek(in, 3) == ':')
        return true;
    in->at++;
    if (!number_read(in, 2, 2, &hour) || !number_read(in, 2, 2, &minute) ||
        (is_digit(peek(in, 0)) && !number_read(in, 2, 2, &second)) || hour > 24 || minute > 59 ||
        second > 59)
        return false;
    in->moment.hour = (int)hour;
    in->moment.minute = (int)minute;
    in->moment.second = (int)second;
    in->has_time = true;
    return true;
}

static bool numbers_read(struct reader *in)
{
    size_t count = digits_here(in);
    uint8_t next = peek(in, count);
    int64_t number = 0;

    if (count <= 2 && next == ':')
        return time_read(in);
    if (count == 8)
        return packed_read(in);
    if ((next == '-' || next == '/' || next == '.') && is_digit(peek(in, count + 1)))
        return three_numbers(in);
    if (count == 4 && !in->has_year) {
        in->has_year = number_read(in, 4, 4, &number);
        in->moment.year = number;
        return true;
    }
    if (count > 2 || in->has_day || !number_read(in, 1, 2, &number))
        return false;
    in->moment.day = (int)number;
    in->has_day = true;
    return number >= 1 && number <= 31;
}

static bool loose_read(struct reader *in)
{
    while (in->at < in->text.len) {
        uint8_t c = peek(in, 0);
        bool fine = true;

        if (c == ' ' || c == ',' || c == '\t')
            in->at++;
        else if ((c | 32) == 't' && is_digit(peek(in, 1)) && in->has_day)
            in->at++;
        else if (is_digit(c))
            fine = numbers_read(in);
        else if ((c == '+' || c == '-') && in->has_time && !in->has_offset)
            fine = offset_read(in);
        else if (c == '-' && (in->has_day || in->has_month)) /* 08-Feb-2017 */
            in->at++;
        else if (is_letter(c))
            fine = word_read(in);
        else
            fine = false;
        if (!fine)
            return false;
    }
    return true;
}

static bool part_read(struct reader *in, char part)
{
    int64_t number = 0;
    size_t len;

    switch (part) {
    case 'Y':
        in->has_year = number_read(in, 4, 4, &number);
        in->moment.year = number;
        return in->has_year;
    case 'm':
        in->has_month = number_read(in, 1, 2, &number) && number >= 1 && number <= 12;
        in->moment.month = (int)number;
        return in->has_month;
    case 'd':
        in->has_day = number_read(in, 1, 2, &number) && number >= 1 && number <= 31;
        in->moment.day = (int)number;
        return in->has_day;
    case 'j':
        in->year_day = number_read(in, 3, 3, &number) ? (int)number : 0;
        return in->year_day >= 1 && in->year_day <= 366;
    case 'H':
        in->moment.hour = number_read(in, 1, 2, &number) ? (int)number : 99;
        return in->moment.hour < 24;
    case 'M':
        in->moment.minute = number_read(in, 1, 2, &number) ? (int)number : 99;
        return in->moment.minute < 60;
    case 'S':
        in->moment.second = number_read(in, 1, 2, &number) ? (int)number : 99;
        return in->moment.second < 60;
    case 'L':
        if (!digits_here(in) || digits_here(in) > 3)
            return false;
        fraction_read(in);
        return true;
    case 'G':
        in->iso_year = number_read(in, 4, 4, &number) ? number : -1;
        return in->iso_year >= 0;
    case 'V':
        in->iso_week = number_read(in, 1, 2, &number) ? (int)number : 0;
        return in->iso_week >= 1 && in->iso_week <= 53;
    case 'u':
        in->iso_day = number_read(in, 1, 1, &number) ? (int)number : 0;
        return in->iso_day >= 1 && in->iso_day <= 7;
    case 'b':
    case 'B':
        len = name_length(in);
        in->moment.month = 1 + name_find(slice_of(in->text.data + in->at, len), month_names, 12);
        in->at += len;
        in->has_month = in->moment.month > 0;
        return in->has_month;
    case 'z':
        if ((peek(in, 0) | 32) == 'z') {
            in->at++;
            return in->has_offset = true;
        }
        return (peek(in, 0) == '+' || peek(in, 0) == '-') && offset_read(in);
    case 'Z': { /* minutes */
        bool negative = peek(in, 0) == '-';

        if (negative || peek(in, 0) == '+')
            in->at++;
        if (!number_read(in, 1, 4, &number))
            return false;
        in->offset_ms = (negative ? -1 : 1) * number * 60000;
        return in->has_offset = true;
    }
    default:
        return peek(in, 0) == (uint8_t)part && in->at++ < in->text.len;
    }
}

static bool format_read(struct reader *in, struct slice format)
{
    for (size_t i = 0; i < format.len; i++) {
        if (format.data[i] == '%') {
            if (!part_read(in, (char)format.data[++i]))
                return false;
        } else if (in->at >= in->text.len || in->text.data[in->at++] != format.data[i]) {
            return false;
        }
    }
    return in->at == in->text.len;
}

/* The day by week or by number in the year. */
static void day_settle(struct reader *in)
{
    int64_t days;

    if (in->iso_week) {
        int64_t fourth = expression_days(in->iso_year, 1, 4);
        int from_monday = (expression_weekday(fourth * EXPRESSION_MS_PER_DAY) + 6) % 7;

        days = fourth - from_monday + (in->iso_week - 1) * 7 + MAX(in->iso_day, 1) - 1;
    } else if (in->year_day && in->has_year) {
        days = expression_days(in->moment.year, 1, 1) + in->year_day - 1;
    } else {
        return;
    }
    {
        struct expression_moment day = expression_moment_of(days * EXPRESSION_MS_PER_DAY);

        in->moment.year = day.year;
        in->moment.month = day.month;
        in->moment.day = day.day;
        in->has_year = in->has_month = in->has_day = true;
    }
}

bool expression_date_parse(struct slice text, struct slice format,
                           const struct expression_zone *zone, struct arena *arena, int64_t *ret_ms,
                           struct error *err)
{
    struct reader in = {.text = text, .arena = arena};
    int64_t local;
    bool read;

    if (format.data && !format_check(format, true, err))
        return false;
    read = format.data ? format_read(&in, format) : loose_read(&in);
    if (read)
        day_settle(&in);
    if (read && !(in.has_year && in.has_month && in.has_day))
        return mongo_error_set(err, MONGO_CONVERSION_FAILURE,
                               "an incomplete date/time string has been found, with elements "
                               "missing: \"%.*s\"",
                               SLICE_ARG(text));
    if (!read || in.moment.day > expression_month_days(in.moment.year, in.moment.month))
        return mongo_error_set(err, MONGO_CONVERSION_FAILURE,
                               "Error parsing date string '%.*s'; %zu: Unexpected character '%c'",
                               SLICE_ARG(text), in.at, in.at < text.len ? text.data[in.at] : ' ');
    if (zone && (in.has_offset || in.zone))
        return mongo_error_set(err, MONGO_CONVERSION_FAILURE,
                               "you cannot pass in a date/time string with time zone information "
                               "('%.*s') together with a timezone argument",
                               SLICE_ARG(text));
    local = expression_local_ms(&in.moment);
    if (in.has_offset)
        *ret_ms = local - in.offset_ms;
    else
        *ret_ms = expression_zone_to_utc(in.zone ? in.zone : zone ? zone : &expression_utc, local);
    return true;
}
