/* The node as a server reads it that does not own it (members.h).
 *
 * It is the driver without its owner: a pool of sessions with the primary, which reads and never
 * writes a row. Another server writes meanwhile, so what is read here is worth something only
 * together with a proof of the same moment (read.c), as from a standby. What a primary shows is
 * acknowledged, by the rule of primary.c: a session is read from only if a commit of our own, sent
 * after it was opened, has been acknowledged. That commit is a message in the WAL that nobody
 * reads: the row of beats is numbered by the owner (beats.h), and a second writer there would date
 * what standbys show by a beat that was never sent.
 *
 * Nobody tells it that the node has another primary. Each sign of life looks for one. A read from a
 * primary that was replaced unnoticed shows what was acknowledged there: older than the present,
 * never other than it. */
#include "engine/pg/pg_private.h"

static void follower_close(struct engine *base)
{
    struct pg_engine *engine = pg_engine(base);

    pg_connection_close(engine->ping_connection);
    pg_pool_done(&engine->pool);
    pg_primary_done(&engine->primary);
    mutex_done(&engine->doomed_lock);
    mutex_done(&engine->size_lock);
    pg_settings_done(&engine->settings);
    memory_free(engine);
}

/* Goes to the newest primary. */
static bool primary_follow(struct pg_engine *engine, int64_t deadline_ms, struct error *err)
{
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    const struct pg_settings *settings = &engine->settings;
    struct pg_primary *primary = &engine->primary;
    size_t place;

    if (!pg_primary_find(primary, settings, deadline_ms, &place, err) ||
        !pg_connection_open_at(settings, &primary->places[place].host, deadline_ms, &connection,
                               err) ||
        !pg_primary_meet(primary, pg_connection_server(connection), err))
        return false;
    if (pg_connection_server(connection)->standby)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the server is a standby");
    if (pg_connection_server(connection)->timeline < atomic_load(&primary->timeline))
        return error_set(err, ERROR_STORE_UNAVAILABLE,
                         "postgresql: the server was the primary before");
    pg_primary_move(primary, place, pg_connection_server(connection));
    return true;
}

/* A loss that nobody has accepted yet: nothing is shown. */
static bool node_read(struct pg_engine *engine, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    uint64_t format;
    struct slice id;

    if (!pg_pool_query(&engine->pool,
                       "SELECT id, format,"
                       " (SELECT count(*) FROM orrery.loss WHERE accepted IS NULL)"
                       " FROM orrery.node",
                       NULL, 0, &answer, err))
        return false;
    if (PQntuples(answer.results[0]) != 1)
        return error_set(err, ERROR_STORE_FOREIGN, "there is no Orrery node");
    id = pg_field(answer.results[0], 0, 0);
    format = pg_field_uint64(answer.results[0], 0, 1);
    if (format != PG_FORMAT_SHARED)
        return error_set(err, ERROR_STORE_VERSION,
                         "the node has format %llu; servers share those of format %d",
                         (unsigned long long)format, PG_FORMAT_SHARED);
    if (id.len != sizeof engine->base.node_id - 1)
        return error_set(err, ERROR_STORE_CORRUPT, "the node's id \"%.*s\" is none", SLICE_ARG(id));
    if (pg_field_uint64(answer.results[0], 0, 2) > 0)
        return error_set(err, ERROR_STORE_LOST,
                         "acknowledged writes are gone, and nobody has accepted that");
    memcpy(engine->base.node_id, id.data, id.len);
    return true;
}

bool pg_follower_open(struct slice url, const struct engine_options *options,
                      struct engine **ret_engine, struct error *err)
{
    struct pg_engine *engine = MEMORY_NEW(struct pg_engine);

    assert(options->follower && !options->standby && !options->beats);
    engine->settings.primary = &engine->primary;
    if (!pg_settings_init(&engine->settings, url, options, err)) {
        memory_free(engine);
        return false;
    }
    if (!pg_primary_init(&engine->primary, &engine->settings, err)) {
        pg_settings_done(&engine->settings);
        memory_free(engine);
        return false;
    }
    engine->base.driver = &pg_driver_follower;
    engine->base.name = engine->settings.name;
    mutex_init(&engine->doomed_lock);
    mutex_init(&engine->size_lock);
    engine->ping_settings = pg_settings_of_pings(&engine->settings);
    pg_pool_init(&engine->pool, &engine->settings);
    pg_primary_beat(&engine->primary);
    if (!primary_follow(engine, clock_monotonic_ms() + engine->settings.connect_ms_max, err) ||
        !node_read(engine, err)) {
        follower_close(&engine->base);
        return false;
    }
    *ret_engine = &engine->base;
    return true;
}

