/* Requests at a door while another server owns. The HTTP server of the door (net/http.h) has read
 * them whole, and keeps them until they are answered: so one that was sent in vain is sent again.
 *
 *     WAITS --an owner is there--> ASKED --its answer--> answered
 *       ^---- the owner has not begun it, or it may be done twice ----'
 *
 * An asker is a door's part in one loop: the requests that wait, in the order they came, and the
 * way, one connection to the owner that all of them share. Everything of it is touched by the
 * loop's thread alone.
 *
 * An owner that goes says behind which request it has begun nothing (LEAVING). One that is gone
 * without a word may have done whatever it was sent: reads are sent again, the rest is answered
 * 408.
 *
 * The way is written to by a task, never from within the callbacks of clients: writing may close
 * it, which answers requests, also those of the client whose callback it is. One task writes all
 * requests of a round of the loop at once. The way is always read, or two servers with much to say
 * could wait for each other; what is sent ahead is limited here instead (OUTPUT_HIGH). */
#include "peer/doors_private.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "peer/frame.h"

#include <xxhash.h>

enum {
    LOOK_MS = 20,       /* while requests wait */
    OPEN_LOOK_MS = 250, /* while requests are asked: does the owner still own? */
    IDLE_MS = 60 * 1000,
    OUTPUT_HIGH = 1024 * 1024,
    SLOT_BITS = 16,
    SLOTS_FIRST = 64,
    SLOTS_MAX = 1 << SLOT_BITS,
    LOSSES_MAX = 2,
};

struct asker;

/* A request, in its own arena. */
struct asked {
    struct net_http_request *request;
    struct asker *asker;
    struct way *way;             /* NULL: it waits */
    struct asked *before, *next; /* among those that wait */
    uint64_t id;                 /* on the way */
    int64_t waits_since_ms;
    bool repeats;
    uint8_t losses; /* owners that went away without a word while they had it */
};

struct slot {
    struct asked *asked; /* NULL: free */
    uint32_t next;       /* the next free one */
};

struct way {
    struct asker *asker;
    struct net_connection *connection;
    uint64_t incarnation; /* of the server it leads to */
    bool open;            /* that one has answered the hello */
    bool leaving;         /* it takes no more */
    bool closed;
    struct peer_frame_reader reader;
    struct slot *slots; /* of requests that were asked and not answered; an id ends in its slot */
    uint32_t slot_count, slot_free; /* slot_free == slot_count: there is none */
    uint32_t asked_count;
    uint64_t sequence; /* of the last request: an id begins with it */
    int64_t idle_since_ms;
};

struct asker {
    struct peer_door *door;
    struct asked *first, *last; /* wait */
    struct way *way;            /* for the next requests; NULL: there is none yet */
    struct net_timer *timer;    /* while requests wait */
    int64_t dial_ms;            /* not before */
    struct net_task task;
    bool task_posted;
};

struct peer_askers {
    size_t count;
    struct asker list[];
};

static void asker_pump(struct asker *asker);

struct peer_askers *peer_askers_new(struct peer_door *door, size_t loops)
{
    struct peer_askers *askers =
        memory_alloc_zero(sizeof *askers + memory_array_size(loops, sizeof(struct asker)));

    askers->count = loops;
    for (size_t i = 0; i < loops; i++)
        askers->list[i].door = door;
    return askers;
}

void peer_askers_free(struct peer_askers *askers)
{
    for (size_t i = 0; askers && i < askers->count; i++)
        assert(!askers->list[i].first && !askers->list[i].way && !askers->list[i].timer);
    memory_free(askers);
}

/* --- Those that wait ------------------------------------------------------------------------- */

static void task_run(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct asker *asker = CONTAINER_OF(task, struct asker, task);

    asker->task_posted = false;
    asker_pump(asker);
    if (asker->way)
        net_connection_flush(asker->way->connection);
}

static void asker_wake(struct asker *asker, struct net_loop *loop)
{
    if (asker->task_posted)
        return;
    asker->task_posted = true;
    asker->task.run = task_run;
    net_loop_post(loop, &asker->task);
}

static void asked_wait(struct asked *asked)
{
    struct asker *asker = asked->asker;

    asked->way = NULL;
    asked->waits_since_ms = clock_monotonic_ms();
    asked->before = asker->last;
    asked->next = NULL;
    if (asker->last)
        asker->last->next = asked;
    else
        asker->first = asked;
    asker->last = asked;
    atomic_fetch_add(&asker->door->doors->requests_waiting, 1);
    asker_wake(asker, asked->request->loop);
}

