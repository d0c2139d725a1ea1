/* Certificate: what the server shows to clients that speak TLS.
 *
 * The operator's own (tls.certificate, tls.key), or one the server makes for itself: signed by a
 * local authority which is made once, at the first start, and stays. Clients that are told to trust
 * the authority need not be told again when the certificate is made anew: for other names, near its
 * end, or under another authority. Both are kept beside the data; without a directory the authority
 * is kept by whoever the source names, and the certificate lives in memory.
 *
 *     DIRECTORY/tls/ca.pem       the authority; public
 *     DIRECTORY/tls/ca.key       its private key
 *     DIRECTORY/tls/server.pem   the server's private key, its certificate, and the authority
 */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "net/tls.h"
#include "server/certificate_names.h"

/* Keeps an authority and its private key, as PEM, where there is no directory. Nothing is appended
 * where nothing is kept yet. */
struct certificate_keeper {
    bool (*read)(void *context, struct buf *authority, struct buf *key, struct error *err);
    bool (*write)(void *context, struct slice authority, struct slice key, struct error *err);
    void *context;
};

struct certificate_source {
    const char *certificate_path, *key_path; /* the operator's; empty: none */
    const char *clients_path;                /* authorities of clients; empty: none */
    const char *names;                       /* as tls.names has them */
    const char *account_suffix;              /* as account.host_suffix has it */
    struct log *log;                         /* borrowed; may be NULL */
    struct certificate_keeper keeper;        /* read NULL: another authority at every start */
};

struct certificate; /* opaque, owned */

/* Looks at nothing but the source, which must outlive it. ERROR_CONFIGURATION: only one of the
 * paths is given, or a name is none. */
NODISCARD bool certificate_new(const struct certificate_source *source,
                               struct certificate **ret_certificate, struct error *err);
void certificate_free(struct certificate *certificate); /* NULL is fine */
CLEANUP_FN(struct certificate *, certificate_free)

/* The hosts that are this server, whoever made the certificate. Borrowed. */
const struct certificate_names *certificate_hosts(const struct certificate *certificate);

/* Reads the certificate, or makes what is missing or no longer right; at the start, and again
 * whenever files may have changed. directory may be NULL. Not by two threads at once. On an error
 * everything stays as it was. ERROR_CERTIFICATE: a file is missing or broken, or files do not
 * belong together; ERROR_CONFIGURATION: others may read a private key; ERROR_SYSTEM. */
NODISCARD bool certificate_load(struct certificate *certificate, const char *directory,
                                int64_t now_ms, struct net_tls_context **ret_context,
                                struct error *err);

/* Appends the authority clients have to trust, as PEM; from any thread. False when the certificate
 * is the operator's: then it is theirs to know who signed it. */
NODISCARD bool certificate_authority(struct certificate *certificate, struct buf *out);

/* What lies in a directory, without a server: PEM text of the authority and of server.pem without
 * its key; the latter is left empty where there is none yet. ERROR_CERTIFICATE: there is no
 * authority; ERROR_SYSTEM. */
NODISCARD bool certificate_inspect(const char *directory, struct buf *ret_authority,
                                   struct buf *ret_server, struct error *err);
