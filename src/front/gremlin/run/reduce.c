/* Reducing: count, sum, min, max, mean, fold; of the stream, or with local of the collection a
 * traverser has. An empty stream counts 0 and folds to an empty list; the others then give nothing.
 */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/value/arithmetic.h"

enum reduction { REDUCE_COUNT, REDUCE_SUM, REDUCE_MIN, REDUCE_MAX, REDUCE_MEAN, REDUCE_FOLD };

struct tally {
    struct gremlin_value value; /* null: none yet */
    uint64_t count;
    bool nulls; /* something came, but it was null */
};

struct reduce {
    struct gremlin_step step;
    enum reduction reduction;
    struct gremlin_value seed; /* of fold(seed, operator) */
    bool folds;                /* with an operator */
    struct gremlin_enum operator;
};

static bool not_a_number(struct gremlin_value value, const char *what, struct error *err)
{
    return FAIL(err, "%s() takes numbers: a %s cannot be cast to Number", what,
                gremlin_type_name(value.type));
}

static bool sum_add(struct gremlin_run *run, struct tally *tally, struct gremlin_value value,
                    uint64_t bulk, bool local, const char *what, struct error *err)
{
    struct gremlin_value part, sum;

    if (!gremlin_is_number(value))
        return not_a_number(value, what, err);
    /* Up to 3.7 a value is multiplied by its bulk, a long. */
    if (bulk == 1 && (run->v38 || local))
        part = gremlin_value_ref(value);
    else if (!gremlin_number_compute(run->heap, GREMLIN_MULTIPLY, value,
                                     gremlin_long((int64_t)bulk), &part, err))
        return false;
    if (gremlin_is_null(tally->value)) {
        tally->value = part;
        return true;
    }
    if (!gremlin_number_compute(run->heap, GREMLIN_ADD, tally->value, part, &sum, err)) {
        gremlin_value_unref(part);
        return false;
    }
    gremlin_value_unref(part);
    gremlin_value_replace_take(&tally->value, sum);
    return true;
}

static bool extreme_add(struct tally *tally, struct gremlin_value value, bool least,
                        struct error *err)
{
    struct gremlin_value chosen;

    if (gremlin_is_null(tally->value)) {
        tally->value = gremlin_value_ref(value);
        return true;
    }
    if (!(least ? gremlin_value_min(tally->value, value, &chosen, err)
                : gremlin_value_max(tally->value, value, &chosen, err)))
        return false;
    gremlin_value_replace_take(&tally->value, chosen);
    return true;
}

static bool tally_fold(struct gremlin_run *run, const struct reduce *reduce, struct tally *tally,
                       struct gremlin_value value, uint64_t bulk, struct error *err)
{
    if (!reduce->folds) {
        if (gremlin_is_null(tally->value))
            tally->value = gremlin_list_new(run->heap, 0);
        for (uint64_t i = 0; i < bulk; i++) {
            if (gremlin_heap_failed(run->heap))
                return gremlin_heap_error(run->heap, err);
            gremlin_list_add(tally->value, value);
        }
        return true;
    }
    if (!tally->count)
        tally->value = gremlin_value_ref(reduce->seed);
    for (uint64_t i = 0; i < bulk; i++) {
        struct gremlin_value result;

        if (!query_work(&run->context, 1, err) ||
            !gremlin_operator_apply(run->heap, reduce->operator.word, tally->value, value, &result,
                                    err))
            return false;
        gremlin_value_replace_take(&tally->value, result);
    }
    return true;
}

static bool tally_add(struct gremlin_run *run, const struct reduce *reduce, struct tally *tally,
                      struct gremlin_value value, uint64_t bulk, bool local, struct error *err)
{
    static const char *const names[] = {"count", "sum", "min", "max", "mean", "fold"};
    bool good = true;

    if (gremlin_is_null(value) && reduce->reduction != REDUCE_COUNT &&
        reduce->reduction != REDUCE_FOLD) {
        tally->nulls = true;
        return true;
    }
    switch (reduce->reduction) {
    case REDUCE_COUNT:
        break;
    case REDUCE_SUM:
    case REDUCE_MEAN:
        good = sum_add(run, tally, value, bulk, local, names[reduce->reduction], err);
        break;
    case REDUCE_MIN:
    case REDUCE_MAX:
        good = extreme_add(tally, value, reduce->reduction == REDUCE_MIN, err);
        break;
    case REDUCE_FOLD:
        good = tally_fold(run, reduce, tally, value, bulk, err);
        break;
    }
    tally->count += bulk;
    return good;
}

/* The result, which is taken out of the tally. *ret_found false: there is none. */
static struct gremlin_value tally_result(struct gremlin_run *run, const struct reduce *reduce,
                                         struct tally *tally, bool *ret_found)
{
    struct gremlin_value value = gremlin_value_take(&tally->value);

