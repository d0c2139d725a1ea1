#include "property/sql/naive.h"

#include "document/bson.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/resolve.h"

#include <math.h>
#include <stdlib.h>

enum { SLOTS_MAX = 64 };

/* What names stand for in one row. */
struct env {
    struct naive item;
    struct naive slots[SLOTS_MAX];
};

struct envs {
    struct env *list;
    size_t count, room;
};

struct run {
    struct arena *arena;
    bool failed;
};

/* A place of evaluation: one row, and all rows of its group where aggregates may stand. */
struct place {
    struct run *run;
    const struct env *env;
    const struct envs *group;
};

static const struct naive undefined = {NAIVE_UNDEFINED};

static struct naive of_bool(bool boolean)
{
    return (struct naive){.kind = NAIVE_BOOL, .boolean = boolean};
}

static struct naive of_number(double number)
{
    return isfinite(number) ? (struct naive){.kind = NAIVE_NUMBER, .number = number} : undefined;
}

static struct naive of_text(struct slice text)
{
    return (struct naive){.kind = NAIVE_TEXT, .text = text};
}

struct naive naive_of(const struct document_value *value, struct arena *arena)
{
    struct naive made = undefined;
    struct document_iter iter;

    switch (value->type) {
    case DOCUMENT_NULL:
        return (struct naive){NAIVE_NULL};
    case DOCUMENT_BOOL:
        return of_bool(value->boolean);
    case DOCUMENT_STRING:
        return of_text(value->text);
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        made.kind = value->type == DOCUMENT_ARRAY ? NAIVE_ARRAY : NAIVE_OBJECT;
        made.items = ARENA_ARRAY(arena, struct naive, document_count(value->document) + 1);
        made.names = ARENA_ARRAY(arena, struct slice, document_count(value->document) + 1);
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter)) {
            made.names[made.count] = iter.key;
            made.items[made.count++] = naive_of(&iter.value, arena);
        }
        return made;
    default:
        if (document_to_double(value, &made.number))
            made.kind = NAIVE_NUMBER;
        return made;
    }
}

/* --- Comparing ---------------------------------------------------------------------------------
 */

/* Texts here have no characters outside of the basic plane: UTF-8 sorts them as UTF-16 does. */
static int text_compare(struct slice a, struct slice b)
{
    return slice_compare(a, b);
}

static const struct naive *member(const struct naive *object, struct slice name)
{
    for (size_t i = 0; object->kind == NAIVE_OBJECT && i < object->count; i++)
        if (slice_equal(object->names[i], name))
            return &object->items[i];
    return &undefined;
}

