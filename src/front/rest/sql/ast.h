/* The syntax tree of a query: what the parser makes, what resolve.h completes, what is printed,
 * planned and compiled.
 *
 * All nodes live in the arena of the parse, as do decoded texts; slices of names may also point
 * into the query text, which must live as long. The parser fills everything but the fields marked
 * "resolved" and "bound". A tree is never higher than the limits of the parse allow, so that
 * walking it recursively is safe.
 *
 * Chains of AND and of OR are one node with many items: `a AND b AND c` and `(a AND b) AND c` are
 * the same tree. All other binary operators have two operands. Parentheses leave no trace. */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "document/value.h"

/* From start, inclusive, to end, exclusive, in the query text: counted in UTF-16 units, as the
 * service and most of its clients count characters. */
struct sql_span {
    uint32_t start, end;
};

enum sql_expr_kind {
    SQL_EXPR_LITERAL,     /* undefined, null, a boolean, number or string */
    SQL_EXPR_PARAMETER,   /* @name */
    SQL_EXPR_NAME,        /* a FROM alias */
    SQL_EXPR_MEMBER,      /* object.name and object["name"] */
    SQL_EXPR_INDEX,       /* object[expression], with anything but a string literal */
    SQL_EXPR_ARRAY,       /* [a, b] */
    SQL_EXPR_OBJECT,      /* {"a": x} */
    SQL_EXPR_CALL,        /* a built-in function, aggregates too */
    SQL_EXPR_UDF,         /* udf.name(...) */
    SQL_EXPR_SUBQUERY,    /* (SELECT ...), EXISTS(SELECT ...), ... */
    SQL_EXPR_UNARY,       /* + - ~ NOT */
    SQL_EXPR_BINARY,      /* everything with two operands but AND and OR */
    SQL_EXPR_AND,         /* two or more items */
    SQL_EXPR_OR,          /* two or more items */
    SQL_EXPR_CONDITIONAL, /* condition ? then : otherwise */
    SQL_EXPR_BETWEEN,     /* operand [NOT] BETWEEN low AND high */
    SQL_EXPR_IN,          /* operand [NOT] IN (items) */
    SQL_EXPR_LIKE,        /* operand [NOT] LIKE pattern [ESCAPE escape] */
};

enum sql_unary {
    SQL_UNARY_PLUS,
    SQL_UNARY_MINUS,
    SQL_UNARY_BIT_NOT, /* ~ */
    SQL_UNARY_NOT,     /* NOT, ! */
};

enum sql_binary {
    SQL_BINARY_MULTIPLY,
    SQL_BINARY_DIVIDE,
    SQL_BINARY_MODULO,
    SQL_BINARY_ADD,
    SQL_BINARY_SUBTRACT,
    SQL_BINARY_SHIFT_LEFT,       /* << */
    SQL_BINARY_SHIFT_RIGHT,      /* >> */
    SQL_BINARY_SHIFT_RIGHT_ZERO, /* >>> */
    SQL_BINARY_LESS,
    SQL_BINARY_LESS_EQUAL,
    SQL_BINARY_GREATER,
    SQL_BINARY_GREATER_EQUAL,
    SQL_BINARY_EQUAL,
    SQL_BINARY_NOT_EQUAL, /* != and <> */
    SQL_BINARY_BIT_AND,
    SQL_BINARY_BIT_XOR,
    SQL_BINARY_BIT_OR,
    SQL_BINARY_CONCAT,   /* || */
    SQL_BINARY_COALESCE, /* ?? */
    SQL_BINARY_COUNT
};

enum sql_subquery_kind {
    SQL_SUBQUERY_SCALAR, /* its single value */
    SQL_SUBQUERY_EXISTS,
    SQL_SUBQUERY_ARRAY,
    SQL_SUBQUERY_ALL,
    SQL_SUBQUERY_FIRST,
    SQL_SUBQUERY_LAST,
};

struct sql_query;
struct sql_source;
struct sql_function; /* functions.h */

struct sql_exprs {
    struct sql_expr **items;
    uint32_t count, capacity;
};

struct sql_property {
    struct slice name; /* decoded */
    struct sql_span span;
    struct sql_expr *value;
};

struct sql_expr {
    enum sql_expr_kind kind;
    uint32_t height; /* 1 for a leaf */
    struct sql_span span;
    union {
        struct document_value literal; /* text in the arena or in the query text */
        struct {
            struct slice name;                  /* with the @ */
            const struct document_value *value; /* bound: NULL before sql_bind */
        } parameter;
        struct {
            struct slice name;
            const struct sql_source *source; /* resolved: whose rows it stands for */
        } name;
        struct {
            struct sql_expr *object;
            struct slice name; /* decoded */
        } member;
        struct {
            struct sql_expr *object, *index;
        } index;
        struct sql_exprs items; /* ARRAY, AND, OR */
        struct {
            struct sql_property *properties;
            uint32_t count, capacity;
        } object;
        struct {
            struct slice name; /* as written; of a UDF without "udf." */
            struct sql_exprs arguments;
            const struct sql_function *function; /* resolved; NULL for a UDF */
        } call;                                  /* CALL, UDF */
        struct {
            enum sql_subquery_kind kind;
            struct sql_query *query;
        } subquery;
        struct {
            enum sql_unary op;
            struct sql_expr *operand;
        } unary;
        struct {
            enum sql_binary op;
            struct sql_expr *left, *right;
        } binary;
        struct {
            struct sql_expr *condition, *then, *otherwise;
        } conditional;
        struct {
            struct sql_expr *operand, *low, *high;
            bool negated;
        } between;
        struct {
            struct sql_expr *operand;
            struct sql_exprs items;
            bool negated;
        } in;
        struct {
            struct sql_expr *operand, *pattern;
            struct sql_expr *escape; /* a string literal, or NULL */
            bool negated;
        } like;
    };
};

