/* The way of a request: path, account, signature, operation, answer. All operations may block, so
 * they run on a worker. */
#include "front/admin/call.h"

#include "backup/moments.h"
#include "front/kit/authorize.h"
#include "front/kit/cors.h"
#include "front/kit/path.h"
#include "front/owner.h"

static const struct slice root = {(const uint8_t *)"_orrery", 7};

struct admin {
    struct admin_options options;
    struct front_gateway gateway;
    struct backup_moments *moments;
};

static const struct front_call_kind kind;

struct admin *admin_new(const struct admin_options *options)
{
    struct admin *admin = MEMORY_NEW(struct admin);

    admin->options = *options;
    front_gateway_init(&admin->gateway, &admin->options.services, &admin->options.door, &kind,
                       options->cors_origins);
    admin->gateway.for_no_page = true;
    admin->moments = backup_moments_new(options->services.catalogue, 0);
    return admin;
}

void admin_free(struct admin *admin)
{
    if (admin)
        backup_moments_free(admin->moments);
    memory_free(admin);
}

bool admin_takes(const struct net_http_request *request)
{
    return front_path_begins(request->path, root);
}

/* --- Which operation ------------------------------------------------------------------------- */

struct admin_operation {
    struct slice method;
    const char *path; /* a star stands for a name */
    bool (*run)(struct admin_call *call, struct error *err);
    bool secret; /* its answer holds keys */
};

static const struct admin_operation operations[] = {
#define ADMIN_OPERATION(method, path, function) {SLICE(#method), path, function, false},
#define ADMIN_SECRET(method, path, function) {SLICE(#method), path, function, true},
#include "front/admin/operations.def"
#undef ADMIN_SECRET
#undef ADMIN_OPERATION
};

static struct slice segment_next(struct slice *rest)
{
    struct slice segment = *rest, tail = SLICE_NONE;

    (void)slice_split(*rest, '/', &segment, &tail);
    *rest = tail;
    return segment;
}

static bool path_matches(const char *pattern, struct slice path, struct slice *ret_names)
{
    struct slice wanted = slice_of_text(pattern);
    size_t count = 0;

    while (wanted.data && path.data) {
        struct slice want = segment_next(&wanted), got = segment_next(&path);

        if (slice_equal(want, SLICE("*")) && got.len && count < ADMIN_NAMES_MAX)
            ret_names[count++] = got;
        else if (!slice_equal(want, got))
            return false;
    }
    return !wanted.data && !path.data;
}

/* What a request asks for, found before anybody is asked who they are. */
struct asked {
    struct front_path path;
    struct slice method; /* GET of HEAD */
    struct slice link;   /* the path behind /_orrery/ */
};

static bool asked_read(struct admin_call *call, struct asked *ret_asked, struct error *err)
{
    struct front_path *path = &ret_asked->path;

    if (!front_path_split(call->http->path, call->arena, path, err))
        return false;
    assert(path->count && slice_equal(path->decoded[0], root));
    ret_asked->link = front_path_join(path->decoded + 1, path->count - 1, call->arena);
    ret_asked->method =
        slice_equal(call->http->method, SLICE("HEAD")) ? SLICE("GET") : call->http->method;
    call->prefix = arena_copy(call->arena, path->prefix);
    call->observed.operation =
        slice_equal(ret_asked->method, SLICE("GET")) ? OBSERVED_ADMIN : OBSERVED_ORDER;
    return true;
}

/* What no operation takes is refused before anybody is asked for a signature. */
static bool method_check(const struct admin_call *call, const struct asked *asked,
                         struct error *err)
{
    return slice_equal(asked->method, SLICE("GET")) || slice_equal(asked->method, SLICE("POST")) ||
           slice_equal(asked->method, SLICE("DELETE")) ||
           front_http_method_refuse(&call->over_http, err);
}

/* Names are in the arena: they stay where they are when the request is kept. */
static bool operation_find(struct admin_call *call, const struct asked *asked, struct error *err)
{
    bool known = false;

    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        if (!path_matches(operations[i].path, asked->link, call->names))
            continue;
        known = true;
        if (!slice_equal(operations[i].method, asked->method))
            continue;
        call->operation = &operations[i];
        return true;
    }
    if (known)
        return error_set(err, ERROR_METHOD_NOT_ALLOWED,
                         "\"/_orrery/%.*s\" does not take this method",
                         (int)MIN(asked->link.len, (size_t)100), (const char *)asked->link.data);
    return error_set(err, ERROR_NOT_FOUND, "there is nothing at \"/_orrery/%.*s\"",
                     (int)MIN(asked->link.len, (size_t)100), (const char *)asked->link.data);
}

