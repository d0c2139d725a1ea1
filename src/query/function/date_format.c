#include "query/function/date_format.h"

#include "query/value/text.h"

enum { FRACTION_DIGITS = 7 };

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

static void put_padded(struct buf *buf, int64_t number, size_t width)
{
    char digits[20];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number || (sizeof digits - at < width && at > 0));
    buf_append(buf, digits + at, sizeof digits - at);
}

/* Number for one or two letters, the first three letters of the name for three, all of it above. */
static void put_named(struct buf *buf, int number, const char *name, size_t run)
{
    if (run <= 2)
        put_padded(buf, number, run);
    else
        buf_append(buf, name, run == 3 ? 3 : strlen(name));
}

static void put_fraction(struct buf *buf, int ticks, size_t digits, bool optional)
{
    char text[FRACTION_DIGITS];

    for (int i = FRACTION_DIGITS - 1; i >= 0; i--) {
        text[i] = (char)('0' + ticks % 10);
        ticks /= 10;
    }
    while (optional && digits > 0 && text[digits - 1] == '0')
        digits--;
    buf_append(buf, text, digits);
}

static void put_year(struct buf *buf, int64_t year, size_t run)
{
    if (run <= 2)
        put_padded(buf, year % 100, run);
    else
        put_padded(buf, year, run);
}

static void put_offset(struct buf *buf, size_t run)
{
    if (run == 1)
        BUF_APPEND(buf, "+0");
    else if (run == 2)
        BUF_APPEND(buf, "+00");
    else
        BUF_APPEND(buf, "+00:00");
}

/* One run of a letter that means something; false if it means nothing. */
static bool put_part(struct buf *buf, const struct query_date *date, uint8_t letter, size_t run)
{
    int hour = date->hour % 12 ? date->hour % 12 : 12;

    switch (letter) {
    case 'd':
        put_named(buf, date->day, days[date->weekday], run);
        break;
    case 'M':
        put_named(buf, date->month, months[date->month - 1], run);
        break;
    case 'y':
        put_year(buf, date->year, run);
        break;
    case 'h':
        put_padded(buf, hour, MIN(run, (size_t)2));
        break;
    case 'H':
        put_padded(buf, date->hour, MIN(run, (size_t)2));
        break;
    case 'm':
        put_padded(buf, date->minute, MIN(run, (size_t)2));
        break;
    case 's':
        put_padded(buf, date->second, MIN(run, (size_t)2));
        break;
    case 't':
        buf_append(buf, date->hour < 12 ? "AM" : "PM", run == 1 ? 1 : 2);
        break;
    case 'f':
    case 'F':
        put_fraction(buf, date->fraction, MIN(run, (size_t)FRACTION_DIGITS), letter == 'F');
        break;
    case 'z':
        put_offset(buf, run);
        break;
    case 'K':
        for (size_t i = 0; i < run; i++)
            BUF_APPEND(buf, "Z");
        break;
    default:
        return false;
    }
    return true;
}

/* The character at `at` as it is. Halves of one that a quote or escape kept apart become one, as
 * everywhere; gives where it ends. */
static size_t put_literal(struct buf *buf, size_t mark, struct slice format, size_t at)
{
    size_t len;

    query_text_decode(format.data + at, format.data + format.len, &len);
    query_text_append(buf, mark, slice_of(format.data + at, len));
    return at + len;
}

/* Quoted text, from the quote on; gives where it ends. */
static size_t put_quoted(struct buf *buf, size_t mark, struct slice format, size_t at)
{
    uint8_t quote = format.data[at++];

    while (at < format.len && format.data[at] != quote) {
        if (format.data[at] == '\\' && at + 1 < format.len)
            at++;
        at = put_literal(buf, mark, format, at);
    }
    return MIN(at + 1, format.len);
}

void query_date_format(int64_t ticks, struct slice format, struct buf *buf)
{
    struct query_date date = query_date_of_ticks(ticks);
    size_t mark = buf->len, at = 0;

    while (at < format.len) {
        uint8_t letter = format.data[at];
        size_t run = 1;

        if (letter == '\\') {
            if (++at < format.len)
                at = put_literal(buf, mark, format, at);
            continue;
        }
        if (letter == '\'' || letter == '"') {
            at = put_quoted(buf, mark, format, at);
            continue;
        }
        while (at + run < format.len && format.data[at + run] == letter)
            run++;
        if (put_part(buf, &date, letter, run))
            at += run;
        else
            at = put_literal(buf, mark, format, at);
    }
}
