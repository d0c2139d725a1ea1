/* Query, PostgreSQL's side: the same items as jsonb in a server of this program's own, with an
 * index for each query, vacuumed and analysed. Queries are prepared statements over one connection
 * through a socket of the file system. */
#pragma once

#include "query_cases.h"

#include <sys/types.h>

struct query_theirs; /* opaque, owned */

/* Starts the server with as much shared memory as our cache has, and loads it. */
struct query_theirs *query_theirs_new(uint64_t count, size_t cache_bytes);
void query_theirs_free(struct query_theirs *theirs);

/* The server's first process. */
pid_t query_theirs_process(const struct query_theirs *theirs);

struct query_theirs_result {
    uint64_t rows, bytes;
    char first[256]; /* the first row's first field, cut */
};

/* One query; adds to the result. */
void query_theirs_run(struct query_theirs *theirs, const struct query_case *query,
                      const struct query_values *values, struct query_theirs_result *result);

/* Says how the query is run. */
void query_theirs_explain(struct query_theirs *theirs, const struct query_case *query,
                          const struct query_values *values);
