/* The traversals of gremlin_bench in SQL: a graph as two tables of PostgreSQL.
 *
 *     vertex (id text PRIMARY KEY, pk text, label text, doc jsonb), with an index of label and age
 *     edge (id text PRIMARY KEY, src text, label text, dst text, doc jsonb), with indexes of
 *         (src, label, dst) and (dst, label, src), so that hops need not look at the rows
 *
 * Properties are JSON, as those of a graph have no schema. The server is one of this program's own
 * with fsync and synchronous_commit on, reached through its socket, by prepared statements. */
#pragma once

#include "gremlin_work.h"
#include "load.h"

struct gremlin_theirs; /* opaque, owned */

struct gremlin_theirs *gremlin_theirs_new(void);
void gremlin_theirs_free(struct gremlin_theirs *theirs);

/* The server's first process. */
pid_t gremlin_theirs_server(const struct gremlin_theirs *theirs);

/* Fills the tables with a graph of so many vertices. */
void gremlin_theirs_fill(struct gremlin_theirs *theirs, uint64_t vertices);

/* For load_run. next gives the number of the vertex an operation is for, and for edges that of the
 * one they lead to. Connections are made once and stay. */
struct load_client gremlin_theirs_load(struct gremlin_theirs *theirs, enum gremlin_work work,
                                       uint64_t (*next)(void *context), void *context);
