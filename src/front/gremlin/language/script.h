/* Script: Gremlin as text, parsed to statements.
 *
 * A script is one or more statements separated by semicolons. Each is a traversal that begins at
 * its source (g.V()...), or a plain value (a literal, a variable), and may be assigned to a
 * variable: x = g.V('1').next(). Bindings of the request and variables of the session are replaced
 * by their values; nothing that is parsed is ever evaluated: closures, constructors and methods of
 * other languages are refused by name.
 *
 * The whole text is checked when it is opened. A statement that uses a variable which an earlier
 * statement of the same script assigns is given its value when its turn comes
 * (gremlin_script_next), after whoever runs the script has put it among the variables:
 *
 *     gremlin_script_open(&request, &script, err)
 *     while (gremlin_script_next(script, variables, &statement, err) && statement.present)
 *         run it; if statement.name is there, put the value into variables
 *
 * Of an assigned traversal without a terminal the caller keeps the list of its results. The result
 * of a script is that of its last statement. */
#pragma once

#include "front/gremlin/value/traversal.h"

struct gremlin_syntax;

struct gremlin_script_limits {
    size_t bytes_max;     /* of the text; 65,536 by the service's own limit */
    size_t depth_max;     /* traversals, lists and brackets inside one another */
    size_t operators_max; /* steps of the whole script, nested ones too; the service has 400 */
};

#define GREMLIN_SCRIPT_LIMITS ((struct gremlin_script_limits){65536, 64, 400})

struct gremlin_script_request {
    struct slice text;
    const struct gremlin_syntax
        *syntax;         /* the text parsed (gremlin_script_parse); NULL: it is not */
    struct slice source; /* the name traversals begin with; "g" if absent */
    struct gremlin_script_limits limits;
    struct gremlin_heap *heap;             /* where the values are made */
    const struct gremlin_value *bindings;  /* a map by name; NULL or a null value: none */
    const struct gremlin_value *variables; /* of the session, likewise; bindings come first */
    int64_t now_ms;                        /* for datetime() and new Date() */
    bool offset_dates; /* datetime() keeps its offset, as in 3.8; else it is a date, as in 3.7 */
};

struct gremlin_statement {
    bool present;                              /* false: there is no further statement */
    struct slice name;                         /* what the result is assigned to; absent: nothing */
    const struct gremlin_traversal *traversal; /* NULL: value is the result */
    struct gremlin_value value;
    bool terminated; /* the script says how to end the traversal: next(), iterate(), ... */
};

/* Parses a text, which is copied, to what lives in the arena and never changes: scripts of the same
 * text are opened from it with whatever bindings they have. Errors as of gremlin_script_open. */
NODISCARD bool gremlin_script_parse(struct slice text, const struct gremlin_script_limits *limits,
                                    struct arena *arena, const struct gremlin_syntax **ret_syntax,
                                    struct error *err);

struct gremlin_script; /* opaque, owned by its maker; holds on to the heap */

/* GREMLIN_SCRIPT (597 to clients): the text is no script, or names a step or variable that does not
 * exist; the message says where: "... @ line 1, column 5." GREMLIN_SCRIPT_LIMIT: it is over a
 * limit. The text or its syntax, bindings and variables of the request are borrowed until the
 * script is freed. */
NODISCARD bool gremlin_script_open(const struct gremlin_script_request *request,
                                   struct gremlin_script **ret_script, struct error *err);
void gremlin_script_free(struct gremlin_script *script); /* NULL is fine */
CLEANUP_FN(struct gremlin_script *, gremlin_script_free)

/* The next statement, borrowed until the script is freed. variables as in the request, with what
 * statements before this one have assigned; NULL: none. */
NODISCARD bool gremlin_script_next(struct gremlin_script *script,
                                   const struct gremlin_value *variables,
                                   struct gremlin_statement *ret_statement, struct error *err);

size_t gremlin_script_count(const struct gremlin_script *script); /* statements in all */
