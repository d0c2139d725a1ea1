/* A condition becomes a list of pins: each gives values, or bounds, to some components of the key,
 * and the condition can hold only where one of the pins fits. AND joins every pin of one side with
 * every pin of the other and drops pairs that contradict each other; OR puts the lists together.
 * For NOT the same question is asked of "can it be false". A list that grows too long is given up:
 * any key then. */
#include "front/rest/sql/key_ranges.h"

#include "document/bson.h"
#include "document/order.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/resolve.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"
#include "query/access/ranges.h"

#include <stdlib.h>

enum {
    /* The components of the key, and behind them what a synthetic one is made of. */
    COMPONENTS = PARTITION_PATHS_MAX + PARTITION_SOURCES_MAX,
    PINS_MAX = 1000,       /* beyond, a query asks everywhere */
    PAIRS_MAX = 10 * 1000, /* that one AND may compare */
};

struct pin {
    struct document_value values[COMPONENTS];
    bool known[COMPONENTS];

    /* Of components without a value: bytes of values (document/order.h), min inclusive, max
     * exclusive; max without data: any. Used where routing keys have that order alone. */
    struct partition_range between[COMPONENTS];
};

/* No pins: it never holds. One pin that knows nothing: it may hold anywhere. A list has one holder,
 * so it may grow where it is. */
struct pins {
    struct pin *items;
    size_t count, capacity;
};

struct search {
    const struct partition_definition *definition;
    struct arena *arena;
};

static struct pins pins_of_expr(const struct search *search, const struct sql_expr *expr,
                                bool truth);

/* --- Lists of pins -----------------------------------------------------------------------------
 */

static struct pins pins_none(void)
{
    return (struct pins){NULL, 0, 0};
}

static struct pins pins_any(const struct search *search)
{
    return (struct pins){ARENA_NEW(search->arena, struct pin), 1, 1};
}

static bool pins_are_any(struct pins pins)
{
    if (pins.count != 1)
        return false;
    for (size_t i = 0; i < COMPONENTS; i++)
        if (pins.items[0].known[i] || pins.items[0].between[i].max.data)
            return false;
    return true;
}

/* Objects and arrays are no keys: items that have them there are found under undefined. */
static struct pins pins_value(const struct search *search, size_t component,
                              struct document_value value)
{
    struct pins pins = pins_any(search);

    if (value.type == DOCUMENT_OBJECT || value.type == DOCUMENT_ARRAY)
        value = document_undefined();
    pins.items[0].values[component] = value;
    pins.items[0].known[component] = true;
    return pins;
}

/* All ranges of values of one component. */
static struct pins pins_between(const struct search *search, size_t component,
                                struct query_ranges ranges)
{
    struct pins pins = {ARENA_ARRAY(search->arena, struct pin, ranges.count + 1), ranges.count,
                        ranges.count + 1};

    for (size_t i = 0; i < ranges.count; i++) {
        pins.items[i] = (struct pin){0};
        pins.items[i].between[component] =
            (struct partition_range){ranges.list[i].min, ranges.list[i].max};
    }
    return pins;
}

static struct pins pins_or(const struct search *search, struct pins a, struct pins b)
{
    if (pins_are_any(a) || pins_are_any(b) || a.count + b.count > PINS_MAX)
        return pins_any(search);
    if (a.count + b.count > a.capacity) {
        size_t capacity = MAX(a.capacity * 2, a.count + b.count);
        struct pin *items = ARENA_ARRAY(search->arena, struct pin, capacity);

        if (a.count)
            memcpy(items, a.items, a.count * sizeof *items);
        a.items = items;
        a.capacity = capacity;
    }
    if (b.count)
        memcpy(a.items + a.count, b.items, b.count * sizeof *b.items);
    a.count += b.count;
    return a;
}

/* What both allow; false: nothing. */
static bool between_join(struct partition_range *between, struct partition_range other)
{
    if (!other.max.data)
        return true;
    if (!between->max.data) {
        *between = other;
        return true;
    }
    if (slice_compare(other.min, between->min) > 0)
        between->min = other.min;
    if (slice_compare(other.max, between->max) < 0)
        between->max = other.max;
    return slice_compare(between->min, between->max) < 0;
}

