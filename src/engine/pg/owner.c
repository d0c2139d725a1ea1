/* The session that writes. Each change of the node is one transaction sent in one round trip:
 *
 *     BEGIN
 *     advance the owner row from (epoch, sequence) to (epoch, sequence + 1), or raise OR001
 *     ... the change ...
 *     COMMIT
 *
 * The row lock on the owner row makes changes strictly one after the other, and the sequence tells
 * after a lost connection what became of the last one. There is at most one in doubt, and four
 * things to know about it:
 *
 *     COMMIT was answered              committed, whatever happened to the connection afterwards;
 *                                      but in doubt if the wait for its standby was cancelled
 *     an error was answered, and the   not committed: a failed pipeline skips the COMMIT
 *     session lives
 *     the session had ended before     not committed
 *     its COMMIT was queued
 *     else                             in doubt: connect again, take the lock again (then the old
 *                                      session has ended), read the sequence
 *
 * A change found not to be committed after a lost connection is sent again. When the server cannot
 * be reached in time the caller is told ERROR_STORE_POISONED, and the doubt is resolved by whoever
 * comes next: pg_owner_commit before its own change, or pg_owner_heal.
 *
 * Connecting again is also how the node moves to another primary (primary.c): the session is made
 * with the one on the newest timeline. The commit by which it takes the lock's record is a barrier:
 * nothing is told as done before a standby has it, where there is one to wait for. Where a standby
 * can take over, a new primary is waited for up to failover_ms, whatever the guard says meanwhile:
 * then the write in doubt is found out about instead of being told as one.
 *
 * Two findings end the ownership for good, until the node is opened again: the epoch is another (a
 * second process took the node while we were cut off), and the sequence is below what the server
 * has acknowledged (it was restored or failed over to a standby that lagged: writes we have
 * confirmed are gone, and what the layers above remember is not what is stored). The latter is
 * ERROR_STORE_LOST, is written down in the node and has to be accepted by the operator. */
#include "engine/pg/pg_private.h"

enum {
    ATTEMPTS_MAX = 3, /* of one change, each ended by a lost connection */
};

void pg_owner_init(struct pg_owner *owner, const struct pg_settings *settings,
                   struct pg_connection *connection, uint64_t epoch, uint64_t sequence)
{
    *owner = (struct pg_owner){
        .settings = settings, .connection = connection, .epoch = epoch, .sequence = sequence};
    mutex_init(&owner->lock);
}

void pg_owner_done(struct pg_owner *owner)
{
    pg_connection_close(TAKE(owner->connection));
    mutex_done(&owner->lock);
}

/* --- Finding out ----------------------------------------------------------------------------- */

static bool ownership_end(struct pg_owner *owner, const struct error *err)
{
    assert(mutex_is_held(&owner->lock) && err->code != ERROR_NONE);
    owner->lost = *err;
    owner->poisoned = true;
    pg_connection_close(TAKE(owner->connection));
    return false;
}

/* Fewer than were acknowledged. If it cannot be written down it is found again. */
static bool loss_found(struct pg_owner *owner, struct pg_connection *connection, uint64_t sequence,
                       struct error *err)
{
    if (pg_schema_loss_note(connection, owner->sequence, sequence, err) ||
        err->code != ERROR_STORE_LOST)
        return false;
    owner->loss = true;
    log_event(owner->settings->log, LOG_ERROR, "node has lost acknowledged writes",
              LOG_SLICE("node", owner->settings->name), LOG_TEXT("because", err->message));
    return ownership_end(owner, err);
}

