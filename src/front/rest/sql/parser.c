/* Recursive descent over the clauses; expressions are in sql_parser_expr.c. Tokens are read one at
 * a time: a query has many, and lookahead is needed in three places only. */
#include "front/rest/sql/parser_private.h"

/* The service names 500 for AND and OR. It cannot mean the queries of its own clients: to read a
 * thousand items by id and a key of three levels, the .NET library sends 3000 ANDs and 999 ORs. */
const struct sql_limits SQL_LIMITS_DEFAULT = {
    .text_bytes_max = 512 * 1024,
    .joins_max = 10,
    .and_max = 4000,
    .or_max = 2000,
    .in_items_max = 16000,
    .udf_calls_max = 10,
    .height_max = 400,   /* what query/ evaluates */
    .nesting_max = 1100, /* generated queries put parentheses around each of many operators */
};

/* --- Tokens ------------------------------------------------------------------------------------
 */

bool sql_parser_advance(struct sql_parser *parser)
{
    parser->last = parser->token;
    return sql_lexer_next(&parser->lexer, &parser->token);
}

bool sql_parser_peek(const struct sql_parser *parser, unsigned ahead, struct sql_token *ret_token)
{
    struct sql_lexer lexer = parser->lexer;

    while (ahead--)
        if (!sql_lexer_next(&lexer, ret_token))
            return false;
    return true;
}

bool sql_parser_expect(struct sql_parser *parser, enum sql_token_kind kind)
{
    return sql_parser_at(parser, kind) ? sql_parser_advance(parser) : sql_parser_fault(parser);
}

bool sql_parser_expect_word(struct sql_parser *parser, enum sql_keyword word)
{
    return sql_parser_at_word(parser, word) ? sql_parser_advance(parser) : sql_parser_fault(parser);
}

bool sql_parser_fault(const struct sql_parser *parser)
{
    const struct sql_token *token =
        sql_parser_at(parser, SQL_TOKEN_END) ? &parser->last : &parser->token;

    return sql_report_at(parser->report, "SC1001", token->span,
                         "Syntax error, incorrect syntax near '%.*s'.",
                         SLICE_ARG(sql_excerpt(token->text)));
}

bool sql_parser_enter(struct sql_parser *parser)
{
    if (++parser->nesting <= parser->limits->nesting_max)
        return true;
    return sql_report_at(parser->report, "", parser->token.span,
                         "The query nests expressions more than %u levels deep.",
                         parser->limits->nesting_max);
}

bool sql_parser_count(const struct sql_parser *parser, uint32_t *count, uint32_t max,
                      const char *what)
{
    if (++*count <= max)
        return true;
    return sql_report_at(parser->report, "", parser->token.span,
                         "The query has more than the maximum of %u %s.", max, what);
}

/* --- SELECT ------------------------------------------------------------------------------------
 */

/* [[AS] alias]; empty when there is none. */
static bool parse_alias(struct sql_parser *parser, struct slice *ret_alias)
{
    *ret_alias = SLICE_NONE;
    if (sql_parser_at_word(parser, SQL_WORD_AS)) {
        if (!sql_parser_advance(parser))
            return false;
        if (!sql_parser_at_name(parser))
            return sql_parser_fault(parser);
    }
    if (!sql_parser_at_name(parser))
        return true;
    *ret_alias = parser->token.text;
    return sql_parser_advance(parser);
}

static bool parse_item(struct sql_parser *parser, struct sql_select_item *item)
{
    item->span = parser->token.span;
    if (!sql_parser_expr(parser, &item->expr) || !parse_alias(parser, &item->alias))
        return false;
    item->span.end = parser->last.span.end;
    return true;
}

static void items_grow(struct arena *arena, struct sql_query *query, uint32_t *capacity)
{
    struct sql_select_item *items;

    if (query->item_count < *capacity)
        return;
    *capacity = *capacity ? *capacity * 2 : 4;
    items = ARENA_ARRAY(arena, struct sql_select_item, *capacity);
    if (query->item_count)
        memcpy(items, query->items, query->item_count * sizeof *items);
    query->items = items;
}

