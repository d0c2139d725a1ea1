#include "front/gremlin/graph/condition.h"

#include "front/gremlin/graph/stored.h"
#include "front/gremlin/value/special.h"
#include "query/expression/imply.h"
#include "query/expression/item.h"
#include "query/value/compare.h"

#include <math.h>

enum { NESTED_MAX = 32, HASHED_MIN = 9 };

/* What a value has to satisfy. */
struct check {
    enum gremlin_predicate_name name; /* and, or; none of not, inside, outside, between */
    struct document_value *values;
    size_t value_count;
    uint32_t *slots; /* of within and without with many values: 1 + where each is, by hash */
    size_t slot_count;
    const struct check *const *parts; /* of and, or */
    size_t part_count;
};

enum subject { SUBJECT_LABEL, SUBJECT_ID, SUBJECT_BARE, SUBJECT_LISTED };

struct gremlin_test {
    enum gremlin_condition_kind kind;
    enum subject subject;
    struct slice name;         /* of the stored property */
    bool never;                /* a name that is no property's */
    struct slice instead;      /* of a label: what counts where none is stored */
    const struct check *check; /* NULL: whether it is there */
};

/* --- Can it be? ------------------------------------------------------------------------------- */

static bool scalar_of(const struct gremlin_value *value, struct arena *arena,
                      struct document_value *ret_value)
{
    struct document_value tag;
    struct error ignored = {0};

    switch (value->type) {
    case GREMLIN_BOOLEAN:
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
    case GREMLIN_STRING:
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
    case GREMLIN_UUID:
        return !arena || gremlin_stored_encode(value, arena, ret_value, &tag, &ignored);
    default:
        return false;
    }
}

static bool scalars_only(const struct gremlin_predicate *predicate)
{
    for (uint32_t i = 0; i < predicate->count; i++)
        if (!scalar_of(&predicate->values[i], NULL, NULL))
            return false;
    return true;
}

static bool texts_only(const struct gremlin_predicate *predicate)
{
    for (uint32_t i = 0; i < predicate->count; i++)
        if (predicate->values[i].type != GREMLIN_STRING)
            return false;
    return predicate->count == 1;
}

/* UUIDs have an order of their own in Java. */
static bool ordered_only(const struct gremlin_predicate *predicate)
{
    for (uint32_t i = 0; i < predicate->count; i++)
        if (predicate->values[i].type == GREMLIN_UUID)
            return false;
    return scalars_only(predicate);
}

static bool predicate_fits(const struct gremlin_predicate *predicate, unsigned depth)
{
    switch (predicate->name) {
    case GREMLIN_P_EQ:
    case GREMLIN_P_NEQ:
        return predicate->count == 1 && scalars_only(predicate);
    case GREMLIN_P_WITHIN:
    case GREMLIN_P_WITHOUT:
        return scalars_only(predicate);
    case GREMLIN_P_LT:
    case GREMLIN_P_LTE:
    case GREMLIN_P_GT:
    case GREMLIN_P_GTE:
        return predicate->count == 1 && ordered_only(predicate);
    case GREMLIN_P_INSIDE:
    case GREMLIN_P_OUTSIDE:
    case GREMLIN_P_BETWEEN:
        return predicate->count == 2 && ordered_only(predicate);
    case GREMLIN_P_CONTAINING:
    case GREMLIN_P_STARTING_WITH:
    case GREMLIN_P_ENDING_WITH:
    case GREMLIN_P_NOT_CONTAINING:
    case GREMLIN_P_NOT_STARTING_WITH:
    case GREMLIN_P_NOT_ENDING_WITH:
        return texts_only(predicate);
    case GREMLIN_P_NOT:
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        for (uint32_t i = 0; i < predicate->count; i++)
            if (predicate->values[i].type != GREMLIN_PREDICATE || depth == NESTED_MAX ||
                !predicate_fits(gremlin_predicate(predicate->values[i]), depth + 1))
                return false;
        return predicate->count > 0;
    default:
        return false;
    }
}

