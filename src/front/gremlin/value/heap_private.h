/* The heap's own fields, for heap.c and object.c. */
#pragma once

#include "front/gremlin/value/value.h"

enum { GREMLIN_HEAP_CLASSES = 32 };

struct gremlin_piece;
struct gremlin_block;
struct gremlin_large;

struct gremlin_heap {
    size_t limit;
    struct memory_meter *meter;
    bool shared, over_limit, over_meter;
    uint64_t seed;
    size_t held, used;
    struct gremlin_block *blocks;
    uint8_t *at, *end; /* what is left of the newest block */
    size_t block_size;
    struct gremlin_large *large;
    struct gremlin_piece *free[GREMLIN_HEAP_CLASSES];
    struct gremlin_object *dying; /* let go of, not taken apart yet; chained by their heap field */
    bool burying;
};
