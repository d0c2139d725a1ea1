/* What the server says of itself: the note for commands, and the text a person sees at start. Only
 * what is true: fronts that listen, and a key file rather than a key, since standard output may end
 * in a log that others read. */
#include "server/server_private.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The host part of a URL clients can use: an address that means "all" is none. */
static void host_print(const struct net_address *address, char *ret_host, size_t size)
{
    char text[NET_ADDRESS_TEXT_SIZE];

    if (net_address_is_any(address) && gethostname(ret_host, size) == 0) {
        ret_host[size - 1] = '\0';
        return;
    }
    net_address_host(address, text);
    if (address->any.sa_family == AF_INET6 && text[0] != '[')
        snprintf(ret_host, size, "[%s]", text);
    else
        snprintf(ret_host, size, "%s", text);
}

/* The root keeps the catalogue, and with it the keys. */
static bool root_forgets(const struct server *server)
{
    return server->nodes &&
           slice_starts_with(engine_name(nodes_at(server->nodes, 0)->engine), SLICE("memory:"));
}

static void certificate_print(const struct server *server, struct buf *out)
{
    const char *directory = server->nodes ? nodes_directory(server->nodes) : NULL;

    if (server->settings->tls_certificate[0])
        buf_printf(out, "certificate %s", server->settings->tls_certificate);
    else if (directory)
        buf_printf(out, "for https trust %s/tls/ca.pem, also at /_orrery/ca.pem", directory);
    else
        buf_printf(out, "for https trust /_orrery/ca.pem, %s",
                   root_forgets(server) ? "of this run only" : "kept with the data");
}

/* Where there is no file the key has to be told. One of this run alone always is; one that is kept
 * is told once, by the start that made it, and only to a person: standard output may be a journal
 * that others read. */
static bool key_is_told(const struct server *server, bool terminal)
{
    return !server->keys.path[0] && (root_forgets(server) || (terminal && server->keys.made));
}

static void key_print(const struct server *server, bool terminal, struct buf *out)
{
    if (server->settings->server_dev)
        buf_printf(out, "  key      %s\n           (the public emulator key, because of --dev)\n",
                   account_key_emulator);
    else if (server->keys.path[0])
        buf_printf(out, "  key      in the file %s\n", server->keys.path);
    else if (key_is_told(server, terminal))
        buf_printf(out, "  key      %s\n           (%s)\n", server->keys.primary,
                   root_forgets(server) ? "of this run only: no rocksdb node to keep it in"
                                        : "kept with the data, and shown this once");
    else
        BUF_APPEND(out, "  key      kept with the data: `orrery account keys --node ...`, as this\n"
                        "           server was started, shows it while the server is stopped\n");
}

/* The key of the connection string. A secret that lives in a file is not shown. */
static const char *key_shown(const struct server *server, bool terminal)
{
    if (server->settings->server_dev)
        return account_key_emulator;
    return key_is_told(server, terminal) ? server->keys.primary : "<the key>";
}

static void rest_print(const struct server *server, bool terminal, struct buf *out)
{
    const struct net_address *address = net_listener_address(server->rest);
    const char *scheme = server->settings->tls_required ? "https" : "http";
    unsigned port = net_address_port(address);
    char host[NET_ADDRESS_TEXT_SIZE + 8];

    host_print(address, host, sizeof host);
    buf_printf(out, "  REST     %s://%s:%u/  (/ready, /metrics)\n", scheme, host, port);
    if (!server->settings->tls_required)
        buf_printf(out, "           https://%s:%u/\n", host, port);
    BUF_APPEND(out, "           (");
    certificate_print(server, out);
    BUF_APPEND(out, ")\n");
    if (server->settings->portal_on)
        buf_printf(out, "  Portal   %s://%s:%u/_orrery/portal/\n", scheme, host, port);
    key_print(server, terminal, out);
    buf_printf(out, "  NoSQL    AccountEndpoint=%s://%s:%u/;AccountKey=%s;\n", scheme, host, port,
               key_shown(server, terminal));
}

/* What clients of tables take: the account's name stands in the path. */
static void table_print(const struct server *server, bool terminal, struct buf *out)
{
    const struct net_address *address = net_listener_address(server->table);
    const char *scheme = server->settings->tls_required ? "https" : "http";
    const char *account = server->settings->server_dev ? "devstoreaccount1" : "default";
    char host[NET_ADDRESS_TEXT_SIZE + 8];

    host_print(address, host, sizeof host);
    buf_printf(out,
               "  Tables   DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;"
               "TableEndpoint=%s://%s:%u/%s;\n",
               scheme, account, key_shown(server, terminal), scheme, host,
               net_address_port(address), account);
}

/* A key in a URL: what base64 has besides letters and digits is escaped. */
static void key_escape(const char *key, struct buf *out)
{
    for (; *key; key++)
        if (strchr("+/=", *key))
            buf_printf(out, "%%%02X", (unsigned)(uint8_t)*key);
        else
            buf_append_byte(out, (uint8_t)*key);
}

