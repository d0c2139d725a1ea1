/* Statements: lines become queries and dot commands.
 *
 * A query goes on over lines until a `;` outside of texts, comments and quoted names, or, at a
 * prompt, until an empty line. A line that begins with a dot while no query is open is a command.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum { SHELL_STATEMENT_MAX = 512 * 1024 }; /* bytes of one */

enum shell_inside {
    SHELL_INSIDE_QUERY,
    SHELL_INSIDE_TEXT,    /* '...' or "..." */
    SHELL_INSIDE_LINE,    /* a comment behind -- */
    SHELL_INSIDE_COMMENT, /* one between slashes and stars */
};

struct shell_statements {
    struct buf text;    /* of the open query; what was given back is gone at the next call */
    struct buf waiting; /* of the present line, behind a `;` */
    enum shell_inside inside;
    uint8_t quote;
    bool given;
    bool blank_ends; /* an empty line ends a query */
};

void shell_statements_init(struct shell_statements *statements, bool blank_ends);
void shell_statements_done(struct shell_statements *statements);

/* Takes one line, without its end. shell_statement_next gives what it completes, one by one. */
void shell_statements_feed(struct shell_statements *statements, struct slice line);

/* The next whole statement, without its `;` and without blanks around it; false: more lines are
 * needed. It is good until the next call. */
bool shell_statement_next(struct shell_statements *statements, struct slice *ret_statement);

/* There are no more lines: what is open is whole. False: nothing is. ERROR_TOO_LARGE,
 * ERROR_BAD_QUERY: a text or comment never ends. */
NODISCARD bool shell_statements_end(struct shell_statements *statements,
                                    struct slice *ret_statement, bool *ret_any, struct error *err);

/* Is a query open, so that the prompt should say so? */
bool shell_statements_open(const struct shell_statements *statements);

/* Forgets what is open. */
void shell_statements_forget(struct shell_statements *statements);
