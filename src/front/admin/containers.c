/* What the containers of an account are made of and who uses them: the figures that a decision for
 * or against a partition key rests on. */
#include "front/admin/call.h"

#include "catalogue/container_usage.h"
#include "catalogue/shares.h"
#include "catalogue/withheld.h"
#include "definition/strategy.h"
#include "document/bson.h"
#include "document/json.h"
#include "heat/heat.h"
#include "heat/store.h"
#include "partition/strategy.h"

enum { KEYS_DEFAULT = 20, KEYS_MAX = STATISTICS_KEYS_MAX, MINUTES_DEFAULT = 5 };

void admin_offer_append(struct admin_call *call, const struct offer *offer)
{
    struct buf *out = &call->body;

    BUF_APPEND(out, ",\"throughput\":{");
    admin_text(out, "kind", offer->kind == OFFER_AUTOSCALE ? SLICE("autoscale") : SLICE("manual"));
    admin_number_append(out, "ruPerSecond", offer->ru);
    buf_printf(out, ",\"shared\":%s,\"stated\":%s,\"enforced\":%s}",
               offer->shared ? "true" : "false", offer->unstated ? "false" : "true",
               offer_is_enforced(catalogue_limits(call->services->catalogue), offer) ? "true"
                                                                                     : "false");
}

/* --- The overview ---------------------------------------------------------------------------- */

static void container_line(struct admin_call *call, const struct container *container)
{
    struct buf *out = &call->body;
    size_t partitions;

    (void)partition_map_spans(container_map(container), &partitions);
    BUF_APPEND(out, "{");
    admin_text(out, "id", container_info(container)->id);
    admin_text(out, "_rid", container_info(container)->rid);
    admin_number_append(out, "partitions", partitions);
    admin_offer_append(call, container_offer(container));
    BUF_APPEND(out, "}");
}

static void database_append(struct admin_call *call, const struct database *database)
{
    struct buf *out = &call->body;
    size_t shown = 0;

    BUF_APPEND(out, "{");
    admin_text(out, "id", database_info(database)->id);
    admin_text(out, "_rid", database_info(database)->rid);
    if (database_offer(database))
        admin_offer_append(call, database_offer(database));
    BUF_APPEND(out, ",\"containers\":[");
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        const struct catalogue_name name = {call->account.id, database_info(database)->id,
                                            container_info(container)->id};

        if (catalogue_is_withheld(call->services->catalogue, &name))
            continue; /* of a transaction that is still open */
        if (shown++)
            BUF_APPEND(out, ",");
        container_line(call, container);
    }
    BUF_APPEND(out, "]}");
}

/* What is kept for change streams, of all accounts, on nodes that serve: for the owner. */
static bool changes_append(struct admin_call *call, struct error *err)
{
    const struct cluster *cluster = catalogue_cluster(call->services->catalogue);
    struct history_size all = {0}, size;

    if (!admin_is_owner(call))
        return true;
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        if (!cluster_node_serves(cluster_at(cluster, i)))
            continue;
        if (!history_size(cluster_at(cluster, i)->engine, &size, err))
            return false;
        all.bytes += size.bytes;
        all.records += size.records;
    }
    BUF_APPEND(&call->body, ",\"changes\":{\"bytes\":");
    buf_append_uint64(&call->body, all.bytes);
    BUF_APPEND(&call->body, ",\"records\":");
    buf_append_uint64(&call->body, all.records);
    BUF_APPEND(&call->body, "}");
    return true;
}

