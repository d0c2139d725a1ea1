/* The table of the driver, opening and closing, and what does not belong to one partition. */
#include "engine/pg/pg_private.h"

enum {
    SNAPSHOT_MS = 30 * 1000,
    CONNECT_MS = 5 * 1000,
    CONNECTIONS = 8,
    CONNECTIONS_LIMIT = 1024,
    SIZE_FRESH_MS = 1000,
};

bool pg_settings_init(struct pg_settings *settings, struct slice url,
                      const struct engine_options *options, struct error *err)
{
    CLEANUP(buf_done) struct buf plain;
    struct buf name;
    size_t len;

    buf_init(&plain, BUF_DEFAULT_MAX);
    if (!pg_url_options(url, &plain, &settings->replicated, err))
        return false;
    buf_init(&name, BUF_DEFAULT_MAX);
    pg_url_mask(url, &name);
    settings->name.data = buf_take(&name, &len);
    settings->name.len = len;
    settings->url = slice_to_text(buf_slice(&plain));
    explicit_bzero(plain.data, plain.len);
    settings->accept_loss = options->accept_loss;
    settings->claim = options->claim;
    settings->standby = options->standby;
    settings->follower = options->follower;
    settings->beats = options->beats;
    settings->log = options->log;
    settings->watch = options->watch;
    settings->clock = options->clock ? options->clock : &clock_system;
    settings->connect_ms_max = options->connect_ms_max ? options->connect_ms_max : CONNECT_MS;
    settings->place_ms_max = settings->connect_ms_max;
    settings->snapshot_ms_max = options->snapshot_ms_max ? options->snapshot_ms_max : SNAPSHOT_MS;
    /* No statement may take longer than a snapshot may live: one limit bounds both, and so how
     * long vacuum can be held back. But a short one for snapshots is no wish for failing writes. */
    settings->statement_ms_max = MAX(settings->snapshot_ms_max, (int64_t)SNAPSHOT_MS);
    settings->connections_max = options->connections_max ? options->connections_max : CONNECTIONS;
    settings->connections_max = MIN(settings->connections_max, (uint32_t)CONNECTIONS_LIMIT);
    return true;
}

void pg_settings_done(struct pg_settings *settings)
{
    memory_free((void *)settings->name.data);
    /* Not to lie about in freed memory. */
    explicit_bzero(settings->url, strlen(settings->url));
    memory_free(settings->url);
}

static void driver_close(struct engine *base)
{
    struct pg_engine *engine = pg_engine(base);

    pg_connection_close(engine->ping_connection);
    pg_pool_done(&engine->pool);
    pg_owner_done(&engine->owner);
    pg_primary_done(&engine->primary);
    mutex_done(&engine->doomed_lock);
    mutex_done(&engine->size_lock);
    memory_free(engine->doomed);
    pg_settings_done(&engine->settings);
    memory_free(engine);
}

/* One attempt: a node that cannot be reached at the start is reported at the start. */
static bool node_open(struct pg_engine *engine, struct pg_connection **ret_connection,
                      struct pg_node *ret_node, struct error *err)
{
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    const struct pg_settings *settings = &engine->settings;
    struct pg_primary *primary = &engine->primary;
    int64_t deadline_ms = clock_monotonic_ms() + settings->connect_ms_max;
    size_t place;

    if (!pg_primary_find(primary, settings, deadline_ms, &place, err) ||
        !pg_connection_open_at(settings, &primary->places[place].host, deadline_ms, &connection,
                               err) ||
        !pg_primary_meet(primary, pg_connection_server(connection), err))
        return false;
    if (pg_connection_server(connection)->standby)
        return error_set(err, ERROR_STORE_UNAVAILABLE,
                         "postgresql: the server is a standby; name its primary too, as in "
                         "postgresql://host1,host2/database");
    if (!pg_schema_open(connection, settings, ret_node, err))
        return false;
    pg_primary_move(primary, place, pg_connection_server(connection));
    *ret_connection = TAKE(connection);
    return true;
}

struct pg_settings pg_settings_of_pings(const struct pg_settings *settings)
{
    return (struct pg_settings){
        .url = settings->url,
        .name = settings->name,
        .standby = settings->standby,
        .primary = settings->primary,
        .connect_ms_max = settings->connect_ms_max,
        .snapshot_ms_max = settings->snapshot_ms_max,
        .statement_ms_max = settings->statement_ms_max,
        .connections_max = 1,
        .clock = settings->clock,
        .log = settings->log,
    };
}

