/* customAction: what the hosted service adds to the commands, for throughput and shard keys. */
#include "catalogue/container_usage.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/item.h"
#include "front/mongo/sharding/changing.h"
#include "front/mongo/sharding/key.h"
#include "load/offer_meters.h"
#include "throughput/cost.h"

struct action {
    struct slice collection, shard_key, indexes, autoscale;
    struct document_value throughput, start;

    struct offer_request offer;
};

static const struct mongo_field action_fields[] = {
    {"collection", MONGO_FIELD_STRING, offsetof(struct action, collection)},
    {"offerThroughput", MONGO_FIELD_VALUE, offsetof(struct action, throughput)},
    {"autoScaleSettings", MONGO_FIELD_OBJECT, offsetof(struct action, autoscale)},
    {"shardKey", MONGO_FIELD_STRING, offsetof(struct action, shard_key)},
    {"indexes", MONGO_FIELD_ARRAY, offsetof(struct action, indexes)},
    {"startAtOperationTime", MONGO_FIELD_VALUE, offsetof(struct action, start)},
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* --- Throughput ------------------------------------------------------------------------------ */

struct autoscale {
    struct document_value max;
};

static bool autoscale_read(struct action *action, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"maxThroughput", MONGO_FIELD_VALUE, offsetof(struct autoscale, max), true}};
    struct autoscale settings = {0};

    if (!mongo_fields_read(action->autoscale, "customAction.autoScaleSettings", fields,
                           ARRAY_LEN(fields), &settings, err))
        return false;
    if (!document_to_int64(&settings.max, &action->offer.autoscale_max))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "autoScaleSettings.maxThroughput must be a whole number");
    action->offer.autoscale_given = true;
    return true;
}

static bool offer_read(struct action *action, struct error *err)
{
    if (is_given(&action->throughput)) {
        if (!document_to_int64(&action->throughput, &action->offer.ru))
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "offerThroughput must be a whole number of RU/s");
        action->offer.given = true;
    }
    if (action->autoscale.data && !autoscale_read(action, err))
        return false;
    return !action->offer.given || !action->offer.autoscale_given ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "offerThroughput and autoScaleSettings exclude one another");
}

static bool asks_throughput(const struct action *action)
{
    return action->offer.given || action->offer.autoscale_given;
}

/* Of an autoscale offer a tenth is always there. */
static void offer_append(struct mongo_call *call, const struct offer *offer)
{
    size_t settings;

    document_append_int64(&call->reply, SLICE("provisionedThroughput"),
                          (int64_t)(offer->kind == OFFER_AUTOSCALE ? offer->ru / 10 : offer->ru));
    if (offer->kind != OFFER_AUTOSCALE)
        return;
    settings = document_append_object_begin(&call->reply, SLICE("autoScaleSettings"));
    document_append_int64(&call->reply, SLICE("maxThroughput"), (int64_t)offer->ru);
    document_end(&call->reply, settings);
}

/* What the containers of the offer store, and the new budget for each of them. */
static bool throughput_replace(struct mongo_call *call, const struct database *database,
                               const struct offer *offer, const struct action *action,
                               struct error *err)
{
    struct catalogue *catalogue = call->services->catalogue;
    struct catalogue_offer_change change = {.request = action->offer, .if_match = SLICE_NONE};
    CLEANUP(database_unref) struct database *now = NULL;
    struct offer is = *offer;

    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        struct container_usage usage;

        if (container_offer(container)->number != offer->number)
            continue;
        if (!container_usage_all(container, call->arena, &usage, err))
            return false;
        change.bytes += usage.bytes;
    }
    if (!catalogue_offer_replace(catalogue, call->account.id, slice_of_text(is.rid), &change, &is,
                                 err) ||
        !catalogue_database_open(catalogue, call->account.id, database_info(database)->id, &now,
                                 err))
        return false;
    for (size_t i = 0; i < database_container_count(now); i++) {
        struct container *container = database_container(now, i);

        if (container_offer(container)->number == is.number &&
            !load_meters_apply(call->services->meters, container, call->services->burst_seconds,
                               err))
            return false;
    }
    return true;
}

