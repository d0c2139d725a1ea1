/* Expression: an expression of MongoDB's aggregation language, compiled to one of query/.
 *
 * "$a.b" is a path of the document that stands in a slot of the row; "$$name" is a variable; an
 * object with one field that begins with a dollar is an operator; every other object and array is
 * made of what its fields come to; all else stands for itself. What is missing is undefined, as
 * everywhere in query/: an object leaves it out, an array has null in its place.
 *
 * Variables of $let, $map, $filter and $reduce live on the stack of the evaluation and need no
 * slots. Variables of the surroundings (`let` of a command or of $lookup, CLUSTER_TIME, USER_ROLES,
 * those of $redact) are handed in by name, each as an expression: a constant, or the slot it is in.
 *
 * Where nothing but constants is involved the value is computed when it is compiled. The plan's
 * order is DOCUMENT_ORDER_MONGO, and it keeps numbers that are not finite. Errors, of compiling and
 * of evaluating, are those of front/mongo/error.h, with MongoDB's codes and words. */
#pragma once

#include "front/mongo/collation/collation.h"
#include "front/mongo/error.h"
#include "query/expression/expression.h"

struct mongo_variable {
    struct slice name;                    /* without the dollars */
    const struct query_expression *value; /* evaluated where the variable is used */
};

struct mongo_expression_options {
    uint32_t slot; /* what ROOT is, and CURRENT to begin with; 0: the item of a plan */
    const struct mongo_variable *variables; /* the last of a name counts */
    size_t variable_count;
    const struct document_collator *collator; /* texts compare by it; NULL: by their bytes */
};

/* The expression; what it needs of the value is copied into the build's arena. options NULL: none.
 * The build may have failed before; it has not when this returns true. */
NODISCARD bool mongo_expression_compile(const struct document_value *expression,
                                        const struct mongo_expression_options *options,
                                        struct query_build *build,
                                        const struct query_expression **ret_expression,
                                        struct error *err);

/* The same as filters and projections ask for it (match.h): self is the options, or NULL. */
bool mongo_expression_hook(void *self, const struct document_value *expression,
                           struct query_build *build,
                           const struct query_expression **ret_expression, struct error *err);

/* The variables of `let`, behind those of the options: {name: expression}. Expressions see the
 * options' variables, not each other. *ret_variables holds both. let with data NULL: none. */
NODISCARD bool mongo_expression_let(struct slice let,
                                    const struct mongo_expression_options *options,
                                    struct query_build *build,
                                    const struct mongo_variable **ret_variables, size_t *ret_count,
                                    struct error *err);

/* Is the name one that users may give a variable? Otherwise the error says why not. */
NODISCARD bool mongo_variable_name_check(struct slice name, struct error *err);

/* What a field path, "a.b" without a dollar, leads to in the value of base: over arrays it gives an
 * array of what is there. */
NODISCARD bool mongo_expression_path(struct slice path, const struct query_expression *base,
                                     struct query_build *build,
                                     const struct query_expression **ret_expression,
                                     struct error *err);

/* The whole document of a slot, as it is stored. */
const struct query_expression *mongo_expression_root(struct query_build *build, uint32_t slot);

/* false, null, what is missing and 0 are false; all else is true. */
bool mongo_expression_truth(const struct document_value *value);

/* The names of all expressions, with their dollars, for the ledger; NULL behind the last. */
const char *mongo_expression_name(size_t number, bool *ret_refused);
