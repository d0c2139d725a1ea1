/* The pair is kept as two PEM files, tls/certificate.pem and tls/key.pem, so that clients can be
 * given the first. The key is written first: a crash between the two leaves no certificate, and
 * the next start makes both again. */
#include "server/certificate.h"

#include "base/buf.h"
#include "base/random.h"
#include "server/file.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

enum {
    VALID_DAYS = 825, /* what strict clients accept at most */
    RENEW_DAYS = 30,
    HOST_NAME_MAX_BYTES = 64, /* of a common name, and of Linux */
};

CLEANUP_FN(EVP_PKEY *, EVP_PKEY_free)
CLEANUP_FN(X509 *, X509_free)
CLEANUP_FN(BIO *, BIO_free_all)
CLEANUP_FN(X509_EXTENSION *, X509_EXTENSION_free)

static bool openssl_failed(const char *what, struct error *err)
{
    char reason[160];

    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    return error_set(err, ERROR_CERTIFICATE, "%s: %s", what, reason);
}

/* A name with bytes that OpenSSL would read as syntax of its own is left out. */
static bool host_name(char *ret_name, size_t size)
{
    if (gethostname(ret_name, size) != 0)
        return false;
    ret_name[size - 1] = '\0';
    return ret_name[0] &&
           ret_name[strspn(ret_name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789.-")] == '\0';
}

static bool extension_add(X509 *x509, int nid, const char *value)
{
    X509V3_CTX context;
    CLEANUP(X509_EXTENSION_free) X509_EXTENSION *extension = NULL;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
    extension = X509V3_EXT_nconf_nid(NULL, &context, nid, value);
    return extension && X509_add_ext(x509, extension, -1) == 1;
}

static bool names_add(X509 *x509)
{
    char host[HOST_NAME_MAX_BYTES + 1], names[256];
    X509_NAME *subject = X509_get_subject_name(x509);

    snprintf(names, sizeof names, "DNS:localhost,IP:127.0.0.1,IP:::1");
    if (host_name(host, sizeof host)) {
        size_t at = strlen(names);

        snprintf(names + at, sizeof names - at, ",DNS:%s", host);
    }
    return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                      (const unsigned char *)"localhost", -1, -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, (const unsigned char *)"Orrery",
                                      -1, -1, 0) == 1 &&
           X509_set_issuer_name(x509, subject) == 1 &&
           extension_add(x509, NID_subject_alt_name, names);
}

static bool serial_set(X509 *x509)
{
    uint64_t serial;

    random_secret(&serial, sizeof serial);
    return ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), (serial >> 1) | 1) == 1;
}

static bool certificate_fill(X509 *x509, EVP_PKEY *key, int64_t now_ms)
{
    time_t now = now_ms / 1000;

    /* an hour back, for clients whose clock is slow */
    return X509_set_version(x509, X509_VERSION_3) == 1 && serial_set(x509) &&
           X509_time_adj(X509_getm_notBefore(x509), -3600, &now) &&
           X509_time_adj_ex(X509_getm_notAfter(x509), VALID_DAYS, 0, &now) &&
           X509_set_pubkey(x509, key) == 1 && names_add(x509) &&
           extension_add(x509, NID_basic_constraints, "critical,CA:FALSE") &&
           extension_add(x509, NID_key_usage, "critical,digitalSignature") &&
           extension_add(x509, NID_ext_key_usage, "serverAuth") &&
           X509_sign(x509, key, EVP_sha256()) > 0;
}

static void bio_append(BIO *bio, struct buf *out)
{
    char *data;
    long len = BIO_get_mem_data(bio, &data);

    if (len > 0)
        buf_append(out, data, (size_t)len);
}

bool certificate_make(int64_t now_ms, struct buf *ret_certificate, struct buf *ret_key,
                      struct error *err)
{
    CLEANUP(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    CLEANUP(X509_free) X509 *x509 = X509_new();
    CLEANUP(BIO_free_all) BIO *certificate_text = BIO_new(BIO_s_mem());
    CLEANUP(BIO_free_all) BIO *key_text = BIO_new(BIO_s_secmem());

    if (!key || !x509 || !certificate_text || !key_text || !certificate_fill(x509, key, now_ms) ||
        PEM_write_bio_X509(certificate_text, x509) != 1 ||
        PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL) != 1)
        return openssl_failed("making a certificate", err);
    bio_append(certificate_text, ret_certificate);
    bio_append(key_text, ret_key);
    return true;
}

static bool in_memory(int64_t now_ms, struct net_tls_context **ret_context, struct error *err)
{
    CLEANUP(buf_done) struct buf certificate;
    CLEANUP(buf_done) struct buf key;

    buf_init(&certificate, CERTIFICATE_PEM_MAX);
    buf_init(&key, CERTIFICATE_PEM_MAX);
    return certificate_make(now_ms, &certificate, &key, err) &&
           net_tls_context_new_pem(buf_slice(&certificate), buf_slice(&key), ret_context, err);
}

/* Whether the file holds a certificate that is still good for a while. A broken one is not ours to
 * throw away: it counts as good here and is refused with a message when it is used. */
static bool still_good(const char *path, int64_t now_ms)
{
    CLEANUP(BIO_free_all) BIO *file = BIO_new_file(path, "r");
    CLEANUP(X509_free) X509 *x509 = file ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    time_t limit = now_ms / 1000 + (time_t)RENEW_DAYS * 24 * 3600;

    ERR_clear_error();
    if (access(path, F_OK) != 0)
        return false;
    return !x509 || X509_cmp_time(X509_get0_notAfter(x509), &limit) > 0;
}

static bool pair_write(const char *certificate_path, const char *key_path, int64_t now_ms,
                       struct error *err)
{
    CLEANUP(buf_done) struct buf certificate;
    CLEANUP(buf_done) struct buf key;

    buf_init(&certificate, CERTIFICATE_PEM_MAX);
    buf_init(&key, CERTIFICATE_PEM_MAX);
    return certificate_make(now_ms, &certificate, &key, err) &&
           server_file_write_private(key_path, buf_slice(&key), err) &&
           server_file_write_private(certificate_path, buf_slice(&certificate), err);
}

static bool in_directory(const char *directory, int64_t now_ms,
                         struct net_tls_context **ret_context, struct error *err)
{
    char folder[PATH_MAX], certificate[PATH_MAX + 32], key[PATH_MAX + 32];
    int length = snprintf(folder, sizeof folder, "%s/tls", directory);

    if (length < 0 || (size_t)length >= sizeof folder)
        return error_set(err, ERROR_CERTIFICATE, "the path of directory \"%.80s...\" is too long",
                         directory);
    snprintf(certificate, sizeof certificate, "%s/certificate.pem", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    if (!server_file_make_directory(folder, err))
        return false;
    if (!still_good(certificate, now_ms) && !pair_write(certificate, key, now_ms, err))
        return false;
    return net_tls_context_new(certificate, key, ret_context, err);
}

bool certificate_load(const struct certificate_source *source, int64_t now_ms,
                      struct net_tls_context **ret_context, struct error *err)
{
    bool has_certificate = source->certificate_path[0], has_key = source->key_path[0];

    if (has_certificate != has_key)
        return error_set(err, ERROR_CONFIGURATION,
                         "tls.certificate and tls.key go together: %s is not set",
                         has_key ? "tls.certificate" : "tls.key");
    if (has_certificate)
        return net_tls_context_new(source->certificate_path, source->key_path, ret_context, err);
    if (source->directory)
        return in_directory(source->directory, now_ms, ret_context, err);
    return in_memory(now_ms, ret_context, err);
}
