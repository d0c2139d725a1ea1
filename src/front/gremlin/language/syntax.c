/* Recursive descent, one function for each production; expressions are the only recursion and count
 * their depth. Chains are a loop, so that a thousand steps in a row are no deeper than one.
 *
 * Closures are told from sets by what is in their braces and refused where they stand. */
#include "front/gremlin/language/syntax.h"

#include "document/utf8.h"
#include "front/gremlin/language/lexer.h"

struct parser {
    struct gremlin_lexer lexer;
    struct gremlin_lexeme token; /* the next one, not yet taken */
    struct arena *arena;
    size_t depth, depth_max;
};

/* Pointers or structures that grow in an arena. */
struct growth {
    size_t count, capacity;
};

static bool statement_parse(struct parser *parser, struct gremlin_syntax_statement *ret_statement,
                            struct error *err);
static bool expression_parse(struct parser *parser, struct gremlin_node **ret_node,
                             struct error *err);
static bool operand_parse(struct parser *parser, struct gremlin_node **ret_node, struct error *err);
static bool chain_parse(struct parser *parser, struct gremlin_node *node, struct error *err);
static bool arguments_parse(struct parser *parser, struct gremlin_link *link, struct error *err);
static bool argument_parse(struct parser *parser, struct gremlin_node **ret_node,
                           struct error *err);
static bool bracket_parse(struct parser *parser, struct gremlin_node *node, struct error *err);
static bool brace_parse(struct parser *parser, struct gremlin_node *node, struct error *err);
static bool parenthesis_parse(struct parser *parser, struct gremlin_node **ret_node,
                              struct error *err);
static bool signed_parse(struct parser *parser, struct gremlin_node *node, struct error *err);
static bool string_read(struct parser *parser, struct slice *ret_text, struct error *err);
static bool conversion_parse(struct parser *parser, struct gremlin_node *node, struct error *err);

/* Room for one more of size bytes each; what was there is copied when it moves. */
static void *grow(struct arena *arena, void *items, struct growth *growth, size_t size)
{
    void *larger;

    if (growth->count < growth->capacity)
        return items;
    growth->capacity = growth->capacity ? 2 * growth->capacity : 4;
    larger = arena_alloc(arena, memory_array_size(growth->capacity, size));
    if (growth->count)
        memcpy(larger, items, growth->count * size);
    return larger;
}

static void node_append(struct parser *parser, struct gremlin_node ***items, struct growth *growth,
                        struct gremlin_node *node)
{
    *items = grow(parser->arena, *items, growth, sizeof **items);
    (*items)[growth->count++] = node;
}

static bool advance(struct parser *parser, struct error *err)
{
    return gremlin_lexer_next(&parser->lexer, &parser->token, err);
}

/* The token after the next one. */
static bool peek(const struct parser *parser, struct gremlin_lexeme *ret_token, struct error *err)
{
    struct gremlin_lexer ahead = parser->lexer;

    return gremlin_lexer_next(&ahead, ret_token, err);
}

static bool found_instead(const struct parser *parser, const char *expected, struct error *err)
{
    const struct gremlin_lexeme *token = &parser->token;

    if (token->kind == GREMLIN_LEXEME_END)
        return gremlin_syntax_error(err, token->line, token->column,
                                    "expected %s, found the end of the script", expected);
    if (token->kind == GREMLIN_LEXEME_STRING)
        return gremlin_syntax_error(err, token->line, token->column, "expected %s, found a string",
                                    expected);
    return gremlin_syntax_error(err, token->line, token->column, "expected %s, found '%.*s'",
                                expected, (int)MIN(token->text.len, (size_t)80),
                                (const char *)token->text.data);
}

static bool expect(struct parser *parser, char mark, const char *expected, struct error *err)
{
    if (!gremlin_lexeme_is(&parser->token, mark))
        return found_instead(parser, expected, err);
    return advance(parser, err);
}

static bool closure_refuse(const struct gremlin_lexeme *token, struct error *err)
{
    return gremlin_compile_error(err, token->line, token->column,
                                 "closures are not supported, a traversal is needed instead");
}

static bool token_is_name(const struct gremlin_lexeme *token, const char *name)
{
    return token->kind == GREMLIN_LEXEME_NAME && slice_equal(token->text, slice_of_text(name));
}

