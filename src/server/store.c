/* What holds the data, put together: nodes become a cluster, the catalogue is read from the first
 * of them, and around it run those who look after it: caretaker (expiry, trimming), heat, migrator,
 * balancer and the keeper of recorded traffic. Where one has to tell another (a container has a new
 * map: its partitions need budgets, and heat counts anew), a hook of this file stands between them.
 * That keeps the order of the rooms: lower ones call hooks, and only here is it known who listens.
 *
 * The order of starting is the order of need: budgets are filled before anybody may spend, those
 * with threads of their own come after the catalogue, and the guards of the nodes begin to watch
 * last, because a node that comes back is rejoined through the catalogue. Closing begins with heat,
 * which asks the migrator and is told by it, and then goes the other way round, so that no thread
 * meets what is gone already. A store that was opened half is closed the same way: whatever is NULL
 * is skipped.
 *
 * Nodes that come and go while the server runs do so one at a time (nodes_lock): engine, catalogue
 * and guard take part, and each step is undone if the next one fails.
 *
 * Settings become limits and options of the parts here and nowhere else: the parts read no
 * configuration, and tests make them without one. */
#include "server/store.h"

#include "balance/balancer.h"
#include "base/bell.h"
#include "base/thread.h"
#include "catalogue/caretaker.h"
#include "catalogue/node.h"
#include "engine/guard.h"
#include "heat/heat.h"
#include "load/offer_meters.h"
#include "migration/migrator.h"
#include "peer/leases.h"

/* Whom the guard of a node tells that it is here again. */
struct keeper {
    struct store *store;
    uint32_t number;
};

struct store {
    uint32_t burst_seconds;
    struct nodes *nodes; /* borrowed */
    struct keeper keepers[CLUSTER_NODES_MAX];
    struct mutex nodes_lock; /* one node comes or goes at a time */
    struct bell *bell;       /* rung by every commit, for those who keep order */
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct meters *meters;
    struct item_gates *gates;
    struct caretaker *caretaker;
    struct migrator *migrator;
    struct balancer *balancer;
    struct traffic *traffic;
    struct keeper *keeper;
    struct heat *heat;
    struct log *log;
};

struct definition_limits store_limits(const struct settings *settings)
{
    struct definition_limits limits = CATALOGUE_LIMITS_DEFAULT;

    limits.partition_bytes_max = (uint64_t)settings->partition_bytes_max;
    limits.partition_ru_max = (uint64_t)settings->partition_ru_max;
    limits.partition_ru_initial = (uint64_t)settings->partition_ru_initial;
    limits.enforce = (enum offer_enforce)settings->throughput_enforce;
    limits.logical_partition_bytes_max = (uint64_t)settings->logical_partition_bytes_max;
    limits.reference_bytes_max = (uint64_t)settings->reference_bytes_max;
    limits.item_bytes_max = (uint64_t)settings->item_bytes_max;
    limits.key_bytes_max = (uint32_t)settings->partition_key_bytes_max;
    limits.accounts_max = (uint32_t)settings->account_count_max;
    limits.account_resources_max = (uint32_t)settings->account_resources_max;
    limits.shared_containers_max = (uint32_t)settings->database_shared_containers_max;
    limits.container_partitions_max = (uint32_t)settings->container_partitions_max;
    limits.directory_lines_max = (uint32_t)settings->container_directory_lines_max;
    limits.account_children_max = (uint32_t)settings->account_children_max;
    limits.users_max = (uint32_t)settings->database_users_max;
    limits.encryption_keys_max = (uint32_t)settings->database_encryption_keys_max;
    limits.permissions_max = (uint32_t)settings->user_permissions_max;
    limits.procedures_max = (uint32_t)settings->container_procedures_max;
    limits.triggers_max = (uint32_t)settings->container_triggers_max;
    limits.functions_max = (uint32_t)settings->container_functions_max;
    limits.script_bytes_max = (uint32_t)settings->script_bytes_max;
    limits.account_script_bytes_max = (uint64_t)settings->account_script_bytes_max;
    limits.account_metadata_bytes_max = (uint64_t)settings->account_metadata_bytes_max;
    limits.script_cache_bytes = (uint64_t)settings->script_cache_bytes;
    limits.resource_bytes_max = (uint32_t)settings->resource_bytes_max;
    limits.unlimited_ru_min = (uint64_t)settings->container_unlimited_ru_min;
    limits.fixed_ru_max = (uint64_t)settings->container_fixed_ru_max;
    limits.fixed_bytes_max = (uint64_t)settings->container_fixed_bytes_max;
    limits.ru_min = (uint64_t)settings->throughput_ru_min;
    limits.ru_step = (uint64_t)settings->throughput_ru_step;
    limits.ru_max = (uint64_t)settings->throughput_ru_max;
    limits.ru_default = (uint64_t)settings->throughput_ru_default;
    limits.autoscale_min = (uint64_t)settings->throughput_autoscale_min;
    limits.autoscale_step = (uint64_t)settings->throughput_autoscale_step;
    return limits;
}

