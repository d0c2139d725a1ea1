/* match(): patterns that share variables. Each begins at a variable that is known and may end at
 * one; the next pattern is the first whose beginning is known, so the search is depth first over
 * what each gives. Variables are labels of the traverser's path while it lasts, so that filters
 * among the patterns see them, and the result is a map of all of them.
 *
 * or(...) among the patterns is a choice: each of its alternatives, a pattern or an and() of
 * several, is searched for by itself, and may bind variables. Patterns of an alternative sleep,
 * which is to be done already, until it is chosen. where() and not() only filter, and so they wait
 * until all else is known. */
#include "front/gremlin/run/compile_private.h"

enum { PATTERNS_MAX = 32, VARIABLES_MAX = 64 };

enum pattern_kind {
    PATTERN_PATH,
    PATTERN_FILTER, /* where(), not(): run when all others have been */
    PATTERN_CHOICE, /* or() */
};

struct pattern {
    enum pattern_kind kind;
    struct gremlin_part *part; /* of all but a choice */
    int start, end;            /* variables of a path; end -1: none */
    uint32_t *alternatives;    /* of a choice: the patterns of each, as bits */
    size_t alternative_count;
};

struct match {
    struct gremlin_step step;
    struct pattern patterns[PATTERNS_MAX];
    size_t count;
    struct slice variables[VARIABLES_MAX];
    struct gremlin_value labels[VARIABLES_MAX]; /* sets of one name */
    size_t variable_count;
    int first;       /* the variable that the incoming object is */
    uint32_t asleep; /* patterns of alternatives */
};

struct bindings {
    struct gremlin_value values[VARIABLES_MAX];
    bool bound[VARIABLES_MAX];
};

static int variable_of(struct gremlin_compiler *compiler, struct match *match, struct slice name)
{
    struct gremlin_value text;

    for (size_t i = 0; i < match->variable_count; i++)
        if (slice_equal(match->variables[i], name))
            return (int)i;
    if (match->variable_count == VARIABLES_MAX)
        return -1;
    match->variables[match->variable_count] = slice_keep(compiler, name);
    text = gremlin_string(compiler->run->heap, name);
    match->labels[match->variable_count] = gremlin_set_new(compiler->run->heap);
    gremlin_set_add(match->labels[match->variable_count], text);
    gremlin_value_unref(text);
    return (int)match->variable_count++;
}

/* The traverser with one variable more on its path. */
static struct gremlin_walker with_variable(struct gremlin_run *run, const struct match *match,
                                           const struct gremlin_walker *traverser, int variable,
                                           struct gremlin_value value)
{
    struct gremlin_walker bound = gremlin_walker_copy(traverser);

    gremlin_value_replace_take(&bound.value, gremlin_value_ref(value));
    bound.on_trail = false;
    gremlin_walker_label(run, &bound, match->labels[variable]);
    return bound;
}

static bool emit_map(struct gremlin_run *run, struct match *match,
                     const struct gremlin_walker *traverser, const struct bindings *bindings,
                     struct gremlin_walkers *out)
{
    struct gremlin_value map = gremlin_map_new(run->heap);

    for (size_t i = 0; i < match->variable_count; i++) {
        struct gremlin_value key;

        if (!bindings->bound[i])
            continue;
        key = gremlin_string(run->heap, match->variables[i]);
        gremlin_map_put(map, key, bindings->values[i]);
        gremlin_value_unref(key);
    }
    gremlin_walkers_push(run, out, gremlin_walker_split(run, traverser, map, &match->step));
    return true;
}

static bool search(struct gremlin_run *run, struct match *match,
                   const struct gremlin_walker *traverser, struct bindings *bindings, uint32_t done,
                   struct gremlin_walkers *out, struct error *err);

/* One result of a pattern: it must agree with its variable, or becomes it. */
static bool follow(struct gremlin_run *run, struct match *match, const struct pattern *pattern,
                   const struct gremlin_walker *traverser, struct gremlin_value value,
                   struct bindings *bindings, uint32_t done, struct gremlin_walkers *out,
                   struct error *err)
{
    struct gremlin_walker bound;
    bool good;

    if (pattern->end < 0)
        return search(run, match, traverser, bindings, done, out, err);
    if (bindings->bound[pattern->end])
        return !gremlin_equal(bindings->values[pattern->end], value) ||
               search(run, match, traverser, bindings, done, out, err);
    bound = with_variable(run, match, traverser, pattern->end, value);
    bindings->bound[pattern->end] = true;
    bindings->values[pattern->end] = value;
    good = search(run, match, &bound, bindings, done, out, err);
    bindings->bound[pattern->end] = false;
    gremlin_walker_done(&bound);
    return good;
}

