/* Aggregate: many values become one, in parts that can be merged.
 *
 * A state takes values one by one, or the state of another part of the data, and gives the result.
 * The order in which parts come makes no difference to the result: sums are exact until the end and
 * rounded once, and MAKELIST and MAKESET put their values in the order of `at`. A state can be
 * written as BSON and read back, so that half an aggregate can stand in a continuation. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "document/order.h"
#include "query/value/sum.h"

struct query_aggregate_set;

enum query_aggregate_kind {
    QUERY_COUNT,        /* of defined values */
    QUERY_COUNT_IF,     /* of values that are true */
    QUERY_SUM,          /* of numbers; anything else but undefined: undefined; nothing: undefined */
    QUERY_AVG,          /* the same */
    QUERY_MIN,          /* the least in the order; in SQL's, an array or object: undefined */
    QUERY_MAX,          /* the same */
    QUERY_STD_DEV_POP,  /* of numbers as doubles, of all there are; else as of sum */
    QUERY_STD_DEV_SAMP, /* the same, of a sample: of fewer than two undefined */
    QUERY_MAKE_LIST,    /* an array of the defined values in the order of at, then as they came */
    QUERY_MAKE_SET,     /* the same, each once */
    QUERY_TAKE_FIRST, /* the defined value with the least at; of several the one that came first */
    QUERY_TAKE_LAST,  /* that with the greatest; of several the one that came last */
};

/* The aggregate of that SQL name, without case; SQL has no standard deviations, first and last. */
bool query_aggregate_find(struct slice name, enum query_aggregate_kind *ret_kind);

/* Numbers and their squares, both exactly, so that parts merge without a trace. */
struct query_deviation {
    struct query_sum sum, squares;
};

struct query_aggregate {
    enum query_aggregate_kind kind;
    enum document_order order;
    bool spoiled; /* a value of the wrong type came: the result is undefined */
    uint64_t count;
    size_t bytes_max;
    uint64_t at; /* where the values that come now stand: the number of their item; 0: nowhere */
    union {
        struct query_sum sum; /* sum, avg */
        struct query_deviation deviation;
        struct document_value value;     /* min, max, first, last; text and the like: in bytes */
        struct query_aggregate_set *set; /* makeset; owned */
    };
    struct buf bytes;  /* of min, max, first, last and makelist */
    struct buf places; /* at of each value of makelist and makeset, a uint64_t each */
    uint64_t kept_at;  /* of first and last */
};

/* order is the plan's: which value is the least, and which are equal; in MongoDB's, sums of
 * decimals are decimals, those of longs are longs, and averages are no integers; in SQL's they are
 * doubles as all numbers are. bytes_max bounds what one
 * state may keep. */
void query_aggregate_init(struct query_aggregate *state, enum query_aggregate_kind kind,
                          enum document_order order, size_t bytes_max);
void query_aggregate_done(struct query_aggregate *state);
CLEANUP_VALUE_FN(struct query_aggregate, query_aggregate_done)

/* ERROR_QUERY_LIMIT: it would keep more than it may. The state is then of no more use. */
NODISCARD bool query_aggregate_add(struct query_aggregate *state,
                                   const struct document_value *value, struct error *err);

/* The same value so many times. */
NODISCARD bool query_aggregate_add_times(struct query_aggregate *state,
                                         const struct document_value *value, uint64_t times,
                                         struct error *err);

/* Takes in what another state of the same kind has seen; of lists, that comes after. */
NODISCARD bool query_aggregate_merge(struct query_aggregate *state,
                                     const struct query_aggregate *other, struct error *err);

/* The result; good until the state changes or goes. */
struct document_value query_aggregate_finish(struct query_aggregate *state);

/* Bytes it holds on the heap. */
size_t query_aggregate_bytes(const struct query_aggregate *state);

/* The state as an element of a BSON document. */
void query_aggregate_save(const struct query_aggregate *state, struct slice key, struct buf *buf);

/* The state saved in value. It is initialised here, also on failure.
 * ERROR_BAD_REQUEST: it is none of this kind. ERROR_QUERY_LIMIT. */
NODISCARD bool query_aggregate_load(struct query_aggregate *state, enum query_aggregate_kind kind,
                                    enum document_order order, const struct document_value *value,
                                    size_t bytes_max, struct error *err);
