/* Vectors in queries: what a call of VectorDistance compares, by the policy of the container and
 * the options of the call, and which way an order by it goes. */
#pragma once

#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"
#include "search/vector.h"

enum {
    SQL_VECTOR_MULTIPLIER_MAX = 100,
    SQL_VECTOR_PRIORITY_DEFAULT = 500, /* of filterPriority, in thousandths */
    SQL_VECTOR_ROWS_MAX = 50000,       /* of an order by vectors that clients merge */
};

struct sql_vector_call {
    struct search_vectors vectors;
    bool brute_force;
    uint32_t list;     /* times as many candidates as rows that a graph looks for; 0: not said */
    uint32_t compared; /* times as many as rows that are compared by their items; 0: not said */
    uint32_t
        priority; /* of a filter, in thousandths: how many candidates are tried on it at first */
};

bool sql_is_vector_call(const struct sql_expr *expr);

/* Are rows ordered by how alike vectors are? */
bool sql_orders_by_vector(const struct sql_query *query);

/* Reads a resolved and bound call. policy: the `vectorEmbeddingPolicy` of the container, BSON;
 * absent: it has none. Without policy and options vectors are of float32, compared by cosine.
 * ERROR_BAD_QUERY: an option that is not known, or has no such value. */
NODISCARD bool sql_vector_call_read(const struct sql_expr *call, struct slice policy,
                                    struct arena *arena, struct sql_vector_call *ret_call,
                                    const struct sql_report *report);

/* An order by vectors has the most alike first: sets the direction of a resolved and bound query,
 * and those of the scores of a ranking. Others stay as they are. */
NODISCARD bool sql_vectors_orient(struct sql_query *query, struct slice policy, struct arena *arena,
                                  const struct sql_report *report);

/* Is it an order by vectors without an end that clients bear: without TOP and LIMIT, or of more
 * rows than SQL_VECTOR_ROWS_MAX? */
bool sql_vectors_overflow(const struct sql_query *query);
