/* Containers: lists, sets, bulk sets, maps, entries, trees and graphs.
 *
 * Sets, bulk sets, maps and trees are one structure, a table: rows in the order they came, found by
 * the equivalence of their keys (compare.h). A row of a set has no value, one of a bulk set has the
 * count as a long, one of a tree has the tree below it. Rows are never taken out. */
#pragma once

#include "front/gremlin/value/value.h"

/* --- Lists ------------------------------------------------------------------------------------ */

struct gremlin_list {
    struct gremlin_object object;
    uint32_t count, capacity;
    struct gremlin_value *items;
};

/* capacity: how many are expected; 0 is fine. */
struct gremlin_value gremlin_list_new(struct gremlin_heap *heap, size_t capacity);
/* Appends; the reference becomes the list's. */
void gremlin_list_add_take(struct gremlin_value list, struct gremlin_value item);

static inline void gremlin_list_add(struct gremlin_value list, struct gremlin_value item)
{
    gremlin_list_add_take(list, gremlin_value_ref(item));
}

static inline struct gremlin_list *gremlin_list(struct gremlin_value value)
{
    return (struct gremlin_list *)value.object;
}

/* --- Sets, bulk sets, maps, trees ------------------------------------------------------------- */

struct gremlin_row {
    struct gremlin_value key, value;
    uint64_t hash; /* of the key */
};

struct gremlin_table {
    struct gremlin_object object;
    uint32_t count, capacity;
    struct gremlin_row *rows;
    uint32_t *slots; /* NULL while rows are few: one more than the row; 0: free */
    uint32_t slot_count;
};

/* type: GREMLIN_SET, GREMLIN_BULK_SET, GREMLIN_MAP or GREMLIN_TREE. */
struct gremlin_value gremlin_table_new(struct gremlin_heap *heap, enum gremlin_type type,
                                       size_t capacity);

static inline struct gremlin_table *gremlin_table(struct gremlin_value value)
{
    return (struct gremlin_table *)value.object;
}

static inline struct gremlin_value gremlin_set_new(struct gremlin_heap *heap)
{
    return gremlin_table_new(heap, GREMLIN_SET, 0);
}

static inline struct gremlin_value gremlin_map_new(struct gremlin_heap *heap)
{
    return gremlin_table_new(heap, GREMLIN_MAP, 0);
}

/* The row of a key; NULL: there is none. Good until the table grows. */
struct gremlin_row *gremlin_table_find(struct gremlin_value table, struct gremlin_value key);
/* The row of a key, made if it is not there yet, with the value null. ret_new may be NULL. */
struct gremlin_row *gremlin_table_row(struct gremlin_value table, struct gremlin_value key,
                                      bool *ret_new);

/* True: it was not there yet. */
bool gremlin_set_add(struct gremlin_value set, struct gremlin_value item);
/* Adds count of an item. */
void gremlin_bulk_set_add(struct gremlin_value set, struct gremlin_value item, int64_t count);
/* How many items it has, each as often as it is in it. */
int64_t gremlin_bulk_set_size(struct gremlin_value set);

/* Sets the value of a key, in the place of the one before. The value's reference is taken. */
void gremlin_map_put_take(struct gremlin_value map, struct gremlin_value key,
                          struct gremlin_value value);
static inline void gremlin_map_put(struct gremlin_value map, struct gremlin_value key,
                                   struct gremlin_value value)
{
    gremlin_map_put_take(map, key, gremlin_value_ref(value));
}
/* The value of a key or of a text; NULL: it has none. Borrowed. */
const struct gremlin_value *gremlin_map_get(struct gremlin_value map, struct gremlin_value key);
const struct gremlin_value *gremlin_map_get_text(struct gremlin_value map, struct slice key);

/* The tree below a key, made if it is not there yet. Borrowed. */
struct gremlin_value gremlin_tree_branch(struct gremlin_value tree, struct gremlin_value key);

/* How many items, rows, nodes (path) a collection has; a bulk set counts each as often as it is in
 * it. False: it is none. */
bool gremlin_collection_count(struct gremlin_value value, int64_t *ret_count);

/* Walks what iterates in Gremlin: items of lists, sets, bulk sets (each once, ret_bulk says how
 * often), entries of maps and trees, objects of paths. Start with a cursor of zeroes; gives a
 * reference to the caller. False at the end, and for what does not iterate. */
struct gremlin_path;
struct gremlin_cursor {
    size_t at;
    const struct gremlin_path **nodes; /* of a path; owned */
};
bool gremlin_collection_next(struct gremlin_value value, struct gremlin_cursor *cursor,
                             struct gremlin_value *ret_item, int64_t *ret_bulk);
void gremlin_collection_done(struct gremlin_cursor *cursor); /* for who stops early; else fine */
CLEANUP_VALUE_FN(struct gremlin_cursor, gremlin_collection_done)

static inline bool gremlin_is_collection(struct gremlin_value value)
{
    return (value.type >= GREMLIN_LIST && value.type <= GREMLIN_MAP) ||
           value.type == GREMLIN_PATH || value.type == GREMLIN_TREE;
}

/* --- Entries ---------------------------------------------------------------------------------- */

struct gremlin_entry {
    struct gremlin_object object;
    struct gremlin_value key, value;
};

struct gremlin_value gremlin_entry_new(struct gremlin_heap *heap, struct gremlin_value key,
                                       struct gremlin_value value);

static inline const struct gremlin_entry *gremlin_entry(struct gremlin_value value)
{
    return (const struct gremlin_entry *)value.object;
}

/* --- Graphs ----------------------------------------------------------------------------------- */

struct gremlin_subgraph {
    struct gremlin_object object;
    struct gremlin_value vertices, edges; /* sets */
};

struct gremlin_value gremlin_subgraph_new(struct gremlin_heap *heap);

static inline struct gremlin_subgraph *gremlin_subgraph(struct gremlin_value value)
{
    return (struct gremlin_subgraph *)value.object;
}