/* What drivers take. With --dev nobody has to say who they are on the first. */
static void mongo_print(const struct server *server, enum mongo_face face, bool terminal,
                        struct buf *out)
{
    const struct net_address *address = net_listener_address(server->mongo[face]);
    bool set = face == MONGO_FACE_REPLICA_SET, dev = server->settings->server_dev;
    char host[NET_ADDRESS_TEXT_SIZE + 8];

    host_print(address, host, sizeof host);
    BUF_APPEND(out, "  MongoDB  mongodb://");
    if (set || !dev) {
        buf_printf(out, "%s:", dev ? MONGO_EMULATOR_ACCOUNT : "default");
        key_escape(key_shown(server, terminal), out);
        BUF_APPEND(out, "@");
    }
    buf_printf(out, "%s:%u/%s\n", host, net_address_port(address),
               set                              ? "?tls=true&replicaSet=globaldb&retrywrites=false"
               : server->settings->tls_required ? "?tls=true"
                                                : "");
}

/* What drivers take. With --dev nobody has to say who they are over plain WebSocket. */
static void gremlin_print(const struct server *server, bool terminal, struct buf *out)
{
    const struct net_address *address = net_listener_address(server->gremlin);
    char host[NET_ADDRESS_TEXT_SIZE + 8];

    host_print(address, host, sizeof host);
    buf_printf(out, "  Gremlin  %s://%s:%u/gremlin  (/dbs/DATABASE/colls/GRAPH, %s%s)\n",
               server->settings->tls_required ? "wss" : "ws", host, net_address_port(address),
               server->settings->server_dev ? "the emulator key" : key_shown(server, terminal),
               server->settings->server_dev ? ", or nothing at all" : "");
}

/* As this machine reaches a front: where it listens everywhere, on loopback. */
static void local_print(const struct net_address *address, char *ret_host, size_t size)
{
    if (address->any.sa_family == AF_INET && address->v4.sin_addr.s_addr == INADDR_ANY)
        snprintf(ret_host, size, "127.0.0.1");
    else if (address->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr))
        snprintf(ret_host, size, "[::1]");
    else
        host_print(address, ret_host, size);
}

void server_announce(struct server *server)
{
    const char *directory = server->nodes ? nodes_directory(server->nodes) : NULL;
    char host[NET_ADDRESS_TEXT_SIZE + 8], endpoint[NET_ADDRESS_TEXT_SIZE + 32], whole[PATH_MAX];
    struct error err;

    if (!server->rest)
        return; /* nothing commands could ask */
    local_print(net_listener_address(server->rest), host, sizeof host);
    snprintf(endpoint, sizeof endpoint, "%s://%s:%u",
             server->settings->tls_required ? "https" : "http", host,
             net_address_port(net_listener_address(server->rest)));
    if (!directory || !realpath(directory, whole) || strchr(whole, '\n'))
        whole[0] = '\0';
    if (!presence_leave(&(struct presence_note){endpoint, whole, server->settings->server_dev},
                        &server->presence, &err))
        log_event(server->log, LOG_INFO, "commands have to be told where the server is",
                  LOG_TEXT("because", err.message));
}

/* Which of several it is. */
static void member_print(const struct server *server, struct buf *out)
{
    char owner[ENGINE_MEMBER_NAME_SIZE];

    if (!server->member)
        return;
    member_owner_name(server->member, owner);
    if (server->owns)
        buf_printf(out, "  server   %s, which owns the nodes\n", server->settings->servers_name);
    else
        buf_printf(out, "  server   %s, which passes on what it is asked to %s\n",
                   server->settings->servers_name,
                   owner[0] ? owner : "the one that owns the nodes");
}

void server_describe(const struct server *server, bool terminal, struct buf *out)
{
    BUF_APPEND(out, "Orrery " ORRERY_VERSION " is ready.\n\n");
    member_print(server, out);
    if (server->rest)
        rest_print(server, terminal, out);
    else
        BUF_APPEND(out, "  REST     off\n");
    if (server->table)
        table_print(server, terminal, out);
    else
        BUF_APPEND(out, "  Tables   off\n");
    for (int i = 0; i < MONGO_FACES; i++)
        if (server->mongo[i])
            mongo_print(server, (enum mongo_face)i, terminal, out);
    if (!server->mongo[MONGO_FACE_MONGOS] && !server->mongo[MONGO_FACE_REPLICA_SET])
        BUF_APPEND(out, "  MongoDB  off\n");
    if (server->gremlin)
        gremlin_print(server, terminal, out);
    else
        BUF_APPEND(out, "  Gremlin  off\n");
    for (size_t i = 0; server->nodes && i < nodes_count(server->nodes); i++) {
        const struct nodes_member *node = nodes_at(server->nodes, i);

        struct error err;

        buf_printf(out, "  %s %s = %.*s%s\n", i == 0 ? "data    " : "        ", node->name,
                   SLICE_ARG(engine_name(node->engine)),
                   engine_serves(node->engine, &err) ? ""
                   : err.code == ERROR_NODE_PAUSED   ? "  (paused)"
                                                     : "  (down)");
    }
    BUF_APPEND(out, "\nStop it with Ctrl-C or SIGTERM.\n");
}
