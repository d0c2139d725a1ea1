/* Expressions from within the folder: nodes, operators, and what a call of one is given.
 *
 * An operator is a row of the table in operators.c. Most take their arguments evaluated, from the
 * left (`compute`); those that bind variables or leave arguments alone evaluate them themselves
 * (`evaluate`). */
#pragma once

#include "front/mongo/expression/expression.h"
#include "front/mongo/text.h"
#include "query/value/value.h"

#define EXPRESSION_NEVER UINT32_MAX

enum {
    EXPRESSION_ANY = 255,         /* number of arguments */
    EXPRESSION_LOCALS_MAX = 1000, /* variables that are bound at one place */
    EXPRESSION_STACKED = 8,       /* arguments that are kept on the stack */
    EXPRESSION_NAMES_MAX = 9,     /* named arguments of one operator, a NULL behind the last */
};

struct expression_operator;
struct expression_zone;

struct expression_node {
    struct query_expression head; /* children: the arguments */
    const struct expression_operator *op;
    uint32_t lowest; /* level of the outermost local variable used below; EXPRESSION_NEVER: none */
    uint32_t given;  /* bit n: the nth named argument was written down */
    const struct document_collator *collator; /* of what compares; NULL: texts by their bytes */
    union {
        uint32_t up;                           /* local variable: how many are bound within */
        const struct slice *names;             /* object: one per child; path: the steps */
        const struct expression_zone *zone;    /* date operators: a constant time zone */
        const struct expression_sort *sort;    /* $sortArray */
        const struct document_value *settings; /* $switch and the like: constants */
        uint32_t slot;                         /* root */
        int number;                            /* which of several that share a function */
    };
    size_t name_count; /* of a path */
};

/* One evaluation of an operator with its arguments. */
struct expression_call {
    const struct expression_node *node;
    struct query_context *context;
    const struct document_value *arguments;
    size_t count;
    struct document_value *ret;
    struct error *err;
};

struct expression_compile;

enum expression_form {
    EXPRESSION_LIST,  /* {$op: [a, b]}, {$op: a} where there is one */
    EXPRESSION_NAMED, /* {$op: {input: a, n: b}} */
    EXPRESSION_OWN,   /* the operator reads what it is given itself: parse */
};

struct expression_operator {
    const char *name; /* with its dollar */
    enum expression_form form;
    uint8_t min, max; /* arguments of a list */
    int number;       /* goes to the node, for functions that serve several operators */
    bool (*compute)(struct expression_call *call);
    bool (*evaluate)(const struct expression_node *node, struct query_context *context,
                     struct document_value *ret_value, struct error *err);
    bool (*parse)(struct expression_compile *compile, const struct expression_operator *op,
                  const struct document_value *value, const struct query_expression **ret);
    /* Named arguments, those that must be there first. Errors: not an object, one that is unknown,
     * and one that is missing: by the number of the argument, the last for all others. */
    const char *names[EXPRESSION_NAMES_MAX];
    uint8_t required;
    int code_object, code_unknown, code_missing[4];
    bool unstable;
    bool zoned; /* its argument "timezone" is read when it is constant */
};

extern const struct expression_operator expression_operators[];
extern const size_t expression_operator_count;

/* NULL: there is none. */
const struct expression_operator *expression_operator_find(struct slice name);

/* --- Compiling -------------------------------------------------------------------------------- */

/* A variable that is bound within the expression. */
struct expression_local {
    const struct expression_local *outer;
    struct slice name;
    uint32_t level;
};

struct expression_compile {
    struct query_build *build;
    const struct mongo_expression_options *options;
    const struct expression_local *locals;
    uint32_t depth;  /* local variables that are bound here */
    unsigned nested; /* levels of what is read */
    struct error *err;
};

bool expression_compile_value(struct expression_compile *compile,
                              const struct document_value *value,
                              const struct query_expression **ret);

/* A node of the operator; to be folded when it is complete. */
struct expression_node *expression_node_new(struct expression_compile *compile,
                                            const struct expression_operator *op,
                                            const struct query_expression *const *children,
                                            size_t count);
const struct query_expression *expression_node_fold(struct expression_compile *compile,
                                                    struct expression_node *node);

/* Both at once. */
const struct query_expression *expression_node_make(struct expression_compile *compile,
                                                    const struct expression_operator *op,
                                                    const struct query_expression *const *children,
                                                    size_t count);

/* What is not there, as an argument. */
const struct query_expression *expression_nothing(struct expression_compile *compile);

/* Arguments by name as the operator's row says. */
bool expression_compile_named(struct expression_compile *compile,
                              const struct expression_operator *op,
                              const struct document_value *value,
                              const struct query_expression **arguments, uint32_t *ret_given);

/* --- Evaluating ------------------------------------------------------------------------------- */

