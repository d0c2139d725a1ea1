/* Runs: sorted rows of a spool that were spilled, and what they are merged into.
 *
 * Runs are kept in the order they were made, and where two rows are equal the one of the earlier
 * run comes first; so what is made of them does not depend on where one run ended and the next
 * began. For one thread. */
#pragma once

#include "query/spool/spill.h"
#include "query/spool/spool.h"
#include "query/value/context.h"

/* What rows of a spool are to each other. */
struct query_runs_rules {
    bool by_identity; /* sorted by identity, else by place */
    bool unite;       /* rows that sort alike are one: states are merged, the least place stays */
    const enum query_aggregate_kind *kinds; /* of the states; borrowed */
    size_t kind_count;
    enum document_order order; /* the same */
    size_t bytes_max;          /* what the spool may keep in memory */
};

int query_runs_order(const struct query_runs_rules *rules, const struct query_place *a,
                     struct slice a_identity, const struct query_place *b, struct slice b_identity);

/* Values are kept as the BSON of an array of one. */
void query_runs_value_write(const struct document_value *value, struct buf *buf);
struct document_value query_runs_value_read(struct slice bytes);

/* --- Writing --------------------------------------------------------------------------------- */

struct query_run {
    struct query_spill_run spilled;
    unsigned level; /* how often its rows were merged */
};

struct query_runs {
    struct query_spill_budget *budget; /* a reference; NULL: nothing can be spilled */
    struct query_spill_file *file;     /* a reference; NULL: nothing was */
    struct query_run *list;            /* owned */
    size_t count, capacity;
    uint64_t longest; /* of the rows */
};

/* Takes a reference of its own to the budget. */
void query_runs_init(struct query_runs *runs, struct query_spill_budget *budget);
void query_runs_done(struct query_runs *runs);

/* Makes a run of sorted rows. *ret_spilled false: they could not be written, and nothing has
 * changed. The context, which may be NULL, is asked how long merging may go on.
 * ERROR_SPILL, ERROR_TIMED_OUT and other limits. */
NODISCARD bool query_runs_add(struct query_runs *runs, const struct query_runs_rules *rules,
                              struct query_spool_row *const *rows, size_t count,
                              struct query_context *context, bool *ret_spilled, struct error *err);

/* Takes over the runs of another spool, as the latest. */
void query_runs_adopt(struct query_runs *runs, struct query_runs *other);

/* Merges the latest runs until there are few enough to be read at once. */
NODISCARD bool query_runs_finish(struct query_runs *runs, const struct query_runs_rules *rules,
                                 struct query_context *context, struct error *err);

/* --- Merging --------------------------------------------------------------------------------- */

struct query_merge; /* opaque, owned */

/* Runs, and rows in memory that come after them. All are borrowed. */
NODISCARD bool query_merge_new(const struct query_runs_rules *rules, const struct query_run *runs,
                               size_t run_count, struct query_spool_row *const *rows,
                               size_t row_count, struct query_merge **ret_merge, struct error *err);
void query_merge_free(struct query_merge *merge); /* NULL is fine */
CLEANUP_FN(struct query_merge *, query_merge_free)

/* The next row, good until the next call; NULL: there is none. ERROR_SPILL; ERROR_QUERY_LIMIT: its
 * states together keep more than they may. */
NODISCARD bool query_merge_next(struct query_merge *merge, struct query_spool_row **ret_row,
                                struct error *err);

/* The place of the row that query_merge_next would give, or NULL. The row given before is no more.
 */
NODISCARD bool query_merge_look(struct query_merge *merge, const struct query_place **ret_place,
                                struct error *err);

/* Bytes of memory. */
size_t query_merge_bytes(const struct query_merge *merge);
