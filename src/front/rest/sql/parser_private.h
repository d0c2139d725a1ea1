/* The parser from within: clauses in parser.c, expressions in sql_parser_expr.c. */
#pragma once

#include "front/rest/sql/lexer.h"
#include "front/rest/sql/parser.h"

struct sql_parser {
    struct sql_lexer lexer; /* stands behind token */
    struct sql_token token; /* the one looked at */
    struct sql_token last;  /* the one before it */
    const struct sql_limits *limits;
    struct arena *arena;
    const struct sql_report *report;
    uint32_t nesting, joins, ands, ors, udf_calls;
    struct sql_exprs parameters;
};

/* --- Tokens ------------------------------------------------------------------------------------
 */

NODISCARD bool sql_parser_advance(struct sql_parser *parser);

/* The token after the next `ahead` (1: the one behind parser->token). */
NODISCARD bool sql_parser_peek(const struct sql_parser *parser, unsigned ahead,
                               struct sql_token *ret_token);

static inline bool sql_parser_at(const struct sql_parser *parser, enum sql_token_kind kind)
{
    return parser->token.kind == kind;
}

static inline bool sql_parser_at_word(const struct sql_parser *parser, enum sql_keyword word)
{
    return parser->token.kind == SQL_TOKEN_WORD && parser->token.keyword == word;
}

/* A word that is free to be a name. */
static inline bool sql_parser_at_name(const struct sql_parser *parser)
{
    return sql_parser_at_word(parser, SQL_WORD_NONE);
}

NODISCARD bool sql_parser_expect(struct sql_parser *parser, enum sql_token_kind kind);
NODISCARD bool sql_parser_expect_word(struct sql_parser *parser, enum sql_keyword word);

/* SC1001 at the token looked at; at the end of the text, at the last one. */
bool sql_parser_fault(const struct sql_parser *parser);

/* --- Limits ------------------------------------------------------------------------------------
 */

/* Before what encloses something; sql_parser_leave behind it. */
NODISCARD bool sql_parser_enter(struct sql_parser *parser);
static inline void sql_parser_leave(struct sql_parser *parser)
{
    parser->nesting--;
}

/* One more of what is counted; false with the error when that passes max. */
NODISCARD bool sql_parser_count(const struct sql_parser *parser, uint32_t *count, uint32_t max,
                                const char *what);

/* --- Grammar -----------------------------------------------------------------------------------
 */

/* From SELECT to the end of the query; the token behind it is looked at. */
NODISCARD bool sql_parser_query(struct sql_parser *parser, struct sql_query **ret_query);

NODISCARD bool sql_parser_expr(struct sql_parser *parser, struct sql_expr **ret_expr);

/* A number or parameter, as TOP, OFFSET and LIMIT take it. */
NODISCARD bool sql_parser_amount(struct sql_parser *parser, struct sql_expr **ret_amount);

/* A name, parameter or (for FROM) path with its steps, and nothing more. */
NODISCARD bool sql_parser_path(struct sql_parser *parser, struct sql_expr **ret_expr);

/* expr, ... up to and including the closing token; empty lists too if allowed. The opening one is
 * behind us. */
NODISCARD bool sql_parser_list(struct sql_parser *parser, enum sql_token_kind close, uint32_t max,
                               const char *what, struct sql_exprs *ret_list);
