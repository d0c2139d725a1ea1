/* A batch is read from the stream into an array, which goes through the stages behind
 * $changeStream, if there are any, as the documents of a source. They are compiled anew for each
 * batch that has something: a plan has its documents in it. */
#include "front/mongo/command/watch.h"

#include "front/mongo/command/await.h"
#include "front/mongo/pipeline/pipeline.h"
#include "front/mongo/stream/event.h"
#include "front/mongo/stream/split.h"
#include "throughput/cost.h"

enum {
    FIRST_BATCH = 101,
    BATCH_BYTES_MAX = 16 * 1024 * 1024 - 65536,
    RECORDS_MAX = 20000, /* looked at in one go, of whomever */
};

struct mongo_watch {
    struct mongo_stream stream;
    struct mongo *mongo; /* whose count it is in */
    struct slice
        pipeline; /* what follows, behind a stage that brings the events; data NULL: none */
    struct slice let, collation;
    bool splits; /* events that are too large are told in fragments */
};

bool mongo_watch_is_asked(struct slice pipeline)
{
    struct document_value first, stage;

    return pipeline.data && document_find(pipeline, SLICE("0"), &first) &&
           first.type == DOCUMENT_OBJECT &&
           document_find(first.document, SLICE("$changeStream"), &stage) &&
           document_count(first.document) == 1;
}

void mongo_watch_close(struct mongo_watch *watch)
{
    mongo_stream_count_leave(watch->mongo->stream_count, watch->stream.target.account);
}

/* --- The stages behind it -------------------------------------------------------------------- */

static bool stage_is_allowed(struct slice stage, struct error *err)
{
    static const char *const allowed[] = {"$match", "$project",     "$addFields",   "$set",
                                          "$unset", "$replaceRoot", "$replaceWith", "$redact"};
    struct document_iter iter;

    document_iter_init(&iter, stage);
    if (!document_iter_next(&iter))
        return true; /* the compiler says what is wrong with it */
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (slice_equal(iter.key, slice_of_text(allowed[i])))
            return true;
    return mongo_error_set(err, MONGO_ILLEGAL_OPERATION,
                           "%.*s is not permitted in a $changeStream pipeline",
                           (int)MIN(iter.key.len, (size_t)64), (const char *)iter.key.data);
}

/* {$changeStreamSplitLargeEvent: {}} */
static bool is_split(const struct document_value *stage, struct document_value *ret_specification)
{
    return stage->type == DOCUMENT_OBJECT &&
           document_find(stage->document, SLICE("$changeStreamSplitLargeEvent"),
                         ret_specification) &&
           document_count(stage->document) == 1;
}

static bool split_check(const struct document_value *specification, size_t at, size_t count,
                        struct error *err)
{
    if (specification->type != DOCUMENT_OBJECT || document_count(specification->document))
        return mongo_error_set(err, 7182800,
                               "$changeStreamSplitLargeEvent spec should be an empty object");
    return at + 1 == count ||
           mongo_error_set(err, 7182802,
                           "$changeStreamSplitLargeEvent must be the last stage in the pipeline");
}

/* *ret_splits: the last of them splits events. */
static bool stages_check(struct slice pipeline, bool *ret_splits, struct error *err)
{
    size_t count = document_count(pipeline);
    struct document_value split;
    struct document_iter iter;

    *ret_splits = false;
    document_iter_init(&iter, pipeline);
    for (size_t i = 0; document_iter_next(&iter); i++) {
        if (!i || iter.value.type != DOCUMENT_OBJECT)
            continue; /* the stream itself; what the compiler finds fault with */
        if (is_split(&iter.value, &split)) {
            if (!split_check(&split, i, count, err))
                return false;
            *ret_splits = true;
        } else if (!stage_is_allowed(iter.value.document, err)) {
            return false;
        }
    }
    return true;
}

static bool events_source(void *self, struct slice stage UNUSED,
                          const struct document_value *specification UNUSED,
                          const struct mongo_pipeline_options *options UNUSED,
                          struct arena *arena UNUSED, struct slice *ret_array,
                          struct error *err UNUSED)
{
    *ret_array = *(const struct slice *)self;
    return true;
}

