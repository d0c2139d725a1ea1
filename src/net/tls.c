/* SSL_read and SSL_write work directly on the descriptor: libevent's layer for OpenSSL copies
 * everything once more and costs a third of the throughput.
 *
 * Read-ahead lets one read call fetch a whole record instead of its header first. The buffers for
 * that, 34 KB, are given back when a connection rests (net_tls_rest); giving them back after every
 * record, as SSL_MODE_RELEASE_BUFFERS does, costs a lone busy connection 6 %, and so is done only
 * where there are many. OpenSSL writes with write(), which raises SIGPIPE: every thread of ours has
 * it blocked (thread_start). The server's session cache is off, for tickets do the same without
 * memory here. */
#include "net/tls_private.h"

#include "base/memory.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>

enum { PEM_MAX = 1024 * 1024 };

struct net_tls_context {
    atomic_uint refs;
    SSL_CTX *native;
    bool trusts; /* authorities of clients are known */
};

struct net_tls {
    SSL *native;
    bool broken; /* after a fatal error nothing more may be sent, not even a goodbye */
};

static void ssl_free_cleanup_(SSL_CTX **context)
{
    SSL_CTX_free(*context);
}

static void bio_free_cleanup_(BIO **bio)
{
    BIO_free(*bio);
}

static void x509_free_cleanup_(X509 **certificate)
{
    X509_free(*certificate);
}

static void pkey_free_cleanup_(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}

/* OpenSSL keeps a queue of errors per thread; its first one says the most. */
static bool certificate_error(struct error *err, const char *what)
{
    char reason[160] = "no reason given";
    unsigned long code = ERR_get_error();

    if (code)
        ERR_error_string_n(code, reason, sizeof reason);
    ERR_clear_error();
    return error_set(err, ERROR_CERTIFICATE, "%s: %s", what, reason);
}

/* Without this, OpenSSL would ask for a password on the terminal. */
static int no_password(char *to UNUSED, int size UNUSED, int writing UNUSED, void *context UNUSED)
{
    return 0;
}

/* http/1.1 when it is offered; else the handshake goes on without ALPN, as old clients have it. */
static int alpn_select(SSL *ssl UNUSED, const unsigned char **ret_name, unsigned char *ret_len,
                       const unsigned char *offered, unsigned int offered_len, void *context UNUSED)
{
    static const unsigned char ours[] = "\x08http/1.1";

    if (SSL_select_next_proto((unsigned char **)ret_name, ret_len, ours, sizeof ours - 1, offered,
                              offered_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    return SSL_TLSEXT_ERR_OK;
}

static bool chain_load(SSL_CTX *context, struct slice pem, struct error *err)
{
    CLEANUP(bio_free) BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.len);
    CLEANUP(x509_free) X509 *leaf = NULL;

    leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
    if (!leaf || SSL_CTX_use_certificate(context, leaf) != 1)
        return certificate_error(err, "cannot read the certificate");
    for (;;) {
        X509 *next = PEM_read_bio_X509(bio, NULL, no_password, NULL);

        if (!next)
            break;
        if (SSL_CTX_add0_chain_cert(context, next) != 1) {
            X509_free(next);
            return certificate_error(err, "cannot use the certificate's chain");
        }
    }
    /* The end of the text shows as "no start line"; anything else is a damaged chain. */
    if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return certificate_error(err, "cannot read the certificate's chain");
    ERR_clear_error();
    return true;
}

static bool key_load(SSL_CTX *context, struct slice pem, struct error *err)
{
    CLEANUP(bio_free) BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.len);
    CLEANUP(pkey_free) EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);

    if (!key)
        return certificate_error(err, "cannot read the private key (it must have no password)");
    if (SSL_CTX_use_PrivateKey(context, key) != 1 || SSL_CTX_check_private_key(context) != 1)
        return certificate_error(err, "the private key does not belong to the certificate");
    return true;
}

static void context_configure(SSL_CTX *context)
{
    static const unsigned char session_scope[] = "orrery";

    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_NO_AUTO_CHAIN);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(context, session_scope, sizeof session_scope - 1);
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_alpn_select_cb(context, alpn_select, NULL);
}

static bool context_new(const SSL_METHOD *method, struct slice certificate, struct slice key,
                        struct net_tls_context **ret_context, struct error *err)
{
    CLEANUP(ssl_free) SSL_CTX *native = NULL;
    struct net_tls_context *context;

