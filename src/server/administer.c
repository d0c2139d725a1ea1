/* What the administration of the REST front asks of the server: settings, nodes, and that a rotated
 * key reaches the file. */
#include "server/server_private.h"

static void settings_append(void *context, struct buf *out)
{
    const struct server *server = context;

    settings_print_json(server->settings, out);
}

static bool node_add(void *context, const struct node_info *info, struct error *err)
{
    const struct server *server = context;

    return store_node_add(server->store, info, err);
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

struct admin_hooks server_admin_hooks(struct server *server)
{
    return (struct admin_hooks){
        .context = server,
        .settings = settings_append,
        .node_add = node_add,
        .node_remove = node_remove,
        .node_name = node_name,
        .keys_changed = keys_changed,
    };
}
