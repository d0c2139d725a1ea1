/* Databases and collections: listing, making and dropping them. */
#include "base/bytes.h"
#include "catalogue/container_usage.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"
#include "front/mongo/command/filter.h"
#include "throughput/cost.h"

#include <xxhash.h>

static void metadata_charged(struct mongo_call *call, bool write)
{
    call->charge_cru = cost_metadata(write ? COST_METADATA_WRITE : COST_METADATA_READ);
}

/* {cursor: {id: 0, ns, firstBatch: [...]}}: what such lists fit into at once. */
static void batch_append(struct mongo_call *call, struct slice collection,
                         const struct slice *documents, size_t count)
{
    struct buf *out = &call->reply;
    size_t cursor = document_append_object_begin(out, SLICE("cursor")), list;
    char text[DOCUMENT_INDEX_SIZE];

    document_append_int64(out, SLICE("id"), 0);
    document_append_string(out, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(call->message.database),
                                        SLICE_ARG(collection)));
    list = document_append_array_begin(out, SLICE("firstBatch"));
    for (size_t i = 0; i < count; i++) {
        const struct document_value value = document_object(documents[i]);

        document_append(out, document_index_key((uint32_t)i, text), &value);
    }
    document_end(out, list);
    document_end(out, cursor);
}

/* --- Databases ------------------------------------------------------------------------------- */

static size_t collections_count(const struct database *database)
{
    size_t count = 0;

    for (size_t i = 0; i < database_container_count(database); i++)
        count += mongo_container_fits(database_container(database, i));
    return count;
}

static bool database_bytes(const struct mongo_call *call, const struct database *database,
                           uint64_t *ret_bytes, struct error *err)
{
    *ret_bytes = 0;
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        struct container_usage usage;

        if (!mongo_container_fits(container))
            continue;
        if (!container_usage_all(container, call->arena, &usage, err))
            return false;
        *ret_bytes += usage.bytes;
    }
    return true;
}

struct databases {
    struct slice filter;
    bool name_only;
};

/* A database without collections is none to MongoDB's clients. */
bool mongo_list_databases(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"filter", MONGO_FIELD_OBJECT, offsetof(struct databases, filter)},
        {"nameOnly", MONGO_FIELD_BOOL, offsetof(struct databases, name_only)},
        {"authorizedDatabases", MONGO_FIELD_ANY},
    };
    struct databases asked = {0};
    const struct account *account = call->account.account;
    size_t all = account ? account_database_count(account) : 0, count = 0, list;
    struct slice *documents = ARENA_ARRAY(call->arena, struct slice, all + 1);
    struct buf *out = &call->reply;
    char text[DOCUMENT_INDEX_SIZE];
    uint64_t total = 0;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err))
        return false;
    for (size_t i = 0; i < all; i++) {
        const struct database *database = account_database(account, i);
        CLEANUP(buf_done) struct buf one;
        uint64_t bytes = 0;
        size_t begin;

        buf_init(&one, BUF_DEFAULT_MAX);
        if (!collections_count(database))
            continue;
        begin = document_begin(&one);
        document_append_string(&one, SLICE("name"), database_info(database)->id);
        if (!asked.name_only) {
            if (!database_bytes(call, database, &bytes, err))
                return false;
            document_append_int64(&one, SLICE("sizeOnDisk"), (int64_t)bytes);
            document_append_bool(&one, SLICE("empty"), false);
        }
        document_end(&one, begin);
        total += bytes;
        documents[count++] = arena_copy(call->arena, buf_slice(&one));
    }
    if (!mongo_filter_documents(call, asked.filter, documents, &count, err))
        return false;
    list = document_append_array_begin(out, SLICE("databases"));
    for (size_t i = 0; i < count; i++) {
        const struct document_value value = document_object(documents[i]);

        document_append(out, document_index_key((uint32_t)i, text), &value);
    }
    document_end(out, list);
    if (!asked.name_only) {
        document_append_int64(out, SLICE("totalSize"), (int64_t)total);
        document_append_int64(out, SLICE("totalSizeMb"), (int64_t)(total >> 20));
    }
    metadata_charged(call, false);
    return true;
}

bool mongo_drop_database(struct mongo_call *call, struct error *err)
{
    if (!mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_database_check(call->message.database, err))
        return false;
    metadata_charged(call, true);
    if (!catalogue_database_drop(call->services->catalogue, call->account.id,
                                 call->message.database, SLICE_NONE, err))
        return err->code == ERROR_NOT_FOUND;
    document_append_string(&call->reply, SLICE("dropped"), call->message.database);
    return true;
}

/* --- Collections ----------------------------------------------------------------------------- */

/* A UUID that stays with the collection: of the numbers it is known by, which are never used again.
 */
static void uuid_append(struct buf *out, const struct container *container)
{
    const uint32_t numbers[] = {container_account_number(container),
                                container_database_number(container),
                                container_info(container)->number};
    XXH128_hash_t hash = XXH3_128bits(numbers, sizeof numbers);
    uint8_t bytes[16];
    const struct document_value uuid = {
        .type = DOCUMENT_BINARY, .binary = {.bytes = slice_of(bytes, sizeof bytes), .subtype = 4}};

    bytes_put_le64(bytes, hash.low64);
    bytes_put_le64(bytes + 8, hash.high64);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x80); /* version 8: made as the maker likes */
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    document_append(out, SLICE("uuid"), &uuid);
}

static void id_index_append(struct buf *out, struct slice name)
{
    size_t index = document_append_object_begin(out, name), key;

    document_append_int32(out, SLICE("v"), 2);
    key = document_append_object_begin(out, SLICE("key"));
    document_append_int32(out, SLICE("_id"), 1);
    document_end(out, key);
    document_append_string(out, SLICE("name"), SLICE("_id_"));
    document_end(out, index);
}

