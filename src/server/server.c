/* Start-up goes from the inside out: stores, secrets, threads, and last the port, so that whoever
 * can connect can be served. Stopping goes the other way round.
 *
 * The thread that calls server_run does nothing but wait for signals with sigwaitinfo, so there is
 * no handler code and no tick. While it drains it cannot wait for signals as well; then, and only
 * then, a handler is installed that ends the process at the second signal. */
#include "server/server_private.h"

#include "base/bytes.h"
#include "catalogue/notes.h"
#include "front/kit/gateway.h"
#include "server/file.h"
#include "server/machine.h"
#include "server/notify.h"
#include "server/x509.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { FENCED_DRAIN_MS = 200 }; /* what is under way there fails anyhow */

static sigset_t stop_and_reload(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

void server_signals_block(void)
{
    sigset_t set = stop_and_reload();

    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* --- Start ----------------------------------------------------------------------------------- */

/* A place to listen, and the option that names it. */
struct front {
    const char *name;
    const char *listen; /* "off", or an address */
};

/* A key everybody knows is no key, so an address that others reach has to be wanted twice. */
static bool front_check(const struct front *front, const struct settings *settings,
                        struct net_address *ret_address, struct error *err)
{
    struct net_address address;

    if (!net_address_parse(slice_of_text(front->listen), &address, err))
        return error_prefix(err, "--%s", front->name);
    if (settings->server_dev && !settings->server_dev_anywhere &&
        !net_address_is_loopback(&address))
        return error_set(err, ERROR_CONFIGURATION,
                         "--dev accepts a key everybody knows, so --%s has to be a loopback "
                         "address, not \"%s\": use --no-dev, or --set server.dev_anywhere=true if "
                         "everybody there may read and change everything",
                         front->name, front->listen);
    *ret_address = address;
    return true;
}

/* Where the fronts that exist listen. */
struct addresses {
    struct net_address rest, table, gremlin, mongo[MONGO_FACES]; /* not written: it is off */
};

static bool is_on(const char *listen)
{
    return strcmp(listen, "off") != 0;
}

static bool replica_set_is_auto(const struct settings *settings)
{
    return strcmp(settings->mongo_replica_set_listen, "auto") == 0;
}

/* By default where whoever tries the server out has the emulator's connection string. */
static const char *replica_set_listen(const struct settings *settings)
{
    if (!replica_set_is_auto(settings))
        return settings->mongo_replica_set_listen;
    return settings->server_dev && is_on(settings->mongo_listen) ? "127.0.0.1:10255" : "off";
}

static bool fronts_check(const struct settings *settings, struct addresses *ret_addresses,
                         struct error *err)
{
    const struct front fronts[] = {
        {"rest", settings->rest_listen},
        {"mongo", settings->mongo_listen},
        {"mongo-replica-set", replica_set_listen(settings)},
        {"table", settings->table_listen},
        {"gremlin", settings->gremlin_listen},
    };
    struct net_address addresses[ARRAY_LEN(fronts)];

    for (size_t i = 0; i < ARRAY_LEN(fronts); i++)
        if (is_on(fronts[i].listen) && !front_check(&fronts[i], settings, &addresses[i], err))
            return false;
    if (is_on(settings->rest_listen))
        ret_addresses->rest = addresses[0];
    for (int i = 0; i < MONGO_FACES; i++)
        if (is_on(fronts[1 + i].listen))
            ret_addresses->mongo[i] = addresses[1 + i];
    if (is_on(settings->table_listen))
        ret_addresses->table = addresses[3];
    if (is_on(settings->gremlin_listen))
        ret_addresses->gremlin = addresses[4];
    return true;
}

/* --- The authority of a server without a directory ------------------------------------------- */

/* 4 bytes: the length of the certificate, big-endian; the certificate; its private key. On the root
 * node, in the catalogue's partition, where the keys of accounts are too. */
static const struct slice authority_note = {(const uint8_t[]){CATALOGUE_NOTES_SERVER, 'c', 'a'}, 3};

static bool authority_read(void *context, struct buf *authority, struct buf *key, struct error *err)
{
    struct server *server = context;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;
    size_t len;

    if (server->store ? !catalogue_notes_get(store_catalogue(server->store), authority_note, arena,
                                             &value, err)
                      : !server_peering_note(server, authority_note, arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (value.bytes.len < 4 || (len = bytes_get_be32(value.bytes.data)) > value.bytes.len - 4)
        return error_set(err, ERROR_STORE_CORRUPT,
                         "the certificate authority kept with the data makes no sense");
    buf_append_slice(authority, slice_of(value.bytes.data + 4, len));
    buf_append_slice(key, slice_skip(value.bytes, 4 + len));
    OPENSSL_cleanse((void *)(uintptr_t)value.bytes.data, value.bytes.len);
    return true;
}

static bool authority_write(void *context, struct slice authority, struct slice key,
                            struct error *err)
{
    struct server *server = context;
    CLEANUP(x509_secret_done) struct buf value;
    struct engine_op op = {.kind = ENGINE_PUT, .key = authority_note};
    uint8_t len[4];

    if (!server->store) /* it is the owner's to make */
        return error_set(err, ERROR_CERTIFICATE, "there is no certificate authority yet");
    buf_init(&value, 2 * X509_PEM_BYTES_MAX);
    bytes_put_be32(len, (uint32_t)authority.len);
    buf_append(&value, len, sizeof len);
    buf_append_slice(&value, authority);
    buf_append_slice(&value, key);
    op.value = buf_slice(&value);
    return catalogue_notes_write(store_catalogue(server->store), &op, 1, err);
}

bool server_authority(struct server *server, struct buf *ret_authority, struct buf *ret_key,
                      struct error *err)
{
    if (!authority_read(server, ret_authority, ret_key, err))
        return false;
    if (ret_authority->len || !server->store)
        return true;
    return x509_make_authority(clock_wall_ms(), ret_authority, ret_key, err) &&
           authority_write(server, buf_slice(ret_authority), buf_slice(ret_key), err);
}

static bool certificate_prepare(struct server *server, struct error *err)
{
    server->certificate_source = (struct certificate_source){
        .certificate_path = server->settings->tls_certificate,
        .key_path = server->settings->tls_key,
        .clients_path = server->settings->tls_client_authority,
        .names = server->settings->tls_names,
        .account_suffix = server->settings->account_host_suffix,
        .log = server->log,
        .keeper = {authority_read, authority_write, server},
    };
    return certificate_new(&server->certificate_source, &server->certificate, err);
}

/* The hosts that are served where no secret is asked for: those the certificate is for. Where the
 * emulators' keys are accepted on loopback only, there is no other address either. */
static void hosts_prepare(struct server *server)
{
    const struct settings *settings = server->settings;
    const struct certificate_names *names = certificate_hosts(server->certificate);

    for (size_t i = 0; i < names->count; i++)
        server->host_names[i] = names->list[i].text;
    server->hosts = (struct front_hosts){
        .names = server->host_names,
        .count = names->count,
        .any_address = !settings->server_dev || settings->server_dev_anywhere,
    };
    server->probes.hosts = &server->hosts;
}

/* A key everybody knows and a page of everybody's would be no check at all. */
static bool origins_check(const struct settings *settings, const char *name, const char *list,
                          struct error *err)
{
    struct slice origins = slice_of_text(list);

    if (!front_origins_check(origins, err))
        return error_prefix(err, "%s", name);
    if (settings->server_dev && front_origin_listed(origins, SLICE("*")))
        return error_set(err, ERROR_CONFIGURATION,
                         "%s: with --dev every page could use the key everybody knows: name "
                         "origins instead of *",
                         name);
    return true;
}

static const char *directory_of(const struct server *server)
{
    return server->nodes ? nodes_directory(server->nodes) : NULL;
}

bool server_certificate_load(struct server *server, struct net_tls_context **ret_tls,
                             struct error *err)
{
    return certificate_load(server->certificate, directory_of(server), clock_wall_ms(), ret_tls,
                            err);
}

/* Everything that is behind the fronts. */
static bool data_open(struct server *server, struct error *err)
{
    const struct settings *settings = server->settings;

    return nodes_open(settings, server_peering_claim(server), server->log, &server->nodes, err) &&
           store_open(settings, server->nodes, server->leases, server->log, &server->store, err) &&
           keys_load(store_catalogue(server->store), nodes_directory(server->nodes), &server->keys,
                     err) &&
           server_observer_make(server, err) &&
           pauses_new(store_catalogue(server->store), &clock_system, &server->pauses, err);
}

static struct net_http_settings http_settings(const struct settings *settings)
{
    struct net_http_settings http = net_http_settings_default();

    http.request_line_max = (size_t)settings->net_request_line_bytes_max;
    http.head_max = (size_t)settings->net_head_bytes_max;
    http.header_count_max = (size_t)settings->net_headers_max;
    http.body_max = (size_t)settings->net_body_bytes_max;
    http.in_flight_max = (uint32_t)settings->net_in_flight_max;
    http.answers_max = (size_t)settings->net_output_bytes_high;
    http.head_ms = settings->net_head_ms_max;
    http.body_ms = settings->net_body_ms_max;
    http.idle_ms = settings->net_idle_ms_max;
    return http;
}

static struct net_listener_settings listener_settings(const struct settings *settings)
{
    struct net_listener_settings listener = net_listener_settings_default();

    listener.connections_max = (uint32_t)settings->net_connections_max;
    /* a whole head must fit, and the beginning of what follows it */
    listener.input_max = MAX(listener.input_max, 2 * (size_t)settings->net_head_bytes_max);
    listener.output_high = (size_t)settings->net_output_bytes_high;
    listener.write_stall_ms = settings->net_write_stall_ms_max;
    listener.handshake_ms = settings->net_handshake_ms_max;
    listener.tls_required = settings->tls_required;
    return listener;
}

/* Where queries spill to: what the settings say, else beside the data, else where the system keeps
 * large temporary files. A directory that cannot be written to costs queries further passes, and is
 * no reason not to start. */
static void spill_directory_find(const struct server *server, char *path, size_t size)
{
    const char *wanted = server->settings->query_spill_directory;
    const char *data = nodes_directory(server->nodes), *temporary = getenv("TMPDIR");
    struct error err;
    bool made = true;
    int length;

    if (wanted[0])
        length = snprintf(path, size, "%s", wanted);
    else if (data)
        length = snprintf(path, size, "%s/tmp", data);
    else
        length = snprintf(path, size, "%s", temporary && temporary[0] ? temporary : "/var/tmp");
    if ((size_t)length >= size)
        made =
            error_set(&err, ERROR_CONFIGURATION, "the path of query.spill_directory is too long");
    else if (wanted[0] || data)
        made = server_file_make_directory(path, &err);
    if (!made)
        log_event(server->log, LOG_WARNING, "queries cannot spill to disk",
                  LOG_TEXT("because", err.message));
}

static struct front_queries *queries_make(const struct server *server)
{
    const struct settings *settings = server->settings;
    char directory[4096];

    spill_directory_find(server, directory, sizeof directory);
    return front_queries_new(&(struct front_query_limits){
        .pause_ms = settings->query_pause_ms,
        .deadline_ms = settings->query_deadline_ms,
        .memory_bytes_max = (size_t)settings->query_memory_bytes_max,
        .cache_bytes_max = (size_t)settings->query_cache_bytes_max,
        .vectors_bytes_max = (size_t)settings->query_vectors_bytes_max,
        .terms_bytes_max = (size_t)settings->query_terms_bytes_max,
        .members_bytes_max = (size_t)settings->query_members_bytes_max,
        .spill_directory = directory,
        .spill_bytes_max = (uint64_t)settings->query_spill_bytes_max,
        .spill_total_bytes_max = (uint64_t)settings->query_spill_total_bytes_max,
        .plans_bytes_max = (size_t)settings->query_plans_bytes_max,
        .copies_bytes_max = (size_t)settings->reference_memory_bytes_max,
    });
}

static struct script_pool *scripts_make(const struct settings *settings)
{
    return script_pool_new(&(struct script_options){
        .program = settings->script_program[0] ? settings->script_program : NULL,
        .workers_max = (uint32_t)settings->script_workers_max,
        /* the other half of the server's threads is for everything else */
        .places_max = (uint32_t)(settings->net_workers_max + 1) / 2,
        .time_ms = settings->script_time_ms,
        .wait_ms = settings->script_wait_ms,
        .memory_bytes = (size_t)settings->script_memory_bytes_max,
        .output_bytes = (size_t)settings->script_output_bytes_max,
        .log_bytes = (size_t)settings->script_log_bytes_max,
    });
}

static struct front_consistency consistency(const struct settings *settings)
{
    return (struct front_consistency){
        .level = (enum item_level)settings->account_consistency,
        .staleness_ms = settings->account_staleness_ms,
        .staleness_operations = (uint64_t)settings->account_staleness_operations,
    };
}

/* The same for all fronts, as the door is. */
static struct front_services services(struct server *server)
{
    const struct settings *settings = server->settings;
    struct front_services services = store_services(server->store, server->workers, server->log);

    services.locations = server->member ? server_peering_locations : NULL;
    services.locations_context = server;
    services.server = server->member ? settings->servers_name : NULL;
    services.owners = server->owners;
    services.faults = &server->faults;
    services.hosts = &server->hosts;
    services.scripts = server->scripts;
    services.queries = server->queries;
    services.observer = server->observer;
    services.pauses = server->pauses;
    services.views = server->views;
    services.view_report = rest_views_report;
    services.view_key_check = rest_views_key_check;
    services.view_index_path = rest_views_index_path;
    services.query_threads =
        settings->net_query_threads ? (size_t)settings->net_query_threads : net_cores_usable();
    services.consistency = consistency(settings);
    return services;
}

static struct front_door door(const struct settings *settings)
{
    return (struct front_door){.dev = settings->server_dev,
                               .accounts_by_use = settings->account_by_use,
                               .host_suffix = settings->account_host_suffix};
}

static struct rest *rest_make(struct server *server)
{
    const struct settings *settings = server->settings;
    struct rest_options options = {
        .services = services(server),
        .door = door(settings),
        .metadata_ru = (uint32_t)settings->account_metadata_ru,
        .cors_origins = settings->rest_cors_origins,
        .queries = {.merge = (enum rest_merge)settings->query_merge,
                    .order_unindexed = settings->query_order_unindexed,
                    .by_view = settings->query_by_view},
        .scripts = {.time_ms = settings->script_time_ms,
                    .ru_seconds = (uint32_t)settings->script_ru_seconds},
    };

    static_assert((int)REST_SEAL_BYTES == (int)KEYS_SEAL_BYTES, "one seal");
    memcpy(options.seal, server->keys.seal, sizeof options.seal);
    return rest_new(&options);
}

static struct admin *admin_make(struct server *server)
{
    return admin_new(&(struct admin_options){.services = services(server),
                                             .door = door(server->settings),
                                             .hooks = server_admin_hooks(server),
                                             .cors_origins = server->settings->rest_cors_origins});
}

static struct portal *portal_make(const struct server *server)
{
    const struct settings *settings = server->settings;

    return portal_new(&(struct portal_options){.hosts = &server->hosts,
                                               .on = settings->portal_on,
                                               .dev = settings->server_dev,
                                               .directory = settings->portal_directory,
                                               .mongo = is_on(settings->mongo_listen),
                                               .gremlin = is_on(settings->gremlin_listen),
                                               .table = is_on(settings->table_listen)});
}

static struct table *table_make(struct server *server)
{
    const struct settings *settings = server->settings;
    struct table_options options = {
        .services = services(server),
        .door = door(settings),
    };

    static_assert((int)TABLE_SEAL_BYTES == (int)KEYS_SEAL_BYTES, "one seal");
    memcpy(options.seal, server->keys.seal, sizeof options.seal);
    return table_new(&options);
}

static struct mongo *mongo_make(struct server *server)
{
    const struct settings *settings = server->settings;
    struct mongo_options options = {
        .services = services(server),
        .door = door(settings),
        .wire = {.message_ms = settings->net_body_ms_max,
                 .idle_ms = settings->mongo_idle_ms_max,
                 .memory = &server->memory},
        .advertise = settings->mongo_advertise,
        .cursor_ms = settings->mongo_cursor_ms_max,
        .cursors_max = (size_t)settings->mongo_cursors_max,
        .streams_max = (size_t)settings->mongo_change_streams_max,
        .changes = settings->mongo_change_stream_retention > 0,
        .sessions_max = (size_t)settings->mongo_sessions_max,
        .session_ms = settings->mongo_session_ms_max,
        .javascript = settings->mongo_javascript,
        .test_commands = settings->mongo_test_commands,
        .transactions_max = (size_t)settings->mongo_transactions_max,
        .transaction_ms = settings->mongo_transaction_ms_max,
        .transaction_bytes_max = (size_t)settings->mongo_transaction_bytes_max,
        .connections_max = (uint32_t)settings->net_connections_max,
    };

    static_assert((int)MONGO_SEAL_BYTES == (int)KEYS_SEAL_BYTES, "one seal");
    memcpy(options.seal, server->keys.seal, sizeof options.seal);
    return mongo_new(&options);
}

static struct gremlin *gremlin_make(struct server *server)
{
    const struct settings *settings = server->settings;

    return gremlin_new(&(struct gremlin_options){
        .services = services(server),
        .door = door(settings),
        .wire = {.message_bytes_max = (size_t)settings->gremlin_message_bytes_max,
                 .waiting_bytes_max = (size_t)settings->net_output_bytes_high,
                 .message_ms = settings->net_body_ms_max,
                 .idle_ms = settings->gremlin_idle_ms_max,
                 .memory = &server->memory},
        .origins = settings->gremlin_origins,
        .version = (enum gremlin_version)settings->gremlin_version,
        .typed = settings->gremlin_typed,
        .indexes = settings->gremlin_indexes,
        .script_bytes_max = (size_t)settings->gremlin_script_bytes_max,
        .operators_max = (size_t)settings->gremlin_operators_max,
        .loops_max = (size_t)settings->gremlin_loops_max,
        .evaluation_ms = settings->gremlin_evaluation_ms,
        .evaluation_ms_max =
            MAX(settings->gremlin_evaluation_ms, settings->gremlin_evaluation_ms_max),
        .memory_bytes_max = (size_t)settings->gremlin_memory_bytes_max,
        .results_bytes_max = (size_t)settings->gremlin_results_bytes_max,
        .transaction_bytes_max = (size_t)settings->gremlin_transaction_bytes_max,
        .in_flight_max = (uint32_t)settings->gremlin_in_flight_max,
        .running_max = (uint32_t)settings->gremlin_running_max,
        .sessions_max = (uint32_t)settings->gremlin_sessions_max,
        .session_ms = settings->gremlin_session_ms_max,
    });
}

static struct net_http_settings rest_http_settings(const struct settings *settings)
{
    struct net_http_settings http = http_settings(settings);

    http.refusal = front_gateway_refusal;
    return http;
}

static struct net_http_settings table_http_settings(const struct settings *settings)
{
    struct net_http_settings http = http_settings(settings);

    http.body_max = MAX(http.body_max, (size_t)TABLE_BODY_BYTES_MAX);
    http.refusal = table_refusal;
    return http;
}

struct net_http_settings server_http_settings(struct server *server, enum peer_front front)
{
    struct net_http_settings http = front == PEER_TABLE ? table_http_settings(server->settings)
                                                        : rest_http_settings(server->settings);

    http.memory = &server->memory;
    http.bodies_max = MIN(http.bodies_max, server->memory.max / 4);
    return http;
}

static struct net_http_settings gremlin_http_settings(const struct settings *settings)
{
    struct net_http_settings http = http_settings(settings);

    http.body_max = MIN(http.body_max, (size_t)settings->gremlin_message_bytes_max);
    http.refusal = gremlin_refusal;
    return http;
}

enum {
    MEMORY_LEAST = 64 * 1024 * 1024,
    LARGE_BYTES = 512 * 1024,
    HEAP_REST_BYTES = 2 * 1024 * 1024,
};

/* What requests and answers may hold: by default a quarter of the machine's memory, of which an
 * account may have a quarter. */
static void memory_prepare(struct server *server)
{
    const struct settings *settings = server->settings;
    size_t bytes = (size_t)settings->server_memory_bytes_max;
    size_t account = (size_t)settings->account_memory_bytes_max;

    if (!bytes)
        bytes = MAX(machine_memory() / 4, (size_t)MEMORY_LEAST);
    memory_meter_init(&server->memory, NULL, bytes);
    /* What is large goes back to the system at once: otherwise every worker's heap would keep as
     * much as its largest request ever needed, and nobody would count it. */
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    /* Less than this at the end of a heap stays: giving it back costs whoever frees last, which is
     * mostly a loop, milliseconds. */
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_REST_BYTES);
    server->owners =
        net_owners_new(&server->memory, account ? MIN(account, bytes) : MAX(bytes / 4, (size_t)1));
}

/* Where the system does not permit it the server runs all the same. */
static void loops_hasten(struct server *server)
{
    int nice = -(int)server->settings->net_loops_priority;
    struct error err;
    bool hastened;

    if (!nice)
        return;
    hastened = net_loops_hasten(server->loops, nice, server->settings->net_loops_first, &err);
    log_event(server->log, LOG_DEBUG, "priority of threads that serve connections",
              LOG_INT("nice", nice), LOG_TEXT("result", hastened ? "set" : err.message));
}

static bool loops_start(struct server *server, struct error *err)
{
    memory_prepare(server);
    if (!net_loops_new((size_t)server->settings->net_loops, &server->loops, err))
        return false;
    loops_hasten(server);
    return true;
}

static void fronts_make(struct server *server)
{
    const struct settings *settings = server->settings;
    struct net_http_settings http = server_http_settings(server, PEER_REST);
    struct net_http_settings table_http = server_http_settings(server, PEER_TABLE);
    struct net_http_settings gremlin_http = gremlin_http_settings(settings);
    struct net_workers_settings workers = net_workers_settings_default();
    struct metrics_sources *sources = &server->probes.sources;

    workers.threads_max = (size_t)settings->net_workers_max;
    workers.queue_max = (size_t)settings->net_work_queue_max;
    if (settings->net_busy_max)
        workers.busy_max = (size_t)settings->net_busy_max;
    gremlin_http.memory = &server->memory;
    gremlin_http.bodies_max = MIN(gremlin_http.bodies_max, server->memory.max / 4);
    server->workers = net_workers_new(&workers);
    server->scripts = scripts_make(settings);
    server->queries = queries_make(server);
    server->views =
        rest_views_new(&(struct rest_views_options){.services = services(server),
                                                    .bell = store_bell(server->store),
                                                    .lag_ms_max = settings->view_lag_max});
    server->rest_front = rest_make(server);
    server->probes.rest = server->rest_front;
    server->admin_front = admin_make(server);
    server->probes.admin = server->admin_front;
    server->portal = portal_make(server);
    server->probes.portal = server->portal;
    server->http = net_http_new(server->loops, &http, probes_handle, &server->probes);
    server->table_front = table_make(server);
    server->table_http =
        net_http_new(server->loops, &table_http, table_handle, server->table_front);
    server->mongo_front = mongo_make(server);
    server->probes.mongo = is_on(settings->mongo_listen) ? server->mongo_front : NULL;
    server->gremlin_front = gremlin_make(server);
    server->probes.gremlin = server->gremlin_front;
    server->gremlin_http =
        net_http_new(server->loops, &gremlin_http, gremlin_handle, server->gremlin_front);
    server->probes.certificate = server->certificate;
    sources->fronts[METRICS_REST].name = "rest";
    sources->fronts[METRICS_REST].http = server->http;
    sources->fronts[METRICS_TABLE].name = "table";
    sources->fronts[METRICS_TABLE].http = server->table_http;
    sources->fronts[METRICS_MONGO].name = "mongo";
    sources->fronts[METRICS_MONGO_SET].name = "mongo-replica-set";
    sources->mongo = server->mongo_front;
    sources->fronts[METRICS_GREMLIN].name = "gremlin";
    sources->fronts[METRICS_GREMLIN].http = server->gremlin_http;
    sources->gremlin = server->gremlin_front;
    sources->workers = server->workers;
    sources->catalogue = store_catalogue(server->store);
    sources->queries = server->queries;
    sources->scripts = server->scripts;
    sources->heat = store_heat(server->store);
    sources->log = server->log;
    sources->started_ms = clock_wall_ms();
    sources->memory = &server->memory;
    sources->observer = server->observer;
    sources->meters = services(server).meters;
    sources->migrator = services(server).migrator;
    sources->views = server->views;
    sources->partitions_max = (size_t)settings->metrics_partitions_max;
    sources->member = server->member;
    sources->doors = server->doors;
    probes_start(&server->probes);
}

/* A front that listens: its name, which is also that of the option, and what it speaks. */
struct listening {
    const char *front;
    const struct net_address *address;
    const struct net_protocol *protocol;
    void *context;     /* of the protocol */
    bool tls_required; /* whatever the settings say */
    bool certificates; /* clients are asked for one */
    enum peer_front place;
};

static bool front_listen(struct server *server, const struct listening *listening,
                         struct net_tls_context *tls, struct net_listener **ret_listener,
                         struct error *err)
{
    struct net_listener_settings settings = listener_settings(server->settings);
    const struct net_address *address = listening->address;
    const char *front = listening->front;
    char where[NET_ADDRESS_TEXT_SIZE];

    settings.tls_required |= listening->tls_required;
    settings.client_certificates = listening->certificates;
    /* Where servers work together a door stands before each front (peering.c). */
    if (!net_listener_new(server->loops, address, &settings,
                          server->doors ? &peer_door_protocol : listening->protocol,
                          server->doors ? peer_doors_door(server->doors, listening->place)
                                        : listening->context,
                          tls, ret_listener, err)) {
        struct error cause = *err;

        return error_set(err, cause.code, "%s: choose another with --%s ADDRESS:PORT",
                         cause.message, front);
    }
    net_address_text(net_listener_address(*ret_listener), where);
    log_event(server->log, LOG_INFO, "listening", LOG_TEXT("front", front),
              LOG_TEXT("address", where),
              LOG_INT("port", net_address_port(net_listener_address(*ret_listener))));
    if (server->settings->server_dev && !net_address_is_loopback(address))
        log_event(server->log, LOG_WARNING,
                  "everybody who reaches this address can read and change everything",
                  LOG_TEXT("front", front), LOG_TEXT("address", where),
                  LOG_TEXT("because", "server.dev and server.dev_anywhere"));
    return true;
}

/* NULL: the front is made later. */
static void *server_mongo_wire(const struct server *server, enum mongo_face face)
{
    return server->mongo_front ? mongo_wire_of(server->mongo_front, face) : NULL;
}

/* Nobody has asked for the port that the replica set has by itself: a second server beside one that
 * has it does without. */
static bool replica_set_may_lack(struct server *server, enum mongo_face face,
                                 const struct error *err)
{
    if (face != MONGO_FACE_REPLICA_SET || !replica_set_is_auto(server->settings) ||
        err->code != ERROR_ADDRESS)
        return false;
    log_event(server->log, LOG_INFO, "no replica set for MongoDB's clients",
              LOG_TEXT("because", err->message));
    return true;
}

/* The replica set, as the service shows it, is for TLS alone. */
static bool mongo_faces_listen(struct server *server, const struct addresses *addresses,
                               struct net_tls_context *tls, struct error *err)
{
    const char *const names[MONGO_FACES] = {"mongo", "mongo-replica-set"};
    const char *const where[MONGO_FACES] = {server->settings->mongo_listen,
                                            replica_set_listen(server->settings)};

    for (int i = 0; i < MONGO_FACES; i++) {
        enum mongo_face face = (enum mongo_face)i;

        if (!is_on(where[i]))
            continue;
        if (!front_listen(server,
                          &(struct listening){names[i], &addresses->mongo[i], &mongo_wire_protocol,
                                              server_mongo_wire(server, face),
                                              face == MONGO_FACE_REPLICA_SET, true,
                                              (enum peer_front)(PEER_MONGO + i)},
                          tls, &server->mongo[i], err)) {
            if (replica_set_may_lack(server, face, err))
                continue;
            return false;
        }
        atomic_store(&server->probes.sources.fronts[METRICS_MONGO + i].listener, server->mongo[i]);
    }
    return true;
}

/* What it tells its clients to connect to. */
static void mongo_tell(struct server *server)
{
    if (server->mongo_front && server->mongo[MONGO_FACE_REPLICA_SET])
        mongo_listens(server->mongo_front,
                      net_listener_address(server->mongo[MONGO_FACE_REPLICA_SET]));
}

static bool fronts_listen(struct server *server, const struct addresses *addresses,
                          struct net_tls_context *tls, struct error *err)
{
    const struct settings *settings = server->settings;
    struct metrics_front *counted = server->probes.sources.fronts;

    if (is_on(settings->rest_listen)) {
        if (!front_listen(server,
                          &(struct listening){"rest", &addresses->rest, &net_http_protocol,
                                              server->http, false, false, PEER_REST},
                          tls, &server->rest, err))
            return false;
        atomic_store(&counted[METRICS_REST].listener, server->rest);
    }
    if (is_on(settings->table_listen)) {
        if (!front_listen(server,
                          &(struct listening){"table", &addresses->table, &net_http_protocol,
                                              server->table_http, false, false, PEER_TABLE},
                          tls, &server->table, err))
            return false;
        atomic_store(&counted[METRICS_TABLE].listener, server->table);
    }
    if (is_on(settings->gremlin_listen)) {
        if (!front_listen(server,
                          &(struct listening){"gremlin", &addresses->gremlin, &net_http_protocol,
                                              server->gremlin_http, false, false, PEER_GREMLIN},
                          tls, &server->gremlin, err))
            return false;
        atomic_store(&counted[METRICS_GREMLIN].listener, server->gremlin);
    }
    return mongo_faces_listen(server, addresses, tls, err);
}

struct follower *server_follower_make(struct server *server)
{
    const struct settings *settings = server->settings;

    return follower_new(&(struct follower_options){.settings = settings,
                                                   .log = server->log,
                                                   .leases = server->leases,
                                                   .doors = server->doors,
                                                   .owners = server->owners,
                                                   .hosts = &server->hosts,
                                                   .door = door(settings),
                                                   .consistency = consistency(settings),
                                                   .limits = store_limits(settings)});
}

/* The server that is alone: what is behind the fronts, then the fronts. */
static bool start_alone(struct server *server, const struct addresses *addresses, struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = NULL;

    if (!data_open(server, err) || !server_certificate_load(server, &tls, err) ||
        !loops_start(server, err))
        return false;
    fronts_make(server);
    if (!fronts_listen(server, addresses, tls, err))
        return false;
    mongo_tell(server);
    return true;
}

/* This server owns: it opens what is behind the fronts, and what waits at the doors goes in. */
bool server_promote(struct server *server, struct error *err)
{
    server_peering_lead(server);
    if (!data_open(server, err))
        return false;
    fronts_make(server);
    mongo_tell(server);
    return true;
}

/* One of several: it may take long until it owns, or for ever. */
static bool start_beside(struct server *server, const struct addresses *addresses,
                         struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = NULL;
    bool owns;

    if (!server_peering_join(server, &owns, err) || !loops_start(server, err) ||
        (owns && !server_promote(server, err)) || !server_peering_begin(server, err) ||
        !server_certificate_load(server, &tls, err) ||
        !fronts_listen(server, addresses, tls, err) || !server_peering_listen(server, err))
        return false;
    if (owns) {
        mongo_tell(server);
        server_peering_own(server);
    }
    return true;
}

bool server_new(const struct settings *settings, struct log *log, struct server **ret_server,
                struct error *err)
{
    CLEANUP(server_free) struct server *server = MEMORY_NEW(struct server);
    struct addresses addresses;

    server->settings = settings;
    server->log = log;
    mutex_init(&server->keys_lock);
    mutex_init(&server->snapshots_lock);
    random_uuid(server->boot);
    if (!fronts_check(settings, &addresses, err) ||
        !origins_check(settings, "rest.cors_origins", settings->rest_cors_origins, err) ||
        !origins_check(settings, "gremlin.origins", settings->gremlin_origins, err) ||
        !audit_containers_check(settings->audit_containers, err) || !member_check(settings, err) ||
        !certificate_prepare(server, err))
        return false;
    hosts_prepare(server);
    if (member_is_wanted(settings) ? !start_beside(server, &addresses, err)
                                   : !start_alone(server, &addresses, err))
        return false;
    server_announce(server);
    *ret_server = TAKE(server);
    return true;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    presence_take_back(server->presence);
    rest_views_let_go(server->views);
    net_listener_free(server->rest);
    net_listener_free(server->table);
    net_listener_free(server->gremlin);
    for (int i = 0; i < MONGO_FACES; i++)
        net_listener_free(server->mongo[i]);
    net_listener_free(server->peers);
    net_workers_free(server->workers);
    follower_stop(server->follower);
    probes_stop(&server->probes);
    if (server->rest_front)
        rest_wait(server->rest_front);
    if (server->table_front)
        table_wait(server->table_front);
    if (server->mongo_front)
        mongo_wait(server->mongo_front);
    if (server->gremlin_front)
        gremlin_wait(server->gremlin_front);
    net_loops_free(server->loops);
    net_http_free(server->door_http[PEER_REST]);
    net_http_free(server->door_http[PEER_TABLE]);
    follower_free(server->follower);
    net_http_free(server->http);
    net_http_free(server->table_http);
    net_http_free(server->gremlin_http);
    gremlin_free(server->gremlin_front);
    mongo_free(server->mongo_front); /* whose cursors hold memory of owners */
    net_owners_free(server->owners);
    rest_free(server->rest_front);
    table_free(server->table_front);
    admin_free(server->admin_front);
    portal_free(server->portal);
    rest_views_free(server->views);
    front_queries_free(server->queries);
    if (server->scripts)
        script_pool_free(server->scripts);
    pauses_free(server->pauses);
    observer_free(server->observer); /* whose audit writes to the store */
    store_close(server->store);
    nodes_close(server->nodes);
    server_peering_leave(server);
    certificate_free(server->certificate);
    mutex_done(&server->keys_lock);
    mutex_done(&server->snapshots_lock);
    OPENSSL_cleanse(&server->keys, sizeof server->keys);
    memory_free(server);
}

/* --- Run ------------------------------------------------------------------------------------- */

/* Reads the certificate again for connections that come from now on. On an error the present one
 * stays. */
static bool certificate_reload(struct server *server, struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = NULL;

    if (!server_certificate_load(server, &tls, err))
        return false;
    if (server->rest)
        net_listener_set_tls(server->rest, tls);
    if (server->table)
        net_listener_set_tls(server->table, tls);
    if (server->gremlin)
        net_listener_set_tls(server->gremlin, tls);
    for (int i = 0; i < MONGO_FACES; i++)
        if (server->mongo[i])
            net_listener_set_tls(server->mongo[i], tls);
    return true;
}

static void reload(struct server *server)
{
    struct error err;

    notify_manager("RELOADING=1");
    if (server->observer)
        observer_reopen(server->observer);
    if (certificate_reload(server, &err))
        log_event(server->log, LOG_INFO, "certificate read again");
    else
        log_error(server->log, "the certificate stays as it was", &err);
    notify_manager("READY=1");
}

static void end_now(int number)
{
    static const char message[] = "orrery: second signal, ending at once\n";

    (void)!write(STDERR_FILENO, message, sizeof message - 1);
    _exit(128 + number);
}

/* From here on a second signal to stop is not waited for but ends the process. */
static void second_signal_ends(void)
{
    struct sigaction action = {.sa_handler = end_now};
    sigset_t set;

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool server_restarts(const struct server *server)
{
    return atomic_load(&server->restarts);
}

bool server_run(struct server *server)
{
    sigset_t set = stop_and_reload();
    int64_t drain_ms = server->settings->server_drain_ms;
    bool drained = true;
    int number;

    if (server->member)
        sigaddset(&set, SERVER_SIGNAL_TURNED);
    notify_manager("READY=1");
    while ((number = sigwaitinfo(&set, NULL)) != SIGTERM && number != SIGINT)
        if (number == SIGHUP)
            reload(server);
        else if (number == SERVER_SIGNAL_TURNED && !server_peering_turn(server))
            break;
    if (server_peering_is_fenced(server))
        drain_ms = MIN(drain_ms, (int64_t)FENCED_DRAIN_MS);

    if (atomic_load(&server->restarts)) {
        notify_manager("RELOADING=1");
        log_event(server->log, LOG_WARNING, "stopping to begin again");
    } else {
        notify_manager("STOPPING=1");
        log_event(server->log, LOG_INFO, "stopping",
                  LOG_TEXT("signal", number > 0 ? sigabbrev_np(number) : "none"));
        second_signal_ends();
    }
    if (server->doors)
        peer_doors_leave(server->doors);
    if (server->mongo_front)
        mongo_stop(server->mongo_front);
    if (server->rest)
        drained = net_listener_drain(server->rest, drain_ms);
    if (server->table)
        drained = net_listener_drain(server->table, drain_ms) && drained;
    if (server->gremlin)
        drained = net_listener_drain(server->gremlin, drain_ms) && drained;
    for (int i = 0; i < MONGO_FACES; i++)
        if (server->mongo[i])
            drained = net_listener_drain(server->mongo[i], drain_ms) && drained;
    if (server->peers)
        drained = net_listener_drain(server->peers, drain_ms) && drained;
    if (!drained)
        log_event(server->log, LOG_WARNING, "requests were cut off", LOG_INT("drain_ms", drain_ms));
    return drained;
}
