/* One session of PostgreSQL. It stays in libpq's pipeline mode for its whole life: queries are
 * queued, sent together and answered together, so that whatever we do costs one round trip. The
 * socket never blocks us: every wait is a poll with a deadline, because neither TCP keepalives nor
 * the server's own statement_timeout helps against a server that is stopped but still acknowledges
 * packets.
 *
 * The session's settings make plans that cannot surprise: tables here are only ever reached through
 * their one index, and a generic plan made while a table was empty must not scan it once it has
 * grown. Statements are prepared once per connection and partition; when PG_STATEMENTS_MAX are,
 * all are forgotten at once, which is simpler than a queue of them and as cheap in the long run. */
#include "engine/pg/pg_private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>

enum { PREPARES_NOTHING = -1 };

struct prepared {
    uint32_t partition;
    enum pg_statement statement;
    uint64_t number; /* its name in the server is s<number> */
};

struct queued {
    bool hidden;  /* its result is ours */
    int prepared; /* index of the statement this prepares, or PREPARES_NOTHING */
};

struct pg_connection {
    PGconn *native;
    const struct pg_settings *settings;
    bool broken;
    bool silent; /* broken, because an answer did not come: asking again is of no use */
    bool alone;  /* a wait for a standby was cancelled */
    int64_t opened_ms;
    struct pg_server server;
    int64_t deadline_ms; /* pg_run waits no longer than this; 0: as long as it is told */

    struct queued *queue; /* owned; what waits for pg_run */
    size_t queue_count, queue_capacity;

    struct prepared prepared[PG_STATEMENTS_MAX];
    int prepared_count;
    uint64_t prepared_number; /* of the last one */
};

static const char statement_sql[PG_STATEMENT_COUNT][640] = {
    [PG_GET] = "SELECT v FROM orrery.p_%u WHERE k = $1::bytea",
    [PG_MULTI_GET] = "SELECT wanted.i, p.v"
                     " FROM unnest($1::bytea[]) WITH ORDINALITY AS wanted (k, i)"
                     " JOIN orrery.p_%u AS p ON p.k = wanted.k",
/* The running sum keeps a page of large values small: a row is sent only while those before it stay
 * below the bound, and PostgreSQL does not fetch a value it does not send. */
#define PAGE(direction)                                                                            \
    "SELECT k, v FROM (SELECT k, v, sum(octet_length(v))"                                          \
    " OVER (ORDER BY k " direction " ROWS UNBOUNDED PRECEDING) - octet_length(v) AS before"        \
    " FROM orrery.p_%u WHERE k >= $1::bytea AND k < $2::bytea"                                     \
    " ORDER BY k " direction " LIMIT $3::bigint) AS page WHERE before < $4::bigint"
    [PG_PAGE_UP] = PAGE("ASC"),
    [PG_PAGE_DOWN] = PAGE("DESC"),
#undef PAGE
    [PG_PUT] = "INSERT INTO orrery.p_%u (k, v) SELECT given.k, given.v"
               " FROM unnest($1::bytea[], $2::bytea[]) AS given (k, v)"
               " ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    [PG_MARK] = "INSERT INTO orrery.p_%u (k, v) SELECT given.k, ''"
                " FROM unnest($1::bytea[]) AS given (k) ON CONFLICT (k) DO NOTHING",
    [PG_DELETE] = "DELETE FROM orrery.p_%u WHERE k = ANY ($1::bytea[])",
    [PG_STEP] = "SELECT k FROM orrery.p_%u WHERE k >= $1::bytea AND k < $2::bytea"
                " ORDER BY k OFFSET $3::bigint LIMIT 1",
    [PG_NEXT_MARK] = "SELECT k FROM orrery.p_%u WHERE k >= $1::bytea AND k < $2::bytea"
                     " AND octet_length(k) = $3::integer ORDER BY k LIMIT 1",
    [PG_CLEAR] = "DELETE FROM orrery.p_%u WHERE k >= $1::bytea AND k < $2::bytea"
                 " AND octet_length(k) <> $3::integer",
    [PG_PROVE] = "SELECT (SELECT v FROM orrery.p_%1$u WHERE k = $1::bytea),"
                 " (SELECT epoch::text FROM orrery.partition WHERE id = %1$u AND NOT dropped),"
                 " (SELECT beat FROM orrery.beat), pg_is_in_recovery(),"
                 " (SELECT v FROM orrery.p_%1$u WHERE k = $2::bytea)",
};

