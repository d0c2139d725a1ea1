/* Paths in items that a resolved query names. */
#include "front/rest/sql/resolve.h"

struct segments {
    struct document_segment items[DOCUMENT_PATH_SEGMENTS_MAX];
    size_t count;
};

static bool segments_add(struct segments *segments, struct document_segment segment)
{
    if (segments->count == DOCUMENT_PATH_SEGMENTS_MAX)
        return false;
    segments->items[segments->count++] = segment;
    return true;
}

static bool expr_segments(const struct sql_expr *expr, struct segments *segments);

static bool source_segments(const struct sql_source *source, struct segments *segments)
{
    if (!source->path || !expr_segments(source->path, segments))
        return false;
    return !source->iterates ||
           segments_add(segments, (struct document_segment){.kind = DOCUMENT_SEGMENT_ELEMENTS});
}

static bool expr_segments(const struct sql_expr *expr, struct segments *segments)
{
    switch (expr->kind) {
    case SQL_EXPR_NAME: /* of no source: the container's own name, in FROM */
        return !expr->name.source || source_segments(expr->name.source, segments);
    case SQL_EXPR_MEMBER:
        return expr_segments(expr->member.object, segments) &&
               segments_add(segments, (struct document_segment){.kind = DOCUMENT_SEGMENT_PROPERTY,
                                                                .name = expr->member.name});
    default:
        return false;
    }
}

bool sql_path(const struct sql_expr *expr, struct arena *arena, struct document_path *ret_path)
{
    struct segments segments; /* too large to be cleared for nothing */
    struct document_segment *copy;

    segments.count = 0;
    if (!expr_segments(expr, &segments))
        return false;
    copy = ARENA_ARRAY(arena, struct document_segment, segments.count + 1);
    memcpy(copy, segments.items, segments.count * sizeof *copy);
    *ret_path = (struct document_path){.segments = copy, .count = segments.count};
    return true;
}

/* --- All of them -------------------------------------------------------------------------------
 */

struct collection {
    struct sql_used_path *paths;
    size_t count, max;
    struct arena *arena;
    unsigned use;
    bool complete;
};

static bool paths_equal(const struct document_path *a, const struct document_path *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->segments[i].kind != b->segments[i].kind ||
            !slice_equal(a->segments[i].name, b->segments[i].name))
            return false;
    return true;
}

static void collect_path(struct collection *collection, struct document_path path)
{
    for (size_t i = 0; i < collection->count; i++) {
        if (paths_equal(&collection->paths[i].path, &path)) {
            collection->paths[i].uses |= collection->use;
            return;
        }
    }
    if (collection->count == collection->max) {
        collection->complete = false;
        return;
    }
    collection->paths[collection->count++] = (struct sql_used_path){path, collection->use};
}

static void collect_query(const struct sql_query *query, struct collection *collection,
                          unsigned use);

static bool collect_expr(struct sql_expr *expr, void *context)
{
    struct collection *collection = context;
    struct document_path path;

    if (expr->kind == SQL_EXPR_SUBQUERY) {
        collect_query(expr->subquery.query, collection, collection->use);
        return true;
    }
    if (!sql_path(expr, collection->arena, &path))
        return sql_expr_each(expr, collect_expr, context);
    collect_path(collection, path);
    return true;
}

/* use 0: each clause counts as what it is; otherwise all of it is part of one. */
static void collect_query(const struct sql_query *query, struct collection *collection,
                          unsigned use)
{
    unsigned before = collection->use;

    collection->use = use ? use : SQL_PATH_WHERE;
    for (uint32_t i = 0; i < query->source_count; i++) {
        const struct sql_source *source = query->sources[i];

        if (source->subquery)
            collect_query(source->subquery, collection, use);
        else if (source->path->kind != SQL_EXPR_NAME || !source->root)
            collect_expr(source->path, collection);
    }
    if (query->where)
        collect_expr(query->where, collection);
    collection->use = use ? use : SQL_PATH_SELECT;
    for (uint32_t i = 0; i < query->item_count; i++)
        collect_expr(query->items[i].expr, collection);
    if (query->select == SQL_SELECT_STAR && query->sources[0]->path)
        collect_expr(query->sources[0]->path, collection);
    collection->use = use ? use : SQL_PATH_GROUP;
    for (uint32_t i = 0; i < query->group_by.count; i++)
        collect_expr(query->group_by.items[i], collection);
    collection->use = use ? use : SQL_PATH_ORDER;
    for (uint32_t i = 0; i < query->order_count; i++)
        collect_expr(query->order_by[i].expr, collection);
    collection->use = before;
}

bool sql_used_paths(const struct sql_query *query, size_t max, struct arena *arena,
                    const struct sql_used_path **ret_paths, size_t *ret_count)
{
    struct collection collection = {.paths = ARENA_ARRAY(arena, struct sql_used_path, max + 1),
                                    .max = max,
                                    .arena = arena,
                                    .complete = true};

    collect_query(query, &collection, 0);
    *ret_paths = collection.paths;
    *ret_count = collection.count;
    return collection.complete;
}
