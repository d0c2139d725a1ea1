/* Streams of a full-text index: the items that have certain terms, by routing key and number; or
 * the best of them by their scores, in which case a stream has the rows of its span tell whether
 * more are wanted (query_stream.undecided). */
#include "query/run/scored.h"
#include "query/run/stream_private.h"

#include <math.h>

enum {
    SCORED_PER_ENTRY = 8, /* entries that only a score is made of, for the price of one */
};

void query_terms_free(struct query_stream *stream)
{
    query_scored_free(stream->scored);
    query_postings_free(stream->postings);
}

/* Lists in memory are of a whole span, without anything planned besides. */
static struct query_lists *lists_for(const struct query_streaming *how,
                                     const struct query_stream *stream)
{
    const struct query_span *span = &how->spans->list[stream->span];

    return !span->view.planned && span->view.snapshot && !stream->target->logical.len &&
                   slice_equal(stream->range.min, span->span->min) &&
                   slice_equal(stream->range.max, span->span->max)
               ? how->spans->request->lists
               : NULL;
}

static bool postings_begin(const struct query_streaming *how, struct query_stream *stream,
                           struct error *err)
{
    struct cursor_request request = query_stream_request(how, stream, stream->use);

    query_postings_free(stream->postings);
    stream->postings = NULL;
    stream->counted = 0;
    return query_postings_open(&how->spans->list[stream->span].view, &request, stream->use->terms,
                               lists_for(how, stream), &stream->postings, err);
}

bool query_terms_open(const struct query_streaming *how, struct query_stream *stream,
                      struct error *err)
{
    const struct query_place *from = &how->from.place;

    stream->united = true;
    if (!postings_begin(how, stream, err))
        return false;
    if (stream->use->terms->scoring) {
        stream->scored = query_scored_new(stream->use->terms->scoring);
        return true; /* such pages begin anew */
    }
    return !how->from.begun ||
           query_postings_seek_behind(stream->postings, from->routing,
                                      from->rows ? from->number - 1 : from->number, err);
}

/* Entries of which nothing but a score is made cost less than those that lead to an item. */
static void entries_charge(const struct query_streaming *how, struct query_stream *stream)
{
    uint64_t entries = query_postings_entries(stream->postings);
    uint64_t price = stream->scored ? SCORED_PER_ENTRY : 1;

    stream->passed += entries - stream->counted;
    stream->counted = entries;
    how->spans->list[stream->span].cost.index_entries += stream->passed / price;
    stream->passed %= price;
}

/* --- In the order of items -------------------------------------------------------------------- */

static void posting_set(const struct query_streaming *how, struct query_stream *stream,
                        const struct query_posting *posting)
{
    query_stream_place(how, stream, &posting->hit);
    stream->unsure = posting->unsure;
}

static bool items_next(const struct query_streaming *how, struct query_stream *stream,
                       struct error *err)
{
    const struct query_posting *posting = query_postings_last(stream->postings);

    if (!stream->passed_by && !query_postings_next(stream->postings, &posting, err))
        return false;
    stream->passed_by = false;
    stream->has = posting != NULL;
    if (posting)
        posting_set(how, stream, posting);
    entries_charge(how, stream);
    return true;
}

/* Whoever only counts is given many items as one; not those of which more must be known. */
bool query_terms_pass(const struct query_streaming *how, struct query_stream *stream, uint64_t max,
                      uint64_t *ret_count, struct error *err)
{
    const struct query_posting *posting = NULL;

    *ret_count = stream->passed_by ? 0 : query_postings_pass(stream->postings, max);
    if (*ret_count)
        query_stream_place(how, stream, &query_postings_last(stream->postings)->hit);
    while (!stream->unsure && *ret_count < max) {
        if (!query_postings_next(stream->postings, &posting, err))
            return false;
        stream->passed_by = !posting || posting->unsure;
        if (stream->passed_by)
            break;
        query_stream_place(how, stream, &posting->hit);
        ++*ret_count;
    }
    entries_charge(how, stream);
    return true;
}

/* --- The best --------------------------------------------------------------------------------- */

/* Walks on: to the end, or to the next item that is given at once. */
static bool scored_walk(const struct query_streaming *how, struct query_stream *stream,
                        bool *ret_now, struct error *err)
{
    const struct query_posting *posting;
    struct query_scored_item item;
    uint64_t walked = 0;

    for (*ret_now = false; !*ret_now;) {
        if (!query_postings_next(stream->postings, &posting, err) ||
            (++walked % QUERY_BETWEEN_LOOKS == 0 && !query_stream_may_go_on(how, err)))
            return false;
        if (!posting)
            break;
        query_scored_take(stream->scored, posting, &item, ret_now);
    }
    if (*ret_now) {
        posting_set(how, stream, posting);
        stream->score_known = !posting->unsure;
        stream->score = item.score;
    }
    entries_charge(how, stream);
    return true;
}

static void item_set(const struct query_streaming *how, struct query_stream *stream,
                     const struct query_scored_item *item)
{
    query_stream_place(how, stream, &(struct cursor_hit){.number = item->number, .key = item->key});
    stream->score = item->score;
    stream->score_known = item->score < INFINITY;
    stream->unsure = !stream->score_known;
    how->spans->list[stream->span].cost.index_entries++;
}

static bool best_next(const struct query_streaming *how, struct query_stream *stream,
                      struct error *err)
{
    uint64_t taken = how->taken_span == stream->span ? how->taken : 0;
    bool begun = stream->has;
    struct query_scored_item item;

    stream->has = true;
    if (query_scored_streams(stream->scored))
        return scored_walk(how, stream, &stream->has, err);
    while (!query_scored_next(stream->scored, &item)) {
        if (begun && !stream->undecided) {
            stream->undecided = true;
            return true;
        }
        stream->undecided = false;
        if (!query_scored_wants_walk(stream->scored, taken)) {
            stream->has = false;
            return true;
        }
        if ((begun && !postings_begin(how, stream, err)) ||
            !scored_walk(how, stream, &stream->has, err))
            return false;
        if (query_scored_streams(stream->scored))
            return true;
        stream->has = true;
        begun = false;
        query_scored_sort(stream->scored);
    }
    item_set(how, stream, &item);
    return true;
}

bool query_terms_next(const struct query_streaming *how, struct query_stream *stream,
                      struct error *err)
{
    return stream->scored ? best_next(how, stream, err) : items_next(how, stream, err);
}
