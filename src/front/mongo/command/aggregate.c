/* aggregate: a pipeline over a collection, or over documents that a stage of it brings. */
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/cursor.h"
#include "front/mongo/command/explain.h"
#include "front/mongo/command/geo_index.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/source.h"
#include "front/mongo/command/target.h"
#include "front/mongo/command/view.h"
#include "front/mongo/command/watch.h"
#include "front/mongo/pipeline/pipeline.h"
#include "query/value/value.h"

struct aggregate {
    struct slice pipeline, cursor, let, collation;
    struct document_value hint;
    bool explain, bypass;
    struct document_value allow_disk_use;
};

static const struct mongo_field aggregate_fields[] = {
    {"pipeline", MONGO_FIELD_ARRAY, offsetof(struct aggregate, pipeline), true},
    {"cursor", MONGO_FIELD_OBJECT, offsetof(struct aggregate, cursor)},
    {"explain", MONGO_FIELD_BOOL, offsetof(struct aggregate, explain)},
    {"allowDiskUse", MONGO_FIELD_VALUE, offsetof(struct aggregate, allow_disk_use)},
    {"let", MONGO_FIELD_OBJECT, offsetof(struct aggregate, let)},
    {"collation", MONGO_FIELD_OBJECT, offsetof(struct aggregate, collation)},
    {"hint", MONGO_FIELD_VALUE, offsetof(struct aggregate, hint)},
    {"bypassDocumentValidation", MONGO_FIELD_BOOL, offsetof(struct aggregate, bypass)},
};

struct cursor_options {
    int64_t batch_size;
};

static bool is_value(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static bool aggregate_check(const struct aggregate *aggregate, bool explained, struct error *err)
{
    if (!aggregate->cursor.data && !explained)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "The 'cursor' option is required, except for aggregate with the "
                               "explain argument");
    if (is_value(&aggregate->allow_disk_use) && aggregate->allow_disk_use.type != DOCUMENT_BOOL)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'aggregate.allowDiskUse' is the wrong type '%s', "
                               "expected type 'bool'",
                               mongo_type_name(aggregate->allow_disk_use.type));
    return true;
}

static bool batch_read(struct slice cursor, struct mongo_batch_terms *ret_terms, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"batchSize", MONGO_FIELD_SIZE, offsetof(struct cursor_options, batch_size)}};
    struct cursor_options options = {0};
    struct document_value value;

    if (!mongo_fields_read(cursor, "aggregate.cursor", fields, ARRAY_LEN(fields), &options, err))
        return false;
    *ret_terms = (struct mongo_batch_terms){
        .given = document_find(cursor, SLICE("batchSize"), &value) && is_value(&value),
        .size = options.batch_size};
    return true;
}

/* *ret_alone: {aggregate: 1}. */
static bool target_read(const struct mongo_call *call, struct mongo_namespace *ret_name,
                        bool *ret_alone, struct error *err)
{
    double number;

    *ret_alone = document_is_number(&call->target);
    if (!*ret_alone)
        return mongo_call_namespace(call, ret_name, err);
    if (!document_to_double(&call->target, &number) || number != 1)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "Invalid command format: the 'aggregate' field must specify a "
                               "collection name or 1");
    *ret_name = (struct mongo_namespace){call->message.database, SLICE("$cmd.aggregate")};
    return mongo_database_check(ret_name->database, err);
}

/* A view that a stage names. */
static bool view_find(void *self, struct slice database, struct slice collection,
                      struct arena *arena, struct mongo_pipeline_view *ret_view, struct error *err)
{
    const struct mongo_namespace name = {database, collection};
    struct mongo_view view;

    *ret_view = (struct mongo_pipeline_view){0};
    if (!mongo_view_resolve(self, &name, &view, err))
        return false;
    if (!view.depth)
        return true;
    *ret_view = (struct mongo_pipeline_view){
        .base = arena_copy(arena, view.on.collection),
        .pipeline = arena_copy(arena, view.pipeline),
        .collation = view.collation.data ? arena_copy(arena, view.collation) : SLICE_NONE};
    return true;
}

