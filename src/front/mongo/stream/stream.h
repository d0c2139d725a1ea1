/* Change stream: what became of a collection, a database or all of an account, change by change.
 *
 * It keeps nothing but where it stands; each batch walks the histories of the nodes
 * (cluster/walk.h) from there to what is settled. A stream on a collection is known by its name: it
 * may be made, and made anew, while it is watched. */
#pragma once

#include "cluster/walk.h"
#include "front/mongo/stream/token.h"

enum mongo_full_document {
    MONGO_FULL_DEFAULT,
    MONGO_FULL_LOOKUP,
    MONGO_FULL_AVAILABLE,
    MONGO_FULL_REQUIRED,
};

enum mongo_before_document { MONGO_BEFORE_OFF, MONGO_BEFORE_AVAILABLE, MONGO_BEFORE_REQUIRED };

/* What is watched: empty names are all. */
struct mongo_stream_target {
    uint32_t account;
    struct slice database, collection;
};

struct mongo_stream_options {
    enum mongo_full_document full;
    enum mongo_before_document before;
    bool expanded;
};

struct mongo_stream {
    struct mongo_stream_target target; /* names borrowed */
    struct mongo_stream_options options;
    struct mongo_token at; /* everything up to here was told, or was not to be */
    bool invalidating;     /* the change at `at` is told, the invalidation that follows is not */
    bool over;             /* and that is: nothing follows */
    bool fragments_left;   /* of the change at `at` not all fragments are told: it is read again */
};

/* The specification of the stage $changeStream, and where to begin by it; now: a cluster time.
 * Errors with MongoDB's codes; MONGO_CHANGE_STREAM_HISTORY_LOST is left to the first batch. */
NODISCARD bool mongo_stream_init(struct mongo_stream *stream,
                                 const struct mongo_stream_target *target,
                                 struct slice specification, uint64_t now, struct error *err);

/* The first batch begins with this: what was there where the stream resumes. Blocks. */
NODISCARD bool mongo_stream_resume(struct mongo_stream *stream, const struct cluster *cluster,
                                   struct error *err);

/* What a batch may hold and what it costs. */
struct mongo_stream_batch {
    size_t events_max;
    size_t bytes_max;   /* of events; one is always told */
    size_t records_max; /* looked at, of whomever */

    /* An event, whose _id is the token. Borrowed for the call. */
    bool (*event)(void *self, struct slice event, struct error *err);
    /* The document by its key as it is now, appended to out; *ret_found false: it has gone. */
    bool (*lookup)(void *self, const struct history_origin *origin, struct slice key,
                   struct buf *out, bool *ret_found, struct error *err);
    void *self;

    size_t events, bytes; /* out: told; bytes of what was read for them */
};

/* Tells what is there, at most a batch; blocks. After it stream->at is the token of the batch. An
 * error leaves the stream where it was. */
NODISCARD bool mongo_stream_read(struct mongo_stream *stream, struct cluster *cluster,
                                 struct mongo_stream_batch *batch, struct error *err);

/* For who waits (waits.h): what the stream is noted under. */
uint64_t mongo_stream_hash(const struct mongo_stream *stream);
