/* Extensions are given to OpenSSL as its own short texts where they are constant; names from
 * outside never are, for there they would be read as syntax. */
#include "server/x509.h"

#include "base/random.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

enum {
    AUTHORITY_DAYS = 3653,
    SERVER_DAYS = 825,
    RENEW_DAYS = 30,
    SLACK_S = 3600, /* for clients whose clock is slow */
    SHORT_ID_BYTES = 4,
};

static const char authority_name[] = "Orrery local CA ";
static const char organization[] = "Orrery";

CLEANUP_FN(EVP_PKEY *, EVP_PKEY_free)
CLEANUP_FN(X509 *, X509_free)
CLEANUP_FN(BIO *, BIO_free_all)
CLEANUP_FN(X509_EXTENSION *, X509_EXTENSION_free)
CLEANUP_FN(GENERAL_NAME *, GENERAL_NAME_free)
CLEANUP_FN(GENERAL_NAMES *, GENERAL_NAMES_free)

void x509_secret_done(struct buf *buf)
{
    if (buf->data)
        OPENSSL_cleanse(buf->data, buf->len);
    buf_done(buf);
}

static bool failed(const char *what, struct error *err)
{
    char reason[160] = "no reason given";
    unsigned long code = ERR_get_error();

    if (code)
        ERR_error_string_n(code, reason, sizeof reason);
    ERR_clear_error();
    return error_set(err, ERROR_CERTIFICATE, "%s: %s", what, reason);
}

/* --- PEM ------------------------------------------------------------------------------------- */

/* Without this, OpenSSL would ask for a password on the terminal. */
static int no_password(char *to UNUSED, int size UNUSED, int writing UNUSED, void *context UNUSED)
{
    return 0;
}

/* NULL when there is none. */
static X509 *certificate_read(struct slice pem)
{
    CLEANUP(BIO_free_all) BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.len);
    X509 *x509 = bio ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;

    ERR_clear_error();
    return x509;
}

static EVP_PKEY *key_read(struct slice pem)
{
    CLEANUP(BIO_free_all) BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.len);
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;

    ERR_clear_error();
    return key;
}

static void bio_append(BIO *bio, struct buf *out)
{
    char *data;
    long len = BIO_get_mem_data(bio, &data);

    if (len > 0)
        buf_append(out, data, (size_t)len);
}

static bool certificate_write(X509 *x509, struct buf *out)
{
    CLEANUP(BIO_free_all) BIO *bio = BIO_new(BIO_s_mem());

    if (!bio || PEM_write_bio_X509(bio, x509) != 1)
        return false;
    bio_append(bio, out);
    return true;
}

static bool key_write(EVP_PKEY *key, struct buf *out)
{
    CLEANUP(BIO_free_all) BIO *bio = BIO_new(BIO_s_secmem());

    if (!bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return false;
    bio_append(bio, out);
    return true;
}

/* --- Making ---------------------------------------------------------------------------------- */

static bool extension_add(X509 *x509, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    CLEANUP(X509_EXTENSION_free) X509_EXTENSION *extension = NULL;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
    extension = X509V3_EXT_nconf_nid(NULL, &context, nid, value);
    return extension && X509_add_ext(x509, extension, -1) == 1;
}

static bool subject_set(X509 *x509, const char *name)
{
    X509_NAME *subject = X509_get_subject_name(x509);

    return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                                      -1, 0) == 1 &&
           X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
                                      (const unsigned char *)organization, -1, -1, 0) == 1;
}

static bool serial_set(X509 *x509)
{
    uint64_t serial;

    random_secret(&serial, sizeof serial);
    return ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), (serial >> 1) | 1) == 1;
}

/* What both kinds have in common. */
static bool certificate_begin(X509 *x509, EVP_PKEY *key, int64_t now_ms, int days)
{
    time_t now = now_ms / 1000;

    return X509_set_version(x509, X509_VERSION_3) == 1 && serial_set(x509) &&
           X509_time_adj(X509_getm_notBefore(x509), -SLACK_S, &now) &&
           X509_time_adj_ex(X509_getm_notAfter(x509), days, 0, &now) &&
           X509_set_pubkey(x509, key) == 1;
}

