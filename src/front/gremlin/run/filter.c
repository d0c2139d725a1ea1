/* Filters: has() and its kin, is(), children that must or must not yield, paths that repeat. What
 * the graph can decide itself is handed to it (fold_conditions). */
#include "base/clock.h"
#include "front/gremlin/run/compile_private.h"

/* --- Operands -------------------------------------------------------------------------------- */

/* 3.8 calls a comparison that cannot be made false at once; before, not() of it was no truth. */
static enum gremlin_truth predicate_truth(struct gremlin_run *run, struct gremlin_value operand,
                                          struct gremlin_value value)
{
    const struct gremlin_predicate *predicate = gremlin_predicate(operand);
    enum gremlin_truth truth;

    switch (predicate->name) {
    case GREMLIN_P_NOT:
        return gremlin_truth_not(predicate_truth(run, predicate->values[0], value));
    case GREMLIN_P_AND:
        truth = GREMLIN_TRUE;
        for (size_t i = 0; i < predicate->count; i++)
            truth = gremlin_truth_and(truth, predicate_truth(run, predicate->values[i], value));
        return truth;
    case GREMLIN_P_OR:
        truth = GREMLIN_FALSE;
        for (size_t i = 0; i < predicate->count; i++)
            truth = gremlin_truth_or(truth, predicate_truth(run, predicate->values[i], value));
        return truth;
    default:
        if (run->faulted ||
            !gremlin_predicate_test(predicate, value, &run->context, &truth, &run->fault)) {
            run->faulted = true;
            return GREMLIN_FALSE;
        }
        return truth == GREMLIN_UNKNOWN && run->v38 ? GREMLIN_FALSE : truth;
    }
}

bool gremlin_operand_test(struct gremlin_run *run, struct gremlin_value operand,
                          struct gremlin_value value)
{
    if (operand.type == GREMLIN_PREDICATE)
        return predicate_truth(run, operand, value) == GREMLIN_TRUE;
    return gremlin_equal(operand, value);
}

bool gremlin_operand_check(struct gremlin_compiler *compiler, struct gremlin_value operand,
                           struct error *err)
{
    return operand.type != GREMLIN_PREDICATE ||
           gremlin_predicate_check(gremlin_predicate(operand), &compiler->run->context, err);
}

/* Ids are texts: those of an operand become so. What can be no id is left as it is: it is equal to
 * none. */
static struct gremlin_value id_operand(struct gremlin_compiler *compiler,
                                       struct gremlin_value operand)
{
    struct gremlin_heap *heap = compiler->run->heap;
    struct gremlin_value text;

    if (gremlin_is_element(operand))
        return id_operand(compiler, gremlin_element(operand)->id);
    if (operand.type == GREMLIN_PREDICATE) {
        const struct gremlin_predicate *predicate = gremlin_predicate(operand);
        struct gremlin_value *values =
            ARENA_ARRAY(compiler->run->arena, struct gremlin_value, predicate->count + 1);
        struct gremlin_value changed;
        struct error ignored;

        for (size_t i = 0; i < predicate->count; i++)
            values[i] = id_operand(compiler, predicate->values[i]);
        if (gremlin_predicate_new(heap, gremlin_predicate_text(predicate->name), values,
                                  predicate->count, &changed, &ignored))
            return changed;
        return operand;
    }
    if (!gremlin_is_null(operand) && gremlin_id_text(heap, &operand, &text))
        return text;
    return operand;
}

/* --- has() ----------------------------------------------------------------------------------- */

enum has_kind { HAS_LABEL, HAS_ID, HAS_PROPERTY, HAS_KEY, HAS_NOT, HAS_T_KEY, HAS_T_VALUE };

struct has {
    struct gremlin_step step;
    enum has_kind kind;
    struct slice key;
    struct gremlin_value operand;
};

static bool has_property(struct gremlin_run *run, const struct has *has,
                         struct gremlin_value element, bool *ret_keep, struct error *err)
{
    struct gremlin_value list;
    const struct gremlin_list *values;

