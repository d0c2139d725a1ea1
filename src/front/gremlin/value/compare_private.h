/* What compare.c and hash.c share, so that they cannot disagree. */
#pragma once

#include "front/gremlin/value/compare.h"

/* The families of values, in the order of order(). */
enum gremlin_family {
    GREMLIN_OF_NULL,
    GREMLIN_OF_BOOLEAN,
    GREMLIN_OF_NUMBER,
    GREMLIN_OF_DATE,
    GREMLIN_OF_STRING,
    GREMLIN_OF_UUID,
    GREMLIN_OF_VERTEX,
    GREMLIN_OF_EDGE,
    GREMLIN_OF_VERTEX_PROPERTY,
    GREMLIN_OF_PROPERTY,
    GREMLIN_OF_PATH,
    GREMLIN_OF_SET,
    GREMLIN_OF_LIST,
    GREMLIN_OF_MAP,
    GREMLIN_OF_OTHER, /* each type by itself */
};

enum gremlin_family gremlin_family_of(enum gremlin_type type);

/* Since 1970, of whatever is of the family of dates. */
struct gremlin_instant {
    int64_t seconds;
    int32_t nanoseconds;
};

struct gremlin_instant gremlin_instant_of(struct gremlin_value value);
