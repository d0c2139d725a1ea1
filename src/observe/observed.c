#include "observe/observed.h"

#include "document/json.h"
#include "throughput/cost.h"

static const char *const operation_names[OBSERVED_OPERATIONS] = {
    [OBSERVED_OTHER] = "other",     [OBSERVED_READ] = "read",
    [OBSERVED_LIST] = "list",       [OBSERVED_CREATE] = "create",
    [OBSERVED_REPLACE] = "replace", [OBSERVED_UPSERT] = "upsert",
    [OBSERVED_PATCH] = "patch",     [OBSERVED_DELETE] = "delete",
    [OBSERVED_QUERY] = "query",     [OBSERVED_MORE] = "more",
    [OBSERVED_BATCH] = "batch",     [OBSERVED_CHANGES] = "changes",
    [OBSERVED_EXECUTE] = "execute", [OBSERVED_METADATA] = "metadata",
    [OBSERVED_CHANGE] = "change",   [OBSERVED_ADMIN] = "admin",
    [OBSERVED_ORDER] = "order",
};

const char *observed_operation_name(enum observed_operation operation)
{
    assert(operation < OBSERVED_OPERATIONS);
    return operation_names[operation];
}

bool observed_operation_changes(enum observed_operation operation)
{
    switch (operation) {
    case OBSERVED_CREATE:
    case OBSERVED_REPLACE:
    case OBSERVED_UPSERT:
    case OBSERVED_PATCH:
    case OBSERVED_DELETE:
    case OBSERVED_BATCH:
    case OBSERVED_EXECUTE:
    case OBSERVED_CHANGE:
    case OBSERVED_ORDER:
        return true;
    default:
        return false;
    }
}

bool observed_operation_is_administration(enum observed_operation operation)
{
    return operation >= OBSERVED_METADATA;
}

static void member(struct buf *out, const char *name, struct slice text)
{
    if (!text.len)
        return;
    buf_printf(out, ",\"%s\":", name);
    document_json_write_string(text, out);
}

void observed_request_json(const struct observed_request *request, struct buf *out)
{
    char charge[COST_TEXT_SIZE], host[NET_ADDRESS_TEXT_SIZE];

    cost_text(request->charge_cru, charge);
    buf_printf(out, ",\"api\":\"%s\",\"operation\":\"%s\"", request->front,
               observed_operation_name(request->observed.operation));
    if (request->name)
        member(out, "name", slice_of_text(request->name));
    member(out, "id", request->id);
    member(out, "account", request->account);
    member(out, "database", request->database);
    member(out, "container", request->container);
    if (request->observed.partition)
        buf_printf(out, ",\"partition\":\"%u\"", request->observed.partition);
    member(out, "what", request->what);
    member(out, "who", request->who);
    if (request->peer && request->peer->len) {
        net_address_host(request->peer, host);
        member(out, "from", slice_of_text(host));
    }
    buf_printf(out, ",\"status\":%u", request->status);
    if (request->substatus)
        buf_printf(out, ",\"substatus\":%u", request->substatus);
    if (request->error)
        buf_printf(out, ",\"error\":\"%s\"", request->error);
    buf_printf(out, ",\"charge\":%s,\"ms\":%.3f,\"bytesIn\":%llu,\"bytesOut\":%llu", charge,
               (double)request->time_us / 1000, (unsigned long long)request->bytes_in,
               (unsigned long long)request->bytes_out);
    member(out, "plan", request->observed.plan);
}
