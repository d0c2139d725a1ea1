/* A connection under HTTP is a queue of exchanges in the order the requests came. Nearly always it
 * holds one: the handler answers at once and the answer is written straight into the output. An
 * answer that comes before its turn is kept in its exchange until those before it are there.
 *
 * Exchanges are pooled for each loop. One that a handler has deferred outlives its connection: it
 * is cut loose (connection NULL, cancelled), and the answer, which must still come, only returns it
 * to the pool.
 *
 * Requests that are handled on the loop are handled by turns. The owner of a connection is known by
 * the meter its last request was billed to. When so many requests of an owner were handled, the
 * loop looks at its descriptors again before the next is: whoever pipelines, or has a thousand
 * connections, waits behind itself in a queue of its own, and a lone request of another owner
 * behind one turn of it. Counting by connection was tried: with forty of them it was not enough.
 * One who has sent nothing yet is in the turn of all of whom nothing is known. */
#include "net/http_private.h"

#include "base/clock.h"

enum {
    POOL_MAX = 64,
    /* A body up to this long is copied behind its head, into one piece and one TLS record. */
    BODY_COPY_MAX = 4 * 1024,
    /* A request that waits holds at least this: its exchange, head and first block of memory. */
    REQUEST_BYTES = 8 * 1024,
    /* While its account holds much, a connection is looked at again so soon. */
    STOPPED_MS = 20,
    /* So many requests of one owner are handled before others of its loop have their turn, */
    TURN_REQUESTS = 2,
    /* and where there are no others: a round of the loop is a tenth of a request. */
    TURN_ALONE_REQUESTS = 16,
    /* An owner counts as being there for this long at least, and twice that at most. */
    OWNERS_MS = 500,
};

#define REFUSAL                                                                                    \
    SLICE("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"                              \
          "Content-Type: application/json\r\nContent-Length: 75\r\n\r\n"                           \
          "{\"code\":\"ServiceUnavailable\",\"message\":\"too many connections are open now\"}")

struct net_http {
    struct net_http_settings settings;
    void (*handle)(struct net_http_request *request, void *context);
    void *context;
    size_t shard_count;
    struct net_http_shard shards[];
};

struct net_http_connection {
    struct net_connection *connection;
    struct net_http *http;
    struct net_http_shard *shard;
    struct net_http_exchange *reading;      /* its request is being read; may be NULL */
    struct net_http_exchange *first, *last; /* handed to the handler, not written yet */
    struct net_http_exchange *handling;     /* in the handler now, neither answered nor deferred */
    uint32_t in_flight;
    size_t answers_len;         /* bodies of answers that wait for their turn */
    struct memory_meter *meter; /* of the last request; borrowed */
    bool stopped;               /* takes nothing because the account holds much */
    bool yields;                /* has more to take, once others had their turn: it is in the */
    struct net_http_connection *yield_before, *yield_next; /* queue of its owner */
    struct net_http_turn *turn;                            /* that is */
    bool closing;                                          /* takes no more requests */
    bool finished;      /* writes no more answers: the last one said so */
    bool continue_owed; /* 100 Continue, once the answers before it are written */
    const struct net_protocol *upgrade;
    void *upgrade_context;
};

static void exchange_dispatch(struct net_http_connection *http, struct net_http_exchange *exchange);
static void exchange_write(struct net_http_connection *http, struct net_http_exchange *exchange,
                           const struct net_http_response *response);
static void exchange_store(struct net_http_exchange *exchange,
                           const struct net_http_response *response);
static void exchange_drop_body(struct net_http_exchange *exchange);
static void answer_came(struct net_task *task, struct net_loop *loop);
static void passed_answered(struct net_http_exchange *exchange);
static void queue_advance(struct net_http_connection *http);
static void deadline_choose(struct net_http_connection *http);

struct net_http_settings net_http_settings_default(void)
{
    return (struct net_http_settings){
        .request_line_max = 16 * 1024,
        .head_max = 64 * 1024,
        .header_count_max = 128,
        .body_max = 4 * 1024 * 1024,
        .bodies_max = 256 * 1024 * 1024,
        .in_flight_max = 16,
        .answers_max = 1024 * 1024,
        .head_ms = 15 * 1000,
        .body_ms = 120 * 1000,
        .idle_ms = 120 * 1000,
    };
}

struct net_http *net_http_new(struct net_loops *loops, const struct net_http_settings *settings,
                              void (*handle)(struct net_http_request *request, void *context),
                              void *context)
{
    size_t count = net_loops_count(loops);
    struct net_http *http =
        memory_alloc_zero(sizeof *http + memory_array_size(count, sizeof(struct net_http_shard)));

    assert(settings->in_flight_max > 0 && settings->header_count_max > 0);
    http->settings = *settings;
    http->handle = handle;
    http->context = context;
    http->shard_count = count;
    for (size_t i = 0; i < count; i++)
        http->shards[i].http = http;
    return http;
}

