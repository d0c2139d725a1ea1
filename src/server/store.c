#include "server/store.h"

#include "container/caretaker.h"
#include "container/container_meters.h"
#include "container/migrator.h"

struct store {
    uint32_t burst_seconds;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct meters *meters;
    struct item_gates *gates;
    struct caretaker *caretaker;
    struct migrator *migrator;
    struct traffic *traffic;
    struct log *log;
};

static struct catalogue_limits limits_of(const struct settings *settings)
{
    struct catalogue_limits limits = CATALOGUE_LIMITS_DEFAULT;

    limits.partition_bytes_max = (uint64_t)settings->partition_bytes_max;
    limits.partition_ru_max = (uint64_t)settings->partition_ru_max;
    limits.logical_partition_bytes_max = (uint64_t)settings->logical_partition_bytes_max;
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

static bool account_meters_fill(struct store *store, const struct account *account,
                                struct error *err)
{
    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++)
            if (!container_meters_apply(store->meters, database_container(database, c),
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

    if (!container_meters_prepare(store->meters, container, store->burst_seconds, &err))
        log_error(store->log, "throughput of new partitions not set", &err);
}

/* A container has another map: its new partitions get their shares of the throughput. */
static void on_published(struct container *container, void *context)
{
    struct store *store = context;
    struct error err;

    if (!container_meters_apply(store->meters, container, store->burst_seconds, &err))
        log_error(store->log, "throughput of new partitions not set", &err);
}

static void on_dropped(uint32_t partition, void *context)
{
    meters_remove(((struct store *)context)->meters, partition);
}

static struct migrator *migrator_start(struct store *store, const struct settings *settings)
{
    return migrator_new(&(struct migrator_options){
        .catalogue = store->catalogue,
        .log = store->log,
        .bytes_per_second = (uint64_t)settings->migration_bytes_per_second,
        .pause_ms = settings->migration_pause_ms,
        .publishing = on_publishing,
        .published = on_published,
        .dropped = on_dropped,
        .context = store,
    });
}

static void partition_gone(void *meters, uint32_t partition)
{
    meters_remove(meters, partition);
}

bool store_open(const struct settings *settings, struct nodes *nodes, struct log *log,
                struct store **ret_store, struct error *err)
{
    CLEANUP(store_close) struct store *store = MEMORY_NEW(struct store);
    struct catalogue_limits limits = limits_of(settings);
    struct catalogue_options options = {.limits = &limits, .log = log};

    store->log = log;
    store->cluster = cluster_new(&(struct commit_options){.log = log});
    store->meters = meters_new(&clock_system);
    store->gates = item_gates_new();
    options.cluster = store->cluster;
    options.partition_gone = partition_gone;
    options.gone_context = store->meters;
    store->burst_seconds = (uint32_t)settings->throughput_burst_seconds;
    if (!cluster_fill(store, nodes, err) || !catalogue_open(&options, &store->catalogue, err) ||
        !meters_fill(store, err))
        return false;
    store->caretaker = caretaker_new(&(struct caretaker_options){
        .catalogue = store->catalogue, .log = log, .pause_ms = settings->caretaker_pause_ms});
    if (settings->advise_record)
        store->traffic = traffic_new(
            &(struct traffic_options){.bytes_max = (size_t)settings->advise_bytes_max,
                                      .containers_max = (size_t)settings->advise_containers_max,
                                      .per_second_max = (uint32_t)settings->advise_per_second_max,
                                      .hashed = settings->advise_values == 1});
    store->migrator = migrator_start(store, settings);
    *ret_store = TAKE(store);
    return true;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    migrator_free(store->migrator);
    traffic_free(store->traffic);
    caretaker_free(store->caretaker);
    catalogue_close(store->catalogue);
    cluster_free(store->cluster);
    meters_free(store->meters);
    item_gates_free(store->gates);
    memory_free(store);
}

struct catalogue *store_catalogue(struct store *store)
{
    return store->catalogue;
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
        .clock = &clock_system,
        .workers = workers,
        .log = log,
        .burst_seconds = store->burst_seconds,
        .traffic = store->traffic,
    };
}
