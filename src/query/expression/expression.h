/* Expression: a tree that gives a value for a row. Immutable, in the arena of its plan, and shared
 * by all threads that run the plan.
 *
 * Every node points to its kind, which says how it is evaluated. The kinds here have the semantics
 * of Cosmos SQL: undefined wanders through, logic has three values, types are never converted. A
 * language with other rules brings kinds of its own (query_node) and mixes them with these; nothing
 * in this folder knows a syntax.
 *
 * Trees are built from the leaves up. What is constant is computed then and there, once. A builder
 * that fails (too deep, too many) remembers the first error and goes on with nodes that are of no
 * use, so that a compiler checks once at the end:
 *
 *     struct query_build build = {.arena = arena};
 *     const struct query_expression *filter =
 *         query_compare(&build, QUERY_EQUAL, query_property_of(&build, query_variable(&build, 0),
 *                       SLICE("a")), query_constant(&build, document_int32(5)));
 *     if (build.failed) ... build.error
 */
#pragma once

#include "document/path.h"
#include "query/function/function.h"
#include "query/value/context.h"

struct query_expression;
struct query_implied;
struct query_implying;
struct query_subquery;

/* The least or greatest value at a path. */
struct query_end {
    struct document_path path;
    bool greatest;
    const struct document_collator *collator; /* texts are in its comparison form; NULL: they are as
                                                 they are */
};

struct query_kind {
    const char *name; /* for plans that people read */
    bool (*evaluate)(const struct query_expression *expression, struct query_context *context,
                     struct document_value *ret_value, struct error *err);
    enum query_stability stability; /* of the node itself, whatever its children are */
    /* Which paths of the item must have which values where a node is true, or, with truth false,
     * where it is false (query/expression/imply.h): what indexes and partition keys are found by.
     * NULL: it says nothing of paths. */
    const struct query_implied *(*imply)(const struct query_expression *expression,
                                         const struct query_implying *implying, bool truth);
    /* Is it the least value that a path of the item leads to through arrays, or the greatest, where
     * what is missing is null and an empty array undefined? Then an index that has all values of
     * the path, and its texts as the same collator has them, gives the order by it. NULL: it is
     * not. */
    bool (*is_end_of)(const struct query_expression *expression, struct arena *arena,
                      struct query_end *ret_end);
};

/* The head of every node. A kind's own data follows in a larger struct that begins with it. */
struct query_expression {
    const struct query_kind *kind;
    const struct query_expression *const *children;
    uint32_t child_count;
    uint16_t depth;      /* 1 for a leaf */
    uint8_t stability;   /* enum query_stability: the least of this node and those below */
    uint64_t slots_used; /* bit n: slot n is read here or below; bit 63: some slot above 62 */
};

/* The value for the present row; in the context's arena, in the row or in the plan. */
NODISCARD static inline bool query_evaluate(const struct query_expression *expression,
                                            struct query_context *context,
                                            struct document_value *ret_value, struct error *err)
{
    if (UNLIKELY(!query_work(context, 1, err)))
        return false;
    return expression->kind->evaluate(expression, context, ret_value, err);
}

/* Is the value exactly true? Anything else, undefined included, is a no: what WHERE asks. */
NODISCARD bool query_holds(const struct query_expression *filter, struct query_context *context,
                           bool *ret_holds, struct error *err);

/* --- Building -------------------------------------------------------------------------------- */

enum {
    QUERY_DEPTH_MAX = 400,          /* of a tree, subqueries included: evaluation recurses */
    QUERY_SLOTS_MAX = 256,          /* of a row */
    QUERY_NODES_MAX = 200000,       /* of a plan */
    QUERY_FOLD_BYTES_MAX = 1 << 20, /* temporaries of one constant subtree, and results of all */
};

struct query_build {
    struct arena *arena;        /* holds the plan */
    bool keep_nonfinite;        /* as the contexts that will run it have it (context.h) */
    enum document_order order;  /* the same */
    struct query_breath breath; /* taken now and then */
    size_t nodes;
    uint64_t fold_work;   /* of computing constant subtrees, so far */
    size_t fold_bytes;    /* of what they came to */
    const char *script;   /* by which word of the language it calls functions of users, where that
                             is for the front to know; NULL: by none so far */
    const void *searched; /* what the filter searches for, where scores of that can be asked for:
                             the front knows; NULL: nothing */
    bool failed;
    struct error error; /* the first */
};

/* Marks the build as failed; gives a node that stands in for the missing one. */
const struct query_expression *query_build_fail(struct query_build *build, enum error_code code,
                                                const char *format, ...) PRINTF_LIKE(3, 4);

