/* What requests did: slow ones, the audit, the last lines of the log. */
#include "front/admin/call.h"

#include "base/log_kept.h"

/* --- Slow requests --------------------------------------------------------------------------- */

bool admin_slow_show(struct admin_call *call, struct error *err)
{
    struct slow *slow = call->services->observer ? observer_slow(call->services->observer) : NULL;
    struct slice account =
        admin_is_owner(call) ? admin_parameter(call, SLICE("account")) : call->account.id;
    uint64_t max;

    if (!admin_number(call, SLICE("max"), 1, 100000, 100, &max, err))
        return false;
    BUF_APPEND(&call->body, "{\"requests\":[");
    if (slow)
        slow_print(slow, account, max, &call->body);
    buf_printf(&call->body, "],\"count\":%llu}",
               (unsigned long long)(slow && admin_is_owner(call) ? slow_count(slow) : 0));
    call->status = 200;
    return true;
}

/* --- The log --------------------------------------------------------------------------------- */

struct tail {
    struct buf *out;
    size_t count, max;
};

static bool tail_visit(void *context, struct slice line)
{
    struct tail *tail = context;

    if (tail->count++)
        BUF_APPEND(tail->out, ",");
    buf_append_slice(tail->out, line);
    return tail->count < tail->max;
}

bool admin_log_show(struct admin_call *call, struct error *err)
{
    struct tail tail = {.out = &call->body};
    uint64_t max;

    if (!admin_need_owner(call, err) ||
        !admin_number(call, SLICE("max"), 1, 100000, 100, &max, err))
        return false;
    tail.max = max;
    BUF_APPEND(&call->body, "{\"lines\":[");
    if (call->services->log)
        log_kept(call->services->log, tail_visit, &tail);
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}

/* --- The audit ------------------------------------------------------------------------------- */

static bool audit_get(struct admin_call *call, struct audit **ret_audit, struct error *err)
{
    *ret_audit = call->services->observer ? observer_audit(call->services->observer) : NULL;
    return *ret_audit || error_set(err, ERROR_NOT_FOUND,
                                   "nothing is recorded: the setting audit.record is false");
}

/* A time of the query string: milliseconds since 1970. */
static bool time_get(const struct admin_call *call, struct slice name, int64_t *ret_ms,
                     struct error *err)
{
    uint64_t ms;

    if (!admin_number(call, name, 0, INT64_MAX, 0, &ms, err))
        return false;
    *ret_ms = (int64_t)ms;
    return true;
}

static bool filter_read(struct admin_call *call, struct audit_filter *ret_filter, struct error *err)
{
    struct audit_filter filter = {
        .account =
            admin_is_owner(call) ? admin_parameter(call, SLICE("account")) : call->account.id,
        .database = admin_parameter(call, SLICE("database")),
        .container = admin_parameter(call, SLICE("container")),
        .operation = admin_parameter(call, SLICE("operation")),
        .who = admin_parameter(call, SLICE("who")),
        .from = admin_parameter(call, SLICE("address")),
        .failed = slice_equal(admin_parameter(call, SLICE("failed")), SLICE("true")),
    };
    uint64_t max, status;

    if (!admin_number(call, SLICE("max"), 1, AUDIT_PAGE_MAX, 100, &max, err) ||
        !admin_number(call, SLICE("status"), 0, 999, 0, &status, err) ||
        !admin_number(call, SLICE("before"), 0, UINT64_MAX, 0, &filter.before, err) ||
        !time_get(call, SLICE("from"), &filter.from_ms, err) ||
        !time_get(call, SLICE("to"), &filter.to_ms, err))
        return false;
    filter.max = max;
    filter.status = (uint16_t)status;
    *ret_filter = filter;
    return true;
}

bool admin_audit_show(struct admin_call *call, struct error *err)
{
    struct audit_filter filter;
    struct audit *audit;
    uint64_t next;

    if (!audit_get(call, &audit, err) || !filter_read(call, &filter, err))
        return false;
    BUF_APPEND(&call->body, "{\"records\":[");
    if (!audit_read(audit, &filter, &call->body, &next, err))
        return false;
    BUF_APPEND(&call->body, "]");
    if (next)
        admin_number_append(&call->body, "next", next);
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}

bool admin_audit_verify(struct admin_call *call, struct error *err)
{
    struct audit_verdict verdict;
    struct audit *audit;
    uint64_t number;

    if (!admin_need_owner(call, err) || !audit_get(call, &audit, err) ||
        !admin_number(call, SLICE("number"), 0, UINT64_MAX, 0, &number, err) ||
        !audit_verify(audit, number, admin_parameter(call, SLICE("hash")), &verdict, err))
        return false;
    buf_printf(&call->body,
               "{\"whole\":%s,\"records\":%llu,\"first\":%llu,\"last\":%llu,\"hash\":\"%s\"",
               verdict.whole ? "true" : "false", (unsigned long long)verdict.count,
               (unsigned long long)verdict.first, (unsigned long long)verdict.last, verdict.hash);
    if (!verdict.whole) {
        admin_number_append(&call->body, "brokenAt", verdict.broken_at);
        admin_text(&call->body, "because", slice_of_text(verdict.because));
    }
    BUF_APPEND(&call->body, "}");
    call->status = 200;
    return true;
}