    if (certificate.len > PEM_MAX || key.len > PEM_MAX)
        return error_set(err, ERROR_CERTIFICATE, "a certificate or key is over %d bytes", PEM_MAX);
    ERR_clear_error();
    native = SSL_CTX_new(method);
    if (!native)
        return certificate_error(err, "cannot start TLS");
    context_configure(native);
    if (!chain_load(native, certificate, err) || !key_load(native, key, err))
        return false;
    context = MEMORY_NEW(struct net_tls_context);
    context->refs = 1;
    context->native = TAKE(native);
    *ret_context = context;
    return true;
}

bool net_tls_context_new_pem(struct slice certificate, struct slice key,
                             struct net_tls_context **ret_context, struct error *err)
{
    return context_new(TLS_server_method(), certificate, key, ret_context, err);
}

static bool authority_trust(SSL_CTX *context, struct slice pem, struct error *err)
{
    CLEANUP(bio_free) BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.len);
    CLEANUP(x509_free) X509 *authority = PEM_read_bio_X509(bio, NULL, no_password, NULL);

    if (!authority || X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) != 1 ||
        SSL_CTX_add_client_CA(context, authority) != 1)
        return certificate_error(err, "cannot use the authority of the servers");
    return true;
}

/* Their certificates are those of servers, whichever end they are: so the purpose is not asked for,
 * and the name is what tells them from certificates that are shown to clients. Nothing resumes:
 * a connection lives long, and a ticket would outlive the authority. */
bool net_tls_context_new_peers(struct slice certificate, struct slice key, struct slice authority,
                               const char *name, struct net_tls_context **ret_context,
                               struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
    X509_VERIFY_PARAM *wanted;

    if (!context_new(TLS_method(), certificate, key, &context, err) ||
        !authority_trust(context->native, authority, err))
        return false;
    SSL_CTX_set_min_proto_version(context->native, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(context->native, 0);
    SSL_CTX_set_verify(context->native, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    wanted = SSL_CTX_get0_param(context->native);
    if (X509_VERIFY_PARAM_set1_host(wanted, name, 0) != 1 ||
        X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_ANY) != 1)
        return certificate_error(err, "cannot ask servers for their name");
    *ret_context = TAKE(context);
    return true;
}

static void file_close_cleanup_(FILE **file)
{
    if (*file)
        fclose(*file);
}

/* The whole file; the caller frees it. */
static bool file_read(const char *path, struct slice *ret_text, struct error *err)
{
    CLEANUP(file_close) FILE *file = fopen(path, "re");
    CLEANUP(memory_free) uint8_t *text = NULL;
    size_t len;

    if (!file)
        return error_set_errno(err, ERROR_CERTIFICATE, "cannot open \"%s\"", path);
    text = memory_alloc(PEM_MAX + 1);
    len = fread(text, 1, PEM_MAX + 1, file);
    if (ferror(file))
        return error_set_errno(err, ERROR_CERTIFICATE, "cannot read \"%s\"", path);
    if (len > PEM_MAX)
        return error_set(err, ERROR_CERTIFICATE, "\"%s\" is over %d bytes", path, PEM_MAX);
    *ret_text = slice_of(TAKE(text), len);
    return true;
}

bool net_tls_context_new(const char *certificate_path, const char *key_path,
                         struct net_tls_context **ret_context, struct error *err)
{
    struct slice certificate = SLICE_NONE, key = SLICE_NONE;
    bool ok = file_read(certificate_path, &certificate, err) && file_read(key_path, &key, err);

    if (ok && !net_tls_context_new_pem(certificate, key, ret_context, err))
        ok = error_prefix(err, "\"%s\" with key \"%s\"", certificate_path, key_path);
    if (key.data)
        OPENSSL_cleanse((void *)key.data, key.len);
    memory_free((void *)certificate.data);
    memory_free((void *)key.data);
    return ok;
}

bool net_tls_context_trust(struct net_tls_context *context, const char *authority_path,
                           struct error *err)
{
    STACK_OF(X509_NAME) * names;

    ERR_clear_error();
    if (SSL_CTX_load_verify_locations(context->native, authority_path, NULL) != 1)
        return certificate_error(err, "cannot read the authorities of clients") ||
               error_prefix(err, "\"%s\"", authority_path);
    names = SSL_load_client_CA_file(authority_path);
    if (!names)
        return certificate_error(err, "no authority of clients is in the file") ||
               error_prefix(err, "\"%s\"", authority_path);
    SSL_CTX_set_client_CA_list(context->native, names);
    context->trusts = true;
    return true;
}

struct net_tls_context *net_tls_context_ref(struct net_tls_context *context)
{
    atomic_fetch_add_explicit(&context->refs, 1, memory_order_relaxed);
    return context;
}

struct net_tls_context *net_tls_context_unref(struct net_tls_context *context)
{
    if (context && atomic_fetch_sub_explicit(&context->refs, 1, memory_order_acq_rel) == 1) {
        SSL_CTX_free(context->native);
        memory_free(context);
    }
    return NULL;
}

/* The SSL holds the SSL_CTX, so that the context may go before the connection. */
static struct net_tls *tls_new(struct net_tls_context *context, int fd)
{
    struct net_tls *tls = MEMORY_NEW(struct net_tls);

    tls->native = SSL_new(context->native);
    if (!tls->native || SSL_set_fd(tls->native, fd) != 1)
        memory_exhausted(sizeof *tls); /* nothing else makes these fail */
    return tls;
}

struct net_tls *net_tls_new_dialling(struct net_tls_context *context, int fd)
{
    struct net_tls *tls = tls_new(context, fd);

    SSL_set_connect_state(tls->native);
    return tls;
}

struct net_tls *net_tls_new(struct net_tls_context *context, int fd, bool frugal, bool certificates)
{
    struct net_tls *tls = tls_new(context, fd);

    SSL_set_accept_state(tls->native);
    if (certificates && context->trusts) /* who has none is served all the same */
        SSL_set_verify(tls->native, SSL_VERIFY_PEER, NULL);
    if (frugal)
        SSL_set_mode(tls->native, SSL_MODE_RELEASE_BUFFERS);
    return tls;
}

bool net_tls_subject(const struct net_tls *tls, struct buf *out)
{
    CLEANUP(bio_free) BIO *bio = BIO_new(BIO_s_mem());
    X509 *certificate = SSL_get1_peer_certificate(tls->native);
    char *text;
    long len;

    if (!certificate || SSL_get_verify_result(tls->native) != X509_V_OK ||
        !(SSL_get_verify_mode(tls->native) & SSL_VERIFY_PEER)) {
        X509_free(certificate);
        return false;
    }
    X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
                       XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB);
    X509_free(certificate);
    len = BIO_get_mem_data(bio, &text);
    buf_append(out, text, (size_t)MAX(len, 0L));
    return len > 0;
}

