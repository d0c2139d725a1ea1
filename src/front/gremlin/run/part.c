/* Parts: steps that pull from one another, and children that are asked about a traverser.
 *
 * Most steps look at one traverser at a time; what drives them is here: batches are pulled from the
 * step before, changed in place and handed on. Before a batch is looked at one by one, what the
 * children of the step will expand first is expanded for the whole batch (step_look_ahead), so that
 * where(out('x')) over a thousand traversers asks the graph once. */
#include "base/clock.h"
#include "front/gremlin/run/run_private.h"

static bool pull_one(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                     struct gremlin_walkers *out, struct error *err);
static bool pull_spread(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err);

bool gremlin_step_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    size_t before = out->count;
    uint64_t begin = run->profiled ? clock_monotonic_ns() : 0;
    bool pulled;

    if (step->kind->pull)
        pulled = step->kind->pull(run, step, want, out, err);
    else if (step->kind->one)
        pulled = pull_one(run, step, want, out, err);
    else
        pulled = pull_spread(run, step, want, out, err);
    if (run->profiled) {
        step->ns += clock_monotonic_ns() - begin;
        step->calls++;
        step->traversers += out->count - before;
        for (size_t i = before; i < out->count; i++)
            step->elements += out->items[i].bulk;
    }
    if (!pulled)
        return false;
    if (step->kind->pull && step->kind->flags & STEP_FILTERS && !gremlin_is_null(step->labels))
        for (size_t i = before; i < out->count; i++)
            gremlin_walker_label(run, &out->items[i], step->labels);
    if (gremlin_heap_failed(run->heap))
        return gremlin_heap_error(run->heap, err);
    if (run->faulted) {
        *err = run->fault;
        return false;
    }
    return query_work(&run->context, 1 + (out->count - before), err);
}

bool gremlin_step_drain(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walkers *out, struct error *err)
{
    for (;;) {
        size_t before = out->count;

        if (!gremlin_step_pull(run, step->previous, PULL_ALL, out, err))
            return false;
        if (out->count == before)
            return true;
    }
}

/* Input of a step that writes: all of it before the first is written, for what is written must not
 * be read as further input. */
static bool pull_eager(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    if (step->at == step->pending.count) {
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        if (!gremlin_step_drain(run, step, &step->pending, err))
            return false;
    }
    for (size_t given = 0; given < want && step->at < step->pending.count; given++) {
        gremlin_walkers_push(run, out, step->pending.items[step->at]);
        step->pending.items[step->at++] = (struct gremlin_walker){0};
    }
    return true;
}

static bool pull_one(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                     struct gremlin_walkers *out, struct error *err)
{
    size_t from = out->count;

    while (out->count == from) {
        size_t kept = from, i = from;
        bool good = step->eager ? pull_eager(run, step, want, out, err)
                                : gremlin_step_pull(run, step->previous, want, out, err);

        if (!good)
            return false;
        if (out->count == from)
            return true;
        if (!gremlin_step_look_ahead(run, step, out, from, err))
            return false;
        for (; i < out->count; i++) {
            bool keep = true;

            good = step->kind->one(run, step, &out->items[i], &keep, err);
            if (!good)
                break;
            if (!keep) {
                gremlin_walker_done(&out->items[i]);
                continue;
            }
            if (step->kind->flags & STEP_FILTERS)
                gremlin_walker_label(run, &out->items[i], step->labels);
            if (kept != i) {
                out->items[kept] = out->items[i];
                out->items[i] = (struct gremlin_walker){0};
            }
            kept++;
        }
        gremlin_step_forget_ahead(run, step);
        if (!good)
            return false; /* what was moved away is empty: the batch is as good as any */
        out->count = kept;
    }
    return true;
}

static bool pull_spread(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    size_t from = out->count;

    for (;;) {
        while (step->at < step->pending.count && out->count - from < want) {
            struct gremlin_walker input = step->pending.items[step->at];
            bool good;

            step->pending.items[step->at++] = (struct gremlin_walker){0};
            good = step->kind->spread(run, step, &input, out, err);
            gremlin_walker_done(&input);
            if (!good)
                return false;
            if (gremlin_heap_failed(run->heap))
                return gremlin_heap_error(run->heap, err);
        }
        if (out->count > from)
            return true;
        gremlin_step_forget_ahead(run, step);
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        if (!(step->eager ? gremlin_step_drain(run, step, &step->pending, err)
                          : gremlin_step_pull(run, step->previous, want, &step->pending, err)))
            return false;
        if (!step->pending.count)
            return true;
        if (!gremlin_step_look_ahead(run, step, &step->pending, 0, err))
            return false;
    }
}

