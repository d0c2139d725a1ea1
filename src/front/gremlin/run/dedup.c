/* dedup(): each object once, by equivalence, the first that comes.
 *
 * Those whose keys are new pass as they come, while the keys have room in memory. Where that is
 * full, the keys that are known go on to filter, and the rest of the stream is put on a pile by the
 * hashes of its keys: what is alike comes together there, the first of each kind is put on a second
 * pile by its place, and so the results are those, and in the order, of a dedup() with memory
 * enough. Not so within children, whose streams have no end that is known: there the limit of the
 * heap ends the run. */
#include "front/gremlin/run/compile_private.h"
#include "front/gremlin/run/pile_private.h"

enum { SEEN_MIN = 64 }; /* keys in memory, however little there is */

struct dedup {
    struct gremlin_step step;
    const struct slice *labels;
    size_t label_count;
    struct gremlin_value seen; /* a set */
    size_t used_before;        /* of the heap, without it */
    struct gremlin_pile first; /* of each kind, by place; read once `piled` */
    bool piled;
};

static bool dedup_key(struct gremlin_run *run, struct dedup *dedup,
                      const struct gremlin_walker *traverser, struct gremlin_value *ret_key,
                      bool *ret_found, struct error *err)
{
    struct gremlin_step *step = &dedup->step;
    struct gremlin_value key;

    if (!dedup->label_count)
        return gremlin_by_apply(run, gremlin_step_by(step, 0), traverser, ret_key, ret_found, err);
    key = gremlin_list_new(run->heap, dedup->label_count);
    for (size_t i = 0; i < dedup->label_count; i++) {
        struct gremlin_value object, value;

        if (!gremlin_scope_value(run, traverser, dedup->labels[i], GREMLIN_POP_LAST, &object,
                                 ret_found, err))
            return false;
        if (!*ret_found) {
            gremlin_value_unref(key);
            return true;
        }
        if (!gremlin_by_apply_value(run, gremlin_step_by(step, i), traverser, object, &value,
                                    ret_found, err))
            return false;
        gremlin_value_unref(object);
        if (!*ret_found) {
            gremlin_value_unref(key);
            return true;
        }
        gremlin_list_add_take(key, value);
    }
    *ret_key = key;
    *ret_found = true;
    return true;
}

/* Takes what is new, in place. */
static bool batch_filter(struct gremlin_run *run, struct dedup *dedup,
                         struct gremlin_walkers *batch, size_t from, struct error *err)
{
    struct gremlin_step *step = &dedup->step;
    size_t kept = from;

    if (!gremlin_step_look_ahead(run, step, batch, from, err))
        return false;
    for (size_t i = from; i < batch->count; i++) {
        struct gremlin_walker *traverser = &batch->items[i];
        struct gremlin_value key;
        bool found;

        if (!dedup_key(run, dedup, traverser, &key, &found, err))
            return false;
        if (found) {
            found = gremlin_set_add(dedup->seen, key);
            gremlin_value_unref(key);
        }
        if (!found) {
            gremlin_walker_done(traverser);
            continue;
        }
        traverser->bulk = 1;
        if (kept != i) {
            batch->items[kept] = *traverser;
            *traverser = (struct gremlin_walker){0};
        }
        kept++;
    }
    gremlin_step_forget_ahead(run, step);
    batch->count = kept;
    return true;
}

/* --- Beyond memory ---------------------------------------------------------------------------- */

enum { KEY_HASH, KEY_PLACE, KEY_ITSELF, KEY_COUNT };

struct rest {
    struct gremlin_pile pile; /* by hash, then place: the keys themselves are never compared */
    uint64_t arrived;
    struct gremlin_value kinds; /* a set: keys of the present hash */
    int64_t hash;
};

static bool rest_add(struct gremlin_run *run, struct dedup *dedup, struct rest *rest,
                     struct gremlin_walker *traverser, struct error *err)
{
    struct gremlin_walker taken = *traverser;
    struct gremlin_value keys[KEY_COUNT];
    bool found;

    if (!dedup_key(run, dedup, traverser, &keys[KEY_ITSELF], &found, err))
        return false;
    if (!found)
        return true;
    if (gremlin_table_find(dedup->seen, keys[KEY_ITSELF])) {
        gremlin_value_unref(keys[KEY_ITSELF]);
        return true;
    }
    keys[KEY_HASH] =
        gremlin_long((int64_t)gremlin_hash(keys[KEY_ITSELF], gremlin_heap_seed(run->heap)));
    keys[KEY_PLACE] = gremlin_long((int64_t)rest->arrived++);
    taken.bulk = 1;
    *traverser = (struct gremlin_walker){0};
    return gremlin_pile_add_take(run, &rest->pile, taken, keys, err);
}

static bool rest_gather(struct gremlin_run *run, struct dedup *dedup, struct rest *rest,
                        struct error *err)
{
    struct gremlin_step *step = &dedup->step;

    do {
        gremlin_walkers_clear(&step->pending);
        if (!gremlin_step_pull(run, step->previous, PULL_ALL, &step->pending, err) ||
            !gremlin_step_look_ahead(run, step, &step->pending, 0, err))
            return false;
        for (size_t i = 0; i < step->pending.count; i++)
            if (!rest_add(run, dedup, rest, &step->pending.items[i], err))
                return false;
        gremlin_step_forget_ahead(run, step);
    } while (step->pending.count);
    return gremlin_pile_finish(run, &rest->pile, err);
}

