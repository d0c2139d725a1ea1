/* Reference: items of another container that have a key, as an expression.
 *
 *     JOIN r IN REFERENCE("countries") ... WHERE r.id = c.country
 *
 * is a source whose expression is a reference: for each row its children give the values of the
 * key, and it gives the array of the items that have them. Where the items come from is for the
 * host of the context (context.h): the expression knows the number of the reference within its plan
 * and nothing else. A key with a part that is undefined has no items. */
#pragma once

#include "query/expression/expression.h"

enum { QUERY_REFERENCES_MAX = 10, QUERY_REFERENCE_KEYS_MAX = 5 };

/* One of a plan. All of it is in the arena of the plan. */
struct query_reference {
    struct slice database; /* data NULL: that of the query */
    struct slice container;
    const struct slice *paths; /* of the key, as their container names them: "/id" */
    size_t path_count;
    bool identified; /* the last path is that of the id, behind those of the partition key */
};

struct query_reference_node {
    struct query_expression head; /* a child for each path */
    size_t number;
};

extern const struct query_kind query_kind_reference;

/* Never folded: what is found changes while the plan is kept. */
const struct query_expression *query_reference_new(struct query_build *build, size_t number,
                                                   const struct query_expression *const *keys,
                                                   size_t count);
