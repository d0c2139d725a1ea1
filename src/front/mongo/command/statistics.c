/* How much there is: collStats, dbStats, dataSize, validate, and what servers with files of their
 * own are asked for.
 *
 * Numbers are those every commit keeps (catalogue/container_usage.h): bytes count keys and headers
 * of items. What indexes take is the engine's estimate of their ranges; documents are found by _id
 * where they are stored, so its index takes nothing besides. */
#include "front/mongo/command/statistics.h"
#include "base/clock.h"
#include "catalogue/container_usage.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/reading.h"
#include "front/mongo/command/validation.h"
#include "front/mongo/index/spec.h"
#include "throughput/cost.h"

enum { PAGE_ROWS = 1000, PAGE_BYTES = 16 * 1024 * 1024, DEPTH_MAX = 200 };

static void read_charged(struct mongo_call *call)
{
    call->charge_cru += cost_metadata(COST_METADATA_READ);
}

/* An int32 where it is one, as clients that decode strictly have it of a server. */
static void number_append_to(struct buf *out, struct slice name, uint64_t number)
{
    if (number <= INT32_MAX)
        document_append_int32(out, name, (int32_t)number);
    else
        document_append_int64(out, name, (int64_t)number);
}

static void number_append(struct buf *out, const char *name, uint64_t number)
{
    number_append_to(out, slice_of_text(name), number);
}

static bool scale_check(int64_t scale, struct error *err)
{
    return scale >= 1 ||
           mongo_error_set(err, 51024, "BSON field 'scale' value must be >= 1, actual value '%lld'",
                           (long long)scale);
}

/* --- collStats ------------------------------------------------------------------------------- */

bool mongo_index_sizes(const struct container *container, uint32_t node, struct arena *arena,
                       struct mongo_storage *storage, struct error *err)
{
    const struct definition_fields *fields = definition_fields(container_definition(container));
    struct mongo_index_size *sizes =
        ARENA_ARRAY(arena, struct mongo_index_size, fields->index_count + 1);
    size_t count = 0;

    sizes[count++] = (struct mongo_index_size){MONGO_INDEX_ID, 0};
    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];
        struct mongo_index_size *size =
            slice_equal(index->name, MONGO_INDEX_ID) ? &sizes[0] : &sizes[count++];

        size->name = index->name;
        if (!container_usage_index(container, node, index, arena, &size->bytes, err))
            return false;
    }
    storage->indexes = sizes;
    storage->index_count = count;
    return true;
}

static uint64_t sizes_total(const struct mongo_index_size *sizes, size_t count)
{
    uint64_t total = 0;

    for (size_t i = 0; i < count; i++)
        total += sizes[i].bytes;
    return total;
}

void mongo_storage_statistics(const struct mongo_collection *collection,
                              const struct mongo_storage *storage, int64_t scale, struct buf *out)
{
    const struct container_usage *usage = &storage->usage;
    uint64_t indexed = sizes_total(storage->indexes, storage->index_count);
    size_t part;

    const struct mongo_terms *terms = &collection->terms;
    int32_t indexes = mongo_index_count(collection);

    number_append(out, "size", usage->bytes / (uint64_t)scale);
    number_append(out, "count", usage->items);
    if (usage->items)
        number_append(out, "avgObjSize", usage->bytes / usage->items);
    number_append(out, "storageSize", usage->bytes / (uint64_t)scale);
    document_append_bool(out, SLICE("capped"), terms->capped);
    if (terms->capped) {
        document_append_int64(out, SLICE("max"), terms->max);
        document_append_int64(out, SLICE("maxSize"), terms->size / scale);
    }
    document_append_int32(out, SLICE("nindexes"), indexes);
    document_end(out, document_append_array_begin(out, SLICE("indexBuilds")));
    part = document_append_object_begin(out, SLICE("indexSizes"));
    for (size_t i = 0; i < storage->index_count; i++)
        number_append_to(out, storage->indexes[i].name,
                         storage->indexes[i].bytes / (uint64_t)scale);
    document_end(out, part);
    number_append(out, "totalIndexSize", indexed / (uint64_t)scale);
    number_append(out, "totalSize", (usage->bytes + indexed) / (uint64_t)scale);
    document_append_int32(out, SLICE("scaleFactor"), (int32_t)MIN(scale, (int64_t)INT32_MAX));
}

