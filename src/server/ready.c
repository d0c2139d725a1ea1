#include "server/ready.h"

#include "catalogue/node.h"
#include "document/json.h"
#include "engine/guard.h"
#include "front/fault.h"

enum { PARTITIONS_SHOWN = 100 };

/* A bit for each node whose partitions do not serve. */
struct looking {
    const struct cluster *cluster;
    uint64_t away;
    size_t count;
    const char *first_away;   /* name of a node */
    const char *first_faulty; /* name of one that serves, but not all that is asked of it */
    enum engine_fault fault;  /* of that */
    struct buf *out;
    struct arena *arena;
};

/* What a node that serves suffers from. False: nothing. */
static bool fault_find(const struct engine_guard_status *status, enum engine_fault *ret_fault)
{
    for (int i = 0; i < ENGINE_FAULTS; i++)
        if (status->faults[i]) {
            *ret_fault = (enum engine_fault)i;
            return true;
        }
    return false;
}

static void node_print(struct looking *looking, const struct cluster_node *node, bool first)
{
    struct engine_guard_status status = {0};
    bool guarded = engine_guard_status(node->engine, &status);
    enum engine_fault fault = ENGINE_FAULTS;
    struct error err;
    bool serves = engine_serves(node->engine, &err);

    if (!serves) {
        looking->away |= 1ULL << node->number;
        looking->first_away = looking->first_away ? looking->first_away : node->name;
    }
    buf_printf(looking->out, "%s{\"name\":\"%s\",\"state\":\"%s\"", first ? "" : ",", node->name,
               serves && fault_find(&status, &fault) ? engine_fault_name(fault)
               : serves                              ? "serving"
               : err.code == ERROR_NODE_PAUSED       ? "paused"
                                                     : "down");
    if (fault != ENGINE_FAULTS && !looking->first_faulty) {
        looking->first_faulty = node->name;
        looking->fault = fault;
    }
    if (fault != ENGINE_FAULTS || (!serves && guarded && status.state == ENGINE_GUARD_DOWN)) {
        BUF_APPEND(looking->out, ",\"because\":");
        /* whoever asks need not have signed */
        document_json_write_string(
            front_paths_hide(
                slice_of_text(fault != ENGINE_FAULTS ? status.fault_reason : status.reason),
                looking->arena),
            looking->out);
    }
    BUF_APPEND(looking->out, "}");
}

static void nodes_print(struct looking *looking)
{
    bool first = true;

    BUF_APPEND(looking->out, "\"nodes\":[");
    for (size_t i = 0; i < cluster_count(looking->cluster); i++) {
        const struct cluster_node *node = cluster_at(looking->cluster, i);

        if (!cluster_node_is_member(node))
            continue;
        node_print(looking, node, first);
        first = false;
    }
    BUF_APPEND(looking->out, "]");
}

static void container_look(struct looking *looking, const struct container *container)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++) {
        if (!(looking->away >> spans[i].node & 1))
            continue;
        if (looking->count++ < PARTITIONS_SHOWN)
            buf_printf(looking->out, "%s%u", looking->count == 1 ? "" : ",", spans[i].id);
    }
}

/* Then the catalogue, a partition like others, takes no changes. Paused it does. */
static bool root_is_down(const struct cluster *cluster)
{
    struct error err;

    return !engine_serves(cluster_at(cluster, 0)->engine, &err) && err.code == ERROR_NODE_DOWN;
}

static void partitions_print(struct looking *looking, struct catalogue *catalogue)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct account **accounts = catalogue_accounts(catalogue, arena, &count);

    BUF_APPEND(looking->out, ",\"partitions\":[");
    if (root_is_down(looking->cluster)) {
        looking->count++;
        BUF_APPEND(looking->out, "1");
    }
    for (size_t a = 0; a < count; a++) {
        for (size_t d = 0; d < account_database_count(accounts[a]); d++) {
            const struct database *database = account_database(accounts[a], d);

            for (size_t c = 0; looking->away && c < database_container_count(database); c++)
                container_look(looking, database_container(database, c));
        }
        account_unref(accounts[a]);
    }
    buf_printf(looking->out, "],\"partitionsAway\":%zu", looking->count);
}

bool ready_print(struct catalogue *catalogue, struct buf *out)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf body;
    struct looking looking = {
        .cluster = catalogue_cluster(catalogue), .out = &body, .arena = arena};

    buf_init(&body, BUF_DEFAULT_MAX);
    nodes_print(&looking);
    partitions_print(&looking, catalogue);
    if (looking.count)
        buf_printf(out,
                   "{\"code\":\"ServiceUnavailable\",\"message\":\"node \\\"%s\\\" does not "
                   "serve, and %zu partition%s with it or others\",",
                   looking.first_away, looking.count, PLURAL(looking.count));
    else if (looking.first_faulty)
        buf_printf(out, "{\"code\":\"ServiceUnavailable\",\"message\":\"node \\\"%s\\\" %s\",",
                   looking.first_faulty,
                   looking.fault == ENGINE_FAULT_FULL
                       ? "is full and takes no more than deletes"
                       : "has blocks that cannot be read; restore it from a backup");
    else
        BUF_APPEND(out, "{\"status\":\"ready\",");
    buf_append_slice(out, buf_slice(&body));
    BUF_APPEND(out, "}\n");
    return !looking.count && !looking.first_faulty;
}