/* --- Signs of life --------------------------------------------------------------------------- */

static bool ping_ask(struct pg_engine *engine, int64_t deadline_ms, struct error *err)
{
    struct pg_primary *primary = &engine->primary;
    const struct pg_server *server;

    if (!engine->ping_connection &&
        !pg_connection_open(&engine->ping_settings, deadline_ms, &engine->ping_connection, err))
        return false;
    if (!pg_connection_look(engine->ping_connection,
                            MAX(deadline_ms - clock_monotonic_ms(), (int64_t)0), err))
        return false;
    server = pg_connection_server(engine->ping_connection);
    if (server->standby || !pg_primary_has(primary, engine->ping_connection))
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: it is the primary no more");
    atomic_store(&primary->replicated, server->replicated);
    return true;
}

static bool follower_ping(struct engine *base, int64_t ms_max, struct error *err)
{
    struct pg_engine *engine = pg_engine(base);
    int64_t deadline_ms = clock_monotonic_ms() + ms_max;

    for (int i = 0; i < 2; i++) {
        if ((i == 1 || pg_primary_is_replaced(&engine->primary)) &&
            !primary_follow(engine, deadline_ms, err))
            return false;
        if (ping_ask(engine, deadline_ms, err))
            return true;
        pg_connection_close(TAKE(engine->ping_connection));
    }
    return false;
}

static void follower_interrupt(struct engine *base, bool on)
{
    struct pg_engine *engine = pg_engine(base);

    atomic_store(&engine->settings.interrupted, on);
    if (on)
        return;
    WITH_LOCK (&engine->pool.lock)
        engine->pool.down_until_ms = 0;
}

static bool follower_statistics(struct engine *base, struct engine_statistics *ret_statistics,
                                struct error *err UNUSED)
{
    struct pg_engine *engine = pg_engine(base);

    *ret_statistics = (struct engine_statistics){
        .durable = true,
        .bytes_free = UINT64_MAX,
        .reads = engine->reads,
        .reconnects = engine->pool.reconnects,
        .replicated = engine->primary.replicated,
        .timeline = (uint32_t)engine->primary.timeline,
    };
    return true;
}

/* --- What it refuses ------------------------------------------------------------------------- */

static bool refuse(struct error *err)
{
    return error_set(err, ERROR_STORE_IN_USE,
                     "another server owns the node: nothing is written by this one");
}

static bool refuse_write(struct engine *engine UNUSED, struct engine_section *sections UNUSED,
                         size_t count UNUSED, struct error *err)
{
    return refuse(err);
}

static bool refuse_partition(struct engine *engine UNUSED, uint32_t id UNUSED,
                             uint64_t epoch UNUSED, struct error *err)
{
    return refuse(err);
}

static bool refuse_drop(struct engine *engine UNUSED, uint32_t id UNUSED, struct error *err)
{
    return refuse(err);
}

static bool refuse_join(struct engine *engine UNUSED, struct slice cluster_id UNUSED,
                        struct error *err)
{
    return refuse(err);
}

static bool refuse_range(struct engine *engine UNUSED, uint32_t partition UNUSED,
                         uint64_t epoch UNUSED, struct engine_range range UNUSED, struct error *err)
{
    return refuse(err);
}

static bool refuse_backup(struct engine *engine UNUSED, struct slice directory UNUSED,
                          struct error *err)
{
    return refuse(err);
}

const struct engine_driver pg_driver_follower = {
    .scheme = "follower",
    .close = follower_close,
    .cluster_join = refuse_join,
    .cluster_id = pg_cluster_id,
    .partition_create = refuse_partition,
    .partition_fence = refuse_partition,
    .partition_drop = refuse_drop,
    .partition_list = pg_partition_list,
    .snapshot_new = pg_snapshot_new,
    .snapshot_free = pg_snapshot_free,
    .snapshot_keep = pg_snapshot_keep,
    .get = pg_get,
    .multi_get = pg_multi_get,
    .iterator_new = pg_iterator_new,
    .iterator_free = pg_iterator_free,
    .iterator_next = pg_iterator_next,
    .iterator_seek = pg_iterator_seek,
    .prove = pg_prove,
    .write = refuse_write,
    .range_drop = refuse_range,
    .range_size = pg_range_size,
    .backup = refuse_backup,
    .statistics = follower_statistics,
    .ping = follower_ping,
    .interrupt = follower_interrupt,
};
