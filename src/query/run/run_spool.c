/* Grouping, DISTINCT and sorting without an index, each by a spool.
 *
 * A group and a distinct value are known by the bytes of their key, or by a hash of it if they are
 * long, and are given in the order of those bytes; so a later page knows what was given before.
 * Where DISTINCT meets an order, a value is given at the smallest place it occurs at.
 *
 * The first rows by distance are looked for around the figure: all that lies within a distance is
 * read, which by how densely an index has things there should be enough (access/density.c). If it
 * is not, or no index tells, all within ten times of it, and so forth; once there are some, as far
 * as there should be enough if they lie as densely. What was read before is read again, which with
 * such steps is a small part of it. A row that was found further out does not count, for others as
 * far away were not looked for. Rings that leave out what is within would read each item once, but
 * the spool of each would have to be kept beside the others, and the limits of a page to know of
 * several. */
#include "query/run/run_private.h"

#include "query/spool/spill.h"
#include "query/value/compare.h"

#include <math.h>
#include <xxhash.h>

enum { IDENTITY_MAX = 256, MEMORY_DEFAULT = 64 * 1024 * 1024 };

/* What the takers share. */
struct spooling {
    struct query_spool *spool; /* owned */
    struct buf key, identity, keys;
    struct query_spool_row *last; /* the group of the row before */
    bool order_of_value;          /* equal rows have equal order keys */
    struct buf far;               /* an order by distance: the key of as far as was looked; or "" */
    uint64_t within;              /* rows that are no further away */
    uint64_t scored;              /* rows whose score entries have told */
};

static void spooling_init(struct spooling *s)
{
    *s = (struct spooling){0};
    buf_init(&s->key, BUF_DEFAULT_MAX);
    buf_init(&s->identity, BUF_DEFAULT_MAX);
    buf_init(&s->keys, BUF_DEFAULT_MAX);
    buf_init(&s->far, BUF_DEFAULT_MAX);
}

static void spooling_done(struct spooling *s)
{
    query_spool_free(s->spool);
    buf_done(&s->key);
    buf_done(&s->identity);
    buf_done(&s->keys);
    buf_done(&s->far);
}
CLEANUP_VALUE_FN(struct spooling, spooling_done)

/* Bytes that stand for what was appended since begin and sort as it does; long ones end in a hash.
 */
static void identity_close(struct buf *buf, size_t begin)
{
    XXH128_canonical_t hash;

    if (buf->len - begin <= IDENTITY_MAX)
        return;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(buf->data + begin, buf->len - begin));
    buf->len = begin + IDENTITY_MAX - sizeof hash;
    buf_append(buf, &hash, sizeof hash);
}

/* Was the row at this place given by a page before? */
static bool is_given(const struct query_run_state *run, const struct query_place *place)
{
    int order;

    if (!run->from.begun)
        return false;
    order = query_place_compare(place, &run->from.place);
    return order < 0 ||
           (order == 0 && (!run->from.place.rows || place->rows <= run->from.place.rows));
}

/* --- Groups ---------------------------------------------------------------------------------- */

static bool group_key(struct query_run_state *run, struct spooling *s, struct error *err)
{
    size_t array;

    buf_clear(&s->identity);
    buf_clear(&s->keys);
    array = document_begin(&s->keys);
    for (size_t i = 0; i < run->plan->query.key_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(run->plan->query.keys[i].expression, &run->context, &value, err))
            return false;
        document_key_append(run->plan->order, &value, &s->identity);
        document_append(&s->keys, document_index_key((uint32_t)i, text), &value);
    }
    document_end(&s->keys, array);
    identity_close(&s->identity, 0);
    return true;
}

static bool group_add(struct query_run_state *run, struct error *err)
{
    struct spooling *s = run->taking;
    struct query_place place = {0};
    struct query_spool_row *row;

    if (!run->repeated && !group_key(run, s, err))
        return false;
    place.key = buf_slice(&s->identity);
    row = run->repeated ? s->last : query_spool_find(s->spool, place.key);
    s->last = row;
    if (!row) {
        struct document_value keys = document_array(buf_slice(&s->keys));

        if ((!run->plan->query.distinct && is_given(run, &place)) ||
            !query_spool_wants(s->spool, &place))
            return true;
        if (!query_spool_add(s->spool, &place, place.key, &keys, false, &row, err))
            return false;
        s->last = row;
    }
    for (size_t i = 0; row && i < run->plan->query.aggregate_count; i++) {
        struct document_value value;

        row->states[i].at = query_hit_number(run);
        if (!query_evaluate(run->plan->query.aggregates[i].argument, &run->context, &value, err) ||
            !query_spool_feed(s->spool, row, i, &value, run->hit->times, err))
            return false;
    }
    return true;
}

