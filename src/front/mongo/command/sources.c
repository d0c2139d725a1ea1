/* $collStats: one document, for a collection is one shard to whoever asks. */
#include "front/mongo/command/sources.h"

#include "front/mongo/command/statistics.h"

struct asked {
    bool count, storage;
    int64_t scale;
};

static bool asked_read(const struct document_value *specification, struct asked *ret_asked,
                       struct error *err)
{
    struct document_iter iter;
    struct document_value scale;

    *ret_asked = (struct asked){.scale = 1};
    if (specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 5447000,
                               "$collStats must take a nested object but found type %s",
                               mongo_type_name(specification->type));
    document_iter_init(&iter, specification->document);
    while (document_iter_next(&iter)) {
        bool storage = slice_equal(iter.key, SLICE("storageStats"));

        if (slice_equal(iter.key, SLICE("latencyStats")) ||
            slice_equal(iter.key, SLICE("queryExecStats")))
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED, "$collStats: %.*s is not offered",
                                   SLICE_ARG(iter.key));
        if (!storage && !slice_equal(iter.key, SLICE("count")))
            return mongo_error_set(err, 40415, "BSON field '$collStats.%.*s' is an unknown field.",
                                   (int)MIN(iter.key.len, (size_t)80),
                                   (const char *)iter.key.data);
        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "BSON field '$collStats.%.*s' is the wrong type '%s', expected "
                                   "type 'object'",
                                   SLICE_ARG(iter.key), mongo_type_name(iter.value.type));
        ret_asked->count |= !storage;
        ret_asked->storage |= storage;
        if (storage && document_find(iter.value.document, SLICE("scale"), &scale) &&
            (!document_to_int64(&scale, &ret_asked->scale) || ret_asked->scale < 1))
            return mongo_error_set(err, 51024, "BSON field 'scale' value must be >= 1");
    }
    return true;
}

bool mongo_source_documents(void *self, struct slice stage,
                            const struct document_value *specification,
                            const struct mongo_pipeline_options *options, struct arena *arena,
                            struct slice *ret_array, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    struct mongo_call *call = self;
    const struct mongo_namespace name = {options->database, options->collection};
    struct container_usage usage = {0};
    CLEANUP(buf_done) struct buf out;
    struct asked asked;
    size_t list, document, statistics;

    buf_init(&out, BUF_DEFAULT_MAX);
    assert(slice_equal(stage, SLICE("$collStats")));
    if (!asked_read(specification, &asked, err) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!collection.container)
        return mongo_error_set(err, MONGO_NAMESPACE_NOT_FOUND,
                               "Unable to retrieve storageStats in $collStats stage :: caused by "
                               ":: Collection [%.*s.%.*s] not found.",
                               (int)MIN(name.database.len, (size_t)64),
                               (const char *)name.database.data,
                               (int)MIN(name.collection.len, (size_t)128),
                               (const char *)name.collection.data);
    if (!container_usage_all(collection.container, arena, &usage, err))
        return false;
    list = document_begin(&out);
    document = document_append_object_begin(&out, SLICE("0"));
    document_append_string(&out, SLICE("ns"),
                           arena_printf(arena, "%.*s.%.*s", SLICE_ARG(name.database),
                                        SLICE_ARG(name.collection)));
    document_append_string(&out, SLICE("host"), slice_of_text(call->mongo->advertised));
    document_append_date(&out, SLICE("localTime"), clock_read_wall_ms(call->services->clock));
    if (asked.storage) {
        statistics = document_append_object_begin(&out, SLICE("storageStats"));
        mongo_storage_statistics(&collection, &usage, asked.scale, &out);
        document_end(&out, statistics);
    }
    if (asked.count)
        document_append_int64(&out, SLICE("count"), (int64_t)usage.items);
    document_end(&out, document);
    document_end(&out, list);
    *ret_array = arena_copy(arena, buf_slice(&out));
    return true;
}
