/* Functions: the built-ins of the query language by name, with how many arguments each takes.
 *
 * What they compute is not known here: the compiler of queries finds that by the id. */
#pragma once

#include "base/slice.h"

enum sql_function_id {
#define SQL_FUNCTION_ROW(id, ...) SQL_FUNCTION_##id,
#include "front/rest/sql/functions.def"
#undef SQL_FUNCTION_ROW
    SQL_FUNCTION_COUNT_ALL
};

enum sql_function_kind {
    SQL_FUNCTION_KIND_SCALAR,
    SQL_FUNCTION_KIND_AGGREGATE,
    SQL_FUNCTION_KIND_SCORE,   /* what ORDER BY RANK takes, and nothing else */
    SQL_FUNCTION_KIND_REFUSED, /* known and not offered */
};

enum { SQL_ARGUMENTS_ANY = UINT32_MAX };

struct sql_function {
    enum sql_function_id id;
    const char *name;
    uint32_t arguments_min, arguments_max;
    enum sql_function_kind kind;
    bool stable; /* a function of its arguments alone */
};

/* The function of that name, without case; NULL: there is none. */
const struct sql_function *sql_function_find(struct slice name);

const struct sql_function *sql_function(enum sql_function_id id);
