/* Cover: a query on a source, put as one on its view.
 *
 * A view stands for its source as an index table does: it keeps, under names of its own, whatever
 * the query needs, and has a row for every item the query can want. Then each path of the query is
 * the path of the view's column, and conditions that are the view's own filter hold for all of its
 * rows. What a row of a view does not say of its item is what makes a query no query on the view:
 * properties that are not selected, the system properties, the item as a whole. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "definition/view.h"
#include "front/rest/sql/ast.h"
#include "partition/definition.h"

/* query: on the source, resolved, its parameters bound literally; it is changed, also where it
 * cannot be put so. ERROR_VIEW_UNFIT: it cannot; the message says why, for people. */
NODISCARD bool rest_view_cover(const struct definition_view *view, struct sql_query *query,
                               struct arena *arena, struct error *err);

/* The property of its source that the view has all items by, as a path (/address/city), if it is an
 * index table by one; in the arena. */
NODISCARD bool rest_view_cover_path(const struct definition_view *view,
                                    const struct partition_definition *key, struct arena *arena,
                                    struct slice *ret_path);
