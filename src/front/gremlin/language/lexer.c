/* Whitespace and comments are skipped before each token; whether a line ended there is kept,
 * because Groovy separates statements by it. Columns count characters: bytes that continue one do
 * not. */
#include "front/gremlin/language/lexer.h"

#include "document/utf8.h"

#include <stdarg.h>
#include <stdio.h>

static bool blank_skip(struct gremlin_lexer *lexer, bool *ret_new_line, struct error *err);
static bool comment_skip(struct gremlin_lexer *lexer, struct error *err);
static bool string_scan(struct gremlin_lexer *lexer, struct gremlin_lexeme *token,
                        struct error *err);
static void number_scan(struct gremlin_lexer *lexer);
static bool mark_scan(struct gremlin_lexer *lexer, struct gremlin_lexeme *token, struct error *err);

void gremlin_lexer_init(struct gremlin_lexer *lexer, struct slice text)
{
    lexer->at = text.data;
    lexer->end = text.len ? text.data + text.len : text.data;
    lexer->line = 1;
    lexer->column = 1;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Bytes above ASCII belong to names, as they do in Groovy. */
static bool begins_name(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c >= 0x80;
}

static bool continues_name(uint8_t c)
{
    return begins_name(c) || is_digit(c);
}

static uint8_t peek(const struct gremlin_lexer *lexer, size_t ahead)
{
    return (size_t)(lexer->end - lexer->at) > ahead ? lexer->at[ahead] : 0;
}

static void step(struct gremlin_lexer *lexer)
{
    uint8_t c = *lexer->at++;

    if (c == '\n') {
        lexer->line++;
        lexer->column = 1;
    } else if (!utf8_continues(c)) {
        lexer->column++;
    }
}

static void steps(struct gremlin_lexer *lexer, size_t count)
{
    while (count--)
        step(lexer);
}

bool gremlin_lexer_next(struct gremlin_lexer *lexer, struct gremlin_lexeme *ret_token,
                        struct error *err)
{
    struct gremlin_lexeme token = {0};
    const uint8_t *begin;
    uint8_t c;

    if (!blank_skip(lexer, &token.on_new_line, err))
        return false;
    token.line = lexer->line;
    token.column = lexer->column;
    begin = lexer->at;
    if (begin == lexer->end) {
        token.kind = GREMLIN_LEXEME_END;
        token.text = slice_of(begin, 0);
        *ret_token = token;
        return true;
    }
    c = *begin;
    if (c == '\'' || c == '"') {
        if (!string_scan(lexer, &token, err))
            return false;
        *ret_token = token;
        return true;
    }
    if (begins_name(c)) {
        token.kind = GREMLIN_LEXEME_NAME;
        while (lexer->at < lexer->end && continues_name(*lexer->at))
            step(lexer);
    } else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) {
        token.kind = GREMLIN_LEXEME_NUMBER;
        number_scan(lexer);
    } else if (!mark_scan(lexer, &token, err)) {
        return false;
    }
    token.text = slice_of(begin, (size_t)(lexer->at - begin));
    *ret_token = token;
    return true;
}

static bool blank_skip(struct gremlin_lexer *lexer, bool *ret_new_line, struct error *err)
{
    uint32_t line = lexer->line;

    while (lexer->at < lexer->end) {
        uint8_t c = *lexer->at;

        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f') {
            step(lexer);
        } else if (c == '\\' && (peek(lexer, 1) == '\n' || peek(lexer, 1) == '\r')) {
            step(lexer); /* Groovy's sign that the line goes on */
        } else if (c == '/' && (peek(lexer, 1) == '/' || peek(lexer, 1) == '*')) {
            if (!comment_skip(lexer, err))
                return false;
        } else {
            break;
        }
    }
    *ret_new_line = lexer->line != line;
    return true;
}