/* Null, undefined or missing. */
static inline bool expression_is_nullish(const struct document_value *value)
{
    return value->type == DOCUMENT_NULL || value->type == DOCUMENT_UNDEFINED;
}

/* As $type has it: missing is a type. */
const char *expression_type_name(const struct document_value *value);

/* The value for messages, in the arena of the context. */
const char *expression_show(struct query_context *context, const struct document_value *value);

static inline bool expression_give(struct expression_call *call, struct document_value value)
{
    *call->ret = value;
    return true;
}

/* How two values compare for the operator. */
static inline bool expression_order(struct expression_call *call, const struct document_value *a,
                                    const struct document_value *b, int *ret_order)
{
    if (call->node->collator)
        return mongo_collate_compare(call->node->collator, a, b, call->context, ret_order,
                                     call->err);
    *ret_order = document_compare(DOCUMENT_ORDER_MONGO, a, b);
    return true;
}

static inline bool expression_give_null(struct expression_call *call)
{
    return expression_give(call, document_null());
}

/* Binds a variable while child is evaluated. */
bool expression_evaluate_with(const struct query_expression *child, struct query_context *context,
                              const struct document_value *value, struct document_value *ret_value,
                              struct error *err);

/* A whole number that fits 32 bits, whatever type it has. */
bool expression_to_int32(const struct document_value *value, int32_t *ret_number);

/* An array that is put together in the context's scratch. */
struct expression_array {
    struct query_context *context;
    size_t mark, begin;
    uint32_t count;
};

void expression_array_begin(struct expression_array *array, struct query_context *context);
/* What is missing becomes null. On failure the array is dropped. */
bool expression_array_add(struct expression_array *array, const struct document_value *value,
                          struct error *err);
bool expression_array_end(struct expression_array *array, struct document_value *ret_value,
                          struct error *err);
bool expression_array_drop(struct expression_array *array); /* false */

/* The elements of an array as values, in the arena. NULL: the limit. */
struct document_value *expression_elements(struct query_context *context, struct slice array,
                                           size_t *ret_count, struct error *err);
/* An array of them. */
bool expression_array_of(struct query_context *context, const struct document_value *values,
                         size_t count, struct document_value *ret_value, struct error *err);

/* A text in the arena. */
bool expression_text(struct expression_call *call, struct slice text);
/* What was put together in the scratch since mark, as a text. */
bool expression_text_end(struct expression_call *call, size_t mark);

/* Sorts values, in place; stable. compare is expression_by_value or one of the others below. */
bool expression_sort(struct query_context *context, struct document_value *values, size_t count,
                     int (*compare)(const void *self, const struct document_value *a,
                                    const struct document_value *b),
                     const void *self, struct error *err);
int expression_by_value(const void *self, const struct document_value *a,
                        const struct document_value *b);
int expression_by_value_down(const void *self, const struct document_value *a,
                             const struct document_value *b);

/* Sorts values by what compare makes of their numbers, which are int64. */
bool expression_sort_numbered(struct expression_call *call, struct document_value *values,
                              size_t count,
                              int (*compare)(const void *self, const struct document_value *a,
                                             const struct document_value *b),
                              const void *self);
/* Sorts them by the collation of the operator. */
bool expression_sort_values(struct expression_call *call, struct document_value *values,
                            size_t count, bool down);

/* {a: 1, "b.c": -1}. Without keys: by the values themselves, keys[0] says in which direction. */
struct expression_sort_key {
    const struct slice *names;
    size_t count;
    bool descending;
};

struct expression_sort {
    struct expression_sort_key *keys;
    size_t count;
};

bool expression_sort_read(struct expression_compile *compile, const struct document_value *pattern,
                          const struct expression_sort **ret_sort);
/* What the key compares, by the collation of the operator: of an array its least or greatest
 * element; missing is null. */
bool expression_sort_key_form(struct expression_call *call, const struct expression_sort_key *key,
                              const struct document_value *value, struct document_value *ret_key);

/* The names of a dotted path. */
bool expression_steps_read(struct expression_compile *compile, struct slice path,
                           const struct slice **ret_names, size_t *ret_count);

/* The arguments from the one numbered first on as bounds of a search. */
bool expression_bounds(struct expression_call *call, size_t first, int64_t *ret_from,
                       int64_t *ret_to);

/* A field path: names; the child is what it begins at. Of a document of a slot, a second child is
 * its first step as a property of the row. */
extern const struct query_kind expression_kind_path;

/* What a node implies of paths of the item. NULL: nothing. */
const struct query_implied *expression_imply(const struct expression_node *node,
                                             const struct query_implying *implying, bool truth);

const struct query_implied *expression_truth_imply(const struct query_expression *expression,
                                                   const struct query_implying *implying);
