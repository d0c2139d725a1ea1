/* The way of a message: read, find the command, who asks, run it, reply. Up to the command nothing
 * blocks but what is long: such a message goes to a worker as it is and is read there. */
#include "front/mongo/command/mongo.h"

#include "base/clock.h"
#include "front/fault.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"
#include "front/mongo/command/index_uses.h"
#include "front/mongo/command/item.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/labels.h"
#include "front/mongo/command/operations.h"
#include "front/mongo/command/permit.h"
#include "front/mongo/command/samples.h"
#include "front/mongo/command/sampling.h"
#include "front/mongo/command/session.h"
#include "front/mongo/command/signed.h"
#include "front/mongo/command/transact.h"
#include "front/owner.h"

#include <openssl/crypto.h>

enum {
    LOOP_BYTES_MAX = 64 * 1024, /* a longer message is read on a worker */
    STRANGER_BYTES_MAX = 64 * 1024,
    REPLY_USUAL = 512,
    MESSAGE_COPIES = 2, /* what a long message becomes while it is worked on */
};

/* --- Sessions -------------------------------------------------------------------------------- */

struct face_context {
    struct mongo *mongo;
    enum mongo_face face;
};

static void *session_open(void *context, const struct mongo_peer *peer)
{
    const struct face_context *face = context;
    struct mongo_session *session = MEMORY_NEW(struct mongo_session);

    session->mongo = face->mongo;
    session->face = face->face;
    session->peer = *peer;
    /* as a mongod on the same machine that was started without users */
    session->known = face->mongo->options.door.dev && net_address_is_loopback(&peer->address);
    snprintf(session->account, sizeof session->account, "%s", CATALOGUE_ACCOUNT_DEFAULT);
    return session;
}

static void session_close(void *state)
{
    struct mongo_session *session = state;

    arena_free(session->sasl.arena);
    arena_free(session->grants.arena);
    OPENSSL_cleanse(session, sizeof *session);
    memory_free(session);
}

static size_t session_bytes_max(const void *state)
{
    const struct mongo_session *session = state;

    return session->known ? MONGO_MESSAGE_BYTES_MAX : STRANGER_BYTES_MAX;
}

/* Who waits for changes, and has gone, need not. */
static void client_gone(void *context)
{
    const struct face_context *face = context;

    mongo_waits_look(face->mongo->waits);
}

/* --- The front ------------------------------------------------------------------------------- */

static void handle(struct mongo_request *request, void *context);

struct whole {
    struct mongo mongo;
    struct face_context faces[MONGO_FACES];
};

struct mongo *mongo_new(const struct mongo_options *options)
{
    struct whole *whole = MEMORY_NEW(struct whole);
    struct mongo *mongo = &whole->mongo;
    uint64_t seed;
    uint32_t first;

    mongo->options = *options;
    mongo->credentials = mongo_credentials_new(options->seal);
    mongo->directories = mongo_directories_new(options->services.catalogue);
    mongo->cursors = front_cursors_new(&(struct front_cursors_options){
        .count_max = options->cursors_max, .account_count_max = (options->cursors_max + 1) / 2});
    mongo->sessions = mongo_sessions_new(
        &(struct mongo_sessions_options){.count_max = options->sessions_max,
                                         .session_ms = options->session_ms,
                                         .transaction_ms = options->transaction_ms,
                                         .transactions_max = options->transactions_max,
                                         .transaction_free = mongo_transact_free});
    mongo->operations = mongo_operations_new();
    mongo->index_uses = mongo_index_uses_new();
    mongo->sampling = mongo_sampling_new(options->services.catalogue);
    mongo->samples = mongo_samples_new();
    random_secret(&seed, sizeof seed);
    mongo->attempts = mongo_attempts_new(seed);
    mongo->intents = mongo_intents_new();
    mongo->pending = mongo_pending_new();
    if (options->test_commands)
        mongo->fail_points = mongo_fail_points_new();
    mongo_cluster_time_init(&mongo->time,
                            cluster_times(catalogue_cluster(options->services.catalogue)));
    mongo->waits = mongo_waits_new(mongo->time.times);
    mongo->stream_count = mongo_stream_count_new(options->streams_max);
    mongo->started_ms = clock_read_monotonic_ms(options->services.clock);
    random_secret(&first, sizeof first);
    random_secret(mongo->object_id_random, sizeof mongo->object_id_random);
    random_secret(mongo->process_id, sizeof mongo->process_id);
    atomic_init(&mongo->object_ids, first);
    for (int i = 0; i < MONGO_FACES; i++) {
        whole->faces[i] = (struct face_context){mongo, (enum mongo_face)i};
        mongo->wires[i] = mongo_wire_new(
            &options->wire, &(struct mongo_wire_handler){.open = session_open,
                                                         .handle = handle,
                                                         .close = session_close,
                                                         .gone = client_gone,
                                                         .bytes_max = session_bytes_max,
                                                         .context = &whole->faces[i]});
    }
    mongo_signed_init(mongo);
    snprintf(mongo->advertised, sizeof mongo->advertised, "%s", options->advertise);
    return mongo;
}

