/* Precedence climbing: one table of binary operators and one loop, so that a level of parentheses
 * costs a few stack frames, not one for each of a dozen precedences.
 *
 * From tight to loose: member access and calls; unary; * / %; + -; shifts; comparisons; = !=; &; ^;
 * |;
 * ||; BETWEEN, IN, LIKE; AND; OR; ??; ?: */
#include "front/rest/sql/parser_private.h"

enum precedence {
    LOOSEST = 1,
    COALESCE = LOOSEST,
    OR,
    AND,
    PREDICATE, /* BETWEEN, IN, LIKE */
    CONCAT,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUALITY,
    COMPARISON,
    SHIFT,
    ADDITION,
    MULTIPLICATION,
};

/* By token; precedence 0: no binary operator. */
static const struct infix {
    enum precedence precedence;
    enum sql_binary op;
} infixes[] = {
    [SQL_TOKEN_STAR] = {MULTIPLICATION, SQL_BINARY_MULTIPLY},
    [SQL_TOKEN_SLASH] = {MULTIPLICATION, SQL_BINARY_DIVIDE},
    [SQL_TOKEN_PERCENT] = {MULTIPLICATION, SQL_BINARY_MODULO},
    [SQL_TOKEN_PLUS] = {ADDITION, SQL_BINARY_ADD},
    [SQL_TOKEN_MINUS] = {ADDITION, SQL_BINARY_SUBTRACT},
    [SQL_TOKEN_SHIFT_LEFT] = {SHIFT, SQL_BINARY_SHIFT_LEFT},
    [SQL_TOKEN_SHIFT_RIGHT] = {SHIFT, SQL_BINARY_SHIFT_RIGHT},
    [SQL_TOKEN_SHIFT_RIGHT_ZERO] = {SHIFT, SQL_BINARY_SHIFT_RIGHT_ZERO},
    [SQL_TOKEN_LESS] = {COMPARISON, SQL_BINARY_LESS},
    [SQL_TOKEN_LESS_EQUAL] = {COMPARISON, SQL_BINARY_LESS_EQUAL},
    [SQL_TOKEN_GREATER] = {COMPARISON, SQL_BINARY_GREATER},
    [SQL_TOKEN_GREATER_EQUAL] = {COMPARISON, SQL_BINARY_GREATER_EQUAL},
    [SQL_TOKEN_EQUAL] = {EQUALITY, SQL_BINARY_EQUAL},
    [SQL_TOKEN_NOT_EQUAL] = {EQUALITY, SQL_BINARY_NOT_EQUAL},
    [SQL_TOKEN_AMPERSAND] = {BIT_AND, SQL_BINARY_BIT_AND},
    [SQL_TOKEN_CARET] = {BIT_XOR, SQL_BINARY_BIT_XOR},
    [SQL_TOKEN_BAR] = {BIT_OR, SQL_BINARY_BIT_OR},
    [SQL_TOKEN_CONCAT] = {CONCAT, SQL_BINARY_CONCAT},
    [SQL_TOKEN_COALESCE] = {COALESCE, SQL_BINARY_COALESCE},
};

static bool parse_binary(struct sql_parser *parser, enum precedence loosest,
                         struct sql_expr **ret_expr);
static bool parse_unary(struct sql_parser *parser, struct sql_expr **ret_expr);
static bool parse_primary(struct sql_parser *parser, struct sql_expr **ret_expr);
static bool parse_literal(struct sql_parser *parser, struct document_value value,
                          struct sql_expr **ret_expr);

/* Ends a node whose height is known: it reaches to the last token read. */
static bool finish_settled(const struct sql_parser *parser, struct sql_expr *expr,
                           struct sql_expr **ret_expr)
{
    expr->span.end = parser->last.span.end;
    if (expr->height > parser->limits->height_max)
        return sql_report_at(parser->report, "", expr->span,
                             "The query nests expressions more than %u levels deep.",
                             parser->limits->height_max);
    *ret_expr = expr;
    return true;
}

static bool finish(const struct sql_parser *parser, struct sql_expr *expr,
                   struct sql_expr **ret_expr)
{
    sql_expr_settle(expr);
    return finish_settled(parser, expr, ret_expr);
}

