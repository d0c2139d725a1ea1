/* How much memory a store has, and for what.
 *
 * Write buffers come first: below 64 MB each of them more is worth more there than in a cache,
 * because what is written goes down the levels in larger steps and is written again less often (a
 * fifth less to the device than with 16 MB). Above, sorting into them costs more than that saves.
 * Of the rest a third is for values by key, two for blocks, which serve ranges too.
 *
 * All of it is filled by use alone: an idle store holds little. */
#include "engine/rocks/rocks_private.h"

#include <stdio.h>

enum {
    CACHE_DEFAULT = 64 * 1024 * 1024,
    RECALL_DEFAULT = 32 * 1024 * 1024,
    WRITE_BUFFER_DEFAULT = 16 * 1024 * 1024,
    WRITE_BUFFER_MIN = 1024 * 1024,
    WRITE_BUFFER_MAX = 64 * 1024 * 1024,
};

struct rocks_sizes rocks_sizes_of(size_t budget, const struct rocks_sizes *given)
{
    struct rocks_sizes sizes = {
        .cache = CACHE_DEFAULT, .recall = RECALL_DEFAULT, .write_buffer = WRITE_BUFFER_DEFAULT};

    if (budget) {
        size_t buffer = budget / 4 / ROCKS_WRITE_BUFFERS, rest;

        sizes.write_buffer = MIN(MAX(buffer, (size_t)WRITE_BUFFER_MIN), (size_t)WRITE_BUFFER_MAX);
        rest = budget - MIN(budget / 2, ROCKS_WRITE_BUFFERS * sizes.write_buffer);
        sizes.recall = rest / 3;
        sizes.cache = rest - sizes.recall;
    }
    return (struct rocks_sizes){
        .cache = given->cache ? given->cache : sizes.cache,
        .recall = given->recall ? given->recall : sizes.recall,
        .write_buffer = given->write_buffer ? given->write_buffer : sizes.write_buffer,
    };
}

/* A write buffer that does not become another size is no failure: the store goes on with the one
 * it has. */
static void write_buffer_set(struct rocks_engine *rocks, size_t bytes)
{
    char text[24];
    char *failure = NULL;

    (void)snprintf(text, sizeof text, "%zu", bytes);
    rocksdb_set_options(rocks->db, 1, (const char *const[]){"write_buffer_size"},
                        (const char *const[]){text}, &failure);
    if (!failure)
        return;
    log_event(rocks->log, LOG_WARNING, "write buffer kept its size", LOG_TEXT("node", rocks->name),
              LOG_TEXT("reason", failure));
    rocksdb_free(failure);
}

static void resize(struct engine_budget_share *share, size_t bytes)
{
    struct rocks_engine *rocks = CONTAINER_OF(share, struct rocks_engine, share);
    struct rocks_sizes sizes = rocks_sizes_of(bytes, &rocks->given);

    assert(rocks->db && rocks->cache && rocks->recall);
    rocksdb_cache_set_capacity(rocks->cache, sizes.cache);
    rocks_recall_resize(rocks->recall, sizes.recall);
    if (!rocks->given.write_buffer)
        write_buffer_set(rocks, sizes.write_buffer);
}

struct rocks_sizes rocks_sizes_join(struct rocks_engine *rocks)
{
    if (!rocks->budget)
        return rocks_sizes_of(0, &rocks->given);
    rocks->share.resize = resize;
    rocks->joined_bytes = engine_budget_join(rocks->budget, &rocks->share);
    return rocks_sizes_of(rocks->joined_bytes, &rocks->given);
}

void rocks_sizes_ready(struct rocks_engine *rocks)
{
    if (rocks->budget)
        engine_budget_ready(rocks->budget, &rocks->share, rocks->joined_bytes);
}

void rocks_sizes_leave(struct rocks_engine *rocks)
{
    if (rocks->share.resize)
        engine_budget_leave(rocks->budget, &rocks->share);
    rocks->share.resize = NULL;
}
