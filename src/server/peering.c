/* One of several servers: what it does beside serving.
 *
 *     join     registers on the root, and finds out who owns it
 *     begin    doors before its fronts (peer/doors.h), with the certificate that servers show each
 *              other: of the authority in the catalogue, so whoever opens the root is a member
 *     listen   for connections that others pass on
 *     turn     it owns: opens the nodes, and the doors lead to its own fronts
 *
 * The thread of the member (member.c) tells the server's own thread by a signal that the role has
 * changed, since that one waits for nothing else. A server that owned and does no more stops and
 * begins again, as after a reset: all it remembers may be wrong. */
#include "server/server_private.h"

#include "catalogue/notes.h"
#include "document/json.h"
#include "front/browser.h"
#include "server/metrics_servers.h"
#include "server/x509.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { LENT_PARTS = 10, LENT_LEAST_CRU = 100, LENT_CRU_MAX = 1000000000 };
enum { JOIN_LOOK_MS = 50, DRAIN_QUIET_MS = 100, BODY_MAX = 64 * 1024 };

/* What servers' certificates are good for, and no other is. */
static const char peers_name[] = "servers.orrery.internal";

/* --- What the member tells -------------------------------------------------------------------- */

static void on_seen(void *context, const struct engine_membership *seen)
{
    struct server *server = context;
    const struct engine_member *owner = seen ? engine_membership_find(seen, seen->owner) : NULL;
    struct net_address address;
    struct error ignored;

    if (!server->doors || !seen || atomic_load(&server->role) != MEMBER_FOLLOWER)
        return;
    if (owner)
        peer_leases_seen(server->leases, owner->incarnation, member_beat_ms(server->member));
    if (owner && net_address_parse(slice_of_text(owner->address), &address, &ignored))
        peer_doors_theirs(server->doors, owner->incarnation, &address);
    else
        peer_doors_nobodys(server->doors);
}

static void on_turned(void *context, enum member_role role)
{
    struct server *server = context;

    atomic_store(&server->role, role);
    if (server->doors)
        peer_doors_nobodys(server->doors);
    pthread_kill(server->main_thread, SERVER_SIGNAL_TURNED);
}

/* Another server has a lease, and no catalogue for it. */
static void on_granted(void *context)
{
    struct follower *follower = atomic_load(&((struct server *)context)->follower);

    if (follower)
        follower_wake(follower);
}

/* Throughput for reads of another server, a tenth of a second's at a time, while the partition owes
 * nothing. What was spent is charged when it is told: so all that servers spend is within the rate,
 * but for what is lent at the moment. */
static int64_t on_lend(void *context, uint32_t partition, int64_t spent_cru, int64_t wanted_cru)
{
    struct server *server = context;
    struct meters *meters = store_services(server->store, server->workers, server->log).meters;
    struct budget_state state;

    if (!meters_find(meters, partition))
        return 0;
    if (spent_cru)
        metering_charge(meters, partition, MIN(spent_cru, (int64_t)LENT_CRU_MAX));
    if (!meters_state(meters, partition, &state))
        return MIN(wanted_cru, (int64_t)LENT_CRU_MAX);
    return state.owed_ms > 0
               ? 0
               : MIN(wanted_cru, MAX(state.rate_cru / LENT_PARTS, (int64_t)LENT_LEAST_CRU));
}

/* --- Joining ---------------------------------------------------------------------------------- */

static bool authority_is_there(struct server *server)
{
    CLEANUP(buf_done) struct buf authority;
    CLEANUP(x509_secret_done) struct buf key;
    struct error ignored;

    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&key, X509_PEM_BYTES_MAX);
    return server_authority(server, &authority, &key, &ignored) && authority.len > 0;
}

/* A signal to stop is not waited for by anybody else yet. */
static bool stop_came(void)
{
    struct timespec pause = {0, JOIN_LOOK_MS * 1000 * 1000};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return sigtimedwait(&set, NULL, &pause) > 0;
}

