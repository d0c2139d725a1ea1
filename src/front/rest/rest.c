/* The way of a request: route, account, authorisation, operation, answer. Up to the operation
 * nothing blocks, so all of it runs on the loop; what may block goes on to a worker and the answer
 * comes back through the loop. */
#include "front/rest/rest.h"

#include "front/kit/cors.h"
#include "front/owner.h"
#include "front/rest/call.h"
#include "throughput/cost.h"

struct rest {
    struct rest_options options;
    struct front_gateway gateway;
    struct rest_metadata_budgets *metadata; /* NULL: metadata is not held back */
    struct item_gates *script_gates;
};

static const struct front_call_kind kind;
static bool call_admit(struct rest_call *call, struct error *err);

struct rest *rest_new(const struct rest_options *options)
{
    struct rest *rest = MEMORY_NEW(struct rest);

    rest->options = *options;
    front_gateway_init(&rest->gateway, &rest->options.services, &rest->options.door, &kind,
                       options->cors_origins);
    if (options->metadata_ru)
        rest->metadata = rest_metadata_budgets_new(options->metadata_ru);
    rest->script_gates = item_gates_new();
    return rest;
}

void rest_wait(struct rest *rest)
{
    front_calls_wait(&rest->gateway.http.under_way);
}

void rest_free(struct rest *rest)
{
    if (!rest)
        return;
    rest_metadata_budgets_free(rest->metadata);
    item_gates_free(rest->script_gates);
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

/* What all APIs call it. */
static enum observed_operation observed_of(const struct rest_call *call)
{
    static const enum observed_operation of_items[REST_VERB_COUNT] = {
        [REST_READ] = OBSERVED_READ,       [REST_LIST] = OBSERVED_LIST,
        [REST_CHANGES] = OBSERVED_CHANGES, [REST_CREATE] = OBSERVED_CREATE,
        [REST_UPSERT] = OBSERVED_UPSERT,   [REST_QUERY] = OBSERVED_QUERY,
        [REST_PLAN] = OBSERVED_QUERY,      [REST_BATCH] = OBSERVED_BATCH,
        [REST_EXECUTE] = OBSERVED_EXECUTE, [REST_REPLACE] = OBSERVED_REPLACE,
        [REST_PATCH] = OBSERVED_PATCH,     [REST_DELETE] = OBSERVED_DELETE,
    };

    if (call->route.resource == REST_ITEMS)
        return of_items[call->verb];
    if (call->route.resource == REST_PARTITION_DELETE)
        return OBSERVED_DELETE;
    if (call->verb == REST_EXECUTE)
        return OBSERVED_EXECUTE;
    return call->operation->access == REST_ACCESS_READ ? OBSERVED_METADATA : OBSERVED_CHANGE;
}

static bool operation_choose(struct rest_call *call, struct error *err)
{
    call->operation =
        verb_find(call, &call->verb) ? rest_operation_find(call->route.resource, call->verb) : NULL;
    if (!call->operation)
        return front_http_method_refuse(&call->over_http, err);
    call->observed.operation = observed_of(call);
    /* Before anybody is asked for a signature: what is not offered is offered to nobody, and of
     * some of these the text that is signed is another. */
    return call->operation->run || error_set(err, ERROR_NOT_SUPPORTED, "%s: %s",
                                             call->operation->name, call->operation->meaning);
}

/* --- Metadata -------------------------------------------------------------------------------- */

/* Is it paid for by the account? Items are by their containers; the account document, which clients
 * read all the time, is by nobody. */
static bool is_metadata(const struct rest_call *call)
{
    switch (call->route.resource) {
    case REST_ACCOUNT:
    case REST_ITEMS:
    case REST_PARTITION_DELETE:
        return false;
    default:
        return true;
    }
}

static bool metadata_admit(struct rest_call *call, struct error *err)
{
    enum cost_metadata kind = call->operation->access != REST_ACCESS_READ ? COST_METADATA_WRITE
                              : call->route.single                        ? COST_METADATA_READ
                                                                          : COST_METADATA_LIST;

    if (!call->metadata || !call->account.account || !is_metadata(call))
        return true;
    return rest_metadata_admit(call->metadata, account_info(call->account.account)->number,
                               cost_metadata(kind), clock_read_monotonic_ms(call->services->clock),
                               &call->ticket, &call->wait_ms, err);
}

/* --- Its life -------------------------------------------------------------------------------- */

static struct rest_call *rest_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct rest_call, front);
}

static bool call_run(struct front_call *front, struct error *err)
{
    struct rest_call *call = rest_of(front);

    return (!call->may_block || rest_account_make(call, err)) && call->operation->run(call, err);
}

static void headers_find(struct rest_call *call)
{
    rest_headers_find(call->http, &call->headers);
    call->correlated = rest_call_header(call, REST_HEADER_CORRELATED_ACTIVITY_ID);
}

static void call_kept(struct front_call *front)
{
    struct rest_call *call = rest_of(front);
    struct error err;
    bool same;

    headers_find(call);
    same = rest_route_parse(call->http->path, call->http->query, call->arena, &call->route, &err);
    assert(same);
}

static uint64_t call_part(const struct front_call *front)
{
    const struct rest_route *route = &rest_of(front)->route;

    return front_owner_part(route->database, route->owner);
}

static void call_settle(struct front_call *front)
{
    struct rest_call *call = rest_of(front);

    if (call->ticket.account)
        rest_metadata_settle(call->metadata, &call->ticket, call->charge_cru,
                             clock_read_monotonic_ms(call->services->clock));
}

