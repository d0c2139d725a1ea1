/* A message that has come whole is handled where it lies, in the loop's memory. Of one that comes
 * in pieces the connection keeps the pieces, in memory that grows with what has come, not with what
 * was announced: a header costs a client nothing.
 *
 *     waiting --16 bytes--> reading --all of it--> handling --answer--> waiting
 *
 * A request that is kept when its connection goes is cut loose: it is told that nobody waits
 * (cancelled) and frees itself, and the session, when it is answered. */
#include "front/mongo/wire/connection.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/memory.h"

enum {
    TURN_REQUESTS = 16,       /* handled in a row before others of the loop have their turn */
    PIECES_LEAST = 16 * 1024, /* bytes of room for a message that comes in pieces */
    ANSWER_COPY_MAX = 16 * 1024,
};

struct mongo_wire {
    struct mongo_wire_settings settings;
    struct mongo_wire_handler handler;
    atomic_uint_fast64_t opened, open, requests, bytes_in, bytes_out;
};

struct connection;

struct exchange {
    struct mongo_request request;
    struct connection *connection; /* NULL: it has gone, or there was none */
    struct mongo_wire *wire;
    atomic_bool gone;       /* the connection */
    atomic_bool *cancelled; /* that flag, or the one of a delivery */
    void (*answered)(void *context, uint8_t *bytes, size_t len); /* of a delivery, else NULL */
    void *context;
    bool kept;
    uint8_t
        *owned; /* the message, where it came in pieces; NULL: it is borrowed, or in the arena */
    struct memory_meter *meter;
    size_t held;
    struct net_task task; /* of an answer from another thread */
    uint8_t *answer;
    size_t answer_len;
    bool close;
    uint8_t *repeat; /* the message that follows the answer; NULL: none */
    size_t repeat_len;
};

struct connection {
    struct net_connection *net;
    struct mongo_wire *wire;
    void *session;
    struct memory_meter *meter; /* borrowed */
    struct exchange *handling;  /* NULL: none */
    struct exchange *idle;      /* one that waits for the next message; may be NULL */
    uint8_t *pieces;            /* of a message that is not all here; NULL: none */
    size_t pieces_len, pieces_capacity, message_len;
    int64_t message_until_ms; /* by when all of it has to be here */
    uint8_t *repeat;          /* a message that is handled next; on the meter; NULL: none */
    size_t repeat_len;
    bool closing; /* no further message is taken */
    bool posted;  /* its turn is to go on */
    bool gone;    /* while posted */
    struct net_task turn;
};

/* --- Exchanges ------------------------------------------------------------------------------- */

static struct exchange *exchange_take(struct connection *connection)
{
    struct exchange *exchange = TAKE(connection->idle);

    if (!exchange) {
        exchange = MEMORY_NEW(struct exchange);
        exchange->request.arena = arena_new();
    }
    exchange->connection = connection;
    exchange->wire = connection->wire;
    exchange->meter = connection->meter;
    exchange->request.session = connection->session;
    exchange->request.loop = net_connection_loop(connection->net);
    exchange->request.started_ns = net_connection_now_ns(connection->net);
    exchange->cancelled = &exchange->gone;
    atomic_store_explicit(&exchange->gone, false, memory_order_relaxed);
    exchange->kept = exchange->close = false;
    return exchange;
}

static void exchange_hold(struct exchange *exchange, size_t bytes)
{
    memory_meter_set(exchange->meter, exchange->held, bytes);
    exchange->held = bytes;
}

static void exchange_free(struct exchange *exchange)
{
    arena_free(exchange->request.arena);
    memory_free(exchange);
}

/* The request is over: what it held goes. */
static void exchange_clear(struct exchange *exchange)
{
    exchange_hold(exchange, 0);
    memory_free(exchange->owned);
    exchange->owned = NULL;
    exchange->request.bytes = SLICE_NONE;
}

/* --- Reading --------------------------------------------------------------------------------- */

static void deadline_choose(struct connection *connection)
{
    const struct mongo_wire_settings *settings = &connection->wire->settings;
    int64_t now_ms = net_connection_now_ms(connection->net);

    net_connection_deadline(connection->net, connection->handling || connection->repeat
                                                 ? NET_TIMER_NEVER
                                             : connection->pieces ? connection->message_until_ms
                                                                  : now_ms + settings->idle_ms);
}

static void connection_end(struct connection *connection, bool linger)
{
    connection->closing = true;
    net_connection_finish(connection->net, linger);
}

