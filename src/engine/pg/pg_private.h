/* The nouns of the postgresql: driver, for this folder only.
 *
 *     url         the node's address: what to show of it, what to hide, and what it asks of us
 *     key         how a key of ours is stored as a key PostgreSQL can index
 *     connection  one session: a pipeline of queries, a deadline, prepared statements
 *     primary     which host of the URL is written to, on which timeline; what a standby has
 *     pool        the sessions that read, and the leases (transactions) open on them
 *     owner       the one session that writes, and who may: finds out after a loss
 *     schema      the tables, their format version, taking the ownership
 *     standby     one host of the URL, as a store that is only read from
 *
 * README.md tells how they work together and which lock is taken when. */
#pragma once

#include "base/buf.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/thread.h"
#include "engine/beats.h"
#include "engine/driver.h"

#include <libpq-fe.h>
#include <stdatomic.h>

enum {
    PG_FORMAT = 1,                  /* of the tables; node.format */
    PG_FORMAT_SHARED = 2,           /* of a node that servers share: members.c */
    PG_SERVER_MIN = 130000,         /* as PQserverVersion counts */
    PG_HEAD = 2048,                 /* longest piece of a key in one index entry */
    PG_STATEMENTS_MAX = 128,        /* prepared per connection */
    PG_PARAMS_MAX = 4,              /* of one query */
    PG_ARRAY_MAX = 16 * 1024 * 1024 /* bytes of one array parameter, give or take one value */
};

/* Ours among the SQLSTATEs: raised by orrery.require, so that a transaction whose premise fails
 * aborts in the same round trip. */
#define PG_STATE_OWNER "OR001"   /* the owner row is not as we left it */
#define PG_STATE_UNKNOWN "OR002" /* no such partition */
#define PG_STATE_FENCED "OR003"  /* the epoch is another */
#define PG_STATE_FOREIGN "OR004" /* the node belongs to another cluster */
#define PG_STATE_ALONE "OR005"   /* replication is required, and there is none */

struct pg_primary;

struct pg_settings {
    char *url;                  /* owned; with the password, without options of ours */
    struct slice name;          /* owned; without the password */
    struct engine_claim claim;  /* of a node that servers share */
    bool accept_loss;           /* opens a node that has lost acknowledged writes */
    bool replicated;            /* required: without a synchronous standby nothing is written */
    uint32_t standby;           /* the nth host alone, as a standby; 0: the node itself */
    bool follower;              /* another server writes: nothing here does */
    struct engine_beats *beats; /* borrowed; NULL: they are counted by the server alone */
    struct pg_primary *primary; /* borrowed */
    int64_t connect_ms_max, snapshot_ms_max, statement_ms_max;
    int64_t
        place_ms_max; /* while all connections of the pool are lent, one is waited for so long */
    uint32_t connections_max;
    const struct clock *clock;
    struct log *log;
    struct engine_watch watch;
    atomic_bool interrupted; /* whoever waits gives up */
};

/* Between attempts to reach a server: pauses double from the first to the longest; after giving up,
 * others fail at once for a while instead of trying in turn. */
enum { PG_BACKOFF_FIRST_MS = 10, PG_BACKOFF_MAX_MS = 250, PG_DOWN_MS = 250 };

/* A pause that an interruption ends, and whoever watches. False: it was. */
bool pg_pause(const struct pg_settings *settings, int64_t ms);

/* A call has waited for so long: shall it go on? */
static inline bool pg_may_wait(const struct pg_settings *settings, int64_t waited_ms)
{
    return !atomic_load(&settings->interrupted) &&
           !(settings->watch.let_go && settings->watch.let_go(settings->watch.context, waited_ms));
}

/* --- url.c ----------------------------------------------------------------------------------- */

/* What Orrery itself is told in a URL, beside what libpq understands:
 *
 *     replicated=require   nothing is written while the server has no synchronous standby
 *     replicated=prefer    it is told in log and figures: the default
 *
 * Appends the URL without these. ERROR_STORE_URL. */
NODISCARD bool pg_url_options(struct slice url, struct buf *to, bool *ret_replicated,
                              struct error *err);

