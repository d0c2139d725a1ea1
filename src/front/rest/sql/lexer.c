/* Hand-written, one character of lookahead and a table of symbols, longest first. A generated lexer
 * would need its own treatment of UTF-16 positions and of escapes, which is most of what is here.
 */
#include "front/rest/sql/lexer.h"

#include "document/double.h"
#include "document/utf8.h"

#include <utf8proc.h>

static const struct {
    const char *word;
    enum sql_keyword keyword;
} keywords[] = {
    {"AND", SQL_WORD_AND},
    {"ARRAY", SQL_WORD_ARRAY},
    {"AS", SQL_WORD_AS},
    {"ASC", SQL_WORD_ASC},
    {"BETWEEN", SQL_WORD_BETWEEN},
    {"BY", SQL_WORD_BY},
    {"DESC", SQL_WORD_DESC},
    {"DISTINCT", SQL_WORD_DISTINCT},
    {"ESCAPE", SQL_WORD_ESCAPE},
    {"EXISTS", SQL_WORD_EXISTS},
    {"FALSE", SQL_WORD_FALSE},
    {"FROM", SQL_WORD_FROM},
    {"GROUP", SQL_WORD_GROUP},
    {"IN", SQL_WORD_IN},
    {"JOIN", SQL_WORD_JOIN},
    {"LIKE", SQL_WORD_LIKE},
    {"LIMIT", SQL_WORD_LIMIT},
    {"NOT", SQL_WORD_NOT},
    {"NULL", SQL_WORD_NULL},
    {"OFFSET", SQL_WORD_OFFSET},
    {"OR", SQL_WORD_OR},
    {"ORDER", SQL_WORD_ORDER},
    {"SELECT", SQL_WORD_SELECT},
    {"TOP", SQL_WORD_TOP},
    {"TRUE", SQL_WORD_TRUE},
    {"UDF", SQL_WORD_UDF},
    {"UNDEFINED", SQL_WORD_UNDEFINED},
    {"VALUE", SQL_WORD_VALUE},
    {"WHERE", SQL_WORD_WHERE},
};

/* A symbol stands before all that begin it. */
static const struct {
    const char *text;
    enum sql_token_kind kind;
} symbols[] = {
    {">>>", SQL_TOKEN_SHIFT_RIGHT_ZERO},
    {">>", SQL_TOKEN_SHIFT_RIGHT},
    {"<<", SQL_TOKEN_SHIFT_LEFT},
    {"<=", SQL_TOKEN_LESS_EQUAL},
    {">=", SQL_TOKEN_GREATER_EQUAL},
    {"<>", SQL_TOKEN_NOT_EQUAL},
    {"!=", SQL_TOKEN_NOT_EQUAL},
    {"||", SQL_TOKEN_CONCAT},
    {"??", SQL_TOKEN_COALESCE},
    {"(", SQL_TOKEN_OPEN},
    {")", SQL_TOKEN_CLOSE},
    {"[", SQL_TOKEN_OPEN_BRACKET},
    {"]", SQL_TOKEN_CLOSE_BRACKET},
    {"{", SQL_TOKEN_OPEN_BRACE},
    {"}", SQL_TOKEN_CLOSE_BRACE},
    {",", SQL_TOKEN_COMMA},
    {".", SQL_TOKEN_DOT},
    {":", SQL_TOKEN_COLON},
    {"?", SQL_TOKEN_QUESTION},
    {"+", SQL_TOKEN_PLUS},
    {"-", SQL_TOKEN_MINUS},
    {"*", SQL_TOKEN_STAR},
    {"/", SQL_TOKEN_SLASH},
    {"%", SQL_TOKEN_PERCENT},
    {"~", SQL_TOKEN_TILDE},
    {"!", SQL_TOKEN_NOT},
    {"=", SQL_TOKEN_EQUAL},
    {"<", SQL_TOKEN_LESS},
    {">", SQL_TOKEN_GREATER},
    {"&", SQL_TOKEN_AMPERSAND},
    {"|", SQL_TOKEN_BAR},
    {"^", SQL_TOKEN_CARET},
};

