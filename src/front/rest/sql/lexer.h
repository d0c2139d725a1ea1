/* Lexer: the query text as tokens, one at a time.
 *
 * Blanks and comments (`-- to the end of the line`, and C-style ones) are stepped over. Words are
 * letters, digits, _ and $ in any script. Keywords are told apart without case, and only the parser
 * knows where one is an ordinary name: after a dot, for example.
 *
 * Text that is no token is an error with the service's codes: SC1001, or SC1010 for a string that
 * does not end or holds an unknown escape. */
#pragma once

#include "front/rest/sql/error.h"

/* Words with a meaning of their own. All but those marked may not be names. */
enum sql_keyword {
    SQL_WORD_NONE, /* an ordinary name */
    SQL_WORD_AND,
    SQL_WORD_ARRAY,
    SQL_WORD_AS,
    SQL_WORD_ASC,
    SQL_WORD_BETWEEN,
    SQL_WORD_BY,
    SQL_WORD_DESC,
    SQL_WORD_DISTINCT,
    SQL_WORD_ESCAPE,
    SQL_WORD_EXISTS,
    SQL_WORD_FALSE,
    SQL_WORD_FROM,
    SQL_WORD_GROUP,
    SQL_WORD_IN,
    SQL_WORD_JOIN,
    SQL_WORD_LIKE,
    SQL_WORD_LIMIT,
    SQL_WORD_NOT,
    SQL_WORD_NULL,
    SQL_WORD_OFFSET,
    SQL_WORD_OR,
    SQL_WORD_ORDER,
    SQL_WORD_SELECT,
    SQL_WORD_TOP,
    SQL_WORD_TRUE,
    SQL_WORD_UDF,
    SQL_WORD_UNDEFINED,
    SQL_WORD_VALUE,
    SQL_WORD_WHERE,
};

enum sql_token_kind {
    SQL_TOKEN_END,
    SQL_TOKEN_WORD,
    SQL_TOKEN_PARAMETER, /* @name */
    SQL_TOKEN_NUMBER,
    SQL_TOKEN_STRING,
    SQL_TOKEN_OPEN, /* ( */
    SQL_TOKEN_CLOSE,
    SQL_TOKEN_OPEN_BRACKET, /* [ */
    SQL_TOKEN_CLOSE_BRACKET,
    SQL_TOKEN_OPEN_BRACE, /* { */
    SQL_TOKEN_CLOSE_BRACE,
    SQL_TOKEN_COMMA,
    SQL_TOKEN_DOT,
    SQL_TOKEN_COLON,
    SQL_TOKEN_QUESTION,
    SQL_TOKEN_COALESCE, /* ?? */
    SQL_TOKEN_PLUS,
    SQL_TOKEN_MINUS,
    SQL_TOKEN_STAR,
    SQL_TOKEN_SLASH,
    SQL_TOKEN_PERCENT,
    SQL_TOKEN_TILDE,
    SQL_TOKEN_NOT, /* ! */
    SQL_TOKEN_EQUAL,
    SQL_TOKEN_NOT_EQUAL, /* != <> */
    SQL_TOKEN_LESS,
    SQL_TOKEN_LESS_EQUAL,
    SQL_TOKEN_GREATER,
    SQL_TOKEN_GREATER_EQUAL,
    SQL_TOKEN_SHIFT_LEFT,
    SQL_TOKEN_SHIFT_RIGHT,
    SQL_TOKEN_SHIFT_RIGHT_ZERO,
    SQL_TOKEN_AMPERSAND,
    SQL_TOKEN_BAR,
    SQL_TOKEN_CONCAT, /* || */
    SQL_TOKEN_CARET,
};

struct sql_token {
    enum sql_token_kind kind;
    enum sql_keyword keyword; /* of a word */
    struct slice text;        /* as it stands in the query; a parameter with its @ */
    struct sql_span span;
    struct document_value value; /* of a number or string; decoded text in the arena or the query */
};

/* A plain value: a copy of it looks ahead. */
struct sql_lexer {
    struct slice text;
    size_t at;          /* byte */
    uint32_t character; /* UTF-16 unit, of the same place */
    bool after_operand; /* so that .5 is a number here, and a step behind an operand */
    struct sql_report report;
};

/* The text must be UTF-8 as documents hold it (document/utf8.h): SC1001 otherwise. */
NODISCARD bool sql_lexer_init(struct sql_lexer *lexer, struct slice text,
                              const struct sql_report *report);

/* The next token, SQL_TOKEN_END behind the last, as often as asked. */
NODISCARD bool sql_lexer_next(struct sql_lexer *lexer, struct sql_token *ret_token);

/* May text follow a dot, or be an alias, without brackets and quotes? Words that are no keyword. */
bool sql_is_plain_word(struct slice text);