static bool stages_compile(const struct mongo_watch *watch, const struct mongo_cursor *cursor,
                           struct slice *events, struct arena *arena, struct query_plan *ret_plan,
                           struct error *err)
{
    const struct mongo_pipeline_options options = {
        .database = cursor->database,
        .let = watch->let,
        .collation = watch->collation,
        .host = {.source = events_source, .self = events}};
    struct query_build build = {
        .arena = arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    struct mongo_pipeline pipeline;

    if (!mongo_pipeline_compile(watch->pipeline, &options, &build, &pipeline, err))
        return false;
    if (build.script)
        return mongo_error_set(err, MONGO_QUERY_FEATURE_NOT_ALLOWED,
                               "%s is not allowed in a change stream", build.script);
    *ret_plan = pipeline.plan;
    return true;
}

/* --- A batch --------------------------------------------------------------------------------- */

struct watching {
    struct mongo_call *call;
    struct mongo_cursor *cursor;
    struct mongo_watch *watch;
    struct buf *out;   /* the array that is answered */
    uint32_t count;    /* in it */
    struct buf events; /* what was read, an array, where stages follow */
    size_t events_begin;
    uint32_t event_count;
    struct document_iter answered; /* among them: rows come in their order */
    uint32_t skip;                 /* fragments of the first event that were told before */
    uint32_t fragment, of;         /* the last that is told of it now; 0: it is not split */
    bool crowded;                  /* one that is to be split came among others: read it alone */
};

/* As many fragments as fit, at least one. The others are told by the next batch, which reads the
 * change again: nothing is kept of it. */
static bool fragments_add(struct watching *watching, struct slice event, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t begin = watching->out->len;
    struct mongo_split split;
    char text[DOCUMENT_INDEX_SIZE];

    if (watching->count || watching->event_count > 1) {
        watching->crowded = true;
        return mongo_error_set(err, MONGO_BSON_OBJECT_TOO_LARGE, "an event that is to be split");
    }
    if (!mongo_split_plan(event, MONGO_FRAGMENT_BYTES_MAX, arena, &split, err))
        return false;
    watching->of = watching->fragment = split.count;
    for (uint32_t i = watching->skip + 1; i <= split.count; i++) {
        mongo_split_append(&split, i, document_index_key(watching->count++, text), watching->out);
        watching->fragment = i;
        if (watching->out->len - begin >= BATCH_BYTES_MAX / 2)
            break; /* the next may be as long as a fragment can be */
    }
    return true;
}

static bool answer_add(struct watching *watching, const struct document_value *event,
                       struct error *err)
{
    char text[DOCUMENT_INDEX_SIZE];

    if (watching->watch->splits && event->document.len > MONGO_FRAGMENT_BYTES_MAX)
        return fragments_add(watching, event->document, err);
    if (watching->skip) /* it was split, and is shorter now: its document has changed */
        return true;
    if (event->document.len > MONGO_EVENT_TOLD_MAX)
        return mongo_error_set(err, MONGO_BSON_OBJECT_TOO_LARGE,
                               "BSONObj size: %zu is invalid. Size must be between 0 and %d: an "
                               "event of a change stream is too large, which "
                               "$changeStreamSplitLargeEvent would split",
                               event->document.len, MONGO_EVENT_TOLD_MAX);
    document_append(watching->out, document_index_key(watching->count++, text), event);
    return true;
}

static bool event_take(void *self, struct slice event, struct error *err)
{
    struct watching *watching = self;
    const struct document_value value = document_object(event);
    char text[DOCUMENT_INDEX_SIZE];

    if (!watching->watch->pipeline.data)
        return answer_add(watching, &value, err);
    document_append(&watching->events, document_index_key(watching->event_count++, text), &value);
    return front_call_hold(&watching->call->front, event.len, err);
}

/* The document as it is now, if the collection is still the one that it was in. */
static bool document_lookup(void *self, const struct history_origin *origin, struct slice key,
                            struct buf *out, bool *ret_found, struct error *err)
{
    struct watching *watching = self;
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct mongo_namespace name = {origin->database_name, origin->container_name};
    struct item_operation op;

