/* Chunks: the physical partitions of a sharded collection, by the shard key values they begin and
 * end at.
 *
 * Bounds of a ranged key are values, as far as a routing key keeps them: of texts of more than some
 * 120 bytes the beginning and a hash, which is shown as binary. Those of a hashed key are 64 bits
 * of the hash, as MongoDB shows them, though the hash is another. */
#pragma once

#include "catalogue/catalogue.h"
#include "front/mongo/error.h"

/* Appends a bound as the field `name`: {a: MinKey}, {a: 5, b: "x"}. */
void mongo_bound_append(const struct partition_definition *definition, struct slice bound,
                        struct slice name, struct buf *out);

/* The routing key, in the arena, that a bound in a client's words stands for. MONGO_BAD_VALUE: it
 * has not the fields of the shard key, or of a hashed one no number. */
NODISCARD bool mongo_bound_read(const struct partition_definition *definition, struct slice bound,
                                struct arena *arena, struct slice *ret_bound, struct error *err);

/* The chunk of a document with these fields, or with these bounds: [{min}, {max}]; borrowed from
 * the container. MONGO_SHARD_KEY_NOT_FOUND: a field is missing. MONGO_BAD_VALUE: no chunk has these
 * bounds. */
NODISCARD bool mongo_chunk_of_document(const struct container *container, struct slice document,
                                       struct arena *arena, const struct partition_span **ret_span,
                                       struct error *err);
NODISCARD bool mongo_chunk_of_bounds(const struct container *container, struct slice bounds,
                                     struct arena *arena, const struct partition_span **ret_span,
                                     struct error *err);

/* The chunks between two bounds, which some of them begin and end at. MONGO_BAD_VALUE. */
NODISCARD bool mongo_chunks_between(const struct container *container, struct slice bounds,
                                    struct arena *arena, const struct partition_span **ret_spans,
                                    size_t *ret_count, struct error *err);
