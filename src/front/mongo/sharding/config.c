/* The database `config`, as far as shells and tools read it: what a sharded cluster knows of
 * itself, made of the catalogue when it is asked for. Of databases, collections and chunks an
 * account is shown its own. */
#include "balance/balancer.h"
#include "base/bytes.h"
#include "base/memory.h"
#include "front/mongo/command/virtual.h"
#include "front/mongo/sharding/chunk.h"
#include "front/mongo/sharding/key.h"
#include "front/mongo/sharding/shard.h"
#include "front/mongo/uuid.h"

#include <sys/utsname.h>
#include <xxhash.h>

/* --- Values ---------------------------------------------------------------------------------- */

/* An ObjectId that is always the same for the same numbers. */
static void id_append(struct buf *out, const char *name, const void *of, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(of, size);
    uint8_t bytes[DOCUMENT_OBJECT_ID_SIZE];
    const struct document_value id = {.type = DOCUMENT_OBJECT_ID, .id = bytes};

    bytes_put_le64(bytes, hash.low64);
    bytes_put_le32(bytes + 8, (uint32_t)hash.high64);
    document_append(out, slice_of_text(name), &id);
}

/* Likewise a UUID. */
static void uuid_append(struct buf *out, const void *of, size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(of, size);
    uint8_t bytes[16];
    const struct document_value uuid = {
        .type = DOCUMENT_BINARY, .binary = {.bytes = slice_of(bytes, sizeof bytes), .subtype = 4}};

    bytes_put_le64(bytes, hash.low64);
    bytes_put_le64(bytes + 8, hash.high64);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x80);
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    document_append(out, SLICE("uuid"), &uuid);
}

static void stamp_append(struct buf *out, const char *name, uint64_t seconds, uint64_t count)
{
    const struct document_value stamp = {.type = DOCUMENT_TIMESTAMP,
                                         .timestamp = seconds << 32 | (uint32_t)count};

    document_append(out, slice_of_text(name), &stamp);
}

static void date_append(struct buf *out, const char *name, int64_t ms)
{
    const struct document_value date = document_date(ms);

    document_append(out, slice_of_text(name), &date);
}

/* --- The cluster ----------------------------------------------------------------------------- */

bool mongo_config_version(struct mongo_rows *rows, struct error *err)
{
    struct slice id = cluster_id(catalogue_cluster(rows->call->services->catalogue));
    CLEANUP(buf_done) struct buf row;
    size_t begin;

    buf_init(&row, BUF_DEFAULT_MAX);
    begin = mongo_row_begin(&row);
    document_append_int32(&row, SLICE("_id"), 1);
    id_append(&row, "clusterId", id.data, id.len);
    return mongo_row_end(rows, begin, &row, err);
}

bool mongo_config_shards(struct mongo_rows *rows, struct error *err)
{
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(rows->call->services->catalogue);
    CLEANUP(buf_done) struct buf row;

    buf_init(&row, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < table->count; i++) {
        size_t begin = mongo_row_begin(&row);

        mongo_shard_append(rows->call, &table->list[i], &row);
        if (!mongo_row_end(rows, begin, &row, err))
            return false;
    }
    return true;
}

/* This process, which has just said that it is there. */
bool mongo_config_mongos(struct mongo_rows *rows, struct error *err)
{
    const struct mongo *mongo = rows->call->mongo;
    const struct clock *clock = rows->call->services->clock;
    int64_t now_ms = clock_read_wall_ms(clock);
    int64_t up_ms = clock_read_monotonic_ms(clock) - mongo->started_ms;
    CLEANUP(buf_done) struct buf row;
    struct utsname names;
    size_t begin;

    buf_init(&row, BUF_DEFAULT_MAX);
    if (uname(&names) != 0)
        names.nodename[0] = 0;
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("_id"), slice_of_text(names.nodename));
    document_end(&row, document_append_array_begin(&row, SLICE("advisoryHostFQDNs")));
    date_append(&row, "created", now_ms - up_ms);
    document_append_string(&row, SLICE("mongoVersion"), SLICE(MONGO_VERSION));
    date_append(&row, "ping", now_ms);
    document_append_int64(&row, SLICE("up"), up_ms / 1000);
    document_append_bool(&row, SLICE("waiting"), true);
    return mongo_row_end(rows, begin, &row, err);
}

