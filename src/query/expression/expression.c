/* Nodes, folding, leaves and reaching into values.
 *
 * A tree of pointers evaluated by recursion, rather than a program for a machine of our own: nearly
 * all the time goes into walking BSON and comparing, the depth is bounded when the tree is built,
 * and other languages add kinds without touching anything here. */
#include "query/expression/expression.h"

#include "document/bson.h"
#include "query/value/value.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    /* Of all subtrees of a plan together: what costs more is left to be run, where it is charged
     * and can be stopped. */
    FOLD_WORK_MAX = 1000000,
    BYTES_PER_WORK_SHIFT = 6,
    NODES_PER_BREATH = 1024, /* some hundred microseconds' worth */
};

/* --- Nodes ----------------------------------------------------------------------------------- */

const struct query_expression *query_build_fail(struct query_build *build, enum error_code code,
                                                const char *format, ...)
{
    if (!build->failed) {
        char message[sizeof build->error.message];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(message, sizeof message, format, arguments);
        va_end(arguments);
        build->failed = true;
        error_set(&build->error, code, "%s", message);
    }
    return query_constant(build, document_undefined());
}

static uint64_t slot_bit(uint32_t slot)
{
    return (uint64_t)1 << MIN(slot, 63u);
}

void *query_node(struct query_build *build, const struct query_kind *kind, size_t size,
                 const struct query_expression *const *children, size_t count)
{
    struct query_expression *node = arena_alloc_zero(build->arena, size);
    const struct query_expression **copy = NULL;
    unsigned depth = 0;

    assert(size >= sizeof *node && count < UINT32_MAX);
    if (count)
        copy = ARENA_ARRAY(build->arena, const struct query_expression *, count);
    node->kind = kind;
    node->children = copy;
    node->child_count = (uint32_t)count;
    node->stability = (uint8_t)kind->stability;
    for (size_t i = 0; i < count; i++) {
        copy[i] = children[i];
        depth = MAX(depth, (unsigned)children[i]->depth);
        node->stability = MAX(node->stability, children[i]->stability);
        node->slots_used |= children[i]->slots_used;
    }
    node->depth = (uint16_t)(depth + 1);
    if (build->nodes % NODES_PER_BREATH == 0 && build->breath.take)
        build->breath.take(build->breath.self);
    if (++build->nodes > QUERY_NODES_MAX && !build->failed)
        query_build_fail(build, ERROR_TOO_LARGE, "the query has more than %d parts",
                         QUERY_NODES_MAX);
    if (node->depth > QUERY_DEPTH_MAX) {
        query_build_fail(build, ERROR_TOO_DEEP, "the query is nested deeper than %d levels",
                         QUERY_DEPTH_MAX);
        node->depth = QUERY_DEPTH_MAX; /* so that it cannot run over while building goes on */
    }
    return node;
}

const struct query_expression *query_fold(struct query_build *build,
                                          const struct query_expression *expression)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    CLEANUP(query_context_done) struct query_context context = {0};
    struct query_limits limits = {.bytes_max = QUERY_FOLD_BYTES_MAX};
    struct document_value value;
    struct error err;
    bool folded;

    if (build->failed || query_is_constant(expression) || expression->slots_used ||
        expression->stability != QUERY_STABLE || build->fold_work >= FOLD_WORK_MAX ||
        build->fold_bytes >= QUERY_FOLD_BYTES_MAX)
        return expression;
    arena = arena_new();
    limits.work_max = FOLD_WORK_MAX - build->fold_work;
    query_context_init(&context, arena, &limits, NULL);
    context.keep_nonfinite = build->keep_nonfinite;
    folded = query_evaluate(expression, &context, &value, &err);
    build->fold_work += context.work;
    if (!folded)
        return expression; /* it fails the same way when it is run, if it ever is */
    build->fold_bytes += query_value_bytes(&value);
    return query_constant(build, value);
}

bool query_holds(const struct query_expression *filter, struct query_context *context,
                 bool *ret_holds, struct error *err)
{
    struct document_value value;

    if (!query_evaluate(filter, context, &value, err))
        return false;
    *ret_holds = value.type == DOCUMENT_BOOL && value.boolean;
    return true;
}

/* --- Leaves ---------------------------------------------------------------------------------- */

static bool constant_evaluate(const struct query_expression *expression,
                              struct query_context *context UNUSED,
                              struct document_value *ret_value, struct error *err UNUSED)
{
    *ret_value = ((const struct query_constant *)expression)->value;
    return true;
}

const struct query_kind query_kind_constant = {"constant", constant_evaluate, QUERY_STABLE};

const struct query_expression *query_constant(struct query_build *build,
                                              struct document_value value)
{
    return query_constant_borrowed(build, query_value_copy(&value, build->arena));
}

const struct query_expression *query_constant_borrowed(struct query_build *build,
                                                       struct document_value value)
{
    struct query_constant *node = query_node(build, &query_kind_constant, sizeof *node, NULL, 0);

    node->value = value;
    return &node->head;
}

static const struct query_slot *variable_slot(const struct query_expression *expression,
                                              const struct query_context *context)
{
    uint32_t slot = ((const struct query_variable *)expression)->slot;

    assert(slot < context->slot_count);
    return &context->slots[slot];
}

static bool variable_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct query_slot *slot = variable_slot(expression, context);

    if (slot->hidden)
        return slot->hidden->whole(slot->hidden_self, context, ret_value, err);
    *ret_value = slot->value;
    return true;
}

const struct query_kind query_kind_variable = {"variable", variable_evaluate, QUERY_STABLE};

