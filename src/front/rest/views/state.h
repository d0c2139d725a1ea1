/* State: how far one view is, in memory and beside the catalogue.
 *
 * A note under 'v' | account, 4 | database, 4 | container, 4 (catalogue/notes.h) has, numbers
 * big-endian,
 *
 *     1  format, 4
 *     1  phase (enum rest_view_phase)
 *     1  flags: 1, it may have items that nothing stands for, as it was not empty when it was
 *        begun; 2, it lacks items that could not be stored
 *     8, 4, 4  time, origin, ordinal: changes up to this place are in it, or will be when what is
 *        there is filled in; read as no later than the beginning of the process that reads it
 *     8  wall clock of that place, ms
 *     4  filling: which source; following: of which source a key is walked
 *     8  filling: a hash of how keys of that source are made; following: which count of what that
 *        source shows the key belongs to, 0 where none is walked (shown.h)
 *     4  generation of its contributions (item/contribution.h)
 *     8  a hash of what it was made by: its query; with GROUP BY also how its keys are made
 *     1  number of sources, and for each of them
 *     8  the count of what it shows that is in the view (container_shown)
 *     .. filling, or walking a key: behind which item; sweeping: behind which item of the view
 *
 * Format 3 has no counts, as keys of sources were not promoted; format 2 does not say whether items
 * are lacking either, format 1 has neither generation nor hash. It may be behind what the view has:
 * doing a change again leaves the view as it is. */
#pragma once

#include "base/buf.h"
#include "catalogue/catalogue.h"
#include "front/front.h"
#include "front/rest/views/query.h"
#include "partition/history.h"

enum rest_view_phase {
    REST_VIEW_NEW,    /* nothing was done */
    REST_VIEW_FILL,   /* items of the sources are brought in, one source after the other */
    REST_VIEW_SWEEP,  /* items of the view that no source has any more go */
    REST_VIEW_FOLLOW, /* changes are followed */
};

/* Up to where a partition of a source is in a view. */
struct rest_view_seen {
    uint32_t partition;
    uint64_t lsn;
};

struct rest_view_state {
    struct rest_view_state *next;
    uint32_t account, database, number; /* of the container */
    bool listed;                        /* found by the last look for views */
    struct rest_view_query *query;      /* owned */
    uint64_t query_hash;                /* of its text */
    size_t source_count;
    uint32_t sources[DEFINITION_VIEW_SOURCES_MAX]; /* their numbers */
    uint64_t shown[DEFINITION_VIEW_SOURCES_MAX];   /* of each, the count that it has (shown.h) */

    enum rest_view_phase phase;
    bool again;
    bool gaps; /* an item was left out since it was begun, or it is not known */
    struct history_place at;
    int64_t at_ms;
    uint32_t source;
    uint64_t keys;
    uint32_t generation;
    uint64_t made_by; /* 0: not known, as it was written down by a version before */
    struct buf position;

    bool unnoted; /* it was begun, and that is not written down yet: nothing is done for it */
    bool walked; /* up to `at`, by this process: later changes of its sources are noted in the clock
                  */
    struct rest_view_seen *seen; /* owned; of all partitions, when it last had everything */
    size_t seen_count;
    struct rest_view_seen *seen_next; /* of a step: owned, takes the place of seen; NULL: none */
    size_t seen_next_count;
    bool changed;                     /* since it was written down */
    int64_t kept_ms;                  /* at_ms as it is written down */
    int64_t written_ms;               /* monotonic: when that was */
    int64_t wait_ms;                  /* monotonic: nothing is done before; 0: at once */
    int64_t failed_ms;                /* monotonic: when a failure was last told; 0: never */
    struct front_view_report figures; /* counts alone */
};

struct rest_view_state *rest_view_state_new(const struct container *view);
void rest_view_state_free(struct rest_view_state *state); /* NULL is fine */

/* What is written down of it; nothing: it stays new. ERROR_STORE_CORRUPT. */
NODISCARD bool rest_view_state_read(struct rest_view_state *state, struct catalogue *catalogue,
                                    struct error *err);
NODISCARD bool rest_view_state_write(struct rest_view_state *state, struct catalogue *catalogue,
                                     struct error *err);
/* Of a view that is gone. */
NODISCARD bool rest_view_state_forget(const struct rest_view_state *state,
                                      struct catalogue *catalogue, struct error *err);
