/* Stages that look at one row work where the row stands; a skip and a limit count; an unwind pushes
 * a row for each element, in an arena that is forgotten from one to the next. The rest is the
 * sinks'. */
#include "query/stage/flow_private.h"

#include "query/value/compare.h"

/* --- Segments -------------------------------------------------------------------------------- */

static bool sink_of(const struct query_stage *stage, enum query_sink_kind *ret_kind)
{
    switch (stage->kind) {
    case QUERY_STAGE_SORT:
        *ret_kind = QUERY_SINK_SORT;
        return true;
    case QUERY_STAGE_DISTINCT:
        *ret_kind = QUERY_SINK_DISTINCT;
        return true;
    case QUERY_STAGE_GROUP:
        *ret_kind = stage->group.key_count ? QUERY_SINK_GROUP : QUERY_SINK_TOTAL;
        return true;
    case QUERY_STAGE_FACET:
        *ret_kind = QUERY_SINK_FACET;
        return true;
    case QUERY_STAGE_WINDOW:
        *ret_kind = QUERY_SINK_WINDOW;
        return true;
    case QUERY_STAGE_UNION:
        *ret_kind = QUERY_SINK_KEEP;
        return true;
    default:
        return false;
    }
}

/* Of a sort, how many rows will be asked for: skips and limits right behind it say so. */
static uint64_t rows_wanted(const struct query_chain *chain, size_t sort)
{
    uint64_t skipped = 0;

    for (size_t i = sort + 1; i < chain->count; i++) {
        const struct query_stage *stage = &chain->stages[i];
        bool drops =
            stage->kind != QUERY_STAGE_PROJECT || stage->project.select->kind != &query_kind_object;

        if (stage->kind == QUERY_STAGE_SKIP && stage->amount < UINT64_MAX - skipped)
            skipped += stage->amount;
        else if (stage->kind == QUERY_STAGE_LIMIT && stage->amount < UINT64_MAX - skipped)
            return MAX(skipped + stage->amount, (uint64_t)1);
        else if (drops)
            break;
    }
    return UINT64_MAX;
}

static void segment_close(struct query_flow *flow, size_t end, struct query_sink *sink, size_t next)
{
    struct query_segment *last = &flow->segments[flow->segment_count - 1];

    last->end = end;
    last->sink = sink;
    flow->segments[flow->segment_count++] = (struct query_segment){next, flow->chain->count, NULL};
}

static const struct query_stage *stage_before(const struct query_flow *flow, size_t stage)
{
    return stage ? &flow->chain->stages[stage - 1] : NULL;
}

static struct query_stage_figures *figures_of(const struct query_flow *flow, size_t stage)
{
    return flow->figures ? &flow->figures[stage] : NULL;
}

/* A place within the last segment is a row of what it reads, and that must be there on the next
 * page: in a spool that the cache takes, which has not been read further than the place, or in a
 * stream of the plan below. Batches of a lookup are read ahead of it; and where their rows come
 * from a plan below, the counters of skips before it would be too. */
static void last_make_pageable(struct query_flow *flow)
{
    const struct query_subquery *below = &flow->run->plan->query;
    const struct query_segment *last = &flow->segments[flow->segment_count - 1];
    struct query_sink *before = flow->segment_count > 1 ? last[-1].sink : NULL;
    bool stream = !before && !below->order_count && !below->key_count && !below->distinct;
    size_t keep_at = SIZE_MAX;
    bool counts = false;

    if (!stream && (!before || query_sink_kind(before) >= QUERY_SINK_TOTAL))
        keep_at = last->first;
    for (size_t i = last->first; i < last->end; i++) {
        enum query_stage_kind kind = flow->chain->stages[i].kind;

        counts |= kind == QUERY_STAGE_SKIP || kind == QUERY_STAGE_LIMIT;
        if (kind == QUERY_STAGE_LOOKUP && (counts || !stream))
            keep_at = i + 1;
    }
    if (keep_at != SIZE_MAX)
        segment_close(flow, keep_at,
                      query_sink_new(flow->run, QUERY_SINK_KEEP, stage_before(flow, keep_at),
                                     UINT64_MAX, figures_of(flow, flow->chain->count)),
                      keep_at);
}

