/* Lists: the entries of terms of full-text indexes as searches have walked them, kept in memory.
 *
 * A list has all entries of one term in one physical partition at one LSN of it. As long as the
 * partition stands there the next search goes through the list; any commit makes it useless, so
 * nothing has to be told of writes, splits or failovers, and nothing is kept over a restart. Lists
 * are made where a second search comes at the same LSN: a partition that is written to between
 * searches has none. Bounded in bytes; the one that was used longest ago goes first. For any number
 * of threads. */
#pragma once

#include "item/cursor.h"

struct query_lists; /* opaque, owned by whoever runs queries */
struct query_list;  /* opaque, counted; never changes once it is put */

struct query_lists *query_lists_new(size_t bytes_max);
void query_lists_free(struct query_lists *lists); /* NULL is fine; no list is in use */
CLEANUP_FN(struct query_lists *, query_lists_free)

/* What a list is of. */
struct query_list_key {
    uint32_t node, partition;
    uint64_t epoch, lsn;
    struct slice prefix, value; /* of the entries */
};

/* Has another search looked at the partition at this LSN? If not it is noted that one has now. */
bool query_lists_again(struct query_lists *lists, const struct query_list_key *key);

/* The list, for query_list_unref; NULL: there is none. */
struct query_list *query_lists_find(struct query_lists *lists, const struct query_list_key *key);
void query_list_unref(struct query_list *list); /* NULL is fine */
CLEANUP_FN(struct query_list *, query_list_unref)

/* Begins one. */
struct query_list *query_list_begin(const struct query_list_key *key);

/* Adds the next entry. False: there are too many, and query_list_give_up was called. */
bool query_list_add(struct query_list *list, const struct cursor_hit *hit);

/* The list is empty from now on, and says that it is longer than what was added, which saves others
 * trying. */
void query_list_give_up(struct query_list *list);

/* It is whole: others may find it. The caller still has its reference. */
void query_lists_put(struct query_lists *lists, struct query_list *list);

/* Instead of entries: what adds up of a whole index, and of how many counters. */
struct query_list_sum {
    int64_t words;
    uint64_t counters;
};
void query_list_set_sum(struct query_list *list, struct query_list_sum sum); /* before it is put */
struct query_list_sum query_list_sum(const struct query_list *list);

/* Is it longer than somebody wanted to read, and how long it is at least. */
bool query_list_is_long(const struct query_list *list);
size_t query_list_tried(const struct query_list *list);
size_t query_list_count(const struct query_list *list);

/* The entry at a place: routing key, number, key and what it says, good as long as the list. */
void query_list_at(const struct query_list *list, size_t place, struct cursor_hit *ret_hit);

/* Bytes of all that can be found. */
size_t query_lists_bytes(struct query_lists *lists);
