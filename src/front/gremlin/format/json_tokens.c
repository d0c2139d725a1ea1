/* No recursion: what is open stands in an array as deep as the limit. */
#include "front/gremlin/format/json_tokens.h"

#include "document/json_number.h"
#include "document/utf8.h"
#include "front/gremlin/format/format.h"

/* GraphSON has at most four brackets for each value inside another. */
enum { OPEN_MAX = GREMLIN_FORMAT_DEPTH * 4 };

struct scanner {
    struct gremlin_tokens *tokens;
    const uint8_t *begin, *at, *end;
    struct error *err;
    uint32_t open[OPEN_MAX];
    size_t depth;
};

static bool refuse(struct scanner *scanner, const char *what)
{
    return error_set(scanner->err, ERROR_BAD_JSON, "%s at byte %zu", what,
                     (size_t)(scanner->at - scanner->begin));
}

static void skip_blanks(struct scanner *scanner)
{
    while (scanner->at < scanner->end && (*scanner->at == ' ' || *scanner->at == '\n' ||
                                          *scanner->at == '\r' || *scanner->at == '\t'))
        scanner->at++;
}

static bool token_add(struct scanner *scanner, enum gremlin_token_kind kind,
                      struct gremlin_token **ret_token)
{
    struct gremlin_tokens *tokens = scanner->tokens;

    if (tokens->count == tokens->capacity) {
        uint32_t capacity = tokens->capacity ? tokens->capacity * 2 : 64;

        if (tokens->count >= GREMLIN_FORMAT_TOKENS)
            return error_set(scanner->err, ERROR_TOO_LARGE,
                             "a message holds more than %d values and names",
                             GREMLIN_FORMAT_TOKENS);
        tokens->items = gremlin_heap_grow(tokens->heap, tokens->items,
                                          tokens->capacity * sizeof tokens->items[0],
                                          capacity * sizeof tokens->items[0]);
        tokens->capacity = capacity;
        if (gremlin_heap_failed(tokens->heap))
            return gremlin_heap_error(tokens->heap, scanner->err);
    }
    *ret_token = &tokens->items[tokens->count++];
    **ret_token = (struct gremlin_token){
        .kind = kind, .begin = (uint32_t)(scanner->at - scanner->begin), .next = tokens->count};
    return true;
}

static bool hex4(const uint8_t *at, const uint8_t *end, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        uint8_t c = at[i], letter = c | 0x20;

        if (c >= '0' && c <= '9')
            unit = unit << 4 | (uint32_t)(c - '0');
        else if (letter >= 'a' && letter <= 'f')
            unit = unit << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return false;
    }
    *ret_unit = unit;
    return true;
}

static bool string_scan(struct scanner *scanner)
{
    struct gremlin_token *token;
    uint32_t unit;

    scanner->at++;
    if (!token_add(scanner, GREMLIN_TOKEN_STRING, &token))
        return false;
    for (; scanner->at < scanner->end; scanner->at++) {
        if (*scanner->at == '"') {
            token->len = (uint32_t)(scanner->at++ - scanner->begin) - token->begin;
            return true;
        }
        if (*scanner->at < 0x20)
            return refuse(scanner, "a control character in a string");
        if (*scanner->at != '\\')
            continue;
        token->escaped = true;
        if (++scanner->at == scanner->end)
            break;
        if (*scanner->at == 'u') {
            if (!hex4(scanner->at + 1, scanner->end, &unit))
                return refuse(scanner, "an escape without four digits");
            scanner->at += 4;
        } else if (!memchr("\"\\/bfnrt", *scanner->at, 8)) {
            return refuse(scanner, "an unknown escape");
        }
    }
    return refuse(scanner, "a string without end");
}

static bool word_scan(struct scanner *scanner, struct slice word, enum gremlin_token_kind kind)
{
    struct gremlin_token *token;

    if (!slice_starts_with(slice_of(scanner->at, (size_t)(scanner->end - scanner->at)), word))
        return refuse(scanner, "no value");
    if (!token_add(scanner, kind, &token))
        return false;
    scanner->at += word.len;
    token->len = (uint32_t)word.len;
    return true;
}

