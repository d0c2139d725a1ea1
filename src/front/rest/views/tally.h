/* Tally: the aggregates of one group of a view, from which a value can also be taken back.
 *
 * Counts and sums are exact (query/value/sum.h), so what was added is subtracted and nothing is
 * left of it. Values that spoil an aggregate (a text in a sum, an array in a minimum) are counted
 * and not added: the result is undefined while there are any. Where taking back is not enough, the
 * part is stale, and its owner makes it anew: a least or greatest value that went, from the values
 * in their order; a sum that is not finite, from all contributions. */
#pragma once

#include "query/expression/subquery.h"

struct rest_view_part {
    struct query_aggregate aggregate; /* of what does not spoil it */
    uint64_t spoilers;
    uint64_t doubles; /* of a sum: numbers that are no integers */
    bool stale;
};

struct rest_view_tally {
    size_t part_count;
    struct rest_view_part *parts; /* in the arena */
    uint64_t count;               /* of contributions */
    struct slice keys;            /* values of the group, an array; borrowed */
};

/* Can the aggregate be kept so? */
bool rest_view_tally_keeps(enum query_aggregate_kind kind);
/* Are its values kept in their order? */
bool rest_view_tally_orders(enum query_aggregate_kind kind);

/* What is to be remembered of an argument: no more than the aggregate looks at. */
struct document_value rest_view_tally_argument(enum query_aggregate_kind kind,
                                               const struct document_value *value);

void rest_view_tally_init(struct rest_view_tally *tally, const struct query_aggregate_call *calls,
                          size_t count, struct slice keys, struct arena *arena);
void rest_view_tally_done(struct rest_view_tally *tally);
CLEANUP_VALUE_FN(struct rest_view_tally, rest_view_tally_done)

/* A contribution comes or goes: arguments as an array, one for each aggregate. */
NODISCARD bool rest_view_tally_add(struct rest_view_tally *tally, struct slice arguments,
                                   struct error *err);
NODISCARD bool rest_view_tally_take(struct rest_view_tally *tally, struct slice arguments,
                                    struct error *err);

/* A stale part begins anew; of one that orders, only its extreme does. What there is is added. */
void rest_view_tally_renew(struct rest_view_tally *tally, size_t nth);
NODISCARD bool rest_view_tally_add_one(struct rest_view_tally *tally, size_t nth,
                                       const struct document_value *value, struct error *err);
/* The same of a value that was counted before. */
NODISCARD bool rest_view_tally_extreme(struct rest_view_tally *tally, size_t nth,
                                       const struct document_value *value, struct error *err);

/* The result; good until the tally changes or goes. */
struct document_value rest_view_tally_result(struct rest_view_tally *tally, size_t nth);

/* As bytes, and back into one that was made with init; keys are borrowed from the bytes then.
 * ERROR_STORE_CORRUPT. */
struct slice rest_view_tally_save(const struct rest_view_tally *tally, struct arena *arena);
NODISCARD bool rest_view_tally_load(struct rest_view_tally *tally, struct slice bytes,
                                    struct error *err);
/* The values of the group alone. */
NODISCARD bool rest_view_tally_keys(struct slice bytes, struct slice *ret_keys, struct error *err);
