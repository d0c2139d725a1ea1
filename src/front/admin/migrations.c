/* Migrations under way and over, in one container and in all. */
#include "front/admin/migrations.h"

#include "front/admin/call.h"

/* A server that was told to stop moving partitions; the rest of the figures are as they are. */
static void progress_append(struct buf *out, const struct migrator_progress *progress)
{
    admin_number_append(out, "bytes", progress->bytes);
    admin_number_append(out, "bytesTotal", progress->bytes_total);
    admin_number_append(out, "items", progress->items);
    admin_number_append(out, "keys", progress->keys);
    admin_number_append(out, "pressure", progress->pressure);
    if (progress->kind == MIGRATION_REKEY)
        admin_number_append(out, "conflicts", progress->conflicts + progress->logical_full);
    if (progress->pause_ms >= 0)
        admin_number_append(out, "pauseMs", (uint64_t)progress->pause_ms);
    admin_number_append(out, "elapsedMs", (uint64_t)MAX(progress->elapsed_ms, INT64_C(0)));
    admin_number_append(out, "failures", progress->failures);
    if (progress->error[0])
        admin_text(out, "error", slice_of_text(progress->error));
}

static void ends_append(struct admin_call *call, const struct migration *migration)
{
    size_t source_count, target_count;
    const struct migration_source *sources = migration_sources(migration, &source_count);
    const struct partition_span *targets = migration_targets(migration, &target_count);
    struct buf *out = &call->body;

    BUF_APPEND(out, ",\"sources\":[");
    for (size_t i = 0; i < source_count; i++)
        buf_printf(out, "%s\"%u\"", i ? "," : "", sources[i].id);
    BUF_APPEND(out, "],\"targets\":[");
    for (size_t i = 0; i < target_count; i++) {
        buf_printf(out, "%s{\"id\":\"%u\"", i ? "," : "", targets[i].id);
        admin_hex(out, "minInclusive", targets[i].min);
        admin_hex(out, "maxExclusive", targets[i].max);
        admin_node(call, targets[i].node);
        buf_printf(out, ",\"share\":%.6f}", targets[i].share);
    }
    BUF_APPEND(out, "]");
}

/* The members, without braces. */
static void migration_members(struct admin_call *call, const struct container *container)
{
    const struct migration *migration = container_migration(container);
    struct migrator *migrator = call->services->migrator;
    struct migrator_progress progress = {.pause_ms = -1};
    struct slice phase = SLICE("planned");

    /* Another may have begun by now: then this one is over. */
    if (migrator && migrator_progress(migrator, container, &progress) &&
        progress.id == migration_id(migration))
        phase = slice_of_text(migrator_phase_name(progress.phase));
    if (migration_state(migration) == MIGRATION_CANCELLED)
        phase = SLICE("cancelled");
    admin_text(&call->body, "id", arena_printf(call->arena, "%u", migration_id(migration)));
    admin_text(&call->body, "kind", slice_of_text(migration_kind_name(migration_kind(migration))));
    admin_text(&call->body, "phase", phase);
    if (migrator && migrator_is_paused(migrator))
        BUF_APPEND(&call->body, ",\"paused\":true");
    ends_append(call, migration);
    progress_append(&call->body, &progress);
}

void admin_migration_append(struct admin_call *call, const struct container *container)
{
    BUF_APPEND(&call->body, "{");
    migration_members(call, container);
    BUF_APPEND(&call->body, "}");
}

bool admin_migration_refused(struct error *err)
{
    struct error said = *err;

    if (said.code == ERROR_BUSY)
        return error_set(err, ERROR_MIGRATION_UNDER_WAY, "%s", said.message);
    if (said.code == ERROR_PARTITION_UNKNOWN)
        return error_set(err, ERROR_NOT_FOUND, "%s", said.message);
    return false;
}

/* --- Of one container ------------------------------------------------------------------------ */

static bool none(const struct container *container, struct error *err)
{
    return error_set(err, ERROR_NOT_FOUND, "no migration of container \"%.*s\" is under way",
                     SLICE_ARG(container_info(container)->id));
}

bool admin_migration_show(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    if (!admin_container_open(call, &container, err))
        return false;
    if (!container_migration(container))
        return none(container, err);
    admin_migration_append(call, container);
    call->status = 200;
    return true;
}

