/* Checker: looks at what concurrent clients saw and says which promise was broken.
 *
 * A history is a list of transactions with the versions they read and wrote. Every write has a
 * version of its own, so a read tells whose write it saw; LSNs tell in which order the versions of
 * an item came. Two questions are asked:
 *
 *   - isolation: is there one order of all snapshots and commits that explains every read, agrees
 *     with the LSNs and with what the clients' clocks say happened before what, and lets the first
 *     committer win? (Snapshot isolation; that two transactions each miss what the other wrote,
 *     write skew, is allowed and counted.)
 *   - items: has every single item a history in which each plain operation happened at one instant
 *     between its call and its answer? (Linearizability.)
 *
 * Whoever loses a node or the server in the middle of a commit is not told what became of it. Such
 * a transaction may have happened or not: both are followed. It is whole all the same, it happened
 * by the time its store was found again or never, and once somebody has seen it, it has happened.
 */
#pragma once

#include "base/arena.h"

enum history_op_kind {
    CHECKED_READ,    /* saw version; 0: the item was not there */
    CHECKED_PRESENT, /* saw that the item is there, not which version */
    CHECKED_OTHER,   /* saw that its version is not this one */
    CHECKED_WRITE,   /* wrote version, never 0 and never used twice */
    CHECKED_DELETE,
};

struct history_op {
    enum history_op_kind kind;
    uint32_t item; /* below items of the history */
    uint64_t version;
    uint64_t lsn;   /* of a committed write or delete, in the partition of the item; of a read: of
                       the write it saw, which is how the place of an unknown one gets known; 0:
                       not known */
    uint64_t at_ns; /* when a read had its answer; 0: not known */
};

enum history_outcome {
    CHECKED_COMMITTED, /* also what only read, or was refused for what it saw */
    CHECKED_ABORTED,   /* nothing of it may ever be seen */
    CHECKED_UNKNOWN,   /* asked for its commit and was not told: all of it happened, or nothing */
};

/* What one client did at once. */
struct history_transaction {
    uint32_t client;
    bool plain; /* one operation of items.h: happened between began and ended */
    enum history_outcome outcome;
    uint64_t began_ns; /* before it took its snapshot */
    uint64_t asked_ns; /* before it asked for the commit */
    uint64_t ended_ns; /* when it had the answer; unknown: by then it has happened, or never will */
    struct history_op *ops;
    size_t op_count;
};

struct history {
    struct history_transaction *transactions; /* in any order */
    size_t count;
    uint32_t items;
};

enum checker_anomaly {
    CHECKER_UNKNOWN_VERSION, /* a version nobody wrote */
    CHECKER_ABORTED_READ,    /* a version of a transaction that was refused */
    CHECKER_DIRTY_READ,      /* a version before its commit was asked for, or never the last */
    CHECKER_NON_REPEATABLE,  /* two versions of one item, or not one's own write */
    CHECKER_LOST_UPDATE,     /* wrote over a version it had not seen */
    CHECKER_READ_SKEW,       /* saw a part of what another wrote */
    CHECKER_LONG_FORK,       /* two saw two writes in opposite order */
    CHECKER_CIRCULAR_FLOW,   /* saw each other's writes, directly or around corners */
    CHECKER_STALE_READ,      /* missed what was acknowledged before it began */
    CHECKER_FUTURE_READ,     /* LSNs or versions against the order of time */
    CHECKER_NOT_LINEAR,      /* an item has no order of operations that explains all answers */
    CHECKER_UNDECIDED,       /* too much happened at once to say */
    CHECKER_CHANGE_LOST,     /* a committed write that is not told, or told of another item */
    CHECKER_CHANGE_DOUBLED,  /* one that is told twice */
    CHECKER_CHANGE_UNDONE,   /* one that is told and was never committed */
    CHECKER_CHANGE_TORN,     /* writes of one transaction that are told at several times */
    CHECKER_CHANGE_SHARED,   /* writes of several transactions that are told at one */
    CHECKER_CHANGE_ORDER,    /* told against the order of commits */
    CHECKER_ANOMALY_COUNT
};

struct checker_report {
    size_t counts[CHECKER_ANOMALY_COUNT];
    size_t violations;  /* sum of counts */
    size_t write_skews; /* pairs; allowed */
    char first[400];    /* the first violation, in words */
};

const char *checker_anomaly_name(enum checker_anomaly anomaly);

/* Both add to the report, which begins as zeros. */
void checker_isolation(const struct history *history, struct checker_report *report);
void checker_items(const struct history *history, struct checker_report *report);

/* What a node tells of the same writes, in its order. */
struct history_change {
    uint64_t time;
    uint32_t item;
    uint64_t version; /* 0: of a delete */
};

/* Each committed write is told once, those of a transaction at one time, all in an order that is
 * that of their partitions and of who was answered before whom asked. Of transactions with an
 * unknown outcome all writes are told or none. */
void checker_changes(const struct history *history, const struct history_change *changes,
                     size_t count, struct checker_report *report);

/* For the checkers: counts a violation and keeps the words of the first. */
void checker_object(struct checker_report *report, enum checker_anomaly anomaly, const char *format,
                    ...) PRINTF_LIKE(3, 4);
