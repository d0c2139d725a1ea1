/* Frames are masked with a key of zeroes, which leaves them as they are. Of an answer the status is
 * looked for, which stands before the results; the frames of one answer end with one that is not
 * 206. */
#include "gremlin_client.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECEIVE_MAX = 256 * 1024, HEAD_MAX = 14 };

#define MIME "application/vnd.gremlin-v2.0+json"

struct connection {
    int fd;
    struct buf received; /* of the frame that is coming */
    size_t came;         /* bytes of frames of this answer */
};

struct gremlin_client {
    struct gremlin_client_plan plan;
    struct buf request, body;
    uint64_t sent;
    struct connection connections[LOAD_CONNECTIONS_MAX];
};

static void send_all(const struct gremlin_client *gremlin, int fd, struct slice bytes)
{
    while (bytes.len) {
        ssize_t taken = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);

        if (taken <= 0)
            load_fail("port %u takes no request: %s", gremlin->plan.port, strerror(errno));
        bytes = slice_of(bytes.data + taken, bytes.len - (size_t)taken);
    }
}

static void upgrade(const struct gremlin_client *gremlin, int fd)
{
    static const char asked[] = "GET /gremlin HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    char answer[4096];
    size_t len = 0;

    send_all(gremlin, fd, slice_of((const uint8_t *)asked, sizeof asked - 1));
    do {
        ssize_t got = recv(fd, answer + len, sizeof answer - 1 - len, 0);

        if (got <= 0)
            load_fail("port %u does not become a WebSocket", gremlin->plan.port);
        len += (size_t)got;
        answer[len] = '\0';
    } while (!strstr(answer, "\r\n\r\n"));
    if (strncmp(answer, "HTTP/1.1 101", 12) != 0)
        load_fail("port %u does not become a WebSocket:\n%s", gremlin->plan.port, answer);
}

