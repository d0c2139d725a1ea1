/* A connection reads when its socket is readable, once, into the loop's scratch memory; the
 * protocol takes what it can from there. Only what it leaves is copied into memory of the
 * connection's own, so idle connections hold no buffers and whole requests are never copied.
 *
 * Whatever happens (bytes, deadline, drain, an answer from a worker) ends in connection_settle,
 * the one place where output is written, the state moves on, events are armed and the connection is
 * destroyed. Protocols therefore never find a connection gone under their feet: abort and finish
 * only take note.
 *
 *     NEW --first byte--> OPEN --finish--> FINISHING --all written--> LINGERING --> gone
 *
 * Reading is level-triggered and needs no second call to find the socket empty; OpenSSL may hold
 * bytes that the socket no longer shows, so there reading goes on while it does. The write event is
 * added only when the socket refuses bytes. In steady state a request costs one epoll_wait, one
 * read and one write. */
#include "net/connection_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "net/tls_private.h"

#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum state { STATE_NEW, STATE_OPEN, STATE_FINISHING, STATE_LINGERING };

enum {
    READ_ROOM = 16 * 1024, /* at least so much is read at once behind what is kept */
    READS_MAX = 16,        /* in a row */
    PIECES_MAX = 16,
    SEND_MAX = 256 * 1024,  /* bytes written before others of the loop have their turn */
    TLS_REST_MS = 1000,     /* after so long without a byte OpenSSL's buffers go */
    TLS_GENEROUS_MAX = 256, /* connections of a loop, over which they go at once */
    KEEP_IDLE_S = 10,       /* of a dialled one: what is silent for so long is probed */
    KEEP_BETWEEN_S = 5,
    KEEP_PROBES = 3,
    TLS_FIRST_BYTE =
        0x16, /* a handshake record; no text protocol and no MongoDB message begins so */
};

struct input {
    uint8_t *data; /* owned; NULL while nothing is kept */
    size_t at, len, capacity;
};

struct net_connection {
    struct net_shard *shard;
    struct net_loop *loop;
    struct net_connection *next, **link; /* in its shard's list */
    struct net_task start_task;
    int fd;
    enum state state;
    bool refused;
    bool aborted;     /* to be destroyed by settle */
    bool linger;      /* when finished */
    bool peer_closed; /* nothing more will come */
    bool never_full;
    bool full;       /* output passed the mark and has not fallen to half of it yet */
    bool give_again; /* the protocol can take what it left */
    bool write_blocked, write_wants_read;
    bool read_armed, write_armed;
    unsigned depth; /* inside callbacks; settle waits for the outermost */

    const struct net_protocol *protocol;
    void *protocol_state;
    struct net_tls *tls;
    bool tls_counted; /* as established */
    bool tls_pending; /* OpenSSL held more when reading stopped */
    struct input input;
    struct net_output output;
    struct memory_meter *meter; /* borrowed; may be NULL */
    size_t metered;             /* of the output, there */
    struct event read_event, write_event;
    struct net_timer *timer;
    uint64_t now_ns;
    int64_t now_ms;               /* the same */
    int64_t protocol_deadline_ms; /* NET_TIMER_NEVER: none */
    int64_t layer_deadline_ms;    /* handshake, write stall or linger; then it is destroyed */
    int64_t tls_rest_ms;          /* NET_TIMER_NEVER: it rests already */
    int stall_unsent;             /* what the kernel had not sent at the last look */
    struct net_address peer;
    bool passed_on; /* by another server: what follows is the client's */
    bool client_tls;
    struct slice subject; /* owned */
};

static void start(struct net_task *task, struct net_loop *loop);
static void readable(evutil_socket_t fd, short what, void *context);
static void writable(evutil_socket_t fd, short what, void *context);
static void timer_fired(void *context);
static bool connection_open(struct net_connection *connection);
static void connection_read(struct net_connection *connection);
static void connection_discard(struct net_connection *connection);
static void connection_give(struct net_connection *connection, struct slice bytes);
static void connection_send(struct net_connection *connection);
static void connection_settle(struct net_connection *connection);
static void connection_destroy(struct net_connection *connection);
static bool events_arm(struct net_connection *connection);
static void timer_arm(struct net_connection *connection);

