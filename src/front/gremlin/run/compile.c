/* From instructions to steps. First the modulators are given to the steps they follow (raws), then
 * each raw step is compiled by its row. Infix and() and or() are cut at once: what stands left and
 * right of them becomes children of one filter, as TinkerPop's ConnectiveStrategy has it. */
#include "front/gremlin/run/compile_private.h"

enum { PARTS_DEPTH_MAX = 64, OPERATORS_MAX = 400 };

static const struct gremlin_step_row rows[] = {
#define STEP_ROW(name, compile, min, max, takes) {name, sizeof name - 1, compile, min, max, takes},
#include "front/gremlin/run/steps.def"
#undef STEP_ROW
};

static const struct gremlin_step_row *row_find(struct slice name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (slice_equal(name, slice_of(rows[i].name, rows[i].name_len)))
            return &rows[i];
    return NULL;
}

bool compile_refused(struct gremlin_compiler *compiler UNUSED, struct gremlin_raw *raw,
                     struct error *err)
{
    return error_set(err, ERROR_NOT_SUPPORTED, "%s() is not offered", raw->row->name);
}

/* --- Modulators ------------------------------------------------------------------------------ */

/* Until a repeat() follows that they belong to. */
struct waiting {
    const struct gremlin_instruction *times, *until, *emit;
};

static void list_push(struct gremlin_compiler *compiler, const struct gremlin_instruction ***list,
                      size_t *count, const struct gremlin_instruction *in)
{
    const struct gremlin_instruction **grown =
        ARENA_ARRAY(compiler->run->arena, const struct gremlin_instruction *, *count + 1);

    if (*count)
        memcpy(grown, *list, *count * sizeof *grown);
    grown[(*count)++] = in;
    *list = grown;
}

static bool labels_add(struct gremlin_compiler *compiler, struct gremlin_value *labels,
                       const struct gremlin_instruction *in, struct error *err)
{
    if (!in->count)
        return REFUSE(err, "as() takes at least one label");
    if (gremlin_is_null(*labels))
        *labels = gremlin_set_new(compiler->run->heap);
    for (size_t i = 0; i < in->count; i++) {
        if (!gremlin_is_string(in->arguments[i]))
            return REFUSE(err, "as() takes labels as strings");
        gremlin_set_add(*labels, in->arguments[i]);
    }
    return true;
}

static bool takes(const struct gremlin_raw *raw, unsigned what,
                  const struct gremlin_instruction *in, struct error *err)
{
    if (raw && raw->row && raw->row->takes & what)
        return true;
    return REFUSE(err, "%.*s() does not follow a step that takes it%s%s", SLICE_ARG(in->name),
                  raw && raw->row ? ": " : "", raw && raw->row ? raw->row->name : "");
}

/* addE('x').property('k', 1).to('b'): they belong to the addE() before the properties. */
static struct gremlin_raw *ends_owner(struct gremlin_compiler *compiler, struct gremlin_raw *last)
{
    while (last > compiler->raws && gremlin_raw_is(last, "property"))
        last--;
    return last;
}

/* Is the instruction a modulator? Then it is given to `last`. */
static bool modulate(struct gremlin_compiler *compiler, struct gremlin_raw *last,
                     struct waiting *waiting, const struct gremlin_instruction *in, bool *ret_taken,
                     struct error *err)
{
    /* A repeat() takes one emit(), and one until() or times(); a further one is the next
     * repeat()'s. */
    bool repeated = last && last->row && last->row->takes & TAKES_REPEAT && !waiting->times &&
                    !waiting->until && !waiting->emit;
    bool ends = repeated && !last->times && !last->until;

    *ret_taken = true;
    if (slice_equal(in->name, SLICE("by"))) {
        if (!takes(last, TAKES_BY, in, err))
            return false;
        list_push(compiler, &last->by, &last->by_count, in);
    } else if (slice_equal(in->name, SLICE("with"))) {
        if (!takes(last, TAKES_WITH, in, err))
            return false;
        list_push(compiler, &last->with, &last->with_count, in);
    } else if (slice_equal(in->name, SLICE("option"))) {
        if (!takes(last, TAKES_OPTIONS, in, err))
            return false;
        list_push(compiler, &last->options, &last->option_count, in);
    } else if (slice_equal(in->name, SLICE("from"))) {
        last = ends_owner(compiler, last);
        if (!takes(last, TAKES_ENDS, in, err))
            return false;
        last->from = in;
    } else if (slice_equal(in->name, SLICE("to")) &&
               !(in->count &&
                 gremlin_argument_is_family(in->arguments[0], GREMLIN_ENUM_DIRECTION))) {
        last = ends_owner(compiler, last);
        if (!takes(last, TAKES_ENDS, in, err))
            return false;
        last->to = in;
    } else if (slice_equal(in->name, SLICE("times"))) {
        *(ends ? &last->times : &waiting->times) = in;
    } else if (slice_equal(in->name, SLICE("until"))) {
        *(ends ? &last->until : &waiting->until) = in;
    } else if (slice_equal(in->name, SLICE("emit"))) {
        *(repeated && !last->emit ? &last->emit : &waiting->emit) = in;
    } else {
        *ret_taken = false;
    }
    return true;
}