/* --- Databases ------------------------------------------------------------------------------- */

static bool database_need(const struct mongo_call *call, struct database **ret_database,
                          struct error *err)
{
    return call->account.account
               ? catalogue_database_open(call->services->catalogue, call->account.id,
                                         call->message.database, ret_database, err)
               : mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND, "there is no such database");
}

static bool database_create(struct mongo_call *call, const struct action *action, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    return catalogue_database_create(call->services->catalogue, call->account.id,
                                     call->message.database, &action->offer, &database, err);
}

static bool database_update(struct mongo_call *call, const struct action *action, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    if (!database_need(call, &database, err))
        return false;
    if (!asks_throughput(action))
        return true;
    if (!database_offer(database))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "the database has no throughput of its own: its collections have");
    return throughput_replace(call, database, database_offer(database), action, err);
}

static bool database_get(struct mongo_call *call, const struct action *action UNUSED,
                         struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    if (!database_need(call, &database, err))
        return false;
    document_append_string(&call->reply, SLICE("database"), database_info(database)->id);
    if (database_offer(database))
        offer_append(call, database_offer(database));
    return true;
}

/* --- Collections ----------------------------------------------------------------------------- */

static bool name_read(const struct mongo_call *call, const struct action *action,
                      struct mongo_namespace *ret_name, struct error *err)
{
    if (!action->collection.data)
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'customAction.collection' is missing but a required "
                               "field");
    *ret_name = (struct mongo_namespace){call->message.database, action->collection};
    return mongo_namespace_check(ret_name, err);
}

static bool missing(const struct mongo_namespace *name, struct error *err)
{
    return mongo_error_set(
        err, MONGO_NAMESPACE_NOT_FOUND, "ns does not exist: %.*s.%.*s",
        (int)MIN(name->database.len, (size_t)64), (const char *)name->database.data,
        (int)MIN(name->collection.len, (size_t)128), (const char *)name->collection.data);
}

/* {key: {_id: 1}, name}: is there, whatever is said. */
static bool is_id_index(const struct document_value *index)
{
    struct document_value key, id;

    return index->type == DOCUMENT_OBJECT && document_find(index->document, SLICE("key"), &key) &&
           key.type == DOCUMENT_OBJECT && document_count(key.document) == 1 &&
           document_find(key.document, SLICE("_id"), &id);
}

static bool indexes_check(const struct action *action, struct error *err)
{
    struct document_iter iter;
    bool id = false, others = false;

    if (!action->indexes.data)
        return true;
    document_iter_init(&iter, action->indexes);
    while (document_iter_next(&iter)) {
        id |= is_id_index(&iter.value);
        others |= !is_id_index(&iter.value);
    }
    if (!id)
        return mongo_error_set(err, MONGO_BAD_VALUE, "indexes need one on _id: {key: {_id: 1}}");
    return !others || mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                      "customAction: indexes besides that on _id are made by "
                                      "createIndexes");
}

/* A path is a shard key that is hashed. */
static bool shard_key_read(const struct action *action, struct mongo_shard_key *ret_key,
                           struct error *err)
{
    CLEANUP(buf_done) struct buf pattern;
    size_t begin;
    bool fine;

    buf_init(&pattern, BUF_DEFAULT_MAX);
    begin = document_begin(&pattern);
    document_append_string(&pattern, action->shard_key, SLICE("hashed"));
    document_end(&pattern, begin);
    fine = mongo_shard_key_read(buf_slice(&pattern), ret_key, err);
    ret_key->names[0] = action->shard_key;
    return fine;
}