struct mongo_wire *mongo_wire_of(struct mongo *mongo, enum mongo_face face)
{
    return mongo->wires[face];
}

void mongo_listens(struct mongo *mongo, const struct net_address *address)
{
    if (!mongo->options.advertise[0])
        net_address_text(address, mongo->advertised);
}

void mongo_stop(struct mongo *mongo)
{
    mongo_waits_stop(mongo->waits);
}

uint64_t mongo_commands_count(const struct mongo *mongo, size_t kind, const char **ret_name)
{
    static const char *const names[MONGO_TALLIES] = {
        [MONGO_TALLY_INSERT] = "insert",   [MONGO_TALLY_QUERY] = "query",
        [MONGO_TALLY_UPDATE] = "update",   [MONGO_TALLY_DELETE] = "delete",
        [MONGO_TALLY_GETMORE] = "getmore", [MONGO_TALLY_COMMAND] = "command",
    };

    *ret_name = kind < MONGO_TALLIES ? names[kind] : NULL;
    return *ret_name ? atomic_load_explicit(&mongo->tallies[kind], memory_order_relaxed) : 0;
}

uint64_t mongo_commands_failed(const struct mongo *mongo)
{
    return atomic_load_explicit(&mongo->failed, memory_order_relaxed);
}

void mongo_wait(struct mongo *mongo)
{
    mongo_waits_stop(mongo->waits);
    front_calls_wait(&mongo->under_way);
}

void mongo_free(struct mongo *mongo)
{
    if (!mongo)
        return;
    mongo_sessions_free(mongo->sessions); /* with their transactions, which have cursors */
    mongo_intents_free(mongo->intents);
    mongo_pending_free(mongo->pending);
    mongo_fail_points_free(mongo->fail_points);
    front_cursors_free(mongo->cursors);
    mongo_waits_free(mongo->waits);
    mongo_stream_count_free(mongo->stream_count);
    for (int i = 0; i < MONGO_FACES; i++)
        mongo_wire_free(mongo->wires[i]);
    mongo_operations_free(mongo->operations);
    mongo_index_uses_free(mongo->index_uses);
    mongo_sampling_free(mongo->sampling);
    mongo_samples_free(mongo->samples);
    mongo_attempts_free(mongo->attempts);
    mongo_credentials_free(mongo->credentials);
    mongo_directories_free(mongo->directories);
    memory_free(CONTAINER_OF(mongo, struct whole, mongo));
}

/* --- Who asks -------------------------------------------------------------------------------- */

static struct mongo_call *mongo_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct mongo_call, front);
}

/* The account of a session that is known. What is missing is told when a command needs it. */
static bool account_find(struct mongo_call *call, struct error *err)
{
    struct mongo_session *session = call->session;

    if (!front_account_find(call->services, slice_of_text(session->account),
                            call->options->door.accounts_by_use, call->arena, &call->account, err))
        return false;
    if (session->by_key && !session->by_signature &&
        !front_key_holds(&session->key, &call->account)) {
        session->known = session->by_key = false;
        return mongo_error_set(err, MONGO_REAUTHENTICATION_REQUIRED,
                               "the key that the connection was authenticated with has been "
                               "replaced");
    }
    if (session->by_user && !mongo_permit_refresh(call, err))
        return false;
    call->owner = front_owner_find(call->services, call->account.account, call->account.id);
    if (call->owner)
        mongo_request_bill(call->request, net_owner_memory(call->owner));
    return true;
}

