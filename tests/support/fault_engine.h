/* Fault engine: an engine that hands everything to another one, except what a test told it to
 * spoil. It stands between group commit (or container/) and a real store.
 *
 * Faults that only a disk can have (torn pages, unsynced bytes lost) are made one level lower, by
 * disk_faults.c under a real RocksDB. */
#pragma once

#include "engine/engine.h"

/* Takes the inner engine over: closing this one closes it. */
struct engine *fault_engine_new(struct engine *inner);

/* Borrows it: what is in a memory: engine is still there when this one was closed, so that a test
 * can open the node again. */
struct engine *fault_engine_around(struct engine *inner);

/* Which calls count. */
enum fault_calls {
    FAULT_READS = 1,  /* get, multi_get, snapshot_new, iterator_new, iterator_next */
    FAULT_WRITES = 2, /* write, load, range_drop, partition_create, _fence, _drop */
    FAULT_ALL = 3,
};

/* What becomes of a write that is told to have failed. */
enum fault_outcome {
    FAULT_NOT_WRITTEN,
    FAULT_WRITTEN, /* the answer got lost */
    FAULT_TORN,    /* half of it: what no engine may do but with a load, for tests of the tests */
};

/* The nth such call from now (1: the next) fails with this code. */
void fault_engine_fail_nth(struct engine *engine, enum fault_calls calls, unsigned nth,
                           enum error_code code, enum fault_outcome outcome);

/* A write that failed with an unknown outcome leaves the engine poisoned, as it does rocksdb:. This
 * is the moment when such a node has been recovered, or postgresql: has found out. */
void fault_engine_heal(struct engine *engine);

/* From now on writes fail with ERROR_STORE_FULL, or no longer. */
void fault_engine_fill(struct engine *engine, bool full);

/* Writes wait at a gate until it is opened again. */
void fault_engine_hold_writes(struct engine *engine);
void fault_engine_release_writes(struct engine *engine);

/* Waits until a write stands at the gate. */
void fault_engine_wait_held(struct engine *engine);

/* The power goes: a write at the gate is lost or kept, as said, but never answered well; every
 * call fails with ERROR_STORE_IO until the power comes back. What was acknowledged stays. */
void fault_engine_cut_power(struct engine *engine, enum fault_outcome in_flight);
void fault_engine_restore_power(struct engine *engine);

/* The store cannot be reached: every call, and a ping, fails with ERROR_STORE_UNAVAILABLE and does
 * nothing, until it can. */
void fault_engine_unplug(struct engine *engine, bool unplugged);

/* Calls wait until they are let go or interrupted, as on a server that hangs; so does a ping, for
 * as long as it may. A write that is let go is in doubt; in truth nothing was written. */
void fault_engine_hang(struct engine *engine, bool hangs);

/* The same, but pings are answered: the store is slow, not gone. */
void fault_engine_stall(struct engine *engine, bool stalls);

/* Who is asked whether calls go on waiting: what the engine was opened with. Before it is used. */
void fault_engine_watch(struct engine *engine, struct engine_watch watch);

/* It says that another server can take its place. */
void fault_engine_fail_over(struct engine *engine, bool on);

/* As a standby it proves itself by this; the value of the numbering's key is the store's own. */
void fault_engine_show(struct engine *engine, const struct engine_proof *proof);

/* Signs of life asked for so far. */
unsigned fault_engine_pings(const struct engine *engine);

/* Calls of this kind so far, to choose nth from. */
unsigned fault_engine_count(const struct engine *engine, enum fault_calls calls);
