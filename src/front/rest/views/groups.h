/* Groups: the rows of an aggregating view, made what the items of its sources are now.
 *
 * What an item adds to its group is kept beside the group's row (item/contribution.h) and changes
 * with it in one commit. A touched item is compared with what is kept of it, wherever that is: what
 * was is taken back there, what is now is added where it belongs. Done twice it changes nothing,
 * and a crash between two groups leaves one that the next look sets right. A group without
 * contributions has no row. */
#pragma once

#include "front/rest/views/refresh.h"

/* As rest_view_refresh, of a view with GROUP BY. */
NODISCARD bool rest_view_groups_refresh(struct rest_view_state *state,
                                        const struct front_services *services,
                                        struct container *view,
                                        const struct rest_view_touched *touched, size_t count,
                                        struct error *err);

/* Removes those of these items of the view that are the row of no group there is. */
NODISCARD bool rest_view_groups_prune(struct rest_view_state *state,
                                      const struct front_services *services, struct container *view,
                                      const struct item *items, size_t count, struct error *err);
