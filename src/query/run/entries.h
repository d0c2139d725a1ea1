/* Entries: what an index says of items, read from the index alone, as part of a query: on its
 * budget and at its moment. Ranges of one definition are walked in each physical partition of the
 * scope, and the values of every entry are handed out; an item is read only where a value of its
 * entry was cut. For graphs: the ends of a vertex's edges stand in the entries of its edges. */
#pragma once

#include "index/definition.h"
#include "query/run.h"

/* Can it be read so? It is of paths in SQL's order with one entry for each item, is ready, and all
 * items are indexed by it; items do not expire, for entries do not tell. */
bool query_entries_serve(const struct item_space *space, const struct index_definition *index);

/* Where a page ended; a plain value, bytes in the arena of the request. */
struct query_entries_place {
    bool begun;
    size_t span; /* of the map */
    struct slice value, routing;
    uint64_t number;
};

struct query_entry {
    const struct document_value *values; /* one for each part of the index */
    struct slice document;               /* data not NULL: a value was cut, and this is the item */
    size_t span;
    uint64_t number;
};

struct query_entries {
    const struct index_definition *index;
    const struct cursor_range *ranges; /* of values, behind the prefix: ascending, apart */
    size_t range_count;
    bool grouped;                     /* each range is of one first value (cursor.h) */
    struct arena *arena;              /* of values; NULL: they are good during the call */
    struct query_entries_place place; /* in and out */
    bool ended;                       /* out */
    bool (*take)(void *self, const struct query_entry *entry, struct error *err);
    void *self;
};

/* A page. Of the request space, meters, call, paid, scope (not of several keys), snapshot, overlay,
 * is_short, bound, arena, limits.rows_max, limits.cancelled and limits.deadline_ms count. Errors as
 * of query_run. */
NODISCARD bool query_entries_run(const struct query_request *request, struct query_entries *entries,
                                 struct query_page *ret_page, struct error *err);
