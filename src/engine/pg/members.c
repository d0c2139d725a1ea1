/* The servers that share a node: a row each in orrery.server, and a session each with a lock of its
 * own.
 *
 * A beat is one round trip: the row's number is raised, and who is there and who owns is read. It
 * waits for no standby (synchronous_commit = local): it proves nothing but that its server lives,
 * and while a standby stands still nobody is to be judged by that. What decides, registering and
 * claiming, is committed as the server has it, and notified to the others (LISTEN): they beat at
 * once instead of when it is time to, so that a handover is not a wait for them.
 *
 * The row is not the one that the owner's transactions lock, so that a beat never waits behind a
 * large write. The lock of the session tells others at once when a process has ended, for then
 * PostgreSQL ends its sessions; that the beat stands still tells them when a machine has.
 *
 * A claim changes the epoch of the owner row. It waits for the transaction that has the row, whose
 * effect then is there, and every later one of that owner fails (owner.c). If the owner's process
 * was stopped in the middle of one its session is ended; never one that waits for a standby, which
 * would show everybody what only the primary has.
 *
 * An owner knows what was acknowledged and finds out if a failover has lost it; one that dies in
 * the failover cannot tell. So every beat remembers how far the owner's transactions had come: they
 * come one after the other, so all but the last one seen were acknowledged. A claim that finds
 * fewer writes the loss down with it, and the node is not opened before it was accepted. What came
 * between the last beat and the failover nobody remembers. */
#include "engine/pg/pg_private.h"

#include <limits.h>
#include <poll.h>

enum { BEAT_MS_MAX = 2000, LOCK_WAIT_MS = 1000 };

#define CHANNEL "orrery_members"

struct members {
    struct engine_members base;
    struct pg_settings settings;
    struct pg_primary primary;
    struct pg_connection *connection; /* NULL: lost */
    struct engine_member self;
    uint64_t acknowledged; /* transactions of the owner's, as far as beats have shown */
    uint64_t losses;       /* that were written down by then */
};

static struct members *members_of(struct engine_members *base)
{
    return CONTAINER_OF(base, struct members, base);
}

static uint64_t lock_number(const struct members *members)
{
    return members->base.incarnation & INT32_MAX;
}

/* --- The session ----------------------------------------------------------------------------- */

static bool connection_make(struct members *members, struct error *err)
{
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    const struct pg_settings *settings = &members->settings;
    struct pg_primary *primary = &members->primary;
    int64_t deadline_ms = clock_monotonic_ms() + settings->connect_ms_max;
    size_t place;

    if (!pg_primary_find(primary, settings, deadline_ms, &place, err) ||
        !pg_connection_open_at(settings, &primary->places[place].host, deadline_ms, &connection,
                               err) ||
        !pg_primary_meet(primary, pg_connection_server(connection), err))
        return false;
    if (pg_connection_server(connection)->standby)
        return error_set(err, ERROR_STORE_UNAVAILABLE, "postgresql: the server is a standby");
    pg_primary_move(primary, place, pg_connection_server(connection));
    members->connection = TAKE(connection);
    return true;
}

/* The lock that shows to the others that this process lives, and an ear for what they notify. */
static bool presence_lock(struct members *members, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0}, set = {0}, listen = {0};
    struct pg_number number;
    struct pg_param param = pg_number(&number, lock_number(members));

    return pg_query(members->connection, "SET synchronous_commit = local", NULL, 0, &set, err) &&
           pg_query(members->connection, "LISTEN " CHANNEL, NULL, 0, &listen, err) &&
           pg_query(members->connection,
                    "SELECT pg_try_advisory_lock(" PG_LOCK_MEMBER ", $1::integer)", &param, 1,
                    &answer, err);
}

static bool connection_ensure(struct members *members, struct error *err)
{
    if (members->connection &&
        (pg_connection_is_broken(members->connection) ||
         !pg_connection_check(members->connection) || pg_primary_is_replaced(&members->primary)))
        pg_connection_close(TAKE(members->connection));
    if (members->connection)
        return true;
    if (!connection_make(members, err))
        return false;
    if (presence_lock(members, err))
        return true;
    pg_connection_close(TAKE(members->connection));
    return false;
}

