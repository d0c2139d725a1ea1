/* An iterator for each node, of which the one with the least key is next. There are few nodes: the
 * least is looked for each time. */
#include "cluster/walk.h"

#include "base/memory.h"
#include "partition/layout.h"

struct branch {
    struct engine_iterator *iterator;
    struct history_record record;
    bool stands; /* on a record that was not taken yet */
    bool over;
};

struct cluster_walk {
    struct arena *arena;
    uint64_t settled;
    size_t count;
    struct branch branches[CLUSTER_NODES_MAX];
};

static bool branch_open(struct cluster_walk *walk, struct engine *engine,
                        struct history_place after, struct error *err)
{
    struct history_place from = after;
    struct engine_range range = {.max = SLICE("i")};

    /* the place behind it: ordinals, origins and times are numbers of a fixed length */
    if (++from.ordinal == 0 && ++from.origin == 0)
        from.time++;
    range.min = history_key_encode(from, walk->arena);
    if (!engine_iterator_new(engine, NULL, PARTITION_HISTORY, range, false, ENGINE_READ_ANY,
                             &walk->branches[walk->count].iterator, err))
        return false;
    walk->count++;
    return true;
}

bool cluster_walk_new(const struct cluster *cluster, struct history_place after, uint64_t settled,
                      struct cluster_walk **ret_walk, struct error *err)
{
    struct arena *arena = arena_new();
    CLEANUP(cluster_walk_free) struct cluster_walk *walk = ARENA_NEW(arena, struct cluster_walk);

    walk->arena = arena;
    walk->settled = settled;
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);

        if (cluster_node_is_member(node) && !branch_open(walk, node->engine, after, err))
            return false;
    }
    *ret_walk = TAKE(walk);
    return true;
}

void cluster_walk_free(struct cluster_walk *walk)
{
    if (!walk)
        return;
    for (size_t i = 0; i < walk->count; i++)
        engine_iterator_free(walk->branches[i].iterator);
    arena_free(walk->arena);
}

static bool branch_move(const struct cluster_walk *walk, struct branch *branch, struct error *err)
{
    struct engine_entry entry;

    if (!engine_iterator_next(branch->iterator, &entry, err))
        return false;
    branch->over = entry.found != ENGINE_FOUND;
    if (branch->over)
        return true;
    if (!history_record_decode(entry.key, entry.value, &branch->record, err))
        return false;
    branch->over = branch->record.place.time > walk->settled;
    branch->stands = !branch->over;
    return true;
}

bool cluster_walk_next(struct cluster_walk *walk, struct history_record *ret_record,
                       bool *ret_found, struct error *err)
{
    struct branch *least = NULL;

    for (size_t i = 0; i < walk->count; i++) {
        struct branch *branch = &walk->branches[i];

        if (!branch->stands && !branch->over && !branch_move(walk, branch, err))
            return false;
        if (branch->stands &&
            (!least || history_place_compare(branch->record.place, least->record.place) < 0))
            least = branch;
    }
    *ret_found = least != NULL;
    if (!least)
        return true;
    *ret_record = least->record;
    least->stands = false;
    return true;
}

bool cluster_walk_lost(const struct cluster *cluster, uint64_t time, bool *ret_lost,
                       struct error *err)
{
    *ret_lost = false;
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);
        uint64_t mark;

        if (!cluster_node_is_member(node))
            continue;
        if (!history_mark(node->engine, &mark, err))
            return false;
        *ret_lost |= time < mark;
    }
    return true;
}