bool admin_databases_list(struct admin_call *call, struct error *err)
{
    BUF_APPEND(&call->body, "{");
    admin_text(&call->body, "account", call->account.id);
    BUF_APPEND(&call->body, ",\"databases\":[");
    for (size_t i = 0; i < account_database_count(call->account.account); i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        database_append(call, account_database(call->account.account, i));
    }
    BUF_APPEND(&call->body, "]");
    if (!changes_append(call, err))
        return false;
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

/* --- One container --------------------------------------------------------------------------- */

static void numbers_append(struct buf *out, const struct statistics_numbers *numbers)
{
    BUF_APPEND(out, "{");
    admin_ru(out, "ru", numbers->cru);
    admin_number_append(out, "requests", numbers->requests);
    admin_number_append(out, "throttled", numbers->throttled);
    admin_number_append(out, "bytesIn", numbers->bytes_in);
    admin_number_append(out, "bytesOut", numbers->bytes_out);
    BUF_APPEND(out, "}");
}

static void totals_append(struct buf *out, const struct statistics_totals *totals)
{
    size_t minutes = STATISTICS_MINUTES;

    while (minutes > 1 && totals->minutes[minutes - 1].requests == 0)
        minutes--; /* those before anybody asked */
    BUF_APPEND(out, ",\"statistics\":{\"hour\":");
    numbers_append(out, &totals->hour);
    BUF_APPEND(out, ",\"minutes\":[");
    for (size_t i = 0; i < minutes; i++) {
        if (i)
            BUF_APPEND(out, ",");
        numbers_append(out, &totals->minutes[i]);
    }
    BUF_APPEND(out, "]}");
}

/* A container that is being shown. */
struct showing {
    struct admin_call *call;
    struct container *container;
    const struct partition_span *spans;
    size_t count;
    double *rates;                    /* RU/s of each span */
    struct statistics_totals *totals; /* of each span, the last hour */
    struct container_usage *usages;   /* of each span */
    struct statistics_totals all;
    struct container_usage sum;
};

static struct statistics_numbers numbers_part(const struct statistics_numbers *numbers, double part)
{
    return (struct statistics_numbers){
        .cru = (int64_t)((double)numbers->cru * part + 0.5),
        .requests = (uint64_t)((double)numbers->requests * part + 0.5),
        .throttled = (uint64_t)((double)numbers->throttled * part + 0.5),
        .bytes_in = (uint64_t)((double)numbers->bytes_in * part),
        .bytes_out = (uint64_t)((double)numbers->bytes_out * part),
        .time_us = (uint64_t)((double)numbers->time_us * part),
        .time_us_max = numbers->time_us_max};
}

/* What a partition did that is gone by now is of those that have its keys, in proportion to what
 * they give. */
static void heir_give(struct showing *showing, const struct heat_place *place, size_t age,
                      const struct statistics_numbers *numbers)
{
    double rates = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < showing->count; i++) {
            const struct partition_span *span = &showing->spans[i];
            struct statistics_numbers part;

            if (slice_compare(span->min, place->max) >= 0 ||
                slice_compare(span->max, place->min) <= 0)
                continue;
            if (pass == 0) {
                rates += showing->rates[i];
                continue;
            }
            part = numbers_part(numbers, rates > 0 ? showing->rates[i] / rates : 0);
            statistics_numbers_add(&showing->totals[i].minutes[age], &part);
        }
}

static void numbers_give(struct showing *showing, const struct heat_series *series,
                         const struct heat_span *asked, size_t age)
{
    statistics_numbers_add(&showing->all.minutes[age], &asked->numbers);
    for (size_t i = 0; i < showing->count; i++)
        if (showing->spans[i].id == asked->partition) {
            statistics_numbers_add(&showing->totals[i].minutes[age], &asked->numbers);
            return;
        }
    for (size_t i = 0; i < series->place_count; i++)
        if (series->places[i].partition == asked->partition)
            heir_give(showing, &series->places[i], age, &asked->numbers);
}

static void hour_sum(struct statistics_totals *totals)
{
    for (size_t i = 0; i < STATISTICS_MINUTES; i++)
        statistics_numbers_add(&totals->hour, &totals->minutes[i]);
}

