/* How many and which: limit, range, skip, tail, sample; on the stream, or with local on the
 * collection that a traverser has. */
#include "front/gremlin/run/compile_private.h"

/* --- limit, range, skip ---------------------------------------------------------------------- */

struct range {
    struct gremlin_step step;
    int64_t low, high; /* high -1: no end */
    bool bare;         /* 3.7: of a single item, local, the item itself */
    int64_t seen;
};

/* Cuts a traverser whose bulk reaches over a bound. */
static bool range_take(struct range *range, struct gremlin_walker *traverser)
{
    int64_t begin = range->seen, end = begin + (int64_t)traverser->bulk;

    range->seen = end;
    if (begin < range->low)
        begin = range->low;
    if (range->high != -1 && end > range->high)
        end = range->high;
    if (begin >= end)
        return false;
    traverser->bulk = (uint64_t)(end - begin);
    return true;
}

static bool range_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    struct range *range = (struct range *)step;
    size_t from = out->count;

    while (out->count == from) {
        size_t kept = from, ask = want;

        if (range->high != -1) {
            if (range->seen >= range->high)
                return true;
            if ((uint64_t)(range->high - range->seen) < ask)
                ask = (size_t)(range->high - range->seen);
        }
        if (!gremlin_step_pull(run, step->previous, ask, out, err))
            return false;
        if (out->count == from)
            return true;
        for (size_t i = from; i < out->count; i++) {
            struct gremlin_walker item = out->items[i];

            out->items[i] = (struct gremlin_walker){0};
            if (range_take(range, &item))
                out->items[kept++] = item;
            else
                gremlin_walker_done(&item);
        }
        out->count = kept;
    }
    return true;
}

static void range_reset(struct gremlin_run *run UNUSED, struct gremlin_step *step)
{
    ((struct range *)step)->seen = 0;
}

/* 3.8 counts anew in each round of repeat(). */
static void range_rearm(struct gremlin_run *run, struct gremlin_step *step)
{
    if (run->v38)
        range_reset(run, step);
}

static const struct gremlin_step_kind step_range = {.name = "range",
                                                    .flags =
                                                        STEP_FILTERS | STEP_STATEFUL | STEP_SEES,
                                                    .pull = range_pull,
                                                    .reset = range_reset,
                                                    .rearm = range_rearm};

static struct gremlin_value list_cut(struct gremlin_run *run, struct gremlin_value value,
                                     int64_t low, int64_t high)
{
    bool set = value.type == GREMLIN_SET;
    struct gremlin_value items = gremlin_value_listed(run, value);
    struct gremlin_value cut = set ? gremlin_set_new(run->heap) : gremlin_list_new(run->heap, 0);
    const struct gremlin_list *list = gremlin_list(items);

    for (int64_t i = low; i < (int64_t)list->count && (high == -1 || i < high); i++) {
        if (set)
            gremlin_set_add(cut, list->items[i]);
        else
            gremlin_list_add(cut, list->items[i]);
    }
    gremlin_value_unref(items);
    return cut;
}

static struct gremlin_value map_cut(struct gremlin_run *run, struct gremlin_value value,
                                    int64_t low, int64_t high)
{
    struct gremlin_value cut = gremlin_map_new(run->heap);
    const struct gremlin_table *table = gremlin_table(value);

    for (int64_t i = low; i < (int64_t)table->count && (high == -1 || i < high); i++)
        gremlin_map_put(cut, table->rows[i].key, table->rows[i].value);
    return cut;
}

static struct gremlin_value path_cut(struct gremlin_run *run, struct gremlin_value value,
                                     int64_t low, int64_t high)
{
    const struct gremlin_path *path = gremlin_path(value);
    size_t room = (path->length + 1) * sizeof(void *);
    const struct gremlin_path **nodes = gremlin_heap_alloc(run->heap, room);
    struct gremlin_path *cut = NULL;

    gremlin_path_nodes(path, nodes);
    for (int64_t i = low; i < (int64_t)path->length && (high == -1 || i < high); i++) {
        struct gremlin_path *longer =
            gremlin_path_extend(run->heap, cut, nodes[i]->value, nodes[i]->labels);

        gremlin_path_unref(cut);
        cut = longer;
    }
    gremlin_heap_release(run->heap, nodes, room);
    return cut ? gremlin_value_of_take(cut) : gremlin_path_empty(run->heap);
}

/* Of a single item 3.7 gives the item, or nothing. */
static bool local_cut(struct gremlin_run *run, const struct gremlin_step *step,
                      struct gremlin_walker *traverser, int64_t low, int64_t high, bool bare,
                      bool *ret_keep)
{
    struct gremlin_value cut, value = traverser->value;

    if (value.type == GREMLIN_MAP)
        cut = map_cut(run, value, low, high);
    else if (value.type == GREMLIN_PATH)
        cut = path_cut(run, value, low, high);
    else if (gremlin_value_iterates(value))
        cut = list_cut(run, value, low, high);
    else
        cut = gremlin_value_ref(value);
    if (bare && gremlin_value_iterates(value)) {
        struct gremlin_value items = gremlin_value_listed(run, cut);

        gremlin_value_unref(cut);
        if (!gremlin_list(items)->count) {
            gremlin_value_unref(items);
            *ret_keep = false;
            return true;
        }
        cut = gremlin_value_ref(gremlin_list(items)->items[0]);
        gremlin_value_unref(items);
    }
    gremlin_walker_set(run, traverser, cut, step);
    return true;
}

