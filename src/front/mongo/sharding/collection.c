/* shardCollection and its kin: a collection gets a shard key, or another one.
 *
 * A collection that is not there is made with the key. One that is there is re-keyed: the migrator
 * copies its documents to partitions of the new key while clients go on, and the command waits for
 * the switch. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/item.h"
#include "front/mongo/index/spec.h"
#include "front/mongo/sharding/changing.h"
#include "front/mongo/sharding/key.h"
#include "throughput/cost.h"

static void charged(struct mongo_call *call)
{
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
}

/* --- What is asked --------------------------------------------------------------------------- */

struct sharding {
    struct slice key, collation;
    struct document_value chunks, zones, timeseries, distribution, size;
    bool unique, presplit, simple, force;

    struct mongo_shard_key shard_key;
    int64_t chunk_count; /* 0: as the server likes */
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static bool is_simple(struct slice collation)
{
    struct document_value locale;

    return !collation.data || !document_count(collation) ||
           (document_find(collation, SLICE("locale"), &locale) && locale.type == DOCUMENT_STRING &&
            slice_equal(locale.text, SLICE("simple")));
}

static bool refused(const struct mongo_call *call, const char *option, const char *why,
                    struct error *err)
{
    return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "%s: %s is not offered: %s",
                           call->command->name, option, why);
}

static bool chunks_read(struct sharding *sharding, struct error *err)
{
    if (!is_given(&sharding->chunks))
        return true;
    if (!document_to_int64(&sharding->chunks, &sharding->chunk_count) ||
        sharding->chunk_count < 1 || sharding->chunk_count > MIGRATION_TARGETS_MAX)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "numInitialChunks must be a whole number from 1 to %d",
                               MIGRATION_TARGETS_MAX);
    return sharding->shard_key.hashed ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "numInitialChunks is only supported when the shard key is hashed");
}

static bool sharding_check(const struct mongo_call *call, struct sharding *sharding,
                           struct error *err)
{
    if (!mongo_shard_key_read(sharding->key, &sharding->shard_key, err))
        return false;
    if (sharding->unique && sharding->shard_key.hashed)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "hashed shard keys cannot be declared unique.");
    if (sharding->unique)
        return refused(call, "unique",
                       "_id is unique for each value of the shard key; make a unique index", err);
    if (!is_simple(sharding->collation))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "The collation for %s must be {locale: 'simple'}",
                               call->command->name);
    if (is_given(&sharding->timeseries))
        return refused(call, "timeseries", "there are no time-series collections", err);
    if (sharding->presplit)
        return refused(call, "presplitHashedZones", "zones are followed after it is sharded", err);
    if (is_given(&sharding->zones))
        return refused(call, "zones", "set them with updateZoneKeyRange", err);
    if (is_given(&sharding->distribution))
        return refused(call, "shardDistribution", "it is of MongoDB 8.0", err);
    return chunks_read(sharding, err);
}

static bool sharding_read(struct mongo_call *call, struct mongo_namespace *ret_name,
                          struct sharding *ret_sharding, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"key", MONGO_FIELD_OBJECT, offsetof(struct sharding, key), true},
        {"unique", MONGO_FIELD_BOOL, offsetof(struct sharding, unique)},
        {"numInitialChunks", MONGO_FIELD_VALUE, offsetof(struct sharding, chunks)},
        {"collation", MONGO_FIELD_OBJECT, offsetof(struct sharding, collation)},
        {"presplitHashedZones", MONGO_FIELD_BOOL, offsetof(struct sharding, presplit)},
        {"zones", MONGO_FIELD_VALUE, offsetof(struct sharding, zones)},
        {"timeseries", MONGO_FIELD_VALUE, offsetof(struct sharding, timeseries)},
        {"shardDistribution", MONGO_FIELD_VALUE, offsetof(struct sharding, distribution)},
        {"implicitlyCreateIndex", MONGO_FIELD_ANY},  /* the key is where documents are stored */
        {"enforceUniquenessCheck", MONGO_FIELD_ANY}, /* nothing is unique by it */
        {"forceRedistribution", MONGO_FIELD_ANY},    /* another key is another place */
    };

    return mongo_change_namespace(call, &call->target, ret_name, err) &&
           mongo_arguments_read(call, fields, ARRAY_LEN(fields), ret_sharding, err) &&
           sharding_check(call, ret_sharding, err);
}

/* --- Doing it -------------------------------------------------------------------------------- */

