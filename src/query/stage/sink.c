/* Where rows wait until all have come. Sorted and kept rows are places of a spool, by key and then
 * by the number they came with; groups and distinct rows have the bytes of their keys as identity.
 * A row is kept as the tuple of the slots that are looked at later. The chains of a facet take each
 * row as it comes, so the rows themselves are not kept for them. */
#include "query/spool/spill.h"
#include "query/stage/flow_private.h"
#include "query/stage/tuple.h"
#include "query/value/value.h"

#include <xxhash.h>

/* A chain of a facet, and what it has given. */
struct facet {
    struct query_flow *flow; /* owned */
    struct buf rows;         /* an array that is not closed yet */
    uint32_t count;
};

struct query_sink {
    struct query_stages *run;
    enum query_sink_kind kind;
    const struct query_stage *stage; /* NULL: what is kept are rows as they come in */
    const uint32_t *kept;
    size_t kept_count;
    struct query_spool *spool; /* owned; from query_stages_spool */
    struct query_spool_row *last;
    uint64_t number;
    struct buf key, value;
    struct query_aggregate *states;      /* owned; of a total */
    struct facet *facets;                /* owned */
    struct query_windowing *window;      /* owned */
    bool given;                          /* the only row of a total or facet */
    struct query_stage_figures *figures; /* of its stage; NULL: nobody asks */
};

/* --- Spools ---------------------------------------------------------------------------------- */

struct query_spool *query_stages_spool(struct query_stages *run,
                                       const struct query_spool_options *options)
{
    struct query_spool_options all = *options;

    all.bytes_max = run->memory_max;
    all.spill = run->spill;
    all.context = &run->context;
    all.order = run->plan->order;
    if (!all.rows_max)
        all.rows_max = UINT64_MAX;
    return query_spool_new(&all);
}

bool query_stages_spool_finish(struct query_stages *run, struct query_spool *spool,
                               struct error *err)
{
    if (!query_spool_finish(spool, err))
        return false;
    return !query_spool_overflowed(spool) ||
           error_set(err, ERROR_QUERY_LIMIT,
                     "a stage of the query has to keep more than the %zu bytes it may, and cannot "
                     "spill",
                     run->memory_max);
}

void query_stages_spool_free(struct query_stages *run, struct query_spool *spool)
{
    if (!spool)
        return;
    query_spool_uncount(spool, &run->context);
    query_spool_free(spool);
}

void query_stages_key(struct query_stages *run, const struct document_value *value, bool descending,
                      struct buf *key)
{
    size_t at = key->len;

    document_key_append(run->plan->order, value, key);
    for (; descending && at < key->len; at++)
        key->data[at] = (uint8_t)~key->data[at];
}

/* --- Making ---------------------------------------------------------------------------------- */

static bool facet_give(struct query_flow *flow, struct error *err)
{
    struct facet *facet = flow->self;
    struct query_context *context = &flow->run->context;
    size_t before = facet->rows.len;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_value value;

    if (!query_evaluate(flow->chain->select, context, &value, err))
        return false;
    if (value.type == DOCUMENT_UNDEFINED)
        return true;
    if (!query_value_nests_within(&value, QUERY_VALUE_DEPTH_MAX - 2))
        return error_set(err, ERROR_TOO_DEEP, "a value would be nested deeper than %d levels",
                         QUERY_VALUE_DEPTH_MAX);
    document_append(&facet->rows, document_index_key(facet->count++, text), &value);
    flow->run->facet_bytes += facet->rows.len - before;
    return query_memory_check(context, flow->run->facet_bytes, err);
}

static void facets_open(struct query_sink *sink)
{
    const struct query_facet *facet = &sink->stage->facet;
    size_t memory_max = sink->run->memory_max;

    sink->facets = memory_alloc_zero(memory_array_size(facet->count + 1, sizeof *sink->facets));
    sink->run->memory_max = memory_max / MAX(facet->count, (size_t)1);
    for (size_t i = 0; i < facet->count; i++) {
        struct facet *one = &sink->facets[i];

        buf_init(&one->rows, SIZE_MAX / 2);
        document_begin(&one->rows);
        one->flow = query_flow_new(sink->run, &facet->chains[i], false,
                                   sink->figures ? sink->figures->chains[i] : NULL);
        one->flow->give = facet_give;
        one->flow->self = one;
    }
    sink->run->memory_max = memory_max;
}

static void total_open(struct query_sink *sink)
{
    const struct query_group *group = &sink->stage->group;

    sink->states =
        memory_alloc_zero(memory_array_size(group->aggregate_count + 1, sizeof *sink->states));
    for (size_t i = 0; i < group->aggregate_count; i++)
        query_aggregate_init(&sink->states[i], group->aggregates[i].kind, sink->run->plan->order,
                             sink->run->context.limits.bytes_max);
}

