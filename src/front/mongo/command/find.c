/* find. */
#include "front/kit/queries.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/cursor.h"
#include "front/mongo/command/filter.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/shape.h"
#include "front/mongo/command/told.h"
#include "front/mongo/command/view.h"
#include "query/value/value.h"

enum { LOOP_SPANS = 16 }; /* partitions of a collection that a loop reads */

struct find {
    struct slice filter, projection, sort, collation, let, min, max;
    struct document_value hint, allow_disk_use;
    int64_t skip, limit, batch_size;
    bool single_batch, return_key, show_record_id, tailable, await_data;
};

static const struct mongo_field find_fields[] = {
    {"filter", MONGO_FIELD_OBJECT, offsetof(struct find, filter)},
    {"projection", MONGO_FIELD_OBJECT, offsetof(struct find, projection)},
    {"sort", MONGO_FIELD_OBJECT, offsetof(struct find, sort)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct find, hint)},
    {"skip", MONGO_FIELD_SIZE, offsetof(struct find, skip)},
    {"limit", MONGO_FIELD_SIZE, offsetof(struct find, limit)},
    {"batchSize", MONGO_FIELD_SIZE, offsetof(struct find, batch_size)},
    {"singleBatch", MONGO_FIELD_BOOL, offsetof(struct find, single_batch)},
    {"max", MONGO_FIELD_OBJECT, offsetof(struct find, max)},
    {"min", MONGO_FIELD_OBJECT, offsetof(struct find, min)},
    {"returnKey", MONGO_FIELD_BOOL, offsetof(struct find, return_key)},
    {"showRecordId", MONGO_FIELD_BOOL, offsetof(struct find, show_record_id)},
    {"tailable", MONGO_FIELD_BOOL, offsetof(struct find, tailable)},
    {"awaitData", MONGO_FIELD_BOOL, offsetof(struct find, await_data)},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct find, collation)},
    {"let", MONGO_FIELD_OBJECT, offsetof(struct find, let)},
    {"noCursorTimeout", MONGO_FIELD_ANY},     /* cursors keep little, but not for ever */
    {"allowPartialResults", MONGO_FIELD_ANY}, /* results are whole */
    {"oplogReplay", MONGO_FIELD_ANY},
    {"allowDiskUse", MONGO_FIELD_VALUE, offsetof(struct find, allow_disk_use)},
};

static bool is_value(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static bool is_given(struct slice document)
{
    return document.data && document_count(document);
}

/* What does not fit the memory is kept on disk, unless the client says not. */
static bool is_in_memory(const struct find *find)
{
    return find->allow_disk_use.type == DOCUMENT_BOOL && !find->allow_disk_use.boolean;
}

/* Of index entries and stored documents; a pipeline has neither. */
static const char *option_of_entries(const struct find *find)
{
    return is_given(find->min)    ? "min"
           : is_given(find->max)  ? "max"
           : find->return_key     ? "returnKey"
           : find->show_record_id ? "showRecordId"
                                  : NULL;
}

/* {$natural: 1}, or nothing. */
static bool sort_is_natural(struct slice sort)
{
    struct document_value natural;
    double number;

    return !is_given(sort) ||
           (document_count(sort) == 1 && document_find(sort, SLICE("$natural"), &natural) &&
            document_to_double(&natural, &number) && number > 0);
}

/* What a cursor that follows a collection cannot be asked for besides. */
static bool tail_check(const struct mongo_call *call, const struct find *find, struct error *err)
{
    if (is_value(&find->allow_disk_use) && find->allow_disk_use.type != DOCUMENT_BOOL)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'find.allowDiskUse' is the wrong type, expected type "
                               "'bool'");
    if (find->await_data && !find->tailable)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Cannot set 'awaitData' without also setting 'tailable'");
    if (!find->tailable)
        return true;
    if (find->single_batch)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "Cannot use tailable with the 'singleBatch' option");
    if (!sort_is_natural(find->sort))
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "cannot use tailable option with a sort other than {$natural: 1}");
    return (!call->transact && !call->snapshot) ||
           mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                           "Tailable cursors are not allowed in transactions");
}

static bool tail_is_there(const struct mongo_collection *collection, struct error *err)
{
    return collection->terms.capped ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "error processing query: tailable cursor requested on non capped "
                           "collection");
}

