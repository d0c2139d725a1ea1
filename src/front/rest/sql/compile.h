/* Compile: a resolved syntax tree becomes expressions and a plan of query/, which runs it.
 *
 * Slot 0 of a row is the item: every alias that stands for the container reads it. An alias of a
 * path in FROM without IN is replaced by that path, so that whoever looks for indexes sees c.a.b
 * where the text says a.b. Group keys and aggregates have slots of their own.
 *
 * A subquery as the first source of the outermost FROM is evaluated item by item unless it spans
 * items (DISTINCT, aggregates, GROUP BY). Of those that span them, two shapes are known:
 *
 *     SELECT COUNT(1) FROM (SELECT DISTINCT ... FROM c)    aggregates of what is distinct
 *     SELECT ... FROM (SELECT ... FROM c GROUP BY ...) g   a condition and projection of groups
 *
 * and others are refused. */
#pragma once

#include "definition/names.h"
#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"
#include "query/plan.h"

struct definition_fields;
struct sql_ranking;

/* A parameter of the text, and a constant of the plan that it became. */
struct sql_bound {
    struct sql_bound *next;
    struct sql_expr *parameter;
    struct query_constant *node;
};

struct sql_compile_options {
    /* The `computedProperties` of the container, a BSON array known to be good (computed.h);
     * absent: there are none. c.name then means the query of that name, whatever the item holds. */
    struct slice computed;
    /* Is there a user-defined function of that name? Called for each call of one. NULL: there is no
     * host for them, and all are refused by name. */
    bool (*udf_known)(void *self, struct slice name);
    void *udf_self;
    /* The container that REFERENCE names (database data NULL: that of the query), which stays good
     * until the query was run. False with err set: it may not be joined. NULL: nobody looks for
     * them, and REFERENCE is refused. *ret_fields NULL: it could be any, for a plan that is only
     * looked at. */
    bool (*reference)(void *self, struct slice database, struct slice container,
                      const struct definition_fields **ret_fields, struct error *err);
    void *reference_self;
    /* Of the container; NULL: the usual ones. Where its identity is not what items are shown with,
     * c.id means the text of it. */
    const struct document_names *names;
    struct slice full_text; /* the `fullTextPolicy` of the container, BSON; absent: it has none */
    struct slice vectors;   /* the `vectorEmbeddingPolicy`, as well */
    bool plane;             /* coordinates of the container are in a plane, not on the Earth */
    bool ranks;             /* whoever runs the query ranks rows (ranking_run.h); else ORDER BY RANK
                               is refused */
    struct query_breath breath; /* taken now and then while a long text is compiled */
    struct sql_bound **bound;   /* gets what parameters became; NULL: nobody wants to know */
};

static inline const struct document_names *sql_names(const struct sql_compile_options *options)
{
    return options && options->names ? options->names : definition_names(DEFINITION_IDENTITY_ID);
}

/* Compiles a resolved and bound query; options NULL: the defaults. The plan and all of it are in
 * the arena, which must not be reset while it is run; its fingerprint is 0.
 * ERROR_QUERY_NOT_SUPPORTED: user-defined functions without a host, subqueries in FROM of a shape
 * not known. ERROR_BAD_QUERY: a user-defined function that is not there. ERROR_TOO_DEEP,
 * ERROR_TOO_LARGE: more than the engine takes. ERROR_BAD_REQUEST: what it refuses. */
NODISCARD bool sql_compile(const struct sql_query *query, const struct sql_compile_options *options,
                           struct arena *arena, struct query_plan *ret_plan,
                           struct sql_error *ret_error, struct error *err);

/* A query from its text to its plan. */
struct sql_prepared {
    struct sql_query *query;
    struct query_plan plan;
    const struct sql_ranking *ranking; /* not NULL: the plan is of the query without its order, and
                                          ranking_run.h runs it */
    struct sql_bound *bound;           /* see rebind.h */
};

/* Of a plan: what continuations are bound to. */
uint64_t sql_fingerprint(struct slice text, struct slice parameters,
                         const struct sql_compile_options *options);

/* Parses, binds, resolves and compiles. text and parameters (see sql_bind) must live as long as
 * the arena. The plan has a fingerprint of text, parameters and computed properties. */
NODISCARD bool sql_prepare(struct slice text, struct slice parameters,
                           const struct sql_compile_options *options, struct arena *arena,
                           struct sql_prepared *ret_prepared, struct sql_error *ret_error,
                           struct error *err);
