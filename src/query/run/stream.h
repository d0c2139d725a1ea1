/* Stream: the hits of one target in one span, in the order of their places. */
#pragma once

#include "query/run/changes.h"
#include "query/run/hits.h"

/* What the streams of a feed have in common; borrowed. */
struct query_streaming {
    struct query_spans *spans;
    const struct query_access *access;
    struct query_position from; /* hits begin behind it */
    bool by_number;             /* places are numbers alone */
    bool by_key;                /* places are item keys; hits come with their item */
    size_t taken_span;          /* where hits became rows last, */
    uint64_t taken;             /* and how many of them: query_hits_taken */
    bool ties;                  /* places are values and numbers: equal values come by number */
};

/* One of several hits with the same value, or of a range that is gathered. */
struct query_tie {
    uint64_t number;
    struct slice key;   /* item key; owned */
    size_t routing_len; /* it begins with the routing key */
};

struct query_stream {
    size_t span;
    const struct query_target *target;
    const struct query_index_use *use; /* the index, or the member of a union; NULL: none */
    bool united;                       /* its places are routing keys and numbers */
    struct partition_range range;      /* of target and window and span */
    struct cursor *cursor;             /* NULL: a point */
    struct query_common *common;       /* of several indexes, the others; NULL: there is one */
    uint64_t counted;                  /* entries that are in the cost */
    bool point_given;
    bool waiting; /* not open yet: place is before that of every hit it may have */
    bool has;     /* place and key below are those of the next hit */
    struct query_place place;
    struct item item;
    struct buf bytes;    /* of the place and the item key */
    struct slice key;    /* item key */
    struct arena *arena; /* of a point */

    struct query_near *near; /* of an index of vectors */
    bool undecided; /* of it: whether more are wanted is seen when rows were made of those given;
                       there is no place yet, and query_stream_next goes on */
    struct query_block *block; /* its entries, or what becomes of them on a walk; counted */
    bool block_whole;          /* they are all there */
    size_t block_at;           /* the next of them; behind them comes what was written since */
    struct query_since since;
    size_t changes_at; /* the next of those */
    bool stale;        /* the block is of an earlier LSN */
    bool walked;       /* once at least: what the graph has not found is looked for elsewhere */

    struct query_postings *postings; /* of a full-text index, instead of the cursor */
    bool passed_by;                  /* the present posting is not the hit yet, but the next; of
                                      * several indexes: there is no next */
    struct query_scored *scored;     /* of an order by their scores */
    bool unsure;                     /* of a hit of them: the entry does not tell all */
    bool score_known;                /* and its score, which is known */
    double score;

    /* Where the index does not have equal values by number: those that come next, sorted. */
    bool tied;
    struct query_tie *ties; /* owned */
    size_t tie_count, tie_at;
    bool ties_left;          /* there are more of this value, with higher numbers */
    struct buf tie_value;    /* as the index has it */
    struct cursor_hit ahead; /* the entry behind those of the value, of the cursor's memory */
    bool has_ahead;
    uint64_t passed; /* entries that were read and are not in the cost yet */
};

/* Which of two places comes first. */
int query_stream_order(const struct query_streaming *how, const struct query_place *a,
                       const struct query_place *b);

/* Stands at its first hit, if it has one. span, target, use and range are set. */
NODISCARD bool query_stream_open(const struct query_streaming *how, struct query_stream *stream,
                                 struct error *err);
void query_stream_free(struct query_stream *stream);

/* Passes over hits behind the present one, up to max, whose value is its own, or any; the last of
 * them becomes the present one, without its key. *ret_count: how many; 0 where that is not to be
 * had. */
NODISCARD bool query_stream_pass(const struct query_streaming *how, struct query_stream *stream,
                                 bool any_value, uint64_t max, uint64_t *ret_count,
                                 struct error *err);

/* Goes on to the next hit. */
NODISCARD bool query_stream_next(const struct query_streaming *how, struct query_stream *stream,
                                 struct error *err);