/* Appends the URL with each password (user:THIS@host, ?password=THIS) shown as ***. */
void pg_url_mask(struct slice url, struct buf *to);

/* Rewrites libpq's text for one line of ours: no line breaks, no trailing blanks or full stop, and
 * nothing that is a password of the URL, which libpq quotes when it cannot parse it (absent: its
 * other messages never hold one). The result is cut to fit. */
void pg_url_scrub(struct slice url, const char *text, char *ret_line, size_t size);

/* --- key.c ----------------------------------------------------------------------------------- */

/* Appends the stored form of a key. */
void pg_key_store(struct slice key, struct buf *to);

/* How many marks a stored key needs beside it (0 for any key up to PG_HEAD bytes), and the mark of
 * each level from 0. */
size_t pg_key_marks(struct slice key);
void pg_key_mark(struct slice key, size_t level, struct buf *to);

/* The stored keys of the tree node at path (a multiple of PG_HEAD bytes; empty: the root) that lie
 * in [min, max), as stored bounds [low, high). Absent min or max: unbounded. */
void pg_key_low(struct slice path, struct slice min, struct buf *to);
void pg_key_high(struct slice path, struct slice max, struct buf *to);

/* Where the walk of the node at path goes on after the mark of head (its last PG_HEAD bytes):
 * forwards from the bound after it, backwards to the bound before it. */
void pg_key_beside_mark(struct slice path, struct slice head, bool backwards, struct buf *to);

/* What is left of a stored key behind the prefix of its node; a mark's piece is its head. */
bool pg_key_is_mark(struct slice path, struct slice stored);
size_t pg_key_mark_len(struct slice path);
struct slice pg_key_piece(struct slice path, struct slice stored);

/* --- connection.c ---------------------------------------------------------------------------- */

enum pg_statement {
    PG_GET,       /* $1 key -> v */
    PG_MULTI_GET, /* $1 keys -> ordinal, v */
    PG_PAGE_UP,   /* $1 low, $2 high, $3 rows, $4 bytes -> k, v */
    PG_PAGE_DOWN, /* the same, backwards */
    PG_PUT,       /* $1 keys, $2 values */
    PG_MARK,      /* $1 keys */
    PG_DELETE,    /* $1 keys */
    PG_STEP,      /* $1 low, $2 high, $3 count -> the k after so many */
    PG_NEXT_MARK, /* $1 low, $2 high, $3 length of a mark -> k */
    PG_CLEAR,     /* $1 low, $2 high, $3 length of a mark, which stays (0: none does) */
    PG_PROVE,     /* $1 key of the numbering, $2 key -> v, epoch, beat, is a standby, v */
    PG_STATEMENT_COUNT
};

struct pg_param {
    const void *data; /* text parameters end in a NUL */
    size_t len;
    bool binary;
};

static inline struct pg_param pg_text(const char *text)
{
    return (struct pg_param){text, strlen(text), false};
}

static inline struct pg_param pg_bytes(struct slice bytes)
{
    return (struct pg_param){bytes.data ? bytes.data : (const uint8_t *)"", bytes.len, true};
}

/* A number as a text parameter; the digits live in the caller's variable. */
struct pg_number {
    char digits[24];
};
struct pg_param pg_number(struct pg_number *number, uint64_t value);

struct pg_connection; /* opaque, used by one thread at a time */

/* What came back from one pg_run: a result per query sent, NULL from the failed one on. */
struct pg_answer {
    PGresult **results; /* owned */
    size_t count;
    char state[6]; /* SQLSTATE of what failed; empty when nothing did or no server said so */
    bool unsent;   /* the connection was broken before the last query was queued */
};
void pg_answer_done(struct pg_answer *answer);
CLEANUP_VALUE_FN(struct pg_answer, pg_answer_done)

/* One host of a URL; NULL: as the URL has it. */
struct pg_host {
    char *name, *address, *port; /* owned */
};

/* What a session is with, as it was when it began. */
struct pg_server {
    bool standby;      /* it only follows another */
    uint32_t timeline; /* of a primary */
    uint64_t system;   /* all copies of one database cluster have the same */
    bool replicated;   /* commits wait for a standby */
};

