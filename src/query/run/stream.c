/* One cursor, or several for an intersection (stream_common.c), or a get: the hits of one target in
 * one span.
 *
 * An index has equal values by routing key and number, and walks them backwards for a falling
 * order. Clients that merge ranges expect them by rising number, and drop what comes out of turn.
 * So the entries of one value are read together, and the TIES_MAX lowest numbers that were not
 * given yet are kept and given; if there are more, they are read again for the next ones. Memory is
 * bounded and the order total; a value that very many items share costs a walk over its entries for
 * every TIES_MAX rows. In one logical partition a rising index has that order by itself.
 *
 * The streams of a union all come by routing key and number, so that an item that several have
 * stands at the top of the heap several times in a row. The entries of one value have that order;
 * those of a range are gathered in the same way as ties are: the TIES_MAX lowest behind those that
 * were given, and if there are more, the range is walked again. */
#include "query/run/stream_private.h"

#include "base/heap.h"

#include <stdlib.h>

enum {
    TIES_MAX = QUERY_GATHERED_MAX,
    TIES_PER_ENTRY = 32, /* entries that are only put in order, for the price of one */
};

/* --- Order ----------------------------------------------------------------------------------- */

int query_stream_order(const struct query_streaming *how, const struct query_place *a,
                       const struct query_place *b)
{
    if (how->by_number)
        return (a->number > b->number) - (a->number < b->number);
    return query_place_compare(a, b);
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

static void ties_clear(struct query_stream *stream)
{
    for (size_t i = 0; i < stream->tie_count; i++)
        memory_free((void *)stream->ties[i].key.data);
    stream->tie_count = stream->tie_at = 0;
}

void query_stream_free(struct query_stream *stream)
{
    query_terms_free(stream);
    query_stream_near_done(stream);
    ties_clear(stream);
    memory_free(stream->ties);
    buf_done(&stream->tie_value);
    cursor_free(stream->cursor);
    query_common_free(stream->common);
    arena_free(stream->arena);
    buf_done(&stream->bytes);
    memory_free(stream);
}

/* --- Streams --------------------------------------------------------------------------------- */

static void entries_count(const struct query_streaming *how, struct query_stream *stream)
{
    uint64_t entries =
        stream->common ? query_common_entries(stream->common) : cursor_entries(stream->cursor);

    if (!how->by_key && how->access->kind == QUERY_ACCESS_INDEX)
        how->spans->list[stream->span].cost.index_entries += entries - stream->counted;
    stream->counted = entries;
}

/* The place of a hit, copied; bytes of an index that is walked backwards are turned over, so that
 * places always ascend. */
void query_stream_place(const struct query_streaming *how, struct query_stream *stream,
                        const struct cursor_hit *hit)
{
    struct slice value = hit->value, routing = how->ties ? SLICE_NONE : hit->routing;
    struct buf *bytes = &stream->bytes;

    /* What several indexes have in common has several values, each the same for all hits; what is
     * in one of several has no value of its own. */
    if (how->by_number || stream->common || stream->united)
        value = SLICE_NONE;
    else if (how->by_key)
        value = hit->key;

    buf_clear(bytes);
    buf_reserve(bytes, value.len + routing.len + hit->key.len + 1);
    buf_append_slice(bytes, value);
    for (size_t i = 0; how->access->backwards && i < value.len; i++)
        bytes->data[i] = (uint8_t)~bytes->data[i];
    buf_append_slice(bytes, routing);
    buf_append_slice(bytes, hit->key);
    stream->place = (struct query_place){.key = slice_of(bytes->data, value.len),
                                         .routing = slice_of(bytes->data + value.len, routing.len),
                                         .number = hit->number};
    stream->key = slice_of(bytes->data + value.len + routing.len, hit->key.len);
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
    stream->key = item_key(definition_names_of(view->scope.definition), stream->target->logical,
                           &how->access->ids[0], stream->arena);
    /* of a key that is spread, one part has it */
    if (slice_compare(stream->key, stream->range.min) < 0 ||
        slice_compare(stream->key, stream->range.max) >= 0)
        return true;
    if (!view_fetch(view, &stream->key, 1, stream->arena, &stream->item, err))
        return false;
    if (!stream->item.document.data)
        return true;
    stream->place = (struct query_place){.number = stream->item.header.number};
    stream->has = true;
    return true;
}

/* --- Equal values ---------------------------------------------------------------------------- */

static bool ahead_next(struct query_stream *stream, struct error *err)
{
    stream->passed++;
    return cursor_next(stream->cursor, &stream->ahead, &stream->has_ahead, err);
}

/* Goes to where the entries of a value begin. */
static bool value_seek(const struct query_streaming *how, struct query_stream *stream,
                       struct slice value, struct error *err)
{
    return how->access->backwards ? cursor_seek_behind(stream->cursor, value,
                                                       SLICE("\xFF\xFF\xFF\xFF"), UINT64_MAX, err)
                                  : cursor_seek_behind(stream->cursor, value, SLICE_NONE, 0, err);
}

/* Of ties routing_len is 0: they have one value, and come by number alone. */
static int ties_order(const void *a, const void *b)
{
    const struct query_tie *x = a, *y = b;
    int order =
        slice_compare(slice_first(x->key, x->routing_len), slice_first(y->key, y->routing_len));

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static struct query_tie tie_of(const struct query_stream *stream, const struct cursor_hit *hit)
{
    return (struct query_tie){hit->number, hit->key, stream->united ? hit->routing.len : 0};
}

static struct query_tie tie_copy(struct query_tie tie)
{
    uint8_t *key = memory_alloc(tie.key.len + 1);

    memcpy(key, tie.key.data, tie.key.len);
    tie.key.data = key;
    return tie;
}

static void tie_keep(struct query_stream *stream, const struct cursor_hit *hit)
{
    struct query_tie tie = tie_of(stream, hit);

    if (!stream->ties)
        stream->ties = memory_alloc(TIES_MAX * sizeof *stream->ties);
    if (stream->tie_count < TIES_MAX) {
        stream->ties[stream->tie_count++] = tie_copy(tie);
        if (stream->tie_count == TIES_MAX) /* the greatest on top, to make room for a lower one */
            heap_make(stream->ties, TIES_MAX, sizeof *stream->ties, ties_order);
        return;
    }
    stream->ties_left = true;
    if (ties_order(&tie, &stream->ties[0]) > 0)
        return;
    memory_free((void *)stream->ties[0].key.data);
    stream->ties[0] = tie_copy(tie);
    heap_sift(stream->ties, stream->tie_count, sizeof *stream->ties, 0, ties_order);
}

bool query_stream_may_go_on(const struct query_streaming *how, struct error *err)
{
    const struct query_request *request = how->spans->request;
    const struct query_page_limits *limits = &request->limits;

    if (limits->cancelled && atomic_load_explicit(limits->cancelled, memory_order_relaxed))
        return error_set(err, ERROR_TIMED_OUT, "the query was cancelled");
    if (limits->deadline_ms &&
        clock_read_monotonic_ms(request->space->clock) >= limits->deadline_ms)
        return error_set(err, ERROR_TIMED_OUT, "the query took longer than its deadline");
    return true;
}

/* The numbers of this value up to which pages before have come. */
static uint64_t number_reached(const struct query_streaming *how, struct slice value)
{
    const struct query_place *from = &how->from.place;

    if (!how->from.begun || value.len != from->key.len)
        return 0;
    for (size_t i = 0; i < value.len; i++)
        if (from->key.data[i] != (how->access->backwards ? (uint8_t)~value.data[i] : value.data[i]))
            return 0;
    return from->rows ? from->number - 1 : from->number;
}

/* An item may have several entries with the value, and others behind it. */
static void ties_single(struct query_stream *stream)
{
    size_t kept = 0;

    for (size_t i = 0; i < stream->tie_count; i++)
        if (kept && stream->ties[kept - 1].number == stream->ties[i].number)
            memory_free((void *)stream->ties[i].key.data);
        else
            stream->ties[kept++] = stream->ties[i];
    stream->tie_count = kept;
}

/* Reads the entries of the value ahead, and keeps the lowest numbers above this one. A value that
 * the index has cut is taken alone: the feed looks whether another one stands beside it. */
static bool ties_read(const struct query_streaming *how, struct query_stream *stream,
                      uint64_t number, struct error *err)
{
    uint64_t walked = 0;

    ties_clear(stream);
    stream->ties_left = false;
    do {
        if (stream->ahead.number > number)
            tie_keep(stream, &stream->ahead);
        if (++walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err))
            return false;
        if (!ahead_next(stream, err))
            return false;
    } while (stream->has_ahead && stream->tie_value.len < INDEX_VALUE_MAX &&
             slice_equal(stream->ahead.value, buf_slice(&stream->tie_value)));
    if (stream->tie_count > 1)
        qsort(stream->ties, stream->tie_count, sizeof *stream->ties, ties_order);
    ties_single(stream);
    return true;
}

/* Those that are given count as they do in any walk of an index; the others are cheaper. */
static void ties_charge(const struct query_streaming *how, struct query_stream *stream)
{
    struct cost_query *cost = &how->spans->list[stream->span].cost;
    uint64_t others = stream->passed > stream->tie_count ? stream->passed - stream->tie_count : 0;

    cost->index_entries += others / TIES_PER_ENTRY;
    stream->passed = others % TIES_PER_ENTRY;
}

static bool ties_fill(const struct query_streaming *how, struct query_stream *stream,
                      struct error *err)
{
    while (stream->tie_at == stream->tie_count) {
        uint64_t number = 0;

        if (stream->ties_left) {
            number = stream->ties[stream->tie_count - 1].number;
            if (!value_seek(how, stream, buf_slice(&stream->tie_value), err) ||
                !ahead_next(stream, err))
                return false;
        }
        stream->has = stream->has_ahead;
        if (!stream->has)
            return true;
        if (!stream->ties_left) {
            buf_clear(&stream->tie_value);
            buf_append_slice(&stream->tie_value, stream->ahead.value);
            number = number_reached(how, stream->ahead.value);
        }
        if (!ties_read(how, stream, number, err))
            return false;
        ties_charge(how, stream);
    }
    return true;
}

static bool tied_next(const struct query_streaming *how, struct query_stream *stream,
                      struct error *err)
{
    do {
        const struct query_tie *tie;

        if (!ties_fill(how, stream, err))
            return false;
        if (stream->tie_at == stream->tie_count)
            return true;
        tie = &stream->ties[stream->tie_at++];
        query_stream_place(how, stream,
                           &(struct cursor_hit){.value = buf_slice(&stream->tie_value),
                                                .number = tie->number,
                                                .key = tie->key});
    } while (!is_behind(how, &stream->place));
    how->spans->list[stream->span].cost.index_entries++;
    return true;
}

/* --- Ranges of a union ----------------------------------------------------------------------- */

static struct query_place tie_place(const struct query_tie *tie)
{
    return (struct query_place){.routing = slice_first(tie->key, tie->routing_len),
                                .number = tie->number};
}

/* The lowest behind the present hit, or behind what earlier pages have done. */
static bool gathered_read(const struct query_streaming *how, struct query_stream *stream,
                          struct error *err)
{
    struct cursor_hit hit;
    uint64_t walked = 0;
    bool more;

    ties_clear(stream);
    stream->ties_left = false;
    for (;;) {
        struct query_tie tie;
        struct query_place place;

        if (!cursor_next(stream->cursor, &hit, &more, err))
            return false;
        if (!more)
            break;
        if (++walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err))
            return false;
        tie = tie_of(stream, &hit);
        place = tie_place(&tie);
        if (is_behind(how, &place) &&
            (!stream->has || query_place_compare(&place, &stream->place) > 0))
            tie_keep(stream, &hit);
    }
    if (stream->tie_count > 1)
        qsort(stream->ties, stream->tie_count, sizeof *stream->ties, ties_order);
    entries_count(how, stream);
    return true;
}

