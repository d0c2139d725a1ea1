/* Dates: their parts, moving them, the distance of two, cutting them. Days and what is longer count
 * in local time, what is shorter in elapsed time. */
#include "front/mongo/expression/date.h"

/* Beyond, sums of dates and offsets could run over; no calendar goes so far. */
#define DATE_LIMIT ((int64_t)1 << 60)

/* --- What is a date --------------------------------------------------------------------------- */

bool expression_to_date(const struct document_value *value, int64_t *ret_ms)
{
    switch (value->type) {
    case DOCUMENT_DATE:
        *ret_ms = value->int64;
        return true;
    case DOCUMENT_TIMESTAMP:
        *ret_ms = (int64_t)(value->timestamp >> 32) * 1000;
        return true;
    case DOCUMENT_OBJECT_ID:
        *ret_ms = 1000 * (int64_t)((uint32_t)value->id[0] << 24 | (uint32_t)value->id[1] << 16 |
                                   (uint32_t)value->id[2] << 8 | value->id[3]);
        return true;
    default:
        return false;
    }
}

static bool range_check(struct expression_call *call, int64_t ms)
{
    if (ms >= -DATE_LIMIT && ms <= DATE_LIMIT)
        return true;
    return mongo_error_set(call->err, 5976500, "%s: date %lld is out of range",
                           call->node->op->name, (long long)ms);
}

static bool date_read(struct expression_call *call, size_t argument, int code, const char *what,
                      int64_t *ret_ms)
{
    const struct document_value *value = &call->arguments[argument];

    if (expression_to_date(value, ret_ms))
        return range_check(call, *ret_ms);
    if (code == 16006)
        return mongo_error_set(call->err, code, "can't convert from BSON type %s to Date",
                               expression_type_name(value));
    return mongo_error_set(call->err, code, "%s requires '%s' to be a date, but got %s",
                           call->node->op->name, what, expression_type_name(value));
}

/* --- Parts ------------------------------------------------------------------------------------ */

/* {$year: date}, {$year: [date]}, {$year: {date, timezone}}. */
EXPRESSION_PARSE(expression_date_part_parse)
{
    const struct query_expression *children[2] = {NULL, expression_nothing(compile)};
    struct document_value single = *value;
    struct expression_node *node;
    struct document_iter iter;
    uint32_t given = 1;
    bool named = false;

    if (value->type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, value->document);
        named = !(document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$');
    }
    if (value->type == DOCUMENT_ARRAY) {
        if (document_count(value->document) != 1)
            return mongo_error_set(compile->err, 40536,
                                   "%s accepts exactly one argument if given an array, but was "
                                   "given %zu",
                                   op->name, document_count(value->document));
        (void)document_find_index(value->document, 0, &single);
    }
    if (!named && !expression_compile_value(compile, &single, &children[0]))
        return false;
    document_iter_init(&iter, named ? value->document : SLICE("\5\0\0\0\0"));
    while (document_iter_next(&iter)) {
        size_t i = slice_equal(iter.key, SLICE("date")) ? 0 : 1;

        if (i == 1 && !slice_equal(iter.key, SLICE("timezone")))
            return mongo_error_set(compile->err, 40535, "unrecognized option to %s: \"%.*s\"",
                                   op->name, SLICE_ARG(iter.key));
        if (!expression_compile_value(compile, &iter.value, &children[i]))
            return false;
        given |= 1u << i;
    }
    if (!children[0])
        return mongo_error_set(compile->err, 40539, "missing 'date' argument to %s, provided: %.*s",
                               op->name, SLICE_ARG(mongo_text_value(value, compile->build->arena)));
    node = expression_node_new(compile, op, children, 2);
    node->given = given;
    expression_zone_prepare(compile, node);
    *ret = expression_node_fold(compile, node);
    return true;
}