/* Of all nodes; container NULL: nothing. */
static bool storage_read(const struct container *container, struct arena *arena,
                         struct mongo_storage *ret_storage, struct error *err)
{
    *ret_storage = (struct mongo_storage){0};
    return !container ||
           (container_usage_all(container, arena, &ret_storage->usage, err) &&
            mongo_index_sizes(container, CONTAINER_USAGE_ALL_NODES, arena, ret_storage, err));
}

struct asked_scale {
    int64_t scale;
};

static const struct mongo_field scale_fields[] = {
    {"scale", MONGO_FIELD_NUMBER, offsetof(struct asked_scale, scale)},
    {"verbose", MONGO_FIELD_ANY},
    {"waitForLock", MONGO_FIELD_ANY},
    {"freeStorage", MONGO_FIELD_ANY},
};

bool mongo_coll_stats(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct asked_scale asked = {.scale = 1};
    struct mongo_storage storage;
    struct mongo_namespace name;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, scale_fields, ARRAY_LEN(scale_fields), &asked, err) ||
        !scale_check(asked.scale, err) || !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!storage_read(collection.container, call->arena, &storage, err))
        return false;
    read_charged(call);
    document_append_string(&call->reply, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name.database),
                                        SLICE_ARG(name.collection)));
    document_append_bool(&call->reply, SLICE("sharded"),
                         collection.container && !container_is_fixed(collection.container));
    mongo_storage_statistics(&collection, &storage, asked.scale, &call->reply);
    return true;
}

/* --- dbStats --------------------------------------------------------------------------------- */

struct totals {
    uint64_t collections, views, objects, bytes, indexes, index_bytes;
};

static bool container_total(struct mongo_call *call, const struct container *container,
                            struct totals *totals, struct error *err)
{
    struct mongo_storage storage;
    struct mongo_terms terms;

    if (!mongo_terms_of(container, &terms, err))
        return false;
    if (terms.view_on.data) {
        totals->views++;
        return true;
    }
    if (!storage_read(container, call->arena, &storage, err))
        return false;
    totals->collections++;
    totals->indexes += storage.index_count;
    totals->index_bytes += sizes_total(storage.indexes, storage.index_count);
    totals->objects += storage.usage.items;
    totals->bytes += storage.usage.bytes;
    return true;
}

static bool database_total(struct mongo_call *call, struct totals *ret_totals, struct error *err)
{
    CLEANUP(database_unref) struct database *database = NULL;

    *ret_totals = (struct totals){0};
    if (!catalogue_database_open(call->services->catalogue, call->account.id,
                                 call->message.database, &database, err))
        return err->code == ERROR_NOT_FOUND || err->code == ERROR_OWNER_NOT_FOUND;
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);

        if (mongo_container_is_there(call, container) &&
            !container_total(call, container, ret_totals, err))
            return false;
    }
    return true;
}

bool mongo_db_stats(struct mongo_call *call, struct error *err)
{
    struct asked_scale asked = {.scale = 1};
    struct buf *out = &call->reply;
    struct totals totals;

    if (!mongo_arguments_read(call, scale_fields, ARRAY_LEN(scale_fields), &asked, err) ||
        !scale_check(asked.scale, err) || !mongo_database_check(call->message.database, err) ||
        !database_total(call, &totals, err))
        return false;
    read_charged(call);
    document_append_string(out, SLICE("db"), call->message.database);
    number_append(out, "collections", totals.collections);
    number_append(out, "views", totals.views);
    number_append(out, "objects", totals.objects);
    document_append_double(out, SLICE("avgObjSize"),
                           totals.objects ? (double)totals.bytes / (double)totals.objects : 0);
    document_append_double(out, SLICE("dataSize"), (double)totals.bytes / (double)asked.scale);
    document_append_double(out, SLICE("storageSize"), (double)totals.bytes / (double)asked.scale);
    number_append(out, "indexes", totals.indexes);
    document_append_double(out, SLICE("indexSize"),
                           (double)totals.index_bytes / (double)asked.scale);
    document_append_double(out, SLICE("totalSize"),
                           (double)(totals.bytes + totals.index_bytes) / (double)asked.scale);
    document_append_int64(out, SLICE("scaleFactor"), asked.scale);
    return true;
}

/* --- dataSize -------------------------------------------------------------------------------- */

struct data_size {
    struct document_value pattern, min, max;
};

