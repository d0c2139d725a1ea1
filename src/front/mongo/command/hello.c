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

static bool await_check(const struct mongo_call *call, struct error *err)
{
    struct document_value value;
    bool version = document_find(call->message.body, SLICE("topologyVersion"), &value);
    bool wait = document_find(call->message.body, SLICE("maxAwaitTimeMS"), &value);

    if (version == wait)
        return true;
    return mongo_error_set(err, 31368, "A request with %s",
                           version ? "a 'topologyVersion' must include 'maxAwaitTimeMS'"
                                   : "'maxAwaitTimeMS' must include a 'topologyVersion'");
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

    if (!await_check(call, err))
        return false;
    application_note(call);
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