static bool cluster_fill(struct store *store, struct nodes *nodes, struct error *err)
{
    for (size_t i = 0; i < nodes_count(nodes); i++) {
        const struct nodes_member *member = nodes_at(nodes, i);

        if (!cluster_add(store->cluster, member->name, member->engine, err))
            return error_prefix(err, "node \"%s\"", member->name);
    }
    return true;
}

/* --- Nodes ----------------------------------------------------------------------------------- */

static bool on_rejoin(void *context, struct error *err)
{
    const struct keeper *keeper = context;

    if (!catalogue_node_rejoin(keeper->store->catalogue, keeper->number, err))
        return false;
    bell_ring(keeper->store->bell); /* what was left undone of it can be done */
    return true;
}

static void node_keep(struct store *store, const struct cluster_node *node)
{
    struct keeper *keeper = &store->keepers[node->number];

    *keeper = (struct keeper){store, node->number};
    engine_guard_keep(node->engine, &(struct engine_guard_hooks){on_rejoin, keeper}, false);
}

static void nodes_keep(struct store *store)
{
    catalogue_nodes_apply(store->catalogue);
    for (size_t i = 0; i < cluster_count(store->cluster); i++)
        node_keep(store, cluster_at(store->cluster, i));
}

static void nodes_leave(struct store *store)
{
    for (size_t i = 0; i < nodes_count(store->nodes); i++)
        engine_guard_leave(nodes_at(store->nodes, i)->engine);
}

bool store_node_add(struct store *store, const struct node_info *info, struct error *err)
{
    WITH_LOCK (&store->nodes_lock) {
        const struct cluster_node *node;
        struct engine *engine;

        if (!nodes_add(store->nodes, info->name, slice_of_text(info->url), &engine, err))
            return false;
        if (!catalogue_node_add(store->catalogue, info, engine, &node, err)) {
            nodes_retire(store->nodes, engine);
            return false;
        }
        node_keep(store, node);
        log_event(store->log, LOG_INFO, "node added", LOG_TEXT("node", info->name),
                  LOG_SLICE("url", engine_name(engine)));
    }
    return true;
}

bool store_node_remove(struct store *store, struct slice name, struct error *err)
{
    WITH_LOCK (&store->nodes_lock) {
        const struct cluster_node *node;

        if (!catalogue_node_remove(store->catalogue, name, &node, err))
            return false;
        if (node)
            nodes_retire(store->nodes, node->engine);
        log_event(store->log, LOG_INFO, "node removed", LOG_SLICE("node", name));
    }
    return true;
}

/* --- Budgets --------------------------------------------------------------------------------- */

static bool account_meters_fill(struct store *store, const struct account *account,
                                struct error *err)
{
    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++)
            if (!load_meters_apply(store->meters, database_container(database, c),
                                   store->burst_seconds, err))
                return false;
    }
    return true;
}

