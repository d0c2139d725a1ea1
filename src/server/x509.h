/* X509: makes and reads certificates, as PEM text on both sides; OpenSSL behind it.
 *
 * Two kinds: an authority, which signs itself and is what clients are told to trust, and the
 * server's certificate, signed by it. Both have P-256 keys. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "server/certificate_names.h"

enum { X509_PEM_BYTES_MAX = 256 * 1024 };

/* A buffer that may hold a private key: wiped before it is freed. */
void x509_secret_done(struct buf *buf);
CLEANUP_VALUE_FN(struct buf, x509_secret_done)

/* An authority called "Orrery local CA" and eight digits of its key, good for ten years. The
 * buffers are the caller's. ERROR_CERTIFICATE. */
NODISCARD bool x509_make_authority(int64_t now_ms, struct buf *ret_certificate, struct buf *ret_key,
                                   struct error *err);

/* Appends a private key, a certificate of it for these names, and the authority that has signed
 * it. Good for 825 days, which is what strict clients accept at most, or until the authority ends.
 * ERROR_CERTIFICATE: the authority cannot be read, is none, or the key is another's. */
NODISCARD bool x509_issue(struct slice authority, struct slice authority_key,
                          const struct certificate_names *names, int64_t now_ms,
                          struct buf *ret_pem, struct error *err);

enum x509_verdict {
    X509_GOOD,
    X509_UNREADABLE,
    X509_OTHER_AUTHORITY, /* not signed by this one */
    X509_OTHER_NAMES,
    X509_ENDS, /* within 30 days, or not yet begun */
};

/* Whether a certificate made by x509_issue still is what x509_issue would make. */
enum x509_verdict x509_judge(struct slice pem, struct slice authority,
                             const struct certificate_names *names, int64_t now_ms);

/* Whether an authority made by x509_make_authority ends within 30 days. One made by others is left
 * alone until they replace it. */
bool x509_authority_ends(struct slice authority, int64_t now_ms);

/* Whether it is a certificate that signs itself and was made by a server without an authority. */
bool x509_is_self_signed_server(struct slice pem);

/* Appends what a person wants to know of the first certificate, a line each and indented by two
 * blanks: name, issuer where it is another, names it is for, validity, SHA-256 fingerprint.
 * ERROR_CERTIFICATE. */
NODISCARD bool x509_describe(struct slice pem, struct buf *out, struct error *err);
