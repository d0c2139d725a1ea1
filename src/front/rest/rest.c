/* The way of a request: route, account, authorisation, operation, answer. Up to the operation
 * nothing blocks, so all of it runs on the loop; what may block goes on to a worker and the answer
 * comes back through the loop. */
#include "front/rest/rest.h"

#include "front/account.h"
#include "front/owner.h"
#include "front/rest/answer.h"
#include "front/rest/call.h"
#include "front/rest/cors.h"
#include "query/spool/cache.h"
#include "query/spool/spill.h"
#include "throughput/cost.h"

#include <time.h>

enum {
    LINES_USUAL = 1024, /* bytes of header lines in most answers */
    REKEYED_MAX = 3,    /* times a request is read again */
    BODY_COPIES = 3,    /* what a body becomes while it is worked on: values, and copies of them */
};

struct rest {
    struct rest_options options;
    struct rest_metadata_budgets *metadata; /* NULL: metadata is not held back */
    struct query_cache *queries;            /* unfinished results between two pages */
    struct query_spill *spill;              /* what of them, and of others, is on disk */
    struct item_gates *script_gates;
    char since[CLOCK_HTTP_DATE_LEN + 1];
    atomic_uint under_way;
    uint64_t activity_secret;
    atomic_uint_fast64_t requests;
};

struct rest *rest_new(const struct rest_options *options)
{
    struct rest *rest = MEMORY_NEW(struct rest);

    rest->options = *options;
    random_secret(&rest->activity_secret, sizeof rest->activity_secret);
    if (options->metadata_ru)
        rest->metadata = rest_metadata_budgets_new(options->metadata_ru);
    rest->spill = query_spill_new(
        &(struct query_spill_options){.directory = options->queries.spill_directory,
                                      .query_bytes_max = options->queries.spill_bytes_max,
                                      .total_bytes_max = options->queries.spill_total_bytes_max});
    rest->options.queries.spill_directory = NULL; /* was copied */
    /* results whose clients never come back must leave room for others */
    rest->queries = query_cache_new(options->queries.cache_bytes_max,
                                    options->queries.spill_total_bytes_max / 2);
    rest->script_gates = item_gates_new();
    clock_http_date(clock_read_wall_ms(options->services.clock), rest->since);
    return rest;
}

void rest_spill_metrics(const struct rest *rest, struct query_spill_metrics *ret_metrics)
{
    query_spill_metrics(rest->spill, ret_metrics);
}

void rest_wait(struct rest *rest)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (atomic_load(&rest->under_way))
        nanosleep(&pause, NULL);
}

