/* Call: one message on its way through the front, and its reply in the making.
 *
 * A command's function reads the call, appends fields to the reply and returns true; or it returns
 * false with an error, which becomes the reply. It may run twice: on a loop it sets `cold` rather
 * than block, and then begins anew on a worker. */
#pragma once

#include "base/random.h"
#include "catalogue/container_space.h"
#include "document/bson.h"
#include "front/kit/call.h"
#include "front/kit/cursors.h"
#include "front/kit/gateway.h"
#include "front/mongo/auth/attempts.h"
#include "front/mongo/auth/directory.h"
#include "front/mongo/command/command.h"
#include "front/mongo/command/mongo.h"
#include "front/mongo/command/terms.h"
#include "front/mongo/error.h"
#include "front/mongo/session/cluster_time.h"
#include "front/mongo/session/fail_points.h"
#include "front/mongo/session/intents.h"
#include "front/mongo/session/pending.h"
#include "front/mongo/session/sessions.h"
#include "front/mongo/stream/count.h"
#include "front/mongo/stream/waits.h"
#include "front/mongo/text.h"

enum {
    MONGO_NONCE_LEN = 32,
    MONGO_ACCOUNT_MAX = 64,
    MONGO_NAME_MAX = 40,
    MONGO_SUBJECT_MAX = 512,
    MONGO_APPLICATION_MAX = 128
};

/* A SASL conversation under way. */
struct mongo_sasl {
    bool begun;
    bool proved;     /* only the empty exchange is left */
    bool skip_empty; /* and the client does not want it */
    int32_t id;
    enum mongo_scram scram;
    struct arena *arena; /* of the texts */
    struct slice user, nonce, first_bare, server_first;

    /* Of a user that was made: whose it is. */
    bool of_user;
    struct slice account, user_database;
    uint8_t mark[MONGO_MARK_LEN];
    struct mongo_scram_keys keys;
};

/* What is known of a connection. One call at a time uses it. */
struct mongo_session {
    struct mongo *mongo;
    enum mongo_face face;
    struct mongo_peer peer;
    struct mongo_sasl sasl;
    bool known;        /* somebody has authenticated, or need not: */
    bool by_key;       /* with this key */
    bool by_signature; /* of which only readonly is known: the one request was signed with it */
    struct front_key key;
    char account[MONGO_ACCOUNT_MAX]; /* as it is stored */
    char user[MONGO_USER_NAME_MAX];  /* as the client calls it; of a made user without @account */
    char user_database[MONGO_ACCOUNT_MAX];
    uint32_t failures;               /* of authentication, one after the other */
    char subject[MONGO_SUBJECT_MAX]; /* of the client's certificate, once asked for; "": none */

    /* Of a user that was made (auth/directory.h): */
    bool by_user;
    uint8_t user_mark[MONGO_MARK_LEN];
    struct mongo_privileges grants; /* what its roles give; its arena is the session's */
    uint64_t grants_generation;     /* of the directories they were read from */
    char application[MONGO_APPLICATION_MAX + 1]; /* as hello named it; "": not */

    /* Of the last command, for getLastRequestStatistics. */
    char last_name[MONGO_NAME_MAX];
    int64_t last_cru;
    uint64_t last_ns;
};

struct mongo_retry;
struct mongo_javascript;
struct mongo_transact;

struct mongo_explaining; /* explain.h */
struct mongo_running;    /* operations.h */

struct mongo_call {
    union {
        struct front_call front;
        struct front_call;
    };
    struct mongo *mongo;
    const struct mongo_options *options;
    struct mongo_session *session;
    struct mongo_request *request;
    struct observed *seen; /* the call's own, for those who only look at it */
    struct mongo_message message;
    bool validated;                      /* its documents were validated */
    bool errmsg_twice;                   /* an error is told as errMsg, too */
    bool understood;                     /* the message was read */
    bool broken;                         /* it is none: there is nobody to answer */
    bool close;                          /* the connection ends with the reply */
    struct error *stranger;              /* why the session's account is none; NULL: it is */
    const struct mongo_command *command; /* NULL: not known yet */
    struct slice name;                   /* of the command, as the client writes it */
    struct document_value target;        /* what stands behind the name: mostly a collection */
    struct slice error_info;             /* errInfo of a failed validation; data NULL: none */
    bool warned;                         /* that a document failed validation was logged */
    struct buf reply;                    /* a document that is not ended yet */
    size_t reply_begin;
    struct mongo_explaining *explaining; /* the command is explained; NULL: it is carried out */
    struct slice duplicate_pattern, duplicate_value; /* of the last 11000 of a unique index */

