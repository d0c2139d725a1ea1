/* The way of a request: route, account, authorisation, operation, answer. Up to the operation
 * nothing blocks, so all of it runs on the loop; what may block goes on to a worker and the answer
 * comes back through the loop. */
#include "front/rest/rest.h"

#include "front/rest/answer.h"
#include "front/rest/call.h"

#include <time.h>

struct rest {
    struct rest_options options;
    atomic_uint under_way;
};

struct rest *rest_new(const struct rest_options *options)
{
    struct rest *rest = MEMORY_NEW(struct rest);

    rest->options = *options;
    return rest;
}

void rest_wait(struct rest *rest)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (atomic_load(&rest->under_way))
        nanosleep(&pause, NULL);
}

void rest_free(struct rest *rest)
{
    memory_free(rest);
}

/* --- Which operation ------------------------------------------------------------------------- */

static enum rest_verb post_verb(const struct rest_call *call)
{
    const struct rest_headers *headers = &call->headers;
    struct slice type = headers->values[REST_HEADER_CONTENT_TYPE];

    if (call->route.single)
        return REST_EXECUTE;
    if (rest_headers_true(headers, REST_HEADER_IS_QUERY_PLAN))
        return REST_PLAN;
    if (rest_headers_true(headers, REST_HEADER_IS_QUERY) ||
        rest_headers_true(headers, REST_HEADER_IS_QUERY_GO) ||
        (type.len >= 22 &&
         slice_equal_nocase(slice_first(type, 22), SLICE("application/query+json"))))
        return REST_QUERY;
    if (rest_headers_true(headers, REST_HEADER_IS_BATCH))
        return REST_BATCH;
    if (rest_headers_true(headers, REST_HEADER_IS_UPSERT))
        return REST_UPSERT;
    return REST_CREATE;
}

static bool verb_find(const struct rest_call *call, enum rest_verb *ret_verb)
{
    struct slice method = call->http->method;

    if (slice_equal(method, SLICE("GET")) || slice_equal(method, SLICE("HEAD")))
        *ret_verb = call->route.single                            ? REST_READ
                    : call->headers.values[REST_HEADER_A_IM].data ? REST_CHANGES
                                                                  : REST_LIST;
    else if (slice_equal(method, SLICE("POST")))
        *ret_verb = post_verb(call);
    else if (slice_equal(method, SLICE("PUT")))
        *ret_verb = REST_REPLACE;
    else if (slice_equal(method, SLICE("PATCH")))
        *ret_verb = REST_PATCH;
    else if (slice_equal(method, SLICE("DELETE")))
        *ret_verb = REST_DELETE;
    else
        return false;
    return true;
}

static bool operation_choose(struct rest_call *call, struct error *err)
{
    enum rest_verb verb;

    call->operation =
        verb_find(call, &verb) ? rest_operation_find(call->route.resource, verb) : NULL;
    if (!call->operation)
        return error_set(err, ERROR_METHOD_NOT_ALLOWED, "the resource does not take %.*s here",
                         (int)MIN(call->http->method.len, (size_t)16),
                         (const char *)call->http->method.data);
    return true;
}

/* --- Running it ------------------------------------------------------------------------------ */

void rest_call_finish(struct rest_call *call, bool fine, const struct error *err)
{
    account_unref(call->account);
    account_unref(call->keys_account);
    if (fine)
        rest_answer_send(call);
    else
        rest_answer_send_error(call, err);
}

static void work_run(struct net_work *work)
{
    struct rest_call *call = CONTAINER_OF(work, struct rest_call, work);
    struct error err;
    bool fine;

    call->may_block = true;
    if (net_http_cancelled(call->http))
        fine = error_set(&err, ERROR_TIMED_OUT, "the client has gone");
    else
        fine = rest_account_make(call, &err) && call->operation->run(call, &err);
    rest_call_finish(call, fine, &err);
}

void rest_call_keep(struct rest_call *call)
{
    struct error err;
    bool same;

    if (call->kept)
        return;
    call->kept = true;
    net_http_defer(call->http);
    rest_headers_find(call->http, &call->headers);
    same = rest_route_parse(call->http->path, call->http->query, call->arena, &call->route, &err);
    assert(same);
}

void rest_call_move(struct rest_call *call)
{
    struct error err;

    buf_clear(&call->lines);
    buf_clear(&call->body);
    call->cold = false;
    call->work = (struct net_work){.run = work_run, .loop = call->http->loop};
    if (!net_workers_submit(call->services->workers, &call->work, &err))
        rest_call_finish(call, false, &err);
}

static void call_run(struct rest_call *call)
{
    bool fine, pending = false;
    struct error err;

    if (call->operation->place == REST_PLACE_WORKER || !call->account) {
        rest_call_keep(call);
        rest_call_move(call);
        return;
    }
    call->pending = &pending;
    fine = call->operation->run(call, &err);
    if (pending)
        return;
    if (!call->cold) {
        rest_call_finish(call, fine, &err);
        return;
    }
    rest_call_keep(call);
    rest_call_move(call);
}

void rest_handle(struct net_http_request *request, void *context)
{
    struct rest *rest = context;
    struct rest_call *call = ARENA_NEW(request->arena, struct rest_call);
    struct error err;

    call->options = &rest->options;
    call->services = &rest->options.services;
    call->under_way = &rest->under_way;
    call->http = request;
    call->arena = request->arena;
    buf_init(&call->lines, REST_LINES_MAX);
    buf_init(&call->body, REST_BODY_MAX);
    rest_headers_find(request, &call->headers);
    rest_answer_activity(call);
    if (!rest_route_parse(request->path, request->query, call->arena, &call->route, &err) ||
        !rest_account_find(call, &err) || !operation_choose(call, &err) ||
        !rest_authorize(call, &err)) {
        rest_call_finish(call, false, &err);
        return;
    }
    if (!call->operation->run) {
        (void)error_set(&err, ERROR_NOT_SUPPORTED, "%s: %s", call->operation->name,
                        call->operation->meaning);
        rest_call_finish(call, false, &err);
        return;
    }
    call_run(call);
}