static void connection_link(struct net_connection *connection, struct net_connection **list)
{
    connection->link = list;
    connection->next = *list;
    if (connection->next)
        connection->next->link = &connection->next;
    *list = connection;
}

static void connection_unlink(struct net_connection *connection)
{
    *connection->link = connection->next;
    if (connection->next)
        connection->next->link = connection->link;
}

static void connection_clock(struct net_connection *connection)
{
    connection->now_ns = clock_monotonic_ns();
    connection->now_ms = (int64_t)(connection->now_ns / 1000000);
}

/* Beginning */

void net_connection_start(struct net_shard *shard, int fd, const struct net_address *peer,
                          bool refused)
{
    struct net_connection *connection = MEMORY_NEW(struct net_connection);

    connection->shard = shard;
    connection->loop = shard->loop;
    connection->fd = fd;
    connection->refused = refused;
    connection->peer = *peer;
    connection->start_task.run = start;
    net_loop_load_change(shard->loop, 1);
    if (net_loop_is_current(shard->loop))
        start(&connection->start_task, shard->loop);
    else
        net_loop_post(shard->loop, &connection->start_task);
}

static void connection_attach(struct net_connection *connection)
{
    struct net_loop *loop = connection->loop;

    connection_link(connection, &connection->shard->connections);
    net_output_init(&connection->output, net_loop_chunks(loop));
    event_assign(&connection->read_event, net_loop_base(loop), connection->fd, EV_READ | EV_PERSIST,
                 readable, connection);
    event_assign(&connection->write_event, net_loop_base(loop), connection->fd,
                 EV_WRITE | EV_PERSIST, writable, connection);
    connection->timer = net_timer_new(loop, timer_fired, connection);
    connection_clock(connection);
}

/* A server that is asked may be a while about its answer, and its machine or the path to it may go
 * without a word. So the kernel is to find out: by probes while nothing is under way, else by what
 * nobody acknowledges. */
static void silence_watch(int fd, int64_t limit_ms)
{
    int one = 1, idle_s = KEEP_IDLE_S, between_s = KEEP_BETWEEN_S, probes = KEEP_PROBES;
    unsigned unacknowledged_ms = (unsigned)MIN(limit_ms, (int64_t)INT_MAX);

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between_s, sizeof between_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
}

/* The socket can be written to when it is connected, or cannot be: writing finds out which. */
struct net_connection *net_connection_dial(struct net_connection *beside,
                                           const struct net_address *to,
                                           struct net_tls_context *tls,
                                           const struct net_protocol *protocol, void *context)
{
    int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    struct net_connection *connection;

    if (fd < 0)
        return NULL;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    silence_watch(fd, beside->shard->settings->write_stall_ms);
    connection = MEMORY_NEW(struct net_connection);
    connection->shard = beside->shard;
    connection->loop = beside->loop;
    connection->fd = fd;
    connection->peer = *to;
    connection->aborted = connect(fd, &to->any, to->len) != 0 && errno != EINPROGRESS;
    net_loop_load_change(connection->loop, 1);
    net_listener_dialled(connection->shard->listener);
    connection_attach(connection);
    connection->tls = net_tls_new_dialling(tls, fd);
    connection->state = STATE_OPEN;
    connection->write_blocked = true;
    connection->layer_deadline_ms = connection->now_ms + connection->shard->settings->handshake_ms;
    connection->protocol = protocol;
    connection->protocol_state = protocol->open(connection, context);
    if (connection->aborted) /* told by the timer: whoever dials is not called back yet */
        connection->layer_deadline_ms = connection->now_ms;
    else if (!events_arm(connection))
        connection->layer_deadline_ms = connection->now_ms;
    timer_arm(connection);
    return connection;
}