/* Chunks are split by themselves; whether they are spread is the balancer's mode. */
bool mongo_config_settings(struct mongo_rows *rows, struct error *err)
{
    const struct front_services *services = rows->call->services;
    CLEANUP(memory_free) struct balancer_status *status = NULL;
    CLEANUP(buf_done) struct buf row;
    size_t begin;

    buf_init(&row, BUF_DEFAULT_MAX);
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("_id"), SLICE("chunksize"));
    document_append_int64(
        &row, SLICE("value"),
        (int64_t)(catalogue_limits(services->catalogue)->partition_bytes_max >> 20));
    if (!mongo_row_end(rows, begin, &row, err))
        return false;
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("_id"), SLICE("autosplit"));
    document_append_bool(&row, SLICE("enabled"), services->migrator != NULL);
    if (!mongo_row_end(rows, begin, &row, err))
        return false;
    if (!services->balancer)
        return true;
    status = balancer_status(services->balancer);
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("_id"), SLICE("balancer"));
    document_append_string(&row, SLICE("mode"), status->rebalancing ? SLICE("full") : SLICE("off"));
    document_append_bool(&row, SLICE("stopped"), !status->rebalancing);
    return mongo_row_end(rows, begin, &row, err);
}

/* Locks of balancers, and the log of their rounds: there is one balancer, which needs neither. */
bool mongo_config_none(struct mongo_rows *rows UNUSED, struct error *err UNUSED)
{
    return true;
}

/* What a migration is called there: of a move the end, which shells count. */
static const char *change_of(enum migration_kind kind)
{
    switch (kind) {
    case MIGRATION_MOVE:
        return "moveChunk.from";
    case MIGRATION_MERGE:
    case MIGRATION_GATHER:
        return "merge";
    case MIGRATION_REKEY:
        return "reshardCollection.end";
    default:
        return "split";
    }
}

static void change_append(const struct migrator_outcome *outcome, struct buf *row)
{
    const struct migrator_progress *progress = &outcome->progress;
    size_t details;

    id_append(row, "_id", &progress->id, sizeof progress->id);
    document_append_string(row, SLICE("what"), slice_of_text(change_of(progress->kind)));
    date_append(row, "time", outcome->ended_ms);
    details = document_append_object_begin(row, SLICE("details"));
    document_append_int64(row, SLICE("bytes"), (int64_t)progress->bytes);
    document_append_int64(row, SLICE("documents"), (int64_t)progress->items);
    document_append_int64(row, SLICE("millis"), progress->elapsed_ms);
    document_append_string(row, SLICE("note"),
                           outcome->cancelled ? SLICE("aborted") : SLICE("success"));
    if (outcome->cancelled)
        document_append_string(row, SLICE("errmsg"), SLICE("it was taken back"));
    document_end(row, details);
}

bool mongo_config_changelog(struct mongo_rows *rows, struct error *err)
{
    const struct mongo_call *call = rows->call;
    struct migrator_outcome *outcomes;
    CLEANUP(buf_done) struct buf row;
    size_t count = 0;

    buf_init(&row, BUF_DEFAULT_MAX);
    if (!call->services->migrator || !call->account.account)
        return true;
    outcomes = migrator_outcomes(call->services->migrator, call->arena, &count);
    for (size_t i = 0; i < count; i++) {
        const struct migrator_outcome *outcome = &outcomes[i];
        size_t begin;

        if (outcome->account != account_info(call->account.account)->number)
            continue;
        begin = mongo_row_begin(&row);
        change_append(outcome, &row);
        document_append_string(&row, SLICE("ns"),
                               arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(outcome->database),
                                            SLICE_ARG(outcome->container)));
        if (!mongo_row_end(rows, begin, &row, err))
            return false;
    }
    return true;
}