/* Is it a node with an operator? */
bool expression_is_operator(const struct query_expression *expression);

/* Reads the time zone of a date operator where it is constant. */
void expression_zone_prepare(struct expression_compile *compile, struct expression_node *node);

/* --- Operators by file ------------------------------------------------------------------------ */

#define EXPRESSION_COMPUTE(name) bool name(struct expression_call *call)
#define EXPRESSION_EVALUATE(name)                                                                  \
    bool name(const struct expression_node *node, struct query_context *context,                   \
              struct document_value *ret_value, struct error *err)
#define EXPRESSION_PARSE(name)                                                                     \
    bool name(struct expression_compile *compile, const struct expression_operator *op,            \
              const struct document_value *value, const struct query_expression **ret)

/* arithmetic.c */
EXPRESSION_COMPUTE(expression_add);
EXPRESSION_COMPUTE(expression_subtract);
EXPRESSION_COMPUTE(expression_multiply);
EXPRESSION_COMPUTE(expression_divide);
EXPRESSION_COMPUTE(expression_modulo);
EXPRESSION_COMPUTE(expression_power);
EXPRESSION_COMPUTE(expression_bits);
EXPRESSION_COMPUTE(expression_bit_not);

/* math.c: of one number; which is the operator's number */
enum expression_function {
    EXPRESSION_ABS,
    EXPRESSION_CEIL,
    EXPRESSION_FLOOR,
    EXPRESSION_EXP,
    EXPRESSION_LN,
    EXPRESSION_LOG10,
    EXPRESSION_SQRT,
    EXPRESSION_SIN,
    EXPRESSION_COS,
    EXPRESSION_TAN,
    EXPRESSION_ASIN,
    EXPRESSION_ACOS,
    EXPRESSION_ATAN,
    EXPRESSION_SINH,
    EXPRESSION_COSH,
    EXPRESSION_TANH,
    EXPRESSION_ASINH,
    EXPRESSION_ACOSH,
    EXPRESSION_ATANH,
    EXPRESSION_TO_RADIANS,
    EXPRESSION_TO_DEGREES,
};
EXPRESSION_COMPUTE(expression_number_function);
EXPRESSION_COMPUTE(expression_log);
EXPRESSION_COMPUTE(expression_round);
EXPRESSION_COMPUTE(expression_atan2);

/* logic.c */
EXPRESSION_EVALUATE(expression_and);
EXPRESSION_EVALUATE(expression_or);
EXPRESSION_COMPUTE(expression_not);
EXPRESSION_COMPUTE(expression_compare);
EXPRESSION_PARSE(expression_cond_parse);
EXPRESSION_EVALUATE(expression_cond);
EXPRESSION_EVALUATE(expression_if_null);
EXPRESSION_PARSE(expression_switch_parse);
EXPRESSION_EVALUATE(expression_switch);
EXPRESSION_PARSE(expression_let_parse);
EXPRESSION_EVALUATE(expression_let);
EXPRESSION_PARSE(expression_literal_parse);

/* array.c */
enum expression_some { EXPRESSION_FIRST_N, EXPRESSION_LAST_N, EXPRESSION_MIN_N, EXPRESSION_MAX_N };
EXPRESSION_COMPUTE(expression_element_at);
EXPRESSION_COMPUTE(expression_first);
EXPRESSION_COMPUTE(expression_concat_arrays);
EXPRESSION_COMPUTE(expression_in);
EXPRESSION_COMPUTE(expression_index_of_array);
EXPRESSION_COMPUTE(expression_is_array);
EXPRESSION_COMPUTE(expression_range);
EXPRESSION_COMPUTE(expression_reverse);
EXPRESSION_COMPUTE(expression_size);
EXPRESSION_COMPUTE(expression_slice);
EXPRESSION_COMPUTE(expression_some);
EXPRESSION_PARSE(expression_sort_parse);
EXPRESSION_COMPUTE(expression_sort_array);

/* each.c */
EXPRESSION_PARSE(expression_each_parse);
EXPRESSION_EVALUATE(expression_map);
EXPRESSION_EVALUATE(expression_filter);
EXPRESSION_PARSE(expression_reduce_parse);
EXPRESSION_EVALUATE(expression_reduce);
EXPRESSION_PARSE(expression_zip_parse);
EXPRESSION_COMPUTE(expression_zip);

/* object.c */
EXPRESSION_COMPUTE(expression_array_to_object);
EXPRESSION_COMPUTE(expression_object_to_array);
EXPRESSION_COMPUTE(expression_merge_objects);
EXPRESSION_COMPUTE(expression_merge_list); /* the elements of an array of objects */
EXPRESSION_PARSE(expression_get_field_parse);
EXPRESSION_COMPUTE(expression_get_field);
EXPRESSION_PARSE(expression_set_field_parse);
EXPRESSION_COMPUTE(expression_set_field);

