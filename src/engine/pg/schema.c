/* The tables of a node, all in one schema so that a database can be shared with others:
 *
 *     node        one row: format, the node's id, the cluster it belongs to
 *     owner       one row: the process that writes (epoch, host, pid, backend) and the sequence
 *                 number of the last transaction it committed
 *     partition   id, epoch; dropped: its table waits for the last snapshot that reads it
 *     beat        one row: a number that this process raises to see whether commits are replicated
 *     loss        a row for every time that acknowledged writes were found gone (a failover to a
 *                 standby that lagged): the node is not opened before the operator has accepted it
 *     p_<id>      k, v: the stored keys (key.c) and values of one partition
 *     require()   raises an error of our own unless something holds
 *
 * Ownership is a session-level advisory lock, which the server releases when the session ends
 * however it ends, and the epoch of the owner row, which tells a process that lost its session
 * whether somebody else has been there since. The lock keeps a second process out; the epoch keeps
 * the first one out once a second got in.
 *
 * Where servers share the node (format 2) there are also:
 *
 *     server      a row for each of them: where it is reached, and a beat
 *     owner       + member, term: which of them owns, by which claim of the root
 *
 * Then the second does not wait for the lock: it raises the epoch, and ends the session. */
#include "engine/pg/pg_private.h"

#include <unistd.h>

#define LOCK_KEYS PG_LOCK_OWNER

enum {
    LOCK_POLL_MS = 20,
    LOCK_WAIT_MS = 1000, /* at opening: a session whose process has just died is still ending */
    HOST_SIZE = 128,
};

static const char *const tables_sql[] = {
    "CREATE SCHEMA IF NOT EXISTS orrery",

    "CREATE TABLE orrery.node ("
    " single boolean PRIMARY KEY DEFAULT true CHECK (single),"
    " format integer NOT NULL, id text NOT NULL, cluster text NOT NULL DEFAULT '')",

    /* Written by every transaction: room for the versions a snapshot keeps alive, and vacuum by
     * number rather than by share. */
    "CREATE TABLE orrery.owner ("
    " single boolean PRIMARY KEY DEFAULT true CHECK (single),"
    " epoch bigint NOT NULL, sequence bigint NOT NULL,"
    " host text NOT NULL, pid bigint NOT NULL, backend integer NOT NULL,"
    " since timestamptz NOT NULL DEFAULT now())"
    " WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_scale_factor = 0)",

    "CREATE TABLE orrery.partition ("
    " id bigint PRIMARY KEY, epoch numeric(20) NOT NULL, dropped boolean NOT NULL DEFAULT false)",

    "CREATE FUNCTION orrery.require(holds boolean, state text, message text) RETURNS void"
    " LANGUAGE plpgsql AS $$ BEGIN IF NOT holds THEN"
    " RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message; END IF; END $$",

    "INSERT INTO orrery.owner (epoch, sequence, host, pid, backend) VALUES (0, 0, '', 0, 0)",
};

/* Younger than the format: a node of before gets them when it is opened. Versions of before leave
 * them alone. */
static const char *const tables_later_sql[] = {
    "CREATE TABLE IF NOT EXISTS orrery.beat ("
    " single boolean PRIMARY KEY DEFAULT true CHECK (single),"
    " beat bigint NOT NULL, at timestamptz NOT NULL DEFAULT now())"
    " WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_scale_factor = 0)",
    "INSERT INTO orrery.beat (beat) VALUES (0) ON CONFLICT DO NOTHING",

    "CREATE TABLE IF NOT EXISTS orrery.loss ("
    " noticed timestamptz PRIMARY KEY DEFAULT clock_timestamp(),"
    " acknowledged bigint NOT NULL, found bigint NOT NULL, timeline bigint NOT NULL,"
    " accepted timestamptz)",
};

/* Format 2: servers share the node (members.c). Releases that know format 1 alone refuse it: they
 * would take the node between two owners. */
static const char *const tables_shared_sql[] = {
    "CREATE SEQUENCE IF NOT EXISTS orrery.incarnation",

    "CREATE TABLE IF NOT EXISTS orrery.server ("
    " name text PRIMARY KEY, incarnation bigint NOT NULL UNIQUE,"
    " address text NOT NULL, endpoint text NOT NULL, region text NOT NULL, release text NOT NULL,"
    " draining boolean NOT NULL DEFAULT false, beat bigint NOT NULL DEFAULT 0)"
    " WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000,"
    " autovacuum_vacuum_scale_factor = 0)",

    "ALTER TABLE orrery.owner ADD COLUMN IF NOT EXISTS member bigint",

    "ALTER TABLE orrery.owner ADD COLUMN IF NOT EXISTS term bigint NOT NULL DEFAULT 0",

    "UPDATE orrery.node SET format = 2",
};

