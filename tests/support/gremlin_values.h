/* Values of Gremlin for tests: random ones of all types, and short ways to make some. */
#pragma once

#include "base/random.h"
#include "front/gremlin/value/value.h"

struct gremlin_heap *gremlin_test_heap(void); /* without limit */

/* Which types may occur. */
enum gremlin_random_kind {
    GREMLIN_RANDOM_SCALARS = 1,
    GREMLIN_RANDOM_CONTAINERS = 2,
    GREMLIN_RANDOM_ELEMENTS = 4,
    GREMLIN_RANDOM_ARGUMENTS = 8, /* predicates, traversals, ... */
    GREMLIN_RANDOM_DATA = 7,
    GREMLIN_RANDOM_ALL = 15,
};

/* Small ranges, so that equal values are common. */
struct gremlin_value gremlin_random_value(struct gremlin_heap *heap, struct random *random,
                                          unsigned kinds, int depth);

/* "a", 1 and so on, as texts say it: v[id] by its id. */
struct gremlin_value gremlin_test_vertex(struct gremlin_heap *heap, const char *id,
                                         const char *label);
