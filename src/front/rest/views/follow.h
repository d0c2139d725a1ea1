/* Follow: the steps of one view, each small, each to be repeated without harm.
 *
 *     new     where the histories of all nodes are now is noted; then what the sources hold is
 *     fill    brought in page by page. What changes meanwhile is in the histories.
 *     sweep   a view that is built again may have items whose sources have gone: they go
 *     follow  the histories tell which items were touched; each is looked at as it is now. When a
 *             promotion gives or takes a key of a source, the items of the key are walked (shown.h)
 *
 * Whatever is removed from a history before a view has come by is not missed silently: the view is
 * built again, and is readable meanwhile. */
#pragma once

#include "front/front.h"
#include "front/rest/views/state.h"

struct rest_view_terms {
    const struct front_services *services;
    int64_t lag_ms_max; /* a view that is further behind is built again */
};

/* Takes a step. *ret_more: there is more to do at once. view: its state of now. */
NODISCARD bool rest_view_step(struct rest_view_state *state, const struct rest_view_terms *terms,
                              struct container *view, bool *ret_more, struct error *err);

/* How far it is behind its sources, in milliseconds. */
int64_t rest_view_lag(const struct rest_view_state *state, struct catalogue *catalogue,
                      int64_t now_ms);

/* Does it have whatever was committed to its sources, and the items that they show? */
bool rest_view_has_all(const struct rest_view_state *state, struct catalogue *catalogue);

/* Does it have what a partition of a source has had at an LSN? False: not, or it cannot tell. */
bool rest_view_has_seen(const struct rest_view_state *state, uint64_t partition, uint64_t lsn);
