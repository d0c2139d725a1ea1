/* Scored: the items of one span with the best scores, as the entries of a full-text index tell
 * them.
 *
 * A walk keeps as many of the best as may be wanted; where these do not make enough rows, it is
 * walked again for more, and then all others are given as they come. Items whose score is not known
 * (their texts have too many terms for the index) may be the best: they are given in any case. */
#pragma once

#include "query/run/postings.h"

enum { QUERY_SCORED_MAX = 20000 }; /* items that are kept at once */

struct query_scored; /* opaque, owned */

struct query_scored_item {
    double score; /* INFINITY: it is not known */
    uint64_t number;
    struct slice key; /* owned by the list */
};

struct query_scored *query_scored_new(const struct query_scoring *scoring);
void query_scored_free(struct query_scored *scored); /* NULL is fine */

/* All that was kept has been given, and so many became rows. Is another walk wanted? Then it
 * begins. */
bool query_scored_wants_walk(struct query_scored *scored, uint64_t taken);

/* Are items of this walk to be given as they come, without being kept? */
bool query_scored_streams(const struct query_scored *scored);

/* The next of a walk. *ret_now: it is to be given at once. */
void query_scored_take(struct query_scored *scored, const struct query_posting *posting,
                       struct query_scored_item *ret_item, bool *ret_now);

/* The walk has ended: what was kept is given, the best first. */
void query_scored_sort(struct query_scored *scored);
bool query_scored_next(struct query_scored *scored, struct query_scored_item *ret_item);
