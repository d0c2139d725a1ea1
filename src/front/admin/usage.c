/* What was asked of an account in the last hour, minute by minute, over all its containers: what a
 * page draws its curves from without any other tool. */
#include "front/admin/call.h"

#include "heat/heat.h"
#include "heat/store.h"

enum { CONTAINERS_MAX = 2000 }; /* whose records are read for one answer */

/* The minutes of all containers so far; [0] is the present one. */
struct usage {
    int64_t now; /* in minutes since 1970 */
    struct statistics_numbers minutes[STATISTICS_MINUTES];
    size_t containers;
};

static bool container_add(struct admin_call *call, struct container *container, struct usage *usage,
                          struct error *err)
{
    const struct heat_query query = {.from_minute = usage->now - STATISTICS_MINUTES + 1,
                                     .to_minute = usage->now,
                                     .points_max = STATISTICS_MINUTES};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_series series;

    if (!heat_read(call->services->heat, container, &query, arena, &series, err))
        return false;
    for (size_t i = 0; i < series.point_count; i++) {
        int64_t age = MAX(usage->now - series.points[i].minute, INT64_C(0));

        for (size_t j = 0; j < series.points[i].record.span_count && age < STATISTICS_MINUTES; j++)
            statistics_numbers_add(&usage->minutes[age], &series.points[i].record.spans[j].numbers);
    }
    usage->containers++;
    front_call_breathe(&call->front);
    return true;
}

static bool containers_add(struct admin_call *call, struct usage *usage, struct error *err)
{
    const struct account *account = call->account.account;

    for (size_t i = 0; i < account_database_count(account); i++) {
        const struct database *database = account_database(account, i);

        for (size_t j = 0; j < database_container_count(database); j++)
            if (usage->containers < CONTAINERS_MAX &&
                !container_add(call, database_container(database, j), usage, err))
                return false;
    }
    return true;
}

static void minute_append(struct buf *out, const struct statistics_numbers *numbers, int64_t minute)
{
    BUF_APPEND(out, "{");
    admin_number_append(out, "at", (uint64_t)minute * 60);
    admin_ru(out, "ru", numbers->cru);
    admin_number_append(out, "requests", numbers->requests);
    admin_number_append(out, "throttled", numbers->throttled);
    admin_number_append(out, "bytesIn", numbers->bytes_in);
    admin_number_append(out, "bytesOut", numbers->bytes_out);
    admin_number_append(out, "timeUs", numbers->time_us);
    admin_number_append(out, "timeUsMax", numbers->time_us_max);
    BUF_APPEND(out, "}");
}

bool admin_usage_show(struct admin_call *call, struct error *err)
{
    struct usage *usage = ARENA_NEW(call->arena, struct usage);

    if (!call->services->heat)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server keeps no record of heat");
    usage->now = clock_read_wall_ms(call->services->clock) / 60000;
    if (!containers_add(call, usage, err))
        return false;
    BUF_APPEND(&call->body, "{");
    admin_number_append(&call->body, "containers", usage->containers);
    BUF_APPEND(&call->body, ",\"minutes\":[");
    for (size_t i = STATISTICS_MINUTES; i-- > 0;) {
        minute_append(&call->body, &usage->minutes[i], usage->now - (int64_t)i);
        if (i)
            BUF_APPEND(&call->body, ",");
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}
