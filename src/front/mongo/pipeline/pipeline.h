/* Pipeline: an aggregation of MongoDB, compiled to a chain of stages (query/stage/chain.h).
 *
 * The document stands in one slot of the row. What filters, orders and groups the items of the
 * collection looks at slot 0, so that the query of the plan takes it over; every stage that makes
 * another document of it puts that into another slot. What a stage is called and where it may stand
 * is a row of stages.def.
 *
 * Errors are those of front/mongo/error.h, with MongoDB's codes and words. */
#pragma once

#include "front/mongo/expression/expression.h"
#include "query/plan.h"

struct mongo_pipeline_options;
struct mongo_near; /* front/mongo/match/near.h */

/* What the front knows and a pipeline does not. */
/* A view that a stage names. */
struct mongo_pipeline_view {
    struct slice pipeline;  /* put before others; data NULL: it is no view */
    struct slice base;      /* the collection it is over */
    struct slice collation; /* data NULL: none */
};

struct mongo_pipeline_host {
    /* The documents of a stage that brings its own, such as $currentOp: a BSON array, in the
     * arena. NULL: there are none, and such stages are refused. */
    bool (*source)(void *self, struct slice stage, const struct document_value *specification,
                   const struct mongo_pipeline_options *options, struct arena *arena,
                   struct slice *ret_array, struct error *err);
    /* A collection that is a view, in the arena. NULL: there are no views. */
    bool (*view)(void *self, struct slice database, struct slice collection, struct arena *arena,
                 struct mongo_pipeline_view *ret_view, struct error *err);
    /* Of $geoNear over the collection of the options: the path of its only geospatial index, dotted
     * and in the arena, absent where there is no collection (27); has it an index for this (291)?
     * NULL: there are no indexes. */
    bool (*near_key)(void *self, const struct mongo_pipeline_options *options, struct arena *arena,
                     struct slice *ret_key, struct error *err);
    bool (*near_check)(void *self, const struct mongo_pipeline_options *options,
                       const struct mongo_near *near, struct error *err);
    void *self;
};

struct mongo_pipeline_options {
    struct slice database;
    struct slice collection; /* absent: none, as with aggregate: 1 */
    struct slice let;        /* of the command; absent: none */
    struct slice collation;
    struct slice prefix; /* a pipeline to be run before, as that of a view; absent: none */
    const struct mongo_variable *variables; /* besides those of let */
    size_t variable_count;
    struct mongo_pipeline_host host;
    const struct index_definition *text; /* of the collection; NULL: none */
};

/* Where the documents go. */
enum mongo_target_kind { MONGO_TARGET_CLIENT, MONGO_TARGET_OUT, MONGO_TARGET_MERGE };

enum mongo_when_matched {
    MONGO_MATCHED_REPLACE,
    MONGO_MATCHED_KEEP,
    MONGO_MATCHED_MERGE,
    MONGO_MATCHED_FAIL,
    MONGO_MATCHED_PIPELINE,
};

enum mongo_when_not_matched {
    MONGO_UNMATCHED_INSERT,
    MONGO_UNMATCHED_DISCARD,
    MONGO_UNMATCHED_FAIL
};

enum { MONGO_MERGE_ON_MAX = 32 };

struct mongo_target {
    enum mongo_target_kind kind;
    struct slice database, collection;
    struct slice on[MONGO_MERGE_ON_MAX]; /* dotted paths; none: _id */
    size_t on_count;
    enum mongo_when_matched matched;
    enum mongo_when_not_matched unmatched;
    struct slice pipeline; /* of MONGO_MATCHED_PIPELINE: a BSON array */
    struct slice let;      /* its variables: {name: expression over the new document}; absent */
    bool bypass;           /* set by the command: validators are not asked */
};

struct mongo_pipeline {
    struct query_plan plan;
    bool collectionless; /* it brings its own documents and reads no collection to begin with */
    struct mongo_target target;
    const struct mongo_near *near; /* of its $geoNear; NULL: none */
};

enum { MONGO_PIPELINE_STAGES_MAX = 1000 };

/* Compiles it, with all it needs, into the build's arena. pipeline is a BSON array. Other
 * collections are named "database.collection" in the plan. The build has not failed when this
 * returns true. */
NODISCARD bool mongo_pipeline_compile(struct slice pipeline,
                                      const struct mongo_pipeline_options *options,
                                      struct query_build *build,
                                      struct mongo_pipeline *ret_pipeline, struct error *err);

/* --- Updates --------------------------------------------------------------------------------- */

/* A pipeline that makes another document of one: $set, $unset, $replaceWith and their kin, as an
 * expression over the slot of the variables' options. MONGO_INVALID_OPTIONS: another stage. */
NODISCARD bool mongo_pipeline_update(struct slice pipeline,
                                     const struct mongo_expression_options *options,
                                     struct query_build *build,
                                     const struct query_expression **ret_document,
                                     struct error *err);

/* --- The ledger ------------------------------------------------------------------------------ */

/* Stages by number; NULL behind the last. *ret_why is NULL for those that are offered. */
const char *mongo_pipeline_stage(size_t number, const char **ret_why);
