#include "front/gremlin/command/http.h"

#include "base/memory.h"
#include "document/json.h"
#include "front/gremlin/command/evaluate.h"
#include "front/owner.h"

#include <openssl/crypto.h>

enum { LINES_USUAL = 256, FRAME_REST = 64 * 1024 };

struct http_call {
    union {
        struct front_http_call over_http;
        struct front_http_call;
    };
    struct gremlin *gremlin;
    struct gremlin_heap *heap;
    struct gremlin_asked asked;
    struct gremlin_answering answering;
    struct gremlin_evaluation evaluation;
    struct gremlin_identity identity;
    char id[RANDOM_UUID_SIZE];
    uint16_t code; /* of the frame that an error would have; 0: by the error */
};

static struct http_call *http_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct http_call, front);
}

/* --- Errors ------------------------------------------------------------------------------------
 */

static void error_body(struct slice message, const struct gremlin_fault *fault,
                       const char *request_id, struct buf *out)
{
    BUF_APPEND(out, "{\"message\":");
    document_json_write_string(message, out);
    if (fault)
        buf_printf(out, ",\"code\":%u,\"x-ms-status-code\":%u,\"Exception-Class\":\"%s\"",
                   fault->code, fault->status, fault->exception);
    if (request_id)
        buf_printf(out, ",\"requestId\":\"%s\"", request_id);
    BUF_APPEND(out, "}");
}

void gremlin_http_refuse(struct net_http_request *request, uint16_t status, struct slice message,
                         struct slice lines)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, FRAME_REST);
    error_body(message, NULL, NULL, &body);
    net_http_respond(
        request, &(struct net_http_response){
                     .status = status,
                     .lines = arena_printf(request->arena, "Content-Type: application/json\r\n%.*s",
                                           SLICE_ARG(lines)),
                     .body = buf_slice(&body),
                     .body_kind = NET_HTTP_BODY_COPIED,
                 });
}

/* The status that HTTP has for it. */
static uint16_t status_of(const struct gremlin_fault *fault)
{
    if (fault->status >= 400 && fault->status < 600)
        return (uint16_t)fault->status;
    switch (fault->code) {
    case 401:
    case 403:
        return fault->code;
    case 498:
    case 499:
    case 597:
        return 400;
    case 598:
        return 504;
    default:
        return 500;
    }
}

/* --- Reading -----------------------------------------------------------------------------------
 */

static bool formats_choose(struct http_call *call, const struct gremlin_format **ret_read,
                           struct error *err)
{
    const struct gremlin_format_options options = gremlin_formats(call->gremlin);
    struct slice type = net_http_header(call->http, SLICE("content-type"));
    struct slice accept = net_http_header(call->http, SLICE("accept"));

    *ret_read = call->answering.format = gremlin_format_json(&options);
    if (slice_starts_with(type, SLICE("application/vnd.g"))) {
        *ret_read = gremlin_format_of_mime(type, &options, err);
        if (!*ret_read)
            return false;
    }
    if (slice_starts_with(accept, SLICE("application/vnd.g")))
        call->answering.format = gremlin_format_of_mime(accept, &options, err);
    return call->answering.format != NULL;
}

static bool body_read(struct http_call *call, struct error *err)
{
    const struct gremlin_format *format;
    struct gremlin_value args;

    call->code = 498;
    if (!formats_choose(call, &format, err) ||
        !gremlin_format_read_value(format, call->http->body, call->heap, &args, err))
        return false;
    call->code = 499;
    if (args.type != GREMLIN_MAP)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the body must be an object with the script as \"gremlin\"");
    call->asked = (struct gremlin_asked){.op = GREMLIN_OP_EVAL};
    if (!gremlin_arguments_read(call->gremlin, args, &call->asked, err))
        return false;
    call->code = 0;
    return true;
}

/* --- Running -----------------------------------------------------------------------------------
 */

static bool call_run(struct front_call *front, struct error *err)
{
    struct http_call *call = http_of(front);

    if (call->evaluation.call)
        gremlin_evaluation_done(&call->evaluation);
    call->heap = gremlin_heap_new(&(struct gremlin_heap_options){
        .limit = call->gremlin->options.memory_bytes_max, .meter = net_owner_memory(call->owner)});
    call->evaluation = (struct gremlin_evaluation){
        .call = &call->front,
        .gremlin = call->gremlin,
        .identity = &call->identity,
        .asked = &call->asked,
        .heap = call->heap,
        .answering = &call->answering,
    };
    call->answering.heap = call->heap;
    call->answering.results = 0;
    return body_read(call, err) && gremlin_evaluate(&call->evaluation, err);
}

static uint64_t call_part(const struct front_call *front)
{
    const struct http_call *call = http_of(front);

    return front_owner_part(slice_of_text(call->identity.database),
                            slice_of_text(call->identity.graph));
}

