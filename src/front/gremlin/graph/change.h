/* Changes of stored documents: what a vertex or edge becomes with a property more, or less. Nothing
 * is read or written here; the result is in the arena. */
#pragma once

#include "base/random.h"
#include "front/gremlin/graph/condition.h"
#include "front/gremlin/graph/graph.h"

struct gremlin_change {
    struct gremlin_names names; /* of the container */
    struct random *ids;         /* of new properties */
    struct arena *arena;
};

/* ERROR_BAD_REQUEST: the name cannot be a property's, or the value cannot be stored; or it is the
 * partition key and another value than it has. */
NODISCARD bool gremlin_change_assign(const struct gremlin_change *change, struct slice document,
                                     bool edge, const struct gremlin_assignment *assignment,
                                     struct slice *ret_document, struct error *err);

/* Without the value of this id of a vertex's property; without a property of an edge (id empty).
 * The partition key is refused. */
NODISCARD bool gremlin_change_remove(const struct gremlin_change *change, struct slice document,
                                     struct slice key, struct slice id, struct slice *ret_document,
                                     struct error *err);

/* A meta-property of a vertex's property set, or removed (value NULL). */
NODISCARD bool gremlin_change_meta(const struct gremlin_change *change, struct slice document,
                                   struct slice key, struct slice id, struct slice meta_key,
                                   const struct gremlin_value *value, struct slice *ret_document,
                                   struct error *err);

/* May a property have the name? ERROR_BAD_REQUEST. */
NODISCARD bool gremlin_change_name(struct slice name, struct error *err);

/* An id for an element or property that is given none. */
struct slice gremlin_change_id(struct random *ids, char text[RANDOM_UUID_SIZE]);