static void asked_wait_end(struct asked *asked)
{
    struct asker *asker = asked->asker;

    if (asked->before)
        asked->before->next = asked->next;
    else
        asker->first = asked->next;
    if (asked->next)
        asked->next->before = asked->before;
    else
        asker->last = asked->before;
    atomic_fetch_sub(&asker->door->doors->requests_waiting, 1);
}

static void asked_refuse(struct asked *asked)
{
    asked_wait_end(asked);
    atomic_fetch_add(&asked->asker->door->doors->requests_refused, 1);
    asked->request->gone = NULL;
    net_http_refuse(asked->request, 503,
                    "no server that owns the nodes was found in time: nothing was done");
}

/* The owner has gone and may have begun it. One that several owners in a row did not outlive may be
 * what ended them: it is not given to the next. */
static void asked_lose(struct asked *asked)
{
    struct peer_doors *doors = asked->asker->door->doors;

    if (asked->repeats && asked->losses++ < LOSSES_MAX) {
        atomic_fetch_add(&doors->requests_repeated, 1);
        asked_wait(asked);
        return;
    }
    atomic_fetch_add(&doors->requests_lost, 1);
    asked->request->gone = NULL;
    net_http_refuse(asked->request, 408,
                    "the server that owns the nodes went away: it is not known whether the request "
                    "was done");
}

/* --- The way --------------------------------------------------------------------------------- */

static struct slot *slot_of(struct way *way, uint64_t id)
{
    uint64_t at = id & (SLOTS_MAX - 1);

    return at < way->slot_count && way->slots[at].asked && way->slots[at].asked->id == id
               ? &way->slots[at]
               : NULL;
}

static bool slots_grow(struct way *way)
{
    uint32_t count = way->slot_count ? 2 * way->slot_count : SLOTS_FIRST;

    if (count > SLOTS_MAX)
        return false;
    way->slots = memory_realloc(way->slots, memory_array_size(count, sizeof *way->slots));
    for (uint32_t i = way->slot_count; i < count; i++)
        way->slots[i] = (struct slot){.next = i + 1};
    way->slot_count = count;
    return true;
}

static void slot_free(struct way *way, struct slot *slot)
{
    slot->asked = NULL;
    slot->next = way->slot_free;
    way->slot_free = (uint32_t)(slot - way->slots);
    if (--way->asked_count == 0)
        way->idle_since_ms = clock_monotonic_ms();
}

/* Answered everything, and nothing more is to come. */
static bool way_is_over(const struct way *way)
{
    return !way->asked_count && (way->leaving || atomic_load(&way->asker->door->doors->leaving));
}

/* Nothing more is asked by it; it closes when everything is answered. */
static void way_leave(struct way *way)
{
    way->leaving = true;
    if (way->asker->way == way)
        way->asker->way = NULL;
    if (!way->asked_count)
        net_connection_finish(way->connection, false);
}

/* What was asked behind this id is as if it had never been sent: the server has not begun it. */
static void way_take_back(struct way *way, uint64_t last_id)
{
    for (uint32_t i = 0; i < way->slot_count; i++) {
        struct asked *asked = way->slots[i].asked;

        if (!asked || asked->id <= last_id)
            continue;
        slot_free(way, &way->slots[i]);
        atomic_fetch_add(&way->asker->door->doors->requests_repeated, 1);
        asked_wait(asked);
    }
}

/* The server it leads to is gone, or owns no more. Losing one may end clients, and with them others
 * that were asked. */
static void way_lose(struct way *way)
{
    for (uint32_t i = 0; i < way->slot_count; i++) {
        struct asked *asked = way->slots[i].asked;

        if (!asked)
            continue;
        slot_free(way, &way->slots[i]);
        asked_lose(asked);
    }
}

static void *way_open(struct net_connection *connection, void *context)
{
    struct asker *asker = context;
    struct way *way = MEMORY_NEW(struct way);

    way->asker = asker;
    way->connection = connection;
    peer_frame_reader_init(&way->reader, PEER_FRAME_BYTES_MAX);
    net_connection_never_full(connection);
    net_connection_meter(connection, asker->door->doors->memory);
    asker->way = way;
    return way;
}

