/* $select and the other parameters of a query that are no filter. */
#pragma once

#include "front/table/call.h"
#include "front/table/entity.h"

enum { TABLE_PAGE_MAX = 1000, TABLE_SELECT_MAX = 255 };

/* $select: names with commas between them; none or *: all. In the arena. ERROR_TABLE_PARAMETER. */
NODISCARD bool table_selection_parse(struct table_call *call, struct table_selection *ret_selection,
                                     struct error *err);

/* $top: 1 to 1000, which is also what a page has without. ERROR_TABLE_PARAMETER. */
NODISCARD bool table_top_parse(const struct table_call *call, size_t *ret_top, struct error *err);

/* Refuses system query options that are not offered: $orderby, $skip and the like.
 * ERROR_NOT_SUPPORTED. */
NODISCARD bool table_options_check(const struct table_call *call, struct error *err);