static void start(struct net_task *task, struct net_loop *loop UNUSED)
{
    struct net_connection *connection = CONTAINER_OF(task, struct net_connection, start_task);
    struct net_shard *shard = connection->shard;

    connection_attach(connection);
    connection->layer_deadline_ms =
        connection->now_ms +
        (connection->refused ? shard->settings->linger_ms : shard->settings->handshake_ms);
    connection->aborted = shard->draining;
    connection_settle(connection);
}

/* The first byte tells TLS from anything else. False: there is no byte to see, or no place for it.
 */
static bool connection_open(struct net_connection *connection)
{
    struct net_shard *shard = connection->shard;
    CLEANUP(net_tls_context_unref)
    struct net_tls_context *context = net_listener_tls(shard->listener);
    uint8_t first = 0;

    if (context) {
        ssize_t got = recv(connection->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);

        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        connection->aborted = got <= 0 || (first == TLS_FIRST_BYTE ? connection->refused
                                                                   : shard->settings->tls_required);
        if (connection->aborted)
            return false;
    }
    if (connection->refused) {
        net_output_append(&connection->output, shard->protocol->refusal);
        connection->state = STATE_FINISHING;
        connection->linger = true;
        return false;
    }
    if (context && first == TLS_FIRST_BYTE)
        connection->tls =
            net_tls_new(context, connection->fd, net_loop_load(connection->loop) > TLS_GENEROUS_MAX,
                        shard->settings->client_certificates);
    connection->state = STATE_OPEN;
    connection->protocol = shard->protocol;
    connection->protocol_state = connection->protocol->open(connection, shard->context);
    return true;
}

/* What the loop calls */

static void readable(evutil_socket_t fd UNUSED, short what UNUSED, void *context)
{
    struct net_connection *connection = context;

    net_loop_mind_others(connection->loop);
    connection_clock(connection);
    connection->depth++;
    if (connection->write_wants_read)
        connection->write_blocked = connection->write_wants_read = false;
    if (connection->state == STATE_LINGERING)
        connection_discard(connection);
    else if (connection->state == STATE_OPEN ||
             (connection->state == STATE_NEW && connection_open(connection)))
        connection_read(connection);
    connection->depth--;
    connection_settle(connection);
}

static void writable(evutil_socket_t fd UNUSED, short what UNUSED, void *context)
{
    struct net_connection *connection = context;

    net_loop_mind_others(connection->loop);
    connection_clock(connection);
    connection->write_blocked = false;
    if (connection->tls && connection->state == STATE_OPEN &&
        !net_tls_is_established(connection->tls)) {
        connection->depth++;
        connection_read(connection); /* which goes on with the handshake */
        connection->depth--;
    }
    connection_settle(connection);
}

/* The socket took nothing for a while; yet its buffer is large, and a slow client may still be
 * emptying it. */
static bool write_stalled(struct net_connection *connection)
{
    int unsent = 0;

    if (connection->output.len == 0 || ioctl(connection->fd, SIOCOUTQ, &unsent) != 0 ||
        unsent >= connection->stall_unsent)
        return true;
    connection->stall_unsent = unsent;
    connection->layer_deadline_ms =
        connection->now_ms + connection->shard->settings->write_stall_ms;
    return false;
}

static bool is_due(const struct net_connection *connection, int64_t at_ms)
{
    return at_ms != NET_TIMER_NEVER && at_ms <= connection->now_ms;
}

static void timer_fired(void *context)
{
    struct net_connection *connection = context;

    connection_clock(connection);
    if (is_due(connection, connection->tls_rest_ms)) {
        connection->tls_rest_ms = NET_TIMER_NEVER;
        net_tls_rest(connection->tls);
    }
    if (is_due(connection, connection->layer_deadline_ms)) {
        connection->aborted = write_stalled(connection);
    } else if (connection->state == STATE_OPEN &&
               is_due(connection, connection->protocol_deadline_ms)) {
        connection->protocol_deadline_ms = NET_TIMER_NEVER;
        connection->depth++;
        connection->protocol->deadline(connection, connection->protocol_state);
        connection->depth--;
    }
    connection_settle(connection);
}

/* Reading */

