/* Filter: the $filter of a query, parsed.
 *
 *     expr    := and ('or' and)*          and := unary ('and' unary)*
 *     unary   := 'not' unary | '(' expr ')' | comparison
 *     comparison := operand (eq|ne|gt|ge|lt|le) operand | boolean operand
 *     operand := property | 'text' | 12 | 12L | 1.5 | true | datetime'...' | guid'...' | X'0102'
 *
 * One side of a comparison is a literal. A comparison with a property that is not there, or of
 * another type than the literal, is false, whatever its operator; numbers are of one type. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "front/table/edm.h"
#include "query/expression/expression.h"

enum {
    TABLE_FILTER_BYTES_MAX = 32 * 1024,
    TABLE_FILTER_DEPTH_MAX = 64, /* of parentheses and nots */
    TABLE_FILTER_COMPARISONS_MAX = 256,
};

enum table_filter_kind {
    TABLE_FILTER_AND,
    TABLE_FILTER_OR,
    TABLE_FILTER_NOT,
    TABLE_FILTER_COMPARE,
};

/* A literal, or a property by its name. */
struct table_operand {
    struct slice property;       /* data NULL: it is a literal */
    enum edm_type type;          /* of a literal */
    struct document_value value; /* of it; a date: int64, in ticks */
};

struct table_filter {
    enum table_filter_kind kind;
    const struct table_filter *left, *right; /* of and, or; not has left alone */
    enum query_comparison comparison;
    struct table_operand a, b;
};

/* In the arena. ERROR_BAD_QUERY says at which byte. */
NODISCARD bool table_filter_parse(struct slice text, struct arena *arena,
                                  const struct table_filter **ret_filter, struct error *err);

/* What properties are made of where the filter is compiled. */
struct table_filter_place {
    struct slice partition, row; /* stored names of PartitionKey and RowKey */
    bool entities;               /* of a table: stored names, Timestamp, dates */
};

/* The filter as an expression over slot 0, true for what is wanted. Faults are in the build. */
const struct query_expression *table_filter_compile(const struct table_filter *filter,
                                                    const struct table_filter_place *place,
                                                    struct query_build *build);

/* Both keys, if the filter names them with eq among its conjuncts and says nothing else. */
struct table_keys;
bool table_filter_is_point(const struct table_filter *filter, struct table_keys *ret_keys);