void net_tls_free(struct net_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->native);
    memory_free(tls);
}

static enum net_io io_of(struct net_tls *tls)
{
    switch (SSL_get_error(tls->native, 0)) {
    case SSL_ERROR_WANT_READ:
        return NET_IO_WANTS_READ;
    case SSL_ERROR_WANT_WRITE:
        return NET_IO_WANTS_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        return NET_IO_CLOSED;
    default:
        tls->broken = true;
        ERR_clear_error();
        return NET_IO_FAILED;
    }
}

/* An error left by somebody else on this thread would be taken for ours. Clearing costs more than
 * looking. */
static void errors_clear(void)
{
    if (UNLIKELY(ERR_peek_error()))
        ERR_clear_error();
}

enum net_io net_tls_read(struct net_tls *tls, void *to, size_t size, size_t *ret_count)
{
    errors_clear();
    if (SSL_read_ex(tls->native, to, size, ret_count) == 1)
        return NET_IO_DONE;
    return io_of(tls);
}

enum net_io net_tls_write(struct net_tls *tls, const void *from, size_t size, size_t *ret_count)
{
    errors_clear();
    if (SSL_write_ex(tls->native, from, size, ret_count) == 1)
        return NET_IO_DONE;
    return io_of(tls);
}

bool net_tls_is_established(const struct net_tls *tls)
{
    return SSL_is_init_finished(tls->native);
}

bool net_tls_has_pending(const struct net_tls *tls)
{
    return SSL_has_pending(tls->native);
}

void net_tls_rest(struct net_tls *tls)
{
    SSL_free_buffers(tls->native); /* refuses when they hold something */
}

void net_tls_shutdown(struct net_tls *tls)
{
    if (tls->broken || !SSL_is_init_finished(tls->native))
        return;
    ERR_clear_error();
    if (SSL_shutdown(tls->native) < 0)
        ERR_clear_error();
}
