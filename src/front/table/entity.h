/* Entity: an item as the Table API sees it.
 *
 *     {"id": row key, "PartitionKey": ..., "RowKey": row key, properties..., "$ticks": {...}}
 *
 * The id is the row key, whatever RowKey says; items that other APIs wrote need none. What their
 * properties cannot be here is shown as the text of its JSON. Properties whose names mean something
 * to the store (id, ttl, _ts, ...) are kept under a name with a dollar before it. "$ticks" holds
 * what dates have below a millisecond (edm.h).
 *
 * Timestamp and ETag follow from the header of the item: its wall clock, and digits below a
 * millisecond from its LSN, so that no two versions of an entity have the same. */
#pragma once

#include "definition/names.h"
#include "front/table/edm.h"
#include "front/table/route.h"
#include "item/item.h"

/* Of the containers that are tables. */
static inline const struct document_names *table_names(void)
{
    return definition_names(DEFINITION_IDENTITY_ID);
}

/* The stored name of a property, and back; borrowed, or in the arena. */
struct slice table_property_stored(struct slice name, struct arena *arena);
struct slice table_property_shown(struct slice stored);

/* Stored under the name but shown otherwise, or not at all: id, RowKey, PartitionKey, $ticks. */
bool table_property_is_own(struct slice stored);

/* ERROR_TABLE_PROPERTY_NAME, ERROR_TABLE_PROPERTY_NAME_LONG. */
NODISCARD bool table_property_check(struct slice name, struct error *err);

/* Reads the JSON of an entity into the document to be stored, in the arena. keys: those of the
 * path, which the body must agree with; without (data NULL) they are taken from the body and
 * written to keys. Nothing is stored that is null, Timestamp or metadata. */
NODISCARD bool table_entity_read(struct slice json, struct table_keys *keys, struct arena *arena,
                                 struct slice *ret_document, struct error *err);

/* The stored document with the properties of another in place of its own, in the arena.
 * ERROR_TABLE_PROPERTIES, ERROR_TABLE_ENTITY_TOO_LARGE. */
NODISCARD bool table_entity_merge(struct slice stored, struct slice with, struct arena *arena,
                                  struct slice *ret_document, struct error *err);

/* The moment of the last change as clients see it. */
int64_t table_entity_ticks(const struct item_header *header);

/* W/"datetime'2026-11-15T20%3A57%3A09.7278109Z'" */
enum { TABLE_ETAG_LEN = 46 };
void table_etag_write(int64_t ticks, char ret_text[TABLE_ETAG_LEN]);

/* The properties a client wants; none: all. */
struct table_selection {
    const struct slice *names;
    size_t count;
};

bool table_selection_has(const struct table_selection *selection, struct slice name);

/* How entities are shown. */
struct table_shape {
    bool minimal, full; /* metadata: neither, the first or both */
    struct slice root;  /* of links */
    struct slice account, table;
    struct table_selection selection;
};

/* Appends an entity as JSON. alone: with odata.metadata, for it is the whole answer. */
void table_entity_append(const struct table_shape *shape, struct slice document, int64_t ticks,
                         bool alone, struct buf *out);

/* table(PartitionKey='a',RowKey='b') with escapes. */
void table_entity_link_append(struct slice table, const struct table_keys *keys, struct buf *out);
