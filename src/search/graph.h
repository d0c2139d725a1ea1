/* Graph: codes of vectors, linked with those that are alike, so that the most alike to a vector are
 * found by going from one to the next and not by looking at all (a hierarchical navigable small
 * world).
 *
 * A graph is grown point by point by one thread; once it is whole it never changes, and any number
 * of threads search it. What it finds are candidates: most of the best, not surely all. The codes
 * are borrowed. Points, links and what is found follow from the codes alone. */
#pragma once

#include "search/code.h"

enum {
    SEARCH_GRAPH_LIST_MIN = 10, /* of building, as indexingSearchListSize has it */
    SEARCH_GRAPH_LIST_MAX = 500,
    SEARCH_GRAPH_LIST_DEFAULT = 100,
    SEARCH_GRAPH_FOUND_MAX = 4096, /* of one search */
};

/* What a graph is of. */
struct search_graph_points {
    struct search_vectors vectors; /* type is not looked at */
    unsigned bits;                 /* of the codes, for each dimension */
    const uint8_t *codes;          /* borrowed: one each stride bytes */
    size_t stride;
    uint32_t count;
};

struct search_graph; /* opaque, owned */

/* The bytes it will take at most, its growing included. */
size_t search_graph_bytes(const struct search_graph_points *points);

/* list: how many candidates a point's links are chosen from, as far as they are found. */
struct search_graph *search_graph_new(const struct search_graph_points *points, uint32_t list);
void search_graph_free(struct search_graph *graph); /* NULL is fine */
CLEANUP_FN(struct search_graph *, search_graph_free)

/* Puts in up to so many points more. True: it is whole. */
bool search_graph_grow(struct search_graph *graph, uint32_t points);

/* How many are in it. */
uint32_t search_graph_grown(const struct search_graph *graph);

/* Of a graph that is whole: up to max points (SEARCH_GRAPH_FOUND_MAX at most) that are the most
 * alike, the best first, of a list of so many candidates (max at least). *ret_looked: at how many
 * it has looked. Returns how many there are. */
size_t search_graph_search(const struct search_graph *graph, const float *elements, size_t list,
                           uint32_t *ret_points, size_t max, uint64_t *ret_looked);
