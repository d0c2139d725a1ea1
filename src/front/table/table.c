/* The way of a request: route, account, authorisation, operation, answer. Up to the operation
 * nothing blocks, so all of it runs on the loop; what may block goes on to a worker and the answer
 * comes back through the loop. */
#include "front/table/table.h"

#include "front/owner.h"
#include "front/table/answer.h"
#include "front/table/cors.h"

#include <time.h>

enum {
    LINES_USUAL = 768, /* bytes of header lines in most answers */
    BODY_COPIES = 3,   /* what a body becomes while it is worked on: values, and copies of them */
};

struct table {
    struct table_options options;
    atomic_uint under_way;
    uint64_t id_secret;
    atomic_uint_fast64_t requests;
};

struct table *table_new(const struct table_options *options)
{
    struct table *table = MEMORY_NEW(struct table);

    table->options = *options;
    random_secret(&table->id_secret, sizeof table->id_secret);
    return table;
}

void table_wait(struct table *table)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    while (atomic_load(&table->under_way))
        nanosleep(&pause, NULL);
}

void table_free(struct table *table)
{
    memory_free(table);
}

/* --- Who and what ---------------------------------------------------------------------------- */

/* Named by the path, the host or, where neither does, by who signs. With --dev the account of the
 * storage emulators is the default account, unless somebody has made one of that name. */
static bool account_find(struct table_call *call, struct error *err)
{
    struct slice emulator = SLICE(TABLE_EMULATOR_ACCOUNT), id = call->route.account;
    bool by_use = call->options->accounts_by_use;
    struct slice header, scheme, name, sig;

    if (!id.data)
        id = front_account_of_host(table_call_header(call, SLICE("host")),
                                   call->options->host_suffix, call->arena);
    header = table_call_header(call, SLICE("authorization"));
    if (!id.data && header.data && slice_split(header, ' ', &scheme, &name) &&
        slice_split(name, ':', &name, &sig))
        id = slice_trim(name);
    if (!id.data)
        id = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    call->emulator = call->options->dev && slice_equal(id, emulator);
    if (!call->emulator)
        return front_account_find(call->services, id, by_use, call->arena, &call->account, err);
    if (!front_account_find(call->services, id, false, call->arena, &call->account, err))
        return false;
    if (!call->account.missing)
        return true;
    front_account_done(&call->account);
    return front_account_find(call->services, slice_of_text(CATALOGUE_ACCOUNT_DEFAULT), false,
                              call->arena, &call->account, err);
}

static bool operation_choose(struct table_call *call, struct error *err)
{
    if (!table_verb_find(call->http->method, table_call_header(call, SLICE("x-http-method")),
                         call->route.resource, &call->verb, err))
        return false;
    call->operation = table_operation_find(call->route.resource, call->verb);
    if (!call->operation)
        return error_set(err, ERROR_METHOD_NOT_ALLOWED, "the resource does not take %.*s here",
                         (int)MIN(call->http->method.len, (size_t)16),
                         (const char *)call->http->method.data);
    if (!call->operation->run)
        return error_set(err, ERROR_NOT_SUPPORTED, "%s: %s", call->operation->name,
                         call->operation->meaning);
    return true;
}

/* Versions are dates; which one makes no difference here. */
static bool version_check(const struct table_call *call, struct error *err)
{
    struct slice version = table_call_header(call, SLICE("x-ms-version"));

    if (!version.data)
        return true;
    for (size_t i = 0; i < version.len; i++) {
        bool dash = i == 4 || i == 7;

        if (dash ? version.data[i] != '-' : version.data[i] < '0' || version.data[i] > '9')
            return error_set(err, ERROR_TABLE_HEADER, "x-ms-version is no date");
    }
    return version.len == 10 || error_set(err, ERROR_TABLE_HEADER, "x-ms-version is no date");
}

static bool body_check(const struct table_call *call, struct error *err)
{
    struct slice type = table_call_header(call, SLICE("content-type"));

    if (call->http->body.len > TABLE_BODY_BYTES_MAX)
        return error_set(err, ERROR_TABLE_BODY_TOO_LARGE, "a request has at most %d bytes",
                         TABLE_BODY_BYTES_MAX);
    return !memmem(type.data, type.len, "application/atom+xml", 20) ||
           error_set(err, ERROR_TABLE_ATOM, "send application/json");
}

static bool rights_check(struct table_call *call, struct error *err)
{
    const struct table_route *route = &call->route;

    return table_identity_check(&call->identity, call->operation, route->table, err) &&
           (route->resource != TABLE_ENTITY ||
            table_identity_check_keys(&call->identity, &route->keys, err));
}

/* --- Running it ------------------------------------------------------------------------------ */

void table_call_finish(struct table_call *call, bool fine, const struct error *err)
{
    table_cors_answer(call);
    front_account_done(&call->account);
    if (fine)
        table_answer_send(call);
    else
        table_answer_send_error(call, err);
}

/* By use, where something may come of it; what only looks finds an account that is empty. */
static bool account_is_made(const struct table_call *call)
{
    return !call->account.account && call->verb != TABLE_LIST && call->verb != TABLE_READ &&
           (call->identity.rights & ~(unsigned)(TABLE_RIGHT_READ | TABLE_RIGHT_LIST));
}