static bool collection_create(struct mongo_call *call, const struct action *action,
                              struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_collection_terms terms = {.offer = &action->offer};
    CLEANUP(buf_done) struct buf key;
    struct document_value value;
    struct mongo_shard_key shard_key;
    struct mongo_namespace name;
    size_t begin;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (!name_read(call, action, &name, err) || !indexes_check(action, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (collection.container)
        return mongo_error_set(
            err, MONGO_NAMESPACE_EXISTS, "Collection already exists. NS: %.*s.%.*s",
            (int)MIN(name.database.len, (size_t)64), (const char *)name.database.data,
            (int)MIN(name.collection.len, (size_t)128), (const char *)name.collection.data);
    if (action->shard_key.data) {
        if (!shard_key_read(action, &shard_key, err))
            return false;
        begin = document_begin(&key);
        mongo_shard_key_define(&shard_key, SLICE("k"), &key);
        document_end(&key, begin);
        (void)document_find(buf_slice(&key), SLICE("k"), &value);
        terms.partition_key = value.document;
        terms.strategy = mongo_shard_key_strategy(&shard_key);
    }
    return mongo_collection_make_as(call, &name, &terms, &collection, err);
}

static bool collection_update(struct mongo_call *call, const struct action *action,
                              struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(database_unref) struct database *database = NULL;
    struct mongo_namespace name;
    const struct offer *offer;

    if (!name_read(call, action, &name, err) || !indexes_check(action, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!collection.container)
        return missing(&name, err);
    if (action->shard_key.data)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "UpdateCollection does not change the shard key: reshardCollection");
    if (!asks_throughput(action))
        return true;
    offer = container_offer(collection.container);
    if (offer->shared)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "the collection has no throughput of its own: its database has");
    return database_need(call, &database, err) &&
           throughput_replace(call, database, offer, action, err);
}

static bool collection_get(struct mongo_call *call, const struct action *action, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;

    if (!name_read(call, action, &name, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!collection.container)
        return missing(&name, err);
    document_append_string(&call->reply, SLICE("database"), name.database);
    document_append_string(&call->reply, SLICE("collection"), name.collection);
    if (mongo_collection_is_sharded(&collection))
        mongo_shard_key_append(&collection.space.definition->key, SLICE("shardKeyDefinition"),
                               &call->reply);
    if (!container_offer(collection.container)->shared)
        offer_append(call, container_offer(collection.container));
    return true;
}

static bool tokens_get(struct mongo_call *call UNUSED, const struct action *action UNUSED,
                       struct error *err)
{
    return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                           "customAction: GetChangeStreamTokens is not offered: one change stream "
                           "is over all chunks");
}

/* --- The command ----------------------------------------------------------------------------- */

/* A failure is told by errMsg too, as the service spells it. */
bool mongo_custom_action(struct mongo_call *call, struct error *err)
{
    static const struct {
        const char *name;
        bool writes;
        bool (*run)(struct mongo_call *call, const struct action *action, struct error *err);
    } actions[] = {
        {"CreateDatabase", true, database_create},
        {"UpdateDatabase", true, database_update},
        {"GetDatabase", false, database_get},
        {"CreateCollection", true, collection_create},
        {"UpdateCollection", true, collection_update},
        {"GetCollection", false, collection_get},
        {"GetChangeStreamTokens", false, tokens_get},
    };
    struct action action = {0};

    call->errmsg_twice = true;
    if (!mongo_database_check(call->message.database, err) ||
        !mongo_arguments_read(call, action_fields, ARRAY_LEN(action_fields), &action, err) ||
        !offer_read(&action, err))
        return false;
    for (size_t i = 0; call->target.type == DOCUMENT_STRING && i < ARRAY_LEN(actions); i++) {
        if (!slice_equal(call->target.text, slice_of_text(actions[i].name)))
            continue;
        call->charge_cru =
            cost_metadata(actions[i].writes ? COST_METADATA_WRITE : COST_METADATA_READ);
        return actions[i].run(call, &action, err);
    }
    return mongo_error_set(err, MONGO_BAD_VALUE, "customAction has no such action");
}
