/* $out fills a collection of its own and gives it the name of the target in one change of the
 * catalogue, so that readers see all of the former documents or all of the new ones. $merge writes
 * document by document, each with the version it was computed from, as updates do. Documents are
 * taken a page at a time, and written when the page is done: nothing is read while something is
 * being written. */
#include "front/mongo/command/target.h"

#include "base/random.h"
#include "front/mongo/command/item.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/validation.h"
#include "item/bulk.h"

enum { PAGE_ROWS = 1000, PAGE_BYTES = 4 * 1024 * 1024, PART_MAX = 256, ATTEMPTS_MAX = 64 };

/* --- Pages ----------------------------------------------------------------------------------- */

struct taken {
    struct arena *arena;
    struct slice documents[PAGE_ROWS];
    size_t count;
};

static bool taken_row(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct taken *taken = self;

    assert(taken->count < PAGE_ROWS && value->type == DOCUMENT_OBJECT);
    taken->documents[taken->count++] = arena_copy(taken->arena, value->document);
    return true;
}

struct filling {
    struct mongo_call *call;
    const struct mongo_target *target;
    const struct mongo_collection *source;
    const struct mongo_reading *reading;
    struct mongo_namespace name;        /* that is written to */
    struct mongo_collection collection; /* the same, open */
    struct mongo_validation validation;
    struct item_operation *operations;    /* of $out: PART_MAX */
    const struct query_expression *merge; /* of a pipeline: over what is there and what comes */
    bool (*write)(struct filling *filling, struct taken *taken, struct error *err);
};

static bool pages_run(struct filling *filling, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct taken *taken = ARENA_NEW(filling->call->arena, struct taken);
    uint8_t continuation[QUERY_CONTINUATION_MAX];
    struct mongo_page page = {.rows_max = PAGE_ROWS, .bytes_max = PAGE_BYTES};

    if (!mongo_deadline(filling->call, &page.deadline_ms, err))
        return false;
    page.row = taken_row;
    page.self = taken;
    do {
        arena_reset(arena);
        *taken = (struct taken){.arena = arena};
        if (!mongo_reading_page(filling->call, filling->source, filling->reading, &page, err))
            return false;
        assert(page.continuation.len <= sizeof continuation);
        if (page.continuation.len)
            memcpy(continuation, page.continuation.data, page.continuation.len);
        page.continuation = slice_of(continuation, page.continuation.len);
        if (!filling->write(filling, taken, err))
            return false;
    } while (page.continuation.len);
    return true;
}

/* --- $out ------------------------------------------------------------------------------------ */

static bool grown(void *context, struct error *err)
{
    struct mongo_call *call = context;
    size_t used = arena_used(call->arena);

    return used <= call->held || front_call_hold(&call->front, used - call->held, err);
}

static bool duplicate(const struct filling *filling, const struct document_value *id,
                      struct error *err)
{
    return mongo_error_set(
        err, MONGO_DUPLICATE_KEY,
        "E11000 duplicate key error collection: %.*s.%.*s index: _id_ dup key: { _id: %.*s }",
        (int)MIN(filling->target->database.len, (size_t)64),
        (const char *)filling->target->database.data,
        (int)MIN(filling->target->collection.len, (size_t)100),
        (const char *)filling->target->collection.data,
        SLICE_ARG(mongo_text_value(id, filling->call->arena)));
}

static bool part_insert(struct filling *filling, const struct slice *documents, size_t count,
                        struct error *err)
{
    struct item_operation *operations = filling->operations;
    const struct bulk_options options = {.grown = grown, .context = filling->call};
    struct mongo_call *call = filling->call;

    for (size_t i = 0; i < count; i++) {
        struct item_operation *op = &operations[i];
        struct mongo_item item;

        *op = mongo_operation(call, &filling->collection, ITEM_CREATE);
        if (!mongo_item_make(call, documents[i], &item, err))
            return false;
        op->id = item.id;
        op->document = item.document;
        op->key = mongo_item_key(&filling->collection, item.document);
        op->err.code = ERROR_NONE;
    }
    bulk_run(operations, count, &options);
    for (size_t i = 0; i < count; i++) {
        mongo_call_charged(call, &operations[i].metered);
        if (operations[i].err.code == ERROR_ITEM_EXISTS)
            return duplicate(filling, &operations[i].id, err);
        if (operations[i].err.code != ERROR_NONE) {
            *err = operations[i].err;
            return false;
        }
    }
    return true;
}