bool server_peering_join(struct server *server, bool *ret_owns, struct error *err)
{
    bool told = false;
    sigset_t set;

    server->main_thread = pthread_self();
    sigemptyset(&set);
    sigaddset(&set, SERVER_SIGNAL_TURNED);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (!member_new(&(struct member_options){.settings = server->settings,
                                             .log = server->log,
                                             .seen = on_seen,
                                             .turned = on_turned,
                                             .context = server},
                    &server->member, err))
        return false;
    server->leases = peer_leases_new(&(struct peer_leases_options){
        .log = server->log,
        .lease_ms = server->settings->servers_lease_ms / 2,
        .unproved = !server->settings->servers_follower_proofs,
        .lend = on_lend,
        .granted = on_granted,
        .context = server,
    });
    member_begin(server->member);
    for (;;) {
        int role = atomic_load(&server->role);

        if (role == MEMBER_LOST)
            return error_set(err, ERROR_STORE_IN_USE, "this server is registered no more");
        *ret_owns = role == MEMBER_CLAIMED;
        if (*ret_owns || authority_is_there(server))
            return true;
        if (!told)
            log_event(server->log, LOG_INFO, "waiting for a server that owns the nodes");
        told = true;
        if (stop_came())
            return error_set(err, ERROR_CANCELLED, "stopped while no server owned the nodes");
    }
}

/* --- Doors ------------------------------------------------------------------------------------ */

static bool peers_tls(struct server *server, struct net_tls_context **ret_tls, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf authority;
    CLEANUP(x509_secret_done) struct buf key;
    CLEANUP(x509_secret_done) struct buf own;
    struct certificate_names *names = ARENA_NEW(arena, struct certificate_names);

    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&key, X509_PEM_BYTES_MAX);
    buf_init(&own, X509_PEM_BYTES_MAX);
    names->count = 1;
    names->list[0].text = slice_of_text(peers_name);
    return server_authority(server, &authority, &key, err) &&
           x509_issue(buf_slice(&authority), buf_slice(&key), names, clock_wall_ms(), &own, err) &&
           net_tls_context_new_peers(buf_slice(&own), buf_slice(&own), buf_slice(&authority),
                                     peers_name, ret_tls, err);
}

/* What is answered by each server itself, for balancers and whoever counts. Nobody signs it, so it
 * is served under the hosts of this server alone, as probes are. */
static void probe_answer(struct server *server, struct net_http_request *request, bool metrics)
{
    CLEANUP(buf_done) struct buf body;
    struct net_http_header type = {SLICE("Content-Type"), metrics
                                                              ? SLICE("text/plain; version=0.0.4")
                                                              : SLICE("application/json")};
    struct net_http_response response = {
        .headers = &type, .header_count = 1, .body_kind = NET_HTTP_BODY_OWNED};
    struct error err;

    buf_init(&body, BODY_MAX);
    if (!front_host_check(&server->hosts, request, &err)) {
        response.status = err.status;
        type.value = SLICE("application/json");
        BUF_APPEND(&body, "{\"code\":\"MisdirectedRequest\",\"message\":");
        document_json_write_string(slice_of_text(err.message), &body);
        BUF_APPEND(&body, "}\n");
    } else if (metrics) {
        response.status = 200;
        metrics_servers_print(server->member, server->doors, &body);
        metrics_servers_follower_print(atomic_load(&server->follower), server->leases, &body);
    } else {
        response.status =
            metrics_servers_ready(server->member, server->settings, &body) ? 200 : 503;
    }
    response.body.data = buf_take(&body, &response.body.len);
    net_http_respond(request, &response);
}

static bool request_own(struct net_http_request *request, void *context)
{
    struct server *server = context;
    struct slice path = request->path;
    struct follower *follower;
    bool metrics;

    if (!slice_equal(request->method, SLICE("GET")) && !slice_equal(request->method, SLICE("HEAD")))
        return false;
    if (path.len && path.data[path.len - 1] == '/')
        path.len--;
    metrics = slice_equal(path, SLICE("/metrics"));
    if (metrics || slice_equal(path, SLICE("/ready"))) {
        probe_answer(server, request, metrics);
        return true;
    }
    follower = atomic_load(&server->follower);
    return follower && follower_try(follower, request);
}

