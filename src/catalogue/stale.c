/* Old maps that requests may still hold, and the partitions they lead to which belong to another
 * container by now, or to none. After a restart nobody holds anything, so this is kept in memory
 * alone; partitions to be dropped are orphans then, and go when the catalogue is loaded. */
#include "catalogue/catalogue_private.h"
#include "catalogue/promotion.h"

struct stale_map {
    struct stale_map *next;
    struct partition_map *map;             /* a reference */
    uint32_t account, database, container; /* whose it was */
    uint32_t partition, node;
    bool drop; /* it is in no map any more */
};

void catalogue_stale_add(struct catalogue *catalogue, const struct container *before,
                         const struct partition_span *span, bool drop)
{
    struct stale_map *stale = MEMORY_NEW(struct stale_map);

    *stale = (struct stale_map){.next = catalogue->stale,
                                .map = partition_map_ref(before->map),
                                .account = before->account,
                                .database = before->database,
                                .container = before->state.info.number,
                                .partition = span->id,
                                .node = span->node,
                                .drop = drop};
    catalogue->stale = stale;
}

static bool is_present(const struct catalogue *catalogue, const struct stale_map *stale)
{
    const struct container *now = catalogue_find_container_number(
        catalogue->root, stale->account, stale->database, stale->container);

    return now && now->map == stale->map;
}

static bool is_stale(const struct catalogue *catalogue, uint32_t partition)
{
    for (const struct stale_map *stale = catalogue->stale; stale; stale = stale->next)
        if (stale->partition == partition && partition_map_is_shared(stale->map) &&
            !is_present(catalogue, stale))
            return true;
    return false;
}

bool catalogue_stale_check(const struct catalogue *catalogue, uint32_t partition, struct error *err)
{
    return !is_stale(catalogue, partition) ||
           error_set(err, ERROR_BUSY,
                     "requests on partition %u that began before the last change are still under "
                     "way: try again",
                     partition);
}

static void stale_free(struct stale_map *stale)
{
    partition_map_unref(stale->map);
    memory_free(stale);
}

void catalogue_promotions_stale_free(struct catalogue *catalogue)
{
    while (catalogue->stale) {
        struct stale_map *first = catalogue->stale;

        catalogue->stale = first->next;
        stale_free(first);
    }
}

/* True: nothing is left to be done about it. */
static bool stale_end(struct catalogue *catalogue, const struct stale_map *stale,
                      void (*dropped)(uint32_t partition, void *context), void *context)
{
    const struct cluster_node *node = cluster_find(catalogue->cluster, stale->node);
    struct error err;

    if (partition_map_is_shared(stale->map))
        return false;
    if (!stale->drop)
        return true;
    if (!node || !catalogue_partition_remove(node, stale->partition, &err))
        return false; /* its node is away: later, or as an orphan */
    if (dropped)
        dropped(stale->partition, context);
    return true;
}

void catalogue_promotions_sweep(struct catalogue *catalogue,
                                void (*dropped)(uint32_t partition, void *context), void *context)
{
    WITH_LOCK (&catalogue->change_lock) {
        struct stale_map **at = &catalogue->stale;

        while (*at) {
            struct stale_map *stale = *at;

            if (!stale_end(catalogue, stale, dropped, context)) {
                at = &stale->next;
                continue;
            }
            *at = stale->next;
            stale_free(stale);
        }
    }
}
