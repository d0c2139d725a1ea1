/* Rest: the stages over the rows of a plan, page by page.
 *
 * Memory and disk are bounded as they are for the plan below: half of the memory is for that, half
 * for each of the spools in between. Where the last stage that must see all rows has done so, its
 * spool waits in the cache for the next page; if it is gone, all is computed anew and passed over
 * up to where the page before ended. Stages that look at one row at a time go on from the place of
 * the plan below. */
#pragma once

#include "query/run.h"

/* How a page of the plan below is run. */
struct query_head {
    bool (*page)(void *self, const struct query_plan *plan, const struct query_request *request,
                 struct query_page *ret_page, struct error *err);
    void *self;
};

/* The next page of a plan with stages. Errors as of query_run. */
NODISCARD bool query_rest_run(const struct query_plan *plan, const struct query_request *request,
                              struct query_head head, struct query_page *ret_page,
                              struct error *err);
