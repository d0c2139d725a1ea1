/* Positions stay while a tenant lives, so that a request may remember one; the generation tells
 * whether it is still the same tenant. The table of hashes is rebuilt when a tenant goes, which is
 * an operator's act and rare. Nothing is allocated until the first tenant is set. */
#include "throughput/tenants_private.h"

#include "base/memory.h"

#include <xxhash.h>

enum { PLACES = 2 * TENANTS_MAX };

void tenants_init(struct tenants *tenants)
{
    *tenants = (struct tenants){0};
}

static void tenant_free(struct tenant *tenant)
{
    lane_done(&tenant->reserved);
    lane_done(&tenant->cap);
    memory_free((void *)tenant->key.data);
    memory_free(tenant);
}

void tenants_done(struct tenants *tenants)
{
    for (uint32_t i = 0; i < tenants->size; i++)
        if (tenants->all[i])
            tenant_free(tenants->all[i]);
    memory_free(tenants->all);
    memory_free(tenants->places);
    *tenants = (struct tenants){0};
}

int32_t tenants_find(const struct tenants *tenants, struct slice key)
{
    uint64_t hash;

    if (tenants->count == 0)
        return -1;
    hash = XXH3_64bits(key.data, key.len);
    for (size_t at = hash % PLACES; tenants->places[at]; at = (at + 1) % PLACES) {
        int32_t position = tenants->places[at] - 1;
        const struct tenant *tenant = tenants->all[position];

        if (tenant->hash == hash && slice_equal(tenant->key, key))
            return position;
    }
    return -1;
}

static void place_put(struct tenants *tenants, uint32_t position)
{
    size_t at = tenants->all[position]->hash % PLACES;

    while (tenants->places[at])
        at = (at + 1) % PLACES;
    tenants->places[at] = (uint16_t)(position + 1);
}

static void tenant_remove(struct tenants *tenants, int32_t position)
{
    tenants->reserved_sum_cru -= tenants->all[position]->reserved_cru;
    tenant_free(tenants->all[position]);
    tenants->all[position] = NULL;
    tenants->count--;
    memset(tenants->places, 0, PLACES * sizeof *tenants->places);
    for (uint32_t i = 0; i < tenants->size; i++)
        if (tenants->all[i])
            place_put(tenants, i);
}

/* A new one at the first free position; -1 when the table is full. */
static int32_t tenant_add(struct tenants *tenants, struct slice key)
{
    struct tenant *tenant;
    uint32_t position = 0;

    if (tenants->count == TENANTS_MAX)
        return -1;
    if (!tenants->all) {
        tenants->all = memory_alloc_zero(TENANTS_MAX * sizeof(struct tenant *));
        tenants->places = memory_alloc_zero(PLACES * sizeof *tenants->places);
    }
    while (tenants->all[position])
        position++;
    tenant = MEMORY_NEW(struct tenant);
    tenant->key = slice_of(slice_to_text(key), key.len);
    tenant->hash = XXH3_64bits(key.data, key.len);
    tenant->generation = ++tenants->generation;
    lane_init(&tenant->reserved, 1);
    lane_init(&tenant->cap, 1);
    tenants->all[position] = tenant;
    tenants->size = MAX(tenants->size, position + 1);
    tenants->count++;
    place_put(tenants, position);
    return (int32_t)position;
}

bool tenants_set(struct tenants *tenants, struct slice key, int64_t reserved_cru, int64_t cap_cru,
                 int64_t now_ns)
{
    int32_t position = tenants_find(tenants, key);
    struct tenant *tenant;

    if (reserved_cru == 0 && cap_cru == 0) {
        if (position >= 0)
            tenant_remove(tenants, position);
        return true;
    }
    if (position < 0)
        position = tenant_add(tenants, key);
    if (position < 0)
        return false;
    tenant = tenants->all[position];
    tenants->reserved_sum_cru += reserved_cru - tenant->reserved_cru;
    tenant->reserved_cru = reserved_cru;
    tenant->cap_cru = cap_cru;
    lane_set_rate(&tenant->reserved, reserved_cru, now_ns);
    lane_set_rate(&tenant->cap, cap_cru, now_ns);
    return true;
}