/* Connects to one host, checks the version and settles the session. deadline_ms is of
 * clock_monotonic_ms. ERROR_STORE_UNAVAILABLE, ERROR_STORE_URL, ERROR_STORE_VERSION. */
NODISCARD bool pg_connection_open_at(const struct pg_settings *settings, const struct pg_host *host,
                                     int64_t deadline_ms, struct pg_connection **ret_connection,
                                     struct error *err);
/* The same to the present primary, on the timeline that is written to. ERROR_STORE_UNAVAILABLE if
 * it is no primary any more or another one, which is noted. */
NODISCARD bool pg_connection_open(const struct pg_settings *settings, int64_t deadline_ms,
                                  struct pg_connection **ret_connection, struct error *err);
void pg_connection_close(struct pg_connection *connection); /* NULL is fine */
CLEANUP_FN(struct pg_connection *, pg_connection_close)

/* Asks again what the server is. */
NODISCARD bool pg_connection_look(struct pg_connection *connection, int64_t timeout_ms,
                                  struct error *err);
/* From now on it waits by the settings of another. */
void pg_connection_adopt(struct pg_connection *connection, const struct pg_settings *settings);

const struct pg_server *pg_connection_server(const struct pg_connection *connection);
/* When it was begun, of clock_monotonic_ms. */
int64_t pg_connection_opened_ms(const struct pg_connection *connection);
/* Since when was it told that a wait for a standby was cancelled: what is committed may be on the
 * primary alone. */
bool pg_connection_was_alone(const struct pg_connection *connection);

/* ERROR_STORE_VERSION below PG_SERVER_MIN, naming both. */
NODISCARD bool pg_server_version_check(int version, struct error *err);

bool pg_connection_is_broken(const struct pg_connection *connection);
/* Broken by the other side: another one may get the answer. Else it did not come in time. */
bool pg_connection_was_lost(const struct pg_connection *connection);
/* A pause between two questions; see pg_pause. */
bool pg_connection_pause(const struct pg_connection *connection, int64_t ms);
/* Looks, without waiting, whether the server has ended an idle session. False breaks it. */
bool pg_connection_check(struct pg_connection *connection);
/* Has something been notified (LISTEN) that was read since this was asked last? */
bool pg_connection_was_notified(struct pg_connection *connection);
/* Waits until something arrives at an idle session. False: the descriptor was readable first, or
 * the time is over. */
bool pg_connection_wait(struct pg_connection *connection, int wake_fd, int64_t deadline_ms);
/* Whatever is asked from now on is answered by this time (of clock_monotonic_ms) or the connection
 * is broken; 0: each question has its own limit again. */
void pg_connection_hurry(struct pg_connection *connection, int64_t deadline_ms);

/* Queue one query for the next pg_run. Text results; nothing is sent for sure before pg_run. */
void pg_send(struct pg_connection *connection, const char *sql, const struct pg_param *params,
             size_t count);
/* The same by a prepared statement of a partition, prepared on the way if need be; binary results.
 */
void pg_send_statement(struct pg_connection *connection, enum pg_statement statement,
                       uint32_t partition, const struct pg_param *params, size_t count);

/* Sends what was queued and waits for all answers, in one round trip. False: the first failure is
 * in err and the queries after it did not run; the results before it are there.
 * A server that does not answer for timeout_ms breaks the connection. */
NODISCARD bool pg_run(struct pg_connection *connection, int64_t timeout_ms,
                      struct pg_answer *ret_answer, struct error *err);

/* How many queries of the caller wait for pg_run. */
size_t pg_queued(const struct pg_connection *connection);

/* Leaves a failed or finished transaction. False breaks the connection. */
bool pg_rollback(struct pg_connection *connection);

/* Queues and runs one query without parameters to keep. */
NODISCARD bool pg_query(struct pg_connection *connection, const char *sql,
                        const struct pg_param *params, size_t count, struct pg_answer *ret_answer,
                        struct error *err);

/* Fields of a result. */
struct slice pg_field(const PGresult *result, int row, int column);
uint64_t pg_field_uint64(const PGresult *result, int row, int column); /* text; 0 if it is none */