/* --- The lock -------------------------------------------------------------------------------- */

static bool lock_try(struct pg_connection *connection, bool *ret_locked, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (!pg_query(connection, "SELECT pg_try_advisory_lock(" LOCK_KEYS ")", NULL, 0, &answer, err))
        return false;
    *ret_locked = slice_equal(pg_field(answer.results[0], 0, 0), SLICE("t"));
    return true;
}

/* ERROR_STORE_IN_USE with all that is known about the holder. Returns false. */
static bool in_use(struct pg_connection *connection, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const PGresult *owner;

    if (!pg_query(connection, "SELECT host, pid, backend, epoch FROM orrery.owner", NULL, 0,
                  &answer, err) ||
        PQntuples(answer.results[0]) == 0)
        return error_set(err, ERROR_STORE_IN_USE, "another process is just opening the node");
    owner = answer.results[0];
    return error_set(err, ERROR_STORE_IN_USE,
                     "process %.*s on host \"%.*s\" holds the node (session %.*s, epoch %.*s)",
                     SLICE_ARG(pg_field(owner, 0, 1)), SLICE_ARG(pg_field(owner, 0, 0)),
                     SLICE_ARG(pg_field(owner, 0, 2)), SLICE_ARG(pg_field(owner, 0, 3)));
}

static bool lock_take(struct pg_connection *connection, int64_t wait_ms, struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + wait_ms;
    bool locked = false;

    for (;;) {
        if (!lock_try(connection, &locked, err))
            return false;
        if (locked)
            return true;
        if (clock_monotonic_ms() >= deadline_ms)
            return in_use(connection, err);
        if (!pg_connection_pause(connection, LOCK_POLL_MS))
            return error_set(err, ERROR_STORE_UNAVAILABLE, "the server does not answer");
    }
}

/* --- The tables ------------------------------------------------------------------------------ */

enum schema_state { SCHEMA_NONE, SCHEMA_OURS, SCHEMA_OTHER };

/* An empty schema counts as none: an administrator may have made it for us. */
static bool schema_look(struct pg_connection *connection, enum schema_state *ret_state,
                        struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    static const char sql[] =
        "SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        "  WHERE n.nspname = 'orrery'),"
        " (SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        "  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'orrery'"
        "  AND (c.relname, a.attname) IN (('node', 'single'), ('node', 'format'), ('node', 'id')))";

    if (!pg_query(connection, sql, NULL, 0, &answer, err))
        return false;
    if (pg_field_uint64(answer.results[0], 0, 1) == 3)
        *ret_state = SCHEMA_OURS;
    else
        *ret_state = pg_field_uint64(answer.results[0], 0, 0) ? SCHEMA_OTHER : SCHEMA_NONE;
    return true;
}

static bool tables_create(struct pg_connection *connection, const struct pg_settings *settings,
                          struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    char id[RANDOM_UUID_SIZE];
    struct pg_number format;
    struct pg_param params[] = {pg_number(&format, PG_FORMAT), pg_text(id)};

    random_uuid(id);
    params[1] = pg_text(id);
    pg_send(connection, "BEGIN", NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(tables_sql); i++)
        pg_send(connection, tables_sql[i], NULL, 0);
    pg_send(connection, "INSERT INTO orrery.node (format, id) VALUES ($1::integer, $2)", params,
            ARRAY_LEN(params));
    pg_send(connection, "COMMIT", NULL, 0);
    if (pg_run(connection, settings->statement_ms_max, &answer, err))
        return true;
    pg_rollback(connection);
    return error_prefix(err, "creating the schema \"orrery\"");
}

/* Each is asked for first: creating what is there would need the right to. */
static bool tables_complete(struct pg_connection *connection, const struct pg_settings *settings,
                            struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer there = {0}, answer = {0};

    if (!pg_query(connection,
                  "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                  " WHERE n.nspname = 'orrery' AND c.relname IN ('beat', 'loss')",
                  NULL, 0, &there, err))
        return false;
    if (pg_field_uint64(there.results[0], 0, 0) == 2)
        return true;
    pg_send(connection, "BEGIN", NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(tables_later_sql); i++)
        pg_send(connection, tables_later_sql[i], NULL, 0);
    pg_send(connection, "COMMIT", NULL, 0);
    if (pg_run(connection, settings->statement_ms_max, &answer, err))
        return true;
    pg_rollback(connection);
    return error_prefix(err, "completing the schema \"orrery\"");
}

/* --- Losses ---------------------------------------------------------------------------------- */

