/* Explain: how a command would find its documents, from the plan that really ran.
 *
 * explain runs the command it is given as it is, up to the first page of its reading
 * (mongo_reading_page): that is drained, its rows are dropped, and the command ends there, before
 * it has written anything. */
#pragma once

#include "front/mongo/command/reading.h"

/* What is found out; in the call's arena. */
struct mongo_explaining {
    bool runs; /* executionStats: all pages; else the first row */
    bool done;
    bool begun; /* a page is being run for it */
    bool fixed; /* the collection is not sharded */
    struct slice filter, sort, projection;
    struct slice near; /* the path whose distances are the order; data NULL: none */
    bool near_plane;
    uint64_t skip, limit;
    bool counts, staged;
    struct slice explained; /* of the first page: query/run/explain.c */
    struct query_metrics metrics;
    int64_t charge_cru;
    uint64_t ms;
};

/* Drains the reading, and returns false: the command ends. */
bool mongo_explain_reading(struct mongo_call *call, const struct mongo_collection *collection,
                           const struct mongo_reading *reading, struct error *err);

/* {aggregate: ..., explain: true}: the call's own command. */
NODISCARD bool mongo_explain_itself(struct mongo_call *call, struct error *err);
