#include "front/gremlin/command/call.h"

#include "base/clock.h"
#include "base/memory.h"
#include "front/gremlin/command/client.h"
#include "front/owner.h"

#include <openssl/crypto.h>

enum {
    FRAME_REST = 64 * 1024,  /* bytes of a frame besides its results */
    LOOP_MESSAGE_MAX = 4096, /* a longer request is not tried on its loop */
};

static struct gremlin_call *gremlin_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct gremlin_call, front);
}

/* --- Its life ----------------------------------------------------------------------------------
 */

static void transport_keep(struct front_call *call UNUSED)
{
}

/* What was held of an attempt that is begun anew. */
static void transport_restart(struct front_call *front)
{
    struct gremlin_call *call = gremlin_of(front);

    call->front.charge_cru = 0;
}

static const atomic_bool *transport_cancel_flag(const struct front_call *call)
{
    return gremlin_channel_gone(gremlin_of(call)->client->channel);
}

static const struct front_transport transport = {
    .keep = transport_keep, .restart = transport_restart, .cancel_flag = transport_cancel_flag};

static const struct front_call_kind kind;

struct gremlin_call *gremlin_call_new(struct gremlin_client *client,
                                      struct gremlin_incoming *message)
{
    struct arena *arena = arena_new();
    struct gremlin_call *call = ARENA_NEW(arena, struct gremlin_call);
    struct gremlin *gremlin = client->gremlin;

    call->transport = &transport;
    call->kind = &kind;
    call->services = &gremlin->options.services;
    call->under_way = &gremlin->under_way;
    call->loop = client->loop;
    call->arena = arena;
    call->front.kept = true;
    call->gremlin = gremlin;
    call->client = client;
    call->message = *message;
    call->text = message->text;
    call->meter = client->meter;
    memory_meter_set(call->meter, 0, message->len);
    call->heap = gremlin_heap_new(&(struct gremlin_heap_options){
        .limit = gremlin->options.memory_bytes_max, .meter = client->meter});
    call->answering.services = call->services;
    call->answering.arena = arena;
    call->answering.heap = call->heap;
    call->answering.started_ns = gremlin_connection_now_ns(client->connection);
    front_http_id_make(&gremlin->http, call->answering.activity_id);
    return call;
}

void gremlin_call_free(struct gremlin_call *call)
{
    memory_meter_set(call->meter, call->message.len, 0);
    gremlin_heap_free(call->heap);
    memory_free(call->message.bytes);
    OPENSSL_cleanse(&call->identity, sizeof call->identity);
    arena_free(call->arena);
}

/* --- Reading -----------------------------------------------------------------------------------
 */

/* One byte of length, the mime type, and behind it the request. A text frame has neither. */
static bool format_find(struct gremlin_call *call, struct slice *ret_body, struct error *err)
{
    const struct gremlin_format_options options = gremlin_formats(call->gremlin);
    struct slice bytes = slice_of(call->message.bytes, call->message.len);
    const struct gremlin_format *format;
    size_t len;

    call->answering.format = gremlin_format_json(&options);
    if (call->message.text) {
        *ret_body = bytes;
        return true;
    }
    len = bytes.len ? bytes.data[0] : 0;
    if (!bytes.len || bytes.len < 1 + len)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a binary frame begins with the length of a mime type and the mime type");
    format = gremlin_format_of_mime(slice_of(bytes.data + 1, len), &options, err);
    if (!format)
        return false;
    call->answering.format = format;
    *ret_body = slice_skip(bytes, 1 + len);
    return true;
}

static void refuse_later(struct gremlin_call *call, uint16_t code)
{
    call->refused = true;
    call->code = code;
}

void gremlin_call_read(struct gremlin_call *call)
{
    struct slice body;
    uint16_t code;

    if (!format_find(call, &body, &call->error)) {
        refuse_later(call, 498);
        return;
    }
    if (!gremlin_format_read(call->answering.format, body, call->heap, &call->request,
                             &call->error)) {
        refuse_later(call, 498);
    } else if (gremlin_heap_failed(call->heap)) {
        gremlin_heap_error(call->heap, &call->error);
        refuse_later(call, 0);
    } else if (!gremlin_asked_read(call->gremlin, &call->request, &call->asked, &code,
                                   &call->error)) {
        refuse_later(call, code);
    }
    if (gremlin_is_string(call->request.id))
        call->answering.id = gremlin_bytes(call->request.id);
}

/* --- Running -----------------------------------------------------------------------------------
 */

static struct gremlin_outgoing outgoing_of(const struct gremlin_call *call, struct buf *frame)
{
    struct gremlin_outgoing message = {.text = call->text &&
                                               !gremlin_format_is_binary(call->answering.format)};

    message.bytes = buf_take(frame, &message.len);
    return message;
}

static size_t frame_bytes_max(const struct gremlin_call *call)
{
    return call->gremlin->options.results_bytes_max + FRAME_REST;
}

static bool batch_send(struct gremlin_evaluation *evaluation, const struct gremlin_batch *batch,
                       struct error *err)
{
    struct gremlin_call *call = CONTAINER_OF(evaluation, struct gremlin_call, evaluation);
    CLEANUP(buf_done) struct buf frame;
    struct gremlin_outgoing message;

    buf_init(&frame, frame_bytes_max(call));
    if (!gremlin_frame_write(&call->answering, 206, batch, &frame, err))
        return false;
    message = outgoing_of(call, &frame);
    return gremlin_channel_send(call->client->channel, call->services->workers, &message,
                                evaluation->deadline_ms, err);
}

