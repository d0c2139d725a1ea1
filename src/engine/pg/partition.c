/* Partitions: a row of orrery.partition each, with the epoch that fences its writes, and a table.
 *
 * A drop removes the row's meaning at once and the table as soon as it can: DROP TABLE waits for
 * every transaction that has read the table, snapshots among them, and whoever writes would wait
 * behind it. So the row is marked as dropped, which is what counts (writes are fenced, reads
 * refused), and the table goes right away if nobody reads it, else with a later sweep. The marked
 * row stays until then, so that a crash in between forgets nothing.
 *
 * The tables keep values as they come. k and v are STORAGE EXTERNAL: compression (pglz unless the
 * server says otherwise) costs more time than anything else in a write, and comparing compressed
 * keys would unpack them each time; a value that does not fit a row of about 2 KB goes out of line
 * and leaves the rows that are scanned (index entries of the layers above) dense. PLAIN would deny
 * short keys their one-byte header. fillfactor 70 leaves room for overwrites on the same page,
 * which then need no new index entry. */
#include "engine/pg/pg_private.h"

enum {
    DROP_WAIT_MS = 10, /* writers wait meanwhile, and new readers of the table */
    SWEEP_WAIT_MS = 1,
    SWEEP_MAX = 16,        /* tables per sweep */
    SIZE_ROWS_EXACT = 500, /* a range of no more rows is added up */
    SIZE_PAGES_SAMPLED = 32,
};

/* --- Doomed ones ----------------------------------------------------------------------------- */

bool pg_partition_is_doomed(struct pg_engine *engine, uint32_t id)
{
    bool found = false;

    if (LIKELY(atomic_load_explicit(&engine->doomed_count, memory_order_relaxed) == 0))
        return false;
    WITH_LOCK (&engine->doomed_lock) {
        for (size_t i = 0; i < engine->doomed_count; i++)
            found |= engine->doomed[i] == id;
    }
    return found;
}

static void doomed_add(struct pg_engine *engine, uint32_t id)
{
    if (pg_partition_is_doomed(engine, id))
        return;
    WITH_LOCK (&engine->doomed_lock) {
        if (engine->doomed_count == engine->doomed_capacity) {
            engine->doomed_capacity = MAX(engine->doomed_capacity * 2, (size_t)8);
            engine->doomed = memory_realloc(
                engine->doomed, memory_array_size(engine->doomed_capacity, sizeof(uint32_t)));
        }
        engine->doomed[engine->doomed_count++] = id;
    }
}

static void doomed_remove(struct pg_engine *engine, uint32_t id)
{
    WITH_LOCK (&engine->doomed_lock) {
        for (size_t i = 0; i < engine->doomed_count; i++)
            if (engine->doomed[i] == id)
                engine->doomed[i--] = engine->doomed[--engine->doomed_count];
    }
}

bool pg_partition_doomed_load(struct pg_engine *engine, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (!pg_pool_query(&engine->pool, "SELECT id FROM orrery.partition WHERE dropped", NULL, 0,
                       &answer, err))
        return false;
    for (int row = 0; row < PQntuples(answer.results[0]); row++)
        doomed_add(engine, (uint32_t)pg_field_uint64(answer.results[0], row, 0));
    return true;
}

/* --- Changes --------------------------------------------------------------------------------- */

/* The arguments of one change, whichever it is. */
struct partition_change {
    uint32_t id;
    uint64_t epoch;
    int64_t wait_ms; /* for the lock on the table */
    struct slice cluster;
};

static bool change_commit(struct pg_engine *engine,
                          void (*send)(struct pg_connection *connection, void *context),
                          struct partition_change *arguments, struct pg_answer *ret_answer,
                          struct error *err)
{
    const struct pg_change change = {send, arguments};

    WITH_LOCK (&engine->owner.lock) {
        if (!pg_owner_commit(&engine->owner, &change, ret_answer, err))
            return false;
    }
    return true;
}

/* Statements about a table take its name, which cannot be a parameter. */
static void table_send(struct pg_connection *connection, const char *before, uint32_t id,
                       const char *after)
{
    char sql[256];
    int len = snprintf(sql, sizeof sql, "%s orrery.p_%u %s", before, id, after);

    assert(len > 0 && len < (int)sizeof sql);
    pg_send(connection, sql, NULL, 0);
}

