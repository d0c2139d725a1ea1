/* Traversal: steps with their arguments, as bytecode has them; what a script is parsed to and what
 * bytecode is read as, so that everything behind knows one form.
 *
 * A step is its name and values; modulators (by, with, from, to, as, option, times, emit, until)
 * are steps of their own here, as in bytecode, and are taken by the step before them when the
 * traversal is compiled. Words that a script leaves bare (by(id), order().by(desc)) are enum values
 * already; bindings are replaced by their values. Immutable. */
#pragma once

#include "front/gremlin/value/value.h"

struct gremlin_instruction {
    struct slice name; /* "out"; in the traversal's own memory */
    const struct gremlin_value *arguments;
    size_t count;
    uint32_t line, column; /* of a script, from 1; 0: bytecode */
};

/* What a script does with its last traversal; bytecode always lists. */
enum gremlin_terminal {
    GREMLIN_TO_LIST,
    GREMLIN_NEXT,     /* count: how many; 1 if not said */
    GREMLIN_TO_SET,
    GREMLIN_TO_BULK_SET,
    GREMLIN_ITERATE,
    GREMLIN_HAS_NEXT,
    GREMLIN_TRY_NEXT,
    GREMLIN_EXPLAIN,
};

struct gremlin_traversal {
    struct gremlin_object object; /* GREMLIN_TRAVERSAL */
    bool spawned; /* begins at g: sources may be there */
    const struct gremlin_instruction *sources; /* withSideEffect, withSack, withStrategies, ... */
    size_t source_count;
    const struct gremlin_instruction *steps;
    size_t step_count;
    enum gremlin_terminal terminal;
    uint64_t amount; /* of GREMLIN_NEXT */
};
