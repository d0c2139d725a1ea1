#include "unit/net/fixture.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void plain_and_tls_share_a_port(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();

    settings.tls = tls;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *plain = client_new(fixture);
    CLEANUP(client_free) struct client *secret = client_new(fixture);
    struct net_http_request *request;
    struct net_listener_metrics metrics;

    CLIENT_SEND(plain, GET("/later"));
    request = fixture_parked(fixture);
    assert_false(request->tls);
    fixture_answer(request, "plain");
    client_expect(plain, 200, SLICE("plain"));

    assert_true(client_start_tls(secret));
    CLIENT_SEND(secret, GET("/later"));
    request = fixture_parked(fixture);
    assert_true(request->tls);
    fixture_answer(request, "secret");
    client_expect(secret, 200, SLICE("secret"));
    net_listener_metrics(fixture->listener, &metrics);
    assert_int_equal(metrics.tls_handshakes, 1);
}

static void the_handshake_is_modern_and_names_the_protocol(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();

    settings.tls = tls;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    const unsigned char *protocol;
    unsigned protocol_len;

    assert_true(client_start_tls(client));
    assert_int_equal(SSL_version(client->ssl), TLS1_3_VERSION);
    SSL_get0_alpn_selected(client->ssl, &protocol, &protocol_len);
    assert_slice_equal(slice_of(protocol, protocol_len), SLICE("http/1.1"));
}

static void large_bodies_pass_both_ways(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();
    CLEANUP(buf_done) struct buf body;

    settings.tls = tls;
    settings.listener.output_high = 64 * 1024;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    buf_init(&body, BUF_DEFAULT_MAX);
    for (int i = 0; i < 2000000; i++)
        buf_append_byte(&body, (uint8_t)(i * 7));
    assert_true(client_start_tls(client));
    CLIENT_SEND(client, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    client_send(client, buf_slice(&body));
    client_expect(client, 200, buf_slice(&body));
    /* Many requests in few records: more is decrypted than is answered at once. */
    for (int i = 0; i < 50; i++)
        CLIENT_SEND(client, GET("/size/20000") GET("/arena/5000"));
    for (int i = 0; i < 100; i++) {
        struct answer answer;

        assert_true(client_read(client, &answer));
        assert_int_equal(answer.body.len, i % 2 ? 5000 : 20000);
    }
}

/* All records in one segment, so that the server's OpenSSL reads further than it decrypts. */
static void client_send_at_once(struct client *client, struct slice bytes)
{
    BIO *memory = BIO_new(BIO_s_mem());
    char *records;
    long len;

    SSL_set0_wbio(client->ssl, memory);
    assert_int_equal(SSL_write(client->ssl, bytes.data, (int)bytes.len), (int)bytes.len);
    len = BIO_get_mem_data(memory, &records);
    assert_int_equal(send(client->fd, records, (size_t)len, MSG_NOSIGNAL), len);
}

/* Both connections share a loop, and so the memory that is read into. */
static void answering_one_connection_leaves_another_ones_request_alone(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();
    CLEANUP(buf_done) struct buf requests;

    settings.tls = tls;
    settings.loops = 1;
    settings.http.in_flight_max = 1;
    settings.http.head_max = 2048;
    settings.listener.input_max = 4096;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *sleeper = client_new(fixture);
    CLEANUP(client_free) struct client *waker = client_new(fixture);

    /* While the first waits, OpenSSL has begun to read the second record. The first ends together
     * with a request, so that nothing of it is kept when it goes on. */
    buf_init(&requests, BUF_DEFAULT_MAX);
    BUF_APPEND(&requests, "GET /later HTTP/1.1\r\nHost: a\r\nX: ");
    while ((16384 - requests.len - 4) % (sizeof(GET("/size/1")) - 1) != 0)
        buf_append_byte(&requests, 'x');
    BUF_APPEND(&requests, "\r\n\r\n");
    for (int i = 0; i < 1500; i++)
        BUF_APPEND(&requests, GET("/size/1"));
    assert_true(client_start_tls(sleeper));
    client_send_at_once(sleeper, buf_slice(&requests));
    WITH_LOCK (&fixture->lock) {
        while (fixture->parked_count == 0)
            condition_wait(&fixture->parked_came, &fixture->lock);
    }
    CLIENT_SEND(waker, "POST /wake HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nmy body");
    client_expect(waker, 200, SLICE("my body"));
    client_expect(sleeper, 200, SLICE("woken"));
    for (int i = 0; i < 1500; i++)
        client_expect(sleeper, 200, SLICE("a"));
}

static void thread_cpu(void *context)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    *(int64_t *)context = (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void half_a_record_is_waited_for_without_work(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();

    settings.tls = tls;
    settings.loops = 1;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);
    BIO *memory = BIO_new(BIO_s_mem());
    int64_t before_ms, after_ms;
    char *records;
    long len;

    assert_true(client_start_tls(client));
    SSL_set0_wbio(client->ssl, memory);
    assert_true(SSL_write(client->ssl, GET("/size/1"), sizeof(GET("/size/1")) - 1) > 0);
    assert_true(SSL_write(client->ssl, GET("/size/2"), sizeof(GET("/size/2")) - 1) > 0);
    len = BIO_get_mem_data(memory, &records);
    assert_int_equal(send(client->fd, records, (size_t)len - 9, MSG_NOSIGNAL), len - 9);
    client_expect(client, 200, SLICE("a"));
    net_loop_call(net_loops_at(fixture->loops, 0), thread_cpu, &before_ms);
    usleep(200 * 1000);
    net_loop_call(net_loops_at(fixture->loops, 0), thread_cpu, &after_ms);
    assert_true(after_ms - before_ms < 20);
    assert_int_equal(send(client->fd, records + len - 9, 9, MSG_NOSIGNAL), 9);
    client_expect(client, 200, SLICE("ab"));
}

static void a_new_certificate_serves_new_connections(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *old = tls_context_make();
    CLEANUP(net_tls_context_unref) struct net_tls_context *new = tls_context_make();
    struct fixture_settings settings = fixture_settings();

    settings.tls = old;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *before = client_new(fixture);
    CLEANUP(client_free) struct client *after = NULL;
    X509 *first, *second;

    assert_true(client_start_tls(before));
    net_listener_set_tls(fixture->listener, new);
    old = net_tls_context_unref(old);
    after = client_new(fixture);
    assert_true(client_start_tls(after));
    first = SSL_get1_peer_certificate(before->ssl);
    second = SSL_get1_peer_certificate(after->ssl);
    assert_int_not_equal(X509_cmp(first, second), 0);
    X509_free(first);
    X509_free(second);
    CLIENT_SEND(before, GET("/size/1")); /* the old one still works */
    client_expect(before, 200, SLICE("a"));
    CLIENT_SEND(after, GET("/size/2"));
    client_expect(after, 200, SLICE("ab"));
}

static void a_port_may_insist_on_tls(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();

    settings.tls = tls;
    settings.listener.tls_required = true;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *plain = client_new(fixture);

    CLIENT_SEND(plain, GET("/size/1"));
    client_expect_closed(plain);
}

static void a_broken_handshake_is_counted_and_closed(void **state UNUSED)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *tls = tls_context_make();
    struct fixture_settings settings = fixture_settings();
    struct net_listener_metrics metrics;

    settings.tls = tls;
    CLEANUP(fixture_free) struct fixture *fixture = fixture_new(&settings);
    CLEANUP(client_free) struct client *client = client_new(fixture);

    CLIENT_SEND(client, "\x16\x03\x01\x00\x05hello");
    while (client_receive(client)) /* an alert, perhaps */
        ;
    net_listener_metrics(fixture->listener, &metrics);
    assert_int_equal(metrics.tls_failures, 1);
    assert_int_equal(metrics.tls_handshakes, 0);
}

