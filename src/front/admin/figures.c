/* Counters of containers and their physical partitions since the server started, as JSON: what
 * `orrery top` and pages of figures take differences of. The same figures are in /metrics. */
#include "front/admin/call.h"

#include "throughput/statistics_all.h"

enum { CONTAINERS_MAX = 1000, PARTITIONS_MAX = 10000 };

struct showing {
    struct admin_call *call;
    size_t containers, partitions; /* shown so far */
};

static uint64_t requests_sum(const struct figures_counts *counts, const char *status)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < OBSERVED_OPERATIONS; i++)
        for (size_t j = 0; j < FIGURES_STATUSES; j++)
            if (!status || strcmp(figures_status_name(j), status) == 0)
                sum += counts->requests[i][j];
    return sum;
}

static void operations_append(const struct figures_counts *counts, struct buf *out)
{
    bool any = false;

    BUF_APPEND(out, ",\"operations\":{");
    for (size_t i = 0; i < OBSERVED_OPERATIONS; i++) {
        uint64_t sum = 0;

        for (size_t j = 0; j < FIGURES_STATUSES; j++)
            sum += counts->requests[i][j];
        if (!sum)
            continue;
        buf_printf(out, "%s\"%s\":%llu", any ? "," : "",
                   observed_operation_name((enum observed_operation)i), (unsigned long long)sum);
        any = true;
    }
    BUF_APPEND(out, "}");
}

static void partition_append(struct showing *showing, const struct partition_span *span, bool first)
{
    struct admin_call *call = showing->call;
    struct meter *meter = meters_find(call->services->meters, span->id);
    struct statistics_numbers all = {0};
    struct budget_state budget;
    int64_t refused_cru = 0;

    if (meter)
        statistics_all(meter_statistics(meter), &all, &refused_cru);
    buf_printf(&call->body, "%s{\"id\":\"%u\"", first ? "" : ",", span->id);
    admin_node(call, span->node);
    admin_number_append(&call->body, "requests", all.requests);
    admin_number_append(&call->body, "throttled", all.throttled);
    admin_ru(&call->body, "ru", all.cru);
    admin_ru(&call->body, "refusedRu", refused_cru);
    if (meters_state(call->services->meters, span->id, &budget))
        admin_ru(&call->body, "ruPerSecond", budget.rate_cru);
    BUF_APPEND(&call->body, "}");
}

static void container_append(struct showing *showing, struct slice account, struct slice database,
                             const struct container *container)
{
    struct admin_call *call = showing->call;
    struct figures_counts counts = {0};
    struct buf *out = &call->body;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    if (call->services->observer && !figures_read(observer_figures(call->services->observer),
                                                  container_info(container)->number, &counts))
        return; /* beyond metrics.containers_max */
    BUF_APPEND(out, "{");
    admin_text(out, "account", account);
    admin_text(out, "database", database);
    admin_text(out, "container", container_info(container)->id);
    admin_number_append(out, "requests", requests_sum(&counts, NULL));
    admin_number_append(out, "throttled", requests_sum(&counts, "429"));
    admin_ru(out, "ru", (int64_t)counts.cru);
    admin_number_append(out, "timeUs", counts.time_us);
    admin_number_append(out, "bytesIn", counts.bytes_in);
    admin_number_append(out, "bytesOut", counts.bytes_out);
    admin_number_append(out, "changeFeedLag", counts.feed_lag);
    buf_printf(out, ",\"migrating\":%s", container_migration(container) ? "true" : "false");
    operations_append(&counts, out);
    BUF_APPEND(out, ",\"partitions\":[");
    for (size_t i = 0; i < count && showing->partitions < PARTITIONS_MAX; i++) {
        partition_append(showing, &spans[i], i == 0);
        showing->partitions++;
    }
    BUF_APPEND(out, "]}");
}

static void account_append(struct showing *showing, const struct account *account)
{
    for (size_t i = 0; i < account_database_count(account); i++) {
        struct database *database = account_database(account, i);

        for (size_t j = 0; j < database_container_count(database); j++) {
            size_t before = showing->call->body.len;

            if (showing->containers == CONTAINERS_MAX)
                return;
            if (showing->containers)
                BUF_APPEND(&showing->call->body, ",");
            container_append(showing, account_info(account)->id, database_info(database)->id,
                             database_container(database, j));
            if (showing->call->body.len > before + 1)
                showing->containers++;
            else
                showing->call->body.len = before;
        }
    }
}

static void all_append(struct showing *showing)
{
    struct admin_call *call = showing->call;
    size_t count;
    struct account **accounts = catalogue_accounts(call->services->catalogue, call->arena, &count);

    for (size_t i = 0; i < count; i++) {
        account_append(showing, accounts[i]);
        account_unref(accounts[i]);
    }
}

bool admin_figures_show(struct admin_call *call, struct error *err UNUSED)
{
    struct showing showing = {.call = call};

    buf_printf(&call->body, "{\"time\":%lld,\"containers\":[",
               (long long)clock_read_wall_ms(call->services->clock));
    if (admin_is_owner(call))
        all_append(&showing);
    else
        account_append(&showing, call->account.account);
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}