static bool range_local_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep,
                            struct error *err UNUSED)
{
    const struct range *range = (struct range *)step;

    return local_cut(run, step, traverser, range->low, range->high, range->bare, ret_keep);
}

static const struct gremlin_step_kind step_range_local = {.name = "rangeLocal",
                                                          .one = range_local_one};

static bool range_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw, bool local,
                          int64_t low, int64_t high, struct error *err)
{
    struct range *range =
        STEP_ADD(compiler, raw, local ? &step_range_local : &step_range, struct range);

    if (low < 0)
        low = 0;
    if (high != -1 && low > high)
        return REFUSE(err, "Not a legal range: [%lld, %lld]", (long long)low, (long long)high);
    range->low = low;
    range->high = high;
    range->bare = local && !compiler->run->v38 && high != -1 && high - low == 1;
    return true;
}

bool compile_limit(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    int64_t count;

    return gremlin_argument_whole(raw, from, &count, err) &&
           range_compile(compiler, raw, local, 0, count < -1 ? -1 : count, err);
}

bool compile_skip(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    int64_t count;

    return gremlin_argument_whole(raw, from, &count, err) &&
           range_compile(compiler, raw, local, count, -1, err);
}

bool compile_range(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    int64_t low, high;

    return gremlin_argument_whole(raw, from, &low, err) &&
           gremlin_argument_whole(raw, from + 1, &high, err) &&
           range_compile(compiler, raw, local, low, high < 0 ? -1 : high, err);
}

/* --- tail ------------------------------------------------------------------------------------ */

struct tail {
    struct gremlin_step step;
    int64_t count;
};

/* Forgets from the front what will not be among the last. */
static void tail_trim(struct gremlin_step *step, uint64_t *total, uint64_t count)
{
    size_t gone = 0;

    while (gone < step->pending.count && *total - step->pending.items[gone].bulk >= count) {
        *total -= step->pending.items[gone].bulk;
        gremlin_walker_done(&step->pending.items[gone++]);
    }
    gremlin_walkers_forget(&step->pending, gone);
    if (*total > count && step->pending.count) {
        step->pending.items[0].bulk -= *total - count;
        *total = count;
    }
}

static bool tail_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                      struct gremlin_walkers *out, struct error *err)
{
    uint64_t total = 0, count = (uint64_t)((struct tail *)step)->count;

    if (step->at == step->pending.count) {
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        for (;;) {
            size_t before = step->pending.count;

            if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
                return false;
            if (step->pending.count == before)
                break;
            for (size_t i = before; i < step->pending.count; i++)
                total += step->pending.items[i].bulk;
            tail_trim(step, &total, count);
        }
    }
    for (size_t given = 0; given < want && step->at < step->pending.count; given++) {
        gremlin_walkers_push(run, out, step->pending.items[step->at]);
        step->pending.items[step->at++] = (struct gremlin_walker){0};
    }
    return true;
}

static const struct gremlin_step_kind step_tail = {
    .name = "tail", .flags = STEP_FILTERS | STEP_BARRIER | STEP_SEES, .pull = tail_pull};

static bool tail_local_one(struct gremlin_run *run, struct gremlin_step *step,
                           struct gremlin_walker *traverser, bool *ret_keep,
                           struct error *err UNUSED)
{
    int64_t count = ((struct tail *)step)->count, size = 0;

    if (!gremlin_collection_count(traverser->value, &size))
        size = 0;
    return local_cut(run, step, traverser, size > count ? size - count : 0, -1,
                     !run->v38 && count == 1, ret_keep);
}

static const struct gremlin_step_kind step_tail_local = {.name = "tailLocal",
                                                         .one = tail_local_one};

bool compile_tail(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    struct tail *tail = STEP_ADD(compiler, raw, local ? &step_tail_local : &step_tail, struct tail);

    tail->count = 1;
    if (raw->count > from && !gremlin_argument_whole(raw, from, &tail->count, err))
        return false;
    if (tail->count < 0)
        return gremlin_argument_wrong(raw, from, "zero or more", err);
    return true;
}

/* --- sample ---------------------------------------------------------------------------------- */

static double chance_below(struct gremlin_run *run, double limit)
{
    return (double)(random_next(gremlin_run_random(run)) >> 11) / 9007199254740992.0 * limit;
}

