#include "item/locate.h"

#include "document/order.h"

enum { ENTRIES_MAX = 64 };

/* An object has no entry but those of the values in it: its first one leads there. */
static struct document_value leaf_find(const struct document_value *id,
                                       struct document_segment *segments, size_t *count)
{
    struct document_value leaf = *id;

    while (leaf.type == DOCUMENT_OBJECT || leaf.type == DOCUMENT_ARRAY) {
        struct document_iter iter;

        document_iter_init(&iter, leaf.document);
        if (*count == DOCUMENT_PATH_SEGMENTS_MAX || !document_iter_next(&iter))
            break;
        segments[*count] = (struct document_segment){.name = iter.key};
        if (leaf.type == DOCUMENT_ARRAY)
            segments[*count] = (struct document_segment){.kind = DOCUMENT_SEGMENT_ELEMENTS};
        ++*count;
        leaf = iter.value;
    }
    return leaf;
}

struct item_index_request locate_seek(const struct definition_fields *definition,
                                      const struct document_value *id, size_t entries_max,
                                      struct arena *arena)
{
    struct document_segment segments[DOCUMENT_PATH_SEGMENTS_MAX] = {
        {.name = definition_names_of(definition)->identity}};
    struct document_path id_path = {.segments = segments, .count = 1};
    struct item_index_request seek = {.entries_max = entries_max};
    size_t definitions, count = 1;
    struct document_value leaf = leaf_find(id, segments, &count);
    CLEANUP(buf_done) struct buf path;
    CLEANUP(buf_done) struct buf value;

    id_path.count = count;
    seek.order = index_policy_definitions(definition->policy, &definitions)[0]->order;
    buf_init(&path, BUF_DEFAULT_MAX);
    buf_init(&value, BUF_DEFAULT_MAX);
    index_path_append(&id_path, &path);
    document_key_append_cut(seek.order, &leaf, INDEX_VALUE_MAX, &value);
    buf_append_byte(&value, 0xFF);
    seek.path = arena_copy(arena, buf_slice(&path));
    seek.max = arena_copy(arena, buf_slice(&value));
    seek.min = slice_first(seek.max, seek.max.len - 1);
    return seek;
}

/* What is looked for, and what was found. */
struct locating {
    const struct item_space *space;
    struct slice id_bytes;
    size_t max;
    struct arena *arena;
    struct partition_key *keys;
    size_t count;
};

static bool hit_take(struct locating *locating, const struct item_scope *scope,
                     const struct item_index_hit *hit, struct error *err)
{
    const struct partition_definition *definition = &locating->space->definition->key;
    struct item_key_parts parts;
    struct partition_key key;
    struct item item;

    assert(locating->count < locating->max);
    if (!item_key_split(definition, hit->key, &parts, err))
        return false;
    if (!slice_equal(parts.id, locating->id_bytes))
        return true;
    if (!partition_key_read(definition, &parts.pk_id, locating->arena, &key, err) ||
        !item_scan_fetch(scope, NULL, &hit->key, 1, locating->arena, &item, err))
        return false;
    if (item.document.data)
        locating->keys[locating->count++] = key;
    return true;
}

static bool span_look(struct locating *locating, const struct item_scope *scope,
                      const struct item_index_request *seek, struct error *err)
{
    struct item_index_request request = *seek;
    struct item_index_page page;

    do {
        if (!item_scan_index(scope, &request, locating->arena, &page, err))
            return false;
        for (size_t i = 0; i < page.count && locating->count < locating->max; i++)
            if (!hit_take(locating, scope, &page.hits[i], err))
                return false;
        request.after = page.position;
    } while (page.more && locating->count < locating->max);
    return true;
}

bool locate_keys(const struct item_space *space, const struct document_value *id, size_t max,
                 struct arena *arena, struct partition_key *ret_keys, size_t *ret_count,
                 struct error *err)
{
    CLEANUP(item_space_release) struct item_space now = *space;
    CLEANUP(buf_done) struct buf bytes;
    const struct item_index_request seek = locate_seek(space->definition, id, ENTRIES_MAX, arena);
    struct locating locating = {.space = &now, .max = max, .arena = arena, .keys = ret_keys};
    const struct partition_span *spans;
    size_t count;

    now.renewed = false;
    buf_init(&bytes, BUF_DEFAULT_MAX);
    document_key_append(definition_names_of(space->definition)->identity_order, id, &bytes);
    locating.id_bytes = buf_slice(&bytes);
    while (now.is_current && !now.is_current(now.nodes))
        if (!item_space_renew(&now, err))
            return false;
    spans = partition_map_spans(now.map, &count);
    for (size_t i = 0; i < count && locating.count < max; i++) {
        struct item_scope scope = item_space_span_scope(&now, &spans[i]);

        if (!span_look(&locating, &scope, &seek, err))
            return false;
    }
    *ret_count = locating.count;
    return true;
}
