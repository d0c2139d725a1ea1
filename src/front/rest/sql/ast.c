#include "front/rest/sql/ast.h"

#include "front/rest/sql/functions.h"

static const struct sql_span NOWHERE = {0, 0};

/* --- Making ------------------------------------------------------------------------------------
 */

struct sql_expr *sql_expr_new(struct arena *arena, enum sql_expr_kind kind, struct sql_span span)
{
    struct sql_expr *expr = ARENA_NEW(arena, struct sql_expr);

    expr->kind = kind;
    expr->span = span;
    return expr;
}

static bool height_raise(struct sql_expr *child, void *context)
{
    uint32_t *height = context;

    *height = MAX(*height, child->height);
    return true;
}

void sql_expr_settle(struct sql_expr *expr)
{
    uint32_t height = expr->kind == SQL_EXPR_SUBQUERY ? expr->subquery.query->height : 0;

    sql_expr_each(expr, height_raise, &height);
    expr->height = height + 1;
}

void sql_query_settle(struct sql_query *query)
{
    uint32_t height = 0;

    sql_query_each(query, height_raise, &height);
    for (uint32_t i = 0; i < query->source_count; i++)
        if (query->sources[i]->subquery)
            height = MAX(height, query->sources[i]->subquery->height);
    query->height = height + 1;
}

/* Growing by doubling leaves what was outgrown in the arena, less than the list itself. */
void sql_exprs_add(struct arena *arena, struct sql_exprs *list, struct sql_expr *expr)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        struct sql_expr **items = ARENA_ARRAY(arena, struct sql_expr *, capacity);

        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = expr;
}

struct sql_expr *sql_expr_literal(struct arena *arena, struct document_value value)
{
    struct sql_expr *expr = sql_expr_new(arena, SQL_EXPR_LITERAL, NOWHERE);

    expr->literal = value;
    sql_expr_settle(expr);
    return expr;
}

struct sql_expr *sql_expr_name(struct arena *arena, const struct sql_source *source)
{
    struct sql_expr *expr = sql_expr_new(arena, SQL_EXPR_NAME, NOWHERE);

    expr->name.name = source->alias;
    expr->name.source = source;
    sql_expr_settle(expr);
    return expr;
}

struct sql_expr *sql_expr_member(struct arena *arena, struct sql_expr *object, struct slice name)
{
    struct sql_expr *expr = sql_expr_new(arena, SQL_EXPR_MEMBER, NOWHERE);

    expr->member.object = object;
    expr->member.name = name;
    sql_expr_settle(expr);
    return expr;
}

struct sql_expr *sql_expr_call(struct arena *arena, const struct sql_function *function,
                               struct sql_expr *argument)
{
    struct sql_expr *expr = sql_expr_new(arena, SQL_EXPR_CALL, NOWHERE);

    expr->call.name = slice_of_text(function->name);
    expr->call.function = function;
    sql_exprs_add(arena, &expr->call.arguments, argument);
    sql_expr_settle(expr);
    return expr;
}

struct sql_expr *sql_expr_object(struct arena *arena)
{
    struct sql_expr *expr = sql_expr_new(arena, SQL_EXPR_OBJECT, NOWHERE);

    sql_expr_settle(expr);
    return expr;
}

void sql_expr_object_add(struct arena *arena, struct sql_expr *object, struct slice name,
                         struct sql_expr *value)
{
    assert(object->kind == SQL_EXPR_OBJECT);
    if (object->object.count == object->object.capacity) {
        uint32_t capacity = object->object.capacity ? object->object.capacity * 2 : 4;
        struct sql_property *properties = ARENA_ARRAY(arena, struct sql_property, capacity);

        if (object->object.count)
            memcpy(properties, object->object.properties,
                   object->object.count * sizeof *properties);
        object->object.properties = properties;
        object->object.capacity = capacity;
    }
    object->object.properties[object->object.count++] =
        (struct sql_property){.name = name, .span = value->span, .value = value};
    object->height = MAX(object->height, value->height + 1);
}

struct sql_expr *sql_expr_array_of(struct arena *arena, struct sql_expr *item)
{
    struct sql_expr *expr = sql_expr_new(arena, SQL_EXPR_ARRAY, NOWHERE);

    sql_exprs_add(arena, &expr->items, item);
    sql_expr_settle(expr);
    return expr;
}

struct sql_expr *sql_expr_and(struct arena *arena, struct sql_expr *left, struct sql_expr *right)
{
    struct sql_expr *expr;

    if (!left)
        return right;
    expr = sql_expr_new(arena, SQL_EXPR_AND, NOWHERE);
    sql_exprs_add(arena, &expr->items, left);
    sql_exprs_add(arena, &expr->items, right);
    sql_expr_settle(expr);
    return expr;
}

/* --- Walking -----------------------------------------------------------------------------------
 */

typedef bool visit_fn(struct sql_expr *child, void *context); /* too long to spell in each */

