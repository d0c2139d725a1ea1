/* A reply is looked at as far as a driver would before it hands it on: the length, and the fields
 * of its top level for ok and writeErrors. */
#include "mongo_client.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "document/bson.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER = 16, BODY = 21, OP_MSG = 2013, RECEIVE_MAX = 256 * 1024 };

struct connection {
    int fd;
    struct buf received; /* of the reply that is coming */
};

struct mongo_client {
    struct mongo_client_plan plan;
    struct buf request;
    struct connection connections[LOAD_CONNECTIONS_MAX];
};

static int connection_open(void *context, size_t index)
{
    struct mongo_client *mongo = context;
    struct connection *connection = &mongo->connections[index];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(mongo->plan.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int yes = 1;

    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    buf_init(&connection->received, BUF_DEFAULT_MAX);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
        load_fail("port %u: %s", mongo->plan.port, strerror(errno));
    return connection->fd;
}

static void connection_close(void *context, size_t index)
{
    struct connection *connection = &((struct mongo_client *)context)->connections[index];

    close(connection->fd);
    buf_done(&connection->received);
}

static void command_send(void *context, size_t index)
{
    static const uint8_t blank[BODY] = {0};
    struct mongo_client *mongo = context;
    struct buf *request = &mongo->request;
    size_t sent = 0;

    buf_clear(request);
    buf_append(request, blank, sizeof blank); /* no flags; a section of kind 0 */
    mongo->plan.command_append(mongo->plan.context, request);
    bytes_put_le32(request->data, (uint32_t)request->len);
    bytes_put_le32(request->data + 4, 1);
    bytes_put_le32(request->data + 12, OP_MSG);
    while (sent < request->len) {
        ssize_t taken = send(mongo->connections[index].fd, request->data + sent,
                             request->len - sent, MSG_NOSIGNAL);

        if (taken <= 0)
            load_fail("port %u takes no command: %s", mongo->plan.port, strerror(errno));
        sent += (size_t)taken;
    }
}

static void reply_check(const struct mongo_client *mongo, struct slice reply)
{
    struct document_value ok, errors;
    struct slice body;

    if (reply.len < BODY || reply.len < mongo->plan.reply_min)
        load_fail("port %u gives a reply of %zu bytes", mongo->plan.port, reply.len);
    body = slice_of(reply.data + BODY, reply.len - BODY);
    if (!document_find(body, SLICE("ok"), &ok) || ok.type != DOCUMENT_DOUBLE || ok.number != 1 ||
        document_find(body, SLICE("writeErrors"), &errors))
        load_fail("port %u refuses a command", mongo->plan.port);
}

static bool reply_receive(void *context, size_t index)
{
    struct mongo_client *mongo = context;
    struct connection *connection = &mongo->connections[index];
    struct buf *received = &connection->received;
    ssize_t got;

    if (!buf_reserve(received, RECEIVE_MAX))
        load_fail("port %u sends too much", mongo->plan.port);
    got = recv(connection->fd, received->data + received->len, RECEIVE_MAX, 0);
    if (got <= 0)
        load_fail("port %u closes its connection", mongo->plan.port);
    received->len += (size_t)got;
    if (received->len < HEADER || received->len < bytes_get_le32(received->data))
        return false;
    reply_check(mongo, buf_slice(received));
    buf_clear(received);
    return true;
}

struct mongo_client *mongo_client_new(const struct mongo_client_plan *plan)
{
    struct mongo_client *mongo = MEMORY_NEW(struct mongo_client);

    mongo->plan = *plan;
    buf_init(&mongo->request, BUF_DEFAULT_MAX);
    return mongo;
}

void mongo_client_free(struct mongo_client *mongo)
{
    buf_done(&mongo->request);
    memory_free(mongo);
}

struct load_client mongo_client_load(struct mongo_client *mongo)
{
    return (struct load_client){mongo, connection_open, command_send, reply_receive,
                                connection_close};
}

void mongo_client_once(const struct mongo_client_plan *plan)
{
    struct mongo_client *mongo = mongo_client_new(plan);

    connection_open(mongo, 0);
    command_send(mongo, 0);
    while (!reply_receive(mongo, 0))
        ;
    connection_close(mongo, 0);
    mongo_client_free(mongo);
}
