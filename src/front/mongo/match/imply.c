/* Which values an item must have for a filter to hold, for indexes and partition keys.
 *
 * A path of a filter leads through arrays or not, at every step: `a.b` is the values at /a/b, at
 * /a/[]/b, at /a/b/[] and at /a/[]/b/[], and the filter is the `any` of them. Where those are too
 * many nothing is said. What may be missing, and what is an object or array, is in no index.
 *
 * MongoDB's own indexes have all of these values of a path, what is missing as null, objects and
 * arrays within arrays as they are: for those (query_ways) a filter is one condition on the path,
 * and `any` of nothing.
 *
 * Several comparisons of one path, {a: {$gt: 1, $lt: 5}}, may each hold for another element of an
 * array; a value that is none has to be in all of the ranges. So where no array is on the way the
 * ranges are intersected, and elsewhere the first of them stands for all. */
#include "query/expression/imply.h"
#include "front/mongo/match/match_private.h"

#include <math.h>

enum { WAYS_MAX = 16 };

/* One of the paths that a filter's path may mean. */
struct way {
    struct query_operand operand;
    bool exact;    /* false: more is found there than the path means */
    bool numbered; /* it ends at an element by number */
    bool identity; /* it is _id, which is no array */
};

struct ways {
    struct way list[WAYS_MAX];
    size_t count;
    bool full; /* there are more */
};

static void ways_add(struct ways *ways, struct query_operand operand, bool exact, bool numbered)
{
    if (!operand.is_path || ways->count == WAYS_MAX) {
        ways->full = true;
        return;
    }
    ways->list[ways->count++] = (struct way){operand, exact, numbered};
}

static void step(const struct query_implying *implying, const struct match_component *component,
                 const struct ways *from, struct ways *to)
{
    for (size_t i = 0; i < from->count && !to->full; i++) {
        const struct way *way = &from->list[i];
        struct query_operand each = query_operand_elements(implying, &way->operand);

        ways_add(to, query_operand_property(implying, &way->operand, component->name), way->exact,
                 false);
        ways_add(to, query_operand_property(implying, &each, component->name), way->exact, false);
        if (component->index >= 0)
            ways_add(to, each, false, true);
    }
}

static bool is_through(const struct query_implying *implying)
{
    return implying->ways != QUERY_WAYS_PATHS;
}

static struct query_operand operand_through(const struct query_implying *implying,
                                            struct query_operand operand)
{
    operand.through = true;
    operand.elements = implying->ways == QUERY_WAYS_MANY_VALUES;
    return operand;
}

/* The path itself, of which an index has all values. A component that is a number would be a
 * property as well as a place in an array. */
static bool way_through(const struct query_implying *implying, const struct match_path *path,
                        const struct ways *bases, struct ways *ret_ways)
{
    struct query_operand operand;

    *ret_ways = (struct ways){0};
    for (size_t i = 0; i < path->count; i++)
        if (path->components[i].index >= 0)
            return false;
    if (bases && !bases->count)
        return false;
    operand =
        bases ? query_operand_property(implying, &bases->list[0].operand, path->components[0].name)
              : query_operand_of(implying, path->first);
    for (size_t i = 1; i < path->count && operand.is_path; i++)
        operand = query_operand_property(implying, &operand, path->components[i].name);
    if (!operand.is_path)
        return false;
    ways_add(ret_ways, operand_through(implying, operand), !bases || bases->list[0].exact, false);
    return !ret_ways->full;
}

/* All that the path may mean, short of the elements of what it ends at. bases NULL: it begins at
 * the item. */
static bool ways_find(const struct query_implying *implying, const struct match_path *path,
                      const struct ways *bases, struct ways *ret_ways)
{
    struct ways now = {0}, next;
    size_t at = 0;

    if (is_through(implying))
        return way_through(implying, path, bases, ret_ways);
    if (bases) {
        for (size_t i = 0; i < bases->count; i++) {
            const struct way *base = &bases->list[i];

            ways_add(&now,
                     query_operand_property(implying, &base->operand, path->components[0].name),
                     base->exact, false);
            /* An element that is an array has its own elements for fields. */
            if (path->components[0].index >= 0)
                ways_add(&now, query_operand_elements(implying, &base->operand), false, false);
        }
    } else {
        ways_add(&now, query_operand_of(implying, path->first), true, false);
        if (now.count && path->count == 1 && now.list[0].operand.path.count == 1 &&
            slice_equal(path->components[0].name, SLICE("_id")))
            now.list[0].identity = true;
    }
    for (at = 1; at < path->count && !now.full; at++) {
        next = (struct ways){0};
        step(implying, &path->components[at], &now, &next);
        now = next;
    }
    *ret_ways = now;
    return !now.full && now.count;
}