static int64_t part_of(int64_t local, enum expression_part part)
{
    struct expression_moment moment = expression_moment_of(local);
    int64_t iso_year;
    int iso_week;

    expression_iso_week(local, &iso_year, &iso_week);
    switch (part) {
    case EXPRESSION_PART_YEAR:
        return moment.year;
    case EXPRESSION_PART_MONTH:
        return moment.month;
    case EXPRESSION_PART_DAY:
        return moment.day;
    case EXPRESSION_PART_HOUR:
        return moment.hour;
    case EXPRESSION_PART_MINUTE:
        return moment.minute;
    case EXPRESSION_PART_SECOND:
        return moment.second;
    case EXPRESSION_PART_MS:
        return moment.ms;
    case EXPRESSION_PART_WEEKDAY:
        return expression_weekday(local) + 1;
    case EXPRESSION_PART_YEAR_DAY:
        return expression_year_day(&moment);
    case EXPRESSION_PART_WEEK: /* the first Sunday begins week 1 */
        return (expression_year_day(&moment) + 6 - expression_weekday(local)) / 7;
    case EXPRESSION_PART_ISO_WEEKDAY:
        return (expression_weekday(local) + 6) % 7 + 1;
    case EXPRESSION_PART_ISO_WEEK:
        return iso_week;
    case EXPRESSION_PART_ISO_YEAR:
        return iso_year;
    }
    return 0;
}

EXPRESSION_COMPUTE(expression_date_part)
{
    const struct expression_zone *zone;
    int64_t ms, part;

    if (expression_is_nullish(&call->arguments[0]))
        return expression_give_null(call);
    if (!date_read(call, 0, 16006, "date", &ms) || !expression_zone_read(call, 1, &zone))
        return false;
    if (!zone)
        return expression_give_null(call);
    part = part_of(ms + expression_zone_offset_ms(zone, ms),
                   (enum expression_part)call->node->op->number);
    return expression_give(call, call->node->op->number == EXPRESSION_PART_ISO_YEAR
                                     ? document_int64(part)
                                     : document_int32((int32_t)part));
}

EXPRESSION_COMPUTE(expression_date_to_parts)
{
    static const char *const names[] = {"year",   "month",  "day",        "hour",
                                        "minute", "second", "millisecond"};
    static const enum expression_part parts[] = {
        EXPRESSION_PART_YEAR,   EXPRESSION_PART_MONTH,  EXPRESSION_PART_DAY, EXPRESSION_PART_HOUR,
        EXPRESSION_PART_MINUTE, EXPRESSION_PART_SECOND, EXPRESSION_PART_MS};
    static const char *const iso_names[] = {"isoWeekYear", "isoWeek", "isoDayOfWeek"};
    static const enum expression_part iso_parts[] = {
        EXPRESSION_PART_ISO_YEAR, EXPRESSION_PART_ISO_WEEK, EXPRESSION_PART_ISO_WEEKDAY};
    const struct document_value *iso = &call->arguments[2];
    const struct expression_zone *zone;
    struct buf *out = &call->context->scratch;
    size_t mark, begin;
    int64_t ms;

    if (expression_is_nullish(&call->arguments[0]))
        return expression_give_null(call);
    if (!date_read(call, 0, 16006, "date", &ms) || !expression_zone_read(call, 1, &zone))
        return false;
    if (!zone || ((call->node->given & 4) && expression_is_nullish(iso)))
        return expression_give_null(call);
    if ((call->node->given & 4) && iso->type != DOCUMENT_BOOL)
        return mongo_error_set(call->err, 40521, "iso8601 must evaluate to a bool, found %s",
                               expression_type_name(iso));
    ms += expression_zone_offset_ms(zone, ms);
    mark = query_build_begin(call->context);
    begin = document_begin(out);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bool by_week = i < 3 && iso->type == DOCUMENT_BOOL && iso->boolean;

        document_append_int32(out, slice_of_text(by_week ? iso_names[i] : names[i]),
                              (int32_t)part_of(ms, by_week ? iso_parts[i] : parts[i]));
    }
    return query_build_close(call->context, mark, begin, DOCUMENT_OBJECT, call->ret, call->err);
}

