/* Servers in one process: requests at the door of one, done by another. */
#include "peer/doors.h"

#include "server/x509.h"
#include "unit/net/fixture.h"

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define POST(path, length, body)                                                                   \
    "POST " path " HTTP/1.1\r\n" HOST "Content-Length: " length "\r\n\r\n" body

enum { MEMORY_MAX = 256 * 1024 * 1024, LARGE = 700000 };

/* A server: the fixture is its front, with the door as its listener. */
struct place {
    struct fixture front;
    struct memory_meter memory;
    struct peer_doors *doors;
    struct net_http *door_http;
    struct net_listener *gate;
};

struct world {
    struct net_tls_context *tls;
    struct place *f, *a, *b; /* whom clients ask; and two that may own */
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

static bool own(struct net_http_request *request, void *context UNUSED)
{
    if (!slice_equal(request->path, SLICE("/own")))
        return false;
    fixture_answer(request, "by itself");
    return true;
}

static bool repeats(const struct net_http_request *request, void *context UNUSED)
{
    return slice_equal(request->method, SLICE("GET"));
}

/* /at-once defers, answers in the next line and ends the connection: nothing of it is left when the
 * handler returns, unless whoever calls it sees to that. */
static void handle(struct net_http_request *request, void *context)
{
    if (!slice_equal(request->path, SLICE("/at-once"))) {
        fixture_handle(request, context);
        return;
    }
    net_http_defer(request);
    net_http_respond(request, &(struct net_http_response){
                                  .status = 200, .body = SLICE("at once"), .close = true});
}

static struct place *place_new(struct net_tls_context *tls, int64_t wait_ms, size_t memory_max)
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
    memory_meter_init(&place->memory, NULL, memory_max);
    http.memory = &place->memory;
    place->doors = peer_doors_new(&(struct peer_doors_options){
        .tls = tls, .memory = &place->memory, .wait_ms = wait_ms, .drain_ms = 1000});
    front->http = net_http_new(front->loops, &http, handle, front);
    place->door_http = net_http_new(front->loops, &http, peer_request_handle,
                                    peer_doors_door(place->doors, PEER_REST));
    peer_doors_requests(place->doors, PEER_REST, front->loops,
                        &(struct peer_requests){place->door_http, own, repeats, NULL});
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

/* In the order that a server stops in. */
static void place_free(struct place *place)
{
    net_listener_free(place->front.listener);
    net_listener_free(place->gate);
    net_loops_free(place->front.loops);
    net_http_free(place->door_http);
    net_http_free(place->front.http);
    peer_doors_free(place->doors);
    assert_int_equal(memory_meter_used(&place->memory), 0);
    condition_done(&place->front.parked_came);
    mutex_done(&place->front.lock);
    memory_free(place);
}

/* The place owns from now on. */
static void place_own(struct place *place)
{
    peer_doors_front(place->doors, PEER_REST,
                     &(struct peer_front_local){.protocol = &net_http_protocol,
                                                .context = place->front.http,
                                                .handle = handle,
                                                .handle_context = &place->front});
    peer_doors_ours(place->doors);
}

static void place_follow(struct place *place, const struct place *owner, uint64_t incarnation)
{
    peer_doors_theirs(place->doors, incarnation, net_listener_address(owner->gate));
}

static struct peer_doors_metrics place_metrics(const struct place *place)
{
    struct peer_doors_metrics metrics;

    peer_doors_metrics(place->doors, &metrics);
    return metrics;
}

/* F follows A, which owns. */
static struct world *world_new_with(int64_t wait_ms, size_t memory_max)
{
    struct world *world = MEMORY_NEW(struct world);

