/* Re-key of a definition: the same container under another partition key, and the key it had
 * before, for as long as clients still speak of it.
 *
 * The key before is the member `formerly` of the property `orrery`: {"partitionKey": {...},
 * "synthetic": {...}}. Nobody sets it but a re-key, and nobody removes it but the end of its grace
 * period.
 *
 * The member `rekeyed` stays: the LSN of the catalogue at the switch. What was said of key values
 * before it, as permissions do, was said of other items.
 *
 * The member `placed` of a view is the same of a re-key that left every row its key and placed it
 * otherwise: what permissions say holds, but what is kept beside the rows was left behind
 * (item/contribution.h), even if a later re-key places them as before. */
#pragma once

#include "base/buf.h"
#include "definition/definition.h"

/* What a container is to be placed by from now on. data NULL: the paths stay; hashing, and no
 * component is made. */
struct definition_rekey {
    struct slice partition_key; /* BSON of {"paths": [...], "kind": ..., "version": ...} */
    struct slice strategy;      /* a BSON element's value in an object {"strategy": ...} */
    struct slice synthetic;     /* BSON of a synthetic definition */
};

/* Another definition: of the same container, under another key. Where keys are others, the one
 * before is kept as `formerly`, but of collections of MongoDB, whose clients name no keys; one of
 * those may also have had none. ERROR_BAD_REQUEST: it cannot be so, or nothing would change.
 * ERROR_BUSY: an earlier re-key is still in its grace period. */
NODISCARD bool definition_rekeyed(const struct definition *before,
                                  const struct definition_rekey *rekey,
                                  struct definition **ret_definition, struct error *err);

/* The definition, but with its keys made and its items placed as the other says. */
NODISCARD bool definition_placed_as(const struct definition *definition,
                                    const struct definition *placing,
                                    struct definition **ret_definition, struct error *err);

/* The same without `formerly`. ERROR_BAD_REQUEST: it has none. */
NODISCARD bool definition_grace_ended(const struct definition *before,
                                      struct definition **ret_definition, struct error *err);

/* The same with `rekeyed`; with `placed`. */
NODISCARD bool definition_rekeyed_at(const struct definition *definition, uint64_t lsn,
                                     struct definition **ret_definition, struct error *err);
NODISCARD bool definition_placed_at(const struct definition *definition, uint64_t lsn,
                                    struct definition **ret_definition, struct error *err);

/* The LSN that `placed` has; 0: none. */
uint64_t definition_placed_lsn(const struct definition_fields *fields);

/* Do the two give every item the same partition key, wherever they place it? */
bool definition_keys_equal(const struct partition_definition *a,
                           const struct partition_definition *b);

/* The member `formerly` of a body, and where a replace does not speak of it: it stays. */
NODISCARD bool definition_formerly_read(struct definition_fields *fields,
                                        const struct document_value *value,
                                        const struct definition_fields *before, struct arena *arena,
                                        struct buf *out, struct error *err);
NODISCARD bool definition_formerly_keep(struct definition_fields *fields,
                                        const struct definition_fields *before, struct arena *arena,
                                        struct buf *out, struct error *err);

/* The member `rekeyed`, likewise. */
NODISCARD bool definition_rekeyed_read(struct definition_fields *fields,
                                       const struct document_value *value,
                                       const struct definition_fields *before, struct buf *out,
                                       struct error *err);
void definition_rekeyed_keep(struct definition_fields *fields,
                             const struct definition_fields *before, struct buf *out);

/* The member `placed`, likewise. */
NODISCARD bool definition_placed_read(const struct document_value *value,
                                      const struct definition_fields *before, struct buf *out,
                                      struct error *err);
void definition_placed_keep(const struct definition_fields *before, struct buf *out);
