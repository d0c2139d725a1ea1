#include "unit/net/fixture.h"

#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static void requests_on_one_connection_are_answered_one_after_another(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct answer answer;

    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    assert_true(client_read(client, &answer));
    assert_slice_equal(answer.body, SLICE("hello"));
    assert_contains(answer.head, "HTTP/1.1 200 OK\r\nDate: ");
    assert_contains(answer.head, " GMT\r\nContent-Length: 5\r\n");
    assert_null(strstr(answer.head, "Connection"));
    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    CLIENT_SEND(client, "3\r\nagain\r\n");
    client_expect(client, 400,
                  SLICE("{\"code\":\"BadRequest\",\"message\":\"a chunk does not end "
                        "where its size says\"}"));
    client_expect_closed(client);
}

static void a_body_in_pieces_arrives_whole(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    for (int i = 0; i < 300000; i++)
        buf_append_byte(&body, (uint8_t)('a' + i % 26));
    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    client_send(client, buf_slice(&body));
    client_expect(client, 200, buf_slice(&body));
    CLIENT_SEND(client,
                "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n493E0\r\n");
    client_send(client, buf_slice(&body));
    CLIENT_SEND(client, "\r\n0\r\n\r\n");
    client_expect(client, 200, buf_slice(&body));
}

static void answers_keep_the_order_of_their_requests(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_request *first, *third;

    CLIENT_SEND(client,
                GET("/later/1") "POST /echo HTTP/1.1\r\n" HOST
                                "Content-Length: 6\r\n\r\nsecond" GET("/later/3") GET("/size/3"));
    first = fixture_parked(fixture);
    third = fixture_parked(fixture);
    assert_slice_equal(first->path, SLICE("/later/1"));
    fixture_answer(third, "third");
    fixture_answer(first, "first");
    client_expect(client, 200, SLICE("first"));
    client_expect(client, 200, SLICE("second"));
    client_expect(client, 200, SLICE("third"));
    client_expect(client, 200, SLICE("abc"));
}

static void a_deferred_request_stays_readable(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_request *request;

    CLIENT_SEND(client, "PUT /later?x=1 HTTP/1.1\r\n" HOST "X-Name: value\r\n"
                        "Content-Length: 4\r\n\r\nbody");
    request = fixture_parked(fixture);
    /* More bytes pass through the loop's memory meanwhile. */
    CLIENT_SEND(client, GET("/echo") GET("/echo"));
    assert_slice_equal(request->method, SLICE("PUT"));
    assert_slice_equal(request->query, SLICE("x=1"));
    assert_slice_equal(net_http_header(request, SLICE("x-name")), SLICE("value"));
    assert_null(net_http_header(request, SLICE("x-other")).data);
    assert_slice_equal(request->body, SLICE("body"));
    assert_false(request->tls);
    assert_int_equal(request->local_port,
                     net_address_port(net_listener_address(fixture->listener)));
    assert_false(net_http_cancelled(request));
    fixture_answer(request, "done");
    client_expect(client, 200, SLICE("done"));
}

/* Waits for what another thread is about to do. */
static void wait_until_cancelled(const struct net_http_request *request)
{
    for (int i = 0; i < 10000 && !net_http_cancelled(request); i++)
        usleep(1000);
    assert_true(net_http_cancelled(request));
}

static void a_client_that_leaves_cancels_what_it_asked(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    struct client *client = client_new(fixture);
    struct net_http_request *first, *second;
    struct net_http_metrics metrics;

    CLIENT_SEND(client, GET("/later") GET("/size/100000") GET("/later"));
    first = fixture_parked(fixture);
    second = fixture_parked(fixture);
    client_free(client);
    wait_until_cancelled(first);
    /* What stood answered between them is dropped; these two must still be answered. */
    assert_int_equal(atomic_load(&fixture->released), 1);
    fixture_answer(second, "to nobody");
    fixture_answer(first, "to nobody");
    net_listener_drain(fixture->listener, 10000);
    net_http_metrics(fixture->http, &metrics);
    assert_int_equal(metrics.by_class[0], 3);
    assert_int_equal(metrics.by_class[2], 0);
}

