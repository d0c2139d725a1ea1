/* Naive: queries answered straight from the syntax tree, as the manual of the language reads.
 *
 * A second opinion for tests: values are trees, rows are lists, nothing is folded, indexed,
 * streamed or shared with src/query. It knows the part of the language that queries.h writes. */
#pragma once

#include "base/arena.h"
#include "document/value.h"
#include "front/rest/sql/ast.h"

enum naive_kind { /* in the order of ORDER BY */
                  NAIVE_UNDEFINED,
                  NAIVE_NULL,
                  NAIVE_BOOL,
                  NAIVE_NUMBER,
                  NAIVE_TEXT,
                  NAIVE_ARRAY,
                  NAIVE_OBJECT,
};

struct naive {
    enum naive_kind kind;
    bool boolean;
    double number;
    struct slice text;
    size_t count;        /* of an array or object */
    struct naive *items; /* its elements or values */
    struct slice *names; /* of an object */
};

struct naive_rows {
    struct naive *rows;
    size_t count, room;
};

struct naive naive_of(const struct document_value *value, struct arena *arena);

/* The order of ORDER BY, over all values; 0: equal. */
int naive_compare(const struct naive *a, const struct naive *b);

/* The rows of a resolved and bound query over documents; *ret_all: those before TOP, OFFSET and
 * LIMIT. False: a subquery gave two values where one is asked for. */
bool naive_query(const struct sql_query *query, const struct naive *documents, size_t count,
                 struct arena *arena, struct naive_rows *ret_rows, struct naive_rows *ret_all);