static enum net_io socket_read(struct net_connection *connection, void *to, size_t size,
                               size_t *ret_count)
{
    ssize_t got = recv(connection->fd, to, size, 0);

    if (got > 0) {
        *ret_count = (size_t)got;
        return NET_IO_DONE;
    }
    if (got == 0)
        return NET_IO_CLOSED;
    return errno == EAGAIN || errno == EINTR ? NET_IO_WANTS_READ : NET_IO_FAILED;
}

/* Room behind what is kept, moving it to the front where that is enough. Less than max is kept, so
 * there is always room to be had. */
static void input_reserve(struct input *input, size_t max)
{
    if (input->capacity - input->at - input->len >= READ_ROOM)
        return;
    if (input->at)
        memmove(input->data, input->data + input->at, input->len);
    input->at = 0;
    if (input->capacity - input->len >= READ_ROOM)
        return;
    input->capacity = MIN(MAX(2 * input->capacity, input->len + READ_ROOM), max + READ_ROOM);
    input->data = memory_realloc(input->data, input->capacity);
}

static void input_done(struct input *input)
{
    memory_free(input->data);
    *input = (struct input){0};
}

static bool connection_can_read(const struct net_connection *connection)
{
    return connection->state == STATE_OPEN && !connection->aborted && !connection->peer_closed &&
           !connection->full && connection->input.len < connection->shard->settings->input_max;
}

static void connection_count_handshake(struct net_connection *connection)
{
    if (connection->tls && !connection->tls_counted && net_tls_is_established(connection->tls)) {
        connection->tls_counted = true;
        net_counter_add(&connection->shard->tls_handshakes, 1);
    }
}

/* Into the scratch memory, or behind what is kept. */
static enum net_io connection_read_once(struct net_connection *connection)
{
    struct input *input = &connection->input;
    uint8_t *to = net_loop_scratch(connection->loop);
    size_t size = NET_SCRATCH_SIZE, count = 0;
    bool kept = input->len > 0;
    enum net_io io;

    if (kept) {
        input_reserve(input, connection->shard->settings->input_max);
        to = input->data + input->at + input->len;
        size = input->capacity - input->at - input->len;
    }
    io = connection->tls ? net_tls_read(connection->tls, to, size, &count)
                         : socket_read(connection, to, size, &count);
    if (io != NET_IO_DONE)
        return io;
    net_counter_add(&connection->shard->bytes_in, count);
    if (connection->tls)
        connection->tls_rest_ms = connection->now_ms + TLS_REST_MS;
    if (!connection->write_blocked)
        connection->layer_deadline_ms = NET_TIMER_NEVER; /* the first bytes have come */
    if (kept) {
        input->len += count;
        connection_give(connection, slice_of(input->data + input->at, input->len));
    } else {
        connection_give(connection, slice_of(to, count));
    }
    return io;
}

/* Once, and with TLS while it holds more, within reason; events_arm looks after the rest. */
static void connection_read(struct net_connection *connection)
{
    for (int reads = 0; reads < READS_MAX && connection_can_read(connection); reads++) {
        enum net_io io = connection_read_once(connection);

        connection_count_handshake(connection);
        /* When it wants more from the socket, what it holds is half a record and of no use yet. */
        connection->tls_pending =
            io == NET_IO_DONE && connection->tls && net_tls_has_pending(connection->tls);
        switch (io) {
        case NET_IO_DONE:
            break;
        case NET_IO_WANTS_READ:
            return;
        case NET_IO_WANTS_WRITE: /* a handshake with more to say than the socket takes */
            connection->write_blocked = true;
            return;
        case NET_IO_CLOSED:
            connection->peer_closed = true;
            return;
        case NET_IO_FAILED:
            if (connection->tls && !connection->tls_counted)
                net_counter_add(&connection->shard->tls_failures, 1);
            connection->aborted = true;
            return;
        }
        if (!connection->tls_pending)
            return;
    }
}

/* Lets the protocol take from the front and keeps the rest. The bytes are the scratch memory or the
 * connection's own. */
