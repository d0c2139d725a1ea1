/* Shape: what $project, $addFields and $unset make of a document.
 *
 * A tree of names as in projections of find, but fields are computed in place: those that exist
 * keep their place, those that do not come behind, and a path that leads through an array is
 * computed for each of its elements. */
#pragma once

#include "front/mongo/expression/expression.h"

/* The document of the options' slot, as an expression. What is needed of specification is copied.
 * name: of the stage, for messages. */
NODISCARD bool mongo_shape_project(struct slice specification, const char *name,
                                   const struct mongo_expression_options *options,
                                   struct query_build *build,
                                   const struct query_expression **ret_document, struct error *err);
NODISCARD bool mongo_shape_add(struct slice specification, const char *name,
                               const struct mongo_expression_options *options,
                               struct query_build *build,
                               const struct query_expression **ret_document, struct error *err);
/* One path or an array of them. */
NODISCARD bool mongo_shape_unset(const struct document_value *paths,
                                 const struct mongo_expression_options *options,
                                 struct query_build *build,
                                 const struct query_expression **ret_document, struct error *err);

/* The document of a slot with the value of an expression at a path, for stages that set one field;
 * undefined: it is taken away. */
NODISCARD bool mongo_shape_set(struct slice path, const struct query_expression *value,
                               uint32_t slot, struct query_build *build,
                               const struct query_expression **ret_document, struct error *err);

/* Several at once: values[i] at paths[i]. */
NODISCARD bool mongo_shape_set_all(const struct slice *paths,
                                   const struct query_expression *const *values, size_t count,
                                   uint32_t slot, struct query_build *build,
                                   const struct query_expression **ret_document, struct error *err);