static bool need_check(struct mongo_call *call, struct error *err)
{
    enum mongo_need need = call->command->need;

    if (need == MONGO_NEED_NOTHING)
        return true;
    if (call->stranger) {
        *err = *call->stranger;
        return false;
    }
    if (!call->session->known)
        return mongo_error_set(err, MONGO_UNAUTHORIZED, "Command %.*s requires authentication",
                               SLICE_ARG(call->name));
    if (!front_account_check(call->account.missing, call->account.id, err))
        return false;
    if (need == MONGO_NEED_WRITE && call->session->by_key && call->session->key.readonly)
        return mongo_error_set(err, MONGO_UNAUTHORIZED,
                               "not authorized on %.*s to execute command { %.*s }: the key may "
                               "only read",
                               (int)MIN(call->message.database.len, (size_t)64),
                               (const char *)call->message.database.data, SLICE_ARG(call->name));
    return front_owner_hold(call->owner, 0, err);
}

/* Whoever came in as a user may do what its roles say. Where the command has its place is looked at
 * before, so that it is refused the same way for everybody. */
static bool user_check(const struct mongo_call *call, struct error *err)
{
    return call->command->need == MONGO_NEED_NOTHING || !call->session->by_user ||
           mongo_permit_check(call, err);
}

/* --- What is asked --------------------------------------------------------------------------- */

static bool message_read(struct mongo_call *call, struct error *err)
{
    size_t len = mongo_message_unpacked_len(call->request->bytes);

    if (!call->may_block && len > LOOP_BYTES_MAX) {
        call->cold = true;
        return false;
    }
    if (len != call->request->bytes.len && !front_call_hold(&call->front, len, err))
        return false;
    switch (mongo_message_read(call->request->bytes, call->validated, call->arena, &call->message,
                               err)) {
    case MONGO_READ_GOOD:
        call->understood = call->validated = true;
        return true;
    case MONGO_READ_REFUSED:
        break;
    case MONGO_READ_LAST:
        call->close = true;
        break;
    case MONGO_READ_BROKEN:
        call->broken = call->close = true;
        return error_set(err, ERROR_BAD_REQUEST, "no message of MongoDB's protocol");
    }
    return false;
}

static bool command_find(struct mongo_call *call, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, call->message.body);
    if (!document_iter_next(&iter))
        return mongo_error_set(err, MONGO_COMMAND_NOT_FOUND, "no such command: ''");
    call->name = iter.key;
    call->target = iter.value;
    call->command = mongo_command_find(call->name);
    if (call->message.operation == MONGO_OP_QUERY && (!call->command || !call->command->legacy))
        return mongo_error_set(err, MONGO_UNSUPPORTED_OP_QUERY_COMMAND,
                               "Unsupported OP_QUERY command: %.*s. The client driver may require "
                               "an upgrade.",
                               (int)MIN(call->name.len, (size_t)64), (const char *)call->name.data);
    if (!call->command)
        return mongo_error_set(err, MONGO_COMMAND_NOT_FOUND, "no such command: '%.*s'",
                               (int)MIN(call->name.len, (size_t)64), (const char *)call->name.data);
    return true;
}

bool mongo_call_keep(struct mongo_call *call)
{
    struct error ignored;

    if (call->kept)
        return true;
    front_call_keep(&call->front);
    return message_read(call, &ignored) && command_find(call, &ignored);
}

static bool place_check(const struct mongo_call *call, struct error *err)
{
    if (call->command->admin && !slice_equal(call->message.database, SLICE("admin")))
        return mongo_error_set(err, MONGO_UNAUTHORIZED,
                               "%s may only be run against the admin database.",
                               call->command->name);
    if (!call->command->run)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "%s: %s", call->command->name,
                               call->command->meaning);
    return true;
}

/* --- Its life -------------------------------------------------------------------------------- */

static void reply_begin(struct mongo_call *call)
{
    buf_clear(&call->reply);
    call->reply_begin = document_begin(&call->reply);
}

/* By use, where something may come of it. */
static bool account_is_made(const struct mongo_call *call)
{
    return call->command->need == MONGO_NEED_WRITE && !call->account.account;
}

static bool call_run(struct front_call *front, struct error *err)
{
    struct mongo_call *call = mongo_of(front);
    bool fine;

    reply_begin(call);
    if (!mongo_account_return(call, err) || !message_read(call, err) || !command_find(call, err) ||
        !mongo_fail_meet(call, err) || !need_check(call, err) || !place_check(call, err) ||
        !user_check(call, err) || !mongo_generic_check(call, err))
        return false;
    if (!call->may_block && (call->command->place == MONGO_PLACE_WORKER || account_is_made(call))) {
        call->cold = true;
        return false;
    }
    if (account_is_made(call) &&
        !front_account_make(call->services, call->account.id, &call->account.account, err))
        return false;
    if (call->may_block)
        mongo_operation_begin(call);
    if (!mongo_session_enter(call, err))
        return false;
    fine = call->command->run(call, err);
    mongo_javascript_done(call);
    if (!call->may_block && *call->pending)
        return fine; /* it leaves when it is settled (point.c), here on the loop */
    return mongo_session_leave(call, fine, err);
}