static void exchange_free(struct net_http_exchange *exchange)
{
    net_http_reader_done(&exchange->reader);
    arena_free(exchange->request.arena);
    memory_free(exchange);
}

void net_http_free(struct net_http *http)
{
    if (!http)
        return;
    for (size_t i = 0; i < http->shard_count; i++) {
        struct net_http_shard *shard = &http->shards[i];

        assert(net_counter_read(&shard->in_flight) == 0);
        while (shard->pool) {
            struct net_http_exchange *exchange = shard->pool;

            shard->pool = exchange->next;
            exchange_free(exchange);
        }
    }
    memory_free(http);
}

void net_http_metrics(const struct net_http *http, struct net_http_metrics *ret_metrics)
{
    memset(ret_metrics, 0, sizeof *ret_metrics);
    for (size_t i = 0; i < http->shard_count; i++) {
        const struct net_http_shard *shard = &http->shards[i];

        for (size_t c = 0; c < ARRAY_LEN(shard->by_class); c++)
            ret_metrics->by_class[c] += net_counter_read(&shard->by_class[c]);
        ret_metrics->in_flight += net_counter_read(&shard->in_flight);
        histogram_add(&ret_metrics->latency_us, &shard->latency_us);
    }
}

/* Exchanges */

static struct net_http_exchange *exchange_take(struct net_http_shard *shard, int64_t now_ms)
{
    const struct net_http_settings *settings = &shard->http->settings;
    struct net_http_exchange *exchange = shard->pool;

    if (exchange) {
        shard->pool = exchange->next;
        shard->pool_count--;
    } else {
        exchange =
            memory_alloc_zero(sizeof *exchange + memory_array_size(settings->header_count_max,
                                                                   sizeof(struct net_http_header)));
        exchange->request.arena = arena_new();
    }
    exchange->shard = shard;
    exchange->next = NULL;
    exchange->connection = NULL;
    exchange->passed_answer = NULL;
    exchange->passed_ended = NULL;
    exchange->passed_handling = false;
    atomic_store_explicit(&exchange->cancelled, false, memory_order_relaxed);
    exchange->deferred = exchange->answered = exchange->close = exchange->linger = false;
    exchange->body_owned = false;
    exchange->body = SLICE_NONE;
    exchange->meter = settings->memory;
    exchange->held = 0;
    exchange->head_until_ms = now_ms + settings->head_ms;
    exchange->body_until_ms = 0;
    net_http_reader_begin(&exchange->reader, settings, &exchange->request, exchange->headers);
    return exchange;
}

static void exchange_hold(struct net_http_exchange *exchange, size_t bytes)
{
    memory_meter_set(exchange->meter, exchange->held, bytes);
    exchange->held = bytes;
}

static void incoming_link(struct net_http_shard *shard, struct net_http_exchange *exchange)
{
    exchange->older = shard->newest;
    exchange->newer = NULL;
    if (shard->newest)
        shard->newest->newer = exchange;
    else
        shard->oldest = exchange;
    shard->newest = exchange;
}

static void incoming_unlink(struct net_http_shard *shard, struct net_http_exchange *exchange)
{
    if (exchange->older)
        exchange->older->newer = exchange->newer;
    else
        shard->oldest = exchange->newer;
    if (exchange->newer)
        exchange->newer->older = exchange->older;
    else
        shard->newest = exchange->older;
}

/* So much of the request is here, and the rest is not. 0: all of it is, or no more will come. */
static void exchange_incoming(struct net_http_exchange *exchange, size_t len)
{
    struct net_http_shard *shard = exchange->shard;

    if (len == exchange->incoming_len)
        return;
    if (!exchange->incoming_len)
        incoming_link(shard, exchange);
    else if (!len)
        incoming_unlink(shard, exchange);
    shard->incoming_len += len - exchange->incoming_len;
    exchange->incoming_len = len;
    exchange_hold(exchange, len);
}

/* Back to the pool. */
static void exchange_release(void *context)
{
    struct net_http_exchange *exchange = context;
    struct net_http_shard *shard = exchange->shard;

    exchange_incoming(exchange, 0);
    exchange_hold(exchange, 0);
    net_http_reader_done(&exchange->reader);
    if (shard->pool_count >= POOL_MAX) {
        exchange_free(exchange);
        return;
    }
    arena_reset(exchange->request.arena);
    exchange->next = shard->pool;
    shard->pool = exchange;
    shard->pool_count++;
}

