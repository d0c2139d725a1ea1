/* The door to the drivers: picks one by the scheme of the URL and checks what no driver should have
 * to check again. */
#include "engine/driver.h"
#include "engine/keep.h"

static const struct engine_driver *const drivers[] = {
    &engine_driver_rocksdb,
    &engine_driver_memory,
    &engine_driver_postgresql,
};

/* "postgres://" is what many tools print; libpq reads both. */
static const struct engine_driver *driver_find(struct slice scheme)
{
    if (slice_equal(scheme, SLICE("postgres")))
        return &engine_driver_postgresql;
    for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
        if (slice_equal(scheme, slice_of_text(drivers[i]->scheme)))
            return drivers[i];
    return NULL;
}

static bool url_driver(struct slice url, const struct engine_driver **ret_driver, struct error *err)
{
    static const char known[] = "rocksdb:DIRECTORY, memory: or postgresql://HOST/DATABASE";
    struct slice scheme, rest;

    if (!slice_split(url, ':', &scheme, &rest))
        return error_set(err, ERROR_STORE_URL, "node url \"%.*s\" has no scheme: write it as %s",
                         SLICE_ARG(url), known);
    *ret_driver = driver_find(scheme);
    return *ret_driver || error_set(err, ERROR_STORE_URL,
                                    "node url has the unknown scheme \"%.*s\": write it as %s",
                                    SLICE_ARG(scheme), known);
}

bool engine_open(struct slice url, const struct engine_options *options, struct engine **ret_engine,
                 struct error *err)
{
    const struct engine_driver *driver;

    if (!url_driver(url, &driver, err) || !driver->open(url, options, ret_engine, err))
        return false;
    assert((*ret_engine)->driver && (*ret_engine)->node_id[0]);
    return true;
}

/* Declared in members.h; here, because this is where the drivers are known. */
bool engine_members_open(struct slice url, const struct engine_members_options *options,
                         struct engine_members **ret_members, struct error *err)
{
    const struct engine_driver *driver;

    if (!url_driver(url, &driver, err))
        return false;
    return driver->members
               ? driver->members->open(url, options, ret_members, err)
               : error_set(err, ERROR_NOT_SUPPORTED,
                           "a %s: node is of one process and cannot be shared by servers: only "
                           "postgresql: nodes can",
                           driver->scheme);
}

bool engine_is_shareable(struct slice url)
{
    const struct engine_driver *driver;
    struct error ignored;

    return url_driver(url, &driver, &ignored) && driver->members;
}

bool engine_reset(struct slice url, struct slice copy, struct error *err)
{
    const struct engine_driver *driver;

    if (!url_driver(url, &driver, err))
        return false;
    return driver->reset
               ? driver->reset(url, copy, err)
               : error_set(err, ERROR_NOT_SUPPORTED,
                           "a %s: node cannot be reset to a snapshot: only rocksdb: nodes can",
                           driver->scheme);
}

void engine_close(struct engine *engine)
{
    if (engine)
        engine->driver->close(engine);
}

struct slice engine_name(const struct engine *engine)
{
    return engine->name;
}

const char *engine_node_id(const struct engine *engine)
{
    return engine->node_id;
}

bool engine_cluster_join(struct engine *engine, struct slice cluster_id, struct error *err)
{
    assert(cluster_id.len > 0);
    return engine->driver->cluster_join(engine, cluster_id, err);
}

bool engine_cluster_id(struct engine *engine, struct arena *arena, struct slice *ret_id,
                       struct error *err)
{
    return engine->driver->cluster_id(engine, arena, ret_id, err);
}

bool engine_partition_create(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err)
{
    assert(id > 0 && id <= ENGINE_PARTITION_MAX && epoch > 0);
    return engine->driver->partition_create(engine, id, epoch, err);
}

bool engine_partition_fence(struct engine *engine, uint32_t id, uint64_t epoch, struct error *err)
{
    assert(id > 0 && id <= ENGINE_PARTITION_MAX && epoch > 0);
    return engine->driver->partition_fence(engine, id, epoch, err);
}

bool engine_partition_drop(struct engine *engine, uint32_t id, struct error *err)
{
    assert(id > 0 && id <= ENGINE_PARTITION_MAX);
    return engine->driver->partition_drop(engine, id, err);
}

