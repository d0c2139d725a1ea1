/* Engine: one node's store of ordered bytes, whatever keeps them.
 *
 * A node holds partitions, each a key space of its own with an epoch. All bytes below are relative
 * to a partition; drivers decide how partitions share files or tables. Keys sort bytewise.
 *
 * Reads see committed writes only. A write is one atomic, durable batch made of sections, one per
 * partition, each under the epoch its writer believes in; if one of them is not the partition's
 * ("fenced"), nothing is written. When engine_write returns true the batch survives kill -9 and
 * power loss (memory: nodes survive nothing and say so in their statistics).
 *
 * Every function may be called from any thread, except that one snapshot or iterator is used by
 * one thread at a time. Slices returned live in the arena handed in, or as the comment says. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"

struct engine;          /* opaque, owned by its opener */
struct engine_snapshot; /* opaque, owned by its taker */
struct engine_iterator; /* opaque, owned by its maker */

/* Partitions are numbered by the catalogue, never twice; 0 is the engine's own. */
#define ENGINE_PARTITION_MAX (UINT32_MAX - 1)

enum {
    ENGINE_KEY_MAX = 16 * 1024,          /* bytes */
    ENGINE_VALUE_MAX = 64 * 1024 * 1024, /* bytes */
};

/* Who watches over calls that wait for another machine. Both are called by the threads that make
 * the calls, and must not block; NULL: nobody does. */
struct engine_watch {
    void (*lost)(void *context); /* a connection was lost or refused: now is the time to look */
    /* A call has waited for another so many ms, in a pause that it got its turn after (one that
     * came late is not counted whole). True: it gives up, a write with an unknown outcome. */
    bool (*let_go)(void *context, int64_t ms);
    void *context;
};

struct engine_budget;
struct engine_beats;

struct engine_options {
    struct log *log;           /* borrowed; NULL: silent */
    const struct clock *clock; /* borrowed; NULL: the system's */
    /* rocksdb:, memory: what caches and write buffers have together, shared with other stores
     * (budget.h); borrowed. NULL: each its own default. Sizes that are given below hold. */
    struct engine_budget *budget;
    size_t cache_bytes;   /* block cache; 0: the driver's default */
    size_t recall_bytes;  /* values read by key, kept above the store; 0: the default */
    const char *recalled; /* first bytes of keys that are; borrowed. NULL: of all */
    /* How much of a key is the name of its group (below); 0: it has none. NULL: no key has. */
    size_t (*group)(struct slice key);
    size_t memory_bytes_max;   /* memory: refuses writes above this; 0: 1 GB */
    size_t write_buffer_bytes; /* memtable; 0: the driver's default */
    int64_t snapshot_ms_max;   /* postgresql: a snapshot older than this is let go; 0: 30 s */
    int64_t connect_ms_max;   /* postgresql: connecting, and reconnecting, gives up after; 0: 5 s */
    uint32_t connections_max; /* postgresql: pool size; 0: 8 */
    /* postgresql: a write whose server is gone waits so long for a standby to take over before it
     * is told that its outcome is not known; 0: no longer than for any other server. */
    int64_t failover_ms;
    bool accept_loss; /* opens a node whose server has lost acknowledged writes */
    /* postgresql: how its beats are numbered, so that what a standby shows can be dated (beats.h);
     * borrowed. NULL: beats are sent when they are needed, and only counted. */
    struct engine_beats *beats;
    /* postgresql: n: the nth host of the URL (engine_standby_host), from 1, as a standby that is
     * only read from; 0: the node itself. */
    uint32_t standby;
    /* postgresql: another server owns the node, and this one reads beside it: nothing is written.
     */
    bool follower;
    struct engine_watch watch;
    /* postgresql: the node is shared by servers, and this process opens it as the one of them that
     * owns the root (members.h): a server before it is fenced out. member 0: it is of one process.
     */
    struct engine_claim {
        uint64_t member, term;
    } claim;
};

/* Opens the node a URL names, making an empty one where there is none yet:
 *
 *     rocksdb:/var/lib/orrery     an absolute or relative directory
 *     memory:                     gone when closed
 *     postgresql://host/database  as libpq reads it
 *
 * ERROR_STORE_URL, _IN_USE, _FOREIGN, _VERSION, _CORRUPT, _UNAVAILABLE, _IO, _LOST. */