static bool call_run(struct front_call *front, struct error *err)
{
    struct gremlin_call *call = gremlin_of(front);

    int64_t tried_cru = call->evaluation.tried_cru;
    uint64_t tried_reads = call->evaluation.tried_reads;

    if (call->evaluation.call) {
        /* begun anew: its values are those of the request, which stay */
        call->evaluation.heap = NULL;
        gremlin_evaluation_done(&call->evaluation);
    }
    call->evaluation = (struct gremlin_evaluation){
        .call = &call->front,
        .gremlin = call->gremlin,
        .identity = &call->identity,
        .asked = &call->asked,
        .session = call->session,
        .heap = call->heap,
        .answering = &call->answering,
        .send = batch_send,
        .tried_cru = tried_cru,
        .tried_reads = tried_reads,
    };
    return gremlin_evaluate(&call->evaluation, err);
}

static uint64_t call_part(const struct front_call *front)
{
    const struct gremlin_call *call = gremlin_of(front);
    struct gremlin_target target;
    struct error err;

    return gremlin_target_find(&call->identity, &call->asked, &target, &err)
               ? front_owner_part(target.database, target.graph)
               : 0;
}

static void call_ended(void *context)
{
    gremlin_client_ended(context);
}

/* Sends the last frame. What the request held goes here, on the worker, rather than on the loop. */
static void call_send(struct gremlin_call *call, struct buf *frame)
{
    struct gremlin_outgoing message = outgoing_of(call, frame);

    if (call->evaluation.call) {
        gremlin_evaluation_done(&call->evaluation);
        call->heap = NULL;
    }
    gremlin_channel_end(call->client->channel, &message, call_ended, call);
}

static void call_refuse_with(struct gremlin_call *call, const struct error *err, uint16_t code)
{
    CLEANUP(buf_done) struct buf frame;

    buf_init(&frame, frame_bytes_max(call));
    gremlin_tally(&call->gremlin->failed, 1);
    gremlin_fault_write(&call->answering, err, code,
                        call->evaluation.call ? call->evaluation.fail_message : GREMLIN_NOTHING,
                        &frame);
    call_send(call, &frame);
}

static void call_answer(struct front_call *front)
{
    struct gremlin_call *call = gremlin_of(front);
    struct gremlin_batch *batch = &call->evaluation.batch;
    CLEANUP(buf_done) struct buf frame;
    struct error err;

    buf_init(&frame, frame_bytes_max(call));
    call->answering.results += batch->count;
    gremlin_tally(&call->gremlin->results, call->answering.results);
    if (gremlin_frame_write(&call->answering, call->answering.results ? 200 : 204, batch, &frame,
                            &err))
        call_send(call, &frame);
    else
        call_refuse_with(call, &err, 599);
}

static void call_refuse(struct front_call *front, const struct error *err)
{
    struct gremlin_call *call = gremlin_of(front);

    call->stranger = err->code == ERROR_UNAUTHORIZED;
    call_refuse_with(call, err, call->evaluation.code);
}

static void call_describe(const struct front_call *front, struct observed_request *request)
{
    const struct gremlin_call *call = gremlin_of(front);

    request->id = call->answering.id;
    request->peer = &call->client->address;
    request->started_ns = call->answering.started_ns;
    request->bytes_in = call->message.len;
    gremlin_target_describe(&call->identity, &call->asked, request);
    request->charge_cru = call->answering.charge_cru;
}

static const struct front_call_kind kind = {.run = call_run,
                                            .part = call_part,
                                            .answer = call_answer,
                                            .refuse = call_refuse,
                                            .describe = call_describe};

void gremlin_call_run(struct gremlin_call *call)
{
    const struct front_services *services = call->services;
    struct gremlin_client *client = call->client;
    struct error err;

    call->identity = client->identity;
    gremlin_tally(
        call->asked.op == GREMLIN_OP_EVAL ? &call->gremlin->scripts : &call->gremlin->bytecodes, 1);
    if (!front_account_find(services, slice_of_text(client->identity.account),
                            call->gremlin->options.door.accounts_by_use, call->arena,
                            &call->account, &err) ||
        !front_account_check(call->account.missing, call->account.id, &err)) {
        front_call_finish(&call->front, false, &err);
        return;
    }
    call->owner = front_owner_find(services, call->account.account, call->account.id);
    front_call_run(&call->front, call->session || call->message.len > LOOP_MESSAGE_MAX);
}

void gremlin_call_refuse(struct gremlin_call *call, const struct error *err, uint16_t code)
{
    call_refuse_with(call, err, code);
}

void gremlin_call_answer(struct gremlin_call *call, uint16_t code)
{
    CLEANUP(buf_done) struct buf frame;
    struct error err;

    buf_init(&frame, frame_bytes_max(call));
    if (!gremlin_frame_write(&call->answering, code, NULL, &frame, &err))
        buf_clear(&frame);
    call_send(call, &frame);
}

void gremlin_call_challenge(struct gremlin_call *call)
{
    CLEANUP(buf_done) struct buf frame;
    struct gremlin_outgoing message;
    struct error err;

    buf_init(&frame, frame_bytes_max(call));
    if (!gremlin_frame_write(&call->answering, 407, NULL, &frame, &err))
        return; /* only without memory */
    message = outgoing_of(call, &frame);
    gremlin_channel_end(call->client->channel, &message, NULL, NULL);
}
