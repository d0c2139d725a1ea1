/* Views: the thread that keeps all views of the server what their sources make of them.
 *
 * It goes from view to view, a small step each, as long as there is something to do, and sleeps
 * until something is committed. How far a view is is written down once a second at most: what is
 * done again after a crash changes nothing. */
#pragma once

#include "base/bell.h"
#include "front/front.h"
#include "front/rest/views/state.h"

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

/* Waits until the view has whatever was committed to its sources before the call, and so have those
 * of them that are views. Nothing is waited for where the container is no view. ERROR_TIMED_OUT. */
NODISCARD bool rest_views_wait(struct rest_views *views, const struct container *view,
                               int64_t wait_ms, struct error *err);

/* How a view is. False: it is none, or was not looked at yet. */
bool rest_views_report(struct rest_views *views, const struct container *view,
                       struct front_view_report *ret_report);
