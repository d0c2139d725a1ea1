/* Target: the container that a request means, which is the graph. */
#pragma once

#include "front/gremlin/command/arguments.h"
#include "front/gremlin/command/identity.h"

/* Where a plain g leads whoever has named no graph: made on first use. */
#define GREMLIN_DEFAULT_DATABASE "gremlin"
#define GREMLIN_DEFAULT_GRAPH "g"

struct gremlin_target {
    struct slice database, graph; /* names */
    bool made;                    /* it is made if there is none, */
    bool indexes;                 /* with indexes of its edges */
};

/* Which one the alias means to whom. Whoever has shown a key has named its graph by that; whoever
 * need not names it by the alias, as "D.G", g alone being the default graph. Borrowed.
 * ERROR_BAD_REQUEST: the alias names no graph that is served here (499). */
NODISCARD bool gremlin_target_find(const struct gremlin_identity *identity,
                                   const struct gremlin_asked *asked,
                                   struct gremlin_target *ret_target, struct error *err);

/* What is told of a request that is over: what it asked of which graph, and as whom. */
void gremlin_target_describe(const struct gremlin_identity *identity,
                             const struct gremlin_asked *asked, struct observed_request *request);

/* Opens it, and makes it first where it is to be; blocks. The caller owns one reference.
 * ERROR_OWNER_NOT_FOUND: there is no such database or graph. */
NODISCARD bool gremlin_target_open(struct front_call *call, const struct gremlin_target *target,
                                   struct container **ret_container, struct error *err);