NODISCARD bool engine_open(struct slice url, const struct engine_options *options,
                           struct engine **ret_engine, struct error *err);

/* Can several servers share the node of this URL (members.h)? */
bool engine_is_shareable(struct slice url);

/* Waits for running calls of the engine's own threads; the caller has none of his own running. */
void engine_close(struct engine *engine); /* NULL is fine */
CLEANUP_FN(struct engine *, engine_close)

/* The URL with a password replaced by ***: fit for logs. Lives as long as the engine. */
struct slice engine_name(const struct engine *engine);

/* Appends the same of a URL that is not open. */
void engine_url_mask(struct slice url, struct buf *to);

/* The node's identity: made at random when the node is, and kept. 36 characters and a NUL. */
const char *engine_node_id(const struct engine *engine);

/* The cluster the node belongs to; empty until set, then never changed. ERROR_STORE_FOREIGN:
 * it belongs to another. */
NODISCARD bool engine_cluster_join(struct engine *engine, struct slice cluster_id,
                                   struct error *err);
NODISCARD bool engine_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                                 struct error *err);

/* Appends the name of the nth host, from 1, that the URL of a node with standbys names. False:
 * there are not so many, or the node has no standbys. */
NODISCARD bool engine_standby_host(struct slice url, uint32_t nth, struct buf *to);

/* --- Partitions ------------------------------------------------------------------------------ */

struct engine_partition {
    uint32_t id;
    uint64_t epoch;
};

/* ERROR_PARTITION_EXISTS. The epoch must be above 0. */
NODISCARD bool engine_partition_create(struct engine *engine, uint32_t id, uint64_t epoch,
                                       struct error *err);

/* Raises the epoch: when this returns, no write under a lower one can succeed any more, and every
 * write that did succeed is visible. ERROR_PARTITION_UNKNOWN; ERROR_FENCED when epoch is not above
 * the present one. */
NODISCARD bool engine_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch,
                                      struct error *err);

/* Removes the partition and all its keys, in time that does not grow with them. Snapshots taken
 * before may or may not still see its keys. Dropping what is not there succeeds. */
NODISCARD bool engine_partition_drop(struct engine *engine, uint32_t id, struct error *err);

/* All partitions, by id; the array lives in the arena. */
NODISCARD bool engine_partition_list(struct engine *engine, struct arena *arena,
                                     struct engine_partition **ret_partitions, size_t *ret_count,
                                     struct error *err);

/* --- Reading --------------------------------------------------------------------------------- */

/* How far a read may go. */
enum engine_reach {
    ENGINE_READ_ANY,    /* to the disk or the server, blocking */
    ENGINE_READ_CACHED, /* memory only: says ENGINE_COLD rather than block */
    ENGINE_READ_ONCE,   /* as far as the first, of an iterator that goes over more than the cache
                           could keep: what it reads is read ahead and not kept */
};

enum engine_found {
    ENGINE_ABSENT,
    ENGINE_FOUND,
    ENGINE_COLD, /* not known without blocking; only with ENGINE_READ_CACHED */
};

struct engine_value {
    enum engine_found found;
    struct slice bytes; /* in the arena when found */
};

/* A view of the whole node at this moment. Writers are not held up by it. On postgresql: it holds
 * a connection and expires (ERROR_STORE_SNAPSHOT_EXPIRED on use) after snapshot_ms_max. */
NODISCARD bool engine_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                                   struct error *err);
void engine_snapshot_free(struct engine_snapshot *snapshot); /* NULL is fine */
CLEANUP_FN(struct engine_snapshot *, engine_snapshot_free)

/* Does a snapshot of it wait for nobody? Else (postgresql:) it takes a connection, which may have
 * to be waited for, and nothing is ever read from memory alone. */
bool engine_is_here(const struct engine *engine);

/* Reads one key, in a snapshot or (NULL) as of now. Reading a partition that does not exist is
 * ERROR_PARTITION_UNKNOWN where the driver can tell for free, else an absent key. */
NODISCARD bool engine_get(struct engine *engine, struct engine_snapshot *snapshot,
                          uint32_t partition, struct slice key, enum engine_reach reach,
                          struct arena *arena, struct engine_value *ret_value, struct error *err);

/* Reads many keys of one partition, cheapest when they come sorted; ret_values has count places.
 * Without a snapshot all are still read as of one moment. */
