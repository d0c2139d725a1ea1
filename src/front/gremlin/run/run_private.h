/* Run, from within: traversers, their trails, steps and the parts they stand in.
 *
 * A part is a traversal as steps: the root, or a child that a step owns. Its first step is its
 * start, a queue; each other step pulls batches from the one before. A local child is reset for
 * every traverser it is asked about; a global child sees the whole stream. Steps hold their own
 * state: a plan is made for one run. */
#pragma once

#include "base/arena.h"
#include "front/gremlin/run/run.h"
#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/predicate.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"

/* --- Traversers ------------------------------------------------------------------------------ */

enum { LOOPS_DEPTH_MAX = 8, PULL_ALL = 1024, TEXT_MAX = 16 * 1024 * 1024 };

struct gremlin_walker {
    struct gremlin_value value; /* a reference, as all here */
    struct gremlin_value sack;  /* GREMLIN_NULL where none is asked for */
    struct gremlin_path *trail; /* the path so far, or what of it is named; NULL: nothing */
    uint64_t bulk;
    uint32_t loops[LOOPS_DEPTH_MAX]; /* completed iterations, of the outermost repeat first */
    bool on_trail;                   /* the last object of the trail is value */
};

/* Traversers in their order, on the heap of the run. */
struct gremlin_walkers {
    struct gremlin_walker *items; /* owned */
    size_t count, capacity;
};

enum gremlin_trail_mode { TRAIL_NONE, TRAIL_LABELS, TRAIL_FULL };

/* --- Steps ----------------------------------------------------------------------------------- */

struct gremlin_run;
struct gremlin_step;
struct gremlin_part;

enum gremlin_step_flags {
    STEP_BARRIER = 1 << 0,      /* sees its whole input before it gives anything */
    STEP_STATEFUL = 1 << 1,     /* remembers earlier traversers: dedup, limit */
    STEP_WRITES = 1 << 2,       /* changes the graph */
    STEP_SIDE_EFFECT = 1 << 3,  /* changes a side effect */
    STEP_NEEDS_PATH = 1 << 4,   /* all objects of the path */
    STEP_NEEDS_LABELS = 1 << 5, /* those that as() has named */
    STEP_ORDER_FREE = 1 << 6,   /* the order of its input does not show: count, group, ... */
    STEP_CHANCE = 1 << 7,       /* coin, sample */
    STEP_HEADS = 1 << 8,        /* looks at no properties of its input */
    STEP_SEES = 1 << 9,         /* lets elements through without looking at properties */
    STEP_FILTERS = 1 << 10,     /* the object stays what it is */
};

struct gremlin_step_kind {
    const char *name;
    uint32_t flags;
    /* Appends traversers to out, at least one unless there are no more; about `want`. */
    bool (*pull)(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                 struct gremlin_walkers *out, struct error *err);
    /* Or, of steps that look at one traverser at a time: changes it in place, or drops it. */
    bool (*one)(struct gremlin_run *run, struct gremlin_step *step,
                struct gremlin_walker *traverser, bool *ret_keep, struct error *err);
    /* Or makes several of one, which is borrowed. */
    bool (*spread)(struct gremlin_run *run, struct gremlin_step *step,
                   const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                   struct error *err);
    /* Forgets everything, for the next use of a local child; also at the end. */
    void (*reset)(struct gremlin_run *run, struct gremlin_step *step);
    /* A further round of repeat() begins: reducing steps may give once more. */
    void (*rearm)(struct gremlin_run *run, struct gremlin_step *step);
};

enum gremlin_by_kind { BY_IDENTITY, BY_KEY, BY_TOKEN, BY_COLUMN, BY_PART };
enum gremlin_by_order { ORDER_ASC, ORDER_DESC, ORDER_SHUFFLE };

struct gremlin_by {
    enum gremlin_by_kind kind;
    struct slice key;
    struct gremlin_enum word; /* of tokens and columns */
    struct gremlin_part *part;
    enum gremlin_by_order order;
    bool productive; /* null instead of nothing */
};

struct gremlin_step {
    const struct gremlin_step_kind *kind;
    struct gremlin_step *previous; /* NULL: a start */
    struct gremlin_step *next;
    struct gremlin_part *part;   /* it stands in */
    struct gremlin_value labels; /* of as(): a set; null: none */
    struct gremlin_by *by;
    size_t by_count;
    struct gremlin_part **parts; /* children, those of by() apart */
    size_t part_count;
    bool local;  /* its children are asked about one traverser at a time */
    bool eager;  /* it writes: its input is read to the end before the first */
    bool impure; /* a child of it writes or has side effects: bulks are taken apart */
    bool merges; /* its input may be put together where it is alike */