/* Of one _id: a read of one item, on the loop if it is in memory. */
static bool find_one(struct mongo_call *call, const struct mongo_collection *collection,
                     struct slice ns, const struct item_operation *named, struct error *err)
{
    struct item_operation op = mongo_operation(call, collection, ITEM_READ);
    struct document_value value;
    bool found;

    op.id = named->id;
    op.key = named->key;
    if (call->may_block) {
        found = item_operation_run(&op, err);
    } else {
        enum item_start start = item_operation_start(&op, err);

        found = start == ITEM_START_ENDED;
        call->cold = start == ITEM_START_COLD;
        if (call->cold)
            return false;
    }
    mongo_call_charged(call, &op.metered);
    mongo_told_item(call, collection, &op, found ? NULL : err);
    if (!found && err->code != ERROR_ITEM_MISSING)
        return false;
    if (found)
        value = document_object(op.result.item.document);
    mongo_cursor_single(call, ns, found ? &value : NULL);
    return true;
}

static struct slice document_copy(struct arena *arena, struct slice document)
{
    return document.data ? arena_copy(arena, document) : SLICE_NONE;
}

static bool batch_is_given(const struct mongo_call *call)
{
    struct document_value value;

    return document_find(call->message.body, SLICE("batchSize"), &value) && is_value(&value);
}

static bool bounds_read(struct mongo_call *call, const struct mongo_collection *collection,
                        const struct find *find, struct mongo_reading *reading, struct arena *arena,
                        struct error *err)
{
    struct slice collation =
        is_given(find->collation) ? find->collation : collection->terms.collation;
    struct mongo_key_limits limits = {.min = find->min, .max = find->max, .hint = find->hint};

    return mongo_collator_find(collation, &limits.collator, err) &&
           mongo_key_bounds_read(call, collection, &limits, arena, &reading->bounds, err);
}

/* The first batch, and a cursor for the others. */
static bool find_many(struct mongo_call *call, const struct mongo_collection *collection,
                      const struct mongo_namespace *name, const struct find *find,
                      struct error *err)
{
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = mongo_cursor_new(call, name);
    const struct mongo_batch_terms terms = {
        .given = batch_is_given(call), .size = find->batch_size, .single = find->single_batch};
    struct mongo_reading *reading = &cursor->reading;

    reading->shape = MONGO_SHAPE_DOCUMENT;
    reading->filter = document_copy(cursor->arena, find->filter);
    reading->projection = document_copy(cursor->arena, find->projection);
    reading->sort = document_copy(cursor->arena, find->sort);
    reading->collation = document_copy(cursor->arena, find->collation);
    reading->collation_default = collection->terms.collation;
    reading->text = mongo_text_index(collection);
    reading->let = document_copy(cursor->arena, find->let);
    reading->cluster_time = mongo_cluster_time_read(&call->mongo->time);
    if (is_value(&find->hint))
        reading->hint = query_value_copy(&find->hint, cursor->arena);
    reading->skip = (uint64_t)find->skip;
    reading->limit = find->limit ? (uint64_t)find->limit : UINT64_MAX;
    if (find->tailable) {
        cursor->tailable = reading->tail = reading->natural = true;
        cursor->awaits = find->await_data;
        reading->hint = document_undefined();
    }
    reading->in_memory = is_in_memory(find);
    reading->return_key = find->return_key;
    reading->show_record_id = find->show_record_id;
    return bounds_read(call, collection, find, reading, cursor->arena, err) &&
           mongo_reading_prepare(call, reading, cursor->arena, err) &&
           mongo_cursor_first(call, TAKE(cursor), collection, &terms, err);
}

/* May a loop compile it and try it? */
static bool is_short(const struct find *find, const struct mongo_collection *collection,
                     uint64_t *hash)
{
    size_t spans;

    if (!collection->container || find->tailable || is_value(&find->hint) ||
        is_given(find->collation) || collection->terms.collation.data || is_given(find->let))
        return false;
    (void)partition_map_spans(collection->space.map, &spans);
    *hash = container_info(collection->container)->number;
    return spans <= LOOP_SPANS && mongo_shape_filter(find->filter, hash) &&
           mongo_shape_list(find->projection, hash) && mongo_shape_list(find->sort, hash);
}

