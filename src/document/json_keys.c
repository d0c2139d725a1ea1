#include "document/json_keys.h"

#include "base/memory.h"
#include "base/random.h"

#include <xxhash.h>

enum { SLOTS_MIN = 256 };

static bool table_add(struct json_keys *keys, uint32_t object, const uint8_t *base, uint32_t offset,
                      uint32_t length);

void json_keys_done(struct json_keys *keys)
{
    memory_free(keys->slots);
    keys->slots = NULL;
}

static bool same_key(const uint8_t *base, uint32_t a, uint32_t b, uint32_t length)
{
    return memcmp(base + a, base + b, length) == 0 && base[a + length] == 0;
}

bool json_object_add_slow(struct json_keys *keys, struct json_object *object, const uint8_t *base,
                          uint32_t offset, uint32_t length, uint32_t hash)
{
    if (object->large)
        return table_add(keys, object->large, base, offset, length);
    for (uint32_t i = object->first; i < keys->count; i++) {
        if (keys->names[i].hash == hash && same_key(base, keys->names[i].offset, offset, length))
            return false;
    }
    if (keys->count - object->first < JSON_KEYS_LINEAR) {
        object->bloom |= (uint64_t)1 << (hash & 63);
        keys->names[keys->count++] = (struct json_key){hash, offset};
        return true;
    }
    if (keys->object_count == 0)
        random_secret(&keys->seed, sizeof keys->seed);
    object->large = ++keys->object_count;
    for (uint32_t i = object->first; i < keys->count; i++) {
        uint32_t at = keys->names[i].offset;

        table_add(keys, object->large, base, at, (uint32_t)strlen((const char *)base + at));
    }
    return table_add(keys, object->large, base, offset, length);
}

static struct json_slot *slot_for(struct json_keys *keys, struct json_slot wanted,
                                  const uint8_t *base, uint32_t length)
{
    size_t at = wanted.hash & (keys->slot_count - 1);

    for (;; at = (at + 1) & (keys->slot_count - 1)) {
        struct json_slot *slot = &keys->slots[at];

        if (slot->offset == 0)
            return slot;
        if (base && slot->hash == wanted.hash && slot->object == wanted.object &&
            same_key(base, slot->offset, wanted.offset, length))
            return slot;
    }
}

static void table_grow(struct json_keys *keys)
{
    struct json_slot *old = keys->slots;
    size_t old_count = keys->slot_count;

    keys->slot_count = MAX(old_count * 2, (size_t)SLOTS_MIN);
    keys->slots = memory_alloc_zero(memory_array_size(keys->slot_count, sizeof *keys->slots));
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].offset)
            *slot_for(keys, old[i], NULL, 0) = old[i];
    }
    memory_free(old);
}

static bool table_add(struct json_keys *keys, uint32_t object, const uint8_t *base, uint32_t offset,
                      uint32_t length)
{
    uint64_t seed = keys->seed + object * 0x9E3779B97F4A7C15u;
    struct json_slot wanted = {
        .hash = (uint32_t)XXH3_64bits_withSeed(base + offset, length, seed),
        .offset = offset,
        .object = object,
    };
    struct json_slot *slot;

    if (keys->slots_used * 4 >= keys->slot_count * 3)
        table_grow(keys);
    slot = slot_for(keys, wanted, base, length);
    if (slot->offset)
        return false;
    *slot = wanted;
    keys->slots_used++;
    return true;
}
