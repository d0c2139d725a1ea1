/* What a strategy is made of. */
#pragma once

#include "partition/strategy.h"

struct strategy {
    /* Appends the routing key of a whole key, or of a partial one the beginning that the routing
     * keys of all it covers share. */
    void (*route)(const struct partition_definition *definition, const struct partition_key *key,
                  struct buf *buf);
    bool (*skip)(const struct partition_definition *definition, struct slice *bytes,
                 struct error *err);
    size_t (*split_points)(const struct partition_definition *definition, size_t n,
                           struct arena *arena, struct slice *ret_points);
    int (*compare)(const struct partition_definition *definition, struct slice a, struct slice b);
    bool ordered;
};

extern const struct strategy strategy_range, strategy_lookup;

/* Both write components alike: component.c has the layout. */
enum { COMPONENT_BYTES_MAX = 128, COMPONENT_HASH_SIZE = 16 };

void component_append(const struct document_value *value, struct buf *buf);
NODISCARD bool component_skip(struct slice *bytes, struct error *err);

int strategy_compare_bytes(const struct partition_definition *definition, struct slice a,
                           struct slice b);
