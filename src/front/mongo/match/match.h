/* Match: a filter of MongoDB's query language, compiled once and asked of many documents.
 *
 * A filter is kept as a tree of its own, since it looks into arrays at every step of a path and
 * takes what is missing for null. For plans it becomes one expression (mongo_match_compile), whose
 * kind tells planners by itself which paths and ranges it implies: `{a: 5}` is a seek of a = 5 and
 * one of a[] = 5. Updates and projections ask the tree directly.
 *
 * Refusals are errors of front/mongo/error.h with MongoDB's codes and words. */
#pragma once

#include "front/mongo/collation/collation.h"
#include "front/mongo/error.h"
#include "index/definition.h"
#include "query/expression/expression.h"

struct mongo_match; /* immutable, in the arena of its build */

struct mongo_match_options {
    uint32_t slot; /* the variable that documents are in; 0: the item of a plan */
    const struct document_collator *collator; /* NULL: texts compare by their bytes */

    /* May $text stand in it? And the text index of the collection; NULL: it has none. */
    bool searches;
    const struct index_definition *text;

    /* Compiles what $expr holds. NULL: $expr is refused by name. The value's truth is taken as
     * aggregation takes it. */
    bool (*expression)(void *self, const struct document_value *expression,
                       struct query_build *build, const struct query_expression **ret_expression,
                       struct error *err);
    void *expression_self;

    /* The same of what $where holds. NULL: $where has no place in such a filter. */
    bool (*where)(void *self, const struct document_value *code, struct query_build *build,
                  const struct query_expression **ret_expression, struct error *err);
    void *where_self;

    bool near; /* $near and $nearSphere may be asked: whoever does orders by distance */
};

/* The filter as an expression that is true or false for a row of a plan; whatever it needs of
 * filter is copied into the build's arena. The plan's order is DOCUMENT_ORDER_MONGO. options NULL:
 * none. The build may have failed before; it has not when this returns true. */
NODISCARD bool mongo_match_compile(struct slice filter, const struct mongo_match_options *options,
                                   struct query_build *build,
                                   const struct query_expression **ret_expression,
                                   struct error *err);

/* The same in two steps, for whoever needs both. */
NODISCARD bool mongo_match_parse(struct slice filter, const struct mongo_match_options *options,
                                 struct query_build *build, const struct mongo_match **ret_match,
                                 struct error *err);
const struct query_expression *mongo_match_expression(const struct mongo_match *match,
                                                      struct query_build *build);

/* Does the document match? $expr looks at the context's slots, the rest at the document alone. */
NODISCARD bool mongo_match_holds(const struct mongo_match *match,
                                 const struct document_value *document,
                                 struct query_context *context, bool *ret_holds, struct error *err);

/* The same, and the element of the first array on the way that made it match: what `$` stands for
 * in updates and projections. -1: no array took part. Of several predicates the last decides. */
NODISCARD bool mongo_match_position(const struct mongo_match *match,
                                    const struct document_value *document,
                                    struct query_context *context, bool *ret_holds,
                                    int64_t *ret_position, struct error *err);

/* The $near or $nearSphere of the filter, which is part of what it asks; NULL: there is none. */
struct mongo_near;
const struct mongo_near *mongo_match_near(const struct mongo_match *match);

/* --- Parts of other languages ---------------------------------------------------------------- */

/* What $pull takes: a value that elements equal, operators that hold for an element, or a filter
 * that elements which are objects match. Ask with the element as the document. collator as in the
 * options. */
NODISCARD bool mongo_match_parse_pull(const struct document_value *condition,
                                      const struct document_collator *collator,
                                      struct query_build *build,
                                      const struct mongo_match **ret_match, struct error *err);

/* The one name that all paths of the filter begin with, for array filters. False: there is none,
 * or several; those are in ret_name and ret_other, which is absent if there is none. */
bool mongo_match_top_name(const struct mongo_match *match, struct slice *ret_name,
                          struct slice *ret_other);

/* A path and the value that every matching document has there: what an upsert begins with. */
struct mongo_equality {
    struct slice path; /* dotted */
    struct document_value value;
};

/* All of them, in the order of the filter. MONGO_NOT_SINGLE_VALUE_FIELD: a path has two values. */
NODISCARD bool mongo_match_equalities(const struct mongo_match *match, struct arena *arena,
                                      struct mongo_equality **ret_equalities, size_t *ret_count,
                                      struct error *err);
