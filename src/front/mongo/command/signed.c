/* The body becomes a message, which is delivered to the front as if a connection had brought it,
 * with a session of its own that knows the key. The request waits for the reply without a thread:
 *
 *     loop: who asks -> worker: JSON to a message -> parked, delivered -> ... -> JSON, answered
 *
 * What lasts longer than a request is the server's and found again by its id, as over connections:
 * cursors, sessions, transactions. Who counts and logs is told of the command alone. */
#include "front/mongo/command/signed.h"

#include "base/bytes.h"
#include "document/extended.h"
#include "document/json.h"
#include "front/kit/authorize.h"
#include "front/kit/cors.h"
#include "front/kit/path.h"
#include "front/mongo/command/call.h"
#include "front/owner.h"

#include <openssl/crypto.h>

enum {
    SEGMENTS = 3,                /* _orrery, mongo, the database */
    DEPTH_MORE = 80,             /* levels that a command may have above those of an item */
    MESSAGE_PREFIX = 16 + 4 + 1, /* header, flags, and the kind of the only section */
    REPLY_COPIES = 4,            /* what a reply becomes while it is written as JSON */
    DOCUMENT_EMPTY = 5,
};

struct signed_call {
    union {
        struct front_gateway_call over_gateway;
        struct front_gateway_call;
    };
    struct mongo *mongo;
    struct slice database; /* in the arena */
    struct mongo_session session;
    struct buf command; /* as a message, until it is delivered */
};

static struct signed_call *signed_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct signed_call, front);
}

/* --- The message ----------------------------------------------------------------------------- */