bool gremlin_condition_is_stored(const struct gremlin_condition *condition)
{
    if (condition->kind == GREMLIN_CONDITION_HAS_KEY ||
        condition->kind == GREMLIN_CONDITION_HAS_NOT)
        return true;
    if (condition->operand.type == GREMLIN_PREDICATE)
        return predicate_fits(gremlin_predicate(condition->operand), 0);
    return scalar_of(&condition->operand, NULL, NULL);
}

/* --- Compiling -------------------------------------------------------------------------------- */

struct compiling {
    struct arena *arena;
    bool id; /* values are ids: texts, whatever type they have */
};

static const struct check *check_compile(struct compiling *c, const struct gremlin_value *operand,
                                         bool negated);

static struct document_value value_compile(struct compiling *c, const struct gremlin_value *value)
{
    struct document_value compiled = document_undefined();
    struct slice text;

    if (c->id && gremlin_stored_id(value, c->arena, &text))
        return document_string(arena_copy(c->arena, text));
    (void)scalar_of(value, c->arena, &compiled);
    return compiled;
}

static void check_hash(struct compiling *c, struct check *check)
{
    check->slot_count = 16;
    while (check->slot_count < 2 * check->value_count)
        check->slot_count *= 2;
    check->slots =
        arena_alloc_zero(c->arena, memory_array_size(check->slot_count, sizeof *check->slots));
    for (size_t i = 0; i < check->value_count; i++) {
        size_t at = query_value_hash(&check->values[i]) & (check->slot_count - 1);

        while (check->slots[at])
            at = (at + 1) & (check->slot_count - 1);
        check->slots[at] = (uint32_t)i + 1;
    }
}

static struct check *check_of(struct compiling *c, enum gremlin_predicate_name name,
                              const struct gremlin_value *values, size_t count)
{
    struct check *check = ARENA_NEW(c->arena, struct check);

    check->name = name;
    check->values = ARENA_ARRAY(c->arena, struct document_value, count + 1);
    check->value_count = count;
    for (size_t i = 0; i < count; i++)
        check->values[i] = value_compile(c, &values[i]);
    if (count >= HASHED_MIN)
        check_hash(c, check);
    return check;
}

static const struct check *check_both(struct compiling *c, enum gremlin_predicate_name name,
                                      const struct check *a, const struct check *b)
{
    struct check *check = ARENA_NEW(c->arena, struct check);
    const struct check **parts = ARENA_ARRAY(c->arena, const struct check *, 2);

    parts[0] = a;
    parts[1] = b;
    *check = (struct check){.name = name, .parts = parts, .part_count = 2};
    return check;
}

/* Of the two values of inside, outside and between. */
static const struct check *check_span(struct compiling *c, const struct gremlin_predicate *p,
                                      enum gremlin_predicate_name joined,
                                      enum gremlin_predicate_name low,
                                      enum gremlin_predicate_name high)
{
    return check_both(c, joined, check_of(c, low, &p->values[0], 1),
                      check_of(c, high, &p->values[1], 1));
}

static const struct check *check_parts(struct compiling *c, const struct gremlin_predicate *p,
                                       bool negated)
{
    struct check *check = ARENA_NEW(c->arena, struct check);
    const struct check **parts = ARENA_ARRAY(c->arena, const struct check *, p->count);

    for (uint32_t i = 0; i < p->count; i++)
        parts[i] = check_compile(c, &p->values[i], negated);
    *check =
        (struct check){.name = (p->name == GREMLIN_P_AND) != negated ? GREMLIN_P_AND : GREMLIN_P_OR,
                       .parts = parts,
                       .part_count = p->count};
    return check;
}

