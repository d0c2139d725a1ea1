/* Numbers, texts and booleans compare as they do in SQL, where unknown is as good as false, unless
 * a `not` stands above: there it is made false first.
 *
 * Dates, guids, binary values and the Timestamp, of which the index knows less or nothing, are
 * compared by kinds of their own; beside them stands a plain comparison that is true for more, so
 * that an index can be used all the same. */
#include "front/table/entity.h"
#include "front/table/filter.h"
#include "query/expression/item.h"
#include "query/function/date.h"

struct compiling {
    const struct table_filter_place *place;
    struct query_build *build;
};

/* --- Kinds ----------------------------------------------------------------------------------- */

/* Children: the property, and what "$ticks" has for it. Gives ticks. */
static bool instant_evaluate(const struct query_expression *expression,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err)
{
    struct document_value date, below;

    if (!query_evaluate(expression->children[0], context, &date, err) ||
        !query_evaluate(expression->children[1], context, &below, err))
        return false;
    *ret_value = document_undefined();
    if (date.type == DOCUMENT_DATE && date.int64 >= QUERY_TICKS_MIN / EDM_TICKS_PER_MS &&
        date.int64 <= QUERY_TICKS_MAX / EDM_TICKS_PER_MS)
        *ret_value = document_int64(edm_ticks_of_ms(date.int64) +
                                    (below.type == DOCUMENT_INT32 ? below.int32 : 0));
    return true;
}

static const struct query_kind instant_kind = {"instant", instant_evaluate, QUERY_STABLE};

/* Child: the item. */
static bool timestamp_evaluate(const struct query_expression *expression UNUSED,
                               struct query_context *context, struct document_value *ret_value,
                               struct error *err UNUSED)
{
    const struct query_item *item = context->slots[0].hidden_self;

    *ret_value =
        item ? document_int64(table_entity_ticks(&item->item->header)) : document_undefined();
    return true;
}

static const struct query_kind timestamp_kind = {"timestamp", timestamp_evaluate, QUERY_STABLE};

/* Child: the property. Gives its bytes as hexadecimal text, which sorts as they do. */
struct bytes_node {
    struct query_expression head;
    bool guid;
};

static struct slice hex_of(struct slice bytes, uint8_t *text)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        text[2 * i] = (uint8_t)hex[bytes.data[i] >> 4];
        text[2 * i + 1] = (uint8_t)hex[bytes.data[i] & 15];
    }
    return slice_of(text, 2 * bytes.len);
}

static bool is_guid(const struct document_value *value)
{
    return value->binary.subtype == EDM_GUID_SUBTYPE && value->binary.bytes.len == EDM_GUID_BYTES;
}

static bool bytes_evaluate(const struct query_expression *expression, struct query_context *context,
                           struct document_value *ret_value, struct error *err)
{
    const struct bytes_node *node = (const struct bytes_node *)expression;
    struct document_value value;
    uint8_t *text;

    if (!query_evaluate(expression->children[0], context, &value, err))
        return false;
    *ret_value = document_undefined();
    if (value.type != DOCUMENT_BINARY || is_guid(&value) != node->guid)
        return true;
    text = query_alloc(context, 2 * value.binary.bytes.len + 1, err);
    if (!text)
        return false;
    *ret_value = document_string(hex_of(value.binary.bytes, text));
    return true;
}

static const struct query_kind bytes_kind = {"bytes", bytes_evaluate, QUERY_STABLE};

/* --- Comparisons ----------------------------------------------------------------------------- */

static const struct query_expression *item_of(struct compiling *c)
{
    return query_variable(c->build, 0);
}

static const struct query_expression *path_of(struct compiling *c, struct slice stored)
{
    return query_property_of(c->build, item_of(c), stored);
}

static const struct query_expression *never(struct compiling *c)
{
    return query_constant(c->build, document_bool(false));
}

/* A comparison that is true at least where the exact one is, with what the index holds. */
static const struct query_expression *beside(struct compiling *c, enum query_comparison comparison,
                                             const struct query_expression *path,
                                             struct document_value value)
{
    switch (comparison) {
    case QUERY_GREATER:
        comparison = QUERY_GREATER_EQUAL;
        break;
    case QUERY_LESS:
        comparison = QUERY_LESS_EQUAL;
        break;
    case QUERY_NOT_EQUAL:
        return NULL;
    default:
        break;
    }
    return query_compare(c->build, comparison, path, query_constant(c->build, value));
}

static const struct query_expression *joined(struct compiling *c, bool negated,
                                             const struct query_expression *wide,
                                             const struct query_expression *exact)
{
    return negated || !wide ? exact : query_and(c->build, wide, exact);
}

static int64_t floor_div(int64_t number, int64_t by)
{
    return number / by - (number % by < 0);
}

