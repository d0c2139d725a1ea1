#include "server/nodes.h"

#include <limits.h>

struct nodes {
    struct arena *arena; /* owns this structure and its texts */
    size_t count;
    const char *directory;
    struct nodes_member members[SETTINGS_NODES_MAX];
};

/* Where data goes when nobody said: server.directory, else what the XDG base directories say. */
static bool default_directory(const struct settings *settings, struct arena *arena,
                              const char **ret_directory, struct error *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char path[PATH_MAX];
    int length;

    if (settings->server_directory[0])
        length = snprintf(path, sizeof path, "%s", settings->server_directory);
    else if (data && data[0] == '/')
        length = snprintf(path, sizeof path, "%s/orrery", data);
    else if (home && home[0] == '/')
        length = snprintf(path, sizeof path, "%s/.local/share/orrery", home);
    else
        return error_set(err, ERROR_CONFIGURATION,
                         "there is no place for data: HOME is not set, and no --node is given");
    if (length < 0 || (size_t)length >= sizeof path)
        return error_set(err, ERROR_CONFIGURATION, "the path of the data directory is too long");
    *ret_directory = arena_text(arena, slice_of_text(path));
    return true;
}

/* The directory a URL names; NULL for an engine that has none. */
static const char *url_directory(const char *url)
{
    static const char scheme[] = "rocksdb:";

    return strncmp(url, scheme, sizeof scheme - 1) == 0 ? url + sizeof scheme - 1 : NULL;
}

static bool node_open(struct nodes *nodes, const char *name, const char *url,
                      const struct engine_options *options, struct error *err)
{
    struct nodes_member *member = &nodes->members[nodes->count];

    if (!engine_open(slice_of_text(url), options, &member->engine, err))
        return error_prefix(err, "node \"%s\"", name);
    member->name = name;
    nodes->count++;
    log_event(options->log, LOG_INFO, "node opened", LOG_TEXT("node", name),
              LOG_SLICE("url", engine_name(member->engine)));
    if (!nodes->directory)
        nodes->directory = url_directory(url);
    return true;
}

bool nodes_open(const struct settings *settings, struct log *log, struct nodes **ret_nodes,
                struct error *err)
{
    struct arena *arena = arena_new();
    CLEANUP(nodes_close) struct nodes *nodes = ARENA_NEW(arena, struct nodes);
    const struct engine_options options = {
        .log = log,
        .cache_bytes = (size_t)settings->engine_cache_bytes,
        .memory_bytes_max = (size_t)settings->engine_memory_bytes_max,
        .write_buffer_bytes = (size_t)settings->engine_write_buffer_bytes,
        .snapshot_ms_max = settings->engine_snapshot_ms_max,
        .connect_ms_max = settings->engine_connect_ms_max,
        .connections_max = (uint32_t)settings->engine_connections_max,
    };

    nodes->arena = arena;
    for (size_t i = 0; i < settings->node_count; i++)
        if (!node_open(nodes, settings->nodes[i].name, settings->nodes[i].url, &options, err))
            return false;
    if (settings->node_count == 0) {
        const char *directory;

        if (!default_directory(settings, arena, &directory, err) ||
            !node_open(nodes, "local",
                       arena_text(arena, arena_printf(arena, "rocksdb:%s", directory)), &options,
                       err))
            return false;
    }
    *ret_nodes = TAKE(nodes);
    return true;
}

void nodes_close(struct nodes *nodes)
{
    if (!nodes)
        return;
    while (nodes->count > 0)
        engine_close(nodes->members[--nodes->count].engine);
    arena_free(nodes->arena);
}

size_t nodes_count(const struct nodes *nodes)
{
    return nodes->count;
}

const struct nodes_member *nodes_at(const struct nodes *nodes, size_t index)
{
    assert(index < nodes->count);
    return &nodes->members[index];
}

const char *nodes_directory(const struct nodes *nodes)
{
    return nodes->directory;
}

bool nodes_find_directory(const struct settings *settings, struct arena *arena,
                          const char **ret_directory, struct error *err)
{
    if (settings->node_count == 0)
        return default_directory(settings, arena, ret_directory, err);
    for (size_t i = 0; i < settings->node_count; i++) {
        const char *directory = url_directory(settings->nodes[i].url);

        if (directory) {
            *ret_directory = directory;
            return true;
        }
    }
    return error_set(err, ERROR_CONFIGURATION, "none of the nodes is a rocksdb: node");
}

/* Listing the partitions asks the store itself, so a server that is gone is noticed here. */
static bool node_ready(const struct nodes_member *node, struct arena *arena, struct error *err)
{
    struct engine_partition *partitions;
    struct engine_statistics statistics;
    size_t count;

    if (!engine_partition_list(node->engine, arena, &partitions, &count, err) ||
        !engine_statistics(node->engine, &statistics, err))
        return error_prefix(err, "node \"%s\"", node->name);
    if (statistics.poisoned)
        return error_set(err, ERROR_STORE_POISONED,
                         "node \"%s\" refuses writes since one of them failed", node->name);
    return true;
}

bool nodes_ready(const struct nodes *nodes, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < nodes->count; i++)
        if (!node_ready(&nodes->members[i], arena, err))
            return false;
    return true;
}