static struct sql_expr *begin(const struct sql_parser *parser, enum sql_expr_kind kind)
{
    return sql_expr_new(parser->arena, kind, parser->token.span);
}

static struct sql_expr *begin_with(const struct sql_parser *parser, enum sql_expr_kind kind,
                                   const struct sql_expr *first)
{
    return sql_expr_new(parser->arena, kind, first->span);
}

/* --- Operators ---------------------------------------------------------------------------------
 */

bool sql_parser_expr(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *condition, *expr;

    if (!sql_parser_enter(parser) || !parse_binary(parser, LOOSEST, &condition))
        return false;
    if (sql_parser_at(parser, SQL_TOKEN_QUESTION)) {
        expr = begin_with(parser, SQL_EXPR_CONDITIONAL, condition);
        expr->conditional.condition = condition;
        if (!sql_parser_advance(parser) || !sql_parser_expr(parser, &expr->conditional.then) ||
            !sql_parser_expect(parser, SQL_TOKEN_COLON) ||
            !sql_parser_expr(parser, &expr->conditional.otherwise) ||
            !finish(parser, expr, &condition))
            return false;
    }
    sql_parser_leave(parser);
    *ret_expr = condition;
    return true;
}

/* One more item of a chain of AND or OR, which is one node. */
static bool parse_chain(struct sql_parser *parser, enum sql_expr_kind kind, struct sql_expr *left,
                        struct sql_expr **ret_expr)
{
    bool and = kind == SQL_EXPR_AND;
    struct sql_expr *chain = left, *right;

    if (!sql_parser_count(parser, and? &parser->ands : &parser->ors,
                          and? parser->limits->and_max : parser->limits->or_max,
                          and? "AND operators" : "OR operators"))
        return false;
    if (!sql_parser_advance(parser) || !parse_binary(parser, (and? AND : OR) + 1, &right))
        return false;
    if (left->kind != kind) {
        chain = begin_with(parser, kind, left);
        chain->height = left->height + 1;
        sql_exprs_add(parser->arena, &chain->items, left);
    }
    chain->height = MAX(chain->height, right->height + 1);
    sql_exprs_add(parser->arena, &chain->items, right);
    return finish_settled(parser, chain, ret_expr);
}

static bool parse_between(struct sql_parser *parser, bool negated, struct sql_expr *operand,
                          struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin_with(parser, SQL_EXPR_BETWEEN, operand);

    expr->between.operand = operand;
    expr->between.negated = negated;
    return sql_parser_advance(parser) && parse_binary(parser, CONCAT, &expr->between.low) &&
           sql_parser_expect_word(parser, SQL_WORD_AND) &&
           parse_binary(parser, CONCAT, &expr->between.high) && finish(parser, expr, ret_expr);
}

static bool parse_in(struct sql_parser *parser, bool negated, struct sql_expr *operand,
                     struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin_with(parser, SQL_EXPR_IN, operand);

    expr->in.operand = operand;
    expr->in.negated = negated;
    if (!sql_parser_advance(parser) || !sql_parser_expect(parser, SQL_TOKEN_OPEN))
        return false;
    if (sql_parser_at(parser, SQL_TOKEN_CLOSE))
        return sql_parser_fault(parser);
    return sql_parser_list(parser, SQL_TOKEN_CLOSE, parser->limits->in_items_max, "items of an IN",
                           &expr->in.items) &&
           finish(parser, expr, ret_expr);
}

static bool parse_like(struct sql_parser *parser, bool negated, struct sql_expr *operand,
                       struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin_with(parser, SQL_EXPR_LIKE, operand);

    expr->like.operand = operand;
    expr->like.negated = negated;
    if (!sql_parser_advance(parser) || !parse_binary(parser, CONCAT, &expr->like.pattern))
        return false;
    if (sql_parser_at_word(parser, SQL_WORD_ESCAPE)) {
        if (!sql_parser_advance(parser))
            return false;
        if (!sql_parser_at(parser, SQL_TOKEN_STRING))
            return sql_parser_fault(parser);
        if (!parse_literal(parser, parser->token.value, &expr->like.escape))
            return false;
    }
    return finish(parser, expr, ret_expr);
}

