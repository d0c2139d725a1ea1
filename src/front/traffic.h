/* Traffic: what the fronts tell the advisor of the operations they carried out. Most operations are
 * not recorded; whether one is costs a few atomic reads. */
#pragma once

#include "front/front.h"
#include "query/plan.h"

struct front_traffic_item {
    enum advise_operation_kind kind;
    const struct partition_key *key;
    const struct document_value *id;
    struct slice document; /* as it was written or found; data NULL: not at hand */
    int64_t cru;
    struct slice transaction; /* shared by operations that were one; empty: it was alone */
};

/* Of an operation on one item that was carried out. */
void front_traffic_item(const struct front_services *services, const struct container *container,
                        const struct front_traffic_item *item);

/* Of the first page of a query. key: that the request named besides the filter; NULL: none. */
void front_traffic_query(const struct front_services *services, const struct container *container,
                         const struct query_plan *plan, const struct partition_key *key,
                         int64_t cru, size_t bytes);
