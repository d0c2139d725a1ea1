/* What comes to the port: an upgrade to WebSocket, a script by POST, or nothing that is served.
 *
 * Any page may open a WebSocket to this machine, and a browser asks nobody before it does. What it
 * sends is the page's origin: one that no setting names is refused, and with --dev, where no secret
 * is asked for, so is a host that somebody else can lead here. */
#include "front/gremlin/command/gremlin.h"

#include "base/memory.h"
#include "front/gremlin/command/client.h"
#include "front/gremlin/command/http.h"
#include "front/gremlin/wire/handshake.h"

struct gremlin *gremlin_new(const struct gremlin_options *options)
{
    struct gremlin *gremlin = MEMORY_NEW(struct gremlin);
    struct gremlin_wire_handler handler = gremlin_client_handler;

    gremlin->options = *options;
    front_http_init(&gremlin->http, &gremlin->options.services, &gremlin->options.door,
                    &gremlin_http_kind);
    handler.context = gremlin;
    gremlin->wire = gremlin_wire_new(&options->wire, &handler);
    return gremlin;
}

void gremlin_wait(struct gremlin *gremlin)
{
    front_calls_wait(&gremlin->http.under_way);
    front_calls_wait(&gremlin->under_way);
}

void gremlin_free(struct gremlin *gremlin)
{
    if (!gremlin)
        return;
    gremlin_wire_free(gremlin->wire);
    memory_free(gremlin);
}

void gremlin_metrics(const struct gremlin *gremlin, struct gremlin_metrics *ret_metrics)
{
    *ret_metrics = (struct gremlin_metrics){
        .scripts = atomic_load_explicit(&gremlin->scripts, memory_order_relaxed),
        .bytecodes = atomic_load_explicit(&gremlin->bytecodes, memory_order_relaxed),
        .authentications = atomic_load_explicit(&gremlin->authentications, memory_order_relaxed),
        .failed = atomic_load_explicit(&gremlin->failed, memory_order_relaxed),
        .sessions = atomic_load_explicit(&gremlin->sessions, memory_order_relaxed),
        .results = atomic_load_explicit(&gremlin->results, memory_order_relaxed),
    };
    gremlin_wire_metrics(gremlin->wire, &ret_metrics->wire);
}

/* --- Requests ----------------------------------------------------------------------------------
 */

static bool page_check(const struct gremlin *gremlin, const struct net_http_request *request,
                       struct error *err)
{
    struct slice origin = net_http_header(request, SLICE("origin"));

    if (gremlin->options.door.dev &&
        !front_host_check(gremlin->options.services.hosts, request, err))
        return false;
    return !front_request_is_foreign(request) ||
           (origin.len && front_origin_listed(slice_of_text(gremlin->options.origins), origin)) ||
           error_set(err, ERROR_ORIGIN_REFUSED,
                     "a browser sends this for a page of another origin: name the origin in the "
                     "setting gremlin.origins if it may");
}

static void upgrade(struct gremlin *gremlin, struct net_http_request *request)
{
    struct slice host = net_http_header(request, SLICE("host")), lines, account;
    bool version;
    struct error err;

    if (!gremlin_handshake_lines(request, &lines, &version, &err)) {
        gremlin_http_refuse(request, version ? 426 : 400, slice_of_text(err.message),
                            version ? SLICE("Sec-WebSocket-Version: 13\r\n") : SLICE(""));
        return;
    }
    account = front_account_of_host(host, gremlin->options.door.host_suffix, request->arena);
    if (!account.data)
        account = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    if (!gremlin_wire_upgrade(gremlin->wire, request, lines, account))
        gremlin_http_refuse(request, 400, SLICE("WebSocket begins on a connection of its own"),
                            SLICE(""));
}

/* What a page of a named origin needs to send a POST and read its answer. */
static void preflight(struct net_http_request *request)
{
    net_http_respond(
        request, &(struct net_http_response){
                     .status = 204,
                     .lines = arena_printf(
                         request->arena,
                         "Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n"
                         "Access-Control-Allow-Methods: POST\r\n"
                         "Access-Control-Allow-Headers: authorization, content-type, accept\r\n",
                         SLICE_ARG(net_http_header(request, SLICE("origin"))))});
}

void gremlin_handle(struct net_http_request *request, void *context)
{
    struct gremlin *gremlin = context;
    struct error err;

    if (!page_check(gremlin, request, &err))
        gremlin_http_refuse(request, err.status, slice_of_text(err.message), SLICE(""));
    else if (gremlin_handshake_is_asked(request))
        upgrade(gremlin, request);
    else if (slice_equal(request->method, SLICE("POST")))
        gremlin_http_post(gremlin, request);
    else if (slice_equal(request->method, SLICE("OPTIONS")) &&
             net_http_header(request, SLICE("origin")).len)
        preflight(request);
    else
        gremlin_http_refuse(request, 405,
                            SLICE("Gremlin is spoken here by WebSocket (ws://, wss://), and "
                                  "scripts are taken by POST as {\"gremlin\": \"g.V().count()\"}"),
                            SLICE("Allow: POST\r\n"));
}

struct net_http_response gremlin_refusal(struct arena *arena, uint16_t status, const char *reason)
{
    return (struct net_http_response){
        .status = status,
        .lines = SLICE("Content-Type: application/json\r\n"),
        .body = arena_printf(arena, "{\"message\":\"%s\"}", reason),
        .body_kind = NET_HTTP_BODY_IN_ARENA,
    };
}
