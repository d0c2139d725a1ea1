/* A projection as a tree of names, from within the folder. */
#pragma once

#include "front/mongo/projection/projection.h"

enum { PROJECTION_DEPTH_MAX = 100, PROJECTION_FIELDS_MAX = 5000 };

enum projection_kind {
    PROJECTION_BELOW, /* something is said of what is below */
    PROJECTION_INCLUDE,
    PROJECTION_EXCLUDE,
    PROJECTION_SLICE,
    PROJECTION_ELEMENT,  /* $elemMatch */
    PROJECTION_COMPUTED, /* by an expression */
};

struct projection_node {
    enum projection_kind kind;
    struct slice name;
    struct projection_node **children;
    size_t count, capacity;
    bool computes;   /* a field here or below is computed */
    bool positional; /* a path with `$` leads here or through here */
    bool skips;      /* of $slice: [skip, limit] */
    int64_t skip, limit;
    const struct mongo_match *match; /* of $elemMatch, asked of an element */
    const struct query_expression *expression;
};

struct mongo_projection {
    const struct projection_node *root;
    bool including, whole;
    bool shows_id;
    bool positional;
    const struct mongo_match *match; /* of the query */
    uint32_t slot;
    const struct query_expression *const *expressions;
    size_t expression_count;
};