    *ret_found = false;
    if (!mongo_collection_open(watching->call, &name, &collection, err))
        return false;
    if (!collection.container || container_info(collection.container)->number != origin->container)
        return true;
    op = mongo_operation(watching->call, &collection, ITEM_READ);
    op.arena = arena;
    if (!mongo_item_named(&collection, key, &op.id, &op.key))
        return true;
    *ret_found = item_operation_run(&op, err);
    mongo_call_charged(watching->call, &op.metered);
    if (!*ret_found)
        return err->code == ERROR_ITEM_MISSING;
    buf_append_slice(out, op.result.item.document);
    return true;
}

/* Where a client could not resume from is no event. */
static bool token_is_kept(struct watching *watching, const struct document_value *event)
{
    struct document_value id, other, token;

    if (!document_find(event->document, SLICE("_id"), &id) || id.type != DOCUMENT_OBJECT ||
        !document_find(id.document, SLICE("_data"), &token))
        return false;
    while (document_iter_next(&watching->answered))
        if (document_find(watching->answered.value.document, SLICE("_id"), &other) &&
            slice_equal(other.document, id.document))
            return true;
    return false;
}

static bool row_take(void *self, const struct document_value *value, struct error *err)
{
    struct watching *watching = self;

    if (!token_is_kept(watching, value))
        return mongo_error_set(
            err, MONGO_CHANGE_STREAM_FATAL_ERROR,
            "Encountered an event whose _id field, which contains the resume token, was modified "
            "by the pipeline. Modifying the _id field of an event makes it impossible to resume "
            "the stream from that point. Only transformations that retain the unmodified _id field "
            "are allowed.");
    return answer_add(watching, value, err);
}

/* What was read, through the stages. */
static bool stages_run(struct watching *watching, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice events = buf_slice(&watching->events);
    struct mongo_reading reading = {.limit = UINT64_MAX, .in_memory = true};
    const struct mongo_collection none = {0};
    struct mongo_page page = {
        .rows_max = UINT64_MAX, .bytes_max = UINT64_MAX, .row = row_take, .self = watching};

    if (!stages_compile(watching->watch, watching->cursor, &events, arena, &reading.plan, err))
        return false;
    document_iter_init(&watching->answered, events);
    do
        if (!mongo_reading_page(watching->call, &none, &reading, &page, err))
            return false;
    while (page.continuation.len);
    return true;
}

/* What is read at the place where the stream stands, through the stages. */
static bool batch_read(struct watching *watching, size_t events_max, struct mongo_stream *stream,
                       struct mongo_stream_batch *batch, struct error *err)
{
    bool staged = watching->watch->pipeline.data;

    *batch = (struct mongo_stream_batch){.events_max = events_max,
                                         .bytes_max = BATCH_BYTES_MAX,
                                         .records_max = RECORDS_MAX,
                                         .event = event_take,
                                         .lookup = document_lookup,
                                         .self = watching};
    *stream = watching->watch->stream;
    watching->skip = stream->fragments_left ? stream->at.fragment : 0;
    watching->fragment = watching->of = 0;
    watching->event_count = 0;
    if (staged) {
        buf_clear(&watching->events);
        watching->events_begin = document_begin(&watching->events);
    }
    if (!mongo_stream_read(stream, catalogue_cluster(watching->call->services->catalogue), batch,
                           err))
        return false;
    if (!staged)
        return true;
    document_end(&watching->events, watching->events_begin);
    return !batch->events || stages_run(watching, err);
}

/* One go: up to a batch of events. *ret_more: there may be more of them at once. */
static bool events_read(struct watching *watching, size_t events_max, bool *ret_more,
                        struct error *err)
{
    size_t begin = watching->out->len;
    struct mongo_stream_batch batch;
    struct mongo_stream stream;

    assert(!watching->count);
    watching->crowded = false;
    if (!batch_read(watching, watching->watch->stream.fragments_left ? 1 : events_max, &stream,
                    &batch, err)) {
        if (!watching->crowded)
            return false;
        watching->out->len = begin;
        watching->count = 0;
        if (!batch_read(watching, 1, &stream, &batch, err))
            return false;
    }
    if (watching->fragment) {
        stream.at.fragment = watching->fragment;
        stream.fragments_left = watching->fragment < watching->of;
    }
    if (batch.events)
        watching->call->charge_cru =
            cost_add(watching->call->charge_cru, cost_feed(batch.events, batch.bytes));
    *ret_more = mongo_token_is_event(&stream.at) && !stream.over;
    watching->watch->stream = stream;
    return true;
}

/* Until there is something to answer, or nothing to be seen. */
static bool batch_fill(struct watching *watching, size_t events_max, int64_t until_ms,
                       struct error *err)
{
    bool more = true, fine = true;

