/* What a node has promised, read when it joins, and let go of before a partition is fenced. */
#include "partition/commit_private.h"
#include "partition/layout.h"

bool commit_pledges_load(struct commit *commit, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct pledge *pledge;

    if (!engine_iterator_new(commit->engine, NULL, PARTITION_HISTORY,
                             pledge_records(PLEDGE_PROMISE, arena), false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    for (;;) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!pledge_decode(entry.key, entry.value, &pledge, err))
            return false;
        pledges_add(&commit->pledges, pledge);
    }
}

bool commit_partition_unpledge(struct commit *commit, uint32_t id, struct error *err)
{
    bool is_open = false;

    WITH_LOCK (&commit->partitions_lock) {
        struct partition *partition = commit_partition_find(commit, id);

        is_open = partition != NULL;
        if (is_open)
            partition->unpledged_until_ms = clock_monotonic_ms() + COMMIT_UNPLEDGED_MS;
    }
    /* A promise of the group in flight is in the table since it was admitted. */
    return !is_open || pledges_leave(&commit->pledges, id, COMMIT_UNPLEDGED_MS / 2) ||
           error_set(err, ERROR_PLEDGED,
                     "partition %u has promised parts of transactions that are not settled", id);
}