static bool out_write(struct filling *filling, struct taken *taken, struct error *err)
{
    for (size_t i = 0; i < taken->count; i += PART_MAX)
        if (!part_insert(filling, taken->documents + i, MIN(taken->count - i, (size_t)PART_MAX),
                         err))
            return false;
    return true;
}

/* What would be lost is not replaced. */
static bool out_check(const struct filling *filling, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection target = {0};
    const struct mongo_namespace name = {filling->target->database, filling->target->collection};

    if (!mongo_collection_open(filling->call, &name, &target, err))
        return false;
    if (target.made)
        return mongo_error_set(err, MONGO_UNAUTHORIZED, "%.*s.%.*s is made by the server",
                               SLICE_ARG(name.database), SLICE_ARG(name.collection));
    if (!target.container)
        return true;
    if (mongo_collection_is_sharded(&target))
        return mongo_error_set(err, 28769,
                               "namespace '%.*s.%.*s' is sharded so it can't be used "
                               "for $out'",
                               SLICE_ARG(name.database), SLICE_ARG(name.collection));
    if (definition_fields(container_definition(target.container))->index_count ||
        target.terms.options.data)
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "$out: %.*s.%.*s has indexes or options of its own, which would be "
                               "lost; use $merge, or drop it",
                               SLICE_ARG(name.database), SLICE_ARG(name.collection));
    return true;
}

static bool out_rename(struct filling *filling, struct error *err)
{
    struct mongo_call *call = filling->call;
    struct container *renamed;

    if (!catalogue_container_rename(call->services->catalogue, call->account.id,
                                    filling->name.database, filling->name.collection,
                                    filling->target->collection, true, &renamed, err))
        return false;
    container_unref(renamed);
    return true;
}

static bool out_run(struct filling *filling, struct error *err)
{
    struct mongo_call *call = filling->call;
    char text[RANDOM_UUID_SIZE];
    struct error ignored;
    bool done;

    random_uuid(text);
    filling->name = (struct mongo_namespace){filling->target->database,
                                             arena_printf(call->arena, "tmp.agg_out.%s", text)};
    filling->write = out_write;
    filling->operations = ARENA_ARRAY(call->arena, struct item_operation, PART_MAX);
    if (!out_check(filling, err) ||
        !mongo_collection_make(call, &filling->name, &filling->collection, err))
        return false;
    done = pages_run(filling, err);
    mongo_collection_close(&filling->collection);
    filling->collection = (struct mongo_collection){0};
    if (done && out_rename(filling, err))
        return true;
    /* what is left of a drop that fails is a collection that its owner can drop */
    done = catalogue_container_drop(call->services->catalogue, call->account.id,
                                    filling->name.database, filling->name.collection, SLICE_NONE,
                                    &ignored);
    return false;
}

/* --- $merge ---------------------------------------------------------------------------------- */

/* The document that is there, as it was seen. */
struct there {
    struct arena *arena;
    struct slice document, etag;
    bool found;
};

static bool there_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct there *there = self;
    struct document_value part = document_undefined();

    there->found = true;
    (void)document_find(value->document, SLICE("d"), &part);
    there->document = arena_copy(there->arena, part.document);
    (void)document_find(value->document, SLICE("e"), &part);
    there->etag = arena_copy(there->arena, part.text);
    return true;
}

/* The value of a dotted path, through objects alone. */
static bool path_find(struct slice document, struct slice path, struct document_value *ret_value)
{
    struct document_value value = document_object(document);
    struct slice rest = path, head, tail;
    bool last;

    do {
        last = !slice_split(rest, '.', &head, &tail);
        if (last)
            head = rest;
        if (value.type != DOCUMENT_OBJECT || !document_find(value.document, head, &value))
            return false;
        rest = tail;
    } while (!last);
    *ret_value = value;
    return true;
}

