/* Validation: whether a document may be written to a collection with a validator, and what is wrong
 * with one that may not. */
#pragma once

#include "document/collator.h"
#include "front/mongo/command/call.h"
#include "front/mongo/match/match.h"

/* The validator of a collection, for the writes of one command. All zero: there is none. */
struct mongo_validation {
    struct mongo_call *call;
    const struct mongo_match *match; /* NULL: nothing is checked */
    struct slice filter;
    const struct document_collator *collator; /* of the collection */
    enum mongo_validation_level level;
    bool warn;
    bool brief; /* what is wrong is not explained any more: the reply has enough of it */
};

/* bypass: the command said bypassDocumentValidation, which needs the action of that name. */
NODISCARD bool mongo_validation_prepare(struct mongo_call *call,
                                        const struct mongo_collection *collection, bool bypass,
                                        struct mongo_validation *ret_validation, struct error *err);

/* Of a document that is to be written in place of before (data NULL: of none). What it looks at is
 * in the arena. MONGO_DOCUMENT_VALIDATION_FAILURE, and then call->error_info says why. */
NODISCARD bool mongo_validation_check(const struct mongo_validation *validation,
                                      struct slice document, struct slice before,
                                      struct arena *arena, struct error *err);

/* Does the document match? Whatever level and action are. */
NODISCARD bool mongo_validation_holds(const struct mongo_validation *validation,
                                      struct slice document, struct arena *arena, bool *ret_holds,
                                      struct error *err);
