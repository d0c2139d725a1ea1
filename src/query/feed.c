/* A stream is one cursor (or two, for an intersection) over the part of one target that lies in one
 * span. The streams of a window stand in a heap by the place of their next hit; mostly there is
 * one. Above the heap a batch is filled and its items are fetched together, sorted by key within
 * each partition, and then given out in the order they came. */
#include "query/feed.h"

#include <stdlib.h>

enum {
    BATCH_MAX = 128,
    BATCH_FIRST = 16,
    BATCH_BYTES = 4 * 1024 * 1024, /* of items held at once, about */
    STEPS_BEFORE_SEEK = 4,
};

struct stream {
    size_t span;
    const struct query_target *target;
    struct partition_range range; /* of target and window and span */
    struct cursor *cursor;        /* NULL: a point */
    struct cursor *second;
    uint64_t counted; /* entries that are in the cost */
    bool point_given;
    bool has; /* place and key below are those of the next hit */
    struct query_place place;
    struct item item;
    struct buf bytes;    /* of the place and the item key */
    struct slice key;    /* item key */
    struct arena *arena; /* of a point */
};

struct query_feed {
    struct query_spans *spans;
    const struct query_access *access;
    struct query_feed_options options;
    struct query_position from;
    bool by_number;
    bool by_key; /* QUERY_FEED_ANY scans */
    bool ties_backwards;

    struct partition_range window;
    struct slice reached; /* routing keys below are done */
    bool in_window, ended, held, unsure;
    struct stream **streams; /* a heap of those that have a hit; owned */
    size_t stream_count, stream_capacity;

    struct arena *arena; /* of the batch */
    struct query_hit *batch;
    size_t batch_count, batch_at, batch_size;
    struct query_feed_times times;
};

static uint64_t time_begin(const struct query_feed *feed)
{
    return feed->options.timed ? clock_monotonic_ns() : 0;
}

static void time_end(const struct query_feed *feed, uint64_t begin, uint64_t *total)
{
    if (feed->options.timed)
        *total += clock_monotonic_ns() - begin;
}

struct query_feed *query_feed_new(struct query_spans *spans, const struct query_access *access,
                                  const struct query_feed_options *options,
                                  const struct query_position *from)
{
    struct query_feed *feed = MEMORY_NEW(struct query_feed);

    feed->spans = spans;
    feed->access = access;
    feed->options = *options;
    feed->from = *from;
    feed->by_key = options->order == QUERY_FEED_ANY && access->kind == QUERY_ACCESS_SCAN;
    feed->by_number = !feed->by_key && access->kind != QUERY_ACCESS_INDEX;
    feed->ties_backwards = access->backwards;
    feed->reached = PARTITION_ROUTING_MIN;
    feed->arena = arena_new();
    feed->batch = memory_alloc(BATCH_MAX * sizeof *feed->batch);
    feed->batch_size = BATCH_FIRST;
    if (options->first_batch)
        feed->batch_size = (size_t)MIN(options->first_batch, (uint64_t)BATCH_MAX);
    return feed;
}

static void stream_free(struct stream *stream)
{
    cursor_free(stream->cursor);
    cursor_free(stream->second);
    arena_free(stream->arena);
    buf_done(&stream->bytes);
    memory_free(stream);
}

static void streams_clear(struct query_feed *feed)
{
    for (size_t i = 0; i < feed->stream_count; i++)
        stream_free(feed->streams[i]);
    feed->stream_count = 0;
}

void query_feed_free(struct query_feed *feed)
{
    if (!feed)
        return;
    streams_clear(feed);
    memory_free(feed->streams);
    memory_free(feed->batch);
    arena_free(feed->arena);
    memory_free(feed);
}

struct query_feed_times query_feed_times(const struct query_feed *feed)
{
    return feed->times;
}

/* --- Order ----------------------------------------------------------------------------------- */

static int place_order(const struct query_feed *feed, const struct query_place *a,
                       const struct query_place *b)
{
    if (feed->by_number)
        return (a->number > b->number) - (a->number < b->number);
    return query_place_compare(a, b, feed->ties_backwards);
}

