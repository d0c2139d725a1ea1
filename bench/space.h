/* Space: one container on one node for comparisons, and the items that are put into it.
 *
 * An item has about 1 KB and 20 indexed values. Item n of revision r is the same wherever it is
 * made; two revisions differ in three values. */
#pragma once

#include "container/items.h"

struct bench_space {
    struct engine *engine;
    struct commit *commit;
    struct arena *arena; /* of the definition */
    struct definition_fields definition;
    struct item_space space;
};

/* Makes the partitions, or opens them where the node has them. Ends the program when something
 * fails, as everything here does. */
void bench_space_open(struct bench_space *space, const char *url, uint32_t partitions);
void bench_space_close(struct bench_space *space);

void bench_must(bool done, const struct error *err);

/* Ten items have one logical partition. */
struct bench_item {
    struct partition_key key;
    struct document_value id;
    struct slice document;
};

/* The document alone, in arena. */
struct slice bench_item_document(uint64_t n, uint64_t revision, struct arena *arena);

struct bench_item bench_item_make(const struct bench_space *space, uint64_t n, uint64_t revision,
                                  struct arena *arena);