bool mongo_data_size(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"keyPattern", MONGO_FIELD_VALUE, offsetof(struct data_size, pattern)},
        {"min", MONGO_FIELD_VALUE, offsetof(struct data_size, min)},
        {"max", MONGO_FIELD_VALUE, offsetof(struct data_size, max)},
        {"estimate", MONGO_FIELD_ANY}, /* it is exact either way */
    };
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    int64_t began_ms = clock_read_monotonic_ms(call->services->clock);
    struct container_usage usage = {0};
    struct data_size asked = {0};
    struct mongo_namespace name;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err) ||
        !mongo_namespace_read(&call->target, &name, err))
        return false;
    if (asked.pattern.type == DOCUMENT_OBJECT || asked.min.type == DOCUMENT_OBJECT ||
        asked.max.type == DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "dataSize: of a part of a collection it is not told: keyPattern, "
                               "min and max are not offered");
    if (!mongo_collection_open(call, &name, &collection, err) ||
        (collection.container &&
         !container_usage_all(collection.container, call->arena, &usage, err)))
        return false;
    read_charged(call);
    document_append_bool(&call->reply, SLICE("estimate"), false);
    document_append_int64(&call->reply, SLICE("size"), (int64_t)usage.bytes);
    document_append_int64(&call->reply, SLICE("numObjects"), (int64_t)usage.items);
    document_append_int64(&call->reply, SLICE("millis"),
                          clock_read_monotonic_ms(call->services->clock) - began_ms);
    return true;
}

/* --- validate -------------------------------------------------------------------------------- */

/* The keys of an index, as its documents should have them and as it has them. */
struct keys {
    const struct index_definition *index;
    uint64_t expected, found;
};

struct looking {
    struct mongo_call *call;
    struct keys *keys;
    size_t key_count;
    struct mongo_validation validation;
    struct arena *scratch;
    uint64_t documents, broken, non_compliant;
};

static bool document_keys(struct looking *looking, struct slice document, struct error *err)
{
    for (size_t i = 0; i < looking->key_count; i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct index_entry *entries;
        size_t count;

        if (!index_definition_entries(looking->keys[i].index, document, arena, &entries, &count,
                                      err))
            return false;
        looking->keys[i].expected += count;
    }
    return true;
}

/* Every document is BSON that begins with its _id, and is asked what the validator says of it. */
static bool document_look(void *self, const struct document_value *value, struct error *err)
{
    const struct document_limits limits = {.depth_max = DEPTH_MAX};
    struct looking *looking = self;
    struct document_iter iter;
    struct error unused;
    bool holds;

    looking->documents++;
    if (!document_validate(value->document, &limits, &unused)) {
        looking->broken++;
        return true;
    }
    document_iter_init(&iter, value->document);
    if (!document_iter_next(&iter) || !slice_equal(iter.key, SLICE("_id")))
        looking->broken++;
    if (!mongo_validation_holds(&looking->validation, value->document, looking->scratch, &holds,
                                err))
        return false;
    looking->non_compliant += !holds;
    return document_keys(looking, value->document, err);
}

/* The entries that the partitions hold of each index. */
static bool keys_count(const struct mongo_collection *collection, struct looking *looking,
                       struct error *err)
{
    for (size_t i = 0; i < looking->key_count; i++) {
        if (!container_index_count(collection->container, looking->keys[i].index,
                                   &looking->keys[i].found, err))
            return false;
        front_call_breathe(&looking->call->front);
    }
    return true;
}

static void keys_find(const struct mongo_collection *collection, struct looking *looking)
{
    const struct definition_fields *fields =
        definition_fields(container_definition(collection->container));

    looking->keys = ARENA_ARRAY(looking->call->arena, struct keys, fields->index_count + 1);
    for (size_t i = 0; i < fields->index_count; i++)
        if (fields->indexes[i]->state == INDEX_READY &&
            !slice_equal(fields->indexes[i]->name, MONGO_INDEX_ID))
            looking->keys[looking->key_count++] = (struct keys){.index = fields->indexes[i]};
}

static bool keys_differ(const struct looking *looking)
{
    for (size_t i = 0; i < looking->key_count; i++)
        if (looking->keys[i].expected != looking->keys[i].found)
            return true;
    return false;
}

static void warnings_append(struct buf *out, const struct looking *looking, bool counted)
{
    size_t list = document_append_array_begin(out, SLICE("warnings"));
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;

    if (looking->non_compliant)
        document_append_string(out, document_index_key(count++, text),
                               SLICE("Detected one or more documents not compliant with the "
                                     "collection's schema. Check nNonCompliantDocuments."));
    if (counted && keys_differ(looking))
        document_append_string(out, document_index_key(count++, text),
                               SLICE("The keys of an index are not as many as its documents have: "
                                     "the collection was written to meanwhile, or the index is "
                                     "damaged. Validate again when nobody writes."));
    document_end(out, list);
}

