/* What a driver implements. engine.c checks arguments, picks the driver by the scheme of the URL
 * and calls through this table; engine.h says what each function promises.
 *
 * A driver's structures begin with the ones here, so that a pointer to one is a pointer to the
 * other. */
#pragma once

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/members.h"
#include "engine/upkeep.h"

/* Members of a node (members.h), for a store that several processes can open. */
struct engine_members {
    const struct engine_members_driver *driver;
    uint64_t incarnation;
};

struct engine_members_driver {
    bool (*open)(struct slice url, const struct engine_members_options *options,
                 struct engine_members **ret_members, struct error *err);
    void (*close)(struct engine_members *members);
    bool (*beat)(struct engine_members *members, struct engine_membership *ret_membership,
                 struct error *err);
    bool (*claim)(struct engine_members *members, const struct engine_membership *seen,
                  struct engine_claim *ret_claim, struct error *err);
    bool (*wait)(struct engine_members *members, int wake_fd, int64_t ms_max);
    bool (*release)(struct engine_members *members, struct error *err);
    bool (*drain)(struct engine_members *members, struct slice name, bool on, struct error *err);
    bool (*forget)(struct engine_members *members, struct slice name, struct error *err);
    bool (*get)(struct engine_members *members, uint32_t partition, struct slice key,
                struct arena *arena, struct engine_value *ret_value, struct error *err);
};

struct engine_driver {
    const char *scheme; /* "rocksdb" of rocksdb:... */

    bool (*open)(struct slice url, const struct engine_options *options, struct engine **ret_engine,
                 struct error *err);
    void (*close)(struct engine *engine);

    bool (*cluster_join)(struct engine *engine, struct slice cluster_id, struct error *err);
    bool (*cluster_id)(struct engine *engine, struct arena *arena, struct slice *ret_id,
                       struct error *err);

    bool (*partition_create)(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err);
    bool (*partition_fence)(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err);
    bool (*partition_drop)(struct engine *engine, uint32_t id, struct error *err);
    bool (*partition_list)(struct engine *engine, struct arena *arena,
                           struct engine_partition **ret_partitions, size_t *ret_count,
                           struct error *err);

    bool (*snapshot_new)(struct engine *engine, struct engine_snapshot **ret_snapshot,
                         struct error *err);
    void (*snapshot_free)(struct engine_snapshot *snapshot);

    bool (*get)(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                struct slice key, enum engine_reach reach, struct arena *arena,
                struct engine_value *ret_value, struct error *err);
    bool (*multi_get)(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                      const struct slice *keys, size_t count, enum engine_reach reach,
                      struct arena *arena, struct engine_value *ret_values, struct error *err);

    bool (*iterator_new)(struct engine *engine, struct engine_snapshot *snapshot,
                         uint32_t partition, struct engine_range range, bool backwards,
                         enum engine_reach reach, struct engine_iterator **ret_iterator,
                         struct error *err);
    void (*iterator_free)(struct engine_iterator *iterator);
    bool (*iterator_next)(struct engine_iterator *iterator, struct engine_entry *ret_entry,
                          struct error *err);
    bool (*iterator_seek)(struct engine_iterator *iterator, struct slice key, struct error *err);

    bool (*write)(struct engine *engine, struct engine_section *sections, size_t count,
                  struct error *err);
    bool (*range_drop)(struct engine *engine, uint32_t partition, uint64_t epoch,
                       struct engine_range range, struct error *err);

    bool (*range_size)(struct engine *engine, uint32_t partition, struct engine_range range,
                       uint64_t *ret_bytes, struct error *err);
    bool (*backup)(struct engine *engine, struct slice directory, struct error *err);
    bool (*statistics)(struct engine *engine, struct engine_statistics *ret_statistics,
                       struct error *err);

    /* What follows may be NULL. */
    bool (*group_find)(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                       struct arena *arena, struct engine_group *ret_group); /* NULL: keeps none */
    void (*group_offer)(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                        struct slice bytes, const struct engine_group *group); /* with the other */
    const struct engine_members_driver *members; /* NULL: it cannot be shared by servers */
    bool (*reset)(struct slice url, struct slice copy, struct error *err); /* NULL: it cannot be */
    bool (*snapshot_keep)(struct engine_snapshot *snapshot, int64_t ms,
                          struct error *err); /* NULL: they live as long as they are held */
    bool (*upkeep)(struct engine *engine, struct engine_upkeep *ret_upkeep); /* NULL: not known */
    bool (*load)(struct engine *engine, struct engine_section *sections, size_t count,
                 struct error *err);                /* NULL: it cannot */
    bool (*can_load)(const struct engine *engine);  /* NULL: as load is there or not */
    bool (*is_here)(const struct engine *engine);   /* NULL: as ping is there or not */
    void (*mask)(struct slice url, struct buf *to); /* NULL: the URL holds no secret */
    bool (*ping)(struct engine *engine, int64_t ms_max, struct error *err); /* NULL: it is here */
    void (*interrupt)(struct engine *engine, bool on); /* NULL: its calls do not hang */
    bool (*serves)(const struct engine *engine, struct error *err); /* NULL: always */
    bool (*fails_over)(const struct engine *engine);                /* NULL: never */
    bool (*has_lost)(const struct engine *engine);                  /* NULL: nothing */
    bool (*loss_accept)(struct engine *engine, struct error *err);  /* NULL: nothing to be done */
    bool (*prove)(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                  struct slice meta, struct slice key, struct arena *arena,
                  struct engine_proof *ret_proof, struct engine_value *ret_value,
                  struct error *err); /* NULL: it is no standby */
    bool (*standby_host)(struct slice url, uint32_t nth, struct buf *to); /* NULL: has none */
};

struct engine {
    const struct engine_driver *driver;
    struct slice name; /* owned by the driver */
    char node_id[37];
};

struct engine_snapshot {
    struct engine *engine;
};

struct engine_iterator {
    struct engine *engine;
};

extern const struct engine_driver engine_driver_rocksdb;
extern const struct engine_driver engine_driver_memory;
extern const struct engine_driver engine_driver_postgresql;