/* Containers that are made later get theirs from whoever makes them. */
static bool meters_fill(struct store *store, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct account **accounts = catalogue_accounts(store->catalogue, arena, &count);
    bool fine = true;

    for (size_t i = 0; i < count; i++) {
        fine = fine && account_meters_fill(store, accounts[i], err);
        account_unref(accounts[i]);
    }
    return fine;
}

/* Its new partitions get their shares of the throughput before the first request reaches them. */
static void on_publishing(const struct container *container, void *context)
{
    struct store *store = context;
    struct error err;

    if (!load_meters_prepare(store->meters, container, store->burst_seconds, &err))
        log_error(store->log, "throughput of new partitions not set", &err);
}

/* A container has another map: its new partitions get their shares of the throughput. */
static void on_published(struct container *container, void *context)
{
    struct store *store = context;
    struct error err;

    if (!load_meters_apply(store->meters, container, store->burst_seconds, &err))
        log_error(store->log, "throughput of new partitions not set", &err);
    heat_published(store->heat, container);
}

static void on_shared(struct container *container, void *context)
{
    struct store *store = context;
    struct error err;

    if (!load_meters_apply(store->meters, container, store->burst_seconds, &err))
        log_error(store->log, "throughput of partitions not set", &err);
}

static void on_leaving(const struct container *container, void *context)
{
    heat_leaving(((struct store *)context)->heat, container);
}

static void on_dropped(uint32_t partition, void *context)
{
    meters_remove(((struct store *)context)->meters, partition);
}

static struct migrator *migrator_start(struct store *store, const struct settings *settings)
{
    return migrator_new(&(struct migrator_options){
        .catalogue = store->catalogue,
        .meters = store->meters,
        .log = store->log,
        .bytes_per_second = (uint64_t)settings->migration_bytes_per_second,
        .bell = store->bell,
        .pause_ms = settings->migration_pause_ms,
        .publishing = on_publishing,
        .published = on_published,
        .shared = on_shared,
        .leaving = on_leaving,
        .dropped = on_dropped,
        .context = store,
    });
}

static struct heat *heat_start(struct store *store, const struct settings *settings)
{
    struct heat_limits limits = HEAT_LIMITS_DEFAULT;

    limits.split_minutes = (uint32_t)settings->migration_heat_minutes;
    limits.split_percent = (double)settings->migration_heat_percent;
    limits.rate_percent = (double)settings->migration_heat_rate_percent;
    limits.share_minutes = (uint32_t)settings->heat_share_minutes;
    limits.merge_ms = settings->migration_merge_after_ms;
    limits.merge_percent = (double)settings->migration_merge_percent;
    return heat_new(&(struct heat_options){
        .catalogue = store->catalogue,
        .meters = store->meters,
        .log = store->log,
        .pause_ms = settings->heat_pause_ms,
        .limits = limits,
        .hot_percent = (uint32_t)settings->heat_hot_percent,
        .large_percent = (uint32_t)settings->heat_large_percent,
    });
}

static bool traffic_start(struct store *store, const struct settings *settings, struct error *err)
{
    struct traffic_options options = {.bytes_max = (size_t)settings->advise_bytes_max,
                                      .containers_max = (size_t)settings->advise_containers_max,
                                      .per_second_max = (uint32_t)settings->advise_per_second_max,
                                      .hashed = settings->advise_values == 1};
    bool keeps = settings->advise_kept_bytes_max > 0;

    if (keeps && options.hashed && !keeper_seed(store->catalogue, &options.seed, err))
        return false;
    store->traffic = traffic_new(&options);
    if (keeps)
        store->keeper = keeper_new(
            &(struct keeper_options){.catalogue = store->catalogue,
                                     .traffic = store->traffic,
                                     .log = store->log,
                                     .pause_ms = settings->advise_write_ms,
                                     .bytes_max = (size_t)settings->advise_kept_bytes_max,
                                     .hashed = options.hashed});
    return true;
}

static void partition_gone(void *meters, uint32_t partition)
{
    meters_remove(meters, partition);
}