/* A word that makes a predicate of the operand before it. ret_more stays as it was without one. */
static bool parse_predicate(struct sql_parser *parser, struct sql_expr **operand, bool *ret_more)
{
    bool negated = sql_parser_at_word(parser, SQL_WORD_NOT);
    enum sql_keyword word;
    struct sql_token next;

    if (!sql_parser_at(parser, SQL_TOKEN_WORD))
        return true;
    word = parser->token.keyword;
    if (negated) {
        if (!sql_parser_peek(parser, 1, &next))
            return false;
        word = next.kind == SQL_TOKEN_WORD ? next.keyword : SQL_WORD_NONE;
    }
    if (word != SQL_WORD_BETWEEN && word != SQL_WORD_IN && word != SQL_WORD_LIKE)
        return true;
    if (negated && !sql_parser_advance(parser))
        return false;
    *ret_more = true;
    if (word == SQL_WORD_BETWEEN)
        return parse_between(parser, negated, *operand, operand);
    if (word == SQL_WORD_IN)
        return parse_in(parser, negated, *operand, operand);
    return parse_like(parser, negated, *operand, operand);
}

static bool parse_infix(struct sql_parser *parser, const struct infix *infix,
                        struct sql_expr **left)
{
    struct sql_expr *expr = begin_with(parser, SQL_EXPR_BINARY, *left);

    expr->binary.op = infix->op;
    expr->binary.left = *left;
    return sql_parser_advance(parser) &&
           parse_binary(parser, infix->precedence + 1, &expr->binary.right) &&
           finish(parser, expr, left);
}

/* Left-associative: operators as loose as `loosest` or tighter, in the order they come. */
static bool parse_binary(struct sql_parser *parser, enum precedence loosest,
                         struct sql_expr **ret_expr)
{
    struct sql_expr *left;
    bool more = true;

    if (!parse_unary(parser, &left))
        return false;
    while (more) {
        enum sql_token_kind kind = parser->token.kind;
        const struct infix *infix = kind < ARRAY_LEN(infixes) ? &infixes[kind] : NULL;

        more = false;
        if (infix && infix->precedence >= loosest) {
            more = true;
            if (!parse_infix(parser, infix, &left))
                return false;
        } else if (sql_parser_at_word(parser, SQL_WORD_AND) && AND >= loosest) {
            more = true;
            if (!parse_chain(parser, SQL_EXPR_AND, left, &left))
                return false;
        } else if (sql_parser_at_word(parser, SQL_WORD_OR) && OR >= loosest) {
            more = true;
            if (!parse_chain(parser, SQL_EXPR_OR, left, &left))
                return false;
        } else if (PREDICATE >= loosest && !parse_predicate(parser, &left, &more)) {
            return false;
        }
    }
    *ret_expr = left;
    return true;
}

static bool unary_at(const struct sql_parser *parser, enum sql_unary *ret_op)
{
    if (sql_parser_at(parser, SQL_TOKEN_PLUS))
        *ret_op = SQL_UNARY_PLUS;
    else if (sql_parser_at(parser, SQL_TOKEN_MINUS))
        *ret_op = SQL_UNARY_MINUS;
    else if (sql_parser_at(parser, SQL_TOKEN_TILDE))
        *ret_op = SQL_UNARY_BIT_NOT;
    else if (sql_parser_at(parser, SQL_TOKEN_NOT) || sql_parser_at_word(parser, SQL_WORD_NOT))
        *ret_op = SQL_UNARY_NOT;
    else
        return false;
    return true;
}

static bool parse_unary(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr;
    enum sql_unary op;

    if (!unary_at(parser, &op))
        return parse_primary(parser, ret_expr);
    expr = begin(parser, SQL_EXPR_UNARY);
    expr->unary.op = op;
    if (!sql_parser_enter(parser) || !sql_parser_advance(parser) ||
        !parse_unary(parser, &expr->unary.operand))
        return false;
    sql_parser_leave(parser);
    return finish(parser, expr, ret_expr);
}

/* --- Operands ----------------------------------------------------------------------------------
 */

