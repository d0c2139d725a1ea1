/* Figures of nodes may take a while (a PostgreSQL server that is slow to answer), so both probes
 * are worked out by threads of their own; everything else is answered on the spot. */
#include "server/probes.h"

#include "base/random.h"
#include "front/text.h"
#include "server/ready.h"

enum { BODY_MAX = 4096, QUOTED_MAX = 512 };

static const char type_json[] = "application/json";
static const char type_metrics[] = "text/plain; version=0.0.4";
static const char type_pem[] = "application/pem-certificate-chain";

/* Quotes for JSON. Bytes that are not plain ASCII become '?': what is quoted here comes from a
 * request line and need not be text at all. */
static void quoted_append(struct buf *out, struct slice s)
{
    buf_append_byte(out, '"');
    for (size_t i = 0; i < MIN(s.len, (size_t)QUOTED_MAX); i++) {
        uint8_t c = s.data[i];

        if (c == '"' || c == '\\')
            buf_append_byte(out, '\\');
        buf_append_byte(out, c < 0x20 || c >= 0x7F ? '?' : c);
    }
    buf_append_byte(out, '"');
}

/* The name of an error as the REST API spells it: "Not Found" without the blank. */
static void error_body(struct buf *out, const struct error *err)
{
    BUF_APPEND(out, "{\"code\":\"");
    for (const char *c = net_http_reason(err->status); *c; c++)
        if (*c != ' ')
            buf_append_byte(out, (uint8_t)*c);
    BUF_APPEND(out, "\",\"message\":");
    quoted_append(out, slice_of_text(err->message));
    BUF_APPEND(out, "}\n");
}

/* The body goes to the connection, which frees it once sent. */
static void respond(struct net_http_request *request, uint16_t status, const char *type,
                    const char *allow, struct buf *body)
{
    char activity[RANDOM_UUID_SIZE];
    const struct net_http_header headers[] = {
        {SLICE("Content-Type"), slice_of_text(type)},
        {SLICE("x-ms-activity-id"), slice_of(activity, RANDOM_UUID_SIZE - 1)},
        {SLICE("Allow"), slice_of_text(allow ? allow : "")},
    };
    struct net_http_response response = {
        .status = status,
        .headers = headers,
        .header_count = allow ? 3 : 2,
        .body_kind = NET_HTTP_BODY_OWNED,
    };

    random_uuid(activity);
    response.body.data = buf_take(body, &response.body.len);
    net_http_respond(request, &response);
}

static void respond_error(struct net_http_request *request, const struct error *err,
                          const char *allow)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BODY_MAX);
    error_body(&body, err);
    respond(request, err->status, type_json, allow, &body);
}

static uint16_t ready_answer(void *context, struct buf *body)
{
    const struct probes *probes = context;

    /* a balancer looks for 503 */
    return ready_print(probes->sources.catalogue, body) ? 200 : 503;
}

static uint16_t metrics_answer(void *context, struct buf *body)
{
    const struct probes *probes = context;

    metrics_print(&probes->sources, body);
    return 200;
}

void probes_start(struct probes *probes)
{
    probes->ready = prober_new(&(struct prober_options){.name = "ready",
                                                        .type = type_json,
                                                        .body_max = METRICS_BYTES_MAX,
                                                        .print = ready_answer,
                                                        .context = probes});
    probes->metrics = prober_new(&(struct prober_options){.name = "metrics",
                                                          .type = type_metrics,
                                                          .body_max = METRICS_BYTES_MAX,
                                                          .print = metrics_answer,
                                                          .context = probes});
}

void probes_stop(struct probes *probes)
{
    prober_free(TAKE(probes->ready));
    prober_free(TAKE(probes->metrics));
}

static void respond_authority(struct net_http_request *request, struct certificate *certificate)
{
    CLEANUP(buf_done) struct buf body;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (certificate_authority(certificate, &body)) {
        respond(request, 200, type_pem, NULL, &body);
        return;
    }
    error_set(&err, ERROR_NOT_FOUND,
              "the certificate is the operator's (tls.certificate): ask them who signed it");
    respond_error(request, &err, NULL);
}

void probes_handle(struct net_http_request *request, void *context)
{
    const struct probes *probes = context;
    bool reads =
        slice_equal(request->method, SLICE("GET")) || slice_equal(request->method, SLICE("HEAD"));
    struct slice path = front_slashes_drop(request->path);
    bool ready = slice_equal(path, SLICE("/ready"));
    bool metrics = slice_equal(path, SLICE("/metrics"));
    bool authority = slice_equal(path, SLICE("/_orrery/ca.pem"));
    struct error err;

    if ((ready || metrics || authority) && !front_host_check(probes->hosts, request, &err)) {
        respond_error(request, &err, NULL);
    } else if ((ready || metrics || authority) && !reads) {
        error_set(&err, ERROR_METHOD_NOT_ALLOWED, "%.*s can only be read",
                  SLICE_ARG(request->path));
        respond_error(request, &err, "GET, HEAD");
    } else if (ready || metrics) {
        prober_ask(ready ? probes->ready : probes->metrics, request);
    } else if (authority) {
        respond_authority(request, probes->certificate);
    } else if (portal_takes(request)) {
        portal_handle(probes->portal, request);
    } else if (gremlin_signed_takes(request)) {
        gremlin_signed_handle(probes->gremlin, request);
    } else if (probes->mongo && mongo_signed_takes(request)) {
        mongo_signed_handle(probes->mongo, request);
    } else if (admin_takes(request)) {
        admin_handle(request, probes->admin);
    } else {
        rest_handle(request, probes->rest);
    }
}
