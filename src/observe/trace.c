/* Spans are written as JSON by the thread whose request it was, into one buffer; the sending thread
 * puts it between the head and the foot of a message and posts it with libcurl, one connection
 * kept. OTLP's JSON was chosen over protobuf, which would be one more library for bytes that are
 * few: a sample is sent, not everything. */
#include "observe/trace.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "document/json.h"
#include "throughput/cost.h"

#include <curl/curl.h>
#include <stdatomic.h>

enum { SPAN_BYTES_MAX = 8192 };

struct trace {
    char endpoint[2048];
    uint32_t per_million;
    int64_t pause_ms, timeout_ms;
    struct log *log;
    struct thread thread;
    uint64_t secret;
    atomic_uint_fast64_t numbers, sent, lost;

    struct mutex lock; /* of what follows */
    struct condition filled;
    struct buf waiting; /* spans, with a comma before each */
    uint64_t waiting_count;
    bool stopping;

    /* the thread's alone */
    CURL *curl;
    struct curl_slist *headers;
    bool failing;
};

/* --- Which requests -------------------------------------------------------------------------- */

static bool hex_copy(struct slice text, char *ret_text)
{
    bool zero = true;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        zero = zero && c == '0';
        ret_text[i] = (char)c;
    }
    ret_text[text.len] = '\0';
    return !zero;
}

bool trace_parent_read(struct slice header, struct trace_parent *ret_parent)
{
    uint8_t flag;

    if (header.len != 55 || memcmp(header.data, "00-", 3) != 0 || header.data[35] != '-' ||
        header.data[52] != '-' || header.data[53] != '0')
        return false;
    flag = header.data[54];
    if (flag < '0' || flag > '3' || !hex_copy(slice_of(header.data + 3, 32), ret_parent->trace) ||
        !hex_copy(slice_of(header.data + 36, 16), ret_parent->span))
        return false;
    ret_parent->sampled = (flag - '0') & 1;
    return true;
}

/* Numbers in an order that nobody can foresee, and that needs no lock. */
static uint64_t number_next(struct trace *trace)
{
    struct random sequence;

    random_seed(&sequence, trace->secret +
                               atomic_fetch_add_explicit(&trace->numbers, 1, memory_order_relaxed));
    return random_next(&sequence);
}

static bool is_sampled(struct trace *trace)
{
    return trace->per_million && number_next(trace) % 1000000 < trace->per_million;
}

/* --- A span ---------------------------------------------------------------------------------- */

static void attribute_text(struct buf *out, const char *name, struct slice text)
{
    if (!text.len)
        return;
    buf_printf(out, ",{\"key\":\"%s\",\"value\":{\"stringValue\":", name);
    document_json_write_string(text, out);
    BUF_APPEND(out, "}}");
}

static void attributes_append(const struct observed_request *request, struct buf *out)
{
    char charge[COST_TEXT_SIZE], host[NET_ADDRESS_TEXT_SIZE], plan[OBSERVED_PLAN_SIZE];

    cost_text(request->charge_cru, charge);
    buf_printf(out,
               "\"attributes\":[{\"key\":\"http.response.status_code\",\"value\":{\"intValue\":"
               "\"%u\"}},{\"key\":\"orrery.request_charge\",\"value\":{\"doubleValue\":%s}}",
               request->status, charge);
    attribute_text(out, "orrery.api", slice_of_text(request->front));
    attribute_text(out, "db.system.name", SLICE("orrery"));
    attribute_text(out, "db.operation.name",
                   slice_of_text(observed_operation_name(request->observed.operation)));
    attribute_text(out, "db.namespace", request->database);
    attribute_text(out, "db.collection.name", request->container);
    attribute_text(out, "orrery.account", request->account);
    attribute_text(out, "orrery.request_id", request->id);
    attribute_text(out, "orrery.plan", observed_plan(&request->observed.reads, plan));
    if (request->error)
        attribute_text(out, "error.type", slice_of_text(request->error));
    if (request->observed.partition)
        buf_printf(out, ",{\"key\":\"orrery.partition\",\"value\":{\"stringValue\":\"%u\"}}",
                   request->observed.partition);
    if (request->peer && request->peer->len) {
        net_address_host(request->peer, host);
        attribute_text(out, "client.address", slice_of_text(host));
    }
    BUF_APPEND(out, "]");
}

