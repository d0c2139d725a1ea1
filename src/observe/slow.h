/* Slow: the last requests that took long, kept in memory as JSON for whoever looks. */
#pragma once

#include "observe/observed.h"

enum { SLOW_BYTES_MAX = 8192 }; /* of one request; what is longer is not kept */

struct slow; /* opaque, owned; from any thread */

struct slow *slow_new(size_t kept_max); /* at least 1 */
void slow_free(struct slow *slow);      /* NULL is fine */
CLEANUP_FN(struct slow *, slow_free)

void slow_add(struct slow *slow, const struct observed_request *request);

/* How many there were since the start. */
uint64_t slow_count(struct slow *slow);

/* Appends those kept as members of a JSON array, the newest first: of one account (empty: of all),
 * at most max. */
void slow_print(struct slow *slow, struct slice account, size_t max, struct buf *out);