/* --- Errors ---------------------------------------------------------------------------------- */

static bool state_in_class(const char *state, const char *class)
{
    return memcmp(state, class, 2) == 0;
}

static enum error_code state_code(const char *state)
{
    static const struct {
        const char *state;
        enum error_code code;
    } known[] = {
        {PG_STATE_OWNER, ERROR_STORE_IN_USE},
        {PG_STATE_UNKNOWN, ERROR_PARTITION_UNKNOWN},
        {PG_STATE_FENCED, ERROR_FENCED},
        {PG_STATE_FOREIGN, ERROR_STORE_FOREIGN},
        {PG_STATE_ALONE, ERROR_STORE_UNREPLICATED},
        {"42P01", ERROR_PARTITION_UNKNOWN},      /* undefined_table */
        {"53100", ERROR_STORE_FULL},             /* disk_full */
        {"57014", ERROR_TIMED_OUT},              /* query_canceled: statement_timeout */
        {"55P03", ERROR_TIMED_OUT},              /* lock_not_available: lock_timeout */
        {"25P03", ERROR_STORE_SNAPSHOT_EXPIRED}, /* idle_in_transaction_session_timeout */
        {"25P04", ERROR_STORE_SNAPSHOT_EXPIRED}, /* transaction_timeout */
        {"72000", ERROR_STORE_SNAPSHOT_EXPIRED}, /* snapshot_too_old */
        {"25006", ERROR_STORE_UNAVAILABLE},      /* read_only_sql_transaction: a standby */
        {"42501", ERROR_STORE_UNAVAILABLE},      /* insufficient_privilege */
        {"XX001", ERROR_STORE_CORRUPT},          /* data_corrupted */
        {"XX002", ERROR_STORE_CORRUPT},          /* index_corrupted */
    };
    static const char unavailable[][3] = {"08", "28", "3D", "53", "57"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].state, state) == 0)
            return known[i].code;
    for (size_t i = 0; i < ARRAY_LEN(unavailable); i++)
        if (state_in_class(state, unavailable[i]))
            return ERROR_STORE_UNAVAILABLE;
    return ERROR_STORE_IO;
}

static bool failure_set(struct error *err, const char *state, const char *message)
{
    char line[sizeof err->message];

    pg_url_scrub(SLICE_NONE, message ? message : "", line, sizeof line);
    if (!state || strlen(state) != 5)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: %s",
                         *line ? line : "the connection was lost");
    return error_set(err, state_code(state), "postgresql: %s (%s)", line, state);
}

/* The server said goodbye: its session is gone, whatever the rest of the pipeline did. */
static bool state_ends_session(const char *state)
{
    return state_in_class(state, "08") || strcmp(state, "25P03") == 0 ||
           strcmp(state, "25P04") == 0 ||
           (state_in_class(state, "57") && state[2] == 'P'); /* admin and crash shutdown */
}

static void connection_break(struct pg_connection *connection)
{
    const struct engine_watch *watch = &connection->settings->watch;

    connection->broken = true;
    if (watch->lost)
        watch->lost(watch->context);
}

static bool connection_fail(struct pg_connection *connection, struct error *err)
{
    connection_break(connection);
    return failure_set(err, NULL, PQerrorMessage(connection->native));
}

/* --- Waiting --------------------------------------------------------------------------------- */

/* Between two looks whether to go on waiting. A look that comes late counts for a few of them at
 * most: then the machine is busy, or stood still, and the server has had no more of it than we. */
enum { WAIT_MS = 10, LATE_TIMES_MAX = 3 };

