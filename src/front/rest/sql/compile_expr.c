/* Expressions. Each kind of the tree has its builder in query/expression/expression.h; what is left
 * to do here is to say what names stand for. */
#include "front/rest/sql/compile_private.h"

#include "front/rest/sql/computed.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/resolve.h"
#include "front/rest/sql/vectors.h"
#include "index/policy.h"
#include "item/shown.h"
#include "search/analyser.h"

#include <stdarg.h>
#include <stdio.h>

const struct query_expression *sql_compile_refuse(struct sql_compiler *compiler,
                                                  struct sql_span span, const char *format, ...)
{
    char message[200];
    va_list args;

    if (!compiler->build.failed) {
        va_start(args, format);
        vsnprintf(message, sizeof message, format, args);
        va_end(args);
        sql_report_unsupported(compiler->report, span, "%s", message);
        compiler->build.failed = true;
        compiler->build.error = *compiler->report->err;
    }
    return query_constant(&compiler->build, document_undefined());
}

static const struct query_expression **
compile_list(struct sql_compiler *compiler, struct sql_level *level, const struct sql_exprs *list)
{
    const struct query_expression **compiled =
        ARENA_ARRAY(compiler->build.arena, const struct query_expression *, list->count + 1);

    for (uint32_t i = 0; i < list->count; i++)
        compiled[i] = sql_compile_expr(compiler, level, list->items[i]);
    return compiled;
}

/* --- Names -------------------------------------------------------------------------------------
 */

static const struct query_expression *compile_name(struct sql_compiler *compiler,
                                                   const struct sql_expr *expr)
{
    const struct sql_source *source = expr->name.source;

    if (!source) /* the container, in a FROM */
        return query_variable(&compiler->build, 0);
    assert(source->slot < compiler->alias_room && compiler->aliases[source->slot]);
    return compiler->aliases[source->slot];
}

static bool is_item(const struct query_expression *expression)
{
    const struct query_step *steps;
    size_t count;
    uint32_t slot;

    return query_is_path(expression, &slot, &steps, &count) && slot == 0 && count == 0;
}

/* The expression of a computed property. It was checked when the container was defined; a fault
 * now means that the rules have changed since, and is reported like one of the query. */
static const struct query_expression *compile_computed(struct sql_compiler *compiler,
                                                       struct slice text)
{
    static const struct sql_compile_options none;
    const struct sql_report *report = compiler->report;
    struct sql_compiler inner = *compiler;
    struct sql_query *query;
    const struct query_expression *expression, *item;
    struct sql_level level;

    if (!sql_computed_parse(text, compiler->build.arena, &query, report->error, report->err)) {
        compiler->build.failed = true;
        compiler->build.error = *report->err;
        return query_constant(&compiler->build, document_undefined());
    }
    item = query_variable(&inner.build, 0);
    level = (struct sql_level){.query = query};
    inner.options = &none;
    inner.aliases = &item;
    inner.alias_room = 1;
    expression = sql_compile_expr(&inner, &level, query->items[0].expr);
    compiler->build = inner.build;
    return expression;
}

static bool is_shown_identity(const struct sql_compiler *compiler, struct slice name)
{
    const struct document_names *names = sql_names(compiler->options);

    return !item_shows_plainly(names) && slice_equal(name, names->shown);
}

static const struct query_expression *compile_identity(struct sql_compiler *compiler,
                                                       const struct query_expression *item)
{
    const struct query_expression *identity =
        query_property_of(&compiler->build, item, sql_names(compiler->options)->identity);

    return query_call(&compiler->build, &query_function_identity, &identity, 1);
}

static const struct query_expression *
compile_member(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    const struct query_expression *object = sql_compile_expr(compiler, level, expr->member.object);
    struct slice text;

    if (is_item(object) && is_shown_identity(compiler, expr->member.name))
        return compile_identity(compiler, object);
    if (is_item(object) && sql_computed_find(compiler->options->computed, expr->member.name, &text))
        return compile_computed(compiler, text);
    return query_property_of(&compiler->build, object, expr->member.name);
}

