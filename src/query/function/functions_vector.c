/* How alike two vectors are. What is compared, and by which rule, comes first, packed into a
 * number: compilers put it there by the container's policy and the options of the call
 * (takes_vectors). Whether an index may be used is not the business of the function: it is exact.
 */
#include "query/function/functions_private.h"
#include "query/value/vectors.h"

#include <math.h>

enum { SUMS = 16 }; /* elements that are summed up in one unit of work */

QUERY_FUNCTION(vector_distance)
{
    const struct document_value *values = &arguments[QUERY_VECTOR_FIRST];
    struct query_vector vectors[2];
    struct search_vectors kind;
    int64_t packed;
    double score;

    if (!document_to_int64(&arguments[QUERY_VECTOR_KIND], &packed) ||
        !search_vectors_unpack(packed, &kind))
        return true;
    for (int i = 0; i < 2; i++)
        if (!query_vector_get(context, &values[i], &kind, &vectors[i], err))
            return false;
    if (!vectors[0].elements || !vectors[1].elements ||
        vectors[0].dimensions != vectors[1].dimensions)
        return true;
    if (!query_work(context, vectors[0].dimensions / SUMS, err))
        return false;
    kind.type = SEARCH_FLOAT32; /* they were read: their numbers are what their type has */
    score = search_vector_score(search_kernels_best(), &kind, vectors[1].elements,
                                vectors[1].length, (const uint8_t *)vectors[0].elements,
                                vectors[0].length, vectors[0].dimensions);
    if (isfinite(score))
        *ret_value = document_double(score);
    return true;
}

static const struct query_function functions[] = {
    {.name = "VectorDistance",
     .arguments_min = QUERY_VECTOR_ARGUMENTS,
     .arguments_max = QUERY_VECTOR_ARGUMENTS,
     .evaluate = vector_distance,
     .costly = true,
     .takes_vectors = true},
};

const struct query_function_family query_functions_vector = {functions, ARRAY_LEN(functions)};
