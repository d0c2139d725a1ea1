/* TLS: a server certificate with its key, ready for connections; OpenSSL behind it.
 *
 * A context never changes. A new certificate is a new context, handed to the listeners; the old one
 * lives until its last connection has gone. TLS 1.2 and later, ALPN "http/1.1", session tickets. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

struct net_tls_context; /* opaque, shared, reference-counted; any thread */

/* From PEM files: a certificate with any chain behind it, and its private key.
 * ERROR_CERTIFICATE: a file cannot be read or parsed, or the two do not belong together. */
NODISCARD bool net_tls_context_new(const char *certificate_path, const char *key_path,
                                   struct net_tls_context **ret_context, struct error *err);

/* The same from PEM text in memory. */
NODISCARD bool net_tls_context_new_pem(struct slice certificate, struct slice key,
                                       struct net_tls_context **ret_context, struct error *err);

/* Client certificates that authorities of this PEM file have signed are taken where a listener asks
 * for them. Before the context is handed on. ERROR_CERTIFICATE. */
NODISCARD bool net_tls_context_trust(struct net_tls_context *context, const char *authority_path,
                                     struct error *err);

/* A context for servers among themselves, for both ends of a connection: TLS 1.3, and each end
 * shows a certificate of this authority that is good for this name, or the handshake fails. PEM
 * texts. ERROR_CERTIFICATE. */
NODISCARD bool net_tls_context_new_peers(struct slice certificate, struct slice key,
                                         struct slice authority, const char *name,
                                         struct net_tls_context **ret_context, struct error *err);

struct net_tls_context *net_tls_context_ref(struct net_tls_context *context);
struct net_tls_context *net_tls_context_unref(struct net_tls_context *context); /* NULL is fine */
CLEANUP_FN(struct net_tls_context *, net_tls_context_unref)