/* States grow: the groups may have to make room. */
static bool group_take(struct query_run_state *run, bool *ret_stop UNUSED, struct error *err)
{
    struct spooling *s = run->taking;
    bool moved;

    if (!group_add(run, err) || !query_spool_settle(s->spool, &moved, err))
        return false;
    if (moved)
        s->last = NULL;
    return true;
}

/* Keys and results take their slots. */
static bool group_select(struct query_run_state *run, struct query_spool_row *row,
                         struct document_value *ret_value, struct error *err)
{
    const struct query_subquery *query = &run->plan->query;
    struct document_iter iter;

    arena_reset(run->row_arena);
    document_iter_init(&iter, row->value.document);
    for (size_t i = 0; i < query->key_count && document_iter_next(&iter); i++)
        run->context.slots[query->keys[i].slot] = (struct query_slot){.value = iter.value};
    for (size_t i = 0; i < query->aggregate_count; i++)
        run->context.slots[query->aggregates[i].slot] =
            (struct query_slot){.value = query_aggregate_finish(&row->states[i])};
    return query_evaluate(query->select, &run->context, ret_value, err);
}

/* --- Distinct rows --------------------------------------------------------------------------- */

static void distinct_identity(const struct query_run_state *run, const struct document_value *value,
                              struct spooling *s)
{
    buf_clear(&s->identity);
    document_key_append(run->plan->order, value, &s->identity);
    identity_close(&s->identity, 0);
}

/* By the value alone; with an order by that, and then by the value. */
static bool distinct_add(struct query_run_state *run, struct spooling *s,
                         const struct document_value *value, bool ordered, struct error *err)
{
    struct query_place place = {0};
    struct query_spool_row *row;
    bool given;

    distinct_identity(run, value, s);
    place.key = ordered ? buf_slice(&s->key) : buf_slice(&s->identity);
    if (ordered)
        place.routing = buf_slice(&s->identity);
    given = is_given(run, &place);
    row = query_spool_find(s->spool, buf_slice(&s->identity));
    if (row) {
        if (s->order_of_value || query_place_compare(&place, &row->place) >= 0)
            return true;
        return query_spool_move(s->spool, row, &place, value, given, err);
    }
    if ((given && s->order_of_value) || !query_spool_wants(s->spool, &place))
        return true;
    return query_spool_add(s->spool, &place, buf_slice(&s->identity), value, given, &row, err);
}

static bool distinct_take(struct query_run_state *run, bool *ret_stop UNUSED, struct error *err)
{
    struct spooling *s = run->taking;
    struct document_value value;
    bool kept;

    buf_clear(&s->key);
    if (!query_order_key(run, query_order_is_cut(run->plan), &s->key, &kept, err))
        return false;
    if (!kept)
        return true;
    if (!query_evaluate(run->plan->query.select, &run->context, &value, err))
        return false;
    if (!query_value_shows(&value))
        return true;
    return distinct_add(run, s, &value, run->plan->query.order_count > 0, err);
}

static bool same_path(const struct query_expression *a, const struct query_expression *b)
{
    const struct query_step *a_steps, *b_steps;
    uint32_t a_slot, b_slot;
    size_t a_count, b_count;

    if (!query_is_path(a, &a_slot, &a_steps, &a_count) ||
        !query_is_path(b, &b_slot, &b_steps, &b_count) || a_slot != b_slot || a_count != b_count)
        return false;
    for (size_t i = 0; i < a_count; i++) {
        if (!slice_equal(a_steps[i].name, b_steps[i].name) || a_steps[i].index != b_steps[i].index)
            return false;
    }
    return true;
}

/* Is what rows are ordered by part of them? */
static bool is_order_of_value(const struct query_plan *plan)
{
    const struct query_expression *select = plan->query.select;

    for (size_t i = 0; i < plan->query.order_count; i++) {
        const struct query_expression *order = plan->query.order[i].expression;
        bool found = same_path(select, order);

        for (size_t j = 0; select->kind == &query_kind_object && j < select->child_count; j++)
            found |= same_path(select->children[j], order);
        if (!found)
            return false;
    }
    return true;
}

