#include "front/rest/item/change_parts.h"

#include "base/buf.h"

#include <stdlib.h>

static bool invalid(struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "if-none-match is no position of this change feed");
}

static bool too_many(struct error *err)
{
    return error_set(err, ERROR_RANGE_GONE,
                     "the parts of the key have changed too often since the position was given: "
                     "begin anew");
}

bool rest_change_parts_is(struct slice text)
{
    return text.len && memchr(text.data, '-', text.len);
}

static struct partition_range common(struct partition_range a, struct partition_range b)
{
    return (struct partition_range){slice_compare(a.min, b.min) > 0 ? a.min : b.min,
                                    slice_compare(a.max, b.max) < 0 ? a.max : b.max};
}

static bool is_empty(struct partition_range range)
{
    return slice_compare(range.min, range.max) >= 0;
}

static bool range_equal(struct partition_range a, struct partition_range b)
{
    return slice_equal(a.min, b.min) && slice_equal(a.max, b.max);
}

/* Adds what of a part each span has. */
static bool part_divide(struct rest_change_parts *parts, const struct rest_change_part *part,
                        const struct partition_map *map, struct partition_range key,
                        struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_overlap(map, part->range, &count);

    for (size_t i = 0; i < count; i++) {
        struct partition_range own =
            common(key, (struct partition_range){spans[i].min, spans[i].max});
        struct rest_change_part piece = *part;

        piece.span = &spans[i];
        piece.range = common(part->range, own);
        if (is_empty(piece.range))
            continue;
        if (parts->count == REST_CHANGE_PARTS_MAX)
            return too_many(err);
        if (range_equal(piece.range, own)) {
            piece.ids[0] = spans[i].id;
            piece.id_count = 1;
        } else if (!range_equal(piece.range, part->range)) {
            if (piece.id_count == REST_CHANGE_PART_IDS_MAX)
                return too_many(err);
            piece.ids[piece.id_count++] = spans[i].id;
        }
        parts->list[parts->count++] = piece;
    }
    return true;
}

bool rest_change_parts_begin(const struct partition_map *map, struct partition_range key,
                             struct rest_change_parts *ret_parts, struct error *err)
{
    const struct rest_change_part whole = {.range = key};

    ret_parts->count = 0;
    return part_divide(ret_parts, &whole, map, key, err);
}

static bool id_take(struct slice text, const struct partition_map *map,
                    struct rest_change_part *part, struct error *err)
{
    const struct partition_span *span;
    struct partition_range range;
    uint64_t id;

    if (!slice_to_uint64(text, &id) || id > UINT32_MAX ||
        part->id_count == REST_CHANGE_PART_IDS_MAX)
        return invalid(err);
    span = partition_map_find_id(map, (uint32_t)id);
    if (span)
        range = (struct partition_range){span->min, span->max};
    else if (!partition_map_find_gone(map, (uint32_t)id, &range))
        return too_many(err);
    part->ids[part->id_count++] = (uint32_t)id;
    part->range = common(part->range, range);
    return true;
}

static bool part_read(struct slice text, const struct partition_map *map,
                      struct rest_change_part *part, struct error *err)
{
    struct slice ids, lsn, id;

    if (!slice_split(text, '-', &ids, &lsn) || !slice_to_uint64(lsn, &part->lsn))
        return invalid(err);
    while (slice_split(ids, '.', &id, &ids))
        if (!id_take(id, map, part, err))
            return false;
    return id_take(ids, map, part, err) && (!is_empty(part->range) || invalid(err));
}

static int by_min(const void *a, const void *b)
{
    const struct rest_change_part *const *x = a, *const *y = b;

    return slice_compare((*x)->range.min, (*y)->range.min);
}

/* What a position leaves out would be missed for good. */
static bool parts_tile(const struct rest_change_parts *parts, struct partition_range key)
{
    const struct rest_change_part *sorted[REST_CHANGE_PARTS_MAX];
    struct slice reached = key.min;

    for (size_t i = 0; i < parts->count; i++)
        sorted[i] = &parts->list[i];
    qsort(sorted, parts->count, sizeof(sorted[0]), by_min);
    for (size_t i = 0; i < parts->count; i++) {
        if (!slice_equal(sorted[i]->range.min, reached))
            return false;
        reached = sorted[i]->range.max;
    }
    return slice_equal(reached, key.max);
}

bool rest_change_parts_read(struct slice text, const struct partition_map *map,
                            struct partition_range key, struct rest_change_parts *ret_parts,
                            struct error *err)
{
    ret_parts->count = 0;
    while (text.len) {
        struct rest_change_part part = {.range = key};
        struct slice one = text, rest = SLICE_NONE;

        if (!slice_split(text, '~', &one, &rest))
            rest = SLICE_NONE;
        if (!part_read(one, map, &part, err) || !part_divide(ret_parts, &part, map, key, err))
            return false;
        text = rest;
    }
    return parts_tile(ret_parts, key) || invalid(err);
}

static bool stand_alike(const struct rest_change_parts *parts)
{
    for (size_t i = 1; i < parts->count; i++)
        if (parts->list[i].span != parts->list[0].span || parts->list[i].lsn != parts->list[0].lsn)
            return false;
    return true;
}

struct slice rest_change_parts_text(const struct rest_change_parts *parts, struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (stand_alike(parts)) {
        buf_append_uint64(&text, parts->list[0].lsn);
        return arena_copy(arena, buf_slice(&text));
    }
    for (size_t i = 0; i < parts->count; i++) {
        const struct rest_change_part *part = &parts->list[i];

        for (size_t j = 0; j < part->id_count; j++)
            buf_printf(&text, "%s%u", j ? "." : i ? "~" : "", part->ids[j]);
        buf_printf(&text, "-%llu", (unsigned long long)part->lsn);
    }
    return arena_copy(arena, buf_slice(&text));
}

void rest_change_parts_rotate(struct rest_change_parts *parts, size_t n)
{
    struct rest_change_part first;

    for (size_t i = 0; i < n && parts->count > 1; i++) {
        first = parts->list[0];
        memmove(&parts->list[0], &parts->list[1], (parts->count - 1) * sizeof first);
        parts->list[parts->count - 1] = first;
    }
}