static uint64_t call_part(const struct front_call *front)
{
    const struct mongo_call *call = mongo_of(front);

    return call->understood && call->target.type == DOCUMENT_STRING
               ? front_owner_part(call->message.database, call->target.text)
               : 0;
}

/* What getLastRequestStatistics tells of: not of itself, nor of what clients do by themselves. */
static void call_settle(struct front_call *front)
{
    struct mongo_call *call = mongo_of(front);
    struct mongo_session *session = call->session;

    mongo_operation_end(call);
    if (!call->command)
        return;
    atomic_fetch_add_explicit(&call->mongo->tallies[call->command->tally], 1, memory_order_relaxed);
    if (call->command->need < MONGO_NEED_READ)
        return;
    snprintf(session->last_name, sizeof session->last_name, "%s", call->command->name);
    session->last_cru = call->charge_cru;
    session->last_ns = clock_monotonic_ns() - call->request->started_ns;
}

/* Does the client take another reply without asking? One that brings a checksum with each message
 * is not asked for in its name. */
static bool may_repeat(const struct mongo_call *call)
{
    return call->repeats && call->message.operation == MONGO_OP_MSG &&
           (call->message.flags & MONGO_FLAG_EXHAUST_ALLOWED) &&
           !(call->message.flags & MONGO_FLAG_CHECKSUM) &&
           !mongo_waits_are_over(call->mongo->waits);
}

/* Sends the reply, which is ended, or nothing to whoever does not want one. */
static void call_send(struct mongo_call *call)
{
    int32_t id = atomic_fetch_add_explicit(&call->mongo->request_ids, 1, memory_order_relaxed);
    /* answering ends the request, and with it the arena the call is in */
    CLEANUP(buf_done) struct buf reply = call->reply;
    struct mongo_request *request = call->request;
    const struct mongo_reply sent = {.id = id, .more = may_repeat(call), .body = buf_slice(&reply)};
    bool close = call->close;
    struct buf out;
    size_t len = 0;
    uint8_t *bytes = NULL;
    struct error err;

    buf_init(&out, MONGO_MESSAGE_BYTES_MAX + 1024);
    if (!call->broken && !(call->message.flags & MONGO_FLAG_MORE_TO_COME)) {
        if (mongo_reply_append(&call->message, &sent, &out, &err))
            bytes = buf_take(&out, &len);
        else
            close = true; /* replies are kept far below the limit */
    }
    buf_done(&out);
    if (bytes && sent.more)
        mongo_request_repeat(request, id);
    mongo_request_answer(request, bytes, len, close);
}

static void call_answer(struct front_call *front)
{
    struct mongo_call *call = mongo_of(front);

    mongo_fail_concern_append(call);
    document_append_double(&call->reply, SLICE("ok"), 1);
    mongo_session_reply_append(call);
    document_end(&call->reply, call->reply_begin);
    call_send(call);
}

static void call_refuse(struct front_call *front, const struct error *cause)
{
    struct mongo_call *call = mongo_of(front);
    struct error told = *cause, *err = &told;
    char name[MONGO_CODE_NAME_SIZE];

    mongo_operation_tell(call, err);
    atomic_fetch_add_explicit(&call->mongo->failed, 1, memory_order_relaxed);
    call->repeats = false;
    reply_begin(call);
    document_append_double(&call->reply, SLICE("ok"), 0);
    document_append_string(&call->reply, SLICE("errmsg"),
                           mongo_error_text(call, err, call->wait_ms));
    if (call->errmsg_twice)
        document_append_string(&call->reply, SLICE("errMsg"),
                               mongo_error_text(call, err, call->wait_ms));
    document_append_int32(&call->reply, SLICE("code"), mongo_error_code(err));
    document_append_string(&call->reply, SLICE("codeName"),
                           slice_of_text(mongo_error_name(err, name)));
    if (mongo_error_code(err) == MONGO_DUPLICATE_KEY)
        mongo_duplicate_append(call, &call->reply);
    if (call->error_info.data && mongo_error_code(err) == MONGO_DOCUMENT_VALIDATION_FAILURE) {
        const struct document_value info = document_object(call->error_info);

        document_append(&call->reply, SLICE("errInfo"), &info);
    }
    mongo_labels_append(call, mongo_error_code(err), false);
    mongo_session_reply_append(call);
    document_end(&call->reply, call->reply_begin);
    call_send(call);
}

