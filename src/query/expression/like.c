/* LIKE: a pattern compiled to tokens, matched by walking the text once and going back to the last %
 * when it does not go on. That is at worst text times pattern, and each step back counts as work.
 *
 *     %        any characters, none too          [a-cx]   one of these
 *     _        any one character                 [^a-c]   one that is none of these
 *
 * A [ without its ] is an ordinary character, and so is whatever follows the escape character. */
#include "query/expression/imply.h"
#include "query/value/compare.h"
#include "query/value/text.h"

enum like_token_kind { LIKE_TEXT, LIKE_ONE, LIKE_ANY, LIKE_SET };

struct like_token {
    enum like_token_kind kind;
    bool negated;       /* of a set */
    struct slice bytes; /* text; of a set: its members as written */
};

struct like_pattern {
    size_t count;
    struct like_token *tokens;
    uint32_t escape; /* NO_ESCAPE: none */
};

#define NO_ESCAPE UINT32_MAX

struct like_node {
    struct query_expression head;
    bool compiled;
    struct like_pattern pattern;
};

/* --- Compiling ------------------------------------------------------------------------------- */

/* The end of the set that opens before `at`: its ], or NULL. */
static const uint8_t *set_end(const uint8_t *at, const uint8_t *end, uint32_t escape)
{
    while (at < end) {
        size_t len;
        uint32_t code = query_text_decode(at, end, &len);

        if (code == escape && at + len < end) {
            at += len;
            query_text_decode(at, end, &len);
        } else if (code == ']') {
            return at;
        }
        at += len;
    }
    return NULL;
}

/* Text runs are kept apart from the pattern, for escapes leave them. */
static void text_add(struct like_pattern *pattern, uint8_t **text, const uint8_t *at, size_t len)
{
    struct like_token *last = pattern->count ? &pattern->tokens[pattern->count - 1] : NULL;

    memcpy(*text, at, len);
    if (!last || last->kind != LIKE_TEXT) {
        last = &pattern->tokens[pattern->count++];
        *last = (struct like_token){.kind = LIKE_TEXT, .bytes = slice_of(*text, 0)};
    }
    last->bytes.len += len;
    *text += len;
}

/* tokens has room for one per byte, text for all bytes. */
static void pattern_parse(struct slice source, uint8_t *text, struct like_pattern *pattern)
{
    const uint8_t *at = source.data, *end = at + source.len, *close;

    while (at < end) {
        size_t len;
        uint32_t code = query_text_decode(at, end, &len);
        struct like_token token = {0};

        if (code == pattern->escape && at + len < end) {
            at += len;
            query_text_decode(at, end, &len);
            text_add(pattern, &text, at, len);
            at += len;
            continue;
        }
        at += len;
        if (code == '%') {
            token.kind = LIKE_ANY;
        } else if (code == '_') {
            token.kind = LIKE_ONE;
        } else if (code == '[' && (close = set_end(at, end, pattern->escape))) {
            token = (struct like_token){LIKE_SET, at < close && *at == '^', SLICE_NONE};
            at += token.negated;
            token.bytes = slice_of(at, (size_t)(close - at));
            at = close + 1;
        } else {
            text_add(pattern, &text, at - len, len);
            continue;
        }
        if (token.kind == LIKE_ANY && pattern->count &&
            pattern->tokens[pattern->count - 1].kind == LIKE_ANY)
            continue;
        pattern->tokens[pattern->count++] = token;
    }
}

/* In the arena; false when the escape is not one character. */
static bool escape_of(const struct document_value *escape, uint32_t *ret_code)
{
    size_t len;

    if (escape->type != DOCUMENT_STRING || escape->text.len == 0)
        return false;
    *ret_code = query_text_decode(escape->text.data, escape->text.data + escape->text.len, &len);
    return len == escape->text.len;
}

/* --- Matching -------------------------------------------------------------------------------- */

/* One member of a set as written: a character, and what it reaches to. */
static const uint8_t *set_member(const uint8_t *at, const uint8_t *end, uint32_t escape,
                                 uint32_t *ret_code)
{
    size_t len;

    *ret_code = query_text_decode(at, end, &len);
    if (*ret_code == escape && at + len < end) {
        at += len;
        *ret_code = query_text_decode(at, end, &len);
    }
    return at + len;
}

static bool set_holds(const struct like_token *token, uint32_t escape, uint32_t code)
{
    const uint8_t *at = token->bytes.data, *end = at + token->bytes.len;
    bool found = false;

    while (at < end && !found) {
        uint32_t low, high;

        at = set_member(at, end, escape, &low);
        high = low;
        if (end - at >= 2 && *at == '-')
            at = set_member(at + 1, end, escape, &high);
        found = code >= low && code <= high;
    }
    return found != token->negated;
}

/* The text behind the token, if it matches at `at`; NULL otherwise. */
static const uint8_t *token_match(const struct like_pattern *pattern,
                                  const struct like_token *token, const uint8_t *at,
                                  const uint8_t *end)
{
    uint32_t code;
    size_t len;

    if (token->kind == LIKE_TEXT) {
        if ((size_t)(end - at) < token->bytes.len ||
            memcmp(at, token->bytes.data, token->bytes.len) != 0)
            return NULL;
        return at + token->bytes.len;
    }
    if (at == end)
        return NULL;
    code = query_text_decode(at, end, &len);
    if (token->kind == LIKE_SET && !set_holds(token, pattern->escape, code))
        return NULL;
    return at + len;
}