/* A value and bounds for one component: the value alone is used, and may be too much. */
static bool pin_join(const struct pin *a, const struct pin *b, struct pin *ret_pin)
{
    *ret_pin = *a;
    for (size_t i = 0; i < COMPONENTS; i++) {
        if (!between_join(&ret_pin->between[i], b->between[i]))
            return false;
        if (!b->known[i])
            continue;
        if (a->known[i] && document_compare(DOCUMENT_ORDER_SQL, &a->values[i], &b->values[i]) != 0)
            return false;
        ret_pin->values[i] = b->values[i];
        ret_pin->known[i] = true;
    }
    return true;
}

/* Where there would be too many, either list alone is right as well, only wider. */
static struct pins pins_and(const struct search *search, struct pins a, struct pins b)
{
    struct pins both = {.capacity = MIN(a.count * b.count, (size_t)PINS_MAX)};
    struct pin joined;

    if (pins_are_any(a))
        return b;
    if (pins_are_any(b))
        return a;
    if (a.count * b.count > PAIRS_MAX)
        return a.count < b.count ? a : b;
    both.items = ARENA_ARRAY(search->arena, struct pin, both.capacity + 1);
    for (size_t i = 0; i < a.count; i++) {
        for (size_t j = 0; j < b.count; j++) {
            if (!pin_join(&a.items[i], &b.items[j], &joined))
                continue;
            if (both.count == both.capacity)
                return a.count < b.count ? a : b;
            both.items[both.count++] = joined;
        }
    }
    return both;
}

/* --- Operands ----------------------------------------------------------------------------------
 */

static bool paths_equal(const struct document_path *path, const struct document_path *key)
{
    bool equal = path->count == key->count;

    for (size_t at = 0; equal && at < path->count; at++)
        equal = path->segments[at].kind == DOCUMENT_SEGMENT_PROPERTY &&
                slice_equal(path->segments[at].name, key->segments[at].name);
    return equal;
}

/* The component of the key that the expression names, or the source of one. */
static bool component_of(const struct search *search, const struct sql_expr *expr,
                         size_t *ret_component)
{
    const struct partition_synthetic *synthetic = search->definition->synthetic;
    struct document_path path;

    if (expr->kind != SQL_EXPR_MEMBER || !sql_path(expr, search->arena, &path))
        return false;
    for (size_t i = 0; i < search->definition->path_count; i++)
        if (paths_equal(&path, &search->definition->paths[i])) {
            *ret_component = i;
            return true;
        }
    for (size_t i = 0; synthetic && i < synthetic->source_count; i++)
        if (paths_equal(&path, &synthetic->sources[i])) {
            *ret_component = PARTITION_PATHS_MAX + i;
            return true;
        }
    return false;
}

static struct document_value negated(const struct document_value *value)
{
    double number = 0;

    document_to_double(value, &number);
    return document_double(-number);
}

/* The value of an expression that has the same one for every item. Of objects and arrays in the
 * text only the type is told. */
static bool constant_of(const struct sql_expr *expr, struct document_value *ret_value)
{
    switch (expr->kind) {
    case SQL_EXPR_LITERAL:
        *ret_value = expr->literal;
        return true;
    case SQL_EXPR_PARAMETER:
        if (expr->parameter.value)
            *ret_value = *expr->parameter.value;
        return expr->parameter.value != NULL;
    case SQL_EXPR_ARRAY:
        *ret_value = document_value_of_type(DOCUMENT_ARRAY);
        return true;
    case SQL_EXPR_OBJECT:
        *ret_value = document_value_of_type(DOCUMENT_OBJECT);
        return true;
    case SQL_EXPR_UNARY:
        if (expr->unary.op > SQL_UNARY_MINUS || !constant_of(expr->unary.operand, ret_value) ||
            !document_is_number(ret_value))
            return false;
        if (expr->unary.op == SQL_UNARY_MINUS)
            *ret_value = negated(ret_value);
        return true;
    default:
        return false;
    }
}

static bool is_call(const struct sql_expr *expr, enum sql_function_id id)
{
    return expr->kind == SQL_EXPR_CALL && expr->call.function && expr->call.function->id == id;
}

