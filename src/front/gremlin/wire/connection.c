/* wslay takes frames apart and answers control frames by itself. It is given bytes in small pieces,
 * so that a client with many short messages stops within a few of them where no more are taken.
 * The pieces of a message are gathered here rather than there, in memory that grows with what has
 * come, not with what was announced: a header costs a client nothing.
 *
 *     open --message--> handler ... --close of either side--> closing --written--> gone */
#include "front/gremlin/wire/connection.h"

#include "base/memory.h"

#include <wslay/wslay.h>

enum {
    FEED_BYTES = 4096,       /* given to wslay at a time */
    TURN_MESSAGES = 16,      /* handled in a row before others of the loop have their turn */
    PIECES_LEAST = 4 * 1024, /* bytes of room for a message */
    ANSWER_COPY_MAX = 4 * 1024,
    ACCOUNT_SIZE = 64,
};

struct gremlin_wire {
    struct gremlin_wire_settings settings;
    struct gremlin_wire_handler handler;
    atomic_uint_fast64_t opened, open, messages, bytes_in, bytes_out;
};

/* What an upgrade leaves for the connection that follows from it. */
struct upgrade {
    struct gremlin_wire *wire;
    char account[ACCOUNT_SIZE];
    bool root;
};

struct gremlin_connection {
    struct net_connection *net;
    struct gremlin_wire *wire;
    void *session;
    struct gremlin_channel *channel;
    struct memory_meter *meter; /* borrowed */
    wslay_event_context_ptr events;
    wslay_frame_context_ptr frames; /* of answers */
    struct slice input;             /* what wslay may read now */

    const struct gremlin_outgoing *outgoing; /* while it is written */
    struct net_release release;              /* of it */

    uint8_t *pieces; /* of a message that is not all here; NULL: none */
    size_t pieces_len, pieces_capacity;
    int64_t message_until_ms; /* by when all of it has to be here */
    size_t handled;           /* messages, in this turn */
    bool begun;               /* of a message something has come */
    bool control;             /* the frame is none of a message */
    bool text;
    bool closing;  /* no further message is taken */
    bool draining; /* nor is one here, and it ends with its last answer */
    bool posted;   /* its turn is to go on */
    bool gone;     /* while posted */
    struct net_task turn;
};

/* --- Ending ------------------------------------------------------------------------------------
 */

/* What is queued goes out; afterwards nobody is listened to. */
static void connection_end(struct gremlin_connection *connection)
{
    if (connection->closing)
        return;
    connection->closing = true;
    gremlin_channel_leave(connection->channel);
    net_connection_finish(connection->net, true);
}

void gremlin_connection_close(struct gremlin_connection *connection, uint16_t code,
                              struct slice reason)
{
    if (connection->closing)
        return;
    if (wslay_event_queue_close(connection->events, code, reason.data, reason.len) == 0)
        (void)wslay_event_send(connection->events);
    connection_end(connection);
}

static void drain_look(struct gremlin_connection *connection)
{
    if (connection->draining && connection->wire->handler.idle(connection->session))
        gremlin_connection_close(connection, WSLAY_CODE_GOING_AWAY, SLICE("the server stops"));
}

/* --- Messages that come ------------------------------------------------------------------------
 */

static void pieces_drop(struct gremlin_connection *connection)
{
    memory_meter_set(connection->meter, connection->pieces_capacity, 0);
    memory_free(connection->pieces);
    connection->pieces = NULL;
    connection->pieces_len = connection->pieces_capacity = 0;
    connection->begun = false;
}

/* Room for count more bytes. False: the meter has none. */
static bool pieces_grow(struct gremlin_connection *connection, size_t count)
{
    size_t needed = connection->pieces_len + count, capacity;

    if (needed <= connection->pieces_capacity)
        return true;
    capacity = MAX(MAX(2 * connection->pieces_capacity, needed), (size_t)PIECES_LEAST);
    capacity = MIN(capacity, connection->wire->settings.message_bytes_max);
    if (!memory_meter_change(connection->meter, connection->pieces_capacity, capacity))
        return false;
    connection->pieces = memory_realloc(connection->pieces, capacity);
    connection->pieces_capacity = capacity;
    return true;
}

