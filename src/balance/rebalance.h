/* Rebalance: which partitions to move so that every node has its part. Pure: figures in, moves out.
 *
 * In this order of importance:
 *
 *     drain       what is on a node that is to be emptied
 *     placement   what is on a node its rules do not allow
 *     room        what is on a node fuller than its capacity less its reserve
 *     balance     bytes, heat and numbers of partitions in proportion to the nodes' capacities
 *
 * No move breaks a rule or fills a node into its reserve. Balance is worth a move only if it makes
 * a difference; so there are few, and planning again after they are carried out gives none. */
#pragma once

#include "base/arena.h"

struct rebalance_node {
    uint32_t number;         /* below 64 */
    uint64_t capacity_bytes; /* 0: not known */
    uint64_t used_bytes;
    uint32_t reserve_percent;
    bool weighed; /* its capacity is its part of the whole, if that is so of all; else evenly */
    bool takes;   /* partitions may be moved to it */
    bool empties; /* and are to be moved away from it */
};

struct rebalance_span {
    uint32_t node;    /* where it is */
    uint64_t allowed; /* a bit for each node it may be on */
    uint64_t bytes;
    double heat; /* RU/s */
    bool fixed;  /* it cannot be moved now */
};

enum rebalance_reason {
    REBALANCE_DRAIN,
    REBALANCE_PLACEMENT,
    REBALANCE_ROOM,
    REBALANCE_BALANCE,
};
const char *rebalance_reason_name(enum rebalance_reason reason);

struct rebalance_move {
    size_t span; /* index */
    uint32_t from, to;
    enum rebalance_reason reason;
};

/* A span that ought to be moved and cannot be. */
struct rebalance_stuck {
    size_t span;
    enum rebalance_reason reason;
    bool forbidden; /* its rules allow no node at all; else: none that has room takes it */
};

struct rebalance_plan {
    struct rebalance_move *moves; /* in the order to carry them out */
    size_t count;
    struct rebalance_stuck *stuck;
    size_t stuck_count;
    double spread_before, spread_after; /* 0: everything in proportion */
};

/* In the arena. must_only: balance is left alone. */
void rebalance_plan(const struct rebalance_node *nodes, size_t node_count,
                    const struct rebalance_span *spans, size_t span_count, bool must_only,
                    struct arena *arena, struct rebalance_plan *ret_plan);
