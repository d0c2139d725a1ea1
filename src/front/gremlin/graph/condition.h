/* Conditions of a search as an expression of query/: evaluated on the stored form, and telling
 * which values an index has to look for. Negations are carried down to the comparisons, as
 * P.negate() does. */
#pragma once

#include "front/gremlin/graph/graph.h"
#include "query/expression/expression.h"

/* What property names mean in a container. */
struct gremlin_names {
    const struct slice *keys; /* of the partition key's paths; these stand bare */
    size_t key_count;
};

struct gremlin_test; /* a condition, compiled; in the arena, for any number of threads */

/* The condition can be stored's (gremlin_condition_is_stored). What it needs is copied. */
const struct gremlin_test *gremlin_test_compile(const struct gremlin_condition *condition,
                                                enum gremlin_element_kind kind,
                                                const struct gremlin_names *names,
                                                struct arena *arena);

bool gremlin_test_holds(const struct gremlin_test *test, struct slice document);

/* May an index lead to what satisfies it? Else all there is has to be looked at. */
bool gremlin_test_leads(const struct gremlin_test *test);

/* True where the item is of the kind and satisfies the test. */
const struct query_expression *gremlin_test_expression(const struct gremlin_test *test,
                                                       struct query_build *build);
const struct query_expression *gremlin_kind_expression(enum gremlin_element_kind kind,
                                                       struct query_build *build);

/* A property of the item that is one of these texts: ids, labels, ends. */
const struct query_expression *gremlin_one_of(struct slice name, const struct slice *texts,
                                              size_t count, struct query_build *build);