static void span_append(struct trace *trace, const struct observed_request *request,
                        const struct trace_parent *parent, struct buf *out)
{
    uint64_t ended_ns = (uint64_t)request->ended_ms * 1000000;

    BUF_APPEND(out, ",{\"traceId\":\"");
    if (parent)
        buf_printf(out, "%s\",\"parentSpanId\":\"%s", parent->trace, parent->span);
    else
        buf_printf(out, "%016llx%016llx", (unsigned long long)number_next(trace) | 1,
                   (unsigned long long)number_next(trace));
    buf_printf(out, "\",\"spanId\":\"%016llx\",\"kind\":2,\"name\":",
               (unsigned long long)number_next(trace) | 1);
    document_json_write_string(
        slice_of_text(request->name ? request->name
                                    : observed_operation_name(request->observed.operation)),
        out);
    buf_printf(out, ",\"startTimeUnixNano\":\"%llu\",\"endTimeUnixNano\":\"%llu\",",
               (unsigned long long)(ended_ns - request->time_us * 1000),
               (unsigned long long)ended_ns);
    attributes_append(request, out);
    buf_printf(out, ",\"status\":{\"code\":%d}}", request->status >= 500 ? 2 : 0);
}

/* parent NULL: it has none. */
static void span_tell(struct trace *trace, const struct observed_request *request,
                      const struct trace_parent *parent)
{
    CLEANUP(buf_done) struct buf span;
    bool taken = false;

    buf_init(&span, SPAN_BYTES_MAX);
    span_append(trace, request, parent, &span);
    WITH_LOCK (&trace->lock) {
        taken = !buf_overflowed(&span) && buf_reserve(&trace->waiting, span.len);
        if (taken) {
            buf_append_slice(&trace->waiting, buf_slice(&span));
            trace->waiting_count++;
        }
    }
    if (!taken)
        atomic_fetch_add(&trace->lost, 1);
}

void trace_tell(struct trace *trace, const struct observed_request *request)
{
    struct trace_parent parent;
    bool has_parent = request->trace.len && trace_parent_read(request->trace, &parent);

    if (has_parent ? parent.sampled : is_sampled(trace))
        span_tell(trace, request, has_parent ? &parent : NULL);
}

/* --- Sending --------------------------------------------------------------------------------- */

static size_t answer_drop(char *data UNUSED, size_t size, size_t count, void *context UNUSED)
{
    return size * count;
}