    world->tls = peers_tls();
    world->f = place_new(world->tls, wait_ms, memory_max);
    world->a = place_new(world->tls, wait_ms, memory_max);
    world->b = place_new(world->tls, wait_ms, memory_max);
    place_own(world->a);
    place_follow(world->f, world->a, 1);
    return world;
}

static struct world *world_new(void)
{
    return world_new_with(60 * 1000, MEMORY_MAX);
}

static void world_free(struct world *world)
{
    place_free(world->f);
    place_free(world->a);
    place_free(world->b);
    net_tls_context_unref(world->tls);
    memory_free(world);
}
CLEANUP_FN(struct world *, world_free)

/* Waits until so many requests wait at the place. */
static void until_waiting(const struct place *place, uint64_t count)
{
    for (int i = 0; i < 10000 && place_metrics(place).requests_waiting != count; i++)
        usleep(1000);
    assert_int_equal(place_metrics(place).requests_waiting, count);
}

static void requests_are_done_by_the_owner(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);
    CLEANUP(buf_done) struct buf large;
    struct net_listener_metrics gate;
    struct answer answer;

    buf_init(&large, BUF_DEFAULT_MAX);
    for (int i = 0; i < 700000; i++)
        buf_append_byte(&large, (uint8_t)('a' + i % 26));
    CLIENT_SEND(client, POST("/echo", "5", "hello"));
    client_expect(client, 200, SLICE("hello"));
    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                        "5\r\nagain\r\n0\r\n\r\n");
    client_expect(client, 200, SLICE("again"));
    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 700000\r\n\r\n");
    client_send(client, buf_slice(&large));
    client_expect(client, 200, buf_slice(&large));
    CLIENT_SEND(client, GET("/size/700000") GET("/arena/700000") GET("/size/0") GET("/own"));
    client_expect(client, 200, buf_slice(&large));
    client_expect(client, 200, buf_slice(&large));
    client_expect(client, 200, SLICE(""));
    client_expect(client, 200, SLICE("by itself"));
    CLIENT_SEND(client, "HEAD /size/3 HTTP/1.1\r\n" HOST "\r\n" GET("/bye"));
    while (!memmem(client->input.data ? client->input.data : (void *)"", client->input.len,
                   "\r\n\r\n", 4))
        assert_true(client_receive(client));
    assert_true(memmem(client->input.data, client->input.len, "Content-Length: 3\r\n", 19));
    buf_consume(&client->input,
                (size_t)((uint8_t *)memmem(client->input.data, client->input.len, "\r\n\r\n", 4) -
                         client->input.data) +
                    4);
    assert_true(client_read(client, &answer)); /* of /bye, which ends the client's connection */
    assert_contains(answer.head, "Connection: close\r\n");
    client_expect_closed(client);
    net_listener_metrics(world->a->gate, &gate);
    assert_int_equal(gate.accepted, 1); /* one way for all of them */
    assert_int_equal(place_metrics(world->a).requests_taken, 8);
    assert_int_equal(place_metrics(world->f).requests, 8);
    assert_int_equal(place_metrics(world->f).requests_repeated, 0);
}

static void requests_of_many_clients_do_not_wait_for_each_other(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    struct client *clients[40];
    struct net_http_request *parked[40];

    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        struct sockaddr_in local;
        socklen_t len = sizeof local;

        clients[i] = client_new(&world->f->front);
        CLIENT_SEND(clients[i], GET("/later"));
        parked[i] = fixture_parked(&world->a->front);
        /* the owner sees the client, not the server that passes it on */
        assert_int_equal(getsockname(clients[i]->fd, (struct sockaddr *)&local, &len), 0);
        assert_int_equal(net_address_port(&parked[i]->peer), ntohs(local.sin_port));
        assert_false(parked[i]->tls);
    }
    for (size_t i = ARRAY_LEN(clients); i-- > 0;) {
        fixture_answer(parked[i], "answered");
        client_expect(clients[i], 200, SLICE("answered"));
    }
    for (size_t i = 0; i < ARRAY_LEN(clients); i++)
        client_free(clients[i]);
}

