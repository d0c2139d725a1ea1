/* A hash table with chains and a list by last use. Evicting is done between groups only, so that a
 * counter handed out stays where it is while the group needs it. */
#include "partition/counters.h"

#include "base/bytes.h"

#include <xxhash.h>

struct counters {
    struct engine *engine; /* borrowed */
    size_t max, count;
    struct counter **buckets; /* a power of two */
    size_t mask;
    struct counter by_use; /* ring head: newer = oldest of all, older = newest of all */
    struct counter *changed;
    struct arena *arena; /* scratch of one read */
};

struct counters *counters_new(struct engine *engine, size_t max)
{
    struct counters *counters = MEMORY_NEW(struct counters);
    size_t buckets = 16;

    while (buckets < max)
        buckets *= 2;
    counters->engine = engine;
    counters->max = max;
    counters->buckets = memory_alloc_zero(memory_array_size(buckets, sizeof *counters->buckets));
    counters->mask = buckets - 1;
    counters->by_use.newer = counters->by_use.older = &counters->by_use;
    counters->arena = arena_new();
    return counters;
}

static void use_unlink(struct counter *counter)
{
    counter->newer->older = counter->older;
    counter->older->newer = counter->newer;
}

static void use_newest(struct counters *counters, struct counter *counter)
{
    struct counter *head = &counters->by_use;

    counter->newer = head;
    counter->older = head->older;
    head->older->newer = counter;
    head->older = counter;
}

static void counter_forget(struct counters *counters, struct counter *counter)
{
    struct counter **link = &counters->buckets[counter->hash & counters->mask];

    assert(counters->count > 0 && !counter->changed);
    while (*link != counter)
        link = &(*link)->next_in_bucket;
    *link = counter->next_in_bucket;
    use_unlink(counter);
    counters->count--;
    memory_free(counter);
}

void counters_free(struct counters *counters)
{
    if (!counters)
        return;
    while (counters->by_use.newer != &counters->by_use)
        counter_forget(counters, counters->by_use.newer);
    assert(counters->count == 0);
    memory_free(counters->buckets);
    arena_free(counters->arena);
    memory_free(counters);
}

void counter_encode(const struct counter *counter, uint8_t ret_bytes[COUNTER_BYTES])
{
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        bytes_put_be64(ret_bytes + 8 * i, (uint64_t)counter->now[i]);
}

bool counter_decode(struct slice bytes, int64_t ret_numbers[COUNTER_NUMBERS], struct error *err)
{
    if (bytes.len != COUNTER_BYTES)
        return error_set(err, ERROR_STORE_CORRUPT, "a counter has %zu bytes in place of %d",
                         bytes.len, COUNTER_BYTES);
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        ret_numbers[i] = (int64_t)bytes_get_be64(bytes.data + 8 * i);
    return true;
}

static struct counter *counter_find(struct counters *counters, uint32_t partition, struct slice key,
                                    uint64_t hash)
{
    struct counter *counter = counters->buckets[hash & counters->mask];

    while (counter && (counter->hash != hash || counter->partition != partition ||
                       !slice_equal(counter->key, key)))
        counter = counter->next_in_bucket;
    return counter;
}

static bool counter_read(struct counters *counters, uint32_t partition, struct slice key,
                         int64_t ret_numbers[COUNTER_NUMBERS], struct error *err)
{
    struct engine_value value;

    arena_reset(counters->arena);
    if (!engine_get(counters->engine, NULL, partition, key, ENGINE_READ_ANY, counters->arena,
                    &value, err))
        return false;
    if (value.found == ENGINE_ABSENT) {
        memset(ret_numbers, 0, sizeof(int64_t) * COUNTER_NUMBERS);
        return true;
    }
    return counter_decode(value.bytes, ret_numbers, err);
}

static struct counter *counter_add_new(struct counters *counters, uint32_t partition,
                                       struct slice key, uint64_t hash,
                                       const int64_t numbers[COUNTER_NUMBERS])
{
    struct counter *counter = memory_alloc_zero(sizeof *counter + key.len);
    uint8_t *own_key = (uint8_t *)(counter + 1);
    struct counter **bucket = &counters->buckets[hash & counters->mask];

    memcpy(own_key, key.data, key.len);
    counter->partition = partition;
    counter->key = slice_of(own_key, key.len);
    counter->hash = hash;
    memcpy(counter->base, numbers, sizeof counter->base);
    memcpy(counter->now, numbers, sizeof counter->now);
    counter->next_in_bucket = *bucket;
    *bucket = counter;
    use_newest(counters, counter);
    counters->count++;
    return counter;
}

bool counters_get(struct counters *counters, uint32_t partition, struct slice key,
                  struct counter **ret_counter, struct error *err)
{
    uint64_t hash = XXH3_64bits_withSeed(key.data, key.len, partition);
    struct counter *counter = counter_find(counters, partition, key, hash);
    int64_t numbers[COUNTER_NUMBERS];

    assert(partition > 0 && key.len > 0);
    if (counter) {
        use_unlink(counter);
        use_newest(counters, counter);
        *ret_counter = counter;
        return true;
    }
    if (!counter_read(counters, partition, key, numbers, err))
        return false;
    *ret_counter = counter_add_new(counters, partition, key, hash, numbers);
    return true;
}

void counters_add(struct counters *counters, struct counter *counter, const int64_t *amounts)
{
    for (size_t i = 0; i < COUNTER_NUMBERS; i++)
        counter->now[i] += amounts[i];
    if (counter->changed)
        return;
    counter->changed = true;
    counter->next_changed = counters->changed;
    counters->changed = counter;
}

struct counter *counters_changed(const struct counters *counters)
{
    return counters->changed;
}

static void group_end(struct counters *counters, bool keep)
{
    for (struct counter *counter = counters->changed; counter; counter = counter->next_changed) {
        if (keep)
            memcpy(counter->base, counter->now, sizeof counter->base);
        else
            memcpy(counter->now, counter->base, sizeof counter->now);
        counter->changed = false;
    }
    counters->changed = NULL;
}

void counters_keep(struct counters *counters)
{
    group_end(counters, true);
    assert(!counters->changed);
    while (counters->count > counters->max)
        counter_forget(counters, counters->by_use.newer);
}

void counters_undo(struct counters *counters)
{
    group_end(counters, false);
}

void counters_forget(struct counters *counters, uint32_t partition)
{
    struct counter *counter = counters->by_use.newer;

    while (counter != &counters->by_use) {
        struct counter *newer = counter->newer;

        if (counter->partition == partition)
            counter_forget(counters, counter);
        counter = newer;
    }
}
