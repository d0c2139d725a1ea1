#include "server/follower.h"

#include "base/memory.h"
#include "base/thread.h"
#include "catalogue/node.h"
#include "engine/guard.h"
#include "front/rest/rest.h"
#include "server/nodes.h"

#include <stdatomic.h>

enum { RETRY_MS = 1000 };

struct follower {
    struct follower_options options;
    struct thread thread;
    struct net_workers *workers;

    /* What is read, opened by the thread; there behind `front`. */
    struct nodes *nodes;
    struct cluster *cluster;
    struct catalogue *catalogue;
    struct meters *meters;
    struct item_gates *gates;
    struct rest_follow follow;
    _Atomic(struct rest *) front; /* NULL: not yet */

    struct mutex lock; /* of what follows */
    struct condition changed;
    bool wanted, stopping;

    _Atomic uint64_t taken, passed_on, loads;
};

bool follower_is_wanted(const struct settings *settings)
{
    bool audited = settings->audit_record && settings->audit_reads && settings->audit_containers[0];

    return settings->servers_follower_reads && !audited && !settings->log_access[0] &&
           !settings->trace_endpoint[0];
}

/* --- What requests ask ------------------------------------------------------------------------ */

static bool pass_take(void *context, uint64_t ret_pass[2])
{
    struct follower *follower = context;

    return peer_leases_take(follower->options.leases, ret_pass) &&
           !catalogue_is_reserved(follower->catalogue);
}

static bool pass_holds(void *context, const uint64_t pass[2])
{
    struct follower *follower = context;

    return peer_leases_hold(follower->options.leases, pass);
}

static void pass_on(struct net_http_request *request, void *context)
{
    struct follower *follower = context;

    atomic_fetch_add(&follower->passed_on, 1);
    net_http_hand_over(request, peer_request_pass_on,
                       peer_doors_door(follower->options.doors, PEER_REST));
}

static bool lent_admit(void *context, uint32_t partition, int64_t price_cru)
{
    return peer_leases_admit(((struct follower *)context)->options.leases, partition, price_cru);
}

static void lent_settle(void *context, uint32_t partition, int64_t price_cru, int64_t charge_cru)
{
    peer_leases_settle(((struct follower *)context)->options.leases, partition, price_cru,
                       charge_cru);
}

/* --- Opening and loading ---------------------------------------------------------------------- */

static bool on_rejoin(void *context UNUSED, struct error *err UNUSED)
{
    return true; /* nothing of a node is remembered */
}

static bool node_follow(struct follower *follower, const char *name, struct engine *engine,
                        struct error *err)
{
    if (!cluster_follow(follower->cluster, name, engine, err))
        return false;
    engine_guard_keep(engine, &(struct engine_guard_hooks){on_rejoin, NULL}, false);
    return true;
}

/* Those that were added to the cluster since. One that was removed is in no map. */
static bool nodes_more(struct follower *follower, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);
    struct engine *engine;

    if (!catalogue_nodes_peek(nodes_at(follower->nodes, 0)->engine, table, err))
        return false;
    for (size_t i = 0; i < table->count; i++) {
        const struct node_info *info = &table->list[i];
        bool here = false;

        for (size_t j = 0; j < nodes_count(follower->nodes); j++)
            here |= strcmp(engine_node_id(nodes_at(follower->nodes, j)->engine), info->id) == 0;
        if (here || !info->remembered)
            continue;
        if (!nodes_add(follower->nodes, info->name, slice_of_text(info->url), &engine, err) ||
            !node_follow(follower, info->name, engine, err))
            return false;
    }
    return true;
}

static void front_make(struct follower *follower)
{
    const struct follower_options *options = &follower->options;
    struct rest_options rest = {
        .services =
            {
                .hosts = options->hosts,
                .catalogue = follower->catalogue,
                .meters = follower->meters,
                .gates = follower->gates,
                .clock = &clock_system,
                .workers = follower->workers,
                .owners = options->owners,
                .log = options->log,
                .consistency = options->consistency,
                .server = options->settings->servers_name,
                .follows = true,
                .unproved = !options->settings->servers_follower_proofs,
            },
        .door = options->door,
        .cors_origins = options->settings->rest_cors_origins,
        .follow = &follower->follow,
    };

    atomic_store(&follower->front, rest_new(&rest));
}

/* As far as it has come; what is there already is left. */
static bool open_all(struct follower *follower, struct error *err)
{
    const struct follower_options *options = &follower->options;

    if (!follower->nodes && !nodes_follow(options->settings, options->log, &follower->nodes, err))
        return false;
    for (size_t i = cluster_count(follower->cluster); i < nodes_count(follower->nodes); i++)
        if (!node_follow(follower, nodes_at(follower->nodes, i)->name,
                         nodes_at(follower->nodes, i)->engine, err))
            return false;
    return catalogue_open(&(struct catalogue_options){.cluster = follower->cluster,
                                                      .limits = &options->limits,
                                                      .log = options->log,
                                                      .follows = true},
                          &follower->catalogue, err);
}

static bool load(struct follower *follower, struct error *err)
{
    if (!follower->catalogue) {
        if (!open_all(follower, err))
            return false;
        front_make(follower);
        return true;
    }
    return nodes_more(follower, err) && catalogue_follow(follower->catalogue, err);
}

/* The pass is read before the catalogue: what is loaded is at least as young. */
static bool load_wanted(struct follower *follower, struct error *err)
{
    uint64_t pass[2];

    if (!peer_leases_wanted(follower->options.leases, pass))
        return true;
    if (!load(follower, err))
        return false;
    atomic_fetch_add(&follower->loads, 1);
    peer_leases_loaded(follower->options.leases, pass);
    return true;
}