/* --- Groups ------------------------------------------------------------------------------------
 */

/* In the SELECT of a grouped query, and in what stands in it, a group expression is a key of the
 * group. NULL: it is none. */
static const struct query_expression *
group_key(struct sql_compiler *compiler, const struct sql_level *level, const struct sql_expr *expr)
{
    for (; level; level = level->outer) {
        const struct sql_exprs *keys = &level->query->group_by;

        for (uint32_t i = 0; level->selecting && i < keys->count; i++)
            if (sql_expr_equal(keys->items[i], expr))
                return query_variable(&compiler->build, level->key_slot + i);
    }
    return NULL;
}

static void aggregates_grow(struct arena *arena, struct sql_level *level)
{
    size_t room = level->aggregate_room ? level->aggregate_room * 2 : 8;
    struct query_aggregate_call *calls = ARENA_ARRAY(arena, struct query_aggregate_call, room);

    if (level->aggregate_count)
        memcpy(calls, level->aggregates, level->aggregate_count * sizeof *calls);
    level->aggregates = calls;
    level->aggregate_room = room;
}

static const struct query_expression *compile_aggregate(struct sql_compiler *compiler,
                                                        struct sql_level *level,
                                                        const struct sql_expr *expr)
{
    const char *name = expr->call.function->name;
    struct query_aggregate_call call = {.slot = compiler->slots++};
    bool selecting = level->selecting;

    if (!query_aggregate_find(slice_of_text(name), &call.kind))
        return sql_compile_refuse(compiler, expr->span,
                                  "The aggregate function %s is not supported.", name);
    level->selecting = false; /* the argument is of the rows, not of the groups */
    call.argument = sql_compile_expr(compiler, level, expr->call.arguments.items[0]);
    level->selecting = selecting;
    if (level->aggregate_count == level->aggregate_room)
        aggregates_grow(compiler->build.arena, level);
    level->aggregates[level->aggregate_count++] = call;
    return query_variable(&compiler->build, call.slot);
}

/* --- Calls and subqueries ----------------------------------------------------------------------
 */

/* The language that the container's policy has for what is searched. */
static struct slice language_of(struct sql_compiler *compiler, const struct sql_expr *searched)
{
    struct arena *arena = compiler->build.arena;
    struct document_path path;
    bool is_path = sql_path(searched, arena, &path);

    return arena_copy(
        arena, index_text_language(compiler->options->full_text, is_path ? &path : NULL, arena));
}

static const struct query_expression *compile_searching(struct sql_compiler *compiler,
                                                        struct sql_level *level,
                                                        const struct sql_expr *expr,
                                                        const struct query_function *function)
{
    size_t count = expr->call.arguments.count;
    const struct query_expression *const *given =
        compile_list(compiler, level, &expr->call.arguments);
    const struct query_expression **arguments =
        ARENA_ARRAY(compiler->build.arena, const struct query_expression *, count + 1);
    struct slice language = language_of(compiler, expr->call.arguments.items[0]);

    if (!search_language_is_known(language))
        return sql_compile_refuse(compiler, expr->span,
                                  "Full-text search in the language %.*s is not supported.",
                                  SLICE_ARG(sql_excerpt(language)));
    arguments[0] = query_constant(&compiler->build, document_string(language));
    memcpy(arguments + 1, given, count * sizeof *arguments);
    return query_call(&compiler->build, function, arguments, count + 1);
}

