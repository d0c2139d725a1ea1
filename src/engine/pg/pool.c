/* The connections that read. A stack rather than a queue: the connection used last has its
 * statements prepared and its server process in the cache, and those at the bottom stay unused.
 *
 * A lease is a connection inside a REPEATABLE READ transaction: what snapshots and iterators hold.
 * Leases have deadlines, kept three times over: the holder is refused on use, a waiter for the pool
 * takes the connection of an expired lease away, and the server ends a transaction that idles
 * (idle_in_transaction_session_timeout) even when this process is stopped. So neither vacuum nor
 * other readers wait longer for a forgotten snapshot than for a slow one.
 *
 * A lease is entered and left under the pool's lock, so that a connection is taken away only
 * between two questions.
 *
 * What may be shown is primary.c's to say: before a question, that all the connection can see is on
 * the standby, and behind it, that its primary was not replaced meanwhile. */
#include "engine/pg/pg_private.h"

enum {
    TOUCHED_MAX = 32,      /* partitions remembered per lease */
    RECLAIM_EVERY_MS = 10, /* a waiter looks for expired leases */
};

struct pg_lease {
    struct pg_pool *pool;
    struct pg_connection *connection; /* NULL: taken away or lost */
    int64_t deadline_ms;              /* on the engine's clock */
    bool busy;                        /* a question is being asked */
    struct error lost;                /* why connection is NULL */
    uint32_t touched[TOUCHED_MAX];    /* partitions whose tables the transaction has locked */
    size_t touched_count;
    struct pg_lease *previous, *next; /* of pool->leases */
};

void pg_pool_init(struct pg_pool *pool, const struct pg_settings *settings)
{
    *pool = (struct pg_pool){.settings = settings};
    mutex_init(&pool->lock);
    condition_init(&pool->returned);
    pool->idle =
        memory_alloc_zero(memory_array_size(settings->connections_max, sizeof *pool->idle));
}

static void idle_close(struct pg_pool *pool)
{
    while (pool->idle_count > 0) {
        pg_connection_close(pool->idle[--pool->idle_count]);
        pool->open_count--;
    }
}

void pg_pool_done(struct pg_pool *pool)
{
    assert(!pool->leases); /* a snapshot or iterator outlived its engine */
    idle_close(pool);
    assert(pool->open_count == 0);
    memory_free(pool->idle);
    condition_done(&pool->returned);
    mutex_done(&pool->lock);
}

/* --- Taking and giving ----------------------------------------------------------------------- */

static void lease_unlink(struct pg_lease *lease)
{
    assert(mutex_is_held(&lease->pool->lock));
    if (lease->previous)
        lease->previous->next = lease->next;
    else
        lease->pool->leases = lease->next;
    if (lease->next)
        lease->next->previous = lease->previous;
    lease->previous = lease->next = NULL;
}

static bool lease_is_over(const struct pg_lease *lease)
{
    return clock_read_monotonic_ms(lease->pool->settings->clock) >= lease->deadline_ms;
}

static bool expired(const struct pg_settings *settings, struct error *err)
{
    return error_set(err, ERROR_STORE_SNAPSHOT_EXPIRED,
                     "the snapshot is older than %lld ms and was let go",
                     (long long)settings->snapshot_ms_max);
}

/* Closes the connection of one expired lease, making room for another. With pool->lock. */
static bool expired_reclaim(struct pg_pool *pool)
{
    assert(mutex_is_held(&pool->lock));
    for (struct pg_lease *lease = pool->leases; lease; lease = lease->next) {
        if (lease->busy || !lease_is_over(lease))
            continue;
        pg_connection_close(TAKE(lease->connection));
        expired(pool->settings, &lease->lost);
        lease_unlink(lease);
        pool->open_count--;
        return true;
    }
    return false;
}