/* One source of FROM: the first, or one behind a JOIN. */
struct sql_source {
    struct sql_span span;
    bool iterates;      /* alias IN ...: one row for each element of the array */
    struct slice alias; /* given, or taken from the path; empty: nothing can refer to it */
    bool alias_given;
    /* Exactly one of the three. A path is a NAME or PARAMETER with MEMBER and INDEX steps, the
     * latter with whole-number literals. */
    struct sql_expr *path;
    struct sql_query *subquery; /* without iterates: each of its rows is a row of this source */
    /* Or, with iterates, REFERENCE("container") or REFERENCE("database", "container"): each item of
     * another container that has the key WHERE says. Decoded; data NULL: it is not one. */
    struct slice reference, reference_database;
    uint32_t slot; /* resolved: number of this source, unique in the whole query, from 0 */
    bool root;     /* resolved: the innermost NAME of the path stands for the container */
};

struct sql_select_item {
    struct sql_expr *expr;
    struct slice alias;  /* as given; empty: none */
    struct slice column; /* resolved: the property it becomes, such as alias, last name or $1 */
    struct sql_span span;
};

struct sql_order_item {
    struct sql_expr *expr;
    bool descending;
    bool direction_given; /* ASC or DESC was written */
};

enum sql_select_kind {
    SQL_SELECT_STAR,      /* SELECT * */
    SQL_SELECT_VALUE,     /* SELECT VALUE item: exactly one item */
    SQL_SELECT_LIST,      /* SELECT item, ...: each row is an object */
    SQL_SELECT_CONDITION, /* no SELECT at all: the condition of a patch */
};

struct sql_query {
    struct sql_span span;
    uint32_t height; /* one more than the highest expression, subqueries included */
    bool distinct;
    struct sql_expr *top; /* a literal or parameter, or NULL */
    enum sql_select_kind select;
    struct sql_span star; /* of SELECT * the asterisk */
    struct sql_select_item *items;
    uint32_t item_count;
    struct sql_source **sources; /* none: no FROM, one row */
    uint32_t source_count;
    struct sql_expr *where; /* or NULL */
    struct sql_exprs group_by;
    struct sql_order_item *order_by;
    uint32_t order_count;
    bool order_by_rank;
    uint32_t
        ranks_ascending; /* oriented (vectors.h): bit i: the best of its ith score is the least */
    struct sql_expr *offset, *limit; /* literals or parameters; both or neither */
    bool aggregates; /* resolved: an aggregate is computed at this level, of all rows or a group */
    struct sql_exprs parameters; /* of the outermost query: every PARAMETER in the text */
    bool correlated;             /* resolved: of a subquery: names a source of a query around it */
};

/* --- Making nodes: for the parser and for whoever rewrites a tree ------------------------------
 */

/* A node with everything but kind and span zero; the maker sets height (sql_expr_settle). */
struct sql_expr *sql_expr_new(struct arena *arena, enum sql_expr_kind kind, struct sql_span span);

/* Sets the height from the operands, which must be settled. */
void sql_expr_settle(struct sql_expr *expr);

/* The same for a query, of everything in it. */
void sql_query_settle(struct sql_query *query);

void sql_exprs_add(struct arena *arena, struct sql_exprs *list, struct sql_expr *expr);

/* Settled nodes without a place in any text. */
struct sql_expr *sql_expr_literal(struct arena *arena, struct document_value value);
struct sql_expr *sql_expr_name(struct arena *arena, const struct sql_source *source);
struct sql_expr *sql_expr_member(struct arena *arena, struct sql_expr *object, struct slice name);
struct sql_expr *sql_expr_call(struct arena *arena, const struct sql_function *function,
                               struct sql_expr *argument);
struct sql_expr *sql_expr_object(struct arena *arena);
void sql_expr_object_add(struct arena *arena, struct sql_expr *object, struct slice name,
                         struct sql_expr *value);
struct sql_expr *sql_expr_array_of(struct arena *arena, struct sql_expr *item);
/* left AND right; left may be NULL. */
struct sql_expr *sql_expr_and(struct arena *arena, struct sql_expr *left, struct sql_expr *right);

/* --- Looking at trees ---------------------------------------------------------------------------
 */

/* Calls visit for every direct operand of expr, but not inside subqueries. Stops and returns false
 * as soon as visit does. */
bool sql_expr_each(const struct sql_expr *expr,
                   bool (*visit)(struct sql_expr *child, void *context), void *context);

/* The same for the expressions of a query itself: of its sources, select, where, group by and order
 * by. Subqueries, be they sources or within expressions, are left to the visitor. */
bool sql_query_each(const struct sql_query *query,
                    bool (*visit)(struct sql_expr *expr, void *context), void *context);

/* What member and index steps start from: of c.a[0] the c, of anything else itself. */
struct sql_expr *sql_expr_start(struct sql_expr *expr);

/* The same expressions: names, functions without case, literals by type and value. Where they stand
 * in the text does not count. Both must be settled. */
bool sql_expr_equal(const struct sql_expr *a, const struct sql_expr *b);
bool sql_query_equal(const struct sql_query *a, const struct sql_query *b);