/* {on: {$eq: value}, ...} */
static bool filter_make(const struct filling *filling, struct slice document, struct arena *arena,
                        struct slice *ret_filter, struct error *err)
{
    const struct slice id = SLICE("_id");
    const struct slice *on = filling->target->on_count ? filling->target->on : &id;
    size_t count = MAX(filling->target->on_count, (size_t)1), begin, inner;
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, SIZE_MAX / 2);
    begin = document_begin(&buf);
    for (size_t i = 0; i < count; i++) {
        struct document_value value;

        if (!path_find(document, on[i], &value) || value.type == DOCUMENT_NULL ||
            value.type == DOCUMENT_UNDEFINED || value.type == DOCUMENT_ARRAY)
            return mongo_error_set(err, 51132,
                                   "$merge write error: 'on' field '%.*s' cannot be missing, null, "
                                   "undefined or an array",
                                   SLICE_ARG(on[i]));
        inner = document_append_object_begin(&buf, on[i]);
        document_append(&buf, SLICE("$eq"), &value);
        document_end(&buf, inner);
    }
    document_end(&buf, begin);
    *ret_filter = arena_copy(arena, buf_slice(&buf));
    return true;
}

static bool there_find(struct filling *filling, struct slice filter, struct there *there,
                       struct error *err)
{
    struct mongo_reading reading = {
        .shape = MONGO_SHAPE_VERSION, .filter = filter, .limit = UINT64_MAX};
    struct mongo_page page = {
        .rows_max = 1, .bytes_max = PAGE_BYTES, .row = there_take, .self = there};

    there->found = false;
    if (!mongo_deadline(filling->call, &page.deadline_ms, err) ||
        !mongo_reading_prepare(filling->call, &reading, there->arena, err))
        return false;
    do /* a page may end early, for its time was up */
        if (!mongo_reading_page(filling->call, &filling->collection, &reading, &page, err))
            return false;
    while (!there->found && page.continuation.len);
    return true;
}

/* Fields of the one, and over them those of the other. */
static struct slice merged(struct slice document, struct slice over, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, SIZE_MAX / 2);
    begin = document_begin(&buf);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        document_append(&buf, iter.key,
                        document_find(over, iter.key, &value) ? &value : &iter.value);
    document_iter_init(&iter, over);
    while (document_iter_next(&iter))
        if (!document_find(document, iter.key, &value))
            document_append(&buf, iter.key, &iter.value);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

static bool pipeline_apply(struct filling *filling, struct slice before, struct slice document,
                           struct arena *arena, struct slice *ret_after, struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    struct query_slot slots[2] = {{.value = document_object(before)},
                                  {.value = document_object(document)}};
    struct document_value value;

    query_context_init(&context, arena, NULL, filling->call->services->clock);
    context.slots = slots;
    context.slot_count = ARRAY_LEN(slots);
    context.order = DOCUMENT_ORDER_MONGO;
    context.keep_nonfinite = true;
    if (filling->call->options->javascript)
        context.udf = mongo_javascript_host(filling->call);
    if (!query_evaluate(filling->merge, &context, &value, err))
        return false;
    *ret_after = arena_copy(arena, value.document);
    return true;
}

/* What is there becomes this: with the _id it has, which nothing may change. */
static bool after_make(struct filling *filling, struct slice before, struct slice document,
                       struct arena *arena, struct slice *ret_after, struct error *err)
{
    struct document_value id = document_null(), own;
    struct slice after = document, only;
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, 64 * 1024 * 1024);
    (void)document_find(before, SLICE("_id"), &id);
    if (filling->target->matched == MONGO_MATCHED_MERGE)
        after = merged(before, document, arena);
    else if (filling->target->matched == MONGO_MATCHED_PIPELINE &&
             !pipeline_apply(filling, before, document, arena, &after, err))
        return false;
    if (document_find(after, SLICE("_id"), &own) &&
        document_compare(DOCUMENT_ORDER_MONGO, &own, &id) != 0)
        return mongo_error_set(err, MONGO_IMMUTABLE_FIELD,
                               "$merge failed to update the matching document, did you attempt to "
                               "modify the _id or the shard key? :: caused by :: Performing an "
                               "update on the path '_id' would modify the immutable field '_id'");
    begin = document_begin(&buf);
    document_append(&buf, SLICE("_id"), &id);
    document_end(&buf, begin);
    only = buf_slice(&buf);
    *ret_after = merged(only, after, arena);
    return mongo_shard_key_keep(&filling->collection, before, *ret_after, err) &&
           mongo_validation_check(&filling->validation, *ret_after, before, arena, err);
}