    struct mongo_logical *logical; /* the session, while the call has it; NULL: none */
    int64_t number;                /* of the command in its session, where it has one */
    struct {
        int64_t number;
        enum mongo_number_use use;
    } before; /* of a session that a loop has taken: what it was, if the call is cold after all */
    struct mongo_transact *transact;     /* that it is a part of; NULL: none */
    const struct mongo_transact *maker;  /* whose pending collections it sees; NULL: nobody's */
    struct error *unwritten;             /* the first write error within it; NULL: none */
    struct mongo_javascript *javascript; /* what it runs of the client's; NULL: nothing so far */
    struct mongo_retry *retry;           /* of writes that may be sent again; NULL: it is none */
    uint64_t snapshot; /* the cluster time of the moment it reads (snapshot.h); 0: none */
    bool snapshot_new; /* nobody read it before */

    struct mongo_running *running; /* as it is listed (operations.h); NULL: it is not */

    bool left;              /* it waits, or did, and its account is to be taken again */
    bool watches;           /* it reads a change stream */
    bool looked;            /* it has looked for documents by a query */
    bool repeats;           /* it would have another reply for a client that takes several */
    struct mongo_wait wait; /* of a getMore that waits: until when; zeros: it does not yet */
    struct mongo_fail fail; /* what a test wants to become of it */
    bool fail_looked;       /* it was asked for */
};

/* The front as its files share it. */
enum { MONGO_ACCOUNTS_TOGETHER = 64 };

struct mongo {
    struct mongo_options options;
    struct mongo_wire *wires[MONGO_FACES];
    struct front_gateway gateway; /* of commands that come by POST (signed.h) */
    struct mongo_credentials *credentials;
    struct mongo_directories *directories;
    struct mongo_attempts *attempts;
    struct front_cursors *cursors;
    struct mongo_fail_points *fail_points; /* NULL: there are no test commands */
    struct mongo_sessions *sessions;
    struct mongo_operations *operations;
    struct mongo_index_uses *index_uses;
    struct mongo_sampling *sampling;
    struct mongo_samples *samples;
    struct mongo_intents *intents;
    struct mongo_pending *pending;
    atomic_uint_fast64_t nodes_together[MONGO_ACCOUNTS_TOGETHER]; /* transact.c */
    struct mongo_cluster_time time;
    struct mongo_waits *waits;
    struct mongo_stream_count *stream_count;
    atomic_int_fast64_t cursors_looked_ms; /* when those whose time is over were last closed */
    atomic_uint under_way;
    atomic_int waiting; /* commands, for migrations */
    atomic_int request_ids;
    atomic_uint_fast64_t tallies[MONGO_TALLIES];
    atomic_uint_fast64_t failed; /* commands */
    atomic_uint_fast32_t object_ids;
    uint8_t object_id_random[5];
    uint8_t process_id[DOCUMENT_OBJECT_ID_SIZE]; /* of this run: electionId */
    char advertised[NET_ADDRESS_TEXT_SIZE];
    int64_t started_ms; /* of the monotonic clock */
};

/* Names of database and collection, checked. MONGO_INVALID_NAMESPACE. */
struct mongo_namespace {
    struct slice database, collection;
};

/* Of the command's own target. */
NODISCARD bool mongo_call_namespace(const struct mongo_call *call,
                                    struct mongo_namespace *ret_namespace, struct error *err);
NODISCARD bool mongo_namespace_check(const struct mongo_namespace *name, struct error *err);
NODISCARD bool mongo_database_check(struct slice name, struct error *err);
/* Of a text "database.collection". */
NODISCARD bool mongo_namespace_read(const struct document_value *text,
                                    struct mongo_namespace *ret_namespace, struct error *err);

/* Who waits, for an index, a migration, or something to be written, lets go of the account before,
 * and takes it as it is then: a state of an account keeps the states of all its containers, and
 * what a migration leaves behind, or a drop, goes when nobody holds the old ones. What the call has
 * opened is closed before. ERROR_NOT_FOUND: the account is no more. */
void mongo_account_leave(struct mongo_call *call);
NODISCARD bool mongo_account_return(struct mongo_call *call, struct error *err);
/* May a call that blocks wait any longer? Not when its client has gone, the server stops
 * (MONGO_INTERRUPTED_AT_SHUTDOWN), or it is later than deadline_ms, 0 being none
 * (MONGO_MAX_TIME_MS_EXPIRED). */