    if (!events_max)
        return true;
    buf_init(&watching->events, 4 * (size_t)BATCH_BYTES_MAX);
    while (fine && more && !watching->count) {
        fine = events_read(watching, events_max, &more, err);
        front_call_breathe(&watching->call->front);
        if (clock_read_monotonic_ms(watching->call->services->clock) >= until_ms)
            break;
    }
    buf_done(&watching->events);
    return fine;
}

struct frame {
    size_t cursor, list;
};

static struct frame frame_begin(struct mongo_call *call, const struct mongo_cursor *cursor,
                                const char *name)
{
    struct frame frame;

    frame.cursor = document_append_object_begin(&call->reply, SLICE("cursor"));
    document_append_string(&call->reply, SLICE("ns"), cursor->ns);
    frame.list = document_append_array_begin(&call->reply, slice_of_text(name));
    return frame;
}

static void frame_end(struct mongo_call *call, struct frame frame, const struct mongo_token *token,
                      uint64_t id)
{
    document_end(&call->reply, frame.list);
    mongo_token_append(&call->reply, SLICE("postBatchResumeToken"), token);
    document_append_int64(&call->reply, SLICE("id"), (int64_t)id);
    document_end(&call->reply, frame.cursor);
}

/* --- Opening --------------------------------------------------------------------------------- */

/* The first stages of a pipeline with nothing said of the stream, which has been read. */
static struct slice pipeline_keep(struct slice pipeline, size_t count, struct arena *arena)
{
    CLEANUP(buf_done) struct buf kept;
    struct document_iter iter;
    size_t whole, stage;

    buf_init(&kept, BUF_DEFAULT_MAX);
    if (count < 2)
        return SLICE_NONE;
    whole = document_begin(&kept);
    document_iter_init(&iter, pipeline);
    for (size_t i = 0; i < count && document_iter_next(&iter); i++) {
        if (i) {
            document_append(&kept, iter.key, &iter.value);
            continue;
        }
        stage = document_append_object_begin(&kept, iter.key);
        document_end(&kept, document_append_object_begin(&kept, SLICE("$changeStream")));
        document_end(&kept, stage);
    }
    document_end(&kept, whole);
    return arena_copy(arena, buf_slice(&kept));
}

static bool specification_read(struct slice pipeline, struct slice *ret_specification,
                               struct error *err)
{
    struct document_value first, stage;

    (void)document_find(pipeline, SLICE("0"), &first);
    (void)document_find(first.document, SLICE("$changeStream"), &stage);
    if (stage.type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 50808, "$changeStream stage expects a document as argument");
    *ret_specification = stage.document;
    return true;
}

static bool may_be_opened(const struct mongo_call *call, struct error *err)
{
    struct document_value value;

    if (!call->options->changes)
        return mongo_error_set(err, 40573,
                               "The $changeStream stage is only supported on replica sets: this "
                               "server keeps no changes (mongo.change_stream_retention is 0)");
    if (document_find(call->message.body, SLICE("autocommit"), &value))
        return mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                               "Operation not permitted in transaction :: caused by :: "
                               "Aggregation stage $changeStream cannot run within a "
                               "multi-document transaction");
    return true;
}

static struct slice copy(struct arena *arena, struct slice document)
{
    return document.data ? arena_copy(arena, document) : SLICE_NONE;
}

/* What is known before anything is looked at. */
static bool watch_make(struct mongo_call *call, struct mongo_cursor *cursor,
                       const struct mongo_watch_terms *terms, struct mongo_watch *watch,
                       struct error *err)
{
    static const uint8_t nothing[] = {5, 0, 0, 0, 0}; /* the empty array */
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    struct slice specification, none = slice_of(nothing, sizeof nothing);
    const struct mongo_stream_target target = {
        .account = account_info(call->account.account)->number,
        .database = cursor->database,
        .collection = terms->alone ? SLICE("") : cursor->collection};
    struct query_plan plan;