/* What was queued, between BEGIN and COMMIT as the server waits by itself. */
static void decision_begin(struct members *members)
{
    pg_send(members->connection, "BEGIN", NULL, 0);
    pg_send(members->connection, "SET LOCAL synchronous_commit TO DEFAULT", NULL, 0);
    pg_send(members->connection, "SET LOCAL lock_timeout = 3000", NULL, 0);
}

enum { DECISION_FIRST = 3 }; /* results before those of the decision */

static bool decision_end(struct members *members, struct pg_answer *answer, struct error *err)
{
    pg_send(members->connection, "NOTIFY " CHANNEL, NULL, 0);
    pg_send(members->connection, "COMMIT", NULL, 0);
    if (!pg_run(members->connection, members->settings.statement_ms_max, answer, err)) {
        if (!pg_connection_is_broken(members->connection) && !pg_rollback(members->connection))
            pg_connection_close(TAKE(members->connection));
        return false;
    }
    if (!pg_connection_was_alone(members->connection))
        return true;
    pg_connection_close(TAKE(members->connection));
    return error_set(err, ERROR_STORE_UNAVAILABLE, "the wait for a standby was cancelled");
}

/* --- Registering ----------------------------------------------------------------------------- */

/* One of the same name that runs is not replaced: two of one name would take turns. */
static bool name_check(struct members *members, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct pg_param param = pg_text(members->self.name);
    int64_t deadline_ms = clock_monotonic_ms() + LOCK_WAIT_MS;

    for (;;) {
        CLEANUP(pg_answer_done) struct pg_answer there = {0};

        if (!pg_query(members->connection,
                      "SELECT address FROM orrery.server s WHERE name = $1 AND " PG_LOCK_IS_HELD(
                          PG_LOCK_MEMBER ", s.incarnation & 2147483647"),
                      &param, 1, &there, err))
            return false;
        if (PQntuples(there.results[0]) == 0)
            break;
        if (clock_monotonic_ms() >= deadline_ms)
            return error_set(err, ERROR_STORE_IN_USE,
                             "a server called \"%s\" runs already, at %.*s: give this one another "
                             "name (servers.name)",
                             members->self.name, SLICE_ARG(pg_field(there.results[0], 0, 0)));
        if (!pg_connection_pause(members->connection, 20))
            return error_set(err, ERROR_STORE_UNAVAILABLE, "the server does not answer");
    }
    if (!pg_query(members->connection, "SELECT count(*) FROM orrery.server WHERE name <> $1",
                  &param, 1, &answer, err))
        return false;
    return pg_field_uint64(answer.results[0], 0, 0) < ENGINE_MEMBERS_MAX ||
           error_set(err, ERROR_LIMIT_REACHED,
                     "%d servers share the node already: forget those that are gone (orrery server "
                     "forget NAME)",
                     ENGINE_MEMBERS_MAX);
}

static bool incarnation_draw(struct members *members, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};

    if (!pg_query(members->connection, "SELECT nextval('orrery.incarnation')", NULL, 0, &answer,
                  err))
        return false;
    members->base.incarnation = pg_field_uint64(answer.results[0], 0, 0);
    return true;
}

/* That it drains is said of the name, not of one start of it. */
static bool row_write(struct members *members, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    const struct engine_member *self = &members->self;
    struct pg_number incarnation;
    struct pg_param who[] = {pg_text(self->name),
                             pg_number(&incarnation, members->base.incarnation),
                             pg_text(self->address), pg_text(self->endpoint)};
    struct pg_param what[] = {who[0], pg_text(self->region), pg_text(self->release)};

    decision_begin(members);
    pg_send(members->connection,
            "INSERT INTO orrery.server (name, incarnation, address, endpoint, region, release)"
            " VALUES ($1, $2::bigint, $3, $4, '', '') ON CONFLICT (name) DO UPDATE"
            " SET incarnation = $2::bigint, address = $3, endpoint = $4, beat = 0",
            who, ARRAY_LEN(who));
    pg_send(members->connection,
            "UPDATE orrery.server SET region = $2, release = $3 WHERE name = $1", what,
            ARRAY_LEN(what));
    return decision_end(members, &answer, err);
}

