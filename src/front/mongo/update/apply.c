/* Modifiers at work on a tree, one after the other in the order of their paths.
 *
 * Paths that are known when an update is compiled do not meet, but `$`, `$[]` and `$[name]` may
 * lead to elements that another path has changed: nodes remember that they were touched, and
 * meeting one is the same conflict. */
#include "front/mongo/text.h"
#include "front/mongo/update/update_private.h"

#include <stdio.h>

static bool step(struct update_run *run, const struct update_modifier *modifier,
                 struct update_node *node, size_t at);

/* --- Values ----------------------------------------------------------------------------------- */

bool update_values_order(struct update_run *run, const struct document_value *a,
                         const struct document_value *b, int *ret_order)
{
    if (run->collator)
        return mongo_collate_compare(run->collator, a, b, run->input->context, ret_order, run->err);
    *ret_order = document_compare(DOCUMENT_ORDER_MONGO, a, b);
    return true;
}

static bool value_min_max(struct update_run *run, const struct update_modifier *modifier,
                          const struct document_value *before, struct document_value *ret_after)
{
    bool replace;
    int order = 0;

    if (before && !update_values_order(run, &modifier->value, before, &order))
        return false;
    replace = !before || (modifier->op == UPDATE_MIN ? order < 0 : order > 0);
    *ret_after = replace ? modifier->value : *before;
    return true;
}

static struct document_value date_now(const struct update_run *run,
                                      const struct update_modifier *modifier)
{
    if (!modifier->timestamp)
        return document_date(run->input->now_ms);
    return (struct document_value){.type = DOCUMENT_TIMESTAMP,
                                   .timestamp = run->input->now_timestamp};
}

bool update_value_compute(struct update_run *run, const struct update_modifier *modifier,
                          const struct document_value *before, bool *ret_there,
                          struct document_value *ret_after)
{
    *ret_there = true;
    switch (modifier->op) {
    case UPDATE_INC:
    case UPDATE_MUL:
        return update_number_compute(run, modifier, before, ret_after);
    case UPDATE_MIN:
    case UPDATE_MAX:
        return value_min_max(run, modifier, before, ret_after);
    case UPDATE_CURRENT_DATE:
        *ret_after = date_now(run, modifier);
        return true;
    case UPDATE_SET_ON_INSERT:
        *ret_there = run->input->inserting;
        *ret_after = modifier->value;
        return true;
    case UPDATE_BIT:
        return update_bits_compute(run, modifier, before, ret_after);
    case UPDATE_PUSH:
    case UPDATE_ADD_TO_SET:
    case UPDATE_POP:
    case UPDATE_PULL:
    case UPDATE_PULL_ALL:
        return update_array_compute(run, modifier, before, ret_there, ret_after);
    default:
        *ret_after = modifier->value;
        return true;
    }
}

/* --- Errors ----------------------------------------------------------------------------------- */

static bool conflict(struct update_run *run, const struct update_modifier *modifier)
{
    return mongo_error_set(run->err, MONGO_CONFLICTING_UPDATE_OPERATORS,
                           "Updating the path '%.*s' would create a conflict at '%.*s'",
                           SLICE_ARG(modifier->path.text), SLICE_ARG(modifier->path.text));
}

/* Does it make what is not there? */
static bool creates(const struct update_run *run, const struct update_modifier *modifier)
{
    switch (modifier->op) {
    case UPDATE_UNSET:
    case UPDATE_POP:
    case UPDATE_PULL:
    case UPDATE_PULL_ALL:
        return false;
    case UPDATE_SET_ON_INSERT:
        return run->input->inserting;
    default:
        return true;
    }
}

static bool not_viable(struct update_run *run, const struct update_modifier *modifier,
                       const struct update_node *node, struct slice name)
{
    struct document_value value;

    if (!creates(run, modifier))
        return true; /* what cannot be there need not be taken away */
    value = update_node_value(node, run->arena);
    return mongo_error_set(run->err, MONGO_PATH_NOT_VIABLE,
                           "Cannot create field '%.*s' in element %.*s", SLICE_ARG(name),
                           SLICE_ARG(mongo_text_element(node->name, &value, run->arena)));
}

static struct slice path_before(const struct update_modifier *modifier, size_t at)
{
    const struct update_component *last = &modifier->path.components[at - 1];

    return slice_of(modifier->path.text.data,
                    (size_t)(last->name.data + last->name.len - modifier->path.text.data));
}

/* --- The end of a path ------------------------------------------------------------------------ */