/* --- Made of parts ---------------------------------------------------------------------------- */

enum {
    FROM_YEAR,
    FROM_MONTH,
    FROM_DAY,
    FROM_HOUR,
    FROM_MINUTE,
    FROM_SECOND,
    FROM_MS,
    FROM_COUNT,
    FROM_ZONE = FROM_COUNT,
};

/* *ret_null: the part is null. */
static bool from_part(struct expression_call *call, size_t argument, int64_t otherwise,
                      int64_t *ret_number, bool *ret_null)
{
    const struct document_value *value = &call->arguments[argument];
    const char *name = call->node->op->names[argument];
    bool year = argument == FROM_YEAR;

    *ret_number = otherwise;
    if (!(call->node->given & 1u << argument))
        return true;
    if (expression_is_nullish(value)) {
        *ret_null = true;
        return true;
    }
    if (!document_to_int64(value, ret_number))
        return mongo_error_set(call->err, 40515,
                               "'%s' must evaluate to an integer, found %s with value %s", name,
                               expression_type_name(value), expression_show(call->context, value));
    if (year && (*ret_number < 1 || *ret_number > 9999))
        return mongo_error_set(
            call->err, 40523, "'%s' must evaluate to an integer in the range 1 to 9999, found %lld",
            name, (long long)*ret_number);
    if (*ret_number < INT32_MIN || *ret_number > INT32_MAX)
        return mongo_error_set(call->err, 31034,
                               "'%s' must evaluate to a value in the range "
                               "[%d, %d]; value %lld is not in range",
                               name, INT32_MIN, INT32_MAX, (long long)*ret_number);
    return true;
}

EXPRESSION_PARSE(expression_from_parts_parse)
{
    const struct query_expression *arguments[EXPRESSION_NAMES_MAX];
    struct document_value found;
    bool iso, natural;
    struct expression_operator row;
    struct expression_node *node;
    uint32_t given;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(compile->err, 40519,
                               "$dateFromParts only supports an object as its argument");
    iso = document_find(value->document, SLICE("isoWeekYear"), &found) ||
          document_find(value->document, SLICE("isoWeek"), &found) ||
          document_find(value->document, SLICE("isoDayOfWeek"), &found);
    natural = document_find(value->document, SLICE("year"), &found) ||
              document_find(value->document, SLICE("month"), &found) ||
              document_find(value->document, SLICE("day"), &found);
    if (iso && natural)
        return mongo_error_set(compile->err, 40489,
                               "$dateFromParts does not allow mixing natural dates with ISO dates");
    if (!document_find(value->document, iso ? SLICE("isoWeekYear") : SLICE("year"), &found))
        return mongo_error_set(compile->err, 40516,
                               "$dateFromParts requires either 'year' or 'isoWeekYear' to be "
                               "present");
    row = *op; /* with the names of the parts that are used */
    if (iso) {
        row.names[0] = "isoWeekYear";
        row.names[1] = "isoWeek";
        row.names[2] = "isoDayOfWeek";
    }
    if (!expression_compile_named(compile, &row, value, arguments, &given))
        return false;
    node = expression_node_new(compile, op, arguments, FROM_COUNT + 1);
    node->given = given;
    node->name_count = iso;
    expression_zone_prepare(compile, node);
    *ret = expression_node_fold(compile, node);
    return true;
}