bool sql_parser_list(struct sql_parser *parser, enum sql_token_kind close, uint32_t max,
                     const char *what, struct sql_exprs *ret_list)
{
    uint32_t count = 0;

    if (sql_parser_at(parser, close))
        return sql_parser_advance(parser);
    for (;;) {
        struct sql_expr *item;

        if (!sql_parser_count(parser, &count, max, what) || !sql_parser_expr(parser, &item))
            return false;
        sql_exprs_add(parser->arena, ret_list, item);
        if (!sql_parser_at(parser, SQL_TOKEN_COMMA))
            return sql_parser_expect(parser, close);
        if (!sql_parser_advance(parser))
            return false;
    }
}

static bool parse_literal(struct sql_parser *parser, struct document_value value,
                          struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_LITERAL);

    expr->literal = value;
    return sql_parser_advance(parser) && finish(parser, expr, ret_expr);
}

static bool parse_parameter(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_PARAMETER);

    expr->parameter.name = parser->token.text;
    sql_exprs_add(parser->arena, &parser->parameters, expr);
    return sql_parser_advance(parser) && finish(parser, expr, ret_expr);
}

bool sql_parser_amount(struct sql_parser *parser, struct sql_expr **ret_amount)
{
    if (sql_parser_at(parser, SQL_TOKEN_NUMBER))
        return parse_literal(parser, parser->token.value, ret_amount);
    if (sql_parser_at(parser, SQL_TOKEN_PARAMETER))
        return parse_parameter(parser, ret_amount);
    return sql_parser_fault(parser);
}

static bool parse_property(struct sql_parser *parser, struct sql_expr *object)
{
    struct sql_token name = parser->token;
    struct slice text = name.kind == SQL_TOKEN_STRING ? name.value.text : name.text;
    struct sql_expr *value;

    if (name.kind != SQL_TOKEN_STRING && name.kind != SQL_TOKEN_WORD)
        return sql_parser_fault(parser);
    if (text.len && memchr(text.data, 0, text.len))
        return sql_report_at(parser->report, "SC1001", name.span,
                             "Syntax error, a property name holds a NUL character.");
    if (!sql_parser_advance(parser) || !sql_parser_expect(parser, SQL_TOKEN_COLON) ||
        !sql_parser_expr(parser, &value))
        return false;
    sql_expr_object_add(parser->arena, object, text, value);
    object->object.properties[object->object.count - 1].span = name.span;
    return true;
}

static bool parse_object(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_OBJECT);

    if (!sql_parser_advance(parser))
        return false;
    while (!sql_parser_at(parser, SQL_TOKEN_CLOSE_BRACE)) {
        if (!parse_property(parser, expr))
            return false;
        if (!sql_parser_at(parser, SQL_TOKEN_COMMA))
            break;
        if (!sql_parser_advance(parser))
            return false;
        if (sql_parser_at(parser, SQL_TOKEN_CLOSE_BRACE))
            return sql_parser_fault(parser);
    }
    return sql_parser_expect(parser, SQL_TOKEN_CLOSE_BRACE) && finish(parser, expr, ret_expr);
}

static bool parse_array(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_ARRAY);

    return sql_parser_advance(parser) &&
           sql_parser_list(parser, SQL_TOKEN_CLOSE_BRACKET, UINT32_MAX, "", &expr->items) &&
           finish(parser, expr, ret_expr);
}

/* The query and the closing parenthesis; SELECT is looked at. */
static bool parse_subquery(struct sql_parser *parser, enum sql_subquery_kind kind,
                           struct sql_expr *expr, struct sql_expr **ret_expr)
{
    expr->subquery.kind = kind;
    return sql_parser_query(parser, &expr->subquery.query) &&
           sql_parser_expect(parser, SQL_TOKEN_CLOSE) && finish(parser, expr, ret_expr);
}

static bool parse_parenthesis(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_SUBQUERY);

    if (!sql_parser_advance(parser))
        return false;
    if (sql_parser_at_word(parser, SQL_WORD_SELECT))
        return parse_subquery(parser, SQL_SUBQUERY_SCALAR, expr, ret_expr);
    return sql_parser_expr(parser, ret_expr) && sql_parser_expect(parser, SQL_TOKEN_CLOSE);
}