/* What all APIs call it. */
static enum observed_operation observed_of(const struct mongo_command *command)
{
    static const struct {
        const char *name;
        enum observed_operation operation;
    } named[] = {
        {"aggregate", OBSERVED_QUERY},    {"count", OBSERVED_QUERY},
        {"distinct", OBSERVED_QUERY},     {"findAndModify", OBSERVED_PATCH},
        {"explain", OBSERVED_QUERY},      {"mapReduce", OBSERVED_QUERY},
        {"usersInfo", OBSERVED_METADATA}, {"rolesInfo", OBSERVED_METADATA},
    };

    switch (command->tally) {
    case MONGO_TALLY_INSERT:
        return OBSERVED_CREATE;
    case MONGO_TALLY_QUERY:
        return OBSERVED_QUERY;
    case MONGO_TALLY_GETMORE:
        return OBSERVED_MORE;
    case MONGO_TALLY_UPDATE:
        return OBSERVED_PATCH;
    case MONGO_TALLY_DELETE:
        return OBSERVED_DELETE;
    default:
        break;
    }
    if (command->need < MONGO_NEED_READ)
        return OBSERVED_OTHER;
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (strcmp(named[i].name, command->name) == 0)
            return named[i].operation;
    return command->need == MONGO_NEED_WRITE ? OBSERVED_CHANGE : OBSERVED_METADATA;
}

static struct slice call_who(const struct mongo_call *call)
{
    const struct mongo_session *session = call->session;

    if (session->by_user)
        return arena_printf(call->arena, "user %s", session->user);
    return session->by_key ? SLICE("key") : session->known ? SLICE("local") : SLICE_NONE;
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct mongo_call *call = mongo_of(front);

    request->front = "mongo";
    request->peer = &call->session->peer.address;
    request->started_ns = call->request->started_ns;
    request->bytes_in = call->request->bytes.len;
    request->bytes_out = call->reply.len;
    request->who = call_who(call);
    if (!call->command)
        return;
    request->name = call->command->name;
    request->observed.operation = observed_of(call->command);
    request->database = call->message.database;
    if (call->target.type == DOCUMENT_STRING)
        request->container = call->target.text;
}

static const struct front_call_kind kind = {.run = call_run,
                                            .part = call_part,
                                            .settle = call_settle,
                                            .answer = call_answer,
                                            .refuse = call_refuse,
                                            .describe = call_describe};

/* --- The transport --------------------------------------------------------------------------- */

static void transport_keep(struct front_call *call)
{
    mongo_request_keep(mongo_of(call)->request);
}

static void transport_restart(struct front_call *call)
{
    buf_clear(&mongo_of(call)->reply);
}

static const atomic_bool *transport_cancel_flag(const struct front_call *call)
{
    return mongo_request_cancel_flag(mongo_of(call)->request);
}

static const struct front_transport transport = {
    .keep = transport_keep, .restart = transport_restart, .cancel_flag = transport_cancel_flag};

static void handle(struct mongo_request *request, void *context)
{
    const struct face_context *face = context;
    struct mongo *mongo = face->mongo;
    struct mongo_call *call = ARENA_NEW(request->arena, struct mongo_call);
    struct error err;

    call->transport = &transport;
    call->kind = &kind;
    call->services = &mongo->options.services;
    call->under_way = &mongo->under_way;
    call->loop = request->loop;
    call->arena = request->arena;
    call->seen = &call->observed;
    call->mongo = mongo;
    call->options = &mongo->options;
    call->session = request->session;
    call->request = request;
    if (request->bytes.len > LOOP_BYTES_MAX)
        call->work_bytes = MESSAGE_COPIES * request->bytes.len;
    buf_init(&call->reply, MONGO_MESSAGE_BYTES_MAX);
    (void)buf_reserve(&call->reply, REPLY_USUAL);
    if (call->session->known && !account_find(call, &err)) {
        /* hello and its like are answered all the same; others hear why */
        call->stranger = ARENA_NEW(call->arena, struct error);
        *call->stranger = err;
    }
    front_call_run(&call->front, request->delivered);
}
