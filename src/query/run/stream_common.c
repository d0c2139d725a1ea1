/* Hits of several indexes: the entries that all of them have, but for those that one more has.
 *
 * All entries of each come by routing key and number, since they have one value. The one that leads
 * goes on by one entry, and each of the others in turn is asked for that place; one that has it not
 * goes to its first place behind, by a few steps or a seek, and leads from there on. So it is the
 * rarest that leads, whichever was the first, and no more is walked than a few times its entries.
 * The others are opened when the first has a hit, for most members of a union have none.
 *
 * Where it is known that an item has an entry (members.h) an index is not asked. Who leads, and how
 * often another is asked, does not depend on that, and these are what is charged. */
#include "query/run/members.h"
#include "query/run/stream_private.h"

enum {
    STEPS_BEFORE_SEEK = 4,
    STEPS_FAR = 1,
    ASKED_OFTEN = 8, /* by one stream: what is told from there on is kept for others */
};

/* One of the indexes. */
struct side {
    struct cursor *cursor;        /* NULL: it is not open yet; owned, but for that of the stream */
    bool far;                     /* the last time it took a seek to come to the place */
    uint64_t asked;               /* how often it was */
    struct query_member_set *set; /* what is known of its items; NULL: nothing is */
};

struct query_common {
    struct side sides[1 + QUERY_WITH_MAX]; /* the first has the cursor of the stream */
    struct side without;
    size_t lead; /* the side whose cursor stands at the place of the stream */
    bool without_stands, without_ended;
    struct buf routing; /* where the one of `without` stands */
    uint64_t number;
    uint64_t lsn;     /* of the view; 0: not read yet */
    uint64_t entries; /* that are charged */
    uint64_t walked;  /* since somebody looked at the limits */
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
    for (size_t i = 0; i < ARRAY_LEN(common->sides); i++) {
        if (i > 0)
            cursor_free(common->sides[i].cursor);
        query_member_set_unref(common->sides[i].set);
    }
    cursor_free(common->without.cursor);
    query_member_set_unref(common->without.set);
    buf_done(&common->routing);
    memory_free(common);
}

uint64_t query_common_entries(const struct query_common *common)
{
    return common->entries;
}

static int hit_order(const struct cursor_hit *a, const struct query_place *b)
{
    int order = slice_compare(a->routing, b->routing);

    return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* What is known of the items of a side; and is kept, where it is asked often. */
static bool set_open(const struct query_streaming *how, struct query_stream *stream,
                     const struct query_index_use *use, struct side *side, struct error *err)
{
    struct query_members *members = how->spans->request->members;
    const struct view *view = &how->spans->list[stream->span].view;
    struct query_member_key key = {.node = view->scope.node,
                                   .partition = view->scope.partition,
                                   .epoch = view->scope.epoch,
                                   .order = use->order,
                                   .prefix = use->prefix};

    if (side->set || !members || !view->snapshot || view->planned || use->definition ||
        use->ranges.count != 1 || (side->asked != 1 && side->asked != ASKED_OFTEN))
        return true;
    if (!stream->common->lsn && !view_lsn(view, &stream->common->lsn, err))
        return false;
    key.lsn = stream->common->lsn;
    key.min = use->ranges.list[0].min;
    key.max = use->ranges.list[0].max;
    return query_members_open(members, view, &key, side->asked == ASKED_OFTEN, &side->set, err);
}

/* A side is asked for the place of the stream: that is what it costs, whatever it takes. */
static bool side_ask(const struct query_streaming *how, struct query_stream *stream,
                     const struct query_index_use *use, struct side *side,
                     enum query_member *ret_known, struct error *err)
{
    struct query_span *span = &how->spans->list[stream->span];

    stream->common->entries++;
    if (side->asked++ == 0 && side != &stream->common->sides[0])
        span->cost.index_lookups += span->cost.partitions_begun != 0;
    if (!set_open(how, stream, use, side, err))
        return false;
    *ret_known =
        side->set ? query_member_look(side->set, stream->place.number) : QUERY_MEMBER_UNKNOWN;
    return true;
}

static bool side_open(const struct query_streaming *how, struct query_stream *stream,
                      const struct query_index_use *use, struct side *side, struct error *err)
{
    struct cursor_request request;

    if (side->cursor)
        return true;
    request = query_stream_request(how, stream, use);
    return cursor_open(&how->spans->list[stream->span].view, &request, &side->cursor, err);
}

/* To the place of the stream or, if there is no entry, behind it; the cursor stands before it. */
static bool reach(const struct query_streaming *how, struct query_stream *stream, struct side *side,
                  struct slice value, struct cursor_hit *ret_hit, bool *ret_more, struct error *err)
{
    struct query_common *common = stream->common;
    unsigned steps = 0, most = side->far ? STEPS_FAR : STEPS_BEFORE_SEEK;

    side->far = false;
    do {
        if (++steps > most) {
            side->far = true;
            if (!cursor_seek_behind(side->cursor, value, stream->place.routing,
                                    stream->place.number - 1, err))
                return false;
        }
        if (++common->walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err))
            return false;
        if (!cursor_next(side->cursor, ret_hit, ret_more, err))
            return false;
    } while (*ret_more && hit_order(ret_hit, &stream->place) < 0);
    if (side->set)
        query_member_note(side->set, stream->place.number,
                          *ret_more && hit_order(ret_hit, &stream->place) == 0);
    return true;
}