/* *ret_done false: another writer was first. */
static bool matched_write(struct filling *filling, const struct there *there, struct slice document,
                          bool *ret_done, struct error *err)
{
    struct item_operation op = mongo_operation(filling->call, &filling->collection, ITEM_REPLACE);
    struct slice after;

    *ret_done = true;
    if (filling->target->matched == MONGO_MATCHED_KEEP)
        return true;
    (void)document_find(there->document, SLICE("_id"), &op.id);
    if (filling->target->matched == MONGO_MATCHED_FAIL)
        return duplicate(filling, &op.id, err);
    if (!after_make(filling, there->document, document, there->arena, &after, err))
        return false;
    if (slice_equal(after, there->document))
        return true;
    op.key = mongo_item_key(&filling->collection, there->document);
    op.arena = there->arena;
    op.document = after;
    op.options.if_match = there->etag;
    *ret_done = item_operation_run(&op, err);
    mongo_call_charged(filling->call, &op.metered);
    return *ret_done || err->code == ERROR_PRECONDITION_FAILED || err->code == ERROR_ITEM_MISSING;
}

static bool unmatched_write(struct filling *filling, struct slice document, struct arena *arena,
                            bool *ret_done, struct error *err)
{
    struct item_operation op = mongo_operation(filling->call, &filling->collection, ITEM_CREATE);
    struct mongo_item item;

    *ret_done = true;
    if (filling->target->unmatched == MONGO_UNMATCHED_DISCARD)
        return true;
    if (filling->target->unmatched == MONGO_UNMATCHED_FAIL)
        return mongo_error_set(err, 13113,
                               "$merge could not find a matching document in the target "
                               "collection for at least one document in the source collection");
    if (!mongo_item_make(filling->call, document, &item, err) ||
        !mongo_shard_key_check(&filling->collection, item.document, err) ||
        !mongo_validation_check(&filling->validation, item.document, SLICE_NONE, arena, err))
        return false;
    op.id = item.id;
    op.key = mongo_item_key(&filling->collection, item.document);
    op.arena = arena;
    op.document = item.document;
    *ret_done = item_operation_run(&op, err);
    mongo_call_charged(filling->call, &op.metered);
    if (!*ret_done && err->code == ERROR_ITEM_EXISTS && filling->target->on_count)
        return duplicate(filling, &op.id, err); /* an _id that is taken is none of `on` */
    return *ret_done || err->code == ERROR_ITEM_EXISTS;
}

static bool document_merge(struct filling *filling, struct slice document, struct arena *arena,
                           struct error *err)
{
    struct slice filter;
    bool done = false;

    if (!filter_make(filling, document, arena, &filter, err))
        return false;
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        struct there there = {.arena = arena};

        if (!there_find(filling, filter, &there, err) ||
            !(there.found ? matched_write(filling, &there, document, &done, err)
                          : unmatched_write(filling, document, arena, &done, err)))
            return false;
        if (done)
            return grown(filling->call, err);
    }
    return error_set(err, ERROR_CONFLICT, "other writers were faster %d times", ATTEMPTS_MAX);
}

/* A document without an _id gets one, so that it can be looked for. */
static bool merge_write(struct filling *filling, struct taken *taken, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < taken->count; i++) {
        struct document_value id;
        struct mongo_item item = {.document = taken->documents[i]};

        arena_reset(arena);
        if (!document_find(item.document, SLICE("_id"), &id) &&
            !mongo_item_make(filling->call, item.document, &item, err))
            return false;
        if (!document_merge(filling, item.document, arena, err))
            return false;
    }
    return true;
}