/* --- Sorting --------------------------------------------------------------------------------- */

/* A hit counts by its first row. */
static void sort_taken(struct query_run_state *run)
{
    if (run->feed && run->row <= 1)
        query_hits_taken(run->feed, run->hit->span);
}

/* And by its score, where that is told by entries. */
static void score_taken(struct query_run_state *run, struct spooling *s)
{
    sort_taken(run);
    s->scored += run->hit->score_known;
}

/* Is nothing looked for but what is within a distance? What lies in its cells and is further away
 * is no row of it: if there are too few, all are read again. */
static bool is_ring(const struct query_run_state *run)
{
    return run->within > 0 && run->access.kind == QUERY_ACCESS_INDEX && run->access.index->within &&
           run->within < run->plan->query.order[0].near->distance;
}

static bool sort_take(struct query_run_state *run, bool *ret_stop UNUSED, struct error *err)
{
    struct spooling *s = run->taking;
    struct query_place place = {.number = query_hit_number(run), .rows = run->row};
    struct query_spool_row *row;
    struct document_value value;
    bool kept, beyond;

    buf_clear(&s->key);
    if (!query_order_key(run, query_order_is_cut(run->plan), &s->key, &kept, err))
        return false;
    place.key = buf_slice(&s->key);
    beyond = s->far.len && slice_compare(place.key, buf_slice(&s->far)) > 0;
    s->within += kept && s->far.len && !beyond;
    if (!kept || (beyond && is_ring(run)))
        return true;
    if (is_given(run, &place) || !query_spool_wants(s->spool, &place)) {
        score_taken(run, s);
        return true;
    }
    if (!query_evaluate(run->plan->query.select, &run->context, &value, err))
        return false;
    if (!query_value_shows(&value))
        return true;
    score_taken(run, s);
    return query_spool_add(s->spool, &place, SLICE_NONE, &value, false, &row, err);
}

/* --- All of it ------------------------------------------------------------------------------- */

static struct query_spool_options options_of(const struct query_run_state *run,
                                             const struct spooling *s)
{
    const struct query_subquery *query = &run->plan->query;
    struct query_spool_options options = {.order = run->plan->order,
                                          .bytes_max = run->request->limits.memory_max,
                                          .rows_max = UINT64_MAX,
                                          .identities = run->mode != QUERY_MODE_SORT,
                                          .spill = run->spill};

    if (run->at.limit < UINT64_MAX - run->at.offset)
        options.rows_max = MAX(run->at.limit + run->at.offset, (uint64_t)1);
    if (run->mode == QUERY_MODE_GROUP) {
        options.aggregates = query->aggregates;
        options.aggregate_count = query->aggregate_count;
        options.order = run->plan->order;
        options.whole = query->distinct;
        /* Not every group need give a row. */
        options.rows_max = UINT64_MAX;
    }
    if (run->mode == QUERY_MODE_DISTINCT && !s->order_of_value)
        options.whole = true;
    return options;
}

/* Rows of groups, made distinct. */
static bool groups_to_rows(struct query_run_state *run, struct spooling *s, struct error *err)
{
    CLEANUP(query_spool_free) struct query_spool *groups = TAKE(s->spool);
    struct query_spool_options options = {.order = run->plan->order,
                                          .bytes_max = run->request->limits.memory_max,
                                          .rows_max = UINT64_MAX,
                                          .identities = true,
                                          .spill = run->spill,
                                          .context = &run->context};
    struct query_spool_row *row;

    s->spool = query_spool_new(&options);
    s->order_of_value = true;
    for (;;) {
        struct document_value value;

        if (!query_work(&run->context, 4, err) || !query_spool_next(groups, &row, err))
            return false;
        if (!row)
            return query_spool_finish(s->spool, err);
        if (!group_select(run, row, &value, err))
            return false;
        if (query_value_shows(&value) && !distinct_add(run, s, &value, false, err))
            return false;
    }
}

/* The index of the group key has no entries of items without it. They make one group. */
static bool missing_add(struct query_run_state *run, struct error *err)
{
    uint64_t missing = run->items_count > run->hits ? run->items_count - run->hits : 0;
    struct query_hit hit = {.times = missing};
    bool stop = false, taken;

    if (!missing)
        return true;
    query_row_bind_missing(run);
    run->repeated = false;
    run->hit = &hit;
    taken = group_take(run, &stop, err);
    run->hit = NULL;
    return taken;
}