void rest_free(struct rest *rest)
{
    if (!rest)
        return;
    rest_metadata_budgets_free(rest->metadata);
    query_cache_free(rest->queries);
    query_spill_free(rest->spill);
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

static bool operation_choose(struct rest_call *call, struct error *err)
{
    call->operation =
        verb_find(call, &call->verb) ? rest_operation_find(call->route.resource, call->verb) : NULL;
    if (!call->operation)
        return error_set(err, ERROR_METHOD_NOT_ALLOWED, "the resource does not take %.*s here",
                         (int)MIN(call->http->method.len, (size_t)16),
                         (const char *)call->http->method.data);
    /* Before anybody is asked for a signature: what is not offered is offered to nobody, and of
     * some of these the text that is signed is another. */
    if (!call->operation->run)
        return error_set(err, ERROR_NOT_SUPPORTED, "%s: %s", call->operation->name,
                         call->operation->meaning);
    return true;
}

/* --- Metadata -------------------------------------------------------------------------------- */

/* Is it paid for by the account? Items are by their containers; the account document, which clients
 * read all the time, and administration are by nobody. */
static bool is_metadata(const struct rest_call *call)
{
    switch (call->route.resource) {
    case REST_ACCOUNT:
    case REST_ITEMS:
    case REST_PARTITION_DELETE:
    case REST_ADMIN:
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

    if (!call->metadata || !call->account || !is_metadata(call))
        return true;
    return rest_metadata_admit(call->metadata, account_info(call->account)->number,
                               cost_metadata(kind), clock_read_monotonic_ms(call->services->clock),
                               &call->ticket, &call->wait_ms, err);
}

/* --- Running it ------------------------------------------------------------------------------ */

bool rest_call_hold(struct rest_call *call, size_t bytes, struct error *err)
{
    if (!front_owner_hold(call->owner, bytes, err))
        return false;
    call->held += bytes;
    return true;
}

bool rest_call_grown(struct rest_call *call, struct error *err)
{
    size_t used = arena_used(call->arena) + call->body.capacity;

    return used <= call->held || rest_call_hold(call, used - call->held, err);
}

void rest_call_breathe(const struct rest_call *call)
{
    if (call->may_block)
        net_workers_breathe(call->services->workers);
}

void rest_call_finish(struct rest_call *call, bool fine, const struct error *err)
{
    front_owner_let_go(call->owner, call->held);
    if (call->ticket.account)
        rest_metadata_settle(call->metadata, &call->ticket, call->charge_cru,
                             clock_read_monotonic_ms(call->services->clock));
    account_unref(call->account);
    account_unref(call->keys_account);
    if (fine)
        rest_answer_send(call);
    else
        rest_answer_send_error(call, err);
}

static bool work_do(struct rest_call *call, struct error *err)
{
    bool fine = rest_account_make(call, err) && call->operation->run(call, err);

    for (int i = 0; !fine && err->code == ERROR_REKEYED && i < REKEYED_MAX; i++) {
        /* What the request says of keys means something else by now. Nothing was done. */
        buf_clear(&call->lines);
        buf_clear(&call->body);
        fine = call->operation->run(call, err);
    }
    return fine;
}

static void work_run(struct net_work *work)
{
    struct rest_call *call = CONTAINER_OF(work, struct rest_call, work);
    struct error err;
    bool fine;

    call->may_block = true;
    call->cancelled = net_http_cancel_flag(call->http);
    if (net_http_cancelled(call->http))
        fine = error_set(&err, ERROR_TIMED_OUT, "the client has gone");
    else
        fine =
            rest_call_hold(call, BODY_COPIES * call->http->body.len, &err) && work_do(call, &err);
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
    call->work =
        (struct net_work){.run = work_run,
                          .loop = call->http->loop,
                          .owner = call->owner,
                          .part = front_owner_part(call->route.database, call->route.owner)};
    if (!net_workers_submit(call->services->workers, &call->work, &err))
        rest_call_finish(call, false, &err);
}

static void call_run(struct rest_call *call)
{
    bool fine, pending = false;
    struct error err;

    if (call->operation->place == REST_PLACE_WORKER || rest_account_is_made(call)) {
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

/* Nobody has signed a preflight, and with --dev everybody can sign. */
static bool host_check(const struct rest_call *call, struct error *err)
{
    return (!call->options->dev && !slice_equal(call->http->method, SLICE("OPTIONS"))) ||
           front_host_check(call->services->hosts, call->http, err);
}

void rest_handle(struct net_http_request *request, void *context)
{
    struct rest *rest = context;
    struct rest_call *call = ARENA_NEW(request->arena, struct rest_call);
    struct error err;

    call->options = &rest->options;
    call->services = &rest->options.services;
    call->since = rest->since;
    call->metadata = rest->metadata;
    call->queries = rest->queries;
    call->spill = rest->spill;
    call->script_gates = rest->script_gates;
    call->under_way = &rest->under_way;
    call->http = request;
    call->arena = request->arena;
    buf_init(&call->lines, REST_LINES_MAX);
    buf_init(&call->body, REST_BODY_MAX);
    rest_headers_find(request, &call->headers);
    (void)buf_reserve(&call->lines, LINES_USUAL);
    rest_answer_activity(call, rest->activity_secret,
                         atomic_fetch_add_explicit(&rest->requests, 1, memory_order_relaxed));
    if (!host_check(call, &err) ||
        !rest_route_parse(request->path, request->query, call->arena, &call->route, &err)) {
        rest_call_finish(call, false, &err);
        return;
    }
    if (rest_cors_is_preflight(call)) {
        rest_call_finish(call, rest_cors_preflight(call, &err), &err);
        return;
    }
    if (!rest_cors_check(call, &err) || !rest_account_find(call, &err) ||
        !operation_choose(call, &err) || !rest_authorize(call, &err) ||
        !front_account_check(call->account_missing, call->account_id, &err) ||
        !front_owner_bill(call->services, call->account, request, &call->owner, &err) ||
        !metadata_admit(call, &err)) {
        rest_call_finish(call, false, &err);
        return;
    }
    call_run(call);
}