static void a_client_that_leaves_cancels_what_it_asked(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    struct client *client = client_new(&world->f->front);
    CLEANUP(client_free) struct client *other = client_new(&world->f->front);
    struct net_http_request *first, *second;

    CLIENT_SEND(client, GET("/later") GET("/later"));
    first = fixture_parked(&world->a->front);
    second = fixture_parked(&world->a->front);
    client_free(client);
    for (int i = 0; i < 10000 && !(net_http_cancelled(first) && net_http_cancelled(second)); i++)
        usleep(1000);
    assert_true(net_http_cancelled(first) && net_http_cancelled(second));
    fixture_answer(second, "to nobody");
    fixture_answer(first, "to nobody");
    CLIENT_SEND(other, GET("/size/3"));
    client_expect(other, 200, SLICE("abc"));
}

static void what_an_owner_has_not_begun_goes_to_the_next(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *before = client_new(&world->f->front);
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);
    struct net_http_request *begun;

    CLIENT_SEND(before, POST("/later", "4", "what"));
    begun = fixture_parked(&world->a->front);
    peer_doors_nobodys(world->a->doors);
    /* sent by the way that is open, to a server that owns no more */
    CLIENT_SEND(client, POST("/echo", "5", "write"));
    for (int i = 0; i < 10000 && !place_metrics(world->f).requests_repeated; i++)
        usleep(1000);
    assert_int_equal(place_metrics(world->a).requests_taken, 1);
    until_waiting(world->f, 1);
    fixture_answer(begun, "done"); /* what was begun is answered */
    client_expect(before, 200, SLICE("done"));
    place_own(world->b);
    place_follow(world->f, world->b, 2);
    client_expect(client, 200, SLICE("write"));
    CLIENT_SEND(before, POST("/echo", "4", "more")); /* by the connection of before */
    client_expect(before, 200, SLICE("more"));
    assert_int_equal(place_metrics(world->b).requests_taken, 2);
    assert_int_equal(place_metrics(world->f).requests_lost, 0);
}

static void drain(void *context)
{
    assert(net_listener_drain(context, 60 * 1000));
}

static void an_owner_that_drains_answers_what_it_has_begun(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);
    struct net_http_request *begun;
    struct thread thread;

    CLIENT_SEND(client, POST("/later", "4", "what"));
    begun = fixture_parked(&world->a->front);
    peer_doors_nobodys(world->a->doors);
    thread_start(&thread, "drain", drain, world->a->gate);
    CLIENT_SEND(client, POST("/echo", "4", "next"));
    until_waiting(world->f, 1); /* refused at the gate, or never sent */
    fixture_answer(begun, "done");
    client_expect(client, 200, SLICE("done"));
    thread_join(&thread);
    place_own(world->b);
    place_follow(world->f, world->b, 2);
    client_expect(client, 200, SLICE("next"));
    assert_int_equal(place_metrics(world->a).requests_taken, 1);
}

static void an_owner_that_is_gone_may_have_done_what_it_was_sent(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *reader = client_new(&world->f->front);
    CLEANUP(client_free) struct client *writer = client_new(&world->f->front);
    struct net_http_request *read, *write, *again;
    struct answer answer;

    CLIENT_SEND(reader, GET("/later"));
    read = fixture_parked(&world->a->front);
    CLIENT_SEND(writer, POST("/later", "4", "what"));
    write = fixture_parked(&world->a->front);
    net_listener_free(TAKE(world->a->gate)); /* all at once, as when it is killed */
    assert_true(client_read(writer, &answer));
    assert_int_equal(answer.status, 408);
    assert_true(net_http_cancelled(read) && net_http_cancelled(write));
    fixture_answer(read, "to nobody");
    fixture_answer(write, "to nobody");
    place_own(world->b);
    place_follow(world->f, world->b, 2);
    again = fixture_parked(&world->b->front);
    fixture_answer(again, "read again");
    client_expect(reader, 200, SLICE("read again"));
    CLIENT_SEND(writer, POST("/echo", "4", "more"));
    client_expect(writer, 200, SLICE("more"));
    assert_int_equal(place_metrics(world->f).requests_lost, 1);
    assert_int_equal(place_metrics(world->f).requests_repeated, 1);
}

