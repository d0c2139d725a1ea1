/* A server on a free port of the loopback and clients that talk to it, for the tests of net/.
 *
 * The server's handler goes by the path:
 *     /echo     answers with the request's body
 *     /size/N   answers with N bytes, handed over
 *     /arena/N  the same, from the request's arena
 *     /later    defers; the test takes the request with fixture_parked and answers it itself
 *     /wake     answers the next request that /later has deferred, then its own like /echo
 *     /bye      answers and closes
 * Clients wait at most ten seconds for anything, so that a fault fails instead of hanging. */
#pragma once

#include "base/buf.h"
#include "base/memory.h"
#include "base/thread.h"
#include "net/http.h"
#include "net/listener.h"
#include "support/check.h"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PARKED_MAX = 64 };

struct fixture {
    struct net_loops *loops;
    struct net_http *http;
    struct net_listener *listener;
    struct mutex lock;
    struct condition parked_came;
    struct net_http_request *parked[PARKED_MAX];
    size_t parked_count, parked_taken;
    atomic_size_t released; /* bodies handed over that came back */
};

struct fixture_settings {
    size_t loops;
    struct net_http_settings http;
    struct net_listener_settings listener;
    struct net_tls_context *tls;
    void (*handle)(struct net_http_request *request, void *context); /* NULL: as said above */
    void *context;
};

static inline struct fixture_settings fixture_settings(void)
{
    return (struct fixture_settings){
        .loops = 2,
        .http = net_http_settings_default(),
        .listener = net_listener_settings_default(),
    };
}

struct fixture_body {
    struct fixture *fixture;
    uint8_t *data;
};

static inline void fixture_body_release(void *context)
{
    struct fixture_body *body = context;

    atomic_fetch_add(&body->fixture->released, 1);
    memory_free(body->data);
    memory_free(body);
}

static inline void fixture_park(struct fixture *fixture, struct net_http_request *request)
{
    net_http_defer(request);
    WITH_LOCK (&fixture->lock) {
        assert(fixture->parked_count < PARKED_MAX);
        fixture->parked[fixture->parked_count++] = request;
        condition_broadcast(&fixture->parked_came);
    }
}

static inline void fixture_answer_sized(struct fixture *fixture, struct net_http_request *request,
                                        struct slice digits, bool in_arena)
{
    struct net_http_response response = {.status = 200};
    struct fixture_body *body;
    uint64_t size = 0;
    uint8_t *bytes;

    if (!slice_to_uint64(digits, &size))
        size = 0;
    bytes = in_arena ? arena_alloc(request->arena, size) : memory_alloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)('a' + i % 26);
    response.body = slice_of(bytes, size);
    response.body_kind = NET_HTTP_BODY_IN_ARENA;
    if (!in_arena) {
        body = MEMORY_NEW(struct fixture_body);
        *body = (struct fixture_body){.fixture = fixture, .data = bytes};
        response.body_kind = NET_HTTP_BODY_OWNED;
        response.release = (struct net_release){.fn = fixture_body_release, .context = body};
    }
    net_http_respond(request, &response);
}

static inline void fixture_answer(struct net_http_request *request, const char *text)
{
    net_http_respond(request,
                     &(struct net_http_response){.status = 200, .body = slice_of_text(text)});
}

static inline void fixture_answer_echo(struct fixture *fixture, struct net_http_request *request)
{
    struct net_http_request *parked = NULL;

    if (slice_equal(request->path, SLICE("/wake"))) {
        WITH_LOCK (&fixture->lock) {
            parked = fixture->parked[fixture->parked_taken++];
        }
        fixture_answer(parked, "woken");
    }
    net_http_respond(request, &(struct net_http_response){
                                  .status = 200,
                                  .body = request->body,
                                  .close = slice_equal(request->path, SLICE("/bye")),
                              });
}

static inline void fixture_handle(struct net_http_request *request, void *context)
{
    struct fixture *fixture = context;

    if (slice_starts_with(request->path, SLICE("/size/")))
        fixture_answer_sized(fixture, request, slice_skip(request->path, 6), false);
    else if (slice_starts_with(request->path, SLICE("/arena/")))
        fixture_answer_sized(fixture, request, slice_skip(request->path, 7), true);
    else if (slice_starts_with(request->path, SLICE("/later")))
        fixture_park(fixture, request);
    else
        fixture_answer_echo(fixture, request);
}

static inline struct fixture *fixture_new(const struct fixture_settings *settings)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);
    struct net_address address;
    struct error err;

    mutex_init(&fixture->lock);
    condition_init(&fixture->parked_came);
    assert_ok(net_loops_new(settings->loops, &fixture->loops, &err), &err);
    assert_ok(net_address_parse(SLICE("127.0.0.1:0"), &address, &err), &err);
    fixture->http = net_http_new(fixture->loops, &settings->http,
                                 settings->handle ? settings->handle : fixture_handle,
                                 settings->handle ? settings->context : fixture);
    assert_ok(net_listener_new(fixture->loops, &address, &settings->listener, &net_http_protocol,
                               fixture->http, settings->tls, &fixture->listener, &err),
              &err);
    return fixture;
}

/* In the order the server stops in. */
static inline void fixture_free(struct fixture *fixture)
{
    net_listener_free(fixture->listener);
    /* What was answered meanwhile has been posted before this and is done after it. */
    net_loops_free(fixture->loops);
    net_http_free(fixture->http);
    condition_done(&fixture->parked_came);
    mutex_done(&fixture->lock);
    memory_free(fixture);
}
CLEANUP_FN(struct fixture *, fixture_free)

