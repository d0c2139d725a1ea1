/* The way of a request: route, account, authorisation, operation, answer. Up to the operation
 * nothing blocks, so all of it runs on the loop; what may block goes on to a worker and the answer
 * comes back through the loop. */
#include "front/table/table.h"

#include "front/owner.h"
#include "front/table/answer.h"
#include "front/table/cors.h"

enum { LINES_USUAL = 768 }; /* bytes of header lines in most answers */

struct table {
    struct table_options options;
    struct front_http http;
};

static const struct front_call_kind kind;

struct table *table_new(const struct table_options *options)
{
    struct table *table = MEMORY_NEW(struct table);

    table->options = *options;
    front_http_init(&table->http, &table->options.services, &table->options.door, &kind);
    return table;
}

void table_wait(struct table *table)
{
    front_calls_wait(&table->http.under_way);
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
    bool by_use = call->door->accounts_by_use;
    struct slice header, scheme, name, sig;

    if (!id.data)
        id = front_account_of_host(table_call_header(call, SLICE("host")), call->door->host_suffix,
                                   call->arena);
    header = table_call_header(call, SLICE("authorization"));
    if (!id.data && header.data && slice_split(header, ' ', &scheme, &name) &&
        slice_split(name, ':', &name, &sig))
        id = slice_trim(name);
    if (!id.data)
        id = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    call->emulator = call->door->dev && slice_equal(id, emulator);
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

/* What all APIs call it. */
static enum observed_operation observed_of(const struct table_call *call)
{
    static const enum observed_operation of_entities[TABLE_VERB_COUNT] = {
        [TABLE_LIST] = OBSERVED_QUERY,    [TABLE_READ] = OBSERVED_READ,
        [TABLE_CREATE] = OBSERVED_CREATE, [TABLE_REPLACE] = OBSERVED_REPLACE,
        [TABLE_MERGE] = OBSERVED_PATCH,   [TABLE_DELETE] = OBSERVED_DELETE,
    };

    switch (call->route.resource) {
    case TABLE_ENTITIES:
    case TABLE_ENTITY:
        return of_entities[call->verb];
    case TABLE_BATCH:
        return OBSERVED_BATCH;
    default:
        return call->verb == TABLE_LIST || call->verb == TABLE_READ ? OBSERVED_METADATA
                                                                    : OBSERVED_CHANGE;
    }
}

static bool operation_choose(struct table_call *call, struct error *err)
{
    if (!table_verb_find(call->http->method, table_call_header(call, SLICE("x-http-method")),
                         call->route.resource, &call->verb, err))
        return false;
    call->operation = table_operation_find(call->route.resource, call->verb);
    if (!call->operation)
        return front_http_method_refuse(&call->over_http, err);
    call->observed.operation = observed_of(call);
    return call->operation->run || error_set(err, ERROR_NOT_SUPPORTED, "%s: %s",
                                             call->operation->name, call->operation->meaning);
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
    return !type.len || !memmem(type.data, type.len, "application/atom+xml", 20) ||
           error_set(err, ERROR_TABLE_ATOM, "send application/json");
}

static bool rights_check(struct table_call *call, struct error *err)
{
    const struct table_route *route = &call->route;

    return table_identity_check(&call->identity, call->operation, route->table, err) &&
           (route->resource != TABLE_ENTITY ||
            table_identity_check_keys(&call->identity, &route->keys, err));
}

/* A page may make a browser send a form to a signed URL, and with --dev anybody can sign one. So a
 * change that a browser brings needs a CORS rule, as if the page had asked before. */
static bool page_check(struct table_call *call, struct error *err)
{
    bool changes = !slice_equal(call->http->method, SLICE("GET")) &&
                   !slice_equal(call->http->method, SLICE("HEAD"));
    bool by_url = !table_call_header(call, SLICE("authorization")).data;

    if (!changes || !(by_url || call->door->dev))
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

/* --- Its life -------------------------------------------------------------------------------- */

static struct table_call *table_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct table_call, front);
}

/* By use, where something may come of it; what only looks finds an account that is empty. */
static bool account_is_made(const struct table_call *call)
{
    return !call->account.account && call->verb != TABLE_LIST && call->verb != TABLE_READ &&
           (call->identity.rights & ~(unsigned)(TABLE_RIGHT_READ | TABLE_RIGHT_LIST));
}

static bool call_run(struct front_call *front, struct error *err)
{
    struct table_call *call = table_of(front);

    if (call->may_block && account_is_made(call) &&
        !front_account_make(call->services, call->account.id, &call->account.account, err))
        return false;
    return call->operation->run(call, err);
}

static bool target_parse(struct table_call *call, struct error *err)
{
    return table_parameters_parse(call->http->query, call->arena, &call->parameters, err) &&
           table_route_parse(call->http->path, &call->parameters, call->arena, &call->route, err);
}

static void call_kept(struct front_call *front)
{
    struct error err;
    bool same = target_parse(table_of(front), &err);

    assert(same);
}

static uint64_t call_part(const struct front_call *front)
{
    return front_owner_part(SLICE_NONE, table_of(front)->route.table);
}

/* The account has the rules for pages. */
static void call_settle(struct front_call *front)
{
    table_cors_answer(table_of(front));
}

static struct slice call_who(const struct table_call *call)
{
    if (call->identity.shared)
        return SLICE("shared access signature");
    return call->identity.rights == TABLE_RIGHT_ALL ? SLICE("read-write key")
                                                    : SLICE("read-only key");
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct table_call *call = table_of(front);

    front_http_describe(&call->over_http, request);
    request->id = slice_of(call->request_id, RANDOM_UUID_SIZE - 1);
    request->front = "table";
    request->name = call->operation ? call->operation->name : NULL;
    request->database = SLICE(FRONT_TABLE_DATABASE);
    request->container = call->route.table;
    request->who = call->identity.rights ? call_who(call) : SLICE_NONE;
}

static const struct front_call_kind kind = {.run = call_run,
                                            .kept = call_kept,
                                            .part = call_part,
                                            .settle = call_settle,
                                            .answer = table_answer_send,
                                            .refuse = table_answer_refuse,
                                            .describe = call_describe};

/* Who asks for what, and whether their rights and the body allow it. */
static bool call_admit(struct table_call *call, struct error *err)
{
    return operation_choose(call, err) && version_check(call, err) && table_call_level(call, err) &&
           page_check(call, err) && table_authorize(call, err) &&
           front_http_bill(&call->over_http, err) && rights_check(call, err) &&
           body_check(call, err);
}

void table_handle(struct net_http_request *request, void *context)
{
    struct table *table = context;
    struct table_call *call = ARENA_NEW(request->arena, struct table_call);
    struct error err;

    front_http_begin(&table->http, &call->over_http, request, LINES_USUAL);
    call->options = &table->options;
    call->route.resource = TABLE_TABLES; /* as long as it is not known, errors are JSON */
    front_http_id_make(&table->http, call->request_id);
    if (!front_http_host_check(&call->over_http, &err) || !target_parse(call, &err) ||
        !account_find(call, &err))
        table_call_finish(call, false, &err);
    else if (slice_equal(request->method, SLICE("OPTIONS")))
        table_call_finish(call, table_cors_preflight(call, &err), &err);
    else if (!call_admit(call, &err))
        table_call_finish(call, false, &err);
    else
        front_call_run(&call->front,
                       call->operation->place == TABLE_PLACE_WORKER || account_is_made(call));
}
