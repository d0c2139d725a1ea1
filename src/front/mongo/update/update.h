/* Update: what an update of MongoDB does to a document, compiled once and applied to many.
 *
 * An update is a document of modifiers ({$set: {a: 1}}), a replacement, or a pipeline. Applying it
 * takes BSON and gives BSON, says whether anything changed, and what: the updateDescription of
 * change streams. The document before is never touched.
 *
 * Errors are those of front/mongo/error.h, with MongoDB's codes and words. */
#pragma once

#include "front/mongo/match/match.h"

enum { MONGO_DOCUMENT_BYTES_MAX = 16 * 1024 * 1024 };

struct mongo_update; /* immutable, in the arena of its build */

struct mongo_update_options {
    struct slice array_filters;               /* a BSON array; absent: none */
    const struct document_collator *collator; /* texts are compared by it; NULL: by their bytes */
    bool multi;                               /* which a replacement may not be */

    /* Compiles a pipeline to what it makes of the document in slot 0. NULL: those are refused. */
    bool (*pipeline)(void *self, struct slice pipeline, struct query_build *build,
                     const struct query_expression **ret_document, struct error *err);
    void *pipeline_self;
};

/* update is an object, or an array: a pipeline. options NULL: none. What is
 * needed of update is copied into the build's arena. */
NODISCARD bool mongo_update_compile(const struct document_value *update,
                                    const struct mongo_update_options *options,
                                    struct query_build *build,
                                    const struct mongo_update **ret_update, struct error *err);

bool mongo_update_is_replacement(const struct mongo_update *update);

/* Does a path of it hold `$`? Then mongo_match_position is to be asked for each document. */
bool mongo_update_is_positional(const struct mongo_update *update);

struct mongo_update_input {
    struct slice document;         /* before */
    int64_t position;              /* what `$` stands for; -1: nothing */
    bool inserting;                /* the document is made by an upsert: $setOnInsert counts */
    int64_t now_ms;                /* of $currentDate */
    uint64_t now_timestamp;        /* the same, as a timestamp */
    struct query_context *context; /* filters of $pull and of elements work in it */
};

struct mongo_update_result {
    struct slice document; /* after; input.document itself where nothing changed */
    bool changed;
    /* Of what changed, as change streams tell it; all absent for a replacement. */
    struct slice updated_fields;   /* an object: dotted paths and their values */
    struct slice removed_fields;   /* an array of dotted paths */
    struct slice truncated_arrays; /* an array of {field, newSize} */
};

/* Results are in the arena. */
NODISCARD bool mongo_update_apply(const struct mongo_update *update,
                                  const struct mongo_update_input *input, struct arena *arena,
                                  struct mongo_update_result *ret_result, struct error *err);

/* The document that an upsert inserts: what the filter says documents equal, then the update. Its
 * _id is first: from the filter, from the update, or new_id. input.document is not looked at. */
NODISCARD bool mongo_update_upsert(const struct mongo_update *update,
                                   const struct mongo_match *match,
                                   const struct mongo_update_input *input,
                                   const struct document_value *new_id, struct arena *arena,
                                   struct slice *ret_document, struct error *err);
