/* What the commands of mongo_bench are in SQL: tables of JSON documents in PostgreSQL.
 *
 *     CREATE TABLE NAME (id text PRIMARY KEY, doc jsonb), and on items an index of doc->>'tenant'
 *
 * The server is one of this program's own with fsync and synchronous_commit on, reached through its
 * socket, by prepared statements. */
#pragma once

#include "cosmos_requests.h"
#include "load.h"

enum mongo_work {
    MONGO_INSERT_ONE,
    MONGO_INSERT_MANY,
    MONGO_FIND_ID,
    MONGO_FIND_INDEXED,
    MONGO_UPDATE_INC,
    MONGO_GROUP,
    MONGO_WORKS,
};

enum { MONGO_MANY = 100 }; /* documents of an insertMany */

struct mongo_theirs; /* opaque, owned */

struct mongo_theirs *mongo_theirs_new(struct cosmos_requests *requests);
void mongo_theirs_free(struct mongo_theirs *theirs);

/* The server's first process. */
pid_t mongo_theirs_server(const struct mongo_theirs *theirs);

/* Puts items 0 to count - 1 into the table that is read. */
void mongo_theirs_fill(struct mongo_theirs *theirs, uint64_t count);

/* For load_run. next gives the number of the item, or the first of those, an operation is for.
 * Connections are made once and stay. */
struct load_client mongo_theirs_load(struct mongo_theirs *theirs, enum mongo_work work,
                                     uint64_t (*next)(void *context), void *context);