/* A place for one more connection, or an idle one. With pool->lock. */
static bool place_wait(struct pg_pool *pool, int64_t deadline_ms, struct error *err)
{
    bool may_wait = true;

    assert(mutex_is_held(&pool->lock));
    while (pool->idle_count == 0 && pool->open_count == pool->settings->connections_max) {
        int64_t now_ms = clock_monotonic_ms();

        if (expired_reclaim(pool))
            continue;
        if (!may_wait)
            return error_set(err, ERROR_STORE_UNAVAILABLE, "the server does not answer");
        if (now_ms >= deadline_ms)
            return error_set(err, ERROR_BUSY, "all %u connections of the node are in use",
                             pool->settings->connections_max);
        if (!condition_wait_until(&pool->returned, &pool->lock,
                                  MIN(deadline_ms, now_ms + RECLAIM_EVERY_MS)))
            may_wait = pg_may_wait(pool->settings, RECLAIM_EVERY_MS);
    }
    return true;
}

/* Tries until the deadline: a server that is just starting again refuses for a moment. */
static bool connect_patiently(struct pg_pool *pool, int64_t deadline_ms,
                              struct pg_connection **ret_connection, struct error *err)
{
    int64_t pause_ms = PG_BACKOFF_FIRST_MS;

    while (!pg_connection_open(pool->settings, deadline_ms, ret_connection, err)) {
        if (err->code != ERROR_STORE_UNAVAILABLE ||
            clock_monotonic_ms() + pause_ms >= deadline_ms || !pg_pause(pool->settings, pause_ms))
            return false;
        pause_ms = MIN(pause_ms * 2, (int64_t)PG_BACKOFF_MAX_MS);
    }
    return true;
}

/* Fills a place that was counted already. */
static bool place_fill(struct pg_pool *pool, int64_t deadline_ms,
                       struct pg_connection **ret_connection, struct error *err)
{
    bool connected = connect_patiently(pool, deadline_ms, ret_connection, err);

    WITH_LOCK (&pool->lock) {
        if (!connected) {
            pool->open_count--;
            pool->down_until_ms = clock_monotonic_ms() + PG_DOWN_MS;
            pool->down_error = *err;
            condition_signal(&pool->returned);
        }
    }
    return connected;
}

/* One that idles, or one more. */
static bool connection_find(struct pg_pool *pool, bool fresh, int64_t deadline_ms,
                            struct pg_connection **ret_connection, struct error *err)
{
    WITH_LOCK (&pool->lock) {
        /* one was found broken: those that idled beside it are no better */
        if (fresh || (pool->idle_count &&
                      !pg_primary_has(pool->settings->primary, pool->idle[pool->idle_count - 1])))
            idle_close(pool);
        if (!place_wait(pool, MIN(deadline_ms, clock_monotonic_ms() + pool->settings->place_ms_max),
                        err))
            return false;
        if (pool->idle_count > 0) {
            *ret_connection = pool->idle[--pool->idle_count];
            return true;
        }
        if (clock_monotonic_ms() < pool->down_until_ms) {
            *err = pool->down_error;
            return false;
        }
        assert(pool->open_count < pool->settings->connections_max);
        pool->open_count++;
    }
    if (fresh)
        pool->reconnects++;
    return place_fill(pool, deadline_ms, ret_connection, err);
}

/* Takes it back, outside any transaction; a broken one is closed. */
static void connection_give(struct pg_pool *pool, struct pg_connection *connection)
{
    WITH_LOCK (&pool->lock) {
        assert(pool->idle_count < pool->open_count);
        if (pg_connection_is_broken(connection)) {
            pg_connection_close(connection);
            pool->open_count--;
        } else {
            pool->idle[pool->idle_count++] = connection;
        }
        condition_signal(&pool->returned);
    }
}

/* Lends a connection whose answers may be shown; fresh: not one that has been idle. Waits while all
 * are lent, reclaiming expired leases, at most connect_ms_max. ERROR_BUSY,
 * ERROR_STORE_UNAVAILABLE. */
static bool connection_take(struct pg_pool *pool, bool fresh, struct pg_connection **ret_connection,
                            struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + pool->settings->connect_ms_max;
    struct pg_connection *connection;

    if (!connection_find(pool, fresh, deadline_ms, &connection, err))
        return false;
    if (!pg_primary_prove(pool->settings->primary, pool->settings, connection, deadline_ms, err)) {
        connection_give(pool, connection);
        return false;
    }
    *ret_connection = connection;
    return true;
}

