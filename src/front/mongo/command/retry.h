/* Retry: writes that carry a number may be sent again, and happen once.
 *
 * A command that may be repeated loads what is known of its number once its collection is open
 * (mongo_retry_load). Each statement is then looked for; one that was carried out before is
 * answered by its record, another one takes a new record along to its commit
 * (item/write_record.h). Of calls without a number all of this is nothing. */
#pragma once

#include "front/mongo/command/call.h"
#include "item/write_record.h"

/* What became of a statement. */
struct mongo_outcome {
    int32_t matched, modified;
    struct document_value upserted; /* its _id; undefined: nothing was inserted */
    struct slice image;             /* of findAndModify; data NULL: none */
};

/* Of a call that has the session (session.h): its number. look: it may have been used before. */
void mongo_retry_begin(struct mongo_call *call, int64_t number, bool look);

/* Finds what is recorded of the number, if it may have been used. MONGO_TRANSACTION_TOO_OLD: a
 * later one was. */
NODISCARD bool mongo_retry_load(struct mongo_call *call, const struct mongo_collection *collection,
                                struct error *err);

static inline bool mongo_retry_is_on(const struct mongo_call *call)
{
    return call->retry != NULL;
}

/* Was the nth statement of the command carried out before? Then its outcome is that. */
bool mongo_retry_find(struct mongo_call *call, size_t nth, struct mongo_outcome *ret_outcome);

/* The record the nth statement takes to its commit; NULL: none. In the call's arena. */
const struct write_record *mongo_retry_record(struct mongo_call *call, size_t nth,
                                              const struct mongo_outcome *outcome);

/* Appends retriedStmtIds, if there are any. */
void mongo_retry_append(struct mongo_call *call);