/* --- In parts --------------------------------------------------------------------------------- */

static void *part_open(struct query_run_state *part, size_t part_count)
{
    struct spooling *s = memory_alloc(sizeof *s), *whole = part->taking;
    struct query_spool_options options;

    spooling_init(s);
    s->order_of_value = whole->order_of_value;
    buf_append_slice(&s->far, buf_slice(&whole->far));
    options = options_of(part, s);
    options.bytes_max = (options.bytes_max ? options.bytes_max : MEMORY_DEFAULT) / part_count;
    options.context = &part->context;
    s->spool = query_spool_new(&options);
    return s;
}

static bool part_merge(void *whole, void *part, struct error *err)
{
    ((struct spooling *)whole)->within += ((struct spooling *)part)->within;
    ((struct spooling *)whole)->scored += ((struct spooling *)part)->scored;
    return query_spool_merge(((struct spooling *)whole)->spool, ((struct spooling *)part)->spool,
                             err);
}

static void part_close(void *part)
{
    spooling_done(part);
    memory_free(part);
}

static bool spool_fill(struct query_run_state *run, struct spooling *s, struct error *err)
{
    struct query_spool_options options;
    query_row_taker taker = run->mode == QUERY_MODE_GROUP      ? group_take
                            : run->mode == QUERY_MODE_DISTINCT ? distinct_take
                                                               : sort_take;
    struct query_position at = run->at;
    bool ended = true, parallel;

    s->order_of_value = is_order_of_value(run->plan);
    options = options_of(run, s);
    options.context = &run->context;
    s->spool = query_spool_new(&options);
    run->taking = s;
    if (!query_parallel_wanted(run, &parallel, err))
        return false;
    if (parallel ? !query_parallel_take(
                       run, &(struct query_taking){taker, part_open, part_merge, part_close}, err)
                 : !query_rows_take(run, taker, false, &ended, err))
        return false;
    if (!ended) /* without all rows nothing can be said of the first */
        return error_set(err, ERROR_TOO_MANY_REQUESTS,
                         "the throughput of a partition that the query needs is used up");
    if (run->covered && run->cover.counts_missing && !missing_add(run, err))
        return false;
    run->at = at;
    if (!query_spool_finish(s->spool, err))
        return false;
    return run->mode != QUERY_MODE_GROUP || !run->plan->query.distinct ||
           groups_to_rows(run, s, err);
}

/* --- By distance ------------------------------------------------------------------------------ */

enum { RING_ROWS_MAX = 1000, RING_STEP = 10, RING_FIRST_M = 100, RING_FIRST_PART = 1 << 16 };

#define RING_STEP_LEAST 2.0
#define RING_ROOM 1.5 /* rows that are hoped for, for each that is wanted */

void query_rings_begin(struct query_run_state *run)
{
    const struct query_subquery *query = &run->plan->query;
    const struct query_region *near = query->order_count == 1 ? query->order[0].near : NULL;
    uint64_t limit = run->at.limit, offset = run->at.offset;

    run->within = 0;
    run->near_rows = 0;
    if (!near || run->mode != QUERY_MODE_SORT || run->from.begun || query->order[0].descending ||
        limit > RING_ROWS_MAX || offset > RING_ROWS_MAX - limit)
        return;
    run->within = near->rules.surface == SEARCH_EARTH ? RING_FIRST_M : 360.0 / RING_FIRST_PART;
    run->near_rows = MAX(limit + offset, (uint64_t)1);
}

/* Were others looked for as well, as far away as the last row that is wanted? */
static bool is_near_enough(const struct query_run_state *run, const struct spooling *s)
{
    return !is_ring(run) || s->within >= MAX(run->at.limit + run->at.offset, (uint64_t)1);
}

/* Are there as many items with a score as are wanted? Those that have none come behind them, and
 * entries do not tell which they are. */
static bool is_scored_enough(const struct query_run_state *run, const struct spooling *s)
{
    const struct query_index_use *index = run->access.index;

    return run->access.kind != QUERY_ACCESS_INDEX || !index->terms || !index->terms->scoring ||
           !index->terms->scoring->whole || s->scored >= index->terms->scoring->wanted;
}

/* How many times as far to look next: rows grow with the square of it, if they go on as they did.
 */
