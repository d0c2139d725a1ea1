/* Linear probing over at most half full places. Ids are spread by multiplication. */
#include "migration/migrator_private.h"

static size_t place_of(const struct migrator_sizes *sizes, uint32_t partition)
{
    size_t place = (partition * UINT32_C(2654435769)) & (sizes->capacity - 1);

    while (sizes->places[place].partition && sizes->places[place].partition != partition)
        place = (place + 1) & (sizes->capacity - 1);
    return place;
}

/* Into places of their own, those that are wanted. */
static void rebuild(struct migrator_sizes *sizes, size_t capacity, bool seen_only)
{
    struct migrator_sizes old = *sizes;

    sizes->capacity = capacity;
    sizes->count = 0;
    sizes->places = memory_alloc_zero(memory_array_size(capacity, sizeof *sizes->places));
    for (size_t i = 0; i < old.capacity; i++) {
        if (!old.places[i].partition || (seen_only && !old.places[i].seen))
            continue;
        sizes->places[place_of(sizes, old.places[i].partition)] = old.places[i];
        sizes->count++;
    }
    memory_free(old.places);
}

struct migrator_size *migrator_size_of(struct migrator_sizes *sizes, uint32_t partition)
{
    struct migrator_size *size;

    if (2 * (sizes->count + 1) > sizes->capacity)
        rebuild(sizes, sizes->capacity ? 2 * sizes->capacity : 64, false);
    size = &sizes->places[place_of(sizes, partition)];
    if (!size->partition) {
        *size = (struct migrator_size){.partition = partition};
        sizes->count++;
    }
    return size;
}

void migrator_sizes_sweep(struct migrator_sizes *sizes)
{
    size_t seen = 0, capacity = 64;

    for (size_t i = 0; i < sizes->capacity; i++)
        seen += sizes->places[i].partition && sizes->places[i].seen;
    while (capacity < 4 * seen)
        capacity *= 2;
    if (seen < sizes->count)
        rebuild(sizes, capacity, true);
    for (size_t i = 0; i < sizes->capacity; i++)
        sizes->places[i].seen = false;
}

void migrator_sizes_free(struct migrator_sizes *sizes)
{
    memory_free(sizes->places);
}
