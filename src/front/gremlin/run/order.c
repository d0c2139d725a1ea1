/* order() and barrier(). The keys of a traverser are computed once, then sorted with its place, so
 * that equal keys keep the order they came in. What is too much for memory is sorted on disk
 * (pile_private.h). */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/run/pile_private.h"

struct sorted {
    size_t place;
    struct gremlin_value *keys; /* one for each by(), at least one */
};

struct sorting {
    const struct gremlin_by *by;
    size_t count; /* of keys */
};

static int sorted_compare(const void *a, const void *b, void *self)
{
    const struct sorted *left = a, *right = b;
    const struct sorting *sorting = self;

    for (size_t i = 0; i < sorting->count; i++) {
        int order = gremlin_order(left->keys[i], right->keys[i]);

        if (order)
            return sorting->by && sorting->by[i].order == ORDER_DESC ? -order : order;
    }
    return (left->place > right->place) - (left->place < right->place);
}

/* The keys of an object. *ret_found false: a by() gave nothing. */
static bool keys_fill(struct gremlin_run *run, struct gremlin_step *step,
                      const struct gremlin_walker *traverser, struct gremlin_value object,
                      struct gremlin_value *keys, bool *ret_found, struct error *err)
{
    size_t count = step->by_count ? step->by_count : 1;

    *ret_found = true;
    for (size_t i = 0; i < count; i++)
        keys[i] = GREMLIN_NOTHING;
    for (size_t i = 0; i < count && *ret_found; i++) {
        if (step->by_count && step->by[i].order == ORDER_SHUFFLE) {
            keys[i] = gremlin_long((int64_t)random_next(gremlin_run_random(run)));
            continue;
        }
        if (!gremlin_by_apply_value(run, gremlin_step_by(step, i), traverser, object, &keys[i],
                                    ret_found, err))
            return false;
    }
    return true;
}

/* Objects to be sorted, with room for their keys. */
struct sort {
    struct sorted *items;
    struct gremlin_value *keys;
    size_t room, width;
};

static struct sort sort_new(struct gremlin_run *run, const struct gremlin_step *step, size_t count)
{
    struct sort sort = {.room = count + 1, .width = step->by_count ? step->by_count : 1};

    sort.items = gremlin_heap_alloc(run->heap, sort.room * sizeof *sort.items);
    sort.keys = gremlin_heap_alloc(run->heap, sort.room * sort.width * sizeof *sort.keys);
    memset(sort.keys, 0, sort.room * sort.width * sizeof *sort.keys);
    for (size_t i = 0; i < count; i++)
        sort.items[i] = (struct sorted){i, &sort.keys[i * sort.width]};
    return sort;
}

static void sort_done(struct gremlin_run *run, struct sort *sort)
{
    for (size_t i = 0; i < sort->room * sort->width; i++)
        gremlin_value_unref(sort->keys[i]);
    gremlin_heap_release(run->heap, sort->keys, sort->room * sort->width * sizeof *sort->keys);
    gremlin_heap_release(run->heap, sort->items, sort->room * sizeof *sort->items);
}

static void sort_run(const struct gremlin_step *step, struct sort *sort, size_t count)
{
    struct sorting sorting = {step->by_count ? step->by : NULL, sort->width};

    qsort_r(sort->items, count, sizeof *sort->items, sorted_compare, &sorting);
}

struct order {
    struct gremlin_step step;
    struct gremlin_pile pile;
    struct gremlin_value *keys; /* room for those of one traverser, in the run's arena */
    bool sorted;                /* it is being given */
};

static bool order_add(struct gremlin_run *run, struct order *order,
                      struct gremlin_walker *traverser, struct error *err)
{
    struct gremlin_step *step = &order->step;
    struct gremlin_walker taken = *traverser;
    bool found, good = keys_fill(run, step, traverser, traverser->value, order->keys, &found, err);

    if (!good || !found) {
        for (size_t i = 0; i < order->pile.width; i++)
            gremlin_value_unref(order->keys[i]);
        return good;
    }
    *traverser = (struct gremlin_walker){0};
    return gremlin_pile_add_take(run, &order->pile, taken, order->keys, err);
}