    if (!specification_read(terms->pipeline, &specification, err) ||
        !mongo_stream_init(&watch->stream, &target, specification,
                           mongo_cluster_time_read(&call->mongo->time), err) ||
        !stages_check(terms->pipeline, &watch->splits, err))
        return false;
    if (watch->stream.at.fragment && !watch->splits)
        return mongo_error_set(err, 7182801,
                               "To resume from a split event, the $changeStream pipeline must "
                               "include a $changeStreamSplitLargeEvent stage");
    watch->mongo = call->mongo;
    watch->pipeline = pipeline_keep(terms->pipeline,
                                    document_count(terms->pipeline) - watch->splits, cursor->arena);
    watch->let = copy(cursor->arena, terms->let);
    watch->collation = copy(cursor->arena, terms->collation);
    return !watch->pipeline.data || stages_compile(watch, cursor, &none, scratch, &plan, err);
}

static bool first_batch(struct mongo_call *call, struct mongo_cursor *made, size_t events_max,
                        struct error *err)
{
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = made;
    struct mongo_watch *watch = cursor->watch;
    struct watching watching = {
        .call = call, .cursor = cursor, .watch = watch, .out = &call->reply};
    struct mongo_token token;
    struct frame frame;
    uint64_t id = 0;
    bool over;

    if (!mongo_stream_resume(&watch->stream, catalogue_cluster(call->services->catalogue), err))
        return false;
    frame = frame_begin(call, cursor, "firstBatch");
    /* one look: what is not there yet is waited for by getMore */
    if (!batch_fill(&watching, events_max, 0, err))
        return false;
    token = watch->stream.at;
    over = watch->stream.over;
    if (!over) {
        if (!mongo_cursor_keep(call, cursor, &id, err))
            return false;
        cursor = NULL; /* the table's */
    }
    frame_end(call, frame, &token, id);
    return true;
}

bool mongo_watch_open(struct mongo_call *call, struct mongo_cursor *made,
                      const struct mongo_watch_terms *terms, struct error *err)
{
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = made;
    struct mongo_watch *watch = ARENA_NEW(cursor->arena, struct mongo_watch);

    assert(call->may_block);
    if (!may_be_opened(call, err))
        return false;
    if (!call->account.account &&
        !front_account_make(call->services, call->account.id, &call->account.account, err))
        return false;
    if (!watch_make(call, cursor, terms, watch, err) ||
        !mongo_stream_count_enter(call->mongo->stream_count, watch->stream.target.account, err))
        return false;
    cursor->watch = watch; /* from here on it is counted, and taken off again with the cursor */
    return first_batch(call, TAKE(cursor),
                       terms->batch.given ? (size_t)terms->batch.size : FIRST_BATCH, err);
}

/* --- getMore --------------------------------------------------------------------------------- */

bool mongo_watch_more(struct mongo_call *call, struct mongo_cursor *cursor, int64_t batch_size,
                      struct error *err)
{
    struct front_cursors *cursors = call->mongo->cursors;
    struct watching watching = {
        .call = call, .cursor = cursor, .watch = cursor->watch, .out = &call->reply};
    int64_t deadline_ms = clock_read_monotonic_ms(call->services->clock) + call->options->cursor_ms;
    uint64_t id = cursor->head.id;
    struct frame frame;

    call->watches = true;
    if (!mongo_await_begin(call, err)) {
        front_cursors_put_back(cursors, &cursor->head, deadline_ms, cursor->head.bytes);
        return false;
    }
    frame = frame_begin(call, cursor, "nextBatch");
    if (!batch_fill(&watching, batch_size ? (size_t)batch_size : SIZE_MAX, call->wait.until_ms,
                    err) ||
        !mongo_await_check(&cursor->head, err)) {
        front_cursors_end(cursors, &cursor->head);
        return false;
    }
    if (!watching.count && !cursor->watch->stream.over && mongo_await_may(call, &cursor->head)) {
        mongo_await_park(call, &cursor->head, mongo_stream_hash(&cursor->watch->stream),
                         cursor->watch->stream.at.place.time, err);
        return false;
    }
    frame_end(call, frame, &cursor->watch->stream.at, cursor->watch->stream.over ? 0 : id);
    call->repeats = !cursor->watch->stream.over;
    if (cursor->watch->stream.over)
        front_cursors_end(cursors, &cursor->head);
    else
        front_cursors_put_back(cursors, &cursor->head, deadline_ms, cursor->head.bytes);
    return true;
}
