/* server.pem is one file, so that it is replaced in one step. The authority's two files are written
 * once: the key first, for a certificate without its key could not be mended, while a key without
 * its certificate is only made again. */
#include "server/certificate.h"

#include "base/thread.h"
#include "server/file.h"
#include "server/x509.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_NAME_SIZE = 65, PATH_SIZE = PATH_MAX + 32 };

struct certificate {
    const struct certificate_source *source; /* borrowed */
    struct arena *arena;                     /* of the names */
    struct certificate_names names;
    struct buf memory_key; /* of an authority that lives in memory */
    struct mutex lock;     /* of what follows: probes read it while SIGHUP loads again */
    struct buf authority;  /* PEM; empty: the operator's certificate, or not loaded yet */
};

/* The files of one directory. */
struct files {
    char folder[PATH_MAX];
    char authority[PATH_SIZE], authority_key[PATH_SIZE], server[PATH_SIZE];
    char former[PATH_SIZE], former_key[PATH_SIZE]; /* of servers that had no authority */
};

static bool files_name(const char *directory, struct files *ret_files, struct error *err)
{
    struct files *files = ret_files;
    int length = snprintf(files->folder, sizeof files->folder, "%s/tls", directory);

    if (length < 0 || (size_t)length >= sizeof files->folder)
        return error_set(err, ERROR_CERTIFICATE, "the path of directory \"%.80s...\" is too long",
                         directory);
    snprintf(files->authority, PATH_SIZE, "%s/ca.pem", files->folder);
    snprintf(files->authority_key, PATH_SIZE, "%s/ca.key", files->folder);
    snprintf(files->server, PATH_SIZE, "%s/server.pem", files->folder);
    snprintf(files->former, PATH_SIZE, "%s/certificate.pem", files->folder);
    snprintf(files->former_key, PATH_SIZE, "%s/key.pem", files->folder);
    return true;
}

/* --- Making and freeing ---------------------------------------------------------------------- */

static bool source_check(const struct certificate_source *source, struct error *err)
{
    bool has_certificate = source->certificate_path[0], has_key = source->key_path[0];

    if (has_certificate != has_key)
        return error_set(err, ERROR_CONFIGURATION,
                         "tls.certificate and tls.key go together: %s is not set",
                         has_key ? "tls.certificate" : "tls.key");
    return true;
}

bool certificate_new(const struct certificate_source *source, struct certificate **ret_certificate,
                     struct error *err)
{
    CLEANUP(certificate_free) struct certificate *certificate = MEMORY_NEW(struct certificate);
    char host[HOST_NAME_SIZE] = "";
    struct certificate_names_source names;

    certificate->source = source;
    certificate->arena = arena_new();
    mutex_init(&certificate->lock);
    buf_init(&certificate->authority, X509_PEM_BYTES_MAX);
    buf_init(&certificate->memory_key, X509_PEM_BYTES_MAX);
    if (gethostname(host, sizeof host) != 0)
        host[0] = '\0';
    host[sizeof host - 1] = '\0';
    names = (struct certificate_names_source){
        .host = slice_of_text(host),
        .account_suffix = slice_of_text(source->account_suffix),
        .extra = slice_of_text(source->names),
    };
    if (!source_check(source, err) ||
        !certificate_names_make(&names, certificate->arena, &certificate->names, err))
        return false;
    *ret_certificate = TAKE(certificate);
    return true;
}

const struct certificate_names *certificate_hosts(const struct certificate *certificate)
{
    return &certificate->names;
}

void certificate_free(struct certificate *certificate)
{
    if (!certificate)
        return;
    x509_secret_done(&certificate->memory_key);
    buf_done(&certificate->authority);
    mutex_done(&certificate->lock);
    arena_free(certificate->arena);
    memory_free(certificate);
}

static void authority_publish(struct certificate *certificate, struct slice pem)
{
    WITH_LOCK (&certificate->lock) {
        buf_clear(&certificate->authority);
        buf_append_slice(&certificate->authority, pem);
    }
}

bool certificate_authority(struct certificate *certificate, struct buf *out)
{
    bool has = false;

    WITH_LOCK (&certificate->lock) {
        has = certificate->authority.len > 0;
        buf_append_slice(out, buf_slice(&certificate->authority));
    }
    return has;
}

/* --- In memory ------------------------------------------------------------------------------- */

/* The authority that is kept elsewhere, made if there is none or it ends. */
static bool authority_find(struct certificate *certificate, int64_t now_ms, struct buf *authority,
                           struct error *err)
{
    const struct certificate_keeper *keeper = &certificate->source->keeper;
    struct buf *key = &certificate->memory_key;