static bool lost(struct error *err, uint64_t acknowledged, uint64_t found, uint64_t timeline)
{
    return error_set(err, ERROR_STORE_LOST,
                     "%llu transactions that were acknowledged (%llu to %llu) are gone since the "
                     "primary of timeline %llu took over",
                     (unsigned long long)(acknowledged - found), (unsigned long long)found + 1,
                     (unsigned long long)acknowledged, (unsigned long long)timeline);
}

bool pg_schema_loss_note(struct pg_connection *connection, uint64_t acknowledged, uint64_t found,
                         struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_number numbers[3];
    uint64_t timeline = pg_connection_server(connection)->timeline;
    struct pg_param params[] = {pg_number(&numbers[0], acknowledged), pg_number(&numbers[1], found),
                                pg_number(&numbers[2], timeline)};

    return pg_query(connection,
                    "INSERT INTO orrery.loss (acknowledged, found, timeline)"
                    " VALUES ($1::bigint, $2::bigint, $3::bigint)",
                    params, ARRAY_LEN(params), &answer, err) &&
           lost(err, acknowledged, found, timeline);
}

static bool losses_read(struct pg_connection *connection, const struct pg_settings *settings,
                        struct pg_node *node, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const PGresult *row;

    if (!pg_query(connection,
                  "SELECT acknowledged, found, timeline FROM orrery.loss WHERE accepted IS NULL"
                  " ORDER BY noticed LIMIT 1",
                  NULL, 0, &answer, err))
        return false;
    row = answer.results[0];
    node->lost = PQntuples(row) > 0;
    return !node->lost || settings->accept_loss ||
           lost(err, pg_field_uint64(row, 0, 0), pg_field_uint64(row, 0, 1),
                pg_field_uint64(row, 0, 2));
}

static bool node_read(struct pg_connection *connection, struct pg_node *node, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const PGresult *row;
    struct slice id;
    uint64_t format;

    if (!pg_query(connection,
                  "SELECT format, id, current_setting('fsync')"
                  " FROM orrery.node",
                  NULL, 0, &answer, err))
        return false;
    row = answer.results[0];
    if (PQntuples(row) != 1)
        return error_set(err, ERROR_STORE_FOREIGN, "the table orrery.node has %d rows, not one",
                         PQntuples(row));
    format = pg_field_uint64(row, 0, 0);
    if (format == 0 || format > PG_FORMAT_SHARED)
        return error_set(err, ERROR_STORE_VERSION,
                         "the node has format %llu; this version knows up to %d",
                         (unsigned long long)format, PG_FORMAT_SHARED);
    node->format = format;
    id = pg_field(row, 0, 1);
    if (id.len != sizeof node->id - 1)
        return error_set(err, ERROR_STORE_CORRUPT, "the node's id \"%.*s\" is none", SLICE_ARG(id));
    memcpy(node->id, id.data, id.len);
    node->id[id.len] = '\0';
    node->fsync = slice_equal(pg_field(row, 0, 2), SLICE("on"));
    return true;
}

static bool beat_read(struct pg_connection *connection, struct pg_node *node, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (!pg_query(connection, "SELECT beat FROM orrery.beat", NULL, 0, &answer, err))
        return false;
    if (PQntuples(answer.results[0]) != 1)
        return error_set(err, ERROR_STORE_CORRUPT, "the table orrery.beat has not one row");
    node->beat = pg_field_uint64(answer.results[0], 0, 0);
    return true;
}

/* --- Ownership ------------------------------------------------------------------------------- */

/* A server that works alone would be an owner that the others do not know of. */
static bool members_check(struct pg_connection *connection, const struct pg_node *node,
                          struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (node->format < PG_FORMAT_SHARED)
        return true;
    if (!pg_query(connection,
                  "SELECT name FROM orrery.server s WHERE " PG_LOCK_IS_HELD(
                      PG_LOCK_MEMBER ", s.incarnation & 2147483647") " ORDER BY name LIMIT 1",
                  NULL, 0, &answer, err))
        return false;
    return PQntuples(answer.results[0]) == 0 ||
           error_set(err, ERROR_STORE_IN_USE,
                     "server \"%.*s\" shares the node with others: start this one with "
                     "servers.listen, or stop those",
                     SLICE_ARG(pg_field(answer.results[0], 0, 0)));
}

static void host_name(char host[HOST_SIZE])
{
    if (gethostname(host, HOST_SIZE - 1) != 0)
        snprintf(host, HOST_SIZE, "unknown");
    host[HOST_SIZE - 1] = '\0';
}