static bool arguments_sound(const struct gremlin_instruction *in, struct error *err)
{
    for (size_t i = 0; i < in->count; i++)
        if (in->arguments[i].type == GREMLIN_LAMBDA)
            return REFUSE(err, "%.*s(): lambdas and closures are not supported",
                          SLICE_ARG(in->name));
    return true;
}

static bool raw_begin(struct gremlin_compiler *compiler, const struct gremlin_instruction *in,
                      struct waiting *waiting, struct gremlin_raw *raw, struct error *err)
{
    uint64_t max = compiler->run->options->limits.operators_max;

    *raw = (struct gremlin_raw){
        .row = row_find(in->name), .in = in, .arguments = in->arguments, .count = in->count};
    if (!raw->row)
        return REFUSE(err, "Gremlin Query Compilation Error: Unable to find any method '%.*s'",
                      SLICE_ARG(in->name));
    if (++compiler->run->operators > (max ? max : OPERATORS_MAX))
        return REFUSE(err, "the traversal has more than %llu operators",
                      (unsigned long long)(max ? max : OPERATORS_MAX));
    if (in->count < raw->row->min || in->count > raw->row->max)
        return REFUSE(err, "%s() does not take %u arguments", raw->row->name, in->count);
    if (raw->row->takes & TAKES_REPEAT) {
        raw->times = waiting->times;
        raw->until = waiting->until ? waiting->until : NULL;
        raw->emit = waiting->emit;
        raw->until_first = waiting->until || waiting->times;
        raw->emit_first = waiting->emit != NULL;
        *waiting = (struct waiting){0};
    } else if (waiting->times || waiting->until || waiting->emit) {
        return REFUSE(err, "The repeat()-traversal was not defined: %s()", raw->row->name);
    }
    return true;
}

static bool raws_of(struct gremlin_compiler *compiler, const struct gremlin_traversal *traversal,
                    struct gremlin_value *start_labels, struct error *err)
{
    const struct gremlin_instructions *steps = &traversal->steps;
    struct waiting waiting = {0};

    compiler->raws =
        ARENA_ARRAY(compiler->run->arena, struct gremlin_raw, (size_t)steps->count + 1);
    for (size_t i = 0; i < steps->count; i++) {
        const struct gremlin_instruction *in = &steps->items[i];
        struct gremlin_raw *last = compiler->count ? &compiler->raws[compiler->count - 1] : NULL;
        bool taken;

        if (!arguments_sound(in, err))
            return false;
        if (slice_equal(in->name, SLICE("as"))) {
            if (!labels_add(compiler, last ? &last->labels : start_labels, in, err))
                return false;
            continue;
        }
        if (!modulate(compiler, last, &waiting, in, &taken, err))
            return false;
        if (taken)
            continue;
        if (!raw_begin(compiler, in, &waiting, &compiler->raws[compiler->count], err))
            return false;
        compiler->count++;
    }
    if (waiting.times || waiting.until || waiting.emit)
        return REFUSE(err, "The repeat()-traversal was not defined");
    return true;
}

/* --- Parts ----------------------------------------------------------------------------------- */

static struct gremlin_part *part_new(struct gremlin_compiler *compiler)
{
    struct gremlin_part *part = ARENA_NEW(compiler->run->arena, struct gremlin_part);

    compiler->part = part;
    part->start = part->end =
        gremlin_step_add(compiler, NULL, &step_start, sizeof(struct gremlin_step));
    return part;
}