/* --- Conditions --------------------------------------------------------------------------------
 */

/* ABS(component) = value: two keys, one, or none. */
static struct pins pins_absolute(const struct search *search, size_t component,
                                 const struct document_value *value)
{
    double number;

    if (!document_to_double(value, &number) || number < 0)
        return pins_none();
    if (number == 0)
        return pins_value(search, component, document_double(0));
    return pins_or(search, pins_value(search, component, document_double(-number)),
                   pins_value(search, component, document_double(number)));
}

/* Nothing equals undefined. */
static struct pins pins_equal_constant(const struct search *search, const struct sql_expr *side,
                                       const struct document_value *value)
{
    size_t component;

    if (component_of(search, side, &component))
        return value->type == DOCUMENT_UNDEFINED ? pins_none()
                                                 : pins_value(search, component, *value);
    if (is_call(side, SQL_FUNCTION_ABS) &&
        component_of(search, side->call.arguments.items[0], &component))
        return pins_absolute(search, component, value);
    return pins_any(search);
}

static struct pins pins_equal(const struct search *search, const struct sql_expr *left,
                              const struct sql_expr *right)
{
    struct document_value value;

    if (constant_of(right, &value))
        return pins_equal_constant(search, left, &value);
    if (constant_of(left, &value))
        return pins_equal_constant(search, right, &value);
    return pins_any(search);
}

/* The ranges of what stands in an order to a value; of undefined there is none. Values of another
 * type than the value's compare as undefined. */
static struct query_ranges ranges_compared(enum sql_binary op, const struct document_value *value,
                                           struct arena *arena)
{
    bool exact;

    switch (op) {
    case SQL_BINARY_LESS:
        return query_ranges_below(value, false, &exact, arena);
    case SQL_BINARY_LESS_EQUAL:
        return query_ranges_below(value, true, &exact, arena);
    case SQL_BINARY_GREATER:
        return query_ranges_above(value, false, &exact, arena);
    default:
        return query_ranges_above(value, true, &exact, arena);
    }
}

/* The operator that says the same with its sides exchanged, or, negated, when it is false. */
static enum sql_binary op_turned(enum sql_binary op, bool exchanged, bool negated)
{
    static const enum sql_binary order[] = {SQL_BINARY_LESS, SQL_BINARY_LESS_EQUAL,
                                            SQL_BINARY_GREATER, SQL_BINARY_GREATER_EQUAL};
    size_t at = 0;

    while (order[at] != op)
        at++;
    if (exchanged)
        at ^= 2; /* < and > */
    if (negated)
        at ^= 3; /* < and >= */
    return order[at];
}

static bool is_order(enum sql_binary op)
{
    return op == SQL_BINARY_LESS || op == SQL_BINARY_LESS_EQUAL || op == SQL_BINARY_GREATER ||
           op == SQL_BINARY_GREATER_EQUAL;
}

/* Objects and arrays are no keys, and undefined compares with nothing. */
static bool is_comparable(const struct document_value *value)
{
    return value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY &&
           value->type != DOCUMENT_UNDEFINED;
}

static struct pins pins_compared(const struct search *search, enum sql_binary op,
                                 const struct sql_expr *left, const struct sql_expr *right,
                                 bool truth)
{
    struct document_value value;
    bool exchanged = constant_of(left, &value);
    size_t component;

    if ((!exchanged && !constant_of(right, &value)) ||
        !component_of(search, exchanged ? right : left, &component) ||
        !partition_route_is_ordered(search->definition))
        return pins_any(search);
    if (!is_comparable(&value))
        return pins_none();
    return pins_between(search, component,
                        ranges_compared(op_turned(op, exchanged, !truth), &value, search->arena));
}

static struct pins pins_binary(const struct search *search, const struct sql_expr *expr, bool truth)
{
    enum sql_binary op = expr->binary.op;

    if (op == (truth ? SQL_BINARY_EQUAL : SQL_BINARY_NOT_EQUAL))
        return pins_equal(search, expr->binary.left, expr->binary.right);
    if (is_order(op))
        return pins_compared(search, op, expr->binary.left, expr->binary.right, truth);
    return pins_any(search);
}

