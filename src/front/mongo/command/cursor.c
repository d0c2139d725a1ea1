/* Cursors and their batches: firstBatch, getMore, killCursors. */
#include "front/mongo/command/cursor.h"

#include "front/mongo/command/arguments.h"
#include "front/mongo/command/await.h"
#include "front/mongo/command/session.h"
#include "front/mongo/command/snapshot.h"
#include "front/mongo/command/watch.h"

#include <xxhash.h>

enum {
    FIRST_BATCH = 101,
    BATCH_BYTES_MAX = 16 * 1024 * 1024,
    CURSOR_BYTES = 4096, /* of a cursor besides its arena */
    CURSORS_LOOK_MS = 10 * 1000,
};

/* --- Batches --------------------------------------------------------------------------------- */

/* Rows go straight into the reply. */
struct batch {
    struct buf *out;
    uint32_t count;
};

static bool batch_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct batch *batch = self;
    char text[DOCUMENT_INDEX_SIZE];

    document_append(batch->out, document_index_key(batch->count++, text), value);
    return true;
}

struct slice mongo_namespace_text(struct arena *arena, const struct mongo_namespace *name)
{
    return arena_printf(arena, "%.*s.%.*s", SLICE_ARG(name->database), SLICE_ARG(name->collection));
}

/* The fields of a reply around its batch; the id, which is known at the end, comes behind it. */
struct batch_frame {
    size_t cursor, list;
};

static struct batch_frame frame_begin(struct mongo_call *call, struct slice ns, const char *name)
{
    struct batch_frame frame;

    frame.cursor = document_append_object_begin(&call->reply, SLICE("cursor"));
    document_append_string(&call->reply, SLICE("ns"), ns);
    frame.list = document_append_array_begin(&call->reply, slice_of_text(name));
    return frame;
}

static void frame_end(struct mongo_call *call, struct batch_frame frame, uint64_t id)
{
    document_end(&call->reply, frame.list);
    document_append_int64(&call->reply, SLICE("id"), (int64_t)id);
    mongo_snapshot_append(call);
    document_end(&call->reply, frame.cursor);
}

/* --- Cursors --------------------------------------------------------------------------------- */

static void cursor_close(struct front_cursor *head)
{
    mongo_cursor_free((struct mongo_cursor *)head);
}

void mongo_cursor_free(struct mongo_cursor *cursor)
{
    if (!cursor)
        return;
    if (cursor->watch)
        mongo_watch_close(cursor->watch);
    arena_free(cursor->arena);
}

static int64_t cursor_deadline(const struct mongo_call *call)
{
    return clock_read_monotonic_ms(call->services->clock) + call->options->cursor_ms;
}

/* Users of an account have cursors of their own. */
static uint64_t user_of(const struct mongo_call *call)
{
    const struct mongo_session *session = call->session;

    if (!session->by_user)
        return 0;
    return XXH3_64bits_withSeed(
               session->user, strlen(session->user),
               XXH3_64bits(session->user_database, strlen(session->user_database))) |
           1;
}

struct mongo_cursor *mongo_cursor_new(const struct mongo_call *call,
                                      const struct mongo_namespace *name)
{
    struct arena *arena = arena_new();
    struct mongo_cursor *cursor = ARENA_NEW(arena, struct mongo_cursor);
    struct slice session = mongo_session_id(call);

    cursor->arena = arena;
    cursor->head.close = cursor_close;
    cursor->ns = mongo_namespace_text(arena, name);
    cursor->database = arena_copy(arena, name->database);
    cursor->collection = arena_copy(arena, name->collection);
    cursor->base = cursor->collection;
    cursor->in_session = session.len == MONGO_SESSION_ID_LEN;
    cursor->snapshot = call->snapshot;
    cursor->user = user_of(call);
    if (cursor->in_session)
        memcpy(cursor->session, session.data, MONGO_SESSION_ID_LEN);
    if (cursor->in_session || cursor->snapshot)
        mongo_call_cursor_tag(call, cursor->head.tag);
    return cursor;
}

static void continuation_keep(struct mongo_cursor *cursor, struct slice continuation)
{
    assert(continuation.len <= sizeof cursor->continuation);
    if (continuation.len)
        memcpy(cursor->continuation, continuation.data, continuation.len);
    cursor->continuation_len = continuation.len;
}