static void spool_open(struct query_sink *sink, uint64_t rows_max)
{
    struct query_spool_options options = {0};

    switch (sink->kind) {
    case QUERY_SINK_SORT:
        options.rows_max = rows_max;
        break;
    case QUERY_SINK_DISTINCT:
        options.identities = options.whole = true;
        break;
    case QUERY_SINK_GROUP:
        options.identities = true;
        options.aggregates = sink->stage->group.aggregates;
        options.aggregate_count = sink->stage->group.aggregate_count;
        break;
    default:
        break;
    }
    sink->spool = query_stages_spool(sink->run, &options);
}

struct query_sink *query_sink_new(struct query_stages *run, enum query_sink_kind kind,
                                  const struct query_stage *behind, uint64_t rows_max,
                                  struct query_stage_figures *figures)
{
    struct query_sink *sink = MEMORY_NEW(struct query_sink);

    *sink = (struct query_sink){.run = run, .kind = kind, .stage = behind, .figures = figures};
    sink->kept = behind ? behind->kept : run->plan->rest->slots;
    sink->kept_count = behind ? behind->kept_count : run->plan->rest->slot_count;
    buf_init(&sink->key, SIZE_MAX / 2);
    buf_init(&sink->value, SIZE_MAX / 2);
    if (kind == QUERY_SINK_FACET)
        facets_open(sink);
    else if (kind == QUERY_SINK_TOTAL)
        total_open(sink);
    else if (kind == QUERY_SINK_WINDOW)
        sink->window = query_windowing_new(run, behind);
    else
        spool_open(sink, rows_max);
    return sink;
}

void query_sink_free(struct query_sink *sink)
{
    if (!sink)
        return;
    for (size_t i = 0; sink->facets && i < sink->stage->facet.count; i++) {
        query_flow_free(sink->facets[i].flow);
        sink->run->facet_bytes -= MIN(sink->run->facet_bytes, sink->facets[i].rows.len);
        buf_done(&sink->facets[i].rows);
    }
    for (size_t i = 0; sink->states && i < sink->stage->group.aggregate_count; i++)
        query_aggregate_done(&sink->states[i]);
    query_windowing_free(sink->window);
    query_stages_spool_free(sink->run, sink->spool);
    memory_free(sink->states);
    memory_free(sink->facets);
    buf_done(&sink->key);
    buf_done(&sink->value);
    memory_free(sink);
}

enum query_sink_kind query_sink_kind(const struct query_sink *sink)
{
    return sink->kind;
}

/* --- Taking ---------------------------------------------------------------------------------- */

/* Keeps the slots at this place. */
static bool row_add(struct query_sink *sink, struct slice identity, struct error *err)
{
    struct query_place place = {.number = ++sink->number};
    struct document_value tuple;
    struct query_spool_row *row;

    if (sink->kind == QUERY_SINK_SORT)
        place.key = buf_slice(&sink->key);
    if (!query_spool_wants(sink->spool, &place))
        return true;
    buf_clear(&sink->value);
    query_tuple_write(&sink->run->context, sink->kept, sink->kept_count, &sink->value);
    tuple = document_array(buf_slice(&sink->value));
    return query_spool_add(sink->spool, &place, identity, &tuple, false, &row, err);
}

static bool sort_take(struct query_sink *sink, struct error *err)
{
    const struct query_sort *sort = &sink->stage->sort;

    buf_clear(&sink->key);
    for (size_t i = 0; i < sort->count; i++) {
        struct document_value value;

        if (!query_evaluate(sort->order[i].expression, &sink->run->context, &value, err))
            return false;
        query_stages_key(sink->run, &value, sort->order[i].descending, &sink->key);
    }
    return row_add(sink, SLICE_NONE, err);
}

/* Long keys end in a hash of all of them. */
enum { IDENTITY_MAX = 256 };

static void identity_close(struct buf *key)
{
    XXH128_canonical_t hash;

    if (key->len <= IDENTITY_MAX)
        return;
    XXH128_canonicalFromHash(&hash, XXH3_128bits(key->data, key->len));
    key->len = IDENTITY_MAX - sizeof hash;
    buf_append(key, &hash, sizeof hash);
}

