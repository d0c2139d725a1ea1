/* Leases between servers in one process: who may read when, and how long a change waits. */
#include "peer/leases.h"

#include "server/x509.h"
#include "unit/net/fixture.h"

#define READ "GET /read HTTP/1.1\r\nHost: a\r\n\r\n"

enum { LEASE_MS = 1000, PARTITION = 7, OWNER = 1 };

/* A server: whom clients ask, or who owns. */
struct place {
    struct fixture front;
    struct peer_leases *leases;
    struct peer_doors *doors;
    struct net_http *door_http;
    struct net_listener *gate;
    atomic_bool hangs;
    atomic_int granted;
    _Atomic int64_t spent;
    _Atomic int64_t lends;
};

struct world {
    struct net_tls_context *tls;
    struct place *f, *a;
    struct client *client;
};

static struct net_tls_context *peers_tls(void)
{
    static struct certificate_names names = {.count = 1};
    CLEANUP(buf_done) struct buf authority, key, own;
    struct net_tls_context *context = NULL;
    struct error err;

    names.list[0].text = SLICE("peers.test");
    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&key, X509_PEM_BYTES_MAX);
    buf_init(&own, X509_PEM_BYTES_MAX);
    assert_ok(x509_make_authority(clock_wall_ms(), &authority, &key, &err), &err);
    assert_ok(
        x509_issue(buf_slice(&authority), buf_slice(&key), &names, clock_wall_ms(), &own, &err),
        &err);
    assert_ok(net_tls_context_new_peers(buf_slice(&own), buf_slice(&own), buf_slice(&authority),
                                        "peers.test", &context, &err),
              &err);
    return context;
}

/* A read at a follower asks for a lease; this one holds up the whole loop where it is to hang. */
static bool own(struct net_http_request *request, void *context)
{
    struct place *place = context;
    uint64_t pass[2];
    bool held = peer_leases_take(place->leases, pass);

    peer_leases_want(place->leases, place->doors, net_http_connection_of(request));
    fixture_answer(request, held ? "here" : "not here");
    while (atomic_load(&place->hangs))
        usleep(1000);
    return true;
}

static bool repeats(const struct net_http_request *request UNUSED, void *context UNUSED)
{
    return true;
}

static int64_t lend(void *context, uint32_t partition, int64_t spent_cru, int64_t wanted_cru)
{
    struct place *place = context;

    assert_int_equal(partition, PARTITION);
    atomic_fetch_add(&place->spent, spent_cru);
    return MIN(wanted_cru, (int64_t)atomic_load(&place->lends));
}

static void granted(void *context)
{
    atomic_fetch_add(&((struct place *)context)->granted, 1);
}

static struct place *place_new(struct net_tls_context *tls)
{
    struct net_listener_settings settings = net_listener_settings_default();
    struct net_listener_settings gate_settings = net_listener_settings_default();
    struct net_http_settings http = net_http_settings_default();
    struct place *place = MEMORY_NEW(struct place);
    struct fixture *front = &place->front;
    struct net_address address;
    struct error err;

    mutex_init(&front->lock);
    condition_init(&front->parked_came);
    assert_ok(net_loops_new(1, &front->loops, &err), &err);
    assert_ok(net_address_parse(SLICE("127.0.0.1:0"), &address, &err), &err);
    place->leases = peer_leases_new(&(struct peer_leases_options){
        .lease_ms = LEASE_MS, .lend = lend, .granted = granted, .context = place});
    place->doors = peer_doors_new(&(struct peer_doors_options){
        .tls = tls, .leases = place->leases, .wait_ms = 60 * 1000, .drain_ms = 1000});
    front->http = net_http_new(front->loops, &http, fixture_handle, front);
    place->door_http = net_http_new(front->loops, &http, peer_request_handle,
                                    peer_doors_door(place->doors, PEER_REST));
    peer_doors_requests(place->doors, PEER_REST, front->loops,
                        &(struct peer_requests){place->door_http, own, repeats, place});
    gate_settings.tls_required = true;
    assert_ok(net_listener_new(front->loops, &address, &settings, &peer_door_protocol,
                               peer_doors_door(place->doors, PEER_REST), NULL, &front->listener,
                               &err),
              &err);
    assert_ok(net_listener_new(front->loops, &address, &gate_settings, &peer_gate_protocol,
                               place->doors, tls, &place->gate, &err),
              &err);
    return place;
}