/* --- What the account has -------------------------------------------------------------------- */

/* One collection of the account at a time. */
struct each {
    struct mongo_rows *rows;
    struct node_table *table;
    struct buf *row;
    const struct database *database;
    const struct container *container;
    const struct partition_definition *key;
    struct slice ns;
};

static bool is_sharded(const struct container *container)
{
    return mongo_container_fits(container) && !container_is_fixed(container);
}

static bool collections_each(struct mongo_rows *rows,
                             bool (*each)(struct each *each, struct error *err), struct error *err)
{
    const struct mongo_call *call = rows->call;
    const struct account *account = call->account.account;
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(call->services->catalogue);
    CLEANUP(buf_done) struct buf row;

    buf_init(&row, BUF_DEFAULT_MAX);
    for (size_t d = 0; account && d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++) {
            const struct container *container = database_container(database, c);
            struct each one = {.rows = rows,
                               .table = table,
                               .row = &row,
                               .database = database,
                               .container = container,
                               .key = &definition_fields(container_definition(container))->key,
                               .ns = arena_printf(call->arena, "%.*s.%.*s",
                                                  SLICE_ARG(database_info(database)->id),
                                                  SLICE_ARG(container_info(container)->id))};

            if (is_sharded(container) && !each(&one, err))
                return false;
        }
    }
    return true;
}

static bool has_collections(const struct database *database)
{
    for (size_t i = 0; i < database_container_count(database); i++)
        if (mongo_container_fits(database_container(database, i)))
            return true;
    return false;
}

/* Collections that are not sharded are each on a node of its own; the first stands for them. */
static struct slice primary_of(const struct node_table *table, const struct database *database)
{
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        size_t count;

        if (mongo_container_fits(container) && container_is_fixed(container))
            return mongo_shard_name(table,
                                    partition_map_spans(container_map(container), &count)[0].node);
    }
    return mongo_shard_name(table, 0);
}

bool mongo_config_databases(struct mongo_rows *rows, struct error *err)
{
    const struct account *account = rows->call->account.account;
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(rows->call->services->catalogue);
    CLEANUP(buf_done) struct buf row;

    buf_init(&row, BUF_DEFAULT_MAX);
    for (size_t i = 0; account && i < account_database_count(account); i++) {
        const struct database *database = account_database(account, i);
        const struct catalogue_info *info = database_info(database);
        size_t begin, version;

        if (!has_collections(database))
            continue;
        begin = mongo_row_begin(&row);
        document_append_string(&row, SLICE("_id"), info->id);
        document_append_string(&row, SLICE("primary"), primary_of(table, database));
        document_append_bool(&row, SLICE("partitioned"), true);
        version = document_append_object_begin(&row, SLICE("version"));
        uuid_append(&row, &info->number, sizeof info->number);
        stamp_append(&row, "timestamp", (uint64_t)(info->ts_ms / 1000), 1);
        document_append_int32(&row, SLICE("lastMod"), 1);
        document_end(&row, version);
        if (!mongo_row_end(rows, begin, &row, err))
            return false;
    }
    return true;
}

static bool collection_row(struct each *each, struct error *err)
{
    const struct catalogue_info *info = container_info(each->container);
    size_t begin = mongo_row_begin(each->row);

    document_append_string(each->row, SLICE("_id"), each->ns);
    id_append(each->row, "lastmodEpoch", &info->number, sizeof info->number);
    date_append(each->row, "lastmod", info->ts_ms);
    stamp_append(each->row, "timestamp", (uint64_t)(info->ts_ms / 1000), 1);
    mongo_uuid_append(each->container, SLICE("uuid"), each->row);
    mongo_shard_key_append(each->key, SLICE("key"), each->row);
    document_append_bool(each->row, SLICE("unique"), false);
    document_append_bool(each->row, SLICE("noBalance"), false);
    document_append_int64(each->row, SLICE("maxChunkSizeBytes"),
                          (int64_t)container_limits(each->container)->partition_bytes_max);
    return mongo_row_end(each->rows, begin, each->row, err);
}

