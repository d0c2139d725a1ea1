/* Position: how far a query has come, as values, and the continuation made of it.
 *
 * Rows have a place: bytes of the order key, routing key and number of their item, and which row of
 * the item they are. Rows of an order have no routing key in theirs: those with equal values come
 * by number, as clients that merge ranges expect it. Unordered queries go through the routing keys
 * window by window, each window the span of one physical partition when it was begun; so a position
 * says which window it is in, and a split or merge in between makes no difference. */
#pragma once

#include "query/run.h"

/* Longer order keys are kept cut in a continuation. Where the whole key matters it is found again
 * in the item it came from; if that is gone, rows that agree so far are told apart by routing key
 * and number. */
enum { QUERY_PLACE_KEY_MAX = 288 };

struct query_place {
    struct slice key;     /* order key; of scans empty */
    bool cut;             /* this is only the beginning of the key */
    struct slice routing; /* of scans and orders empty */
    uint64_t number;
    uint32_t rows; /* of the item that are done; 0: all of them */
};

struct query_position {
    bool begun; /* place and window are set */
    struct partition_range window;
    struct query_place place;

    bool sorted;            /* the index that had the order cannot tell long values apart */
    uint32_t access;        /* query_access_mark; of ordered queries 0 */
    uint64_t offset, limit; /* left */
    int64_t now_ticks;      /* the time of the query's first page */
    uint64_t cached;        /* an unfinished result in the cache; 0: none */
    struct slice states;    /* BSON: aggregates, or counters of stages, so far; empty: none */
    struct slice head;      /* of a plan with stages: the continuation of what is below them */
};

/* The state of a query that has not begun. */
struct query_position query_position_first(const struct query_plan *plan, int64_t now_ticks);

/* In the arena; SLICE_NONE: it would be longer than QUERY_CONTINUATION_MAX. */
struct slice query_position_save(const struct query_position *position, uint64_t binding,
                                 struct arena *arena);

/* Slices point into bytes. ERROR_BAD_REQUEST: not a continuation of this plan. */
NODISCARD bool query_position_load(struct slice bytes, uint64_t binding,
                                   struct query_position *ret_position, struct error *err);

/* Which of two places comes first: by key, routing key and number. */
int query_place_compare(const struct query_place *a, const struct query_place *b);
