/* Views: the thread that keeps all views of the server what their sources make of them.
 *
 * It goes from view to view, a small step each, as long as there is something to do, and sleeps
 * until something is committed. How far a view is is written down once a second at most: what is
 * done again after a crash changes nothing. */
#pragma once

#include "base/bell.h"
#include "front/front.h"
#include "front/kit/call.h"
#include "front/rest/views/state.h"
#include "item/reading.h"

struct rest_views; /* opaque, owned */

struct rest_views_options {
    struct front_services services;
    struct bell *bell;  /* rung by commits; borrowed */
    int64_t lag_ms_max; /* view.lag_max */
    bool by_hand;       /* no thread: the test calls rest_views_round */
};

struct rest_views *rest_views_new(const struct rest_views_options *options);
void rest_views_free(struct rest_views *views); /* NULL is fine */
CLEANUP_FN(struct rest_views *, rest_views_free)

/* There is a view more, or less: looked at at once. */
void rest_views_wake(struct rest_views *views);

/* One step of every view. *ret_more: there is more to do. A failure of one does not keep the others
 * from theirs; the last is told. */
NODISCARD bool rest_views_round(struct rest_views *views, bool *ret_more, struct error *err);

/* May a container be the view that this body defines? What the catalogue does not look at: its
 * query. ERROR_VIEW_UNFIT, ERROR_BAD_QUERY and its kin. */
NODISCARD bool rest_views_check(struct slice body, struct error *err);

/* May this body replace the definition of a container? As above, of a view with another query. */
NODISCARD bool rest_views_replace_check(const struct container *container, struct slice body,
                                        struct error *err);

/* May a view be re-keyed to this partition key ({"paths": [...]})? may_lack: also to one that no
 * row of a view with groups can have. ERROR_VIEW_UNFIT. */
NODISCARD bool rest_views_key_check(const struct container *view, struct slice partition_key,
                                    bool may_lack, struct error *err);

/* The property of its source that a view has all its items by: it is an index table by that. In the
 * arena. False: it is none, or none that every query by the property can use. */
NODISCARD bool rest_views_index_path(const struct container *view, struct arena *arena,
                                     struct slice *ret_path);

/* A request that waits for a view: in its call, all zero at first. */
struct rest_view_wait {
    struct rest_views *views;
    struct rest_view_wait *next; /* of those that are parked */
    struct front_call *call;
    int64_t deadline_ms;             /* monotonic; 0: it was not begun */
    uint32_t number;                 /* of the view */
    const struct item_token *tokens; /* of sources: what it has to have; in the call's arena */
    size_t token_count;              /* 0: whatever was committed when it began */
    bool is_below_done;              /* sources that are views have what they shall have */
    uint64_t below, wanted;          /* cluster times: of their sources, of its own */
};

/* Has the view what is waited for: what tokens of its sources name or, without any, whatever was
 * committed to its sources when the call came, and so have those of them that are views? Else the
 * call is parked (front_call.park) and run again, by a worker, when it has or the time is over;
 * false without an error code, then. Nothing is waited for where the container is no view.
 * ERROR_TIMED_OUT. */
NODISCARD bool rest_views_wait(struct rest_views *views, const struct container *view,
                               int64_t wait_ms, struct rest_view_wait *wait,
                               struct front_call *call, struct error *err);

/* Whoever waits, waits no more, now and later. NULL is fine. */
void rest_views_let_go(struct rest_views *views);

/* How a view stands for who reads its source through it. */
struct rest_view_standing {
    const char *unfit; /* why it cannot stand for its source, whatever is read; NULL: it can */
    bool has_all;      /* whatever was committed to its source when this was asked */
    bool has_tokens;   /* what all of the tokens name */
    int64_t lag_ms;
    uint64_t lag_lsn;
};

/* unfit: it is being filled, or lacks items that could not be stored, or was not looked at yet. */
void rest_views_standing(struct rest_views *views, const struct container *view,
                         const struct item_token *tokens, size_t token_count,
                         struct rest_view_standing *ret_standing);

/* How a view is. False: it is none, or was not looked at yet. */
bool rest_views_report(struct rest_views *views, const struct container *view,
                       struct front_view_report *ret_report);
