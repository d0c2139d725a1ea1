/* What gremlin_bench asks for, and the graph it asks: vertices 0 to n - 1, each with DEGREE edges
 * to vertices that a generator chooses by the number of the edge, so that both sides and every run
 * have the same. Vertex i has the id "v<i>" and the partition key "p<i % GROUPS>". */
#pragma once

#include <stdint.h>

enum gremlin_work {
    GREMLIN_POINT,
    GREMLIN_HOP,
    GREMLIN_HOPS,
    GREMLIN_BACK,
    GREMLIN_COUNT,
    GREMLIN_ADD_VERTEX,
    GREMLIN_ADD_EDGE,
    GREMLIN_WORKS,
};

enum { GREMLIN_DEGREE = 10, GREMLIN_GROUPS = 1000, GREMLIN_AGES = 100 };

/* Where edge k of vertex n leads, of `vertices`. */
static inline uint64_t gremlin_target(uint64_t n, uint64_t k, uint64_t vertices)
{
    uint64_t x = n * GREMLIN_DEGREE + k + 1;

    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    x ^= x >> 33;
    return x % vertices;
}
