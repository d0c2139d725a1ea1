/* Answers are read only as far as counting needs: the status, the length, and that all of the body
 * came. All servers measured send Content-Length. */
#include "http_client.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024 };

struct connection {
    int fd;
    size_t len;  /* of what has come */
    size_t need; /* the whole answer; 0: its head is not complete yet */
    char answer[ANSWER_MAX + 1];
};

struct http_client {
    struct http_client_plan plan;
    struct buf request;
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
    connection->len = connection->need = 0;
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
        load_fail("port %u: %s", http->plan.port, strerror(errno));
    return connection->fd;
}

static void connection_close(void *context, size_t index)
{
    close(((struct http_client *)context)->connections[index].fd);
}

/* A request of this size always fits into the socket's buffer, since the one before is answered. */
static void request_send(void *context, size_t index)
{
    struct http_client *http = context;

    buf_clear(&http->request);
    http->plan.request_append(http->plan.context, &http->request);
    if (send(http->connections[index].fd, http->request.data, http->request.len, MSG_NOSIGNAL) !=
        (ssize_t)http->request.len)
        load_fail("port %u takes no request: %s", http->plan.port, strerror(errno));
}

/* Sets need once the head is whole. */
static void head_read(const struct http_client *http, struct connection *connection)
{
    const char *end = strstr(connection->answer, "\r\n\r\n");
    const char *length = strcasestr(connection->answer, "\r\ncontent-length:");
    size_t body;

    if (!end)
        return;
    if (!length || length > end)
        load_fail("port %u answers without a length:\n%s", http->plan.port, connection->answer);
    body = strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    connection->need = (size_t)(end + 4 - connection->answer) + body;
    if (connection->need > ANSWER_MAX || body < http->plan.body_min ||
        strtoul(connection->answer + strlen("HTTP/1.1 "), NULL, 10) != http->plan.status)
        load_fail("port %u gives another answer than %u:\n%s", http->plan.port, http->plan.status,
                  connection->answer);
}

static bool answer_receive(void *context, size_t index)
{
    struct http_client *http = context;
    struct connection *connection = &http->connections[index];
    ssize_t got =
        recv(connection->fd, connection->answer + connection->len, ANSWER_MAX - connection->len, 0);

    if (got <= 0)
        load_fail("port %u closes its connection after \"%.*s\"", http->plan.port,
                  (int)connection->len, connection->answer);
    connection->len += (size_t)got;
    connection->answer[connection->len] = '\0';
    if (!connection->need)
        head_read(http, connection);
    if (!connection->need || connection->len < connection->need)
        return false;
    if (connection->len > connection->need)
        load_fail("port %u says more than it was asked", http->plan.port);
    connection->len = connection->need = 0;
    return true;
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