static bool parse_items(struct sql_parser *parser, struct sql_query *query)
{
    uint32_t capacity = 0;

    for (;;) {
        items_grow(parser->arena, query, &capacity);
        query->items[query->item_count] = (struct sql_select_item){0};
        if (!parse_item(parser, &query->items[query->item_count++]))
            return false;
        if (query->select == SQL_SELECT_VALUE || !sql_parser_at(parser, SQL_TOKEN_COMMA))
            return true;
        if (!sql_parser_advance(parser))
            return false;
    }
}

static bool parse_select(struct sql_parser *parser, struct sql_query *query)
{
    if (!sql_parser_expect_word(parser, SQL_WORD_SELECT))
        return false;
    if (sql_parser_at_word(parser, SQL_WORD_DISTINCT)) {
        query->distinct = true;
        if (!sql_parser_advance(parser))
            return false;
    }
    if (sql_parser_at_word(parser, SQL_WORD_TOP))
        if (!sql_parser_advance(parser) || !sql_parser_amount(parser, &query->top))
            return false;
    if (sql_parser_at(parser, SQL_TOKEN_STAR)) {
        query->select = SQL_SELECT_STAR;
        query->star = parser->token.span;
        return sql_parser_advance(parser);
    }
    query->select = SQL_SELECT_LIST;
    if (sql_parser_at_word(parser, SQL_WORD_VALUE)) {
        query->select = SQL_SELECT_VALUE;
        if (!sql_parser_advance(parser))
            return false;
    }
    return parse_items(parser, query);
}

/* --- FROM --------------------------------------------------------------------------------------
 */

/* The name a path lends to what stands there: its last property, or the container's. */
static struct slice path_alias(const struct sql_expr *path)
{
    if (path->kind == SQL_EXPR_MEMBER && sql_is_plain_word(path->member.name))
        return path->member.name;
    return path->kind == SQL_EXPR_NAME ? path->name.name : SLICE_NONE;
}

static bool parse_source_query(struct sql_parser *parser, struct sql_source *source)
{
    return sql_parser_enter(parser) && sql_parser_advance(parser) &&
           sql_parser_query(parser, &source->subquery) &&
           sql_parser_expect(parser, SQL_TOKEN_CLOSE) && (sql_parser_leave(parser), true);
}

/* REFERENCE("container") or REFERENCE("database", "container"). */
static bool parse_reference(struct sql_parser *parser, struct sql_source *source)
{
    struct sql_span span = parser->token.span;
    struct sql_exprs names = {0};

    if (!sql_parser_advance(parser) || !sql_parser_advance(parser) ||
        !sql_parser_list(parser, SQL_TOKEN_CLOSE, 2, "names in REFERENCE", &names))
        return false;
    span.end = parser->last.span.end;
    for (uint32_t i = 0; i < names.count; i++)
        if (names.items[i]->kind != SQL_EXPR_LITERAL ||
            names.items[i]->literal.type != DOCUMENT_STRING || !names.items[i]->literal.text.len)
            return sql_report_at(parser->report, "SC1001", names.items[i]->span,
                                 "Syntax error, REFERENCE takes the name of a container, or those "
                                 "of a database and a container, as texts.");
    if (!names.count)
        return sql_report_at(parser->report, "SC1001", span,
                             "Syntax error, REFERENCE takes the name of a container.");
    if (names.count == 2)
        source->reference_database = names.items[0]->literal.text;
    source->reference = names.items[names.count - 1]->literal.text;
    return true;
}

/* Behind `alias IN`. */
static bool parse_iterated(struct sql_parser *parser, struct sql_source *source)
{
    source->iterates = true;
    source->alias_given = true;
    if (sql_parser_at(parser, SQL_TOKEN_OPEN))
        return parse_source_query(parser, source);
    if (sql_parser_at_name(parser) && slice_equal_nocase(parser->token.text, SLICE("REFERENCE"))) {
        struct sql_token next;

        if (!sql_parser_peek(parser, 1, &next))
            return false;
        if (next.kind == SQL_TOKEN_OPEN)
            return parse_reference(parser, source);
    }
    return sql_parser_path(parser, &source->path);
}

