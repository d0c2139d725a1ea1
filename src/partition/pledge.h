/* Pledges: the keys a node keeps for transactions over several nodes (item/agreement.h).
 *
 * A node that has promised its part of a transaction lets nobody else change what that part has
 * read or will write, until the transaction is applied or undone. Plain batches that meet such a
 * key wait in the committer's queue; batches of other transactions over nodes are refused
 * (ERROR_CONFLICT), so that nobody waits for two of them.
 *
 * A promise is kept in the partition of the node's history:
 *
 *     x | i | id, 16     -> promise
 *     x | d | id, 16     -> decision, at the home of the transaction (item/agreement.c)
 *
 * A promise (numbers big-endian; format 1 is the same, but nothing lies beside the items in it):
 *
 *     1   format, 2
 *     4   number of the home
 *     8   wall clock, ms
 *     4   count of keys; each: partition, 4; 1: it is written, 0: it was read; length, 4; key
 *     4   count of ranges that were read; each: partition, 4; length, 4; min; length, 4; max
 *     ..  the writes, as item/agreement_record.h has them
 *
 * Windows. Between the decision and the last application, nodes of one transaction show different
 * things. A window marks the partitions in which they do: at the home while the decision is
 * written, until the other nodes know of it; on those from then on, until they have applied it.
 * Readers wait for windows (pledges_await), which takes them one load while there are none. */
#pragma once

#include "base/arena.h"
#include "engine/engine.h"

#include <stdatomic.h>

struct commit_batch;
struct commit_part;

enum { PLEDGE_ID_LEN = 16, PLEDGE_KEY_LEN = 2 + PLEDGE_ID_LEN, PLEDGE_WAIT_MS = 5000 };
enum pledge_record { PLEDGE_PROMISE = 'i', PLEDGE_DECISION = 'd' };

struct pledge_id {
    uint8_t bytes[PLEDGE_ID_LEN];
};

bool pledge_id_equal(struct pledge_id a, struct pledge_id b);

/* The key of a record, in the arena, and the range of all records of a kind. */
struct slice pledge_key(enum pledge_record kind, struct pledge_id id, struct arena *arena);
struct engine_range pledge_records(enum pledge_record kind, struct arena *arena);
/* ERROR_STORE_CORRUPT. */
NODISCARD bool pledge_key_decode(struct slice key, struct pledge_id *ret_id, struct error *err);

struct pledge_item {
    uint32_t partition;
    bool written;
    struct slice key;
};

struct pledge_range {
    uint32_t partition;
    struct engine_range range;
};

/* What one node has promised. Owned; made once and not changed but for the last two. */
struct pledge {
    struct pledge_id id;
    uint32_t home;
    int64_t wall_ms;
    struct pledge_item *items;
    size_t item_count;
    struct pledge_range *ranges;
    size_t range_count;
    struct slice writes; /* empty: it was only read there, and there is no record */
    struct arena *arena; /* owns all of it */

    bool decided;        /* the table's */
    struct pledge *next; /* the table's */
};

/* Of what the parts of a batch rely on and touch; all is copied. */
struct pledge *pledge_new(struct pledge_id id, uint32_t home, int64_t wall_ms,
                          const struct commit_batch *batch, struct slice writes);
void pledge_free(struct pledge *pledge); /* NULL is fine */
CLEANUP_FN(struct pledge *, pledge_free)

/* The record of a promise, and back; ERROR_STORE_CORRUPT, ERROR_STORE_VERSION. */
struct slice pledge_encode(const struct pledge *pledge, struct arena *arena);
NODISCARD bool pledge_decode(struct slice key, struct slice value, struct pledge **ret_pledge,
                             struct error *err);

/* --- The table of a node --------------------------------------------------------------------- */

struct pledges {
    atomic_uint_fast64_t windows; /* bits of partitions with open windows; 0: none */
    atomic_size_t count;          /* of pledges */
    struct pledges_table *table;  /* all else */
};

void pledges_init(struct pledges *pledges);
void pledges_done(struct pledges *pledges);

/* Adds one, of which it becomes the owner; one of that id that is there stays instead. */
void pledges_add(struct pledges *pledges, struct pledge *pledge);
/* Lets go of the keys, and closes its window. Nothing happens if there is none. */
void pledges_remove(struct pledges *pledges, struct pledge_id id);

/* Does the batch meet a key that is kept? By what it writes always; by what it relied on if that
 * is going to be written by a transaction that is decided: before that, the batch comes first. */
bool pledges_meet(struct pledges *pledges, const struct commit_batch *batch);

/* The transaction is decided: a window opens on the partitions it writes, until it is removed. */
void pledges_decide(struct pledges *pledges, struct pledge_id id);

/* Is one of this id there? */
bool pledges_have(struct pledges *pledges, struct pledge_id id);

/* Waits until none is there of a partition, at most so long. False: some are. */
NODISCARD bool pledges_leave(struct pledges *pledges, uint32_t partition, int64_t ms);

/* Calls of each; the pledge is borrowed for the call, which must not come back to the table. */
void pledges_each(struct pledges *pledges, void (*tell)(const struct pledge *pledge, void *context),
                  void *context);

/* --- Windows --------------------------------------------------------------------------------- */

#define PLEDGE_EVERY_PARTITION UINT64_MAX

/* What stands for a partition in a set of them; some share a bit. */
static inline uint64_t pledge_bit(uint32_t partition)
{
    return UINT64_C(1) << (partition * UINT64_C(0x9E3779B97F4A7C15) >> 58);
}

static inline uint64_t pledges_windows(const struct pledges *pledges)
{
    return atomic_load_explicit(&pledges->windows, memory_order_acquire);
}

/* The window of a home: opened before its decision is written, closed when others know. */
void pledges_window_open(struct pledges *pledges, struct pledge_id id, uint64_t partitions);
void pledges_window_close(struct pledges *pledges, struct pledge_id id);

enum pledge_moment {
    PLEDGE_BEFORE_READING, /* waits for all windows that are open now */
    PLEDGE_AFTER_READING,  /* waits for those of homes: what was read may be decided by them */
};

/* Waits for windows of these partitions (bits). ERROR_PLEDGED: one was open for PLEDGE_WAIT_MS. */
NODISCARD bool pledges_await(struct pledges *pledges, uint64_t partitions,
                             enum pledge_moment moment, struct error *err);
