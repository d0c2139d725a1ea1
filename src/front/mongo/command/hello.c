/* hello: what the server is. It is answered before authentication, on any database, and passes over
 * fields it does not know: every connection begins with it, and clients of all ages send it. */
#include "base/clock.h"
#include "front/mongo/command/call.h"
#include "front/mongo/command/sasl.h"
#include "front/mongo/wire/compress.h"

enum {
    WRITE_BATCH_MAX = 100000,
    MINUTE_MS = 60000,
    WIRE_VERSION_MIN = 0,
    WIRE_VERSION_MAX = 21, /* MongoDB 7.0 */
    TOPOLOGY_COUNTER = 0,
    AWAIT_MS_MAX = 10 * 60 * 1000,
};

static void replica_set_append(struct mongo_call *call)
{
    struct slice host = slice_of_text(call->mongo->advertised);
    int64_t now_ms = clock_read_wall_ms(call->services->clock);
    struct document_value election = {.type = DOCUMENT_OBJECT_ID, .id = call->mongo->process_id};
    struct document_value stamp = {.type = DOCUMENT_TIMESTAMP,
                                   .timestamp = (uint64_t)(now_ms / 1000) << 32 | 1};
    struct buf *out = &call->reply;
    size_t part, inner;

    document_append_string(out, SLICE("setName"), SLICE("globaldb"));
    document_append_int32(out, SLICE("setVersion"), 1);
    document_append_bool(out, SLICE("secondary"), false);
    part = document_append_array_begin(out, SLICE("hosts"));
    document_append_string(out, SLICE("0"), host);
    document_end(out, part);
    document_append_string(out, SLICE("primary"), host);
    document_append_string(out, SLICE("me"), host);
    document_append(out, SLICE("electionId"), &election);
    part = document_append_object_begin(out, SLICE("lastWrite"));
    inner = document_append_object_begin(out, SLICE("opTime"));
    document_append(out, SLICE("ts"), &stamp);
    document_append_int64(out, SLICE("t"), 1);
    document_end(out, inner);
    document_append_date(out, SLICE("lastWriteDate"), now_ms);
    document_end(out, part);
}

/* Those of the client's that we have, in its order. */
static void compression_append(struct mongo_call *call)
{
    struct document_value wanted;
    struct document_iter iter;
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;
    size_t list = 0;

    if (!document_find(call->message.body, SLICE("compression"), &wanted) ||
        wanted.type != DOCUMENT_ARRAY)
        return;
    document_iter_init(&iter, wanted.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING ||
            mongo_compressor_find(iter.value.text) == MONGO_COMPRESSOR_NONE)
            continue;
        if (!count)
            list = document_append_array_begin(&call->reply, SLICE("compression"));
        document_append_string(&call->reply, document_index_key(count++, text), iter.value.text);
    }
    if (count)
        document_end(&call->reply, list);
}

/* --- Waiting for another topology ------------------------------------------------------------ */

/* What a client knows of the topology, where it wants to hear of the next one. */
struct awaiting {
    bool given;
    bool same; /* as it is */
    int64_t ms;
};

static bool version_read(const struct mongo_call *call, const struct document_value *version,
                         struct awaiting *awaiting, struct error *err)
{
    struct document_value process, counter;
    int64_t number;

    if (version->type != DOCUMENT_OBJECT ||
        !document_find(version->document, SLICE("processId"), &process) ||
        process.type != DOCUMENT_OBJECT_ID ||
        !document_find(version->document, SLICE("counter"), &counter) ||
        !document_to_int64(&counter, &number) || number < 0)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "'topologyVersion' is {processId: an ObjectId, counter: a long}");
    awaiting->same = memcmp(process.id, call->mongo->process_id, DOCUMENT_OBJECT_ID_SIZE) == 0;
    if (awaiting->same && number > TOPOLOGY_COUNTER)
        return mongo_error_set(err, 31372,
                               "Received a topology version with counter: %lld which is greater "
                               "than the server topology version counter: %d",
                               (long long)number, TOPOLOGY_COUNTER);
    awaiting->same = awaiting->same && number == TOPOLOGY_COUNTER;
    return true;
}

static bool awaiting_read(const struct mongo_call *call, struct awaiting *ret_awaiting,
                          struct error *err)
{
    struct document_value version, wait;
    bool known = document_find(call->message.body, SLICE("topologyVersion"), &version);
    bool waits = document_find(call->message.body, SLICE("maxAwaitTimeMS"), &wait);