static void a_client_that_never_reads_is_not_read_from(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct timeval short_patience = {.tv_usec = 300000};
    struct slice request = SLICE(GET("/size/20000"));
    struct net_listener_metrics metrics;
    struct net_http_metrics http_metrics;
    size_t asked = 0;

    settings.listener.output_high = 64 * 1024;
    settings.listener.input_max = 16 * 1024;
    settings.http.head_max = 8 * 1024;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &short_patience, sizeof short_patience);
    /* Asks until the server takes no more. */
    while (send(client->fd, request.data, request.len, MSG_NOSIGNAL) == (ssize_t)request.len)
        assert_true(++asked < 1000000);
    net_listener_metrics(fixture->listener, &metrics);
    net_http_metrics(fixture->http, &http_metrics);
    /* Answered: what the kernel's buffers took, the mark, and one answer more. */
    assert_true(http_metrics.by_class[2] * 20000 <=
                metrics.bytes_out + settings.listener.output_high + 2 * 20400);
    assert_true(http_metrics.by_class[2] < asked);
    /* Once the client reads, more comes. */
    for (size_t i = 0; i < http_metrics.by_class[2] + 5; i++) {
        struct answer answer;

        assert_true(client_read(client, &answer));
        assert_int_equal(answer.body.len, 20000);
    }
}

static void wait_until_held(const struct memory_meter *meter, size_t least, size_t most)
{
    for (int i = 0; i < 10000; i++) {
        size_t used = memory_meter_used(meter);

        if (used >= least && used <= most)
            return;
        usleep(1000);
    }
    assert_in_range(memory_meter_used(meter), least, most);
}

static void what_a_request_and_its_answer_hold_is_counted_until_it_is_sent(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct net_http_request *request;
    struct memory_meter meter;

    memory_meter_init(&meter, NULL, 1 << 20);
    settings.http.memory = &meter;
    {
        CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
        struct client *client = client_new(fixture);

        CLIENT_SEND(client, "PUT /later HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody");
        request = fixture_parked(fixture);
        wait_until_held(&meter, 4, 100000);
        fixture_answer(request, "done");
        client_expect(client, 200, SLICE("done"));
        wait_until_held(&meter, 0, 0);
        CLIENT_SEND(client, GET("/later") GET("/size/100000"));
        request = fixture_parked(fixture);
        wait_until_held(&meter, 100000, 200000); /* the second waits for the first */
        client_free(client);
        fixture_answer(request, "nobody");
        wait_until_held(&meter, 0, 0);
    }
}

static void while_much_is_held_a_client_reads_its_answers_first(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct net_http_request *first, *second;
    struct memory_meter meter;

    memory_meter_init(&meter, NULL, 1000);
    settings.http.memory = &meter;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    CLIENT_SEND(client, GET("/later/1") GET("/later/2"));
    first = fixture_parked(fixture);
    assert_true(memory_meter_used(&meter) >= 500); /* so the second is not even read */
    assert_slice_equal(first->path, SLICE("/later/1"));
    fixture_answer(first, "first");
    client_expect(client, 200, SLICE("first"));
    second = fixture_parked(fixture);
    assert_slice_equal(second->path, SLICE("/later/2"));
    fixture_answer(second, "second");
    client_expect(client, 200, SLICE("second"));
}

static void at_most_so_many_requests_are_in_flight(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct net_http_metrics metrics;

    settings.http.in_flight_max = 2;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_request *request, *next;

    CLIENT_SEND(client, GET("/later/1") GET("/later/2") GET("/later/3") GET("/later/4"));
    request = fixture_parked(fixture);
    next = fixture_parked(fixture);
    net_http_metrics(fixture->http, &metrics);
    assert_int_equal(metrics.in_flight, 2);
    fixture_answer(request, "1");
    request = fixture_parked(fixture);
    assert_slice_equal(request->path, SLICE("/later/3"));
    fixture_answer(next, "2");
    fixture_answer(request, "3");
    fixture_answer(fixture_parked(fixture), "4");
    client_expect(client, 200, SLICE("1"));
    client_expect(client, 200, SLICE("2"));
    client_expect(client, 200, SLICE("3"));
    client_expect(client, 200, SLICE("4"));
}