NODISCARD bool engine_multi_get(struct engine *engine, struct engine_snapshot *snapshot,
                                uint32_t partition, const struct slice *keys, size_t count,
                                enum engine_reach reach, struct arena *arena,
                                struct engine_value *ret_values, struct error *err);

/* --- Groups ---------------------------------------------------------------------------------- */

/* A group is all entries whose keys begin with one name (engine_options.group). What somebody has
 * read of one by an iterator he may offer to be kept above the store, in a form of his own, for
 * whoever asks for the group next: what is found is what was offered, and that is what the snapshot
 * shows. Memory and fairness are those of values read by key. */
enum { ENGINE_GROUP_MAX = 16 * 1024 }; /* bytes of what is offered; more is not kept */

struct engine_group {
    struct slice bytes; /* data NULL: it is not kept */
    bool served;        /* it could be: false for all groups of a store that keeps none */
    uint64_t seen[3];   /* the driver's, by which it tells whether an offer can be taken */
};

/* Is it kept? The bytes are copied into the arena. */
bool engine_group_find(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                       struct arena *arena, struct engine_group *ret_group);

/* Offers what this snapshot shows, read behind a look that did not find it; all of the group. */
void engine_group_offer(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                        struct slice bytes, const struct engine_group *group);

/* What a standby, or a primary that another server writes to, shows of a partition, read in the
 * same moment as the data. */
struct engine_proof {
    bool standby;      /* the server only follows another */
    uint64_t epoch;    /* of the partition; 0: it is not there */
    uint64_t beat;     /* the last one (beats.h) */
    struct slice meta; /* the value of the key that was asked for; data NULL: none. In the arena */
};

/* Reads the proof of a partition and, unless it is empty, one key, both of one moment: the
 * snapshot's, or (NULL) now. Only of an engine opened as a standby or follower;
 * ERROR_PARTITION_UNKNOWN, and whatever reading may say. */
NODISCARD bool engine_prove(struct engine *engine, struct engine_snapshot *snapshot,
                            uint32_t partition, struct slice meta, struct slice key,
                            struct arena *arena, struct engine_proof *ret_proof,
                            struct engine_value *ret_value, struct error *err);

struct engine_range {
    struct slice min; /* inclusive; data NULL: from the first key */
    struct slice max; /* exclusive; data NULL: to the last key */
};

/* Walks a range of one partition, forwards or backwards, in a snapshot or (NULL) as of now. The
 * bounds are copied. The iterator stands before the first entry. A snapshot must outlive it. */
NODISCARD bool engine_iterator_new(struct engine *engine, struct engine_snapshot *snapshot,
                                   uint32_t partition, struct engine_range range, bool backwards,
                                   enum engine_reach reach, struct engine_iterator **ret_iterator,
                                   struct error *err);
void engine_iterator_free(struct engine_iterator *iterator); /* NULL is fine */
CLEANUP_FN(struct engine_iterator *, engine_iterator_free)

struct engine_entry {
    enum engine_found found; /* ENGINE_ABSENT: the end; ENGINE_COLD: give up and come back */
    struct slice key, value; /* valid until the next call on the iterator */
};

NODISCARD bool engine_iterator_next(struct engine_iterator *iterator,
                                    struct engine_entry *ret_entry, struct error *err);

/* The next entry will be the first at or after key (backwards: at or before it) within the
 * bounds. */
NODISCARD bool engine_iterator_seek(struct engine_iterator *iterator, struct slice key,
                                    struct error *err);

/* --- Writing --------------------------------------------------------------------------------- */

enum engine_op_kind { ENGINE_PUT, ENGINE_DELETE };

struct engine_op {
    enum engine_op_kind kind;
    struct slice key;
    struct slice value; /* of a put */
};

/* What a batch does to one partition. A key occurs at most once, and ops are sorted by key: that
 * is where the engines are fastest, and the caller (group commit) has to merge anyway. */
struct engine_section {
    uint32_t partition;
    uint64_t epoch;        /* must be the partition's */
    struct engine_op *ops; /* borrowed */
    size_t count;
    bool fenced; /* out, with ERROR_FENCED: its epoch is another, or the partition is gone */
};

/* Writes all sections as one atomic and durable batch; a partition occurs in one section at most,
 * and sections are sorted by partition.
 *
 * ERROR_FENCED: nothing was written; the sections that were shut out say so, and the caller may
 * write the others again without them. ERROR_STORE_FULL, _UNAVAILABLE, _UNREPLICATED, _LOST:
 * nothing was written, later writes may succeed. Any other failure: it is not known whether the
 * batch is there, and the engine refuses further writes (ERROR_STORE_POISONED) until it is closed
 * and opened again. postgresql: finds out by itself where it can. */
