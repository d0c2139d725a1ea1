#include "front/kit/http.h"

#include "document/json.h"
#include "front/front.h"
#include "front/owner.h"

enum {
    BODY_COPIES = 3, /* what a body becomes while it is worked on: values, and copies of them */
    LOOP_BODY_MAX = 64 * 1024,
};

/* --- The transport --------------------------------------------------------------------------- */

static struct front_http_call *http_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct front_http_call, front);
}

static void keep(struct front_call *call)
{
    net_http_defer(http_of(call)->http);
}

static void restart(struct front_call *call)
{
    buf_clear(&http_of(call)->lines);
    buf_clear(&http_of(call)->body);
}

static const atomic_bool *cancel_flag(const struct front_call *call)
{
    return net_http_cancel_flag(http_of(call)->http);
}

static const struct front_transport transport = {
    .keep = keep, .restart = restart, .cancel_flag = cancel_flag};

/* --- Beginning ------------------------------------------------------------------------------- */

void front_http_init(struct front_http *front, const struct front_services *services,
                     const struct front_door *door, const struct front_call_kind *kind)
{
    front->services = services;
    front->door = door;
    front->kind = kind;
    random_secret(&front->id_secret, sizeof front->id_secret);
}

void front_http_begin(struct front_http *front, struct front_http_call *call,
                      struct net_http_request *request, size_t lines_usual)
{
    call->transport = &transport;
    call->kind = front->kind;
    call->services = front->services;
    call->under_way = &front->under_way;
    call->loop = request->loop;
    call->arena = request->arena;
    call->door = front->door;
    call->http = request;
    call->work_bytes = BODY_COPIES * request->body.len;
    buf_init(&call->lines, FRONT_HTTP_LINES_MAX);
    buf_init(&call->body, FRONT_HTTP_BODY_MAX);
    (void)buf_reserve(&call->lines, lines_usual);
}

/* Of a secret the front began with and of the number of the request. */
void front_http_id_make(struct front_http *front, char ret_text[RANDOM_UUID_SIZE])
{
    uint64_t number = atomic_fetch_add_explicit(&front->ids, 1, memory_order_relaxed);
    struct random sequence;
    uint64_t words[2];

    random_seed(&sequence, front->id_secret + number);
    words[0] = random_next(&sequence);
    words[1] = random_next(&sequence);
    random_uuid_of((const uint8_t *)words, ret_text);
}

bool front_http_host_check(const struct front_http_call *call, struct error *err)
{
    return (!call->door->dev && !slice_equal(call->http->method, SLICE("OPTIONS"))) ||
           front_host_check(call->services->hosts, call->http, err);
}

bool front_http_account_find(struct front_http_call *call, struct slice name, struct slice host,
                             struct error *err)
{
    if (!name.data)
        name = front_account_of_host(host, call->door->host_suffix, call->arena);
    if (!name.data)
        name = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    return front_account_find(call->services, name, call->door->accounts_by_use, call->arena,
                              &call->account, err);
}

bool front_http_bill(struct front_http_call *call, struct error *err)
{
    return front_account_check(call->account.missing, call->account.id, err) &&
           front_owner_bill(call->services, call->account.account, call->account.id, call->http,
                            &call->owner, err);
}

bool front_http_grown(struct front_http_call *call, struct error *err)
{
    size_t used = arena_used(call->arena) + call->body.capacity;

    return used <= call->held || front_call_hold(&call->front, used - call->held, err);
}

bool front_http_method_refuse(const struct front_http_call *call, struct error *err)
{
    return error_set(err, ERROR_METHOD_NOT_ALLOWED, "the resource does not take %.*s here",
                     (int)MIN(call->http->method.len, (size_t)16),
                     (const char *)call->http->method.data);
}

bool front_http_is_long(struct front_http_call *call)
{
    if (call->may_block)
        return false;
    call->cold = call->http->body.len > LOOP_BODY_MAX;
    if (!call->cold)
        front_call_keep(&call->front);
    return call->cold;
}

void front_http_describe(const struct front_http_call *call, struct observed_request *request)
{
    const struct net_http_request *http = call->http;

    request->what = http->path;
    request->peer = &http->peer;
    request->started_ns = http->started_ns;
    request->bytes_in = http->body.len;
    request->bytes_out = call->body.len;
    if (call->status)
        request->status = call->status;
    if (observer_trace(call->services->observer))
        request->trace = net_http_header(http, SLICE("traceparent"));
}

/* --- Bodies ---------------------------------------------------------------------------------- */

bool front_http_body(struct front_http_call *call, struct slice *ret_document, struct error *err)
{
    const struct document_limits limits = {.refuse_duplicates = true};
    CLEANUP(buf_done) struct buf document;

    buf_init(&document, BUF_DEFAULT_MAX);
    if (call->http->body.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the request has no body");
    if (!document_json_read(call->http->body, &limits, &document, err))
        return false;
    *ret_document = arena_copy(call->arena, buf_slice(&document));
    return true;
}

bool front_http_json(struct front_http_call *call, struct slice text, uint32_t extra_depth,
                     struct document_value *ret_value, struct error *err)
{
    const struct document_limits limits = {.refuse_duplicates = true,
                                           .depth_max = DOCUMENT_DEPTH_DEFAULT + extra_depth};
    CLEANUP(buf_done) struct buf wrapped;
    struct document_value value;

    buf_init(&wrapped, BUF_DEFAULT_MAX);
    if (!document_json_read_value(text, &limits, &wrapped, &value, err))
        return false;
    (void)document_find(arena_copy(call->arena, buf_slice(&wrapped)), SLICE(""), ret_value);
    return true;
}

bool front_http_body_value(struct front_http_call *call, uint32_t extra_depth,
                           struct document_value *ret_value, struct error *err)
{
    if (call->http->body.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the request has no body");
    return front_http_json(call, call->http->body, extra_depth, ret_value, err);
}

struct slice front_http_etag_bare(struct slice etag)
{
    if (etag.len >= 2 && etag.data[0] == '"' && etag.data[etag.len - 1] == '"')
        return slice_of(etag.data + 1, etag.len - 2);
    return etag;
}

/* --- The answer ------------------------------------------------------------------------------ */

void front_http_header(struct front_http_call *call, struct slice name, struct slice value)
{
    size_t at;

    buf_append_slice(&call->lines, name);
    BUF_APPEND(&call->lines, ": ");
    at = call->lines.len;
    buf_append_slice(&call->lines, value);
    for (; at < call->lines.len; at++)
        if (call->lines.data[at] < 0x20 || call->lines.data[at] == 0x7F)
            call->lines.data[at] = ' ';
    BUF_APPEND(&call->lines, "\r\n");
}

void front_http_header_int(struct front_http_call *call, struct slice name, int64_t value)
{
    buf_append_slice(&call->lines, name);
    BUF_APPEND(&call->lines, ": ");
    buf_append_int64(&call->lines, value);
    BUF_APPEND(&call->lines, "\r\n");
}

void front_http_send(struct front_http_call *call)
{
    struct net_http_response response = {.status = call->status, .body_kind = NET_HTTP_BODY_OWNED};
    /* answering ends the request, and with it the arena the call is in */
    CLEANUP(buf_done) struct buf lines = call->lines;
    CLEANUP(buf_done) struct buf body = call->body;

    response.lines = buf_slice(&lines);
    if (body.len)
        response.body.data = buf_take(&body, &response.body.len);
    else
        response.body_kind = NET_HTTP_BODY_COPIED;
    net_http_respond(call->http, &response);
}