struct query_flow *query_flow_new(struct query_stages *run, const struct query_chain *chain,
                                  bool cached, struct query_stage_figures *figures)
{
    struct query_flow *flow = MEMORY_NEW(struct query_flow);
    enum query_sink_kind kind;

    flow->run = run;
    flow->chain = chain;
    flow->figures = figures;
    flow->segments = memory_alloc_zero(memory_array_size(chain->count + 3, sizeof *flow->segments));
    flow->segments[0] = (struct query_segment){0, chain->count, NULL};
    flow->segment_count = 1;
    flow->counters = memory_alloc_zero(memory_array_size(chain->count + 1, sizeof(uint64_t)));
    flow->begun = memory_alloc_zero(memory_array_size(chain->count + 1, sizeof(uint64_t)));
    flow->arenas = memory_alloc_zero(memory_array_size(chain->count + 1, sizeof(struct arena *)));
    flow->looking = memory_alloc_zero(memory_array_size(chain->count + 1, sizeof *flow->looking));
    for (size_t i = 0; i < chain->count; i++) {
        const struct query_stage *stage = &chain->stages[i];

        if (stage->kind == QUERY_STAGE_SKIP || stage->kind == QUERY_STAGE_LIMIT)
            flow->counters[i] = flow->begun[i] = stage->amount;
        if (sink_of(stage, &kind))
            segment_close(
                flow, i,
                query_sink_new(run, kind, stage, rows_wanted(chain, i), figures_of(flow, i)),
                i + 1);
    }
    if (cached)
        last_make_pageable(flow);
    for (size_t nth = 0; nth < flow->segment_count; nth++)
        for (size_t i = flow->segments[nth].first; i < flow->segments[nth].end; i++)
            if (chain->stages[i].kind == QUERY_STAGE_LOOKUP)
                flow->looking[i] = query_looking_new(flow, nth, i);
    return flow;
}

void query_flow_free(struct query_flow *flow)
{
    if (!flow)
        return;
    for (size_t i = 0; i < flow->segment_count; i++)
        query_sink_free(flow->segments[i].sink);
    for (size_t i = 0; i < flow->chain->count; i++) {
        arena_free(flow->arenas[i]);
        query_looking_free(flow->looking[i]);
    }
    memory_free(flow->segments);
    memory_free(flow->counters);
    memory_free(flow->begun);
    memory_free(flow->arenas);
    memory_free(flow->looking);
    memory_free(flow);
}

/* --- Rows ------------------------------------------------------------------------------------ */

static bool is_done_behind(const struct query_flow *flow, size_t stage, size_t end)
{
    for (; stage < end; stage++)
        if (flow->chain->stages[stage].kind == QUERY_STAGE_LIMIT && !flow->counters[stage])
            return true;
    return flow->stop;
}

bool query_flow_is_done(const struct query_flow *flow, size_t nth)
{
    return is_done_behind(flow, flow->segments[nth].first, flow->segments[nth].end);
}

static void slot_set(struct query_flow *flow, uint32_t slot, struct document_value value)
{
    assert(slot < flow->run->context.slot_count);
    flow->run->context.slots[slot] = (struct query_slot){.value = value};
}

static bool project(struct query_flow *flow, const struct query_project *project, bool *ret_row,
                    struct error *err)
{
    struct query_context *context = &flow->run->context;
    struct document_value value;

    if (!query_evaluate(project->select, context, &value, err))
        return false;
    *ret_row =
        query_value_shows(&value) || (context->keep_nonfinite && value.type != DOCUMENT_UNDEFINED);
    slot_set(flow, project->slot, value);
    return true;
}

static bool element_push(struct query_flow *flow, size_t nth, size_t stage,
                         struct document_value value, int64_t index, struct error *err)
{
    const struct query_unwind *unwind = &flow->chain->stages[stage].unwind;

    if (flow->figures)
        flow->figures[stage].rows_out++;
    slot_set(flow, unwind->slot, value);
    if (unwind->indexed)
        slot_set(flow, unwind->index_slot, query_integer(index));
    return query_flow_push_from(flow, nth, stage + 1, err);
}

/* What is bound before an unwind, for the rows of its elements: a stage behind it may bind the same
 * slots anew, once it has left them behind. */
static struct query_slot *slots_save(struct query_flow *flow, size_t stage)
{
    const struct query_stage *at = &flow->chain->stages[stage];
    struct query_context *context = &flow->run->context;
    struct query_slot *saved = ARENA_ARRAY(context->arena, struct query_slot, at->kept_count + 1);

    for (size_t i = 0; i < at->kept_count; i++)
        saved[i] = context->slots[at->kept[i]];
    return saved;
}

static void slots_restore(struct query_flow *flow, size_t stage, const struct query_slot *saved)
{
    const struct query_stage *at = &flow->chain->stages[stage];

    for (size_t i = 0; i < at->kept_count; i++)
        flow->run->context.slots[at->kept[i]] = saved[i];
}

static bool elements_push(struct query_flow *flow, size_t nth, size_t stage, struct slice array,
                          struct error *err)
{
    struct query_context *context = &flow->run->context;
    const struct query_slot *saved = slots_save(flow, stage);
    struct arena *around = context->arena, *own;
    struct document_iter iter;
    int64_t index = 0;
    bool pushed = true;

