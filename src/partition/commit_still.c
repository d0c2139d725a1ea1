/* Keeping a committer still. Snapshots of several nodes are of one moment if none of them writes
 * between the first and the last: whoever wants them keeps all committers still for as long as that
 * takes, which is far less than one sync of a disk.
 *
 * Groups and those who keep still take turns, so that neither starves: who comes while a group
 * waits lets it go first, and a group that ends hands the committer to all who wait by then, whom
 * the next one waits for, however late they wake up. A node may hang while its snapshot is taken,
 * or a thread be kept from its processor; so a group waits for a time, then goes on, and who kept
 * still is told. After a group has waited, nobody keeps the committer still for some times as long:
 * whatever is asked, and by however many, writers lose a fifth of their time at most.
 *
 * To check afterwards whether a group was made, without keeping anything still, was weighed: beside
 * steady writers it would find one each time. */
#include "partition/commit_still.h"
#include "partition/commit_private.h"

/* One that waits; on its stack, under still_lock. */
struct commit_keeper {
    bool keeps;
    uint64_t groups; /* begun before */
    struct commit_keeper *next;
};

static void keeper_admit(struct commit *commit, struct commit_keeper *keeper)
{
    keeper->keeps = true;
    keeper->groups = commit->groups_begun;
    commit->still++;
}

static void keeper_unlink(struct commit *commit, const struct commit_keeper *keeper)
{
    struct commit_keeper **link = &commit->keepers;

    while (*link != keeper)
        link = &(*link)->next;
    *link = keeper->next;
}

/* A group waits for those who keep still, who are told by groups_begun if it could not. */
static void still_await(struct commit *commit)
{
    int64_t since_ms = clock_monotonic_ms(), now_ms;

    commit->wanting = true;
    while (commit->still && condition_wait_until(&commit->still_changed, &commit->still_lock,
                                                 since_ms + COMMIT_STILL_MS_MAX))
        ;
    commit->wanting = false;
    commit->still = 0;
    now_ms = clock_monotonic_ms();
    commit->rests_until_ms = now_ms + COMMIT_STILL_RESTS * (now_ms - since_ms);
}

void commit_busy_begin(struct commit *commit)
{
    mutex_lock(&commit->still_lock);
    assert(!commit->busy && !commit->wanting);
    if (commit->still)
        still_await(commit);
    commit->busy = true;
    commit->groups_begun++;
    mutex_unlock(&commit->still_lock);
}

void commit_busy_end(struct commit *commit)
{
    mutex_lock(&commit->still_lock);
    assert(commit->busy);
    commit->busy = false;
    if (commit->keepers) {
        if (clock_monotonic_ms() >= commit->rests_until_ms)
            for (; commit->keepers; commit->keepers = commit->keepers->next)
                keeper_admit(commit, commit->keepers);
        condition_broadcast(&commit->still_changed);
    }
    mutex_unlock(&commit->still_lock);
}

/* Is it time? False: *ret_wake_ms is when to look again, if nobody tells before. */
static bool may_keep(const struct commit *commit, int64_t now_ms, int64_t *ret_wake_ms)
{
    bool is_free = !commit->busy && !commit->wanting;

    *ret_wake_ms = is_free ? commit->rests_until_ms : INT64_MAX;
    return is_free && now_ms >= commit->rests_until_ms;
}

bool commit_still_begin(struct commit *commit, int64_t until_ms, uint64_t *ret_groups)
{
    struct commit_keeper keeper = {0};

    mutex_lock(&commit->still_lock);
    keeper.next = commit->keepers;
    commit->keepers = &keeper;
    while (!keeper.keeps) {
        int64_t now_ms = clock_monotonic_ms(), wake_ms;
        bool may = may_keep(commit, now_ms, &wake_ms);

        if (!may && now_ms < until_ms) {
            (void)condition_wait_until(&commit->still_changed, &commit->still_lock,
                                       MIN(wake_ms, until_ms));
            continue;
        }
        keeper_unlink(commit, &keeper);
        if (!may)
            break;
        keeper_admit(commit, &keeper);
    }
    mutex_unlock(&commit->still_lock);
    if (keeper.keeps)
        *ret_groups = keeper.groups;
    return keeper.keeps;
}

/* Whoever was overtaken by a group is not counted any more. */
bool commit_still_end(struct commit *commit, uint64_t groups)
{
    bool none;

    mutex_lock(&commit->still_lock);
    none = commit->groups_begun == groups;
    assert(!none || commit->still > 0);
    if (none && --commit->still == 0 && commit->wanting)
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