bool gremlin_syntax_parse(struct slice text, size_t depth_max, struct arena *arena,
                          struct gremlin_syntax *ret_syntax, struct error *err)
{
    struct parser parser = {.arena = arena, .depth_max = depth_max};
    struct gremlin_syntax_statement *statements = NULL;
    struct growth growth = {0};

    gremlin_lexer_init(&parser.lexer, text);
    if (!advance(&parser, err))
        return false;
    for (;;) {
        while (gremlin_lexeme_is(&parser.token, ';'))
            if (!advance(&parser, err))
                return false;
        if (parser.token.kind == GREMLIN_LEXEME_END)
            break;
        statements = grow(arena, statements, &growth, sizeof *statements);
        if (!statement_parse(&parser, &statements[growth.count], err))
            return false;
        growth.count++;
        if (parser.token.kind != GREMLIN_LEXEME_END && !gremlin_lexeme_is(&parser.token, ';') &&
            !parser.token.on_new_line)
            return found_instead(&parser, "'.', ';' or the end of the script", err);
    }
    if (!growth.count)
        return gremlin_syntax_error(err, parser.token.line, parser.token.column,
                                    "the script has no statement");
    *ret_syntax = (struct gremlin_syntax){statements, growth.count};
    return true;
}

/* [def] name = expression, or an expression. */
static bool statement_parse(struct parser *parser, struct gremlin_syntax_statement *ret_statement,
                            struct error *err)
{
    struct gremlin_syntax_statement statement = {.name = SLICE_NONE};
    struct gremlin_lexeme next;

    if (token_is_name(&parser->token, "def")) {
        if (!peek(parser, &next, err))
            return false;
        if (next.kind == GREMLIN_LEXEME_NAME && !advance(parser, err))
            return false;
    }
    if (parser->token.kind == GREMLIN_LEXEME_NAME) {
        if (!peek(parser, &next, err))
            return false;
        if (gremlin_lexeme_is(&next, '=')) {
            statement.name = parser->token.text;
            if (!advance(parser, err) || !advance(parser, err))
                return false;
        }
    }
    if (!expression_parse(parser, &statement.node, err))
        return false;
    *ret_statement = statement;
    return true;
}

/* operand [.. operand] */
static bool expression_parse(struct parser *parser, struct gremlin_node **ret_node,
                             struct error *err)
{
    struct gremlin_node *first, *range;

    if (parser->depth >= parser->depth_max)
        return error_set(err, ERROR_GREMLIN_SCRIPT_LIMIT,
                         "Gremlin Query Compilation Error: the script is nested deeper than the "
                         "limit of %zu @ line %u, column %u.",
                         parser->depth_max, parser->token.line, parser->token.column);
    parser->depth++;
    if (!operand_parse(parser, &first, err))
        return false;
    if (parser->token.kind == GREMLIN_LEXEME_RANGE) {
        range = ARENA_NEW(parser->arena, struct gremlin_node);
        range->kind = GREMLIN_NODE_RANGE;
        range->line = first->line;
        range->column = first->column;
        range->items = ARENA_ARRAY(parser->arena, struct gremlin_node *, 2);
        range->items[0] = first;
        range->count = 2;
        if (!advance(parser, err) || !operand_parse(parser, &range->items[1], err))
            return false;
        first = range;
    }
    parser->depth--;
    if (parser->token.kind == GREMLIN_LEXEME_ARROW)
        return closure_refuse(&parser->token, err);
    *ret_node = first;
    return true;
}

static bool operand_parse(struct parser *parser, struct gremlin_node **ret_node, struct error *err)
{
    struct gremlin_node *node = ARENA_NEW(parser->arena, struct gremlin_node);
    const struct gremlin_lexeme *token = &parser->token;

    node->line = token->line;
    node->column = token->column;
    *ret_node = node;
    if (token->kind == GREMLIN_LEXEME_STRING) {
        node->kind = GREMLIN_NODE_STRING;
        if (!string_read(parser, &node->text, err))
            return false;
    } else if (token->kind == GREMLIN_LEXEME_NUMBER || gremlin_lexeme_is(token, '-') ||
               gremlin_lexeme_is(token, '+')) {
        if (!signed_parse(parser, node, err))
            return false;
    } else if (token->kind == GREMLIN_LEXEME_NAME) {
        return chain_parse(parser, node, err) && conversion_parse(parser, node, err);
    } else if (gremlin_lexeme_is(token, '[')) {
        if (!bracket_parse(parser, node, err))
            return false;
    } else if (gremlin_lexeme_is(token, '{')) {
        if (!brace_parse(parser, node, err))
            return false;
    } else if (gremlin_lexeme_is(token, '(')) {
        if (!parenthesis_parse(parser, ret_node, err))
            return false;
    } else {
        return found_instead(parser, "a value, a traversal or a name", err);
    }
    if (gremlin_lexeme_is(&parser->token, '.'))
        return gremlin_compile_error(err, parser->token.line, parser->token.column,
                                     "methods of values are not supported");
    return conversion_parse(parser, *ret_node, err);
}

