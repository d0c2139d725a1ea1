/* Branches. Global children (union, options of choose and branch) are never reset: the whole stream
 * flows through them, traverser by traverser in their order, or, where a child holds a barrier, all
 * of it first. Local children (map, flatMap, local, coalesce, optional, sideEffect) begin anew with
 * each traverser. */
#include "front/gremlin/run/compile_private.h"

/* --- union ----------------------------------------------------------------------------------- */

struct branches {
    struct gremlin_step step;
    bool barrier; /* some child sees its whole input first */
};

static bool union_give(struct gremlin_run *run, struct gremlin_step *step,
                       struct gremlin_walkers *out, struct error *err)
{
    struct gremlin_walker *input = &step->pending.items[step->at];

    for (size_t i = 0; i < step->part_count; i++) {
        gremlin_part_add(run, step->parts[i], gremlin_walker_copy(input));
        if (!gremlin_part_drain(run, step->parts[i], out, err))
            return false;
    }
    gremlin_walker_done(input);
    step->at++;
    return true;
}

/* Where nothing remembers anything, and order does not matter, a whole batch goes at once. */
static bool union_give_all(struct gremlin_run *run, struct gremlin_step *step,
                           struct gremlin_walkers *out, struct error *err)
{
    for (size_t i = 0; i < step->part_count; i++) {
        for (size_t j = step->at; j < step->pending.count; j++)
            gremlin_part_add(run, step->parts[i], gremlin_walker_copy(&step->pending.items[j]));
        if (!gremlin_part_drain(run, step->parts[i], out, err))
            return false;
    }
    gremlin_walkers_clear(&step->pending);
    step->at = 0;
    return true;
}

static bool union_barrier(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_walkers *out, struct error *err)
{
    if (step->emitted)
        return true;
    step->emitted = true;
    if (!gremlin_step_drain(run, step, &step->pending, err))
        return false;
    if (!step->pending.count)
        return true; /* children that nothing came to count nothing */
    return union_give_all(run, step, out, err);
}

static bool union_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    const struct branches *branches = (struct branches *)step;
    size_t from = out->count;

    if (branches->barrier)
        return union_barrier(run, step, out, err);
    for (;;) {
        while (step->at < step->pending.count && out->count - from < want)
            if (!(step->merges ? union_give_all(run, step, out, err)
                               : union_give(run, step, out, err)))
                return false;
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
        if (!step->merges && !gremlin_branches_look_ahead(run, step, err))
            return false;
    }
}

bool gremlin_branches_look_ahead(struct gremlin_run *run, struct gremlin_step *step,
                                 struct error *err)
{
    step->local = true; /* for what is read ahead, they are asked one by one */
    return gremlin_step_look_ahead(run, step, &step->pending, step->at, err);
}

static const struct gremlin_step_kind step_union = {
    .name = "union", .flags = STEP_FILTERS, .pull = union_pull};

bool compile_union(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct branches *branches = STEP_ADD(compiler, raw, &step_union, struct branches);

    for (size_t i = 0; i < raw->count; i++) {
        struct gremlin_part *part;

        if (!gremlin_argument_is_traversal(raw->arguments[i]))
            return gremlin_argument_wrong(raw, i, "a traversal", err);
        if (!gremlin_step_child(compiler, &branches->step, raw->arguments[i],
                                (struct gremlin_part_options){0}, &part, err))
            return false;
        branches->barrier |= part->barrier;
    }
    return true;
}

/* --- coalesce, optional, local, flatMap ------------------------------------------------------ */

/* What came out of a child as new objects of the traverser: its path has the result alone. */
static void results_split(struct gremlin_run *run, struct gremlin_step *step,
                          const struct gremlin_walker *traverser, struct gremlin_walkers *results,
                          size_t from, bool keep_path)
{
    for (size_t i = from; i < results->count; i++) {
        struct gremlin_walker *result = &results->items[i];

        result->bulk *= traverser->bulk;
        if (keep_path) {
            gremlin_walker_label(run, result, step->labels);
            continue;
        }
        struct gremlin_walker split =
            gremlin_walker_split(run, traverser, gremlin_value_take(&result->value), step);

        split.bulk = result->bulk;
        gremlin_value_replace_take(&split.sack, gremlin_value_take(&result->sack));
        gremlin_walker_done(result);
        *result = split;
    }
}

static bool child_results(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_part *part, const struct gremlin_walker *traverser,
                          bool keep_path, struct gremlin_walkers *out, struct error *err)
{
    size_t from = out->count;

    gremlin_part_begin(run, part, traverser);
    if (!gremlin_part_drain(run, part, out, err))
        return false;
    results_split(run, step, traverser, out, from, keep_path);
    return true;
}