static bool array_backfill(struct update_run *run, struct update_node *array, int64_t index)
{
    if (index - (int64_t)array->count > UPDATE_BACKFILL_MAX)
        return mongo_error_set(run->err, MONGO_CANNOT_BACKFILL_ARRAY,
                               "can't backfill more than %d elements", UPDATE_BACKFILL_MAX);
    while ((int64_t)array->count < index)
        update_node_add(array, update_node_new(run->arena, SLICE(""), document_null()), run->arena);
    return true;
}

/* A child that was not there; an array is filled up to it. */
static bool child_add(struct update_run *run, struct update_node *node,
                      const struct update_component *component, struct update_node *child)
{
    child->name = component->name;
    if (node->value.type == DOCUMENT_ARRAY && !array_backfill(run, node, component->index))
        return false;
    update_node_add(node, child, run->arena);
    return true;
}

static void child_unset(struct update_node *node, struct update_node *child)
{
    if (node->value.type == DOCUMENT_OBJECT) {
        child->removed = true;
        return;
    }
    child->value = document_null();
    child->expanded = false;
    child->touched = true;
}

static bool end(struct update_run *run, const struct update_modifier *modifier,
                struct update_node *node, const struct update_component *component,
                struct update_node *child)
{
    struct document_value after;
    bool there;

    if (child && (child->touched || child->expanded))
        return conflict(run, modifier);
    if (modifier->op == UPDATE_UNSET) {
        if (child)
            child_unset(node, child);
        return true;
    }
    if (!update_value_compute(run, modifier, child ? &child->value : NULL, &there, &after))
        return false;
    if (!child) {
        if (!there)
            return true;
        child = update_node_new(run->arena, component->name, after);
        child->touched = true;
        return child_add(run, node, component, child);
    }
    child->touched = true;
    if (there)
        child->value = after;
    return true;
}

/* --- On the way ------------------------------------------------------------------------------- */

/* Nothing is there from this component on: objects are made as far as the end. */
static bool create(struct update_run *run, const struct update_modifier *modifier,
                   struct update_node *node, const struct update_component *component, size_t at)
{
    const struct update_component *components = modifier->path.components;
    struct update_node *first, *parent;
    struct document_value after;
    bool there;

    if (!creates(run, modifier))
        return true;
    for (size_t i = at + 1; i < modifier->path.count; i++)
        if (components[i].kind == UPDATE_EACH || components[i].kind == UPDATE_FILTERED)
            return mongo_error_set(run->err, MONGO_BAD_VALUE,
                                   "The path '%.*s' must exist in the document in order to apply "
                                   "array updates.",
                                   SLICE_ARG(path_before(modifier, i)));
    if (!update_value_compute(run, modifier, NULL, &there, &after))
        return false;
    if (!there)
        return true;
    first = parent =
        update_node_new(run->arena, component->name, document_value_of_type(DOCUMENT_OBJECT));
    for (size_t i = at + 1; i < modifier->path.count; i++) {
        bool last = i + 1 == modifier->path.count;
        struct update_node *child = update_node_new(
            run->arena, components[i].name, last ? after : document_value_of_type(DOCUMENT_OBJECT));

        child->touched = last;
        update_node_add(parent, child, run->arena);
        parent = child;
    }
    return child_add(run, node, component, first);
}

/* Goes on below a child, or changes it if it is the end. */
static bool descend(struct update_run *run, const struct update_modifier *modifier,
                    struct update_node *node, const struct update_component *component,
                    struct update_node *child, size_t at)
{
    const struct update_component *next;

    if (at + 1 == modifier->path.count)
        return end(run, modifier, node, component, child);
    if (!child)
        return create(run, modifier, node, component, at);
    if (child->touched)
        return conflict(run, modifier);
    next = &modifier->path.components[at + 1];
    if (next->kind == UPDATE_EACH || next->kind == UPDATE_FILTERED) {
        if (child->value.type != DOCUMENT_ARRAY) {
            struct document_value value = update_node_value(child, run->arena);

            return mongo_error_set(run->err, MONGO_BAD_VALUE,
                                   "Cannot apply array updates to non-array element %.*s: %.*s",
                                   SLICE_ARG(child->name),
                                   SLICE_ARG(mongo_text_value(&value, run->arena)));
        }
        return step(run, modifier, child, at + 1);
    }
    if (!update_node_is_nested(child))
        return not_viable(run, modifier, child, next->name);
    if (child->value.type == DOCUMENT_ARRAY && next->kind == UPDATE_NAME && next->index < 0)
        return not_viable(run, modifier, child, next->name);
    return step(run, modifier, child, at + 1);
}