/* WORD ( SELECT: the word and the parenthesis are stepped over. */
static bool parse_word_subquery(struct sql_parser *parser, enum sql_subquery_kind kind,
                                struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_SUBQUERY);

    if (!sql_parser_advance(parser) || !sql_parser_expect(parser, SQL_TOKEN_OPEN))
        return false;
    if (!sql_parser_at_word(parser, SQL_WORD_SELECT))
        return sql_parser_fault(parser);
    return parse_subquery(parser, kind, expr, ret_expr);
}

static bool parse_udf(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_UDF);

    if (!sql_parser_advance(parser) || !sql_parser_expect(parser, SQL_TOKEN_DOT))
        return false;
    if (!sql_parser_at(parser, SQL_TOKEN_WORD))
        return sql_parser_fault(parser);
    expr->call.name = parser->token.text;
    return sql_parser_count(parser, &parser->udf_calls, parser->limits->udf_calls_max,
                            "calls of user-defined functions") &&
           sql_parser_advance(parser) && sql_parser_expect(parser, SQL_TOKEN_OPEN) &&
           sql_parser_list(parser, SQL_TOKEN_CLOSE, UINT32_MAX, "", &expr->call.arguments) &&
           finish(parser, expr, ret_expr);
}

static bool parse_call(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_CALL);

    expr->call.name = parser->token.text;
    return sql_parser_advance(parser) && sql_parser_expect(parser, SQL_TOKEN_OPEN) &&
           sql_parser_list(parser, SQL_TOKEN_CLOSE, UINT32_MAX, "", &expr->call.arguments) &&
           finish(parser, expr, ret_expr);
}

/* ALL, FIRST and LAST are ordinary words everywhere but before a subquery. */
static bool subquery_word(const struct sql_parser *parser, enum sql_subquery_kind *ret_kind)
{
    if (slice_equal_nocase(parser->token.text, SLICE("ALL")))
        *ret_kind = SQL_SUBQUERY_ALL;
    else if (slice_equal_nocase(parser->token.text, SLICE("FIRST")))
        *ret_kind = SQL_SUBQUERY_FIRST;
    else if (slice_equal_nocase(parser->token.text, SLICE("LAST")))
        *ret_kind = SQL_SUBQUERY_LAST;
    else
        return false;
    return true;
}

static bool parse_name(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *expr = begin(parser, SQL_EXPR_NAME);
    enum sql_subquery_kind kind;
    struct sql_token next;

    if (!sql_parser_peek(parser, 1, &next))
        return false;
    if (next.kind == SQL_TOKEN_OPEN && subquery_word(parser, &kind)) {
        if (!sql_parser_peek(parser, 2, &next))
            return false;
        if (next.kind == SQL_TOKEN_WORD && next.keyword == SQL_WORD_SELECT)
            return parse_word_subquery(parser, kind, ret_expr);
        return parse_call(parser, ret_expr);
    }
    if (next.kind == SQL_TOKEN_OPEN)
        return parse_call(parser, ret_expr);
    expr->name.name = parser->token.text;
    return sql_parser_advance(parser) && finish(parser, expr, ret_expr);
}

static bool parse_word(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    switch (parser->token.keyword) {
    case SQL_WORD_NONE:
        return parse_name(parser, ret_expr);
    case SQL_WORD_UNDEFINED:
        return parse_literal(parser, document_undefined(), ret_expr);
    case SQL_WORD_NULL:
        return parse_literal(parser, document_null(), ret_expr);
    case SQL_WORD_TRUE:
        return parse_literal(parser, document_bool(true), ret_expr);
    case SQL_WORD_FALSE:
        return parse_literal(parser, document_bool(false), ret_expr);
    case SQL_WORD_EXISTS:
        return parse_word_subquery(parser, SQL_SUBQUERY_EXISTS, ret_expr);
    case SQL_WORD_ARRAY:
        return parse_word_subquery(parser, SQL_SUBQUERY_ARRAY, ret_expr);
    case SQL_WORD_UDF:
        return parse_udf(parser, ret_expr);
    default:
        return sql_parser_fault(parser);
    }
}