/* The last hour, from the record of heat: it outlives splits and the process. */
static bool hour_read(struct showing *showing, struct error *err)
{
    struct admin_call *call = showing->call;
    int64_t now = clock_read_wall_ms(call->services->clock) / 60000;
    struct heat_series series;

    if (!call->services->heat)
        return true;
    if (!heat_read(call->services->heat, showing->container,
                   &(struct heat_query){.from_minute = now - STATISTICS_MINUTES + 1,
                                        .to_minute = now,
                                        .points_max = STATISTICS_MINUTES},
                   call->arena, &series, err))
        return false;
    for (size_t i = 0; i < series.point_count; i++) {
        const struct heat_point *point = &series.points[i];
        int64_t age = MAX(now - point->minute, INT64_C(0));

        for (size_t j = 0; j < point->record.span_count && age < STATISTICS_MINUTES; j++)
            numbers_give(showing, &series, &point->record.spans[j], (size_t)age);
    }
    for (size_t i = 0; i < showing->count; i++)
        hour_sum(&showing->totals[i]);
    hour_sum(&showing->all);
    return true;
}

static void meter_append(struct admin_call *call, uint32_t partition)
{
    struct meter *meter = meters_find(call->services->meters, partition);
    struct budget_state state;

    if (!meter || !meter_budget(meter))
        return;
    budget_get_state(meter_budget(meter), clock_read_monotonic_ms(call->services->clock), &state);
    admin_ru(&call->body, "ruPerSecond", state.rate_cru);
    admin_ru(&call->body, "ruPerSecondNow", state.current_cru);
    admin_ru(&call->body, "burstCredit", state.credit_cru);
}

static bool span_append(struct showing *showing, size_t at, struct error *err)
{
    const struct partition_span *span = &showing->spans[at];
    struct admin_call *call = showing->call;
    struct container_usage usage;
    struct buf *out = &call->body;

    if (!container_usage_partition(showing->container, span, call->arena, &usage, err))
        return false;
    showing->usages[at] = usage;
    showing->sum.bytes += usage.bytes;
    showing->sum.items += usage.items;
    buf_printf(out, "{\"id\":\"%u\"", span->id);
    admin_hex(out, "minInclusive", span->min);
    admin_hex(out, "maxExclusive", span->max);
    admin_node(call, span->node);
    admin_number_append(out, "epoch", span->epoch);
    buf_printf(out, ",\"share\":%.6f",
               showing->rates[at] /
                   (double)MAX(container_offer(showing->container)->ru, (uint64_t)1));
    if (span->cut)
        buf_printf(out, ",\"cut\":\"%s\"", partition_cut_name(span->cut));
    admin_number_append(out, "bytes", usage.bytes);
    admin_number_append(out, "items", usage.items);
    meter_append(call, span->id);
    totals_append(out, &showing->totals[at]);
    BUF_APPEND(out, "}");
    return true;
}

/* A key that is spread over the spans from one to before another. */
static bool spread_key_append(struct showing *showing, size_t first, size_t end, struct error *err)
{
    const struct partition_span *spans = showing->spans;
    struct admin_call *call = showing->call;
    struct container_usage sum = {0};
    struct slice logical, pk;

    if (!partition_route_cut(&definition_fields(container_definition(showing->container))->key,
                             spans[first].max, &logical, &pk, err))
        return false;
    BUF_APPEND(&call->body, "{");
    admin_key(call, showing->container, pk);
    BUF_APPEND(&call->body, ",\"partitions\":[");
    for (size_t i = first; i < end; i++) {
        buf_printf(&call->body, "%s\"%u\"", i > first ? "," : "", spans[i].id);
        sum.bytes += showing->usages[i].bytes;
        sum.items += showing->usages[i].items;
    }
    BUF_APPEND(&call->body, "]");
    admin_number_append(&call->body, "bytes", sum.bytes);
    admin_number_append(&call->body, "items", sum.items);
    BUF_APPEND(&call->body, "}");
    return true;
}

static bool spread_append(struct showing *showing, struct error *err)
{
    const char *comma = "";

    BUF_APPEND(&showing->call->body, ",\"spread\":[");
    for (size_t i = 0, end; i < showing->count; i = end) {
        for (end = i + 1; end < showing->count && showing->spans[end].cut == PARTITION_CUT_SPREAD;)
            end++;
        if (end == i + 1)
            continue;
        buf_append_text(&showing->call->body, comma);
        comma = ",";
        if (!spread_key_append(showing, i, end, err))
            return false;
    }
    BUF_APPEND(&showing->call->body, "]");
    return true;
}