static bool gathered_next(const struct query_streaming *how, struct query_stream *stream,
                          struct error *err)
{
    for (;;) {
        const struct query_tie *tie;
        struct query_place place;

        if (stream->tie_at == stream->tie_count) {
            if (stream->has && !stream->ties_left) {
                stream->has = false;
                return true;
            }
            if (stream->has && !query_stream_rewind(how, stream, err))
                return false;
            if (!gathered_read(how, stream, err))
                return false;
            if (!stream->tie_count) {
                stream->has = false;
                return true;
            }
        }
        tie = &stream->ties[stream->tie_at++];
        place = tie_place(tie);
        /* An item may have several values in the range. */
        if (stream->has && query_place_compare(&place, &stream->place) <= 0)
            continue;
        stream->has = true;
        query_stream_place(
            how, stream,
            &(struct cursor_hit){.routing = place.routing, .number = tie->number, .key = tie->key});
        return true;
    }
}

/* --- Walking --------------------------------------------------------------------------------- */

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
    uint64_t walked = 0;

    if (stream->postings)
        return query_terms_next(how, stream, err);
    if (!stream->cursor)
        return point_next(how, stream, err);
    if (stream->tied)
        return tied_next(how, stream, err);
    if (stream->use && stream->use->nearest)
        return query_stream_near_next(how, stream, err);
    if (stream->use && stream->use->gathered)
        return gathered_next(how, stream, err);
    do {
        if (stream->common) {
            more = false;
            if (!stream->passed_by && !query_common_next(how, stream, &more, err))
                return false;
        } else {
            if (!cursor_next(stream->cursor, &hit, &more, err))
                return false;
            if (++walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err))
                return false;
            there = more && !(stream->use && query_entry_is_out(stream->use, hit.value));
            if (there)
                query_stream_place(how, stream, &hit);
            if (there && how->by_key && !key_decode(how, stream, &hit, &there, err))
                return false;
        }
    } while (more && (!there || !is_behind(how, &stream->place)));
    stream->has = more;
    entries_count(how, stream);
    return true;
}