static bool compile_raw(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                        struct error *err)
{
    struct gremlin_step *before = compiler->part->end;

    if (!raw->row->compile(compiler, raw, err))
        return false;
    /* A step may be nothing at all, or belong to what was there: its labels do, too. */
    struct gremlin_step *last = compiler->part->end;

    if (!gremlin_is_null(raw->labels)) {
        if (gremlin_is_null(last->labels) && last != before)
            last->labels = raw->labels;
        else {
            STEP_ADD(compiler, raw, &step_identity, struct gremlin_step);
            compiler->part->end->labels = raw->labels;
        }
    }
    if (raw->by_count && !raw->by_taken && !gremlin_step_bys(compiler, raw, last, err))
        return false;
    return true;
}

static bool raws_compile(struct gremlin_compiler *compiler, struct error *err);

/* One side of and() or or(): raws from `from` on, as a child of its own. */
static bool side_compile(struct gremlin_compiler *compiler, size_t from, size_t count,
                         struct gremlin_part **ret_part, struct error *err)
{
    struct gremlin_compiler side = {.run = compiler->run,
                                    .outer = compiler,
                                    .raws = compiler->raws + from,
                                    .count = count,
                                    .loops = compiler->loops,
                                    .test = true,
                                    .plain = compiler->plain,
                                    .depth = compiler->depth + 1};

    *ret_part = part_new(&side);
    return raws_compile(&side, err);
}

static bool raw_infix(const struct gremlin_raw *raw, const char *name)
{
    return !raw->count && gremlin_raw_is(raw, name);
}

struct logic_parts {
    struct gremlin_part *parts[64];
    size_t count;
};

static bool sides_compile(struct gremlin_compiler *compiler, size_t from, size_t count,
                          const char *name, struct logic_parts *sides, struct error *err)
{
    size_t begin = from;

    for (size_t i = from; i <= from + count; i++) {
        if (i < from + count && !raw_infix(&compiler->raws[i], name))
            continue;
        if (sides->count == 64)
            return REFUSE(err, "more than 64 operands of %s()", name);
        if (!side_compile(compiler, begin, i - begin, &sides->parts[sides->count++], err))
            return false;
        begin = i + 1;
    }
    return true;
}

bool gremlin_add_logic(struct gremlin_compiler *compiler, const struct gremlin_raw *raw, bool all,
                       struct gremlin_part **parts, size_t count);

/* or() binds less than and(): cut there first, each side cuts itself further. */
static bool infix_compile(struct gremlin_compiler *compiler, size_t from, const char *name,
                          struct error *err)
{
    struct logic_parts *sides = ARENA_NEW(compiler->run->arena, struct logic_parts);

    return sides_compile(compiler, from, compiler->count - from, name, sides, err) &&
           gremlin_add_logic(compiler, &compiler->raws[from], strcmp(name, "and") == 0,
                             sides->parts, sides->count);
}

static bool raw_starts(const struct gremlin_raw *raw)
{
    return gremlin_raw_is(raw, "V") || gremlin_raw_is(raw, "E") || gremlin_raw_is(raw, "inject");
}

/* The first step alone: what follows it is the operand of an infix step, not its condition. */
static bool source_compile(struct gremlin_compiler *compiler, struct error *err)
{
    size_t count = compiler->count;
    bool good;

    compiler->count = 1;
    good = compile_raw(compiler, &compiler->raws[0], err);
    compiler->count = count;
    return good;
}

static bool raws_compile(struct gremlin_compiler *compiler, struct error *err)
{
    size_t base = compiler->count && !compiler->outer && raw_starts(&compiler->raws[0]);

    if (compiler->depth > PARTS_DEPTH_MAX)
        return REFUSE(err, "traversals are nested deeper than %d", PARTS_DEPTH_MAX);
    for (size_t i = base; i < compiler->count; i++) {
        bool any = raw_infix(&compiler->raws[i], "or");

        for (size_t j = base; !any && j < compiler->count; j++)
            any = raw_infix(&compiler->raws[j], "or");
        if (!any && !raw_infix(&compiler->raws[i], "and"))
            continue;
        if (base && !source_compile(compiler, err))
            return false;
        return infix_compile(compiler, base, any ? "or" : "and", err);
    }
    for (compiler->index = 0; compiler->index < compiler->count; compiler->index++)
        if (!compile_raw(compiler, &compiler->raws[compiler->index], err))
            return false;
    return true;
}

/* Where the order of traversers does not show further on, those that are alike may be put together
 * before they are expanded. */
static void part_merges(struct gremlin_part *part, bool free)
{
    struct gremlin_step *steps[1024];
    size_t count = 0;

    for (struct gremlin_step *step = part->start; step && count < 1024; step = step->next)
        steps[count++] = step;
    while (count--) {
        uint32_t flags = steps[count]->kind->flags;

        steps[count]->merges = free;
        if (flags & STEP_ORDER_FREE)
            free = true;
        else if (flags & (STEP_BARRIER | STEP_STATEFUL | STEP_SIDE_EFFECT))
            free = false;
    }
}

