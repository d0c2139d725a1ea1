/* Recording: what a client notes while it works, until it is a history for the checker. */
#pragma once

#include "isolation/checker.h"

enum { NOTE_OPS_MAX = 18 }; /* two logical partitions, three items, three operations on each */

/* All that one client has noted. */
struct recorder {
    uint32_t client;
    struct arena *kept; /* owned: operations */
    struct history_transaction *transactions;
    size_t count, capacity;
};

void recorder_init(struct recorder *recorder, uint32_t client);
void recorder_done(struct recorder *recorder);

/* The transaction a client is in, as it will stand in the history. */
struct note {
    struct history_transaction transaction;
    struct history_op ops[NOTE_OPS_MAX];
    size_t writes[NOTE_OPS_MAX]; /* places of writes, in order */
    size_t write_count;
};

/* Notes the time: to be called before anything is looked at. */
void note_begin(struct note *note, bool plain);

/* From here on it asks for its commit. */
void note_ask(struct note *note);

/* LSNs in history are without their era, which changes when an item is placed elsewhere. */
void note_read(struct note *note, uint32_t item, uint64_t version, uint64_t lsn);
void note_op(struct note *note, enum history_op_kind kind, uint32_t item, uint64_t version);
void note_lsn(struct note *note, size_t nth_write, uint64_t lsn);
void note_end(struct note *note, struct recorder *recorder, enum history_outcome outcome);

/* The history of several clients, in arena. settled: moments, ascending, by each of which whatever
 * had been left unknown before it has happened or never will; without one it may still. */
struct history recorders_history(const struct recorder *recorders, size_t count, uint32_t items,
                                 const uint64_t *settled, size_t settled_count,
                                 struct arena *arena);
