/* Sql error: what is wrong with a query, where, and in the words of the service.
 *
 * The text of the service is longer than struct error holds; it lives here, in an arena, and
 * sql_error_render makes the message of the answer from it. err gets the same fault with a message
 * cut to its size, so that callers that know nothing of SQL can pass it up. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "front/rest/sql/ast.h"

struct sql_error {
    const char *code; /* "SC2001"; "2206", a number; "": the service has none, or we do not know */
    bool located;     /* the span is known */
    struct sql_span span;
    struct slice message; /* in the arena */
};

/* Whom the parts of this folder tell of a fault. */
struct sql_report {
    struct arena *arena;
    struct sql_error *error; /* may be NULL */
    struct error *err;
};

/* Fills both errors and returns false. code is a literal. */
bool sql_report_at(const struct sql_report *report, const char *code, struct sql_span span,
                   const char *format, ...) PRINTF_LIKE(4, 5);

/* The same where the service tells a code and no place. */
bool sql_report_code(const struct sql_report *report, const char *code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A fault of the query as a whole, which the service words without code and place. */
bool sql_report_whole(const struct sql_report *report, enum error_code face, const char *format,
                      ...) PRINTF_LIKE(3, 4);

/* Known but not offered: ERROR_QUERY_NOT_SUPPORTED. */
bool sql_report_unsupported(const struct sql_report *report, struct sql_span span,
                            const char *format, ...) PRINTF_LIKE(3, 4);

/* A piece of the query for a message: not longer than a message should be, cut between
 * characters. */
struct slice sql_excerpt(struct slice text);

/* Appends the text the service puts into `message`, up to where "\r\nActivityId: " would follow:
 *
 *     Message: {"errors":[{"severity":"Error","location":{"start":7,"end":14},"code":"SC2005",
 *               "message":"..."}]}                            (without the line break)
 *     Message: {"Errors":["..."]}                             where neither place nor code is known
 */
void sql_error_render(const struct sql_error *error, struct buf *buf);
