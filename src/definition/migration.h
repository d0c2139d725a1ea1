/* Migration: which physical partitions of a container become which others. A plan that never
 * changes; carrying it out is the migrator's.
 *
 * Sources are spans of the map that follow one another; targets cover the same keys with other
 * bounds, ids or nodes. Split, merge, move and isolation are the same thing with other numbers:
 *
 *     split     one source, several targets
 *     merge     several sources, one target
 *     move      one source, one target on another node
 *     isolate   one source, a target for a key value alone and one or two for its neighbours
 *     reroute   any sources, one target for each with its bounds, under another definition: keys
 *               that it places elsewhere go to another target than the rest of their source. Where
 *               no such key has any data there is nothing to carry, and sources stay: no targets
 *     rekey     all sources, targets that cover all keys of another definition: items are given
 *               other partition keys, and all their entries are made anew
 *     copy      all sources, one target for each with its bounds: the map is published as that of
 *               another container, and the sources stay
 *     spread    one source, a target for each part of a key value, cut by the ids of its items, and
 *               one or two for its neighbours
 *     gather    all parts of a key value, one target
 *
 * A plan carries the whole map that is published when it is done, and, if keys are placed
 * otherwise from then on, the definition that says how. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "definition/definition.h"
#include "partition/map.h"

enum migration_kind {
    MIGRATION_SPLIT,
    MIGRATION_MERGE,
    MIGRATION_MOVE,
    MIGRATION_ISOLATE,
    MIGRATION_REROUTE,
    MIGRATION_REKEY,
    MIGRATION_COPY,
    MIGRATION_SPREAD,
    MIGRATION_GATHER,
};
enum { MIGRATION_KINDS = 9, MIGRATION_TARGETS_MAX = 64, MIGRATION_SOURCES_MAX = 64 };

/* How it stands on disk. Before its map is published everything may be done again or taken back;
 * afterwards only the sources are left to be dropped, or, if it was cancelled, the targets. */
enum migration_state { MIGRATION_MOVING, MIGRATION_DROPPING, MIGRATION_CANCELLED };

struct migration; /* opaque, shared, immutable */

/* What is wanted. Everything is borrowed. */
struct migration_request {
    enum migration_kind kind;
    const uint32_t *sources; /* ids */
    size_t source_count;
    size_t target_count;
    const struct slice *bounds;    /* target_count - 1, ascending, within the sources */
    const uint32_t *nodes;         /* of each target; NULL: where the keys are now */
    const double *weights;         /* of each target, to divide the share by; NULL: even */
    enum partition_cut cut;        /* of bounds that are new, */
    struct partition_range ended;  /* and of those, old or new, at either end of this */
    struct partition_range spread; /* bounds within this, a key value, are PARTITION_CUT_SPREAD */
    const double *shares; /* of the whole: of the spans of the map as it is, in key order and 0 for
                           * sources, then of the targets; NULL: targets divide what the sources had
                           * by their weights, and the others keep theirs */
    uint64_t map_version; /* of the map that shares were made for */
    /* Tried out: the plan, a reference, and nothing begins. NULL: it begins. */
    struct migration **ret_plan;

    /* Of a reroute: bounds, nodes and shares of its targets, as many as sources or none, are those
     * of the sources, which need not be neighbours. */
    struct definition *definition; /* to be published with the map; of a rekey too */
    bool allows_missing;           /* a rekey: items without a value for the new key are carried */
    uint64_t era;                  /* of the LSNs of what is placed elsewhere: above all of now */
    struct slice copy;             /* of a copy: the id of the container it becomes */
};

/* Plans what is wanted of a map. The targets get first_id and the ids that follow.
 * ERROR_PARTITION_UNKNOWN: the map has no such source. ERROR_BAD_REQUEST: sources do not follow one
 * another, bounds are not within them, nothing would change. */
NODISCARD bool migration_new(const struct partition_map *map,
                             const struct migration_request *request, uint32_t first_id,
                             struct migration **ret_migration, struct error *err);

/* The same in another state. The caller owns one reference. */
struct migration *migration_with_state(const struct migration *migration,
                                       enum migration_state state);

/* The same again after its sources were opened under other epochs, by a map of a later version.
 * ERROR_PARTITION_UNKNOWN: the map lacks a source. */
NODISCARD bool migration_reopened(const struct migration *migration,
                                  const struct partition_map *map, struct migration **ret_migration,
                                  struct error *err);

struct migration *migration_ref(struct migration *migration); /* NULL is fine */
void migration_unref(struct migration *migration);            /* NULL is fine */
CLEANUP_FN(struct migration *, migration_unref)

enum migration_kind migration_kind(const struct migration *migration);
const char *migration_kind_name(enum migration_kind kind);
enum migration_state migration_state(const struct migration *migration);

/* The definition to publish, and the era of what it places elsewhere; NULL: it stays. Borrowed, as
 * all below. */
struct definition *migration_definition(const struct migration *migration);
uint64_t migration_era(const struct migration *migration);

/* Of a rekey: may items have no value at a path of the new key? */
bool migration_allows_missing(const struct migration *migration);

/* Of a copy: the id of the container that its targets become; empty: it is none. */
struct slice migration_copy(const struct migration *migration);

/* Do the sources stay when it is done? */
bool migration_keeps_sources(const struct migration *migration);

/* The id that tells it from every other migration: of its first target, if it has any. */
uint32_t migration_id(const struct migration *migration);

/* The map to publish. */
struct partition_map *migration_map(const struct migration *migration);

/* A partition it began with. */
struct migration_source {
    uint32_t id, node;
    uint64_t epoch; /* as it was; the fence is at the next one */
};
const struct migration_source *migration_sources(const struct migration *migration,
                                                 size_t *ret_count);

/* The targets as they are in the map, in key order; they follow one another, but for a reroute. */
const struct partition_span *migration_targets(const struct migration *migration,
                                               size_t *ret_count);

/* As the catalogue keeps it: a BSON document (format at the top of migration.c), and back.
 * ERROR_STORE_VERSION, ERROR_STORE_CORRUPT. */
void migration_append(const struct migration *migration, struct buf *buf);
NODISCARD bool migration_parse(struct slice document, struct migration **ret_migration,
                               struct error *err);