/* What is compared goes before the two vectors, as constants; the other arguments are in them. */
static const struct query_expression *compile_vectors(struct sql_compiler *compiler,
                                                      struct sql_level *level,
                                                      const struct sql_expr *expr,
                                                      const struct query_function *function)
{
    struct query_build *build = &compiler->build;
    const struct query_expression *arguments[QUERY_VECTOR_ARGUMENTS];
    struct sql_vector_call call;

    if (!sql_vector_call_read(expr, compiler->options->vectors, build->arena, &call,
                              compiler->report)) {
        if (!build->failed) {
            build->failed = true;
            build->error = *compiler->report->err;
        }
        return query_constant(build, document_undefined());
    }
    arguments[QUERY_VECTOR_KIND] =
        query_constant(build, document_int64(search_vectors_pack(&call.vectors)));
    arguments[QUERY_VECTOR_BRUTE] = query_constant(build, document_bool(call.brute_force));
    arguments[QUERY_VECTOR_LIST] = query_constant(build, document_int32((int32_t)call.list));
    arguments[QUERY_VECTOR_COMPARED] =
        query_constant(build, document_int32((int32_t)call.compared));
    arguments[QUERY_VECTOR_PRIORITY] =
        query_constant(build, document_int32((int32_t)call.priority));
    for (int i = 0; i < 2; i++)
        arguments[QUERY_VECTOR_FIRST + i] =
            sql_compile_expr(compiler, level, expr->call.arguments.items[i]);
    return query_call(build, function, arguments, ARRAY_LEN(arguments));
}

static const struct query_expression *
compile_call(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    const struct sql_function *named = expr->call.function;
    const struct query_function *function = query_function_find(slice_of_text(named->name));

    if (named->kind == SQL_FUNCTION_KIND_AGGREGATE)
        return compile_aggregate(compiler, level, expr);
    if (!function)
        return sql_compile_refuse(compiler, expr->span, "The function %s is not supported.",
                                  named->name);
    if (function->takes_language)
        return compile_searching(compiler, level, expr, function);
    if (function->takes_vectors)
        return compile_vectors(compiler, level, expr, function);
    if (compiler->options->plane && function->in_plane)
        function = function->in_plane;
    return query_call(&compiler->build, function,
                      compile_list(compiler, level, &expr->call.arguments),
                      expr->call.arguments.count);
}

static const struct query_expression *
compile_udf(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    const struct sql_compile_options *options = compiler->options;

    if (!options->udf_known)
        return sql_compile_refuse(compiler, expr->span,
                                  "The user-defined function '%.*s' cannot be called here.",
                                  SLICE_ARG(sql_excerpt(expr->call.name)));
    if (!options->udf_known(options->udf_self, expr->call.name) && !compiler->build.failed) {
        sql_report_at(compiler->report, "", expr->span,
                      "There is no user-defined function 'udf.%.*s' in this container.",
                      SLICE_ARG(sql_excerpt(expr->call.name)));
        compiler->build.failed = true;
        compiler->build.error = *compiler->report->err;
    }
    return query_udf_call(&compiler->build, expr->call.name,
                          compile_list(compiler, level, &expr->call.arguments),
                          expr->call.arguments.count);
}

static const struct query_expression *compile_nested(struct sql_compiler *compiler,
                                                     const struct sql_level *level,
                                                     const struct sql_expr *expr)
{
    static const enum query_quantifier quantifiers[] = {
        [SQL_SUBQUERY_SCALAR] = QUERY_SCALAR, [SQL_SUBQUERY_EXISTS] = QUERY_EXISTS,
        [SQL_SUBQUERY_ARRAY] = QUERY_ARRAY,   [SQL_SUBQUERY_ALL] = QUERY_ALL,
        [SQL_SUBQUERY_FIRST] = QUERY_FIRST,   [SQL_SUBQUERY_LAST] = QUERY_LAST,
    };
    const struct query_subquery *subquery =
        sql_compile_subquery(compiler, level, expr->subquery.query);

    if (!subquery)
        return query_constant(&compiler->build, document_undefined());
    return query_subquery(&compiler->build, quantifiers[expr->subquery.kind], subquery);
}

/* --- Operators ---------------------------------------------------------------------------------
 */