static void pieces_drop(struct connection *connection)
{
    memory_meter_set(connection->meter, connection->pieces_capacity, 0);
    memory_free(connection->pieces);
    connection->pieces = NULL;
    connection->pieces_len = connection->pieces_capacity = 0;
}

/* Room for count more bytes of the message. False: the meter has none. */
static bool pieces_grow(struct connection *connection, size_t count)
{
    size_t needed = connection->pieces_len + count, capacity;

    if (needed <= connection->pieces_capacity)
        return true;
    capacity = MIN(MAX(MAX(2 * connection->pieces_capacity, needed), (size_t)PIECES_LEAST),
                   connection->message_len);
    if (!memory_meter_change(connection->meter, connection->pieces_capacity, capacity))
        return false;
    connection->pieces = memory_realloc(connection->pieces, capacity);
    connection->pieces_capacity = capacity;
    return true;
}

/* Hands a whole message to the handler. owned: its memory, or NULL where it is the loop's. */
static void message_handle(struct connection *connection, struct slice bytes, uint8_t *owned,
                           size_t held)
{
    struct exchange *exchange = exchange_take(connection);
    struct mongo_wire *wire = connection->wire;

    atomic_fetch_add_explicit(&wire->requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&wire->bytes_in, bytes.len, memory_order_relaxed);
    exchange->owned = owned;
    exchange->held = held; /* on the meter already */
    exchange->request.bytes = bytes;
    connection->handling = exchange;
    wire->handler.handle(&exchange->request, wire->handler.context);
    assert(connection->handling != exchange || exchange->kept);
}

/* Takes what belongs to the message that is being read. */
static size_t pieces_take(struct connection *connection, struct slice bytes)
{
    size_t count = MIN(bytes.len, connection->message_len - connection->pieces_len);

    if (!pieces_grow(connection, count)) {
        /* Who holds too much is not read any more; there is no request to answer yet. */
        connection_end(connection, true);
        return bytes.len;
    }
    memcpy(connection->pieces + connection->pieces_len, bytes.data, count);
    connection->pieces_len += count;
    if (connection->pieces_len == connection->message_len) {
        struct slice message = slice_of(connection->pieces, connection->pieces_len);
        size_t held = connection->pieces_capacity;

        connection->pieces_len = connection->pieces_capacity = 0;
        message_handle(connection, message, TAKE(connection->pieces), held);
    }
    return count;
}

/* The first bytes of a message. 0: not enough of them. */
static size_t message_begin(struct connection *connection, struct slice bytes)
{
    const struct mongo_wire_handler *handler = &connection->wire->handler;
    struct mongo_header header;

    if (bytes.len < MONGO_HEADER_LEN)
        return 0;
    mongo_header_read(&header, bytes.data);
    if (header.length < MONGO_HEADER_LEN || header.length > MONGO_MESSAGE_BYTES_MAX ||
        (size_t)header.length > handler->bytes_max(connection->session)) {
        connection_end(connection, true);
        return bytes.len;
    }
    connection->message_len = (size_t)header.length;
    connection->message_until_ms =
        net_connection_now_ms(connection->net) + connection->wire->settings.message_ms;
    if (bytes.len < connection->message_len)
        return pieces_take(connection, bytes);
    message_handle(connection, slice_first(bytes, connection->message_len), NULL, 0);
    return connection->message_len;
}

static void turn_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct connection *connection = CONTAINER_OF(task, struct connection, turn);

    connection->posted = false;
    if (connection->gone) {
        memory_free(connection);
        return;
    }
    net_connection_resume(connection->net);
    net_connection_flush(connection->net);
}

static void repeat_drop(struct connection *connection)
{
    memory_meter_set(connection->meter, connection->repeat_len, 0);
    memory_free(connection->repeat);
    connection->repeat = NULL;
    connection->repeat_len = 0;
}

/* What is to be handled again comes before what the client may have sent. */
static void wire_room(struct net_connection *net, void *state)
{
    struct connection *connection = state;
    struct slice message = slice_of(connection->repeat, connection->repeat_len);

    if (!connection->repeat || connection->handling || net_connection_is_full(net))
        return;
    if (connection->closing) {
        repeat_drop(connection);
        return;
    }
    connection->repeat = NULL;
    connection->repeat_len = 0;
    message_handle(connection, message, (uint8_t *)message.data, message.len);
    deadline_choose(connection);
}