static void connection_give(struct net_connection *connection, struct slice bytes)
{
    struct input *input = &connection->input;
    bool own = input->data && bytes.data == input->data + input->at;
    size_t taken;

    connection->depth++;
    taken = connection->protocol->bytes(connection, connection->protocol_state, bytes);
    connection->depth--;
    assert(taken <= bytes.len);
    if (own) {
        input->at += taken;
        input->len -= taken;
        if (input->len == 0)
            input_done(input);
    } else if (taken < bytes.len) {
        assert(!input->data);
        input->len = bytes.len - taken;
        input->capacity = input->len + READ_ROOM;
        input->data = memory_alloc(input->capacity);
        memcpy(input->data, bytes.data + taken, input->len);
    }
}

/* What still comes while lingering is thrown away. */
static void connection_discard(struct net_connection *connection)
{
    ssize_t got = recv(connection->fd, net_loop_scratch(connection->loop), NET_SCRATCH_SIZE, 0);

    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        connection->aborted = true;
}

/* Writing */

/* Leaves the first max bytes of the pieces; returns how many pieces that are. */
static size_t pieces_cut(struct iovec *pieces, size_t count, size_t max)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].iov_len >= max) {
            pieces[i].iov_len = max;
            return i + 1;
        }
        max -= pieces[i].iov_len;
    }
    return count;
}

/* At most max bytes, which is not 0. */
static enum net_io pieces_send(struct net_connection *connection, size_t max, size_t *ret_count)
{
    struct iovec pieces[PIECES_MAX];
    struct msghdr message = {.msg_iov = pieces};
    ssize_t sent;