static struct slice collection_show(struct mongo_call *call, const struct container *container,
                                    bool name_only)
{
    CLEANUP(buf_done) struct buf one;
    size_t begin, part;

    buf_init(&one, BUF_DEFAULT_MAX);
    begin = document_begin(&one);
    document_append_string(&one, SLICE("name"), container_info(container)->id);
    document_append_string(&one, SLICE("type"), SLICE("collection"));
    if (!name_only) {
        document_end(&one, document_append_object_begin(&one, SLICE("options")));
        part = document_append_object_begin(&one, SLICE("info"));
        document_append_bool(&one, SLICE("readOnly"), false);
        uuid_append(&one, container);
        document_end(&one, part);
        id_index_append(&one, SLICE("idIndex"));
    }
    document_end(&one, begin);
    return arena_copy(call->arena, buf_slice(&one));
}

struct collections {
    struct slice filter, cursor;
    bool name_only;
};

bool mongo_list_collections(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"filter", MONGO_FIELD_OBJECT, offsetof(struct collections, filter)},
        {"cursor", MONGO_FIELD_OBJECT, offsetof(struct collections, cursor)},
        {"nameOnly", MONGO_FIELD_BOOL, offsetof(struct collections, name_only)},
        {"authorizedCollections", MONGO_FIELD_ANY},
    };
    CLEANUP(database_unref) struct database *database = NULL;
    struct collections asked = {0};
    struct slice *documents;
    size_t all = 0, count = 0;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err) ||
        !mongo_database_check(call->message.database, err))
        return false;
    if (catalogue_database_open(call->services->catalogue, call->account.id, call->message.database,
                                &database, err))
        all = database_container_count(database);
    else if (err->code != ERROR_NOT_FOUND && err->code != ERROR_OWNER_NOT_FOUND)
        return false;
    documents = ARENA_ARRAY(call->arena, struct slice, all + 1);
    for (size_t i = 0; i < all; i++) {
        const struct container *container = database_container(database, i);

        if (mongo_container_fits(container))
            documents[count++] = collection_show(call, container, asked.name_only);
    }
    if (!mongo_filter_documents(call, asked.filter, documents, &count, err))
        return false;
    batch_append(call, SLICE("$cmd.listCollections"), documents, count);
    metadata_charged(call, false);
    return true;
}

struct creation {
    bool capped;
    struct document_value validator, view_on, pipeline, collation, timeseries, clustered, expires;
    struct document_value images;
};

/* Options that would make another collection of it are refused, not passed over. */
static bool creation_check(const struct creation *creation, struct error *err)
{
    const struct {
        const struct document_value *value;
        const char *name;
    } options[] = {
        {&creation->validator, "validator"},
        {&creation->view_on, "viewOn"},
        {&creation->pipeline, "pipeline"},
        {&creation->collation, "collation"},
        {&creation->timeseries, "timeseries"},
        {&creation->clustered, "clusteredIndex"},
        {&creation->expires, "expireAfterSeconds"},
        {&creation->images, "changeStreamPreAndPostImages"},
    };

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (options[i].value->type != DOCUMENT_UNDEFINED && options[i].value->type != DOCUMENT_NULL)
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "create: %s is not offered yet",
                                   options[i].name);
    return !creation->capped ||
           mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "create: capped is not offered yet");
}

static bool exists(const struct mongo_namespace *name, struct error *err)
{
    return mongo_error_set(
        err, MONGO_NAMESPACE_EXISTS, "Collection %.*s.%.*s already exists.",
        (int)MIN(name->database.len, (size_t)64), (const char *)name->database.data,
        (int)MIN(name->collection.len, (size_t)128), (const char *)name->collection.data);
}

/* mongorestore sends idIndex, which is as it is. */
bool mongo_create(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"capped", MONGO_FIELD_BOOL, offsetof(struct creation, capped)},
        {"validator", MONGO_FIELD_VALUE, offsetof(struct creation, validator)},
        {"viewOn", MONGO_FIELD_VALUE, offsetof(struct creation, view_on)},
        {"pipeline", MONGO_FIELD_VALUE, offsetof(struct creation, pipeline)},
        {"collation", MONGO_FIELD_VALUE, offsetof(struct creation, collation)},
        {"timeseries", MONGO_FIELD_VALUE, offsetof(struct creation, timeseries)},
        {"clusteredIndex", MONGO_FIELD_VALUE, offsetof(struct creation, clustered)},
        {"expireAfterSeconds", MONGO_FIELD_VALUE, offsetof(struct creation, expires)},
        {"changeStreamPreAndPostImages", MONGO_FIELD_VALUE, offsetof(struct creation, images)},
        {"idIndex", MONGO_FIELD_ANY},
        {"autoIndexId", MONGO_FIELD_ANY},
    };
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct creation creation = {0};
    struct mongo_namespace name;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &creation, err) ||
        !creation_check(&creation, err) || !mongo_collection_open(call, &name, &collection, err))
        return false;
    metadata_charged(call, true);
    if (collection.container)
        return exists(&name, err);
    return mongo_collection_make(call, &name, &collection, err);
}

bool mongo_drop(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_namespace name;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, NULL, 0, NULL, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    metadata_charged(call, true);
    if (!collection.container)
        return true;
    if (!catalogue_container_drop(call->services->catalogue, call->account.id, name.database,
                                  name.collection, SLICE_NONE, err))
        return err->code == ERROR_NOT_FOUND;
    document_append_int32(&call->reply, SLICE("nIndexesWas"), 1);
    document_append_string(&call->reply, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name.database),
                                        SLICE_ARG(name.collection)));
    return true;
}
