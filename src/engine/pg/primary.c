/* Which server is the node's primary, and what its standby has.
 *
 * A URL may name several hosts: a primary and those that can take its place. PostgreSQL itself, or
 * the operator's tool, decides who is promoted; every promotion begins a timeline of a higher
 * number. An old primary that comes back, or was only cut off, still takes reads and writes, and
 * libpq would choose it if it stands first. So hosts are looked at here, each by a thread of its
 * own, since one that does not answer must not keep us from the others, and three things hold:
 *
 *     newest   of the primaries the one on the highest timeline is used, never one below the
 *              highest that was ever seen
 *     one      the node has one timeline at a time. The owner moves to a new one (owner.c) when its
 *              session is there and has found out what became of its last write. From then on
 *              connections of the old one give no answer: a transaction that took its snapshot
 *              from the old primary and its commit from the new one would overwrite what it never
 *              saw. They are asked once before and once behind each question.
 *     proved   nothing is shown that only the primary has. PostgreSQL keeps a commit invisible
 *              while it waits for the standby, but two ways lead around that: a primary that
 *              restarts shows all it has, and so does a commit whose wait was cancelled. So where
 *              commits wait for a standby, a connection is read from only when a *beat*, a small
 *              commit of our own, has been acknowledged that was sent after the connection was
 *              opened and after the last such doubt: later WAL on the standby implies earlier WAL.
 *
 * A beat may hang for as long as the standby is away. It has a connection and a thread of its own,
 * and it is not given up: each one given up would leave a session that waits in the server.
 *
 * The timeline is that of the WAL being written, from the name of its file: right at once, while
 * the control file tells the old one until the first checkpoint. */
#include "engine/pg/pg_private.h"

enum {
    LOOK_EVERY_MS = 500, /* at each host */
    LOOK_MS_MAX = 1000,  /* a host that does not answer for so long is away */
    GRACE_MS = 300,      /* for the others, once a primary was found */
    BEAT_PAUSE_MS = 100, /* after one that failed */
    PROVE_LOOK_MS = 10,
};

/* --- Hosts ----------------------------------------------------------------------------------- */

static const char *option_value(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *option = options; option->keyword; option++)
        if (strcmp(option->keyword, keyword) == 0)
            return option->val;
    return NULL;
}

/* The place-th of a list separated by commas; the last of a shorter list if it is a single one. */
static char *list_at(const char *list, size_t place)
{
    struct slice rest = list ? slice_of_text(list) : SLICE_NONE, item;

    if (!list || !*list)
        return NULL;
    for (size_t i = 0;; i++) {
        bool more = slice_split(rest, ',', &item, &rest);

        if (!more)
            item = rest;
        if (i == place || (!more && i == 0))
            return item.len ? slice_to_text(item) : NULL;
        if (!more)
            return NULL;
    }
}

