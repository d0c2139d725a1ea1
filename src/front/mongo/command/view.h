/* Views: a collection, or another view, seen through a pipeline. */
#pragma once

#include "front/mongo/command/reading.h"
#include "front/mongo/pipeline/pipeline.h"

enum { MONGO_VIEW_DEPTH_MAX = 20 };

/* What a view comes down to. */
struct mongo_view {
    struct mongo_namespace on; /* a collection, or a name that nothing has */
    struct slice pipeline;     /* BSON: an array; of all views on the way, the innermost first */
    struct slice
        collation; /* of the view, or of the collection where it is none; data NULL: none */
    size_t depth;  /* 0: the name is of no view */
};

/* Follows a name to the collection under it; slices are in the call's arena.
 * MONGO_VIEW_DEPTH_LIMIT_EXCEEDED; 5: they lead back to themselves. */
NODISCARD bool mongo_view_resolve(const struct mongo_call *call, const struct mongo_namespace *name,
                                  struct mongo_view *ret_view, struct error *err);

/* The collation that a command is carried out with: what it names itself, or what the view or
 * collection has. MONGO_OPTION_NOT_SUPPORTED_ON_VIEW: it names another than its view has. */
NODISCARD bool mongo_view_collation(const struct mongo_view *view, struct slice asked,
                                    struct slice *ret_collation, struct error *err);

/* What pipelines of a call ask of the front: views, and documents that the server makes. */
struct mongo_pipeline_host mongo_pipeline_host_of(struct mongo_call *call);

/* What a command other than aggregate asks of a view, as the pipeline that does it. */
struct mongo_view_query {
    const struct mongo_namespace *name; /* of the view */
    struct slice pipeline;              /* BSON: an array */
    struct slice let, collation;        /* of the command; data NULL: none */
};

/* Opens what the view is on, and makes a reading of it whose rows are those of the pipeline, all
 * in the arena; blocks. *ret_view says what is read. */
NODISCARD bool mongo_view_open(struct mongo_call *call, const struct mongo_view_query *query,
                               struct arena *arena, struct mongo_view *ret_view,
                               struct mongo_reading *reading,
                               struct mongo_collection *ret_collection, struct error *err);

/* Appends {name: value} to a pipeline in the making, which has *stages of them. */
void mongo_stage_append(struct buf *out, uint32_t *stages, const char *name,
                        const struct document_value *value);

/* May a view of this name be made on these terms? MONGO_INVALID_VIEW_DEFINITION. */
NODISCARD bool mongo_view_check(const struct mongo_call *call, const struct mongo_namespace *name,
                                const struct mongo_terms *terms, struct error *err);