/* --- Who asks -------------------------------------------------------------------------------- */

static const char *name_of(const struct asked *asked)
{
    return slice_equal(asked->method, SLICE("GET"))    ? "ADMIN.READ"
           : slice_equal(asked->method, SLICE("POST")) ? "ADMIN.EXECUTE"
                                                       : "ADMIN.DELETE";
}

static bool authorize(struct admin_call *call, const struct asked *asked, struct error *err)
{
    if (!front_authorize_order(&call->over_gateway, &asked->path, name_of(asked),
                               &call->may_only_read, err))
        return false;
    call->signed_by_owner = !call->may_only_read;
    return true;
}

/* Read-only keys see what is the account's, never its keys, and change nothing. */
static bool right_check(const struct admin_call *call, const struct asked *asked, struct error *err)
{
    if (!call->may_only_read)
        return true;
    if (!slice_equal(asked->method, SLICE("GET")))
        return error_set(err, ERROR_FORBIDDEN, "%s needs a read-write key; this one may only read",
                         name_of(asked));
    return !call->operation->secret ||
           error_set(err, ERROR_FORBIDDEN,
                     "keys are shown to read-write keys; this one may only "
                     "read");
}

/* --- Its life -------------------------------------------------------------------------------- */

static struct admin_call *admin_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct admin_call, front);
}

static bool call_run(struct front_call *front, struct error *err)
{
    struct admin_call *call = admin_of(front);

    if (!front_account_make(call->services, call->account.id, &call->account.account, err) ||
        !call->operation->run(call, err))
        return false;
    return !buf_overflowed(&call->body) ||
           error_set(err, ERROR_TOO_LARGE, "the answer would be larger than %zu bytes",
                     call->body.max);
}

static uint64_t call_part(const struct front_call *front UNUSED)
{
    return front_owner_part(SLICE_NONE, SLICE_NONE);
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct admin_call *call = admin_of(front);

    front_gateway_describe(&call->over_gateway, request);
    request->front = "admin";
    request->name = call->operation ? call->operation->path : NULL;
    request->who = call->signed_by_owner ? SLICE("read-write key")
                   : call->may_only_read ? SLICE("read-only key")
                                         : SLICE_NONE;
    if (call->operation && strncmp(call->operation->path, "containers/*/*", 14) == 0) {
        request->database = call->names[0];
        request->container = call->names[1];
    }
}

static const struct front_call_kind kind = {.run = call_run,
                                            .part = call_part,
                                            .answer = front_gateway_answer,
                                            .refuse = front_gateway_refuse,
                                            .describe = call_describe};

/* What only looks finds no account that is made by use and that nobody has used. */
static bool account_check(const struct admin_call *call, const struct asked *asked,
                          struct error *err)
{
    return call->account.account || !slice_equal(asked->method, SLICE("GET")) ||
           error_set(err, ERROR_NOT_FOUND, "account \"%.*s\" does not exist yet",
                     (int)MIN(call->account.id.len, (size_t)64),
                     (const char *)call->account.id.data);
}

/* Who asks for what. */
static bool call_admit(struct admin_call *call, const struct asked *asked, struct error *err)
{
    return front_cors_check(&call->over_gateway, err) &&
           front_http_account_find(&call->over_http, asked->path.account,
                                   net_http_header(call->http, SLICE("host")), err) &&
           method_check(call, asked, err) && authorize(call, asked, err) &&
           front_http_bill(&call->over_http, err) && account_check(call, asked, err) &&
           operation_find(call, asked, err) && right_check(call, asked, err);
}

void admin_handle(struct net_http_request *request, void *context)
{
    struct admin *admin = context;
    struct admin_call *call = ARENA_NEW(request->arena, struct admin_call);
    struct asked asked;
    struct error err;

    front_gateway_begin(&admin->gateway, &call->over_gateway, request,
                        net_http_header(request, SLICE("x-ms-activity-id")));
    /* in the arena, since the bytes of the request move when it is kept */
    call->correlated = net_http_header(request, SLICE("x-ms-cosmos-correlated-activityid"));
    if (call->correlated.data)
        call->correlated = arena_copy(call->arena, call->correlated);
    call->hooks = &admin->options.hooks;
    call->moments = admin->moments;
    if (!front_http_host_check(&call->over_http, &err) || !asked_read(call, &asked, &err))
        front_call_finish(&call->front, false, &err);
    else if (front_cors_is_preflight(&call->over_gateway))
        front_call_finish(&call->front, front_cors_preflight(&call->over_gateway, &err), &err);
    else if (!call_admit(call, &asked, &err))
        front_call_finish(&call->front, false, &err);
    else
        front_call_run(&call->front, true);
}
