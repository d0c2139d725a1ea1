/* Databases and collections: listing them. create.c makes, changes and drops collections. */
#include "catalogue/container_usage.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"
#include "front/mongo/command/filter.h"
#include "front/mongo/command/permit.h"
#include "front/mongo/uuid.h"
#include "throughput/cost.h"

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

static size_t collections_count(const struct mongo_call *call, const struct database *database)
{
    size_t count = 0;

    for (size_t i = 0; i < database_container_count(database); i++)
        count += mongo_container_is_there(call, database_container(database, i));
    return count;
}

static bool database_bytes(const struct mongo_call *call, const struct database *database,
                           uint64_t *ret_bytes, struct error *err)
{
    *ret_bytes = 0;
    for (size_t i = 0; i < database_container_count(database); i++) {
        const struct container *container = database_container(database, i);
        struct container_usage usage;

        if (!mongo_container_is_there(call, container))
            continue;
        if (!container_usage_all(container, call->arena, &usage, err))
            return false;
        *ret_bytes += usage.bytes;
    }
    return true;
}

/* A user that may not list databases sees those it may read in. */
static bool database_is_shown(const struct mongo_call *call, const struct database *database)
{
    const struct mongo_resource cluster = {.kind = MONGO_RESOURCE_CLUSTER};
    const struct mongo_session *session = call->session;

    return !session->by_user ||
           mongo_privileges_allow(&session->grants, MONGO_ACTION_LIST_DATABASES, &cluster) ||
           mongo_privileges_touch(&session->grants, database_info(database)->id);
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
        if (!collections_count(call, database) || !database_is_shown(call, database))
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
    struct mongo_terms terms;
    struct error later; /* a later server's terms are not shown */
    bool view = mongo_terms_of(container, &terms, &later) && terms.view_on.data;
    size_t begin, part;

    buf_init(&one, BUF_DEFAULT_MAX);
    begin = document_begin(&one);
    document_append_string(&one, SLICE("name"), container_info(container)->id);
    document_append_string(&one, SLICE("type"), view ? SLICE("view") : SLICE("collection"));
    if (!name_only) {
        const struct document_value options =
            document_object(terms.options.data ? terms.options : SLICE("\5\0\0\0\0"));

        document_append(&one, SLICE("options"), &options);
        part = document_append_object_begin(&one, SLICE("info"));
        document_append_bool(&one, SLICE("readOnly"), view);
        if (!view)
            mongo_uuid_append(container, SLICE("uuid"), &one);
        document_end(&one, part);
        if (!view)
            id_index_append(&one, SLICE("idIndex"));
    }
    document_end(&one, begin);
    return arena_copy(call->arena, buf_slice(&one));
}

struct collections {
    struct slice filter, cursor;
    bool name_only, authorized;
};

bool mongo_list_collections(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"filter", MONGO_FIELD_OBJECT, offsetof(struct collections, filter)},
        {"cursor", MONGO_FIELD_OBJECT, offsetof(struct collections, cursor)},
        {"nameOnly", MONGO_FIELD_BOOL, offsetof(struct collections, name_only)},
        {"authorizedCollections", MONGO_FIELD_BOOL, offsetof(struct collections, authorized)},
    };
    CLEANUP(database_unref) struct database *database = NULL;
    struct collections asked = {0};
    struct slice *documents;
    size_t all = 0, count = 0;
    bool lists;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err) ||
        !mongo_database_check(call->message.database, err))
        return false;
    /* A user that may not list collections may ask for the names of those it may do something with.
     */
    lists =
        mongo_permit_allows(call, MONGO_ACTION_LIST_COLLECTIONS, call->message.database, SLICE(""));
    if (!lists && !(asked.authorized && asked.name_only))
        return mongo_permit_refuse(call, err);
    if (catalogue_database_open(call->services->catalogue, call->account.id, call->message.database,
                                &database, err))
        all = database_container_count(database);
    else if (err->code != ERROR_NOT_FOUND && err->code != ERROR_OWNER_NOT_FOUND)
        return false;
    documents = ARENA_ARRAY(call->arena, struct slice, all + 1);
    for (size_t i = 0; i < all; i++) {
        const struct container *container = database_container(database, i);

        if (mongo_container_is_there(call, container) &&
            (lists ||
             mongo_permit_touches(call, call->message.database, container_info(container)->id)))
            documents[count++] = collection_show(call, container, asked.name_only);
    }
    if (!mongo_filter_documents(call, asked.filter, documents, &count, err))
        return false;
    batch_append(call, SLICE("$cmd.listCollections"), documents, count);
    metadata_charged(call, false);
    return true;
}
