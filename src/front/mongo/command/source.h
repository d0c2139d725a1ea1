/* Sources: stages of a pipeline that bring documents of the server's own, as $collStats does. */
#pragma once

#include "front/mongo/command/virtual.h"

/* What such a stage is asked. */
struct mongo_source {
    const struct mongo_namespace *name; /* the collection part is empty with aggregate: 1 */
    struct slice stage;
    const struct document_value *specification;
};

/* Appends its documents to rows; may block. */
#define MONGO_SOURCE(stage, function)                                                              \
    bool function(const struct mongo_source *source, struct mongo_rows *rows, struct error *err);
#include "front/mongo/command/sources.def"
#undef MONGO_SOURCE

/* Answers the rows as a cursor, of a command whose documents the server makes. options:
 * {batchSize}; data NULL: none. */
NODISCARD bool mongo_rows_answer(struct mongo_call *call, const struct mongo_rows *rows,
                                 struct slice options, struct error *err);

/* The documents of the stage as a BSON array, in the arena. MONGO_NOT_IMPLEMENTED: there is no such
 * source. */
NODISCARD bool mongo_source_read(struct mongo_call *call, const struct mongo_source *source,
                                 struct arena *arena, struct slice *ret_array, struct error *err);
