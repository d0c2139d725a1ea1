/* One host of a node's URL as a store that is only read from.
 *
 * It is the driver without its owner: a pool of sessions with this one host, which must be a
 * standby whenever a session begins. What it shows may be of any age, and is worth something only
 * together with a proof (read.c), which whoever reads here asks for and judges (reader.h). Nothing
 * is remembered from session to session, so a host that is promoted, or comes back behind another
 * primary, needs no care: its proofs fail, or hold.
 *
 * A query that runs into what the standby has to replay is cancelled by the server; whoever asked
 * goes to the primary then. */
#include "engine/pg/pg_private.h"

/* A standby that is busy is no reason to wait: there is the primary. */
enum { PLACE_MS_MAX = 20 };

static void standby_close(struct engine *base)
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

/* The id came over with everything else, and the last beat. */
static bool node_read(struct pg_engine *engine, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct slice id;

    if (!pg_pool_query(&engine->pool, "SELECT id, beat FROM orrery.node, orrery.beat", NULL, 0,
                       &answer, err))
        return false;
    if (PQntuples(answer.results[0]) != 1)
        return error_set(err, ERROR_STORE_FOREIGN, "the standby has no Orrery node");
    id = pg_field(answer.results[0], 0, 0);
    if (id.len != sizeof engine->base.node_id - 1)
        return error_set(err, ERROR_STORE_CORRUPT, "the node's id \"%.*s\" is none", SLICE_ARG(id));
    memcpy(engine->base.node_id, id.data, id.len);
    atomic_store(&engine->beat, pg_field_uint64(answer.results[0], 0, 1));
    return true;
}

bool pg_standby_open(struct slice url, const struct engine_options *options,
                     struct engine **ret_engine, struct error *err)
{
    struct pg_engine *engine = MEMORY_NEW(struct pg_engine);

    assert(options->standby > 0);
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
    engine->settings.place_ms_max = PLACE_MS_MAX;
    engine->base.driver = &pg_driver_standby;
    engine->base.name = engine->settings.name;
    mutex_init(&engine->doomed_lock);
    mutex_init(&engine->size_lock);
    engine->ping_settings = pg_settings_of_pings(&engine->settings);
    pg_pool_init(&engine->pool, &engine->settings);
    if (!node_read(engine, err)) {
        standby_close(&engine->base);
        return false;
    }
    *ret_engine = &engine->base;
    return true;
}

bool pg_standby_host(struct slice url, uint32_t nth, struct buf *to)
{
    struct pg_settings settings = {.clock = &clock_system};
    struct pg_primary primary = {0};
    CLEANUP(buf_done) struct buf plain;
    struct error ignored;
    bool replicated, found = false;

    buf_init(&plain, BUF_DEFAULT_MAX);
    if (!pg_url_options(url, &plain, &replicated, &ignored))
        return false;
    settings.url = slice_to_text(buf_slice(&plain));
    explicit_bzero(plain.data, plain.len);
    found = pg_primary_host(&primary, &settings, nth, to);
    pg_settings_done(&settings);
    return found;
}

/* --- Signs of life --------------------------------------------------------------------------- */

/* What it is, and how far it has come. */
static bool ping_ask(struct pg_engine *engine, int64_t deadline_ms, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (!engine->ping_connection &&
        !pg_connection_open(&engine->ping_settings, deadline_ms, &engine->ping_connection, err))
        return false;
    pg_send(engine->ping_connection, "SELECT pg_is_in_recovery(), beat FROM orrery.beat", NULL, 0);
    if (!pg_run(engine->ping_connection, MAX(deadline_ms - clock_monotonic_ms(), (int64_t)0),
                &answer, err))
        return false;
    if (PQntuples(answer.results[0]) != 1 ||
        !slice_equal(pg_field(answer.results[0], 0, 0), SLICE("t")))
        return error_set(err, ERROR_STORE_UNAVAILABLE,
                         "postgresql: the server is a primary, and no standby");
    atomic_store(&engine->beat, pg_field_uint64(answer.results[0], 0, 1));
    return true;
}

static bool standby_ping(struct engine *base, int64_t ms_max, struct error *err)
{
    struct pg_engine *engine = pg_engine(base);
    int64_t deadline_ms = clock_monotonic_ms() + ms_max;

    for (;;) {
        bool fresh = !engine->ping_connection;

        if (ping_ask(engine, deadline_ms, err))
            return true;
        pg_connection_close(TAKE(engine->ping_connection));
        if (fresh || clock_monotonic_ms() >= deadline_ms)
            return false;
    }
}

static void standby_interrupt(struct engine *base, bool on)
{
    struct pg_engine *engine = pg_engine(base);

    atomic_store(&engine->settings.interrupted, on);
    if (on)
        return;
    WITH_LOCK (&engine->pool.lock)
        engine->pool.down_until_ms = 0;
}

static bool standby_statistics(struct engine *base, struct engine_statistics *ret_statistics,
                               struct error *err UNUSED)
{
    struct pg_engine *engine = pg_engine(base);

    *ret_statistics = (struct engine_statistics){
        .durable = true,
        .bytes_free = UINT64_MAX,
        .reads = engine->reads,
        .reconnects = engine->pool.reconnects,
        .beat = atomic_load(&engine->beat),
    };
    return true;
}

/* Nobody writes here, and nobody but a reader has it in hand. */
const struct engine_driver pg_driver_standby = {
    .scheme = "standby",
    .close = standby_close,
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
    .statistics = standby_statistics,
    .ping = standby_ping,
    .interrupt = standby_interrupt,
};