/* Turns */

static struct net_http_turn *turn_of(const struct net_http_connection *http)
{
    uint64_t hash = (uint64_t)(uintptr_t)http->meter * 0x9E3779B97F4A7C15;

    return &http->shard->turns[hash >> 58];
}

/* A bit more is told of whose requests this loop handles. */
static void owners_note(struct net_http_shard *shard, const struct net_http_turn *turn,
                        int64_t now_ms)
{
    if (UNLIKELY(now_ms - shard->owners_ms >= OWNERS_MS)) {
        bool recent = now_ms - shard->owners_ms < 2 * (int64_t)OWNERS_MS;

        shard->owners_before = recent ? shard->owners_now : 0;
        shard->owners_now = 0;
        shard->owners_ms = now_ms;
    }
    shard->owners_now |= (uint64_t)1 << (turn - shard->turns);
}

/* Has the owner handled as much as one turn is? */
static bool turn_is_over(const struct net_http_shard *shard, const struct net_http_turn *turn)
{
    uint64_t owners = shard->owners_now | shard->owners_before;
    bool alone = (owners & (owners - 1)) == 0;

    return turn->handled >= (alone ? TURN_ALONE_REQUESTS : TURN_REQUESTS);
}

static void turn_enqueue(struct net_http_turn *turn, struct net_http_connection *http)
{
    assert(!http->yields);
    http->yields = true;
    http->turn = turn;
    http->yield_before = turn->last;
    http->yield_next = NULL;
    if (turn->last)
        turn->last->yield_next = http;
    else
        turn->first = http;
    turn->last = http;
}

static void turn_dequeue(struct net_http_connection *http)
{
    struct net_http_turn *turn = http->turn;

    assert(http->yields);
    if (http->yield_before)
        http->yield_before->yield_next = http->yield_next;
    else
        turn->first = http->yield_next;
    if (http->yield_next)
        http->yield_next->yield_before = http->yield_before;
    else
        turn->last = http->yield_before;
    http->yields = false;
}

/* The next turn of everybody: what has waited goes on, first come first served within its owner. */
static void turn_begin(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct net_http_shard *shard = CONTAINER_OF(task, struct net_http_shard, turn_task);

    shard->turn_posted = false;
    for (size_t i = 0; i < NET_HTTP_TURNS; i++)
        shard->turns[i].handled = 0;
    for (size_t i = 0; i < NET_HTTP_TURNS; i++) {
        struct net_http_turn *turn = &shard->turns[i];

        while (turn->first && !turn_is_over(shard, turn)) {
            struct net_http_connection *http = turn->first;
            struct net_connection *connection = http->connection;

            turn_dequeue(http);
            shard->resumed = http; /* which may be gone after this */
            net_connection_resume(connection);
            net_connection_flush(connection);
            shard->resumed = NULL;
        }
    }
}

static void turn_post(struct net_http_connection *http)
{
    struct net_http_shard *shard = http->shard;

    if (shard->turn_posted)
        return;
    shard->turn_posted = true;
    shard->turn_task.run = turn_begin;
    net_loop_post(net_connection_loop(http->connection), &shard->turn_task);
}

/* One more request of the owner is handled. */
static void turn_count(struct net_http_connection *http)
{
    struct net_http_shard *shard = http->shard;
    struct net_http_turn *turn = turn_of(http);

    turn->handled++;
    owners_note(shard, turn, net_connection_now_ms(http->connection));
    if (turn_is_over(shard, turn))
        turn_post(http);
}

/* Must it wait for the next turn of its owner? Then it is in the queue. */
static bool turn_awaits(struct net_http_connection *http)
{
    struct net_http_turn *turn = turn_of(http);

    if (http->yields)
        return true;
    if (!turn_is_over(http->shard, turn) && (!turn->first || http->shard->resumed == http))
        return false;
    turn_enqueue(turn, http);
    turn_post(http); /* another owner that came since may have made turns shorter */
    return true;
}

/* The protocol's callbacks */

static void *http_open(struct net_connection *connection, void *context)
{
    struct net_http_connection *http = MEMORY_NEW(struct net_http_connection);

    http->connection = connection;
    http->http = context;
    http->shard = &http->http->shards[net_loop_index(net_connection_loop(connection))];
    http->meter = http->http->settings.memory;
    net_connection_meter(connection, http->meter);
    return http;
}