static bool pattern_run(struct gremlin_run *run, struct match *match, size_t index,
                        const struct gremlin_walker *traverser, struct bindings *bindings,
                        uint32_t done, struct gremlin_walkers *out, struct error *err)
{
    const struct pattern *pattern = &match->patterns[index];
    struct gremlin_walkers results = {0};
    bool good = true;

    if (pattern->kind == PATTERN_CHOICE) {
        for (size_t i = 0; good && i < pattern->alternative_count; i++)
            good = query_work(&run->context, 1, err) &&
                   search(run, match, traverser, bindings,
                          (done | 1U << index) & ~pattern->alternatives[i], out, err);
        return good;
    }
    if (pattern->kind == PATTERN_FILTER) {
        bool yes;

        if (!gremlin_part_test(run, pattern->part, traverser, &yes, err))
            return false;
        return !yes || search(run, match, traverser, bindings, done | 1U << index, out, err);
    }
    gremlin_part_begin_value(run, pattern->part, traverser, bindings->values[pattern->start]);
    good = gremlin_part_drain(run, pattern->part, &results, err);
    for (size_t i = 0; good && i < results.count; i++)
        good = query_work(&run->context, 1, err) &&
               follow(run, match, pattern, traverser, results.items[i].value, bindings,
                      done | 1U << index, out, err);
    gremlin_walkers_done(run, &results);
    return good;
}

static bool unsolvable(struct error *err)
{
    return FAIL(err, "The provided match pattern is unsolvable");
}

static uint32_t filters_of(const struct match *match)
{
    uint32_t filters = 0;

    for (size_t i = 0; i < match->count; i++)
        if (match->patterns[i].kind == PATTERN_FILTER)
            filters |= 1U << i;
    return filters;
}

/* The pattern that comes next; -1: none can. Choices wait for paths that are known, and filters for
 * both. */
static int pattern_next(const struct match *match, const struct bindings *bindings, uint32_t done)
{
    static const enum pattern_kind turns[] = {PATTERN_PATH, PATTERN_CHOICE, PATTERN_FILTER};

    for (size_t turn = 0; turn < ARRAY_LEN(turns); turn++) {
        for (size_t i = 0; i < match->count; i++) {
            const struct pattern *pattern = &match->patterns[i];

            if (!(done >> i & 1) && pattern->kind == turns[turn] &&
                (pattern->kind != PATTERN_PATH || bindings->bound[pattern->start]))
                return (int)i;
        }
    }
    return -1;
}

/* Without an end a pattern is a filter, but one that counts its results as TinkerPop does. */
static bool search(struct gremlin_run *run, struct match *match,
                   const struct gremlin_walker *traverser, struct bindings *bindings, uint32_t done,
                   struct gremlin_walkers *out, struct error *err)
{
    int next = pattern_next(match, bindings, done);
    uint32_t all = match->count == PATTERNS_MAX ? UINT32_MAX : (1U << match->count) - 1;

    if (next >= 0 && match->patterns[next].kind == PATTERN_FILTER &&
        (done | filters_of(match)) != all)
        return unsolvable(err);
    if (next >= 0)
        return pattern_run(run, match, (size_t)next, traverser, bindings, done, out, err);
    if (done != all)
        return unsolvable(err);
    return emit_map(run, match, traverser, bindings, out);
}

static bool match_spread(struct gremlin_run *run, struct gremlin_step *step,
                         const struct gremlin_walker *traverser, struct gremlin_walkers *out,
                         struct error *err)
{
    struct match *match = (struct match *)step;
    struct bindings bindings = {0};
    struct gremlin_value known[VARIABLES_MAX] = {0}; /* held here; others by the path */
    struct gremlin_walker begun = gremlin_walker_copy(traverser);
    bool good = true, found;

    for (size_t i = 0; good && i < match->variable_count; i++) {
        struct gremlin_value value;

        good = gremlin_scope_value(run, traverser, match->variables[i], GREMLIN_POP_LAST, &value,
                                   &found, err);
        if (good && found) {
            bindings.bound[i] = true;
            bindings.values[i] = value;
            known[i] = value;
        }
    }
    if (good && !bindings.bound[match->first]) {
        bindings.bound[match->first] = true;
        bindings.values[match->first] = traverser->value;
        gremlin_walker_label(run, &begun, match->labels[match->first]);
    }
    good = good && search(run, match, &begun, &bindings, match->asleep, out, err);
    for (size_t i = 0; i < match->variable_count; i++)
        gremlin_value_unref(known[i]);
    gremlin_walker_done(&begun);
    return good;
}

static const struct gremlin_step_kind step_match = {
    .name = "match", .flags = STEP_NEEDS_LABELS, .spread = match_spread};

/* --- Compiling ------------------------------------------------------------------------------- */

static bool begins_with(const struct gremlin_traversal *traversal, struct slice name)
{
    return traversal->steps.count && slice_equal(traversal->steps.items[0].name, name);
}

static bool is_alone(const struct gremlin_traversal *traversal, struct slice name)
{
    return traversal->steps.count == 1 && begins_with(traversal, name) &&
           traversal->steps.items[0].count;
}

static bool pattern_compile(struct gremlin_compiler *compiler, struct match *match,
                            const struct gremlin_traversal *traversal, struct error *err);

