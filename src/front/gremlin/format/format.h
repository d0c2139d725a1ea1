/* Format: how requests and answers are written on the wire: GraphSON 1, 2, 3 and GraphBinary 1.0.
 *
 * A request names its format by a mime type, and is answered in the same. GraphSON 2 is answered
 * without types, as the service does whatever the type says, and so is application/json; `typed`
 * makes them GraphSON 2 and 3 as TinkerPop has them. Requests may be typed or not in either case.
 *
 * Everything read is bounded before memory is taken for it: bytes by the message, depth by
 * GREMLIN_FORMAT_DEPTH, counts by the bytes that are left to hold them. */
#pragma once

#include "front/gremlin/value/value.h"

enum {
    GREMLIN_FORMAT_DEPTH = 192,      /* values inside one another */
    GREMLIN_FORMAT_TOKENS = 1 << 20, /* values, names and brackets of one JSON message */
};

struct gremlin_format; /* constant, of no owner */

struct gremlin_format_options {
    bool typed; /* GraphSON 2 and application/json are answered with types */
};

/* The format of a mime type; parameters behind a semicolon are read (types=false) or passed over.
 * Of a type that is unknown, and of none: GraphSON 3, as the reference server does. NULL:
 * gryo, which is Java's own (ERROR_NOT_SUPPORTED). Text frames are application/json. */
const struct gremlin_format *gremlin_format_of_mime(struct slice mime,
                                                    const struct gremlin_format_options *options,
                                                    struct error *err);
/* What answers to text frames, and to HTTP where nothing else is asked for. */
const struct gremlin_format *gremlin_format_json(const struct gremlin_format_options *options);
bool gremlin_format_is_binary(const struct gremlin_format *format); /* so are its frames */
struct slice gremlin_format_mime(const struct gremlin_format *format);

/* --- Requests --------------------------------------------------------------------------------- */

/* References are the holder's: gremlin_request_done. */
struct gremlin_request {
    struct gremlin_value id;            /* a string as the client wrote it; null: there was none */
    struct gremlin_value op, processor; /* strings; empty if absent */
    struct gremlin_value args;          /* a map; empty if absent. args.gremlin is a string, or of
                                         * bytecode GREMLIN_TRAVERSAL (spawned) */
};

void gremlin_request_done(struct gremlin_request *request);
CLEANUP_VALUE_FN(struct gremlin_request, gremlin_request_done)

/* Reads a message, without its mime type. On failure *ret_request holds the id alone, if it could
 * be found (null otherwise), so that the client knows which request it was. ERROR_BAD_REQUEST,
 * ERROR_BAD_JSON, ERROR_TOO_DEEP, ERROR_TOO_LARGE; ERROR_NOT_SUPPORTED for types we do not have. */
NODISCARD bool gremlin_format_read(const struct gremlin_format *format, struct slice message,
                                   struct gremlin_heap *heap, struct gremlin_request *ret_request,
                                   struct error *err);

/* A single value, as it stands in args or in results. The whole text must be the value. */
NODISCARD bool gremlin_format_read_value(const struct gremlin_format *format, struct slice bytes,
                                         struct gremlin_heap *heap, struct gremlin_value *ret_value,
                                         struct error *err);

/* --- Answers ---------------------------------------------------------------------------------- */

/* The results of one frame, written as they come. */
struct gremlin_batch {
    const struct gremlin_format *format;
    struct gremlin_heap *heap; /* scratch of properties; that of the values */
    bool tokens; /* elements as references, without properties (materializeProperties) */
    struct buf items;
    size_t count;
    struct gremlin_properties *properties; /* scratch; held */
};

/* bytes_max: of the items. */
void gremlin_batch_init(struct gremlin_batch *batch, const struct gremlin_format *format,
                        struct gremlin_heap *heap, bool tokens, size_t bytes_max);
void gremlin_batch_done(struct gremlin_batch *batch);
CLEANUP_VALUE_FN(struct gremlin_batch, gremlin_batch_done)
void gremlin_batch_clear(struct gremlin_batch *batch); /* for the next frame */

/* Adds a result; bulk 0: as it is (scripts), else as a traverser that stands for so many
 * (bytecode). On failure the batch is as it was: ERROR_TOO_LARGE: it is full (if it held others,
 * send those first); ERROR_GREMLIN_FORMAT: the value has no form in this format; errors of
 * properties read. */
NODISCARD bool gremlin_batch_add(struct gremlin_batch *batch, struct gremlin_value value,
                                 int64_t bulk, struct error *err);

struct gremlin_answer {
    struct slice id; /* as in the request; data NULL: null */
    uint32_t code;
    struct slice message;
    struct gremlin_value attributes;   /* a map with text keys; null: none */
    const struct gremlin_batch *batch; /* NULL: data is null */
};

/* Appends the whole frame. Overflow shows in out. */
NODISCARD bool gremlin_format_write(const struct gremlin_format *format,
                                    const struct gremlin_answer *answer, struct gremlin_heap *heap,
                                    struct buf *out, struct error *err);
