/* Asking a tree of a document. A path is walked as MongoDB's own iterator does it: at an array that
 * is not its end, every element that is an object goes on with the rest of the path, and so does
 * the element that the next name numbers; at an array that is its end, every element is asked, then
 * the array as a whole. An element that is reached by number at the end is asked as it is, and not
 * its elements. What leads nowhere is asked as "nothing", once; an array whose elements all lead
 * nowhere by being no objects is not. */
#include "front/mongo/match/match_private.h"
#include "query/value/regex.h"

#include <math.h>

enum { BYTES_PER_WORK_SHIFT = 6, BITS_PER_BYTE = 8, LONG_BITS = 64 };

struct walk {
    struct match_evaluation *evaluation;
    const struct match_node *node;
    bool whole; /* arrays at the end of the path are asked as they are */
};

static bool work(struct match_evaluation *evaluation, uint64_t units)
{
    if (query_work(evaluation->context, units, evaluation->err))
        return true;
    evaluation->failed = true;
    return false;
}

/* --- Values ----------------------------------------------------------------------------------- */

uint8_t match_bracket(enum document_type type)
{
    switch (type) {
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
    case DOCUMENT_DECIMAL128:
        return DOCUMENT_DOUBLE;
    case DOCUMENT_SYMBOL:
        return DOCUMENT_STRING;
    case DOCUMENT_UNDEFINED:
        return DOCUMENT_NULL;
    default:
        return (uint8_t)type;
    }
}

static bool is_nan(const struct document_value *value)
{
    double number;

    return (value->type == DOCUMENT_DOUBLE || value->type == DOCUMENT_DECIMAL128) &&
           document_to_double(value, &number) && isnan(number);
}

