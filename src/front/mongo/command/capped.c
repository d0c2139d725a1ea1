#include "front/mongo/command/capped.h"

#include "front/mongo/command/item.h"

enum { TRIMMED_MAX = 1000, CONFLICTS_MAX = 100, SHOWN_MAX = 64 };

bool mongo_capped_check(const struct mongo_call *call, const struct mongo_collection *collection,
                        const struct mongo_namespace *name, struct error *err)
{
    return !call->transact || !collection->terms.capped ||
           mongo_error_set(err, MONGO_NOT_SUPPORTED_IN_TRANSACTION,
                           "Collection '%.*s.%.*s' is a capped collection. Writes in transactions "
                           "are not allowed on capped collections.",
                           (int)MIN(name->database.len, (size_t)SHOWN_MAX),
                           (const char *)name->database.data,
                           (int)MIN(name->collection.len, (size_t)SHOWN_MAX),
                           (const char *)name->collection.data);
}

bool mongo_capped_fits(const struct mongo_collection *collection, struct slice document,
                       struct error *err)
{
    return !collection->terms.capped || document.len <= (size_t)collection->terms.size ||
           mongo_error_set(err, MONGO_BAD_VALUE, "object to insert exceeds cappedMaxSize");
}

/* One commit. *ret_removed 0: nothing is left to remove. */
static bool some_trim(struct mongo_call *call, const struct mongo_collection *collection,
                      size_t *ret_removed, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(transaction_free) struct transaction *transaction = NULL;
    const struct item_space *space = &collection->space;
    struct partition_key key = mongo_item_key(collection, SLICE("\5\0\0\0\0"));
    struct slice logical = item_logical(&space->definition->key, &key, arena);
    struct item_scope scope = item_space_scope(space, logical);
    int64_t cru;

    if (!transaction_begin(&scope, logical, arena, &transaction, err) ||
        !transaction_make_room(transaction, TRIMMED_MAX, ret_removed, err) ||
        !transaction_commit(transaction, err))
        return false;
    cru = transaction_work(transaction).write_cru;
    metering_charge(call->services->meters, scope.partition, cru);
    call->charge_cru += cru;
    return true;
}

bool mongo_capped_trim(struct mongo_call *call, const struct mongo_collection *collection,
                       struct error *err)
{
    size_t removed = 1, conflicts = 0;

    while (removed) {
        if (!mongo_may_wait(call, 0, err))
            return false;
        if (!some_trim(call, collection, &removed, err) &&
            (err->code != ERROR_CONFLICT || ++conflicts == CONFLICTS_MAX))
            return false;
        front_call_breathe(&call->front);
    }
    return true;
}
