/* Rebind: a plan that is run again with other values of its parameters.
 *
 * A parameter becomes a constant of the plan. Where that constant is still there, as a side of a
 * comparison or BETWEEN or an argument of a function, nothing else was made of its value: putting
 * another of the same type there gives the plan that compiling would have given. Where it became
 * something else (a sum, a set of IN, a pattern, a step of a path, a number of rows) the plan is
 * for these values alone. */
#pragma once

#include "front/rest/sql/compile.h"

enum { SQL_REBIND_PARAMETERS_MAX = 16 };

/* Appends what of a text, its parameters and options a plan depends on, but for the values of
 * parameters. False: it is not to be kept (it is long, or has many parameters or the same twice).
 */
bool sql_rebind_key(struct slice text, struct slice parameters,
                    const struct sql_compile_options *options, struct buf *key);

/* Can all its parameters get other values? */
bool sql_rebind_is_possible(const struct sql_prepared *prepared);

/* Gives them, of a text whose key is the same; they are borrowed while the plan is run. */
void sql_rebind(struct sql_prepared *prepared, struct slice text, struct slice parameters,
                const struct sql_compile_options *options);
