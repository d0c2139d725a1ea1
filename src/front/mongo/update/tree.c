/* A document of which only those objects and arrays are taken apart that a path leads into. All
 * else stays the bytes it came as and is copied whole when the result is written. */
#include "document/bson.h"
#include "front/mongo/update/update_private.h"

#include <xxhash.h>

enum { PLACES_FROM = 32 }; /* children from which on they are found by hash */

struct update_node *update_node_new(struct arena *arena, struct slice name,
                                    struct document_value value)
{
    struct update_node *node = ARENA_NEW(arena, struct update_node);

    node->name = name;
    node->value = value;
    return node;
}

bool update_node_is_nested(const struct update_node *node)
{
    return node->value.type == DOCUMENT_OBJECT || node->value.type == DOCUMENT_ARRAY;
}

/* --- Children by name ------------------------------------------------------------------------ */

static size_t place_of(const struct update_node *node, struct slice name)
{
    size_t mask = node->place_count - 1;
    size_t at = XXH3_64bits(name.len ? name.data : (const uint8_t *)"", name.len) & mask;

    while (node->places[at] && !slice_equal(node->children[node->places[at] - 1]->name, name))
        at = (at + 1) & mask;
    return at;
}

/* Of several children of one name the first is found. */
static void place_add(struct update_node *node, size_t child)
{
    size_t at = place_of(node, node->children[child]->name);

    if (!node->places[at])
        node->places[at] = (uint32_t)child + 1;
}

static void places_make(struct update_node *node, struct arena *arena)
{
    if (node->value.type != DOCUMENT_OBJECT || node->count < PLACES_FROM)
        return;
    node->place_count = 4 * PLACES_FROM;
    while (node->place_count < 4 * node->count)
        node->place_count *= 2;
    node->places = arena_alloc_zero(arena, node->place_count * sizeof *node->places);
    for (size_t i = 0; i < node->count; i++)
        place_add(node, i);
}

static struct update_node *child_named(const struct update_node *node, struct slice name)
{
    struct update_node *found = NULL;
    uint32_t place;

    if (node->places) {
        place = node->places[place_of(node, name)];
        found = place ? node->children[place - 1] : NULL;
    } else {
        for (size_t i = 0; i < node->count && !found; i++)
            if (slice_equal(node->children[i]->name, name))
                found = node->children[i];
    }
    return found && !found->removed ? found : NULL;
}

/* --- Nodes ----------------------------------------------------------------------------------- */

void update_node_expand(struct update_node *node, struct arena *arena)
{
    struct document_iter iter;
    struct update_node *block;
    size_t count;

    assert(update_node_is_nested(node));
    if (node->expanded)
        return;
    count = node->value.document.data ? document_count(node->value.document) : 0;
    node->expanded = true;
    node->capacity = count + 4;
    node->children = ARENA_ARRAY(arena, struct update_node *, node->capacity);
    if (!count)
        return;
    block = arena_alloc_zero(arena, count * sizeof *block);
    document_iter_init(&iter, node->value.document);
    while (node->count < count && document_iter_next(&iter)) {
        block[node->count].name = iter.key;
        block[node->count].value = iter.value;
        node->children[node->count] = &block[node->count];
        node->count++;
    }
    places_make(node, arena);
}

struct update_node *update_node_child(struct update_node *node,
                                      const struct update_component *component, struct arena *arena)
{
    update_node_expand(node, arena);
    if (node->value.type == DOCUMENT_OBJECT)
        return child_named(node, component->name);
    return component->index >= 0 && (uint64_t)component->index < node->count
               ? node->children[component->index]
               : NULL;
}

void update_node_add(struct update_node *node, struct update_node *child, struct arena *arena)
{
    update_node_expand(node, arena);
    if (node->count == node->capacity) {
        struct update_node **longer = ARENA_ARRAY(arena, struct update_node *, 2 * node->capacity);

        memcpy(longer, node->children, node->count * sizeof *longer);
        node->children = longer;
        node->capacity *= 2;
    }
    node->children[node->count++] = child;
    if (node->places && 2 * node->count < node->place_count)
        place_add(node, node->count - 1);
    else
        places_make(node, arena);
}

static void children_write(const struct update_node *node, struct buf *buf)
{
    char text[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < node->count; i++) {
        const struct update_node *child = node->children[i];
        struct slice key = node->value.type == DOCUMENT_ARRAY
                               ? document_index_key((uint32_t)i, text)
                               : child->name;
        size_t begin;

        if (child->removed)
            continue;
        if (!child->expanded) {
            document_append(buf, key, &child->value);
            continue;
        }
        begin = child->value.type == DOCUMENT_ARRAY ? document_append_array_begin(buf, key)
                                                    : document_append_object_begin(buf, key);
        children_write(child, buf);
        document_end(buf, begin);
    }
}

void update_node_write(const struct update_node *node, struct buf *buf)
{
    size_t begin;

    if (!node->expanded) {
        buf_append_slice(buf, node->value.document);
        return;
    }
    begin = document_begin(buf);
    children_write(node, buf);
    document_end(buf, begin);
}

struct document_value update_node_value(const struct update_node *node, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf = {0};
    struct document_value value = node->value;

    if (!node->expanded)
        return value;
    buf_init(&buf, BUF_DEFAULT_MAX);
    update_node_write(node, &buf);
    value.document = arena_copy(arena, buf_slice(&buf));
    return value;
}