    struct gremlin_walkers pending; /* input, or output, that was not given yet */
    size_t at;                      /* the first of it */
    bool drained;                   /* a barrier has seen its input */
    bool emitted;                   /* a reducing step has given its result */

    const struct gremlin_instruction *instruction; /* for explain and profile */
    uint64_t calls, traversers, elements, ns;      /* of profile */
    struct gremlin_step *all;                      /* list of all steps of the run */
};

/* Gives the start of a part more, about `want`, when its queue is empty; none: there are no more.
 */
struct gremlin_feed {
    bool (*more)(struct gremlin_run *run, struct gremlin_feed *feed, size_t want,
                 struct gremlin_walkers *out, struct error *err);
};

struct gremlin_part {
    struct gremlin_step *start, *end;
    struct gremlin_feed *feed;     /* borrowed; NULL: its queue is all there is */
    struct gremlin_walkers buffer; /* what was pulled and not taken */
    size_t at;
    bool barrier, writes, side_effects, chance, stateful;
    bool ahead_able;          /* the first step is an expansion */
    struct slice first_label; /* of __.as('a')...: where(), match() */
    struct slice last_label;  /* of ...as('b') */
    const struct gremlin_traversal *traversal;
};

/* --- Side effects ---------------------------------------------------------------------------- */

struct gremlin_group_state;
struct gremlin_side_effect {
    struct gremlin_side_effect *next;
    struct slice name;
    struct gremlin_value value; /* what cap() gives, or what it is made of */
    bool seeded;                /* by withSideEffect */
    bool has_operator;
    struct gremlin_enum operator;
    struct gremlin_group_state *group; /* of group(): what was gathered; NULL: it is none */
    bool grouped, treed, subgraphed;   /* what it is while nothing is in it */
};

/* --- A run ----------------------------------------------------------------------------------- */

struct gremlin_run {
    struct gremlin_graph *graph;
    struct gremlin_heap *heap;
    const struct gremlin_run_options *options;
    struct arena *arena;   /* of the plan */
    struct arena *scratch; /* of the context: what is left there nobody needs */
    struct query_context context;
    struct gremlin_outcome *outcome;
    struct query_spill_budget *spill; /* a reference; NULL: nothing can be put aside */
    struct gremlin_packing packing;   /* of what is put aside */

    enum gremlin_trail_mode trail_mode;
    bool v38;
    bool sacks;       /* withSack, or a sack() step */
    bool bulks;       /* traversers may be merged */
    bool one_bulk;    /* withBulk(false): what is merged counts once */
    bool plan_writes; /* some step of the plan writes */
    bool profiled;
    bool productive; /* ProductiveByStrategy */
    bool strategy_read_only;
    bool verify_labels, verify_keys; /* verification strategies that throw */
    struct gremlin_value reserved; /* of ReservedKeysVerificationStrategy: a list; null: its own */
    bool explained;                /* explain() stands at the end */
    bool faulted;                  /* fault says why the run ends with this batch */
    struct error fault;
    struct gremlin_filters *filters; /* of SubgraphStrategy and PartitionStrategy; NULL: none */
    struct gremlin_value sack_seed;
    bool sack_merges;
    struct gremlin_enum sack_merge;
    struct gremlin_side_effect *side_effects;
    struct gremlin_step *steps; /* all of them */
    struct gremlin_part *root;
    uint64_t operators;
    struct random random; /* gremlin_run_random */
    bool seeded;
};

/* What chance is taken from; seed: from now on as this number says. */
struct random *gremlin_run_random(struct gremlin_run *run);
void gremlin_run_seed(struct gremlin_run *run, uint64_t seed);

#define FAIL(err, ...) error_set(err, ERROR_GREMLIN_RUN, __VA_ARGS__)
#define REFUSE(err, ...) error_set(err, ERROR_GREMLIN_COMPILE, __VA_ARGS__)

/* traverser.c */
void gremlin_walker_done(struct gremlin_walker *traverser);
/* A copy with references of its own. */
struct gremlin_walker gremlin_walker_copy(const struct gremlin_walker *from);
/* Takes value over as the new object: what map() does. Extends the trail, with the step's labels.
 */
