/* $text: a search in the texts of a collection's text index.
 *
 *     {$text: {$search: "coffee \"dark roast\" -decaf", $language: "english",
 *              $caseSensitive: false, $diacriticSensitive: false}}
 *
 * A document is found if it has one of the words, in whichever form, all of the phrases in quotes
 * as they stand, and nothing of what a minus is before. Its score is the sum over the words of the
 * search of what each is worth in each of its texts: more in one with weight, more the more often
 * it is there, less in a long one. So has MongoDB it, and its scores are these. */
#pragma once

#include "front/mongo/error.h"
#include "index/definition.h"
#include "query/expression/expression.h"

struct mongo_text; /* immutable, in the arena of its build */

/* index NULL: there is none, 27. */
NODISCARD bool mongo_text_compile(const struct document_value *value,
                                  const struct index_definition *index, struct query_build *build,
                                  const struct mongo_text **ret_text, struct error *err);

NODISCARD bool mongo_text_holds(const struct mongo_text *text, struct slice document,
                                struct query_context *context, bool *ret_holds, struct error *err);
NODISCARD bool mongo_text_score(const struct mongo_text *text, struct slice document,
                                struct query_context *context, double *ret_score,
                                struct error *err);

/* {$meta: "textScore"} of the document in a slot. */
const struct query_expression *mongo_text_score_expression(const struct mongo_text *text,
                                                           uint32_t slot,
                                                           struct query_build *build);

/* What is implied of documents that are found. */
const struct query_implied *mongo_text_imply(const struct mongo_text *text,
                                             const struct query_implying *implying);
