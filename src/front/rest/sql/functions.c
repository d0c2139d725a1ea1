/* A walk over the rows: comparing lengths rules most of them out, and the text of a query limits
 * how many calls it can make. A table in the order of names would have to be kept so by hand. */
#include "front/rest/sql/functions.h"

static const struct sql_function functions[] = {
#define ANY SQL_ARGUMENTS_ANY
#define SQL_FUNCTION_ROW(id, name, min, max, kind, stable)                                         \
    [SQL_FUNCTION_##id] = {SQL_FUNCTION_##id, name, min, max, SQL_FUNCTION_KIND_##kind, stable},
#include "front/rest/sql/functions.def"
#undef SQL_FUNCTION_ROW
#undef ANY
};

const struct sql_function *sql_function(enum sql_function_id id)
{
    assert(id < SQL_FUNCTION_COUNT_ALL);
    return &functions[id];
}

const struct sql_function *sql_function_find(struct slice name)
{
    for (size_t i = 0; name.len && i < ARRAY_LEN(functions); i++)
        if ((name.data[0] | 0x20) == (functions[i].name[0] | 0x20) && /* most are others */
            slice_equal_nocase(name, slice_of_text(functions[i].name)))
            return &functions[i];
    return NULL;
}
