/* What the administration of the REST front asks of the server: settings, nodes, and that a rotated
 * key reaches the file. */
#include "document/json.h"
#include "server/server_private.h"

static void settings_append(void *context, struct buf *out)
{
    const struct server *server = context;

    settings_print_json(server->settings, out);
}

static void figures_append(struct engine *engine, struct buf *out)
{
    struct engine_statistics figures;
    struct error err;

    if (!engine_statistics(engine, &figures, &err)) {
        BUF_APPEND(out, ",\"error\":");
        document_json_write_string(slice_of_text(err.message), out);
        return;
    }
    buf_printf(out, ",\"durable\":%s,\"poisoned\":%s,\"bytesStored\":%llu",
               figures.durable ? "true" : "false", figures.poisoned ? "true" : "false",
               (unsigned long long)figures.bytes_stored);
    if (figures.bytes_free != UINT64_MAX)
        buf_printf(out, ",\"bytesFree\":%llu", (unsigned long long)figures.bytes_free);
    buf_printf(out, ",\"bytesResident\":%llu,\"reads\":%llu,\"writes\":%llu,\"reconnects\":%llu",
               (unsigned long long)figures.bytes_resident, (unsigned long long)figures.reads,
               (unsigned long long)figures.writes, (unsigned long long)figures.reconnects);
}

static void partitions_append(struct engine *engine, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    struct error ignored;
    size_t count;

    if (engine_partition_list(engine, arena, &partitions, &count, &ignored))
        buf_printf(out, ",\"partitions\":%zu", count);
}

static void nodes_append(void *context, struct buf *out)
{
    const struct server *server = context;
    const struct cluster *cluster = store_cluster(server->store);

    BUF_APPEND(out, "[");
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);

        buf_printf(out, "%s{\"name\":\"%s\",\"url\":", i ? "," : "", node->name);
        document_json_write_string(engine_name(node->engine), out);
        partitions_append(node->engine, out);
        figures_append(node->engine, out);
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
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
        .nodes = nodes_append,
        .node_name = node_name,
        .keys_changed = keys_changed,
    };
}
