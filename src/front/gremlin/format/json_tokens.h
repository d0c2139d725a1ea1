/* JSON text cut into tokens, in one pass: strict RFC 8259, bounded in depth and number.
 *
 * The reader of document/ makes BSON, which does not fit here: numbers of more than 64 bits would
 * lose digits (big integers and decimals are bare numbers in GraphSON), and what an object is
 * stands in its "@type", which may follow its value. Tokens leave both to whoever looks: each knows
 * where its value ends, so members are found in any order without reading twice. */
#pragma once

#include "front/gremlin/value/value.h"

enum gremlin_token_kind {
    GREMLIN_TOKEN_NULL,
    GREMLIN_TOKEN_TRUE,
    GREMLIN_TOKEN_FALSE,
    GREMLIN_TOKEN_NUMBER,
    GREMLIN_TOKEN_STRING,
    GREMLIN_TOKEN_ARRAY,
    GREMLIN_TOKEN_OBJECT, /* members follow: name, value, name, value */
};

struct gremlin_token {
    uint32_t kind : 8;
    uint32_t escaped : 1; /* a string with escapes */
    uint32_t begin, len;  /* of the text: of a string without its quotes */
    uint32_t next;        /* the token behind this value and all in it */
    uint32_t count;       /* of items, or members */
};

struct gremlin_tokens {
    struct slice text;
    struct gremlin_heap *heap; /* of the tokens' memory */
    struct gremlin_token *items;
    uint32_t count, capacity;
};

/* ERROR_BAD_JSON with the byte, ERROR_TOO_DEEP, ERROR_TOO_LARGE. The text is borrowed. */
NODISCARD bool gremlin_tokens_init(struct gremlin_tokens *tokens, struct slice text,
                                   struct gremlin_heap *heap, struct error *err);
void gremlin_tokens_done(struct gremlin_tokens *tokens);
CLEANUP_VALUE_FN(struct gremlin_tokens, gremlin_tokens_done)

static inline struct slice gremlin_token_text(const struct gremlin_tokens *tokens, uint32_t at)
{
    return slice_of(tokens->text.data + tokens->items[at].begin, tokens->items[at].len);
}

/* Is the token a string that says this? */
bool gremlin_token_is(const struct gremlin_tokens *tokens, uint32_t at, struct slice text);
/* The value of a member of an object; 0: it has none such (0 is the whole text). */
uint32_t gremlin_token_member(const struct gremlin_tokens *tokens, uint32_t object,
                              struct slice name);
/* A string token as a value, escapes resolved. */
struct gremlin_value gremlin_token_string(const struct gremlin_tokens *tokens, uint32_t at,
                                          struct gremlin_heap *heap);