/* --- Starts ---------------------------------------------------------------------------------- */

static bool start_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    if (step->at == step->pending.count && step->part->feed)
        return step->part->feed->more(run, step->part->feed, want, out, err);
    for (size_t given = 0; given < want && step->at < step->pending.count; given++) {
        struct gremlin_walker item = step->pending.items[step->at];

        step->pending.items[step->at++] = (struct gremlin_walker){0};
        gremlin_walkers_push(run, out, item);
    }
    if (step->at == step->pending.count) {
        step->pending.count = 0;
        step->at = 0;
    }
    return true;
}

const struct gremlin_step_kind step_start = {
    .name = "start", .flags = STEP_FILTERS | STEP_SEES, .pull = start_pull};

/* --- Parts ----------------------------------------------------------------------------------- */

void gremlin_step_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    gremlin_walkers_clear(&step->pending);
    step->at = 0;
    step->drained = false;
    step->emitted = false;
    if (step->kind->reset)
        step->kind->reset(run, step);
    for (size_t i = 0; i < step->part_count; i++)
        gremlin_part_reset(run, step->parts[i]);
}

void gremlin_part_reset(struct gremlin_run *run, struct gremlin_part *part)
{
    gremlin_walkers_clear(&part->buffer);
    part->at = 0;
    for (struct gremlin_step *step = part->start; step; step = step->next)
        gremlin_step_reset(run, step);
}

void gremlin_part_rearm(struct gremlin_run *run, struct gremlin_part *part)
{
    for (struct gremlin_step *step = part->start; step; step = step->next) {
        step->emitted = false;
        step->drained = false;
        if (step->kind->rearm)
            step->kind->rearm(run, step);
        for (size_t i = 0; i < step->part_count; i++)
            gremlin_part_rearm(run, step->parts[i]);
    }
}

void gremlin_part_add(struct gremlin_run *run, struct gremlin_part *part,
                      struct gremlin_walker traverser)
{
    gremlin_walkers_push(run, &part->start->pending, traverser);
}

bool gremlin_part_next(struct gremlin_run *run, struct gremlin_part *part,
                       struct gremlin_walker *ret_traverser, bool *ret_found, struct error *err)
{
    if (part->at == part->buffer.count) {
        part->buffer.count = 0;
        part->at = 0;
        if (!gremlin_step_pull(run, part->end, 1, &part->buffer, err))
            return false;
    }
    *ret_found = part->at < part->buffer.count;
    if (*ret_found) {
        *ret_traverser = part->buffer.items[part->at];
        part->buffer.items[part->at++] = (struct gremlin_walker){0};
    }
    return true;
}

bool gremlin_part_drain(struct gremlin_run *run, struct gremlin_part *part,
                        struct gremlin_walkers *out, struct error *err)
{
    for (;;) {
        size_t before = out->count;

        if (!gremlin_step_pull(run, part->end, PULL_ALL, out, err))
            return false;
        if (out->count == before)
            return true;
    }
}

void gremlin_part_begin(struct gremlin_run *run, struct gremlin_part *part,
                        const struct gremlin_walker *traverser)
{
    struct gremlin_walker copy = gremlin_walker_copy(traverser);

    copy.bulk = 1;
    gremlin_part_reset(run, part);
    gremlin_part_add(run, part, copy);
}

void gremlin_part_begin_value(struct gremlin_run *run, struct gremlin_part *part,
                              const struct gremlin_walker *traverser, struct gremlin_value value)
{
    struct gremlin_walker copy = gremlin_walker_copy(traverser);

    copy.bulk = 1;
    copy.on_trail = false;
    gremlin_value_replace_take(&copy.value, gremlin_value_ref(value));
    gremlin_part_reset(run, part);
    gremlin_part_add(run, part, copy);
}