static bool coalesce_spread(struct gremlin_run *run, struct gremlin_step *step,
                            const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                            struct error *err)
{
    size_t from = out->count;

    for (size_t i = 0; i < step->part_count && out->count == from; i++)
        if (!child_results(run, step, step->parts[i], traverser, false, out, err))
            return false;
    return true;
}

static bool optional_spread(struct gremlin_run *run, struct gremlin_step *step,
                            const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                            struct error *err)
{
    size_t from = out->count;

    if (!child_results(run, step, step->parts[0], traverser, true, out, err))
        return false;
    if (out->count == from) {
        struct gremlin_walker same = gremlin_walker_copy(traverser);

        gremlin_walker_label(run, &same, step->labels);
        gremlin_walkers_push(run, out, same);
    }
    return true;
}

static bool local_spread(struct gremlin_run *run, struct gremlin_step *step,
                         const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                         struct error *err)
{
    return child_results(run, step, step->parts[0], traverser, true, out, err);
}

static bool flat_map_spread(struct gremlin_run *run, struct gremlin_step *step,
                            const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                            struct error *err)
{
    return child_results(run, step, step->parts[0], traverser, false, out, err);
}

static const struct gremlin_step_kind step_coalesce = {.name = "coalesce",
                                                       .spread = coalesce_spread};
static const struct gremlin_step_kind step_optional = {.name = "optional",
                                                       .spread = optional_spread};
static const struct gremlin_step_kind step_local = {.name = "local", .spread = local_spread};
static const struct gremlin_step_kind step_flat_map = {.name = "flatMap",
                                                       .spread = flat_map_spread};

static bool local_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                          const struct gremlin_step_kind *kind, struct error *err)
{
    struct gremlin_step *step = STEP_ADD(compiler, raw, kind, struct gremlin_step);

    step->local = true;
    for (size_t i = 0; i < raw->count; i++) {
        struct gremlin_part *part;

        if (!gremlin_argument_is_traversal(raw->arguments[i]))
            return gremlin_argument_wrong(raw, i, "a traversal", err);
        if (!gremlin_step_child(compiler, step, raw->arguments[i], (struct gremlin_part_options){0},
                                &part, err))
            return false;
    }
    return true;
}

bool compile_coalesce(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return local_compile(compiler, raw, &step_coalesce, err);
}

bool compile_optional(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return local_compile(compiler, raw, &step_optional, err);
}

bool compile_local(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return local_compile(compiler, raw, &step_local, err);
}

bool compile_flat_map(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return local_compile(compiler, raw, &step_flat_map, err);
}

/* --- map, sideEffect ------------------------------------------------------------------------- */

static bool map_one(struct gremlin_run *run, struct gremlin_step *step,
                    struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct gremlin_value value;

    if (!gremlin_part_value(run, step->parts[0], traverser, &value, ret_keep, err))
        return false;
    if (*ret_keep)
        gremlin_walker_set(run, traverser, value, step);
    return true;
}

static const struct gremlin_step_kind step_map = {.name = "map", .one = map_one};

bool compile_map(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return local_compile(compiler, raw, &step_map, err);
}

static bool side_effect_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                            struct error *err)
{
    struct gremlin_walkers ignored = {0};
    bool good;

    gremlin_part_begin(run, step->parts[0], traverser);
    good = gremlin_part_drain(run, step->parts[0], &ignored, err);
    gremlin_walkers_done(run, &ignored);
    return good;
}

static const struct gremlin_step_kind step_side_effect = {
    .name = "sideEffect", .flags = STEP_FILTERS, .one = side_effect_one};

bool compile_side_effect(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         struct error *err)
{
    return local_compile(compiler, raw, &step_side_effect, err);
}

/* --- choose, branch -------------------------------------------------------------------------- */

enum option_kind { OPTION_VALUE, OPTION_ANY, OPTION_NONE, OPTION_UNPRODUCTIVE };

struct option {
    enum option_kind kind;
    struct gremlin_value operand;
    struct gremlin_part
        *question; /* option(T, ...): whether T yields anything of the choice; NULL: operand */
    struct gremlin_part *part;
    bool fed; /* something came to it: only then a barrier in it gives anything */
};

struct choose {
    struct gremlin_step step;
    struct gremlin_part *choice; /* what is compared; NULL: the token */
    struct gremlin_enum token;
    bool test;  /* choose(T, a, b): whether it yields anything */
    bool named; /* choose(): 3.8 takes one option, and goes on without one */
    bool barrier;
    struct option *options;
    size_t count;
};

/* What the traverser is compared by. *ret_found false: the choice yields nothing. */
static bool choose_value(struct gremlin_run *run, struct choose *choose,
                         const struct gremlin_walker *traverser, struct gremlin_value *ret_value,
                         bool *ret_found, struct error *err)
{
    if (!choose->choice)
        return gremlin_value_of_token(run, traverser->value, choose->token, ret_value, ret_found,
                                      err);
    if (choose->test) {
        bool yes;

        if (!gremlin_part_test(run, choose->choice, traverser, &yes, err))
            return false;
        *ret_value = gremlin_boolean(yes);
        *ret_found = true;
        return true;
    }
    return gremlin_part_value(run, choose->choice, traverser, ret_value, ret_found, err);
}