static void follower_run(void *context)
{
    struct follower *follower = context;
    bool stopping = false, told = false;

    while (!stopping) {
        struct error err;
        bool loaded = load_wanted(follower, &err);

        if (!loaded && !told)
            log_error(follower->options.log,
                      "reads are passed on, for they cannot be answered here", &err);
        told = !loaded;
        WITH_LOCK (&follower->lock) {
            int64_t until_ms = clock_monotonic_ms() + RETRY_MS;

            while (!follower->stopping && !follower->wanted &&
                   (loaded || clock_monotonic_ms() < until_ms))
                if (loaded)
                    condition_wait(&follower->changed, &follower->lock);
                else
                    condition_wait_until(&follower->changed, &follower->lock, until_ms);
            follower->wanted = false;
            stopping = follower->stopping;
        }
    }
}

void follower_wake(struct follower *follower)
{
    WITH_LOCK (&follower->lock) {
        follower->wanted = true;
        condition_broadcast(&follower->changed);
    }
}

/* --- Requests --------------------------------------------------------------------------------- */

/* /dbs/NAME/colls/NAME/docs/ID, with or without an account before it. */
static bool path_is_item(struct slice path)
{
    static const char *const wanted[] = {"dbs", NULL, "colls", NULL, "docs", NULL};
    struct slice first, rest;
    size_t count = 0;
    bool more = true;

    path = path.len ? slice_skip(path, 1) : path;
    if (slice_split(path, '/', &first, &rest) && !slice_equal(first, SLICE("dbs")))
        path = rest;

    for (; more && count < ARRAY_LEN(wanted); count++) {
        struct slice part = path;

        more = slice_split(path, '/', &part, &path);
        if (wanted[count] && !slice_equal(part, slice_of_text(wanted[count])))
            return false;
    }
    return !more && count == ARRAY_LEN(wanted);
}

/* Could it be answered here, by what it says itself? Else no lease is asked for. */
static bool request_fits(const struct follower *follower, const struct net_http_request *request)
{
    struct slice level = net_http_header(request, SLICE("x-ms-consistency-level"));
    enum item_level wanted;
    struct error ignored;

    return (slice_equal(request->method, SLICE("GET")) ||
            slice_equal(request->method, SLICE("HEAD"))) &&
           path_is_item(request->path) &&
           front_consistency_find(&follower->options.consistency, level, &wanted, &ignored) &&
           (wanted > ITEM_SESSION ||
            (wanted == ITEM_SESSION &&
             net_http_header(request, SLICE("x-ms-session-token")).len > 0));
}

bool follower_try(struct follower *follower, struct net_http_request *request)
{
    struct rest *front;
    uint64_t pass[2];

    if (!request_fits(follower, request))
        return false;
    peer_leases_want(follower->options.leases, follower->options.doors,
                     net_http_connection_of(request));
    front = atomic_load(&follower->front);
    /* also before there is a front: so it is told that one is wanted */
    if (!peer_leases_take(follower->options.leases, pass) || !front ||
        !rest_follow_try(request, front))
        return false;
    atomic_fetch_add(&follower->taken, 1);
    return true;
}

void follower_metrics(const struct follower *follower, struct follower_metrics *ret_metrics)
{
    uint64_t passed_on = atomic_load(&follower->passed_on);

    *ret_metrics = (struct follower_metrics){
        .answered = atomic_load(&follower->taken) - MIN(passed_on, atomic_load(&follower->taken)),
        .passed_on = passed_on,
        .loads = atomic_load(&follower->loads),
    };
}

/* --- Beginning and end ------------------------------------------------------------------------ */

struct follower *follower_new(const struct follower_options *options)
{
    struct follower *follower = MEMORY_NEW(struct follower);
    struct net_workers_settings workers = net_workers_settings_default();

    follower->options = *options;
    workers.threads_max = (size_t)options->settings->net_workers_max;
    workers.queue_max = (size_t)options->settings->net_work_queue_max;
    follower->workers = net_workers_new(&workers);
    follower->cluster = cluster_new(&(struct commit_options){.log = options->log});
    follower->meters = meters_new(&clock_system);
    meters_borrow(follower->meters, &(struct meters_lender){lent_admit, lent_settle, follower});
    follower->gates = item_gates_new();
    follower->follow = (struct rest_follow){pass_take, pass_holds, pass_on, follower};
    mutex_init(&follower->lock);
    condition_init(&follower->changed);
    thread_start(&follower->thread, "follower", follower_run, follower);
    return follower;
}

void follower_stop(struct follower *follower)
{
    if (!follower)
        return;
    WITH_LOCK (&follower->lock) {
        follower->stopping = true;
        condition_broadcast(&follower->changed);
    }
    thread_join(&follower->thread);
    net_workers_free(TAKE(follower->workers));
}

void follower_free(struct follower *follower)
{
    if (!follower)
        return;
    rest_free(atomic_load(&follower->front));
    for (size_t i = 0; follower->nodes && i < cluster_count(follower->cluster); i++)
        engine_guard_leave(cluster_at(follower->cluster, i)->engine);
    catalogue_close(follower->catalogue);
    cluster_free(follower->cluster);
    nodes_close(follower->nodes);
    meters_free(follower->meters);
    item_gates_free(follower->gates);
    condition_done(&follower->changed);
    mutex_done(&follower->lock);
    memory_free(follower);
}