static const struct query_expression *
compile_unary(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    static const enum query_operator operators[] = {
        [SQL_UNARY_PLUS] = QUERY_PLUS,
        [SQL_UNARY_MINUS] = QUERY_MINUS,
        [SQL_UNARY_BIT_NOT] = QUERY_BIT_NOT,
    };
    const struct query_expression *operand = sql_compile_expr(compiler, level, expr->unary.operand);

    if (expr->unary.op == SQL_UNARY_NOT)
        return query_not(&compiler->build, operand);
    return query_unary(&compiler->build, operators[expr->unary.op], operand);
}

static const struct query_expression *
compile_binary(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    static const enum query_operator operators[SQL_BINARY_COUNT] = {
        [SQL_BINARY_MULTIPLY] = QUERY_MULTIPLY,
        [SQL_BINARY_DIVIDE] = QUERY_DIVIDE,
        [SQL_BINARY_MODULO] = QUERY_MODULO,
        [SQL_BINARY_ADD] = QUERY_ADD,
        [SQL_BINARY_SUBTRACT] = QUERY_SUBTRACT,
        [SQL_BINARY_SHIFT_LEFT] = QUERY_SHIFT_LEFT,
        [SQL_BINARY_SHIFT_RIGHT] = QUERY_SHIFT_RIGHT,
        [SQL_BINARY_SHIFT_RIGHT_ZERO] = QUERY_SHIFT_RIGHT_UNSIGNED,
        [SQL_BINARY_BIT_AND] = QUERY_BIT_AND,
        [SQL_BINARY_BIT_XOR] = QUERY_BIT_XOR,
        [SQL_BINARY_BIT_OR] = QUERY_BIT_OR,
        [SQL_BINARY_CONCAT] = QUERY_CONCAT,
    };
    static const enum query_comparison comparisons[SQL_BINARY_COUNT] = {
        [SQL_BINARY_LESS] = QUERY_LESS,       [SQL_BINARY_LESS_EQUAL] = QUERY_LESS_EQUAL,
        [SQL_BINARY_GREATER] = QUERY_GREATER, [SQL_BINARY_GREATER_EQUAL] = QUERY_GREATER_EQUAL,
        [SQL_BINARY_EQUAL] = QUERY_EQUAL,     [SQL_BINARY_NOT_EQUAL] = QUERY_NOT_EQUAL,
    };
    const struct query_expression *left = sql_compile_expr(compiler, level, expr->binary.left);
    const struct query_expression *right = sql_compile_expr(compiler, level, expr->binary.right);
    enum sql_binary op = expr->binary.op;

    if (op == SQL_BINARY_COALESCE)
        return query_coalesce(&compiler->build, left, right);
    if (op >= SQL_BINARY_LESS && op <= SQL_BINARY_NOT_EQUAL)
        return query_compare(&compiler->build, comparisons[op], left, right);
    return query_binary(&compiler->build, operators[op], left, right);
}

static const struct query_expression *
compile_chain(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    const struct query_expression *chain = sql_compile_expr(compiler, level, expr->items.items[0]);

    for (uint32_t i = 1; i < expr->items.count; i++) {
        const struct query_expression *next =
            sql_compile_expr(compiler, level, expr->items.items[i]);

        chain = expr->kind == SQL_EXPR_AND ? query_and(&compiler->build, chain, next)
                                           : query_or(&compiler->build, chain, next);
    }
    return chain;
}

static const struct query_expression *
compile_object(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    struct arena *arena = compiler->build.arena;
    uint32_t count = expr->object.count;
    struct slice *names = ARENA_ARRAY(arena, struct slice, count + 1);
    const struct query_expression **values =
        ARENA_ARRAY(arena, const struct query_expression *, count + 1);

    for (uint32_t i = 0; i < count; i++) {
        names[i] = expr->object.properties[i].name;
        values[i] = sql_compile_expr(compiler, level, expr->object.properties[i].value);
    }
    return query_object(&compiler->build, names, values, count);
}