/* Makes a node of size bytes whose head is filled in; for kinds of other languages as well. The
 * rest is zero and is the caller's to fill. children are copied. */
void *query_node(struct query_build *build, const struct query_kind *kind, size_t size,
                 const struct query_expression *const *children, size_t count);

/* The last step of a builder: the node, or the constant it comes to. */
const struct query_expression *query_fold(struct query_build *build,
                                          const struct query_expression *expression);

/* --- Leaves ---------------------------------------------------------------------------------- */

struct query_constant {
    struct query_expression head;
    struct document_value value;
};

struct query_variable {
    struct query_expression head;
    uint32_t slot;
};

/* The value is copied into the arena. */
const struct query_expression *query_constant(struct query_build *build,
                                              struct document_value value);
/* The value's bytes live as long as the plan: a parameter may be named very often. */
const struct query_expression *query_constant_borrowed(struct query_build *build,
                                                       struct document_value value);
const struct query_expression *query_variable(struct query_build *build, uint32_t slot);

/* --- Reaching into values -------------------------------------------------------------------- */

struct query_step {
    struct slice name; /* data NULL: an array element */
    uint64_t index;
};

/* child.a.b[0]: a chain of known steps as one node. */
struct query_property {
    struct query_expression head;
    size_t step_count;
    const struct query_step *steps;
};

/* A step more; chains grow into one node. */
const struct query_expression *query_property_of(struct query_build *build,
                                                 const struct query_expression *object,
                                                 struct slice name);
const struct query_expression *
query_element_of(struct query_build *build, const struct query_expression *array, uint64_t index);

/* value[key] with a computed key: a string names a property, a whole number an element. */
const struct query_expression *query_index(struct query_build *build,
                                           const struct query_expression *value,
                                           const struct query_expression *key);

/* The slot and steps of a path such as c.a.b; false for anything else. c alone has no steps. */
bool query_is_path(const struct query_expression *expression, uint32_t *ret_slot,
                   const struct query_step **ret_steps, size_t *ret_count);

/* --- Making objects and arrays --------------------------------------------------------------- */

struct query_object {
    struct query_expression head;
    const struct slice *names; /* one per child */
};

/* What is undefined is left out; so are numbers that are not finite, unless the context keeps them.
 * Names hold no NUL and differ: ERROR_BAD_REQUEST, ERROR_DUPLICATE_PROPERTY. */
const struct query_expression *query_array(struct query_build *build,
                                           const struct query_expression *const *elements,
                                           size_t count);
const struct query_expression *query_object(struct query_build *build, const struct slice *names,
                                            const struct query_expression *const *values,
                                            size_t count);

/* --- Operators ------------------------------------------------------------------------------- */

enum query_comparison {
    QUERY_EQUAL,
    QUERY_NOT_EQUAL,
    QUERY_LESS,
    QUERY_LESS_EQUAL,
    QUERY_GREATER,
    QUERY_GREATER_EQUAL,
};

enum query_operator {
    QUERY_ADD,
    QUERY_SUBTRACT,
    QUERY_MULTIPLY,
    QUERY_DIVIDE,
    QUERY_MODULO,
    QUERY_BIT_AND,
    QUERY_BIT_OR,
    QUERY_BIT_XOR,
    QUERY_SHIFT_LEFT,
    QUERY_SHIFT_RIGHT,
    QUERY_SHIFT_RIGHT_UNSIGNED,
    QUERY_CONCAT,
    QUERY_PLUS, /* unary from here on */
    QUERY_MINUS,
    QUERY_BIT_NOT,
};

struct query_comparison_node {
    struct query_expression head;
    enum query_comparison comparison;
};

struct query_operator_node {
    struct query_expression head;
    enum query_operator op;
};

const struct query_expression *query_compare(struct query_build *build,
                                             enum query_comparison comparison,
                                             const struct query_expression *left,
                                             const struct query_expression *right);
const struct query_expression *query_binary(struct query_build *build, enum query_operator op,
                                            const struct query_expression *left,
                                            const struct query_expression *right);
const struct query_expression *query_unary(struct query_build *build, enum query_operator op,
                                           const struct query_expression *operand);

/* Of any number of operands; an AND in an AND becomes one with it. */
const struct query_expression *query_and(struct query_build *build,
                                         const struct query_expression *left,
                                         const struct query_expression *right);
const struct query_expression *query_or(struct query_build *build,
                                        const struct query_expression *left,
                                        const struct query_expression *right);
const struct query_expression *query_not(struct query_build *build,
                                         const struct query_expression *operand);

/* condition ? yes : no; a condition that is no boolean gives undefined. */
const struct query_expression *query_conditional(struct query_build *build,
                                                 const struct query_expression *condition,
                                                 const struct query_expression *yes,
                                                 const struct query_expression *no);