/* The patterns among the arguments of and() or or(), one by one. */
static bool pattern_of(struct gremlin_compiler *compiler, struct match *match,
                       const struct gremlin_instruction *in, size_t argument, struct error *err)
{
    if (!gremlin_argument_is_traversal(in->arguments[argument]))
        return REFUSE(err, "%.*s() within match() takes patterns", SLICE_ARG(in->name));
    return pattern_compile(compiler, match, gremlin_argument_traversal(in->arguments[argument]),
                           err);
}

static bool pattern_add(struct match *match, enum pattern_kind kind, struct pattern **ret_pattern,
                        struct error *err)
{
    if (match->count == PATTERNS_MAX)
        return REFUSE(err, "match() takes at most %d patterns", PATTERNS_MAX);
    *ret_pattern = &match->patterns[match->count++];
    **ret_pattern = (struct pattern){.kind = kind, .end = -1};
    return true;
}

/* Bits from one pattern to before another. */
static uint32_t bits_between(size_t from, size_t to)
{
    uint64_t below = (uint64_t)1 << to;

    return (uint32_t)(below - ((uint64_t)1 << from));
}

/* What an alternative adds sleeps; but of that what an or() within it adds is not woken with it. */
static bool choice_compile(struct gremlin_compiler *compiler, struct match *match,
                           const struct gremlin_instruction *in, struct error *err)
{
    struct pattern *choice = NULL;

    if (!pattern_add(match, PATTERN_CHOICE, &choice, err))
        return false;
    choice->alternatives = ARENA_ARRAY(compiler->run->arena, uint32_t, in->count);
    for (size_t i = 0; i < in->count; i++) {
        size_t from = match->count;
        uint32_t asleep = match->asleep;

        if (!pattern_of(compiler, match, in, i, err))
            return false;
        choice->alternatives[choice->alternative_count++] =
            bits_between(from, match->count) & ~(match->asleep & ~asleep);
        match->asleep |= bits_between(from, match->count);
    }
    return true;
}

static bool path_compile(struct gremlin_compiler *compiler, struct match *match,
                         struct pattern *pattern, struct error *err)
{
    if (!pattern->part->first_label.data)
        return REFUSE(err, "All match()-traversals must have a single start label "
                           "(i.e. variable)");
    pattern->start = variable_of(compiler, match, pattern->part->first_label);
    if (pattern->part->last_label.data)
        pattern->end = variable_of(compiler, match, pattern->part->last_label);
    if (pattern->start < 0)
        return REFUSE(err, "match() has too many variables");
    return true;
}

static bool pattern_compile(struct gremlin_compiler *compiler, struct match *match,
                            const struct gremlin_traversal *traversal, struct error *err)
{
    const struct gremlin_instruction *in = traversal->steps.items;
    bool filter = begins_with(traversal, SLICE("where")) || begins_with(traversal, SLICE("not"));
    struct pattern *pattern = NULL;

    /* and(...): its patterns are patterns */
    for (size_t i = 0; is_alone(traversal, SLICE("and")) && i < in->count; i++)
        if (!pattern_of(compiler, match, in, i, err))
            return false;
    if (is_alone(traversal, SLICE("and")))
        return true;
    if (is_alone(traversal, SLICE("or")))
        return choice_compile(compiler, match, in, err);
    if (!pattern_add(match, filter ? PATTERN_FILTER : PATTERN_PATH, &pattern, err))
        return false;
    if (!gremlin_compile_part(compiler, traversal,
                              (struct gremlin_part_options){.where = filter, .pattern = !filter},
                              &pattern->part, err))
        return false;
    gremlin_step_own(compiler, &match->step, pattern->part);
    return filter || path_compile(compiler, match, pattern, err);
}

/* The variable that is where others come from: no pattern ends at it. */
static int first_variable(const struct match *match)
{
    for (size_t i = 0; i < match->count; i++) {
        bool ends = match->patterns[i].kind != PATTERN_PATH;

        for (size_t j = 0; !ends && j < match->count; j++)
            ends = match->patterns[j].kind == PATTERN_PATH &&
                   match->patterns[j].end == match->patterns[i].start;
        if (!ends)
            return match->patterns[i].start;
    }
    for (size_t i = 0; i < match->count; i++)
        if (match->patterns[i].kind == PATTERN_PATH)
            return match->patterns[i].start;
    return 0;
}

bool compile_match(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct match *match = STEP_ADD(compiler, raw, &step_match, struct match);

    match->step.local = true;
    for (size_t i = 0; i < raw->count; i++) {
        if (!gremlin_argument_is_traversal(raw->arguments[i]))
            return gremlin_argument_wrong(raw, i, "a traversal", err);
        if (!pattern_compile(compiler, match, gremlin_argument_traversal(raw->arguments[i]), err))
            return false;
    }
    if (!match->variable_count)
        return REFUSE(err, "match() needs a pattern that begins with as()");
    match->first = first_variable(match);
    return true;
}