/* The answer to the hello. Any but TAKEN: another way is tried, in a moment. */
static size_t verdict_take(struct way *way, struct slice bytes)
{
    enum peer_verdict verdict;

    if (bytes.len < PEER_ANSWER_BYTES)
        return 0;
    if (!peer_answer_read(bytes.data, &verdict) || verdict != PEER_TAKEN) {
        way->asker->dial_ms = net_connection_now_ms(way->connection) + LOOK_MS;
        way_leave(way);
        return bytes.len;
    }
    way->open = true;
    way->idle_since_ms = net_connection_now_ms(way->connection);
    net_connection_deadline(way->connection, way->idle_since_ms + OPEN_LOOK_MS);
    return PEER_ANSWER_BYTES;
}

/* The body is handed on in the memory it came in, where it has memory of its own. */
static void answer_give(struct way *way, struct net_http_request *request,
                        const struct peer_frame *frame, struct slice lines, struct slice body)
{
    struct net_http_response response = {
        .status = frame->number,
        .lines = lines,
        .body = body,
        .close = frame->flags & PEER_FRAME_FLAG,
    };
    uint8_t *memory = peer_frame_payload_take(&way->reader);

    if (memory) {
        response.body_kind = NET_HTTP_BODY_OWNED;
        response.release = (struct net_release){.fn = memory_free, .context = memory};
    }
    net_http_respond(request, &response);
}

static bool answer_take(struct way *way, const struct peer_frame *frame)
{
    struct slot *slot = slot_of(way, frame->id);
    struct net_http_request *request;
    struct slice rest;
    uint32_t lines_len;

    if (frame->payload.len < 4 || frame->number < 200 || frame->number > 599)
        return false;
    lines_len = bytes_get_be32(frame->payload.data);
    rest = slice_skip(frame->payload, 4);
    if (lines_len > rest.len)
        return false;
    if (!slot)
        return true; /* its client has gone */
    request = slot->asked->request;
    slot_free(way, slot);
    request->gone = NULL;
    answer_give(way, request, frame, slice_first(rest, lines_len), slice_skip(rest, lines_len));
    return true;
}

static bool frame_take(struct way *way, const struct peer_frame *frame)
{
    if (frame->kind == PEER_FRAME_LEAVING) {
        way_take_back(way, frame->id);
        way_leave(way);
        return true;
    }
    if (frame->kind != PEER_FRAME_ANSWER || !answer_take(way, frame))
        return false;
    if (way_is_over(way))
        net_connection_finish(way->connection, false);
    return true;
}

static size_t way_bytes(struct net_connection *connection, void *state, struct slice bytes)
{
    struct way *way = state;
    struct asker *asker = way->asker;
    size_t taken = 0, count;
    struct peer_frame frame;
    struct error err;
    bool done = true;

    if (!way->open) {
        taken = verdict_take(way, bytes);
        asker_wake(asker, net_connection_loop(connection));
        if (!way->open)
            return taken;
    }
    while (done) {
        if (!peer_frame_read(&way->reader, slice_skip(bytes, taken), &count, &done, &frame, &err) ||
            (done && !frame_take(way, &frame))) {
            log_event(asker->door->doors->log, LOG_WARNING, "the owner's answer cannot be read");
            way_leave(way);
            net_connection_finish(connection, false);
            return bytes.len;
        }
        taken += count;
    }
    if (asker->first)
        asker_wake(asker, net_connection_loop(connection));
    return taken;
}

static void way_deadline(struct net_connection *connection, void *state)
{
    struct way *way = state;
    int64_t now_ms = net_connection_now_ms(connection);

    if (way->asked_count) {
        if (way->incarnation != atomic_load(&way->asker->door->doors->incarnation)) {
            way_leave(way);
            way_lose(way);
            net_connection_finish(connection, false);
        }
        net_connection_deadline(connection, now_ms + OPEN_LOOK_MS);
    } else if (way_is_over(way) || now_ms - way->idle_since_ms >= IDLE_MS) {
        way_leave(way);
    } else {
        net_connection_deadline(connection, way->idle_since_ms + IDLE_MS);
    }
}

/* The clients' requests are answered first; what they still need is a way, made anew. */
static void way_drain(struct net_connection *connection UNUSED, void *state)
{
    way_leave(state);
}

