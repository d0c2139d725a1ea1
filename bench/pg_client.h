/* PostgreSQL client for load: prepared statements on tables of JSON documents, one for each
 * container.
 *
 *     CREATE TABLE NAME (pk text, id text, doc jsonb, PRIMARY KEY (pk, id))
 *     CREATE INDEX ON NAME USING gin (doc jsonb_path_ops), for the one that is indexed
 *
 * The index collects entries before it sorts them in (fastupdate), as it does unless told. The
 * server is one of this program's own with fsync and synchronous_commit on, reached through its
 * socket, which is a little cheaper for it than TCP is for the others. */
#pragma once

#include "cosmos_requests.h"
#include "load.h"

struct pg_client; /* opaque, owned */

struct pg_client *pg_client_new(struct cosmos_requests *requests);
void pg_client_free(struct pg_client *pg);

/* The server's first process. */
pid_t pg_client_server(const struct pg_client *pg);

/* For load_run. next gives the number of the item an operation is for. Connections are made once
 * and stay. A replace sets the whole document, a patch one value of it (jsonb_set). */
struct load_client pg_client_load(struct pg_client *pg, enum cosmos_container container,
                                  enum cosmos_verb verb, uint64_t (*next)(void *context),
                                  void *context);

/* The same for statements that insert many rows into the indexed table. next gives the number of
 * the first. */
enum { PG_FILL_ROWS = 100 };
struct load_client pg_client_fill(struct pg_client *pg, uint64_t (*next)(void *context),
                                  void *context);
