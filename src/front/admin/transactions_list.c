/* Transactions over several nodes that are under way, and what those that wait are waiting for. */
#include "base/random.h"
#include "catalogue/agreements.h"
#include "front/admin/call.h"

static void name_append(const struct cluster *cluster, uint32_t number, struct buf *out)
{
    const struct cluster_node *node = cluster_find(cluster, number);

    if (node)
        buf_printf(out, "\"%s\"", node->name); /* small letters, digits and hyphens */
    else
        buf_printf(out, "\"%u\"", number);
}

static void agreement_append(struct admin_call *call, const struct agreement_info *info)
{
    const struct cluster *cluster = catalogue_cluster(call->services->catalogue);
    struct buf *out = &call->body;
    char id[RANDOM_UUID_SIZE];
    bool some = false;

    random_uuid_of(info->id.bytes, id);
    buf_printf(out, "{\"id\":\"%s\",\"state\":\"%s\",\"home\":", id,
               agreement_state_name(info->state));
    name_append(cluster, info->home, out);
    BUF_APPEND(out, ",\"nodes\":[");
    for (uint32_t n = 0; n < CLUSTER_NODES_MAX; n++)
        if (info->nodes >> n & 1) {
            if (some)
                BUF_APPEND(out, ",");
            name_append(cluster, n, out);
            some = true;
        }
    buf_printf(out, "],\"since\":%lld,\"waits\":%s", (long long)(info->since_ms / 1000),
               info->waits ? "true" : "false");
    if (info->why[0])
        admin_text(out, "why", slice_of_text(info->why));
    BUF_APPEND(out, "}");
}

bool admin_transactions_list(struct admin_call *call, struct error *err)
{
    struct agreement_info *list;
    size_t count;

    if (!admin_need_owner(call, err))
        return false;
    count = agreements_list(catalogue_agreements(call->services->catalogue), call->arena, &list);
    BUF_APPEND(&call->body, "{\"transactions\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            BUF_APPEND(&call->body, ",");
        agreement_append(call, &list[i]);
    }
    BUF_APPEND(&call->body, "]}");
    call->status = 200;
    return true;
}