static void ways_add_elements(const struct query_implying *implying, struct ways *ways)
{
    size_t count = ways->count;

    if (is_through(implying))
        return;
    for (size_t i = 0; i < count && !ways->full; i++)
        if (!ways->list[i].numbered && !ways->list[i].identity)
            ways_add(ways, query_operand_elements(implying, &ways->list[i].operand),
                     ways->list[i].exact, false);
}

/* --- One predicate at one path ---------------------------------------------------------------- */

static bool is_scalar(const struct document_value *value)
{
    return value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY &&
           value->type != DOCUMENT_CODE_WITH_SCOPE && value->type != DOCUMENT_NULL;
}

/* NaN is the least number of an index, and less than nothing here. */
static const struct query_implied *not_nan(const struct query_implying *implying,
                                           const struct query_operand *operand,
                                           const struct document_value *value,
                                           const struct query_implied *range)
{
    static const struct document_value nan = {.type = DOCUMENT_DOUBLE, .number = NAN};

    if (!document_is_number(value))
        return range;
    return query_implied_both(implying, range, query_implied_above(implying, operand, &nan, false));
}

/* Values as an index has them that has all of a path: an array has the entries of its elements, an
 * empty one undefined, and null stands for what is missing. */
static const struct query_implied *points_imply(const struct query_implying *implying,
                                                const struct query_operand *operand,
                                                const struct document_value *values, size_t count)
{
    const struct query_implied *sides[3] = {NULL}, *implied;
    struct document_value *points =
        ARENA_ARRAY(implying->arena, struct document_value, 2 * count + 1);
    bool exact = true, undefined = false;
    size_t kept = 0, side = 0;

    for (size_t i = 0; i < count; i++) {
        struct document_value first;

        points[kept++] = values[i];
        exact &= values[i].type != DOCUMENT_NULL && values[i].type != DOCUMENT_ARRAY;
        undefined |= values[i].type == DOCUMENT_NULL || values[i].type == DOCUMENT_UNDEFINED;
        if (values[i].type != DOCUMENT_ARRAY)
            continue;
        if (!document_find_index(values[i].document, 0, &first))
            first = document_undefined();
        points[kept++] = first;
        undefined |= first.type == DOCUMENT_UNDEFINED;
    }
    if (kept)
        sides[side++] = query_implied_points(implying, operand, points, kept);
    if (undefined)
        sides[side++] = query_implied_type(implying, operand, DOCUMENT_UNDEFINED);
    implied = side ? query_implied_any(implying, sides, side) : query_implied_never(implying);
    return exact ? implied : query_implied_inexact(implying, implied);
}

static const struct query_implied *comparison_imply(const struct query_implying *implying,
                                                    const struct match_node *node,
                                                    const struct query_operand *operand)
{
    const struct document_value *value = node->collator ? &node->compared : &node->value;
    bool at_too = node->kind == MATCH_LESS_EQUAL || node->kind == MATCH_GREATER_EQUAL;

    if (operand->through && node->kind == MATCH_EQUAL)
        return points_imply(implying, operand, value, 1);
    if (!is_scalar(value))
        return NULL;
    if (node->kind == MATCH_EQUAL)
        return query_implied_points(implying, operand, value, 1);
    if (value->type == DOCUMENT_MIN_KEY || value->type == DOCUMENT_MAX_KEY ||
        value->type == DOCUMENT_SYMBOL)
        return NULL;
    if (node->kind == MATCH_LESS || node->kind == MATCH_LESS_EQUAL)
        return not_nan(implying, operand, value,
                       query_implied_below(implying, operand, value, at_too));
    return query_implied_above(implying, operand, value, at_too);
}

/* The text that everything the pattern matches begins with, if it says so in plain letters. */
static struct slice prefix_of(const struct match_node *regex)
{
    struct slice pattern = regex->regex.pattern;
    size_t end = 1;

    if (pattern.len < 2 || pattern.data[0] != '^' || regex->regex.modifiers.len ||
        memchr(pattern.data, '|', pattern.len))
        return SLICE_NONE;
    while (end < pattern.len && !memchr("\\^$.[]|()?*+{}", pattern.data[end], 14))
        end++;
    /* What follows a letter may say that there is none of it. */
    if (end > 1 && end < pattern.len && memchr("?*{", pattern.data[end], 3))
        end--;
    while (end > 1 && end < pattern.len && (pattern.data[end] & 0xC0) == 0x80)
        end--;
    return slice_of(pattern.data + 1, end - 1);
}