static bool each_of(const struct sql_exprs *list, visit_fn *visit, void *context)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (!visit(list->items[i], context))
            return false;
    return true;
}

static bool each_property(const struct sql_expr *expr, visit_fn *visit, void *context)
{
    for (uint32_t i = 0; i < expr->object.count; i++)
        if (!visit(expr->object.properties[i].value, context))
            return false;
    return true;
}

bool sql_expr_each(const struct sql_expr *expr, visit_fn *visit, void *context)
{
    switch (expr->kind) {
    case SQL_EXPR_LITERAL:
    case SQL_EXPR_PARAMETER:
    case SQL_EXPR_NAME:
    case SQL_EXPR_SUBQUERY:
        return true;
    case SQL_EXPR_MEMBER:
        return visit(expr->member.object, context);
    case SQL_EXPR_INDEX:
        return visit(expr->index.object, context) && visit(expr->index.index, context);
    case SQL_EXPR_ARRAY:
    case SQL_EXPR_AND:
    case SQL_EXPR_OR:
        return each_of(&expr->items, visit, context);
    case SQL_EXPR_OBJECT:
        return each_property(expr, visit, context);
    case SQL_EXPR_CALL:
    case SQL_EXPR_UDF:
        return each_of(&expr->call.arguments, visit, context);
    case SQL_EXPR_UNARY:
        return visit(expr->unary.operand, context);
    case SQL_EXPR_BINARY:
        return visit(expr->binary.left, context) && visit(expr->binary.right, context);
    case SQL_EXPR_CONDITIONAL:
        return visit(expr->conditional.condition, context) &&
               visit(expr->conditional.then, context) &&
               visit(expr->conditional.otherwise, context);
    case SQL_EXPR_BETWEEN:
        return visit(expr->between.operand, context) && visit(expr->between.low, context) &&
               visit(expr->between.high, context);
    case SQL_EXPR_IN:
        return visit(expr->in.operand, context) && each_of(&expr->in.items, visit, context);
    case SQL_EXPR_LIKE:
        return visit(expr->like.operand, context) && visit(expr->like.pattern, context) &&
               (!expr->like.escape || visit(expr->like.escape, context));
    }
    assert(!"an expression of no kind");
    return false;
}

bool sql_query_each(const struct sql_query *query, visit_fn *visit, void *context)
{
    for (uint32_t i = 0; i < query->source_count; i++)
        if (query->sources[i]->path && !visit(query->sources[i]->path, context))
            return false;
    for (uint32_t i = 0; i < query->item_count; i++)
        if (!visit(query->items[i].expr, context))
            return false;
    if (query->where && !visit(query->where, context))
        return false;
    if (!each_of(&query->group_by, visit, context))
        return false;
    for (uint32_t i = 0; i < query->order_count; i++)
        if (!visit(query->order_by[i].expr, context))
            return false;
    return true;
}

struct sql_expr *sql_expr_start(struct sql_expr *expr)
{
    while (expr->kind == SQL_EXPR_MEMBER || expr->kind == SQL_EXPR_INDEX)
        expr = expr->kind == SQL_EXPR_MEMBER ? expr->member.object : expr->index.object;
    return expr;
}

/* --- Equality ----------------------------------------------------------------------------------
 */

static bool literal_equal(const struct document_value *a, const struct document_value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case DOCUMENT_BOOL:
        return a->boolean == b->boolean;
    case DOCUMENT_INT32:
        return a->int32 == b->int32;
    case DOCUMENT_INT64:
        return a->int64 == b->int64;
    case DOCUMENT_DOUBLE:
        return a->number == b->number;
    case DOCUMENT_STRING:
        return slice_equal(a->text, b->text);
    default:
        return a->type == DOCUMENT_NULL || a->type == DOCUMENT_UNDEFINED;
    }
}

static bool exprs_equal(const struct sql_exprs *a, const struct sql_exprs *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!sql_expr_equal(a->items[i], b->items[i]))
            return false;
    return true;
}

static bool objects_equal(const struct sql_expr *a, const struct sql_expr *b)
{
    if (a->object.count != b->object.count)
        return false;
    for (uint32_t i = 0; i < a->object.count; i++)
        if (!slice_equal(a->object.properties[i].name, b->object.properties[i].name) ||
            !sql_expr_equal(a->object.properties[i].value, b->object.properties[i].value))
            return false;
    return true;
}

static bool optional_equal(const struct sql_expr *a, const struct sql_expr *b)
{
    return a && b ? sql_expr_equal(a, b) : !a && !b;
}

/* A name means its source where both are resolved: two subqueries may use one name for two. */
static bool names_equal(const struct sql_expr *a, const struct sql_expr *b)
{
    if (!slice_equal(a->name.name, b->name.name))
        return false;
    return !a->name.source || !b->name.source || a->name.source->slot == b->name.source->slot;
}

/* Trees of different heights are told apart at once: comparing a path with each of its own
 * beginnings would otherwise cost its length every time. */