void net_http_refuse(struct net_http_request *request, uint16_t status, const char *reason)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);
    struct net_http_response (*render)(struct arena *, uint16_t, const char *) =
        exchange->shard->http->settings.refusal;
    struct net_http_response response;

    response = render ? render(request->arena, status, reason)
                      : (struct net_http_response){
                            .lines = SLICE("Content-Type: application/json\r\n"),
                            .body = net_http_error_body(request->arena, status, reason)};
    response.status = status;
    response.body_kind = NET_HTTP_BODY_IN_ARENA;
    net_http_respond(request, &response);
}

/* Answers for the handler, which never sees the request; nothing more is taken. */
static void refuse(struct net_http_connection *http, uint16_t status, const char *reason)
{
    struct net_http_exchange *exchange = TAKE(http->reading);

    exchange->close = exchange->linger = true;
    exchange_incoming(exchange, 0);
    exchange_dispatch(http, exchange);
    net_http_reader_done(&exchange->reader); /* the part that came */
    net_http_refuse(&exchange->request, status, reason);
}

/* While its account holds more than half of what it may, a connection gets no further request
 * before it has taken the answers to those it sent. */
static bool is_stopped(struct net_http_connection *http)
{
    const struct memory_meter *meter = http->meter;

    http->stopped = (http->in_flight || net_connection_output(http->connection)->len) && meter &&
                    memory_meter_used(meter) >= meter->max / 2;
    return http->stopped;
}

static bool can_take(struct net_http_connection *http)
{
    const struct net_http_settings *settings = &http->http->settings;

    return !http->closing && http->in_flight < settings->in_flight_max &&
           http->answers_len < settings->answers_max && !net_connection_is_full(http->connection) &&
           !is_stopped(http);
}

/* A part of a request is here: kept bytes of its head, or the head and a part of the body. Where
 * parts hold more than they may, those go that are the longest on their way; whoever sends without
 * delay is done before it is their turn. So a client that sends halves and stops takes room only
 * from others like it. A single request is always received. False: it was this one's turn. */
static bool incoming_fits(struct net_http_connection *http, size_t kept)
{
    static const char reason[] = "too many requests are being received";
    struct net_http_exchange *exchange = http->reading;
    const struct net_http_reader *reader = &exchange->reader;
    struct net_http_shard *shard = http->shard;
    size_t max = http->http->settings.bodies_max / http->http->shard_count;

    exchange_incoming(exchange, reader->phase == NET_HTTP_PHASE_HEAD
                                    ? kept
                                    : reader->head_len + reader->body.len);
    while (shard->incoming_len > max && shard->oldest != shard->newest) {
        struct net_http_connection *oldest = shard->oldest->connection;

        if (oldest == http) {
            refuse(http, 503, reason);
            return false;
        }
        refuse(oldest, 503, reason);
        net_connection_flush(oldest->connection);
    }
    return true;
}

/* The head is here and the body is not: it has its own deadline, and a client may wait for a sign
 * to send it. */
static void body_awaited(struct net_http_connection *http)
{
    struct net_http_exchange *exchange = http->reading;

    if (exchange->reader.phase == NET_HTTP_PHASE_HEAD)
        return;
    if (!exchange->body_until_ms)
        exchange->body_until_ms =
            net_connection_now_ms(http->connection) + http->http->settings.body_ms;
    if (exchange->reader.expects) {
        exchange->reader.expects = false;
        http->continue_owed = true;
    }
}

static void continue_pay(struct net_http_connection *http)
{
    if (!http->continue_owed || http->first)
        return;
    http->continue_owed = false;
    net_output_append(net_connection_output(http->connection),
                      SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
}

static size_t http_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct net_http_connection *http = state;
    size_t taken = 0;

    while (taken < bytes.len && can_take(http) && !turn_awaits(http)) {
        size_t count;

        if (!http->reading) {
            http->reading = exchange_take(http->shard, net_connection_now_ms(connection));
            http->reading->connection = http;
        }
        switch (net_http_read(&http->reading->reader, slice_skip(bytes, taken), &count)) {
        case NET_HTTP_MORE:
            if (!incoming_fits(http, bytes.len - taken - count))
                return bytes.len;
            body_awaited(http);
            continue_pay(http);
            deadline_choose(http);
            return taken + count;
        case NET_HTTP_BAD:
            refuse(http, http->reading->reader.status, http->reading->reader.reason);
            return bytes.len; /* what follows has no meaning */
        case NET_HTTP_DONE:
            http->continue_owed = false;
            exchange_incoming(http->reading, 0);
            taken += count;
            exchange_dispatch(http, TAKE(http->reading));
            http->http->handle(&http->handling->request, http->http->context);
            assert(!http->handling); /* a handler answers or defers */
            turn_count(http);
            break;
        }
        if (UNLIKELY(http->upgrade)) {
            net_connection_become(connection, http->upgrade, http->upgrade_context);
            return taken;
        }
    }
    deadline_choose(http);
    return taken;
}

