/* Hashes that agree with equivalence: of what two equivalent values cannot differ in. */
#include "front/gremlin/value/compare_private.h"

#include "front/gremlin/value/big_private.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"

#include <math.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Deeper values add nothing: the hash of a long nesting need not look at all of it. */
enum { HASH_DEPTH = 16 };

static uint64_t hashed(struct gremlin_value value, uint64_t seed, int depth);

static uint64_t mixed(uint64_t hash, uint64_t more)
{
    hash ^= more;
    hash *= 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static uint64_t bytes_hashed(struct slice bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes.data, bytes.len, seed);
}

static uint64_t real_hashed(double real, uint64_t seed)
{
    uint64_t bits;

    if (isnan(real))
        real = (double)NAN;
    memcpy(&bits, &real, sizeof bits);
    return mixed(seed, bits);
}

/* 1.0 and 1.00 are one. */
static uint64_t decimal_hashed(struct gremlin_value value, uint64_t seed)
{
    CLEANUP(gremlin_big_done) struct gremlin_big big;
    uint8_t bytes[2048];
    int len;

    gremlin_big_init(&big);
    gremlin_big_set(&big, value);
    gremlin_big_normalize(&big);
    len = BN_num_bytes(big.coefficient);
    assert((size_t)len <= sizeof bytes);
    BN_bn2bin(big.coefficient, bytes);
    return mixed(bytes_hashed(slice_of(bytes, (size_t)len), seed),
                 (uint64_t)big.scale * 2 + (uint64_t)BN_is_negative(big.coefficient));
}

static uint64_t list_hashed(const struct gremlin_list *list, uint64_t seed, int depth)
{
    uint64_t hash = mixed(seed, list->count);

    for (size_t i = 0; i < list->count; i++)
        hash = mixed(hash, hashed(list->items[i], seed, depth));
    return hash;
}

/* Whatever the order of the rows. */
static uint64_t table_hashed(const struct gremlin_table *table, uint64_t seed, int depth)
{
    uint64_t hash = table->count;

    for (size_t i = 0; i < table->count; i++) {
        uint64_t row = hashed(table->rows[i].key, seed, depth);

        hash += mixed(row, hashed(table->rows[i].value, seed, depth));
    }
    return mixed(seed, hash);
}

static uint64_t path_hashed(const struct gremlin_path *path, uint64_t seed, int depth)
{
    uint64_t hash = mixed(seed, path->length);

    for (size_t left = path->length; left; left--, path = path->before)
        hash = mixed(hash, hashed(path->value, seed, depth));
    return hash;
}

static uint64_t element_hashed(struct gremlin_value value, uint64_t seed, int depth)
{
    const struct gremlin_element *element = gremlin_element(value);

    if (value.type == GREMLIN_VERTEX_PROPERTY && gremlin_is_null(element->id))
        return mixed(hashed(element->label, seed, depth),
                     hashed(gremlin_vertex_property(value)->value, seed, depth));
    return hashed(element->id, seed, depth);
}

static uint64_t instant_hashed(struct gremlin_value value, uint64_t seed)
{
    struct gremlin_instant instant = gremlin_instant_of(value);

    return mixed(mixed(seed, (uint64_t)instant.seconds), (uint64_t)instant.nanoseconds);
}

static uint64_t other_hashed(struct gremlin_value value, uint64_t seed, int depth)
{
    switch (value.type) {
    case GREMLIN_DURATION:
        return mixed(mixed(seed, (uint64_t)gremlin_duration(value)->seconds),
                     (uint64_t)gremlin_duration(value)->nanoseconds);
    case GREMLIN_TEMPORAL:
        return bytes_hashed(gremlin_temporal_text(value), seed);
    case GREMLIN_ENTRY:
        return mixed(hashed(gremlin_entry(value)->key, seed, depth),
                     hashed(gremlin_entry(value)->value, seed, depth));
    case GREMLIN_TRAVERSER:
        return hashed(gremlin_traverser(value)->value, seed, depth);
    case GREMLIN_GRAPH:
        return mixed(hashed(gremlin_subgraph(value)->vertices, seed, depth),
                     hashed(gremlin_subgraph(value)->edges, seed, depth));
    default:
        return mixed(seed, (uintptr_t)value.object);
    }
}

static uint64_t hashed(struct gremlin_value value, uint64_t seed, int depth)
{
    seed += (uint64_t)value.type * 0xC2B2AE3D27D4EB4Fu;
    if (depth++ == HASH_DEPTH)
        return seed;
    switch (value.type) {
    case GREMLIN_NULL:
        return mixed(seed, 0);
    case GREMLIN_BOOLEAN:
        return mixed(seed, value.boolean);
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
    case GREMLIN_CHAR:
        return mixed(seed, (uint64_t)value.integer);
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
        return real_hashed(value.real, seed);
    case GREMLIN_ENUM:
        return mixed(seed, value.word.word);
    case GREMLIN_DATE:
    case GREMLIN_TIMESTAMP:
    case GREMLIN_DATE_TIME:
        return instant_hashed(value, seed);
    case GREMLIN_BIG_DECIMAL:
        return decimal_hashed(value, seed);
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_STRING:
    case GREMLIN_UUID:
    case GREMLIN_BINARY:
    case GREMLIN_CLASS:
        return bytes_hashed(gremlin_bytes(value), seed);
    case GREMLIN_LIST:
        return list_hashed(gremlin_list(value), seed, depth);
    case GREMLIN_SET:
    case GREMLIN_BULK_SET:
    case GREMLIN_MAP:
    case GREMLIN_TREE:
        return table_hashed(gremlin_table(value), seed, depth);
    case GREMLIN_PATH:
        return path_hashed(gremlin_path(value), seed, depth);
    case GREMLIN_VERTEX:
    case GREMLIN_EDGE:
    case GREMLIN_VERTEX_PROPERTY:
        return element_hashed(value, seed, depth);
    case GREMLIN_PROPERTY:
        return mixed(hashed(gremlin_property(value)->key, seed, depth),
                     hashed(gremlin_property(value)->value, seed, depth));
    default:
        return other_hashed(value, seed, depth);
    }
}

uint64_t gremlin_hash(struct gremlin_value value, uint64_t seed)
{
    return hashed(value, seed, 0);
}
