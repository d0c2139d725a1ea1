#include "front/mongo/sharding/shard.h"

#include "balance/balancer.h"
#include "base/memory.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/sharding/changing.h"
#include "throughput/cost.h"

/* --- Nodes ----------------------------------------------------------------------------------- */

static bool is_owner(const struct mongo_call *call)
{
    return slice_equal(call->account.id, SLICE(CATALOGUE_ACCOUNT_DEFAULT));
}

bool mongo_shards_owned(const struct mongo_call *call, struct error *err)
{
    return is_owner(call) ||
           mongo_error_set(err, MONGO_UNAUTHORIZED,
                           "not authorized on admin to execute command { %.*s }: shards are the "
                           "default account's",
                           SLICE_ARG(call->name));
}

bool mongo_shard_find(const struct mongo_call *call, struct slice name, uint32_t *ret_node,
                      struct error *err)
{
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(call->services->catalogue);
    const struct node_info *info = node_table_find(table, name);

    if (!info)
        return mongo_error_set(err, MONGO_SHARD_NOT_FOUND, "Shard %.*s does not exist",
                               (int)MIN(name.len, (size_t)NODE_NAME_SIZE), (const char *)name.data);
    *ret_node = info->number;
    return true;
}

struct slice mongo_shard_name(const struct node_table *table, uint32_t node)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->list[i].number == node)
            return slice_of_text(table->list[i].name);
    return SLICE("?");
}

/* Where its store is, which only the operator is told. */
static struct slice host_of(const struct mongo_call *call, const struct node_info *info)
{
    const struct cluster_node *node =
        cluster_find(catalogue_cluster(call->services->catalogue), info->number);

    return is_owner(call) && node && cluster_node_is_member(node)
               ? arena_printf(call->arena, "%s/%.*s", info->name,
                              SLICE_ARG(engine_name(node->engine)))
               : slice_of_text(info->name);
}

void mongo_shard_append(const struct mongo_call *call, const struct node_info *info,
                        struct buf *out)
{
    const struct document_value time = {.type = DOCUMENT_TIMESTAMP,
                                        .timestamp = (uint64_t)info->number + 1};
    char text[DOCUMENT_INDEX_SIZE];
    size_t list;

    document_append_string(out, SLICE("_id"), slice_of_text(info->name));
    document_append_string(out, SLICE("host"), host_of(call, info));
    document_append_int32(out, SLICE("state"), 1);
    document_append(out, SLICE("topologyTime"), &time);
    if (info->draining)
        document_append_bool(out, SLICE("draining"), true);
    if (!info->tag_count)
        return;
    list = document_append_array_begin(out, SLICE("tags"));
    for (size_t i = 0; i < info->tag_count; i++)
        document_append_string(out, document_index_key((uint32_t)i, text),
                               slice_of_text(info->tags[i]));
    document_end(out, list);
}

/* --- What there is --------------------------------------------------------------------------- */

static void charged(struct mongo_call *call, bool write)
{
    call->charge_cru = cost_metadata(write ? COST_METADATA_WRITE : COST_METADATA_READ);
}

bool mongo_list_shards(struct mongo_call *call, struct error *err)
{
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(call->services->catalogue);
    char text[DOCUMENT_INDEX_SIZE];
    size_t list, one;

    if (!mongo_arguments_read(call, NULL, 0, NULL, err))
        return false;
    charged(call, false);
    list = document_append_array_begin(&call->reply, SLICE("shards"));
    for (size_t i = 0; i < table->count; i++) {
        one = document_append_object_begin(&call->reply, document_index_key((uint32_t)i, text));
        mongo_shard_append(call, &table->list[i], &call->reply);
        document_end(&call->reply, one);
    }
    document_end(&call->reply, list);
    return true;
}

bool mongo_get_shard_map(struct mongo_call *call, struct error *err)
{
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(call->services->catalogue);
    size_t map;

    if (!mongo_arguments_read(call, NULL, 0, NULL, err))
        return false;
    charged(call, false);
    map = document_append_object_begin(&call->reply, SLICE("map"));
    for (size_t i = 0; i < table->count; i++)
        document_append_string(&call->reply, slice_of_text(table->list[i].name),
                               host_of(call, &table->list[i]));
    document_end(&call->reply, map);
    return true;
}

