/* Feed: the items a query may want, one by one, from all physical partitions it has to ask.
 *
 * Where the order matters all partitions are merged by it; where it is that of the partition key
 * and the partitions have it too, each is opened when its turn comes. Where it does not, they are
 * read one after the other: each span is a window that is finished before the next begins. Items
 * behind index entries are loaded in batches that grow while they are wanted. */
#pragma once

#include "query/access/access.h"
#include "query/position.h"

enum query_hits_order {
    QUERY_HITS_WINDOWS, /* window by window; in one by number, or in the order of its index */
    QUERY_HITS_MERGED,  /* in the order of the index, over all partitions */
    QUERY_HITS_ANY,     /* window by window, in whatever order is cheapest */
};

/* Hits that may be given as one, where nothing is loaded. */
enum query_hits_runs {
    QUERY_RUNS_NONE,
    QUERY_RUNS_EQUAL, /* with the same value in the index */
    QUERY_RUNS_ANY,   /* whatever they are: they are only counted */
};

struct query_hits_options {
    enum query_hits_order order;
    bool ties;    /* merged: equal values come by number, whatever their routing keys */
    bool whole;   /* merged: values that were cut are not told apart by the values behind them */
    bool resumed; /* pages before have read from the same partitions */
    bool load;    /* items are wanted, not only that they are there */
    enum query_hits_runs runs;
    uint64_t first_batch; /* about how many items will be wanted; 0: not known */
    bool timed;
};

struct query_hit {
    struct query_place place;
    struct partition_range window;
    size_t span;
    uint64_t times;   /* for how many it stands: place is that of the last */
    bool unsure;      /* its entry does not say all that the access is exact about */
    bool score_known; /* of an order by scores of texts */
    double score;
    struct item item; /* document.data NULL: not loaded */
};

struct query_hits; /* opaque, owned */

/* Goes on behind the position, if it has begun; of a place with rows done, with its very item.
 * All is borrowed. */
struct query_hits *query_hits_new(struct query_spans *spans, const struct query_access *access,
                                  const struct query_hits_options *options,
                                  const struct query_position *from);
void query_hits_free(struct query_hits *feed); /* NULL is fine */
CLEANUP_FN(struct query_hits *, query_hits_free)

/* The next; it lives until the next call. *ret_more false: the end, or *ret_held: the budget of
 * the next partition is used up, and some were read from before. */
NODISCARD bool query_hits_next(struct query_hits *feed, struct query_hit *ret_hit, bool *ret_more,
                               bool *ret_held, struct error *err);

/* The hit of a span became a row, or would have if better ones were not enough: of an index of
 * vectors no more are given than are wanted. */
void query_hits_taken(struct query_hits *feed, size_t span);

/* About how many hits will still be wanted. */
void query_hits_expect(struct query_hits *feed, size_t hits);

/* Did the end come because two long values stand together that the index has cut, so that their
 * order is not known? Of merged feeds; the hits up to there were given. */
bool query_hits_is_unsure(const struct query_hits *feed);

struct query_hits_times {
    uint64_t index_ns, load_ns;
};
struct query_hits_times query_hits_times(const struct query_hits *feed);

/* How many items all targets have, where that is known without reading them: whole spans and
 * logical partitions of which nothing expires. */
NODISCARD bool query_hits_count(struct query_spans *spans, const struct query_access *access,
                                bool *ret_known, uint64_t *ret_count, struct error *err);