/* Digits, whatever they come to: only their form is looked at. */
static bool number_scan(struct scanner *scanner)
{
    const uint8_t *at = scanner->at, *digits;
    struct gremlin_token *token;

    if (!token_add(scanner, GREMLIN_TOKEN_NUMBER, &token))
        return false;
    at += *at == '-';
    digits = at;
    while (at < scanner->end && *at >= '0' && *at <= '9')
        at++;
    if (at == digits || (*digits == '0' && at - digits > 1))
        return refuse(scanner, "no number");
    if (at < scanner->end && *at == '.') {
        digits = ++at;
        while (at < scanner->end && *at >= '0' && *at <= '9')
            at++;
        if (at == digits)
            return refuse(scanner, "no number");
    }
    if (at < scanner->end && (*at | 0x20) == 'e') {
        at++;
        at += at < scanner->end && (*at == '-' || *at == '+');
        digits = at;
        while (at < scanner->end && *at >= '0' && *at <= '9')
            at++;
        if (at == digits)
            return refuse(scanner, "no number");
    }
    scanner->at = at;
    token->len = (uint32_t)(at - scanner->begin) - token->begin;
    return true;
}

static bool scalar_scan(struct scanner *scanner)
{
    switch (*scanner->at) {
    case '"':
        return string_scan(scanner);
    case 'n':
        return word_scan(scanner, SLICE("null"), GREMLIN_TOKEN_NULL);
    case 't':
        return word_scan(scanner, SLICE("true"), GREMLIN_TOKEN_TRUE);
    case 'f':
        return word_scan(scanner, SLICE("false"), GREMLIN_TOKEN_FALSE);
    default:
        return number_scan(scanner);
    }
}

static struct gremlin_token *innermost(struct scanner *scanner)
{
    return &scanner->tokens->items[scanner->open[scanner->depth - 1]];
}

/* The name of a member and its colon. */
static bool name_scan(struct scanner *scanner)
{
    if (scanner->at == scanner->end || *scanner->at != '"')
        return refuse(scanner, "no name of a member");
    if (!string_scan(scanner))
        return false;
    skip_blanks(scanner);
    if (scanner->at == scanner->end || *scanner->at != ':')
        return refuse(scanner, "no colon");
    scanner->at++;
    skip_blanks(scanner);
    return true;
}

/* Behind a value: closes what ends here, and goes on to the next value. *ret_more false: the whole
 * text has ended. */
static bool value_end(struct scanner *scanner, bool *ret_more)
{
    while (scanner->depth) {
        struct gremlin_token *open = innermost(scanner);
        uint8_t closing = open->kind == GREMLIN_TOKEN_ARRAY ? ']' : '}';

        skip_blanks(scanner);
        if (scanner->at == scanner->end)
            return refuse(scanner, "no end of an array or object");
        if (*scanner->at == ',' && open->count) {
            scanner->at++;
            open->count++;
            skip_blanks(scanner);
            *ret_more = true;
            return open->kind == GREMLIN_TOKEN_ARRAY || name_scan(scanner);
        }
        if (*scanner->at != closing)
            return refuse(scanner, "no comma and no end of an array or object");
        scanner->at++;
        open->len = (uint32_t)(scanner->at - scanner->begin) - open->begin;
        open->next = scanner->tokens->count;
        scanner->depth--;
    }
    *ret_more = false;
    return true;
}

static bool container_open(struct scanner *scanner, bool *ret_more)
{
    bool array = *scanner->at == '[';
    struct gremlin_token *token;

    if (scanner->depth == OPEN_MAX)
        return error_set(scanner->err, ERROR_TOO_DEEP,
                         "arrays and objects are nested deeper than %d", OPEN_MAX);
    if (!token_add(scanner, array ? GREMLIN_TOKEN_ARRAY : GREMLIN_TOKEN_OBJECT, &token))
        return false;
    scanner->open[scanner->depth++] = scanner->tokens->count - 1;
    scanner->at++;
    skip_blanks(scanner);
    if (scanner->at < scanner->end && *scanner->at == (array ? ']' : '}'))
        return value_end(scanner, ret_more);
    token->count = 1;
    *ret_more = true;
    return array || name_scan(scanner);
}

