/* Lists grow by half. Tables keep their rows in an array in the order they came; up to FEW rows are
 * looked through by hash, then an open-addressed index of row numbers is kept beside them, half
 * full at most. */
#include "front/gremlin/value/container.h"

#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/element.h"

enum { FEW = 8 };

/* --- Lists ------------------------------------------------------------------------------------ */

struct gremlin_value gremlin_list_new(struct gremlin_heap *heap, size_t capacity)
{
    struct gremlin_list *list = gremlin_object_new(heap, GREMLIN_LIST, sizeof *list);

    assert(capacity <= UINT32_MAX);
    list->count = 0;
    list->capacity = (uint32_t)capacity;
    list->items = capacity ? gremlin_heap_alloc(heap, capacity * sizeof list->items[0]) : NULL;
    return gremlin_value_of_take(list);
}

void gremlin_list_add_take(struct gremlin_value value, struct gremlin_value item)
{
    struct gremlin_list *list = gremlin_list(value);

    if (UNLIKELY(list->count == list->capacity)) {
        uint32_t capacity = list->capacity ? list->capacity + list->capacity / 2 + 1 : 4;

        list->items = gremlin_heap_grow(list->object.heap, list->items,
                                        list->capacity * sizeof item, capacity * sizeof item);
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
}

/* --- Tables ----------------------------------------------------------------------------------- */

struct gremlin_value gremlin_table_new(struct gremlin_heap *heap, enum gremlin_type type,
                                       size_t capacity)
{
    struct gremlin_table *table = gremlin_object_new(heap, type, sizeof *table);

    assert(capacity <= UINT32_MAX / 4);
    table->count = 0;
    table->capacity = (uint32_t)capacity;
    table->rows = capacity ? gremlin_heap_alloc(heap, capacity * sizeof table->rows[0]) : NULL;
    table->slots = NULL;
    table->slot_count = 0;
    return gremlin_value_of_take(table);
}

static void slot_set(struct gremlin_table *table, uint32_t row)
{
    uint32_t mask = table->slot_count - 1, at = (uint32_t)table->rows[row].hash & mask;

    while (table->slots[at])
        at = (at + 1) & mask;
    table->slots[at] = row + 1;
}

static void slots_grow(struct gremlin_table *table)
{
    struct gremlin_heap *heap = table->object.heap;
    uint32_t count = table->slot_count ? table->slot_count * 2 : 4 * FEW;

    gremlin_heap_release(heap, table->slots, table->slot_count * sizeof table->slots[0]);
    table->slots = gremlin_heap_alloc(heap, count * sizeof table->slots[0]);
    memset(table->slots, 0, count * sizeof table->slots[0]);
    table->slot_count = count;
    for (uint32_t i = 0; i < table->count; i++)
        slot_set(table, i);
}

static bool row_is(const struct gremlin_row *row, uint64_t hash, struct gremlin_value key)
{
    return row->hash == hash && gremlin_equivalent(row->key, key);
}

static struct gremlin_row *row_find(struct gremlin_table *table, uint64_t hash,
                                    struct gremlin_value key)
{
    if (!table->slots) {
        for (uint32_t i = 0; i < table->count; i++)
            if (row_is(&table->rows[i], hash, key))
                return &table->rows[i];
        return NULL;
    }
    uint32_t mask = table->slot_count - 1;

    for (uint32_t at = (uint32_t)hash & mask; table->slots[at]; at = (at + 1) & mask)
        if (row_is(&table->rows[table->slots[at] - 1], hash, key))
            return &table->rows[table->slots[at] - 1];
    return NULL;
}

struct gremlin_row *gremlin_table_find(struct gremlin_value value, struct gremlin_value key)
{
    struct gremlin_table *table = gremlin_table(value);

    if (!table->count)
        return NULL;
    return row_find(table, gremlin_hash(key, gremlin_heap_seed(table->object.heap)), key);
}

struct gremlin_row *gremlin_table_row(struct gremlin_value value, struct gremlin_value key,
                                      bool *ret_new)
{
    struct gremlin_table *table = gremlin_table(value);
    uint64_t hash = gremlin_hash(key, gremlin_heap_seed(table->object.heap));
    struct gremlin_row *row = row_find(table, hash, key);

    if (ret_new)
        *ret_new = !row;
    if (row)
        return row;
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity + table->capacity / 2 + 1 : 4;

        table->rows = gremlin_heap_grow(table->object.heap, table->rows,
                                        table->capacity * sizeof *row, capacity * sizeof *row);
        table->capacity = capacity;
    }
    row = &table->rows[table->count++];
    *row = (struct gremlin_row){gremlin_value_ref(key), GREMLIN_NOTHING, hash};
    if (table->count > FEW && table->count * 2 > table->slot_count)
        slots_grow(table);
    else if (table->slots)
        slot_set(table, table->count - 1);
    return row;
}

bool gremlin_set_add(struct gremlin_value set, struct gremlin_value item)
{
    bool added;

    gremlin_table_row(set, item, &added);
    return added;
}

