/* Cache: unfinished results of queries that had to compute more than one page could hold. The next
 * page takes its result out; if it is not there any more it is computed anew, with the same
 * answer. Bounded in bytes of memory and of disk; the oldest goes first. For any number of
 * threads. */
#pragma once

#include "query/spool/spool.h"

struct query_cache; /* opaque, owned */

/* Of what results have spilled, all but the newest together hold at most spilled_max. */
struct query_cache *query_cache_new(size_t bytes_max, uint64_t spilled_max);
void query_cache_free(struct query_cache *cache); /* NULL is fine */
CLEANUP_FN(struct query_cache *, query_cache_free)

/* Takes the spool over, and gives the number under which it can be asked for: random, never 0. One
 * that is too large is spilled. 0: that was not possible, and it is gone. */
uint64_t query_cache_put(struct query_cache *cache, uint64_t fingerprint,
                         struct query_spool *spool);

/* The spool, now the caller's; NULL: it is not there, or another query's or range's. */
struct query_spool *query_cache_take(struct query_cache *cache, uint64_t fingerprint,
                                     uint64_t number);
