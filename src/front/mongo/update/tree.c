/* A document of which only those objects and arrays are taken apart that a path leads into. All
 * else stays the bytes it came as and is copied whole when the result is written. */
#include "document/bson.h"
#include "front/mongo/update/update_private.h"

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
}

struct update_node *update_node_child(struct update_node *node,
                                      const struct update_component *component, struct arena *arena)
{
    update_node_expand(node, arena);
    if (node->value.type == DOCUMENT_ARRAY)
        return component->index >= 0 && (uint64_t)component->index < node->count
                   ? node->children[component->index]
                   : NULL;
    for (size_t i = 0; i < node->count; i++)
        if (slice_equal(node->children[i]->name, component->name))
            return node->children[i];
    return NULL;
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
}

void update_node_remove(struct update_node *node, const struct update_node *child)
{
    size_t at = 0;

    while (at < node->count && node->children[at] != child)
        at++;
    assert(at < node->count);
    memmove(node->children + at, node->children + at + 1,
            (node->count - at - 1) * sizeof *node->children);
    node->count--;
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