static enum gremlin_predicate_name negation(enum gremlin_predicate_name name)
{
    switch (name) {
    case GREMLIN_P_EQ:
        return GREMLIN_P_NEQ;
    case GREMLIN_P_NEQ:
        return GREMLIN_P_EQ;
    case GREMLIN_P_LT:
        return GREMLIN_P_GTE;
    case GREMLIN_P_LTE:
        return GREMLIN_P_GT;
    case GREMLIN_P_GT:
        return GREMLIN_P_LTE;
    case GREMLIN_P_GTE:
        return GREMLIN_P_LT;
    case GREMLIN_P_WITHIN:
        return GREMLIN_P_WITHOUT;
    case GREMLIN_P_WITHOUT:
        return GREMLIN_P_WITHIN;
    case GREMLIN_P_CONTAINING:
        return GREMLIN_P_NOT_CONTAINING;
    case GREMLIN_P_NOT_CONTAINING:
        return GREMLIN_P_CONTAINING;
    case GREMLIN_P_STARTING_WITH:
        return GREMLIN_P_NOT_STARTING_WITH;
    case GREMLIN_P_NOT_STARTING_WITH:
        return GREMLIN_P_STARTING_WITH;
    case GREMLIN_P_ENDING_WITH:
        return GREMLIN_P_NOT_ENDING_WITH;
    default:
        return GREMLIN_P_ENDING_WITH;
    }
}

static const struct check *check_compile(struct compiling *c, const struct gremlin_value *operand,
                                         bool negated)
{
    const struct gremlin_predicate *p;

    if (operand->type != GREMLIN_PREDICATE)
        return check_of(c, negated ? GREMLIN_P_NEQ : GREMLIN_P_EQ, operand, 1);
    p = gremlin_predicate(*operand);
    switch (p->name) {
    case GREMLIN_P_NOT:
        return check_compile(c, &p->values[0], !negated);
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        return check_parts(c, p, negated);
    case GREMLIN_P_INSIDE:
        return negated ? check_span(c, p, GREMLIN_P_OR, GREMLIN_P_LTE, GREMLIN_P_GTE)
                       : check_span(c, p, GREMLIN_P_AND, GREMLIN_P_GT, GREMLIN_P_LT);
    case GREMLIN_P_OUTSIDE:
        return negated ? check_span(c, p, GREMLIN_P_AND, GREMLIN_P_GTE, GREMLIN_P_LTE)
                       : check_span(c, p, GREMLIN_P_OR, GREMLIN_P_LT, GREMLIN_P_GT);
    case GREMLIN_P_BETWEEN:
        return negated ? check_span(c, p, GREMLIN_P_OR, GREMLIN_P_LT, GREMLIN_P_GTE)
                       : check_span(c, p, GREMLIN_P_AND, GREMLIN_P_GTE, GREMLIN_P_LT);
    default:
        return check_of(c, negated ? negation(p->name) : p->name, p->values, p->count);
    }
}

static bool stands_bare(struct slice key, enum gremlin_element_kind kind,
                        const struct gremlin_names *names)
{
    if (kind == GREMLIN_ELEMENT_EDGE || slice_equal(key, SLICE("ttl")))
        return true;
    for (size_t i = 0; i < names->key_count; i++)
        if (slice_equal(key, names->keys[i]))
            return true;
    return false;
}

const struct gremlin_test *gremlin_test_compile(const struct gremlin_condition *condition,
                                                enum gremlin_element_kind kind,
                                                const struct gremlin_names *names,
                                                struct arena *arena)
{
    struct gremlin_test *test = ARENA_NEW(arena, struct gremlin_test);
    struct compiling c = {arena, condition->kind == GREMLIN_CONDITION_ID};

    test->kind = condition->kind;
    switch (condition->kind) {
    case GREMLIN_CONDITION_LABEL:
        test->subject = SUBJECT_LABEL;
        test->name = SLICE("label");
        test->instead = kind == GREMLIN_ELEMENT_VERTEX ? SLICE("vertex") : SLICE("edge");
        break;
    case GREMLIN_CONDITION_ID:
        test->subject = SUBJECT_ID;
        test->name = SLICE("id");
        break;
    default:
        test->name = arena_copy(arena, condition->key);
        test->never = gremlin_name_is_own(condition->key);
        test->subject = stands_bare(condition->key, kind, names) ? SUBJECT_BARE : SUBJECT_LISTED;
    }
    if (condition->kind != GREMLIN_CONDITION_HAS_KEY &&
        condition->kind != GREMLIN_CONDITION_HAS_NOT)
        test->check = check_compile(&c, &condition->operand, false);
    return test;
}