bool pg_pause(const struct pg_settings *settings, int64_t ms)
{
    for (int64_t part_ms; ms > 0; ms -= part_ms) {
        part_ms = MIN(ms, (int64_t)WAIT_MS);
        nanosleep(&(struct timespec){0, part_ms * 1000000}, NULL);
        if (!pg_may_wait(settings, part_ms))
            return false;
    }
    return true;
}

/* False when the deadline passed, the engine was interrupted, the call was let go or the wait
 * itself failed. Looking for that now and then costs little, and no descriptor. */
static bool socket_wait(const struct pg_connection *connection, short events, int64_t deadline_ms)
{
    struct pollfd poll_for = {.fd = PQsocket(connection->native), .events = events};

    while (poll_for.fd >= 0) {
        int64_t since_ms = clock_monotonic_ms();
        int64_t part_ms = MIN(deadline_ms - since_ms, (int64_t)WAIT_MS);
        int ready;

        if (part_ms <= 0 || atomic_load(&connection->settings->interrupted))
            return false;
        ready = poll(&poll_for, 1, (int)part_ms);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready == 0 && !pg_may_wait(connection->settings, MIN(clock_monotonic_ms() - since_ms,
                                                                 part_ms * LATE_TIMES_MAX)))
            return false;
    }
    return false;
}

static bool no_answer(struct pg_connection *connection, struct error *err)
{
    connection->silent = true;
    connection_break(connection);
    return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the server does not answer");
}

/* --- Opening and closing --------------------------------------------------------------------- */

bool pg_server_version_check(int version, struct error *err)
{
    if (version >= PG_SERVER_MIN)
        return true;
    return error_set(err, ERROR_STORE_VERSION,
                     "the server is PostgreSQL %d.%d; version %d or later is needed",
                     version / 10000, version % 10000, PG_SERVER_MIN / 10000);
}

/* libpq takes the last of what is said twice, so the URL overrides what we would choose, and one
 * host of it is said behind it. Which of them is the primary is found out by us: libpq's
 * target_session_attrs takes the first that can be written to, which may be an old one. Several
 * hosts need one name and port each (an empty one stands for what the library has built in). */
static PGconn *native_start(const struct pg_settings *settings, const struct pg_host *host)
{
    struct pg_number timeout;
    const char *names[] = {"fallback_application_name",
                           "keepalives_idle",
                           "keepalives_interval",
                           "keepalives_count",
                           "tcp_user_timeout",
                           "dbname",
                           "client_encoding",
                           "target_session_attrs",
                           "host",
                           "hostaddr",
                           "port",
                           NULL};
    const char *values[] = {"orrery",
                            "10",
                            "5",
                            "3",
                            pg_number(&timeout, (uint64_t)settings->statement_ms_max).data,
                            settings->url,
                            "UTF8",
                            "any",
                            host->name ? host->name : "",
                            host->address ? host->address : "",
                            host->port ? host->port : "",
                            NULL};

    return PQconnectStartParams(names, values, 1);
}

static bool connection_establish(struct pg_connection *connection, int64_t deadline_ms,
                                 struct error *err)
{
    PostgresPollingStatusType step = PGRES_POLLING_WRITING;

    if (PQstatus(connection->native) == CONNECTION_BAD)
        return connection_fail(connection, err);
    while (step != PGRES_POLLING_OK) {
        if (!socket_wait(connection, step == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_ms))
            return error_set(err, ERROR_STORE_UNAVAILABLE,
                             "postgresql: no connection within %lld ms",
                             (long long)connection->settings->connect_ms_max);
        step = PQconnectPoll(connection->native);
        if (step == PGRES_POLLING_FAILED)
            return connection_fail(connection, err);
    }
    return true;
}

/* --- What the server is ---------------------------------------------------------------------- */

/* A wait for a standby that somebody cancels ends with a warning and a COMMIT like any other. The
 * text of the warning is in the server's language, the name of its function is not. */