/* As the container shows it: a directory has an address of its own. */
static void strategy_append(struct buf *out, const struct definition_fields *fields)
{
    CLEANUP(buf_done) struct buf shown;
    struct document_value orrery, strategy = document_string(SLICE("hash"));
    size_t begin;

    buf_init(&shown, BUF_DEFAULT_MAX);
    begin = document_begin(&shown);
    if (document_find(fields->document, SLICE("orrery"), &orrery))
        definition_orrery_show(orrery.document, &shown);
    document_end(&shown, begin);
    if (document_find(buf_slice(&shown), SLICE("orrery"), &orrery))
        (void)document_find(orrery.document, SLICE("strategy"), &strategy);
    BUF_APPEND(out, ",\"strategy\":");
    if (strategy.type == DOCUMENT_STRING) {
        BUF_APPEND(out, "{");
        admin_text(out, "kind", strategy.text);
        BUF_APPEND(out, "}");
    } else {
        document_json_write_value(&strategy, out);
    }
}

static void container_head(struct admin_call *call, const struct container *container,
                           struct slice database)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct document_value key;

    admin_text(&call->body, "database", database);
    admin_text(&call->body, "id", container_info(container)->id);
    admin_text(&call->body, "_rid", container_info(container)->rid);
    if (document_find(fields->document, SLICE("partitionKey"), &key)) {
        BUF_APPEND(&call->body, ",\"partitionKey\":");
        document_json_write_value(&key, &call->body);
    }
    strategy_append(&call->body, fields);
    admin_offer_append(call, container_offer(container));
}

/* How far a view is. */
static void view_append(struct admin_call *call, const struct container *container)
{
    const struct front_services *services = call->services;
    struct front_view_report report;

    if (!services->views || !services->view_report(services->views, container, &report))
        return;
    BUF_APPEND(&call->body, ",\"view\":{\"phase\":\"");
    buf_append_text(&call->body, report.phase);
    BUF_APPEND(&call->body, "\"");
    admin_number_append(&call->body, "lagMs", (uint64_t)report.lag_ms);
    admin_number_append(&call->body, "lagLsn", report.lag_lsn);
    admin_number_append(&call->body, "written", report.written);
    admin_number_append(&call->body, "removed", report.removed);
    admin_number_append(&call->body, "leftOut", report.left_out);
    admin_number_append(&call->body, "throttled", report.throttled);
    admin_number_append(&call->body, "rebuilds", report.rebuilds);
    BUF_APPEND(&call->body, "}");
}

bool admin_containers_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct showing showing = {.call = call};

    if (!admin_container_open(call, &container, err))
        return false;
    showing.container = container;
    showing.spans = partition_map_spans(container_map(container), &showing.count);
    showing.rates = ARENA_ARRAY(call->arena, double, showing.count);
    showing.totals =
        arena_alloc_zero(call->arena, memory_array_size(showing.count, sizeof *showing.totals));
    showing.usages = ARENA_ARRAY(call->arena, struct container_usage, showing.count);
    container_rates(container, container_map(container), showing.rates);
    if (!hour_read(&showing, err))
        return false;
    BUF_APPEND(&call->body, "{");
    container_head(call, container, call->names[0]);
    BUF_APPEND(&call->body, ",\"partitions\":[");
    for (size_t i = 0; i < showing.count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        if (!span_append(&showing, i, err))
            return false;
    }
    BUF_APPEND(&call->body, "]");
    if (!spread_append(&showing, err))
        return false;
    admin_number_append(&call->body, "bytes", showing.sum.bytes);
    admin_number_append(&call->body, "items", showing.sum.items);
    admin_throughput_append(call, container);
    totals_append(&call->body, &showing.all);
    view_append(call, container);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

/* --- Its hot keys ---------------------------------------------------------------------------- */