/* The old one hangs: nothing of it is heard, and another owns. */
static void an_owner_that_hangs_is_left(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *reader = client_new(&world->f->front);
    CLEANUP(client_free) struct client *writer = client_new(&world->f->front);
    struct net_http_request *read, *write;
    struct answer answer;

    CLIENT_SEND(reader, GET("/later"));
    read = fixture_parked(&world->a->front);
    CLIENT_SEND(writer, POST("/later", "4", "what"));
    write = fixture_parked(&world->a->front);
    place_own(world->b);
    place_follow(world->f, world->b, 2);
    fixture_answer(fixture_parked(&world->b->front), "read again");
    client_expect(reader, 200, SLICE("read again"));
    assert_true(client_read(writer, &answer));
    assert_int_equal(answer.status, 408);
    assert_int_equal(place_metrics(world->a).requests_taken, 2);
    fixture_answer(read, "to nobody");
    fixture_answer(write, "to nobody");
}

/* An idle way to the owner before is not used, though that one would take what comes. */
static void a_new_owner_is_asked_from_its_first_moment(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);

    CLIENT_SEND(client, POST("/echo", "4", "what"));
    client_expect(client, 200, SLICE("what"));
    place_own(world->b);
    place_follow(world->f, world->b, 2);
    CLIENT_SEND(client, POST("/echo", "4", "what"));
    client_expect(client, 200, SLICE("what"));
    assert_int_equal(place_metrics(world->a).requests_taken, 1);
    assert_int_equal(place_metrics(world->b).requests_taken, 1);
}

static void what_waits_is_done_here_when_this_server_begins_to_own(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);

    CLIENT_SEND(client, POST("/echo", "5", "there"));
    client_expect(client, 200, SLICE("there"));
    peer_doors_nobodys(world->f->doors);
    CLIENT_SEND(client, POST("/later", "4", "what") POST("/echo", "4", "here") GET("/size/3"));
    until_waiting(world->f, 3);
    place_own(world->f);
    fixture_answer(fixture_parked(&world->f->front), "deferred here");
    client_expect(client, 200, SLICE("deferred here"));
    client_expect(client, 200, SLICE("here"));
    client_expect(client, 200, SLICE("abc"));
    CLIENT_SEND(client, POST("/echo", "4", "more")); /* by the same connection */
    client_expect(client, 200, SLICE("more"));
    assert_int_equal(place_metrics(world->a).requests_taken, 1);
}

static void a_handler_that_takes_over_may_end_the_connection_at_once(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);

    peer_doors_nobodys(world->f->doors);
    CLIENT_SEND(client, GET("/at-once"));
    until_waiting(world->f, 1);
    place_own(world->f);
    client_expect(client, 200, SLICE("at once"));
    client_expect_closed(client);
}

/* It may be what ends them: so it is not handed from one to the next until none is left. */
static void a_read_that_several_owners_do_not_outlive_is_not_repeated(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);
    struct net_http_request *parked[3];
    struct answer answer;

    place_own(world->b);
    CLIENT_SEND(client, GET("/later"));
    parked[0] = fixture_parked(&world->a->front);
    place_follow(world->f, world->b, 2);
    parked[1] = fixture_parked(&world->b->front);
    place_follow(world->f, world->a, 3);
    parked[2] = fixture_parked(&world->a->front);
    place_follow(world->f, world->b, 4);
    assert_true(client_read(client, &answer));
    assert_int_equal(answer.status, 408);
    assert_int_equal(place_metrics(world->f).requests_repeated, 2);
    for (size_t i = 0; i < ARRAY_LEN(parked); i++)
        fixture_answer(parked[i], "to nobody");
}

/* Requests of one host wait with more than its share: the next of that host is refused, those of
 * others are not. */