static bool option_fits(struct gremlin_run *run, const struct option *option,
                        const struct gremlin_walker *traverser, struct gremlin_value value,
                        bool *ret_fits, struct error *err)
{
    struct gremlin_walker asked;
    bool good;

    if (!option->question) {
        *ret_fits = gremlin_operand_test(run, option->operand, value);
        return true;
    }
    asked = gremlin_walker_copy(traverser);
    gremlin_value_replace_take(&asked.value, gremlin_value_ref(value));
    asked.on_trail = false;
    good = gremlin_part_test(run, option->question, &asked, ret_fits, err);
    gremlin_walker_done(&asked);
    return good;
}

/* Gives the traverser to the options of a kind; of OPTION_VALUE, to those that fit. Counts them. */
static bool options_feed(struct gremlin_run *run, struct choose *choose,
                         const struct gremlin_walker *traverser, enum option_kind kind,
                         struct gremlin_value value, size_t *fed, struct error *err)
{
    for (size_t i = 0; i < choose->count; i++) {
        struct option *option = &choose->options[i];
        bool fits = true;

        if (option->kind != kind)
            continue;
        if (kind == OPTION_VALUE && !option_fits(run, option, traverser, value, &fits, err))
            return false;
        if (!fits)
            continue;
        gremlin_part_add(run, option->part, gremlin_walker_copy(traverser));
        option->fed = true;
        ++*fed;
        if (choose->named && kind == OPTION_VALUE && run->v38)
            break;
    }
    return true;
}

/* *ret_passes: no option takes it, and it goes on as it is. */
static bool choose_feed(struct gremlin_run *run, struct choose *choose,
                        const struct gremlin_walker *traverser, bool *ret_passes, struct error *err)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value value = GREMLIN_NOTHING;
    size_t fed = 0;
    bool found;

    *ret_passes = false;
    if (!choose_value(run, choose, traverser, &value, &found, err))
        return false;
    if (!found) {
        value = GREMLIN_NOTHING;
        if (!options_feed(run, choose, traverser, OPTION_UNPRODUCTIVE, value, &fed, err))
            return false;
        if (!fed) {
            if (!run->v38 && choose->named)
                return FAIL(err, "The provided traverser does not map to a value: %s->%s",
                            gremlin_value_shown(run, traverser->value), "choose()");
            *ret_passes = run->v38 && choose->named;
        }
        return true;
    }
    if (!options_feed(run, choose, traverser, OPTION_VALUE, value, &fed, err))
        return false;
    if (!choose->test && (!run->v38 || !choose->named) &&
        !options_feed(run, choose, traverser, OPTION_ANY, value, &fed, err))
        return false;
    if (!fed && !options_feed(run, choose, traverser, OPTION_NONE, value, &fed, err))
        return false;
    *ret_passes = !fed && choose->named && (choose->test || run->v38);
    return true;
}

static bool options_drain(struct gremlin_run *run, struct choose *choose,
                          struct gremlin_walkers *out, struct error *err)
{
    for (size_t i = 0; i < choose->count; i++) {
        if (choose->options[i].fed && !gremlin_part_drain(run, choose->options[i].part, out, err))
            return false;
        choose->options[i].fed = false;
    }
    return true;
}

static bool choose_barrier(struct gremlin_run *run, struct choose *choose,
                           struct gremlin_walkers *out, struct error *err)
{
    struct gremlin_step *step = &choose->step;

    if (step->emitted)
        return true;
    step->emitted = true;
    if (!gremlin_step_drain(run, step, &step->pending, err))
        return false;
    for (; step->at < step->pending.count; step->at++) {
        struct gremlin_walker *item = &step->pending.items[step->at];
        bool passes;

        if (!choose_feed(run, choose, item, &passes, err))
            return false;
        if (passes)
            gremlin_walkers_push(run, out, gremlin_walker_copy(item));
        gremlin_walker_done(item);
    }
    return options_drain(run, choose, out, err);
}

static bool choose_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    struct choose *choose = (struct choose *)step;
    size_t from = out->count;

    if (choose->barrier)
        return choose_barrier(run, choose, out, err);
    for (;;) {
        while (step->at < step->pending.count && out->count - from < want) {
            struct gremlin_walker item = step->pending.items[step->at];
            bool passes, good;

            step->pending.items[step->at++] = (struct gremlin_walker){0};
            good = choose_feed(run, choose, &item, &passes, err);
            if (good && passes)
                gremlin_walkers_push(run, out, gremlin_walker_copy(&item));
            gremlin_walker_done(&item);
            if (!good || !options_drain(run, choose, out, err))
                return false;
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
        if (!gremlin_branches_look_ahead(run, step, err))
            return false;
    }
}