/* set.c */
EXPRESSION_COMPUTE(expression_set_combine);
EXPRESSION_COMPUTE(expression_set_difference);
EXPRESSION_COMPUTE(expression_set_compare);
EXPRESSION_COMPUTE(expression_elements_true);

/* statistics.c */
enum expression_statistic {
    EXPRESSION_SUM,
    EXPRESSION_AVG,
    EXPRESSION_MIN,
    EXPRESSION_MAX,
    EXPRESSION_STD_DEV_POP,
    EXPRESSION_STD_DEV_SAMP,
};
EXPRESSION_COMPUTE(expression_statistic);
EXPRESSION_PARSE(expression_percentile_parse);
EXPRESSION_COMPUTE(expression_percentile);
/* What $percentile and $median are given. *ret_p: an array of parts, or null for the median. */
bool expression_percentile_read(struct expression_compile *compile, bool median,
                                const struct document_value *value,
                                struct document_value *ret_input, struct document_value *ret_p);
/* Of values that are put in order: those that are no numbers are left out. */
bool expression_percentile_of(struct query_context *context, struct document_value *values,
                              size_t count, const struct document_value *p,
                              struct document_value *ret_value, struct error *err);

/* string.c */
EXPRESSION_COMPUTE(expression_concat);
EXPRESSION_COMPUTE(expression_index_of_text);
EXPRESSION_COMPUTE(expression_trim);
EXPRESSION_COMPUTE(expression_replace);
EXPRESSION_COMPUTE(expression_split);
EXPRESSION_COMPUTE(expression_text_length);
EXPRESSION_COMPUTE(expression_compare_nocase);
EXPRESSION_COMPUTE(expression_substr_bytes);
EXPRESSION_COMPUTE(expression_substr_points);
EXPRESSION_COMPUTE(expression_change_case);
EXPRESSION_COMPUTE(expression_binary_size);
/* As texts take other values: null is "". */
bool expression_coerce_text(struct expression_call *call, const struct document_value *value,
                            struct slice *ret_text);

/* regex.c */
EXPRESSION_COMPUTE(expression_regex);

/* convert.c */
EXPRESSION_COMPUTE(expression_type);
EXPRESSION_COMPUTE(expression_is_number);
EXPRESSION_EVALUATE(expression_convert);
EXPRESSION_COMPUTE(expression_convert_to);

/* misc.c */
EXPRESSION_COMPUTE(expression_rand);
EXPRESSION_PARSE(expression_rand_parse);
EXPRESSION_PARSE(expression_sample_rate_parse);
EXPRESSION_COMPUTE(expression_sample_rate);
EXPRESSION_COMPUTE(expression_bson_size);
EXPRESSION_COMPUTE(expression_hashed_key);
EXPRESSION_COMPUTE(expression_timestamp_part);
EXPRESSION_PARSE(expression_meta_parse);

/* --- JavaScript (javascript.c) ---------------------------------------------------------------- */

EXPRESSION_PARSE(expression_function_parse);
/* $accumulator: what each document adds to the list, and what the list comes to. */
bool expression_script_accumulate(struct expression_compile *compile,
                                  const struct document_value *argument,
                                  const struct query_expression *list,
                                  const struct query_expression **ret_argument,
                                  const struct query_expression **ret_result);
bool expression_now(const struct query_expression *expression, struct query_context *context,
                    struct document_value *ret_value, struct error *err);

/* date.c and its siblings; the number of an operator for a part: which */
enum expression_part {
    EXPRESSION_PART_YEAR,
    EXPRESSION_PART_MONTH,
    EXPRESSION_PART_DAY,
    EXPRESSION_PART_HOUR,
    EXPRESSION_PART_MINUTE,
    EXPRESSION_PART_SECOND,
    EXPRESSION_PART_MS,
    EXPRESSION_PART_WEEKDAY,
    EXPRESSION_PART_YEAR_DAY,
    EXPRESSION_PART_WEEK,
    EXPRESSION_PART_ISO_WEEKDAY,
    EXPRESSION_PART_ISO_WEEK,
    EXPRESSION_PART_ISO_YEAR,
};
EXPRESSION_COMPUTE(expression_date_part);
EXPRESSION_COMPUTE(expression_date_add);
EXPRESSION_COMPUTE(expression_date_diff);
EXPRESSION_COMPUTE(expression_date_trunc);
EXPRESSION_COMPUTE(expression_date_from_parts);
EXPRESSION_COMPUTE(expression_date_to_parts);
EXPRESSION_EVALUATE(expression_date_from_string);
EXPRESSION_PARSE(expression_from_parts_parse);
EXPRESSION_COMPUTE(expression_date_to_string);
EXPRESSION_PARSE(expression_date_part_parse);