/* Those that nobody comes back for hold memory of their account: whoever opens one looks after
 * them now and then. */
static void cursors_look_after(struct mongo_call *call)
{
    int64_t now_ms = clock_read_monotonic_ms(call->services->clock);
    int_fast64_t looked_ms = atomic_load(&call->mongo->cursors_looked_ms);

    if (now_ms - looked_ms >= CURSORS_LOOK_MS &&
        atomic_compare_exchange_strong(&call->mongo->cursors_looked_ms, &looked_ms, now_ms))
        (void)front_cursors_expire(call->mongo->cursors, now_ms);
}

/* --- First batches --------------------------------------------------------------------------- */

void mongo_cursor_single(struct mongo_call *call, struct slice ns,
                         const struct document_value *value)
{
    struct batch_frame frame = frame_begin(call, ns, "firstBatch");

    if (value)
        document_append(&call->reply, SLICE("0"), value);
    frame_end(call, frame, 0);
}

bool mongo_cursor_keep(struct mongo_call *call, struct mongo_cursor *cursor, uint64_t *ret_id,
                       struct error *err)
{
    if (call->may_block)
        cursors_look_after(call);
    return front_cursors_open(
        call->mongo->cursors, &cursor->head,
        &(struct front_cursor_terms){.account = account_info(call->account.account)->number,
                                     .owner = call->owner,
                                     .deadline_ms = cursor_deadline(call),
                                     .bytes = CURSOR_BYTES + arena_used(cursor->arena)},
        clock_read_monotonic_ms(call->services->clock), ret_id, err);
}

bool mongo_cursor_first(struct mongo_call *call, struct mongo_cursor *made,
                        const struct mongo_collection *collection,
                        const struct mongo_batch_terms *terms, struct error *err)
{
    CLEANUP(mongo_cursor_free) struct mongo_cursor *cursor = made;
    struct batch batch = {.out = &call->reply};
    struct mongo_page page = {.rows_max = terms->given ? (uint64_t)terms->size : FIRST_BATCH,
                              .bytes_max = BATCH_BYTES_MAX - 4096,
                              .row = batch_take,
                              .self = &batch};
    struct batch_frame frame;
    bool more = true;
    uint64_t id = 0;

    if (collection->container)
        cursor->container = container_info(collection->container)->number;
    if (!mongo_deadline(call, &page.deadline_ms, err))
        return false;
    frame = frame_begin(call, cursor->ns, "firstBatch");
    if (page.rows_max) {
        if (!mongo_reading_page(call, collection, &cursor->reading, &page, err))
            return false;
        more = page.continuation.len;
        continuation_keep(cursor, page.continuation);
    }
    if (more && !terms->single) {
        if (!mongo_cursor_keep(call, cursor, &id, err))
            return false;
        cursor = NULL; /* the table's */
    }
    frame_end(call, frame, id);
    return true;
}

/* --- getMore --------------------------------------------------------------------------------- */

struct more {
    struct slice collection;
    int64_t batch_size;
    bool batch_given;
};

static const struct mongo_field more_fields[] = {
    {"collection", MONGO_FIELD_STRING, offsetof(struct more, collection), true},
    {"batchSize", MONGO_FIELD_SIZE, offsetof(struct more, batch_size)},
};

static bool not_found(const struct mongo_call *call, int64_t id, struct error *err)
{
    if (call->wait.until_ms) /* it was there when the call began to wait */
        return mongo_await_killed((uint64_t)id, err);
    return mongo_error_set(err, MONGO_CURSOR_NOT_FOUND, "cursor id %lld not found", (long long)id);
}