static struct slice call_who(const struct rest_call *call)
{
    switch (call->identity.kind) {
    case REST_IDENTITY_OWNER:
        return SLICE("read-write key");
    case REST_IDENTITY_READER:
        return SLICE("read-only key");
    case REST_IDENTITY_TOKEN:
        return SLICE("resource token");
    default:
        return SLICE_NONE;
    }
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct rest_call *call = rest_of(front);

    front_gateway_describe(&call->over_gateway, request);
    request->front = "rest";
    request->name = call->operation ? call->operation->name : NULL;
    request->database = call->route.database;
    request->container = call->route.owner;
    request->who = call_who(call);
}

static const struct front_call_kind kind = {.run = call_run,
                                            .kept = call_kept,
                                            .part = call_part,
                                            .settle = call_settle,
                                            .answer = front_gateway_answer,
                                            .refuse = front_gateway_refuse,
                                            .describe = call_describe};

/* --- Beside the owner ------------------------------------------------------------------------- */

static bool follow_run(struct front_call *front, struct error *err)
{
    return rest_items_follow(rest_of(front), err);
}

static void pass_on_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct rest_call *call = CONTAINER_OF(task, struct rest_call, pass_on_task);
    const struct rest_follow *follow = call->options->follow;
    struct net_http_request *request = call->http;

    if (!net_http_connection_of(request))
        net_http_respond(request, &(struct net_http_response){.status = 408});
    else
        follow->pass_on(request, follow->context);
}

/* As if nobody had looked at it. The call is in the request's arena, and stays. */
static void follow_leave(struct rest_call *call)
{
    buf_done(&call->lines);
    buf_done(&call->body);
    if (call->untaken) {
        *call->untaken = true;
        return;
    }
    call->pass_on_task = (struct net_task){.run = pass_on_run};
    net_loop_post(call->loop, &call->pass_on_task);
}

static void follow_refuse(struct front_call *front, const struct error *err UNUSED)
{
    follow_leave(rest_of(front));
}

/* It was read by what was the present catalogue then. Only if that still is, is it so that no
 * change has been answered meanwhile. */
static void follow_answer(struct front_call *front)
{
    struct rest_call *call = rest_of(front);
    const struct rest_follow *follow = call->options->follow;

    if (follow->holds(follow->context, call->pass))
        front_gateway_answer(front);
    else
        follow_leave(call);
}

static const struct front_call_kind follow_kind = {.run = follow_run,
                                                   .kept = call_kept,
                                                   .part = call_part,
                                                   .settle = call_settle,
                                                   .answer = follow_answer,
                                                   .refuse = follow_refuse,
                                                   .describe = call_describe};

/* Resource tokens are the owner's to judge. */
static bool follow_admit(struct rest_call *call, struct error *err)
{
    return front_http_host_check(&call->over_http, err) &&
           rest_route_parse(call->http->path, call->http->query, call->arena, &call->route, err) &&
           call->route.resource == REST_ITEMS && call->route.single && call_admit(call, err) &&
           call->verb == REST_READ && call->identity.kind != REST_IDENTITY_TOKEN;
}

bool rest_follow_try(struct net_http_request *request, struct rest *rest)
{
    const struct rest_follow *follow = rest->options.follow;
    struct rest_call *call;
    bool untaken = false;
    struct error err = {0};
    uint64_t pass[2];

    if (!follow->take(follow->context, pass))
        return false;
    call = ARENA_NEW(request->arena, struct rest_call);
    call->options = &rest->options;
    call->script_gates = rest->script_gates;
    call->http = request;
    memcpy(call->pass, pass, sizeof pass);
    headers_find(call);
    front_gateway_begin(&rest->gateway, &call->over_gateway, request,
                        rest_call_header(call, REST_HEADER_ACTIVITY_ID));
    call->kind = &follow_kind;
    call->untaken = &untaken;
    if (!follow_admit(call, &err)) {
        rest_call_finish(call, false, &err);
        return !untaken;
    }
    call->untaken = NULL;
    front_call_run(&call->front, true);
    return true;
}

/* --- Any request ------------------------------------------------------------------------------ */

/* Who asks for what, and whether the account may still spend on metadata. */
static bool call_admit(struct rest_call *call, struct error *err)
{
    return front_cors_check(&call->over_gateway, err) && rest_account_find(call, err) &&
           operation_choose(call, err) && rest_authorize(call, err) &&
           front_http_bill(&call->over_http, err) && metadata_admit(call, err);
}

void rest_handle(struct net_http_request *request, void *context)
{
    struct rest *rest = context;
    struct rest_call *call = ARENA_NEW(request->arena, struct rest_call);
    struct error err;

    call->options = &rest->options;
    call->metadata = rest->metadata;
    call->script_gates = rest->script_gates;
    call->http = request;
    headers_find(call);
    front_gateway_begin(&rest->gateway, &call->over_gateway, request,
                        rest_call_header(call, REST_HEADER_ACTIVITY_ID));
    if (!front_http_host_check(&call->over_http, &err) ||
        !rest_route_parse(request->path, request->query, call->arena, &call->route, &err))
        rest_call_finish(call, false, &err);
    else if (front_cors_is_preflight(&call->over_gateway))
        rest_call_finish(call, front_cors_preflight(&call->over_gateway, &err), &err);
    else if (!call_admit(call, &err))
        rest_call_finish(call, false, &err);
    else
        front_call_run(&call->front,
                       call->operation->place == REST_PLACE_WORKER || rest_account_is_made(call));
}