static const struct query_implied *regex_imply(const struct query_implying *implying,
                                               const struct match_node *node,
                                               const struct query_operand *operand)
{
    struct document_value same = {.type = DOCUMENT_REGEX,
                                  .regex = {node->regex.pattern, node->regex.options}};
    struct slice prefix = prefix_of(node);
    const struct query_implied *sides[2];

    if (!prefix.len)
        return NULL;
    sides[0] = query_implied_inexact(implying, query_implied_prefix(implying, operand, prefix));
    sides[1] = query_implied_inexact(implying, query_implied_points(implying, operand, &same, 1));
    return query_implied_any(implying, sides, 2);
}

static const struct query_implied *in_imply(const struct query_implying *implying,
                                            const struct match_node *node,
                                            const struct query_operand *operand)
{
    const struct query_implied **sides;

    if (node->in.null && !operand->through)
        return NULL;
    for (size_t i = 0; i < node->in.count && !operand->through; i++)
        if (!is_scalar(&node->in.values[i]))
            return NULL;
    sides = ARENA_ARRAY(implying->arena, const struct query_implied *, node->count + 1);
    for (size_t i = 0; i < node->count; i++)
        sides[i] = regex_imply(implying, node->children[i], operand);
    if (operand->through) {
        const struct document_value null = document_null();
        const struct query_implied *two[2];

        two[0] = points_imply(implying, operand, node->in.values, node->in.count);
        two[1] = points_imply(implying, operand, &null, node->in.null ? 1 : 0);
        sides[node->count] = query_implied_any(implying, two, 2);
    } else {
        sides[node->count] =
            query_implied_points(implying, operand, node->in.values, node->in.count);
    }
    return query_implied_any(implying, sides, node->count + 1);
}

/* Can it be so of nothing? */
static bool takes_missing(const struct match_node *node)
{
    switch (node->kind) {
    case MATCH_EQUAL:
    case MATCH_LESS_EQUAL:
    case MATCH_GREATER_EQUAL:
        return node->value.type == DOCUMENT_NULL || node->value.type == DOCUMENT_UNDEFINED;
    case MATCH_IN:
        return node->in.null;
    default:
        return false;
    }
}

/* Marks that something is there. */
static const struct query_implied *present(const struct query_implying *implying,
                                           const struct query_implied *implied)
{
    struct query_implied *copy;
    const struct query_implied **parts;

    if (!implied ||
        (implied->kind != QUERY_IMPLIED_CONDITION && implied->kind != QUERY_IMPLIED_ANY))
        return implied;
    copy = ARENA_NEW(implying->arena, struct query_implied);
    *copy = *implied;
    copy->condition.present = implied->kind == QUERY_IMPLIED_CONDITION;
    if (implied->kind == QUERY_IMPLIED_ANY) {
        parts = ARENA_ARRAY(implying->arena, const struct query_implied *, implied->count);
        for (size_t i = 0; i < implied->count; i++)
            parts[i] = present(implying, implied->parts[i]);
        copy->parts = parts;
    }
    return copy;
}

static bool is_comparison(const struct match_node *node)
{
    return node->kind >= MATCH_EQUAL && node->kind <= MATCH_GREATER_EQUAL;
}

static bool any_is_text(const struct document_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (document_collate_matters(&values[i]))
            return true;
    return false;
}

/* Do the entries have texts as the node compares them? Where no text is named they all do. */
static bool texts_agree(const struct query_implying *implying, const struct match_node *node)
{
    bool patterns = node->kind == MATCH_REGEX || (node->kind == MATCH_IN && node->count);

    if (node->collator || !implying->collator)
        return node->collator == implying->collator && (!patterns || !implying->collator);
    if (node->kind == MATCH_IN)
        return !patterns && !any_is_text(node->in.values, node->in.count);
    return !patterns && (!is_comparison(node) || !document_collate_matters(&node->value));
}

/* A figure is there, and where: of polygons that are told by the way their ring goes, which indexes
 * do not look at, nothing but the former. */