static void place_free(struct place *place)
{
    net_listener_free(place->front.listener);
    net_listener_free(place->gate);
    net_loops_free(place->front.loops);
    net_http_free(place->door_http);
    net_http_free(place->front.http);
    peer_doors_free(place->doors);
    peer_leases_free(place->leases);
    condition_done(&place->front.parked_came);
    mutex_done(&place->front.lock);
    memory_free(place);
}

/* F follows A, which owns, and has found it so just now. */
static int setup(void **state)
{
    struct world *world = MEMORY_NEW(struct world);

    world->tls = peers_tls();
    world->f = place_new(world->tls);
    world->a = place_new(world->tls);
    peer_doors_front(world->a->doors, PEER_REST,
                     &(struct peer_front_local){.protocol = &net_http_protocol,
                                                .context = world->a->front.http,
                                                .handle = fixture_handle,
                                                .handle_context = &world->a->front});
    peer_leases_own(world->a->leases, false);
    peer_doors_ours(world->a->doors);
    peer_doors_theirs(world->f->doors, OWNER, net_listener_address(world->a->gate));
    peer_leases_seen(world->f->leases, OWNER, clock_monotonic_ms());
    world->client = client_new(&world->f->front);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    client_free(world->client);
    place_free(world->f);
    place_free(world->a);
    net_tls_context_unref(world->tls);
    memory_free(world);
    return 0;
}

static void read_once(struct world *world)
{
    struct answer answer;

    CLIENT_SEND(world->client, READ);
    assert_true(client_read(world->client, &answer));
    assert_int_equal(answer.status, 200);
}

/* Reads until a lease is there of which the catalogue was not loaded, and loads it. */
static void until_loaded(struct world *world, uint64_t pass[2])
{
    for (int i = 0; i < 1000 && !peer_leases_wanted(world->f->leases, pass); i++) {
        peer_leases_seen(world->f->leases, OWNER, clock_monotonic_ms());
        read_once(world);
        usleep(5000);
    }
    assert_true(peer_leases_wanted(world->f->leases, pass));
    peer_leases_loaded(world->f->leases, pass);
}

static void a_lease_holds_until_it_is_called_back(void **state)
{
    struct world *world = *state;
    uint64_t first[2], second[2], pass[2];
    int64_t begun_ms;

    assert_false(peer_leases_take(world->f->leases, pass));
    until_loaded(world, first);
    assert_true(atomic_load(&world->f->granted) > 0);
    assert_true(peer_leases_take(world->f->leases, pass));
    assert_memory_equal(pass, first, sizeof pass);
    assert_true(peer_leases_hold(world->f->leases, pass));

    begun_ms = clock_monotonic_ms();
    peer_leases_recall(world->a->leases);
    assert_true(clock_monotonic_ms() - begun_ms <
                LEASE_MS / 2); /* it was returned, not waited for */
    assert_false(peer_leases_hold(world->f->leases, first));
    for (int i = 0; i < 20; i++) { /* none is given while the change is made */
        read_once(world);
        usleep(10000);
    }
    assert_false(peer_leases_wanted(world->f->leases, second));
    peer_leases_recalled(world->a->leases);

    until_loaded(world, second);
    assert_int_equal(second[0], first[0]);
    assert_true(second[1] > first[1]);
    assert_false(peer_leases_hold(world->f->leases, first)); /* by what was loaded before */
    assert_true(peer_leases_hold(world->f->leases, second));
}

static void nobody_is_waited_for_where_nobody_reads(void **state)
{
    struct world *world = *state;
    int64_t begun_ms = clock_monotonic_ms();

    peer_leases_recall(world->a->leases);
    peer_leases_recalled(world->a->leases);
    assert_true(clock_monotonic_ms() - begun_ms < LEASE_MS / 2);
}