/* Those that several indexes have in common. Where there are no more the place is behind them. */
static bool common_pass(const struct query_streaming *how, struct query_stream *stream,
                        uint64_t max, uint64_t *ret_count, struct error *err)
{
    bool more = true;

    while (more && *ret_count < max) {
        if (!query_common_next(how, stream, &more, err))
            return false;
        *ret_count += more;
    }
    stream->passed_by = !more;
    entries_count(how, stream);
    return true;
}

bool query_stream_pass(const struct query_streaming *how, struct query_stream *stream,
                       bool any_value, uint64_t max, uint64_t *ret_count, struct error *err)
{
    struct cursor_hit last;

    *ret_count = 0;
    if (stream->postings)
        return query_terms_pass(how, stream, max, ret_count, err);
    if (stream->common)
        return !any_value || common_pass(how, stream, max, ret_count, err);
    if (!stream->cursor || how->access->backwards || stream->place.key.len >= INDEX_VALUE_MAX ||
        (stream->use && stream->use->gathered))
        return true;
    if (!cursor_pass(stream->cursor, any_value ? SLICE_NONE : stream->place.key, max, &last,
                     ret_count, err))
        return false;
    if (*ret_count)
        query_stream_place(how, stream, &last);
    entries_count(how, stream);
    return true;
}

