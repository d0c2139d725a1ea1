/* A pipeline being compiled, from within the folder. */
#pragma once

#include "front/mongo/expression/accumulate.h"
#include "front/mongo/match/match.h"
#include "front/mongo/pipeline/pipeline.h"
#include "front/mongo/pipeline/shape.h"
#include "front/mongo/pipeline/sort.h"
#include "front/mongo/text.h"
#include "query/stage/chain.h"

/* Slots of a row. Documents go to two of them in turn, those within a facet to two others, for all
 * its pipelines see the row around them. */
enum {
    SLOT_ITEM,
    SLOT_DOCUMENT,
    SLOT_OTHER,
    SLOT_FACET,
    SLOT_FACET_OTHER,
    SLOT_BESIDE, /* what is bound beside the document: an element, what was looked up */
    SLOT_INDEX,
    SLOT_FREE, /* from here on: variables of $lookup, one for each in the whole plan; */
    SLOT_VARIABLES_MAX = 56,
    SLOT_RESULTS = SLOT_VARIABLES_MAX, /* of groups, windows and facets */
    SLOT_RESULTS_MAX = QUERY_SLOTS_MAX - SLOT_RESULTS,
};

enum {
    PIPELINE_NESTING_MAX = 20, /* of $lookup in $lookup */
    PIPELINE_CHAIN_MAX = 4000, /* stages of the core in all */
};

/* What all pipelines of a plan have in common. */
struct pipeline_shared {
    uint32_t slot_next; /* of the next variable */
    uint32_t slot_max;  /* slots that the plan needs */
    size_t stages;      /* of the core, in all */
};

struct pipeline {
    struct query_build *build;
    const struct mongo_pipeline_options *options;
    const struct document_collator *collator; /* of the options; NULL: texts compare by bytes */
    struct query_stage *stages;
    size_t count, capacity;
    uint32_t slot;     /* where the document stands */
    uint32_t turns[2]; /* where documents go in turn */
    const struct mongo_variable *variables;
    size_t variable_count;
    struct pipeline_shared *shared;
    unsigned nesting; /* pipelines around it, facets not counted */
    bool in_facet;
    bool constant;           /* it begins with documents of its own */
    size_t position, length; /* of the stage being compiled, in the pipeline */
    struct slice stage_name;
    struct mongo_target target;
    const struct mongo_near *near;
};

/* Appends a stage. */
struct query_stage *pipeline_stage(struct pipeline *p, enum query_stage_kind kind);

/* The document becomes what the expression gives. */
void pipeline_project(struct pipeline *p, const struct query_expression *document);

/* The document stands in a slot of its own, not in that of the item. */
void pipeline_settle(struct pipeline *p);

const struct query_expression *pipeline_root(struct pipeline *p);

struct mongo_expression_options pipeline_scope(const struct pipeline *p);
NODISCARD bool pipeline_expression(struct pipeline *p, const struct document_value *specification,
                                   const struct query_expression **ret_expression,
                                   struct error *err);

/* Appends the stages of an array, as if they stood in the pipeline. */
NODISCARD bool pipeline_append(struct pipeline *p, struct slice stages, struct error *err);

/* A pipeline over another collection, or over documents of its own, as a plan. collection absent:
 * it has to bring its own. */
struct pipeline_other {
    struct slice database, collection;
    struct slice pipeline; /* a BSON array; absent: nothing */
    const struct mongo_variable *variables;
    size_t variable_count;
};
NODISCARD bool pipeline_other_compile(struct pipeline *p, const struct pipeline_other *other,
                                      struct slice *ret_container, struct query_plan **ret_plan,
                                      struct error *err);

/* --- Stages: each takes what stands behind its name --------------------------------------------
 */

#define STAGE(name, function, ...)                                                                 \
    bool function(struct pipeline *p, const struct document_value *specification,                  \
                  struct error *err);
#define STAGE_REFUSED(...)
#include "front/mongo/pipeline/stages.def"
#undef STAGE
#undef STAGE_REFUSED

/* --- Helpers -----------------------------------------------------------------------------------
 */

/* A name for a field of the result, "n": 40156 and its kin are the caller's. */
bool pipeline_is_field_name(struct slice name);

/* {_id: ..., fields} of a group: the accumulators from the iterator on, which stands on the first.
 * calls and names are filled; the results go to slots from `slot` on. */
struct group_fields {
    struct slice names[SLOT_RESULTS_MAX];
    const struct query_expression *results[SLOT_RESULTS_MAX];
    struct query_aggregate_call calls[SLOT_RESULTS_MAX];
    size_t count;
    size_t slots; /* of results, so far */
};
NODISCARD bool group_field_add(struct pipeline *p, struct group_fields *fields, struct slice name,
                               const struct document_value *specification, struct error *err);

/* The value, or null where it is undefined. */
const struct query_expression *pipeline_or_null(struct query_build *build,
                                                const struct query_expression *value);

/* An expression of a kind of this folder over children, with `data` for its evaluation. */
const struct query_expression *pipeline_node(struct query_build *build,
                                             const struct query_kind *kind, const void *data,
                                             const struct query_expression *const *children,
                                             size_t count);
struct pipeline_node {
    struct query_expression head;
    const void *data;
};

/* The arguments of a stage that is an object, by name: data NULL of values that are absent. */
struct stage_field {
    const char *name;
    struct document_value *value; /* set to undefined where it is absent */
};
struct stage_terms {
    const char *name;              /* of the stage */
    int code_object, code_unknown; /* of errors: it is no object; a field is unknown */
};
NODISCARD bool pipeline_fields(const struct document_value *specification,
                               const struct stage_terms *terms, const struct stage_field *fields,
                               size_t count, struct error *err);

/* Is it a dotted path? 40352, 15998, 16410. */
NODISCARD bool pipeline_path_check(struct slice path, struct error *err);

/* What a path leads to through objects alone, in the document. */
const struct query_expression *pipeline_nested(struct pipeline *p, struct slice path);

/* Orders the documents, {a: 1, b: -1}. */
NODISCARD bool pipeline_sort(struct pipeline *p, struct slice sort, struct error *err);

/* A slot among the results of a stage; counts for the plan. 17 results and their kin. */
NODISCARD bool pipeline_result_slot(struct pipeline *p, size_t number, uint32_t *ret_slot,
                                    struct error *err);
