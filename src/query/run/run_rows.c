/* From hits to rows: an item takes its place in slot 0, its arrays are joined to it, the filter
 * decides. */
#include "query/run/run_private.h"

#include "query/expression/combinations.h"
#include "query/value/compare.h"
#include "query/value/value.h"

enum {
    HITS_BETWEEN_LOOKS = 64,    /* at clock and charge, */
    WORK_BETWEEN_LOOKS = 65536, /* or so many units of work, if that is less */
};

/* --- Hits ------------------------------------------------------------------------------------ */

static void document_next(struct query_run_state *run, struct query_hit *hit, bool *ret_more)
{
    *ret_more = run->document_at < run->document_count;
    if (!*ret_more)
        return;
    *hit = (struct query_hit){.place = {.number = run->document_at + 1},
                              .times = 1,
                              .item = {.document = run->documents[run->document_at]}};
    run->document_at++;
}

static bool hit_next(struct query_run_state *run, struct query_hit *hit, bool *ret_more,
                     struct error *err)
{
    if (run->plan->constant) {
        *hit = (struct query_hit){.place = {.number = 1}, .times = 1};
        *ret_more = !run->single_given;
        run->single_given = true;
        return true;
    }
    if (!run->feed) {
        document_next(run, hit, ret_more);
        return true;
    }
    if (run->ahead)
        return query_ahead_next(run->ahead, run->feed, &run->context, hit, ret_more, &run->held,
                                &run->judged, &run->holds, err);
    return query_hits_next(run->feed, hit, ret_more, &run->held, err);
}

/* What the entry of a hit says of its item. A value that was cut is looked up. */
static bool cover_bind(struct query_run_state *run, struct query_hit *hit, struct error *err)
{
    struct slice key = hit->place.key;
    uint8_t *turned;

    if (key.len >= INDEX_VALUE_MAX)
        return view_fetch(&run->spans.list[hit->span].view, &hit->item.key, 1, run->row_arena,
                          &hit->item, err);
    if (run->access.backwards) {
        turned = arena_alloc(run->row_arena, key.len);
        for (size_t i = 0; i < key.len; i++)
            turned[i] = (uint8_t)~key.data[i];
        key.data = turned;
    }
    return query_cover_item(&run->cover, run->access.index->order, key, run->row_arena,
                            &hit->item.document, err);
}

/* What the key of a hit says of its item. */
static bool key_bind(struct query_run_state *run, struct query_hit *hit, struct error *err)
{
    const struct item_space *space = run->request->space;
    struct item_key_parts parts;

    hit->item.header.number = hit->place.number;
    return item_key_split(&space->definition->key, hit->item.key, &parts, err) &&
           query_cover_item(&run->cover, definition_names_of(space->definition)->identity_order,
                            parts.id, run->row_arena, &hit->item.document, err);
}

void query_row_bind_missing(struct query_run_state *run)
{
    arena_reset(run->row_arena);
    run->context.slots[0] =
        (struct query_slot){.value = document_object(slice_of("\x05\0\0\0", 5))};
}

/* By which entry a hit was found. An item that any of several indexes has is found by none. */
static struct query_found found_of(const struct query_run_state *run, const struct query_hit *hit)
{
    const struct query_index_use *use = run->access.index;

    return use && use->definition && !use->member_count
               ? (struct query_found){use->definition, use->prefix, hit->place.key,
                                      run->access.backwards}
               : (struct query_found){0};
}

static void item_bind(struct query_run_state *run, const struct query_hit *hit)
{
    struct query_slot *slot = &run->context.slots[0];

    if (!hit->item.document.data) {
        *slot = (struct query_slot){.value = document_undefined()};
    } else if (run->feed) {
        query_item_bind(&run->item, &hit->item, query_run_names(run), run->request->container,
                        slot);
        run->item.found = found_of(run, hit);
    } else {
        *slot = (struct query_slot){.value = document_object(hit->item.document)};
    }
}

uint64_t query_hit_number(const struct query_run_state *run)
{
    return run->feed && run->hit->item.document.data ? run->hit->item.header.number
                                                     : run->hit->place.number;
}

/* --- Rows ------------------------------------------------------------------------------------ */

static bool joined_rows_take(struct query_run_state *run, query_row_taker taker, bool *ret_stop,
                             struct error *err)
{
    struct query_rows *rows = query_subquery_open(&run->plan->query, &run->context, err);
    bool more;