/* What the client must do next, and by when. While a handler works the client owes nothing. */
static void deadline_choose(struct net_http_connection *http)
{
    const struct net_http_exchange *reading = http->reading;
    int64_t until_ms = NET_TIMER_NEVER;

    if (http->yields)
        until_ms = NET_TIMER_NEVER; /* it goes on by itself */
    else if (http->stopped)
        until_ms = net_connection_now_ms(http->connection) + STOPPED_MS;
    else if (reading)
        until_ms = reading->body_until_ms ? reading->body_until_ms : reading->head_until_ms;
    else if (!http->first)
        until_ms = net_connection_now_ms(http->connection) + http->http->settings.idle_ms;
    net_connection_deadline(http->connection, until_ms);
}

static void exchange_deadlines_renew(struct net_http_connection *http,
                                     struct net_http_exchange *exchange)
{
    int64_t now_ms = net_connection_now_ms(http->connection);

    exchange->head_until_ms = now_ms + http->http->settings.head_ms;
    if (exchange->body_until_ms)
        exchange->body_until_ms = now_ms + http->http->settings.body_ms;
}

static void http_deadline(struct net_connection *connection, void *state)
{
    struct net_http_connection *http = state;

    if (http->stopped) {
        http->stopped = false;
        if (http->reading)
            exchange_deadlines_renew(http, http->reading);
        net_connection_resume(connection);
        deadline_choose(http);
    } else if (http->reading && !can_take(http)) {
        /* It is we who do not read; the client gets its time anew. */
        exchange_deadlines_renew(http, http->reading);
        deadline_choose(http);
    } else if (http->reading) {
        refuse(http, 408, "the request did not arrive in time");
    } else if (net_connection_output(connection)->len) {
        deadline_choose(http); /* still writing: the layer watches over that */
    } else {
        http->closing = true;
        net_connection_finish(connection, false);
    }
}

static void http_drain(struct net_connection *connection, void *state)
{
    struct net_http_connection *http = state;

    if (http->closing)
        return;
    http->closing = true;
    if (http->reading)
        refuse(http, 503, "the server is stopping");
    else if (!http->first)
        net_connection_finish(connection, false);
}

static void http_closed(struct net_connection *connection UNUSED, void *state)
{
    struct net_http_connection *http = state;
    struct net_http_exchange *next;

    for (struct net_http_exchange *exchange = http->first; exchange; exchange = next) {
        next = exchange->next;
        exchange->connection = NULL;
        net_counter_add(&http->shard->by_class[0], 1);
        if (exchange->answered) {
            net_counter_add(&http->shard->in_flight, (uint64_t)-1);
            exchange_drop_body(exchange);
            exchange_release(exchange);
        } else {
            atomic_store_explicit(&exchange->cancelled, true, memory_order_relaxed);
            if (exchange->request.gone)
                exchange->request.gone(&exchange->request);
        }
    }
    if (http->reading)
        exchange_release(http->reading);
    if (http->yields)
        turn_dequeue(http);
    memory_free(http);
}

const struct net_protocol net_http_protocol = {
    .name = "http",
    .open = http_open,
    .bytes = http_bytes,
    .deadline = http_deadline,
    .drain = http_drain,
    .closed = http_closed,
    .refusal = REFUSAL,
};

/* Requests */

/* Puts the exchange into the queue; the handler or refuse answers it. */
static void exchange_dispatch(struct net_http_connection *http, struct net_http_exchange *exchange)
{
    struct net_http_request *request = &exchange->request;

    request->tls = net_connection_is_tls(http->connection);
    request->local_port = net_connection_local_port(http->connection);
    request->peer = *net_connection_peer(http->connection);
    request->started_ns = net_connection_now_ns(http->connection);
    request->loop = net_connection_loop(http->connection);
    request->user = NULL;
    request->gone = NULL;
    exchange->close |= !net_http_reader_keeps_alive(&exchange->reader);
    http->closing |= exchange->close;

    if (http->last)
        http->last->next = exchange;
    else
        http->first = exchange;
    http->last = exchange;
    http->in_flight++;
    http->handling = exchange;
    net_counter_add(&http->shard->in_flight, 1);
}

/* The handler has answered or deferred. */
static void handling_end(struct net_http_exchange *exchange)
{
    struct net_http_connection *http = exchange->connection;

    assert(http ? http->handling == exchange : exchange->passed_handling);
    exchange->passed_handling = false;
    if (http)
        http->handling = NULL;
}