static bool comment_skip(struct gremlin_lexer *lexer, struct error *err)
{
    uint32_t line = lexer->line, column = lexer->column;

    if (peek(lexer, 1) == '/') {
        while (lexer->at < lexer->end && *lexer->at != '\n')
            step(lexer);
        return true;
    }
    steps(lexer, 2);
    while (lexer->at < lexer->end) {
        if (peek(lexer, 0) == '*' && peek(lexer, 1) == '/') {
            steps(lexer, 2);
            return true;
        }
        step(lexer);
    }
    return gremlin_syntax_error(err, line, column, "the comment has no end");
}

/* 'text', "text" and, as Groovy has them, either quote three times. */
static bool string_scan(struct gremlin_lexer *lexer, struct gremlin_lexeme *token,
                        struct error *err)
{
    uint8_t quote = *lexer->at;
    size_t quotes = peek(lexer, 1) == quote && peek(lexer, 2) == quote ? 3 : 1;
    const uint8_t *begin;

    token->kind = GREMLIN_LEXEME_STRING;
    steps(lexer, quotes);
    begin = lexer->at;
    while (lexer->at < lexer->end) {
        if (*lexer->at == quote &&
            (quotes == 1 || (peek(lexer, 1) == quote && peek(lexer, 2) == quote))) {
            token->text = slice_of(begin, (size_t)(lexer->at - begin));
            steps(lexer, quotes);
            return true;
        }
        if (*lexer->at == '\\' && lexer->end - lexer->at > 1)
            step(lexer);
        step(lexer);
    }
    return gremlin_syntax_error(err, token->line, token->column, "the string has no end");
}

/* Digits, point, exponent and suffix, as far as they can belong to one number; whether they are one
 * is seen when it is read. A point belongs to it only before a digit: 1..3 and 1.foo. */
static void number_scan(struct gremlin_lexer *lexer)
{
    bool hex = peek(lexer, 0) == '0' && (peek(lexer, 1) == 'x' || peek(lexer, 1) == 'X');
    bool point = false;

    while (lexer->at < lexer->end) {
        uint8_t c = *lexer->at, next = peek(lexer, 1);

        if (c == '.' && !hex && !point && is_digit(next))
            point = true;
        else if ((c == 'e' || c == 'E') && !hex && (next == '+' || next == '-') &&
                 is_digit(peek(lexer, 2)))
            step(lexer);
        else if (!continues_name(c))
            break;
        step(lexer);
    }
}

static bool mark_scan(struct gremlin_lexer *lexer, struct gremlin_lexeme *token, struct error *err)
{
    uint8_t c = *lexer->at;

    if (c == '.' && peek(lexer, 1) == '.') {
        token->kind = GREMLIN_LEXEME_RANGE;
        steps(lexer, 2);
        return true;
    }
    if (c == '-' && peek(lexer, 1) == '>') {
        token->kind = GREMLIN_LEXEME_ARROW;
        steps(lexer, 2);
        return true;
    }
    if (c == 0 || !strchr("()[]{},:;.=+-", c)) {
        if (c < 0x20 || c == 0x7F)
            return gremlin_syntax_error(err, token->line, token->column,
                                        "unexpected character 0x%02x", c);
        return gremlin_syntax_error(err, token->line, token->column, "unexpected character '%c'",
                                    c);
    }
    token->kind = GREMLIN_LEXEME_MARK;
    step(lexer);
    return true;
}

static bool error_write(struct error *err, const char *kind, uint32_t line, uint32_t column,
                        const char *text)
{
    return error_set(err, ERROR_GREMLIN_SCRIPT, "Gremlin Query %s Error: %s @ line %u, column %u.",
                     kind, text, line, column);
}

bool gremlin_syntax_error(struct error *err, uint32_t line, uint32_t column, const char *format,
                          ...)
{
    char text[ERROR_MESSAGE_SIZE - 80];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_write(err, "Syntax", line, column, text);
}

bool gremlin_compile_error(struct error *err, uint32_t line, uint32_t column, const char *format,
                           ...)
{
    char text[ERROR_MESSAGE_SIZE - 80];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error_write(err, "Compilation", line, column, text);
}