/* What the sequence in the server says about the change in doubt. */
static bool doubt_resolve(struct pg_owner *owner, struct pg_connection *connection,
                          uint64_t sequence, struct error *err)
{
    uint64_t expected_max = owner->sequence + (owner->in_doubt ? 1 : 0);

    assert(mutex_is_held(&owner->lock));
    if (sequence < owner->sequence)
        return loss_found(owner, connection, sequence, err);
    if (sequence > expected_max) {
        error_set(err, ERROR_STORE_POISONED,
                  "the node is at transaction %llu where this process left it at %llu: writes were "
                  "made by others",
                  (unsigned long long)sequence, (unsigned long long)owner->sequence);
        return ownership_end(owner, err);
    }
    if (owner->poisoned) /* somebody was told that it is not known */
        log_event(owner->settings->log, LOG_WARNING, "a write in doubt was found out about",
                  LOG_SLICE("node", owner->settings->name),
                  LOG_BOOL("committed", sequence == expected_max));
    owner->sequence = sequence;
    owner->in_doubt = false;
    owner->poisoned = false;
    return true;
}

/* Where a standby can take over, nobody is in a hurry to tell a writer that it is not known.
 * Whoever looks after the node looks for the new primary while all others are turned away. */
static const struct pg_settings *search_settings(const struct pg_owner *owner)
{
    struct pg_primary *primary = owner->settings->primary;

    return (owner->failover_ms || owner->following) && pg_primary_fails_over(primary)
               ? &primary->settings
               : owner->settings;
}

static int64_t search_ms_max(const struct pg_owner *owner)
{
    return search_settings(owner) == owner->settings
               ? owner->settings->connect_ms_max
               : MAX(owner->failover_ms, owner->settings->connect_ms_max);
}

/* A session with the primary of the newest timeline that is known of. */
static bool primary_connect(struct pg_owner *owner, int64_t deadline_ms, size_t *ret_place,
                            struct pg_connection **ret_connection, struct error *err)
{
    const struct pg_settings *settings = search_settings(owner);
    struct pg_primary *primary = owner->settings->primary;
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    const struct pg_server *server;

    if (!pg_primary_find(primary, settings, deadline_ms, ret_place, err) ||
        !pg_connection_open_at(settings, &primary->places[*ret_place].host, deadline_ms,
                               &connection, err) ||
        !pg_primary_meet(primary, pg_connection_server(connection), err))
        return false;
    server = pg_connection_server(connection);
    if (server->standby)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the server is a standby");
    if (server->timeline < primary->timeline_seen)
        return error_set(err, ERROR_STORE_UNAVAILABLE,
                         "postgresql: the server was the primary before: it is on timeline %u, and "
                         "there is one on %u",
                         server->timeline, (unsigned)primary->timeline_seen);
    *ret_connection = TAKE(connection);
    return true;
}

/* One attempt at a session that owns the node again. What became visible while the lock passed to
 * it is shown to readers behind another beat only. */
static bool reconnect_once(struct pg_owner *owner, int64_t deadline_ms, struct error *err)
{
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    struct pg_primary *primary = owner->settings->primary;
    uint64_t sequence;
    size_t place;

    owner->reconnects++;
    if (!primary_connect(owner, deadline_ms, &place, &connection, err))
        return false;
    pg_connection_hurry(connection, deadline_ms);
    if (!pg_schema_reclaim(connection, owner->epoch, deadline_ms, &sequence, err)) {
        if (err->code == ERROR_STORE_IN_USE)
            return ownership_end(owner, err);
        return false;
    }
    if (owner->in_doubt)
        pg_primary_suspect(primary);
    if (!doubt_resolve(owner, connection, sequence, err))
        return false;
    pg_primary_move(primary, place, pg_connection_server(connection));
    pg_connection_hurry(connection, 0);
    pg_connection_adopt(connection, owner->settings);
    owner->connection = TAKE(connection);
    log_event(owner->settings->log, LOG_INFO, "node reconnected",
              LOG_SLICE("node", owner->settings->name));
    return true;
}

