/* The dates of java.time that are no type of ours: kept as the ISO text that GraphSON has, and
 * taken apart and put together for GraphBinary. All are parts of a date, a time and an offset, so
 * the reader of whole dates reads them, with the missing parts filled in. */
#include "front/gremlin/format/binary_private.h"

#include "base/bytes.h"
#include "front/gremlin/value/text.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { DAY = 86400, NANOS = 1000000000, TEXT_MAX = 64 };

/* How the bytes of a type are made up, field by field: y year (4), m month (1), d day (1), n
 * nanoseconds of the day (8), o offset in seconds (4), s seconds since 1970 (8), f nanoseconds
 * (4). before: what its text lacks of a whole date. */
static const struct layout {
    uint8_t code;
    const char *name, *fields, *before;
} layouts[] = {
    {GREMLIN_BINARY_INSTANT, "Instant", "sf", ""},
    {GREMLIN_BINARY_LOCAL_DATE, "LocalDate", "ymd", ""},
    {GREMLIN_BINARY_LOCAL_DATE_TIME, "LocalDateTime", "ymdn", ""},
    {GREMLIN_BINARY_LOCAL_TIME, "LocalTime", "n", "1970-01-01T"},
    {GREMLIN_BINARY_MONTH_DAY, "MonthDay", "md", "2000"},
    {GREMLIN_BINARY_OFFSET_TIME, "OffsetTime", "no", "1970-01-01T"},
    {GREMLIN_BINARY_YEAR, "Year", "y", ""},
    {GREMLIN_BINARY_YEAR_MONTH, "YearMonth", "ym", ""},
    {GREMLIN_BINARY_ZONED_DATE_TIME, "ZonedDateTime", "ymdno", ""},
    {GREMLIN_BINARY_ZONE_OFFSET, "ZoneOffset", "o", "1970-01-01T00:00"},
    {GREMLIN_BINARY_PERIOD, "Period", NULL, NULL},
    {GREMLIN_BINARY_INET_ADDRESS, "InetAddress", NULL, NULL},
};

struct parts {
    int64_t year, nanoseconds, seconds;
    int32_t offset, fraction;
    uint8_t month, day;
};