    *ret_found = true;
    switch (reduce->reduction) {
    case REDUCE_COUNT:
        return gremlin_long((int64_t)tally->count);
    case REDUCE_FOLD:
        if (tally->count)
            return value;
        return reduce->folds ? gremlin_value_ref(reduce->seed) : gremlin_list_new(run->heap, 0);
    case REDUCE_MEAN: {
        double mean;

        *ret_found = tally->count > 0 || tally->nulls;
        if (!tally->count)
            return value;
        mean = gremlin_number_double(value) / (double)tally->count;
        gremlin_value_unref(value);
        return gremlin_double(mean);
    }
    default: /* of nulls alone, null */
        *ret_found = tally->count > 0 || tally->nulls;
        return value;
    }
}

void gremlin_reduced_push(struct gremlin_run *run, const struct gremlin_step *step,
                          struct gremlin_value value, const uint32_t loops[LOOPS_DEPTH_MAX],
                          struct gremlin_walkers *out)
{
    struct gremlin_walker result = {.bulk = 1, .sack = gremlin_value_ref(run->sack_seed)};

    memcpy(result.loops, loops, sizeof result.loops);
    gremlin_walker_set(run, &result, value, step);
    gremlin_walkers_push(run, out, result);
}

static bool reduce_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want UNUSED,
                        struct gremlin_walkers *out, struct error *err)
{
    const struct reduce *reduce = (struct reduce *)step;
    struct tally tally = {0};
    uint32_t loops[LOOPS_DEPTH_MAX] = {0};
    bool found;

    if (step->emitted)
        return true;
    for (;;) {
        struct gremlin_walkers *batch = &step->pending;

        gremlin_walkers_clear(batch);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, batch, err))
            return false;
        if (!batch->count)
            break;
        for (size_t i = 0; i < batch->count; i++)
            if (!tally_add(run, reduce, &tally, batch->items[i].value, batch->items[i].bulk, false,
                           err)) {
                gremlin_value_unref(tally.value);
                return false;
            }
        memcpy(loops, batch->items[batch->count - 1].loops, sizeof loops);
    }
    step->emitted = true;
    struct gremlin_value value = tally_result(run, reduce, &tally, &found);

    if (found)
        gremlin_reduced_push(run, step, value, loops, out);
    return true;
}

static const struct gremlin_step_kind step_reduce_free = {
    .name = "reduce", .flags = STEP_BARRIER | STEP_ORDER_FREE | STEP_HEADS, .pull = reduce_pull};
static const struct gremlin_step_kind step_reduce_ordered = {
    .name = "fold", .flags = STEP_BARRIER, .pull = reduce_pull};

static bool reduce_local_one(struct gremlin_run *run, struct gremlin_step *step,
                             struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct reduce *reduce = (struct reduce *)step;
    struct gremlin_value result;
    struct tally tally = {0};

    if (reduce->reduction == REDUCE_COUNT) {
        int64_t count = 1;

        if (!gremlin_collection_count(traverser->value, &count))
            count = 1;
        gremlin_walker_set(run, traverser, gremlin_long(count), step);
        return true;
    }
    struct gremlin_value items = gremlin_value_listed(run, traverser->value);
    bool good = true;

    for (size_t i = 0; good && i < gremlin_list(items)->count; i++)
        good = tally_add(run, reduce, &tally, gremlin_list(items)->items[i], 1, true, err);
    gremlin_value_unref(items);
    if (!good) {
        gremlin_value_unref(tally.value);
        return false;
    }
    result = tally_result(run, reduce, &tally, ret_keep);
    if (*ret_keep)
        gremlin_walker_set(run, traverser, result, step);
    return true;
}

static const struct gremlin_step_kind step_reduce_local = {.name = "reduceLocal",
                                                           .one = reduce_local_one};

static bool reduce_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                           enum reduction reduction, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    struct reduce *reduce =
        STEP_ADD(compiler, raw, local ? &step_reduce_local : &step_reduce_free, struct reduce);

    reduce->reduction = reduction;
    if (raw->count > from)
        return gremlin_argument_wrong(raw, from, "a Scope", err);
    return true;
}

#define REDUCTION(name, reduction)                                                                 \
    bool name(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)       \
    {                                                                                              \
        return reduce_compile(compiler, raw, reduction, err);                                      \
    }
REDUCTION(compile_count, REDUCE_COUNT)
REDUCTION(compile_sum, REDUCE_SUM)
REDUCTION(compile_min, REDUCE_MIN)
REDUCTION(compile_max, REDUCE_MAX)
REDUCTION(compile_mean, REDUCE_MEAN)

bool compile_fold(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct reduce *reduce = STEP_ADD(compiler, raw, &step_reduce_ordered, struct reduce);

    reduce->reduction = REDUCE_FOLD;
    if (!raw->count)
        return true;
    if (raw->count != 2 || !gremlin_argument_is_family(raw->arguments[1], GREMLIN_ENUM_OPERATOR))
        return gremlin_argument_wrong(raw, 1, "an Operator", err);
    reduce->folds = true;
    reduce->seed = raw->arguments[0];
    reduce->operator= raw->arguments[1].word;
    return true;
}
