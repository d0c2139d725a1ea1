/* How documents are distributed: $shardedDataDistribution, and $collStats with a document for each
 * shard. */
#include "catalogue/container_usage.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/source.h"
#include "front/mongo/command/statistics.h"
#include "front/mongo/sharding/shard.h"
#include "throughput/cost.h"

#include <sys/utsname.h>

/* What a node holds of a collection. */
struct holding {
    uint32_t node;
    size_t chunks;
    struct container_usage usage;
};

struct holdings {
    struct holding list[CLUSTER_NODES_MAX];
    size_t count;
};

static struct holding *holding_of(struct holdings *holdings, uint32_t node)
{
    for (size_t i = 0; i < holdings->count; i++)
        if (holdings->list[i].node == node)
            return &holdings->list[i];
    assert(holdings->count < ARRAY_LEN(holdings->list));
    holdings->list[holdings->count] = (struct holding){.node = node};
    return &holdings->list[holdings->count++];
}

static bool holdings_read(const struct container *container, struct arena *arena,
                          struct holdings *ret_holdings, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    ret_holdings->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct holding *holding = holding_of(ret_holdings, spans[i].node);
        struct container_usage usage;

        if (!container_usage_partition(container, &spans[i], arena, &usage, err))
            return false;
        holding->chunks++;
        holding->usage.bytes += usage.bytes;
        holding->usage.items += usage.items;
    }
    return true;
}

/* --- $shardedDataDistribution ---------------------------------------------------------------- */

/* What a chunk leaves behind goes with its migration: there are no orphans. */
static void shard_append(const struct holding *holding, const struct node_table *table,
                         struct buf *row)
{
    document_append_string(row, SLICE("shardName"), mongo_shard_name(table, holding->node));
    document_append_int64(row, SLICE("numOrphanedDocs"), 0);
    document_append_int64(row, SLICE("numOwnedDocuments"), (int64_t)holding->usage.items);
    document_append_int64(row, SLICE("ownedSizeBytes"), (int64_t)holding->usage.bytes);
    document_append_int64(row, SLICE("orphanedSizeBytes"), 0);
}

static bool distribution_row(struct mongo_rows *rows, const struct database *database,
                             const struct container *container, const struct node_table *table,
                             struct error *err)
{
    struct arena *arena = rows->call->arena;
    CLEANUP(buf_done) struct buf row;
    char text[DOCUMENT_INDEX_SIZE];
    struct holdings holdings;
    size_t begin, list;

    buf_init(&row, BUF_DEFAULT_MAX);
    if (!holdings_read(container, arena, &holdings, err))
        return false;
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("ns"),
                           arena_printf(arena, "%.*s.%.*s", SLICE_ARG(database_info(database)->id),
                                        SLICE_ARG(container_info(container)->id)));
    list = document_append_array_begin(&row, SLICE("shards"));
    for (size_t i = 0; i < holdings.count; i++) {
        size_t one = document_append_object_begin(&row, document_index_key((uint32_t)i, text));

        shard_append(&holdings.list[i], table, &row);
        document_end(&row, one);
    }
    document_end(&row, list);
    return mongo_row_end(rows, begin, &row, err);
}

bool mongo_source_distribution(const struct mongo_source *source, struct mongo_rows *rows,
                               struct error *err)
{
    const struct account *account = rows->call->account.account;
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(rows->call->services->catalogue);

    if (source->specification->type != DOCUMENT_OBJECT ||
        document_count(source->specification->document))
        return mongo_error_set(err, 6789100,
                               "The $shardedDataDistribution stage specification must be an empty "
                               "object");
    if (!slice_equal(source->name->database, SLICE("admin")))
        return mongo_error_set(err, 6789102,
                               "$shardedDataDistribution must be run against the 'admin' database "
                               "with {aggregate: 1}");
    rows->call->charge_cru += cost_metadata(COST_METADATA_READ);
    for (size_t d = 0; account && d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++) {
            const struct container *container = database_container(database, c);

            if (mongo_container_fits(container) && !container_is_fixed(container) &&
                !distribution_row(rows, database, container, table, err))
                return false;
        }
    }
    return true;
}

/* --- $collStats ------------------------------------------------------------------------------ */

struct stats {
    struct document_value count, storage, latency, exec;
};

