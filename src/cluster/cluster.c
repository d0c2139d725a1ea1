/* An array in the order of the command line. Numbers, by which the catalogue names nodes, are
 * another order: they outlive a changed command line. */
#include "cluster/cluster.h"

#include "base/random.h"
#include "engine/guard.h"
#include "partition/history.h"
#include "partition/layout.h"

struct cluster {
    struct arena *arena; /* owns this structure and its texts */
    struct commit_options options;
    struct commit_clock *times; /* owned; of all committers */
    struct slice id;
    atomic_size_t count; /* written behind the node it counts */
    struct cluster_node nodes[CLUSTER_NODES_MAX];
};

struct cluster *cluster_new(const struct commit_options *options)
{
    struct arena *arena = arena_new();
    struct cluster *cluster = ARENA_NEW(arena, struct cluster);

    cluster->arena = arena;
    if (options)
        cluster->options = *options;
    cluster->times = commit_clock_new(cluster->options.clock);
    cluster->options.times = cluster->times;
    return cluster;
}

void cluster_free(struct cluster *cluster)
{
    if (!cluster)
        return;
    while (cluster->count > 0)
        commit_free(cluster->nodes[--cluster->count].commit);
    commit_clock_free(cluster->times);
    arena_free(cluster->arena);
}

/* The root brings the cluster's id, or gets a new one. */
static bool id_settle(struct cluster *cluster, struct engine *root, struct error *err)
{
    char fresh[RANDOM_UUID_SIZE];

    if (!engine_cluster_id(root, cluster->arena, &cluster->id, err))
        return false;
    if (cluster->id.len == 0) {
        random_uuid(fresh);
        cluster->id = arena_copy(cluster->arena, slice_of_text(fresh));
    }
    return true;
}

static bool partitions_open(struct commit *commit, struct engine *engine, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    size_t count;

    if (!engine_partition_list(engine, arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (partitions[i].id >> PARTITION_NUMBER_SOURCE_BITS)
            return error_set(err, ERROR_STORE_CORRUPT, "partition %u has a number nobody gave it",
                             partitions[i].id);
        if (!commit_partition_is_open(commit, partitions[i].id, partitions[i].epoch) &&
            !commit_partition_open(commit, partitions[i].id, partitions[i].epoch, err))
            return false;
    }
    return true;
}

/* What the operator has accepted: nothing that was given out is given again, and what is remembered
 * of partitions is read anew. Interrupted, it is done again from the start. */
static bool loss_accept(struct commit *commit, struct engine *engine, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    size_t count;

    if (!engine_has_lost(engine))
        return true;
    if (!engine_partition_list(engine, arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        commit_partition_close(commit, partitions[i].id);
        if (partitions[i].id != PARTITION_HISTORY &&
            !commit_partition_renumber(engine, partitions[i].id, partitions[i].epoch, err))
            return false;
    }
    return engine_loss_accept(engine, err);
}

static bool node_known(const struct cluster *cluster, const struct engine *engine)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster_node_is_member(&cluster->nodes[i]) &&
            !strcmp(engine_node_id(cluster->nodes[i].engine), engine_node_id(engine)))
            return true;
    return false;
}

/* What is here is checked before anything is read from it. */
static bool node_join(struct cluster *cluster, struct commit *commit, struct engine *engine,
                      struct error *err)
{
    return engine_cluster_join(engine, cluster->id, err) && loss_accept(commit, engine, err) &&
           history_join(engine, cluster->times, err) && partitions_open(commit, engine, err) &&
           commit_pledges_load(commit, err);
}

static bool room_check(const struct cluster *cluster, const char *name, const struct engine *engine,
                       struct error *err)
{
    if (cluster->count == CLUSTER_NODES_MAX)
        return error_set(err, ERROR_CONFIGURATION,
                         "node \"%s\" is one too many: the limit is %d, and those that were "
                         "removed count until the next start",
                         name, CLUSTER_NODES_MAX);
    if (node_known(cluster, engine))
        return error_set(err, ERROR_CONFIGURATION, "node \"%s\" is named twice", name);
    return true;
}