static struct pins pins_in(const struct search *search, const struct sql_expr *operand,
                           const struct sql_exprs *items)
{
    struct pins pins = pins_none();

    if (items->count > PINS_MAX)
        return pins_any(search);
    for (uint32_t i = 0; i < items->count; i++)
        pins = pins_or(search, pins, pins_equal(search, operand, items->items[i]));
    return pins;
}

/* A parameter's array. */
static struct pins pins_in_array(const struct search *search, size_t component, struct slice array)
{
    struct pins pins = pins_none();
    struct document_iter iter;

    if (document_count(array) > PINS_MAX)
        return pins_any(search);
    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        pins = pins_or(search, pins, pins_value(search, component, iter.value));
    return pins;
}

/* ARRAY_CONTAINS(values, component); partial matches are of objects and do not count here. */
static struct pins pins_contains(const struct search *search, const struct sql_exprs *arguments)
{
    const struct sql_expr *array = arguments->items[0];
    size_t component;

    if (arguments->count != 2 || !component_of(search, arguments->items[1], &component))
        return pins_any(search);
    if (array->kind == SQL_EXPR_ARRAY)
        return pins_in(search, arguments->items[1], &array->items);
    if (array->kind == SQL_EXPR_PARAMETER && array->parameter.value &&
        array->parameter.value->type == DOCUMENT_ARRAY)
        return pins_in_array(search, component, array->parameter.value->document);
    return pins_any(search);
}

/* The only text a pattern matches; false when there are many, or it is no pattern: *ret_text is
 * what all of them begin with. */
static bool pattern_text(const struct sql_expr *like, struct arena *arena, struct slice *ret_text)
{
    struct document_value pattern, escape;
    struct slice mark = SLICE_NONE;
    uint8_t *text;
    size_t length = 0;

    *ret_text = SLICE_NONE;
    if (!constant_of(like->like.pattern, &pattern) || pattern.type != DOCUMENT_STRING)
        return false;
    if (like->like.escape) {
        if (!constant_of(like->like.escape, &escape) || !escape.text.len)
            return false;
        mark = escape.text;
    }
    text = arena_alloc(arena, pattern.text.len + 1);
    for (struct slice rest = pattern.text; rest.len;) {
        if (mark.len && slice_starts_with(rest, mark)) {
            rest = slice_skip(rest, mark.len);
            if (!rest.len)
                return false;
        } else if (memchr("%_[]^", rest.data[0], 5)) { /* a wildcard, or part of one */
            *ret_text = slice_of(text, length);
            return false;
        }
        text[length++] = rest.data[0];
        rest = slice_skip(rest, 1);
    }
    *ret_text = slice_of(text, length);
    return true;
}

/* Texts that begin so. */
static struct pins pins_prefix(const struct search *search, size_t component, struct slice prefix)
{
    bool exact;

    if (!partition_route_is_ordered(search->definition))
        return pins_any(search);
    return pins_between(search, component, query_ranges_prefix(prefix, &exact, search->arena));
}

static struct pins pins_like(const struct search *search, const struct sql_expr *like)
{
    struct slice text;
    size_t component;

    if (!component_of(search, like->like.operand, &component))
        return pins_any(search);
    if (pattern_text(like, search->arena, &text))
        return pins_value(search, component, document_string(text));
    return pins_prefix(search, component, text);
}

/* STARTSWITH(component, text), with regard to case. */
static struct pins pins_begin(const struct search *search, const struct sql_exprs *arguments)
{
    struct document_value text, folds = document_bool(false);
    size_t component;

    if (!component_of(search, arguments->items[0], &component) ||
        !constant_of(arguments->items[1], &text) || text.type != DOCUMENT_STRING ||
        (arguments->count > 2 && !constant_of(arguments->items[2], &folds)) ||
        folds.type != DOCUMENT_BOOL || folds.boolean)
        return pins_any(search);
    return pins_prefix(search, component, text.text);
}