/* The answer is of a primary that is none any more: as if it had not come. */
static bool answer_counts(const struct pg_pool *pool, struct pg_connection *connection,
                          struct pg_answer *answer, struct error *err)
{
    if (pg_primary_has(pool->settings->primary, connection))
        return true;
    pg_answer_done(answer);
    return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the primary was replaced");
}

/* --- Asking as of now ------------------------------------------------------------------------ */

static int64_t answer_ms_max(const struct pg_pool *pool)
{
    return pool->settings->statement_ms_max + pool->settings->connect_ms_max;
}

static void ask_send(struct pg_connection *connection, const struct pg_ask *ask)
{
    pg_send_statement(connection, ask->statement, ask->partition, ask->params, ask->count);
}

bool pg_pool_ask(struct pg_pool *pool, const struct pg_ask *ask, struct pg_answer *ret_answer,
                 struct error *err)
{
    struct pg_connection *connection;
    bool good, again = false;

    do {
        if (!connection_take(pool, again, &connection, err))
            return false;
        ask_send(connection, ask);
        good = pg_run(connection, answer_ms_max(pool), ret_answer, err) &&
               answer_counts(pool, connection, ret_answer, err);
        again = !again && pg_connection_was_lost(connection);
        connection_give(pool, connection);
    } while (!good && again);
    return good;
}

bool pg_pool_query(struct pg_pool *pool, const char *sql, const struct pg_param *params,
                   size_t count, struct pg_answer *ret_answer, struct error *err)
{
    struct pg_connection *connection;
    bool good, again = false;

    do {
        if (!connection_take(pool, again, &connection, err))
            return false;
        good = pg_query(connection, sql, params, count, ret_answer, err) &&
               answer_counts(pool, connection, ret_answer, err);
        again = !again && pg_connection_was_lost(connection);
        connection_give(pool, connection);
    } while (!good && again);
    return good;
}

/* --- Leases ---------------------------------------------------------------------------------- */

static void lease_touch(struct pg_lease *lease, uint32_t partition)
{
    if (lease->touched_count < TOUCHED_MAX)
        lease->touched[lease->touched_count++] = partition;
}

static bool lease_has_touched(const struct pg_lease *lease, uint32_t partition)
{
    for (size_t i = 0; i < lease->touched_count; i++)
        if (lease->touched[i] == partition)
            return true;
    return false;
}

static struct pg_lease *lease_new(struct pg_pool *pool, struct pg_connection *connection,
                                  int64_t deadline_ms)
{
    struct pg_lease *lease = MEMORY_NEW(struct pg_lease);

    lease->pool = pool;
    lease->connection = connection;
    lease->deadline_ms = deadline_ms;
    WITH_LOCK (&pool->lock) {
        lease->next = pool->leases;
        if (lease->next)
            lease->next->previous = lease;
        pool->leases = lease;
    }
    return lease;
}

/* BEGIN takes no snapshot, the first query does. */
static bool lease_begin(struct pg_pool *pool, struct pg_connection *connection,
                        const struct pg_ask *ask, struct pg_answer *ret_answer, struct error *err)
{
    pg_send(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL, 0);
    if (ask)
        ask_send(connection, ask);
    else
        pg_send(connection, "SELECT 1", NULL, 0);
    if (pg_run(connection, answer_ms_max(pool), ret_answer, err) &&
        answer_counts(pool, connection, ret_answer, err))
        return true;
    pg_rollback(connection);
    return false;
}

bool pg_lease_open(struct pg_pool *pool, const struct pg_ask *ask, struct pg_lease **ret_lease,
                   struct pg_answer *ret_answer, struct error *err)
{
    int64_t deadline_ms =
        clock_read_monotonic_ms(pool->settings->clock) + pool->settings->snapshot_ms_max;
    struct pg_connection *connection;
    bool again = false;