static void id_send(struct pg_connection *connection, const char *sql, uint32_t id)
{
    struct pg_number number;
    struct pg_param param = pg_number(&number, id);

    pg_send(connection, sql, &param, 1);
}

static void create_send(struct pg_connection *connection, void *context)
{
    const struct partition_change *change = context;
    struct pg_number id, epoch;
    struct pg_param params[] = {pg_number(&id, change->id), pg_number(&epoch, change->epoch)};

    pg_send(connection, "INSERT INTO orrery.partition (id, epoch) VALUES ($1::bigint, $2::numeric)",
            params, ARRAY_LEN(params));
    table_send(connection, "CREATE TABLE", change->id,
               "(k bytea PRIMARY KEY, v bytea NOT NULL) WITH (fillfactor = 70)");
    table_send(connection, "ALTER TABLE", change->id,
               "ALTER k SET STORAGE EXTERNAL, ALTER v SET STORAGE EXTERNAL");
}

static void doom_send(struct pg_connection *connection, void *context)
{
    const struct partition_change *change = context;

    id_send(connection, "UPDATE orrery.partition SET dropped = true WHERE id = $1::bigint",
            change->id);
}

static void drop_send(struct pg_connection *connection, void *context)
{
    const struct partition_change *change = context;
    struct pg_number wait;
    struct pg_param param = pg_number(&wait, (uint64_t)change->wait_ms);

    /* Without a marked row there is nothing of ours to drop; the table may be of a new partition
     * under the old number. */
    id_send(connection,
            "SELECT orrery.require(EXISTS (SELECT FROM orrery.partition WHERE id = $1::bigint"
            " AND dropped), '" PG_STATE_UNKNOWN "', 'it is dropped already')",
            change->id);
    pg_send(connection, "SELECT set_config('lock_timeout', $1, true)", &param, 1);
    table_send(connection, "DROP TABLE IF EXISTS", change->id, "");
    id_send(connection, "DELETE FROM orrery.partition WHERE id = $1::bigint AND dropped",
            change->id);
}

/* The table of a doomed partition, if nobody reads it for long. */
static bool doomed_drop(struct pg_engine *engine, uint32_t id, int64_t wait_ms, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct partition_change change = {.id = id, .wait_ms = wait_ms};

    if (!change_commit(engine, drop_send, &change, &answer, err) &&
        err->code != ERROR_PARTITION_UNKNOWN)
        return false;
    doomed_remove(engine, id);
    return true;
}

void pg_partition_sweep(struct pg_engine *engine)
{
    size_t count = MIN(atomic_load(&engine->doomed_count), (size_t)SWEEP_MAX);
    struct error ignored;

    /* Each once, from the back: those that go are replaced by the last. */
    for (size_t i = count; i-- > 0;) {
        uint32_t id = 0;

        WITH_LOCK (&engine->doomed_lock) {
            if (i < engine->doomed_count)
                id = engine->doomed[i];
        }
        if (id && !doomed_drop(engine, id, SWEEP_WAIT_MS, &ignored) &&
            ignored.code != ERROR_TIMED_OUT)
            return;
    }
}

/* --- The operations -------------------------------------------------------------------------- */

bool pg_partition_create(struct engine *base, uint32_t id, uint64_t epoch, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_engine *engine = pg_engine(base);
    struct partition_change change = {.id = id, .epoch = epoch};

    if (pg_partition_is_doomed(engine, id) &&
        !doomed_drop(engine, id, engine->settings.snapshot_ms_max, err))
        return false;
    if (change_commit(engine, create_send, &change, &answer, err))
        return true;
    if (strcmp(answer.state, "23505") == 0 || strcmp(answer.state, "42P07") == 0)
        return error_set(err, ERROR_PARTITION_EXISTS, "partition %u is there already", id);
    return false;
}

