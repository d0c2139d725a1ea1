/* order() and barrier(). The keys of a traverser are computed once, then sorted with its place, so
 * that equal keys keep the order they came in. */
#include "front/gremlin/run/compile_private.h"

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
            keys[i] = gremlin_long((int64_t)random_next(&run->random));
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

static bool order_sort(struct gremlin_run *run, struct gremlin_step *step, struct error *err)
{
    struct gremlin_walkers *batch = &step->pending;
    struct gremlin_walkers ordered = {0};
    struct sort sort = sort_new(run, step, batch->count);
    size_t kept = 0;
    bool good = gremlin_step_look_ahead(run, step, batch, 0, err);

    for (size_t i = 0; good && i < batch->count; i++) {
        struct sorted *item = &sort.items[kept];
        bool found;

        item->place = i;
        item->keys = &sort.keys[i * sort.width];
        good =
            keys_fill(run, step, &batch->items[i], batch->items[i].value, item->keys, &found, err);
        if (found)
            kept++;
    }
    gremlin_step_forget_ahead(run, step);
    good = good && query_work(&run->context, kept * 4, err);
    if (good) {
        sort_run(step, &sort, kept);
        for (size_t i = 0; i < kept; i++) {
            gremlin_walkers_push(run, &ordered, batch->items[sort.items[i].place]);
            batch->items[sort.items[i].place] = (struct gremlin_walker){0};
        }
        gremlin_walkers_done(run, batch);
        *batch = ordered;
    }
    sort_done(run, &sort);
    return good;
}

static bool order_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    if (step->at == step->pending.count) {
        gremlin_walkers_clear(&step->pending);
        step->at = 0;
        if (!gremlin_step_drain(run, step, &step->pending, err) || !order_sort(run, step, err))
            return false;
    }
    for (size_t given = 0; given < want && step->at < step->pending.count; given++) {
        gremlin_walkers_push(run, out, step->pending.items[step->at]);
        step->pending.items[step->at++] = (struct gremlin_walker){0};
    }
    return true;
}

static const struct gremlin_step_kind step_order = {
    .name = "order", .flags = STEP_FILTERS | STEP_BARRIER, .pull = order_pull};

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
    STEP_ADD(compiler, raw, local ? &step_order_local : &step_order, struct gremlin_step);
    return true;
}

/* --- barrier --------------------------------------------------------------------------------- */

struct barrier {
    struct gremlin_step step;
    bool norm_sack;
    int64_t max; /* so many at a time; 0: all */
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

static bool barrier_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                         struct gremlin_walkers *out, struct error *err)
{
    const struct barrier *barrier = (struct barrier *)step;

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

static const struct gremlin_step_kind step_barrier = {
    .name = "barrier", .flags = STEP_FILTERS | STEP_BARRIER | STEP_SEES, .pull = barrier_pull};

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
