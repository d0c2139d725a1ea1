/* find. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/cursor.h"
#include "front/mongo/command/filter.h"
#include "front/mongo/command/told.h"
#include "front/mongo/command/view.h"
#include "query/value/value.h"

struct find {
    struct slice filter, projection, sort, collation, let;
    struct document_value hint, min, max;
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
    {"max", MONGO_FIELD_VALUE, offsetof(struct find, max)},
    {"min", MONGO_FIELD_VALUE, offsetof(struct find, min)},
    {"returnKey", MONGO_FIELD_BOOL, offsetof(struct find, return_key)},
    {"showRecordId", MONGO_FIELD_BOOL, offsetof(struct find, show_record_id)},
    {"tailable", MONGO_FIELD_BOOL, offsetof(struct find, tailable)},
    {"awaitData", MONGO_FIELD_BOOL, offsetof(struct find, await_data)},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct find, collation)},
    {"let", MONGO_FIELD_OBJECT, offsetof(struct find, let)},
    {"noCursorTimeout", MONGO_FIELD_ANY},     /* cursors keep little, but not for ever */
    {"allowPartialResults", MONGO_FIELD_ANY}, /* results are whole */
    {"oplogReplay", MONGO_FIELD_ANY},
    {"allowDiskUse", MONGO_FIELD_ANY}, /* the server's to say */
};

static bool is_value(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static bool is_given(struct slice document)
{
    return document.data && document_count(document);
}

/* What would change the answer and cannot be done is refused. */
static bool find_check(const struct find *find, struct error *err)
{
    const char *refused = NULL;

    if (is_value(&find->min) || is_value(&find->max))
        refused = "min and max";
    else if (find->return_key || find->show_record_id)
        refused = "returnKey and showRecordId";
    else if (find->tailable || find->await_data)
        refused = "tailable";
    return !refused ||
           mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "find: %s is not offered yet", refused);
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
    reading->let = document_copy(cursor->arena, find->let);
    reading->cluster_time = mongo_cluster_time_read(&call->mongo->time);
    if (is_value(&find->hint))
        reading->hint = query_value_copy(&find->hint, cursor->arena);
    reading->skip = (uint64_t)find->skip;
    reading->limit = find->limit ? (uint64_t)find->limit : UINT64_MAX;
    return mongo_reading_prepare(call, reading, cursor->arena, err) &&
           mongo_cursor_first(call, TAKE(cursor), collection, &terms, err);
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

    if (!mongo_call_blocks(call))
        return false;
    cursor = mongo_cursor_new(call, name);
    query.pipeline = find_pipeline(find, cursor->arena);
    if (!mongo_view_open(call, &query, cursor->arena, &view, &cursor->reading, &collection, err))
        return false;
    cursor->base = arena_copy(cursor->arena, view.on.collection);
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
        !find_check(&find, err))
        return false;
    if (!mongo_collection_open(call, &name, &collection, err))
        return mongo_error_code(err) == MONGO_COMMAND_NOT_SUPPORTED_ON_VIEW && !is_value(&find.hint)
                   ? find_in_view(call, &name, &find, err)
                   : false;
    if (!mongo_collection_exists(&collection)) {
        mongo_cursor_single(call, mongo_namespace_text(call->arena, &name), NULL);
        return true;
    }
    if (!call->explaining && !find.skip && !is_value(&find.hint) && !is_given(find.projection) &&
        !is_given(find.collation) && !collection.terms.collation.data &&
        !(batch_is_given(call) && find.batch_size == 0) && collection.container &&
        mongo_item_named(&collection, find.filter, &named.id, &named.key))
        return find_one(call, &collection, mongo_namespace_text(call->arena, &name), &named, err);
    return mongo_call_blocks(call) && find_many(call, &collection, &name, &find, err);
}