/* A live session, reconnecting until the deadline if there is none. On failure the doubt stays. */
static bool session_ensure(struct pg_owner *owner, int64_t deadline_ms, struct error *err)
{
    int64_t pause_ms = PG_BACKOFF_FIRST_MS;

    assert(mutex_is_held(&owner->lock));
    if (owner->lost.code != ERROR_NONE) {
        *err = owner->lost;
        return false;
    }
    if (owner->connection)
        return true;
    if (!pg_may_wait(search_settings(owner), 0)) /* let go of while it waited for the answer */
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the server does not answer");
    while (!reconnect_once(owner, deadline_ms, err)) {
        if (owner->lost.code != ERROR_NONE)
            return false;
        if (clock_monotonic_ms() + pause_ms >= deadline_ms ||
            !pg_pause(search_settings(owner), pause_ms)) {
            owner->down_until_ms = clock_monotonic_ms() + PG_DOWN_MS;
            return false;
        }
        pause_ms = MIN(pause_ms * 2, (int64_t)PG_BACKOFF_MAX_MS);
    }
    return true;
}

/* --- Committing ------------------------------------------------------------------------------ */

enum outcome { COMMITTED, REFUSED, LOST_UNSENT, LOST };

static void transaction_send(struct pg_owner *owner, const struct pg_change *change)
{
    struct pg_number epoch, sequence;
    struct pg_param params[] = {pg_number(&epoch, owner->epoch),
                                pg_number(&sequence, owner->sequence)};

    pg_send(owner->connection, "BEGIN", NULL, 0);
    pg_send(owner->connection,
            "WITH moved AS (UPDATE orrery.owner SET sequence = sequence + 1"
            " WHERE epoch = $1::bigint AND sequence = $2::bigint RETURNING 1)"
            " SELECT orrery.require(EXISTS (SELECT FROM moved), '" PG_STATE_OWNER
            "', 'another process has taken the node')",
            params, ARRAY_LEN(params));
    if (owner->settings->replicated)
        pg_send(owner->connection,
                "SELECT orrery.require(current_setting('synchronous_standby_names') <> ''"
                " AND current_setting('synchronous_commit') NOT IN ('off', 'local'),"
                " '" PG_STATE_ALONE "', 'replication is required, and the server has no"
                " synchronous standby')",
                NULL, 0);
    change->send(owner->connection, change->context);
    pg_send(owner->connection, "COMMIT", NULL, 0);
}

/* BEGIN and the owner row are answered first: the change's own results follow. */
static void answer_trim(const struct pg_owner *owner, struct pg_answer *answer)
{
    size_t before = owner->settings->replicated ? 3 : 2;

    for (size_t i = 0; i < MIN(answer->count, before); i++)
        PQclear(answer->results[i]);
    if (answer->count <= before) {
        answer->count = 0;
        return;
    }
    answer->count -= before;
    memmove(answer->results, answer->results + before, answer->count * sizeof(PGresult *));
}

/* A transaction that had failed would answer its COMMIT with ROLLBACK. */
static bool answer_has_commit(const struct pg_answer *answer, size_t sent)
{
    assert(sent > 0);
    return answer->count == sent && strcmp(PQcmdStatus(answer->results[sent - 1]), "COMMIT") == 0;
}

static enum outcome transaction_run(struct pg_owner *owner, const struct pg_change *change,
                                    struct pg_answer *ret_answer, struct error *err)
{
    const struct pg_settings *settings = owner->settings;
    struct pg_connection *connection = owner->connection;
    enum outcome outcome;
    size_t sent;
    bool good;

    assert(connection && owner->lost.code == ERROR_NONE);
    transaction_send(owner, change);
    sent = pg_queued(connection);
    good =
        pg_run(connection, settings->statement_ms_max + settings->connect_ms_max, ret_answer, err);
    if (pg_connection_was_alone(connection)) {
        /* It is committed, and may be there alone: nobody reads it, and it is not told as done,
         * before a new session has seen that a standby has it. */
        pg_primary_suspect(settings->primary);
        pg_connection_close(TAKE(owner->connection));
        answer_trim(owner, ret_answer);
        return LOST;
    }
    if (answer_has_commit(ret_answer, sent))
        outcome = COMMITTED;
    else if (!pg_connection_is_broken(connection) && !good && pg_rollback(connection))
        outcome = REFUSED;
    else
        outcome = ret_answer->unsent ? LOST_UNSENT : LOST;
    if (pg_connection_is_broken(connection))
        pg_connection_close(TAKE(owner->connection));
    answer_trim(owner, ret_answer);
    return outcome;
}