static size_t wire_bytes(struct net_connection *net, void *state, struct slice bytes)
{
    struct connection *connection = state;
    size_t taken = 0, handled = 0;

    while (taken < bytes.len && !connection->handling && !connection->repeat &&
           !connection->closing && !connection->posted && !net_connection_is_full(net)) {
        struct slice rest = slice_skip(bytes, taken);
        size_t count =
            connection->pieces ? pieces_take(connection, rest) : message_begin(connection, rest);

        if (!count)
            break;
        taken += count;
        if (++handled < TURN_REQUESTS)
            continue;
        connection->posted = true;
        connection->turn.run = turn_run;
        net_loop_post(net_connection_loop(net), &connection->turn);
    }
    deadline_choose(connection);
    return connection->closing ? bytes.len : taken;
}

/* --- Answers --------------------------------------------------------------------------------- */

void mongo_request_keep(struct mongo_request *request)
{
    struct exchange *exchange = CONTAINER_OF(request, struct exchange, request);

    if (exchange->kept)
        return;
    exchange->kept = true;
    if (exchange->owned)
        return;
    request->bytes = arena_copy(request->arena, request->bytes);
    exchange_hold(exchange, request->bytes.len);
}

void mongo_request_bill(struct mongo_request *request, struct memory_meter *meter)
{
    struct exchange *exchange = CONTAINER_OF(request, struct exchange, request);
    size_t held = exchange->held;

    exchange_hold(exchange, 0);
    exchange->meter = meter;
    exchange_hold(exchange, held);
    if (exchange->connection && exchange->connection->meter != meter) {
        exchange->connection->meter = meter;
        net_connection_meter(exchange->connection->net, meter);
    }
}

void mongo_request_repeat(struct mongo_request *request, int32_t id)
{
    struct exchange *exchange = CONTAINER_OF(request, struct exchange, request);

    assert(!exchange->repeat && request->bytes.len >= MONGO_HEADER_LEN);
    exchange->repeat_len = request->bytes.len;
    exchange->repeat = memory_alloc(exchange->repeat_len);
    memcpy(exchange->repeat, request->bytes.data, exchange->repeat_len);
    bytes_put_le32(exchange->repeat + 4, (uint32_t)id);
}

bool mongo_request_subject(const struct mongo_request *request, struct buf *out)
{
    const struct exchange *exchange = CONTAINER_OF(request, const struct exchange, request);

    return exchange->connection && net_connection_subject(exchange->connection->net, out);
}

void mongo_request_cancel(struct mongo_request *request)
{
    atomic_store(CONTAINER_OF(request, struct exchange, request)->cancelled, true);
}

const atomic_bool *mongo_request_cancel_flag(const struct mongo_request *request)
{
    return CONTAINER_OF(request, const struct exchange, request)->cancelled;
}

static void answer_write(struct connection *connection, struct exchange *exchange)
{
    struct net_output *output = net_connection_output(connection->net);
    struct slice bytes = slice_of(exchange->answer, exchange->answer_len);

    atomic_fetch_add_explicit(&connection->wire->bytes_out, bytes.len, memory_order_relaxed);
    if (bytes.len > ANSWER_COPY_MAX) {
        net_output_append_owned(output, bytes, (struct net_release){0});
    } else {
        net_output_append(output, bytes);
        memory_free(exchange->answer);
    }
    exchange->answer = NULL;
}

/* On the loop, with the connection or without. */
static void answer_take(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;

    exchange_clear(exchange);
    if (!connection) {
        exchange->wire->handler.close(exchange->request.session);
        memory_free(exchange->answer);
        memory_free(exchange->repeat);
        exchange_free(exchange);
        return;
    }
    answer_write(connection, exchange);
    connection->handling = NULL;
    if (exchange->repeat) {
        connection->repeat = TAKE(exchange->repeat);
        connection->repeat_len = exchange->repeat_len;
        memory_meter_set(connection->meter, 0, connection->repeat_len);
    }
    if (exchange->close || connection->closing)
        connection_end(connection, true);
    arena_reset(exchange->request.arena);
    connection->idle = exchange;
    deadline_choose(connection);
}

/* On whatever thread answers. */
static void delivery_answer(struct exchange *exchange)
{
    atomic_fetch_add_explicit(&exchange->wire->bytes_out, exchange->answer_len,
                              memory_order_relaxed);
    exchange_clear(exchange);
    exchange->answered(exchange->context, exchange->answer, exchange->answer_len);
    exchange_free(exchange);
}

static void answer_came(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct exchange *exchange = CONTAINER_OF(task, struct exchange, task);
    struct connection *connection = exchange->connection;

    answer_take(exchange);
    if (!connection)
        return;
    net_connection_resume(connection->net);
    net_connection_flush(connection->net);
}

