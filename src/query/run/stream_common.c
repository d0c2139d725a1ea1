/* Hits of several indexes: the entries that all of them have, but for those that one more has.
 *
 * All entries of each come by routing key and number, since they have one value. Each cursor in
 * turn goes to where the one before it stands, by a few steps or a seek, until all stand at one
 * place: no more is walked than a few times the entries of the shortest. The others are opened when
 * the first has a hit, for most members of a union have none. */
#include "query/run/stream_private.h"

enum { STEPS_BEFORE_SEEK = 4, STEPS_FAR = 1 };

struct query_common {
    struct {
        struct cursor *cursor; /* NULL: it is not open yet; owned */
        bool far;              /* the last time it took a seek to come to the place */
    } with[QUERY_WITH_MAX], without;
    bool without_ended;
    struct buf routing; /* where the one of `without` stands */
    uint64_t number;
    uint64_t walked; /* since somebody looked at the limits */
};

bool query_common_is(const struct query_streaming *how)
{
    return how->access->with_count || how->access->without;
}

struct query_common *query_common_new(void)
{
    struct query_common *common = MEMORY_NEW(struct query_common);

    buf_init(&common->routing, BUF_DEFAULT_MAX);
    return common;
}

void query_common_free(struct query_common *common)
{
    if (!common)
        return;
    for (size_t i = 0; i < QUERY_WITH_MAX; i++)
        cursor_free(common->with[i].cursor);
    cursor_free(common->without.cursor);
    buf_done(&common->routing);
    memory_free(common);
}

uint64_t query_common_entries(const struct query_common *common)
{
    uint64_t entries = common->without.cursor ? cursor_entries(common->without.cursor) : 0;

    for (size_t i = 0; i < QUERY_WITH_MAX; i++)
        if (common->with[i].cursor)
            entries += cursor_entries(common->with[i].cursor);
    return entries;
}

static int hit_order(const struct cursor_hit *a, const struct query_place *b)
{
    int order = slice_compare(a->routing, b->routing);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static bool common_open(const struct query_streaming *how, struct query_stream *stream,
                        const struct query_index_use *use, struct cursor **cursor,
                        struct error *err)
{
    struct query_span *span = &how->spans->list[stream->span];
    struct cursor_request request;

    if (*cursor)
        return true;
    request = query_stream_request(how, stream, use);
    span->cost.index_lookups += span->cost.partitions_begun != 0;
    return cursor_open(&span->view, &request, cursor, err);
}

/* To the place of the stream or, if there is no entry, behind it; the cursor stands before it. */
static bool reach(const struct query_streaming *how, struct query_stream *stream,
                  struct cursor *cursor, bool *far, struct slice value, struct cursor_hit *ret_hit,
                  bool *ret_more, struct error *err)
{
    struct query_common *common = stream->common;
    unsigned steps = 0, most = *far ? STEPS_FAR : STEPS_BEFORE_SEEK;

    *far = false;
    do {
        if (++steps > most) {
            *far = true;
            if (!cursor_seek_behind(cursor, value, stream->place.routing, stream->place.number - 1,
                                    err))
                return false;
        }
        if (++common->walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err))
            return false;
        if (!cursor_next(cursor, ret_hit, ret_more, err))
            return false;
    } while (*ret_more && hit_order(ret_hit, &stream->place) < 0);
    return true;
}

/* Is the place of the stream one that hits must not have? */
static bool is_without(const struct query_streaming *how, struct query_stream *stream, bool *ret_is,
                       struct error *err)
{
    const struct query_index_use *use = how->access->without;
    struct query_common *common = stream->common;
    struct cursor_hit hit;
    bool more, begun = common->without.cursor != NULL;
    int order;

    *ret_is = false;
    if (!use || common->without_ended)
        return true;
    if (!common_open(how, stream, use, &common->without.cursor, err))
        return false;
    hit = (struct cursor_hit){.routing = buf_slice(&common->routing), .number = common->number};
    order = begun ? hit_order(&hit, &stream->place) : -1;
    if (order < 0) {
        if (!reach(how, stream, common->without.cursor, &common->without.far,
                   use->ranges.list[0].min, &hit, &more, err))
            return false;
        common->without_ended = !more;
        if (!more)
            return true;
        buf_clear(&common->routing);
        buf_append_slice(&common->routing, hit.routing);
        common->number = hit.number;
        order = hit_order(&hit, &stream->place);
    }
    *ret_is = order == 0;
    return true;
}

/* The next place that the cursor of the stream and all besides it have. */
static bool agreed_next(const struct query_streaming *how, struct query_stream *stream,
                        bool *ret_more, struct error *err)
{
    const struct query_access *access = how->access;
    struct query_common *common = stream->common;
    size_t all = access->with_count + 1, agreed = 1, turn = 0;
    struct cursor_hit hit;

    if (!cursor_next(stream->cursor, &hit, ret_more, err))
        return false;
    if (*ret_more)
        query_stream_place(how, stream, &hit);
    while (*ret_more && agreed < all) {
        turn = turn + 1 == all ? 0 : turn + 1;
        if (turn == 0) {
            if (!reach(how, stream, stream->cursor, &stream->far, stream->use->ranges.list[0].min,
                       &hit, ret_more, err))
                return false;
        } else if (!common_open(how, stream, access->with[turn - 1], &common->with[turn - 1].cursor,
                                err) ||
                   !reach(how, stream, common->with[turn - 1].cursor, &common->with[turn - 1].far,
                          access->with[turn - 1]->ranges.list[0].min, &hit, ret_more, err)) {
            return false;
        }
        if (!*ret_more)
            break;
        if (hit_order(&hit, &stream->place) == 0) {
            agreed++;
        } else {
            query_stream_place(how, stream, &hit);
            agreed = 1;
        }
    }
    return true;
}

bool query_common_next(const struct query_streaming *how, struct query_stream *stream,
                       bool *ret_more, struct error *err)
{
    bool without = false;

    do {
        if (++stream->common->walked % QUERY_BETWEEN_LOOKS == 0 &&
            !query_stream_may_go_on(how, err))
            return false;
        if (!agreed_next(how, stream, ret_more, err) ||
            (*ret_more && !is_without(how, stream, &without, err)))
            return false;
    } while (*ret_more && without);
    return true;
}