/* The routing key of the one logical partition: the range may begin behind it, in a part. */
static bool logical_routing(const struct query_streaming *how, const struct query_target *target,
                            struct slice *ret_routing, struct error *err)
{
    struct slice rest = target->logical;

    if (!partition_route_skip(&how->spans->request->space->definition->key, &rest, err))
        return false;
    *ret_routing = slice_first(target->logical, target->logical.len - rest.len);
    return true;
}

/* Where the cursor has to begin for the position. */
static bool stream_seek(const struct query_streaming *how, struct query_stream *stream,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf value;
    const struct query_place *place = &how->from.place;
    struct slice routing = place->routing;
    uint64_t number = place->number;

    buf_init(&value, BUF_DEFAULT_MAX);
    if (!how->from.begun || !stream->cursor || (stream->use && stream->use->gathered))
        return true;
    if (place->rows) /* its item comes once more */
        number--;
    buf_append_slice(&value, stream->common || stream->united ? stream->use->ranges.list[0].min
                                                              : place->key);
    for (size_t i = 0; how->access->backwards && i < value.len; i++)
        value.data[i] = (uint8_t)~value.data[i];
    if (how->by_key && place->rows)
        return true; /* scans for aggregates alone: they end pages between items */
    if (place->key.len >= QUERY_PLACE_KEY_MAX)
        return how->access->backwards || how->by_key
                   ? true /* the key is cut; what is done is passed over */
                   : cursor_seek_behind(stream->cursor, buf_slice(&value), SLICE_NONE, 0, err);
    if (stream->tied)
        return value_seek(how, stream, buf_slice(&value), err);
    if (how->ties && !logical_routing(how, stream->target, &routing, err))
        return false;
    /* the others of an intersection are opened behind it, and follow */
    return cursor_seek_behind(stream->cursor, buf_slice(&value), routing, number, err);
}

