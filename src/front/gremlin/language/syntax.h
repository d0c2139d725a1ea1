/* Syntax: a script as a tree, before its names mean anything.
 *
 * Groovy's call chains are one kind of node: g.V(1).out(), P.gt(3).and(lt(5)), T.id, __.in(), x and
 * new Date() are all links joined by points, the first of which says what it is. What each means is
 * found out by resolve.h. Everything lives in the arena; text that needed no change is borrowed. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

enum gremlin_node_kind {
    GREMLIN_NODE_NULL,
    GREMLIN_NODE_BOOLEAN,
    GREMLIN_NODE_NUMBER, /* text with its suffix; truth: negative */
    GREMLIN_NODE_STRING, /* text, escapes replaced */
    GREMLIN_NODE_LIST,   /* items */
    GREMLIN_NODE_SET,    /* items */
    GREMLIN_NODE_MAP,    /* items: key and value in turn */
    GREMLIN_NODE_RANGE,  /* two items */
    GREMLIN_NODE_NAMED,  /* an argument with its name: text and one item */
    GREMLIN_NODE_CHAIN,  /* links */
};

struct gremlin_node;

struct gremlin_link {
    struct slice name;
    uint32_t line, column;
    bool called;
    struct gremlin_node **arguments;
    size_t count;
};

struct gremlin_node {
    enum gremlin_node_kind kind;
    uint32_t line, column;
    struct slice text;
    bool truth;    /* the boolean; the sign of a number; of a chain: begins with "new" */
    bool enclosed; /* stands in parentheses: a key that is no bare word */
    struct gremlin_node **items;
    size_t count;
    struct gremlin_link *links;
    size_t link_count;
};

struct gremlin_syntax_statement {
    struct slice name; /* assigned to; absent: nothing */
    struct gremlin_node *node;
};

struct gremlin_syntax {
    struct gremlin_syntax_statement *statements;
    size_t count;
};

/* Parses text, valid UTF-8 and borrowed as long as the arena. GREMLIN_SCRIPT: it is not
 * well-formed; GREMLIN_SCRIPT_LIMIT: something lies deeper than depth_max. */
NODISCARD bool gremlin_syntax_parse(struct slice text, size_t depth_max, struct arena *arena,
                                    struct gremlin_syntax *ret_syntax, struct error *err);

/* A chain of one link that is not called: a bare word. */
static inline bool gremlin_node_is_word(const struct gremlin_node *node)
{
    return node->kind == GREMLIN_NODE_CHAIN && node->link_count == 1 && !node->links[0].called &&
           !node->truth;
}
