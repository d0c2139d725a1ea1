/* A table of functions for each strategy. A new one is a row in `strategies`, a value of
 * enum partition_strategy_kind and the rules of strategy.h kept; nothing else in the server asks
 * which strategy a container has. */
#include "partition/strategy.h"

struct strategy {
    /* Appends the routing key of a whole key, or of a partial one the beginning that the routing
     * keys of all it covers share. */
    void (*route)(const struct partition_definition *definition, const struct partition_key *key,
                  struct buf *buf);
    bool (*skip)(const struct partition_definition *definition, struct slice *bytes,
                 struct error *err);
    void (*split_points)(const struct partition_definition *definition, size_t n,
                         struct arena *arena, struct slice *ret_points);
};

static void hash_route(const struct partition_definition *definition,
                       const struct partition_key *key, struct buf *buf);
static bool hash_skip(const struct partition_definition *definition, struct slice *bytes,
                      struct error *err);
static void hash_split_points(const struct partition_definition *definition, size_t n,
                              struct arena *arena, struct slice *ret_points);

static const struct strategy strategies[] = {
    [PARTITION_STRATEGY_HASH] = {hash_route, hash_skip, hash_split_points},
};

static inline const struct strategy *strategy_of(const struct partition_definition *definition)
{
    assert(definition->strategy < ARRAY_LEN(strategies));
    return &strategies[definition->strategy];
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

void partition_route_split_points(const struct partition_definition *definition, size_t n,
                                  struct arena *arena, struct slice *ret_points)
{
    strategy_of(definition)->split_points(definition, n, arena, ret_points);
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

    for (size_t i = 0; i < key->count; i++)
        values[i] = without_negative_zero(&key->components[i]);
    partition_epk_append(definition->kind, values, key->count, buf);
}

static bool hash_skip(const struct partition_definition *definition, struct slice *bytes,
                      struct error *err)
{
    return partition_epk_skip(definition->kind, definition->path_count, bytes, err);
}

static void hash_split_points(const struct partition_definition *definition, size_t n,
                              struct arena *arena, struct slice *ret_points)
{
    partition_epk_split_points(definition->kind, n, arena, ret_points);
}