    if (!rows)
        return false;
    while (!*ret_stop) {
        if (!query_subquery_combine(rows, &run->context, &more, err))
            return false;
        if (!more)
            return true;
        run->row++;
        if (!taker(run, ret_stop, err))
            return false;
    }
    return true;
}

/* What the entries of the present hit have told of its score, for whoever asks the function. */
static void score_bind(struct query_run_state *run)
{
    struct query_known_score *known = &run->context.known_score;
    const struct query_scoring *scoring;
    struct document_value value;

    known->text = NULL;
    if (!run->hit->score_known)
        return;
    scoring = run->access.index->terms->scoring;
    value = document_object(run->hit->item.document);
    for (size_t i = 0; i < scoring->path.count; i++)
        if (value.type != DOCUMENT_OBJECT ||
            !document_find(value.document, scoring->path.segments[i].name, &value))
            return;
    if (value.type == DOCUMENT_STRING)
        *known = (struct query_known_score){.text = value.text.data,
                                            .language = scoring->language,
                                            .phrases = scoring->phrases,
                                            .hits = scoring->hits,
                                            .texts = scoring->texts,
                                            .words = scoring->words,
                                            .score = run->hit->score};
}

/* What it takes to find the entries of an item again; figures are covered by cells for it, and
 * texts read. */
static uint64_t entries_work(const struct query_run_state *run)
{
    enum { ENTRIES_WORK = 16, SEARCH_BYTE_WORK = 2 };
    const struct index_definition *definition = run->access.index->definition;

    return ENTRIES_WORK + (definition->spatial || definition->language.len || definition->text
                               ? SEARCH_BYTE_WORK * run->hit->item.document.len
                               : 0);
}

static bool hit_take(struct query_run_state *run, query_row_taker taker, bool *ret_stop,
                     struct error *err)
{
    bool holds = true;

    run->row = 0;
    if (run->access.index && run->access.index->repeats &&
        !query_entry_is_only(run->access.index, run->hit->item.document)) {
        if (!query_entry_is_first(run->access.index, run->access.backwards, run->hit->item.document,
                                  run->hit->place.key, run->row_arena, &holds, err) ||
            !query_work(&run->context, entries_work(run), err))
            return false;
        if (!holds)
            return true;
    }
    if (!run->repeated)
        item_bind(run, run->hit);
    score_bind(run);
    if (run->plan->query.source_count) {
        bool taken = joined_rows_take(run, taker, ret_stop, err);

        run->matched += run->row > 0;
        return taken;
    }
    if (run->judged)
        holds = run->holds;
    else if (run->plan->query.filter && (!run->access.exact || run->hit->unsure) &&
             !query_holds(run->plan->query.filter, &run->context, &holds, err))
        return false;
    run->row = 1;
    run->matched += holds;
    return !holds || taker(run, ret_stop, err);
}

bool query_run_is_over(const struct query_run_state *run)
{
    int64_t pause_ms = run->request->limits.pause_ms;

    return pause_ms && clock_read_monotonic_ms(run->context.clock) >= pause_ms;
}

/* Has the page taken long enough, or cost enough? */
bool query_run_should_pause(struct query_run_state *run)
{
    const struct query_page_limits *limits = &run->request->limits;

    if (run->hits - run->looked_at < HITS_BETWEEN_LOOKS &&
        run->context.work - run->looked_at_work < WORK_BETWEEN_LOOKS)
        return false;
    run->looked_at = run->hits;
    run->looked_at_work = run->context.work;
    query_context_breathe(&run->context);
    return query_run_is_over(run) || (limits->cru_max && run->spans.list &&
                                      query_spans_charge(&run->spans) >= limits->cru_max);
}

void query_place_keep(struct query_run_state *run, const struct query_place *place,
                      struct partition_range window)
{
    struct buf *bytes = &run->place_bytes;
    struct query_place *kept = &run->at.place;

    buf_clear(bytes);
    buf_reserve(bytes, place->key.len + place->routing.len + 1);
    buf_append_slice(bytes, place->key);
    buf_append_slice(bytes, place->routing);
    *kept = *place;
    kept->key = slice_of(bytes->data, place->key.len);
    kept->routing = slice_of(bytes->data + place->key.len, place->routing.len);
    run->at.window = window;
    run->at.begun = true;
}

