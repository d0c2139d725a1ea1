#include "support/proxy.h"

#include "base/memory.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PAIRS_MAX = 64, TICK_MS = 20 };

struct pair {
    int ends[2]; /* by the direction they are read for: client, server */
};

struct proxy {
    char path[108];
    int listener, port;
    struct thread thread;
    struct mutex lock;
    /* Under lock: */
    bool stop, refuse, frozen;
    bool armed, silent, fired;
    enum proxy_direction direction;
    size_t left, to_server;
    struct pair pairs[PAIRS_MAX];
    size_t pair_count;
    int orphans[PAIRS_MAX * 8]; /* server ends left open by silent cuts */
    size_t orphan_count;
};

static void must(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        abort();
    }
}

static void pair_accept(struct proxy *proxy)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    int server;

    if (client < 0)
        return;
    if (proxy->refuse || proxy->pair_count == PAIRS_MAX) {
        close(client);
        return;
    }
    memcpy(address.sun_path, proxy->path, sizeof address.sun_path);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(server >= 0, "socket");
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        close(server);
        close(client);
        return;
    }
    proxy->pairs[proxy->pair_count++] = (struct pair){{client, server}};
}

static void pair_close(struct proxy *proxy, size_t at, bool silent)
{
    struct pair *pair = &proxy->pairs[at];

    close(pair->ends[PROXY_TO_SERVER]);
    if (silent && proxy->orphan_count < ARRAY_LEN(proxy->orphans))
        proxy->orphans[proxy->orphan_count++] = pair->ends[PROXY_TO_CLIENT];
    else
        close(pair->ends[PROXY_TO_CLIENT]);
    *pair = proxy->pairs[--proxy->pair_count];
}

static bool all_write(int to, const char *bytes, size_t count)
{
    while (count) {
        ssize_t wrote = send(to, bytes, count, MSG_NOSIGNAL);

        if (wrote <= 0)
            return false;
        bytes += wrote;
        count -= (size_t)wrote;
    }
    return true;
}

static void cut(struct proxy *proxy)
{
    proxy->armed = false;
    proxy->fired = true;
    while (proxy->pair_count)
        pair_close(proxy, proxy->pair_count - 1, proxy->silent);
}

/* Forwards once; false: the pair is to be closed, or all have been. */
static bool forward(struct proxy *proxy, struct pair *pair, enum proxy_direction direction)
{
    char bytes[16 * 1024];
    bool counted = proxy->armed && proxy->direction == direction;
    ssize_t got = recv(pair->ends[direction], bytes, sizeof bytes, MSG_DONTWAIT);
    size_t count;

    if (got <= 0)
        return false;
    count = counted ? MIN((size_t)got, proxy->left) : (size_t)got;
    if (direction == PROXY_TO_SERVER)
        proxy->to_server += count;
    if (!all_write(pair->ends[!direction], bytes, count))
        return false;
    if (counted) {
        proxy->left -= count;
        if (count < (size_t)got || proxy->left == 0)
            cut(proxy);
    }
    return true;
}

static void pairs_serve(struct proxy *proxy, const struct pollfd *polled, size_t count)
{
    for (size_t i = count; i-- > 0;) /* from the back: closing moves the last one here */
        for (int direction = 0; direction < 2; direction++) {
            if (!polled[1 + 2 * i + (size_t)direction].revents || i >= proxy->pair_count)
                continue;
            if (!forward(proxy, &proxy->pairs[i], (enum proxy_direction)direction)) {
                pair_close(proxy, i, false);
                break;
            }
        }
}

static void proxy_run(void *context)
{
    struct proxy *proxy = context;
    struct pollfd polled[1 + 2 * PAIRS_MAX];
    bool stop = false;

    while (!stop) {
        size_t count = 0;
        bool frozen;

        WITH_LOCK (&proxy->lock) {
            frozen = proxy->frozen;
            polled[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
            for (; !frozen && count < proxy->pair_count; count++)
                for (int end = 0; end < 2; end++)
                    polled[1 + 2 * count + (size_t)end] =
                        (struct pollfd){.fd = proxy->pairs[count].ends[end], .events = POLLIN};
        }
        poll(polled, frozen ? 0 : 1 + 2 * count, TICK_MS);
        WITH_LOCK (&proxy->lock) {
            stop = proxy->stop;
            if (!stop && !frozen && !proxy->frozen) {
                pairs_serve(proxy, polled, count);
                if (polled[0].revents)
                    pair_accept(proxy);
            }
        }
    }
}

struct proxy *proxy_start(const char *path)
{
    struct proxy *proxy = MEMORY_NEW(struct proxy);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;

    snprintf(proxy->path, sizeof proxy->path, "%s", path);
    mutex_init(&proxy->lock);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(proxy->listener >= 0, "socket");
    must(bind(proxy->listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    must(listen(proxy->listener, 64) == 0, "listen");
    must(getsockname(proxy->listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
    proxy->port = ntohs(address.sin_port);
    thread_start(&proxy->thread, "proxy", proxy_run, proxy);
    return proxy;
}

void proxy_free(struct proxy *proxy)
{
    if (!proxy)
        return;
    WITH_LOCK (&proxy->lock) {
        proxy->stop = true;
    }
    thread_join(&proxy->thread);
    while (proxy->pair_count)
        pair_close(proxy, proxy->pair_count - 1, false);
    while (proxy->orphan_count)
        close(proxy->orphans[--proxy->orphan_count]);
    close(proxy->listener);
    mutex_done(&proxy->lock);
    memory_free(proxy);
}

int proxy_port(const struct proxy *proxy)
{
    return proxy->port;
}

void proxy_cut_after(struct proxy *proxy, enum proxy_direction direction, size_t bytes, bool silent)
{
    WITH_LOCK (&proxy->lock) {
        proxy->armed = true;
        proxy->fired = false;
        proxy->direction = direction;
        proxy->left = bytes;
        proxy->silent = silent;
    }
}

bool proxy_cut_cancel(struct proxy *proxy)
{
    bool fired;

    WITH_LOCK (&proxy->lock) {
        proxy->armed = false;
        fired = proxy->fired;
    }
    return fired;
}

size_t proxy_bytes_to_server(struct proxy *proxy)
{
    size_t bytes;

    WITH_LOCK (&proxy->lock) {
        bytes = proxy->to_server;
    }
    return bytes;
}

void proxy_refuse(struct proxy *proxy, bool refuse)
{
    WITH_LOCK (&proxy->lock) {
        proxy->refuse = refuse;
    }
}

void proxy_freeze(struct proxy *proxy, bool freeze)
{
    WITH_LOCK (&proxy->lock) {
        proxy->frozen = freeze;
    }
}