/* A cursor belongs to its session and its collection. */
static bool cursor_check(const struct mongo_call *call, const struct mongo_cursor *cursor,
                         int64_t id, const struct more *more, struct error *err)
{
    struct slice session = mongo_session_id(call);
    bool same = cursor->in_session
                    ? slice_equal(session, slice_of(cursor->session, MONGO_SESSION_ID_LEN))
                    : session.len == 0;

    if (cursor->user != user_of(call))
        return mongo_error_set(err, MONGO_UNAUTHORIZED,
                               "cursor %lld was not created by the user of the connection",
                               (long long)id);
    if (!same)
        return mongo_error_set(err, MONGO_UNAUTHORIZED,
                               "cannot run getMore on cursor %lld, which was created in another "
                               "session, or in none",
                               (long long)id);
    if (cursor->in_session) {
        uint8_t tag[FRONT_CURSOR_TAG_LEN];

        mongo_call_cursor_tag(call, tag);
        if (memcmp(tag, cursor->head.tag, sizeof tag) != 0)
            return mongo_error_set(err, 50741,
                                   "cannot run getMore on cursor %lld, which was created in "
                                   "another transaction, or in none",
                                   (long long)id);
    }
    if (slice_equal(cursor->database, call->message.database) &&
        slice_equal(cursor->collection, more->collection))
        return true;
    return mongo_error_set(err, MONGO_UNAUTHORIZED,
                           "Requested getMore on namespace '%.*s.%.*s', but cursor belongs to a "
                           "different namespace %.*s",
                           (int)MIN(call->message.database.len, (size_t)64),
                           (const char *)call->message.database.data,
                           (int)MIN(more->collection.len, (size_t)128),
                           (const char *)more->collection.data, SLICE_ARG(cursor->ns));
}

/* Is the collection that the cursor reads the one it was opened over? */
static bool is_same(const struct mongo_cursor *cursor, const struct mongo_collection *collection)
{
    return (collection->container ? container_info(collection->container)->number : 0) ==
           cursor->container;
}

static bool dropped(const struct mongo_cursor *cursor, struct error *err)
{
    return mongo_error_set(err, MONGO_QUERY_PLAN_KILLED, "collection dropped: %.*s",
                           SLICE_ARG(cursor->ns));
}

/* Reading a collection that goes meanwhile fails with what the reader stumbles over first (its
 * position is lost, a partition is gone): the cause is told, not that. */
static bool reading_failed(const struct mongo_call *call, const struct mongo_cursor *cursor,
                           struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection now = {0};
    const struct mongo_namespace name = {cursor->database, cursor->base};
    struct error unused;

    if (err->code != ERROR_COLD && mongo_collection_open(call, &name, &now, &unused) &&
        !is_same(cursor, &now))
        return dropped(cursor, err);
    return false;
}

/* *ret_count: the documents of the batch. */
static bool cursor_batch(struct mongo_call *call, struct mongo_cursor *cursor,
                         const struct more *more, uint32_t *ret_count, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    const struct mongo_namespace name = {cursor->database, cursor->base};
    struct batch batch = {.out = &call->reply};
    struct mongo_page page = {
        .rows_max = more->batch_size ? (uint64_t)more->batch_size : UINT64_MAX,
        .bytes_max = BATCH_BYTES_MAX - 4096,
        .continuation = slice_of(cursor->continuation, cursor->continuation_len),
        .row = batch_take,
        .self = &batch};

    if ((!cursor->awaits && !mongo_deadline(call, &page.deadline_ms, err)) ||
        !mongo_collection_open(call, &name, &collection, err))
        return false;
    if (!is_same(cursor, &collection))
        return dropped(cursor, err);
    if (!mongo_reading_page(call, &collection, &cursor->reading, &page, err))
        return reading_failed(call, cursor, err);
    if (!mongo_await_check(&cursor->head, err))
        return false;
    continuation_keep(cursor, page.continuation);
    *ret_count = batch.count;
    return true;
}

static uint64_t tail_hash(const struct mongo_call *call, const struct mongo_cursor *cursor)
{
    return history_hash(account_info(call->account.account)->number, cursor->database,
                        cursor->base);
}