    if (!gremlin_element_list(run, element, &has->key, 1, true, &list, err))
        return false;
    values = gremlin_list(list);
    if (has->kind != HAS_PROPERTY)
        *ret_keep = (values->count > 0) == (has->kind == HAS_KEY);
    else {
        *ret_keep = false;
        for (size_t i = 0; i < values->count && !*ret_keep; i++)
            *ret_keep = gremlin_operand_test(run, has->operand, values->items[i]);
    }
    gremlin_value_unref(list);
    return true;
}

static bool has_one(struct gremlin_run *run, struct gremlin_step *step,
                    struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct has *has = (struct has *)step;
    struct gremlin_value object = traverser->value, part;
    bool found;

    if (has->kind == HAS_T_KEY || has->kind == HAS_T_VALUE) {
        struct gremlin_enum word = {GREMLIN_ENUM_T,
                                    has->kind == HAS_T_KEY ? GREMLIN_T_KEY : GREMLIN_T_VALUE};

        if (object.type != GREMLIN_PROPERTY && object.type != GREMLIN_VERTEX_PROPERTY) {
            *ret_keep = false;
            return true;
        }
        if (!gremlin_value_of_token(run, object, word, &part, &found, err))
            return false;
        *ret_keep = gremlin_operand_test(run, has->operand, part);
        gremlin_value_unref(part);
        return true;
    }
    if (!gremlin_is_element(object)) {
        if (has->kind == HAS_KEY || has->kind == HAS_NOT || object.type == GREMLIN_PROPERTY) {
            *ret_keep = has->kind == HAS_NOT;
            return true;
        }
        return FAIL(err, "%.*s() takes elements: a %s cannot be cast to Element",
                    SLICE_ARG(step->instruction->name), gremlin_type_name(object.type));
    }
    if (has->kind == HAS_LABEL || has->kind == HAS_ID) {
        *ret_keep = gremlin_operand_test(run, has->operand,
                                         has->kind == HAS_LABEL ? gremlin_element(object)->label
                                                                : gremlin_element(object)->id);
        return true;
    }
    return has_property(run, has, object, ret_keep, err);
}

static const struct gremlin_step_kind step_has = {
    .name = "has", .flags = STEP_FILTERS, .one = has_one};

static bool add_has(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                    enum has_kind kind, struct slice key, struct gremlin_value operand,
                    struct error *err)
{
    struct has *has = STEP_ADD(compiler, raw, &step_has, struct has);

    has->kind = kind;
    has->key = key;
    has->operand = kind == HAS_ID ? id_operand(compiler, operand) : operand;
    return gremlin_operand_check(compiler, has->operand, err);
}

/* Several values: any of them. */
static bool operand_any(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                        size_t from, struct gremlin_value *ret_operand, struct error *err)
{
    struct gremlin_value list;

    if (raw->count - from == 1 && !gremlin_value_iterates(raw->arguments[from])) {
        *ret_operand = raw->arguments[from];
        return true;
    }
    list = gremlin_list_new(compiler->run->heap, raw->count);
    for (size_t i = from; i < raw->count; i++) {
        struct gremlin_value items = gremlin_value_listed(compiler->run, raw->arguments[i]);

        for (size_t j = 0; j < gremlin_list(items)->count; j++)
            gremlin_list_add(list, gremlin_list(items)->items[j]);
        gremlin_value_unref(items);
    }
    return gremlin_predicate_new(compiler->run->heap, SLICE("within"), gremlin_list(list)->items,
                                 gremlin_list(list)->count, ret_operand, err);
}

/* One test that has() or one of its kin asks for. */
struct test {
    enum has_kind kind;
    struct slice key;
    struct gremlin_value operand;
};

static bool token_kind(struct gremlin_enum word, enum has_kind *ret_kind)
{
    switch (word.word) {
    case GREMLIN_T_ID:
        *ret_kind = HAS_ID;
        return true;
    case GREMLIN_T_LABEL:
        *ret_kind = HAS_LABEL;
        return true;
    case GREMLIN_T_KEY:
        *ret_kind = HAS_T_KEY;
        return true;
    default:
        *ret_kind = HAS_T_VALUE;
        return true;
    }
}