static bool collection_look(const struct mongo_collection *collection, struct looking *looking,
                            struct error *err)
{
    struct mongo_reading reading = {.shape = MONGO_SHAPE_DOCUMENT, .limit = UINT64_MAX};
    struct mongo_page page = {
        .rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES, .row = document_look, .self = looking};

    if (!mongo_deadline(looking->call, &page.deadline_ms, err) ||
        !mongo_reading_prepare(looking->call, &reading, looking->call->arena, err))
        return false;
    do {
        CLEANUP(arena_free) struct arena *scratch = arena_new();

        looking->scratch = scratch;
        if (!mongo_reading_page(looking->call, collection, &reading, &page, err))
            return false;
        front_call_breathe(&looking->call->front);
    } while (page.continuation.len);
    return true;
}

static void texts_append(struct buf *out, const char *name, const char *text)
{
    size_t list = document_append_array_begin(out, slice_of_text(name));

    if (text)
        document_append_string(out, SLICE("0"), slice_of_text(text));
    document_end(out, list);
}

struct validate {
    bool metadata;
    struct document_value repair;
};

bool mongo_validate(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"full", MONGO_FIELD_ANY},     /* everything is looked at either way */
        {"scandata", MONGO_FIELD_ANY}, /* of PyMongo */
        {"background", MONGO_FIELD_ANY},
        {"checkBSONConformance", MONGO_FIELD_ANY},
        {"metadata", MONGO_FIELD_BOOL, offsetof(struct validate, metadata)},
        {"repair", MONGO_FIELD_VALUE, offsetof(struct validate, repair)},
    };
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct looking looking = {.call = call};
    struct validate asked = {0};
    struct buf *out = &call->reply;
    struct mongo_namespace name;
    size_t part;

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (asked.repair.type == DOCUMENT_BOOL && asked.repair.boolean)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "validate: repair is not offered: nothing is repaired behind the "
                               "engine's back");
    if (!collection.container)
        return mongo_error_set(
            err, MONGO_NAMESPACE_NOT_FOUND, "Collection '%.*s.%.*s' does not exist to validate.",
            (int)MIN(name.database.len, (size_t)64), (const char *)name.database.data,
            (int)MIN(name.collection.len, (size_t)64), (const char *)name.collection.data);
    if (!asked.metadata)
        keys_find(&collection, &looking);
    if (!mongo_validation_prepare(call, &collection, false, &looking.validation, err) ||
        (!asked.metadata &&
         (!collection_look(&collection, &looking, err) || !keys_count(&collection, &looking, err))))
        return false;
    document_append_string(out, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(name.database),
                                        SLICE_ARG(name.collection)));
    number_append(out, "nInvalidDocuments", looking.broken);
    number_append(out, "nNonCompliantDocuments", looking.non_compliant);
    number_append(out, "nrecords", looking.documents);
    document_append_int32(out, SLICE("nIndexes"), mongo_index_count(&collection));
    part = document_append_object_begin(out, SLICE("keysPerIndex"));
    number_append(out, "_id_", looking.documents);
    for (size_t i = 0; i < looking.key_count; i++)
        number_append_to(out, looking.keys[i].index->name, looking.keys[i].found);
    document_end(out, part);
    document_append_bool(out, SLICE("valid"), looking.broken == 0);
    document_append_bool(out, SLICE("repaired"), false);
    warnings_append(out, &looking, !asked.metadata);
    texts_append(out, "errors",
                 looking.broken ? "Detected one or more documents that are no valid BSON or do not "
                                  "begin with _id. Check nInvalidDocuments."
                                : NULL);
    return true;
}

/* --- What servers with files are asked for --------------------------------------------------- */

struct fsync {
    struct document_value lock;
    bool async;
};

/* What was acknowledged is on the disk already. */
bool mongo_fsync(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"lock", MONGO_FIELD_VALUE, offsetof(struct fsync, lock)},
        {"async", MONGO_FIELD_ANY},
        {"fsyncLockAcquisitionTimeoutMillis", MONGO_FIELD_ANY},
    };
    struct fsync asked = {0};
    double number = 0;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err))
        return false;
    if ((asked.lock.type == DOCUMENT_BOOL && asked.lock.boolean) ||
        (document_to_double(&asked.lock, &number) && number != 0))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "fsync: lock is not offered: a backup needs no standstill");
    document_append_int32(&call->reply, SLICE("numFiles"), 1);
    return true;
}
