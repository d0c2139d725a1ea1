/* Shown: which items the sources of a view show, where keys of theirs are promoted.
 *
 * A key that is promoted is shown by two containers for a while and then by one of them
 * (definition/promotion.h). What is written through one is noted as that one's, so the records of
 * both are heard by the views of either; an item that was touched is looked at in the source as it
 * is now, so it does not matter if a record is of an item that the source does not show. When a
 * source begins or ceases to show a key, nothing is noted of its items: the catalogue counts that
 * (container_shown), and a view that has not seen the last count walks the items of the key. */
#pragma once

#include "catalogue/catalogue.h"
#include "front/rest/views/state.h"

/* A container whose records are heard for a source. */
struct rest_view_heard {
    size_t source;      /* which of the view's */
    uint32_t container; /* by number; the source itself, or one that it is tied to */
    uint64_t hash;      /* history_hash */
};

struct rest_view_hearing {
    size_t count;
    struct rest_view_heard *list; /* in the arena */
};

/* As it is now. Ties are there before anything is written by them. */
struct rest_view_hearing rest_view_hearing(const struct rest_view_state *state,
                                           struct catalogue *catalogue, struct arena *arena);
bool rest_view_hearing_same(const struct rest_view_hearing *a, const struct rest_view_hearing *b);

/* The time of the last change that was noted for any of them. */
uint64_t rest_view_hearing_noted(const struct rest_view_hearing *hearing,
                                 struct commit_clock *times);

/* Has the view seen what its sources show by now? */
bool rest_view_shown_is_seen(const struct rest_view_state *state, struct catalogue *catalogue);

/* From here on what the sources show is brought in. */
void rest_view_shown_begin(struct rest_view_state *state, struct catalogue *catalogue);

/* What a view has to look at because a source shows other items. */
struct rest_view_reshown {
    enum { REST_VIEW_SHOWN_SEEN, REST_VIEW_SHOWN_RANGE, REST_VIEW_SHOWN_ALL } what;
    size_t source;
    uint64_t shown;               /* the count to be noted when it is done */
    bool is_shown;                /* range: the source shows the items now */
    struct container *walked;     /* range: one that has them; a reference of the caller's */
    struct container *container;  /* range: the source; a reference of the caller's */
    struct partition_range range; /* in the arena */
};

/* The first there is. ALL: it cannot be told which items, as a tie was forgotten or the container
 * that has them dropped. */
void rest_view_shown_next(const struct rest_view_state *state, struct catalogue *catalogue,
                          struct arena *arena, struct rest_view_reshown *ret_reshown);
void rest_view_reshown_done(struct rest_view_reshown *reshown);
CLEANUP_VALUE_FN(struct rest_view_reshown, rest_view_reshown_done)