static bool owner_take(struct pg_connection *connection, struct pg_node *node, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    char host[HOST_SIZE] = "";
    struct pg_number pid;
    struct pg_param params[2];

    host_name(host);
    params[0] = pg_text(host);
    params[1] = pg_number(&pid, (uint64_t)getpid());
    if (!members_check(connection, node, err) ||
        !pg_query(connection,
                  node->format < PG_FORMAT_SHARED
                      ? "UPDATE orrery.owner SET epoch = epoch + 1, host = $1, pid = $2::bigint,"
                        " backend = pg_backend_pid(), since = now() RETURNING epoch, sequence"
                      : "UPDATE orrery.owner SET epoch = epoch + 1, host = $1, pid = $2::bigint,"
                        " backend = pg_backend_pid(), since = now(), member = NULL"
                        " RETURNING epoch, sequence",
                  params, ARRAY_LEN(params), &answer, err))
        return false;
    if (PQntuples(answer.results[0]) != 1)
        return error_set(err, ERROR_STORE_CORRUPT, "the table orrery.owner has not one row");
    node->epoch = pg_field_uint64(answer.results[0], 0, 0);
    node->sequence = pg_field_uint64(answer.results[0], 0, 1);
    return true;
}

/* Locks the node and makes what it lacks. */
static bool tables_ensure(struct pg_connection *connection, const struct pg_settings *settings,
                          struct pg_node *node, struct error *err)
{
    enum schema_state state;

    if (!schema_look(connection, &state, err))
        return false;
    if (state == SCHEMA_OTHER)
        return error_set(err, ERROR_STORE_FOREIGN,
                         "the database has a schema \"orrery\" that is not an Orrery node");
    if (!lock_take(connection, MIN(settings->connect_ms_max, (int64_t)LOCK_WAIT_MS), err))
        return false;
    /* Looked at again: only under the lock does it stay as it is. */
    if (!schema_look(connection, &state, err))
        return false;
    if (state == SCHEMA_NONE && !tables_create(connection, settings, err))
        return false;
    return node_read(connection, node, err) && tables_complete(connection, settings, err);
}

static bool is_shared(struct pg_connection *connection, bool *ret_shared, struct error *err)
{
    enum schema_state state;
    struct pg_node node = {0};

    *ret_shared = false;
    if (!schema_look(connection, &state, err))
        return false;
    if (state == SCHEMA_OURS && !node_read(connection, &node, err))
        return false;
    *ret_shared = node.format == PG_FORMAT_SHARED;
    return true;
}

bool pg_schema_share(struct pg_connection *connection, const struct pg_settings *settings,
                     struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0}, unlocked = {0};
    struct pg_node node = {0};
    bool shared;

    if (!is_shared(connection, &shared, err))
        return false;
    if (shared)
        return true;
    if (!tables_ensure(connection, settings, &node, err))
        return false;
    if (node.format < PG_FORMAT_SHARED) {
        pg_send(connection, "BEGIN", NULL, 0);
        for (size_t i = 0; i < ARRAY_LEN(tables_shared_sql); i++)
            pg_send(connection, tables_shared_sql[i], NULL, 0);
        pg_send(connection, "COMMIT", NULL, 0);
        if (!pg_run(connection, settings->statement_ms_max, &answer, err)) {
            pg_rollback(connection);
            return error_prefix(err, "sharing the schema \"orrery\"");
        }
    }
    return pg_query(connection, "SELECT pg_advisory_unlock(" LOCK_KEYS ")", NULL, 0, &unlocked,
                    err);
}

/* The server that owns the root takes the node, whoever had it: first its transactions are fenced
 * out, by the epoch, then its session is ended and the lock taken. One of a later term is not taken
 * from, nor a process that works alone. */
static bool claim_take(struct pg_connection *connection, const struct pg_settings *settings,
                       struct pg_node *node, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer alone = {0}, answer = {0};
    char host[HOST_SIZE] = "";
    struct pg_number numbers[3];
    struct pg_param params[4] = {pg_number(&numbers[0], settings->claim.member),
                                 pg_number(&numbers[1], settings->claim.term)};

    host_name(host);
    params[2] = pg_text(host);
    params[3] = pg_number(&numbers[2], (uint64_t)getpid());
    if (!pg_query(connection,
                  "SELECT member IS NULL AND " PG_LOCK_IS_HELD(LOCK_KEYS) " FROM orrery.owner",
                  NULL, 0, &alone, err))
        return false;
    if (slice_equal(pg_field(alone.results[0], 0, 0), SLICE("t")))
        return in_use(connection, err);
    if (!pg_schema_predecessor_end(connection, err) ||
        !pg_query(connection,
                  "UPDATE orrery.owner SET epoch = epoch + 1, member = $1::bigint,"
                  " term = $2::bigint, host = $3, pid = $4::bigint, since = now()"
                  " WHERE term < $2::bigint OR (term = $2::bigint AND member = $1::bigint)"
                  " RETURNING epoch",
                  params, ARRAY_LEN(params), &answer, err))
        return false;
    if (PQntuples(answer.results[0]) != 1)
        return error_set(err, ERROR_STORE_IN_USE,
                         "another server owns the node since (this one is of term %llu)",
                         (unsigned long long)settings->claim.term);
    node->epoch = pg_field_uint64(answer.results[0], 0, 0);
    return pg_schema_reclaim(connection, node->epoch,
                             clock_monotonic_ms() + settings->connect_ms_max, &node->sequence, err);
}