/* The head of a binary bytea[] of count elements; each element follows as pg_array_add writes. */
void pg_array_begin(struct buf *array, size_t count);
void pg_array_add(struct buf *array, struct slice element);
void pg_array_add_key(struct buf *array, struct slice key); /* as stored */
/* Corrects the count of an array begun before it was known. */
void pg_array_end(struct buf *array, size_t count);

/* --- primary.c ------------------------------------------------------------------------------- */

enum { PG_HOSTS_MAX = 8 };

/* What was last seen of a host. */
enum pg_place_state { PG_PLACE_UNKNOWN, PG_PLACE_AWAY, PG_PLACE_STANDBY, PG_PLACE_PRIMARY };

struct pg_place {
    struct pg_primary *primary;
    struct pg_host host;
    struct thread thread; /* of several hosts only: looks at this one */

    enum pg_place_state state; /* this and below under the lock of the primary */
    uint32_t timeline;
    uint64_t looked; /* what asked was when the last look began */
    struct error why;
};

struct pg_primary {
    struct engine_beats *numbered; /* borrowed; NULL: nobody dates what standbys show */
    /* Of its own sessions, and of beats: nobody interrupts them; texts borrowed. */
    struct pg_settings settings, beat_settings;
    struct engine_watch lost; /* of the node: told of a newer primary */
    struct pg_place places[PG_HOSTS_MAX];
    size_t count;

    atomic_size_t place;                /* the one that is written to */
    atomic_uint_fast32_t timeline;      /* the one that is written to and read; 0: none yet */
    atomic_uint_fast32_t timeline_seen; /* the newest of a primary */
    atomic_uint_fast64_t system;        /* 0: not known yet */
    atomic_bool replicated;

    /* Monotonic ms: when the last beat that was acknowledged was sent, and what must have been
     * behind it: a read proves by it that what it shows is on the standby. */
    atomic_int_fast64_t beat_sent_ms, suspect_ms;
    atomic_uint_fast32_t beat_timeline; /* where the one under way was sent; 0: none was */
    atomic_bool stopped;

    struct mutex lock; /* under it: the rest, and what places say */
    struct condition changed;
    uint64_t asked; /* looks at all places */
    bool beat_wanted, stopping;

    bool looks, beats; /* has threads that do; written by who opens and closes */
    struct thread beat_thread;
};

/* Parses the hosts and starts to look at them, if they are several. ERROR_STORE_URL. */
NODISCARD bool pg_primary_init(struct pg_primary *primary, const struct pg_settings *settings,
                               struct error *err);
void pg_primary_done(struct pg_primary *primary);
/* Appends the nth host, from 1, of a URL that names several: name and port. False: it does not. For
 * a primary that was not initialised. */
NODISCARD bool pg_primary_host(struct pg_primary *primary, const struct pg_settings *settings,
                               uint32_t nth, struct buf *to);
/* The tables are there: from now on beats are possible. */
void pg_primary_beat(struct pg_primary *primary);

/* Looks at all hosts and says which one is the primary on the newest timeline, at least the one
 * that is written to. ERROR_STORE_UNAVAILABLE: none, and what each of them said. */
NODISCARD bool pg_primary_find(struct pg_primary *primary, const struct pg_settings *settings,
                               int64_t deadline_ms, size_t *ret_place, struct error *err);
/* From now on this is written to and read: every connection of another timeline is of no use. */
void pg_primary_move(struct pg_primary *primary, size_t place, const struct pg_server *server);
/* A server was met: whether it can be the node's. Notes a newer timeline. ERROR_STORE_FOREIGN. */
NODISCARD bool pg_primary_meet(struct pg_primary *primary, const struct pg_server *server,
                               struct error *err);
/* Is there a newer primary than the one that is written to, or another where it was? */
bool pg_primary_is_replaced(const struct pg_primary *primary);

/* Can a standby take over? Then it is worth waiting for. */
bool pg_primary_fails_over(const struct pg_primary *primary);

/* A commit may be visible that no standby has: reads wait for a beat from now on. */
void pg_primary_suspect(struct pg_primary *primary);

/* May what this connection has read be shown? It is of the timeline that is written to, and where
 * commits wait for a standby all it can see is there: a beat was acknowledged that was sent after
 * the connection was opened and after the last doubt. Waits for that until the deadline.
 * ERROR_STORE_UNAVAILABLE. */
