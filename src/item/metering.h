/* Metering: requests on a budget, from admission to settlement.
 *
 * A request is priced with what is known up front, refused before any work if the budget is used
 * up, run, and settled with what it really did. The charge follows from the committed state alone:
 * attempts that lost against another transaction are free. */
#pragma once

#include "item/items.h"
#include "item/meters.h"

struct admission;

/* What a request says and hears about its charge. */
struct metered_call {
    bool strong;                 /* reads count twice */
    bool low_priority;           /* refused first */
    bool minute_pool_off;        /* not from the RU per minute pool */
    uint8_t bucket;              /* 1 to 5; 0: none */
    struct admission *admission; /* it was let in with others (admission.h); NULL: it was not */

    int64_t charge_cru; /* out: also of a refused write, which has read; 0 when throttled */
    int64_t wait_ms;    /* out: with ERROR_TOO_MANY_REQUESTS and its kin */
    bool minute_used;   /* out: paid from the RU per minute pool */
};

/* --- Any request ------------------------------------------------------------------------------ */

/* One request on the budget of one physical partition. Begun, it is ended or dropped once. */
struct metering {
    struct meters *meters;
    struct meter *meter;   /* NULL: not held back */
    struct budget *budget; /* NULL: likewise */
    struct budget_grant grant;
    struct slice pk;
    uint32_t partition;   /* where the budget is elsewhere: see meters_borrow */
    int64_t borrowed_cru; /* the same; 0: nothing was */
    struct metered_call *call;
    int64_t begun_us;
    uint64_t bytes_in, bytes_out; /* for the statistics, to be set before the end */
};

struct metering_request {
    uint32_t partition;
    int64_t price_cru; /* at least this much */
    struct slice pk;   /* encoded partition key; empty: of no single one. Borrowed to the end */
    uint64_t ticket;   /* the same for every attempt of one request; 0: not known */
};

/* ERROR_UNPROVED: the budget is another server's, and nothing of it is left here.
 * ERROR_TOO_MANY_REQUESTS and its kin, with the wait in call. Never refused where the call belongs
 * to an admission. */
NODISCARD bool metering_begin(struct metering *metering, struct meters *meters,
                              const struct metering_request *request, struct metered_call *call,
                              struct error *err);
void metering_end(struct metering *metering, int64_t charge_cru);
/* A charge on another partition's budget than the one that admitted the request. */
void metering_charge(struct meters *meters, uint32_t partition, int64_t charge_cru);
/* As if it had never begun. */
void metering_drop(struct metering *metering);

/* Counts a request that was refused, for the statistics. */
void metering_refuse(struct meters *meters, const struct metering_request *request);

/* The bytes of a key for a metering_request. */
struct slice metering_pk(const struct partition_key *key, struct arena *arena);

/* What a write that failed is charged: it has read what it was refused for. Faults of the server
 * and lost races are free. */
int64_t metering_refused_cru(const struct error *err);

/* --- Transactions ------------------------------------------------------------------------------
 */

/* A transaction on one logical partition that can be run again when another one won. */
struct metered_transaction {
    /* Reads and plans writes; called again with a later snapshot if need be. It adds to reads_cru,
     * which is 0 when it is called, what its reads cost. */
    bool (*plan)(struct metered_transaction *self, struct transaction *transaction,
                 struct error *err);
    /* After the commit, once; may be NULL. */
    void (*done)(struct metered_transaction *self, struct transaction *transaction);
    /* After a commit that failed for what one write did, with the number of that write (as of
     * transaction_result); may be NULL. */
    void (*refused)(struct metered_transaction *self, size_t nth);
    int64_t price_cru; /* what is known up front */
    uint64_t ticket;   /* of metering_request */
    int64_t reads_cru;

    int attempts_max;         /* 0: as many as are usual */
    struct item_gates *gates; /* where attempts after the first take turns; NULL: the space's */
    bool own_arena; /* each attempt has an arena of its own, gone with it: what plan and done want
                     * to keep they copy */

    /* Of the present attempt, for plan and done: the container as its map has it now, and the
     * arena of the transaction. */
    const struct item_space *space;
    struct arena *arena;
};

/* Runs it as often as it takes, up to a limit: ERROR_CONFLICT after that many. ERROR_BAD_REQUEST:
 * the key is open. */
NODISCARD bool metered_transaction_run(struct meters *meters, const struct item_space *space,
                                       const struct partition_key *key,
                                       struct metered_transaction *transaction,
                                       struct metered_call *call, struct arena *arena,
                                       struct error *err);
