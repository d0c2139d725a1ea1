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
/* A standby that follows another server, streaming, under this name; it has all of its databases.
 * fsync as the other. */
struct postgres *postgres_start_standby(struct postgres *of, const char *name);
void postgres_free(struct postgres *postgres); /* NULL is fine */
CLEANUP_FN(struct postgres *, postgres_free)

void postgres_stop(struct postgres *postgres, enum postgres_stop how);
void postgres_restart(struct postgres *postgres);

/* A server that is stopped comes back at its place as a standby of another, made anew from it. */
void postgres_restart_standby(struct postgres *postgres, struct postgres *of, const char *name);
/* Makes a standby a primary, on a timeline of its own. */
void postgres_promote(struct postgres *postgres);
/* A standby no longer follows, or does again: what is committed meanwhile it does not have. */
void postgres_follow(struct postgres *postgres, bool on);
/* Commits wait for the standbys of these names, "" for none, as synchronous_standby_names. */
void postgres_synchronous(struct postgres *postgres, const char *names);

/* The URL of the database that was made last, by the sockets of several servers. */
const char *postgres_url_of(struct postgres *const *servers, size_t count);

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
