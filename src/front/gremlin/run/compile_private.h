/* Compiling: instructions become raw steps, each with its modulators, and these become steps.
 *
 * A row of steps.def says what a step is called, how many arguments it takes, which modulators may
 * follow it and what compiles it. That function appends one or more steps to the part being made;
 * the labels of as() go to the last of them. */
#pragma once

#include "front/gremlin/run/run_private.h"
#include "front/gremlin/value/traversal.h"

enum gremlin_takes {
    TAKES_NOTHING = 0,
    TAKES_BY = 1 << 0,
    TAKES_WITH = 1 << 1,
    TAKES_ENDS = 1 << 2, /* from(), to() */
    TAKES_OPTIONS = 1 << 3,
    TAKES_REPEAT = 1 << 4, /* times(), until(), emit() */
};

struct gremlin_compiler;
struct gremlin_raw;

struct gremlin_step_row {
    const char *name;
    size_t name_len;
    bool (*compile)(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err);
    uint32_t min, max; /* arguments */
    uint32_t takes;
};

/* A step with what modulates it. */
struct gremlin_raw {
    const struct gremlin_step_row *row;
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

struct gremlin_loop_scope {
    const struct gremlin_loop_scope *outer;
    struct slice name;
    unsigned depth;
};

struct gremlin_compiler {
    struct gremlin_run *run;
    const struct gremlin_compiler *outer; /* NULL: the root */
    struct gremlin_part *part;
    struct gremlin_raw *raws;
    size_t count, index; /* index: the one being compiled */
    const struct gremlin_loop_scope *loops;
    bool test;  /* only whether anything comes out counts */
    bool plain; /* of a strategy's own traversal: strategies do not apply to it */
    bool where; /* labels at its ends name objects that are known, and do not give names */
    unsigned depth;
};

/* Ways to compile a child. */
struct gremlin_part_options {
    const struct gremlin_loop_scope *loops; /* NULL: those of the compiler */
    bool test;
    bool plain;
    bool where;
    bool pattern; /* of match(): labels at its ends are variables */
};

/* Compiles a child of the part. */
bool gremlin_compile_part(const struct gremlin_compiler *compiler,
                          const struct gremlin_traversal *traversal,
                          struct gremlin_part_options options, struct gremlin_part **ret_part,
                          struct error *err);
/* The same of an argument that is a traversal; of a predicate, is(predicate); of other values,
 * constant(value), where `constants`. */
bool gremlin_compile_argument(const struct gremlin_compiler *compiler,
                              struct gremlin_value argument, struct gremlin_part_options options,
                              struct gremlin_part **ret_part, struct error *err);

/* Appends a step of the kind; size: of the struct that begins with struct gremlin_step. */
void *gremlin_step_add(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                       const struct gremlin_step_kind *kind, size_t size);
#define STEP_ADD(compiler, raw, kind, type)                                                        \
    ((type *)gremlin_step_add(compiler, raw, kind, sizeof(type)))
/* Gives a step a child. */
void gremlin_step_own(struct gremlin_compiler *compiler, struct gremlin_step *step,
                      struct gremlin_part *part);
/* A child of the step of an argument, owned. */
bool gremlin_step_child(struct gremlin_compiler *compiler, struct gremlin_step *step,
                        struct gremlin_value argument, struct gremlin_part_options options,
                        struct gremlin_part **ret_part, struct error *err);
/* Compiles the by()s of a raw step for the step. */
bool gremlin_step_bys(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                      struct gremlin_step *step, struct error *err);
bool gremlin_compile_by(struct gremlin_compiler *compiler, const struct gremlin_instruction *in,
                        struct gremlin_by *ret_by, struct error *err);

/* --- Arguments ------------------------------------------------------------------------------- */

bool gremlin_argument_is_traversal(struct gremlin_value value);
static inline const struct gremlin_traversal *gremlin_argument_traversal(struct gremlin_value value)
{
    return (const struct gremlin_traversal *)value.object;
}
/* "step(): argument n must be a string". */
bool gremlin_argument_text(const struct gremlin_raw *raw, size_t index, struct slice *ret_text,
                           struct error *err);
/* A side effect or step label as text in the arena. */
bool gremlin_argument_texts(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                            size_t from, const struct slice **ret_texts, size_t *ret_count,
                            struct error *err);
bool gremlin_argument_whole(const struct gremlin_raw *raw, size_t index, int64_t *ret_number,
                            struct error *err);
/* Is the first argument a Scope? Then *ret_from is 1. */
bool gremlin_argument_local(const struct gremlin_raw *raw, size_t *ret_from);
bool gremlin_argument_wrong(const struct gremlin_raw *raw, size_t index, const char *what,
                            struct error *err);
static inline bool gremlin_argument_is_family(struct gremlin_value value,
                                              enum gremlin_enum_family family)
{
    return value.type == GREMLIN_ENUM && value.word.family == family;
}
struct slice slice_keep(struct gremlin_compiler *compiler, struct slice text);

/* Begins at, or must end at, what a label stands for. */
void gremlin_add_where_end(struct gremlin_compiler *compiler, struct slice label, bool begins);

/* --- Steps that other files add ----------------------------------------------------------------
 */

extern const struct gremlin_step_kind step_start, step_identity;
/* A filter by a child. */
bool gremlin_add_filter(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                        struct gremlin_part *part, bool negate);
bool gremlin_add_is(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                    struct gremlin_value operand, struct error *err);
/* A predicate that can be tested at all. */
bool gremlin_operand_check(struct gremlin_compiler *compiler, struct gremlin_value operand,
                           struct error *err);
bool gremlin_add_constant(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                          struct gremlin_value value);
/* What SubgraphStrategy and PartitionStrategy ask of elements that the last step gives. */
bool gremlin_add_strategy_filter(struct gremlin_compiler *compiler, enum gremlin_element_kind kind,
                                 struct error *err);
/* has() and its kin as conditions of the graph; false: not by the graph. */
struct gremlin_conditions {
    struct gremlin_condition *items;
    size_t count, capacity;
};
/* Takes the filters that follow the present raw step as conditions, and their labels. */
bool gremlin_fold_conditions(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                             struct gremlin_conditions *conditions, struct error *err);
void gremlin_conditions_add(struct gremlin_compiler *compiler,
                            struct gremlin_conditions *conditions,
                            struct gremlin_condition condition);

/* Is the raw step behind the present one so called, and bare (no labels before it)? */
const struct gremlin_raw *gremlin_raw_next(const struct gremlin_compiler *compiler);
bool gremlin_raw_is(const struct gremlin_raw *raw, const char *name);
/* Are the elements that come next only gone through, or counted? */
bool gremlin_heads_suffice(const struct gremlin_compiler *compiler);

#define STEP_ROW(name, compile, min, max, takes)                                                   \
    bool compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err);
#include "front/gremlin/run/steps.def"
#undef STEP_ROW

/* strategies.c */
bool gremlin_strategy_conditions(struct gremlin_compiler *compiler,
                                 struct gremlin_conditions *conditions);
struct gremlin_settings;
/* What PartitionStrategy adds to a new element. */
bool gremlin_add_strategy_settings(struct gremlin_compiler *compiler,
                                   struct gremlin_settings *settings, struct error *err);
bool gremlin_compile_sources(struct gremlin_compiler *compiler,
                             const struct gremlin_traversal *traversal, struct error *err);