/* dbs/NAME/colls/NAME/docs: where a POST that says so is a query and never runs a script. */
static bool path_is_items(struct slice path)
{
    static const char *const wanted[] = {"", "dbs", NULL, "colls", NULL, "docs"};
    size_t count = 0;
    bool more = true;

    for (; more && count < ARRAY_LEN(wanted); count++) {
        struct slice part = path;

        more = slice_split(path, '/', &part, &path);
        if (wanted[count] && !slice_equal(part, slice_of_text(wanted[count])))
            return false;
    }
    return !more && count == ARRAY_LEN(wanted);
}

/* Whatever reads alone. In doubt it is not repeated. */
static bool request_reads(const struct net_http_request *request, void *context UNUSED)
{
    return slice_equal(request->method, SLICE("GET")) ||
           slice_equal(request->method, SLICE("HEAD"));
}

/* Of REST queries, too, by what front/rest/rest.c takes for one. */
static bool request_reads_rest(const struct net_http_request *request, void *context)
{
    struct slice type, says;

    if (request_reads(request, context))
        return true;
    if (!slice_equal(request->method, SLICE("POST")) || !path_is_items(request->path))
        return false;
    type = net_http_header(request, SLICE("content-type"));
    says = net_http_header(request, SLICE("x-ms-documentdb-isquery"));
    return slice_equal_nocase(says, SLICE("true")) ||
           (type.len >= 22 &&
            slice_equal_nocase(slice_first(type, 22), SLICE("application/query+json")));
}

/* Of REST and Tables requests are passed on, of the others connections: Gremlin's become
 * WebSocket, and of MongoDB cursors, sessions and transactions are below a connection. */
static void requests_begin(struct server *server, struct peer_doors *doors, enum peer_front front)
{
    struct net_http_settings settings = server_http_settings(server, front);
    struct metrics_front *counted = server->probes.sources.fronts;

    server->door_http[front] =
        net_http_new(server->loops, &settings, peer_request_handle, peer_doors_door(doors, front));
    counted[front == PEER_REST ? METRICS_REST : METRICS_TABLE].door = server->door_http[front];
    peer_doors_requests(doors, front, server->loops,
                        &(struct peer_requests){
                            .http = server->door_http[front],
                            .own = front == PEER_REST ? request_own : NULL,
                            .repeats = front == PEER_REST ? request_reads_rest : request_reads,
                            .context = server,
                        });
}

bool server_peering_begin(struct server *server, struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = NULL;
    struct peer_doors *doors;

    if (!peers_tls(server, &tls, err))
        return false;
    doors = peer_doors_new(&(struct peer_doors_options){
        .log = server->log,
        .tls = tls,
        .memory = &server->memory,
        .leases = server->leases,
        .wait_ms = server->settings->servers_wait_ms,
        .drain_ms = DRAIN_QUIET_MS,
    });
    requests_begin(server, doors, PEER_REST);
    requests_begin(server, doors, PEER_TABLE);
    peer_doors_front(doors, PEER_GREMLIN,
                     &(struct peer_front_local){.refusal = net_http_protocol.refusal});
    server->probes.sources.doors = doors;
    atomic_store(&server->doors, doors); /* which the member's thread looks at */
    if (follower_is_wanted(server->settings))
        atomic_store(&server->follower, server_follower_make(server));
    return true;
}

bool server_peering_listen(struct server *server, struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = NULL;
    CLEANUP(memory_free) struct engine_membership *seen = MEMORY_NEW(struct engine_membership);
    struct net_listener_settings settings = net_listener_settings_default();
    struct net_address address;

    settings.connections_max = (uint32_t)server->settings->net_connections_max;
    settings.output_high = (size_t)server->settings->net_output_bytes_high;
    settings.input_max = MAX(settings.input_max, 2 * (size_t)server->settings->net_head_bytes_max);
    settings.write_stall_ms = server->settings->net_write_stall_ms_max;
    settings.handshake_ms = server->settings->net_handshake_ms_max;
    settings.tls_required = true;
    if (!peers_tls(server, &tls, err) ||
        !net_address_parse(slice_of_text(server->settings->servers_listen), &address, err) ||
        !net_listener_new(server->loops, &address, &settings, &peer_gate_protocol, server->doors,
                          tls, &server->peers, err))
        return error_prefix(err, "servers.listen");
    (void)member_membership(server->member, seen);
    on_seen(server, seen);
    return true;
}