/* The server refused. That the epoch is another is known here for the first time when somebody
 * took the node while our session lived on (an administrator released the lock). */
static bool refused(struct pg_owner *owner, const struct pg_answer *answer, struct error *err)
{
    if (strcmp(answer->state, PG_STATE_OWNER) == 0)
        return ownership_end(owner, err);
    return false;
}

static bool unknown(struct pg_owner *owner, struct error *err)
{
    struct error reason = *err;

    assert(owner->in_doubt);
    owner->poisoned = true;
    return error_set(err, ERROR_STORE_POISONED,
                     "it is not known whether the last write was committed: %s", reason.message);
}

/* An earlier doubt is resolved first; a server that was just found down is not tried again. A
 * session the server ended while it idled is noticed here, while nothing is in doubt. */
static bool commit_prepare(struct pg_owner *owner, struct error *err)
{
    int64_t now_ms = clock_monotonic_ms();

    if (owner->connection && (!pg_connection_check(owner->connection) ||
                              pg_primary_is_replaced(owner->settings->primary)))
        pg_connection_close(TAKE(owner->connection));
    if (!owner->connection && owner->lost.code == ERROR_NONE && now_ms < owner->down_until_ms)
        error_set(err, ERROR_STORE_UNAVAILABLE, "the server could not be reached a moment ago");
    else if (session_ensure(owner, now_ms + search_ms_max(owner), err))
        return true;
    return owner->in_doubt && owner->lost.code == ERROR_NONE ? unknown(owner, err) : false;
}

bool pg_owner_commit(struct pg_owner *owner, const struct pg_change *change,
                     struct pg_answer *ret_answer, struct error *err)
{
    int64_t deadline_ms = 0;
    uint64_t target;

    assert(mutex_is_held(&owner->lock));
    if (!commit_prepare(owner, err))
        return false;
    target = owner->sequence + 1;
    for (int attempt = 1;; attempt++) {
        enum outcome outcome = transaction_run(owner, change, ret_answer, err);

        if (outcome == COMMITTED) {
            owner->sequence = target;
            return true;
        }
        if (outcome == REFUSED)
            return refused(owner, ret_answer, err);

        pg_answer_done(ret_answer);
        owner->in_doubt = outcome == LOST;
        if (attempt == 1)
            deadline_ms = clock_monotonic_ms() + search_ms_max(owner);
        if (!session_ensure(owner, deadline_ms, err))
            return owner->in_doubt && owner->lost.code == ERROR_NONE ? unknown(owner, err) : false;
        if (owner->sequence == target)
            return true;
        if (attempt == ATTEMPTS_MAX)
            return error_set(err, ERROR_STORE_UNAVAILABLE,
                             "the connection was lost %d times while writing", attempt);
    }
}

void pg_owner_heal(struct pg_owner *owner)
{
    struct error ignored;

    if (!owner->poisoned)
        return;
    WITH_LOCK (&owner->lock) {
        if (owner->in_doubt && clock_monotonic_ms() >= owner->down_until_ms &&
            !reconnect_once(owner, clock_monotonic_ms() + owner->settings->connect_ms_max,
                            &ignored))
            owner->down_until_ms = clock_monotonic_ms() + PG_DOWN_MS;
    }
}

/* A session with a primary that was replaced is of no use, whether it still answers or not. */
bool pg_owner_follow(struct pg_owner *owner, int64_t deadline_ms, struct error *err)
{
    struct pg_primary *primary = owner->settings->primary;
    bool there = false;

    WITH_LOCK (&owner->lock) {
        if (owner->lost.code != ERROR_NONE) {
            *err = owner->lost;
            return false;
        }
        if (owner->connection &&
            (pg_primary_is_replaced(primary) || !pg_connection_check(owner->connection)))
            pg_connection_close(TAKE(owner->connection));
        owner->following = true;
        there = owner->connection || reconnect_once(owner, deadline_ms, err);
        owner->following = false;
    }
    return there;
}
