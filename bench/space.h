/* Space: one container on one node for comparisons, and the items that are put into it.
 *
 * An item has about 1 KB and 20 indexed values. Item n of revision r is the same wherever it is
 * made; two revisions differ in three values. */
#pragma once

#include "item/operation.h"

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

struct bench_space_options {
    size_t cache_bytes; /* block cache; 0: the engine's default */
    const char *policy; /* indexing policy as JSON; NULL: every path */
};
void bench_space_open_with(struct bench_space *space, const char *url, uint32_t partitions,
                           const struct bench_space_options *options);
void bench_space_close(struct bench_space *space);

void bench_must(bool done, const struct error *err);

/* Of the property "created", which counts up by item; how many values "count" has. */
#define BENCH_CREATED_FIRST UINT64_C(1700000000000)
enum { BENCH_COUNTS = 100 };

/* Ten items have one logical partition. */
struct bench_item {
    struct partition_key key;
    struct document_value id;
    struct slice document;
};

/* Parts of item n, in arena. */
struct document_value bench_item_id(uint64_t n, struct arena *arena);
struct document_value bench_item_tenant(uint64_t n, struct arena *arena);
struct slice bench_item_document(uint64_t n, uint64_t revision, struct arena *arena);

struct bench_item bench_item_make(const struct bench_space *space, uint64_t n, uint64_t revision,
                                  struct arena *arena);