static bool parse_source(struct sql_parser *parser, struct sql_source *source)
{
    struct sql_token next;

    if (sql_parser_at(parser, SQL_TOKEN_OPEN)) {
        if (!parse_source_query(parser, source))
            return false;
    } else {
        if (!sql_parser_peek(parser, 1, &next))
            return false;
        if (sql_parser_at_name(parser) && next.kind == SQL_TOKEN_WORD &&
            next.keyword == SQL_WORD_IN) {
            source->alias = parser->token.text;
            return sql_parser_advance(parser) && sql_parser_advance(parser) &&
                   parse_iterated(parser, source);
        }
        if (!sql_parser_path(parser, &source->path))
            return false;
    }
    if (!parse_alias(parser, &source->alias))
        return false;
    source->alias_given = source->alias.len > 0;
    if (!source->alias_given && source->path)
        source->alias = path_alias(source->path);
    return true;
}

static bool parse_from(struct sql_parser *parser, struct sql_query *query)
{
    uint32_t room = parser->limits->joins_max + 1;

    query->sources = ARENA_ARRAY(parser->arena, struct sql_source *, room);
    do {
        struct sql_source *source = ARENA_NEW(parser->arena, struct sql_source);

        if (query->source_count > 0 &&
            !sql_parser_count(parser, &parser->joins, parser->limits->joins_max, "JOINs"))
            return false;
        if (!sql_parser_advance(parser)) /* FROM or JOIN */
            return false;
        source->span = parser->token.span;
        if (!parse_source(parser, source))
            return false;
        source->span.end = parser->last.span.end;
        assert(query->source_count < room);
        query->sources[query->source_count++] = source;
    } while (sql_parser_at_word(parser, SQL_WORD_JOIN));
    return true;
}

/* --- The other clauses --------------------------------------------------------------------------
 */

static bool parse_group_by(struct sql_parser *parser, struct sql_query *query)
{
    if (!sql_parser_advance(parser) || !sql_parser_expect_word(parser, SQL_WORD_BY))
        return false;
    for (uint32_t count = 0;;) {
        struct sql_expr *expr;

        if (!sql_parser_count(parser, &count, SQL_GROUP_ITEMS_MAX, "GROUP BY items") ||
            !sql_parser_expr(parser, &expr))
            return false;
        sql_exprs_add(parser->arena, &query->group_by, expr);
        if (!sql_parser_at(parser, SQL_TOKEN_COMMA))
            return true;
        if (!sql_parser_advance(parser))
            return false;
    }
}

static bool parse_order_item(struct sql_parser *parser, struct sql_order_item *item)
{
    if (!sql_parser_expr(parser, &item->expr))
        return false;
    item->descending = sql_parser_at_word(parser, SQL_WORD_DESC);
    item->direction_given = item->descending || sql_parser_at_word(parser, SQL_WORD_ASC);
    return !item->direction_given || sql_parser_advance(parser);
}

/* RANK is an ordinary name unless a function follows it. */
static bool parse_rank(struct sql_parser *parser, struct sql_query *query)
{
    struct sql_token next;

    if (!sql_parser_at_name(parser) || !slice_equal_nocase(parser->token.text, SLICE("RANK")))
        return true;
    if (!sql_parser_peek(parser, 1, &next))
        return false;
    if (next.kind != SQL_TOKEN_WORD || next.keyword != SQL_WORD_NONE)
        return true;
    query->order_by_rank = true;
    return sql_parser_advance(parser);
}

/* Behind RANK stands the call of one function. */
static bool check_rank(const struct sql_parser *parser, const struct sql_expr *expr)
{
    return expr->kind == SQL_EXPR_CALL ||
           sql_report_at(parser->report, "SC1001", expr->span,
                         "Syntax error, incorrect syntax near 'RANK'.");
}

static bool parse_order_by(struct sql_parser *parser, struct sql_query *query)
{
    struct sql_order_item items[SQL_ORDER_ITEMS_MAX] = {0};
    uint32_t count = 0;

    if (!sql_parser_advance(parser) || !sql_parser_expect_word(parser, SQL_WORD_BY) ||
        !parse_rank(parser, query))
        return false;
    for (;;) {
        uint32_t at = count;

        if (!sql_parser_count(parser, &count, SQL_ORDER_ITEMS_MAX, "ORDER BY items") ||
            !parse_order_item(parser, &items[at]))
            return false;
        if (query->order_by_rank && !check_rank(parser, items[at].expr))
            return false;
        if (query->order_by_rank || !sql_parser_at(parser, SQL_TOKEN_COMMA))
            break;
        if (!sql_parser_advance(parser))
            return false;
    }
    query->order_by = ARENA_ARRAY(parser->arena, struct sql_order_item, count);
    memcpy(query->order_by, items, count * sizeof *items);
    query->order_count = count;
    return true;
}