NODISCARD bool mongo_may_wait(const struct mongo_call *call, int64_t deadline_ms,
                              struct error *err);

/* A collection, opened; closed with mongo_collection_close. */
struct mongo_collection {
    struct container *container;      /* NULL: there is none */
    const struct mongo_virtual *made; /* by the server (virtual.h); NULL: it is none of those */
    struct item_space space;
    struct mongo_terms terms;     /* borrowed from the container */
    struct item_reading *reading; /* owned; NULL: the primaries are read */
};

/* Is there such a collection? */
static inline bool mongo_collection_exists(const struct mongo_collection *collection)
{
    return collection->container || collection->made;
}

/* Opens it. *ret_collection is closed before, or all zero: what it held would be held for ever. It
 * is all zero where there is none, which is no error.
 * MONGO_COMMAND_NOT_SUPPORTED: the container's items are of another API. MONGO_UNAUTHORIZED:
 * it is one the server makes, and the command writes. MONGO_COMMAND_NOT_SUPPORTED_ON_VIEW: it is a
 * view. */
NODISCARD bool mongo_collection_open(const struct mongo_call *call,
                                     const struct mongo_namespace *name,
                                     struct mongo_collection *ret_collection, struct error *err);
/* The same of a view as well (terms.view_on): whoever asks looks. */
NODISCARD bool mongo_collection_open_any(const struct mongo_call *call,
                                         const struct mongo_namespace *name,
                                         struct mongo_collection *ret_collection,
                                         struct error *err);
/* The same, made if there is none; blocks. */
NODISCARD bool mongo_collection_make(const struct mongo_call *call,
                                     const struct mongo_namespace *name,
                                     struct mongo_collection *ret_collection, struct error *err);
/* The same, made with a key and throughput of its own, unless it is there already. All zero: with
 * neither. */
struct mongo_collection_terms {
    struct slice partition_key; /* BSON of a definition's partitionKey; data NULL: none */
    struct slice strategy;      /* how its values are placed */
    const struct offer_request *offer;
    struct slice options; /* BSON of terms.h; data NULL: none */
};
NODISCARD bool mongo_collection_make_as(const struct mongo_call *call,
                                        const struct mongo_namespace *name,
                                        const struct mongo_collection_terms *terms,
                                        struct mongo_collection *ret_collection, struct error *err);
/* Makes a new one; blocks. MONGO_NAMESPACE_EXISTS. */
NODISCARD bool mongo_collection_create(const struct mongo_call *call,
                                       const struct mongo_namespace *name,
                                       const struct mongo_collection_terms *terms,
                                       struct mongo_collection *ret_collection, struct error *err);
/* The same for one that is open, or was: it may have been dropped, made, or given another shard key
 * since. */
NODISCARD bool mongo_collection_reopen(const struct mongo_call *call,
                                       const struct mongo_namespace *name,
                                       struct mongo_collection *collection, struct error *err);
void mongo_collection_close(struct mongo_collection *collection);
CLEANUP_VALUE_FN(struct mongo_collection, mongo_collection_close)

/* Is it one of MongoDB's collections? */
bool mongo_container_fits(const struct container *container);
/* And is it there, for this call? Not where an open transaction of others has made it. */
bool mongo_container_is_there(const struct mongo_call *call, const struct container *container);

/* How its operations are paid; and that they were. */
struct metered_call mongo_call_metered(const struct mongo_call *call);
void mongo_call_charged(struct mongo_call *call, const struct metered_call *metered);

/* On a loop: the message outlives the handler from here on, and is where it is. False: it is not
 * understood any more, which does not happen. */
bool mongo_call_keep(struct mongo_call *call);

/* Writes go on to a worker: true there; else the call is cold. */
bool mongo_call_blocks(struct mongo_call *call);

/* The message of an error for a client, in the arena: a throttled one says when to come again. */
struct slice mongo_error_text(const struct mongo_call *call, const struct error *err,
                              int64_t wait_ms);

/* {code, errmsg} of a write error, and {ok: 0, ...} of a command. */
void mongo_error_append(struct mongo_call *call, const struct error *err, struct buf *out);

/* An ObjectId of now. */
void mongo_object_id(struct mongo *mongo, uint8_t ret_id[DOCUMENT_OBJECT_ID_SIZE]);
