/* Parts of a definition that have a file of their own. */
#pragma once

#include "base/buf.h"
#include "definition/definition.h"

/* Checks the vector, full-text and client encryption policies of a body, and that the indexes of
 * its indexing policy fit them. What they say is kept as it is; before: the definition a replace
 * begins with, else NULL. ERROR_BAD_REQUEST in the words of the service. */
NODISCARD bool definition_policies_check(struct slice body, const struct definition_fields *before,
                                         struct arena *arena, struct error *err);

/* Reads `orrery`, the property of a container that holds what Orrery offers beyond the service: a
 * table of members in definition_orrery.c. The partition key has been read. object: the creator's
 * words, or at a replace that leaves them out those of before; data NULL: none. What was understood
 * is appended to the body of a BSON document. ERROR_BAD_REQUEST: a member nobody knows, or one
 * that cannot be so, or may not change. taken: definition_replaced. */
NODISCARD bool definition_orrery_read(struct definition_fields *fields, struct slice object,
                                      const struct definition_fields *before, const bool *taken,
                                      struct arena *arena, struct buf *out, struct error *err);

/* Reads `orrery.indexes` (value NULL: those of before are kept) and adds them to the policy. taken:
 * numbers a new one does not get; NULL: none. ERROR_BAD_REQUEST, ERROR_NOT_SUPPORTED. */
NODISCARD bool definition_indexes_read(struct definition_fields *fields,
                                       const struct document_value *value,
                                       const struct definition_fields *before, const bool *taken,
                                       struct arena *arena, struct buf *out, struct error *err);

/* Can entries of an index lie elsewhere than their items in such a container? ERROR_NOT_SUPPORTED.
 */
NODISCARD bool definition_placed_check(const struct definition_fields *fields, struct error *err);

/* Whether the rest of a definition is fit for `orrery.reference`. ERROR_BAD_REQUEST. */
NODISCARD bool definition_reference_check(const struct definition_fields *fields,
                                          struct error *err);

/* The elements of `orrery.indexes`; data NULL: it has none. */
struct slice definition_indexes_array(const struct definition_fields *fields);

/* Says what `orrery.graph` of the creator's words chooses by other members, and takes it out of
 * them: graph.c. ERROR_BAD_REQUEST, ERROR_NOT_SUPPORTED. */
NODISCARD bool definition_graph_settle(const struct definition_fields *fields,
                                       const struct definition_fields *before, struct arena *arena,
                                       struct slice *object, struct error *err);

/* The indexes of a body without what only the server says of them. */
struct slice definition_indexes_fresh(struct slice array, struct arena *arena);

/* A copy of an object with another value of a member, at its end; without it where value is
 * undefined. In the arena. */
struct slice definition_member_set(struct slice object, struct slice name,
                                   const struct document_value *value, struct arena *arena);

/* One component of a key as definitions write it; undefined is an empty object. */
void definition_component_write(struct buf *out, struct slice key,
                                const struct document_value *value);

/* The strategy as a definition has it, completed; false: hash, for it says nothing. */
bool definition_strategy_find(const struct definition_fields *fields,
                              struct document_value *ret_value);