void net_http_defer(struct net_http_request *request)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);

    handling_end(exchange);
    net_http_reader_keep(&exchange->reader);
    exchange_hold(exchange, REQUEST_BYTES + request->body.len);
    exchange->deferred = true;
}

void net_http_hand_over(struct net_http_request *request,
                        void (*handle)(struct net_http_request *request, void *context),
                        void *context)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);
    struct net_http_connection *http = exchange->connection;

    assert(http && !http->handling && exchange->deferred && !exchange->answered);
    exchange->deferred = false;
    http->handling = exchange;
    request->user = NULL;
    request->gone = NULL;
    /* The handler may defer and answer at once, which ends the connection if that was its last. */
    net_connection_enter(http->connection);
    handle(request, context);
    assert(!http->handling && !http->upgrade);
    net_connection_leave(http->connection);
}

struct net_connection *net_http_connection_of(const struct net_http_request *request)
{
    const struct net_http_exchange *exchange =
        CONTAINER_OF(request, const struct net_http_exchange, request);

    return exchange->connection ? exchange->connection->connection : NULL;
}

const void *net_http_owner(const struct net_http_request *request)
{
    return CONTAINER_OF(request, const struct net_http_exchange, request)->meter;
}

void net_http_bill(struct net_http_request *request, struct memory_meter *meter)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);
    size_t held = exchange->held;

    if (exchange->meter == meter)
        return;
    exchange_hold(exchange, 0);
    exchange->meter = meter;
    exchange_hold(exchange, held);
    if (!exchange->connection)
        return;
    exchange->connection->meter = meter;
    net_connection_meter(exchange->connection->connection, meter);
}

atomic_bool *net_http_cancel_flag(struct net_http_request *request)
{
    return &CONTAINER_OF(request, struct net_http_exchange, request)->cancelled;
}

bool net_http_cancelled(const struct net_http_request *request)
{
    return atomic_load_explicit(
        &CONTAINER_OF(request, const struct net_http_exchange, request)->cancelled,
        memory_order_relaxed);
}

struct slice net_http_header(const struct net_http_request *request, struct slice name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        struct slice candidate = request->headers[i].name;

        if (candidate.len == name.len && slice_equal_nocase(candidate, name))
            return request->headers[i].value;
    }
    return SLICE_NONE;
}

/* Answers */

/* The answer waits for its turn. */
static void exchange_keep(struct net_http_connection *http, struct net_http_exchange *exchange)
{
    exchange->answered = true;
    http->answers_len += exchange->body.len;
}

void net_http_respond(struct net_http_request *request, const struct net_http_response *response)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);
    struct net_http_connection *http;

    assert(!exchange->answered);
    if (exchange->deferred) {
        exchange_store(exchange, response);
        exchange->task.run = answer_came;
        exchange->task.owner = exchange->meter;
        if (net_loop_is_current(request->loop))
            answer_came(&exchange->task, request->loop);
        else
            net_loop_post(request->loop, &exchange->task);
        return;
    }
    http = exchange->connection;
    handling_end(exchange);
    if (!http) {
        exchange_store(exchange, response);
        passed_answered(exchange);
    } else if (http->first == exchange && !http->finished) {
        exchange_write(http, exchange, response);
    } else {
        exchange_store(exchange, response);
        exchange_keep(http, exchange);
    }
}

static void answer_came(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct net_http_exchange *exchange = CONTAINER_OF(task, struct net_http_exchange, task);
    struct net_http_connection *http = exchange->connection;

    if (exchange->passed_answer) {
        passed_answered(exchange);
        return;
    }
    if (!http) {
        net_counter_add(&exchange->shard->in_flight, (uint64_t)-1);
        exchange_drop_body(exchange);
        exchange_release(exchange);
        return;
    }
    exchange_keep(http, exchange);
    if (http->first == exchange) {
        queue_advance(http);
        net_connection_flush(http->connection);
    }
}

/* Keeps the answer in the exchange: on the thread that gives it, so that the loop need not. */
static void exchange_store(struct net_http_exchange *exchange,
                           const struct net_http_response *response)
{
    struct arena *arena = exchange->request.arena;
    uint8_t *tail = arena_alloc(arena, net_http_tail_bound(response));

    exchange->status = response->status;
    exchange->close |= response->close;
    exchange->tail = slice_of(tail, net_http_tail_write(tail, response));
    exchange->body = response->body_kind == NET_HTTP_BODY_COPIED ? arena_copy(arena, response->body)
                                                                 : response->body;
    exchange->body_owned = response->body_kind == NET_HTTP_BODY_OWNED;
    exchange->release = response->release;
    exchange_hold(exchange, exchange->held + exchange->body.len);
}