static bool part_first(struct gremlin_run *run, struct gremlin_part *part,
                       struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    struct gremlin_walker first = {0};

    if (!gremlin_part_next(run, part, &first, ret_found, err))
        return false;
    if (*ret_found && ret_value)
        *ret_value = gremlin_value_take(&first.value);
    gremlin_walker_done(&first);
    return true;
}

bool gremlin_part_test(struct gremlin_run *run, struct gremlin_part *part,
                       const struct gremlin_walker *traverser, bool *ret_yes, struct error *err)
{
    gremlin_part_begin(run, part, traverser);
    return part_first(run, part, NULL, ret_yes, err);
}

bool gremlin_part_value(struct gremlin_run *run, struct gremlin_part *part,
                        const struct gremlin_walker *traverser, struct gremlin_value *ret_value,
                        bool *ret_found, struct error *err)
{
    gremlin_part_begin(run, part, traverser);
    return part_first(run, part, ret_value, ret_found, err);
}

/* --- Looking ahead --------------------------------------------------------------------------- */

static struct gremlin_step *part_expansion(const struct gremlin_part *part)
{
    struct gremlin_step *first = part ? part->start->next : NULL;

    return first && first->kind == &step_expand ? first : NULL;
}

bool gremlin_step_look_ahead(struct gremlin_run *run, struct gremlin_step *step,
                             const struct gremlin_walkers *batch, size_t from, struct error *err)
{
    if (!step->local || run->plan_writes || batch->count - from < 2)
        return true;
    for (size_t i = 0; i < step->part_count; i++) {
        struct gremlin_step *first = part_expansion(step->parts[i]);

        if (first && !gremlin_expand_ahead(run, first, batch, from, err))
            return false;
    }
    for (size_t i = 0; i < step->by_count; i++) {
        struct gremlin_step *first = part_expansion(step->by[i].part);

        if (first && !gremlin_expand_ahead(run, first, batch, from, err))
            return false;
    }
    return true;
}

void gremlin_step_forget_ahead(struct gremlin_run *run, struct gremlin_step *step)
{
    if (!step->local)
        return;
    for (size_t i = 0; i < step->part_count; i++) {
        struct gremlin_step *first = part_expansion(step->parts[i]);

        if (first)
            gremlin_expand_forget(run, first);
    }
    for (size_t i = 0; i < step->by_count; i++) {
        struct gremlin_step *first = part_expansion(step->by[i].part);

        if (first)
            gremlin_expand_forget(run, first);
    }
}

/* --- by() ------------------------------------------------------------------------------------ */

static bool by_compute(struct gremlin_run *run, const struct gremlin_by *by,
                       const struct gremlin_walker *traverser, struct gremlin_value value,
                       struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    *ret_found = true;
    switch (by->kind) {
    case BY_IDENTITY:
        *ret_value = gremlin_value_ref(value);
        return true;
    case BY_KEY:
        return gremlin_value_of_key(run, value, by->key, ret_value, ret_found, err);
    case BY_TOKEN:
        return gremlin_value_of_token(run, value, by->word, ret_value, ret_found, err);
    case BY_COLUMN:
        return gremlin_value_of_column(run, value, by->word, ret_value, err);
    case BY_PART:
        gremlin_part_begin_value(run, by->part, traverser, value);
        if (traverser->value.object == value.object && traverser->value.type == value.type &&
            by->part->start->pending.count)
            by->part->start->pending.items[0].on_trail = traverser->on_trail;
        return part_first(run, by->part, ret_value, ret_found, err);
    }
    return true;
}

bool gremlin_by_apply_value(struct gremlin_run *run, const struct gremlin_by *by,
                            const struct gremlin_walker *traverser, struct gremlin_value value,
                            struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    if (!by) {
        *ret_found = true;
        *ret_value = gremlin_value_ref(value);
        return true;
    }
    if (!by_compute(run, by, traverser, value, ret_value, ret_found, err))
        return false;
    if (!*ret_found && by->productive) {
        *ret_found = true;
        *ret_value = GREMLIN_NOTHING;
    }
    return true;
}

bool gremlin_by_apply(struct gremlin_run *run, const struct gremlin_by *by,
                      const struct gremlin_walker *traverser, struct gremlin_value *ret_value,
                      bool *ret_found, struct error *err)
{
    return gremlin_by_apply_value(run, by, traverser, traverser->value, ret_value, ret_found, err);
}
