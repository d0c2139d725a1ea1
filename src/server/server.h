/* Server: everything one process serves with, from start to stop.
 *
 *     server_signals_block();
 *     if (!server_new(settings, log, &server, err)) ...
 *     server_run(server);     until SIGTERM or SIGINT; SIGHUP reads the certificate again
 *     server_free(server);
 *
 * One process may hold several servers, as long as only one of them runs. */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "server/settings.h"

struct server; /* opaque, owned */

/* Keeps SIGTERM, SIGINT and SIGHUP for server_run, and ignores SIGPIPE. To be called before any
 * thread starts, since threads inherit it. */
void server_signals_block(void);

/* Opens the nodes, starts the threads and listens: when it returns true, clients can connect. The
 * settings and the log must outlive the server. The error says what to change. */
NODISCARD bool server_new(const struct settings *settings, struct log *log,
                          struct server **ret_server, struct error *err);

/* Closes what is still open without waiting for it. */
void server_free(struct server *server); /* NULL is fine */
CLEANUP_FN(struct server *, server_free)

/* Waits for a signal to stop, then drains: no new connections, answers to what is in flight, for
 * at most server.drain_ms. A second signal to stop ends the process at once. False when requests
 * had to be cut off. */
bool server_run(struct server *server);

/* Did it stop to begin again, as another server of the same settings? */
bool server_restarts(const struct server *server);

/* What a person needs to connect: addresses, key, connection strings, where the data is. terminal:
 * a person reads it, and nothing keeps it. */
void server_describe(const struct server *server, bool terminal, struct buf *out);
