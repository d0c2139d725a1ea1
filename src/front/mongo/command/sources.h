/* Sources: documents that stages of pipelines make of what the server knows. */
#pragma once

#include "front/mongo/command/call.h"
#include "front/mongo/pipeline/pipeline.h"

/* As struct mongo_pipeline_host asks for it; self is the call, on a worker. */
bool mongo_source_documents(void *self, struct slice stage,
                            const struct document_value *specification,
                            const struct mongo_pipeline_options *options, struct arena *arena,
                            struct slice *ret_array, struct error *err);