static void node_put(struct cluster *cluster, const char *name, struct engine *engine,
                     struct commit *commit, uint32_t number)
{
    struct cluster_node *node = &cluster->nodes[cluster->count];

    node->name = arena_text(cluster->arena, slice_of_text(name));
    node->number = number;
    node->engine = engine;
    node->commit = commit;
    atomic_fetch_add(&cluster->count, 1);
}

bool cluster_add_as(struct cluster *cluster, const char *name, struct engine *engine,
                    uint32_t number, struct error *err)
{
    CLEANUP(commit_free) struct commit *commit = NULL;
    struct commit_options options = cluster->options;
    struct error away;

    if (!room_check(cluster, name, engine, err))
        return false;
    if (cluster->count == 0 && !id_settle(cluster, engine, err))
        return error_prefix(err, "node \"%s\"", name);
    options.engine = engine;
    commit = commit_new(&options);
    if (engine_serves(engine, &away) && !node_join(cluster, commit, engine, err)) {
        if (cluster->count == 0 || err->code != ERROR_NODE_DOWN)
            return error_prefix(err, "node \"%s\"", name);
        engine_guard_take_down(engine,
                               err); /* it has just gone, and is to be joined when it comes */
    }
    node_put(cluster, name, engine, TAKE(commit), number);
    return true;
}

bool cluster_follow(struct cluster *cluster, const char *name, struct engine *engine,
                    struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct commit_options options = cluster->options;
    struct slice id;

    if (!room_check(cluster, name, engine, err) || !engine_cluster_id(engine, arena, &id, err))
        return false;
    if (cluster->count == 0)
        cluster->id = arena_copy(cluster->arena, id);
    if (id.len == 0 || !slice_equal(id, cluster->id))
        return error_set(err, ERROR_STORE_FOREIGN, "node \"%s\" is not of this cluster", name);
    options.engine = engine;
    node_put(cluster, name, engine, commit_new(&options), (uint32_t)cluster->count);
    return true;
}

bool cluster_add(struct cluster *cluster, const char *name, struct engine *engine,
                 struct error *err)
{
    return cluster_add_as(cluster, name, engine, (uint32_t)cluster->count, err);
}

bool cluster_rejoin(struct cluster *cluster, uint32_t number, struct error *err)
{
    const struct cluster_node *node = cluster_find(cluster, number);

    return node ? node_join(cluster, node->commit, node->engine, err)
                : error_set(err, ERROR_CONFIGURATION, "there is no node %u here", number);
}

void cluster_remove(struct cluster *cluster, uint32_t number)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].number == number)
            atomic_store(&cluster->nodes[i].removed, true);
}

bool cluster_node_is_member(const struct cluster_node *node)
{
    return !atomic_load(&node->removed);
}

bool cluster_node_serves(const struct cluster_node *node)
{
    struct error ignored;

    return cluster_node_is_member(node) && engine_serves(node->engine, &ignored);
}

size_t cluster_count(const struct cluster *cluster)
{
    return cluster->count;
}

const struct cluster_node *cluster_at(const struct cluster *cluster, size_t index)
{
    assert(index < cluster->count);
    return &cluster->nodes[index];
}

const struct cluster_node *cluster_find(const struct cluster *cluster, uint32_t number)
{
    for (size_t i = 0; i < cluster->count; i++)
        if (cluster->nodes[i].number == number)
            return &cluster->nodes[i];
    return NULL;
}

struct commit_clock *cluster_times(const struct cluster *cluster)
{
    return cluster->times;
}

struct slice cluster_id(const struct cluster *cluster)
{
    return cluster->id;
}

void cluster_number(struct cluster *cluster, size_t index, uint32_t number)
{
    assert(index < cluster->count);
    cluster->nodes[index].number = number;
}