    if (!flow->arenas[stage])
        flow->arenas[stage] = arena_new();
    own = flow->arenas[stage];
    document_iter_init(&iter, array);
    while (pushed && document_iter_next(&iter) &&
           !is_done_behind(flow, stage + 1, flow->segments[nth].end)) {
        arena_reset(own);
        context->arena = own;
        slots_restore(flow, stage, saved);
        pushed =
            query_work(context, 1, err) && element_push(flow, nth, stage, iter.value, index++, err);
        context->arena = around;
    }
    return pushed;
}

static bool unwind(struct query_flow *flow, size_t nth, size_t stage, struct error *err)
{
    const struct query_unwind *unwind = &flow->chain->stages[stage].unwind;
    struct document_value array;

    if (!query_evaluate(unwind->array, &flow->run->context, &array, err))
        return false;
    if (array.type == DOCUMENT_ARRAY && document_count(array.document))
        return elements_push(flow, nth, stage, array.document, err);
    return !unwind->keep_empty || element_push(flow, nth, stage, document_undefined(), -1, err);
}

/* *ret_on false: the row ends here, or has gone on by itself. */
static bool stage_push(struct query_flow *flow, size_t nth, size_t stage, bool *ret_on,
                       struct error *err)
{
    const struct query_stage *at = &flow->chain->stages[stage];
    uint64_t *counter = &flow->counters[stage];

    switch (at->kind) {
    case QUERY_STAGE_MATCH:
        return query_holds(at->match, &flow->run->context, ret_on, err);
    case QUERY_STAGE_PROJECT:
        return project(flow, &at->project, ret_on, err);
    case QUERY_STAGE_SKIP:
        *ret_on = *counter == 0;
        *counter -= *counter > 0;
        return true;
    case QUERY_STAGE_LIMIT:
        *ret_on = *counter > 0;
        *counter -= *counter > 0;
        return true;
    case QUERY_STAGE_UNWIND:
        *ret_on = false;
        return unwind(flow, nth, stage, err);
    default:
        assert(at->kind == QUERY_STAGE_LOOKUP);
        *ret_on = false;
        return query_looking_take(flow->looking[stage], err);
    }
}

bool query_flow_push_from(struct query_flow *flow, size_t nth, size_t stage, struct error *err)
{
    const struct query_segment *segment = &flow->segments[nth];

    for (; stage < segment->end; stage++) {
        struct query_stage_figures *own = figures_of(flow, stage), *outer;
        bool goes_on = true, pushed;

        outer = query_figures_enter(flow->run, own);
        pushed =
            query_work(&flow->run->context, 1, err) && stage_push(flow, nth, stage, &goes_on, err);
        if (own) {
            own->rows_in++;
            own->rows_out += goes_on;
        }
        query_figures_enter(flow->run, outer);
        if (!pushed)
            return false;
        if (!goes_on)
            return true;
    }
    return segment->sink ? query_sink_take(segment->sink, err) : flow->give(flow, err);
}

bool query_flow_push(struct query_flow *flow, size_t nth, struct error *err)
{
    return query_flow_push_from(flow, nth, flow->segments[nth].first, err);
}

void query_flow_row_begin(struct query_flow *flow, uint64_t number)
{
    flow->number = number;
    flow->given = 0;
    memcpy(flow->begun, flow->counters, flow->chain->count * sizeof *flow->begun);
}

bool query_flow_flush(struct query_flow *flow, size_t nth, struct error *err)
{
    for (size_t i = flow->segments[nth].first; i < flow->segments[nth].end; i++)
        if (flow->looking[i] && !query_looking_flush(flow->looking[i], err))
            return false;
    return true;
}

/* From a sink into the segment behind it. */
static bool segment_fill(struct query_flow *flow, size_t nth, struct error *err)
{
    struct query_sink *sink = flow->segments[nth - 1].sink;
    bool more = true;

    while (!query_flow_is_done(flow, nth)) {
        arena_reset(flow->run->arena);
        if (!query_work(&flow->run->context, 4, err) || !query_sink_next(sink, &more, err))
            return false;
        if (!more)
            break;
        if (!query_flow_push(flow, nth, err))
            return false;
    }
    query_sink_free(TAKE(flow->segments[nth - 1].sink));
    return true;
}

bool query_flow_end(struct query_flow *flow, struct error *err)
{
    for (size_t nth = 0; nth + 1 < flow->segment_count; nth++) {
        if ((nth && !segment_fill(flow, nth, err)) || !query_flow_flush(flow, nth, err) ||
            !query_sink_finish(flow->segments[nth].sink, err))
            return false;
    }
    return true;
}
