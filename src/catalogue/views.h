/* Views of containers (definition/view.h): what their sources have to be, and what they bind.
 *
 * A container of which there is a view is *followed*: its definition says so, and from then on
 * every commit notes which items it touched (HISTORY_TOUCHED). That is said before the view is
 * made, and published as any definition that writes otherwise: when nobody writes by the one
 * before. So from the moment there is a view no change of its sources goes by unnoted. */
#pragma once

#include "catalogue/catalogue.h"

enum {
    CATALOGUE_VIEWS_MAX = 5,      /* of one source */
    CATALOGUE_VIEW_LEVELS_MAX = 2 /* a view of a view, and no further */
};

/* The status of a view, as its owner reads it. Nothing happens if the container is dropped or has
 * it. */
NODISCARD bool catalogue_view_settle(struct catalogue *catalogue, const struct container *view,
                                     enum definition_view_status status, struct error *err);

/* Are there views of a container of the database, or of one that it is or was to be tied to by a
 * promotion: what is written through one may be shown by the other? */
bool catalogue_views_need_followed(const struct database *database, struct container *container);

/* A container that is followed and has no views is so no longer. Nothing happens if it has some, or
 * one it is tied to has, or they have a partition together. */
NODISCARD bool catalogue_view_release(struct catalogue *catalogue,
                                      const struct container *container, struct error *err);

/* The container of this number, wherever it is by now; *ret_container NULL: it is gone. */
void catalogue_container_by_number(struct catalogue *catalogue, uint32_t account, uint32_t database,
                                   uint32_t number, struct container **ret_container);
