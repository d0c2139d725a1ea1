#include "front/rest/sql/print.h"

#include "document/json.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/lexer.h"
#include "front/rest/sql/vectors.h"

static const char *const unary_texts[] = {
    [SQL_UNARY_PLUS] = "+",
    [SQL_UNARY_MINUS] = "-",
    [SQL_UNARY_BIT_NOT] = "~",
    [SQL_UNARY_NOT] = "NOT ",
};

static const char *const binary_texts[SQL_BINARY_COUNT] = {
    [SQL_BINARY_MULTIPLY] = "*",     [SQL_BINARY_DIVIDE] = "/",
    [SQL_BINARY_MODULO] = "%",       [SQL_BINARY_ADD] = "+",
    [SQL_BINARY_SUBTRACT] = "-",     [SQL_BINARY_SHIFT_LEFT] = "<<",
    [SQL_BINARY_SHIFT_RIGHT] = ">>", [SQL_BINARY_SHIFT_RIGHT_ZERO] = ">>>",
    [SQL_BINARY_LESS] = "<",         [SQL_BINARY_LESS_EQUAL] = "<=",
    [SQL_BINARY_GREATER] = ">",      [SQL_BINARY_GREATER_EQUAL] = ">=",
    [SQL_BINARY_EQUAL] = "=",        [SQL_BINARY_NOT_EQUAL] = "!=",
    [SQL_BINARY_BIT_AND] = "&",      [SQL_BINARY_BIT_XOR] = "^",
    [SQL_BINARY_BIT_OR] = "|",       [SQL_BINARY_CONCAT] = "||",
    [SQL_BINARY_COALESCE] = "??",
};

static const char *const subquery_texts[] = {
    [SQL_SUBQUERY_SCALAR] = "", [SQL_SUBQUERY_EXISTS] = "EXISTS", [SQL_SUBQUERY_ARRAY] = "ARRAY",
    [SQL_SUBQUERY_ALL] = "ALL", [SQL_SUBQUERY_FIRST] = "FIRST",   [SQL_SUBQUERY_LAST] = "LAST",
};

/* --- Leaves ------------------------------------------------------------------------------------
 */

/* A double keeps a mark of being one, so that it reads as one again. */
static void print_double(double number, struct buf *buf)
{
    size_t begin = buf->len;
    struct document_value value = document_double(number);

    document_json_write_value(&value, buf);
    for (size_t i = begin; i < buf->len; i++)
        if (buf->data[i] == '.' || buf->data[i] == 'e' || buf->data[i] == 'E')
            return;
    BUF_APPEND(buf, ".0");
}

static void print_literal(const struct document_value *value, struct buf *buf)
{
    switch (value->type) {
    case DOCUMENT_UNDEFINED:
        BUF_APPEND(buf, "undefined");
        break;
    case DOCUMENT_DOUBLE:
        print_double(value->number, buf);
        break;
    default:
        document_json_write_value(value, buf);
    }
}

static void print_list(const struct sql_exprs *list, const char *between, struct buf *buf)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (i > 0)
            buf_append_text(buf, between);
        sql_print_expr(list->items[i], buf);
    }
}

static void print_object(const struct sql_expr *expr, struct buf *buf)
{
    buf_append_byte(buf, '{');
    for (uint32_t i = 0; i < expr->object.count; i++) {
        if (i > 0)
            BUF_APPEND(buf, ", ");
        document_json_write_string(expr->object.properties[i].name, buf);
        BUF_APPEND(buf, ": ");
        sql_print_expr(expr->object.properties[i].value, buf);
    }
    buf_append_byte(buf, '}');
}

static void print_call(const struct sql_expr *expr, struct buf *buf)
{
    if (expr->kind == SQL_EXPR_UDF)
        BUF_APPEND(buf, "udf.");
    if (expr->call.function)
        buf_append_text(buf, expr->call.function->name);
    else
        buf_append_slice(buf, expr->call.name);
    buf_append_byte(buf, '(');
    print_list(&expr->call.arguments, ", ", buf);
    buf_append_byte(buf, ')');
}

