/* Trace: spans of requests for OpenTelemetry, sent as OTLP over HTTP with JSON.
 *
 * A request whose client sent a traceparent is traced if that says so; of the others a sample is.
 * Spans wait in bounded memory for a thread that sends them; what comes while that is full, or what
 * the collector does not take, is lost and counted. No request ever waits. */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "observe/observed.h"

struct trace; /* opaque, owned; from any thread */

struct trace_options {
    const char *endpoint; /* where spans are posted: "http://127.0.0.1:4318/v1/traces"; borrowed */
    uint32_t per_million; /* of requests without a traceparent */
    size_t waiting_bytes_max;
    int64_t pause_ms;   /* between two posts */
    int64_t timeout_ms; /* of one */
    struct log *log;    /* borrowed: where it is said, once, that spans are lost; NULL: nowhere */
};

/* ERROR_CONFIGURATION: the endpoint is no http: or https: URL. */
NODISCARD bool trace_new(const struct trace_options *options, struct trace **ret_trace,
                         struct error *err);
/* Sends what waits, once. NULL is fine. */
void trace_free(struct trace *trace);
CLEANUP_FN(struct trace *, trace_free)

void trace_tell(struct trace *trace, const struct observed_request *request);

/* What a traceparent header says (W3C, version 00). */
struct trace_parent {
    char trace[33], span[17]; /* hex, small letters */
    bool sampled;
};

/* False: it is none. */
NODISCARD bool trace_parent_read(struct slice header, struct trace_parent *ret_parent);

struct trace_figures {
    uint64_t sent, lost;
};
void trace_figures(struct trace *trace, struct trace_figures *ret_figures);