static void long_answers_come_whole_and_are_given_back(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct answer answer;

    CLIENT_SEND(client, GET("/size/5000000") GET("/arena/100000") GET("/size/10"));
    for (int i = 0; i < 2; i++) {
        assert_true(client_read(client, &answer));
        assert_int_equal(answer.body.len, i ? 100000 : 5000000);
        for (size_t at = 0; at < answer.body.len; at++)
            assert_int_equal(answer.body.data[at], 'a' + at % 26);
    }
    client_expect(client, 200, SLICE("abcdefghij"));
    assert_int_equal(atomic_load(&fixture->released), 2);
}

static void head_gets_the_length_without_the_body(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    char text[512];
    ssize_t got;

    CLIENT_SEND(client, "HEAD /size/70000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    got = recv(client->fd, text, sizeof text - 1, MSG_WAITALL);
    assert_true(got > 0);
    text[got] = '\0';
    assert_contains(text, "\r\nContent-Length: 70000\r\n");
    assert_string_equal(text + got - 4, "\r\n\r\n");
    assert_int_equal(atomic_load(&fixture->released), 1);
}

static void connections_close_when_either_side_says_so(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    static const struct {
        const char *request;
        bool closes;
    } cases[] = {
        {"GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", true},
        {"GET /bye HTTP/1.1\r\n" HOST "\r\n", true},
        {"GET /echo HTTP/1.0\r\n\r\n", true},
        {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(client_free) struct client *client = client_new(fixture);
        struct answer answer;

        client_send(client, slice_of_text(cases[i].request));
        assert_true(client_read(client, &answer));
        assert_contains(answer.head,
                        cases[i].closes ? "Connection: close\r\n" : "Connection: keep-alive\r\n");
        if (cases[i].closes)
            client_expect_closed(client);
        else
            client_send(client, slice_of_text(cases[i].request));
    }
}

static void a_refused_request_is_answered_after_those_before_it(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    CLIENT_SEND(client, GET("/later") "GET / HTTP/1.1\r\n\r\n" GET("/echo"));
    fixture_answer(fixture_parked(fixture), "fine");
    client_expect(client, 200, SLICE("fine"));
    client_expect(client, 400, SLICE("{\"code\":\"BadRequest\",\"message\":\"Host is missing\"}"));
    client_expect_closed(client);
}

static void a_body_over_the_limit_is_refused_while_it_is_sent(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(buf_done) struct buf body;

    settings.http.body_max = 1000;
    settings.listener.linger_ms = 10000;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct answer answer;

    buf_init(&body, BUF_DEFAULT_MAX);
    buf_reserve(&body, 500000);
    memset(body.data, 'x', 500000);
    body.len = 500000;
    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 20000000\r\n\r\n");
    for (int i = 0; i < 40; i++)
        client_send(client, buf_slice(&body)); /* no reset comes meanwhile */
    assert_true(client_read(client, &answer));
    assert_int_equal(answer.status, 413);
}

static void wait_until_received(struct fixture *fixture, uint64_t bytes)
{
    struct net_listener_metrics metrics;

    do
        net_listener_metrics(fixture->listener, &metrics);
    while (metrics.bytes_in < bytes);
}

static void of_requests_half_received_the_oldest_goes_where_they_are_too_many(void **state UNUSED)
{
    static const char head[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 70\r\n\r\n";
    static const char sixty[] = "012345678901234567890123456789012345678901234567890123456789";
    struct fixture_settings settings = fixture_settings();
    struct memory_meter memory;

    memory_meter_init(&memory, NULL, SIZE_MAX);
    settings.loops = 1;
    settings.http.bodies_max = 300;
    settings.http.memory = &memory;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *stuck = client_new(fixture);
    CLEANUP(client_free) struct client *slow = client_new(fixture);
    CLEANUP(client_free) struct client *third = client_new(fixture);
    struct answer answer;

    client_send(stuck, slice_of_text(head));
    client_send(stuck, slice_of_text(sixty));
    wait_until_received(fixture, sizeof head - 1 + 60);
    client_send(slow, slice_of_text(head));
    client_send(slow, slice_of_text(sixty));
    wait_until_received(fixture, 2 * (sizeof head - 1 + 60));
    while (memory_meter_used(&memory) != 2 * (sizeof head - 1 + 60)) {
    }
    client_send(third, slice_of_text(head));
    client_send(third, slice_of_text(sixty));
    assert_true(client_read(stuck, &answer));
    assert_int_equal(answer.status, 503);
    client_expect_closed(stuck);
    CLIENT_SEND(third, "0123456789");
    assert_true(client_read(third, &answer));
    assert_int_equal(answer.body.len, 70);
    CLIENT_SEND(slow, "0123456789");
    assert_true(client_read(slow, &answer));
    assert_int_equal(answer.body.len, 70);
    /* What is complete, or gone, no longer counts. */
    while (memory_meter_used(&memory)) {
    }
}

static void many_requests_at_once_are_answered_in_turns_and_in_order(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(buf_done) struct buf requests;

    settings.loops = 1;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *many = client_new(fixture);
    CLEANUP(client_free) struct client *one = client_new(fixture);

    buf_init(&requests, BUF_DEFAULT_MAX);
    for (int i = 0; i < 200; i++)
        buf_printf(&requests, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n%03d", i);
    client_send(many, buf_slice(&requests));
    CLIENT_SEND(one, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none");
    client_expect(one, 200, SLICE("one"));
    for (int i = 0; i < 200; i++) {
        char text[4];

        (void)snprintf(text, sizeof text, "%03d", i);
        client_expect(many, 200, slice_of_text(text));
    }
}

/* A flood that, once it has begun, makes another owner ask for something. */
struct flood {
    struct memory_meter flooder, other;
    struct client *lone;
    atomic_uint handled, before_lone;
};

static void flood_handle(struct net_http_request *request, void *context)
{
    struct flood *flood = context;
    bool lone = slice_equal(request->path, SLICE("/lone"));

    net_http_bill(request, lone ? &flood->other : &flood->flooder);
    if (slice_equal(request->path, SLICE("/begin")))
        CLIENT_SEND(flood->lone, GET("/lone"));
    if (lone)
        atomic_store(&flood->before_lone, atomic_load(&flood->handled));
    else
        atomic_fetch_add(&flood->handled, 1);
    fixture_answer(request, "");
}

/* Each of the flooder's four connections has a hundred requests in the server's hands. */
static void a_request_of_another_owner_waits_for_few_of_a_flood(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct flood flood = {.flooder = {.max = SIZE_MAX}, .other = {.max = SIZE_MAX}};
    struct client *flooders[4];
    CLEANUP(buf_done) struct buf requests;

    settings.loops = 1;
    settings.handle = flood_handle;
    settings.context = &flood;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *lone = client_new(fixture);

    flood.lone = lone;
    CLIENT_SEND(lone, GET("/lone"));
    client_expect(lone, 200, SLICE(""));
    for (size_t i = 0; i < ARRAY_LEN(flooders); i++) {
        flooders[i] = client_new(fixture);
        CLIENT_SEND(flooders[i], GET("/flood"));
        client_expect(flooders[i], 200, SLICE(""));
    }
    atomic_store(&flood.handled, 0);
    buf_init(&requests, BUF_DEFAULT_MAX);
    BUF_APPEND(&requests, GET("/begin"));
    for (int i = 0; i < 99; i++)
        BUF_APPEND(&requests, GET("/flood"));
    for (size_t i = 0; i < ARRAY_LEN(flooders); i++)
        client_send(flooders[i],
                    slice_skip(buf_slice(&requests), i ? sizeof(GET("/begin")) - 1 : 0));
    client_expect(lone, 200, SLICE(""));
    assert_in_range(atomic_load(&flood.before_lone), 1, 16);
    for (size_t i = 0; i < ARRAY_LEN(flooders); i++) {
        for (int j = i ? 1 : 0; j < 100; j++)
            client_expect(flooders[i], 200, SLICE(""));
        client_free(flooders[i]);
    }
}

/* Turns become shorter when a second owner comes: one that has had more by then goes on all the
 * same. */
static void whoever_had_more_than_a_turn_when_another_came_goes_on(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct flood flood = {.flooder = {.max = SIZE_MAX}, .other = {.max = SIZE_MAX}};

    settings.loops = 1;
    settings.handle = flood_handle;
    settings.context = &flood;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *first = client_new(fixture);
    CLEANUP(client_free) struct client *second = client_new(fixture);

    for (int i = 0; i < 5; i++) {
        CLIENT_SEND(first, GET("/flood"));
        client_expect(first, 200, SLICE(""));
    }
    CLIENT_SEND(second, GET("/lone"));
    client_expect(second, 200, SLICE(""));
    CLIENT_SEND(first, GET("/flood"));
    client_expect(first, 200, SLICE(""));
}

static void a_single_request_is_received_whatever_the_limit_of_its_loop(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();

    settings.http.bodies_max = 1;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct answer answer;

    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n01234");
    wait_until_received(fixture, 1);
    CLIENT_SEND(client, "56789");
    assert_true(client_read(client, &answer));
    assert_int_equal(answer.body.len, 10);
}

static void continue_is_sent_when_it_is_waited_for(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    CLIENT_SEND(client, GET("/later") "PUT /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n"
                                      "Content-Length: 2\r\n\r\n");
    fixture_answer(fixture_parked(fixture), "before");
    client_expect(client, 200, SLICE("before"));
    client_expect(client, 100, SLICE(""));
    CLIENT_SEND(client, "ok");
    client_expect(client, 200, SLICE("ok"));
}

static void late_heads_and_bodies_time_out(void **state UNUSED)
{
    static const char *const beginnings[] = {
        "GET / HTT",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel",
    };
    struct fixture_settings settings = fixture_settings();

    settings.http.head_ms = settings.http.body_ms = 20;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);

    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        CLEANUP(client_free) struct client *client = client_new(fixture);
        struct answer answer;

        client_send(client, slice_of_text(beginnings[i]));
        assert_true(client_read(client, &answer));
        assert_int_equal(answer.status, 408);
        client_expect_closed(client);
    }
}

static void idle_and_silent_connections_are_closed(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();

    settings.http.idle_ms = settings.listener.handshake_ms = 20;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *idle = client_new(fixture);
    CLEANUP(client_free) struct client *silent = client_new(fixture);

    CLIENT_SEND(idle, GET("/size/1"));
    client_expect(idle, 200, SLICE("a"));
    client_expect_closed(idle);
    client_expect_closed(silent);
}

static void a_client_that_stops_reading_is_cut(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    struct net_listener_metrics metrics;

    settings.listener.write_stall_ms = 20;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    CLIENT_SEND(client, GET("/size/30000000"));
    for (int i = 0; i < 10000 && atomic_load(&fixture->released) == 0; i++)
        usleep(1000);
    assert_int_equal(atomic_load(&fixture->released), 1);
    net_listener_metrics(fixture->listener, &metrics);
    assert_true(metrics.bytes_out < 30000000);
}

static void a_handler_may_take_longer_than_any_deadline(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();

    settings.http.idle_ms = settings.http.head_ms = settings.http.body_ms = 10;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_request *request;

    CLIENT_SEND(client, GET("/later"));
    request = fixture_parked(fixture);
    usleep(50 * 1000);
    assert_false(net_http_cancelled(request));
    fixture_answer(request, "at last");
    client_expect(client, 200, SLICE("at last"));
}

static void values_cannot_break_out_of_their_header(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_header header = {SLICE("x-name"), SLICE("innocent\r\nSet-Cookie: a\0b")};
    struct answer answer;

    CLIENT_SEND(client, GET("/later"));
    net_http_respond(
        fixture_parked(fixture),
        &(struct net_http_response){.status = 299, .headers = &header, .header_count = 1});
    assert_true(client_read(client, &answer));
    assert_contains(answer.head, "HTTP/1.1 299 Status\r\n");
    assert_contains(answer.head, "\r\nx-name: innocent  Set-Cookie: a b\r\n");
}

static void answers_are_counted_by_class(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    struct net_http_metrics metrics;

    CLIENT_SEND(client, GET("/echo") GET("/echo") "bad\r\n");
    client_expect(client, 200, SLICE(""));
    client_expect(client, 200, SLICE(""));
    while (client_receive(client))
        ;
    net_http_metrics(fixture->http, &metrics);
    assert_int_equal(metrics.by_class[2], 2);
    assert_int_equal(metrics.by_class[4], 1);
    assert_int_equal(metrics.in_flight, 0);
    assert_int_equal(histogram_count(&metrics.latency_us), 3);
}

/* Upgrading: a protocol that answers every byte with its successor. */

static void *next_open(struct net_connection *connection UNUSED, void *context)
{
    return context;
}

static size_t next_bytes(struct net_connection *connection, void *state UNUSED, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t next = bytes.data[i] + 1;

        net_output_append(net_connection_output(connection), slice_of(&next, 1));
    }
    return bytes.len;
}

static void next_finish(struct net_connection *connection, void *state UNUSED)
{
    net_connection_finish(connection, false);
}

static void next_closed(struct net_connection *connection UNUSED, void *state)
{
    atomic_fetch_add((atomic_size_t *)state, 1);
}

static const struct net_protocol next_protocol = {
    .name = "next",
    .open = next_open,
    .bytes = next_bytes,
    .deadline = next_finish,
    .drain = next_finish,
    .closed = next_closed,
};

static void upgrade_handle(struct net_http_request *request, void *context)
{
    if (!net_http_upgrade(request, SLICE("Upgrade: next\r\n"), &next_protocol, context))
        net_http_respond(request, &(struct net_http_response){.status = 409});
}

static void an_upgraded_connection_speaks_the_other_protocol(void **state UNUSED)
{
    struct net_listener_settings listener_settings = net_listener_settings_default();
    struct net_http_settings http_settings = net_http_settings_default();
    struct fixture fixture = {0};
    struct net_address address;
    atomic_size_t closed = 0;
    struct error err;

    assert_ok(net_loops_new(1, &fixture.loops, &err), &err);
    assert_ok(net_address_parse(SLICE("127.0.0.1:0"), &address, &err), &err);
    fixture.http = net_http_new(fixture.loops, &http_settings, upgrade_handle, &closed);
    assert_ok(net_listener_new(fixture.loops, &address, &listener_settings, &net_http_protocol,
                               fixture.http, NULL, &fixture.listener, &err),
              &err);
    {
        CLEANUP(client_free) struct client *client = client_new(&fixture);
        struct answer answer;

        CLIENT_SEND(client, GET("/chat") "abc");
        assert_true(client_read(client, &answer));
        assert_int_equal(answer.status, 101);
        assert_contains(answer.head, "Upgrade: next\r\n\r\n");
        CLIENT_SEND(client, "x");
        while (client->input.len < 4)
            assert_true(client_receive(client));
        assert_slice_equal(buf_slice(&client->input), SLICE("bcdy"));
        assert_true(net_listener_drain(fixture.listener, 10000));
        assert_int_equal(atomic_load(&closed), 1);
    }
    net_listener_free(fixture.listener);
    net_loops_free(fixture.loops);
    net_http_free(fixture.http);
}

/* A request that another server has read, on its way through the first loop. */
struct passing {
    struct fixture *fixture;
    struct slice message;
    struct net_http_request *request;
    unsigned answers, status;
    char body[128];
};

static void passing_answered(void *context, struct net_http_answer *answer)
{
    struct passing *passing = context;

    passing->answers++;
    passing->status = answer->status;
    snprintf(passing->body, sizeof passing->body, "%.*s", SLICE_ARG(answer->body));
}

static void passing_run(void *context)
{
    struct passing *passing = context;

    passing->request =
        net_http_pass(passing->fixture->http,
                      &(struct net_http_passed){.message = passing->message,
                                                .loop = net_loops_at(passing->fixture->loops, 0),
                                                .answer = passing_answered,
                                                .context = passing});
}

static void passing_abandon(void *context)
{
    net_http_abandon(((struct passing *)context)->request);
}

static void pass(struct passing *passing, struct fixture *fixture, struct slice message)
{
    *passing = (struct passing){.fixture = fixture, .message = message};
    net_loop_call(net_loops_at(fixture->loops, 0), passing_run, passing);
}

/* Whoever passes requests on must not be made to pass two where it has read one. */
static void what_is_passed_on_is_one_whole_request(void **state UNUSED)
{
    static const char *const bad[] = {
        GET("/later") GET("/later"),
        GET("/later") "x",
        "POST /later HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhell",
        "POST /later HTTP/1.1\r\n" HOST "Content-Length: 5\r\n",
        "POST /later HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\nx",
        "",
    };
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    struct passing passing;

    pass(&passing, fixture,
         SLICE("POST /echo HTTP/1.1\r\nHost:a\r\nContent-Length:5\r\n\r\nhello"));
    assert_int_equal(passing.status, 200);
    assert_string_equal(passing.body, "hello");
    assert_null(passing.request);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        pass(&passing, fixture, slice_of_text(bad[i]));
        assert_int_equal(passing.answers, 1);
        assert_int_equal(passing.status, 400);
        assert_null(passing.request);
    }
    assert_int_equal(fixture->parked_count, 0);
}

static void nobody_hears_of_a_passed_request_that_was_abandoned(void **state UNUSED)
{
    struct fixture_settings settings = fixture_settings();
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    struct net_http_metrics metrics;
    struct passing passing;

    pass(&passing, fixture, SLICE(GET("/later")));
    assert_non_null(passing.request);
    assert_ptr_equal(fixture_parked(fixture), passing.request);
    net_loop_call(net_loops_at(fixture->loops, 0), passing_abandon, &passing);
    assert_true(net_http_cancelled(passing.request));
    fixture_answer(passing.request, "to nobody");
    do {
        net_http_metrics(fixture->http, &metrics);
    } while (metrics.in_flight);
    assert_int_equal(metrics.by_class[0], 1);
    assert_int_equal(passing.answers, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_on_one_connection_are_answered_one_after_another),
        cmocka_unit_test(a_body_in_pieces_arrives_whole),
        cmocka_unit_test(answers_keep_the_order_of_their_requests),
        cmocka_unit_test(a_deferred_request_stays_readable),
        cmocka_unit_test(a_client_that_leaves_cancels_what_it_asked),
        cmocka_unit_test(a_client_that_never_reads_is_not_read_from),
        cmocka_unit_test(what_a_request_and_its_answer_hold_is_counted_until_it_is_sent),
        cmocka_unit_test(while_much_is_held_a_client_reads_its_answers_first),
        cmocka_unit_test(at_most_so_many_requests_are_in_flight),
        cmocka_unit_test(long_answers_come_whole_and_are_given_back),
        cmocka_unit_test(head_gets_the_length_without_the_body),
        cmocka_unit_test(connections_close_when_either_side_says_so),
        cmocka_unit_test(a_refused_request_is_answered_after_those_before_it),
        cmocka_unit_test(a_body_over_the_limit_is_refused_while_it_is_sent),
        cmocka_unit_test(of_requests_half_received_the_oldest_goes_where_they_are_too_many),
        cmocka_unit_test(many_requests_at_once_are_answered_in_turns_and_in_order),
        cmocka_unit_test(a_request_of_another_owner_waits_for_few_of_a_flood),
        cmocka_unit_test(whoever_had_more_than_a_turn_when_another_came_goes_on),
        cmocka_unit_test(a_single_request_is_received_whatever_the_limit_of_its_loop),
        cmocka_unit_test(continue_is_sent_when_it_is_waited_for),
        cmocka_unit_test(late_heads_and_bodies_time_out),
        cmocka_unit_test(idle_and_silent_connections_are_closed),
        cmocka_unit_test(a_client_that_stops_reading_is_cut),
        cmocka_unit_test(a_handler_may_take_longer_than_any_deadline),
        cmocka_unit_test(values_cannot_break_out_of_their_header),
        cmocka_unit_test(answers_are_counted_by_class),
        cmocka_unit_test(an_upgraded_connection_speaks_the_other_protocol),
        cmocka_unit_test(what_is_passed_on_is_one_whole_request),
        cmocka_unit_test(nobody_hears_of_a_passed_request_that_was_abandoned),
    };
    return cmocka_run_group_tests_name("net/http_connection", tests, NULL, NULL);
}