static void print_member(const struct sql_expr *expr, struct buf *buf)
{
    sql_print_expr(expr->member.object, buf);
    if (sql_is_plain_word(expr->member.name)) {
        buf_append_byte(buf, '.');
        buf_append_slice(buf, expr->member.name);
        return;
    }
    buf_append_byte(buf, '[');
    document_json_write_string(expr->member.name, buf);
    buf_append_byte(buf, ']');
}

/* A string literal in brackets alone would read as a member: only a tree made by hand has one. */
static void print_index(const struct sql_expr *expr, struct buf *buf)
{
    sql_print_expr(expr->index.object, buf);
    buf_append_byte(buf, '[');
    sql_print_expr(expr->index.index, buf);
    buf_append_byte(buf, ']');
}

/* --- Operators ---------------------------------------------------------------------------------
 */

static void print_between(const struct sql_expr *expr, struct buf *buf)
{
    sql_print_expr(expr->between.operand, buf);
    buf_append_text(buf, expr->between.negated ? " NOT BETWEEN " : " BETWEEN ");
    sql_print_expr(expr->between.low, buf);
    BUF_APPEND(buf, " AND ");
    sql_print_expr(expr->between.high, buf);
}

static void print_in(const struct sql_expr *expr, struct buf *buf)
{
    sql_print_expr(expr->in.operand, buf);
    buf_append_text(buf, expr->in.negated ? " NOT IN (" : " IN (");
    print_list(&expr->in.items, ", ", buf);
    buf_append_byte(buf, ')');
}

static void print_like(const struct sql_expr *expr, struct buf *buf)
{
    sql_print_expr(expr->like.operand, buf);
    buf_append_text(buf, expr->like.negated ? " NOT LIKE " : " LIKE ");
    sql_print_expr(expr->like.pattern, buf);
    if (expr->like.escape) {
        BUF_APPEND(buf, " ESCAPE ");
        sql_print_expr(expr->like.escape, buf);
    }
}

/* What stands in parentheses, without them. */
static void print_operator(const struct sql_expr *expr, struct buf *buf)
{
    switch (expr->kind) {
    case SQL_EXPR_UNARY:
        buf_append_text(buf, unary_texts[expr->unary.op]);
        sql_print_expr(expr->unary.operand, buf);
        break;
    case SQL_EXPR_BINARY:
        sql_print_expr(expr->binary.left, buf);
        buf_printf(buf, " %s ", binary_texts[expr->binary.op]);
        sql_print_expr(expr->binary.right, buf);
        break;
    case SQL_EXPR_AND:
        print_list(&expr->items, " AND ", buf);
        break;
    case SQL_EXPR_OR:
        print_list(&expr->items, " OR ", buf);
        break;
    case SQL_EXPR_CONDITIONAL:
        sql_print_expr(expr->conditional.condition, buf);
        BUF_APPEND(buf, " ? ");
        sql_print_expr(expr->conditional.then, buf);
        BUF_APPEND(buf, " : ");
        sql_print_expr(expr->conditional.otherwise, buf);
        break;
    case SQL_EXPR_BETWEEN:
        print_between(expr, buf);
        break;
    case SQL_EXPR_IN:
        print_in(expr, buf);
        break;
    case SQL_EXPR_LIKE:
        print_like(expr, buf);
        break;
    default:
        assert(!"no operator");
    }
}

void sql_print_expr(const struct sql_expr *expr, struct buf *buf)
{
    switch (expr->kind) {
    case SQL_EXPR_LITERAL:
        print_literal(&expr->literal, buf);
        break;
    case SQL_EXPR_PARAMETER:
        buf_append_slice(buf, expr->parameter.name);
        break;
    case SQL_EXPR_NAME:
        buf_append_slice(buf, expr->name.name);
        break;
    case SQL_EXPR_MEMBER:
        print_member(expr, buf);
        break;
    case SQL_EXPR_INDEX:
        print_index(expr, buf);
        break;
    case SQL_EXPR_ARRAY:
        buf_append_byte(buf, '[');
        print_list(&expr->items, ", ", buf);
        buf_append_byte(buf, ']');
        break;
    case SQL_EXPR_OBJECT:
        print_object(expr, buf);
        break;
    case SQL_EXPR_CALL:
    case SQL_EXPR_UDF:
        print_call(expr, buf);
        break;
    case SQL_EXPR_SUBQUERY:
        buf_append_text(buf, subquery_texts[expr->subquery.kind]);
        buf_append_byte(buf, '(');
        sql_print(expr->subquery.query, buf);
        buf_append_byte(buf, ')');
        break;
    default:
        buf_append_byte(buf, '(');
        print_operator(expr, buf);
        buf_append_byte(buf, ')');
    }
}