/* What is shown of a key that is followed; the minutes, which are most of it, are left behind. */
struct hot_key {
    struct slice key;
    uint32_t partition;
    uint32_t share_bp;
    int64_t recent_cru, missed_cru;
    struct statistics_numbers hour;
};

static int hotter_first(const void *a, const void *b)
{
    const struct hot_key *x = a, *y = b;

    return (x->recent_cru < y->recent_cru) - (x->recent_cru > y->recent_cru);
}

void admin_key(struct admin_call *call, const struct container *container, struct slice bytes)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct slice rest = bytes;
    struct partition_key key;
    struct error ignored;

    if (!partition_key_read(definition, &rest, call->arena, &key, &ignored)) {
        BUF_APPEND(&call->body, "\"partitionKey\":null");
        admin_hex(&call->body, "partitionKeyBytes", bytes);
        return;
    }
    BUF_APPEND(&call->body, "\"partitionKey\":");
    partition_key_json(definition, &key, &call->body);
}

static void hot_key_append(struct admin_call *call, const struct container *container,
                           const struct hot_key *hot)
{
    struct buf *out = &call->body;

    BUF_APPEND(out, "{");
    admin_key(call, container, hot->key);
    buf_printf(out, ",\"partition\":\"%u\"", hot->partition);
    admin_ru(out, "ru", hot->recent_cru);
    buf_printf(out, ",\"shareOfPartition\":%.4f", hot->share_bp / 10000.0);
    BUF_APPEND(out, ",\"hour\":");
    numbers_append(out, &hot->hour);
    admin_ru(out, "missedRuMax", hot->missed_cru);
    BUF_APPEND(out, "}");
}

/* The hottest of one partition behind those gathered so far; keys are copied to the call's arena.
 */
static size_t hot_keys_add(struct admin_call *call, uint32_t partition, uint32_t minutes,
                           size_t max, struct hot_key *hot, size_t count)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct meter *meter = meters_find(call->services->meters, partition);
    struct statistics_key *keys;
    size_t found = meter
                       ? statistics_hottest(meter_statistics(meter), minutes, max,
                                            clock_read_wall_ms(call->services->clock), arena, &keys)
                       : 0;

    for (size_t i = 0; i < found; i++)
        hot[count++] = (struct hot_key){.key = arena_copy(call->arena, keys[i].key),
                                        .partition = partition,
                                        .share_bp = keys[i].share_bp,
                                        .recent_cru = keys[i].recent_cru,
                                        .missed_cru = keys[i].missed_cru,
                                        .hour = keys[i].hour};
    return count;
}

static struct hot_key *hot_keys_gather(struct admin_call *call, const struct container *container,
                                       uint32_t minutes, size_t max, size_t *ret_count)
{
    struct hot_key *hot = ARENA_ARRAY(call->arena, struct hot_key, 2 * max);
    size_t span_count, count = 0;
    const struct partition_span *spans = partition_map_spans(container_map(container), &span_count);

    for (size_t i = 0; i < span_count; i++) {
        count = hot_keys_add(call, spans[i].id, minutes, max, hot, count);
        qsort(hot, count, sizeof *hot, hotter_first);
        count = MIN(count, max);
    }
    *ret_count = count;
    return hot;
}

bool admin_containers_keys(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    uint64_t minutes, max;
    struct hot_key *hot;
    size_t count;

    if (!admin_number(call, SLICE("minutes"), 1, STATISTICS_MINUTES, MINUTES_DEFAULT, &minutes,
                      err) ||
        !admin_number(call, SLICE("max"), 1, KEYS_MAX, KEYS_DEFAULT, &max, err) ||
        !admin_container_open(call, &container, err))
        return false;
    hot = hot_keys_gather(call, container, (uint32_t)minutes, max, &count);
    BUF_APPEND(&call->body, "{");
    admin_number_append(&call->body, "minutes", minutes);
    BUF_APPEND(&call->body, ",\"keys\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        hot_key_append(call, container, &hot[i]);
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}