/* The follower's lease is over by then, by its own clock too. */
static void a_follower_that_hangs_is_waited_for_as_long_as_its_lease_lasts(void **state)
{
    struct world *world = *state;
    uint64_t pass[2];
    int64_t begun_ms = clock_monotonic_ms();

    until_loaded(world, pass);
    atomic_store(&world->f->hangs, true);
    CLIENT_SEND(world->client, READ);
    usleep(50000);
    begun_ms = clock_monotonic_ms();
    peer_leases_recall(world->a->leases);
    assert_true(clock_monotonic_ms() - begun_ms <= LEASE_MS + 100);
    assert_false(peer_leases_hold(world->f->leases, pass));
    peer_leases_recalled(world->a->leases);
    atomic_store(&world->f->hangs, false);
    client_expect(world->client, 200, SLICE("here"));
}

/* What is not known to be closed at both ends may still be used. */
static void a_connection_that_is_cut_does_not_end_a_lease_for_the_owner(void **state)
{
    struct world *world = *state;
    uint64_t pass[2];
    int64_t begun_ms;

    until_loaded(world, pass);
    begun_ms = clock_monotonic_ms();
    peer_doors_leave(world->f->doors); /* the follower closes it at its next tick */
    for (int i = 0; i < 1000 && peer_leases_hold(world->f->leases, pass); i++)
        usleep(1000);
    peer_leases_recall(world->a->leases);
    assert_true(clock_monotonic_ms() - begun_ms >= LEASE_MS / 4);
    assert_true(clock_monotonic_ms() - begun_ms <= LEASE_MS + 200);
    peer_leases_recalled(world->a->leases);
}

/* A server that was replaced may give leases as before: it does not know it yet. */
static void a_lease_is_worth_nothing_once_no_beat_has_found_its_owner_for_long(void **state)
{
    struct world *world = *state;
    uint64_t pass[2];

    until_loaded(world, pass);
    peer_leases_seen(world->f->leases, OWNER, clock_monotonic_ms() - LEASE_MS);
    assert_false(peer_leases_hold(world->f->leases, pass));
    peer_leases_seen(world->f->leases, OWNER, clock_monotonic_ms());
    assert_true(peer_leases_hold(world->f->leases, pass));
    peer_leases_seen(world->f->leases, OWNER + 1, clock_monotonic_ms());
    assert_false(peer_leases_hold(world->f->leases, pass));
}

static void whoever_takes_over_waits_for_leases_of_the_owner_before(void **state)
{
    struct world *world = *state;
    int64_t begun_ms = clock_monotonic_ms();

    peer_leases_own(world->f->leases, true);
    peer_leases_recall(world->f->leases);
    assert_true(clock_monotonic_ms() - begun_ms >= LEASE_MS);
    peer_leases_recalled(world->f->leases);
    begun_ms = clock_monotonic_ms();
    peer_leases_recall(world->f->leases); /* once */
    peer_leases_recalled(world->f->leases);
    assert_true(clock_monotonic_ms() - begun_ms < LEASE_MS / 2);
}

static void what_is_spent_is_told_and_what_is_lent_runs_out(void **state)
{
    struct world *world = *state;
    uint64_t pass[2];
    bool admitted = false;

    until_loaded(world, pass);
    assert_false(peer_leases_admit(world->f->leases, PARTITION, 100));
    atomic_store(&world->a->lends, 500);
    for (int i = 0; i < 1000 && !admitted; i++) {
        read_once(world);
        usleep(5000);
        admitted = peer_leases_admit(world->f->leases, PARTITION, 100);
    }
    assert_true(admitted);
    peer_leases_settle(world->f->leases, PARTITION, 100, 450);
    assert_false(peer_leases_admit(world->f->leases, PARTITION, 100));
    atomic_store(&world->a->lends, 0);
    for (int i = 0; i < 1000 && !atomic_load(&world->a->spent); i++) {
        read_once(world);
        usleep(5000);
    }
    assert_int_equal(atomic_load(&world->a->spent), 450);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_holds_until_it_is_called_back),
        TEST(nobody_is_waited_for_where_nobody_reads),
        TEST(a_follower_that_hangs_is_waited_for_as_long_as_its_lease_lasts),
        TEST(a_connection_that_is_cut_does_not_end_a_lease_for_the_owner),
        TEST(a_lease_is_worth_nothing_once_no_beat_has_found_its_owner_for_long),
        TEST(whoever_takes_over_waits_for_leases_of_the_owner_before),
        TEST(what_is_spent_is_told_and_what_is_lent_runs_out),
    };

    return cmocka_run_group_tests_name("peer/leases", tests, NULL, NULL);
}
