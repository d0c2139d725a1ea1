#include "front/mongo/sharding/changing.h"
#include "catalogue/withheld.h"

#include "catalogue/migration.h"
#include "front/mongo/command/item.h"
#include "front/mongo/command/reading.h"

#include <time.h>

enum { WAITING_MAX = 8, PAUSE_MS = 5, PAUSE_MS_MAX = 100 };

/* --- Waiting --------------------------------------------------------------------------------- */

struct waiting {
    struct mongo_call *call;
    int64_t deadline_ms; /* 0: none */
    int64_t pause_ms;
};

static bool waiting_pause(struct waiting *waiting, struct error *err)
{
    struct timespec pause = {.tv_nsec = (long)waiting->pause_ms * 1000000};

    if (!mongo_may_wait(waiting->call, waiting->deadline_ms, err))
        return false;
    nanosleep(&pause, NULL);
    waiting->pause_ms = MIN(waiting->pause_ms * 2, (int64_t)PAUSE_MS_MAX);
    return true;
}

static bool container_open(const struct mongo_call *call, const struct mongo_namespace *name,
                           struct container **ret_container, struct error *err)
{
    return catalogue_container_open_withheld(call->services->catalogue, call->account.id,
                                             name->database, name->collection, ret_container, err);
}

/* Documents that cannot be given the new key keep a re-key from its end: it is taken back. */
static bool conflicts_check(const struct mongo_call *call, const struct container *container,
                            struct error *err)
{
    struct migrator_progress progress;
    struct error ignored;

    if (!migrator_progress(call->services->migrator, container, &progress) ||
        progress.kind != MIGRATION_REKEY || (!progress.conflicts && !progress.logical_full) ||
        !migrator_cancel(call->services->migrator, container, &ignored))
        return true;
    return mongo_error_set(
        err, MONGO_SHARD_KEY_NOT_FOUND,
        "nothing was changed: of %llu documents the new shard key is an array or too long, or "
        "another document has the same shard key and _id; %llu values of it would be over their "
        "limit of bytes",
        (unsigned long long)progress.conflicts, (unsigned long long)progress.logical_full);
}

/* Until the collection has no migration. */
static bool migration_await(struct waiting *waiting, const struct mongo_namespace *name,
                            bool our_own, struct error *err)
{
    waiting->pause_ms = 1;
    for (;;) {
        CLEANUP(container_unref) struct container *container = NULL;

        if (!container_open(waiting->call, name, &container, err))
            return false;
        if (!container_migration(container))
            return true;
        /* published: documents are where they are to be, and what is left behind goes by itself */
        if (our_own && migration_state(container_migration(container)) == MIGRATION_DROPPING)
            return true;
        if (our_own && !conflicts_check(waiting->call, container, err))
            return false;
        container_unref(TAKE(container)); /* before the pause */
        if (!waiting_pause(waiting, err))
            return false;
    }
}

/* --- Changing -------------------------------------------------------------------------------- */

static bool change_begin(struct waiting *waiting, const struct mongo_namespace *name,
                         mongo_change_begin *begin, void *context, bool *ret_needed,
                         struct error *err)
{
    for (;;) {
        CLEANUP(container_unref) struct container *container = NULL;

        *ret_needed = true;
        if (!migration_await(waiting, name, false, err) ||
            !container_open(waiting->call, name, &container, err))
            return false;
        if (begin(waiting->call->services->migrator, container, context, ret_needed, err))
            return true;
        if (err->code != ERROR_BUSY)
            return false;
        container_unref(TAKE(container));
        if (!waiting_pause(waiting, err))
            return false;
    }
}

static bool change_run(struct mongo_call *call, const struct mongo_namespace *name,
                       mongo_change_begin *begin, void *context, struct error *err)
{
    struct waiting waiting = {.call = call, .pause_ms = PAUSE_MS};
    bool needed;

    return mongo_deadline(call, &waiting.deadline_ms, err) &&
           change_begin(&waiting, name, begin, context, &needed, err) &&
           (!needed || migration_await(&waiting, name, true, err));
}

bool mongo_change_run(struct mongo_call *call, const struct mongo_namespace *name,
                      mongo_change_begin *begin, void *context, struct error *err)
{
    struct error ignored;
    bool fine;

    assert(call->may_block);
    if (!mongo_change_check(call, err))
        return false;
    if (atomic_fetch_add(&call->mongo->waiting, 1) >= WAITING_MAX) {
        atomic_fetch_sub(&call->mongo->waiting, 1);
        return mongo_error_set(err, MONGO_CONFLICTING_OPERATION,
                               "%d commands wait for chunks to move already: try again later",
                               WAITING_MAX);
    }
    mongo_account_leave(call);
    fine = change_run(call, name, begin, context, err);
    atomic_fetch_sub(&call->mongo->waiting, 1);
    return mongo_account_return(call, fine ? err : &ignored) && fine;
}

bool mongo_change_check(const struct mongo_call *call, struct error *err)
{
    return call->services->migrator || mongo_error_set(err, MONGO_COMMAND_NOT_SUPPORTED,
                                                       "this server leaves partitions as they are");
}

/* --- Names ----------------------------------------------------------------------------------- */

bool mongo_change_namespace(const struct mongo_call *call, const struct document_value *text,
                            struct mongo_namespace *ret_name, struct error *err)
{
    struct slice database, collection;

    if (text->type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%.*s' is the wrong type '%s', expected type 'string'",
                               SLICE_ARG(call->name), mongo_type_name(text->type));
    if (!slice_split(text->text, '.', &database, &collection))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE, "Invalid namespace specified '%.*s'",
                               (int)MIN(text->text.len, (size_t)128),
                               (const char *)text->text.data);
    *ret_name = (struct mongo_namespace){database, collection};
    return mongo_namespace_check(ret_name, err);
}

bool mongo_sharded_open(const struct mongo_call *call, const struct mongo_namespace *name,
                        struct mongo_collection *ret_collection, struct error *err)
{
    if (!mongo_collection_open(call, name, ret_collection, err))
        return false;
    if (!ret_collection->container)
        return mongo_error_set(
            err, MONGO_NAMESPACE_NOT_FOUND, "ns does not exist: %.*s.%.*s",
            (int)MIN(name->database.len, (size_t)64), (const char *)name->database.data,
            (int)MIN(name->collection.len, (size_t)128), (const char *)name->collection.data);
    if (mongo_collection_is_sharded(ret_collection))
        return true;
    mongo_collection_close(ret_collection);
    return mongo_error_set(
        err, MONGO_NAMESPACE_NOT_SHARDED, "Expected collection %.*s.%.*s to be sharded",
        (int)MIN(name->database.len, (size_t)64), (const char *)name->database.data,
        (int)MIN(name->collection.len, (size_t)128), (const char *)name->collection.data);
}
