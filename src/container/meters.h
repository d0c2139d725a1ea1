/* Meters: the budget and the statistics of every physical partition, and item operations that ask
 * the one and feed the other.
 *
 * A request is priced with what is known up front, refused before any work if the budget is used
 * up, run, and settled with what it really did. The charge follows from the committed state alone:
 * attempts that lost against another transaction are free. */
#pragma once

#include "container/items.h"
#include "throughput/budget.h"
#include "throughput/shared.h"
#include "throughput/statistics.h"

struct meters; /* opaque, owned */
struct meter;  /* opaque: of one physical partition; lives as long as the meters */

struct meters *meters_new(const struct clock *clock);
void meters_free(struct meters *meters); /* NULL is fine */
CLEANUP_FN(struct meters *, meters_free)

/* The throughput of a partition: of its own, or the place-th budget of a database's. Called again
 * it changes the throughput; statistics go on. */
void meters_set_own(struct meters *meters, uint32_t partition,
                    const struct budget_options *options);
void meters_set_shared(struct meters *meters, uint32_t partition, struct shared_throughput *shared,
                       uint32_t place);

/* The pool of a database, known by the number of its offer: made at the first call, changed by
 * later ones. Borrowed while the meters are there. ERROR_BAD_REQUEST as shared_throughput_new says.
 */
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

struct statistics *meter_statistics(struct meter *meter);
struct budget *meter_budget(struct meter *meter);

/* What a request says and hears about its charge. */
struct metered_call {
    bool strong;          /* reads count twice */
    bool low_priority;    /* refused first */
    bool minute_pool_off; /* not from the RU per minute pool */
    uint8_t bucket;       /* 1 to 5; 0: none */

    int64_t charge_cru; /* out: also of a refused write, which has read; 0 when throttled */
    int64_t wait_ms;    /* out: with ERROR_TOO_MANY_REQUESTS and its kin */
    bool minute_used;   /* out: paid from the RU per minute pool */
};

/* As items_read, items_write and items_change, on a budget. meters NULL: not held back, but still
 * priced. ERROR_TOO_MANY_REQUESTS, ERROR_BUCKET_THROTTLED, ERROR_KEY_THROTTLED. */
NODISCARD bool metered_read(struct meters *meters, const struct item_space *space,
                            const struct partition_key *key, const struct document_value *id,
                            struct metered_call *call, struct arena *arena, struct item *ret_item,
                            struct error *err);
/* As items_read_cached: with *ret_cold nothing is charged. */
NODISCARD bool metered_read_cached(struct meters *meters, const struct item_space *space,
                                   const struct partition_key *key, const struct document_value *id,
                                   struct metered_call *call, struct arena *arena,
                                   struct item *ret_item, bool *ret_cold, struct error *err);
NODISCARD bool metered_write(struct meters *meters, const struct item_space *space,
                             const struct partition_key *key, const struct document_value *id,
                             enum transaction_verb verb, struct slice document,
                             const struct transaction_options *options, struct metered_call *call,
                             struct arena *arena, struct transaction_result *ret_result,
                             struct error *err);
/* As items_write_start. call is filled in before done is called, and borrowed until then; with
 * *ret_begun false nothing is charged. */
NODISCARD bool metered_write_start(struct meters *meters, const struct item_space *space,
                                   const struct partition_key *key, const struct document_value *id,
                                   enum transaction_verb verb, struct slice document,
                                   const struct transaction_options *options,
                                   struct metered_call *call, struct arena *arena,
                                   items_write_done *done, void *context, bool *ret_begun,
                                   struct error *err);
NODISCARD bool
metered_change(struct meters *meters, const struct item_space *space,
               const struct partition_key *key, const struct document_value *id,
               bool (*make)(const struct item *item, void *context, struct arena *arena,
                            struct slice *ret_document, struct error *err),
               void *context, const struct transaction_options *options, struct metered_call *call,
               struct arena *arena, struct transaction_result *ret_result, struct error *err);
