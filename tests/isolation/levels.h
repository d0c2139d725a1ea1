/* Levels: did reads of weaker levels keep what their level promises?
 *
 * Items of one physical partition, each with one writer that numbers its versions from 1. A read
 * looks at all of them in one snapshot. What was written has a place, its LSN, and a time by which
 * it was acknowledged; so of every read can be said which writes it missed. */
#pragma once

#include "item/reading.h"

enum { LEVELS_ITEMS = 4 };

/* A write that happened, acknowledged or found out about later. */
struct levels_write {
    uint32_t client, item;
    uint64_t version, lsn;
    int64_t acked_ms; /* by then it was known to its writer */
};

struct levels_read {
    uint32_t client;
    enum item_level level;
    int64_t began_ms, ended_ms;
    uint64_t versions[LEVELS_ITEMS]; /* 0: the item was not there */
};

struct levels_history {
    const struct levels_write *writes; /* in any order */
    size_t write_count;
    const struct levels_read *reads; /* of one client in its order */
    size_t read_count;
    int64_t staleness_ms; /* of bounded reads */
    uint64_t staleness_lsns;
};

enum levels_fault {
    LEVELS_UNWRITTEN, /* a version that never was, or that a failover took away */
    LEVELS_TORN,      /* of no one moment: a later write was seen and an earlier one was not */
    LEVELS_STALE,     /* Strong: missed what was acknowledged before it began */
    LEVELS_OLD,       /* BoundedStaleness: missed what was acknowledged longer ago than allowed */
    LEVELS_BEHIND,    /* BoundedStaleness: missed more commits than allowed */
    LEVELS_FORGOT,    /* Session: missed what its client had written, or seen */
    LEVELS_FAULTS
};

struct levels_report {
    size_t counts[LEVELS_FAULTS], faults;
    char first[240];
};

void levels_check(const struct levels_history *history, struct levels_report *ret_report);