static void body_release(struct slice body, struct net_release release)
{
    if (release.fn)
        release.fn(release.context);
    else
        memory_free((void *)body.data);
}

static void exchange_drop_body(struct net_http_exchange *exchange)
{
    if (exchange->body_owned)
        body_release(exchange->body, exchange->release);
    exchange->body_owned = false;
}

static void exchange_count(struct net_http_exchange *exchange, uint16_t status)
{
    struct net_http_shard *shard = exchange->shard;
    uint64_t took_ns = clock_monotonic_ns() - exchange->request.started_ns;

    net_counter_add(&shard->in_flight, (uint64_t)-1);
    net_counter_add(&shard->by_class[MIN(status / 100, 5)], 1);
    histogram_record(&shard->latency_us, took_ns / 1000);
}

/* The exchange at the front of the queue has been written. */
static void queue_pop(struct net_http_connection *http, struct net_http_exchange *exchange)
{
    assert(http->first == exchange);
    http->first = exchange->next;
    if (!http->first)
        http->last = NULL;
    if (http->in_flight-- == http->http->settings.in_flight_max || http->stopped ||
        exchange->body.len)
        net_connection_resume(http->connection);
    if (exchange->close || (http->closing && !http->first)) {
        http->closing = http->finished = true;
        net_connection_finish(http->connection, exchange->linger);
    }
}

/* Puts the body behind its head, copied or handed over. True: it was handed over together with the
 * exchange, whose arena holds it. */
static bool body_write(struct net_output *output, struct net_http_exchange *exchange,
                       struct slice body, enum net_http_body kind, struct net_release release)
{
    switch (kind) {
    case NET_HTTP_BODY_COPIED:
        net_output_append(output, body);
        return false;
    case NET_HTTP_BODY_OWNED:
        net_output_append_owned(output, body, release);
        return false;
    case NET_HTTP_BODY_IN_ARENA:
        net_output_append_owned(output, body,
                                (struct net_release){.fn = exchange_release, .context = exchange});
        return true;
    }
    return false;
}

/* Front, tail and a short body in one piece. A tail of length 0 is made here, from the response. */
static void exchange_put(struct net_http_connection *http, struct net_http_exchange *exchange,
                         const struct net_http_response *response, struct slice tail)
{
    struct net_output *output = net_connection_output(http->connection);
    bool has_body = net_http_status_has_body(response->status) &&
                    !slice_equal(exchange->request.method, SLICE("HEAD"));
    bool short_body = has_body && response->body.len <= BODY_COPY_MAX;
    size_t tail_bound = tail.len ? tail.len : net_http_tail_bound(response);
    uint8_t *to = net_output_reserve(output, NET_HTTP_FRONT_MAX + tail_bound +
                                                 (short_body ? response->body.len : 0));
    uint8_t *at = to;
    bool close = exchange->close || (http->closing && !exchange->next);
    bool released = false;

    at += net_http_front_write(at, response->status,
                               net_loop_date(net_connection_loop(http->connection)), close,
                               exchange->request.http_10);
    if (tail.len)
        at = (uint8_t *)memcpy(at, tail.data, tail.len) + tail.len;
    else
        at += net_http_tail_write(at, response);
    if (short_body && response->body.len)
        at = (uint8_t *)memcpy(at, response->body.data, response->body.len) + response->body.len;
    net_output_commit(output, (size_t)(at - to));

    exchange_count(exchange, response->status);
    queue_pop(http, exchange);
    exchange_hold(exchange, 0); /* what is left of it counts as output */
    if (has_body && !short_body)
        released =
            body_write(output, exchange, response->body, response->body_kind, response->release);
    else if (response->body_kind == NET_HTTP_BODY_OWNED)
        body_release(response->body, response->release);
    if (!released)
        exchange_release(exchange);
}

/* Writes an answer given in its turn, and those behind it that waited for it. */
static void exchange_write(struct net_http_connection *http, struct net_http_exchange *exchange,
                           const struct net_http_response *response)
{
    exchange->close |= response->close;
    exchange_put(http, exchange, response, SLICE_NONE);
    if (http->first)
        queue_advance(http);
}

/* Writes the answers at the front of the queue that are there. */
static void queue_advance(struct net_http_connection *http)
{
    while (http->first && http->first->answered && !http->finished) {
        struct net_http_exchange *exchange = http->first;
        struct net_http_response response = {
            .status = exchange->status,
            .body = exchange->body,
            .body_kind = exchange->body_owned ? NET_HTTP_BODY_OWNED : NET_HTTP_BODY_IN_ARENA,
            .release = exchange->release,
        };

        exchange->body_owned = false;
        http->answers_len -= exchange->body.len;
        exchange_put(http, exchange, &response, exchange->tail);
    }
    if (!http->first) {
        continue_pay(http);
        deadline_choose(http);
    }
}

