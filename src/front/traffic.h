/* Traffic: what the fronts tell the advisor of the operations they carried out, and of those they
 * refused for lack of throughput. Most operations are not recorded; whether one is costs a few
 * atomic reads. */
#pragma once

#include "front/front.h"
#include "query/plan.h"

/* How an attempt ended, and what tells it from others. */
struct front_traffic_attempt {
    struct slice mark; /* what the client sends with each attempt of one operation, and with no
                        * other: an id it made up, or the date it signed */
    bool refused;
    int64_t wait_ms;     /* of a refused one: when it may come again */
    uint64_t started_ns; /* of clock_monotonic_ns: when the request had come; 0: just now */
};

/* An attempt that failed: was it refused for lack of throughput, and so is to be told of? */
bool front_traffic_is_refusal(const struct error *err);

struct front_traffic_item {
    enum advise_operation_kind kind;
    const struct partition_key *key;
    const struct document_value *id;
    struct slice document;    /* as it was written or found, or was to be; data NULL: not at hand */
    int64_t cru;              /* 0: refused */
    struct slice transaction; /* shared by operations that were one; empty: it was alone */
    uint32_t *weight;         /* of that transaction: of traffic_attempt; NULL: it was alone */
    struct front_traffic_attempt attempt;
};

/* Of an attempt at an operation on one item. */
void front_traffic_item(const struct front_services *services, const struct container *container,
                        const struct front_traffic_item *item);

struct front_traffic_query {
    const struct query_plan *plan;
    const struct partition_key *key; /* that the request named besides the filter; NULL: none */
    struct slice named; /* BSON of path: value that the filter gives and no condition of the plan
                         * says; data NULL: none */
    /* The client asks this physical partition, and presumably the others by other requests; NULL:
     * not so. */
    const struct partition_span *span;
    int64_t cru;
    size_t bytes;
    struct slice text; /* of the request: the same in each attempt */
    struct front_traffic_attempt attempt;
};

/* Of an attempt at the first page of a query. */
void front_traffic_query(const struct front_services *services, const struct container *container,
                         const struct front_traffic_query *query);