/* Is it behind what earlier pages have done? */
static bool is_behind(const struct query_feed *feed, const struct query_place *place)
{
    int order;

    if (!feed->from.begun)
        return true;
    order = place_order(feed, place, &feed->from.place);
    return order > 0 || (order == 0 && feed->from.place.rows);
}

static void heap_sift_down(struct query_feed *feed, size_t at)
{
    struct stream **heap = feed->streams;

    for (;;) {
        size_t least = at, left = 2 * at + 1;

        for (size_t child = left; child < left + 2 && child < feed->stream_count; child++) {
            if (place_order(feed, &heap[child]->place, &heap[least]->place) < 0)
                least = child;
        }
        if (least == at)
            return;
        struct stream *moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

/* --- Streams --------------------------------------------------------------------------------- */

static void entries_count(struct query_feed *feed, struct stream *stream)
{
    uint64_t entries = cursor_entries(stream->cursor);

    if (stream->second)
        entries += cursor_entries(stream->second);
    if (!feed->by_key && feed->access->kind == QUERY_ACCESS_INDEX)
        feed->spans->list[stream->span].cost.index_entries += entries - stream->counted;
    stream->counted = entries;
}

/* The place of a hit, copied; bytes of an index that is walked backwards are turned over, so that
 * places always ascend. */
static void place_set(struct query_feed *feed, struct stream *stream, const struct cursor_hit *hit)
{
    struct slice value = hit->value;
    struct buf *bytes = &stream->bytes;

    /* What two indexes have in common has two values, each the same for all hits. */
    if (feed->by_number || stream->second)
        value = SLICE_NONE;
    else if (feed->by_key)
        value = hit->key;

    buf_clear(bytes);
    buf_reserve(bytes, value.len + hit->routing.len + hit->key.len + 1);
    buf_append_slice(bytes, value);
    for (size_t i = 0; feed->access->backwards && i < value.len; i++)
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
static bool common_next(struct query_feed *feed, struct stream *stream, bool *ret_more,
                        struct error *err)
{
    struct slice values[] = {feed->access->index->ranges.list[0].min,
                             feed->access->second->ranges.list[0].min};
    struct cursor *cursors[] = {stream->cursor, stream->second};
    struct cursor_hit hit;
    int order = 1;

    if (!cursor_next(cursors[0], &hit, ret_more, err))
        return false;
    for (unsigned turn = 1; *ret_more && order > 0; turn ^= 1) {
        unsigned steps = 0;

        place_set(feed, stream, &hit);
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

static bool point_next(struct query_feed *feed, struct stream *stream, struct error *err)
{
    struct view *view = &feed->spans->list[stream->span].view;

    stream->has = false;
    if (stream->point_given)
        return true;
    stream->point_given = true;
    stream->arena = arena_new();
    stream->key = item_key(stream->target->logical, &feed->access->ids[0], stream->arena);
    if (!view_fetch(view, &stream->key, 1, stream->arena, &stream->item, err))
        return false;
    if (!stream->item.document.data)
        return true;
    stream->place = (struct query_place){.number = stream->item.header.number};
    stream->has = true;
    return true;
}

/* An item that comes with its bytes. */
static bool key_decode(struct query_feed *feed, struct stream *stream, const struct cursor_hit *hit,
                       bool *ret_there, struct error *err)
{
    if (!item_decode(hit->key, hit->stored, &stream->item, err))
        return false;
    *ret_there = !view_is_over(&feed->spans->list[stream->span].view, &stream->item.header);
    return true;
}

static bool stream_next(struct query_feed *feed, struct stream *stream, struct error *err)
{
    struct cursor_hit hit;
    bool more, there = true;

    if (!stream->cursor)
        return point_next(feed, stream, err);
    do {
        if (stream->second) {
            if (!common_next(feed, stream, &more, err))
                return false;
        } else {
            if (!cursor_next(stream->cursor, &hit, &more, err))
                return false;
            if (more)
                place_set(feed, stream, &hit);
            if (more && feed->by_key && !key_decode(feed, stream, &hit, &there, err))
                return false;
        }
    } while (more && (!there || !is_behind(feed, &stream->place)));
    stream->has = more;
    entries_count(feed, stream);
    return true;
}

/* Where the cursor has to begin for the position. */
static bool stream_seek(struct query_feed *feed, struct stream *stream, struct error *err)
{
    CLEANUP(buf_done) struct buf value;
    const struct query_place *place = &feed->from.place;
    uint64_t number = place->number;

    buf_init(&value, BUF_DEFAULT_MAX);
    if (!feed->from.begun || !stream->cursor)
        return true;
    if (place->rows) /* its item comes once more */
        number += feed->ties_backwards ? 1 : (uint64_t)-1;
    buf_append_slice(&value, stream->second ? feed->access->index->ranges.list[0].min : place->key);
    for (size_t i = 0; feed->access->backwards && i < value.len; i++)
        value.data[i] = (uint8_t)~value.data[i];
    if (feed->by_key && place->rows)
        return true; /* scans for aggregates alone: they end pages between items */
    if (place->key.len >= QUERY_PLACE_KEY_MAX)
        return feed->access->backwards || feed->by_key
                   ? true /* the key is cut; what is done is passed over */
                   : cursor_seek_behind(stream->cursor, buf_slice(&value), SLICE_NONE, 0, err);
    if (!cursor_seek_behind(stream->cursor, buf_slice(&value), place->routing, number, err))
        return false;
    return !stream->second ||
           cursor_seek_behind(stream->second, feed->access->second->ranges.list[0].min,
                              place->routing, number, err);
}

static struct cursor_request cursor_for(const struct query_feed *feed, const struct stream *stream,
                                        const struct query_index_use *use)
{
    const struct partition_span *span = feed->spans->list[stream->span].span;
    struct cursor_request request = {.logical = stream->target->logical};

    request.kind = feed->by_key ? CURSOR_KEYS : feed->by_number ? CURSOR_NUMBERS : CURSOR_INDEX;
    if (!slice_equal(stream->range.min, span->min))
        request.routing_min = stream->range.min;
    if (!slice_equal(stream->range.max, span->max))
        request.routing_max = stream->range.max;
    if (use) {
        request.backwards = feed->access->backwards;
        request.path = use->prefix;
        request.value_count = use->value_count;
        request.descending = use->descending;
        request.ranges = use->ranges.list;
        request.range_count = use->ranges.count;
    }
    return request;
}

static bool stream_open(struct query_feed *feed, struct stream *stream, struct error *err)
{
    const struct query_access *access = feed->access;
    struct query_span *span = &feed->spans->list[stream->span];
    struct cursor_request request;

    buf_init(&stream->bytes, BUF_DEFAULT_MAX);
    if (access->kind == QUERY_ACCESS_POINT) {
        span->cost.index_lookups += span->cost.partitions_begun != 0;
        return stream_next(feed, stream, err);
    }
    request = cursor_for(feed, stream, access->index);
    if (!cursor_open(&span->view, &request, &stream->cursor, err))
        return false;
    if (access->index && span->cost.partitions_begun)
        span->cost.index_lookups += access->index->ranges.count;
    if (access->second) {
        request = cursor_for(feed, stream, access->second);
        if (!cursor_open(&span->view, &request, &stream->second, err))
            return false;
        span->cost.index_lookups += span->cost.partitions_begun != 0;
    }
    return stream_seek(feed, stream, err) && stream_next(feed, stream, err);
}

/* --- Windows --------------------------------------------------------------------------------- */

static struct slice larger(struct slice a, struct slice b)
{
    return slice_compare(a, b) >= 0 ? a : b;
}

static struct slice smaller(struct slice a, struct slice b)
{
    return slice_compare(a, b) <= 0 ? a : b;
}

static bool stream_add(struct query_feed *feed, size_t span, const struct query_target *target,
                       struct partition_range range, struct error *err)
{
    struct stream *stream = MEMORY_NEW(struct stream);

    stream->span = span;
    stream->target = target;
    stream->range = range;
    if (feed->stream_count == feed->stream_capacity) {
        feed->stream_capacity = feed->stream_capacity * 2 + 4;
        feed->streams = memory_realloc(
            feed->streams, memory_array_size(feed->stream_capacity, sizeof *feed->streams));
    }
    feed->streams[feed->stream_count++] = stream;
    if (!stream_open(feed, stream, err))
        return false;
    if (!stream->has) {
        feed->stream_count--;
        stream_free(stream);
    }
    return true;
}

/* Was the span read from by a page before? */
static bool is_resumed(const struct query_feed *feed, const struct partition_span *span)
{
    return feed->options.resumed ||
           (feed->from.begun && slice_compare(span->min, feed->from.window.max) < 0);
}

/* False with *ret_held, when nothing is wrong but the budget. */
static bool span_admit(struct query_feed *feed, size_t span, bool *ret_held, struct error *err)
{
    bool first = feed->spans->admitted == 0 || feed->options.order == QUERY_FEED_MERGED;

    if (query_spans_admit(feed->spans, span, is_resumed(feed, feed->spans->list[span].span), err))
        return true;
    *ret_held = !first && feed->options.order != QUERY_FEED_MERGED &&
                (err->code == ERROR_TOO_MANY_REQUESTS || err->code == ERROR_BUCKET_THROTTLED ||
                 err->code == ERROR_KEY_THROTTLED);
    return false;
}

static bool window_open(struct query_feed *feed, struct partition_range window, struct error *err)
{
    const struct query_access *access = feed->access;

    feed->window = window;
    for (size_t t = 0; t < access->target_count; t++) {
        const struct query_target *target = &access->targets[t];
        struct partition_range part = {larger(target->range.min, window.min),
                                       smaller(target->range.max, window.max)};
        size_t first, count;

        if (slice_compare(part.min, part.max) >= 0)
            continue;
        count = query_spans_overlap(feed->spans, part, &first);
        for (size_t i = first; i < first + count; i++) {
            const struct partition_span *span = feed->spans->list[i].span;
            struct partition_range range = {larger(part.min, span->min),
                                            smaller(part.max, span->max)};

            if (!span_admit(feed, i, &feed->held, err))
                return feed->held;
            if (!stream_add(feed, i, target, range, err))
                return false;
        }
    }
    for (size_t i = feed->stream_count / 2; i-- > 0;)
        heap_sift_down(feed, i);
    return true;
}

/* The next window: the one of the position, then span after span, target after target. */
static bool window_next(struct query_feed *feed, bool *ret_found)
{
    const struct query_access *access = feed->access;

    *ret_found = false;
    if (feed->options.order == QUERY_FEED_MERGED) {
        *ret_found = !feed->in_window && access->target_count;
        feed->window = (struct partition_range){PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
        return true;
    }
    if (!feed->in_window && feed->from.begun) {
        feed->window = feed->from.window;
        *ret_found = true;
        return true;
    }
    if (feed->in_window) {
        feed->reached = feed->window.max;
        feed->from.begun = false;
    }
    for (size_t t = 0; t < access->target_count; t++) {
        struct partition_range part = {larger(access->targets[t].range.min, feed->reached),
                                       access->targets[t].range.max};
        size_t first;

        if (slice_compare(part.min, part.max) >= 0 ||
            !query_spans_overlap(feed->spans, part, &first))
            continue;
        feed->window = (struct partition_range){
            part.min, smaller(part.max, feed->spans->list[first].span->max)};
        *ret_found = true;
        return true;
    }
    return true;
}

/* Makes sure that the heap has a hit, or that all is at its end. */
static bool heap_fill(struct query_feed *feed, struct error *err)
{
    while (!feed->stream_count && !feed->ended && !feed->held && !feed->unsure) {
        bool found;

        if (!window_next(feed, &found))
            return false;
        if (!found) {
            feed->ended = true;
            break;
        }
        feed->in_window = true;
        if (!window_open(feed, feed->window, err))
            return false;
        if (feed->held)
            streams_clear(feed);
    }
    return true;
}

/* --- Hits ------------------------------------------------------------------------------------ */

static bool heap_advance(struct query_feed *feed, struct error *err)
{
    struct stream *top = feed->streams[0];

    if (!stream_next(feed, top, err))
        return false;
    if (!top->has) {
        stream_free(top);
        feed->streams[0] = feed->streams[--feed->stream_count];
    }
    heap_sift_down(feed, 0);
    return true;
}

static void hit_of(const struct query_feed *feed, const struct stream *stream,
                   struct query_hit *hit)
{
    *hit = (struct query_hit){.place = stream->place,
                              .window = feed->window,
                              .span = stream->span,
                              .item = {.key = stream->key}};
    if (feed->by_key || !stream->cursor)
        hit->item = stream->item;
    hit->item.key = stream->key;
}

static void hit_keep(struct query_hit *hit, struct arena *arena)
{
    hit->place.key = arena_copy(arena, hit->place.key);
    hit->place.routing = arena_copy(arena, hit->place.routing);
    hit->item.key = arena_copy(arena, hit->item.key);
}

struct wanted {
    size_t span;
    struct slice key;
    size_t place;
};

static int by_span_and_key(const void *a, const void *b)
{
    const struct wanted *left = a, *right = b;

    if (left->span != right->span)
        return left->span < right->span ? -1 : 1;
    return slice_compare(left->key, right->key);
}

static bool batch_load(struct query_feed *feed, struct error *err)
{
    struct wanted wanted[BATCH_MAX];
    struct slice keys[BATCH_MAX];
    struct item items[BATCH_MAX];
    size_t at = 0;

    for (size_t i = 0; i < feed->batch_count; i++)
        wanted[i] = (struct wanted){feed->batch[i].span, feed->batch[i].item.key, i};
    qsort(wanted, feed->batch_count, sizeof *wanted, by_span_and_key);
    while (at < feed->batch_count) {
        size_t count = 0, span = wanted[at].span;

        for (; at + count < feed->batch_count && wanted[at + count].span == span; count++)
            keys[count] = wanted[at + count].key;
        if (!view_fetch(&feed->spans->list[span].view, keys, count, feed->arena, items, err))
            return false;
        for (size_t i = 0; i < count; i++)
            feed->batch[wanted[at + i].place].item = items[i];
        at += count;
    }
    return true;
}

/* Batches grow while they are wanted, as far as the items seen so far say that they fit. */
static void batch_grow(struct query_feed *feed)
{
    size_t bytes = 1;

    for (size_t i = 0; i < feed->batch_count; i++)
        bytes += feed->batch[i].item.document.len;
    feed->batch_size = MIN(feed->batch_size * 2, (size_t)BATCH_MAX);
    if (feed->batch_count)
        feed->batch_size =
            MAX((size_t)1, MIN(feed->batch_size, BATCH_BYTES / (bytes / feed->batch_count + 1)));
}

static bool same_long_key(const struct query_place *a, const struct query_place *b)
{
    return a->key.len >= INDEX_VALUE_MAX && slice_equal(a->key, b->key);
}

/* Ends the batch before the first of several hits whose keys agree as far as they are kept. */
static void batch_check(struct query_feed *feed)
{
    if (feed->options.order != QUERY_FEED_MERGED)
        return;
    for (size_t i = 0; i < feed->batch_count; i++) {
        const struct query_place *next = i + 1 < feed->batch_count ? &feed->batch[i + 1].place
                                         : feed->stream_count      ? &feed->streams[0]->place
                                                                   : NULL;

        if (!next || !same_long_key(&feed->batch[i].place, next))
            continue;
        feed->unsure = true;
        feed->batch_count = i;
        streams_clear(feed);
        return;
    }
}

bool query_feed_is_unsure(const struct query_feed *feed)
{
    return feed->unsure;
}

/* One window at a time, so that a batch never reads ahead into another partition. */
static bool batch_fill(struct query_feed *feed, struct error *err)
{
    uint64_t begin = time_begin(feed);

    if (feed->batch_count)
        batch_grow(feed);
    arena_reset(feed->arena);
    feed->batch_count = feed->batch_at = 0;
    if (!heap_fill(feed, err))
        return false;
    while (feed->batch_count < feed->batch_size && feed->stream_count) {
        struct query_hit *hit = &feed->batch[feed->batch_count++];

        hit_of(feed, feed->streams[0], hit);
        hit_keep(hit, feed->arena);
        if (!heap_advance(feed, err))
            return false;
    }
    batch_check(feed);
    time_end(feed, begin, &feed->times.index_ns);
    begin = time_begin(feed);
    if (feed->options.load && !batch_load(feed, err))
        return false;
    time_end(feed, begin, &feed->times.load_ns);
    return true;
}

static void hit_charge(struct query_feed *feed, const struct query_hit *hit)
{
    struct cost_query *cost = &feed->spans->list[hit->span].cost;

    if (!hit->item.document.data)
        return;
    cost->items_loaded++;
    cost->loaded_bytes += hit->item.document.len;
}

/* A hit that brings its item, straight from its stream. */
static bool direct_next(struct query_feed *feed, struct query_hit *ret_hit, bool *ret_more,
                        struct error *err)
{
    uint64_t begin = time_begin(feed);

    if (feed->batch_at && feed->stream_count && !heap_advance(feed, err))
        return false;
    feed->batch_at = 0;
    if (!heap_fill(feed, err))
        return false;
    *ret_more = feed->stream_count > 0;
    if (*ret_more) {
        hit_of(feed, feed->streams[0], ret_hit);
        feed->batch_at = 1; /* to be left behind by the next call */
        hit_charge(feed, ret_hit);
    }
    time_end(feed, begin, &feed->times.load_ns);
    return true;
}

bool query_feed_next(struct query_feed *feed, struct query_hit *ret_hit, bool *ret_more,
                     bool *ret_held, struct error *err)
{
    *ret_held = false;
    if (feed->by_key || feed->access->kind == QUERY_ACCESS_POINT) {
        if (!direct_next(feed, ret_hit, ret_more, err))
            return false;
        *ret_held = !*ret_more && feed->held;
        return true;
    }
    do {
        if (feed->batch_at == feed->batch_count) {
            if (!batch_fill(feed, err))
                return false;
            if (!feed->batch_count) {
                *ret_more = false;
                *ret_held = feed->held;
                return true;
            }
        }
        *ret_hit = feed->batch[feed->batch_at++];
        /* An entry whose item is over, or went while an old policy's entries are removed. */
    } while (feed->options.load && !ret_hit->item.document.data);
    hit_charge(feed, ret_hit);
    *ret_more = true;
    return true;
}

/* --- Counting -------------------------------------------------------------------------------- */

bool query_feed_count(struct query_spans *spans, const struct query_access *access, bool *ret_known,
                      uint64_t *ret_count, struct error *err)
{
    uint64_t total = 0;

    *ret_known = false;
    if (spans->request->space->definition->default_ttl)
        return true;
    for (size_t t = 0; t < access->target_count; t++) {
        const struct query_target *target = &access->targets[t];
        size_t first, count = query_spans_overlap(spans, target->range, &first);

        for (size_t i = first; i < first + count; i++) {
            const struct partition_span *span = spans->list[i].span;
            uint64_t items, bytes;

            if (!target->logical.len && (slice_compare(span->min, target->range.min) < 0 ||
                                         slice_compare(span->max, target->range.max) > 0))
                return true;
            if (!query_spans_admit(spans, i, false, err) ||
                !view_count(&spans->list[i].view, target->logical, &items, &bytes, err))
                return false;
            spans->list[i].cost.index_lookups++;
            total += items;
        }
    }
    *ret_known = true;
    *ret_count = total;
    return true;
}