static void notice_read(void *context, const PGresult *result)
{
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    static const char cancelled[] = "canceling wait for synchronous replication",
                      ended[] = "canceling the wait for synchronous replication";
    struct pg_connection *connection = context;

    if ((function && strcmp(function, "SyncRepWaitForLSN") == 0) ||
        (text && (strncmp(text, cancelled, sizeof cancelled - 1) == 0 ||
                  strncmp(text, ended, sizeof ended - 1) == 0)))
        connection->alone = true;
}

static void server_ask(struct pg_connection *connection)
{
    pg_send(connection,
            "SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN 0 ELSE"
            " ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint END,"
            " (SELECT system_identifier FROM pg_control_system()),"
            " current_setting('synchronous_standby_names') <> ''"
            " AND current_setting('synchronous_commit') NOT IN ('off', 'local')",
            NULL, 0);
}

static void server_read(struct pg_connection *connection, const PGresult *row)
{
    connection->server = (struct pg_server){
        .standby = slice_equal(pg_field(row, 0, 0), SLICE("t")),
        .timeline = (uint32_t)pg_field_uint64(row, 0, 1),
        .system = pg_field_uint64(row, 0, 2),
        .replicated = slice_equal(pg_field(row, 0, 3), SLICE("t")),
    };
}

bool pg_connection_look(struct pg_connection *connection, int64_t timeout_ms, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    server_ask(connection);
    if (!pg_run(connection, timeout_ms, &answer, err))
        return false;
    server_read(connection, answer.results[0]);
    return true;
}

const struct pg_server *pg_connection_server(const struct pg_connection *connection)
{
    return &connection->server;
}

int64_t pg_connection_opened_ms(const struct pg_connection *connection)
{
    return connection->opened_ms;
}

bool pg_connection_was_alone(const struct pg_connection *connection)
{
    return connection->alone;
}

void pg_connection_adopt(struct pg_connection *connection, const struct pg_settings *settings)
{
    connection->settings = settings;
}

/* --- Sessions --------------------------------------------------------------------------------- */

/* What every session of ours sets. idle_in_transaction_session_timeout is the server's side of the
 * snapshot deadline, while sessions that idle outside of transactions are to be left alone; jit
 * would cost more than any query here. synchronous_commit is left as the administrator has it
 * unless that is "off". The last two settings are younger than the oldest server we take. */
static bool session_settle(struct pg_connection *connection, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const struct pg_settings *settings = connection->settings;
    struct pg_number statement, snapshot;
    struct pg_param params[] = {
        pg_number(&statement, (uint64_t)settings->statement_ms_max),
        pg_number(&snapshot, (uint64_t)settings->snapshot_ms_max),
    };
    static const char sql[] =
        "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $1, false),"
        " set_config('idle_in_transaction_session_timeout', $2, false),"
        " set_config('tcp_keepalives_idle', '10', false),"
        " set_config('tcp_keepalives_interval', '5', false),"
        " set_config('tcp_keepalives_count', '3', false),"
        " set_config('plan_cache_mode', 'force_generic_plan', false),"
        " set_config('enable_seqscan', 'off', false),"
        " set_config('enable_bitmapscan', 'off', false),"
        " set_config('enable_hashjoin', 'off', false),"
        " set_config('enable_mergejoin', 'off', false),"
        " set_config('enable_sort', 'off', false),"
        " set_config('max_parallel_workers_per_gather', '0', false),"
        " set_config('jit', 'off', false), set_config('search_path', 'pg_catalog', false),"
        " set_config('default_transaction_isolation', 'read committed', false),"
        " set_config('default_transaction_read_only', 'off', false),"
        " CASE current_setting('synchronous_commit') WHEN 'off'"
        " THEN set_config('synchronous_commit', 'on', false) END,"
        " CASE WHEN current_setting('idle_session_timeout', true) IS NOT NULL"
        " THEN set_config('idle_session_timeout', '0', false) END,"
        " CASE WHEN current_setting('client_connection_check_interval', true) IS NOT NULL"
        " THEN set_config('client_connection_check_interval', '10s', false) END";

    pg_send(connection, sql, params, ARRAY_LEN(params));
    server_ask(connection);
    if (!pg_run(connection, settings->statement_ms_max + settings->connect_ms_max, &answer, err))
        return false;
    server_read(connection, answer.results[1]);
    return true;
}

