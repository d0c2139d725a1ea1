/* The compiler from within: queries in compile.c, expressions in sql_compile_expr.c. */
#pragma once

#include "front/rest/sql/compile.h"

struct sql_compiler {
    struct query_build build;
    const struct sql_report *report;
    const struct sql_compile_options *options;
    uint32_t slots; /* of the row, given out so far */

    /* What each alias stands for, by the slot number of its source in the tree. */
    const struct query_expression **aliases;
    uint32_t alias_room;

    struct query_reference *references; /* QUERY_REFERENCES_MAX, once there is one */
    size_t reference_count;
};

/* The sources and the condition of a resolved query alone, as a plan that is only looked at:
 * user-defined functions need not be there, and a parameter without value could be anything. What
 * cannot be compiled is no condition. In the arena. */
void sql_compile_filter(const struct sql_query *query, struct arena *arena,
                        struct query_plan *ret_plan);

/* One query of those around an expression. */
struct sql_level {
    const struct sql_level *outer; /* NULL: the outermost */
    const struct sql_query *query;
    bool selecting;    /* SELECT is being compiled: rows are groups, if there are any */
    uint32_t key_slot; /* of the first group key; the others follow */
    struct query_aggregate_call *aggregates;
    size_t aggregate_count, aggregate_room;
};

/* Refuses a part of the text by name; the build has failed then. */
const struct query_expression *sql_compile_refuse(struct sql_compiler *compiler,
                                                  struct sql_span span, const char *format, ...)
    PRINTF_LIKE(3, 4);

const struct query_expression *sql_compile_expr(struct sql_compiler *compiler,
                                                struct sql_level *level,
                                                const struct sql_expr *expr);

/* What a source that is a REFERENCE walks: the items that have the key which the WHERE of its query
 * says (compile_reference.c). */
const struct query_expression *sql_compile_reference(struct sql_compiler *compiler,
                                                     struct sql_level *level,
                                                     const struct sql_source *source);

/* A query within another; the sources of that one come first. NULL where the build failed. */
const struct query_subquery *sql_compile_subquery(struct sql_compiler *compiler,
                                                  const struct sql_level *outer,
                                                  const struct sql_query *query);