bool mongo_config_collections(struct mongo_rows *rows, struct error *err)
{
    return collections_each(rows, collection_row, err);
}

static bool chunk_row(const struct each *each, const struct partition_span *span, size_t number,
                      struct error *err)
{
    uint64_t version = partition_map_version(container_map(each->container));
    struct slice shard = mongo_shard_name(each->table, span->node);
    size_t begin = mongo_row_begin(each->row), list, one;

    id_append(each->row, "_id", &span->id, sizeof span->id);
    mongo_uuid_append(each->container, SLICE("uuid"), each->row);
    mongo_bound_append(each->key, span->min, SLICE("min"), each->row);
    mongo_bound_append(each->key, span->max, SLICE("max"), each->row);
    document_append_string(each->row, SLICE("shard"), shard);
    stamp_append(each->row, "lastmod", version, number);
    stamp_append(each->row, "onCurrentShardSince", span->epoch, 0);
    list = document_append_array_begin(each->row, SLICE("history"));
    one = document_append_object_begin(each->row, SLICE("0"));
    stamp_append(each->row, "validAfter", span->epoch, 0);
    document_append_string(each->row, SLICE("shard"), shard);
    document_end(each->row, one);
    document_end(each->row, list);
    return mongo_row_end(each->rows, begin, each->row, err);
}

static bool chunk_rows(struct each *each, struct error *err)
{
    size_t count;
    const struct partition_span *spans =
        partition_map_spans(container_map(each->container), &count);

    for (size_t i = 0; i < count; i++)
        if (spans[i].cut != PARTITION_CUT_SPREAD) { /* the parts of a key are one chunk */
            struct partition_span whole = spans[i];

            for (size_t j = i + 1; j < count && spans[j].cut == PARTITION_CUT_SPREAD; j++)
                whole.max = spans[j].max;
            if (!chunk_row(each, &whole, i, err))
                return false;
        }
    return true;
}

bool mongo_config_chunks(struct mongo_rows *rows, struct error *err)
{
    return collections_each(rows, chunk_rows, err);
}

/* --- Zones ----------------------------------------------------------------------------------- */

static void zone_bound(const struct each *each, const struct placement_rule *rule, const char *name,
                       enum document_type end)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value edge = {.type = end};
    size_t object = document_append_object_begin(each->row, slice_of_text(name));

    for (size_t i = 0; i < each->key->path_count; i++)
        document_append(each->row, mongo_shard_key_name(&each->key->paths[i], arena),
                        i < rule->key_count ? &rule->key[i] : &edge);
    document_end(each->row, object);
}

/* Rules of patterns, regions and names of nodes are no zones. */
static bool zone_rows(struct each *each, struct error *err)
{
    const struct placement *placement =
        &definition_fields(container_definition(each->container))->placement;

    for (size_t i = 0; i < placement->count; i++) {
        const struct placement_rule *rule = &placement->rules[i];
        size_t begin;

        if (rule->like || !rule->tags.count)
            continue;
        begin = mongo_row_begin(each->row);
        id_append(each->row, "_id",
                  (const uint32_t[]){container_info(each->container)->number, (uint32_t)i},
                  2 * sizeof(uint32_t));
        document_append_string(each->row, SLICE("ns"), each->ns);
        zone_bound(each, rule, "min", DOCUMENT_MIN_KEY);
        zone_bound(each, rule, "max", DOCUMENT_MAX_KEY);
        document_append_string(each->row, SLICE("tag"), rule->tags.list[0]);
        if (!mongo_row_end(each->rows, begin, each->row, err))
            return false;
    }
    return true;
}

bool mongo_config_tags(struct mongo_rows *rows, struct error *err)
{
    return collections_each(rows, zone_rows, err);
}
