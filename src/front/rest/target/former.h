/* Feeds and queries by a partition key in the terms of before a re-key (partition/former.h): all of
 * the container, and a filter on the paths the key had. */
#pragma once

#include "front/rest/target/items.h"
#include "query/plan.h"

/* Is a key of a feed, read in both terms, meant in those of before? Yes, where it makes no sense in
 * those of now, or there is nothing under it. */
NODISCARD bool rest_former_is_meant(const struct rest_items *items, const struct partition_key *key,
                                    struct arena *arena, bool *ret_meant, struct error *err);

/* Lets the plan see only items that had the former key. ERROR_QUERY_NOT_SUPPORTED: that key was
 * made by the server. */
NODISCARD bool rest_former_filter(const struct rest_items *items,
                                  const struct partition_key *former, struct arena *arena,
                                  struct query_plan *plan, struct error *err);

/* Leaves only such items in a list; returns how many. */
size_t rest_former_keep(const struct rest_items *items, const struct partition_key *former,
                        struct arena *arena, struct item *list, size_t count);