bool sql_lexer_init(struct sql_lexer *lexer, struct slice text, const struct sql_report *report)
{
    size_t valid = utf8_valid_length(text);

    *lexer = (struct sql_lexer){.text = text, .report = *report};
    if (valid == text.len)
        return true;
    return sql_report_at(report, "SC1001", (struct sql_span){(uint32_t)valid, (uint32_t)valid + 1},
                         "Syntax error, the query text is not UTF-8 at byte %zu.", valid);
}

/* --- Characters ------------------------------------------------------------------------------- */

static bool at_end(const struct sql_lexer *lexer)
{
    return lexer->at == lexer->text.len;
}

static uint8_t byte_at(const struct sql_lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->text.len ? lexer->text.data[lexer->at + ahead] : 0;
}

/* The character here and its length in bytes. Not at the end. */
static uint32_t peek(const struct sql_lexer *lexer, size_t *ret_length)
{
    const uint8_t *at = lexer->text.data + lexer->at;

    *ret_length = utf8_length(at, lexer->text.data + lexer->text.len);
    switch (*ret_length) {
    case 2:
        return (uint32_t)(at[0] & 0x1F) << 6 | (at[1] & 0x3F);
    case 3:
        return (uint32_t)(at[0] & 0x0F) << 12 | (uint32_t)(at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    case 4:
        return (uint32_t)(at[0] & 0x07) << 18 | (uint32_t)(at[1] & 0x3F) << 12 |
               (uint32_t)(at[2] & 0x3F) << 6 | (at[3] & 0x3F);
    default:
        return at[0];
    }
}

static void advance(struct sql_lexer *lexer)
{
    size_t length;

    peek(lexer, &length);
    lexer->at += length;
    lexer->character += length == 4 ? 2 : 1;
}

static void advance_by(struct sql_lexer *lexer, size_t ascii)
{
    lexer->at += ascii;
    lexer->character += (uint32_t)ascii;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_ascii_word(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

static bool is_word(uint32_t c)
{
    if (c < 0x80)
        return is_ascii_word(c);
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return false;
    }
}

static bool is_blank(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0xFEFF || utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ZS;
}

static bool word_goes_on(const struct sql_lexer *lexer)
{
    size_t length;

    if (at_end(lexer))
        return false;
    if (lexer->text.data[lexer->at] < 0x80)
        return is_ascii_word(lexer->text.data[lexer->at]);
    return is_word(peek(lexer, &length));
}

/* --- Tokens ------------------------------------------------------------------------------------
 */

static bool fault(const struct sql_lexer *lexer, const struct sql_lexer *begin, const char *code,
                  const char *what)
{
    struct slice text = slice_of(begin->text.data + begin->at, lexer->at - begin->at);
    struct sql_span span = {begin->character, lexer->character};

    return sql_report_at(&lexer->report, code, span, "Syntax error, %s near '%.*s'.", what,
                         SLICE_ARG(sql_excerpt(text)));
}

static bool skip_block_comment(struct sql_lexer *lexer)
{
    struct sql_lexer begin = *lexer;

    advance_by(lexer, 2);
    while (!(byte_at(lexer, 0) == '*' && byte_at(lexer, 1) == '/')) {
        if (at_end(lexer))
            return fault(lexer, &begin, "SC1001", "a comment does not end");
        advance(lexer);
    }
    advance_by(lexer, 2);
    return true;
}

static bool skip_blanks(struct sql_lexer *lexer)
{
    size_t length;

    while (!at_end(lexer)) {
        if (is_blank(peek(lexer, &length))) {
            advance(lexer);
        } else if (byte_at(lexer, 0) == '-' && byte_at(lexer, 1) == '-') {
            while (!at_end(lexer) && byte_at(lexer, 0) != '\n')
                advance(lexer);
        } else if (byte_at(lexer, 0) == '/' && byte_at(lexer, 1) == '*') {
            if (!skip_block_comment(lexer))
                return false;
        } else {
            break;
        }
    }
    return true;
}

static enum sql_keyword keyword_of(struct slice word)
{
    int letter;

    if (word.len < 2 || word.len > 9)
        return SQL_WORD_NONE;
    letter = word.data[0] | 0x20;
    /* they are sorted, and most words are none of them */
    for (size_t i = 0; i < ARRAY_LEN(keywords) && (keywords[i].word[0] | 0x20) <= letter; i++)
        if ((keywords[i].word[0] | 0x20) == letter &&
            slice_equal_nocase(word, slice_of_text(keywords[i].word)))
            return keywords[i].keyword;
    return SQL_WORD_NONE;
}

static void lex_word(struct sql_lexer *lexer)
{
    while (word_goes_on(lexer)) {
        if (lexer->text.data[lexer->at] < 0x80)
            advance_by(lexer, 1);
        else
            advance(lexer);
    }
}

bool sql_is_plain_word(struct slice text)
{
    struct sql_lexer lexer = {.text = text};

    if (!text.len || is_digit(text.data[0]))
        return false;
    lex_word(&lexer);
    return at_end(&lexer) && keyword_of(text) == SQL_WORD_NONE;
}

/* --- Numbers -----------------------------------------------------------------------------------
 */

static struct document_value integer_value(uint64_t number)
{
    if (number <= INT32_MAX)
        return document_int32((int32_t)number);
    if (number <= INT64_MAX)
        return document_int64((int64_t)number);
    return document_double((double)number);
}

static int hex_digit(uint8_t c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool lex_hex(struct sql_lexer *lexer, const struct sql_lexer *begin,
                    struct document_value *ret_value)
{
    uint64_t number = 0;
    bool fits = true;

    advance_by(lexer, 2);
    if (hex_digit(byte_at(lexer, 0)) < 0) {
        lex_word(lexer);
        return fault(lexer, begin, "SC1001", "invalid number");
    }
    for (int digit; (digit = hex_digit(byte_at(lexer, 0))) >= 0; advance_by(lexer, 1)) {
        fits = fits && number >> 60 == 0;
        number = number << 4 | (uint64_t)digit;
    }
    if (!fits)
        return fault(lexer, begin, "SC1001", "the number has more than 64 bits");
    *ret_value = integer_value(number);
    return true;
}

static void lex_digits(struct sql_lexer *lexer)
{
    while (is_digit(byte_at(lexer, 0)))
        advance_by(lexer, 1);
}

/* Digits, then a fraction and an exponent if they are whole. */
static bool lex_decimal(struct sql_lexer *lexer, const struct sql_lexer *begin,
                        struct document_value *ret_value)
{
    bool whole = true;
    struct slice text;
    uint64_t integer;
    double number;
    size_t sign;

    lex_digits(lexer);
    if (byte_at(lexer, 0) == '.' && is_digit(byte_at(lexer, 1))) {
        whole = false;
        advance_by(lexer, 1);
        lex_digits(lexer);
    }
    if (byte_at(lexer, 0) == 'e' || byte_at(lexer, 0) == 'E') {
        sign = byte_at(lexer, 1) == '+' || byte_at(lexer, 1) == '-';
        if (is_digit(byte_at(lexer, 1 + sign))) {
            whole = false;
            advance_by(lexer, 1 + sign);
            lex_digits(lexer);
        }
    }
    text = slice_of(begin->text.data + begin->at, lexer->at - begin->at);
    if (whole && slice_to_uint64(text, &integer))
        *ret_value = integer_value(integer);
    else if (double_from_text((const char *)text.data, text.len, &number))
        *ret_value = document_double(number);
    else
        return fault(lexer, begin, "SC1001", "a number that no double can hold");
    return true;
}

static bool lex_number(struct sql_lexer *lexer, struct document_value *ret_value)
{
    struct sql_lexer begin = *lexer;
    bool hex = byte_at(lexer, 0) == '0' && (byte_at(lexer, 1) | 0x20) == 'x';

    if (!(hex ? lex_hex(lexer, &begin, ret_value) : lex_decimal(lexer, &begin, ret_value)))
        return false;
    if (!word_goes_on(lexer))
        return true;
    lex_word(lexer);
    return fault(lexer, &begin, "SC1001", "invalid number");
}

/* --- Strings -----------------------------------------------------------------------------------
 */

/* Two surrogates in a row are one character, however each of them was written. */
static void text_append(struct buf *text, const uint8_t *bytes, size_t length)
{
    const uint8_t *before = text->len >= 3 ? text->data + text->len - 3 : NULL;
    uint8_t pair[4];

    if (length == 3 && utf8_is_low_surrogate(bytes, bytes + 3) && before &&
        utf8_is_high_surrogate(before, before + 3)) {
        uint32_t high = (uint32_t)(before[1] & 0x0F) << 6 | (before[2] & 0x3F);
        uint32_t low = (uint32_t)(bytes[1] & 0x0F) << 6 | (bytes[2] & 0x3F);

        text->len -= 3;
        buf_append(text, pair, utf8_encode(0x10000 + (high << 10 | low), pair));
        return;
    }
    buf_append(text, bytes, length);
}

static bool lex_unicode_escape(struct sql_lexer *lexer, struct buf *text)
{
    uint32_t code = 0;
    uint8_t bytes[4];

    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(byte_at(lexer, i));

        if (digit < 0)
            return false;
        code = code << 4 | (uint32_t)digit;
    }
    advance_by(lexer, 4);
    text_append(text, bytes, utf8_encode(code, bytes));
    return true;
}

/* Behind the backslash. */
static bool lex_escape(struct sql_lexer *lexer, struct buf *text)
{
    static const char names[] = "'\"\\/bfnrt", values[] = "'\"\\/\b\f\n\r\t";
    uint8_t c = byte_at(lexer, 0);
    const char *name = c ? strchr(names, c) : NULL;

    if (c == 'u') {
        advance_by(lexer, 1);
        return lex_unicode_escape(lexer, text);
    }
    if (!name)
        return false;
    advance_by(lexer, 1);
    buf_append_byte(text, (uint8_t)values[name - names]);
    return true;
}

static bool string_fault(const struct sql_lexer *lexer, const struct sql_lexer *begin)
{
    return sql_report_at(
        &lexer->report, "SC1010", (struct sql_span){begin->character, lexer->character},
        "Syntax error, invalid string literal token '%.*s'.",
        SLICE_ARG(sql_excerpt(slice_of(begin->text.data + begin->at, lexer->at - begin->at))));
}

/* The rest of a string in which an escape was met. */
static bool lex_string_decoded(struct sql_lexer *lexer, const struct sql_lexer *begin,
                               struct buf *text)
{
    uint8_t quote = begin->text.data[begin->at];
    size_t length;

    while (byte_at(lexer, 0) != quote || at_end(lexer)) {
        if (at_end(lexer))
            return string_fault(lexer, begin);
        if (byte_at(lexer, 0) == '\\') {
            advance_by(lexer, 1);
            if (!lex_escape(lexer, text))
                return string_fault(lexer, begin);
        } else {
            peek(lexer, &length);
            text_append(text, lexer->text.data + lexer->at, length);
            advance(lexer);
        }
    }
    return true;
}

/* Most strings hold no escape and are used where they stand. */
static bool lex_string(struct sql_lexer *lexer, struct document_value *ret_value)
{
    CLEANUP(buf_done) struct buf decoded;
    struct sql_lexer begin = *lexer;
    uint8_t quote = byte_at(lexer, 0);
    struct slice text;

    buf_init(&decoded, lexer->text.len + 1);
    advance_by(lexer, 1);
    while (!at_end(lexer) && byte_at(lexer, 0) != quote && byte_at(lexer, 0) != '\\')
        advance(lexer);
    if (at_end(lexer))
        return string_fault(lexer, &begin);
    text = slice_of(begin.text.data + begin.at + 1, lexer->at - begin.at - 1);
    if (byte_at(lexer, 0) == '\\') {
        buf_append_slice(&decoded, text);
        if (!lex_string_decoded(lexer, &begin, &decoded))
            return false;
        text = arena_copy(lexer->report.arena, buf_slice(&decoded));
    }
    advance_by(lexer, 1);
    *ret_value = document_string(text);
    return true;
}

/* --- Next --------------------------------------------------------------------------------------
 */

static bool lex_symbol(struct sql_lexer *lexer, enum sql_token_kind *ret_kind)
{
    struct slice rest = slice_skip(lexer->text, lexer->at);
    struct sql_lexer begin = *lexer;

    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        if (!rest.len || rest.data[0] != (uint8_t)symbols[i].text[0] || /* most are others */
            !slice_starts_with(rest, slice_of_text(symbols[i].text)))
            continue;
        advance_by(lexer, strlen(symbols[i].text));
        *ret_kind = symbols[i].kind;
        return true;
    }
    advance(lexer);
    return fault(lexer, &begin, "SC1001", "incorrect syntax");
}

static bool lex_parameter(struct sql_lexer *lexer)
{
    struct sql_lexer begin = *lexer;

    advance_by(lexer, 1);
    lex_word(lexer);
    return lexer->at > begin.at + 1 || fault(lexer, &begin, "SC1001", "incorrect syntax");
}

static bool lex_token(struct sql_lexer *lexer, struct sql_token *token)
{
    uint8_t c = byte_at(lexer, 0);

    if (is_digit(c) || (c == '.' && is_digit(byte_at(lexer, 1)) && !lexer->after_operand)) {
        token->kind = SQL_TOKEN_NUMBER;
        return lex_number(lexer, &token->value);
    }
    if (c == '"' || c == '\'') {
        token->kind = SQL_TOKEN_STRING;
        return lex_string(lexer, &token->value);
    }
    if (c == '@') {
        token->kind = SQL_TOKEN_PARAMETER;
        return lex_parameter(lexer);
    }
    if (word_goes_on(lexer)) {
        token->kind = SQL_TOKEN_WORD;
        lex_word(lexer);
        return true;
    }
    return lex_symbol(lexer, &token->kind);
}

/* Could a step into a value follow this token? */
static bool ends_operand(const struct sql_token *token)
{
    switch (token->kind) {
    case SQL_TOKEN_WORD:
        return token->keyword == SQL_WORD_NONE;
    case SQL_TOKEN_PARAMETER:
    case SQL_TOKEN_NUMBER:
    case SQL_TOKEN_STRING:
    case SQL_TOKEN_CLOSE:
    case SQL_TOKEN_CLOSE_BRACKET:
    case SQL_TOKEN_CLOSE_BRACE:
        return true;
    default:
        return false;
    }
}

bool sql_lexer_next(struct sql_lexer *lexer, struct sql_token *ret_token)
{
    struct sql_token token = {.kind = SQL_TOKEN_END};
    size_t begin;

    if (!skip_blanks(lexer))
        return false;
    begin = lexer->at;
    token.span.start = lexer->character;
    if (!at_end(lexer) && !lex_token(lexer, &token))
        return false;
    token.text = slice_of(lexer->text.data + begin, lexer->at - begin);
    token.span.end = lexer->character;
    if (token.kind == SQL_TOKEN_WORD)
        token.keyword = keyword_of(token.text);
    lexer->after_operand = ends_operand(&token);
    *ret_token = token;
    return true;
}
