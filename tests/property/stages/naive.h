/* Naive: chains of stages over rows in memory, with values, orders and rules of their own that
 * share nothing with src/query. Slow and plain on purpose: lists are copied, frames looked at row
 * by row. */
#pragma once

#include "base/arena.h"
#include "document/value.h"

#include <stdbool.h>
#include <stddef.h>

enum naive_type {
    NAIVE_UNDEFINED,
    NAIVE_NULL,
    NAIVE_BOOL,
    NAIVE_NUMBER,
    NAIVE_TEXT,
    NAIVE_ARRAY,
    NAIVE_OBJECT,
};

struct naive {
    enum naive_type type;
    double number; /* of a bool 0 or 1 */
    const char *text;
    struct naive *items;
    const char **names; /* of an object */
    size_t count;
};

struct naive naive_of(const struct document_value *value, struct arena *arena);
const char *naive_print(const struct naive *value, struct arena *arena);

/* In the order of SQL, or of MongoDB. */
int naive_compare(bool mongo, const struct naive *a, const struct naive *b);

enum { NAIVE_SLOTS = 200 };

struct naive_row {
    struct naive slots[NAIVE_SLOTS];
};

struct naive_rows {
    struct naive_row **list;
    size_t count, capacity;
};

void naive_add(struct naive_rows *rows, struct naive_row *row, struct arena *arena);

/* What stands in a slot, or a property of it. */
struct naive_expr {
    unsigned slot;
    const char *field; /* NULL: the slot itself */
};

/* A comparison as SQL has it: of values of one type, else not true. */
enum naive_test { NAIVE_EQUAL, NAIVE_LESS, NAIVE_GREATER_EQUAL };

enum naive_aggregate { NAIVE_COUNT, NAIVE_SUM, NAIVE_AVG, NAIVE_MIN, NAIVE_MAX };

enum naive_output_kind {
    NAIVE_AGGREGATE,
    NAIVE_FIRST,
    NAIVE_LAST,
    NAIVE_RANK,
    NAIVE_DENSE_RANK,
    NAIVE_ROW_NUMBER,
    NAIVE_SHIFT,
    NAIVE_FOLD, /* the last value so far that is something */
};

struct naive_output {
    enum naive_output_kind kind;
    enum naive_aggregate aggregate;
    struct naive_expr argument;
    bool range, from_open, to_open;
    double from, to;
    int shift;
    unsigned slot;
};

enum naive_kind {
    NAIVE_MATCH,
    NAIVE_MATCH_SLOTS, /* two expressions compared */
    NAIVE_UNWIND,
    NAIVE_PROJECT,
    NAIVE_PROJECT_OBJECT,
    NAIVE_GROUP,
    NAIVE_SORT,
    NAIVE_SKIP,
    NAIVE_LIMIT,
    NAIVE_DISTINCT,
    NAIVE_LOOKUP,
    NAIVE_FACET,
    NAIVE_UNION,
    NAIVE_WINDOW,
};

enum { NAIVE_LIST = 8 };

struct naive_chain;

struct naive_stage {
    enum naive_kind kind;
    enum naive_test test;
    struct naive constant;
    struct naive_expr exprs[NAIVE_LIST]; /* keys, orders, values of an object */
    bool descending[NAIVE_LIST];
    const char *names[NAIVE_LIST];
    unsigned slots[NAIVE_LIST]; /* what is bound */
    size_t count;
    enum naive_aggregate aggregates[NAIVE_LIST];
    struct naive_expr arguments[NAIVE_LIST];
    unsigned argument_slots[NAIVE_LIST];
    size_t argument_count;
    bool keep_empty, indexed;
    size_t amount;

    /* Lookups and unions: a chain over the documents; the row's let is in let_slot of it. */
    const struct naive_chain *chains[NAIVE_LIST];
    bool has_local, has_let;
    struct naive_expr local, let;
    const char *foreign;
    unsigned let_slot;

    struct naive_expr partition[NAIVE_LIST];
    size_t partition_count;
    struct naive_output outputs[NAIVE_LIST];
    size_t output_count;
};

enum { NAIVE_STAGES = 16 };

/* Rows that come out are objects of the slots that are bound in the end, by the name sN. */
struct naive_chain {
    struct naive_stage stages[NAIVE_STAGES];
    size_t count;
    unsigned bound[NAIVE_LIST * 4];
    size_t bound_count;
};

/* The rows that come out; documents is what lookups and unions read. */
struct naive *naive_run(const struct naive_chain *chain, bool mongo, const struct naive_rows *input,
                        const struct naive_rows *documents, struct arena *arena, size_t *ret_count);
