#include "front/gremlin/command/client.h"

#include "base/clock.h"
#include "base/memory.h"

#include <openssl/crypto.h>
#include <wslay/wslay.h>

enum {
    LOOP_BYTES_MAX = 64 * 1024, /* a longer message is read on a worker */
    FAILURES_MAX = 5,
    SESSIONS_LOOK_MS = 1000,
};

/* --- Queues ------------------------------------------------------------------------------------
 */

static void queue_add(struct gremlin_queue *queue, struct gremlin_call *call)
{
    call->next = NULL;
    if (queue->last)
        queue->last->next = call;
    else
        queue->first = call;
    queue->last = call;
}

static struct gremlin_call *queue_take(struct gremlin_queue *queue)
{
    struct gremlin_call *call = queue->first;

    if (call) {
        queue->first = call->next;
        if (!queue->first)
            queue->last = NULL;
    }
    return call;
}

/* --- Running -----------------------------------------------------------------------------------
 */

static void client_go_on(struct gremlin_client *client)
{
    while (client->ready.first && client->running < client->gremlin->options.running_max) {
        struct gremlin_call *call = queue_take(&client->ready);

        call->running = true;
        client->running++;
        gremlin_call_run(call);
    }
}

/* --- Sessions ----------------------------------------------------------------------------------
 */

static struct gremlin_session *session_find(struct gremlin_client *client, struct slice id)
{
    struct gremlin_session *session = client->sessions;

    while (session && (session->over || !slice_equal(gremlin_session_id(session), id)))
        session = session->next;
    return session;
}

static void session_remove(struct gremlin_client *client, struct gremlin_session *session)
{
    struct gremlin_session **at = &client->sessions;

    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    gremlin_session_free(session);
}

/* Those that nobody has used for long. */
static void sessions_look(void *context)
{
    struct gremlin_client *client = context;
    int64_t now_ms = clock_monotonic_ms();
    struct gremlin_session *session = client->sessions, *next;

    for (; session; session = next) {
        next = session->next;
        if (!session->busy && now_ms - session->used_ms >= client->gremlin->options.session_ms)
            session_remove(client, session);
    }
    net_timer_set(client->timer, client->sessions ? now_ms + SESSIONS_LOOK_MS : NET_TIMER_NEVER);
}

static bool session_open(struct gremlin_client *client, struct slice id,
                         struct gremlin_session **ret_session, struct error *err)
{
    struct gremlin_session *session = session_find(client, id);

    if (!session) {
        if (!gremlin_session_new(client->gremlin, id, &session, err))
            return false;
        session->next = client->sessions;
        client->sessions = session;
        if (!client->timer)
            client->timer = net_timer_new(client->loop, sessions_look, client);
        net_timer_set(client->timer, clock_monotonic_ms() + SESSIONS_LOOK_MS);
    }
    *ret_session = session;
    return true;
}

/* The next of the session's requests, if there is one. */
static void session_go_on(struct gremlin_client *client, struct gremlin_session *session)
{
    struct gremlin_queue queue = {session->first, session->last};
    struct gremlin_call *call;

    session->busy = false;
    session->used_ms = clock_monotonic_ms();
    call = queue_take(&queue);
    session->first = queue.first;
    session->last = queue.last;
    if (!call) {
        if (session->over || !client->connection)
            session_remove(client, session);
        return;
    }
    session->busy = true;
    if (call->asked.op == GREMLIN_OP_CLOSE) {
        session->over = true;
        gremlin_call_answer(call, 204);
    } else {
        queue_add(&client->ready, call);
    }
}

static void session_take(struct gremlin_client *client, struct gremlin_call *call)
{
    struct gremlin_queue queue;
    struct error err;

    if (call->asked.op == GREMLIN_OP_CLOSE && !session_find(client, call->asked.session)) {
        gremlin_call_answer(call, 204);
        return;
    }
    if (!session_open(client, call->asked.session, &call->session, &err)) {
        gremlin_call_refuse(call, &err, 0);
        return;
    }
    queue = (struct gremlin_queue){call->session->first, call->session->last};
    queue_add(&queue, call);
    call->session->first = queue.first;
    call->session->last = queue.last;
    if (!call->session->busy)
        session_go_on(client, call->session);
}

/* --- Who it is ---------------------------------------------------------------------------------
 */

/* A graph of its own choosing is named by the alias as "D.G". */
static bool alias_names_graph(const struct gremlin_call *call)
{
    return memchr(call->asked.alias.data ? (const char *)call->asked.alias.data : "", '.',
                  call->asked.alias.len) != NULL;
}

/* Bytecode is what the service does not take: its clients send scripts. */
static bool is_of_tinkerpop(const struct gremlin_client *client, const struct gremlin_call *call)
{
    return !client->served && call->asked.op == GREMLIN_OP_BYTECODE;
}

