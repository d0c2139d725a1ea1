/* Scope: one physical partition of one container, and all that reading and writing its items needs
 * to know. A plain value made by whoever has routed a request; everything in it is borrowed. */
#pragma once

#include "base/clock.h"
#include "definition/definition.h"
#include "definition/promotion.h"
#include "engine/engine.h"
#include "item/hold.h"
#include "partition/commit.h"
#include "partition/history.h"
#include "partition/map.h"

enum { CONTAINER_POLICIES_BEFORE_MAX = 9 };

struct item_scope {
    struct engine *engine;
    struct commit *commit;
    uint32_t partition;
    uint32_t node; /* that holds it */
    uint64_t epoch;
    const struct definition_fields *definition;
    const struct index_policy *policy; /* current */
    uint32_t policy_version;
    uint32_t
        writers; /* version of the definition as the committer counts it (partition/commit.h) */
    /* Policies of versions before it that stored items may still be indexed by, the last one of
     * version policy_version - 1; none: all items are of the current one. */
    const struct index_policy *const *policies_before;
    size_t policies_before_count;
    int64_t logical_bytes_max;   /* 0: no limit */
    int64_t spread_bytes_max;    /* the same of a logical partition in several physical ones */
    int64_t partition_bytes_max; /* of items in the physical partition; 0: no limit */
    size_t item_bytes_max;       /* of the BSON; 0: no limit */
    const struct clock *clock;
    const struct partition_map *map; /* that places entries elsewhere (write_placed.h) */

    /* Is the map it was routed by still the last one? NULL: maps do not change. */
    bool (*is_current)(void *nodes);
    void *nodes;

    const struct promotion_list *promotions; /* keys the container does not take; NULL: none */
    struct item_holds *holds;                /* what is refused for a time; NULL: nothing */

    bool read_only; /* a view: nobody writes but who keeps it */

    struct history_origin history; /* whose changes are told, if they are */
};

/* May a logical partition be read? ERROR_KEY_ELSEWHERE: the container does not take it since a
 * promotion. ERROR_PAUSED: not now. */
NODISCARD bool item_scope_admits(const struct item_scope *scope, struct slice logical,
                                 struct error *err);
/* May it be written? Asked where a write is planned and again where it is committed.
 * ERROR_PAUSED, ERROR_WRITES_PAUSED, ERROR_VIEW_READ_ONLY. */
NODISCARD bool item_scope_admits_write(const struct item_scope *scope, struct slice logical,
                                       struct error *err);

/* --- Reading, beside transactions over several nodes (partition/pledge.h) --------------------- */

/* What a reader shows must not be older than what was shown of such a transaction elsewhere. So it
 * waits before it reads, and for decisions that were written meanwhile behind it; while there are
 * none, both are one load. ERROR_PLEDGED: in vain. */
NODISCARD static inline bool item_scope_await(const struct item_scope *scope,
                                              enum pledge_moment moment, struct error *err)
{
    return pledges_await(commit_pledges(scope->commit), pledge_bit(scope->partition), moment, err);
}

/* Reads one key as of now, for a client. Within ENGINE_READ_CACHED it is cold where it would have
 * to wait. Of the scope, engine, committer and partition are looked at. */
NODISCARD bool item_scope_get(const struct item_scope *scope, struct slice key,
                              enum engine_reach reach, struct arena *arena,
                              struct engine_value *ret_value, struct error *err);

/* A snapshot to read this partition in; or several of its node (bits). */
NODISCARD bool item_scope_snapshot(const struct item_scope *scope,
                                   struct engine_snapshot **ret_snapshot, struct error *err);
NODISCARD bool item_scope_snapshot_of(const struct item_scope *scope, uint64_t partitions,
                                      struct engine_snapshot **ret_snapshot, struct error *err);