void gremlin_walker_set(struct gremlin_run *run, struct gremlin_walker *traverser,
                        struct gremlin_value value, const struct gremlin_step *step);
/* A new one of `from` with the value (taken), for what flatMap() makes. */
struct gremlin_walker gremlin_walker_split(struct gremlin_run *run,
                                           const struct gremlin_walker *from,
                                           struct gremlin_value value,
                                           const struct gremlin_step *step);
/* The labels of a step that makes no new object. */
void gremlin_walker_label(struct gremlin_run *run, struct gremlin_walker *traverser,
                          struct gremlin_value labels);
bool gremlin_trail_has(const struct gremlin_path *node, struct slice label);

void gremlin_walkers_done(struct gremlin_run *run, struct gremlin_walkers *batch);
void gremlin_walkers_clear(struct gremlin_walkers *batch);
void gremlin_walkers_push(struct gremlin_run *run, struct gremlin_walkers *batch,
                          struct gremlin_walker traverser); /* taken */
/* Drops the first `count`, which were moved away. */
void gremlin_walkers_forget(struct gremlin_walkers *batch, size_t count);
/* Puts traversers from `from` on together that are alike but for their bulk. */
void gremlin_walkers_merge(struct gremlin_run *run, struct gremlin_walkers *batch, size_t from);

/* part.c */
bool gremlin_step_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err);
/* All of the input of a step. */
bool gremlin_step_drain(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walkers *out, struct error *err);
void gremlin_step_reset(struct gremlin_run *run, struct gremlin_step *step);
void gremlin_part_reset(struct gremlin_run *run, struct gremlin_part *part);
void gremlin_part_rearm(struct gremlin_run *run, struct gremlin_part *part);
void gremlin_part_add(struct gremlin_run *run, struct gremlin_part *part,
                      struct gremlin_walker traverser); /* taken */
/* The next traverser of a part; *ret_found false: there is none. The caller owns it. */
bool gremlin_part_next(struct gremlin_run *run, struct gremlin_part *part,
                       struct gremlin_walker *ret_traverser, bool *ret_found, struct error *err);
/* Everything that comes out, appended. */
bool gremlin_part_drain(struct gremlin_run *run, struct gremlin_part *part,
                        struct gremlin_walkers *out, struct error *err);
/* Local use: reset, begin with a copy of the traverser (bulk 1). */
void gremlin_part_begin(struct gremlin_run *run, struct gremlin_part *part,
                        const struct gremlin_walker *traverser);
void gremlin_part_begin_value(
    struct gremlin_run *run, struct gremlin_part *part, const struct gremlin_walker *traverser,
    struct gremlin_value value); /* borrowed: another object, not on the trail */
bool gremlin_part_test(struct gremlin_run *run, struct gremlin_part *part,
                       const struct gremlin_walker *traverser, bool *ret_yes, struct error *err);
/* Its first result, one reference. */
bool gremlin_part_value(struct gremlin_run *run, struct gremlin_part *part,
                        const struct gremlin_walker *traverser, struct gremlin_value *ret_value,
                        bool *ret_found, struct error *err);
/* Reads in one go what children of a step will ask for. */
bool gremlin_step_look_ahead(struct gremlin_run *run, struct gremlin_step *step,
                             const struct gremlin_walkers *batch, size_t from, struct error *err);
void gremlin_step_forget_ahead(struct gremlin_run *run, struct gremlin_step *step);

bool gremlin_by_apply(struct gremlin_run *run, const struct gremlin_by *by,
                      const struct gremlin_walker *traverser, struct gremlin_value *ret_value,
                      bool *ret_found, struct error *err);
/* The same of an object that is not the traverser's. */
bool gremlin_by_apply_value(struct gremlin_run *run, const struct gremlin_by *by,
                            const struct gremlin_walker *traverser, struct gremlin_value value,
                            struct gremlin_value *ret_value, bool *ret_found, struct error *err);
/* The by() for the index-th use; NULL: there is none, so the object itself. */
static inline const struct gremlin_by *gremlin_step_by(const struct gremlin_step *step,
                                                       size_t index)
{
    return step->by_count ? &step->by[index % step->by_count] : NULL;
}

/* value.c: what steps and by() ask of objects. References are the caller's. */
/* The value of a property of an element or of a key of a map. Several values of a vertex: an
 * error. */
bool gremlin_value_of_key(struct gremlin_run *run, struct gremlin_value object, struct slice key,
                          struct gremlin_value *ret_value, bool *ret_found, struct error *err);