/* The left unless it is undefined. */
const struct query_expression *query_coalesce(struct query_build *build,
                                              const struct query_expression *left,
                                              const struct query_expression *right);
const struct query_expression *query_between(struct query_build *build,
                                             const struct query_expression *value,
                                             const struct query_expression *low,
                                             const struct query_expression *high);

/* value IN (candidates): the OR of equalities. Constant candidates are found by hash; they are
 * children all the same, in the order given, after the value. */
enum { QUERY_IN_MAX = 16000 };
const struct query_expression *query_in(struct query_build *build,
                                        const struct query_expression *value,
                                        const struct query_expression *const *candidates,
                                        size_t count);

/* text LIKE pattern ESCAPE escape; escape NULL: none. A constant pattern is compiled once. An
 * escape that is constant and no single character is refused (ERROR_BAD_REQUEST). */
const struct query_expression *query_like(struct query_build *build,
                                          const struct query_expression *text,
                                          const struct query_expression *pattern,
                                          const struct query_expression *escape);

/* What every text that the LIKE accepts begins with; *ret_exact when it accepts that text alone.
 * False when the pattern is not constant. */
bool query_like_prefix(const struct query_expression *like, struct slice *ret_prefix,
                       bool *ret_exact);

/* --- Calls ----------------------------------------------------------------------------------- */

struct query_call {
    struct query_expression head;
    const struct query_function *function;
};

struct query_udf_call {
    struct query_expression head;
    struct slice name;
};

/* The number of arguments must suit the function: ERROR_BAD_REQUEST. */
const struct query_expression *query_call(struct query_build *build,
                                          const struct query_function *function,
                                          const struct query_expression *const *arguments,
                                          size_t count);
/* query_function.side of a call for the present row; 0 of anything else. */
NODISCARD bool query_call_side(const struct query_expression *expression, double number,
                               struct query_context *context, int *ret_side, struct error *err);
const struct query_expression *query_udf_call(struct query_build *build, struct slice name,
                                              const struct query_expression *const *arguments,
                                              size_t count);

/* --- Subqueries ------------------------------------------------------------------------------ */

enum query_quantifier {
    QUERY_SCALAR, /* the single value; none: undefined; several: ERROR_BAD_REQUEST */
    QUERY_EXISTS, /* is there a value? */
    QUERY_ARRAY,  /* all of them */
    QUERY_FIRST,  /* the first, or undefined */
    QUERY_LAST,
    QUERY_ALL, /* is every value true? yes if there is none */
};

struct query_subquery_node {
    struct query_expression head;
    enum query_quantifier quantifier;
    const struct query_subquery *subquery; /* query/expression/subquery.h */
};

const struct query_expression *query_subquery(struct query_build *build,
                                              enum query_quantifier quantifier,
                                              const struct query_subquery *subquery);

/* --- The kinds, for whoever takes plans apart; nodes of them are made by the builders alone
 * ------------------------------------------------- */

extern const struct query_kind query_kind_constant;    /* struct query_constant */
extern const struct query_kind query_kind_variable;    /* struct query_variable */
extern const struct query_kind query_kind_property;    /* struct query_property */
extern const struct query_kind query_kind_index;       /* children: value, key */
extern const struct query_kind query_kind_array;       /* children: elements */
extern const struct query_kind query_kind_object;      /* struct query_object */
extern const struct query_kind query_kind_comparison;  /* struct query_comparison_node */
extern const struct query_kind query_kind_operator;    /* struct query_operator_node */
extern const struct query_kind query_kind_and;         /* children: operands */
extern const struct query_kind query_kind_or;          /* children: operands */
extern const struct query_kind query_kind_not;         /* child: operand */
extern const struct query_kind query_kind_conditional; /* children: condition, yes, no */
extern const struct query_kind query_kind_coalesce;    /* children: left, right */
extern const struct query_kind query_kind_between;     /* children: value, low, high */
extern const struct query_kind query_kind_in;          /* children: value, candidates */
extern const struct query_kind query_kind_like;        /* children: text, pattern, escape */
extern const struct query_kind query_kind_call;        /* struct query_call */
extern const struct query_kind query_kind_udf_call;    /* struct query_udf_call */
extern const struct query_kind query_kind_subquery;    /* struct query_subquery_node */

static inline bool query_is_constant(const struct query_expression *expression)
{
    return expression->kind == &query_kind_constant;
}

static inline const struct document_value *
query_constant_value(const struct query_expression *expression)
{
    assert(query_is_constant(expression));
    return &((const struct query_constant *)expression)->value;
}

/* What the arguments of a call count for. */
uint64_t query_udf_bytes(const struct document_value *arguments, size_t count);
