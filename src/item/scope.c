#include "item/scope.h"

#include "partition/pledge_pass.h"

bool item_scope_get(const struct item_scope *scope, struct slice key, enum engine_reach reach,
                    struct arena *arena, struct engine_value *ret_value, struct error *err)
{
    struct pledges *pledges = commit_pledges(scope->commit);
    uint64_t partition = pledge_bit(scope->partition);
    bool may_wait = reach != ENGINE_READ_CACHED, cold;

    if (!pledges_pass(pledges, partition, PLEDGE_BEFORE_READING, may_wait, &cold, err) ||
        (!cold &&
         !engine_get(scope->engine, NULL, scope->partition, key, reach, arena, ret_value, err)) ||
        (!cold && !pledges_pass(pledges, partition, PLEDGE_AFTER_READING, may_wait, &cold, err)))
        return false;
    if (cold)
        *ret_value = (struct engine_value){.found = ENGINE_COLD};
    return true;
}

bool item_scope_snapshot_of(const struct item_scope *scope, uint64_t partitions,
                            struct engine_snapshot **ret_snapshot, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    struct pledges *pledges = commit_pledges(scope->commit);

    if (!pledges_await(pledges, partitions, PLEDGE_BEFORE_READING, err) ||
        !engine_snapshot_new(scope->engine, &snapshot, err) ||
        !pledges_await(pledges, partitions, PLEDGE_AFTER_READING, err))
        return false;
    *ret_snapshot = TAKE(snapshot);
    return true;
}

bool item_scope_snapshot(const struct item_scope *scope, struct engine_snapshot **ret_snapshot,
                         struct error *err)
{
    return item_scope_snapshot_of(scope, pledge_bit(scope->partition), ret_snapshot, err);
}
