/* What the formats share behind format.h. */
#pragma once

#include "front/gremlin/format/format.h"
#include "front/gremlin/value/element.h"

/* Where results are written to. */
struct gremlin_writer {
    const struct gremlin_format *format;
    struct gremlin_heap *heap;
    struct buf *buf;
    bool tokens;                           /* elements without properties */
    struct gremlin_properties *properties; /* scratch of the outermost element; borrowed */
    int depth;
    struct error *err;
};

struct gremlin_format {
    const char *mime;
    bool binary;
    uint8_t version; /* of GraphSON: 1, 2, 3 */
    bool typed;
    bool (*read)(struct slice message, struct gremlin_heap *heap,
                 struct gremlin_request *ret_request, struct error *err);
    bool (*read_value)(struct slice bytes, struct gremlin_heap *heap,
                       struct gremlin_value *ret_value, struct error *err);
    bool (*write_value)(struct gremlin_writer *writer, struct gremlin_value value);
    /* bulk 0: as it is. */
    bool (*write_item)(struct gremlin_writer *writer, struct gremlin_value value, int64_t bulk,
                       bool first);
    bool (*write_answer)(struct gremlin_writer *writer, const struct gremlin_answer *answer);
};

/* The properties of an element, in the writer's scratch or, below another element, in *ret_own; let
 * go of with gremlin_writer_release. NULL: none are to be written (a reference, or tokens). */
NODISCARD bool gremlin_writer_properties(struct gremlin_writer *writer,
                                         struct gremlin_value element,
                                         struct gremlin_properties **ret_properties);
void gremlin_writer_release(struct gremlin_writer *writer, struct gremlin_properties *properties);

/* One more level; false: too deep. */
NODISCARD bool gremlin_writer_enter(struct gremlin_writer *writer);
static inline void gremlin_writer_leave(struct gremlin_writer *writer)
{
    writer->depth--;
}

/* Has the buffer met its maximum? Long loops ask, so that they end. */
NODISCARD bool gremlin_writer_room(struct gremlin_writer *writer);

/* A nested traversal that is only a cardinality with its value (as 3.7 drivers send it) becomes
 * that; anything else stays as it is. Takes the reference. */
struct gremlin_value gremlin_bytecode_finish_take(struct gremlin_heap *heap,
                                                  struct gremlin_value traversal);

/* A predicate as formats have it: eq and its like given several values mean their list. */
NODISCARD bool gremlin_format_predicate(struct gremlin_heap *heap, struct slice name,
                                        const struct gremlin_value *values, size_t count,
                                        struct gremlin_value *ret_value, struct error *err);

/* GraphSON */
bool gremlin_graphson_read(struct slice message, struct gremlin_heap *heap,
                           struct gremlin_request *ret_request, struct error *err);
bool gremlin_graphson_read_value(struct slice bytes, struct gremlin_heap *heap,
                                 struct gremlin_value *ret_value, struct error *err);
bool gremlin_graphson_write(struct gremlin_writer *writer, struct gremlin_value value);
bool gremlin_graphson_write_item(struct gremlin_writer *writer, struct gremlin_value value,
                                 int64_t bulk, bool first);
bool gremlin_graphson_write_answer(struct gremlin_writer *writer,
                                   const struct gremlin_answer *answer);
/* Without types. */
bool gremlin_plain_write(struct gremlin_writer *writer, struct gremlin_value value);
/* What typed and untyped share: numbers and texts without types, maps by the text of their keys. */
bool gremlin_plain_write_scalar(struct gremlin_writer *writer, struct gremlin_value value);
bool gremlin_plain_write_key(struct gremlin_writer *writer, struct gremlin_value key);
/* "key":[ {...}, ... ] of all properties of a vertex, by the function for one. */
bool gremlin_plain_write_grouped(struct gremlin_writer *writer,
                                 const struct gremlin_properties *properties,
                                 bool (*write)(struct gremlin_writer *writer,
                                               const struct gremlin_slot *slot));

/* GraphBinary */
bool gremlin_binary_read(struct slice message, struct gremlin_heap *heap,
                         struct gremlin_request *ret_request, struct error *err);
bool gremlin_binary_read_value(struct slice bytes, struct gremlin_heap *heap,
                               struct gremlin_value *ret_value, struct error *err);
bool gremlin_binary_write(struct gremlin_writer *writer, struct gremlin_value value);
bool gremlin_binary_write_item(struct gremlin_writer *writer, struct gremlin_value value,
                               int64_t bulk, bool first);
bool gremlin_binary_write_answer(struct gremlin_writer *writer,
                                 const struct gremlin_answer *answer);
