/* Postgres: a PostgreSQL server of one test program's own, in a scratch directory, reached through
 * a socket in it. It goes with the test program, however that ends. */
#pragma once

#include "base/attrs.h"

#include <sys/types.h>

struct postgres; /* opaque */

enum postgres_stop {
    POSTGRES_STOP_FAST,      /* ends the sessions, then stops cleanly */
    POSTGRES_STOP_IMMEDIATE, /* as after a crash of the server */
    POSTGRES_STOP_KILL,      /* kill -9 of the server's first process */
};

/* Makes and starts one. fsync off is several times faster and survives everything but a crash of
 * the machine; it also has less memory than the default, which one that is measured has. Ends the
 * test program when it cannot be started. */
struct postgres *postgres_start(bool fsync);
/* The same with settings `name=value` of its own, ended by NULL; borrowed while it is there. */
struct postgres *postgres_start_with(bool fsync, const char *const *settings);
void postgres_free(struct postgres *postgres); /* NULL is fine */
CLEANUP_FN(struct postgres *, postgres_free)

void postgres_stop(struct postgres *postgres, enum postgres_stop how);
void postgres_restart(struct postgres *postgres);

/* The URL of a new, empty database, with the password "secret"; lives until the next call. */
const char *postgres_fresh_url(struct postgres *postgres);

/* The name of that database, and the path of the server's socket, for a proxy. */
const char *postgres_database(const struct postgres *postgres);
const char *postgres_socket(const struct postgres *postgres);

/* The server's first process; 0: it is stopped. */
pid_t postgres_process(const struct postgres *postgres);

/* Runs SQL in that database as its administrator and returns the first field of the first row,
 * "" if there is none; lives until the next call. */
const char *postgres_query(struct postgres *postgres, const char *sql);
