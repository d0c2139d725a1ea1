/* What if: a recorded workload run again, in simulated time, under another partition key, number of
 * partitions or throughput. Budgets are the server's own (throughput/budget.h), with a clock that
 * is handed in, so that who is refused here would be refused there. */
#pragma once

#include "advise/evaluate.h"
#include "partition/map.h"

struct what_if_plan {
    const struct advise_key *key;
    uint32_t partitions;
    uint64_t ru_per_second;    /* of the container, in even shares; 0: nobody is held back */
    uint64_t partition_ru_max; /* one partition gives no more, whatever the share; 0: any */
    uint32_t burst_seconds;    /* of credit that can be saved, from the beginning on; 0: none */
    uint32_t retries_max; /* of a refused request, after the wait it was told; 0: it is given up */
    bool
        retries_recorded; /* as the workload shows it instead, 9 as of the SDKs where it does not */
    bool range;           /* keys in their order over the partitions, not hashed */
    bool hash_v1;         /* of one property: hashed as in containers of version 1 */
    /* Where a container has its keys, if key is its own: as many spans as partitions, with their
     * shares of the throughput. NULL: even spans and shares. */
    const struct partition_definition *definition;
    const struct partition_map *map;
    double speed;                     /* time between requests divided by this; 0: 1 */
    const struct advise_key *current; /* that the workload ran with; NULL: not known */
    uint32_t current_partitions;
};

/* One physical partition during one window of time. */
struct what_if_cell {
    double cru;
    uint32_t requests, throttled;
};

enum {
    WHAT_IF_WINDOWS = 60,
    WHAT_IF_RETRIES = 9,             /* what the SDKs do unless told otherwise, */
    WHAT_IF_WAIT_MS_MAX = 30 * 1000, /* and until they have waited this long in all */
};

struct what_if_result {
    uint64_t requests;                /* of clients */
    uint64_t attempts;                /* with those tried again */
    uint64_t throttled;               /* answers 429 */
    uint64_t given_up;                /* requests that failed in the end */
    double ru;                        /* charged */
    double wait_ms_mean, wait_ms_p99; /* that throttling added to a request that came through, */
    double latency_ms_mean, latency_ms_p99; /* and with what the record says it took besides */
    double busiest;                         /* share of all RU on one partition */
    uint32_t partitions;
    uint64_t ru_per_second; /* 0: not limited */
    size_t windows;
    int64_t begin_ms, window_ms;
    struct what_if_cell *cells; /* window x partition, in the arena */
};

/* Share of attempts that were refused. */
double what_if_throttled_share(const struct what_if_result *result);

/* ERROR_BAD_REQUEST: there are no operations, or the plan makes no sense. */
NODISCARD bool what_if_run(const struct advise_workload *workload, const struct what_if_plan *plan,
                           struct arena *arena, struct what_if_result *ret_result,
                           struct error *err);

void what_if_json(const struct what_if_result *result, struct buf *out);
