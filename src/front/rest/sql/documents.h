/* Documents: queries over documents at hand, such as databases, offers and permissions.
 *
 * The same language with the same answers as over items, without index, partitions and pages: what
 * is queried here was listed whole before. */
#pragma once

#include "front/rest/sql/compile.h"

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
    const struct document_value *values;
    size_t count;
};

/* Runs a plan over the documents in their order. The rows are in the arena or borrowed from plan
 * and documents. limits NULL: those of query/context.h. ERROR_QUERY_LIMIT, ERROR_TIMED_OUT;
 * ERROR_BAD_REQUEST: a subquery gave several values where one is asked for. */
NODISCARD bool sql_run_documents(const struct query_plan *plan, const struct slice *documents,
                                 size_t count, const struct query_limits *limits,
                                 struct arena *arena, struct sql_rows *ret_rows, struct error *err);

/* From the body to the rows. */
NODISCARD bool sql_query_documents(struct slice body, const struct slice *documents, size_t count,
                                   const struct query_limits *limits, struct arena *arena,
                                   struct sql_rows *ret_rows, struct sql_error *ret_error,
                                   struct error *err);
