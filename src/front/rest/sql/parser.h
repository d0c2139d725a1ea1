/* Parser: query text to syntax tree.
 *
 * Only the grammar is looked at; whether names, functions and clauses make sense together is for
 * resolve.h. The limits of the service hold while parsing, so that a text over them costs no more
 * than reading it that far; nesting is bounded, so the C stack is safe for the parser and for
 * everything that walks the tree. */
#pragma once

#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"

enum { SQL_ORDER_ITEMS_MAX = 64, SQL_GROUP_ITEMS_MAX = 64 };

struct sql_limits {
    size_t text_bytes_max;
    uint32_t joins_max;
    uint32_t and_max, or_max; /* operators of each kind */
    uint32_t in_items_max;    /* of one IN */
    uint32_t udf_calls_max;
    uint32_t height_max;  /* of the tree */
    uint32_t nesting_max; /* of parentheses, brackets, braces and subqueries in the text */
};

/* What the service has, or its clients need; height and nesting are ours. */
extern const struct sql_limits SQL_LIMITS_DEFAULT;

/* Parses a whole query into the arena; limits NULL: the defaults. text must live as long as the
 * tree. ERROR_BAD_QUERY with ret_error (which may be NULL) saying more: SC1001, SC1010, or a limit.
 */
NODISCARD bool sql_parse(struct slice text, const struct sql_limits *limits, struct arena *arena,
                         struct sql_query **ret_query, struct sql_error *ret_error,
                         struct error *err);

/* The same for the condition of a patch: `from c where ...`, no SELECT and nothing behind WHERE. */
NODISCARD bool sql_parse_condition(struct slice text, const struct sql_limits *limits,
                                   struct arena *arena, struct sql_query **ret_query,
                                   struct sql_error *ret_error, struct error *err);

/* Gives the parameters of the query their values: parameters is the BSON array of
 * {"name": "@p", "value": ...}, or absent. Values are borrowed from it; one without "value" is
 * undefined. More of them than the query names is fine. SC2001: the query names one that is not
 * given; also refused: entries of another shape, and two values for one name. */
NODISCARD bool sql_bind(struct sql_query *query, struct slice parameters, struct arena *arena,
                        struct sql_error *ret_error, struct error *err);

/* Makes literals of the parameters of a query that is bound: for texts that go without them. */
void sql_bind_literally(struct sql_query *query);
