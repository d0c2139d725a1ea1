/* Statements: one update or delete of a command, from the documents it matches to what becomes of
 * them. update and delete run a list of them, findAndModify one.
 *
 * A statement looks for what matches, then writes the version that was seen. Whoever was overtaken
 * by another writer looks at the document again, which may not match any more. */
#pragma once

#include "front/mongo/command/reading.h"
#include "front/mongo/command/retry.h"
#include "front/mongo/command/validation.h"
#include "front/mongo/update/update.h"

enum mongo_image { MONGO_IMAGE_NONE, MONGO_IMAGE_BEFORE, MONGO_IMAGE_AFTER };

/* What is the same for all statements of a command, and what has become of them. */
struct mongo_writing {
    struct mongo_call *call;
    struct mongo_namespace name;
    struct mongo_collection collection;
    struct mongo_validation validation;
    int64_t deadline_ms;
    struct slice let;          /* variables; data NULL: none */
    int32_t matched, modified; /* n and nModified */
    struct buf errors, upserted;
    uint32_t error_count, upserted_count;
    size_t statement;       /* which it is at, for its record */
    enum mongo_image image; /* what the record keeps of it */
};

/* A document that matches, as it was seen; in an arena. */
struct mongo_seen {
    struct slice document, etag;
    struct document_value id;
};

/* One statement: what it looks for, and what it makes of it. */
struct mongo_statement {
    struct mongo_reading reading;
    const struct mongo_update *update; /* NULL: it deletes */
    bool upsert, multi;

    /* Of the last document that was written, for findAndModify; in the call's arena. */
    struct slice before, after;     /* data NULL: there was, or is, none */
    struct document_value upserted; /* its _id; undefined: nothing was inserted */
};

/* Documents that were looked for; in the arena. */
struct mongo_look {
    struct arena *arena;
    struct mongo_seen *seen;
    size_t count, max;
};

enum { MONGO_ATTEMPTS_MAX = 64 };

/* Opens the collection and its validator. */
NODISCARD bool mongo_writing_open(struct mongo_writing *writing, bool bypass, struct error *err);

/* What an update consists of besides the documents it is for. */
struct mongo_changing {
    const struct document_value *update;
    struct slice array_filters;
    const struct document_value *constants; /* of a pipeline, `c`; NULL: none */
};

/* Compiles it for a statement whose reading is prepared. */
NODISCARD bool mongo_statement_update(struct mongo_call *call,
                                      const struct mongo_changing *changing,
                                      struct mongo_statement *statement, struct error *err);

/* Carries out the statement of this index in the command; or takes what became of it when it was
 * carried out before. */
NODISCARD bool mongo_statement_run(struct mongo_writing *writing, struct mongo_statement *statement,
                                   size_t index, struct error *err);
/* The same on one document that matches, or on none, whether it was before or not. */
NODISCARD bool mongo_statement_run_one(struct mongo_writing *writing,
                                       struct mongo_statement *statement, size_t index,
                                       struct error *err);
/* It was carried out before: it counts as it did then. */
void mongo_outcome_take(struct mongo_writing *writing, const struct mongo_outcome *outcome,
                        size_t index);

/* --- Its documents (seen.c) ------------------------------------------------------------------ */

/* Lost against another writer, or against another shard key: nothing was done, and the next look
 * shows why. */
bool mongo_is_overtaken(const struct error *err);
bool mongo_overtaken_too_often(struct error *err);

/* Up to look->max documents that match, behind the continuation. */
NODISCARD bool mongo_page_look(struct mongo_writing *writing,
                               const struct mongo_statement *statement, struct slice *continuation,
                               struct mongo_look *look, struct error *err);

/* One document that matches, or none. */
NODISCARD bool mongo_one_look(struct mongo_writing *writing,
                              const struct mongo_statement *statement, struct arena *arena,
                              struct mongo_seen *ret_seen, bool *ret_found, struct error *err);

/* Carries the statement out on a document that was seen to match; overtaken, on what it is then.
 * *ret_done false: it does not match any more. */
NODISCARD bool mongo_seen_carry_out(struct mongo_writing *writing,
                                    struct mongo_statement *statement, struct mongo_seen *seen,
                                    struct arena *arena, bool *ret_done, struct error *err);

/* What the document becomes; of a statement that deletes, nothing is made. *ret_holds false: it
 * does not match, as seen now. And the operation that makes it so of the version that was seen. */
NODISCARD bool mongo_seen_change(struct mongo_writing *writing,
                                 const struct mongo_statement *statement, struct slice document,
                                 struct arena *arena, struct mongo_update_result *ret_result,
                                 bool *ret_holds, struct error *err);
NODISCARD bool mongo_seen_operation(struct mongo_writing *writing, const struct mongo_seen *seen,
                                    const struct mongo_update_result *result, struct arena *arena,
                                    struct item_operation *ret_operation, struct error *err);

/* What expressions of a statement are evaluated with, over this document (data NULL: none); and
 * what an update of it knows besides. */
void mongo_writing_context(struct query_context *context, struct query_slot *slot,
                           struct slice document, struct mongo_writing *writing,
                           struct arena *arena);
struct mongo_update_input mongo_writing_input(const struct mongo_writing *writing,
                                              struct slice document, struct query_context *context);