static void way_closed(struct net_connection *connection, void *state)
{
    struct way *way = state;
    struct asker *asker = way->asker;

    way->closed = true;
    if (asker->way == way)
        asker->way = NULL;
    asker->dial_ms = net_connection_now_ms(connection) + (way->open ? 0 : LOOK_MS);
    way_lose(way);
    peer_frame_reader_done(&way->reader);
    memory_free(way->slots);
    memory_free(way);
}

static const struct net_protocol way_protocol = {
    .name = "way",
    .open = way_open,
    .bytes = way_bytes,
    .deadline = way_deadline,
    .drain = way_drain,
    .closed = way_closed,
};

/* --- Asking ---------------------------------------------------------------------------------- */

/* Beside the connection of a client, whose listener waits for it when the server stops. */
static void asker_dial(struct asker *asker, struct net_connection *beside)
{
    struct peer_doors *doors = asker->door->doors;
    struct peer_hello hello = {.front = asker->door->front, .requests = true, .hops = 1};
    CLEANUP(buf_done) struct buf bytes;
    struct net_address address;
    uint64_t incarnation;

    buf_init(&bytes, PEER_HELLO_BYTES_MAX);
    if (clock_monotonic_ms() < asker->dial_ms)
        return;
    address = peer_doors_address(doors, &incarnation);
    if (!net_connection_dial(beside, &address, doors->tls, &way_protocol, asker))
        return;
    asker->way->incarnation = incarnation;
    peer_hello_append(&bytes, &hello);
    net_output_append(net_connection_output(asker->way->connection), buf_slice(&bytes));
}

/* What is between a client and this server alone. */
static bool header_is_of_hop(struct slice name)
{
    return slice_equal_nocase(name, SLICE("connection")) ||
           slice_equal_nocase(name, SLICE("keep-alive")) ||
           slice_equal_nocase(name, SLICE("transfer-encoding")) ||
           slice_equal_nocase(name, SLICE("expect"));
}

