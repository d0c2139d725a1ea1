#include "server/nodes.h"

#include "base/memory.h"
#include "catalogue/node.h"
#include "engine/budget.h"
#include "engine/guard.h"
#include "engine/standbys.h"
#include "item/cursor.h"
#include "partition/layout.h"
#include "server/machine.h"
#include "server/snapshots.h"

#include <limits.h>
#include <time.h>

/* The partition of the root that stays open while it is paused: the catalogue's. */
enum { UNPAUSED_PARTITION = 1 };

enum { BUDGET_LEAST = 64 * 1024 * 1024 };

enum { RETIRE_LOOKS = 200, RETIRE_PAUSE_NS = 10 * 1000 * 1000 };

struct nodes {
    struct arena *arena; /* owns this structure and its texts */
    const struct settings *settings;
    struct engine_budget *budget; /* owned */
    struct engine_options options;
    atomic_size_t count; /* written behind the member it counts */
    const char *directory;
    struct nodes_member members[CLUSTER_NODES_MAX];
    struct node_info *said;
    size_t said_count;
    char reset_to[SNAPSHOT_NAME_SIZE]; /* while they are opened: what they become; "": they stay */
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

    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return NULL;
    url += sizeof scheme - 1;
    return strncmp(url, "///", 3) == 0 ? url + 2 : url;
}

static bool is_listed(const char *list, const char *name)
{
    struct slice rest = slice_of_text(list), one;

    while (rest.len) {
        if (!slice_split(rest, ',', &one, &rest)) {
            one = rest;
            rest = SLICE_NONE;
        }
        if (slice_equal(slice_trim(one), slice_of_text(name)))
            return true;
    }
    return false;
}

static struct engine *guard_new(const struct nodes *nodes, const char *name, struct slice url)
{
    const struct settings *settings = nodes->settings;

    struct engine_options inner = nodes->options;
    struct engine_standbys *standbys;
    struct engine_guard_options options;
    struct engine *engine;

    inner.accept_loss = is_listed(settings->nodes_accept_loss, name);
    options = (struct engine_guard_options){
        .name = name,
        .url = url,
        .inner = inner,
        .unpaused_partition = nodes->count == 0 ? UNPAUSED_PARTITION : 0,
        .answer_ms = settings->nodes_answer_ms,
        .probe_ms = settings->nodes_probe_ms,
        .suspect_ms = settings->nodes_suspect_ms,
        .suspect_calls = (size_t)settings->nodes_suspect_calls,
        .hang_ms = settings->nodes_hang_ms,
        .write_hang_ms = settings->nodes_write_hang_ms,
        .backoff_ms_max = settings->nodes_backoff_ms_max,
        /* what does not answer here the owner does */
        .failover_ms = inner.follower ? 0 : settings->nodes_failover_ms,
        .failover_calls = (size_t)settings->nodes_failover_calls,
    };
    standbys = settings->nodes_standby_reads && !inner.follower
                   ? engine_standbys_new(&options, settings->nodes_beat_ms)
                   : NULL;
    options.inner.beats = standbys ? engine_standbys_beats(standbys) : NULL;
    engine = engine_guard_new(&options);
    engine_guard_hang(engine, standbys);
    return engine;
}

static void member_add(struct nodes *nodes, const char *name, const char *directory,
                       struct engine *engine)
{
    struct nodes_member *member = &nodes->members[nodes->count];

    member->directory = directory ? arena_text(nodes->arena, slice_of_text(directory)) : NULL;
    member->name = arena_text(nodes->arena, slice_of_text(name));
    member->engine = engine;
    atomic_fetch_add(&nodes->count, 1);
}

static bool room_check(const struct nodes *nodes, const char *name, struct error *err)
{
    return nodes->count < CLUSTER_NODES_MAX ||
           error_set(err, ERROR_LIMIT_REACHED,
                     "node \"%s\" is one too many: the limit is %d, and those that were removed "
                     "count until the next start",
                     name, CLUSTER_NODES_MAX);
}