/* [1, 2] as Set: the one conversion that scripts for graphs use. */
static bool conversion_parse(struct parser *parser, struct gremlin_node *node, struct error *err)
{
    if (!token_is_name(&parser->token, "as") || parser->token.on_new_line)
        return true;
    if (!advance(parser, err))
        return false;
    if (node->kind != GREMLIN_NODE_LIST || !token_is_name(&parser->token, "Set"))
        return gremlin_compile_error(err, parser->token.line, parser->token.column,
                                     "only lists can be converted, and only by 'as Set'");
    node->kind = GREMLIN_NODE_SET;
    return advance(parser, err);
}

static bool signed_parse(struct parser *parser, struct gremlin_node *node, struct error *err)
{
    node->kind = GREMLIN_NODE_NUMBER;
    if (parser->token.kind == GREMLIN_LEXEME_MARK) {
        node->truth = gremlin_lexeme_is(&parser->token, '-');
        if (!advance(parser, err))
            return false;
        if (parser->token.kind != GREMLIN_LEXEME_NUMBER &&
            !token_is_name(&parser->token, "Infinity") && !token_is_name(&parser->token, "NaN"))
            return found_instead(parser, "a number", err);
    }
    node->text = parser->token.text;
    return advance(parser, err);
}

/* [new] name[(arguments)] {. name[(arguments)]} */
static bool chain_parse(struct parser *parser, struct gremlin_node *node, struct error *err)
{
    struct growth growth = {0};
    struct gremlin_lexeme next;

    node->kind = GREMLIN_NODE_CHAIN;
    if (token_is_name(&parser->token, "new")) {
        if (!peek(parser, &next, err))
            return false;
        if (next.kind == GREMLIN_LEXEME_NAME) {
            node->truth = true;
            if (!advance(parser, err))
                return false;
        }
    }
    for (;;) {
        struct gremlin_link link = {
            .name = parser->token.text, .line = parser->token.line, .column = parser->token.column};

        if (parser->token.kind != GREMLIN_LEXEME_NAME)
            return found_instead(parser, "the name of a step", err);
        if (!advance(parser, err))
            return false;
        if (gremlin_lexeme_is(&parser->token, '(')) {
            link.called = true;
            if (!arguments_parse(parser, &link, err))
                return false;
        }
        if (gremlin_lexeme_is(&parser->token, '{') && !parser->token.on_new_line)
            return closure_refuse(&parser->token, err);
        node->links = grow(parser->arena, node->links, &growth, sizeof *node->links);
        node->links[growth.count++] = link;
        node->link_count = growth.count;
        if (!gremlin_lexeme_is(&parser->token, '.'))
            break;
        if (!advance(parser, err))
            return false;
    }
    if (gremlin_node_is_word(node)) {
        struct slice word = node->links[0].name;

        if (slice_equal(word, SLICE("null"))) {
            node->kind = GREMLIN_NODE_NULL;
        } else if (slice_equal(word, SLICE("true")) || slice_equal(word, SLICE("false"))) {
            node->kind = GREMLIN_NODE_BOOLEAN;
            node->truth = word.data[0] == 't';
        } else if (slice_equal(word, SLICE("NaN")) || slice_equal(word, SLICE("Infinity"))) {
            node->kind = GREMLIN_NODE_NUMBER;
            node->text = word;
        }
    }
    return true;
}

