#include "observe/observer.h"

#include "base/memory.h"
#include "throughput/cost.h"

enum { ACCESS_BYTES_MAX = 16 * 1024 };

struct observer {
    struct observer_parts parts;
    uint64_t slow_us;
    bool is_wanted; /* every request is, by somebody besides the figures */
};

struct observer *observer_new(const struct observer_parts *parts)
{
    struct observer *observer = MEMORY_NEW(struct observer);

    assert(parts->figures);
    observer->parts = *parts;
    observer->slow_us = parts->slow ? (uint64_t)parts->slow_ms * 1000 : UINT64_MAX;
    observer->is_wanted = parts->access || parts->audit || parts->trace;
    return observer;
}

void observer_free(struct observer *observer)
{
    if (!observer)
        return;
    figures_free(observer->parts.figures);
    slow_free(observer->parts.slow);
    lines_free(observer->parts.access);
    audit_free(observer->parts.audit);
    trace_free(observer->parts.trace);
    memory_free(observer);
}

static void access_write(struct lines *access, const struct observed_request *request)
{
    CLEANUP(buf_done) struct buf line;
    char when[CLOCK_ISO_SIZE];

    buf_init(&line, ACCESS_BYTES_MAX);
    clock_iso(request->ended_ms, when);
    buf_printf(&line, "{\"time\":\"%s\"", when);
    observed_request_json(request, &line);
    BUF_APPEND(&line, "}");
    if (!buf_overflowed(&line))
        lines_add(access, buf_slice(&line));
}

static void slow_log(struct log *log, const struct observed_request *request)
{
    char charge[COST_TEXT_SIZE], plan[OBSERVED_PLAN_SIZE];

    cost_text(request->charge_cru, charge);
    log_event(log, LOG_WARNING, "slow request", LOG_TEXT("api", request->front),
              LOG_TEXT("operation", observed_operation_name(request->observed.operation)),
              LOG_SLICE("id", request->id), LOG_SLICE("account", request->account),
              LOG_SLICE("database", request->database), LOG_SLICE("container", request->container),
              LOG_INT("partition", request->observed.partition), LOG_INT("status", request->status),
              LOG_TEXT("charge", charge), LOG_INT("ms", (int64_t)(request->time_us / 1000)),
              LOG_SLICE("plan", observed_plan(&request->observed.reads, plan)));
}

void observer_tell(struct observer *observer, struct observed_request *request,
                   enum error_code error)
{
    const struct observer_parts *parts = &observer->parts;

    figures_count(parts->figures, request, error);
    if (!observer->is_wanted && LIKELY(request->time_us < observer->slow_us))
        return;
    request->ended_ms = clock_wall_ms();
    if (UNLIKELY(request->time_us >= observer->slow_us)) {
        slow_add(parts->slow, request);
        slow_log(parts->log, request);
    }
    if (parts->access)
        access_write(parts->access, request);
    if (parts->trace)
        trace_tell(parts->trace, request);
    if (parts->audit)
        audit_tell(parts->audit, request);
}

void observer_reopen(struct observer *observer)
{
    if (observer->parts.access)
        lines_reopen(observer->parts.access);
}

struct figures *observer_figures(struct observer *observer)
{
    return observer->parts.figures;
}

struct slow *observer_slow(struct observer *observer)
{
    return observer->parts.slow;
}

struct lines *observer_access(struct observer *observer)
{
    return observer->parts.access;
}

struct audit *observer_audit(struct observer *observer)
{
    return observer->parts.audit;
}

struct trace *observer_trace(struct observer *observer)
{
    return observer->parts.trace;
}