void pg_fence_send(struct pg_connection *connection, uint32_t id, uint64_t epoch)
{
    struct pg_number number, epoch_number;
    struct pg_param params[] = {pg_number(&number, id), pg_number(&epoch_number, epoch)};

    pg_send(connection,
            "SELECT orrery.require(count(*) = 1, '" PG_STATE_UNKNOWN "', 'no partition ' || $1),"
            " orrery.require(coalesce(max(epoch) = $2::numeric, false), '" PG_STATE_FENCED "',"
            " 'partition ' || $1 || ' is at epoch ' || coalesce(max(epoch), 0) || ', not ' || $2)"
            " FROM (SELECT epoch FROM orrery.partition WHERE id = $1::bigint AND NOT dropped"
            " FOR SHARE) AS fence",
            params, ARRAY_LEN(params));
}

static void fence_raise_send(struct pg_connection *connection, void *context)
{
    const struct partition_change *change = context;
    struct pg_number id, epoch;
    struct pg_param params[] = {pg_number(&id, change->id), pg_number(&epoch, change->epoch)};

    pg_send(connection,
            "SELECT orrery.require(count(*) = 1, '" PG_STATE_UNKNOWN "', 'no partition ' || $1),"
            " orrery.require(coalesce(max(epoch) < $2::numeric, false), '" PG_STATE_FENCED "',"
            " 'partition ' || $1 || ' is at epoch ' || coalesce(max(epoch), 0)"
            " || ', not below ' || $2)"
            " FROM orrery.partition WHERE id = $1::bigint AND NOT dropped",
            params, ARRAY_LEN(params));
    pg_send(connection, "UPDATE orrery.partition SET epoch = $2::numeric WHERE id = $1::bigint",
            params, ARRAY_LEN(params));
}

bool pg_partition_fence(struct engine *base, uint32_t id, uint64_t epoch, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct partition_change change = {.id = id, .epoch = epoch};

    return change_commit(pg_engine(base), fence_raise_send, &change, &answer, err);
}

bool pg_partition_drop(struct engine *base, uint32_t id, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_engine *engine = pg_engine(base);
    struct partition_change change = {.id = id};
    struct error ignored;

    if (!change_commit(engine, doom_send, &change, &answer, err))
        return false;
    /* From here on it is dropped, whatever becomes of the table. */
    doomed_add(engine, id);
    (void)!doomed_drop(engine, id, DROP_WAIT_MS, &ignored);
    return true;
}

bool pg_partition_list(struct engine *base, struct arena *arena,
                       struct engine_partition **ret_partitions, size_t *ret_count,
                       struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct engine_partition *partitions;
    const PGresult *rows;

    if (!pg_pool_query(&pg_engine(base)->pool,
                       "SELECT id, epoch FROM orrery.partition WHERE NOT dropped ORDER BY id", NULL,
                       0, &answer, err))
        return false;
    rows = answer.results[0];
    partitions = ARENA_ARRAY(arena, struct engine_partition, (size_t)PQntuples(rows));
    for (int row = 0; row < PQntuples(rows); row++)
        partitions[row] = (struct engine_partition){(uint32_t)pg_field_uint64(rows, row, 0),
                                                    pg_field_uint64(rows, row, 1)};
    *ret_partitions = partitions;
    *ret_count = (size_t)PQntuples(rows);
    return true;
}

/* --- The cluster ----------------------------------------------------------------------------- */

static void cluster_send(struct pg_connection *connection, void *context)
{
    const struct partition_change *change = context;
    CLEANUP(memory_free) char *cluster = slice_to_text(change->cluster);
    struct pg_param param = pg_text(cluster);

    pg_send(connection, "UPDATE orrery.node SET cluster = $1 WHERE cluster = ''", &param, 1);
    pg_send(connection,
            "SELECT orrery.require(cluster = $1, '" PG_STATE_FOREIGN "',"
            " 'the node belongs to cluster \"' || cluster || '\"') FROM orrery.node",
            &param, 1);
}

bool pg_cluster_join(struct engine *base, struct slice cluster_id, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct partition_change change = {.cluster = cluster_id};

    return change_commit(pg_engine(base), cluster_send, &change, &answer, err);
}

bool pg_cluster_id(struct engine *base, struct arena *arena, struct slice *ret_id,
                   struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (!pg_pool_query(&pg_engine(base)->pool, "SELECT cluster FROM orrery.node", NULL, 0, &answer,
                       err))
        return false;
    *ret_id = arena_copy(arena, pg_field(answer.results[0], 0, 0));
    return true;
}