static const struct query_expression *date_compare(struct compiling *c, bool negated,
                                                   enum query_comparison comparison,
                                                   struct slice stored,
                                                   const struct document_value *ticks)
{
    const struct query_expression *path = path_of(c, stored);
    const struct query_expression *children[] = {
        path, query_property_of(c->build, path_of(c, SLICE("$ticks")), stored)};
    const struct query_expression *instant =
        query_node(c->build, &instant_kind, sizeof *instant, children, 2);

    return joined(
        c, negated,
        beside(c, comparison, path, document_date(floor_div(ticks->int64, EDM_TICKS_PER_MS))),
        query_compare(c->build, comparison, instant, query_constant(c->build, *ticks)));
}

static const struct query_expression *timestamp_compare(struct compiling *c, bool negated,
                                                        enum query_comparison comparison,
                                                        const struct document_value *ticks)
{
    const struct query_expression *item = item_of(c);
    const struct query_expression *timestamp =
        query_node(c->build, &timestamp_kind, sizeof *timestamp, &item, 1);
    int64_t seconds = floor_div(ticks->int64, QUERY_TICKS_PER_SECOND);

    return joined(c, negated,
                  beside(c, comparison, path_of(c, table_names()->system[DOCUMENT_SYSTEM_TS]),
                         document_int64(seconds)),
                  query_compare(c->build, comparison, timestamp, query_constant(c->build, *ticks)));
}

static const struct query_expression *bytes_compare(struct compiling *c, bool negated,
                                                    enum query_comparison comparison,
                                                    struct slice stored,
                                                    const struct document_value *value)
{
    const struct query_expression *path = path_of(c, stored), *wide = NULL;
    struct bytes_node *node = query_node(c->build, &bytes_kind, sizeof *node, &path, 1);
    uint8_t *text = arena_alloc(c->build->arena, 2 * value->binary.bytes.len + 1);
    struct document_value hex = document_string(hex_of(value->binary.bytes, text));

    node->guid = is_guid(value);
    if (comparison == QUERY_EQUAL) /* the index sorts binary values otherwise */
        wide = beside(c, comparison, path, *value);
    return joined(c, negated, wide,
                  query_compare(c->build, comparison, &node->head, query_constant(c->build, hex)));
}

static struct slice stored_name(struct compiling *c, struct slice name)
{
    if (slice_equal(name, SLICE("PartitionKey")))
        return c->place->partition;
    if (slice_equal(name, SLICE("RowKey")))
        return c->place->row;
    return c->place->entities ? table_property_stored(name, c->build->arena) : name;
}

static const struct query_expression *property_compare(struct compiling *c, bool negated,
                                                       enum query_comparison comparison,
                                                       struct slice name,
                                                       const struct table_operand *literal)
{
    struct slice stored = stored_name(c, name);

    if (c->place->entities && slice_equal(name, SLICE("Timestamp")))
        return literal->type == EDM_DATETIME
                   ? timestamp_compare(c, negated, comparison, &literal->value)
                   : never(c);
    switch (literal->type) {
    case EDM_DATETIME:
        return date_compare(c, negated, comparison, stored, &literal->value);
    case EDM_GUID:
    case EDM_BINARY:
        return bytes_compare(c, negated, comparison, stored, &literal->value);
    default:
        return query_compare(c->build, comparison, path_of(c, stored),
                             query_constant(c->build, literal->value));
    }
}

static enum query_comparison turned(enum query_comparison comparison)
{
    switch (comparison) {
    case QUERY_LESS:
        return QUERY_GREATER;
    case QUERY_LESS_EQUAL:
        return QUERY_GREATER_EQUAL;
    case QUERY_GREATER:
        return QUERY_LESS;
    case QUERY_GREATER_EQUAL:
        return QUERY_LESS_EQUAL;
    default:
        return comparison;
    }
}

static const struct query_expression *compare(struct compiling *c, bool negated,
                                              const struct table_filter *filter)
{
    const struct query_expression *truth;

    if (filter->a.property.data)
        truth = property_compare(c, negated, filter->comparison, filter->a.property, &filter->b);
    else if (filter->b.property.data)
        truth = property_compare(c, negated, turned(filter->comparison), filter->b.property,
                                 &filter->a);
    else
        truth =
            query_compare(c->build, filter->comparison, query_constant(c->build, filter->a.value),
                          query_constant(c->build, filter->b.value));
    return negated ? query_coalesce(c->build, truth, never(c)) : truth;
}

/* Chains of AND and OR lean to the left and may be long: what is on the right is never deep. */
static const struct query_expression *compile(struct compiling *c, bool negated,
                                              const struct table_filter *filter)
{
    const struct query_expression *left, *right;

    switch (filter->kind) {
    case TABLE_FILTER_COMPARE:
        return compare(c, negated, filter);
    case TABLE_FILTER_NOT:
        return query_not(c->build, compile(c, true, filter->left));
    default:
        left = compile(c, negated, filter->left);
        right = compile(c, negated, filter->right);
        return filter->kind == TABLE_FILTER_AND ? query_and(c->build, left, right)
                                                : query_or(c->build, left, right);
    }
}

const struct query_expression *table_filter_compile(const struct table_filter *filter,
                                                    const struct table_filter_place *place,
                                                    struct query_build *build)
{
    struct compiling c = {place, build};

    return compile(&c, false, filter);
}