static bool parse_where(struct sql_parser *parser, struct sql_query *query)
{
    return sql_parser_advance(parser) && sql_parser_expr(parser, &query->where);
}

static bool parse_clauses(struct sql_parser *parser, struct sql_query *query)
{
    if (sql_parser_at_word(parser, SQL_WORD_FROM) && !parse_from(parser, query))
        return false;
    if (sql_parser_at_word(parser, SQL_WORD_WHERE) && !parse_where(parser, query))
        return false;
    if (sql_parser_at_word(parser, SQL_WORD_GROUP) && !parse_group_by(parser, query))
        return false;
    if (sql_parser_at_word(parser, SQL_WORD_ORDER) && !parse_order_by(parser, query))
        return false;
    if (!sql_parser_at_word(parser, SQL_WORD_OFFSET))
        return true;
    return sql_parser_advance(parser) && sql_parser_amount(parser, &query->offset) &&
           sql_parser_expect_word(parser, SQL_WORD_LIMIT) &&
           sql_parser_amount(parser, &query->limit);
}

static bool query_finish(const struct sql_parser *parser, struct sql_query *query)
{
    sql_query_settle(query);
    query->span.end = parser->last.span.end;
    if (query->height <= parser->limits->height_max)
        return true;
    return sql_report_at(parser->report, "", query->span,
                         "The query nests expressions more than %u levels deep.",
                         parser->limits->height_max);
}

bool sql_parser_query(struct sql_parser *parser, struct sql_query **ret_query)
{
    struct sql_query *query = ARENA_NEW(parser->arena, struct sql_query);

    query->span = parser->token.span;
    if (!parse_select(parser, query) || !parse_clauses(parser, query) ||
        !query_finish(parser, query))
        return false;
    *ret_query = query;
    return true;
}

/* --- Whole texts -------------------------------------------------------------------------------
 */

static bool parser_init(struct sql_parser *parser, struct slice text,
                        const struct sql_limits *limits, const struct sql_report *report)
{
    *parser = (struct sql_parser){
        .limits = limits ? limits : &SQL_LIMITS_DEFAULT, .arena = report->arena, .report = report};
    if (text.len > parser->limits->text_bytes_max)
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "The query text of %zu bytes exceeds the maximum of %zu.", text.len,
                                parser->limits->text_bytes_max);
    return sql_lexer_init(&parser->lexer, text, report) && sql_parser_advance(parser);
}

/* Nothing but blanks may follow. */
static bool parser_end(const struct sql_parser *parser, struct sql_query *query,
                       struct sql_query **ret_query)
{
    if (!sql_parser_at(parser, SQL_TOKEN_END))
        return sql_parser_fault(parser);
    query->parameters = parser->parameters;
    *ret_query = query;
    return true;
}

bool sql_parse(struct slice text, const struct sql_limits *limits, struct arena *arena,
               struct sql_query **ret_query, struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct sql_query *query;
    struct sql_parser parser;

    return parser_init(&parser, text, limits, &report) && sql_parser_query(&parser, &query) &&
           parser_end(&parser, query, ret_query);
}

bool sql_parse_condition(struct slice text, const struct sql_limits *limits, struct arena *arena,
                         struct sql_query **ret_query, struct sql_error *ret_error,
                         struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct sql_query *query = ARENA_NEW(arena, struct sql_query);
    struct sql_parser parser;

    if (!parser_init(&parser, text, limits, &report))
        return false;
    query->select = SQL_SELECT_CONDITION;
    query->span = parser.token.span;
    if (!sql_parser_at_word(&parser, SQL_WORD_FROM))
        return sql_parser_fault(&parser);
    if (!parse_from(&parser, query))
        return false;
    if (query->source_count != 1 || !sql_parser_at_word(&parser, SQL_WORD_WHERE))
        return sql_parser_fault(&parser);
    return parse_where(&parser, query) && query_finish(&parser, query) &&
           parser_end(&parser, query, ret_query);
}