/* --- Evaluating ------------------------------------------------------------------------------- */

static bool is_nan(const struct document_value *value)
{
    return value->type == DOCUMENT_DOUBLE && isnan(value->number);
}

static bool has_nan(const struct check *check)
{
    for (size_t i = 0; i < check->value_count; i++)
        if (is_nan(&check->values[i]))
            return true;
    return false;
}

static bool equal(const struct document_value *a, const struct document_value *b)
{
    return !is_nan(a) && query_values_equal(DOCUMENT_ORDER_SQL, a, b) == QUERY_TRUE;
}

static bool is_among(const struct check *check, const struct document_value *value)
{
    if (!check->slots) {
        for (size_t i = 0; i < check->value_count; i++)
            if (equal(value, &check->values[i]))
                return true;
        return false;
    }
    for (size_t at = query_value_hash(value) & (check->slot_count - 1); check->slots[at];
         at = (at + 1) & (check->slot_count - 1))
        if (equal(value, &check->values[check->slots[at] - 1]))
            return true;
    return false;
}

static bool compares(const struct check *check, const struct document_value *value)
{
    int order;

    if (is_nan(value) || is_nan(&check->values[0]) ||
        !query_values_order(DOCUMENT_ORDER_SQL, value, &check->values[0], &order))
        return false;
    switch (check->name) {
    case GREMLIN_P_LT:
        return order < 0;
    case GREMLIN_P_LTE:
        return order <= 0;
    case GREMLIN_P_GT:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool text_matches(const struct check *check, const struct document_value *value)
{
    struct slice text = value->text, part = check->values[0].text;

    if (value->type != DOCUMENT_STRING)
        return false;
    switch (check->name) {
    case GREMLIN_P_CONTAINING:
    case GREMLIN_P_NOT_CONTAINING:
        return (!part.len || memmem(text.data, text.len, part.data, part.len)) ==
               (check->name == GREMLIN_P_CONTAINING);
    case GREMLIN_P_STARTING_WITH:
    case GREMLIN_P_NOT_STARTING_WITH:
        return slice_starts_with(text, part) == (check->name == GREMLIN_P_STARTING_WITH);
    default:
        return (text.len >= part.len && slice_equal(slice_skip(text, text.len - part.len), part)) ==
               (check->name == GREMLIN_P_ENDING_WITH);
    }
}

static bool check_holds(const struct check *check, const struct document_value *value)
{
    switch (check->name) {
    case GREMLIN_P_EQ:
        return equal(value, &check->values[0]);
    case GREMLIN_P_NEQ:
        return !equal(value, &check->values[0]);
    case GREMLIN_P_WITHIN:
        return is_among(check, value);
    case GREMLIN_P_WITHOUT:
        return !is_among(check, value);
    case GREMLIN_P_LT:
    case GREMLIN_P_LTE:
    case GREMLIN_P_GT:
    case GREMLIN_P_GTE:
        return compares(check, value);
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        for (size_t i = 0; i < check->part_count; i++)
            if (check_holds(check->parts[i], value) != (check->name == GREMLIN_P_AND))
                return check->name == GREMLIN_P_OR;
        return check->name == GREMLIN_P_AND;
    default:
        return text_matches(check, value);
    }
}

/* Of any array the values of its elements count that have one, whether it is a list of values (see
 * stored.h) or one that somebody else has written: the index tells no difference. */
static bool values_hold(const struct gremlin_test *test, const struct document_value *property)
{
    struct document_iter iter;
    struct document_value value;
    size_t count = 0, listed = 0;

    if (property->type != DOCUMENT_ARRAY)
        return check_holds(test->check, property);
    document_iter_init(&iter, property->document);
    while (document_iter_next(&iter)) {
        count++;
        if (iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("_value"), &value))
            continue;
        if (check_holds(test->check, &value))
            return true;
        listed++;
    }
    return (!count || listed < count) && check_holds(test->check, property);
}

bool gremlin_test_holds(const struct gremlin_test *test, struct slice document)
{
    struct document_value value;
    bool there = !test->never && document_find(document, test->name, &value);

    if (test->kind == GREMLIN_CONDITION_HAS_NOT)
        return !there;
    if (!there && test->subject == SUBJECT_LABEL) {
        value = document_string(test->instead);
        there = true;
    }
    if (!there || !test->check)
        return there;
    return test->subject == SUBJECT_LISTED ? values_hold(test, &value)
                                           : check_holds(test->check, &value);
}

bool gremlin_test_leads(const struct gremlin_test *test)
{
    return test->never || (test->check && test->check->name != GREMLIN_P_NEQ &&
                           test->check->name != GREMLIN_P_WITHOUT);
}

/* --- Expressions ------------------------------------------------------------------------------ */

struct test_node {
    struct query_expression head;
    const struct gremlin_test *test;
};

struct kind_node {
    struct query_expression head;
    enum gremlin_element_kind kind;
};

static struct slice document_of(const struct query_context *context)
{
    const struct query_item *bound = context->slots[0].hidden_self;

    return bound ? bound->item->document : context->slots[0].value.document;
}

static bool test_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    const struct test_node *node = (const struct test_node *)expression;
    struct slice document = document_of(context);

    if (!query_work(context, document.len >> 6, err))
        return false;
    *ret_value = document_bool(gremlin_test_holds(node->test, document));
    return true;
}

