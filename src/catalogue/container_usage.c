#include "catalogue/container_usage.h"

#include "item/cursor.h"
#include "item/item.h"
#include "partition/counters.h"
#include "partition/layout.h"
#include "partition/strategy.h"

enum { ESTIMATE_WALK = 1024 };

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

/* The entries of an index in a partition. */
static struct engine_range index_range(const struct index_definition *index, struct arena *arena)
{
    CLEANUP(buf_done) struct buf prefix;
    struct slice min;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    buf_append_byte(&prefix, PARTITION_FAMILY_INDEX);
    buf_append_slice(&prefix, index->prefix);
    min = arena_copy(arena, buf_slice(&prefix));
    return (struct engine_range){min, cursor_prefix_end(arena, min)};
}

/* Entries that were walked over. */
struct walked {
    uint64_t entries, bytes;
    bool ended; /* there were no more */
};

static bool entries_walk(struct engine *engine, uint32_t partition, struct engine_range range,
                         uint64_t max, struct walked *ret_walked, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;

    *ret_walked = (struct walked){0};
    if (!engine_iterator_new(engine, NULL, partition, range, false, ENGINE_READ_ONCE, &iterator,
                             err))
        return false;
    while (ret_walked->entries < max) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found == ENGINE_ABSENT) {
            ret_walked->ended = true;
            return true;
        }
        ret_walked->entries++;
        ret_walked->bytes += entry.key.len + entry.value.len;
    }
    return true;
}

bool container_index_count(const struct container *container, const struct index_definition *index,
                           uint64_t *ret_count, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_range range = index_range(index, arena);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct walked walked;

        if (promotion_list_is_window(container_promotions(container), spans[i].id))
            continue; /* counted where the key is at home */
        if (!entries_walk(container_engine(container, spans[i].node), spans[i].id, range,
                          UINT64_MAX, &walked, err))
            return false;
        *ret_count += walked.entries;
    }
    return true;
}

/* A few entries are counted. Of more the engine says what its files hold, but not what it has in
 * memory: at least one entry of the size of those that were seen for each item. */
static bool index_estimate(const struct container *container, const struct partition_span *span,
                           struct engine_range range, struct arena *arena, uint64_t *ret_bytes,
                           struct error *err)
{
    struct engine *engine = container_engine(container, span->node);
    struct container_usage usage;
    struct walked walked;
    uint64_t stored;

    if (!entries_walk(engine, span->id, range, ESTIMATE_WALK, &walked, err))
        return false;
    *ret_bytes = walked.bytes;
    if (walked.ended)
        return true;
    if (!engine_range_size(engine, span->id, range, &stored, err) ||
        !container_usage_partition(container, span, arena, &usage, err))
        return false;
    *ret_bytes = MAX(stored, walked.bytes / walked.entries * MAX(usage.items, walked.entries));
    return true;
}

bool container_usage_index(const struct container *container, uint32_t node,
                           const struct index_definition *index, struct arena *arena,
                           uint64_t *ret_bytes, struct error *err)
{
    struct engine_range range = index_range(index, arena);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    *ret_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes;

        if (node != CONTAINER_USAGE_ALL_NODES && spans[i].node != node)
            continue;
        if (!index_estimate(container, &spans[i], range, arena, &bytes, err))
            return false;
        *ret_bytes += bytes;
    }
    return true;
}

/* --- Logical partitions ---------------------------------------------------------------------- */

static struct slice logical_bound(struct slice routing, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, routing.len + 2);

    bytes[0] = PARTITION_FAMILY_COUNTER;
    bytes[1] = 'l';
    memcpy(bytes + 2, routing.data, routing.len);
    return slice_of(bytes, routing.len + 2);
}

bool container_usage_range(const struct container *container, const struct partition_span *span,
                           struct partition_range range, struct arena *arena,
                           struct container_usage *ret_usage, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct container_usage sum = {0};

    if (!engine_iterator_new(
            container_engine(container, span->node), NULL, span->id,
            (struct engine_range){logical_bound(range.min, arena), logical_bound(range.max, arena)},
            false, ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        struct container_usage usage;
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (!usage_decode(entry.value, &usage, err))
            return false;
        sum.bytes += usage.bytes;
        sum.items += usage.items;
    }
    *ret_usage = sum;
    return true;
}

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