/* What a has() says, as at most two tests. *ret_count 0: it needs a child. */
static bool tests_of_has(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                         struct test tests[2], size_t *ret_count, struct error *err)
{
    const struct gremlin_value *arguments = raw->arguments;
    size_t at = 0, count = 0;

    *ret_count = 0;
    if (raw->count == 3) {
        if (!gremlin_is_string(arguments[0]) && !gremlin_is_null(arguments[0]) &&
            arguments[0].type != GREMLIN_PREDICATE)
            return gremlin_argument_wrong(raw, 0, "a label", err);
        tests[count++] = (struct test){HAS_LABEL, SLICE_NONE, arguments[at++]};
    }
    if (arguments[at].type == GREMLIN_ENUM && arguments[at].word.family == GREMLIN_ENUM_T) {
        struct test *test = &tests[count++];

        if (raw->count == at + 1)
            return gremlin_argument_wrong(raw, at + 1, "a value", err);
        token_kind(arguments[at].word, &test->kind);
        test->operand = arguments[at + 1];
    } else {
        struct slice key;

        if (gremlin_is_null(arguments[at])) {
            tests[count++] = (struct test){HAS_KEY, SLICE("\0"), GREMLIN_NOTHING};
            *ret_count = count;
            return true;
        }
        if (!gremlin_argument_text(raw, at, &key, err))
            return false;
        if (raw->count == at + 1)
            tests[count++] = (struct test){HAS_KEY, key, GREMLIN_NOTHING};
        else if (compiler->run->options->cloud && slice_equal(key, SLICE("id")))
            tests[count++] = (struct test){HAS_ID, SLICE_NONE, arguments[at + 1]};
        else
            tests[count++] = (struct test){HAS_PROPERTY, key, arguments[at + 1]};
    }
    if (raw->count > at + 1 && gremlin_argument_is_traversal(arguments[at + 1]))
        return true;
    *ret_count = count;
    return true;
}

static bool tests_of(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                     struct test tests[2], size_t *ret_count, struct error *err)
{
    struct slice key;

    *ret_count = 1;
    if (gremlin_raw_is(raw, "has"))
        return tests_of_has(compiler, raw, tests, ret_count, err);
    tests[0] = (struct test){.kind = HAS_LABEL};
    if (gremlin_raw_is(raw, "hasNot")) {
        if (!gremlin_argument_text(raw, 0, &key, err))
            return false;
        tests[0] = (struct test){HAS_NOT, key, GREMLIN_NOTHING};
        return true;
    }
    if (gremlin_raw_is(raw, "hasId"))
        tests[0].kind = HAS_ID;
    else if (gremlin_raw_is(raw, "hasKey"))
        tests[0].kind = HAS_T_KEY;
    else if (gremlin_raw_is(raw, "hasValue"))
        tests[0].kind = HAS_T_VALUE;
    return operand_any(compiler, raw, 0, &tests[0].operand, err);
}