/* BETWEEN, IN and LIKE, before NOT. */
static const struct query_expression *
compile_test(struct sql_compiler *compiler, struct sql_level *level, const struct sql_expr *expr)
{
    struct query_build *build = &compiler->build;

    switch (expr->kind) {
    case SQL_EXPR_BETWEEN:
        return query_between(build, sql_compile_expr(compiler, level, expr->between.operand),
                             sql_compile_expr(compiler, level, expr->between.low),
                             sql_compile_expr(compiler, level, expr->between.high));
    case SQL_EXPR_IN:
        return query_in(build, sql_compile_expr(compiler, level, expr->in.operand),
                        compile_list(compiler, level, &expr->in.items), expr->in.items.count);
    default:
        return query_like(build, sql_compile_expr(compiler, level, expr->like.operand),
                          sql_compile_expr(compiler, level, expr->like.pattern),
                          expr->like.escape ? sql_compile_expr(compiler, level, expr->like.escape)
                                            : NULL);
    }
}

static bool is_negated(const struct sql_expr *expr)
{
    switch (expr->kind) {
    case SQL_EXPR_BETWEEN:
        return expr->between.negated;
    case SQL_EXPR_IN:
        return expr->in.negated;
    default:
        return expr->like.negated;
    }
}

static const struct query_expression *compile_parameter(struct sql_compiler *compiler,
                                                        const struct sql_expr *expr)
{
    const struct query_expression *node =
        query_constant_borrowed(&compiler->build, *expr->parameter.value);
    struct sql_bound **noted = compiler->options->bound;

    if (noted) {
        struct sql_bound *bound = ARENA_NEW(compiler->build.arena, struct sql_bound);

        *bound = (struct sql_bound){*noted, (struct sql_expr *)expr, (struct query_constant *)node};
        *noted = bound;
    }
    return node;
}

const struct query_expression *sql_compile_expr(struct sql_compiler *compiler,
                                                struct sql_level *level,
                                                const struct sql_expr *expr)
{
    struct query_build *build = &compiler->build;
    const struct query_expression *made = group_key(compiler, level, expr);

    if (made)
        return made;
    switch (expr->kind) {
    case SQL_EXPR_LITERAL:
        return query_constant(build, expr->literal);
    case SQL_EXPR_PARAMETER:
        if (!expr->parameter.value) /* sql_compile_filter alone meets one: it is like no path */
            return query_variable(build, compiler->slots++);
        return compile_parameter(compiler, expr);
    case SQL_EXPR_NAME:
        return compile_name(compiler, expr);
    case SQL_EXPR_MEMBER:
        return compile_member(compiler, level, expr);
    case SQL_EXPR_INDEX:
        made = sql_compile_expr(compiler, level, expr->index.object);
        return query_index(build, made, sql_compile_expr(compiler, level, expr->index.index));
    case SQL_EXPR_ARRAY:
        return query_array(build, compile_list(compiler, level, &expr->items), expr->items.count);
    case SQL_EXPR_OBJECT:
        return compile_object(compiler, level, expr);
    case SQL_EXPR_CALL:
        return compile_call(compiler, level, expr);
    case SQL_EXPR_UDF:
        return compile_udf(compiler, level, expr);
    case SQL_EXPR_SUBQUERY:
        return compile_nested(compiler, level, expr);
    case SQL_EXPR_UNARY:
        return compile_unary(compiler, level, expr);
    case SQL_EXPR_BINARY:
        return compile_binary(compiler, level, expr);
    case SQL_EXPR_AND:
    case SQL_EXPR_OR:
        return compile_chain(compiler, level, expr);
    case SQL_EXPR_CONDITIONAL:
        made = sql_compile_expr(compiler, level, expr->conditional.condition);
        return query_conditional(build, made,
                                 sql_compile_expr(compiler, level, expr->conditional.then),
                                 sql_compile_expr(compiler, level, expr->conditional.otherwise));
    case SQL_EXPR_BETWEEN:
    case SQL_EXPR_IN:
    case SQL_EXPR_LIKE:
        made = compile_test(compiler, level, expr);
        return is_negated(expr) ? query_not(build, made) : made;
    }
    return sql_compile_refuse(compiler, expr->span, "This kind of expression is not supported.");
}