/* The documents of a stage that the server makes. */
static bool source_find(void *self, struct slice stage, const struct document_value *specification,
                        const struct mongo_pipeline_options *options, struct arena *arena,
                        struct slice *ret_array, struct error *err)
{
    const struct mongo_namespace name = {options->database, options->collection};
    const struct mongo_source source = {&name, stage, specification};

    return mongo_source_read(self, &source, arena, ret_array, err);
}

static bool near_key_find(void *self, const struct mongo_pipeline_options *options,
                          struct arena *arena, struct slice *ret_key, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    const struct mongo_namespace name = {options->database, options->collection};

    return mongo_collection_open(self, &name, &collection, err) &&
           mongo_geo_index_key(&collection, arena, ret_key, err);
}

static bool near_check(void *self, const struct mongo_pipeline_options *options,
                       const struct mongo_near *near, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    const struct mongo_namespace name = {options->database, options->collection};

    return mongo_collection_open(self, &name, &collection, err) &&
           mongo_geo_index_check(&collection, near, err);
}

struct mongo_pipeline_host mongo_pipeline_host_of(struct mongo_call *call)
{
    return (struct mongo_pipeline_host){.source = source_find,
                                        .view = view_find,
                                        .near_key = near_key_find,
                                        .near_check = near_check,
                                        .self = call};
}

static bool is_linearizable(const struct mongo_call *call)
{
    struct document_value concern, level;

    return document_find(call->message.body, SLICE("readConcern"), &concern) &&
           concern.type == DOCUMENT_OBJECT &&
           document_find(concern.document, SLICE("level"), &level) &&
           level.type == DOCUMENT_STRING && slice_equal(level.text, SLICE("linearizable"));
}

/* [{$documents: {$literal: rows}}] */
static struct slice documents_pipeline(const struct mongo_rows *rows, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    char text[DOCUMENT_INDEX_SIZE];
    size_t pipeline, stage, documents, list;

    buf_init(&out, 2 * MONGO_ROWS_BYTES_MAX);
    pipeline = document_begin(&out);
    stage = document_append_object_begin(&out, SLICE("0"));
    documents = document_append_object_begin(&out, SLICE("$documents"));
    list = document_append_array_begin(&out, SLICE("$literal"));
    for (size_t i = 0; i < rows->count; i++) {
        const struct document_value row = document_object(rows->list[i]);

        document_append(&out, document_index_key((uint32_t)i, text), &row);
    }
    document_end(&out, list);
    document_end(&out, documents);
    document_end(&out, stage);
    document_end(&out, pipeline);
    return arena_copy(arena, buf_slice(&out));
}

bool mongo_rows_answer(struct mongo_call *call, const struct mongo_rows *rows,
                       struct slice batch_options, struct error *err)
{
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = NULL;
    const struct mongo_namespace name = {call->message.database, SLICE("$cmd.aggregate")};
    const struct mongo_collection none = {0};
    struct mongo_pipeline_options options = {.database = name.database};
    struct mongo_batch_terms terms = {0};
    struct mongo_pipeline pipeline;
    struct query_build build;