const struct query_expression *query_variable(struct query_build *build, uint32_t slot)
{
    struct query_variable *node;

    if (slot >= QUERY_SLOTS_MAX)
        return query_build_fail(build, ERROR_TOO_LARGE, "the query has more than %d variables",
                                QUERY_SLOTS_MAX);
    node = query_node(build, &query_kind_variable, sizeof *node, NULL, 0);
    node->slot = slot;
    node->head.slots_used = slot_bit(slot);
    return &node->head;
}

/* --- Reaching into values -------------------------------------------------------------------- */

/* One step down, in place. False: there is nothing. */
static inline bool step_take(const struct query_step *step, struct query_context *context,
                             struct document_value *value)
{
    if (step->name.data) {
        if (value->type != DOCUMENT_OBJECT)
            return false;
        context->work += value->document.len >> BYTES_PER_WORK_SHIFT;
        return document_find(value->document, step->name, value);
    }
    if (value->type != DOCUMENT_ARRAY)
        return false;
    context->work += value->document.len >> BYTES_PER_WORK_SHIFT;
    return document_find_index(value->document, step->index, value);
}

static bool property_evaluate(const struct query_expression *expression,
                              struct query_context *context, struct document_value *ret_value,
                              struct error *err)
{
    const struct query_property *node = (const struct query_property *)expression;
    const struct query_expression *base = expression->children[0];
    const struct query_step *step = node->steps, *end = step + node->step_count;

    if (base->kind == &query_kind_variable) {
        const struct query_slot *slot = variable_slot(base, context);

        if (slot->hidden && step->name.data &&
            slot->hidden->property(slot->hidden_self, step->name, context, ret_value))
            step++;
        else
            *ret_value = slot->value;
    } else if (!query_evaluate(base, context, ret_value, err)) {
        return false;
    }
    for (; step < end; step++) {
        if (!step_take(step, context, ret_value)) {
            *ret_value = document_undefined();
            return true;
        }
    }
    return true;
}

const struct query_kind query_kind_property = {"property", property_evaluate, QUERY_STABLE};

/* A node one step longer than object's, if that is a chain already. */
static const struct query_expression *chain_extend(struct query_build *build,
                                                   const struct query_expression *object,
                                                   struct query_step step)
{
    const struct query_property *before = NULL;
    struct query_property *node;
    struct query_step *steps;
    size_t count = 0;

    if (object->kind == &query_kind_property) {
        before = (const struct query_property *)object;
        count = before->step_count;
        object = object->children[0];
        build->nodes--; /* the new one takes its place */
    }
    if (count >= DOCUMENT_DEPTH_MAX)
        return query_build_fail(build, ERROR_TOO_DEEP, "a path has more than %d steps",
                                DOCUMENT_DEPTH_MAX);
    node = query_node(build, &query_kind_property, sizeof *node, &object, 1);
    steps = ARENA_ARRAY(build->arena, struct query_step, count + 1);
    if (before)
        memcpy(steps, before->steps, count * sizeof *steps);
    steps[count] = step;
    node->steps = steps;
    node->step_count = count + 1;
    return query_fold(build, &node->head);
}

const struct query_expression *query_property_of(struct query_build *build,
                                                 const struct query_expression *object,
                                                 struct slice name)
{
    struct slice copy = arena_copy(build->arena, name);

    return chain_extend(
        build, object,
        (struct query_step){.name =
                                slice_of(copy.data ? copy.data : (const uint8_t *)"", copy.len)});
}

const struct query_expression *
query_element_of(struct query_build *build, const struct query_expression *array, uint64_t index)
{
    return chain_extend(build, array, (struct query_step){.index = index});
}

/* What a key names: false when it can name nothing. */
static bool step_of_key(const struct document_value *key, struct query_step *ret_step)
{
    int64_t index;

    if (key->type == DOCUMENT_STRING) {
        *ret_step = (struct query_step){.name = key->text};
        if (!key->text.data)
            ret_step->name = SLICE("");
        return true;
    }
    if (!document_to_int64(key, &index) || index < 0)
        return false;
    *ret_step = (struct query_step){.index = (uint64_t)index};
    return true;
}

static bool index_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    struct document_value key;
    struct query_step step;

    if (!query_evaluate(expression->children[0], context, ret_value, err) ||
        !query_evaluate(expression->children[1], context, &key, err))
        return false;
    if (!step_of_key(&key, &step) || !step_take(&step, context, ret_value))
        *ret_value = document_undefined();
    return true;
}

const struct query_kind query_kind_index = {"index", index_evaluate, QUERY_STABLE};

const struct query_expression *query_index(struct query_build *build,
                                           const struct query_expression *value,
                                           const struct query_expression *key)
{
    const struct query_expression *children[] = {value, key};
    struct query_step step;

    if (query_is_constant(key)) {
        if (!step_of_key(query_constant_value(key), &step))
            return query_constant(build, document_undefined());
        return chain_extend(build, value, step);
    }
    return query_fold(build, query_node(build, &query_kind_index, sizeof(struct query_expression),
                                        children, ARRAY_LEN(children)));
}

bool query_is_path(const struct query_expression *expression, uint32_t *ret_slot,
                   const struct query_step **ret_steps, size_t *ret_count)
{
    const struct query_property *property = NULL;

    if (expression->kind == &query_kind_property) {
        property = (const struct query_property *)expression;
        expression = expression->children[0];
    }
    if (expression->kind != &query_kind_variable)
        return false;
    *ret_slot = ((const struct query_variable *)expression)->slot;
    *ret_steps = property ? property->steps : NULL;
    *ret_count = property ? property->step_count : 0;
    return true;
}
