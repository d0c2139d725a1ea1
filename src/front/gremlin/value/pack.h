/* Packing: values as bytes, for what a request puts aside on disk (run/pile_private.h), and back.
 *
 * The bytes are read by the packing that wrote them and by nobody else: they are no format. An
 * element comes back with the properties of its own, or asks the same source; what it was read as
 * goes with it. What has no packed form (predicates, traversals, graphs, values nested too deep)
 * stays in memory: the packing holds it, and its bytes are a number. So packing never fails.
 *
 *     value    type (1 byte), then
 *     number   8 bytes         bytes    length (4), bytes
 *     list     count (4), items         table    count (4), key and value of each row
 *     element  flags (1), id, label, partition, ends or value and owner, its own slots or what it
 *              was read as (length, bytes)
 *     path     nodes (4), value and labels of each, from the first */
#pragma once

#include "front/gremlin/value/element.h"

struct gremlin_packing {
    struct gremlin_heap *heap;
    const struct gremlin_source *source; /* of elements that are not their own; NULL: none */
    void *owner;                         /* the source's */
    struct gremlin_value kept;           /* a list of what stays in memory; null: nothing */
};

void gremlin_packing_init(struct gremlin_packing *packing, struct gremlin_heap *heap,
                          const struct gremlin_source *source, void *owner);
void gremlin_packing_done(struct gremlin_packing *packing);

void gremlin_pack(struct gremlin_packing *packing, struct gremlin_value value, struct buf *out);
/* Takes one value off the front of the bytes. The caller owns one reference. ERROR_SPILL: they are
 * not what was packed. */
NODISCARD bool gremlin_unpack(struct gremlin_packing *packing, struct slice *bytes,
                              struct gremlin_value *ret_value, struct error *err);
