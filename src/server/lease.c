#include "server/lease.h"

static bool sessions_ended(const struct engine_membership *seen)
{
    const struct engine_member *owner = engine_membership_find(seen, seen->owner);

    return owner && !owner->present && !seen->held;
}

void lease_look(struct lease *lease, const struct engine_membership *seen, int64_t now_ms)
{
    const struct engine_member *owner = engine_membership_find(seen, seen->owner);
    uint64_t beat = owner ? owner->beat : 0;

    if (lease->owner != seen->owner || lease->beat != beat)
        *lease = (struct lease){.owner = seen->owner, .beat = beat, .changed_ms = now_ms};
    else
        lease->beats++;
    lease->ended = sessions_ended(seen);
    lease->probing = lease->ended;
    if (!lease->ended)
        lease->refusals = 0;
}

void lease_asked(struct lease *lease, bool refused, int64_t now_ms)
{
    if (!refused) {
        lease->refusals = 0;
        return;
    }
    if (lease->refusals == 0)
        lease->refused_ms = now_ms;
    lease->refusals++;
}

enum lease_verdict lease_judge(const struct lease *lease, const struct lease_rules *rules,
                               const struct engine_membership *seen, uint64_t self, int64_t now_ms)
{
    if (seen->owner == self)
        return LEASE_OURS;
    if (seen->owner == 0)
        return seen->held ? LEASE_OUTSIDE : LEASE_FREE;
    if (!engine_membership_find(seen, seen->owner))
        return LEASE_FREE; /* it has left, or was forgotten */
    if (lease->owner != seen->owner)
        return LEASE_HELD; /* not looked at yet */
    if (lease->ended && lease->refusals >= LEASE_REFUSALS &&
        now_ms - lease->refused_ms >= LEASE_REFUSALS_MS)
        return LEASE_ENDED;
    if (now_ms - lease->changed_ms >= rules->lease_ms &&
        lease->beats >= (uint64_t)(rules->lease_ms / MAX(rules->beat_ms, (int64_t)1)))
        return LEASE_ENDED;
    return LEASE_HELD;
}

int64_t lease_skew_ms(const struct engine_membership *seen)
{
    int64_t off_ms = seen->offset_ms < 0 ? -seen->offset_ms : seen->offset_ms;

    return MAX(off_ms - seen->trip_ms, (int64_t)0);
}

bool lease_may_claim(const struct engine_membership *seen, uint64_t self, int64_t skew_ms_max,
                     const char **ret_why)
{
    const struct engine_member *member = engine_membership_find(seen, self);

    *ret_why = !member                             ? "it is registered no more"
               : member->draining                  ? "it drains"
               : lease_skew_ms(seen) > skew_ms_max ? "its clock is off"
                                                   : NULL;
    return !*ret_why;
}