static bool labels_one(struct gremlin_value labels, struct slice *ret_label)
{
    if (gremlin_is_null(labels) || !gremlin_table(labels)->count)
        return false;
    *ret_label = gremlin_bytes(gremlin_table(labels)->rows[0].key);
    return true;
}

bool gremlin_compile_part(const struct gremlin_compiler *outer,
                          const struct gremlin_traversal *traversal,
                          struct gremlin_part_options options, struct gremlin_part **ret_part,
                          struct error *err)
{
    struct gremlin_compiler compiler = {.run = outer->run,
                                        .outer = outer->part ? outer : NULL,
                                        .loops = options.loops ? options.loops : outer->loops,
                                        .test = options.test,
                                        .plain = options.plain || outer->plain,
                                        .depth = outer->depth + 1};
    struct gremlin_part *part = part_new(&compiler);
    struct gremlin_value start = GREMLIN_NOTHING;
    struct gremlin_raw *last;

    part->traversal = traversal;
    compiler.where = options.where;
    if (!raws_of(&compiler, traversal, &start, err))
        return false;
    labels_one(start, &part->first_label);
    last = compiler.count ? &compiler.raws[compiler.count - 1] : NULL;
    if (last)
        labels_one(last->labels, &part->last_label);
    if (options.where || options.pattern) {
        if (last)
            last->labels = GREMLIN_NOTHING;
        if (options.where && part->first_label.data)
            gremlin_add_where_end(&compiler, part->first_label, true);
    } else {
        part->start->labels = start;
    }
    if (!raws_compile(&compiler, err))
        return false;
    if (options.where && part->last_label.data)
        gremlin_add_where_end(&compiler, part->last_label, false);
    part_merges(part, options.test);
    *ret_part = part;
    return true;
}

bool gremlin_compile_argument(const struct gremlin_compiler *outer, struct gremlin_value argument,
                              struct gremlin_part_options options, struct gremlin_part **ret_part,
                              struct error *err)
{
    if (argument.type == GREMLIN_TRAVERSAL)
        return gremlin_compile_part(outer, gremlin_argument_traversal(argument), options, ret_part,
                                    err);
    struct gremlin_compiler compiler = {
        .run = outer->run, .outer = outer, .test = options.test, .depth = outer->depth + 1};

    *ret_part = part_new(&compiler);
    if (argument.type == GREMLIN_PREDICATE)
        return gremlin_add_is(&compiler, NULL, argument, err);
    return gremlin_add_constant(&compiler, NULL, argument);
}

/* --- Steps ----------------------------------------------------------------------------------- */

void *gremlin_step_add(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                       const struct gremlin_step_kind *kind, size_t size)
{
    struct gremlin_run *run = compiler->run;
    struct gremlin_part *part = compiler->part;
    struct gremlin_step *step = arena_alloc_zero(run->arena, size);

    step->kind = kind;
    step->part = part;
    step->instruction = raw ? raw->in : NULL;
    step->previous = part->end;
    if (part->end)
        part->end->next = step;
    part->end = step;
    step->all = run->steps;
    run->steps = step;
    part->barrier |= !!(kind->flags & STEP_BARRIER);
    part->stateful |= !!(kind->flags & STEP_STATEFUL);
    part->chance |= !!(kind->flags & STEP_CHANCE);
    part->side_effects |= !!(kind->flags & STEP_SIDE_EFFECT);
    part->writes |= !!(kind->flags & STEP_WRITES);
    if (kind->flags & STEP_CHANCE)
        run->bulks = false;
    if (kind->flags & STEP_WRITES) {
        run->plan_writes = true;
        run->bulks = false;
        step->eager = true;
    }
    if (kind->flags & STEP_NEEDS_PATH)
        run->trail_mode = TRAIL_FULL;
    else if (kind->flags & STEP_NEEDS_LABELS && run->trail_mode == TRAIL_NONE)
        run->trail_mode = TRAIL_LABELS;
    return step;
}

/* What a child does, its owner does. */
static void flags_inherit(struct gremlin_run *run, struct gremlin_step *step,
                          const struct gremlin_part *part)
{
    struct gremlin_part *owner = step->part;

    owner->writes |= part->writes;
    owner->side_effects |= part->side_effects;
    owner->chance |= part->chance;
    if (!step->local) {
        owner->barrier |= part->barrier;
        owner->stateful |= part->stateful;
    }
    if (part->writes)
        step->eager = true;
    if (part->writes || part->side_effects || part->chance)
        run->bulks = false;
}