bool query_rows_take(struct query_run_state *run, query_row_taker taker, bool may_pause,
                     bool *ret_ended, struct error *err)
{
    struct query_hit hit;
    bool stop = false, more;

    for (*ret_ended = false;;) {
        if (!hit_next(run, &hit, &more, err))
            return false;
        run->drained = !more;
        if (!more) {
            *ret_ended = !run->held && !(run->feed && query_hits_is_unsure(run->feed));
            return true;
        }
        run->repeated = run->covered && run->hits && hit.place.key.len < INDEX_VALUE_MAX &&
                        slice_equal(hit.place.key, run->at.place.key);
        if (!run->repeated)
            arena_reset(run->row_arena);
        if (run->covered && !run->repeated && !cover_bind(run, &hit, err))
            return false;
        if (run->keyed && !hit.unsure && !key_bind(run, &hit, err))
            return false;
        if (hit.unsure && !hit.item.document.data &&
            !view_fetch(&run->spans.list[hit.span].view, &hit.item.key, 1, run->row_arena,
                        &hit.item, err))
            return false;
        run->hit = &hit;
        if (!query_work(&run->context, 4 * hit.times, err) || !hit_take(run, taker, &stop, err))
            return false;
        if (run->ahead)
            query_ahead_leave(run->ahead);
        if (stop)
            return true;
        hit.place.rows = 0;
        query_place_keep(run, &hit.place, hit.window);
        run->hits += hit.times;
        /* A cut key is no place to go on from in a scan by key. */
        if (may_pause && query_run_should_pause(run) && hit.place.key.len < QUERY_PLACE_KEY_MAX)
            return true;
    }
}

/* --- Giving ---------------------------------------------------------------------------------- */

bool query_row_shows(const struct query_run_state *run, const struct document_value *value)
{
    return query_value_shows(value) ||
           (run->context.keep_nonfinite && value->type != DOCUMENT_UNDEFINED);
}

bool query_row_give(struct query_run_state *run, const struct document_value *value,
                    struct error *err)
{
    if (!query_row_shows(run, value))
        return true;
    if (run->at.offset) {
        run->at.offset--;
        return true;
    }
    if (!query_output_give(&run->output, &run->context, value, err))
        return false;
    if (run->at.limit != UINT64_MAX && --run->at.limit == 0)
        run->finished = true;
    return true;
}

/* --- Aggregates ------------------------------------------------------------------------------ */

bool query_run_aggregate_add(struct query_run_state *run, struct query_aggregate *state,
                             const struct document_value *value, struct error *err)
{
    struct query_context *context = &run->context;
    size_t before;

    if (state->kind != QUERY_MAKE_LIST && state->kind != QUERY_MAKE_SET)
        return query_aggregate_add_times(state, value, run->hit->times, err);
    before = query_aggregate_bytes(state);
    if (!query_aggregate_add_times(state, value, run->hit->times, err))
        return false;
    context->kept_bytes += query_aggregate_bytes(state) - before;
    return query_memory_check(context, context->kept_bytes, err);
}

/* --- Orders ---------------------------------------------------------------------------------- */

static bool has_place(const struct query_run_state *run, const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        return run->rules.keeps_undefined;
    return run->rules.keeps_nested ||
           (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY);
}

/* By the rules of Cosmos DB several values are compared as far as the composite index has them. */
bool query_order_is_cut(const struct query_plan *plan)
{
    return plan->query.order_count > 1 && !plan->order_free;
}

bool query_order_key(struct query_run_state *run, bool cut, struct buf *key, bool *ret_kept,
                     struct error *err)
{
    *ret_kept = true;
    for (size_t i = 0; i < run->plan->query.order_count; i++) {
        const struct query_order *order = &run->plan->query.order[i];
        struct document_value value;
        size_t at = key->len;

        if (!query_evaluate(order->expression, &run->context, &value, err))
            return false;
        if (!has_place(run, &value)) {
            *ret_kept = false;
            return true;
        }
        if (cut)
            document_key_append_cut(run->plan->order, &value, INDEX_VALUE_MAX, key);
        else
            document_key_append(run->plan->order, &value, key);
        for (; order->descending && at < key->len; at++)
            key->data[at] = (uint8_t)~key->data[at];
    }
    return true;
}