/* Waits for the next request to /later; the test must answer it. */
static inline struct net_http_request *fixture_parked(struct fixture *fixture)
{
    struct net_http_request *request = NULL;

    WITH_LOCK (&fixture->lock) {
        while (fixture->parked_taken == fixture->parked_count)
            condition_wait(&fixture->parked_came, &fixture->lock);
        request = fixture->parked[fixture->parked_taken++];
    }
    return request;
}

/* Clients */

struct client {
    int fd;
    SSL *ssl;
    SSL_CTX *ssl_context;
    struct buf input; /* not looked at yet */
    struct buf body;  /* of the last answer */
};

static inline struct client *client_new(struct fixture *fixture)
{
    struct client *client = MEMORY_NEW(struct client);
    const struct net_address *address = net_listener_address(fixture->listener);
    struct timeval patience = {.tv_sec = 10};

    buf_init(&client->input, BUF_DEFAULT_MAX);
    buf_init(&client->body, BUF_DEFAULT_MAX);
    client->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(client->fd, &address->any, address->len), 0);
    return client;
}

static inline void client_free(struct client *client)
{
    SSL_free(client->ssl);
    SSL_CTX_free(client->ssl_context);
    if (client->fd >= 0)
        close(client->fd);
    buf_done(&client->input);
    buf_done(&client->body);
    memory_free(client);
}
CLEANUP_FN(struct client *, client_free)

/* Whoever the server is. False: it would not. */
static inline bool client_start_tls(struct client *client)
{
    static const unsigned char alpn[] = "\x02h2\x08http/1.1";

    client->ssl_context = SSL_CTX_new(TLS_client_method());
    client->ssl = SSL_new(client->ssl_context);
    SSL_set_alpn_protos(client->ssl, alpn, sizeof alpn - 1);
    SSL_set_fd(client->ssl, client->fd);
    return SSL_connect(client->ssl) == 1;
}

static inline void client_send(struct client *client, struct slice bytes)
{
    while (bytes.len) {
        ssize_t sent = client->ssl ? SSL_write(client->ssl, bytes.data, (int)bytes.len)
                                   : send(client->fd, bytes.data, bytes.len, MSG_NOSIGNAL);

        if (sent <= 0)
            fail_msg("sending failed with %zu bytes left", bytes.len);
        bytes = slice_skip(bytes, (size_t)sent);
    }
}

#define CLIENT_SEND(client, text) client_send((client), SLICE(text))

/* Reads once. False: the server has closed. */
static inline bool client_receive(struct client *client)
{
    uint8_t bytes[16 * 1024];
    ssize_t got = client->ssl ? SSL_read(client->ssl, bytes, sizeof bytes)
                              : recv(client->fd, bytes, sizeof bytes, 0);

    if (got > 0)
        buf_append(&client->input, bytes, (size_t)got);
    return got > 0;
}

struct answer {
    unsigned status;
    char head[4096]; /* NUL-terminated */
    struct slice body;
};

static inline size_t answer_length(const char *head)
{
    const char *line = strstr(head, "\r\nContent-Length: ");
    uint64_t length = 0;

    if (line) {
        line += strlen("\r\nContent-Length: ");
        if (!slice_to_uint64(slice_of(line, strspn(line, "0123456789")), &length))
            fail_msg("the length is no number");
    }
    return (size_t)length;
}

/* Reads the next answer whole; the body is borrowed until the next call. False: the server closed
 * before there was one. */
static inline bool client_read(struct client *client, struct answer *ret_answer)
{
    static const char end[] = "\r\n\r\n";
    size_t length;
    char *found;

    while (!(found = client->input.len
                         ? memmem(client->input.data, client->input.len, end, sizeof end - 1)
                         : NULL))
        if (!client_receive(client))
            return false;
    length = (size_t)(found - (char *)client->input.data) + sizeof end - 1;
    assert_true(length < sizeof ret_answer->head);
    memcpy(ret_answer->head, client->input.data, length);
    ret_answer->head[length] = '\0';
    buf_consume(&client->input, length);
    assert_memory_equal(ret_answer->head, "HTTP/1.1 ", 9);
    ret_answer->status = (unsigned)strtoul(ret_answer->head + 9, NULL, 10);
    length = answer_length(ret_answer->head);
    while (client->input.len < length)
        if (!client_receive(client))
            return false;
    buf_clear(&client->body);
    buf_append(&client->body, client->input.data, length);
    buf_consume(&client->input, length);
    ret_answer->body = buf_slice(&client->body);
    return true;
}

/* The next answer must be this. */
static inline void client_expect(struct client *client, unsigned status, struct slice body)
{
    struct answer answer;

    if (!client_read(client, &answer))
        fail_msg("the server closed without an answer");
    assert_int_equal(answer.status, status);
    assert_slice_equal(answer.body, body);
}

/* Nothing more comes: the server closes, or resets. */
static inline void client_expect_closed(struct client *client)
{
    assert_int_equal(client->input.len, 0);
    assert_false(client_receive(client));
}

/* A fresh self-signed P-256 certificate and its key, as PEM text in the arena. */
static inline void certificate_make(struct arena *arena, struct slice *ret_certificate,
                                    struct slice *ret_key)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;
    long len;

    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    PEM_write_bio_X509(bio, certificate);
    len = BIO_get_mem_data(bio, &text);
    *ret_certificate = arena_copy(arena, slice_of(text, (size_t)len));
    BIO_reset(bio);
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    len = BIO_get_mem_data(bio, &text);
    *ret_key = arena_copy(arena, slice_of(text, (size_t)len));
    BIO_free(bio);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static inline struct net_tls_context *tls_context_make(void)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct net_tls_context *context = NULL;
    struct slice certificate, key;
    struct error err;

    certificate_make(arena, &certificate, &key);
    assert_ok(net_tls_context_new_pem(certificate, key, &context, &err), &err);
    return context;
}
