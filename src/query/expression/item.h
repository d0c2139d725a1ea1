/* An item as queries see it: its document and, last, the system properties that are not stored in
 * it: _rid, _self, _etag, _attachments and _ts.
 *
 * They are made when somebody asks: c._ts reads the header alone, c as a whole is put together once
 * per row. */
#pragma once

#include "definition/rid.h"
#include "item/item.h"
#include "query/value/context.h"

/* The index entry that an item was found by. */
struct query_found {
    const struct index_definition *index; /* NULL: no entry of a definition */
    struct slice prefix;                  /* with which the entry begins */
    struct slice value;                   /* what follows; inverted where the walk is backwards */
    bool backwards;
};

struct query_item {
    const struct item *item;
    const struct document_names *names; /* of its container */
    struct rid container;
    struct document_value whole; /* undefined: not put together yet */
    struct query_found found;    /* set by whoever binds it and knows */
};

/* Makes the item what a slot stands for. query_item and item live as long as the row. As a whole it
 * is the item that is shown (item/shown.h); its properties are those that are stored. */
void query_item_bind(struct query_item *self, const struct item *item,
                     const struct document_names *names, struct rid container,
                     struct query_slot *slot);