static bool arguments_parse(struct parser *parser, struct gremlin_link *link, struct error *err)
{
    struct growth growth = {0};
    struct gremlin_node *argument;

    if (!advance(parser, err))
        return false;
    if (gremlin_lexeme_is(&parser->token, ')'))
        return advance(parser, err);
    for (;;) {
        if (!argument_parse(parser, &argument, err))
            return false;
        node_append(parser, &link->arguments, &growth, argument);
        link->count = growth.count;
        if (!gremlin_lexeme_is(&parser->token, ','))
            return expect(parser, ')', "',' or ')'", err);
        if (!advance(parser, err))
            return false;
    }
}

/* [name :] expression */
static bool argument_parse(struct parser *parser, struct gremlin_node **ret_node, struct error *err)
{
    struct gremlin_lexeme next;
    struct gremlin_node *node;

    if (parser->token.kind != GREMLIN_LEXEME_NAME)
        return expression_parse(parser, ret_node, err);
    if (!peek(parser, &next, err))
        return false;
    if (!gremlin_lexeme_is(&next, ':'))
        return expression_parse(parser, ret_node, err);
    node = ARENA_NEW(parser->arena, struct gremlin_node);
    node->kind = GREMLIN_NODE_NAMED;
    node->line = parser->token.line;
    node->column = parser->token.column;
    node->text = parser->token.text;
    node->items = ARENA_ARRAY(parser->arena, struct gremlin_node *, 1);
    node->count = 1;
    if (!advance(parser, err) || !advance(parser, err) ||
        !expression_parse(parser, &node->items[0], err))
        return false;
    *ret_node = node;
    return true;
}

/* [] and [a, b] are lists, [:] and [k: v, (T.id): v] maps. */
static bool bracket_parse(struct parser *parser, struct gremlin_node *node, struct error *err)
{
    struct growth growth = {0};
    struct gremlin_node *item;

    node->kind = GREMLIN_NODE_LIST;
    if (!advance(parser, err))
        return false;
    if (gremlin_lexeme_is(&parser->token, ':')) {
        node->kind = GREMLIN_NODE_MAP;
        return advance(parser, err) && expect(parser, ']', "']'", err);
    }
    if (gremlin_lexeme_is(&parser->token, ']'))
        return advance(parser, err);
    for (;;) {
        if (!expression_parse(parser, &item, err))
            return false;
        node_append(parser, &node->items, &growth, item);
        node->count = growth.count;
        if (growth.count == 1 && gremlin_lexeme_is(&parser->token, ':'))
            node->kind = GREMLIN_NODE_MAP;
        if (node->kind == GREMLIN_NODE_MAP) {
            if (!expect(parser, ':', "':'", err) || !expression_parse(parser, &item, err))
                return false;
            node_append(parser, &node->items, &growth, item);
            node->count = growth.count;
        }
        if (!gremlin_lexeme_is(&parser->token, ','))
            return expect(parser, ']', "',' or ']'", err);
        if (!advance(parser, err))
            return false;
    }
}

/* A set, unless what is in the braces is a closure's: statements, an arrow, or the name `it`. */
static bool brace_parse(struct parser *parser, struct gremlin_node *node, struct error *err)
{
    struct gremlin_lexeme brace = parser->token;
    struct growth growth = {0};
    struct gremlin_node *item = NULL;
    struct error inner;

    node->kind = GREMLIN_NODE_SET;
    if (!advance(parser, err))
        return false;
    if (gremlin_lexeme_is(&parser->token, '}'))
        return advance(parser, err);
    for (;;) {
        if (token_is_name(&parser->token, "it"))
            return closure_refuse(&brace, err);
        if (!expression_parse(parser, &item, &inner)) {
            if (inner.code == ERROR_GREMLIN_SCRIPT_LIMIT) {
                *err = inner;
                return false;
            }
            return closure_refuse(&brace, err);
        }
        node_append(parser, &node->items, &growth, item);
        node->count = growth.count;
        if (gremlin_lexeme_is(&parser->token, '}'))
            return advance(parser, err);
        if (!gremlin_lexeme_is(&parser->token, ','))
            return closure_refuse(&brace, err);
        if (!advance(parser, err))
            return false;
    }
}

/* (expression), or a cast before one: (String) null. */
static bool parenthesis_parse(struct parser *parser, struct gremlin_node **ret_node,
                              struct error *err)
{
    struct gremlin_node *inner;
    bool literal;