/* A unique index holds within a value of the shard key, so that it has to begin with it. */
static bool unique_check(const struct container *container, const struct mongo_shard_key *key,
                         struct error *err)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));

    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];
        bool begins = index->part_count >= key->count;

        if (index->unique == INDEX_UNIQUE_NOT || index->state == INDEX_FAILED ||
            slice_equal(index->name, MONGO_INDEX_ID)) /* as _id itself, for each shard key */
            continue;
        for (size_t k = 0; begins && k < key->count; k++)
            begins = mongo_path_is_called(&index->parts[k].path, key->names[k]);
        if (!begins)
            return mongo_error_set(
                err, MONGO_INVALID_OPTIONS,
                "can't shard collection '%.*s' with the unique index '%.*s': "
                "uniqueness can't be maintained unless the shard key is a "
                "prefix of it",
                (int)MIN(fields->id.len, (size_t)64), (const char *)fields->id.data,
                (int)MIN(index->name.len, (size_t)64), (const char *)index->name.data);
    }
    return true;
}

static bool rekey_begin(struct migrator *migrator, struct container *container, void *context,
                        bool *ret_needed, struct error *err)
{
    const struct mongo_shard_key *key = context;
    const struct partition_definition *is =
        &definition_fields(container_definition(container))->key;
    CLEANUP(buf_done) struct buf partition_key;
    CLEANUP(buf_done) struct buf strategy;
    struct document_value paths;
    size_t begin;

    buf_init(&partition_key, BUF_DEFAULT_MAX);
    buf_init(&strategy, BUF_DEFAULT_MAX);
    if (mongo_shard_key_is(is, key)) { /* somebody was faster */
        *ret_needed = false;
        return true;
    }
    if (!unique_check(container, key, err))
        return false;
    begin = document_begin(&partition_key);
    mongo_shard_key_define(key, SLICE("k"), &partition_key);
    document_end(&partition_key, begin);
    (void)document_find(buf_slice(&partition_key), SLICE("k"), &paths);
    begin = document_begin(&strategy);
    document_append_string(&strategy, SLICE("strategy"), mongo_shard_key_strategy(key));
    document_end(&strategy, begin);
    return migrator_rekey(migrator, container,
                          &(struct definition_rekey){.partition_key = paths.document,
                                                     .strategy = buf_slice(&strategy)},
                          true, err);
}

/* Splits the first chunk into what is missing. */
static bool spread_begin(struct migrator *migrator, struct container *container, void *context,
                         bool *ret_needed, struct error *err)
{
    int64_t wanted = *(const int64_t *)context;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    *ret_needed = (int64_t)count < wanted;
    return !*ret_needed || migrator_split(migrator, container, spans[0].id,
                                          (size_t)(wanted - (int64_t)count) + 1, NULL, err);
}

static bool collection_create(struct mongo_call *call, const struct mongo_namespace *name,
                              const struct sharding *sharding, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_collection_terms terms = {.strategy =
                                               mongo_shard_key_strategy(&sharding->shard_key)};
    CLEANUP(buf_done) struct buf key;
    struct document_value value;
    size_t begin;

    buf_init(&key, BUF_DEFAULT_MAX);
    begin = document_begin(&key);
    mongo_shard_key_define(&sharding->shard_key, SLICE("k"), &key);
    document_end(&key, begin);
    (void)document_find(buf_slice(&key), SLICE("k"), &value);
    terms.partition_key = value.document;
    return mongo_collection_make_as(call, name, &terms, &collection, err);
}

static bool already(const struct mongo_namespace *name, struct error *err)
{
    return mongo_error_set(
        err, MONGO_ALREADY_INITIALIZED,
        "sharding already enabled for collection %.*s.%.*s with another key",
        (int)MIN(name->database.len, (size_t)64), (const char *)name->database.data,
        (int)MIN(name->collection.len, (size_t)128), (const char *)name->collection.data);
}

/* *ret_there: it is a collection. *ret_done: it has the key. */
static bool collection_look(struct mongo_call *call, const struct mongo_namespace *name,
                            const struct sharding *sharding, bool *ret_there, bool *ret_done,
                            struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};

    if (!mongo_collection_open(call, name, &collection, err))
        return false;
    if (collection.terms.capped)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS, "can't shard a capped collection");
    if (collection.terms.collation.data && !sharding->collation.data)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "If no collation was specified, the collection collation must be "
                               "{locale: 'simple'}: shard keys compare by their bytes");
    *ret_there = collection.container != NULL;
    *ret_done =
        *ret_there && mongo_shard_key_is(&collection.space.definition->key, &sharding->shard_key);
    return *ret_done || !mongo_collection_is_sharded(&collection) || already(name, err);
}