    *ret_awaiting = (struct awaiting){.given = known && waits};
    if (known != waits)
        return mongo_error_set(err, 31368, "A request with %s",
                               known ? "a 'topologyVersion' must include 'maxAwaitTimeMS'"
                                     : "'maxAwaitTimeMS' must include a 'topologyVersion'");
    if (!known)
        return true;
    if (!document_to_int64(&wait, &ret_awaiting->ms) || ret_awaiting->ms < 0)
        return mongo_error_set(err, 31373, "maxAwaitTimeMS must be a non-negative integer");
    ret_awaiting->ms = MIN(ret_awaiting->ms, (int64_t)AWAIT_MS_MAX);
    return version_read(call, &version, ret_awaiting, err);
}

/* Nobody is waited for in the name of an account: hello needs none, and its state is let go. */
static void hello_park(struct front_call *front)
{
    struct mongo_call *call = CONTAINER_OF(front, struct mongo_call, front);
    struct slice id = call->account.id;

    front_account_done(&call->account);
    call->account.id = id;
    mongo_waits_add(call->mongo->waits, &call->wait, front);
}

/* The topology of a server stays as it is while it runs, so that only time ends the wait, the
 * client, or the server. True: it is over. */
static bool awaited(struct mongo_call *call, const struct awaiting *awaiting, struct error *err)
{
    int64_t now_ms = clock_read_monotonic_ms(call->services->clock);

    if (!awaiting->given || !awaiting->same)
        return true;
    if (!mongo_call_blocks(call))
        return false;
    if (!call->wait.until_ms)
        call->wait.until_ms = now_ms + awaiting->ms;
    if (now_ms >= call->wait.until_ms || mongo_waits_are_over(call->mongo->waits) ||
        (call->cancelled && atomic_load(call->cancelled)))
        return true;
    call->wait.after = UINT64_MAX; /* nothing that is written is of interest */
    call->wait.cancelled = call->cancelled;
    call->park = hello_park;
    err->code = ERROR_NONE;
    return false;
}

static void topology_append(struct mongo_call *call)
{
    const struct document_value process = {.type = DOCUMENT_OBJECT_ID,
                                           .id = call->mongo->process_id};
    size_t version = document_append_object_begin(&call->reply, SLICE("topologyVersion"));

    document_append(&call->reply, SLICE("processId"), &process);
    document_append_int64(&call->reply, SLICE("counter"), TOPOLOGY_COUNTER);
    document_end(&call->reply, version);
}

/* The name that fail points know a client by. */
static void application_note(struct mongo_call *call)
{
    struct document_value client, application, name;
    struct mongo_session *session = call->session;

    if (document_find(call->message.body, SLICE("client"), &client) &&
        client.type == DOCUMENT_OBJECT &&
        document_find(client.document, SLICE("application"), &application) &&
        application.type == DOCUMENT_OBJECT &&
        document_find(application.document, SLICE("name"), &name) && name.type == DOCUMENT_STRING)
        snprintf(session->application, sizeof session->application, "%.*s",
                 (int)MIN(name.text.len, (size_t)MONGO_APPLICATION_MAX),
                 (const char *)name.text.data);
}

bool mongo_hello(struct mongo_call *call, struct error *err)
{
    struct buf *out = &call->reply;
    struct document_value value;
    struct awaiting awaiting;

    if (!awaiting_read(call, &awaiting, err))
        return false;
    application_note(call);
    if (!awaited(call, &awaiting, err))
        return false;
    call->repeats = awaiting.given;
    if (slice_equal(call->name, SLICE("hello")))
        document_append_bool(out, SLICE("isWritablePrimary"), true);
    else
        document_append_bool(out, SLICE("ismaster"), true);
    if (document_find(call->message.body, SLICE("helloOk"), &value) &&
        value.type == DOCUMENT_BOOL && value.boolean)
        document_append_bool(out, SLICE("helloOk"), true);
    if (call->session->face == MONGO_FACE_MONGOS)
        document_append_string(out, SLICE("msg"), SLICE("isdbgrid"));
    else
        replica_set_append(call);
    topology_append(call);
    document_append_int32(out, SLICE("maxBsonObjectSize"), MONGO_BSON_BYTES_MAX);
    document_append_int32(out, SLICE("maxMessageSizeBytes"), MONGO_MESSAGE_BYTES_MAX);
    document_append_int32(out, SLICE("maxWriteBatchSize"), WRITE_BATCH_MAX);
    document_append_date(out, SLICE("localTime"), clock_read_wall_ms(call->services->clock));
    document_append_int32(out, SLICE("logicalSessionTimeoutMinutes"),
                          (int32_t)(call->options->session_ms / MINUTE_MS));
    document_append_int32(out, SLICE("connectionId"),
                          (int32_t)(call->session->peer.number & 0x7FFFFFFF));
    document_append_int32(out, SLICE("minWireVersion"), WIRE_VERSION_MIN);
    document_append_int32(out, SLICE("maxWireVersion"), WIRE_VERSION_MAX);
    document_append_bool(out, SLICE("readOnly"), false);
    compression_append(call);
    mongo_sasl_hello(call);
    return true;
}
