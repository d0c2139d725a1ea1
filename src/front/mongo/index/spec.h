/* Spec: an index as createIndexes names it, compiled to a definition of the core.
 *
 * All definitions of MongoDB's indexes are in its order, look into arrays, and count them; what the
 * client said is kept beside the definition (`source`), so that listIndexes shows it as it came. */
#pragma once

#include "front/mongo/error.h"
#include "index/definition.h"

struct mongo_index_spec {
    struct slice name;
    struct slice key;        /* BSON: {a: 1, b: -1} */
    struct slice shown;      /* BSON: as listIndexes shows it */
    struct slice definition; /* BSON, in the words of index/definition_read.c */
    bool is_id;              /* {_id: 1}, which is always there; it has no definition */
    bool on_modified;        /* {_ts: 1} that expires: the time to live of the collection */
    bool unique;
    int32_t expire_after_s; /* INDEX_EXPIRES_NEVER: not */
};

/* In the arena. inherited: the collator of the collection, for an index that names none; NULL:
 * none. Errors are MongoDB's: 9, 14, 67, 197, 13103, 16764, ... */
NODISCARD bool mongo_index_spec_read(struct slice index, const struct document_collator *inherited,
                                     struct arena *arena, struct mongo_index_spec *ret_spec,
                                     struct error *err);

/* The value of expireAfterSeconds. 67. */
NODISCARD bool mongo_index_expiry_read(const struct document_value *value, int32_t *ret_seconds,
                                       struct error *err);

/* What is the same in two of them, given what listIndexes shows. */
bool mongo_index_keys_same(struct slice shown, struct slice other);
bool mongo_index_options_same(struct slice shown, struct slice other);

/* The name of the index on _id. Documents are found by their key; a collection with a collation has
 * a unique definition of this name besides, which says what _ids are the same. */
#define MONGO_INDEX_ID SLICE("_id_")

/* {_id: 1} as it is shown, with the collator of its collection; NULL: none. */
struct slice mongo_index_id(const struct document_collator *collator, struct arena *arena);

/* The definition of that name, BSON in the arena. */
struct slice mongo_index_id_definition(const struct document_collator *collator,
                                       struct arena *arena);

/* How a definition is shown that another language made. */
struct slice mongo_index_show(const struct index_definition *definition, struct arena *arena);

/* The conditions of partialFilterExpression, appended as the element "filter". 67. */
NODISCARD bool mongo_index_filter_append(struct slice filter, struct buf *out, struct arena *arena,
                                         struct error *err);

/* A dotted path as the core writes it, in the arena. */
struct slice mongo_index_path(struct slice dotted, struct arena *arena);