static void members_close(struct engine_members *base)
{
    struct members *members = members_of(base);
    struct pg_number number;
    struct pg_param param = pg_number(&number, base->incarnation);
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct error ignored;

    /* One that drains stays known to. */
    if (base->incarnation && members->connection && !pg_connection_is_broken(members->connection))
        (void)!pg_query(members->connection,
                        "DELETE FROM orrery.server WHERE incarnation = $1::bigint AND NOT draining",
                        &param, 1, &answer, &ignored);
    pg_connection_close(members->connection);
    pg_primary_done(&members->primary);
    pg_settings_done(&members->settings);
    memory_free(members);
}

static bool members_open(struct slice url, const struct engine_members_options *options,
                         struct engine_members **ret_members, struct error *err)
{
    struct engine_options plain = {.log = options->log, .connect_ms_max = options->connect_ms_max};
    struct members *members = MEMORY_NEW(struct members);

    members->base.driver = &pg_members;
    members->self = *options->self;
    members->settings.primary = &members->primary;
    if (!pg_settings_init(&members->settings, url, &plain, err)) {
        memory_free(members);
        return false;
    }
    if (!pg_primary_init(&members->primary, &members->settings, err)) {
        pg_settings_done(&members->settings);
        memory_free(members);
        return false;
    }
    if (!connection_make(members, err) ||
        !pg_schema_share(members->connection, &members->settings, err) ||
        !name_check(members, err) || !incarnation_draw(members, err) ||
        !presence_lock(members, err) || !row_write(members, err)) {
        members_close(&members->base);
        return false;
    }
    *ret_members = &members->base;
    return true;
}

/* --- Beating --------------------------------------------------------------------------------- */

static void text_take(const PGresult *rows, int row, int column, char *to, size_t size)
{
    struct slice text = pg_field(rows, row, column);

    snprintf(to, size, "%.*s", SLICE_ARG(text));
}

static bool truth_of(const PGresult *rows, int row, int column)
{
    return slice_equal(pg_field(rows, row, column), SLICE("t"));
}

static void member_read(const PGresult *rows, int row, struct engine_member *ret_member)
{
    text_take(rows, row, 0, ret_member->name, sizeof ret_member->name);
    text_take(rows, row, 1, ret_member->address, sizeof ret_member->address);
    text_take(rows, row, 2, ret_member->endpoint, sizeof ret_member->endpoint);
    text_take(rows, row, 3, ret_member->region, sizeof ret_member->region);
    text_take(rows, row, 4, ret_member->release, sizeof ret_member->release);
    ret_member->incarnation = pg_field_uint64(rows, row, 5);
    ret_member->beat = pg_field_uint64(rows, row, 6);
    ret_member->draining = truth_of(rows, row, 7);
    ret_member->present = truth_of(rows, row, 8);
}

static void beat_send(struct members *members)
{
    struct pg_number incarnation;
    struct pg_param params[] = {pg_text(members->self.name),
                                pg_number(&incarnation, members->base.incarnation)};

    pg_send(members->connection,
            "UPDATE orrery.server SET beat = beat + 1 WHERE name = $1 AND incarnation = $2::bigint"
            " RETURNING beat",
            params, ARRAY_LEN(params));
    pg_send(members->connection,
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,"
            " coalesce(member, 0), term, " PG_LOCK_IS_HELD(
                PG_LOCK_OWNER) ", sequence, (SELECT count(*) FROM orrery.loss) FROM orrery.owner",
            NULL, 0);
    pg_send(members->connection,
            "SELECT name, address, endpoint, region, release, incarnation, beat, "
            "draining, " PG_LOCK_IS_HELD(
                PG_LOCK_MEMBER
                ", s.incarnation & 2147483647") " FROM orrery.server s ORDER BY name",
            NULL, 0);
}

/* A loss that was written down is not to be found again by the next who claims. */
static void progress_note(struct members *members, uint64_t sequence, uint64_t losses)
{
    uint64_t acknowledged = sequence ? sequence - 1 : 0;

    if (losses > members->losses)
        members->acknowledged = acknowledged;
    members->losses = MAX(losses, members->losses);
    members->acknowledged = MAX(acknowledged, members->acknowledged);
}