static void call_ready(struct gremlin_client *client, struct gremlin_call *call)
{
    if (call->asked.session.data)
        session_take(client, call);
    else
        queue_add(&client->ready, call);
    client_go_on(client);
}

static void meter_choose(struct gremlin_client *client)
{
    const struct front_services *services = &client->gremlin->options.services;
    struct account *account;
    struct error err;

    if (!services->owners ||
        !catalogue_account_open(services->catalogue, slice_of_text(client->identity.account),
                                &account, &err))
        return;
    client->meter =
        net_owner_memory(net_owners_find(services->owners, account_info(account)->number));
    gremlin_connection_bill(client->connection, client->meter);
    account_unref(account);
}

static void client_know(struct gremlin_client *client)
{
    struct gremlin_call *call;

    client->failures = 0;
    client->challenged = false;
    meter_choose(client);
    while ((call = queue_take(&client->waiting)))
        call_ready(client, call);
}

static void client_refuse(struct gremlin_client *client, const struct error *err)
{
    struct gremlin_call *call;

    client->challenged = false;
    while ((call = queue_take(&client->waiting)))
        gremlin_call_refuse(call, err, 401);
    if (++client->failures >= FAILURES_MAX)
        gremlin_connection_close(client->connection, WSLAY_CODE_POLICY_VIOLATION,
                                 SLICE("too many attempts to authenticate"));
}

/* An answer of its own there is none but to an attempt that nobody waits for. */
static void authenticate(struct gremlin_client *client, struct gremlin_call *call)
{
    struct gremlin_credentials credentials;
    struct gremlin_identity identity;
    struct error err;
    bool good, awaited = client->waiting.first != NULL;

    gremlin_tally(&client->gremlin->authentications, 1);
    good = gremlin_credentials_sasl(call->asked.sasl, call->arena, &credentials, &err) &&
           gremlin_identity_prove(client->gremlin, client->account, &credentials, call->arena,
                                  &identity, &err);
    if (good) {
        client->identity = identity;
        OPENSSL_cleanse(&identity, sizeof identity);
        client_know(client);
        gremlin_client_ended(call);
        return;
    }
    if (!awaited)
        gremlin_call_refuse(call, &err, 401);
    client_refuse(client, &err);
    if (awaited) {
        gremlin_tally(&client->gremlin->failed, 1);
        gremlin_client_ended(call);
    }
}

static void stranger_take(struct gremlin_client *client, struct gremlin_call *call)
{
    if (client->local && (alias_names_graph(call) || is_of_tinkerpop(client, call))) {
        client->identity.kind = GREMLIN_LOCAL;
        client_know(client);
        call_ready(client, call);
        return;
    }
    queue_add(&client->waiting, call);
    if (client->challenged)
        return;
    client->challenged = true;
    gremlin_call_challenge(call);
}

/* --- Messages ----------------------------------------------------------------------------------
 */

static void call_dispatch(struct gremlin_client *client, struct gremlin_call *call)
{
    if (call->refused)
        gremlin_call_refuse(call, &call->error, call->code);
    else if (call->asked.op == GREMLIN_OP_AUTHENTICATION)
        authenticate(client, call);
    else if (client->identity.kind == GREMLIN_STRANGER)
        stranger_take(client, call);
    else
        call_ready(client, call);
}

static void read_run(struct net_work *work)
{
    gremlin_call_read(CONTAINER_OF(work, struct gremlin_call, work));
}

static void client_free(struct gremlin_client *client)
{
    while (client->sessions)
        session_remove(client, client->sessions);
    net_timer_free(client->timer);
    gremlin_channel_unref(client->channel);
    OPENSSL_cleanse(&client->identity, sizeof client->identity);
    memory_free(client);
}

/* For when a client that has gone has nothing under way any more. */
static void client_look(struct gremlin_client *client)
{
    if (!client->connection && !client->count)
        client_free(client);
}

static void call_drop(struct gremlin_client *client, struct gremlin_call *call)
{
    client->count--;
    gremlin_call_free(call);
}

static void nothing(void *context UNUSED)
{
}

static void read_done(struct net_work *work, struct net_loop *loop UNUSED)
{
    struct gremlin_call *call = CONTAINER_OF(work, struct gremlin_call, work);
    struct gremlin_client *client = call->client;

    client->reading = NULL;
    if (!client->connection) {
        call_drop(client, call);
        client_look(client);
        return;
    }
    call_dispatch(client, call);
    gremlin_connection_resume(client->connection);
    /* a message of nothing: the connection is looked after behind it */
    gremlin_channel_end(client->channel, &(struct gremlin_outgoing){0}, nothing, NULL);
}

