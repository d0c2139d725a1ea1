/* repeat(). Traversers that go round wait in a queue; a batch of it at a time goes through the
 * child, so the search is breadth first and each round asks the graph once for many. Those that are
 * alike are put together before a round.
 *
 * A child with a barrier sees one level of one incoming traverser at a time, as up to 3.7; 3.8 has
 * all traversers of a level go through together. */
#include "front/gremlin/run/compile_private.h"

enum { ROUND_MAX = 1024 };

struct repeat {
    struct gremlin_step step;
    struct gremlin_part *body;
    unsigned depth;
    struct gremlin_part *until, *emit; /* NULL: none */
    bool emits;                        /* emit() without a condition, too */
    bool has_times;
    uint64_t times;
    bool until_first, emit_first;
    bool barrier; /* rounds are levels */

    struct gremlin_walkers queue; /* to go round */
    size_t queue_at;
    struct gremlin_walkers ready; /* to be given */
    size_t ready_at;
    struct gremlin_walkers round; /* what a round gave */
};

static bool until_holds(struct gremlin_run *run, struct repeat *repeat,
                        const struct gremlin_walker *traverser, bool *ret_yes, struct error *err)
{
    *ret_yes = false;
    if (repeat->has_times && traverser->loops[repeat->depth] >= repeat->times) {
        *ret_yes = true;
        return true;
    }
    return !repeat->until || gremlin_part_test(run, repeat->until, traverser, ret_yes, err);
}

static bool emit_holds(struct gremlin_run *run, struct repeat *repeat,
                       const struct gremlin_walker *traverser, bool *ret_yes, struct error *err)
{
    *ret_yes = repeat->emits;
    return !repeat->emit || gremlin_part_test(run, repeat->emit, traverser, ret_yes, err);
}

static void leave(struct gremlin_run *run, struct repeat *repeat, struct gremlin_walker traverser)
{
    traverser.loops[repeat->depth] = 0;
    gremlin_walker_label(run, &traverser, repeat->step.labels);
    gremlin_walkers_push(run, &repeat->ready, traverser);
}

static bool go_round(struct gremlin_run *run, struct repeat *repeat,
                     struct gremlin_walker traverser, struct error *err)
{
    uint64_t max = run->options->limits.loops_max;

    gremlin_walkers_push(run, &repeat->queue, traverser);
    if (max && traverser.loops[repeat->depth] >= max)
        return error_set(err, ERROR_QUERY_LIMIT, "repeat() goes round more than %llu times",
                         (unsigned long long)max);
    return true;
}

/* Before a round: the tests that stand before repeat(). The traverser is taken. */
static bool enter(struct gremlin_run *run, struct repeat *repeat, struct gremlin_walker traverser,
                  struct error *err)
{
    bool yes = false;

    if (repeat->until_first && !until_holds(run, repeat, &traverser, &yes, err))
        return false;
    if (yes) {
        leave(run, repeat, traverser);
        return true;
    }
    if (repeat->emit_first && !emit_holds(run, repeat, &traverser, &yes, err))
        return false;
    if (yes)
        leave(run, repeat, gremlin_walker_copy(&traverser));
    return go_round(run, repeat, traverser, err);
}

/* Behind a round: the tests that stand behind repeat(), then those before it for the next. */
static bool come_out(struct gremlin_run *run, struct repeat *repeat,
                     struct gremlin_walker traverser, struct error *err)
{
    bool yes = false;

    traverser.loops[repeat->depth]++;
    if (!repeat->until_first && !until_holds(run, repeat, &traverser, &yes, err))
        return false;
    if (yes) {
        leave(run, repeat, traverser);
        return true;
    }
    if (!repeat->emit_first && !emit_holds(run, repeat, &traverser, &yes, err))
        return false;
    if (yes)
        leave(run, repeat, gremlin_walker_copy(&traverser));
    if (repeat->until_first || repeat->emit_first)
        return enter(run, repeat, traverser, err);
    return go_round(run, repeat, traverser, err);
}

/* A round: as many of the queue as go at once. */
static bool round_run(struct gremlin_run *run, struct repeat *repeat, size_t want,
                      struct error *err)
{
    size_t count = repeat->queue.count - repeat->queue_at, most = ROUND_MAX;

    if (!repeat->barrier && want < most)
        most = want < 16 ? 16 : want;
    if (repeat->barrier || count < most)
        most = count;
    if (repeat->queue_at == 0 || repeat->barrier)
        gremlin_walkers_merge(run, &repeat->queue, repeat->queue_at);
    count = repeat->queue.count - repeat->queue_at;
    if (most > count)
        most = count;
    if (repeat->barrier)
        gremlin_part_rearm(run, repeat->body);
    for (size_t i = 0; i < most; i++) {
        gremlin_part_add(run, repeat->body, repeat->queue.items[repeat->queue_at]);
        repeat->queue.items[repeat->queue_at++] = (struct gremlin_walker){0};
    }
    if (repeat->queue_at == repeat->queue.count)
        repeat->queue.count = repeat->queue_at = 0;
    gremlin_walkers_clear(&repeat->round);
    if (!gremlin_part_drain(run, repeat->body, &repeat->round, err))
        return false;
    for (size_t i = 0; i < repeat->round.count; i++) {
        struct gremlin_walker item = repeat->round.items[i];

        repeat->round.items[i] = (struct gremlin_walker){0};
        if (!come_out(run, repeat, item, err))
            return false;
    }
    repeat->round.count = 0;
    return true;
}