void gremlin_step_own(struct gremlin_compiler *compiler, struct gremlin_step *step,
                      struct gremlin_part *part)
{
    struct gremlin_part **grown =
        ARENA_ARRAY(compiler->run->arena, struct gremlin_part *, step->part_count + 1);

    if (step->part_count)
        memcpy(grown, step->parts, step->part_count * sizeof *grown);
    grown[step->part_count++] = part;
    step->parts = grown;
    flags_inherit(compiler->run, step, part);
}

bool gremlin_step_child(struct gremlin_compiler *compiler, struct gremlin_step *step,
                        struct gremlin_value argument, struct gremlin_part_options options,
                        struct gremlin_part **ret_part, struct error *err)
{
    if (!gremlin_compile_argument(compiler, argument, options, ret_part, err))
        return false;
    gremlin_step_own(compiler, step, *ret_part);
    return true;
}

/* --- by() ------------------------------------------------------------------------------------ */

static bool by_order(struct gremlin_value word, struct gremlin_by *by, struct error *err)
{
    if (!gremlin_argument_is_family(word, GREMLIN_ENUM_ORDER))
        return REFUSE(err, "by(): the second argument is asc, desc or shuffle");
    switch (gremlin_word_canonical(word.word.word)) {
    case GREMLIN_ORDER_DESC:
        by->order = ORDER_DESC;
        break;
    case GREMLIN_ORDER_SHUFFLE:
        by->order = ORDER_SHUFFLE;
        break;
    default:
        by->order = ORDER_ASC;
        break;
    }
    return true;
}

/* by(values('name')) and the like are keys: no child is run for them. */
static bool by_plain(struct gremlin_compiler *compiler, const struct gremlin_traversal *traversal,
                     struct gremlin_by *by)
{
    const struct gremlin_instruction *in = traversal->steps.items;

    if (traversal->steps.count == 1 && slice_equal(in->name, SLICE("identity")) && !in->count) {
        by->kind = BY_IDENTITY;
        return true;
    }
    (void)compiler;
    return false;
}

bool gremlin_compile_by(struct gremlin_compiler *compiler, const struct gremlin_instruction *in,
                        struct gremlin_by *ret_by, struct error *err)
{
    struct gremlin_by by = {.kind = BY_IDENTITY, .productive = compiler->run->productive};
    const struct gremlin_value *first = in->count ? &in->arguments[0] : NULL;

    if (in->count > 2)
        return REFUSE(err, "by() takes at most two arguments");
    if (in->count == 2 && !by_order(in->arguments[1], &by, err))
        return false;
    if (!first) {
        by.kind = BY_IDENTITY;
    } else if (gremlin_is_string(*first)) {
        by.kind = BY_KEY;
        by.key = slice_keep(compiler, gremlin_bytes(*first));
    } else if (gremlin_argument_is_family(*first, GREMLIN_ENUM_T)) {
        by.kind = BY_TOKEN;
        by.word = first->word;
    } else if (gremlin_argument_is_family(*first, GREMLIN_ENUM_COLUMN)) {
        by.kind = BY_COLUMN;
        by.word = first->word;
    } else if (gremlin_argument_is_family(*first, GREMLIN_ENUM_ORDER)) {
        if (!by_order(*first, &by, err))
            return false;
    } else if (first->type == GREMLIN_TRAVERSAL) {
        if (!by_plain(compiler, gremlin_argument_traversal(*first), &by)) {
            by.kind = BY_PART;
            if (!gremlin_compile_part(compiler, gremlin_argument_traversal(*first),
                                      (struct gremlin_part_options){0}, &by.part, err))
                return false;
        }
    } else {
        return REFUSE(err, "by() takes a key, a token or a traversal, not a %s",
                      gremlin_type_name(first->type));
    }
    *ret_by = by;
    return true;
}

bool gremlin_step_bys(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                      struct gremlin_step *step, struct error *err)
{
    raw->by_taken = true;
    step->by = ARENA_ARRAY(compiler->run->arena, struct gremlin_by, raw->by_count + 1);
    for (size_t i = 0; i < raw->by_count; i++) {
        if (!gremlin_compile_by(compiler, raw->by[i], &step->by[i], err))
            return false;
        step->by_count++;
        if (step->by[i].part)
            flags_inherit(compiler->run, step, step->by[i].part);
    }
    step->local = step->local || step->by_count > 0;
    return true;
}