static const struct query_implied *geo_imply(const struct query_implying *implying,
                                             const struct match_node *node,
                                             const struct query_operand *operand)
{
    const struct query_region region = {
        .figure = &node->value,
        .rules = *node->geo.rules,
        .distance = node->geo.how == MATCH_GEO_NEAR ? node->geo.distance : 0};
    const struct query_implied *parts[] = {
        present(implying,
                query_implied_inexact(implying, query_implied_whatever(implying, operand))),
        query_implied_region(implying, operand, &region)};
    bool strict = region.rules.surface == SEARCH_EARTH && !region.rules.smaller;

    return strict ? parts[0] : query_implied_all(implying, parts, ARRAY_LEN(parts));
}

static const struct query_implied *value_imply(const struct query_implying *implying,
                                               const struct match_node *node, const struct way *way)
{
    const struct query_implied *implied = NULL;

    if (!texts_agree(implying, node))
        return NULL;
    switch (node->kind) {
    case MATCH_EQUAL:
    case MATCH_LESS:
    case MATCH_LESS_EQUAL:
    case MATCH_GREATER:
    case MATCH_GREATER_EQUAL:
        if (way->identity && node->kind == MATCH_EQUAL && node->value.type == DOCUMENT_OBJECT)
            return query_implied_points(implying, &way->operand,
                                        node->collator ? &node->compared : &node->value, 1);
        implied = comparison_imply(implying, node, &way->operand);
        break;
    case MATCH_IN:
        implied = in_imply(implying, node, &way->operand);
        break;
    case MATCH_REGEX:
        implied = regex_imply(implying, node, &way->operand);
        break;
    case MATCH_EXISTS:
    case MATCH_TYPE:
    case MATCH_MOD:
    case MATCH_BITS:
        if (!way->operand.through)
            return NULL;
        implied = query_implied_inexact(implying, query_implied_whatever(implying, &way->operand));
        break;
    case MATCH_GEO:
        return way->operand.through ? geo_imply(implying, node, &way->operand) : NULL;
    default:
        return NULL;
    }
    if (way->operand.through && !takes_missing(node))
        implied = present(implying, implied);
    return way->exact ? implied : query_implied_inexact(implying, implied);
}

/* $expr counts as true what is not false, null or 0, and the kinds of query/ only what is true: of
 * those, nothing is asked. */
static const struct query_implied *expression_imply(const struct query_implying *implying,
                                                    const struct query_expression *expression)
{
    if (query_is_constant(expression) || expression->kind == &query_kind_property ||
        expression->kind == &query_kind_variable)
        return NULL;
    return query_imply(implying, expression, true);
}

/* --- Trees ------------------------------------------------------------------------------------ */

static const struct query_implied *imply(const struct query_implying *implying,
                                         const struct match_node *node, const struct ways *bases);

/* Each may be so of another value: any of them is an access path. */
static const struct query_implied *each_imply(const struct query_implying *implying,
                                              const struct match_node *const *nodes, size_t count,
                                              const struct way *way)
{
    const struct query_implied **parts =
        ARENA_ARRAY(implying->arena, const struct query_implied *, count);

    for (size_t i = 0; i < count; i++)
        parts[i] = value_imply(implying, nodes[i], way);
    return query_implied_all(implying, parts, count);
}

/* Several comparisons of one path. */
static const struct query_implied *ranges_imply(const struct query_implying *implying,
                                                const struct match_node *const *nodes, size_t count,
                                                const struct ways *bases)
{
    const struct query_implied *sides[WAYS_MAX];
    struct ways ways;

    if (!ways_find(implying, nodes[0]->path, bases, &ways))
        return NULL;
    ways_add_elements(implying, &ways);
    if (ways.full)
        return NULL;
    if (implying->ways == QUERY_WAYS_MANY_VALUES)
        return each_imply(implying, nodes, count, &ways.list[0]);
    for (size_t i = 0; i < ways.count; i++) {
        const struct way *way = &ways.list[i];

        sides[i] = value_imply(implying, nodes[0], way);
        for (size_t n = 1; n < count && !way->operand.elements && sides[i]; n++) {
            const struct query_implied *more = value_imply(implying, nodes[n], way);

            if (more && sides[i]->kind == QUERY_IMPLIED_CONDITION &&
                (more->kind == QUERY_IMPLIED_CONDITION || more->kind == QUERY_IMPLIED_NEVER))
                sides[i] = query_implied_both(implying, sides[i], more);
            else
                sides[i] = query_implied_inexact(implying, sides[i]);
        }
        if (count > 1 && way->operand.elements)
            sides[i] = query_implied_inexact(implying, sides[i]);
    }
    return query_implied_any(implying, sides, ways.count);
}

