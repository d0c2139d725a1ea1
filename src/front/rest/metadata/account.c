#include "front/account.h"

#include "document/json.h"
#include "front/rest/call.h"

#include <inttypes.h>

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
        return !call->account.account && call->operation->access != REST_ACCESS_READ;
    }
}

bool rest_account_make(struct rest_call *call, struct error *err)
{
    return !rest_account_is_made(call) ||
           front_account_make(call->services, call->account.id, &call->account.account, err);
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

bool rest_account_read(struct rest_call *call, struct error *err UNUSED)
{
    struct slice endpoint = front_gateway_endpoint(
        &call->over_gateway, rest_call_header(call, REST_HEADER_HOST), call->route.prefix);
    const struct front_consistency *consistency = &call->services->consistency;
    struct buf *body = &call->body;

    /* There are no media; old clients read how much of their room is used. */
    rest_answer_header_int(call, SLICE("x-ms-max-media-storage-usage-mb"), 0);
    rest_answer_header_int(call, SLICE("x-ms-media-storage-usage-mb"), 0);
    BUF_APPEND(body, "{\"_self\":\"\",\"id\":");
    document_json_write_string(call->account.id, body);
    BUF_APPEND(body, ",\"_rid\":");
    document_json_write_string(call->account.id, body);
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
    buf_append_text(body, item_level_name(consistency->level));
    if (consistency->level == ITEM_BOUNDED)
        buf_printf(body,
                   "\",\"maxStalenessPrefix\":%" PRIu64 ",\"maxIntervalInSeconds\":%" PRId64 "}",
                   consistency->staleness_operations, consistency->staleness_ms / 1000);
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