bool pg_connection_open_at(const struct pg_settings *settings, const struct pg_host *host,
                           int64_t deadline_ms, struct pg_connection **ret_connection,
                           struct error *err)
{
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;

    connection = MEMORY_NEW(struct pg_connection);
    connection->settings = settings;
    connection->native = native_start(settings, host);
    if (!connection->native)
        memory_exhausted(0);
    PQsetNoticeReceiver(connection->native, notice_read, connection);
    if (!connection_establish(connection, deadline_ms, err) ||
        !pg_server_version_check(PQserverVersion(connection->native), err))
        return false;
    if (PQsetnonblocking(connection->native, 1) != 0 || !PQenterPipelineMode(connection->native))
        return connection_fail(connection, err);
    pg_connection_hurry(connection, deadline_ms);
    if (!session_settle(connection, err))
        return false;
    pg_connection_hurry(connection, 0);
    connection->opened_ms = clock_monotonic_ms();
    *ret_connection = TAKE(connection);
    return true;
}

bool pg_connection_open(const struct pg_settings *settings, int64_t deadline_ms,
                        struct pg_connection **ret_connection, struct error *err)
{
    struct pg_primary *primary = settings->primary;
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    const struct pg_server *server;
    uint32_t timeline;

    if (!pg_connection_open_at(settings, &primary->places[primary->place].host, deadline_ms,
                               &connection, err) ||
        !pg_primary_meet(primary, &connection->server, err))
        return false;
    server = &connection->server;
    timeline = (uint32_t)atomic_load(&primary->timeline);
    if (settings->standby) {
        if (!server->standby) {
            connection_break(connection);
            return error_set(err, ERROR_STORE_UNAVAILABLE,
                             "postgresql: the server is a primary, and no standby");
        }
    } else if (server->standby || server->timeline != timeline) {
        connection_break(connection); /* whoever watches looks at once */
        return server->standby
                   ? error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the server is a standby")
                   : error_set(err, ERROR_STORE_UNAVAILABLE,
                               "postgresql: the server is a primary on timeline %u, not %u",
                               server->timeline, timeline);
    }
    *ret_connection = TAKE(connection);
    return true;
}

void pg_connection_close(struct pg_connection *connection)
{
    if (!connection)
        return;
    PQfinish(connection->native);
    memory_free(connection->queue);
    memory_free(connection);
}

bool pg_connection_is_broken(const struct pg_connection *connection)
{
    return connection->broken;
}

bool pg_connection_was_lost(const struct pg_connection *connection)
{
    return connection->broken && !connection->silent;
}

bool pg_connection_pause(const struct pg_connection *connection, int64_t ms)
{
    return pg_pause(connection->settings, ms);
}

/* What arrives at an idle session is a farewell or a notice. libpq reads a farewell as a notice
 * too, and sees the end only when it reads again. */
bool pg_connection_check(struct pg_connection *connection)
{
    enum { READS_MAX = 8 };
    struct pollfd poll_for = {.fd = PQsocket(connection->native), .events = POLLIN};

    for (int reads = 0; reads < READS_MAX && poll(&poll_for, 1, 0) > 0; reads++) {
        if (!PQconsumeInput(connection->native)) {
            connection->broken = true;
            break;
        }
        PQisBusy(connection->native); /* digests it */
    }
    return !connection->broken;
}

bool pg_connection_was_notified(struct pg_connection *connection)
{
    bool was = false;
    PGnotify *notified;

    while ((notified = PQnotifies(connection->native)) != NULL) {
        PQfreemem(notified);
        was = true;
    }
    return was;
}

