/* What a statement looks at is in arenas of its own, one for each page, so that a statement over
 * all documents of a collection holds no more than a page of them. */
#include "front/mongo/command/statement.h"

#include "base/clock.h"
#include "front/mongo/command/indexes.h"
#include "front/mongo/command/javascript.h"
#include "front/mongo/command/told.h"

enum { PAGE_BYTES = 4 * 1024 * 1024 };

/* Lost against another writer, or against another shard key: nothing was done, and the next look
 * shows why. */
bool mongo_is_overtaken(const struct error *err)
{
    return err->code == ERROR_PRECONDITION_FAILED || err->code == ERROR_ITEM_MISSING ||
           err->code == ERROR_REKEYED;
}

bool mongo_overtaken_too_often(struct error *err)
{
    return error_set(err, ERROR_CONFLICT, "other writers were faster %d times", MONGO_ATTEMPTS_MAX);
}

/* --- Looking --------------------------------------------------------------------------------- */

static bool look_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct mongo_look *look = self;
    struct mongo_seen *seen = &look->seen[look->count++];
    struct document_value part = document_undefined();

    assert(look->count <= look->max);
    (void)document_find(value->document, SLICE("d"), &part);
    seen->document = arena_copy(look->arena, part.document);
    (void)document_find(value->document, SLICE("e"), &part);
    seen->etag = arena_copy(look->arena, part.text);
    (void)document_find(seen->document, SLICE("_id"), &seen->id);
    return true;
}

/* The item with this _id and key, as it is now. *ret_found false: there is none. */
static bool item_look(struct mongo_writing *writing, const struct document_value *id,
                      const struct partition_key *key, struct arena *arena,
                      struct mongo_seen *ret_seen, bool *ret_found, struct error *err)
{
    struct item_operation op = mongo_operation(writing->call, &writing->collection, ITEM_READ);
    char etag[ITEM_ETAG_LEN];

    op.id = *id;
    op.key = *key;
    op.arena = arena;
    *ret_found = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    if (!*ret_found)
        return err->code == ERROR_ITEM_MISSING;
    item_etag(&op.result.item.header, etag);
    ret_seen->document = op.result.item.document;
    ret_seen->etag = arena_copy(arena, slice_of(etag, sizeof etag));
    (void)document_find(op.result.item.document, SLICE("_id"), &ret_seen->id);
    return true;
}

/* Up to look->max documents that match, behind the continuation. */
bool mongo_page_look(struct mongo_writing *writing, const struct mongo_statement *statement,
                     struct slice *continuation, struct mongo_look *look, struct error *err)
{
    struct mongo_page page = {.rows_max = look->max,
                              .bytes_max = PAGE_BYTES,
                              .deadline_ms = writing->deadline_ms,
                              .continuation = *continuation,
                              .row = look_take,
                              .self = look};

    if (!mongo_reading_page(writing->call, &writing->collection, &statement->reading, &page, err))
        return false;
    *continuation = page.continuation;
    return true;
}

/* One document that matches, or none. */
bool mongo_one_look(struct mongo_writing *writing, const struct mongo_statement *statement,
                    struct arena *arena, struct mongo_seen *ret_seen, bool *ret_found,
                    struct error *err)
{
    struct mongo_look look = {.arena = arena, .seen = ret_seen, .max = 1};
    struct slice continuation = SLICE_NONE;
    struct partition_key key;
    struct document_value id;

    *ret_found = false;
    if (!writing->collection.container)
        return true;
    if (!writing->call->explaining && !mongo_reading_is_hinted(&statement->reading) &&
        !statement->reading.collator &&
        mongo_item_named(&writing->collection, statement->reading.filter, &id, &key))
        return item_look(writing, &id, &key, arena, ret_seen, ret_found, err);
    do /* a page may end early, for its time was up */
        if (!mongo_page_look(writing, statement, &continuation, &look, err))
            return false;
    while (!look.count && continuation.len);
    *ret_found = look.count > 0;
    return true;
}

/* --- One document ---------------------------------------------------------------------------- */

void mongo_writing_context(struct query_context *context, struct query_slot *slot,
                           struct slice document, struct mongo_writing *writing,
                           struct arena *arena)
{
    *slot = (struct query_slot){.value = document_object(document)};
    query_context_init(context, arena, NULL, writing->call->services->clock);
    context->slots = slot;
    context->slot_count = 1;
    context->order = DOCUMENT_ORDER_MONGO;
    context->keep_nonfinite = true;
    if (writing->call->options->javascript)
        context->udf = mongo_javascript_host(writing->call);
}

struct mongo_update_input mongo_writing_input(const struct mongo_writing *writing,
                                              struct slice document, struct query_context *context)
{
    int64_t now_ms = clock_read_wall_ms(writing->call->services->clock);

    return (struct mongo_update_input){.document = document,
                                       .position = -1,
                                       .now_ms = now_ms,
                                       .now_timestamp = (uint64_t)(now_ms / 1000) << 32 | 1,
                                       .context = context};
}

bool mongo_seen_change(struct mongo_writing *writing, const struct mongo_statement *statement,
                       struct slice document, struct arena *arena,
                       struct mongo_update_result *ret_result, bool *ret_holds, struct error *err)
{
    CLEANUP(query_context_done) struct query_context context;
    const struct document_value value = document_object(document);
    struct mongo_update_input input;
    struct query_slot slot;