/* Do the fields of `on` tell documents apart? */
static bool on_check(const struct filling *filling, struct error *err)
{
    const struct mongo_target *target = filling->target;
    const struct definition_fields *fields;

    if (!target->on_count || (target->on_count == 1 && slice_equal(target->on[0], SLICE("_id"))))
        return true;
    fields = definition_fields(container_definition(filling->collection.container));
    for (size_t i = 0; i < fields->index_count; i++) {
        const struct index_definition *index = fields->indexes[i];
        size_t agreed = 0;

        if (index->unique == INDEX_UNIQUE_NOT || index->part_count != target->on_count ||
            index->filter_count || index->sparse || index->collator)
            continue;
        for (size_t part = 0; part < index->part_count; part++)
            for (size_t k = 0; k < target->on_count; k++)
                agreed += mongo_path_is_called(&index->parts[part].path, target->on[k]);
        if (agreed == target->on_count)
            return true;
    }
    return mongo_error_set(err, 51183,
                           "Cannot find index to verify that join fields will be unique");
}

static bool merge_compile(struct filling *filling, struct error *err)
{
    const struct mongo_target *target = filling->target;
    struct query_build build = {
        .arena = filling->call->arena, .keep_nonfinite = true, .order = DOCUMENT_ORDER_MONGO};
    const struct mongo_variable new = {SLICE("new"), mongo_expression_root(&build, 1)};
    const struct mongo_expression_options incoming = {.slot = 1};
    struct mongo_expression_options scope = {.variables = &new, .variable_count = 1};

    if (target->matched != MONGO_MATCHED_PIPELINE)
        return true;
    if (target->let.data && !mongo_expression_let(target->let, &incoming, &build, &scope.variables,
                                                  &scope.variable_count, err))
        return false;
    return mongo_pipeline_update(target->pipeline, &scope, &build, &filling->merge, err) &&
           mongo_javascript_check(filling->call, build.script, err);
}

static bool merge_run(struct filling *filling, struct error *err)
{
    filling->name =
        (struct mongo_namespace){filling->target->database, filling->target->collection};
    filling->write = merge_write;
    return merge_compile(filling, err) &&
           mongo_collection_make(filling->call, &filling->name, &filling->collection, err) &&
           on_check(filling, err) &&
           mongo_validation_prepare(filling->call, &filling->collection, filling->target->bypass,
                                    &filling->validation, err) &&
           pages_run(filling, err);
}

/* --- Both ------------------------------------------------------------------------------------ */

bool mongo_target_check(struct mongo_call *call, const struct mongo_target *target,
                        struct error *err)
{
    const struct document_value text = document_string(arena_printf(
        call->arena, "%.*s.%.*s", SLICE_ARG(target->database), SLICE_ARG(target->collection)));
    struct mongo_namespace name;

    if (target->kind == MONGO_TARGET_CLIENT)
        return true;
    if (call->transact)
        return mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                               "Stage not supported inside of a multi-document transaction: %s",
                               target->kind == MONGO_TARGET_OUT ? "$out" : "$merge");
    if (call->session->by_key && call->session->key.readonly)
        return mongo_error_set(err, MONGO_UNAUTHORIZED,
                               "not authorized on %.*s to execute command { aggregate } with $out "
                               "or $merge: the key may only read",
                               (int)MIN(target->database.len, (size_t)64),
                               (const char *)target->database.data);
    return mongo_namespace_read(&text, &name, err) &&
           (call->account.account ||
            front_account_make(call->services, call->account.id, &call->account.account, err));
}

bool mongo_target_run(struct mongo_call *call, const struct mongo_target *target,
                      const struct mongo_collection *collection,
                      const struct mongo_reading *reading, struct error *err)
{
    struct filling filling = {
        .call = call, .target = target, .source = collection, .reading = reading};
    bool done =
        target->kind == MONGO_TARGET_OUT ? out_run(&filling, err) : merge_run(&filling, err);

    mongo_collection_close(&filling.collection);
    return done;
}
