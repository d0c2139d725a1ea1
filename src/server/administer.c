/* What the administration of the REST front asks of the server: settings, nodes, and that a rotated
 * key reaches the file. */
#include "server/node_paths.h"
#include "server/server_private.h"

#include "catalogue/node.h"
#include "server/file.h"
#include "server/metrics_servers.h"
#include "server/snapshots.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 256 * 1024 };

static void settings_append(void *context, struct buf *out)
{
    const struct server *server = context;

    settings_print_json(server->settings, out);
}

/* One front that listens. */
static void front_append(const struct metrics_front *front, struct buf *out)
{
    const struct net_listener *listener = atomic_load(&front->listener);
    char address[NET_ADDRESS_TEXT_SIZE];
    struct net_listener_metrics metrics;

    if (!listener)
        return;
    net_listener_metrics(listener, &metrics);
    net_address_text(net_listener_address(listener), address);
    buf_printf(out,
               "%s{\"front\":\"%s\",\"address\":\"%s\",\"open\":%llu,\"accepted\":%llu,"
               "\"refused\":%llu,\"tlsHandshakes\":%llu,\"tlsFailures\":%llu,\"bytesIn\":%llu,"
               "\"bytesOut\":%llu,\"acceptPauses\":%llu}",
               out->data[out->len - 1] == '[' ? "" : ",", front->name, address,
               (unsigned long long)metrics.open, (unsigned long long)metrics.accepted,
               (unsigned long long)metrics.refused, (unsigned long long)metrics.tls_handshakes,
               (unsigned long long)metrics.tls_failures, (unsigned long long)metrics.bytes_in,
               (unsigned long long)metrics.bytes_out, (unsigned long long)metrics.accept_pauses);
}

static void connections_append(void *context, struct buf *out)
{
    const struct server *server = context;

    for (size_t i = 0; i < ARRAY_LEN(server->probes.sources.fronts); i++)
        front_append(&server->probes.sources.fronts[i], out);
}

/* Before its store is opened, which may be one that is open already. */
static bool name_check(struct catalogue *catalogue, const char *name, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);

    return !node_table_find(table, slice_of_text(name)) ||
           error_set(err, ERROR_NAME_TAKEN, "there is a node \"%s\" already", name);
}

static bool node_add(void *context, const struct node_info *info, struct error *err)
{
    const struct server *server = context;

    if (!name_check(store_catalogue(server->store), info->name, err) ||
        !server_node_paths_check(slice_of_text(info->url),
                                 slice_of_text(server->settings->nodes_add_paths), err))
        return false;
    if (store_node_add(server->store, info, err))
        return true;
    /* What is wrong with the store the caller named is theirs to know, and no fault of ours. */
    if (err->code == ERROR_STORE_URL || err->code == ERROR_STORE_FOREIGN ||
        err->code == ERROR_STORE_VERSION || err->code == ERROR_STORE_IN_USE) {
        struct error cause = *err;

        return error_set(err, ERROR_BAD_REQUEST, "%s", cause.message);
    }
    return false;
}

static bool node_remove(void *context, struct slice name, struct error *err)
{
    const struct server *server = context;

    return store_node_remove(server->store, name, err);
}

static const char *node_name(void *context, uint32_t number)
{
    const struct server *server = context;
    const struct cluster_node *node = cluster_find(store_cluster(server->store), number);

    return node ? node->name : NULL;
}

/* Two keys may be rotated at once: whoever writes last writes what is in force. */
static bool keys_changed(void *context, struct error *err)
{
    struct server *server = context;
    bool written = true;

    if (!server->keys.path[0])
        return true;
    WITH_LOCK (&server->keys_lock) {
        CLEANUP(account_unref) struct account *account = NULL;

        written = catalogue_account_open(store_catalogue(server->store),
                                         SLICE(CATALOGUE_ACCOUNT_DEFAULT), &account, err) &&
                  keys_write_file(server->keys.path, account_keys(account), err);
    }
    return written;
}

