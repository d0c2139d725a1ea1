/* Looking back: path, select, where. A name stands for a key of the traverser's map, a side effect
 * or a label of its path, in this order. */
#include "front/gremlin/run/compile_private.h"

/* --- Scope ----------------------------------------------------------------------------------- */

/* Objects of the trail that have the label: all of them as a list, or the first or last. */
static bool trail_value(struct gremlin_run *run, const struct gremlin_walker *traverser,
                        struct slice name, enum gremlin_enum_word pop,
                        struct gremlin_value *ret_value, bool *ret_found)
{
    const struct gremlin_path *node = traverser->trail, *first = NULL;
    size_t count = 0;

    for (; node && node->length; node = node->before) {
        if (!gremlin_trail_has(node, name))
            continue;
        count++;
        first = node;
        if (pop == GREMLIN_POP_LAST)
            break;
    }
    *ret_found = count > 0;
    if (!count)
        return true;
    if (pop == GREMLIN_POP_LAST || pop == GREMLIN_POP_FIRST ||
        (pop == GREMLIN_POP_MIXED && count == 1)) {
        *ret_value = gremlin_value_ref(first->value);
        return true;
    }
    struct gremlin_value list = gremlin_list_new(run->heap, count);

    for (size_t i = 0; i < count; i++)
        gremlin_list_add(list, GREMLIN_NOTHING);
    for (node = traverser->trail; node && node->length; node = node->before)
        if (gremlin_trail_has(node, name))
            gremlin_value_replace_take(&gremlin_list(list)->items[--count],
                                       gremlin_value_ref(node->value));
    *ret_value = list;
    return true;
}

bool gremlin_scope_value(struct gremlin_run *run, const struct gremlin_walker *traverser,
                         struct slice name, enum gremlin_enum_word pop,
                         struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    struct gremlin_side_effect *effect;

    *ret_found = true;
    if (traverser->value.type == GREMLIN_MAP) {
        const struct gremlin_value *held = gremlin_map_get_text(traverser->value, name);

        if (held) {
            *ret_value = gremlin_value_ref(*held);
            return true;
        }
    }
    if (!trail_value(run, traverser, name, pop, ret_value, ret_found))
        return false;
    if (*ret_found)
        return true;
    effect = gremlin_side_effect_find(run, name);
    *ret_found = effect != NULL;
    return !effect || gremlin_side_effect_value(run, effect, ret_value, err);
}

static bool scope_must(struct gremlin_run *run, const struct gremlin_walker *traverser,
                       struct slice name, struct gremlin_value *ret_value, struct error *err)
{
    bool found;

    if (!gremlin_scope_value(run, traverser, name, GREMLIN_POP_LAST, ret_value, &found, err))
        return false;
    if (!found)
        return FAIL(err, "Neither the map, sideEffects, nor path has a %.*s-key", SLICE_ARG(name));
    return true;
}

/* --- path ------------------------------------------------------------------------------------ */

struct path_step {
    struct gremlin_step step;
    struct slice from, to;
};

static bool path_one(struct gremlin_run *run, struct gremlin_step *step,
                     struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct path_step *self = (struct path_step *)step;
    struct gremlin_path *path = NULL;
    struct gremlin_trail_nodes nodes;
    bool good = true, found = true;

    if (!step->by_count && !self->from.data && !self->to.data && traverser->trail) {
        gremlin_walker_set(run, traverser,
                           gremlin_value_of_take(gremlin_object_ref(traverser->trail)), step);
        return true;
    }
    if (!gremlin_trail_section(run, traverser, self->from, self->to, &nodes, err))
        return false;
    for (size_t i = 0; good && found && i < nodes.count; i++) {
        struct gremlin_value value;
        struct gremlin_path *longer;

        good = gremlin_by_apply_value(run, gremlin_step_by(step, i), traverser,
                                      nodes.nodes[i]->value, &value, &found, err);
        if (!good || !found)
            break;
        longer = gremlin_path_extend(run->heap, path, value, nodes.nodes[i]->labels);
        gremlin_value_unref(value);
        gremlin_path_unref(path);
        path = longer;
    }
    gremlin_trail_release(run, &nodes);
    *ret_keep = found;
    if (!good || !found) {
        gremlin_path_unref(path);
        return good;
    }
    gremlin_walker_set(run, traverser,
                       path ? gremlin_value_of_take(path) : gremlin_path_empty(run->heap), step);
    return true;
}

