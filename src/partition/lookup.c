/* Lines are searched by bisection: a directory has some thousand, and looking one up allocates
 * nothing. */
#include "partition/lookup.h"

#include "base/bytes.h"
#include "partition/murmur.h"
#include "partition/strategy_private.h"

#include <stdlib.h>

struct slice partition_component(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    component_append(value, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

static int line_compare(const void *a, const void *b)
{
    return slice_compare(((const struct partition_line *)a)->component,
                         ((const struct partition_line *)b)->component);
}

/* --- Zones ----------------------------------------------------------------------------------- */

/* Zones begin differently and none begins another, so that at most one is found. */
static const struct partition_zone *zone_of(const struct partition_lookup *lookup,
                                            struct slice component)
{
    for (size_t i = 0; i < lookup->zone_count; i++)
        if (slice_starts_with(component, lookup->zones[i].component))
            return &lookup->zones[i];
    return NULL;
}

static const struct partition_zone *zone_with(const struct partition_lookup *lookup, uint32_t shard)
{
    for (size_t i = 0; i < lookup->zone_count; i++)
        if (lookup->zones[i].first <= shard && shard <= lookup->zones[i].last)
            return &lookup->zones[i];
    return NULL;
}

static int zone_compare(const void *a, const void *b)
{
    const struct partition_zone *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

static bool zone_check(const struct partition_zone *zones, size_t nth, struct error *err)
{
    for (size_t i = 0; i < nth; i++)
        if (slice_starts_with(zones[nth].beginning, zones[i].beginning) ||
            slice_starts_with(zones[i].beginning, zones[nth].beginning))
            return error_set(err, ERROR_BAD_REQUEST,
                             "a key of zone \"%.*s*\" could be of zone \"%.*s*\" too",
                             SLICE_ARG(zones[i].beginning), SLICE_ARG(zones[nth].beginning));
    return !nth || zones[nth].first > zones[nth - 1].last ||
           error_set(err, ERROR_BAD_REQUEST, "zones \"%.*s*\" and \"%.*s*\" share shard %u",
                     SLICE_ARG(zones[nth - 1].beginning), SLICE_ARG(zones[nth].beginning),
                     zones[nth].first);
}

/* The last byte of a text's component is its end. */
static struct slice component_beginning(struct slice beginning, struct arena *arena)
{
    const struct document_value text = document_string(beginning);
    struct slice component = partition_component(&text, arena);

    return slice_first(component, component.len - 1);
}

bool partition_lookup_zones_settle(struct partition_lookup *lookup, struct partition_zone *zones,
                                   size_t count, struct arena *arena, struct error *err)
{
    lookup->zoned = 0;
    if (count)
        qsort(zones, count, sizeof *zones, zone_compare);
    for (size_t i = 0; i < count; i++) {
        if (zones[i].last >= lookup->shards || zones[i].first > zones[i].last)
            return error_set(err, ERROR_BAD_REQUEST,
                             "zone \"%.*s*\" has shards %u to %u; there are %u, from 0 on",
                             SLICE_ARG(zones[i].beginning), zones[i].first, zones[i].last,
                             lookup->shards);
        if (!zone_check(zones, i, err))
            return false;
        zones[i].component = component_beginning(zones[i].beginning, arena);
        lookup->zoned += zones[i].last - zones[i].first + 1;
    }
    lookup->zones = zones;
    lookup->zone_count = count;
    if (lookup->zoned == lookup->shards)
        return error_set(err, ERROR_BAD_REQUEST, "zones leave no shard for keys of none");
    return lookup->hashes || !zone_with(lookup, lookup->preset) ||
           error_set(err, ERROR_BAD_REQUEST, "shard %u is of a zone: keys of none cannot be in it",
                     lookup->preset);
}

static struct slice shard_bound(uint32_t shard, struct arena *arena)
{
    uint8_t bytes[PARTITION_SHARD_SIZE];

    bytes_put_be16(bytes, (uint16_t)shard);
    return arena_copy(arena, slice_of(bytes, sizeof bytes));
}

bool partition_lookup_zone_range(const struct partition_lookup *lookup, struct slice beginning,
                                 struct arena *arena, struct partition_range *ret_range)
{
    for (size_t i = 0; i < lookup->zone_count; i++) {
        const struct partition_zone *zone = &lookup->zones[i];

        if (!slice_equal(zone->beginning, beginning))
            continue;
        ret_range->min = zone->first ? shard_bound(zone->first, arena) : PARTITION_ROUTING_MIN;
        ret_range->max = zone->last + 1 < lookup->shards ? shard_bound(zone->last + 1, arena)
                                                         : PARTITION_ROUTING_MAX;
        return true;
    }
    return false;
}

/* The nth shard that is of no zone. */
static uint32_t shard_outside(const struct partition_lookup *lookup, uint32_t nth)
{
    for (size_t i = 0; i < lookup->zone_count && lookup->zones[i].first <= nth; i++)
        nth += lookup->zones[i].last - lookup->zones[i].first + 1;
    return nth;
}

/* --- Lines ----------------------------------------------------------------------------------- */

bool partition_lookup_settle(struct partition_lookup *lookup, struct partition_line *lines,
                             struct error *err)
{
    if (lookup->line_count)
        qsort(lines, lookup->line_count, sizeof *lines, line_compare);
    for (size_t i = 0; i < lookup->line_count; i++) {
        if (lines[i].shard >= lookup->shards)
            return error_set(err, ERROR_BAD_REQUEST,
                             "the directory names shard %u; there are %u, from 0 on",
                             lines[i].shard, lookup->shards);
        if (i && slice_equal(lines[i].component, lines[i - 1].component))
            return error_set(err, ERROR_BAD_REQUEST, "the directory names a key twice");
        if (lookup->zone_count &&
            zone_of(lookup, lines[i].component) != zone_with(lookup, lines[i].shard))
            return error_set(err, ERROR_BAD_REQUEST,
                             "the directory puts a key into shard %u, which is of another zone "
                             "than the key",
                             lines[i].shard);
    }
    lookup->lines = lines;
    return true;
}

const struct partition_line *partition_lookup_find(const struct partition_lookup *lookup,
                                                   struct slice component)
{
    const struct partition_line wanted = {.component = component};

    if (!lookup->line_count)
        return NULL;
    return bsearch(&wanted, lookup->lines, lookup->line_count, sizeof wanted, line_compare);
}

uint32_t partition_lookup_shard(const struct partition_lookup *lookup, struct slice component)
{
    const struct partition_line *line = partition_lookup_find(lookup, component);
    const struct partition_zone *zone;

    assert(lookup->shards > 0);
    if (line)
        return line->shard;
    zone = lookup->zone_count ? zone_of(lookup, component) : NULL;
    if (zone)
        return zone->first +
               (uint32_t)(murmur_128(component, 0).low % (zone->last - zone->first + 1));
    if (!lookup->hashes)
        return lookup->preset;
    return shard_outside(
        lookup, (uint32_t)(murmur_128(component, 0).low % (lookup->shards - lookup->zoned)));
}

struct partition_range partition_lookup_range(uint32_t shard, struct slice component,
                                              struct arena *arena)
{
    size_t len = PARTITION_SHARD_SIZE + component.len;
    uint8_t *bytes = arena_alloc(arena, len + 1);

    assert(component.len > 0 && shard <= UINT16_MAX);
    bytes_put_be16(bytes, (uint16_t)shard);
    memcpy(bytes + PARTITION_SHARD_SIZE, component.data, component.len);
    bytes[len] = 0xFF;
    return (struct partition_range){slice_of(bytes, len), slice_of(bytes, len + 1)};
}

bool partition_lookup_differences(const struct partition_lookup *before,
                                  const struct partition_lookup *after,
                                  bool (*each)(void *context, struct slice component, uint32_t from,
                                               uint32_t to, struct error *err),
                                  void *context, struct error *err)
{
    const struct partition_lookup *both[] = {before, after};

    for (size_t i = 0; i < ARRAY_LEN(both); i++)
        for (size_t j = 0; j < both[i]->line_count; j++) {
            struct slice component = both[i]->lines[j].component;
            uint32_t from = partition_lookup_shard(before, component);
            uint32_t to = partition_lookup_shard(after, component);

            if (from != to && !each(context, component, from, to, err))
                return false;
        }
    return true;
}

/* --- As a strategy --------------------------------------------------------------------------- */

/* Room for the shard first: what it is follows from the component behind it. */
static void lookup_route(const struct partition_definition *definition,
                         const struct partition_key *key, struct buf *buf)
{
    size_t begin = buf->len;

    assert(key->count > 0);
    buf_append(buf, (uint8_t[PARTITION_SHARD_SIZE]){0}, PARTITION_SHARD_SIZE);
    component_append(&key->components[0], buf);
    if (!buf_overflowed(buf)) {
        struct slice component = slice_skip(buf_slice(buf), begin + PARTITION_SHARD_SIZE);

        bytes_put_be16(buf->data + begin,
                       (uint16_t)partition_lookup_shard(definition->lookup, component));
    }
    for (size_t i = 1; i < key->count; i++)
        component_append(&key->components[i], buf);
}

static bool lookup_skip(const struct partition_definition *definition, struct slice *bytes,
                        struct error *err)
{
    struct slice rest = *bytes;

    if (rest.len < PARTITION_SHARD_SIZE)
        return error_set(err, ERROR_STORE_CORRUPT, "routing key ends before its time");
    rest = slice_skip(rest, PARTITION_SHARD_SIZE);
    for (size_t i = 0; i < definition->path_count; i++)
        if (!component_skip(&rest, err))
            return false;
    *bytes = rest;
    return true;
}

static size_t lookup_split_points(const struct partition_definition *definition, size_t n,
                                  struct arena *arena, struct slice *ret_points)
{
    size_t shards = definition->lookup->shards, pieces = MIN(n, shards);

    assert(n > 0 && shards > 0);
    for (size_t i = 1; i < pieces; i++) {
        uint8_t shard[PARTITION_SHARD_SIZE];

        bytes_put_be16(shard, (uint16_t)(shards * i / pieces));
        ret_points[i - 1] = arena_copy(arena, slice_of(shard, sizeof shard));
    }
    return pieces - 1;
}

const struct strategy strategy_lookup = {lookup_route, lookup_skip, lookup_split_points,
                                         strategy_compare_bytes, false};