bool admin_migration_cancel(struct admin_call *call, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct migrator *migrator = call->services->migrator;

    if (!admin_container_open(call, &container, err))
        return false;
    if (!migrator || !container_migration(container))
        return none(container, err);
    if (!migrator_cancel(migrator, container, err))
        return err->code == ERROR_BAD_REQUEST ? none(container, err) : admin_migration_refused(err);
    call->status = 204;
    return true;
}

/* --- All of them ----------------------------------------------------------------------------- */

static void account_append(struct admin_call *call, const struct account *account)
{
    struct buf *out = &call->body;

    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++) {
            const struct container *container = database_container(database, c);

            if (!container_migration(container))
                continue;
            buf_append_slice(out, out->data[out->len - 1] == '[' ? SLICE("{") : SLICE(",{"));
            admin_text(out, "account", account_info(account)->id);
            admin_text(out, "database", database_info(database)->id);
            admin_text(out, "container", container_info(container)->id);
            migration_members(call, container);
            BUF_APPEND(out, "}");
        }
    }
}

static void statistics_append(struct buf *out, const struct migrator_statistics *statistics)
{
    BUF_APPEND(out, ",\"statistics\":{");
    for (int kind = 0; kind < MIGRATION_KINDS; kind++)
        admin_number_append(out, migration_kind_name((enum migration_kind)kind),
                            statistics->done[kind]);
    admin_number_append(out, "cancelled", statistics->cancelled);
    admin_number_append(out, "bytes", statistics->bytes);
    admin_number_append(out, "items", statistics->items);
    admin_number_append(out, "pauseMsLast", (uint64_t)MAX(statistics->pause_ms_last, INT64_C(0)));
    admin_number_append(out, "pauseMsMax", (uint64_t)MAX(statistics->pause_ms_max, INT64_C(0)));
    BUF_APPEND(out, "}");
}

/* Those over: of the account that asks, of all for the default account. */
static void recent_append(struct admin_call *call, struct migrator *migrator)
{
    struct buf *out = &call->body;
    size_t count;
    struct migrator_outcome *outcomes = migrator_outcomes(migrator, call->arena, &count);

    BUF_APPEND(out, ",\"recent\":[");
    for (size_t i = 0; i < count; i++) {
        const struct migrator_outcome *outcome = &outcomes[i];

        if (!admin_is_owner(call) &&
            outcome->account != account_info(call->account.account)->number)
            continue;
        buf_append_slice(out, out->data[out->len - 1] == '[' ? SLICE("{") : SLICE(",{"));
        admin_text(out, "database", outcome->database);
        admin_text(out, "container", outcome->container);
        admin_text(out, "id", arena_printf(call->arena, "%u", outcome->progress.id));
        admin_text(out, "kind", slice_of_text(migration_kind_name(outcome->progress.kind)));
        admin_text(out, "outcome", outcome->cancelled ? SLICE("cancelled") : SLICE("done"));
        admin_number_append(out, "ended", (uint64_t)(outcome->ended_ms / 1000));
        progress_append(out, &outcome->progress);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}

bool admin_migrations_list(struct admin_call *call, struct error *err)
{
    struct migrator *migrator = call->services->migrator;
    struct account **accounts = &call->account.account;
    struct migrator_statistics statistics;
    size_t count = 1;

    if (!migrator)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server leaves partitions as they are");
    if (admin_is_owner(call))
        accounts = catalogue_accounts(call->services->catalogue, call->arena, &count);
    buf_printf(&call->body, "{\"paused\":%s,\"migrations\":[",
               migrator_is_paused(migrator) ? "true" : "false");
    for (size_t i = 0; i < count; i++) {
        account_append(call, accounts[i]);
        if (accounts != &call->account.account)
            account_unref(accounts[i]);
    }
    BUF_APPEND(&call->body, "]");
    recent_append(call, migrator);
    if (admin_is_owner(call)) {
        statistics = migrator_statistics(migrator);
        statistics_append(&call->body, &statistics);
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

static bool pause_set(struct admin_call *call, bool paused, struct error *err)
{

    if (!admin_need_owner(call, err))
        return false;
    if (!call->services->migrator)
        return error_set(err, ERROR_NOT_SUPPORTED, "this server leaves partitions as they are");
    migrator_pause(call->services->migrator, paused);
    buf_printf(&call->body, "{\"paused\":%s}", paused ? "true" : "false");
    call->status = 200;
    return true;
}

bool admin_migrations_pause(struct admin_call *call, struct error *err)
{
    return pause_set(call, true, err);
}

bool admin_migrations_resume(struct admin_call *call, struct error *err)
{
    return pause_set(call, false, err);
}
