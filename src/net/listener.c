/* The listening socket is watched by loop 0. Socket options are set on it once and inherited by
 * what it accepts, which saves a system call for each connection.
 *
 * open counts connections from accept to close over all loops; drain waits for it to reach zero. A
 * few connections over the limit are kept just long enough to be told so; beyond these the socket
 * is closed at once. */
#include "net/connection_private.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

enum {
    ACCEPTS_PER_EVENT = 64, /* then the connections of loop 0 get their turn */
    REFUSALS_MAX = 64,      /* open at the same time */
    ACCEPT_PAUSE_MS = 100,
};

struct net_listener {
    struct net_listener_settings settings;
    struct net_address address;
    struct net_loops *loops;
    int fd; /* -1 once it no longer accepts; loop 0 only */
    struct event accept_event;
    struct net_timer *pause_timer;
    size_t next_loop; /* where the search for the least loaded begins */

    atomic_size_t open, refusing;
    atomic_bool draining;
    _Atomic uint64_t accepted, refused, accept_pauses; /* written by loop 0 only */

    struct mutex lock; /* for tls, and for all_closed */
    struct net_tls_context *tls;
    struct condition all_closed;

    struct net_shard shards[]; /* one for each loop */
};

static void acceptable(evutil_socket_t fd, short what, void *context);
static void accept_resume(void *context);
static void accept_begin(void *context);
static void accept_end(void *context);

struct net_listener_settings net_listener_settings_default(void)
{
    return (struct net_listener_settings){
        .connections_max = 10000,
        .backlog = 1024,
        .input_max = 128 * 1024,
        .output_high = 1024 * 1024,
        .write_stall_ms = 20 * 1000,
        .linger_ms = 1000,
        .handshake_ms = 20 * 1000,
    };
}

static bool address_error(struct error *err, const struct net_address *address)
{
    char host[NET_ADDRESS_TEXT_SIZE];
    unsigned port = net_address_port(address);
    int reason = errno;

    net_address_host(address, host);
    switch (reason) {
    case EADDRINUSE:
        return error_set(err, ERROR_ADDRESS, "port %u on %s is in use", port, host);
    case EADDRNOTAVAIL:
        return error_set(err, ERROR_ADDRESS, "this machine has no address %s", host);
    case EACCES:
        return error_set(err, ERROR_ADDRESS, "port %u on %s needs privileges to listen on", port,
                         host);
    default:
        return error_set_errno(err, ERROR_ADDRESS, "cannot listen on port %u of %s", port, host);
    }
}

