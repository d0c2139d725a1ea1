/* Time zones, from the system's database: files in the format of RFC 8536.
 *
 * A zone that a query names is read once, when the query is compiled, and kept with its plan; one
 * that is computed is read for each row. So there is no cache that threads would share. What is
 * read of a file: the second, 64-bit block (moments at which the offset changes, and to what), and
 * the rule at its end, which holds after the last of them. */
#include "base/memory.h"
#include "front/mongo/expression/date.h"

#include <fcntl.h>
#include <unistd.h>

enum {
    FILE_MAX = 64 * 1024,
    HEADER_SIZE = 44,
    NAME_MAX_LEN = 64,
    OFFSET_MAX_S = 26 * 3600,
    ZONE_WORK = 500, /* of reading a file */
};

/* When summer time begins or ends, in local time before the change. */
struct rule_day {
    char kind; /* 'M': week of month; 'J': day of year without leap days; 0: day of year from 0 */
    int month, week, day;
    int32_t time_s;
};

struct rule {
    bool present, summer;
    int32_t standard_s, summer_s;
    struct rule_day begin, end;
};

struct expression_zone {
    int32_t fixed_s; /* without changes: the offset; with them: that before the first */
    size_t count;
    const int64_t *moments; /* seconds, ascending */
    const int32_t *offsets; /* from then on */
    struct rule rule;       /* after the last */
};

const struct expression_zone expression_utc = {0};

/* --- Rules: EST5EDT,M3.2.0,M11.1.0 -------------------------------------------------------------
 */

struct reading {
    const uint8_t *at, *end;
    bool broken;
};

static bool take(struct reading *in, char c)
{
    if (in->at < in->end && *in->at == (uint8_t)c) {
        in->at++;
        return true;
    }
    return false;
}

static int32_t number_take(struct reading *in)
{
    int32_t number = 0;
    const uint8_t *begin = in->at;

    while (in->at < in->end && *in->at >= '0' && *in->at <= '9' && in->at - begin < 4)
        number = number * 10 + (*in->at++ - '0');
    in->broken |= in->at == begin;
    return number;
}

static void name_skip(struct reading *in)
{
    if (take(in, '<')) {
        while (in->at < in->end && *in->at != '>')
            in->at++;
        in->broken |= !take(in, '>');
        return;
    }
    while (in->at < in->end && ((*in->at | 32) >= 'a' && (*in->at | 32) <= 'z'))
        in->at++;
}

static int32_t time_take(struct reading *in)
{
    bool negative = take(in, '-');
    int32_t seconds;

    if (!negative)
        (void)take(in, '+');
    seconds = number_take(in) * 3600;
    if (take(in, ':'))
        seconds += number_take(in) * 60;
    if (take(in, ':'))
        seconds += number_take(in);
    return negative ? -seconds : seconds;
}

static struct rule_day day_take(struct reading *in)
{
    struct rule_day day = {.time_s = 7200};

    if (take(in, 'M')) {
        day.kind = 'M';
        day.month = number_take(in);
        in->broken |= !take(in, '.');
        day.week = number_take(in);
        in->broken |= !take(in, '.');
        day.day = number_take(in);
        in->broken |=
            day.month < 1 || day.month > 12 || day.week < 1 || day.week > 5 || day.day > 6;
    } else {
        day.kind = take(in, 'J') ? 'J' : 0;
        day.day = number_take(in);
    }
    if (take(in, '/'))
        day.time_s = time_take(in);
    return day;
}

/* West of Greenwich is positive in a rule. */
static struct rule rule_read(struct slice text)
{
    struct reading in = {text.data, text.data + text.len, false};
    struct rule rule = {.present = text.len > 0};

    name_skip(&in);
    rule.standard_s = -time_take(&in);
    if (in.at < in.end && !in.broken) {
        rule.summer = true;
        name_skip(&in);
        rule.summer_s = in.at < in.end && *in.at != ',' ? -time_take(&in) : rule.standard_s + 3600;
        in.broken |= !take(&in, ',');
        rule.begin = day_take(&in);
        in.broken |= !take(&in, ',');
        rule.end = day_take(&in);
    }
    rule.present &= !in.broken && in.at == in.end;
    return rule;
}

/* The local second of the year's change, as if there were no zones. */
static int64_t change_at(const struct rule_day *day, int64_t year)
{
    int64_t days = expression_days(year, 1, 1);

    if (day->kind == 'M') {
        int64_t first = expression_days(year, day->month, 1);
        int weekday = expression_weekday(first * EXPRESSION_MS_PER_DAY);
        int in_month = 1 + (day->day - weekday + 7) % 7 + 7 * (day->week - 1);

        while (in_month > expression_month_days(year, day->month))
            in_month -= 7;
        days = first + in_month - 1;
    } else if (day->kind == 'J') {
        days += day->day - 1;
        if (day->day > 59 && expression_month_days(year, 2) == 29)
            days++;
    } else {
        days += day->day;
    }
    return days * 86400 + day->time_s;
}

