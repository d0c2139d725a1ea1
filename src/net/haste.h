/* Whether a loop may come before everything else on its processor. A loop that is seldom busy may:
 * it does little for each request, somebody waits for it, and nobody else loses what can be felt.
 * One that keeps its processor busy, as pipelined short queries make it, may not: workers, the
 * committer and the rest of the machine would hardly run. So what it used lately decides, with a
 * gap between the two marks so that it does not change its mind all the time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    NET_HASTE_LOOK_MS = 10,        /* between two looks */
    NET_HASTE_LEAVE_PERCENT = 60,  /* of its processor, used since the last look: no longer first */
    NET_HASTE_RETURN_PERCENT = 30, /* at most: first again */
};

struct net_haste {
    bool first;
    int64_t looked_ms;
    uint64_t looked_cpu_ns;
};

static inline bool net_haste_is_due(const struct net_haste *haste, int64_t now_ms)
{
    return now_ms - haste->looked_ms >= NET_HASTE_LOOK_MS;
}

/* The loop has used cpu_ns so far. True if it should change places; haste->first says to which. */
static inline bool net_haste_look(struct net_haste *haste, int64_t now_ms, uint64_t cpu_ns)
{
    uint64_t passed_ns = (uint64_t)(now_ms - haste->looked_ms) * 1000000;
    uint64_t used_percent = (cpu_ns - haste->looked_cpu_ns) * 100 / passed_ns;
    bool first = used_percent <=
                 (uint64_t)(haste->first ? NET_HASTE_LEAVE_PERCENT : NET_HASTE_RETURN_PERCENT);
    bool changed = first != haste->first;

    haste->first = first;
    haste->looked_ms = now_ms;
    haste->looked_cpu_ns = cpu_ns;
    return changed;
}
