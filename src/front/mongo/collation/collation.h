/* Collation: what collation documents of MongoDB ask for, and values in comparison form within the
 * limits of a query. Collators themselves are document/collator.h. */
#pragma once

#include "document/collator.h"
#include "front/mongo/error.h"
#include "query/expression/expression.h"

/* The collator of a document such as {locale: "fr", strength: 1}. *ret_collator is NULL where texts
 * compare by their bytes: the document is absent, {} or {locale: "simple"}. MONGO_BAD_VALUE,
 * MONGO_TYPE_MISMATCH, 40414, 40415, 161; MONGO_NOT_IMPLEMENTED: there are too many kinds by now.
 */
NODISCARD bool mongo_collator_find(struct slice collation,
                                   const struct document_collator **ret_collator,
                                   struct error *err);

/* The value in comparison form: in the context's arena, or as it is where there is nothing to do.
 * collator NULL: as it is. */
NODISCARD bool mongo_collate(const struct document_collator *collator,
                             const struct document_value *value, struct query_context *context,
                             struct document_value *ret_value, struct error *err);

/* The same when a query is compiled; in the arena. */
NODISCARD bool mongo_collate_constant(const struct document_collator *collator,
                                      const struct document_value *value, struct arena *arena,
                                      struct document_value *ret_value, struct error *err);

/* How two values compare. */
NODISCARD bool mongo_collate_compare(const struct document_collator *collator,
                                     const struct document_value *a, const struct document_value *b,
                                     struct query_context *context, int *ret_order,
                                     struct error *err);

/* What an expression gives behind its comparison form, [form, value]: the least of such pairs has
 * the least value. What is undefined stays so. And the value of a pair. */
const struct query_expression *mongo_collate_pair(const struct document_collator *collator,
                                                  const struct query_expression *expression,
                                                  struct query_build *build);
const struct query_expression *mongo_collate_unpair(const struct query_expression *pair,
                                                    struct query_build *build);

/* The comparison form of what an expression gives; collator NULL: the expression itself. */
const struct query_expression *mongo_collate_expression(const struct document_collator *collator,
                                                        const struct query_expression *expression,
                                                        struct query_build *build);