static bool post(struct trace *trace, struct slice spans, char *because, size_t size)
{
    CLEANUP(buf_done) struct buf message;
    long status = 0;
    CURLcode code;

    buf_init(&message, spans.len + 1024);
    BUF_APPEND(&message, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":"
                         "\"service.name\",\"value\":{\"stringValue\":\"orrery\"}},{\"key\":"
                         "\"service.version\",\"value\":{\"stringValue\":\"" ORRERY_VERSION
                         "\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"orrery\"},\"spans\":[");
    buf_append_slice(&message, slice_skip(spans, 1)); /* without the first comma */
    BUF_APPEND(&message, "]}]}]}");
    curl_easy_setopt(trace->curl, CURLOPT_POSTFIELDS, message.data);
    curl_easy_setopt(trace->curl, CURLOPT_POSTFIELDSIZE, (long)message.len);
    code = curl_easy_perform(trace->curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(trace->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        snprintf(because, size, "%s", curl_easy_strerror(code));
    else
        snprintf(because, size, "it answered %ld", status);
    return code == CURLE_OK && status >= 200 && status < 300;
}

static void batch_send(struct trace *trace, struct slice spans, uint64_t count)
{
    char because[256];

    if (post(trace, spans, because, sizeof because)) {
        atomic_fetch_add(&trace->sent, count);
        trace->failing = false;
        return;
    }
    atomic_fetch_add(&trace->lost, count);
    if (!trace->failing)
        log_event(trace->log, LOG_WARNING, "traces are lost: the collector does not take them",
                  LOG_TEXT("endpoint", trace->endpoint), LOG_TEXT("because", because));
    trace->failing = true;
}

static void run(void *context)
{
    struct trace *trace = context;
    bool stopping = false;

    while (!stopping) {
        int64_t until = clock_monotonic_ms() + trace->pause_ms;
        struct buf batch = {0};
        uint64_t count = 0;

        WITH_LOCK (&trace->lock) {
            while (!trace->stopping && condition_wait_until(&trace->filled, &trace->lock, until))
                ;
            stopping = trace->stopping;
            batch = trace->waiting;
            buf_init(&trace->waiting, batch.max);
            count = trace->waiting_count;
            trace->waiting_count = 0;
        }
        if (batch.len)
            batch_send(trace, buf_slice(&batch), count);
        buf_done(&batch);
    }
}

/* --- Life ------------------------------------------------------------------------------------ */

static bool curl_prepare(struct trace *trace, struct error *err)
{
    trace->curl = curl_easy_init();
    trace->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!trace->curl || !trace->headers)
        return error_set(err, ERROR_CONFIGURATION, "libcurl cannot be used");
    curl_easy_setopt(trace->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(trace->curl, CURLOPT_TIMEOUT_MS, (long)trace->timeout_ms);
    curl_easy_setopt(trace->curl, CURLOPT_HTTPHEADER, trace->headers);
    curl_easy_setopt(trace->curl, CURLOPT_WRITEFUNCTION, answer_drop);
    curl_easy_setopt(trace->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(trace->curl, CURLOPT_POST, 1L);
    if (curl_easy_setopt(trace->curl, CURLOPT_URL, trace->endpoint) != CURLE_OK)
        return error_set(err, ERROR_CONFIGURATION, "trace.endpoint is no URL");
    return true;
}

static void trace_drop(struct trace *trace)
{
    if (trace->curl)
        curl_easy_cleanup(trace->curl);
    curl_slist_free_all(trace->headers);
    buf_done(&trace->waiting);
    condition_done(&trace->filled);
    mutex_done(&trace->lock);
    memory_free(trace);
}

bool trace_new(const struct trace_options *options, struct trace **ret_trace, struct error *err)
{
    struct trace *trace;

    if (strlen(options->endpoint) >= sizeof trace->endpoint ||
        (strncmp(options->endpoint, "http://", 7) != 0 &&
         strncmp(options->endpoint, "https://", 8) != 0))
        return error_set(err, ERROR_CONFIGURATION,
                         "trace.endpoint: \"%s\" is no URL of the form http://HOST:PORT/v1/traces",
                         options->endpoint);
    trace = MEMORY_NEW(struct trace);
    snprintf(trace->endpoint, sizeof trace->endpoint, "%s", options->endpoint);
    trace->per_million = options->per_million;
    trace->pause_ms = options->pause_ms;
    trace->timeout_ms = options->timeout_ms;
    trace->log = options->log;
    random_secret(&trace->secret, sizeof trace->secret);
    mutex_init(&trace->lock);
    condition_init(&trace->filled);
    buf_init(&trace->waiting, options->waiting_bytes_max);
    if (!curl_prepare(trace, err)) {
        trace_drop(trace);
        return false;
    }
    thread_start(&trace->thread, "trace", run, trace);
    *ret_trace = trace;
    return true;
}

void trace_free(struct trace *trace)
{
    if (!trace)
        return;
    WITH_LOCK (&trace->lock) {
        trace->stopping = true;
        condition_signal(&trace->filled);
    }
    thread_join(&trace->thread);
    trace_drop(trace);
}

void trace_figures(struct trace *trace, struct trace_figures *ret_figures)
{
    *ret_figures = (struct trace_figures){.sent = atomic_load(&trace->sent),
                                          .lost = atomic_load(&trace->lost)};
}