void mongo_request_answer(struct mongo_request *request, uint8_t *bytes, size_t len, bool close)
{
    struct exchange *exchange = CONTAINER_OF(request, struct exchange, request);

    exchange->answer = bytes;
    exchange->answer_len = len;
    exchange->close = close;
    if (exchange->answered) {
        delivery_answer(exchange);
        return;
    }
    if (!exchange->kept) {
        answer_take(exchange); /* within the handler: the connection is flushed behind it */
        return;
    }
    exchange->task.run = answer_came;
    exchange->task.owner = exchange->meter;
    net_loop_post(request->loop, &exchange->task);
}

/* --- Other ways ------------------------------------------------------------------------------ */

void mongo_wire_deliver(struct mongo_wire *wire, const struct mongo_delivery *delivery)
{
    struct exchange *exchange = MEMORY_NEW(struct exchange);

    atomic_fetch_add_explicit(&wire->requests, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&wire->bytes_in, delivery->len, memory_order_relaxed);
    exchange->wire = wire;
    exchange->kept = true;
    exchange->cancelled = delivery->cancelled;
    exchange->answered = delivery->answered;
    exchange->context = delivery->context;
    exchange->owned = delivery->bytes;
    exchange->meter = wire->settings.memory;
    exchange_hold(exchange, delivery->len);
    exchange->request = (struct mongo_request){.bytes = slice_of(delivery->bytes, delivery->len),
                                               .arena = arena_new(),
                                               .session = delivery->session,
                                               .loop = delivery->loop,
                                               .started_ns = delivery->started_ns,
                                               .delivered = true};
    wire->handler.handle(&exchange->request, wire->handler.context);
}

/* --- The protocol ---------------------------------------------------------------------------- */

static void *wire_open(struct net_connection *net, void *context)
{
    struct connection *connection = MEMORY_NEW(struct connection);
    struct mongo_wire *wire = context;
    struct mongo_peer peer = {.address = *net_connection_peer(net),
                              .tls = net_connection_is_tls(net)};

    peer.number = atomic_fetch_add(&wire->opened, 1) + 1;
    atomic_fetch_add(&wire->open, 1);
    connection->net = net;
    connection->wire = wire;
    connection->meter = wire->settings.memory;
    net_connection_meter(net, connection->meter);
    connection->session = wire->handler.open(wire->handler.context, &peer);
    return connection;
}

static void wire_deadline(struct net_connection *net, void *state)
{
    struct connection *connection = state;

    if (connection->handling || net_connection_output(net)->len)
        deadline_choose(
            connection); /* it is not the client that is waited for, or the layer does */
    else
        connection_end(connection, false);
}

static void wire_drain(struct net_connection *net UNUSED, void *state)
{
    struct connection *connection = state;

    connection->closing = true;
    repeat_drop(connection);
    if (!connection->handling)
        connection_end(connection, false);
}

static void wire_closed(struct net_connection *net UNUSED, void *state)
{
    struct connection *connection = state;
    struct exchange *handling = connection->handling;

    atomic_fetch_sub(&connection->wire->open, 1);
    pieces_drop(connection);
    repeat_drop(connection);
    if (handling) {
        handling->connection = NULL;
        atomic_store(&handling->gone, true);
        if (connection->wire->handler.gone)
            connection->wire->handler.gone(connection->wire->handler.context);
    } else {
        connection->wire->handler.close(connection->session);
    }
    if (connection->idle)
        exchange_free(connection->idle);
    if (connection->posted)
        connection->gone = true;
    else
        memory_free(connection);
}

const struct net_protocol mongo_wire_protocol = {.name = "mongo",
                                                 .open = wire_open,
                                                 .bytes = wire_bytes,
                                                 .room = wire_room,
                                                 .deadline = wire_deadline,
                                                 .drain = wire_drain,
                                                 .closed = wire_closed};

struct mongo_wire *mongo_wire_new(const struct mongo_wire_settings *settings,
                                  const struct mongo_wire_handler *handler)
{
    struct mongo_wire *wire = MEMORY_NEW(struct mongo_wire);

    wire->settings = *settings;
    wire->handler = *handler;
    return wire;
}

void mongo_wire_free(struct mongo_wire *wire)
{
    assert(!wire || atomic_load(&wire->open) == 0);
    memory_free(wire);
}

void mongo_wire_metrics(const struct mongo_wire *wire, struct mongo_wire_metrics *ret_metrics)
{
    *ret_metrics = (struct mongo_wire_metrics){
        .opened = atomic_load(&wire->opened),
        .open = atomic_load(&wire->open),
        .requests = atomic_load(&wire->requests),
        .bytes_in = atomic_load(&wire->bytes_in),
        .bytes_out = atomic_load(&wire->bytes_out),
    };
}
