/* Operands and paths. Sources lead from a variable to the path its values stand at: `x IN c.tags`
 * makes x.a the path /tags/[]/a of the item. */
#include "query/expression/imply.h"

#include "query/expression/subquery.h"

enum { STEPS_MAX = DOCUMENT_PATH_SEGMENTS_MAX };

struct steps {
    struct document_segment list[STEPS_MAX];
    size_t count;
    bool elements;
};

const struct query_implied *query_imply(const struct query_implying *implying,
                                        const struct query_expression *expression, bool truth)
{
    return expression->kind->imply ? expression->kind->imply(expression, implying, truth) : NULL;
}

static const struct query_source *source_in(const struct query_subquery *query, uint32_t slot)
{
    for (size_t i = 0; query && i < query->source_count; i++) {
        if (query->sources[i].slot == slot)
            return &query->sources[i];
    }
    return NULL;
}

static const struct query_source *source_of(const struct query_implying *implying, uint32_t slot)
{
    const struct query_source *source = source_in(implying->inner, slot);

    return source ? source : source_in(implying->query, slot);
}

/* Sources are few and each refers to one before it, so this ends. */
static bool steps_find(const struct query_implying *implying,
                       const struct query_expression *expression, size_t depth, struct steps *steps)
{
    const struct query_step *list;
    uint32_t slot;
    size_t count;

    if (!query_is_path(expression, &slot, &list, &count))
        return false;
    if (slot != 0) {
        const struct query_source *source = source_of(implying, slot);

        if (!source || source->kind == QUERY_SOURCE_ROWS || depth > QUERY_SLOTS_MAX ||
            !steps_find(implying, source->expression, depth + 1, steps))
            return false;
        if (source->kind == QUERY_SOURCE_EACH) {
            if (!steps->count || steps->count == STEPS_MAX)
                return false;
            steps->list[steps->count++] =
                (struct document_segment){.kind = DOCUMENT_SEGMENT_ELEMENTS};
            steps->elements = true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!list[i].name.data || steps->count == STEPS_MAX)
            return false;
        steps->list[steps->count++] = (struct document_segment){.name = list[i].name};
    }
    return true;
}

static const struct document_value *constant_of(const struct query_expression *expression)
{
    static const struct document_value object = {.type = DOCUMENT_OBJECT},
                                       array = {.type = DOCUMENT_ARRAY};

    if (query_is_constant(expression))
        return query_constant_value(expression);
    if (expression->kind == &query_kind_object)
        return &object;
    return expression->kind == &query_kind_array ? &array : NULL;
}

struct query_operand query_operand_of(const struct query_implying *implying,
                                      const struct query_expression *expression)
{
    struct query_operand operand = {.constant = constant_of(expression)};
    struct document_segment *segments;
    struct steps steps;

    steps.count = 0;
    steps.elements = false;
    if (operand.constant || !steps_find(implying, expression, 0, &steps) || !steps.count)
        return operand;
    segments = ARENA_ARRAY(implying->arena, struct document_segment, steps.count + 1);
    memcpy(segments, steps.list, steps.count * sizeof *segments);
    operand.is_path = true;
    operand.path = (struct document_path){
        .segments = segments, .count = steps.count, .end = DOCUMENT_PATH_END_SCALAR};
    operand.elements = steps.elements;
    return operand;
}
