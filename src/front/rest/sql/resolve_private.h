/* The resolver from within: names and functions in resolve.c, rules between clauses in check.c. */
#pragma once

#include "front/rest/sql/resolve.h"

/* What names mean at one place: the first `visible` sources of query, then what is around it. */
struct sql_scope {
    const struct sql_scope *outer; /* NULL for the outermost query */
    struct sql_query *query;
    uint32_t visible;
};

/* --- check.c: after names and functions are resolved --------------------------------------------
 */

/* SELECT * where it means something; columns with names of their own, which are set here. */
NODISCARD bool sql_check_select(struct sql_query *query, struct arena *arena,
                                const struct sql_report *report);

/* With aggregates or GROUP BY, no expression may depend on a single row. */
NODISCARD bool sql_check_grouping(const struct sql_query *query, const struct sql_report *report);

NODISCARD bool sql_check_order(const struct sql_query *query, bool outermost, struct arena *arena,
                               const struct sql_report *report);
NODISCARD bool sql_check_amounts(const struct sql_query *query, const struct sql_report *report);

/* No two of the names are equal; spans say where each is. */
struct sql_named {
    struct slice name;
    struct sql_span span;
};
NODISCARD bool sql_check_unique(struct sql_named *names, size_t count, const char *what,
                                const struct sql_report *report);