static int32_t rule_offset(const struct rule *rule, int64_t utc_s)
{
    struct expression_moment local;
    int64_t begin, end;

    if (!rule->summer)
        return rule->standard_s;
    local = expression_moment_of((utc_s + rule->standard_s) * 1000);
    begin = change_at(&rule->begin, local.year) - rule->standard_s;
    end = change_at(&rule->end, local.year) - rule->summer_s;
    if (begin < end)
        return utc_s >= begin && utc_s < end ? rule->summer_s : rule->standard_s;
    return utc_s >= end && utc_s < begin ? rule->standard_s : rule->summer_s;
}

/* --- Files ------------------------------------------------------------------------------------ */

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int64_t be64(const uint8_t *at)
{
    return (int64_t)((uint64_t)be32(at) << 32 | be32(at + 4));
}

struct block {
    size_t utc, standard, leaps, changes, types, names; /* counts */
    size_t bytes;
};

static bool block_read(struct slice file, size_t at, size_t time_size, struct block *ret_block)
{
    const uint8_t *head = file.data + at;

    if (file.len < at + HEADER_SIZE || memcmp(head, "TZif", 4) != 0)
        return false;
    *ret_block = (struct block){be32(head + 20),
                                be32(head + 24),
                                be32(head + 28),
                                be32(head + 32),
                                be32(head + 36),
                                be32(head + 40),
                                0};
    if ((ret_block->utc | ret_block->standard | ret_block->leaps | ret_block->changes |
         ret_block->types | ret_block->names) > FILE_MAX)
        return false;
    ret_block->bytes = ret_block->changes * (time_size + 1) + ret_block->types * 6 +
                       ret_block->names + ret_block->leaps * (time_size + 4) + ret_block->standard +
                       ret_block->utc;
    return file.len >= at + HEADER_SIZE + ret_block->bytes && ret_block->types > 0;
}

static const struct expression_zone *zone_of_file(struct slice file, struct arena *arena)
{
    struct expression_zone *zone = ARENA_NEW(arena, struct expression_zone);
    const uint8_t *moments, *indexes, *types;
    struct block first, block;
    int64_t *times;
    int32_t *offsets;
    size_t at, rule;

    if (!block_read(file, 0, 4, &first) || file.data[4] < '2')
        return NULL;
    at = HEADER_SIZE + first.bytes;
    if (!block_read(file, at, 8, &block))
        return NULL;
    moments = file.data + at + HEADER_SIZE;
    indexes = moments + 8 * block.changes;
    types = indexes + block.changes;
    times = ARENA_ARRAY(arena, int64_t, block.changes + 1);
    offsets = ARENA_ARRAY(arena, int32_t, block.changes + 1);
    for (size_t i = 0; i < block.changes; i++) {
        if (indexes[i] >= block.types)
            return NULL;
        times[i] = be64(moments + 8 * i);
        offsets[i] = (int32_t)be32(types + 6 * (size_t)indexes[i]);
        if ((i && times[i] <= times[i - 1]) || offsets[i] > OFFSET_MAX_S ||
            offsets[i] < -OFFSET_MAX_S)
            return NULL;
    }
    zone->fixed_s = (int32_t)be32(types);
    zone->count = block.changes;
    zone->moments = times;
    zone->offsets = offsets;
    rule = at + HEADER_SIZE + block.bytes;
    if (file.len > rule + 2 && file.data[rule] == '\n' && file.data[file.len - 1] == '\n')
        zone->rule = rule_read(slice_of(file.data + rule + 1, file.len - rule - 2));
    return zone;
}

/* Letters, digits, _ + - and /, and no way out of the database. */
static bool is_name(struct slice name)
{
    bool letter = false;

    if (!name.len || name.len > NAME_MAX_LEN || name.data[0] == '/')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];
        bool is_letter = (c | 32) >= 'a' && (c | 32) <= 'z';

        letter |= is_letter;
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '+' && c != '-' && c != '/')
            return false;
    }
    return letter;
}

