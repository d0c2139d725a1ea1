/* Code: a vector in a few bits for each dimension, to tell roughly how alike it is to others. What
 * seems alike is compared again by its numbers.
 *
 *     lowest value (float) | step (float) | length (float) | for each dimension so many bits
 *
 * all little-endian, the first dimension in the lowest bits. A value is about lowest + step * bits.
 * A code is a function of its vector alone: nothing is learned from others, so that entries of an
 * index can be made of it. */
#pragma once

#include "search/vector.h"

enum { SEARCH_CODE_HEAD = 12, SEARCH_CODE_BITS_DEFAULT = 8 };
enum { SEARCH_CODE_MAX = SEARCH_CODE_HEAD + SEARCH_DIMENSIONS_MAX };

/* Bits for each dimension (8, 4, 2 or 1): as many as fit into so many bytes, one at least. */
unsigned search_code_bits(uint32_t dimensions, size_t bytes);

size_t search_code_size(uint32_t dimensions, unsigned bits);

void search_code_make(const float *vector, uint32_t dimensions, unsigned bits, uint8_t *to);

/* What is asked for, made ready. */
struct search_asked {
    struct search_vectors vectors;
    const float *elements; /* borrowed */
    double length;
    double sum; /* of its elements */
};

struct search_asked search_asked_of(const float *elements, const struct search_vectors *vectors);

/* How far a stored vector is from what is asked for: less is more alike, whatever the metric. Of a
 * vector in its bytes (length: its own), and roughly of a code. */
double search_asked_distance(const struct search_asked *asked, const uint8_t *stored,
                             double length);
double search_asked_distance_code(const struct search_asked *asked, const uint8_t *code,
                                  unsigned bits);
