/* Watching: change streams as cursors of aggregate, and what getMore does with them. */
#pragma once

#include "front/mongo/command/cursor.h"

/* Is $changeStream its first stage? */
bool mongo_watch_is_asked(struct slice pipeline);

struct mongo_watch_terms {
    struct slice pipeline, let, collation;
    bool alone; /* a database, or with allChangesForCluster everything */
    struct mongo_batch_terms batch;
};

/* The first batch, and the cursor, which is taken over. Blocks. */
NODISCARD bool mongo_watch_open(struct mongo_call *call, struct mongo_cursor *cursor,
                                const struct mongo_watch_terms *terms, struct error *err);

/* The next batch of a cursor that was taken and is given back. Parks the call where there is
 * nothing yet. batch_size 0: as much as fits. */
NODISCARD bool mongo_watch_more(struct mongo_call *call, struct mongo_cursor *cursor,
                                int64_t batch_size, struct error *err);

/* The cursor goes. */
void mongo_watch_close(struct mongo_watch *watch);