    if (!advance(parser, err) || !expression_parse(parser, &inner, err) ||
        !expect(parser, ')', "')'", err))
        return false;
    inner->enclosed = true;
    *ret_node = inner;
    literal = token_is_name(&parser->token, "null") ||
              parser->token.kind == GREMLIN_LEXEME_STRING ||
              parser->token.kind == GREMLIN_LEXEME_NUMBER;
    if (gremlin_node_is_word(inner) && literal && !parser->token.on_new_line) {
        struct slice type = inner->links[0].name;

        /* Java needs the type of a null to choose a method; here it says nothing. */
        if (!token_is_name(&parser->token, "null"))
            return gremlin_compile_error(err, inner->line, inner->column,
                                         "casts are not supported, except of null");
        if (type.data[0] < 'A' || type.data[0] > 'Z')
            return gremlin_compile_error(err, inner->line, inner->column,
                                         "'%.*s' is no type that null can be cast to",
                                         SLICE_ARG(type));
        return operand_parse(parser, ret_node, err);
    }
    return true;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* uXXXX, with the backslash before it already taken. */
static bool unit_read(const uint8_t **at, const uint8_t *end, uint32_t *ret_unit)
{
    uint32_t unit = 0;

    while (*at < end && **at == 'u')
        ++*at; /* Groovy allows several */
    if (end - *at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit((*at)[i]);

        if (digit < 0)
            return false;
        unit = unit << 4 | (uint32_t)digit;
    }
    *at += 4;
    *ret_unit = unit;
    return true;
}

/* One character by its code, a pair of surrogates as one. A single surrogate is kept, as documents
 * keep it. */
static bool unicode_read(const uint8_t **at, const uint8_t *end, uint32_t *ret_code)
{
    uint32_t high, low;
    const uint8_t *next;

    if (!unit_read(at, end, &high))
        return false;
    if (high >= 0xD800 && high < 0xDC00 && end - *at >= 6 && (*at)[0] == '\\' && (*at)[1] == 'u') {
        next = *at + 1;
        if (!unit_read(&next, end, &low))
            return false;
        if (low >= 0xDC00 && low < 0xE000) {
            *at = next;
            *ret_code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            return true;
        }
    }
    *ret_code = high;
    return true;
}

static bool octal_read(const uint8_t **at, const uint8_t *end, uint32_t *ret_code)
{
    uint32_t code = 0;

    for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++) {
        uint32_t next = code * 8 + (uint32_t)(**at - '0');

        if (next > 0377)
            break;
        code = next;
        ++*at;
    }
    *ret_code = code;
    return true;
}

/* What follows a backslash. */
static bool escape_read(const uint8_t **at, const uint8_t *end, uint32_t *ret_code)
{
    static const char written[] = "btnfr\"'\\$/`", meant[] = "\b\t\n\f\r\"'\\$/`";
    const char *found;

    if (*at == end)
        return false;
    if (**at == 'u')
        return unicode_read(at, end, ret_code);
    if (**at >= '0' && **at <= '7')
        return octal_read(at, end, ret_code);
    found = **at ? strchr(written, **at) : NULL;
    if (!found)
        return false;
    ++*at;
    *ret_code = (uint8_t)meant[found - written];
    return true;
}

static bool string_read(struct parser *parser, struct slice *ret_text, struct error *err)
{
    struct gremlin_lexeme token = parser->token;
    const uint8_t *at = token.text.data, *end = at + token.text.len;
    uint8_t *text, *to;

    if (!memchr(at, '\\', token.text.len)) {
        *ret_text = token.text;
        return advance(parser, err);
    }
    text = to = arena_alloc(parser->arena, token.text.len); /* no escape grows */
    while (at < end) {
        uint32_t code;

        if (*at != '\\') {
            *to++ = *at++;
            continue;
        }
        at++;
        if (at < end && (*at == '\n' || *at == '\r')) { /* the line goes on */
            at += end - at > 1 && at[0] == '\r' && at[1] == '\n' ? 2 : 1;
            continue;
        }
        if (!escape_read(&at, end, &code))
            return gremlin_syntax_error(err, token.line, token.column,
                                        "the string has an escape that does not exist");
        to += utf8_encode(code, to);
    }
    *ret_text = slice_of(text, (size_t)(to - text));
    return advance(parser, err);
}