static bool weight_of(struct gremlin_run *run, struct gremlin_step *step,
                      const struct gremlin_walker *traverser, double *ret_weight, struct error *err)
{
    struct gremlin_value value;
    bool found;

    *ret_weight = 1;
    if (!step->by_count)
        return true;
    if (!gremlin_by_apply(run, gremlin_step_by(step, 0), traverser, &value, &found, err))
        return false;
    *ret_weight = found && gremlin_is_number(value) ? gremlin_number_double(value) : found ? -1 : 0;
    if (found)
        gremlin_value_unref(value);
    if (*ret_weight < 0)
        return FAIL(err, "sample(): by() must give a number that is not negative");
    return true;
}

/* Draws without putting back: each draw picks one of what is left, by weight. The picked keep
 * their order. */
static bool sample_draw(struct gremlin_run *run, struct gremlin_step *step, uint64_t count,
                        struct error *err)
{
    struct gremlin_walkers *batch = &step->pending;
    double total = 0;
    uint64_t all = 0;
    double *weights = gremlin_heap_alloc(run->heap, (batch->count + 1) * sizeof *weights);
    uint64_t *picked = gremlin_heap_alloc(run->heap, (batch->count + 1) * sizeof *picked);
    bool good = true;
    size_t kept = 0, room = batch->count + 1;

    for (size_t i = 0; good && i < batch->count; i++) {
        picked[i] = 0;
        good = weight_of(run, step, &batch->items[i], &weights[i], err);
        if (weights[i] > 0)
            all += batch->items[i].bulk;
        total += weights[i] * (double)batch->items[i].bulk;
    }
    for (uint64_t drawn = 0; good && drawn < count && drawn < all; drawn++) {
        double at = chance_below(run, total);
        size_t hit = SIZE_MAX;

        good = query_work(&run->context, batch->count / 16 + 1, err);
        for (size_t i = 0; good && i < batch->count; i++) {
            uint64_t left = batch->items[i].bulk - picked[i];

            if (!left || weights[i] <= 0)
                continue;
            hit = i;
            at -= weights[i] * (double)left;
            if (at < 0)
                break;
        }
        if (hit != SIZE_MAX) {
            picked[hit]++;
            total -= weights[hit];
        }
    }
    for (size_t i = 0; i < batch->count; i++) {
        struct gremlin_walker item = batch->items[i];

        batch->items[i] = (struct gremlin_walker){0};
        if (good && picked[i]) {
            item.bulk = picked[i];
            batch->items[kept++] = item;
        } else {
            gremlin_walker_done(&item);
        }
    }
    batch->count = kept;
    gremlin_heap_release(run->heap, weights, room * sizeof *weights);
    gremlin_heap_release(run->heap, picked, room * sizeof *picked);
    return good;
}

static bool sample_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                        struct gremlin_walkers *out, struct error *err)
{
    if (step->at == step->pending.count) {
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        if (!gremlin_step_drain(run, step, &step->pending, err) ||
            !sample_draw(run, step, (uint64_t)((struct tail *)step)->count, err))
            return false;
    }
    for (size_t given = 0; given < want && step->at < step->pending.count; given++) {
        gremlin_walkers_push(run, out, step->pending.items[step->at]);
        step->pending.items[step->at++] = (struct gremlin_walker){0};
    }
    return true;
}

static const struct gremlin_step_kind step_sample = {
    .name = "sample", .flags = STEP_FILTERS | STEP_BARRIER | STEP_CHANCE, .pull = sample_pull};

static bool sample_local_one(struct gremlin_run *run, struct gremlin_step *step,
                             struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                             struct error *err UNUSED)
{
    uint64_t count = (uint64_t)((struct tail *)step)->count;
    bool map = traverser->value.type == GREMLIN_MAP;
    struct gremlin_value items, cut;
    size_t left;

    if (!map && !gremlin_value_iterates(traverser->value))
        return true;
    items = gremlin_value_listed(run, traverser->value);
    cut = map ? gremlin_map_new(run->heap) : gremlin_list_new(run->heap, 0);
    left = gremlin_list(items)->count;
    for (size_t i = 0; i < gremlin_list(items)->count; i++, left--) {
        struct gremlin_value item = gremlin_list(items)->items[i];

        if (!count || random_below(gremlin_run_random(run), left) >= count)
            continue;
        count--;
        if (map)
            gremlin_map_put(cut, gremlin_entry(item)->key, gremlin_entry(item)->value);
        else
            gremlin_list_add(cut, item);
    }
    gremlin_value_unref(items);
    gremlin_walker_set(run, traverser, cut, step);
    return true;
}

static const struct gremlin_step_kind step_sample_local = {
    .name = "sampleLocal", .flags = STEP_CHANCE, .one = sample_local_one};

bool compile_sample(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    struct tail *tail =
        STEP_ADD(compiler, raw, local ? &step_sample_local : &step_sample, struct tail);

    if (raw->by_count > 1)
        return REFUSE(err, "sample() takes one by()");
    if (!gremlin_argument_whole(raw, from, &tail->count, err))
        return false;
    if (tail->count < 0)
        return gremlin_argument_wrong(raw, from, "zero or more", err);
    return true;
}