NODISCARD bool pg_primary_prove(struct pg_primary *primary, const struct pg_settings *settings,
                                const struct pg_connection *connection, int64_t deadline_ms,
                                struct error *err);
/* The same without waiting; the question is whether it was replaced meanwhile. */
bool pg_primary_has(const struct pg_primary *primary, const struct pg_connection *connection);

/* --- pool.c ---------------------------------------------------------------------------------- */

struct pg_lease; /* opaque: a read-only transaction on a pooled connection, with a deadline */

struct pg_pool {
    const struct pg_settings *settings;
    struct mutex lock;
    struct condition returned;
    struct pg_connection **idle; /* a stack of connections_max places */
    uint32_t idle_count, open_count;
    struct pg_lease *leases; /* all live ones that hold a connection */
    int64_t down_until_ms;   /* connecting failed a moment ago: fail at once until then */
    struct error down_error; /* what it said */
    atomic_uint_fast64_t reconnects;
};

void pg_pool_init(struct pg_pool *pool, const struct pg_settings *settings);
void pg_pool_done(struct pg_pool *pool);

/* One query of a prepared statement; NULL in place of a statement's parameters: only the
 * snapshot is taken. */
struct pg_ask {
    enum pg_statement statement;
    uint32_t partition;
    const struct pg_param *params;
    size_t count;
};

/* Begins a transaction whose snapshot is taken now, answering ask (may be NULL) in the same round
 * trip. A pooled connection found broken is replaced once. */
NODISCARD bool pg_lease_open(struct pg_pool *pool, const struct pg_ask *ask,
                             struct pg_lease **ret_lease, struct pg_answer *ret_answer,
                             struct error *err);
void pg_lease_close(struct pg_lease *lease); /* NULL is fine */
CLEANUP_FN(struct pg_lease *, pg_lease_close)

/* Moves its deadline to so long from now, if that is later; the server's, too.
 * ERROR_STORE_SNAPSHOT_EXPIRED. */
NODISCARD bool pg_lease_keep(struct pg_lease *lease, int64_t ms, struct error *err);

/* Asks in the lease's snapshot. ERROR_STORE_SNAPSHOT_EXPIRED past the deadline; a partition that
 * is not there is ERROR_PARTITION_UNKNOWN and leaves the lease usable. The result is the last of
 * ret_answer. */
NODISCARD bool pg_lease_ask(struct pg_lease *lease, const struct pg_ask *ask,
                            struct pg_answer *ret_answer, struct error *err);

/* Asks as of now. A pooled connection found broken is replaced and the question asked again,
 * once. */
NODISCARD bool pg_pool_ask(struct pg_pool *pool, const struct pg_ask *ask,
                           struct pg_answer *ret_answer, struct error *err);
/* The same for plain SQL. */
NODISCARD bool pg_pool_query(struct pg_pool *pool, const char *sql, const struct pg_param *params,
                             size_t count, struct pg_answer *ret_answer, struct error *err);

static inline const PGresult *pg_answer_last(const struct pg_answer *answer)
{
    assert(answer->count > 0);
    return answer->results[answer->count - 1];
}

/* --- owner.c --------------------------------------------------------------------------------- */

struct pg_owner {
    const struct pg_settings *settings;
    struct mutex lock;
    struct pg_connection *connection; /* NULL: lost */
    uint64_t epoch;                   /* of this process on this node */
    uint64_t sequence;                /* of the last transaction known to be committed */
    bool in_doubt;                    /* sequence + 1 was sent and may be committed */
    struct error lost;                /* code set: ownership is gone for good */
    int64_t down_until_ms;            /* reconnecting failed a moment ago */
    atomic_bool poisoned;             /* in_doubt or lost, for statistics */
    atomic_bool loss;                 /* what was acknowledged is gone */
    int64_t failover_ms;              /* how long a new primary is waited for */
    bool following;                   /* pg_owner_follow is at work */
    atomic_uint_fast64_t reconnects;
};

/* Takes an open connection that already holds the ownership. */
void pg_owner_init(struct pg_owner *owner, const struct pg_settings *settings,
                   struct pg_connection *connection, uint64_t epoch, uint64_t sequence);