static bool text_scan(struct scanner *scanner)
{
    bool more = true;

    skip_blanks(scanner);
    while (more) {
        if (scanner->at == scanner->end)
            return refuse(scanner, "the text ends where a value is expected");
        if (*scanner->at == '[' || *scanner->at == '{') {
            if (!container_open(scanner, &more))
                return false;
        } else if (!scalar_scan(scanner) || !value_end(scanner, &more)) {
            return false;
        }
    }
    skip_blanks(scanner);
    return scanner->at == scanner->end || refuse(scanner, "something behind the value");
}

/* The three-byte form of a surrogate, which documents hold of an escape, is no UTF-8 on the wire.
 */
static bool has_surrogates(struct slice text)
{
    const uint8_t *at = text.data, *end = text.data + text.len;

    while (at < end && (at = memchr(at, 0xED, (size_t)(end - at)))) {
        if (utf8_is_high_surrogate(at, end) || utf8_is_low_surrogate(at, end))
            return true;
        at++;
    }
    return false;
}

bool gremlin_tokens_init(struct gremlin_tokens *tokens, struct slice text,
                         struct gremlin_heap *heap, struct error *err)
{
    struct scanner scanner;
    size_t valid;

    *tokens = (struct gremlin_tokens){.text = text, .heap = heap};
    if (text.len > GREMLIN_BYTES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "a message of %zu bytes is over the limit of %d",
                         text.len, GREMLIN_BYTES_MAX);
    valid = text.len ? utf8_valid_length(text) : 0;
    if (valid < text.len)
        return error_set(err, ERROR_BAD_JSON, "invalid UTF-8 at byte %zu", valid);
    if (text.len && has_surrogates(text))
        return error_set(err, ERROR_BAD_JSON, "invalid UTF-8: a surrogate");
    scanner.tokens = tokens;
    scanner.begin = scanner.at = text.data;
    scanner.end = text.len ? text.data + text.len : text.data;
    scanner.err = err;
    scanner.depth = 0;
    if (text_scan(&scanner))
        return true;
    gremlin_tokens_done(tokens);
    return false;
}

void gremlin_tokens_done(struct gremlin_tokens *tokens)
{
    gremlin_heap_release(tokens->heap, tokens->items, tokens->capacity * sizeof tokens->items[0]);
    tokens->items = NULL;
    tokens->count = tokens->capacity = 0;
}

/* Names are compared as they are written: nobody escapes letters of "@type". */
bool gremlin_token_is(const struct gremlin_tokens *tokens, uint32_t at, struct slice text)
{
    return tokens->items[at].kind == GREMLIN_TOKEN_STRING &&
           slice_equal(gremlin_token_text(tokens, at), text);
}

uint32_t gremlin_token_member(const struct gremlin_tokens *tokens, uint32_t object,
                              struct slice name)
{
    uint32_t at = object + 1;

    for (uint32_t i = 0; i < tokens->items[object].count; i++) {
        if (gremlin_token_is(tokens, at, name))
            return at + 1;
        at = tokens->items[at + 1].next;
    }
    return 0;
}

/* One escape, behind its backslash; a high surrogate with the low one that follows. */
static const uint8_t *escape_read(const uint8_t *at, const uint8_t *end, uint8_t **to)
{
    static const char from[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    uint32_t unit = 0, low = 0;

    if (*at != 'u') {
        *(*to)++ = (uint8_t)meaning[strchr(from, *at) - from];
        return at + 1;
    }
    hex4(at + 1, end, &unit);
    at += 5;
    if (unit >= 0xD800 && unit < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' &&
        hex4(at + 2, end, &low) && low >= 0xDC00 && low < 0xE000) {
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        at += 6;
    }
    *to += utf8_encode(unit, *to);
    return at;
}

struct gremlin_value gremlin_token_string(const struct gremlin_tokens *tokens, uint32_t at,
                                          struct gremlin_heap *heap)
{
    struct slice text = gremlin_token_text(tokens, at);
    const uint8_t *from = text.data, *end = text.data + text.len;
    CLEANUP(memory_free) uint8_t *room = NULL;
    uint8_t *to;

    if (!tokens->items[at].escaped)
        return gremlin_string(heap, text);
    to = room = memory_alloc(text.len + 4);
    while (from < end) {
        if (*from == '\\')
            from = escape_read(from + 1, end, &to);
        else
            *to++ = *from++;
    }
    return gremlin_string(heap, slice_of(room, (size_t)(to - room)));
}