bool pg_connection_wait(struct pg_connection *connection, int wake_fd, int64_t deadline_ms)
{
    struct pollfd wait[] = {{.fd = wake_fd, .events = POLLIN},
                            {.fd = PQsocket(connection->native), .events = POLLIN}};
    int64_t left_ms = MAX(deadline_ms - clock_monotonic_ms(), (int64_t)0);

    return poll(wait, ARRAY_LEN(wait), (int)MIN(left_ms, (int64_t)INT_MAX)) > 0 &&
           wait[0].revents == 0;
}

void pg_connection_hurry(struct pg_connection *connection, int64_t deadline_ms)
{
    connection->deadline_ms = deadline_ms;
}

/* --- Sending --------------------------------------------------------------------------------- */

static void queue_add(struct pg_connection *connection, bool hidden, int prepared)
{
    if (connection->queue_count == connection->queue_capacity) {
        connection->queue_capacity = MAX(connection->queue_capacity * 2, (size_t)16);
        connection->queue =
            memory_realloc(connection->queue, memory_array_size(connection->queue_capacity,
                                                                sizeof *connection->queue));
    }
    connection->queue[connection->queue_count++] = (struct queued){hidden, prepared};
}

struct pg_param pg_number(struct pg_number *number, uint64_t value)
{
    int len = snprintf(number->digits, sizeof number->digits, "%llu", (unsigned long long)value);

    return (struct pg_param){number->digits, (size_t)len, false};
}

struct native_params {
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX], formats[PG_PARAMS_MAX];
};

static void params_lay_out(const struct pg_param *params, size_t count,
                           struct native_params *native)
{
    assert(count <= PG_PARAMS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert(params[i].len <= INT32_MAX);
        native->values[i] = params[i].data;
        native->lengths[i] = (int)params[i].len;
        native->formats[i] = params[i].binary;
    }
}

/* A failure to queue shows in pg_run, which every sender calls: the connection is broken then, and
 * nothing more goes out, least of all the COMMIT of what was left incomplete. */
static void sent(struct pg_connection *connection, bool ok, bool hidden, int prepared)
{
    queue_add(connection, hidden, prepared);
    if (!ok)
        connection->broken = true;
}

void pg_send(struct pg_connection *connection, const char *sql, const struct pg_param *params,
             size_t count)
{
    struct native_params native;
    bool ok;

    params_lay_out(params, count, &native);
    ok = !connection->broken && PQsendQueryParams(connection->native, sql, (int)count, NULL,
                                                  native.values, native.lengths, native.formats, 0);
    sent(connection, ok, false, PREPARES_NOTHING);
}

static void prepared_forget_all(struct pg_connection *connection)
{
    connection->prepared_count = 0;
    sent(connection,
         !connection->broken &&
             PQsendQueryParams(connection->native, "DEALLOCATE ALL", 0, NULL, NULL, NULL, NULL, 0),
         true, PREPARES_NOTHING);
}

static const struct prepared *prepared_find(struct pg_connection *connection,
                                            enum pg_statement statement, uint32_t partition)
{
    char name[32], sql[sizeof statement_sql[0] + 16];
    struct prepared *prepared;

    for (int i = 0; i < connection->prepared_count; i++) {
        prepared = &connection->prepared[i];
        if (prepared->partition == partition && prepared->statement == statement)
            return prepared;
    }
    if (connection->prepared_count == PG_STATEMENTS_MAX)
        prepared_forget_all(connection);
    prepared = &connection->prepared[connection->prepared_count];
    *prepared = (struct prepared){partition, statement, ++connection->prepared_number};
    snprintf(name, sizeof name, "s%llu", (unsigned long long)prepared->number);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(sql, sizeof sql, statement_sql[statement], partition);
#pragma GCC diagnostic pop
    sent(connection, !connection->broken && PQsendPrepare(connection->native, name, sql, 0, NULL),
         true, connection->prepared_count++);
    return prepared;
}

