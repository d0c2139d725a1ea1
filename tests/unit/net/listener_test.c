#include "unit/net/fixture.h"

#include "net/workers.h"

#include <sys/resource.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void a_taken_port_is_named(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    const struct net_address *address = net_listener_address(fixture->listener);
    struct net_listener *second = NULL;
    char expected[64];
    struct error err;

    assert_int_not_equal(net_address_port(address), 0);
    assert_fails(net_listener_new(fixture->loops, address, &settings.listener, &net_http_protocol,
                                  fixture->http, NULL, &second, &err),
                 &err, ERROR_ADDRESS);
    snprintf(expected, sizeof expected, "port %u on 127.0.0.1 is in use",
             net_address_port(address));
    assert_string_equal(err.message, expected);
}

static void connections_are_dealt_out_over_the_loops(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();

    settings.loops = 4;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    struct client *clients[8];
    size_t on_loop[4] = {0};

    for (size_t i = 0; i < 8; i++) {
        struct net_http_request *request;

        clients[i] = client_new(fixture);
        CLIENT_SEND(clients[i], GET("/later"));
        request = fixture_parked(fixture);
        on_loop[net_loop_index(request->loop)]++;
        fixture_answer(request, "");
        client_expect(clients[i], 200, SLICE(""));
    }
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(on_loop[i], 2);
    for (size_t i = 0; i < 8; i++)
        client_free(clients[i]);
}

static void clients_over_the_limit_are_told(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct net_listener_metrics metrics;
    struct answer answer;

    settings.listener.connections_max = 2;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    struct client *first = client_new(fixture);
    CLEANUP(client_free) struct client *second = client_new(fixture);

    CLIENT_SEND(first, GET("/size/1"));
    CLIENT_SEND(second, GET("/size/1"));
    client_expect(first, 200, SLICE("a"));
    client_expect(second, 200, SLICE("a"));
    {
        CLEANUP(client_free) struct client *third = client_new(fixture);

        CLIENT_SEND(third, GET("/size/1"));
        assert_true(client_read(third, &answer));
        assert_int_equal(answer.status, 503);
        assert_contains(answer.head, "Connection: close");
        assert_true(slice_starts_with(answer.body, SLICE("{\"code\":\"ServiceUnavailable\"")));
        client_expect_closed(third);
    }
    net_listener_metrics(fixture->listener, &metrics);
    assert_int_equal(metrics.accepted, 2);
    assert_int_equal(metrics.refused, 1);
    client_free(first);
    do /* until the server has noticed */
        net_listener_metrics(fixture->listener, &metrics);
    while (metrics.open > 1);
    CLEANUP(client_free) struct client *fourth = client_new(fixture);
    CLIENT_SEND(fourth, GET("/size/1"));
    client_expect(fourth, 200, SLICE("a"));
}

static void running_out_of_descriptors_only_pauses(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    struct net_listener_metrics metrics;
    struct rlimit before, none;
    struct client *client;
    int next = dup(0);

    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    /* Room for the client's end and not for the server's. */
    none = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    client = client_new(fixture);
    CLIENT_SEND(client, GET("/size/1"));
    do
        net_listener_metrics(fixture->listener, &metrics);
    while (metrics.accept_pauses == 0);
    usleep(200 * 1000);
    net_listener_metrics(fixture->listener, &metrics);
    assert_in_range(metrics.accept_pauses, 1, 10); /* it did not try without pause */
    setrlimit(RLIMIT_NOFILE, &before);
    client_expect(client, 200, SLICE("a"));
    client_free(client);
}

/* Draining waits in a thread of its own, as it would in the server. */
struct draining {
    struct thread thread;
    struct fixture *fixture;
    int64_t timeout_ms;
    bool in_time;
};

static void draining_run(void *context)
{
    struct draining *draining = context;

    draining->in_time = net_listener_drain(draining->fixture->listener, draining->timeout_ms);
}

