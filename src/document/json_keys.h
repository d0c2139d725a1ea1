/* The property names of the objects being read, to find one that comes twice.
 *
 * A name is known by where it lies in the BSON being written, NUL-terminated. Names of the first
 * few properties of an object are compared one by one, behind a cheap hash; from the 33rd on, the
 * object moves into a hash table with a secret seed, so that hostile names cannot make it slow. One
 * table serves all large objects of a text: each has a serial number which is part of the hash. */
#pragma once

#include "base/buf.h"
#include "document/bson.h"

enum { JSON_KEYS_LINEAR = 32 };

struct json_key {
    uint32_t hash, offset;
};

struct json_slot {
    uint32_t hash, offset; /* offset 0: empty, for no key lies at the very start */
    uint32_t object;
};

/* Too large to clear for every text; json_keys_init sets what must be. */
struct json_keys {
    uint32_t count;        /* of the names in use below */
    uint32_t object_count; /* large objects so far */
    uint64_t seed;
    struct json_slot *slots; /* owned; NULL until an object is large */
    size_t slot_count, slots_used;
    struct json_key names[JSON_KEYS_LINEAR * DOCUMENT_DEPTH_MAX];
};

/* One object: its names begin at first. */
struct json_object {
    uint64_t bloom; /* a bit per hash seen; most names are new and need no search */
    uint32_t first;
    uint32_t large; /* its serial number once it is large */
};

static inline void json_keys_init(struct json_keys *keys)
{
    keys->count = 0;
    keys->object_count = 0;
    keys->slots = NULL;
    keys->slot_count = 0;
    keys->slots_used = 0;
}
void json_keys_done(struct json_keys *keys);

static inline struct json_object json_object_open(const struct json_keys *keys)
{
    return (struct json_object){.first = keys->count};
}

static inline void json_object_close(struct json_keys *keys, const struct json_object *object)
{
    keys->count = object->first;
}

/* What a full linear list or a possible match needs; false if the name was there already. */
bool json_object_add_slow(struct json_keys *keys, struct json_object *object, const uint8_t *base,
                          uint32_t offset, uint32_t length, uint32_t hash);

/* A hash good enough for a handful of names: their length, first and last eight bytes. */
static inline uint32_t json_key_hash(const uint8_t *key, size_t length)
{
    uint64_t first = 0, last = 0;

    if (length >= 8) {
        memcpy(&first, key, 8);
        memcpy(&last, key + length - 8, 8);
    } else if (length >= 4) {
        memcpy(&first, key, 4);
        memcpy(&last, key + length - 4, 4);
    } else if (length) {
        first = key[0] | (uint64_t)key[length / 2] << 8 | (uint64_t)key[length - 1] << 16;
    }
    first = (first ^ length) * 0x9E3779B97F4A7C15u;
    last = (last + first) * 0xC2B2AE3D27D4EB4Fu;
    return (uint32_t)((first ^ last) >> 32);
}

/* Adds the name at base + offset; false if the object has it already. */
static inline bool json_object_add(struct json_keys *keys, struct json_object *object,
                                   const uint8_t *base, uint32_t offset, uint32_t length)
{
    uint32_t hash = json_key_hash(base + offset, length);
    uint64_t bit = (uint64_t)1 << (hash & 63);

    if (UNLIKELY(object->bloom & bit) || UNLIKELY(keys->count - object->first == JSON_KEYS_LINEAR))
        return json_object_add_slow(keys, object, base, offset, length, hash);
    object->bloom |= bit;
    keys->names[keys->count++] = (struct json_key){hash, offset};
    return true;
}