/* Does the element match the filter of its component? */
static bool is_chosen(struct update_run *run, const struct update_component *component,
                      const struct update_node *element, bool *ret_chosen)
{
    CLEANUP(buf_done) struct buf buf = {0};
    struct document_value value, document;
    size_t begin;

    *ret_chosen = true;
    if (component->kind == UPDATE_EACH)
        return true;
    value = update_node_value(element, run->arena);
    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, component->filter->name, &value);
    document_end(&buf, begin);
    document = document_object(buf_slice(&buf));
    return mongo_match_holds(component->filter->match, &document, run->input->context, ret_chosen,
                             run->err);
}

static bool each(struct update_run *run, const struct update_modifier *modifier,
                 struct update_node *array, size_t at)
{
    const struct update_component *component = &modifier->path.components[at];

    update_node_expand(array, run->arena);
    for (size_t i = 0; i < array->count; i++) {
        char text[DOCUMENT_INDEX_SIZE];
        struct update_component place = {.name = document_index_key((uint32_t)i, text),
                                         .index = (int64_t)i};
        bool chosen;

        if (!query_work(run->input->context, 1, run->err) ||
            !is_chosen(run, component, array->children[i], &chosen))
            return false;
        if (!chosen)
            continue;
        array->children[i]->name = arena_copy(run->arena, place.name); /* for messages */
        if (!descend(run, modifier, array, &place, array->children[i], at))
            return false;
    }
    return true;
}

static bool step(struct update_run *run, const struct update_modifier *modifier,
                 struct update_node *node, size_t at)
{
    struct update_component component = modifier->path.components[at];

    if (component.kind == UPDATE_EACH || component.kind == UPDATE_FILTERED)
        return each(run, modifier, node, at);
    if (component.kind == UPDATE_POSITION) {
        if (run->input->position < 0)
            return mongo_error_set(run->err, MONGO_BAD_VALUE,
                                   "The positional operator did not find the match needed from the "
                                   "query.");
        component.index = run->input->position;
        component.name = arena_printf(run->arena, "%lld", (long long)component.index);
    }
    return descend(run, modifier, node, &component, update_node_child(node, &component, run->arena),
                   at);
}

/* --- $rename ---------------------------------------------------------------------------------- */

static bool no_array(struct update_run *run, const struct update_node *node, const char *which,
                     struct slice path)
{
    if (node->value.type != DOCUMENT_ARRAY)
        return true;
    return mongo_error_set(run->err, MONGO_BAD_VALUE,
                           "The %s field cannot be an array element, '%.*s' in doc with %.*s has "
                           "an array field called '%.*s'",
                           which, SLICE_ARG(path), (int)run->id_text.len - 2,
                           (const char *)run->id_text.data + 1, SLICE_ARG(node->name));
}

/* The node at a path, which no array may be on the way to. *ret_node NULL: nothing is there. */
static bool rename_find(struct update_run *run, struct update_node *root,
                        const struct update_path *path, const char *which,
                        struct update_node **ret_node)
{
    struct update_node *node = root;

    *ret_node = NULL;
    for (size_t i = 0; i < path->count; i++) {
        if (!no_array(run, node, which, path->text))
            return false;
        if (node->value.type != DOCUMENT_OBJECT)
            return true;
        node = update_node_child(node, &path->components[i], run->arena);
        if (!node)
            return true;
    }
    *ret_node = node;
    return true;
}

static bool rename_apply(struct update_run *run, const struct update_modifier *modifier,
                         struct update_node *root)
{
    struct update_node *from, *to;
    struct update_modifier set = *modifier;

    if (!rename_find(run, root, modifier->from, "source", &from))
        return false;
    if (!from)
        return true;
    if (!rename_find(run, root, &modifier->path, "destination", &to))
        return false;
    set.op = UPDATE_SET;
    set.value = update_node_value(from, run->arena);
    if (!step(run, &set, root, 0))
        return false;
    from->removed = true;
    return true;
}

bool update_modifiers_apply(struct update_run *run, const struct mongo_update *update,
                            struct update_node *root)
{
    for (size_t i = 0; i < update->count; i++) {
        const struct update_modifier *modifier = &update->modifiers[i];

        if (modifier->op == UPDATE_RENAME ? !rename_apply(run, modifier, root)
                                          : !step(run, modifier, root, 0))
            return false;
    }
    return true;
}
