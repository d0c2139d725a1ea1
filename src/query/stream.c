/* One cursor, or two for an intersection, or a get: the hits of one target in one span. */
#include "query/stream.h"

enum { STEPS_BEFORE_SEEK = 4 };

/* --- Order ----------------------------------------------------------------------------------- */

int query_stream_order(const struct query_streaming *how, const struct query_place *a,
                       const struct query_place *b)
{
    if (how->by_number)
        return (a->number > b->number) - (a->number < b->number);
    return query_place_compare(a, b, how->ties_backwards);
}

/* Is it behind what earlier pages have done? */
static bool is_behind(const struct query_streaming *how, const struct query_place *place)
{
    int order;

    if (!how->from.begun)
        return true;
    order = query_stream_order(how, place, &how->from.place);
    return order > 0 || (order == 0 && how->from.place.rows);
}

void query_stream_free(struct query_stream *stream)
{
    cursor_free(stream->cursor);
    cursor_free(stream->second);
    arena_free(stream->arena);
    buf_done(&stream->bytes);
    memory_free(stream);
}

/* --- Streams --------------------------------------------------------------------------------- */

static void entries_count(const struct query_streaming *how, struct query_stream *stream)
{
    uint64_t entries = cursor_entries(stream->cursor);

    if (stream->second)
        entries += cursor_entries(stream->second);
    if (!how->by_key && how->access->kind == QUERY_ACCESS_INDEX)
        how->spans->list[stream->span].cost.index_entries += entries - stream->counted;
    stream->counted = entries;
}

/* The place of a hit, copied; bytes of an index that is walked backwards are turned over, so that
 * places always ascend. */
static void place_set(const struct query_streaming *how, struct query_stream *stream,
                      const struct cursor_hit *hit)
{
    struct slice value = hit->value;
    struct buf *bytes = &stream->bytes;

    /* What two indexes have in common has two values, each the same for all hits. */
    if (how->by_number || stream->second)
        value = SLICE_NONE;
    else if (how->by_key)
        value = hit->key;

    buf_clear(bytes);
    buf_reserve(bytes, value.len + hit->routing.len + hit->key.len + 1);
    buf_append_slice(bytes, value);
    for (size_t i = 0; how->access->backwards && i < value.len; i++)
        bytes->data[i] = (uint8_t)~bytes->data[i];
    buf_append_slice(bytes, hit->routing);
    buf_append_slice(bytes, hit->key);
    stream->place =
        (struct query_place){.key = slice_of(bytes->data, value.len),
                             .routing = slice_of(bytes->data + value.len, hit->routing.len),
                             .number = hit->number};
    stream->key = slice_of(bytes->data + value.len + hit->routing.len, hit->key.len);
}

