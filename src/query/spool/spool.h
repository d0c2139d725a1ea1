/* Spool: rows that must be known before the first can be given: sorted, grouped or made distinct.
 *
 * What its memory does not hold is spilled to disk in sorted runs (query/spool/runs.h), and merged
 * when it is given. Where nothing may be spilled, or no more, it keeps the smallest rows, by their
 * place, that its memory allows. If there were more it says so, and whoever wants the rest fills
 * another one from behind the last place: memory is bounded, and what is computed twice is bounded
 * by how often it overflows. Owned; for one thread. */
#pragma once

#include "query/position.h"
#include "query/value/aggregate.h"

struct query_context;
struct query_spill_budget;

struct query_spool_row {
    struct query_place place;    /* rows: which row of the item */
    struct slice identity;       /* of spools with identities: no two rows share it */
    struct document_value value; /* the row, or the keys of the group as an array */
    bool done; /* given by an earlier page: only here so that it is not given again */

    size_t bytes; /* the spool's own: what it counts for, */
    uint64_t hash;
    size_t index;
    struct query_spool_row *next;    /* and the next with the same place in its table */
    struct query_aggregate states[]; /* of a group */
};

struct query_spool_options {
    enum document_order order; /* of aggregates */
    size_t bytes_max;
    uint64_t rows_max; /* more will never be asked for; UINT64_MAX: not known */
    bool identities;
    const struct query_aggregate_call *aggregates; /* each row has a state of each */
    size_t aggregate_count;
    bool whole; /* it must hold all rows, in memory or on disk: ERROR_QUERY_LIMIT */
    struct query_spill_budget *spill; /* a reference is taken; NULL: nothing is spilled */
    struct query_context *context;    /* what long merges are stopped by; borrowed until finished */
};

struct query_spool; /* opaque */

struct query_spool *query_spool_new(const struct query_spool_options *options);
void query_spool_free(struct query_spool *spool); /* NULL is fine */
CLEANUP_FN(struct query_spool *, query_spool_free)

/* May a row of this place still be among the smallest? */
bool query_spool_wants(const struct query_spool *spool, const struct query_place *place);

/* The row with this identity, or NULL. */
struct query_spool_row *query_spool_find(const struct query_spool *spool, struct slice identity);

/* Adds a row, copying everything; its states are new. ERROR_QUERY_LIMIT, ERROR_SPILL. *ret_row:
 * NULL when it was not among the smallest after all; else good until the next row is added. */
NODISCARD bool query_spool_add(struct query_spool *spool, const struct query_place *place,
                               struct slice identity, const struct document_value *value, bool done,
                               struct query_spool_row **ret_row, struct error *err);

/* A row of an identity that is there turned up at a smaller place. ERROR_QUERY_LIMIT as above. */
NODISCARD bool query_spool_move(struct query_spool *spool, struct query_spool_row *row,
                                const struct query_place *place, const struct document_value *value,
                                bool done, struct error *err);

/* Adds a value to a state of a row, so many times. */
NODISCARD bool query_spool_feed(struct query_spool *spool, struct query_spool_row *row,
                                size_t state, const struct document_value *value, uint64_t times,
                                struct error *err);

/* Makes room if the states have grown beyond the memory. *ret_moved: rows that were found or added
 * before are no more. ERROR_QUERY_LIMIT, ERROR_SPILL. */
NODISCARD bool query_spool_settle(struct query_spool *spool, bool *ret_moved, struct error *err);

/* Takes over the rows of another spool with the same options but for its memory. What that had no
 * room for is not known here either. */
NODISCARD bool query_spool_merge(struct query_spool *spool, struct query_spool *other,
                                 struct error *err);

/* No more rows will be added: they are put in order. ERROR_SPILL, and limits of the context. */
NODISCARD bool query_spool_finish(struct query_spool *spool, struct error *err);

/* The next row in order, or NULL; good until the next call. ERROR_SPILL, ERROR_QUERY_LIMIT. */
NODISCARD bool query_spool_next(struct query_spool *spool, struct query_spool_row **ret_row,
                                struct error *err);

/* The row that was given last will be given once more: somebody only looked at it. */
void query_spool_return(struct query_spool *spool, struct query_spool_row *row);

/* Rows are left; the last that was given is no more, but for one that was returned. ERROR_SPILL. */
NODISCARD bool query_spool_has_more(struct query_spool *spool, bool *ret_more, struct error *err);

/* Spills what is left of a finished spool. False: it could not, and may be of no more use. */
NODISCARD bool query_spool_shrink(struct query_spool *spool);

/* Rows were left out, because there was no room. */
bool query_spool_overflowed(const struct query_spool *spool);

/* Bytes in memory; bytes on disk. */
size_t query_spool_bytes(const struct query_spool *spool);
uint64_t query_spool_spilled(const struct query_spool *spool);

/* It counts no more as memory of this query. */
void query_spool_uncount(struct query_spool *spool, struct query_context *context);

/* Rows in memory. */
size_t query_spool_count(const struct query_spool *spool);
