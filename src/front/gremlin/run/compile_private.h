/* Compiling: instructions become raw steps, each with its modulators, and these become steps.
 *
 * A row of steps.def says what a step is called, how many arguments it takes, which modulators may
 * follow it and what compiles it. That function appends one or more steps to the part being made;
 * the labels of as() go to the last of them. */
#pragma once

#include "front/gremlin/run/run_private.h"
#include "front/gremlin/value/traversal.h"

enum takes {
    TAKES_NOTHING = 0,
    TAKES_BY = 1 << 0,
    TAKES_WITH = 1 << 1,
    TAKES_ENDS = 1 << 2, /* from(), to() */
    TAKES_OPTIONS = 1 << 3,
    TAKES_REPEAT = 1 << 4, /* times(), until(), emit() */
};

struct compiler;
struct raw;

struct step_row {
    const char *name;
    bool (*compile)(struct compiler *compiler, struct raw *raw, struct error *err);
    uint32_t min, max; /* arguments */
    uint32_t takes;
};

/* A step with what modulates it. */
struct raw {
    const struct step_row *row;
    const struct gremlin_instruction *in;
    const struct gremlin_value *arguments; /* of the instruction */
    size_t count;
    struct gremlin_value labels; /* a set; null: none */
    const struct gremlin_instruction **by, **with, **options;
    size_t by_count, with_count, option_count;
    const struct gremlin_instruction *from, *to;
    const struct gremlin_instruction *times, *until, *emit;
    bool until_first, emit_first;
    bool by_taken; /* the step has compiled them itself */
};

struct loop_scope {
    const struct loop_scope *outer;
    struct slice name;
    unsigned depth;
};

struct compiler {
    struct run *run;
    const struct compiler *outer; /* NULL: the root */
    struct part *part;
    struct raw *raws;
    size_t count, index; /* index: the one being compiled */
    const struct loop_scope *loops;
    bool test;  /* only whether anything comes out counts */
    bool plain; /* of a strategy's own traversal: strategies do not apply to it */
    bool where; /* labels at its ends name objects that are known, and do not give names */
    unsigned depth;
};

/* Ways to compile a child. */
struct part_options {
    const struct loop_scope *loops; /* NULL: those of the compiler */
    bool test;
    bool plain;
    bool where;
    bool pattern; /* of match(): labels at its ends are variables */
};

/* Compiles a child of the part. */
bool compile_part(const struct compiler *compiler, const struct gremlin_traversal *traversal,
                  struct part_options options, struct part **ret_part, struct error *err);
/* The same of an argument that is a traversal; of a predicate, is(predicate); of other values,
 * constant(value), where `constants`. */
bool compile_argument(const struct compiler *compiler, struct gremlin_value argument,
                      struct part_options options, struct part **ret_part, struct error *err);

/* Appends a step of the kind; size: of the struct that begins with struct step. */
void *step_add(struct compiler *compiler, const struct raw *raw, const struct step_kind *kind,
               size_t size);
#define STEP_ADD(compiler, raw, kind, type) ((type *)step_add(compiler, raw, kind, sizeof(type)))
/* Gives a step a child. */
void step_own(struct compiler *compiler, struct step *step, struct part *part);
/* A child of the step of an argument, owned. */
bool step_child(struct compiler *compiler, struct step *step, struct gremlin_value argument,
                struct part_options options, struct part **ret_part, struct error *err);
/* Compiles the by()s of a raw step for the step. */
bool step_bys(struct compiler *compiler, struct raw *raw, struct step *step, struct error *err);
bool compile_by(struct compiler *compiler, const struct gremlin_instruction *in, struct by *ret_by,
                struct error *err);

/* --- Arguments ------------------------------------------------------------------------------- */

bool argument_is_traversal(struct gremlin_value value);
static inline const struct gremlin_traversal *argument_traversal(struct gremlin_value value)
{
    return (const struct gremlin_traversal *)value.object;
}
/* "step(): argument n must be a string". */
bool argument_text(const struct raw *raw, size_t index, struct slice *ret_text, struct error *err);
/* A side effect or step label as text in the arena. */
bool argument_texts(struct compiler *compiler, const struct raw *raw, size_t from,
                    const struct slice **ret_texts, size_t *ret_count, struct error *err);
bool argument_whole(const struct raw *raw, size_t index, int64_t *ret_number, struct error *err);
/* Is the first argument a Scope? Then *ret_from is 1. */
bool argument_local(const struct raw *raw, size_t *ret_from);
bool argument_wrong(const struct raw *raw, size_t index, const char *what, struct error *err);
static inline bool argument_is_family(struct gremlin_value value, enum gremlin_enum_family family)
{
    return value.type == GREMLIN_ENUM && value.word.family == family;
}
struct slice slice_keep(struct compiler *compiler, struct slice text);

/* Begins at, or must end at, what a label stands for. */
void add_where_end(struct compiler *compiler, struct slice label, bool begins);

/* --- Steps that other files add ---------------------------------------------------------------- */

extern const struct step_kind step_start, step_identity;
/* A filter by a child. */
bool add_filter(struct compiler *compiler, const struct raw *raw, struct part *part, bool negate);
bool add_is(struct compiler *compiler, const struct raw *raw, struct gremlin_value operand,
            struct error *err);
/* A predicate that can be tested at all. */
bool operand_check(struct compiler *compiler, struct gremlin_value operand, struct error *err);
bool add_constant(struct compiler *compiler, const struct raw *raw, struct gremlin_value value);
/* What SubgraphStrategy and PartitionStrategy ask of elements that the last step gives. */
bool add_strategy_filter(struct compiler *compiler, enum gremlin_element_kind kind,
                         struct error *err);
/* has() and its kin as conditions of the graph; false: not by the graph. */
struct conditions {
    struct gremlin_condition *items;
    size_t count, capacity;
};
/* Takes the filters that follow the present raw step as conditions, and their labels. */
bool fold_conditions(struct compiler *compiler, struct raw *raw, struct conditions *conditions,
                     struct error *err);
void conditions_add(struct compiler *compiler, struct conditions *conditions,
                    struct gremlin_condition condition);

/* Is the raw step behind the present one so called, and bare (no labels before it)? */
const struct raw *raw_next(const struct compiler *compiler);
bool raw_is(const struct raw *raw, const char *name);
/* Are the elements that come next only gone through, or counted? */
bool heads_suffice(const struct compiler *compiler);

#define STEP_ROW(name, compile, min, max, takes)                                                   \
    bool compile(struct compiler *compiler, struct raw *raw, struct error *err);
#include "front/gremlin/run/steps.def"
#undef STEP_ROW

/* strategies.c */
bool strategy_conditions(struct compiler *compiler, struct conditions *conditions);
struct settings;
/* What PartitionStrategy adds to a new element. */
bool add_strategy_settings(struct compiler *compiler, struct settings *settings, struct error *err);
bool compile_sources(struct compiler *compiler, const struct gremlin_traversal *traversal,
                     struct error *err);
