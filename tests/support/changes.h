/* Changes: what the history of a node tells (partition/history.h), as tests look at it. */
#pragma once

#include "partition/history.h"

struct test_change {
    struct history_place place;
    enum history_kind kind;
    struct slice key;      /* BSON: documentKey */
    struct slice document; /* of an insert or replace; data NULL: none */
};

/* All of them, in their order; in the arena. Ends the test if the records and the counter of them
 * do not agree. */
struct test_change *test_changes_read(struct engine *engine, struct arena *arena,
                                      size_t *ret_count);