/* Whoever is registered may read by a lease of the owner before. */
void server_peering_lead(struct server *server)
{
    CLEANUP(memory_free) struct engine_membership *seen = MEMORY_NEW(struct engine_membership);
    bool others = false;

    (void)member_membership(server->member, seen);
    for (size_t i = 0; i < seen->count; i++)
        others |= seen->list[i].incarnation != member_incarnation(server->member);
    peer_leases_own(server->leases, others);
}

void server_peering_own(struct server *server)
{
    const struct peer_front_local fronts[] = {
        [PEER_REST] = {.protocol = &net_http_protocol,
                       .context = server->http,
                       .handle = probes_handle,
                       .handle_context = &server->probes},
        [PEER_TABLE] = {.protocol = &net_http_protocol,
                        .context = server->table_http,
                        .handle = table_handle,
                        .handle_context = server->table_front},
        [PEER_GREMLIN] = {.protocol = &net_http_protocol,
                          .context = server->gremlin_http,
                          .refusal = net_http_protocol.refusal},
        [PEER_MONGO] = {&mongo_wire_protocol,
                        mongo_wire_of(server->mongo_front, MONGO_FACE_MONGOS)},
        [PEER_MONGO_SET] = {&mongo_wire_protocol,
                            mongo_wire_of(server->mongo_front, MONGO_FACE_REPLICA_SET)},
    };

    static_assert(ARRAY_LEN(fronts) == PEER_FRONTS, "one for each");
    for (int i = 0; i < PEER_FRONTS; i++)
        peer_doors_front(server->doors, (enum peer_front)i, &fronts[i]);
    server->owns = true;
    peer_doors_ours(server->doors);
    log_event(server->log, LOG_INFO, "serving the nodes",
              LOG_TEXT("server", server->settings->servers_name));
}

/* --- Turning ---------------------------------------------------------------------------------- */

bool server_peering_turn(struct server *server)
{
    int role = atomic_load(&server->role);
    struct error err;

    if (role == MEMBER_CLAIMED && !server->owns) {
        if (server_promote(server, &err)) {
            server_peering_own(server);
            return true;
        }
        log_error(server->log, "the nodes could not be taken over", &err);
        role = MEMBER_LOST;
    }
    if (role != MEMBER_LOST)
        return true;
    atomic_store(&server->restarts, true);
    return false;
}

bool server_peering_is_fenced(const struct server *server)
{
    return server->member && member_is_fenced(server->member);
}

void server_peering_leave(struct server *server)
{
    member_free(TAKE(server->member));
    peer_doors_free(server->doors);
    peer_leases_free(server->leases);
}

struct engine_claim server_peering_claim(const struct server *server)
{
    return server->member ? member_claim(server->member) : (struct engine_claim){0};
}

bool server_peering_note(struct server *server, struct slice key, struct arena *arena,
                         struct engine_value *ret_value, struct error *err)
{
    uint32_t partition;
    struct slice stored = catalogue_notes_place(key, arena, &partition);

    assert(server->member);
    return member_get(server->member, partition, stored, arena, ret_value, err);
}

/* Those of one region are told apart by a number: an SDK keeps them by their names. */
size_t server_peering_locations(void *context, struct front_location list[FRONT_LOCATIONS_MAX])
{
    CLEANUP(memory_free) struct engine_membership *seen = MEMORY_NEW(struct engine_membership);
    struct server *server = context;
    size_t count = 0;

    static_assert((int)FRONT_LOCATIONS_MAX >= (int)ENGINE_MEMBERS_MAX, "room for all");
    (void)member_membership(server->member, seen);
    for (size_t i = 0; i < seen->count; i++) {
        const struct engine_member *one = &seen->list[i];
        const char *region = one->region[0] ? one->region : "Orrery";
        unsigned number = 1;

        for (size_t j = 0; j < i; j++)
            number += strcmp(seen->list[j].region, one->region) == 0;
        if (!one->present || one->draining || !one->endpoint[0])
            continue;
        if (number == 1)
            snprintf(list[count].name, sizeof list[count].name, "%s", region);
        else
            snprintf(list[count].name, sizeof list[count].name, "%.48s %u", region, number);
        snprintf(list[count].endpoint, sizeof list[count].endpoint, "%s", one->endpoint);
        count++;
    }
    return count;
}