static bool pattern_match(const struct like_pattern *pattern, struct slice text,
                          struct query_context *context, bool *ret_match, struct error *err)
{
    const uint8_t *at = text.data, *end = at + text.len, *retry = NULL;
    size_t token = 0, after_any = 0;

    for (;;) {
        const uint8_t *next = NULL;
        size_t len;

        if (!query_work(context, 1, err))
            return false;
        if (token < pattern->count && pattern->tokens[token].kind == LIKE_ANY) {
            after_any = ++token;
            retry = at;
            if (token == pattern->count) {
                *ret_match = true;
                return true;
            }
            continue;
        }
        if (token == pattern->count && at == end) {
            *ret_match = true;
            return true;
        }
        if (token < pattern->count)
            next = token_match(pattern, &pattern->tokens[token], at, end);
        if (next) {
            at = next;
            token++;
            continue;
        }
        if (!retry || retry == end) {
            *ret_match = false;
            return true;
        }
        query_text_decode(retry, end, &len);
        retry += len;
        at = retry;
        token = after_any;
    }
}

/* --- The node -------------------------------------------------------------------------------- */

static bool pattern_of_row(const struct query_expression *expression, struct slice source,
                           struct query_context *context, struct like_pattern *ret_pattern,
                           bool *ret_usable, struct error *err)
{
    uint8_t *text;

    *ret_pattern = (struct like_pattern){.escape = NO_ESCAPE};
    *ret_usable = true;
    if (expression->child_count > 2) {
        struct document_value escape;

        if (!query_evaluate(expression->children[2], context, &escape, err))
            return false;
        if (!escape_of(&escape, &ret_pattern->escape)) {
            *ret_usable = false;
            return true;
        }
    }
    ret_pattern->tokens = query_alloc(context, (source.len + 1) * sizeof *ret_pattern->tokens, err);
    text = query_alloc(context, source.len + 1, err);
    if (!ret_pattern->tokens || !text)
        return false;
    pattern_parse(source, text, ret_pattern);
    return true;
}

static bool like_evaluate(const struct query_expression *expression, struct query_context *context,
                          struct document_value *ret_value, struct error *err)
{
    const struct like_node *node = (const struct like_node *)expression;
    struct like_pattern pattern = node->pattern;
    struct document_value text, source;
    bool match, usable = true;

    if (!query_evaluate(expression->children[0], context, &text, err))
        return false;
    *ret_value = document_undefined();
    if (text.type != DOCUMENT_STRING)
        return true;
    if (!node->compiled) {
        if (!query_evaluate(expression->children[1], context, &source, err))
            return false;
        if (source.type != DOCUMENT_STRING)
            return true;
        if (!pattern_of_row(expression, source.text, context, &pattern, &usable, err))
            return false;
        if (!usable)
            return true;
    }
    if (!pattern_match(&pattern, text.text, context, &match, err))
        return false;
    *ret_value = document_bool(match);
    return true;
}

static const struct query_implied *like_imply(const struct query_expression *expression,
                                              const struct query_implying *implying, bool truth)
{
    struct query_operand operand;
    struct document_value text;
    struct slice prefix;
    bool whole;

    if (!truth || !query_like_prefix(expression, &prefix, &whole))
        return NULL;
    operand = query_operand_of(implying, expression->children[0]);
    text = document_string(prefix);
    if (whole)
        return query_implied_points(implying, &operand, &text, 1);
    return query_implied_inexact(implying, query_implied_prefix(implying, &operand, prefix));
}

const struct query_kind query_kind_like = {"like", like_evaluate, QUERY_STABLE, like_imply};

static void pattern_compile(struct query_build *build, struct slice source,
                            struct like_pattern *pattern)
{
    pattern->tokens = ARENA_ARRAY(build->arena, struct like_token, source.len + 1);
    pattern_parse(source, arena_alloc(build->arena, source.len + 1), pattern);
}

const struct query_expression *query_like(struct query_build *build,
                                          const struct query_expression *text,
                                          const struct query_expression *pattern,
                                          const struct query_expression *escape)
{
    const struct query_expression *children[] = {text, pattern, escape};
    struct like_node *node =
        query_node(build, &query_kind_like, sizeof *node, children, escape ? 3 : 2);

    node->pattern.escape = NO_ESCAPE;
    if (escape && query_is_constant(escape) &&
        !escape_of(query_constant_value(escape), &node->pattern.escape))
        return query_build_fail(build, ERROR_BAD_REQUEST,
                                "the escape of LIKE is not a single character");
    if (query_is_constant(pattern) && (!escape || query_is_constant(escape))) {
        const struct document_value *source = query_constant_value(pattern);

        if (source->type != DOCUMENT_STRING)
            return query_constant(build, document_undefined());
        pattern_compile(build, source->text, &node->pattern);
        node->compiled = true;
    }
    return query_fold(build, &node->head);
}

bool query_like_prefix(const struct query_expression *like, struct slice *ret_prefix,
                       bool *ret_exact)
{
    const struct like_node *node = (const struct like_node *)like;
    const struct like_pattern *pattern = &node->pattern;
    bool text_first;

    if (like->kind != &query_kind_like || !node->compiled)
        return false;
    text_first = pattern->count && pattern->tokens[0].kind == LIKE_TEXT;
    *ret_prefix = text_first ? pattern->tokens[0].bytes : SLICE("");
    *ret_exact = pattern->count == text_first;
    return true;
}