/* --- Sizes ----------------------------------------------------------------------------------- */

/* A range of few rows is added up. A larger one gets its share of the table: some pages are picked
 * at random, and what of their bytes is in the range. The planner's histogram would be cheaper, but
 * it is as old as the last ANALYZE, and the size matters most while a partition grows. Keys longer
 * than PG_HEAD are counted with the table but not looked at. */
#define SIZE_SQL                                                                                   \
    "SELECT count(*), coalesce(sum(octet_length(k) + octet_length(v)), 0),"                        \
    " pg_total_relation_size('orrery.p_%u'), pg_relation_size('orrery.p_%u')"                      \
    " / current_setting('block_size')::bigint FROM (SELECT k, v FROM orrery.p_%u"                  \
    " WHERE k >= $1::bytea AND k < $2::bytea ORDER BY k LIMIT $3::bigint) AS first_rows"
#define SAMPLE_SQL                                                                                 \
    "SELECT coalesce(sum(octet_length(k) + octet_length(v))"                                       \
    " FILTER (WHERE k >= $1::bytea AND k < $2::bytea), 0),"                                        \
    " coalesce(sum(octet_length(k) + octet_length(v)), 0)"                                         \
    " FROM orrery.p_%u TABLESAMPLE SYSTEM ($3::real) WHERE k < '\\x01'"

static bool size_sample(struct pg_engine *engine, uint32_t partition, struct pg_param low,
                        struct pg_param high, uint64_t total, uint64_t pages, uint64_t *ret_bytes,
                        struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    char sql[sizeof SAMPLE_SQL + 16], percent[32];
    struct pg_param params[] = {low, high, pg_text(percent)};
    uint64_t inside, all;

    snprintf(percent, sizeof percent, "%.6f",
             MIN(100.0, 100.0 * SIZE_PAGES_SAMPLED / (double)MAX(pages, (uint64_t)1)));
    params[2] = pg_text(percent);
    snprintf(sql, sizeof sql, SAMPLE_SQL, partition);
    if (!pg_pool_query(&engine->pool, sql, params, ARRAY_LEN(params), &answer, err))
        return false;
    inside = pg_field_uint64(answer.results[0], 0, 0);
    all = pg_field_uint64(answer.results[0], 0, 1);
    *ret_bytes = all ? (uint64_t)((double)total * (double)inside / (double)all) : 0;
    return true;
}

bool pg_range_size(struct engine *base, uint32_t partition, struct engine_range range,
                   uint64_t *ret_bytes, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    CLEANUP(buf_done) struct buf low, high;
    struct pg_engine *engine = pg_engine(base);
    char sql[sizeof SIZE_SQL + 48];
    struct pg_number limit;
    struct pg_param params[3];
    const PGresult *row;

    buf_init(&low, ENGINE_KEY_MAX);
    buf_init(&high, ENGINE_KEY_MAX);
    if (pg_partition_is_doomed(engine, partition))
        return error_set(err, ERROR_PARTITION_UNKNOWN, "no partition %u", partition);
    pg_key_low(SLICE_NONE, range.min, &low);
    pg_key_high(SLICE_NONE, range.max, &high);
    params[0] = pg_bytes(buf_slice(&low));
    params[1] = pg_bytes(buf_slice(&high));
    params[2] = pg_number(&limit, SIZE_ROWS_EXACT + 1);
    snprintf(sql, sizeof sql, SIZE_SQL, partition, partition, partition);
    if (!pg_pool_query(&engine->pool, sql, params, ARRAY_LEN(params), &answer, err))
        return false;
    row = answer.results[0];
    *ret_bytes = pg_field_uint64(row, 0, 1);
    if (pg_field_uint64(row, 0, 0) <= SIZE_ROWS_EXACT)
        return true;
    if (!range.min.data && !range.max.data) {
        *ret_bytes = pg_field_uint64(row, 0, 2);
        return true;
    }
    return size_sample(engine, partition, params[0], params[1], pg_field_uint64(row, 0, 2),
                       pg_field_uint64(row, 0, 3), ret_bytes, err);
}
