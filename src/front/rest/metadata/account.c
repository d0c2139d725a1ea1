#include "front/account.h"

#include "document/json.h"
#include "front/rest/call.h"

bool rest_account_find(struct rest_call *call, struct error *err)
{
    struct slice id = call->route.account;
    struct front_account found;

    if (!id.data)
        id = front_account_of_host(rest_call_header(call, REST_HEADER_HOST),
                                   call->options->host_suffix, call->arena);
    if (!id.data)
        id = slice_of_text(CATALOGUE_ACCOUNT_DEFAULT);
    if (!front_account_find(call->services, id, call->options->accounts_by_use, call->arena, &found,
                            err))
        return false;
    call->account = found.account;
    call->account_missing = found.missing;
    call->account_id = found.id;
    call->keys = found.keys;
    call->keys_account = found.keys_account;
    return true;
}

/* What only looks finds an account that is empty. */
bool rest_account_is_made(const struct rest_call *call)
{
    switch (call->verb) {
    case REST_READ:
    case REST_LIST:
    case REST_CHANGES:
    case REST_QUERY:
    case REST_PLAN:
        return false;
    default:
        return !call->account && call->operation->access != REST_ACCESS_READ;
    }
}

bool rest_account_make(struct rest_call *call, struct error *err)
{
    return !rest_account_is_made(call) ||
           front_account_make(call->services, call->account_id, &call->account, err);
}

static const char *consistency_name(enum rest_consistency consistency)
{
    static const char *const names[] = {"Strong", "BoundedStaleness", "Session", "ConsistentPrefix",
                                        "Eventual"};

    return names[consistency];
}

/* What the query engine takes; .NET and Java read it. */
static const char query_engine[] =
    "{\"maxSqlQueryInputLength\":524288,\"maxJoinsPerSqlQuery\":10,\"maxLogicalAndPerSqlQuery\":"
    "500,"
    "\"maxLogicalOrPerSqlQuery\":500,\"maxUdfRefPerSqlQuery\":10,\"maxInExpressionItemsCount\":"
    "16000,"
    "\"queryMaxInMemorySortDocumentCount\":500,\"maxQueryRequestTimeoutFraction\":0.9,"
    "\"sqlAllowNonFiniteNumbers\":false,\"sqlAllowAggregateFunctions\":true,\"sqlAllowSubQuery\":"
    "true,"
    "\"sqlAllowScalarSubQuery\":true,\"allowNewKeywords\":true,\"sqlAllowLike\":true,"
    "\"sqlAllowGroupByClause\":true,\"maxSpatialQueryCells\":12,\"spatialMaxGeometryPointCount\":"
    "256,"
    "\"sqlAllowTop\":true,\"enableSpatialIndexing\":true}";

static void location_append(struct rest_call *call, const char *property, struct slice endpoint)
{
    buf_printf(&call->body, ",\"%s\":[{\"name\":\"Orrery\",\"databaseAccountEndpoint\":", property);
    document_json_write_string(endpoint, &call->body);
    BUF_APPEND(&call->body, "}]");
}

/* The client's own words for where we are: whatever it reached us by must lead here again. */
struct slice rest_call_endpoint(struct rest_call *call)
{
    static const struct slice local = SLICE("localhost");
    struct slice host = rest_call_header(call, REST_HEADER_HOST);
    struct slice name = host, port = SLICE_NONE;

    /* As the emulator does: some clients try ::1 first and do not come back from it. */
    if (call->options->dev && host.len >= local.len &&
        slice_equal_nocase(slice_first(host, local.len), local) &&
        (host.len == local.len || host.data[local.len] == ':')) {
        name = SLICE("127.0.0.1");
        port = slice_skip(host, local.len);
    }
    return arena_printf(call->arena, "%s://%.*s%.*s%.*s/", call->http->tls ? "https" : "http",
                        SLICE_ARG(name), SLICE_ARG(port), SLICE_ARG(call->route.prefix));
}

bool rest_account_read(struct rest_call *call, struct error *err UNUSED)
{
    struct slice endpoint = rest_call_endpoint(call);
    struct buf *body = &call->body;

    /* There are no media; old clients read how much of their room is used. */
    rest_answer_header_int(call, SLICE("x-ms-max-media-storage-usage-mb"), 0);
    rest_answer_header_int(call, SLICE("x-ms-media-storage-usage-mb"), 0);
    BUF_APPEND(body, "{\"_self\":\"\",\"id\":");
    document_json_write_string(call->account_id, body);
    BUF_APPEND(body, ",\"_rid\":");
    document_json_write_string(call->account_id, body);
    BUF_APPEND(body, ",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\"");
    location_append(call, "writableLocations", endpoint);
    location_append(call, "readableLocations", endpoint);
    BUF_APPEND(
        body,
        ",\"enableMultipleWriteLocations\":false,\"continuousBackupEnabled\":false,"
        "\"enableNRegionSynchronousCommit\":false,\"enablePerPartitionFailoverBehavior\":false,"
        "\"disableCrossRegionalHedging\":false,"
        "\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":1,"
        "\"maxReplicasetSize\":4},\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":\"");
    buf_append_text(body, consistency_name(call->options->consistency));
    if (call->options->consistency == REST_BOUNDED_STALENESS)
        BUF_APPEND(body, "\",\"maxStalenessPrefix\":10,\"maxIntervalInSeconds\":5}");
    else
        BUF_APPEND(body, "\"}");
    BUF_APPEND(body,
               ",\"systemReplicationPolicy\":{\"minReplicaSetSize\":1,\"maxReplicasetSize\":4},"
               "\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1},"
               "\"queryEngineConfiguration\":");
    document_json_write_string(slice_of_text(query_engine), body);
    BUF_APPEND(body, "}");
    call->status = 200;
    return true;
}
