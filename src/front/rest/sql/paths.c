/* Paths in items that a resolved query names. */
#include "front/rest/sql/resolve.h"

#include "document/bson.h"

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

static bool row_is_at(struct slice row, const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf wanted, known;
    struct document_path own;
    struct document_value text;
    struct error ignored;

    buf_init(&wanted, BUF_DEFAULT_MAX);
    buf_init(&known, BUF_DEFAULT_MAX);
    if (!document_find(row, SLICE("path"), &text) || text.type != DOCUMENT_STRING ||
        !document_path_parse(text.text, DOCUMENT_PATH_KEY, arena, &own, &ignored))
        return false;
    document_path_append(path, &wanted);
    document_path_append(&own, &known);
    return slice_equal(buf_slice(&wanted), buf_slice(&known));
}

bool sql_policy_row(struct slice policy, struct slice list, const struct sql_expr *expr,
                    struct arena *arena, struct slice *ret_row)
{
    struct document_value rows;
    struct document_path path;
    struct document_iter iter;

    if (!document_find(policy, list, &rows) || rows.type != DOCUMENT_ARRAY ||
        !sql_path(expr, arena, &path))
        return false;
    document_iter_init(&iter, rows.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT || !row_is_at(iter.value.document, &path, arena))
            continue;
        *ret_row = iter.value.document;
        return true;
    }
    return false;
}