    message.msg_iovlen = net_output_pieces(&connection->output, pieces, PIECES_MAX);
    message.msg_iovlen = pieces_cut(pieces, message.msg_iovlen, max);
    if (connection->tls)
        return net_tls_write(connection->tls, pieces[0].iov_base, pieces[0].iov_len, ret_count);
    if (message.msg_iovlen == 1)
        sent = send(connection->fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    else
        sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    if (sent >= 0) {
        *ret_count = (size_t)sent;
        return NET_IO_DONE;
    }
    return errno == EAGAIN || errno == EINTR ? NET_IO_WANTS_WRITE : NET_IO_FAILED;
}

/* Full above the mark, and until half of it is written: so that reading does not start and stop
 * with every byte. */
static void connection_mark(struct net_connection *connection)
{
    size_t high = connection->shard->settings->output_high;

    if (connection->never_full)
        return;
    if (connection->output.len > high) {
        connection->full = true;
    } else if (connection->full && connection->output.len <= high / 2) {
        connection->full = false;
        connection->give_again = true;
    }
}

/* Large answers are written in pieces: the rest waits until other connections of the loop have had
 * their turn, as it would for the socket. */
static void connection_send(struct net_connection *connection)
{
    size_t room = SEND_MAX;
    bool moved = false;

    while (connection->output.len && !connection->write_blocked && !connection->aborted) {
        size_t count = 0;

        if (room == 0) {
            connection->write_blocked = true;
            break;
        }
        switch (pieces_send(connection, room, &count)) {
        case NET_IO_DONE:
            room -= MIN(room, count);
            net_output_consume(&connection->output, count);
            net_counter_add(&connection->shard->bytes_out, count);
            moved = true;
            break;
        case NET_IO_WANTS_READ:
            connection->write_blocked = connection->write_wants_read = true;
            break;
        case NET_IO_WANTS_WRITE:
            connection->write_blocked = true;
            break;
        case NET_IO_CLOSED:
        case NET_IO_FAILED:
            connection->aborted = true;
            break;
        }
    }
    connection_mark(connection);
    /* The stall is counted from the last byte that moved. */
    if (connection->output.len == 0 && moved)
        connection->layer_deadline_ms = NET_TIMER_NEVER;
    else if (connection->output.len &&
             (moved || connection->layer_deadline_ms == NET_TIMER_NEVER)) {
        connection->layer_deadline_ms =
            connection->now_ms + connection->shard->settings->write_stall_ms;
        connection->stall_unsent = INT_MAX;
    }
}

/* Settling */

/* The output is written; the peer may still be sending. */
static void connection_end(struct net_connection *connection)
{
    if (connection->tls)
        net_tls_shutdown(connection->tls);
    if (!connection->linger || connection->peer_closed || shutdown(connection->fd, SHUT_WR) != 0) {
        connection->aborted = true;
        return;
    }
    input_done(&connection->input);
    connection->state = STATE_LINGERING;
    connection->layer_deadline_ms = connection->now_ms + connection->shard->settings->linger_ms;
}

static void connection_measure(struct net_connection *connection)
{
    memory_meter_set(connection->meter, connection->metered, connection->output.len);
    connection->metered = connection->output.len;
}

static void connection_settle(struct net_connection *connection)
{
    if (connection->depth)
        return;
    for (;;) {
        connection_send(connection);
        if (connection->state != STATE_OPEN || connection->aborted || !connection->give_again ||
            connection->full)
            break;
        connection->give_again = false;
        if (connection->protocol->room) {
            connection->depth++;
            connection->protocol->room(connection, connection->protocol_state);
            connection->depth--;
        }
        if (connection->input.len)
            connection_give(connection, slice_of(connection->input.data + connection->input.at,
                                                 connection->input.len));
    }
    if (connection->peer_closed &&
        (connection->state == STATE_OPEN || connection->state == STATE_NEW))
        connection->state = STATE_FINISHING;
    if (connection->state == STATE_FINISHING && connection->output.len == 0)
        connection_end(connection);
    connection_measure(connection);
    if (connection->aborted || !events_arm(connection))
        connection_destroy(connection);
    else
        timer_arm(connection);
}

static bool event_want(struct event *event, bool *armed, bool wanted)
{
    if (*armed == wanted)
        return true;
    *armed = wanted;
    return (wanted ? event_add(event, NULL) : event_del(event)) == 0;
}

/* False: the kernel takes no more watches. */
static bool events_arm(struct net_connection *connection)
{
    bool wants_read = connection->state == STATE_NEW || connection->state == STATE_LINGERING ||
                      connection->write_wants_read || connection_can_read(connection);

    if (!event_want(&connection->read_event, &connection->read_armed, wants_read) ||
        !event_want(&connection->write_event, &connection->write_armed,
                    connection->write_blocked && !connection->write_wants_read))
        return false;
    /* OpenSSL may hold what the socket will not announce again. It is read in a later round: this
     * may be a call from within another connection's callback, which has the scratch memory.
     * (libevent ignores the adding of an event that is active, so this comes after.) */
    if (connection->tls_pending && connection_can_read(connection))
        event_active(&connection->read_event, EV_READ, 0);
    return true;
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    if (a_ms == NET_TIMER_NEVER || b_ms == NET_TIMER_NEVER)
        return a_ms == NET_TIMER_NEVER ? b_ms : a_ms;
    return MIN(a_ms, b_ms);
}

static void timer_arm(struct net_connection *connection)
{
    int64_t at_ms = earlier(connection->layer_deadline_ms, connection->tls_rest_ms);

    if (connection->state == STATE_OPEN)
        at_ms = earlier(at_ms, connection->protocol_deadline_ms);
    net_timer_set(connection->timer, at_ms);
}

static void connection_destroy(struct net_connection *connection)
{
    struct net_shard *shard = connection->shard;
    bool refused = connection->refused;

    event_del(&connection->read_event);
    event_del(&connection->write_event);
    net_timer_free(connection->timer);
    connection_unlink(connection);
    if (connection->protocol) {
        connection->depth++;
        connection->protocol->closed(connection, connection->protocol_state);
    }
    net_output_done(&connection->output);
    connection_measure(connection);
    input_done(&connection->input);
    net_tls_free(connection->tls);
    memory_free((void *)(uintptr_t)connection->subject.data);
    close(connection->fd);
    net_loop_load_change(connection->loop, -1);
    memory_free(connection);
    net_listener_closed(shard->listener, refused);
}

/* The shard */

/* One by one into another list, for settling one connection may end any other. */
void net_shard_drain(struct net_shard *shard)
{
    struct net_connection *drained = NULL;

    shard->draining = true;
    while (shard->connections) {
        struct net_connection *connection = shard->connections;

        connection_unlink(connection);
        connection_link(connection, &drained);
        connection_clock(connection);
        if (connection->state == STATE_NEW) {
            connection->aborted = true;
        } else if (connection->state == STATE_OPEN) {
            connection->depth++;
            connection->protocol->drain(connection, connection->protocol_state);
            connection->depth--;
        }
        connection_settle(connection);
    }
    shard->connections = drained;
    if (drained)
        drained->link = &shard->connections;
}

void net_shard_abort(struct net_shard *shard)
{
    shard->draining = true;
    while (shard->connections)
        connection_destroy(shard->connections);
}

/* What protocols call */

struct net_output *net_connection_output(struct net_connection *connection)
{
    return &connection->output;
}

void net_connection_flush(struct net_connection *connection)
{
    if (connection->depth)
        return;
    connection_clock(connection);
    connection_settle(connection);
}

void net_connection_enter(struct net_connection *connection)
{
    connection_clock(connection);
    connection->depth++;
}

void net_connection_leave(struct net_connection *connection)
{
    assert(connection->depth);
    connection->depth--;
    net_connection_flush(connection);
}

bool net_connection_is_full(struct net_connection *connection)
{
    connection_mark(connection);
    return connection->full;
}

void net_connection_never_full(struct net_connection *connection)
{
    connection->never_full = true;
    connection->full = false;
}

void net_connection_resume(struct net_connection *connection)
{
    connection->give_again = true;
}

void net_connection_meter(struct net_connection *connection, struct memory_meter *meter)
{
    if (connection->meter == meter)
        return;
    memory_meter_set(connection->meter, connection->metered, 0);
    memory_meter_set(meter, 0, connection->metered);
    connection->meter = meter;
}

void net_connection_deadline(struct net_connection *connection, int64_t at_ms)
{
    connection->protocol_deadline_ms = at_ms;
}

void net_connection_finish(struct net_connection *connection, bool linger)
{
    if (connection->state == STATE_OPEN)
        connection->state = STATE_FINISHING;
    connection->linger |= linger || connection->input.len > 0;
}

void net_connection_become(struct net_connection *connection, const struct net_protocol *protocol,
                           void *context)
{
    assert(connection->depth && connection->state == STATE_OPEN);
    connection->protocol->closed(connection, connection->protocol_state);
    connection->protocol = protocol;
    connection->protocol_deadline_ms = NET_TIMER_NEVER;
    connection->protocol_state = protocol->open(connection, context);
    connection->give_again = true;
}

uint64_t net_connection_now_ns(const struct net_connection *connection)
{
    return connection->now_ns;
}

int64_t net_connection_now_ms(const struct net_connection *connection)
{
    return connection->now_ms;
}

struct net_loop *net_connection_loop(const struct net_connection *connection)
{
    return connection->loop;
}

void net_connection_stand_for(struct net_connection *connection, const struct net_address *client,
                              bool tls, struct slice subject)
{
    assert(!connection->passed_on);
    connection->passed_on = true;
    connection->peer = *client;
    connection->client_tls = tls;
    if (subject.len) {
        uint8_t *copy = memory_alloc(subject.len);

        memcpy(copy, subject.data, subject.len);
        connection->subject = slice_of(copy, subject.len);
    }
}

bool net_connection_is_tls(const struct net_connection *connection)
{
    return connection->passed_on ? connection->client_tls : connection->tls != NULL;
}

bool net_connection_subject(const struct net_connection *connection, struct buf *out)
{
    if (!connection->passed_on)
        return connection->tls && net_tls_subject(connection->tls, out);
    buf_append_slice(out, connection->subject);
    return connection->subject.len > 0;
}

const struct net_address *net_connection_peer(const struct net_connection *connection)
{
    return &connection->peer;
}

uint16_t net_connection_local_port(const struct net_connection *connection)
{
    return connection->shard->port;
}