void pg_owner_done(struct pg_owner *owner);

/* A change to the node: what to send between BEGIN and COMMIT. Everything that must hold for it is
 * checked by the statements themselves (orrery.require), so that "committed" means "done" even
 * when the answers were lost. send may be called several times. */
struct pg_change {
    void (*send)(struct pg_connection *connection, void *context);
    void *context;
};

/* Commits the change: true when it is committed, durably. ret_answer has the results of the
 * change's own statements, or none at all when the commit was found out after a lost connection.
 * On failure nothing was committed, and ret_answer->state says what the server refused, except
 * ERROR_STORE_POISONED: not known, until a later call finds out. ERROR_STORE_IN_USE: another
 * process owns the node now. Hold owner->lock. */
NODISCARD bool pg_owner_commit(struct pg_owner *owner, const struct pg_change *change,
                               struct pg_answer *ret_answer, struct error *err);

/* Finds out about a transaction in doubt, if there is one and the server answers. */
void pg_owner_heal(struct pg_owner *owner);

/* Goes over to the primary of the newest timeline, if that is another. */
NODISCARD bool pg_owner_follow(struct pg_owner *owner, int64_t deadline_ms, struct error *err);

/* --- members.c ------------------------------------------------------------------------------- */

extern const struct engine_members_driver pg_members;

/* "orrs": the first half of the advisory lock that a server's session has, and "orry", 1: those of
 * the one that owns. */
#define PG_LOCK_MEMBER "1869771379"
#define PG_LOCK_OWNER "1869771385, 1"
/* Is there a session that has the lock of these two halves? */
#define PG_LOCK_IS_HELD(keys)                                                                      \
    "EXISTS (SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted"                   \
    " AND (l.classid::bigint, l.objid::bigint) = (" keys ")"                                       \
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))"

/* --- schema.c -------------------------------------------------------------------------------- */

/* What opening finds out. */
struct pg_node {
    char id[37];
    uint64_t format;
    uint64_t epoch, sequence;
    uint64_t beat;
    bool fsync; /* off: the server promises nothing over a power failure */
    bool lost;  /* acknowledged writes are gone, and nobody has accepted it yet */
};

/* Locks the node, makes its tables where there are none, checks them where there are, and takes
 * the ownership. ERROR_STORE_IN_USE, _FOREIGN, _VERSION, _LOST. */
NODISCARD bool pg_schema_open(struct pg_connection *connection, const struct pg_settings *settings,
                              struct pg_node *ret_node, struct error *err);

/* Makes the node one that servers share, if it is not yet. ERROR_STORE_IN_USE: a process that works
 * alone has it. Else as pg_schema_open. */
NODISCARD bool pg_schema_share(struct pg_connection *connection, const struct pg_settings *settings,
                               struct error *err);

/* Ends the session that the owner row names, if it holds the node and waits for its client or for a
 * lock. */
NODISCARD bool pg_schema_predecessor_end(struct pg_connection *connection, struct error *err);

/* The ownership of this process's epoch again, on a new connection: waits for the lock up to
 * deadline_ms, ending the session that was ours before. ret_sequence is what is committed.
 * ERROR_STORE_IN_USE: the epoch is another. */
NODISCARD bool pg_schema_reclaim(struct pg_connection *connection, uint64_t epoch,
                                 int64_t deadline_ms, uint64_t *ret_sequence, struct error *err);

/* Acknowledged transactions are not there: notes it in the node. Returns false, ERROR_STORE_LOST.
 */
NODISCARD bool pg_schema_loss_note(struct pg_connection *connection, uint64_t acknowledged,
                                   uint64_t found, struct error *err);

/* --- driver.c and the operations ------------------------------------------------------------- */

/* Settings of a URL; false: nothing is left behind. */
NODISCARD bool pg_settings_init(struct pg_settings *settings, struct slice url,
                                const struct engine_options *options, struct error *err);
void pg_settings_done(struct pg_settings *settings);
/* The same for signs of life, which nobody interrupts; texts are borrowed. */
struct pg_settings pg_settings_of_pings(const struct pg_settings *settings);