struct storage {
    int64_t scale;
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* count and storageStats are objects, empty or with a scale. */
static bool stats_read(const struct mongo_source *source, struct stats *ret_stats,
                       int64_t *ret_scale, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"count", MONGO_FIELD_VALUE, offsetof(struct stats, count)},
        {"storageStats", MONGO_FIELD_VALUE, offsetof(struct stats, storage)},
        {"latencyStats", MONGO_FIELD_VALUE, offsetof(struct stats, latency)},
        {"queryExecStats", MONGO_FIELD_VALUE, offsetof(struct stats, exec)},
    };
    static const struct mongo_field storage_fields[] = {
        {"scale", MONGO_FIELD_NUMBER, offsetof(struct storage, scale)},
        {"verbose", MONGO_FIELD_ANY},
        {"waitForLock", MONGO_FIELD_ANY},
    };
    struct storage storage = {.scale = 1};

    if (source->specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 5447000, "$collStats must take a nested object");
    if (!mongo_fields_read(source->specification->document, "$collStats", fields, ARRAY_LEN(fields),
                           ret_stats, err))
        return false;
    if (is_given(&ret_stats->latency) || is_given(&ret_stats->exec))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$collStats: latencyStats and queryExecStats are not kept for each "
                               "collection");
    if ((is_given(&ret_stats->count) && ret_stats->count.type != DOCUMENT_OBJECT) ||
        (is_given(&ret_stats->storage) && ret_stats->storage.type != DOCUMENT_OBJECT))
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "count and storageStats of $collStats are objects");
    if (is_given(&ret_stats->storage) &&
        !mongo_fields_read(ret_stats->storage.document, "$collStats.storageStats", storage_fields,
                           ARRAY_LEN(storage_fields), &storage, err))
        return false;
    *ret_scale = storage.scale;
    return storage.scale >= 1 ||
           mongo_error_set(err, 51024, "BSON field 'scale' value must be >= 1, actual value '%lld'",
                           (long long)storage.scale);
}

struct stats_rows {
    struct mongo_rows *rows;
    const struct mongo_source *source;
    const struct mongo_collection *collection;
    const struct node_table *table;
    struct stats stats;
    int64_t scale;
};

static bool stats_row(struct stats_rows *of, const struct holding *holding, struct error *err)
{
    const struct mongo_call *call = of->rows->call;
    const struct document_value now = document_date(clock_read_wall_ms(call->services->clock));
    CLEANUP(buf_done) struct buf row;
    struct utsname names;
    size_t begin, part;

    buf_init(&row, BUF_DEFAULT_MAX);
    if (uname(&names) != 0)
        names.nodename[0] = 0;
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s",
                                        SLICE_ARG(of->source->name->database),
                                        SLICE_ARG(of->source->name->collection)));
    document_append_string(&row, SLICE("shard"), mongo_shard_name(of->table, holding->node));
    document_append_string(&row, SLICE("host"), slice_of_text(names.nodename));
    document_append(&row, SLICE("localTime"), &now);
    if (is_given(&of->stats.storage)) {
        struct mongo_storage storage = {.usage = holding->usage};

        if (of->collection->container &&
            !mongo_index_sizes(of->collection->container, holding->node, call->arena, &storage,
                               err))
            return false;
        part = document_append_object_begin(&row, SLICE("storageStats"));
        mongo_storage_statistics(of->collection, &storage, of->scale, &row);
        document_end(&row, part);
    }
    if (is_given(&of->stats.count))
        document_append_int64(&row, SLICE("count"), (int64_t)holding->usage.items);
    return mongo_row_end(of->rows, begin, &row, err);
}

bool mongo_source_coll_stats(const struct mongo_source *source, struct mongo_rows *rows,
                             struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(rows->call->services->catalogue);
    struct stats_rows of = {
        .rows = rows, .source = source, .collection = &collection, .table = table};
    struct holdings holdings;

    if (!stats_read(source, &of.stats, &of.scale, err) ||
        !mongo_collection_open(rows->call, source->name, &collection, err))
        return false;
    rows->call->charge_cru += cost_metadata(COST_METADATA_READ);
    if (!collection.container)
        return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND,
                               "Unable to retrieve storageStats in $collStats stage :: caused by "
                               ":: Collection [%.*s.%.*s] not found.",
                               (int)MIN(source->name->database.len, (size_t)64),
                               (const char *)source->name->database.data,
                               (int)MIN(source->name->collection.len, (size_t)128),
                               (const char *)source->name->collection.data);
    if (!holdings_read(collection.container, rows->call->arena, &holdings, err))
        return false;
    for (size_t i = 0; i < holdings.count; i++)
        if (!stats_row(&of, &holdings.list[i], err))
            return false;
    return true;
}
