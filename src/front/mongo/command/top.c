/* top: what was asked of each collection since the server started. These are the counters behind
 * /metrics (observe/figures.h), so requests by other APIs are among them. A server without locks of
 * collections shows as readLock what only reads, as writeLock what writes, as MongoDB's own tools
 * read them. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"
#include "front/mongo/command/permit.h"

struct sums {
    uint64_t time_us, count;
};

enum kind { QUERIES, GETMORE, INSERT, UPDATE, REMOVE, COMMANDS, KINDS };

static const char *const kind_names[KINDS] = {
    [QUERIES] = "queries", [GETMORE] = "getmore", [INSERT] = "insert",
    [UPDATE] = "update",   [REMOVE] = "remove",   [COMMANDS] = "commands",
};

static enum kind kind_of(enum observed_operation operation)
{
    switch (operation) {
    case OBSERVED_READ:
    case OBSERVED_LIST:
    case OBSERVED_QUERY:
        return QUERIES;
    case OBSERVED_MORE:
        return GETMORE;
    case OBSERVED_CREATE:
    case OBSERVED_BATCH:
        return INSERT;
    case OBSERVED_REPLACE:
    case OBSERVED_UPSERT:
    case OBSERVED_PATCH:
        return UPDATE;
    case OBSERVED_DELETE:
        return REMOVE;
    default:
        return COMMANDS;
    }
}

static void sums_add(struct sums *to, const struct sums *more)
{
    to->time_us += more->time_us;
    to->count += more->count;
}

static void sums_append(struct buf *out, const char *name, const struct sums *sums)
{
    size_t begin = document_append_object_begin(out, slice_of_text(name));

    document_append_int64(out, SLICE("time"), (int64_t)sums->time_us);
    document_append_int64(out, SLICE("count"), (int64_t)sums->count);
    document_end(out, begin);
}

static void counts_append(struct buf *out, struct slice ns, const struct figures_counts *counts)
{
    struct sums kinds[KINDS] = {0}, total = {0}, reads = {0}, writes = {0};
    size_t begin;

    for (size_t i = 0; i < OBSERVED_OPERATIONS; i++) {
        struct sums one = {.time_us = counts->operation_us[i]};

        for (size_t j = 0; j < FIGURES_STATUSES; j++)
            one.count += counts->requests[i][j];
        sums_add(&total, &one);
        sums_add(observed_operation_changes((enum observed_operation)i) ? &writes : &reads, &one);
        sums_add(&kinds[kind_of((enum observed_operation)i)], &one);
    }
    begin = document_append_object_begin(out, ns);
    sums_append(out, "total", &total);
    sums_append(out, "readLock", &reads);
    sums_append(out, "writeLock", &writes);
    for (size_t i = 0; i < KINDS; i++)
        sums_append(out, kind_names[i], &kinds[i]);
    document_end(out, begin);
}

bool mongo_top(struct mongo_call *call, struct error *err)
{
    const struct account *account = call->account.account;
    struct observer *observer = call->services->observer;
    struct figures_counts counts;
    size_t totals;

    if (!mongo_arguments_read(call, NULL, 0, NULL, err))
        return false;
    if (!observer)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "nothing is counted");
    totals = document_append_object_begin(&call->reply, SLICE("totals"));
    document_append_string(&call->reply, SLICE("note"), SLICE("all times in microseconds"));
    for (size_t d = 0; account && d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++) {
            const struct container *container = database_container(database, c);
            struct slice ns =
                arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(database_info(database)->id),
                             SLICE_ARG(container_info(container)->id));

            /* beyond metrics.containers_max they have no counters of their own */
            if (mongo_container_is_there(call, container) &&
                figures_read(observer_figures(observer), container_info(container)->number,
                             &counts))
                counts_append(&call->reply, ns, &counts);
        }
    }
    document_end(&call->reply, totals);
    return true;
}
