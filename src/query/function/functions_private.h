/* What the files of built-in functions share. Each family is a table of rows; functions.c looks
 * through them all.
 *
 * The result is undefined before a function is called, so one that cannot use its arguments just
 * returns true. */
#pragma once

#include "query/function/function.h"
#include "query/value/compare.h"
#include "query/value/condition.h"

#define QUERY_FUNCTION(name)                                                                       \
    static bool name(const struct document_value *arguments UNUSED, size_t count UNUSED,           \
                     struct query_context *context UNUSED,                                         \
                     struct document_value *ret_value UNUSED, struct error *err UNUSED)

struct query_function_family {
    const struct query_function *functions;
    size_t count;
};

extern const struct query_function_family query_functions_array;
extern const struct query_function_family query_functions_convert;
extern const struct query_function_family query_functions_date;
extern const struct query_function_family query_functions_integer;
extern const struct query_function_family query_functions_math;
extern const struct query_function_family query_functions_regex;
extern const struct query_function_family query_functions_search;
extern const struct query_function_family query_functions_set;
extern const struct query_function_family query_functions_spatial;
extern const struct query_function_family query_functions_string;
extern const struct query_function_family query_functions_text;
extern const struct query_function_family query_functions_type;
extern const struct query_function_family query_functions_vector;

/* Are all of them strings? */
static inline bool query_all_strings(const struct document_value *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (arguments[i].type != DOCUMENT_STRING)
            return false;
    }
    return true;
}

/* Adds what one test of several says to AND (all) or OR (any): false when that settles it. */
static inline bool query_truth_combine(bool all, enum query_truth test, enum query_truth *truth)
{
    if (test == (all ? QUERY_FALSE : QUERY_TRUE)) {
        *truth = test;
        return false;
    }
    if (test == QUERY_UNKNOWN)
        *truth = QUERY_UNKNOWN;
    return true;
}