static const struct query_implied *check_imply(const struct query_implying *implying,
                                               const struct query_operand *operand,
                                               const struct check *check)
{
    const struct query_implied *a;
    struct document_value least = document_double(-INFINITY);

    switch (check->name) {
    case GREMLIN_P_EQ:
    case GREMLIN_P_WITHIN:
        a = query_implied_points(implying, operand, check->values, check->value_count);
        /* an index has NaN at one place, and here it equals nothing */
        return has_nan(check) ? query_implied_inexact(implying, a) : a;
    case GREMLIN_P_LT:
    case GREMLIN_P_LTE:
        a = query_implied_below(implying, operand, &check->values[0], check->name == GREMLIN_P_LTE);
        /* NaN is the least of all numbers in an index, and below nothing here */
        return a && document_is_number(&check->values[0])
                   ? query_implied_both(implying, a,
                                        query_implied_above(implying, operand, &least, true))
                   : a;
    case GREMLIN_P_GT:
    case GREMLIN_P_GTE:
        return query_implied_above(implying, operand, &check->values[0],
                                   check->name == GREMLIN_P_GTE);
    case GREMLIN_P_STARTING_WITH:
        return query_implied_prefix(implying, operand, check->values[0].text);
    case GREMLIN_P_CONTAINING:
    case GREMLIN_P_ENDING_WITH:
    case GREMLIN_P_NOT_CONTAINING:
    case GREMLIN_P_NOT_STARTING_WITH:
    case GREMLIN_P_NOT_ENDING_WITH:
        a = query_implied_type(implying, operand, DOCUMENT_STRING);
        return a ? query_implied_inexact(implying, a) : NULL;
    case GREMLIN_P_AND:
    case GREMLIN_P_OR:
        break;
    default:
        return NULL;
    }
    if (check->name == GREMLIN_P_AND) {
        a = NULL;
        for (size_t i = 0; i < check->part_count; i++) {
            const struct query_implied *part = check_imply(implying, operand, check->parts[i]);

            if (!part && a)
                a = query_implied_inexact(implying, a);
            else if (part && a)
                a = query_implied_both(implying, a, part);
            else if (part)
                a = i ? query_implied_inexact(implying, part) : part;
        }
        return a;
    }
    {
        const struct query_implied **parts =
            ARENA_ARRAY(implying->arena, const struct query_implied *, check->part_count);

        for (size_t i = 0; i < check->part_count; i++) {
            parts[i] = check_imply(implying, operand, check->parts[i]);
            if (!parts[i])
                return NULL;
        }
        return query_implied_any(implying, parts, check->part_count);
    }
}

