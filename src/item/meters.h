/* Meters: the budget and the statistics of every physical partition. metering.h has the requests
 * that ask the one and feed the other. */
#pragma once

#include "base/clock.h"
#include "throughput/budget.h"
#include "throughput/shared.h"
#include "throughput/statistics.h"

struct meters; /* opaque, owned */
struct meter;  /* opaque: of one physical partition; lives as long as the meters */

struct meters *meters_new(const struct clock *clock);
void meters_free(struct meters *meters); /* NULL is fine */
CLEANUP_FN(struct meters *, meters_free)

/* A partition without a budget: requests are counted and never refused. One that has a budget keeps
 * it. */
void meters_set_free(struct meters *meters, uint32_t partition);

/* The throughput of a partition: of its own, or the place-th budget of a database's. Called again
 * it changes the throughput; statistics go on. */
void meters_set_own(struct meters *meters, uint32_t partition,
                    const struct budget_options *options);
void meters_set_shared(struct meters *meters, uint32_t partition, struct shared_throughput *shared,
                       uint32_t place);

/* The pool of a database, known by the number of its offer: made at the first call, changed by
 * later ones, and gone with the last partition that draws from it. The caller owns a reference.
 * ERROR_BAD_REQUEST as shared_throughput_new says. */
NODISCARD bool meters_shared(struct meters *meters, uint32_t offer,
                             const struct budget_options *options,
                             struct shared_throughput **ret_shared, struct error *err);

/* The state of that pool, summed over its partitions. False: nobody has asked for it yet. */
NODISCARD bool meters_shared_state(struct meters *meters, uint32_t offer,
                                   struct budget_state *ret_state);

/* NULL: nobody set one; operations on it are not held back. */
struct meter *meters_find(struct meters *meters, uint32_t partition);

/* The state of its budget. False: it has none. */
NODISCARD bool meters_state(struct meters *meters, uint32_t partition,
                            struct budget_state *ret_state);

/* Takes a dropped partition out. No operation on it may be running. */
void meters_remove(struct meters *meters, uint32_t partition);

/* Of a server that does not own the nodes: budgets are elsewhere, and what is spent here was lent
 * by them. Partitions have no meters then. */
struct meters_lender {
    /* False: nothing is left of what was lent for the partition. */
    bool (*admit)(void *context, uint32_t partition, int64_t price_cru);
    /* What was admitted has cost so much; of what did nothing 0. */
    void (*settle)(void *context, uint32_t partition, int64_t price_cru, int64_t charge_cru);
    void *context;
};
/* Copied. Before the first request. */
void meters_borrow(struct meters *meters, const struct meters_lender *lender);
const struct meters_lender *meters_lender(const struct meters *meters); /* NULL: they are here */

/* The clock they were made with. */
const struct clock *meters_clock(const struct meters *meters);

struct statistics *meter_statistics(struct meter *meter);
struct budget *meter_budget(struct meter *meter);