static bool body_read(struct signed_call *call, struct slice *ret_command, struct error *err)
{
    struct document_value text, command, database;

    if (!front_http_body_value(&call->over_http, DEPTH_MORE, &text, err) ||
        !document_extended_read(&text, call->arena, &command, err))
        return false;
    if (command.type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the body must be a command: an object that begins with its name");
    if (document_find(command.document, SLICE("$db"), &database))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the path names the database: the command has no $db here");
    *ret_command = command.document;
    return true;
}

static void message_write(struct signed_call *call, struct slice command)
{
    struct buf *out = &call->command;
    uint8_t prefix[MESSAGE_PREFIX] = {0};
    struct document_iter iter;
    size_t body;

    bytes_put_le32(prefix + 12, MONGO_OP_MSG);
    buf_append(out, prefix, sizeof prefix);
    body = document_begin(out);
    document_iter_init(&iter, command);
    while (document_iter_next(&iter))
        document_append(out, iter.key, &iter.value);
    document_append_string(out, SLICE("$db"), call->database);
    document_end(out, body);
    if (!buf_overflowed(out))
        bytes_put_le32(out->data, (uint32_t)out->len);
}

/* --- The reply ------------------------------------------------------------------------------- */

static bool reply_write(struct signed_call *call, struct slice message, struct error *err)
{
    CLEANUP(buf_done) struct buf typed;
    struct document_iter iter;
    size_t begin;

    buf_init(&typed, FRONT_HTTP_BODY_MAX);
    if (message.len < MESSAGE_PREFIX + DOCUMENT_EMPTY)
        return error_set(err, ERROR_TOO_LARGE, "the reply does not fit a message");
    if (!front_call_hold(&call->front, REPLY_COPIES * message.len, err))
        return false;
    begin = document_begin(&typed);
    document_iter_init(&iter, slice_skip(message, MESSAGE_PREFIX));
    while (document_iter_next(&iter))
        document_extended_append(&typed, iter.key, &iter.value);
    document_end(&typed, begin);
    if (!buf_overflowed(&typed))
        document_json_write(buf_slice(&typed), &call->body);
    return (!buf_overflowed(&typed) && !buf_overflowed(&call->body)) ||
           error_set(err, ERROR_TOO_LARGE, "the reply would be larger than %zu bytes",
                     call->body.max);
}

/* From the thread that has carried out the command. */
static void answered(void *context, uint8_t *bytes, size_t len)
{
    struct signed_call *call = context;
    struct error err;
    bool fine;

    call->charge_cru = call->session.last_cru;
    call->status = 200;
    fine = reply_write(call, slice_of(bytes, len), &err);
    memory_free(bytes);
    arena_free(call->session.sasl.arena);
    arena_free(call->session.grants.arena);
    OPENSSL_cleanse(&call->session, sizeof call->session);
    front_call_finish(&call->front, fine, &err);
}

/* --- Its life -------------------------------------------------------------------------------- */

static const struct front_call_kind kind_delivered;

static void deliver(struct front_call *front)
{
    struct signed_call *call = signed_of(front);
    struct mongo_delivery delivery = {
        .session = &call->session,
        .loop = call->loop,
        .started_ns = call->http->started_ns,
        .cancelled = net_http_cancel_flag(call->http),
        .answered = answered,
        .context = call,
    };

    struct error err;

    if (!front_http_grown(&call->over_http, &err)) { /* what was read stays until the answer */
        buf_done(&call->command);
        front_call_finish(front, false, &err);
        return;
    }
    call->kind = &kind_delivered;
    delivery.bytes = buf_take(&call->command, &delivery.len);
    mongo_wire_deliver(call->mongo->wires[MONGO_FACE_MONGOS], &delivery);
}

static bool call_run(struct front_call *front, struct error *err)
{
    struct signed_call *call = signed_of(front);
    struct slice command;

    if (!body_read(call, &command, err))
        return false;
    buf_init(&call->command, MONGO_MESSAGE_BYTES_MAX);
    message_write(call, command);
    if (buf_overflowed(&call->command)) {
        buf_done(&call->command);
        return error_set(err, ERROR_TOO_LARGE, "a command has at most %d bytes",
                         MONGO_MESSAGE_BYTES_MAX);
    }
    call->park = deliver;
    return true;
}

static uint64_t call_part(const struct front_call *front)
{
    return front_owner_part(signed_of(front)->database, SLICE_NONE);
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct signed_call *call = signed_of(front);

    front_gateway_describe(&call->over_gateway, request);
    request->front = "mongo";
    request->database = call->database;
    request->who = call->session.by_key ? SLICE("key") : SLICE_NONE;
}

/* What is refused before there is a command. */
static const struct front_call_kind kind = {.run = call_run,
                                            .part = call_part,
                                            .answer = front_gateway_answer,
                                            .refuse = front_gateway_refuse,
                                            .describe = call_describe};

static const struct front_call_kind kind_delivered = {
    .part = call_part, .answer = front_gateway_answer, .refuse = front_gateway_refuse};

void mongo_signed_init(struct mongo *mongo)
{
    front_gateway_init(&mongo->gateway, &mongo->options.services, &mongo->options.door, &kind, "");
    mongo->gateway.for_no_page = true;
}

/* --- Who asks -------------------------------------------------------------------------------- */

bool mongo_signed_takes(const struct net_http_request *request)
{
    return front_path_is_door(request->path, SLICE("mongo"));
}

static bool path_read(struct signed_call *call, struct front_path *ret_path, struct error *err)
{
    if (!front_path_split(call->http->path, call->arena, ret_path, err))
        return false;
    if (ret_path->count != SEGMENTS)
        return error_set(err, ERROR_NOT_FOUND, "commands go to /_orrery/mongo/DATABASE");
    call->database = arena_copy(call->arena, ret_path->decoded[2]);
    return slice_equal(call->http->method, SLICE("POST")) ||
           front_http_method_refuse(&call->over_http, err);
}

static void session_make(struct signed_call *call, bool readonly)
{
    struct mongo_session *session = &call->session;

    session->mongo = call->mongo;
    session->face = MONGO_FACE_MONGOS;
    session->peer = (struct mongo_peer){.address = call->http->peer, .tls = call->http->tls};
    session->known = session->by_key = session->by_signature = true;
    session->key.readonly = readonly;
    snprintf(session->account, sizeof session->account, "%.*s", SLICE_ARG(call->account.id));
    snprintf(session->user, sizeof session->user, "%.*s", SLICE_ARG(call->account.id));
    snprintf(session->user_database, sizeof session->user_database, "admin");
    snprintf(session->application, sizeof session->application, "HTTP");
}

static bool call_admit(struct signed_call *call, const struct front_path *path, struct error *err)
{
    bool readonly;

    if (!front_cors_check(&call->over_gateway, err) ||
        !front_http_account_find(&call->over_http, path->account,
                                 net_http_header(call->http, SLICE("host")), err) ||
        !front_authorize_order(&call->over_gateway, path, "MONGO.EXECUTE", &readonly, err))
        return false;
    session_make(call, readonly);
    return front_http_bill(&call->over_http, err);
}

/* Who waits for changes, and has gone, need not. */
static void client_gone(struct net_http_request *request)
{
    const struct mongo *mongo = request->user;

    mongo_waits_look(mongo->waits);
}

void mongo_signed_handle(struct mongo *mongo, struct net_http_request *request)
{
    struct signed_call *call = ARENA_NEW(request->arena, struct signed_call);
    struct front_path path;
    struct error err;

    front_gateway_begin(&mongo->gateway, &call->over_gateway, request,
                        net_http_header(request, SLICE("x-ms-activity-id")));
    call->mongo = mongo;
    request->user = mongo;
    request->gone = client_gone;
    if (!front_http_host_check(&call->over_http, &err))
        front_call_finish(&call->front, false, &err);
    else if (front_cors_is_preflight(&call->over_gateway))
        front_call_finish(&call->front, front_cors_preflight(&call->over_gateway, &err), &err);
    else if (!path_read(call, &path, &err) || !call_admit(call, &path, &err))
        front_call_finish(&call->front, false, &err);
    else
        front_call_run(&call->front, true);
}