NODISCARD bool engine_write(struct engine *engine, struct engine_section *sections, size_t count,
                            struct error *err);

/* Can much be written beside the log, so that it is not in the way of other writes? */
bool engine_can_load(const struct engine *engine);

/* Writes much at once, of an engine that can: sections of puts only, each whole or not at all,
 * durable on return. For partitions that nobody reads or writes meanwhile, within the keys that are
 * given. ERROR_FENCED, ERROR_STORE_FULL: as engine_write. After any failure each section may be
 * there or not, and all may be loaded again; the engine goes on. */
NODISCARD bool engine_load(struct engine *engine, struct engine_section *sections, size_t count,
                           struct error *err);

/* Removes every key of the range under the fence of epoch (ERROR_FENCED), in time that does not
 * grow with it where the driver can. Durable on return. */
NODISCARD bool engine_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                                 struct engine_range range, struct error *err);

/* --- Care ------------------------------------------------------------------------------------ */

/* An estimate of the stored bytes of a range, cheap enough to ask once a second. */
NODISCARD bool engine_range_size(struct engine *engine, uint32_t partition,
                                 struct engine_range range, uint64_t *ret_bytes, struct error *err);

/* Copies the node as of one moment into a new directory that a rocksdb: URL can open, while writes
 * go on. ERROR_NOT_SUPPORTED on postgresql:, which has its own tools for that. */
NODISCARD bool engine_backup(struct engine *engine, struct slice directory, struct error *err);

/* A node that is closed becomes what such a copy of it holds: its tables are linked, which does not
 * grow with data, and the copy stays. Cut off by a crash, it is called again before the node is
 * opened. ERROR_NOT_SUPPORTED of other than rocksdb: nodes. ERROR_NOT_FOUND: there is no such copy,
 * or no node. ERROR_STORE_IN_USE. */
NODISCARD bool engine_reset(struct slice url, struct slice copy, struct error *err);

struct engine_statistics {
    bool durable;            /* false: memory: */
    bool poisoned;           /* refuses writes until reopened */
    uint64_t bytes_stored;   /* on disk, in memory or in the server */
    uint64_t bytes_free;     /* what is left of the disk or the cap; UINT64_MAX: not known */
    uint64_t bytes_resident; /* caches and write buffers of this process */
    uint64_t reads, writes;  /* calls */
    uint64_t bytes_written;  /* keys and values handed to engine_write */
    uint64_t reconnects;     /* postgresql: */
    double backlog;          /* work put off, such as merging files, as a part of what makes writes
                                wait; 0: none, or not known */
    bool lost;               /* postgresql: acknowledged writes are gone; nothing is served */
    bool replicated;         /* postgresql: commits wait for a standby */
    uint32_t timeline;       /* postgresql: of the primary; 0: there is none */
    uint64_t beat;           /* of a standby: the last one that it showed (beats.h) */
};

NODISCARD bool engine_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                                 struct error *err);

/* Asks the store for a sign of life, on a way of its own that no other call is in the way of, and
 * waits no longer than ms_max. One that lives in this process is always there.
 * ERROR_STORE_UNAVAILABLE. One thread at a time. */
NODISCARD bool engine_ping(struct engine *engine, int64_t ms_max, struct error *err);

/* On: calls that wait for the store give up soon (ERROR_STORE_UNAVAILABLE, or a write whose outcome
 * is not known), and so does every further one, until it is off again. Only of engines whose calls
 * can wait for another machine. */
void engine_interrupt(struct engine *engine, bool on);

/* Can another server take its place when it fails? Then it is worth waiting for. */
bool engine_fails_over(const struct engine *engine);

/* It was opened with accept_loss, and writes that were acknowledged are gone. Once whoever opened
 * it has seen to it that nothing of them is given out again, the loss is accepted. */
bool engine_has_lost(const struct engine *engine);
NODISCARD bool engine_loss_accept(struct engine *engine, struct error *err);

/* Does it take calls? True but of a guarded node (guard.h) that is down or paused; err says which
 * it is then and why. Waits for nothing. */
NODISCARD bool engine_serves(const struct engine *engine, struct error *err);