bool pg_schema_open(struct pg_connection *connection, const struct pg_settings *settings,
                    struct pg_node *ret_node, struct error *err)
{
    bool shared = settings->claim.member != 0;

    if (shared ? !pg_schema_share(connection, settings, err) ||
                     !node_read(connection, ret_node, err) ||
                     !tables_complete(connection, settings, err)
               : !tables_ensure(connection, settings, ret_node, err))
        return false;
    if (!beat_read(connection, ret_node, err) ||
        !losses_read(connection, settings, ret_node, err) ||
        !(shared ? claim_take(connection, settings, ret_node, err)
                 : owner_take(connection, ret_node, err)))
        return false;
    return !pg_connection_was_alone(connection) ||
           error_set(err, ERROR_STORE_UNAVAILABLE, "the wait for a standby was cancelled");
}

/* The epoch in the owner row, and the sequence. */
static bool owner_read(struct pg_connection *connection, uint64_t epoch, uint64_t *ret_sequence,
                       struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const PGresult *row;

    if (!pg_query(connection, "SELECT epoch, sequence FROM orrery.owner", NULL, 0, &answer, err))
        return false;
    row = answer.results[0];
    if (PQntuples(row) != 1 || pg_field_uint64(row, 0, 0) != epoch)
        return in_use(connection, err);
    *ret_sequence = pg_field_uint64(row, 0, 1);
    return true;
}

/* Ends the session that holds the lock, if it is the one our epoch recorded: nobody but us can
 * have been there without raising the epoch. Only one that waits for its client or a lock: one that
 * waits for a standby would show everybody what only the primary has, and whatever else it does it
 * soon ends by itself. */
bool pg_schema_predecessor_end(struct pg_connection *connection, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    return pg_query(connection,
                    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l, orrery.owner o,"
                    " pg_stat_activity a WHERE a.pid = l.pid"
                    " AND a.wait_event_type IN ('Client', 'Lock')"
                    " AND l.locktype = 'advisory' AND l.granted AND l.pid = o.backend"
                    " AND (l.classid::bigint, l.objid::bigint) = (" LOCK_KEYS ")"
                    " AND l.database = (SELECT oid FROM pg_database"
                    "  WHERE datname = current_database())",
                    NULL, 0, &answer, err);
}

/* Once the lock is ours the session before has ended: the server rolls back or finishes what a
 * session was doing before it releases the locks. So what is read afterwards is final. The commit
 * that records the new session is a barrier, too: when it is acknowledged, what is read is on the
 * standby. */
bool pg_schema_reclaim(struct pg_connection *connection, uint64_t epoch, int64_t deadline_ms,
                       uint64_t *ret_sequence, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_number number;
    struct pg_param param = pg_number(&number, epoch);
    uint64_t sequence;
    bool locked = false;

    while (!locked) {
        if (!owner_read(connection, epoch, &sequence, err) || !lock_try(connection, &locked, err))
            return false;
        if (locked)
            break;
        if (!pg_schema_predecessor_end(connection, err))
            return false;
        if (clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERROR_STORE_UNAVAILABLE,
                             "the session this process had before still holds the node; it may "
                             "wait for a standby");
        if (!pg_connection_pause(connection, LOCK_POLL_MS))
            return error_set(err, ERROR_STORE_UNAVAILABLE, "the server does not answer");
    }
    if (!owner_read(connection, epoch, &sequence, err) ||
        !pg_query(connection,
                  "UPDATE orrery.owner SET backend = pg_backend_pid(), since = now()"
                  " WHERE epoch = $1::bigint",
                  &param, 1, &answer, err))
        return false;
    if (pg_connection_was_alone(connection))
        return error_set(err, ERROR_STORE_UNAVAILABLE, "the wait for a standby was cancelled");
    *ret_sequence = sequence;
    return true;
}