void gremlin_bulk_set_add(struct gremlin_value set, struct gremlin_value item, int64_t count)
{
    bool added;
    struct gremlin_row *row = gremlin_table_row(set, item, &added);

    if (added)
        row->value = gremlin_long(0);
    if (__builtin_add_overflow(row->value.integer, count, &row->value.integer))
        row->value.integer = INT64_MAX;
}

int64_t gremlin_bulk_set_size(struct gremlin_value set)
{
    const struct gremlin_table *table = gremlin_table(set);
    int64_t size = 0;

    for (uint32_t i = 0; i < table->count; i++)
        if (__builtin_add_overflow(size, table->rows[i].value.integer, &size))
            return INT64_MAX;
    return size;
}

void gremlin_map_put_take(struct gremlin_value map, struct gremlin_value key,
                          struct gremlin_value value)
{
    bool added;

    gremlin_value_replace_take(&gremlin_table_row(map, key, &added)->value, value);
}

const struct gremlin_value *gremlin_map_get(struct gremlin_value map, struct gremlin_value key)
{
    struct gremlin_row *row = gremlin_table_find(map, key);

    return row ? &row->value : NULL;
}

/* Without an object for the text: rows are compared one by one, for the maps it is used on are the
 * arguments of requests and configurations of strategies. */
const struct gremlin_value *gremlin_map_get_text(struct gremlin_value map, struct slice key)
{
    const struct gremlin_table *table = gremlin_table(map);

    for (uint32_t i = 0; i < table->count; i++)
        if (gremlin_is_text(table->rows[i].key, key))
            return &table->rows[i].value;
    return NULL;
}

struct gremlin_value gremlin_tree_branch(struct gremlin_value tree, struct gremlin_value key)
{
    bool added;
    struct gremlin_row *row = gremlin_table_row(tree, key, &added);

    if (added)
        row->value = gremlin_table_new(tree.object->heap, GREMLIN_TREE, 0);
    return row->value;
}

/* --- Any of them ------------------------------------------------------------------------------ */

bool gremlin_collection_count(struct gremlin_value value, int64_t *ret_count)
{
    switch (value.type) {
    case GREMLIN_LIST:
        *ret_count = gremlin_list(value)->count;
        return true;
    case GREMLIN_BULK_SET:
        *ret_count = gremlin_bulk_set_size(value);
        return true;
    case GREMLIN_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        *ret_count = gremlin_table(value)->count;
        return true;
    case GREMLIN_PATH:
        *ret_count = gremlin_path(value)->length;
        return true;
    default:
        return false;
    }
}

/* Nodes of a path lead backwards; they are put in order once, at the first step. */
static bool path_next(struct gremlin_path *path, struct gremlin_cursor *cursor,
                      struct gremlin_value *ret_item)
{
    if (cursor->at == path->length) {
        gremlin_collection_done(cursor);
        return false;
    }
    if (!cursor->nodes) {
        cursor->nodes = memory_alloc(path->length * sizeof cursor->nodes[0]);
        gremlin_path_nodes(path, cursor->nodes);
    }
    *ret_item = gremlin_value_ref(cursor->nodes[cursor->at++]->value);
    return true;
}

void gremlin_collection_done(struct gremlin_cursor *cursor)
{
    memory_free(cursor->nodes);
    cursor->nodes = NULL;
}

bool gremlin_collection_next(struct gremlin_value value, struct gremlin_cursor *cursor,
                             struct gremlin_value *ret_item, int64_t *ret_bulk)
{
    *ret_bulk = 1;
    if (value.type == GREMLIN_LIST) {
        const struct gremlin_list *list = gremlin_list(value);

        if (cursor->at >= list->count)
            return false;
        *ret_item = gremlin_value_ref(list->items[cursor->at++]);
        return true;
    }
    if (value.type == GREMLIN_PATH)
        return path_next(gremlin_path(value), cursor, ret_item);
    if (!gremlin_is_collection(value) || cursor->at >= gremlin_table(value)->count)
        return false;

    const struct gremlin_row *row = &gremlin_table(value)->rows[cursor->at++];

    if (value.type == GREMLIN_MAP || value.type == GREMLIN_TREE) {
        *ret_item = gremlin_entry_new(value.object->heap, row->key, row->value);
        return true;
    }
    if (value.type == GREMLIN_BULK_SET)
        *ret_bulk = row->value.integer;
    *ret_item = gremlin_value_ref(row->key);
    return true;
}

struct gremlin_value gremlin_entry_new(struct gremlin_heap *heap, struct gremlin_value key,
                                       struct gremlin_value value)
{
    struct gremlin_entry *entry = gremlin_object_new(heap, GREMLIN_ENTRY, sizeof *entry);

    entry->key = gremlin_value_ref(key);
    entry->value = gremlin_value_ref(value);
    return gremlin_value_of_take(entry);
}

struct gremlin_value gremlin_subgraph_new(struct gremlin_heap *heap)
{
    struct gremlin_subgraph *graph = gremlin_object_new(heap, GREMLIN_GRAPH, sizeof *graph);

    graph->vertices = gremlin_set_new(heap);
    graph->edges = gremlin_set_new(heap);
    return gremlin_value_of_take(graph);
}
