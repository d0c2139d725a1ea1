/* Projection: which part of a document `find` shows.
 *
 * A projection includes fields or excludes them, cuts arrays ($slice), shows the first element that
 * matches ($elemMatch, or `a.$` for the one the filter found), and computes fields, the last
 * through the interface that $expr has (match.h). Dotted paths lead through arrays, into each
 * element.
 *
 * Errors are those of front/mongo/error.h, with MongoDB's codes and words. */
#pragma once

#include "front/mongo/match/match.h"

struct mongo_projection; /* immutable, in the arena of its build */

/* options says how expressions are compiled and which variable documents are in; match is the
 * filter of the query, for `$`, or NULL. What is needed of projection is copied. */
NODISCARD bool mongo_projection_compile(struct slice projection,
                                        const struct mongo_match_options *options,
                                        const struct mongo_match *match, struct query_build *build,
                                        const struct mongo_projection **ret_projection,
                                        struct error *err);

/* Does it show documents whole? */
bool mongo_projection_is_whole(const struct mongo_projection *projection);

/* What is shown of the document, in the context's arena. Computed fields look at its slots. */
NODISCARD bool mongo_projection_apply(const struct mongo_projection *projection,
                                      const struct document_value *document,
                                      struct query_context *context,
                                      struct document_value *ret_value, struct error *err);

/* The same for the row of a plan. */
const struct query_expression *
mongo_projection_expression(const struct mongo_projection *projection, struct query_build *build);
