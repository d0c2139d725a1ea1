/* Budget: who may still spend, on one physical partition (or one account's metadata).
 *
 * A request is admitted with the price known up front, which is reserved, and settled with what it
 * really cost: more becomes debt, less is given back. A second's budget may be spent at any speed
 * within the second; what overshoots is paid from the next ones. Who comes when it is used up is
 * refused before any work is done and told to the millisecond when to come again; if it does, it
 * finds its share set aside (lane.h says how).
 *
 * Amounts are hundredths of a request unit (cost.h), rates the same per second. now_ms is of the
 * monotonic clock, from 0 to some thousand years. All functions may be called from any thread. */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "throughput/lane.h"

enum {
    BUDGET_BUCKETS = 5,               /* throughput buckets are numbered 1 to 5 */
    BUDGET_TENANTS_MAX = 1024,        /* key values with a throughput of their own */
    BUDGET_BURST_CRU = 3000 * 100,    /* partitions below this save, and spend up to it */
    BUDGET_METADATA_CRU = 240 * 100,  /* per account */
    BUDGET_AUTOSCALE_FLOOR = 10,      /* percent of the maximum */
    BUDGET_MINUTE_SECONDS = 10,       /* RU per minute: this many seconds' worth extra */
    BUDGET_RATE_MAX_CRU = 1000000000, /* 10 million RU/s */
};

struct budget_options {
    int64_t rate_cru;     /* provisioned for this partition; of autoscale the maximum */
    int64_t rate_max_cru; /* partition.ru_max: rates above are cut to it; 0: none */
    bool autoscale;
    bool minute_pool;        /* RU per minute */
    uint32_t burst_seconds;  /* throughput.burst_seconds; 0: no burst credit */
    enum error_code refusal; /* ERROR_NONE: ERROR_TOO_MANY_REQUESTS */
};

struct budget_request {
    int64_t price_cru;   /* at least this much; see cost.h */
    uint32_t operations; /* the price is of so many together; 0: of one */
    uint64_t ticket;     /* the same for every attempt of one request, such as a hash of operation,
                          * partition key and id; 0: not known, waits are then a little less exact */
    struct slice key;    /* partition key value, for tenants; borrowed for the call */
    uint8_t bucket;      /* 1 to 5; 0: none */
    bool low_priority;
    bool minute_pool_off; /* x-ms-documentdb-disable-ru-per-minute-usage */
};

/* What was reserved, kept by the request from admission to settlement. A plain value. */
struct budget_grant {
    int64_t reserved_cru; /* price and extra: what requests lately cost above their price */
    int64_t extra_cru;
    uint32_t operations;
    bool minute_used;           /* paid from the RU per minute pool */
    struct lane_spent spent[4]; /* in the lanes it went through */
    uint64_t tenant_generation; /* 0: none */
    int32_t tenant;
    uint8_t bucket;
    uint8_t lanes; /* bits */
};

struct budget_state {
    int64_t rate_cru;        /* provisioned, or the maximum of autoscale */
    int64_t current_cru;     /* what an offer shows: of autoscale it follows use, from 10 % up */
    int64_t hour_peak_cru;   /* highest current_cru of this hour, */
    int64_t hour_before_cru; /* and of the one before; 0: not in use then */
    int64_t credit_cru;      /* burst credit saved */
    int64_t minute_left_cru; /* of the RU per minute pool */
    int64_t owed_ms;         /* a request would now wait this long, 0: not at all */
    uint32_t waiting;        /* refused ones whose share is set aside */
};

/* A key value with its own throughput, per second; 0: without that bound. */
struct budget_tenant {
    struct slice key;
    int64_t reserved_cru, cap_cru;
};

/* What a bucket or tenant did since it was set. */
struct budget_use {
    int64_t spent_cru;
    uint64_t refused; /* for its own bound, not the partition's */
};

struct budget; /* opaque, owned */

struct budget *budget_new(const struct budget_options *options);
void budget_free(struct budget *budget); /* NULL is fine; settle or drop all grants before */
CLEANUP_FN(struct budget *, budget_free)

/* True: admitted, *ret_grant is to be settled. False: *ret_wait_ms, at least 1, says when to come
 * again. ERROR_TOO_MANY_REQUESTS (or options.refusal): the partition's budget is used up.
 * ERROR_BUCKET_THROTTLED, ERROR_KEY_THROTTLED: that of the throughput bucket or of the tenant is.
 */
NODISCARD bool budget_admit(struct budget *budget, const struct budget_request *request,
                            int64_t now_ms, struct budget_grant *ret_grant, int64_t *ret_wait_ms,
                            struct error *err);

/* The same for several requests that are carried out together: all are admitted, with a grant for
 * each, or none. A refusal sets aside for all of them at once. */
NODISCARD bool budget_admit_all(struct budget *budget, const struct budget_request *requests,
                                size_t count, int64_t now_ms, struct budget_grant *ret_grants,
                                int64_t *ret_wait_ms, struct error *err);

/* As if it had never been admitted. The grant is empty then. */
void budget_drop(struct budget *budget, struct budget_grant *grant, int64_t now_ms);

/* The real charge. A request that did nothing settles 0. Settles once: the grant is empty then. */
void budget_settle(struct budget *budget, struct budget_grant *grant, int64_t charge_cru,
                   int64_t now_ms);

/* A charge for what another budget admitted: it becomes debt if there is nothing left. */
void budget_charge(struct budget *budget, int64_t charge_cru, int64_t now_ms);

/* Another throughput from now on; what is owed and saved stays, as far as the new value allows. */
void budget_set_throughput(struct budget *budget, int64_t rate_cru, bool autoscale,
                           bool minute_pool, int64_t now_ms);

/* Takes over a part, from 0 to 1, of what another budget owes, has saved and has been spending: of
 * a physical partition whose keys this one gets. Bounds of buckets and tenants are set anew. */
void budget_take_over(struct budget *budget, struct budget *from, double part, int64_t now_ms);

/* A throughput bucket gets at most this percentage of the rate; 100 (as at the beginning): all. */
void budget_set_bucket(struct budget *budget, uint8_t bucket, uint8_t percent_max, int64_t now_ms);

/* All key values with throughput of their own, in place of those there were; one that stays keeps
 * what it owes. At most BUDGET_TENANTS_MAX; reservations that come to more than the rate are cut in
 * proportion. */
void budget_set_tenants(struct budget *budget, const struct budget_tenant *tenants, size_t count,
                        int64_t now_ms);

struct budget_use budget_bucket_use(struct budget *budget, uint8_t bucket);
struct budget_use budget_tenant_use(struct budget *budget, struct slice key); /* zero: none such */

void budget_get_state(struct budget *budget, int64_t now_ms, struct budget_state *ret_state);