static bool parse_atom(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    switch (parser->token.kind) {
    case SQL_TOKEN_NUMBER:
    case SQL_TOKEN_STRING:
        return parse_literal(parser, parser->token.value, ret_expr);
    case SQL_TOKEN_PARAMETER:
        return parse_parameter(parser, ret_expr);
    case SQL_TOKEN_OPEN_BRACKET:
        return parse_array(parser, ret_expr);
    case SQL_TOKEN_OPEN_BRACE:
        return parse_object(parser, ret_expr);
    case SQL_TOKEN_OPEN:
        return parse_parenthesis(parser, ret_expr);
    case SQL_TOKEN_WORD:
        return parse_word(parser, ret_expr);
    default:
        return sql_parser_fault(parser);
    }
}

/* --- Steps -------------------------------------------------------------------------------------
 */

/* .name: any word will do behind a dot. */
static bool parse_dot(struct sql_parser *parser, struct sql_expr **object)
{
    struct sql_expr *expr = begin_with(parser, SQL_EXPR_MEMBER, *object);

    if (!sql_parser_advance(parser))
        return false;
    if (!sql_parser_at(parser, SQL_TOKEN_WORD))
        return sql_parser_fault(parser);
    expr->member.object = *object;
    expr->member.name = parser->token.text;
    return sql_parser_advance(parser) && finish(parser, expr, object);
}

static bool parse_bracket(struct sql_parser *parser, struct sql_expr **object)
{
    struct sql_expr *expr = begin_with(parser, SQL_EXPR_INDEX, *object), *index;

    if (!sql_parser_advance(parser) || !sql_parser_expr(parser, &index) ||
        !sql_parser_expect(parser, SQL_TOKEN_CLOSE_BRACKET))
        return false;
    if (index->kind == SQL_EXPR_LITERAL && index->literal.type == DOCUMENT_STRING) {
        expr->kind = SQL_EXPR_MEMBER;
        expr->member.object = *object;
        expr->member.name = index->literal.text;
    } else {
        expr->index.object = *object;
        expr->index.index = index;
    }
    return finish(parser, expr, object);
}

static bool parse_steps(struct sql_parser *parser, struct sql_expr **expr)
{
    for (;;) {
        if (sql_parser_at(parser, SQL_TOKEN_DOT)) {
            if (!parse_dot(parser, expr))
                return false;
        } else if (sql_parser_at(parser, SQL_TOKEN_OPEN_BRACKET)) {
            if (!parse_bracket(parser, expr))
                return false;
        } else {
            return true;
        }
    }
}

static bool parse_primary(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    return parse_atom(parser, ret_expr) && parse_steps(parser, ret_expr);
}

/* May this step lead from one container path to another? */
static bool is_path_step(const struct sql_expr *expr)
{
    const struct sql_expr *index = expr->index.index;
    int64_t number;

    if (expr->kind == SQL_EXPR_MEMBER)
        return true;
    return expr->kind == SQL_EXPR_INDEX && index->kind == SQL_EXPR_LITERAL &&
           document_to_int64(&index->literal, &number);
}

bool sql_parser_path(struct sql_parser *parser, struct sql_expr **ret_expr)
{
    struct sql_expr *path, *step;

    if (sql_parser_at(parser, SQL_TOKEN_PARAMETER)) {
        if (!parse_parameter(parser, &path))
            return false;
    } else if (sql_parser_at_name(parser)) {
        path = begin(parser, SQL_EXPR_NAME);
        path->name.name = parser->token.text;
        if (!sql_parser_advance(parser) || !finish(parser, path, &path))
            return false;
    } else {
        return sql_parser_fault(parser);
    }
    if (!parse_steps(parser, &path))
        return false;
    for (step = path; step->kind == SQL_EXPR_MEMBER || step->kind == SQL_EXPR_INDEX;) {
        if (!is_path_step(step))
            return sql_report_at(parser->report, "SC1001", step->span,
                                 "Syntax error, a path in FROM has property names and whole "
                                 "numbers alone in brackets.");
        step = step->kind == SQL_EXPR_MEMBER ? step->member.object : step->index.object;
    }
    *ret_expr = path;
    return true;
}