static const struct query_implied *predicate_imply(const struct query_implying *implying,
                                                   const struct match_node *node,
                                                   const struct ways *bases)
{
    const struct query_implied *sides[WAYS_MAX];
    struct ways ways;

    if (!ways_find(implying, node->path, bases, &ways))
        return NULL;
    ways_add_elements(implying, &ways);
    if (ways.full)
        return NULL;
    for (size_t i = 0; i < ways.count; i++)
        sides[i] = value_imply(implying, node, &ways.list[i]);
    return query_implied_any(implying, sides, ways.count);
}

/* What holds for one element holds for a value at the path of elements. */
static const struct query_implied *element_imply(const struct query_implying *implying,
                                                 const struct match_node *node,
                                                 const struct ways *bases)
{
    struct ways ways, elements = {0};

    if (!node->path || !ways_find(implying, node->path, bases, &ways))
        return NULL;
    for (size_t i = 0; i < ways.count; i++)
        ways_add(&elements,
                 is_through(implying) ? ways.list[i].operand
                                      : query_operand_elements(implying, &ways.list[i].operand),
                 false, false);
    if (elements.full)
        return NULL;
    /* {$elemMatch: {}} is true of every element, and still wants one */
    return query_implied_inexact(implying, imply(implying, node->children[0], &elements));
}

/* A predicate of the elements themselves. */
static const struct query_implied *itself_imply(const struct query_implying *implying,
                                                const struct match_node *node,
                                                const struct ways *bases)
{
    const struct query_implied *sides[WAYS_MAX];

    if (!bases)
        return NULL;
    for (size_t i = 0; i < bases->count; i++)
        sides[i] = value_imply(implying, node, &bases->list[i]);
    return query_implied_any(implying, sides, bases->count);
}

/* The children that compare the same path are taken together. */
static const struct query_implied *all_imply(const struct query_implying *implying,
                                             const struct match_node *node,
                                             const struct ways *bases)
{
    const struct query_implied **parts =
        ARENA_ARRAY(implying->arena, const struct query_implied *, node->count + 1);
    const struct match_node **same =
        ARENA_ARRAY(implying->arena, const struct match_node *, node->count + 1);
    size_t count = 0;

    for (size_t i = 0; i < node->count; i++) {
        const struct match_node *child = node->children[i];
        size_t found = 0;

        if ((child->path && is_comparison(child)))
            while (i + found < node->count && node->children[i + found]->path &&
                   is_comparison(node->children[i + found]) &&
                   node->children[i + found]->path == child->path) {
                same[found] = node->children[i + found];
                found++;
            }
        if (found > 1) {
            parts[count++] = ranges_imply(implying, same, found, bases);
            i += found - 1;
        } else {
            parts[count++] = imply(implying, child, bases);
        }
    }
    return query_implied_all(implying, parts, count);
}

static const struct query_implied *any_imply(const struct query_implying *implying,
                                             const struct match_node *node,
                                             const struct ways *bases)
{
    const struct query_implied **parts =
        ARENA_ARRAY(implying->arena, const struct query_implied *, node->count + 1);

    for (size_t i = 0; i < node->count; i++)
        parts[i] = imply(implying, node->children[i], bases);
    return query_implied_any(implying, parts, node->count);
}

static const struct query_implied *imply(const struct query_implying *implying,
                                         const struct match_node *node, const struct ways *bases)
{
    switch (node->kind) {
    case MATCH_ALL:
        return all_imply(implying, node, bases);
    case MATCH_ANY:
        return any_imply(implying, node, bases);
    case MATCH_ELEMENT:
    case MATCH_ELEMENT_OBJECT:
        return element_imply(implying, node, bases);
    case MATCH_EQUAL:
    case MATCH_LESS:
    case MATCH_LESS_EQUAL:
    case MATCH_GREATER:
    case MATCH_GREATER_EQUAL:
    case MATCH_IN:
    case MATCH_REGEX:
    case MATCH_EXISTS:
    case MATCH_TYPE:
    case MATCH_MOD:
    case MATCH_BITS:
    case MATCH_GEO:
        return node->path ? predicate_imply(implying, node, bases)
                          : itself_imply(implying, node, bases);
    case MATCH_NEAR:
        return mongo_near_imply(node->near, implying);
    case MATCH_EXPRESSION:
        return expression_imply(implying, node->expression);
    case MATCH_TEXT:
        return mongo_text_imply(node->text, implying);
    default:
        return NULL;
    }
}

const struct query_implied *match_node_imply(const struct match_node *node,
                                             const struct query_implying *implying)
{
    return imply(implying, node, NULL);
}
