/* A table of functions for each strategy (strategy_private.h). A new one is a row in `strategies`,
 * a value of enum partition_strategy_kind and the rules of strategy.h kept; who reads definitions
 * (definition/strategy.c) and edits directories knows which it is, nobody else. */
#include "partition/strategy_private.h"

#include "base/bytes.h"
#include "partition/lookup.h"

static void hash_route(const struct partition_definition *definition,
                       const struct partition_key *key, struct buf *buf);
static bool hash_skip(const struct partition_definition *definition, struct slice *bytes,
                      struct error *err);
static size_t hash_split_points(const struct partition_definition *definition, size_t n,
                                struct arena *arena, struct slice *ret_points);
static int hash_compare(const struct partition_definition *definition, struct slice a,
                        struct slice b);

static const struct strategy strategy_hash = {hash_route, hash_skip, hash_split_points,
                                              hash_compare, false};

static const struct strategy *const strategies[] = {
    [PARTITION_STRATEGY_HASH] = &strategy_hash,
    [PARTITION_STRATEGY_RANGE] = &strategy_range,
    [PARTITION_STRATEGY_LOOKUP] = &strategy_lookup,
};

static inline const struct strategy *strategy_of(const struct partition_definition *definition)
{
    assert(definition->strategy < ARRAY_LEN(strategies));
    return strategies[definition->strategy];
}

void partition_route(const struct partition_definition *definition, const struct partition_key *key,
                     struct buf *buf)
{
    assert(!key->partial && key->count == definition->path_count);
    strategy_of(definition)->route(definition, key, buf);
}

/* No routing key and no pk goes on with FF, so one FF is behind all that begin like this. */
struct partition_range partition_route_range(const struct partition_definition *definition,
                                             const struct partition_key *key, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct slice max;

    assert(key->count <= definition->path_count);
    buf_init(&buf, BUF_DEFAULT_MAX);
    if (key->count == 0)
        return (struct partition_range){PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX};
    strategy_of(definition)->route(definition, key, &buf);
    buf_append_byte(&buf, 0xFF);
    max = arena_copy(arena, buf_slice(&buf));
    return (struct partition_range){.min = slice_first(max, max.len - 1), .max = max};
}

bool partition_route_skip(const struct partition_definition *definition, struct slice *bytes,
                          struct error *err)
{
    return strategy_of(definition)->skip(definition, bytes, err);
}

bool partition_route_cut(const struct partition_definition *definition, struct slice bound,
                         struct slice *ret_logical, struct slice *ret_pk, struct error *err)
{
    struct slice rest = bound, behind;

    if (!partition_route_skip(definition, &rest, err))
        return false;
    behind = rest;
    if (!partition_key_skip(definition, &behind, err))
        return false;
    *ret_logical = slice_first(bound, bound.len - behind.len);
    *ret_pk = slice_first(rest, rest.len - behind.len);
    return true;
}

size_t partition_route_split_points(const struct partition_definition *definition, size_t n,
                                    struct arena *arena, struct slice *ret_points)
{
    assert(n > 0);
    return strategy_of(definition)->split_points(definition, n, arena, ret_points);
}

int partition_route_compare(const struct partition_definition *definition, struct slice a,
                            struct slice b)
{
    return strategy_of(definition)->compare(definition, a, b);
}

int strategy_compare_bytes(const struct partition_definition *definition UNUSED, struct slice a,
                           struct slice b)
{
    return slice_compare(a, b);
}

static bool is_end(struct slice bytes)
{
    return bytes.len == 0 || (bytes.len == 1 && bytes.data[0] == 0xFF);
}

/* A routing key or the beginning of one, up to a whole component; FF may follow. No component
 * begins with FF, but the hash of a long one may end in it. Or a bound of a key that is spread. */
bool partition_route_is_bound(const struct partition_definition *definition, struct slice bytes)
{
    struct slice logical, pk;
    struct error ignored;

    if (definition->strategy == PARTITION_STRATEGY_HASH ||
        (partition_route_cut(definition, bytes, &logical, &pk, &ignored) &&
         logical.len < bytes.len))
        return true;
    if (!is_end(bytes) && definition->strategy == PARTITION_STRATEGY_LOOKUP) {
        if (bytes.len < PARTITION_SHARD_SIZE ||
            bytes_get_be16(bytes.data) >= definition->lookup->shards)
            return false;
        bytes = slice_skip(bytes, PARTITION_SHARD_SIZE);
    }
    for (size_t i = 0; !is_end(bytes) && i < definition->path_count; i++)
        if (!component_skip(&bytes, &ignored))
            return false;
    return is_end(bytes);
}

