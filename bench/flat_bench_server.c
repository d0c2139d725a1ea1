/* Point operations on a container of so many physical partitions, for counting instructions:
 *
 *     flat_bench_server DIRECTORY PARTITIONS fill          makes a node with items
 *     flat_bench_server DIRECTORY PARTITIONS read COUNT
 *     flat_bench_server DIRECTORY PARTITIONS replace COUNT
 *     flat_bench_server DIRECTORY PARTITIONS create COUNT  up to 1024 that are not there yet
 *
 * The difference to a run with a count of 0 is what the operations cost, in all threads. The node
 * is filled by a process of its own, and its items end up in one sorted file, as nearly all items
 * of a node are in sorted files. In a memtable alone the count would say how far from its head the
 * items happen to be: at one partition they are all at the front. */
#include "engine/rocks/rocks_private.h"
#include "space.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 512, REVISIONS = 2, CREATED_MAX = 1024 };

static void run_one(const struct bench_space *space, const struct bench_item *item,
                    enum item_verb verb, struct arena *arena)
{
    struct item_operation op = {.space = &space->space,
                                .arena = arena,
                                .verb = verb,
                                .key = item->key,
                                .id = item->id,
                                .document = item->document};
    struct error err;

    bench_must(item_operation_run(&op, &err), &err);
}

int main(int argc, char **argv)
{
    CLEANUP(arena_free) struct arena *kept = arena_new();
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct bench_item items[REVISIONS][ITEMS], created[CREATED_MAX];
    struct bench_space space;
    unsigned long count = 0;

    if (argc < 4) {
        fprintf(stderr,
                "usage: flat_bench_server DIRECTORY PARTITIONS fill|read|replace|create COUNT\n");
        return 2;
    }
    if (argc > 4)
        count = strtoul(argv[4], NULL, 10);
    bench_space_open(&space, arena_text(kept, arena_printf(kept, "rocksdb:%s", argv[1])),
                     (uint32_t)strtoul(argv[2], NULL, 10));
    for (uint64_t n = 0; n < ITEMS; n++) {
        for (uint64_t revision = 0; revision < REVISIONS; revision++)
            items[revision][n] = bench_item_make(&space, n, revision, kept);
        arena_reset(arena);
        if (strcmp(argv[3], "fill") == 0)
            run_one(&space, &items[0][n], ITEM_CREATE, arena);
    }
    for (uint64_t n = 0; n < CREATED_MAX; n++)
        created[n] = bench_item_make(&space, ITEMS + n, 0, kept);
    if (strcmp(argv[3], "fill") == 0)
        rocksdb_compact_range(rocks_of(space.engine)->db, NULL, 0, NULL, 0);
    for (unsigned long i = 0; i < count; i++) {
        const struct bench_item *item =
            &items[(1 + i / ITEMS) % REVISIONS][i * 97 % ITEMS]; /* all, neighbours far apart */

        arena_reset(arena);
        if (strcmp(argv[3], "read") == 0)
            run_one(&space, item, ITEM_READ, arena);
        else if (strcmp(argv[3], "create") == 0)
            run_one(&space, &created[i % CREATED_MAX], ITEM_CREATE, arena);
        else
            run_one(&space, item, ITEM_REPLACE, arena);
    }
    bench_space_close(&space);
    return 0;
}
