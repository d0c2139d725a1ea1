/* Nearest: of the entries of an index of vectors in one span, those that are the most alike to what
 * is asked for, the best first.
 *
 * Entries are walked whole, and as many of the best are kept as may be wanted. Where rows turn out
 * to need more, for a filter refuses most, they are walked again for more of them, and in the end
 * for all others, in no order: so a search ends, finds everything, and keeps no more than
 * QUERY_NEAR_MAX entries. */
#pragma once

#include "query/access/access.h"

enum { QUERY_NEAR_MAX = 20000 };

struct query_near; /* opaque, owned */

struct query_near *query_near_new(const struct query_nearest *nearest);
void query_near_free(struct query_near *near); /* NULL is fine */

/* Some of the entries that are given lead to nothing, for they are not of now: a few more are kept.
 * Before the first walk. */
void query_near_expect_gone(struct query_near *near);

/* The present walk is no walk of all entries, but of some that a graph has found: the next one goes
 * through all others, whichever they are. */
void query_near_pick(struct query_near *near);

/* How many entries the present walk keeps. */
size_t query_near_capacity(const struct query_near *near);

/* Is another walk of the entries wanted? taken: rows that were made of those given so far. Called
 * where query_near_next has no other. */
bool query_near_wants_walk(struct query_near *near, uint64_t taken);

/* Takes an entry of the present walk. *ret_now: it is to be given at once. */
void query_near_take(struct query_near *near, const struct cursor_hit *hit, bool *ret_now);

/* The walk has ended. */
void query_near_sort(struct query_near *near);

/* The next of those kept; good until the next walk. */
bool query_near_next(struct query_near *near, uint64_t *ret_number, struct slice *ret_key);

/* Are entries given as they are walked? */
bool query_near_streams(const struct query_near *near);