static void work_run(struct net_work *work)
{
    struct table_call *call = CONTAINER_OF(work, struct table_call, work);
    size_t held = BODY_COPIES * call->http->body.len;
    struct error err;
    bool fine;

    call->may_block = true;
    call->cancelled = net_http_cancel_flag(call->http);
    if (net_http_cancelled(call->http)) {
        fine = error_set(&err, ERROR_TIMED_OUT, "the client has gone");
    } else if ((fine = front_owner_hold(call->owner, held, &err))) {
        fine = (!account_is_made(call) || front_account_make(call->services, call->account.id,
                                                             &call->account.account, &err)) &&
               call->operation->run(call, &err);
        front_owner_let_go(call->owner, held);
    }
    table_call_finish(call, fine, &err);
}

void table_call_keep(struct table_call *call)
{
    struct error err;
    bool same;

    if (call->kept)
        return;
    call->kept = true;
    net_http_defer(call->http);
    same = table_parameters_parse(call->http->query, call->arena, &call->parameters, &err) &&
           table_route_parse(call->http->path, &call->parameters, call->arena, &call->route, &err);
    assert(same);
}

void table_call_move(struct table_call *call)
{
    struct error err;

    buf_clear(&call->lines);
    buf_clear(&call->body);
    call->cold = false;
    call->work = (struct net_work){.run = work_run,
                                   .loop = call->http->loop,
                                   .owner = call->owner,
                                   .part = front_owner_part(SLICE_NONE, call->route.table)};
    if (!net_workers_submit(call->services->workers, &call->work, &err))
        table_call_finish(call, false, &err);
}

static void call_run(struct table_call *call)
{
    bool fine, pending = false;
    struct error err;

    if (call->operation->place == TABLE_PLACE_WORKER || account_is_made(call)) {
        table_call_keep(call);
        table_call_move(call);
        return;
    }
    call->pending = &pending;
    fine = call->operation->run(call, &err);
    if (pending)
        return;
    if (!call->cold) {
        table_call_finish(call, fine, &err);
        return;
    }
    table_call_keep(call);
    table_call_move(call);
}

static void request_id_make(struct table *table, char ret_text[RANDOM_UUID_SIZE])
{
    uint64_t number = atomic_fetch_add_explicit(&table->requests, 1, memory_order_relaxed);
    struct random sequence;
    uint64_t words[2];

    random_seed(&sequence, table->id_secret + number);
    words[0] = random_next(&sequence);
    words[1] = random_next(&sequence);
    random_uuid_of((const uint8_t *)words, ret_text);
}

/* Nobody has signed a preflight, and with --dev everybody can sign. */
static bool host_check(const struct table_call *call, struct error *err)
{
    return (!call->options->dev && !slice_equal(call->http->method, SLICE("OPTIONS"))) ||
           front_host_check(call->services->hosts, call->http, err);
}

/* A page may make a browser send a form to a signed URL, and with --dev anybody can sign one. So a
 * change that a browser brings needs a CORS rule, as if the page had asked before. */
static bool page_check(struct table_call *call, struct error *err)
{
    bool changes = !slice_equal(call->http->method, SLICE("GET")) &&
                   !slice_equal(call->http->method, SLICE("HEAD"));
    bool by_url = !table_call_header(call, SLICE("authorization")).data;

    if (!changes || !(by_url || call->options->dev))
        return true;
    if (front_request_is_foreign(call->http) && !table_cors_allows(call))
        return error_set(err, ERROR_ORIGIN_REFUSED,
                         "a browser sends this for a page of another origin, which no CORS rule of "
                         "the service properties allows");
    if (by_url && front_request_is_form(call->http))
        return error_set(err, ERROR_TABLE_HEADER,
                         "a signed URL does not take what a form sends: the Content-Type is "
                         "application/json, or multipart/mixed of a batch");
    return true;
}

void table_handle(struct net_http_request *request, void *context)
{
    struct table *table = context;
    struct table_call *call = ARENA_NEW(request->arena, struct table_call);
    struct error err;
    bool fine;

    call->options = &table->options;
    call->services = &table->options.services;
    call->under_way = &table->under_way;
    call->http = request;
    call->arena = request->arena;
    call->route.resource = TABLE_TABLES; /* as long as it is not known, errors are JSON */
    buf_init(&call->lines, TABLE_LINES_MAX);
    buf_init(&call->body, TABLE_BODY_MAX);
    (void)buf_reserve(&call->lines, LINES_USUAL);
    request_id_make(table, call->request_id);
    fine = host_check(call, &err) &&
           table_parameters_parse(request->query, call->arena, &call->parameters, &err) &&
           table_route_parse(request->path, &call->parameters, call->arena, &call->route, &err) &&
           account_find(call, &err);
    if (fine && slice_equal(request->method, SLICE("OPTIONS"))) {
        fine = table_cors_preflight(call, &err);
        table_call_finish(call, fine, &err);
        return;
    }
    if (!fine || !operation_choose(call, &err) || !version_check(call, &err) ||
        !table_call_level(call, &err) || !page_check(call, &err) || !table_authorize(call, &err) ||
        !front_account_check(call->account.missing, call->account.id, &err) ||
        !front_owner_bill(call->services, call->account.account, request, &call->owner, &err) ||
        !rights_check(call, &err) || !body_check(call, &err)) {
        table_call_finish(call, false, &err);
        return;
    }
    call_run(call);
}