bool gremlin_value_of_token(struct gremlin_run *run, struct gremlin_value object,
                            struct gremlin_enum word, struct gremlin_value *ret_value,
                            bool *ret_found, struct error *err);
bool gremlin_value_of_column(struct gremlin_run *run, struct gremlin_value object,
                             struct gremlin_enum word, struct gremlin_value *ret_value,
                             struct error *err);
/* Vertex property or property objects of an element, those of the keys (count 0: all), or the
 * properties' values. */
bool gremlin_element_list(struct gremlin_run *run, struct gremlin_value element,
                          const struct slice *keys, size_t count, bool values,
                          struct gremlin_value *ret_list, struct error *err);
/* What messages say of an object: its text, cut. */
const char *gremlin_value_shown(struct gremlin_run *run, struct gremlin_value value);
const char *gremlin_part_shown(struct gremlin_run *run, const struct gremlin_part *part);
/* The collection as a list with references of its own; what is none is a list of itself. */
struct gremlin_value gremlin_value_listed(struct gremlin_run *run, struct gremlin_value value);
bool gremlin_value_iterates(struct gremlin_value value); /* lists, sets, bulk sets */

/* filter.c */
/* Is the operand, a value or a predicate, satisfied? What fails in it (a regular expression that
 * takes too long) is remembered, and ends the run at the next batch. */
bool gremlin_operand_test(struct gremlin_run *run, struct gremlin_value operand,
                          struct gremlin_value value);
/* Objects of the trail between two labels (absent: the ends); nodes on the heap, to be released
 * with trail_release. */
struct gremlin_trail_nodes {
    const struct gremlin_path **nodes;
    size_t count, room;
};
bool gremlin_trail_section(struct gremlin_run *run, const struct gremlin_walker *traverser,
                           struct slice from, struct slice to,
                           struct gremlin_trail_nodes *ret_nodes, struct error *err);
void gremlin_trail_release(struct gremlin_run *run, struct gremlin_trail_nodes *nodes);

/* select.c: what a name stands for: a key of the traverser's map, a side effect, a label of its
 * path. One reference. */
bool gremlin_scope_value(struct gremlin_run *run, const struct gremlin_walker *traverser,
                         struct slice name, enum gremlin_enum_word pop,
                         struct gremlin_value *ret_value, bool *ret_found, struct error *err);

/* group.c */
bool gremlin_group_result(struct gremlin_run *run, struct gremlin_group_state *state,
                          struct gremlin_value *ret_map, struct error *err);
void gremlin_group_clear(struct gremlin_run *run, struct gremlin_group_state *state);
/* effects.c: what cap() and select() give. One reference. */
bool gremlin_side_effect_value(struct gremlin_run *run, struct gremlin_side_effect *effect,
                               struct gremlin_value *ret_value, struct error *err);
/* branch.c */
bool gremlin_branches_look_ahead(struct gremlin_run *run, struct gremlin_step *step,
                                 struct error *err);
/* reduce.c: the one result of a barrier, as a traverser without a past. Takes the value. */
void gremlin_reduced_push(struct gremlin_run *run, const struct gremlin_step *step,
                          struct gremlin_value value, const uint32_t loops[LOOPS_DEPTH_MAX],
                          struct gremlin_walkers *out);
/* sack.c: puts traversers together that are alike, their sacks by the operator of withSack(). */
bool gremlin_sacks_merge(struct gremlin_run *run, struct gremlin_walkers *batch, struct error *err);
/* strategies.c */
struct gremlin_side_effect *gremlin_side_effect_get(struct gremlin_run *run,
                                                    struct slice name); /* made if need be */
struct gremlin_side_effect *gremlin_side_effect_find(struct gremlin_run *run,
                                                     struct slice name); /* NULL: none */
/* profile.c: the plan as text. One reference. */
struct gremlin_value gremlin_run_explain(struct gremlin_run *run,
                                         const struct gremlin_traversal *traversal);
/* strategies.c: does SubgraphStrategy show the property? */
bool gremlin_property_passes(struct gremlin_run *run, struct gremlin_value owner,
                             const struct gremlin_slot *slot);

/* adjacency.c */
extern const struct gremlin_step_kind step_expand;
bool gremlin_expand_ahead(struct gremlin_run *run, struct gremlin_step *step,
                          const struct gremlin_walkers *batch, size_t from, struct error *err);
void gremlin_expand_forget(struct gremlin_run *run, struct gremlin_step *step);