/* The digits tell two authorities apart in the list of a browser, and two of one name would
 * confuse whoever looks for an issuer. */
static bool authority_fill(X509 *x509, EVP_PKEY *key, int64_t now_ms)
{
    char name[sizeof authority_name + 2 * SHORT_ID_BYTES];
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len;

    if (!certificate_begin(x509, key, now_ms, AUTHORITY_DAYS) ||
        X509_pubkey_digest(x509, EVP_sha256(), digest, &len) != 1)
        return false;
    snprintf(name, sizeof name, "%s%02x%02x%02x%02x", authority_name, digest[0], digest[1],
             digest[2], digest[3]);
    return subject_set(x509, name) &&
           X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1 &&
           extension_add(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
           extension_add(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign") &&
           extension_add(x509, x509, NID_subject_key_identifier, "hash") &&
           X509_sign(x509, key, EVP_sha256()) > 0;
}

bool x509_make_authority(int64_t now_ms, struct buf *ret_certificate, struct buf *ret_key,
                         struct error *err)
{
    CLEANUP(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    CLEANUP(X509_free) X509 *x509 = X509_new();

    if (!key || !x509 || !authority_fill(x509, key, now_ms) ||
        !certificate_write(x509, ret_certificate) || !key_write(key, ret_key))
        return failed("making a certificate authority", err);
    return true;
}

static bool general_name_fill(GENERAL_NAME *general, const struct certificate_name *name)
{
    const uint8_t *bytes = name->address_len ? name->address : name->text.data;
    size_t len = name->address_len ? name->address_len : name->text.len;
    ASN1_STRING *value = name->address_len ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();

    if (!value)
        return false;
    GENERAL_NAME_set0_value(general, name->address_len ? GEN_IPADD : GEN_DNS, value);
    return ASN1_STRING_set(value, bytes, (int)len) == 1;
}

/* NULL when memory is out. */
static GENERAL_NAMES *general_names_of(const struct certificate_names *names)
{
    CLEANUP(GENERAL_NAMES_free) GENERAL_NAMES *list = GENERAL_NAMES_new();

    for (size_t i = 0; list && i < names->count; i++) {
        CLEANUP(GENERAL_NAME_free) GENERAL_NAME *general = GENERAL_NAME_new();

        if (!general || !general_name_fill(general, &names->list[i]) ||
            sk_GENERAL_NAME_push(list, general) <= 0)
            return NULL;
        (void)TAKE(general);
    }
    return TAKE(list);
}

static bool names_add(X509 *x509, const struct certificate_names *names)
{
    CLEANUP(GENERAL_NAMES_free) GENERAL_NAMES *list = general_names_of(names);

    return list && X509_add1_ext_i2d(x509, NID_subject_alt_name, list, 0, X509V3_ADD_DEFAULT) == 1;
}

/* A certificate that outlives its authority only looks good. */
static bool end_with(X509 *x509, const X509 *authority)
{
    const ASN1_TIME *end = X509_get0_notAfter(authority);

    if (ASN1_TIME_compare(X509_get0_notAfter(x509), end) <= 0)
        return true;
    return X509_set1_notAfter(x509, end) == 1;
}

static bool server_fill(X509 *x509, EVP_PKEY *key, X509 *authority, EVP_PKEY *authority_key,
                        const struct certificate_names *names, int64_t now_ms)
{
    return certificate_begin(x509, key, now_ms, SERVER_DAYS) && end_with(x509, authority) &&
           subject_set(x509, "localhost") &&
           X509_set_issuer_name(x509, X509_get_subject_name(authority)) == 1 &&
           names_add(x509, names) &&
           extension_add(x509, authority, NID_basic_constraints, "critical,CA:FALSE") &&
           extension_add(x509, authority, NID_key_usage, "critical,digitalSignature") &&
           extension_add(x509, authority, NID_ext_key_usage, "serverAuth") &&
           extension_add(x509, authority, NID_subject_key_identifier, "hash") &&
           extension_add(x509, authority, NID_authority_key_identifier, "keyid") &&
           X509_sign(x509, authority_key, EVP_sha256()) > 0;
}

bool x509_issue(struct slice authority, struct slice authority_key,
                const struct certificate_names *names, int64_t now_ms, struct buf *ret_pem,
                struct error *err)
{
    CLEANUP(X509_free) X509 *issuer = certificate_read(authority);
    CLEANUP(EVP_PKEY_free) EVP_PKEY *issuer_key = key_read(authority_key);
    CLEANUP(EVP_PKEY_free) EVP_PKEY *key = NULL;
    CLEANUP(X509_free) X509 *x509 = NULL;

    if (!issuer || X509_check_ca(issuer) != 1)
        return error_set(err, ERROR_CERTIFICATE,
                         "the certificate of the authority is broken, or not an authority's");
    if (!issuer_key || X509_check_private_key(issuer, issuer_key) != 1) {
        ERR_clear_error();
        return error_set(err, ERROR_CERTIFICATE,
                         "the key of the authority is broken, or another authority's");
    }
    key = EVP_EC_gen("P-256");
    x509 = X509_new();
    if (!key || !x509 || !server_fill(x509, key, issuer, issuer_key, names, now_ms) ||
        !key_write(key, ret_pem) || !certificate_write(x509, ret_pem) ||
        !certificate_write(issuer, ret_pem))
        return failed("making a certificate", err);
    return true;
}

/* --- Judging --------------------------------------------------------------------------------- */

static bool ends_soon(const X509 *x509, int64_t now_ms)
{
    time_t now = now_ms / 1000, limit = now + (time_t)RENEW_DAYS * 24 * 3600;

    return X509_cmp_time(X509_get0_notAfter(x509), &limit) <= 0 ||
           X509_cmp_time(X509_get0_notBefore(x509), &now) > 0;
}

/* The extension is made from the names alone, so the same bytes mean the same names. */
static bool is_for(const X509 *x509, const struct certificate_names *names)
{
    CLEANUP(GENERAL_NAMES_free) GENERAL_NAMES *list = general_names_of(names);
    int at = X509_get_ext_by_NID(x509, NID_subject_alt_name, -1);
    const ASN1_OCTET_STRING *present;
    unsigned char *wanted = NULL;
    bool same;
    int len;

    if (!list || at < 0)
        return false;
    present = X509_EXTENSION_get_data(X509_get_ext(x509, at));
    len = i2d_GENERAL_NAMES(list, &wanted);
    same = len > 0 && ASN1_STRING_length(present) == len &&
           memcmp(ASN1_STRING_get0_data(present), wanted, (size_t)len) == 0;
    OPENSSL_free(wanted);
    return same;
}

static bool signed_by(X509 *x509, X509 *authority)
{
    bool is = X509_NAME_cmp(X509_get_issuer_name(x509), X509_get_subject_name(authority)) == 0 &&
              X509_verify(x509, X509_get0_pubkey(authority)) == 1;

    ERR_clear_error();
    return is;
}

enum x509_verdict x509_judge(struct slice pem, struct slice authority,
                             const struct certificate_names *names, int64_t now_ms)
{
    CLEANUP(X509_free) X509 *x509 = certificate_read(pem);
    CLEANUP(X509_free) X509 *issuer = certificate_read(authority);

    if (!x509)
        return X509_UNREADABLE;
    if (!issuer || !signed_by(x509, issuer))
        return X509_OTHER_AUTHORITY;
    if (!is_for(x509, names))
        return X509_OTHER_NAMES;
    return ends_soon(x509, now_ms) ? X509_ENDS : X509_GOOD;
}

/* The first value of that kind in the name; empty without one. */
static void name_entry(const X509_NAME *name, int nid, char *ret_text, size_t size)
{
    ret_text[0] = '\0';
    X509_NAME_get_text_by_NID(name, nid, ret_text, (int)size);
}

bool x509_authority_ends(struct slice authority, int64_t now_ms)
{
    CLEANUP(X509_free) X509 *x509 = certificate_read(authority);
    time_t limit = now_ms / 1000 + (time_t)RENEW_DAYS * 24 * 3600;
    char name[128];

    if (!x509)
        return false;
    name_entry(X509_get_subject_name(x509), NID_commonName, name, sizeof name);
    return slice_starts_with(slice_of_text(name), slice_of_text(authority_name)) &&
           X509_cmp_time(X509_get0_notAfter(x509), &limit) <= 0;
}

bool x509_is_self_signed_server(struct slice pem)
{
    CLEANUP(X509_free) X509 *x509 = certificate_read(pem);
    char name[64];

    if (!x509)
        return false;
    name_entry(X509_get_subject_name(x509), NID_organizationName, name, sizeof name);
    return strcmp(name, organization) == 0 && X509_check_ca(x509) == 0 && signed_by(x509, x509);
}

/* --- Telling --------------------------------------------------------------------------------- */

static void date_print(const ASN1_TIME *time, struct buf *out)
{
    struct tm tm;
    char text[32];

    if (ASN1_TIME_to_tm(time, &tm) != 1)
        return;
    strftime(text, sizeof text, "%Y-%m-%d", &tm);
    buf_append_text(out, text);
}

static void general_name_print(const GENERAL_NAME *general, struct buf *out)
{
    int kind;
    const ASN1_STRING *value = GENERAL_NAME_get0_value(general, &kind);
    char address[INET6_ADDRSTRLEN];

    if (kind == GEN_DNS) {
        buf_append(out, ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
    } else if (kind == GEN_IPADD) {
        int family = ASN1_STRING_length(value) == sizeof(struct in_addr) ? AF_INET : AF_INET6;
        bool whole = family == AF_INET || ASN1_STRING_length(value) == sizeof(struct in6_addr);

        if (whole && inet_ntop(family, ASN1_STRING_get0_data(value), address, sizeof address))
            buf_append_text(out, address);
    }
}

static void names_print(const X509 *x509, struct buf *out)
{
    CLEANUP(GENERAL_NAMES_free)
    GENERAL_NAMES *list = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);

    if (!list)
        return;
    BUF_APPEND(out, "  for          ");
    for (int i = 0; i < sk_GENERAL_NAME_num(list); i++) {
        if (i > 0)
            BUF_APPEND(out, ", ");
        general_name_print(sk_GENERAL_NAME_value(list, i), out);
    }
    BUF_APPEND(out, "\n");
}

static bool fingerprint_print(const X509 *x509, struct buf *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len;

    if (X509_digest(x509, EVP_sha256(), digest, &len) != 1)
        return false;
    BUF_APPEND(out, "  fingerprint  SHA-256 ");
    for (unsigned i = 0; i < len; i++)
        buf_printf(out, "%s%02X", i > 0 ? ":" : "", digest[i]);
    BUF_APPEND(out, "\n");
    return true;
}

bool x509_describe(struct slice pem, struct buf *out, struct error *err)
{
    CLEANUP(X509_free) X509 *x509 = certificate_read(pem);
    char name[128], issuer[128];

    if (!x509)
        return error_set(err, ERROR_CERTIFICATE, "no certificate in it can be read");
    name_entry(X509_get_subject_name(x509), NID_commonName, name, sizeof name);
    name_entry(X509_get_issuer_name(x509), NID_commonName, issuer, sizeof issuer);
    buf_printf(out, "  name         %s\n", name);
    if (strcmp(name, issuer) != 0)
        buf_printf(out, "  signed by    %s\n", issuer);
    names_print(x509, out);
    BUF_APPEND(out, "  valid        from ");
    date_print(X509_get0_notBefore(x509), out);
    BUF_APPEND(out, " to ");
    date_print(X509_get0_notAfter(x509), out);
    BUF_APPEND(out, "\n");
    if (!fingerprint_print(x509, out))
        return failed("taking the fingerprint", err);
    return true;
}
