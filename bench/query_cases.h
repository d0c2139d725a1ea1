/* Query cases: the queries that are compared, in Cosmos SQL and in the SQL of PostgreSQL, over the
 * items of space.h, and the values they are asked with. */
#pragma once

#include "base/arena.h"
#include "base/random.h"
#include "document/bson.h"

enum { QUERY_VALUES_MAX = 2 };

struct query_values {
    size_t count;
    struct document_value list[QUERY_VALUES_MAX]; /* texts are in an arena */
    const char *texts[QUERY_VALUES_MAX];          /* the same for PostgreSQL */
    struct document_value tenant;                 /* of a query of one partition key */
};

struct query_case {
    const char *name;
    const char *ours;   /* with @a and @b */
    const char *theirs; /* with $1 and $2 */
    void (*draw)(struct random *random, uint64_t items, struct arena *arena,
                 struct query_values *values); /* NULL: it has none */
    bool keyed;                                /* asked of one partition key, which is $2 */
    bool scalar;                               /* both give one number, which must be the same */
};

extern const struct query_case query_cases[];
extern const size_t query_case_count;

/* Ends the program when there is none of that name. */
const struct query_case *query_case_find(const char *name);

/* What PostgreSQL is given before the queries: indexes for each of them. */
extern const char *const query_indexes[];
extern const size_t query_index_count;
