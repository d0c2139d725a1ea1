/* Former keys: requests of clients that still speak of the partition key a container had before it
 * was re-keyed.
 *
 * A key of a request is read in the terms of now and, as long as the definition has `formerly`, in
 * those of before: the latter stand in `former` of the key. Where only they make sense, the key has
 * `former_only` and no components. Whoever is told of neither sees a key as ever. item/alias.h
 * finds items by them. */
#pragma once

#include "partition/key.h"

/* partition_key_parse in the terms of now or of before. ERROR_BAD_REQUEST: in neither. */
NODISCARD bool partition_key_parse_either(const struct partition_definition *definition,
                                          struct slice text, enum partition_key_need need,
                                          struct arena *arena, struct partition_key *ret_key,
                                          struct error *err);

/* Did an item, as it is now, belong to this key, whole or partial, in the terms of before? */
bool partition_former_fits(const struct partition_definition *formerly, struct slice document,
                           const struct partition_key *former, struct arena *arena);