static int names_compare(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static int objects_compare(const struct naive *a, const struct naive *b)
{
    struct slice x[32], y[32];

    assert(a->count <= 32 && b->count <= 32);
    for (size_t i = 0; i < a->count; i++)
        x[i] = a->names[i];
    for (size_t i = 0; i < b->count; i++)
        y[i] = b->names[i];
    qsort(x, a->count, sizeof *x, names_compare);
    qsort(y, b->count, sizeof *y, names_compare);
    for (size_t i = 0; i < MIN(a->count, b->count); i++) {
        int order = text_compare(x[i], y[i]);

        if (!order)
            order = naive_compare(member(a, x[i]), member(b, y[i]));
        if (order)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

int naive_compare(const struct naive *a, const struct naive *b)
{
    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    switch (a->kind) {
    case NAIVE_BOOL:
        return a->boolean - b->boolean;
    case NAIVE_NUMBER:
        return (a->number > b->number) - (a->number < b->number);
    case NAIVE_TEXT:
        return text_compare(a->text, b->text);
    case NAIVE_OBJECT:
        return objects_compare(a, b);
    case NAIVE_ARRAY:
        for (size_t i = 0; i < MIN(a->count, b->count); i++) {
            int order = naive_compare(&a->items[i], &b->items[i]);

            if (order)
                return order;
        }
        return (a->count > b->count) - (a->count < b->count);
    default:
        return 0;
    }
}

static bool equal(const struct naive *a, const struct naive *b)
{
    return naive_compare(a, b) == 0;
}

static void rows_add(struct arena *arena, struct naive_rows *rows, struct naive value)
{
    if (rows->count == rows->room) {
        struct naive *grown;

        rows->room = rows->room ? rows->room * 2 : 8;
        grown = ARENA_ARRAY(arena, struct naive, rows->room);
        if (rows->count)
            memcpy(grown, rows->rows, rows->count * sizeof *grown);
        rows->rows = grown;
    }
    rows->rows[rows->count++] = value;
}

static void envs_add(struct arena *arena, struct envs *envs, const struct env *env)
{
    if (envs->count == envs->room) {
        struct env *grown;

        envs->room = envs->room ? envs->room * 2 : 8;
        grown = ARENA_ARRAY(arena, struct env, envs->room);
        if (envs->count)
            memcpy(grown, envs->list, envs->count * sizeof *grown);
        envs->list = grown;
    }
    envs->list[envs->count++] = *env;
}

/* --- Operators ---------------------------------------------------------------------------------
 */

static struct naive eval(const struct place *place, const struct sql_expr *expr);
static struct naive_rows rows_of(struct run *run, const struct sql_query *query,
                                 const struct env *outer, const struct naive *documents,
                                 size_t count, struct naive_rows *ret_all);

static struct naive compare(enum sql_binary op, const struct naive *a, const struct naive *b)
{
    int order;

    if (a->kind != b->kind || a->kind == NAIVE_UNDEFINED)
        return undefined;
    order = naive_compare(a, b);
    if (op == SQL_BINARY_EQUAL)
        return of_bool(order == 0);
    if (op == SQL_BINARY_NOT_EQUAL)
        return of_bool(order != 0);
    if (a->kind >= NAIVE_ARRAY)
        return undefined;
    switch (op) {
    case SQL_BINARY_LESS:
        return of_bool(order < 0);
    case SQL_BINARY_LESS_EQUAL:
        return of_bool(order <= 0);
    case SQL_BINARY_GREATER:
        return of_bool(order > 0);
    default:
        return of_bool(order >= 0);
    }
}

static struct naive negate(struct naive value)
{
    return value.kind == NAIVE_BOOL ? of_bool(!value.boolean) : undefined;
}

/* AND (settles: false) or OR (settles: true) of two. */
static struct naive combine(bool settles, struct naive a, struct naive b)
{
    if ((a.kind == NAIVE_BOOL && a.boolean == settles) ||
        (b.kind == NAIVE_BOOL && b.boolean == settles))
        return of_bool(settles);
    return a.kind == NAIVE_BOOL && b.kind == NAIVE_BOOL ? of_bool(!settles) : undefined;
}

static struct naive concatenate(struct arena *arena, struct naive a, struct naive b)
{
    if (a.kind != NAIVE_TEXT || b.kind != NAIVE_TEXT)
        return undefined;
    return of_text(arena_printf(arena, "%.*s%.*s", SLICE_ARG(a.text), SLICE_ARG(b.text)));
}

static struct naive binary(const struct place *place, const struct sql_expr *expr)
{
    struct naive a = eval(place, expr->binary.left), b = eval(place, expr->binary.right);
    enum sql_binary op = expr->binary.op;

    if (op == SQL_BINARY_COALESCE)
        return a.kind == NAIVE_UNDEFINED ? b : a;
    if (op >= SQL_BINARY_LESS && op <= SQL_BINARY_NOT_EQUAL)
        return compare(op, &a, &b);
    if (op == SQL_BINARY_CONCAT)
        return concatenate(place->run->arena, a, b);
    if (a.kind != NAIVE_NUMBER || b.kind != NAIVE_NUMBER)
        return undefined;
    switch (op) {
    case SQL_BINARY_ADD:
        return of_number(a.number + b.number);
    case SQL_BINARY_SUBTRACT:
        return of_number(a.number - b.number);
    case SQL_BINARY_MULTIPLY:
        return of_number(a.number * b.number);
    case SQL_BINARY_DIVIDE:
        return b.number == 0 ? undefined : of_number(a.number / b.number);
    case SQL_BINARY_MODULO:
        return b.number == 0 ? undefined : of_number(fmod(a.number, b.number));
    default:
        abort(); /* queries.h writes no others */
    }
}

static bool like(struct slice text, struct slice pattern)
{
    if (!pattern.len)
        return !text.len;
    if (pattern.data[0] == '%') {
        for (size_t i = 0; i <= text.len; i++)
            if (like(slice_skip(text, i), slice_skip(pattern, 1)))
                return true;
        return false;
    }
    return text.len && (pattern.data[0] == '_' || pattern.data[0] == text.data[0]) &&
           like(slice_skip(text, 1), slice_skip(pattern, 1));
}

static struct naive test(const struct place *place, const struct sql_expr *expr)
{
    struct naive value, low, high, result;

    if (expr->kind == SQL_EXPR_LIKE) {
        value = eval(place, expr->like.operand);
        low = eval(place, expr->like.pattern);
        result = value.kind == NAIVE_TEXT && low.kind == NAIVE_TEXT
                     ? of_bool(like(value.text, low.text))
                     : undefined;
        return expr->like.negated ? negate(result) : result;
    }
    if (expr->kind == SQL_EXPR_BETWEEN) {
        value = eval(place, expr->between.operand);
        low = eval(place, expr->between.low);
        high = eval(place, expr->between.high);
        result = combine(false, compare(SQL_BINARY_GREATER_EQUAL, &value, &low),
                         compare(SQL_BINARY_LESS_EQUAL, &value, &high));
        return expr->between.negated ? negate(result) : result;
    }
    value = eval(place, expr->in.operand);
    result = of_bool(false);
    for (uint32_t i = 0; i < expr->in.items.count; i++) {
        low = eval(place, expr->in.items.items[i]);
        result = combine(true, result, compare(SQL_BINARY_EQUAL, &value, &low));
    }
    return expr->in.negated ? negate(result) : result;
}

/* --- Functions ---------------------------------------------------------------------------------
 */

static bool contains(struct slice text, struct slice part)
{
    return !part.len || memmem(text.data, text.len, part.data, part.len);
}

static struct naive array_join(struct arena *arena, const struct naive *a, const struct naive *b)
{
    struct naive joined = {.kind = NAIVE_ARRAY, .count = a->count + b->count};

    joined.items = ARENA_ARRAY(arena, struct naive, joined.count + 1);
    if (a->count)
        memcpy(joined.items, a->items, a->count * sizeof *a->items);
    if (b->count)
        memcpy(joined.items + a->count, b->items, b->count * sizeof *b->items);
    return joined;
}

static struct naive lower(struct arena *arena, struct slice text)
{
    char *copy = arena_text(arena, text);

    for (size_t i = 0; i < text.len; i++)
        if (copy[i] >= 'A' && copy[i] <= 'Z')
            copy[i] = (char)(copy[i] + 32);
    return of_text(slice_of(copy, text.len));
}

static struct naive call(const struct place *place, const struct sql_expr *expr)
{
    struct arena *arena = place->run->arena;
    struct naive a = undefined, b = undefined;
    bool texts;

    if (expr->call.arguments.count > 0)
        a = eval(place, expr->call.arguments.items[0]);
    if (expr->call.arguments.count > 1)
        b = eval(place, expr->call.arguments.items[1]);
    texts = a.kind == NAIVE_TEXT && b.kind == NAIVE_TEXT;
    switch (expr->call.function->id) {
    case SQL_FUNCTION_IS_DEFINED:
        return of_bool(a.kind != NAIVE_UNDEFINED);
    case SQL_FUNCTION_IS_NULL:
        return of_bool(a.kind == NAIVE_NULL);
    case SQL_FUNCTION_IS_NUMBER:
        return of_bool(a.kind == NAIVE_NUMBER);
    case SQL_FUNCTION_IS_STRING:
        return of_bool(a.kind == NAIVE_TEXT);
    case SQL_FUNCTION_IS_BOOL:
        return of_bool(a.kind == NAIVE_BOOL);
    case SQL_FUNCTION_IS_ARRAY:
        return of_bool(a.kind == NAIVE_ARRAY);
    case SQL_FUNCTION_IS_OBJECT:
        return of_bool(a.kind == NAIVE_OBJECT);
    case SQL_FUNCTION_IS_PRIMITIVE:
        return of_bool(a.kind > NAIVE_UNDEFINED && a.kind < NAIVE_ARRAY);
    case SQL_FUNCTION_ABS:
        return a.kind == NAIVE_NUMBER ? of_number(fabs(a.number)) : undefined;
    case SQL_FUNCTION_FLOOR:
        return a.kind == NAIVE_NUMBER ? of_number(floor(a.number)) : undefined;
    case SQL_FUNCTION_LENGTH: /* of ASCII */
        return a.kind == NAIVE_TEXT ? of_number((double)a.text.len) : undefined;
    case SQL_FUNCTION_LOWER:
        return a.kind == NAIVE_TEXT ? lower(arena, a.text) : undefined;
    case SQL_FUNCTION_CONCAT:
        return concatenate(arena, a, b);
    case SQL_FUNCTION_CONTAINS:
        return texts ? of_bool(contains(a.text, b.text)) : undefined;
    case SQL_FUNCTION_STARTSWITH:
        return texts ? of_bool(slice_starts_with(a.text, b.text)) : undefined;
    case SQL_FUNCTION_ARRAY_LENGTH:
        return a.kind == NAIVE_ARRAY ? of_number((double)a.count) : undefined;
    case SQL_FUNCTION_ARRAY_CONCAT:
        return a.kind == NAIVE_ARRAY && b.kind == NAIVE_ARRAY ? array_join(arena, &a, &b)
                                                              : undefined;
    case SQL_FUNCTION_ARRAY_CONTAINS:
        if (a.kind != NAIVE_ARRAY || b.kind == NAIVE_UNDEFINED)
            return undefined;
        for (size_t i = 0; i < a.count; i++)
            if (equal(&a.items[i], &b))
                return of_bool(true);
        return of_bool(false);
    default:
        abort(); /* queries.h calls no others */
    }
}

/* One aggregate over the rows of the group. */
static struct naive aggregate(const struct place *place, const struct sql_expr *expr)
{
    enum sql_function_id id = expr->call.function->id;
    struct naive best = undefined, value;
    double sum = 0, count = 0;
    bool spoiled = false;

    for (size_t i = 0; i < place->group->count; i++) {
        struct place row = {place->run, &place->group->list[i], NULL};

        value = eval(&row, expr->call.arguments.items[0]);
        if (value.kind == NAIVE_UNDEFINED)
            continue;
        if (id == SQL_FUNCTION_COUNTIF) {
            count += value.kind == NAIVE_BOOL && value.boolean;
            continue;
        }
        count++;
        sum += value.number;
        if (id == SQL_FUNCTION_SUM || id == SQL_FUNCTION_AVG)
            spoiled |= value.kind != NAIVE_NUMBER;
        if (id == SQL_FUNCTION_MIN || id == SQL_FUNCTION_MAX) {
            int order = naive_compare(&value, &best);

            spoiled |= value.kind >= NAIVE_ARRAY;
            if (best.kind == NAIVE_UNDEFINED || (id == SQL_FUNCTION_MIN ? order < 0 : order > 0))
                best = value;
        }
    }
    if (id == SQL_FUNCTION_COUNT || id == SQL_FUNCTION_COUNTIF)
        return of_number(count);
    if (spoiled || count == 0)
        return undefined;
    if (id == SQL_FUNCTION_SUM)
        return of_number(sum);
    return id == SQL_FUNCTION_AVG ? of_number(sum / count) : best;
}

/* --- Expressions -------------------------------------------------------------------------------
 */

static struct naive made_array(const struct place *place, const struct sql_exprs *list)
{
    struct naive made = {.kind = NAIVE_ARRAY};

    made.items = ARENA_ARRAY(place->run->arena, struct naive, list->count + 1);
    for (uint32_t i = 0; i < list->count; i++) {
        struct naive value = eval(place, list->items[i]);

        if (value.kind != NAIVE_UNDEFINED)
            made.items[made.count++] = value;
    }
    return made;
}

static struct naive object_new(struct arena *arena, size_t room)
{
    return (struct naive){.kind = NAIVE_OBJECT,
                          .items = ARENA_ARRAY(arena, struct naive, room + 1),
                          .names = ARENA_ARRAY(arena, struct slice, room + 1)};
}

static void object_set(struct naive *object, struct slice name, struct naive value)
{
    if (value.kind == NAIVE_UNDEFINED)
        return;
    object->names[object->count] = name;
    object->items[object->count++] = value;
}

static struct naive subquery(const struct place *place, const struct sql_expr *expr)
{
    struct naive_rows all;
    struct naive_rows rows = rows_of(place->run, expr->subquery.query, place->env, NULL, 0, &all);
    struct naive list = {.kind = NAIVE_ARRAY, .count = rows.count, .items = rows.rows};

    switch (expr->subquery.kind) {
    case SQL_SUBQUERY_EXISTS:
        return of_bool(rows.count > 0);
    case SQL_SUBQUERY_ARRAY:
        return list;
    case SQL_SUBQUERY_SCALAR:
        if (rows.count > 1)
            place->run->failed = true;
        return rows.count ? rows.rows[0] : undefined;
    default:
        abort(); /* queries.h writes no others */
    }
}

static struct naive index_of(const struct naive *array, const struct naive *key)
{
    if (array->kind != NAIVE_ARRAY || key->kind != NAIVE_NUMBER || key->number < 0 ||
        key->number != floor(key->number) || key->number >= (double)array->count)
        return undefined;
    return array->items[(size_t)key->number];
}

static struct naive eval(const struct place *place, const struct sql_expr *expr)
{
    struct naive a, b;

    switch (expr->kind) {
    case SQL_EXPR_LITERAL:
        return naive_of(&expr->literal, place->run->arena);
    case SQL_EXPR_PARAMETER:
        return naive_of(expr->parameter.value, place->run->arena);
    case SQL_EXPR_NAME:
        return expr->name.source ? place->env->slots[expr->name.source->slot] : place->env->item;
    case SQL_EXPR_MEMBER:
        a = eval(place, expr->member.object);
        return *member(&a, expr->member.name);
    case SQL_EXPR_INDEX:
        a = eval(place, expr->index.object);
        b = eval(place, expr->index.index);
        return index_of(&a, &b);
    case SQL_EXPR_ARRAY:
        return made_array(place, &expr->items);
    case SQL_EXPR_OBJECT:
        a = object_new(place->run->arena, expr->object.count);
        for (uint32_t i = 0; i < expr->object.count; i++)
            object_set(&a, expr->object.properties[i].name,
                       eval(place, expr->object.properties[i].value));
        return a;
    case SQL_EXPR_CALL:
        return sql_is_aggregate(expr) ? aggregate(place, expr) : call(place, expr);
    case SQL_EXPR_SUBQUERY:
        return subquery(place, expr);
    case SQL_EXPR_UNARY:
        a = eval(place, expr->unary.operand);
        if (expr->unary.op == SQL_UNARY_NOT)
            return negate(a);
        return a.kind == NAIVE_NUMBER ? of_number(-a.number) : undefined;
    case SQL_EXPR_BINARY:
        return binary(place, expr);
    case SQL_EXPR_AND:
    case SQL_EXPR_OR:
        a = eval(place, expr->items.items[0]);
        for (uint32_t i = 1; i < expr->items.count; i++)
            a = combine(expr->kind == SQL_EXPR_OR, a, eval(place, expr->items.items[i]));
        return a;
    case SQL_EXPR_CONDITIONAL:
        a = eval(place, expr->conditional.condition);
        if (a.kind != NAIVE_BOOL)
            return undefined;
        return eval(place, a.boolean ? expr->conditional.then : expr->conditional.otherwise);
    case SQL_EXPR_BETWEEN:
    case SQL_EXPR_IN:
    case SQL_EXPR_LIKE:
        return test(place, expr);
    default:
        abort();
    }
}

/* --- Queries -----------------------------------------------------------------------------------
 */

/* All combinations of the sources from the nth on that WHERE accepts. */
static void join(struct run *run, const struct sql_query *query, uint32_t nth, struct env *env,
                 struct envs *to)
{
    struct place place = {run, env, NULL};
    const struct sql_source *source;
    struct naive_rows all, rows = {0};
    struct naive value;

    if (nth == query->source_count) {
        value = query->where ? eval(&place, query->where) : of_bool(true);
        if (value.kind == NAIVE_BOOL && value.boolean)
            envs_add(run->arena, to, env);
        return;
    }
    source = query->sources[nth];
    assert(source->slot < SLOTS_MAX);
    if (source->subquery) {
        rows = rows_of(run, source->subquery, env, NULL, 0, &all);
    } else {
        value = eval(&place, source->path);
        if (value.kind != NAIVE_UNDEFINED)
            rows_add(run->arena, &rows, value);
    }
    for (size_t i = 0; i < rows.count; i++) {
        if (!source->iterates) {
            env->slots[source->slot] = rows.rows[i];
            join(run, query, nth + 1, env, to);
            continue;
        }
        for (size_t j = 0; rows.rows[i].kind == NAIVE_ARRAY && j < rows.rows[i].count; j++) {
            env->slots[source->slot] = rows.rows[i].items[j];
            join(run, query, nth + 1, env, to);
        }
    }
}

static struct naive row_select(const struct place *place, const struct sql_query *query)
{
    struct naive row;

    if (query->select == SQL_SELECT_STAR)
        return place->env->slots[query->sources[0]->slot];
    if (query->select == SQL_SELECT_VALUE)
        return eval(place, query->items[0].expr);
    row = object_new(place->run->arena, query->item_count);
    for (uint32_t i = 0; i < query->item_count; i++)
        object_set(&row, query->items[i].column, eval(place, query->items[i].expr));
    return row;
}

static struct naive group_key(struct run *run, const struct sql_query *query, const struct env *env)
{
    struct place place = {run, env, NULL};
    struct naive key = {.kind = NAIVE_ARRAY, .count = query->group_by.count};

    key.items = ARENA_ARRAY(run->arena, struct naive, key.count + 1);
    for (uint32_t i = 0; i < query->group_by.count; i++)
        key.items[i] = eval(&place, query->group_by.items[i]);
    return key;
}

static void group_rows(struct run *run, const struct sql_query *query, const struct envs *envs,
                       const struct env *outer, struct naive_rows *rows)
{
    struct naive_rows keys = {0};

    if (!query->group_by.count) {
        struct place place = {run, envs->count ? &envs->list[0] : outer, envs};

        rows_add(run->arena, rows, row_select(&place, query));
        return;
    }
    for (size_t i = 0; i < envs->count; i++) {
        struct naive key = group_key(run, query, &envs->list[i]);
        struct envs group = {0};
        struct place place = {run, &envs->list[i], &group};
        bool seen = false;

        for (size_t j = 0; j < keys.count; j++)
            seen |= equal(&keys.rows[j], &key);
        if (seen)
            continue;
        rows_add(run->arena, &keys, key);
        for (size_t j = i; j < envs->count; j++) {
            struct naive other = group_key(run, query, &envs->list[j]);

            if (equal(&key, &other))
                envs_add(run->arena, &group, &envs->list[j]);
        }
        rows_add(run->arena, rows, row_select(&place, query));
    }
}

/* Insertion sort by the keys of ORDER BY: stable, and plainly right. */
static void envs_sort(struct run *run, const struct sql_query *query, struct envs *envs)
{
    for (size_t i = 1; i < envs->count; i++) {
        for (size_t j = i; j > 0; j--) {
            struct place a = {run, &envs->list[j - 1], NULL}, b = {run, &envs->list[j], NULL};
            int order = 0;

            for (uint32_t k = 0; k < query->order_count && !order; k++) {
                struct naive x = eval(&a, query->order_by[k].expr);
                struct naive y = eval(&b, query->order_by[k].expr);

                order = naive_compare(&x, &y);
                if (query->order_by[k].descending)
                    order = -order;
            }
            if (order <= 0)
                break;
            struct env swapped = envs->list[j];

            envs->list[j] = envs->list[j - 1];
            envs->list[j - 1] = swapped;
        }
    }
}

static struct naive_rows cut(struct arena *arena, const struct sql_query *query,
                             const struct naive_rows *all)
{
    struct naive_rows rows = {0};
    uint32_t offset = 0, limit = UINT32_MAX;

    if (query->offset && !sql_amount(query->offset, &offset))
        abort();
    if (query->top && !sql_amount(query->top, &limit))
        abort();
    if (query->limit && !sql_amount(query->limit, &limit))
        abort();
    for (size_t i = offset; i < all->count && rows.count < limit; i++)
        rows_add(arena, &rows, all->rows[i]);
    return rows;
}

static struct naive_rows rows_of(struct run *run, const struct sql_query *query,
                                 const struct env *outer, const struct naive *documents,
                                 size_t count, struct naive_rows *ret_all)
{
    struct env *env = ARENA_NEW(run->arena, struct env);
    struct naive_rows selected = {0}, all = {0};
    struct envs envs = {0};

    *env = *outer;
    if (documents && query->source_count) {
        for (size_t i = 0; i < count; i++) {
            env->item = documents[i];
            join(run, query, 0, env, &envs);
        }
    } else {
        join(run, query, 0, env, &envs);
    }
    if (query->group_by.count || query->aggregates) {
        group_rows(run, query, &envs, outer, &selected);
    } else {
        envs_sort(run, query, &envs);
        for (size_t i = 0; i < envs.count; i++) {
            struct place place = {run, &envs.list[i], NULL};

            rows_add(run->arena, &selected, row_select(&place, query));
        }
    }
    for (size_t i = 0; i < selected.count; i++) {
        bool seen = selected.rows[i].kind == NAIVE_UNDEFINED;

        for (size_t j = 0; query->distinct && j < all.count; j++)
            seen |= equal(&all.rows[j], &selected.rows[i]);
        if (!seen)
            rows_add(run->arena, &all, selected.rows[i]);
    }
    *ret_all = all;
    return cut(run->arena, query, &all);
}

bool naive_query(const struct sql_query *query, const struct naive *documents, size_t count,
                 struct arena *arena, struct naive_rows *ret_rows, struct naive_rows *ret_all)
{
    struct run run = {.arena = arena};
    struct env *none = ARENA_NEW(arena, struct env);

    *ret_rows = rows_of(&run, query, none, documents, count, ret_all);
    return !run.failed;
}
