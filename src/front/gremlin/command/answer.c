#include "front/gremlin/command/answer.h"

#include "base/clock.h"
#include "front/fault.h"
#include "front/gremlin/value/container.h"

enum {
    TICKS_OF_MS = 10000,
    /* What the service tells besides the statuses of HTTP. */
    STATUS_QUERY = 1000,
    STATUS_FORMAT = 1001,
    STATUS_MEMORY = 1003,
    STATUS_SCRIPT = 1004,
    STATUS_TIME = 1009,
    STATUS_PRECONDITION = 412,
};

/* --- Status attributes -------------------------------------------------------------------------
 */

static void put(struct gremlin_answering *answering, struct gremlin_value map, const char *name,
                struct gremlin_value value)
{
    struct gremlin_value key = gremlin_string(answering->heap, slice_of_text(name));

    gremlin_map_put_take(map, key, value);
    gremlin_value_unref(key);
}

static double milliseconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e6 : 0;
}

static double units(int64_t cru)
{
    return (double)cru / 100;
}

/* Those that every frame has, in the order the service has them. */
static struct gremlin_value attributes_make(struct gremlin_answering *answering, uint32_t status)
{
    struct gremlin_value map = gremlin_map_new(answering->heap);
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t from_ns = answering->told_ns ? answering->told_ns : answering->started_ns;

    put(answering, map, "x-ms-status-code", gremlin_int((int32_t)status));
    put(answering, map, "x-ms-activity-id",
        gremlin_string(answering->heap, slice_of_text(answering->activity_id)));
    put(answering, map, "x-ms-request-charge",
        gremlin_double(units(answering->charge_cru - answering->told_cru)));
    put(answering, map, "x-ms-total-request-charge", gremlin_double(units(answering->charge_cru)));
    put(answering, map, "x-ms-server-time-ms", gremlin_double(milliseconds(from_ns, now_ns)));
    put(answering, map, "x-ms-total-server-time-ms",
        gremlin_double(milliseconds(answering->started_ns, now_ns)));
    if (answering->reference_lag_ms)
        put(answering, map, "x-orrery-reference-lag-ms", gremlin_long(answering->reference_lag_ms));
    answering->told_cru = answering->charge_cru;
    answering->told_ns = now_ns;
    return map;
}

bool gremlin_frame_write(struct gremlin_answering *answering, uint16_t code,
                         const struct gremlin_batch *batch, struct buf *out, struct error *err)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value attributes = attributes_make(answering, 200);
    const struct gremlin_answer answer = {
        .id = answering->id,
        .code = code,
        .message = SLICE(""),
        .attributes = attributes,
        .batch = batch && batch->count ? batch : NULL,
    };

    if (!gremlin_format_write(answering->format, &answer, answering->heap, out, err))
        return false;
    return !buf_overflowed(out) ||
           error_set(err, ERROR_TOO_LARGE,
                     "a frame of results would be over %zu bytes: ask for a "
                     "smaller batchSize",
                     out->max);
}

/* --- Errors ------------------------------------------------------------------------------------
 */

struct gremlin_fault gremlin_fault_of(const struct error *err, uint16_t code)
{
    struct gremlin_fault fault = {.code = error_face(err->code)->gremlin_status,
                                  .status = err->status,
                                  .substatus = err->substatus,
                                  .exception = "DocumentClientException"};

    switch (err->code) {
    case ERROR_GREMLIN_SCRIPT:
    case ERROR_GREMLIN_SCRIPT_LIMIT:
    case ERROR_GREMLIN_COMPILE:
    case ERROR_NOT_SUPPORTED:
        fault.status = STATUS_SCRIPT;
        fault.exception = "GraphCompileException";
        break;
    case ERROR_GREMLIN_RUN:
    case ERROR_GREMLIN_FAIL:
    case ERROR_QUERY_LIMIT:
        fault.status = STATUS_QUERY;
        fault.exception = "GraphRuntimeException";
        break;
    case ERROR_GREMLIN_FORMAT:
        fault.status = STATUS_FORMAT;
        fault.exception = "GraphRuntimeException";
        break;
    case ERROR_TOO_LARGE:
    case ERROR_MEMORY_FULL:
        fault.status = STATUS_MEMORY;
        fault.exception = "GraphRuntimeException";
        break;
    case ERROR_TIMED_OUT:
        fault.status = STATUS_TIME;
        fault.exception = "GraphTimeoutException";
        break;
    case ERROR_CONFLICT:
        fault.status = STATUS_PRECONDITION;
        fault.exception = "PreconditionFailedException";
        break;
    case ERROR_BAD_REQUEST:
        fault.status = STATUS_SCRIPT;
        fault.exception = "GraphRuntimeException";
        break;
    default:
        break;
    }
    /* 498 and its like are of requests that were not understood, which the caller knows */
    if (fault.code == 498)
        fault.code = 500;
    if (code)
        fault.code = code;
    return fault;
}