bool gremlin_binary_is_temporal(uint8_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
        if (layouts[i].code == code)
            return true;
    return false;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool field_read(struct gremlin_binary *reader, char field, struct parts *parts)
{
    size_t size = field == 'm' || field == 'd' ? 1 : field == 'n' || field == 's' ? 8 : 4;
    const uint8_t *bytes;

    if (!gremlin_binary_take(reader, size, &bytes))
        return false;
    switch (field) {
    case 'y':
        parts->year = (int32_t)bytes_get_be32(bytes);
        return parts->year >= -999999999 && parts->year <= 999999999;
    case 'm':
        parts->month = *bytes;
        return *bytes >= 1 && *bytes <= 12;
    case 'd':
        parts->day = *bytes;
        return *bytes >= 1 && *bytes <= 31;
    case 'n':
        parts->nanoseconds = (int64_t)bytes_get_be64(bytes);
        return parts->nanoseconds >= 0 && parts->nanoseconds < (int64_t)DAY * NANOS;
    case 'o':
        parts->offset = (int32_t)bytes_get_be32(bytes);
        return parts->offset >= -64800 && parts->offset <= 64800;
    case 's':
        parts->seconds = (int64_t)bytes_get_be64(bytes);
        return parts->seconds >= -31557014167219200 && parts->seconds <= 31556889864403199;
    default:
        parts->fraction = (int32_t)bytes_get_be32(bytes);
        return parts->fraction >= 0 && parts->fraction < NANOS;
    }
}

/* The whole date of the parts, of which the text of the type is cut out. */
static void parts_write(const struct layout *layout, const struct parts *parts, struct buf *text)
{
    CLEANUP(buf_done) struct buf whole;
    struct slice all, date, time;
    bool instant = layout->fields[0] == 's';
    int64_t seconds = parts->seconds;

    buf_init(&whole, BUF_DEFAULT_MAX);
    if (!instant)
        seconds = gremlin_days_of(parts->year, parts->month, parts->day) * DAY +
                  parts->nanoseconds / NANOS - parts->offset;
    gremlin_date_time_write(seconds,
                            instant ? parts->fraction : (int32_t)(parts->nanoseconds % NANOS),
                            parts->offset, &whole);
    all = buf_slice(&whole);
    if (!slice_split(all, 'T', &date, &time))
        return;
    switch (layout->code) {
    case GREMLIN_BINARY_LOCAL_DATE:
        buf_append_slice(text, date);
        break;
    case GREMLIN_BINARY_LOCAL_DATE_TIME: /* without the Z */
        buf_append_slice(text, slice_first(all, all.len - 1));
        break;
    case GREMLIN_BINARY_LOCAL_TIME:
        buf_append_slice(text, slice_first(time, time.len - 1));
        break;
    case GREMLIN_BINARY_OFFSET_TIME:
        buf_append_slice(text, time);
        break;
    case GREMLIN_BINARY_ZONE_OFFSET: /* behind 00:00:00 */
        buf_append_slice(text, slice_skip(time, 8));
        break;
    case GREMLIN_BINARY_MONTH_DAY: /* of the year 2000 */
        BUF_APPEND(text, "-");
        buf_append_slice(text, slice_skip(date, 4));
        break;
    case GREMLIN_BINARY_YEAR:
        buf_append_slice(text, slice_first(date, date.len - 6));
        break;
    case GREMLIN_BINARY_YEAR_MONTH:
        buf_append_slice(text, slice_first(date, date.len - 3));
        break;
    default:
        buf_append_slice(text, all);
    }
}

static bool period_read(struct gremlin_binary *reader, struct buf *text)
{
    static const char units[] = "YMD";
    const uint8_t *bytes;

    if (!gremlin_binary_take(reader, 12, &bytes))
        return false;
    BUF_APPEND(text, "P");
    for (int i = 0; i < 3; i++) {
        int32_t number = (int32_t)bytes_get_be32(bytes + 4 * i);

        if (number)
            buf_printf(text, "%d%c", number, units[i]);
    }
    if (text->len == 1)
        BUF_APPEND(text, "0D");
    return true;
}

static bool address_read(struct gremlin_binary *reader, struct buf *text)
{
    char address[INET6_ADDRSTRLEN];
    const uint8_t *bytes;
    uint32_t len;

    if (!gremlin_binary_take(reader, 4, &bytes))
        return false;
    len = bytes_get_be32(bytes);
    if ((len != 4 && len != 16))
        return gremlin_binary_refuse(reader, "an InetAddress");
    if (!gremlin_binary_take(reader, len, &bytes))
        return false;
    if (!inet_ntop(len == 4 ? AF_INET : AF_INET6, bytes, address, sizeof address))
        return gremlin_binary_refuse(reader, "an InetAddress");
    buf_append_text(text, address);
    return true;
}

bool gremlin_binary_read_temporal(struct gremlin_binary *reader, uint8_t code,
                                  struct gremlin_value *ret_value)
{
    CLEANUP(buf_done) struct buf text;
    struct parts parts = {.year = 2000, .month = 1, .day = 1};
    const struct layout *layout = layouts;

    buf_init(&text, BUF_DEFAULT_MAX);
    while (layout->code != code)
        layout++;
    if (code == GREMLIN_BINARY_PERIOD) {
        if (!period_read(reader, &text))
            return false;
    } else if (code == GREMLIN_BINARY_INET_ADDRESS) {
        if (!address_read(reader, &text))
            return false;
    } else {
        for (const char *field = layout->fields; *field; field++)
            if (!field_read(reader, *field, &parts))
                return gremlin_binary_refuse(reader, layout->name);
        parts_write(layout, &parts, &text);
    }
    *ret_value = gremlin_temporal_new(reader->heap, slice_of_text(layout->name), buf_slice(&text));
    return true;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static bool parts_parse(const struct layout *layout, struct slice text, struct parts *ret_parts)
{
    char whole[TEXT_MAX + 32];
    int month, day, len;
    int64_t local, days;

    if (text.len > TEXT_MAX)
        return false;
    if (layout->code == GREMLIN_BINARY_MONTH_DAY)
        text = text.len && text.data[0] == '-' ? slice_skip(text, 1) : text;
    len = snprintf(whole, sizeof whole, "%s%.*s%s", layout->before, SLICE_ARG(text),
                   layout->code == GREMLIN_BINARY_YEAR ? "-01" : "");
    if (!gremlin_date_time_parse(slice_of(whole, (size_t)len), &ret_parts->seconds,
                                 &ret_parts->fraction, &ret_parts->offset))
        return false;
    local = ret_parts->seconds + ret_parts->offset;
    days = local / DAY - (local % DAY < 0);
    gremlin_days_split(days, &ret_parts->year, &month, &day);
    ret_parts->month = (uint8_t)month;
    ret_parts->day = (uint8_t)day;
    ret_parts->nanoseconds = (local - days * DAY) * NANOS + ret_parts->fraction;
    return true;
}

static void field_write(char field, const struct parts *parts, struct buf *buf)
{
    switch (field) {
    case 'y':
        buf_append_be32(buf, (uint32_t)(int32_t)parts->year);
        break;
    case 'm':
        buf_append_byte(buf, parts->month);
        break;
    case 'd':
        buf_append_byte(buf, parts->day);
        break;
    case 'n':
        buf_append_be64(buf, (uint64_t)parts->nanoseconds);
        break;
    case 'o':
        buf_append_be32(buf, (uint32_t)parts->offset);
        break;
    case 's':
        buf_append_be64(buf, (uint64_t)parts->seconds);
        break;
    default:
        buf_append_be32(buf, (uint32_t)parts->fraction);
    }
}

/* P1Y-2M3D; weeks are seven days. */
static bool period_parse(struct slice text, int32_t ret_numbers[3])
{
    static const char units[] = "YMD";
    size_t at = 1;

    if (text.len < 3 || text.data[0] != 'P')
        return false;
    while (at < text.len) {
        bool negative = text.data[at] == '-';
        int64_t number = 0;
        size_t begin = at += negative;
        const char *unit;

        while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9' && at - begin < 9)
            number = number * 10 + (text.data[at++] - '0');
        if (at == begin || at == text.len || !text.data[at])
            return false;
        if (text.data[at] == 'W')
            number *= 7;
        unit = strchr(units, text.data[at] == 'W' ? 'D' : text.data[at]);
        if (!unit)
            return false;
        number = (negative ? -number : number) + ret_numbers[unit - units];
        if (number != (int32_t)number)
            return false;
        ret_numbers[unit - units] = (int32_t)number;
        at++;
    }
    return true;
}

static bool address_write(struct slice text, struct buf *buf)
{
    char address[TEXT_MAX];
    uint8_t bytes[16];

    snprintf(address, sizeof address, "%.*s", SLICE_ARG(text));
    if (inet_pton(AF_INET, address, bytes) == 1) {
        buf_append_be32(buf, 4);
        buf_append(buf, bytes, 4);
        return true;
    }
    if (inet_pton(AF_INET6, address, bytes) != 1)
        return false;
    buf_append_be32(buf, 16);
    buf_append(buf, bytes, 16);
    return true;
}

static bool bytes_write(const struct layout *layout, struct slice text, struct buf *buf)
{
    struct parts parts = {};
    int32_t period[3] = {};

    if (layout->code == GREMLIN_BINARY_INET_ADDRESS)
        return address_write(text, buf);
    if (layout->code == GREMLIN_BINARY_PERIOD) {
        if (!period_parse(text, period))
            return false;
        for (int i = 0; i < 3; i++)
            buf_append_be32(buf, (uint32_t)period[i]);
        return true;
    }
    if (!parts_parse(layout, text, &parts))
        return false;
    for (const char *field = layout->fields; *field; field++)
        field_write(*field, &parts, buf);
    return true;
}

bool gremlin_binary_write_temporal(struct gremlin_writer *writer, struct gremlin_value value)
{
    struct slice name = gremlin_temporal_name(value);

    for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
        if (slice_equal(name, slice_of_text(layouts[i].name))) {
            buf_append_byte(writer->buf, layouts[i].code);
            buf_append_byte(writer->buf, 0);
            if (bytes_write(&layouts[i], gremlin_temporal_text(value), writer->buf))
                return true;
        }
    return error_set(writer->err, ERROR_GREMLIN_FORMAT,
                     "the %.*s \"%.*s\" has no form in GraphBinary", SLICE_ARG(name),
                     (int)MIN(gremlin_temporal_text(value).len, (size_t)64),
                     (const char *)gremlin_temporal_text(value).data);
}