static void recall(void *leases)
{
    peer_leases_recall(leases);
}

static void recalled(void *leases)
{
    peer_leases_recalled(leases);
}

bool store_open(const struct settings *settings, struct nodes *nodes, struct peer_leases *leases,
                struct log *log, struct store **ret_store, struct error *err)
{
    CLEANUP(store_close) struct store *store = MEMORY_NEW(struct store);
    struct definition_limits limits = store_limits(settings);
    struct catalogue_options options = {
        .limits = &limits, .log = log, .history = settings->mongo_change_stream_retention > 0};

    store->log = log;
    store->nodes = nodes;
    mutex_init(&store->nodes_lock);
    store->bell = bell_new();
    store->cluster = cluster_new(&(struct commit_options){.log = log, .bell = store->bell});
    store->meters = meters_new(&clock_system);
    store->gates = item_gates_new();
    options.cluster = store->cluster;
    options.partition_gone = partition_gone;
    options.gone_context = store->meters;
    if (leases) {
        options.recall = recall;
        options.recalled = recalled;
        options.recall_context = leases;
    }
    options.nodes = nodes_said(nodes, &options.node_count);
    store->burst_seconds = (uint32_t)settings->throughput_burst_seconds;
    if (!cluster_fill(store, nodes, err) || !catalogue_open(&options, &store->catalogue, err) ||
        !meters_fill(store, err))
        return false;
    store->caretaker = caretaker_new(&(struct caretaker_options){
        .catalogue = store->catalogue,
        .log = log,
        .bell = store->bell,
        .pause_ms = settings->caretaker_pause_ms,
        /* twice: a session that was used at its last moment still has its records */
        .records_ms = 2 * settings->mongo_session_ms_max,
        .history = {.retention_ms = settings->mongo_change_stream_retention,
                    .bytes_max = (uint64_t)settings->mongo_change_stream_bytes_max},
        .followed_ms = settings->view_lag_max});
    if (settings->advise_record && !traffic_start(store, settings, err))
        return false;
    store->heat = heat_start(store, settings);
    store->migrator = migrator_start(store, settings);
    heat_set_migrator(store->heat, store->migrator);
    store->balancer = balancer_new(&(struct balancer_options){
        .catalogue = store->catalogue,
        .migrator = store->migrator,
        .meters = store->meters,
        .log = log,
        .bell = store->bell,
        .pause_ms = settings->migration_pause_ms,
        .moves_max = (size_t)settings->migration_moves_max,
    });
    nodes_keep(store);
    *ret_store = TAKE(store);
    return true;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    if (store->heat)
        heat_stop(store->heat); /* it asks the migrator, which tells it what it publishes */
    nodes_leave(store);
    balancer_free(store->balancer);
    migrator_free(store->migrator);
    keeper_free(store->keeper);
    traffic_free(store->traffic);
    heat_free(store->heat);
    caretaker_free(store->caretaker);
    catalogue_close(store->catalogue);
    cluster_free(store->cluster);
    bell_free(store->bell);
    meters_free(store->meters);
    item_gates_free(store->gates);
    mutex_done(&store->nodes_lock);
    memory_free(store);
}

struct catalogue *store_catalogue(struct store *store)
{
    return store->catalogue;
}

struct bell *store_bell(struct store *store)
{
    return store->bell;
}

struct heat *store_heat(struct store *store)
{
    return store->heat;
}

const struct cluster *store_cluster(const struct store *store)
{
    return store->cluster;
}

struct front_services store_services(struct store *store, struct net_workers *workers,
                                     struct log *log)
{
    return (struct front_services){
        .catalogue = store->catalogue,
        .meters = store->meters,
        .gates = store->gates,
        .caretaker = store->caretaker,
        .migrator = store->migrator,
        .heat = store->heat,
        .balancer = store->balancer,
        .clock = &clock_system,
        .workers = workers,
        .log = log,
        .burst_seconds = store->burst_seconds,
        .traffic = store->traffic,
        .keeper = store->keeper,
    };
}
