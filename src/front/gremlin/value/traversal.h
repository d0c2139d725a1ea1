/* Traversal: steps with their arguments, as bytecode has them; what a script is parsed to and what
 * bytecode is read as, so that everything behind knows one form.
 *
 * A step is its name and values; modulators (by, with, from, to, as, option, times, emit, until)
 * are steps of their own here, as in bytecode, and are taken by the step before them when the
 * traversal is compiled. Words that a script leaves bare (by(id), order().by(desc)) are enum values
 * already; bindings are replaced by their values. Immutable once built. */
#pragma once

#include "front/gremlin/value/value.h"

struct gremlin_instruction {
    struct slice name; /* "out"; in the traversal's own memory */
    struct gremlin_value *arguments;
    uint32_t count, capacity;
    uint32_t line, column; /* of a script, from 1; 0: bytecode */
};

struct gremlin_instructions {
    struct gremlin_instruction *items;
    uint32_t count, capacity;
};

/* What a script does with its last traversal; bytecode always lists. */
enum gremlin_terminal {
    GREMLIN_TO_LIST,
    GREMLIN_NEXT, /* amount: how many; 1 if not said */
    GREMLIN_TO_SET,
    GREMLIN_TO_BULK_SET,
    GREMLIN_ITERATE,
    GREMLIN_HAS_NEXT,
    GREMLIN_TRY_NEXT,
    GREMLIN_EXPLAIN,
};

struct gremlin_traversal {
    struct gremlin_object object;        /* GREMLIN_TRAVERSAL */
    bool spawned;                        /* begins at g: sources may be there */
    struct gremlin_instructions sources; /* withSideEffect, withSack, withStrategies, ... */
    struct gremlin_instructions steps;
    enum gremlin_terminal terminal;
    uint64_t amount; /* of GREMLIN_NEXT */
};

struct gremlin_value gremlin_traversal_new(struct gremlin_heap *heap, bool spawned);

static inline struct gremlin_traversal *gremlin_traversal(struct gremlin_value value)
{
    return (struct gremlin_traversal *)value.object;
}

/* Adds an instruction; arguments follow one by one. The result is good until the next is added to
 * the same list. `into` is &traversal->steps or &traversal->sources. */
struct gremlin_instruction *gremlin_traversal_add(struct gremlin_traversal *traversal,
                                                  struct gremlin_instructions *into,
                                                  struct slice name);
void gremlin_instruction_add_take(struct gremlin_traversal *traversal,
                                  struct gremlin_instruction *instruction,
                                  struct gremlin_value argument);
