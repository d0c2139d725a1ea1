/* The streams of a window stand in a heap by the place of their next hit; mostly there is one.
 * Above the heap a batch is filled and its items are fetched together, sorted by key within each
 * partition, and then given out in the order they came. */
#include "query/run/hits.h"

#include "query/run/stream.h"

#include <stdlib.h>

enum {
    BATCH_MAX = 128,
    BATCH_FIRST = 16,
    BATCH_BYTES = 4 * 1024 * 1024, /* of items held at once, about */
    RUN_MAX = 1024,                /* so that limits are looked at now and then */
};

struct query_hits {
    struct query_streaming how;
    struct query_hits_options options;
    bool direct; /* there is nothing to load, so there are no batches */
    bool lazy;   /* merged, and partitions are in the order as well: they wait for their turn */

    struct partition_range window;
    struct slice reached; /* routing keys below are done */
    bool in_window, ended, held, unsure;
    struct query_stream **streams; /* a heap of those that have a hit; owned */
    size_t stream_count, stream_capacity;

    struct arena *arena; /* of the batch */
    struct query_hit *batch;
    size_t batch_count, batch_at, batch_size;
    uint64_t passed; /* hits that the present one stands for besides itself */
    struct query_hits_times times;

    /* Of a union: the hit that was given last, which other streams may have too. */
    struct buf given_routing;
    uint64_t given_number;
};

/* Is the order of the index that of the routing keys? */
static bool order_is_routing(const struct query_spans *spans, const struct query_access *access)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_definition *key = &spans->request->space->definition->key;

    return partition_route_is_ordered(key) && access->kind == QUERY_ACCESS_INDEX &&
           !access->with_count && !access->without && access->index->value_count == 1 &&
           !access->index->descending &&
           slice_equal(query_path_prefix(&key->paths[0], arena), access->index->prefix);
}

static uint64_t time_begin(const struct query_hits *feed)
{
    return feed->options.timed ? clock_monotonic_ns() : 0;
}

static void time_end(const struct query_hits *feed, uint64_t begin, uint64_t *total)
{
    if (feed->options.timed)
        *total += clock_monotonic_ns() - begin;
}

struct query_hits *query_hits_new(struct query_spans *spans, const struct query_access *access,
                                  const struct query_hits_options *options,
                                  const struct query_position *from)
{
    struct query_hits *feed = MEMORY_NEW(struct query_hits);

    feed->how.spans = spans;
    feed->how.access = access;
    feed->options = *options;
    feed->how.from = *from;
    feed->how.by_key = options->order == QUERY_HITS_ANY && access->kind == QUERY_ACCESS_SCAN;
    feed->how.by_number = !feed->how.by_key && access->kind != QUERY_ACCESS_INDEX;
    feed->direct = feed->how.by_key || access->kind == QUERY_ACCESS_POINT ||
                   (!options->load && options->order != QUERY_HITS_MERGED);
    feed->lazy = options->order == QUERY_HITS_MERGED && order_is_routing(spans, access);
    feed->how.ties = options->ties;
    feed->reached = PARTITION_ROUTING_MIN;
    feed->arena = arena_new();
    buf_init(&feed->given_routing, BUF_DEFAULT_MAX);
    feed->batch = memory_alloc(BATCH_MAX * sizeof *feed->batch);
    feed->batch_size = BATCH_FIRST;
    if (options->first_batch)
        feed->batch_size = (size_t)MIN(options->first_batch, (uint64_t)BATCH_MAX);
    return feed;
}

static void streams_clear(struct query_hits *feed)
{
    for (size_t i = 0; i < feed->stream_count; i++)
        query_stream_free(feed->streams[i]);
    feed->stream_count = 0;
}

void query_hits_free(struct query_hits *feed)
{
    if (!feed)
        return;
    streams_clear(feed);
    memory_free(feed->streams);
    memory_free(feed->batch);
    buf_done(&feed->given_routing);
    arena_free(feed->arena);
    memory_free(feed);
}

