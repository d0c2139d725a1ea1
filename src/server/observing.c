/* From settings to those who are told of requests. */
#include "server/server_private.h"

enum { ACCESS_WAITING_BYTES = 8 * 1024 * 1024 };

static bool access_make(const struct server *server, struct lines **ret_lines, struct error *err)
{
    const struct settings *settings = server->settings;

    if (!settings->log_access[0])
        return true;
    return lines_new(
               &(struct lines_options){.path = settings->log_access,
                                       .file_bytes_max = (uint64_t)settings->log_access_bytes_max,
                                       .waiting_bytes_max = ACCESS_WAITING_BYTES,
                                       .log = server->log},
               ret_lines, err) ||
           error_prefix(err, "log.access");
}

static bool audit_make(const struct server *server, struct audit **ret_audit, struct error *err)
{
    const struct settings *settings = server->settings;

    if (!settings->audit_record)
        return true;
    return audit_new(&(struct audit_options){.catalogue = store_catalogue(server->store),
                                             .clock = &clock_system,
                                             .log = server->log,
                                             .containers = settings->audit_containers,
                                             .reads = settings->audit_reads,
                                             .bytes_max = (uint64_t)settings->audit_bytes_max,
                                             .age_ms_max = settings->audit_age_max,
                                             .waiting_max = (size_t)settings->audit_waiting_max},
                     ret_audit, err);
}

static bool trace_make(const struct server *server, struct trace **ret_trace, struct error *err)
{
    const struct settings *settings = server->settings;

    if (!settings->trace_endpoint[0])
        return true;
    return trace_new(
        &(struct trace_options){.endpoint = settings->trace_endpoint,
                                .per_million = (uint32_t)settings->trace_per_million,
                                .waiting_bytes_max = (size_t)settings->trace_waiting_bytes_max,
                                .pause_ms = settings->trace_pause_ms,
                                .timeout_ms = settings->trace_timeout_ms,
                                .log = server->log},
        ret_trace, err);
}

bool server_observer_make(struct server *server, struct error *err)
{
    const struct settings *settings = server->settings;
    CLEANUP(lines_free) struct lines *access = NULL;
    CLEANUP(audit_free) struct audit *audit = NULL;
    CLEANUP(trace_free) struct trace *trace = NULL;

    if (!access_make(server, &access, err) || !trace_make(server, &trace, err) ||
        !audit_make(server, &audit, err))
        return false;
    server->observer = observer_new(&(struct observer_parts){
        .figures = figures_new((size_t)settings->metrics_containers_max),
        .slow = settings->log_slow_ms ? slow_new((size_t)settings->log_slow_kept) : NULL,
        .access = TAKE(access),
        .audit = TAKE(audit),
        .trace = TAKE(trace),
        .log = server->log,
        .slow_ms = settings->log_slow_ms});
    return true;
}
