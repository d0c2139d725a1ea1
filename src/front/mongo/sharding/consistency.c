/* checkMetadataConsistency: what the catalogue says of collections, held against what the nodes
 * have. The catalogue is one store, so there are no copies of it to compare; but the partitions
 * that it names are on nodes, each with an epoch, and a store that was brought back from elsewhere
 * may lack one. What is found is a document each; the reply is that of a pipeline over them. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/source.h"
#include "front/mongo/sharding/chunk.h"
#include "front/mongo/sharding/shard.h"
#include "front/mongo/uuid.h"
#include "partition/map.h"

#include <stdlib.h>

struct checking {
    struct slice cursor;
    bool indexes;
};

/* The partitions of one node, sorted by id; asked for once. */
struct held {
    bool asked;
    struct engine_partition *list;
    size_t count;
};

struct check {
    struct mongo_call *call;
    struct mongo_rows *rows;
    struct node_table *table;
    struct held nodes[CLUSTER_NODES_MAX];
};

static int partition_compare(const void *left, const void *right)
{
    const struct engine_partition *a = left, *b = right;

    return (a->id > b->id) - (a->id < b->id);
}

/* A node that is away has nothing to compare with: that is an error of the command, not an
 * inconsistency. */
static bool held_of(struct check *check, uint32_t node, struct held **ret_held, struct error *err)
{
    const struct cluster *cluster = catalogue_cluster(check->call->services->catalogue);
    const struct cluster_node *found = cluster_find(cluster, node);
    struct held *held = node < CLUSTER_NODES_MAX ? &check->nodes[node] : NULL;

    *ret_held = NULL;
    if (!held || !found || !cluster_node_is_member(found))
        return true;
    if (!held->asked) {
        if (!engine_partition_list(found->engine, check->call->arena, &held->list, &held->count,
                                   err))
            return false;
        qsort(held->list, held->count, sizeof *held->list, partition_compare);
        held->asked = true;
    }
    *ret_held = held;
    return true;
}

/* {type, description, details: {namespace, collectionUUID, shard, chunk}} */
static bool inconsistency_add(struct check *check, const struct database *database,
                              const struct container *container, const struct partition_span *span,
                              const char *type, const char *description, struct error *err)
{
    const struct partition_definition *key =
        &definition_fields(container_definition(container))->key;
    CLEANUP(buf_done) struct buf row;
    size_t begin, details, chunk;

    buf_init(&row, BUF_DEFAULT_MAX);
    begin = mongo_row_begin(&row);
    document_append_string(&row, SLICE("type"), slice_of_text(type));
    document_append_string(&row, SLICE("description"), slice_of_text(description));
    details = document_append_object_begin(&row, SLICE("details"));
    document_append_string(&row, SLICE("namespace"),
                           arena_printf(check->call->arena, "%.*s.%.*s",
                                        SLICE_ARG(database_info(database)->id),
                                        SLICE_ARG(container_info(container)->id)));
    mongo_uuid_append(container, SLICE("collectionUUID"), &row);
    document_append_string(&row, SLICE("shard"), mongo_shard_name(check->table, span->node));
    document_append_int64(&row, SLICE("partition"), span->id);
    if (!container_is_fixed(container)) {
        chunk = document_append_object_begin(&row, SLICE("chunk"));
        mongo_bound_append(key, span->min, SLICE("min"), &row);
        mongo_bound_append(key, span->max, SLICE("max"), &row);
        document_end(&row, chunk);
    }
    document_end(&row, details);
    return mongo_row_end(check->rows, begin, &row, err);
}

static bool span_check(struct check *check, const struct database *database,
                       const struct container *container, const struct partition_span *span,
                       struct error *err)
{
    const struct engine_partition wanted = {.id = span->id}, *found;
    struct held *held;

    if (!held_of(check, span->node, &held, err))
        return false;
    if (!held)
        return inconsistency_add(check, database, container, span, "MissingShard",
                                 "a chunk is on a shard that is not of the cluster", err);
    found = bsearch(&wanted, held->list, held->count, sizeof *held->list, partition_compare);
    if (!found)
        return inconsistency_add(check, database, container, span, "MissingLocalCollection",
                                 "the shard of a chunk does not have it", err);
    return found->epoch == span->epoch ||
           inconsistency_add(check, database, container, span, "ShardVersionMismatch",
                             "the shard of a chunk has it under another epoch", err);
}

/* A map that is read has neither gaps nor overlaps (partition/map.h). What moves meanwhile is of
 * two states: it is looked at as it is published. */
static bool container_check(struct check *check, const struct database *database,
                            const struct container *container, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    if (!mongo_container_is_there(check->call, container) || container_migration(container))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!span_check(check, database, container, &spans[i], err))
            return false;
    return true;
}

/* Of all databases, of one, or of one collection. */
static bool all_check(struct check *check, struct slice name, struct slice collection,
                      struct error *err)
{
    const struct account *account = check->call->account.account;

    for (size_t d = 0; account && d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        if (name.len && !slice_equal(database_info(database)->id, name))
            continue;
        for (size_t c = 0; c < database_container_count(database); c++) {
            const struct container *container = database_container(database, c);

            if ((!collection.len || slice_equal(container_info(container)->id, collection)) &&
                !container_check(check, database, container, err))
                return false;
        }
        front_call_breathe(&check->call->front);
    }
    return true;
}

bool mongo_check_metadata(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"cursor", MONGO_FIELD_OBJECT, offsetof(struct checking, cursor)},
        {"checkIndexes", MONGO_FIELD_BOOL, offsetof(struct checking, indexes)},
    };
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(call->services->catalogue);
    struct mongo_rows rows = {.call = call};
    struct check *check = ARENA_NEW(call->arena, struct check);
    struct checking checking = {0};
    struct mongo_namespace name = {call->message.database, SLICE("")};
    double number = 0;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &checking, err))
        return false;
    if (checking.indexes)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "checkIndexes is not offered: definitions of indexes are the "
                               "collection's, not a shard's; `orrery verify` compares their "
                               "entries");
    if (document_is_number(&call->target)) {
        if (!document_to_double(&call->target, &number) || number != 1)
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "Invalid command format: the 'checkMetadataConsistency' field "
                                   "must specify a collection name or 1");
        if (slice_equal(name.database, SLICE("admin")))
            name.database = SLICE(""); /* of all databases */
    } else if (!mongo_call_namespace(call, &name, err)) {
        return false;
    }
    *check = (struct check){.call = call, .rows = &rows, .table = table};
    return all_check(check, name.database, name.collection, err) &&
           mongo_rows_answer(call, &rows, checking.cursor, err);
}