static bool distinct_take(struct query_sink *sink, struct error *err)
{
    const struct query_distinct *distinct = &sink->stage->distinct;

    buf_clear(&sink->key);
    for (size_t i = 0; i < distinct->count; i++) {
        struct document_value value;

        if (!query_evaluate(distinct->keys[i], &sink->run->context, &value, err))
            return false;
        query_stages_key(sink->run, &value, false, &sink->key);
    }
    identity_close(&sink->key);
    /* The first stays: numbers grow, within the memory and from one run to the next. */
    return query_spool_find(sink->spool, buf_slice(&sink->key)) ||
           row_add(sink, buf_slice(&sink->key), err);
}

static bool group_find(struct query_sink *sink, struct query_spool_row **ret_row, struct error *err)
{
    const struct query_group *group = &sink->stage->group;
    struct document_value keys;
    struct query_place place = {0};
    size_t array;

    buf_clear(&sink->key);
    buf_clear(&sink->value);
    array = document_begin(&sink->value);
    for (uint32_t i = 0; i < group->key_count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct document_value value;

        if (!query_evaluate(group->keys[i].expression, &sink->run->context, &value, err))
            return false;
        query_stages_key(sink->run, &value, false, &sink->key);
        document_append(&sink->value, document_index_key(i, text), &value);
    }
    document_end(&sink->value, array);
    identity_close(&sink->key);
    place.key = buf_slice(&sink->key);
    *ret_row = query_spool_find(sink->spool, place.key);
    if (*ret_row || !query_spool_wants(sink->spool, &place))
        return true;
    keys = document_array(buf_slice(&sink->value));
    return query_spool_add(sink->spool, &place, place.key, &keys, false, ret_row, err);
}

static bool group_take(struct query_sink *sink, struct error *err)
{
    const struct query_group *group = &sink->stage->group;
    struct query_spool_row *row;
    bool moved;

    if (!group_find(sink, &row, err))
        return false;
    sink->number++;
    for (size_t i = 0; row && i < group->aggregate_count; i++) {
        struct document_value value;

        row->states[i].at = sink->number;
        if (!query_evaluate(group->aggregates[i].argument, &sink->run->context, &value, err) ||
            !query_spool_feed(sink->spool, row, i, &value, 1, err))
            return false;
    }
    return query_spool_settle(sink->spool, &moved, err);
}

static bool total_take(struct query_sink *sink, struct error *err)
{
    const struct query_group *group = &sink->stage->group;
    struct query_context *context = &sink->run->context;
    size_t bytes = 0;

    sink->number++;
    for (size_t i = 0; i < group->aggregate_count; i++) {
        struct document_value value;

        sink->states[i].at = sink->number;
        if (!query_evaluate(group->aggregates[i].argument, context, &value, err) ||
            !query_aggregate_add(&sink->states[i], &value, err))
            return false;
        bytes += query_aggregate_bytes(&sink->states[i]);
    }
    return query_memory_check(context, bytes, err);
}

/* A chain may bind the slots of the row anew, once it has left them behind: the next one gets them
 * as they were. */
static bool facet_take(struct query_sink *sink, struct error *err)
{
    const struct query_facet *facet = &sink->stage->facet;
    struct query_context *context = &sink->run->context;
    struct query_slot *row = ARENA_ARRAY(context->arena, struct query_slot, facet->input_count + 1);

    for (size_t i = 0; i < facet->input_count; i++)
        row[i] = context->slots[facet->inputs[i]];
    for (size_t i = 0; i < facet->count; i++) {
        struct query_flow *flow = sink->facets[i].flow;

        for (size_t j = 0; j < facet->input_count; j++)
            context->slots[facet->inputs[j]] = row[j];
        if (!query_flow_is_done(flow, 0) && !query_flow_push(flow, 0, err))
            return false;
    }
    return true;
}

static bool sink_take(struct query_sink *sink, struct error *err)
{
    switch (sink->kind) {
    case QUERY_SINK_SORT:
        return sort_take(sink, err);
    case QUERY_SINK_DISTINCT:
        return distinct_take(sink, err);
    case QUERY_SINK_GROUP:
        return group_take(sink, err);
    case QUERY_SINK_TOTAL:
        return total_take(sink, err);
    case QUERY_SINK_FACET:
        return facet_take(sink, err);
    case QUERY_SINK_WINDOW:
        return query_windowing_take(sink->window, err);
    case QUERY_SINK_KEEP:
        break;
    }
    return row_add(sink, SLICE_NONE, err);
}

bool query_sink_take(struct query_sink *sink, struct error *err)
{
    struct query_stage_figures *outer = query_figures_enter(sink->run, sink->figures);
    bool taken = sink_take(sink, err);

    if (sink->figures)
        sink->figures->rows_in++;
    query_figures_enter(sink->run, outer);
    return taken;
}

/* --- Giving ---------------------------------------------------------------------------------- */