static void node_warn(const struct pg_engine *engine, const struct pg_node *node)
{
    const struct pg_settings *settings = &engine->settings;

    if (!node->fsync)
        log_event(settings->log, LOG_WARNING, "node is not durable: its server has fsync off",
                  LOG_SLICE("node", settings->name));
    if (!engine->primary.replicated && (settings->replicated || engine->primary.count > 1))
        log_event(settings->log, LOG_WARNING,
                  settings->replicated
                      ? "node takes no writes: its server has no synchronous standby"
                      : "node is not replicated: commits wait for no standby",
                  LOG_SLICE("node", settings->name));
}

static bool driver_open(struct slice url, const struct engine_options *options,
                        struct engine **ret_engine, struct error *err)
{
    struct pg_engine *engine;
    struct pg_connection *connection = NULL;
    struct pg_node node = {0};

    if (options->standby)
        return pg_standby_open(url, options, ret_engine, err);
    if (options->follower)
        return pg_follower_open(url, options, ret_engine, err);
    engine = MEMORY_NEW(struct pg_engine);
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
    if (!node_open(engine, &connection, &node, err)) {
        pg_primary_done(&engine->primary);
        pg_settings_done(&engine->settings);
        memory_free(engine);
        return false;
    }
    engine->base.driver = &engine_driver_postgresql;
    engine->base.name = engine->settings.name;
    memcpy(engine->base.node_id, node.id, sizeof node.id);
    engine->fsync = node.fsync;
    engine->lost = node.lost;
    mutex_init(&engine->doomed_lock);
    mutex_init(&engine->size_lock);
    engine->ping_settings = pg_settings_of_pings(&engine->settings);
    pg_pool_init(&engine->pool, &engine->settings);
    pg_owner_init(&engine->owner, &engine->settings, connection, node.epoch, node.sequence);
    engine->owner.failover_ms = options->failover_ms;
    if (options->beats)
        engine_beats_begin(options->beats, node.beat, clock_monotonic_ms());
    pg_primary_beat(&engine->primary);
    if (!pg_partition_doomed_load(engine, err)) {
        driver_close(&engine->base);
        return false;
    }
    node_warn(engine, &node);
    *ret_engine = &engine->base;
    return true;
}

static bool driver_backup(struct engine *engine UNUSED, struct slice directory UNUSED,
                          struct error *err)
{
    return error_set(err, ERROR_NOT_SUPPORTED,
                     "a postgresql: node is backed up by PostgreSQL's own tools (pg_dump, "
                     "pg_basebackup), not by Orrery");
}

/* --- Statistics ------------------------------------------------------------------------------ */

/* What all tables take, asked at most once a second. A server that does not answer leaves the last
 * figure standing: the other statistics matter most just then. */
static uint64_t bytes_stored(struct pg_engine *engine)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    int64_t now_ms = clock_read_monotonic_ms(engine->settings.clock);
    uint64_t bytes;
    struct error ignored;

    WITH_LOCK (&engine->size_lock) {
        bytes = engine->bytes_stored;
        if (now_ms < engine->size_until_ms)
            return bytes;
        engine->size_until_ms = now_ms + SIZE_FRESH_MS; /* nobody else asks meanwhile */
    }
    if (pg_pool_query(&engine->pool,
                      "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint"
                      " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                      " WHERE n.nspname = 'orrery' AND c.relkind = 'r'",
                      NULL, 0, &answer, &ignored)) {
        bytes = pg_field_uint64(answer.results[0], 0, 0);
        WITH_LOCK (&engine->size_lock) {
            engine->bytes_stored = bytes;
        }
    }
    return bytes;
}

static bool driver_statistics(struct engine *base, struct engine_statistics *ret_statistics,
                              struct error *err UNUSED)
{
    struct pg_engine *engine = pg_engine(base);

    pg_owner_heal(&engine->owner);
    pg_partition_sweep(engine);
    *ret_statistics = (struct engine_statistics){
        .durable = engine->fsync,
        .poisoned = engine->owner.poisoned,
        .bytes_stored = bytes_stored(engine),
        .bytes_free = UINT64_MAX,
        .bytes_resident = 0,
        .reads = engine->reads,
        .writes = engine->writes,
        .bytes_written = engine->bytes_written,
        .reconnects = engine->owner.reconnects + engine->pool.reconnects,
        .lost = engine->owner.loss,
        .replicated = engine->primary.replicated,
        .timeline = (uint32_t)engine->primary.timeline,
    };
    return true;
}