static bool order_holds(enum match_kind kind, int order)
{
    switch (kind) {
    case MATCH_EQUAL:
        return order == 0;
    case MATCH_LESS:
        return order < 0;
    case MATCH_LESS_EQUAL:
        return order <= 0;
    case MATCH_GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

/* MinKey and MaxKey are the only ones that compare with values of other types. */
static bool across_holds(enum match_kind kind, enum document_type operand)
{
    if (operand == DOCUMENT_MIN_KEY)
        return kind == MATCH_GREATER || kind == MATCH_GREATER_EQUAL;
    return operand == DOCUMENT_MAX_KEY && (kind == MATCH_LESS || kind == MATCH_LESS_EQUAL);
}

/* The value as the node compares it. False: the evaluation failed. */
static bool compared(struct match_evaluation *evaluation, const struct match_node *node,
                     const struct document_value *value, struct document_value *ret_value)
{
    if (!node->collator) {
        *ret_value = *value;
        return true;
    }
    if (mongo_collate(node->collator, value, evaluation->context, ret_value, evaluation->err))
        return true;
    evaluation->failed = true;
    return false;
}

static bool comparison_holds(struct match_evaluation *evaluation, const struct match_node *node,
                             const struct document_value *value)
{
    const struct document_value *operand = &node->compared;
    struct document_value form;

    if (!value || match_bracket(value->type) != match_bracket(operand->type))
        return (!value && operand->type == DOCUMENT_NULL && node->kind == MATCH_EQUAL) ||
               across_holds(node->kind, operand->type);
    if (match_bracket(operand->type) == DOCUMENT_NULL)
        return node->kind == MATCH_EQUAL;
    if (is_nan(value) != is_nan(operand))
        return false;
    return compared(evaluation, node, value, &form) &&
           order_holds(node->kind, document_compare(DOCUMENT_ORDER_MONGO, &form, operand));
}

static bool regex_holds(struct match_evaluation *evaluation, const struct match_node *node,
                        const struct document_value *value)
{
    struct query_regex_match match;
    struct query_regex *regex;
    bool found;

    if (!value)
        return false;
    if (value->type == DOCUMENT_REGEX)
        return slice_equal(value->regex.pattern, node->regex.pattern) &&
               slice_equal(value->regex.options, node->regex.options);
    if (value->type != DOCUMENT_STRING && value->type != DOCUMENT_SYMBOL)
        return false;
    regex = query_regex_get(evaluation->context, node->regex.pattern, node->regex.modifiers);
    if (!regex)
        return false;
    if (!query_regex_find(evaluation->context, regex, value->text, 0, &found, &match,
                          evaluation->err)) {
        evaluation->failed = true;
        return false;
    }
    return found;
}

static bool in_holds(struct match_evaluation *evaluation, const struct match_node *node,
                     const struct document_value *value)
{
    size_t low = 0, high = node->in.count;
    struct document_value form;

    if (!value || value->type == DOCUMENT_UNDEFINED || value->type == DOCUMENT_NULL)
        return node->in.null;
    if (!compared(evaluation, node, value, &form))
        return false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = document_compare(DOCUMENT_ORDER_MONGO, &form, &node->in.values[middle]);

        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    for (size_t i = 0; i < node->count; i++)
        if (regex_holds(evaluation, node->children[i], value))
            return true;
    return false;
}

static bool mod_holds(const struct match_node *node, const struct document_value *value)
{
    int64_t dividend;
    double number;

    if (!value || !document_is_number(value))
        return false;
    if (!document_to_int64(value, &dividend)) {
        if (!document_to_double(value, &number) || !isfinite(number) || fabs(number) >= 0x1p63)
            return false;
        dividend = (int64_t)number;
    }
    if (node->mod.divisor == -1) /* INT64_MIN % -1 has no answer in C */
        return node->mod.remainder == 0;
    return dividend % node->mod.divisor == node->mod.remainder;
}

static bool bit_of(const struct document_value *value, int64_t number, uint32_t position)
{
    if (value->type == DOCUMENT_BINARY)
        return position / BITS_PER_BYTE < value->binary.bytes.len &&
               (value->binary.bytes.data[position / BITS_PER_BYTE] >> position % BITS_PER_BYTE & 1);
    if (position >= LONG_BITS)
        return number < 0;
    return (uint64_t)number >> position & 1;
}

static bool bits_hold(const struct match_node *node, const struct document_value *value)
{
    bool all = node->bits.how == MATCH_BITS_ALL_SET || node->bits.how == MATCH_BITS_ALL_CLEAR;
    bool set = node->bits.how == MATCH_BITS_ALL_SET || node->bits.how == MATCH_BITS_ANY_SET;
    int64_t number = 0;

    if (!value || (value->type != DOCUMENT_BINARY && !document_to_int64(value, &number)))
        return false;
    for (size_t i = 0; i < node->bits.count; i++) {
        bool holds = bit_of(value, number, node->bits.positions[i]) == set;

        if (holds != all)
            return holds;
    }
    return all;
}

static bool element_holds(struct match_evaluation *evaluation, const struct match_node *node,
                          const struct document_value *value)
{
    bool objects = node->kind == MATCH_ELEMENT_OBJECT;
    struct document_iter iter;

    if (!value || value->type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, value->document);
    for (int64_t i = 0; document_iter_next(&iter) && !evaluation->failed; i++) {
        if (objects && iter.value.type != DOCUMENT_OBJECT && iter.value.type != DOCUMENT_ARRAY)
            continue;
        if (!work(evaluation, 1))
            return false;
        if (match_node_holds(evaluation, node->children[0], &iter.value)) {
            evaluation->position = i;
            return true;
        }
    }
    return false;
}

bool match_value_holds(struct match_evaluation *evaluation, const struct match_node *node,
                       const struct document_value *value)
{
    if (!work(evaluation, 1))
        return false;
    switch (node->kind) {
    case MATCH_IN:
        return in_holds(evaluation, node, value);
    case MATCH_REGEX:
        return regex_holds(evaluation, node, value);
    case MATCH_MOD:
        return mod_holds(node, value);
    case MATCH_EXISTS:
        return value != NULL;
    case MATCH_TYPE:
        return value && (node->type.types & match_type_bit(value->type));
    case MATCH_BITS:
        return bits_hold(node, value);
    case MATCH_GEO:
        return match_geo_holds(evaluation, node, value);
    case MATCH_SIZE:
        return value && value->type == DOCUMENT_ARRAY &&
               (int64_t)document_count(value->document) == node->size;
    case MATCH_ELEMENT:
    case MATCH_ELEMENT_OBJECT:
        return element_holds(evaluation, node, value);
    case MATCH_OBJECT:
        return value && value->type == DOCUMENT_OBJECT &&
               match_node_holds(evaluation, node->children[0], value);
    default:
        return comparison_holds(evaluation, node, value);
    }
}

/* --- Paths ------------------------------------------------------------------------------------ */

static bool elements_walk(const struct walk *walk, const struct document_value *array, size_t at,
                          int64_t outer);

/* Asks a value, and remembers the element it was found below. $elemMatch has said its own. */
static bool ask(const struct walk *walk, const struct document_value *value, int64_t outer)
{
    if (!match_value_holds(walk->evaluation, walk->node, value))
        return false;
    if (outer >= 0)
        walk->evaluation->position = outer;
    return true;
}

static bool end_walk(const struct walk *walk, const struct document_value *value, int64_t outer)
{
    struct document_iter iter;

    if (value->type == DOCUMENT_ARRAY && !walk->whole) {
        document_iter_init(&iter, value->document);
        for (int64_t i = 0; document_iter_next(&iter) && !walk->evaluation->failed; i++)
            if (ask(walk, &iter.value, outer < 0 ? i : outer))
                return true;
    }
    return ask(walk, value, outer);
}

/* The field of an object, or the element of an array that stands for one below $elemMatch. */
static bool field_find(const struct walk *walk, const struct document_value *object,
                       const struct match_component *component, struct document_value *ret_value)
{
    walk->evaluation->context->work += object->document.len >> BYTES_PER_WORK_SHIFT;
    if (object->type == DOCUMENT_ARRAY)
        return component->index >= 0 &&
               document_find_index(object->document, (uint64_t)component->index, ret_value);
    return document_find(object->document, component->name, ret_value);
}

static bool object_walk(const struct walk *walk, const struct document_value *object, size_t at,
                        int64_t outer)
{
    const struct match_path *path = walk->node->path;
    struct document_value value = *object;

    for (;; at++) {
        if (!field_find(walk, &value, &path->components[at], &value))
            return ask(walk, NULL, outer);
        if (at + 1 == path->count)
            return end_walk(walk, &value, outer);
        if (value.type == DOCUMENT_ARRAY)
            return elements_walk(walk, &value, at + 1, outer);
        if (value.type != DOCUMENT_OBJECT)
            return ask(walk, NULL, outer);
    }
}

/* The element that the path numbers: at its end it is asked as it is. */
static bool numbered_walk(const struct walk *walk, const struct document_value *element, size_t at,
                          int64_t outer)
{
    if (at + 1 == walk->node->path->count)
        return ask(walk, element, outer);
    if (element->type == DOCUMENT_OBJECT)
        return object_walk(walk, element, at + 1, outer);
    return element->type == DOCUMENT_ARRAY && elements_walk(walk, element, at + 1, outer);
}

static bool elements_walk(const struct walk *walk, const struct document_value *array, size_t at,
                          int64_t outer)
{
    int64_t number = walk->node->path->components[at].index;
    struct document_iter iter;

    document_iter_init(&iter, array->document);
    for (int64_t i = 0; document_iter_next(&iter) && !walk->evaluation->failed; i++) {
        int64_t first = outer < 0 ? i : outer;

        if (!work(walk->evaluation, 1))
            return false;
        if (iter.value.type == DOCUMENT_OBJECT && object_walk(walk, &iter.value, at, first))
            return true;
        if (i == number && numbered_walk(walk, &iter.value, at, first))
            return true;
    }
    return false;
}

/* --- Trees ------------------------------------------------------------------------------------ */

static bool is_truth(const struct document_value *value)
{
    double number;

    if (document_is_number(value))
        return document_to_double(value, &number) && number != 0;
    if (value->type == DOCUMENT_BOOL)
        return value->boolean;
    return value->type != DOCUMENT_NULL && value->type != DOCUMENT_UNDEFINED;
}

static bool near_holds(struct match_evaluation *evaluation, const struct match_node *node,
                       const struct document_value *value)
{
    bool holds;

    if (mongo_near_holds(node->near, value, evaluation->context, &holds, evaluation->err))
        return holds;
    evaluation->failed = true;
    return false;
}

static bool expression_holds(struct match_evaluation *evaluation,
                             const struct query_expression *expression)
{
    struct document_value value;

    if (!query_evaluate(expression, evaluation->context, &value, evaluation->err)) {
        evaluation->failed = true;
        return false;
    }
    return is_truth(&value);
}

static bool predicate_holds(struct match_evaluation *evaluation, const struct match_node *node,
                            const struct document_value *value)
{
    struct walk walk = {evaluation, node, node->kind >= MATCH_SIZE || node->kind == MATCH_EXISTS};

    if (!node->path)
        return match_value_holds(evaluation, node, value);
    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY)
        return match_value_holds(evaluation, node, NULL);
    return object_walk(&walk, value, 0, -1);
}

static bool not_holds(struct match_evaluation *evaluation, const struct match_node *node,
                      const struct document_value *value)
{
    int64_t position = evaluation->position;
    bool holds = !match_node_holds(evaluation, node->children[0], value);

    evaluation->position = position; /* a negation says nothing of elements */
    return holds && !evaluation->failed;
}

static bool text_holds(struct match_evaluation *evaluation, const struct match_node *node,
                       const struct document_value *value)
{
    bool holds = false;

    if (value->type == DOCUMENT_OBJECT &&
        !mongo_text_holds(node->text, value->document, evaluation->context, &holds,
                          evaluation->err))
        evaluation->failed = true;
    return holds && !evaluation->failed;
}

static bool node_holds(struct match_evaluation *evaluation, const struct match_node *node,
                       const struct document_value *value)
{
    switch (node->kind) {
    case MATCH_ALL:
        for (size_t i = 0; i < node->count; i++)
            if (!match_node_holds(evaluation, node->children[i], value))
                return false;
        return true;
    case MATCH_ANY:
        for (size_t i = 0; i < node->count && !evaluation->failed; i++)
            if (match_node_holds(evaluation, node->children[i], value))
                return true;
        return false;
    case MATCH_NOT:
        return not_holds(evaluation, node, value);
    case MATCH_SAMPLE:
        return (double)(query_random(evaluation->context) >> 11) * 0x1p-53 < node->rate;
    case MATCH_EXPRESSION:
        return expression_holds(evaluation, node->expression);
    case MATCH_NEAR:
        return near_holds(evaluation, node, value);
    case MATCH_SCHEMA:
        return match_schema_holds(evaluation, node->schema, value);
    case MATCH_TEXT:
        return text_holds(evaluation, node, value);
    default:
        return predicate_holds(evaluation, node, value);
    }
}

/* What does not hold leaves no position behind. */
bool match_node_holds(struct match_evaluation *evaluation, const struct match_node *node,
                      const struct document_value *value)
{
    int64_t position = evaluation->position;
    bool holds = node_holds(evaluation, node, value);

    if (!holds)
        evaluation->position = position;
    return holds;
}
