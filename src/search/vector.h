/* Vectors: rows of numbers that stand for what something means, and how alike two of them are.
 *
 * A vector is an array of numbers of one type. What it is worth is computed in one way whatever the
 * processor: products and differences are single precision, added up in 64 lanes (element i in lane
 * i modulo 64), and the lanes are added up in double precision. So scores do not depend on the
 * machine, and vectors of whole numbers have exact ones. */
#pragma once

#include "base/slice.h"
#include "document/value.h"

enum {
    SEARCH_DIMENSIONS_MAX = 4096,
    SEARCH_DIMENSIONS_FLAT_MAX = 505, /* of an index that is flat */
};

enum search_vector_type {
    SEARCH_FLOAT32,
    SEARCH_FLOAT16,
    SEARCH_INT8,
    SEARCH_UINT8,
    SEARCH_VECTOR_TYPES
};

enum search_metric { SEARCH_COSINE, SEARCH_DOT_PRODUCT, SEARCH_EUCLIDEAN, SEARCH_METRICS };

/* What the vectors at a path are. */
struct search_vectors {
    enum search_vector_type type;
    enum search_metric metric;
    uint32_t dimensions; /* 0: any number of them */
};

/* By the words of policies and options, without case. False: there is none of that name. */
bool search_vector_type_find(struct slice name, enum search_vector_type *ret_type);
bool search_metric_find(struct slice name, enum search_metric *ret_metric);
const char *search_vector_type_name(enum search_vector_type type);
const char *search_metric_name(enum search_metric metric);

/* Are higher scores more alike? Distances are not. */
static inline bool search_metric_is_similarity(enum search_metric metric)
{
    return metric != SEARCH_EUCLIDEAN;
}

/* All that vectors are as one number, and back; false: it is none of these. */
uint32_t search_vectors_pack(const struct search_vectors *vectors);
bool search_vectors_unpack(int64_t packed, struct search_vectors *ret_vectors);

/* Bytes of one element as it is stored. */
size_t search_vector_element(enum search_vector_type type);

/* Reads an array of numbers, each as its type keeps it. to: room for SEARCH_DIMENSIONS_MAX. False:
 * it is no vector of that kind (another type, a number out of range or not whole, another number of
 * dimensions, none at all). */
bool search_vector_read(const struct document_value *value, const struct search_vectors *vectors,
                        float *to, uint32_t *ret_dimensions);

/* A vector in the bytes of its type, little-endian, and back. */
void search_vector_store(const float *vector, uint32_t dimensions, enum search_vector_type type,
                         uint8_t *to);
void search_vector_load(const uint8_t *from, uint32_t dimensions, enum search_vector_type type,
                        float *to);

/* Half precision, rounded to nearest, ties to even; infinite from 65520 on. */
uint16_t search_half_of(float number);
float search_half_value(uint16_t half);

/* --- Kernels --------------------------------------------------------------------------------- */

/* Sums over two vectors: of products, and of squared differences. The first is in single precision,
 * the second in its stored bytes, at any alignment. */
struct search_kernels {
    const char *name;
    double (*dot[SEARCH_VECTOR_TYPES])(const float *vector, const uint8_t *stored, size_t count);
    double (*square[SEARCH_VECTOR_TYPES])(const float *vector, const uint8_t *stored, size_t count);
    /* Of products over a code (search/code.h, behind its head), of so many bits a number, and
     * numbers of a byte each that are given in planes: first those for the lowest bits of each byte
     * of the code, then those for the next ones. */
    uint32_t (*codes)(const uint8_t *planes, const uint8_t *code, size_t bytes, unsigned bits);
};

/* The fastest that this processor has. */
const struct search_kernels *search_kernels_best(void);

/* All that it has, the plain ones first; for tests. */
const struct search_kernels *const *search_kernels_all(size_t *ret_count);

/* The length of a vector. */
double search_vector_length(const struct search_kernels *kernels, const float *vector,
                            uint32_t dimensions);

/* The score of a stored vector for one that is asked for. lengths: of both; looked at for cosines
 * alone, where a vector of length 0 is like nothing (score 0). */
double search_vector_score(const struct search_kernels *kernels,
                           const struct search_vectors *vectors, const float *asked,
                           double asked_length, const uint8_t *stored, double stored_length,
                           uint32_t dimensions);