bool partition_route_is_ordered(const struct partition_definition *definition)
{
    return strategy_of(definition)->ordered;
}

/* Where a bound reaches behind the cut of components, all that agrees with it so far belongs. */
struct partition_range partition_route_between(const struct partition_definition *definition,
                                               const struct partition_key *prefix, struct slice min,
                                               struct slice max, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct partition_range range;
    size_t begin;

    assert(partition_route_is_ordered(definition));
    buf_init(&buf, BUF_DEFAULT_MAX);
    if (prefix->count)
        strategy_of(definition)->route(definition, prefix, &buf);
    begin = buf.len;
    buf_append_slice(&buf, slice_first(min, MIN(min.len, (size_t)COMPONENT_BYTES_MAX)));
    range.min = arena_copy(arena, buf_slice(&buf));
    buf.len = begin;
    buf_append_slice(&buf, slice_first(max, MIN(max.len, (size_t)COMPONENT_BYTES_MAX)));
    if (max.len > COMPONENT_BYTES_MAX)
        buf_append_byte(&buf, 0xFF);
    range.max = arena_copy(arena, buf_slice(&buf));
    return range;
}

struct slice partition_route_first(struct slice bound)
{
    struct slice rest = bound;
    struct error ignored;

    if (!bound.len || !component_skip(&rest, &ignored))
        return SLICE_NONE;
    return slice_first(bound, MIN(bound.len - rest.len, (size_t)COMPONENT_BYTES_MAX));
}

/* --- Another definition ---------------------------------------------------------------------- */

/* A line of the directory tells the shard from the component alone, which the routing key has. */
bool partition_reroute(const struct partition_definition *from,
                       const struct partition_definition *to, struct slice *bytes, struct buf *buf,
                       struct error *err)
{
    struct slice old = *bytes, component, rest;
    uint8_t shard[PARTITION_SHARD_SIZE];

    if (from->strategy != PARTITION_STRATEGY_LOOKUP || to->strategy != PARTITION_STRATEGY_LOOKUP)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "items cannot be placed by another strategy in place");
    if (!strategy_of(from)->skip(from, bytes, err))
        return false;
    old = slice_first(old, old.len - bytes->len);
    component = rest = slice_skip(old, PARTITION_SHARD_SIZE);
    if (!component_skip(&rest, err))
        return false;
    component = slice_first(component, component.len - rest.len);
    bytes_put_be16(shard, (uint16_t)partition_lookup_shard(to->lookup, component));
    buf_append(buf, shard, sizeof shard);
    buf_append_slice(buf, slice_skip(old, PARTITION_SHARD_SIZE));
    return true;
}

/* --- Hash ------------------------------------------------------------------------------------ */

/* The libraries hash 0 and -0 apart, yet the two are one key: as stored bytes and in every
 * comparison. Where clients and we disagree on a routing key, ours counts. */
static struct document_value without_negative_zero(const struct document_value *value)
{
    double number;

    if (document_to_double(value, &number) && number == 0)
        return document_double(0);
    return *value;
}

static void hash_route(const struct partition_definition *definition,
                       const struct partition_key *key, struct buf *buf)
{
    struct document_value values[PARTITION_PATHS_MAX];

    assert(key->count <= PARTITION_PATHS_MAX);
    for (size_t i = 0; i < key->count; i++)
        values[i] = without_negative_zero(&key->components[i]);
    partition_epk_append(definition->kind, values, key->count, buf);
}

static bool hash_skip(const struct partition_definition *definition, struct slice *bytes,
                      struct error *err)
{
    return partition_epk_skip(definition->kind, definition->path_count, bytes, err);
}

static size_t hash_split_points(const struct partition_definition *definition, size_t n,
                                struct arena *arena, struct slice *ret_points)
{
    partition_epk_split_points(definition->kind, n, arena, ret_points);
    return n - 1;
}

static int hash_compare(const struct partition_definition *definition, struct slice a,
                        struct slice b)
{
    return partition_epk_compare(definition->kind, a, b);
}
