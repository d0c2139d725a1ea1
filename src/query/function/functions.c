#include "query/function/functions_private.h"

static const struct query_function_family *const families[] = {
    &query_functions_array,   &query_functions_convert, &query_functions_date,
    &query_functions_integer, &query_functions_math,    &query_functions_regex,
    &query_functions_search,  &query_functions_set,     &query_functions_spatial,
    &query_functions_string,  &query_functions_text,    &query_functions_type,
    &query_functions_vector,
};

/* Names are looked up when a query is compiled, a few at a time: no index is worth having. */
const struct query_function *query_function_find(struct slice name)
{
    for (size_t i = 0; name.len && i < ARRAY_LEN(families); i++) {
        for (size_t j = 0; j < families[i]->count; j++) {
            const struct query_function *function = &families[i]->functions[j];

            if ((name.data[0] | 0x20) == (function->name[0] | 0x20) && /* most are others */
                slice_equal_nocase(name, slice_of_text(function->name)))
                return function;
        }
    }
    return NULL;
}