static void too_big(struct gremlin_connection *connection)
{
    char reason[80];

    snprintf(reason, sizeof reason, "a message may have %zu bytes (gremlin.message_bytes_max)",
             connection->wire->settings.message_bytes_max);
    gremlin_connection_close(connection, WSLAY_CODE_MESSAGE_TOO_BIG, slice_of_text(reason));
}

static ssize_t input_read(wslay_event_context_ptr events, uint8_t *bytes, size_t len,
                          int flags UNUSED, void *self)
{
    struct gremlin_connection *connection = self;
    size_t count = MIN(len, connection->input.len);

    if (!count) {
        wslay_event_set_error(events, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(bytes, connection->input.data, count);
    connection->input = slice_skip(connection->input, count);
    return (ssize_t)count;
}

static void frame_started(wslay_event_context_ptr events UNUSED,
                          const struct wslay_event_on_frame_recv_start_arg *frame, void *self)
{
    struct gremlin_connection *connection = self;
    size_t max = connection->wire->settings.message_bytes_max;

    connection->control = wslay_is_ctrl_frame(frame->opcode);
    if (connection->control || connection->closing)
        return;
    if (!connection->begun)
        connection->message_until_ms =
            net_connection_now_ms(connection->net) + connection->wire->settings.message_ms;
    connection->begun = true;
    if (frame->opcode != WSLAY_CONTINUATION_FRAME)
        connection->text = frame->opcode == WSLAY_TEXT_FRAME;
    if (frame->payload_length > max - connection->pieces_len)
        too_big(connection);
}

static void frame_came(wslay_event_context_ptr events UNUSED,
                       const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *self)
{
    struct gremlin_connection *connection = self;

    if (connection->control || connection->closing || !chunk->data_length)
        return;
    if (!pieces_grow(connection, chunk->data_length)) {
        /* Who holds too much is not read any more; there is no request to answer yet. */
        gremlin_connection_close(connection, WSLAY_CODE_POLICY_VIOLATION,
                                 SLICE("too much memory is held; try again later"));
        return;
    }
    memcpy(connection->pieces + connection->pieces_len, chunk->data, chunk->data_length);
    connection->pieces_len += chunk->data_length;
}

static void message_came(wslay_event_context_ptr events UNUSED,
                         const struct wslay_event_on_msg_recv_arg *arg, void *self)
{
    struct gremlin_connection *connection = self;
    struct gremlin_wire *wire = connection->wire;
    struct gremlin_incoming message = {.len = connection->pieces_len, .text = connection->text};

    if (wslay_is_ctrl_frame(arg->opcode) || connection->closing)
        return;
    message.bytes = TAKE(connection->pieces);
    pieces_drop(connection);
    connection->handled++;
    atomic_fetch_add_explicit(&wire->messages, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&wire->bytes_in, message.len, memory_order_relaxed);
    wire->handler.message(connection->session, &message);
}

/* --- Bytes that come ---------------------------------------------------------------------------
 */

static void deadline_choose(struct gremlin_connection *connection)
{
    const struct gremlin_wire *wire = connection->wire;
    int64_t now_ms = net_connection_now_ms(connection->net), until_ms = NET_TIMER_NEVER;

    if (connection->begun)
        until_ms = connection->message_until_ms;
    else if (wire->handler.idle(connection->session))
        until_ms = now_ms + wire->settings.idle_ms;
    net_connection_deadline(connection->net, until_ms);
}

static void turn_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct gremlin_connection *connection = CONTAINER_OF(task, struct gremlin_connection, turn);

    connection->posted = false;
    if (connection->gone) {
        memory_free(connection);
        return;
    }
    net_connection_resume(connection->net);
    net_connection_flush(connection->net);
}

/* Gives wslay some bytes; afterwards what it has to say is said. */
static void feed(struct gremlin_connection *connection, struct slice bytes)
{
    wslay_event_context_ptr events = connection->events;

    connection->input = bytes;
    if (wslay_event_recv(events) != 0) {
        connection_end(connection);
        return;
    }
    if (wslay_event_want_write(events))
        (void)wslay_event_send(events);
    if (wslay_event_get_close_received(events) || wslay_event_get_close_sent(events) ||
        !wslay_event_get_read_enabled(events))
        connection_end(connection);
}

static size_t wire_bytes(struct net_connection *net, void *state, struct slice bytes)
{
    struct gremlin_connection *connection = state;
    const struct gremlin_wire_handler *handler = &connection->wire->handler;
    size_t taken = 0;

    connection->handled = 0;
    while (taken < bytes.len && !connection->closing && !connection->draining &&
           !connection->posted && handler->takes(connection->session) &&
           !net_connection_is_full(net)) {
        size_t count = MIN(bytes.len - taken, (size_t)FEED_BYTES);

        feed(connection, slice_of(bytes.data + taken, count));
        taken += count;
        if (connection->handled < TURN_MESSAGES)
            continue;
        connection->posted = true;
        connection->turn.run = turn_run;
        net_loop_post(net_connection_loop(net), &connection->turn);
    }
    if (connection->closing)
        return bytes.len;
    deadline_choose(connection);
    return taken;
}

/* --- Messages that go --------------------------------------------------------------------------
 */

/* Of control frames. */
static ssize_t output_write(wslay_event_context_ptr events UNUSED, const uint8_t *bytes, size_t len,
                            int flags UNUSED, void *self)
{
    const struct gremlin_connection *connection = self;

    net_output_append(net_connection_output(connection->net), slice_of(bytes, len));
    return (ssize_t)len;
}

/* Of answers: the payload comes as it was given, and travels in its own memory. */
static ssize_t frame_write(const uint8_t *bytes, size_t len, int flags UNUSED, void *self)
{
    struct gremlin_connection *connection = self;
    struct net_output *output = net_connection_output(connection->net);

    if (bytes == connection->outgoing->bytes && len > ANSWER_COPY_MAX) {
        net_output_append_owned(output, slice_of(bytes, len), connection->release);
        connection->release.fn = NULL;
    } else {
        net_output_append(output, slice_of(bytes, len));
    }
    return (ssize_t)len;
}

static void target_send(void *self, const struct gremlin_outgoing *message,
                        struct net_release release)
{
    struct gremlin_connection *connection = self;
    struct wslay_frame_iocb frame = {
        .fin = 1,
        .opcode = message->text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
        .payload_length = message->len,
        .data = message->bytes,
        .data_length = message->len,
    };

    connection->outgoing = message;
    connection->release = release;
    if (!connection->closing) {
        atomic_fetch_add_explicit(&connection->wire->bytes_out, message->len, memory_order_relaxed);
        if (wslay_frame_send(connection->frames, &frame) < 0)
            connection_end(connection); /* a header is out without what belongs to it */
    }
    if (connection->release.fn)
        connection->release.fn(connection->release.context);
    connection->outgoing = NULL;
}

static void target_sent(void *self)
{
    struct gremlin_connection *connection = self;

    drain_look(connection);
    if (!connection->closing)
        deadline_choose(connection);
    net_connection_flush(connection->net);
}

/* --- The protocol ------------------------------------------------------------------------------
 */

static void contexts_make(struct gremlin_connection *connection)
{
    static const struct wslay_event_callbacks reading = {
        .recv_callback = input_read,
        .send_callback = output_write,
        .on_frame_recv_start_callback = frame_started,
        .on_frame_recv_chunk_callback = frame_came,
        .on_msg_recv_callback = message_came,
    };
    static const struct wslay_frame_callbacks writing = {.send_callback = frame_write};

    if (wslay_event_context_server_init(&connection->events, &reading, connection) != 0 ||
        wslay_frame_context_init(&connection->frames, &writing, connection) != 0)
        abort(); /* only without memory */
    wslay_event_config_set_no_buffering(connection->events, 1);
    wslay_event_config_set_max_recv_msg_length(connection->events,
                                               connection->wire->settings.message_bytes_max);
}

static void *wire_open(struct net_connection *net, void *context)
{
    CLEANUP(memory_free) struct upgrade *upgrade = context;
    struct gremlin_connection *connection = MEMORY_NEW(struct gremlin_connection);
    struct gremlin_wire *wire = upgrade->wire;

    atomic_fetch_add(&wire->opened, 1);
    atomic_fetch_add(&wire->open, 1);
    connection->net = net;
    connection->wire = wire;
    connection->meter = wire->settings.memory;
    net_connection_meter(net, connection->meter);
    contexts_make(connection);
    connection->channel =
        gremlin_channel_new(net_connection_loop(net), wire->settings.waiting_bytes_max,
                            &(struct gremlin_channel_target){
                                .send = target_send, .sent = target_sent, .context = connection});
    connection->session =
        wire->handler.open(wire->handler.context, connection,
                           &(struct gremlin_peer){.address = *net_connection_peer(net),
                                                  .tls = net_connection_is_tls(net),
                                                  .root = upgrade->root,
                                                  .account = upgrade->account});
    deadline_choose(connection);
    return connection;
}

static void wire_deadline(struct net_connection *net, void *state)
{
    struct gremlin_connection *connection = state;

    if (connection->begun)
        gremlin_connection_close(connection, WSLAY_CODE_POLICY_VIOLATION,
                                 SLICE("the message did not come to its end in time"));
    else if (connection->wire->handler.idle(connection->session) &&
             !net_connection_output(net)->len)
        gremlin_connection_close(connection, WSLAY_CODE_GOING_AWAY,
                                 SLICE("nothing was asked for a long time"));
    else
        deadline_choose(connection);
}

static void wire_drain(struct net_connection *net UNUSED, void *state)
{
    struct gremlin_connection *connection = state;

    connection->draining = true;
    drain_look(connection);
}

static void wire_closed(struct net_connection *net UNUSED, void *state)
{
    struct gremlin_connection *connection = state;

    atomic_fetch_sub(&connection->wire->open, 1);
    pieces_drop(connection);
    gremlin_channel_cut(connection->channel);
    connection->wire->handler.gone(connection->session);
    gremlin_channel_unref(connection->channel);
    wslay_event_context_free(connection->events);
    wslay_frame_context_free(connection->frames);
    if (connection->posted)
        connection->gone = true;
    else
        memory_free(connection);
}

static const struct net_protocol protocol = {.name = "gremlin",
                                             .open = wire_open,
                                             .bytes = wire_bytes,
                                             .deadline = wire_deadline,
                                             .drain = wire_drain,
                                             .closed = wire_closed};

bool gremlin_wire_upgrade(struct gremlin_wire *wire, struct net_http_request *request,
                          struct slice lines, struct slice account)
{
    CLEANUP(memory_free) struct upgrade *upgrade = MEMORY_NEW(struct upgrade);

    upgrade->wire = wire;
    upgrade->root = slice_equal(request->path, SLICE("/"));
    snprintf(upgrade->account, sizeof upgrade->account, "%.*s", SLICE_ARG(account));
    if (!net_http_upgrade(request, lines, &protocol, upgrade))
        return false;
    (void)TAKE(upgrade); /* wire_open has it */
    return true;
}

/* --- What a handler does with one ------------------------------------------------------------- */

struct gremlin_channel *gremlin_connection_channel(struct gremlin_connection *connection)
{
    return connection->channel;
}

struct net_loop *gremlin_connection_loop(struct gremlin_connection *connection)
{
    return net_connection_loop(connection->net);
}

int64_t gremlin_connection_now_ms(const struct gremlin_connection *connection)
{
    return net_connection_now_ms(connection->net);
}

uint64_t gremlin_connection_now_ns(const struct gremlin_connection *connection)
{
    return net_connection_now_ns(connection->net);
}

void gremlin_connection_bill(struct gremlin_connection *connection, struct memory_meter *meter)
{
    memory_meter_set(connection->meter, connection->pieces_capacity, 0);
    connection->meter = meter;
    memory_meter_set(connection->meter, 0, connection->pieces_capacity);
    net_connection_meter(connection->net, meter);
}

void gremlin_connection_resume(struct gremlin_connection *connection)
{
    net_connection_resume(connection->net);
}

/* --- All of them -------------------------------------------------------------------------------
 */

struct gremlin_wire *gremlin_wire_new(const struct gremlin_wire_settings *settings,
                                      const struct gremlin_wire_handler *handler)
{
    struct gremlin_wire *wire = MEMORY_NEW(struct gremlin_wire);

    wire->settings = *settings;
    wire->handler = *handler;
    return wire;
}

void gremlin_wire_free(struct gremlin_wire *wire)
{
    assert(!wire || atomic_load(&wire->open) == 0);
    memory_free(wire);
}

void gremlin_wire_metrics(const struct gremlin_wire *wire, struct gremlin_wire_metrics *ret_metrics)
{
    *ret_metrics = (struct gremlin_wire_metrics){
        .opened = atomic_load(&wire->opened),
        .open = atomic_load(&wire->open),
        .messages = atomic_load(&wire->messages),
        .bytes_in = atomic_load(&wire->bytes_in),
        .bytes_out = atomic_load(&wire->bytes_out),
    };
}