EXPRESSION_COMPUTE(expression_date_from_parts)
{
    int64_t part[FROM_COUNT], days, local;
    const struct expression_zone *zone;
    bool null = false;

    for (size_t i = 0; i < FROM_COUNT; i++)
        if (!from_part(call, i, i == FROM_MONTH || i == FROM_DAY, &part[i], &null))
            return false;
    if (!expression_zone_read(call, FROM_ZONE, &zone))
        return false;
    if (null || !zone)
        return expression_give_null(call);
    if (call->node->name_count) { /* the week that 4 January is in, and so many further */
        int64_t fourth = expression_days(part[FROM_YEAR], 1, 4);
        int from_monday = (expression_weekday(fourth * EXPRESSION_MS_PER_DAY) + 6) % 7;

        days = fourth - from_monday + (part[FROM_MONTH] - 1) * 7 + part[FROM_DAY] - 1;
    } else {
        days = expression_days(part[FROM_YEAR], part[FROM_MONTH], part[FROM_DAY]);
    }
    local = days * EXPRESSION_MS_PER_DAY + part[FROM_HOUR] * 3600000 + part[FROM_MINUTE] * 60000 +
            part[FROM_SECOND] * 1000 + part[FROM_MS];
    return range_check(call, local) &&
           expression_give(call, document_date(expression_zone_to_utc(zone, local)));
}

/* --- Units ------------------------------------------------------------------------------------ */

enum unit {
    UNIT_YEAR,
    UNIT_QUARTER,
    UNIT_MONTH,
    UNIT_WEEK,
    UNIT_DAY,
    UNIT_HOUR,
    UNIT_MINUTE,
    UNIT_SECOND,
    UNIT_MS,
};

static const int64_t unit_lengths[] = {12,      3,     1,    7, 1, /* months, then days */
                                       3600000, 60000, 1000, 1};   /* milliseconds */

/* *ret_null: it is null. */
static bool unit_read(struct expression_call *call, size_t argument, int code, enum unit *ret_unit,
                      bool *ret_null)
{
    static const char *const names[] = {"year", "quarter", "month",  "week",       "day",
                                        "hour", "minute",  "second", "millisecond"};
    const struct document_value *value = &call->arguments[argument];

    if (expression_is_nullish(value)) {
        *ret_null = true;
        return true;
    }
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, code, "%s requires 'unit' to be a string, but got %s",
                               call->node->op->name, expression_type_name(value));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (slice_equal(value->text, slice_of_text(names[i]))) {
            *ret_unit = (enum unit)i;
            return true;
        }
    }
    return mongo_error_set(call->err, MONGO_FAILED_TO_PARSE, "unknown time unit value: %.*s",
                           SLICE_ARG(value->text));
}

/* The day that weeks begin with, 0 being Sunday. */
static bool week_start_read(struct expression_call *call, size_t argument, int code, int *ret_day,
                            bool *ret_null)
{
    static const char *const names[] = {"sunday",   "monday", "tuesday", "wednesday",
                                        "thursday", "friday", "saturday"};
    const struct document_value *value = &call->arguments[argument];

    *ret_day = 0;
    if (!(call->node->given & 1u << argument))
        return true;
    if (expression_is_nullish(value)) {
        *ret_null = true;
        return true;
    }
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, code,
                               "%s requires 'startOfWeek' to be a string, but got %s",
                               call->node->op->name, expression_type_name(value));
    for (int i = 0; i < 7; i++) {
        struct slice name = slice_of_text(names[i]);

        if (slice_equal_nocase(value->text, name) ||
            slice_equal_nocase(value->text, slice_first(name, 3))) {
            *ret_day = i;
            return true;
        }
    }
    return mongo_error_set(call->err, MONGO_FAILED_TO_PARSE, "unknown day of week value: %.*s",
                           SLICE_ARG(value->text));
}

/* --- Moving ----------------------------------------------------------------------------------- */

static int64_t months_add(int64_t local, int64_t months)
{
    struct expression_moment moment = expression_moment_of(local);
    int64_t total = moment.year * 12 + moment.month - 1 + months;

    moment.year = expression_floor_divide(total, 12);
    moment.month = (int)(total - moment.year * 12) + 1;
    moment.day = MIN(moment.day, expression_month_days(moment.year, moment.month));
    return expression_local_ms(&moment);
}

