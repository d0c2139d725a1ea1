/* Condition: what a patch asks of the stored item before it is applied: `from c where ...`. */
#pragma once

#include "definition/rid.h"
#include "front/rest/sql/compile.h"
#include "item/item.h"

/* Does the condition hold for the item, system properties included? container is what _rid and
 * _self are made of. options NULL: the defaults. ERROR_BAD_QUERY and kin as of any query;
 * ERROR_QUERY_LIMIT: it takes more work than a patch may. */
NODISCARD bool sql_condition_holds(struct slice text, const struct item *item, struct rid container,
                                   const struct sql_compile_options *options, struct arena *arena,
                                   bool *ret_holds, struct sql_error *ret_error, struct error *err);