static const struct gremlin_step_kind step_path = {
    .name = "path", .flags = STEP_NEEDS_PATH, .one = path_one};

static bool path_end(struct gremlin_compiler *compiler, const struct gremlin_instruction *in,
                     struct slice *ret_label, struct error *err)
{
    if (!in)
        return true;
    if (in->count != 1 || !gremlin_is_string(in->arguments[0]))
        return REFUSE(err, "%.*s() of a path takes a label", SLICE_ARG(in->name));
    *ret_label = slice_keep(compiler, gremlin_bytes(in->arguments[0]));
    return true;
}

bool compile_path(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct path_step *path = STEP_ADD(compiler, raw, &step_path, struct path_step);

    return path_end(compiler, raw->from, &path->from, err) &&
           path_end(compiler, raw->to, &path->to, err);
}

/* --- select ---------------------------------------------------------------------------------- */

struct select {
    struct gremlin_step step;
    enum gremlin_enum_word pop;
    const struct slice *names;
    size_t count;
    struct gremlin_enum column;
    struct gremlin_value key;      /* of a map: a token */
    struct gremlin_part *key_part; /* computes the key */
};

/* Pop on a map or side effect means nothing. Takes the value found, gives what by() makes of it. */
static bool select_by(struct gremlin_run *run, struct gremlin_step *step,
                      const struct gremlin_walker *traverser, size_t index,
                      struct gremlin_value found_value, struct gremlin_value *ret_value,
                      bool *ret_found, struct error *err)
{
    bool good = gremlin_by_apply_value(run, gremlin_step_by(step, index), traverser, found_value,
                                       ret_value, ret_found, err);

    gremlin_value_unref(found_value);
    return good;
}

static bool select_named(struct gremlin_run *run, struct gremlin_step *step,
                         const struct gremlin_walker *traverser, struct slice name, size_t index,
                         struct gremlin_value *ret_value, bool *ret_found, struct error *err)
{
    struct gremlin_value value;

    if (!gremlin_scope_value(run, traverser, name, ((struct select *)step)->pop, &value, ret_found,
                             err))
        return false;
    return !*ret_found || select_by(run, step, traverser, index, value, ret_value, ret_found, err);
}

static bool select_one(struct gremlin_run *run, struct gremlin_step *step,
                       struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct select *select = (struct select *)step;
    struct gremlin_value value;

    if (!select_named(run, step, traverser, select->names[0], 0, &value, ret_keep, err))
        return false;
    if (*ret_keep)
        gremlin_walker_set(run, traverser, value, step);
    return true;
}

static bool select_several(struct gremlin_run *run, struct gremlin_step *step,
                           struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct select *select = (struct select *)step;
    struct gremlin_value map = gremlin_map_new(run->heap);

    for (size_t i = 0; i < select->count; i++) {
        struct gremlin_value key, value;

        if (!select_named(run, step, traverser, select->names[i], i, &value, ret_keep, err)) {
            gremlin_value_unref(map);
            return false;
        }
        if (!*ret_keep) {
            gremlin_value_unref(map);
            return true;
        }
        key = gremlin_string(run->heap, select->names[i]);
        gremlin_map_put_take(map, key, value);
        gremlin_value_unref(key);
    }
    gremlin_walker_set(run, traverser, map, step);
    return true;
}

static bool select_column(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                          struct error *err)
{
    struct gremlin_value value;

    if (!gremlin_value_of_column(run, traverser->value, ((struct select *)step)->column, &value,
                                 err))
        return false;
    gremlin_walker_set(run, traverser, value, step);
    return true;
}

/* A key that is computed, or no string: of a map, or of the scope if it is a string. */
static bool select_keyed(struct gremlin_run *run, struct gremlin_step *step,
                         struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct select *select = (struct select *)step;
    struct gremlin_value key = gremlin_value_ref(select->key), value = GREMLIN_NOTHING;
    const struct gremlin_value *held = NULL;
    bool good = true;

    *ret_keep = true;
    if (select->key_part &&
        !gremlin_part_value(run, select->key_part, traverser, &key, ret_keep, err))
        return false;
    if (!*ret_keep)
        return true;
    if (traverser->value.type == GREMLIN_MAP)
        held = gremlin_map_get(traverser->value, key);
    if (held)
        good = select_by(run, step, traverser, 0, gremlin_value_ref(*held), &value, ret_keep, err);
    else if (gremlin_is_string(key))
        good = select_named(run, step, traverser, gremlin_bytes(key), 0, &value, ret_keep, err);
    else
        *ret_keep = false;
    gremlin_value_unref(key);
    if (good && *ret_keep)
        gremlin_walker_set(run, traverser, value, step);
    return good;
}

