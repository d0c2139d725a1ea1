/* Queries for the tests of this folder, from text. */
#pragma once

#include "front/rest/sql/parser.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/resolve.h"
#include "support/check.h"
#include "support/documents.h"

static inline struct sql_query *parsed(struct arena *arena, const char *text)
{
    struct sql_query *query = NULL;
    struct error err;

    if (!sql_parse(slice_of_text(text), NULL, arena, &query, NULL, &err))
        fail_msg("%s: %s", text, err.message);
    return query;
}

/* parameters: JSON, or NULL. */
static inline struct sql_query *bound(struct arena *arena, const char *text, const char *parameters)
{
    struct sql_query *query = parsed(arena, text);
    struct slice array = parameters ? value_of(arena, parameters).document : SLICE_NONE;
    struct error err;

    if (!sql_bind(query, array, arena, NULL, &err))
        fail_msg("%s: %s", text, err.message);
    return query;
}

static inline struct sql_query *resolved(struct arena *arena, const char *text,
                                         const char *parameters)
{
    struct sql_query *query = bound(arena, text, parameters);
    struct error err;

    if (!sql_resolve(query, arena, NULL, &err))
        fail_msg("%s: %s", text, err.message);
    return query;
}

static inline const char *printed(struct arena *arena, const struct sql_query *query)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    sql_print(query, &text);
    return arena_text(arena, buf_slice(&text));
}

/* The first select item. */
static inline struct sql_expr *first_of(const struct sql_query *query)
{
    return query->items[0].expr;
}
