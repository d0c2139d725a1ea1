/* Placed entries: entries of an index that lie with the partition key that stands in their item
 * (index_definition.placed), in whichever physical partition that is, and not with the item.
 *
 * They have the bytes of any other entry, with the routing key of that place in place of the
 * item's:
 *
 *     i | entry | routing key of the place | number of the item -> nothing
 *
 * so splits, moves and re-routes carry them by that key, as they carry all entries. They are
 * written in the commit of their item, in a part of the batch of its own for each partition, which
 * is why all partitions of such a container are on one node. The number leads nowhere where they
 * lie: what is to be read of them stands in their values, which are therefore whole. */
#pragma once

#include "item/scope.h"

struct write_placed {
    struct slice routing; /* of the place; in op.key */
    struct engine_op op;
};

/* The operation that puts an entry of such an index. ERROR_BAD_REQUEST: the item says no partition
 * key there. ERROR_TOO_LARGE: a value does not fit whole. */
NODISCARD bool write_placed_make(const struct partition_definition *definition,
                                 const struct index_definition *index, struct slice document,
                                 struct slice entry, uint64_t number, struct arena *arena,
                                 struct write_placed *ret_placed, struct error *err);

/* The span of the scope's map that it belongs to. */
const struct partition_span *write_placed_span(const struct item_scope *scope,
                                               const struct write_placed *placed);

/* Adds the operations to the parts of their partitions, of which there may be one more for each.
 * ERROR_NOT_SUPPORTED: one is on another node. */
NODISCARD bool write_placed_parts(const struct item_scope *scope, const struct write_placed *placed,
                                  size_t count, struct commit_part *parts, size_t *part_count,
                                  struct arena *arena, struct error *err);