static void what_waits_for_an_owner_has_a_limit_for_each_host(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new_with(60 * 1000, 2 * LARGE);
    CLEANUP(client_free) struct client *large = client_new(&world->f->front);
    CLEANUP(client_free) struct client *same = client_new(&world->f->front);
    CLEANUP(client_free) struct client *other = client_new(&world->f->front);
    CLEANUP(buf_done) struct buf body;
    struct answer answer;

    buf_init(&body, BUF_DEFAULT_MAX);
    for (int i = 0; i < LARGE; i++)
        buf_append_byte(&body, 'x');
    peer_doors_nobodys(world->f->doors);
    CLIENT_SEND(large, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 700000\r\n\r\n");
    client_send(large, buf_slice(&body));
    until_waiting(world->f, 1);
    CLIENT_SEND(same, POST("/echo", "4", "what"));
    assert_true(client_read(same, &answer));
    assert_int_equal(answer.status, 503);
    CLIENT_SEND(other, "POST /echo HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\nother");
    until_waiting(world->f, 2);
    place_follow(world->f, world->a, 1);
    client_expect(large, 200, buf_slice(&body));
    client_expect(other, 200, SLICE("other"));
    CLIENT_SEND(same, POST("/echo", "4", "what"));
    client_expect(same, 200, SLICE("what"));
}

static void who_waits_in_vain_is_refused(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new_with(50, MEMORY_MAX);
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);
    struct answer answer;

    peer_doors_nobodys(world->f->doors);
    CLIENT_SEND(client, POST("/echo", "4", "what"));
    assert_true(client_read(client, &answer));
    assert_int_equal(answer.status, 503);
    place_follow(world->f, world->a, 1);
    /* The connection is as good as before. A slow machine may take longer than wait_ms to the first
     * way, which is made all the same. */
    for (int i = 0; i < 1000 && answer.status == 503; i++) {
        CLIENT_SEND(client, POST("/echo", "4", "what"));
        assert_true(client_read(client, &answer));
    }
    assert_int_equal(answer.status, 200);
}

static void a_server_that_stops_refuses_what_waits_and_answers_what_is_asked(void **state UNUSED)
{
    CLEANUP(world_free) struct world *world = world_new();
    CLEANUP(client_free) struct client *client = client_new(&world->f->front);
    CLEANUP(client_free) struct client *waits = client_new(&world->f->front);
    struct net_http_request *asked;
    struct thread thread;
    struct answer answer;

    CLIENT_SEND(client, POST("/later", "4", "what"));
    asked = fixture_parked(&world->a->front);
    peer_doors_nobodys(world->f->doors);
    CLIENT_SEND(waits, GET("/echo"));
    until_waiting(world->f, 1);
    peer_doors_leave(world->f->doors);
    assert_true(client_read(waits, &answer));
    assert_int_equal(answer.status, 503);
    thread_start(&thread, "drain", drain, world->f->front.listener);
    fixture_answer(asked, "done");
    client_expect(client, 200, SLICE("done"));
    thread_join(&thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_done_by_the_owner),
        cmocka_unit_test(requests_of_many_clients_do_not_wait_for_each_other),
        cmocka_unit_test(a_client_that_leaves_cancels_what_it_asked),
        cmocka_unit_test(what_an_owner_has_not_begun_goes_to_the_next),
        cmocka_unit_test(an_owner_that_drains_answers_what_it_has_begun),
        cmocka_unit_test(an_owner_that_is_gone_may_have_done_what_it_was_sent),
        cmocka_unit_test(an_owner_that_hangs_is_left),
        cmocka_unit_test(a_new_owner_is_asked_from_its_first_moment),
        cmocka_unit_test(what_waits_is_done_here_when_this_server_begins_to_own),
        cmocka_unit_test(a_handler_that_takes_over_may_end_the_connection_at_once),
        cmocka_unit_test(a_read_that_several_owners_do_not_outlive_is_not_repeated),
        cmocka_unit_test(what_waits_for_an_owner_has_a_limit_for_each_host),
        cmocka_unit_test(who_waits_in_vain_is_refused),
        cmocka_unit_test(a_server_that_stops_refuses_what_waits_and_answers_what_is_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