static void client_message(void *session, struct gremlin_incoming *message)
{
    struct gremlin_client *client = session;
    struct gremlin_call *call = gremlin_call_new(client, message);
    struct error err;

    client->count++;
    if (message->len <= LOOP_BYTES_MAX) {
        gremlin_call_read(call);
        call_dispatch(client, call);
        return;
    }
    client->reading = call;
    call->work = (struct net_work){.run = read_run, .done = read_done, .loop = client->loop};
    if (net_workers_submit(call->services->workers, &call->work, &err))
        return;
    client->reading = NULL;
    call->answering.format = gremlin_format_json(
        &(struct gremlin_format_options){.typed = client->gremlin->options.typed});
    gremlin_call_refuse(call, &err, 0);
}

void gremlin_client_ended(struct gremlin_call *call)
{
    struct gremlin_client *client = call->client;
    struct gremlin_session *session = call->session;

    if (call->running)
        client->running--;
    client->count--;
    if (call->stranger)
        client->identity.kind = GREMLIN_STRANGER;
    gremlin_call_free(call);
    if (session)
        session_go_on(client, session);
    if (!client->connection) {
        client_look(client);
        return;
    }
    client_go_on(client);
    gremlin_connection_resume(client->connection);
}

/* --- The connection ----------------------------------------------------------------------------
 */

/* Does the account have databases, and not the one of the default graph? Then graphs there were
 * made by somebody, who names them. */
static bool graphs_are_named(const struct gremlin_client *client)
{
    struct catalogue *catalogue = client->gremlin->options.services.catalogue;
    struct slice id = slice_of_text(client->identity.account);
    struct database *database = NULL;
    struct account *account;
    struct error err;
    bool named;

    if (!catalogue_account_open(catalogue, id, &account, &err))
        return false;
    named =
        account_database_count(account) > 0 &&
        !catalogue_database_open(catalogue, id, SLICE(GREMLIN_DEFAULT_DATABASE), &database, &err);
    database_unref(database);
    account_unref(account);
    return named;
}

/* With --dev whoever comes over loopback need not say who it is. Clients of the service do, and
 * name their graph by it, but only when asked; others cannot answer. So those are asked that come
 * with TLS, or to "/" as the service has them do, or with scripts where graphs have been made and
 * the default one has not. Who names a graph by the alias, or sends the bytecode that the service
 * does not take, is let in all the same.
 */
static void *client_open(void *context, struct gremlin_connection *connection,
                         const struct gremlin_peer *peer)
{
    struct gremlin_client *client = MEMORY_NEW(struct gremlin_client);

    client->gremlin = context;
    client->connection = connection;
    client->channel = gremlin_channel_ref(gremlin_connection_channel(connection));
    client->loop = gremlin_connection_loop(connection);
    client->meter = client->gremlin->options.wire.memory;
    snprintf(client->account, sizeof client->account, "%s", peer->account);
    snprintf(client->identity.account, sizeof client->identity.account, "%s", peer->account);
    client->address = peer->address;
    client->local = client->gremlin->options.door.dev && net_address_is_loopback(&peer->address);
    client->served = peer->tls || peer->root;
    if (client->local && !client->served && !graphs_are_named(client)) {
        client->identity.kind = GREMLIN_LOCAL;
        meter_choose(client);
    }
    return client;
}

static bool client_takes(const void *session)
{
    const struct gremlin_client *client = session;

    return !client->reading && client->count < client->gremlin->options.in_flight_max;
}

/* Whoever was asked who it is and does not say keeps the server from nothing. */
static bool client_idle(const void *session)
{
    const struct gremlin_client *client = session;
    size_t waiting = 0;

    for (const struct gremlin_call *call = client->waiting.first; call; call = call->next)
        waiting++;
    return client->count == waiting;
}

static void queue_drop(struct gremlin_client *client, struct gremlin_queue *queue)
{
    struct gremlin_call *call;

    while ((call = queue_take(queue)))
        call_drop(client, call);
}

static void client_gone(void *state)
{
    struct gremlin_client *client = state;
    struct gremlin_session *session = client->sessions, *next;
    struct gremlin_call *call;

    client->connection = NULL;
    queue_drop(client, &client->waiting);
    /* those of sessions among them would have gone on with their sessions */
    while ((call = queue_take(&client->ready))) {
        if (call->session)
            call->session->busy = false;
        call_drop(client, call);
    }
    for (; session; session = next) {
        struct gremlin_queue queue = {session->first, session->last};

        next = session->next;
        queue_drop(client, &queue);
        session->first = session->last = NULL;
        if (!session->busy)
            session_remove(client, session);
    }
    client_look(client);
}

const struct gremlin_wire_handler gremlin_client_handler = {
    .open = client_open,
    .message = client_message,
    .takes = client_takes,
    .idle = client_idle,
    .gone = client_gone,
};