/* NOT BETWEEN is true below the one and above the other. */
static struct pins pins_of_between(const struct search *search, const struct sql_expr *expr,
                                   bool truth)
{
    bool within = expr->between.negated != truth;
    struct pins low = pins_compared(search, SQL_BINARY_GREATER_EQUAL, expr->between.operand,
                                    expr->between.low, within),
                high = pins_compared(search, SQL_BINARY_LESS_EQUAL, expr->between.operand,
                                     expr->between.high, within);

    return within ? pins_and(search, low, high) : pins_or(search, low, high);
}

static struct pins pins_call(const struct search *search, const struct sql_expr *call)
{
    size_t component;

    if (is_call(call, SQL_FUNCTION_ARRAY_CONTAINS))
        return pins_contains(search, &call->call.arguments);
    if (is_call(call, SQL_FUNCTION_STARTSWITH))
        return pins_begin(search, &call->call.arguments);
    if (!call->call.arguments.count ||
        !component_of(search, call->call.arguments.items[0], &component))
        return pins_any(search);
    if (is_call(call, SQL_FUNCTION_IS_NULL))
        return pins_value(search, component, document_null());
    if (is_call(call, SQL_FUNCTION_IS_BOOL))
        return pins_or(search, pins_value(search, component, document_bool(false)),
                       pins_value(search, component, document_bool(true)));
    return pins_any(search);
}

/* all: every item must be as asked; otherwise one of them. */
static struct pins pins_chain(const struct search *search, const struct sql_exprs *items,
                              bool truth, bool all)
{
    struct pins pins = all ? pins_any(search) : pins_none();

    for (uint32_t i = 0; i < items->count; i++) {
        struct pins item = pins_of_expr(search, items->items[i], truth);

        pins = all ? pins_and(search, pins, item) : pins_or(search, pins, item);
    }
    return pins;
}

/* Where the expression can be true, or, with truth false, false. Undefined is neither. */
static struct pins pins_of_expr(const struct search *search, const struct sql_expr *expr,
                                bool truth)
{
    struct document_value value;
    size_t component;

    if (constant_of(expr, &value))
        return value.type == DOCUMENT_BOOL && value.boolean == truth ? pins_any(search)
                                                                     : pins_none();
    if (component_of(search, expr, &component))
        return pins_value(search, component, document_bool(truth));
    switch (expr->kind) {
    case SQL_EXPR_AND:
        return pins_chain(search, &expr->items, truth, truth);
    case SQL_EXPR_OR:
        return pins_chain(search, &expr->items, truth, !truth);
    case SQL_EXPR_UNARY:
        return expr->unary.op == SQL_UNARY_NOT ? pins_of_expr(search, expr->unary.operand, !truth)
                                               : pins_none();
    case SQL_EXPR_BINARY:
        return pins_binary(search, expr, truth);
    case SQL_EXPR_BETWEEN:
        return pins_of_between(search, expr, truth);
    case SQL_EXPR_IN:
        return expr->in.negated != truth ? pins_in(search, expr->in.operand, &expr->in.items)
                                         : pins_any(search);
    case SQL_EXPR_LIKE:
        return expr->like.negated != truth ? pins_like(search, expr) : pins_any(search);
    case SQL_EXPR_CALL:
        return truth ? pins_call(search, expr) : pins_any(search);
    default:
        return pins_any(search);
    }
}

/* --- Ranges ------------------------------------------------------------------------------------
 */

static struct sql_key_range range_of_pin(const struct partition_definition *definition,
                                         const struct pin *pin, struct arena *arena)
{
    struct partition_range range;
    struct partition_key key;
    size_t known = 0;

    while (known < definition->path_count && pin->known[known])
        known++;
    key = partition_key_of(definition, pin->values, known);
    if (known < definition->path_count && pin->between[known].max.data) {
        range = partition_route_between(definition, &key, pin->between[known].min,
                                        pin->between[known].max, arena);
        return (struct sql_key_range){range.min, range.max, false};
    }
    range = partition_route_range(definition, &key, arena);
    if (known == definition->path_count)
        return (struct sql_key_range){range.min, range.min, true};
    return (struct sql_key_range){range.min, range.max, false};
}

