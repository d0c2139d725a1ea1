/* The MongoDB front: databases and collections of an account as MongoDB's clients see them.
 *
 * It has two faces, which differ in what hello says alone: a mongos, and the primary of the replica
 * set "globaldb", as the hosted service shows itself. docs/design/mongo.md is the plan. */
#pragma once

#include "front/front.h"
#include "front/kit/http.h"
#include "front/mongo/auth/credentials.h"
#include "front/mongo/wire/connection.h"

struct mongo; /* opaque, owned by the server */

enum mongo_face { MONGO_FACE_MONGOS, MONGO_FACE_REPLICA_SET, MONGO_FACES };

/* The account that the emulator's connection strings name; with --dev it is the default account. */
#define MONGO_EMULATOR_ACCOUNT "localhost"

/* What the server says it is. */
#define MONGO_VERSION "7.0.16"

struct mongo_options {
    struct front_services services;
    struct front_door door;
    uint8_t seal[MONGO_SEAL_BYTES];
    struct mongo_wire_settings wire;
    const char *advertise;        /* HOST:PORT of the replica set; "": where it listens */
    int64_t cursor_ms;            /* a cursor that is not come back for so long is closed */
    size_t cursors_max;           /* open at a time; of one account half of them */
    size_t streams_max;           /* change streams of one account */
    bool changes;                 /* they are kept */
    uint32_t connections_max;     /* of the listener, for serverStatus */
    size_t sessions_max;          /* sessions that number their writes, remembered at a time */
    int64_t session_ms;           /* one that is not used for so long is forgotten */
    size_t transactions_max;      /* open at a time; of one account half of them */
    int64_t transaction_ms;       /* one is open so long at most */
    size_t transaction_bytes_max; /* what one may hold */
    bool javascript;              /* $where, $function, $accumulator and mapReduce are there */
    bool test_commands;           /* configureFailPoint is there */
};

/* Options are copied, the texts in them are borrowed. */
struct mongo *mongo_new(const struct mongo_options *options);

/* The context of a listener with mongo_wire_protocol. */
struct mongo_wire *mongo_wire_of(struct mongo *mongo, enum mongo_face face);

/* Where the replica set listens, for hello, once it does. */
void mongo_listens(struct mongo *mongo, const struct net_address *address);

/* The server stops: nobody waits any more for something to happen. */
void mongo_stop(struct mongo *mongo);

/* How many commands of a kind there were; *ret_name NULL: there are no so many kinds. */
uint64_t mongo_commands_count(const struct mongo *mongo, size_t kind, const char **ret_name);
/* And how many of all were answered with an error. */
uint64_t mongo_commands_failed(const struct mongo *mongo);

/* Waits for the writes that a committer will still end. After the listeners have gone, before the
 * loops go. */
void mongo_wait(struct mongo *mongo);

/* After the loops are gone. NULL is fine. */
void mongo_free(struct mongo *mongo);
CLEANUP_FN(struct mongo *, mongo_free)
