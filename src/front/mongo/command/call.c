#include "front/mongo/command/call.h"

#include "base/bytes.h"
#include "catalogue/withheld.h"
#include "front/fault.h"
#include "front/mongo/collation/collation.h"
#include "front/mongo/command/preference.h"
#include "front/mongo/command/transact.h"
#include "front/mongo/command/virtual.h"
#include "front/mongo/index/spec.h"
#include "load/offer_meters.h"
#include "maintain/pauses.h"

enum { DATABASE_NAME_MAX = 63, NAMESPACE_MAX = 255, NAME_SHOWN_MAX = 64 };

/* --- Names ----------------------------------------------------------------------------------- */

bool mongo_database_check(struct slice name, struct error *err)
{
    static const char forbidden[] = "/\\. \"$*<>:|?";
    bool good = name.len > 0 && name.len <= DATABASE_NAME_MAX;

    for (size_t i = 0; good && i < name.len; i++)
        good = name.data[i] != 0 && !strchr(forbidden, name.data[i]);
    return good ||
           mongo_error_set(err, MONGO_INVALID_NAMESPACE, "Invalid database name specified '%.*s'",
                           (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data);
}

/* System collections are the server's own, of which there are none. */
static bool collection_check(const struct mongo_namespace *name, struct error *err)
{
    struct slice collection = name->collection;
    bool good = collection.len > 0 && collection.data[0] != '.' &&
                !memchr(collection.data, 0, collection.len) &&
                !memchr(collection.data, '$', collection.len) &&
                name->database.len + 1 + collection.len <= NAMESPACE_MAX;

    if (!good)
        return mongo_error_set(
            err, MONGO_INVALID_NAMESPACE, "Invalid namespace specified '%.*s.%.*s'",
            (int)MIN(name->database.len, (size_t)NAME_SHOWN_MAX), (const char *)name->database.data,
            (int)MIN(collection.len, (size_t)NAME_SHOWN_MAX), (const char *)collection.data);
    return true;
}

bool mongo_call_namespace(const struct mongo_call *call, struct mongo_namespace *ret_namespace,
                          struct error *err)
{
    if (call->target.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE, "collection name has invalid type %s",
                               mongo_type_name(call->target.type));
    *ret_namespace = (struct mongo_namespace){call->message.database, call->target.text};
    return mongo_namespace_check(ret_namespace, err);
}

bool mongo_namespace_check(const struct mongo_namespace *name, struct error *err)
{
    return mongo_database_check(name->database, err) && collection_check(name, err);
}

bool mongo_namespace_read(const struct document_value *text, struct mongo_namespace *ret_namespace,
                          struct error *err)
{
    if (text->type != DOCUMENT_STRING ||
        !slice_split(text->text, '.', &ret_namespace->database, &ret_namespace->collection))
        return mongo_error_set(
            err, MONGO_INVALID_NAMESPACE, "Invalid namespace specified '%.*s'",
            text->type == DOCUMENT_STRING ? (int)MIN(text->text.len, (size_t)NAME_SHOWN_MAX) : 0,
            text->type == DOCUMENT_STRING ? (const char *)text->text.data : "");
    return mongo_database_check(ret_namespace->database, err) &&
           collection_check(ret_namespace, err);
}

/* --- Waiting --------------------------------------------------------------------------------- */

void mongo_account_leave(struct mongo_call *call)
{
    struct slice id = call->account.id;

    assert(!call->transact); /* it has pinned some of them */
    front_account_done(&call->account);
    call->account.id = id;
    call->left = true;
}

bool mongo_account_return(struct mongo_call *call, struct error *err)
{
    if (!call->left)
        return true;
    call->left = false;
    return catalogue_account_open(call->services->catalogue, call->account.id,
                                  &call->account.account, err);
}

bool mongo_may_wait(const struct mongo_call *call, int64_t deadline_ms, struct error *err)
{
    if (call->cancelled && atomic_load_explicit(call->cancelled, memory_order_relaxed))
        return error_set(err, ERROR_TIMED_OUT, "the client has gone");
    if (mongo_waits_are_over(call->mongo->waits))
        return mongo_error_set(err, MONGO_INTERRUPTED_AT_SHUTDOWN,
                               "the server stops; what was begun goes on when it is back");
    if (deadline_ms && clock_read_monotonic_ms(call->services->clock) >= deadline_ms)
        return mongo_error_set(err, MONGO_MAX_TIME_MS_EXPIRED,
                               "operation exceeded time limit; what was begun goes on");
    return true;
}

/* --- Collections ----------------------------------------------------------------------------- */

bool mongo_container_fits(const struct container *container)
{
    return definition_fields(container_definition(container))->identity ==
           DEFINITION_IDENTITY_MONGO;
}

bool mongo_container_is_there(const struct mongo_call *call, const struct container *container)
{
    const void *owner =
        mongo_pending_owner(call->mongo->pending, container_info(container)->number);

    return mongo_container_fits(container) && (!owner || owner == call->maker);
}

/* Somebody who has not committed yet has made it: who wants to make it too comes again. */
static bool pending_refuse(const struct mongo_call *call, const struct container *container,
                           struct error *err)
{
    return mongo_container_is_there(call, container) || !mongo_container_fits(container) ||
           mongo_error_set(err, MONGO_WRITE_CONFLICT,
                           "Caused by :: a transaction that is still open has made the collection "
                           ":: Please retry your operation or multi-document transaction.");
}

static bool collection_take(const struct mongo_call *call, struct container *container,
                            struct mongo_collection *ret_collection, struct error *err)
{
    int64_t wait_ms; /* the message says it */

    if (call->transact && !mongo_transact_pin(call, &container, err)) {
        container_unref(container);
        return false;
    }
    if (!mongo_container_fits(container)) {
        mongo_error_set(err, MONGO_COMMAND_NOT_SUPPORTED,
                        "the container \"%.*s\" was not made as a collection: its items are known "
                        "by \"id\"",
                        (int)MIN(container_info(container)->id.len, (size_t)NAME_SHOWN_MAX),
                        (const char *)container_info(container)->id.data);
        container_unref(container);
        return false;
    }
    call->seen->container = container_info(container)->number;
    if (!pauses_check(call->services->pauses, container,
                      call->command && call->command->need == MONGO_NEED_WRITE, &wait_ms, err)) {
        container_unref(container);
        return false;
    }
    *ret_collection = (struct mongo_collection){
        .container = container,
        .space = container_space(container, call->services->clock, call->services->gates)};
    if (!mongo_terms_of(container, &ret_collection->terms, err)) {
        container_unref(container);
        *ret_collection = (struct mongo_collection){0};
        return false;
    }
    /* an _id is limited by the document alone */
    ret_collection->space.id_bytes_max = 0;
    ret_collection->space.item_bytes_max = MONGO_BSON_BYTES_MAX;
    mongo_preference_look(call, ret_collection);
    return true;
}

static bool virtual_check(const struct mongo_call *call, const struct mongo_virtual *made,
                          struct error *err)
{
    return call->command->need != MONGO_NEED_WRITE ||
           mongo_error_set(err, MONGO_UNAUTHORIZED,
                           "%s.%s is made by the server and cannot be written", made->database,
                           made->collection);
}

bool mongo_collection_open_any(const struct mongo_call *call, const struct mongo_namespace *name,
                               struct mongo_collection *ret_collection, struct error *err)
{
    struct container *container;

    assert(!ret_collection->container);
    *ret_collection =
        (struct mongo_collection){.made = mongo_virtual_find(name->database, name->collection)};
    if (ret_collection->made)
        return virtual_check(call, ret_collection->made, err);
    if (!call->account.account)
        return true; /* made by use, and not yet */
    if (!catalogue_container_open_withheld(call->services->catalogue, call->account.id,
                                           name->database, name->collection, &container, err))
        return err->code == ERROR_NOT_FOUND || err->code == ERROR_OWNER_NOT_FOUND;
    if (!slice_equal(container_info(container)->id, name->collection) ||
        (mongo_container_fits(container) && !mongo_container_is_there(call, container))) {
        container_unref(container); /* by its _rid, which is no name of a collection; or pending */
        return true;
    }
    return collection_take(call, container, ret_collection, err);
}

bool mongo_collection_open(const struct mongo_call *call, const struct mongo_namespace *name,
                           struct mongo_collection *ret_collection, struct error *err)
{
    if (!mongo_collection_open_any(call, name, ret_collection, err))
        return false;
    if (!ret_collection->terms.view_on.data)
        return true;
    mongo_collection_close(ret_collection);
    *ret_collection = (struct mongo_collection){0};
    return mongo_error_set(
        err, MONGO_COMMAND_NOT_SUPPORTED_ON_VIEW, "Namespace %.*s.%.*s is a view, not a collection",
        (int)MIN(name->database.len, (size_t)NAME_SHOWN_MAX), (const char *)name->database.data,
        (int)MIN(name->collection.len, (size_t)NAME_SHOWN_MAX),
        (const char *)name->collection.data);
}

static bool database_make(const struct mongo_call *call, struct slice name, struct error *err)
{
    struct database *database;

    if (!catalogue_database_create(call->services->catalogue, call->account.id, name, NULL,
                                   &database, err))
        return err->code == ERROR_NAME_TAKEN;
    database_unref(database);
    return true;
}

/* What _ids are the same is said by the collation of the collection. */
static void id_index_append(const struct mongo_call *call, struct slice options, struct buf *out)
{
    const struct document_collator *collator = NULL;
    struct document_value collation, view, index;
    struct error unused;
    size_t list;

    if (!document_find(options, SLICE("collation"), &collation) ||
        collation.type != DOCUMENT_OBJECT || document_find(options, SLICE("viewOn"), &view) ||
        !mongo_collator_find(collation.document, &collator, &unused) || !collator)
        return;
    index = document_object(mongo_index_id_definition(collator, call->arena));
    list = document_append_array_begin(out, SLICE("indexes"));
    document_append(out, SLICE("0"), &index);
    document_end(out, list);
}

static void definition_write(const struct mongo_call *call, struct slice name,
                             const struct mongo_collection_terms *terms, struct buf *out)
{
    size_t whole = document_begin(out), policy, paths, path, orrery;

    document_append_string(out, SLICE("id"), name);
    if (terms->partition_key.data) {
        const struct document_value key = document_object(terms->partition_key);

        document_append(out, SLICE("partitionKey"), &key);
    }
    /* only _id has an index by default, as with the service */
    policy = document_append_object_begin(out, SLICE("indexingPolicy"));
    document_append_string(out, SLICE("indexingMode"), SLICE("consistent"));
    document_append_bool(out, SLICE("automatic"), true);
    paths = document_append_array_begin(out, SLICE("includedPaths"));
    document_end(out, paths);
    paths = document_append_array_begin(out, SLICE("excludedPaths"));
    path = document_append_object_begin(out, SLICE("0"));
    document_append_string(out, SLICE("path"), SLICE("/*"));
    document_end(out, path);
    document_end(out, paths);
    document_end(out, policy);
    orrery = document_append_object_begin(out, SLICE("orrery"));
    document_append_string(out, SLICE("identity"), SLICE("_id"));
    if (terms->partition_key.data)
        document_append_string(out, SLICE("strategy"), terms->strategy);
    if (terms->options.data && document_count(terms->options)) {
        const struct document_value kept =
            document_object(mongo_terms_stored(terms->options, call->arena));

        document_append(out, SLICE("mongo"), &kept);
        id_index_append(call, terms->options, out);
    }
    document_end(out, orrery);
    document_end(out, whole);
}

/* *ret_new false: somebody was first. */
static bool container_make(const struct mongo_call *call, const struct mongo_namespace *name,
                           const struct mongo_collection_terms *terms,
                           struct container **ret_container, bool *ret_new, struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct catalogue *catalogue = call->services->catalogue;

    buf_init(&body, BUF_DEFAULT_MAX);
    *ret_new = true;
    definition_write(call, name->collection, terms, &body);
    if (call->transact && !mongo_transact_makes(call, name, err))
        return false;
    if (catalogue_container_create(catalogue, call->account.id, name->database, buf_slice(&body),
                                   terms->offer, ret_container, err)) {
        if (call->transact)
            mongo_transact_made(call, *ret_container, name);
        if (load_meters_apply(call->services->meters, *ret_container, call->services->burst_seconds,
                              err))
            return true;
        container_unref(*ret_container);
        return false;
    }
    *ret_new = false;
    if (call->transact)
        mongo_transact_makes_not(call, name);
    if (err->code != ERROR_NAME_TAKEN ||
        !catalogue_container_open_withheld(catalogue, call->account.id, name->database,
                                           name->collection, ret_container, err))
        return false;
    if (pending_refuse(call, *ret_container, err))
        return true;
    container_unref(*ret_container);
    return false;
}

bool mongo_collection_make(const struct mongo_call *call, const struct mongo_namespace *name,
                           struct mongo_collection *ret_collection, struct error *err)
{
    return mongo_collection_make_as(call, name, &(struct mongo_collection_terms){0}, ret_collection,
                                    err);
}

bool mongo_collection_make_as(const struct mongo_call *call, const struct mongo_namespace *name,
                              const struct mongo_collection_terms *terms,
                              struct mongo_collection *ret_collection, struct error *err)
{
    struct container *container;
    bool is_new;

    assert(call->may_block);
    if (!mongo_collection_open(call, name, ret_collection, err))
        return false;
    if (ret_collection->container)
        return true;
    return database_make(call, name->database, err) &&
           container_make(call, name, terms, &container, &is_new, err) &&
           collection_take(call, container, ret_collection, err);
}

bool mongo_collection_create(const struct mongo_call *call, const struct mongo_namespace *name,
                             const struct mongo_collection_terms *terms,
                             struct mongo_collection *ret_collection, struct error *err)
{
    struct container *container;
    bool is_new;

    assert(call->may_block && !ret_collection->container);
    if (!database_make(call, name->database, err) ||
        !container_make(call, name, terms, &container, &is_new, err))
        return false;
    if (is_new)
        return collection_take(call, container, ret_collection, err);
    container_unref(container);
    return mongo_error_set(err, MONGO_NAMESPACE_EXISTS, "Collection %.*s.%.*s already exists.",
                           (int)MIN(name->database.len, (size_t)NAME_SHOWN_MAX),
                           (const char *)name->database.data,
                           (int)MIN(name->collection.len, (size_t)NAME_SHOWN_MAX),
                           (const char *)name->collection.data);
}

bool mongo_collection_reopen(const struct mongo_call *call, const struct mongo_namespace *name,
                             struct mongo_collection *collection, struct error *err)
{
    mongo_collection_close(collection);
    return mongo_collection_open(call, name, collection, err);
}

void mongo_collection_close(struct mongo_collection *collection)
{
    item_reading_end(TAKE(collection->reading));
    collection->space.reading = NULL;
    container_unref(collection->container);
    collection->container = NULL;
}

/* --- Paying ---------------------------------------------------------------------------------- */

struct metered_call mongo_call_metered(const struct mongo_call *call)
{
    struct item_reading_options options;

    mongo_preference_read(call, &options);
    return (struct metered_call){.strong = front_consistency_is_dear(options.level)};
}

void mongo_call_charged(struct mongo_call *call, const struct metered_call *metered)
{
    call->charge_cru += metered->charge_cru;
    call->wait_ms = MAX(call->wait_ms, metered->wait_ms);
}

bool mongo_call_blocks(struct mongo_call *call)
{
    call->cold = !call->may_block;
    return call->may_block;
}

/* --- Errors ---------------------------------------------------------------------------------- */

struct slice mongo_error_text(const struct mongo_call *call, const struct error *err,
                              int64_t wait_ms)
{
    char id[RANDOM_UUID_SIZE];

    if (err->code == ERROR_MONGO)
        return arena_copy(call->arena, slice_of_text(err->message));
    if (mongo_error_code(err) == MONGO_REQUEST_RATE_TOO_LARGE)
        return arena_printf(call->arena,
                            "Error=16500, RetryAfterMs=%lld, Details='Response status code does "
                            "not indicate success: TooManyRequests (429); Substatus: %u; (%s)'",
                            (long long)MAX(wait_ms, (int64_t)1), err->substatus, err->message);
    if (err->code == ERROR_PARTITION_FULL || err->code == ERROR_LOGICAL_PARTITION_FULL)
        return arena_printf(call->arena,
                            "%s. A collection that is not sharded is stored in one piece: "
                            "shardCollection spreads it by a shard key",
                            err->message);
    random_uuid(id);
    return front_fault_tell(call->services, err, id, call->arena);
}

void mongo_error_append(struct mongo_call *call, const struct error *err, struct buf *out)
{
    document_append_int32(out, SLICE("code"), mongo_error_code(err));
    document_append_string(out, SLICE("errmsg"), mongo_error_text(call, err, call->wait_ms));
}

/* --- Ids ------------------------------------------------------------------------------------- */

/* 4 bytes of seconds and 5 of this run, then 3 that count, all big-endian. */
void mongo_object_id(struct mongo *mongo, uint8_t ret_id[DOCUMENT_OBJECT_ID_SIZE])
{
    uint32_t number =
        (uint32_t)atomic_fetch_add_explicit(&mongo->object_ids, 1, memory_order_relaxed);
    int64_t now_s = clock_read_wall_ms(mongo->options.services.clock) / 1000;

    bytes_put_be32(ret_id, (uint32_t)now_s);
    memcpy(ret_id + 4, mongo->object_id_random, 5);
    ret_id[9] = (uint8_t)(number >> 16);
    ret_id[10] = (uint8_t)(number >> 8);
    ret_id[11] = (uint8_t)number;
}