static const struct gremlin_step_kind step_choose = {
    .name = "choose", .flags = STEP_FILTERS, .pull = choose_pull};

static bool option_add(struct gremlin_compiler *compiler, struct choose *choose,
                       enum option_kind kind, struct gremlin_value operand,
                       struct gremlin_value traversal, struct error *err)
{
    struct option *option = &choose->options[choose->count];

    if (!gremlin_argument_is_traversal(traversal))
        return REFUSE(err, "option() takes a traversal");
    option->kind = kind;
    option->operand = operand;
    if (gremlin_argument_is_traversal(operand)) {
        if (!gremlin_step_child(compiler, &choose->step, operand,
                                (struct gremlin_part_options){.test = true}, &option->question,
                                err))
            return false;
    } else if (!gremlin_operand_check(compiler, operand, err)) {
        return false;
    }
    if (!gremlin_step_child(compiler, &choose->step, traversal, (struct gremlin_part_options){0},
                            &option->part, err))
        return false;
    choose->barrier |= option->part->barrier;
    choose->count++;
    return true;
}

static bool option_compile(struct gremlin_compiler *compiler, struct choose *choose,
                           const struct gremlin_instruction *in, struct error *err)
{
    if (in->count == 1)
        return option_add(compiler, choose, OPTION_ANY, GREMLIN_NOTHING, in->arguments[0], err);
    if (in->count != 2)
        return REFUSE(err, "option() takes one or two arguments");
    if (gremlin_is_word(in->arguments[0], GREMLIN_PICK_ANY))
        return option_add(compiler, choose, OPTION_ANY, GREMLIN_NOTHING, in->arguments[1], err);
    if (gremlin_is_word(in->arguments[0], GREMLIN_PICK_NONE))
        return option_add(compiler, choose, OPTION_NONE, GREMLIN_NOTHING, in->arguments[1], err);
    if (gremlin_is_word(in->arguments[0], GREMLIN_PICK_UNPRODUCTIVE))
        return option_add(compiler, choose, OPTION_UNPRODUCTIVE, GREMLIN_NOTHING, in->arguments[1],
                          err);
    return option_add(compiler, choose, OPTION_VALUE, in->arguments[0], in->arguments[1], err);
}

static bool choice_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                           struct choose *choose, bool test, struct error *err)
{
    struct gremlin_value choice = raw->arguments[0];

    choose->test = test;
    if (gremlin_argument_is_family(choice, GREMLIN_ENUM_T)) {
        choose->token = choice.word;
        return true;
    }
    if (!gremlin_argument_is_traversal(choice) && choice.type != GREMLIN_PREDICATE)
        return gremlin_argument_wrong(raw, 0, "a traversal, predicate or token", err);
    /* choose(predicate) with options compares the truth of it */
    if (choice.type == GREMLIN_PREDICATE)
        choose->test = true;
    choose->step.local = true; /* while its own children are: the choice is asked one by one */
    if (!gremlin_step_child(compiler, &choose->step, choice,
                            (struct gremlin_part_options){.test = choose->test}, &choose->choice,
                            err))
        return false;
    choose->step.local = false;
    return true;
}

static struct option *options_new(struct gremlin_compiler *compiler, const struct gremlin_raw *raw)
{
    return arena_alloc_zero(compiler->run->arena, (raw->option_count + 2) * sizeof(struct option));
}

bool compile_choose(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct choose *choose = STEP_ADD(compiler, raw, &step_choose, struct choose);
    bool direct = raw->count > 1;

    choose->named = true;
    choose->options = options_new(compiler, raw);
    if (!choice_compile(compiler, raw, choose, direct, err))
        return false;
    if (!direct) {
        for (size_t i = 0; i < raw->option_count; i++)
            if (!option_compile(compiler, choose, raw->options[i], err))
                return false;
        return true;
    }
    if (raw->option_count)
        return REFUSE(err, "choose() with branches takes no option()");
    return option_add(compiler, choose, OPTION_VALUE, gremlin_boolean(true), raw->arguments[1],
                      err) &&
           (raw->count < 3 || option_add(compiler, choose, OPTION_VALUE, gremlin_boolean(false),
                                         raw->arguments[2], err));
}

bool compile_branch(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct choose *choose = STEP_ADD(compiler, raw, &step_choose, struct choose);

    choose->options = options_new(compiler, raw);
    if (!choice_compile(compiler, raw, choose, false, err))
        return false;
    for (size_t i = 0; i < raw->option_count; i++)
        if (!option_compile(compiler, choose, raw->options[i], err))
            return false;
    return true;
}