struct query_hits_times query_hits_times(const struct query_hits *feed)
{
    return feed->times;
}

static void heap_sift_down(struct query_hits *feed, size_t at)
{
    struct query_stream **heap = feed->streams;

    for (;;) {
        size_t least = at, left = 2 * at + 1;

        for (size_t child = left; child < left + 2 && child < feed->stream_count; child++) {
            if (query_stream_order(&feed->how, &heap[child]->place, &heap[least]->place) < 0)
                least = child;
        }
        if (least == at)
            return;
        struct query_stream *moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
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

static struct query_stream *stream_push(struct query_hits *feed, size_t span,
                                        const struct query_target *target,
                                        struct partition_range range)
{
    struct query_stream *stream = MEMORY_NEW(struct query_stream);

    stream->span = span;
    stream->target = target;
    stream->use = feed->how.access->index;
    stream->range = range;
    if (feed->stream_count == feed->stream_capacity) {
        feed->stream_capacity = feed->stream_capacity * 2 + 4;
        feed->streams = memory_realloc(
            feed->streams, memory_array_size(feed->stream_capacity, sizeof *feed->streams));
    }
    feed->streams[feed->stream_count++] = stream;
    return stream;
}

static bool is_union(const struct query_hits *feed)
{
    return feed->how.access->index && feed->how.access->index->member_count;
}

static bool stream_begin(struct query_hits *feed, struct query_stream *stream, struct error *err)
{
    if (!query_stream_open(&feed->how, stream, err))
        return false;
    if (!stream->has) {
        feed->stream_count--;
        query_stream_free(stream);
    }
    return true;
}

static bool stream_add(struct query_hits *feed, size_t span, const struct query_target *target,
                       struct partition_range range, struct error *err)
{
    const struct query_index_use *use = feed->how.access->index;

    if (!is_union(feed))
        return stream_begin(feed, stream_push(feed, span, target, range), err);
    for (size_t i = 0; i < use->member_count; i++) {
        struct query_stream *stream = stream_push(feed, span, target, range);

        stream->use = &use->members[i];
        stream->united = true;
        if (!stream_begin(feed, stream, err))
            return false;
    }
    return true;
}

/* Bytes that the values of a range of routing keys do not come before, or behind: as places have
 * them, turned over where the index is walked backwards. */
static void range_end(const struct query_hits *feed, struct partition_range range, bool last,
                      struct buf *ret_bytes)
{
    bool backwards = feed->how.access->backwards, upper = last != backwards;
    struct slice value = partition_route_first(upper ? range.max : range.min);

    buf_clear(ret_bytes);
    buf_append_slice(ret_bytes, value);
    if (upper)
        buf_append_byte(ret_bytes, 0xFF);
    for (size_t i = 0; backwards && i < ret_bytes->len; i++)
        ret_bytes->data[i] = (uint8_t)~ret_bytes->data[i];
    if (last && !upper)
        buf_append_byte(ret_bytes, 0xFF);
}

/* A stream that is opened when a hit of it may be the next; none, if pages before are beyond it. */
static void stream_wait(struct query_hits *feed, size_t span, const struct query_target *target,
                        struct partition_range range)
{
    const struct query_position *from = &feed->how.from;
    CLEANUP(buf_done) struct buf end;
    struct query_stream *stream;

    buf_init(&end, BUF_DEFAULT_MAX);
    range_end(feed, range, true, &end);
    if (from->begun && slice_compare(buf_slice(&end), from->place.key) < 0)
        return;
    stream = stream_push(feed, span, target, range);
    stream->waiting = true;
    buf_init(&stream->bytes, BUF_DEFAULT_MAX);
    range_end(feed, range, false, &stream->bytes);
    /* Before all that have the same value. */
    stream->place = (struct query_place){.key = buf_slice(&stream->bytes)};
}

/* Was the span read from by a page before? */
static bool is_resumed(const struct query_hits *feed, const struct partition_span *span)
{
    return feed->options.resumed ||
           (feed->how.from.begun && slice_compare(span->min, feed->how.from.window.max) < 0);
}

/* False with *ret_held, when nothing is wrong but the budget. */
static bool span_admit(struct query_hits *feed, size_t span, bool *ret_held, struct error *err)
{
    bool merged = feed->options.order == QUERY_HITS_MERGED && !feed->lazy;
    bool first = feed->how.spans->admitted == 0;

    if (query_spans_admit(feed->how.spans, span, is_resumed(feed, feed->how.spans->list[span].span),
                          err))
        return true;
    *ret_held = !first && !merged &&
                (err->code == ERROR_TOO_MANY_REQUESTS || err->code == ERROR_BUCKET_THROTTLED ||
                 err->code == ERROR_KEY_THROTTLED);
    return false;
}

/* Opens those whose turn it is, until the first has a hit. */
static bool waiting_open(struct query_hits *feed, struct error *err)
{
    while (feed->stream_count && feed->streams[0]->waiting) {
        struct query_stream *top = feed->streams[0];

        if (!span_admit(feed, top->span, &feed->held, err)) {
            if (feed->held)
                streams_clear(feed);
            return feed->held;
        }
        top->waiting = false;
        buf_done(&top->bytes); /* opening begins with an empty one */
        if (!query_stream_open(&feed->how, top, err))
            return false;
        if (!top->has) {
            query_stream_free(top);
            feed->streams[0] = feed->streams[--feed->stream_count];
        }
        heap_sift_down(feed, 0);
    }
    return true;
}

static bool window_open(struct query_hits *feed, struct partition_range window, struct error *err)
{
    const struct query_access *access = feed->how.access;

    feed->window = window;
    for (size_t t = 0; t < access->target_count; t++) {
        const struct query_target *target = &access->targets[t];
        struct partition_range part = {larger(target->range.min, window.min),
                                       smaller(target->range.max, window.max)};
        size_t first, count;

        if (slice_compare(part.min, part.max) >= 0)
            continue;
        count = query_spans_overlap(feed->how.spans, part, &first);
        for (size_t i = first; i < first + count; i++) {
            const struct partition_span *span = feed->how.spans->list[i].span;
            struct partition_range range = {larger(part.min, span->min),
                                            smaller(part.max, span->max)};

            if (feed->lazy) {
                stream_wait(feed, i, target, range);
                continue;
            }
            if (!span_admit(feed, i, &feed->held, err))
                return feed->held;
            if (!stream_add(feed, i, target, range, err))
                return false;
        }
    }
    for (size_t i = feed->stream_count / 2; i-- > 0;)
        heap_sift_down(feed, i);
    return waiting_open(feed, err);
}

/* The next window: the one of the position, then span after span, target after target. */
static bool window_next(struct query_hits *feed, bool *ret_found)
{
    const struct query_access *access = feed->how.access;

    *ret_found = false;
    if (feed->options.order == QUERY_HITS_MERGED) {
        *ret_found = !feed->in_window && access->target_count;
        feed->window = (struct partition_range){PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
        return true;
    }
    if (!feed->in_window && feed->how.from.begun) {
        feed->window = feed->how.from.window;
        *ret_found = true;
        return true;
    }
    if (feed->in_window) {
        feed->reached = feed->window.max;
        feed->how.from.begun = false;
    }
    for (size_t t = 0; t < access->target_count; t++) {
        struct partition_range part = {larger(access->targets[t].range.min, feed->reached),
                                       access->targets[t].range.max};
        size_t first;

        if (slice_compare(part.min, part.max) >= 0 ||
            !query_spans_overlap(feed->how.spans, part, &first))
            continue;
        feed->window = (struct partition_range){
            part.min, smaller(part.max, feed->how.spans->list[first].span->max)};
        *ret_found = true;
        return true;
    }
    return true;
}

/* Makes sure that the heap has a hit, or that all is at its end. */
static bool heap_fill(struct query_hits *feed, struct error *err)
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

static bool top_advance(struct query_hits *feed, struct error *err)
{
    struct query_stream *top = feed->streams[0];

    if (!query_stream_next(&feed->how, top, err))
        return false;
    if (!top->has) {
        query_stream_free(top);
        feed->streams[0] = feed->streams[--feed->stream_count];
    }
    heap_sift_down(feed, 0);
    return waiting_open(feed, err);
}

/* Leaves the hit on top behind; of a union, in every stream that has it. */
static bool heap_advance(struct query_hits *feed, struct error *err)
{
    const struct query_place *place = &feed->streams[0]->place;

    if (!is_union(feed))
        return top_advance(feed, err);
    buf_clear(&feed->given_routing);
    buf_append_slice(&feed->given_routing, place->routing);
    feed->given_number = place->number;
    do {
        if (!top_advance(feed, err))
            return false;
        if (!feed->stream_count)
            return true;
        place = &feed->streams[0]->place;
    } while (place->number == feed->given_number &&
             slice_equal(place->routing, buf_slice(&feed->given_routing)));
    return true;
}

static void hit_of(const struct query_hits *feed, const struct query_stream *stream,
                   struct query_hit *hit)
{
    *hit = (struct query_hit){.place = stream->place,
                              .window = feed->window,
                              .span = stream->span,
                              .times = 1 + feed->passed,
                              .unsure = stream->unsure,
                              .score_known = stream->score_known,
                              .score = stream->score,
                              .item = {.key = stream->key}};
    if (feed->how.by_key || (!stream->cursor && !stream->postings))
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

static bool batch_load(struct query_hits *feed, struct error *err)
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
        if (!view_fetch(&feed->how.spans->list[span].view, keys, count, feed->arena, items, err))
            return false;
        for (size_t i = 0; i < count; i++)
            feed->batch[wanted[at + i].place].item = items[i];
        at += count;
    }
    return true;
}

/* Batches grow while they are wanted, as far as the items seen so far say that they fit. */
static void batch_grow(struct query_hits *feed)
{
    size_t bytes = 1;

    for (size_t i = 0; i < feed->batch_count; i++)
        bytes += feed->batch[i].item.document.len;
    feed->batch_size = MIN(feed->batch_size * 2, (size_t)BATCH_MAX);
    if (feed->batch_count)
        feed->batch_size =
            MAX((size_t)1, MIN(feed->batch_size, BATCH_BYTES / (bytes / feed->batch_count + 1)));
}

/* Entries that share a value that was cut share all that is before it as well, so they stand side
 * by side and agree in the first INDEX_VALUE_MAX bytes at least. */
static bool same_long_key(const struct query_hits *feed, const struct query_place *a,
                          const struct query_place *b)
{
    if (MIN(a->key.len, b->key.len) < INDEX_VALUE_MAX)
        return false;
    if (feed->options.whole)
        return memcmp(a->key.data, b->key.data, INDEX_VALUE_MAX) == 0;
    return slice_equal(a->key, b->key);
}

/* Ends the batch before the first of several hits whose keys agree as far as they are kept. */
static void batch_check(struct query_hits *feed)
{
    if (feed->options.order != QUERY_HITS_MERGED)
        return;
    for (size_t i = 0; i < feed->batch_count; i++) {
        const struct query_place *next = i + 1 < feed->batch_count ? &feed->batch[i + 1].place
                                         : feed->stream_count      ? &feed->streams[0]->place
                                                                   : NULL;

        if (!next || !same_long_key(feed, &feed->batch[i].place, next))
            continue;
        feed->unsure = true;
        feed->batch_count = i;
        streams_clear(feed);
        return;
    }
}

void query_hits_taken(struct query_hits *feed, size_t span)
{
    if (feed->how.taken_span != span)
        feed->how.taken = 0;
    feed->how.taken_span = span;
    feed->how.taken++;
}

void query_hits_expect(struct query_hits *feed, size_t hits)
{
    assert(hits > 0);
    feed->batch_size = MIN(hits, (size_t)BATCH_MAX);
}

bool query_hits_is_unsure(const struct query_hits *feed)
{
    return feed->unsure;
}

/* As heap_fill, where the rows of the batch before tell whether the stream on top goes on. */
static bool heap_decide(struct query_hits *feed, struct error *err)
{
    for (;;) {
        if (!heap_fill(feed, err))
            return false;
        if (!feed->stream_count || !feed->streams[0]->undecided)
            return true;
        if (!top_advance(feed, err))
            return false;
    }
}

/* One window at a time, so that a batch never reads ahead into another partition. */
static bool batch_fill(struct query_hits *feed, struct error *err)
{
    uint64_t begin = time_begin(feed);

    if (feed->batch_count)
        batch_grow(feed);
    arena_reset(feed->arena);
    feed->batch_count = feed->batch_at = 0;
    if (!heap_decide(feed, err))
        return false;
    while (feed->batch_count < feed->batch_size && feed->stream_count &&
           !feed->streams[0]->undecided) {
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

static void hit_charge(struct query_hits *feed, const struct query_hit *hit)
{
    struct cost_query *cost = &feed->how.spans->list[hit->span].cost;

    if (!hit->item.document.data)
        return;
    cost->items_loaded++;
    cost->loaded_bytes += hit->item.document.len;
}

/* Goes on to the last of the hits that can be given as one. */
static bool run_pass(struct query_hits *feed, struct error *err)
{
    feed->passed = 0;
    return feed->options.runs == QUERY_RUNS_NONE || feed->stream_count != 1 ||
           query_stream_pass(&feed->how, feed->streams[0], feed->options.runs == QUERY_RUNS_ANY,
                             RUN_MAX - 1, &feed->passed, err);
}

/* A hit that brings its item, or none, straight from its stream. */
static bool direct_next(struct query_hits *feed, struct query_hit *ret_hit, bool *ret_more,
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
        if (!run_pass(feed, err))
            return false;
        hit_of(feed, feed->streams[0], ret_hit);
        feed->batch_at = 1; /* to be left behind by the next call */
        hit_charge(feed, ret_hit);
    }
    time_end(feed, begin, &feed->times.load_ns);
    return true;
}

bool query_hits_next(struct query_hits *feed, struct query_hit *ret_hit, bool *ret_more,
                     bool *ret_held, struct error *err)
{
    *ret_held = false;
    if (feed->direct) {
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

/* Is all of the logical partition asked for? Its items are counted in its first part, for all of
 * them. */
static bool target_is_whole(const struct query_target *target)
{
    return slice_compare(target->range.min, target->logical) <= 0 &&
           !slice_starts_with(target->range.max, target->logical);
}

bool query_hits_count(struct query_spans *spans, const struct query_access *access, bool *ret_known,
                      uint64_t *ret_count, struct error *err)
{
    uint64_t total = 0;

    *ret_known = false;
    if (spans->request->space->definition->default_ttl ||
        (spans->request->overlay && partition_map_is_spread(spans->request->space->map)))
        return true;
    for (size_t t = 0; t < access->target_count; t++) {
        const struct query_target *target = &access->targets[t];
        size_t first, count = query_spans_overlap(spans, target->range, &first);

        for (size_t i = first; i < first + count; i++) {
            const struct partition_span *span = spans->list[i].span;
            uint64_t items, bytes;

            if (target->logical.len ? !target_is_whole(target)
                                    : slice_compare(span->min, target->range.min) < 0 ||
                                          slice_compare(span->max, target->range.max) > 0)
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