static size_t list_count(const char *list)
{
    size_t count = 1;

    if (!list || !*list)
        return 0;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

static void host_done(struct pg_host *host)
{
    memory_free(host->name);
    memory_free(host->address);
    memory_free(host->port);
    *host = (struct pg_host){0};
}

static bool hosts_parse(struct pg_primary *primary, struct error *err)
{
    char *reason = NULL, line[160];
    PQconninfoOption *options = PQconninfoParse(primary->settings.url, &reason);
    const char *hosts, *addresses, *ports;

    if (!options) {
        pg_url_scrub(slice_of_text(primary->settings.url), reason ? reason : "out of memory", line,
                     sizeof line);
        PQfreemem(reason);
        return error_set(err, ERROR_STORE_URL, "node url \"%.*s\": %s",
                         SLICE_ARG(primary->settings.name), line);
    }
    hosts = option_value(options, "host");
    addresses = option_value(options, "hostaddr");
    ports = option_value(options, "port");
    primary->count = MAX(MAX(list_count(hosts), list_count(addresses)), (size_t)1);
    for (size_t i = 0; i < MIN(primary->count, (size_t)PG_HOSTS_MAX); i++)
        primary->places[i] = (struct pg_place){
            .primary = primary,
            .host = {list_at(hosts, i), list_at(addresses, i), list_at(ports, i)},
        };
    PQconninfoFree(options);
    if (primary->count <= PG_HOSTS_MAX)
        return true;
    primary->count = PG_HOSTS_MAX;
    return error_set(err, ERROR_STORE_URL, "node url \"%.*s\": more than %d hosts",
                     SLICE_ARG(primary->settings.name), PG_HOSTS_MAX);
}

/* A standby is one host of them. */
static bool hosts_keep(struct pg_primary *primary, struct error *err)
{
    size_t kept = primary->settings.standby - 1;

    if (kept >= primary->count)
        return error_set(err, ERROR_STORE_URL, "node url \"%.*s\": there is no host %zu",
                         SLICE_ARG(primary->settings.name), kept + 1);
    for (size_t i = 0; i < primary->count; i++)
        if (i != kept)
            host_done(&primary->places[i].host);
    primary->places[0].host = primary->places[kept].host;
    primary->count = 1;
    return true;
}

static const char *place_name(const struct pg_place *place)
{
    return place->host.name      ? place->host.name
           : place->host.address ? place->host.address
                                 : "the server";
}

/* --- Looking --------------------------------------------------------------------------------- */

bool pg_primary_meet(struct pg_primary *primary, const struct pg_server *server, struct error *err)
{
    uint64_t system = 0;
    uint32_t seen = (uint32_t)atomic_load(&primary->timeline_seen);

    if (!atomic_compare_exchange_strong(&primary->system, &system, server->system) &&
        system != server->system)
        return error_set(err, ERROR_STORE_FOREIGN,
                         "it is a copy of database cluster %llu, and the node is of %llu",
                         (unsigned long long)server->system, (unsigned long long)system);
    while (!server->standby && server->timeline > seen &&
           !atomic_compare_exchange_weak(&primary->timeline_seen, &(uint_fast32_t){seen},
                                         server->timeline))
        seen = (uint32_t)atomic_load(&primary->timeline_seen);
    return true;
}

static void place_note(struct pg_place *place, uint64_t asked, const struct pg_server *server,
                       const struct error *err)
{
    struct pg_primary *primary = place->primary;

    WITH_LOCK (&primary->lock) {
        place->looked = asked;
        place->timeline = server ? server->timeline : 0;
        place->state = !server           ? PG_PLACE_AWAY
                       : server->standby ? PG_PLACE_STANDBY
                                         : PG_PLACE_PRIMARY;
        if (!server)
            place->why = *err;
        condition_broadcast(&primary->changed);
    }
}

static void place_look(struct pg_place *place, struct pg_connection **connection, uint64_t asked)
{
    struct pg_primary *primary = place->primary;
    int64_t deadline_ms = clock_monotonic_ms() + LOOK_MS_MAX;
    bool seen = *connection && pg_connection_look(*connection, LOOK_MS_MAX, &(struct error){0});
    struct error err = {0};

    if (!seen) {
        pg_connection_close(TAKE(*connection));
        seen =
            pg_connection_open_at(&primary->settings, &place->host, deadline_ms, connection, &err);
    }
    if (seen && !pg_primary_meet(primary, pg_connection_server(*connection), &err)) {
        pg_connection_close(TAKE(*connection));
        seen = false;
    }
    place_note(place, asked, seen ? pg_connection_server(*connection) : NULL, &err);
    if (pg_primary_is_replaced(primary) && primary->lost.lost)
        primary->lost.lost(primary->lost.context);
}

static void place_run(void *context)
{
    struct pg_place *place = context;
    struct pg_primary *primary = place->primary;
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;
    uint64_t asked = 0;
    bool stopping = false;

    while (!stopping) {
        place_look(place, &connection, asked);
        WITH_LOCK (&primary->lock) {
            int64_t until_ms = clock_monotonic_ms() + LOOK_EVERY_MS;

            while (!primary->stopping && primary->asked == asked &&
                   condition_wait_until(&primary->changed, &primary->lock, until_ms))
                ;
            asked = primary->asked;
            stopping = primary->stopping;
        }
    }
}

/* --- Beats ----------------------------------------------------------------------------------- */

/* A beat on its way: who sends it, and over which connection. */
struct beat_sending {
    const struct pg_primary *primary;
    const struct pg_connection *connection;
};

static bool beat_may(void *context)
{
    const struct beat_sending *sending = context;

    return pg_primary_has(sending->primary, sending->connection);
}

/* Where standbys are read from each has its own number, which is never sent to a primary that has
 * been left (beats.h). False: it has been. */
static bool beat_queue(struct pg_primary *primary, struct pg_connection *connection,
                       int64_t sent_ms)
{
    struct beat_sending sending = {primary, connection};
    struct pg_number number;
    struct pg_param param;
    uint64_t beat;

    if (primary->settings.follower) {
        pg_send(connection, "SELECT pg_logical_emit_message(true, 'orrery', '')", NULL, 0);
        return true;
    }
    if (!primary->numbered) {
        pg_send(connection, "UPDATE orrery.beat SET beat = beat + 1, at = clock_timestamp()", NULL,
                0);
        return true;
    }
    beat = engine_beats_next(primary->numbered, sent_ms, beat_may, &sending);
    if (!beat)
        return false;
    param = pg_number(&number, beat);
    pg_send(connection, "UPDATE orrery.beat SET beat = $1::bigint, at = clock_timestamp()", &param,
            1);
    return true;
}

static bool beat_send(struct pg_primary *primary, struct pg_connection **connection)
{
    CLEANUP(pg_answer_done) struct pg_answer answer = {0};
    int64_t sent_ms = clock_monotonic_ms();
    struct error err;

    primary->beat_timeline = 0; /* until it is sent it waits for whom there is */
    if (*connection && !pg_primary_has(primary, *connection))
        pg_connection_close(TAKE(*connection));
    if (!*connection &&
        !pg_connection_open(&primary->beat_settings, sent_ms + LOOK_MS_MAX, connection, &err))
        return false;
    sent_ms = clock_monotonic_ms();
    primary->beat_timeline = pg_connection_server(*connection)->timeline;
    if (!beat_queue(primary, *connection, sent_ms))
        return false;
    if (pg_run(*connection, INT32_MAX, &answer, &err) && !pg_connection_was_alone(*connection)) {
        atomic_store(&primary->beat_sent_ms, sent_ms);
        return true;
    }
    if (pg_connection_was_alone(*connection))
        pg_primary_suspect(primary);
    pg_connection_close(TAKE(*connection));
    return false;
}

static void beat_run(void *context)
{
    struct pg_primary *primary = context;
    CLEANUP(pg_connection_close) struct pg_connection *connection = NULL;

    for (;;) {
        bool beaten;

        WITH_LOCK (&primary->lock) {
            int64_t due_ms = primary->numbered
                                 ? clock_monotonic_ms() + engine_beats_every_ms(primary->numbered)
                                 : INT64_MAX;

            while (!primary->stopping && !primary->beat_wanted && clock_monotonic_ms() < due_ms) {
                if (primary->numbered)
                    condition_wait_until(&primary->changed, &primary->lock, due_ms);
                else
                    condition_wait(&primary->changed, &primary->lock);
            }
            if (primary->stopping)
                return;
            primary->beat_wanted = false;
        }
        beaten = beat_send(primary, &connection);
        WITH_LOCK (&primary->lock) {
            condition_broadcast(&primary->changed);
            if (!beaten && !primary->stopping)
                condition_wait_until(&primary->changed, &primary->lock,
                                     clock_monotonic_ms() + BEAT_PAUSE_MS);
        }
    }
}

void pg_primary_suspect(struct pg_primary *primary)
{
    atomic_store(&primary->suspect_ms, clock_monotonic_ms());
}

bool pg_primary_has(const struct pg_primary *primary, const struct pg_connection *connection)
{
    return pg_connection_server(connection)->timeline ==
           atomic_load_explicit(&primary->timeline, memory_order_acquire);
}

static bool is_proved(const struct pg_primary *primary, const struct pg_connection *connection)
{
    int64_t since_ms =
        MAX(pg_connection_opened_ms(connection),
            (int64_t)atomic_load_explicit(&primary->suspect_ms, memory_order_relaxed));

    return !atomic_load_explicit(&primary->replicated, memory_order_relaxed) ||
           atomic_load_explicit(&primary->beat_sent_ms, memory_order_relaxed) > since_ms;
}

static bool replaced(struct error *err)
{
    return error_set(err, ERROR_STORE_UNAVAILABLE,
                     "the primary was replaced; what it would say does not count");
}

bool pg_primary_prove(struct pg_primary *primary, const struct pg_settings *settings,
                      const struct pg_connection *connection, int64_t deadline_ms,
                      struct error *err)
{
    while (!is_proved(primary, connection)) {
        if (!pg_primary_has(primary, connection))
            return replaced(err);
        if (clock_monotonic_ms() >= deadline_ms || !pg_may_wait(settings, PROVE_LOOK_MS))
            return error_set(err, ERROR_STORE_UNAVAILABLE,
                             "no standby acknowledges: what the primary has may be there alone");
        WITH_LOCK (&primary->lock) {
            if (!primary->beat_wanted) {
                primary->beat_wanted = true;
                condition_broadcast(&primary->changed);
            }
            condition_wait_until(&primary->changed, &primary->lock,
                                 clock_monotonic_ms() + PROVE_LOOK_MS);
        }
    }
    return pg_primary_has(primary, connection) || replaced(err);
}

/* --- Finding and moving ---------------------------------------------------------------------- */

bool pg_primary_is_replaced(const struct pg_primary *primary)
{
    uint32_t timeline = (uint32_t)atomic_load(&primary->timeline);

    return timeline && atomic_load(&primary->timeline_seen) > timeline;
}

bool pg_primary_fails_over(const struct pg_primary *primary)
{
    return primary->count > 1 || atomic_load_explicit(&primary->replicated, memory_order_relaxed);
}

/* The best of those looked at since; NULL: none. all: every one of them has been. */
static struct pg_place *place_best(struct pg_primary *primary, uint64_t asked, bool *ret_all)
{
    struct pg_place *best = NULL;

    assert(mutex_is_held(&primary->lock));
    *ret_all = true;
    for (size_t i = 0; i < primary->count; i++) {
        struct pg_place *place = &primary->places[i];

        *ret_all = *ret_all && place->looked >= asked;
        if (place->looked >= asked && place->state == PG_PLACE_PRIMARY &&
            place->timeline >= primary->timeline_seen &&
            (!best || place->timeline > best->timeline))
            best = place;
    }
    return best;
}

static bool none_found(struct pg_primary *primary, struct error *err)
{
    char said[ERROR_MESSAGE_SIZE] = "";
    size_t len = 0;

    for (size_t i = 0; i < primary->count && len + 1 < sizeof said; i++) {
        const struct pg_place *place = &primary->places[i];
        int more;

        if (place->state == PG_PLACE_PRIMARY)
            more =
                snprintf(said + len, sizeof said - len, "%s%s was the primary before (timeline %u)",
                         i ? "; " : "", place_name(place), place->timeline);
        else if (place->state == PG_PLACE_STANDBY)
            more = snprintf(said + len, sizeof said - len, "%s%s is a standby", i ? "; " : "",
                            place_name(place));
        else
            more = snprintf(said + len, sizeof said - len, "%s%s: %.60s", i ? "; " : "",
                            place_name(place), place->why.message);
        len += (size_t)MAX(more, 0);
    }
    return error_set(err, ERROR_STORE_UNAVAILABLE, "no host is the primary: %s", said);
}

bool pg_primary_find(struct pg_primary *primary, const struct pg_settings *settings,
                     int64_t deadline_ms, size_t *ret_place, struct error *err)
{
    int64_t grace_ms = clock_monotonic_ms() + GRACE_MS;
    uint64_t asked;

    *ret_place = 0;
    if (primary->count == 1)
        return true;
    WITH_LOCK (&primary->lock) {
        asked = ++primary->asked;
        condition_broadcast(&primary->changed);
        for (;;) {
            int64_t now_ms = clock_monotonic_ms();
            bool all;
            const struct pg_place *best = place_best(primary, asked, &all);

            if (best && (all || now_ms >= grace_ms)) {
                *ret_place = (size_t)(best - primary->places);
                return true;
            }
            if (all || now_ms >= deadline_ms || !pg_may_wait(settings, 0))
                return none_found(primary, err);
            condition_wait_until(&primary->changed, &primary->lock,
                                 MIN(deadline_ms, now_ms + PROVE_LOOK_MS));
        }
    }
    return false;
}

void pg_primary_move(struct pg_primary *primary, size_t place, const struct pg_server *server)
{
    uint32_t before = (uint32_t)atomic_load(&primary->timeline);
    bool was_replicated = atomic_exchange(&primary->replicated, server->replicated);

    assert(!server->standby && server->timeline >= before);
    atomic_store(&primary->place, place);
    atomic_store_explicit(&primary->timeline, server->timeline, memory_order_release);
    if (primary->numbered && before != server->timeline)
        engine_beats_move(primary->numbered, clock_monotonic_ms());
    if (before && before != server->timeline)
        log_event(primary->settings.log, LOG_WARNING, "node has another primary",
                  LOG_SLICE("node", primary->settings.name),
                  LOG_TEXT("host", place_name(&primary->places[place])),
                  LOG_INT("timeline", server->timeline), LOG_INT("before", before));
    if (was_replicated && !server->replicated)
        log_event(primary->settings.log, LOG_WARNING,
                  "node is not replicated: commits wait for no standby",
                  LOG_SLICE("node", primary->settings.name));
}

/* --- Beginning and end ----------------------------------------------------------------------- */

static bool let_go_stopping(void *context, int64_t ms UNUSED)
{
    const struct pg_primary *primary = context;

    return atomic_load_explicit(&primary->stopped, memory_order_relaxed);
}

/* A beat that hangs on a primary that was replaced will not be answered any more. */
static bool let_go_beat(void *context, int64_t ms)
{
    const struct pg_primary *primary = context;

    return let_go_stopping(context, ms) ||
           (primary->beat_timeline && primary->beat_timeline != atomic_load(&primary->timeline));
}

static struct pg_settings settings_copy(struct pg_primary *primary,
                                        const struct pg_settings *settings,
                                        bool (*let_go)(void *context, int64_t ms))
{
    return (struct pg_settings){
        .url = settings->url,
        .name = settings->name,
        .replicated = settings->replicated,
        .standby = settings->standby,
        .follower = settings->follower,
        .primary = primary,
        .connect_ms_max = settings->connect_ms_max,
        .snapshot_ms_max = settings->snapshot_ms_max,
        .statement_ms_max = settings->statement_ms_max,
        .connections_max = settings->connections_max,
        .clock = settings->clock,
        .log = settings->log,
        .watch = {.let_go = let_go, .context = primary},
    };
}

bool pg_primary_init(struct pg_primary *primary, const struct pg_settings *settings,
                     struct error *err)
{
    *primary = (struct pg_primary){0};
    primary->settings = settings_copy(primary, settings, let_go_stopping);
    primary->beat_settings = settings_copy(primary, settings, let_go_beat);
    primary->lost = settings->watch;
    primary->numbered = settings->beats;
    mutex_init(&primary->lock);
    condition_init(&primary->changed);
    if (!hosts_parse(primary, err) || (settings->standby && !hosts_keep(primary, err))) {
        pg_primary_done(primary);
        return false;
    }
    primary->asked = 1;
    primary->looks = primary->count > 1;
    for (size_t i = 0; primary->looks && i < primary->count; i++)
        thread_start(&primary->places[i].thread, "pg host", place_run, &primary->places[i]);
    return true;
}

bool pg_primary_host(struct pg_primary *primary, const struct pg_settings *settings, uint32_t nth,
                     struct buf *to)
{
    struct error ignored;
    bool found;

    primary->settings = settings_copy(primary, settings, NULL);
    found = hosts_parse(primary, &ignored) && primary->count > 1 && nth <= primary->count;
    if (found) {
        const struct pg_place *place = &primary->places[nth - 1];

        buf_append_text(to, place_name(place));
        if (place->host.port) {
            BUF_APPEND(to, ":");
            buf_append_text(to, place->host.port);
        }
    }
    for (size_t i = 0; i < primary->count; i++)
        host_done(&primary->places[i].host);
    return found;
}

void pg_primary_beat(struct pg_primary *primary)
{
    primary->beats = true;
    thread_start(&primary->beat_thread, "pg beat", beat_run, primary);
}

void pg_primary_done(struct pg_primary *primary)
{
    atomic_store(&primary->stopped, true);
    WITH_LOCK (&primary->lock) {
        primary->stopping = true;
        condition_broadcast(&primary->changed);
    }
    if (primary->beats)
        thread_join(&primary->beat_thread);
    for (size_t i = 0; i < primary->count; i++) {
        if (primary->looks)
            thread_join(&primary->places[i].thread);
        host_done(&primary->places[i].host);
    }
    condition_done(&primary->changed);
    mutex_done(&primary->lock);
}