static void call_end(struct http_call *call)
{
    if (call->evaluation.call)
        gremlin_evaluation_done(&call->evaluation);
    OPENSSL_cleanse(&call->identity, sizeof call->identity);
    front_http_send(&call->over_http);
}

static void call_refuse(struct front_call *front, const struct error *err)
{
    struct http_call *call = http_of(front);
    struct gremlin_fault fault =
        gremlin_fault_of(err, call->code ? call->code : call->evaluation.code);

    gremlin_tally(&call->gremlin->failed, 1);
    buf_clear(&call->body);
    call->status = status_of(&fault);
    error_body(gremlin_fault_text(&call->answering, &fault, err), &fault, call->id, &call->body);
    front_http_header(&call->over_http, SLICE("Content-Type"), SLICE("application/json"));
    if (call->status == 401)
        front_http_header(&call->over_http, SLICE("WWW-Authenticate"),
                          SLICE("Basic realm=\"orrery\""));
    if (fault.status == 429)
        front_http_header_int(&call->over_http, SLICE("x-ms-retry-after-ms"),
                              call->answering.wait_ms);
    call_end(call);
}

static void call_answer(struct front_call *front)
{
    struct http_call *call = http_of(front);
    struct gremlin_batch *batch = &call->evaluation.batch;
    struct error err;

    call->status = 200;
    call->body.max = call->gremlin->options.results_bytes_max + FRAME_REST;
    gremlin_tally(&call->gremlin->results, batch->count);
    if (!gremlin_frame_write(&call->answering, batch->count ? 200 : 204, batch, &call->body,
                             &err)) {
        call->code = 599;
        call_refuse(front, &err);
        return;
    }
    front_http_header(&call->over_http, SLICE("Content-Type"),
                      gremlin_format_mime(call->answering.format));
    call_end(call);
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct http_call *call = http_of(front);

    front_http_describe(&call->over_http, request);
    request->id = call->answering.id;
    gremlin_target_describe(&call->identity, &call->asked, request);
    request->charge_cru = call->answering.charge_cru;
}

const struct front_call_kind gremlin_http_kind = {.run = call_run,
                                                  .part = call_part,
                                                  .answer = call_answer,
                                                  .refuse = call_refuse,
                                                  .describe = call_describe};

/* --- Who asks ----------------------------------------------------------------------------------
 */

static bool identify(struct front_http_call *over_http, struct gremlin_identity *ret_identity,
                     struct error *err)
{
    struct http_call *call = CONTAINER_OF(over_http, struct http_call, over_http);
    struct slice header = net_http_header(call->http, SLICE("authorization"));
    struct slice host = net_http_header(call->http, SLICE("host")), account;
    struct gremlin_credentials credentials;
    char name[GREMLIN_ACCOUNT_SIZE];

    account = front_account_of_host(host, call->door->host_suffix, call->arena);
    if (!account.data)
        account = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    snprintf(name, sizeof name, "%.*s", SLICE_ARG(account));
    if (header.data) {
        if (!gremlin_credentials_basic(header, call->arena, &credentials, err) ||
            !gremlin_identity_prove(call->gremlin, name, &credentials, call->arena, ret_identity,
                                    err))
            return false;
    } else if (!call->door->dev || !net_address_is_loopback(&call->http->peer)) {
        return error_set(err, ERROR_UNAUTHORIZED,
                         "Unauthorized: Invalid credentials provided: the user is "
                         "/dbs/DATABASE/colls/GRAPH, the password a key of the account");
    } else {
        ret_identity->kind = GREMLIN_LOCAL;
        snprintf(ret_identity->account, sizeof ret_identity->account, "%s", name);
    }
    return front_http_account_find(over_http, slice_of_text(ret_identity->account), SLICE_NONE,
                                   err);
}

void gremlin_http_run(struct gremlin *gremlin, struct net_http_request *request,
                      bool (*who)(struct front_http_call *call,
                                  struct gremlin_identity *ret_identity, struct error *err))
{
    struct http_call *call = ARENA_NEW(request->arena, struct http_call);
    struct error err;

    front_http_begin(&gremlin->http, &call->over_http, request, LINES_USUAL);
    call->gremlin = gremlin;
    call->answering = (struct gremlin_answering){
        .services = call->services, .arena = call->arena, .started_ns = request->started_ns};
    front_http_id_make(&gremlin->http, call->id);
    front_http_id_make(&gremlin->http, call->answering.activity_id);
    call->answering.id = slice_of(call->id, sizeof call->id - 1);
    gremlin_tally(&gremlin->scripts, 1);
    if (!who(&call->over_http, &call->identity, &err) || !front_http_bill(&call->over_http, &err))
        front_call_finish(&call->front, false, &err);
    else
        front_call_run(&call->front, true);
}

void gremlin_http_post(struct gremlin *gremlin, struct net_http_request *request)
{
    gremlin_http_run(gremlin, request, identify);
}
