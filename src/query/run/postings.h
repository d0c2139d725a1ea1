/* Postings: the items of one span whose text has certain terms, in the order of routing key and
 * number, from the entries of a full-text index alone. */
#pragma once

#include "query/access/access.h"

struct query_postings; /* opaque, owned */

/* An item, and what its entries say; good until the next is asked for. */
struct query_posting {
    struct cursor_hit hit;
    bool unsure;   /* its text has too many terms for the index: it may have these, or not */
    uint64_t has;  /* which terms */
    uint32_t size; /* terms of its text */
    uint32_t often[QUERY_TERMS_MAX]; /* of those it has */
};

struct query_lists;

/* request: of any one of the ranges; its slices, terms and view outlive the postings. lists: where
 * entries may be in memory; NULL: nowhere. */
NODISCARD bool query_postings_open(const struct view *view, const struct cursor_request *request,
                                   const struct query_terms *terms, struct query_lists *lists,
                                   struct query_postings **ret_postings, struct error *err);
void query_postings_free(struct query_postings *postings); /* NULL is fine */
CLEANUP_FN(struct query_postings *, query_postings_free)

/* The next will be the first behind this place, which need not exist. */
NODISCARD bool query_postings_seek_behind(struct query_postings *postings, struct slice routing,
                                          uint64_t number, struct error *err);

/* The next item; NULL: there is none. */
NODISCARD bool query_postings_next(struct query_postings *postings,
                                   const struct query_posting **ret_posting, struct error *err);

/* Passes over items behind the one that was given last, no more than max, where none of them need
 * be looked at: of one term whose entries are in memory, where no text has too many. The last of
 * them is given then; its number of entries counts as if each was. 0: there are none, or they have
 * to be asked for one by one. */
uint64_t query_postings_pass(struct query_postings *postings, uint64_t max);

/* The one that was given last. */
const struct query_posting *query_postings_last(const struct query_postings *postings);

/* Entries walked so far. */
uint64_t query_postings_entries(const struct query_postings *postings);
