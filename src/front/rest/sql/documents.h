/* Documents: the body of a query request, and queries over documents at hand, such as databases,
 * offers and permissions.
 *
 * The latter are the same language with the same answers as over items, without index and
 * partitions: what is queried was listed whole before. */
#pragma once

#include "front/rest/sql/compile.h"
#include "query/run.h"

/* The body of a query request: {"query": "...", "parameters": [...]}. */
struct sql_body {
    struct slice text;
    struct slice parameters; /* BSON array; absent: none */
};

/* Takes a body apart; everything is borrowed from it. ERROR_BAD_QUERY: no query in it, or parts of
 * another type. */
NODISCARD bool sql_body_read(struct slice body, struct sql_body *ret_body, struct arena *arena,
                             struct sql_error *ret_error, struct error *err);

struct sql_rows {
    struct document_value *values;
    size_t count;
    uint64_t work; /* units of evaluation it took */
};

/* A page of the rows of a query over documents, in their order; copies of them are in the arena.
 * continuation is that of the page before, or empty; so is *ret_continuation after the last.
 * ERROR_BAD_QUERY and its kin from the text; those of query_run_documents. */
NODISCARD bool sql_query_documents(struct slice body, const struct slice *documents, size_t count,
                                   const struct query_page_limits *limits,
                                   struct slice continuation, struct arena *arena,
                                   struct sql_rows *ret_rows, struct slice *ret_continuation,
                                   struct sql_error *ret_error, struct error *err);