static bool date_move(int64_t ms, int unit, int64_t amount, const struct expression_zone *zone,
                      int64_t *ret_ms)
{
    int64_t by, local;

    if (__builtin_mul_overflow(amount, unit_lengths[unit], &by))
        return false;
    if (unit >= UNIT_HOUR)
        return !__builtin_add_overflow(ms, by, ret_ms);
    if (by > DATE_LIMIT / EXPRESSION_MS_PER_DAY || by < -DATE_LIMIT / EXPRESSION_MS_PER_DAY)
        return false;
    local = ms + expression_zone_offset_ms(zone, ms);
    if (unit < UNIT_WEEK) {
        if (by > DATE_LIMIT / EXPRESSION_MS_PER_DAY / 31 ||
            by < -DATE_LIMIT / EXPRESSION_MS_PER_DAY / 31)
            return false;
        local = months_add(local, by);
    } else {
        local += by * EXPRESSION_MS_PER_DAY;
    }
    *ret_ms = expression_zone_to_utc(zone, local);
    return true;
}

/* $dateAdd and $dateSubtract: startDate, unit, amount, timezone. */
EXPRESSION_COMPUTE(expression_date_add)
{
    const struct document_value *amount = &call->arguments[2];
    const struct expression_zone *zone;
    enum unit unit = UNIT_MS;
    int64_t ms = 0, by = 0, moved;
    bool null = false;

    for (size_t i = 0; i < 3; i++)
        null |= expression_is_nullish(&call->arguments[i]);
    if (!expression_zone_read(call, 3, &zone))
        return false;
    if (null || !zone)
        return expression_give_null(call);
    if (!date_read(call, 0, 5166403, "startDate", &ms) ||
        !unit_read(call, 1, 5166404, &unit, &null))
        return false;
    if (!document_to_int64(amount, &by))
        return mongo_error_set(call->err, 5166405, "%s expects integer amount of time units",
                               call->node->op->name);
    if (call->node->op->number && __builtin_sub_overflow((int64_t)0, by, &by))
        return mongo_error_set(call->err, 6045000, "invalid %s 'amount' parameter value: %lld",
                               call->node->op->name, (long long)by);
    if (!date_move(ms, (int)unit, by, zone, &moved))
        return mongo_error_set(call->err, 5166406, "%s overflowed", call->node->op->name);
    return range_check(call, moved) && expression_give(call, document_date(moved));
}

/* --- Distances -------------------------------------------------------------------------------- */

static int64_t months_of(int64_t local)
{
    struct expression_moment moment = expression_moment_of(local);

    return moment.year * 12 + moment.month - 1;
}

/* Which unit a local time is in, counted from somewhere. */
static int64_t unit_number(int64_t local, enum unit unit, int week_start)
{
    int64_t days = expression_floor_divide(local, EXPRESSION_MS_PER_DAY);

    if (unit < UNIT_WEEK)
        return expression_floor_divide(months_of(local), unit_lengths[unit]);
    if (unit == UNIT_WEEK) /* day 0 was a Thursday */
        return expression_floor_divide(days + 4 - week_start, 7);
    if (unit == UNIT_DAY)
        return days;
    return expression_floor_divide(local, unit_lengths[unit]);
}

/* startDate, endDate, unit, timezone, startOfWeek. */
EXPRESSION_COMPUTE(expression_date_diff)
{
    const struct expression_zone *zone;
    int64_t from = 0, to = 0, from_offset, to_offset;
    enum unit unit = UNIT_MS;
    bool null = false;
    int start;

    for (size_t i = 0; i < 3; i++)
        null |= expression_is_nullish(&call->arguments[i]);
    if (!expression_zone_read(call, 3, &zone))
        return false;
    if (null || !zone)
        return expression_give_null(call);
    if (!date_read(call, 0, 5166307, "startDate", &from) ||
        !date_read(call, 1, 5166307, "endDate", &to) ||
        !unit_read(call, 2, 5166306, &unit, &null) ||
        !week_start_read(call, 4, 5439015, &start, &null))
        return false;
    if (null)
        return expression_give_null(call);
    from_offset = expression_zone_offset_ms(zone, from);
    to_offset = unit >= UNIT_HOUR ? from_offset : expression_zone_offset_ms(zone, to);
    return expression_give(call, document_int64(unit_number(to + to_offset, unit, start) -
                                                unit_number(from + from_offset, unit, start)));
}

