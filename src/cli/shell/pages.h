/* Pages: a query and its results, page by page. */
#pragma once

#include "base/buf.h"
#include "cli/shell/ask.h"

/* What is wrong with a query, and where, as the server says it. */
struct shell_fault {
    bool located;
    uint32_t start, end;  /* in the text of the query, in UTF-16 units */
    struct slice code;    /* "SC2001"; empty: none */
    struct slice message; /* empty: the error says all there is to say */
};

struct shell_pages {
    struct shell_server *server;
    struct slice database, container;
    struct slice text;
    struct slice parameters; /* a JSON array; empty: none */
    uint32_t rows_max;       /* of a page */
    bool explain;

    struct slice continuation; /* in the arena of the last page */
    bool ended;
};

struct shell_page {
    struct slice rows;    /* a BSON array, in the arena */
    struct slice explain; /* a BSON document; data NULL: none was asked for */
    double charge;        /* in RU */
};

/* The next page; ended is set with the last one. The arena must live until the next page is there:
 * the continuation is in it. On failure ret_fault says more. */
NODISCARD bool shell_pages_next(struct shell_pages *pages, struct arena *arena,
                                struct shell_page *ret_page, struct shell_fault *ret_fault,
                                struct error *err);

/* Appends the line of the query where the fault is, and below it what is meant:
 *
 *       SELECT * FORM c
 *                ^~~~
 */
void shell_fault_show(const struct shell_fault *fault, struct slice query, struct buf *out);
