/* Answer: frames of a request: batches of results, the status attributes of the service on each of
 * them, and errors as it tells them. */
#pragma once

#include "base/random.h"
#include "front/gremlin/command/front.h"

/* What the frames of one request have in common. */
struct gremlin_answering {
    const struct front_services *services;
    struct arena *arena;
    const struct gremlin_format *format;
    struct gremlin_heap *heap;
    struct slice id; /* as the client wrote it; data NULL: none is known */
    char activity_id[RANDOM_UUID_SIZE];
    uint64_t started_ns;

    int64_t charge_cru;       /* of the request so far */
    int64_t wait_ms;          /* of a refusal for lack of throughput */
    int64_t reference_lag_ms; /* since when a copy it has read is not known to be exact */
    uint64_t results;         /* given so far */

    int64_t told_cru; /* with frames before */
    uint64_t told_ns; /* when the last of them was written; 0: none was */
};

/* A frame of results: with code 206 others follow, 200 is the last; 204 if there were none at all.
 * batch NULL: without any. */
NODISCARD bool gremlin_frame_write(struct gremlin_answering *answering, uint16_t code,
                                   const struct gremlin_batch *batch, struct buf *out,
                                   struct error *err);

/* How an error looks to clients of Gremlin. */
struct gremlin_fault {
    uint16_t code;         /* of the frame */
    uint32_t status;       /* x-ms-status-code */
    uint32_t substatus;    /* 0: none */
    const char *exception; /* the service's name of it */
};

/* code: of the frame where the caller knows it better; 0: by the error. */
struct gremlin_fault gremlin_fault_of(const struct error *err, uint16_t code);

/* The text of the error for a client: the message first, then what the service tells besides. */
struct slice gremlin_fault_text(const struct gremlin_answering *answering,
                                const struct gremlin_fault *fault, const struct error *err);

/* The frame of an error. fail_message: of fail(), a string; null: it was none. Never fails: where
 * memory does, it is a short one. */
void gremlin_fault_write(struct gremlin_answering *answering, const struct error *err,
                         uint16_t code, struct gremlin_value fail_message, struct buf *out);