static bool driver_fails_over(const struct engine *base)
{
    return pg_primary_fails_over(&((const struct pg_engine *)base)->primary);
}

/* --- Losses ---------------------------------------------------------------------------------- */

static bool driver_has_lost(const struct engine *base)
{
    return ((const struct pg_engine *)base)->lost;
}

static void loss_accept_send(struct pg_connection *connection, void *context UNUSED)
{
    pg_send(connection, "UPDATE orrery.loss SET accepted = now() WHERE accepted IS NULL", NULL, 0);
}

static bool driver_loss_accept(struct engine *base, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_engine *engine = pg_engine(base);
    bool accepted = false;

    WITH_LOCK (&engine->owner.lock)
        accepted = pg_owner_commit(&engine->owner, &(struct pg_change){.send = loss_accept_send},
                                   &answer, err);
    if (accepted)
        engine->lost = false;
    return accepted;
}

/* --- Signs of life --------------------------------------------------------------------------- */

/* The question is what the server is: a primary that was demoted, or replaced behind the same
 * address, answers as well as any other. */
static bool ping_ask(struct pg_engine *engine, int64_t deadline_ms, bool *ret_fresh,
                     struct error *err)
{
    struct pg_primary *primary = &engine->primary;
    const struct pg_server *server;

    *ret_fresh = !engine->ping_connection;
    if (*ret_fresh &&
        !pg_connection_open(&engine->ping_settings, deadline_ms, &engine->ping_connection, err))
        return false;
    if (!pg_connection_look(engine->ping_connection,
                            MAX(deadline_ms - clock_monotonic_ms(), (int64_t)0), err))
        return false;
    server = pg_connection_server(engine->ping_connection);
    if (server->standby || !pg_primary_has(primary, engine->ping_connection))
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: it is the primary no more");
    if (atomic_exchange(&primary->replicated, server->replicated) && !server->replicated)
        log_event(engine->settings.log, LOG_WARNING,
                  "node is not replicated: commits wait for no standby",
                  LOG_SLICE("node", engine->settings.name));
    return true;
}

/* On a connection of its own: those of the pool may all be busy with what takes long. A connection
 * that was lost while it idled is replaced once. Where there is another primary the owner goes over
 * to it first: without it nobody could be served there. */
static bool driver_ping(struct engine *base, int64_t ms_max, struct error *err)
{
    struct pg_engine *engine = pg_engine(base);
    int64_t deadline_ms = clock_monotonic_ms() + ms_max;
    bool fresh, followed = false;

    assert(ms_max > 0);
    if (engine->owner.loss) {
        WITH_LOCK (&engine->owner.lock)
            *err = engine->owner.lost;
        return false;
    }
    for (;;) {
        if (pg_primary_is_replaced(&engine->primary) &&
            !pg_owner_follow(&engine->owner, deadline_ms, err))
            return false;
        if (ping_ask(engine, deadline_ms, &fresh, err))
            return true;
        pg_connection_close(TAKE(engine->ping_connection));
        if (fresh && engine->primary.count > 1 && !followed) {
            struct error ignored;

            followed = pg_owner_follow(&engine->owner, deadline_ms, &ignored);
            if (followed)
                continue;
        }
        if (fresh || clock_monotonic_ms() >= deadline_ms)
            return false;
    }
}

/* Whoever was turned away a moment ago is let in at once when it is over. */
static void driver_interrupt(struct engine *base, bool on)
{
    struct pg_engine *engine = pg_engine(base);

    atomic_store(&engine->settings.interrupted, on);
    if (on)
        return;
    WITH_LOCK (&engine->pool.lock)
        engine->pool.down_until_ms = 0;
    WITH_LOCK (&engine->owner.lock)
        engine->owner.down_until_ms = 0;
}

const struct engine_driver engine_driver_postgresql = {
    .scheme = "postgresql",
    .members = &pg_members,
    .open = driver_open,
    .close = driver_close,
    .cluster_join = pg_cluster_join,
    .cluster_id = pg_cluster_id,
    .partition_create = pg_partition_create,
    .partition_fence = pg_partition_fence,
    .partition_drop = pg_partition_drop,
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
    .write = pg_write,
    .range_drop = pg_range_drop,
    .range_size = pg_range_size,
    .backup = driver_backup,
    .statistics = driver_statistics,
    .mask = pg_url_mask,
    .ping = driver_ping,
    .interrupt = driver_interrupt,
    .fails_over = driver_fails_over,
    .has_lost = driver_has_lost,
    .loss_accept = driver_loss_accept,
    .standby_host = pg_standby_host,
};