    buf_clear(key);
    if (keeper->read && !keeper->read(keeper->context, authority, key, err))
        return false;
    if (authority->len && !x509_authority_ends(buf_slice(authority), now_ms))
        return true;
    buf_clear(authority);
    buf_clear(key);
    if (!x509_make_authority(now_ms, authority, key, err))
        return false;
    if (!keeper->write)
        return true;
    log_event(certificate->source->log, LOG_INFO, "certificate authority made",
              LOG_TEXT("kept", "with the data"));
    return keeper->write(keeper->context, buf_slice(authority), buf_slice(key), err);
}

static bool load_in_memory(struct certificate *certificate, int64_t now_ms,
                           struct net_tls_context **ret_context, struct error *err)
{
    CLEANUP(buf_done) struct buf authority;
    CLEANUP(x509_secret_done) struct buf server;

    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&server, X509_PEM_BYTES_MAX);
    if (!certificate_authority(certificate, &authority) &&
        !authority_find(certificate, now_ms, &authority, err))
        return false;
    if (!x509_issue(buf_slice(&authority), buf_slice(&certificate->memory_key), &certificate->names,
                    now_ms, &server, err) ||
        !net_tls_context_new_pem(buf_slice(&server), buf_slice(&server), ret_context, err))
        return false;
    authority_publish(certificate, buf_slice(&authority));
    return true;
}

/* --- In a directory -------------------------------------------------------------------------- */

/* Reads a file that may be missing; then ret_text stays empty. */
static bool file_read(const char *path, struct buf *ret_text, struct error *err)
{
    return server_file_read(path, ret_text, err) || errno == ENOENT;
}

static bool key_file_read(const char *path, struct buf *ret_text, struct error *err)
{
    struct stat status;

    if (stat(path, &status) == 0 && status.st_mode & 077)
        return error_set(err, ERROR_CONFIGURATION,
                         "file \"%s\" may be read by others than its owner: chmod 600 it, and "
                         "consider the key known",
                         path);
    return file_read(path, ret_text, err);
}

/* An old certificate goes before its key does, so that no crash leaves two that do not belong
 * together. */
static bool authority_write(const struct files *files, int64_t now_ms, struct buf *authority,
                            struct buf *key, struct error *err)
{
    buf_clear(authority);
    buf_clear(key);
    if (!x509_make_authority(now_ms, authority, key, err))
        return false;
    if (unlink(files->authority) != 0 && errno != ENOENT)
        return error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", files->authority);
    return server_file_write_private(files->authority_key, buf_slice(key), err) &&
           server_file_write_private(files->authority, buf_slice(authority), err);
}

static bool authority_take(const struct certificate *certificate, const struct files *files,
                           int64_t now_ms, struct buf *authority, struct buf *key,
                           struct error *err)
{
    bool first, ends;

    if (!file_read(files->authority, authority, err) ||
        !key_file_read(files->authority_key, key, err))
        return false;
    first = authority->len == 0;
    ends = !first && x509_authority_ends(buf_slice(authority), now_ms);
    if (!first && !ends) {
        if (key->len == 0)
            return error_set(err, ERROR_CERTIFICATE,
                             "file \"%s\" is missing: put it back, or remove ca.pem to have "
                             "another authority made, which clients then have to trust",
                             files->authority_key);
        return true;
    }
    if (!authority_write(files, now_ms, authority, key, err))
        return false;
    log_event(certificate->source->log, ends ? LOG_WARNING : LOG_INFO, "certificate authority made",
              LOG_TEXT("file", files->authority),
              LOG_TEXT("because", ends ? "the one before is at its end: trust this one instead"
                                       : "there was none"));
    return true;
}

/* What nobody reads any longer. A pair that others have put there is not ours to remove. */
static void former_remove(const struct certificate *certificate, const struct files *files)
{
    CLEANUP(buf_done) struct buf text;
    struct error err;

    buf_init(&text, X509_PEM_BYTES_MAX);
    if (!file_read(files->former, &text, &err) || !x509_is_self_signed_server(buf_slice(&text)))
        return;
    unlink(files->former_key);
    unlink(files->former);
    log_event(certificate->source->log, LOG_WARNING, "self-signed certificate replaced",
              LOG_TEXT("file", files->former), LOG_TEXT("trust", files->authority));
}

