/* Transfers: transactions over all partitions of a container whose changes are told, so that what
 * is left of them after a fault can be judged.
 *
 * Batch n of client c is one transaction over TRANSFER_PARTITIONS physical partitions: in each it
 * writes n into the item "last-c", makes an item "c-n", and deletes the item of the client's batch
 * before. So the history of the node says which batches there were, and what the items are. */
#pragma once

#include "support/space.h"

enum { TRANSFER_PARTITIONS = 4 };

extern const struct test_space_options transfer_options;

/* Commits it. Blocks. */
NODISCARD bool transfer_run(struct test_space *test, uint32_t client, uint32_t n,
                            struct error *err);

/* A batch that is told. */
struct transfer {
    uint32_t client, n;
    uint64_t time;
};

/* Looks at the store: every batch that is told is told whole and at one time, times and batches of
 * a client ascend, and the items are what the changes come to. Ends the test if not. In the arena,
 * by time. */
struct transfer *transfers_check(struct test_space *test, struct arena *arena, size_t *ret_count);