    if (batch_options.data && !batch_read(batch_options, &terms, err))
        return false;
    cursor = mongo_cursor_new(call, &name);
    build = (struct query_build){
        .arena = cursor->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    if (!mongo_pipeline_compile(documents_pipeline(rows, cursor->arena), &options, &build,
                                &pipeline, err))
        return false;
    cursor->reading.plan = pipeline.plan;
    return mongo_cursor_first(call, TAKE(cursor), &none, &terms, err);
}

bool mongo_aggregate(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(mongo_collection_close) struct mongo_collection searched = {0};
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = NULL;
    struct aggregate aggregate = {0};
    struct mongo_pipeline_options options;
    struct mongo_batch_terms terms = {0};
    struct mongo_pipeline pipeline;
    struct mongo_namespace name;
    struct mongo_view view = {0};
    struct query_build build;
    struct slice collation;
    bool alone;

    if (!target_read(call, &name, &alone, err) ||
        !mongo_arguments_read(call, aggregate_fields, ARRAY_LEN(aggregate_fields), &aggregate, err))
        return false;
    if (aggregate.explain && !call->explaining)
        return mongo_explain_itself(call, err);
    if (!aggregate_check(&aggregate, call->explaining, err) ||
        (aggregate.cursor.data && !batch_read(aggregate.cursor, &terms, err)) ||
        (!alone && !mongo_view_resolve(call, &name, &view, err)) ||
        !mongo_view_collation(&view, aggregate.collation, &collation, err))
        return false;
    cursor = mongo_cursor_new(call, &name);
    if (mongo_watch_is_asked(aggregate.pipeline)) {
        const struct mongo_watch_terms watch = {.pipeline = aggregate.pipeline,
                                                .let = aggregate.let,
                                                .collation = aggregate.collation,
                                                .alone = alone,
                                                .batch = terms};

        if (view.depth)
            return mongo_error_set(err, MONGO_COMMAND_NOT_SUPPORTED_ON_VIEW,
                                   "$changeStream is not supported on views");
        if (call->explaining)
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                   "explain: $changeStream is not offered yet");
        return mongo_watch_open(call, TAKE(cursor), &watch, err);
    }
    options = (struct mongo_pipeline_options){.database = name.database,
                                              .collection = alone ? SLICE_NONE : name.collection,
                                              .let = aggregate.let,
                                              .collation = collation,
                                              .prefix = view.depth ? view.pipeline : SLICE_NONE,
                                              .host = mongo_pipeline_host_of(call)};
    build = (struct query_build){
        .arena = cursor->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    options.variables =
        mongo_cluster_time_variable(mongo_cluster_time_read(&call->mongo->time), &build);
    options.variable_count = 1;
    if (!alone && !view.depth) {
        if (!mongo_collection_open(call, &name, &searched, err))
            return false;
        options.text = mongo_text_index(&searched);
    }
    if (!mongo_pipeline_compile(aggregate.pipeline, &options, &build, &pipeline, err) ||
        !mongo_javascript_check(call, build.script, err))
        return false;
    cursor->reading.plan = pipeline.plan;
    cursor->reading.near = pipeline.near;
    cursor->reading.script = build.script;
    if (is_value(&aggregate.hint))
        cursor->reading.hint = query_value_copy(&aggregate.hint, cursor->arena);
    if (!mongo_reading_hint(&cursor->reading, cursor->arena, err))
        return false;
    cursor->reading.in_memory =
        aggregate.allow_disk_use.type == DOCUMENT_BOOL && !aggregate.allow_disk_use.boolean;
    if (view.depth)
        cursor->base = arena_copy(cursor->arena, view.on.collection);
    if (!pipeline.collectionless &&
        !mongo_collection_open(call, view.depth ? &view.on : &name, &collection, err))
        return false;
    if (call->explaining && pipeline.target.kind != MONGO_TARGET_CLIENT)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "explain: pipelines with $out or $merge are not offered yet");
    if (pipeline.target.kind != MONGO_TARGET_CLIENT) {
        if (is_linearizable(call))
            return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                                   "$out and $merge cannot be used with a 'linearizable' read "
                                   "concern");
        pipeline.target.bypass = aggregate.bypass;
        if (!mongo_target_check(call, &pipeline.target, err) ||
            !mongo_target_run(call, &pipeline.target, &collection, &cursor->reading, err))
            return false;
        mongo_cursor_single(call, mongo_namespace_text(call->arena, &name), NULL);
        return true;
    }
    return mongo_cursor_first(call, TAKE(cursor), &collection, &terms, err);
}