static void name_append(struct mongo_call *call, const char *field,
                        const struct mongo_namespace *name)
{
    document_append_string(&call->reply, slice_of_text(field),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name->database),
                                        SLICE_ARG(name->collection)));
}

bool mongo_shard_collection(struct mongo_call *call, struct error *err)
{
    struct sharding sharding = {0};
    struct mongo_namespace name;
    bool there = false, done = false;

    if (!sharding_read(call, &name, &sharding, err) ||
        !collection_look(call, &name, &sharding, &there, &done, err))
        return false;
    charged(call);
    if (!there && !collection_create(call, &name, &sharding, err))
        return false;
    if (there && !done && !mongo_change_run(call, &name, rekey_begin, &sharding.shard_key, err))
        return false;
    if (!done && sharding.chunk_count &&
        !mongo_change_run(call, &name, spread_begin, &sharding.chunk_count, err))
        return false;
    document_append_string(&call->reply, SLICE("_t"), SLICE("ShardCollectionResponse"));
    name_append(call, "collectionsharded", &name);
    return true;
}

/* Every database can have sharded collections: there is nothing to enable, but its name is
 * looked at. */
bool mongo_enable_sharding(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {{"primaryShard", MONGO_FIELD_ANY}};

    if (call->target.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'enableSharding.enableSharding' is the wrong type '%s', "
                               "expected type 'string'",
                               mongo_type_name(call->target.type));
    charged(call);
    return mongo_arguments_read(call, fields, ARRAY_LEN(fields), NULL, err) &&
           mongo_database_check(call->target.text, err);
}

/* --- Another key ----------------------------------------------------------------------------- */

static bool sharded_look(struct mongo_call *call, const struct mongo_namespace *name,
                         const struct mongo_shard_key *key, bool refines, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    const struct partition_definition *is;
    bool begins;

    if (!mongo_sharded_open(call, name, &collection, err))
        return false;
    is = &collection.space.definition->key;
    begins =
        is->path_count <= key->count && (is->strategy == PARTITION_STRATEGY_RANGE) == !key->hashed;
    for (size_t i = 0; begins && i < is->path_count; i++)
        begins = mongo_path_is_called(&is->paths[i], key->names[i]);
    return !refines || begins ||
           mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "refineCollectionShardKey shard key must extend the one the collection "
                           "has");
}

bool mongo_reshard_collection(struct mongo_call *call, struct error *err)
{
    struct sharding sharding = {0};
    struct mongo_namespace name;

    charged(call);
    return sharding_read(call, &name, &sharding, err) &&
           sharded_look(call, &name, &sharding.shard_key, false, err) &&
           mongo_change_run(call, &name, rekey_begin, &sharding.shard_key, err) &&
           (!sharding.chunk_count ||
            mongo_change_run(call, &name, spread_begin, &sharding.chunk_count, err));
}

bool mongo_refine_key(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"key", MONGO_FIELD_OBJECT, offsetof(struct sharding, key), true},
        {"enforceUniquenessCheck", MONGO_FIELD_ANY}, /* nothing is unique by the key */
    };
    struct sharding sharding = {0};
    struct mongo_namespace name;

    charged(call);
    return mongo_change_namespace(call, &call->target, &name, err) &&
           mongo_arguments_read(call, fields, ARRAY_LEN(fields), &sharding, err) &&
           mongo_shard_key_read(sharding.key, &sharding.shard_key, err) &&
           sharded_look(call, &name, &sharding.shard_key, true, err) &&
           mongo_change_run(call, &name, rekey_begin, &sharding.shard_key, err);
}

/* Takes back a reshard that is under way. */
static bool reshard_cancel(struct mongo_call *call, const struct container *container,
                           struct error *err)
{
    const struct migration *migration = container_migration(container);

    if (!migration || migration_kind(migration) != MIGRATION_REKEY)
        return mongo_error_set(err, MONGO_NO_SUCH_RESHARD,
                               "Could not find in-progress resharding operation to abort");
    return migrator_cancel(call->services->migrator, container, err);
}

bool mongo_abort_reshard(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;

    charged(call);
    return mongo_change_check(call, err) &&
           mongo_change_namespace(call, &call->target, &name, err) &&
           mongo_arguments_read(call, NULL, 0, NULL, err) &&
           mongo_sharded_open(call, &name, &collection, err) &&
           reshard_cancel(call, collection.container, err);
}
