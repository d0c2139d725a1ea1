/* The query of a view: which items it has, and what each of them says.
 *
 * In the forms of the service it is `SELECT c.a, c.b FROM c` or `SELECT * FROM c`: whole properties
 * under their own names, and nothing else. In orrery.view expressions, names for them (AS) and a
 * filter (WHERE) come besides. What depends on anything but the item (time, chance, other items,
 * user-defined functions, parameters, system properties) is refused: an item of the view is made
 * again only when its source has changed. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "definition/view.h"

struct rest_view_query; /* opaque, owned; immutable: any thread may use it */

/* ERROR_VIEW_UNFIT, ERROR_BAD_QUERY and its kin. */
NODISCARD bool rest_view_query_new(const struct definition_view *view,
                                   struct rest_view_query **ret_query, struct error *err);
void rest_view_query_free(struct rest_view_query *query); /* NULL is fine */
CLEANUP_FN(struct rest_view_query *, rest_view_query_free)

/* The item of the view that a document of a source makes, under this id; the source's own id is
 * "_id" there. In the arena; data NULL: the filter leaves it out. ERROR_QUERY_LIMIT: it takes too
 * much work. */
NODISCARD bool rest_view_query_row(const struct rest_view_query *query, struct slice document,
                                   struct slice id, struct arena *arena, struct slice *ret_row,
                                   struct error *err);