/* --- Arguments ------------------------------------------------------------------------------- */

struct slice slice_keep(struct gremlin_compiler *compiler, struct slice text)
{
    return arena_copy(compiler->run->arena, text);
}

bool gremlin_argument_is_traversal(struct gremlin_value value)
{
    return value.type == GREMLIN_TRAVERSAL;
}

bool gremlin_argument_wrong(const struct gremlin_raw *raw, size_t index, const char *what,
                            struct error *err)
{
    return REFUSE(err, "%s(): argument %zu must be %s, not %s", raw->row->name, index + 1, what,
                  index < raw->count ? gremlin_type_name(raw->arguments[index].type) : "missing");
}

bool gremlin_argument_text(const struct gremlin_raw *raw, size_t index, struct slice *ret_text,
                           struct error *err)
{
    if (index >= raw->count || !gremlin_is_string(raw->arguments[index]))
        return gremlin_argument_wrong(raw, index, "a string", err);
    *ret_text = gremlin_bytes(raw->arguments[index]);
    return true;
}

bool gremlin_argument_texts(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                            size_t from, const struct slice **ret_texts, size_t *ret_count,
                            struct error *err)
{
    struct slice *texts = ARENA_ARRAY(compiler->run->arena, struct slice, raw->count + 1);
    size_t count = 0;

    for (size_t i = from; i < raw->count; i++) {
        if (gremlin_is_null(raw->arguments[i]))
            continue; /* no key is null */
        if (!gremlin_argument_text(raw, i, &texts[count++], err))
            return false;
    }
    *ret_texts = texts;
    *ret_count = count;
    return true;
}

bool gremlin_argument_whole(const struct gremlin_raw *raw, size_t index, int64_t *ret_number,
                            struct error *err)
{
    if (index >= raw->count || !gremlin_is_number(raw->arguments[index]) ||
        !gremlin_number_long(raw->arguments[index], ret_number))
        return gremlin_argument_wrong(raw, index, "a whole number", err);
    return true;
}

bool gremlin_argument_local(const struct gremlin_raw *raw, size_t *ret_from)
{
    *ret_from = raw->count && gremlin_argument_is_family(raw->arguments[0], GREMLIN_ENUM_SCOPE);
    return *ret_from && gremlin_is_word(raw->arguments[0], GREMLIN_SCOPE_LOCAL);
}

const struct gremlin_raw *gremlin_raw_next(const struct gremlin_compiler *compiler)
{
    return compiler->index + 1 < compiler->count ? &compiler->raws[compiler->index + 1] : NULL;
}

bool gremlin_raw_is(const struct gremlin_raw *raw, const char *name)
{
    return raw && raw->row && strcmp(raw->row->name, name) == 0;
}

static bool raw_in(const struct gremlin_raw *raw, const char *const *names)
{
    for (; *names; names++)
        if (gremlin_raw_is(raw, *names))
            return true;
    return false;
}

bool gremlin_heads_suffice(const struct gremlin_compiler *compiler)
{
    static const char *const enough[] = {"out",   "in", "both",  "outE",  "inE",
                                         "bothE", "id", "label", "count", NULL};
    static const char *const through[] = {"dedup",      "limit",      "range",   "skip", "tail",
                                          "simplePath", "cyclicPath", "barrier", NULL};

    for (size_t i = compiler->index + 1; i < compiler->count; i++) {
        const struct gremlin_raw *raw = &compiler->raws[i];

        if (raw_in(raw, enough))
            return true;
        if (!raw_in(raw, through) || raw->by_count)
            return false;
    }
    return compiler->test;
}

/* --- Writing? -------------------------------------------------------------------------------- */

static bool value_writes(struct gremlin_value value)
{
    return value.type == GREMLIN_TRAVERSAL &&
           gremlin_traversal_writes(gremlin_argument_traversal(value));
}

bool gremlin_traversal_writes(const struct gremlin_traversal *traversal)
{
    static const char *const names[] = {"addV", "addE", "property", "drop", "mergeV", "mergeE"};

    for (size_t i = 0; i < traversal->steps.count; i++) {
        const struct gremlin_instruction *in = &traversal->steps.items[i];

        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (slice_equal(in->name, slice_of_text(names[j])))
                return true;
        for (size_t j = 0; j < in->count; j++)
            if (value_writes(in->arguments[j]))
                return true;
    }
    return false;
}