/* Where there is a directory. Without one the authority is a note of the catalogue, which is in
 * every backup. */
static void files_append(void *context, struct buf *out)
{
    static const char *const names[] = {"tls/ca.pem", "tls/ca.key"};
    const struct server *server = context;
    const char *directory = nodes_directory(server->nodes);

    for (size_t i = 0; directory && i < ARRAY_LEN(names); i++) {
        CLEANUP(buf_done) struct buf file;
        char path[PATH_MAX];
        struct error ignored;
        int length = snprintf(path, sizeof path, "%s/%s", directory, names[i]);

        buf_init(&file, FILE_BYTES_MAX);
        if (length < 0 || (size_t)length >= sizeof path || !server_file_read(path, &file, &ignored))
            continue;
        buf_append(out, names[i], strlen(names[i]) + 1);
        buf_append_be32(out, (uint32_t)file.len);
        buf_append_slice(out, buf_slice(&file));
        OPENSSL_cleanse(file.data, file.len);
    }
}

/* --- Snapshots -------------------------------------------------------------------------------- */

static bool snapshots_show(void *context, struct buf *out, struct error *err)
{
    const struct server *server = context;

    buf_printf(out, "\"boot\":\"%s\",\"snapshots\":[", server->boot);
    if (!snapshots_append(server->nodes, out, err))
        return false;
    BUF_APPEND(out, "]");
    return true;
}

static bool snapshot_make(void *context, struct slice name, struct error *err)
{
    struct server *server = context;
    bool made = false;

    WITH_LOCK (&server->snapshots_lock)
        made = snapshots_make(server->nodes, store_catalogue(server->store), name, clock_wall_ms(),
                              err);
    return made;
}

static bool snapshot_drop(void *context, struct slice name, struct error *err)
{
    struct server *server = context;
    bool dropped = false;

    WITH_LOCK (&server->snapshots_lock)
        dropped = atomic_load(&server->restarts)
                      ? error_set(err, ERROR_SHUTTING_DOWN, "a reset is under way")
                      : snapshots_drop(server->nodes, name, err);
    return dropped;
}

/* The nodes are exchanged while they are closed: the server stops as for SIGTERM, answers included,
 * and begins again. */
static bool snapshot_reset(void *context, struct slice name, struct error *err)
{
    struct server *server = context;
    bool left = false;

    WITH_LOCK (&server->snapshots_lock) {
        left = snapshots_reset(server->nodes, name, err);
        if (left)
            atomic_store(&server->restarts, true);
    }
    return left && (kill(getpid(), SIGTERM) == 0 ||
                    error_set_errno(err, ERROR_SYSTEM, "stopping to begin again"));
}

/* --- Servers ---------------------------------------------------------------------------------- */

static bool servers_show(void *context, struct buf *out, struct error *err UNUSED)
{
    metrics_servers_list(((struct server *)context)->member, out);
    return true;
}

static bool server_drain(void *context, struct slice name, bool on, struct error *err)
{
    return member_drain(((struct server *)context)->member, name, on, err);
}

static bool server_forget(void *context, struct slice name, struct error *err)
{
    return member_forget(((struct server *)context)->member, name, err);
}

struct admin_hooks server_admin_hooks(struct server *server)
{
    bool beside = server->member != NULL;

    return (struct admin_hooks){
        .servers = beside ? servers_show : NULL,
        .server_drain = server_drain,
        .server_forget = server_forget,
        .context = server,
        .snapshots = snapshots_show,
        .snapshot_make = snapshot_make,
        .snapshot_drop = snapshot_drop,
        .snapshot_reset = snapshot_reset,
        .settings = settings_append,
        .connections = connections_append,
        .node_add = node_add,
        .node_remove = node_remove,
        .node_name = node_name,
        .files = files_append,
        .keys_changed = keys_changed,
    };
}