    do {
        if (!connection_take(pool, again, &connection, err))
            return false;
        if (lease_begin(pool, connection, ask, ret_answer, err)) {
            *ret_lease = lease_new(pool, connection, deadline_ms);
            if (ask)
                lease_touch(*ret_lease, ask->partition);
            return true;
        }
        again = !again && pg_connection_was_lost(connection);
        connection_give(pool, connection);
    } while (again);
    return false;
}

void pg_lease_close(struct pg_lease *lease)
{
    struct pg_connection *connection;
    struct pg_pool *pool;

    if (!lease)
        return;
    pool = lease->pool;
    WITH_LOCK (&pool->lock) {
        assert(!lease->busy);
        connection = TAKE(lease->connection);
        if (connection)
            lease_unlink(lease);
    }
    if (connection) {
        pg_rollback(connection);
        connection_give(pool, connection);
    }
    memory_free(lease);
}

static bool lease_enter(struct pg_lease *lease, struct error *err)
{
    WITH_LOCK (&lease->pool->lock) {
        assert(!lease->busy); /* one thread at a time */
        if (!lease->connection) {
            *err = lease->lost;
            return false;
        }
        if (lease_is_over(lease))
            return expired(lease->pool->settings, err);
        lease->busy = true;
    }
    return true;
}

/* A transaction that is over takes its snapshot with it: there is no asking again. */
static void lease_leave(struct pg_lease *lease, bool over, const struct error *err)
{
    struct pg_connection *connection = NULL;

    WITH_LOCK (&lease->pool->lock) {
        assert(lease->busy);
        lease->busy = false;
        if (over) {
            connection = TAKE(lease->connection);
            lease->lost = *err;
            lease_unlink(lease);
        }
    }
    if (connection) {
        pg_rollback(connection);
        connection_give(lease->pool, connection);
    }
}

/* An error inside a transaction ends it, unless a savepoint was set before. Only a missing table
 * can be asked for by mistake, and once the transaction has read a table, it has it locked: so the
 * savepoint is needed the first time only. */
static bool lease_run(struct pg_lease *lease, const struct pg_ask *ask,
                      struct pg_answer *ret_answer, bool *ret_over, struct error *err)
{
    struct pg_connection *connection = lease->connection;
    bool guarded = !lease_has_touched(lease, ask->partition);
    CLEANUP(pg_answer_done) struct pg_answer ignored = {0};
    struct error ignored_error;

    assert(lease->busy && connection);
    if (guarded)
        pg_send(connection, "SAVEPOINT touch", NULL, 0);
    ask_send(connection, ask);
    if (guarded)
        pg_send(connection, "RELEASE touch", NULL, 0);
    if (pg_run(connection, answer_ms_max(lease->pool), ret_answer, err)) {
        if (guarded) {
            lease_touch(lease, ask->partition);
            PQclear(ret_answer->results[--ret_answer->count]); /* of RELEASE */
        }
        *ret_over = !answer_counts(lease->pool, connection, ret_answer, err);
        return !*ret_over;
    }
    *ret_over = !guarded || pg_connection_is_broken(connection) ||
                !pg_query(connection, "ROLLBACK TO touch", NULL, 0, &ignored, &ignored_error);
    return false;
}

/* For this transaction alone: the session goes on with what it was made with. */
bool pg_lease_keep(struct pg_lease *lease, int64_t ms, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_number idle;
    struct pg_param params[] = {pg_number(&idle, (uint64_t)ms)};
    int64_t deadline_ms = clock_read_monotonic_ms(lease->pool->settings->clock) + ms;
    bool good;

    if (!lease_enter(lease, err))
        return false;
    good = pg_query(lease->connection,
                    "SELECT set_config('idle_in_transaction_session_timeout', $1, true)", params,
                    ARRAY_LEN(params), &answer, err);
    if (good)
        lease->deadline_ms = MAX(lease->deadline_ms, deadline_ms);
    lease_leave(lease, !good, err);
    return good;
}

bool pg_lease_ask(struct pg_lease *lease, const struct pg_ask *ask, struct pg_answer *ret_answer,
                  struct error *err)
{
    bool good, over;

    if (!lease_enter(lease, err))
        return false;
    good = lease_run(lease, ask, ret_answer, &over, err);
    lease_leave(lease, over, err);
    return good;
}