static bool has_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                        struct error *err)
{
    struct test tests[2];
    size_t count;

    if (!tests_of(compiler, raw, tests, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!add_has(compiler, raw, tests[i].kind, tests[i].key, tests[i].operand, err))
            return false;
    return true;
}

/* has(key, traversal): the values of the key must yield something. */
static bool has_by_child(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         struct error *err)
{
    size_t at = raw->count - 2;
    struct gremlin_heap *heap = compiler->run->heap;
    struct gremlin_value made = gremlin_traversal_new(heap, false);
    const struct gremlin_traversal *given =
        gremlin_argument_traversal(raw->arguments[raw->count - 1]);
    struct gremlin_traversal *traversal = gremlin_traversal(made);
    struct gremlin_value key = raw->arguments[at];
    struct gremlin_instruction *in;
    struct gremlin_part *part;

    if (raw->count == 3 && !add_has(compiler, raw, HAS_LABEL, SLICE_NONE, raw->arguments[0], err))
        return false;
    in = gremlin_traversal_add(traversal, &traversal->steps,
                               key.type == GREMLIN_ENUM ? gremlin_word_text(key.word)
                                                        : SLICE("values"));
    if (key.type != GREMLIN_ENUM)
        gremlin_instruction_add_take(traversal, in, gremlin_value_ref(key));
    for (size_t i = 0; i < given->steps.count; i++) {
        const struct gremlin_instruction *step = &given->steps.items[i];

        in = gremlin_traversal_add(traversal, &traversal->steps, step->name);
        for (size_t j = 0; j < step->count; j++)
            gremlin_instruction_add_take(traversal, in, gremlin_value_ref(step->arguments[j]));
    }
    return gremlin_compile_part(compiler, traversal, (struct gremlin_part_options){.test = true},
                                &part, err) &&
           gremlin_add_filter(compiler, raw, part, false);
}

bool compile_has(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    if (raw->count >= 2 && gremlin_argument_is_traversal(raw->arguments[raw->count - 1]))
        return has_by_child(compiler, raw, err);
    return has_compile(compiler, raw, err);
}

bool compile_has_label(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                       struct error *err)
{
    return has_compile(compiler, raw, err);
}

bool compile_has_id(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return has_compile(compiler, raw, err);
}

bool compile_has_key(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return has_compile(compiler, raw, err);
}

bool compile_has_value(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                       struct error *err)
{
    return has_compile(compiler, raw, err);
}

bool compile_has_not(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return has_compile(compiler, raw, err);
}

/* --- Conditions of the graph ----------------------------------------------------------------- */

void gremlin_conditions_add(struct gremlin_compiler *compiler,
                            struct gremlin_conditions *conditions,
                            struct gremlin_condition condition)
{
    if (conditions->count == conditions->capacity) {
        size_t capacity = conditions->capacity ? conditions->capacity * 2 : 4;
        struct gremlin_condition *grown =
            ARENA_ARRAY(compiler->run->arena, struct gremlin_condition, capacity);

        if (conditions->count)
            memcpy(grown, conditions->items, conditions->count * sizeof *grown);
        conditions->items = grown;
        conditions->capacity = capacity;
    }
    conditions->items[conditions->count++] = condition;
}

static bool test_condition(struct gremlin_compiler *compiler, const struct test *test,
                           struct gremlin_condition *ret_condition, struct error *err)
{
    static const enum gremlin_condition_kind kinds[] = {
        [HAS_LABEL] = GREMLIN_CONDITION_LABEL,       [HAS_ID] = GREMLIN_CONDITION_ID,
        [HAS_PROPERTY] = GREMLIN_CONDITION_PROPERTY, [HAS_KEY] = GREMLIN_CONDITION_HAS_KEY,
        [HAS_NOT] = GREMLIN_CONDITION_HAS_NOT,
    };
    struct gremlin_value operand =
        test->kind == HAS_ID ? id_operand(compiler, test->operand) : test->operand;

    if (test->kind > HAS_NOT)
        return false;
    if (!gremlin_operand_check(compiler, operand, err))
        return false;
    *ret_condition =
        (struct gremlin_condition){.kind = kinds[test->kind], .key = test->key, .operand = operand};
    return gremlin_condition_is_stored(ret_condition);
}

static bool raw_tests(const struct gremlin_raw *raw)
{
    return gremlin_raw_is(raw, "has") || gremlin_raw_is(raw, "hasLabel") ||
           gremlin_raw_is(raw, "hasId") || gremlin_raw_is(raw, "hasNot");
}

static void labels_join(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                        const struct gremlin_raw *next)
{
    const struct gremlin_table *labels;

    if (gremlin_is_null(next->labels))
        return;
    if (gremlin_is_null(raw->labels))
        raw->labels = gremlin_set_new(compiler->run->heap);
    labels = gremlin_table(next->labels);
    for (size_t i = 0; i < labels->count; i++)
        gremlin_set_add(raw->labels, labels->rows[i].key);
}

bool gremlin_fold_conditions(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                             struct gremlin_conditions *conditions, struct error *err)
{
    const struct gremlin_raw *next;

    while ((next = gremlin_raw_next(compiler)) && raw_tests(next)) {
        struct test tests[2];
        struct gremlin_condition made[2];
        size_t count;
        bool stored = true;

        if (!tests_of(compiler, next, tests, &count, err))
            return false;
        for (size_t i = 0; i < count && stored; i++) {
            err->code = ERROR_NONE;
            stored = test_condition(compiler, &tests[i], &made[i], err);
            if (!stored && err->code != ERROR_NONE)
                return false;
        }
        if (!stored || !count)
            return true;
        for (size_t i = 0; i < count; i++)
            gremlin_conditions_add(compiler, conditions, made[i]);
        labels_join(compiler, raw, next);
        compiler->index++;
    }
    return true;
}

/* --- is(), children -------------------------------------------------------------------------- */

struct is {
    struct gremlin_step step;
    struct gremlin_value operand;
};

static bool is_one(struct gremlin_run *run, struct gremlin_step *step,
                   struct gremlin_walker *traverser, bool *ret_keep, struct error *err UNUSED)
{
    *ret_keep = gremlin_operand_test(run, ((struct is *)step)->operand, traverser->value);
    return true;
}

static const struct gremlin_step_kind step_is = {
    .name = "is", .flags = STEP_FILTERS | STEP_SEES, .one = is_one};

bool gremlin_add_is(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                    struct gremlin_value operand, struct error *err)
{
    struct is *is = STEP_ADD(compiler, raw, &step_is, struct is);

    is->operand = operand;
    return gremlin_operand_check(compiler, operand, err);
}

bool compile_is(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return gremlin_add_is(compiler, raw, raw->arguments[0], err);
}

struct filter {
    struct gremlin_step step;
    bool negate;
    bool all; /* of several children: all of them, or any */
};

static bool filter_one(struct gremlin_run *run, struct gremlin_step *step,
                       struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct filter *filter = (struct filter *)step;
    bool yes = filter->all;

    for (size_t i = 0; i < step->part_count && yes == filter->all; i++)
        if (!gremlin_part_test(run, step->parts[i], traverser, &yes, err))
            return false;
    *ret_keep = yes != filter->negate;
    return true;
}

static const struct gremlin_step_kind step_filter = {
    .name = "filter", .flags = STEP_FILTERS, .one = filter_one};

bool gremlin_add_filter(struct gremlin_compiler *compiler, const struct gremlin_raw *raw,
                        struct gremlin_part *part, bool negate)
{
    struct filter *filter = STEP_ADD(compiler, raw, &step_filter, struct filter);

    filter->step.local = true;
    filter->negate = negate;
    filter->all = true;
    gremlin_step_own(compiler, &filter->step, part);
    return true;
}

bool gremlin_add_logic(struct gremlin_compiler *compiler, const struct gremlin_raw *raw, bool all,
                       struct gremlin_part **parts, size_t count);
bool gremlin_add_logic(struct gremlin_compiler *compiler, const struct gremlin_raw *raw, bool all,
                       struct gremlin_part **parts, size_t count)
{
    struct filter *filter = STEP_ADD(compiler, raw, &step_filter, struct filter);

    filter->step.local = true;
    filter->all = all;
    for (size_t i = 0; i < count; i++)
        gremlin_step_own(compiler, &filter->step, parts[i]);
    return true;
}

static bool logic_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, bool all,
                          struct error *err)
{
    struct gremlin_part **parts =
        ARENA_ARRAY(compiler->run->arena, struct gremlin_part *, raw->count + 1);