static bool members_beat(struct engine_members *base, struct engine_membership *ret_membership,
                         struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct members *members = members_of(base);
    int64_t sent_ms, sent_wall_ms, trip_ms;
    const PGresult *owner, *rows;

    if (!connection_ensure(members, err))
        return false;
    sent_ms = clock_monotonic_ms();
    sent_wall_ms = clock_wall_ms();
    beat_send(members);
    if (!pg_run(members->connection, BEAT_MS_MAX, &answer, err)) {
        pg_connection_close(TAKE(members->connection));
        return false;
    }
    if (PQntuples(answer.results[0]) != 1)
        return error_set(err, ERROR_STORE_IN_USE, "this start of server \"%s\" is known no more",
                         members->self.name);
    owner = answer.results[1];
    rows = answer.results[2];
    if (PQntuples(owner) != 1)
        return error_set(err, ERROR_STORE_CORRUPT, "the table orrery.owner has not one row");
    trip_ms = clock_monotonic_ms() - sent_ms;
    progress_note(members, pg_field_uint64(owner, 0, 4), pg_field_uint64(owner, 0, 5));
    *ret_membership = (struct engine_membership){
        .owner = pg_field_uint64(owner, 0, 1),
        .term = pg_field_uint64(owner, 0, 2),
        .held = truth_of(owner, 0, 3),
        .offset_ms = sent_wall_ms + trip_ms / 2 - (int64_t)pg_field_uint64(owner, 0, 0),
        .trip_ms = (trip_ms + 1) / 2,
        .count = MIN((size_t)PQntuples(rows), (size_t)ENGINE_MEMBERS_MAX),
    };
    for (size_t i = 0; i < ret_membership->count; i++)
        member_read(rows, (int)i, &ret_membership->list[i]);
    return true;
}

static bool is_awake(const struct members *members)
{
    return members->connection && !pg_connection_is_broken(members->connection);
}

static bool members_wait(struct engine_members *base, int wake_fd, int64_t ms_max)
{
    struct members *members = members_of(base);
    int64_t deadline_ms = clock_monotonic_ms() + ms_max;
    struct pollfd wake = {.fd = wake_fd, .events = POLLIN};

    if (!is_awake(members)) {
        (void)poll(&wake, 1, (int)MIN(ms_max, (int64_t)INT_MAX));
        return false;
    }
    while (!pg_connection_was_notified(members->connection))
        if (!pg_connection_wait(members->connection, wake_fd, deadline_ms))
            return false;
        else if (!pg_connection_check(members->connection))
            return true;
    return true;
}

/* --- Owning ---------------------------------------------------------------------------------- */

/* In the transaction of the claim: whoever claims, and whatever becomes of it then, it is known. */
static void loss_send(struct members *members)
{
    struct pg_number numbers[3];
    struct pg_param params[] = {
        pg_number(&numbers[0], members->acknowledged), pg_number(&numbers[1], members->losses),
        pg_number(&numbers[2], pg_connection_server(members->connection)->timeline)};

    pg_send(members->connection,
            "INSERT INTO orrery.loss (acknowledged, found, timeline)"
            " SELECT $1::bigint, sequence, $3::bigint FROM orrery.owner WHERE sequence < $1::bigint"
            " AND (SELECT count(*) FROM orrery.loss) <= $2::bigint",
            params, ARRAY_LEN(params));
}

static bool members_claim(struct engine_members *base, const struct engine_membership *seen,
                          struct engine_claim *ret_claim, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct members *members = members_of(base);
    const struct engine_member *before = engine_membership_find(seen, seen->owner);
    struct pg_number numbers[4];
    struct pg_param params[] = {
        pg_number(&numbers[0], base->incarnation), pg_number(&numbers[1], seen->owner),
        pg_number(&numbers[2], seen->term), pg_number(&numbers[3], before ? before->beat : 0)};
    const PGresult *claimed;

    if (!connection_ensure(members, err) ||
        (seen->owner && !pg_schema_predecessor_end(members->connection, err)))
        return false;
    decision_begin(members);
    loss_send(members);
    /* Whoever beats at this very moment is waited for, and then lives. */
    pg_send(members->connection,
            "WITH lives AS (SELECT beat FROM orrery.server WHERE incarnation = $2::bigint"
            "  FOR UPDATE)"
            " UPDATE orrery.owner SET epoch = epoch + 1, term = term + 1, member = $1::bigint"
            " WHERE coalesce(member, 0) = $2::bigint AND term = $3::bigint"
            " AND NOT EXISTS (SELECT FROM lives WHERE beat <> $4::bigint)"
            " AND EXISTS (SELECT FROM orrery.server WHERE incarnation = $1::bigint)"
            " RETURNING term",
            params, ARRAY_LEN(params));
    if (!decision_end(members, &answer, err))
        return false;
    claimed = answer.results[DECISION_FIRST + 1];
    if (PQntuples(claimed) != 1)
        return error_set(err, ERROR_CONFLICT, "the owner of the root lives, or is another");
    *ret_claim = (struct engine_claim){base->incarnation, pg_field_uint64(claimed, 0, 0)};
    return true;
}