/* --- Clauses -----------------------------------------------------------------------------------
 */

static void print_items(const struct sql_query *query, struct buf *buf)
{
    for (uint32_t i = 0; i < query->item_count; i++) {
        const struct sql_select_item *item = &query->items[i];

        if (i > 0)
            BUF_APPEND(buf, ", ");
        sql_print_expr(item->expr, buf);
        if (item->alias.len) {
            BUF_APPEND(buf, " AS ");
            buf_append_slice(buf, item->alias);
        }
    }
}

static void print_select(const struct sql_query *query, struct buf *buf)
{
    BUF_APPEND(buf, "SELECT ");
    if (query->distinct)
        BUF_APPEND(buf, "DISTINCT ");
    if (query->top) {
        BUF_APPEND(buf, "TOP ");
        sql_print_expr(query->top, buf);
        buf_append_byte(buf, ' ');
    }
    if (query->select == SQL_SELECT_STAR)
        buf_append_byte(buf, '*');
    if (query->select == SQL_SELECT_VALUE)
        BUF_APPEND(buf, "VALUE ");
    print_items(query, buf);
}

static void print_source(const struct sql_source *source, struct buf *buf)
{
    if (source->iterates) {
        buf_append_slice(buf, source->alias);
        BUF_APPEND(buf, " IN ");
    }
    if (source->path) {
        sql_print_expr(source->path, buf);
    } else if (source->reference.data) {
        BUF_APPEND(buf, "REFERENCE(");
        if (source->reference_database.data) {
            document_json_write_string(source->reference_database, buf);
            BUF_APPEND(buf, ", ");
        }
        document_json_write_string(source->reference, buf);
        buf_append_byte(buf, ')');
    } else {
        buf_append_byte(buf, '(');
        sql_print(source->subquery, buf);
        buf_append_byte(buf, ')');
    }
    if (source->alias_given && !source->iterates) {
        BUF_APPEND(buf, " AS ");
        buf_append_slice(buf, source->alias);
    }
}

static void print_order(const struct sql_query *query, struct buf *buf)
{
    buf_append_text(buf, query->order_by_rank ? " ORDER BY RANK " : " ORDER BY ");
    for (uint32_t i = 0; i < query->order_count; i++) {
        if (i > 0)
            BUF_APPEND(buf, ", ");
        sql_print_expr(query->order_by[i].expr, buf);
        if (query->order_by[i].descending && !sql_orders_by_vector(query))
            BUF_APPEND(buf, " DESC");
    }
}

void sql_print(const struct sql_query *query, struct buf *buf)
{
    if (query->select != SQL_SELECT_CONDITION)
        print_select(query, buf);
    for (uint32_t i = 0; i < query->source_count; i++) {
        if (i > 0)
            BUF_APPEND(buf, " JOIN ");
        else
            buf_append_text(buf, query->select == SQL_SELECT_CONDITION ? "FROM " : " FROM ");
        print_source(query->sources[i], buf);
    }
    if (query->where) {
        BUF_APPEND(buf, " WHERE ");
        sql_print_expr(query->where, buf);
    }
    if (query->group_by.count) {
        BUF_APPEND(buf, " GROUP BY ");
        print_list(&query->group_by, ", ", buf);
    }
    if (query->order_count)
        print_order(query, buf);
    if (query->offset) {
        BUF_APPEND(buf, " OFFSET ");
        sql_print_expr(query->offset, buf);
        BUF_APPEND(buf, " LIMIT ");
        sql_print_expr(query->limit, buf);
    }
}