static const struct query_implied *test_imply(const struct query_expression *expression,
                                              const struct query_implying *implying, bool truth)
{
    const struct gremlin_test *test = ((const struct test_node *)expression)->test;
    struct query_operand bare = query_operand_of(implying, expression->children[0]);
    struct query_operand each, listed;
    const struct query_implied *sides[2];
    struct document_value instead;

    if (!truth || !test->check)
        return NULL;
    if (test->never)
        return query_implied_never(implying);
    instead = document_string(test->instead);
    if (test->subject == SUBJECT_LABEL && check_holds(test->check, &instead))
        return NULL; /* items without a label, which no index has */
    sides[0] = check_imply(implying, &bare, test->check);
    if (test->subject != SUBJECT_LISTED)
        return sides[0];
    each = query_operand_elements(implying, &bare);
    listed = query_operand_property(implying, &each, SLICE("_value"));
    sides[1] = check_imply(implying, &listed, test->check);
    return sides[0] && sides[1] ? query_implied_any(implying, sides, 2) : NULL;
}

static bool kind_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err UNUSED)
{
    const struct kind_node *node = (const struct kind_node *)expression;
    struct document_value value;
    bool edge = document_find(document_of(context), SLICE("_isEdge"), &value) &&
                value.type == DOCUMENT_BOOL && value.boolean;

    *ret_value = document_bool(edge == (node->kind == GREMLIN_ELEMENT_EDGE));
    return true;
}

static const struct query_implied *kind_imply(const struct query_expression *expression,
                                              const struct query_implying *implying, bool truth)
{
    static const struct document_value yes = {.type = DOCUMENT_BOOL, .boolean = true};
    const struct kind_node *node = (const struct kind_node *)expression;
    struct query_operand mark = query_operand_of(implying, expression->children[0]);

    if ((node->kind == GREMLIN_ELEMENT_EDGE) == truth)
        return query_implied_points(implying, &mark, &yes, 1);
    return query_implied_absent(implying, &mark, &yes, 1);
}

static const struct query_kind test_kind = {"has", test_evaluate, QUERY_STABLE, test_imply};
static const struct query_kind kind_kind = {"kind", kind_evaluate, QUERY_STABLE, kind_imply};

const struct query_expression *gremlin_test_expression(const struct gremlin_test *test,
                                                       struct query_build *build)
{
    const struct query_expression *path =
        query_property_of(build, query_variable(build, 0), test->name);
    struct test_node *node = query_node(build, &test_kind, sizeof *node, &path, 1);

    node->test = test;
    return &node->head;
}

const struct query_expression *gremlin_kind_expression(enum gremlin_element_kind kind,
                                                       struct query_build *build)
{
    const struct query_expression *path =
        query_property_of(build, query_variable(build, 0), SLICE("_isEdge"));
    struct kind_node *node = query_node(build, &kind_kind, sizeof *node, &path, 1);

    node->kind = kind;
    return &node->head;
}

const struct query_expression *gremlin_one_of(struct slice name, const struct slice *texts,
                                              size_t count, struct query_build *build)
{
    const struct query_expression *property =
        query_property_of(build, query_variable(build, 0), name);
    const struct query_expression **candidates =
        ARENA_ARRAY(build->arena, const struct query_expression *, count + 1);

    for (size_t i = 0; i < count; i++)
        candidates[i] = query_constant_borrowed(build, document_string(texts[i]));
    if (count == 1)
        return query_compare(build, QUERY_EQUAL, property, candidates[0]);
    return query_in(build, property, candidates, count);
}