/* A find that reads little of what is in memory anyway. */
static bool find_on_loop(struct mongo_call *call, const struct mongo_collection *collection,
                         const struct mongo_namespace *name, const struct find *find,
                         struct error *err)
{
    struct front_queries *queries = call->services->queries;
    uint64_t hash;

    if (call->explaining || !is_short(find, collection, &hash) ||
        !front_queries_may_try(queries, hash))
        return mongo_call_blocks(call);
    if (find_many(call, collection, name, find, err)) {
        front_queries_was_short(queries, hash);
        return true;
    }
    if (err->code != ERROR_COLD)
        return false;
    front_queries_was_cold(queries, hash);
    return mongo_call_blocks(call);
}

/* --- Views ----------------------------------------------------------------------------------- */

/* What find asks for, as the pipeline that does it. */
static struct slice find_pipeline(const struct find *find, struct arena *arena)
{
    const struct document_value filter = document_object(find->filter),
                                sort = document_object(find->sort),
                                projection = document_object(find->projection),
                                skip = document_int64(find->skip),
                                limit = document_int64(find->limit);
    CLEANUP(buf_done) struct buf out;
    uint32_t stages = 0;
    size_t begin;

    buf_init(&out, SIZE_MAX / 2);
    begin = document_begin(&out);
    if (is_given(find->filter))
        mongo_stage_append(&out, &stages, "$match", &filter);
    if (is_given(find->sort))
        mongo_stage_append(&out, &stages, "$sort", &sort);
    if (find->skip)
        mongo_stage_append(&out, &stages, "$skip", &skip);
    if (find->limit)
        mongo_stage_append(&out, &stages, "$limit", &limit);
    if (is_given(find->projection))
        mongo_stage_append(&out, &stages, "$project", &projection);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static bool find_in_view(struct mongo_call *call, const struct mongo_namespace *name,
                         const struct find *find, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = NULL;
    const struct mongo_batch_terms terms = {
        .given = batch_is_given(call), .size = find->batch_size, .single = find->single_batch};
    struct mongo_view_query query = {.name = name, .let = find->let, .collation = find->collation};
    struct mongo_view view;

    if (option_of_entries(find))
        return mongo_error_set(err, MONGO_INVALID_PIPELINE_OPERATOR,
                               "Option %s not supported in aggregation.", option_of_entries(find));
    if (!mongo_call_blocks(call))
        return false;
    cursor = mongo_cursor_new(call, name);
    query.pipeline = find_pipeline(find, cursor->arena);
    if (!mongo_view_open(call, &query, cursor->arena, &view, &cursor->reading, &collection, err))
        return false;
    cursor->base = arena_copy(cursor->arena, view.on.collection);
    cursor->reading.in_memory = is_in_memory(find);
    return mongo_cursor_first(call, TAKE(cursor), &collection, &terms, err);
}

bool mongo_find(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct item_operation named;
    struct mongo_namespace name;
    struct find find = {0};

    if (!mongo_call_namespace(call, &name, err) ||
        !mongo_arguments_read(call, find_fields, ARRAY_LEN(find_fields), &find, err) ||
        !tail_check(call, &find, err))
        return false;
    if (!mongo_collection_open(call, &name, &collection, err)) {
        if (mongo_error_code(err) != MONGO_COMMAND_NOT_SUPPORTED_ON_VIEW || is_value(&find.hint))
            return false;
        return find.tailable ? mongo_error_set(err, MONGO_OPTION_NOT_SUPPORTED_ON_VIEW,
                                               "Tailable cursors are not supported on views")
                             : find_in_view(call, &name, &find, err);
    }
    if (!mongo_collection_exists(&collection)) {
        mongo_cursor_single(call, mongo_namespace_text(call->arena, &name), NULL);
        return true;
    }
    if (find.tailable && !tail_is_there(&collection, err))
        return false;
    if (!call->explaining && !option_of_entries(&find) && !find.tailable && !find.skip &&
        !is_value(&find.hint) && !is_given(find.projection) && !is_given(find.collation) &&
        !collection.terms.collation.data && !(batch_is_given(call) && find.batch_size == 0) &&
        collection.container && mongo_item_named(&collection, find.filter, &named.id, &named.key))
        return find_one(call, &collection, mongo_namespace_text(call->arena, &name), &named, err);
    if (!call->may_block)
        return find_on_loop(call, &collection, &name, &find, err);
    return find_many(call, &collection, &name, &find, err);
}
