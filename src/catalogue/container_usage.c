#include "catalogue/container_usage.h"

#include "item/item.h"
#include "partition/counters.h"
#include "partition/layout.h"
#include "partition/strategy.h"

static bool usage_decode(struct slice value, struct container_usage *ret_usage, struct error *err)
{
    int64_t numbers[COUNTER_NUMBERS];

    if (!counter_decode(value, numbers, err))
        return false;
    ret_usage->bytes = (uint64_t)MAX(numbers[0], (int64_t)0);
    ret_usage->items = (uint64_t)MAX(numbers[1], (int64_t)0);
    return true;
}

bool container_usage_partition(const struct container *container, const struct partition_span *span,
                               struct arena *arena, struct container_usage *ret_usage,
                               struct error *err)
{
    static const uint8_t key[] = {PARTITION_FAMILY_COUNTER, 't'};
    struct engine_value value;

    if (!engine_get(container_engine(container, span->node), NULL, span->id,
                    slice_of(key, sizeof key), ENGINE_READ_ANY, arena, &value, err))
        return false;
    *ret_usage = (struct container_usage){0};
    return value.found != ENGINE_FOUND || usage_decode(value.bytes, ret_usage, err);
}

bool container_usage_all(const struct container *container, struct arena *arena,
                         struct container_usage *ret_usage, struct error *err)
{
    struct container_usage sum = {0};
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++) {
        struct container_usage usage;

        if (promotion_list_is_window(container_promotions(container), spans[i].id))
            continue; /* counted where the key is at home */
        if (!container_usage_partition(container, &spans[i], arena, &usage, err))
            return false;
        sum.bytes += usage.bytes;
        sum.items += usage.items;
    }
    *ret_usage = sum;
    return true;
}

/* --- Logical partitions ---------------------------------------------------------------------- */

/* The largest so far, largest first. */
struct largest {
    struct slice *logical; /* routing key and pk, in the arena */
    struct container_usage *usage;
    size_t count, max;
};

static void largest_offer(struct largest *largest, struct slice logical,
                          const struct container_usage *usage, struct arena *arena)
{
    size_t place = largest->count;

    while (place > 0 && largest->usage[place - 1].bytes < usage->bytes)
        place--;
    if (place == largest->max)
        return;
    largest->count = MIN(largest->count + 1, largest->max);
    for (size_t i = largest->count - 1; i > place; i--) {
        largest->logical[i] = largest->logical[i - 1];
        largest->usage[i] = largest->usage[i - 1];
    }
    largest->logical[place] = arena_copy(arena, logical);
    largest->usage[place] = *usage;
}

static bool largest_walk(struct engine_iterator *iterator, struct largest *largest, size_t seen_max,
                         struct arena *arena, size_t *ret_seen, struct error *err)
{
    size_t seen = 0;

    for (; seen < seen_max; seen++) {
        struct container_usage usage;
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (!usage_decode(entry.value, &usage, err))
            return false;
        if (usage.items)
            largest_offer(largest, slice_skip(entry.key, 2), &usage, arena);
    }
    *ret_seen = seen;
    return true;
}

bool container_usage_largest(const struct container *container, const struct partition_span *span,
                             size_t max, size_t seen_max, struct arena *arena,
                             struct container_usage_key **ret_keys, size_t *ret_count,
                             size_t *ret_seen, struct error *err)
{
    static const uint8_t from[] = {PARTITION_FAMILY_COUNTER, 'l'};
    static const uint8_t to[] = {PARTITION_FAMILY_COUNTER, 'l' + 1};
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct largest largest = {.logical = ARENA_ARRAY(arena, struct slice, max + 1),
                              .usage = ARENA_ARRAY(arena, struct container_usage, max + 1),
                              .max = max};
    struct container_usage_key *keys = ARENA_ARRAY(arena, struct container_usage_key, max + 1);

    if (!engine_iterator_new(
            container_engine(container, span->node), NULL, span->id,
            (struct engine_range){slice_of(from, sizeof from), slice_of(to, sizeof to)}, false,
            ENGINE_READ_ANY, &iterator, err) ||
        !largest_walk(iterator, &largest, seen_max, arena, ret_seen, err))
        return false;
    for (size_t i = 0; i < largest.count; i++) {
        struct slice bytes = largest.logical[i];

        keys[i].usage = largest.usage[i];
        if (!partition_route_skip(definition, &bytes, err) ||
            !partition_key_read(definition, &bytes, arena, &keys[i].key, err))
            return false;
    }
    *ret_keys = keys;
    *ret_count = largest.count;
    return true;
}
