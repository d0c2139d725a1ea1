/* Two rings that turn together, one of entries and one of their key bytes, and an open-addressed
 * table from the hash of a key to the last transaction that wrote it. The ring gives ranges and the
 * order of forgetting; the table makes the common question, about one key, one probe. */
#include "partition/recent.h"

#include <xxhash.h>

struct entry {
    uint64_t sequence;
    uint64_t hash;
    uint32_t partition;
    uint32_t key_len;
    size_t key_at; /* in bytes */
};

struct place {
    uint64_t hash;
    uint64_t sequence; /* 0: free */
};

struct recent {
    struct entry *entries; /* ring of keys_max */
    size_t keys_max;
    uint64_t first, next; /* entries first .. next-1, each modulo keys_max */

    uint8_t *bytes; /* ring of bytes_max; a key never wraps */
    size_t bytes_max, bytes_at;

    struct place *places; /* a power of two, at most half full */
    size_t mask;
    uint64_t floor;
};

struct recent *recent_new(size_t keys_max, size_t bytes_max)
{
    struct recent *recent = MEMORY_NEW(struct recent);
    size_t places = 16;

    assert(keys_max > 0 && bytes_max >= 2 * ENGINE_KEY_MAX);
    while (places < 2 * keys_max)
        places *= 2;
    recent->keys_max = keys_max;
    recent->bytes_max = bytes_max;
    recent->entries = memory_alloc(memory_array_size(keys_max, sizeof *recent->entries));
    recent->bytes = memory_alloc(bytes_max);
    recent->places = memory_alloc_zero(memory_array_size(places, sizeof *recent->places));
    recent->mask = places - 1;
    return recent;
}

void recent_free(struct recent *recent)
{
    if (!recent)
        return;
    memory_free(recent->entries);
    memory_free(recent->bytes);
    memory_free(recent->places);
    memory_free(recent);
}

static uint64_t key_hash(uint32_t partition, struct slice key)
{
    return XXH3_64bits_withSeed(key.data, key.len, partition);
}

static struct place *place_find(const struct recent *recent, uint64_t hash)
{
    size_t at = hash & recent->mask;

    while (recent->places[at].sequence && recent->places[at].hash != hash)
        at = (at + 1) & recent->mask;
    return &recent->places[at];
}

/* Empties a place and moves later ones of the same run up, so that no search stops short. */
static void place_free(struct recent *recent, struct place *place)
{
    size_t hole = (size_t)(place - recent->places);

    for (size_t at = (hole + 1) & recent->mask; recent->places[at].sequence;
         at = (at + 1) & recent->mask) {
        size_t home = recent->places[at].hash & recent->mask;

        if (((at - home) & recent->mask) >= ((at - hole) & recent->mask)) {
            recent->places[hole] = recent->places[at];
            hole = at;
        }
    }
    recent->places[hole].sequence = 0;
}

static void forget_oldest(struct recent *recent)
{
    const struct entry *oldest = &recent->entries[recent->first++ % recent->keys_max];
    struct place *place = place_find(recent, oldest->hash);

    assert(recent->first <= recent->next && oldest->sequence >= recent->floor);
    if (place->sequence == oldest->sequence)
        place_free(recent, place);
    recent->floor = oldest->sequence;
}

/* Room for len bytes in the byte ring: forgets whoever lies there. */
static size_t bytes_claim(struct recent *recent, size_t len)
{
    size_t at = recent->bytes_at;

    assert(len <= recent->bytes_max);
    if (at + len > recent->bytes_max) {
        /* Those between here and the end are the oldest of all. */
        while (recent->first < recent->next &&
               recent->entries[recent->first % recent->keys_max].key_at >= at)
            forget_oldest(recent);
        at = 0;
    }
    while (recent->first < recent->next) {
        const struct entry *oldest = &recent->entries[recent->first % recent->keys_max];

        if (oldest->key_at + oldest->key_len <= at || oldest->key_at >= at + len)
            break;
        forget_oldest(recent);
    }
    recent->bytes_at = at + len;
    return at;
}

void recent_add(struct recent *recent, uint64_t sequence, uint32_t partition, struct slice key)
{
    struct place *place;
    struct entry *entry;
    uint64_t hash = key_hash(partition, key);
    size_t at;

    assert(sequence > 0 && key.len <= ENGINE_KEY_MAX);
    assert(recent->first == recent->next || /* the order of forgetting is that of commits */
           recent->entries[(recent->next - 1) % recent->keys_max].sequence <= sequence);
    if (recent->next - recent->first == recent->keys_max)
        forget_oldest(recent);
    at = bytes_claim(recent, key.len);
    memcpy(recent->bytes + at, key.data, key.len);
    entry = &recent->entries[recent->next++ % recent->keys_max];
    *entry = (struct entry){.sequence = sequence,
                            .hash = hash,
                            .partition = partition,
                            .key_len = (uint32_t)key.len,
                            .key_at = at};
    place = place_find(recent, hash);
    *place = (struct place){.hash = hash, .sequence = sequence};
}

uint64_t recent_floor(const struct recent *recent)
{
    return recent->floor;
}

bool recent_has_key(const struct recent *recent, uint64_t moment, uint32_t partition,
                    struct slice key)
{
    return place_find(recent, key_hash(partition, key))->sequence > moment;
}

static bool range_has(struct engine_range range, struct slice key)
{
    return (!range.min.data || slice_compare(key, range.min) >= 0) &&
           (!range.max.data || slice_compare(key, range.max) < 0);
}

bool recent_has_range(const struct recent *recent, uint64_t moment, uint32_t partition,
                      struct engine_range range)
{
    for (uint64_t i = recent->next; i > recent->first; i--) {
        const struct entry *entry = &recent->entries[(i - 1) % recent->keys_max];

        if (entry->sequence <= moment)
            return false;
        if (entry->partition == partition &&
            range_has(range, slice_of(recent->bytes + entry->key_at, entry->key_len)))
            return true;
    }
    return false;
}