/* Does the pin know of the made component nothing but the base of its suffix? */
static bool is_base_alone(const struct partition_definition *definition, const struct pin *pin)
{
    const struct partition_synthetic *synthetic = definition->synthetic;

    return synthetic && synthetic->suffixes && !pin->known[synthetic->target] &&
           pin->known[PARTITION_PATHS_MAX] &&
           (synthetic->kind == PARTITION_RANDOM_SUFFIX || !pin->known[PARTITION_PATHS_MAX + 1]);
}

/* The values that the made component of a pin can have, by its sources; 0: any. */
static size_t values_make(const struct partition_definition *definition, const struct pin *pin,
                          struct arena *arena, struct document_value *ret_values)
{
    const struct partition_synthetic *synthetic = definition->synthetic;
    const struct document_value *sources = &pin->values[PARTITION_PATHS_MAX];
    size_t known = 0;
    struct error ignored;

    while (known < synthetic->source_count && pin->known[PARTITION_PATHS_MAX + known])
        known++;
    if (known == synthetic->source_count && synthetic->kind != PARTITION_RANDOM_SUFFIX)
        return partition_synthetic_compute(synthetic, sources, 0, arena, ret_values, &ignored);
    if (!is_base_alone(definition, pin))
        return 0;
    for (uint32_t i = 0; i < synthetic->suffixes; i++)
        if (!partition_synthetic_suffixed(synthetic, sources, i + 1, arena, &ret_values[i],
                                          &ignored))
            return 0;
    return synthetic->suffixes;
}

/* Of one pin: as many ranges as its made component can have values. */
static size_t ranges_of_pin(const struct partition_definition *definition, const struct pin *pin,
                            struct arena *arena, struct sql_key_range *ret_ranges)
{
    struct document_value *values;
    struct pin one = *pin;
    size_t count = 0;

    if (definition->synthetic && !pin->known[definition->synthetic->target]) {
        values = ARENA_ARRAY(arena, struct document_value,
                             MAX(definition->synthetic->suffixes, UINT32_C(1)));
        count = values_make(definition, pin, arena, values);
    }
    for (size_t i = 0; i < count; i++) {
        one.values[definition->synthetic->target] = values[i];
        one.known[definition->synthetic->target] = true;
        ret_ranges[i] = range_of_pin(definition, &one, arena);
    }
    if (!count)
        ret_ranges[count++] = range_of_pin(definition, pin, arena);
    return count;
}

/* The wider of two that begin alike comes first. */
static int range_compare(const void *a, const void *b)
{
    const struct sql_key_range *x = a, *y = b;
    int order = slice_compare(x->min, y->min);

    return order ? order : slice_compare(y->max, x->max);
}

/* Takes in one that begins where the range has not ended; false: it lies behind. */
static bool range_take(struct sql_key_range *range, const struct sql_key_range *other)
{
    if (range->point)
        return other->point && slice_equal(range->min, other->min);
    if (slice_compare(other->min, range->max) >= 0)
        return false;
    if (slice_compare(other->max, range->max) > 0)
        range->max = other->max;
    return true;
}

static size_t ranges_settle(struct sql_key_range *ranges, size_t count)
{
    size_t kept = 0;

    qsort(ranges, count, sizeof *ranges, range_compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !range_take(&ranges[kept - 1], &ranges[i]))
            ranges[kept++] = ranges[i];
    return kept;
}

void sql_key_ranges(const struct sql_query *query, const struct partition_definition *definition,
                    struct arena *arena, const struct sql_key_range **ret_ranges, size_t *ret_count)
{
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    struct search search = {definition, scratch};
    struct pins pins = pins_none();
    struct sql_key_range *ranges;
    size_t total = 0, count = 0;

    if (query->source_count)
        pins = query->where ? pins_of_expr(&search, query->where, true) : pins_any(&search);
    for (size_t i = 0; i < pins.count; i++)
        total += is_base_alone(definition, &pins.items[i]) ? definition->synthetic->suffixes : 1;
    if (total > PINS_MAX) {
        pins = pins_any(&search);
        total = 1;
    }
    ranges = ARENA_ARRAY(arena, struct sql_key_range, total + 1);
    for (size_t i = 0; i < pins.count; i++)
        count += ranges_of_pin(definition, &pins.items[i], arena, &ranges[count]);
    *ret_ranges = ranges;
    *ret_count = ranges_settle(ranges, count);
}
