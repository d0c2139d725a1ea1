/* Refresh: items of a view made what their sources' items are now, many at a time.
 *
 * An item of the view is known by the number of the source's item: its id is the _rid of that. What
 * is there under that id, under whichever partition key, is compared with what should be; it is
 * written, moved or removed. Nothing depends on what was there or how often it is done, so a
 * batch that was cut by a crash is done again. Changes are made durable together and paid from the
 * throughput of the view. */
#pragma once

#include "catalogue/container_space.h"
#include "front/front.h"
#include "front/rest/views/state.h"

enum { REST_VIEW_BATCH_MAX = 128, REST_VIEW_BATCH_BYTES = 4 * 1024 * 1024 };

struct rest_view_touched {
    struct rid source;     /* of the item, as its _rid */
    struct slice document; /* as it is now; data NULL: it is gone. Borrowed until the end */
};

/* ERROR_TOO_MANY_REQUESTS and its kin with state->wait_ms set: the throughput is used up, and not
 * everything was done. */
NODISCARD bool rest_view_refresh(struct rest_view_state *state,
                                 const struct front_services *services, struct container *view,
                                 const struct rest_view_touched *touched, size_t count,
                                 struct error *err);