static bool is_script(const struct gremlin_fault *fault)
{
    return fault->code == 597;
}

/* What the service calls the message, where it is known by its own words. */
static struct slice message_of(const struct gremlin_answering *answering, const struct error *err)
{
    if (err->code == ERROR_ITEM_EXISTS)
        return SLICE("Conflicting request to resource has been attempted. Retry to avoid "
                     "conflicts.");
    return front_fault_tell(answering->services, err, answering->activity_id, answering->arena);
}

struct slice gremlin_fault_text(const struct gremlin_answering *answering,
                                const struct gremlin_fault *fault, const struct error *err)
{
    struct slice message = message_of(answering, err);

    /* Who it is and what cannot be read has no text but its own. */
    if (fault->code < 500)
        return message;
    return arena_printf(answering->arena,
                        "%.*s\r\n\r\nActivityId : %s\r\nExceptionType : %s\r\n"
                        "ExceptionMessage : \r\n\t%.*s\r\nGremlinRequestId : %.*s\r\n"
                        "Context : graphcompute\r\nScope : %s\r\n"
                        "GraphInterOpStatusCode : %s\r\nHResult : 0x80131500\r\n",
                        SLICE_ARG(message), answering->activity_id, fault->exception,
                        SLICE_ARG(message), SLICE_ARG(answering->id),
                        is_script(fault) ? "graphparse-translate-outer" : "graphcomp-execquery",
                        is_script(fault) ? "ScriptEvaluationError" : "GraphRuntimeError");
}

/* "00:00:03.9500000": hours, minutes, seconds, ticks of 100 ns. */
static struct slice time_span(struct arena *arena, int64_t ms)
{
    return arena_printf(arena, "%02d:%02d:%02d.%07d", (int)(ms / 3600000 % 24),
                        (int)(ms / 60000 % 60), (int)(ms / 1000 % 60),
                        (int)(ms % 1000 * TICKS_OF_MS));
}

static struct gremlin_value fault_attributes(struct gremlin_answering *answering,
                                             const struct gremlin_fault *fault,
                                             struct gremlin_value fail_message)
{
    struct gremlin_value map = attributes_make(answering, fault->status);
    struct gremlin_value exceptions = gremlin_list_new(answering->heap, 1);

    if (fault->substatus)
        put(answering, map, "x-ms-substatus-code", gremlin_int((int32_t)fault->substatus));
    if (fault->status == 429)
        put(answering, map, "x-ms-retry-after-ms",
            gremlin_string(answering->heap,
                           time_span(answering->arena, MAX(answering->wait_ms, (int64_t)1))));
    put(answering, map, "x-ms-source", gremlin_string(answering->heap, SLICE("orrery")));
    gremlin_list_add_take(exceptions,
                          gremlin_string(answering->heap, slice_of_text(fault->exception)));
    put(answering, map, "exceptions", exceptions);
    if (!gremlin_is_null(fail_message))
        put(answering, map, "failStepMessage", gremlin_value_ref(fail_message));
    return map;
}

void gremlin_fault_write(struct gremlin_answering *answering, const struct error *cause,
                         uint16_t code, struct gremlin_value fail_message, struct buf *out)
{
    const struct gremlin_fault fault = gremlin_fault_of(cause, code);
    CLEANUP(gremlin_value_unref)
    struct gremlin_value attributes = fault_attributes(answering, &fault, fail_message);
    struct gremlin_answer answer = {
        .id = answering->id,
        .code = fault.code,
        .message = gremlin_fault_text(answering, &fault, cause),
        .attributes = attributes,
    };
    struct error err;

    buf_clear(out);
    if (gremlin_format_write(answering->format, &answer, answering->heap, out, &err))
        return;
    buf_clear(out);
    answer.message = SLICE("");
    answer.attributes = GREMLIN_NOTHING;
    if (!gremlin_format_write(answering->format, &answer, answering->heap, out, &err))
        buf_clear(out);
}