bool mongo_get_more(struct mongo_call *call, struct error *err)
{
    struct front_cursors *cursors = call->mongo->cursors;
    struct more more = {0};
    struct batch_frame frame;
    struct mongo_cursor *cursor;
    uint64_t settled;
    uint32_t count = 0;
    int64_t id;
    bool fine, over;

    if (call->target.type != DOCUMENT_INT64 && call->target.type != DOCUMENT_INT32)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'getMore.getMore' is the wrong type '%s', expected type "
                               "'long'",
                               mongo_type_name(call->target.type));
    (void)document_to_int64(&call->target, &id);
    if (!mongo_arguments_read(call, more_fields, ARRAY_LEN(more_fields), &more, err))
        return false;
    if (!call->account.account ||
        !front_cursors_take(cursors, account_info(call->account.account)->number, (uint64_t)id,
                            clock_read_monotonic_ms(call->services->clock),
                            (struct front_cursor **)&cursor, err))
        return err->code == ERROR_CURSOR_IN_USE ? false : not_found(call, id, err);
    if (cursor->snapshot && !call->logical && !mongo_snapshot_resume(call, cursor->snapshot, err)) {
        front_cursors_end(cursors, &cursor->head);
        return false;
    }
    if (!cursor_check(call, cursor, id, &more, err)) {
        front_cursors_put_back(cursors, &cursor->head, cursor->head.deadline_ms,
                               cursor->head.bytes);
        return false;
    }
    if (cursor->watch)
        return mongo_watch_more(call, cursor, more.batch_size, err);
    if (cursor->awaits && !mongo_await_begin(call, err)) {
        front_cursors_put_back(cursors, &cursor->head, cursor->head.deadline_ms,
                               cursor->head.bytes);
        return false;
    }
    frame = frame_begin(call, arena_copy(call->arena, cursor->ns), "nextBatch");
    settled = commit_clock_settled(call->mongo->time.times); /* all that is seen by the batch */
    fine = cursor_batch(call, cursor, &more, &count, err);
    if (fine && cursor->awaits && !count && cursor->continuation_len &&
        mongo_await_may(call, &cursor->head)) {
        mongo_await_park(call, &cursor->head, tail_hash(call, cursor), settled, err);
        return false;
    }
    /* a throttled batch can be asked for again; after any other error the cursor is of no use */
    over = fine ? cursor->continuation_len == 0
                : mongo_error_code(err) != MONGO_REQUEST_RATE_TOO_LARGE;
    if (over)
        front_cursors_end(cursors, &cursor->head);
    else
        front_cursors_put_back(cursors, &cursor->head, cursor_deadline(call), cursor->head.bytes);
    call->repeats = !over;
    frame_end(call, frame, over ? 0 : (uint64_t)id);
    return fine;
}

/* --- killCursors ----------------------------------------------------------------------------- */

struct killing {
    struct slice cursors;
};

static void ids_append(struct buf *out, const char *name, const int64_t *ids, size_t count)
{
    size_t list = document_append_array_begin(out, slice_of_text(name));
    char text[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < count; i++)
        document_append_int64(out, document_index_key((uint32_t)i, text), ids[i]);
    document_end(out, list);
}

/* Of {aggregate: 1} and its like, whose cursors have no collection. */
static bool is_of_database(const struct mongo_call *call)
{
    return call->target.type == DOCUMENT_STRING &&
           slice_starts_with(call->target.text, SLICE("$cmd."));
}

bool mongo_kill_cursors(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"cursors", MONGO_FIELD_ARRAY, offsetof(struct killing, cursors), true}};
    uint32_t account = call->account.account ? account_info(call->account.account)->number : 0;
    struct killing killing = {0};
    struct mongo_namespace name;
    struct document_iter iter;
    int64_t *killed, *missing;
    size_t count, dead = 0, unknown = 0;

    if ((!is_of_database(call) && !mongo_call_namespace(call, &name, err)) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &killing, err))
        return false;
    count = killing.cursors.data ? document_count(killing.cursors) : 0;
    killed = ARENA_ARRAY(call->arena, int64_t, count + 1);
    missing = ARENA_ARRAY(call->arena, int64_t, count + 1);
    if (count) {
        document_iter_init(&iter, killing.cursors);
        while (document_iter_next(&iter)) {
            int64_t id;

            if (!document_to_int64(&iter.value, &id))
                return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                       "BSON field 'killCursors.cursors.%zu' is the wrong type "
                                       "'%s', expected type 'long'",
                                       dead + unknown, mongo_type_name(iter.value.type));
            if (front_cursors_kill(call->mongo->cursors, account, (uint64_t)id))
                killed[dead++] = id, mongo_waits_kill(call->mongo->waits, (uint64_t)id);
            else
                missing[unknown++] = id;
        }
    }
    ids_append(&call->reply, "cursorsKilled", killed, dead);
    ids_append(&call->reply, "cursorsNotFound", missing, unknown);
    ids_append(&call->reply, "cursorsAlive", NULL, 0);
    ids_append(&call->reply, "cursorsUnknown", NULL, 0);
    return true;
}
