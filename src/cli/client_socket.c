#include "cli/client_socket.h"

#include "base/memory.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A page that sorts may take the server a minute. */
enum { STEP_SECONDS_MAX = 90, READ_BYTES = 64 * 1024 };

struct cli_link {
    int fd;
    int cancel;
    SSL_CTX *context;
    SSL *ssl;
};

void cli_link_close(struct cli_link *link)
{
    if (!link)
        return;
    SSL_free(link->ssl);
    SSL_CTX_free(link->context);
    if (link->fd >= 0)
        close(link->fd);
    memory_free(link);
}

/* --- Connecting ------------------------------------------------------------------------------ */

static int address_connect(const struct addrinfo *address)
{
    const struct timeval limit = {.tv_sec = STEP_SECONDS_MAX};
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    int cause;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    cause = errno;
    close(fd);
    errno = cause;
    return -1;
}

static bool link_connect(struct cli_link *link, const struct cli_socket_target *target,
                         struct error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    int code = getaddrinfo(target->host, target->port, &hints, &addresses), cause = 0;

    if (code != 0)
        return error_set(err, ERROR_SYSTEM, "host \"%s\" is not known: %s", target->host,
                         gai_strerror(code));
    for (struct addrinfo *at = addresses; at && link->fd < 0; at = at->ai_next) {
        link->fd = address_connect(at);
        cause = errno;
    }
    freeaddrinfo(addresses);
    if (link->fd < 0)
        return error_set(err, ERROR_SYSTEM,
                         "no server answers at %s port %s (%s): start one with `orrery serve`, or "
                         "name another with --endpoint",
                         target->host, target->port, strerror(cause));
    return true;
}

static bool tls_failed(const struct cli_link *link, struct error *err)
{
    long verdict = link->ssl ? SSL_get_verify_result(link->ssl) : X509_V_OK;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    if (verdict != X509_V_OK)
        return error_set(err, ERROR_CERTIFICATE,
                         "the server's certificate is not trusted (%s): name the file it is signed "
                         "with by --ca FILE",
                         X509_verify_cert_error_string(verdict));
    return error_set(err, ERROR_SYSTEM, "TLS failed: %s", reason ? reason : "the server hung up");
}

static bool link_secure(struct cli_link *link, const struct cli_socket_target *target,
                        struct error *err)
{
    uint8_t address[16];
    bool is_address = inet_pton(AF_INET, target->host, address) == 1 ||
                      inet_pton(AF_INET6, target->host, address) == 1;

    link->context = SSL_CTX_new(TLS_client_method());
    if (!link->context || !SSL_CTX_set_min_proto_version(link->context, TLS1_2_VERSION))
        return tls_failed(link, err);
    SSL_CTX_set_verify(link->context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_verify_paths(link->context);
    if (target->ca[0] && !SSL_CTX_load_verify_file(link->context, target->ca))
        return error_set(err, ERROR_CERTIFICATE, "file \"%s\" holds no certificates", target->ca);
    /* A certificate that was named itself is trusted although nobody signed it. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(link->context), X509_V_FLAG_PARTIAL_CHAIN);
    link->ssl = SSL_new(link->context);
    if (!link->ssl || !SSL_set_fd(link->ssl, link->fd) ||
        (is_address ? !X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(link->ssl), target->host)
                    : !SSL_set1_host(link->ssl, target->host) ||
                          !SSL_set_tlsext_host_name(link->ssl, target->host)) ||
        SSL_connect(link->ssl) != 1)
        return tls_failed(link, err);
    return true;
}

bool cli_link_open(const struct cli_socket_target *target, struct cli_link **ret_link,
                   struct error *err)
{
    CLEANUP(cli_link_close) struct cli_link *link = MEMORY_NEW(struct cli_link);

    link->fd = -1;
    link->cancel = target->cancel;
    if (!link_connect(link, target, err) || (target->tls && !link_secure(link, target, err)))
        return false;
    *ret_link = TAKE(link);
    return true;
}

/* --- Talking --------------------------------------------------------------------------------- */

bool cli_link_is_idle(struct cli_link *link)
{
    struct pollfd wait = {.fd = link->fd, .events = POLLIN};

    /* Nothing was asked, so whatever there is to read is the end. */
    return poll(&wait, 1, 0) == 0;
}

bool cli_link_write(struct cli_link *link, struct slice bytes, struct error *err)
{
    while (bytes.len) {
        size_t written = 0;
        ssize_t count;

        if (link->ssl) {
            if (!SSL_write_ex(link->ssl, bytes.data, bytes.len, &written))
                return tls_failed(link, err);
        } else {
            count = send(link->fd, bytes.data, bytes.len, MSG_NOSIGNAL);
            if (count < 0 && errno == EINTR)
                continue;
            if (count < 0)
                return error_set_errno(err, ERROR_SYSTEM, "the request cannot be sent");
            written = (size_t)count;
        }
        bytes = slice_skip(bytes, written);
    }
    return true;
}

static bool link_wait(struct cli_link *link, struct error *err)
{
    struct pollfd wait[] = {{.fd = link->fd, .events = POLLIN},
                            {.fd = link->cancel, .events = POLLIN}};
    int count;

    if (link->ssl && SSL_pending(link->ssl) > 0)
        return true;
    do
        count = poll(wait, ARRAY_LEN(wait), STEP_SECONDS_MAX * 1000);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return error_set_errno(err, ERROR_SYSTEM, "the answer cannot be waited for");
    if (count == 0)
        return error_set(err, ERROR_TIMED_OUT, "the server did not answer within %d seconds",
                         STEP_SECONDS_MAX);
    if (wait[1].revents)
        return error_set(err, ERROR_CANCELLED, "cancelled");
    return true;
}

/* 0: the end; -1: failed. */
static ssize_t link_receive(struct cli_link *link, uint8_t *to, size_t size)
{
    size_t got = 0;
    ssize_t count;

    if (link->ssl) {
        if (SSL_read_ex(link->ssl, to, size, &got))
            return (ssize_t)got;
        return SSL_get_error(link->ssl, 0) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
    }
    do
        count = recv(link->fd, to, size, 0);
    while (count < 0 && errno == EINTR);
    return count;
}

bool cli_link_read(struct cli_link *link, struct buf *reply, bool *ret_end, struct error *err)
{
    ssize_t count;

    if (!buf_reserve(reply, READ_BYTES))
        return error_set(err, ERROR_TOO_LARGE, "the answer is larger than %zu bytes", reply->max);
    if (!link_wait(link, err))
        return false;
    count = link_receive(link, reply->data + reply->len, READ_BYTES);
    /* A length in the answer tells whether it is whole, however the connection ended. */
    *ret_end = count <= 0;
    if (count > 0)
        reply->len += (size_t)count;
    return true;
}
