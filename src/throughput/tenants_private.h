/* Tenants: key values with a throughput of their own inside one physical partition: reserved RU/s,
 * which they get whatever others do, and capped RU/s, which they do not exceed though there be
 * room. A bounded table, guarded by the lock of the budget that owns it. */
#pragma once

#include "base/slice.h"
#include "throughput/budget.h"
#include "throughput/lane.h"

enum { TENANTS_MAX = BUDGET_TENANTS_MAX };

struct tenant {
    struct slice key; /* owned */
    uint64_t hash;
    uint64_t generation; /* tells a later tenant in the same position from this one; 0: nobody */
    int64_t reserved_cru, cap_cru; /* per second; 0: none */
    struct lane reserved, cap;
    struct budget_use use;
};

struct tenants {
    struct tenant **all; /* positions; NULL where there is none */
    uint32_t count, size;
    uint16_t *places; /* open-addressed: position + 1, 0 is free; twice TENANTS_MAX */
    int64_t reserved_sum_cru;
    uint64_t generation;
};

void tenants_init(struct tenants *tenants);
void tenants_done(struct tenants *tenants);

/* -1: has no throughput of its own. */
int32_t tenants_find(const struct tenants *tenants, struct slice key);

/* Adds or changes one; both 0 removes it. False: the table is full. */
bool tenants_set(struct tenants *tenants, struct slice key, int64_t reserved_cru, int64_t cap_cru,
                 int64_t now_ns);
