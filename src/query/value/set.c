/* Open addressing over indexes of four bytes, at most half full. Growing leaves the old tables to
 * the arena: together they are no larger than the last. */
#include "query/value/set.h"

#include "query/value/compare.h"

enum { CAPACITY_MIN = 8 };

static void places_fill(struct query_set *set)
{
    memset(set->places, 0, set->place_count * sizeof *set->places);
    for (size_t i = 0; i < set->count; i++) {
        size_t at = set->hashes[i] & (set->place_count - 1);

        while (set->places[at])
            at = (at + 1) & (set->place_count - 1);
        set->places[at] = (uint32_t)i + 1;
    }
}

static void set_grow(struct query_set *set, size_t capacity)
{
    struct document_value *values = ARENA_ARRAY(set->arena, struct document_value, capacity);
    uint64_t *hashes = ARENA_ARRAY(set->arena, uint64_t, capacity);

    if (set->count) {
        memcpy(values, set->values, set->count * sizeof *values);
        memcpy(hashes, set->hashes, set->count * sizeof *hashes);
    }
    set->values = values;
    set->hashes = hashes;
    set->capacity = capacity;
    set->place_count = capacity * 2;
    set->places = ARENA_ARRAY(set->arena, uint32_t, set->place_count);
    places_fill(set);
}

void query_set_init(struct query_set *set, enum document_order order, struct arena *arena,
                    size_t expected)
{
    size_t capacity = CAPACITY_MIN;

    *set = (struct query_set){.order = order, .arena = arena};
    while (capacity < expected)
        capacity *= 2;
    set_grow(set, capacity);
}

/* The place where a value with this hash is, or would be. */
static size_t place_of(const struct query_set *set, const struct document_value *value,
                       uint64_t hash)
{
    size_t at = hash & (set->place_count - 1);

    for (; set->places[at]; at = (at + 1) & (set->place_count - 1)) {
        size_t index = set->places[at] - 1;

        if (set->hashes[index] == hash && query_values_same(set->order, &set->values[index], value))
            break;
    }
    return at;
}

size_t query_set_find(const struct query_set *set, const struct document_value *value)
{
    size_t at = place_of(set, value, query_value_hash(value));

    return set->places[at] ? set->places[at] - 1 : SIZE_MAX;
}

size_t query_set_add(struct query_set *set, const struct document_value *value, bool *ret_new)
{
    uint64_t hash = query_value_hash(value);
    size_t at = place_of(set, value, hash);

    *ret_new = !set->places[at];
    if (set->places[at])
        return set->places[at] - 1;
    if (set->count == set->capacity) {
        assert(set->capacity < UINT32_MAX / 4);
        set_grow(set, set->capacity * 2);
        at = place_of(set, value, hash);
    }
    set->values[set->count] = *value;
    set->hashes[set->count] = hash;
    set->places[at] = (uint32_t)++set->count;
    return set->count - 1;
}
