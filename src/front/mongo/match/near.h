/* Near: documents by how far a figure of theirs is from a point, as $near, $nearSphere and the
 * stage $geoNear ask for them.
 *
 * Of a document with several figures at the path the nearest counts. A distance is in metres on the
 * Earth where the point is GeoJSON, in radians where it is a pair of numbers, and in the unit of
 * the numbers in a plane. */
#pragma once

#include "document/path.h"
#include "front/mongo/error.h"
#include "index/definition.h"
#include "query/expression/subquery.h"

struct mongo_near; /* immutable, in the arena of its build */

/* What is asked for. */
struct mongo_near_terms {
    struct slice key;               /* the path, dotted */
    struct document_value point;    /* GeoJSON, or a pair of numbers */
    struct document_value min, max; /* undefined: none */
    bool geometry;                  /* the point is GeoJSON: the Earth, in metres */
    bool sphere;                    /* of a pair: the Earth, in radians; else a plane */
};

/* Copies what it needs. MONGO_BAD_VALUE: no point, no distance. */
NODISCARD bool mongo_near_new(const struct mongo_near_terms *terms, struct arena *arena,
                              const struct mongo_near **ret_near, struct error *err);

/* Is it GeoJSON, rather than a pair? */
bool mongo_near_is_geometry(const struct document_value *point);

/* Its path, dotted; and whether distances are those of a plane. */
struct slice mongo_near_key(const struct mongo_near *near);
bool mongo_near_is_plane(const struct mongo_near *near);

/* Can an index of cells serve it? MongoDB asks for such an index, wherever it is. */
bool mongo_near_takes(const struct mongo_near *near, const struct index_definition *index);

/* Of the document in a slot: is it as near as asked; how far is it, times a factor; what of it is
 * so near. Undefined where there is no figure. */
const struct query_expression *mongo_near_filter(const struct mongo_near *near, uint32_t slot,
                                                 struct query_build *build);
const struct query_expression *mongo_near_distance(const struct mongo_near *near, uint32_t slot,
                                                   double factor, struct query_build *build);
const struct query_expression *mongo_near_location(const struct mongo_near *near, uint32_t slot,
                                                   struct query_build *build);

/* By distance, the nearest first; in the build's arena. */
const struct query_order *mongo_near_order(const struct mongo_near *near, uint32_t slot,
                                           struct query_build *build);

/* For filters: does the document hold, and what is implied? */
NODISCARD bool mongo_near_holds(const struct mongo_near *near,
                                const struct document_value *document,
                                struct query_context *context, bool *ret_holds, struct error *err);
const struct query_implied *mongo_near_imply(const struct mongo_near *near,
                                             const struct query_implying *implying);
