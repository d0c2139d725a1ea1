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