void pg_send_statement(struct pg_connection *connection, enum pg_statement statement,
                       uint32_t partition, const struct pg_param *params, size_t count)
{
    const struct prepared *prepared = prepared_find(connection, statement, partition);
    struct native_params native;
    char name[32];
    bool ok;

    snprintf(name, sizeof name, "s%llu", (unsigned long long)prepared->number);
    params_lay_out(params, count, &native);
    ok = !connection->broken &&
         PQsendQueryPrepared(connection->native, name, (int)count, native.values, native.lengths,
                             native.formats, 1);
    sent(connection, ok, false, PREPARES_NOTHING);
}

/* --- Answers --------------------------------------------------------------------------------- */

void pg_answer_done(struct pg_answer *answer)
{
    for (size_t i = 0; i < answer->count; i++)
        PQclear(answer->results[i]);
    memory_free(answer->results);
    *answer = (struct pg_answer){0};
}

/* Reads while it writes: a server that fills its side with answers would wait for us otherwise. */
static bool queue_flush(struct pg_connection *connection, int64_t deadline_ms, struct error *err)
{
    int pending;

    while ((pending = PQflush(connection->native)) > 0) {
        if (!socket_wait(connection, POLLIN | POLLOUT, deadline_ms))
            return no_answer(connection, err);
        if (!PQconsumeInput(connection->native))
            return connection_fail(connection, err);
    }
    return pending == 0 ? true : connection_fail(connection, err);
}

/* The next result, NULL between two queries. */
static bool result_next(struct pg_connection *connection, int64_t deadline_ms,
                        PGresult **ret_result, struct error *err)
{
    while (PQisBusy(connection->native)) {
        if (!socket_wait(connection, POLLIN, deadline_ms))
            return no_answer(connection, err);
        if (!PQconsumeInput(connection->native))
            return connection_fail(connection, err);
    }
    *ret_result = PQgetResult(connection->native);
    return true;
}

/* A statement whose preparing failed, or was skipped after another failure, does not exist. */
static void prepared_drop(struct pg_connection *connection, const struct queued *queued)
{
    if (queued->prepared >= 0 && queued->prepared < connection->prepared_count)
        connection->prepared_count = queued->prepared;
}

/* Keeps the first failure: those after it only say that they did not run. */
static bool result_failed(struct pg_connection *connection, const struct queued *queued,
                          PGresult *result, struct pg_answer *answer, bool *failed,
                          struct error *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    prepared_drop(connection, queued);
    if (queued->hidden && queued->prepared < 0)
        connection->broken = true; /* DEALLOCATE ALL: what is prepared is not known any more */
    if (!*failed) {
        snprintf(answer->state, sizeof answer->state, "%s", state ? state : "");
        failure_set(err, state,
                    state ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)
                          : PQresultErrorMessage(result));
        if (state && state_ends_session(state))
            connection_break(connection);
        *failed = true;
    }
    return false;
}