static void fd_close_cleanup_(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool socket_listen(const struct net_address *address, int backlog, int *ret_fd,
                          struct net_address *ret_address, struct error *err)
{
    CLEANUP(fd_close)
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct net_address real = {.len = sizeof real.v6};
    int one = 1;

    if (fd < 0)
        return error_set_errno(err, ERROR_SYSTEM, "cannot make a socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* Each address is listened on by name: [::] must not quietly take IPv4 as well. */
    if (address->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, &address->any, address->len) != 0 || listen(fd, backlog) != 0)
        return address_error(err, address);
    if (getsockname(fd, &real.any, &real.len) != 0)
        return error_set_errno(err, ERROR_SYSTEM, "cannot read the address of a socket");
    *ret_address = real;
    *ret_fd = fd;
    fd = -1; /* the caller's now */
    return true;
}

bool net_listener_new(struct net_loops *loops, const struct net_address *address,
                      const struct net_listener_settings *settings,
                      const struct net_protocol *protocol, void *context,
                      struct net_tls_context *tls, struct net_listener **ret_listener,
                      struct error *err)
{
    size_t count = net_loops_count(loops);
    struct net_listener *listener;
    struct net_address real;
    int fd = -1;

    if (!socket_listen(address, settings->backlog, &fd, &real, err))
        return false;
    listener =
        memory_alloc_zero(sizeof *listener + memory_array_size(count, sizeof(struct net_shard)));
    listener->settings = *settings;
    listener->address = real;
    listener->loops = loops;
    listener->fd = fd;
    listener->tls = tls ? net_tls_context_ref(tls) : NULL;
    mutex_init(&listener->lock);
    condition_init(&listener->all_closed);
    for (size_t i = 0; i < count; i++)
        listener->shards[i] = (struct net_shard){
            .listener = listener,
            .loop = net_loops_at(loops, i),
            .settings = &listener->settings,
            .protocol = protocol,
            .context = context,
            .port = net_address_port(&real),
        };
    net_loop_call(net_loops_at(loops, 0), accept_begin, listener);
    *ret_listener = listener;
    return true;
}

static void accept_begin(void *context)
{
    struct net_listener *listener = context;
    struct net_loop *loop = net_loops_at(listener->loops, 0);

    listener->pause_timer = net_timer_new(loop, accept_resume, listener);
    event_assign(&listener->accept_event, net_loop_base(loop), listener->fd, EV_READ | EV_PERSIST,
                 acceptable, listener);
    event_add(&listener->accept_event, NULL);
}

static void accept_end(void *context)
{
    struct net_listener *listener = context;

    if (listener->fd < 0)
        return;
    event_del(&listener->accept_event);
    net_timer_free(listener->pause_timer);
    close(listener->fd);
    listener->fd = -1;
}

static void accept_resume(void *context)
{
    struct net_listener *listener = context;

    event_add(&listener->accept_event, NULL);
}

/* Every loop equally loaded gets its turn. */
static struct net_shard *shard_choose(struct net_listener *listener)
{
    size_t count = net_loops_count(listener->loops);
    size_t best = listener->next_loop % count;

    for (size_t i = 1; i < count; i++) {
        size_t candidate = (listener->next_loop + i) % count;

        if (net_loop_load(listener->shards[candidate].loop) <
            net_loop_load(listener->shards[best].loop))
            best = candidate;
    }
    listener->next_loop = best + 1;
    return &listener->shards[best];
}

static void connection_admit(struct net_listener *listener, int fd, const struct net_address *peer)
{
    bool refused = atomic_load_explicit(&listener->open, memory_order_relaxed) >=
                   listener->settings.connections_max;

    if (!refused) {
        net_counter_add(&listener->accepted, 1);
        atomic_fetch_add_explicit(&listener->open, 1, memory_order_relaxed);
        net_connection_start(shard_choose(listener), fd, peer, false);
        return;
    }
    net_counter_add(&listener->refused, 1);
    if (atomic_load_explicit(&listener->refusing, memory_order_relaxed) >= REFUSALS_MAX) {
        close(fd);
        return;
    }
    atomic_fetch_add_explicit(&listener->refusing, 1, memory_order_relaxed);
    net_connection_start(shard_choose(listener), fd, peer, true);
}

static void acceptable(evutil_socket_t fd, short what UNUSED, void *context)
{
    struct net_listener *listener = context;

    for (int i = 0; i < ACCEPTS_PER_EVENT; i++) {
        struct net_address peer = {.len = sizeof peer.v6};
        int accepted = accept4(fd, &peer.any, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (accepted >= 0) {
            connection_admit(listener, accepted, &peer);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The socket stays readable: watching it would spin until somebody hangs up. */
            net_counter_add(&listener->accept_pauses, 1);
            event_del(&listener->accept_event);
            net_timer_set(listener->pause_timer, clock_monotonic_ms() + ACCEPT_PAUSE_MS);
            return;
        }
        if (errno == EAGAIN)
            return;
        /* Anything else is about the one connection that failed before we took it. */
    }
}

struct net_tls_context *net_listener_tls(struct net_listener *listener)
{
    struct net_tls_context *tls = NULL;

    WITH_LOCK (&listener->lock) {
        if (listener->tls)
            tls = net_tls_context_ref(listener->tls);
    }
    return tls;
}

void net_listener_set_tls(struct net_listener *listener, struct net_tls_context *tls)
{
    struct net_tls_context *before = NULL;

    net_tls_context_ref(tls);
    WITH_LOCK (&listener->lock) {
        before = listener->tls;
        assert(before);
        listener->tls = tls;
    }
    net_tls_context_unref(before);
}

void net_listener_dialled(struct net_listener *listener)
{
    atomic_fetch_add_explicit(&listener->open, 1, memory_order_relaxed);
}

/* Every loop passes through shard_drain after draining was set, so none misses it while somebody
 * waits; and through shard_abort before the listener is freed, so none is in here by then. */
void net_listener_closed(struct net_listener *listener, bool refused)
{
    atomic_size_t *counter = refused ? &listener->refusing : &listener->open;

    atomic_fetch_sub_explicit(counter, 1, memory_order_release);
    if (atomic_load_explicit(&listener->draining, memory_order_relaxed))
        WITH_LOCK (&listener->lock) {
            condition_broadcast(&listener->all_closed);
        }
}

const struct net_address *net_listener_address(const struct net_listener *listener)
{
    return &listener->address;
}

static void shard_drain(void *context)
{
    net_shard_drain(context);
}

static void shard_abort(void *context)
{
    net_shard_abort(context);
}

static void shards_call(struct net_listener *listener, void (*run)(void *context))
{
    for (size_t i = 0; i < net_loops_count(listener->loops); i++)
        net_loop_call(listener->shards[i].loop, run, &listener->shards[i]);
}

bool net_listener_drain(struct net_listener *listener, int64_t timeout_ms)
{
    int64_t until_ms = clock_monotonic_ms() + timeout_ms;
    bool in_time = true;

    net_loop_call(net_loops_at(listener->loops, 0), accept_end, listener);
    atomic_store_explicit(&listener->draining, true, memory_order_relaxed);
    shards_call(listener, shard_drain);
    WITH_LOCK (&listener->lock) {
        while (in_time && atomic_load_explicit(&listener->open, memory_order_acquire) > 0)
            in_time = condition_wait_until(&listener->all_closed, &listener->lock, until_ms);
    }
    if (!in_time)
        shards_call(listener, shard_abort);
    return in_time;
}

void net_listener_free(struct net_listener *listener)
{
    if (!listener)
        return;
    net_loop_call(net_loops_at(listener->loops, 0), accept_end, listener);
    shards_call(listener, shard_abort);
    net_tls_context_unref(listener->tls);
    condition_done(&listener->all_closed);
    mutex_done(&listener->lock);
    memory_free(listener);
}

void net_listener_metrics(const struct net_listener *listener,
                          struct net_listener_metrics *ret_metrics)
{
    struct net_listener_metrics metrics = {
        .open = atomic_load_explicit(&listener->open, memory_order_relaxed),
        .accepted = net_counter_read(&listener->accepted),
        .refused = net_counter_read(&listener->refused),
        .accept_pauses = net_counter_read(&listener->accept_pauses),
    };

    for (size_t i = 0; i < net_loops_count(listener->loops); i++) {
        const struct net_shard *shard = &listener->shards[i];

        metrics.tls_handshakes += net_counter_read(&shard->tls_handshakes);
        metrics.tls_failures += net_counter_read(&shard->tls_failures);
        metrics.bytes_in += net_counter_read(&shard->bytes_in);
        metrics.bytes_out += net_counter_read(&shard->bytes_out);
    }
    *ret_metrics = metrics;
}