/* known: what the catalogue remembers of it, NULL: nothing. Such a one may come later. */
static bool node_open(struct nodes *nodes, const char *name, const char *url,
                      const struct node_info *known, struct error *err)
{
    CLEANUP(engine_close) struct engine *engine = NULL;

    if (!room_check(nodes, name, err))
        return false;
    if (nodes->reset_to[0] && !snapshots_apply(url, url_directory(url), nodes->reset_to, err))
        return error_prefix(err, "node \"%s\"", name);
    engine = guard_new(nodes, name, slice_of_text(url));
    if (engine_guard_open(engine, err)) {
        log_event(nodes->options.log, LOG_INFO, "node opened", LOG_TEXT("node", name),
                  LOG_SLICE("url", engine_name(engine)));
    } else if (known && !nodes->reset_to[0]) {
        engine_guard_expect(engine, known->id);
        log_event(nodes->options.log, LOG_WARNING, "node down", LOG_TEXT("node", name),
                  LOG_TEXT("because", err->message));
    } else {
        return error_prefix(err, "node \"%s\"", name);
    }
    member_add(nodes, name, url_directory(url), TAKE(engine));
    if (!nodes->directory && url_directory(url))
        nodes->directory = url_directory(url);
    return true;
}

static bool root_open(struct nodes *nodes, struct error *err)
{
    const struct settings *settings = nodes->settings;
    const char *directory, *url, *name = "local";

    if (settings->node_count > 0) {
        name = settings->nodes[0].name;
        url = settings->nodes[0].url;
    } else {
        if (!default_directory(settings, nodes->arena, &directory, err))
            return false;
        url = arena_text(nodes->arena, arena_printf(nodes->arena, "rocksdb:%s", directory));
    }
    if (url_directory(url) && !snapshots_pending(url_directory(url), nodes->reset_to, err))
        return error_prefix(err, "node \"%s\"", name);
    return node_open(nodes, name, url, NULL, err);
}

/* All nodes are what the snapshot was. */
static bool reset_end(struct nodes *nodes, struct error *err)
{
    if (!nodes->reset_to[0])
        return true;
    if (!snapshots_applied(nodes->members[0].directory, err))
        return false;
    log_event(nodes->options.log, LOG_WARNING, "nodes were reset to a snapshot",
              LOG_TEXT("snapshot", nodes->reset_to));
    nodes->reset_to[0] = '\0';
    return true;
}

static bool is_open(const struct nodes *nodes, const struct node_info *info)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (strcmp(nodes->members[i].name, info->name) == 0 ||
            strcmp(engine_node_id(nodes->members[i].engine), info->id) == 0)
            return true;
    return false;
}

/* Those of the settings, then those that were added later; what the settings say of a URL holds. */
static bool others_open(struct nodes *nodes, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);
    const struct settings *settings = nodes->settings;

    if (!catalogue_nodes_peek(nodes->members[0].engine, table, err))
        return error_prefix(err, "node \"%s\"", nodes->members[0].name);
    for (size_t i = 1; i < settings->node_count; i++)
        if (!node_open(nodes, settings->nodes[i].name, settings->nodes[i].url,
                       node_table_find(table, slice_of_text(settings->nodes[i].name)), err))
            return false;
    for (size_t i = 0; i < table->count; i++)
        if (table->list[i].remembered && !is_open(nodes, &table->list[i]) &&
            !node_open(nodes, table->list[i].name, table->list[i].url, &table->list[i], err))
            return false;
    return true;
}

/* The values were tried when they were set. */
static bool said_read(struct nodes *nodes, struct error *err)
{
    const struct settings *settings = nodes->settings;

    nodes->said = ARENA_ARRAY(nodes->arena, struct node_info, settings->attribute_count + 1);
    for (size_t i = 0; i < settings->attribute_count; i++) {
        const struct settings_attribute *attribute = &settings->attributes[i];
        size_t place = 0;

        while (place < nodes->said_count && strcmp(nodes->said[place].name, attribute->node) != 0)
            place++;
        if (place == nodes->said_count) {
            nodes->said[nodes->said_count++] = (struct node_info){.reserve_percent = UINT32_MAX};
            (void)snprintf(nodes->said[place].name, sizeof nodes->said[place].name, "%s",
                           attribute->node);
        }
        if (!node_set(&nodes->said[place], slice_of_text(attribute->name),
                      slice_of_text(attribute->value), err))
            return false;
    }
    return true;
}

