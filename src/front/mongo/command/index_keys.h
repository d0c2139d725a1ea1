/* Index keys: what find says of the entries of indexes. min and max bound those that are looked at,
 * returnKey shows them in place of documents, showRecordId the number of an item besides. */
#pragma once

#include "front/mongo/command/item.h"
#include "query/expression/expression.h"
#include "query/run.h"

/* min and max of a find, on the index that it hints at. */
struct mongo_key_bounds {
    const struct index_definition *index;   /* a copy: it outlives the collection's */
    const struct document_value *min, *max; /* one for each part, as they compare; NULL: none */
    struct cursor_range range;              /* the same as bytes; of _id none */
};

/* What a client says of them; data NULL or empty: nothing. */
struct mongo_key_limits {
    struct slice min, max;
    struct document_value hint;
    const struct document_collator *collator; /* of the query */
};

/* In the arena; *ret_bounds NULL: there are none. 51173: without a hint; 51174: other fields than
 * those of the index, or an index that has no ranges; 51175: min is not before max; 51176: their
 * fields differ. */
NODISCARD bool mongo_key_bounds_read(struct mongo_call *call,
                                     const struct mongo_collection *collection,
                                     const struct mongo_key_limits *limits, struct arena *arena,
                                     const struct mongo_key_bounds **ret_bounds, struct error *err);

/* Is an entry of the item within them? */
const struct query_expression *mongo_key_bounds_expression(const struct mongo_key_bounds *bounds,
                                                           struct query_build *build);

/* The values of the entry that an item was found by, named as the paths of its index; {} where no
 * index was walked, and {_id: ...} where by_id says that documents are found by that. */
const struct query_expression *mongo_key_expression(bool by_id, struct query_build *build);

/* A row with $recordId, the number of its item. */
const struct query_expression *mongo_record_id_expression(const struct query_expression *row,
                                                          struct query_build *build);

/* The index that a hint names; *ret_index NULL: that of _id, for which there need not be one. 2:
 * there is none, or it is not to be used. */
NODISCARD bool mongo_hint_find(struct mongo_call *call, const struct mongo_collection *collection,
                               const struct document_value *hint,
                               const struct index_definition **ret_index, struct error *err);