/* The next of the pile is a first one, unless one of its kind was there: keys of one hash stand
 * together, and are few. Takes the traverser and its keys. */
static bool first_take(struct gremlin_run *run, struct dedup *dedup, struct rest *rest,
                       struct gremlin_walker traverser, const struct gremlin_value *keys,
                       struct error *err)
{
    bool new;

    if (gremlin_is_null(rest->kinds) || rest->hash != keys[KEY_HASH].integer)
        gremlin_value_replace_take(&rest->kinds, gremlin_set_new(run->heap));
    rest->hash = keys[KEY_HASH].integer;
    new = gremlin_set_add(rest->kinds, keys[KEY_ITSELF]);
    gremlin_value_unref(keys[KEY_ITSELF]);
    if (new)
        return gremlin_pile_add_take(run, &dedup->first, traverser, &keys[KEY_PLACE], err);
    gremlin_walker_done(&traverser);
    return true;
}

static bool rest_pile(struct gremlin_run *run, struct dedup *dedup, struct rest *rest,
                      struct error *err)
{
    bool found;

    if (!rest_gather(run, dedup, rest, err))
        return false;
    do {
        struct gremlin_value keys[KEY_COUNT];
        struct gremlin_walker traverser;

        if (!gremlin_pile_next(run, &rest->pile, &traverser, keys, &found, err))
            return false;
        if (found && !first_take(run, dedup, rest, traverser, keys, err))
            return false;
    } while (found);
    return gremlin_pile_finish(run, &dedup->first, err);
}

static bool dedup_pile(struct gremlin_run *run, struct dedup *dedup, struct error *err)
{
    struct rest rest = {0};
    bool good;

    gremlin_pile_init(&rest.pile, KEY_COUNT, NULL);
    gremlin_pile_init(&dedup->first, 1, NULL);
    good = rest_pile(run, dedup, &rest, err);
    gremlin_pile_done(run, &rest.pile);
    gremlin_value_unref(rest.kinds);
    dedup->piled = true;
    return good;
}

/* --- The step --------------------------------------------------------------------------------- */

static bool dedup_should_pile(const struct gremlin_run *run, const struct dedup *dedup)
{
    return dedup->step.part == run->root && !gremlin_is_null(dedup->seen) &&
           gremlin_table(dedup->seen)->count >= SEEN_MIN &&
           gremlin_run_should_spill(run, dedup->used_before);
}

static bool dedup_pull(struct gremlin_run *run, struct gremlin_step *step, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    struct dedup *dedup = (struct dedup *)step;
    size_t from = out->count;

    if (gremlin_is_null(dedup->seen)) {
        dedup->used_before = gremlin_heap_used(run->heap);
        dedup->seen = gremlin_set_new(run->heap);
    }
    while (out->count == from && !dedup->piled) {
        if (dedup_should_pile(run, dedup)) {
            if (!dedup_pile(run, dedup, err))
                return false;
            break;
        }
        if (!gremlin_step_pull(run, step->previous, want, out, err))
            return false;
        if (out->count == from)
            return true;
        if (!batch_filter(run, dedup, out, from, err))
            return false;
    }
    return !dedup->piled || gremlin_pile_pull(run, &dedup->first, want, out, err);
}

static void dedup_reset(struct gremlin_run *run, struct gremlin_step *step)
{
    struct dedup *dedup = (struct dedup *)step;

    gremlin_value_replace_take(&dedup->seen, GREMLIN_NOTHING);
    gremlin_pile_done(run, &dedup->first);
    dedup->piled = false;
}

static const struct gremlin_step_kind step_dedup = {.name = "dedup",
                                                    .flags =
                                                        STEP_FILTERS | STEP_STATEFUL | STEP_SEES,
                                                    .pull = dedup_pull,
                                                    .reset = dedup_reset};
static const struct gremlin_step_kind step_dedup_labels = {.name = "dedup",
                                                           .flags = STEP_FILTERS | STEP_STATEFUL |
                                                                    STEP_NEEDS_LABELS,
                                                           .pull = dedup_pull,
                                                           .reset = dedup_reset};

static bool dedup_local_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                            struct error *err UNUSED)
{
    struct gremlin_value items, set;

    if (!gremlin_is_collection(traverser->value))
        return true;
    items = gremlin_value_listed(run, traverser->value);
    set = gremlin_set_new(run->heap);
    for (size_t i = 0; i < gremlin_list(items)->count; i++)
        gremlin_set_add(set, gremlin_list(items)->items[i]);
    gremlin_value_unref(items);
    gremlin_walker_set(run, traverser, set, step);
    return true;
}

static const struct gremlin_step_kind step_dedup_local = {.name = "dedupLocal",
                                                          .one = dedup_local_one};

bool compile_dedup(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    size_t from;
    bool local = gremlin_argument_local(raw, &from);
    struct dedup *dedup = STEP_ADD(compiler, raw,
                                   local               ? &step_dedup_local
                                   : raw->count > from ? &step_dedup_labels
                                                       : &step_dedup,
                                   struct dedup);

    return gremlin_argument_texts(compiler, raw, from, &dedup->labels, &dedup->label_count, err);
}
