/* Moving world: a container of the catalogue on two nodes whose partitions split, merge, move and
 * isolate, and keys change their shard, while items are written, with faults, restarts and failures
 * of a whole node in between; and a plain table of what it should hold. */
#pragma once

#include "base/random.h"
#include "catalogue/caretaker.h"
#include "catalogue/catalogue.h"
#include "item/operation.h"
#include "migration/migrator.h"

enum { MOVING_NODES = 2, MOVING_KEYS = 40, MOVING_IDS = 8, MOVING_RANGES_MAX = 512 };

struct beside;

/* Where the nodes come from. */
struct moving_store {
    struct engine *(*open)(void *context, size_t node);
    bool reopens; /* a restart opens the engines anew; else they live on */
    bool faults;  /* writes can be made to fail */
    /* Takes the second node away, or lets it come back. NULL: nodes do not fail. Nodes are behind
     * guards then, and opening one that is away fails. */
    void (*takes_away)(void *context, struct engine *engine, bool away);
    /* Opens a node that may be away; for guards. NULL: engines live on. */
    bool (*reopen)(void *context, size_t node, struct engine **ret_engine, struct error *err);
    void *context;
};

struct moving_item {
    bool stored;
    uint32_t version, seen; /* the last written, and the last the feed has shown */
    unsigned again; /* how often the feed may begin anew with it: its key was placed elsewhere */
};

/* Where the reader of the feed is, for a range of routing keys. */
struct moving_position {
    struct slice min, max; /* owned, on the heap */
    uint64_t lsn;
};

struct moving {
    const struct moving_store *store;
    struct random random;
    uint64_t seed;
    unsigned step;
    struct arena *arena;                  /* of the step */
    struct engine *engines[MOVING_NODES]; /* faulty ones around the stores */
    struct engine *guards[MOVING_NODES];  /* own the engines, if nodes fail; else NULL */
    bool away;                            /* the second node is */
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct migrator *migrator;
    struct caretaker *caretaker;
    const char *const *bodies; /* of the container, in turn: other index policies */
    struct item_gates *gates;
    struct clock clock;
    _Atomic int64_t now_ms; /* committers of all nodes look at the clock */

    struct beside *beside; /* owned; NULL: there is nothing beside it */

    struct moving_item items[MOVING_KEYS][MOVING_IDS];
    uint32_t version; /* the last one given */
    struct moving_position positions[MOVING_RANGES_MAX];
    size_t position_count;

    unsigned migrations[MIGRATION_KINDS], cancelled, crashes, fenced_crashes, changes_seen;
    unsigned policies; /* changes of the index policy */
    unsigned failures, refused, away_at_start;
    unsigned repeats; /* of the feed, of keys that were placed elsewhere */
};

/* bodies: the container as JSON, its id "c", twice: with one index policy and with another. */
void moving_init(struct moving *moving, const struct moving_store *store, const char *const *bodies,
                 uint64_t seed);
void moving_done(struct moving *moving);

/* From now on there are views of the container and what else is beside it (beside.h). */
void moving_keep_beside(struct moving *moving);

/* Something at random. */
void moving_step(struct moving *moving);

/* Ends what is under way, and looks at everything. */
void moving_check(struct moving *moving);

/* --- The feed (moving_feed.c) ---------------------------------------------------------------- */

void moving_feed_begin(struct moving *moving);
void moving_feed_end(struct moving *moving);

/* Reads all that it has not shown yet. */
void moving_feed_follow(struct moving *moving);

/* The version that an item says it has. */
uint32_t moving_version(const struct item *item);

/* --- For what is beside it ------------------------------------------------------------------- */

static inline unsigned moving_below(struct moving *moving, unsigned limit)
{
    return (unsigned)random_below(&moving->random, limit);
}

/* A value for a property "w", as JSON. */
const char *moving_value(struct random *random);

/* A container of the database; NULL: there is none of that name. */
struct container *moving_container(struct moving *moving, const char *id);
NODISCARD bool moving_container_make(struct moving *moving, struct slice body, struct error *err);

/* Begins a migration of any container, at random. */
NODISCARD bool moving_migrate(struct moving *moving, const struct container *container,
                              enum migration_kind kind, struct error *err);

/* What a call failed with: the fault of the step, after which there has to be a restart, or a node
 * that is away. */
bool moving_is_fault(const struct error *err);
bool moving_is_refusal(struct moving *moving, const struct error *err);
void moving_restart(struct moving *moving);

/* The node comes back, if it is away. */
void moving_return(struct moving *moving);
