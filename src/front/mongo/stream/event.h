/* Event: a record of the history as a change stream tells it. */
#pragma once

#include "front/mongo/stream/stream.h"

/* Of what is built; what goes to a client, behind the stages of its pipeline, is bounded by
 * MongoDB's limit. */
enum { MONGO_EVENT_BYTES_MAX = 64 * 1024 * 1024, MONGO_EVENT_TOLD_MAX = 16 * 1024 * 1024 + 16384 };

struct mongo_event_terms {
    const struct mongo_stream_options *options;
    bool (*lookup)(void *self, const struct history_origin *origin, struct slice key,
                   struct buf *out, bool *ret_found, struct error *err);
    void *self;
};

/* Appends it as a document. 47: an image is required and was not kept. */
NODISCARD bool mongo_event_append(const struct history_record *record,
                                  const struct mongo_event_terms *terms, struct buf *out,
                                  struct error *err);

/* {_id, operationType: "invalidate", ...} */
void mongo_event_invalidate(const struct mongo_token *token, int64_t wall_ms, struct buf *out);
