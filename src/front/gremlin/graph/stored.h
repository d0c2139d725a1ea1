/* Stored form: vertices and edges as items, and values as BSON.
 *
 *     vertex  {id, label, pk, name: [{id, _value, _meta: {...}}, ...], ...}
 *     edge    {id, label, _isEdge: true, _vertexId, _vertexLabel, _sink, _sinkLabel,
 * _sinkPartition, pk, weight: 1, ...}
 *
 * as the service has them, so that the other APIs read and write them. The partition key and ttl
 * stand bare, properties of edges do too. An item without _isEdge is a vertex; one that another API
 * wrote may have properties that stand bare: those are read, as one value each.
 *
 * What BSON cannot tell apart has a tag beside it: `_type` next to `_value`, `_types: {k: tag}` in
 * an edge, `_metaTypes` next to `_meta`. The value itself stands there as BSON has it, so that
 * indexes and other APIs see numbers as numbers and dates as dates.
 *
 *     byte, short        int32                    "byte", "short"
 *     float              double                   "float"
 *     char               string                   "char"
 *     timestamp          date                     "timestamp"
 *     date with offset   date, to milliseconds    "datetime" and its whole text
 *     big integer        int64, decimal, double   "bigint", with its digits where those are lost
 *     big decimal        decimal, double          none, or "bigdecimal" with its digits
 *     duration, class    string                   "duration", "class"
 *     other temporals    string                   "temporal" and the name
 *     set                array                    "set"; or {set: [tag of each]}
 *     long, double       a number             "long", "double": where it came as JSON, which has
 * one date, UUID         a number, string     "date", "uuid": likewise list, map          array,
 * object            none; or {list: [tag of each]}, {map: {k: tag}}
 */
#pragma once

#include "document/bson.h"
#include "front/gremlin/value/value.h"

/* The value as BSON, in the arena; undefined as tag where none is needed. ERROR_BAD_REQUEST: it
 * cannot be stored (elements, predicates, maps with keys that are no texts; too deep). */
NODISCARD bool gremlin_stored_encode(const struct gremlin_value *value, struct arena *arena,
                                     struct document_value *ret_value,
                                     struct document_value *ret_tag, struct error *err);

/* A value of BSON, with its tag or NULL. One reference. */
struct gremlin_value gremlin_stored_decode(struct gremlin_heap *heap,
                                           const struct document_value *value,
                                           const struct document_value *tag);

/* The text an id is stored as: strings as they are, whole numbers in decimal, UUIDs with dashes; in
 * the arena or borrowed from the value. False: it can be none. */
bool gremlin_stored_id(const struct gremlin_value *id, struct arena *arena, struct slice *ret_text);

/* --- Items ------------------------------------------------------------------------------------ */

/* What is known of an item without decoding its properties; borrowed from the document. */
struct gremlin_head {
    bool edge;
    struct slice id, label;
    struct slice out_id, out_label, in_id, in_label; /* of an edge */
    struct document_value in_partition;              /* undefined: it says nothing */
};

/* False: it is no element: no id, no text as label, an edge without ends. */
bool gremlin_head_read(struct slice document, struct gremlin_head *ret_head);

/* Is a property of this name one that only the server writes? */
bool gremlin_name_is_own(struct slice name);

/* The values of a property of a vertex, one by one. */
struct gremlin_stored_values {
    bool listed; /* an array of {id, _value} */
    bool given;  /* the bare value was */
    struct document_value bare;
    struct document_iter iter;
};
void gremlin_stored_values_init(struct gremlin_stored_values *values,
                                const struct document_value *property);
/* entry: the object {id, _value, ...}; data NULL: the value stands bare. */
bool gremlin_stored_values_next(struct gremlin_stored_values *values,
                                struct document_value *ret_value, struct slice *ret_entry);
