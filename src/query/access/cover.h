/* Cover: queries that an index can answer alone. Where all that a plan reads of an item is one
 * path, and the index of that path leads to the items, the value in the entry stands for the item,
 * and nothing is loaded.
 *
 * Keys of the index keep the exact value of a number and not its type, which no query of SQL can
 * see in its result. */
#pragma once

#include "query/access/access.h"

struct query_cover {
    bool possible;             /* the plan reads one path and nothing else */
    struct document_path path; /* that one */
    struct slice prefix;       /* of its entries */

    /* Without a filter: items that have no value at the path make no difference, or, with groups,
     * only to the number of rows in the group of undefined. */
    bool alone;
    bool counts_missing;
};

/* In the arena. */
struct query_cover query_cover_find(const struct query_plan *plan, struct arena *arena);

/* Does the chosen access hold all that the plan reads? */
bool query_cover_holds(const struct query_cover *cover, const struct query_plan *plan,
                       const struct query_access *access, const struct item_space *space);

/* Does the entry of a full-text index, with the id that stands in the key of its item? */
bool query_cover_is_key(const struct query_cover *cover, const struct query_access *access,
                        const struct item_space *space);

/* An item with nothing but the value of an entry at the path; key as the index has it, whole, in
 * the order of its entries. In the arena. ERROR_STORE_CORRUPT. */
NODISCARD bool query_cover_item(const struct query_cover *cover, enum document_order entries,
                                struct slice key, struct arena *arena, struct slice *ret_document,
                                struct error *err);