/* Is the place of the stream one that hits must not have? */
static bool is_without(const struct query_streaming *how, struct query_stream *stream, bool *ret_is,
                       struct error *err)
{
    const struct query_index_use *use = how->access->without;
    struct query_common *common = stream->common;
    struct cursor_hit hit;
    enum query_member known;
    bool more;
    int order;

    *ret_is = false;
    if (!use)
        return true;
    if (!side_ask(how, stream, use, &common->without, &known, err))
        return false;
    *ret_is = known == QUERY_MEMBER_IN;
    if (known != QUERY_MEMBER_UNKNOWN || common->without_ended)
        return true;
    if (!side_open(how, stream, use, &common->without, err))
        return false;
    hit = (struct cursor_hit){.routing = buf_slice(&common->routing), .number = common->number};
    order = common->without_stands ? hit_order(&hit, &stream->place) : -1;
    if (order < 0) {
        if (!reach(how, stream, &common->without, use->ranges.list[0].min, &hit, &more, err))
            return false;
        common->without_ended = !more;
        if (!more)
            return true;
        buf_clear(&common->routing);
        buf_append_slice(&common->routing, hit.routing);
        common->number = hit.number;
        common->without_stands = true;
        order = hit_order(&hit, &stream->place);
    } else if (common->without.set) {
        query_member_note(common->without.set, stream->place.number, order == 0);
    }
    *ret_is = order == 0;
    return true;
}

static const struct query_index_use *use_of(const struct query_streaming *how,
                                            const struct query_stream *stream, size_t side)
{
    return side ? how->access->with[side - 1] : stream->use;
}

/* A side that does not have the place goes to its next one, which is that of the stream then. */
static bool side_agree(const struct query_streaming *how, struct query_stream *stream, size_t at,
                       bool *ret_agrees, bool *ret_more, struct error *err)
{
    const struct query_index_use *use = use_of(how, stream, at);
    struct side *side = &stream->common->sides[at];
    struct cursor_hit hit;
    enum query_member known;

    if (!side_ask(how, stream, use, side, &known, err))
        return false;
    *ret_agrees = known == QUERY_MEMBER_IN;
    if (*ret_agrees)
        return true;
    if (!side_open(how, stream, use, side, err) ||
        !reach(how, stream, side, use->ranges.list[0].min, &hit, ret_more, err))
        return false;
    *ret_agrees = *ret_more && hit_order(&hit, &stream->place) == 0;
    if (*ret_more && !*ret_agrees)
        query_stream_place(how, stream, &hit);
    return true;
}

/* The next place that the cursor of the stream and all besides it have. */
static bool agreed_next(const struct query_streaming *how, struct query_stream *stream,
                        bool *ret_more, struct error *err)
{
    struct query_common *common = stream->common;
    size_t all = how->access->with_count + 1, agreed = 1, turn = common->lead;
    struct cursor_hit hit;
    bool agrees;

    common->sides[0].cursor = stream->cursor;
    if (!cursor_next(common->sides[common->lead].cursor, &hit, ret_more, err))
        return false;
    common->entries++;
    if (*ret_more)
        query_stream_place(how, stream, &hit);
    while (*ret_more && agreed < all) {
        turn = turn + 1 == all ? 0 : turn + 1;
        if (!side_agree(how, stream, turn, &agrees, ret_more, err))
            return false;
        if (agrees) {
            agreed++;
        } else {
            common->lead = turn;
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