static bool status_is_good(ExecStatusType status)
{
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The one result of a query and the NULL that ends it. */
static bool query_collect(struct pg_connection *connection, const struct queued *queued,
                          int64_t deadline_ms, struct pg_answer *answer, bool *failed,
                          struct error *err)
{
    PGresult *result = NULL, *end;
    struct error *reason = *failed ? &(struct error){0} : err;

    if (!result_next(connection, deadline_ms, &result, reason))
        return false;
    if (!result)
        return connection_fail(connection, reason);
    if (!status_is_good(PQresultStatus(result))) {
        result_failed(connection, queued, result, answer, failed, err);
        PQclear(result);
        if (queued->hidden && queued->prepared < 0 && connection->broken)
            return false;
    } else if (queued->hidden) {
        PQclear(result);
    } else {
        answer->results[answer->count++] = result;
    }
    if (PQstatus(connection->native) == CONNECTION_BAD) {
        connection_break(connection);
        return false;
    }
    if (!result_next(connection, deadline_ms, &end, reason))
        return false;
    assert(!end);
    return true;
}

static bool sync_collect(struct pg_connection *connection, int64_t deadline_ms, struct error *err)
{
    PGresult *result;
    bool good;

    if (!result_next(connection, deadline_ms, &result, err))
        return false;
    good = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
    PQclear(result);
    return good ? true : connection_fail(connection, err);
}

/* False: the connection is gone. */
static bool queue_collect(struct pg_connection *connection, int64_t deadline_ms,
                          struct pg_answer *answer, bool *failed, struct error *err)
{
    for (size_t i = 0; i < connection->queue_count; i++)
        if (!query_collect(connection, &connection->queue[i], deadline_ms, answer, failed, err))
            return false;
    return sync_collect(connection, deadline_ms, *failed ? &(struct error){0} : err);
}

bool pg_run(struct pg_connection *connection, int64_t timeout_ms, struct pg_answer *ret_answer,
            struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    size_t count = connection->queue_count;
    bool failed = false, alive;

    if (connection->deadline_ms)
        deadline_ms = MIN(deadline_ms, connection->deadline_ms);
    pg_answer_done(ret_answer);
    ret_answer->results = memory_alloc_zero(memory_array_size(count + 1, sizeof(PGresult *)));
    ret_answer->unsent = connection->broken; /* see sent() */
    if (connection->broken || !PQpipelineSync(connection->native)) {
        connection->queue_count = 0;
        return connection_fail(connection, err);
    }
    alive = queue_flush(connection, deadline_ms, err) &&
            queue_collect(connection, deadline_ms, ret_answer, &failed, err);
    connection->queue_count = 0;
    if (!alive)
        connection->broken = true;
    return alive && !failed;
}

size_t pg_queued(const struct pg_connection *connection)
{
    size_t count = 0;

    for (size_t i = 0; i < connection->queue_count; i++)
        count += !connection->queue[i].hidden;
    return count;
}

bool pg_rollback(struct pg_connection *connection)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct error ignored;

    if (connection->broken)
        return false;
    if (!pg_query(connection, "ROLLBACK", NULL, 0, &answer, &ignored))
        connection->broken = true;
    return !connection->broken;
}

bool pg_query(struct pg_connection *connection, const char *sql, const struct pg_param *params,
              size_t count, struct pg_answer *ret_answer, struct error *err)
{
    const struct pg_settings *settings = connection->settings;

    pg_send(connection, sql, params, count);
    return pg_run(connection, settings->statement_ms_max + settings->connect_ms_max, ret_answer,
                  err);
}

struct slice pg_field(const PGresult *result, int row, int column)
{
    return slice_of(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

uint64_t pg_field_uint64(const PGresult *result, int row, int column)
{
    uint64_t value = 0;

    return slice_to_uint64(pg_field(result, row, column), &value) ? value : 0;
}

/* --- Arrays ---------------------------------------------------------------------------------- */

/* The binary form of bytea[]: dimensions, a flag for NULLs, the element type, then the length and
 * lower bound of the one dimension; each element is its length and its bytes. Text would double
 * every value as hexadecimal. */
void pg_array_begin(struct buf *array, size_t count)
{
    enum { BYTEA_OID = 17 };

    assert(count <= INT32_MAX);
    buf_append_be32(array, 1);
    buf_append_be32(array, 0);
    buf_append_be32(array, BYTEA_OID);
    buf_append_be32(array, (uint32_t)count);
    buf_append_be32(array, 1);
}

void pg_array_add(struct buf *array, struct slice element)
{
    buf_append_be32(array, (uint32_t)element.len);
    buf_append_slice(array, element);
}

void pg_array_add_key(struct buf *array, struct slice key)
{
    size_t at = array->len;

    buf_append_be32(array, 0);
    pg_key_store(key, array);
    if (!buf_overflowed(array))
        bytes_put_be32(array->data + at, (uint32_t)(array->len - at - 4));
}

void pg_array_end(struct buf *array, size_t count)
{
    enum { COUNT_AT = 12 };

    bytes_put_be32(array->data + COUNT_AT, (uint32_t)count);
}
