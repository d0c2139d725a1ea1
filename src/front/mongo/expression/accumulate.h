/* Accumulators of $group and $setWindowFields: {$sum: "$price"} as an aggregate of query/, and what
 * becomes of its result.
 *
 * The aggregate sees what `call.argument` gives for a row; its result stands in `call.slot`, and
 * `result` makes of it what MongoDB shows: 0 of a $sum without numbers, the first n of a list. So a
 * stage puts `call` among its aggregates and `result` in what it selects behind them. */
#pragma once

#include "front/mongo/expression/expression.h"
#include "query/expression/subquery.h"

struct mongo_accumulator {
    struct query_aggregate_call call;
    const struct query_expression *result; /* of call.slot; never undefined */
    bool ordered; /* depends on the sequence of the rows: $first, $last, $push and the like */
};

/* Is there an accumulator of that name, with its dollar? */
bool mongo_accumulator_exists(struct slice name);

/* The names of all of them, for the ledger; NULL behind the last. */
const char *mongo_accumulator_name(size_t number);

/* The accumulator named name (with its dollar) with its argument, {$sum: argument}; slot is where
 * its result will stand. MONGO_INVALID_PIPELINE_OPERATOR family: it is none, or is not offered. */
NODISCARD bool mongo_accumulator_compile(struct slice name, const struct document_value *argument,
                                         const struct mongo_expression_options *options,
                                         uint32_t slot, struct query_build *build,
                                         struct mongo_accumulator *ret_accumulator,
                                         struct error *err);