static bool members_release(struct engine_members *base, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    struct members *members = members_of(base);
    struct pg_number number;
    struct pg_param param = pg_number(&number, base->incarnation);

    if (!connection_ensure(members, err))
        return false;
    decision_begin(members);
    pg_send(members->connection,
            "UPDATE orrery.owner SET epoch = epoch + 1, member = NULL WHERE member = $1::bigint",
            &param, 1);
    return decision_end(members, &answer, err);
}

/* --- What an operator says ------------------------------------------------------------------- */

static bool changed(const struct pg_answer *answer, struct slice name, struct error *err)
{
    return PQntuples(answer->results[DECISION_FIRST]) == 1 ||
           error_set(err, ERROR_NOT_FOUND, "there is no server \"%.*s\"", SLICE_ARG(name));
}

static bool members_drain(struct engine_members *base, struct slice name, bool on,
                          struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    CLEANUP(memory_free) char *text = slice_to_text(name);
    struct members *members = members_of(base);
    struct pg_param params[] = {pg_text(text), pg_text(on ? "t" : "f")};

    if (!connection_ensure(members, err))
        return false;
    decision_begin(members);
    pg_send(members->connection,
            "UPDATE orrery.server SET draining = $2::boolean WHERE name = $1 RETURNING 1", params,
            ARRAY_LEN(params));
    return decision_end(members, &answer, err) && changed(&answer, name, err);
}

static bool members_forget(struct engine_members *base, struct slice name, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0}, there = {0};
    CLEANUP(memory_free) char *text = slice_to_text(name);
    struct members *members = members_of(base);
    struct pg_param param = pg_text(text);

    if (!connection_ensure(members, err) ||
        !pg_query(members->connection,
                  "SELECT 1 FROM orrery.server s WHERE name = $1 AND " PG_LOCK_IS_HELD(
                      PG_LOCK_MEMBER ", s.incarnation & 2147483647"),
                  &param, 1, &there, err))
        return false;
    if (PQntuples(there.results[0]) > 0)
        return error_set(err, ERROR_BAD_REQUEST,
                         "server \"%.*s\" is not gone: stop it first, or drain it",
                         SLICE_ARG(name));
    decision_begin(members);
    pg_send(members->connection, "DELETE FROM orrery.server WHERE name = $1 RETURNING 1", &param,
            1);
    return decision_end(members, &answer, err) && changed(&answer, name, err);
}

static bool members_get(struct engine_members *base, uint32_t partition, struct slice key,
                        struct arena *arena, struct engine_value *ret_value, struct error *err)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    CLEANUP(buf_done) struct buf stored;
    struct members *members = members_of(base);
    struct pg_param param;
    const PGresult *rows;

    buf_init(&stored, BUF_DEFAULT_MAX);
    pg_key_store(key, &stored);
    param = pg_bytes(buf_slice(&stored));
    if (!connection_ensure(members, err))
        return false;
    pg_send_statement(members->connection, PG_GET, partition, &param, 1);
    if (!pg_run(members->connection, members->settings.statement_ms_max, &answer, err))
        return false;
    rows = pg_answer_last(&answer);
    *ret_value = PQntuples(rows) == 0
                     ? (struct engine_value){.found = ENGINE_ABSENT}
                     : (struct engine_value){ENGINE_FOUND, arena_copy(arena, pg_field(rows, 0, 0))};
    return true;
}

const struct engine_members_driver pg_members = {
    .open = members_open,
    .close = members_close,
    .beat = members_beat,
    .wait = members_wait,
    .claim = members_claim,
    .release = members_release,
    .drain = members_drain,
    .forget = members_forget,
    .get = members_get,
};
