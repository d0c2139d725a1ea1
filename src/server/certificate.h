/* Certificate: what the server shows to clients that speak TLS.
 *
 * The operator's own (tls.certificate, tls.key), or one the server makes for itself at its first
 * start and keeps beside its data: P-256, signed by itself, for localhost, 127.0.0.1, ::1 and the
 * name of the machine. Without a directory it lives in memory and is another one each time. */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "net/tls.h"

struct certificate_source {
    const char *certificate_path, *key_path; /* the operator's; empty: none */
    const char *directory; /* of the node the server's own is kept with, or NULL */
};

enum { CERTIFICATE_PEM_MAX = 256 * 1024 }; /* bytes */

/* Reads the certificate, making the server's own where there is none yet or the present one ends
 * within 30 days of now_ms. ERROR_CERTIFICATE: a file is missing, broken, or the two do not belong
 * together; ERROR_CONFIGURATION: only one of the two settings was given. */
NODISCARD bool certificate_load(const struct certificate_source *source, int64_t now_ms,
                                struct net_tls_context **ret_context, struct error *err);

/* A fresh pair as PEM text in buffers the caller has made. ERROR_CERTIFICATE. */
struct buf;
NODISCARD bool certificate_make(int64_t now_ms, struct buf *ret_certificate, struct buf *ret_key,
                                struct error *err);