static const struct expression_zone *zone_load(struct slice name, struct arena *arena)
{
    static const char *const places[] = {"/usr/share/zoneinfo/", "/usr/lib/zoneinfo/"};
    uint8_t *bytes = memory_alloc(FILE_MAX);
    const struct expression_zone *zone = NULL;

    for (size_t i = 0; i < ARRAY_LEN(places) && !zone; i++) {
        const struct slice parts[] = {slice_of_text(places[i]), name};
        int file = open(arena_text(arena, arena_join(arena, parts, 2)), O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : read(file, bytes, FILE_MAX);

        if (file >= 0)
            close(file);
        if (got > 0)
            zone = zone_of_file(slice_of(bytes, (size_t)got), arena);
    }
    memory_free(bytes);
    return zone;
}

/* --- Finding ---------------------------------------------------------------------------------- */

static bool digits_take(struct reading *in, int32_t *ret_number)
{
    if (in->end - in->at < 2 || in->at[0] < '0' || in->at[0] > '9' || in->at[1] < '0' ||
        in->at[1] > '9')
        return false;
    *ret_number = (in->at[0] - '0') * 10 + (in->at[1] - '0');
    in->at += 2;
    return true;
}

static bool offset_read(struct slice text, int32_t *ret_s)
{
    struct reading in = {text.data + 1, text.data + text.len, false};
    int32_t hours, minutes = 0;

    if (!digits_take(&in, &hours))
        return false;
    if (in.at < in.end) {
        (void)take(&in, ':');
        if (!digits_take(&in, &minutes) || minutes > 59)
            return false;
    }
    *ret_s = (text.data[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    return in.at == in.end;
}

const struct expression_zone *expression_zone_find(struct slice name, struct arena *arena)
{
    static const char *const utc[] = {"UTC", "GMT", "Z"};
    struct expression_zone *fixed;
    int32_t offset;

    for (size_t i = 0; i < ARRAY_LEN(utc); i++)
        if (slice_equal(name, slice_of_text(utc[i])))
            return &expression_utc;
    if (name.len && (name.data[0] == '+' || name.data[0] == '-')) {
        if (!offset_read(name, &offset))
            return NULL;
        fixed = ARENA_NEW(arena, struct expression_zone);
        fixed->fixed_s = offset;
        return fixed;
    }
    return is_name(name) ? zone_load(name, arena) : NULL;
}

int64_t expression_zone_offset_ms(const struct expression_zone *zone, int64_t utc_ms)
{
    int64_t utc_s = expression_floor_divide(utc_ms, 1000);
    size_t low = 0, high = zone->count;

    while (low < high) { /* how many changes are at or before */
        size_t middle = (low + high) / 2;

        if (zone->moments[middle] <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == zone->count && zone->rule.present)
        return 1000 * (int64_t)rule_offset(&zone->rule, utc_s);
    return 1000 * (int64_t)(low ? zone->offsets[low - 1] : zone->fixed_s);
}

int64_t expression_zone_to_utc(const struct expression_zone *zone, int64_t local_ms)
{
    int64_t before, after;

    if (!zone->count && !zone->rule.present)
        return local_ms - 1000 * (int64_t)zone->fixed_s;
    before = expression_zone_offset_ms(zone, local_ms - EXPRESSION_MS_PER_DAY);
    after = expression_zone_offset_ms(zone, local_ms + EXPRESSION_MS_PER_DAY);
    if (before != after && expression_zone_offset_ms(zone, local_ms - before) != before &&
        expression_zone_offset_ms(zone, local_ms - after) == after)
        return local_ms - after;
    return local_ms - before;
}

/* --- In calls --------------------------------------------------------------------------------- */

static size_t zone_argument(const struct expression_operator *op)
{
    size_t i = 0;

    while (op->names[i] && !slice_equal(slice_of_text(op->names[i]), SLICE("timezone")))
        i++;
    return i;
}

/* A name that is no zone is found out when the operator is evaluated. */
void expression_zone_prepare(struct expression_compile *compile, struct expression_node *node)
{
    const struct query_expression *zone = node->head.children[zone_argument(node->op)];

    node->zone = NULL;
    if (query_is_constant(zone) && query_constant_value(zone)->type == DOCUMENT_STRING)
        node->zone = expression_zone_find(query_constant_value(zone)->text, compile->build->arena);
}

bool expression_zone_read(struct expression_call *call, size_t argument,
                          const struct expression_zone **ret_zone)
{
    const struct document_value *value = &call->arguments[argument];

    *ret_zone = call->node->zone;
    if (*ret_zone)
        return true;
    if (!(call->node->given & 1u << argument)) {
        *ret_zone = &expression_utc;
        return true;
    }
    if (expression_is_nullish(value))
        return true;
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(call->err, 40517,
                               "%s requires a string for the timezone argument, but was given a %s "
                               "(%s)",
                               call->node->op->name, expression_type_name(value),
                               expression_show(call->context, value));
    if (!query_work(call->context, ZONE_WORK, call->err) ||
        !query_memory_check(call->context, FILE_MAX, call->err))
        return false;
    *ret_zone = expression_zone_find(value->text, call->context->arena);
    if (!*ret_zone)
        return mongo_error_set(call->err, 40485, "unrecognized time zone identifier: \"%.*s\"",
                               SLICE_ARG(value->text));
    return true;
}
