/* What the files of resolve share: resolve.c has statements, traversals and steps, expression.c
 * values and words, make.c what is made by a name (predicates, strategies, dates, ...). */
#pragma once

#include "front/gremlin/language/lexer.h"
#include "front/gremlin/language/resolve.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/special.h"

/* Where a value stands. */
struct gremlin_place {
    uint32_t families; /* bits of the enumerations that are taken bare */
    bool merge; /* of mergeV, mergeE or option: bare keys of maps are T and Direction where they can
                 */
};

#define GREMLIN_PLACE_ANY ((struct gremlin_place){0, false})

/* A row of steps.def. */
struct gremlin_step_row {
    struct slice name;
    uint32_t first, second, rest;
};
const struct gremlin_step_row *gremlin_step_find(struct slice name); /* NULL: none */

/* Each gives the caller a reference. */
NODISCARD bool gremlin_resolve_value(struct gremlin_resolver *resolver,
                                     const struct gremlin_node *node, struct gremlin_place place,
                                     struct gremlin_value *ret_value, struct error *err);
/* The arguments of a link as values in a list. */
NODISCARD bool gremlin_resolve_arguments(struct gremlin_resolver *resolver,
                                         const struct gremlin_link *link,
                                         struct gremlin_place place, struct gremlin_value *ret_list,
                                         struct error *err);
/* A nested traversal of links[from] and those after it. */
NODISCARD bool gremlin_resolve_nested(struct gremlin_resolver *resolver,
                                      const struct gremlin_node *node, size_t from,
                                      struct gremlin_value *ret_value, struct error *err);

/* Is the node a predicate, going by its names? */
bool gremlin_node_is_predicate(struct gremlin_resolver *resolver, const struct gremlin_node *node);
bool gremlin_name_is_predicate(struct slice name);
bool gremlin_name_is_strategy(struct slice name);
/* links[at] names the predicate, those after it go on with and(), or(), negate(). */
NODISCARD bool gremlin_make_predicate(struct gremlin_resolver *resolver,
                                      const struct gremlin_node *node, size_t at,
                                      struct gremlin_value *ret_value, struct error *err);
/* links[at] names the strategy: alone, called with its settings, or .build()...create(). */
NODISCARD bool gremlin_make_strategy(struct gremlin_resolver *resolver,
                                     const struct gremlin_node *node, size_t at,
                                     struct gremlin_value *ret_value, struct error *err);
/* Values that functions and constructors make. *ret_made false, true returned: there is no such. */
NODISCARD bool gremlin_make_value(struct gremlin_resolver *resolver,
                                  const struct gremlin_node *node, size_t at, bool *ret_made,
                                  struct gremlin_value *ret_value, struct error *err);
/* Constants of classes: WithOptions.tokens, IO.reader, Integer.MAX_VALUE. */
NODISCARD bool gremlin_constant_find(struct gremlin_heap *heap, struct slice type,
                                     struct slice name, struct gremlin_value *ret_value);

/* "Unable to find any method 'x' @ ..."; returns false. */
bool gremlin_method_missing(const struct gremlin_link *link, struct error *err);
/* The first of a binding and a variable of the name; NULL: neither. */
const struct gremlin_value *gremlin_variable_find(const struct gremlin_resolver *resolver,
                                                  struct slice name);
