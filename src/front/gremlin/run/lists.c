/* Steps on lists: combine, merge, intersect, difference, disjunct, product, conjoin. The other
 * operand is a value, or what a child gives for the traverser. */
#include "front/gremlin/run/compile_private.h"

enum list_operation {
    LIST_COMBINE,
    LIST_MERGE,
    LIST_INTERSECT,
    LIST_DIFFERENCE,
    LIST_DISJUNCT,
    LIST_PRODUCT,
    LIST_CONJOIN,
};

struct list_step {
    struct gremlin_step step;
    enum list_operation operation;
    const char *name;
    struct gremlin_value other;
    struct gremlin_part *part;
};

static bool is_list(struct gremlin_value value)
{
    return gremlin_value_iterates(value) || value.type == GREMLIN_PATH;
}

static bool incoming(const struct list_step *self, struct gremlin_value value, struct error *err)
{
    if (gremlin_is_null(value))
        return FAIL(err, "Incoming traverser for %s step can't be null", self->name);
    if (!is_list(value) && !(self->operation == LIST_MERGE && value.type == GREMLIN_MAP))
        return FAIL(err,
                    "%s step can only take an array or an Iterable type for incoming traversers, "
                    "encountered %s",
                    self->name, gremlin_type_name(value.type));
    return true;
}

static bool operand(struct gremlin_run *run, struct list_step *self,
                    const struct gremlin_walker *traverser, struct gremlin_value *ret_other,
                    struct error *err)
{
    bool found = true;

    if (!self->part) {
        *ret_other = gremlin_value_ref(self->other);
        return true;
    }
    if (!gremlin_part_value(run, self->part, traverser, ret_other, &found, err))
        return false;
    if (!found || gremlin_is_null(*ret_other))
        return FAIL(err, "traversal argument for %s step must yield an iterable type, not null",
                    self->name);
    if (is_list(*ret_other) || (self->operation == LIST_MERGE && ret_other->type == GREMLIN_MAP))
        return true;
    FAIL(err, "traversal argument for %s step must yield an iterable type, encountered %s",
         self->name, gremlin_type_name(ret_other->type));
    gremlin_value_unref(*ret_other);
    return false;
}

static struct gremlin_value set_of(struct gremlin_run *run, struct gremlin_value list)
{
    struct gremlin_value set = gremlin_set_new(run->heap);

    for (size_t i = 0; i < gremlin_list(list)->count; i++)
        gremlin_set_add(set, gremlin_list(list)->items[i]);
    return set;
}

/* Items of a that are, or are not, in b. */
static void set_pick(struct gremlin_value into, struct gremlin_value a, struct gremlin_value b,
                     bool in)
{
    for (size_t i = 0; i < gremlin_list(a)->count; i++)
        if ((gremlin_table_find(b, gremlin_list(a)->items[i]) != NULL) == in)
            gremlin_set_add(into, gremlin_list(a)->items[i]);
}

static struct gremlin_value product(struct gremlin_run *run, struct gremlin_value a,
                                    struct gremlin_value b)
{
    struct gremlin_value list = gremlin_list_new(run->heap, 0);

    for (size_t i = 0; i < gremlin_list(a)->count; i++)
        for (size_t j = 0; j < gremlin_list(b)->count && !gremlin_heap_failed(run->heap); j++) {
            struct gremlin_value pair = gremlin_list_new(run->heap, 2);

            gremlin_list_add(pair, gremlin_list(a)->items[i]);
            gremlin_list_add(pair, gremlin_list(b)->items[j]);
            gremlin_list_add_take(list, pair);
        }
    return list;
}

static struct gremlin_value compute(struct gremlin_run *run, enum list_operation operation,
                                    struct gremlin_value a, struct gremlin_value b)
{
    struct gremlin_value result, sets[2];

    if (operation == LIST_PRODUCT)
        return product(run, a, b);
    result =
        operation == LIST_COMBINE ? gremlin_list_new(run->heap, 0) : gremlin_set_new(run->heap);
    if (operation == LIST_COMBINE || operation == LIST_MERGE) {
        const struct gremlin_value both[] = {a, b};

        for (size_t k = 0; k < 2; k++)
            for (size_t i = 0; i < gremlin_list(both[k])->count; i++) {
                if (operation == LIST_COMBINE)
                    gremlin_list_add(result, gremlin_list(both[k])->items[i]);
                else
                    gremlin_set_add(result, gremlin_list(both[k])->items[i]);
            }
        return result;
    }
    sets[0] = set_of(run, a);
    sets[1] = set_of(run, b);
    set_pick(result, a, sets[1], operation == LIST_INTERSECT);
    if (operation == LIST_DISJUNCT)
        set_pick(result, b, sets[0], false);
    gremlin_value_unref(sets[0]);
    gremlin_value_unref(sets[1]);
    return result;
}

