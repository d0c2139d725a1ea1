/* Lexer: the text of a script as tokens, each with its place.
 *
 * A lexer is a plain value: looking ahead is reading with a copy. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

enum gremlin_lexeme_kind {
    GREMLIN_LEXEME_END,
    GREMLIN_LEXEME_NAME,
    GREMLIN_LEXEME_NUMBER, /* without its sign */
    GREMLIN_LEXEME_STRING, /* text is between the quotes, escapes as written */
    GREMLIN_LEXEME_RANGE,  /* .. */
    GREMLIN_LEXEME_ARROW,  /* -> */
    GREMLIN_LEXEME_MARK,   /* one of ( ) [ ] { } , : ; . = + - which text holds */
};

struct gremlin_lexeme {
    enum gremlin_lexeme_kind kind;
    struct slice text;
    uint32_t line, column; /* from 1; columns in characters */
    bool on_new_line;      /* a line ended between the token before and this one */
};

struct gremlin_lexer {
    const uint8_t *at, *end;
    uint32_t line, column;
};

/* The text is valid UTF-8, borrowed. */
void gremlin_lexer_init(struct gremlin_lexer *lexer, struct slice text);

/* GREMLIN_SCRIPT: a character that begins nothing, a string or comment without an end. */
NODISCARD bool gremlin_lexer_next(struct gremlin_lexer *lexer, struct gremlin_lexeme *ret_token,
                                  struct error *err);

static inline bool gremlin_lexeme_is(const struct gremlin_lexeme *token, char mark)
{
    return token->kind == GREMLIN_LEXEME_MARK && token->text.data[0] == (uint8_t)mark;
}

/* A script cannot be understood: sets GREMLIN_SCRIPT and returns false. The service words it so:
 * "Gremlin Query Syntax Error: expected ... @ line 1, column 5." */
bool gremlin_syntax_error(struct error *err, uint32_t line, uint32_t column, const char *format,
                          ...) PRINTF_LIKE(4, 5);
/* It is well-formed but means nothing: "Gremlin Query Compilation Error: ...". */
bool gremlin_compile_error(struct error *err, uint32_t line, uint32_t column, const char *format,
                           ...) PRINTF_LIKE(4, 5);