/* What clients read one by one, and by which numbers of index entries lead there. All else is read
 * in ranges, or kept by group commit. */
static const char families_recalled[] = {PARTITION_FAMILY_ITEM, PARTITION_FAMILY_NUMBER, '\0'};

static bool open_all(const struct settings *settings, struct engine_claim claim, bool follower,
                     struct log *log, struct nodes **ret_nodes, struct error *err)
{
    struct arena *arena = arena_new();
    CLEANUP(nodes_close) struct nodes *nodes = ARENA_NEW(arena, struct nodes);

    nodes->arena = arena;
    nodes->settings = settings;
    nodes->budget = engine_budget_new(settings->engine_budget_bytes
                                          ? (size_t)settings->engine_budget_bytes
                                          : MAX(machine_memory() / 4, (size_t)BUDGET_LEAST));
    nodes->options = (struct engine_options){
        .log = log,
        .recalled = families_recalled,
        .group = cursor_group,
        .budget = nodes->budget,
        .cache_bytes = (size_t)settings->engine_cache_bytes,
        .recall_bytes = (size_t)settings->engine_value_cache_bytes,
        .memory_bytes_max = (size_t)settings->engine_memory_bytes_max,
        .write_buffer_bytes = (size_t)settings->engine_write_buffer_bytes,
        .snapshot_ms_max = settings->engine_snapshot_ms_max,
        .connect_ms_max = settings->engine_connect_ms_max,
        .connections_max = (uint32_t)settings->engine_connections_max,
        .claim = claim,
        .follower = follower,
    };
    if (!said_read(nodes, err) || !root_open(nodes, err) || !others_open(nodes, err) ||
        !reset_end(nodes, err))
        return false;
    *ret_nodes = TAKE(nodes);
    return true;
}

bool nodes_open(const struct settings *settings, struct engine_claim claim, struct log *log,
                struct nodes **ret_nodes, struct error *err)
{
    return open_all(settings, claim, false, log, ret_nodes, err);
}

bool nodes_follow(const struct settings *settings, struct log *log, struct nodes **ret_nodes,
                  struct error *err)
{
    return open_all(settings, (struct engine_claim){0}, true, log, ret_nodes, err);
}

void nodes_close(struct nodes *nodes)
{
    if (!nodes)
        return;
    while (nodes->count > 0)
        engine_close(nodes->members[--nodes->count].engine);
    engine_budget_free(nodes->budget);
    arena_free(nodes->arena);
}

bool nodes_add(struct nodes *nodes, const char *name, struct slice url, struct engine **ret_engine,
               struct error *err)
{
    CLEANUP(engine_close) struct engine *engine = NULL;

    if (!room_check(nodes, name, err))
        return false;
    engine = guard_new(nodes, name, url);
    if (!engine_guard_open(engine, err))
        return error_prefix(err, "node \"%s\"", name);
    member_add(nodes, name, url_directory(arena_text(nodes->arena, url)), engine);
    *ret_engine = TAKE(engine);
    return true;
}

void nodes_retire(struct nodes *nodes, struct engine *engine)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->members[i].engine == engine)
            atomic_store(&nodes->members[i].gone, true);
    engine_guard_leave(engine);
    /* Those inside are soon gone, since nobody follows them. */
    for (int i = 0; i < RETIRE_LOOKS && !engine_guard_retire(engine); i++)
        nanosleep(&(struct timespec){0, RETIRE_PAUSE_NS}, NULL);
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

const struct node_info *nodes_said(const struct nodes *nodes, size_t *ret_count)
{
    *ret_count = nodes->said_count;
    return nodes->said;
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