static bool list_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct list_step *self = (struct list_step *)step;
    struct gremlin_value other, a, b, result;

    if (!incoming(self, traverser->value, err) || !operand(run, self, traverser, &other, err))
        return false;
    if (traverser->value.type == GREMLIN_MAP) {
        if (other.type != GREMLIN_MAP)
            return FAIL(err, "%s step type mismatch: expected argument to be Map but got %s",
                        self->name, gremlin_type_name(other.type));
        result = gremlin_map_new(run->heap);
        for (size_t i = 0; i < gremlin_table(traverser->value)->count; i++)
            gremlin_map_put(result, gremlin_table(traverser->value)->rows[i].key,
                            gremlin_table(traverser->value)->rows[i].value);
        for (size_t i = 0; i < gremlin_table(other)->count; i++)
            gremlin_map_put(result, gremlin_table(other)->rows[i].key,
                            gremlin_table(other)->rows[i].value);
    } else {
        a = gremlin_value_listed(run, traverser->value);
        b = gremlin_value_listed(run, other);
        result = compute(run, self->operation, a, b);
        gremlin_value_unref(a);
        gremlin_value_unref(b);
    }
    gremlin_value_unref(other);
    gremlin_walker_set(run, traverser, result, step);
    return true;
}

static const struct gremlin_step_kind step_list = {.name = "list", .one = list_one};

static bool list_compile(struct gremlin_compiler *compiler, struct gremlin_raw *raw,
                         enum list_operation operation, struct error *err)
{
    struct list_step *self = STEP_ADD(compiler, raw, &step_list, struct list_step);
    struct gremlin_value other = raw->arguments[0];

    self->operation = operation;
    self->name = raw->row->name;
    self->step.local = true;
    if (gremlin_argument_is_traversal(other))
        return gremlin_step_child(compiler, &self->step, other, (struct gremlin_part_options){0},
                                  &self->part, err);
    self->other = other;
    if (gremlin_is_null(other))
        return REFUSE(err, "Argument provided for %s step can't be null", raw->row->name);
    if (!is_list(other) && !(operation == LIST_MERGE && other.type == GREMLIN_MAP))
        return REFUSE(
            err, "%s step can only take an array or an Iterable as an argument, encountered %s",
            raw->row->name, gremlin_type_name(other.type));
    return true;
}

#define LIST_STEP(name, operation)                                                                 \
    bool name(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)       \
    {                                                                                              \
        return list_compile(compiler, raw, operation, err);                                        \
    }
LIST_STEP(compile_combine, LIST_COMBINE)
LIST_STEP(compile_merge, LIST_MERGE)
LIST_STEP(compile_intersect, LIST_INTERSECT)
LIST_STEP(compile_difference, LIST_DIFFERENCE)
LIST_STEP(compile_disjunct, LIST_DISJUNCT)
LIST_STEP(compile_product, LIST_PRODUCT)

/* --- conjoin --------------------------------------------------------------------------------- */

static bool conjoin_one(struct gremlin_run *run, struct gremlin_step *step,
                        struct gremlin_walker *traverser, bool *ret_keep UNUSED, struct error *err)
{
    struct list_step *self = (struct list_step *)step;
    struct gremlin_value items;
    struct buf text;
    bool any = false, good = true;

    if (!incoming(self, traverser->value, err))
        return false;
    buf_init(&text, TEXT_MAX);
    items = gremlin_value_listed(run, traverser->value);
    for (size_t i = 0; i < gremlin_list(items)->count; i++) {
        struct gremlin_value item = gremlin_list(items)->items[i];

        if (gremlin_is_null(item))
            continue;
        if (any)
            buf_append_slice(&text, gremlin_bytes(self->other));
        any = true;
        gremlin_value_write_text(item, &text);
    }
    gremlin_value_unref(items);
    if (buf_overflowed(&text))
        good = error_set(err, ERROR_QUERY_LIMIT, "conjoin(): a text of more than %d bytes",
                         (int)TEXT_MAX);
    else
        gremlin_walker_set(run, traverser, gremlin_string(run->heap, buf_slice(&text)), step);
    buf_done(&text);
    return good;
}

static const struct gremlin_step_kind step_conjoin = {.name = "conjoin", .one = conjoin_one};

bool compile_conjoin(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct list_step *self = STEP_ADD(compiler, raw, &step_conjoin, struct list_step);

    self->operation = LIST_CONJOIN;
    self->name = "conjoin";
    self->other = raw->arguments[0];
    if (gremlin_is_null(self->other))
        return REFUSE(err, "Input delimiter to conjoin step can't be null.");
    return gremlin_is_string(self->other) || gremlin_argument_wrong(raw, 0, "a string", err);
}
