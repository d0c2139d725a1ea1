/* Point reads and snapshots. All of them go to the server: nothing is cached here, so a read that
 * may not block is always answered with ENGINE_COLD. */
#include "engine/pg/pg_private.h"

bool pg_snapshot_new(struct engine *base, struct engine_snapshot **ret_snapshot, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_snapshot *snapshot;
    struct pg_lease *lease;

    if (!pg_lease_open(&pg_engine(base)->pool, NULL, &lease, &answer, err))
        return false;
    snapshot = MEMORY_NEW(struct pg_snapshot);
    snapshot->base.engine = base;
    snapshot->lease = lease;
    *ret_snapshot = &snapshot->base;
    return true;
}

bool pg_snapshot_keep(struct engine_snapshot *base, int64_t ms, struct error *err)
{
    return pg_lease_keep(((struct pg_snapshot *)base)->lease, ms, err);
}

void pg_snapshot_free(struct engine_snapshot *base)
{
    struct pg_snapshot *snapshot = (struct pg_snapshot *)base;

    pg_lease_close(snapshot->lease);
    memory_free(snapshot);
}

static bool ask_somewhere(struct engine *base, struct engine_snapshot *snapshot,
                          const struct pg_ask *ask, struct pg_answer *ret_answer, struct error *err)
{
    struct pg_engine *engine = pg_engine(base);

    if (snapshot)
        return pg_lease_ask(pg_snapshot_lease(snapshot), ask, ret_answer, err);
    if (pg_partition_is_doomed(engine, ask->partition))
        return error_set(err, ERROR_PARTITION_UNKNOWN, "no partition %u", ask->partition);
    return pg_pool_ask(&engine->pool, ask, ret_answer, err);
}

bool pg_get(struct engine *base, struct engine_snapshot *snapshot, uint32_t partition,
            struct slice key, enum engine_reach reach, struct arena *arena,
            struct engine_value *ret_value, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    CLEANUP(buf_done) struct buf stored;
    struct pg_param param;
    struct pg_ask ask = {PG_GET, partition, &param, 1};
    const PGresult *rows;

    buf_init(&stored, BUF_DEFAULT_MAX);
    pg_engine(base)->reads++;
    if (reach == ENGINE_READ_CACHED) {
        *ret_value = (struct engine_value){.found = ENGINE_COLD};
        return true;
    }
    pg_key_store(key, &stored);
    param = pg_bytes(buf_slice(&stored));
    if (!ask_somewhere(base, snapshot, &ask, &answer, err))
        return false;
    rows = pg_answer_last(&answer);
    if (PQntuples(rows) == 0)
        *ret_value = (struct engine_value){.found = ENGINE_ABSENT};
    else
        *ret_value = (struct engine_value){ENGINE_FOUND, arena_copy(arena, pg_field(rows, 0, 0))};
    return true;
}

static void values_fill(struct engine_value *values, size_t count, enum engine_found found)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (struct engine_value){.found = found};
}

/* The statement answers with the place of the key among those asked for: no searching here. */
static void values_place(const PGresult *rows, size_t count, struct arena *arena,
                         struct engine_value *ret_values)
{
    for (int row = 0; row < PQntuples(rows); row++) {
        uint64_t ordinal = bytes_get_be64((const uint8_t *)PQgetvalue(rows, row, 0));

        assert(ordinal >= 1 && ordinal <= count);
        ret_values[ordinal - 1] =
            (struct engine_value){ENGINE_FOUND, arena_copy(arena, pg_field(rows, row, 1))};
    }
}

bool pg_multi_get(struct engine *base, struct engine_snapshot *snapshot, uint32_t partition,
                  const struct slice *keys, size_t count, enum engine_reach reach,
                  struct arena *arena, struct engine_value *ret_values, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    CLEANUP(buf_done) struct buf wanted;
    struct pg_param param;
    struct pg_ask ask = {PG_MULTI_GET, partition, &param, 1};

    buf_init(&wanted, INT32_MAX);
    pg_engine(base)->reads++;
    if (reach == ENGINE_READ_CACHED) {
        values_fill(ret_values, count, ENGINE_COLD);
        return true;
    }
    pg_array_begin(&wanted, count);
    for (size_t i = 0; i < count; i++)
        pg_array_add_key(&wanted, keys[i]);
    if (buf_overflowed(&wanted))
        return error_set(err, ERROR_TOO_LARGE, "%zu keys are too many to read at once", count);
    param = pg_bytes(buf_slice(&wanted));
    if (!ask_somewhere(base, snapshot, &ask, &answer, err))
        return false;
    values_fill(ret_values, count, ENGINE_ABSENT);
    values_place(pg_answer_last(&answer), count, arena, ret_values);
    return true;
}

/* --- Proofs ---------------------------------------------------------------------------------- */

/* One statement, and so one moment, whether there is a snapshot or not. */
bool pg_prove(struct engine *base, struct engine_snapshot *snapshot, uint32_t partition,
              struct slice meta, struct slice key, struct arena *arena,
              struct engine_proof *ret_proof, struct engine_value *ret_value, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    CLEANUP(buf_done) struct buf stored_meta, stored;
    struct pg_param params[2];
    struct pg_ask ask = {PG_PROVE, partition, params, ARRAY_LEN(params)};
    struct slice epoch;
    const PGresult *row;

    buf_init(&stored_meta, BUF_DEFAULT_MAX);
    buf_init(&stored, BUF_DEFAULT_MAX);
    pg_engine(base)->reads++;
    pg_key_store(meta, &stored_meta);
    if (key.len)
        pg_key_store(key, &stored); /* else the empty key, under which nothing is stored */
    params[0] = pg_bytes(buf_slice(&stored_meta));
    params[1] = pg_bytes(buf_slice(&stored));
    if (!ask_somewhere(base, snapshot, &ask, &answer, err))
        return false;
    row = pg_answer_last(&answer);
    epoch = pg_field(row, 0, 1);
    *ret_proof = (struct engine_proof){.standby = *PQgetvalue(row, 0, 3) != 0};
    if (!PQgetisnull(row, 0, 0))
        ret_proof->meta = arena_copy(arena, pg_field(row, 0, 0));
    if (!PQgetisnull(row, 0, 1) && !slice_to_uint64(epoch, &ret_proof->epoch))
        return error_set(err, ERROR_STORE_CORRUPT, "the epoch of partition %u is none", partition);
    if (!PQgetisnull(row, 0, 2))
        ret_proof->beat = bytes_get_be64((const uint8_t *)PQgetvalue(row, 0, 2));
    *ret_value = (struct engine_value){.found = ENGINE_ABSENT};
    if (!PQgetisnull(row, 0, 4))
        *ret_value = (struct engine_value){ENGINE_FOUND, arena_copy(arena, pg_field(row, 0, 4))};
    return true;
}
