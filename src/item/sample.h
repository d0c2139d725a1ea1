/* Sample: some items of a container, each with the same chance, for those who judge the whole by a
 * part. */
#pragma once

#include "item/items.h"

struct sample_request {
    size_t items_max;   /* taken */
    size_t entries_max; /* looked at, of the whole container; 0: no limit */
    uint64_t seed;      /* the same items for the same seed, as long as nothing is written */
    /* Called for each; the item is good until it returns. */
    void (*take)(void *context, const struct item *item);
    void *context;
};

/* Blocks. *ret_seen: how many items were looked at. */
NODISCARD bool sample_items(const struct item_space *space, const struct sample_request *request,
                            uint64_t *ret_seen, struct error *err);