    for (size_t i = 0; i < raw->count; i++) {
        if (!gremlin_argument_is_traversal(raw->arguments[i]))
            return gremlin_argument_wrong(raw, i, "a traversal", err);
        if (!gremlin_compile_argument(
                compiler, raw->arguments[i],
                (struct gremlin_part_options){.test = true, .where = compiler->where}, &parts[i],
                err))
            return false;
    }
    return gremlin_add_logic(compiler, raw, all, parts, raw->count);
}

bool compile_and(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return logic_compile(compiler, raw, true, err);
}

bool compile_or(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return logic_compile(compiler, raw, false, err);
}

static bool filter_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, bool negate,
                           struct error *err)
{
    struct gremlin_part *part;

    if (!gremlin_argument_is_traversal(raw->arguments[0]) &&
        raw->arguments[0].type != GREMLIN_PREDICATE)
        return gremlin_argument_wrong(raw, 0, "a traversal or predicate", err);
    return gremlin_compile_argument(
               compiler, raw->arguments[0],
               (struct gremlin_part_options){.test = true, .where = compiler->where}, &part, err) &&
           gremlin_add_filter(compiler, raw, part, negate);
}

bool compile_filter(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return filter_compile(compiler, raw, false, err);
}

bool compile_not(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return filter_compile(compiler, raw, true, err);
}

