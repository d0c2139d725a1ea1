/* Comparison as SQL has it: three-valued, never across types; and what DISTINCT, IN and sets need:
 * deep equality of any two values, and hashes that agree with it.
 *
 * Built on the total orders of document/order.h, of which a plan has one. Numbers of all types are
 * one type here, and compare exactly: 1 and 1.0 are equal, 2^53 + 1 as an integer is no double's
 * equal. */
#pragma once

#include "document/order.h"

/* A truth: yes, no, or it cannot be said. */
enum query_truth { QUERY_FALSE, QUERY_TRUE, QUERY_UNKNOWN };

/* The types of SQL, for `same type`. What JSON lacks has a class for each type. */
enum query_class {
    QUERY_CLASS_UNDEFINED,
    QUERY_CLASS_NULL,
    QUERY_CLASS_BOOL,
    QUERY_CLASS_NUMBER,
    QUERY_CLASS_STRING,
    QUERY_CLASS_ARRAY,
    QUERY_CLASS_OBJECT,
    QUERY_CLASS_OTHER, /* and above: the other types of BSON */
};

uint32_t query_class_of(const struct document_value *value);

/* a = b: unknown when the types differ or either is undefined; null = null is true. */
enum query_truth query_values_equal(enum document_order order, const struct document_value *a,
                                    const struct document_value *b);

/* The order of two booleans, numbers, strings, nulls or dates, below, at or above zero. False: they
 * are of other or different types, and cannot be said to be in any order. */
bool query_values_order(enum document_order order, const struct document_value *a,
                        const struct document_value *b, int *ret_order);

/* Deep equality of any two values, undefined included; in SQL's order that of properties does not
 * count. */
static inline bool query_values_same(enum document_order order, const struct document_value *a,
                                     const struct document_value *b)
{
    return document_compare(order, a, b) == 0;
}

/* Equal values have equal hashes, in either order. Not for what leaves the process. */
uint64_t query_value_hash(const struct document_value *value);

/* Can the value stand in a result? Not undefined, and no NaN or infinity: JSON has none. */
bool query_value_shows(const struct document_value *value);
static inline struct document_value query_truth_value(enum query_truth truth)
{
    return truth == QUERY_UNKNOWN ? document_undefined() : document_bool(truth == QUERY_TRUE);
}

/* A whole number in the smallest type that holds it, as the JSON reader would make it. */
static inline struct document_value query_integer(int64_t number)
{
    return number >= INT32_MIN && number <= INT32_MAX ? document_int32((int32_t)number)
                                                      : document_int64(number);
}

/* The number of an int32 or int64; false for all else, whole doubles too. */
static inline bool query_stored_integer(const struct document_value *value, int64_t *ret_number)
{
    if (value->type == DOCUMENT_INT32)
        *ret_number = value->int32;
    else if (value->type == DOCUMENT_INT64)
        *ret_number = value->int64;
    else
        return false;
    return true;
}
