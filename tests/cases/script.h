/* Script: the text of cases, as README.md describes it. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

enum script_expect {
    SCRIPT_ROWS,  /* these rows */
    SCRIPT_COUNT, /* so many rows */
    SCRIPT_NEAR,  /* one row: a number near that of rows[0] */
    SCRIPT_ERROR, /* a fault whose code or message has `error` in it */
};

/* What the queries behind it are run over. */
struct script_world {
    struct slice *documents; /* JSON, one each */
    size_t document_count;
    struct slice computed; /* JSON array; absent: none */
    struct slice policy;   /* JSON object; absent: the default */
    struct slice vectors;  /* vectorEmbeddingPolicy, JSON object; absent: none */
};

struct script_case {
    const struct script_world *world;
    unsigned line;
    struct slice query;
    struct slice parameters; /* JSON array as in the body of a request */
    enum script_expect expect;
    bool documents_only;  /* not over containers */
    bool containers_only; /* over those with the indexes of their policy alone */
    bool sets;            /* arrays in rows may be in any order */
    struct slice *rows;
    size_t row_count;
    size_t count;       /* of SCRIPT_COUNT */
    struct slice error; /* of SCRIPT_ERROR */
};

struct script {
    struct script_case *cases;
    size_t count;
};

/* All cases of a text, in the arena; the text lives as long. A text that is not of the format ends
 * the program with a message. */
struct script script_read(const char *path, struct slice text, struct arena *arena);