struct cursor_request query_stream_request(const struct query_streaming *how,
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
        request.raw = use->nearest != NULL;
        request.said = use->terms ? INDEX_TERM_SAID : 0;
        request.value_count = use->value_count;
        request.kept_count = use->kept_count;
        request.descending = use->descending;
        request.order = use->order;
        request.ranges = use->ranges.list;
        request.range_count = use->ranges.count;
        if (stream->target->values.count && use == how->access->index) {
            request.ranges = stream->target->values.list;
            request.range_count = stream->target->values.count;
        }
    }
    return request;
}

bool query_stream_rewind(const struct query_streaming *how, struct query_stream *stream,
                         struct error *err)
{
    struct cursor_request request = query_stream_request(how, stream, stream->use);

    cursor_free(stream->cursor);
    stream->cursor = NULL;
    stream->counted = 0;
    return cursor_open(&how->spans->list[stream->span].view, &request, &stream->cursor, err);
}

bool query_stream_open(const struct query_streaming *how, struct query_stream *stream,
                       struct error *err)
{
    const struct query_access *access = how->access;
    struct query_span *span = &how->spans->list[stream->span];

    buf_init(&stream->bytes, BUF_DEFAULT_MAX);
    buf_init(&stream->tie_value, BUF_DEFAULT_MAX);
    stream->tied =
        how->ties && (access->backwards || !stream->target->logical.len ||
                      (access->index && (access->index->repeats || access->index->kept_count)));
    if (access->kind == QUERY_ACCESS_POINT) {
        span->cost.index_lookups += span->cost.partitions_begun != 0;
        return query_stream_next(how, stream, err);
    }
    if (stream->use && stream->use->terms) {
        span->cost.index_lookups += stream->use->ranges.count;
        return query_terms_open(how, stream, err) && query_terms_next(how, stream, err);
    }
    if (!query_stream_rewind(how, stream, err))
        return false;
    if (stream->use && span->cost.partitions_begun)
        span->cost.index_lookups +=
            stream->target->values.count ? stream->target->values.count : stream->use->ranges.count;
    if (query_common_is(how))
        stream->common = query_common_new();
    return stream_seek(how, stream, err) && (!stream->tied || ahead_next(stream, err)) &&
           query_stream_next(how, stream, err);
}