bool engine_partition_list(struct engine *engine, struct arena *arena,
                           struct engine_partition **ret_partitions, size_t *ret_count,
                           struct error *err)
{
    return engine->driver->partition_list(engine, arena, ret_partitions, ret_count, err);
}

bool engine_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                         struct error *err)
{
    if (!engine->driver->snapshot_new(engine, ret_snapshot, err))
        return false;
    assert((*ret_snapshot)->engine == engine);
    return true;
}

bool engine_snapshot_keep(struct engine_snapshot *snapshot, int64_t ms, struct error *err)
{
    const struct engine_driver *driver = snapshot->engine->driver;

    assert(ms > 0);
    return !driver->snapshot_keep || driver->snapshot_keep(snapshot, ms, err);
}

void engine_snapshot_free(struct engine_snapshot *snapshot)
{
    if (snapshot)
        snapshot->engine->driver->snapshot_free(snapshot);
}

bool engine_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                struct slice key, enum engine_reach reach, struct arena *arena,
                struct engine_value *ret_value, struct error *err)
{
    assert(partition > 0 && key.len > 0 && (!snapshot || snapshot->engine == engine));
    if (!engine->driver->get(engine, snapshot, partition, key, reach, arena, ret_value, err))
        return false;
    assert(ret_value->found != ENGINE_COLD || reach == ENGINE_READ_CACHED);
    return true;
}

bool engine_multi_get(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                      const struct slice *keys, size_t count, enum engine_reach reach,
                      struct arena *arena, struct engine_value *ret_values, struct error *err)
{
    assert(partition > 0 && (!snapshot || snapshot->engine == engine));
    if (count == 0)
        return true;
    return engine->driver->multi_get(engine, snapshot, partition, keys, count, reach, arena,
                                     ret_values, err);
}

bool engine_group_find(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                       struct arena *arena, struct engine_group *ret_group)
{
    const struct engine_driver *driver = snapshot->engine->driver;

    assert(partition > 0 && name.len > 0);
    *ret_group = (struct engine_group){0};
    return driver->group_find && driver->group_find(snapshot, partition, name, arena, ret_group);
}

void engine_group_offer(struct engine_snapshot *snapshot, uint32_t partition, struct slice name,
                        struct slice bytes, const struct engine_group *group)
{
    const struct engine_driver *driver = snapshot->engine->driver;

    if (driver->group_offer && bytes.len <= ENGINE_GROUP_MAX)
        driver->group_offer(snapshot, partition, name, bytes, group);
}

bool engine_prove(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                  struct slice meta, struct slice key, struct arena *arena,
                  struct engine_proof *ret_proof, struct engine_value *ret_value, struct error *err)
{
    assert(engine->driver->prove);
    assert(partition > 0 && meta.len > 0 && (!snapshot || snapshot->engine == engine));
    return engine->driver->prove(engine, snapshot, partition, meta, key, arena, ret_proof,
                                 ret_value, err);
}

bool engine_iterator_new(struct engine *engine, struct engine_snapshot *snapshot,
                         uint32_t partition, struct engine_range range, bool backwards,
                         enum engine_reach reach, struct engine_iterator **ret_iterator,
                         struct error *err)
{
    assert(partition > 0 && (!snapshot || snapshot->engine == engine));
    if (!engine->driver->iterator_new(engine, snapshot, partition, range, backwards, reach,
                                      ret_iterator, err))
        return false;
    assert((*ret_iterator)->engine == engine);
    return true;
}

void engine_iterator_free(struct engine_iterator *iterator)
{
    if (iterator)
        iterator->engine->driver->iterator_free(iterator);
}

bool engine_iterator_next(struct engine_iterator *iterator, struct engine_entry *ret_entry,
                          struct error *err)
{
    return iterator->engine->driver->iterator_next(iterator, ret_entry, err);
}

bool engine_iterator_seek(struct engine_iterator *iterator, struct slice key, struct error *err)
{
    return iterator->engine->driver->iterator_seek(iterator, key, err);
}

/* Order and uniqueness are the caller's duty; checking every key would cost what sorting saves. The
 * first and the last tell a batch that was never sorted. */