static const char *reason_of(enum x509_verdict verdict)
{
    switch (verdict) {
    case X509_OTHER_AUTHORITY:
        return "the authority is another";
    case X509_OTHER_NAMES:
        return "the names are others";
    case X509_ENDS:
        return "the one before is at its end";
    case X509_UNREADABLE:
    case X509_GOOD:
        break;
    }
    return "there was none";
}

/* A broken file is not ours to throw away: it is left to whoever uses it to refuse it. */
static bool server_take(const struct certificate *certificate, const struct files *files,
                        struct slice authority, struct slice authority_key, int64_t now_ms,
                        struct buf *server, struct error *err)
{
    enum x509_verdict verdict;

    if (!key_file_read(files->server, server, err))
        return false;
    verdict = x509_judge(buf_slice(server), authority, &certificate->names, now_ms);
    if (verdict == X509_GOOD || (verdict == X509_UNREADABLE && server->len > 0))
        return true;
    x509_secret_done(server);
    buf_init(server, X509_PEM_BYTES_MAX);
    if (!x509_issue(authority, authority_key, &certificate->names, now_ms, server, err))
        return error_prefix(err, "\"%s\" with key \"%s\"", files->authority, files->authority_key);
    if (!server_file_write_private(files->server, buf_slice(server), err))
        return false;
    log_event(certificate->source->log, LOG_INFO, "server certificate made",
              LOG_TEXT("file", files->server), LOG_TEXT("because", reason_of(verdict)));
    former_remove(certificate, files);
    return true;
}

static bool load_in_directory(struct certificate *certificate, const char *directory,
                              int64_t now_ms, struct net_tls_context **ret_context,
                              struct error *err)
{
    CLEANUP(buf_done) struct buf authority;
    CLEANUP(x509_secret_done) struct buf authority_key;
    CLEANUP(x509_secret_done) struct buf server;
    struct files files;

    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&authority_key, X509_PEM_BYTES_MAX);
    buf_init(&server, X509_PEM_BYTES_MAX);
    if (!files_name(directory, &files, err) || !server_file_make_directory(files.folder, err) ||
        !authority_take(certificate, &files, now_ms, &authority, &authority_key, err) ||
        !server_take(certificate, &files, buf_slice(&authority), buf_slice(&authority_key), now_ms,
                     &server, err))
        return false;
    if (!net_tls_context_new_pem(buf_slice(&server), buf_slice(&server), ret_context, err))
        return error_prefix(err, "\"%s\" (remove it to have another made)", files.server);
    authority_publish(certificate, buf_slice(&authority));
    return true;
}

static bool server_load(struct certificate *certificate, const char *directory, int64_t now_ms,
                        struct net_tls_context **ret_context, struct error *err)
{
    const struct certificate_source *source = certificate->source;

    if (source->certificate_path[0])
        return net_tls_context_new(source->certificate_path, source->key_path, ret_context, err);
    if (directory)
        return load_in_directory(certificate, directory, now_ms, ret_context, err);
    return load_in_memory(certificate, now_ms, ret_context, err);
}

bool certificate_load(struct certificate *certificate, const char *directory, int64_t now_ms,
                      struct net_tls_context **ret_context, struct error *err)
{
    CLEANUP(net_tls_context_unref) struct net_tls_context *made = NULL;
    const char *clients = certificate->source->clients_path;

    if (!server_load(certificate, directory, now_ms, &made, err) ||
        (clients && clients[0] && !net_tls_context_trust(made, clients, err)))
        return false;
    *ret_context = TAKE(made);
    return true;
}

/* --- Without a server ------------------------------------------------------------------------ */

/* The key stands first in server.pem, and is skipped. */
static struct slice from_certificate(struct slice pem)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----";
    const uint8_t *at = pem.len ? memmem(pem.data, pem.len, begin, sizeof begin - 1) : NULL;

    return at ? slice_skip(pem, (size_t)(at - pem.data)) : SLICE_NONE;
}

bool certificate_inspect(const char *directory, struct buf *ret_authority, struct buf *ret_server,
                         struct error *err)
{
    CLEANUP(x509_secret_done) struct buf server;
    struct files files;

    buf_init(&server, X509_PEM_BYTES_MAX);
    if (!files_name(directory, &files, err) || !file_read(files.authority, ret_authority, err) ||
        !file_read(files.server, &server, err))
        return false;
    if (ret_authority->len == 0)
        return error_set(err, ERROR_CERTIFICATE,
                         "there is no certificate authority in \"%s\": the server makes it there "
                         "when it starts first",
                         files.folder);
    buf_append_slice(ret_server, from_certificate(buf_slice(&server)));
    return true;
}