struct pg_engine {
    struct engine base; /* must be first */
    struct pg_settings settings;
    struct pg_pool pool;
    struct pg_owner owner;
    bool fsync;
    atomic_bool lost; /* it was opened to accept a loss, which is not done yet */

    /* Dropped partitions whose table is still there because a snapshot reads it. */
    struct mutex doomed_lock;
    uint32_t *doomed; /* owned */
    size_t doomed_capacity;
    atomic_size_t doomed_count;

    atomic_uint_fast64_t reads, writes, bytes_written;
    struct mutex size_lock;
    int64_t size_until_ms; /* on the engine's clock: until then bytes_stored is fresh enough */
    uint64_t bytes_stored;

    struct pg_primary primary;
    struct pg_settings ping_settings;      /* the same, never interrupted; texts borrowed */
    struct pg_connection *ping_connection; /* NULL: to be made */
    atomic_uint_fast64_t beat;             /* of a standby: the last one that it showed */
};

struct pg_snapshot {
    struct engine_snapshot base; /* must be first */
    struct pg_lease *lease;
};

static inline struct pg_engine *pg_engine(struct engine *engine)
{
    return (struct pg_engine *)engine;
}

static inline struct pg_lease *pg_snapshot_lease(struct engine_snapshot *snapshot)
{
    return snapshot ? ((struct pg_snapshot *)snapshot)->lease : NULL;
}

extern const struct engine_driver pg_driver_standby, pg_driver_follower;

/* standby.c: one host of the URL as a store that is only read from. */
bool pg_standby_open(struct slice url, const struct engine_options *options,
                     struct engine **ret_engine, struct error *err);
bool pg_standby_host(struct slice url, uint32_t nth, struct buf *to);
/* follower.c: the node as a server reads it that does not own it. */
bool pg_follower_open(struct slice url, const struct engine_options *options,
                      struct engine **ret_engine, struct error *err);

/* read.c */
bool pg_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                     struct error *err);
bool pg_snapshot_keep(struct engine_snapshot *snapshot, int64_t ms, struct error *err);
void pg_snapshot_free(struct engine_snapshot *snapshot);
bool pg_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
            struct slice key, enum engine_reach reach, struct arena *arena,
            struct engine_value *ret_value, struct error *err);
bool pg_multi_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                  const struct slice *keys, size_t count, enum engine_reach reach,
                  struct arena *arena, struct engine_value *ret_values, struct error *err);
bool pg_prove(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
              struct slice meta, struct slice key, struct arena *arena,
              struct engine_proof *ret_proof, struct engine_value *ret_value, struct error *err);

/* iterator.c */
bool pg_iterator_new(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                     struct engine_range range, bool backwards, enum engine_reach reach,
                     struct engine_iterator **ret_iterator, struct error *err);
void pg_iterator_free(struct engine_iterator *iterator);
bool pg_iterator_next(struct engine_iterator *iterator, struct engine_entry *ret_entry,
                      struct error *err);
bool pg_iterator_seek(struct engine_iterator *iterator, struct slice key, struct error *err);

/* write.c */
bool pg_write(struct engine *engine, struct engine_section *sections, size_t count,
              struct error *err);
bool pg_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                   struct engine_range range, struct error *err);

/* partition.c */
bool pg_partition_create(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err);
bool pg_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err);
bool pg_partition_drop(struct engine *engine, uint32_t id, struct error *err);
bool pg_partition_list(struct engine *engine, struct arena *arena,
                       struct engine_partition **ret_partitions, size_t *ret_count,
                       struct error *err);
bool pg_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                   uint64_t *ret_bytes, struct error *err);
bool pg_cluster_join(struct engine *engine, struct slice cluster_id, struct error *err);
bool pg_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                   struct error *err);

/* The fence of an epoch, for a change: raises OR002 or OR003. */
void pg_fence_send(struct pg_connection *connection, uint32_t id, uint64_t epoch);

/* Dropped, though its table may still be there: reads as of now are refused. */
bool pg_partition_is_doomed(struct pg_engine *engine, uint32_t id);
/* Reads the doomed ones from the node, at opening. */
NODISCARD bool pg_partition_doomed_load(struct pg_engine *engine, struct error *err);
/* Tries again to drop their tables; never waits long. */
void pg_partition_sweep(struct pg_engine *engine);
