/* The query of a view: which items it has, and what each of them says.
 *
 * In the forms of the service it is `SELECT c.a, c.b FROM c` or `SELECT * FROM c`: whole properties
 * under their own names, and nothing else. In orrery.view expressions, names for them (AS) and a
 * filter (WHERE) come besides. What depends on anything but the item (time, chance, other items,
 * user-defined functions, parameters, system properties) is refused: an item of the view is made
 * again only when its source has changed.
 *
 * With GROUP BY, in orrery.view, a row is made of all items of a group: each item has a share in
 * one group, which is what the aggregates are given of it. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "definition/view.h"
#include "front/rest/views/tally.h"
#include "item/contribution.h"

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

/* With GROUP BY. */
bool rest_view_query_is_grouped(const struct rest_view_query *query);

/* The aggregates of a query with GROUP BY; owned by it. */
const struct query_aggregate_call *rest_view_query_aggregates(const struct rest_view_query *query,
                                                              size_t *ret_count);

/* Does the partition key of its rows stay the same, whatever their aggregates are?
 * ERROR_VIEW_UNFIT. */
NODISCARD bool rest_view_query_key_check(const struct rest_view_query *query,
                                         const struct partition_definition *key, struct error *err);

/* The same of one path of a key, as text. */
NODISCARD bool rest_view_query_path_check(const struct rest_view_query *query, struct slice path,
                                          struct error *err);

/* Can rows have something at this path of a key? Of rows that are not of groups it is not known
 * here: they can. */
bool rest_view_query_has_path(const struct rest_view_query *query, struct slice path);

/* What an item has to do with a query with GROUP BY; in the arena. */
struct rest_view_share {
    bool in;                                 /* else the filter leaves it out */
    struct slice keys;                       /* values of its group, an array */
    uint8_t digest[CONTRIBUTION_DIGEST_LEN]; /* of them */
    struct slice arguments;                  /* of the aggregates, an array */
};
NODISCARD bool rest_view_query_share(const struct rest_view_query *query, struct slice document,
                                     struct arena *arena, struct rest_view_share *ret_share,
                                     struct error *err);

enum { REST_VIEW_GROUP_ID_LEN = 2 * CONTRIBUTION_DIGEST_LEN };

/* The row of a group, under an id that follows from its digest; in the arena. tally NULL: without
 * its aggregates, which is enough for its partition key. data NULL: the query makes none. */
NODISCARD bool rest_view_query_group_row(const struct rest_view_query *query, struct slice keys,
                                         const uint8_t *digest, struct rest_view_tally *tally,
                                         struct arena *arena, struct slice *ret_row,
                                         struct error *err);
