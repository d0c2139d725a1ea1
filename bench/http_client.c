/* Answers are read only as far as counting needs: the status, the length, and that all of the body
 * came. A body without Content-Length is in chunks, the last of which is empty. Bytes are received
 * where those of the answer before were, which the caches still hold; only a head that comes in
 * pieces is kept with its connection. */
#include "http_client.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE_MAX = 64 * 1024, HEAD_MAX = 4096 };

struct connection {
    int fd;
    size_t head_len;  /* of a head that is not complete */
    size_t body_left; /* 0: the next bytes are of a head */
    bool chunked;     /* the body goes on until its last chunk */
    char tail[5];     /* of what came of it */
    char head[HEAD_MAX];
};

struct http_client {
    struct http_client_plan plan;
    struct buf request;
    char received[HEAD_MAX + RECEIVE_MAX + 1]; /* with a NUL */
    struct connection connections[LOAD_CONNECTIONS_MAX];
};

static int connection_open(void *context, size_t index)
{
    struct http_client *http = context;
    struct connection *connection = &http->connections[index];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http->plan.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;

    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connection->head_len = connection->body_left = 0;
    connection->chunked = false;
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
        load_fail("port %u: %s", http->plan.port, strerror(errno));
    return connection->fd;
}

static void connection_close(void *context, size_t index)
{
    close(((struct http_client *)context)->connections[index].fd);
}

/* A request nearly always fits into the socket's buffer, since the one before is answered; a long
 * one may wait until the server reads. */
static void request_send(void *context, size_t index)
{
    struct http_client *http = context;
    size_t sent = 0;

    buf_clear(&http->request);
    http->plan.request_append(http->plan.context, &http->request);
    while (sent < http->request.len) {
        ssize_t taken = send(http->connections[index].fd, http->request.data + sent,
                             http->request.len - sent, MSG_NOSIGNAL);

        if (taken <= 0)
            load_fail("port %u takes no request: %s", http->plan.port, strerror(errno));
        sent += (size_t)taken;
    }
}

/* The length of a head with the empty line that ends it, and what it says about the body. 0: it is
 * not complete. */
static size_t head_read(const struct http_client *http, const char *head, size_t len,
                        size_t *ret_body, bool *ret_chunked)
{
    static const char name[] = "content-length:", chunks[] = "transfer-encoding: chunked";
    const char *length = NULL, *line = head, *end;
    unsigned long status;

    *ret_chunked = false;
    for (; (end = memchr(line, '\n', len - (size_t)(line - head))); line = end + 1) {
        if (*line == '\r')
            break;
        if ((*line | 0x20) == name[0] && strncasecmp(line, name, sizeof name - 1) == 0)
            length = line + sizeof name - 1;
        *ret_chunked |= strncasecmp(line, chunks, sizeof chunks - 1) == 0;
    }
    if (!end)
        return 0;
    *ret_body = length ? strtoul(length, NULL, 10) : 0;
    status = strtoul(head + strlen("HTTP/1.1 "), NULL, 10);
    if ((!length && !*ret_chunked && status != 204) || status != http->plan.status ||
        (!*ret_chunked && *ret_body < http->plan.body_min))
        load_fail("port %u gives another answer than %u with a body of %zu bytes:\n%s",
                  http->plan.port, http->plan.status, http->plan.body_min, head);
    return (size_t)(end + 1 - head);
}

/* Counts bytes of the body as come. */
static bool body_take(const struct http_client *http, struct connection *connection, size_t len)
{
    if (len > connection->body_left)
        load_fail("port %u says more than it was asked", http->plan.port);
    connection->body_left -= len;
    return connection->body_left == 0;
}

/* Looks for the last chunk at the end of what came; answers are not pipelined. */
static bool chunks_take(struct connection *connection, const char *bytes, size_t len)
{
    size_t size = sizeof connection->tail, kept = len < size ? size - len : 0;

    memmove(connection->tail, connection->tail + size - kept, kept);
    memcpy(connection->tail + kept, bytes + len - (size - kept), size - kept);
    connection->chunked = memcmp(connection->tail, "0\r\n\r\n", size) != 0;
    return !connection->chunked;
}

static bool answer_receive(void *context, size_t index)
{
    struct http_client *http = context;
    struct connection *connection = &http->connections[index];
    size_t len = connection->head_len, head_len;
    ssize_t got = recv(connection->fd, http->received + len, RECEIVE_MAX, 0);

    if (got <= 0)
        load_fail("port %u closes its connection", http->plan.port);
    if (connection->chunked)
        return chunks_take(connection, http->received, (size_t)got);
    if (connection->body_left)
        return body_take(http, connection, (size_t)got);
    memcpy(http->received, connection->head, len);
    len += (size_t)got;
    http->received[len] = '\0';
    head_len = head_read(http, http->received, len, &connection->body_left, &connection->chunked);
    if (head_len) {
        connection->head_len = 0;
        if (connection->chunked) {
            memset(connection->tail, 0, sizeof connection->tail);
            return chunks_take(connection, http->received + head_len, len - head_len);
        }
        return body_take(http, connection, len - head_len);
    }
    if (len > HEAD_MAX)
        load_fail("port %u sends a head of more than %d bytes", http->plan.port, HEAD_MAX);
    memcpy(connection->head, http->received, len);
    connection->head_len = len;
    return false;
}

struct http_client *http_client_new(const struct http_client_plan *plan)
{
    struct http_client *http = MEMORY_NEW(struct http_client);

    http->plan = *plan;
    buf_init(&http->request, BUF_DEFAULT_MAX);
    return http;
}

void http_client_free(struct http_client *http)
{
    buf_done(&http->request);
    memory_free(http);
}

struct load_client http_client_load(struct http_client *http)
{
    return (struct load_client){http, connection_open, request_send, answer_receive,
                                connection_close};
}

void http_client_once(const struct http_client_plan *plan)
{
    struct http_client *http = http_client_new(plan);

    connection_open(http, 0);
    request_send(http, 0);
    while (!answer_receive(http, 0))
        ;
    connection_close(http, 0);
    http_client_free(http);
}