static bool unite_row(void *self, const struct document_value *value, struct error *err)
{
    struct query_sink *sink = self;

    sink->run->context.slots[sink->stage->unite.slot] = (struct query_slot){.value = *value};
    return row_add(sink, SLICE_NONE, err);
}

/* The rest of a flow that gives to an array. */
static bool facet_finish(struct facet *facet, struct error *err)
{
    struct query_flow *flow = facet->flow;
    size_t last = flow->segment_count - 1;
    bool more = true;

    if (!query_flow_end(flow, err))
        return false;
    while (last && more && !query_flow_is_done(flow, last)) {
        arena_reset(flow->run->arena);
        if (!query_work(&flow->run->context, 4, err) ||
            !query_sink_next(flow->segments[last - 1].sink, &more, err) ||
            (more && !query_flow_push(flow, last, err)))
            return false;
    }
    return query_flow_flush(flow, last, err);
}

static bool sink_finish(struct query_sink *sink, struct error *err)
{
    const struct query_stage *stage = sink->stage;

    if (sink->window)
        return query_windowing_finish(sink->window, err);
    for (size_t i = 0; sink->facets && i < stage->facet.count; i++) {
        if (!facet_finish(&sink->facets[i], err))
            return false;
        document_end(&sink->facets[i].rows, 0);
    }
    if (!sink->spool)
        return true;
    if (stage && stage->kind == QUERY_STAGE_UNION &&
        !query_other_run(sink->run, stage->unite.container, stage->unite.plan, NULL, 0, unite_row,
                         sink, err))
        return false;
    return query_stages_spool_finish(sink->run, sink->spool, err);
}

bool query_sink_finish(struct query_sink *sink, struct error *err)
{
    struct query_stage_figures *outer = query_figures_enter(sink->run, sink->figures);
    bool finished = sink_finish(sink, err);

    query_figures_enter(sink->run, outer);
    return finished;
}

static void slot_set(struct query_sink *sink, uint32_t slot, struct document_value value)
{
    sink->run->context.slots[slot] = (struct query_slot){.value = value};
}

static void states_bind(struct query_sink *sink, struct query_aggregate *states)
{
    const struct query_group *group = &sink->stage->group;

    for (size_t i = 0; i < group->aggregate_count; i++)
        slot_set(sink, group->aggregates[i].slot, query_aggregate_finish(&states[i]));
}

static void single_bind(struct query_sink *sink)
{
    for (size_t i = 0; sink->facets && i < sink->stage->facet.count; i++)
        slot_set(sink, sink->stage->facet.slots[i],
                 document_array(buf_slice(&sink->facets[i].rows)));
    if (sink->states)
        states_bind(sink, sink->states);
}

static void group_bind(struct query_sink *sink, struct query_spool_row *row)
{
    const struct query_group *group = &sink->stage->group;
    struct document_iter iter;

    document_iter_init(&iter, row->value.document);
    for (size_t i = 0; i < group->key_count && document_iter_next(&iter); i++)
        slot_set(sink, group->keys[i].slot, iter.value);
    states_bind(sink, row->states);
}

static bool sink_next(struct query_sink *sink, bool *ret_more, struct error *err)
{
    if (sink->window)
        return query_windowing_next(sink->window, ret_more, err);
    if (!sink->spool) {
        *ret_more = !sink->given;
        sink->given = true;
        if (*ret_more)
            single_bind(sink);
        return true;
    }
    if (!query_spool_next(sink->spool, &sink->last, err))
        return false;
    *ret_more = sink->last;
    if (sink->last && sink->kind == QUERY_SINK_GROUP)
        group_bind(sink, sink->last);
    else if (sink->last)
        query_tuple_bind(&sink->run->context, sink->kept, sink->kept_count,
                         sink->last->value.document);
    return true;
}

bool query_sink_next(struct query_sink *sink, bool *ret_more, struct error *err)
{
    struct query_stage_figures *outer = query_figures_enter(sink->run, sink->figures);
    bool read = sink_next(sink, ret_more, err);

    if (sink->figures && read)
        sink->figures->rows_out += *ret_more;
    query_figures_enter(sink->run, outer);
    return read;
}

struct query_spool *query_sink_spool_take(struct query_sink *sink)
{
    assert(sink->spool && sink->last);
    query_spool_return(sink->spool, TAKE(sink->last));
    query_spool_uncount(sink->spool, &sink->run->context);
    return TAKE(sink->spool);
}

void query_sink_spool_put(struct query_sink *sink, struct query_spool *spool)
{
    query_stages_spool_free(sink->run, sink->spool);
    sink->spool = spool;
}
