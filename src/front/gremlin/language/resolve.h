/* Resolve: what the names of a script mean, and the values and traversals they make.
 *
 * A bare word is, in this order: a word of an enumeration that the step takes in this place; a
 * binding or a variable; a strategy; a word of any other enumeration. What is called is a
 * predicate, a maker of a value (datetime, UUID, Vertex), or a step, and then the chain is a nested
 * traversal. */
#pragma once

#include "front/gremlin/language/script.h"
#include "front/gremlin/language/syntax.h"

struct gremlin_resolver {
    struct gremlin_script_request request;
    const struct gremlin_value *variables;         /* as they are now; NULL or a null value: none */
    const struct gremlin_syntax_statement *before; /* statements before this one */
    size_t before_count;
    size_t operators; /* steps made so far */
    bool late;        /* out: a variable of a statement before was used that has no value yet */
};

/* The statement of a tree; its traversal or value is a reference of the caller's. */
NODISCARD bool gremlin_resolve_statement(struct gremlin_resolver *resolver,
                                         const struct gremlin_syntax_statement *syntax,
                                         struct gremlin_statement *ret_statement,
                                         struct error *err);