static int connection_open(void *context, size_t index)
{
    struct gremlin_client *gremlin = context;
    struct connection *connection = &gremlin->connections[index];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(gremlin->plan.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;

    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connection->came = 0;
    buf_init(&connection->received, BUF_DEFAULT_MAX);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
        load_fail("port %u: %s", gremlin->plan.port, strerror(errno));
    upgrade(gremlin, connection->fd);
    return connection->fd;
}

static void connection_close(void *context, size_t index)
{
    struct connection *connection = &((struct gremlin_client *)context)->connections[index];

    close(connection->fd);
    buf_done(&connection->received);
}

static void frame_append(struct buf *out, struct slice payload)
{
    buf_append_byte(out, 0x82); /* the only one, binary */
    if (payload.len < 126) {
        buf_append_byte(out, (uint8_t)(0x80 | payload.len));
    } else if (payload.len < 65536) {
        buf_append_byte(out, 0x80 | 126);
        buf_append_byte(out, (uint8_t)(payload.len >> 8));
        buf_append_byte(out, (uint8_t)payload.len);
    } else {
        buf_append_byte(out, 0x80 | 127);
        buf_append_be64(out, payload.len);
    }
    buf_append_le32(out, 0); /* the mask */
    buf_append_slice(out, payload);
}

static void script_send(void *context, size_t index)
{
    struct gremlin_client *gremlin = context;
    struct buf *body = &gremlin->body;

    buf_clear(body);
    buf_append_byte(body, sizeof MIME - 1);
    BUF_APPEND(body, MIME);
    buf_printf(body,
               "{\"requestId\":{\"@type\":\"g:UUID\",\"@value\":"
               "\"00000000-0000-4000-8000-%012llx\"},\"op\":\"eval\",\"processor\":\"\","
               "\"args\":{\"aliases\":{\"g\":\"%s\"},\"language\":\"gremlin-groovy\",",
               (unsigned long long)gremlin->sent++, gremlin->plan.graph);
    gremlin->plan.script_append(gremlin->plan.context, body);
    BUF_APPEND(body, "}}");
    buf_clear(&gremlin->request);
    frame_append(&gremlin->request, buf_slice(body));
    send_all(gremlin, gremlin->connections[index].fd, buf_slice(&gremlin->request));
}

/* The length of the first frame and of its head; 0: it is not there yet. */
static size_t frame_len(const struct buf *received, size_t *ret_head)
{
    uint64_t len;

    if (received->len < 2)
        return 0;
    len = received->data[1] & 0x7F;
    *ret_head = 2;
    if (len == 126) {
        *ret_head = 4;
        if (received->len < *ret_head)
            return 0;
        len = (uint64_t)received->data[2] << 8 | received->data[3];
    } else if (len == 127) {
        *ret_head = 10;
        if (received->len < *ret_head)
            return 0;
        len = bytes_get_be64(received->data + 2);
    }
    return received->len < *ret_head + len ? 0 : *ret_head + (size_t)len;
}

/* The status of a frame. */
static unsigned long status_of(const struct gremlin_client *gremlin, const uint8_t *data,
                               size_t len)
{
    static const char name[] = "\"code\":";
    const char *code = memmem(data, len, name, sizeof name - 1);

    if (!code)
        load_fail("port %u sends a frame without a status: %.*s", gremlin->plan.port,
                  (int)MIN(len, (size_t)300), (const char *)data);
    return strtoul(code + sizeof name - 1, NULL, 10);
}

/* Takes the frames that are complete. True: the last of the answer was among them. */
static bool frames_take(const struct gremlin_client *gremlin, struct connection *connection)
{
    struct buf *received = &connection->received;
    size_t head, len;

    while ((len = frame_len(received, &head))) {
        unsigned long status = status_of(gremlin, received->data + head, len - head);

        if (status != 200 && status != 204 && status != 206)
            load_fail("port %u refuses a script: %.*s", gremlin->plan.port,
                      (int)MIN(len - head, (size_t)600), (const char *)received->data + head);
        connection->came += len;
        buf_consume(received, len);
        if (status == 206)
            continue;
        if (connection->came < gremlin->plan.reply_min)
            load_fail("port %u gives an answer of %zu bytes", gremlin->plan.port, connection->came);
        connection->came = 0;
        return true;
    }
    return false;
}

static bool answer_receive(void *context, size_t index)
{
    struct gremlin_client *gremlin = context;
    struct connection *connection = &gremlin->connections[index];
    struct buf *received = &connection->received;
    ssize_t got;

    if (!buf_reserve(received, RECEIVE_MAX))
        load_fail("port %u sends too much", gremlin->plan.port);
    got = recv(connection->fd, received->data + received->len, RECEIVE_MAX, 0);
    if (got <= 0)
        load_fail("port %u closes its connection", gremlin->plan.port);
    received->len += (size_t)got;
    return frames_take(gremlin, connection);
}

struct gremlin_client *gremlin_client_new(const struct gremlin_client_plan *plan)
{
    struct gremlin_client *gremlin = MEMORY_NEW(struct gremlin_client);

    gremlin->plan = *plan;
    buf_init(&gremlin->request, BUF_DEFAULT_MAX);
    buf_init(&gremlin->body, BUF_DEFAULT_MAX);
    return gremlin;
}

void gremlin_client_free(struct gremlin_client *gremlin)
{
    buf_done(&gremlin->request);
    buf_done(&gremlin->body);
    memory_free(gremlin);
}

struct load_client gremlin_client_load(struct gremlin_client *gremlin)
{
    return (struct load_client){gremlin, connection_open, script_send, answer_receive,
                                connection_close};
}

void gremlin_client_once(const struct gremlin_client_plan *plan)
{
    struct gremlin_client *gremlin = gremlin_client_new(plan);

    connection_open(gremlin, 0);
    script_send(gremlin, 0);
    while (!answer_receive(gremlin, 0))
        ;
    connection_close(gremlin, 0);
    gremlin_client_free(gremlin);
}