bool sql_expr_equal(const struct sql_expr *a, const struct sql_expr *b)
{
    if (a->kind != b->kind || a->height != b->height)
        return false;
    switch (a->kind) {
    case SQL_EXPR_LITERAL:
        return literal_equal(&a->literal, &b->literal);
    case SQL_EXPR_PARAMETER:
        return slice_equal(a->parameter.name, b->parameter.name);
    case SQL_EXPR_NAME:
        return names_equal(a, b);
    case SQL_EXPR_MEMBER:
        return slice_equal(a->member.name, b->member.name) &&
               sql_expr_equal(a->member.object, b->member.object);
    case SQL_EXPR_INDEX:
        return sql_expr_equal(a->index.object, b->index.object) &&
               sql_expr_equal(a->index.index, b->index.index);
    case SQL_EXPR_ARRAY:
    case SQL_EXPR_AND:
    case SQL_EXPR_OR:
        return exprs_equal(&a->items, &b->items);
    case SQL_EXPR_OBJECT:
        return objects_equal(a, b);
    case SQL_EXPR_CALL:
        return slice_equal_nocase(a->call.name, b->call.name) &&
               exprs_equal(&a->call.arguments, &b->call.arguments);
    case SQL_EXPR_UDF:
        return slice_equal(a->call.name, b->call.name) &&
               exprs_equal(&a->call.arguments, &b->call.arguments);
    case SQL_EXPR_SUBQUERY:
        return a->subquery.kind == b->subquery.kind &&
               sql_query_equal(a->subquery.query, b->subquery.query);
    case SQL_EXPR_UNARY:
        return a->unary.op == b->unary.op && sql_expr_equal(a->unary.operand, b->unary.operand);
    case SQL_EXPR_BINARY:
        return a->binary.op == b->binary.op && sql_expr_equal(a->binary.left, b->binary.left) &&
               sql_expr_equal(a->binary.right, b->binary.right);
    case SQL_EXPR_CONDITIONAL:
        return sql_expr_equal(a->conditional.condition, b->conditional.condition) &&
               sql_expr_equal(a->conditional.then, b->conditional.then) &&
               sql_expr_equal(a->conditional.otherwise, b->conditional.otherwise);
    case SQL_EXPR_BETWEEN:
        return a->between.negated == b->between.negated &&
               sql_expr_equal(a->between.operand, b->between.operand) &&
               sql_expr_equal(a->between.low, b->between.low) &&
               sql_expr_equal(a->between.high, b->between.high);
    case SQL_EXPR_IN:
        return a->in.negated == b->in.negated && sql_expr_equal(a->in.operand, b->in.operand) &&
               exprs_equal(&a->in.items, &b->in.items);
    case SQL_EXPR_LIKE:
        return a->like.negated == b->like.negated &&
               sql_expr_equal(a->like.operand, b->like.operand) &&
               sql_expr_equal(a->like.pattern, b->like.pattern) &&
               optional_equal(a->like.escape, b->like.escape);
    }
    return false;
}

static bool sources_equal(const struct sql_query *a, const struct sql_query *b)
{
    if (a->source_count != b->source_count)
        return false;
    for (uint32_t i = 0; i < a->source_count; i++) {
        const struct sql_source *x = a->sources[i], *y = b->sources[i];

        if (x->iterates != y->iterates || x->alias_given != y->alias_given ||
            !slice_equal(x->alias, y->alias) || !optional_equal(x->path, y->path) ||
            !slice_equal(x->reference, y->reference) ||
            !slice_equal(x->reference_database, y->reference_database) ||
            !x->subquery != !y->subquery)
            return false;
        if (x->subquery && !sql_query_equal(x->subquery, y->subquery))
            return false;
    }
    return true;
}

static bool selections_equal(const struct sql_query *a, const struct sql_query *b)
{
    if (a->distinct != b->distinct || a->select != b->select || a->item_count != b->item_count ||
        !optional_equal(a->top, b->top))
        return false;
    for (uint32_t i = 0; i < a->item_count; i++)
        if (!slice_equal(a->items[i].alias, b->items[i].alias) ||
            !sql_expr_equal(a->items[i].expr, b->items[i].expr))
            return false;
    return true;
}

static bool orders_equal(const struct sql_query *a, const struct sql_query *b)
{
    if (a->order_count != b->order_count || a->order_by_rank != b->order_by_rank)
        return false;
    for (uint32_t i = 0; i < a->order_count; i++)
        if (a->order_by[i].descending != b->order_by[i].descending ||
            !sql_expr_equal(a->order_by[i].expr, b->order_by[i].expr))
            return false;
    return true;
}

bool sql_query_equal(const struct sql_query *a, const struct sql_query *b)
{
    return selections_equal(a, b) && sources_equal(a, b) && optional_equal(a->where, b->where) &&
           exprs_equal(&a->group_by, &b->group_by) && orders_equal(a, b) &&
           optional_equal(a->offset, b->offset) && optional_equal(a->limit, b->limit);
}