/* --- Chance and time ------------------------------------------------------------------------- */

struct coin {
    struct gremlin_step step;
    double chance;
};

static bool coin_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser UNUSED, bool *ret_keep,
                     struct error *err UNUSED)
{
    double thrown = (double)(random_next(gremlin_run_random(run)) >> 11) / 9007199254740992.0;

    *ret_keep = thrown < ((struct coin *)step)->chance;
    return true;
}

static const struct gremlin_step_kind step_coin = {
    .name = "coin", .flags = STEP_FILTERS | STEP_CHANCE | STEP_SEES, .one = coin_one};

bool compile_coin(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct coin *coin = STEP_ADD(compiler, raw, &step_coin, struct coin);

    if (!gremlin_is_number(raw->arguments[0]))
        return gremlin_argument_wrong(raw, 0, "a number", err);
    coin->chance = gremlin_number_double(raw->arguments[0]);
    return true;
}

struct time_limit {
    struct gremlin_step step;
    int64_t ms, until;
};

static bool time_limit_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                            struct gremlin_walkers *out, struct error *err)
{
    struct time_limit *limit = (struct time_limit *)step;
    int64_t now = clock_monotonic_ms();

    if (!limit->until)
        limit->until = now + limit->ms;
    if (now > limit->until)
        return true;
    return gremlin_step_pull(run, step->previous, want, out, err);
}

static const struct gremlin_step_kind step_time_limit = {
    .name = "timeLimit", .flags = STEP_STATEFUL | STEP_FILTERS, .pull = time_limit_pull};

bool compile_time_limit(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                        struct error *err)
{
    struct time_limit *limit = STEP_ADD(compiler, raw, &step_time_limit, struct time_limit);

    return gremlin_argument_whole(raw, 0, &limit->ms, err);
}

/* --- Nothing, all, any ----------------------------------------------------------------------- */

static bool discard_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want UNUSED,
                         struct gremlin_walkers *out, struct error *err)
{
    size_t from = out->count;

    for (;;) {
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, out, err))
            return false;
        if (out->count == from)
            return true;
        while (out->count > from)
            gremlin_walker_done(&out->items[--out->count]);
    }
}

static const struct gremlin_step_kind step_discard = {
    .name = "discard", .flags = STEP_FILTERS | STEP_HEADS | STEP_ORDER_FREE, .pull = discard_pull};

bool compile_discard(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                     struct error *err UNUSED)
{
    STEP_ADD(compiler, raw, &step_discard, struct gremlin_step);
    return true;
}

enum quantity { QUANTITY_ALL, QUANTITY_ANY, QUANTITY_NONE };
struct quantifier {
    struct gremlin_step step;
    enum quantity quantity;
    struct gremlin_value operand;
};

static bool quantifier_one(struct gremlin_run *run, struct gremlin_step *step,
                           struct gremlin_walker *traverser, bool *ret_keep,
                           struct error *err UNUSED)
{
    const struct quantifier *quantifier = (struct quantifier *)step;
    struct gremlin_value list;
    size_t hits = 0;

    *ret_keep = false;
    if (!gremlin_value_iterates(traverser->value))
        return true;
    list = gremlin_value_listed(run, traverser->value);
    for (size_t i = 0; i < gremlin_list(list)->count; i++)
        hits += gremlin_operand_test(run, quantifier->operand, gremlin_list(list)->items[i]);
    *ret_keep = quantifier->quantity == QUANTITY_ALL   ? hits == gremlin_list(list)->count
                : quantifier->quantity == QUANTITY_ANY ? hits > 0
                                                       : hits == 0;
    gremlin_value_unref(list);
    return true;
}

static const struct gremlin_step_kind step_quantifier = {
    .name = "quantifier", .flags = STEP_FILTERS, .one = quantifier_one};

static bool quantifier_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                               enum quantity quantity, struct error *err)
{
    struct quantifier *quantifier = STEP_ADD(compiler, raw, &step_quantifier, struct quantifier);

    quantifier->quantity = quantity;
    quantifier->operand = raw->arguments[0];
    return gremlin_operand_check(compiler, quantifier->operand, err);
}