/* Incoming traversers: one where a level is one traverser's, all where levels are shared. */
static bool queue_fill(struct gremlin_run *run, struct repeat *repeat, size_t want, bool *ret_more,
                       struct error *err)
{
    struct gremlin_step *step = &repeat->step;

    if (repeat->barrier && !run->v38) {
        if (step->at == step->pending.count) {
            gremlin_walkers_clear(&step->pending);
            step->at = 0;
            if (!gremlin_step_pull(run, step->previous, 1, &step->pending, err))
                return false;
        }
        *ret_more = step->at < step->pending.count;
        if (!*ret_more)
            return true;
        struct gremlin_walker item = step->pending.items[step->at];

        step->pending.items[step->at++] = (struct gremlin_walker){0};
        item.loops[repeat->depth] = 0;
        return enter(run, repeat, item, err);
    }
    gremlin_walkers_clear(&step->pending);
    if (!(step->eager || repeat->barrier
              ? gremlin_step_drain(run, step, &step->pending, err)
              : gremlin_step_pull(run, step->previous, want, &step->pending, err)))
        return false;
    *ret_more = step->pending.count > 0;
    for (size_t i = 0; i < step->pending.count; i++) {
        struct gremlin_walker item = step->pending.items[i];

        step->pending.items[i] = (struct gremlin_walker){0};
        item.loops[repeat->depth] = 0;
        if (!enter(run, repeat, item, err))
            return false;
    }
    step->pending.count = 0;
    return true;
}

static bool repeat_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    struct repeat *repeat = (struct repeat *)step;
    size_t from = out->count;

    for (;;) {
        bool more;

        while (repeat->ready_at < repeat->ready.count && out->count - from < want) {
            gremlin_walkers_push(run, out, repeat->ready.items[repeat->ready_at]);
            repeat->ready.items[repeat->ready_at++] = (struct gremlin_walker){0};
        }
        if (out->count > from)
            return true;
        repeat->ready.count = repeat->ready_at = 0;
        if (repeat->queue_at < repeat->queue.count) {
            if (!round_run(run, repeat, want, err))
                return false;
            continue;
        }
        if (!queue_fill(run, repeat, want, &more, err))
            return false;
        if (!more)
            return true;
    }
}

static void repeat_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    struct repeat *repeat = (struct repeat *)step;

    gremlin_walkers_done(run, &repeat->queue);
    gremlin_walkers_done(run, &repeat->ready);
    gremlin_walkers_done(run, &repeat->round);
    repeat->queue_at = repeat->ready_at = 0;
}

static const struct gremlin_step_kind step_repeat = {
    .name = "repeat", .flags = STEP_SEES, .pull = repeat_pull, .reset = repeat_reset};

static bool tests_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                          struct repeat *repeat, const struct gremlin_loop_scope *scope,
                          struct error *err)
{
    struct gremlin_part_options options = {.loops = scope, .test = true};

    if (raw->times) {
        int64_t times;

        if (raw->times->count != 1 || !gremlin_is_number(raw->times->arguments[0]) ||
            !gremlin_number_long(raw->times->arguments[0], &times))
            return REFUSE(err, "times() takes a whole number");
        repeat->has_times = true;
        repeat->times = times < 0 ? 0 : (uint64_t)times;
    }
    if (raw->until) {
        if (raw->until->count != 1)
            return REFUSE(err, "until() takes a traversal or a predicate");
        if (!gremlin_step_child(compiler, &repeat->step, raw->until->arguments[0], options,
                                &repeat->until, err))
            return false;
    }
    if (raw->emit) {
        repeat->emits = true;
        if (raw->emit->count > 1)
            return REFUSE(err, "emit() takes at most one argument");
        if (raw->emit->count &&
            !gremlin_step_child(compiler, &repeat->step, raw->emit->arguments[0], options,
                                &repeat->emit, err))
            return false;
    }
    repeat->until_first = raw->until_first;
    repeat->emit_first = raw->emit_first;
    return true;
}

bool compile_repeat(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct repeat *repeat = STEP_ADD(compiler, raw, &step_repeat, struct repeat);
    struct gremlin_loop_scope *scope = ARENA_NEW(compiler->run->arena, struct gremlin_loop_scope);
    struct gremlin_value body = raw->arguments[raw->count - 1];

    scope->outer = compiler->loops;
    scope->depth = compiler->loops ? compiler->loops->depth + 1 : 0;
    if (raw->count == 2 && !gremlin_argument_text(raw, 0, &scope->name, err))
        return false;
    if (scope->depth >= LOOPS_DEPTH_MAX)
        return REFUSE(err, "repeat() is nested deeper than %d", LOOPS_DEPTH_MAX);
    if (!gremlin_argument_is_traversal(body))
        return gremlin_argument_wrong(raw, raw->count - 1, "a traversal", err);
    repeat->depth = scope->depth;
    if (!gremlin_step_child(compiler, &repeat->step, body,
                            (struct gremlin_part_options){.loops = scope}, &repeat->body, err))
        return false;
    repeat->barrier = repeat->body->barrier || repeat->body->stateful;
    return tests_compile(compiler, raw, repeat, scope, err);
}