/* Every operation is routed by the map of now: there is nothing to flush. */
bool mongo_flush_router(struct mongo_call *call, struct error *err UNUSED)
{
    document_append_bool(&call->reply, SLICE("flushed"), true);
    return true;
}

/* How often the chunks of a collection have changed. */
bool mongo_get_shard_version(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct document_value version = {.type = DOCUMENT_TIMESTAMP};
    struct mongo_namespace name;

    if (!mongo_change_namespace(call, &call->target, &name, err) ||
        !mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_sharded_open(call, &name, &collection, err))
        return false;
    charged(call, false);
    version.timestamp = partition_map_version(container_map(collection.container)) << 32;
    document_append(&call->reply, SLICE("version"), &version);
    return true;
}

/* --- The balancer ---------------------------------------------------------------------------- */

static bool balancer_need(const struct mongo_call *call, struct error *err)
{
    return call->services->balancer || mongo_error_set(err, MONGO_COMMAND_NOT_SUPPORTED,
                                                       "this server leaves chunks where they are");
}

/* Spreading is begun by request and ends when nothing more is to be gained; what drains and zones
 * ask for is always done. */
static bool balancer_switch(struct mongo_call *call, bool on, struct error *err)
{
    static const struct mongo_field fields[] = {{"maxTimeMS", MONGO_FIELD_ANY}};

    charged(call, true);
    return mongo_shards_owned(call, err) && balancer_need(call, err) &&
           mongo_arguments_read(call, fields, ARRAY_LEN(fields), NULL, err) &&
           balancer_rebalance(call->services->balancer, on, err);
}

bool mongo_balancer_start(struct mongo_call *call, struct error *err)
{
    return balancer_switch(call, true, err);
}

bool mongo_balancer_stop(struct mongo_call *call, struct error *err)
{
    return balancer_switch(call, false, err);
}

bool mongo_balancer_status(struct mongo_call *call, struct error *err)
{
    CLEANUP(memory_free) struct balancer_status *status = NULL;

    if (!balancer_need(call, err) || !mongo_arguments_read(call, NULL, 0, NULL, err))
        return false;
    charged(call, false);
    status = balancer_status(call->services->balancer);
    document_append_string(&call->reply, SLICE("mode"),
                           status->rebalancing ? SLICE("full") : SLICE("off"));
    document_append_bool(&call->reply, SLICE("inBalancerRound"), status->rebalancing);
    document_append_int64(&call->reply, SLICE("numBalancerRounds"), (int64_t)status->begun);
    document_append_int64(&call->reply, SLICE("term"), 1);
    return true;
}

static const struct rebalance_move *violation_find(const struct balancer_world *world,
                                                   const struct rebalance_plan *plan,
                                                   const struct container *container)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct container *other = world->spans[plan->moves[i].span].container;

        if (container_account_number(other) == container_account_number(container) &&
            container_database_number(other) == container_database_number(container) &&
            container_info(other)->number == container_info(container)->number)
            return &plan->moves[i];
    }
    return NULL;
}

static bool compliance_append(struct mongo_call *call, const struct container *container,
                              struct error *err)
{
    CLEANUP(balancer_world_done) struct balancer_world world = {0};
    const struct rebalance_move *move;
    struct rebalance_plan plan;

    if (!balancer_world_read(call->services->balancer, &world, err))
        return false;
    balancer_world_plan(&world, true, &plan);
    move = violation_find(&world, &plan, container);
    document_append_int32(
        &call->reply, SLICE("chunkSize"),
        (int32_t)MIN(container_limits(container)->partition_bytes_max >> 20, (uint64_t)INT32_MAX));
    document_append_bool(&call->reply, SLICE("balancerCompliant"), !move);
    if (move)
        document_append_string(&call->reply, SLICE("firstComplianceViolation"),
                               move->reason == REBALANCE_DRAIN ? SLICE("draining")
                                                               : SLICE("zoneViolation"));
    return true;
}

bool mongo_balancer_collection_status(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;

    charged(call, false);
    return balancer_need(call, err) && mongo_change_namespace(call, &call->target, &name, err) &&
           mongo_arguments_read(call, NULL, 0, NULL, err) &&
           mongo_sharded_open(call, &name, &collection, err) &&
           compliance_append(call, collection.container, err);
}