bool compile_all(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return quantifier_compile(compiler, raw, QUANTITY_ALL, err);
}

bool compile_any(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    return quantifier_compile(compiler, raw, QUANTITY_ANY, err);
}

bool compile_none(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    if (raw->count)
        return quantifier_compile(compiler, raw, QUANTITY_NONE, err);
    return compile_discard(compiler, raw, err);
}

/* --- Paths ----------------------------------------------------------------------------------- */

struct path_filter {
    struct gremlin_step step;
    bool simple;
    struct slice from, to; /* absent: the ends */
};

void gremlin_trail_release(struct gremlin_run *run, struct gremlin_trail_nodes *nodes)
{
    gremlin_heap_release(run->heap, nodes->nodes, nodes->room);
}

bool gremlin_trail_section(struct gremlin_run *run, const struct gremlin_walker *traverser,
                           struct slice from, struct slice to,
                           struct gremlin_trail_nodes *ret_nodes, struct error *err)
{
    const struct gremlin_path *trail = traverser->trail;
    size_t length = trail ? trail->length : 0, first = 0, last = length;
    struct gremlin_trail_nodes nodes = {.room = (length + 1) * sizeof(void *)};

    nodes.nodes = gremlin_heap_alloc(run->heap, nodes.room);
    if (trail)
        gremlin_path_nodes(trail, nodes.nodes);
    if (from.data) {
        while (first < length && !gremlin_trail_has(nodes.nodes[first], from))
            first++;
        if (first == length) {
            gremlin_trail_release(run, &nodes);
            return FAIL(err, "The provided key does not exist in the path: %.*s", SLICE_ARG(from));
        }
    }
    if (to.data) {
        while (last > first && !gremlin_trail_has(nodes.nodes[last - 1], to))
            last--;
        if (last == first) {
            gremlin_trail_release(run, &nodes);
            return FAIL(err, "The provided key does not exist in the path: %.*s", SLICE_ARG(to));
        }
    }
    nodes.count = last - first;
    memmove(nodes.nodes, nodes.nodes + first, nodes.count * sizeof *nodes.nodes);
    *ret_nodes = nodes;
    return true;
}

static bool path_filter_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct path_filter *filter = (struct path_filter *)step;
    struct gremlin_value seen;
    struct gremlin_trail_nodes nodes;
    bool simple = true, good = true, found = true;

    if (!gremlin_trail_section(run, traverser, filter->from, filter->to, &nodes, err))
        return false;
    seen = gremlin_set_new(run->heap);
    for (size_t i = 0; good && found && simple && i < nodes.count; i++) {
        struct gremlin_value value;

        good = gremlin_by_apply_value(run, gremlin_step_by(step, i), traverser,
                                      nodes.nodes[i]->value, &value, &found, err);
        if (good && found) {
            simple = gremlin_set_add(seen, value);
            gremlin_value_unref(value);
        }
    }
    *ret_keep = found && simple == filter->simple;
    gremlin_value_unref(seen);
    gremlin_trail_release(run, &nodes);
    return good;
}

static const struct gremlin_step_kind step_path_filter = {
    .name = "pathFilter", .flags = STEP_FILTERS | STEP_NEEDS_PATH, .one = path_filter_one};

static bool path_filter_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                                bool simple, struct error *err)
{
    struct path_filter *filter = STEP_ADD(compiler, raw, &step_path_filter, struct path_filter);

    filter->simple = simple;
    if (raw->from) {
        if (raw->from->count != 1 || !gremlin_is_string(raw->from->arguments[0]))
            return REFUSE(err, "from() of a path takes a label");
        filter->from = slice_keep(compiler, gremlin_bytes(raw->from->arguments[0]));
    }
    if (raw->to) {
        if (raw->to->count != 1 || !gremlin_is_string(raw->to->arguments[0]))
            return REFUSE(err, "to() of a path takes a label");
        filter->to = slice_keep(compiler, gremlin_bytes(raw->to->arguments[0]));
    }
    return true;
}

bool compile_simple_path(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         struct error *err)
{
    return path_filter_compile(compiler, raw, true, err);
}

bool compile_cyclic_path(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         struct error *err)
{
    return path_filter_compile(compiler, raw, false, err);
}
