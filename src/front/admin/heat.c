/* Heat as data: what was asked of the partitions of a container, and of its hottest keys, over
 * time; and the keys that are too hot or too large. */
#include "front/admin/call.h"

#include "catalogue/container_usage.h"
#include "document/json.h"
#include "document/order.h"
#include "heat/heat.h"
#include "partition/strategy.h"

enum { MINUTES_DEFAULT = 120, POINTS_DEFAULT = 240, MINUTE_S = 60, MINUTE_MS = 60000 };

static bool heat_needed(const struct admin_call *call, struct error *err)
{
    return call->services->heat ||
           error_set(err, ERROR_NOT_SUPPORTED, "this server keeps no record of heat");
}

/* --- The record ------------------------------------------------------------------------------ */

static bool query_read(const struct admin_call *call, struct heat_query *ret_query,
                       struct error *err)
{
    int64_t now = clock_read_wall_ms(call->services->clock) / MINUTE_MS;
    uint64_t minutes, from, to, points;

    if (!admin_number(call, SLICE("minutes"), 1, HEAT_WEEK_MINUTES, MINUTES_DEFAULT, &minutes,
                      err) ||
        !admin_number(call, SLICE("to"), 0, UINT32_MAX, (uint64_t)now * MINUTE_S, &to, err) ||
        !admin_number(call, SLICE("from"), 0, UINT32_MAX, to - MIN(to, (minutes - 1) * MINUTE_S),
                      &from, err) ||
        !admin_number(call, SLICE("points"), 1, HEAT_POINTS_MAX, POINTS_DEFAULT, &points, err))
        return false;
    if (from > to)
        return error_set(err, ERROR_BAD_REQUEST, "the parameter from is behind to");
    if (to - from > (uint64_t)HEAT_WEEK_MINUTES * MINUTE_S)
        return error_set(err, ERROR_BAD_REQUEST,
                         "heat is kept for a week: from and to are further "
                         "apart");
    *ret_query = (struct heat_query){.from_minute = (int64_t)from / MINUTE_S,
                                     .to_minute = (int64_t)to / MINUTE_S,
                                     .points_max = points};
    return true;
}

static bool by_read(const struct admin_call *call, bool *ret_keys, struct error *err)
{
    struct slice by = admin_parameter(call, SLICE("by"));

    *ret_keys = slice_equal(by, SLICE("keys"));
    return !by.data || *ret_keys || slice_equal(by, SLICE("span")) ||
           error_set(err, ERROR_BAD_REQUEST, "the parameter by must be span or keys");
}

static void time_append(struct buf *out, const char *name, int64_t at_ms)
{
    char text[CLOCK_ISO_SIZE];

    clock_iso(at_ms, text);
    admin_text(out, name, slice_of_text(text));
}

static void numbers_append(struct buf *out, const struct statistics_numbers *numbers,
                           const struct statistics_times *times)
{
    uint64_t measured = numbers->requests - MIN(numbers->throttled, numbers->requests);

    admin_ru(out, "ru", numbers->cru);
    admin_number_append(out, "requests", numbers->requests);
    admin_number_append(out, "throttled", numbers->throttled);
    admin_number_append(out, "bytesIn", numbers->bytes_in);
    admin_number_append(out, "bytesOut", numbers->bytes_out);
    buf_printf(out, ",\"latencyMs\":{\"mean\":%.3f,\"max\":%.3f",
               measured ? (double)numbers->time_us / 1000 / (double)measured : 0.0,
               (double)numbers->time_us_max / 1000);
    if (times) /* never above the longest, which is exact */
        buf_printf(out, ",\"p99\":%.3f",
                   (double)MIN(statistics_times_quantile(times, 0.99), numbers->time_us_max) /
                       1000);
    BUF_APPEND(out, "}");
}