/* --- Cutting ----------------------------------------------------------------------------------
 *
 * Bins are counted from the beginning of 2000 in the zone; those of weeks from the first day of
 * that year which begins a week. */

static int64_t bin_begin(int64_t at, int64_t from, int64_t length)
{
    return from + expression_floor_divide(at - from, length) * length;
}

static bool trunc_to(struct expression_call *call, int64_t ms, enum unit unit, int64_t bin,
                     int week_start, const struct expression_zone *zone)
{
    int64_t from = expression_days(2000, 1, 1), length, local, months;

    if (__builtin_mul_overflow(bin, unit_lengths[unit], &length) ||
        length > (unit >= UNIT_HOUR ? DATE_LIMIT : DATE_LIMIT / EXPRESSION_MS_PER_DAY / 31))
        return mongo_error_set(call->err, 5439018, "%s: 'binSize' is too large",
                               call->node->op->name);
    if (unit >= UNIT_HOUR) {
        int64_t reference = expression_zone_to_utc(zone, from * EXPRESSION_MS_PER_DAY);

        return expression_give(call, document_date(bin_begin(ms, reference, length)));
    }
    local = ms + expression_zone_offset_ms(zone, ms);
    if (unit < UNIT_WEEK) {
        months = bin_begin(months_of(local), (int64_t)2000 * 12, length);
        local = expression_days(0, months + 1, 1) * EXPRESSION_MS_PER_DAY;
    } else {
        int64_t days = expression_floor_divide(local, EXPRESSION_MS_PER_DAY);

        if (unit == UNIT_WEEK)
            from += (week_start - 6 + 7) % 7; /* 1 January 2000 was a Saturday */
        local = bin_begin(days, from, length) * EXPRESSION_MS_PER_DAY;
    }
    return range_check(call, local) &&
           expression_give(call, document_date(expression_zone_to_utc(zone, local)));
}

/* date, unit, binSize, timezone, startOfWeek. */
EXPRESSION_COMPUTE(expression_date_trunc)
{
    const struct document_value *size = &call->arguments[2];
    const struct expression_zone *zone;
    enum unit unit = UNIT_MS;
    int64_t ms, bin = 1;
    bool null = false;
    int start = 0;

    if (!expression_zone_read(call, 3, &zone))
        return false;
    if (!zone || expression_is_nullish(&call->arguments[0]) ||
        expression_is_nullish(&call->arguments[1]) ||
        ((call->node->given & 4) && expression_is_nullish(size)))
        return expression_give_null(call);
    if (!date_read(call, 0, 5439012, "date", &ms) || !unit_read(call, 1, 5439013, &unit, &null))
        return false;
    if (call->node->given & 4) {
        if (!document_to_int64(size, &bin))
            return mongo_error_set(call->err, 5439017,
                                   "$dateTrunc requires 'binSize' to be a 64-bit integer, but got "
                                   "value '%s' of type %s",
                                   expression_show(call->context, size),
                                   expression_type_name(size));
        if (bin <= 0)
            return mongo_error_set(call->err, 5439018,
                                   "$dateTrunc requires 'binSize' to be greater than 0, but got "
                                   "value %lld",
                                   (long long)bin);
    }
    if (unit == UNIT_WEEK && !week_start_read(call, 4, 5439015, &start, &null))
        return false;
    if (null)
        return expression_give_null(call);
    return trunc_to(call, ms, unit, bin, start, zone);
}