/* Everything that comes, batch by batch, is put on the pile. */
static bool order_gather(struct gremlin_run *run, struct order *order, struct error *err)
{
    struct gremlin_step *step = &order->step;

    gremlin_pile_done(run, &order->pile);
    gremlin_pile_init(&order->pile, step->by_count ? step->by_count : 1,
                      step->by_count ? step->by : NULL);
    if (!order->keys)
        order->keys = ARENA_ARRAY(run->arena, struct gremlin_value, order->pile.width);
    do {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err) ||
            !gremlin_step_look_ahead(run, step, &step->pending, 0, err))
            return false;
        for (size_t i = 0; i < step->pending.count; i++)
            if (!order_add(run, order, &step->pending.items[i], err))
                return false;
        gremlin_step_forget_ahead(run, step);
        if (gremlin_heap_failed(run->heap))
            return gremlin_heap_error(run->heap, err);
    } while (step->pending.count);
    return gremlin_pile_finish(run, &order->pile, err);
}

static bool order_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    struct order *order = (struct order *)step;
    size_t before = out->count;

    if (order->sorted && !gremlin_pile_pull(run, &order->pile, want, out, err))
        return false;
    if (out->count > before)
        return true;
    order->sorted = false;
    if (!order_gather(run, order, err))
        return false;
    order->sorted = true;
    return gremlin_pile_pull(run, &order->pile, want, out, err);
}

static void order_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    gremlin_pile_done(run, &((struct order *)step)->pile);
    ((struct order *)step)->sorted = false;
}

static const struct gremlin_step_kind step_order = {.name = "order",
                                                    .flags = STEP_FILTERS | STEP_BARRIER,
                                                    .pull = order_pull,
                                                    .reset = order_reset};

/* Sorts the items of a list into another, dropping those without keys. */
static bool list_sort(struct gremlin_run *run, struct gremlin_step *step,
                      const struct gremlin_walker *traverser, struct gremlin_value items,
                      struct gremlin_value into, struct error *err)
{
    const struct gremlin_list *list = gremlin_list(items);
    struct sort sort = sort_new(run, step, list->count);
    size_t kept = 0;
    bool good = true;

    for (size_t i = 0; good && i < list->count; i++) {
        bool found;

        sort.items[kept] = (struct sorted){i, &sort.keys[i * sort.width]};
        good = keys_fill(run, step, traverser, list->items[i], sort.items[kept].keys, &found, err);
        kept += found;
    }
    if (good) {
        sort_run(step, &sort, kept);
        for (size_t i = 0; i < kept; i++) {
            struct gremlin_value item = list->items[sort.items[i].place];

            if (into.type == GREMLIN_MAP)
                gremlin_map_put(into, gremlin_entry(item)->key, gremlin_entry(item)->value);
            else
                gremlin_list_add(into, item);
        }
    }
    sort_done(run, &sort);
    return good;
}

static bool order_local_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                            struct error *err)
{
    struct gremlin_value value = traverser->value, items, into;
    bool good;

    if (!gremlin_is_collection(value))
        return true;
    items = gremlin_value_listed(run, value);
    into = value.type == GREMLIN_MAP || value.type == GREMLIN_TREE ? gremlin_map_new(run->heap)
                                                                   : gremlin_list_new(run->heap, 0);
    good = list_sort(run, step, traverser, items, into, err);
    gremlin_value_unref(items);
    if (good)
        gremlin_walker_set(run, traverser, into, step);
    else
        gremlin_value_unref(into);
    return good;
}

static const struct gremlin_step_kind step_order_local = {.name = "orderLocal",
                                                          .one = order_local_one};

bool compile_order(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                   struct error *err UNUSED)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);

    if (raw->count > from)
        return gremlin_argument_wrong(raw, 0, "a Scope", err);
    if (local)
        STEP_ADD(compiler, raw, &step_order_local, struct gremlin_step);
    else
        STEP_ADD(compiler, raw, &step_order, struct order);
    return true;
}

/* --- barrier --------------------------------------------------------------------------------- */

struct barrier {
    struct gremlin_step step;
    bool norm_sack;
    int64_t max;              /* so many at a time; 0: all */
    struct gremlin_pile pile; /* what has come, where nothing is put together */
    bool gathered;
};