static const struct gremlin_step_kind step_select_one = {
    .name = "select", .flags = STEP_NEEDS_LABELS, .one = select_one};
static const struct gremlin_step_kind step_select_several = {
    .name = "select", .flags = STEP_NEEDS_LABELS, .one = select_several};
static const struct gremlin_step_kind step_select_column = {.name = "select", .one = select_column};
static const struct gremlin_step_kind step_select_keyed = {
    .name = "select", .flags = STEP_NEEDS_LABELS, .one = select_keyed};

bool compile_select(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct gremlin_value first = raw->arguments[0];
    size_t from = 0;
    struct select *select;

    if (gremlin_argument_is_family(first, GREMLIN_ENUM_COLUMN)) {
        select = STEP_ADD(compiler, raw, &step_select_column, struct select);
        select->column = first.word;
        return true;
    }
    if (gremlin_argument_is_family(first, GREMLIN_ENUM_POP))
        from = 1;
    if (raw->count == from)
        return gremlin_argument_wrong(raw, from, "a label", err);
    if (gremlin_argument_is_traversal(raw->arguments[from]) ||
        gremlin_argument_is_family(raw->arguments[from], GREMLIN_ENUM_T)) {
        select = STEP_ADD(compiler, raw, &step_select_keyed, struct select);
        select->step.local = true;
        if (gremlin_argument_is_traversal(raw->arguments[from])) {
            if (!gremlin_step_child(compiler, &select->step, raw->arguments[from],
                                    (struct gremlin_part_options){0}, &select->key_part, err))
                return false;
        } else {
            select->key = raw->arguments[from];
        }
    } else {
        select = STEP_ADD(compiler, raw,
                          raw->count - from == 1 ? &step_select_one : &step_select_several,
                          struct select);
    }
    select->pop = from ? (enum gremlin_enum_word)first.word.word : GREMLIN_POP_LAST;
    if (select->step.kind == &step_select_keyed)
        return true;
    return gremlin_argument_texts(compiler, raw, from, &select->names, &select->count, err) &&
           (select->count > 0 || gremlin_argument_wrong(raw, from, "a label", err));
}

/* --- where ----------------------------------------------------------------------------------- */

struct where {
    struct gremlin_step step;
    struct slice start; /* data NULL: the object itself */
    struct gremlin_value predicate;
};

/* The labels of a predicate become what they stand for. by()s are taken in turn. */
static bool predicate_resolve(struct gremlin_run *run, struct gremlin_step *step,
                              const struct gremlin_walker *traverser,
                              struct gremlin_value predicate, size_t *by,
                              struct gremlin_value *ret_predicate, bool *ret_found,
                              struct error *err)
{
    const struct gremlin_predicate *self = gremlin_predicate(predicate);
    bool nested =
        self->name == GREMLIN_P_AND || self->name == GREMLIN_P_OR || self->name == GREMLIN_P_NOT;
    struct gremlin_value values = gremlin_list_new(run->heap, self->count);
    bool good = true;

    *ret_found = true;
    for (size_t i = 0; good && *ret_found && i < self->count; i++) {
        struct gremlin_value object, value = GREMLIN_NOTHING;

        if (nested) {
            good = predicate_resolve(run, step, traverser, self->values[i], by, &value, ret_found,
                                     err);
        } else if (gremlin_is_string(self->values[i])) {
            good = scope_must(run, traverser, gremlin_bytes(self->values[i]), &object, err);
            if (good) {
                good = gremlin_by_apply_value(run, gremlin_step_by(step, (*by)++), traverser,
                                              object, &value, ret_found, err);
                gremlin_value_unref(object);
            }
        } else {
            value = gremlin_value_ref(self->values[i]);
        }
        if (!good || !*ret_found)
            break;
        if ((self->name == GREMLIN_P_WITHIN || self->name == GREMLIN_P_WITHOUT) &&
            gremlin_value_iterates(value)) {
            struct gremlin_value items = gremlin_value_listed(run, value);

            for (size_t j = 0; j < gremlin_list(items)->count; j++)
                gremlin_list_add(values, gremlin_list(items)->items[j]);
            gremlin_value_unref(items);
            gremlin_value_unref(value);
        } else {
            gremlin_list_add_take(values, value);
        }
    }
    if (good && *ret_found)
        good = gremlin_predicate_new(run->heap, gremlin_predicate_text(self->name),
                                     gremlin_list(values)->items, gremlin_list(values)->count,
                                     ret_predicate, err);
    gremlin_value_unref(values);
    return good;
}

