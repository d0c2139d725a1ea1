/* Keeping a committer still. Snapshots of several nodes are of one moment if none of them writes
 * between the first and the last: whoever wants them keeps all committers still for as long as that
 * takes, which is far less than one sync of a disk.
 *
 * Groups and those who keep still take turns, so that neither starves: who comes while a group
 * waits lets it go first, and all who wait for a group begin together. A node may hang while its
 * snapshot is taken; so a group waits for a time and then goes on, and who kept still is told. To
 * check afterwards whether a group was made, without keeping anything still, was weighed: beside
 * steady writers it would find one each time. */
#include "partition/commit_still.h"
#include "partition/commit_private.h"

void commit_busy_begin(struct commit *commit)
{
    int64_t until_ms = 0;

    mutex_lock(&commit->still_lock);
    assert(!commit->busy && !commit->wanting);
    commit->wanting = commit->still > 0;
    if (commit->wanting)
        until_ms = clock_monotonic_ms() + COMMIT_STILL_MS_MAX;
    while (commit->still &&
           condition_wait_until(&commit->still_changed, &commit->still_lock, until_ms))
        ;
    commit->wanting = false;
    commit->busy = true;
    commit->groups_begun++;
    mutex_unlock(&commit->still_lock);
}

void commit_busy_end(struct commit *commit)
{
    mutex_lock(&commit->still_lock);
    assert(commit->busy);
    commit->busy = false;
    condition_broadcast(&commit->still_changed);
    mutex_unlock(&commit->still_lock);
}

bool commit_still_begin(struct commit *commit, int64_t until_ms, uint64_t *ret_groups)
{
    bool still;

    mutex_lock(&commit->still_lock);
    while ((commit->busy || commit->wanting) &&
           condition_wait_until(&commit->still_changed, &commit->still_lock, until_ms))
        ;
    still = !commit->busy && !commit->wanting;
    if (still) {
        commit->still++;
        *ret_groups = commit->groups_begun;
    }
    mutex_unlock(&commit->still_lock);
    return still;
}

bool commit_still_end(struct commit *commit, uint64_t groups)
{
    bool none;

    mutex_lock(&commit->still_lock);
    assert(commit->still > 0);
    none = commit->groups_begun == groups;
    if (--commit->still == 0)
        condition_broadcast(&commit->still_changed);
    mutex_unlock(&commit->still_lock);
    return none;
}

/* While the lock is held no group begins, and what was committed lately stands still. */
bool commit_still_wrote(struct commit *commit, uint64_t groups, uint64_t moment, uint32_t partition)
{
    bool wrote;

    mutex_lock(&commit->still_lock);
    wrote = commit->groups_begun != groups || moment < recent_floor(commit->recent) ||
            recent_has_range(commit->recent, moment, partition, (struct engine_range){0});
    mutex_unlock(&commit->still_lock);
    return wrote;
}
