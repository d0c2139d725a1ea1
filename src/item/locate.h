/* Locate: the items of an id, under whichever partition key they are.
 *
 * An id is unique within a logical partition only. The index has every id, so each physical
 * partition is asked with one seek. */
#pragma once

#include "item/items.h"
#include "item/scan.h"

/* The entries of an id in the index of any partition, in pages of so many; several ids may begin
 * alike where entries are cut. Lives in the arena. */
struct item_index_request locate_seek(const struct definition_fields *definition,
                                      const struct document_value *id, size_t entries_max,
                                      struct arena *arena);

/* The keys of the items that have the id, expired ones left out: as many as there are, but no more
 * than max, in the arena. Looks at the last map there is. Blocks. */
NODISCARD bool locate_keys(const struct item_space *space, const struct document_value *id,
                           size_t max, struct arena *arena, struct partition_key *ret_keys,
                           size_t *ret_count, struct error *err);