bool net_http_upgrade(struct net_http_request *request, struct slice lines,
                      const struct net_protocol *protocol, void *context)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);
    struct net_http_connection *http = exchange->connection;
    struct net_output *output;

    if (!http)
        return false;
    assert(http->handling == exchange);
    if (http->first != exchange || http->closing)
        return false;
    output = net_connection_output(http->connection);
    http->handling = NULL;
    http->upgrade = protocol;
    http->upgrade_context = context;
    net_output_append(output, SLICE("HTTP/1.1 101 Switching Protocols\r\n"));
    net_output_append(output, lines);
    net_output_append(output, SLICE("\r\n"));
    exchange_count(exchange, 101);
    queue_pop(http, exchange);
    exchange_release(exchange);
    return true;
}

/* Requests that were passed on */

/* The tail of a head is Content-Length, if there may be a body, the lines, and an empty line. */
static struct slice tail_lines(struct slice tail, uint16_t status)
{
    struct slice lines = slice_first(tail, tail.len - 2), length;

    if (net_http_status_has_body(status))
        (void)slice_split(lines, '\n', &length, &lines);
    return lines;
}

static void passed_answered(struct net_http_exchange *exchange)
{
    struct net_http_answer answer = {
        .status = exchange->status,
        .close = exchange->close,
        .lines = tail_lines(exchange->tail, exchange->status),
        .body = exchange->body,
        .exchange = exchange,
    };

    if (exchange->passed_ended)
        *exchange->passed_ended = true;
    exchange_count(exchange, exchange->status);
    exchange->passed_answer(exchange->passed_context, &answer);
    if (!answer.exchange)
        return; /* it went with the body */
    exchange_drop_body(exchange);
    exchange_release(exchange);
}

void net_http_answer_body(struct net_http_answer *answer, struct net_output *output)
{
    struct net_http_exchange *exchange = answer->exchange;

    assert(exchange);
    if (answer->body.len <= BODY_COPY_MAX) {
        net_output_append(output, answer->body);
        return;
    }
    exchange_hold(exchange, 0); /* it counts as output */
    if (exchange->body_owned) {
        exchange->body_owned = false;
        net_output_append_owned(output, exchange->body, exchange->release);
        return;
    }
    answer->exchange = NULL;
    net_output_append_owned(output, exchange->body,
                            (struct net_release){.fn = exchange_release, .context = exchange});
}

static void passed_prepare(struct net_http_exchange *exchange, const struct net_http_passed *passed)
{
    struct net_http_request *request = &exchange->request;

    exchange->passed_answer = passed->answer;
    exchange->passed_context = passed->context;
    exchange->passed_handling = true;
    request->tls = passed->tls;
    request->local_port = 0;
    request->peer = passed->client;
    request->started_ns = clock_monotonic_ns();
    request->loop = passed->loop;
    request->user = NULL;
    request->gone = NULL;
    net_counter_add(&exchange->shard->in_flight, 1);
}

/* What another server has read is read by the same reader: it can be refused only where the limits
 * of the two differ. */
struct net_http_request *net_http_pass(struct net_http *http, const struct net_http_passed *passed)
{
    struct net_http_shard *shard = &http->shards[net_loop_index(passed->loop)];
    struct net_http_exchange *exchange = exchange_take(shard, clock_monotonic_ms());
    enum net_http_progress progress;
    bool ended = false;
    size_t taken;

    passed_prepare(exchange, passed);
    exchange->passed_ended = &ended;
    progress = net_http_read(&exchange->reader, passed->message, &taken);
    if (progress == NET_HTTP_DONE && taken == passed->message.len) {
        http->handle(&exchange->request, http->context);
    } else {
        uint16_t status = progress == NET_HTTP_BAD ? exchange->reader.status : 400;

        net_http_refuse(&exchange->request, status,
                        progress == NET_HTTP_BAD ? exchange->reader.reason
                                                 : "the request that was passed on is not whole");
    }
    if (ended)
        return NULL;
    assert(exchange->deferred);
    exchange->passed_ended = NULL;
    return &exchange->request;
}

void net_http_abandon(struct net_http_request *request)
{
    struct net_http_exchange *exchange = CONTAINER_OF(request, struct net_http_exchange, request);

    assert(exchange->passed_answer && exchange->deferred);
    exchange->passed_answer = NULL;
    net_counter_add(&exchange->shard->by_class[0], 1);
    atomic_store_explicit(&exchange->cancelled, true, memory_order_relaxed);
    if (request->gone)
        request->gone(request);
}
