/* All that was asked of a partition since it is counted, for those who take differences. */
#pragma once

#include "throughput/statistics.h"

/* ret_refused_cru: what requests that were throttled would have cost at least. */
void statistics_all(struct statistics *statistics, struct statistics_numbers *ret_numbers,
                    int64_t *ret_refused_cru);

/* A request that was throttled, and would have cost so much at least. */
void statistics_refused(struct statistics *statistics, struct slice key, int64_t price_cru,
                        int64_t now_ms);