static bool where_one(struct gremlin_run *run, struct gremlin_step *step,
                      struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    const struct where *where = (struct where *)step;
    struct gremlin_value object, left, predicate;
    size_t by = 1;
    bool found;

    if (!where->start.data)
        object = gremlin_value_ref(traverser->value);
    else if (!scope_must(run, traverser, where->start, &object, err))
        return false;
    *ret_keep = false;
    if (!gremlin_by_apply_value(run, gremlin_step_by(step, 0), traverser, object, &left, &found,
                                err))
        return false;
    gremlin_value_unref(object);
    if (!found)
        return true;
    if (!predicate_resolve(run, step, traverser, where->predicate, &by, &predicate, &found, err)) {
        gremlin_value_unref(left);
        return false;
    }
    if (found) {
        *ret_keep = gremlin_operand_test(run, predicate, left);
        gremlin_value_unref(predicate);
    }
    gremlin_value_unref(left);
    return true;
}

static const struct gremlin_step_kind step_where = {
    .name = "where", .flags = STEP_FILTERS | STEP_NEEDS_LABELS, .one = where_one};

bool compile_where(struct gremlin_compiler *compiler, struct gremlin_raw *raw, struct error *err)
{
    struct gremlin_value last = raw->arguments[raw->count - 1];
    struct where *where;
    struct gremlin_part *part;

    if (gremlin_argument_is_traversal(last)) {
        if (raw->count != 1 || raw->by_count)
            return REFUSE(err, "where() of a traversal takes neither a label nor by()");
        return gremlin_compile_argument(compiler, last,
                                        (struct gremlin_part_options){.test = true, .where = true},
                                        &part, err) &&
               gremlin_add_filter(compiler, raw, part, false);
    }
    if (last.type != GREMLIN_PREDICATE)
        return gremlin_argument_wrong(raw, raw->count - 1, "a predicate or traversal", err);
    where = STEP_ADD(compiler, raw, &step_where, struct where);
    where->predicate = last;
    return raw->count == 1 || gremlin_argument_text(raw, 0, &where->start, err);
}

/* --- Children of where() --------------------------------------------------------------------- */

struct scope_step {
    struct gremlin_step step;
    struct slice label;
};

/* where(as('a')...): the child begins at what 'a' stands for. */
static bool where_start_one(struct gremlin_run *run, struct gremlin_step *step,
                            struct gremlin_walker *traverser, bool *ret_keep UNUSED,
                            struct error *err)
{
    struct gremlin_value value;

    if (!scope_must(run, traverser, ((struct scope_step *)step)->label, &value, err))
        return false;
    gremlin_value_replace_take(&traverser->value, value);
    traverser->on_trail = false;
    return true;
}

/* where(...as('b')): what comes out must be what 'b' stands for. */
static bool where_end_one(struct gremlin_run *run, struct gremlin_step *step,
                          struct gremlin_walker *traverser, bool *ret_keep, struct error *err)
{
    struct gremlin_value value;

    if (!scope_must(run, traverser, ((struct scope_step *)step)->label, &value, err))
        return false;
    *ret_keep = gremlin_equal(value, traverser->value);
    gremlin_value_unref(value);
    return true;
}

static const struct gremlin_step_kind step_where_start = {
    .name = "whereStart", .flags = STEP_FILTERS | STEP_NEEDS_LABELS, .one = where_start_one};
static const struct gremlin_step_kind step_where_end = {
    .name = "whereEnd", .flags = STEP_FILTERS | STEP_NEEDS_LABELS, .one = where_end_one};

void gremlin_add_where_end(struct gremlin_compiler *compiler, struct slice label, bool begins)
{
    STEP_ADD(compiler, NULL, begins ? &step_where_start : &step_where_end, struct scope_step)
        ->label = label;
}