static int hit_order(const struct cursor_hit *a, const struct query_place *b)
{
    int order = slice_compare(a->routing, b->routing);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* Moves both cursors to the next entry they have in common: each in turn to where the other is. */
static bool common_next(const struct query_streaming *how, struct query_stream *stream,
                        bool *ret_more, struct error *err)
{
    struct slice values[] = {how->access->index->ranges.list[0].min,
                             how->access->second->ranges.list[0].min};
    struct cursor *cursors[] = {stream->cursor, stream->second};
    struct cursor_hit hit;
    int order = 1;

    if (!cursor_next(cursors[0], &hit, ret_more, err))
        return false;
    for (unsigned turn = 1; *ret_more && order > 0; turn ^= 1) {
        unsigned steps = 0;

        place_set(how, stream, &hit);
        do {
            if (++steps > STEPS_BEFORE_SEEK &&
                !cursor_seek_behind(cursors[turn], values[turn], stream->place.routing,
                                    stream->place.number - 1, err))
                return false;
            if (!cursor_next(cursors[turn], &hit, ret_more, err))
                return false;
            order = *ret_more ? hit_order(&hit, &stream->place) : 0;
        } while (order < 0);
    }
    return true;
}

static bool point_next(const struct query_streaming *how, struct query_stream *stream,
                       struct error *err)
{
    struct view *view = &how->spans->list[stream->span].view;

    stream->has = false;
    if (stream->point_given)
        return true;
    stream->point_given = true;
    stream->arena = arena_new();
    stream->key = item_key(stream->target->logical, &how->access->ids[0], stream->arena);
    if (!view_fetch(view, &stream->key, 1, stream->arena, &stream->item, err))
        return false;
    if (!stream->item.document.data)
        return true;
    stream->place = (struct query_place){.number = stream->item.header.number};
    stream->has = true;
    return true;
}

/* An item that comes with its bytes. */
static bool key_decode(const struct query_streaming *how, struct query_stream *stream,
                       const struct cursor_hit *hit, bool *ret_there, struct error *err)
{
    if (!item_decode(hit->key, hit->stored, &stream->item, err))
        return false;
    *ret_there = !view_is_over(&how->spans->list[stream->span].view, &stream->item.header);
    return true;
}

bool query_stream_next(const struct query_streaming *how, struct query_stream *stream,
                       struct error *err)
{
    struct cursor_hit hit;
    bool more, there = true;

    if (!stream->cursor)
        return point_next(how, stream, err);
    do {
        if (stream->second) {
            if (!common_next(how, stream, &more, err))
                return false;
        } else {
            if (!cursor_next(stream->cursor, &hit, &more, err))
                return false;
            if (more)
                place_set(how, stream, &hit);
            if (more && how->by_key && !key_decode(how, stream, &hit, &there, err))
                return false;
        }
    } while (more && (!there || !is_behind(how, &stream->place)));
    stream->has = more;
    entries_count(how, stream);
    return true;
}

bool query_stream_pass(const struct query_streaming *how, struct query_stream *stream,
                       bool any_value, uint64_t max, uint64_t *ret_count, struct error *err)
{
    struct cursor_hit last;

    *ret_count = 0;
    if (!stream->cursor || stream->second || how->access->backwards ||
        stream->place.key.len >= INDEX_VALUE_MAX)
        return true;
    if (!cursor_pass(stream->cursor, any_value ? SLICE_NONE : stream->place.key, max, &last,
                     ret_count, err))
        return false;
    if (*ret_count)
        place_set(how, stream, &last);
    entries_count(how, stream);
    return true;
}

/* Where the cursor has to begin for the position. */
static bool stream_seek(const struct query_streaming *how, struct query_stream *stream,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf value;
    const struct query_place *place = &how->from.place;
    uint64_t number = place->number;

    buf_init(&value, BUF_DEFAULT_MAX);
    if (!how->from.begun || !stream->cursor)
        return true;
    if (place->rows) /* its item comes once more */
        number += how->ties_backwards ? 1 : (uint64_t)-1;
    buf_append_slice(&value, stream->second ? how->access->index->ranges.list[0].min : place->key);
    for (size_t i = 0; how->access->backwards && i < value.len; i++)
        value.data[i] = (uint8_t)~value.data[i];
    if (how->by_key && place->rows)
        return true; /* scans for aggregates alone: they end pages between items */
    if (place->key.len >= QUERY_PLACE_KEY_MAX)
        return how->access->backwards || how->by_key
                   ? true /* the key is cut; what is done is passed over */
                   : cursor_seek_behind(stream->cursor, buf_slice(&value), SLICE_NONE, 0, err);
    if (!cursor_seek_behind(stream->cursor, buf_slice(&value), place->routing, number, err))
        return false;
    return !stream->second ||
           cursor_seek_behind(stream->second, how->access->second->ranges.list[0].min,
                              place->routing, number, err);
}

static struct cursor_request cursor_for(const struct query_streaming *how,
                                        const struct query_stream *stream,
                                        const struct query_index_use *use)
{
    const struct partition_span *span = how->spans->list[stream->span].span;
    struct cursor_request request = {.logical = stream->target->logical};

    request.kind = how->by_key ? CURSOR_KEYS : how->by_number ? CURSOR_NUMBERS : CURSOR_INDEX;
    if (!slice_equal(stream->range.min, span->min))
        request.routing_min = stream->range.min;
    if (!slice_equal(stream->range.max, span->max))
        request.routing_max = stream->range.max;
    if (use) {
        request.backwards = how->access->backwards;
        request.path = use->prefix;
        request.value_count = use->value_count;
        request.descending = use->descending;
        request.ranges = use->ranges.list;
        request.range_count = use->ranges.count;
        if (stream->target->values.count && use == how->access->index) {
            request.ranges = stream->target->values.list;
            request.range_count = stream->target->values.count;
        }
    }
    return request;
}

bool query_stream_open(const struct query_streaming *how, struct query_stream *stream,
                       struct error *err)
{
    const struct query_access *access = how->access;
    struct query_span *span = &how->spans->list[stream->span];
    struct cursor_request request;

    buf_init(&stream->bytes, BUF_DEFAULT_MAX);
    if (access->kind == QUERY_ACCESS_POINT) {
        span->cost.index_lookups += span->cost.partitions_begun != 0;
        return query_stream_next(how, stream, err);
    }
    request = cursor_for(how, stream, access->index);
    if (!cursor_open(&span->view, &request, &stream->cursor, err))
        return false;
    if (access->index && span->cost.partitions_begun)
        span->cost.index_lookups += request.range_count;
    if (access->second) {
        request = cursor_for(how, stream, access->second);
        if (!cursor_open(&span->view, &request, &stream->second, err))
            return false;
        span->cost.index_lookups += span->cost.partitions_begun != 0;
    }
    return stream_seek(how, stream, err) && query_stream_next(how, stream, err);
}