static double ring_step(const struct query_run_state *run, const struct spooling *s,
                        uint64_t within_before)
{
    double wanted = (double)(run->at.limit + run->at.offset) * RING_ROOM;

    if (s->within <= within_before)
        return RING_STEP;
    return fmin(fmax(sqrt(wanted / (double)s->within), RING_STEP_LEAST), RING_STEP);
}

static bool rings_fill(struct query_run_state *run, struct spooling *s, struct error *err)
{
    uint64_t within_before = 0;

    for (;;) {
        struct document_value far = document_double(run->within);

        buf_clear(&s->far);
        s->within = s->scored = 0;
        if (run->within > 0)
            document_key_append(run->plan->order, &far, &s->far);
        if (!spool_fill(run, s, err))
            return false;
        if (is_near_enough(run, s) && is_scored_enough(run, s))
            return true;
        query_spool_free(TAKE(s->spool));
        run->unscored = true;
        run->within *= ring_step(run, s, within_before);
        within_before = s->within;
        if (run->within > QUERY_RING_EVERYWHERE)
            run->within = 0;
        if (!query_run_again(run, err))
            return false;
    }
}

/* --- Giving ---------------------------------------------------------------------------------- */

/* Passes over rows that were given before, and groups that give none, up to the next row. */
static bool rows_look(struct query_run_state *run, struct spooling *s, struct error *err)
{
    struct partition_range window = {PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
    bool groups = run->mode == QUERY_MODE_GROUP && !run->plan->query.distinct;
    struct query_spool_row *row;

    for (;;) {
        struct document_value value;

        if (!query_work(&run->context, 4, err) || !query_spool_next(s->spool, &row, err))
            return false;
        if (!row)
            return true;
        value = row->value;
        if (groups && !group_select(run, row, &value, err))
            return false;
        if (query_row_shows(run, &value)) {
            query_spool_return(s->spool, row);
            return true;
        }
        query_place_keep(run, &row->place, window);
    }
}

static bool rows_give(struct query_run_state *run, struct spooling *s, struct error *err)
{
    struct partition_range window = {PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
    bool groups = run->mode == QUERY_MODE_GROUP && !run->plan->query.distinct;
    struct query_spool_row *row;

    while (!run->output.full && !run->finished) {
        struct document_value value;

        if (!query_spool_next(s->spool, &row, err))
            return false;
        if (!row)
            return true;
        value = row->value;
        if ((groups && !group_select(run, row, &value, err)) || !query_row_give(run, &value, err))
            return false;
        query_place_keep(run, &row->place, window);
    }
    return true;
}

/* What a kept result is found by. Ranges are part of it, though continuations are not bound to
 * them: when one has split, each half is asked to go on with the continuation of the whole. */
static uint64_t result_print(const struct query_run_state *run)
{
    const struct query_scope *scope = &run->request->scope;
    uint64_t print = run->plan->fingerprint;

    if (scope->kind != QUERY_SCOPE_RANGE)
        return print;
    print = XXH3_64bits_withSeed(scope->range.min.data, scope->range.min.len, print);
    return XXH3_64bits_withSeed(scope->range.max.data, scope->range.max.len, print);
}

bool query_spool_run(struct query_run_state *run, bool *ret_more, struct error *err)
{
    CLEANUP(query_spill_budget_unref)
    struct query_spill_budget *spill = query_spill_budget_new(run->request->spill);
    CLEANUP(spooling_done) struct spooling s;
    struct query_cache *cache = run->request->cache;
    bool left;

    spooling_init(&s);
    run->spill = spill;
    if (run->from.cached && cache)
        s.spool = query_cache_take(cache, result_print(run), run->from.cached);
    run->at.cached = 0;
    if (!s.spool && !rings_fill(run, &s, err))
        return false;
    if (!rows_give(run, &s, err))
        return false;
    run->spilled_bytes = query_spill_budget_written(spill);
    if (run->output.full && !run->finished && !rows_look(run, &s, err)) {
        *err = (struct error){0}; /* told to the page that needs the row */
        *ret_more = true;
        return true;
    }
    if (!query_spool_has_more(s.spool, &left, err))
        return false;
    *ret_more = !run->finished && (query_spool_overflowed(s.spool) || left);
    if (*ret_more && left && cache)
        run->at.cached = query_cache_put(cache, result_print(run), TAKE(s.spool));
    run->spilled_bytes = query_spill_budget_written(spill);
    return true;
}