static void draining_answers_what_is_begun_and_closes_the_rest(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *busy = client_new(fixture);
    CLEANUP(client_free) struct client *idle = client_new(fixture);
    CLEANUP(client_free) struct client *half = client_new(fixture);
    struct draining draining = {.fixture = fixture, .timeout_ms = 10000};
    struct net_http_request *request;
    struct answer answer;

    CLIENT_SEND(idle, GET("/size/1"));
    client_expect(idle, 200, SLICE("a"));
    CLIENT_SEND(half, GET("/size/1") "GET / HT");
    client_expect(half, 200, SLICE("a"));
    CLIENT_SEND(busy, GET("/later"));
    request = fixture_parked(fixture);
    thread_start(&draining.thread, "drain", draining_run, &draining);
    client_expect_closed(idle);
    assert_true(client_read(half, &answer));
    assert_int_equal(answer.status, 503);
    assert_false(net_http_cancelled(request));
    CLIENT_SEND(busy, GET("/later")); /* too late, never seen */
    fixture_answer(request, "finished");
    assert_true(client_read(busy, &answer));
    assert_contains(answer.head, "Connection: close\r\n");
    assert_slice_equal(answer.body, SLICE("finished"));
    thread_join(&draining.thread);
    assert_true(draining.in_time);
    assert_int_equal(fixture->parked_count, 1);
}

static void draining_cuts_what_takes_too_long(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_request *request;

    CLIENT_SEND(client, GET("/later"));
    request = fixture_parked(fixture);
    assert_false(net_listener_drain(fixture->listener, 20));
    client_expect_closed(client);
    assert_true(net_http_cancelled(request));
    fixture_answer(request, "to nobody");
}

/* The whole of it: requests through workers, some clients leaving half-way, then a stop. */

struct worked {
    struct net_work work;
    struct net_http_request *request;
};

static void worked_run(struct net_work *work)
{
    struct worked *worked = CONTAINER_OF(work, struct worked, work);

    fixture_answer(worked->request, net_http_cancelled(worked->request) ? "gone" : "worked");
}

static void handle_by_worker(struct net_http_request *request, void *context)
{
    struct worked *worked = ARENA_NEW(request->arena, struct worked);
    struct error err;

    worked->request = request;
    worked->work.run = worked_run;
    net_http_defer(request);
    if (!net_workers_submit(context, &worked->work, &err))
        net_http_respond(request, &(struct net_http_response){.status = err.status});
}

static void workers_clients_and_loops_stop_together(void **state UNUSED)
{
    struct net_workers_settings worker_settings = net_workers_settings_default();
    struct net_workers *workers = net_workers_new(&worker_settings);
    struct fixture_settings settings = fixture_settings();
    struct fixture fixture = {0};
    struct net_address address;
    struct client *clients[16];
    struct error err;

    assert_ok(net_loops_new(2, &fixture.loops, &err), &err);
    assert_ok(net_address_parse(SLICE("127.0.0.1:0"), &address, &err), &err);
    fixture.http = net_http_new(fixture.loops, &settings.http, handle_by_worker, workers);
    assert_ok(net_listener_new(fixture.loops, &address, &settings.listener, &net_http_protocol,
                               fixture.http, NULL, &fixture.listener, &err),
              &err);
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = client_new(&fixture);
        CLIENT_SEND(clients[i], GET("/1") GET("/2") GET("/3"));
    }
    for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
        if (i % 2)
            for (int n = 0; n < 3; n++)
                client_expect(clients[i], 200, SLICE("worked"));
        client_free(clients[i]);
    }
    assert_true(net_listener_drain(fixture.listener, 10000));
    net_listener_free(fixture.listener);
    net_workers_free(workers);
    net_loops_free(fixture.loops);
    net_http_free(fixture.http);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_taken_port_is_named),
        cmocka_unit_test(connections_are_dealt_out_over_the_loops),
        cmocka_unit_test(clients_over_the_limit_are_told),
        cmocka_unit_test(running_out_of_descriptors_only_pauses),
        cmocka_unit_test(draining_answers_what_is_begun_and_closes_the_rest),
        cmocka_unit_test(draining_cuts_what_takes_too_long),
        cmocka_unit_test(workers_clients_and_loops_stop_together),
    };
    return cmocka_run_group_tests_name("net/listener", tests, NULL, NULL);
}