static bool section_is_sane(const struct engine_section *section,
                            const struct engine_section *before, struct error *err)
{
    assert(section->partition > 0 && section->epoch > 0);
    assert(!before || before->partition < section->partition);
    assert(section->count < 2 ||
           slice_compare(section->ops[0].key, section->ops[section->count - 1].key) < 0);
    for (size_t i = 0; i < section->count; i++) {
        const struct engine_op *op = &section->ops[i];

        assert(op->key.len > 0 && (op->kind == ENGINE_PUT || op->kind == ENGINE_DELETE));
        if (op->key.len > ENGINE_KEY_MAX)
            return error_set(err, ERROR_TOO_LARGE, "a key of %zu bytes is over the limit of %d",
                             op->key.len, ENGINE_KEY_MAX);
        if (op->kind == ENGINE_PUT && op->value.len > ENGINE_VALUE_MAX)
            return error_set(err, ERROR_TOO_LARGE, "a value of %zu bytes is over the limit of %d",
                             op->value.len, ENGINE_VALUE_MAX);
    }
    return true;
}

static bool sections_are_sane(struct engine_section *sections, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        sections[i].fenced = false;
        if (!section_is_sane(&sections[i], i ? &sections[i - 1] : NULL, err))
            return false;
    }
    return true;
}

bool engine_write(struct engine *engine, struct engine_section *sections, size_t count,
                  struct error *err)
{
    if (!sections_are_sane(sections, count, err))
        return false;
    return count == 0 || engine->driver->write(engine, sections, count, err);
}

bool engine_is_here(const struct engine *engine)
{
    if (engine->driver->is_here)
        return engine->driver->is_here(engine);
    return !engine->driver->ping;
}

bool engine_can_load(const struct engine *engine)
{
    if (engine->driver->can_load)
        return engine->driver->can_load(engine);
    return engine->driver->load != NULL;
}

bool engine_load(struct engine *engine, struct engine_section *sections, size_t count,
                 struct error *err)
{
    assert(engine->driver->load);
    if (!sections_are_sane(sections, count, err))
        return false;
    return count == 0 || engine->driver->load(engine, sections, count, err);
}

bool engine_range_drop(struct engine *engine, uint32_t partition, uint64_t epoch,
                       struct engine_range range, struct error *err)
{
    assert(partition > 0);
    return engine->driver->range_drop(engine, partition, epoch, range, err);
}

bool engine_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                       uint64_t *ret_bytes, struct error *err)
{
    assert(partition > 0);
    return engine->driver->range_size(engine, partition, range, ret_bytes, err);
}

bool engine_backup(struct engine *engine, struct slice directory, struct error *err)
{
    return engine->driver->backup(engine, directory, err);
}

bool engine_upkeep(struct engine *engine, struct engine_upkeep *ret_upkeep)
{
    return engine->driver->upkeep && engine->driver->upkeep(engine, ret_upkeep);
}

bool engine_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                       struct error *err)
{
    return engine->driver->statistics(engine, ret_statistics, err);
}

void engine_url_mask(struct slice url, struct buf *to)
{
    const struct engine_driver *driver;
    struct slice scheme, rest;

    driver = slice_split(url, ':', &scheme, &rest) ? driver_find(scheme) : NULL;
    if (driver && driver->mask)
        driver->mask(url, to);
    else
        buf_append_slice(to, url);
}

bool engine_standby_host(struct slice url, uint32_t nth, struct buf *to)
{
    const struct engine_driver *driver;
    struct slice scheme, rest;

    assert(nth > 0);
    driver = slice_split(url, ':', &scheme, &rest) ? driver_find(scheme) : NULL;
    return driver && driver->standby_host && driver->standby_host(url, nth, to);
}

bool engine_ping(struct engine *engine, int64_t ms_max, struct error *err)
{
    assert(ms_max > 0);
    return !engine->driver->ping || engine->driver->ping(engine, ms_max, err);
}

void engine_interrupt(struct engine *engine, bool on)
{
    if (engine->driver->interrupt)
        engine->driver->interrupt(engine, on);
}

bool engine_serves(const struct engine *engine, struct error *err)
{
    return !engine->driver->serves || engine->driver->serves(engine, err);
}

bool engine_fails_over(const struct engine *engine)
{
    return engine->driver->fails_over && engine->driver->fails_over(engine);
}

bool engine_has_lost(const struct engine *engine)
{
    return engine->driver->has_lost && engine->driver->has_lost(engine);
}

bool engine_loss_accept(struct engine *engine, struct error *err)
{
    return !engine->driver->loss_accept || engine->driver->loss_accept(engine, err);
}