    mongo_writing_context(&context, &slot, document, writing, arena);
    input = mongo_writing_input(writing, document, &context);
    if (!mongo_match_position(statement->reading.match, &value, &context, ret_holds,
                              &input.position, err))
        return false;
    return !*ret_holds || !statement->update ||
           mongo_update_apply(statement->update, &input, arena, ret_result, err);
}

/* What an update by operators did, for change streams; absent for a replacement. */
static struct slice description_of(const struct mongo_update_result *result, struct arena *arena)
{
    const struct document_value updated = document_object(result->updated_fields),
                                removed = document_array(result->removed_fields),
                                truncated = document_array(result->truncated_arrays),
                                paths = document_object(result->disambiguated_paths);
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, ENGINE_VALUE_MAX);
    if (!result->updated_fields.data)
        return SLICE_NONE;
    begin = document_begin(&out);
    document_append(&out, SLICE("updatedFields"), &updated);
    document_append(&out, SLICE("removedFields"), &removed);
    document_append(&out, SLICE("truncatedArrays"), &truncated);
    if (paths.document.data)
        document_append(&out, SLICE("disambiguatedPaths"), &paths);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

bool mongo_seen_operation(struct mongo_writing *writing, const struct mongo_seen *seen,
                          const struct mongo_update_result *result, struct arena *arena,
                          struct item_operation *ret_operation, struct error *err)
{
    struct slice after = result->document;
    struct item_operation op = mongo_operation(writing->call, &writing->collection,
                                               after.data ? ITEM_REPLACE : ITEM_DELETE);

    op.id = seen->id;
    op.key = mongo_item_key(&writing->collection, seen->document);
    op.arena = arena;
    op.document = after;
    if (after.data && !mongo_shard_key_keep(&writing->collection, seen->document, after, err))
        return false;
    op.options.if_match = seen->etag;
    op.options.record = mongo_retry_record(
        writing->call, writing->statement,
        &(struct mongo_outcome){.matched = 1,
                                .modified = after.data != NULL,
                                .upserted = document_undefined(),
                                .image = writing->image == MONGO_IMAGE_BEFORE  ? seen->document
                                         : writing->image == MONGO_IMAGE_AFTER ? after
                                                                               : SLICE_NONE});
    op.options.description = description_of(result, arena);
    *ret_operation = op;
    return true;
}

/* Writes what the document becomes, or deletes it. *ret_written false: another writer was first. */
static bool seen_write(struct mongo_writing *writing, const struct mongo_seen *seen,
                       const struct mongo_update_result *result, struct arena *arena,
                       bool *ret_written, struct error *err)
{
    struct slice after = result->document;
    struct item_operation op;
    bool done;

    if (!mongo_seen_operation(writing, seen, result, arena, &op, err))
        return false;
    done = item_operation_run(&op, err);
    mongo_call_charged(writing->call, &op.metered);
    mongo_told_item(writing->call, &writing->collection, &op, done ? NULL : err);
    *ret_written = done;
    if (!done && after.data)
        mongo_duplicate_tell(writing->call, &writing->collection, &writing->name, after, err);
    return done || mongo_is_overtaken(err);
}

/* The document as it is now, after another writer, or another shard key, was faster. */
static bool seen_again(struct mongo_writing *writing, struct mongo_seen *seen, bool rekeyed,
                       struct arena *arena, bool *ret_there, struct error *err)
{
    struct partition_key key;

    *ret_there = false;
    if (rekeyed &&
        !mongo_collection_reopen(writing->call, &writing->name, &writing->collection, err))
        return false;
    if (!writing->collection.container)
        return true;
    key = mongo_item_key(&writing->collection, seen->document);
    return item_look(writing, &seen->id, &key, arena, seen, ret_there, err);
}

static void written_keep(const struct mongo_writing *writing, struct mongo_statement *statement,
                         struct slice before, struct slice after)
{
    struct arena *arena = writing->call->arena;

    statement->before = arena_copy(arena, before);
    statement->after = after.data ? arena_copy(arena, after) : SLICE_NONE;
}

/* Carries the statement out on a document that was seen to match; overtaken, on what it is then. */
bool mongo_seen_carry_out(struct mongo_writing *writing, struct mongo_statement *statement,
                          struct mongo_seen *seen, struct arena *arena, bool *ret_done,
                          struct error *err)
{
    for (int attempt = 0; attempt < MONGO_ATTEMPTS_MAX; attempt++) {
        struct mongo_update_result result = {0};
        bool there, written = true;

        if (!mongo_seen_change(writing, statement, seen->document, arena, &result, ret_done, err))
            return false;
        if (!*ret_done)
            return true;
        if (result.changed && !mongo_validation_check(&writing->validation, result.document,
                                                      seen->document, arena, err))
            return false;
        if (!statement->update || result.changed) {
            if (!seen_write(writing, seen, &result, arena, &written, err))
                return false;
        }
        if (written) {
            writing->matched++;
            writing->modified += result.changed;
            if (!statement->multi) /* of all documents nobody asks, and they would not fit */
                written_keep(writing, statement, seen->document, result.document);
            return true;
        }
        if (!seen_again(writing, seen, err->code == ERROR_REKEYED, arena, &there, err))
            return false;
        *ret_done = false;
        if (!there)
            return true;
    }
    return mongo_overtaken_too_often(err);
}