static void spans_append(struct buf *out, const struct heat_record *record)
{
    BUF_APPEND(out, ",\"spans\":[");
    for (size_t i = 0; i < record->span_count; i++) {
        buf_printf(out, "%s{\"id\":\"%u\"", i ? "," : "", record->spans[i].partition);
        numbers_append(out, &record->spans[i].numbers, &record->spans[i].times);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}

static void keys_append(struct admin_call *call, const struct container *container,
                        const struct heat_record *record)
{
    BUF_APPEND(&call->body, ",\"keys\":[");
    for (size_t i = 0; i < record->key_count; i++) {
        const struct heat_key *key = &record->keys[i];

        buf_append_text(&call->body, i ? ",{" : "{");
        admin_key(call, container, key->key);
        buf_printf(&call->body, ",\"partition\":\"%u\"", key->partition);
        numbers_append(&call->body, &key->numbers, NULL);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]");
}

static void points_append(struct admin_call *call, const struct container *container,
                          const struct heat_series *series, bool keys)
{
    BUF_APPEND(&call->body, ",\"points\":[");
    for (size_t i = 0; i < series->point_count; i++) {
        buf_append_text(&call->body, i ? ",{" : "{");
        time_append(&call->body, "at", series->points[i].minute * MINUTE_MS);
        if (keys)
            keys_append(call, container, &series->points[i].record);
        else
            spans_append(&call->body, &series->points[i].record);
        BUF_APPEND(&call->body, "}");
    }
    BUF_APPEND(&call->body, "]");
}

/* Of a range container: the value of the first component that a bound begins with. */
static void bound_append(struct admin_call *call, const struct container *container,
                         struct slice bound)
{
    struct slice bytes = partition_route_first(bound);
    struct document_value value;
    struct error ignored;

    if (!partition_route_is_ordered(&definition_fields(container_definition(container))->key) ||
        !bytes.len || !document_key_read(DOCUMENT_ORDER_SQL, &bytes, call->arena, &value, &ignored))
        return;
    BUF_APPEND(&call->body, ",\"minKey\":");
    document_json_write_value(&value, &call->body);
}

/* Of a partition that one key has for itself: that key, as its items tell it. */
static void alone_append(struct admin_call *call, const struct container *container,
                         uint32_t partition)
{
    const struct partition_span *span = partition_map_find_id(container_map(container), partition);
    struct container_usage_key *keys;
    size_t count, seen;
    struct error ignored;

    if (!span || span->cut != PARTITION_CUT_ISOLATED ||
        !container_usage_largest(container, span, 1, 2, call->arena, &keys, &count, &seen,
                                 &ignored) ||
        count != 1 || seen != 1)
        return;
    BUF_APPEND(&call->body, ",\"key\":");
    partition_key_json(&definition_fields(container_definition(container))->key, &keys[0].key,
                       &call->body);
}

static void places_append(struct admin_call *call, const struct container *container,
                          const struct heat_series *series)
{
    const struct admin_hooks *hooks = call->hooks;
    struct buf *out = &call->body;

    BUF_APPEND(out, ",\"partitions\":[");
    for (size_t i = 0; i < series->place_count; i++) {
        const struct heat_place *place = &series->places[i];
        const char *node = hooks->node_name ? hooks->node_name(hooks->context, place->node) : NULL;

        buf_printf(out, "%s{\"id\":\"%u\"", i ? "," : "", place->partition);
        admin_hex(out, "minInclusive", place->min);
        admin_hex(out, "maxExclusive", place->max);
        if (node)
            admin_text(out, "node", slice_of_text(node));
        if (place->since)
            time_append(out, "since", place->since * MINUTE_MS);
        if (place->until)
            time_append(out, "until", place->until * MINUTE_MS);
        bound_append(call, container, place->min);
        alone_append(call, container, place->partition);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}

static void ids_append(struct buf *out, const char *name, const uint32_t *ids, size_t count)
{
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s\"%u\"", i ? "," : "", ids[i]);
    BUF_APPEND(out, "]");
}

static void events_append(struct buf *out, const struct heat_series *series)
{
    BUF_APPEND(out, ",\"events\":[");
    for (size_t i = 0; i < series->event_count; i++) {
        const struct heat_event *event = &series->events[i];

        buf_append_text(out, i ? ",{" : "{");
        time_append(out, "at", event->at_ms);
        admin_text(out, "kind", slice_of_text(migration_kind_name(event->kind)));
        ids_append(out, "from", event->sources, event->source_count);
        ids_append(out, "to", event->targets, event->target_count);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}

bool admin_heat_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct heat_series series;
    struct heat_query query;
    bool keys;

    if (!heat_needed(call, err) || !query_read(call, &query, err) || !by_read(call, &keys, err) ||
        !admin_container_open(call, &container, err) ||
        !heat_read(call->services->heat, container, &query, call->arena, &series, err))
        return false;
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "database", call->names[0]);
    admin_text(&call->body, "container", container_info(container)->id);
    time_append(&call->body, "from", query.from_minute * MINUTE_MS);
    time_append(&call->body, "to", (query.to_minute + 1) * MINUTE_MS);
    admin_number_append(&call->body, "minutes", series.step);
    admin_text(&call->body, "by", keys ? SLICE("keys") : SLICE("span"));
    points_append(call, container, &series, keys);
    places_append(call, container, &series);
    events_append(&call->body, &series);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

/* --- The report ------------------------------------------------------------------------------ */

static void hot_append(struct buf *out, const struct heat_report *report)
{
    buf_printf(out,
               ",\"ruPerSecond\":%.2f,\"ruPerSecondWanted\":%.2f,\"ruPerSecondOfPartition\":%.2f,"
               "\"ruPerSecondMax\":%.2f,\"throttledShare\":%.4f,\"shareOfPartition\":%.4f",
               report->used, report->wanted, report->rate, report->rate_max, report->throttled,
               report->share);
}

static void report_append(struct admin_call *call, const struct container *container,
                          const struct heat_report *report)
{
    struct buf *out = &call->body;

    BUF_APPEND(out, "{");
    admin_text(out, "trouble", slice_of_text(heat_trouble_name(report->trouble)));
    admin_text(out, "account", report->account);
    admin_text(out, "database", report->database);
    admin_text(out, "container", report->id);
    BUF_APPEND(out, ",");
    admin_key(call, container, report->key);
    buf_printf(out, ",\"partition\":\"%u\",\"alone\":%s", report->partition,
               report->alone ? "true" : "false");
    time_append(out, "since", report->since_ms);
    if (report->trouble == HEAT_HOT) {
        hot_append(out, report);
    } else {
        admin_number_append(out, "bytes", report->bytes);
        admin_number_append(out, "bytesMax", report->bytes_max);
    }
    admin_text(out, "do", slice_of_text(heat_advice_name(report->advice)));
    admin_text(out, "advice", slice_of_text(heat_advice_text(report->advice)));
    BUF_APPEND(out, "}");
}

/* A report outlives its container by a look. */
static void reports_append(struct admin_call *call, const struct heat_report *reports, size_t count)
{
    bool first = true;

    BUF_APPEND(&call->body, "{\"keys\":[");
    for (size_t i = 0; i < count; i++) {
        CLEANUP(container_unref) struct container *container = NULL;
        struct error gone;

        if (!catalogue_container_open(call->services->catalogue, reports[i].account,
                                      reports[i].database, reports[i].id, &container, &gone) ||
            container_info(container)->number != reports[i].container)
            continue;
        if (!first)
            BUF_APPEND(&call->body, ",");
        first = false;
        report_append(call, container, &reports[i]);
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
}

bool admin_hot_container(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct heat_report *reports;
    size_t count;

    if (!heat_needed(call, err) || !admin_container_open(call, &container, err))
        return false;
    count = heat_reports(call->services->heat, call->account.id, container_info(container)->number,
                         call->arena, &reports);
    reports_append(call, reports, count);
    return true;
}

/* The default account sees everybody's. */
bool admin_hot_all(struct admin_call *call, struct error *err)
{
    struct heat_report *reports;
    size_t count;

    if (!heat_needed(call, err))
        return false;
    count = heat_reports(call->services->heat, admin_is_owner(call) ? SLICE_NONE : call->account.id,
                         0, call->arena, &reports);
    reports_append(call, reports, count);
    return true;
}
