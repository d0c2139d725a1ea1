#include "front/mongo/command/view.h"

#include "front/mongo/command/javascript.h"

enum { SHOWN_MAX = 64, PIPELINE_BYTES_MAX = 16 * 1024 * 1024 };

#define SHOWN(text) (int)MIN((text).len, (size_t)SHOWN_MAX), (const char *)(text).data

static bool cycle(struct slice name, struct error *err)
{
    return mongo_error_set(err, 5, "View cycle detected at %.*s", SHOWN(name));
}

/* The pipelines one behind the other, the last first. */
static struct slice pipelines_join(struct arena *arena, const struct slice *pipelines, size_t count)
{
    CLEANUP(buf_done) struct buf out;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t stages = 0;
    size_t begin;

    buf_init(&out, PIPELINE_BYTES_MAX);
    begin = document_begin(&out);
    for (size_t i = count; i > 0; i--) {
        if (!pipelines[i - 1].data)
            continue;
        document_iter_init(&iter, pipelines[i - 1]);
        while (document_iter_next(&iter))
            document_append(&out, document_index_key(stages++, text), &iter.value);
    }
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static bool collations_same(struct slice a, struct slice b)
{
    const struct document_collator *one, *other;
    struct error unused;

    return mongo_collator_find(a, &one, &unused) && mongo_collator_find(b, &other, &unused) &&
           one == other;
}

bool mongo_view_collation(const struct mongo_view *view, struct slice asked,
                          struct slice *ret_collation, struct error *err)
{
    const struct document_collator *unused;
    bool given = asked.data && document_count(asked);

    if (given && !mongo_collator_find(asked, &unused, err))
        return false;
    if (given && view->depth && !collations_same(asked, view->collation))
        return mongo_error_set(err, MONGO_OPTION_NOT_SUPPORTED_ON_VIEW,
                               "Cannot override a view's default collation");
    *ret_collation = given ? asked : view->collation;
    return true;
}

/* From the terms of a view (NULL: from what is stored of the name) down. */
static bool resolve(const struct mongo_call *call, const struct mongo_namespace *name,
                    const struct mongo_terms *terms, struct mongo_view *ret_view, struct error *err)
{
    struct slice pipelines[MONGO_VIEW_DEPTH_MAX + 1];
    struct mongo_view view = {.on = *name};

    for (;;) {
        CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};

        if (!terms) {
            if (!mongo_collection_open_any(call, &view.on, &collection, err))
                return false;
            terms = &collection.terms;
        }
        if (!view.depth && terms->collation.data)
            view.collation = arena_copy(call->arena, terms->collation);
        if (!terms->view_on.data)
            break;
        if (view.depth && !collations_same(view.collation, terms->collation))
            return mongo_error_set(err, MONGO_OPTION_NOT_SUPPORTED_ON_VIEW,
                                   "View %.*s has conflicting collation with view %.*s",
                                   SHOWN(name->collection), SHOWN(view.on.collection));
        if (view.depth == MONGO_VIEW_DEPTH_MAX)
            return mongo_error_set(err, MONGO_VIEW_DEPTH_LIMIT_EXCEEDED,
                                   "View depth limit exceeded; maximum depth is %d",
                                   MONGO_VIEW_DEPTH_MAX);
        pipelines[view.depth++] =
            terms->pipeline.data ? arena_copy(call->arena, terms->pipeline) : SLICE_NONE;
        view.on.collection = arena_copy(call->arena, terms->view_on);
        if (slice_equal(view.on.collection, name->collection))
            return cycle(name->collection, err);
        terms = NULL;
    }
    view.pipeline = pipelines_join(call->arena, pipelines, view.depth);
    *ret_view = view;
    return true;
}

bool mongo_view_resolve(const struct mongo_call *call, const struct mongo_namespace *name,
                        struct mongo_view *ret_view, struct error *err)
{
    return resolve(call, name, NULL, ret_view, err);
}

bool mongo_view_open(struct mongo_call *call, const struct mongo_view_query *query,
                     struct arena *arena, struct mongo_view *ret_view,
                     struct mongo_reading *reading, struct mongo_collection *ret_collection,
                     struct error *err)
{
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    struct mongo_pipeline_options options = {.database = query->name->database,
                                             .collection = query->name->collection,
                                             .let = query->let,
                                             .host = mongo_pipeline_host_of(call)};
    struct mongo_pipeline pipeline;

    assert(call->may_block);
    if (!mongo_view_resolve(call, query->name, ret_view, err) ||
        !mongo_view_collation(ret_view, query->collation, &options.collation, err))
        return false;
    options.prefix = ret_view->pipeline;
    options.variables =
        mongo_cluster_time_variable(mongo_cluster_time_read(&call->mongo->time), &build);
    options.variable_count = 1;
    if (!mongo_pipeline_compile(query->pipeline, &options, &build, &pipeline, err) ||
        !mongo_javascript_check(call, build.script, err) ||
        !mongo_collection_open(call, &ret_view->on, ret_collection, err))
        return false;
    reading->plan = pipeline.plan;
    reading->script = build.script;
    return true;
}

void mongo_stage_append(struct buf *out, uint32_t *stages, const char *name,
                        const struct document_value *value)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t stage = document_append_object_begin(out, document_index_key((*stages)++, text));

    document_append(out, slice_of_text(name), value);
    document_end(out, stage);
}

/* A view is read: it neither writes nor follows changes. */
static bool stages_check(struct slice pipeline, struct error *err)
{
    static const struct slice refused[] = {SLICE("$out"), SLICE("$merge"), SLICE("$changeStream"),
                                           SLICE("$currentOp"), SLICE("$listSessions")};
    struct document_iter iter, stage;

    document_iter_init(&iter, pipeline);
    while (document_iter_next(&iter)) {
        document_iter_init(&stage, iter.value.document);
        if (!document_iter_next(&stage))
            return mongo_error_set(err, 40323,
                                   "A pipeline stage specification object must contain exactly "
                                   "one field.");
        for (size_t i = 0; i < ARRAY_LEN(refused); i++)
            if (slice_equal(stage.key, refused[i]))
                return mongo_error_set(err, MONGO_INVALID_VIEW_DEFINITION,
                                       "The aggregation stage %.*s cannot be used in a view "
                                       "definition",
                                       SLICE_ARG(refused[i]));
    }
    return true;
}

bool mongo_view_check(const struct mongo_call *call, const struct mongo_namespace *name,
                      const struct mongo_terms *terms, struct error *err)
{
    struct mongo_view unused;

    return (!terms->pipeline.data || stages_check(terms->pipeline, err)) &&
           resolve(call, name, terms, &unused, err);
}