/* Never longer than what the client sent: the limits that it was within here hold there, too. */
static void message_head(const struct net_http_request *request, struct buf *out)
{
    buf_append_slice(out, request->method);
    buf_append_byte(out, ' ');
    buf_append_slice(out, request->target);
    buf_append_text(out, request->http_10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    for (size_t i = 0; i < request->header_count; i++) {
        if (header_is_of_hop(request->headers[i].name))
            continue;
        buf_append_slice(out, request->headers[i].name);
        buf_append_byte(out, ':');
        buf_append_slice(out, request->headers[i].value);
        BUF_APPEND(out, "\r\n");
    }
    if (request->body.len && !net_http_header(request, SLICE("content-length")).data)
        buf_printf(out, "Content-Length:%zu\r\n", request->body.len);
    BUF_APPEND(out, "\r\n");
}

static void asked_send(struct way *way, struct asked *asked)
{
    struct net_output *output = net_connection_output(way->connection);
    const struct net_http_request *request = asked->request;
    char address[NET_ADDRESS_TEXT_SIZE] = "";
    CLEANUP(buf_done) struct buf head;

    buf_init(&head, SIZE_MAX);
    message_head(request, &head);
    if (request->peer.len)
        net_address_text(&request->peer, address);
    peer_frame_append(output, &(struct peer_frame){
                                  .kind = PEER_FRAME_REQUEST,
                                  .flags = request->tls ? PEER_FRAME_FLAG : 0,
                                  .number = (uint16_t)strlen(address),
                                  .id = asked->id,
                                  .len = strlen(address) + head.len + request->body.len,
                              });
    net_output_append(output, slice_of_text(address));
    net_output_append(output, buf_slice(&head));
    net_output_append(output, request->body);
}

/* Another server owns than the one that the way leads to: no request is sent there any more. Those
 * that were are looked after by its deadline. */
static void asker_turn(struct asker *asker)
{
    struct way *way = asker->way;

    if (!way || way->incarnation == atomic_load(&asker->door->doors->incarnation))
        return;
    way_leave(way);
    net_connection_flush(way->connection);
}

/* False: the way has no room, or there is none. */
static bool asked_ask(struct asked *asked)
{
    struct asker *asker = asked->asker;
    struct way *way;
    struct slot *slot;

    asker_turn(asker);
    way = asker->way;
    if (!way)
        asker_dial(asker, net_http_connection_of(asked->request));
    if (!way || !way->open || net_connection_output(way->connection)->len > OUTPUT_HIGH ||
        (way->slot_free == way->slot_count && !slots_grow(way)))
        return false;
    asked_wait_end(asked);
    slot = &way->slots[way->slot_free];
    asked->way = way;
    asked->id = ++way->sequence << SLOT_BITS | way->slot_free;
    way->slot_free = slot->next;
    slot->asked = asked;
    if (way->asked_count++ == 0)
        net_connection_deadline(way->connection, clock_monotonic_ms() + OPEN_LOOK_MS);
    asked_send(way, asked);
    atomic_fetch_add(&asker->door->doors->requests, 1);
    return true;
}

/* The front is here: it is as if the request had just come. */
static void asked_hand_over(struct asked *asked)
{
    const struct peer_front_local *local = &asked->asker->door->local;

    asked_wait_end(asked);
    net_http_hand_over(asked->request, local->handle, local->handle_context);
}

static void timer_fired(void *context)
{
    struct asker *asker = context;
    struct peer_doors *doors = asker->door->doors;
    int64_t now_ms = clock_monotonic_ms();

    while (asker->first && now_ms - asker->first->waits_since_ms > doors->wait_ms)
        asked_refuse(asker->first);
    asker_pump(asker);
    if (asker->way)
        net_connection_flush(asker->way->connection);
}

/* Sends what waits, or does it, as far as that can be. */
static void asker_pump(struct asker *asker)
{
    struct peer_doors *doors = asker->door->doors;
    bool goes_on = true;

    while (asker->first && goes_on) {
        int owning = atomic_load(&doors->owning);

        if (owning == PEER_OURS)
            asked_hand_over(asker->first);
        else if (owning == PEER_THEIRS)
            goes_on = asked_ask(asker->first);
        else if (atomic_load(&doors->leaving))
            asked_refuse(asker->first);
        else
            goes_on = false;
    }
    if (!asker->first) {
        net_timer_free(TAKE(asker->timer));
        return;
    }
    if (!asker->timer)
        asker->timer = net_timer_new(asker->first->request->loop, timer_fired, asker);
    net_timer_set(asker->timer, clock_monotonic_ms() + LOOK_MS);
}

/* The client has left: whoever does its request may stop. */
static void asked_gone(struct net_http_request *request)
{
    struct asked *asked = request->user;
    struct way *way = asked->way;

    request->gone = NULL;
    if (!way) {
        asked_wait_end(asked);
    } else {
        slot_free(way, slot_of(way, asked->id));
        if (!way->closed)
            peer_frame_append(net_connection_output(way->connection),
                              &(struct peer_frame){.kind = PEER_FRAME_CANCEL, .id = asked->id});
    }
    asker_wake(asked->asker, request->loop);
    net_http_respond(request, &(struct net_http_response){.status = 408});
}

/* Whose account it is is found out by the owner. Here requests are told apart by the host they
 * name: accounts have hosts, and where they have none all share one part of the memory. False: it
 * was refused. */
static bool request_bill(struct peer_doors *doors, struct net_http_request *request)
{
    struct slice host = net_http_header(request, SLICE("host"));
    struct memory_meter *share = &doors->shares[XXH3_64bits(host.data, host.len) % PEER_SHARES];

    if (!doors->memory)
        return true;
    net_http_bill(request, share);
    if (!memory_meter_is_full(share))
        return true;
    atomic_fetch_add(&doors->requests_refused, 1);
    net_http_refuse(request, 503,
                    "requests that are passed on hold as many bytes as they may: nothing was done");
    return false;
}

void peer_request_handle(struct net_http_request *request, void *context)
{
    struct peer_door *door = context;

    if (atomic_load(&door->doors->owning) != PEER_OURS && door->requests.own &&
        door->requests.own(request, door->requests.context))
        return;
    peer_request_pass_on(request, context);
}

void peer_request_pass_on(struct net_http_request *request, void *context)
{
    struct peer_door *door = context;
    struct asked *asked;

    if (atomic_load(&door->doors->owning) == PEER_OURS) {
        door->local.handle(request, door->local.handle_context);
        return;
    }
    if (!request_bill(door->doors, request))
        return;
    net_http_defer(request);
    asked = ARENA_NEW(request->arena, struct asked);
    asked->request = request;
    asked->asker = &door->askers->list[net_loop_index(request->loop)];
    asked->repeats = door->requests.repeats(request, door->requests.context);
    request->user = asked;
    request->gone = asked_gone;
    asked_wait(asked);
}