static void a_key_of_another_certificate_is_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice certificate, key, other, other_key;
    struct net_tls_context *context = NULL;
    struct error err;

    certificate_make(arena, &certificate, &key);
    certificate_make(arena, &other, &other_key);
    assert_fails(net_tls_context_new_pem(certificate, other_key, &context, &err), &err,
                 ERROR_CERTIFICATE);
    assert_contains(err.message, "does not belong");
    assert_fails(net_tls_context_new_pem(SLICE("nonsense"), key, &context, &err), &err,
                 ERROR_CERTIFICATE);
    assert_fails(net_tls_context_new_pem(certificate, SLICE(""), &context, &err), &err,
                 ERROR_CERTIFICATE);
    assert_fails(net_tls_context_new("/nowhere/cert.pem", "/nowhere/key.pem", &context, &err), &err,
                 ERROR_CERTIFICATE);
    assert_contains(err.message, "/nowhere/cert.pem");
    assert_null(context);
}

static void file_write(const char *path, struct slice text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.len, file), text.len);
    fclose(file);
}

static void certificates_are_read_from_files(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
    char directory[] = "/tmp/tls_test.XXXXXX", certificate_path[64], key_path[64];
    struct slice certificate, key;
    struct error err;

    assert_non_null(mkdtemp(directory));
    snprintf(certificate_path, sizeof certificate_path, "%s/cert.pem", directory);
    snprintf(key_path, sizeof key_path, "%s/key.pem", directory);
    certificate_make(arena, &certificate, &key);
    file_write(certificate_path, certificate);
    file_write(key_path, key);
    assert_ok(net_tls_context_new(certificate_path, key_path, &context, &err), &err);
    unlink(certificate_path);
    unlink(key_path);
    rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_tls_share_a_port),
        cmocka_unit_test(the_handshake_is_modern_and_names_the_protocol),
        cmocka_unit_test(large_bodies_pass_both_ways),
        cmocka_unit_test(answering_one_connection_leaves_another_ones_request_alone),
        cmocka_unit_test(half_a_record_is_waited_for_without_work),
        cmocka_unit_test(a_new_certificate_serves_new_connections),
        cmocka_unit_test(a_port_may_insist_on_tls),
        cmocka_unit_test(a_broken_handshake_is_counted_and_closed),
        cmocka_unit_test(a_key_of_another_certificate_is_refused),
        cmocka_unit_test(certificates_are_read_from_files),
    };
    return cmocka_run_group_tests_name("net/tls", tests, NULL, NULL);
}