/* normSack: sacks become shares of their sum. */
static bool sacks_norm(struct gremlin_run *run, struct gremlin_walkers *batch, struct error *err)
{
    double total = 0;

    for (size_t i = 0; i < batch->count; i++) {
        if (!gremlin_is_number(batch->items[i].sack))
            return FAIL(err, "normSack takes sacks that are numbers");
        total += gremlin_number_double(batch->items[i].sack) * (double)batch->items[i].bulk;
    }
    for (size_t i = 0; i < batch->count; i++)
        gremlin_value_replace_take(
            &batch->items[i].sack,
            gremlin_double(gremlin_number_double(batch->items[i].sack) / total));
    (void)run;
    return true;
}

/* Sacks that are put together, or made shares of all, have to be in memory; what is only put
 * together where it is alike is so by batches. */
static bool barrier_piles(const struct gremlin_run *run, const struct barrier *barrier)
{
    return run->spill && !barrier->norm_sack && !barrier->max && !run->sack_merges;
}

static bool barrier_gather(struct gremlin_run *run, struct barrier *barrier, struct error *err)
{
    struct gremlin_step *step = &barrier->step;
    size_t used = gremlin_heap_used(run->heap);

    gremlin_pile_done(run, &barrier->pile);
    while (!gremlin_run_should_spill(run, used)) {
        size_t before = step->pending.count;

        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
        if (step->pending.count == before)
            return true;
    }
    do {
        if (!gremlin_sacks_merge(run, &step->pending, err))
            return false;
        for (size_t i = 0; i < step->pending.count; i++) {
            struct gremlin_walker taken = step->pending.items[i];

            step->pending.items[i] = (struct gremlin_walker){0};
            if (!gremlin_pile_add_take(run, &barrier->pile, taken, NULL, err))
                return false;
        }
        gremlin_walkers_done(run, &step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err))
            return false;
    } while (step->pending.count);
    barrier->gathered = true;
    return gremlin_pile_finish(run, &barrier->pile, err);
}

static bool barrier_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                         struct gremlin_walkers *out, struct error *err)
{
    struct barrier *barrier = (struct barrier *)step;
    size_t before = out->count;

    if (barrier->gathered && !gremlin_pile_pull(run, &barrier->pile, want, out, err))
        return false;
    if (out->count > before)
        return true;
    barrier->gathered = false;
    if (step->at == step->pending.count) {
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        if (barrier->max) {
            while (step->pending.count < (size_t)barrier->max) {
                size_t before = step->pending.count;

                if (!gremlin_step_pull(run, step->previous, (size_t)barrier->max - before,
                                       &step->pending, err))
                    return false;
                if (step->pending.count == before)
                    break;
            }
        } else if (barrier_piles(run, barrier)) {
            if (!barrier_gather(run, barrier, err))
                return false;
            if (barrier->gathered)
                return gremlin_pile_pull(run, &barrier->pile, want, out, err);
        } else if (!gremlin_step_drain(run, step, &step->pending, err)) {
            return false;
        }
        if (!gremlin_sacks_merge(run, &step->pending, err))
            return false;
        if (barrier->norm_sack && !sacks_norm(run, &step->pending, err))
            return false;
    }
    for (size_t given = 0; given < want && step->at < step->pending.count; given++) {
        gremlin_walkers_push(run, out, step->pending.items[step->at]);
        step->pending.items[step->at++] = (struct gremlin_walker){0};
    }
    return true;
}

static void barrier_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    gremlin_pile_done(run, &((struct barrier *)step)->pile);
    ((struct barrier *)step)->gathered = false;
}

static const struct gremlin_step_kind step_barrier = {.name = "barrier",
                                                      .flags =
                                                          STEP_FILTERS | STEP_BARRIER | STEP_SEES,
                                                      .pull = barrier_pull,
                                                      .reset = barrier_reset};

bool compile_barrier(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct barrier *barrier = STEP_ADD(compiler, raw, &step_barrier, struct barrier);

    if (!raw->count)
        return true;
    if (gremlin_is_word(raw->arguments[0], GREMLIN_BARRIER_NORM_SACK)) {
        barrier->norm_sack = true;
        return true;
    }
    if (!gremlin_argument_whole(raw, 0, &barrier->max, err))
        return false;
    if (barrier->max < 0)
        barrier->max = 0;
    return true;
}
